"""UMLS Rich Release Format: MRCONSO, MRSTY, MRREL, MRDEF, MRCUI, MRSAB; reader: `onoma.terminology.readers.umls`.

Columns as in the UMLS Reference Manual, chapter 3 (https://www.ncbi.nlm.nih.gov/books/NBK9685/):

* CUI is the concept's own code, whatever it looks like. AUI, SUI, LUI, ATUI, RUI are numbered in the order of the
  files: one SUI for each string of a language, one LUI for strings that differ only in case (the UMLS joins more).
* The first name of a concept in each language is its TS=P, STT=PF, ISPREF=Y, so that the preferred name can be read
  back.
* LAT is the three-letter code of the language; ``pt-BR`` becomes POR, which is counted.
* SUPPRESS is Y for suppressed names. Obsolete concepts are in MRCUI, with REL=SY and their successor, or REL=DEL; their
  names, which the UMLS drops, stay in MRCONSO. VER is empty, because a terminology does not say when a code was
  retired.
* CODE is NOCODE; SAUI, SCUI, SDUI are empty: a terminology does not say which code a name has in its source.
* SRL, the level of restriction, and MRSAB are as stated in the releases that the terminology was read from; SRL is
  empty if none stated it. If several of them have a source, the highest level counts.
* In MRREL each relation occurs once ("CUI2 RELA CUI1"), while the UMLS gives the inverse too. REL is CHD for isa and
  is_a, PAR for inverse_isa, else RO.
* TUI is given for the types of the Semantic Network; STN is empty.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from onoma.files.reading import Check
from onoma.terminology.readers.rrf import LANGUAGES, NO_CODE
from onoma.terminology.semantic_types import TYPES
from onoma.terminology.tables import OBSOLETE
from onoma.terminology.writers.writing import Content, Writing, without

_FORBIDDEN, _WHAT = r"[|\n\r]", "'|' or a line end"
_LAT = {tag: lat for lat, tag in LANGUAGES.items()}
_TUIS = {name: tui for tui, name in TYPES.items()}
_RELS = ("AQ", "CHD", "DEL", "PAR", "QB", "RB", "RL", "RN", "RO", "RQ", "RU", "SIB", "SY", "XR")
_REL_OF = {"isa": "CHD", "is_a": "CHD", "inverse_isa": "PAR"}
_NAME_COLUMNS = ("row", "text", "language", "source", "term_type", "is_suppressed")


def write_umls(content: Content, folder: Path, writing: Writing) -> Content:
    """Write the files; those that would be empty are not written.

    Args:
        content: The terminology.
        folder: An empty one.
        writing: Where what cannot be written goes.

    Returns:
        What was written.

    Raises:
        InputError: under "strict", for a value with ``|`` or a line end, or a language without a code of three letters.
    """
    content = _writable(content, writing)
    content = _retired_last(content, writing)
    vocabularies = _vocabularies(content, writing)
    levels = dict(vocabularies.select("source", "restriction_level").iter_rows())
    atoms = _atoms(content, writing, levels)
    _write(
        folder,
        "MRCONSO",
        atoms,
        "concept_id LAT TS LUI STT SUI ISPREF AUI - - - source term_type CODE text SRL SUPPRESS -",
    )
    _write(
        folder,
        "MRSTY",
        _numbered(content.semantic_types, "ATUI", "AT").with_columns(
            TUI=pl.col("semantic_type").replace_strict(_TUIS, default="")
        ),
        "concept_id TUI - semantic_type ATUI -",
    )
    _write(folder, "MRREL", _relations(content), "tail - CUI REL concept_id - CUI RELA RUI - source source - Y N -")
    definitions = _numbered(content.definitions, "ATUI", "AT", after=len(content.semantic_types))
    _write(folder, "MRDEF", _with_atoms(definitions, atoms), "concept_id AUI ATUI - source text N -")
    _write(folder, "MRCUI", _retired(content), "concept_id - REL - - replaced_by MAPIN")
    _write(
        folder,
        "MRSAB",
        vocabularies,
        "- - version source name - - - - - - - - restriction_level - - - - - - - Y Y - citation",
    )
    writing.lose("cross-references", len(content.cross_references))
    return replace(content, cross_references=content.cross_references.clear())


def _write(folder: Path, name: str, rows: pl.DataFrame, fields: str) -> None:
    """Write columns in this order, "-" for an empty field and words that are no column as they stand."""
    if rows.is_empty():
        return
    columns = [
        pl.col(field) if field in rows.columns else pl.lit("" if field == "-" else field) for field in fields.split()
    ]
    lines = rows.select(column.alias(str(number)) for number, column in enumerate([*columns, pl.lit("")]))
    lines.write_csv(
        folder / f"{name}.RRF", include_header=False, separator="|", quote_style="never", line_terminator="\n"
    )


def _writable(content: Content, writing: Writing) -> Content:
    ids = [
        without("concept_id", _FORBIDDEN, _WHAT),
        without("concept_id", "^\ufeff", "a byte order mark at its beginning"),
    ]
    content = writing.keep_concepts(content, [*ids, _without_or_null("replaced_by")])
    latin = {tag: _lat(tag) for tag in content.names["language"].unique()}
    has_lat = pl.col("language").replace_strict(latin, default=None).is_not_null()
    language = Check(
        has_lat, "language", "a language with a three-letter code", "language", "a language that RRF has no code for"
    )
    names = [*(without(column, _FORBIDDEN, _WHAT) for column in ("text", "source", "term_type")), language]
    return replace(
        content,
        names=writing.keep_writable(content.names, "names", names),
        semantic_types=writing.keep_writable(
            content.semantic_types, "semantic types", [without("semantic_type", _FORBIDDEN, _WHAT)]
        ),
        relations=writing.keep_writable(
            content.relations, "relations", [without(column, _FORBIDDEN, _WHAT) for column in ("relation", "source")]
        ),
        definitions=writing.keep_writable(
            content.definitions, "definitions", [without(column, _FORBIDDEN, _WHAT) for column in ("text", "source")]
        ),
    )


def _without_or_null(column: str) -> Check:
    """The same as `without` where a value may be missing."""
    check = without(column, _FORBIDDEN, _WHAT)
    return replace(check, holds=pl.col(column).is_null() | check.holds)


def _lat(tag: str) -> str | None:
    language = tag.partition("-")[0].lower()
    if language in _LAT:
        return _LAT[language]
    return language.upper() if len(language) == 3 and language.isascii() and language.isalpha() else None


def _retired_last(content: Content, writing: Writing) -> Content:
    """Named concepts, then retired ones, as the reader finds them."""
    content = writing.without_nameless(content)
    has_name = content.concepts["row"].is_in(content.names["row"].implode())
    named, retired = content.concepts.filter(has_name), content.concepts.filter(~has_name)
    is_active = named["status"] != OBSOLETE
    last_named = int(named["row"][-1]) if len(named) else 0
    for what, count in (
        ("places of concepts without a name, which come last", (retired["row"] < last_named).sum()),
        ("what replaced a concept that is active", (is_active & named["replaced_by"].is_not_null()).sum()),
    ):
        writing.lose(what, int(count))
    return replace(content, concepts=pl.concat([named, retired]))


def _vocabularies(content: Content, writing: Writing) -> pl.DataFrame:
    """What is known of the sources that have names: strings, empty where nothing is, the highest level first."""
    columns = ("source", "name", "version", "restriction_level", "citation")
    told = [one for origin in writing.origins for one in origin.get("source_vocabularies", ())]
    rows = [{column: one.get(column, "") for column in columns} for one in told]
    known = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String()))
    by_level = known.sort("source", "restriction_level", descending=[False, True])
    highest = by_level.filter(pl.col("source").is_first_distinct())
    return highest.join(content.names, on="source", how="semi")


def _atoms(content: Content, writing: Writing, levels: dict[str, str]) -> pl.DataFrame:
    """Names with the columns of MRCONSO."""
    names = content.names
    latin = {tag: _lat(tag) or "" for tag in names["language"].unique()}
    read_back = {tag: LANGUAGES.get(lat, lat.lower()) for tag, lat in latin.items()}
    atoms = names.with_columns(
        LAT=pl.col("language").replace_strict(latin, return_dtype=pl.String),
        SUPPRESS=pl.when("is_suppressed").then(pl.lit("Y")).otherwise(pl.lit("N")),
        CODE=pl.lit(NO_CODE),
        SRL=pl.col("source").replace_strict(levels, default="", return_dtype=pl.String),
    )
    inexact = names.filter(pl.col("language").replace_strict(read_back, return_dtype=pl.String) != pl.col("language"))
    writing.lose("languages that RRF names less exactly", len(inexact))
    as_read = atoms.with_columns(language="LAT", is_suppressed=pl.col("SUPPRESS") != "N")
    n_joined = as_read.select(pl.struct(_NAME_COLUMNS).n_unique()).item() if len(inexact) else None
    if n_joined is not None:
        n_distinct = names.select(pl.struct(_NAME_COLUMNS).n_unique()).item()
        writing.lose("names that then are the same", n_distinct - n_joined)
    rank = pl.col("is_suppressed").cast(pl.UInt8) * 2 + (pl.col("language") != "ENG")
    ranks = as_read.select("row", rank=rank).group_by("row").agg(pl.col("rank").first(), best=pl.col("rank").min())
    writing.lose(
        "preferred names that RRF cannot mark, since there is a name in English or one not suppressed",
        int((ranks["best"] < ranks["rank"]).sum()),
    )
    # A string is numbered by its first atom, a group of strings by that of its first.
    number = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32)
    atoms = atoms.with_columns(atom=number).with_columns(
        sui=pl.col("atom").first().over("LAT", "text"),
        lui=pl.col("atom").first().over("LAT", pl.col("text").str.to_lowercase()),
    )
    first = {
        "TS": pl.when(pl.col("lui") == pl.col("lui").first().over("row", "LAT"))
        .then(pl.lit("P"))
        .otherwise(pl.lit("S")),
        "STT": pl.when(pl.col("sui") == pl.col("sui").first().over("row", "lui"))
        .then(pl.lit("PF"))
        .otherwise(pl.lit("VO")),
        "ISPREF": pl.when(pl.col("atom") == pl.col("atom").first().over("row", "sui"))
        .then(pl.lit("Y"))
        .otherwise(pl.lit("N")),
    }
    return atoms.with_columns(**first).with_columns(
        AUI=_identifier("A", pl.col("atom")), SUI=_identifier("S", pl.col("sui")), LUI=_identifier("L", pl.col("lui"))
    )


def _identifier(letter: str, number: pl.Expr) -> pl.Expr:
    return pl.lit(letter) + number.cast(pl.String).str.zfill(8)


def _numbered(rows: pl.DataFrame, name: str, letter: str, *, after: int = 0) -> pl.DataFrame:
    number = pl.int_range(after + 1, after + len(rows) + 1, dtype=pl.UInt32, eager=True)
    return rows.with_columns(_identifier(letter, pl.lit(number)).alias(name))


def _relations(content: Content) -> pl.DataFrame:
    is_rel = pl.col("relation").is_in(_RELS)
    return _numbered(content.relations, "RUI", "R").with_columns(
        REL=pl.when(is_rel).then("relation").otherwise(pl.col("relation").replace_strict(_REL_OF, default="RO")),
        RELA=pl.when(is_rel).then(pl.lit("")).otherwise("relation"),
    )


def _with_atoms(definitions: pl.DataFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    """Definitions with an atom each: the first of the concept from the same source, else its first."""
    of_source = atoms.unique(("row", "source"), keep="first").select("row", "source", AUI="AUI")
    of_concept = atoms.unique("row", keep="first").select("row", any_AUI="AUI")
    return (
        definitions.join(of_source, on=("row", "source"), how="left", maintain_order="left")
        .join(of_concept, on="row", how="left", maintain_order="left")
        .with_columns(AUI=pl.coalesce("AUI", "any_AUI", pl.lit("")))
    )


def _retired(content: Content) -> pl.DataFrame:
    is_there = pl.col("replaced_by").is_in(content.concepts["concept_id"].implode())
    return content.concepts.filter(pl.col("status") == OBSOLETE).with_columns(
        REL=pl.when(pl.col("replaced_by").is_null()).then(pl.lit("DEL")).otherwise(pl.lit("SY")),
        MAPIN=pl.when(is_there).then(pl.lit("Y")).when(~is_there).then(pl.lit("N")),
    )
