"""One suite over every back end, and the folders they are saved in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
import torch
from tiny_encoders import FAMILIES, MAX_TOKENS, NAMES, OTHER_FAMILIES, write_tiny
from tokenizers import Tokenizer
from tokenizers.models import BPE, Unigram, WordPiece
from tokenizers.pre_tokenizers import Metaspace

from manifests import read_fields, write_fields
from onoma.artifacts import verify_artifact
from onoma.encoders import Encoder, Pooling, export_encoder, locate_encoder, open_encoder, save_encoder
from onoma.encoders.averages import average_encoders
from onoma.encoders.loading import load_packed
from onoma.encoders.onnx_encoder import OnnxEncoder
from onoma.encoders.onnx_files import has_its_weights
from onoma.encoders.tokens import known_shares, load_tokenizer, tokenizer_fingerprint, unknown_id
from onoma.encoders.torch_encoder import TorchEncoder
from onoma.errors import ArtifactExistsError, ConfigError, DamagedArtifactError, InputError, NotAnArtifactError

Vectors = npt.NDArray[np.float32]
CASES = [(family, pooling) for family in FAMILIES for pooling in ("cls", "mean")]
CASES += [("bert", "mean-nospec"), ("roberta", "mean-nospec"), ("bert", "mean-all")]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An Onoma folder of each family and pooling."""
    family, pooling = request.param
    folder = tmp_path_factory.mktemp("saved")
    model = load_packed(write_tiny(folder / "base", family), pooling=pooling, max_tokens=MAX_TOKENS)
    save_encoder(model, folder / "encoder", seed=7, config={"recipe": "none"}, files={"train.json": "{}"})
    return folder / "encoder"


@pytest.fixture(params=["onnx", "torch"])
def encoder(request: pytest.FixtureRequest, saved: Path) -> Encoder:
    opened = open_encoder(saved, backend=request.param)
    assert isinstance(opened, OnnxEncoder if request.param == "onnx" else TorchEncoder)
    return opened


