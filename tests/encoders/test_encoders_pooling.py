"""The mean without special tokens: packed, padded, written as ONNX and traced, against a loop over Hugging Face.

What all poolings have in common is in the suite over every back end, test_encoders_compliance.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_encoders import FAMILIES, MAX_TOKENS, NAMES, tiny_model, wordpiece, write_tiny
from tokenizers import Tokenizer, processors

from onoma.encoders import locate_encoder, open_encoder, save_encoder
from onoma.encoders.loading import load_packed
from onoma.encoders.onnx_encoder import padded_rows
from onoma.encoders.onnx_export import _PaddedForward
from onoma.encoders.onnx_graph import write_graph
from onoma.encoders.onnx_session import ATTENTION_MASK, INPUT_IDS, NAME_VECTORS
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.packing import pack_lists
from onoma.encoders.pooling import Pooling
from onoma.encoders.tokens import special_tokens_around
from onoma.errors import ConfigError
from onoma.types import FloatArray

ROWS = [
    [2, *np.random.default_rng(length).integers(10, 300, length - 1).tolist()] for length in range(1, MAX_TOKENS + 1)
]
SHUFFLED = [ROWS[row] for row in np.random.default_rng(0).permutation(len(ROWS))]
AROUND = [(1, 1), (0, 1), (0, 2), (2, 1), (0, 0)]


def by_loop(encoder: PackedEncoder, rows: list[list[int]], around: tuple[int, int]) -> FloatArray:
    """Each name alone through Hugging Face's model, its tokens added up one by one."""
    vectors = []
    for row in rows:
        with torch.no_grad():
            states = encoder.model(input_ids=torch.tensor([row])).last_hidden_state[0].double().numpy()
        text = [place for place in range(len(row)) if around[0] <= place < len(row) - around[1]]
        total = np.zeros(states.shape[1])
        for place in text or range(len(row)):
            total += states[place]
        vectors.append(total / len(text or row))
    return np.array(vectors, np.float32)


