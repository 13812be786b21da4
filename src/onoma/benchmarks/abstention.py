"""Whether a linker knows what it does not know: confidences against outcomes, as figures.

`measure_abstention` takes, for each mention, the confidence of its first answer, whether that answer is right, and
whether there was anything right to answer (NIL). Calibrate on development mentions and measure on others: on
the mentions that a calibration was fitted to, its error is no error.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onoma.benchmarks.biosyn import Asked, Query
from onoma.benchmarks.candidates import Candidates
from onoma.benchmarks.metrics import DISTINCT, cluster_numbers, composite_rank, first_hit_rank, subset_intervals
from onoma.errors import InputError, check_several
from onoma.linking.calibration import MIN_OF_EACH
from onoma.linking.confidence_inputs import checked_precision, outcomes
from onoma.linking.confidence_metrics import (
    AbstentionScores,
    PrecisionCoverage,
    ReliabilityBin,
    abstention_scores,
    area_under_risk_coverage,
    bin_numbers,
    brier_score,
    error_of_perfect,
    expected_calibration_error,
    precision_coverage,
    reliability_bins,
    threshold_in_words,
)
from onoma.quantities import quantity
from onoma.randomness import random_from
from onoma.types import BoolArray, DoubleArray, RowArray

WISHED_PRECISIONS = (0.90, 0.95, 0.99)
HISTOGRAM_BINS = 20
"""Of equal width."""
_N_RESAMPLES = 1000
_MAX_POINTS = 200
"""Of a written curve."""


@dataclass(frozen=True, slots=True)
class JudgedMention:
    """A mention's first answer and its outcome.

    Attributes:
        confidence: That the answer is right, 0..1; 0 where there is no answer.
        correct: Whether it is.
        is_nil: Whether nothing could be right, as the terminology has no such concept.
        cluster: What mentions share that are not independent of each other, as equal ones are; unset: it is.
        least: Least confidence of the parts of a composite mention, each of which is answered or not by itself;
            unset: ``confidence``.
    """

    confidence: float
    correct: bool
    is_nil: bool = False
    cluster: str | None = None
    least: float | None = None

    @property
    def answered_up_to(self) -> float:
        """The highest threshold at which the whole mention is answered."""
        return self.confidence if self.least is None else self.least


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """An expected calibration error over equal-mass bins.

    Attributes:
        value: Of these mentions.
        low: Lower end of the 95 % interval over resampled clusters of mentions, from which the excess of their mean
            over ``value`` is taken: resampling adds noise of its own, and noise only ever raises this error.
        high: Its upper end.
        if_calibrated: What perfect confidences would show on these mentions, in the mean: outcomes drawn with the
            stated probabilities, one draw for a cluster. A value near it is as good as none.
    """

    value: float
    low: float
    high: float
    if_calibrated: float


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What is answered from a threshold on.

    Attributes:
        threshold: Least confidence that is answered.
        coverage: Share of mentions that are.
        precision: Share of right answers among them.
        low: Lower end of the 95 % interval of ``precision`` over resampled clusters of mentions.
        high: Its upper end.
    """

    threshold: float
    coverage: float
    precision: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class OperatingPoint(AbstentionScores):
    """Scores at one threshold, and how well they are known.

    Attributes:
        n_answered: Mentions that are answered; of them
        n_right: have the right answer,
        n_clusters: How many clusters they are of.
        low: Lower end of the 95 % interval of the precision over resampled clusters of mentions; ``None`` if nothing
            is answered.
        high: Its upper end.
    """

    n_answered: int
    n_right: int
    n_clusters: int
    low: float | None
    high: float | None

    def in_words(self, clusters: str) -> str:
        """For people, in per cent.

        Args:
            clusters: What they are.
        """
        answered = f"{_percent(self.coverage)} answered ({self.n_answered:,}; {self.n_clusters:,} {clusters})"
        right = ""
        if self.precision is not None and self.low is not None and self.high is not None:
            right = f", right {_percent(self.precision)} of them ({100 * self.low:.1f}-{100 * self.high:.1f})"
        nil = "" if self.nil_recall is None else f"; {_percent(self.nil_recall)} of those without a concept withheld"
        return f"from confidence {threshold_in_words(self.threshold)}: {answered}{right}{nil}"


