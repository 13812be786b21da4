"""Translations of ontologies in Babelon tables, as published for the Human Phenotype Ontology.

Specification: https://monarch-initiative.github.io/babelon.

There are two kinds of tab-separated files, recognised by their header; fields may be in double quotes:

=====================  ===========================================================================================
``*.babelon.tsv``      becomes
=====================  ===========================================================================================
subject_id             the code of the concept
predicate_id           what is translated. rdfs:label and skos:prefLabel: a name of term type "label";
                       oio:hasExactSynonym (hasBroadSynonym, ..., skos:altLabel): "exact_synonym", ...; IAO:0000115 and
                       skos:definition: a definition. Others are counted and left out
translation_value      the name or the definition
translation_language   the language of the name
translation_status     option ``statuses`` says which are kept; an empty status counts as CANDIDATE
translation_precision  a label or exact synonym that is BROADER than what it translates is a "broad_synonym", NARROWER
                       a "narrow_synonym", CLOSE a "related_synonym"
source_value,          with ``source_names=yes``, also the name that was translated, in its language
source_language
=====================  ===========================================================================================

=====================  ===========================================================================================
``*.synonyms.tsv``     becomes (further synonyms of HPO, in a template of ROBOT)
=====================  ===========================================================================================
subject_id             the code of the concept
translation_value      names of term type "exact_synonym", separated by ``|``
comment or Status      the status
=====================  ===========================================================================================

A ``*.synonyms.tsv`` file gives its language in a second line (``AL oboInOwl:hasExactSynonym@cs``), or else in its name
(``hp-nl.synonyms.tsv``).

The preferred name is the label of the ontology with ``source_names=yes``, else the first official label, else the first
label, else the first synonym. The files of a folder are read in order of their names, and what they say about one code
is combined. Translations are not a terminology by themselves: read the ontology with its own format and merge the two.

Not read: translator, date, confidence, type (a CORRECTION counts as a translation).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import polars as pl
from pydantic import BeforeValidator, Field

from onoma.errors import InputError
from onoma.files.archives import SourceFile, source_files
from onoma.files.quoted import read_quoted
from onoma.files.reading import Check, Reading, check_chosen
from onoma.files.text_files import read_blocks
from onoma.terminology.assembly import SOURCE_DEFINITIONS, SOURCE_NAMES, SourceTables
from onoma.terminology.iris import last_part, synonym_type
from onoma.terminology.languages import LANGUAGE_TAG, tidy_language
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.ontology import LABEL, SCOPES, source_of
from onoma.terminology.readers.options import LanguageTags, ReaderOptions, split_words

Status = Literal["OFFICIAL", "UNDER_REVIEW", "CANDIDATE", "NOT_TRANSLATED"]
STATUSES = get_args(Status)
_DEFINITION = "definition"
_TERM_TYPES = {
    "label": LABEL,
    "prefLabel": LABEL,
    "altLabel": synonym_type("exact"),
    **{f"has{scope.capitalize()}Synonym": synonym_type(scope) for scope in SCOPES},
    **{f"{scope}Synonym": synonym_type(scope) for scope in SCOPES},
    "0000115": _DEFINITION,
    "IAO_0000115": _DEFINITION,
    "definition": _DEFINITION,
}
"""By the last part of ``predicate_id``."""
_LESS_PRECISE = {
    "BROADER": synonym_type("broad"),
    "NARROWER": synonym_type("narrow"),
    "CLOSE": synonym_type("related"),
}
_ROWS = pl.Schema(
    {
        "line": pl.UInt32(),
        **dict.fromkeys(
            ("subject", "predicate", "text", "language", "status", "precision", "source_text", "source_language"),
            pl.String(),
        ),
    }
)
_SYNONYM = "oboInOwl:hasExactSynonym"
_LANGUAGE_IN_NAME = re.compile(r"[-_.]([A-Za-z]{2,3}(?:-[A-Za-z]{2,4})?)\.(?:babelon|synonyms)\.tsv(?:\.gz)?$")
_LANGUAGE_IN_TEMPLATE = re.compile(r"AL?\s+\S+@([A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*)(?:\s|$)")
_EXPECTED = "the columns subject_id and translation_value"


def _statuses(value: Any) -> Any:
    words = split_words(value)
    return tuple(str(word).upper() for word in words) if isinstance(words, list | tuple) else words


class BabelonOptions(ReaderOptions):
    """Options of the Babelon reader."""

    statuses: Annotated[tuple[Status, ...], BeforeValidator(_statuses)] = Field(
        default=("OFFICIAL", "UNDER_REVIEW", "CANDIDATE"),
        min_length=1,
        description="keep translations of these statuses: OFFICIAL, UNDER_REVIEW, CANDIDATE, NOT_TRANSLATED",
    )
    languages: LanguageTags = Field(
        default=(), description="keep translations into these languages, e.g. fr,de; empty: all"
    )
    source_names: bool = Field(
        default=False, description="keep the names that were translated too, mostly English (yes or no)"
    )


def read_babelon(source: str, options: BabelonOptions, reading: Reading) -> SourceTables:
    """Read translations.

    Args:
        source: A ``.tsv`` file, plain or gzip, or a folder or zip archive of several.
        options: What to keep.
        reading: Where bad rows go.

    Raises:
        InputError: no such file, or no table of translations; under "strict" also a row without code or text, or with
            a status, precision or language that cannot be.
    """
    path = Path(source)
    names, definitions = [pl.DataFrame(schema=SOURCE_NAMES)], [pl.DataFrame(schema=SOURCE_DEFINITIONS)]
    last, languages = path, set[str]()
    for table in _tables(path, reading):
        last = table.file.path
        for rows in table.rows(reading):
            checked = _checked(rows, last, reading)
            languages.update(map(tidy_language, checked["language"].unique()))
            good = _kept(checked, options, reading)
            names.append(_names(good, options))
            definitions.append(_definitions(good))
    check_chosen("languages", options.languages, languages, path=path)
    found = pl.concat(names)
    distinct = (  # of what stands there as a label and as a synonym the label
        found.with_row_index("row")
        .sort("preference", "row")
        .unique(["concept_id", "text", "language"], keep="first", maintain_order=True)
        .sort("row")
        .drop("row")
    )
    reading.note("names given more than once", len(found) - len(distinct))
    return SourceTables(
        path=last if last != path and len(reading.files) == 1 else path,
        names=distinct,
        definitions=pl.concat(definitions),
        may_refer_outside=True,
    )


@dataclass(frozen=True)
class _Table:
    """A file of translations.

    Attributes:
        file: On disk or in an archive.
        columns: Of its header.
        language: Of all its rows, where it has no column for it.
        n_head_lines: How many lines come before the translations.
    """

    file: SourceFile
    columns: Sequence[str]
    language: str
    n_head_lines: int

    def rows(self, reading: Reading) -> Iterator[pl.DataFrame]:
        """Its rows with the columns of `_ROWS`."""
        is_profile = "predicate_id" in self.columns
        sources = {
            "subject": "subject_id",
            "predicate": "predicate_id",
            "text": "translation_value",
            "language": "translation_language",
            "status": self._first_of("translation_status", "status", "Status", *(() if is_profile else ("comment",))),
            "precision": "translation_precision",
            "source_text": "source_value",
            "source_language": "source_language",
        }
        there = {name: column for name, column in sources.items() if column in self.columns}
        elsewhere = {"language": self.language, "predicate": _SYNONYM, "source_language": "en"}
        for batch in read_quoted(
            self.file,
            reading,
            delimiter="\t",
            keep=list(there.values()),
            fields=self.columns,
            skip_lines=self.n_head_lines,
        ):
            rows = batch.select(
                "line",
                *(
                    pl.col(there[name]).alias(name) if name in there else pl.lit(elsewhere.get(name, "")).alias(name)
                    for name in sources
                ),
            )
            if not is_profile:
                is_status = pl.col("status").str.strip_chars().str.to_uppercase().is_in(STATUSES)
                pieces = (
                    pl.col("text").str.split("|").list.eval(pl.element().filter(pl.element().str.strip_chars() != ""))
                )
                rows = rows.with_columns(pieces, status=pl.when(is_status).then("status").otherwise(pl.lit("")))
                rows = rows.explode("text").with_columns(pl.col("text").fill_null(""))
            rows = rows.with_columns(pl.exclude("line").str.strip_chars())
            yield rows.with_columns(pl.col("source_language").replace("", "en")).cast(_ROWS)

    def _first_of(self, *columns: str) -> str:
        return next((column for column in columns if column in self.columns), "")


def _tables(source: Path, reading: Reading) -> Iterator[_Table]:
    files = source_files(source)
    is_single = len(files) == 1 and not source.is_dir()
    n_found = 0
    for file in files:
        if not is_single and not file.base.lower().endswith((".tsv", ".tsv.gz")):
            continue
        if not is_single and not file.size():
            reading.note("files without any line, skipped", 1)
            continue
        table = _table(file)
        if table is None:
            if is_single:
                raise InputError("this is no table of translations", path=file.path, line=1, expected=_EXPECTED)
            reading.note("tables of something else, skipped", 1)
            continue
        n_found += 1
        yield table
    if not n_found:
        raise InputError("there is no table of translations here", path=source, expected=f".tsv with {_EXPECTED}")


def _table(file: SourceFile) -> _Table | None:
    blocks = (block.data for block in read_blocks(file, Reading()))
    head = b"".join(itertools.islice(blocks, 2))  # a last line without line feed is a block by itself
    header, second, *_ = (*head.decode("utf-8", "replace").split("\n", 2), "")
    columns = tuple(name.strip().strip('"') for name in header.split("\t"))
    if "subject_id" not in columns or "translation_value" not in columns:
        return None
    for column in columns:
        if columns.count(column) > 1:
            raise InputError(f"two columns are called '{column}'", path=file.path, line=1, field=column)
    template = _LANGUAGE_IN_TEMPLATE.search(second) if second.startswith("ID\t") else None
    of_name = _LANGUAGE_IN_NAME.search(file.base)
    language = template[1] if template else of_name[1] if of_name else ""
    if not language and "translation_language" not in columns:
        raise InputError(
            "nothing says the language of these translations",
            path=file.path,
            line=1,
            field="translation_language",
            expected="a column of this name, or a file name such as hp-nl.synonyms.tsv",
            fix="rename the file",
        )
    return _Table(file, columns, language, 2 if second.startswith("ID\t") else 1)


def _checked(rows: pl.DataFrame, path: Path, reading: Reading) -> pl.DataFrame:
    rows = rows.with_columns(pl.col("status", "precision").str.to_uppercase())
    is_translated = pl.col("status") != "NOT_TRANSLATED"
    checks = (
        Check(pl.col("subject") != "", "subject_id", "a code", "text"),
        Check(pl.col("predicate") != "", "predicate_id", "a property, e.g. rdfs:label", "subject"),
        Check(pl.col("status").is_in(["", *STATUSES]), "translation_status", f"one of {', '.join(STATUSES)}", "status"),
        Check(
            pl.col("precision").is_in(["", "EXACT", *_LESS_PRECISE]),
            "translation_precision",
            f"one of EXACT, {', '.join(_LESS_PRECISE)}",
            "precision",
        ),
        Check(
            pl.col("language").str.contains(LANGUAGE_TAG), "translation_language", "a BCP 47 tag, e.g. fr", "language"
        ),
        Check(
            pl.col("source_language").str.contains(LANGUAGE_TAG), "source_language", "a BCP 47 tag", "source_language"
        ),
        Check((pl.col("text") != "") | ~is_translated, "translation_value", "a translation", "subject"),
    )
    return reading.keep_valid(rows, checks, path=path)


def _kept(rows: pl.DataFrame, options: BabelonOptions, reading: Reading) -> pl.DataFrame:
    tags = {tag: tidy_language(tag) for column in ("language", "source_language") for tag in rows[column].unique()}
    rows = rows.with_columns(
        pl.col("language", "source_language").replace(tags),
        status=pl.when(pl.col("status") == "").then(pl.lit("CANDIDATE")).otherwise("status"),
        term_type=pl.col("predicate").replace_strict(
            {predicate: _TERM_TYPES.get(last_part(predicate), "") for predicate in rows["predicate"].unique()},
            return_dtype=pl.String,
        ),
    )
    is_exact = pl.col("term_type").is_in([LABEL, synonym_type("exact")])
    less_precise = pl.col("precision").replace_strict(_LESS_PRECISE, default=None, return_dtype=pl.String)
    rows = rows.with_columns(
        term_type=pl.when(is_exact & less_precise.is_not_null()).then(less_precise).otherwise("term_type")
    )
    for what, is_wanted in (
        ("translations of another status, left out", pl.col("status").is_in(options.statuses)),
        (
            "translations into another language, left out",
            pl.col("language").is_in(options.languages) if options.languages else pl.lit(True),
        ),
        ("translations of other properties, left out", pl.col("term_type") != ""),
        ("translations without a text, left out", pl.col("text") != ""),
    ):
        wanted = rows.filter(is_wanted)
        reading.note(what, len(rows) - len(wanted))
        rows = wanted
    return rows


def _names(rows: pl.DataFrame, options: BabelonOptions) -> pl.DataFrame:
    rows = rows.filter(pl.col("term_type") != _DEFINITION)
    is_label, is_official = pl.col("term_type") == LABEL, pl.col("status") == "OFFICIAL"
    translated = rows.with_columns(
        preference=pl.when(is_label & is_official).then(1).when(is_label).then(2).otherwise(3)
    )
    parts = [translated]
    if options.source_names:
        of_source = rows.filter(pl.col("source_text") != "").with_columns(
            text="source_text",
            language="source_language",
            term_type=pl.col("predicate").replace_strict(
                {predicate: _TERM_TYPES[last_part(predicate)] for predicate in rows["predicate"].unique()},
                return_dtype=pl.String,
            ),
        )
        parts.insert(0, of_source.with_columns(preference=pl.when(pl.col("term_type") == LABEL).then(0).otherwise(3)))
    prefixes = {subject: source_of(subject) for subject in rows["subject"].unique()}
    return pl.concat(parts).select(
        concept_id="subject",
        text="text",
        language="language",
        source=pl.col("subject").replace_strict(prefixes, return_dtype=pl.String),
        term_type="term_type",
        preference=pl.col("preference").cast(pl.UInt8),
        is_suppressed=pl.lit(False),
    )


def _definitions(rows: pl.DataFrame) -> pl.DataFrame:
    rows = rows.filter(pl.col("term_type") == _DEFINITION)
    prefixes = {subject: source_of(subject) for subject in rows["subject"].unique()}
    return rows.select(
        concept_id="subject",
        text="text",
        source=pl.col("subject").replace_strict(prefixes, return_dtype=pl.String),
        line="line",
    )


FORMAT = Format(
    name="babelon",
    description="translations of an ontology in Babelon tables, such as those of the HPO",
    source="a .babelon.tsv or .synonyms.tsv file (plain or gzip), or a folder or zip archive of several",
    obtain="https://github.com/obophenotype/hpo-translations, folder babelon",
    licence="that of the ontology (HPO licence: https://hpo.jax.org/license)",
    options=BabelonOptions,
    read=read_babelon,
)
