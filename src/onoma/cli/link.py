"""``onoma link``: mentions to concepts."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from onoma.cli.options import Json, TopK


def link(
    linker: Annotated[Path, typer.Argument(metavar="LINKER", help="A linker folder (onoma linker build).")],
    mentions: Annotated[
        list[str] | None,
        typer.Argument(metavar="MENTION...", help="Names to link; '-' or none reads lines from stdin."),
    ] = None,
    top_k: TopK = 5,
    as_json: Json = False,
) -> None:
    """Link names to the concepts they mean, best first.

    With --json, one line per mention: {"mention": ..., "links": [{"concept_id", "preferred_name",
    "matched_name", "score", "rank"}, ...]}.
    """
    from onoma.encoders.vector_files import decode_lines
    from onoma.linking import Linker

    opened = Linker.open(linker)
    wanted = list(mentions or [])
    if wanted in ([], ["-"]):
        wanted = decode_lines(sys.stdin.buffer.read(), source="standard input")
    found = opened.link(wanted, top_k=top_k)
    if as_json:
        for mention, links in zip(wanted, found, strict=True):
            record = {"mention": mention, "links": [dataclasses.asdict(link) for link in links]}
            typer.echo(json.dumps(record, ensure_ascii=False))
        return
    from onoma.cli import show

    rows = []
    for mention, links in zip(wanted, found, strict=True):
        rows += [
            [
                mention if link.rank == 1 else "",
                link.concept_id,
                link.preferred_name,
                link.matched_name,
                f"{link.score:.3f}",
            ]
            for link in links
        ] or [[mention, "", "(nothing to link)", "", ""]]
    show.table(["mention", "concept", "preferred name", "matched name", "score"], rows, numeric=["score"])
