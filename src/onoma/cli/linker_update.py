"""``onoma linker update``: another release of the terminology."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.options import (
    PRECISION_HELP,
    Database,
    Encoding,
    Force,
    Json,
    LinkerFolder,
    PrecisionName,
    TerminologyFolder,
    check_changed,
)
from onoma.errors import ConfigError, MismatchError

_OF_ANOTHER = 3
"""Status that says that a linker is of another release, or another terminology; what goes wrong has 1."""


def update(
    linker: LinkerFolder,
    terminology: TerminologyFolder,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where to write the new linker. Default: in place of the old."),
    ] = None,
    mentions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Mentions that were linked before: output of onoma map or onoma link --json, or any .csv, .tsv, "
            ".parquet, .jsonl with a column of mentions; any other file has one on each line, alone or after "
            "its codes (CODE||mention). Both linkers link them as written, with the linker's own stages; the "
            "report says how many get another first answer, and why. If there is a column concept_id, the "
            "report also says how many of its answers, however they were made, are of concepts that are gone.",
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option("--column", "-c", metavar="NAME", help="The column of the mentions. Default: mention."),
    ] = None,
    encoding: Encoding = "utf-8",
    changed: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the mentions with another first answer, or an answer that is gone, to this CSV."
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            "-e",
            metavar="ENCODER",
            help="The linker's own encoder in another folder, to run it in torch. Default: as it is in the linker.",
        ),
    ] = None,
    precision: Annotated[
        PrecisionName | None,
        typer.Option(help=f"Precision of that encoder. {PRECISION_HELP} Default: that of the linker."),
    ] = None,
    database: Database = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only say whether the linker is of this terminology; status 3 if not.")
    ] = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Update a linker to another release of its terminology.

    Encodes only new names, and drops retired concepts. The result is that of a new build; settings stay, with what was
    learned for them.
    """
    from onoma.artifacts import ensure_file_writable, is_same
    from onoma.cli import show
    from onoma.files.encodings import checked_encoding
    from onoma.files.reading import Reading
    from onoma.linking import Linker
    from onoma.linking.answer_changes import read_asked_mentions
    from onoma.linking.updating import check_terminology, update_linker
    from onoma.terminology import Terminology

    if check:
        _refuse_unused(
            out=out,
            mentions=mentions,
            column=column,
            encoding=None if encoding == "utf-8" else encoding,
            changed=changed,
            encoder=encoder,
            precision=precision,
            json=as_json or None,
            force=force or None,
        )
        release = Terminology.open(terminology)
        opened = Linker.open(linker, database=database)
        try:
            check_terminology(opened, release)
        except MismatchError as error:
            show.remark(f"onoma: {error}")
            raise typer.Exit(_OF_ANOTHER) from None
        show.out.print(f"{linker} is of this terminology")
        return
    if mentions is None and (column is not None or encoding != "utf-8"):
        raise ConfigError("--column and --encoding are of the mentions: give these too (--mentions).")
    reading = Reading(may_skip=False, encoding=checked_encoding(encoding), encoding_option="--encoding ", quotes=False)
    if changed is not None:
        if mentions is None:
            raise ConfigError("--changed writes what changed for mentions: give these too (--mentions).")
        check_changed(changed)
        if is_same(changed, mentions):
            raise ConfigError(
                f"--changed would be written over the mentions themselves ({mentions}): choose another file."
            )
        ensure_file_writable(changed, overwrite=force)
    if encoder is None and precision is not None:
        raise ConfigError("--precision is of the encoder that encodes new names: give that too (--encoder).")
    with show.progress_bar("encoding", "names", linking="mentions") as bar:
        asked, answered = (
            (None, None) if mentions is None else read_asked_mentions(mentions, reading, column=column or "mention")
        )
        report = update_linker(
            linker,
            terminology,
            out,
            encoder=encoder,
            precision=precision,
            mentions=asked,
            answered=answered,
            database=database,
            overwrite=force,
            progress=bar,
        )
    show.result(report, report.figures(), as_json=as_json)
    if not as_json:
        show.nameless_concepts(report.out, terminology)
        show.unread_names(report.out)
    if changed is not None and report.answers is not None:
        report.answers.write(changed, overwrite=force)


def _refuse_unused(**given: object) -> None:
    unused = [f"--{name}" for name, value in given.items() if value is not None]
    if unused:
        raise ConfigError(
            f"--check only says whether the linker is of this terminology; leave out {', '.join(unused)}."
        )
