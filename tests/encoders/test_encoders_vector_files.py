from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from onoma.encoders import Encoder, kept_parts, open_encoder
from onoma.encoders.vector_files import encode_file
from onoma.errors import ArtifactExistsError, InputError
from tiny import VOCABULARY, tiny_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return open_encoder(tiny_encoder(tmp_path_factory.mktemp("base") / "bert"))


def test_parts_are_put_together_in_order(encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_parts, "PART_NAMES", 3)
    names = [f"heart {letter}" for letter in "abcdefgh"]
    (tmp_path / "n.txt").write_text("\n".join(names))
    seen: list[tuple[int, int]] = []
    assert encode_file(encoder, tmp_path / "n.txt", tmp_path / "v.npy", progress=lambda *a: seen.append(a)) == 8
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), encoder.encode(names), atol=1e-6)
    assert seen[-1] == (8, 8)


def test_a_full_disk_is_told_before_anything_is_encoded(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "n.txt").write_text("heart")
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="No space left"):
        encode_file(encoder, tmp_path / "n.txt", tmp_path / "v.npy")
    assert [file.name for file in tmp_path.iterdir()] == ["n.txt"]


def test_a_file_system_that_cannot_reserve_room_is_written_to_all_the_same(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    (tmp_path / "n.txt").write_text("heart")
    monkeypatch.setattr(os, "posix_fallocate", unknown, raising=False)
    assert encode_file(encoder, tmp_path / "n.txt", tmp_path / "v.npy") == 1


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_no_names(encoder: Encoder, tmp_path: Path, ending: str) -> None:
    (tmp_path / "n.txt").write_text("")
    assert encode_file(encoder, tmp_path / "n.txt", tmp_path / f"v.{ending}") == 0
    if ending == "npy":
        assert np.load(tmp_path / "v.npy").shape == (0, encoder.width)


def test_a_failure_leaves_nothing(encoder: Encoder, tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("heart\n")

    def fail(_text: str) -> str:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        encode_file(encoder, tmp_path / "n.txt", tmp_path / "v.npy", prepare=fail)
    assert [file.name for file in tmp_path.iterdir()] == ["n.txt"]


def test_refusals(encoder: Encoder, tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("heart\n")
    with pytest.raises(InputError, match=r"\.npy or \.parquet"):
        encode_file(encoder, tmp_path / "n.txt", tmp_path / "v.csv")
    with pytest.raises(InputError, match="no such file"):
        encode_file(encoder, tmp_path / "none.txt", tmp_path / "v.npy")
    (tmp_path / "names.npy").write_text("heart\n")
    with pytest.raises(InputError, match="input and output are the same file"):
        encode_file(encoder, tmp_path / "names.npy", tmp_path / "names.npy", overwrite=True)
    assert (tmp_path / "names.npy").read_text() == "heart\n"
    (tmp_path / "v.npy").write_text("mine")
    with pytest.raises(ArtifactExistsError):
        encode_file(encoder, tmp_path / "n.txt", tmp_path / "v.npy")


@pytest.mark.parametrize("unit_length", [True, False])
def test_vectors_that_are_not_all_numbers_are_not_written(unit_length: bool, tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base")
    weights = load_file(base / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][VOCABULARY.index("q")] = float("nan")
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "n.txt").write_text("heart\nattack\nq\n")
    encoder = open_encoder(base)
    with pytest.raises(InputError, match=r"n\.txt, line 3: the encoder base gives a vector that is not all numbers"):
        encode_file(encoder, tmp_path / "n.txt", tmp_path / "v.npy", unit_length=unit_length)
    assert not (tmp_path / "v.npy").exists()
