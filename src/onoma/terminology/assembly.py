"""From what readers find, keyed by codes, to the tables of a terminology, keyed by rows.

Here, once for all formats: the order of concepts, the choice of the preferred name, relations to concepts that are not
there, and successions that go round in a circle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.quantities import quantity
from onoma.terminology.tables import (
    ACTIVE,
    CONCEPTS,
    CROSS_REFERENCES,
    DEFINITIONS,
    NAMES,
    RELATIONS,
    TerminologyTables,
)
from onoma.types import RowArray

SOURCE_CONCEPTS = pl.Schema({"concept_id": pl.String(), "status": pl.String(), "replaced_by": pl.String()})
SOURCE_NAMES = pl.Schema(
    {
        "concept_id": pl.String(),
        "text": pl.String(),
        "language": pl.String(),
        "source": pl.String(),
        "term_type": pl.String(),
        "preference": pl.UInt8(),
        "is_suppressed": pl.Boolean(),
    }
)
SOURCE_TYPES = pl.Schema({"concept_id": pl.String(), "semantic_type": pl.String(), "line": pl.UInt32()})
SOURCE_RELATIONS = pl.Schema(
    {
        "head": pl.String(),
        "relation": pl.String(),
        "tail": pl.String(),
        "source": pl.String(),
        "line": pl.UInt32(),
    }
)
SOURCE_DEFINITIONS = pl.Schema(
    {"concept_id": pl.String(), "text": pl.String(), "source": pl.String(), "line": pl.UInt32()}
)
SOURCE_CROSS_REFERENCES = pl.Schema(
    {
        "concept_id": pl.String(),
        "code": pl.String(),
        "relation": pl.String(),
        "source": pl.String(),
        "line": pl.UInt32(),
    }
)
NOTE_OF_MISSING_CHOICES = "concepts with one to consider in their place that is not among them"
_SAID = ("text", "language", "source", "term_type", "is_suppressed")
"""What a row says of a name. Two rows of a concept that agree in all of it are one name."""


@dataclass(frozen=True)
class SourceTables:
    """What a reader found.

    Attributes:
        path: The file that errors point to; relations, types and definitions may have one of their own in ``paths``.
        names: `SOURCE_NAMES`, in the order of the source; the name of lowest ``preference`` (the first of several)
            becomes the preferred one.
        concepts: `SOURCE_CONCEPTS`, distinct codes in their order; ``None``: every concept named, in the order of
            the names, active.
        semantic_types: `SOURCE_TYPES`, one row for each type of a concept.
        relations: `SOURCE_RELATIONS`.
        definitions: `SOURCE_DEFINITIONS`.
        cross_references: `SOURCE_CROSS_REFERENCES`; relations are `onoma.terminology.tables.MAPPING_RELATIONS`.
        known_elsewhere: Codes that the source has and the user's filters left out. What refers to them is dropped and
            counted; what refers to a code that is nowhere is an error.
        may_refer_outside: Whether it is normal for this format to refer to codes it does not define (an ontology that
            points to terms of another); then nothing of that sort is an error.
        paths: Table name to file, where it is not ``path``.
        source_vocabularies: Of a release that unites several: what is known of each, see `onoma.artifacts.origins_of`.
        origins: Of a folder that was made of what others published: what it says of these.
        release: Which one it is, as the source itself says; "": it does not.
        licence: Under which it was published, likewise.
    """

    path: Path
    names: pl.DataFrame
    concepts: pl.DataFrame | None = None
    semantic_types: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SOURCE_TYPES))
    relations: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SOURCE_RELATIONS))
    definitions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SOURCE_DEFINITIONS))
    cross_references: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SOURCE_CROSS_REFERENCES))
    known_elsewhere: pl.Series = field(default_factory=lambda: pl.Series("concept_id", [], dtype=pl.String))
    may_refer_outside: bool = False
    paths: dict[str, Path] = field(default_factory=dict)
    source_vocabularies: Sequence[Mapping[str, str]] = ()
    origins: Sequence[Mapping[str, Any]] = ()
    release: str = ""
    licence: str = ""


def assemble(found: SourceTables, reading: Reading) -> TerminologyTables:
    """The tables of the terminology.

    Args:
        found: What the reader found.
        reading: Where rejected rows go.

    Raises:
        InputError: nothing was found; under "strict" also what refers to a concept that is nowhere, and
            ``replaced_by`` in a circle.
    """
    concepts = found.concepts if found.concepts is not None else named_concepts(found.names)
    if concepts.is_empty() or found.names.is_empty():
        nothing = (
            "there is no concept with a name in it"
            if found.concepts is None or concepts.is_empty()
            else "no concept has a name"
        )
        raise InputError(
            nothing + _told_of_rejects(reading),
            path=found.path,
            fix="check that the file is of this format and that no filter leaves everything out",
        )
    concepts = _without_circles(concepts, found, reading)
    rows = concepts.select("concept_id").with_row_index("row")
    replaced_by = concepts["replaced_by"].drop_nulls()
    reading.note(
        "concepts replaced by one that is not among them",
        int((~replaced_by.is_in(concepts["concept_id"].implode())).sum()),
    )

    types = _to_rows("semantic_types", ("concept_id",), rows, found, reading)
    relations = _to_rows("relations", ("head", "tail"), rows, found, reading)
    definitions = _to_rows("definitions", ("concept_id",), rows, found, reading)
    references = _to_rows("cross_references", ("concept_id",), rows, found, reading)
    relations = relations.select(
        pl.col("head").alias("head_row"), "relation", pl.col("tail").alias("tail_row"), "source"
    )
    distinct = without_repeats(relations, relations.columns)
    reading.note("relations given more than once", len(relations) - len(distinct))

    ordered = _ordered_names(found.names, rows)
    names = without_repeats(ordered, ("concept_row", *_SAID))
    repeats = "names given more than once (same language, source, term type and suppression), kept once"
    reading.note(repeats, len(ordered) - len(names))
    distinct_definitions = definitions.unique(("concept_id", "text", "source"), keep="first", maintain_order=True)
    reading.note("definitions given more than once", len(definitions) - len(distinct_definitions))
    references = references.rename({"concept_id": "concept_row"}).select(CROSS_REFERENCES.names())
    preferred = names.filter("is_preferred").select("concept_row", preferred_name="text")
    types_by_row = (
        types.group_by("concept_id", maintain_order=True)
        .agg(pl.col("semantic_type").unique(maintain_order=True))
        .rename({"concept_id": "row", "semantic_type": "semantic_types"})
    )
    empty_list = pl.lit([], dtype=pl.List(pl.String))
    concepts = (
        concepts.with_row_index("row")
        .join(types_by_row, on="row", how="left", maintain_order="left")
        .join(preferred, left_on="row", right_on="concept_row", how="left", maintain_order="left")
        .with_columns(pl.col("preferred_name").fill_null(""), pl.col("semantic_types").fill_null(empty_list))
        .select(CONCEPTS.names())
    )
    nameless = concepts.filter(pl.col("preferred_name") == "")["status"].cast(pl.String)
    reading.note("concepts without a name (retired codes)", int((nameless != ACTIVE).sum()))
    reading.note("active concepts without a name, which are never found", int((nameless == ACTIVE).sum()))
    return TerminologyTables(
        concepts=concepts.cast(CONCEPTS),
        names=names.select(NAMES.names()).cast(NAMES),
        relations=distinct.select(RELATIONS.names()).cast(RELATIONS),
        definitions=distinct_definitions.rename({"concept_id": "concept_row"})
        .select(DEFINITIONS.names())
        .cast(DEFINITIONS),
        cross_references=without_repeats(references, references.columns).cast(CROSS_REFERENCES),
    )


def _told_of_rejects(reading: Reading) -> str:
    """What may be the reason that nothing is left."""
    rejects = reading.rejects
    if rejects.is_empty():
        return ""
    file, line, reason, _ = rejects.row(0)
    place = f"{file}, line {line}" if line is not None else file
    rows = f"{quantity(len(rejects), 'row')} {'was' if len(rejects) == 1 else 'were'}"
    return f"; {rows} rejected, the first ({place}) because: {reason}"


def named_concepts(names: pl.DataFrame) -> pl.DataFrame:
    """`SOURCE_CONCEPTS` of all that have names, in the order of these, active."""
    return (
        names.lazy()
        .select("concept_id")
        .filter(_begins_run(pl.col("concept_id")))
        .unique(maintain_order=True)
        .with_columns(status=pl.lit(ACTIVE), replaced_by=pl.lit(None, dtype=pl.String))
        .collect()
    )


def _begins_run(column: pl.Expr) -> pl.Expr:
    """Whether a value differs from the one before. Names of a concept mostly lie together: runs are a third of rows."""
    return column.ne_missing(column.shift())


def _ordered_names(names: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Names with ``concept_row`` and ``is_preferred``, sorted by concept, preferred first, then as in the source."""
    begins_run = names.select(_begins_run(pl.col("concept_id"))).to_series()
    runs = names.select("concept_id").filter(begins_run).join(rows, on="concept_id", how="left", maintain_order="left")
    if runs["row"].null_count():
        raise ValueError("a reader gave a name to a concept that it did not list")
    names = names.drop("concept_id").with_columns(concept_row=runs["row"].gather(begins_run.cum_sum() - 1))
    if not names["concept_row"].is_sorted():
        names = names.sort("concept_row", maintain_order=True)
    order, starts = _preferred_first(names["concept_row"].to_numpy(), names["preference"].to_numpy())
    is_preferred = np.zeros(len(names), np.bool_)
    is_preferred[starts] = True
    return names[order].with_columns(is_preferred=pl.Series(is_preferred))


