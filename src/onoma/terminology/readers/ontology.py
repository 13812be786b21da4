"""What the formats of ontologies share: terms with a label, synonyms, parents, a definition, a successor."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import polars as pl
from pydantic import BeforeValidator, Field

from onoma.files.reading import Reading, check_chosen
from onoma.terminology.assembly import (
    SOURCE_CONCEPTS,
    SOURCE_CROSS_REFERENCES,
    SOURCE_DEFINITIONS,
    SOURCE_NAMES,
    SOURCE_RELATIONS,
    SOURCE_TYPES,
    SourceTables,
)
from onoma.terminology.iris import IriPrefixes, last_part
from onoma.terminology.readers.options import LanguageTag, ReaderOptions, Words, split_words
from onoma.terminology.tables import ACTIVE, OBSOLETE

_ROWS_PER_BLOCK = 1 << 16
_JOIN = "have ROBOT join what the file says of it in several places (robot convert --input FILE --output NEW)"
_MOST_SHOWN = 3
RELEASE = ("versionInfo", "data-version", "hasVersion", "versionIRI", "version")
"""Properties by which ontologies say which release they are, the likeliest to be short first."""
LICENCE = ("license",)
"""The property by which they say their licence, of Dublin Core or Creative Commons; ``rights`` are mostly whose."""
LABEL = "label"
XREF = "xref"
Scope = Literal["exact", "narrow", "broad", "related"]
SCOPES = get_args(Scope)


def _scopes(value: Any) -> Any:
    words = split_words(value)
    return SCOPES if words == ("all",) else words


Scopes = Annotated[tuple[Scope, ...], BeforeValidator(_scopes)]
"""Several scopes of synonyms; on the command line also "all"."""


class OntologyOptions(ReaderOptions):
    """Options of every reader of an ontology."""

    scopes: Scopes = Field(
        default=("exact",),
        description="scopes of synonyms to keep besides labels: exact, narrow, broad, related, or all",
    )
    without_types: Words = Field(
        default=(), description="leave out synonyms of these types, e.g. abbreviation,dubious (info lists them)"
    )
    prefixes: Words = Field(default=(), description="keep only terms with these id prefixes, e.g. HP; empty: all")
    language: LanguageTag = Field(
        default="en", description="language of the names (BCP 47); OBO Foundry labels are English"
    )


class IriOptions(OntologyOptions):
    """Options of readers of ontologies whose ids are IRIs."""

    iri_prefixes: IriPrefixes = Field(
        default=(), description="prefixes for IRIs outside the OBO library, e.g. MY=http://example.org/my#"
    )


class WantedPrefixes:
    """The filter of id prefixes, which counts what it leaves out and knows what there is."""

    def __init__(self, options: OntologyOptions, reading: Reading) -> None:
        self._wanted, self._reading = options.prefixes, reading
        self._there: set[str] = set()

    def keep(self, term_id: str) -> bool:
        """Whether a term has one of the prefixes wanted."""
        if not self._wanted:
            return True
        prefix = source_of(term_id)
        self._there.add(prefix)
        is_wanted = prefix in self._wanted
        self._reading.note("terms with other prefixes, left out", not is_wanted)
        return is_wanted

    def check(self, path: Path) -> None:
        """Once all terms were seen: refuse a prefix that none has."""
        check_chosen("prefixes", self._wanted, self._there - {""}, path=path)


class Synonym(NamedTuple):
    """A further name of a term.

    Attributes:
        text: The name.
        term_type: E.g. "exact_synonym", or "exact_synonym/abbreviation" where the source has a type besides the scope.
        language: BCP 47; "": that of the file.
    """

    text: str
    term_type: str
    language: str = ""


@dataclass
class OntologyTerm:
    """A term as a reader finds it."""

    term_id: str
    labels: list[str] = field(default_factory=list)
    """One, if all is right."""
    label_language: str = ""
    """BCP 47; "": that of the file."""
    synonyms: list[Synonym] = field(default_factory=list)
    definition: str = ""
    semantic_types: list[str] = field(default_factory=list)
    is_obsolete: bool = False
    replaced_by: list[str] = field(default_factory=list)
    """Several are choices, as if each were one to consider."""
    alternative_ids: list[str] = field(default_factory=list)
    """Retired ids that were merged into this one."""
    relations: list[tuple[str, str]] = field(default_factory=list)
    """(relation, other term): "this relation other" reads as a sentence."""
    cross_references: list[tuple[str, str]] = field(default_factory=list)
    """(mapping relation, code of another vocabulary)."""
    line: int | None = None


def add_successor(term: OntologyTerm, told: str, code_of: Callable[[str], str], reading: Reading) -> None:
    """Note a code or IRI to use in place of a term; one that is told in words ("use A or B") is counted."""
    if is_prose(told):
        reading.note("successors given in words, left out", 1)
    else:
        term.replaced_by.append(code_of(told))


def is_prose(told: str) -> bool:
    """Whether what stands where a code should is words: it has white space in it."""
    return re.search(r"\s", told.strip()) is not None


class Columns:
    """Rows gathered column by column; a block is a tenth of the size of its Python objects."""

    def __init__(self, schema: pl.Schema) -> None:
        self._schema = schema
        self._columns: dict[str, list[object]] = {name: [] for name in schema}
        self._blocks = [pl.DataFrame(schema=schema)]

    def add(self, *values: object) -> None:
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        if len(column) == _ROWS_PER_BLOCK:
            self._close_block()

    def frame(self) -> pl.DataFrame:
        self._close_block()
        return pl.concat(self._blocks)

    def _close_block(self) -> None:
        self._blocks.append(pl.DataFrame(self._columns, schema=self._schema))
        self._columns = {name: [] for name in self._schema}


def tables_from_terms(
    terms: Iterable[OntologyTerm],
    *,
    path: Path,
    language: str,
    reading: Reading,
    source: str | None = None,
    without_types: Sequence[str] = (),
) -> SourceTables:
    """Check the terms and lay them out as tables.

    Args:
        terms: In the order of the file.
        path: For errors.
        language: Of names that do not say theirs.
        reading: Where bad terms and names go.
        source: Of all names; unset: the prefix of the term's id.
        without_types: Types of synonyms to leave out ("abbreviation" of "exact_synonym/abbreviation"), in any case.

    Raises:
        InputError: no synonym has one of the types to leave out; under "strict" also an id twice, two labels, a blank
            or unprintable name.
    """
    concepts, names, types = Columns(SOURCE_CONCEPTS), Columns(SOURCE_NAMES), Columns(SOURCE_TYPES)
    relations, definitions = Columns(SOURCE_RELATIONS), Columns(SOURCE_DEFINITIONS)
    references = Columns(SOURCE_CROSS_REFERENCES)
    alternatives: dict[str, str] = {}
    described: list[str] = []
    statuses: dict[str, str] = {}
    successors: dict[str, list[str]] = {}
    choosing: dict[str, OntologyTerm] = {}
    unwanted = {word.lower() for word in without_types}
    types_there: set[str] = set()
    for term in terms:
        if unwanted:
            _leave_out_types(term, unwanted, types_there, reading)
        problem = _term_problem(term, statuses)
        if problem:
            fix = _JOIN if term.term_id in statuses else None
            reading.reject(problem, path=path, line=term.line, text=term.term_id, field="id", fix=fix)
            continue
        if not (term.is_obsolete or (term.labels and term.labels[0])):
            _leave_out_nameless(term, described, path, reading)
            continue
        _leave_out_unprintable(term, reading)
        term_source = source_of(term.term_id) if source is None else source
        statuses[term.term_id] = OBSOLETE if term.is_obsolete else ACTIVE
        others = [code for code in dict.fromkeys(term.replaced_by) if code != term.term_id]
        successors[term.term_id] = others or term.replaced_by[:1]
        if len(others) > 1:
            choosing[term.term_id] = term
        usable = _usable_names(term, language, path, reading)
        for number, ((text, name_language), term_type) in enumerate(usable.items()):
            preference = 0 if number == 0 and term_type == LABEL else 1
            names.add(term.term_id, text, name_language, term_source, term_type, preference, False)
        for semantic_type in dict.fromkeys(term.semantic_types):
            types.add(term.term_id, semantic_type, term.line)
        for relation, other in () if term.term_id in choosing else term.relations:
            relations.add(term.term_id, relation, other, term_source, term.line)
        better_known = {code for relation, code in term.cross_references if relation != XREF}
        for relation, code in dict.fromkeys(term.cross_references):
            if relation != XREF or code not in better_known:
                references.add(term.term_id, code, relation, term_source, term.line)
        if term.definition and not text_problem(term.definition):
            definitions.add(term.term_id, term.definition, term_source, term.line)
        for alternative in term.alternative_ids:
            if alternative == term.term_id:
                continue
            if alternatives.setdefault(alternative, term.term_id) != term.term_id:
                reading.note("alternative ids claimed by several terms (the first has it)", 1)
    kept = "what scopes and prefixes keep of the release"
    check_chosen("without_types", sorted(unwanted), types_there - {""}, path=path, among=kept)
    shown = ", ".join(described[:_MOST_SHOWN])
    reading.note(f"terms described without a name (such as {shown}), left out", len(described))
    alternatives = {code: term_id for code, term_id in alternatives.items() if code not in choosing}
    undecided = _choices(successors, choosing, alternatives)
    for code, term in choosing.items():
        choices = [("consider", other) for other in undecided.get(code, ())]
        term_source = source_of(code) if source is None else source
        for relation, other in [*choices, *(pair for pair in term.relations if pair not in choices)]:
            relations.add(code, relation, other, term_source, term.line)
    if told := [code for code in undecided if statuses[code] != ACTIVE]:
        which = f"obsolete concepts with several successors, which are shown as choices (the first: {told[0]})"
        reading.note(which, len(told))
    for code, status in statuses.items():
        to = [] if code in undecided else successors[code]
        concepts.add(code, status, to[0] if to else None)
    for alternative, term_id in alternatives.items():
        if alternative not in statuses:
            concepts.add(alternative, OBSOLETE, term_id)
    return SourceTables(
        path=path,
        concepts=_with_successors(concepts.frame(), alternatives, reading),
        names=names.frame(),
        semantic_types=types.frame(),
        relations=relations.frame(),
        definitions=definitions.frame(),
        cross_references=references.frame(),
        may_refer_outside=True,
    )


def _leave_out_types(term: OntologyTerm, unwanted: Container[str], there: set[str], reading: Reading) -> None:
    """Take off synonyms by their type; ``there`` gets the types that they have."""
    types = [synonym.term_type.partition("/")[2] for synonym in term.synonyms]
    there.update(types)
    kept = [synonym for synonym, its_type in zip(term.synonyms, types, strict=True) if its_type not in unwanted]
    reading.note("synonyms of types to leave out", len(term.synonyms) - len(kept))
    term.synonyms = kept


def _leave_out_nameless(term: OntologyTerm, described: list[str], path: Path, reading: Reading) -> None:
    """Count an active term without a name by what else there is of it; ``described`` gets the code of one that has."""
    if term.labels:
        reading.reject(_BLANK, path=path, line=term.line, text=term.term_id, field=LABEL)
    elif term.synonyms:
        reading.note("terms with synonyms but without a name, left out", 1)
    elif term.definition or term.relations or term.cross_references:
        described.append(term.term_id)
    else:
        reading.note("terms without a name (only referred to), left out", 1)


def _usable_names(term: OntologyTerm, language: str, path: Path, reading: Reading) -> dict[tuple[str, str], str]:
    """Text and language of a term's names, its label first, and of each the type that is closest to the label."""
    label = term.labels[0] if term.labels else ""
    written = [Synonym(label, LABEL, term.label_language)] if label else []
    usable: dict[tuple[str, str], str] = {}
    for text, term_type, name_language in [*written, *term.synonyms]:
        problem = text_problem(text)
        key = (text, name_language or language)
        if problem:
            reading.reject(problem, path=path, line=term.line, text=f"{term.term_id}: {text}", field=term_type)
        elif key in usable:
            reading.note("synonyms spelled as another name of their term, left out", 1)
            usable[key] = min(usable[key], term_type, key=_distance)
        else:
            usable[key] = term_type
    return usable


