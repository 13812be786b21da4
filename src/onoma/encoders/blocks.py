"""Attention while a CPU trains: names share blocks of tokens, and a mask keeps them apart.

Names have some ten tokens, so the arithmetic is nothing beside the handling of many small matrices. In blocks of 32
tokens a few large operations do for all names, their weights' way back included; torch's fused kernel, name by name,
takes three times as long to go back.

Shapes: T tokens, rows in packed order (rows after them belong to no name), H heads of width W, D = H W; B blocks of S
slots for tokens that give keys and values, of Q slots for those that ask.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from onoma.encoders.dropout import Dropout
from onoma.encoders.precision import has_native_bf16

_Places = npt.NDArray[np.int64]

_SMALLEST, _SLOTS = 32, 16
"""Tokens of the smallest block, the only size of most batches, and what the size of others is a multiple of."""
_ASKING_SLOTS = 8
"""If first tokens alone ask, a block has a multiple of these."""
_TOKENS_AT_A_TIME = 8192
"""Slots of the smallest blocks that are multiplied at a time, at most."""
_ROUNDING = 8
"""The number of smallest blocks that are multiplied at a time is rounded up, with empty ones, by a part in these at
most. oneDNN compiles and keeps a kernel for each number and size."""
_LARGE_TOKENS_AT_A_TIME = 512
"""Slots of larger blocks that are multiplied at a time; fewer are multiplied one by one. With as many numbers as the
smallest has, kernels would take a gigabyte for texts of up to 200 tokens."""


@dataclass(frozen=True, slots=True)
class _OneSize:
    """Blocks of one size.

    Shapes: n names.
    """

    n_blocks: int
    """Empty ones included."""
    at_a_time: int
    """How many are multiplied at a time; a divisor of ``n_blocks``."""
    size: int
    """S."""
    names: _Places
    """Which of all names stand here, shape (n,)."""
    lengths: _Places
    """Their tokens, shape (n,)."""
    blocks: _Places
    """The block of each, shape (n,)."""
    first_slots: _Places
    """The slot of its first token, shape (n,)."""


class Blocks:
    """Which tokens of a batch share a block.

    Args:
        groups: (names, length) of each group, as in `onoma.encoders.packing.PackedBatch`.
        n_heads: H.
    """

    def __init__(self, groups: Sequence[tuple[int, int]], *, n_heads: int) -> None:
        self._sizes = _filled(groups)
        self._n_heads = n_heads
        lengths = np.repeat([length for _, length in groups], [names for names, _ in groups])
        self._starts = np.cumsum(lengths) - lengths
        self._n_tokens = int(lengths.sum())
        self._orders: dict[int, HeadOrder] = {}

    def giving(self, n_parts: int) -> HeadOrder:
        """The order of rows of every token.

        Args:
            n_parts: What stands side by side in a row: queries, keys, values.
        """
        if n_parts not in self._orders:
            self._orders[n_parts] = HeadOrder(
                self._slots_of_tokens, self._n_tokens, n_heads=self._n_heads, n_parts=n_parts
            )
        return self._orders[n_parts]

    @cached_property
    def of_first(self) -> HeadOrder:
        """The order of rows of the first token of each name."""
        return HeadOrder(self._slots_of_first, len(self._starts), n_heads=self._n_heads, n_parts=1)

    def masks(self, dtype: torch.dtype, *, first_only: bool) -> list[Tensor]:
        """0 for the tokens of the asking token's name and minus infinity for others, shapes (B, 1, Q, S).

        An empty slot asks all of its block, so that its numbers, which nobody reads, are numbers.
        """
        masks: list[Tensor] = []
        for owners, asking in zip(self._owners, self._slots_of_first if first_only else self._owners, strict=True):
            is_own = (asking[..., :, None] == owners[..., None, :]) | (asking < 0)[..., :, None]
            mask = torch.zeros(is_own.shape, dtype=dtype).masked_fill_(torch.from_numpy(~is_own), -torch.inf)
            masks.extend(mask.unsqueeze(2))
        return masks

    @cached_property
    def _owners(self) -> list[_Places]:
        """The name in each slot, -1 in empty ones, shapes (batches, B, S)."""
        return [_spread(size, size.names) for size in self._sizes]

    @cached_property
    def _slots_of_tokens(self) -> list[_Places]:
        """The token in each slot, -1 in empty ones, shapes (batches, B, S)."""
        return [_spread(size, self._starts[size.names], ascending=True) for size in self._sizes]

    @cached_property
    def _slots_of_first(self) -> list[_Places]:
        """The names of each block, -1 where there are no more, shapes (batches, B, Q)."""
        found = []
        for size in self._sizes:
            # Within a block the names stand in the order they were put there.
            ranks = np.arange(len(size.blocks)) - np.searchsorted(size.blocks, size.blocks)
            n_asking = -(-(int(ranks.max()) + 1) // _ASKING_SLOTS) * _ASKING_SLOTS
            slots = np.full((size.n_blocks, n_asking), -1)
            slots[size.blocks, ranks] = size.names
            found.append(slots.reshape(-1, size.at_a_time, n_asking))
        return found


def _filled(groups: Sequence[tuple[int, int]]) -> list[_OneSize]:
    """The longest name opens a block, and those that fit fill it, longest first, until all names have a place."""
    left = {length: names for names, length in groups if names}
    first_names = np.cumsum([0] + [names for names, _ in groups])
    next_name = {length: int(first) for (_, length), first in zip(groups, first_names, strict=False)}
    lengths = sorted(left)
    runs: dict[int, list[tuple[int, int, int, int, int]]] = {}
    n_blocks: dict[int, int] = {}
    while lengths:
        size = max(_SMALLEST, -(-lengths[-1] // _SLOTS) * _SLOTS)
        block = n_blocks.get(size, 0)
        n_blocks[size] = block + 1
        slot = 0
        while fitting := bisect_right(lengths, size - slot):
            length = lengths[fitting - 1]
            names = min(left[length], (size - slot) // length)
            runs.setdefault(size, []).append((next_name[length], names, length, block, slot))
            next_name[length] += names
            slot += names * length
            left[length] -= names
            if not left[length]:
                del lengths[fitting - 1]
    found = []
    for size, rows in runs.items():
        first, names_of_run, length_of_run, block_of_run, slot_of_run = np.array(rows, np.int64).T
        rank = np.arange(names_of_run.sum()) - np.repeat(np.cumsum(names_of_run) - names_of_run, names_of_run)
        lengths_here = np.repeat(length_of_run, names_of_run)
        at_a_time = _at_a_time(n_blocks[size], size)
        found.append(
            _OneSize(
                n_blocks=-(-n_blocks[size] // at_a_time) * at_a_time,
                at_a_time=at_a_time,
                size=size,
                names=np.repeat(first, names_of_run) + rank,
                lengths=lengths_here,
                blocks=np.repeat(block_of_run, names_of_run),
                first_slots=np.repeat(slot_of_run, names_of_run) + rank * lengths_here,
            )
        )
    return found


def _at_a_time(n_blocks: int, size: int) -> int:
    """How many blocks of a size are multiplied at a time."""
    if size > _SMALLEST:
        full = max(1, _LARGE_TOKENS_AT_A_TIME // size)
        return full if n_blocks >= full else 1
    n_batches = -(-n_blocks // (_TOKENS_AT_A_TIME // size))
    at_a_time = -(-n_blocks // n_batches)
    step = 1 << max(0, (at_a_time // _ROUNDING).bit_length() - 1)
    return -(-at_a_time // step) * step


def _spread(size: _OneSize, numbers: _Places, *, ascending: bool = False) -> _Places:
    """A number of each name in all its slots, or counting up from there; -1 in empty slots, shape (batches, B, S)."""
    of_token = np.repeat(np.arange(len(size.names)), size.lengths)
    within = np.arange(len(of_token)) - np.repeat(np.cumsum(size.lengths) - size.lengths, size.lengths)
    slots = np.full((size.n_blocks, size.size), -1)
    slots[size.blocks[of_token], size.first_slots[of_token] + within] = numbers[of_token] + within * ascending
    return slots.reshape(-1, size.at_a_time, size.size)


class HeadOrder:
    """Brings the heads of each block side by side.

    Packed projections are rows of W numbers, by token, part, head. In head order they are, batch of blocks after batch,
    by part, block, head, slot: for each part of a batch matrices of shape (B H, slots, W).

    Args:
        slots: The row of the packed tensor in each slot, -1 in empty slots, for each size of blocks; shapes (batches,
            B, slots).
        n_rows: Rows that stand in slots, each in one.
        n_heads: H.
        n_parts: Parts of a row.
    """

    def __init__(self, slots: Sequence[_Places], n_rows: int, *, n_heads: int, n_parts: int) -> None:
        self._shapes = [of_batch.shape for of_size in slots for of_batch in of_size]
        self._n_heads, self._n_parts = n_heads, n_parts
        part, head = np.arange(n_parts), np.arange(n_heads)
        orders, empty = [], []
        inverse = np.empty((n_rows, n_parts, n_heads), np.int64)
        first = 0
        for of_size in slots:
            _, n_blocks, n_slots = of_size.shape
            is_empty = of_size < 0
            source = np.where(is_empty, 0, of_size) * (n_parts * n_heads)
            order = source[:, None, :, None, :] + part[:, None, None, None] * n_heads + head[:, None]
            orders.append(order.ravel())
            empty.append(first + np.flatnonzero(np.broadcast_to(is_empty[:, None, :, None, :], order.shape)))
            batch, block, slot = np.nonzero(~is_empty)
            place = first + (batch * (n_parts * n_blocks) + block) * (n_heads * n_slots) + slot
            inverse[of_size[batch, block, slot]] = (
                place[:, None, None] + part[:, None] * (n_blocks * n_heads * n_slots) + head * n_slots
            )
            first += order.size
        self._order = torch.from_numpy(np.concatenate(orders))
        self._empty = torch.from_numpy(np.concatenate(empty))
        self._inverse = torch.from_numpy(inverse.ravel())

    @property
    def n_rows(self) -> int:
        """Rows in head order."""
        return len(self._order)

    def apply(self, packed: Tensor) -> Tensor:
        """To head order: (rows, parts x D) to (`n_rows`, W); zero in empty slots."""
        width = packed.shape[1] // (self._n_parts * self._n_heads)
        return packed.reshape(-1, width).index_select(0, self._order).index_fill_(0, self._empty, 0)

    def undo(self, rows: Tensor, n_rows: int) -> Tensor:
        """From head order: to (``n_rows``, parts x D); rows that stood in no slot are zero."""
        flat = rows.new_empty(n_rows * self._n_parts * self._n_heads, rows.shape[1])
        torch.index_select(rows, 0, self._inverse, out=flat[: len(self._inverse)])
        flat[len(self._inverse) :] = 0
        return flat.view(n_rows, -1)

    def batches(self, rows: Tensor) -> Iterator[Tensor]:
        """Views of the rows of each batch of blocks, shape (parts, B H, slots, W)."""
        first = 0
        for n_blocks, n_slots in self._shapes:
            n_rows = self._n_parts * n_blocks * self._n_heads * n_slots
            yield rows[first : first + n_rows].view(self._n_parts, n_blocks * self._n_heads, n_slots, -1)
            first += n_rows


class BlockAttention(torch.autograd.Function):
    """Attention of all names as one node of the graph, with dropout.

    bf16 is multiplied as it is where the processor can, with weights in bf16 as under autocast; where it cannot, as
    fp16, in fp32. Other precisions keep to their own.
    """

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        first: Tensor | None,
        giving: HeadOrder,
        asking: HeadOrder,
        masks: Sequence[Tensor],
        dropout: Dropout,
    ) -> Tensor:
        """What was gathered, shape (T, D), or (N, D) if only first tokens ask.

        Args:
            ctx: Torch's.
            projected: Queries, keys and values of all tokens side by side, or keys and values alone.
            first: Queries of the first tokens, if only these ask, shape (N, D).
            giving: Order of ``projected``.
            asking: Order of what is gathered.
            masks: See `Blocks.masks`; in the precision of `multiplied_in`.
            dropout: Of attention weights.
        """
        precision = multiplied_in(projected.dtype)
        rows = giving.apply(projected).to(precision)
        asked = None if first is None else asking.apply(first).to(precision)
        gathered = rows.new_empty(asking.n_rows, rows.shape[1])
        kept: list[Tensor | None] = []
        for part, (query,), (context,), mask in zip(
            giving.batches(rows), _queries(giving, asking, rows, asked), asking.batches(gathered), masks, strict=True
        ):
            with torch.autocast("cpu", enabled=False):
                scores = _product(query, part[-2].transpose(1, 2), query.shape[-1] ** -0.5)
                scores.view(len(mask), -1, *scores.shape[1:]).add_(mask)  # the same for all heads
                weights = torch.softmax(scores, -1)
                factors = dropout.keep_factors(weights.shape, weights.dtype) if dropout.probability else None
                used = weights if factors is None else weights * factors
                torch.bmm(used, part[-1], out=context)
            kept += [weights, used, factors]
        ctx.save_for_backward(rows, asked, *kept)
        ctx.orders = giving, asking
        ctx.n_rows = len(projected), 0 if first is None else len(first)
        return asking.undo(gathered, len(projected) if first is None else len(first)).to(projected.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of ``projected`` and ``first``."""
        rows, asked, *kept = ctx.saved_tensors
        giving, asking = ctx.orders
        goal = torch.empty_like(rows)
        asked_goal = None if asked is None else torch.empty_like(asked)
        wanted_rows = asking.apply(upstream[0]).to(rows.dtype)
        for part, part_goal, (query,), (query_goal,), (wanted,), weights, used, factors in zip(
            giving.batches(rows),
            giving.batches(goal),
            _queries(giving, asking, rows, asked),
            _queries(giving, asking, goal, asked_goal),
            asking.batches(wanted_rows),
            *(kept[number::3] for number in range(3)),
            strict=True,
        ):
            with torch.autocast("cpu", enabled=False):
                # The scores' scale is taken here, where the way back is still linear.
                of_used = _product(wanted, part[-1].transpose(1, 2), query.shape[-1] ** -0.5)
                of_weights = of_used if factors is None else of_used.mul_(factors)
                of_scores = torch.ops.aten._softmax_backward_data(of_weights, weights, -1, weights.dtype)
                torch.bmm(used.transpose(1, 2), wanted, out=part_goal[-1])
                torch.bmm(of_scores.transpose(1, 2), query, out=part_goal[-2])
                torch.bmm(of_scores, part[-2], out=query_goal)
        n_tokens, n_first = ctx.n_rows
        first_gradient = None if asked_goal is None else asking.undo(asked_goal, n_first).to(upstream[0].dtype)
        return giving.undo(goal, n_tokens).to(upstream[0].dtype), first_gradient, None, None, None, None


def multiplied_in(given: torch.dtype) -> torch.dtype:
    """The precision in which states of ``given`` are multiplied."""
    if given is torch.float16 or (given is torch.bfloat16 and not has_native_bf16()):
        return torch.float32
    return given


def _product(left: Tensor, right: Tensor, factor: float) -> Tensor:
    """``factor x left @ right``, batch by batch."""
    into = left.new_empty(len(left), left.shape[1], right.shape[2])
    return torch.baddbmm(into, left, right, beta=0, alpha=factor, out=into)


def _queries(giving: HeadOrder, asking: HeadOrder, rows: Tensor, asked: Tensor | None) -> Iterator[Tensor]:
    """The queries of each size of blocks, shape (1, B H, Q, W)."""
    return (part[:1] for part in (giving.batches(rows) if asked is None else asking.batches(asked)))
