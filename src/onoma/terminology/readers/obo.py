"""OBO 1.4: the text format of the OBO Foundry, https://owlcollab.github.io/oboformat/doc/obo-syntax.html.

=====================  ===========================================================================================
clause                 becomes
=====================  ===========================================================================================
name                   the preferred name, term type "label"
synonym                a name of term type "exact_synonym", "broad_synonym", ...; with a synonym type,
                       "exact_synonym/abbreviation", ...; option ``scopes`` says which are kept. One without a scope
                       (OBO 1.2 allows that) counts as RELATED. The older tags of OBO 1.2 mean the same as today's:
                       exact_synonym, narrow_synonym, ..., xref_analog, xref_unknown, use_term (consider)
alt_id                 an obsolete concept without names, replaced by the term (it was merged into it)
is_obsolete            status "obsolete", as has an is_a to oboInOwl:ObsoleteClass (in old releases)
replaced_by            ``replaced_by``, as does ``property_value: IAO:0100001`` (term replaced by). Several that do not
                       lead to one concept are choices, each a relation "consider", and counted (if all are outside
                       the file, the first is taken)
consider               a relation "consider"
is_a, relationship     a relation: the term, "is_a" or the relationship's id, the other term. Counted and left out if a
                       qualifier says that not every instance of the term need have it: only some (gci_filler), if at
                       all then only to such terms (all_only), none or perhaps none (maxCardinality, cardinality 0)
equivalent_to          a relation "equivalent_to"; a cross-reference "exactMatch" if the other is no concept here
xref                   a cross-reference: exactMatch, broadMatch, narrowMatch or relatedMatch if the qualifier
                       ``source`` (MONDO:equivalentTo, skos:narrowMatch) or the header (treat-xrefs-as-equivalent,
                       -is_a, -has-subclass) says so, else "xref"
property_value         skos:exactMatch, closeMatch, ...: cross-references; IAO:0000118 (alternative term),
                       skos:altLabel, EFO:alternative_term: a name, as an exact synonym; skos:hiddenLabel: as a related
                       one. Of the others, only IAO:0100001 is read
namespace              the semantic type (for a term without one, the header's default-namespace)
def                    a definition
=====================  ===========================================================================================

Typedef and Instance frames are not concepts. A term frame that has no name and is not obsolete mostly refers to a term
of another ontology; it is counted and left out. ``source`` is the prefix of the term's id. Comments (``!``), escapes
and trailing qualifiers are read as the specification says. Releases contain clauses that are not valid OBO. They are
counted and skipped if nothing is read from them, and so are invalid references after a text; blanks in namespaces are
read as if they were escaped. Any other invalid clause is an error; with ``--on-error skip``, it is rejected alone, or
with its frame if it is the id, the name or is_obsolete. Frames of one id are combined, as the specification says, and
counted; one that gives the term another name is an error.

Not read: ``intersection_of``, ``union_of``, ``disjoint_from``, ``subset``, ``comment``, the references of definitions
and synonyms, and what the header imports (which is counted). The header gives the ontology's release
(``data-version``, ``property_value: owl:versionInfo``) and licence (``property_value: dcterms:license``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.byte_order_marks import without_byte_order_mark
from onoma.files.reading import Reading
from onoma.files.text_files import only_file, read_bytes
from onoma.terminology.assembly import SourceTables
from onoma.terminology.iris import (
    code_maker,
    is_obsolete_class,
    mapping_relation,
    relation_name,
    scope_of_values,
    synonym_type,
)
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.obo_frames import BEGINNING, frames, id_lines, parts, repeated_ids
from onoma.terminology.readers.ontology import (
    XREF,
    OntologyOptions,
    OntologyTerm,
    Synonym,
    WantedPrefixes,
    add_successor,
    note_imports,
    tables_from_terms,
    with_equivalents,
    with_head,
)


def read_obo(source: str, options: OntologyOptions, reading: Reading) -> SourceTables:
    """Read an OBO file.

    Args:
        source: The file, plain, gzip or in a zip archive by itself.
        options: What to keep.
        reading: Where bad frames go.

    Raises:
        InputError: no such file, nothing in it, or RDF or OBO Graphs JSON; under "strict" also a frame that is not OBO,
            an id with two names, a blank name.
    """
    file = only_file(Path(source))
    _refuse_other_formats(file)
    equivalents: list[tuple[list[str], int | None]] = []
    said: list[tuple[str, str]] = []
    wanted = WantedPrefixes(options, reading)
    terms = _terms(file, equivalents, said, options, wanted, reading)
    tables = tables_from_terms(
        terms, path=file.path, language=options.language, reading=reading, without_types=options.without_types
    )
    wanted.check(file.path)
    return with_head(with_equivalents(tables, equivalents, reading), said)


def _refuse_other_formats(file: SourceFile) -> None:
    """Refuse an ontology in another format, as its first bytes tell.

    Raises:
        InputError: it is RDF, or OBO Graphs JSON.
    """
    start = next(read_bytes(file, block_bytes=_SNIFFED_BYTES)).data
    text = _BEFORE_FIRST.sub(b"", without_byte_order_mark(start, file.path), 1)
    for pattern, problem, fix in _OTHER_FORMATS:
        if pattern.match(text):
            found = text.partition(b"\n")[0].decode("utf-8", "backslashreplace")
            raise InputError(problem, path=file.path, expected=BEGINNING, found=found, fix=fix)


def _terms(
    file: SourceFile,
    equivalents: list[tuple[list[str], int | None]],
    said: list[tuple[str, str]],
    options: OntologyOptions,
    wanted: WantedPrefixes,
    reading: Reading,
) -> Iterator[OntologyTerm]:
    import fastobo

    scopes = {scope.upper(): scope for scope in options.scopes}
    header = _Header(())
    repeated: dict[str, OntologyTerm | None] = dict.fromkeys(map(_CODE_OF, repeated_ids(file, reading)))
    for part in parts(file, reading):
        line_of = id_lines(part)
        for frame in frames(part, reading):
            if isinstance(frame, fastobo.header.HeaderFrame):
                header = _Header(frame)
                note_imports(header.imports, reading)
                said += header.said
            if isinstance(frame, fastobo.instance.InstanceFrame):
                reading.note("individuals (instances of concepts), left out", 1)
            if not isinstance(frame, fastobo.term.TermFrame):
                continue
            written, term_id = _unescaped(frame.id), _code(frame.id)
            if is_obsolete_class(written) or not wanted.keep(term_id):
                continue
            numbers = line_of.get(written, [])
            line = numbers.pop(0) if len(numbers) > 1 else (numbers[0] if numbers else None)
            term = repeated.get(term_id)
            if term is None:
                term = OntologyTerm(term_id, line=line)
            elif not _may_be_added(frame, line, term, file.path, reading):
                continue
            for clause in frame:
                _add(term, clause, header, scopes, reading)
                if clause.raw_tag() == "equivalent_to":
                    equivalents.append(([term_id, _code(clause.term)], line))
            if term_id in repeated:
                repeated[term_id] = term
            else:
                yield _with_namespace(term, header)
    yield from (_with_namespace(term, header) for term in repeated.values() if term is not None)


def _may_be_added(frame: Any, line: int | None, term: OntologyTerm, path: Path, reading: Reading) -> bool:
    """Whether a further frame is of the same term, as OBO 1.4 combines frames of one id; one of another name is not."""
    names = [clause.name.strip() for clause in frame if clause.raw_tag() == "name"]
    if names and term.labels and names != term.labels:
        reading.reject(
            "an id that occurred before, with another name",
            path=path,
            line=line,
            text=term.term_id,
            field="id",
            expected=f"the name {term.labels[0]}" + ("" if term.line is None else f", as in line {term.line}"),
            found=names[0],
            fix="give both frames one name, or one of them another id",
        )
        return False
    if names:
        term.labels = []  # they are told again
    reading.note("further frames of a term, combined with its first", 1)
    return True


def _with_namespace(term: OntologyTerm, header: _Header) -> OntologyTerm:
    """The term, in the header's namespace if it has none."""
    if header.namespace and not term.semantic_types:
        term.semantic_types.append(header.namespace)
    return term


