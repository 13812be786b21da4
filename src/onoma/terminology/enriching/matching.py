"""Which concepts of another terminology match your own.

Evidence is searched for in this order, until something decides:

========  ====================================================================================================
``name``  They share a name, ignoring case and punctuation (preset "loose").
``words`` They share a name, also ignoring word order, number, British spelling and small words
          (`onoma.terminology.enriching.lexical_keys`): "Lower limb pains" is "Pain in lower limb". Only for
          English names, and those without a stated language.
``code``  A cross-reference of one ("exactMatch", or of no stated kind) leads to the other, or both have the
          same code in the same vocabulary. A code that only one concept has by "exactMatch" counts as its own.
========  ====================================================================================================

A shared name decides only if just one concept has it on either side, in whatever language, and a cross-reference only
if just one concept has it. A synonym that its ontology calls broad, narrow or related decides nothing. If a shared code
or an "exactMatch" says which concept is which, names and other references that say otherwise do not count (if codes are
compared). Names in different languages never match, but "en-GB" is "en", and a name without a stated language ("und")
may be in any. Short forms ("MCL", "SCA8") decide nothing, because one stands for many things. If several own concepts
match, the one that has the other's preferred name does, or else none. Retired concepts and suppressed names are
ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import polars as pl

from onoma.errors import ConfigError, check_several, one_of
from onoma.terminology.code_keys import code_keys
from onoma.terminology.enriching.lexical_keys import SMALL_WORDS, lexical_keys
from onoma.terminology.normalised_columns import normalise_expr
from onoma.terminology.tables import ACTIVE, OTHER_SCOPE
from onoma.terminology.terminology import Terminology

Evidence: TypeAlias = Literal["name", "words", "code"]
"""What says that two concepts are one; see the module's table."""
EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)

UNDETERMINED = "und"
KEY, LEXICAL_KEY = "key", "lexical_key"
"""Columns that names are compared by. What is equal by the first is not always so by the second: rules of English are
for English names, and "Crohn's" has a genitive where "Crohn s" has none."""
_LEXICAL_LANGUAGES = ("en", UNDETERMINED)
_EXACT = "exactMatch"
_SAME = (_EXACT, "xref")
"""Cross-references by which a code is believed to mean the same."""
_OF_A_VOCABULARY = r"^[A-Z][A-Z0-9_.\-]*:"
_SMALL = rf"(?i)\b(?:{'|'.join(SMALL_WORDS)})\b"
_SHORT_FORM = r"^(?:\S*\p{Lu}\S*\p{Lu}\S*|\S*\d\S*)$"
"""One word with two capitals or a digit."""
_LONGEST_SHORT_FORM = 6
"""Characters."""
_IS_ALONE = pl.col("concept_row").n_unique().over("code", "is_reference") == 1
"""Whether one concept alone refers to a code."""


@dataclass(frozen=True)
class Compared:
    """A terminology as it is compared.

    Attributes:
        names: Names in use of active concepts: columns of the table of names, ``primary``, the first part of the
            language, ``is_same``, whether it means just the concept, `KEY` and `LEXICAL_KEY`.
        keys: `KEY` of all names of active concepts, in use or not.
        codes: Of active concepts with a name in use: ``concept_row``, ``code`` as `code_keys` makes it,
            ``is_reference``, whether it is a cross-reference or the concept's own, as is one that no other concept has
            by an "exactMatch", and ``is_exact``, whether it is said to mean just the same.
    """

    names: pl.DataFrame
    keys: pl.DataFrame
    codes: pl.DataFrame

    @classmethod
    def of(cls, terminology: Terminology, vocabulary: str | None) -> Compared:
        """Read a terminology, whose codes without a prefix are of this vocabulary."""
        names = _names(terminology)
        in_use = names.filter(~pl.col("is_suppressed"))
        own = terminology.concepts().select(code="concept_id").with_row_index("concept_row").collect()
        references = (
            terminology.cross_references()
            .filter(pl.col("relation").is_in(_SAME))
            .group_by("concept_row", "code")
            .agg(is_exact=(pl.col("relation") == _EXACT).any())
            .collect()
        )
        codes = pl.concat(
            [
                own.select(
                    pl.col("concept_row").cast(pl.UInt32),
                    code_keys(own["code"], vocabulary).alias("code"),
                    is_reference=pl.lit(False),
                    is_exact=pl.lit(True),
                ),
                references.select(
                    "concept_row",
                    code_keys(references["code"]).alias("code"),
                    is_reference=pl.lit(True),
                    is_exact="is_exact",
                ),
            ]
        )
        codes = codes.filter(pl.col("code").str.contains(_OF_A_VOCABULARY)).join(in_use, on="concept_row", how="semi")
        is_own = pl.col("is_exact") & (pl.col("concept_row").n_unique().over("code", "is_exact") == 1)
        codes = codes.with_columns(pl.col("is_reference") & ~is_own)
        return cls(in_use, names.select(KEY), codes)


