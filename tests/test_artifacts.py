from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests import read_fields, write_fields
from onoma.artifacts import (
    MANIFEST_NAME,
    Manifest,
    amend_artifact,
    ensure_file_writable,
    ensure_writable,
    leftovers,
    open_artifact,
    read_manifest,
    read_while_unchanged,
    sha256_file,
    verify_artifact,
    write_artifact,
    write_file,
    writing,
)
from onoma.artifacts.arrays import load_array
from onoma.artifacts.files import holds, take_over_access
from onoma.artifacts.locking import held, is_held
from onoma.artifacts.system import is_mounted
from onoma.artifacts.unfinished import partial_name
from onoma.errors import (
    ArtifactError,
    ArtifactExistsError,
    ConfigError,
    DamagedArtifactError,
    FormatVersionError,
    InputError,
    NotAnArtifactError,
    UnavailableError,
)
from windows_drives import in_use


def make(path: Path, content: bytes = b"content", *, kind: str = "thing", overwrite: bool = False) -> Manifest:
    with write_artifact(path, kind, config={"a": 1}, seed=3, overwrite=overwrite) as folder:
        (folder / "data.bin").write_bytes(content)
        (folder / "sub").mkdir()
        (folder / "sub" / "more.txt").write_text("more")
    return open_artifact(path, kind)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    manifest = make(tmp_path / "deep" / "thing")
    assert set(manifest.files) == {"data.bin", "sub/more.txt"}
    assert manifest.config == {"a": 1}
    assert manifest.seed == 3
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["thing"], "nothing is left beside it"


def test_equal_content_has_an_equal_fingerprint_whenever_it_was_written(tmp_path: Path) -> None:
    manifests = []
    for name, created in (("a", "2026-01-01"), ("b", "2026-01-02")):
        with write_artifact(tmp_path / name, "thing") as folder:
            (folder / "inner").mkdir()
            (folder / "inner" / "data.bin").write_bytes(b"content")
            (folder / "inner" / MANIFEST_NAME).write_text(created)
        manifests.append(verify_artifact(tmp_path / name))
    first, second = manifests
    assert first.files != second.files
    assert first.fingerprint == second.fingerprint


def test_whoever_may_read_the_folder_may_read_its_files(tmp_path: Path) -> None:
    former = os.umask(0o027)
    try:
        with write_artifact(tmp_path / "a", "thing") as folder:
            (folder / "data.bin").write_bytes(b"x")
            (folder / "data.bin").chmod(0o600)
    finally:
        os.umask(former)
    assert (tmp_path / "a" / "data.bin").stat().st_mode & 0o777 == 0o640
    verify_artifact(tmp_path / "a")


def test_equal_content_has_equal_fingerprint(tmp_path: Path) -> None:
    first, second = make(tmp_path / "a"), make(tmp_path / "b")
    other = make(tmp_path / "c", b"other")
    assert first.fingerprint == second.fingerprint != other.fingerprint


def test_a_failing_block_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with write_artifact(tmp_path / "x", "thing") as folder:
            (folder / "half").write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_kept_unless_overwritten(tmp_path: Path) -> None:
    make(tmp_path / "x", b"old")
    with pytest.raises(ArtifactExistsError, match="--force, overwrite=True"):
        make(tmp_path / "x", b"new")
    assert (tmp_path / "x" / "data.bin").read_bytes() == b"old"
    make(tmp_path / "x", b"new", overwrite=True)
    assert (tmp_path / "x" / "data.bin").read_bytes() == b"new"


def test_overwrite_never_touches_anything_else(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "thesis.tex").write_text("years of work")
    with pytest.raises(ArtifactExistsError, match="will not be replaced"):
        make(tmp_path / "x", overwrite=True)
    make(tmp_path / "y", kind="other")
    with pytest.raises(ArtifactExistsError, match="is of kind other, not thing"):
        make(tmp_path / "y", overwrite=True)
    assert (tmp_path / "x" / "thesis.tex").read_text() == "years of work"


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    make(tmp_path / "x")


def test_truncated_missing_changed(tmp_path: Path) -> None:
    make(tmp_path / "x")
    data = tmp_path / "x" / "data.bin"
    data.write_bytes(b"conten")
    with pytest.raises(DamagedArtifactError, match="has 6 bytes; 7 were written"):
        open_artifact(tmp_path / "x", "thing")
    data.write_bytes(b"Content")
    with pytest.raises(DamagedArtifactError, match=r"data\.bin has changed"):
        open_artifact(tmp_path / "x", "thing")
    data.unlink()
    with pytest.raises(DamagedArtifactError, match=r"data\.bin is missing"):
        open_artifact(tmp_path / "x", "thing")


def test_one_changed_byte_of_a_large_file_is_found_by_who_reads_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.artifacts.manifest._ALWAYS_VERIFIED_BYTES", 1 << 20)
    make(tmp_path / "x", bytes(2 << 20))
    data = tmp_path / "x" / "data.bin"
    verify_artifact(tmp_path / "x")
    data.write_bytes(bytes(10_000) + b"1" + bytes((2 << 20) - 10_001))
    open_artifact(tmp_path / "x", "thing")
    with pytest.raises(DamagedArtifactError, match="has changed"):
        verify_artifact(tmp_path / "x")
    with pytest.raises(DamagedArtifactError, match="has changed"):
        open_artifact(tmp_path / "x", "thing", in_full=True)


