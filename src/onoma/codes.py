"""Codes that are written as one: ``D001|D002`` of an annotation, or of a concept that two vocabularies share.

A user's own code may have a ``|`` as well (``K|1171``). So a label that is the code of a concept as it stands means
that concept; only others are several codes.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

import polars as pl


def split_codes(codes: str) -> list[str]:
    """Each code once, in the order they are written; blank ones are none."""
    return list(dict.fromkeys(code for part in codes.split("|") if (code := part.strip())))


def codes_of_concept(concept_id: str) -> set[str]:
    """By which a concept is meant: its own, and, of ``a|b``, each of the two."""
    return {concept_id, *split_codes(concept_id)}


def meant_codes(label: str, concept_ids: Container[str]) -> list[str]:
    """The codes that a label means.

    Args:
        label: Of an annotated mention.
        concept_ids: Of all concepts.

    Example:
        >>> meant_codes("D001|D002", {"D001", "D002"}), meant_codes("K|1171", {"K|1171", "K|1172"})
        (['D001', 'D002'], ['K|1171'])
    """
    return [label.strip()] if "|" in label and label.strip() in concept_ids else split_codes(label)


def digits_of(code: str) -> str:
    """The digits of a code in their order of size, without zeros.

    A misspelt code has those of the one that is meant; one with other digits is that of another concept.
    """
    return "".join(sorted(re.sub("[^1-9]", "", code)))


def zeros_lost(codes: Iterable[str], concept_ids: Iterable[str]) -> dict[str, str]:
    """Codes that are those of concepts but for zeros at the front, which spreadsheets lose, and these.

    Example:
        >>> zeros_lost(["1013750", "77"], ["01013750", "88"])
        {'1013750': '01013750'}
    """
    numbers = {code for code in codes if code.isdecimal() and not code.startswith("0")}
    if not numbers:
        return {}
    whole: dict[str, str | None] = {}
    for one in concept_ids:
        if one.startswith("0") and one.isdecimal():
            short = one.lstrip("0")
            whole[short] = None if short in whole else one  # of two there is no telling which was meant
    found = {code: whole.get(code) for code in sorted(numbers)}
    return {code: one for code, one in found.items() if one is not None}


def zeros_lost_in_words(lost: Mapping[str, str]) -> str:
    """What is to be said of codes that `zeros_lost` found, at least one."""
    code, whole = next(iter(lost.items()))
    return f"{len(lost):,} of their codes lost zeros at the front, as in spreadsheets: {code} is {whole} in the linker"


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
