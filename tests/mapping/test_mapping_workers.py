"""Several processes give what one gives; one that dies is noticed."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from mapping_data import make_linker_of, rows_of, write_table
from test_mapping_resuming import start

from onoma.errors import UnavailableError
from onoma.mapping import map_table, process_pool
from onoma.mapping.answers import link_task
from onoma.mapping.keyed_texts import KeyedTexts
from onoma.mapping.work_folder import WorkFolder
from onoma.mapping.worker_process import open_linker

POPEN = subprocess.Popen

pytestmark = pytest.mark.usefixtures("small_parts")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("table") / "x.csv", rows_of(40, n_different=30))


def test_same_bytes_as_one_process(linker: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "there is no folder for temporary files"))
    done: list[int] = []
    one = map_table(linker, source, tmp_path / "one.parquet", column="mention", top_k=2)
    two = map_table(
        linker,
        source,
        tmp_path / "two.parquet",
        column="mention",
        top_k=2,
        workers=2,
        progress=lambda n_done, _total, what: done.append(n_done) if what == "linking" else None,
    )
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert (one.n_rows, one.n_mentions, one.n_linked) == (two.n_rows, two.n_mentions, two.n_linked)
    assert done == sorted(done)
    assert done[-1] == two.n_mentions


def test_ctrl_c_ends_the_wait_for_workers(
    linker: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work: list[bool] = []

    def end(worker: process_pool._Worker) -> None:
        at_work.append(worker._process.poll() is None)
        end_worker(worker)

    end_worker = process_pool._Worker.end
    monkeypatch.setattr(process_pool._Worker, "end", end)
    monkeypatch.setattr(process_pool, "_START", "import time; time.sleep(10)")
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    signal.siginterrupt(signal.SIGINT, False)  # as polars leaves it where it is loaded
    interrupt = threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            map_table(
                linker,
                source,
                tmp_path / "y.csv",
                column="mention",
                workers=2,
                progress=lambda _done, _total, what: interrupt.start() if what == "linking" else None,
            )
    finally:
        signal.signal(signal.SIGINT, former)
    assert at_work == [True, True]


def test_workers_share_the_processors_where_none_can_be_bound(
    linker: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[dict[str, str]] = []

    def start_worker(*arguments: Any, **options: Any) -> Any:
        started.append(options["env"])
        return POPEN(*arguments, **options)

    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("onoma.processors.cgroup_limit", lambda: float("inf"))
    monkeypatch.setattr(subprocess, "Popen", start_worker)
    map_table(linker, source, tmp_path / "y.csv", column="mention", workers=3)
    assert [variables["OMP_NUM_THREADS"] for variables in started] == ["3", "3", "3"]


def test_a_worker_that_is_killed_is_noticed_and_its_work_done_by_the_next_run(
    linker: Path, source: Path, tmp_path: Path
) -> None:
    map_table(linker, source, tmp_path / "z.csv", column="mention", top_k=2)
    status, said = start(linker, source, tmp_path / "y.csv", 2, "kill-worker", "told", 3)
    assert status == 1
    assert "UnavailableError: A worker process died (signal 9). What was linked so far is kept" in said.splitlines()[-1]
    assert list((tmp_path / ".y.csv.map" / "answers").glob("*/*.keys.npy"))
    map_table(linker, source, tmp_path / "y.csv", column="mention", top_k=2)
    assert (tmp_path / "y.csv").read_bytes() == (tmp_path / "z.csv").read_bytes()


def begin(linker: Path, source: Path, output: Path, **options: Any) -> WorkFolder:
    """Work that ends as linking begins."""

    def interrupt(_done: int, _total: int | None, what: str) -> None:
        if what == "linking":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_table(linker, source, output, column="mention", progress=interrupt, **options)
    return WorkFolder.beside(output)


def test_a_worker_that_outlives_its_run_spoils_no_other(linker: Path, source: Path, tmp_path: Path) -> None:
    map_table(linker, source, tmp_path / "z.csv", column="mention", top_k=3)
    outliving = begin(linker, source, tmp_path / "y.csv", top_k=2)
    opened = open_linker(linker, outliving)
    late = outliving.answers(0)
    begin(linker, source, tmp_path / "y.csv", top_k=3)
    link_task(opened, outliving, 0)
    assert KeyedTexts.exists(late)
    assert not KeyedTexts.exists(WorkFolder(outliving.folder).answers(0))
    map_table(linker, source, tmp_path / "y.csv", column="mention", top_k=3)
    assert (tmp_path / "y.csv").read_bytes() == (tmp_path / "z.csv").read_bytes()


def test_a_worker_leaves_with_who_gave_it_its_task(linker: Path, source: Path, tmp_path: Path) -> None:
    work = begin(linker, source, tmp_path / "y.csv")
    code = f"""