def _choices(
    successors: Mapping[str, list[str]], choosing: Iterable[str], alternatives: Mapping[str, str]
) -> dict[str, list[str]]:
    """Of terms with several successors, those of this ontology; not of terms whose successors all lead to one concept.

    Where none is of this ontology, the first stands for all, as no relation can lead outside.
    """

    def end(code: str) -> str:
        passed = set[str]()
        while code not in passed:
            passed.add(code)
            to = successors.get(code) or ([alternatives[code]] if code in alternatives else [])
            if len(to) != 1:
                break
            code = to[0]
        return code

    found = {}
    for code in choosing:
        known = [other for other in successors[code] if other in successors or other in alternatives]
        if known and (len(known) < len(successors[code]) or len({end(other) for other in known}) > 1):
            found[code] = known
    return found


def _with_successors(concepts: pl.DataFrame, alternatives: dict[str, str], reading: Reading) -> pl.DataFrame:
    """An obsolete term that is another's alternative id is replaced by that one, if it does not say by which."""
    claims = pl.DataFrame(
        {"concept_id": list(alternatives), "claimed_by": list(alternatives.values())},
        schema={"concept_id": pl.String, "claimed_by": pl.String},
    )
    claimed = concepts.join(claims, on="concept_id", how="left", maintain_order="left")
    is_obsolete = pl.col("status") == OBSOLETE
    active = claimed.filter(~is_obsolete, pl.col("claimed_by").is_not_null())
    reading.note("alternative ids that are active terms of their own, left unchanged", len(active))
    other = claimed.filter(is_obsolete, pl.col("replaced_by") != pl.col("claimed_by"))
    reading.note("obsolete terms that name another successor than the term with their id, left unchanged", len(other))
    successor = pl.when(is_obsolete).then("claimed_by")
    return claimed.with_columns(replaced_by=pl.coalesce("replaced_by", successor)).drop("claimed_by")


