"""What the readers of Rich Release Format share: options, names, types, retired concepts.

Columns have the UMLS's names here (CUI for RxNorm's RXCUI), and in errors those of their own specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import polars as pl
from pydantic import BeforeValidator, Field

from onoma.errors import InputError
from onoma.files.reading import Check, Reading, check_chosen
from onoma.terminology.assembly import (
    NOTE_OF_MISSING_CHOICES,
    SOURCE_CONCEPTS,
    SOURCE_CROSS_REFERENCES,
    SOURCE_TYPES,
)
from onoma.terminology.languages import SHORT_CODES
from onoma.terminology.readers.options import ReaderOptions, Words, split_words
from onoma.terminology.readers.rrf_release import Family, Release
from onoma.terminology.semantic_types import TYPES, group_words, tuis_of, type_words
from onoma.terminology.tables import OBSOLETE

LANGUAGES = {**{code.upper(): tag for code, tag in SHORT_CODES.items()}, "SCR": "hr"}
"""LAT to BCP 47; a code that is not here stays, in lower case (BCP 47 takes three-letter codes)."""
SUPPRESS_FLAGS = ("N", "O", "E", "Y")
NO_CODE = "NOCODE"


def _languages(value: Any) -> Any:
    words = split_words(value)
    if not isinstance(words, list | tuple):
        return words
    tags = tuple(LANGUAGES.get(str(word).upper(), str(word).lower()) for word in words)
    for tag in tags:
        if not (tag.isascii() and tag.isalpha() and 2 <= len(tag) <= 3):
            raise ValueError(f"'{tag}' is no language code such as en or ENG")
    return tags


def _flags(value: Any) -> Any:
    words = split_words(value)
    for word in words if isinstance(words, list | tuple) else ():
        if word not in SUPPRESS_FLAGS:
            raise ValueError(f"'{word}' is none of {', '.join(SUPPRESS_FLAGS)}")
    return words


class RrfOptions(ReaderOptions):
    """Options of readers of Rich Release Format. An empty filter keeps all."""

    languages: Annotated[tuple[str, ...], BeforeValidator(_languages)] = Field(
        default=(), description="keep names in these languages, e.g. en,es (or ENG,SPA); empty: all"
    )
    sources: Words = Field(
        default=(),
        description="keep names, relations, ... of these sources (SAB), e.g. SNOMEDCT_US,MSH; empty: all",
    )
    term_types: Words = Field(default=(), description="keep names of these term types (TTY), e.g. PT,SY; empty: all")
    suppress: Annotated[tuple[str, ...], BeforeValidator(_flags)] = Field(
        default=SUPPRESS_FLAGS, description="keep rows with these SUPPRESS flags, e.g. only N for current content"
    )
    semantic_types: Annotated[tuple[str, ...], BeforeValidator(type_words)] = Field(
        default=(), description="keep concepts of these semantic types, e.g. T047,Sign or Symptom; empty: all"
    )
    semantic_groups: Annotated[tuple[str, ...], BeforeValidator(group_words)] = Field(
        default=(), description="keep concepts of types in these semantic groups, e.g. DISO,CHEM; empty: all"
    )
    relations: bool = Field(default=True, description="read relations (yes or no)")
    trade_names: bool = Field(default=False, description="add a drug's trade names to its names (yes or no)")
    retired: bool = Field(default=True, description="read retired concepts and what replaced them (yes or no)")
    cross_references: bool = Field(
        default=False, description="keep the codes of each concept in its sources as cross-references (yes or no)"
    )

    @property
    def keeps_all_flags(self) -> bool:
        """Whether ``suppress`` filters nothing."""
        return set(self.suppress) == set(SUPPRESS_FLAGS)

    @property
    def filters_names(self) -> bool:
        """Whether some names are left out."""
        return bool(self.languages or self.sources or self.term_types) or not self.keeps_all_flags

    @property
    def filters_types(self) -> bool:
        """Whether concepts are left out for their semantic type."""
        return bool(self.semantic_types or self.semantic_groups)

    @property
    def has_filter(self) -> bool:
        """Whether anything is left out."""
        return self.filters_names or self.filters_types


class Watcher(Protocol):
    """Sees all good rows of the names, before the filters."""

    columns: tuple[str, ...]

    def see(self, rows: pl.DataFrame) -> None:
        """Take what it needs of some rows."""


@dataclass
class Gathered:
    """Small tables, gathered from blocks; each block's repetitions are dropped at once."""

    schema: pl.Schema
    parts: list[pl.DataFrame] = field(default_factory=list)

    def add(self, rows: pl.DataFrame) -> None:
        """Take some rows."""
        self.parts.append(rows.unique(maintain_order=True))

    def table(self) -> pl.DataFrame:
        """All of them, each once."""
        return pl.concat([pl.DataFrame(schema=self.schema), *self.parts]).unique(maintain_order=True)


