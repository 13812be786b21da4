"""Attention of sequences side by side as torch's operator for GPUs has it, written down for any device.

Shapes: (tokens, heads, width); ``borders`` (int32) say where each sequence begins and the last one ends.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def _sequences(tensors: tuple[Tensor, ...], borders: Tensor) -> list[tuple[Tensor, ...]]:
    """The rows of each sequence, with heads first, in fp32 on the CPU."""
    lengths = borders.diff().tolist()
    split = [torch.split(tensor.cpu().float(), lengths) for tensor in tensors]
    return [tuple(one.transpose(0, 1) for one in parts) for parts in zip(*split, strict=True)]


def _weights(query: Tensor, key: Tensor) -> Tensor:
    return torch.softmax(query @ key.transpose(1, 2) / math.sqrt(query.shape[-1]), -1)


def _kept(weights: Tensor, dropout: float, generator: torch.Generator) -> Tensor:
    """What each weight is multiplied with."""
    return (torch.rand(weights.shape, generator=generator) >= dropout) / (1 - dropout)


def _joined(parts: list[Tensor], like: Tensor) -> Tensor:
    return torch.cat([part.transpose(0, 1) for part in parts]).to(like.dtype).to(like.device)


def flash_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    of_queries: Tensor,
    of_keys: Tensor,
    longest_query: int,
    longest_key: int,
    dropout: float,
    is_causal: bool,
    return_debug_mask: bool,
    **options: object,
) -> tuple[Tensor, ...]:
    """Attention of sequences side by side, after the checks of the kernel; shapes (tokens, heads, width)."""
    assert not is_causal
    assert not return_debug_mask
    assert not any(option is not None for option in options.values())
    for tensor, borders, longest in ((query, of_queries, longest_query), (key, of_keys, longest_key)):
        assert tensor.dtype in (torch.bfloat16, torch.float16)
        assert borders.dtype is torch.int32
        assert borders.is_cuda
        assert borders[0] == 0
        assert borders[-1] == len(tensor)
        assert borders.diff().max() == longest
    assert all(tensor.dim() == 3 and tensor.stride(-1) == 1 for tensor in (query, key, value))
    seed = int(torch.randint(2**31, ()))
    generator = torch.Generator().manual_seed(seed)
    found = []
    both = zip(_sequences((query,), of_queries), _sequences((key, value), of_keys), strict=True)
    for (queries,), (keys, values) in both:
        weights = _weights(queries, keys)
        found.append((weights * _kept(weights, dropout, generator)) @ values)
    log_sums = query.new_zeros(query.shape[1], len(query), dtype=torch.float32)
    state = torch.tensor([seed, 0]).to(query.device)
    return _joined(found, query), log_sums, state, state[:0], query[:0, 0, 0]


def flash_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    log_sums: Tensor,
    of_queries: Tensor,
    of_keys: Tensor,
    longest_query: int,
    longest_key: int,
    dropout: float,
    is_causal: bool,
    state: Tensor,
    unused: Tensor,
    **options: object,
) -> tuple[Tensor, ...]:
    """The gradients of queries, keys and values."""
    generator = torch.Generator().manual_seed(int(state[0]))
    of_query, of_key, of_value = [], [], []
    both = zip(_sequences((query, gradient), of_queries), _sequences((key, value), of_keys), strict=True)
    for (queries, gradients), (keys, values) in both:
        weights = _weights(queries, keys)
        kept = _kept(weights, dropout, generator)
        of_value.append((weights * kept).transpose(1, 2) @ gradients)
        of_weights = (gradients @ values.transpose(1, 2)) * kept
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) / math.sqrt(query.shape[-1])
        of_query.append(of_scores @ keys)
        of_key.append(of_scores.transpose(1, 2) @ queries)
    return _joined(of_query, query), _joined(of_key, key), _joined(of_value, value)
