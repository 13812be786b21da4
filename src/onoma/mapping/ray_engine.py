"""Linking on a Ray cluster, by Ray Data: the same tasks, and so the same files, as in processes of this machine.

The folder of the output and that of the linker must be seen by all nodes under the same path.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onoma.errors import ConfigError, OnomaError, UnavailableError, missing_extra
from onoma.linking import Linker
from onoma.mapping.answers import link_task
from onoma.mapping.process_pool import KEPT
from onoma.mapping.work_folder import WorkFolder
from onoma.mapping.worker_process import open_linker

_PLACE = re.compile(r"(?:ray://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^/:\[\]]+):(?P<port>\d{1,5})", re.ASCII)
_NO_PLACES = ("", "auto", "local")
"""Addresses for which Ray looks itself, or starts a cluster."""
_SECONDS_TO_ANSWER = 10
_NOT_FOUND = (ModuleNotFoundError.__name__, ImportError.__name__)


class TaskLinker:
    """What an actor of the cluster does.

    An error that says what is wrong is an answer: of one that is raised Ray shows its own tracebacks, and little else.

    Args:
        linker: Its folder.
        work: The work's folder.
    """

    def __init__(self, linker: str, work: str) -> None:
        self._work = WorkFolder(Path(work))
        self._linker: Linker | str
        try:
            with _one_processor():
                self._linker = open_linker(linker, self._work)
        except (OnomaError, OSError) as error:
            self._linker = _said_here(error)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Work on the task of a row; says how many mentions it had, or what is wrong (``error``, else empty)."""
        if isinstance(self._linker, str):
            return {"mentions": 0, "error": self._linker}
        try:
            return {"mentions": link_task(self._linker, self._work, int(row["task"])), "error": ""}
        except (OnomaError, OSError) as error:
            return {"mentions": 0, "error": _said_here(error)}


def _said_here(error: Exception) -> str:
    return f"{error} (The worker on {socket.gethostname()} said so.)"


@contextlib.contextmanager
def _one_processor() -> Iterator[None]:
    """Let libraries see one processor while they decide on their threads: that is what an actor was given."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(usable)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)


def check_ray(address: str | None) -> None:
    """Refuse to work without Ray, or without the cluster.

    Args:
        address: As of `link_on_ray`.

    Raises:
        ConfigError: this is no address of a cluster.
        UnavailableError: Ray is not installed, or nothing listens there, for which Ray itself tries for minutes.
    """
    if find_spec("ray") is None:
        raise missing_extra("ray", "ray", "Linking on a cluster (--engine ray)")
    import ray

    if not ray.is_initialized():
        _check_reachable(address or os.environ.get("RAY_ADDRESS", ""))


def _check_reachable(address: str) -> None:
    place = _PLACE.fullmatch(address)
    if place is None:
        if address not in _NO_PLACES and "://" not in address:  # other schemes are for Ray to know
            raise ConfigError(f"'{address}' is no address of a Ray cluster: HOST:PORT, ray://HOST:PORT, auto or local.")
        return
    try:
        socket.create_connection((place["host"].strip("[]"), int(place["port"])), timeout=_SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise UnavailableError(
            f"there is no Ray cluster at {address} ({error}). Start one (ray start --head), or leave the address out: "
            "then one is started on this machine."
        ) from None


def link_on_ray(
    linker: Path,
    work: WorkFolder,
    tasks: Sequence[int],
    *,
    n_workers: int | None,
    address: str | None,
    progress: Callable[[int], object],
) -> None:
    """Work on tasks on a cluster. A worker that dies is replaced and its task given to another.

    Args:
        linker: Its folder.
        work: Where mentions lie and answers go.
        tasks: Their numbers.
        n_workers: Actors, of one processor each. Unset: as many as the cluster has processors.
        address: Of the cluster. Unset: the one that this process is connected to, or that ``RAY_ADDRESS`` names, or a
            new one on this machine, also if there is one already ("auto" takes that).
        progress: Called with how many mentions were linked since the last call.

    Raises:
        ConfigError: this is no address of a cluster.
        UnavailableError: Ray is not installed, or the cluster cannot be reached or gives up.

    Warns:
        RuntimeWarning: no processor of the cluster is free.
    """
    check_ray(address)
    import ray
    import ray.data

    is_ours = not ray.is_initialized()
    try:
        if is_ours:
            # Unset Ray takes a cluster that was started on this machine, and waits for ever if that is no more.
            address = address or os.environ.get("RAY_ADDRESS") or "local"
            with _keeping_handlers():
                ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
        if n_workers is None:
            n_workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        if ray.available_resources().get("CPU", 0) < 1:  # Ray waits for ever, without a word
            warnings.warn(
                "No processor of the Ray cluster is free: the work waits until one is. (ray status says what the "
                "cluster has, and who uses it.)",
                RuntimeWarning,
                stacklevel=2,
            )
        # Progress is ours to show.
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        ray.data.DataContext.get_current().enable_progress_bars = False
        rows = ray.data.from_items([{"task": task} for task in tasks], override_num_blocks=len(tasks))
        linked = rows.map(
            TaskLinker,
            fn_constructor_args=(str(linker.resolve()), str(work.folder.resolve())),
            concurrency=min(n_workers, len(tasks)),
            num_cpus=1,
        )
        for row in linked.iter_rows():
            if row["error"]:
                raise UnavailableError(f"{row['error']} {KEPT}")
            progress(row["mentions"])
    except ConnectionError as error:
        raise UnavailableError(
            f"Ray could not connect to the cluster ({_last_line(error)}). If it asks for a token, as clusters do that "
            "were started by Ray 2.59 or later, set RAY_AUTH_MODE=token, and have the token in ~/.ray/auth_token."
        ) from error
    except (ray.exceptions.RayError, ValueError) as error:
        said = _last_line(error)
        # An actor that cannot even be made tells what it lacks by the traceback alone.
        first = "install the same Onoma on all nodes, and " if said.startswith(_NOT_FOUND) else ""
        raise UnavailableError(
            f"Ray could not do the work ({said}). What was linked so far is kept: {first}run the command again to go "
            "on."
        ) from error
    finally:
        if is_ours:
            ray.shutdown()


@contextlib.contextmanager
def _keeping_handlers() -> Iterator[None]:
    """Ray takes over what is done when the process is asked to end, also of a program that uses Onoma."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python sets handlers in the main thread alone, and so does Ray
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if handler is not None:  # else it was not set from Python
                signal.signal(number, handler)


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]