class SourceCodes:
    """Watches for the codes that concepts have in their sources."""

    columns: tuple[str, ...] = ("CUI", "SAB", "CODE", "SUPPRESS")

    def __init__(self, options: RrfOptions) -> None:
        self._options = options
        self._codes = Gathered(pl.Schema(dict.fromkeys(("CUI", "SAB", "CODE"), pl.String())))

    def see(self, rows: pl.DataFrame) -> None:
        """Note the codes of the rows that the filters of sources and flags keep."""
        codes = filtered(rows, self._options).filter(pl.col("CODE").str.strip_chars() != "", pl.col("CODE") != NO_CODE)
        self._codes.add(codes.select("CUI", "SAB", "CODE"))

    def table(self) -> pl.DataFrame:
        """`SOURCE_CROSS_REFERENCES`.

        A code that stands for one concept means the same; of one that stands for several (a MeSH heading with narrower
        terms under it) the release does not say which it means.
        """
        codes = self._codes.table()
        is_alone = pl.col("CUI").n_unique().over("SAB", "CODE") == 1
        return codes.select(
            concept_id="CUI",
            code=pl.concat_str("SAB", "CODE", separator=":"),
            relation=pl.when(is_alone).then(pl.lit("exactMatch")).otherwise(pl.lit("xref")),
            source="SAB",
            line=pl.lit(None, dtype=pl.UInt32),
        ).select(SOURCE_CROSS_REFERENCES.names())


class Vocabularies:
    """Watches for the sources of the names, and the level of restriction (SRL) that the release gives them."""

    columns: tuple[str, ...] = ("SAB", "SRL")

    def __init__(self) -> None:
        self._levels = Gathered(pl.Schema(dict.fromkeys(self.columns, pl.String())))

    def see(self, rows: pl.DataFrame) -> None:
        """Note the levels of the sources."""
        self._levels.add(rows.select(self.columns))

    def told(self, release: Release, reading: Reading) -> list[dict[str, str]]:
        """Of each source ``source`` and ``restriction_level`` ("": not given), by MRSAB also its name and others.

        MRSAB has the last word on the level where it gives one. Columns: UMLS Reference Manual, 3.3.16.
        """
        levels = dict(self._levels.table().sort("SAB", "SRL").iter_rows())  # the highest of a source
        found = {source: {"source": source, "restriction_level": level} for source, level in levels.items()}
        columns = {"VSAB": "version", "SON": "name", "SRL": "restriction_level", "SCIT": "citation"}
        is_a_source = column_check(release.family, "RSAB", "the short name of a source", "SON")
        for rows in release.rows("SAB", ("RSAB", "CURVER", *columns), reading, (is_a_source,)):
            for row in rows.sort("CURVER").iter_rows(named=True):  # N before Y: the current version counts
                source = row["RSAB"]
                known = {column: row[name].strip() for name, column in columns.items()}
                known["restriction_level"] = known["restriction_level"] or levels.get(source, "")
                found[source] = {"source": source, **known}
        named = sorted(source for source in found if source.strip())
        # A level that is not given is told: without it, content would look free.
        return [
            {key: value for key, value in found[source].items() if value.strip() or key == "restriction_level"}
            for source in named
        ]


@dataclass(frozen=True)
class Names:
    """What the main table gives.

    Attributes:
        table: `SOURCE_NAMES`, and further columns if they were asked for.
        concepts: Every CUI, if there is a filter; else nothing.
    """

    table: pl.DataFrame
    concepts: pl.Series

    def left_out(self, kept: pl.DataFrame) -> pl.Series:
        """CUIs that filters left out."""
        if self.concepts.is_empty():
            return self.concepts
        return self.concepts.filter(~self.concepts.is_in(kept["concept_id"].unique().implode()))


def column_check(family: Family, name: str, expected: str, shown: str) -> Check:
    """That a column is not empty."""
    return Check(pl.col(name).str.strip_chars() != "", family.column(name), expected, shown)


def flag_check(*others: str) -> Check:
    """That SUPPRESS is one of the flags, or of the others."""
    expected = f"one of {', '.join(SUPPRESS_FLAGS)}"
    return Check(pl.col("SUPPRESS").is_in([*SUPPRESS_FLAGS, *others]), "SUPPRESS", expected, "SUPPRESS")


