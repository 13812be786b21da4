"""Synonyms of other terminologies for the concepts of one's own.

A list of local codes often has one name for each, and people call things otherwise. Where a concept of another
terminology has a name of one's own concept, its other names are added to that concept. Nothing else changes: no
concept, code, relation or definition is added, and preferred names stay.

What says that a concept of another terminology is one of one's own is asked in this order, until something does:

========  ====================================================================================================
``name``  They share a name, case and punctuation set aside (preset "loose").
``words`` They share an English name, words' order, number, British spelling and small words set aside too
          (`onoma.terminology.lexical`): "Lower limb pains" is "Pain in lower limb".
``code``  A cross-reference of the one ("exactMatch", or of no stated kind) leads to the other, or both have one
          code of one vocabulary.
========  ====================================================================================================

A shared name decides only if one concept alone has it on either side, in whatever language. A name of one language is
none of another, but "en-GB" is "en", and a name whose language nobody said ("und") may be of any. Short forms ("MCL",
"SCA8") decide nothing, as one stands for many things. Left out:

* concepts of the other terminology that stand for several of one's own, unless one alone has the preferred name;
* names that one's own terminology has already, for this concept or another;
* names that would come to several concepts. Of two terminologies the first decides where a name belongs.

A concept may be matched by several of another terminology, as by its names it is both. Names that were added match
nothing further. Retired concepts and suppressed names play no part.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import polars as pl

from onoma.artifacts import ensure_writable
from onoma.errors import ConfigError, InputError, did_you_mean
from onoma.terminology.lexical import lexical_key_expr
from onoma.terminology.merging import check_places, folder_name
from onoma.terminology.normalisation import normalise_expr
from onoma.terminology.reading import Progress, no_progress
from onoma.terminology.tables import ACTIVE, KIND, NAMES, TerminologyTables, of_languages, write_terminology
from onoma.terminology.terminology import Terminology
from onoma.terminology.vocabularies import code_keys, vocabulary_of

Evidence: TypeAlias = Literal["name", "words", "code"]
"""What says that two concepts are one; see the module's table."""
EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)

_UNDETERMINED = "und"
_LEXICAL_LANGUAGES = ("en", _UNDETERMINED)
_SAME = ("exactMatch", "xref")
"""Cross-references by which a code is believed to mean the same."""
_KEY, _LEXICAL_KEY = "key", "lexical_key"
"""Columns that names are compared by; what is equal by the first is so by the second."""
_KEYS: dict[Evidence, str] = {"name": _KEY, "words": _LEXICAL_KEY, "code": "code"}
_SHORT_FORM = r"^(?:\S*\p{Lu}\S*\p{Lu}\S*|\S*\d\S*)$"
"""One word with two capitals or a digit."""
_LONGEST_SHORT_FORM = 6
"""Characters."""


@dataclass(frozen=True)
class EnrichingPart:
    """What one terminology gave.

    Attributes:
        path: Its folder.
        n_matched: Own concepts that one of its concepts stands for.
        n_matched_by: As many as each kind of evidence says first, in the order of `EVIDENCE`.
        n_ambiguous: Its concepts that stand for several own ones, and gave nothing.
        n_added: Names added from it.
    """

    path: Path
    n_matched: int
    n_matched_by: dict[Evidence, int]
    n_ambiguous: int
    n_added: int


