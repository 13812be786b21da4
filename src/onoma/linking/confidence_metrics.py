"""How far a confidence can be trusted: calibration error, precision against coverage, answering or abstaining.

A confidence belongs to a mention's first answer: the probability that it is the right concept. A mention without an
answer has the confidence 0. No metric depends on the order of the mentions; where equal confidences leave the order
open, the mean over all orders counts.

Shapes: n mentions.
"""

from __future__ import annotations

import decimal
import itertools
import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np

from onoma.errors import InputError, ShapeError, whole_number
from onoma.linking.confidence_inputs import (
    checked_certainty,
    checked_confidence,
    checked_level,
    checked_precision,
    checked_share,
    checked_threshold,
    outcomes,
)
from onoma.types import BoolArray, DoubleArray, RowArray

Bins: TypeAlias = Literal["equal-mass", "equal-width"]
N_BINS = 15
"""As in Guo et al. 2017."""

_MIN_DECIMALS, _ROUNDING = 3, 1e-4
"""Of a written threshold; the latter in shares of its distance to 0 or 1, whichever is nearer."""
_ROUNDED = 1e-12
"""More than a sum of probabilities is off by."""


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Mentions of similar confidence.

    Attributes:
        n: How many, at least 1.
        confidence: Their mean confidence.
        precision: Share of them whose first answer is right; equals ``confidence`` if that is calibrated.
        low: Lower end of the 95 % interval of ``precision``: Wilson's, unless what made the bin says otherwise.
        high: Its upper end.
    """

    n: int
    confidence: float
    precision: float
    low: float
    high: float


def reliability_bins(
    confidence: DoubleArray, correct: BoolArray, *, n_bins: int = N_BINS, bins: Bins = "equal-mass"
) -> tuple[ReliabilityBin, ...]:
    """Mentions grouped by confidence, the least confident first; empty bins are left out.

    Args:
        confidence: 0..1, shape (n,).
        correct: Whether the first answer is right, shape (n,).
        n_bins: From 1.
        bins: "equal-mass": each has (nearly) the same number of mentions; equal confidences share the bin of the middle
            one of them. "equal-width": each is ``1 / n_bins`` wide, without its lower end (0 is in the first).

    Raises:
        InputError: a confidence is not in 0..1, there is no mention, or no bin.
        ShapeError: the arrays do not fit one another.
    """
    confidence, correct = checked_confidence(confidence, correct)
    which = bin_numbers(confidence, n_bins, bins)
    made = []
    for number in np.unique(which):
        inside = which == number
        n, n_right = int(inside.sum()), int(correct[inside].sum())
        low, high = wilson_interval(n_right, n)
        # Summed in the order of size, so that the order of the mentions changes nothing, not even the last digit.
        mean = float(np.sort(confidence[inside]).sum()) / n
        made.append(ReliabilityBin(n, mean, n_right / n, low, high))
    return tuple(made)


def expected_calibration_error(
    confidence: DoubleArray, correct: BoolArray, *, n_bins: int = N_BINS, bins: Bins = "equal-mass"
) -> float:
    """ECE: over the bins, the mean distance of confidence and precision, weighted by the number of mentions.

    It is above 0 even for perfect confidences, as a bin of few mentions has a precision by chance: compare it
    with what perfect ones of the same number would have (`onoma.benchmarks.abstention`).

    Args:
        confidence: See `reliability_bins`, as for all that follows.
        correct: See there.
        n_bins: See there.
        bins: See there.

    Raises:
        InputError: as `reliability_bins`.
        ShapeError: as `reliability_bins`.

    Source:
        Guo et al. 2017, eq. 5 (equal width); Nixon et al. 2019 (equal mass).

    Example:
        >>> confidence, correct = np.array([0.5, 0.5, 0.9, 0.9]), np.array([True, False, True, True])
        >>> round(expected_calibration_error(confidence, correct, n_bins=2), 3)
        0.05
    """
    confidence, correct = checked_confidence(confidence, correct)
    order = np.argsort(confidence, kind="stable")
    which = bin_numbers(confidence, n_bins, bins)[order]
    gaps = np.bincount(which, confidence[order]) - np.bincount(which, correct[order])
    return float(np.abs(gaps).sum()) / len(confidence)


def error_of_perfect(confidence: DoubleArray, random: np.random.Generator, clusters: RowArray | None = None) -> float:
    """The `expected_calibration_error` of outcomes that are drawn with the stated probabilities.

    Args:
        confidence: See `reliability_bins`.
        random: The random generator.
        clusters: A number from 0 for what shares a draw, shape (n,); unset: each has its own.

    Source:
        Bröcker and Smith 2007, consistency resampling.
    """
    drawn = random.random(len(confidence) if clusters is None else int(clusters.max()) + 1)
    return expected_calibration_error(confidence, (drawn if clusters is None else drawn[clusters]) < confidence)


def brier_score(confidence: DoubleArray, correct: BoolArray) -> float:
    """Mean squared distance of confidence and outcome (1 right, 0 wrong); smaller is better.

    Source:
        Brier 1950, for two outcomes, halved as is usual.
    """
    confidence, correct = checked_confidence(confidence, correct)
    return float(np.sort(np.square(confidence - correct)).sum()) / len(confidence)


@dataclass(frozen=True, slots=True)
class PrecisionCoverage:
    """What remains, and how much of it is right, if answers below a threshold are withheld.

    Shapes: P points, one for each distinct confidence above 0, the highest first.

    Attributes:
        thresholds: Least confidence that is answered, falling.
        n_kept: Mentions of at least that confidence, rising.
        n_right: Of these, those whose answer is right.
        n_mentions: All mentions, including those without an answer.
    """

    thresholds: tuple[float, ...] = field(repr=False)
    n_kept: tuple[int, ...] = field(repr=False)
    n_right: tuple[int, ...] = field(repr=False)
    n_mentions: int

    def __post_init__(self) -> None:
        kept, right = np.array([0, *self.n_kept]), np.array([0, *self.n_right])
        if not len(self.thresholds) == len(self.n_kept) == len(self.n_right):
            raise InputError("a precision-coverage curve needs as many thresholds as numbers of mentions")
        is_rising = (
            (np.diff(kept) >= 1).all() and (np.diff(right) >= 0).all() and (np.diff(right) <= np.diff(kept)).all()
        )
        falls = (np.diff([1.0, *self.thresholds]) < 0)[1:].all() and all(0 < t <= 1 for t in self.thresholds)
        if not (is_rising and falls and kept[-1] <= self.n_mentions and self.n_mentions >= 1):
            raise InputError(
                "this is no precision-coverage curve",
                expected="falling thresholds above 0 and up to 1; rising numbers of mentions, not more right than kept",
            )

    @property
    def precision(self) -> DoubleArray:
        """Share of right answers among those given, shape (P,)."""
        return np.array(self.n_right, np.float64) / np.array(self.n_kept, np.float64)

    @property
    def coverage(self) -> DoubleArray:
        """Share of mentions that are answered, shape (P,)."""
        return np.array(self.n_kept, np.float64) / self.n_mentions

    def mean_confidence(self, threshold: float = 0.0) -> float | None:
        """Mean confidence of the mentions that are answered at a threshold; unset: there are none."""
        confidences, n_each = np.array(self.thresholds), np.diff([0, *self.n_kept])
        is_kept = confidences >= threshold
        n_kept = int(n_each[is_kept].sum())
        return float(confidences[is_kept] @ n_each[is_kept]) / n_kept if n_kept else None

    def threshold_for(self, precision: float, *, certainty: float | None = None, at_least: int = 1) -> float:
        """The smallest threshold at which the answers given reach the precision.

        Args:
            precision: Above 0, up to 1.
            certainty: If set, from 0.5, it is not the precision seen here that must reach ``precision`` but its lower
                confidence bound (Clopper and Pearson 1934, one-sided), e.g. 0.95: a few lucky mentions are then not
                enough.
            at_least: Mentions that must be answered at a threshold for it to count; all, if there are not as many.

        Raises:
            InputError: a precision or certainty is not allowed, or no threshold reaches it; the best one is named.
        """
        precision = checked_precision(precision)
        if not self.thresholds:
            raise InputError("no mention has an answer, so there is no threshold to choose")
        # The higher the better of both.
        reached = self.precision if certainty is None else -self._chances(precision)
        least = precision if certainty is None else checked_certainty(certainty) - 1 - _ROUNDED
        reached = np.where(np.array(self.n_kept) >= min(at_least, self.n_kept[-1]), reached, -np.inf)
        enough = np.flatnonzero(reached >= least)
        if len(enough):
            return self.thresholds[int(enough[-1])]
        best = int(np.lexsort((np.arange(len(reached)), self.precision, reached))[-1])
        right, kept, threshold = self.n_right[best], self.n_kept[best], self.thresholds[best]
        if certainty is None:
            raise InputError(
                f"a precision of {precision:g} is not reached at any threshold",
                expected=f"at most {right / kept:.4f}, which the threshold {threshold:g} reaches with {kept:,} of "
                f"{self.n_mentions:,} mentions answered",
                fix="wish for less, or calibrate on more mentions (or names)",
            )
        enough_right = None
        if precision < 1:
            enough_right = max(at_least, math.ceil(math.log(1 - certainty) / math.log(precision)))
        raise InputError(
            f"a precision of {precision:g} with a certainty of {certainty:g} is not reached at any threshold",
            expected="a precision below 1, as no number of mentions makes that one certain"
            if enough_right is None
            else f"{enough_right:,} answered and all right, or more of which a few are wrong",
            found=f"at best {right:,} of {kept:,} right, from the threshold {threshold:g} on",
            fix="calibrate on more mentions (or names); a wish that is lowered until it is granted is not as certain",
        )

    def _chances(self, precision: float) -> DoubleArray:
        """Of so many right among those kept, or more, if each is with the probability ``precision``; shape (P,).

        1 where fewer are right than that: such a chance is never below a half, and takes long to count.
        """
        logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, self.n_kept[-1] + 1)))])  # of factorials
        chances = []
        for kept, right in zip(self.n_kept, self.n_right, strict=True):
            if right < kept * precision:
                chances.append(1.0)
                continue
            wrong = np.arange(kept - right + 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                of_wrong = np.where(wrong > 0, wrong * np.log1p(-precision), 0.0)  # log 0 where all must be right
            terms = logs[kept] - logs[wrong] - logs[kept - wrong] + of_wrong + (kept - wrong) * np.log(precision)
            chances.append(min(1.0, float(np.exp(terms).sum())))
        return np.array(chances)


def precision_coverage(confidence: DoubleArray, correct: BoolArray) -> PrecisionCoverage:
    """The curve over all distinct confidences; a mention with the confidence 0 is never answered.

    Raises:
        InputError: as `reliability_bins`.
        ShapeError: as `reliability_bins`.
    """
    confidence, correct = checked_confidence(confidence, correct)
    thresholds, place = np.unique(-confidence, return_inverse=True)
    n_kept, n_right = np.cumsum(np.bincount(place)), np.cumsum(np.bincount(place, correct))
    is_answered = thresholds < 0
    return PrecisionCoverage(
        tuple((-thresholds[is_answered]).tolist()),
        tuple(n_kept[is_answered].tolist()),
        tuple(n_right[is_answered].astype(np.int64).tolist()),
        len(confidence),
    )


def area_under_risk_coverage(confidence: DoubleArray, correct: BoolArray) -> float:
    """AURC: the share of wrong answers among the k most confident ones, meant over k = 1..n; smaller is better.

    Source:
        Geifman, Uziel, El-Yaniv 2019. Differs: of equal confidences, the mean over all orders.
    """
    confidence, correct = checked_confidence(confidence, correct)
    _, place, n_equal = np.unique(-confidence, return_inverse=True, return_counts=True)
    wrong_share = np.bincount(place, ~correct) / n_equal
    # In the mean over all orders, each of several equal mentions is wrong by the share of them that is.
    n_wrong = np.cumsum(np.repeat(wrong_share, n_equal))
    return float((n_wrong / np.arange(1, len(confidence) + 1)).mean())


@dataclass(frozen=True, slots=True)
class AbstentionScores:
    """Answers at one threshold, where some mentions have no concept to be linked to (NIL).

    Attributes:
        threshold: Least confidence that is answered; below it the answer is "no such concept".
        coverage: Share of mentions that are answered.
        precision: Share of right answers among those given; ``None`` if there are none.
        recall: Share of the mentions with a concept whose right concept is given; ``None`` if there are none.
        accuracy: Share of mentions with the right outcome: the right concept, or none for a NIL mention.
        nil_precision: Share of NIL mentions among those not answered; ``None`` if there are none.
        nil_recall: Share of NIL mentions that are not answered; ``None`` if there are none.
    """

    threshold: float
    coverage: float
    precision: float | None
    recall: float | None
    accuracy: float
    nil_precision: float | None
    nil_recall: float | None


def abstention_scores(
    confidence: DoubleArray, correct: BoolArray, is_nil: BoolArray, *, threshold: float
) -> AbstentionScores:
    """The scores if mentions below a threshold are answered with "no such concept".

    Args:
        confidence: 0..1, shape (n,).
        correct: Whether the first answer is right, shape (n,).
        is_nil: Whether the right answer is "no such concept", shape (n,); then no concept is right.
        threshold: Above 0, up to 1.

    Raises:
        InputError: as `reliability_bins`; or a NIL mention is marked as right.
        ShapeError: the arrays do not fit one another.
    """
    confidence, correct = checked_confidence(confidence, correct)
    is_nil = outcomes(is_nil, "is_nil")
    if is_nil.shape != correct.shape:
        raise ShapeError(f"is_nil has the shape {is_nil.shape}; {len(correct)} mentions need {correct.shape}.")
    if (is_nil & correct).any():
        raise InputError("a mention without a right concept is marked as answered rightly", field="is_nil")
    threshold = checked_threshold(threshold)
    kept = confidence >= threshold
    n_right, n_nil_left = int((kept & correct).sum()), int((~kept & is_nil).sum())
    return AbstentionScores(
        threshold=threshold,
        coverage=float(kept.mean()),
        precision=_share(n_right, int(kept.sum())),
        recall=_share(n_right, int((~is_nil).sum())),
        accuracy=(n_right + n_nil_left) / len(kept),
        nil_precision=_share(n_nil_left, int((~kept).sum())),
        nil_recall=_share(n_nil_left, int(is_nil.sum())),
    )


def threshold_in_words(threshold: float) -> str:
    """A threshold in as many decimals as it takes, rounded down, so that using it answers the same mentions.

    Example:
        >>> threshold_in_words(0.995431387), threshold_in_words(0.8), threshold_in_words(0.99999987654)
        ('0.995431', '0.800', '0.99999987654')
    """
    exact = decimal.Decimal(repr(float(threshold)))
    rounded_off = _ROUNDING * min(threshold, 1 - threshold)
    shown = (
        exact.quantize(decimal.Decimal(1).scaleb(-decimals), decimal.ROUND_FLOOR)
        for decimals in itertools.count(_MIN_DECIMALS)
    )
    return f"{next(one for one in shown if exact - one <= rounded_off):f}"


def wilson_interval(n_right: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided confidence interval of a share, which stays within 0..1 and is not a point at its ends.

    Raises:
        InputError: there is no such share.

    Source:
        Wilson 1927.

    Example:
        >>> low, high = wilson_interval(9, 10)
        >>> round(low, 3), round(high, 3)
        (0.596, 0.982)
    """
    n_right, n = checked_share(n_right, n)
    return _wilson(n_right, n, NormalDist().inv_cdf((1 + checked_level(confidence)) / 2))


def bin_numbers(confidence: DoubleArray, n_bins: int = N_BINS, bins: Bins = "equal-mass") -> RowArray:
    """Number of each mention's bin, shape (n,); arguments and errors as of `reliability_bins`."""
    n_bins = whole_number(n_bins, "n_bins", "there must be a bin")
    if bins == "equal-width":
        return np.searchsorted(np.arange(1, n_bins) / n_bins, confidence, side="left").astype(np.int64)
    if bins == "equal-mass":
        _, place, n_equal = np.unique(confidence, return_inverse=True, return_counts=True)
        # Twice the middle rank of each group of equals, 0 to 2n, so that whole numbers suffice.
        doubled_middle = 2 * np.cumsum(n_equal) - n_equal
        return np.asarray(n_bins * doubled_middle // (2 * len(confidence)), np.int64)[place]
    raise InputError("unknown kind of bins", field="bins", expected="equal-mass or equal-width", found=repr(bins))


def _wilson(n_right: int, n: int, z: float) -> tuple[float, float]:
    share = n_right / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))
    # The ends are reached where all or none are right; rounding may miss them, and leave the share outside.
    return max(0.0, centre - half) if n_right else 0.0, min(1.0, centre + half) if n_right < n else 1.0


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