class _Header:
    """What the header says of all terms."""

    def __init__(self, clauses: Any) -> None:
        import fastobo

        self.namespace = ""
        self.relation_of: dict[str, str] = {}
        """How cross-references relate, by the prefix of their code."""
        self.imports: list[str] = []
        self.said: list[tuple[str, str]] = []
        """Of the ontology itself, by property."""
        for clause in clauses:
            tag = clause.raw_tag()
            if isinstance(clause, fastobo.header.UnreservedClause):  # a tag of their own, however it is spelt
                continue
            if tag == "default-namespace":
                self.namespace = _unescaped(clause.namespace)
            elif tag == "import":
                self.imports.append(_unescaped(clause.reference))
            elif tag in _RELATION_OF_MACRO:
                self.relation_of[clause.idspace] = _RELATION_OF_MACRO[tag]
            elif tag == "data-version":
                self.said.append((tag, clause.version))
            elif tag == "property_value":
                statement = clause.property_value
                self.said.append((str(statement.relation), str(statement.value)))


def _add(term: OntologyTerm, clause: Any, header: _Header, scopes: Mapping[str, str], reading: Reading) -> None:
    tag = clause.raw_tag()
    if tag == "name":
        term.labels.append(clause.name.strip())
    elif tag == "synonym":
        synonym = clause.synonym
        if synonym.scope in scopes:
            type_of_synonym = "" if synonym.type is None else _unescaped(synonym.type)
            term.synonyms.append(Synonym(synonym.desc.strip(), synonym_type(scopes[synonym.scope], type_of_synonym)))
    elif tag == "def":
        definition = clause.definition.strip()
        reading.note("second and further definitions of a term, left out", term.definition not in {"", definition})
        term.definition = term.definition or definition
    elif tag == "namespace":
        term.semantic_types = [_unescaped(clause.namespace)]
    elif tag == "is_obsolete":
        term.is_obsolete |= clause.obsolete
    elif tag == "alt_id":
        term.alternative_ids.append(_code(clause.alt_id))
    elif tag == "replaced_by":
        term.replaced_by.append(_code(clause.term))
    elif tag == "is_a" and is_obsolete_class(_unescaped(clause.term)):
        term.is_obsolete = True
    elif tag in {"is_a", "relationship"} and not _holds(clause):
        reading.note(_HOLDS_NOT, 1)
    elif tag in {"is_a", "consider"}:
        term.relations.append((tag, _code(clause.term)))
    elif tag == "relationship":
        term.relations.append((relation_name(_unescaped(clause.typedef), _CODE_OF), _code(clause.term)))
    elif tag == "xref":
        code = _code(clause.xref.id)
        relation = mapping_relation(qualifier.value for qualifier in clause.qualifiers or ())
        if relation == XREF:
            relation = header.relation_of.get(code.partition(":")[0], XREF)
        term.cross_references.append((relation, code))
    elif tag == "property_value":
        relation = mapping_relation([_unescaped(clause.property_value.relation)])
        if _code(clause.property_value.relation) == _TERM_REPLACED_BY:
            add_successor(term, _unescaped(clause.property_value.value), _CODE_OF, reading)
        elif relation != XREF:
            term.cross_references.append((relation, _code(clause.property_value.value)))
        else:
            _add_alternative_term(term, clause.property_value, scopes)