def join_tables(parts: Sequence[SourceTables]) -> SourceTables:
    """Tables of several files of one source; a concept in several of them is as the first says, with the names of all.

    Args:
        parts: At least one, with tables of concepts, as `tables_from_terms` gives them.
    """
    concepts = pl.concat([part.concepts for part in parts if part.concepts is not None])
    return replace(
        parts[0],
        concepts=concepts.unique("concept_id", keep="first", maintain_order=True),
        names=pl.concat([part.names for part in parts]),
        semantic_types=pl.concat([part.semantic_types for part in parts]),
        relations=pl.concat([part.relations for part in parts]),
        definitions=pl.concat([part.definitions for part in parts]),
        cross_references=pl.concat([part.cross_references for part in parts]),
    )


def with_default_type(tables: SourceTables, semantic_type: str) -> SourceTables:
    """Give a semantic type to every concept with a name that has none."""
    untyped = tables.names.select("concept_id").unique(maintain_order=True)
    untyped = untyped.join(tables.semantic_types, on="concept_id", how="anti", maintain_order="left")
    types = untyped.select("concept_id", semantic_type=pl.lit(semantic_type), line=pl.lit(None)).cast(SOURCE_TYPES)
    return replace(tables, semantic_types=pl.concat([tables.semantic_types, types]))


