"""The two steps from features to a confidence: a score that orders, and a map from score to probability.

`LogisticModel` makes one score of several features; `PlattMap` and `IsotonicMap` say how often answers of
that score are right. Each is fitted in double precision by a convex problem with one solution, so nothing is
drawn at random.

Shapes: n examples, F features.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from onoma.errors import InputError, TrainingError
from onoma.types import BoolArray, DoubleArray

_MAX_STEPS = 100
_TOLERANCE = 1e-11
"""Of the loss: once a step cannot lower it by more, the fit is done."""


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """The log-odds that an answer is right, as a weighted sum of standardised features.

    A feature beyond what the examples had counts as the nearest value that they had: further out nothing is
    known, and a straight line would promise ever more.

    Attributes:
        lowest: Of each feature among the examples, F numbers, as for the next four.
        highest: The same for the highest.
        means: Of the features.
        scales: Their standard deviations; 1 for a feature that never varies, which then has no say.
        weights: Of the standardised features.
        intercept: Log-odds of an answer with all features at their means.
    """

    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float

    def __post_init__(self) -> None:
        columns = (self.lowest, self.highest, self.means, self.scales, self.weights)
        if len({len(column) for column in columns}) != 1 or not self.weights:
            raise InputError("a model needs one number per feature in each of its lists, and a feature")
        _check_finite(*(number for column in columns for number in column), self.intercept)
        if not all(low <= high for low, high in zip(self.lowest, self.highest, strict=True)):
            raise InputError("the lowest value of a feature is above its highest", field="lowest")
        if not all(scale > 0 for scale in self.scales):
            raise InputError("a scale must be above 0", field="scales")

    @classmethod
    def fit(cls, features: DoubleArray, correct: BoolArray, *, l2: float) -> LogisticModel:
        """Logistic regression; the intercept is not drawn towards 0.

        Args:
            features: Finite, shape (n, F).
            correct: Shape (n,), with both kinds.
            l2: Pull of the standardised weights towards 0, above 0: ``l2 / 2 * |weights|^2`` is added to the
                summed log-loss.
        """
        lowest, highest = features.min(axis=0), features.max(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            deviations = features.std(axis=0)
        # A deviation that is only rounding must not be divided by, nor one that is too small or too large to be told.
        varies = (lowest < highest) & (deviations > 0) & np.isfinite(deviations)
        means = np.where(varies, features.mean(axis=0), lowest)
        scales = np.where(varies, deviations, 1.0)
        standardised = np.where(varies, (features - means) / scales, 0.0)
        weights, intercept = fit_log_odds(standardised, correct.astype(np.float64), l2=l2)
        return cls(
            lowest=tuple(lowest.tolist()),
            highest=tuple(highest.tolist()),
            means=tuple(means.tolist()),
            scales=tuple(scales.tolist()),
            weights=tuple(np.where(varies, weights, 0.0).tolist()),
            intercept=intercept,
        )

    def scores(self, features: DoubleArray) -> DoubleArray:
        """Log-odds, shape (n,), the same for an example whatever the others are.

        Args:
            features: Finite, shape (n, F).
        """
        clipped = np.clip(features, self.lowest, self.highest)
        standardised = (clipped - np.array(self.means)) / np.array(self.scales)
        return _weighted(standardised, np.array(self.weights)) + self.intercept


PLATT_L2 = 1e-12
"""Of a sigmoid's slope: next to nothing, and enough for an answer where scores are apart by next to nothing."""


@dataclass(frozen=True, slots=True)
class PlattMap:
    """Confidence as a sigmoid of the score: ``1 / (1 + exp(-(slope * score + intercept)))``.

    Attributes:
        slope: From 0: a higher score is never less sure.
        intercept: Log-odds at the score 0.
        method: Its name.

    Source:
        Platt 1999, with his targets ``(r + 1) / (r + 2)`` for r right examples and ``1 / (w + 2)`` for w wrong ones;
        numerically after Lin, Lin, Weng 2007. Differs: where the best slope is negative, 0 is taken; and `PLATT_L2`.
    """

    slope: float
    intercept: float
    method: Literal["platt"] = "platt"

    def __post_init__(self) -> None:
        _check_finite(self.slope, self.intercept)
        if self.slope < 0:
            raise InputError("a slope must not be negative", field="slope", found=str(self.slope))

    @classmethod
    def fit(cls, scores: DoubleArray, correct: BoolArray) -> PlattMap:
        """Fit to scores, shape (n,), and whether the answers were right, shape (n,), with both kinds."""
        n_right = int(correct.sum())
        targets = np.where(correct, (n_right + 1) / (n_right + 2), 1 / (len(correct) - n_right + 2))
        (slope,), intercept = fit_log_odds(scores[:, None], targets, l2=PLATT_L2)
        if slope < 0:
            mean = float(targets.mean())
            return cls(0.0, float(np.log(mean / (1 - mean))))
        return cls(float(slope), intercept)

    def __call__(self, scores: DoubleArray) -> DoubleArray:
        """Confidences, shape (n,)."""
        return sigmoid(self.slope * scores + self.intercept)


