"""The tables of several terminologies, united; `onoma.terminology.merging` says by which rules.

A *record* is a concept of one source; `onoma.terminology.merging.concepts` says which records are one concept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from onoma.files.reading import Reading
from onoma.terminology.assembly import circles
from onoma.terminology.merging.concepts import Concordance
from onoma.terminology.tables import (
    ACTIVE,
    CONCEPTS,
    CROSS_REFERENCES,
    DEFINITIONS,
    NAMES,
    OBSOLETE,
    RELATIONS,
    TerminologyTables,
)
from onoma.types import BoolArray, RowArray

WAY_BACK = "merge"
"""Source of the cross-reference that leads from a joined concept to the code of one that it was made of."""
_NAMES_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class United:
    """What `unite` made.

    Attributes:
        tables: Of the merged terminology.
        n_strangers: Codes for which several sources have names, and no two the same (upper and lower case aside).
    """

    tables: TerminologyTables
    n_strangers: int


def unite(concordance: Concordance, reading: Reading) -> United:
    """Make the tables of the merged terminology.

    Args:
        concordance: Which records are one concept.
        reading: Where progress and what is worth knowing go.
    """
    names, first_named, n_strangers = _names(concordance, reading)
    concepts = _concepts(concordance, first_named, reading)
    tables = TerminologyTables(
        concepts=concepts,
        names=names,
        relations=_relations(concordance, reading),
        definitions=_definitions(concordance),
        cross_references=_cross_references(concordance, concepts),
    )
    return United(tables, n_strangers)


def _all(concordance: Concordance, table: str) -> pl.DataFrame:
    """Rows of a table of all sources, with ``record`` and the ``concept_row`` of the merged terminology."""
    parts = []
    for source, offset in zip(concordance.sources, concordance.offsets, strict=False):
        rows: pl.LazyFrame = getattr(source.terminology, table)()
        record = pl.col("concept_row") + pl.lit(int(offset), dtype=pl.UInt32)
        parts.append(rows.with_columns(record=record).drop("concept_row").collect())
    united = pl.concat(parts)
    rows_of = concordance.concept_of[united["record"].to_numpy()].astype(np.uint32)
    return united.with_columns(concept_row=pl.Series(rows_of))


def _names(concordance: Concordance, reading: Reading) -> tuple[pl.DataFrame, RowArray, int]:
    """Names; for each concept the record that says its preferred name (the first, if none has a name); strangers."""
    reading.tell(0, None, "reading names")
    names = _all(concordance, "names")
    rows = names["concept_row"].to_numpy()
    if (rows[1:] < rows[:-1]).any():
        names = names[np.argsort(rows, kind="stable")]
    rows, records = names["concept_row"].to_numpy(), names["record"].to_numpy()
    starts = np.flatnonzero(np.diff(rows, prepend=np.array([-1]).astype(np.int64)))
    first_named = concordance.first_record.copy()
    first_named[rows[starts]] = records[starts]
    n_strangers = 0
    if concordance.has_several.any():
        is_new = np.ones(len(names), np.bool_)
        for run in _runs_of_concepts(rows):
            part = names[run]
            is_new[run] = _is_new(part, ["concept_row", "text", "language", "source", "term_type"], concordance)
            n_strangers += _count_strangers(part, concordance)
            reading.tell(run.stop, len(names), "uniting names")
        reading.note("names that an earlier terminology had", int((~is_new).sum()))
        is_of_first = pl.Series(records == first_named[rows])
        names = names.with_columns(is_preferred=pl.col("is_preferred") & is_of_first).filter(pl.Series(is_new))
    return names.select(NAMES.names()).cast(NAMES), first_named, n_strangers


def _runs_of_concepts(rows: RowArray) -> Iterator[slice]:
    """Slices of sorted rows that divide no concept: to do the work in parts bounds the memory."""
    start = 0
    while start < len(rows):
        last = min(start + _NAMES_AT_ONCE, len(rows)) - 1
        end = int(np.searchsorted(rows, rows[last], side="right"))
        yield slice(start, end)
        start = end


def _is_new(rows: pl.DataFrame, what: Sequence[str], concordance: Concordance) -> BoolArray:
    """Whether no earlier record of the concept has the same."""
    is_new = np.ones(len(rows), np.bool_)
    several = np.flatnonzero(concordance.has_several[rows["concept_row"].to_numpy()])
    is_first = pl.col("record") == pl.col("record").min().over(what)
    is_new[several] = rows[several].select(is_first).to_series().to_numpy()
    return is_new


def _count_strangers(names: pl.DataFrame, concordance: Concordance) -> int:
    """Codes that terminologies share and name in one language, without a name in common."""
    shared = names.filter(pl.Series(concordance.is_shared[concordance.code_of[names["record"].to_numpy()]]))
    texts = shared.select(
        "record",
        code=pl.Series(concordance.code_of[shared["record"].to_numpy()]),
        text=pl.col("text").str.to_lowercase(),
    ).unique()
    n_sharing = texts.group_by("code", "text").len().group_by("code").agg(pl.col("len").max())
    # A name whose language nobody said may be of any.
    languages = shared.select(
        "record",
        code=pl.Series(concordance.code_of[shared["record"].to_numpy()]),
        language=pl.col("language").str.to_lowercase().str.extract("^([a-z]+)"),
    ).unique()
    unsaid = languages.filter(pl.col("language").is_null() | pl.col("language").is_in(["und", "mul"])).select("code")
    comparable = pl.concat(
        [
            languages.group_by("code", "language").len().filter(pl.col("len") > 1).select("code"),
            languages.join(unsaid, on="code", how="semi")
            .group_by("code")
            .agg(pl.col("record").n_unique())
            .filter(pl.col("record") > 1)
            .select("code"),
        ]
    )
    return len(n_sharing.filter(pl.col("len") == 1).join(comparable, on="code", how="semi"))


def _concepts(concordance: Concordance, first_named: RowArray, reading: Reading) -> pl.DataFrame:
    records = concordance.records
    first = records[concordance.first_record]
    _note_other_statuses(first["status"], records["status"], concordance, reading)
    several = concordance.has_several[concordance.concept_of]
    types = (
        records.select("semantic_types", row=pl.Series(concordance.concept_of, dtype=pl.UInt32))
        .filter(pl.Series(several))
        .explode("semantic_types")
        .drop_nulls()
        .unique(maintain_order=True)
        .group_by("row", maintain_order=True)
        .agg(united="semantic_types")
    )
    return (
        first.with_columns(
            preferred_name=records["preferred_name"][first_named], replaced_by=_successors(first, concordance, reading)
        )
        .with_row_index("row")
        .join(types, on="row", how="left", maintain_order="left")
        .with_columns(semantic_types=pl.coalesce("united", "semantic_types"))
        .select(CONCEPTS.names())
        .cast(CONCEPTS)
    )


def _note_other_statuses(first: pl.Series, statuses: pl.Series, concordance: Concordance, reading: Reading) -> None:
    """Count the concepts on whose status terminologies disagree; the first one's word holds."""
    of_first = first.gather(pl.Series(concordance.concept_of, dtype=pl.UInt32))
    differs = (statuses != of_first).to_numpy()
    for status, what in (
        (OBSOLETE, "concepts that a later terminology has as active: obsolete, as the first says"),
        (ACTIVE, "concepts that a later terminology has as obsolete: active, as the first says"),
    ):
        disagreed = concordance.concept_of[differs & (of_first == status).to_numpy()]
        reading.note(what, len(np.unique(disagreed)))


