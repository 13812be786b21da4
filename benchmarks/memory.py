"""What memory a process takes, as Linux counts it; nothing but Python is needed for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS = Path("/proc/self/status")
_NOW = {"own": "RssAnon", "of_files": "RssFile", "resident": "VmRSS"}
_SECONDS_BETWEEN_LOOKS = 0.05


def _mib() -> dict[str, float]:
    """MiB by the system's names."""
    lines = (line.split() for line in _STATUS.read_text(encoding="ascii").splitlines())
    return {words[0].rstrip(":"): int(words[1]) / 1024 for words in lines if words[-1] == "kB"}


def peak_mib() -> float:
    """Largest resident set of this process so far; NaN where the system does not say."""
    # Not getrusage: of a process just started that can be its parent's.
    return _mib()["VmHWM"] if _STATUS.exists() else float("nan")


def memory_mib() -> dict[str, float]:
    """Memory of this process now: its own, pages of mapped files, and both together."""
    now = _mib()
    return {name: round(now[field], 1) for name, field in _NOW.items()}


@contextmanager
def watched_memory() -> Iterator[dict[str, float]]:
    """The most of each since then, filled in at the end."""
    most, is_over = memory_mib(), threading.Event()

    def look() -> None:
        while True:
            now = memory_mib()
            most.update({name: max(most[name], now[name]) for name in most})
            if is_over.wait(_SECONDS_BETWEEN_LOOKS):
                return

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        is_over.set()
        watcher.join()
