"""Recorded passes: filling up and copying anywhere, recordings on a GPU against passes that are not recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from onoma.encoders.attention import tile_on_gpu
from onoma.encoders.packed import PackedBatch, PackedEncoder, _means, pack_lists
from onoma.encoders.pooling import Pooling
from onoma.training.config_parts import Adapter, Lora, Tuning
from onoma.training.graphs import _SIGHTS, RecordedPasses, _copy, _filled, _spacious
from onoma.training.precision import autocast
from onoma.training.tuning import tune

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
VOCABULARY = 40
SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 80,
    "initializer_range": 0.25,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


@given(st.integers(1, 10**6))
def test_tokens_are_filled_up_by_little(n_tokens: int) -> None:
    filled = _filled(n_tokens)
    assert n_tokens <= filled < n_tokens + max(1, n_tokens / 32)
    assert _filled(filled) == filled


def test_a_batch_is_copied_into_one_with_room() -> None:
    large, small = pack_lists([[1, 2, 3, 4], [5, 6]]), pack_lists([[7], [8, 9]])
    place = _spacious(large, 8, 16)
    for batch in (large, small):
        _copy(batch, place)
        assert place.ids.tolist() == batch.ids.tolist() + [0] * (8 - batch.n_tokens)
        assert place.positions.tolist() == batch.positions.tolist() + [0] * (8 - batch.n_tokens)
        assert (place.borders.tolist(), place.restore.tolist()) == (batch.borders.tolist(), batch.restore.tolist())
    assert place.groups == ((2, 16),)


def made(kind: str, pooling: Pooling = "cls") -> PackedEncoder:
    torch.manual_seed(0)
    if kind == "roberta":
        config = transformers.RobertaConfig(**SHAPE, pad_token_id=1)
        return PackedEncoder(transformers.RobertaModel(config, add_pooling_layer=False), pooling=pooling, max_tokens=70)
    model = transformers.BertModel(transformers.BertConfig(**SHAPE), add_pooling_layer=False)
    encoder = PackedEncoder(model, pooling=pooling, max_tokens=70)
    tunings: dict[str, Tuning] = {
        "adapters": Adapter(reduction=4),
        "lora": Lora(rank=4),
    }
    if kind in tunings:
        tune(encoder, tunings[kind])
        for weight in encoder.parameters():  # fresh adapters change nothing, and have small gradients
            if weight.requires_grad:
                torch.nn.init.normal_(weight, std=0.25)
    return encoder


def batches(longest: int) -> list[PackedBatch]:
    rng = np.random.default_rng(0)
    lengths = [rng.integers(1, 12, 50) for _ in range(4)]
    lengths[2][0] = longest
    # Among the tokens is RoBERTa's padding, which a name may hold as text.
    return [pack_lists([rng.integers(0, VOCABULARY, length).tolist() for length in these]) for these in lengths]


@NO_GPU
@pytest.mark.filterwarnings("ignore")  # torch warns of itself as it compiles
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("longest", [16, 25, 64])
@pytest.mark.parametrize(
    ("kind", "pooling"),
    [
        ("bert", "cls"),
        ("bert", "mean"),
        ("bert", "mean-nospec"),
        ("roberta", "cls"),
        ("adapters", "cls"),
        ("lora", "cls"),
    ],
)
def test_recorded_passes_equal_others(kind: str, pooling: Pooling, longest: int, compiled: bool) -> None:
    device = torch.device("cuda")
    encoder = made(kind, pooling).to(device).train()
    names = [name for name, weight in encoder.named_parameters() if weight.requires_grad]
    weights = [weight for weight in encoder.parameters() if weight.requires_grad]

    def encode(batch: PackedBatch) -> torch.Tensor:
        with autocast(device, torch.bfloat16):
            vectors: torch.Tensor = encoder(batch)
        return vectors

    def plain(batch: PackedBatch, pull: torch.Tensor) -> tuple[torch.Tensor, Any]:
        vectors = encode(batch)
        return vectors.detach(), torch.autograd.grad(vectors, weights, pull.to(vectors.dtype), allow_unused=True)

    recorded = RecordedPasses(encoder, encode)
    found: list[Any] = []
    expected: list[Any] = []
    for batch in _SIGHTS * batches(longest):
        on_device = batch.to(device)
        pull = torch.randn(batch.n_names, encoder.width, device=device)
        encoder.compiled = False
        in_turn = plain(on_device, pull)
        encoder.compiled = compiled
        played = recorded.forward(on_device)
        if played is None:
            continue
        own, backward = played
        backward(pull)
        expected.append(in_turn)
        found.append((own.clone(), [None if one.grad is None else one.grad.clone() for one in weights]))
        encoder.zero_grad()
    if tile_on_gpu(longest, 16) is None:
        pytest.skip("our kernels do not run here")
    assert len(found) >= 4
    assert 1 <= len(recorded._recordings) <= 4
    for (own, gradients), (vectors, wanted) in zip(found, expected, strict=True):
        torch.testing.assert_close(own.float(), vectors.float(), rtol=0, atol=0.05)
        for name, gradient, other in zip(names, gradients, wanted, strict=True):
            assert (gradient is None) == (other is None)
            is_rounding = name.endswith("key.bias")  # it adds the same to all scores, so that its gradient is nought
            if gradient is not None and other is not None and not is_rounding and float(other.norm()):
                assert float((gradient - other).norm()) < 0.05 * float(other.norm())


@NO_GPU
def test_what_is_not_recorded() -> None:
    device = torch.device("cuda")
    encoder = made("bert").to(device).train()
    recorded = RecordedPasses(encoder, encoder)
    long, empty, short = (pack_lists(names).to(device) for names in ([[1] * 65], [], [[1]]))
    encoder.pooling = "mean-all"
    for batch in (long, empty, short):
        assert [recorded.forward(batch) for _ in range(_SIGHTS)] == [None] * _SIGHTS
    encoder.pooling = "cls"
    for batch in (long, empty):
        assert [recorded.forward(batch) for _ in range(_SIGHTS)] == [None] * _SIGHTS
    assert [recorded.forward(short) for _ in range(_SIGHTS - 1)] == [None] * (_SIGHTS - 1)


@pytest.mark.parametrize("specials", [(0, 0), (1, 1)])
def test_means_by_borders_equal_those_of_each_name(specials: tuple[int, int]) -> None:
    before, after = specials
    lengths = [2, 7, 1, 3, 3, 20]
    batch = pack_lists([[1] * length for length in lengths])
    place = _spacious(batch, batch.n_tokens + 5, 32)
    _copy(batch, place)
    tokens = torch.randn(place.n_tokens, 4, dtype=torch.float64, requires_grad=True)
    names = tokens[: batch.n_tokens].split_with_sizes(sorted(lengths))
    texts = [name[before : len(name) - after] if len(name) > before + after else name for name in names]
    expected = torch.stack([text.mean(0) for text in texts])
    pull = torch.randn(expected.shape, dtype=torch.float64)
    found = _means(tokens, place, before, after)
    torch.testing.assert_close(found, expected)
    wanted = torch.autograd.grad(expected, tokens, pull)
    torch.testing.assert_close(torch.autograd.grad(found, tokens, pull), wanted)
