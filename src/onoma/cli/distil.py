"""``onoma distil``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.options import (
    CodeColumn,
    Database,
    Development,
    EncoderOut,
    Force,
    Json,
    MentionColumn,
    MentionEncoding,
    RecipeName,
    Settings,
    Track,
    mention_format,
    parse_assignments,
)


def distil(
    recipe: RecipeName,
    linker: Annotated[
        Path,
        typer.Option("--linker", metavar="LINKER", help="Built with the encoder to learn from: its teacher."),
    ],
    out: EncoderOut,
    settings: Settings = None,
    development: Development = None,
    development_dictionary: Annotated[
        Path | None,
        typer.Option(
            metavar="NAMES",
            help="The names they are looked for in: a terminology folder, or a file of lines id||name in UTF-8. "
            "Unset: the linker's.",
        ),
    ] = None,
    column: MentionColumn = None,
    code_column: CodeColumn = None,
    encoding: MentionEncoding = "utf-8",
    database: Database = None,
    track: Track = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Train a small encoder to find names as near one another as a large one does (distillation).

    The large one is the encoder of a linker: onoma linker build -t DIR -e LARGE --index sign-bits -o LINKER. The
    linker's names are what is learnt from, and no synonym need be known.

    Stopped at any moment, the same command goes on from the last checkpoint, which lies with the unfinished
    run in ENCODER.run. Settings of a recipe: onoma recipes show RECIPE.
    """
    from onoma.cli import show
    from onoma.linking import Linker
    from onoma.training.distillation_config import DistillationRecipe

    loaded = DistillationRecipe.load(recipe, parse_assignments(settings or []))
    written = mention_format(column, code_column, encoding, development or [])
    opened = Linker.open(linker, database=database)

    # torch takes seconds to load: what is wrong with what was given is told before.
    from onoma.training.distillation import distil_encoder
    from onoma.training.distributed import is_main

    with show.training_bar(track or []) as watching:
        report = distil_encoder(
            loaded,
            opened,
            out,
            development=development or [],
            development_dictionary=development_dictionary,
            mention_format=written,
            overwrite=force,
            **watching,
        )
    if is_main():
        show.training_report(report, out, as_json=as_json)
