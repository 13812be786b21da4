"""Threads that indexes share: as many as FAISS may use, the caller's among them."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_PROCESS = os.getpid()
"""That imported this; a forked one has another."""


def on_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The function of each item, in their order.

    Each thread takes the next item as soon as it is free; one that comes too late is not waited for. Within a call
    FAISS starts no threads, which would be more than there are cores.
    """
    import faiss

    todo = list(items)
    n_threads = min(len(todo), faiss.omp_get_max_threads())
    if n_threads < 2:
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


@contextmanager
def single_thread() -> Iterator[None]:
    """FAISS starts no threads in this one."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def own_threads() -> AbstractContextManager[None]:
    """FAISS starts threads of its own here, but in a process that was forked, which would wait for its parent's."""
    return nullcontext() if os.getpid() == _PROCESS else single_thread()


@functools.cache
def _helpers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="onoma-indexes", max_workers=max(1, (os.cpu_count() or 2) - 1))


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_helpers.cache_clear)
