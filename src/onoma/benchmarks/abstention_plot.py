"""Pictures of abstention: reliability diagram, precision against coverage. Needs matplotlib (``onoma[plot]``)."""

from __future__ import annotations

import itertools
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onoma.benchmarks.abstention import HISTOGRAM_BINS, AbstentionResult, OperatingPoint
from onoma.errors import InputError
from onoma.files.pictures import save_picture
from onoma.linking.confidence_metrics import threshold_in_words
from onoma.quantities import quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE, _IDEAL, _TEXT, _MARK, _CHOSEN = "#2f6f9f", "#9a9a9a", "#444444", "#c23b22", "#1a1a1a"
_BAND_SHOWN_FROM = 0.1
"""Coverage: the interval of the first few answers may reach far down, and would leave the curve no room."""
_TITLE_WIDTH = 62
"""Characters of a line that fits the narrower picture."""


def plot_reliability(result: AbstentionResult, file: str | Path, *, title: str = "", overwrite: bool = False) -> None:
    """Draw the reliability diagram: what a confidence promised, and what came of it.

    Above, the share of right answers in bins of equally many mentions, with 95 % intervals; on the diagonal a
    confidence keeps its word. Below, how many mentions have which confidence.

    Args:
        result: From `onoma.benchmarks.abstention.measure_abstention`.
        file: ``.png``, ``.svg`` or ``.pdf``.
        title: What it is a picture of.
        overwrite: Replace a file that is there.

    Raises:
        InputError: another kind of file.
        ArtifactExistsError: ``file`` exists.
        UnavailableError: matplotlib is not installed.
    """
    save_picture(Path(file), lambda: draw_reliability(result, title=title), says=str(result), overwrite=overwrite)


def plot_precision_coverage(
    result: AbstentionResult, file: str | Path, *, title: str = "", overwrite: bool = False
) -> None:
    """Draw the precision of the answers given over the share of mentions answered, with its 95 % band.

    Arguments and errors as for `plot_reliability`.

    Raises:
        InputError: another kind of file, or no mention has an answer.
        ArtifactExistsError: ``file`` exists.
        UnavailableError: matplotlib is not installed.
    """
    if not result.curve:
        raise InputError("there is nothing to draw: no mention has an answer", path=file)
    save_picture(
        Path(file), lambda: draw_precision_coverage(result, title=title), says=str(result), overwrite=overwrite
    )


