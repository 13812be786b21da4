"""Columns of codes that are written as one: `onoma.codes` for tables."""

from __future__ import annotations

import polars as pl


def codes_of_concept_expr() -> pl.Expr:
    """The codes by which the concept of column ``concept_id`` is meant, a list each: as `codes_of_concept`."""
    return pl.concat_list("concept_id", _split_expr()).list.unique(maintain_order=True)


def meant_codes_expr(concept_ids: pl.Series) -> pl.Expr:
    """The codes that the label in column ``concept_id`` means, a list each: as `meant_codes`.

    One blank where there is none at all, so exploding loses no row.
    """
    label = pl.col("concept_id").str.strip_chars()
    is_one = label.str.contains("|", literal=True) & label.is_in(concept_ids.unique().implode())
    return pl.when(is_one).then(pl.concat_list(label)).otherwise(_split_expr())


def _split_expr() -> pl.Expr:
    parts = pl.col("concept_id").str.split("|").list.eval(pl.element().str.strip_chars())
    codes = parts.list.eval(pl.element().filter(pl.element() != ""))
    return pl.when(codes.list.len() > 0).then(codes).otherwise(parts).list.unique(maintain_order=True)
