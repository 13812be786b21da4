"""The arithmetic of encoding packed names, and of a training step over them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from onoma.types import RowArray

Product = tuple[int, int, int]
"""(m, k, n): a matrix of m x k times one of k x n, 2 m k n FLOP."""


def weight_products(
    config: Any, n_tokens: int, n_names: int, *, first_only: bool, backward: bool = True
) -> Counter[Product]:
    """Products of states and weights, and how often each occurs.

    Backward has two for each of forward: the gradient of the states and that of the weight. Queries, keys and values of
    one layer count as one product.

    Args:
        config: A Hugging Face configuration.
        n_tokens: Real tokens; filling up is no work.
        n_names: Names.
        first_only: The last layer computes each name's first token only (``[CLS]`` pooling).
        backward: Those of the way back too.
    """
    width, inner, depth = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    forward: Counter[Product] = Counter()
    for layer in range(depth):
        if first_only and layer == depth - 1:
            rows = n_names
            forward[n_tokens, width, 2 * width] += 1
            forward[rows, width, width] += 1
        else:
            rows = n_tokens
            forward[rows, width, 3 * width] += 1
        forward[rows, width, width] += 1
        forward[rows, width, inner] += 1
        forward[rows, inner, width] += 1
    if not backward:
        return forward
    every: Counter[Product] = Counter()
    for (m, k, n), times in forward.items():
        for product in ((m, k, n), (m, n, k), (n, m, k)):
            every[product] += times
    return every


def flop(products: Counter[Product]) -> float:
    """FLOP of products."""
    return float(sum(2 * m * k * n * times for (m, k, n), times in products.items()))


def attention_flop(config: Any, lengths: RowArray, *, first_only: bool, backward: bool = True) -> float:
    """FLOP of the products inside attention: each token with each of its own name."""
    width, depth = int(config.hidden_size), int(config.num_hidden_layers)
    pairs = float((lengths**2).sum()) * (depth - first_only) + float(lengths.sum()) * first_only
    return (3 if backward else 1) * 2 * 2 * pairs * width