@pytest.mark.parametrize("change", ["all of it", "first byte", "last byte"])
def test_another_large_file_of_the_same_size_is_found_at_once(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.artifacts.manifest._ALWAYS_VERIFIED_BYTES", 1 << 20)
    size = (2 << 20) + 17
    make(tmp_path / "x", bytes(size))
    content = bytearray(size)
    content[{"all of it": slice(None), "first byte": slice(1), "last byte": slice(-1, None)}[change]] = b"1" * (
        size if change == "all of it" else 1
    )
    (tmp_path / "x" / "data.bin").write_bytes(content)
    with pytest.raises(DamagedArtifactError, match=r"data\.bin has changed"):
        open_artifact(tmp_path / "x", "thing")


def test_a_folder_that_is_replaced_while_it_is_checked_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "x")
    contents, replacing = [b"content 1", b"content 2"], list[bytes]()

    def replace_and_check(path: Path) -> str:
        if contents and not replacing:
            replacing.append(contents.pop(0))
            make(tmp_path / "x", replacing[0], overwrite=True)
            replacing.clear()
        return sha256_file(path)

    monkeypatch.setattr("onoma.artifacts.manifest.sha256_file", replace_and_check)
    assert open_artifact(tmp_path / "x", "thing") == read_manifest(tmp_path / "x")
    assert (tmp_path / "x" / "data.bin").read_bytes() == b"content 2"


def test_a_folder_that_is_always_replaced_is_given_up(tmp_path: Path) -> None:
    make(tmp_path / "x")
    numbers = iter(range(100))
    with pytest.raises(DamagedArtifactError, match="is being replaced again and again"):
        read_while_unchanged(
            tmp_path / "x",
            lambda: read_manifest(tmp_path / "x"),
            lambda _: make(tmp_path / "x", f"{next(numbers)}".encode(), overwrite=True),
        )


@pytest.mark.parametrize("is_away_longer", [True, False])
def test_a_folder_that_is_away_for_the_instant_in_which_it_is_read_is_read_then(
    is_away_longer: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "x"
    make(folder)
    written, away, n_reads = read_manifest(folder), tmp_path / partial_name(folder, "old"), 0
    read_bytes = Path.read_bytes

    def read(self: Path) -> bytes:
        nonlocal n_reads
        n_reads += 1
        if n_reads > 1:
            return read_bytes(self)
        folder.rename(away)
        try:
            return read_bytes(self)
        finally:
            if not is_away_longer:
                away.rename(folder)

    monkeypatch.setattr(Path, "read_bytes", read)
    monkeypatch.setattr("onoma.artifacts.manifest.time.sleep", lambda _: away.rename(folder))
    monkeypatch.setattr("onoma.artifacts.unfinished.being_written", {away.name})  # by somebody at work
    assert read_manifest(folder) == written
    assert n_reads == 2


@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_folder_that_was_away_while_it_was_read_is_read_again_though_its_manifest_is_the_same(
    is_damaged: bool, tmp_path: Path
) -> None:
    folder, n_reads = tmp_path / "x", 0
    make(folder)

    def read(_: Manifest) -> bytes:
        nonlocal n_reads
        n_reads += 1
        if n_reads == 1:
            time.sleep(0.02)  # the clocks of some file systems are coarse
            folder.rename(tmp_path / "away")
        try:
            if n_reads > 1 and is_damaged:
                raise DamagedArtifactError("really")
            return (folder / "data.bin").read_bytes()
        finally:
            if n_reads == 1:
                (tmp_path / "away").rename(folder)

    def look() -> bytes:
        return read_while_unchanged(folder, lambda: read_manifest(folder), read)[1]

    if is_damaged:
        with pytest.raises(DamagedArtifactError, match="really"):
            look()
    else:
        assert look() == (folder / "data.bin").read_bytes()
    assert n_reads == 2


def test_a_reader_of_the_same_process_does_not_put_back_what_is_being_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "x")
    monkeypatch.setattr("onoma.artifacts.manifest._MOMENT", 0)
    rename = Path.rename

    def rename_and_read(self: Path, target: Path) -> Path:
        there = rename(self, target)
        if Path(target).name.endswith("-old"):
            with pytest.raises(InputError, match="nothing here"):
                read_manifest(tmp_path / "x")
        return there

    monkeypatch.setattr(Path, "rename", rename_and_read)
    make(tmp_path / "x", b"new", overwrite=True)
    assert (tmp_path / "x" / "data.bin").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_foreign_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is nothing here"):
        open_artifact(tmp_path / "nowhere", "thing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotAnArtifactError, match="is a file"):
        open_artifact(tmp_path / "file", "thing")
    (tmp_path / "foreign").mkdir()
    with pytest.raises(NotAnArtifactError, match="was not written by Onoma"):
        open_artifact(tmp_path / "foreign", "thing")
    make(tmp_path / "x", kind="encoder")
    with pytest.raises(NotAnArtifactError, match="is of kind encoder, where one of kind thing is needed"):
        open_artifact(tmp_path / "x", "thing")
    with pytest.raises(NotAnArtifactError, match=r"one of kind linker is needed\. To make one: onoma linker"):
        open_artifact(tmp_path / "x", "linker")
    with pytest.raises(NotAnArtifactError, match=r"is a file, .* of kind pairs\. To make one: onoma pairs build"):
        open_artifact(tmp_path / "file", "pairs")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "x")
    manifest = tmp_path / "x" / MANIFEST_NAME
    raw = json.loads(manifest.read_text())
    write_fields(tmp_path / "x", {**raw, "format_version": 2, "onoma_version": "9.1"})
    with pytest.raises(FormatVersionError, match=r"format 2, written by Onoma 9\.1"):
        open_artifact(tmp_path / "x", "thing")
    write_fields(tmp_path / "x", {**raw, "surprise": True})
    with pytest.raises(FormatVersionError, match="surprise"):
        open_artifact(tmp_path / "x", "thing")
    manifest.write_text(json.dumps({**raw, "surprise": True}))  # which its checksum does not know
    with pytest.raises(DamagedArtifactError, match="its content has changed"):
        open_artifact(tmp_path / "x", "thing")


