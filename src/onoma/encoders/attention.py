"""Attention over names packed by length.

Each group of equally long names is a full rectangle, so there is no mask. Five ways to the same result: torch's fused
kernel group by group; plain products for groups of short names in bf16 on a CPU; blocks that names share where a
gradient is wanted on a CPU (`onoma.encoders.blocks`); on a GPU our kernel, which gives each name a tile of its own
(`onoma.encoders.short_attention`), and for longer names or without Triton flash attention of variable length.

Shapes: N names, T tokens (rows after them belong to no name), b names of length l in a group, H heads of width W,
D = H W.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from onoma.encoders.blocks import BlockAttention, Blocks, multiplied_in
from onoma.encoders.dropout import Dropout

Groups = Sequence[tuple[int, int]]

_FLASH_WIDTHS = range(8, 257, 8)
"""Widths of a head that torch's flash attention takes."""

_OLDEST = (8, 0)
"""Compute capability from which on GPUs run flash attention, multiply bf16, and are given our kernels."""

_SHORT = 32
"""Tokens of a name up to which plain products are quicker than torch's fused kernel in bf16 on a CPU."""


class PackedAttention:
    """Self-attention of every token, or of the first token of each name, over the tokens of its own name.

    Made once for a batch and used by all layers.

    Args:
        groups: (names, length) of each group, as in `PackedBatch`.
        n_heads: H, a divisor of D.
        dropout: Of attention weights; with probability 0 outside training.
        borders: As in `PackedBatch`.
        bias: Added to the scores by the places of query and key in their name, shape (1, H, l, l) with l the longest
            name's length; unset: nothing. Only torch's fused kernel and plain products know of it.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        n_heads: int,
        dropout: Dropout,
        borders: Tensor,
        bias: Tensor | None = None,
    ) -> None:
        self._groups, self._n_heads, self._dropout, self._bias = groups, n_heads, dropout, bias
        self._borders = borders
        self._seed: Tensor | None = None
        self._layers = 0
        self._first_tokens = [(names, 1) for names, _ in groups]
        self._masks: dict[tuple[torch.dtype, bool], list[Tensor]] = {}

    def of_all(self, projected: Tensor) -> Tensor:
        """What each token gathered, shape (T, D); zero in rows that belong to no name.

        Args:
            projected: Queries, keys and values side by side, shape (T, 3 D).
        """
        if self._bias is None and _trains_on_cpu(projected):
            return self._in_blocks(projected, None)
        if self._has_tiles(projected, width=projected.shape[1] // 3):
            return self._in_tiles(None, projected)
        width = projected.shape[1] // 3
        query, key_value = projected.split_with_sizes([width, 2 * width], 1)
        return self._fused(query, key_value, self._groups)

    def of_first(self, query: Tensor, key_value: Tensor) -> Tensor:
        """What the first token of each name gathered, shape (N, D).

        Args:
            query: Of the first tokens, shape (N, D).
            key_value: Keys and values of all tokens side by side, shape (T, 2 D).
        """
        if self._bias is None and _trains_on_cpu(query):
            return self._in_blocks(key_value, query)
        if self._has_tiles(key_value, width=query.shape[1]):
            return self._in_tiles(query, key_value)
        return self._fused(query, key_value, self._first_tokens)

    def _fused(self, query: Tensor, key_value: Tensor, asking: Groups) -> Tensor:
        """Torch's kernels."""
        if self._bias is None and _has_flash(query, query.shape[1] // self._n_heads):
            return self._flash(query, key_value, asking)
        gathered = []
        # Cut at once: a slice for each group would have a gradient as long as all tokens for each.
        *of_queries, of_no_name = _by_group(query, asking)
        *of_pairs, _ = _by_group(key_value, self._groups)
        for (names, n_queries), (_, length), own, pairs in zip(asking, self._groups, of_queries, of_pairs, strict=True):
            # (b, H, tokens, W) each
            heads = own.view(names, n_queries, self._n_heads, -1).transpose(1, 2)
            keys, values = pairs.view(names, length, 2, self._n_heads, -1).permute(2, 0, 3, 1, 4)
            bias = None if self._bias is None else self._bias[:, :, :n_queries, :length]
            if _is_quicker_by_products(heads, keys, self._dropout.probability):
                context = _by_products(heads, keys, values, bias)
            else:
                context = functional.scaled_dot_product_attention(
                    heads,
                    keys,
                    values,
                    attn_mask=None if bias is None else bias.to(heads.dtype),
                    dropout_p=self._dropout.probability,
                )
            gathered.append(context.transpose(1, 2).reshape(-1, query.shape[1]))
        gathered.append(torch.zeros_like(of_no_name))
        return torch.cat(gathered)

    def _has_tiles(self, projected: Tensor, *, width: int) -> bool:
        """Whether our kernels take these names."""
        if projected.device.type != "cuda" or self._bias is not None:
            return False
        is_half = projected.dtype in (torch.bfloat16, torch.float16)
        return is_half and tile_on_gpu(self._groups[-1][1], width // self._n_heads) is not None

    def _in_tiles(self, query: Tensor | None, projected: Tensor) -> Tensor:
        kernels = _kernels()
        assert kernels is not None
        dropout = self._dropout.probability
        if dropout and self._seed is None:  # one for all layers
            self._seed = torch.randint(2**62, (1,), device=projected.device)
        self._layers += 1
        names = kernels.Names(
            borders=self._borders,
            longest=self._groups[-1][1],
            n_heads=self._n_heads,
            dropout=dropout,
            seed=self._seed if dropout else None,
        )
        gathered: Tensor = kernels.attention(query, projected, names, layer=self._layers)
        return gathered

    @cached_property
    def _flash_borders(self) -> tuple[Tensor, Tensor]:
        """Of first tokens and of names, as flash attention wants them."""
        borders = self._borders.int()
        return torch.arange(len(borders), dtype=torch.int32, device=borders.device), borders

    def _flash(self, query: Tensor, key_value: Tensor, asking: Groups) -> Tensor:
        """The operator behind ``torch.nn.attention.varlen``, which itself offers no dropout.

        It is never given rows that belong to no name: batches that are recorded have such, and go to our kernels.
        """
        keys, values = key_value.view(len(key_value), 2, self._n_heads, -1).unbind(1)
        of_first, of_keys = self._flash_borders
        gathered: Tensor = torch.ops.aten._flash_attention_forward(
            query.view(len(query), self._n_heads, -1),
            keys,
            values,
            of_first if asking is self._first_tokens else of_keys,
            of_keys,
            max(length for _, length in asking),
            max(length for _, length in self._groups),
            self._dropout.probability,
            is_causal=False,
            return_debug_mask=False,
        )[0]
        return gathered.reshape(query.shape)

    def _in_blocks(self, projected: Tensor, first: Tensor | None) -> Tensor:
        """With a gradient on a CPU; ``first`` if only the first tokens ask."""
        first_only = first is not None
        precision = multiplied_in(projected.dtype)
        if (precision, first_only) not in self._masks:
            self._masks[precision, first_only] = self._blocks.masks(precision, first_only=first_only)
        gathered: Tensor = BlockAttention.apply(  # type: ignore[no-untyped-call]
            projected,
            first,
            self._blocks.giving(2 if first_only else 3),
            self._blocks.of_first if first_only else self._blocks.giving(1),
            self._masks[precision, first_only],
            self._dropout,
        )
        return gathered

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self._groups, n_heads=self._n_heads)


def _trains_on_cpu(projected: Tensor) -> bool:
    return projected.device.type == "cpu" and projected.requires_grad


def _is_quicker_by_products(query: Tensor, keys: Tensor, dropout: float) -> bool:
    """Whether torch's fused kernel, which in bf16 on a CPU takes a fixed time for each head of each name, is slower."""
    is_short = query.device.type == "cpu" and query.dtype is torch.bfloat16 and keys.shape[-2] <= _SHORT
    return is_short and not dropout and not keys.requires_grad  # products are changed in place


def _by_products(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """Attention as it is written down, in fp32; shapes (b, H, tokens, W)."""
    with torch.autocast("cpu", enabled=False):
        weights = torch.matmul(_fp32_rows(query).mul_(query.shape[-1] ** -0.5), _fp32_rows(keys).transpose(-1, -2))
        if bias is not None:
            weights.add_(bias)
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
        and torch.cuda.get_device_capability(query.device) >= _OLDEST
        and hasattr(torch.ops.aten, "_flash_attention_forward")
    )


def _by_group(rows: Tensor, groups: Groups) -> tuple[Tensor, ...]:
    """The rows of each group, and those after them, which belong to no name."""
    sizes = [names * length for names, length in groups]
    return rows.split_with_sizes([*sizes, len(rows) - sum(sizes)])


def tile_on_gpu(longest: int, head_width: int) -> int | None:
    """Tokens that a tile of our kernels has room for; None if they do not take names of this length or width here."""
    kernels = _kernels()
    return None if kernels is None else kernels.tile_of(longest, head_width)


@cache
def _kernels() -> Any:
    """The module of our kernels for GPUs (Any: it may be imported only where Triton is); None where they do not run."""
    if importlib.util.find_spec("triton") is None or torch.cuda.get_device_capability() < _OLDEST:
        return None
    try:
        kernels = importlib.import_module("onoma.encoders.short_attention")
        kernels.try_out()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever Triton and the compilers it calls may raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        warnings.warn(
            f"Triton cannot compile kernels here, so a step on the GPU takes about twice as long: {reason}. It needs a "
            "C compiler and Python's headers (Debian: gcc, python3-dev).",
            stacklevel=2,
        )
        return None
    return kernels