@dataclass(frozen=True)
class Matches:
    """Which concepts are one.

    Attributes:
        pairs: ``own_row``, ``concept_row`` of the other terminology, each of these once, and ``evidence``.
        ambiguous: The same of concepts of the other terminology that stand for several own ones.
        n_shared: Concepts of the other terminology that are none, but would be by a cross-reference to one code if it
            were not that of several concepts.
    """

    pairs: pl.DataFrame
    ambiguous: pl.DataFrame
    n_shared: int

    @property
    def n_ambiguous(self) -> int:
        """Concepts of the other terminology that stand for several own ones."""
        return self.ambiguous["concept_row"].n_unique()


def match_concepts(own: Compared, other: Compared, by: Sequence[Evidence] = EVIDENCE) -> Matches:
    """Find the concepts that are one; the module says how.

    Args:
        own: One's own terminology.
        other: Another one.
        by: What is asked; see `checked_evidence`.
    """
    said = pl.DataFrame(schema=_PAIRS)
    exact = _same_codes(*(side.codes.filter("is_exact") for side in (own, other))) if "code" in by else said
    for kind in by:
        if kind == "code":
            any_reference = _same_codes(own.codes, other.codes)
            pairs = pl.concat([exact.select(any_reference.columns), any_reference]).unique()
        else:
            pairs = _shared(own.names, other.names, KEY if kind == "name" else LEXICAL_KEY)
        pairs = _not_against(exact, pairs).with_columns(evidence=pl.lit(kind)).select(_PAIRS.names())
        said = pl.concat([said, pairs.join(said, on="concept_row", how="anti")])
    is_ambiguous = pl.col("own_row").n_unique().over("concept_row") > 1
    clear = said.filter(~is_ambiguous | pl.col("is_preferred")).filter(~is_ambiguous)
    shared = _shared_references(own.codes, other.codes) if "code" in by else said
    columns = ("own_row", "concept_row", "evidence")
    return Matches(
        clear.select(columns),
        said.join(clear, on="concept_row", how="anti").select(columns),
        n_shared=shared.join(said, on="concept_row", how="anti")["concept_row"].n_unique(),
    )


