"""``onoma link``: mentions to concepts."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onoma.cli.options import Json, TopK
from onoma.errors import ConfigError

if TYPE_CHECKING:
    from onoma.linking import Explanation, Link, Linker
    from onoma.linking.explanation import Reason


def link(
    linker: Annotated[Path, typer.Argument(metavar="LINKER", help="A linker folder (onoma linker build).")],
    mentions: Annotated[
        list[str] | None,
        typer.Argument(metavar="MENTION...", help="Names to link; '-' or none reads lines from stdin."),
    ] = None,
    top_k: TopK = 5,
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="STAGES",
            help="Stages to use, divided by commas: exact, loose, dense, sparse, rerank. Unset: those of the linker.",
        ),
    ] = None,
    semantic_type: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE", help="Only concepts of this semantic type or UMLS group; may be given several times."
        ),
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(metavar="SOURCE", help="Only names from this source; several times.")
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Only names of this language (en); several times.")
    ] = None,
    under: Annotated[
        list[str] | None,
        typer.Option(metavar="CONCEPT", help="Only this concept and those below it in the hierarchy; several times."),
    ] = None,
    expect_type: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="Of equal scores, concepts of this semantic type first; several times."),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="P", help="Answer 'no such concept' below this confidence."),
    ] = None,
    min_precision: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="P",
            help="The same, below the confidence from which so large a share of the answers was right in tuning.",
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show why: names, stages, scores, near misses.")] = False,
    as_json: Json = False,
) -> None:
    """Link names to the concepts they mean, best first.

    With --json, one line per mention: {"mention": ..., "links": [{"concept_id", "preferred_name",
    "matched_name", "score", "rank"}, ...]}; the first link of a calibrated linker has a "confidence" too.
    """
    from onoma.encoders.vector_files import decode_lines
    from onoma.linking import Linker

    if min_confidence is not None and min_precision is not None:
        raise ConfigError("give either --min-confidence or --min-precision.")
    opened = Linker.open(linker).only(
        semantic_types=semantic_type or (), sources=source or (), languages=language or (), under=under or ()
    )
    threshold = opened.threshold_for(min_precision) if min_precision is not None else min_confidence
    asked: dict[str, Any] = {
        "top_k": top_k,
        "stages": None if stages is None else [stage.strip() for stage in stages.split(",")],
        "expected_types": expect_type or (),
        "no_concept_below": threshold,
    }
    wanted = list(mentions or [])
    if wanted in ([], ["-"]):
        wanted = decode_lines(sys.stdin.buffer.read(), source="standard input")
    if explain:
        _explain(opened, wanted, asked, as_json=as_json)
        return
    found = opened.link(wanted, **asked)
    if as_json:
        for mention, links in zip(wanted, found, strict=True):
            record = {"mention": mention, "links": [_record(link) for link in links]}
            typer.echo(json.dumps(record, ensure_ascii=False))
        return
    _table(wanted, found)


def _record(link: Link) -> dict[str, Any]:
    """A link for JSON, without a confidence that it does not have."""
    return {name: value for name, value in dataclasses.asdict(link).items() if value is not None}


def _table(mentions: Sequence[str], found: Sequence[Sequence[Link]]) -> None:
    from onoma.cli import show

    has_confidence = any(link.confidence is not None for links in found for link in links)
    columns = ["mention", "concept", "preferred name", "matched name", "score"]
    rows = []
    for mention, links in zip(mentions, found, strict=True):
        for link in links:
            shown = mention if link.rank == 1 else ""
            confidence = "" if link.confidence is None else f"{link.confidence:.3f}"
            cells = [shown, link.concept_id, link.preferred_name, link.matched_name, f"{link.score:.3f}", confidence]
            rows.append(cells if has_confidence else cells[:-1])
        if not links:
            rows.append([mention, "", "(no such concept, or nothing to link)", *[""] * (3 if has_confidence else 2)])
    numeric = ["score", "confidence"] if has_confidence else ["score"]
    show.table([*columns, "confidence"] if has_confidence else columns, rows, numeric=numeric)


def _explain(linker: Linker, mentions: Sequence[str], asked: dict[str, Any], *, as_json: bool) -> None:
    for mention in mentions:
        explanation = linker.explain(mention, **asked)
        if as_json:
            typer.echo(json.dumps(dataclasses.asdict(explanation), ensure_ascii=False))
        else:
            _show(explanation)


def _show(explanation: Explanation) -> None:
    from onoma.cli import show

    show.out.print(show.plain(f"{explanation.mention}: {explanation.outcome}"))
    fused = ""
    if explanation.weights is not None:
        shares = ", ".join(f"{weight:.3f} x {search}" for search, weight in explanation.weights.items())
        fused = f"; fused: {shares}"
    elif explanation.fusion is not None:
        fused = f"; fused: {explanation.fusion}"
    candidates = f" of {show.count(explanation.n_candidates, 'candidate')}" if explanation.n_candidates else ""
    confidence = "" if explanation.confidence is None else f"; confidence {explanation.confidence:.3f}"
    text = f"  compared as '{explanation.text}'; stages {', '.join(explanation.stages)}{fused}{candidates}{confidence}"
    show.out.print(show.plain(text))
    rows = [_row(reason, "answer") for reason in explanation.links]
    rows += [_row(reason, "near miss") for reason in explanation.near_misses]
    columns = ["", "rank", "concept", "preferred name", "matched name", "by", "score", "made of"]
    if rows:
        show.table(columns, rows, numeric=["rank", "score"])
    show.out.print()


def _row(reason: Reason, what: str) -> list[str]:
    made_of = " + ".join(f"{name} {part:.3f}" for name, part in reason.contributions.items())
    cosines = ", ".join(f"{search} {score:.3f}" for search, score in reason.scores.items())
    ranks = ", ".join(f"{search} {rank}." for search, rank in reason.ranks.items())
    details = "; ".join(part for part in (f"cosines {cosines}" if cosines else "", ranks) if part)
    return [
        what,
        str(reason.rank),
        reason.concept_id,
        reason.preferred_name,
        reason.matched_name,
        reason.stage,
        f"{reason.score:.3f}",
        f"{made_of} ({details})" if details else made_of,
    ]
