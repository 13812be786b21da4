"""A picture of a grid: how the scores depend on what was varied. Needs matplotlib (``onoma[plot]``)."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onoma.errors import InputError
from onoma.files.pictures import COLOURS, MARKERS, save_picture
from onoma.quantities import quantity
from onoma.training.grid import Grid
from onoma.training.grid_table import DONE, Trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3
_PANEL_INCHES = (4.2, 3.0)
_EDGE_INCHES = 0.1
_BEST, _UNTRAINED = "#c23b22", "#808080"
_SHORT_DASHES = (0, (1, 0.6))
_SPREAD = 0.6
"""Of the lines at one word, in widths of a place."""
_TICK_GAP_PIXELS = 4
_LONGEST_TICK = 28
_LEGEND_WIDTH = 52
"""Characters of a line that fits above a panel."""
_NAMES_ONLY = {"seed"}
"""Settings whose numbers have no order."""


def plot_grid(grid: Grid, table: Sequence[Trained], file: str | Path, *, overwrite: bool = False) -> None:
    """Draw the first development score of finished combinations; without development data, the loss.

    Each ``[[vary]]`` has a panel: over the values of the first setting that it varies, a line for each value of the
    others, in the order of the grid's file. Numbers are placed by size; words, and seeds, have no order, and their
    points are not joined. The best combination is marked wherever it appears. The encoder's score before training is
    dashed: one line if it is the same for the whole panel, else one at each combination, in its colour.

    Args:
        grid: What was varied.
        table: From `onoma.training.grid_run.train_grid`.
        file: ``.png``, ``.svg`` or ``.pdf``.
        overwrite: Replace a file that is there.

    Raises:
        InputError: another kind of file, or no combination is finished.
        ArtifactExistsError: ``file`` exists.
        UnavailableError: matplotlib is not installed.
    """
    file = Path(file)
    if not any(made.status == DONE for made in table):
        raise InputError("there is nothing to draw: no combination is finished", path=file)
    save_picture(file, lambda: draw_grid(grid, table), says=_scores_in_words(table), overwrite=overwrite)


def _scores_in_words(table: Sequence[Trained]) -> str:
    finished = [made for made in table if made.status == DONE]
    scores = (
        f"{made.name}: {', '.join(f'{what} {score:.4g}' for what, score in made.scores.items()) or f'loss {made.loss}'}"
        for made in finished
    )
    return f"{quantity(len(finished), 'combination')}, the best first. {'; '.join(scores)}"


def draw_grid(grid: Grid, table: Sequence[Trained]) -> Figure:
    """The same as a figure of Matplotlib, with at least one combination finished."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    finished = [made for made in table if made.status == DONE]
    what = next(iter(finished[0].scores), "loss")
    columns = min(_COLUMNS, len(grid.tables))
    rows = -(-len(grid.tables) // columns)
    layout = ConstrainedLayoutEngine(w_pad=_EDGE_INCHES, h_pad=_EDGE_INCHES)
    figure = Figure(figsize=(_PANEL_INCHES[0] * columns, _PANEL_INCHES[1] * rows), layout=layout)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for number, (panel, vary) in enumerate(zip(panels, grid.tables, strict=False)):
        _draw_panel(panel, vary, _members(table, number), what, best=finished[0].name)
        if number % columns == 0:
            panel.set_ylabel(what + _queries_in_words(finished), parse_math=False)
    for panel in panels[len(grid.tables) :]:
        panel.set_axis_off()
    figure.suptitle(grid.name, x=0.01, ha="left", fontsize=12, parse_math=False)
    _make_room(figure)
    return figure


@dataclass(frozen=True, slots=True)
class _Point:
    x: float
    y: float
    untrained: float | None


def _draw_panel(panel: Axes, vary: Mapping[str, tuple[str, ...]], members: list[Trained], what: str, best: str) -> None:
    x_key, others, fixed = _roles(vary)
    labels = list(dict.fromkeys(_label(made, others) for made in members))
    values = dict.fromkeys(_shown(made, x_key) for made in members)
    members = [made for made in members if made.status == DONE]
    reached = {_shown(made, x_key) for made in members}
    places, is_ordered = _places(x_key, [value for value in values if value in reached])
    step = 0.0 if is_ordered else _SPREAD / max(1, len(labels))
    lines: dict[str, list[_Point]] = {label: [] for label in labels}
    ringed: list[_Point] = []
    for made in sorted(members, key=lambda made: places.index(_shown(made, x_key))):
        label = _label(made, others)
        x = places.index(_shown(made, x_key)) + (labels.index(label) - (len(labels) - 1) / 2) * step
        y = made.scores[what] if made.scores else float(made.loss or 0)
        lines[label].append(_Point(x, y, made.untrained.get(what)))
        if made.name == best:
            ringed = lines[label][-1:]
    for number, (label, points) in enumerate(lines.items()):
        panel.plot(
            [point.x for point in points],
            [point.y for point in points],
            marker=MARKERS[number % len(MARKERS)],
            linestyle="-" if is_ordered else "none",
            color=COLOURS[number % len(COLOURS)],
            alpha=0.85,
            label=textwrap.fill(label, _LEGEND_WIDTH, break_on_hyphens=False),
        )
    for point in ringed:
        panel.plot(point.x, point.y, "o", color=_BEST, ms=12, mfc="none", linestyle="none", label="best")
    ends = -0.5, max(1, len(places)) - 0.5
    is_drawn = _draw_untrained(panel, list(lines.values()), ends, half=0.4 * (step or _SPREAD))
    panel.set_xticks(range(len(places)), [_shortened(place) for place in places], parse_math=False)
    panel.set_xlim(*ends)
    panel.set_xlabel(x_key, parse_math=False)
    panel.spines[["top", "right"]].set_visible(False)
    title = ", ".join(f"{key} {value}" for key, value in fixed.items())
    if (others and lines) or is_drawn:
        _legend_above(panel, title)
    else:
        panel.set_title(title, fontsize=9, loc="left", parse_math=False)


def _draw_untrained(panel: Axes, lines: Sequence[Sequence[_Point]], ends: tuple[float, float], *, half: float) -> bool:
    """One line where it is the same for all, else one of twice ``half`` for each point; whether there was any."""
    before = {point.untrained for points in lines for point in points if point.untrained is not None}
    if len(before) == 1:
        panel.plot(ends, [*before] * 2, "--", color=_UNTRAINED, linewidth=1, label="untrained")
    elif before:
        for number, points in enumerate(lines):
            for point in points:
                if point.untrained is not None:
                    ys = [point.untrained] * 2
                    panel.plot(
                        [point.x - half, point.x + half],
                        ys,
                        linestyle=_SHORT_DASHES,
                        color=COLOURS[number % len(COLOURS)],
                    )
        panel.plot([], [], linestyle=_SHORT_DASHES, color=_UNTRAINED, label="untrained")
    return bool(before)


def _legend_above(panel: Axes, title: str) -> None:
    """Not among the points, where its own would look like some of them."""
    labels = [str(line.get_label()) for line in panel.get_lines()]
    longest = max(len(part) for label in labels for part in label.splitlines())
    columns = max(1, int(0.9 * _PANEL_INCHES[0] / (0.4 + 0.06 * longest)))
    legend = panel.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.2,
        ncols=columns,
        columnspacing=1,
        title=title or None,
        alignment="left",
        fontsize=7,
        title_fontsize=9,
        frameon=False,
    )
    for text in (legend.get_title(), *legend.get_texts()):
        text.set_parse_math(False)


