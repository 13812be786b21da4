"""Synonyms of other terminologies for the concepts of one's own.

A list of local codes often has one name for each, and people call things otherwise. Where a concept of another
terminology has a name of one's own concept, its other names are added to that concept. Nothing else changes: no
concept, code, relation or definition is added, and preferred names stay.

A shared name decides only if one concept alone has it on either side, in whatever language; case and punctuation are
set aside (preset "loose"). A name of one language is none of another, but "en-GB" is "en", and a name whose language
nobody said ("und") may be of any. Short forms ("MCL", "SCA8") decide nothing, as one stands for many things. Left out:

* concepts of the other terminology that share names with several of one's own;
* names that one's own terminology has already, for this concept or another;
* names that would come to several concepts.

A concept may be matched by several of another terminology, as by its names it is both. Names that were added match
nothing further. Retired concepts and suppressed names play no part.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from onoma.artifacts import ensure_writable
from onoma.errors import InputError
from onoma.terminology.merging import check_places, folder_name
from onoma.terminology.normalisation import normalise_expr
from onoma.terminology.reading import Progress, no_progress
from onoma.terminology.tables import ACTIVE, KIND, NAMES, TerminologyTables, of_languages, write_terminology
from onoma.terminology.terminology import Terminology

_UNDETERMINED = "und"
_SHORT_FORM = r"^(?:\S*\p{Lu}\S*\p{Lu}\S*|\S*\d\S*)$"
"""One word with two capitals or a digit."""
_LONGEST_SHORT_FORM = 6
"""Characters."""


@dataclass(frozen=True)
class EnrichingPart:
    """What one terminology gave.

    Attributes:
        path: Its folder.
        n_matched: Own concepts that share a name with one of its concepts.
        n_ambiguous: Its concepts that share names with several own ones, and gave nothing.
        n_added: Names added from it.
    """

    path: Path
    n_matched: int
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
            ambiguous = f"; {part.n_ambiguous:,} of its concepts match several, left out" if part.n_ambiguous else ""
            lines.append(
                f"  {part.path}: {part.n_matched:,} concepts share a name with it, "
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
    languages: Sequence[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> EnrichReport:
    """Write a terminology with the synonyms that others have for its concepts; the module says which.

    Args:
        folder: One's own terminology.
        others: Folders of terminologies that give names; of equal names the first one's is added.
        out: Where the enriched folder shall lie. It appears whole or not at all.
        languages: BCP 47 tags of the names to add; ``en`` takes ``en-GB`` too, and names whose language nobody said are
            always taken. Unset: all.
        overwrite: Replace a terminology at ``out``.
        progress: Called with (terminologies done, terminologies in all, what is done).

    Raises:
        InputError: there is no other terminology, a folder is given twice, ``out`` lies in one of them, or none of them
            has a name of a wished language.
        ArtifactError: a folder is no whole terminology, or ``out`` is taken.
    """
    started = time.perf_counter()
    tell = progress or no_progress
    paths = [Path(folder), *(Path(other) for other in others)]
    if len(paths) == 1:
        raise InputError("there is no terminology to take names from", expected="terminology folders")
    check_places(paths, Path(out))
    ensure_writable(out, KIND, overwrite=overwrite)
    own, *givers = (Terminology.open(path) for path in paths)
    known = _names(own)
    _check_languages(languages or (), givers)
    found = []
    for number, giver in enumerate(givers):
        tell(number, len(givers), f"comparing with {folder_name(giver.path)}")
        found.append(_Offer.of(giver, known, languages))
    offered = pl.concat([offer.names.with_columns(part=pl.lit(part)) for part, offer in enumerate(found)])
    is_contested = pl.col("concept_row").n_unique().over("key") > 1
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
            "languages": None if languages is None else list(languages),
        },
        parents=[terminology.manifest.as_parent() for terminology in (own, *givers)],
        overwrite=overwrite,
    )
    return EnrichReport(
        path=Path(out),
        parts=tuple(
            EnrichingPart(giver.path, offer.n_matched, offer.n_ambiguous, len(added.filter(pl.col("part") == part)))
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
    """Columns of `NAMES` and ``key``; ``concept_row`` is one's own."""
    n_matched: int
    n_ambiguous: int

    @classmethod
    def of(cls, giver: Terminology, known: pl.DataFrame, languages: Sequence[str] | None) -> _Offer:
        """Names of these languages that concepts which share one with ``known`` have and ``known`` has not."""
        theirs = _names(giver)
        shared = (
            _deciding(known)
            .select("key", own_row="concept_row", own_language="primary")
            .join(_deciding(theirs).select("key", "concept_row", "primary"), on="key")
            .filter(
                (pl.col("primary") == pl.col("own_language"))
                | (pl.col("primary") == _UNDETERMINED)
                | (pl.col("own_language") == _UNDETERMINED)
            )
            .select("own_row", "concept_row")
            .unique(maintain_order=True)
        )
        is_ambiguous = pl.col("own_row").n_unique().over("concept_row") > 1
        matched = shared.filter(~is_ambiguous)
        names = (
            theirs.join(matched, on="concept_row", maintain_order="left")
            .filter(of_languages(languages) | (pl.col("primary") == _UNDETERMINED))
            .join(known, on="key", how="anti", maintain_order="left")
            .with_columns(concept_row="own_row")
            .drop("own_row")
        )
        return cls(names, matched["own_row"].n_unique(), shared.filter(is_ambiguous)["concept_row"].n_unique())


def _names(terminology: Terminology) -> pl.DataFrame:
    """Names in use, by concept, with ``key``, to compare them by, and the ``primary`` part of their language."""
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
        .filter(pl.col("key") != "")
        .collect()
    )


def _deciding(names: pl.DataFrame) -> pl.DataFrame:
    """Names that one concept alone has and nobody writes as a short form."""
    text = pl.col("text").str.strip_chars()
    is_short_form = (text.str.len_chars() <= _LONGEST_SHORT_FORM) & text.str.contains(_SHORT_FORM)
    return names.filter((pl.col("concept_row").n_unique().over("key") == 1) & ~is_short_form.any().over("key"))


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