@dataclass(frozen=True, slots=True)
class IsotonicMap:
    """Confidence as the rising steps that fit best, joined by straight lines.

    Between two steps the confidence is interpolated; beyond the first and the last it stays as there. One wrong
    example more is counted at the highest score and one right one at the lowest. So no confidence is 0 or 1, and a
    step at an end says how many examples it rests on: 20 of 20 right is 20 in 21.

    Attributes:
        points: Scores, rising: the first and the last of each step.
        confidences: At these scores, not falling.
        method: Its name.

    Source:
        Zadrozny and Elkan 2002; pool adjacent violators: Ayer et al. 1955.
    """

    points: tuple[float, ...] = field(repr=False)
    confidences: tuple[float, ...] = field(repr=False)
    method: Literal["isotonic"] = "isotonic"

    def __post_init__(self) -> None:
        if not self.points or len(self.points) != len(self.confidences):
            raise InputError("an isotonic map needs points and a confidence for each", field="points")
        _check_finite(*self.points)
        if not (np.diff(self.points) > 0).all():
            raise InputError("scores must rise", field="points")
        if not ((np.diff(self.confidences) >= 0).all() and self.confidences[0] > 0 and self.confidences[-1] < 1):
            raise InputError("confidences must lie between 0 and 1 and must not fall", field="confidences")

    @classmethod
    def fit(cls, scores: DoubleArray, correct: BoolArray) -> IsotonicMap:
        """Fit to scores, shape (n,), and whether the answers were right, shape (n,)."""
        distinct, place, n_equal = np.unique(scores, return_inverse=True, return_counts=True)
        n, n_right = n_equal.astype(np.float64), np.bincount(place, correct)
        n[-1] += 1
        n[0] += 1
        n_right[0] += 1
        steps: list[tuple[int, int, float, float]] = []  # first and last place, examples, right ones
        for row in range(len(distinct)):
            first, count, right = row, float(n[row]), float(n_right[row])
            while steps and steps[-1][3] * count >= right * steps[-1][2]:  # its share is not below this one's
                first, _, n_before, n_right_before = steps.pop()
                count, right = count + n_before, right + n_right_before
            steps.append((first, row, count, right))
        points, confidences = [], []
        for first, last, count, right in steps:
            for row in (first, last) if first < last else (first,):
                points.append(float(distinct[row]))
                confidences.append(right / count)
        return cls(tuple(points), tuple(confidences))

    def __call__(self, scores: DoubleArray) -> DoubleArray:
        """Confidences, shape (n,)."""
        points, heights = np.array(self.points), np.array(self.confidences)
        if len(points) == 1:
            return np.full(len(scores), heights[0])
        inside = np.clip(scores, points[0], points[-1])
        after = np.clip(np.searchsorted(points, inside, side="right"), 1, len(points) - 1)
        low, high = heights[after - 1], heights[after]
        part = (inside - points[after - 1]) / (points[after] - points[after - 1])
        confidences: DoubleArray = np.minimum(low + part * (high - low), high)  # rounding must not go above the step
        return confidences


def fit_log_odds(inputs: DoubleArray, targets: DoubleArray, *, l2: float) -> tuple[DoubleArray, float]:
    """Newton's method for logistic regression with targets that may lie between 0 and 1.

    Args:
        inputs: Shape (n, F).
        targets: 0..1, shape (n,), not all 0 and not all 1.
        l2: See `LogisticModel.fit`.

    Returns:
        Weights, shape (F,), and intercept.

    Raises:
        TrainingError: it does not converge, which values of sane size do not bring about.

    Source:
        Lin, Lin, Weng 2007: log-loss by logarithms of sums, steps halved until the loss falls enough.
    """
    columns = np.column_stack([inputs, np.ones(len(inputs))])
    pull = np.full(columns.shape[1], l2)
    pull[-1] = 0.0
    mean = float(targets.mean())
    beta = np.zeros(columns.shape[1])
    beta[-1] = np.log(mean / (1 - mean))
    loss = _loss(columns, targets, beta, pull)
    for _ in range(_MAX_STEPS):
        share = sigmoid(_weighted(columns, beta))
        gradient = np.einsum("ni,n->i", columns, share - targets) + pull * beta
        hessian = np.einsum("ni,nj,n->ij", columns, columns, share * (1 - share))
        hessian += np.diag(np.maximum(pull, 1e-12))
        step = np.linalg.solve(hessian, gradient)
        gain = float(gradient @ step)  # twice what the step lowers the loss by, where it is a parabola
        if gain <= _TOLERANCE * loss:
            # So near, the last step is as good as exact, and the loss too flat to be compared.
            return (beta - step)[:-1], float((beta - step)[-1])
        size = 1.0
        while (tried_loss := _loss(columns, targets, beta - size * step, pull)) > loss - 1e-4 * size * gain:
            size /= 2
        beta, loss = beta - size * step, tried_loss
    raise TrainingError("the fit of the confidence does not converge; look for features of very unequal size.")


def sigmoid(log_odds: DoubleArray) -> DoubleArray:
    """``1 / (1 + exp(-x))`` without overflow, and as written: each of its steps keeps the order, in rounding too."""
    confidences: DoubleArray = 1.0 / (1.0 + np.exp(np.minimum(-log_odds, 700.0)))
    return confidences


def _check_finite(*numbers: float) -> None:
    if not np.isfinite(numbers).all():
        raise InputError("a calibration has a number that is not finite", fix="calibrate on features of a sane size")


def _loss(columns: DoubleArray, targets: DoubleArray, beta: DoubleArray, pull: DoubleArray) -> float:
    log_odds = _weighted(columns, beta)
    return float((np.logaddexp(0.0, log_odds) - targets * log_odds).sum() + 0.5 * (pull * beta * beta).sum())


def _weighted(columns: DoubleArray, weights: DoubleArray) -> DoubleArray:
    """``columns @ weights``, summed column by column: a matrix product rounds as threads and rows have it."""
    total = np.zeros(len(columns))
    for column, weight in zip(columns.T, weights, strict=True):
        total += column * weight
    return total
