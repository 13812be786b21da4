"""``onoma linker``: make linkers, and make them better."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from onoma.cli import linker_info, linker_tune, linker_update
from onoma.cli.commands import Commands
from onoma.cli.options import (
    Database,
    Dimensions,
    EncoderIfAny,
    Force,
    LinkerFolder,
    Normalisation,
    Precision,
    TerminologyFolder,
    divided,
)
from onoma.errors import ConfigError
from onoma.quantities import quantity

app = Commands(help="Build linkers, tune them on mentions, keep them up to date.", no_args_is_help=True)


@app.command()
def build(
    terminology: TerminologyFolder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="LINKER", help="Where to write the linker folder.")],
    encoder: EncoderIfAny = None,
    no_encoder: Annotated[
        bool, typer.Option("--no-encoder", help="Only look-up and character n-grams: no encoder is needed.")
    ] = False,
    normalisation: Normalisation = None,
    precision: Precision = "fp32",
    dimensions: Dimensions = None,
    index: Annotated[
        Literal["exact", "sign-bits", "approximate", "pgvector", "pgvector-hnsw"],
        typer.Option(
            help="How to search vectors: all of them; by their signs first, with a fraction of the memory and "
            "time; by inverted lists; or in PostgreSQL, all of them or by a graph. The share of exact answers "
            "found is measured and stored in the folder."
        ),
    ] = "exact",
    vectors: Annotated[
        Literal["fp32", "fp16", "int16", "int8"],
        typer.Option(help="Precision of the stored vectors; PostgreSQL has the first two."),
    ] = "fp32",
    sparse: Annotated[
        bool, typer.Option("--sparse", help="Also index character n-grams, to search them besides the vectors.")
    ] = False,
    ngrams: Annotated[
        str,
        typer.Option(
            metavar="MIN-MAX", help="Shortest and longest of these n-grams, from 1: such as 1-2, as in BioSyn."
        ),
    ] = "1-2",
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="STAGES",
            help="Stages that are on by default, separated by commas: exact, loose, variants, dense, sparse. "
            "Default: exact, variants and every search there is.",
        ),
    ] = None,
    database: Database = None,
    force: Force = False,
) -> None:
    """Build a linker: encode every name of a terminology.

    The folder contains all that linking needs (encoder, names, vectors): you can move it, and it needs no torch. With
    --index pgvector, the vectors are in a table of their own in PostgreSQL, which the folder names.
    """
    from onoma.cli import show
    from onoma.encoders import open_encoder
    from onoma.linking import build_linker

    if (encoder is None) != no_encoder:
        raise ConfigError("give either --encoder or --no-encoder.")
    of_encoder = (precision, dimensions, index, vectors)
    if no_encoder and of_encoder != ("fp32", None, "exact", "fp32"):
        raise ConfigError(
            "--precision, --dimensions, --index and --vectors are of an encoder's vectors; leave them out with "
            "--no-encoder."
        )
    opened = None if encoder is None else open_encoder(encoder, precision=precision, dimensions=dimensions)
    if opened is not None:
        show.vectors_cut_untrained(opened)
    with show.progress_bar("encoding", "names") as update:
        linker = build_linker(
            terminology,
            opened,
            out,
            normalisation=normalisation,
            index=index,
            vectors=vectors,
            sparse=sparse or no_encoder,
            ngrams=_lengths(ngrams),
            stages=divided(stages),
            database=database,
            overwrite=force,
            progress=update,
        )
    show.out.print(
        f"{out}: links to {quantity(linker.n_concepts, 'concept')} by {quantity(linker.n_names, 'name')}",
    )
    show.nameless_concepts(out, terminology)
    show.unread_names(out)
    show.many_compared(out)


app.command()(linker_tune.tune)
app.command()(linker_tune.calibrate)
app.command("update")(linker_update.update)
app.command("info")(linker_info.info)


@app.command("add-reranker")
def add_cross_encoder(
    linker: LinkerFolder,
    reranker: Annotated[
        Path, typer.Argument(metavar="RERANKER", help="A cross-encoder's folder (onoma reranker train).")
    ],
    database: Database = None,
) -> None:
    """Add a cross-encoder to a linker as its last stage.

    This also switches it on.
    """
    from onoma.artifacts import read_manifest
    from onoma.cli import show
    from onoma.encoders.cross_encoder import read_about
    from onoma.linking import Linker, add_reranker

    before = Linker.open(linker, database=database)
    opened = add_reranker(linker, reranker, database=database)
    show.out.print(f"{linker}: stages {', '.join(opened.settings.stages)}")
    about = read_about(reranker)
    is_new = before.manifest.config.get("reranker") != read_manifest(reranker).fingerprint
    if opened.settings.rerank_weight is None and is_new:
        share = f"its share in the final score is {about.weight:.3g}"
        trained_with = [parent.fingerprint for parent in read_manifest(reranker).parents if parent.kind == "linker"]
        if trained_with and before.fingerprint not in trained_with:
            show.remark(f"{share}, which fits the linker that it was trained with: onoma linker tune learns this one's")
        elif about.weight == 0 and about.nil_score is None:
            show.remark(f"{share}: it changes nothing but costs time (onoma linker tune learns it anew)")
    if before.settings.calibration is not None and opened.settings.calibration is None:
        show.remark("the confidences were learned with another cross-encoder and are dropped")
    show.calibration_out_of_force(opened.settings, opened.settings.stages)


app.command("add-prior")(linker_tune.add_prior)


def _lengths(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal()) or len(text) > 20:
        raise ConfigError(f"--ngrams takes the shortest and the longest length, such as 1-2; found '{text}'.")
    return int(first), int(last)