def _not_against(exact: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs but those of a concept that by its codes is another."""
    agreed = pairs.join(exact, on=["own_row", "concept_row"], how="semi")
    free = pairs
    for column in ("own_row", "concept_row"):
        free = free.join(exact, on=column, how="anti")
    return pl.concat([agreed, free])


_PAIRS = pl.Schema(
    {"own_row": pl.UInt32(), "concept_row": pl.UInt32(), "is_preferred": pl.Boolean(), "evidence": pl.String()}
)
"""Of own and other concepts; whether it is by the other's preferred name."""


def checked_evidence(by: Iterable[str]) -> tuple[Evidence, ...]:
    """The same in the order in which it is asked.

    Raises:
        ConfigError: there is nothing, or what is not in `EVIDENCE`.
        InputError: it is one string.
    """
    check_several(by, "by")
    by = tuple(by)
    for word in by:
        one_of(word, EVIDENCE, "evidence")
    if not by:
        raise ConfigError(f"concepts are matched by something: {', '.join(EVIDENCE)}.")
    return tuple(kind for kind in EVIDENCE if kind in by)


def _shared(own: pl.DataFrame, other: pl.DataFrame, level: str) -> pl.DataFrame:
    """Pairs that share a name which decides."""
    return (
        _deciding(own, level)
        .select(level, own_row="concept_row", own_language="primary")
        .join(_deciding(other, level).select(level, "concept_row", "primary", "is_preferred"), on=level)
        .filter(
            (pl.col("primary") == pl.col("own_language"))
            | (pl.col("primary") == UNDETERMINED)
            | (pl.col("own_language") == UNDETERMINED)
        )
        .group_by("own_row", "concept_row")
        .agg(pl.col("is_preferred").any())
    )


def _deciding(names: pl.DataFrame, level: str) -> pl.DataFrame:
    """Names that one concept alone has for itself and nobody writes as a short form, compared by the column ``level``.

    "oedema" in German and in English is one name by `KEY`, two by `LEXICAL_KEY`; if two concepts have it, it decides by
    neither.
    """
    names = names.filter("is_same")
    text = pl.col("text").str.replace_all(_SMALL, "").str.strip_chars(" ,;:()[]")
    is_short_form = (text.str.len_chars() <= _LONGEST_SHORT_FORM) & text.str.contains(_SHORT_FORM)
    has_one_concept = [pl.col("concept_row").n_unique().over(by) == 1 for by in {KEY, level}]
    return names.filter(*has_one_concept, ~is_short_form.any().over(level))


def _same_codes(own: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Pairs of which one has the code of the other, or is the only one that refers to it."""
    is_reference = pl.col("is_reference")
    mine, theirs = (codes.filter(~is_reference | _IS_ALONE) for codes in (own, other))
    found = [
        mine.filter(~is_reference).join(theirs, on="code"),
        mine.filter(is_reference).join(theirs.filter(~is_reference), on="code"),
    ]
    return (
        pl.concat(found)
        .select(own_row="concept_row", concept_row="concept_row_right", is_preferred=pl.lit(False))
        .unique()
    )


def _shared_references(own: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """``concept_row`` of the other's concepts that `_same_codes` leaves out, as several refer to one code."""
    is_shared = pl.col("is_reference") & ~_IS_ALONE
    found = [
        other.filter(is_shared).join(own.filter(~pl.col("is_reference")), on="code", how="semi"),
        other.filter(~pl.col("is_reference")).join(own.filter(is_shared), on="code", how="semi"),
    ]
    return pl.concat(found).select("concept_row")


def _names(terminology: Terminology) -> pl.DataFrame:
    """Names of active concepts that are not blank, with what they are compared by."""
    active = (
        terminology.concepts()
        .select("status")
        .with_row_index("concept_row")
        .filter(pl.col("status") == ACTIVE)
        .select(pl.col("concept_row").cast(pl.UInt32))
    )
    names = (
        terminology.names()
        .join(active, on="concept_row", how="semi", maintain_order="left")
        .with_columns(
            normalise_expr(pl.col("text"), "loose").alias(KEY),
            primary=pl.col("language").str.to_lowercase().str.split("-").list.first(),
            is_same=~pl.col("term_type").str.contains(OTHER_SCOPE),
        )
        .filter(pl.col(KEY) != "")
        .collect()
    )
    lexical = pl.when(pl.col("primary").is_in(_LEXICAL_LANGUAGES)).then(LEXICAL_KEY).otherwise(KEY)
    return names.with_columns(lexical_keys(names["text"]).alias(LEXICAL_KEY)).with_columns(lexical.alias(LEXICAL_KEY))
