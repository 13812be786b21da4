"""Names to the form in which they are compared: the one place where that is decided.

Training names, dictionary and queries must go through the same preset, or a name does not find itself.

========  =====================================================================================================
preset    what it does
========  =====================================================================================================
sapbert   lower case, white space collapsed to single spaces and stripped; what SapBERT's data were prepared with
exact     outer white space stripped, nothing else
loose     Unicode NFKC, case folded, punctuation and symbols to spaces, white space collapsed and stripped
========  =====================================================================================================

White space is what `str.isspace` says; punctuation and symbols are the Unicode categories P* and S*. Every preset is
idempotent: a normalised name normalises to itself.

Python's own Unicode tables decide, for single names and for columns: Polars carries tables of another Unicode version
(50 letters lower-case differently under Python 3.11), and its white space lacks U+001C to U+001F. A column therefore
takes Polars' vectorised functions only for strings that are ASCII throughout, where both are the same by definition,
and Python for each distinct other one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from onoma.errors import ConfigError, did_you_mean

_ASCII_SPACE = r"[\x09-\x0d\x1c-\x20]"


class _PunctuationToSpace(dict[int, int]):
    """Translation table filled as characters turn up: categories P* and S* to a space."""

    def __missing__(self, code_point: int) -> int:
        is_punctuation = unicodedata.category(chr(code_point))[0] in "PS"
        self[code_point] = 0x20 if is_punctuation else code_point
        return self[code_point]


_PUNCTUATION_TO_SPACE = _PunctuationToSpace()


def _collapse(text: str) -> str:
    return " ".join(text.split())


def _sapbert(text: str) -> str:
    return _collapse(text.lower())


def _exact(text: str) -> str:
    return text.strip()


def _loose(text: str) -> str:
    # Folding case can undo normal form and the other way round, hence until nothing changes (at most a few times).
    while (folded := unicodedata.normalize("NFKC", text).casefold()) != text:
        text = folded
    return _collapse(text.translate(_PUNCTUATION_TO_SPACE))


def _collapse_ascii(column: pl.Expr) -> pl.Expr:
    return column.str.replace_all(_ASCII_SPACE + "+", " ").str.strip_chars(" ")


def _sapbert_ascii(column: pl.Expr) -> pl.Expr:
    return _collapse_ascii(column.str.to_lowercase())


def _exact_ascii(column: pl.Expr) -> pl.Expr:
    return column.str.replace(f"^{_ASCII_SPACE}+", "").str.replace(_ASCII_SPACE + r"+\z", "")


def _loose_ascii(column: pl.Expr) -> pl.Expr:
    return _collapse_ascii(column.str.to_lowercase().str.replace_all(r"[!-/:-@\[-`{-~]", " "))


@dataclass(frozen=True)
class _Preset:
    text: Callable[[str], str]
    ascii_column: Callable[[pl.Expr], pl.Expr]


_PRESETS = {
    "sapbert": _Preset(_sapbert, _sapbert_ascii),
    "exact": _Preset(_exact, _exact_ascii),
    "loose": _Preset(_loose, _loose_ascii),
}

NORMALISATION_PRESETS = tuple(_PRESETS)
"""Names of the presets."""


def normalise(text: str, preset: str = "sapbert") -> str:
    r"""A name in the form in which it is compared.

    Args:
        text: Any string.
        preset: One of `NORMALISATION_PRESETS`; see the module's table.

    Raises:
        ConfigError: there is no such preset.

    Source:
        "sapbert": Liu et al. 2021, appendix on data preparation (lower-cased names).

    Example:
        >>> normalise("  Type 2\tDiabetes "), normalise("β-Thalassämie, (minor)", "loose")
        ('type 2 diabetes', 'β thalassämie minor')
    """
    return _preset(preset).text(text)


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
    chosen = _preset(preset)
    return column.map_batches(lambda series: _normalise_series(series, chosen), return_dtype=pl.String)


def _normalise_series(series: pl.Series, preset: _Preset) -> pl.Series:
    is_ascii = series.str.len_bytes() == series.str.len_chars()
    name = series.name
    normalised = series.to_frame("text").select(preset.ascii_column(pl.col("text"))).to_series()
    if is_ascii.all():
        return normalised.alias(name)
    others = series.filter(~is_ascii).unique()
    by_python = pl.Series([preset.text(text) for text in others.to_list()], dtype=pl.String)
    replaced = (
        pl.DataFrame({"text": series.set(is_ascii, None)})
        .join(pl.DataFrame({"text": others, "normalised": by_python}), on="text", how="left", maintain_order="left")
        .to_series(1)
    )
    return replaced.zip_with(~is_ascii.fill_null(True), normalised).alias(name)


def _preset(name: str) -> _Preset:
    if name not in _PRESETS:
        raise ConfigError(
            f"There is no normalisation '{name}'.{did_you_mean(name, _PRESETS)} Known: {', '.join(_PRESETS)}."
        )
    return _PRESETS[name]
