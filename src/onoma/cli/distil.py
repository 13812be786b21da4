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
        typer.Option("--linker", metavar="LINKER", help="A linker built with the teacher, the encoder to learn from."),
    ],
    out: EncoderOut,
    settings: Settings = None,
    development: Development = None,
    development_dictionary: Annotated[
        Path | None,
        typer.Option(
            metavar="NAMES",
            help="The names among which to find these mentions: a terminology folder, or a UTF-8 file of lines "
            "id||name. Default: the linker's.",
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
    """Train a small encoder to imitate a large one (distillation).

    The small one learns which names the large one finds near one another. The large one is the encoder of a linker:
    onoma linker build -t DIR -e LARGE --index sign-bits -o LINKER. Training uses the linker's names; no synonyms are
    needed.

    If the run is stopped, give the same command again: it resumes from the last checkpoint, which is kept with the
    unfinished run in ENCODER.run. Settings of a recipe: onoma recipes show RECIPE.
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
