"""How long the phases of a step take, without waiting for a GPU to tell."""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Iterator
from typing import Any

import torch

_READ_EVERY = 64
"""Phases on a GPU after which it is asked which are over."""


class PhaseClock:
    """Seconds by phase.

    A GPU is handed its work long before it does it; to wait at the end of each phase would keep it idle while the next
    one is prepared. So the GPU itself notes when it comes by the beginning and the end of a phase, and is asked later.
    What it waits for the CPU within a phase counts.

    Args:
        device: Where the work is done.
        phases: Their names.
    """

    def __init__(self, device: torch.device, *phases: str) -> None:
        self._device = device
        self._seconds = dict.fromkeys(phases, 0.0)
        self._passed: collections.deque[tuple[str, Any, Any]] = collections.deque()

    @contextlib.contextmanager
    def timing(self, phase: str) -> Iterator[None]:
        """Count what is done within to a phase."""
        if self._device.type != "cuda":
            started = time.perf_counter()
            yield
            self._seconds[phase] += time.perf_counter() - started
            return
        stream = torch.cuda.current_stream(self._device)
        begin, end = _event(), _event()
        begin.record(stream)
        yield
        end.record(stream)
        self._passed.append((phase, begin, end))
        if len(self._passed) >= _READ_EVERY:
            self._read()

    def seconds(self) -> dict[str, float]:
        """Spent on each phase so far; waits for the device."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            self._read()
        return dict(self._seconds)

    def reset(self) -> None:
        """Forget what was counted."""
        self._passed.clear()
        self._seconds = dict.fromkeys(self._seconds, 0.0)

    def _read(self) -> None:
        while self._passed and self._passed[0][2].query():
            phase, begin, end = self._passed.popleft()
            self._seconds[phase] += begin.elapsed_time(end) / 1000


def _event() -> Any:
    """Any: torch does not type what its events do."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
