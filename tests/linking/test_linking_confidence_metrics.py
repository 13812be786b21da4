"""Metrics of confidences against plain loops that follow their definitions."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import brier_score_loss

from onoma.errors import InputError, ShapeError
from onoma.linking.confidence_metrics import (
    Bins,
    PrecisionCoverage,
    abstention_scores,
    area_under_risk_coverage,
    brier_score,
    error_of_perfect,
    expected_calibration_error,
    precision_coverage,
    reliability_bins,
    wilson_interval,
)
from onoma.types import BoolArray, DoubleArray

coarse = st.lists(st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.booleans()), min_size=1, max_size=40)
fine = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)
judged = st.one_of(coarse, fine)


def arrays(pairs: list[tuple[float, bool]]) -> tuple[DoubleArray, BoolArray]:
    return np.array([c for c, _ in pairs], np.float64), np.array([r for _, r in pairs], np.bool_)


def loop_ece(groups: list[list[tuple[float, bool]]]) -> float:
    n = sum(len(group) for group in groups)
    error = 0.0
    for group in groups:
        if group:
            precision = sum(right for _, right in group) / len(group)
            confidence = math.fsum(c for c, _ in group) / len(group)
            error += len(group) / n * abs(precision - confidence)
    return error


@settings(max_examples=150)
@given(pairs=judged, n_bins=st.integers(1, 20))
def test_equal_width_is_guos_definition(pairs: list[tuple[float, bool]], n_bins: int) -> None:
    groups: list[list[tuple[float, bool]]] = [[] for _ in range(n_bins)]
    for confidence, right in pairs:
        for number in range(n_bins):
            above = confidence > number / n_bins or number == 0
            if above and (confidence <= (number + 1) / n_bins or number == n_bins - 1):
                groups[number].append((confidence, right))
                break
    found = expected_calibration_error(*arrays(pairs), n_bins=n_bins, bins="equal-width")
    assert found == pytest.approx(loop_ece(groups), abs=1e-12)


@settings(max_examples=150)
@given(pairs=judged, n_bins=st.integers(1, 20))
def test_equal_mass_puts_each_group_of_equals_where_its_middle_falls(
    pairs: list[tuple[float, bool]], n_bins: int
) -> None:
    ordered = sorted(pairs)
    groups: list[list[tuple[float, bool]]] = [[] for _ in range(n_bins)]
    for _, equals in itertools.groupby(enumerate(ordered), key=lambda item: item[1][0]):
        members = list(equals)
        doubled_middle = members[0][0] + members[-1][0] + 1  # places are counted from their middles
        for number in range(n_bins):
            if number * 2 * len(pairs) <= doubled_middle * n_bins < (number + 1) * 2 * len(pairs):
                groups[number] += [pair for _, pair in members]
    assert sum(map(len, groups)) == len(pairs)
    found = expected_calibration_error(*arrays(pairs), n_bins=n_bins)
    assert found == pytest.approx(loop_ece(groups), abs=1e-12)
    bins = reliability_bins(*arrays(pairs), n_bins=n_bins)
    assert [bin_.n for bin_ in bins] == [len(group) for group in groups if group]
    assert sum(b.n * abs(b.confidence - b.precision) for b in bins) / len(pairs) == pytest.approx(found, abs=1e-12)


def test_equal_mass_without_equals_has_bins_of_equal_numbers() -> None:
    confidence = np.random.default_rng(3).permutation(np.linspace(0.01, 0.99, 60))
    bins = reliability_bins(confidence, confidence > 0.4, n_bins=15)
    assert [bin_.n for bin_ in bins] == [4] * 15
    ordered = np.sort(confidence).reshape(15, 4)
    assert [bin_.confidence for bin_ in bins] == pytest.approx(ordered.mean(axis=1).tolist())
    assert [bin_.precision for bin_ in bins] == (ordered > 0.4).mean(axis=1).tolist()


def test_calibrated_confidences_have_no_error_and_sure_mistakes_have_all() -> None:
    confidence = np.repeat([0.25, 0.75], 4)
    correct = np.array([True, False, False, False, True, True, True, False])
    assert expected_calibration_error(confidence, correct) == 0
    assert expected_calibration_error(np.ones(5), np.zeros(5, np.bool_)) == 1
    assert expected_calibration_error(np.zeros(5), np.zeros(5, np.bool_), bins="equal-width") == 0


@settings(max_examples=60)
@given(pairs=judged, seed=st.integers(0, 100))
def test_order_changes_nothing(pairs: list[tuple[float, bool]], seed: int) -> None:
    confidence, correct = arrays(pairs)
    order = np.random.default_rng(seed).permutation(len(pairs))
    kinds: tuple[Bins, ...] = ("equal-mass", "equal-width")
    for bins in kinds:
        expected = reliability_bins(confidence, correct, bins=bins)
        assert reliability_bins(confidence[order], correct[order], bins=bins) == expected
    for metric in (expected_calibration_error, brier_score, area_under_risk_coverage, precision_coverage):
        assert metric(confidence, correct) == metric(confidence[order], correct[order])


@settings(max_examples=60)
@given(pairs=judged)
def test_brier_is_scikit_learns(pairs: list[tuple[float, bool]]) -> None:
    confidence, correct = arrays(pairs)
    expected = brier_score_loss(correct, confidence, pos_label=True, labels=[False, True])
    assert brier_score(confidence, correct) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=100)
@given(pairs=judged)
def test_the_curve_counts_what_is_kept(pairs: list[tuple[float, bool]]) -> None:
    curve = precision_coverage(*arrays(pairs))
    distinct = sorted({confidence for confidence, _ in pairs if confidence > 0}, reverse=True)
    assert list(curve.thresholds) == distinct
    for place, threshold in enumerate(distinct):
        kept = [right for confidence, right in pairs if confidence >= threshold]
        assert (curve.n_kept[place], curve.n_right[place]) == (len(kept), sum(kept))
        assert curve.precision[place] == pytest.approx(sum(kept) / len(kept))
        assert curve.coverage[place] == pytest.approx(len(kept) / len(pairs))


@settings(max_examples=100)
@given(pairs=judged, wish=st.sampled_from([0.5, 0.8, 1.0]), certainty=st.sampled_from([None, 0.5, 0.95]))
def test_the_threshold_is_the_smallest_that_reaches_the_wish(
    pairs: list[tuple[float, bool]], wish: float, certainty: float | None
) -> None:
    good = []
    for threshold in sorted({confidence for confidence, _ in pairs if confidence > 0}):
        kept = [right for confidence, right in pairs if confidence >= threshold]
        reached = sum(kept) / len(kept)
        if certainty is not None:
            # A one-sided bound of level q is the lower end of the two-sided interval of level 2 q - 1.
            reached = binomtest(sum(kept), len(kept)).proportion_ci(max(2 * certainty - 1, 1e-12), "exact").low
        if reached >= wish - (0 if certainty is None else 1e-9):
            good.append(threshold)
    curve = precision_coverage(*arrays(pairs))
    if good:
        assert curve.threshold_for(wish, certainty=certainty) == good[0]
    else:
        with pytest.raises(InputError, match=r"not reached|no threshold"):
            curve.threshold_for(wish, certainty=certainty)


def test_a_wish_out_of_reach_is_told_the_best() -> None:
    curve = precision_coverage(np.array([0.9, 0.9, 0.9, 0.9, 0.5]), np.array([True, True, True, False, False]))
    with pytest.raises(InputError, match=r"0\.95 is not reached.*at most 0\.7500.*threshold 0\.9 .*4 of 5 mentions"):
        curve.threshold_for(0.95)
    with pytest.raises(
        InputError,
        match=r"certainty of 0\.95 is not reached.*11 answered and all right.*3 of 4 right, .*threshold 0\.9 ",
    ):
        curve.threshold_for(0.75, certainty=0.95)
    with pytest.raises(InputError, match=r"precision below 1"):
        curve.threshold_for(1, certainty=0.5)
    for wish in (0.0, 1.01, math.nan):
        with pytest.raises(InputError, match="above 0, up to 1"):
            curve.threshold_for(wish)
    with pytest.raises(InputError, match=r"from 0\.5"):
        curve.threshold_for(0.5, certainty=1.0)
    with pytest.raises(InputError, match="no mention has an answer"):
        precision_coverage(np.zeros(3), np.zeros(3, np.bool_)).threshold_for(0.5)


@pytest.mark.parametrize(("wish", "least"), [(0.9, 29), (0.95, 59), (0.99, 299)])
def test_how_many_right_answers_make_a_precision_certain(wish: float, least: int) -> None:
    """0.95 ** 58 is above 0.05, and 0.95 ** 59 is not."""
    assert PrecisionCoverage((0.8,), (least,), (least,), least).threshold_for(wish, certainty=0.95) == 0.8
    with pytest.raises(InputError, match=f"{least} answered and all right"):
        PrecisionCoverage((0.8,), (least - 1,), (least - 1,), least).threshold_for(wish, certainty=0.95)


def test_perfect_confidences_have_an_error_of_chance_alone() -> None:
    confidence, random = np.repeat([0.2, 0.7], 50), np.random.default_rng(0)
    errors = [error_of_perfect(confidence, random) for _ in range(300)]
    # Two bins of 50, each with a mean absolute deviation of sqrt(2 p (1 - p) / (pi n)).
    expected = np.mean([math.sqrt(2 * p * (1 - p) / (math.pi * 50)) for p in (0.2, 0.7)])
    assert np.mean(errors) == pytest.approx(expected, rel=0.1)
    together = [error_of_perfect(np.full(100, 0.5), random, np.zeros(100, np.int64)) for _ in range(20)]
    assert together == pytest.approx([0.5] * 20)


def test_what_a_few_mentions_reach_can_be_left_aside() -> None:
    curve = PrecisionCoverage((0.9, 0.8, 0.7), (1, 3, 10), (1, 3, 9), 12)
    assert curve.threshold_for(1.0) == 0.8
    assert curve.threshold_for(0.9, at_least=4) == 0.7
    with pytest.raises(InputError, match=r"at most 0\.9000, which the threshold 0\.7 reaches with 10 of 12"):
        curve.threshold_for(1.0, at_least=4)
    assert curve.threshold_for(0.9, at_least=20) == 0.7  # there are no more


def test_equal_bounds_take_the_smaller_threshold_also_in_the_refusal() -> None:
    curve = PrecisionCoverage((0.9, 0.8, 0.7), (2, 3, 4), (1, 1, 2), 4)
    with pytest.raises(InputError, match=r"threshold 0\.7 "):
        curve.threshold_for(0.6)


@pytest.mark.parametrize(
    ("thresholds", "n_kept", "n_right", "n"),
    [
        ((0.5, 0.6), (1, 2), (1, 1), 2),  # rising thresholds
        ((0.6, 0.5), (1, 1), (1, 1), 2),  # nothing added
        ((0.6, 0.5), (1, 2), (1, 3), 2),  # more right than kept
        ((0.6, 0.5), (1, 3), (1, 1), 2),  # more kept than there are
        ((0.6, 0.0), (1, 2), (1, 1), 2),
        ((1.5, 0.5), (1, 2), (1, 1), 2),
        ((0.6,), (1, 2), (1, 1), 2),
        ((), (), (), 0),
    ],
)
def test_what_is_no_curve_is_refused(
    thresholds: tuple[float, ...], n_kept: tuple[int, ...], n_right: tuple[int, ...], n: int
) -> None:
    with pytest.raises(InputError, match="curve"):
        PrecisionCoverage(thresholds, n_kept, n_right, n)


@settings(max_examples=40)
@given(pairs=st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.9]), st.booleans()), min_size=1, max_size=6))
def test_risk_coverage_is_the_mean_over_all_orders_of_equals(pairs: list[tuple[float, bool]]) -> None:
    areas = []
    for order in itertools.permutations(pairs):
        if all(before[0] >= after[0] for before, after in itertools.pairwise(order)):
            risks = [sum(not right for _, right in order[:k]) / k for k in range(1, len(order) + 1)]
            areas.append(sum(risks) / len(risks))
    assert area_under_risk_coverage(*arrays(pairs)) == pytest.approx(sum(areas) / len(areas), abs=1e-12)


def test_better_order_has_smaller_area() -> None:
    correct = np.array([True, True, True, False])
    good, bad = np.array([0.9, 0.8, 0.7, 0.1]), np.array([0.1, 0.7, 0.8, 0.9])
    assert area_under_risk_coverage(good, correct) == pytest.approx(0.25 / 4)
    assert area_under_risk_coverage(good, correct) < area_under_risk_coverage(bad, correct)


@settings(max_examples=100)
@given(
    mentions=st.lists(
        st.tuples(st.integers(0, 10).map(lambda n: n / 10), st.sampled_from(["right", "wrong", "nil"])),
        min_size=1,
        max_size=30,
    ),
    threshold=st.integers(1, 10).map(lambda n: n / 10),
)
def test_abstention_with_mentions_that_have_no_concept(mentions: list[tuple[float, str]], threshold: float) -> None:
    answered = right = right_outcome = withheld = nil_withheld = 0
    for confidence, kind in mentions:
        if confidence >= threshold:
            answered += 1
            right += kind == "right"
            right_outcome += kind == "right"
        else:
            withheld += 1
            nil_withheld += kind == "nil"
            right_outcome += kind == "nil"
    n_nil = sum(kind == "nil" for _, kind in mentions)
    scores = abstention_scores(
        np.array([confidence for confidence, _ in mentions]),
        np.array([kind == "right" for _, kind in mentions]),
        np.array([kind == "nil" for _, kind in mentions]),
        threshold=threshold,
    )
    assert scores.accuracy == right_outcome / len(mentions)
    assert scores.coverage == pytest.approx(answered / len(mentions))
    assert scores.precision == (right / answered if answered else None)
    assert scores.recall == (right / (len(mentions) - n_nil) if n_nil < len(mentions) else None)
    assert scores.nil_precision == (nil_withheld / withheld if withheld else None)
    assert scores.nil_recall == (nil_withheld / n_nil if n_nil else None)


def test_a_share_of_none_or_all_lies_in_its_interval() -> None:
    for n in range(1, 500):
        assert wilson_interval(0, n)[0] == 0
        assert wilson_interval(n, n)[1] == 1


@settings(max_examples=60)
@given(n=st.integers(1, 200), part=st.floats(0, 1), level=st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_scipys(n: int, part: float, level: float) -> None:
    right = round(part * n)
    expected = binomtest(right, n).proportion_ci(level, method="wilson")
    assert wilson_interval(right, n, confidence=level) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert NormalDist().inv_cdf(0.975) == pytest.approx(1.959964, abs=1e-6)


def test_what_cannot_be_judged_is_refused() -> None:
    one = np.ones(1)
    with pytest.raises(InputError, match="no mention"):
        brier_score(np.empty(0), np.empty(0, np.bool_))
    with pytest.raises(InputError, match=r"confidence\[1\].*0 to 1.*1\.5"):
        brier_score(np.array([0.5, 1.5]), np.array([True, False]))
    with pytest.raises(InputError, match="nan"):
        precision_coverage(np.array([math.nan]), one > 0)
    with pytest.raises(ShapeError, match="one shape"):
        brier_score(np.ones(2), one > 0)
    with pytest.raises(InputError, match="n_bins"):
        expected_calibration_error(one, one > 0, n_bins=0)
    with pytest.raises(InputError, match="equal-mass or equal-width"):
        expected_calibration_error(one, one > 0, bins="quantile")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="answered rightly"):
        abstention_scores(one, one > 0, one > 0, threshold=0.5)
    with pytest.raises(ShapeError, match="is_nil"):
        abstention_scores(one, one > 0, np.zeros(2, np.bool_), threshold=0.5)
    with pytest.raises(InputError, match="threshold"):
        abstention_scores(one, one > 0, one < 0, threshold=0.0)


@pytest.mark.parametrize("outcome", [np.nan, "False", None, 2, "1"])
def test_what_is_no_outcome_is_not_taken_for_right(outcome: Any) -> None:
    confidence: Any = [0.1, 0.2]
    wrong: Any = [outcome, False]
    for measure in (brier_score, precision_coverage):
        with pytest.raises(InputError, match="neither right nor wrong"):
            measure(confidence, wrong)
    as_numbers: Any = [1, 0.0]
    assert brier_score(confidence, as_numbers) == brier_score(confidence, np.array([True, False]))


def test_an_interval_of_nothing() -> None:
    wrong: Any
    for wrong in ((0, 0), (3, 2), (-1, 2), (1, math.inf), (0.5, 1)):
        with pytest.raises(InputError, match="there is no such share"):
            wilson_interval(*wrong)
    for wrong in (0, 1, 1.5, -0.5, math.nan, "0.9", True):
        with pytest.raises(InputError, match="there is no such confidence"):
            wilson_interval(1, 2, confidence=wrong)
    for wrong in (0, 2.5, True, math.nan, "10"):
        with pytest.raises(InputError, match="there must be a bin"):
            expected_calibration_error(np.array([0.5]), np.array([True]), n_bins=wrong)
