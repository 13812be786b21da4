"""``onoma train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.options import Force, Settings, parse_assignments
from onoma.errors import ConfigError


def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe (onoma recipes list) or a .toml file.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="ENCODER", help="Where to write the encoder folder.")],
    terminology: Annotated[
        Path | None,
        typer.Option("--terminology", "-t", metavar="DIR", help="Train on the synonyms of this terminology."),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", metavar="PAIRS", help="Train on these pairs instead (onoma pairs).")
    ] = None,
    settings: Settings = None,
    force: Force = False,
) -> None:
    """Train an encoder on the synonyms of a terminology, or on pairs made before.

    Stopped at any moment, the same command goes on from the last checkpoint, which lies with the unfinished
    run in ENCODER.run. Settings of a recipe: onoma recipes show RECIPE.
    """
    from onoma.cli import show
    from onoma.training.config import load_recipe
    from onoma.training.run import SETTINGS_OF_PAIRS, train_on_pairs, train_on_terminology

    if (terminology is None) == (pairs is None):
        raise ConfigError("give either --terminology or --pairs.")
    given = parse_assignments(settings or [])
    if settled := [key for key in SETTINGS_OF_PAIRS if pairs is not None and key in given]:
        raise ConfigError(f"With --pairs these are settled already, by onoma pairs: {', '.join(settled)}.")
    loaded = load_recipe(recipe, given)
    with show.training_bar() as (on_step, on_progress):
        if terminology is not None:
            report = train_on_terminology(
                loaded, terminology, out, overwrite=force, on_step=on_step, on_event=show.remark, progress=on_progress
            )
        elif pairs is not None:
            report = train_on_pairs(loaded, pairs, out, overwrite=force, on_step=on_step, on_event=show.remark)
    show.out.print(
        f"{out}: trained {report.steps:,} steps in {show.duration(report.seconds)} "
        f"({report.names_per_second:,.0f} names/s), loss {report.first_loss:.3f} -> {report.last_loss:.3f}",
        markup=False,
    )
