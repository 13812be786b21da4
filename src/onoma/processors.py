"""How many processors this process may use, which in a container are fewer than the machine has, and what they are."""

from __future__ import annotations

import functools
import math
import os
import platform
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("sys/fs/cgroup")


def usable_processors() -> int:
    """The processors that this process is bound to, or fewer: at least 1.

    No more than its control group has time for (a container's ``--cpus``, Kubernetes' limit), rounded up, and no more
    than the variable ``OMP_NUM_THREADS`` says.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, cgroup_limit(), _wished())))


def machine() -> dict[str, str | int]:
    """What figures were measured on, to be written beside them: processor, system, usable processors."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    processor = next(named, "") or platform.processor() or platform.machine()
    return {"processor": processor, "system": platform.platform(), "usable_processors": usable_processors()}


def _wished() -> float:
    """Of several numbers, of nested loops, the first."""
    wished = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(wished) if wished.isdecimal() and len(wished) < 20 and int(wished) > 0 else math.inf


@functools.cache
def cgroup_limit(root: Path = Path("/")) -> float:
    """Processors' time that this process's control group, or one around it, may take; infinite if nobody says.

    It is read once.

    Args:
        root: Where ``proc`` and ``sys`` are.

    Source:
        The Linux kernel's admin guide: ``cpu.max`` of cgroup-v2; ``cpu.cfs_quota_us`` and ``cpu.cfs_period_us`` of v1.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # no Linux
        return math.inf
    limits = [math.inf]
    for line in lines:
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            limits += _limits(root / _CGROUPS, group, "cpu.max")
        elif "cpu" in controllers.split(","):
            for name in {controllers, "cpu"}:
                limits += _limits(root / _CGROUPS / name, group, "cpu.cfs_quota_us", "cpu.cfs_period_us")
    return min(limits)


def _limits(mount: Path, group: str, *names: str) -> Iterator[float]:
    """Of the group and those around it. In a container the mount may be the group's own, and the group lie outside."""
    parts = [] if ".." in group.split("/") else [part for part in group.split("/") if part]
    for depth in range(len(parts), -1, -1):
        folder = mount.joinpath(*parts[:depth])
        try:
            numbers = " ".join((folder / name).read_text(encoding="ascii") for name in names).split()
        except (OSError, ValueError):
            continue
        if len(numbers) == 2 and all(map(str.isdecimal, numbers)) and int(numbers[1]):  # else "max", or -1
            yield int(numbers[0]) / int(numbers[1])
