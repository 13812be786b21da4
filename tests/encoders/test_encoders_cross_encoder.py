from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_encoders import write_tiny

from onoma.artifacts import verify_artifact
from onoma.encoders import onnx_precision
from onoma.encoders.cross_encoder import CrossEncoder, CrossEncoderAbout, fingerprint_of, pair_tokeniser, read_about
from onoma.encoders.cross_encoder_model import load_cross_encoder, new_cross_encoder, score_pairs
from onoma.encoders.cross_encoder_tokens import PairRows
from onoma.encoders.packed import pack
from onoma.errors import ConfigError, DamagedArtifactError, InputError, NotAnArtifactError, ShapeError
from tiny_rerankers import write_reranker

MENTIONS = ["fever", "heart attack", "", "x" * 40, "diabetes, type 2", "heart", "心肌梗死", "type"]
NAMES = ["heart attack ; type", "fever", "diabetes", "a b c d e f g h i j k l m", "", "type 2", "attack", "heart"]
PAIRS = [(mention, name) for mention in MENTIONS for name in NAMES]


def opened(folder: Path, threads: int | None = 1) -> CrossEncoder:
    return CrossEncoder.open(folder, prepare=lambda about: str.lower, threads=threads)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("base") / "bert", "bert")


@pytest.fixture(scope="module")
def folder(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reranker") / "r"
    write_reranker(path, base)
    return path


def all_pairs(folder: Path, about: CrossEncoderAbout) -> PairRows:
    tokeniser = pair_tokeniser(folder, about, prepare=str.lower)
    rows = np.arange(len(PAIRS))
    mentions, names = zip(*PAIRS, strict=True)
    return tokeniser.pairs(tokeniser.mentions(mentions), rows, tokeniser.names(names), rows)


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "distilbert"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_onnx_equals_torch_and_torch_equals_hugging_face(family: str, pooling: str, tmp_path: Path) -> None:
    padding_id = 1 if family == "roberta" else 0
    base = write_tiny(tmp_path / "base", family)
    model = write_reranker(tmp_path / "r", base, pooling=pooling, padding_id=padding_id)
    loaded, about = load_cross_encoder(tmp_path / "r")
    assert has_types(model) == (family == "bert")
    pairs = all_pairs(tmp_path / "r", about)
    rows = np.arange(len(PAIRS))
    with torch.inference_mode():
        ours = score_pairs(loaded, pairs, rows)
        np.testing.assert_allclose(ours, score_pairs(model.eval(), pairs, rows), atol=1e-6)
        expected = [_by_hugging_face(model, pairs, row, pooling) for row in range(len(PAIRS))]
    np.testing.assert_allclose(ours, expected, atol=2e-5)
    mentions, names = zip(*PAIRS, strict=True)
    np.testing.assert_allclose(opened(tmp_path / "r").scores(mentions, names), ours, atol=2e-5)
    assert np.std(ours) > 0.3


def has_types(model: Any) -> bool:
    return bool(model.encoder.architecture.n_token_types > 1)


def _by_hugging_face(model: Any, pairs: PairRows, row: int, pooling: str) -> float:
    place = slice(pairs.offsets[row], pairs.offsets[row + 1])
    ids = torch.from_numpy(pairs.ids[place].astype(np.int64))[None]
    types = {"token_type_ids": torch.from_numpy(pairs.types[place].astype(np.int64))[None]} if has_types(model) else {}
    hidden = model.encoder.model(input_ids=ids, **types).last_hidden_state[0]
    vector = hidden[0] if pooling == "cls" else hidden.mean(0)
    return float(vector @ model.head.weight[0])


def test_the_sides_are_told_apart(folder: Path) -> None:
    loaded, about = load_cross_encoder(folder)
    pairs = all_pairs(folder, about)
    rows = np.arange(len(PAIRS))
    with torch.inference_mode():
        batch = pack(pairs.offsets, pairs.ids, rows=rows, types=pairs.types)
        untyped = loaded(dataclasses.replace(batch, types=None))
        assert (loaded(batch) - untyped).abs().min() > 1e-4


def test_a_score_does_not_depend_on_company_order_or_threads(folder: Path) -> None:
    model = opened(folder)
    mentions, names = (list(side) for side in zip(*PAIRS, strict=True))
    together = model.scores(mentions, names)
    alone = np.array([model.scores([m], [n])[0] for m, n in PAIRS])
    np.testing.assert_allclose(together, alone, rtol=1e-6, atol=1e-6)
    order = np.random.default_rng(0).permutation(len(PAIRS))
    shuffled = model.scores([mentions[row] for row in order], [names[row] for row in order])
    np.testing.assert_allclose(shuffled, together[order], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(opened(folder, threads=2).scores(mentions, names), together, rtol=1e-6, atol=1e-6)
    twice = model.scores([*mentions, *mentions[::-1]], [*names, *names[::-1]])
    np.testing.assert_array_equal(twice[: len(PAIRS)], twice[len(PAIRS) :][::-1])
    assert together.dtype == np.float32
    assert model.scores([], []).shape == (0,)


def test_a_lack_of_memory_is_told_as_such(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("std::bad_alloc")

    scorer = opened(folder)
    monkeypatch.setattr(scorer._session, "_session", SimpleNamespace(run=fail))
    with pytest.raises(MemoryError, match="bad_alloc"):
        scorer.scores(["cold"], ["common cold"])


def test_progress_reaches_the_number_of_distinct_pairs(folder: Path) -> None:
    told: list[tuple[int, int]] = []
    opened(folder).scores(["fever"] * 3, ["heart", "heart", "type"], progress=lambda *done: told.append(done))
    assert told[-1] == (2, 2)


def test_a_context_changes_the_score_and_none_is_a_context_too(base: Path, tmp_path: Path) -> None:
    write_reranker(tmp_path / "r", base, contexts=True, max_tokens=36)
    model = opened(tmp_path / "r")
    contexts = ["heart fever attack", "diabetes fever", "", None]
    scores = model.scores(["fever"] * 4, ["type"] * 4, contexts)
    assert len(np.unique(scores)) == 3
    assert scores[2] == scores[3] == model.scores(["fever"], ["type"])[0]
    loaded, _ = load_cross_encoder(tmp_path / "r")
    assert loaded.encoder.model.config.vocab_size >= 300


def test_marks_get_embeddings_where_there_is_no_room(base: Path) -> None:
    torch.manual_seed(0)
    small, tokenizer = new_cross_encoder(base, pooling="cls", max_tokens=32, dropout=0.3, contexts=True)
    assert tokenizer.get_vocab_size() <= small.encoder.model.config.vocab_size == 300
    assert small.encoder.architecture is not None
    assert small.encoder.architecture.hidden_dropout.p == 0.3


def test_equal_weights_have_equal_fingerprints(base: Path, folder: Path, tmp_path: Path) -> None:
    write_reranker(tmp_path / "same", base)
    write_reranker(tmp_path / "other", base, seed=1)
    write_reranker(tmp_path / "weight", base, weight=0.25)
    same, other, weight = (opened(tmp_path / name).fingerprint for name in ("same", "other", "weight"))
    assert same == opened(folder).fingerprint
    assert len({same, other, weight}) == 3


def test_weights_beside_a_very_large_model_are_in_its_fingerprint(
    base: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a protobuf message can hold; what is left in the message may be the same for two models."""
    monkeypatch.setattr(onnx_precision, "_PROTOBUF_LIMIT", 0)
    write_reranker(tmp_path / "r", base)
    model = opened(tmp_path / "r")
    np.testing.assert_allclose(model.scores(MENTIONS, NAMES), opened(folder).scores(MENTIONS, NAMES), atol=1e-5)
    files = model.manifest.files
    weights = files["onnx/model.onnx.data"].model_copy(update={"sha256": "0" * 64})
    other = model.manifest.model_copy(update={"files": {**files, "onnx/model.onnx.data": weights}})
    assert fingerprint_of(other, model.about) != fingerprint_of(model.manifest, model.about) == model.fingerprint


@pytest.mark.parametrize(
    "file", ["onnx/model.onnx", "model/tokenizer.json", "reranker.json", "head.safetensors", "model/config.json"]
)
@pytest.mark.parametrize("damage", ["missing", "truncated", "changed"])
def test_damage_is_refused(base: Path, tmp_path: Path, file: str, damage: str) -> None:
    write_reranker(tmp_path / "r", base)
    path = tmp_path / "r" / file
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-7] if damage == "truncated" else content[:-7] + b"\0" * 7)
    with pytest.raises(DamagedArtifactError):
        opened(tmp_path / "r")
    with pytest.raises(DamagedArtifactError):
        load_cross_encoder(tmp_path / "r")


def test_what_is_no_reranker_is_refused(base: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAnArtifactError):
        opened(base)
    with pytest.raises(InputError, match="there is nothing here"):
        opened(tmp_path / "none")
    (tmp_path / "reranker.json").write_text(json.dumps({"name": "x"}))
    with pytest.raises(DamagedArtifactError, match="not what describes a reranker"):
        read_about(tmp_path)
    assert verify_artifact(folder).kind == "reranker"
    assert set(load_file(folder / "head.safetensors")) == {"head.weight"}


def test_a_head_of_another_width_is_refused(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_reranker(tmp_path / "r", base)
    save_file({"head.weight": torch.zeros(1, 7)}, tmp_path / "r" / "head.safetensors")
    monkeypatch.setattr("onoma.encoders.cross_encoder_model.open_artifact", lambda *_, **__: None)
    with pytest.raises(DamagedArtifactError, match="not the head of this reranker"):
        load_cross_encoder(tmp_path / "r")


def test_bad_pairs_are_refused(folder: Path) -> None:
    model = opened(folder)
    with pytest.raises(ShapeError, match="found 2 mentions and 1 names"):
        model.scores(["a", "b"], ["c"])
    with pytest.raises(ShapeError, match="and 0 contexts"):
        model.scores(["a"], ["c"], [])
    with pytest.raises(InputError, match="lists of mentions and names"):
        model.scores("a", ["c"])
    with pytest.raises(InputError, match="trained without contexts"):
        model.scores(["a"], ["c"], ["a b"])
    with pytest.raises(InputError, match="lists of mentions and names"):
        model.scores(["a"], ["c"], "x")
    for bad in ([3], [["a"]], [None]):
        with pytest.raises(InputError, match="is no text"):
            model.scores(bad, ["c"])  # type: ignore[arg-type]
        with pytest.raises(InputError, match="is no text"):
            model.scores(["c"], bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"is no text; found nan|field contexts"):
        model.scores(["c"], ["c"], [float("nan")])  # type: ignore[list-item]


def test_other_families_are_refused(tmp_path: Path) -> None:
    base = write_tiny(tmp_path / "albert", "albert")
    with pytest.raises(ConfigError, match="must be of the family of BERT"):
        new_cross_encoder(base, pooling="cls", max_tokens=32, dropout=None, contexts=False)