@pytest.mark.parametrize("change", [{"sha256": None}, {"sha256": 3}, None])
def test_a_manifest_without_its_checksum_is_refused(tmp_path: Path, change: dict[str, Any] | None) -> None:
    make(tmp_path / "x")
    raw = read_fields(tmp_path / "x")
    without = {name: value for name, value in raw.items() if name != "sha256"}
    (tmp_path / "x" / MANIFEST_NAME).write_text(json.dumps(without if change is None else {**raw, **change}))
    said = (NotAnArtifactError, "not a manifest") if change is None else (DamagedArtifactError, "has changed")
    with pytest.raises(said[0], match=said[1]):
        open_artifact(tmp_path / "x", "thing")
    (tmp_path / "x" / MANIFEST_NAME).write_text("[]")
    with pytest.raises(NotAnArtifactError, match="not a manifest"):
        open_artifact(tmp_path / "x", "thing")


def test_a_manifest_cannot_point_outside(tmp_path: Path) -> None:
    make(tmp_path / "x")
    raw = read_fields(tmp_path / "x")
    (tmp_path / "secret").write_text("")
    raw["files"]["../secret"] = raw["files"]["data.bin"]
    write_fields(tmp_path / "x", raw)
    with pytest.raises(DamagedArtifactError, match="outside"):
        open_artifact(tmp_path / "x", "thing")


@settings(max_examples=60)
@given(bit=st.integers(min_value=0))
def test_a_manifest_with_another_bit_never_opens(tmp_path_factory: pytest.TempPathFactory, bit: int) -> None:
    folder = tmp_path_factory.mktemp("bit") / "x"
    make(folder)
    manifest = folder / MANIFEST_NAME
    content = bytearray(manifest.read_bytes())
    bit %= 8 * len(content)
    content[bit // 8] ^= 1 << bit % 8
    manifest.write_bytes(content)
    with pytest.raises(ArtifactError):
        open_artifact(folder, "thing")


def test_what_was_moved_away_is_not_put_back_where_the_new_one_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed as it cleaned up; then the new one was moved, or lost its manifest: nobody is at work to be waited for."""
    monkeypatch.setattr("onoma.artifacts.manifest.time.sleep", lambda _: pytest.fail("there is nothing to wait for"))
    make(tmp_path / "x", b"new content")
    make(tmp_path / ".x.partial-4999999-old", b"old content")
    (tmp_path / "x").rename(tmp_path / "moved")
    with pytest.raises(InputError, match=r"nothing here.*\.x\.partial-4999999-old beside it"):
        open_artifact(tmp_path / "x", "thing")
    make(tmp_path / "x", b"third")
    assert (tmp_path / ".x.partial-4999999-old").exists(), "who knows whether the new one was ever here"
    make(tmp_path / "x", b"fourth", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moved", "x"]
    (tmp_path / "x" / "onoma.json").unlink()
    make(tmp_path / ".x.partial-4999999-old")
    with pytest.raises(NotAnArtifactError, match="was not written by Onoma"):
        read_manifest(tmp_path / "x")


@settings(max_examples=60)
@given(cut=st.integers(min_value=0))
def test_a_truncated_manifest_never_opens(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("cut") / "x"
    make(folder)
    manifest = folder / MANIFEST_NAME
    whole = manifest.read_bytes().rstrip()
    manifest.write_bytes(whole[: cut % len(whole)])
    with pytest.raises((DamagedArtifactError, NotAnArtifactError)):
        open_artifact(folder, "thing")


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from onoma.artifacts import writing

    moment = sys.argv[2]
    def die(*_): os.kill(os.getpid(), signal.SIGKILL)
    if moment == "manifest":
        writing.write_text_atomically = die
    if moment == "between renames":
        rename = Path.rename
        def once(self, target):
            result = rename(self, target)
            die()
        Path.rename = once
    with writing.write_artifact(sys.argv[1], "thing", overwrite=True) as folder:
        (folder / "data.bin").write_bytes(b"new content")
        if moment == "writing":
            die()
"""


@pytest.mark.parametrize("moment", ["writing", "manifest", "between renames"])
@pytest.mark.parametrize("there_before", [True, False])
def test_a_killed_write_leaves_nothing_half(tmp_path: Path, moment: str, there_before: bool) -> None:
    target = tmp_path / "x"
    if there_before:
        make(target, b"old content")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(target), moment], check=False)
    assert done.returncode == -signal.SIGKILL
    if target.exists():
        whole = verify_artifact(target)
        expected = b"new content" if whole.config == {} else b"old content"
        assert (target / "data.bin").read_bytes() == expected
    for leftover in tmp_path.iterdir():
        if leftover != target:  # hidden, and either whole or not to be opened
            try:
                verify_artifact(leftover)
            except NotAnArtifactError:
                continue
    make(target, b"third", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["x"], "the next write clears up"


def test_what_a_killed_overwrite_moved_away_is_put_back(tmp_path: Path) -> None:
    make(tmp_path / "x", b"old content")
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "x"), "between renames"]
    subprocess.run(command, check=False)
    assert not (tmp_path / "x").exists()
    open_artifact(tmp_path / "x", "thing")
    assert (tmp_path / "x" / "data.bin").read_bytes() == b"old content"
    subprocess.run(command, check=False)
    with pytest.raises(ArtifactExistsError):
        make(tmp_path / "x", b"new")
    assert (tmp_path / "x" / "data.bin").read_bytes() == b"old content"


