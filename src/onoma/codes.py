"""Codes that are written as one: ``D001|D002`` of an annotation, or of a concept that two vocabularies share."""

from __future__ import annotations

import polars as pl


def split_codes(codes: str) -> list[str]:
    """Each code once, in the order they are written; blank ones are none."""
    return list(dict.fromkeys(code for part in codes.split("|") if (code := part.strip())))


def split_codes_expr() -> pl.Expr:
    """The codes of column ``concept_id``, a list each: as `split_codes`, but one blank where there is none at all.

    So exploding loses no row.
    """
    parts = pl.col("concept_id").str.split("|").list.eval(pl.element().str.strip_chars())
    codes = parts.list.eval(pl.element().filter(pl.element() != ""))
    return pl.when(codes.list.len() > 0).then(codes).otherwise(parts).list.unique(maintain_order=True)
