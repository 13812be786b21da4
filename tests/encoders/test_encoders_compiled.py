"""Layers that are compiled while they are trained give what they give as they are.

Torch compiles for GPUs; here its tracing and derivation run on the CPU, without (fast) and with (slow) code made of
them.
"""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tiny_encoders import FAMILIES, MAX_TOKENS, tiny_model
from torch import nn

from onoma.encoders import linear, packed
from onoma.encoders.adapters import insert_adapters
from onoma.encoders.lora import insert_lora
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.packing import PackedBatch, pack_lists
from onoma.encoders.pooling import Pooling
from onoma.training.alignment_config import TrainingConfig
from onoma.training.precision import compile_encoder

pytestmark = pytest.mark.filterwarnings("ignore")  # torch warns of itself as it traces


def batch_of(n_names: int) -> PackedBatch:
    rng = np.random.default_rng(n_names)
    return pack_lists([rng.integers(10, 300, rng.integers(2, MAX_TOKENS + 1)) for _ in range(n_names)])


def undropped(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def trained(family: str, pooling: Pooling, tuning: str) -> PackedEncoder:
    model: Any = tiny_model(family)
    if tuning != "all":
        model.requires_grad_(False)
    if tuning == "adapter":
        insert_adapters(model, reduction=4, invertible=True)
    elif tuning == "lora":
        insert_lora(model, rank=4, alpha=8.0, dropout=0.0)
    return PackedEncoder(undropped(model), pooling=pooling, max_tokens=MAX_TOKENS).train()


def vectors_and_gradients(encoder: PackedEncoder, batch: PackedBatch) -> tuple[torch.Tensor, list[torch.Tensor]]:
    encoder.zero_grad(set_to_none=True)
    vectors = encoder(batch)
    (vectors * torch.linspace(-1, 1, vectors.numel()).view_as(vectors)).sum().backward()
    return vectors.detach(), [one.grad for one in encoder.parameters() if one.grad is not None]


def check_equal(encoder: PackedEncoder) -> None:
    for n_names in (40, 1, 17):
        batch = batch_of(n_names)
        encoder.compiled = False
        wanted, wanted_gradients = vectors_and_gradients(encoder, batch)
        encoder.compiled = True
        found, gradients = vectors_and_gradients(encoder, batch)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
        assert len(gradients) == len(wanted_gradients) > 0
        scale = max(float(one.abs().max()) for one in wanted_gradients)
        for mine, theirs in zip(gradients, wanted_gradients, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-5 * scale)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The graphs that were made while the fixture is in use."""
    made: list[str] = []

    def compiler(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        made.append(graph.code)
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    torch._dynamo.reset()
    monkeypatch.setattr(
        packed, "_compiled", functools.cache(lambda part: torch.compile(part, dynamic=True, backend=compiler))
    )
    return made


@pytest.mark.parametrize(
    ("family", "pooling", "tuning"),
    [
        *((family, "cls", "all") for family in FAMILIES),
        ("bert", "mean", "all"),
        ("bert", "cls", "adapter"),
        ("roberta", "mean", "lora"),
    ],
)
def test_compiled_layers_give_the_same(family: str, pooling: Pooling, tuning: str, compilations: list[str]) -> None:
    encoder = trained(family, pooling, tuning)
    check_equal(encoder)
    once = len(compilations)
    assert once
    vectors_and_gradients(encoder, batch_of(23))
    assert len(compilations) == once  # neither the number of names nor that of tokens asks for another


def test_layers_share_what_was_compiled(compilations: list[str]) -> None:
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=6, num_attention_heads=4, intermediate_size=64, vocab_size=300
    )
    encoder = PackedEncoder(undropped(transformers.BertModel(config)), pooling="cls", max_tokens=MAX_TOKENS).train()
    encoder.compiled = True
    encoder(batch_of(30))
    assert 0 < len(compilations) < config.num_hidden_layers


def test_only_training_is_compiled(compilations: list[str]) -> None:
    encoder = trained("bert", "cls", "all").eval()
    encoder.compiled = True
    encoder(batch_of(9)).sum().backward()
    assert not compilations


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles for a CPU with g++")
def test_code_for_a_cpu_gives_the_same() -> None:
    torch._dynamo.reset()
    check_equal(trained("bert", "cls", "all"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles for a CPU with g++")
def test_code_of_one_precision_is_not_taken_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As versions of torch before 2.13 do with what an earlier run left on disk."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(torch._functorch.config, "enable_autograd_cache", True)
    monkeypatch.setattr(linear, "has_native_bf16", lambda: False)  # products as on a GPU
    encoder = trained("bert", "cls", "all")
    config = TrainingConfig(steps=1, compile=True)
    batch = batch_of(11)
    for precision in (torch.bfloat16, torch.float16):
        compile_encoder(config, encoder)
        with torch.autocast("cpu", dtype=precision):
            found = encoder(batch)
            encoder.compiled = False
            wanted = encoder(batch)
        assert found.dtype is wanted.dtype
        torch.testing.assert_close(found.float(), wanted.float(), rtol=0, atol=0.05)