def test_an_interrupted_overwrite_keeps_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "x", b"old content")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name.startswith(".x.partial-") and not self.name.endswith("-old"):
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "x", b"new", overwrite=True)
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x" / "data.bin").read_bytes() == b"old content"


@pytest.mark.parametrize("place", [".", "..", "../../here", "/"])
def test_the_folder_that_one_stands_in_is_not_replaced(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "deep")
    with (
        pytest.raises(ArtifactExistsError, match="that this command runs in, or one above it"),
        write_artifact(Path(place), "thing"),
    ):
        pass
    make(Path("new"))
    verify_artifact(tmp_path / "here" / "deep" / "new")


def test_who_replaces_is_told_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bytes] = []

    def note(folder: Path) -> None:
        told.append((folder / "data.bin").read_bytes())
        if len(told) == 2:
            raise KeyboardInterrupt

    def write(content: bytes) -> None:
        with write_artifact(tmp_path / "x", "thing", overwrite=True, on_replaced=note) as folder:
            (folder / "data.bin").write_bytes(content)

    write(b"a")
    assert told == []
    write(b"b")
    with pytest.raises(KeyboardInterrupt):
        write(b"c")
    assert told == [b"a", b"b"]
    assert (tmp_path / "x" / "data.bin").read_bytes() == b"b", "it is put back"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_nothing_is_written_into_an_artefact(tmp_path: Path) -> None:
    make(tmp_path / "x")
    for place in (tmp_path / "x" / "y", tmp_path / "x" / "deep" / "y"):
        with pytest.raises(ArtifactExistsError, match=r"lies in .*x, a folder that Onoma wrote"):
            make(place)
    assert not (tmp_path / "x" / "deep").exists()
    verify_artifact(tmp_path / "x")
    make(tmp_path / "x", overwrite=True)


def test_a_file_of_the_users_in_our_folder_is_kept(tmp_path: Path) -> None:
    make(tmp_path / "x")
    (tmp_path / "x" / "notes.txt").write_text("precious")
    with pytest.raises(ArtifactExistsError, match=r"did not write \(notes\.txt\)"):
        make(tmp_path / "x", overwrite=True)
    assert (tmp_path / "x" / "notes.txt").read_text() == "precious"


def test_overwriting_through_a_link_changes_what_it_points_to(tmp_path: Path) -> None:
    make(tmp_path / "real", b"old")
    (tmp_path / "link").symlink_to("real")
    make(tmp_path / "link", b"new", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "data.bin").read_bytes() == b"new"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "real"]


def test_leftovers_of_an_earlier_process_with_our_number_are_removed(tmp_path: Path) -> None:
    (tmp_path / f".x.partial-{os.getpid()}-abc").mkdir()
    make(tmp_path / "x")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_living_writer_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / f".x.partial-{os.getppid()}-abc"
    other.mkdir()
    make(tmp_path / "x")
    assert other.is_dir()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux says that a process has ended so")
def test_leftovers_of_a_process_that_nobody_waited_for_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as zombie:
        assert zombie.stdout is not None
        zombie.stdout.read()  # its end, which is not asked for
        while not Path(f"/proc/{zombie.pid}/stat").read_text().rpartition(")")[2].startswith(" Z"):
            time.sleep(0.01)
        (tmp_path / f".x.partial-{zombie.pid}-abc").mkdir()
        make(tmp_path / "x")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("has_our_number", [True, False])
