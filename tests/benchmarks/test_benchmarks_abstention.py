"""Abstention: figures of judged mentions, queries as judged mentions, files and pictures."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.benchmarks.abstention import (
    AbstentionResult,
    JudgedMention,
    judge_queries,
    measure_abstention,
)
from onoma.benchmarks.abstention_files import write_abstention
from onoma.benchmarks.biosyn import Asked, Query
from onoma.benchmarks.candidates import Candidate, Candidates
from onoma.benchmarks.metrics import bootstrap_interval, cluster_interval
from onoma.errors import ArtifactExistsError, InputError, UnavailableError
from onoma.linking.confidence_metrics import (
    area_under_risk_coverage,
    brier_score,
    expected_calibration_error,
    threshold_in_words,
    wilson_interval,
)
from onoma.types import DoubleArray


def mentions(n: int = 400, *, seed: int = 0, shift: float = 0.0, n_nil: int = 0) -> list[JudgedMention]:
    """Confidences that come true (``shift`` 0) or promise too much; of the wrong ones some have no concept."""
    random = np.random.default_rng(seed)
    chance = random.beta(4, 1, n)
    right = random.random(n) < chance
    stated = np.clip(chance + shift, 0.001, 0.999)
    wrong_so_far = np.cumsum(~right)
    return [
        JudgedMention(float(confidence), bool(is_right), bool(not is_right and count <= n_nil))
        for confidence, is_right, count in zip(stated, right, wrong_so_far, strict=True)
    ]


def columns(judged: list[JudgedMention]) -> tuple[DoubleArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    return np.array([m.confidence for m in judged]), np.array([m.correct for m in judged])


def test_figures_are_those_of_the_metrics() -> None:
    judged = mentions(n_nil=20)
    confidence, correct = columns(judged)
    result = measure_abstention(judged)
    assert (result.n_mentions, result.n_nil, result.n_answered) == (400, 20, 400)
    assert result.accuracy == correct.mean()
    assert result.mean_confidence == pytest.approx(confidence.mean())
    assert result.ece.value == expected_calibration_error(confidence, correct)
    assert result.ece_equal_width == expected_calibration_error(confidence, correct, bins="equal-width")
    assert result.brier == brier_score(confidence, correct)
    assert result.aurc == area_under_risk_coverage(confidence, correct)
    assert sum(bin_.n for bin_ in result.bins) == sum(bin_.n for bin_ in result.histogram) == 400
    assert result.ece.low < result.ece.high


def test_wished_precisions_are_read_off_the_curve() -> None:
    judged = mentions(n_nil=20)
    result = measure_abstention(judged, wished=(0.8, 0.9))
    for wish, scores in result.at_precision.items():
        coverages = []
        for threshold in {mention.confidence for mention in judged}:
            kept = [mention.correct for mention in judged if mention.confidence >= threshold]
            if sum(kept) / len(kept) >= wish:
                coverages.append(len(kept) / len(judged))
        assert scores is not None
        assert scores.coverage == max(coverages)
        assert scores.precision is not None
        assert scores.precision >= wish
        withheld = [mention for mention in judged if mention.confidence < scores.threshold]
        assert scores.nil_recall == sum(mention.is_nil for mention in withheld) / 20
    assert measure_abstention([JudgedMention(0.9, False)] * 3).at_precision == {0.9: None, 0.95: None, 0.99: None}


def test_a_threshold_chosen_elsewhere_is_judged_here() -> None:
    judged = mentions()
    result = measure_abstention(judged, thresholds={0.95: 0.9, 0.9: 0.8}, no_concept_below=0.9)
    assert list(result.chosen) == [0.9, 0.95]
    kept = [mention.correct for mention in judged if mention.confidence >= 0.9]
    assert result.chosen[0.95].precision == sum(kept) / len(kept)
    assert result.as_tuned == result.chosen[0.95]
    assert "the linker's own threshold: from confidence 0.900" in str(result)
    assert result.chosen[0.95].coverage == len(kept) / len(judged)
    assert measure_abstention(judged, no_concept_below=0.0).as_tuned is None, "nothing is below 0"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("power", [1.0, 0.01], ids=["all over", "near 1"])
def test_a_threshold_taken_at_its_word_answers_what_is_said(seed: int, power: float) -> None:
    judged = [
        JudgedMention(one.confidence**power, one.correct) for one in mentions(2000, seed=seed) if one.confidence < 0.999
    ]
    result = measure_abstention(judged, wished=(0.85, 0.9, 0.95, 0.99))
    written = re.findall(r"precision .*: from confidence ([\d.]+): ([\d.]+) % answered", str(result))
    assert len(written) == sum(scores is not None for scores in result.at_precision.values()) >= 3
    for threshold, answered in written:
        kept = sum(mention.confidence >= float(threshold) for mention in judged)
        assert f"{100 * kept / len(judged):.1f}" == answered


@given(st.floats(0, 1))
def test_a_threshold_is_rounded_down_and_hardly(threshold: float) -> None:
    written = float(threshold_in_words(threshold))
    assert 0 <= threshold - written <= 1e-4 * min(threshold, 1 - threshold) + 1e-17


def test_perfect_confidences_show_what_they_should_and_others_more() -> None:
    honest, boasting = measure_abstention(mentions(2000)), measure_abstention(mentions(2000, shift=0.1))
    assert honest.ece.value == pytest.approx(honest.ece.if_calibrated, abs=0.01)
    assert boasting.ece.low > boasting.ece.if_calibrated * 2
    few = measure_abstention(mentions(100))
    assert few.ece.if_calibrated > 2 * honest.ece.if_calibrated


def test_what_perfect_confidences_would_show_is_what_they_show_on_average() -> None:
    random = np.random.default_rng(3)
    confidence = random.beta(4, 1, 300)
    shown = [expected_calibration_error(confidence, random.random(300) < confidence) for _ in range(500)]
    judged = [JudgedMention(float(c), bool(r)) for c, r in zip(confidence, random.random(300) < 0.7, strict=True)]
    assert measure_abstention(judged).ece.if_calibrated == pytest.approx(np.mean(shown), abs=0.002)


def test_the_interval_is_that_of_resampled_mentions() -> None:
    judged = mentions(300, shift=0.1)
    random = np.random.default_rng(8)
    drawn = [
        expected_calibration_error(*columns([judged[row] for row in random.integers(0, 300, 300)])) for _ in range(600)
    ]
    error = measure_abstention(judged).ece
    excess = np.mean(drawn) - error.value
    assert (error.low, error.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975]) - excess), abs=0.01)


def test_mentions_that_repeat_each_other_are_drawn_together() -> None:
    judged = mentions(60, shift=0.1)
    repeated = [dataclasses.replace(one, cluster=str(row)) for row, one in enumerate(judged) for _ in range(5)]
    random = np.random.default_rng(8)
    drawn, perfect = [], []
    for _ in range(600):
        rows = [5 * row + copy for row in random.integers(0, 60, 60) for copy in range(5)]
        drawn.append(expected_calibration_error(*columns([repeated[row] for row in rows])))
        confidence = np.array([one.confidence for one in repeated])
        perfect.append(expected_calibration_error(confidence, np.repeat(random.random(60), 5) < confidence))
    error = measure_abstention(repeated).ece
    excess = np.mean(drawn) - error.value
    wanted = np.maximum(np.quantile(drawn, [0.025, 0.975]) - excess, 0)
    assert (error.low, error.high) == pytest.approx(tuple(wanted), abs=0.02)
    assert error.if_calibrated == pytest.approx(np.mean(perfect), abs=0.01)
    alone = measure_abstention([dataclasses.replace(one, cluster=None) for one in repeated]).ece
    assert error.high - error.low > 1.5 * (alone.high - alone.low)
    assert error.if_calibrated > 1.5 * alone.if_calibrated


@pytest.mark.parametrize("seed", range(4))
def test_the_value_lies_in_its_interval(seed: int) -> None:
    error = measure_abstention(mentions(200, seed=seed)).ece
    assert 0 <= error.low < error.value < error.high


def test_order_changes_nothing_and_a_seed_repeats() -> None:
    judged = [
        dataclasses.replace(
            mention, confidence=round(mention.confidence, 1), cluster=f"{row % 60}" if row % 4 else None
        )
        for row, mention in enumerate(mentions(n_nil=5))
    ]
    shuffled = [judged[row] for row in np.random.default_rng(1).permutation(len(judged))]
    assert measure_abstention(judged, seed=4) == measure_abstention(shuffled, seed=4)
    assert measure_abstention(judged, seed=4).ece != measure_abstention(judged, seed=5).ece


def test_the_curve_is_short_and_keeps_its_ends() -> None:
    judged = mentions(3000)
    result = measure_abstention(judged)
    assert 100 < len(result.curve) <= 200
    assert len(repr(result)) < 2000, "without the curve and the bins"
    assert result.curve[0].threshold == max(mention.confidence for mention in judged)
    assert result.curve[-1].coverage == 1
    assert result.curve[-1].precision == result.accuracy
    expected = bootstrap_interval(round(result.accuracy * 3000), 3000, seed=0)
    assert (result.curve[-1].low, result.curve[-1].high) == pytest.approx(expected, abs=0.003)


def test_intervals_are_over_clusters() -> None:
    judged = [dataclasses.replace(mention, cluster=f"{number % 60}") for number, mention in enumerate(mentions(600))]
    result = measure_abstention(judged, wished=(0.8,), thresholds={0.8: 0.6}, no_concept_below=0.5)
    shown = [(point.threshold, point.precision, point.low, point.high) for point in result.curve]
    points = [point for point in (result.at_precision[0.8], result.chosen[0.8], result.as_tuned) if point is not None]
    assert len(points) == 3
    for point in points:
        kept = [mention for mention in judged if mention.confidence >= point.threshold]
        assert (point.n_answered, point.n_right) == (len(kept), sum(mention.correct for mention in kept))
        assert point.n_clusters == len({mention.cluster for mention in kept})
        assert f"answered ({point.n_answered:,}; {point.n_clusters} distinct mentions), right" in point.in_words(
            "distinct mentions"
        )
        assert point.low is not None
        assert point.high is not None
        shown.append((point.threshold, point.n_right / point.n_answered, point.low, point.high))
    for threshold, precision, low, high in shown[:: max(1, len(shown) // 20)] + shown[-3:]:
        kept = [mention for mention in judged if mention.confidence >= threshold]
        right, keys = [mention.correct for mention in kept], [str(mention.cluster) for mention in kept]
        if len(set(keys)) > 30 and 0 < precision < 1:  # few clusters, and the two ways to resample differ
            assert (low, high) == pytest.approx(cluster_interval(right, keys, seed=1), abs=0.02)


def test_repeated_mentions_make_nothing_more_certain() -> None:
    once = [dataclasses.replace(mention, cluster=f"{number}") for number, mention in enumerate(mentions(100))]
    bins = [measure_abstention(judged).bins for judged in (once, once * 10)]
    for few, many in zip(*bins, strict=True):
        assert (many.n, many.precision) == (10 * few.n, few.precision)
        assert (many.low, many.high) == pytest.approx((few.low, few.high), abs=0.03)


def test_what_a_few_mentions_reach_is_no_point_of_operation() -> None:
    judged = [JudgedMention(0.9, True)] * 9 + [JudgedMention(0.5, False)] * 20
    assert measure_abstention(judged).at_precision[0.9] is None
    judged += [JudgedMention(0.9, True)]
    reached = measure_abstention(judged).at_precision[0.9]
    assert reached is not None
    assert (reached.n_answered, reached.n_clusters) == (10, 10)
    assert (reached.low, reached.high) == wilson_interval(10, 10)


def test_mentions_without_an_answer_count_as_not_answered() -> None:
    judged = [JudgedMention(0.9, True), JudgedMention(0.0, False, True), JudgedMention(0.0, False)]
    result = measure_abstention(judged, thresholds={0.9: 0.5})
    assert result.n_answered == 1
    assert result.curve[-1].coverage == pytest.approx(1 / 3)
    assert result.chosen[0.9].accuracy == pytest.approx(2 / 3)
    nothing = measure_abstention([JudgedMention(0.0, False)])
    assert nothing.curve == ()
    assert nothing.at_precision[0.9] is None


def test_a_threshold_is_compared_with_each_part() -> None:
    """As linking does: parts of 0.8 and 0.7 are both answered from 0.7 down, and both right with 0.56."""
    parts = JudgedMention(0.56, True, least=0.7)
    result = measure_abstention([parts, JudgedMention(0.6, False)], thresholds={0.9: 0.6}, no_concept_below=0.65)
    assert (result.chosen[0.9].coverage, result.chosen[0.9].precision) == (1.0, 0.5)
    assert result.as_tuned is not None
    assert (result.as_tuned.coverage, result.as_tuned.precision) == (0.5, 1.0)
    assert [point.threshold for point in result.curve] == [0.7, 0.6]
    assert result.aurc == 0.25
    assert result.mean_confidence == pytest.approx(0.58)
    with pytest.raises(InputError, match="no probability"):
        measure_abstention([JudgedMention(0.5, True, least=1.5)])


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(InputError, match="no mention"):
        measure_abstention([])
    with pytest.raises(InputError, match="no probability"):
        measure_abstention([JudgedMention(1.2, True)])
    with pytest.raises(InputError, match="answered rightly"):
        measure_abstention([JudgedMention(0.5, True, True)], thresholds={0.9: 0.5})
    unknown: Any
    for unknown in (math.nan, "no", "False"):
        for judged in (JudgedMention(0.5, unknown), JudgedMention(0.5, False, unknown)):
            with pytest.raises(InputError, match="neither right nor wrong"):
                measure_abstention([JudgedMention(0.4, True), judged])
    with pytest.raises(InputError, match="not a possible precision"):
        measure_abstention([JudgedMention(0.5, True)], wished=[1.5])
    with pytest.raises(InputError, match="not a possible seed"):
        measure_abstention([JudgedMention(0.5, True)], seed=-1)


def test_an_error_is_a_fraction() -> None:
    for seed in range(300):
        numbers = np.random.default_rng(seed)
        n = int(numbers.integers(2, 12))
        judged = [
            JudgedMention(float(numbers.random()), bool(numbers.random() < 0.5), cluster=str(numbers.integers(4)))
            for _ in range(n)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("onoma.benchmarks.abstention._N_RESAMPLES", 20)
            error = measure_abstention(judged, seed=seed).ece
        assert 0 <= error.low <= error.high <= 1


def test_queries_become_judged_mentions() -> None:
    found: Candidates = {
        "breast": [Candidate(("D1",), "breast", 0.9), Candidate(("D2",), "x", 0.8)],
        "ovarian": [Candidate(("D3", "D2"), "ovarian", 0.7)],
        "late": [Candidate(("D9",), "y", 0.6), Candidate(("D1",), "z", 0.5)],
        "blank": [],
    }
    confidences: dict[Asked, float | None] = {"breast": 0.5, "ovarian": 0.25, "late": 0.75, "blank": None}
    queries = [
        Query("breast|ovarian", ("breast", "ovarian"), frozenset({"D1", "D2"})),
        Query("late", ("late",), frozenset({"D1"})),
        Query("late", ("late",), frozenset({"unknown"})),
        Query("breast|blank", ("breast", "blank"), frozenset({"D1"})),
    ]
    assert judge_queries(queries, found, confidences, {"D1", "D2", "D3", "D9"}) == [
        JudgedMention(0.125, True, False, "breast|ovarian", least=0.25),
        JudgedMention(0.75, False, False, "late"),  # right in the second place only
        JudgedMention(0.75, False, True, "late"),
        JudgedMention(0.0, False, False, "breast|blank", least=0.0),
    ]


def test_mentions_are_judged_by_the_answer_in_their_context() -> None:
    asked: list[Asked] = [("cold", "a cold hand"), ("cold", "caught a cold"), "cold"]
    found: Candidates = {one: [Candidate((f"D{row}",), "cold", 1.0)] for row, one in enumerate(asked)}
    confidences: dict[Asked, float | None] = dict(zip(asked, (0.25, 0.5, 0.75), strict=True))
    contexts = ["a cold hand", "caught a cold", None]
    queries = [Query("cold", ("cold",), frozenset({"D1"}), context=context) for context in contexts]
    judged = judge_queries(queries, found, confidences, {"D1"})
    assert [(one.confidence, one.correct) for one in judged] == [(0.25, False), (0.5, True), (0.75, False)]


def test_files_say_all_and_are_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    judged = mentions(n_nil=20)
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        result = measure_abstention(judged, thresholds={0.9: 0.8})
        write_abstention(folder, result, title="a $title$ of_mine")
    names = sorted(file.name for file in folders[0].iterdir())
    assert names == [
        "abstention.json",
        "precision-coverage.png",
        "precision-coverage.svg",
        "reliability.png",
        "reliability.svg",
    ]
    for name in names:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name
    written = json.loads((folders[0] / "abstention.json").read_text())
    assert written == json.loads(json.dumps(result.as_json()))
    assert written["ece"]["value"] == result.ece.value
    assert written["chosen"]["0.9"]["threshold"] == 0.8
    assert set(written["at_precision"]) == {"0.9", "0.95", "0.99"}
    assert written["curve"][-1]["coverage"] == 1
    assert "400 mentions, 20 of them without a concept" in str(result)
    assert "threshold chosen elsewhere for 90%: from confidence 0.800" in str(result)
    write_abstention(folders[0], measure_abstention(judged[:50]), pictures=False)
    assert json.loads((folders[0] / "abstention.json").read_text())["n_mentions"] == 50


def test_without_matplotlib_there_are_figures_and_no_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    write_abstention(tmp_path, measure_abstention(mentions(50)))
    assert [file.name for file in tmp_path.iterdir()] == ["abstention.json"]
    with pytest.raises(UnavailableError, match=r"pip install 'onoma\[plot\]'"):
        write_abstention(tmp_path, measure_abstention(mentions(50)), pictures=True)


def drawn(result: AbstentionResult) -> None:
    from onoma.benchmarks.abstention_plot import draw_reliability

    above, below = draw_reliability(result, title="t").axes
    points = np.asarray(above.get_lines()[1].get_xydata())
    assert points == pytest.approx(np.array([[bin_.confidence, bin_.precision] for bin_ in result.bins]))
    heights = {round(bar.get_x() + bar.get_width() / 2, 3): bar.get_height() for bar in below.patches}  # type: ignore[attr-defined]
    assert sum(heights.values()) == result.n_mentions
    assert len(heights) == len(result.histogram)


def test_the_diagram_shows_the_bins() -> None:
    pytest.importorskip("matplotlib")
    drawn(measure_abstention(mentions()))
    # Means on the upper edges of bins, all in the bin below.
    edges = [JudgedMention(confidence, True) for confidence in (0.05, 0.35, 0.35, 0.35, 0.7, 1.0)]
    drawn(measure_abstention(edges))


def test_the_curve_is_drawn_with_the_wishes_it_reaches() -> None:
    pytest.importorskip("matplotlib")
    from onoma.benchmarks.abstention_plot import draw_precision_coverage

    result = measure_abstention(mentions(), wished=(0.85, 0.9, 1.0))
    (axes,) = draw_precision_coverage(result).axes
    line, *marks = axes.get_lines()
    assert np.asarray(line.get_xydata()).tolist() == [[point.coverage, point.precision] for point in result.curve]
    reached = [scores for scores in result.at_precision.values() if scores is not None]
    assert [mark.get_label() for mark in marks] == [
        f"{wish:.0%} right, read off these mentions: {s.coverage:.1%} answered, from {threshold_in_words(s.threshold)}"
        for wish, s in result.at_precision.items()
        if s is not None
    ]
    assert [np.asarray(mark.get_xydata()).tolist() for mark in marks] == [[[s.coverage, s.precision]] for s in reached]


def test_thresholds_that_were_chosen_elsewhere_are_filled_marks() -> None:
    pytest.importorskip("matplotlib")
    from onoma.benchmarks.abstention_plot import draw_precision_coverage

    result = measure_abstention(mentions(), wished=(0.9,), thresholds={0.9: 0.8, 0.99: 1.0}, no_concept_below=0.7)
    (axes,) = draw_precision_coverage(result).axes
    hollow, chosen, tuned = axes.get_lines()[1:]  # a threshold that nothing reaches has no mark
    assert [mark.get_markerfacecolor() == "none" for mark in (hollow, chosen, tuned)] == [True, False, False]
    at = result.chosen[0.9]
    assert at.precision is not None
    assert at.low is not None
    assert at.high is not None
    assert np.asarray(chosen.get_xydata()).tolist() == [[at.coverage, at.precision]]
    assert chosen.get_label() == (
        f"chosen for 90% in tuning, from 0.800: {at.coverage:.1%} answered, {at.precision:.1%} right "
        f"({100 * at.low:.1f}-{100 * at.high:.1f})"
    )
    assert str(tuned.get_label()).startswith("the linker's own threshold, from 0.700: ")


def test_a_picture_has_room_for_its_interval_and_its_title() -> None:
    pytest.importorskip("matplotlib")
    from onoma.benchmarks.abstention_plot import draw_precision_coverage, draw_reliability

    all_right = measure_abstention([JudgedMention(0.9, True)] * 20)
    title = "bc5cdr-disease, dev: onoma-mini-finetuned-2026 + schwartz-hearst + spelling + composites"
    figure = draw_precision_coverage(all_right, title=title)
    assert figure.axes[0].get_ylim()[0] < all_right.curve[0].low < 0.9
    for drawing in (figure, draw_reliability(all_right, title=title)):
        drawing.draw_without_rendering()
        assert drawing.get_suptitle().replace("\n", " ") == title
        for text in drawing.texts:
            box = text.get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= drawing.bbox.x1


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from onoma.benchmarks.abstention_plot import plot_precision_coverage, plot_reliability

    result = measure_abstention(mentions(50))
    with pytest.raises(InputError, match=r"ending in \.png, \.svg, \.pdf"):
        plot_reliability(result, tmp_path / "x.jpg")
    plot_reliability(result, tmp_path / "x.pdf")
    with pytest.raises(ArtifactExistsError):
        plot_reliability(result, tmp_path / "x.pdf")
    nothing = measure_abstention([JudgedMention(0.0, False)])
    plot_reliability(nothing, tmp_path / "nothing.svg")
    with pytest.raises(InputError, match="no mention has an answer"):
        plot_precision_coverage(nothing, tmp_path / "y.svg")