@dataclass(frozen=True, slots=True)
class AbstentionResult:
    """Figures of one set of mentions; fractions throughout. `as_json` is what ``abstention.json`` holds.

    Attributes:
        n_mentions: All of them.
        n_nil: Those without a right concept.
        n_answered: Those with an answer.
        accuracy: Share of right first answers, nothing withheld.
        mean_confidence: In the mean equal to ``accuracy`` where confidences are calibrated.
        ece: Expected calibration error, equal-mass bins.
        ece_equal_width: The same with equal-width bins.
        brier: Brier score.
        aurc: Area under the risk-coverage curve.
        bins: Equal-mass bins of the reliability diagram.
        histogram: Equal-width bins, those without mentions left out.
        curve: Precision against coverage, at most some 200 points.
        at_precision: For each wished precision the point of the curve with the highest coverage that has it, ``None``
            if there is none that answers at least `MIN_OF_EACH`. The threshold is chosen on these very mentions: what
            could be reached, not a forecast.
        chosen: For each wished precision what its threshold, chosen elsewhere (on development mentions), gives here.
        as_tuned: What the threshold gives below which the linker gives no concept; unset without one.
        clusters: What intervals are over, in words.
        seed: Of the resampling.
    """

    n_mentions: int
    n_nil: int
    n_answered: int
    accuracy: float
    mean_confidence: float
    ece: CalibrationError
    ece_equal_width: float
    brier: float
    aurc: float
    bins: tuple[ReliabilityBin, ...] = field(repr=False)
    histogram: tuple[ReliabilityBin, ...] = field(repr=False)
    curve: tuple[CurvePoint, ...] = field(repr=False)
    at_precision: Mapping[float, OperatingPoint | None]
    chosen: Mapping[float, OperatingPoint]
    as_tuned: OperatingPoint | None
    clusters: str
    seed: int

    def as_json(self) -> dict[str, Any]:
        """Ready for ``json.dumps``; wished precisions are keys such as "0.95"."""
        written = dataclasses.asdict(self)
        for name in ("at_precision", "chosen"):
            written[name] = {f"{wish:g}": scores for wish, scores in written[name].items()}
        return {
            **written,
            "interval_method": f"bootstrap of {_N_RESAMPLES:,} resamples of {self.clusters}, for the calibration error "
            "less its bias; Wilson's of these where all answers are right, or none",
        }

    def __str__(self) -> str:
        """A few lines for people, in per cent."""
        nil = f", {self.n_nil:,} of them without a concept" if self.n_nil else ""
        lines = [
            f"{quantity(self.n_mentions, 'mention')}{nil}; first answer right {_percent(self.accuracy)}, "
            f"mean confidence {_percent(self.mean_confidence)}",
            f"calibration error {_percent(self.ece.value)} ({_percent(self.ece.low)}-{_percent(self.ece.high)}; "
            f"perfect confidences: {_percent(self.ece.if_calibrated)}), Brier {self.brier:.4f}, AURC {self.aurc:.4f}",
        ]
        for wish, point in self.at_precision.items():
            lines.append(f"precision {wish:.0%}: {'not reached' if point is None else point.in_words(self.clusters)}")
        for wish, chosen in self.chosen.items():
            lines.append(f"threshold chosen elsewhere for {wish:.0%}: {chosen.in_words(self.clusters)}")
        if self.as_tuned is not None:
            lines.append(f"the linker's own threshold: {self.as_tuned.in_words(self.clusters)}")
        return "\n".join(lines)


def measure_abstention(
    judged: Sequence[JudgedMention],
    *,
    wished: Sequence[float] = WISHED_PRECISIONS,
    thresholds: Mapping[float, float] | None = None,
    no_concept_below: float | None = None,
    clusters_are: str = DISTINCT,
    seed: int = 0,
) -> AbstentionResult:
    """All figures of a set of mentions.

    Calibration (ECE, Brier, bins) is of ``confidence``; thresholds, and what is answered first (AURC), are of
    ``least``, as a linker compares each part of a mention with its threshold.

    Args:
        judged: At least one; their order changes nothing.
        wished: Precisions to read coverages at.
        thresholds: Wished precision to the threshold that was chosen for it on development mentions
            (`Calibration.threshold_for`), to see what it does here.
        no_concept_below: The linker's own threshold.
        clusters_are: What the clusters are, in words.
        seed: Of the resampling.

    Raises:
        InputError: no mention, a confidence that is no probability, an outcome that is neither right nor wrong, a
            mention that is right and NIL, or a wish that cannot be.
    """
    check_several(wished, "wished")
    wished = [checked_precision(wish) for wish in wished]
    outcomes([mention.correct for mention in judged], "correct")
    outcomes([mention.is_nil for mention in judged], "is_nil")
    in_order = sorted(
        judged,
        key=lambda mention: (
            mention.confidence,
            mention.answered_up_to,
            mention.correct,
            mention.is_nil,
            mention.cluster or "",
        ),
    )
    confidence = np.array([mention.confidence for mention in in_order], np.float64)
    correct = np.array([mention.correct for mention in in_order], np.bool_)
    is_nil = np.array([mention.is_nil for mention in in_order], np.bool_)
    answered_up_to = np.array([mention.answered_up_to for mention in in_order], np.float64)
    clusters = cluster_numbers([mention.cluster for mention in in_order])
    curve = precision_coverage(answered_up_to, correct)
    rows = _shown_rows(curve)
    reached = {wish: _reaches(curve, wish) for wish in wished}
    asked = [*reached.values(), *(thresholds or {}).values(), no_concept_below or None]
    levels = sorted({*(curve.thresholds[row] for row in rows), *(one for one in asked if one is not None)})
    bins, histogram = bin_numbers(confidence), bin_numbers(confidence, HISTOGRAM_BINS, "equal-width")
    subsets = [answered_up_to >= level for level in levels]
    subsets += [which == number for which in (bins, histogram) for number in np.unique(which)]
    found = subset_intervals(subsets, correct, clusters, seed=seed, n_resamples=_N_RESAMPLES)
    of_levels, of_bins = dict(zip(levels, found, strict=False)), iter(found[len(levels) :])

    def at(threshold: float) -> OperatingPoint:
        kept = answered_up_to >= threshold
        low, high = of_levels[threshold] or (None, None)
        return OperatingPoint(
            **dataclasses.asdict(abstention_scores(answered_up_to, correct, is_nil, threshold=threshold)),
            n_answered=int(kept.sum()),
            n_right=int(correct[kept].sum()),
            n_clusters=len(np.unique(clusters[kept])),
            low=low,
            high=high,
        )

    return AbstentionResult(
        n_mentions=len(in_order),
        n_nil=int(is_nil.sum()),
        n_answered=int((answered_up_to > 0).sum()),
        accuracy=float(correct.mean()),
        mean_confidence=float(confidence.mean()),
        ece=_calibration_error(confidence, correct, clusters, seed=seed),
        ece_equal_width=expected_calibration_error(confidence, correct, bins="equal-width"),
        brier=brier_score(confidence, correct),
        aurc=area_under_risk_coverage(answered_up_to, correct),
        bins=tuple(_with_interval(one, next(of_bins)) for one in reliability_bins(confidence, correct)),
        histogram=tuple(
            _with_interval(one, next(of_bins))
            for one in reliability_bins(confidence, correct, n_bins=HISTOGRAM_BINS, bins="equal-width")
        ),
        curve=tuple(_curve_point(curve, row, of_levels[curve.thresholds[row]]) for row in rows),
        at_precision={wish: None if level is None else at(level) for wish, level in reached.items()},
        chosen={wish: at(threshold) for wish, threshold in sorted((thresholds or {}).items())},
        as_tuned=at(no_concept_below) if no_concept_below else None,
        clusters=clusters_are,
        seed=seed,
    )


