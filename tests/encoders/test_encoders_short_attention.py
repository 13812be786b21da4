"""Our kernels for short names against attention as it is written down.

On a GPU (`make test-gpu`), or as Triton interprets them on a CPU (`make test-kernels`).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from torch import Tensor

from onoma.encoders import attention

if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed", allow_module_level=True)
ON_GPU = torch.cuda.is_available()
if not ON_GPU and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("no GPU, and Triton is not told to interpret", allow_module_level=True)

from onoma.encoders import short_attention  # noqa: E402
from onoma.encoders.short_attention import Names, tile_of  # noqa: E402

DEVICE = torch.device("cuda" if ON_GPU else "cpu")
SPARE = 5
LENGTHS = {16: [1, 2, 9, 16], 32: [3, 17, 25, 32], 64: [5, 16, 33, 64]}
# Triton interprets no bf16.
DTYPES = [torch.float16, *([torch.bfloat16] if ON_GPU else [])]
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2}


def inputs(lengths: list[int], width: int, dtype: torch.dtype, *, first_only: bool) -> tuple[Tensor | None, Tensor]:
    torch.manual_seed(0)
    n_rows = sum(lengths) + SPARE
    projected = torch.randn(n_rows, (2 if first_only else 3) * width, device=DEVICE).to(dtype).requires_grad_()
    query = torch.randn(len(lengths), width, device=DEVICE).to(dtype).requires_grad_() if first_only else None
    return query, projected


def names_of(lengths: list[int], n_heads: int, *, dropout: float = 0.0, seed: int = 0) -> Names:
    return Names(
        borders=torch.tensor([0, *lengths], device=DEVICE).cumsum(0),
        longest=max(lengths),
        n_heads=n_heads,
        dropout=dropout,
        seed=torch.tensor([seed], device=DEVICE) if dropout else None,
    )


def by_definition(
    query: Tensor | None, projected: Tensor, lengths: list[int], n_heads: int, kept: Tensor | None = None
) -> Tensor:
    """With what each weight is multiplied with by dropout, shape (T, H, longest), if it is given."""
    width = projected.shape[1] // (3 if query is None else 2)
    *asking, keys, values = torch.split(projected, width, 1)
    gathered, first = [], 0
    for name, length in enumerate(lengths):
        rows = slice(first, first + length)
        own = asking[0][rows] if query is None else query[name : name + 1]
        q, k, v = (one.view(len(one), n_heads, -1).transpose(0, 1) for one in (own, keys[rows], values[rows]))
        weights = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, -1)
        if kept is not None:
            own_rows = rows if query is None else slice(first, first + 1)
            weights = weights * kept[own_rows, :, :length].transpose(0, 1)
        gathered.append((weights @ v).transpose(0, 1).reshape(len(own), width))
        first += length
    if query is None:
        gathered.append(projected.new_zeros(len(projected) - first, width))
    return torch.cat(gathered)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize("n_heads", [1, 3])
@pytest.mark.parametrize("head_width", [12, 64])
@pytest.mark.parametrize("tile", list(LENGTHS))
def test_attention_and_its_gradient(
    tile: int, head_width: int, n_heads: int, first_only: bool, dtype: torch.dtype
) -> None:
    lengths, width = LENGTHS[tile], n_heads * head_width
    assert tile_of(max(lengths), head_width) == tile
    query, projected = inputs(lengths, width, dtype, first_only=first_only)
    given = [one for one in (query, projected) if one is not None]
    found = short_attention.attention(query, projected, names_of(lengths, n_heads), layer=1)
    pull = torch.randn(found.shape, device=DEVICE).to(dtype)
    gradients = torch.autograd.grad(found, given, pull)

    exact = [one.detach().float().requires_grad_() for one in given]
    expected = by_definition(None if query is None else exact[0], exact[-1], lengths, n_heads)
    tolerance: dict[str, Any] = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    torch.testing.assert_close(found.float(), expected, **tolerance)
    for gradient, wanted in zip(gradients, torch.autograd.grad(expected, exact, pull.float()), strict=True):
        torch.testing.assert_close(gradient.float(), wanted, **tolerance)
    assert not found[sum(lengths) :].any()
    assert not gradients[-1][sum(lengths) :].any()


def weights_of(lengths: list[int], n_heads: int, *, dropout: float, seed: int, layer: int) -> Tensor:
    """The weights that are left, by the values that they gather: a one for each token; shape (T, H, longest)."""
    longest = max(lengths)
    projected = torch.zeros(sum(lengths), 3, n_heads, longest, device=DEVICE, dtype=torch.float16)
    places = torch.cat([torch.arange(length) for length in lengths])
    projected[torch.arange(len(places)), 2, :, places] = 1
    names = names_of(lengths, n_heads, dropout=dropout, seed=seed)
    return short_attention.attention(None, projected.flatten(1), names, layer=layer).view(-1, n_heads, longest)


def test_dropout_drops_each_weight_on_its_own() -> None:
    lengths, n_heads, dropout = [16] * 24, 2, 0.25
    kept = weights_of(lengths, n_heads, dropout=dropout, seed=7, layer=1)
    torch.testing.assert_close(kept[kept > 0], torch.full_like(kept[kept > 0], 1 / 16 / (1 - dropout)))
    drawn = (kept > 0).double().view(24, 16, n_heads, 16)
    n = drawn.numel()
    assert abs(float(drawn.mean()) - 0.75) < 4 * (0.25 * 0.75 / n) ** 0.5
    spread = drawn - drawn.mean()
    other = (weights_of(lengths, n_heads, dropout=dropout, seed=7, layer=2) > 0).double().view_as(drawn)
    reseeded = (weights_of(lengths, n_heads, dropout=dropout, seed=8, layer=1) > 0).double().view_as(drawn)
    for shifted in (*(spread.roll(1, axis) for axis in range(4)), other - other.mean(), reseeded - reseeded.mean()):
        assert abs(float((spread * shifted).mean())) < 4 * 0.25 * 0.75 / n**0.5  # no correlation
    again = weights_of(lengths, n_heads, dropout=dropout, seed=7, layer=1)
    assert torch.equal(again, kept)


@pytest.mark.parametrize("first_only", [False, True])
def test_the_way_back_drops_what_the_way_there_dropped(first_only: bool) -> None:
    lengths, n_heads, width, dropout, seed, layer = [3, 9, 20], 2, 40, 0.4, 3, 5
    # Which weights are kept depends on name, head and place alone.
    left = weights_of(lengths, n_heads, dropout=dropout, seed=seed, layer=layer).float()
    kept = (left > 0).float() / (1 - dropout)
    query, projected = inputs(lengths, width, torch.float16, first_only=first_only)
    given = [one for one in (query, projected) if one is not None]
    names = names_of(lengths, n_heads, dropout=dropout, seed=seed)
    found = short_attention.attention(query, projected, names, layer=layer)
    pull = torch.randn(found.shape, device=DEVICE).to(torch.float16)
    gradients = torch.autograd.grad(found, given, pull)

    exact = [one.detach().float().requires_grad_() for one in given]
    expected = by_definition(exact[0] if first_only else None, exact[-1], lengths, n_heads, kept)
    torch.testing.assert_close(found.float(), expected, atol=4e-3, rtol=4e-3)
    for gradient, wanted in zip(gradients, torch.autograd.grad(expected, exact, pull.float()), strict=True):
        torch.testing.assert_close(gradient.float(), wanted, atol=8e-3, rtol=8e-3)


@pytest.mark.skipif(not ON_GPU, reason="no GPU")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "context", [torch.inference_mode, torch.no_grad, lambda: torch.autocast("cuda", torch.float16)]
)
def test_the_first_to_ask_may_want_no_gradient(context: Callable[[], AbstractContextManager[object]]) -> None:
    attention._kernels.cache_clear()
    with context():
        assert attention.tile_on_gpu(16, 8) == 16


def test_names_that_have_no_room() -> None:
    assert [tile_of(length, 64) for length in (1, 16, 17, 64, 65)] == [16, 16, 32, 64, None]
    assert [tile_of(9, width) for width in (1, 128, 129)] == [16, 16, None]
