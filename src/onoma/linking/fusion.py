"""Several searches' scores of the same texts made one.

Candidates of a mention are its `pool`: the best texts of each search together. Each search then scores all of them, so
that nothing is missing. Two ways to fuse:

* **weights**, once learned: ``sum_i w_i s_i`` with ``w_i >= 0`` and ``sum_i w_i = 1``, so that a text that equals the
  mention has the score 1, as in each search alone;
* **reciprocal ranks**, where nothing was learned: the mean over the searches of ``61 / (60 + rank)``. The rank is that
  among the candidates; equal scores (to six decimals) have the rank of the first of them. First in every search: 1.

Where the pool stands for too few concepts a larger one is taken. What came in with the first pool keeps its scores, and
what comes in with a later one stays behind it: it ranks behind in each search, and if its scores are still too high,
all of that pool's are lowered by as much. So a longer answer begins with the shorter one.

The weights are those under which the development mentions' right concepts are most probable, the probability of a text
being a softmax over the candidates (BioSyn's marginal likelihood). A logistic regression would learn to tell right from
wrong texts whatever their mention; here only the order of one mention's candidates counts, as it does in linking.

Source:
    Reciprocal ranks: Cormack, Clarke, Büttcher 2009, k = 60. Differs: divided by the largest value that is possible.
    Marginal likelihood: Sung et al. 2020 (BioSyn), eqs. 5 to 7. Differs: both weights are learned, in closed loop by
    Newton's method instead of with the encoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from onoma.errors import InputError
from onoma.linking.settings import SEARCHES, Stage
from onoma.types import SCORE_DECIMALS, BoolArray, RowArray

DoubleArray: TypeAlias = npt.NDArray[np.float64]
RANK_CONSTANT = 60
_CLEARLY = 2e-6
"""Scores so far apart stay apart when they are rounded to so many decimals."""
_L2 = 1e-6
"""Pull of the weights towards 0 for each mention: without it they grow for ever where every mention is answered."""
_MAX_STEPS = 200
_LEAST_GAIN = 1e-10


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
    if weights is None:
        shares = dict.fromkeys(parts, 1 / len(parts))
        added = {
            stage: (RANK_CONSTANT + 1) / (RANK_CONSTANT + ranks(scores, tiers)) / len(parts)
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


@dataclass(frozen=True)
class LabelledPool:
    """A development mention's candidates.

    Attributes:
        scores: By each of the searches (`SEARCHES`, in this order), shape (n, 2).
        is_right: Which of the texts are names of a right concept, shape (n,).
        n: How often the mention occurs.
    """

    scores: DoubleArray
    is_right: BoolArray
    n: int = 1


def learn_weights(pools: Sequence[LabelledPool]) -> dict[Stage, float]:
    """Weights under which the right concepts of development mentions are most probable.

    Maximises the mean over the mentions of ``log sum_right softmax(a . s)``; what is returned is ``a`` divided by its
    sum, as the order of candidates depends on that alone. Mentions without a right candidate say nothing.

    Args:
        pools: Of the mentions; their order changes nothing but rounding.

    Raises:
        InputError: no mention has both a right and a wrong candidate.
    """
    telling = [pool for pool in pools if pool.is_right.any() and not pool.is_right.all()]
    if not telling:
        raise InputError(
            "no development mention has a right and a wrong candidate, so no weights can be learned",
            fix="take more mentions, of concepts that the linker knows and that are no names in it already",
        )
    weights = _maximise(telling)
    shares = weights / weights.sum()
    return dict(zip(SEARCHES, shares.tolist(), strict=True))


def _maximise(pools: Sequence[LabelledPool]) -> DoubleArray:
    """Newton's method, damped, kept within weights from 0; where it does not climb, a step along the gradient."""
    weights = np.full(len(SEARCHES), 1.0)
    value, gradient, curvature = _likelihood(pools, weights)
    for _ in range(_MAX_STEPS):
        step = _newton_step(weights, gradient, curvature)
        length = 1.0
        while length > 1e-8:
            tried = np.maximum(weights + length * step, 0)
            if tried.any():
                new_value, new_gradient, new_curvature = _likelihood(pools, tried)
                if new_value > value:
                    break
            length /= 2
        else:
            break
        gain = new_value - value
        weights, value, gradient, curvature = tried, new_value, new_gradient, new_curvature
        if gain < _LEAST_GAIN:
            break
    return weights


def _newton_step(weights: DoubleArray, gradient: DoubleArray, curvature: DoubleArray) -> DoubleArray:
    free = (weights > 0) | (gradient > 0)
    step = np.zeros_like(weights)
    block = -curvature[np.ix_(free, free)]
    if not free.any():
        return step
    if np.linalg.eigvalsh(block).min() > 1e-12:
        step[free] = np.linalg.solve(block, gradient[free])
    else:  # the likelihood of a sum is not concave everywhere
        step[free] = gradient[free] / max(float(np.abs(gradient[free]).max()), 1e-12)
    return step


def _likelihood(pools: Sequence[LabelledPool], weights: DoubleArray) -> tuple[float, DoubleArray, DoubleArray]:
    """Mean log-likelihood with its pull towards 0, its gradient (F,) and second derivatives (F, F)."""
    value, gradient = 0.0, np.zeros(len(weights))
    curvature = np.zeros((len(weights), len(weights)))
    for pool in pools:
        logits = pool.scores @ weights
        log_right, share_right = _softmax(np.where(pool.is_right, logits, -np.inf))
        log_all, share_all = _softmax(logits)
        value += pool.n * (log_right - log_all)
        mean_right, spread_right = _moments(pool.scores, share_right)
        mean_all, spread_all = _moments(pool.scores, share_all)
        gradient += pool.n * (mean_right - mean_all)
        curvature += pool.n * (spread_right - spread_all)
    n = sum(pool.n for pool in pools)
    return (
        value / n - _L2 / 2 * float(weights @ weights),
        gradient / n - _L2 * weights,
        curvature / n - _L2 * np.eye(len(weights)),
    )


def _softmax(logits: DoubleArray) -> tuple[float, DoubleArray]:
    """Logarithm of the sum of the exponentials, and each one's share of it."""
    highest = float(logits.max())
    odds = np.exp(logits - highest)
    return highest + float(np.log(odds.sum())), odds / odds.sum()


def _moments(scores: DoubleArray, share: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
    mean = share @ scores
    centred = scores - mean
    return mean, (centred * share[:, None]).T @ centred
