"""Attention and products of the packed encoder against plain loops and torch's own."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import torch
from torch import Tensor

from onoma.encoders import attention
from onoma.encoders.attention import PackedAttention
from onoma.encoders.dropout import Dropout
from onoma.encoders.linear import linear
from onoma.encoders.precision import has_native_bf16

GROUPS = ((2, 1), (3, 4), (1, 7))
LENGTHS = [length for names, length in GROUPS for _ in range(names)]
N_TOKENS = sum(LENGTHS)
N_HEADS, WIDTH, SPARE = 2, 8, 3

needs_bf16 = pytest.mark.skipif(not has_native_bf16(), reason="this processor has no bf16 products")


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def by_loops(query: Tensor, key_value: Tensor, *, first_only: bool) -> Tensor:
    """One name and one head at a time."""
    gathered = torch.zeros_like(query)
    head = WIDTH // N_HEADS
    q_first = kv_first = 0
    for length in LENGTHS:
        asking = 1 if first_only else length
        for number in range(N_HEADS):
            columns = slice(number * head, (number + 1) * head)
            q = query[q_first : q_first + asking, columns]
            k = key_value[kv_first : kv_first + length, :WIDTH][:, columns]
            v = key_value[kv_first : kv_first + length, WIDTH:][:, columns]
            gathered[q_first : q_first + asking, columns] = torch.softmax(q @ k.T / head**0.5, -1) @ v
        q_first, kv_first = q_first + asking, kv_first + length
    return gathered


def attend(query: Tensor, key_value: Tensor, *, first_only: bool, dropout: float = 0.0) -> Tensor:
    borders = torch.tensor([0, *LENGTHS]).cumsum(0)
    one_batch = PackedAttention(GROUPS, n_heads=N_HEADS, dropout=Dropout(dropout), borders=borders)
    if first_only:
        return one_batch.of_first(query, key_value)
    return one_batch.of_all(torch.cat([query, key_value], 1))


def inputs(*, first_only: bool) -> tuple[Tensor, Tensor]:
    n_queries = len(LENGTHS) if first_only else N_TOKENS + SPARE
    return 3 * drawn(n_queries, WIDTH), 3 * drawn(N_TOKENS + SPARE, 2 * WIDTH, seed=1)


@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize("trained", [False, True])
def test_attention_equals_loops(trained: bool, first_only: bool) -> None:
    query, key_value = inputs(first_only=first_only)
    expected = by_loops(query, key_value, first_only=first_only)
    found = attend(query.requires_grad_(trained), key_value, first_only=first_only)
    assert found.requires_grad == trained
    torch.testing.assert_close(found.detach(), expected, atol=1e-6, rtol=1e-5)


@needs_bf16
@pytest.mark.parametrize("first_only", [False, True])
def test_attention_is_computed_in_fp32_whatever_it_is_given(first_only: bool) -> None:
    query, key_value = (tensor.bfloat16() for tensor in inputs(first_only=first_only))
    expected = by_loops(query.float(), key_value.float(), first_only=first_only)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = attend(query, key_value, first_only=first_only)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.detach(), expected.bfloat16(), atol=0, rtol=0.01)


@pytest.mark.parametrize("first_only", [False, True])
def test_the_kernel_of_variable_length_is_given_the_names(first_only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(
        query: Tensor, key: Tensor, value: Tensor, q_borders: Tensor, k_borders: Tensor, *rest: Any, **flags: Any
    ) -> tuple[Tensor, ...]:
        assert rest == (1 if first_only else 7, 7, 0.25)
        assert flags == {"is_causal": False, "return_debug_mask": False}
        assert q_borders.dtype == k_borders.dtype == torch.int32
        gathered = torch.zeros_like(query)
        for number in range(len(q_borders) - 1):
            q = query[q_borders[number] : q_borders[number + 1]].transpose(0, 1)
            k = key[k_borders[number] : k_borders[number + 1]].transpose(0, 1)
            v = value[k_borders[number] : k_borders[number + 1]].transpose(0, 1)
            weights = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, -1)
            gathered[q_borders[number] : q_borders[number + 1]] = (weights @ v).transpose(0, 1)
        return (gathered,)

    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", kernel)
    monkeypatch.setattr(attention, "_has_flash", lambda *_: True)
    query, key_value = inputs(first_only=first_only)
    query, key_value = query[: len(query) if first_only else N_TOKENS], key_value[:N_TOKENS]
    found = attend(query, key_value, first_only=first_only, dropout=0.25)
    torch.testing.assert_close(found, by_loops(query, key_value, first_only=first_only), atol=1e-6, rtol=1e-5)


def test_what_keeps_our_kernels_from_a_gpu_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(name: str) -> Any:
        raise RuntimeError("no\n  compiler")

    attention._kernels.cache_clear()
    try:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
        monkeypatch.setattr(importlib, "import_module", refuses)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))
        with pytest.warns(UserWarning, match="a step on the GPU takes about twice as long: no compiler. It needs a C"):
            assert attention.tile_on_gpu(9, 64) is None
        assert attention.tile_on_gpu(9, 64) is None  # warnings are errors
    finally:
        attention._kernels.cache_clear()


def test_attention_of_short_and_long_names_in_bf16_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key_value = (tensor.bfloat16() for tensor in inputs(first_only=False))
    found = []
    for short in (0, 4, 32):
        monkeypatch.setattr(attention, "_SHORT", short)
        found.append(attend(query, key_value, first_only=False))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], atol=0.01, rtol=0.02)


def test_keys_alone_can_have_a_gradient_in_bf16() -> None:
    query, key_value = (tensor.bfloat16() for tensor in inputs(first_only=True))
    key_value.requires_grad_()
    (gradient,) = torch.autograd.grad(attend(query, key_value, first_only=True).float().sum(), key_value)
    assert gradient.abs().sum() > 0


@needs_bf16
@pytest.mark.parametrize("large", [0, 10**6])
@pytest.mark.parametrize("n_out", [6, 12, 20])
def test_product_in_bf16_and_its_gradients(n_out: int, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.encoders.linear._LARGE", large)
    monkeypatch.setattr("onoma.encoders.linear._TRANSPOSED_ROWS", 10)  # of 32
    states, weight, bias = drawn(32, 12), drawn(n_out, 12, seed=1), drawn(n_out, seed=2)
    pull = drawn(32, n_out, seed=3)
    leaves = [leaf.requires_grad_() for leaf in (states, weight, bias)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = linear(states, weight, bias)
    assert product.dtype == torch.bfloat16
    plain = torch.nn.functional.linear(states, weight, bias)
    found = [product.detach().float(), *torch.autograd.grad((product.float() * pull).sum(), leaves)]
    expected = [plain.detach(), *torch.autograd.grad((plain * pull).sum(), leaves)]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert float((ours - theirs).norm() / theirs.norm()) < 0.01


@needs_bf16
def test_a_frozen_weight_passes_the_gradient_on() -> None:
    states, weight, bias = drawn(4, 5).requires_grad_(), drawn(3, 5, seed=1), drawn(3, seed=2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        total = linear(states, weight, bias).sum()
    (gradient,) = torch.autograd.grad(total, states)
    torch.testing.assert_close(gradient, weight.sum(0).expand(4, 5), atol=0.05, rtol=0.05)


@needs_bf16
def test_product_of_a_model_in_bf16() -> None:
    states, weight, bias = (tensor.bfloat16() for tensor in (drawn(32, 12), drawn(6, 12, seed=1), drawn(6, seed=2)))
    with torch.no_grad():
        found = linear(states, weight, bias)
    expected = torch.nn.functional.linear(states.float(), weight.float(), bias.float())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, atol=0.02, rtol=0.01)


def test_product_in_fp32_is_torchs() -> None:
    states, weight, bias = drawn(4, 5), drawn(3, 5, seed=1), drawn(3, seed=2)
    assert torch.equal(linear(states, weight, bias), torch.nn.functional.linear(states, weight, bias))