def filtered(rows: pl.DataFrame, options: RrfOptions) -> pl.DataFrame:
    """The rows of the sources and with the flags that are wanted."""
    if options.sources:
        rows = rows.filter(pl.col("SAB").is_in(options.sources))
    if not options.keeps_all_flags:
        rows = rows.filter(pl.col("SUPPRESS").is_in(options.suppress))
    return rows


def read_names(
    release: Release,
    options: RrfOptions,
    reading: Reading,
    *,
    preference: pl.Expr,
    watchers: Sequence[Watcher] = (),
    further: Sequence[pl.Expr] = (),
    is_wanted: pl.Expr | None = None,
    sources: Sequence[str] = (),
) -> Names:
    """Read MRCONSO or RXNCONSO.

    Args:
        release: Where it is.
        options: Filters.
        reading: Where bad rows go.
        preference: Smaller is better; LAT is BCP 47 there, and there is a column ``is_suppressed``.
        watchers: See all rows, also those that the filters leave out.
        further: Further columns of the result.
        is_wanted: Keep these rows only; unset: all.
        sources: Further sources that must occur.

    Raises:
        InputError: a filter names what the release does not have; under "strict" also a bad row.
    """
    family, path = release.family, release.path("CONSO")
    columns = ["CUI", "LAT", "TS", "STT", "ISPREF", "SAB", "TTY", "STR", "SUPPRESS"]
    columns += [column for watcher in watchers for column in watcher.columns]
    parts, cuis = [], [pl.Series("CUI", [], dtype=pl.String)]
    seen: dict[str, set[str]] = {"LAT": set(), "SAB": set(), "TTY": set()}
    checks = (
        column_check(family, "CUI", "a code", "STR"),
        Check(pl.col("LAT").str.contains("^[A-Z]{3}$"), "LAT", "three capital letters, e.g. ENG", "LAT"),
        column_check(family, "STR", "a name", "CUI"),
        flag_check(),
    )
    for good in release.rows("CONSO", dict.fromkeys(columns), reading, checks):
        for watcher in watchers:
            watcher.see(good)
        if options.has_filter:
            cuis.append(good["CUI"].unique())
        if options.filters_names or sources:
            for column, values in seen.items():
                values.update(good[column].unique())
        rows = good if is_wanted is None else good.filter(is_wanted)
        parts.append(names_of(rows, options, preference, further))
    if not parts:
        raise InputError("there is no name in it", path=path, fix="get the release again")
    if options.filters_names or sources:
        _check_filters(release, options, seen, sources)
    return Names(pl.concat(parts), pl.concat(cuis).unique())


def names_of(
    rows: pl.DataFrame, options: RrfOptions, preference: pl.Expr, further: Sequence[pl.Expr] = ()
) -> pl.DataFrame:
    """`SOURCE_NAMES` and further columns, of those rows that the filters keep."""
    rows = filtered(rows, options).with_columns(
        pl.col("LAT").replace(LANGUAGES).str.to_lowercase(), is_suppressed=pl.col("SUPPRESS") != "N"
    )
    if options.languages:
        rows = rows.filter(pl.col("LAT").is_in(options.languages))
    if options.term_types:
        rows = rows.filter(pl.col("TTY").is_in(options.term_types))
    return rows.select(
        pl.col("CUI").alias("concept_id"),
        pl.col("STR").alias("text"),
        pl.col("LAT").alias("language"),
        pl.col("SAB").alias("source"),
        pl.col("TTY").alias("term_type"),
        preference.alias("preference"),
        "is_suppressed",
        *further,
    )


def _check_filters(
    release: Release, options: RrfOptions, seen: dict[str, set[str]], further_sources: Sequence[str]
) -> None:
    languages = {LANGUAGES.get(code, code.lower()) for code in seen["LAT"]}
    path = release.path("CONSO")
    check_chosen("languages", options.languages, languages, path=path)
    check_chosen("sources", options.sources, seen["SAB"], path=path)
    check_chosen("codes", further_sources, seen["SAB"], path=path)
    check_chosen("term_types", options.term_types, seen["TTY"], path=path)


