"""Processors that a process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from onoma.processors import cgroup_limit, usable_processors


def machine(root: Path, groups: str, **files: str) -> Path:
    """What a kernel says: the groups of this process, and files of ``sys/fs/cgroup`` ("__" for "/")."""
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "self" / "cgroup").write_text(groups)
    for name, text in files.items():
        file = root / "sys" / "fs" / "cgroup" / name.replace("__", "/").replace("_DOT_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/\n", {"cpu_DOT_max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu_DOT_max": "max 100000\n"}, math.inf),
        ("0::/\n", {}, math.inf),
        # the narrowest of those around it
        ("0::/pods/a\n", {"pods__a__cpu_DOT_max": "max 100000\n", "pods__cpu_DOT_max": "400000 100000\n"}, 4),
        ("0::/pods/a\n", {"pods__a__cpu_DOT_max": "50000 100000\n", "pods__cpu_DOT_max": "400000 100000\n"}, 0.5),
        # a container that sees its own group at the top
        ("0::/../../docker/a\n", {"cpu_DOT_max": "200000 100000", "docker__a__cpu_DOT_max": "1000 100000"}, 2),
        ("4:cpu,cpuacct:/x\n", {"cpu,cpuacct__x__cpu_DOT_cfs_quota_us": "300000\n"}, math.inf),
        ("1:cpu:/\n0::/\n", {"cpu__cpu_DOT_cfs_quota_us": "-1\n", "cpu__cpu_DOT_cfs_period_us": "100000\n"}, math.inf),
        (
            "4:cpu,cpuacct:/docker/a\n",
            {"cpu__cpu_DOT_cfs_quota_us": "250000\n", "cpu__cpu_DOT_cfs_period_us": "100000\n"},
            2.5,
        ),
        ("nonsense\n", {"cpu_DOT_max": "x"}, math.inf),
        ("0::/\n", {"cpu_DOT_max": "100000 0\n"}, math.inf),
    ],
)
def test_time_that_a_control_group_may_take(groups: str, files: dict[str, str], limit: float, tmp_path: Path) -> None:
    assert cgroup_limit(machine(tmp_path, groups, **files)) == limit


def test_a_system_without_control_groups(tmp_path: Path) -> None:
    assert cgroup_limit(tmp_path) == math.inf


@pytest.mark.parametrize(
    ("limit", "said", "usable"),
    [
        (math.inf, None, 8),
        (1.5, None, 2),
        (0.1, None, 1),
        (64, None, 8),
        (math.inf, "3", 3),
        (2, "3", 2),
        (math.inf, "4,2", 4),
        (math.inf, "0", 8),
        (math.inf, "many", 8),
        (math.inf, "9" * 5000, 8),
        (math.inf, "", 8),
    ],
)
def test_the_least_of_all_limits(limit: float, said: str | None, usable: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr("onoma.processors.cgroup_limit", lambda: limit)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert usable_processors() == usable


def test_without_bound_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr("onoma.processors.cgroup_limit", lambda: math.inf)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_processors() == 1