def _successors(first: pl.DataFrame, concordance: Concordance, reading: Reading) -> pl.Series:
    """``replaced_by`` of each concept, led on to the concept that the code is part of now."""
    part_of = pl.DataFrame(
        {"replaced_by": concordance.codes, "now": first["concept_id"][concordance.concept_of_code.astype(np.uint32)]}
    )
    led_on = (
        first.select("concept_id", "replaced_by")
        .join(part_of, on="replaced_by", how="left", maintain_order="left")
        .select("concept_id", replaced_by=pl.coalesce("now", "replaced_by"))
    )
    in_circle = [code for circle in circles(dict(led_on.drop_nulls().iter_rows())) for code in circle]
    reading.note("successions that went round in a circle, dropped", len(in_circle))
    kept = pl.when(pl.col("concept_id").is_in(in_circle)).then(None).otherwise(pl.col("replaced_by"))
    return led_on.select(replaced_by=kept).to_series()


def _relations(concordance: Concordance, reading: Reading) -> pl.DataFrame:
    parts = []
    for source, offset in zip(concordance.sources, concordance.offsets, strict=False):
        found = source.terminology.relations().collect()
        moved = found.with_columns(
            pl.Series(column, concordance.concept_of[found[column].to_numpy() + offset].astype(np.uint32))
            for column in ("head_row", "tail_row")
        )
        is_within = (moved["head_row"] == moved["tail_row"]) & (found["head_row"] != found["tail_row"])
        reading.note("relations within one merged concept, left out", int(is_within.sum()))
        parts.append(moved.filter(~is_within))
    relations = pl.concat(parts).select(RELATIONS.names()).cast(RELATIONS)
    heads, tails = (concordance.has_several[relations[column].to_numpy()] for column in ("head_row", "tail_row"))
    return _without_repeats(relations, heads | tails)


def _definitions(concordance: Concordance) -> pl.DataFrame:
    definitions = _all(concordance, "definitions")
    is_new = _is_new(definitions, ["concept_row", "text", "source"], concordance)
    return definitions.filter(pl.Series(is_new)).select(DEFINITIONS.names()).cast(DEFINITIONS)


def _cross_references(concordance: Concordance, concepts: pl.DataFrame) -> pl.DataFrame:
    """Those of the sources, none of a concept to itself that was to another, and the ways back."""
    references = _all(concordance, "cross_references")
    ids = concepts["concept_id"]
    own, former = ids[references["concept_row"]], concordance.records["concept_id"][references["record"]]
    became_own = (references["code"] == own) & (references["code"] != former)
    references = references.filter(~became_own).select(CROSS_REFERENCES.names()).cast(CROSS_REFERENCES)
    references = _without_repeats(references, concordance.has_several[references["concept_row"].to_numpy()])
    joined = concordance.joined_codes
    ways_back = pl.DataFrame(
        {
            "concept_row": concordance.concept_of_code[joined],
            "code": concordance.codes[joined],
            "relation": ["exactMatch"] * len(joined),
            "source": [WAY_BACK] * len(joined),
        },
        schema=CROSS_REFERENCES,
    )
    missing = ways_back.join(references, on=["concept_row", "code", "relation"], how="anti", maintain_order="left")
    return pl.concat([references, missing])


def _without_repeats(rows: pl.DataFrame, may_repeat: BoolArray) -> pl.DataFrame:
    """Rows without those that equal an earlier one; only some can."""
    is_first = np.ones(len(rows), np.bool_)
    is_first[may_repeat] = rows.filter(pl.Series(may_repeat)).select(pl.struct(pl.all()).is_first_distinct())[:, 0]
    return rows.filter(pl.Series(is_first))
