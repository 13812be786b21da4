"""Changing a few files of an artefact without copying the others."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manifests import read_fields, write_fields
from onoma.artifacts import Manifest, amend_artifact, open_artifact, verify_artifact, write_artifact, writing
from onoma.artifacts.files import sha256_of_sample
from onoma.errors import ArtifactExistsError, DamagedArtifactError, FormatVersionError, InputError, NotAnArtifactError


def make(path: Path) -> Manifest:
    with write_artifact(path, "thing", config={"a": 1, "b": 1}, seed=3) as folder:
        (folder / "large.bin").write_bytes(b"large")
        (folder / "sub").mkdir()
        (folder / "sub" / "one.txt").write_text("one")
        (folder / "sub" / "two.txt").write_text("two")
        (folder / "small.json").write_text("old")
    return open_artifact(path, "thing")


def test_what_is_written_replaces_and_all_else_stays_the_same_file(tmp_path: Path) -> None:
    before = make(tmp_path / "x")
    inode = (tmp_path / "x" / "large.bin").stat().st_ino
    with amend_artifact(tmp_path / "x", "thing", format_version=2, config={"b": 2, "c": 3}) as folder:
        assert list(folder.iterdir()) == []
        (folder / "small.json").write_text("new and longer")
        (folder / "deep").mkdir()
        (folder / "deep" / "more.txt").write_text("more")
        assert (tmp_path / "x" / "small.json").read_text() == "old"
    after = verify_artifact(tmp_path / "x")
    assert (tmp_path / "x" / "large.bin").stat().st_ino == inode
    assert (tmp_path / "x" / "small.json").read_text() == "new and longer"
    assert set(after.files) == {*before.files, "deep/more.txt"}
    assert after.files["large.bin"] == before.files["large.bin"]
    assert after.config == {"a": 1, "b": 2, "c": 3}
    assert (after.format_version, after.seed, after.parents) == (2, 3, before.parents)
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_files_can_be_dropped_by_the_beginning_of_their_names(tmp_path: Path) -> None:
    make(tmp_path / "x")
    with amend_artifact(tmp_path / "x", "thing", dropping=["sub/"]) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "three.txt").write_text("three")
    assert set(verify_artifact(tmp_path / "x").files) == {"large.bin", "small.json", "sub/three.txt"}


def test_nothing_large_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checksum that is wrong stays so: only whoever verifies looks."""
    monkeypatch.setattr("onoma.artifacts.manifest._ALWAYS_VERIFIED_BYTES", 1 << 20)
    make(tmp_path / "x")
    manifest = read_fields(tmp_path / "x")
    manifest["files"]["large.bin"]["bytes"] = 2 << 20
    (tmp_path / "x" / "large.bin").write_bytes(bytes(2 << 20))
    manifest["files"]["large.bin"]["sample_sha256"] = sha256_of_sample(tmp_path / "x" / "large.bin")
    write_fields(tmp_path / "x", manifest)
    with amend_artifact(tmp_path / "x", "thing") as folder:
        (folder / "small.json").write_text("new")
    open_artifact(tmp_path / "x", "thing")
    with pytest.raises(DamagedArtifactError, match=r"large\.bin has changed"):
        verify_artifact(tmp_path / "x")


def test_who_has_the_old_file_mapped_keeps_it(tmp_path: Path) -> None:
    with write_artifact(tmp_path / "x", "thing") as folder:
        np.save(folder / "a.npy", np.arange(1000))
        np.save(folder / "b.npy", np.arange(1000))
    mapped = [np.load(tmp_path / "x" / name, mmap_mode="r") for name in ("a.npy", "b.npy")]
    with amend_artifact(tmp_path / "x", "thing") as folder:
        np.save(folder / "a.npy", np.zeros(7))
    assert [int(array.sum()) for array in mapped] == [499500, 499500]
    assert np.load(tmp_path / "x" / "a.npy").shape == (7,)


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("operation not permitted")

    make(tmp_path / "x")
    monkeypatch.setattr(os, "link", refuse)
    with amend_artifact(tmp_path / "x", "thing") as folder:
        (folder / "small.json").write_text("new")
    verify_artifact(tmp_path / "x")
    assert (tmp_path / "x" / "large.bin").read_bytes() == b"large"