def by_hugging_face(folder: Path, pooling: str) -> Vectors:
    """The oracle: transformers' tokeniser and model, one name at a time."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    vectors = []
    for name in NAMES:
        clean = name.replace("\ud800", "\ufffd")
        padding = "max_length" if pooling == "mean-all" else False
        tokens = tokenizer(
            clean,
            truncation=True,
            max_length=MAX_TOKENS,
            padding=padding,
            return_tensors="pt",
            return_token_type_ids=False,
        )
        with torch.no_grad():
            states = model(**tokens).last_hidden_state[0]
        if pooling == "mean-nospec" and len(states) > 2:
            states = states[1:-1]
        vector = states[0] if pooling == "cls" else states.mean(0)
        vectors.append((vector / vector.norm()).numpy())
    return np.stack(vectors)


def test_vectors_equal_hugging_face(encoder: Encoder) -> None:
    found = encoder.encode(NAMES)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_hugging_face(encoder.folder.path, encoder.folder.pooling), atol=1e-5)


def test_order_and_duplicates(encoder: Encoder) -> None:
    vectors = encoder.encode(NAMES)
    backwards = encoder.encode(NAMES[::-1])
    np.testing.assert_allclose(backwards[::-1], vectors, atol=1e-5)
    assert np.array_equal(vectors[0], vectors[13])
    assert not np.allclose(vectors[0], vectors[3], atol=1e-3)


def test_company_changes_no_vector(encoder: Encoder) -> None:
    together = encoder.encode(NAMES)
    alone = np.concatenate([encoder.encode([name]) for name in NAMES])
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_several_threads_may_ask(encoder: Encoder) -> None:
    vectors = encoder.encode(NAMES)
    with ThreadPoolExecutor(4) as threads:
        for again in threads.map(lambda _: encoder.encode(NAMES), range(8)):
            np.testing.assert_allclose(again, vectors, atol=1e-5)


def test_no_names(encoder: Encoder) -> None:
    calls: list[tuple[int, int]] = []
    assert encoder.encode([], progress=lambda *call: calls.append(call)).shape == (0, encoder.width)
    assert calls == []


def test_progress_ends_at_the_total(encoder: Encoder) -> None:
    calls: list[tuple[int, int]] = []
    encoder.encode(NAMES * 3, progress=lambda *call: calls.append(call))
    done = [call[0] for call in calls]
    assert done == sorted(set(done))
    assert calls[-1] == (51, 51)
    assert {call[1] for call in calls} == {51}


def test_unit_length_unless_asked_otherwise(encoder: Encoder) -> None:
    raw = encoder.encode(NAMES, unit_length=False)
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    assert np.abs(lengths - 1).max() > 0.1
    np.testing.assert_allclose(encoder.encode(NAMES), raw / lengths, atol=1e-5)


def test_one_string_and_what_is_no_string_are_refused(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="put it in a list"):
        encoder.encode("fever")
    with pytest.raises(InputError, match="name 1 is not text"):
        encoder.encode(["fever", None])  # type: ignore[list-item]


READ = {
    **{"heart attack": True, "heart 炎": True, "heart 🧠": True, "heart‽": True, "🧠 heart 🧠🧠": True},
    **{"": False, "\u200b": False, "肺炎": False, "🧠": False, "a 肺炎": False, "half \ud83e": True},
}
"""Texts, and whether a tokeniser of English words and letters can read them."""


def test_what_can_be_read(encoder: Encoder) -> None:
    texts = [*READ, "x" * 500, "[UNK]", "a 肺", "h 肺炎 eart", "?"]
    found = encoder.can_read(texts).tolist()
    tokenizer = encoder.folder.load_tokenizer()
    for text, can_read in zip(texts, found, strict=True):
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        encoding = tokenizer.encode(clean, add_special_tokens=False)
        known, all_of_it = [], []
        for token, (begin, end) in zip(encoding.tokens, encoding.offsets, strict=True):
            letters = [sign for sign in clean[begin:end] if sign.isalnum()]
            all_of_it += letters
            known += letters if token != "[UNK]" else []
        if not all_of_it:
            known, all_of_it = [token for token in encoding.tokens if token != "[UNK]"], encoding.tokens
        assert can_read == (2 * len(known) > len(all_of_it)), text
    if isinstance(tokenizer.model, WordPiece):
        assert found[: len(READ)] == list(READ.values())
    assert encoder.can_read([]).tolist() == []
    with pytest.raises(InputError, match="not text"):
        encoder.can_read(["heart", 3])  # type: ignore[list-item]


@pytest.mark.parametrize("unknown", ["<unk>", "[UNK]"])
def test_what_a_unigram_model_can_read(unknown: str) -> None:
    pieces = [("▁heart", -1.0), (unknown, 0.0), ("▁", -2.0), ("▁lung", -1.5)]
    tokenizer = Tokenizer(Unigram(pieces, unk_id=1))
    tokenizer.pre_tokenizer = Metaspace()
    assert unknown_id(tokenizer) == 1
    shares = known_shares(tokenizer, ["heart lung", "heart 肺", "肺", "🧠", ""], 1).tolist()
    assert shares == [1.0, pytest.approx(5 / 6), 0.5, 0.5, 0.0]  # "▁" stands for the letter behind it too
    assert unknown_id(Tokenizer(BPE())) is None


def test_both_back_ends_are_the_same_encoder(saved: Path) -> None:
    by_onnx, by_torch = open_encoder(saved, backend="onnx"), open_encoder(saved, backend="torch")
    assert by_onnx.fingerprint == by_torch.fingerprint
    assert (by_onnx.width, by_onnx.max_tokens, by_onnx.name) == (32, MAX_TOKENS, "encoder")
    np.testing.assert_allclose(by_onnx.encode(NAMES), by_torch.encode(NAMES), atol=1e-5)
    assert isinstance(open_encoder(saved), OnnxEncoder)
    assert isinstance(open_encoder(saved, precision="bf16"), TorchEncoder)


def test_bf16_is_near(saved: Path) -> None:
    exact = open_encoder(saved).encode(NAMES)
    rough = open_encoder(saved, precision="bf16").encode(NAMES)
    assert rough.dtype == np.float32
    assert (exact * rough).sum(1).min() > 0.99
    assert not np.array_equal(exact, rough)


def test_bf16_where_it_is_slow_is_warned_of(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.encoders.precision.has_native_bf16", lambda _: False)
    with pytest.warns(UserWarning, match="slower than fp32"):
        open_encoder(saved, precision="bf16")


@pytest.mark.parametrize(("family", "dtype"), [("bert", torch.bfloat16), ("albert", torch.float32)])
def test_bf16_turns_only_models_that_run_packed(family: str, dtype: torch.dtype, tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / family, family)
    exact = open_encoder(folder, backend="torch").encode(NAMES)
    model = load_packed(folder)
    rough = TorchEncoder(model, precision="bf16").encode(NAMES)
    assert {weight.dtype for weight in model.parameters()} == {dtype}
    assert (exact * rough).sum(1).min() > 0.99
    assert not np.allclose(exact, rough, atol=1e-5)


def test_bf16_needs_the_weights(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "thin")
    (tmp_path / "thin" / "model.safetensors").unlink()
    (tmp_path / "thin" / "onoma.json").unlink()
    with pytest.raises(DamagedArtifactError, match=r"its onoma\.json is missing"):  # it may say what else is needed
        open_encoder(tmp_path / "thin", precision="bf16")
    (tmp_path / "thin" / "encoder.json").unlink()
    with pytest.raises(ConfigError, match=r"holds only the ONNX model.*precision='fp32'"):
        open_encoder(tmp_path / "thin", precision="bf16")


def test_a_lack_of_memory_is_not_told_as_a_model_that_cannot_be_run(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("Failed to allocate memory for requested buffer of size 9\nstd::bad_alloc")

    encoder = open_encoder(saved, backend="onnx")
    assert isinstance(encoder, OnnxEncoder)
    monkeypatch.setattr(encoder._session, "_session", SimpleNamespace(run=fail))
    with pytest.raises(MemoryError, match="requested buffer of size 9 std::bad_alloc"):
        encoder.encode(NAMES)
    monkeypatch.setattr(onnxruntime, "InferenceSession", fail)
    with pytest.raises(MemoryError, match="requested buffer"):
        open_encoder(saved, backend="onnx")


def test_save_load_save_is_identical(saved: Path, tmp_path: Path) -> None:
    again = save_encoder(load_packed(saved), tmp_path / "encoder", files={"train.json": "{}"})
    assert again.fingerprint == locate_encoder(saved).fingerprint
    assert np.array_equal(open_encoder(again.path).encode(NAMES), open_encoder(saved).encode(NAMES))
    for file in ("model.safetensors", "onnx/model.onnx", "modules.json", "1_Pooling/config.json", "tokenizer.json"):
        assert (saved / file).read_bytes() == (again.path / file).read_bytes(), file


def test_sentence_transformers_opens_it_with_equal_vectors(saved: Path) -> None:
    pooling = json.loads((saved / "1_Pooling" / "config.json").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of that library about itself
        from sentence_transformers import SentenceTransformer

        if "pooling_mode" in pooling:
            with pytest.raises(ValueError, match=pooling["pooling_mode"]):
                SentenceTransformer(str(saved), device="cpu")
            return
        theirs = SentenceTransformer(str(saved), device="cpu").encode(
            [name.replace("\ud800", "\ufffd") for name in NAMES], show_progress_bar=False
        )
    np.testing.assert_allclose(open_encoder(saved).encode(NAMES), theirs, atol=1e-5)


def test_manifest_says_what_it_was_made_with(saved: Path) -> None:
    manifest = verify_artifact(saved)
    assert (manifest.kind, manifest.seed, manifest.config) == ("encoder", 7, {"recipe": "none"})
    assert "train.json" in manifest.files


# ---- one family suffices from here on


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain Hugging Face folder."""
    return write_tiny(tmp_path_factory.mktemp("plain") / "tiny-bert", "bert")


