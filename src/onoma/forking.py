"""What threads hold where a process is forked: in the new process they are not, and nobody gives it back."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock for threads that take turns; a process that was forked has a new one: whose turn it was is not there."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _turns.add(self)


_turns: weakref.WeakSet[Turns] = weakref.WeakSet()


class _Calls:
    """Calls within which no other thread may fork; a fork waits for their end, and they for its."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        self._changed = threading.Condition()
        self._n_going_on, self._is_forking = 0, False

    def enter(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking)
            self._n_going_on += 1

    def leave(self) -> None:
        with self._changed:
            self._n_going_on -= 1
            self._changed.notify_all()

    def begin_fork(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking)
            self._is_forking = True
            self._changed.wait_for(lambda: not self._n_going_on)

    def end_fork(self) -> None:
        with self._changed:
            self._is_forking = False
            self._changed.notify_all()


_calls = _Calls()


@contextmanager
def without_fork() -> Iterator[None]:
    """No other thread forks this process within: it waits.

    For native libraries with locks of their own. Nothing within may fork, or wait for a thread that does.
    """
    _calls.enter()
    try:
        yield
    finally:
        _calls.leave()


def _begin_anew() -> None:
    """In a process that was forked."""
    _calls.begin_anew()
    for turns in list(_turns):
        turns.lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_calls.begin_fork, after_in_parent=_calls.end_fork, after_in_child=_begin_anew)