def test_a_failing_block_changes_nothing(tmp_path: Path) -> None:
    before = make(tmp_path / "x")

    def fail() -> None:
        with amend_artifact(tmp_path / "x", "thing") as folder:
            (folder / "small.json").write_text("new")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert verify_artifact(tmp_path / "x") == before
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_what_cannot_be_amended(tmp_path: Path) -> None:
    def amend(path: Path, kind: str = "thing", version: int = 1) -> None:
        with amend_artifact(path, kind, format_version=version):
            pytest.fail("there is nothing to amend")

    with pytest.raises(InputError, match="nothing here"):
        amend(tmp_path / "x")
    make(tmp_path / "x")
    with pytest.raises(NotAnArtifactError, match="of kind thing"):
        amend(tmp_path / "x", "other")
    (tmp_path / "x" / "notes.txt").write_text("precious")
    with pytest.raises(ArtifactExistsError, match=r"did not write \(notes\.txt\)"):
        amend(tmp_path / "x")
    (tmp_path / "x" / "notes.txt").unlink()
    (tmp_path / "x" / "large.bin").write_bytes(b"lar")
    with pytest.raises(DamagedArtifactError, match=r"large\.bin has 3 bytes"):
        amend(tmp_path / "x")
    with write_artifact(tmp_path / "y", "thing", format_version=3):
        pass
    with pytest.raises(FormatVersionError):
        amend(tmp_path / "y", version=2)


def test_what_is_not_as_expected_is_left_alone(tmp_path: Path) -> None:
    make(tmp_path / "x")
    expected = open_artifact(tmp_path / "x", "thing")
    with amend_artifact(tmp_path / "x", "thing", config={"who": "first"}, expected=expected):
        pass
    with (
        pytest.raises(ArtifactExistsError, match="changed by another process"),
        amend_artifact(tmp_path / "x", "thing", config={"who": "second"}, expected=expected),
    ):
        pass
    assert verify_artifact(tmp_path / "x").config["who"] == "first"


def test_what_another_process_changed_meanwhile_is_kept(tmp_path: Path) -> None:
    make(tmp_path / "x")

    def both() -> None:
        with amend_artifact(tmp_path / "x", "thing", config={"who": "first"}) as folder:
            (folder / "small.json").write_text("first")
            with amend_artifact(tmp_path / "x", "thing", config={"who": "second"}) as other:
                (other / "small.json").write_text("second")

    with pytest.raises(ArtifactExistsError, match="changed by another process"):
        both()
    assert verify_artifact(tmp_path / "x").config["who"] == "second"
    assert (tmp_path / "x" / "small.json").read_text() == "second"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("moment", ["held", "_move_aside"])
