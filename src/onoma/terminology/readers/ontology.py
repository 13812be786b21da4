"""What formats of ontologies have in common: terms with a label, synonyms, parents, a definition, a successor."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from onoma.terminology.assembly import (
    SOURCE_CONCEPTS,
    SOURCE_CROSS_REFERENCES,
    SOURCE_DEFINITIONS,
    SOURCE_NAMES,
    SOURCE_RELATIONS,
    SOURCE_TYPES,
    SourceTables,
)
from onoma.terminology.reading import Reading
from onoma.terminology.tables import ACTIVE, OBSOLETE

LABEL = "label"


@dataclass
class OntologyTerm:
    """A term as a reader finds it."""

    term_id: str
    labels: list[str] = field(default_factory=list)
    """One, if all is right."""
    synonyms: list[tuple[str, str]] = field(default_factory=list)
    """(text, term type)."""
    definition: str = ""
    semantic_types: list[str] = field(default_factory=list)
    is_obsolete: bool = False
    replaced_by: list[str] = field(default_factory=list)
    alternative_ids: list[str] = field(default_factory=list)
    """Retired ids that were merged into this one."""
    relations: list[tuple[str, str]] = field(default_factory=list)
    """(relation, other term): "this relation other" reads as a sentence."""
    cross_references: list[tuple[str, str]] = field(default_factory=list)
    """(mapping relation, code of another vocabulary)."""
    line: int | None = None


class _Columns:
    """Rows gathered column by column."""

    def __init__(self, schema: pl.Schema) -> None:
        self._schema = schema
        self._columns: dict[str, list[object]] = {name: [] for name in schema}

    def add(self, *values: object) -> None:
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame(self._columns, schema=self._schema)


def tables_from_terms(terms: Iterable[OntologyTerm], *, path: Path, language: str, reading: Reading) -> SourceTables:
    """Check the terms and lay them out as tables.

    Args:
        terms: In the order of the file.
        path: For errors.
        language: Of all names.
        reading: Where bad terms and names go.

    Raises:
        InputError: under "strict": an id twice, two labels, a blank or unprintable name.
    """
    concepts, names, types = _Columns(SOURCE_CONCEPTS), _Columns(SOURCE_NAMES), _Columns(SOURCE_TYPES)
    relations, definitions = _Columns(SOURCE_RELATIONS), _Columns(SOURCE_DEFINITIONS)
    references = _Columns(SOURCE_CROSS_REFERENCES)
    seen: set[str] = set()
    alternatives: dict[str, str] = {}
    for term in terms:
        problem = _term_problem(term, seen)
        if problem:
            reading.reject(problem, path=path, line=term.line, text=term.term_id, field="id")
            continue
        label = term.labels[0] if term.labels else ""
        if not label and not term.is_obsolete:
            reading.note("terms without a name (only referred to), left out", 1)
            continue
        source = source_of(term.term_id)
        written = [(label, LABEL)] if label else []
        usable: dict[str, str] = {}
        for text, term_type in [*written, *term.synonyms]:
            name_problem = text_problem(text)
            if name_problem:
                reading.reject(name_problem, path=path, line=term.line, text=f"{term.term_id}: {text}", field=term_type)
            elif text in usable:
                reading.note("synonyms spelled as another name of their term, left out", 1)
            else:
                usable[text] = term_type
        seen.add(term.term_id)
        status = OBSOLETE if term.is_obsolete else ACTIVE
        concepts.add(term.term_id, status, term.replaced_by[0] if term.replaced_by else None)
        for text, term_type in usable.items():
            names.add(term.term_id, text, language, source, term_type, 0 if term_type == LABEL else 1, False)
        for semantic_type in term.semantic_types:
            types.add(term.term_id, semantic_type, term.line)
        for other in term.replaced_by[1:]:
            relations.add(term.term_id, "replaced_by", other, source, term.line)
        for relation, other in term.relations:
            relations.add(term.term_id, relation, other, source, term.line)
        for relation, code in term.cross_references:
            if text_problem(code):
                reading.note("cross-references that are no text, left out", 1)
            else:
                references.add(term.term_id, code, relation, source, term.line)
        if term.definition and not text_problem(term.definition):
            definitions.add(term.term_id, term.definition, source, term.line)
        for alternative in term.alternative_ids:
            if alternatives.setdefault(alternative, term.term_id) != term.term_id:
                reading.note("alternative ids claimed by several terms (the first has it)", 1)
    for alternative, term_id in alternatives.items():
        if alternative not in seen:
            concepts.add(alternative, OBSOLETE, term_id)
    return SourceTables(
        path=path,
        concepts=concepts.frame(),
        names=names.frame(),
        semantic_types=types.frame(),
        relations=relations.frame(),
        definitions=definitions.frame(),
        cross_references=references.frame(),
        may_refer_outside=True,
    )


def source_of(term_id: str) -> str:
    """The prefix of an id: "HP" of "HP:0000001", "CVCL" of "CVCL_0001"; "" if it has none."""
    match = re.match(r"([^:_/\s]+)[:_]\S", term_id)
    return match[1] if match else ""


def text_problem(text: str) -> str | None:
    """Why a text is no name, if it is none."""
    if not text.strip():
        return "a blank name"
    if "\0" in text:
        return "a name with a NUL character"
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return "a name with half a character (a lone surrogate)"
    return None


def _term_problem(term: OntologyTerm, seen: set[str]) -> str | None:
    if text_problem(term.term_id):
        return "a blank or unprintable id"
    if term.term_id in seen:
        return "an id that occurred before"
    if len(term.labels) > 1:
        return "a term with two names"
    return None
