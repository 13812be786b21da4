"""What an update refuses, and that the old linker is whole until the new one is."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from linking_data import write_letter_encoder
from updating_data import MENTIONS, Counting, contents, letters, prepared

from manifests import read_fields, write_fields
from onoma.artifacts import MANIFEST_NAME, amend_artifact, verify_artifact, writing
from onoma.encoders import kept_parts, open_encoder
from onoma.errors import (
    ArtifactExistsError,
    DamagedArtifactError,
    FormatVersionError,
    InputError,
    MismatchError,
)
from onoma.indexes.vector_store import VectorPrecision
from onoma.linking import Linker, build_linker, updating
from onoma.linking.folder import FORMAT_VERSION
from onoma.linking.updating import check_terminology, is_current, update_linker
from onoma.terminology import Terminology
from tiny import make_terminology


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("updating"))


def test_nothing_to_do(place: Path, linker: Path, tmp_path: Path) -> None:
    before = (linker / MANIFEST_NAME).read_bytes()
    report = update_linker(linker, place / "t", mentions=["cold", "cold"])
    assert report.is_current
    assert "nothing to do" in str(report)
    assert report.answers is not None
    assert (report.answers.n_mentions, report.answers.n_changed) == (2, 0)
    assert (linker / MANIFEST_NAME).read_bytes() == before
    # Another place still gets its linker.
    encoder = letters(place)
    report = update_linker(linker, place / "t", tmp_path / "out", encoder=encoder)
    assert not report.is_current
    assert encoder.texts == []
    assert contents(tmp_path / "out") == contents(linker)
    assert update_linker(linker, place / "t", linker).is_current, "the same place, said aloud"


def test_a_linker_of_another_release_is_told(place: Path, linker: Path, tmp_path: Path) -> None:
    old, new = Terminology.open(place / "t"), Terminology.open(place / "new")
    opened = Linker.open(linker)
    check_terminology(opened, old)
    assert is_current(opened, old)
    with pytest.raises(MismatchError, match=r"another content \([0-9a-f]{12}\) than .*new \([0-9a-f]{12}\).*update"):
        check_terminology(opened, new)
    make_terminology(tmp_path / "unrelated", {"X1": ["cold"]})
    with pytest.raises(MismatchError, match=r"none of the 6 concepts.*such as D1.*Build a linker of it"):
        check_terminology(opened, Terminology.open(tmp_path / "unrelated"))


def refused_untouched(linker: Path, error: type[BaseException], match: str, *args: Any, **options: Any) -> None:
    before = (linker / MANIFEST_NAME).read_bytes()
    with pytest.raises(error, match=match):
        update_linker(linker, *args, **options)
    assert (linker / MANIFEST_NAME).read_bytes() == before
    assert not [file for file in linker.parent.iterdir() if file.name.startswith(".")]


def test_what_is_refused(place: Path, linker: Path, tmp_path: Path) -> None:
    write_letter_encoder(tmp_path / "other", seed=1)
    refused_untouched(linker, MismatchError, "is another: their vectors", place / "new", encoder=tmp_path / "other")
    make_terminology(tmp_path / "unrelated", {"Z1": ["cold"]})
    refused_untouched(linker, MismatchError, r"none of the 6 concepts.*such as D1", tmp_path / "unrelated")
    make_terminology(tmp_path / "nameless", {"D1": ["Cold"]}, obsolete=["D1"])
    refused_untouched(linker, InputError, "no name to link to", tmp_path / "nameless")
    refused_untouched(linker, InputError, "not text", place / "new", mentions=["cold", None])
    refused_untouched(linker, InputError, "nothing here", tmp_path / "nowhere")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    refused_untouched(linker, ArtifactExistsError, "--force", place / "new", tmp_path / "taken")
    refused_untouched(linker, ArtifactExistsError, "not a folder", place / "new", tmp_path / "taken", overwrite=True)
    newer = tmp_path / "newer"
    shutil.copytree(place / "new", newer)
    write_fields(newer, {**read_fields(newer), "format_version": 99})
    refused_untouched(linker, FormatVersionError, "format 99", newer)


def test_damage_is_not_copied(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector file so large that opening reads a sample; the damage would get a checksum of its own."""
    monkeypatch.setattr("onoma.artifacts.manifest._ALWAYS_VERIFIED_BYTES", 1 << 20)
    many = {f"N{row}": [f"name {row:05}"] for row in range(12_000)}
    make_terminology(tmp_path / "t", many)
    build_linker(tmp_path / "t", place / "letters", tmp_path / "linker")
    make_terminology(tmp_path / "new", {**many, "M": ["more"]})
    file = tmp_path / "linker" / "vectors.npy"
    assert file.stat().st_size > 1 << 20
    raw = bytearray(file.read_bytes())
    raw[10_000] ^= 1
    file.write_bytes(raw)
    Linker.open(tmp_path / "linker")
    refused_untouched(tmp_path / "linker", DamagedArtifactError, r"vectors\.npy", tmp_path / "new")


class Stopping(Counting):
    def encode(self, texts: Sequence[str], *, progress: Any = None, unit_length: bool = True) -> Any:
        raise KeyboardInterrupt("stopped")


