from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from onoma.encoders.memory import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()

def work():
    blocks = [np.ones(3_000_000) for _ in range(8)]  # 24 MB each: taken, filled, freed

for _ in range(3):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS, how], check=True, capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_freed_memory_is_taken_again_without_asking_the_system() -> None:
    assert faults("keep") < 0.1 * faults("return")


RESIDENT = """
import numpy as np
from onoma.encoders.memory import keep_freed_memory, return_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

keep_freed_memory()
blocks = [np.ones(3_000_000) for _ in range(8)]  # 192 MB
end = np.ones(1)  # what lies behind them stays
del blocks
kept = resident()
assert return_freed_memory()
print(kept - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_kept_memory_is_given_back_when_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", RESIDENT], check=True, capture_output=True, text=True)
    assert int(done.stdout) > 150e6
