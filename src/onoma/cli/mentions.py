"""``onoma mentions``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.options import Encoding, Force, Json, OnError
from onoma.quantities import quantity


def mentions(
    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="CORPUS",
            help="A file of PubTator, BioC (XML or JSON) or BigBIO (Parquet, JSON Lines or a JSON array), or a folder "
            "or archive (zip, tar) of files .ann and .txt (brat), or of BioC or BigBIO.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="TABLE", help="Where to write the table: .csv or .parquet.")
    ],
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="TYPE", help="Keep only mentions of this type (Disease, T047, ...); may be repeated."
        ),
    ] = None,
    strip_prefix: Annotated[
        str, typer.Option(metavar="PREFIX", help="Remove this from codes that begin with it, such as UMLS:.")
    ] = "",
    add_prefix: Annotated[
        str, typer.Option(metavar="PREFIX", help="Put this before codes without a colon, such as MESH:.")
    ] = "",
    codes_in: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="Where the codes are. BioC: the key of an infon (default: identifier, MESH, NCBI Gene identifier, or "
            "the type). brat: notes, type, or the resource of the lines N, such as UMLS (default: all lines N). "
            "BigBIO: a db_name (default: all). PubTator: the prefix of codes, such as MESH or RS# (default: all).",
        ),
    ] = "",
    no_context: Annotated[
        bool, typer.Option("--no-context", help="Do not write the text around each mention.")
    ] = False,
    encoding: Encoding = "utf-8",
    on_error: OnError = "strict",
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Turn a corpus into a table of annotated mentions.

    Other commands read the table: onoma linker tune LINKER --mentions TABLE --context context, onoma benchmark run own
    --data TABLE --group type. Columns: mention, concept_id (NIL: no concept), type, document, start, end, and context:
    the document (of one above 20,000 characters the 2,000 before and after), with the mention between <tgt> and </tgt>.
    Mentions of several concepts are left out and counted.
    """
    from onoma.artifacts import ensure_file_writable
    from onoma.cli import show
    from onoma.files.encodings import checked_encoding
    from onoma.files.reading import Reading
    from onoma.pairs import read_corpus
    from onoma.pairs.corpora import NIL
    from onoma.terminology.listing import check_list_file, write_list

    check_list_file(out)
    ensure_file_writable(out, overwrite=force)
    with show.progress_bar(f"reading {corpus}", "MB") as update:
        reading = Reading(
            on_error=on_error,
            progress=update,
            encoding=checked_encoding(encoding),
            encoding_option="--encoding ",
        )
        found = read_corpus(
            corpus,
            reading,
            types=types or (),
            strip_prefix=strip_prefix,
            add_prefix=add_prefix,
            codes_in=codes_in,
            with_context=not no_context,
        )
    write_list(found, out, overwrite=force)
    of_concepts = found.filter(found["concept_id"] != NIL)
    facts = {
        "n_mentions": len(found),
        "n_distinct": found["mention"].n_unique(),
        "n_concepts": of_concepts["concept_id"].n_unique(),
        "n_of_no_concept": len(found) - len(of_concepts),
        "n_documents": found["document"].n_unique(),
    }
    if as_json:
        show.json_document({**facts, "n_rejected": len(reading.rejects), "notes": dict(reading.notes)})
        return
    documents, concepts = quantity(facts["n_documents"], "document"), quantity(facts["n_concepts"], "concept")
    show.remark(
        f"{out}: {quantity(len(found), 'mention')} ({facts['n_distinct']:,} distinct, "
        f"{facts['n_of_no_concept']:,} of no concept) of {concepts} in {documents}"
    )
    for note, count in reading.notes.items():
        show.remark(f"{note}: {count:,}")
    show.left_out(reading.rejects)
