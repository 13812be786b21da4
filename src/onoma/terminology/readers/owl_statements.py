"""What the triples of an ontology say of its concepts, axioms and restrictions, in columns.

The properties are those that `onoma.terminology.readers.owl` lists.
"""

from __future__ import annotations

import re

import polars as pl
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.rdf_stream import line_of, rdf_triples
from onoma.files.reading import Reading
from onoma.terminology.iris import OBO, OBO_IN_OWL, SKOS, SYNONYM_PROPERTIES, by_http
from onoma.terminology.languages import tidy_language
from onoma.terminology.readers.ontology import LABEL, LICENCE, XREF, Columns, note_imports

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FORBIDDEN = re.compile(r'[\x00-\x20<>"{}|\\^`]')
OWL = "http://www.w3.org/2002/07/owl#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_NARROWER = SKOS + "narrower"
_RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_EFO = "http://www.ebi.ac.uk/efo/"
_NCIT = "http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl#"
_IMPORTS = OWL + "imports"
_DEPRECATED_CLASS = OWL + "DeprecatedClass"
_ONTOLOGIES = {OWL + "Ontology", SKOS + "ConceptScheme"}
_DUBLIN_CORE = ("http://purl.org/dc/terms/", "http://purl.org/dc/elements/1.1/")
_CLASSES = {OWL + "Class", RDFS + "Class", SKOS + "Concept", _DEPRECATED_CLASS}

KIND_OF = {
    RDFS + "label": LABEL,
    SKOS + "prefLabel": "prefLabel",
    OBO_IN_OWL + "hasExactSynonym": "exact",
    OBO_IN_OWL + "hasBroadSynonym": "broad",
    OBO_IN_OWL + "hasNarrowSynonym": "narrow",
    OBO_IN_OWL + "hasRelatedSynonym": "related",
    **SYNONYM_PROPERTIES,
    OBO + "IAO_0000115": "definition",
    SKOS + "definition": "definition",
    _EFO + "definition": "definition",
    _NCIT + "P97": "definition",
    _NCIT + "P106": "namespace",
    OWL + "deprecated": "deprecated",
    OBO + "IAO_0100001": "replaced_by",
    "http://purl.org/dc/terms/isReplacedBy": "replaced_by",
    OBO_IN_OWL + "consider": "consider",
    OBO_IN_OWL + "hasAlternativeId": "alternative",
    OBO_IN_OWL + "hasOBONamespace": "namespace",
    OBO_IN_OWL + "hasDbXref": XREF,
    **{SKOS + name: name for name in ("exactMatch", "closeMatch", "broadMatch", "narrowMatch", "relatedMatch")},
    RDFS + "subClassOf": "is_a",
    SKOS + "broader": "broader",
    SKOS + "related": "related_to",
    OWL + "equivalentClass": "equivalent",
    OBO_IN_OWL + "shorthand": "shorthand",
    OBO_IN_OWL + "hasDefaultNamespace": "default",
    OBO_IN_OWL + "default-namespace": "default",
    OWL + "onProperty": "onProperty",
    OWL + "someValuesFrom": "someValuesFrom",
    OWL + "annotatedSource": "annotatedSource",
    OWL + "annotatedProperty": "annotatedProperty",
    OWL + "annotatedTarget": "annotatedTarget",
    OBO_IN_OWL + "hasSynonymType": "synonymType",
    OBO_IN_OWL + "source": "source",
    **{OWL + name: name for name in ("versionInfo", "versionIRI")},
    **{vocabulary + name: name for vocabulary in _DUBLIN_CORE for name in LICENCE},
    "http://purl.org/dc/terms/hasVersion": "hasVersion",
    "http://creativecommons.org/ns#license": "license",
}
"""What a property says, by its IRI."""
_LABELS = {RDFS + "label", SKOS + "prefLabel"}
_SEEN = {*_LABELS, _RDF_TYPE, _IMPORTS}
SYNONYMS = ("exact", "broad", "narrow", "related")
"""The scopes of synonyms."""
_IN_A_LANGUAGE = {LABEL, "prefLabel", *SYNONYMS, "definition"}
_OF_BLANK_NODES = {
    *("onProperty", "someValuesFrom"),
    *("annotatedSource", "annotatedProperty", "annotatedTarget", "synonymType", "source"),
}
STATEMENTS = pl.Schema(
    {
        "subject": pl.String(),
        "kind": pl.Enum(["class", "ontology", *dict.fromkeys(KIND_OF.values())]),
        "value": pl.String(),
        "language": pl.String(),
    }
)