@dataclass(frozen=True)
class EnrichReport:
    """What was added; ``str()`` is a text for a person.

    Attributes:
        path: Where the enriched terminology lies.
        parts: The terminologies that gave names, in their order.
        n_concepts: Own concepts, as many as before.
        n_enriched: Of them those that got a name.
        n_names: Names, as they are now.
        n_added: Of them new.
        n_contested: Names that were not added, as they would have come to several concepts.
        seconds: Wall time.
    """

    path: Path
    parts: tuple[EnrichingPart, ...]
    n_concepts: int
    n_enriched: int
    n_names: int
    n_added: int
    n_contested: int
    seconds: float

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {self.n_concepts:,} concepts, {self.n_names:,} names, {self.n_added:,} of them new, for "
            f"{self.n_enriched:,} concepts, in {self.seconds:.1f} s"
        ]
        for part in self.parts:
            by = ", ".join(f"{n:,} by {evidence}" for evidence, n in part.n_matched_by.items() if n)
            ambiguous = f"; {part.n_ambiguous:,} of its concepts match several, left out" if part.n_ambiguous else ""
            lines.append(
                f"  {part.path}: has {part.n_matched:,} of the concepts{f' ({by})' if by else ''}; "
                f"{part.n_added:,} names added{ambiguous}"
            )
        if self.n_contested:
            lines.append(f"  names that would have come to several concepts, not added: {self.n_contested:,}")
        if not self.n_added:
            lines.append(
                "  warning: nothing was added; see that names and languages are those of the other terminology"
            )
        return "\n".join(lines)


