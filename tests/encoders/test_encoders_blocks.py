"""Attention of names that share blocks against names alone, and its way back against autograd and differences."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from onoma.encoders import blocks
from onoma.encoders.attention import PackedAttention
from onoma.encoders.blocks import Blocks
from onoma.encoders.dropout import Dropout
from onoma.encoders.precision import has_native_bf16

Groups = tuple[tuple[int, int], ...]

N_HEADS, WIDTH, SPARE = 2, 8, 3
SOME: Groups = ((2, 1), (30, 4), (4, 7), (1, 33), (2, 70))
"""Three sizes of blocks; some blocks hold one name, some ten."""

needs_bf16 = pytest.mark.skipif(not has_native_bf16(), reason="this processor has no bf16 products")

any_groups = st.dictionaries(st.integers(1, 80), st.integers(1, 20), min_size=1, max_size=6).map(
    lambda names_by_length: tuple((names, length) for length, names in sorted(names_by_length.items()))
)


def lengths_of(groups: Groups) -> list[int]:
    return [length for names, length in groups for _ in range(names)]


def inputs(groups: Groups, dtype: torch.dtype, *, first_only: bool) -> tuple[Tensor, Tensor]:
    """Numbers that bf16 has."""
    generator = torch.Generator().manual_seed(0)
    lengths = lengths_of(groups)
    n_rows = sum(lengths) + SPARE
    query = 3 * torch.randn(len(lengths) if first_only else n_rows, WIDTH, generator=generator)
    key_value = 3 * torch.randn(n_rows, 2 * WIDTH, generator=generator)
    return query.bfloat16().to(dtype).requires_grad_(), key_value.bfloat16().to(dtype).requires_grad_()


def in_blocks(groups: Groups, query: Tensor, key_value: Tensor, *, first_only: bool, dropout: float = 0.0) -> Tensor:
    borders = torch.tensor([0, *(length for names, length in groups for _ in range(names))]).cumsum(0)
    attention = PackedAttention(groups, n_heads=N_HEADS, dropout=Dropout(dropout), borders=borders)
    if first_only:
        return attention.of_first(query, key_value)
    return attention.of_all(torch.cat([query, key_value], 1))


def alone(groups: Groups, query: Tensor, key_value: Tensor, *, first_only: bool) -> Tensor:
    """Torch's attention, a name at a time."""
    gathered = []
    q_first = kv_first = 0
    for length in lengths_of(groups):
        asking = 1 if first_only else length
        own = key_value[kv_first : kv_first + length].view(length, 2, N_HEADS, -1)
        context = scaled_dot_product_attention(
            query[q_first : q_first + asking].view(asking, N_HEADS, -1).transpose(0, 1),
            own[:, 0].transpose(0, 1),
            own[:, 1].transpose(0, 1),
        )
        gathered.append(context.transpose(0, 1).reshape(asking, -1))
        q_first, kv_first = q_first + asking, kv_first + length
    gathered.append(query.new_zeros(len(query) - q_first, WIDTH))
    return torch.cat(gathered)