def read_statements(file: SourceFile, reading: Reading) -> pl.DataFrame:
    """The triples that say something of a concept, an axiom or a restriction."""
    found = Columns(STATEMENTS)
    languages: dict[str, str | None] = {"": ""}
    refused: set[str] = set()
    left_out = _LeftOut()
    for triple in rdf_triples(file, reading):
        subject, predicate, value = triple.subject, by_http(triple.predicate.value), triple.object
        if predicate in _SEEN:
            left_out.see(triple)
        if predicate == _NARROWER and isinstance(subject, NamedNode) and isinstance(value, NamedNode):
            subject, predicate, value = value, SKOS + "broader", subject
        kind = KIND_OF.get(predicate)
        if kind is None:
            if predicate == _RDF_TYPE and isinstance(subject, NamedNode) and isinstance(value, NamedNode):
                kind_of_subject = by_http(value.value)
                if kind_of_subject in _CLASSES and subject.value not in refused:
                    if _check_iri(subject.value, file, reading):
                        found.add(subject.value, "class", "", "")
                    else:
                        refused.add(subject.value)
                        left_out.count_no_more(subject.value)
                if kind_of_subject in _ONTOLOGIES:
                    found.add(subject.value, "ontology", "", "")
                if kind_of_subject == _DEPRECATED_CLASS:
                    found.add(subject.value, "deprecated", "true", "")
            continue
        if isinstance(subject, BlankNode) != (kind in _OF_BLANK_NODES):
            continue
        if not isinstance(subject, NamedNode | BlankNode):
            continue
        name = subject.value if isinstance(subject, NamedNode) else f"_:{subject.value}"
        if kind in _IN_A_LANGUAGE and not isinstance(value, Literal):
            reading.note("names and definitions that are nodes of their own and no texts, left out", 1)
        elif isinstance(value, NamedNode):
            found.add(name, kind, value.value, "")
        elif isinstance(value, BlankNode):
            found.add(name, kind, f"_:{value.value}", "")
        elif isinstance(value, Literal):
            tag = value.language or ""
            if tag not in languages:
                languages[tag] = _language(tag)
            language = languages[tag]
            if language is not None:
                found.add(name, kind, value.value, language)
            elif kind not in _IN_A_LANGUAGE:
                found.add(name, kind, value.value, "")
            else:
                problem = f"'{tag}' is no language tag such as en or pt-BR"
                reading.reject(problem, path=file.path, line=None, text=f"{name}: {value.value}", field=kind)
    statements = found.frame()
    left_out.note(statements, reading)
    return statements


class _LeftOut:
    """What says that it has a name and is no concept here all the same."""

    def __init__(self) -> None:
        self._blank_classes: set[str] = set()
        self._blank_with_label: dict[str, None] = {}
        self._of_other_types: set[str] = set()
        self._imports: dict[str, None] = {}

    def see(self, triple: Quad) -> None:
        """Take note of a triple."""
        subject, predicate, value = triple.subject, by_http(triple.predicate.value), triple.object
        if predicate == _RDF_TYPE:
            is_class = isinstance(value, NamedNode) and by_http(value.value) in _CLASSES
            if isinstance(subject, BlankNode) and is_class:
                self._blank_classes.add(subject.value)
            elif isinstance(subject, NamedNode) and not is_class:
                self._of_other_types.add(subject.value)
        elif predicate in _LABELS and isinstance(subject, BlankNode):
            self._blank_with_label[subject.value] = None
        elif predicate == _IMPORTS and isinstance(value, NamedNode):
            self._imports[value.value] = None

    def count_no_more(self, iri: str) -> None:
        """Leave out what is told otherwise: it was rejected."""
        self._of_other_types.add(iri)

    def note(self, statements: pl.DataFrame, reading: Reading) -> None:
        """Tell it, by all that the file says."""
        n_blank = sum(node in self._blank_classes for node in self._blank_with_label)
        reading.note("classes with a label but without an IRI (blank nodes), left out", n_blank)
        is_class = pl.col("kind") == "class"
        labelled = statements.filter(pl.col("kind").is_in([LABEL, "prefLabel"])).select("subject").unique()
        others = labelled.join(statements.filter(is_class), on="subject", how="anti")["subject"].sort()
        untyped = [iri for iri in others if iri not in self._of_other_types]
        if untyped:
            reading.note(f"subjects with a label but without a type, left out (such as {untyped[0]})", len(untyped))
        note_imports(list(self._imports), reading)


def _language(tag: str) -> str | None:
    """A tag spelled as usual, which the parser makes all lower case; nothing where it is none."""
    try:
        return tidy_language(tag)
    except ValueError:
        return None


def _check_iri(iri: str, file: SourceFile, reading: Reading) -> bool:
    """Whether the IRI of a class can be a code; one that cannot is rejected.

    Raises:
        InputError: it is relative to nothing, as all of the file would be; under "strict" also where it has signs that
            no IRI may have.
    """
    if not _ABSOLUTE.match(iri):
        base = 'xml:base="http://..." in RDF/XML, @base <http://...> . in Turtle, "@base" in JSON-LD'
        raise InputError(
            "the file has relative IRIs and does not say what they are relative to",
            path=file.path,
            line=_line_of(iri, file),
            found=iri or "an empty one",
            fix=f"add the base to it: {base}",
        )
    if not _FORBIDDEN.search(iri):
        return True
    problem = "a class whose IRI has a sign that no IRI may have"
    line = _line_of(iri, file) if reading.on_error == "strict" else None
    reading.reject(problem, path=file.path, line=line, text=iri, field="class")
    return False


def _line_of(iri: str, file: SourceFile) -> int | None:
    def is_of_it(triple: Quad) -> bool:
        return isinstance(triple.subject, NamedNode) and triple.subject.value == iri

    return line_of(file, is_of_it)