def _members(table: Sequence[Trained], number: int) -> list[Trained]:
    """Combinations of a ``[[vary]]``, finished or not, in the order of the grid's file."""
    members = [made for made in table if number in made.tables]
    return sorted(members, key=lambda made: made.places[made.tables.index(number)] if made.places else 0)


def _roles(vary: Mapping[str, tuple[str, ...]]) -> tuple[str, list[str], dict[str, str]]:
    """Setting of the axis, settings of the lines, settings with one value."""
    several = [key for key, values in vary.items() if len(values) > 1]
    if not several:
        return next(iter(vary)), [], {}
    return several[0], several[1:], {key: values[0] for key, values in vary.items() if len(values) == 1}


def _places(key: str, values: list[str]) -> tuple[list[str], bool]:
    """Values in the order of the axis, from that of the file; and whether it is one of size."""
    try:
        by_size = sorted(values, key=float)
    except ValueError:
        return values, False
    return (values, False) if key in _NAMES_ONLY else (by_size, True)


def _shown(made: Trained, key: str) -> str:
    return made.settings[key] or "unset"


def _label(made: Trained, keys: Sequence[str]) -> str:
    return ", ".join(f"{key} {_shortened(_shown(made, key))}" for key in keys)


def _shortened(value: str) -> str:
    """Paths and names of encoders may be longer than a panel is high; both of their ends tell them apart."""
    half = (_LONGEST_TICK - 1) // 2
    return value if len(value) <= _LONGEST_TICK else f"{value[:half]}…{value[-half:]}"


def _queries_in_words(finished: Sequence[Trained]) -> str:
    counts = sorted({sum(made.queries.values()) for made in finished if made.queries})
    if not counts:
        return ""
    return f"\n{counts[0]:,}{f' to {counts[-1]:,}' if len(counts) > 1 else ''} queries"


def _make_room(figure: Figure) -> None:
    """Turn the words below an axis where they would overlap, and make the picture higher by those and the legends."""
    legends = [legend.get_window_extent().height for panel in figure.axes if (legend := panel.get_legend())]
    _heighten(figure, max(legends, default=0))
    figure.draw_without_rendering()
    turned = 0.0
    for panel in figure.axes:
        ticks = panel.get_xticklabels()
        boxes = [tick.get_window_extent() for tick in ticks]
        if any(left.x1 + _TICK_GAP_PIXELS > right.x0 for left, right in itertools.pairwise(boxes)):
            for tick in ticks:
                tick.set(rotation=40, ha="right", rotation_mode="anchor")
            turned = max(turned, *(tick.get_window_extent().height for tick in ticks))
    _heighten(figure, turned)


def _heighten(figure: Figure, pixels: float) -> None:
    """Each row of panels by so much."""
    rows = -(-len(figure.axes) // _COLUMNS)
    figure.set_figheight(figure.get_figheight() + rows * pixels / figure.dpi)
