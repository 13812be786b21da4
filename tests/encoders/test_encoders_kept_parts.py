"""Encoding that goes on where it was stopped, with the vectors that it would have had anyway."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from onoma.encoders import Encoder, kept_parts, open_encoder
from onoma.encoders.kept_parts import KeptParts, encode_in_parts
from onoma.encoders.vector_files import encode_file
from tiny import tiny_encoder

NAMES = [f"heart {letter}" for letter in "abcdefgh"]


class Watched:
    """An encoder that remembers what it was asked for, and is stopped before one of the calls."""

    def __init__(self, encoder: Encoder, *, stopped_before: int = -1) -> None:
        self._encoder, self._stopped_before, self.calls = encoder, stopped_before, list[list[str]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, texts: Sequence[str], *, progress: Any = None, unit_length: bool = True) -> Any:
        if len(self.calls) == self._stopped_before:
            raise KeyboardInterrupt
        self.calls.append(list(texts))
        return self._encoder.encode(texts, progress=progress, unit_length=unit_length)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base") / "bert")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return open_encoder(folder)


@pytest.fixture(autouse=True)
def _parts_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_parts, "PART_NAMES", 3)


def write_names(place: Path, names: Sequence[str] = NAMES) -> tuple[Path, Path]:
    """A file of names, and where its vectors go."""
    (place / "n.txt").write_text("\n".join(names))
    return place / "n.txt", place / "v.npy"


def stop(encoder: Encoder, place: Path, *, before: int, names: Sequence[str] = NAMES, **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        encode_file(Watched(encoder, stopped_before=before), *write_names(place, names), **options)
    assert not (place / "v.npy").exists()


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_what_was_stopped_goes_on_and_is_equal_to_the_last_bit(encoder: Encoder, tmp_path: Path, ending: str) -> None:
    names, _ = write_names(tmp_path)
    plain, resumed = tmp_path / f"plain.{ending}", tmp_path / f"resumed.{ending}"
    encode_file(encoder, names, plain)
    with pytest.raises(KeyboardInterrupt):
        encode_file(Watched(encoder, stopped_before=2), names, resumed)
    assert not resumed.exists()
    assert len(list((tmp_path / f"resumed.{ending}.encoded").iterdir())) == 2
    rest, seen = Watched(encoder), list[tuple[int, int]]()
    encode_file(rest, names, resumed, progress=lambda *told: seen.append(told))
    assert rest.calls == [NAMES[6:]]
    assert resumed.read_bytes() == plain.read_bytes()
    assert seen[0][0] > 6, "the first that is told is what was done before, and a little more"
    assert seen[-1] == (8, 8)
    assert {file.name for file in tmp_path.iterdir()} == {"n.txt", plain.name, resumed.name}


def test_all_was_done_but_the_last_step(encoder: Encoder, tmp_path: Path) -> None:
    parts = KeptParts(tmp_path / "out", n_names=8, width=encoder.width)
    for start in range(0, 8, 3):
        parts.encode(encoder, NAMES[start : start + 3])
    told, again = list[tuple[int, int]](), Watched(encoder)
    found = list(
        encode_in_parts(
            lambda texts, progress: parts.encode(again, texts, progress=progress),
            NAMES,
            progress=lambda *seen: told.append(seen),
        )
    )
    assert again.calls == []
    assert [len(part) for part in found] == [3, 3, 2]
    assert told == [(8, 8)]


def test_vectors_of_anything_else_are_not_taken(folder: Path, encoder: Encoder, tmp_path: Path) -> None:
    stop(encoder, tmp_path, before=2)
    kept = tmp_path / "kept"
    shutil.copytree(tmp_path / "v.npy.encoded", kept)

    class Case(NamedTuple):
        encoder: Encoder
        names: list[str]
        unit_length: bool = True
        prepare: Any = None
        n_encoded: int = 3

    moved = [*NAMES[1:], NAMES[0]]
    for case in (
        Case(encoder, NAMES, n_encoded=1),
        Case(encoder, ["other", *NAMES[1:]], n_encoded=2),
        Case(encoder, moved),
        Case(encoder, ["heart ah", "eart b", *NAMES[2:]], n_encoded=2),  # the same letters, divided in another way
        Case(encoder, NAMES, unit_length=False),
        Case(encoder, NAMES, prepare=str.upper),
        Case(open_encoder(folder, dimensions=6), NAMES),
        Case(open_encoder(tiny_encoder(tmp_path / "other", seed=1)), NAMES),
    ):
        shutil.rmtree(tmp_path / "v.npy.encoded", ignore_errors=True)
        shutil.copytree(kept, tmp_path / "v.npy.encoded")
        (tmp_path / "v.npy").unlink(missing_ok=True)
        watched = Watched(case.encoder)
        files = write_names(tmp_path, case.names)
        encode_file(watched, *files, unit_length=case.unit_length, prepare=case.prepare)
        assert len(watched.calls) == case.n_encoded, case
        prepared = [case.prepare(name) for name in case.names] if case.prepare else case.names
        expected = case.encoder.encode(prepared, unit_length=case.unit_length)
        np.testing.assert_allclose(np.load(files[1]), expected, atol=1e-5)


def save_part(file: Path, vectors: Any) -> None:
    """A part as it is kept, of whatever shape and type."""
    with file.open("wb") as opened:
        np.save(opened, vectors)
        opened.write(hashlib.sha256(vectors.tobytes()).digest())


@pytest.mark.parametrize("damage", ["cut", "empty", "shape", "type", "bit", "unchecked", "gone"])
def test_a_part_that_is_not_as_it_was_written_is_encoded_again(encoder: Encoder, tmp_path: Path, damage: str) -> None:
    stop(encoder, tmp_path, before=2)
    file = sorted((tmp_path / "v.npy.encoded").iterdir())[0]
    vectors = np.load(file)
    match damage:
        case "cut":
            file.write_bytes(file.read_bytes()[:-8])
        case "empty":
            file.write_bytes(b"")
        case "shape":
            save_part(file, vectors[:2])
        case "type":
            save_part(file, vectors.astype(np.float64))
        case "bit":
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        case "unchecked":
            np.save(file, vectors)
        case "gone":
            file.unlink()
    rest = Watched(encoder)
    encode_file(rest, *write_names(tmp_path))
    assert len(rest.calls) == 2
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), encoder.encode(NAMES), atol=1e-6)
    assert not (tmp_path / "v.npy.encoded").exists()


def test_of_few_names_nothing_is_kept(encoder: Encoder, tmp_path: Path) -> None:
    KeptParts(tmp_path / "out", n_names=3, width=encoder.width).encode(encoder, NAMES[:3])
    assert list(tmp_path.iterdir()) == []


def test_parts_lie_beside_the_output_wherever_that_is_from_here(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for out, beside in ((".", tmp_path), ("v.npy", tmp_path / "v.npy"), ("a/../v", tmp_path / "v")):
        folder = KeptParts(out, n_names=9, width=encoder.width).folder
        assert folder == beside.with_name(f"{beside.name}.encoded")


def test_without_room_for_both_nothing_is_kept(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = 3 * 4 * len(NAMES) * encoder.width

    def usage(_folder: Path) -> Any:
        return shutil._ntuple_diskusage(10**12, 10**12 - free, free)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    free = needed - 1
    stop(encoder, tmp_path, before=2)
    assert [file.name for file in tmp_path.iterdir()] == ["n.txt"]
    free = needed
    stop(encoder, tmp_path, before=2)
    assert (tmp_path / "v.npy.encoded").is_dir()


def test_what_was_stopped_while_it_was_written_goes_too_and_foreign_files_stay(
    encoder: Encoder, tmp_path: Path
) -> None:
    stop(encoder, tmp_path, before=1)
    kept = tmp_path / "v.npy.encoded"
    (part,) = kept.iterdir()
    (kept / f".{part.name}.partial-123").write_bytes(b"half")
    (kept / "mine.npy").write_bytes(b"mine")
    encode_file(encoder, *write_names(tmp_path))
    assert [file.name for file in kept.iterdir()] == ["mine.npy"]