import time
from onoma.linking import Linker
from onoma.mapping.worker_process import work
def link(*_, **__):
    print("at work", flush=True)
    time.sleep(600)
Linker.link = link
work({str(work.folder)!r}, {str(linker)!r})
"""
    with POPEN(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as worker:
        assert worker.stdin is not None
        assert worker.stderr is not None
        worker.stdin.write(b"0\n")
        worker.stdin.flush()
        assert worker.stderr.readline() == b"at work\n"
        worker.stdin.close()
        assert worker.wait(timeout=60) == 0


def test_what_a_worker_says_at_its_end_is_told(
    linker: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.mapping.process_pool._START", "raise ValueError('spoilt')")
    with pytest.raises(UnavailableError, match=r"A worker process died \(status 1: ValueError: spoilt\)"):
        map_table(linker, source, tmp_path / "y.csv", column="mention", workers=2)


def test_what_a_worker_refuses_is_told_in_its_words(linker: Path, source: Path, tmp_path: Path) -> None:
    def spoil(_done: int, _total: int | None, what: str) -> None:
        if what == "linking":
            (tmp_path / ".y.csv.map" / "mentions" / "000000.keys.npy").write_bytes(b"")

    with pytest.raises(UnavailableError, match=r"keys\.npy is not a readable array .*\(A worker process said so\.\)"):
        map_table(linker, source, tmp_path / "y.csv", column="mention", workers=2, progress=spoil)


def test_an_error_of_the_system_is_told_as_without_workers(linker: Path, source: Path, tmp_path: Path) -> None:
    def spoil(_done: int, _total: int | None, what: str) -> None:
        if what == "linking":
            (answers,) = (tmp_path / ".y.csv.map" / "answers").iterdir()
            if answers.is_dir():
                shutil.rmtree(answers)
                answers.write_text("where there is no room for a folder")

    told = []
    for workers in (1, 2):
        with pytest.raises(FileExistsError) as caught:
            map_table(linker, source, tmp_path / "y.csv", column="mention", workers=workers, progress=spoil)
        told.append((caught.value.errno, caught.value.strerror, caught.value.filename))
        shutil.rmtree(tmp_path / ".y.csv.map")
    assert told[0] == told[1]


def test_a_linker_that_became_another_meanwhile_is_told_in_its_words(
    linker: Path, source: Path, tmp_path: Path
) -> None:
    used = tmp_path / "used"
    shutil.copytree(linker, used)
    other = make_linker_of(tmp_path / "other", {"C1": ["fever"], "C2": ["cough"]})

    def change(_done: int, _total: int | None, what: str) -> None:
        if what == "linking" and other.exists():
            shutil.rmtree(used)
            other.rename(used)

    with pytest.raises(UnavailableError) as caught:
        map_table(used, source, tmp_path / "y.csv", column="mention", workers=2, progress=change)
    assert "died" not in str(caught.value)
    assert "(A worker process said so.) What was linked so far is kept, for the same linker" in str(caught.value)


def test_workers_end_where_another_cannot_be_started(
    linker: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[str]] = []

    def start_one(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
        if started:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        started.append(POPEN(*arguments, **options))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start_one)
    with pytest.raises(UnavailableError, match="cannot be started"):
        map_table(linker, source, tmp_path / "y.csv", column="mention", workers=2)
    assert started[0].poll() is not None


@pytest.mark.slow
def test_workers_leave_with_the_process_that_started_them(linker: Path, source: Path, tmp_path: Path) -> None:
    status, said = start(linker, source, tmp_path / "y.csv", 2, "kill", "told", 2)
    assert status == -9, said
    folder = str(tmp_path / ".y.csv.map")
    for _ in range(100):
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        if folder not in listed:
            return
    pytest.fail("a worker is still there")
