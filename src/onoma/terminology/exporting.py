"""Export a terminology to a format that other tools read, so that importing the result gives it back.

What a format has no place for is counted in the report. See the module of each format in `onoma.terminology.writers`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import get_args

import polars as pl

from onoma.artifacts import (
    carried_origins,
    ensure_file_writable,
    ensure_plain_name,
    ensure_writable,
    origins_of,
    write_artifact,
    write_file,
)
from onoma.errors import InputError, one_of
from onoma.files.reading import Check, OnError
from onoma.quantities import quantity
from onoma.terminology.assembly import without_repeats
from onoma.terminology.terminology import Terminology, as_terminology
from onoma.terminology.writers.biosyn import write_biosyn
from onoma.terminology.writers.csv_folder import write_csv_folder
from onoma.terminology.writers.obographs import write_obographs
from onoma.terminology.writers.umls import write_umls
from onoma.terminology.writers.writing import KIND, Content, Writing, not_blank, without


@dataclass(frozen=True)
class ExportFormat:
    """A format that can be written.

    Attributes:
        name: As the command line takes it; the format of the same name reads it.
        description: What it is, in a line.
        is_folder: Whether OUT becomes a folder, or a file.
        write: ``write(content, out, writing)`` returns what it wrote.
    """

    name: str
    description: str
    is_folder: bool
    write: Callable[[Content, Path, Writing], Content]


@dataclass(frozen=True)
class ExportReport:
    """What an export did; ``str()`` is a text for people.

    Attributes:
        format: Name of the format.
        path: What was written.
        n_concepts: Concepts in it.
        n_names: Names in it.
        n_relations: Relations in it.
        n_definitions: Definitions in it.
        n_cross_references: Codes of other vocabularies in it.
        not_carried: What the format has no place for, and how many.
        left_out: What would have broken the file and was left out (under "skip"), and how many.
        seconds: Wall time.
    """

    format: str
    path: Path
    n_concepts: int
    n_names: int
    n_relations: int
    n_definitions: int
    n_cross_references: int
    not_carried: dict[str, int]
    left_out: dict[str, int]
    seconds: float

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {quantity(self.n_concepts, 'concept')}, {quantity(self.n_names, 'name')}, "
            f"{quantity(self.n_relations, 'relation')}, {quantity(self.n_definitions, 'definition')}, "
            f"{quantity(self.n_cross_references, 'cross-reference')} as {self.format} "
            f"in {self.seconds:.1f} s"
        ]
        for title, counts in (("this format does not carry", self.not_carried), ("left out", self.left_out)):
            if counts:
                lines.append(f"  {title}:")
                lines += [f"    {what}: {count:,}" for what, count in counts.items()]
        return "\n".join(lines)


def export_formats() -> Mapping[str, ExportFormat]:
    """All formats that can be written, by name.

    Example:
        >>> list(export_formats())
        ['umls', 'obographs', 'biosyn', 'csv']
    """
    formats = (
        ExportFormat("umls", "UMLS Rich Release Format: a folder of MRCONSO.RRF and others", True, write_umls),
        ExportFormat("obographs", "OBO Graphs JSON: a .json file", False, write_obographs),
        ExportFormat("biosyn", "dictionary of BioSyn and SapBERT: a text file of id||name", False, write_biosyn),
        ExportFormat("csv", "everything, as a folder of CSV files", True, write_csv_folder),
    )
    return MappingProxyType({entry.name: entry for entry in formats})


def export_terminology(
    terminology: Terminology | str | Path,
    format: str,
    out: str | Path,
    *,
    on_error: OnError = "strict",
    overwrite: bool = False,
) -> ExportReport:
    """Write a terminology in some format.

    The same terminology gives the same bytes (except for a folder's manifest, which says when it was written).

    Args:
        terminology: The terminology, or its folder.
        format: One of `export_formats`.
        out: Where to write the folder or file. It appears complete or not at all.
        on_error: "strict": a value that would break the file ends the export. "skip": such values are left out and
            counted.
        overwrite: Replace an export (of a folder), or a file, at ``out``.

    Raises:
        ConfigError: no such format or policy, or a file whose name says that it is compressed.
        InputError: a terminology without names; under "strict" also a value that the format cannot hold.
        ArtifactError: ``terminology`` is not one, or ``out`` is taken.
    """
    started = time.perf_counter()
    known = export_formats()
    chosen = known[one_of(format, known, "format to export to")]
    one_of(on_error, get_args(OnError), "on_error")
    if chosen.is_folder:
        ensure_writable(out, KIND, overwrite=overwrite)
    else:
        ensure_plain_name(out)
        ensure_file_writable(out, overwrite=overwrite)
    opened = as_terminology(terminology)
    writing = Writing(opened.path, on_error, origins=origins_of(opened.manifest.config))

    def write(aside: Path) -> Content:
        written = chosen.write(_checked(Content.of(opened), writing), aside, writing)
        if written.names.is_empty():
            reasons = "; ".join(f"{what}: {count:,}" for what, count in writing.left_out.items())
            raise InputError("no name of it can be written" + (f" ({reasons})" if reasons else ""), path=opened.path)
        return written

    if chosen.is_folder:
        config = {"format": format, "on_error": on_error, **carried_origins(opened.manifest.config)}
        with write_artifact(
            out, KIND, config=config, parents=[opened.manifest.as_parent()], overwrite=overwrite
        ) as aside:
            written = write(aside)
    else:
        with write_file(out, overwrite=overwrite) as aside:
            written = write(aside)
    return ExportReport(
        format=format,
        path=Path(out),
        n_concepts=len(written.concepts),
        n_names=len(written.names),
        n_relations=len(written.relations),
        n_definitions=len(written.definitions),
        n_cross_references=len(written.cross_references),
        not_carried=writing.not_carried,
        left_out=writing.left_out,
        seconds=time.perf_counter() - started,
    )


def _checked(content: Content, writing: Writing) -> Content:
    """What no format carries: blank texts and NUL, which no reader takes, and the same said twice."""

    def texts(*columns: str) -> list[Check]:
        return [check for column in columns for check in (not_blank(column), without(column, "\0", "a NUL character"))]

    content = writing.keep_concepts(content, texts("concept_id"))
    columns = {
        "names": ("text", "language"),
        "semantic_types": ("semantic_type",),
        "relations": ("relation",),
        "definitions": ("text",),
        "cross_references": ("code",),
    }
    keys = {"names": ["row", "text", "language", "source", "term_type", "is_suppressed"]}
    tables = {}
    for name, checked in columns.items():
        shown = name.replace("_", " ")
        table = writing.keep_writable(getattr(content, name), shown, texts(*checked))
        tables[name] = without_repeats(table, keys.get(name, table.columns))
        writing.lose(f"{shown} given more than once", len(table) - len(tables[name]))
    content = replace(content, **tables)
    first = content.names.group_by("row").agg(
        pl.col("is_preferred").first(), n=pl.col("is_preferred").sum(), text=pl.col("text").first()
    )
    marked = content.concepts.join(first, on="row", how="left").filter(
        ~pl.col("is_preferred")
        | (pl.col("n") != 1)
        | (pl.col("text") != pl.col("preferred_name"))
        | (pl.col("text").is_null() & (pl.col("preferred_name") != ""))
    )
    writing.lose("preferred names that are not the first names of their concepts and the only ones marked", len(marked))
    return content