def value_and_gradients(
    attend: Callable[..., Tensor], groups: Groups, dtype: torch.dtype, *, first_only: bool
) -> list[Tensor]:
    query, key_value = inputs(groups, dtype, first_only=first_only)
    found = attend(groups, query, key_value, first_only=first_only)
    pull = torch.randn(found.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return [found.detach(), *torch.autograd.grad((found.double() * pull).sum(), (query, key_value))]


@pytest.mark.parametrize("first_only", [False, True])
@given(groups=any_groups)
@settings(max_examples=25)
def test_names_in_blocks_are_as_alone(first_only: bool, groups: Groups) -> None:
    found = value_and_gradients(in_blocks, groups, torch.float64, first_only=first_only)
    expected = value_and_gradients(alone, groups, torch.float64, first_only=first_only)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("first_only", [False, True])
def test_several_batches_of_blocks(first_only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = value_and_gradients(in_blocks, SOME, torch.float64, first_only=first_only)
    monkeypatch.setattr(blocks, "_TOKENS_AT_A_TIME", 64)
    parts = value_and_gradients(in_blocks, SOME, torch.float64, first_only=first_only)
    for ours, theirs in zip(parts, whole, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-8)


@given(groups=any_groups)
def test_shapes_that_batches_of_long_texts_multiply(groups: Groups) -> None:
    shapes = {mask.shape for mask in Blocks(groups, n_heads=N_HEADS).masks(torch.float32, first_only=False)}
    for n_blocks, _, _, size in shapes:
        assert size == 32 or n_blocks in {1, 512 // size}


def test_few_and_large_batches_of_few_shapes_multiply_short_names() -> None:
    """Each shape costs a kernel that stays in memory, each batch a call, each empty block arithmetic."""
    shapes = set()
    for n_blocks in [*range(1, 40), *range(40, 1100, 37), 256, 257, 512]:
        masks = Blocks(((n_blocks, 32),), n_heads=1).masks(torch.float16, first_only=False)
        (n_at_a_time,) = {len(mask) for mask in masks}
        assert n_at_a_time <= 8192 // 32
        assert len(masks) == -(-n_blocks // (8192 // 32))
        assert n_blocks <= len(masks) * n_at_a_time <= n_blocks * 9 / 8 + len(masks)
        shapes.add(n_at_a_time)
    assert len(shapes) <= 8 * 5


@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize("native", [False, pytest.param(True, marks=needs_bf16)])
def test_in_bf16(native: bool, first_only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "has_native_bf16", lambda: native)
    found = value_and_gradients(in_blocks, SOME, torch.bfloat16, first_only=first_only)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        autocast = value_and_gradients(in_blocks, SOME, torch.bfloat16, first_only=first_only)
    expected = value_and_gradients(alone, SOME, torch.float64, first_only=first_only)
    for ours, same, theirs in zip(found, autocast, expected, strict=True):
        assert ours.dtype == torch.bfloat16
        assert torch.equal(ours, same)
        off = (ours.double() - theirs).norm() / theirs.norm()
        assert float(off) < (0.03 if native else 0.005)


@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize("probability", [0.0, 0.4])
def test_the_way_back_is_that_of_what_was_done(probability: float, first_only: bool) -> None:
    groups = ((3, 2), (1, 5))

    def attend(query: Tensor, key_value: Tensor) -> Tensor:
        torch.manual_seed(5)
        return in_blocks(groups, query, key_value, first_only=first_only, dropout=probability)

    assert torch.autograd.gradcheck(attend, inputs(groups, torch.float64, first_only=first_only))


def test_dropout_drops_some_of_the_weights_and_scales_the_others() -> None:
    groups = ((40, WIDTH // N_HEADS),)
    query, key_value = inputs(groups, torch.float64, first_only=False)
    with torch.no_grad():  # values that show the weights: one of them in each column of a head
        n_names, length = groups[0]
        shown = torch.eye(length, dtype=torch.float64).repeat(n_names, N_HEADS)
        key_value[: n_names * length, WIDTH:] = shown
    weights = in_blocks(groups, query, key_value, first_only=False).detach()
    torch.manual_seed(3)
    used = in_blocks(groups, query, key_value, first_only=False, dropout=0.25).detach()
    assert torch.allclose(weights[:-SPARE].view(-1, length).sum(1), torch.ones(n_names * length * N_HEADS).double())
    kept = used != 0
    torch.testing.assert_close(used[kept], weights[kept] / 0.75)
    assert 0.7 < float(kept[:-SPARE].double().mean()) < 0.8


@given(groups=any_groups)
@settings(max_examples=50)
def test_every_token_has_a_slot_of_its_own_beside_those_of_its_name(groups: Groups) -> None:
    lengths = lengths_of(groups)
    n_tokens = sum(lengths)
    order = Blocks(groups, n_heads=1).giving(1)
    owners = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)) + 1
    tokens = torch.stack([owners, torch.arange(n_tokens) + 1], 1).double()  # 0: an empty slot
    rows = order.apply(tokens)
    assert sorted(rows[:, 1][rows[:, 1] > 0].tolist()) == list(range(1, n_tokens + 1))
    assert torch.equal(order.undo(rows, n_tokens + 2), torch.cat([tokens, tokens.new_zeros(2, 2)]))
    for batch in order.batches(rows):
        for block in batch[0]:
            names = block[:, 0][block[:, 0] > 0].long()
            assert len(names) <= max(32, max(lengths) + 15)
            for name in set(names.tolist()):
                assert int((names == name).sum()) == lengths[name - 1]
                own = block[block[:, 0] == name, 1]
                assert torch.equal(own, torch.arange(len(own)) + own[0])


def test_short_names_fill_blocks() -> None:
    groups = ((300, 4), (100, 10), (10, 20))
    n_slots = Blocks(groups, n_heads=1).giving(1).n_rows
    n_tokens = sum(lengths_of(groups))
    assert n_slots <= 1.1 * n_tokens