@pytest.mark.parametrize("path", ["../beside.txt", "a/../../beside.txt", "/beside.txt"])
def test_files_are_added_to_the_own_folder_alone(plain: Path, tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match=r"beside\.txt' is outside"):
        save_encoder(load_packed(plain), tmp_path / "out", files={path: "text"})
    assert not list(tmp_path.iterdir())


def test_plain_folder_takes_cls_and_the_papers_length(plain: Path) -> None:
    folder = locate_encoder(plain)
    assert (folder.pooling, folder.max_tokens, folder.name) == ("cls", 25, "tiny-bert")
    assert locate_encoder(plain, pooling="mean", max_tokens=9).max_tokens == 9


def test_export_keeps_the_fingerprint_and_can_leave_the_weights_out(plain: Path, tmp_path: Path) -> None:
    full = export_encoder(plain, tmp_path / "full")
    thin = export_encoder(full, tmp_path / "thin", onnx_only=True)
    assert locate_encoder(plain).fingerprint == full.fingerprint == thin.fingerprint
    assert full.name == thin.name == "tiny-bert"
    assert not list(thin.path.glob("*.safetensors"))
    expected = open_encoder(plain).encode(NAMES)
    np.testing.assert_allclose(open_encoder(thin.path).encode(NAMES), expected, atol=1e-5)
    with pytest.raises(InputError, match="only the ONNX model"):
        open_encoder(thin.path, backend="torch")
    moved = tmp_path / "elsewhere"
    shutil.move(thin.path, moved)
    assert open_encoder(moved).fingerprint == full.fingerprint


