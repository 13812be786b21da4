"""``onoma terminology``: list, fetch, import, info, search, merge, enrich, diff, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from onoma.cli.commands import Commands
from onoma.cli.options import Force, Json, OnError, Settings, parse_assignments
from onoma.quantities import quantity

if TYPE_CHECKING:
    from onoma.terminology import SearchHit

app = Commands(help="Read, fetch, inspect, merge and compare terminologies.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A terminology folder.")]
Vocabularies = Annotated[
    list[str] | None,
    typer.Option(
        "--vocabulary",
        metavar="NAME=PREFIX",
        help="Vocabulary (MESH) of the codes of folder NAME that have no prefix, so that cross-references find "
        "them. The codes stay as they are.",
    ),
]


@app.command("import")
def import_(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="See: onoma terminology formats.")],
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file or folder, or a name that the format knows.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write the terminology folder.")],
    settings: Settings = None,
    on_error: OnError = "strict",
    licence: Annotated[
        str | None,
        typer.Option(
            metavar="LICENCE",
            help="The licence that you have it under (CC-BY-4.0, or your own words); it is recorded in everything "
            "made from it.",
        ),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Read a terminology into a folder that every other command opens.

    Your own codes are kept as they are. For the FORMATs, what SOURCE is for each, and their settings, see:
    onoma terminology formats.
    """
    from onoma.cli import show
    from onoma.terminology import import_terminology

    with show.progress_bar(f"reading {source}", "rows") as update:
        report = import_terminology(
            format,
            source,
            out,
            on_error=on_error,
            overwrite=force,
            options=parse_assignments(settings or []),
            licence=licence,
            progress=update,
        )
    show.result(report, as_json=as_json)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the vocabularies of the catalogue.

    Shows size, licence, and whether to fetch or to download them by hand.
    """
    from onoma.cli import show
    from onoma.files.sizes import size_in_words
    from onoma.terminology import known_vocabularies

    entries = known_vocabularies().values()
    if as_json:
        show.json_document(list(entries))
        return
    fetched = [entry for entry in entries if entry.url is not None]
    show.table(
        ["name", "vocabulary", "size", "format", "licence"],
        [
            [
                entry.name,
                entry.title,
                "?" if entry.n_bytes is None else size_in_words(entry.n_bytes),
                entry.format,
                entry.licence,
            ]
            for entry in fetched
        ],
        numeric=["size"],
    )
    show.out.print("\nTo be downloaded by hand:", style="bold")
    for entry in entries:
        if entry.by_hand is not None:
            show.out.print(f"\n{entry.name}: {entry.title}", style="bold")
            show.out.print(
                f"  takes    {entry.by_hand}\n  page     {entry.page}\n  format   {entry.format}\n"
                f"  licence  {entry.licence}",
            )


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See: onoma terminology list.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the file and its record.")
    ] = Path(),
    sha256: Annotated[str | None, typer.Option(metavar="HEX", help="The SHA-256 that the file must have.")] = None,
    md5: Annotated[str | None, typer.Option(metavar="HEX", help="Its MD5, if the publisher gives one.")] = None,
    url: Annotated[
        str | None, typer.Option("--from", metavar="URL", help="Another address: a mirror, or another release.")
    ] = None,
    import_to: Annotated[
        Path | None, typer.Option("--import", metavar="DIR", help="Also import it into this terminology folder.")
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Download a vocabulary from its publisher.

    Resumes an interrupted download, checks and records it. When run again, it asks whether there is a newer version.
    FILE.fetch.json beside the file says where it came from, with its SHA-256; give that to --sha256 on another
    machine.
    """
    from onoma.artifacts import ensure_writable
    from onoma.cli import show
    from onoma.files.sizes import size_in_words
    from onoma.terminology import fetch as fetch_vocabulary
    from onoma.terminology import get_vocabulary, import_terminology
    from onoma.terminology.catalogue.downloading import without_secrets
    from onoma.terminology.tables import KIND

    entry = get_vocabulary(name)
    if import_to is not None:
        ensure_writable(import_to, KIND, overwrite=force)
    address = url or entry.url
    if address is not None:
        show.remark(f"{entry.title} ({size_in_words(entry.n_bytes)}), {without_secrets(address)}")
        show.remark(f"licence: {entry.licence}; {entry.page}")
    with show.progress_bar(f"fetching {name}", "MB") as update:
        report = fetch_vocabulary(name, out, url=url, sha256=sha256, md5=md5, overwrite=force, progress=update)
    if not as_json:
        show.out.print(str(report))
    imported = None
    if import_to is not None:
        with show.progress_bar(f"reading {report.path}", "rows") as update:
            imported = import_terminology(
                entry.format, report.path, import_to, overwrite=force, options=entry.options, progress=update
            )
    if as_json:
        show.json_document({**vars(report), "imported": imported})
    elif imported is not None:
        show.out.print(str(imported))


