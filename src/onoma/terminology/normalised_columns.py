"""Columns of names to the form in which they are compared: `onoma.terminology.normalisation` for tables.

Python's own Unicode tables decide, for single names and for columns: Polars carries tables of another Unicode version
(50 letters lower-case differently under Python 3.11), and its white space lacks U+001C to U+001F. A column therefore
takes Polars' vectorised functions only for plain strings, which are ASCII throughout and have no white space but single
spaces, where both are the same by definition, and Python for each distinct other one.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from onoma.errors import one_of
from onoma.terminology.normalisation import BRACKET, NOT_OTHERWISE_SPECIFIED, normalise

_NOT_PLAIN = [*"\t\n\v\f\r\x1c\x1d\x1e\x1f", "  "]
"""What a plain string does not contain, besides what is not ASCII."""
_ASCII_PUNCTUATION = r"[!-/:-@\[-`{-~]"


def _strip_plain(column: pl.Expr) -> pl.Expr:
    return column.str.strip_chars(" ")


def _sapbert_plain(column: pl.Expr) -> pl.Expr:
    return _strip_plain(column.str.to_lowercase())


def _collapse_spaces(column: pl.Expr) -> pl.Expr:
    return _strip_plain(column.str.replace_all("  +", " "))


def _loose_plain(column: pl.Expr) -> pl.Expr:
    return _collapse_spaces(column.str.to_lowercase().str.replace_all(_ASCII_PUNCTUATION, " "))


def _coder_plain(column: pl.Expr) -> pl.Expr:
    bare = column.str.to_lowercase().str.replace_all(BRACKET, "").str.replace_all("-", " ", literal=True)
    # Two spaces between words and one around all: each word has spaces of its own, so that no two matches overlap.
    spaced = pl.concat_str(pl.lit(" "), bare.str.replace_all(" ", "  ", literal=True), pl.lit(" "))
    return _collapse_spaces(spaced.str.replace_all(f" {NOT_OTHERWISE_SPECIFIED} ", " ", literal=True))


_PLAIN: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "sapbert": _sapbert_plain,
    "exact": _strip_plain,
    "loose": _loose_plain,
    "biosyn": _loose_plain,  # on ASCII the two are the same
    "coder": _coder_plain,
}
"""What the presets do to plain strings."""


def normalise_expr(column: pl.Expr, preset: str = "sapbert") -> pl.Expr:
    """The same as `normalise` for each string of a column; nulls stay null.

    Args:
        column: An expression of strings.
        preset: One of `NORMALISATION_PRESETS`.

    Raises:
        ConfigError: there is no such preset.

    Example:
        >>> pl.DataFrame({"name": ["Heart  Attack", None]}).select(normalise_expr(pl.col("name")))["name"].to_list()
        ['heart attack', None]
    """
    chosen = one_of(preset, _PLAIN, "normalisation")
    return column.map_batches(
        lambda series: _normalise_series(series, chosen), return_dtype=pl.String, is_elementwise=True
    )


def _normalise_series(series: pl.Series, preset: str) -> pl.Series:
    name = series.name
    is_plain = (series.str.len_bytes() == series.str.len_chars()) & ~series.str.contains_any(_NOT_PLAIN)
    normalised = series.to_frame("text").select(_PLAIN[preset](pl.col("text"))).to_series()
    if is_plain.all():
        return normalised.alias(name)
    rows = (~is_plain).arg_true()
    others = series.gather(rows)
    distinct = others.unique()
    by_python = pl.Series([normalise(text, preset) for text in distinct.to_list()], dtype=pl.String)
    replaced = others.replace_strict(distinct, by_python, return_dtype=pl.String)
    return normalised.scatter(rows, replaced).alias(name)
