"""``onoma train``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onoma.cli.options import (
    CodeColumn,
    Development,
    EncoderOut,
    Force,
    Json,
    LeaveOut,
    MentionColumn,
    MentionEncoding,
    RecipeName,
    Settings,
    Track,
    mention_format,
    parse_assignments,
)
from onoma.errors import ConfigError, TrainingError
from onoma.quantities import quantity

if TYPE_CHECKING:
    from onoma.training.grid import Grid
    from onoma.training.grid_table import Trained


def train(
    recipe: RecipeName,
    out: EncoderOut,
    terminology: Annotated[
        Path | None,
        typer.Option("--terminology", "-t", metavar="DIR", help="Train on the synonyms of this terminology."),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", metavar="PAIRS", help="Train on these pairs instead (onoma pairs).")
    ] = None,
    settings: Settings = None,
    hide: Annotated[
        int,
        typer.Option(
            "--hide", min=0, metavar="N", help="Hide N synonyms from training, and measure how many are found."
        ),
    ] = 0,
    leave_out: LeaveOut = None,
    development: Development = None,
    development_terminology: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The terminology in which to find these mentions. Default: the one trained on."
        ),
    ] = None,
    column: MentionColumn = None,
    code_column: CodeColumn = None,
    encoding: MentionEncoding = "utf-8",
    track: Track = None,
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid",
            metavar="GRID",
            help="Train every combination of a grid (onoma recipes list, or a .toml file) into a folder below ENCODER.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Plot the grid's scores to this .png, .svg or .pdf, which is overwritten."
        ),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Train an encoder on synonyms of a terminology or on pairs.

    If the run is stopped, give the same command again: it resumes from the last checkpoint, which is kept with the
    unfinished run in ENCODER.run. Settings of a recipe: onoma recipes show RECIPE.

    On several GPUs: torchrun --nproc-per-node 2 --no-python onoma train ...
    """
    from onoma.cli import show
    from onoma.files.pictures import check_picture
    from onoma.training.alignment_config import SETTINGS_OF_PAIRS, Recipe
    from onoma.training.grid import load_grid

    if (terminology is None) == (pairs is None):
        raise ConfigError("give either --terminology or --pairs.")
    given = parse_assignments(settings or [])
    if settled := [key for key in SETTINGS_OF_PAIRS if pairs is not None and key in given]:
        raise ConfigError(f"With --pairs these are settled already, by onoma pairs: {', '.join(settled)}.")
    if pairs is not None and hide:
        raise ConfigError("--hide goes with --terminology: pairs made before have what they have.")
    if leave_out and (pairs is not None or grid is not None):
        raise ConfigError(
            "--leave-out goes with --terminology, and not with --grid: leave names out when pairs are made (onoma "
            "pairs build --leave-out), and give --pairs."
        )
    if plot is not None and grid is None:
        raise ConfigError("--plot draws a grid; give one with --grid.")
    files, trackers = development or [], track or []
    written = mention_format(column, code_column, encoding, [*(leave_out or []), *files])
    if grid is not None:
        if force:
            raise ConfigError("--force does not go with --grid: remove the folder to begin the grid anew.")
        if plot is not None:
            check_picture(plot, overwrite=True)
        varied = load_grid(grid)
        from onoma.training.distributed import is_main
        from onoma.training.grid_run import train_grid

        table = train_grid(
            recipe,
            varied,
            out,
            overrides=given,
            terminology=terminology,
            pairs=pairs,
            development_synonyms=hide,
            development=files,
            development_terminology=development_terminology,
            mention_format=written,
            trackers=trackers,
            watch=show.training_bar,
            on_event=show.remark,
        )
        if is_main():
            _show_grid(varied, table, out, plot, on_pairs=pairs is not None, as_json=as_json)
        return
    loaded = Recipe.load(recipe, given)

    # torch takes seconds to load: what is wrong with the settings is told before.
    from onoma.pairs import names_of_mentions
    from onoma.terminology import Terminology
    from onoma.training.distributed import is_main
    from onoma.training.run import train_on_pairs, train_on_terminology

    left_out = None
    if leave_out and terminology is not None:
        opened = Terminology.open(terminology)
        normalisation = loaded.config.normalisation
        left_out = names_of_mentions(opened, leave_out, normalisation=normalisation, mention_format=written)
        if is_main():
            show.names_left_out(len(left_out), opened.n_names)
    with show.training_bar(trackers) as watching:
        if terminology is not None:
            report = train_on_terminology(
                loaded,
                terminology,
                out,
                names_left_out=left_out,
                development_synonyms=hide,
                development=files,
                development_terminology=development_terminology,
                mention_format=written,
                overwrite=force,
                **watching,
            )
        elif pairs is not None:
            report = train_on_pairs(
                loaded,
                pairs,
                out,
                development=files,
                development_terminology=development_terminology,
                mention_format=written,
                overwrite=force,
                **watching,
            )
    if is_main():
        show.training_report(report, out, as_json=as_json)


def _show_grid(
    grid: Grid, table: Sequence[Trained], out: Path, plot: Path | None, *, on_pairs: bool, as_json: bool
) -> None:
    from onoma.cli import show
    from onoma.training.grid_plot import plot_grid
    from onoma.training.grid_table import DONE, TABLE_NAME

    finished = [made for made in table if made.status == DONE]
    if as_json:
        show.json_document({"path": out, "combinations": table})
    else:
        _show_combinations(finished)
    score = next(iter(finished[0].scores), "") if finished else ""
    if score and (queries := finished[0].queries):
        n_queries = ", ".join(f"{name} ({quantity(n, 'query', 'queries')})" for name, n in queries.items())
        show.remark(f"Scores are of {n_queries}: a difference of a query or two is chance.")
    if not score:
        measuring = "--development FILE with --development-terminology DIR" if on_pairs else "--hide N"
        show.remark(
            f"Sorted by loss, which cannot be compared between losses, mining methods and batches: "
            f"give {measuring} to measure."
        )
    if plot is not None and finished:
        plot_grid(grid, table, plot, overwrite=True)
        show.remark(f"{plot}: the plot")
    show.remark(f"{out / TABLE_NAME}: the whole table")
    if failed := [made.name for made in table if made.status != DONE]:
        raise TrainingError(
            f"{len(failed)} of {len(table)} combinations failed: {', '.join(failed[:5])}"
            f"{' ...' if len(failed) > 5 else ''}. {out / TABLE_NAME} says why; the same command tries them again."
        )


def _show_combinations(finished: Sequence[Trained]) -> None:
    from onoma.cli import show

    score = next(iter(finished[0].scores), "") if finished else ""
    scored = [score, "untrained"] if any(score in made.untrained for made in finished) else [score] if score else []
    show.table(
        ["combination", *scored, "loss", "steps", "time"],
        [
            [
                made.name,
                *[_score(of.get(score)) for of in (made.scores, made.untrained)[: len(scored)]],
                f"{made.loss:.3f}",
                f"{made.steps:,}",
                show.duration(made.seconds or 0.0),
            ]
            for made in finished
        ],
        numeric=[*scored, "loss", "steps", "time"],
    )


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
