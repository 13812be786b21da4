"""``onoma link``: mentions to concepts."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

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
from onoma.cli.options import Database, Json, LinkerFolder, TopK
from onoma.cli.preparing import Abbreviations, Codes, Composites, Expand, Spelling, Strengths, preparation
from onoma.errors import ConfigError
from onoma.quantities import quantity

if TYPE_CHECKING:
    from onoma.linking import Explanation, Link, Linker
    from onoma.linking.mentions import PreparedMention


_STDIN = Path("standard input")
_PART_BYTES = 1 << 12
"""Of standard input, at most: some hundred mentions."""
_Mention = tuple[str, str | None]
"""A mention and its context."""


def link(
    linker: LinkerFolder,
    mentions: Annotated[
        list[str] | None,
        typer.Argument(metavar="MENTION...", help="Mentions to link; '-' or none reads lines from stdin."),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="The text around the mentions, for --expand, or a reranker that reads it.",
        ),
    ] = None,
    tabbed: Annotated[
        bool,
        typer.Option("--tabbed", help="Lines of stdin are MENTION<TAB>CONTEXT: each mention with its own context."),
    ] = False,
    abbreviations: Abbreviations = None,
    expand: Expand = None,
    composites: Composites = False,
    spelling: Spelling = False,
    strengths: Strengths = False,
    codes: Codes = False,
    top_k: TopK = 5,
    stages: Stages = None,
    semantic_type: SemanticTypes = None,
    source: Sources = None,
    language: Languages = None,
    under: Under = None,
    expect_type: ExpectTypes = None,
    min_confidence: MinConfidence = None,
    min_precision: MinPrecision = None,
    certainty: Certainty = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain the answers: names, stages, scores, near misses.")
    ] = False,
    database: Database = None,
    as_json: Json = False,
) -> None:
    """Link mentions to the concepts they mean, best first.

    With --json, one line per mention: {"mention": ..., "links": [{"concept_id", "preferred_name", "matched_name",
    "score", "rank"}, ...]}. Lines of stdin are answered as they come, some hundred at a time. The first link of a
    calibrated linker also has a "confidence". If something else was linked in place of a mention, "parts" says what,
    the "read_as" of a link says which part it belongs to, "expansions" which short forms were replaced, and where they
    were defined, "corrections" which words were misspelt, "without_strengths" what was left of a drug, and "code" which
    code was read.
    """
    from onoma.cli import show
    from onoma.linking import Linker

    opened = Linker.open(linker, database=database).only(
        semantic_types=semantic_type, sources=source, languages=language, under=under
    )
    opened = opened.preparing(
        preparation(abbreviations, expand, composites=composites, spelling=spelling, strengths=strengths, codes=codes)
    )
    threshold = least_confidence(opened, min_confidence, min_precision, certainty)
    asked: dict[str, Any] = {
        "top_k": top_k,
        "stages": asked_stages(stages),
        "expected_types": expect_type or (),
        "no_concept_below": threshold,
    }
    if stages is not None and threshold is None:
        show.calibration_out_of_force(opened.settings, asked["stages"])
    if semantic_type or source or language or under:
        show.confidences_under_filters(opened.settings, asked["stages"])
    if expand is not None and context is None and not tabbed:
        raise ConfigError("--expand looks for short forms in contexts, and there are none: give --context or --tabbed.")
    opened.link([], **asked)  # refuses what cannot be asked, before anything is read
    parts = _read(list(mentions or []), context, tabbed=tabbed)
    if not as_json and not explain:  # a table is as wide as its widest cells
        parts = iter([[one for part in parts for one in part]])
    for part in parts:
        wanted = [mention for mention, _ in part]
        contexts = [text for _, text in part] if tabbed or context is not None else None
        if explain:
            _explain(opened, wanted, contexts, asked, as_json=as_json)
            continue
        prepared = opened.prepare(wanted, contexts=contexts, stages=asked["stages"])
        found = opened.link(prepared, **asked)
        if not as_json:
            _table(prepared, found)
            if n_without := sum(not links for links in found):
                show.remark(f"{quantity(n_without, 'mention')} without a link; --explain says why")
            elif not part:
                show.remark("there were no mentions")
            continue
        for mention, links in zip(prepared, found, strict=True):
            show.json_line(_record(mention, links))


def _read(mentions: list[str], context: str | None, *, tabbed: bool) -> Iterator[list[_Mention]]:
    """The mentions and their contexts: those of stdin in parts, as they come."""
    is_given = mentions not in ([], ["-"])
    if is_given and "-" in mentions:
        raise ConfigError("'-' reads mentions from stdin: give it alone, or mentions.")
    if tabbed and (is_given or context is not None):
        raise ConfigError("--tabbed reads mentions and contexts from stdin: give neither mentions nor --context.")
    if is_given:
        yield [(mention, context) for mention in mentions]
        return
    for lines in _lines_of_stdin():
        if tabbed:
            pairs = [line.partition("\t") for line in lines]
            yield [(mention, text or None) for mention, _, text in pairs]
        else:
            yield [(line, context) for line in lines]


def _lines_of_stdin() -> Iterator[list[str]]:
    """Whole lines, as many as are there at a time; those before a bad one too."""
    from onoma.cli import show
    from onoma.errors import InputError
    from onoma.files.csv_problems import CARRIAGE_RETURN
    from onoma.files.text_files import lines_of_bytes
    from onoma.interrupts import end_waits

    if sys.stdin is None:
        raise ConfigError("standard input is closed: give mentions, or lines on it.")
    with contextlib.suppress(OSError, ValueError):  # it is no file of the system, or the system has no such setting
        os.set_blocking(sys.stdin.fileno(), True)  # else a pause would be taken for its end
    if sys.stdin.isatty():
        show.remark("one mention per line; Ctrl-D ends the input")
    n_lines, parts = 0, list[bytes]()
    stream = cast(io.BufferedIOBase, sys.stdin.buffer)

    def more() -> bytes:
        end_waits()
        return stream.read1(_PART_BYTES)

    while data := more():
        before, line_feed, rest = data.rpartition(b"\n")
        if line_feed:
            parts += [before, line_feed]
            yield from lines_of_bytes(b"".join(parts), _STDIN, first_line=n_lines + 1)
            n_lines += sum(part.count(b"\n") for part in parts)
            parts.clear()
        parts.append(rest)
    last = b"".join(parts)
    if not n_lines and b"\r" in last.strip(b"\r"):
        raise InputError(CARRIAGE_RETURN, path=_STDIN, line=1)
    yield from lines_of_bytes(last, _STDIN, first_line=n_lines + 1)


def _record(mention: PreparedMention, links: Sequence[Link]) -> dict[str, Any]:
    """A mention and its links for JSON, without what there is nothing to say of."""
    record: dict[str, Any] = {"mention": mention.original}
    if mention.code is not None:
        record["code"] = mention.code
    if mention.without_strengths is not None:
        record["without_strengths"] = mention.without_strengths
    if mention.expansions:
        record["expansions"] = [dataclasses.asdict(expansion) for expansion in mention.expansions]
    if mention.corrections:
        record["corrections"] = [dataclasses.asdict(correction) for correction in mention.corrections]
    if mention.is_changed:
        record["parts"] = mention.parts
    record["links"] = [
        {name: value for name, value in dataclasses.asdict(link).items() if value is not None} for link in links
    ]
    return record


def _table(mentions: Sequence[PreparedMention], found: Sequence[Sequence[Link]]) -> None:
    from onoma.cli import show
    from onoma.linking.explanation_text import cut

    shown = {
        "mention": True,
        "read as": any(mention.is_changed for mention in mentions),
        "concept": True,
        "preferred name": True,
        "matched name": True,
        "score": True,
        "confidence": any(link.confidence is not None for links in found for link in links),
    }
    rows: list[list[str]] = []
    for mention, links in zip(mentions, found, strict=True):
        said = cut(mention.original)
        for read, of_part in mention.by_part(links):
            read_as = cut(read or "")
            for link in of_part:
                confidence = "" if link.confidence is None else f"{link.confidence:.3f}"
                names = [cut(link.preferred_name), cut(link.matched_name)]
                about = [link.concept_id, *names, f"{link.score:.3f}", confidence]
                rows.append([said, read_as if link.rank == 1 else "", *about])
                said = ""
            if not of_part:
                none = "(no such concept; --explain says why)" if mention.original.strip() else "(nothing to link)"
                rows.append([said, read_as, "", none, "", "", ""])
                said = ""
    columns = [name for name, is_shown in shown.items() if is_shown]
    cells = [[cell for cell, is_shown in zip(row, shown.values(), strict=True) if is_shown] for row in rows]
    show.table(columns, cells, numeric=[name for name in ("score", "confidence") if shown[name]], whole=["concept"])


def _explain(
    linker: Linker,
    mentions: Sequence[str],
    contexts: Sequence[str | None] | None,
    asked: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    from onoma.cli import show

    for mention, context in zip(mentions, contexts or [None] * len(mentions), strict=True):
        explanation = linker.explain(mention, context=context, **asked)
        if as_json:
            show.json_line(explanation)
        else:
            _show(explanation)


def _show(explanation: Explanation) -> None:
    from onoma.cli import show
    from onoma.linking.explanation_text import NUMERIC_COLUMNS, sections

    for lines, rows in sections(explanation):
        for line in lines:
            show.out.print(show.plain(line))
        if rows:
            show.table(rows[0], rows[1:], numeric=NUMERIC_COLUMNS, whole=["concept"])
        show.out.print()
