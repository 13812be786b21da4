"""What became of the concepts of a linker in another release of its terminology.

=========  ============================================================================
change     what it is
=========  ============================================================================
added      can be an answer now, and could not before
replaced   is obsolete, and the terminology leads to a concept in its place (`Terminology.successors`)
retired    is obsolete, and it does not
removed    its code is gone
unnamed    is active, and has no name any more that could be found
renamed    has another preferred name
respelled  has another preferred name, of which only upper and lower case or white space differ
=========  ============================================================================

The words are those of `onoma.terminology.diffing`, which compares two terminologies; here the old one is not needed.
"""

from __future__ import annotations

import polars as pl

from onoma.linking.dictionary import NameDictionary
from onoma.terminology import Terminology
from onoma.terminology.normalised_columns import normalise_expr
from onoma.terminology.tables import ACTIVE

GONE = ("replaced", "retired", "removed", "unnamed")
"""Changes of concepts that cannot be an answer any more."""
CHANGES = ("added", *GONE, "renamed", "respelled")
CONCEPT_CHANGES = pl.Schema(
    {
        "concept_id": pl.String(),
        "change": pl.String(),
        "old": pl.String(),
        "new": pl.String(),
        "replaced_by": pl.String(),
        "consider": pl.String(),
    }
)
"""Columns of the table: ``old`` and ``new`` are preferred names, null where there is none; ``consider`` the codes of
which one may be used instead of a retired one (`Terminology.to_consider`), divided by ``|``."""


def concept_changes(before: NameDictionary, after: NameDictionary, terminology: Terminology) -> pl.DataFrame:
    """Concepts that came, went or got another preferred name, columns `CONCEPT_CHANGES`.

    Args:
        before: Of the linker.
        after: Of the new release.
        terminology: The new release.

    Returns:
        A row per change, by the kind of change in the order of `CHANGES`, then by code.
    """
    successors = terminology.successors()
    said = terminology.concepts().select("concept_id", "status", now="preferred_name").collect()
    led = _by_code("replaced_by", successors)
    advised = _by_code("consider", choices_in_words(terminology))
    change = (
        pl.when(pl.col("old").is_null())
        .then(pl.lit("added"))
        .when(normalise_expr(pl.col("old")) != normalise_expr(pl.col("new")))
        .then(pl.lit("renamed"))
        .when(pl.col("old") != pl.col("new"))
        .then(pl.lit("respelled"))
        .when(pl.col("new").is_not_null())
        .then(None)
        .when(pl.col("status").is_null())
        .then(pl.lit("removed"))
        .when(pl.col("status") == ACTIVE)
        .then(pl.lit("unnamed"))
        .when(pl.col("replaced_by").is_null())
        .then(pl.lit("retired"))
        .otherwise(pl.lit("replaced"))
    )
    order = pl.DataFrame({"change": CHANGES}).with_row_index("order")
    return (
        _concepts(before, "old")
        .join(_concepts(after, "new"), on="concept_id", how="full", coalesce=True)
        .join(said, on="concept_id", how="left")
        .join(led, on="concept_id", how="left")
        .join(advised, on="concept_id", how="left")
        .with_columns(change=change, new=pl.coalesce("new", "now"))
        .drop_nulls("change")
        .join(order, on="change")
        .sort("order", "concept_id")
        .select(CONCEPT_CHANGES.names())
        .cast(CONCEPT_CHANGES)
    )


def choices_in_words(terminology: Terminology) -> dict[str, str]:
    """What may be used in place of retired codes that none replaces, codes divided by ``|``."""
    return {code: "|".join(others) for code, others in terminology.to_consider().items()}


def _by_code(column: str, values: dict[str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"concept_id": list(values), column: list(values.values())},
        schema={"concept_id": pl.String, column: pl.String},
    )


def _concepts(dictionary: NameDictionary, column: str) -> pl.DataFrame:
    columns = {"concept_id": dictionary.concept_ids, column: dictionary.preferred_names}
    return pl.DataFrame({name: pl.Series(list(strings), dtype=pl.String) for name, strings in columns.items()})
