"""The vocabulary tables of OMOP as files: tabs or commas divide the columns, or they are Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import polars as pl

from onoma.errors import InputError
from onoma.files.archives import SourceFile, is_zip, source_files
from onoma.files.delimited import check_header, first_line, read_tabbed_columns
from onoma.files.quoted import long_fields
from onoma.files.reading import Check, Reading
from onoma.files.table_rows import LINE, PARQUET, ending_of, parquet_columns, parquet_rows, text_rows

_TABLES = ("concept", "concept_synonym", "concept_relationship", "vocabulary")
_FIX = "give the zip or the folder of an Athena download or of a CDM's vocabulary tables, or its CONCEPT.csv"


def find_tables(source: Path) -> dict[str, SourceFile]:
    """The files of the tables that are read, by the tables' names in lower case; CONCEPT is among them.

    Args:
        source: A zip or folder, which may have them further down; or CONCEPT alone, beside which the others are.

    Raises:
        InputError: there is no CONCEPT, or a table twice.
    """
    if not source.exists():
        raise InputError("there is nothing here", path=source, fix="check the path")
    is_one_file = source.is_file() and not is_zip(source)
    if is_one_file and _table(SourceFile(source.name, source)) != "concept":
        raise InputError("this is no table CONCEPT", path=source, fix=_FIX)
    found: dict[str, SourceFile] = {}
    files = [(_table(file), file) for file in source_files(source.parent if is_one_file else source)]
    concepts = [file for name, file in files if name == "concept" and (not is_one_file or file.path == source)]
    beside = {PurePosixPath(file.name).parent for file in concepts}  # those of another download are not this one's
    for name, file in files:
        if name not in _TABLES:
            continue
        if PurePosixPath(file.name).parent not in beside or (name == "concept" and file not in concepts):
            continue
        former = found.setdefault(name, file)
        if former is not file:
            raise InputError(
                f"there are two files {file.base}: {former.name} and {file.name}",
                path=source,
                fix="name the folder of one download",
            )
    if "concept" not in found:
        raise InputError("there is no CONCEPT.csv or CONCEPT.parquet here", path=source, fix=_FIX)
    return found


def _table(file: SourceFile) -> str:
    """Which table it is, by its name; "": it is no file of a table."""
    name, dot, ending = file.base.lower().removesuffix(".gz").rpartition(".")
    return name if dot and ending in ("csv", *PARQUET) else ""


def table_rows(file: SourceFile, reading: Reading, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Batches of rows of a table: ``line``, then ``columns`` as they are written here, whatever the file's case.

    Raises:
        InputError: a column is missing or there twice, or the file is damaged; under "strict" also a bad row.
    """
    if ending_of(file) in PARQUET:
        header = parquet_columns(file, reading)
        check_header(header, columns, path=file.path, line=None, divided="as in a CDM")
        wanted = _as_spelled(header, columns)
        rows = parquet_rows(file, reading, columns=wanted, may_be_lists=())
        checks = [
            Check(~pl.col(name).str.contains("\0", literal=True), name, "no NUL character", columns[0])
            for name in columns
        ]
    else:
        line, text = first_line(file, reading)
        if "\t" in text or "," not in text:
            yield from read_tabbed_columns(file, reading, columns=columns)
            return
        with long_fields():
            header = [name.strip() for name in next(csv.reader([text]), [])]
        check_header(header, columns, path=file.path, line=line, divided="divided by tabs or commas")
        wanted = _as_spelled(header, columns)
        rows, checks = text_rows(file, reading, columns=wanted, delimiter=",", quoting="yes"), list[Check]()
    for batch in rows:
        named = batch.rename({LINE: "line", **dict(zip(wanted, columns, strict=True))})
        yield reading.keep_valid(named, checks, path=file.path) if checks else named


def _as_spelled(header: Sequence[str], columns: Sequence[str]) -> list[str]:
    spelled = {name.casefold(): name for name in header}
    return [spelled[column] for column in columns]