def judge_queries(
    queries: Sequence[Query],
    found: Candidates,
    confidences: Mapping[Asked, float | None],
    known_ids: Collection[str],
) -> list[JudgedMention]:
    """The queries of a benchmark as judged mentions.

    A composite query is right when all its parts are; its confidence is the product of theirs, and it is answered where
    each of them is. A query is NIL when the terminology has none of its gold ids.

    Args:
        queries: Of the benchmark.
        found: Ranked candidates of every part.
        confidences: Of each part's first candidate; ``None`` where it has none.
        known_ids: All ids that can be an answer.
    """
    known = frozenset(known_ids)
    judged = []
    for query in queries:
        ranks = [first_hit_rank((c.codes for c in found[part][:1]), query.gold) for part in query.asked]
        of_parts = [confidences[part] or 0.0 for part in query.asked]
        judged.append(
            JudgedMention(
                confidence=math.prod(of_parts),
                correct=composite_rank(ranks) == 1,
                is_nil=known.isdisjoint(query.gold),
                cluster=query.cluster_key,
                least=min(of_parts) if len(of_parts) > 1 else None,
            )
        )
    return judged


def _calibration_error(
    confidence: DoubleArray, correct: BoolArray, clusters: RowArray, *, seed: int
) -> CalibrationError:
    """With its interval, and what perfect confidences would show (Bröcker and Smith 2007)."""
    random = random_from(seed)
    n_clusters = int(clusters.max()) + 1
    resampled, perfect = [], []
    for _ in range(_N_RESAMPLES):
        times = np.bincount(random.integers(0, n_clusters, n_clusters), minlength=n_clusters)
        rows = np.repeat(np.arange(len(confidence)), times[clusters])
        resampled.append(expected_calibration_error(confidence[rows], correct[rows]))
        perfect.append(error_of_perfect(confidence, random, clusters))
    value = expected_calibration_error(confidence, correct)
    low, high = np.quantile(resampled, [0.025, 0.975]) - (np.mean(resampled) - value)
    return CalibrationError(value, max(0.0, float(low)), min(1.0, float(high)), float(np.mean(perfect)))


def _with_interval(bin_: ReliabilityBin, interval: tuple[float, float] | None) -> ReliabilityBin:
    low, high = interval or (bin_.low, bin_.high)
    return dataclasses.replace(bin_, low=low, high=high)


def _shown_rows(curve: PrecisionCoverage) -> list[int]:
    """Points of a curve that are written, at most some 200."""
    if not curve.thresholds:
        return []
    wanted = np.linspace(curve.n_kept[0], curve.n_kept[-1], _MAX_POINTS)
    rows: list[int] = np.unique(np.searchsorted(curve.n_kept, wanted)).tolist()
    return rows


def _curve_point(curve: PrecisionCoverage, row: int, interval: tuple[float, float] | None) -> CurvePoint:
    kept, right = curve.n_kept[row], curve.n_right[row]
    low, high = interval or (0.0, 1.0)
    return CurvePoint(curve.thresholds[row], kept / curve.n_mentions, right / kept, low, high)


def _reaches(curve: PrecisionCoverage, wish: float) -> float | None:
    try:
        return curve.threshold_for(wish, at_least=MIN_OF_EACH)
    except InputError:
        return None


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