def test_export_of_an_open_encoder_keeps_its_options(plain: Path, tmp_path: Path) -> None:
    opened = open_encoder(plain, pooling="mean", max_tokens=7)
    exported = export_encoder(opened.folder, tmp_path / "encoder")
    assert (exported.pooling, exported.max_tokens) == ("mean", 7)
    assert exported.fingerprint == opened.fingerprint != locate_encoder(plain).fingerprint
    np.testing.assert_allclose(open_encoder(exported.path).encode(NAMES), opened.encode(NAMES), atol=1e-5)


def test_the_mentions_it_was_trained_on_are_told_by_their_checksum(plain: Path, tmp_path: Path) -> None:
    own, merged, base = "0" * 64, "1" * 64, "2" * 64
    config: dict[str, Any] = {"pairs": {"mentions_fingerprint": own}}
    made = save_encoder(load_packed(plain), tmp_path / "made", config=config)
    copy = export_encoder(made, tmp_path / "copy", onnx_only=True)
    assert [one.trained_mentions for one in (locate_encoder(plain), made, copy)] == [set(), {own}, {own}]
    config = {"pairs": {"merged": [{"mentions_fingerprint": merged}, {}]}, "trained_mentions": [base]}
    other = save_encoder(load_packed(plain), tmp_path / "other", config=config)
    assert other.trained_mentions == {merged, base}
    averaged = average_encoders([made.path, other.path], tmp_path / "averaged")
    assert averaged.trained_mentions == {own, merged, base}


def test_the_fingerprint_of_the_tokeniser_is_written_beside_it(plain: Path, tmp_path: Path) -> None:
    made = export_encoder(plain, tmp_path / "made")
    written = json.loads((made.path / "encoder.json").read_text())["tokenizer_fingerprint"]
    assert written == tokenizer_fingerprint(load_tokenizer(made.path)) == locate_encoder(plain).tokenizer_fingerprint
    opened = locate_encoder(made.path)
    file = made.path / "tokenizer.json"
    file.write_text(file.read_text().replace("fever", "reefs"))
    with pytest.raises(DamagedArtifactError, match=r"content of tokenizer\.json has changed"):
        _ = opened.tokenizer_fingerprint