def test_a_writer_of_another_container_is_left_alone(has_our_number: bool, tmp_path: Path) -> None:
    """Its process has no number here, or that of another one."""
    other = tmp_path / f".x.partial-{os.getpid() if has_our_number else 4999999}-abc"
    other.mkdir()
    with held(other):
        make(tmp_path / "x")
        assert leftovers(tmp_path / "x") == []
        assert other.is_dir()
    assert leftovers(tmp_path / "x") == [other]
    make(tmp_path / "x", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_what_another_container_is_replacing_is_not_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.artifacts.manifest._MOMENT", 0)
    make(tmp_path / "x")
    (tmp_path / ".x.partial-4999999-abc").mkdir()
    with held(tmp_path / "x"):
        old = (tmp_path / "x").rename(tmp_path / ".x.partial-4999999-old")
        with pytest.raises(InputError, match="nothing here"):
            read_manifest(tmp_path / "x")
    assert not (tmp_path / "x").exists()
    assert read_manifest(tmp_path / "x").kind == "thing"
    assert not old.exists()


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "file.txt"
    with write_file(file) as aside:
        aside.write_text("one")
        assert not file.exists()
    with pytest.raises(ArtifactExistsError, match="--force, overwrite=True"), write_file(file):
        pass
    with pytest.raises(TypeError), write_file(file, overwrite=True) as aside:
        aside.write_text("tw" + 1)  # type: ignore[operator]
    assert file.read_text() == "one"
    with write_file(file, overwrite=True) as aside:
        aside.write_text("two")
    assert file.read_text() == "two"
    assert list(file.parent.iterdir()) == [file]
    with pytest.raises(ArtifactExistsError, match="is a folder"), write_file(file.parent, overwrite=True):
        pass


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "x"),
        (OSError("No space left on device (os error 28)"), "x"),  # as Polars says it
        (RuntimeError("failed to write: No space left on device (os error 28)"), "x"),
        (OSError("81810 requested and 51168 written"), "x"),  # as NumPy says it
        (pl.exceptions.ComputeError("parquet: File too large (os error 27)"), "x"),  # ulimit -f
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/y"), "/tmp/y"),
        (OSError(errno.EIO, "Input/output error"), None),
    ],
)
def test_the_error_of_a_full_disk_names_what_was_written(
    error: Exception, named: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("there"))
    for block, place in (
        (write_file("x"), "x"),
        (write_artifact("x", "thing"), "x"),
        (amend_artifact("there", "thing"), "there"),
    ):
        with pytest.raises(OSError, match=r"No space|too large|Input") as caught, block:
            raise error
        is_large = "too large" in str(error)
        assert caught.value.errno == (errno.EFBIG if is_large else errno.ENOSPC if named else errno.EIO)
        assert caught.value.filename == (place if named == "x" else named)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_other_errors_are_left_as_they_are(tmp_path: Path) -> None:
    for error in (ConfigError("It said (os error 28)."), ValueError("(os error 2)")):
        with pytest.raises(type(error)) as caught, write_file(tmp_path / "x"):
            raise error
        assert caught.value is error


_KILLED_FILE = """
import os, signal, sys
from onoma.artifacts import write_file

with write_file(sys.argv[1]) as aside:
    aside.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_half_a_file_of_a_killed_process_goes_with_the_next_write(tmp_path: Path) -> None:
    target = tmp_path / "x[1].csv"
    done = subprocess.run([sys.executable, "-c", _KILLED_FILE, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    (half,) = tmp_path.iterdir()
    assert half.read_text() == "half"
    others = [tmp_path / f".x[1].csv.partial-{name}" for name in (os.getppid(), "mine")]
    for other in others:
        other.write_text("of another")
    with write_file(target) as aside:
        assert not half.exists()
        aside.write_text("whole")
    half.write_text("of a process at work in another container, with a number that is free here")
    with held(half), write_file(target, overwrite=True) as aside:
        assert half.exists()
        aside.write_text("another")
    assert sorted(tmp_path.iterdir()) == sorted([half, *others, target])
    assert target.read_text() == "another"


def test_what_nobody_else_may_open_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(errno.EACCES, "permission denied")

    assert not is_held(tmp_path / "gone")
    monkeypatch.setattr(os, "open", refused)
    assert is_held(tmp_path)


@pytest.mark.parametrize("when", ["before looking", "after looking"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_that_another_wrote_in_the_last_moment_is_replaced_only_if_it_may_be(
    when: str, overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many processes that begin at once and need the same folder: who is late finds it made."""
    looks_at, exists = writing.ensure_writable, Path.exists

    def write_first() -> None:
        monkeypatch.setattr(writing, "ensure_writable", looks_at)
        monkeypatch.setattr(Path, "exists", exists)
        with write_artifact(tmp_path / "x", "thing", config={"who": "first"}):
            pass

    def looks(target: Path, kind: str, *, overwrite: bool = False) -> None:
        looks_at(target, kind, overwrite=overwrite)
        write_first()

    def is_there(path: Path, **options: bool) -> bool:
        found = exists(path, **options)
        if path == tmp_path / "x":
            write_first()
        return found

    with (
        nullcontext() if overwrite else pytest.raises(ArtifactExistsError, match="exists"),
        write_artifact(tmp_path / "x", "thing", config={"who": "second"}, overwrite=overwrite),
    ):
        if when == "before looking":
            monkeypatch.setattr(Path, "exists", is_there)
        else:
            monkeypatch.setattr(writing, "ensure_writable", looks)
    assert verify_artifact(tmp_path / "x").config["who"] == ("second" if overwrite else "first")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_what_another_replaced_in_this_moment_holds_no_foreign_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "x")
    earlier = [read_manifest(tmp_path / "x")]
    with amend_artifact(tmp_path / "x", "thing") as folder:
        (folder / "new.txt").touch()
    monkeypatch.setattr(writing, "read_manifest", lambda path: earlier.pop() if earlier else read_manifest(path))
    ensure_writable(tmp_path / "x", "thing", overwrite=True)
    (tmp_path / "x" / "foreign.txt").touch()
    with pytest.raises(ArtifactExistsError, match=r"did not write \(foreign\.txt\)"):
        ensure_writable(tmp_path / "x", "thing", overwrite=True)


