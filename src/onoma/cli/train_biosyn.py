"""``onoma train-biosyn``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.options import (
    CodeColumn,
    Development,
    EncoderOut,
    Force,
    Json,
    MentionColumn,
    MentionEncoding,
    RecipeName,
    Settings,
    Track,
    TrainingMentions,
    mention_format,
    parse_assignments,
)


def train_biosyn(
    recipe: RecipeName,
    mentions: TrainingMentions,
    dictionary: Annotated[
        Path,
        typer.Option(
            "--dictionary",
            metavar="NAMES",
            help="The names to rank: a terminology folder, or a file of lines id||name in UTF-8.",
        ),
    ],
    out: EncoderOut,
    settings: Settings = None,
    development: Development = None,
    development_dictionary: Annotated[
        Path | None,
        typer.Option(
            metavar="NAMES",
            help="The names among which to find these mentions, in the same format. Default: those trained on.",
        ),
    ] = None,
    column: MentionColumn = None,
    code_column: CodeColumn = None,
    encoding: MentionEncoding = "utf-8",
    track: Track = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Train an encoder on annotated mentions (BioSyn).

    It learns to rank the names of a dictionary for the mentions. The weight of a sparse score (character TF-IDF) is
    learned with it and stored in the encoder's folder.

    If the run is stopped, give the same command again: it resumes from the last checkpoint, which is kept with the
    unfinished run in ENCODER.run. Settings of a recipe: onoma recipes show RECIPE.
    """
    from onoma.cli import show
    from onoma.training.biosyn_config import BiosynRecipe

    loaded = BiosynRecipe.load(recipe, parse_assignments(settings or []))
    written = mention_format(column, code_column, encoding, [mentions, *(development or [])])

    # torch takes seconds to load: what is wrong with the settings is told before.
    from onoma.encoders.folders import read_folder
    from onoma.training.biosyn import train_biosyn as train
    from onoma.training.distributed import is_main

    with show.training_bar(track or []) as watching:
        report = train(
            loaded,
            mentions,
            dictionary,
            out,
            development=development or [],
            development_dictionary=development_dictionary,
            mention_format=written,
            overwrite=force,
            **watching,
        )
    if is_main():
        show.training_report(report, out, as_json=as_json)
        show.remark(f"sparse weight beside the cosine: {read_folder(out).sparse_weight:.4f}")