def test_fingerprint_follows_weights_tokeniser_pooling_and_length(plain: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(plain, other)
    assert locate_encoder(other).fingerprint == locate_encoder(plain).fingerprint
    rules = json.loads((other / "tokenizer.json").read_text())
    rules["truncation"] = {"max_length": 5, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    (other / "tokenizer.json").write_text(json.dumps(rules))
    assert locate_encoder(other).fingerprint == locate_encoder(plain).fingerprint
    rules["normalizer"]["lowercase"] = False
    (other / "tokenizer.json").write_text(json.dumps(rules))
    kinds = {
        locate_encoder(plain).fingerprint,
        locate_encoder(other).fingerprint,
        locate_encoder(plain, pooling="mean").fingerprint,
        locate_encoder(plain, max_tokens=9).fingerprint,
    }
    assert len(kinds) == 4


def test_trained_weights_are_what_is_saved(plain: Path, tmp_path: Path) -> None:
    model = load_packed(plain)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01)
    saved_folder = save_encoder(model, tmp_path / "trained", max_tokens=12)
    assert saved_folder.max_tokens == 12
    assert saved_folder.fingerprint != model.fingerprint
    before, after = open_encoder(plain, max_tokens=12).encode(NAMES), open_encoder(saved_folder.path).encode(NAMES)
    assert np.abs(before - after).max() > 1e-3


@pytest.mark.parametrize("trains", [False, True])
def test_saving_leaves_the_encoder_in_its_mode(plain: Path, tmp_path: Path, trains: bool) -> None:
    """Models that do not run packed, as with this pooling, would else drop a part of their states afterwards."""
    encoder = load_packed(plain, pooling="mean-all", dropout=0.5).train(trains)
    save_encoder(encoder, tmp_path / "e")
    assert {module.training for module in encoder.modules()} == {trains}


def test_a_graph_that_disagrees_with_torch_is_never_saved(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onoma.encoders import onnx_export, onnx_graph
    from onoma.errors import MismatchError

    wrong = load_packed(plain, pooling="mean")
    assert wrong.architecture is not None
    graph = onnx_graph.write_graph(wrong.architecture, pooling="mean")
    monkeypatch.setattr(onnx_export, "write_graph", lambda parts, **_: graph)
    with pytest.raises(MismatchError, match="other vectors than torch"):
        save_encoder(load_packed(plain, pooling="cls"), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_is_taken_is_not_overwritten_unless_asked(plain: Path, tmp_path: Path) -> None:
    export_encoder(plain, tmp_path / "out", onnx_only=True)
    with pytest.raises(ArtifactExistsError):
        export_encoder(plain, tmp_path / "out")
    export_encoder(plain, tmp_path / "out", overwrite=True)
    assert locate_encoder(tmp_path / "out").weights


def test_damaged_and_foreign_folders_are_refused(plain: Path, tmp_path: Path) -> None:
    export_encoder(plain, tmp_path / "out")
    weights = tmp_path / "out" / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1])
    with pytest.raises(DamagedArtifactError, match=r"model\.safetensors"):
        open_encoder(tmp_path / "out")
    weights.write_bytes(content)
    write_fields(tmp_path / "out", {**read_fields(tmp_path / "out"), "kind": "linker"})
    with pytest.raises(NotAnArtifactError, match="linker"):
        open_encoder(tmp_path / "out")


def test_options_that_exclude_each_other(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no onnx/model\.onnx"):
        open_encoder(plain, backend="onnx")
    export_encoder(plain, tmp_path / "out")
    with pytest.raises(ConfigError, match="not bf16"):
        open_encoder(tmp_path / "out", backend="onnx", precision="bf16")
    with pytest.raises(ConfigError, match="not 'mean'"):
        open_encoder(tmp_path / "out", backend="onnx", pooling="mean")
    assert isinstance(open_encoder(tmp_path / "out", pooling="mean"), TorchEncoder)
    with pytest.raises(ConfigError, match="Did you mean 'torch'"):
        open_encoder(plain, backend="torhc")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="Did you mean 'bf16'"):
        open_encoder(plain, precision="bf61")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="Did you mean 'mean'"):
        open_encoder(plain, pooling="meen")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="from 3 to 40"):
        open_encoder(plain, max_tokens=41)