@app.command()
def export(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="umls, obographs, biosyn or csv.")],
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="The folder (umls, csv) or file to write.")],
    on_error: Annotated[
        Literal["strict", "skip"],
        typer.Option(
            "--on-error",
            help="Stop at the first value that the format cannot hold, or leave such values out and count them.",
        ),
    ] = "strict",
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Write a terminology in a format that other tools read.

    Counts what the format has no place for. umls and csv are folders, biosyn (id||name) and obographs (JSON) files;
    csv contains everything.
    """
    from onoma.cli import show
    from onoma.terminology import export_terminology

    report = export_terminology(folder, format, out, on_error=on_error, overwrite=force)
    show.result(report, as_json=as_json)


@app.command()
def formats() -> None:
    """List the formats that can be read.

    Shows what SOURCE is for each, and where to get the files.
    """
    from onoma.cli import show
    from onoma.terminology import describe_options, known_formats

    for entry in known_formats().values():
        show.out.print(f"{entry.name}: {entry.description}", style="bold")
        show.out.print(f"  SOURCE    {entry.source}\n  files     {entry.obtain}\n  licence   {entry.licence}")
        for name, default, description in describe_options(entry.options):
            shown = f" [{default}]" if default else ""
            show.out.print(f"  --set {name}=…  {description}{shown}")
        show.out.print()


@app.command()
def info(
    folder: Folder,
    as_json: Json = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plot the names per concept to this .png, .svg or .pdf (needs onoma[plot])."),
    ] = None,
    force: Force = False,
) -> None:
    """Show what a terminology contains.

    Counts concepts, names, languages, sources, semantic types, homonyms and relations.
    """
    from onoma.cli import show
    from onoma.files.pictures import check_picture
    from onoma.terminology import Terminology
    from onoma.terminology.names_per_concept_plot import plot_names_per_concept

    if plot is not None:
        check_picture(plot, overwrite=force)
    told = Terminology.open(folder).info()
    show.result(told, as_json=as_json)
    if plot is not None:
        plot_names_per_concept(told, plot, title=folder.resolve().name, overwrite=force)
        show.remark(f"names per concept drawn in {plot}")


@app.command()
def search(
    folder: Folder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A code, the beginning of a name, or a part of one.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of hits.")] = 20,
    as_json: Json = False,
) -> None:
    """Find concepts by code or name.

    A code may be the concept's own or a cross-reference.
    """
    from onoma.cli import show
    from onoma.terminology import Terminology

    found = Terminology.open(folder).search(text, limit=limit + 1)
    hits = found[:limit]
    if as_json:
        show.json_document(hits)
    elif hits:
        show.table(
            ["concept", "preferred name", "matched name", "status"],
            [[hit.concept_id, hit.preferred_name, hit.matched_name, _status(hit)] for hit in hits],
            whole=["concept"],
        )
    else:
        show.remark(f"nothing in {folder} has or refers to the code '{text}', or has a name that contains it")
    if len(found) > limit:
        show.remark(f"only the first {limit:,} are shown; --limit shows more")


def _status(hit: SearchHit) -> str:
    told = hit.status
    if hit.replaced_by:
        told += f", replaced by {hit.replaced_by}"
        if hit.successor not in (None, hit.replaced_by):
            told += f", now {hit.successor}"
    if hit.status == "obsolete" and hit.replaced_by and hit.successor is None:
        told += ", which is obsolete too"
    elif hit.is_successor_here is False:
        told += ", which is not here"
    return f"{told}, consider {', '.join(hit.consider)}" if hit.consider else told


@app.command()
def merge(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="Terminology folders; in conflicts, the first decides.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write the merged terminology.")],
    join: Annotated[
        str,
        typer.Option(
            "--join",
            metavar="RELATIONS",
            help="Cross-references that make two codes one concept: exactMatch, closeMatch, xref, separated by commas.",
        ),
    ] = "",
    match: Annotated[
        Literal["prefixes", "exact"],
        typer.Option(help="How to match their codes: whatever the spelling of the prefix (MSH, MESH), or exactly."),
    ] = "prefixes",
    prefix: Annotated[
        list[str] | None,
        typer.Option("--prefix", metavar="NAME=PREFIX", help="Add PREFIX to the codes of folder NAME, e.g. OURS:."),
    ] = None,
    vocabulary: Vocabularies = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Merge several terminologies into one.

    Concepts with the same code become one; the first terminology that has the code determines its preferred name. With
    --join, so do concepts with different codes that are the same by a cross-reference; the first terminology names
    them, and the other codes stay as cross-references.
    """
    from onoma.cli import show
    from onoma.terminology import merge_terminologies
    from onoma.terminology.readers.options import split_words

    with show.progress_bar("merging", "names") as update:
        report = merge_terminologies(
            folders,
            out,
            join_by_cross_references=split_words(join),
            match_codes=match,
            prefixes=parse_assignments(prefix or [], "--prefix"),
            vocabularies=parse_assignments(vocabulary or [], "--vocabulary"),
            overwrite=force,
            progress=update,
        )
    show.result(report, as_json=as_json)


