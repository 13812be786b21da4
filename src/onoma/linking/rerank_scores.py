"""How the scores of a cross-encoder and those of the stage before it make one ranking.

A cross-encoder is trained to give the right candidates of a mention a high probability among all candidates of that
mention, so its scores mean something within one list only. The final score of a candidate is::

    (1 - weight) x score of the first stage + weight x probability

A candidate that was not reranked has probability 0 and so keeps its place after those that were. Scores are compared
to six decimals; of equal ones that which the first stage had earlier comes first. A weight of 0 is the first stage
alone, 1 the cross-encoder alone.

**NIL.** A cross-encoder may have learned to say that no candidate is meant. NIL is then one more candidate, without a
text: its score is 0 in training, so that the score of any other is the logarithm of its odds against NIL. In use the
score of NIL is a number that was chosen on development mentions: there NIL is as frequent as it is, not as it was among
the mentions learned from, and a constant factor of its odds is what sets that right. NIL is the answer where it is more
probable than all candidates together.

**Look-up.** What a linker's look-up found is a name that equals the mention. Such hits stay before all else and are
never NIL; a cross-encoder orders them among themselves.

Shapes: M mentions, C candidates over all mentions; those of mention ``i`` stand at ``offsets[i]:offsets[i + 1]``, in
the order of the first stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onoma.types import SCORE_DECIMALS, BoolArray, DoubleArray, RowArray

WEIGHTS = (0.0, *(odds / (1 + odds) for power in range(-3, 3) for odds in (10.0**power * f for f in (1, 2, 5))), 1.0)
"""Weights that are tried. Their odds grow in the steps 1, 2, 5 from 0.001 to 500, as the scores of a first stage may
be cosines or much smaller numbers."""

NIL_SCORES = (None, *(half / 2 for half in range(-12, 13)))
"""Scores of NIL that are tried; None: it is never the answer. Their odds are those of 0 in parts of 400 and times."""

_HALF = 0.5


@dataclass(frozen=True, slots=True)
class WeightChoice:
    """A weight, a score of NIL, and how the mentions fare that they were chosen on; fractions of all mentions."""

    weight: float
    at_1: float
    at_5: float
    mrr: float
    nil_score: float | None = None


def probabilities(
    scores: npt.NDArray[np.floating], offsets: RowArray, *, nil_score: float | None = None
) -> tuple[DoubleArray, DoubleArray]:
    """Softmax over the candidates of each mention and NIL.

    Args:
        scores: Shape (C,).
        offsets: Shape (M + 1,).
        nil_score: Of NIL; unset: it is no candidate.

    Returns:
        Probabilities of the candidates, shape (C,), and of NIL, shape (M,).

    Example:
        >>> probabilities(np.array([1.0, 1.0, 7.0]), np.array([0, 2, 3]))[0].tolist()
        [0.5, 0.5, 1.0]
        >>> probabilities(np.array([0.0, 0.0]), np.array([0, 1, 1, 2]), nil_score=0.0)[1].tolist()
        [0.5, 1.0, 0.5]
    """
    mention = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    wide = np.asarray(scores, np.float64)
    highest = np.full(len(offsets) - 1, -np.inf if nil_score is None else nil_score)
    np.maximum.at(highest, mention, wide)
    exponentials = np.exp(wide - highest[mention])
    of_nil = np.zeros(len(highest)) if nil_score is None else np.exp(nil_score - highest)
    sums = np.bincount(mention, weights=exponentials, minlength=len(highest)) + of_nil
    return exponentials / sums[mention], of_nil / np.where(sums > 0, sums, 1.0)


def interpolated(first: npt.NDArray[np.floating], probability: npt.NDArray[np.floating], weight: float) -> DoubleArray:
    """Final scores to six decimals; arguments of equal shape.

    Example:
        >>> interpolated(np.array([0.9, 0.8]), np.array([0.25, 0.75]), 0.5).tolist()
        [0.575, 0.775]
    """
    mixed = (1 - weight) * np.asarray(first, np.float64) + weight * np.asarray(probability, np.float64)
    return np.round(mixed, SCORE_DECIMALS)


def answers_nil(of_nil: DoubleArray) -> BoolArray:
    """Whether NIL is the answer: more probable, to six decimals, than all candidates together.

    Args:
        of_nil: Probability of NIL, shape (M,).

    Example:
        >>> answers_nil(np.array([0.5, 0.6])).tolist()
        [False, True]
    """
    is_nil: BoolArray = np.round(of_nil, SCORE_DECIMALS) > _HALF
    return is_nil


def right_ranks(
    final: DoubleArray, is_right: BoolArray, offsets: RowArray, *, is_behind: BoolArray | None = None
) -> RowArray:
    """Rank of the first right candidate of each mention, from 1; 0 where there is none, shape (M,).

    Args:
        final: Scores, shape (C,).
        is_right: Whether the candidate is a right one, shape (C,).
        offsets: Shape (M + 1,).
        is_behind: Whether the candidate comes behind those that are not, whatever its score, shape (C,).

    Example:
        >>> right_ranks(np.array([0.5, 0.7, 0.7, 0.1]), np.array([False, False, True, False]), np.array([0, 3, 4]))
        array([2, 0])
    """
    n_mentions = len(offsets) - 1
    mention = np.repeat(np.arange(n_mentions), np.diff(offsets))
    tiers = np.zeros(len(final), np.bool_) if is_behind is None else is_behind
    order = np.lexsort((-final, tiers, mention))  # stable: of equal scores the earlier first
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
    n_hits: RowArray | None = None,
    weights: Sequence[float] = WEIGHTS,
    means_nil: BoolArray | None = None,
    nil_scores: Sequence[float | None] = (None,),
) -> list[WeightChoice]:
    """How mentions fare with each of some weights and scores of NIL.

    Where NIL is the answer, that is right for a mention that means NIL, and there is no other answer. A mention that
    has no right answer counts as wrong.

    Args:
        first: Scores of the first stage, shape (C,).
        scores: Of the cross-encoder, shape (C,).
        is_right: Whether the candidate is a right one, shape (C,).
        offsets: Shape (M + 1,).
        n_hits: How many candidates look-up found, shape (M,); they come first. Unset: none.
        weights: To be tried.
        means_nil: Whether there is no concept to be found for a mention, shape (M,); unset: there is for each.
        nil_scores: To be tried.
    """
    lengths = np.diff(offsets)
    hits = np.zeros(len(lengths), np.int64) if n_hits is None else n_hits
    places = np.arange(len(scores)) - np.repeat(offsets[:-1], lengths)
    is_behind = np.repeat(hits > 0, lengths) & (places >= np.repeat(hits, lengths))
    reranked = np.where(is_behind, -np.inf, scores)  # behind hits nothing is reranked
    choices = []
    for nil_score in nil_scores:
        shares, of_nil = probabilities(reranked, offsets, nil_score=nil_score)
        is_nil = answers_nil(of_nil) & (hits == 0)
        for weight in weights:
            ranks = right_ranks(interpolated(first, shares, weight), is_right, offsets, is_behind=is_behind)
            ranks[is_nil] = 0 if means_nil is None else means_nil[is_nil]
            choices.append(_judged(ranks, weight, nil_score))
    return choices


def best_choice(choices: Sequence[WeightChoice]) -> WeightChoice:
    """The best acc@1; of equal ones the best mean reciprocal rank, then the earliest.

    That is the lowest weight, and no NIL rather than some.
    """
    return max(choices, key=lambda choice: (choice.at_1, choice.mrr))


def _judged(ranks: RowArray, weight: float, nil_score: float | None) -> WeightChoice:
    found, n_mentions = ranks[ranks > 0], max(1, len(ranks))
    return WeightChoice(
        weight=weight,
        at_1=float((found == 1).sum() / n_mentions),
        at_5=float((found <= 5).sum() / n_mentions),
        mrr=float((1 / found).sum() / n_mentions),
        nil_score=nil_score,
    )
