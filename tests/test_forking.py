"""What holds where a process is forked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_FORKED_WITHIN_A_RUN = """
import os, signal, sys, threading, time
from onoma.forking import without_fork
signal.alarm(30)
begun, done = threading.Event(), []
def run():
    with without_fork():
        begun.set()
        time.sleep(0.3)
        done.append(True)
threads = [threading.Thread(target=run) for _ in range(2)]
for thread in threads:
    thread.start()
begun.wait()
children = []
def fork():
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        with without_fork():
            os._exit(0 if done else 1)
    children.append(child)
forks = [threading.Thread(target=fork) for _ in range(3)]
for thread in forks:
    thread.start()
for thread in [*forks, *threads]:
    thread.join()
with without_fork():
    sys.exit(any(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children) or len(children) != 3)
"""
_FORKED_IN_A_HANDLER = """
import os, signal, sys, threading, time
from onoma import forking
signal.alarm(30)
children = []
def fork(*_):
    child = os.fork()
    if child == 0:
        os._exit(0)
    children.append(child)
signal.signal(signal.SIGUSR1, fork)
with forking.without_fork():
    signal.raise_signal(signal.SIGUSR1)  # as where it comes while this thread encodes
class Stop(Exception):
    pass
def stop(*_):
    raise Stop
signal.signal(signal.SIGUSR2, stop)
enter = forking._Calls.enter
def interrupted(calls):
    enter(calls)
    signal.raise_signal(signal.SIGUSR2)  # between entering and what follows
forking._Calls.enter = interrupted
def run():
    try:
        with forking.without_fork():
            pass
    except Stop:
        pass
run()
forking._Calls.enter = enter
thread = threading.Thread(target=lambda: forking._calls.enter())  # and ends without having left
thread.start()
thread.join()
begun = time.monotonic()
threading.Thread(target=fork).start()
while len(children) < 2:
    time.sleep(0.01)
waited = time.monotonic() - begun
sys.exit(any(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children) or waited > 4)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_waits_for_runs_and_they_for_it() -> None:
    assert subprocess.run([sys.executable, "-c", _FORKED_WITHIN_A_RUN], timeout=60, check=False).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_no_fork_waits_for_its_own_thread_or_for_calls_that_were_broken_off() -> None:
    assert subprocess.run([sys.executable, "-c", _FORKED_IN_A_HANDLER], timeout=60, check=False).returncode == 0