def test_stopped_on_the_way(place: Path, linker: Path) -> None:
    refused_untouched(
        linker, KeyboardInterrupt, "stopped", place / "new", encoder=Stopping(open_encoder(place / "letters"))
    )
    verify_artifact(linker)


class Tuning(Counting):
    """While names are encoded, another process tunes the linker."""

    linker: Path

    def encode(self, texts: Sequence[str], *, progress: Any = None, unit_length: bool = True) -> Any:
        with amend_artifact(
            self.linker, "linker", format_version=FORMAT_VERSION, config={"tuning": {"n_mentions": 60}}
        ):
            pass
        return super().encode(texts)


def test_changed_by_another_process_meanwhile(place: Path, linker: Path) -> None:
    encoder = Tuning(open_encoder(place / "letters"))
    encoder.linker = linker
    with pytest.raises(ArtifactExistsError, match="another process meanwhile"):
        update_linker(linker, place / "new", encoder=encoder)
    assert is_current(Linker.open(linker), Terminology.open(place / "t"))
    assert Linker.open(linker).manifest.config["tuning"] == {"n_mentions": 60}


@pytest.mark.parametrize("is_replaced", [True, False])
def test_what_fails_as_another_process_replaced_the_linker_is_told_as_that(
    is_replaced: bool, place: Path, linker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy(names: Iterable[str], source: Path, target: Path) -> None:
        if is_replaced:
            with amend_artifact(linker, "linker", format_version=FORMAT_VERSION, config={"tuning": {"n_mentions": 62}}):
                pass
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))

    monkeypatch.setattr(updating, "copy_files", copy)
    expected = (
        (ArtifactExistsError, "another process meanwhile") if is_replaced else (FileNotFoundError, "No such file")
    )
    with pytest.raises(expected[0], match=expected[1]):
        update_linker(linker, place / "new")
    assert is_current(Linker.open(linker), Terminology.open(place / "t"))


def test_changed_by_another_process_in_the_last_moment(
    place: Path, linker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves_aside = writing._move_aside
    monkeypatch.setattr(writing, "_TURN_S", 0.0)

    def slower(target: Path, old: Path) -> None:
        monkeypatch.setattr(writing, "_move_aside", moves_aside)
        with amend_artifact(linker, "linker", format_version=FORMAT_VERSION, config={"tuning": {"n_mentions": 61}}):
            pass
        moves_aside(target, old)

    monkeypatch.setattr(writing, "_move_aside", slower)
    with pytest.raises(ArtifactExistsError, match="another process meanwhile"):
        update_linker(linker, place / "new")
    assert is_current(Linker.open(linker), Terminology.open(place / "t"))
    assert Linker.open(linker).manifest.config["tuning"] == {"n_mentions": 61}


_KILLED = """
import os, signal, sys
from onoma.encoders import open_encoder
from onoma.linking.updating import update_linker

def progress(done, total, what):
    if done == total:
        os.kill(os.getpid(), signal.SIGKILL)

update_linker(sys.argv[1], sys.argv[2], progress=progress)
"""


def test_killed_on_the_way(place: Path, linker: Path) -> None:
    before = contents(linker)
    done = subprocess.run([sys.executable, "-c", _KILLED, str(linker), str(place / "new")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert contents(linker) == before
    verify_artifact(linker)
    assert len([file for file in linker.parent.iterdir() if file.name.startswith(".")]) == 1
    update_linker(linker, place / "new")
    assert [file.name for file in linker.parent.iterdir()] == ["linker"], "what was left behind is gone"
    verify_artifact(linker)


class StoppedLater(Counting):
    """Encodes two parts and is stopped."""

    def encode(self, texts: Sequence[str], *, progress: Any = None, unit_length: bool = True) -> Any:
        if len(self.texts) >= 6:
            raise KeyboardInterrupt("stopped")
        return super().encode(texts)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_a_stopped_update_encodes_only_the_rest(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: VectorPrecision
) -> None:
    monkeypatch.setattr(kept_parts, "PART_NAMES", 3)
    make_terminology(tmp_path / "new", {"D2": ["Cold"], "N": [f"name {letter}" for letter in "abcdefghij"]})
    for name in ("stopped", "plain"):
        build_linker(place / "t", letters(place), tmp_path / name, vectors=precision)
    update_linker(tmp_path / "plain", tmp_path / "new", encoder=letters(place))
    stopped = StoppedLater(open_encoder(place / "letters"))
    refused_untouched(tmp_path / "stopped", KeyboardInterrupt, "stopped", tmp_path / "new", encoder=stopped)
    assert (tmp_path / "stopped.encoded").is_dir()
    rest = letters(place)
    update_linker(tmp_path / "stopped", tmp_path / "new", encoder=rest)
    assert sorted([*rest.texts, *stopped.texts]) == sorted(f"name {letter}" for letter in "abcdefghij")
    assert contents(tmp_path / "stopped") == contents(tmp_path / "plain")
    verify_artifact(tmp_path / "stopped")
    assert not (tmp_path / "stopped.encoded").exists()


def test_whoever_has_the_old_one_open_goes_on(place: Path, linker: Path) -> None:
    old = Linker.open(linker)
    expected = Linker.open(place / "linker").link(MENTIONS)
    update_linker(linker, place / "new")
    assert old.link(MENTIONS) == expected
