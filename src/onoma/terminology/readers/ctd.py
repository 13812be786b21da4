"""CTD's vocabularies of diseases (MEDIC: MeSH and OMIM joined) and chemicals, http://ctdbase.org/downloads/.

``CTD_diseases`` and ``CTD_chemicals``, as ``.csv`` or ``.tsv``, plain or gzip. A file begins with lines that start with
``#``; the one after ``# Fields:`` names the columns, which tells diseases from chemicals and commas from tabs. Below
these lines, ``#`` is an ordinary character. Several values in one cell are separated by ``|``. Columns are found by
name, because CTD has added and renamed some over the years.

====================================  ================================================================================
column                                becomes
====================================  ================================================================================
DiseaseID, ChemicalID                 the code, unchanged: ``MESH:D003924``, ``OMIM:264300``
DiseaseName, ChemicalName             the preferred name, term type "label"
Synonyms                              names of term type "synonym"
MESHSynonyms, CTDCuratedSynonyms      names of term type "mesh_synonym", "ctd_synonym" (chemicals since 2024)
Definition                            a definition
ParentIDs                             relations "is_a"
SlimMappings                          semantic types: MEDIC-Slim, e.g. "Cardiovascular disease"
AltDiseaseIDs                         cross-references "exactMatch": other codes of MeSH and OMIM for the same disease
CasRN, InChIKey                       cross-references "xref", written ``CAS:28227-36-3``, ``InChIKey:...``
PubChemCID, PubChemSID, DTXSID        cross-references "xref", unchanged: ``CID:2836600``
====================================  ================================================================================

TreeNumbers and ParentTreeNumbers are not read; ParentIDs say the same. A name that its concept already has is left out
and counted. Rows with the same code are combined. All concepts are active and all names English, with source "CTD".

CTD offers the same vocabularies as OBO (format ``obo``). Its MEDIC of 2012, in lines ``id||name|name``, is read by
format ``biosyn`` with ``separator=|``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import polars as pl

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.delimited import read_delimited
from onoma.files.quoted import read_quoted
from onoma.files.reading import Check, Reading
from onoma.files.text_files import only_file, read_blocks
from onoma.terminology.assembly import (
    SOURCE_CROSS_REFERENCES,
    SOURCE_DEFINITIONS,
    SOURCE_NAMES,
    SOURCE_RELATIONS,
    SOURCE_TYPES,
    SourceTables,
)
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.options import ReaderOptions

_SOURCE = "CTD"
_IDS = {"DiseaseID": "DiseaseName", "ChemicalID": "ChemicalName"}
_SYNONYMS = {"Synonyms": "synonym", "MESHSynonyms": "mesh_synonym", "CTDCuratedSynonyms": "ctd_synonym"}
_REFERENCES = {
    "AltDiseaseIDs": ("exactMatch", ""),
    "CasRN": ("xref", "CAS:"),
    "PubChemCID": ("xref", ""),
    "PubChemSID": ("xref", ""),
    "DTXSID": ("xref", ""),
    "InChIKey": ("xref", "InChIKey:"),
}
_CREATED = "Report created:"
_NOT_READ = ("TreeNumbers", "ParentTreeNumbers")
_ADVICE = "get CTD_diseases or CTD_chemicals (.csv.gz or .tsv.gz) from http://ctdbase.org/downloads"


@dataclass(frozen=True)
class _Head:
    """What stands above the rows."""

    fields: tuple[str, ...]
    delimiter: str
    n_lines: int
    release: str

    @property
    def id(self) -> str:
        return next(column for column in _IDS if column in self.fields)

    @property
    def name(self) -> str:
        return _IDS[self.id]

    @property
    def keep(self) -> tuple[str, ...]:
        """Columns that are read."""
        known = {self.id, self.name, "Definition", "ParentIDs", "SlimMappings", *_SYNONYMS, *_REFERENCES}
        return tuple(field for field in self.fields if field in known)


def read_ctd(source: str, options: ReaderOptions, reading: Reading) -> SourceTables:
    """Read a vocabulary of CTD.

    Args:
        source: The file, plain, gzip, or alone in a zip archive.
        options: None.
        reading: Where bad rows go.

    Raises:
        InputError: no such file, or no line that names its columns; under "strict" also a row without code or name,
            or with another number of fields.
    """
    file = only_file(Path(source))
    path = file.path
    head = _read_head(file, reading)
    other = [field for field in head.fields if field not in (*head.keep, *_NOT_READ)]
    reading.note(f"columns that are not read: {', '.join(other)}", len(other))
    names = [pl.DataFrame(schema=SOURCE_NAMES)]
    types, relations = [pl.DataFrame(schema=SOURCE_TYPES)], [pl.DataFrame(schema=SOURCE_RELATIONS)]
    definitions, references = [pl.DataFrame(schema=SOURCE_DEFINITIONS)], [pl.DataFrame(schema=SOURCE_CROSS_REFERENCES)]
    for batch in _rows(file, head, reading):
        is_text = (pl.col(column).str.strip_chars() != "" for column in (head.id, head.name))
        checks = (
            Check(next(is_text), head.id, "a code, e.g. MESH:D003924", head.name),
            Check(next(is_text), head.name, "a name", head.id),
        )
        rows = reading.keep_valid(batch, checks, path=path).with_columns(
            concept_id=pl.col(head.id).str.strip_chars(), source=pl.lit(_SOURCE)
        )
        names.append(_names(rows, head))
        types.append(
            _listed(rows, "SlimMappings", head).rename({"value": "semantic_type"}).select(SOURCE_TYPES.names())
        )
        relations.append(
            _listed(rows, "ParentIDs", head)
            .rename({"concept_id": "head", "value": "tail"})
            .select("head", pl.lit("is_a").alias("relation"), "tail", "source", "line")
        )
        if "Definition" in head.keep:
            texts = rows.select("concept_id", pl.col("Definition").str.strip_chars().alias("text"), "source", "line")
            definitions.append(texts.filter(pl.col("text") != ""))
        for column, (relation, prefix) in _REFERENCES.items():
            code = pl.when(pl.col("value").str.starts_with(prefix)).then("value").otherwise(prefix + pl.col("value"))
            references.append(
                _listed(rows, column, head)
                .with_columns(code=code, relation=pl.lit(relation))
                .select(SOURCE_CROSS_REFERENCES.names())
            )
    found = pl.concat(names)
    distinct = found.unique(("concept_id", "text"), keep="first", maintain_order=True)
    reading.note("synonyms spelled as another name of their concept, left out", len(found) - len(distinct))
    return SourceTables(
        path=path,
        names=distinct,
        semantic_types=pl.concat(types),
        relations=pl.concat(relations),
        definitions=pl.concat(definitions),
        cross_references=pl.concat(references),
        release=head.release,
        may_refer_outside=True,  # a part of the vocabulary, cut out with its head, points to parents left behind
    )


def _read_head(file: SourceFile, reading: Reading) -> _Head:
    lines = next(iter(read_blocks(file, reading))).lines()
    n_above = sum(1 for _ in takewhile(lambda line: line.startswith(b"#"), lines))
    release = ""
    # Some people strip the comments and leave the names of the columns as a first line.
    for number, line in enumerate(lines[: n_above + 1], 1):
        text = line.decode("utf-8", "replace").lstrip("#").strip(" ")
        if text.startswith(_CREATED):
            release = text.removeprefix(_CREATED).strip()
        delimiter = "\t" if "\t" in text else ","
        fields = tuple(field.strip().strip('"') for field in text.split(delimiter))
        if any(column in fields and name in fields for column, name in _IDS.items()):
            if len(set(fields)) != len(fields):
                raise InputError("two columns have the same name", path=file.path, line=number, found=text, fix=_ADVICE)
            n_below = _n_comments(lines[number:], delimiter.encode(), len(fields) - 1)
            return _Head(fields, delimiter, number + n_below, release)
    raise InputError(
        "no line at its beginning names the columns of CTD",
        path=file.path,
        expected="# Fields:, and then # with DiseaseName and DiseaseID, or ChemicalName and ChemicalID",
        fix=_ADVICE,
    )


def _n_comments(lines: list[bytes], delimiter: bytes, n_dividers: int) -> int:
    """How many lines at the beginning are comments. A row whose name begins with "#" has more dividers than those."""
    is_comment = (line.startswith(b"#") and line.count(delimiter) < n_dividers for line in lines)
    return sum(1 for _ in takewhile(bool, is_comment))


def _rows(file: SourceFile, head: _Head, reading: Reading) -> Iterator[pl.DataFrame]:
    if head.delimiter == ",":
        return read_quoted(file, reading, delimiter=",", fields=head.fields, keep=head.keep, skip_lines=head.n_lines)
    return read_delimited(
        file,
        reading,
        separator=head.delimiter,
        fields=head.fields,
        keep=head.keep,
        skip_lines=head.n_lines,
        skip_blank_lines=True,
    )


def _listed(rows: pl.DataFrame, column: str, head: _Head) -> pl.DataFrame:
    """A row for each value in the cells of a column: concept_id, value, source, line."""
    cells = pl.col(column) if column in head.keep else pl.lit("")
    return (
        rows.select("concept_id", cells.str.split("|").alias("value"), "source", "line")
        .explode("value")
        .with_columns(pl.col("value").str.strip_chars())
        .filter(pl.col("value") != "")
    )


def _names(rows: pl.DataFrame, head: _Head) -> pl.DataFrame:
    """Names, those of a row together, the label first."""
    parts = [rows.select("concept_id", pl.col(head.name).str.strip_chars().alias("value"), "source", "line")]
    parts += [_listed(rows, column, head) for column in _SYNONYMS]
    kinds = ["label", *_SYNONYMS.values()]
    return (
        pl.concat(
            part.with_columns(term_type=pl.lit(kind), preference=pl.lit(0 if kind == "label" else 1, dtype=pl.UInt8))
            for part, kind in zip(parts, kinds, strict=True)
        )
        .sort("line", maintain_order=True)
        .with_columns(language=pl.lit("en"), is_suppressed=pl.lit(False))
        .rename({"value": "text"})
        .select(SOURCE_NAMES.names())
    )


FORMAT = Format(
    name="ctd",
    description="vocabularies of the Comparative Toxicogenomics Database: diseases (MEDIC) and chemicals",
    source="CTD_diseases or CTD_chemicals as .csv or .tsv, plain or gzip",
    obtain="http://ctdbase.org/downloads (Chemical vocabulary, Disease vocabulary)",
    licence="free for research, with citation; for other uses see CTD's terms (http://ctdbase.org/about/legal.jsp)",
    options=ReaderOptions,
    read=read_ctd,
)