def test_foreign_onnx_model_is_pooled_here(plain: Path, tmp_path: Path) -> None:
    """A hub folder's own export gives all tokens' vectors and may want token types."""
    from onnx import TensorProto, helper, numpy_helper, save_model

    folder = tmp_path / "foreign"
    shutil.copytree(plain, folder)
    table = np.random.default_rng(0).standard_normal((300, 32)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["input_ids", "token_type_ids"], ["rows"]),
            helper.make_node("Gather", ["table", "rows"], ["last_hidden_state"]),
        ],
        "words",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "l"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["n", "l", 32])],
        [numpy_helper.from_array(table, "table")],
    )
    (folder / "onnx").mkdir()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save_model(model, folder / "onnx" / "model.onnx")
    tokenizer = locate_encoder(folder).load_tokenizer()
    ids = {name: tokenizer.encode(name).ids for name in ("fever", "heart attack type")}
    poolings: tuple[Pooling, ...] = ("cls", "mean", "mean-nospec", "mean-all")
    for pooling in poolings:
        found = open_encoder(folder, pooling=pooling, max_tokens=9).encode(list(ids), unit_length=False)
        for vector, row in zip(found, ids.values(), strict=True):
            tokens = row[1:-1] if pooling == "mean-nospec" else row
            states = table[tokens + [0] * (9 - len(row) if pooling == "mean-all" else 0)]
            np.testing.assert_allclose(vector, states[0] if pooling == "cls" else states.mean(0), atol=1e-5)
    (folder / "onnx" / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(DamagedArtifactError, match="not an ONNX model"):
        open_encoder(folder)


def write_with_weights_beside(plain: Path, folder: Path, location: str) -> Path:
    """A plain folder with the ONNX model that Onoma exports of it, its weights in a file of their own."""
    import onnx

    own = export_encoder(plain, folder.with_name(f"{folder.name}-own"))
    shutil.copytree(plain, folder)
    (folder / "onnx").mkdir()
    model = onnx.load(own.path / "onnx" / "model.onnx")
    large: dict[str, Any] = {"save_as_external_data": True, "location": location, "size_threshold": 100}
    onnx.save_model(model, folder / "onnx" / "model.onnx", **large)
    return folder / "onnx" / location


def test_foreign_onnx_model_without_its_weights_leaves_the_word_to_torch(plain: Path, tmp_path: Path) -> None:
    """A model above 2 GB has its weights in a file of their own."""
    expected = open_encoder(plain, backend="torch").encode(["fever"])
    folder = tmp_path / "foreign"
    data = write_with_weights_beside(plain, folder, "model.onnx_data")
    assert isinstance(open_encoder(folder), OnnxEncoder)
    data.unlink()
    for is_linked in (False, True):
        if is_linked:  # to what is not there
            data.symlink_to(tmp_path / "blob")
        encoder = open_encoder(folder)
        assert not isinstance(encoder, OnnxEncoder)
        np.testing.assert_allclose(encoder.encode(["fever"]), expected, atol=1e-6)
        with pytest.raises(ConfigError, match="not all its weights"):
            open_encoder(folder, backend="onnx")
    for weights in locate_encoder(folder).weights:
        weights.unlink()
    with pytest.raises(DamagedArtifactError, match=r"can be run \(.*/onnx/model\.onnx_data"):
        open_encoder(folder)


@pytest.mark.parametrize("has_other_weights", [True, False])
def test_weights_beside_a_foreign_onnx_model_may_be_links_as_in_the_hubs_cache(
    has_other_weights: bool, plain: Path, tmp_path: Path
) -> None:
    folder, blobs = tmp_path / "snapshot", tmp_path / "blobs"
    data = write_with_weights_beside(plain, folder, "model.onnx_data")
    expected = open_encoder(folder, backend="onnx").encode(["fever"])
    blobs.mkdir()
    if not has_other_weights:
        (folder / "model.safetensors").unlink()
    for file in (data, data.with_name("model.onnx")):
        shutil.move(file, blobs / file.name)
        file.symlink_to(Path("..", "..", "blobs", file.name))
    encoder = open_encoder(folder)
    assert isinstance(encoder, OnnxEncoder)
    np.testing.assert_array_equal(encoder.encode(["fever"]), expected)
    subprocess.run([sys.executable, "-c", _FORKED, folder, "onnx"], check=True, timeout=60)


def test_an_onnx_model_gets_no_weights_from_outside_its_folder(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    folder, elsewhere = tmp_path / "foreign", tmp_path / "elsewhere"
    data = write_with_weights_beside(plain, folder, "model.onnx_data")
    shutil.move(data, elsewhere)
    file = folder / "onnx" / "model.onnx"
    model = onnx.load(file, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../../elsewhere"
    file.write_bytes(model.SerializeToString())
    assert not isinstance(open_encoder(folder), OnnxEncoder)
    monkeypatch.chdir(file.parent)
    assert not has_its_weights(Path(file.name))
    (folder / "model.safetensors").unlink()
    if hasattr(onnxruntime.SessionOptions(), "add_external_initializers_from_files_in_memory"):  # before, it followed
        with pytest.raises(DamagedArtifactError, match="not an ONNX model that can be run"):
            open_encoder(folder)


@pytest.mark.slow
@pytest.mark.parametrize("family", [family for family in OTHER_FAMILIES if family != "canine"])
def test_other_families_are_exported_by_tracing(family: str, tmp_path: Path) -> None:
    folder = export_encoder(write_tiny(tmp_path / "plain", family), tmp_path / "out")
    by_onnx, by_torch = open_encoder(folder.path), open_encoder(folder.path, backend="torch")
    assert isinstance(by_onnx, OnnxEncoder)
    np.testing.assert_allclose(by_onnx.encode(NAMES), by_torch.encode(NAMES), atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", pytest.param("silu", marks=pytest.mark.slow)])  # the second is traced
def test_other_activations_are_exported(activation: str, tmp_path: Path) -> None:
    plain = write_tiny(tmp_path / "plain", "bert")
    config = json.loads((plain / "config.json").read_text())
    (plain / "config.json").write_text(json.dumps({**config, "hidden_act": activation}))
    save_encoder(load_packed(plain), tmp_path / "e")
    expected = open_encoder(plain, backend="torch").encode(NAMES)
    np.testing.assert_allclose(open_encoder(tmp_path / "e", backend="onnx").encode(NAMES), expected, atol=1e-5)


def test_a_family_that_does_not_run_is_refused_in_words(tmp_path: Path) -> None:
    plain = write_tiny(tmp_path / "plain", "canine")
    with pytest.raises(InputError, match=r"does not run on names alone.*take one of another family, such as BERT's"):
        export_encoder(plain, tmp_path / "out")
    # In torch's words: it was not traced first, which takes a hundred times as long.
    with pytest.raises(ConfigError, match=r"'canine' does not run.*\(max_pool1d.*Take a base of another family"):
        export_encoder(locate_encoder(plain, pooling="mean"), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]


def test_a_tokeniser_that_may_give_no_token_gives_the_vector_zero(plain: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(plain, bare)
    rules = json.loads((bare / "tokenizer.json").read_text())
    rules["post_processor"] = None
    (bare / "tokenizer.json").write_text(json.dumps(rules))
    export_encoder(bare, tmp_path / "out")
    calls: list[tuple[int, int]] = []
    vectors = open_encoder(tmp_path / "out").encode(["", "fever", " "], progress=lambda *call: calls.append(call))
    assert np.linalg.norm(vectors, axis=1).round(5).tolist() == [0, 1, 0]
    assert calls[-1] == (3, 3)


def test_onnx_encoding_imports_neither_torch_nor_transformers(plain: Path, tmp_path: Path) -> None:
    export_encoder(plain, tmp_path / "out", onnx_only=True)
    code = (
        "import sys; from onoma.encoders import open_encoder; "
        "assert open_encoder(sys.argv[1]).encode(['x']).shape == (1, 32); "
        "print(sorted({'torch', 'transformers', 'onnx', 'sentence_transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "out"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


_FORKED = """
import os, sys, numpy as np
from onoma.encoders import open_encoder
names = ["heart attack and " * (number % 9) + "flu" for number in range(3000)]
encoder = open_encoder(sys.argv[1], backend=sys.argv[2])
if sys.argv[2] == "torch":
    import torch
    torch.set_num_threads(3)
expected = encoder.encode(names)
child = os.fork()
if child == 0:
    os._exit(0 if np.allclose(encoder.encode(names), expected, atol=1e-5) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_a_forked_process_does_not_wait_for_threads_of_its_parent(backend: str, tmp_path: Path) -> None:
    export_encoder(write_tiny(tmp_path / "base", "bert"), tmp_path / "own")
    command = [sys.executable, "-c", _FORKED, str(tmp_path / "own"), backend]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
