"""``onoma terminology``: import, info, search."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from onoma.cli.options import Force, Json, Settings, parse_assignments

app = typer.Typer(help="Read terminologies and look into them.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A terminology folder.")]


@app.command("import")
def import_(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="See: onoma terminology formats.")],
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file or folder, or a name the format knows.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write the terminology folder.")],
    settings: Settings = None,
    on_error: Annotated[
        Literal["strict", "skip"],
        typer.Option("--on-error", help="Stop at the first bad row, or skip, count and list them."),
    ] = "strict",
    force: Force = False,
) -> None:
    """Read a terminology into a folder that every other command opens.

    The user's own codes are kept as they are. FORMATs, what SOURCE is for each, and their settings:
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
            progress=update,
        )
    show.out.print(str(report), markup=False)


@app.command()
def formats() -> None:
    """List the formats that can be read, what SOURCE is for each, and where to get the files."""
    from onoma.cli import show
    from onoma.terminology import describe_options, known_formats

    for entry in known_formats().values():
        show.out.print(f"{entry.name}: {entry.description}", markup=False, style="bold")
        show.out.print(
            f"  SOURCE    {entry.source}\n  files     {entry.obtain}\n  licence   {entry.licence}", markup=False
        )
        for name, default, description in describe_options(entry.options):
            shown = f" [{default}]" if default else ""
            show.out.print(f"  --set {name}=…  {description}{shown}", markup=False)
        show.out.print()


@app.command()
def info(folder: Folder, as_json: Json = False) -> None:
    """Say what a terminology holds: concepts, names, languages, sources, homonyms, relations."""
    from onoma.cli import show
    from onoma.terminology import Terminology

    told = Terminology.open(folder).info()
    if as_json:
        show.out.print_json(json.dumps(dataclasses.asdict(told)))
    else:
        show.out.print(str(told), markup=False)


@app.command()
def search(
    folder: Folder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A code, the beginning of a name, or a part of one.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many hits at most.")] = 20,
    as_json: Json = False,
) -> None:
    """Find concepts by code, beginning of a name, or part of a name."""
    from onoma.cli import show
    from onoma.terminology import Terminology

    hits = Terminology.open(folder).search(text, limit=limit)
    if as_json:
        show.out.print_json(json.dumps([dataclasses.asdict(hit) for hit in hits]))
    elif hits:
        show.table(
            ["concept", "preferred name", "matched name"],
            [[hit.concept_id, hit.preferred_name, hit.matched_name] for hit in hits],
        )
    else:
        show.remark(f"nothing in {folder} has the code '{text}', or a name that contains it")
