"""Processes that are forked while another thread encodes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_encoders import write_tiny

from onoma.encoders import export_encoder
from onoma.encoders.folders import ONNX_NAME

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
_FORKED_BESIDE_RUNS = """
import os, signal, sys, threading, numpy as np
from onoma.encoders import locate_encoder
from onoma.encoders.onnx_encoder import OnnxEncoder
signal.alarm(50)
encoder = OnnxEncoder(locate_encoder(sys.argv[1]), threads=3)
names = ["heart attack", "flu"]
expected = encoder.encode(names)
os.remove(sys.argv[2])  # as where another folder takes its place: what was opened is what is run
is_over = threading.Event()
def run():
    while not is_over.is_set():
        encoder.encode(names)
threads = [threading.Thread(target=run) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(8):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        # They leave as programs do, taking down what was the parent's too; some never encode.
        if number == 3:
            del encoder
        if number > 4:
            sys.exit(0 if np.allclose(encoder.encode(names), expected, atol=1e-5) else 1)
        sys.exit(0)
    if os.waitpid(child, 0)[1]:
        is_over.set()
        sys.exit(1)
is_over.set()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_waits_for_runs_and_they_for_it() -> None:
    assert subprocess.run([sys.executable, "-c", _FORKED_WITHIN_A_RUN], timeout=60, check=False).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_no_fork_waits_for_its_own_thread_or_for_calls_that_were_broken_off() -> None:
    assert subprocess.run([sys.executable, "-c", _FORKED_IN_A_HANDLER], timeout=60, check=False).returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_processes_that_are_forked_while_other_threads_encode_do_so_too(tmp_path: Path) -> None:
    export_encoder(write_tiny(tmp_path / "base", "bert"), tmp_path / "own")
    command = [sys.executable, "-c", _FORKED_BESIDE_RUNS, str(tmp_path / "own"), str(tmp_path / "own" / ONNX_NAME)]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
