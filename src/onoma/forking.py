"""What threads hold where a process is forked: in the new process they are not, and nobody gives it back."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock for threads that take turns; a process that was forked has a new one: whose turn it was is not there."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _turns.add(self)


_turns: weakref.WeakSet[Turns] = weakref.WeakSet()


_LONGEST_WAIT = 5.0
"""Seconds that a fork waits for calls of other threads, which take a part of one; then it happens all the same."""


class _Calls:
    """Calls within which no other thread should fork; a fork waits for their end, and they for its.

    Who is at work is kept by thread, so that an exception of a signal's handler, which may come between any two steps,
    leaves at most an entry that the thread's next call takes away.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        self._changed = threading.Condition()
        self._at_work: set[int] = set()
        self._forking: int | None = None

    def enter(self) -> None:
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: self._forking in (None, me), _LONGEST_WAIT)
            self._at_work.add(me)

    def leave(self) -> None:
        with self._changed:
            self._at_work.discard(threading.get_ident())
            self._changed.notify_all()

    def begin_fork(self) -> None:
        me, until = threading.get_ident(), time.monotonic() + _LONGEST_WAIT
        with self._changed:
            self._changed.wait_for(lambda: self._forking in (None, me), _LONGEST_WAIT)
            self._forking = me
            self._changed.wait_for(lambda: not self._others(me), max(0.0, until - time.monotonic()))

    def end_fork(self) -> None:
        with self._changed:
            self._forking = None
            self._changed.notify_all()

    def _others(self, me: int) -> set[int]:
        """Threads at work, but for this one, which may fork in a signal's handler, and those that have ended."""
        there = {thread.ident for thread in threading.enumerate()}
        return {one for one in self._at_work if one != me and one in there}


_calls = _Calls()


@contextmanager
def without_fork() -> Iterator[None]:
    """No other thread forks this process within: it waits, for some seconds at most.

    For native libraries with locks of their own. Nothing within may wait for a thread that forks. While a fork waits,
    Ctrl-C is lost: Python has no use for what is raised before a fork.
    """
    try:
        _calls.enter()
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