def test_what_another_process_changed_in_the_last_moment_is_kept(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last look at the folder, and before it is moved aside."""
    make(tmp_path / "x")
    monkeypatch.setattr(writing, "_TURN_S", 0.01)
    first = getattr(writing, moment)

    def slower(*given: Path, **turn: float) -> Any:
        if moment == "held" and not turn:  # of its own folder, from the beginning
            return first(*given)
        monkeypatch.setattr(writing, moment, first)
        with amend_artifact(tmp_path / "x", "thing", config={"who": "second"}) as folder:
            (folder / "small.json").write_text("second")
        return first(*given, **turn)

    monkeypatch.setattr(writing, moment, slower)
    with (
        pytest.raises(ArtifactExistsError, match="changed by another process"),
        amend_artifact(tmp_path / "x", "thing", config={"who": "first"}) as folder,
    ):
        (folder / "small.json").write_text("first")
    assert verify_artifact(tmp_path / "x").config["who"] == "second"
    assert (tmp_path / "x" / "small.json").read_text() == "second"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_what_is_gone_in_the_last_moment_is_not_taken_for_a_free_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may have moved it aside, and be about to put a newer one there."""
    make(tmp_path / "x")
    looks_at = writing.ensure_writable

    def looks(target: Path, kind: str, *, overwrite: bool) -> None:
        looks_at(target, kind, overwrite=overwrite)
        if any(tmp_path.glob(".x.partial-*/onoma.json")):
            target.rename(tmp_path / "y")

    monkeypatch.setattr(writing, "ensure_writable", looks)
    with pytest.raises(InputError, match="nothing here"), amend_artifact(tmp_path / "x", "thing"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["y"]


KILLED = """
    import os, signal, sys
    from pathlib import Path
    import shutil
    from onoma.artifacts import amending

    moment = sys.argv[2]
    def die(*_): os.kill(os.getpid(), signal.SIGKILL)
    if moment == "linking":
        os.link = die
    if moment == "manifest":
        amending.write_text_atomically = die
    if moment in ("after the first rename", "after the second rename"):
        rename, left = Path.rename, [moment.split()[2]]
        def counted(self, target):
            result = rename(self, target)
            if left.pop() == "first":
                die()
            left.append("first")
            return result
        Path.rename = counted
    if moment == "removing":
        shutil.rmtree = lambda *_, **__: die()
    with amending.amend_artifact(sys.argv[1], "thing", config={"new": True}) as folder:
        (folder / "small.json").write_text("new")
        if moment == "writing":
            die()
"""


@pytest.mark.parametrize(
    "moment", ["writing", "linking", "manifest", "after the first rename", "after the second rename", "removing"]
)
def test_a_killed_amendment_leaves_the_old_or_the_new(tmp_path: Path, moment: str) -> None:
    target = tmp_path / "x"
    before = make(target)
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(target), moment], check=False)
    assert done.returncode == -signal.SIGKILL
    open_artifact(target, "thing")  # puts back what was moved away
    found = verify_artifact(target)
    is_new = "new" in found.config
    assert (target / "small.json").read_text() == ("new" if is_new else "old")
    assert (target / "large.bin").read_bytes() == b"large"
    assert is_new == (moment in {"after the second rename", "removing"})
    assert is_new or found == before
    with amend_artifact(target, "thing") as folder:
        (folder / "small.json").write_text("third")
    verify_artifact(target)
    assert [p.name for p in tmp_path.iterdir()] == ["x"], "the next write clears up"
    shutil.rmtree(target)


@pytest.mark.parametrize("leads_to", ["secret.txt", "secrets"])
def test_a_card_that_leads_elsewhere_is_left_out_and_what_it_leads_to_as_it_is(leads_to: str, tmp_path: Path) -> None:
    """A card may be edited, so that its checksum need not fit when the folder is opened."""
    (tmp_path / "secret.txt").write_text("password")
    (tmp_path / "secrets").mkdir()
    for place in (tmp_path / "secret.txt", tmp_path / "secrets"):
        place.chmod(0o700)
    with write_artifact(tmp_path / "x", "thing") as folder:
        (folder / "README.md").write_text("card")
        (folder / "small.json").write_text("old")
    (tmp_path / "x").chmod(0o777)
    (tmp_path / "x" / "README.md").unlink()
    (tmp_path / "x" / "README.md").symlink_to(tmp_path / leads_to)
    with amend_artifact(tmp_path / "x", "thing") as folder:
        (folder / "small.json").write_text("new")
    assert set(verify_artifact(tmp_path / "x").files) == {"small.json"}
    assert [path.name for path in (tmp_path / "x").iterdir() if path.name.startswith("R")] == []
    for place in (tmp_path / "secret.txt", tmp_path / "secrets"):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_a_file_that_is_a_link_becomes_a_file(tmp_path: Path) -> None:
    """As in the cache of a model hub."""
    make(tmp_path / "x")
    (tmp_path / "x" / "large.bin").rename(tmp_path / "blob")
    (tmp_path / "x" / "large.bin").symlink_to(tmp_path / "blob")
    with amend_artifact(tmp_path / "x", "thing") as folder:
        (folder / "small.json").write_text("new")
    assert not (tmp_path / "x" / "large.bin").is_symlink()
    assert (tmp_path / "x" / "large.bin").read_bytes() == b"large"
    verify_artifact(tmp_path / "x")