def without_repeats(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Rows without those that say in these columns what an earlier one says, in order.

    Sorting a 64-bit key of each row is many times as fast as comparing all rows; rows whose keys meet are compared.
    """
    key = pl.Series(np.zeros(len(rows), np.uint64))
    for column in columns:
        key = key * np.uint64(0x9E3779B97F4A7C15) + rows[column].hash()
    in_order = np.sort(key.to_numpy())
    meeting = np.unique(in_order[1:][in_order[1:] == in_order[:-1]])
    if not len(meeting):
        return rows
    compared = rows.select(columns).with_row_index("position").filter(key.is_in(pl.Series(meeting).implode()))
    is_kept = np.ones(len(rows), np.bool_)
    is_kept[compared["position"].to_numpy()] = False
    is_kept[compared.unique(columns, keep="first")["position"].to_numpy()] = True
    return rows.filter(pl.Series(is_kept))


def _preferred_first(concept_rows: RowArray, preference: RowArray) -> tuple[RowArray, RowArray]:
    """A permutation that moves the best name of each run of equal rows to its front, and the starts of the runs."""
    positions = np.arange(len(concept_rows), dtype=np.uint64)
    starts = np.flatnonzero(np.diff(concept_rows, prepend=np.array([-1]).astype(np.int64)))
    best_key = np.minimum.reduceat((preference.astype(np.uint64) << np.uint64(40)) | positions, starts)
    best = (best_key & np.uint64((1 << 40) - 1)).astype(np.int64)
    run_lengths = np.diff(np.append(starts, len(positions)))
    is_before_best = positions.astype(np.int64) < np.repeat(best, run_lengths)
    target = positions.astype(np.int64) + is_before_best
    target[best] = starts
    order = np.empty_like(target)
    order[target] = positions.astype(np.int64)
    return order, starts


def _to_rows(
    name: str, columns: tuple[str, ...], rows: pl.DataFrame, found: SourceTables, reading: Reading
) -> pl.DataFrame:
    """A table with rows for the codes in ``columns``; what refers to concepts that are not there is accounted for."""
    table: pl.DataFrame = getattr(found, name)
    if table.is_empty():
        return table.with_columns(pl.lit(None, dtype=pl.UInt32).alias(column) for column in columns)
    joined = table
    for column in columns:
        joined = joined.join(
            rows.rename({"concept_id": column, "row": f"{column}_row"}), on=column, how="left", maintain_order="left"
        )
    is_whole = joined.select(pl.all_horizontal(pl.col(f"{column}_row").is_not_null() for column in columns)).to_series()
    if not is_whole.all():
        _account_for_missing(joined.filter(~is_whole), name, columns, found, reading)
        joined = joined.filter(is_whole)
    return joined.with_columns(pl.col(f"{column}_row").alias(column) for column in columns).select(table.columns)


def _account_for_missing(
    broken: pl.DataFrame, name: str, columns: tuple[str, ...], found: SourceTables, reading: Reading
) -> None:
    shown_name = name.replace("_", " ")
    nowhere = pl.any_horizontal(
        pl.col(f"{column}_row").is_null() & ~pl.col(column).is_in(found.known_elsewhere.implode()) for column in columns
    )
    dangling = broken.filter(nowhere)
    reading.note(f"{shown_name} of concepts that a filter left out", len(broken) - len(dangling))
    if found.may_refer_outside:
        if name == "relations":
            is_advice = pl.col("relation") == "consider"
            reading.note(NOTE_OF_MISSING_CHOICES, dangling.filter(is_advice)["head"].n_unique())
            dangling = dangling.filter(~is_advice)
        reading.note(f"{shown_name} to or from terms that are not among the concepts, left out", len(dangling))
        return
    shown = pl.concat_str(("head", "relation", "tail") if name == "relations" else columns, separator=" ")
    reading.reject_rows(
        dangling.select("line", text=shown),
        "this refers to a concept that the release does not have",
        path=found.paths.get(name, found.path),
        expected="a concept with a name",
    )


def circles(next_of: Mapping[str, str]) -> list[list[str]]:
    """The circles that successions form: of ``{a: b, b: c, c: b}`` it is ``[[b, c]]``."""
    found: list[list[str]] = []
    settled: set[str] = set()
    for start in next_of:
        path: dict[str, int] = {}
        code = start
        while code in next_of and code not in settled and code not in path:
            path[code] = len(path)
            code = next_of[code]
        if code in path:
            found.append(list(path)[path[code] :])
        settled.update(path)
    return found


def _without_circles(concepts: pl.DataFrame, found: SourceTables, reading: Reading) -> pl.DataFrame:
    """Reject ``replaced_by`` that leads back to where it began; such concepts keep none.

    A concept that is its own successor says nothing wrong, only nothing (EFO has some): that is noted.
    """
    is_own = (pl.col("replaced_by") == pl.col("concept_id")).fill_null(False)
    n_own = int(concepts.select(is_own.sum()).item())
    if n_own:
        reading.note("concepts replaced by themselves (they keep no successor)", n_own)
        concepts = concepts.with_columns(replaced_by=pl.when(is_own).then(None).otherwise("replaced_by"))
    successors = concepts.filter(pl.col("replaced_by").is_not_null()).select("concept_id", "replaced_by")
    in_circle: set[str] = set()
    for circle in circles(dict(successors.iter_rows())):
        in_circle.update(circle)
        reading.reject(
            "concepts replace each other in a circle",
            path=found.path,
            text=" -> ".join([*circle, circle[0]]),
            field="replaced_by",
        )
    if not in_circle:
        return concepts
    return concepts.with_columns(
        replaced_by=pl.when(pl.col("concept_id").is_in(list(in_circle))).then(None).otherwise("replaced_by")
    )
