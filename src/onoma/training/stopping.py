"""Stopping a run between two steps, when a person (Ctrl-C, a terminal that is closed) or a batch system asks for it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, ParamSpec

from onoma.training.distributed import world_size

P = ParamSpec("P")
_MOMENT = 0.5
"""Seconds in which the signal of a terminal that is closed comes after its first error."""
_HANG_UP = getattr(signal, "SIGHUP", None)
"""Of a terminal that is closed; Windows has none."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([] if _HANG_UP is None else [_HANG_UP]))


class StoppedError(Exception):
    """Work between two steps is left undone, as the run was asked to stop; `onoma.training.loop` leaves with it."""


class StopRequest:
    """Notes the first SIGINT, SIGTERM or SIGHUP while it is entered; then both of the first do what they did before.

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
                # SIGINT is ignored in what a shell runs in the background.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    # None, where what was there is not Python's, cannot be given back.
                    self._before[number] = signal.signal(number, self._note) or signal.SIG_DFL
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Called where what is under way can be left undone.

        Raises:
            StoppedError: the run was asked to stop.
        """
        if self.signal is not None:
            raise StoppedError

    def tolerating(self, callback: Callable[P, None]) -> Callable[P, None]:
        """The callback, which may fail to write once the run was asked to stop: what it writes to may be gone.

        A terminal that is closed fails at once, and the run still has its checkpoint to write.
        """

        def call(*told: P.args, **named: P.kwargs) -> None:
            try:
                callback(*told, **named)
            except OSError:
                if self.signal is None:
                    time.sleep(_MOMENT)
                if self.signal is None:
                    raise

        return call

    def as_error(self) -> BaseException:
        """What to leave with: as Python does on SIGINT; on others with the status that shells give them."""
        if self.signal is None or self.signal == signal.SIGINT:
            return KeyboardInterrupt()
        return SystemExit(128 + self.signal)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.signal = number
        for each, handler in self._before.items():
            # A shell passes the end of its terminal on, and then the system tells of it too, a moment later.
            signal.signal(each, signal.SIG_IGN if each == _HANG_UP else handler)
