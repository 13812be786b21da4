"""How a ranking is judged: pure functions over ranks.

A rank is 1 for the first place; ``None`` says that nothing right was among the candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from onoma.errors import InputError, ShapeError, check_several, whole_number
from onoma.linking.confidence_inputs import checked_level, checked_share, outcomes
from onoma.linking.confidence_metrics import wilson_interval
from onoma.randomness import random_from
from onoma.types import BoolArray, DoubleArray, RowArray

DISTINCT = "distinct mentions"
"""What intervals are over where nothing else is said."""
_DRAWN_AT_ONCE = 1_000_000
"""Clusters of several resamples that are in memory together."""
_RESAMPLES_AT_ONCE = 50
"""Of several subsets, which are one product of matrices."""


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


def first_hit_rank(candidates: Iterable[Collection[str]], gold: Iterable[str]) -> int | None:
    """Rank of the first candidate that has one of the gold ids.

    Args:
        candidates: The ids of each candidate, best first.
        gold: The right ids.

    Raises:
        InputError: a candidate or ``gold`` is one string: what are its ids?

    Example:
        >>> first_hit_rank([{"D003920"}, {"D003924", "125853"}], {"125853"})
        2
    """
    check_several(gold, "gold")
    gold = frozenset(gold)
    for rank, ids in enumerate(candidates, 1):
        check_several(ids, f"candidates[{rank - 1}]")
        if not gold.isdisjoint(ids):
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


def accuracy_at(
    ranks: Sequence[int | None], k: int, *, clusters: Sequence[str] | None = None, seed: int = 0
) -> Accuracy:
    """Share of queries with something right among the first ``k`` candidates, acc@k.

    Args:
        ranks: One per query.
        k: From 1.
        clusters: Which queries are not independent of each other, one key per query: equal mentions have equal
            answers. Unset: all are independent.
        seed: Of the confidence interval.

    Raises:
        InputError: there is no query, or a rank or ``k`` is below 1.
        ShapeError: not one cluster per query.

    Example:
        >>> accuracy_at([1, 4, None, 1], 1).value
        0.5
    """
    right = _right_at(ranks, k)
    n_right = sum(right)
    if clusters is None:
        low, high = bootstrap_interval(n_right, len(ranks), seed=seed)
    else:
        low, high = cluster_interval(right, clusters, seed=seed)
    return Accuracy(n_right / len(ranks), low, high, n_right, len(ranks))


def macro_accuracy_at(ranks: Sequence[int | None], k: int, *, clusters: Sequence[str]) -> float:
    """acc@k with every distinct mention counted once, however often it occurs, as a fraction.

    Where one mention stands a thousand times, acc@k is for the most part that of a few; this one is of all alike.

    Args:
        ranks: One per query.
        k: From 1.
        clusters: One key per query, equal for equal mentions. Of a mention with several answers their mean counts.

    Raises:
        InputError: there is no query, or a rank or ``k`` is below 1.
        ShapeError: not one cluster per query.

    Example:
        >>> macro_accuracy_at([1, 1, 1, None], 1, clusters=["pain", "pain", "pain", "fever"])
        0.5
    """
    right = _right_at(ranks, k)
    _check_clusters(right, clusters)
    return cluster_mean(np.array(right, np.float64), cluster_numbers(clusters))


def cluster_mean(values: DoubleArray, clusters: RowArray) -> float:
    """The mean of the clusters' means.

    Args:
        values: One number per query.
        clusters: Of each query the number of its cluster, of 0 to the highest each at least once.
    """
    return float((np.bincount(clusters, weights=values) / np.bincount(clusters)).mean())


def _check_clusters(right: Sequence[bool], clusters: Sequence[str]) -> None:
    if len(right) != len(clusters):
        raise ShapeError(f"{len(right)} queries, but {len(clusters)} clusters.")


def _right_at(ranks: Sequence[int | None], k: int) -> list[bool]:
    if len(ranks) == 0:
        raise InputError("there is no query to judge")
    k = whole_number(k, "k", "places are counted from 1")
    places = [None if rank is None else _place(rank) for rank in ranks]
    return [place is not None and place <= k for place in places]


def _place(rank: float) -> int:
    """A place as a whole number; tables that have gaps write 1.0."""
    whole = int(rank) if isinstance(rank, float) and rank.is_integer() else rank
    return whole_number(whole, "ranks", "places are counted from 1")


def bootstrap_interval(
    n_right: int, n: int, *, seed: int, confidence: float = 0.95, n_resamples: int = 10_000
) -> tuple[float, float]:
    """Confidence interval of a share of right queries: percentiles over resampled sets of queries.

    The number of right ones among n queries drawn with replacement is binomial, so that number is drawn and
    not the queries. Queries count as independent; for those that are not see `cluster_interval`. Where all queries
    are right, or none, every resample is the same: there it is Wilson's interval.

    Args:
        n_right: 0 to ``n``.
        n: At least 1.
        seed: Equal seeds give equal intervals.
        confidence: Between 0 and 1.
        n_resamples: How many sets are drawn.

    Returns:
        Lower and upper end, as fractions.

    Raises:
        InputError: a number is not what it should be.

    Source:
        Efron 1979, percentile interval; `onoma.linking.confidence_metrics.wilson_interval`.

    Example:
        >>> low, high = bootstrap_interval(90, 100, seed=0)
        >>> round(low, 2), round(high, 2)
        (0.84, 0.95)
    """
    n_right, n = checked_share(n_right, n)
    n_resamples = whole_number(n_resamples, "n_resamples", "too few resamples")
    if n_right in (0, n):
        return wilson_interval(n_right, n, confidence=confidence)
    draws = random_from(seed).binomial(n, n_right / n, n_resamples) / n
    return percentile_interval(draws, confidence=confidence)


def percentile_interval(means: DoubleArray, *, confidence: float = 0.95) -> tuple[float, float]:
    """Lower and upper end of the middle of resampled means that holds the share ``confidence`` of them.

    Raises:
        InputError: the confidence does not lie between 0 and 1.
    """
    tail = (1 - checked_level(confidence)) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def cluster_numbers(clusters: Sequence[str | None]) -> RowArray:
    """A number from 0 for each key, in the order in which keys come; what has none is a cluster of its own.

    Example:
        >>> cluster_numbers(["a", None, "b", "a", None]).tolist()
        [0, 1, 2, 0, 3]
    """
    numbers: dict[object, int] = {}
    found = [numbers.setdefault(object() if key is None else key, len(numbers)) for key in clusters]
    return np.array(found, np.int64)


def cluster_interval(
    right: Sequence[bool], clusters: Sequence[str], *, seed: int, confidence: float = 0.95, n_resamples: int = 10_000
) -> tuple[float, float]:
    """Confidence interval of a share of right queries of which some are not independent of each other.

    Whole clusters are drawn with replacement, as many as there are; the share is that of all their queries. Where
    every query is a cluster of its own, or all are right, or none, this is `bootstrap_interval` of the clusters. Of a
    single cluster, or where all have the same share, it is a point, as every resample is the same.

    Args:
        right: Whether each query is right, at least one.
        clusters: Of each query a key that it shares with those of its cluster.
        seed: Equal seeds give equal intervals.
        confidence: Between 0 and 1.
        n_resamples: How often clusters are drawn.

    Returns:
        Lower and upper end, as fractions.

    Raises:
        ShapeError: not one cluster per query.
        InputError: a number is not what it should be.

    Source:
        Davison and Hinkley 1997, section 3.8: clusters are resampled, not what is in them.

    Example:
        >>> low, high = cluster_interval([True] * 90 + [False] * 10, ["a"] * 90 + ["b"] * 10, seed=0)
        >>> round(low, 2), round(high, 2)
        (0.0, 1.0)
    """
    _check_clusters(right, clusters)
    n_resamples = whole_number(n_resamples, "n_resamples", "too few resamples")
    is_right = outcomes(right, "right")
    numbers = cluster_numbers(clusters)
    n_clusters = int(numbers.max()) + 1
    if n_clusters == len(right) or is_right.all() or not is_right.any():
        n_right = int(is_right.sum()) * n_clusters // len(right)
        return bootstrap_interval(n_right, n_clusters, seed=seed, confidence=confidence, n_resamples=n_resamples)
    means = resampled_means(is_right.astype(np.float64), numbers, seed=seed, n_resamples=n_resamples)
    return percentile_interval(means, confidence=confidence)


def subset_intervals(
    subsets: Sequence[BoolArray], right: BoolArray, clusters: RowArray, *, seed: int, n_resamples: int
) -> list[tuple[float, float] | None]:
    """95 % intervals of the share of right ones in each of several subsets of the queries; ``None`` of an empty one.

    As `cluster_interval`, but that clusters of which a subset has none are drawn too, so that its size is left to
    chance as well, and that all subsets are of the same draws. Where all of a subset are right, or none, it is Wilson's
    interval of its clusters.

    Args:
        subsets: Whether each query belongs to it, each of shape (n,).
        right: Whether each query is right, shape (n,).
        clusters: See `cluster_numbers`, shape (n,).
        seed: Equal seeds give equal intervals.
        n_resamples: How often clusters are drawn.

    Source:
        Davison and Hinkley 1997, section 3.8.
    """
    n_clusters, n_subsets = int(clusters.max()) + 1, len(subsets)
    # Of those in each subset, then of the right ones in it: whole numbers, exact in single precision up to 16 million.
    counts = np.empty((n_clusters, 2 * n_subsets), np.float32)
    for number, subset in enumerate(subsets):
        counts[:, number] = np.bincount(clusters[subset], minlength=n_clusters)
        counts[:, n_subsets + number] = np.bincount(clusters[subset & right], minlength=n_clusters)
    random, shares = random_from(seed), np.empty((n_resamples, n_subsets))
    for begin in range(0, n_resamples, _RESAMPLES_AT_ONCE):
        n = min(_RESAMPLES_AT_ONCE, n_resamples - begin)
        drawn = (random.integers(0, n_clusters, n_clusters) for _ in range(n))
        times = np.stack([np.bincount(clusters_drawn, minlength=n_clusters) for clusters_drawn in drawn])
        sums = (times.astype(np.float32) @ counts).astype(np.float64)
        with np.errstate(invalid="ignore"):
            shares[begin : begin + n] = sums[:, n_subsets:] / sums[:, :n_subsets]
    found: list[tuple[float, float] | None] = []
    for n_kept, n_right, column in zip(counts.T[:n_subsets], counts.T[n_subsets:], shares.T, strict=True):
        n_distinct = int((n_kept > 0).sum())
        if n_right.sum() in (0, n_kept.sum()):  # every resample is the same
            found.append(wilson_interval(n_distinct if n_right.any() else 0, n_distinct) if n_distinct else None)
        else:
            found.append(percentile_interval(column[~np.isnan(column)]))
    return found


def resampled_means(values: DoubleArray, clusters: RowArray, *, seed: int, n_resamples: int) -> DoubleArray:
    """Means of values whose clusters are drawn with replacement, as many as there are, shape (n_resamples,).

    Args:
        values: One per query, shape (n,).
        clusters: See `cluster_numbers`, shape (n,).
        seed: Equal seeds give equal means.
        n_resamples: How often clusters are drawn.
    """
    sizes, sums = np.bincount(clusters).astype(np.float64), np.bincount(clusters, weights=values)
    random = random_from(seed)
    means = np.empty(n_resamples)
    at_once = max(1, _DRAWN_AT_ONCE // len(sizes))
    for first in range(0, n_resamples, at_once):
        drawn = random.integers(0, len(sizes), (min(at_once, n_resamples - first), len(sizes)))
        means[first : first + len(drawn)] = sums[drawn].sum(1) / sizes[drawn].sum(1)
    return means
