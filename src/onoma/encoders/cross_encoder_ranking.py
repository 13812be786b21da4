"""How the scores of a cross-encoder and those of the stage before it make one ranking.

A cross-encoder is trained to give the right candidates of a mention a high probability among all candidates of that
mention, so its scores mean something within one list only. The final score of a candidate is::

    (1 - weight) x score of the first stage + weight x probability

A candidate that was not reranked has probability 0 and so keeps its place after those that were. Scores are compared
to six decimals; of equal ones that which the first stage had earlier comes first. A weight of 0 is the first stage
alone, 1 the cross-encoder alone.

Shapes: M mentions, C candidates over all mentions; those of mention ``i`` stand at ``offsets[i]:offsets[i + 1]``, in
the order of the first stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onoma.types import BoolArray, RowArray

SCORE_DECIMALS = 6
"""Scores are compared to this many decimals, as everywhere in linking."""

WEIGHTS = (0.0, *(odds / (1 + odds) for power in range(-3, 3) for odds in (10.0**power * f for f in (1, 2, 5))), 1.0)
"""Weights that are tried. Their odds grow in the steps 1, 2, 5 from 0.001 to 500, as the scores of a first stage may
be cosines or much smaller numbers."""

_Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WeightChoice:
    """A weight and how the mentions fare that it was chosen on; fractions of all mentions."""

    weight: float
    at_1: float
    at_5: float
    mrr: float


def probabilities(scores: npt.NDArray[np.floating], offsets: RowArray) -> _Float64:
    """Softmax over the candidates of each mention, shape (C,).

    Example:
        >>> probabilities(np.array([1.0, 1.0, 7.0]), np.array([0, 2, 3])).tolist()
        [0.5, 0.5, 1.0]
    """
    mention = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    wide = np.asarray(scores, np.float64)
    highest = np.full(len(offsets) - 1, -np.inf)
    np.maximum.at(highest, mention, wide)
    exponentials = np.exp(wide - highest[mention])
    shares: _Float64 = exponentials / np.bincount(mention, weights=exponentials, minlength=1)[mention]
    return shares


def interpolated(first: npt.NDArray[np.floating], probability: npt.NDArray[np.floating], weight: float) -> _Float64:
    """Final scores to six decimals; arguments of equal shape.

    Example:
        >>> interpolated(np.array([0.9, 0.8]), np.array([0.25, 0.75]), 0.5).tolist()
        [0.575, 0.775]
    """
    mixed = (1 - weight) * np.asarray(first, np.float64) + weight * np.asarray(probability, np.float64)
    return np.round(mixed, SCORE_DECIMALS)


def right_ranks(final: _Float64, is_right: BoolArray, offsets: RowArray) -> RowArray:
    """Rank of the first right candidate of each mention, from 1; 0 where there is none, shape (M,).

    Example:
        >>> right_ranks(np.array([0.5, 0.7, 0.7, 0.1]), np.array([False, False, True, False]), np.array([0, 3, 4]))
        array([2, 0])
    """
    n_mentions = len(offsets) - 1
    mention = np.repeat(np.arange(n_mentions), np.diff(offsets))
    order = np.lexsort((-final, mention))  # stable: of equal scores the earlier first
    places = np.arange(len(final)) - offsets[mention]
    is_found = is_right[order]
    nothing = len(final) + 1
    ranks = np.full(n_mentions, nothing, np.int64)
    np.minimum.at(ranks, mention[is_found], places[is_found] + 1)
    ranks[ranks == nothing] = 0
    return ranks


def judge_weights(
    first: npt.NDArray[np.floating],
    scores: npt.NDArray[np.floating],
    is_right: BoolArray,
    offsets: RowArray,
    *,
    weights: Sequence[float] = WEIGHTS,
) -> list[WeightChoice]:
    """How mentions fare with each of some weights.

    Args:
        first: Scores of the first stage, shape (C,).
        scores: Of the cross-encoder, shape (C,).
        is_right: Whether the candidate is a right one, shape (C,).
        offsets: Shape (M + 1,). A mention without candidates, or without a right one, counts as wrong.
        weights: To be tried.
    """
    shares = probabilities(scores, offsets)
    return [_judged(interpolated(first, shares, weight), is_right, offsets, weight) for weight in weights]


def best_choice(choices: Sequence[WeightChoice]) -> WeightChoice:
    """The best acc@1; of equal ones the best mean reciprocal rank, then the earliest, which is the lowest weight."""
    return max(choices, key=lambda choice: (choice.at_1, choice.mrr))


def _judged(final: _Float64, is_right: BoolArray, offsets: RowArray, weight: float) -> WeightChoice:
    ranks = right_ranks(final, is_right, offsets)
    found, n_mentions = ranks[ranks > 0], max(1, len(ranks))
    return WeightChoice(
        weight=weight,
        at_1=float((found == 1).sum() / n_mentions),
        at_5=float((found <= 5).sum() / n_mentions),
        mrr=float((1 / found).sum() / n_mentions),
    )
