"""Stopping a run between two steps, when a person (Ctrl-C, a terminal that is closed) or a batch system asks for it."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from onoma.training.distributed import world_size

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Notes the first SIGINT, SIGTERM or SIGHUP while it is entered; a second one does what it did before.

    Several processes of a run would stop at different steps, so there, and outside the main thread, signals do what
    they always do; so do those that are ignored, as by nohup.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        """Which came, if one did."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        if world_size() == 1 and threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if (
                    signal.getsignal(number) is not signal.SIG_IGN
                ):  # as SIGINT is for what a shell runs in the background
                    # None, where what was there is not Python's, cannot be given back.
                    self._before[number] = signal.signal(number, self._note) or signal.SIG_DFL
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def as_error(self) -> BaseException:
        """What to leave with: as Python does on SIGINT; on others with the status that shells give them."""
        if self.signal is None or self.signal == signal.SIGINT:
            return KeyboardInterrupt()
        return SystemExit(128 + self.signal)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.signal = number
        for each, handler in self._before.items():
            signal.signal(each, handler)