@app.command()
def enrich(
    folder: Folder,
    others: Annotated[
        list[Path], typer.Option("--from", metavar="DIR", help="A terminology that gives names; may be repeated.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write the enriched terminology.")],
    by: Annotated[
        str,
        typer.Option(
            metavar="EVIDENCE",
            help="Evidence that two concepts are the same: name, words (ignoring their order and spelling), code.",
        ),
    ] = "name,words,code",
    languages: Annotated[
        str, typer.Option(metavar="TAGS", help="Languages of the names to add: all, en, or en+es for both.")
    ] = "all",
    vocabulary: Vocabularies = None,
    matches: Annotated[
        Path | None,
        typer.Option(
            "--matches",
            metavar="FILE",
            help="List the matched concepts, the evidence and the names added in this .parquet or .csv.",
        ),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Add synonyms from other terminologies to this one.

    If a concept of another terminology shares a name with one concept here, or else refers to its code, its other
    names are added; the first terminology that has a name decides where it belongs. Concepts and codes stay as they
    are. Homonyms are no evidence, and no name is added to two concepts.
    """
    from onoma.artifacts import ensure_file_writable, holds
    from onoma.cli import show
    from onoma.errors import InputError
    from onoma.pairs.languages import parse_languages
    from onoma.terminology import enrich_terminology
    from onoma.terminology.listing import check_list_file, write_list
    from onoma.terminology.readers.options import split_words

    wished = parse_languages(languages)
    if matches is not None:
        check_list_file(matches)
        if holds(out, matches):
            raise InputError("the list would lie in the terminology", path=matches, fix="choose another place")
        ensure_file_writable(matches, overwrite=force)
    with show.progress_bar("enriching", "terminologies") as update:
        report = enrich_terminology(
            folder,
            others,
            out,
            by=split_words(by),
            languages=wished,
            vocabularies=parse_assignments(vocabulary or [], "--vocabulary"),
            overwrite=force,
            progress=update,
        )
    if matches is not None:
        write_list(report.matches, matches, overwrite=force)
    show.result(report, report.figures(), as_json=as_json)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Folder of the older release.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder of the newer release.")],
    details: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write every change to this .parquet or .csv.")
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Show what changed between two releases.

    Counts concepts added, retired, replaced and renamed, and changed names and relations.
    """
    from onoma.artifacts import ensure_file_writable
    from onoma.cli import show
    from onoma.terminology import diff_terminologies
    from onoma.terminology.listing import check_list_file

    if details is not None:
        check_list_file(details)
        ensure_file_writable(details, overwrite=force)
    changes = diff_terminologies(old, new)
    if details is not None:
        changes.write_details(details, overwrite=force)
    show.result(changes, changes.figures(), as_json=as_json)
    if details is not None and not as_json:
        show.remark(f"{details}: {quantity(len(changes.details), 'change')}")