@pytest.mark.parametrize("looks_by", ["iterdir", "rglob"])
def test_what_another_moves_away_in_this_moment_is_looked_at_again(
    looks_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "x"
    make(folder)
    look: Callable[..., Iterator[Path]] = getattr(Path, looks_by)
    n_looks = 0

    def look_and_miss(self: Path, *pattern: str) -> Iterator[Path]:
        nonlocal n_looks
        n_looks += 1
        if n_looks == 1:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))  # for an instant
        return look(self, *pattern)

    monkeypatch.setattr(Path, looks_by, look_and_miss)
    ensure_writable(folder, "thing", overwrite=True)
    assert n_looks == 2
    (folder / "foreign.txt").touch()
    with pytest.raises(ArtifactExistsError, match=r"did not write \(foreign\.txt\)"):
        ensure_writable(folder, "thing", overwrite=True)


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_another_wrote_meanwhile_is_not_replaced(
    has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_links:

        def refused(*_: object) -> None:
            raise PermissionError(errno.EPERM, "not permitted")

        monkeypatch.setattr(os, "link", refused)
    with write_file(tmp_path / "free.txt") as aside:
        aside.write_text("one")
    target = tmp_path / "x.txt"
    late = write_file(target)
    late.__enter__().write_text("late")
    with write_file(target) as other:  # of a process with our number, as each container has one
        other.write_text("first")
    with pytest.raises(ArtifactExistsError, match="--force, overwrite=True"):
        late.__exit__(None, None, None)
    assert target.read_text() == "first"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["free.txt", "x.txt"]


def test_a_link_that_was_made_and_not_confirmed_is_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a network a request may be sent twice."""
    link = os.link

    def sent_twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", sent_twice)
    with write_file(tmp_path / "x.txt") as aside:
        aside.write_text("one")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("x.txt", "one")]


def test_what_another_machine_writes_is_left_alone_until_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its locks may not be seen here, and its processes have no number."""
    folder, file = tmp_path / ".x.partial-4999999.00000000-abc", tmp_path / ".x.txt.partial-4999999.00000000-abc"
    folder.mkdir()
    file.write_text("half")
    now = time.time()
    for hours in (0, 23):
        monkeypatch.setattr("onoma.artifacts.unfinished.time.time", lambda hours=hours: now + hours * 3600)
        make(tmp_path / "x", overwrite=True)
        with write_file(tmp_path / "x.txt", overwrite=True) as aside:
            aside.write_text("whole")
        assert leftovers(tmp_path / "x") == []
        assert folder.is_dir()
        assert file.exists()
    monkeypatch.setattr("onoma.artifacts.unfinished.time.time", lambda: now + 25 * 3600)
    make(tmp_path / "x", overwrite=True)
    with write_file(tmp_path / "x.txt", overwrite=True) as aside:
        aside.write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "x.txt"]


def test_what_another_machine_moved_aside_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.artifacts.manifest._MOMENT", 0)
    make(tmp_path / ".x.partial-4999999.00000000-old")
    (tmp_path / ".x.partial-4999999.00000000-abc").mkdir()
    now = time.time()
    for seconds in (0, 50):
        monkeypatch.setattr("onoma.artifacts.unfinished.time.time", lambda seconds=seconds: now + seconds)
        with pytest.raises(InputError, match="nothing here"):
            read_manifest(tmp_path / "x")
    monkeypatch.setattr("onoma.artifacts.unfinished.time.time", lambda: now + 100)
    assert read_manifest(tmp_path / "x").kind == "thing"


