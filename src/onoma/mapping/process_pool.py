"""Linking in several processes of this machine.

Each worker is a Python process of its own that opens the linker's folder (all share one memory map), is told the number
of a task on its standard input, and answers on its standard output when the task's files are there. When this process
dies, however, its workers read the end of their input and leave, whatever they are doing.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from onoma.errors import UnavailableError
from onoma.indexes.pgvector_folder import DATABASE_VARIABLE
from onoma.interrupts import end_waits
from onoma.mapping.work_folder import WorkFolder
from onoma.mapping.worker_process import ONOMA_ERROR, SYSTEM_ERROR
from onoma.processors import usable_processors

_START = """
import os, sys
if hasattr(os, "sched_setaffinity") and {processors!r}:
    os.sched_setaffinity(0, {processors!r})  # before the libraries count their threads by it
sys.path[:] = {path!r}
from onoma.mapping.worker_process import work
work({folder!r}, {linker!r})
"""
_ERROR_BYTES = 1 << 15  # a path may be long
KEPT = "What was linked so far is kept, for the same linker and settings."
"""To be told with an error of a worker, which may be that the linker has become another."""


def link_in_processes(
    linker: Path,
    work: WorkFolder,
    tasks: Sequence[int],
    *,
    n_workers: int,
    database: str | None = None,
    progress: Callable[[int], object],
) -> None:
    """Work on tasks in several processes.

    Args:
        linker: Its folder.
        work: Where mentions lie and answers go.
        tasks: Their numbers.
        n_workers: Processes; no more are started than there are tasks.
        database: Of a linker with its vectors in PostgreSQL; unset: what is in the environment.
        progress: Called with how many mentions were linked since the last call.

    Raises:
        UnavailableError: a worker cannot be started, or died. What was linked stays; the next run goes on from there.
        OSError: of a worker, as where the disk is full.
    """
    waiting = deque(tasks)
    heard: queue.Queue[tuple[_Worker, str]] = queue.Queue()
    n_started = min(n_workers, len(tasks))
    workers: list[_Worker] = []
    try:
        for number in range(n_started):
            processors = _share(number, n_started)
            # Not among the arguments, which everybody on the machine can see.
            variables = {} if database is None else {DATABASE_VARIABLE: database}
            if not processors:
                variables |= _threads(n_started)
            workers.append(_Worker(linker, work, processors=processors, variables=variables, heard=heard))
        at_work = 0
        for worker in workers:
            worker.give(waiting.popleft())
            at_work += 1
        while at_work:
            end_waits()
            worker, line = heard.get()
            if not line:
                status, said = worker.last_words()
                if status == ONOMA_ERROR:
                    raise UnavailableError(f"{said} (A worker process said so.) {KEPT}")
                if status == SYSTEM_ERROR:
                    raise OSError(*json.loads(said))
                how = f"signal {-status}" if status < 0 else f"status {status}"
                raise UnavailableError(
                    f"A worker process died ({how}{said and f': {said}'}). What was linked so far is kept: mend that "
                    "and run the command again to go on, with fewer workers if memory was short."
                )
            progress(json.loads(line)["mentions"])
            at_work -= 1
            if waiting:
                worker.give(waiting.popleft())
                at_work += 1
    finally:
        for worker in workers:
            worker.end()


def _share(number: int, n_workers: int) -> list[int]:
    """Processors of one worker, so that the threads of all do not stand in each other's way."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    bound = sorted(os.sched_getaffinity(0))
    return bound[number % len(bound) :: n_workers][: math.ceil(usable_processors() / n_workers)]


def _threads(n_workers: int) -> dict[str, str]:
    """The same by variables that libraries read, where the system binds no process to processors, as macOS."""
    threads = str(math.ceil(usable_processors() / n_workers))
    return {"OMP_NUM_THREADS": threads, "POLARS_MAX_THREADS": os.environ.get("POLARS_MAX_THREADS", threads)}


class _Worker:
    """A process that links."""

    def __init__(
        self,
        linker: Path,
        work: WorkFolder,
        *,
        processors: list[int],
        variables: Mapping[str, str],
        heard: queue.Queue[tuple[_Worker, str]],
    ) -> None:
        # Beside the output, as a folder for temporary files need not be there. Closed by end().
        self._errors: IO[bytes] = tempfile.TemporaryFile(dir=work.folder.parent)  # noqa: SIM115
        code = _START.format(
            processors=processors, path=sys.path, folder=str(work.folder.resolve()), linker=str(linker.resolve())
        )
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
                env={**os.environ, **variables},
                start_new_session=True,  # an interrupt from the keyboard is for us to handle
            )
        except OSError as error:
            self._errors.close()
            raise UnavailableError(
                f"A worker process cannot be started ({error.strerror or error}). Run the command again, with fewer "
                "workers."
            ) from None
        self._heard = heard
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._heard.put((self, line))
        self._heard.put((self, ""))

    def give(self, task: int) -> None:
        """Tell it to work on a task."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died; `_listen` says so
            self._process.stdin.write(f"{task}\n")
            self._process.stdin.flush()

    def last_words(self) -> tuple[int, str]:
        """The status that it ended with, and the last line that it said."""
        code = self._process.wait()
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(self._errors.tell() - _ERROR_BYTES, 0))
        said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return code, said[-1] if said else ""

    def end(self) -> None:
        """End it, whatever it is doing: files appear only when they are whole."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._errors.close()