def _add_alternative_term(term: OntologyTerm, statement: Any, scopes: Mapping[str, str]) -> None:
    import fastobo

    scope = (scope_of_values(_unescaped(statement.relation)) or "").upper()
    if scope in scopes and isinstance(statement, fastobo.pv.LiteralPropertyValue):
        term.synonyms.append(Synonym(statement.value.strip(), synonym_type(scopes[scope])))


def _holds(clause: Any) -> bool:
    """Whether a relation says that every instance of the term has it to some of the other (OBO 1.4, section 5.9.3)."""
    said = {_unescaped(qualifier.key): qualifier.value for qualifier in clause.qualifiers or ()}
    if "gci_filler" in said:
        return False
    at_least = said.get("cardinality", said.get("minCardinality"))
    if at_least is not None or "maxCardinality" in said:
        return (at_least or "0").strip() != "0"
    return said.get("all_only") != "true" or said.get("all_some") == "true"


def _unescaped(identifier: Any) -> str:
    """An id as its owner writes it; OBO escapes spaces and colons in it."""
    if hasattr(identifier, "prefix"):
        return f"{identifier.prefix}:{identifier.local}"
    return str(getattr(identifier, "unescaped", identifier))


def _code(identifier: Any) -> str:
    """The code that an id stands for, which may be an IRI."""
    return _CODE_OF(_unescaped(identifier))


_HOLDS_NOT = "relations that do not hold for every instance (gci_filler, all_only, maxCardinality), left out"
_SNIFFED_BYTES = 1 << 16
_BEFORE_FIRST = re.compile(rb"(?:\s+|[#!][^\n]*\n)*")
_OTHER_FORMATS = (
    (re.compile(rb'\{\s*"(?:graphs|meta)"'), "this is OBO Graphs JSON", "use format obographs"),
    (re.compile(rb'\{\s*"resourceType"'), "this is a FHIR resource", "use format fhir"),
    (
        re.compile(rb"[<{]|\[\s*\{|(?i:@?(?:prefix|base)\s)"),
        "this is no OBO file",
        "use format owl if this is RDF (RDF/XML, Turtle, JSON-LD); onoma terminology formats lists what else is read",
    ),
)
"""How files begin, what is wrong with them, what to do."""
_CODE_OF = code_maker()
_TERM_REPLACED_BY = "IAO:0100001"
_RELATION_OF_MACRO = {
    "treat-xrefs-as-equivalent": "exactMatch",
    "treat-xrefs-as-is_a": "broadMatch",
    "treat-xrefs-as-has-subclass": "narrowMatch",
}
FORMAT = Format(
    name="obo",
    description="OBO 1.4, the text format of the OBO Foundry (HPO, MONDO, DOID, GO, Uberon, ChEBI, ...)",
    source="an .obo file, plain, gzip, or zipped",
    obtain="http://purl.obolibrary.org/obo/NAME.obo, e.g. hp.obo, mondo.obo, doid.obo; overview: https://obofoundry.org",
    licence="each ontology's own (mostly CC BY 4.0 or CC0)",
    options=OntologyOptions,
    read=read_obo,
)
