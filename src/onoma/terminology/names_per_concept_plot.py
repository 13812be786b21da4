"""A picture of how many names the concepts of a terminology have. Needs matplotlib (``onoma[plot]``)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from onoma.errors import InputError
from onoma.files.pictures import save_picture
from onoma.quantities import quantity
from onoma.terminology.information import TerminologyInfo

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EDGES = (1, 2, 3, 4, 5, 6, 11, 21, 51, 101, 201, 501, 1001)
"""Where the bars begin: one for each small number, then ever wider ones."""
_BAR, _LINE = "#2f6f9f", "#444444"


def plot_names_per_concept(
    info: TerminologyInfo, file: str | Path, *, title: str = "", overwrite: bool = False
) -> None:
    """Draw how many concepts have how many names.

    Bars with the number and the share of concepts; the axis is logarithmic, since a vocabulary has many concepts with a
    name or two and few with hundreds. What several names normalise to counts once.

    Args:
        info: Of the terminology.
        file: ``.png``, ``.svg`` or ``.pdf``.
        title: What it is a picture of, e.g. the folder.
        overwrite: Replace a file that is there.

    Raises:
        InputError: another kind of file, or no concept has a name.
        ArtifactExistsError: ``file`` exists.
        UnavailableError: matplotlib is not installed.
    """
    bars = names_per_concept_bars(info)
    if not bars:
        raise InputError("there is nothing to draw: no concept has a name", path=file)
    said = f"Concepts by their number of distinct names: {', '.join(f'{label}: {n:,}' for label, n in bars)}"
    save_picture(Path(file), lambda: _draw(info, bars, title), says=said, overwrite=overwrite)


def _draw(info: TerminologyInfo, bars: list[tuple[str, int]], title: str) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    n_named = sum(count for _, count in bars)
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    drawn = axes.bar([label for label, _ in bars], [count for _, count in bars], color=_BAR, width=0.85)
    labels = [f"{count:,}\n{_percent(count / n_named)}" if count else "" for _, count in bars]
    axes.bar_label(drawn, labels, padding=2, fontsize=8)
    axes.set_yscale("log")
    axes.set_ylim(0.6, 8 * max(count for _, count in bars))  # from below one concept; above there is room for labels
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else ""))
    axes.set_xlabel("distinct names of a concept")
    axes.set_ylabel("number of concepts (logarithmic)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(which="minor", left=False)
    axes.set_title(
        f"Names per concept: {title}" if title else "Names per concept", loc="left", fontsize=13, parse_math=False
    )
    axes.text(
        1,
        0.98,
        f"{quantity(n_named, 'concept')} with {quantity(info.n_distinct_names, 'distinct name')}\n"
        f"mean {info.names_per_concept:.2f}, {info.quantiles()}",
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=9,
        color=_LINE,
    )
    return figure


def names_per_concept_bars(info: TerminologyInfo) -> list[tuple[str, int]]:
    """(numbers of names, concepts with so many), from one name up to the bar of the most names.

    Example:
        The bars of three concepts with one name and one with eight: ``[("1", 3), ("2", 0), ..., ("6–10", 1)]``.
    """
    most = info.names_at(1)
    bars = []
    for first, after in itertools.pairwise((*_EDGES, most + 1)):
        if first > most:
            break
        is_last = first == _EDGES[-1]
        label = f"{first:,} and more" if is_last else f"{first}" if after == first + 1 else f"{first}–{after - 1}"
        bars.append((label, sum(n for number, n in info.concepts_by_names.items() if first <= number < after)))
    return bars


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}" if share >= 0.001 else "< 0.1%"