def draw_reliability(result: AbstentionResult, *, title: str = "") -> Figure:
    """The reliability diagram as a figure of Matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 6.8), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3.6, 1))
    above.plot([0, 1], [0, 1], color=_IDEAL, linewidth=1, linestyle="--", label="perfectly calibrated")
    above.errorbar(
        [bin_.confidence for bin_ in result.bins],
        [bin_.precision for bin_ in result.bins],
        yerr=[
            [max(0.0, bin_.precision - bin_.low) for bin_ in result.bins],
            [max(0.0, bin_.high - bin_.precision) for bin_ in result.bins],
        ],
        color=_LINE,
        fmt="o",
        markersize=5,
        elinewidth=1,
        capsize=2,
        label=f"equal-mass bins ({len(result.bins)}), 95 % intervals over {result.clusters}",
    )
    above.set_ylabel("share of right answers")
    above.set_xlim(-0.01, 1.01)
    above.set_ylim(-0.02, 1.02)
    above.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=8, frameon=False, borderaxespad=0)
    error = result.ece
    figure.supxlabel(
        f"{quantity(result.n_mentions, 'mention')}, {result.accuracy:.1%} right, "
        f"mean confidence {result.mean_confidence:.1%}\n"
        f"calibration error {error.value:.3f} ({error.low:.3f} to {error.high:.3f}); perfect confidences would show "
        f"{error.if_calibrated:.3f}",
        fontsize=8,
        color=_TEXT,
    )
    edges = np.arange(1, HISTOGRAM_BINS) / HISTOGRAM_BINS
    # A mean may lie a rounding error above the upper edge that its bin includes.
    places = np.searchsorted(edges, np.round([bin_.confidence for bin_ in result.histogram], 12), side="left")
    counts = [bin_.n for bin_ in result.histogram]
    bars = below.bar((places + 0.5) / HISTOGRAM_BINS, counts, width=0.92 / HISTOGRAM_BINS, color=_LINE)
    below.bar_label(bars, [f"{count:,}" for count in counts], padding=1, fontsize=6, color=_TEXT)
    below.set_ylim(0, 1.18 * max(counts))
    below.set_ylabel("mentions")
    below.set_xlabel("confidence")
    _finish(figure, title or "Reliability")
    return figure


def draw_precision_coverage(result: AbstentionResult, *, title: str = "") -> Figure:
    """Precision over coverage as a figure of Matplotlib; the curve has at least one point.

    Hollow marks are read off these mentions, what could be reached; filled ones are what thresholds give that were
    chosen on others.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    axes = figure.add_subplot()
    coverage = [point.coverage for point in result.curve]
    axes.fill_between(
        coverage,
        [point.low for point in result.curve],
        [point.high for point in result.curve],
        color=_LINE,
        alpha=0.18,
        linewidth=0,
        label=f"95 % interval over {result.clusters}",
    )
    axes.plot(coverage, [point.precision for point in result.curve], color=_LINE, linewidth=1.5, marker=".", ms=3)
    marks = dict(zip(sorted(result.at_precision), zip(itertools.cycle("os^Dv"), itertools.count(5, 3)), strict=False))
    for wish, (marker, size) in marks.items():
        reached = result.at_precision[wish]
        if reached is not None and reached.precision is not None:
            threshold = threshold_in_words(reached.threshold)
            label = f"{wish:.0%} right, read off these mentions: {reached.coverage:.1%} answered, from {threshold}"
            # Each larger, as several may be at one place.
            hollow: dict[str, Any] = {"color": _MARK, "mfc": "none", "ms": size, "linestyle": "none"}
            axes.plot(reached.coverage, reached.precision, marker, **hollow, label=label)
    for wish, chosen in sorted(result.chosen.items()):
        _draw_chosen(axes, chosen, f"chosen for {wish:.0%} in tuning", marker=marks.get(wish, ("o", 5))[0])
    if result.as_tuned is not None:
        _draw_chosen(axes, result.as_tuned, "the linker's own threshold", marker="*", size=11)
    shown = [point.low for point in result.curve if point.coverage >= _BAND_SHOWN_FROM] or [result.curve[-1].low]
    lowest = min(*shown, *(point.precision for point in result.curve))
    axes.set_xlim(0, 1.02)
    axes.set_ylim(max(0.0, lowest - 0.35 * (1.0 - lowest) - 0.02), 1 + 0.05 * (1.0 - lowest) + 0.002)
    axes.set_xlabel("share of mentions answered")
    axes.set_ylabel("share of right answers among them")
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.16), fontsize=8, frameon=False, borderaxespad=0)
    _finish(figure, title or "Precision and coverage")
    return figure


def _draw_chosen(axes: Axes, point: OperatingPoint, what: str, *, marker: str, size: int = 6) -> None:
    """What a threshold gives that was chosen on other mentions."""
    if point.precision is None or point.low is None or point.high is None:
        return
    threshold, interval = threshold_in_words(point.threshold), f"{100 * point.low:.1f}-{100 * point.high:.1f}"
    label = f"{what}, from {threshold}: {point.coverage:.1%} answered, {point.precision:.1%} right ({interval})"
    axes.plot(point.coverage, point.precision, marker, color=_CHOSEN, ms=size, linestyle="none", label=label)


def _finish(figure: Figure, title: str) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    title = textwrap.fill(title, _TITLE_WIDTH, break_on_hyphens=False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, parse_math=False)
