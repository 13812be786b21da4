"""The names of a linker collected from a terminology."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from onoma.errors import InputError
from onoma.linking.dictionary import NameDictionary
from onoma.linking.strings import StringColumn
from onoma.terminology import Terminology, normalise_expr
from onoma.terminology.name_rows import checked_name_rows
from onoma.terminology.tables import ACTIVE, OTHER_SCOPE
from onoma.terminology.terminology import as_terminology
from onoma.types import RowArray


def build_dictionary(
    terminology: Terminology | str | Path,
    *,
    normalisation: str = "sapbert",
    hidden_names: Sequence[int] | RowArray | None = None,
) -> NameDictionary:
    """The dictionary of a terminology: active concepts, names that are not suppressed.

    Args:
        terminology: Where the names come from.
        normalisation: Preset that names here and mentions later go through (see `onoma.terminology.normalise`).
        hidden_names: Rows of the table of names to leave out, as if the terminology did not have them.

    Raises:
        InputError: no name is left, or a hidden name does not exist.
    """
    terminology = as_terminology(terminology)
    hidden = checked_name_rows(hidden_names, terminology.n_names)
    entries = collect_entries(terminology, normalisation=normalisation, hidden=hidden)
    return dictionary_of(terminology, entries, normalisation=normalisation)


def collect_entries(
    terminology: Terminology, *, normalisation: str, hidden: RowArray | None = None, with_labels: bool = False
) -> pl.DataFrame:
    """The entries of a dictionary, grouped by text.

    They have the columns normalised, concept_row, name_row, text, is_preferred, is_other_scope and first_seen.

    Args:
        terminology: Where the names come from.
        normalisation: Preset of the names.
        hidden: Rows of the table of names to leave out.
        with_labels: Add ``labels``: of each entry the distinct (language, source) of its names, as a sorted list.

    Raises:
        InputError: no name is left.
    """
    active = terminology.concepts().select(pl.col("status") == ACTIVE).collect().to_series().to_numpy()
    columns = ["concept_row", "text", "is_preferred", "is_suppressed", *(["language", "source"] if with_labels else [])]
    is_other_scope = pl.col("term_type").str.contains(OTHER_SCOPE)
    names = terminology.names().select(*columns, is_other_scope=is_other_scope).with_row_index("name_row").collect()
    keep = active[names["concept_row"].to_numpy()] & ~names["is_suppressed"].to_numpy()
    if hidden is not None:
        keep[hidden] = False
    labels = [pl.struct("language", "source").unique().sort().alias("labels")] if with_labels else []
    entries = (
        names.lazy()
        .filter(pl.Series(keep))
        .with_columns(normalised=normalise_expr(pl.col("text"), normalisation))
        .filter(pl.col("normalised") != "")
        .group_by("normalised", "concept_row")
        .agg(
            pl.col("name_row").min().cast(pl.Int64),
            pl.col("text").sort_by("name_row").first(),
            pl.col("is_preferred").any(),
            pl.col("is_other_scope").all(),
            *labels,
        )
        .with_columns(first_seen=pl.col("name_row").min().over("normalised"))
        .sort("first_seen", "concept_row")
        .collect()
    )
    if entries.is_empty():
        raise InputError(
            "there is no name to link to",
            path=terminology.path,
            expected="at least one active concept with a name that is not suppressed, hidden or blank",
        )
    return entries


def dictionary_of(terminology: Terminology, entries: pl.DataFrame, *, normalisation: str) -> NameDictionary:
    """The dictionary of entries that were collected under a preset."""
    used, entry_concepts = np.unique(entries["concept_row"].to_numpy(), return_inverse=True)
    is_first = np.concatenate([[True], np.diff(entries["first_seen"].to_numpy()) != 0])
    linked = terminology.concepts().select("concept_id", "preferred_name").collect()[used]
    return NameDictionary(
        texts=StringColumn.from_strings(entries["normalised"].filter(pl.Series(is_first))),
        entry_offsets=np.append(np.flatnonzero(is_first), len(entries)).astype(np.int64),
        entry_concepts=entry_concepts.astype(np.int64),
        entry_is_preferred=entries["is_preferred"].to_numpy(),
        entry_name_rows=entries["name_row"].to_numpy(),
        entry_names=StringColumn.from_strings(entries["text"]),
        concept_ids=StringColumn.from_strings(linked["concept_id"]),
        preferred_names=StringColumn.from_strings(linked["preferred_name"]),
        normalisation=normalisation,
        entry_is_other_scope=entries["is_other_scope"].to_numpy() if entries["is_other_scope"].any() else None,
    )


def nameless_concepts(terminology: Terminology, dictionary: NameDictionary) -> list[str]:
    """Codes of active concepts that the dictionary lacks: none of their names is left after normalisation."""
    linked = pl.LazyFrame({"concept_id": pl.Series(list(dictionary.concept_ids), dtype=pl.String)})
    active = terminology.concepts().filter(pl.col("status") == ACTIVE).select("concept_id")
    without = active.join(linked, on="concept_id", how="anti", maintain_order="left").collect()
    return without["concept_id"].to_list()
