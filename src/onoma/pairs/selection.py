"""Which names of a terminology are trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from onoma.errors import one_of
from onoma.terminology import Terminology, normalise_expr
from onoma.terminology.name_rows import checked_name_rows
from onoma.terminology.tables import ACTIVE, of_languages
from onoma.types import BoolArray

Ambiguous: TypeAlias = Literal["keep", "drop", "mark"]
"""What becomes of a text that several concepts carry: nothing, it is left out, or it is marked."""


def training_names(
    terminology: Terminology,
    *,
    normalisation: str = "sapbert",
    languages: Sequence[str] | None = None,
    include_suppressed: bool = False,
    hidden_names: npt.ArrayLike | None = None,
    ambiguous: Ambiguous = "mark",
) -> pl.DataFrame:
    """Distinct (concept, normalised text) of active concepts, without suppressed, hidden and blank names.

    Args:
        terminology: Whose names.
        normalisation: Preset, see `onoma.terminology.normalise`.
        languages: BCP 47 tags; ``en`` takes ``en-GB`` too. Unset: all.
        include_suppressed: Take suppressed names too, as the papers' preparation of the UMLS did.
        hidden_names: Rows of its table of names to leave out.
        ambiguous: ``keep`` homonyms as they are (the papers), ``drop`` every name whose text another concept
            has too, or ``mark`` them, which is done when they are tokenised (`onoma.pairs.labelled_names`).

    Returns:
        By concept: ``concept_row`` (Int32), ``name_row`` (Int32: of several names with one normalised text,
        the first) and ``text`` (normalised).

    Raises:
        InputError: a hidden name does not exist.
        ConfigError: ``ambiguous`` is none of the three.
    """
    check_ambiguous(ambiguous)
    kept = usable_names(terminology, languages=languages, include_suppressed=include_suppressed)
    kept[checked_name_rows(hidden_names, len(kept))] = False
    table = _distinct(normalised_names(terminology, kept, normalisation))
    return treat_ambiguous(table, ambiguous)


def _distinct(table: pl.DataFrame) -> pl.DataFrame:
    """The first of the rows of each (``concept_row``, ``text``); the table is sorted by ``concept_row``.

    Within their concept rows are brought together by half a hash of the text, a stable sort of almost sorted keys: a
    third of the time of a hash table of all strings.
    """
    concept_rows = table["concept_row"].to_numpy().astype(np.uint64)
    keys = (concept_rows << np.uint64(32)) | (table["text"].hash().to_numpy() >> np.uint64(32))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    repeats = np.flatnonzero(ordered[1:] == ordered[:-1])
    texts = table["text"]
    if not (texts.gather(order[repeats]) == texts.gather(order[repeats + 1])).all():  # two texts with one half hash
        return table.unique(["concept_row", "text"], keep="first", maintain_order=True)
    is_first = np.ones(len(table), np.bool_)
    is_first[order[repeats + 1]] = False
    return table.filter(pl.Series(is_first))


def check_ambiguous(ambiguous: str) -> None:
    """Raise `ConfigError` for what is no `Ambiguous`, before any work is done."""
    one_of(ambiguous, get_args(Ambiguous), "treatment of ambiguous names")


def treat_ambiguous(table: pl.DataFrame, ambiguous: Ambiguous) -> pl.DataFrame:
    """With ``drop`` leave out each ``text`` that stands in several rows, one for each class that has it."""
    return table.filter(pl.len().over("text") == 1) if ambiguous == "drop" else table


def usable_names(
    terminology: Terminology, *, languages: Sequence[str] | None = None, include_suppressed: bool = False
) -> BoolArray:
    """Which names belong to an active concept, are not suppressed and of one of the languages, shape (n_names,)."""
    is_active = terminology.concepts().select(pl.col("status") == ACTIVE).collect().to_series().to_numpy()
    is_wanted = pl.lit(True) if include_suppressed else ~pl.col("is_suppressed")
    table = terminology.names().select("concept_row", wanted=is_wanted & of_languages(languages)).collect()
    wanted: BoolArray = table["wanted"].to_numpy() & is_active[table["concept_row"].to_numpy()]
    return wanted


def normalised_names(terminology: Terminology, kept: BoolArray, normalisation: str) -> pl.DataFrame:
    """``concept_row``, ``name_row`` (Int32) and normalised ``text`` of the kept names that are not blank."""
    return (
        terminology.names()
        .select(pl.col("concept_row").cast(pl.Int32), "text")
        .with_columns(name_row=pl.int_range(pl.len(), dtype=pl.Int32))
        .filter(pl.lit(pl.Series(kept)))
        .select("concept_row", "name_row", text=normalise_expr(pl.col("text"), normalisation))
        .filter(pl.col("text") != "")
        .collect()
    )


def rows_fingerprint(rows: npt.ArrayLike | None) -> str | None:
    """SHA-256 over a set of rows, whatever its order; None for none."""
    distinct = np.unique(np.asarray([] if rows is None else rows))
    return hashlib.sha256(distinct.astype("<i8").tobytes()).hexdigest() if distinct.size else None
