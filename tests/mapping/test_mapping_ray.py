"""The same work on a Ray cluster: two nodes on this machine, one of whose workers is killed."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interrupted import processes
from mapping_data import make_linker_of, rows_of, write_table

from onoma._version import __version__
from onoma.errors import ConfigError, UnavailableError
from onoma.mapping import map_table
from onoma.mapping.ray_engine import TaskLinker
from onoma.mapping.work_folder import WorkFolder

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="needs the package ray (pip install 'onoma[ray]')")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of two processors each."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    made.add_node(num_cpus=2)
    made.wait_for_nodes()
    yield made
    made.shutdown()


def begun(linker: Path, source: Path, output: Path) -> WorkFolder:
    """Work that was read, and no task of it done."""

    def interrupt(_done: int, _total: int | None, what: str) -> None:
        if what == "linking":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_table(linker, source, output, column="mention", progress=interrupt)
    return WorkFolder.beside(output)


def test_what_is_wrong_is_an_answer_of_an_actor(linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = begun(linker, write_table(tmp_path / "x.csv", rows_of(20)), tmp_path / "y.csv")
    task = {"task": 0}
    gone = TaskLinker(str(tmp_path / "gone"), str(work.folder))(task)["error"]
    assert gone.startswith(f"{tmp_path}/gone: ")
    assert f"worker on {socket.gethostname()} said so" in gone, "only some nodes may lack it"
    not_seen = TaskLinker(str(linker), str(tmp_path / "elsewhere"))(task)
    assert re.search(r"elsewhere is not seen from .*Write the output to a place that all nodes see", not_seen["error"])
    other = make_linker_of(tmp_path / "other", {"C:1": ["old fever"]})
    assert "is not the linker that this work was begun with" in TaskLinker(str(other), str(work.folder))(task)["error"]
    actor = TaskLinker(str(linker), str(work.folder))
    (work.folder / "mentions").rename(tmp_path / "aside")
    assert "000000.keys.npy is missing" in actor(task)["error"]
    assert actor(task)["mentions"] == 0
    (tmp_path / "aside").rename(work.folder / "mentions")
    assert actor(task)["error"] == ""
    assert actor(task)["mentions"] > 0
    with monkeypatch.context() as patch:
        patch.setattr("onoma.mapping.worker_process.__version__", "0.0.9")
        other_version = TaskLinker(str(linker), str(work.folder))(task)["error"]
    assert f"On {socket.gethostname()} Onoma is 0.0.9, and where the command runs {__version__}." in other_version
    settings = work.folder / "settings.json"
    settings.write_text('{"of another version": 1}', encoding="utf-8")
    assert "and where the command runs another version" in TaskLinker(str(linker), str(work.folder))(task)["error"]


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray and what it imports warn of themselves
@pytest.mark.usefixtures("small_parts")
def test_two_nodes_and_a_killed_worker_give_the_same_bytes(cluster: Any, linker: Path, tmp_path: Path) -> None:
    import ray

    source = write_table(tmp_path / "x.csv", rows_of(300, n_different=200))
    local = map_table(linker, source, tmp_path / "local.parquet", column="mention", top_k=2)
    killed: list[int] = []
    asked_to_end = signal.signal(signal.SIGTERM, lambda *_: None)
    handler = signal.getsignal(signal.SIGTERM)

    def kill_one(done: int, _total: int | None, what: str) -> None:
        if what == "linking" and done and not killed:
            killed.append(next(pid for pid, command in processes() if "TaskLinker" in command))
            os.kill(killed[0], signal.SIGKILL)

    on_ray = map_table(
        linker,
        source,
        tmp_path / "ray.parquet",
        column="mention",
        top_k=2,
        engine="ray",
        address=cluster.address,
        workers=3,
        progress=kill_one,
    )
    assert killed
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "local.parquet").read_bytes()
    assert (on_ray.n_rows, on_ray.n_mentions) == (local.n_rows, local.n_mentions)
    assert not ray.is_initialized()
    assert signal.signal(signal.SIGTERM, asked_to_end) is handler, "Ray sets its own, which leaves with another status"


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_without_a_free_processor_is_told(
    cluster: Any, linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(ray, "available_resources", dict)
    source = write_table(tmp_path / "x.csv", rows_of(3))
    with pytest.warns(RuntimeWarning, match="No processor of the Ray cluster is free: the work waits"):
        map_table(linker, source, tmp_path / "y.csv", column="mention", engine="ray", address=cluster.address)


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_nodes_without_onoma_are_told(
    cluster: Any, linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray.data.dataset import Dataset
    from ray.data.exceptions import UserCodeException

    def lacking(*_: object, **__: object) -> None:
        raise UserCodeException("a traceback\nModuleNotFoundError: No module named 'onoma'")

    monkeypatch.setattr(Dataset, "iter_rows", lacking)
    source = write_table(tmp_path / "x.csv", rows_of(3))
    with pytest.raises(UnavailableError, match="kept: install the same Onoma on all nodes, and run the command again"):
        map_table(linker, source, tmp_path / "y.csv", column="mention", engine="ray", address=cluster.address)


@needs_ray
def test_a_cluster_that_is_not_there_is_told_at_once(
    linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_table(tmp_path / "x.csv", rows_of(3))
    with socket.socket() as taken:  # a port at which nothing listens
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UnavailableError, match=f"there is no Ray cluster at {place}"):
            map_table(linker, source, tmp_path / "y.csv", column="mention", engine="ray", address=place)
        monkeypatch.setenv("RAY_ADDRESS", f"ray://{place}")
        with pytest.raises(UnavailableError, match=f"there is no Ray cluster at ray://{place}"):
            map_table(linker, source, tmp_path / "y.csv", column="mention", engine="ray")


@needs_ray
def test_what_is_no_address_is_refused_before_the_table_is_read(linker: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'nonsense' is no address of a Ray cluster: HOST:PORT"):
        map_table(linker, tmp_path / "x.csv", tmp_path / "y.csv", column="mention", engine="ray", address="nonsense")
    assert not list(tmp_path.iterdir())


def test_without_ray_the_extra_is_named(linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    source = write_table(tmp_path / "x.csv", rows_of(3))
    with pytest.raises(UnavailableError, match=r"pip install 'onoma\[ray\]'"):
        map_table(linker, source, tmp_path / "y.csv", column="mention", engine="ray")
