"""A run that was stopped, however, goes on where it was; its output is that of a run that was not."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mapping_data import make_linker_of, make_parts_small, rows_of, write_table

from onoma.artifacts import ensure_file_writable
from onoma.errors import ArtifactExistsError, DamagedArtifactError, MismatchError, UnavailableError
from onoma.linking import Linker
from onoma.linking.mentions import PreparedMention
from onoma.mapping import map_table, mapping, work_folder
from onoma.mapping.work_folder import WorkFolder

SCRIPT = Path(__file__).with_name("interrupted.py")
N_ROWS = 40
MOMENTS = [
    ("settings.json", 1),
    ("/mentions/", 1),
    ("/mentions/", 5),
    ("reading.json", 1),
    ("/answers/", 1),
    ("/answers/", 8),
    ("/written/", 3),
    ("/written/", 10),
    ("/whole", 1),
    ("/y.csv", 1),
]
"""When a file of this name is about to appear (the first, the fifth ...), in a run after that killed at the last."""


def start(
    linker: Path, source: Path, output: Path, workers: int, how: str, what: str, number: int, *context: str
) -> tuple[int, str]:
    """Run `interrupted.py`; its status and what it said."""
    arguments = [str(part) for part in (SCRIPT, linker, source, output, workers, how, what, number, *context)]
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=100)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("table") / "x.csv", rows_of(N_ROWS, n_different=30))


def mapped(linker: Path, source: Path, output: Path, **options: int) -> bytes:
    map_table(linker, source, output, column="mention", top_k=2, **options)  # type: ignore[arg-type]
    return output.read_bytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_unfinished_work_of_another_user_is_told_of() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o777)
        (folder / ".y.csv.map").mkdir(mode=0o700)
        work = WorkFolder(folder / ".y.csv.map")
        os.seteuid(65534)
        try:
            with pytest.raises(UnavailableError, match=r"y\.csv\.map is closed to you: it holds unfinished work"):
                work.finished(folder / "y.csv")
        finally:
            os.seteuid(0)


@pytest.mark.usefixtures("small_parts")
def test_killed_while_linking(linker: Path, source: Path, tmp_path: Path) -> None:
    output = tmp_path / "y.parquet"
    expected = mapped(linker, source, tmp_path / "z.parquet")
    n_different = len({row["mention"] for row in rows_of(N_ROWS, n_different=30) if row["mention"]} - {"   "})
    status, said = start(linker, source, output, 1, "kill", "/answers/", 8)
    assert status == -9, said
    there = sorted(path.name for path in (tmp_path / ".y.parquet.map" / "answers").glob("*/*.keys.npy"))
    assert there == ["000000.keys.npy", "000001.keys.npy"]
    assert stat.S_IMODE((tmp_path / ".y.parquet.map").stat().st_mode) == 0o700  # mentions may be of patients
    asked: list[str] = []
    link = Linker.link

    def watched(self: Linker, mentions: list[PreparedMention], **options: object) -> object:
        asked.extend(mention.original for mention in mentions)
        return link(self, mentions, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Linker, "link", watched)
        assert mapped(linker, source, output) == expected
    assert 0 < len(asked) < n_different  # two of the tasks were done before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["y.parquet", "z.parquet"]


@pytest.mark.slow  # ten processes, one after the other
@pytest.mark.usefixtures("small_parts")
def test_killed_at_every_stage(linker: Path, source: Path, tmp_path: Path) -> None:
    expected = mapped(linker, source, tmp_path / "z.csv")
    for what, number in MOMENTS:
        status, said = start(linker, source, tmp_path / "y.csv", 1, "kill", what, number)
        assert status == -9, (what, number, said)
        assert not (tmp_path / "y.csv").exists()
    assert mapped(linker, source, tmp_path / "y.csv") == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["y.csv", "z.csv"]


def test_killed_while_the_folder_is_thrown_away(
    linker: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_done: int, _total: int | None, what: str) -> None:
        if what == "writing":
            raise KeyboardInterrupt

    def rmtree(path: Path, *arguments: Any, **options: Any) -> None:
        if path.name == "mentions":
            raise KeyboardInterrupt
        removed(path, *arguments, **options)

    map_table(linker, source, tmp_path / "z.csv", column="mention")
    with pytest.raises(KeyboardInterrupt):
        map_table(linker, source, tmp_path / "y.csv", column="mention", progress=interrupt)
    removed = shutil.rmtree
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", rmtree)
        with pytest.raises(KeyboardInterrupt):
            WorkFolder.beside(tmp_path / "y.csv").remove()
    assert (tmp_path / ".y.csv.map" / "mentions").exists()
    assert not (tmp_path / ".y.csv.map" / "reading.json").exists()
    map_table(linker, source, tmp_path / "y.csv", column="mention")
    assert (tmp_path / "y.csv").read_bytes() == (tmp_path / "z.csv").read_bytes()


@pytest.mark.parametrize("what", ["begun", "asking", "preparation"])
def test_work_that_was_removed_says_nothing_of_how_the_linker_is_asked(tmp_path: Path, what: str) -> None:
    with pytest.raises(DamagedArtifactError, match="was removed while the work went on"):
        getattr(WorkFolder(tmp_path / ".y.csv.map"), what)


def finished_but_for(n_removed: int, linker: Path, source: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Map as `mapped`, and die when so many of the entries of the folder were removed."""

    def remove(self: WorkFolder) -> None:
        for name in work_folder._ENTRIES[:n_removed]:
            path = self.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(WorkFolder, "remove", remove)
        with pytest.raises(KeyboardInterrupt):
            mapped(linker, source, output)


