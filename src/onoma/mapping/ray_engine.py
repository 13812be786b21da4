"""Linking on a Ray cluster, by Ray Data: the same tasks, and so the same files, as in processes of this machine.

The folder of the output and that of the linker must be seen by all nodes under the same path.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onoma.errors import ConfigError, UnavailableError, missing_extra
from onoma.mapping.answers import link_task
from onoma.mapping.work import WorkFolder
from onoma.mapping.worker import open_linker
from onoma.mapping.workers import KEPT

_PLACE = re.compile(r"(?:ray://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^/:\[\]]+):(?P<port>\d{1,5})", re.ASCII)
_NO_PLACES = ("", "auto", "local")
"""Addresses for which Ray looks itself, or starts a cluster."""
_SECONDS_TO_ANSWER = 10
_OWN_ERROR = re.compile(r"\bonoma\.errors\.\w+: (?P<words>.+)")
"""In the last line of a traceback."""


class TaskLinker:
    """What an actor of the cluster does.

    Args:
        linker: Its folder.
        work: The work's folder.
    """

    def __init__(self, linker: str, work: str) -> None:
        self._work = WorkFolder(Path(work))
        with _one_processor():
            self._linker = open_linker(linker, self._work)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Work on the task of a row; says how many mentions it had."""
        return {"mentions": link_task(self._linker, self._work, int(row["task"]))}


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
            new one on this machine.
        progress: Called with how many mentions were linked since the last call.

    Raises:
        ConfigError: this is no address of a cluster.
        UnavailableError: Ray is not installed, or the cluster cannot be reached or gives up.
    """
    check_ray(address)
    import ray
    import ray.data

    is_ours = not ray.is_initialized()
    try:
        if is_ours:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
        if n_workers is None:
            n_workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
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
            progress(row["mentions"])
    except (ray.exceptions.RayError, ConnectionError, ValueError) as error:
        said = str(error).strip().splitlines()[-1]
        if (own := _OWN_ERROR.search(said)) is not None:
            raise UnavailableError(f"{own['words']} (A worker of the cluster said so.) {KEPT}") from error
        raise UnavailableError(
            f"Ray could not do the work ({said}). What was linked so far is kept: run the command again to go on."
        ) from error
    finally:
        if is_ours:
            ray.shutdown()
