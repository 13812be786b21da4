"""A linker keeps to the precision that its vectors were made in."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from linking_data import small_terminology

from manifests import refit, write_fields
from onoma.artifacts import verify_artifact
from onoma.encoders import add_precisions, open_encoder
from onoma.errors import ConfigError, MismatchError
from onoma.linking import Linker, build_linker
from onoma.linking.updating import update_linker
from tiny import make_terminology, tiny_encoder

NAMES = [f"{a}{b} attack" for a in "abcdefghij" for b in "klmnopqrst"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder in two precisions, a terminology, and a linker in the lower one."""
    folder = tmp_path_factory.mktemp("precision")
    tiny_encoder(folder / "base", weight_std=0.3)
    add_precisions(folder / "base", ["int8"], NAMES, out=folder / "encoder", threads=1)
    small_terminology(folder / "terminology")
    build_linker(folder / "terminology", open_encoder(folder / "encoder", precision="int8"), folder / "linker")
    return folder


@pytest.fixture(scope="module")
def release(place: Path) -> Path:
    """The terminology with a name more, beside what `place` has."""
    make_terminology(place / "release", {"D1": ["Sugar disease", "bd attack"], "D2": ["Cold"]})
    return place / "release"


def test_mentions_are_encoded_as_the_names_were(place: Path) -> None:
    linker = Linker.open(place / "linker")
    verify_artifact(place / "linker")
    lower = open_encoder(place / "encoder", precision="int8")
    assert linker.encoder.fingerprint == lower.fingerprint
    texts = list(linker.dictionary.texts)
    stored = np.load(place / "linker" / "vectors.npy")
    can_read = linker.encoder.can_read(texts)
    assert can_read.sum() > len(texts) / 2
    assert not stored[~can_read].any()
    np.testing.assert_allclose(linker.encoder.encode(texts)[can_read], stored[can_read], atol=1e-5)
    assert np.abs(open_encoder(place / "encoder").encode(texts) - stored).max() > 1e-4
    [[best, *_]] = linker.link(["sugar DISEASE"], top_k=1)
    assert best.concept_id == "D1"
    assert best.score == pytest.approx(1, abs=1e-5)


def test_another_precision_is_refused(place: Path, tmp_path: Path) -> None:
    """The linker's own record is what decides, and it is checked against the vectors' maker."""
    linker = tmp_path / "linker"
    build_linker(place / "terminology", open_encoder(place / "encoder"), linker)
    assert Linker.open(linker).encoder.folder.precision == "fp32"
    manifest = (linker / "onoma.json").read_text()
    assert manifest.count('"precision": "fp32"') == 1
    write_fields(linker, json.loads(manifest.replace('"precision": "fp32"', '"precision": "int8"')))
    with pytest.raises(ConfigError, match="no ONNX model in int8"):
        Linker.open(linker)
    shutil.rmtree(linker / "encoder")
    shutil.copytree(place / "encoder", linker / "encoder")
    theirs = (place / "linker" / "onoma.json").read_text()
    assert '"precision": "int8"' in theirs
    refit(linker)
    with pytest.raises(MismatchError, match="vectors were made by the encoder"):
        Linker.open(linker)


def test_an_update_opens_the_linkers_encoder_as_the_linker_does(place: Path, release: Path, tmp_path: Path) -> None:
    """From the folder that it was built from, in the precision and with the numbers of a vector that it was."""
    shortened = open_encoder(place / "encoder", precision="int8", dimensions=8)
    build_linker(place / "terminology", shortened, tmp_path / "short")
    for linker in (place / "linker", tmp_path / "short"):
        report = update_linker(linker, release, tmp_path / "new", encoder=place / "encoder", overwrite=True)
        assert report.n_encoded
        updated = Linker.open(tmp_path / "new")
        assert updated.encoder.fingerprint == Linker.open(linker).encoder.fingerprint
        assert updated.manifest.config["names_encoded_in"] == ["int8"]
    same = "is the same, opened otherwise: open it in int8, with its own pooling and max_tokens"
    with pytest.raises(MismatchError, match=rf"{same}\.$"):
        update_linker(place / "linker", release, tmp_path / "x", encoder=place / "encoder", precision="fp32")
    with pytest.raises(MismatchError, match=f"{same}, and keep the first 8 numbers"):
        update_linker(tmp_path / "short", release, tmp_path / "x", encoder=open_encoder(place / "encoder"))
    with pytest.raises(ConfigError, match="give its folder or name"):
        update_linker(place / "linker", release, tmp_path / "x", precision="fp32")
    assert not (tmp_path / "x").exists()


def test_what_names_were_encoded_in_is_known(place: Path, release: Path, tmp_path: Path) -> None:
    """Torch's bf16 counts as fp32, and a linker that was built so says it."""
    linker = tmp_path / "linker"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the processor has no bf16
        build_linker(place / "terminology", open_encoder(place / "base", precision="bf16"), linker)
    config = Linker.open(linker).manifest.config
    assert (config["precision"], config["names_encoded_in"]) == ("fp32", ["bf16"])
    update_linker(linker, release)
    assert Linker.open(linker).manifest.config["names_encoded_in"] == ["bf16", "fp32"]
