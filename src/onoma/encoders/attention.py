"""Attention over names packed by length.

Each group of equally long names is a full rectangle, so there is no mask. Four ways to the same result: torch's fused
kernel group by group; plain products for groups of short names in bf16 on a CPU; `_CpuAttention` where a gradient is
wanted on a CPU; one kernel of variable length for all names on a GPU in half precision.

Shapes: N names, T tokens (rows after them belong to no name), b names of length l in a group, H heads of width W,
D = H W.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from onoma.encoders.dropout import Dropout

Groups = Sequence[tuple[int, int]]

_FLASH_WIDTHS = range(8, 257, 8)
"""Widths of a head that torch's flash attention takes."""

_SHORT = 32
"""Tokens of a name up to which plain products are quicker than torch's fused kernel in bf16 on a CPU."""


class PackedAttention:
    """Self-attention of every token, or of the first token of each name, over the tokens of its own name.

    Made once for a batch and used by all layers.

    Args:
        groups: (names, length) of each group, as in `PackedBatch`.
        n_heads: H, a divisor of D.
        dropout: Of attention weights; with probability 0 outside training.
    """

    def __init__(self, groups: Groups, *, n_heads: int, dropout: Dropout) -> None:
        self._groups, self._n_heads, self._dropout = groups, n_heads, dropout
        self._first_tokens = [(names, 1) for names, _ in groups]
        self._orders: dict[int, _HeadOrder] = {}

    def of_all(self, projected: Tensor) -> Tensor:
        """What each token gathered, shape (T, D); zero in rows that belong to no name.

        Args:
            projected: Queries, keys and values side by side, shape (T, 3 D).
        """
        if _trains_on_cpu(projected):
            gathered: Tensor = _CpuAttention.apply(  # type: ignore[no-untyped-call]
                projected, None, self._order(3), self._order(1), self._dropout
            )
            return gathered
        width = projected.shape[1] // 3
        query, key_value = projected.split_with_sizes([width, 2 * width], 1)
        return self._fused(query, key_value, self._groups)

    def of_first(self, query: Tensor, key_value: Tensor) -> Tensor:
        """What the first token of each name gathered, shape (N, D).

        Args:
            query: Of the first tokens, shape (N, D).
            key_value: Keys and values of all tokens side by side, shape (T, 2 D).
        """
        if _trains_on_cpu(query):
            gathered: Tensor = _CpuAttention.apply(  # type: ignore[no-untyped-call]
                key_value, query, self._order(2), self._order_of_first, self._dropout
            )
            return gathered
        return self._fused(query, key_value, self._first_tokens)

    def _fused(self, query: Tensor, key_value: Tensor, asking: Groups) -> Tensor:
        """Torch's kernels."""
        if _has_flash(query, query.shape[1] // self._n_heads):
            return self._flash(query, key_value, asking)
        gathered, q_first, kv_first = [], 0, 0
        for (names, n_queries), (_, length) in zip(asking, self._groups, strict=True):
            q_last, kv_last = q_first + names * n_queries, kv_first + names * length
            # (b, H, tokens, W) each
            heads = query[q_first:q_last].view(names, n_queries, self._n_heads, -1).transpose(1, 2)
            pairs = key_value[kv_first:kv_last].view(names, length, 2, self._n_heads, -1)
            keys, values = pairs.permute(2, 0, 3, 1, 4)
            if _is_quicker_by_products(heads, keys, self._dropout.probability):
                context = _by_products(heads, keys, values)
            else:
                context = functional.scaled_dot_product_attention(
                    heads, keys, values, dropout_p=self._dropout.probability
                )
            gathered.append(context.transpose(1, 2).reshape(-1, query.shape[1]))
            q_first, kv_first = q_last, kv_last
        gathered.append(query.new_zeros(len(query) - q_first, query.shape[1]))
        return torch.cat(gathered)

    def _flash(self, query: Tensor, key_value: Tensor, asking: Groups) -> Tensor:
        """The operator behind ``torch.nn.attention.varlen``, which itself offers no dropout.

        On a GPU there are no rows that belong to no name.
        """
        keys, values = key_value.view(len(key_value), 2, self._n_heads, -1).unbind(1)
        gathered: Tensor = torch.ops.aten._flash_attention_forward(
            query.view(len(query), self._n_heads, -1),
            keys,
            values,
            _borders(tuple(asking), query.device),
            _borders(tuple(self._groups), query.device),
            max(length for _, length in asking),
            max(length for _, length in self._groups),
            self._dropout.probability,
            is_causal=False,
            return_debug_mask=False,
        )[0]
        return gathered.reshape(query.shape)

    def _order(self, n_parts: int) -> _HeadOrder:
        if n_parts not in self._orders:
            self._orders[n_parts] = _HeadOrder(self._groups, n_heads=self._n_heads, n_parts=n_parts)
        return self._orders[n_parts]

    @cached_property
    def _order_of_first(self) -> _HeadOrder:
        return _HeadOrder(self._first_tokens, n_heads=self._n_heads, n_parts=1)


def _trains_on_cpu(projected: Tensor) -> bool:
    return projected.device.type == "cpu" and projected.requires_grad


def _is_quicker_by_products(query: Tensor, keys: Tensor, dropout: float) -> bool:
    """Whether torch's fused kernel, which in bf16 on a CPU takes a fixed time for each head of each name, is slower."""
    is_short = query.device.type == "cpu" and query.dtype is torch.bfloat16 and keys.shape[-2] <= _SHORT
    return is_short and not dropout and not keys.requires_grad  # products are changed in place


def _by_products(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Attention as it is written down, in fp32; shapes (b, H, tokens, W)."""
    with torch.autocast("cpu", enabled=False):
        weights = torch.matmul(_fp32_rows(query).mul_(query.shape[-1] ** -0.5), _fp32_rows(keys).transpose(-1, -2))
        weights.sub_(weights.amax(-1, keepdim=True)).exp_()
        weights.div_(weights.sum(-1, keepdim=True))
        return torch.matmul(weights, _fp32_rows(values)).to(query.dtype)


def _fp32_rows(heads: Tensor) -> Tensor:
    """A copy in fp32 whose matrices lie one after the other, as products want them; they would copy it once more."""
    return heads.to(torch.float32, memory_format=torch.contiguous_format, copy=True)


def _has_flash(query: Tensor, width: int) -> bool:
    return (
        query.device.type == "cuda"
        and query.dtype in (torch.bfloat16, torch.float16)
        and width in _FLASH_WIDTHS
        and torch.cuda.get_device_capability(query.device) >= (8, 0)
        and hasattr(torch.ops.aten, "_flash_attention_forward")
    )


@lru_cache(maxsize=4)  # a batch's two are asked for by every layer
def _borders(groups: Groups, device: torch.device) -> Tensor:
    """Where each name begins and the last one ends, int32, shape (N + 1,)."""
    lengths = np.repeat([length for _, length in groups], [names for names, _ in groups])
    with torch.inference_mode(False):  # what is made while encoding may be met again in training
        return torch.from_numpy(np.concatenate([[0], lengths.cumsum()]).astype(np.int32)).to(device)


class _HeadOrder:
    """Brings the heads of each group side by side, in one copy for all groups.

    Packed projections are rows of W numbers, by token, part, head. In head order they are, group after group, by part,
    name, head, token: for each part of a group a batch of matrices, shape (b H, l, W).
    """

    def __init__(self, groups: Groups, *, n_heads: int, n_parts: int) -> None:
        self._groups, self._n_heads, self._n_parts = groups, n_heads, n_parts
        n_tokens = sum(names * length for names, length in groups)
        rows = np.arange(n_tokens * n_parts * n_heads).reshape(n_tokens, n_parts, n_heads)
        order, first = [], 0
        for names, length in groups:
            group = rows[first : first + names * length].reshape(names, length, n_parts, n_heads)
            order.append(group.transpose(2, 0, 3, 1).ravel())
            first += names * length
        self._order = torch.from_numpy(np.concatenate(order))
        self._inverse = torch.empty_like(self._order)
        self._inverse[self._order] = torch.arange(len(self._order))

    @property
    def n_rows(self) -> int:
        """Rows in head order."""
        return len(self._order)

    def apply(self, packed: Tensor) -> Tensor:
        """To head order: (T, parts x D) to (T x parts x H, W)."""
        width = packed.shape[1] // (self._n_parts * self._n_heads)
        return packed.reshape(-1, width).index_select(0, self._order)

    def undo(self, rows: Tensor, n_rows: int) -> Tensor:
        """From head order: to (``n_rows``, parts x D); rows that belong to no name are zero."""
        flat = rows.new_empty(n_rows * self._n_parts * self._n_heads, rows.shape[1])
        torch.index_select(rows, 0, self._inverse, out=flat[: len(rows)])
        flat[len(rows) :] = 0
        return flat.view(n_rows, -1)

    def groups(self, rows: Tensor) -> Iterator[Tensor]:
        """Views of the rows of each group, shape (parts, b H, l, W)."""
        first = 0
        for names, length in self._groups:
            n_rows = self._n_parts * names * self._n_heads * length
            yield rows[first : first + n_rows].view(self._n_parts, names * self._n_heads, length, -1)
            first += n_rows


class _CpuAttention(torch.autograd.Function):
    """All groups as one node of the graph, with dropout.

    Names have some ten tokens: the arithmetic is nothing beside the handling of small tensors, and torch's fused kernel
    takes three times as long to go back. Products are taken in fp32, also under autocast: in bf16 oneDNN compiles and
    keeps a kernel for each shape of a group.

    Attention weights of all groups lie in one row of numbers, for what can be done to all of them at once.
    """

    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, first: Tensor | None, giving: _HeadOrder, asking: _HeadOrder, dropout: Dropout
    ) -> Tensor:
        rows = giving.apply(projected)
        asked = None if first is None else asking.apply(first)
        groups = list(giving.groups(rows))
        queries = [group[0] for group in (groups if asked is None else asking.groups(asked))]
        shapes = [(*query.shape[:2], group.shape[2]) for query, group in zip(queries, groups, strict=True)]
        weights = torch.empty(sum(math.prod(shape) for shape in shapes))
        gathered = rows.new_empty(asking.n_rows, rows.shape[1])
        with torch.autocast("cpu", enabled=False):
            by_group = _split(weights, shapes)
            for query, group, scores in zip(queries, groups, by_group, strict=True):
                _product(query.float(), group[-2].float().transpose(1, 2), query.shape[-1] ** -0.5, out=scores)
                scores.sub_(scores.amax(-1, keepdim=True))
            weights.exp_()
            for exponentials in by_group:
                exponentials.div_(exponentials.sum(-1, keepdim=True))
            used = dropout(weights)
            for weight, group, (context,) in zip(_split(used, shapes), groups, asking.groups(gathered), strict=True):
                context.copy_(torch.bmm(weight, group[-1].float()))
        ctx.save_for_backward(rows, asked, weights, used)
        ctx.orders, ctx.shapes = (giving, asking), shapes
        ctx.n_rows = len(projected), 0 if first is None else len(first)
        return asking.undo(gathered, len(projected) if first is None else len(first))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        rows, asked, weights, used = ctx.saved_tensors
        giving, asking = ctx.orders
        goal = torch.empty_like(rows)
        asked_goal = None if asked is None else torch.empty_like(asked)
        groups, goals = list(giving.groups(rows)), list(giving.groups(goal))
        queries = [group[0] for group in (groups if asked is None else asking.groups(asked))]
        query_goals = [group[0] for group in (goals if asked_goal is None else asking.groups(asked_goal))]
        wanted_groups = asking.groups(asking.apply(upstream[0]))
        with torch.autocast("cpu", enabled=False):
            for query, group, query_goal, group_goal, (wanted,), weight, use in zip(
                queries,
                groups,
                query_goals,
                goals,
                wanted_groups,
                _split(weights, ctx.shapes),
                _split(used, ctx.shapes),
                strict=True,
            ):
                scale = query.shape[-1] ** -0.5
                wish = wanted.float()
                keys, values = group[-2:].float()
                # Back through dropout and softmax: the gradient of a weight times the weight is the same before and
                # after dropout.
                score = torch.bmm(wish, values.transpose(1, 2)).mul_(use)
                score.addcmul_(score.sum(-1, keepdim=True), weight, value=-1)
                group_goal[-1].copy_(torch.bmm(use.transpose(1, 2), wish))
                group_goal[-2].copy_(_product(score.transpose(1, 2), query.float(), scale))
                query_goal.copy_(_product(score, keys, scale))
        n_tokens, n_first = ctx.n_rows
        first_gradient = None if asked_goal is None else asking.undo(asked_goal, n_first)
        return giving.undo(goal, n_tokens), first_gradient, None, None, None


def _product(left: Tensor, right: Tensor, factor: float, *, out: Tensor | None = None) -> Tensor:
    """``factor x left @ right``, batch by batch."""
    into = left.new_empty(len(left), left.shape[1], right.shape[2]) if out is None else out
    return torch.baddbmm(into, left, right, beta=0, alpha=factor, out=into)


def _split(numbers: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    """A row of numbers as tensors of these shapes."""
    sizes = [math.prod(shape) for shape in shapes]
    return [part.view(shape) for part, shape in zip(numbers.split_with_sizes(sizes), shapes, strict=True)]
