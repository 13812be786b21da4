"""``onoma encode``: names to vectors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.options import Dimensions, EncoderName, Force, Normalisation, Precision
from onoma.quantities import quantity


def encode(
    encoder: EncoderName,
    names: Annotated[Path, typer.Option("--input", "-i", metavar="FILE", help="UTF-8 text, one name per line.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", readable=False, metavar="FILE", help="A .npy (n x width) or .parquet (name, vector)."
        ),
    ],
    unit_length: Annotated[bool, typer.Option(help="Scale every vector to length 1: dot product is cosine.")] = True,
    normalisation: Normalisation = None,
    precision: Precision = "fp32",
    dimensions: Dimensions = None,
    force: Force = False,
) -> None:
    """Encode names, one per line: line n of the input is vector n.

    If an encoder does not say how its training names were normalised, only outer white space is removed from names.
    """
    from onoma.cli import show
    from onoma.encoders import open_encoder
    from onoma.encoders.vector_files import encode_file
    from onoma.terminology import normalise

    opened = open_encoder(encoder, precision=precision, dimensions=dimensions)
    show.vectors_cut_untrained(opened)
    preset = normalisation or opened.folder.trained_on or "exact"
    normalise("", preset)  # an unknown preset is refused before the work starts
    with show.progress_bar("encoding", "names") as update:
        count = encode_file(
            opened,
            names,
            output,
            prepare=partial(normalise, preset=preset),
            unit_length=unit_length,
            overwrite=force,
            progress=update,
        )
    show.remark(f"{output}: {quantity(count, 'vector')} of width {opened.width}, by {opened.name}")
