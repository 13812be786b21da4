"""Development data: queries whose answers are known, to be found in a dictionary while an encoder is trained.

They come from synonyms that are hidden from training (`hidden_synonyms`), or from a file of annotated mentions over the
names of a terminology (`read_development`). `onoma.training.measuring` asks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from onoma.errors import InputError
from onoma.pairs import HeldOut, read_mentions
from onoma.pairs.mentions import COMPOSITE
from onoma.pairs.selection import checked_rows, usable_names
from onoma.terminology import Terminology
from onoma.terminology.reading import Reading
from onoma.types import RowArray

HIDDEN = "hidden synonyms"
"""Name of the development set that is made of them."""


@dataclass(frozen=True, slots=True, eq=False)
class DevelopmentSet:
    """Queries with known answers, over a dictionary.

    Texts are as people wrote them; they go through the normalisation of the recipe.
    """

    name: str
    """How to call it in logs and reports."""
    queries: pl.DataFrame
    """Columns ``mention`` and ``concept_id`` (String), a row for each query; ``|`` divides several right codes."""
    dictionary: pl.DataFrame
    """Columns ``text`` and ``concept_id`` (String), a row for each name, in the order that decides between equal
    scores. ``a|b`` is one concept that goes by both codes."""


def hidden_synonyms(
    terminology: Terminology,
    held_out: HeldOut,
    *,
    languages: Sequence[str] | None = None,
    hidden_names: npt.ArrayLike | None = None,
) -> DevelopmentSet:
    """Hidden synonyms as queries over all other names of their terminology.

    Args:
        terminology: Whose synonyms were hidden.
        held_out: From `onoma.pairs.hold_out_synonyms`.
        languages: BCP 47 tags of the names to choose from. Unset: all.
        hidden_names: Rows of names that are to be left out besides these.
    """
    hidden = np.union1d(held_out.name_rows, checked_rows(hidden_names, terminology.n_names))
    return DevelopmentSet(
        name=HIDDEN,
        queries=pl.DataFrame({"mention": held_out.texts, "concept_id": held_out.concept_ids}),
        dictionary=_dictionary(terminology, languages, hidden),
    )


def read_development(
    file: str | Path,
    terminology: Terminology,
    *,
    languages: Sequence[str] | None = None,
    hidden_names: npt.ArrayLike | None = None,
    tell: Callable[[str], None] | None = None,
) -> DevelopmentSet:
    """The queries of a file, over the names of a terminology.

    Args:
        file: A table (``.csv``, ``.tsv``, ``.parquet``) with the columns ``mention`` and ``concept_id``, or lines
            ``id(s)||mention`` as BioSyn has them; several codes are divided by ``|``. Composite mentions are left out.
        terminology: Whose active concepts may be answers, by their names that are not suppressed.
        languages: BCP 47 tags of the names to choose from. Unset: all.
        hidden_names: Rows of names to leave out, as if the terminology did not have them.
        tell: Called with a sentence on composite mentions, and on queries that have no answer in the terminology; such
            queries count as wrong.

    Raises:
        InputError: the file is not readable, a line is bad (file, line and field are named), or the terminology has the
            answer to none of the queries.
    """
    path = Path(file)
    reading = Reading("strict")
    try:
        queries = read_mentions(path, reading)
    except InputError as error:
        if "on_error" not in (error.fix or ""):
            raise
        # The advice is to skip bad lines; a score must not come to be that of fewer queries.
        raise InputError(
            error.problem,
            path=error.path,
            line=error.line,
            field=error.field,
            expected=error.expected,
            found=error.found,
            fix="mend the line",
        ) from None
    if queries.is_empty():
        raise InputError("the file has no queries", path=path, expected="a line for each mention, with its concept")
    dictionary = _dictionary(terminology, languages, checked_rows(hidden_names, terminology.n_names))
    known = set(dictionary.select(codes().alias("code")).explode("code")["code"])
    answers = queries.select(codes().alias("codes"))["codes"]
    without = [row for row, codes in enumerate(answers) if known.isdisjoint(codes)]
    if len(without) == len(queries):
        raise InputError(
            f"the terminology {terminology.path} has the concept of none of the {len(queries):,} queries",
            path=path,
            field="concept_id",
            expected=f"codes like {dictionary['concept_id'][0]}" if len(dictionary) else "a terminology with names",
            found=str(queries["concept_id"][0]),
            fix="give the terminology that the mentions were annotated with",
        )
    if tell is not None and without:
        tell(
            f"{path.name}: {len(without):,} of {len(queries):,} queries mean a concept that the terminology does not "
            f"have ({queries['concept_id'][without[0]]}); they count as wrong"
        )
    if tell is not None and COMPOSITE in reading.notes:
        tell(f"{path.name}: {reading.notes[COMPOSITE]:,} {COMPOSITE}")
    return DevelopmentSet(name=path.name, queries=queries, dictionary=dictionary)


def _dictionary(terminology: Terminology, languages: Sequence[str] | None, hidden: RowArray) -> pl.DataFrame:
    """Names of active concepts that are not suppressed, of these languages, without the hidden ones."""
    kept = usable_names(terminology.concepts(), terminology.names(), languages=languages)
    kept[hidden] = False
    names = terminology.names().select("concept_row", "text").filter(pl.lit(pl.Series(kept))).collect()
    concept_ids = terminology.concepts().select("concept_id").collect()["concept_id"]
    return names.select("text", concept_id=concept_ids.gather(names["concept_row"]))


def codes() -> pl.Expr:
    """The codes of a concept, or of the concepts that answer a query."""
    return pl.col("concept_id").str.split("|").list.eval(pl.element().str.strip_chars())