def with_equivalents(
    tables: SourceTables, sets: Iterable[tuple[list[str], int | None]], reading: Reading
) -> SourceTables:
    """Add what is said to be the same: relations "equivalent_to" between concepts, cross-references to others.

    Args:
        tables: What was found.
        sets: Codes of the same meaning, and the line that says so.
        reading: Told of the sets without a concept.
    """
    relations, references = Columns(SOURCE_RELATIONS), Columns(SOURCE_CROSS_REFERENCES)
    concepts = tables.concepts if tables.concepts is not None else tables.names
    known = set(concepts["concept_id"])
    n_outside = 0
    for codes, line in sets:
        inside = [code for code in dict.fromkeys(codes) if code in known]
        outside = [code for code in dict.fromkeys(codes) if code not in known and not text_problem(code)]
        n_outside += not inside
        for code in inside[1:]:
            relations.add(inside[0], "equivalent_to", code, source_of(inside[0]), line)
        for code in inside:
            for other in outside:
                references.add(code, other, "exactMatch", source_of(code), line)
    reading.note("statements of equivalence about terms that are not among the concepts, left out", n_outside)
    return replace(
        tables,
        relations=pl.concat([tables.relations, relations.frame()]),
        cross_references=pl.concat([tables.cross_references, references.frame()]),
    )


