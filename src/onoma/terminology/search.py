"""Find concepts by code or name.

Upper and lower case do not matter (ß is ss, the two letters i of Turkish are one, and so are the two small sigmas of
Greek), nor does white space around the query. If the query is not ASCII, accents as characters of their own and letters
of full width do not matter either, because names are kept as they are written. Hits come in this order: concepts with
exactly that code; those whose code is ``a|b``, of which it is a part; with a cross-reference to exactly that code; with
exactly that name; with a name that begins with it; with a name that contains it.
Within each: active before obsolete, preferred names before others, shorter names before longer, then the order of the
terminology. A concept comes once, with its best name.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal, get_args

import polars as pl

from onoma.code_columns import codes_of_concept_expr
from onoma.errors import InputError, whole_number
from onoma.terminology.tables import OBSOLETE

MatchedBy = Literal["code", "cross-reference", "name", "prefix", "substring"]
_MOST = 1 << 32
"""More than there are concepts, and a number that Polars takes."""
_MATCHED_BY: tuple[MatchedBy, ...] = ("code", *get_args(MatchedBy))
"""By rank; of codes one's own is before ``a|b``."""


@dataclass(frozen=True)
class SearchHit:
    """A concept that a search found.

    Attributes:
        concept_id: Its code.
        preferred_name: Its preferred name.
        matched_name: The name that matched (the preferred one if a code did).
        matched_by: "code", "cross-reference", "name" (equal), "prefix" or "substring".
        status: "active" or "obsolete".
        replaced_by: Code of the concept to use instead, which may be in another terminology.
        consider: Codes of which one may be used instead of an obsolete concept without a successor
            (`Terminology.to_consider`).
        successor: For an obsolete one: where ``replaced_by`` finally leads (`Terminology.successors`).
        is_successor_here: Whether the terminology has that one; ``None``: there is none.
    """

    concept_id: str
    preferred_name: str
    matched_name: str
    matched_by: MatchedBy
    status: str
    replaced_by: str | None
    consider: tuple[str, ...] = ()
    successor: str | None = None
    is_successor_here: bool | None = None


_ONE_LETTER = {"ß": "ss", "ς": "σ", "i\u0307": "i", "\u0131": "i"}
"""What lower case leaves apart, and a person who types capitals means as one."""


def _folded(column: pl.Expr) -> pl.Expr:
    return column.str.to_lowercase().str.replace_many(_ONE_LETTER)


def search_names(
    concepts: pl.LazyFrame, names: pl.LazyFrame, cross_references: pl.LazyFrame, text: str, *, limit: int = 20
) -> list[SearchHit]:
    """Search; the order is the module's.

    Args:
        concepts: Table of concepts.
        names: Table of names.
        cross_references: Table of cross-references.
        text: A code, the beginning of a name, or a part of one.
        limit: How many concepts at most.

    Raises:
        InputError: ``text`` is blank or no text, or ``limit`` is less than 1.
    """
    limit = min(whole_number(limit, "limit", "a search needs room for an answer"), _MOST)
    if not isinstance(text, str):
        raise InputError("the search text is no text", field="text", found=repr(text))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("the search text is no valid Unicode", field="text", found=ascii(text)) from None
    if not text.strip():
        raise InputError(
            "there is nothing to search for", field="text", fix="give a code, the beginning of a name, or a part of one"
        )
    code = pl.lit(text.strip()).str.to_lowercase()
    query = _folded(pl.lit(unicodedata.normalize("NFKC", text.strip())))
    lower = pl.col("lower")
    composed = pl.col("text") if text.isascii() else pl.col("text").str.normalize("NFKC")
    by_name = (
        names.select("concept_row", "text", "is_preferred", lower=_folded(composed))
        .with_row_index("name_row")
        .filter(lower.str.contains(query, literal=True))
        .select(
            "concept_row",
            "text",
            "is_preferred",
            "name_row",
            rank=pl.when(lower.str.strip_chars() == query)
            .then(3)
            .when(lower.str.starts_with(query))
            .then(4)
            .otherwise(5),
        )
        .collect()
    )
    of_concept = ("concept_row", "concept_id", "preferred_name", "status", "replaced_by")
    numbered = concepts.with_row_index("concept_row").select(of_concept)
    referring = cross_references.filter(pl.col("code").str.to_lowercase() == code).select("concept_row").collect()
    refers = pl.col("concept_row").is_in(referring["concept_row"].implode())
    own_code = pl.col("concept_id").str.to_lowercase()
    may_have_it = own_code.str.contains("|", literal=True) & own_code.str.contains(code, literal=True)
    has_it = codes_of_concept_expr().list.eval(pl.element().str.to_lowercase()).list.contains(code)
    by_code = (
        numbered.filter((own_code == code) | may_have_it | refers)
        .with_columns(rank=pl.when(own_code == code).then(0).when(has_it).then(1).when(refers).then(2))
        .drop_nulls("rank")
        .collect()
    )
    found = numbered.filter(pl.col("concept_row").is_in(by_name["concept_row"].unique().implode())).collect()
    hits = by_name.join(found, on="concept_row")
    hits = pl.concat(
        [
            by_code.select(
                *of_concept,
                text="preferred_name",
                is_preferred=pl.lit(True),
                name_row=pl.lit(0, dtype=pl.UInt32),
                rank="rank",
            ),
            hits.select(*of_concept, "text", "is_preferred", "name_row", "rank"),
        ],
        how="vertical_relaxed",
    )
    best = (
        hits.with_columns(
            is_obsolete=pl.col("status") == OBSOLETE,
            is_other=~pl.col("is_preferred"),
            length=pl.col("text").str.len_chars(),
        )
        .sort("rank", "is_obsolete", "is_other", "length", "concept_row", "name_row")
        .unique("concept_row", keep="first", maintain_order=True)
        .head(limit)
    )
    return [
        SearchHit(
            concept_id=row["concept_id"],
            preferred_name=row["preferred_name"],
            matched_name=row["text"],
            matched_by=_MATCHED_BY[row["rank"]],
            status=row["status"],
            replaced_by=row["replaced_by"],
        )
        for row in best.iter_rows(named=True)
    ]
