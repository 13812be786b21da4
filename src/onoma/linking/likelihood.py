"""Weights under which the right candidates of development mentions are most probable.

The probability of a candidate is a softmax over those of its mention, of the weighed sum of what is known of each:
scores of searches, how often its concept is meant. A logistic regression would learn to tell right candidates from
wrong ones whatever their mention; here only the order of one mention's candidates counts, as it does in linking.

Source:
    Marginal likelihood: Sung et al. 2020 (BioSyn), eqs. 5 to 7. Differs: all weights are learned, in closed loop by
    Newton's method instead of with the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onoma.types import BoolArray, DoubleArray

_L2 = 1e-6
"""Pull of the weights towards 0 for each mention: without it they grow for ever where every mention is answered."""
_MAX_STEPS = 200
_LEAST_GAIN = 1e-10


@dataclass(frozen=True)
class LabelledPool:
    """A development mention's candidates.

    Attributes:
        scores: F numbers of each candidate, shape (n, F).
        is_right: Which of them are right, shape (n,).
        n: How often the mention occurs.
    """

    scores: DoubleArray
    is_right: BoolArray
    n: int = 1


def maximise_likelihood(pools: Sequence[LabelledPool]) -> DoubleArray | None:
    """Weights from 0 of the F numbers, shape (F,).

    Maximises the mean over the mentions of ``log sum_right softmax(weights . scores)``.

    Args:
        pools: Of the mentions; their order changes nothing but rounding. Mentions all or none of whose candidates are
            right say nothing.

    Returns:
        ``None`` if no mention says anything, or all numbers speak against what is right.
    """
    telling = [pool for pool in pools if pool.is_right.any() and not pool.is_right.all()]
    weights = _maximise(telling) if telling else None
    return None if weights is None or not weights.any() else weights


def _maximise(pools: Sequence[LabelledPool]) -> DoubleArray:
    """Newton's method, damped, kept within weights from 0; where it does not climb, a step along the gradient."""
    weights = np.ones(pools[0].scores.shape[1])
    value, gradient, curvature = _likelihood(pools, weights)
    for _ in range(_MAX_STEPS):
        step = _newton_step(weights, gradient, curvature)
        length = 1.0
        while length > 1e-8:
            tried = np.maximum(weights + length * step, 0)
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
