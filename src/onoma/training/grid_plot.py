"""A picture of a grid: how the scores depend on what was varied. Needs matplotlib (``onoma[plot]``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onoma.errors import InputError
from onoma.files.pictures import save_picture
from onoma.training.grid import Grid
from onoma.training.grid_table import DONE, Trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 3
_PANEL_INCHES = (4.2, 3.0)
_BEST = "#c23b22"


def plot_grid(grid: Grid, table: Sequence[Trained], file: str | Path, *, overwrite: bool = False) -> None:
    """Draw the first development score of finished combinations; without development data, the loss.

    Each ``[[vary]]`` has a panel: over the values of the first setting that it varies, a line for each value of the
    others. The best combination is marked wherever it appears.

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
    save_picture(file, lambda: draw_grid(grid, table), overwrite=overwrite)


def draw_grid(grid: Grid, table: Sequence[Trained]) -> Figure:
    """The same as a figure of Matplotlib, with at least one combination finished."""
    from matplotlib.figure import Figure

    finished = [made for made in table if made.status == DONE]
    what = next(iter(finished[0].scores), "loss")
    heights = {made.name: made.scores[what] if made.scores else float(made.loss or 0) for made in finished}
    columns = min(_COLUMNS, len(grid.tables))
    rows = -(-len(grid.tables) // columns)
    figure = Figure(figsize=(_PANEL_INCHES[0] * columns, _PANEL_INCHES[1] * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for number, (panel, vary) in enumerate(zip(panels, grid.tables, strict=False)):
        members = [made for made in finished if number in made.tables]
        x_key, others, fixed = _roles(vary)
        places = list(dict.fromkeys(_shown(made, x_key) for made in sorted(members, key=lambda m: _order(m, x_key))))
        series: dict[str, list[Trained]] = {}
        for made in sorted(members, key=lambda m: _order(m, x_key)):
            series.setdefault(", ".join(f"{key} {_shown(made, key)}" for key in others), []).append(made)
        for label, line in series.items():
            panel.plot(
                [places.index(_shown(made, x_key)) for made in line],
                [heights[made.name] for made in line],
                marker="o",
                label=label,
            )
        for made in members:
            if made.name == finished[0].name:
                panel.plot(places.index(_shown(made, x_key)), heights[made.name], "o", color=_BEST, ms=11, mfc="none")
        panel.set_xticks(range(len(places)), places)
        panel.set_xlim(-0.5, max(1, len(places)) - 0.5)
        panel.set_xlabel(x_key, parse_math=False)
        panel.set_title(", ".join(f"{key} {value}" for key, value in fixed.items()), fontsize=9, parse_math=False)
        panel.spines[["top", "right"]].set_visible(False)
        if others and series:
            panel.legend(fontsize=7, frameon=False)
        if number % columns == 0:
            panel.set_ylabel(what, parse_math=False)
    for panel in panels[len(grid.tables) :]:
        panel.set_axis_off()
    figure.suptitle(grid.name, x=0.01, ha="left", fontsize=12, parse_math=False)
    return figure


def _roles(vary: Mapping[str, tuple[str, ...]]) -> tuple[str, list[str], dict[str, str]]:
    """Setting of the axis, settings of the lines, settings with one value."""
    several = [key for key, values in vary.items() if len(values) > 1]
    if not several:
        return next(iter(vary)), [], {}
    return several[0], several[1:], {key: values[0] for key, values in vary.items() if len(values) == 1}


def _shown(made: Trained, key: str) -> str:
    return made.settings[key] or "unset"


def _order(made: Trained, key: str) -> tuple[int, float, str]:
    """Numbers by size, then words."""
    value = _shown(made, key)
    try:
        return 0, float(value), ""
    except ValueError:
        return 1, 0.0, value