def encoder_of(family: str, around: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> PackedEncoder:
    monkeypatch.setattr(PackedEncoder, "special_tokens", around)
    return PackedEncoder(tiny_model(family), pooling="mean-nospec", max_tokens=MAX_TOKENS).eval()


@pytest.mark.parametrize("family", [*FAMILIES, "albert"])
def test_packed_vectors_equal_a_loop_over_hugging_face(family: str) -> None:
    encoder = PackedEncoder(tiny_model(family), pooling="mean-nospec", max_tokens=MAX_TOKENS).eval()
    assert encoder.runs_packed == (family != "albert")
    with torch.no_grad():
        found = encoder(pack_lists(SHUFFLED)).numpy()
        alone = np.concatenate([encoder(pack_lists([row])).numpy() for row in SHUFFLED])
    expected = by_loop(encoder, SHUFFLED, (1, 1))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(alone, expected, atol=1e-5)
    encoder.pooling = "mean"
    with torch.no_grad():
        assert np.abs(encoder(pack_lists(SHUFFLED)).numpy() - expected).max() > 0.1


@pytest.mark.parametrize("around", AROUND)
def test_graph_and_traced_module_equal_the_loop(around: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    encoder = encoder_of("bert", around, monkeypatch)
    expected = by_loop(encoder, SHUFFLED, around)
    with torch.no_grad():
        np.testing.assert_allclose(encoder(pack_lists(SHUFFLED)).numpy(), expected, atol=1e-5)
    offsets = np.cumsum([0, *map(len, SHUFFLED)])
    ids, mask = padded_rows(
        offsets, np.concatenate(SHUFFLED).astype(np.int32), np.arange(len(SHUFFLED)), padding_id=0, min_tokens=30
    )
    assert encoder.architecture is not None
    graph = write_graph(encoder.architecture, pooling="mean-nospec", special_tokens=around)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    (by_graph,) = session.run([NAME_VECTORS], {INPUT_IDS: ids, ATTENTION_MASK: mask})
    np.testing.assert_allclose(by_graph, expected, atol=1e-5)
    with torch.no_grad():
        padded = _PaddedForward(encoder)(torch.from_numpy(ids), torch.from_numpy(mask))
    np.testing.assert_allclose(padded.numpy(), expected, atol=1e-5)


def test_gradients_equal_those_of_the_padded_model() -> None:
    encoder = PackedEncoder(tiny_model("bert"), pooling="mean-nospec", max_tokens=MAX_TOKENS).eval()
    weight = torch.randn(len(SHUFFLED), 32, generator=torch.Generator().manual_seed(1))
    offsets = np.cumsum([0, *map(len, SHUFFLED)])
    ids, mask = padded_rows(offsets, np.concatenate(SHUFFLED).astype(np.int32), np.arange(len(SHUFFLED)), padding_id=0)
    gradients = []
    for vectors in (encoder(pack_lists(SHUFFLED)), _PaddedForward(encoder)(*map(torch.from_numpy, (ids, mask)))):
        encoder.zero_grad(set_to_none=True)
        (vectors * weight).sum().backward()
        gradients.append({n: p.grad.clone() for n, p in encoder.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, theirs in gradients[1].items():
        atol = 1e-5 * max(1.0, float(theirs.abs().max()))
        torch.testing.assert_close(gradients[0][name], theirs, atol=atol, rtol=0, msg=name)


TEMPLATES = ["<c> $A <s>", "$A <s>", "$A <s> <c>", "<c> <c> $A <s>", "$A"]


@pytest.mark.parametrize(("around", "template"), list(zip(AROUND, TEMPLATES, strict=True)))
def test_special_tokens_are_counted_where_the_tokeniser_puts_them(around: tuple[int, int], template: str) -> None:
    tokenizer = wordpiece()
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=[("<c>", 2), ("<s>", 3)])
    assert special_tokens_around(tokenizer) == around


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_saved_folder_says_how_it_pools(family: str, tmp_path: Path) -> None:
    base = write_tiny(tmp_path / "base", family)
    model = load_packed(base, pooling="mean-nospec", max_tokens=MAX_TOKENS)
    assert model.special_tokens == (1, 1)
    folder = save_encoder(model, tmp_path / "encoder")
    said = json.loads((folder.path / "1_Pooling" / "config.json").read_text())
    assert said["pooling_mode"] == "mean-nospec"
    assert folder.pooling == folder.said_pooling == "mean-nospec"
    kinds = {locate_encoder(base, pooling=pooling).fingerprint for pooling in ("cls", "mean", "mean-nospec")}
    assert len(kinds) == 3
    found = open_encoder(folder.path).encode(NAMES)
    assert np.isfinite(found).all()
    whole = open_encoder(folder.path, pooling="mean").encode(NAMES)
    np.testing.assert_allclose(found[1], whole[1], atol=1e-5)  # the empty name has nothing but special tokens
    assert np.abs(found[0] - whole[0]).max() > 1e-3


def test_a_special_token_written_in_a_name_is_text(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "tiny", "bert")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = tokenizer.encode("fever [SEP] type").ids
    assert ids.count(3) == 2
    encoder = load_packed(folder, pooling="mean-nospec")
    with torch.no_grad():
        found = encoder(pack_lists([ids])).numpy()
    np.testing.assert_allclose(found, by_loop(encoder, [ids], (1, 1)), atol=1e-5)


def test_a_misspelt_pooling_is_refused(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "tiny", "bert")
    with pytest.raises(ConfigError, match="Did you mean 'mean-nospec'"):
        locate_encoder(folder, pooling="mean-no-spec")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean-nospec", "mean-all"])
def test_other_families_are_traced(tmp_path: Path, pooling: Pooling) -> None:
    model = load_packed(write_tiny(tmp_path / "albert", "albert"), pooling=pooling, max_tokens=MAX_TOKENS)
    folder = save_encoder(model, tmp_path / "out")
    by_onnx, by_torch = (open_encoder(folder.path, backend=backend) for backend in ("onnx", "torch"))
    np.testing.assert_allclose(by_onnx.encode(NAMES), by_torch.encode(NAMES), atol=1e-5)


def test_a_copy_without_manifest_does_not_pool_otherwise_in_silence(tmp_path: Path) -> None:
    made = save_encoder(load_packed(write_tiny(tmp_path / "base", "bert"), pooling="cls"), tmp_path / "out")
    copy = tmp_path / "copy"
    shutil.copytree(made.path, copy, ignore=shutil.ignore_patterns("onoma.json", "encoder.json"))
    with pytest.raises(ConfigError, match="pools by 'cls', not 'mean'"):
        open_encoder(copy, pooling="mean", backend="onnx")
