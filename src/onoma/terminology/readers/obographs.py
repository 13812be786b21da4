"""OBO Graphs, the JSON of the OBO Foundry (``mondo.json``, ``hp.json``): https://github.com/geneontology/obographs.

A document has graphs; a graph has nodes and edges. Ids are IRIs, which become codes as described in
`onoma.terminology.iris` (``http://purl.obolibrary.org/obo/MONDO_0005148`` is ``MONDO:0005148``); an id that is not an
IRI stays unchanged.

==============================  ===================================================================================
of a node of type CLASS         becomes
==============================  ===================================================================================
lbl                             the preferred name, term type "label"
meta.synonyms                   names: pred hasExactSynonym, hasBroadSynonym, ... gives term type "exact_synonym", ...;
                                with a synonymType, "exact_synonym/abbreviation"; option ``scopes`` says which are kept
meta.definition                 a definition
meta.deprecated                 status "obsolete"
meta.xrefs                      cross-references; exactMatch, broadMatch, ... if ``pred`` or the source (in MONDO and
                                GO) says so, else "xref"
meta.basicPropertyValues        by ``pred``. IAO_0100001 (term replaced by): ``replaced_by``; several are choices, each
                                a relation "consider", and counted. consider: a relation "consider".
                                hasAlternativeId: an obsolete concept without names, replaced by this one.
                                hasOBONamespace: the semantic type (for a node without one, the graph's
                                hasDefaultNamespace). skos:exactMatch, ...: a cross-reference. IAO_0000118
                                (alternative term), skos:altLabel, efo:alternative_term: a name, as an exact synonym;
                                skos:hiddenLabel: as a related one
==============================  ===================================================================================

An edge becomes a relation: "is_a", or the name of the property that its ``pred`` refers to (``shorthand`` of the
PROPERTY node, else its ``lbl``); one of is_a to oboInOwl:ObsoleteClass (in old releases) makes its node obsolete
instead. ``equivalentNodesSets`` become relations "equivalent_to" within the file, and
cross-references "exactMatch" to what is outside.

Nodes of type INDIVIDUAL and nodes without a type are not concepts; they are counted. A node that has no label and is
not obsolete only refers to a term of another ontology; it is counted too. If several graphs describe a node, the first
that gives it a label counts. Not read: ``logicalDefinitionAxioms``, ``domainRangeAxioms``, ``propertyChainAxioms``,
``subsets``, ``comments``, and the sources (``xrefs``) of definitions and synonyms. OBO Graphs have no languages: use
option ``language``. A graph's meta gives its release (owl:versionInfo, else ``version``) and licence (dcterms:license).

A document is read node by node, whatever its size. The same model in YAML is not read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import polars as pl
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.json_stream import JsonValue, ModelT, json_values, shown_json, shown_place, validated
from onoma.files.reading import Reading
from onoma.files.text_files import only_file
from onoma.terminology.assembly import SOURCE_RELATIONS, SourceTables
from onoma.terminology.iris import (
    OBO,
    by_http,
    code_maker,
    is_obsolete_class,
    last_part,
    mapping_relation,
    relation_name,
    scope_of_values,
    synonym_type,
)
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.ontology import (
    XREF,
    Columns,
    IriOptions,
    OntologyTerm,
    Synonym,
    WantedPrefixes,
    add_successor,
    source_of,
    tables_from_terms,
    text_problem,
    with_default_type,
    with_equivalents,
    with_head,
)
from onoma.terminology.tables import OBSOLETE

_REPLACED_BY = (OBO + "IAO_0100001", "IAO:0100001")
_LISTS = ("nodes", "edges", "equivalentNodesSets")
_UNLIKE = "this is not as OBO Graphs has it"
_NOT_OBO_GRAPHS = (
    "check that this is OBO Graphs JSON as ROBOT writes it (robot convert --output x.json); "
    "YAML is not read: convert it to JSON"
)


def _no_null(value: Any) -> Any:
    return [] if value is None else value


_Listed = Annotated[list[ModelT], BeforeValidator(_no_null)]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Statement(_Model):
    pred: Annotated[str, BeforeValidator(lambda value: "" if value is None else value)] = ""
    val: str


class _StatementMeta(_Model):
    basicPropertyValues: _Listed[_Statement] = []  # noqa: N815


class _Reference(_Statement):
    meta: _StatementMeta | None = None


class _Synonym(_Statement):
    pred: str
    synonymType: str | None = None  # noqa: N815


class _Meta(_StatementMeta):
    definition: _Statement | None = None
    synonyms: _Listed[_Synonym] = []
    xrefs: _Listed[_Reference] = []
    deprecated: bool | None = None


class _Node(_Model):
    id: str
    lbl: str | None = None
    type: str | None = None
    meta: Annotated[_Meta, BeforeValidator(lambda value: {} if value is None else value)] = _Meta()


class _Edge(_Model):
    sub: str = Field(validation_alias=AliasChoices("sub", "subj"))
    pred: str
    obj: str


class _EquivalentNodes(_Model):
    nodeIds: _Listed[str] = []  # noqa: N815


_NODE, _EDGE = TypeAdapter(_Node), TypeAdapter(_Edge)
_EQUIVALENT_NODES, _STATEMENTS = TypeAdapter(_EquivalentNodes), TypeAdapter(list[_Statement])


def read_obographs(source: str, options: IriOptions, reading: Reading) -> SourceTables:
    """Read an OBO Graphs document.

    Args:
        source: The file, plain, gzip or in a zip archive by itself.
        options: What to keep.
        reading: Where bad nodes and edges go.

    Raises:
        InputError: no such file, no JSON, or no graphs in it; under "strict" also a node or edge that is not as OBO
            Graphs has it, an id used twice in a graph, a blank name.
    """
    file = only_file(Path(source))
    if file.base.lower().removesuffix(".gz").endswith((".yaml", ".yml")):
        raise InputError(
            "OBO Graphs in YAML are not read", path=file.path, expected=".json", fix="convert the file to JSON"
        )
    document = _Document(file, options, reading)
    tables = tables_from_terms(
        document.terms(),
        path=file.path,
        language=options.language,
        reading=reading,
        without_types=options.without_types,
    )
    return document.completed(tables)


class _Document:
    """What is gathered while the nodes of a document go by."""

    def __init__(self, file: SourceFile, options: IriOptions, reading: Reading) -> None:
        self._file, self._reading = file, reading
        self._wanted = WantedPrefixes(options, reading)
        self._code_of = code_maker(options.iri_prefixes)
        self._scopes = options.scopes
        self._term_types = {f"has{scope.capitalize()}Synonym": scope for scope in options.scopes}
        self._edges = Columns(SOURCE_RELATIONS)
        self._equivalents: list[tuple[list[str], int | None]] = []
        self._property_names: dict[str, str] = {}
        self._default_namespace = ""
        self._said: list[tuple[str, str]] = []
        """Of the ontology itself, by property."""
        self._graph_of: dict[str, int] = {}
        self._obsolete: list[str] = []
        """Those that edges say to be so."""

    def terms(self) -> Iterator[OntologyTerm]:
        """The concepts, in the order of the document; edges and the rest are kept for `completed`."""
        has_graph = is_fhir = False
        for value in json_values(self._file, self._reading, depth=4):
            if value.place[:1] != ("graphs",):
                if not value.place or isinstance(value.place[0], int):
                    self._refuse(value, "an object with graphs")
                is_fhir = is_fhir or value.place == ("resourceType",)
                continue
            graph, part = self._checked_place(value)
            has_graph = has_graph or part != ""
            if part == "nodes":
                node = self._parsed(_NODE, value)
                term = self._term(node, value.line, graph) if node else None
                if term:
                    yield term
            elif part == "edges":
                self._add_edge(self._parsed(_EDGE, value), value.line)
            elif part == "equivalentNodesSets":
                nodes = self._parsed(_EQUIVALENT_NODES, value)
                self._equivalents.append(([self._code_of(code) for code in nodes.nodeIds] if nodes else [], value.line))
            elif value.place[2:] == ("meta", "version") and isinstance(value.value, str):
                self._said.append(("version", value.value))
            elif value.place[2:] == ("meta", "basicPropertyValues"):
                self._read_graph_meta(self._parsed(_STATEMENTS, value) or [])
        if not has_graph:
            fix = "this is a FHIR resource: use format fhir" if is_fhir else _NOT_OBO_GRAPHS
            raise InputError("there is no graph in it", path=self._file.path, expected='{"graphs": [...]}', fix=fix)

    def completed(self, tables: SourceTables) -> SourceTables:
        """The tables with relations, equivalents and the default of semantic types."""
        self._wanted.check(tables.path)
        edges = self._edges.frame()
        names = {
            predicate: predicate
            if predicate in {"is_a", "subPropertyOf", "inverseOf", "type"}
            else self._property_names.get(predicate) or relation_name(predicate, self._code_of)
            for predicate in edges["relation"].unique()
        }
        edges = edges.with_columns(pl.col("relation").replace(names))
        tables = dataclasses.replace(tables, relations=pl.concat([tables.relations, edges]))
        if self._obsolete and tables.concepts is not None:
            is_obsolete = pl.col("concept_id").is_in(self._obsolete)
            status = pl.when(is_obsolete).then(pl.lit(OBSOLETE)).otherwise("status").alias("status")
            tables = dataclasses.replace(tables, concepts=tables.concepts.with_columns(status))
        if self._default_namespace:
            tables = with_default_type(tables, self._default_namespace)
        return with_head(with_equivalents(tables, self._equivalents, self._reading), self._said)

    def _checked_place(self, value: JsonValue) -> tuple[int, str]:
        """(graph, part of the graph); the part is "" where there is none."""
        place, is_null = value.place, value.value is None
        if len(place) == 1 and is_null:
            return 0, ""
        graph = place[1] if len(place) > 1 else None
        if not isinstance(graph, int):
            self._refuse(value, "an array of graphs")
        part = place[2] if len(place) > 2 else None
        if not isinstance(part, str):
            self._refuse(value, "a graph: an object with nodes and edges")
        if part in _LISTS and not (len(place) > 3 and isinstance(place[3], int)):
            if len(place) > 3 or not is_null:
                self._refuse(value, f"an array of {part}")
            return graph, "an empty list"
        return graph, part

    def _refuse(self, value: JsonValue, expected: str) -> NoReturn:
        raise InputError(
            _UNLIKE,
            path=self._file.path,
            line=value.line,
            field=shown_place(value.place) or None,
            expected=expected,
            found=shown_json(value.value),
            fix=_NOT_OBO_GRAPHS,
        )

    def _parsed(self, model: TypeAdapter[ModelT], value: JsonValue) -> ModelT | None:
        return validated(model, value, _UNLIKE, file=self._file, reading=self._reading)

    def _term(self, node: _Node, line: int, graph: int) -> OntologyTerm | None:
        statements = node.meta.basicPropertyValues
        if node.type != "CLASS":
            name = next((entry.val for entry in statements if last_part(entry.pred) == "shorthand"), node.lbl or "")
            if node.type in {"PROPERTY", None} and not text_problem(name):
                self._property_names.setdefault(node.id, name)
            if node.type == "INDIVIDUAL":
                self._reading.note("individuals (instances of concepts), left out", 1)
            elif node.type is None:
                self._reading.note("nodes without a type, left out", 1)
            return None
        if is_obsolete_class(node.id):
            return None
        term = OntologyTerm(self._code_of(node.id), is_obsolete=bool(node.meta.deprecated), line=line)
        if not self._wanted.keep(term.term_id):
            return None
        label = (node.lbl or "").strip()
        if label or term.is_obsolete:
            first_graph = self._graph_of.setdefault(term.term_id, graph)
            if first_graph != graph:
                self._reading.note("nodes that an earlier graph describes too, left out", 1)
                return None
        term.labels = [label] if node.lbl else []
        term.definition = node.meta.definition.val.strip() if node.meta.definition else ""
        for synonym in node.meta.synonyms:
            scope = self._term_types.get(last_part(synonym.pred))
            if scope:
                term.synonyms.append(Synonym(synonym.val.strip(), synonym_type(scope, synonym.synonymType or "")))
        for reference in node.meta.xrefs:
            sources = reference.meta.basicPropertyValues if reference.meta else []
            relation = mapping_relation([reference.pred, *(source.val for source in sources)])
            term.cross_references.append((relation, self._code_of(reference.val)))
        for statement in statements:
            self._add_statement(term, statement)
        return term

    def _add_statement(self, term: OntologyTerm, statement: _Statement) -> None:
        code, name = self._code_of(statement.val), last_part(statement.pred)
        if by_http(statement.pred) in _REPLACED_BY:
            add_successor(term, statement.val, self._code_of, self._reading)
        elif name == "consider":
            term.relations.append(("consider", code))
        elif name == "hasAlternativeId":
            term.alternative_ids.append(code)
        elif name == "hasOBONamespace":
            term.semantic_types.append(statement.val)
        elif (scope := scope_of_values(statement.pred)) in self._scopes:
            term.synonyms.append(Synonym(statement.val.strip(), synonym_type(scope)))
        elif mapping_relation([name]) != XREF:
            term.cross_references.append((mapping_relation([name]), code))

    def _add_edge(self, edge: _Edge | None, line: int) -> None:
        if edge is None:
            return
        head, tail = self._code_of(edge.sub), self._code_of(edge.obj)
        if any(map(text_problem, (head, edge.pred, tail))):
            self._reading.reject(
                "an edge with a blank or unprintable end or relation",
                path=self._file.path,
                line=line,
                text=f"{head} {edge.pred} {tail}",
            )
            return
        if edge.pred == "is_a" and is_obsolete_class(edge.obj):
            self._obsolete.append(head)
            return
        self._edges.add(head, edge.pred, tail, source_of(head), line)

    def _read_graph_meta(self, statements: list[_Statement]) -> None:
        self._said += [(statement.pred, statement.val) for statement in statements]
        for statement in statements:
            is_default = last_part(statement.pred) in {"hasDefaultNamespace", "default-namespace"}
            if is_default and not text_problem(statement.val):
                self._default_namespace = self._default_namespace or statement.val


FORMAT = Format(
    name="obographs",
    description="OBO Graphs JSON, the JSON of the OBO Foundry (MONDO, HPO, GO, Uberon, CL, ...)",
    source="a .json file, plain, gzip, or zipped",
    obtain="http://purl.obolibrary.org/obo/NAME.json, e.g. mondo.json, hp.json; overview: https://obofoundry.org",
    licence="each ontology's own (mostly CC BY 4.0 or CC0)",
    options=IriOptions,
    read=read_obographs,
)
