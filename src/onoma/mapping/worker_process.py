"""A process that links: reads numbers of tasks, a line each, and answers each when its files are there."""

from __future__ import annotations

import json
import os
import queue
import socket
import sys
import threading
from pathlib import Path

from onoma._version import __version__
from onoma.errors import MismatchError, OnomaError, UnavailableError
from onoma.linking import Linker
from onoma.mapping.answers import link_task
from onoma.mapping.work_folder import WorkFolder

ONOMA_ERROR = 3
"""Status of a process that ends with an error that says all there is to say."""
SYSTEM_ERROR = 4
"""Of one that ends with an error of the system; it says number, words and file, as a list in JSON."""


def open_linker(folder: str | Path, work: WorkFolder) -> Linker:
    """Open the linker that the work was begun with, ready to prepare mentions and to answer as the work says.

    Raises:
        UnavailableError: the work's folder is not seen from here.
        MismatchError: it is another one, or Onoma here is of another version than where the work was begun.
    """
    try:
        settings = work.settings
    except MismatchError:  # other settings, which another version has
        raise _other_version("another version") from None
    if settings is None:
        raise UnavailableError(
            f"{work.folder} is not seen from {socket.gethostname()}: it was removed meanwhile, or not all nodes see "
            "it. Write the output to a place that all nodes see under the same path."
        )
    if settings.onoma != __version__:  # its answers can be others
        raise _other_version(settings.onoma)
    linker = Linker.open(folder)
    if linker.fingerprint != settings.linker:
        raise MismatchError(
            f"{folder} is not the linker that this work was begun with: it was replaced meanwhile. Put that one back, "
            "or begin anew (--force, overwrite=True)."
        )
    return work.asking.applied(linker).preparing(work.preparation)


def _other_version(begun_with: str) -> MismatchError:
    return MismatchError(
        f"On {socket.gethostname()} Onoma is {__version__}, and where the command runs {begun_with}. Install the same "
        "version in all places, and run the command again."
    )


def work(folder: str, linker: str) -> None:
    """Work on tasks until who gives them is gone."""
    work_folder = WorkFolder(Path(folder))
    tasks: queue.Queue[int] = queue.Queue()
    threading.Thread(target=_hear, args=(tasks,), daemon=True).start()
    # What a library prints must not be taken for an answer.
    answers, sys.stdout = sys.stdout, sys.stderr
    try:
        opened = open_linker(linker, work_folder)
        while True:
            n_mentions = link_task(opened, work_folder, tasks.get())
            answers.write(json.dumps({"mentions": n_mentions}) + "\n")
            answers.flush()
    except OnomaError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(ONOMA_ERROR)
    except OSError as error:
        place = None if error.filename is None else str(error.filename)
        sys.stderr.write(json.dumps([error.errno, error.strerror or str(error), place]) + "\n")
        sys.exit(SYSTEM_ERROR)


def _hear(tasks: queue.Queue[int]) -> None:
    for line in sys.stdin:
        tasks.put(int(line))
    os._exit(0)  # also in the middle of a task: nobody waits for it, and files appear only when they are whole
