"""Attention over names packed by length: each group of equally long names is a full rectangle, so there is no mask.

Shapes: T tokens, b names of length l in a group, H heads, D width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

from onoma.encoders.dropout import dropout as drop

Groups = Sequence[tuple[int, int]]


def packed_attention(
    query: torch.Tensor, key_value: torch.Tensor, groups: Groups, *, n_heads: int, dropout: float
) -> torch.Tensor:
    """Self-attention of every token, or of one token per name, over the tokens of its own name.

    Args:
        query: Shape (T, D) to ask for every token, (N, D) to ask for one token of each name.
        key_value: Keys and values side by side, shape (T, 2 D).
        groups: (names, length) of each group, as in `PackedBatch`.
        n_heads: H, a divisor of D.
        dropout: Probability that an attention weight is dropped; 0 outside training.

    Returns:
        What each query gathered, shaped as ``query``.
    """
    width = query.shape[-1]
    sizes = [names * length for names, length in groups]
    whole = query.shape[0] == sum(sizes)
    query_groups = query.split_with_sizes(sizes if whole else [names for names, _ in groups])
    gathered = []
    for q, kv, (names, length) in zip(query_groups, key_value.split_with_sizes(sizes), groups, strict=True):
        # (b, heads, tokens, D / H) each
        heads = q.view(names, -1, n_heads, width // n_heads).transpose(1, 2)
        keys, values = kv.view(names, length, 2, n_heads, width // n_heads).permute(2, 0, 3, 1, 4)
        context = _attend(heads, keys, values, dropout)
        gathered.append(context.transpose(1, 2).reshape(-1, width))
    return torch.cat(gathered)


def _attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, dropout: float) -> torch.Tensor:
    if query.device.type != "cpu" or not query.requires_grad:
        return functional.scaled_dot_product_attention(query, keys, values, dropout_p=dropout)
    # On a CPU the fused kernel's backward takes three times as long as plain products when names have ten tokens. They
    # are taken in fp32, also under autocast: in bf16 oneDNN compiles and keeps a kernel for each shape of a group.
    names, n_heads, n_queries, width = query.shape
    with torch.autocast("cpu", enabled=False):
        flat_query = query.float().reshape(names * n_heads, n_queries, width)
        flat_keys = keys.float().reshape(names * n_heads, -1, width)
        flat_values = values.float().reshape(names * n_heads, -1, width)
        weights = torch.softmax(torch.bmm(flat_query, flat_keys.transpose(1, 2)) * width**-0.5, dim=-1)
        context = torch.bmm(drop(weights, dropout), flat_values)
    return context.to(query.dtype).view(names, n_heads, n_queries, width)
