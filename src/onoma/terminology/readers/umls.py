"""UMLS Rich Release Format: MRCONSO, MRSTY, MRREL, MRDEF.

Lines of fields each followed by ``|``, no quoting; specification: UMLS Reference Manual, chapter 3
(https://www.ncbi.nlm.nih.gov/books/NBK9685/). Quotes, ``#`` and leading spaces belong to a name.

===========  =====================================================================================================
file         becomes
===========  =====================================================================================================
MRCONSO      a concept for each CUI, a name for each atom: STR, LAT as BCP 47, SAB as source, TTY as term type;
             ``is_suppressed`` unless SUPPRESS is N
MRSTY        semantic types: STY, e.g. "Disease or Syndrome"
MRREL        relations. REL and RELA say what the SECOND concept is to the first, so a row CUI1|REL|CUI2|RELA becomes
             head CUI2, tail CUI1, which reads as a sentence: "CUI2 isa CUI1". The relation is RELA, or REL where that
             is empty. Rows between atoms count for their concepts; rows that then say the same are kept once
MRDEF        definitions
===========  =====================================================================================================

The preferred name of a concept: not suppressed before suppressed, then English, then TS=P, STT=PF, ISPREF=Y, then the
order of the file. MRSTY, MRREL and MRDEF may be missing. Each file may be gzip (``MRCONSO.RRF.gz``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import BeforeValidator, Field

from onoma.errors import InputError, did_you_mean
from onoma.terminology.assembly import (
    SOURCE_DEFINITIONS,
    SOURCE_NAMES,
    SOURCE_RELATIONS,
    SOURCE_TYPES,
    SourceTables,
)
from onoma.terminology.delimited import read_delimited
from onoma.terminology.formats import Format
from onoma.terminology.options import ReaderOptions, Words, split_words
from onoma.terminology.reading import Check, Reading

FIELDS = {
    name: tuple(fields.split())
    for name, fields in {
        "MRCONSO": "CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF",
        "MRSTY": "CUI TUI STN STY ATUI CVF",
        "MRREL": "CUI1 AUI1 STYPE1 REL CUI2 AUI2 STYPE2 RELA RUI SRUI SAB SL RG DIR SUPPRESS CVF",
        "MRDEF": "CUI AUI ATUI SATUI SAB DEF SUPPRESS CVF",
    }.items()
}
LANGUAGES = {
    "ARA": "ar", "BAQ": "eu", "BUL": "bg", "CAT": "ca", "CHI": "zh", "CZE": "cs", "DAN": "da", "DUT": "nl",
    "ENG": "en", "EST": "et", "FIN": "fi", "FRE": "fr", "GER": "de", "GRE": "el", "HEB": "he", "HUN": "hu",
    "ICE": "is", "ITA": "it", "JPN": "ja", "KOR": "ko", "LAV": "lv", "LIT": "lt", "NOR": "no", "POL": "pl",
    "POR": "pt", "RUM": "ro", "RUS": "ru", "SCR": "hr", "SLO": "sk", "SLV": "sl", "SPA": "es", "SWE": "sv",
    "TUR": "tr", "UKR": "uk",
}  # fmt: skip
"""LAT to BCP 47; a code that is not here stays, in lower case (BCP 47 takes three-letter codes)."""
SUPPRESS_FLAGS = ("N", "O", "E", "Y")
_NOT_FILES = "get the release in full, or say which folder holds MRCONSO.RRF"


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


class UmlsOptions(ReaderOptions):
    """Options of the UMLS reader. An empty filter keeps all."""

    languages: Annotated[tuple[str, ...], BeforeValidator(_languages)] = Field(
        default=(), description="keep names in these languages, e.g. en,es (or ENG,SPA); empty: all"
    )
    sources: Words = Field(
        default=(),
        description="keep names, relations and definitions of these sources (SAB), e.g. SNOMEDCT_US,MSH; empty: all",
    )
    term_types: Words = Field(default=(), description="keep names of these term types (TTY), e.g. PT,SY; empty: all")
    suppress: Annotated[tuple[str, ...], BeforeValidator(_flags)] = Field(
        default=SUPPRESS_FLAGS, description="keep rows with these SUPPRESS flags, e.g. N for current content only"
    )
    relations: bool = Field(default=True, description="read MRREL (yes or no)")


def read_umls(source: str, options: UmlsOptions, reading: Reading) -> SourceTables:
    """Read a UMLS release, or a subset made with MetamorphoSys.

    Args:
        source: The folder with the files, or the one above its ``META``, or the MRCONSO file.
        options: Filters.
        reading: Where bad rows go.

    Raises:
        InputError: no MRCONSO there; a filter names what the release does not have; under "strict" also a bad row.
    """
    folder = _folder(Path(source))
    files = {name: _file(folder, name) for name in FIELDS}
    conso = files["MRCONSO"]
    if conso is None:
        raise InputError("there is no MRCONSO.RRF here or in META below", path=folder, fix=_NOT_FILES)
    names, left_out = _read_names(conso, options, reading)
    for name in ("MRSTY", "MRREL", "MRDEF"):
        if files[name] is None:
            reading.note(f"files that the release does not have: {name}.RRF", 1)
    return SourceTables(
        path=conso,
        names=names,
        semantic_types=_read_types(files["MRSTY"], reading),
        relations=_read_relations(files["MRREL"] if options.relations else None, options, reading),
        definitions=_read_definitions(files["MRDEF"], options, reading),
        known_elsewhere=left_out,
        paths={
            table: path
            for table, name in (("semantic_types", "MRSTY"), ("relations", "MRREL"), ("definitions", "MRDEF"))
            if (path := files[name]) is not None
        },
    )


def _folder(source: Path) -> Path:
    if not source.exists():
        raise InputError("there is nothing here", path=source, fix="check the path")
    if source.is_file():
        if not source.name.startswith("MRCONSO.RRF"):
            raise InputError("this is no folder with a UMLS release", path=source, fix=_NOT_FILES)
        return source.parent
    below = source / "META"
    return below if _file(source, "MRCONSO") is None and below.is_dir() else source


def _file(folder: Path, name: str) -> Path | None:
    for file_name in (f"{name}.RRF", f"{name}.RRF.gz"):
        if (folder / file_name).is_file():
            return folder / file_name
    return None


def _read_names(path: Path, options: UmlsOptions, reading: Reading) -> tuple[pl.DataFrame, pl.Series]:
    """Names, and the CUIs that the filters left out."""
    keep = ("CUI", "LAT", "TS", "STT", "ISPREF", "SAB", "TTY", "STR", "SUPPRESS")
    parts, cuis = [_no_names()], [pl.Series("CUI", [], dtype=pl.String)]
    is_filtered = bool(options.languages or options.sources or options.term_types) or not _keeps_all(options)
    seen: dict[str, set[str]] = {"LAT": set(), "SAB": set(), "TTY": set()}
    checks = (
        _check("CUI", "a code", "STR"),
        Check(pl.col("LAT").str.contains("^[A-Z]{3}$"), "LAT", "three capital letters, e.g. ENG", "LAT"),
        _check("STR", "a name", "CUI"),
        _SUPPRESS_IS_KNOWN,
    )
    for block in _rows("MRCONSO", path, keep, reading):
        good = reading.keep_valid(block, checks, path=path)
        if is_filtered:
            cuis.append(good["CUI"].unique())
            for column, values in seen.items():
                values.update(good[column].unique())
        rows = _filtered(good, options).with_columns(
            pl.col("LAT").replace(LANGUAGES).str.to_lowercase(), is_suppressed=pl.col("SUPPRESS") != "N"
        )
        if options.languages:
            rows = rows.filter(pl.col("LAT").is_in(options.languages))
        if options.term_types:
            rows = rows.filter(pl.col("TTY").is_in(options.term_types))
        parts.append(
            rows.select(
                concept_id="CUI",
                text="STR",
                language="LAT",
                source="SAB",
                term_type="TTY",
                preference=_preference(),
                is_suppressed="is_suppressed",
            )
        )
    if is_filtered:
        _check_filters(options, seen, path)
    names = pl.concat(parts)
    known = pl.concat(cuis).unique()
    return names, known.filter(~known.is_in(names["concept_id"].unique().implode())) if len(known) else known


def _no_names() -> pl.DataFrame:
    return pl.DataFrame(schema=SOURCE_NAMES)


def _preference() -> pl.Expr:
    """Smaller is better; suppressed weighs most, then language, TS, STT, ISPREF."""
    drawbacks = (
        pl.col("is_suppressed"),
        pl.col("LAT") != "en",
        pl.col("TS") != "P",
        pl.col("STT") != "PF",
        pl.col("ISPREF") != "Y",
    )
    total = pl.lit(0, dtype=pl.UInt8)
    for weight, drawback in zip((16, 8, 4, 2, 1), drawbacks, strict=True):
        total += drawback.cast(pl.UInt8) * pl.lit(weight, dtype=pl.UInt8)
    return total


def _read_types(path: Path | None, reading: Reading) -> pl.DataFrame:
    parts = [pl.DataFrame(schema=SOURCE_TYPES)]
    if path is None:
        return parts[0]
    for rows in _rows("MRSTY", path, ("CUI", "STY"), reading):
        checks = (_check("CUI", "a code", "STY"), _check("STY", "a semantic type", "CUI"))
        good = reading.keep_valid(rows, checks, path=path)
        parts.append(good.select(concept_id="CUI", semantic_type="STY", line="line"))
    return pl.concat(parts)


def _read_relations(path: Path | None, options: UmlsOptions, reading: Reading) -> pl.DataFrame:
    parts = [pl.DataFrame(schema=SOURCE_RELATIONS)]
    if path is None:
        return parts[0]
    for rows in _rows("MRREL", path, ("CUI1", "REL", "CUI2", "RELA", "SAB", "SUPPRESS"), reading):
        checks = (
            _check("CUI1", "a code", "CUI2"),
            _check("CUI2", "a code", "CUI1"),
            _check("REL", "a relation", "CUI1"),
            _SUPPRESS_IS_KNOWN,
        )
        good = _filtered(reading.keep_valid(rows, checks, path=path), options)
        relation = pl.when(pl.col("RELA") != "").then("RELA").otherwise("REL")
        parts.append(good.select(head="CUI2", relation=relation, tail="CUI1", source="SAB", line="line"))
    return pl.concat(parts)


def _read_definitions(path: Path | None, options: UmlsOptions, reading: Reading) -> pl.DataFrame:
    parts = [pl.DataFrame(schema=SOURCE_DEFINITIONS)]
    if path is None:
        return parts[0]
    for rows in _rows("MRDEF", path, ("CUI", "SAB", "DEF", "SUPPRESS"), reading):
        checks = (
            _check("CUI", "a code", "DEF"),
            _check("DEF", "a definition", "CUI"),
            _SUPPRESS_IS_KNOWN,
        )
        good = _filtered(reading.keep_valid(rows, checks, path=path), options)
        parts.append(good.select(concept_id="CUI", text="DEF", source="SAB", line="line"))
    return pl.concat(parts)


def _rows(name: str, path: Path, keep: tuple[str, ...], reading: Reading) -> Iterator[pl.DataFrame]:
    if name != "MRCONSO" and path.stat().st_size == 0:  # a subset without relations has an empty MRREL
        return iter(())
    return read_delimited(path, reading, separator="|", fields=FIELDS[name], keep=keep, ends_with_separator=True)


def _check(field: str, expected: str, shown: str) -> Check:
    return Check(pl.col(field).str.strip_chars() != "", field, expected, shown)


_SUPPRESS_IS_KNOWN = Check(
    pl.col("SUPPRESS").is_in(SUPPRESS_FLAGS), "SUPPRESS", f"one of {', '.join(SUPPRESS_FLAGS)}", "SUPPRESS"
)


def _keeps_all(options: UmlsOptions) -> bool:
    return set(options.suppress) == set(SUPPRESS_FLAGS)


def _filtered(rows: pl.DataFrame, options: UmlsOptions) -> pl.DataFrame:
    if options.sources:
        rows = rows.filter(pl.col("SAB").is_in(options.sources))
    if not _keeps_all(options):
        rows = rows.filter(pl.col("SUPPRESS").is_in(options.suppress))
    return rows


def _check_filters(options: UmlsOptions, seen: dict[str, set[str]], path: Path) -> None:
    languages = {LANGUAGES.get(code, code.lower()) for code in seen["LAT"]}
    for field, wanted, there in (
        ("languages", options.languages, languages),
        ("sources", options.sources, seen["SAB"]),
        ("term_types", options.term_types, seen["TTY"]),
    ):
        for word in wanted:
            if word not in there:
                raise InputError(
                    f"the release has nothing of '{word}'.{did_you_mean(word, there)}".rstrip("."),
                    path=path,
                    field=field,
                    expected=f"some of {', '.join(sorted(there)[:40])}",
                )


FORMAT = Format(
    name="umls",
    description="UMLS Metathesaurus, or a subset of it, in Rich Release Format (MRCONSO, MRSTY, MRREL, MRDEF)",
    source="the folder with the .RRF files (plain or gzip), or the one above its META",
    obtain="https://www.nlm.nih.gov/research/umls (free account and licence of the NLM); unpack the release",
    licence="UMLS Metathesaurus licence; some sources add terms of their own (SNOMED CT)",
    options=UmlsOptions,
    read=read_umls,
)
