"""Several searches' scores of the same texts combined into one.

Candidates of a mention are its `pool`: the best texts of each search together. Each search then scores all of them, so
that nothing is missing. There are two ways to fuse:

* **weights**, once learned: ``sum_i w_i s_i`` with ``w_i >= 0`` and ``sum_i w_i = 1``, so that a text that equals the
  mention has the score 1, as in each search alone;
* **reciprocal ranks**, if nothing was learned: the mean over the searches of ``61 / (60 + rank)``. The rank is that
  among the candidates; equal scores (to six decimals) have the rank of the first of them. First in every search: 1. A
  search that cannot use the mention, such as n-grams if it shares none with any name, adds nothing.

A name in characters that the encoder does not know has no vector: a cosine of exactly 0 says nothing, and that of
n-grams replaces it. Under weights, the same holds for a mention in such characters; with ranks, the other search alone
makes nothing sure.

If the pool stands for too few concepts, a larger one is used. What came in with the first pool keeps its scores, and
what comes in with a later one stays behind it: it ranks behind in each search, and if its scores are still too high,
all of that pool's are lowered by as much. So a longer answer begins with the shorter one.

The weights are those under which the development mentions' right concepts are most probable
(`onoma.linking.likelihood`).

Source:
    Cormack, Clarke, Büttcher 2009, k = 60. Differs: divided by the largest value that is possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from onoma.errors import InputError
from onoma.linking.likelihood import LabelledPool, maximise_likelihood
from onoma.linking.settings import SEARCHES, Stage
from onoma.types import SCORE_DECIMALS, DoubleArray, RowArray

RANK_CONSTANT = 60
_CLEARLY = 2e-6
"""Scores so far apart stay apart when they are rounded to so many decimals."""


def contributions(
    parts: Mapping[Stage, DoubleArray], weights: Mapping[Stage, float] | None, tiers: RowArray | None = None
) -> dict[Stage, DoubleArray]:
    """What each search adds to the score of each candidate; their sum is the score.

    Args:
        parts: Scores of the n candidates by each search, shape (n,).
        weights: Of the searches; unset: reciprocal ranks. One search alone has its own score, whatever the weights.
        tiers: With which pool each candidate came in, from 0, shape (n,); unset: there was one.

    Example:
        >>> scores = {"dense": np.array([0.9, 0.8]), "sparse": np.array([0.1, 0.4])}
        >>> {stage: part.round(3).tolist() for stage, part in contributions(scores, None).items()}
        {'dense': [0.5, 0.492], 'sparse': [0.492, 0.5]}
    """
    if len(parts) == 1:
        return dict(parts)
    if weights is not None or not knows_nothing(parts["dense"], tiers):
        parts = without_gaps(parts)
    if weights is None:
        shares = dict.fromkeys(parts, 1 / len(parts))
        added = {
            stage: np.zeros(len(scores))
            if knows_nothing(scores, tiers)
            else (RANK_CONSTANT + 1) / (RANK_CONSTANT + ranks(scores, tiers)) / len(parts)
            for stage, scores in parts.items()
        }
    else:
        shares = {stage: weights[stage] for stage in parts}
        added = {stage: shares[stage] * scores for stage, scores in parts.items()}
    if tiers is None:
        return added
    lowered = _lowered(_total(added), tiers)
    return {stage: scores - shares[stage] * lowered for stage, scores in added.items()}


def fuse(
    parts: Mapping[Stage, DoubleArray], weights: Mapping[Stage, float] | None, tiers: RowArray | None = None
) -> DoubleArray:
    """Scores of the candidates, shape (n,); see `contributions`."""
    return _total(contributions(parts, weights, tiers))


def without_gaps(parts: Mapping[Stage, DoubleArray]) -> dict[Stage, DoubleArray]:
    """Scores of both searches, those of n-grams in the place of cosines that say nothing."""
    return {**parts, "dense": np.where(parts["dense"] == 0, parts["sparse"], parts["dense"])}


def knows_nothing(scores: DoubleArray, tiers: RowArray | None = None) -> bool:
    """Whether a search finds no name of the first pool similar to the mention, not even its own best ones.

    Example:
        >>> knows_nothing(np.array([0.0, 0.0]))
        True
    """
    first = scores if tiers is None else scores[tiers == 0]
    return bool((np.round(first, SCORE_DECIMALS) <= 0).all())


def ranks(scores: DoubleArray, tiers: RowArray | None = None) -> RowArray:
    """1 for the highest; equal scores (to six decimals) have the rank of the first of them; shape (n,).

    Args:
        scores: Shape (n,).
        tiers: See `contributions`: a candidate ranks behind all of lower tiers.

    Example:
        >>> ranks(np.array([0.5, 0.9, 0.5, 0.1])).tolist()
        [2, 1, 2, 4]
        >>> ranks(np.array([0.5, 0.9, 0.5, 0.1]), np.array([0, 1, 0, 0])).tolist()
        [1, 4, 1, 3]
    """
    rounded = -np.round(scores, SCORE_DECIMALS)
    if tiers is None:
        return np.searchsorted(np.sort(rounded), rounded, side="left") + 1
    order = np.lexsort((rounded, tiers))
    is_next = np.ones(len(order), np.bool_)
    is_next[1:] = (np.diff(rounded[order]) != 0) | (np.diff(tiers[order]) != 0)
    found = np.empty(len(order), np.int64)
    found[order] = np.maximum.accumulate(np.where(is_next, np.arange(1, len(order) + 1), 0))
    return found


def _total(added: Mapping[Stage, DoubleArray]) -> DoubleArray:
    return np.asarray(np.sum(list(added.values()), axis=0), np.float64)


def _lowered(scores: DoubleArray, tiers: RowArray) -> DoubleArray:
    """By how much scores must fall so that those of each tier are below all of lower tiers, shape (n,)."""
    lowered, least = np.zeros(len(scores)), np.inf
    for tier in np.unique(tiers).tolist():
        own = tiers == tier
        fall = max(0.0, float(scores[own].max()) - (least - _CLEARLY))
        lowered[own] = fall
        least = float(scores[own].min()) - fall
    return lowered


def learn_weights(pools: Sequence[LabelledPool]) -> dict[Stage, float]:
    """Weights under which the right concepts of development mentions are most probable.

    Args:
        pools: Of the mentions, with the scores of each of `SEARCHES`; mentions without a right candidate say nothing.

    Raises:
        InputError: no mention has both a right and a wrong candidate, or no search puts the right ones first.
    """
    weights = maximise_likelihood(pools)
    if weights is None:
        raise InputError(
            "no weights can be learned: no development mention has a right and a wrong candidate, or the scores speak "
            "against the right ones",
            fix="take more mentions, of concepts that the linker knows and that are no names in it already",
        )
    shares = weights / weights.sum()
    return dict(zip(SEARCHES, shares.tolist(), strict=True))
