"""A terminology as a folder of CSV files, as ``onoma terminology export csv`` writes it or you write it by hand.

RFC 4180, UTF-8, a header in each file; concepts are referred to by their codes. The files hold everything that a
terminology has, so that reading back an export gives the same terminology.

=======================  =============================================  ===============================================
file                     columns                                        holds
=======================  =============================================  ===============================================
concepts.csv             concept_id, status, replaced_by                concepts in their order; status "active" or
                                                                        "obsolete"; replaced_by is empty if there is no
                                                                        successor
names.csv                concept_id, text, language, source, term_type,  names; the one marked true in is_preferred (of
                         is_preferred, is_suppressed                    several or none, the first) is the preferred one
semantic_types.csv       concept_id, semantic_type                      a row for each type of a concept
relations.csv            head, relation, tail, source                   "head relation tail" reads as a sentence
definitions.csv          concept_id, text, source
cross_references.csv     concept_id, code, relation, source             relation: exactMatch, closeMatch, broadMatch,
                                                                        narrowMatch, relatedMatch or xref
=======================  =============================================  ===============================================

Only concepts.csv and names.csv are required; each file may be compressed with gzip. Columns may be in any order, and
others are ignored. Texts and codes are kept exactly, with outer white space and line ends. To read one table with
columns of your own choice, use format ``table``.

An export also has a manifest, ``onoma.json``, with the size in bytes and the SHA-256 of each file. If it is there, a
file that it names and that is missing or has changed (gzip is undone first) is refused. If you edit an export on
purpose, delete ``onoma.json``; a folder without one is read as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from onoma.artifacts import MANIFEST_NAME, Manifest, origins_of
from onoma.errors import ArtifactError, InputError, did_you_mean
from onoma.files.archives import SourceFile, source_files
from onoma.files.quoted import read_quoted
from onoma.files.reading import Check, Reading
from onoma.files.text_files import read_bytes
from onoma.terminology.assembly import (
    SOURCE_CONCEPTS,
    SOURCE_CROSS_REFERENCES,
    SOURCE_DEFINITIONS,
    SOURCE_NAMES,
    SOURCE_RELATIONS,
    SOURCE_TYPES,
    SourceTables,
)
from onoma.terminology.languages import LANGUAGE_TAG, tidy_language
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.options import ReaderOptions
from onoma.terminology.tables import ACTIVE, MAPPING_RELATIONS, OBSOLETE
from onoma.terminology.writers.writing import KIND as EXPORT_KIND

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "concepts": ("concept_id", "status", "replaced_by"),
    "names": ("concept_id", "text", "language", "source", "term_type", "is_preferred", "is_suppressed"),
    "semantic_types": ("concept_id", "semantic_type"),
    "relations": ("head", "relation", "tail", "source"),
    "definitions": ("concept_id", "text", "source"),
    "cross_references": ("concept_id", "code", "relation", "source"),
}
_REQUIRED = ("concepts", "names")
_EMPTY = {
    "concepts": SOURCE_CONCEPTS,
    "names": SOURCE_NAMES,
    "semantic_types": SOURCE_TYPES,
    "relations": SOURCE_RELATIONS,
    "definitions": SOURCE_DEFINITIONS,
    "cross_references": SOURCE_CROSS_REFERENCES,
}
_NEEDED = ("concept_id", "text", "language", "semantic_type", "head", "relation", "tail", "code")
"""Columns without empty cells."""
_EDITED = f"export again, or, if the folder was edited on purpose, delete {MANIFEST_NAME}"
_VALUES = {
    ("concepts", "status"): (ACTIVE, OBSOLETE),
    ("names", "is_preferred"): ("true", "false"),
    ("names", "is_suppressed"): ("true", "false"),
    ("cross_references", "relation"): MAPPING_RELATIONS,
}


def read_csv_folder(source: str, options: ReaderOptions, reading: Reading) -> SourceTables:
    """Read a folder of CSV files.

    Args:
        source: The folder, or a zip archive of it.
        options: None.
        reading: Where bad rows go.

    Raises:
        InputError: no concepts.csv or names.csv, one without a column, or a file that is not as its manifest says;
            under "strict" also a bad row.
    """
    files, origins = _find_files(Path(source), reading)
    tables = {name: _read(name, files.get(name), reading) for name in COLUMNS}
    concepts = _distinct(tables["concepts"], files["concepts"].path, reading)
    return SourceTables(
        path=files["concepts"].path,
        concepts=concepts.select(SOURCE_CONCEPTS.names()),
        names=_of_known(tables["names"], concepts, files["names"].path, reading).select(SOURCE_NAMES.names()),
        semantic_types=tables["semantic_types"],
        relations=tables["relations"],
        definitions=tables["definitions"],
        cross_references=tables["cross_references"],
        paths={name: file.path for name, file in files.items()},
        origins=origins,
    )


def _find_files(source: Path, reading: Reading) -> tuple[dict[str, SourceFile], list[dict[str, Any]]]:
    """The files by table, and the origins that a manifest beside them names."""
    if source.is_file() and source.suffix.lower() != ".zip":
        raise InputError(
            "this is a file",
            path=source,
            expected="a folder with concepts.csv and names.csv, or a zip archive of it",
            fix="name the folder; a single table is read with format table, which is told what its columns are",
        )
    wanted = {f"{name}.csv{suffix}": name for name in COLUMNS for suffix in ("", ".gz")}
    found: dict[str, SourceFile] = {}
    files = source_files(source)
    for file in files:
        name = wanted.get(file.base.lower())
        if name is None:
            if file.base.lower().removesuffix(".gz").endswith(".csv"):
                meant = did_you_mean(file.base.lower(), set(wanted))
                reading.note(f"files that are not of this format, skipped: {file.name}{meant}", 1)
            continue
        if name in found:
            raise InputError(f"there are two files {name}.csv here", path=file.path, fix="keep one of them")
        found[name] = file
    for name in _REQUIRED:
        if name not in found:
            raise InputError(
                f"there is no {name}.csv here", path=source, expected=", ".join(f"{table}.csv" for table in COLUMNS)
            )
    return found, _check_manifest([file for file in files if file.folder == found["concepts"].folder])


def _check_manifest(files: Sequence[SourceFile]) -> list[dict[str, Any]]:
    """Refuse what is not as it was exported, where a manifest says how that was; what it says of its origins."""
    origins: list[dict[str, Any]] = []
    for file in files:
        if file.base.lower() != MANIFEST_NAME:
            continue
        with file.open() as handle:
            text = handle.read()
        try:
            manifest = Manifest.from_text(text, file.path)
        except ArtifactError:
            raise InputError("this manifest cannot be read", path=file.path, fix=_EDITED) from None
        if manifest.kind != EXPORT_KIND:
            continue
        origins = origins_of(manifest.config)
        there = {other.base.lower(): other for other in files}
        for name, entry in manifest.files.items():
            csv = there.get(name, there.get(f"{name}.gz"))
            place = file.path.with_name(name) if csv is None else csv.path
            n_bytes, sha256 = (None, "") if csv is None else _fingerprint(csv)
            if n_bytes is None:
                problem = f"this file is missing, so the folder is not as it was exported ({MANIFEST_NAME} names it)"
            elif n_bytes != entry.bytes:
                problem = f"this file is not as it was exported: it has {n_bytes:,} bytes, and had {entry.bytes:,}"
            elif sha256 != entry.sha256:
                problem = "this file is not as it was exported: its content has changed"
            else:
                continue
            raise InputError(problem, path=place, fix=_EDITED)
    return origins


def _fingerprint(file: SourceFile) -> tuple[int, str]:
    """Bytes and SHA-256, gzip undone."""
    if not file.size():
        return 0, hashlib.sha256().hexdigest()
    n_bytes, digest = 0, hashlib.sha256()
    for block in read_bytes(file):
        n_bytes += len(block.data)
        digest.update(block.data)
    return n_bytes, digest.hexdigest()


def _read(name: str, file: SourceFile | None, reading: Reading) -> pl.DataFrame:
    if file is None:
        return pl.DataFrame(schema=_EMPTY[name])
    parts = [_prepared(name, rows) for rows in _checked_rows(name, file, reading)]
    return pl.concat([_prepared(name, _no_rows(name)), *parts])


def _no_rows(name: str) -> pl.DataFrame:
    return pl.DataFrame(schema={"line": pl.UInt32, **dict.fromkeys(COLUMNS[name], pl.String)})


def _checked_rows(name: str, file: SourceFile, reading: Reading) -> Iterator[pl.DataFrame]:
    columns, path = COLUMNS[name], file.path

    def check_fields(fields: list[str], line: int) -> None:
        for column in columns:
            if fields.count(column) != 1:
                raise InputError(
                    f"there is {'no' if column not in fields else 'more than one'} column '{column}'."
                    + did_you_mean(column, set(fields) - set(columns)),
                    path=path,
                    line=line,
                    field=column,
                    expected=f"the columns {', '.join(columns)}",
                    found=", ".join(fields),
                )

    checks = [
        Check(pl.col(column).str.strip_chars() != "", column, "a value", shown)
        for column, shown in zip(columns, (*columns[1:], columns[0]), strict=True)
        if column in _NEEDED
    ]
    if name == "names":
        checks.append(Check(pl.col("language").str.contains(LANGUAGE_TAG), "language", "a BCP 47 tag", "language"))
    for (table, column), values in _VALUES.items():
        if table == name:
            checks.append(Check(pl.col(column).is_in(values), column, f"one of {', '.join(values)}", column))
    for rows in read_quoted(
        file, reading, delimiter=",", keep=columns, check_fields=check_fields, keep_carriage_returns=True
    ):
        yield reading.keep_valid(rows, checks, path=path)


def _prepared(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    if name == "concepts":
        return rows.with_columns(replaced_by=pl.when(pl.col("replaced_by").str.strip_chars() != "").then("replaced_by"))
    if name == "names":
        spelt = {tag: tidy_language(tag) for tag in rows["language"].unique()}
        return rows.with_columns(
            language=pl.col("language").replace_strict(spelt, return_dtype=pl.String),
            preference=pl.when(pl.col("is_preferred") == "true").then(0).otherwise(1).cast(pl.UInt8),
            is_suppressed=pl.col("is_suppressed") == "true",
        )
    return rows.select(_EMPTY[name].names())


def _distinct(concepts: pl.DataFrame, path: Path, reading: Reading) -> pl.DataFrame:
    is_first = concepts["concept_id"].is_first_distinct()
    reading.reject_rows(
        concepts.filter(~is_first).select("line", text="concept_id"),
        "a concept_id that occurred before",
        path=path,
        field="concept_id",
    )
    return concepts.filter(is_first)


def _of_known(names: pl.DataFrame, concepts: pl.DataFrame, path: Path, reading: Reading) -> pl.DataFrame:
    is_known = names["concept_id"].is_in(concepts["concept_id"].implode())
    reading.reject_rows(
        names.filter(~is_known).select("line", text=pl.format("{} {}", "concept_id", "text")),
        "a name of a concept that concepts.csv does not list",
        path=path,
        field="concept_id",
    )
    return names.filter(is_known)


FORMAT = Format(
    name="csv",
    description="a folder of CSV files with a whole terminology, as onoma terminology export csv writes it",
    source="the folder with concepts.csv, names.csv and the others, or a zip archive of it",
    obtain="onoma terminology export csv, or your own tables in this form",
    licence="that of the vocabulary",
    options=ReaderOptions,
    read=read_csv_folder,
)