def test_who_may_read_a_folder_or_file_may_read_what_replaces_it(tmp_path: Path) -> None:
    def write() -> None:
        with write_artifact(tmp_path / "x", "thing", overwrite=True) as folder:
            (folder / "sub").mkdir()
            (folder / "sub" / "a").write_text("a")
        with write_file(tmp_path / "x.txt", overwrite=True) as aside:
            aside.write_text("a")

    before = os.umask(0o022)
    try:
        write()
        (tmp_path / "x").chmod(0o2775)
        (tmp_path / "x.txt").chmod(0o664)
        os.umask(0o077)
        write()
        with amend_artifact(tmp_path / "x", "thing") as folder:
            (folder / "b").write_text("b")
    finally:
        os.umask(before)
    modes = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    expected = {"x": 0o2775, "x/sub": 0o2775, **dict.fromkeys(["x/sub/a", "x/b", "x/onoma.json", "x.txt"], 0o664)}
    assert modes == expected


def test_files_of_several_names_keep_their_mode_as_they_are_elsewhere_too(tmp_path: Path) -> None:
    make(tmp_path / "x")
    (tmp_path / "x").chmod(0o700)
    (tmp_path / "elsewhere").hardlink_to(tmp_path / "x" / "data.bin")
    before = (tmp_path / "elsewhere").stat().st_mode
    with amend_artifact(tmp_path / "x", "thing") as folder:
        (folder / "new").write_text("new")
    assert (tmp_path / "elsewhere").stat().st_mode == before
    assert stat.S_IMODE((tmp_path / "x" / "new").stat().st_mode) == 0o600


def test_what_a_link_leads_to_keeps_its_mode(tmp_path: Path) -> None:
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    (tmp_path / "before").chmod(0o777)
    (tmp_path / "secret").touch(mode=0o600)
    (tmp_path / "after" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "after" / "dead").symlink_to(tmp_path / "nothing")
    take_over_access(tmp_path / "before", tmp_path / "after")
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "after").stat().st_mode) == 0o777


def test_a_group_that_one_may_not_give_has_no_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []

    def refused(_: Path, user: int, group: int) -> None:
        given.append((user, group))
        raise PermissionError(errno.EPERM, "not permitted")

    for name in ("before", "after"):
        (tmp_path / name).write_text(name)
    (tmp_path / "before").chmod(0o4770)
    about = (tmp_path / "before").stat()
    of_others = os.stat_result((*about[:5], about.st_gid + 1, *about[6:]))
    monkeypatch.setattr(os, "chown", refused)
    stat_of = Path.stat
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", lambda path, **_: of_others if path.name == "before" else stat_of(path))
        take_over_access(tmp_path / "before", tmp_path / "after")
    assert given == [(-1, about.st_gid + 1)]
    assert stat.S_IMODE((tmp_path / "after").stat().st_mode) == 0o700


def test_where_something_is_mounted_nothing_can_take_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "x.csv").touch()
    mounts = tmp_path / "mountinfo"
    octal = str(tmp_path / "a b").replace(" ", "\\040")
    points = ["/", octal, f"{tmp_path}/gone"]
    mounts.write_text("".join(f"22 1 0:20 /y {point} rw - ext4 /dev/x rw\n" for point in points))
    found = [is_mounted(tmp_path / name, mounts=mounts) for name in ("a b", "x.csv", "gone")]
    assert found == [True, False, False]
    assert is_mounted(Path("/"), mounts=tmp_path / "none")
    assert not is_mounted(tmp_path / "x.csv", mounts=tmp_path / "none")
    for room in ("files", "writing"):
        monkeypatch.setattr(f"onoma.artifacts.{room}.is_mounted", lambda place: place.name in {"a b", "x.csv"})
    with pytest.raises(ArtifactExistsError, match=r"a b is where a file system is mounted.* a folder inside it"):
        ensure_writable(tmp_path / "a b", "thing")
    with pytest.raises(ArtifactExistsError, match=r"x.csv is mounted, so that no file can take its place"):
        ensure_file_writable(tmp_path / "x.csv", overwrite=True)


def test_a_folder_in_use_that_cannot_be_renamed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "thing")
    in_use(monkeypatch, "thing")
    with pytest.raises(UnavailableError, match=r"thing cannot be replaced \(Permission denied\); it is as it was.*WSL"):
        make(tmp_path / "thing", b"other", overwrite=True)
    assert (tmp_path / "thing" / "data.bin").read_bytes() == b"content"
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]


def test_a_drive_that_cannot_make_names_durable_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):  # as some network drives do
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    make(tmp_path / "thing")
    make(tmp_path / "thing", b"other", overwrite=True)
    assert (tmp_path / "thing" / "data.bin").read_bytes() == b"other"


def test_what_was_written_is_durable_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "thing"
    synced: list[tuple[int, bool]] = []
    monkeypatch.setattr(os, "fsync", lambda one: synced.append((os.fstat(one).st_ino, place.exists())))
    make(place)
    files = {file.stat().st_ino for file in place.rglob("*") if file.is_file()}
    assert {(file, False) for file in files} <= set(synced)
    assert synced[-1] == (tmp_path.stat().st_ino, True)
    synced.clear()
    with write_file(tmp_path / "file"):
        pass
    assert [file for file, _ in synced] == [(tmp_path / "file").stat().st_ino]


