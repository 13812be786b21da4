"""``onoma map``: whole tables of mentions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from onoma.cli.asking import (
    Certainty,
    ExpectTypes,
    Languages,
    MinConfidence,
    MinPrecision,
    SemanticTypes,
    Sources,
    Stages,
    Under,
    asked_stages,
    least_confidence,
)
from onoma.cli.options import Database, Encoding, LinkerFolder
from onoma.cli.preparing import Abbreviations, Codes, Composites, Expand, Spelling, Strengths, preparation
from onoma.quantities import quantity


def map_(
    linker: LinkerFolder,
    table: Annotated[
        Path,
        typer.Option("--input", "-i", metavar="FILE", help="A .csv, .tsv or .jsonl (or with .gz), or a .parquet."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", readable=False, metavar="FILE", help="A .parquet, .csv, .tsv or .jsonl.")
    ],
    column: Annotated[str, typer.Option("--column", "-c", metavar="NAME", help="The column of the mentions.")],
    context: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The column of the text around each mention, for --expand, or a reranker that reads it.",
        ),
    ] = None,
    encoding: Encoding = "utf-8",
    quoting: Annotated[
        Literal["auto", "yes", "no"],
        typer.Option(
            help="Whether cells of a CSV or TSV may be in double quotes; auto: unless tabs separate them. The "
            '"Unicode text" of spreadsheets has tabs and quotes.'
        ),
    ] = "auto",
    abbreviations: Abbreviations = None,
    expand: Expand = None,
    composites: Composites = False,
    spelling: Spelling = False,
    strengths: Strengths = False,
    codes: Codes = False,
    top_k: Annotated[
        int,
        typer.Option("--top-k", "-k", min=1, help="Number of links for a mention; each becomes a row, with its rank."),
    ] = 1,
    answer_prefix: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Put before the names of the answers' columns, if the table has some of these itself: onoma_ gives "
            "onoma_concept_id.",
        ),
    ] = "",
    stages: Stages = None,
    semantic_type: SemanticTypes = None,
    source: Sources = None,
    language: Languages = None,
    under: Under = None,
    expect_type: ExpectTypes = None,
    min_confidence: MinConfidence = None,
    min_precision: MinPrecision = None,
    certainty: Certainty = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-w",
            min=1,
            metavar="N",
            help="Number of processes. Default: one; on Ray, one for each processor.",
        ),
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Where to link: on this machine, or on a Ray cluster (onoma[ray]).")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Address of the Ray cluster. Default: RAY_ADDRESS, or a new one here."),
    ] = None,
    database: Database = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the output, and unfinished work of other settings.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the report as JSON: counts, the linker's fingerprint, SHA-256 of the input.",
        ),
    ] = False,
) -> None:
    """Link a column of mentions in a table.

    Writes the table with the answers in further columns. Tables of any size are mapped in bounded memory, and each
    distinct mention is linked once. If the run is stopped, give the same command again: it resumes where it was.
    With --codes, --abbreviations, --expand, --spelling, --strengths or --composites, the column read_as says what was
    linked in place of a mention; each part of a composite mention becomes a row.
    """
    from onoma.artifacts import is_same
    from onoma.cli import show
    from onoma.errors import InputError
    from onoma.linking import Asking, Linker
    from onoma.linking.confidence_metrics import threshold_in_words
    from onoma.linking.filters import Filters
    from onoma.linking.folder import open_settings
    from onoma.mapping import map_table

    if abbreviations is not None and is_same(output, abbreviations):
        raise InputError(
            "the output would be written over the table of abbreviations", path=output, fix="choose another output"
        )
    threshold, asked = min_confidence, asked_stages(stages)
    if asked is not None or min_precision is not None or certainty is not None:
        opened = Linker.open(linker, database=database)
        threshold = least_confidence(opened, min_confidence, min_precision, certainty)
        if asked is not None and threshold is None:
            show.calibration_out_of_force(opened.settings, asked)
    filters = Filters.of(semantic_types=semantic_type, sources=source, languages=language, under=under)
    if filters.are_set:
        show.confidences_under_filters(open_settings(linker), asked)
    wanted = preparation(
        abbreviations, expand, composites=composites, spelling=spelling, strengths=strengths, codes=codes
    )
    with show.progress_bar("reading", "rows", linking="mentions", counting="mentions") as update:
        report = map_table(
            linker,
            table,
            output,
            column=column,
            context=context,
            encoding=encoding,
            quoting=quoting,
            top_k=top_k,
            answer_prefix=answer_prefix,
            preparation=wanted,
            asking=Asking(asked, threshold, filters, tuple(expect_type or ())),
            workers=workers,
            engine=engine,
            address=address,
            database=database,
            overwrite=force,
            progress=update,
        )
    if as_json:
        show.json_document({**asdict(report), "path": output})
    written = f"; {quantity(report.n_written, 'row')} written" if report.n_written != report.n_rows else ""
    show.remark(
        f"{output}: {quantity(report.n_rows, 'row')}, {report.n_linked:,} of them linked; "
        f"{quantity(report.n_mentions, 'distinct mention')}{written}; {show.duration(report.seconds)}"
    )
    if report.mean_confidence is not None:
        of_development = report.development_confidence
        compared = "" if of_development is None else f" ({of_development:.3f} for the mentions it was calibrated on)"
        show.remark(f"Mean confidence of the best links: {report.mean_confidence:.3f}{compared}.")
    if report.n_quoted:
        show.remark(
            f"{quantity(report.n_quoted, 'row')} with a mention in double quotes, which were read as part of it: "
            "--quoting yes removes them"
        )
    if report.no_concept_below is not None:
        show.remark(
            f"No link is given below a confidence of {threshold_in_words(report.no_concept_below)}; rows without a "
            "link may be such (--min-confidence 0 gives all links, with their confidence)."
        )
    if report.answers_nil:
        show.remark("The linker's cross-encoder may answer that no concept is meant; rows without a link may be such.")
