"""How a ranking is judged: pure functions over ranks.

A rank is 1 for the first place; ``None`` says that nothing right was among the candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from onoma.errors import InputError


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A share of right queries with its confidence interval, all as fractions.

    Attributes:
        value: Right queries among all.
        low: Lower end of the 95 % bootstrap interval.
        high: Upper end.
        n_right: Number of right queries.
        n_queries: Number of all queries.
    """

    value: float
    low: float
    high: float
    n_right: int
    n_queries: int

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ({100 * self.low:.1f}-{100 * self.high:.1f})"


def first_hit_rank(candidates: Sequence[Collection[str]], gold: Collection[str]) -> int | None:
    """Rank of the first candidate that has one of the gold ids.

    Args:
        candidates: The ids of each candidate, best first.
        gold: The right ids.

    Example:
        >>> first_hit_rank([{"D003920"}, {"D003924", "125853"}], {"125853"})
        2
    """
    for rank, ids in enumerate(candidates, 1):
        if any(concept_id in gold for concept_id in ids):
            return rank
    return None


def composite_rank(part_ranks: Sequence[int | None]) -> int | None:
    """Rank of a query of several parts, all of which must be right: that of its worst part.

    Example:
        >>> composite_rank([1, 3]), composite_rank([1, None])
        (3, None)
    """
    ranks = [rank for rank in part_ranks if rank is not None]
    return max(ranks) if ranks and len(ranks) == len(part_ranks) else None


def accuracy_at(ranks: Sequence[int | None], k: int, *, seed: int = 0) -> Accuracy:
    """Share of queries with something right among the first ``k`` candidates, acc@k.

    Args:
        ranks: One per query.
        k: From 1.
        seed: Of the confidence interval.

    Raises:
        InputError: there is no query.

    Example:
        >>> accuracy_at([1, 4, None, 1], 1).value
        0.5
    """
    if not ranks:
        raise InputError("there is no query to judge")
    n_right = sum(rank is not None and rank <= k for rank in ranks)
    low, high = bootstrap_interval(n_right, len(ranks), seed=seed)
    return Accuracy(n_right / len(ranks), low, high, n_right, len(ranks))


def bootstrap_interval(
    n_right: int, n: int, *, seed: int, confidence: float = 0.95, n_resamples: int = 10_000
) -> tuple[float, float]:
    """Confidence interval of a share of right queries: percentiles over resampled sets of queries.

    The number of right ones among n queries drawn with replacement is binomial, so that number is drawn and
    not the queries. Queries count as independent; mentions that a document repeats are not, so the true
    interval of such a set is somewhat wider. Where all queries are right, or none, it is a point.

    Args:
        n_right: 0 to ``n``.
        n: At least 1.
        seed: Equal seeds give equal intervals.
        confidence: Between 0 and 1.
        n_resamples: How many sets are drawn.

    Returns:
        Lower and upper end, as fractions.

    Source:
        Efron 1979, percentile interval.

    Example:
        >>> low, high = bootstrap_interval(90, 100, seed=0)
        >>> round(low, 2), round(high, 2)
        (0.84, 0.95)
    """
    draws = np.random.default_rng(seed).binomial(n, n_right / n, n_resamples) / n
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return float(low), float(high)