def test_one_folder_may_have_two_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where case does not count, as on most Macs, and in containers where a folder is mounted twice."""
    (tmp_path / "Enc" / "inner").mkdir(parents=True)
    (tmp_path / "enc").mkdir()
    stat_of = Path.stat
    monkeypatch.setattr(Path, "stat", lambda path, **how: stat_of(Path(str(path).replace("/enc", "/Enc")), **how))
    assert holds(tmp_path / "enc", tmp_path / "Enc" / "inner")
    assert not holds(tmp_path / "enc", tmp_path)
    monkeypatch.chdir(tmp_path / "Enc" / "inner")
    with pytest.raises(ArtifactExistsError, match="the folder that this command runs in"):
        ensure_writable(tmp_path / "enc", "thing")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_where_one_stands_need_not_be_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o777)
        (folder / "locked" / "inner").mkdir(parents=True)
        (folder / "locked").chmod(0o700)
        (folder / "out").mkdir(mode=0o777)
        monkeypatch.chdir(folder / "locked" / "inner")
        os.seteuid(65534)
        try:
            ensure_writable(folder / "out", "thing")
            assert not holds(folder / "out", folder / "locked" / "inner")
        finally:
            os.seteuid(0)
            monkeypatch.undo()


def test_a_dash_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("-", "-/inside"):
        with pytest.raises(ConfigError, match="a folder is written here, not standard output"):
            ensure_writable(place, "thing")
        with pytest.raises(ConfigError, match="a file is written here, not standard output"):
            ensure_file_writable(place)
        with pytest.raises(ConfigError, match="not standard output"), write_artifact(place, "thing"):
            pass
    assert not any(tmp_path.iterdir())


def test_a_name_beside_which_nothing_can_be_written_is_refused_early(tmp_path: Path) -> None:
    for ensure in (lambda path: ensure_writable(path, "thing"), ensure_file_writable):
        with pytest.raises(OSError, match="too long") as caught:
            ensure(tmp_path / ("x" * 230))
        assert caught.value.errno == errno.ENAMETOOLONG
    longest = tmp_path / ("x" * 200)
    make(longest)
    make(longest, overwrite=True)
    assert list(tmp_path.iterdir()) == [longest]


def test_a_file_whose_name_is_not_utf8_is_refused_early(tmp_path: Path) -> None:
    for name in ("o\udcff.csv", "d\udcff/o.csv"):
        with pytest.raises(ConfigError, match="no name in UTF-8"):
            ensure_file_writable(tmp_path / name)


def test_a_write_protected_folder_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with write_artifact(tmp_path / "x", "thing") as folder:
        (folder / "sub" / "sub").mkdir(parents=True)
        (folder / "sub" / "sub" / "a").write_text("old")
    for path in (tmp_path / "x" / "sub" / "sub", tmp_path / "x" / "sub", tmp_path / "x"):
        path.chmod(0o555)
    remove = shutil.rmtree

    def as_no_root(path: Path, **options: Any) -> None:
        """Root may write everywhere."""
        if all(place.stat().st_mode & stat.S_IWUSR for place in (path, *path.rglob("*")) if place.is_dir()):
            remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", as_no_root)
    with write_artifact(tmp_path / "x", "thing", overwrite=True) as folder:
        (folder / "b").write_text("new")
    assert (tmp_path / "x" / "b").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_cannot_be_removed_is_warned_of(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("onoma.artifacts.unfinished.shutil.rmtree", lambda *_, **__: None)
            said = pytest.warns(UserWarning, match="-spent is needed no more") if text == "new" else nullcontext()
            with said, write_artifact(tmp_path / "x", "thing", overwrite=True) as folder:
                (folder / "a").write_text(text)
    verify_artifact(tmp_path / "x")
    assert (tmp_path / "x" / "a").read_text() == "new"


def test_nothing_is_written_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n")
    with pytest.raises(InputError, match=r"t\.csv: this is a file, and .*/x/y would lie in it"):
        ensure_writable(tmp_path / "t.csv" / "x" / "y", "thing")
    assert (tmp_path / "t.csv").read_text() == "a\n"


def test_a_text_does_not_allow_overwriting(tmp_path: Path) -> None:
    """As "no" is true."""
    with pytest.raises(ConfigError, match="overwrite is True or False; found 'no'"):
        ensure_writable(tmp_path / "out", "thing", overwrite="no")  # type: ignore[arg-type]


def test_an_array_of_another_type_or_shape_is_damage(tmp_path: Path) -> None:
    for array, found in ((np.zeros((2, 3)), "float64 of 2"), (np.zeros(6, np.float32), "float32 of 1")):
        np.save(tmp_path / "x.npy", array)
        with pytest.raises(
            DamagedArtifactError, match=rf"x\.npy holds {found} dimensions, where float32 of 2 is needed"
        ):
            load_array(tmp_path / "x.npy", (np.float32, np.float16), 2)
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float16))
    assert load_array(tmp_path / "x.npy", (np.float32, np.float16), 2).tolist() == [[1, 1, 1], [1, 1, 1]]
