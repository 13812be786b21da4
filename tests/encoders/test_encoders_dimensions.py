"""Vectors cut to their first numbers: what a user does with an encoder trained by Matryoshka."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_encoders import NAMES, write_tiny

from commands import said
from onoma.encoders import Encoder, export_encoder, locate_encoder, open_encoder, save_encoder
from onoma.encoders.loading import load_packed
from onoma.errors import ConfigError
from onoma.linking import Linker, build_linker
from tiny import make_terminology


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tiny")
    return export_encoder(write_tiny(place / "base", "bert"), place / "encoder").path


@pytest.fixture(params=["onnx", "torch"])
def cut(request: pytest.FixtureRequest, folder: Path) -> Encoder:
    return open_encoder(folder, backend=request.param, dimensions=6)


def test_the_first_numbers_are_kept_and_scaled_to_unit_length(cut: Encoder, folder: Path) -> None:
    raw = open_encoder(folder).encode(NAMES, unit_length=False)[:, :6]
    found = cut.encode(NAMES)
    assert found.shape == (len(NAMES), cut.width) == (len(NAMES), 6)
    np.testing.assert_allclose(found, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(cut.encode(NAMES, unit_length=False), raw, atol=1e-5)
    assert cut.encode([]).shape == (0, 6)


def test_a_cut_encoder_has_a_fingerprint_of_its_own(cut: Encoder, folder: Path) -> None:
    whole = open_encoder(folder)
    prints = {encoder.fingerprint for encoder in (cut, whole, open_encoder(folder, dimensions=7))}
    assert len(prints) == 3
    assert open_encoder(folder, dimensions=32).fingerprint == whole.fingerprint
    assert locate_encoder(folder).cut(None) == locate_encoder(folder)


@pytest.mark.parametrize("dimensions", [-1, 0, 1, 33])
def test_dimensions_that_the_encoder_cannot_have_are_refused(folder: Path, dimensions: int) -> None:
    with pytest.raises(ConfigError, match=f"dimensions must be from 2 to 32 for base; not {dimensions}"):
        open_encoder(folder, dimensions=dimensions)


def test_a_saved_one_stays_cut(cut: Encoder, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="keeps the first 6 numbers"):
        export_encoder(cut.folder, tmp_path / "whole")
    thin = export_encoder(cut.folder, tmp_path / "thin", onnx_only=True)
    assert thin.fingerprint == cut.fingerprint
    opened = open_encoder(thin.path)
    np.testing.assert_allclose(opened.encode(NAMES), cut.encode(NAMES), atol=1e-5)
    assert open_encoder(thin.path, dimensions=4).width == 4
    with pytest.raises(ConfigError, match="from 2 to 6"):
        open_encoder(thin.path, dimensions=7)


def test_what_is_trained_further_is_whole_again(folder: Path, tmp_path: Path) -> None:
    model = load_packed(folder)
    assert model.source is not None
    model.source = model.source.cut(6)
    assert save_encoder(model, tmp_path / "trained").dimensions is None


def test_a_linker_of_few_numbers(folder: Path, tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {"X:1": ["heart attack"], "X:2": ["fever"], "X:3": ["diabetes"]})
    build_linker(terminology, open_encoder(folder, dimensions=6), tmp_path / "linker")
    linker = Linker.open(tmp_path / "linker")
    assert np.load(tmp_path / "linker" / "vectors.npy").shape == (3, 6)
    assert [links[0].concept_id for links in linker.link(["fever", "heart attack"])] == ["X:2", "X:1"]


def test_from_the_command_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("fever\nheart attack\n")
    told = said("encode", folder, "-i", tmp_path / "names.txt", "-o", tmp_path / "v.npy", "--dimensions", "6")
    assert "nothing says that base was trained for vectors of 6 numbers (matryoshka)" in " ".join(told.split())
    expected = open_encoder(folder, dimensions=6).encode(["fever", "heart attack"])
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-6)


def test_nothing_is_said_where_it_was_trained_for_so_many(folder: Path, tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"X:1": ["heart attack"], "X:2": ["fever"]})
    trained = save_encoder(load_packed(folder), tmp_path / "trained", config={"trained_dimensions": [6, 8]})
    assert trained.trained_dimensions == (6, 8)
    told = []
    for dimensions in ("6", "7", "32"):
        words = ["-t", tmp_path / "t", "-e", trained.path, "-o", tmp_path / "l", "--force"]
        shown = said("linker", "build", *words, "--dimensions", dimensions)
        told.append("nothing says that" in " ".join(shown.split()))
    assert told == [False, True, False]