def read_types(release: Release, options: RrfOptions, reading: Reading) -> tuple[pl.DataFrame, pl.Series | None]:
    """Read MRSTY or RXNSTY: `SOURCE_TYPES`, and the CUIs that the filter of types keeps (``None``: there is none).

    Raises:
        InputError: there is a filter and no such table, or a type that it does not have; under "strict" also a bad row.
    """
    family = release.family
    if options.filters_types and "STY" not in release:
        raise InputError(
            f"the release has no {family.prefix}STY.RRF, so concepts cannot be chosen by semantic type",
            path=release.path("CONSO"),
            fix="get the release in full, or leave out the options semantic_types and semantic_groups",
        )
    parts, kept = [pl.DataFrame(schema=SOURCE_TYPES)], [pl.Series("CUI", [], dtype=pl.String)]
    there: set[str] = set()
    checks = (column_check(family, "CUI", "a code", "STY"), column_check(family, "STY", "a semantic type", "CUI"))
    tuis = sorted(tuis_of(options.semantic_types, options.semantic_groups))
    is_wanted = pl.col("TUI").is_in(tuis) | pl.col("STY").is_in(options.semantic_types)
    for good in release.rows("STY", ("CUI", "TUI", "STY"), reading, checks):
        if options.filters_types:
            there.update(good["TUI"].unique(), good["STY"].unique())
            kept.append(good.filter(is_wanted)["CUI"])
        parts.append(good.select(concept_id="CUI", semantic_type="STY", line="line"))
    if not options.filters_types:
        return pl.concat(parts), None
    there.update(name for tui, name in TYPES.items() if tui in there)
    wanted = {*options.semantic_types}
    for tui, name in TYPES.items():
        if not wanted.isdisjoint((tui, name)) and there.isdisjoint((tui, name)):
            raise InputError(
                f"{tui} ({name}): no concept of it here",
                path=release.path("STY"),
                field="semantic_types",
                fix="leave it out, or get a release or subset that has it",
            )
    check_chosen("semantic_types", options.semantic_types, there, path=release.path("STY"))
    return pl.concat(parts), pl.concat(kept).unique()


def retired_concepts(
    given: pl.DataFrame, concepts: pl.DataFrame, reading: Reading, options: RrfOptions
) -> pl.DataFrame:
    """`SOURCE_CONCEPTS` of retired codes.

    Args:
        given: concept_id, successor, choice (or null); a concept may stand there several times.
        concepts: Those that have names. One of them that is retired too is in the result.
        reading: Told of what is odd.
        options: With a filter, of those without names only those that lead to one of ``concepts`` are kept.
    """
    successors = pl.col("successor").drop_nulls().unique()
    codes = given.group_by("concept_id", maintain_order=True).agg(
        successors.first().alias("replaced_by"), n=successors.len()
    )
    reading.note("retired codes with several successors, of which none is taken", int((codes["n"] > 1).sum()))
    codes = codes.with_columns(
        status=pl.lit(OBSOLETE), replaced_by=pl.when(pl.col("n") == 1).then("replaced_by")
    ).select(SOURCE_CONCEPTS.names())
    if options.has_filter:
        named = concepts["concept_id"].implode()
        choosing = given.filter(pl.col("choice").is_in(named))["concept_id"].unique().implode()
        has_choice = pl.col("replaced_by").is_null() & pl.col("concept_id").is_in(choosing)
        codes = codes.filter(pl.col("concept_id").is_in(named) | pl.col("replaced_by").is_in(named) | has_choice)
    return codes


def retired_choices(given: pl.DataFrame, concepts: pl.DataFrame, reading: Reading, source: str) -> pl.DataFrame:
    """`SOURCE_RELATIONS` "consider" from retired codes that none replaces to those that they lead to.

    Args:
        given: As for `retired_concepts`.
        concepts: `SOURCE_CONCEPTS` of all.
        reading: Told of those that lead to codes which are not among the concepts.
        source: Of the relations.
    """
    undecided = concepts.filter(pl.col("status") == OBSOLETE, pl.col("replaced_by").is_null())
    choices = (
        given.filter(pl.col("choice") != pl.col("concept_id"))
        .join(undecided, on="concept_id", how="semi", maintain_order="left")
        .unique(["concept_id", "choice"], keep="first", maintain_order=True)
    )
    is_there = pl.col("choice").is_in(concepts["concept_id"].implode())
    reading.note(NOTE_OF_MISSING_CHOICES, choices.filter(~is_there)["concept_id"].n_unique())
    return choices.filter(is_there).select(
        head="concept_id",
        relation=pl.lit("consider"),
        tail="choice",
        source=pl.lit(source),
        line=pl.lit(None, dtype=pl.UInt32),
    )


def weighted(drawbacks: Sequence[pl.Expr]) -> pl.Expr:
    """A number in which the first drawback weighs more than all others together, and so on."""
    total = pl.lit(0, dtype=pl.UInt8)
    for power, drawback in enumerate(reversed(drawbacks)):
        total += drawback.cast(pl.UInt8) * pl.lit(1 << power, dtype=pl.UInt8)
    return total