def enrich_terminology(
    folder: str | Path,
    others: Sequence[str | Path],
    out: str | Path,
    *,
    by: Sequence[str] = EVIDENCE,
    languages: Sequence[str] | None = None,
    vocabulary: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> EnrichReport:
    """Write a terminology with the synonyms that others have for its concepts; the module says which.

    Args:
        folder: One's own terminology.
        others: Folders of terminologies that give names; of names that say the same the first one's are added.
        out: Where the enriched folder shall lie. It appears whole or not at all.
        by: What may say that two concepts are one, some of `EVIDENCE`.
        languages: BCP 47 tags of the names to add; ``en`` takes ``en-GB`` too, and names whose language nobody said are
            always taken. Unset: all.
        vocabulary: Of which vocabulary one's own codes are that have no prefix, e.g. "SNOMEDCT", so that
            cross-references find them. Unset: as the format that they were imported from says, if it does
            (`onoma.terminology.vocabularies`).
        overwrite: Replace a terminology at ``out``.
        progress: Called with (terminologies done, terminologies in all, what is done).

    Raises:
        InputError: there is no other terminology, a folder is given twice, ``out`` lies in one of them, or none of them
            has a name of a wished language.
        ConfigError: ``by`` names nothing, or what is not in `EVIDENCE`.
        ArtifactError: a folder is no whole terminology, or ``out`` is taken.
    """
    started = time.perf_counter()
    tell = progress or no_progress
    paths = [Path(folder), *(Path(other) for other in others)]
    if len(paths) == 1:
        raise InputError("there is no terminology to take names from", expected="terminology folders")
    evidence = _checked_evidence(by)
    check_places(paths, Path(out))
    ensure_writable(out, KIND, overwrite=overwrite)
    own, *givers = (Terminology.open(path) for path in paths)
    known = _names(own)
    own_vocabulary = vocabulary or vocabulary_of(own.manifest.config)
    _check_languages(languages or (), givers)
    found = []
    for number, giver in enumerate(givers):
        tell(number, len(givers), f"comparing with {folder_name(giver.path)}")
        theirs = _names(giver)
        pairs = [
            _same_codes(own, own_vocabulary, known, giver, theirs) if kind == "code" else _shared(known, theirs, key)
            for kind, key in _KEYS.items()
            if kind in evidence
        ]
        found.append(_Offer.of(theirs, known, pairs, languages))
    offered = pl.concat([offer.names.with_columns(part=pl.lit(part)) for part, offer in enumerate(found)])
    offered = offered.filter(pl.col("part") == pl.col("part").min().over(_LEXICAL_KEY))
    is_contested = pl.col("concept_row").n_unique().over(_LEXICAL_KEY) > 1
    n_contested = offered.filter(is_contested)["key"].n_unique()
    added = offered.filter(~is_contested).unique("key", keep="first", maintain_order=True)
    names = _with_names(own, added)
    tables = TerminologyTables(
        concepts=own.concepts().collect(),
        names=names,
        relations=own.relations().collect(),
        definitions=own.definitions().collect(),
        cross_references=own.cross_references().collect(),
    )
    tell(len(givers), len(givers), "writing")
    write_terminology(
        out,
        tables,
        config={
            "enriched": folder_name(own.path),
            "by": [folder_name(giver.path) for giver in givers],
            "evidence": list(evidence),
            "languages": None if languages is None else list(languages),
            "vocabulary": own_vocabulary,
        },
        parents=[terminology.manifest.as_parent() for terminology in (own, *givers)],
        overwrite=overwrite,
    )
    return EnrichReport(
        path=Path(out),
        parts=tuple(
            EnrichingPart(
                path=giver.path,
                n_matched=offer.n_matched,
                n_matched_by=dict(zip(evidence, offer.n_matched_by, strict=True)),
                n_ambiguous=offer.n_ambiguous,
                n_added=len(added.filter(pl.col("part") == part)),
            )
            for part, (giver, offer) in enumerate(zip(givers, found, strict=True))
        ),
        n_concepts=len(tables.concepts),
        n_enriched=added["concept_row"].n_unique(),
        n_names=len(names),
        n_added=len(added),
        n_contested=n_contested,
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True)
class _Offer:
    """What a terminology has for one's own concepts."""

    names: pl.DataFrame
    """Columns of `NAMES` and those of `_names`; ``concept_row`` is one's own."""
    n_matched: int
    n_matched_by: list[int]
    n_ambiguous: int

    @classmethod
    def of(
        cls,
        theirs: pl.DataFrame,
        known: pl.DataFrame,
        evidence: Sequence[pl.DataFrame],
        languages: Sequence[str] | None,
    ) -> _Offer:
        """Names of these languages that concepts which stand for one of ``known`` have and ``known`` has not.

        Args:
            theirs: As `_names` gives them.
            known: Likewise, of one's own terminology.
            evidence: Pairs of own and other concepts, as `_shared` gives them, the surest kind first.
            languages: See `enrich_terminology`.
        """
        numbered = pl.concat([pairs.with_columns(evidence=pl.lit(kind)) for kind, pairs in enumerate(evidence)])
        shared = numbered.filter(pl.col("evidence") == pl.col("evidence").min().over("concept_row"))
        is_ambiguous = pl.col("own_row").n_unique().over("concept_row") > 1
        matched = shared.filter(~is_ambiguous | pl.col("is_preferred")).filter(~is_ambiguous)
        owners = known.group_by(_LEXICAL_KEY).agg(owner=pl.col("concept_row").unique())
        names = (
            theirs.join(matched.select("concept_row", "own_row"), on="concept_row", maintain_order="left")
            .filter(of_languages(languages) | (pl.col("primary") == _UNDETERMINED))
            .join(known, on=_KEY, how="anti", maintain_order="left")
            .join(owners, on=_LEXICAL_KEY, how="left", maintain_order="left")
            .filter(pl.col("owner").is_null() | (pl.col("owner") == pl.concat_list("own_row")))
            .with_columns(concept_row="own_row")
            .drop("own_row", "owner")
        )
        surest = matched.group_by("own_row").agg(pl.col("evidence").min())["evidence"]
        return cls(
            names,
            n_matched=len(surest),
            n_matched_by=[int((surest == kind).sum()) for kind in range(len(evidence))],
            n_ambiguous=shared["concept_row"].n_unique() - matched["concept_row"].n_unique(),
        )


def _same_codes(
    own: Terminology, vocabulary: str | None, known: pl.DataFrame, giver: Terminology, theirs: pl.DataFrame
) -> pl.DataFrame:
    """Pairs, as `_shared` gives them, of which one has or refers to the code of the other."""
    mine = _codes(own, vocabulary).join(known, on="concept_row", how="semi")
    others = _codes(giver, vocabulary_of(giver.manifest.config)).join(theirs, on="concept_row", how="semi")
    pairs = mine.join(others, on="code").filter(~pl.col("is_reference") | ~pl.col("is_reference_right"))
    return pairs.select(own_row="concept_row", concept_row="concept_row_right", is_preferred=pl.lit(False)).unique()


def _codes(terminology: Terminology, vocabulary: str | None) -> pl.DataFrame:
    """Codes that concepts have and refer to, as they are compared, where it is known of which vocabulary they are."""
    own = terminology.concepts().select(code="concept_id").with_row_index("concept_row").collect()
    referred = (
        terminology.cross_references().filter(pl.col("relation").is_in(_SAME)).select("concept_row", "code").collect()
    )
    codes = pl.concat(
        [
            own.select(pl.col("concept_row").cast(pl.UInt32), code_keys(own["code"], vocabulary).alias("code")),
            referred.select("concept_row", code_keys(referred["code"]).alias("code")),
        ]
    )
    is_reference = pl.int_range(pl.len()) >= len(own)
    return codes.with_columns(is_reference=is_reference).filter(pl.col("code").str.contains(":", literal=True))


def _shared(known: pl.DataFrame, theirs: pl.DataFrame, level: str) -> pl.DataFrame:
    """Pairs of own and other concepts that share a name which decides, and whether it is the other's preferred one."""
    return (
        _deciding(known, level)
        .select(level, own_row="concept_row", own_language="primary")
        .join(_deciding(theirs, level).select(level, "concept_row", "primary", "is_preferred"), on=level)
        .filter(
            (pl.col("primary") == pl.col("own_language"))
            | (pl.col("primary") == _UNDETERMINED)
            | (pl.col("own_language") == _UNDETERMINED)
        )
        .group_by("own_row", "concept_row", maintain_order=True)
        .agg(pl.col("is_preferred").any())
    )


def _names(terminology: Terminology) -> pl.DataFrame:
    """Names in use, by concept, with what they are compared by and the ``primary`` part of their language."""
    active = (
        terminology.concepts()
        .select("status")
        .with_row_index("concept_row")
        .filter(pl.col("status") == ACTIVE)
        .select(pl.col("concept_row").cast(pl.UInt32))
    )
    return (
        terminology.names()
        .filter(~pl.col("is_suppressed"))
        .join(active, on="concept_row", how="semi", maintain_order="left")
        .with_columns(
            primary=pl.col("language").str.to_lowercase().str.split("-").list.first(),
            key=normalise_expr(pl.col("text"), "loose"),
        )
        .filter(pl.col(_KEY) != "")
        .with_columns(
            lexical_key=pl.when(pl.col("primary").is_in(_LEXICAL_LANGUAGES))
            .then(lexical_key_expr(pl.col("text")))
            .otherwise(_KEY)
        )
        .collect()
    )


def _deciding(names: pl.DataFrame, level: str) -> pl.DataFrame:
    """Names that one concept alone has and nobody writes as a short form, compared by the column ``level``."""
    text = pl.col("text").str.strip_chars()
    is_short_form = (text.str.len_chars() <= _LONGEST_SHORT_FORM) & text.str.contains(_SHORT_FORM)
    return names.filter((pl.col("concept_row").n_unique().over(level) == 1) & ~is_short_form.any().over(level))


def _checked_evidence(by: Sequence[str]) -> tuple[Evidence, ...]:
    for word in by:
        if word not in EVIDENCE:
            raise ConfigError(
                f"there is no evidence '{word}'.{did_you_mean(word, EVIDENCE)} Known: {', '.join(EVIDENCE)}."
            )
    if not by:
        raise ConfigError(f"concepts are matched by something: {', '.join(EVIDENCE)}.")
    return tuple(one for one in EVIDENCE if one in by)


def _check_languages(languages: Sequence[str], givers: Sequence[Terminology]) -> None:
    """Refuse a language that no name is of: it would be missing without a word."""
    there = pl.concat([giver.names().select("language").unique() for giver in givers]).unique().collect()
    for language in languages:
        if there.filter(of_languages([language])).is_empty():
            known = ", ".join(sorted(there["language"]))
            raise InputError("no name to add is of this language", field="languages", expected=known, found=language)


def _with_names(own: Terminology, added: pl.DataFrame) -> pl.DataFrame:
    """All names of ``own`` and the added ones, each after those its concept had."""
    new = added.with_columns(is_preferred=pl.lit(False)).select(NAMES.names()).cast(NAMES)
    # A concept without names of its own shares none, so that each has a preferred name before the new ones.
    return pl.concat([own.names().collect(), new]).sort("concept_row", maintain_order=True)
