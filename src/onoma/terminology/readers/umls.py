"""UMLS Rich Release Format: MRCONSO, MRSTY, MRREL, MRDEF, MRCUI.

Lines of fields, each followed by ``|``, without quoting; specification: UMLS Reference Manual, chapter 3
(https://www.ncbi.nlm.nih.gov/books/NBK9685/). Quotes, ``#`` and leading spaces belong to a name.

===========  =====================================================================================================
file         becomes
===========  =====================================================================================================
MRCONSO      a concept for each CUI, a name for each atom: STR, LAT as BCP 47, SAB as source, TTY as term type;
             ``is_suppressed`` unless SUPPRESS is N. With ``cross_references=yes``, also SAB:CODE of every atom:
             exactMatch, or xref if the code has atoms in several concepts
MRSTY        semantic types: STY, e.g. "Disease or Syndrome"
MRREL        relations. REL and RELA say what the SECOND concept is to the first, so a row CUI1|REL|CUI2|RELA becomes
             head CUI2, tail CUI1, which reads as a sentence: "CUI2 isa CUI1". The relation is RELA, or REL if that is
             empty. A row of REL PAR or CHD with a RELA other than isa and inverse_isa (member_of) becomes two, one
             with each: what the source calls parent and child is hierarchy. Rows between atoms count for their
             concepts; rows that then say the same are kept once
MRDEF        definitions
MRCUI        retired CUIs: obsolete concepts, replaced by CUI2 if REL is SY (merged). If there are several, or broader,
             narrower or other CUIs (RB, RN, RO), none is a replacement: each is a choice, a relation "consider".
             Retired CUIs have no names in the UMLS; if a file gives them some (`onoma terminology export umls` does),
             they keep them. If a filter is set, only those with names and those that lead to a concept that is kept
             are read. ``retired=no`` leaves all out
MRRANK       with ``codes``: which term types of a source are preferred
MRSAB        for each source whose names are kept: name, version, level of restriction (SRL), how to cite it; they are
             in the manifest, and `onoma terminology info` shows them. If it gives no level, that in MRCONSO counts
===========  =====================================================================================================

The preferred name of a concept: not suppressed before suppressed, then English, then TS=P, STT=PF, ISPREF=Y, then the
order of the file. All files except MRCONSO may be missing. The files may be in a folder, or in one below it; in a zip
archive (Metathesaurus Full Subset, ``2024AA/META/MRCONSO.RRF``; the archive of MRCONSO alone); or in the full release:
a zip archive, or folder, with archives ``2024aa-1-meta.nlm``, in which MRCONSO is in gzip pieces
(``2024AA/META/MRCONSO.RRF.aa.gz``, ``.ab.gz``, ...). Nothing needs to be unpacked; archives within an archive are
copied to a temporary file. Any file may be gzip or in pieces.

Semantic filters: a concept that has one of the ``semantic_types`` (names or TUIs) or a type in one of the
``semantic_groups`` is kept with all of its types.

Trade names (``trade_names=yes``): for rows of MRREL with RELA tradename_of ("CUI2 tradename_of CUI1") or has_tradename
("CUI2 has_tradename CUI1"), every name of every trade name also becomes a name of the drug, with its own source and
language and the term type ``tradename_of``, but never the preferred one. The trade name stays a concept of its own, so
its names then stand for both. The same holds between RxNorm's branded and generic products (SBD and SCD). Filters of
names apply to trade names, the semantic ones only to the drug.

Codes (``codes=SNOMEDCT_US``): concepts are the codes of these sources instead of CUIs. A code is CODE, which the UMLS
calls the most useful identifier of the source: for SNOMED CT, RxNorm and LOINC the concept (the same as SCUI), for MeSH
and ICD-10-CM the descriptor or entry (the same as SDUI). Codes are kept as they are. If two sources share a code, the
import ends, unless ``shared_codes=merge`` says that they mean the same (MSH and its translation MSHSPA) or
``shared_codes=prefix`` that every code is to be written SAB:CODE.

* Names: with ``codes_names=concept``, those of its own atoms and all others of the CUIs they are in (the reason to take
  codes from the UMLS and not from their source); with ``codes_names=own``, only those of its own atoms. Two codes whose
  atoms share a CUI share its names. The preferred name is one of its own, chosen by MRRANK after suppression and
  language.
* Semantic types and definitions: those of its CUIs (with ``codes_names=own``, definitions of its own atoms).
* Relations: rows of MRREL whose two atoms (AUI1, AUI2) are of these sources, as relations between their codes. Rows
  between CUIs only, which say nothing about codes, and those to other sources are left out.
* The CUI is a cross-reference (``UMLS:C0027051``): exactMatch, or xref if the code has atoms in several. With
  ``cross_references=yes``, the codes that other sources have for the CUI follow.
* A code all of whose atoms are obsolete (SUPPRESS=O) is obsolete. MRCUI is not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from onoma.files.reading import Check, Reading
from onoma.terminology.assembly import SOURCE_DEFINITIONS, SourceTables, named_concepts
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.options import Words
from onoma.terminology.readers.rrf import (
    RrfOptions,
    SourceCodes,
    Vocabularies,
    Watcher,
    column_check,
    filtered,
    flag_check,
    read_names,
    read_types,
    retired_choices,
    retired_concepts,
    weighted,
)
from onoma.terminology.readers.rrf_relations import add_trade_names, note_trade_names, read_relations
from onoma.terminology.readers.rrf_release import Family, Release, open_release
from onoma.terminology.readers.umls_codes import SourceAtoms
from onoma.terminology.readers.umls_codes import preference as preference_for_codes
from onoma.terminology.tables import ACTIVE

FAMILY = Family("the UMLS", "MR", "", ("CONSO", "STY", "REL", "DEF"), ("CUI", "RANK", "SAB"))
_OWN = "MTH"
_PREFERENCE = weighted(
    [
        pl.col("is_suppressed"),
        pl.col("LAT") != "en",
        pl.col("TS") != "P",
        pl.col("STT") != "PF",
        pl.col("ISPREF") != "Y",
    ]
)


class UmlsOptions(RrfOptions):
    """Options of the UMLS reader."""

    codes: Words = Field(
        default=(), description="make the codes of these sources (SAB) the concepts, e.g. SNOMEDCT_US; empty: CUIs"
    )
    codes_names: Literal["concept", "own"] = Field(
        default="concept", description="names of a code: all those of its CUI (concept), or only its own (own)"
    )
    shared_codes: Literal["refuse", "merge", "prefix"] = Field(
        default="refuse",
        description="if several sources share a code: refuse, merge, or prefix (all codes by their source)",
    )


def read_umls(source: str, options: UmlsOptions, reading: Reading) -> SourceTables:
    """Read a UMLS release, or a subset made with MetamorphoSys.

    Args:
        source: The folder or archive with the files, or the MRCONSO file.
        options: Filters.
        reading: Where bad rows go.

    Raises:
        InputError: no MRCONSO there; a filter names what the release does not have; under "strict" also a bad row.
    """
    with open_release(source, FAMILY, reading) as release:
        return _by_code(release, options, reading) if options.codes else _by_cui(release, options, reading)


def _by_cui(release: Release, options: UmlsOptions, reading: Reading) -> SourceTables:
    types, kept = read_types(release, options, reading)
    codes, vocabularies = SourceCodes(options), Vocabularies()
    watchers: list[Watcher] = [vocabularies, codes] if options.cross_references else [vocabularies]
    found = read_names(release, options, reading, preference=_PREFERENCE, watchers=watchers)
    relations = read_relations(release, options, reading)
    names = found.table
    if options.trade_names:
        names = add_trade_names(names, relations.trade_names, release)
    if kept is not None:
        names = names.filter(pl.col("concept_id").is_in(kept.implode()))
    retired = _read_retired(release, reading)
    left_out = [found.left_out(names)]
    if not options.retired:
        named = len(names)
        names = names.filter(~pl.col("concept_id").is_in(retired["concept_id"].implode()))
        reading.note("names of retired concepts, left out", named - len(names))
        left_out.append(retired["concept_id"])
    note_trade_names(names, reading)
    concepts = _with_retired(retired, options, reading, names)
    choices = [] if concepts is None else [retired_choices(retired, concepts, reading, _OWN)]
    return SourceTables(
        path=release.path("CONSO"),
        names=names,
        concepts=concepts,
        semantic_types=types,
        relations=pl.concat([relations.table, *choices]),
        definitions=_read_definitions(release, options, reading).select(SOURCE_DEFINITIONS.names()),
        cross_references=codes.table(),
        known_elsewhere=pl.concat(left_out),
        paths=_paths(release),
        source_vocabularies=vocabularies.told(release, reading),
    )


def _by_code(release: Release, options: UmlsOptions, reading: Reading) -> SourceTables:
    types, kept = read_types(release, options, reading)
    atoms, codes = SourceAtoms(options.codes, options.suppress, options.shared_codes), SourceCodes(options)
    of_concepts = options.codes_names == "concept"
    vocabularies = Vocabularies()
    watchers: list[Watcher] = [atoms, vocabularies, *([codes] if options.cross_references else [])]
    found = read_names(
        release,
        options,
        reading,
        preference=preference_for_codes(release, atoms, reading),
        watchers=watchers,
        further=[atoms.code.alias("own_code")],
        is_wanted=None if of_concepts else atoms.is_of_source,
        sources=options.codes,
    )
    atoms.finish(release, reading, kept)
    relations = read_relations(release, options, reading, to_ends=atoms.ends)
    names = found.table
    if options.trade_names:
        names = add_trade_names(names, relations.trade_names, release)
    names = atoms.names(names, of_concepts=of_concepts, release=release)
    note_trade_names(names, reading)
    concepts = atoms.concepts(names)
    return SourceTables(
        path=release.path("CONSO"),
        names=names,
        concepts=concepts,
        semantic_types=atoms.types(types),
        relations=relations.table,
        definitions=atoms.definitions(_read_definitions(release, options, reading), of_concepts=of_concepts),
        cross_references=atoms.references(codes.table()),
        known_elsewhere=atoms.all_codes.filter(~atoms.all_codes.is_in(concepts["concept_id"].implode())),
        paths=_paths(release),
        source_vocabularies=vocabularies.told(release, reading),
    )


def _paths(release: Release) -> dict[str, Path]:
    tables = {"semantic_types": "STY", "relations": "REL", "definitions": "DEF"}
    return {table: release.path(name) for table, name in tables.items() if name in release}


def _read_definitions(release: Release, options: UmlsOptions, reading: Reading) -> pl.DataFrame:
    """`SOURCE_DEFINITIONS`, and AUI."""
    checks = (
        column_check(FAMILY, "CUI", "a code", "DEF"),
        column_check(FAMILY, "DEF", "a definition", "CUI"),
        flag_check(),
    )
    parts = (
        filtered(good, options).select(concept_id="CUI", text="DEF", source="SAB", line="line", AUI="AUI")
        for good in release.rows("DEF", ("CUI", "AUI", "SAB", "DEF", "SUPPRESS"), reading, checks)
    )
    return pl.concat([pl.DataFrame(schema={**SOURCE_DEFINITIONS, "AUI": pl.String()}), *parts])


def _read_retired(release: Release, reading: Reading) -> pl.DataFrame:
    """MRCUI, if it is there: ``concept_id``, ``successor`` (merged into it) and ``choice`` (led to it in any way)."""
    parts = [pl.DataFrame(schema=dict.fromkeys(("concept_id", "successor", "choice"), pl.String()))]
    if "CUI" not in release:
        return parts[0]
    is_merged = pl.col("REL") == "SY"
    checks = (
        column_check(FAMILY, "CUI1", "a code", "CUI2"),
        column_check(FAMILY, "REL", "a relation", "CUI1"),
        Check((pl.col("CUI2").str.strip_chars() != "") | ~is_merged, "CUI2", "a code, since REL is SY", "CUI1"),
    )
    for good in release.rows("CUI", ("CUI1", "REL", "CUI2"), reading, checks):
        choice = pl.when(pl.col("CUI2").str.strip_chars() != "").then("CUI2")
        parts.append(good.select(concept_id="CUI1", successor=pl.when(is_merged).then("CUI2"), choice=choice))
    return pl.concat(parts)


def _with_retired(
    given: pl.DataFrame, options: UmlsOptions, reading: Reading, names: pl.DataFrame
) -> pl.DataFrame | None:
    """`SOURCE_CONCEPTS` with retired ones; ``None``: there are none, and every concept has names."""
    if not options.retired or given.is_empty():
        return None
    concepts = named_concepts(names)
    retired = retired_concepts(given, concepts, reading, options)
    reading.note("retired concepts that have names", len(retired.join(concepts, on="concept_id", how="semi")))
    named = concepts.select("concept_id").join(retired, on="concept_id", how="left", maintain_order="left")
    nameless = retired.join(concepts, on="concept_id", how="anti", maintain_order="left")
    return pl.concat([named.with_columns(pl.col("status").fill_null(ACTIVE)), nameless])


FORMAT = Format(
    name="umls",
    description="UMLS Metathesaurus, or a subset of it, in Rich Release Format (MRCONSO, MRSTY, MRREL, MRDEF)",
    source="the folder or zip with the .RRF files (plain, gzip or in pieces), or the zip of the full release",
    obtain="https://www.nlm.nih.gov/research/umls/licensedcontent/umlsknowledgesources.html (free account and licence "
    "of the NLM): UMLS Metathesaurus Full Subset, MRCONSO.RRF alone, or the full release",
    licence="UMLS Metathesaurus licence; some sources add terms of their own (SNOMED CT)",
    options=UmlsOptions,
    read=read_umls,
)
