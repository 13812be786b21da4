"""Threads that indexes share, the caller's among them: as many as usable processors, if FAISS may use so many."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from onoma.processors import usable_processors

Item = TypeVar("Item")
Result = TypeVar("Result")

_PROCESS = os.getpid()
"""That imported this; a forked one has another."""


def on_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The function of each item, in their order.

    Each thread takes the next item as soon as it is free; one that comes too late is not waited for. Within a call
    FAISS starts no threads, which would be more than there are cores.
    """
    todo = list(items)
    n_threads = min(len(todo), most_threads())
    if n_threads < 2:
        with own_threads():
            return [function(item) for item in todo]
    left, found = deque(enumerate(todo)), dict[int, Result]()

    def work() -> None:
        with single_thread():
            while left:
                try:
                    place, item = left.popleft()
                except IndexError:  # another thread was faster
                    return
                found[place] = function(item)

    helpers = [_helpers().submit(work) for _ in range(n_threads - 1)]
    try:
        work()
    finally:
        left.clear()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    return [found[place] for place in range(len(todo))]


def most_threads() -> int:
    """How many threads one call should use: FAISS does not know how much time a container has."""
    import faiss

    return min(int(faiss.omp_get_max_threads()), usable_processors())


@contextmanager
def _at_most(n_threads: int) -> Iterator[None]:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n_threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def single_thread() -> AbstractContextManager[None]:
    """FAISS starts no threads in this one."""
    return _at_most(1)


def own_threads() -> AbstractContextManager[None]:
    """FAISS starts threads of its own here, but in a process that was forked, which would wait for its parent's."""
    return _at_most(most_threads()) if os.getpid() == _PROCESS else single_thread()


@functools.cache
def _helpers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="onoma-indexes", max_workers=max(1, usable_processors() - 1))


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_helpers.cache_clear)
