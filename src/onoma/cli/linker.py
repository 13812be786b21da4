"""``onoma linker``: make linkers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.options import Dimensions, Encoder, Force, Normalisation, Precision, TerminologyFolder

app = typer.Typer(help="Build linkers.", no_args_is_help=True)


@app.command()
def build(
    terminology: TerminologyFolder,
    encoder: Encoder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="LINKER", help="Where to write the linker folder.")],
    normalisation: Normalisation = None,
    precision: Precision = "fp32",
    dimensions: Dimensions = None,
    force: Force = False,
) -> None:
    """Encode every name of a terminology, so that mentions can be linked to it.

    The folder holds all that linking needs (encoder, names, vectors): it can be moved, and needs no torch.
    """
    from onoma.cli import show
    from onoma.encoders import open_encoder
    from onoma.linking import build_linker

    opened = open_encoder(encoder, precision=precision, dimensions=dimensions)
    with show.progress_bar("encoding", "names") as update:
        linker = build_linker(terminology, opened, out, normalisation=normalisation, overwrite=force, progress=update)
    show.out.print(
        f"{out}: links to {show.count(linker.n_concepts, 'concept')} by {show.count(linker.n_names, 'name')}",
        markup=False,
    )
