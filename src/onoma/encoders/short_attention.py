"""Attention of short names on a GPU: a kernel whose every program has one name and one head.

Flash attention of variable length, made for long texts, takes 64 or 128 places of a sequence at a time. A name of nine
tokens fills a tenth of them, and half of a training step went there. Here a name stands in a tile of 16 places, or, if
it is longer, of the 32 or 64 that the longest of its batch needs, so its weights of attention never leave the
processor. They are not kept for the way back either, where the same program makes them anew, with the same dropout, and
gives the gradients of queries, keys and values at once.

To be imported where Triton is; `onoma.encoders.attention` looks for it.

Shapes: N names, T tokens (rows after the last name's belong to no name), H heads of width W, D = H W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from onoma.encoders.short_attention_kernels import backward, forward

_WIDEST = 128
"""Numbers of a head at most."""

_WARPS = {16: 1, 32: 2, 64: 4}
"""Warps of a program, by the places of its tile: with fewer the registers do not suffice, with more most are idle."""


@dataclass(frozen=True, slots=True)
class Names:
    """Where the names of a batch stand, and what else attention over them needs besides their states.

    Args:
        borders: Where each name begins and the last one ends, int64, shape (N + 1,).
        longest: Tokens of the longest name, see `tile_of`.
        n_heads: H.
        dropout: Of attention weights, 0 <= dropout < 1.
        seed: Of dropout, int64, shape (1,); each layer passes one of its own or another ``layer``.
    """

    borders: Tensor
    longest: int
    n_heads: int
    dropout: float
    seed: Tensor | None


def tile_of(longest: int, head_width: int) -> int | None:
    """Tokens that a tile has room for, if the longest name has so many; None if there is no such tile."""
    return next((tokens for tokens in _WARPS if longest <= tokens and head_width <= _WIDEST), None)


def try_out() -> None:
    """Compile kernels for a name, there and back, whoever asks first: raises what Triton raises where it cannot."""
    borders = torch.tensor([0, 1], device="cuda")
    names = Names(borders, longest=1, n_heads=1, dropout=0.5, seed=torch.tensor([0], device="cuda"))
    with torch.inference_mode(mode=False), torch.enable_grad():
        states = torch.zeros(1, 48, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        torch.autograd.grad(attention(None, states, names, layer=0).sum(), states)


def attention(query: Tensor | None, projected: Tensor, names: Names, *, layer: int) -> Tensor:
    """Self-attention of every token over the tokens of its name, or of each name's first token.

    Args:
        query: Of first tokens, shape (N, D), with keys and values side by side in ``projected``, shape (T, 2 D). None:
            every token asks, and ``projected`` has the queries before them, shape (T, 3 D).
        projected: bfloat16 or float16.
        names: Where they stand.
        layer: Mixed into the seed of dropout.

    Returns:
        Shape (T, D), zero in rows that belong to no name; or (N, D).
    """
    gathered: Tensor = _Attention.apply(query, projected, names, layer)  # type: ignore[no-untyped-call]
    return gathered


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor | None, projected: Tensor, names: Names, layer: int) -> Tensor:
        projected = projected.contiguous()
        query = None if query is None else query.contiguous()
        ctx.save_for_backward(query, projected)
        ctx.names, ctx.layer = names, layer
        shape = query.shape if query is not None else (len(projected), projected.shape[1] // 3)
        gathered = projected.new_empty(shape)
        _launch(forward, query, projected, (gathered,), names, layer)
        return gathered

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = upstream
        query, projected = ctx.saved_tensors
        of_projected = torch.empty_like(projected)
        of_query = None if query is None else torch.empty_like(query)
        others = (gradient.contiguous(), of_projected if of_query is None else of_query, of_projected)
        _launch(backward, query, projected, others, ctx.names, ctx.layer)
        return of_query, of_projected, None, None


def _launch(
    kernel: Any, query: Tensor | None, projected: Tensor, others: tuple[Tensor, ...], names: Names, layer: int
) -> None:
    parts = 3 if query is None else 2
    width = projected.shape[1] // parts
    head_width = width // names.n_heads
    tile = tile_of(names.longest, head_width)
    assert tile is not None
    kernel[(len(names.borders) - 1, names.n_heads)](
        projected if query is None else query,
        projected,
        *others,
        names.borders,
        len(projected),
        names.borders if names.seed is None else names.seed,
        layer,
        names.dropout,
        head_width**-0.5,
        FIRST_ONLY=query is not None,
        HEADS=names.n_heads,
        WIDTH=head_width,
        TILE_WIDTH=max(16, 1 << math.ceil(math.log2(head_width))),
        LONGEST=tile,
        DROPS=names.seed is not None,
        num_warps=_WARPS[tile],
    )