@pytest.mark.parametrize("n_removed", range(len(work_folder._ENTRIES)))
def test_killed_when_only_the_folder_was_left(
    linker: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_removed: int
) -> None:
    started = time.monotonic()
    whole = map_table(linker, source, tmp_path / "z.csv", column="mention", top_k=2)
    assert 0 < whole.seconds <= time.monotonic() - started
    output = tmp_path / "y.csv"
    finished_but_for(n_removed, linker, source, output, monkeypatch)
    before = output.stat()
    again = map_table(linker, source, output, column="mention", top_k=2)
    assert replace(again, seconds=whole.seconds) == whole
    assert (output.stat().st_ino, output.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert output.read_bytes() == (tmp_path / "z.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["y.csv", "z.csv"]
    with pytest.raises(ArtifactExistsError):
        mapped(linker, source, output)


@pytest.mark.parametrize("change", ["settings", "output", "input", "version"])
def test_what_was_finished_was_something_else(
    linker: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    table, output = Path(shutil.copy(source, tmp_path / "x.csv")), tmp_path / "y.csv"
    finished_but_for(3, linker, table, output, monkeypatch)
    if change == "output":
        output.write_text("mine\n")
    elif change == "input":
        table.write_text("mention\nfever\n")
    elif change == "version":
        (tmp_path / ".y.csv.map" / "done").write_text('{"settings": {"seed": 1}}')
    there = output.read_bytes()
    top_k = 1 if change == "settings" else 2
    with pytest.raises(ArtifactExistsError):
        map_table(linker, table, output, column="mention", top_k=top_k)
    assert output.read_bytes() == there
    map_table(linker, table, output, column="mention", top_k=top_k, overwrite=True)
    map_table(linker, table, tmp_path / "z.csv", column="mention", top_k=top_k)
    assert output.read_bytes() == (tmp_path / "z.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.csv", "y.csv", "z.csv"]


@pytest.mark.usefixtures("small_parts")
def test_with_one_concept_alone_ranks_still_tell_two_runs_apart(source: Path, tmp_path: Path) -> None:
    linker, output = make_linker_of(tmp_path, {"C1": ["cold"]}), tmp_path / "y.csv"

    def interrupt(done: int, _total: int | None, what: str) -> None:
        if what == "writing" and done > 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_table(linker, source, output, column="mention", top_k=5, progress=interrupt)
    with pytest.raises(MismatchError, match="top_k: 2, now 1"):
        map_table(linker, source, output, column="mention")
    map_table(linker, source, output, column="mention", top_k=7)
    map_table(linker, source, tmp_path / "whole.csv", column="mention", top_k=2)
    assert output.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert output.read_text().partition("\n")[0].endswith(",score,rank")


@pytest.mark.usefixtures("small_parts")
def test_interrupted_work_is_not_thrown_away_unasked(linker: Path, source: Path, tmp_path: Path) -> None:
    output = tmp_path / "y.csv"

    def interrupt(done: int, _total: int | None, what: str) -> None:
        if what == "linking" and done:
            raise KeyboardInterrupt

    def begin() -> None:
        with pytest.raises(KeyboardInterrupt):
            map_table(linker, source, output, column="mention", top_k=2, progress=interrupt)

    begin()
    answers = tmp_path / ".y.csv.map" / "answers"
    assert not list(answers.glob("*/*"))  # the first task was not finished
    with pytest.raises(KeyboardInterrupt):  # so nothing is lost by other settings
        map_table(linker, source, output, column="mention", top_k=1, progress=interrupt)
    begin()
    (answers / "000000.keys.npy").touch()
    with pytest.raises(MismatchError, match=r"unfinished work with other settings \(top_k: 2, now 1\).*--force"):
        map_table(linker, source, output, column="mention", top_k=1)
    with pytest.raises(MismatchError, match=r"\(answer_prefix: none, now my_\)"):
        map_table(linker, source, output, column="mention", top_k=2, answer_prefix="my_")
    changed = write_table(tmp_path / "x.csv", rows_of(3))
    with pytest.raises(MismatchError, match=r"\(input: [0-9a-f]{12}, now [0-9a-f]{12}\)"):
        map_table(linker, changed, output, column="mention", top_k=2)
    other = make_linker_of(tmp_path / "other", {"C:1": ["old fever"], "C:2": ["cough"]})
    with pytest.raises(
        MismatchError, match=r"another linker \(linker: .*\)\. Put the linker back that it was begun with"
    ):
        map_table(other, source, output, column="mention", top_k=2)
    report = map_table(linker, changed, output, column="mention", top_k=1, overwrite=True)
    assert report.n_rows == 3
    assert not answers.exists()


@pytest.mark.parametrize("what", ["file", "folder", "folder with a file called done"])
def test_what_is_not_its_own_is_left_alone(what: str, linker: Path, source: Path, tmp_path: Path) -> None:
    place = tmp_path / ".y.csv.map"
    if what != "file":
        place.mkdir()
    if what.endswith("done"):
        (place / "done").touch()
    own = place if what == "file" else place / "own.txt"
    own.write_text("mine")
    with pytest.raises(
        ArtifactExistsError, match=r"\.y\.csv\.map is where the unfinished work would lie.* not be touched"
    ):
        map_table(linker, source, tmp_path / "y.csv", column="mention", overwrite=True)
    assert own.read_text() == "mine"
    assert not (tmp_path / "y.csv").exists()


def test_unfinished_work_that_cannot_be_read_is_told(linker: Path, source: Path, tmp_path: Path) -> None:
    work = WorkFolder.beside(tmp_path / "y.csv")
    (work.folder / "answers").mkdir(parents=True)
    (work.folder / "answers" / "000000.keys.npy").touch()
    (work.folder / "settings.json").write_text("{")
    with pytest.raises(DamagedArtifactError, match=r"settings.json is damaged .* Remove .*\.y\.csv\.map to start anew"):
        map_table(linker, source, tmp_path / "y.csv", column="mention")
    (work.folder / "settings.json").write_text('{"input": "of another version"}')
    with pytest.raises(MismatchError, match=r"another version of Onoma\. Remove that folder"):
        map_table(linker, source, tmp_path / "y.csv", column="mention")
    assert map_table(linker, source, tmp_path / "y.csv", column="mention", overwrite=True).n_rows


def test_work_that_cannot_be_read_and_linked_nothing_is_begun_anew(linker: Path, source: Path, tmp_path: Path) -> None:
    work = WorkFolder.beside(tmp_path / "y.csv")
    work.folder.mkdir()
    (work.folder / "settings.json").write_text("{")
    assert map_table(linker, source, tmp_path / "y.csv", column="mention").n_rows


def test_what_another_wrote_meanwhile_is_not_replaced(
    linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = write_table(tmp_path / "x.csv", rows_of(5)), tmp_path / "y.csv"

    def then_another_writes(path: Path, *, overwrite: bool) -> None:
        ensure_file_writable(path, overwrite=overwrite)
        if (tmp_path / ".y.csv.map" / "whole").exists():
            output.write_text("of another")

    monkeypatch.setattr(mapping, "ensure_file_writable", then_another_writes)
    with pytest.raises(ArtifactExistsError, match=r"y\.csv exists already"):
        map_table(linker, source, output, column="mention")
    assert output.read_text() == "of another"
    monkeypatch.undo()
    output.chmod(0o640)
    map_table(linker, source, output, column="mention", overwrite=True)
    assert output.read_text().startswith("id,mention")
    assert output.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(("mode", "mask"), [(0o600, 0o022), (0o400, 0o022), (0o640, 0o022), (0o644, 0), (0o644, 0o077)])
def test_nobody_may_read_the_output_who_may_not_read_the_input(
    linker: Path, tmp_path: Path, mode: int, mask: int
) -> None:
    source = write_table(tmp_path / "x.csv", rows_of(8))
    source.chmod(mode)
    before = os.umask(mask)
    try:
        for ending in ("csv", "parquet"):
            map_table(linker, source, tmp_path / f"y.{ending}", column="mention")
            found = stat.S_IMODE((tmp_path / f"y.{ending}").stat().st_mode)
            assert found == (mode | 0o200) & ~mask, f"{found:o}"  # nor whom the user's own mask keeps away
    finally:
        os.umask(before)


def test_another_group_may_not_read_the_output(linker: Path, tmp_path: Path) -> None:
    source = write_table(tmp_path / "x.csv", rows_of(8))
    source.chmod(0o640)
    try:
        os.chown(source, -1, os.getgid() + 1)
    except PermissionError:
        pytest.skip("only root gives a file to a group that it is not in")
    map_table(linker, source, tmp_path / "y.csv", column="mention")
    assert stat.S_IMODE((tmp_path / "y.csv").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("file", "spoil", "told"),
    [
        ("reading.json", lambda _: b"5", "reading.json is damaged"),
        ("reading.json", lambda data: data.replace(b'"n_rows": 40', b'"n_rows": []'), r"damaged \(n_rows: "),
        ("written/000000.json", lambda data: data.replace(b"n_linked", b"linked"), r"damaged \(n_linked: "),
        ("written/000000.json", lambda _: b"[" * 100_000, "damaged"),
        ("written/000001.csv", lambda data: data[: data.index(b"\n") + 1], r"000001\.csv is damaged \("),
        ("answers/*/000000.keys.npy", lambda data: data[:-1], "000000.keys.npy is not a readable array"),
        ("answers/*/000000.keys.npy", lambda data: data.replace(b"}", b" "), "000000.keys.npy is not a readable array"),
        ("answers/*/000000.links.offsets.npy", lambda data: data.replace(b"<i8", b"<f8"), "holds float64"),
        ("answers/*/000000.links.utf8", lambda data: data[:-1], "does not have the bytes of all its texts"),
        ("answers/*/000000.links.utf8", lambda data: data.replace(b":", b"\xff"), "links.utf8 is damaged"),
        ("answers/*/000000.links.utf8", lambda data: data.replace(b":", b","), r"answers/\w+ is damaged"),
    ],
)
def test_damaged_work_is_told(
    file: str,
    spoil: Callable[[bytes], bytes],
    told: str,
    linker: Path,
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    make_parts_small(monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(mapping, "join_parts", die)
        with pytest.raises(KeyboardInterrupt):
            mapped(linker, source, tmp_path / "y.csv")
    work = tmp_path / ".y.csv.map"
    if not file.startswith("written"):
        shutil.rmtree(work / "written")
    (damaged,) = work.glob(file)
    damaged.write_bytes(spoil(damaged.read_bytes()))
    with pytest.raises(DamagedArtifactError, match=rf"{told}.* Remove .*\.y\.csv\.map to start anew"):
        mapped(linker, source, tmp_path / "y.csv")
    shutil.rmtree(work)
    assert mapped(linker, source, tmp_path / "y.csv") == mapped(linker, source, tmp_path / "z.csv")
