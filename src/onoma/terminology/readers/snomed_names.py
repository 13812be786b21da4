"""Names of SNOMED CT: descriptions, the language reference sets that say which are preferred, semantic tags."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from onoma.files.reading import Check, Reading, check_chosen
from onoma.terminology.languages import LANGUAGE_TAG, tidy_language
from onoma.terminology.readers.rf2 import SCTID, KnownConcepts, Release, as_text, read_state
from onoma.terminology.readers.snomed_options import (
    DEFINITION,
    FULLY_SPECIFIED_NAME,
    LANGUAGE_REFSETS,
    PREFERRED,
    SOURCE,
    SYNONYM,
    UNITED_KINGDOM,
    SnomedOptions,
)


def read_descriptions(release: Release, options: SnomedOptions, known: KnownConcepts, reading: Reading) -> pl.DataFrame:
    """Descriptions and text definitions."""
    files = release.of("Description", "TextDefinition")
    rows = read_state(
        files,
        reading,
        codes=("conceptId", "typeId"),
        texts=("languageCode", "term"),
        checks=(
            Check(pl.col("term").str.strip_chars() != "", "term", "a term", "id"),
            Check(
                pl.col("languageCode").str.contains(LANGUAGE_TAG),
                "languageCode",
                "a language such as en",
                "languageCode",
            ),
        ),
        date=options.date,
    )
    if not options.inactive_descriptions:
        rows = rows.filter("active")
    is_text = pl.col("typeId").is_in([FULLY_SPECIFIED_NAME, SYNONYM, DEFINITION])
    reading.note("descriptions of unknown type, left out", len(rows.filter(~is_text)))
    tags = {code: tidy_language(code) for code in rows["languageCode"].unique()}
    rows = rows.filter(is_text).with_columns(pl.col("languageCode").replace(tags))
    return known.only(rows, "descriptions", files, "conceptId")


def semantic_tags(descriptions: pl.DataFrame) -> pl.DataFrame:
    """The semantic tag of each concept, from its English FSN if there is one; and that name without its tag."""
    return (
        descriptions.filter(pl.col("active") & (pl.col("typeId") == FULLY_SPECIFIED_NAME))
        .with_columns(tag=pl.col("term").str.extract(r"\(([^()]+)\)\s*$"))
        .sort(pl.col("languageCode") != "en", maintain_order=True)
        .unique("conceptId", keep="first", maintain_order=True)
        .filter(pl.col("tag").is_not_null())
        .select("conceptId", "tag", "line", name=pl.col("term").str.replace(r"\s*\([^()]+\)\s*$", ""))
    )


def read_names(
    descriptions: pl.DataFrame,
    tags: pl.DataFrame,
    release: Release,
    options: SnomedOptions,
    path: Path,
    reading: Reading,
) -> pl.DataFrame:
    """The names that the options keep, as `SOURCE_NAMES` with ``conceptId`` for ``concept_id``."""
    rows = descriptions.filter(pl.col("typeId") != DEFINITION)
    if options.languages:
        check_chosen("languages", options.languages, rows["languageCode"].unique(), path=path)
        rows = rows.filter(pl.col("languageCode").is_in(options.languages))
    if options.semantic_types:
        check_chosen("semantic_types", options.semantic_types, tags["tag"].unique(), path=path)
        chosen = tags.filter(pl.col("tag").is_in(options.semantic_types))["conceptId"]
        rows = rows.filter(pl.col("conceptId").is_in(chosen.implode()))
    if not options.fully_specified_names:
        rows = rows.filter(pl.col("typeId") != FULLY_SPECIFIED_NAME)
    rows = rows.join(
        _acceptability(release, options, path, reading),
        left_on="id",
        right_on="referencedComponentId",
        how="left",
        maintain_order="left",
    )
    if options.language_refset:
        rows = rows.filter(pl.col("is_preferred").is_not_null() | ~pl.col("active"))
    is_full = pl.col("typeId") == FULLY_SPECIFIED_NAME
    rank = pl.when(is_full).then(3).when("is_main").then(0).when("is_preferred").then(1).otherwise(2)
    return rows.select(
        "conceptId",
        text="term",
        language="languageCode",
        source=pl.lit(SOURCE),
        term_type=pl.when(is_full).then(pl.lit("FSN")).when("is_preferred").then(pl.lit("PT")).otherwise(pl.lit("SY")),
        preference=(rank + 4 * (~pl.col("active")).cast(pl.Int32)).cast(pl.UInt8),
        is_suppressed=~pl.col("active"),
    )


def _acceptability(release: Release, options: SnomedOptions, path: Path, reading: Reading) -> pl.DataFrame:
    """For each description of the chosen reference sets: ``is_preferred`` in any, ``is_main`` in the main one."""
    members = read_state(
        release.of("Language"),
        reading,
        codes=("refsetId", "referencedComponentId", "acceptabilityId"),
        date=options.date,
    ).filter("active")
    sizes = dict(members["refsetId"].value_counts().sort("count", "refsetId", descending=[True, False]).iter_rows())
    main: tuple[int, ...] = ()
    if options.language_refset:
        chosen = [_refset_ids(word, sizes, path) for word in options.language_refset]
        main = chosen[0]
        members = members.filter(pl.col("refsetId").is_in([refset for ids in chosen for refset in ids]))
    elif sizes:
        candidates = ["en-GB", "en-US"] if set(UNITED_KINGDOM) & set(sizes) else ["en-US", "en-GB"]
        present = [LANGUAGE_REFSETS[name] for name in candidates if set(LANGUAGE_REFSETS[name]) & set(sizes)]
        main = present[0] if present else (next(iter(sizes)),)
    is_preferred = pl.col("acceptabilityId") == PREFERRED
    return members.group_by("referencedComponentId").agg(
        is_preferred=is_preferred.any(), is_main=(is_preferred & pl.col("refsetId").is_in(main)).any()
    )


def _refset_ids(word: str, sizes: dict[int, int], path: Path) -> tuple[int, ...]:
    names = {name.lower(): ids for name, ids in LANGUAGE_REFSETS.items()}
    ids = (int(word),) if re.fullmatch(SCTID, word) else names.get(word.lower(), ())
    present = tuple(refset for refset in ids if refset in sizes)
    if not present:
        there = [name for name, ids in LANGUAGE_REFSETS.items() if set(ids) & set(sizes)] + [str(id) for id in sizes]
        check_chosen("language_refset", [word], there, path=path)
    return present


def definitions(descriptions: pl.DataFrame, options: SnomedOptions) -> pl.DataFrame:
    """Active definitions, as `SOURCE_DEFINITIONS`."""
    rows = descriptions.filter(pl.col("active") & (pl.col("typeId") == DEFINITION))
    if options.languages:
        rows = rows.filter(pl.col("languageCode").is_in(options.languages))
    return rows.select(concept_id=as_text("conceptId"), text="term", source=pl.lit(SOURCE), line="line")