def with_head(tables: SourceTables, said: Iterable[tuple[str, str]]) -> SourceTables:
    """Add what an ontology says of itself: which release it is, and under which licence.

    Args:
        tables: What was found.
        said: Properties (IRI, CURIE or tag) and their values; of several values of one the first counts.
    """
    values: dict[str, str] = {}
    for statement, value in said:
        text = " ".join(value.split())
        if text and not text_problem(text):
            values.setdefault(last_part(statement), text)
    release, licence = (next((values[name] for name in names if name in values), "") for names in (RELEASE, LICENCE))
    return replace(tables, release=release, licence=licence)


def note_imports(imports: Sequence[str], reading: Reading) -> None:
    """Tell which other ontologies a file wants to be read with it."""
    if imports:
        reading.note(f"imports that were not followed (the first: {imports[0]})", len(imports))


def source_of(term_id: str) -> str:
    """The prefix of an id: "HP" of "HP:0000001", "CVCL" of "CVCL_0001"; "" if it has none, as an IRI."""
    match = re.match(r"([^:/\s]+):(?!//)\S", term_id) or re.match(r"([^:/\s]+)_\d+$|([^:_/\s]+)_\S", term_id)
    return next(filter(None, match.groups())) if match else ""


_BLANK = "a blank name"
_DISTANCE = {LABEL: 0, "exact": 1, "narrow": 2, "broad": 2, "related": 3}


def _distance(term_type: str) -> int:
    """How far a kind of name is from what its concept means; of one spelling the closest counts."""
    return _DISTANCE.get(term_type.partition("_synonym")[0], 1)


def text_problem(text: str) -> str | None:
    """Why a text is no name, if it is none."""
    if not text.strip():
        return _BLANK
    if "\0" in text:
        return "a name with a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "a name with half a character (a lone surrogate)"
    return None


def _leave_out_unprintable(term: OntologyTerm, reading: Reading) -> None:
    """Codes, relations and types that cannot be written are worth no term."""
    n_before = _n_codes(term)
    term.replaced_by = [code for code in term.replaced_by if not text_problem(code)]
    term.alternative_ids = [code for code in term.alternative_ids if not text_problem(code)]
    term.semantic_types = [name for name in term.semantic_types if not text_problem(name)]
    term.relations = [pair for pair in term.relations if not any(map(text_problem, pair))]
    term.cross_references = [pair for pair in term.cross_references if not text_problem(pair[1])]
    reading.note("codes and cross-references that are no text, left out", n_before - _n_codes(term))


def _n_codes(term: OntologyTerm) -> int:
    n_codes = len(term.replaced_by) + len(term.alternative_ids) + len(term.semantic_types)
    return n_codes + len(term.relations) + len(term.cross_references)


def _term_problem(term: OntologyTerm, seen: Container[str]) -> str | None:
    if text_problem(term.term_id):
        return "a blank or unprintable id"
    if term.term_id in seen:
        return "an id that occurred before"
    if len(term.labels) > 1:
        return "a term with two names"
    return None
