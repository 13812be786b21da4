"""OWL ontologies and SKOS thesauri in RDF: RDF/XML, Turtle, N-Triples, TriG, JSON-LD (the ``.owl`` of the OBO Foundry).

A class (``owl:Class``, ``rdfs:Class``) or ``skos:Concept`` with a label is a concept. IRIs become codes as described in
`onoma.terminology.iris` (``http://purl.obolibrary.org/obo/MONDO_0005148`` is ``MONDO:0005148``); an IRI without a known
prefix is its own code (option ``iri_prefixes``).

==========================================  ======================================================================
property                                    becomes
==========================================  ======================================================================
rdfs:label, skos:prefLabel                  names, term type "label"; the preferred one is the first in ``language``
                                            (or without a language), rdfs:label before skos:prefLabel
oboInOwl:hasExactSynonym, skos:altLabel,    a name of term type "exact_synonym"; with oboInOwl:hasSynonymType on its
IAO_0000118 (alternative term),             axiom, "exact_synonym/abbreviation". Broad, narrow and related synonyms
efo:alternative_term, NCIt's P90            likewise; option ``scopes`` says which are kept. skos:hiddenLabel counts
                                            as related
IAO_0000115, skos:definition,               a definition: the first in ``language``, else the first
efo:definition, NCIt's P97
owl:deprecated, owl:DeprecatedClass, or     status "obsolete"
rdfs:subClassOf oboInOwl:ObsoleteClass
IAO_0100001 (term replaced by),             ``replaced_by``; several are choices, each a relation "consider", and
dcterms:isReplacedBy                        counted
oboInOwl:consider                           a relation "consider"
oboInOwl:hasAlternativeId                   an obsolete concept without names, replaced by the term
oboInOwl:hasDbXref                          a cross-reference; exactMatch, broadMatch, ... if the source on its axiom
                                            says so (MONDO, GO), else "xref"
skos:exactMatch, skos:closeMatch, ...       a cross-reference
oboInOwl:hasOBONamespace, NCIt's P106       the semantic type (else the ontology's default-namespace)
rdfs:subClassOf                             a relation "is_a" to a class; to a restriction (P some C), the relation P,
                                            named by the property's oboInOwl:shorthand, else by its label
skos:broader, skos:narrower, skos:related   relations "broader" (narrower is reversed) and "related"
owl:equivalentClass                         between classes "equivalent_to"; to a class outside also a cross-reference
==========================================  ======================================================================

The language of a name is that of its literal, or ``language``. Counted and left out: classes with a label but no IRI
(blank nodes), subjects with a label but no type (``rdf:type``), and names and definitions that are not literals but
nodes with a text of their own, as SKOS allows for definitions. Not read: imported ontologies (``owl:imports``, counted;
merge them with ROBOT), other class expressions (intersections, unions, cardinalities, ``only``, inverse properties),
disjointness, individuals other than ``skos:Concept``, SKOS-XL labels, ``skos:notation``, names of graphs. OWL
functional, Manchester and XML syntax are refused. The ontology (owl:Ontology, skos:ConceptScheme) gives its release
(owl:versionInfo, dcterms:hasVersion, owl:versionIRI) and licence (dcterms:license).

Specifications: https://www.w3.org/TR/owl2-mapping-to-rdf/, https://www.w3.org/TR/skos-reference/,
https://github.com/geneontology/go-ontology/blob/master/contrib/oboInOwl.

The triples may be in any order. Their content is kept in columns until the end: about 0.2 GB for a million triples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.rdf_stream import line_of
from onoma.files.reading import Reading, check_chosen
from onoma.files.text_files import only_file
from onoma.terminology.assembly import SourceTables
from onoma.terminology.iris import (
    by_http,
    code_maker,
    is_obsolete_class,
    mapping_relation,
    own_namespaces,
    relation_name,
    synonym_type,
)
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.ontology import (
    LABEL,
    LICENCE,
    RELEASE,
    XREF,
    IriOptions,
    OntologyTerm,
    Synonym,
    WantedPrefixes,
    add_successor,
    tables_from_terms,
    text_problem,
    with_default_type,
    with_equivalents,
    with_head,
)
from onoma.terminology.readers.owl_statements import (
    KIND_OF,
    OWL,
    RDFS,
    STATEMENTS,
    SYNONYMS,
    read_statements,
)
from onoma.terminology.tables import MAPPING_RELATIONS

_MOST_SHOWN = 5
_SKOS_XL = "http://www.w3.org/2008/05/skos-xl#"


def read_owl(source: str, options: IriOptions, reading: Reading) -> SourceTables:
    """Read an ontology or a thesaurus.

    Args:
        source: The file, plain, gzip or in a zip archive by itself.
        options: What to keep.
        reading: Where bad terms go.

    Raises:
        InputError: no such file, no RDF, a class of which the IRI is relative to nothing, or no class with a label;
            an option names what the file does not have; under "strict" also a class whose IRI cannot be, a blank name,
            and a name in what is no language.
    """
    file = only_file(Path(source))
    ontology = _Ontology(read_statements(file, reading), options, reading)
    tables = tables_from_terms(
        ontology.terms(),
        path=file.path,
        language=options.language,
        reading=reading,
        without_types=options.without_types,
    )
    completed = ontology.completed(tables)
    if completed.names.is_empty():
        _refuse_other_labels(file)
    return completed


def _refuse_other_labels(file: SourceFile) -> None:
    """Refuse a file whose labels are nodes of their own, and so no names.

    Raises:
        InputError: it has SKOS-XL labels.
    """
    line = line_of(file, lambda triple: by_http(triple.predicate.value) == _SKOS_XL + "prefLabel")
    if line is not None:
        raise InputError(
            "no concept has a name: the labels are SKOS-XL, which are not read",
            path=file.path,
            line=line,
            expected="skos:prefLabel",
            found="skosxl:prefLabel",
            fix="have the text of each (its skosxl:literalForm) written as skos:prefLabel or skos:altLabel too",
        )


class _Ontology:
    """What the triples say, term by term."""

    def __init__(self, statements: pl.DataFrame, options: IriOptions, reading: Reading) -> None:
        self._statements, self._options, self._reading = statements, options, reading
        self._wanted = WantedPrefixes(options, reading)
        self._code_of = code_maker(options.iri_prefixes)
        self._restrictions = (
            self._of("someValuesFrom")
            .select("subject", filler="value")
            .filter(~_is_blank("filler"))
            .join(self._of("onProperty").select("subject", property="value"), on="subject")
            .filter(~_is_blank("property"))  # an inverse one
            .unique("subject", keep="first", maintain_order=True)
        )
        self._names_of_properties = self._names_of(self._restrictions.select(subject="property").unique())

    def terms(self) -> Iterator[OntologyTerm]:
        """The concepts, in the order in which the file names them first as such."""
        classes = self._of("class").select("subject").unique(maintain_order=True)
        about = (
            self._statements.filter(pl.col("kind") != "class")
            .join(classes, on="subject", how="semi", maintain_order="left")
            .join(self._details(), on=["subject", "kind", "value", "language"], how="left", maintain_order="left")
            .join(self._restrictions.rename({"subject": "value"}), on="value", how="left", maintain_order="left")
        )
        gathered: _Gathered | None = None
        for row in classes.join(about, on="subject", how="left", maintain_order="left_right").iter_rows():
            subject, kind, value, language, detail, filler, predicate = row
            if gathered is None or gathered.iri != subject:
                if gathered is not None:
                    yield from self._finished(gathered)
                gathered = _Gathered(subject, OntologyTerm(self._code_of(subject)))
            if kind == "is_a" and filler is not None:
                relation = self._names_of_properties.get(predicate) or relation_name(predicate, self._code_of)
                gathered.term.relations.append((relation, self._code_of(filler)))
            elif kind is not None:
                self._add(gathered, kind, value, language, detail or "")
        if gathered is not None:
            yield from self._finished(gathered)

    def completed(self, tables: SourceTables) -> SourceTables:
        """The tables with what stands elsewhere: the default of semantic types, and equivalent classes."""
        self._check_iri_prefixes(tables.path)
        self._wanted.check(tables.path)
        defaults = [value for value in self._of("default")["value"] if not text_problem(value)]
        if defaults:
            tables = with_default_type(tables, defaults[0])
        pairs = self._of("equivalent").filter(~_is_blank("value")).select("subject", "value")
        sets = (([self._code_of(one), self._code_of(other)], None) for one, other in pairs.iter_rows())
        return with_head(with_equivalents(tables, sets, self._reading), self._said_of_itself())

    def _said_of_itself(self) -> Iterator[tuple[str, str]]:
        """By property: of the first ontology, or scheme of concepts, that says anything."""
        ontologies = self._of("ontology").select("subject").unique(maintain_order=True)
        statements = self._of(*RELEASE, *LICENCE).filter(~_is_blank("value"))
        said = ontologies.join(statements, on="subject", maintain_order="left_right")
        return said.filter(pl.col("subject") == pl.col("subject").first()).select("kind", "value").iter_rows()

    def _check_iri_prefixes(self, path: Path) -> None:
        """Refuse a beginning of IRIs that none has: all codes would stay IRIs, unnoticed."""
        starts = [start for start, _ in own_namespaces(self._options.iri_prefixes)]
        if not starts:
            return
        iris = pl.concat([self._statements["subject"], self._statements["value"]])
        there = [start for start in starts if iris.str.starts_with(start).any()]
        classes = self._of("class")["subject"].unique()
        begins = classes.filter(~classes.str.contains(f"^(?:{OWL}|{RDFS})")).str.extract("^(.*[/#:])")
        counted = begins.drop_nulls().value_counts().sort("count", "subject", descending=[True, False])
        check_chosen("iri_prefixes", starts, [*there, *counted["subject"].head(_MOST_SHOWN)], path=path)

    def _of(self, *kinds: str) -> pl.DataFrame:
        return self._statements.filter(pl.col("kind").is_in(kinds))

    def _details(self) -> pl.DataFrame:
        """What axioms say of a synonym or cross-reference: subject, kind, value and language of it, and the detail."""
        sources = self._of("source")
        telling = [source for source in sources["value"].unique() if mapping_relation([source]) != XREF]
        sources = sources.filter(pl.col("value").is_in(telling))
        of_kinds = {"synonymType": list(SYNONYMS), "source": [XREF]}
        details = pl.concat([self._of("synonymType"), sources]).select(axiom="subject", about="kind", detail="value")
        kinds = self._of("annotatedProperty").select(
            axiom="subject",
            kind=pl.col("value")
            .str.replace("^https:", "http:")
            .replace_strict(KIND_OF, default=None, return_dtype=STATEMENTS["kind"]),
        )
        subjects = self._of("annotatedSource").select(axiom="subject", subject="value")
        targets = self._of("annotatedTarget").select("value", "language", axiom="subject")
        fits = pl.any_horizontal(
            (pl.col("about") == about) & pl.col("kind").is_in(kinds_of) for about, kinds_of in of_kinds.items()
        )
        return (
            details.join(kinds, on="axiom", maintain_order="left")
            .filter(fits)
            .join(subjects, on="axiom", maintain_order="left")
            .join(targets, on="axiom", maintain_order="left")
            .unique(["subject", "kind", "value", "language"], keep="first", maintain_order=True)
            .select("subject", "kind", "value", "language", "detail")
        )

    def _names_of(self, subjects: pl.DataFrame) -> dict[str, str]:
        """What properties are called: the shorthand that OBO gives them, or their label."""
        named = self._of("shorthand", LABEL, "prefLabel").join(
            subjects, on="subject", how="semi", maintain_order="left"
        )
        names: dict[str, tuple[bool, bool, str]] = {}
        for subject, kind, value, language in named.iter_rows():
            key = (kind != "shorthand", not self._is_wanted(language), value)
            if not text_problem(value) and (subject not in names or key[:2] < names[subject][:2]):
                names[subject] = key
        return {subject: name for subject, (_, _, name) in names.items()}

    def _is_wanted(self, language: str) -> bool:
        return language in {"", self._options.language} or language.split("-", maxsplit=1)[0] == self._options.language

    def _add(self, gathered: _Gathered, kind: str, value: str, language: str, detail: str) -> None:
        term = gathered.term
        if kind in {LABEL, "prefLabel"}:
            gathered.labels.append(((not self._is_wanted(language), kind != LABEL), value.strip(), language))
        elif kind in SYNONYMS:
            if kind in self._options.scopes:
                term.synonyms.append(Synonym(value.strip(), synonym_type(kind, detail), language))
        elif kind == "definition":
            gathered.definitions.append((not self._is_wanted(language), value.strip()))
        elif kind == "deprecated":
            term.is_obsolete |= value.strip().lower() in {"true", "1"}
        elif value.startswith("_:"):
            if kind == "is_a":
                self._reading.note("class expressions that say no relation between two classes, left out", 1)
        elif kind == "is_a" and is_obsolete_class(value):
            term.is_obsolete = True
        elif kind == "namespace":
            term.semantic_types.append(value)
        elif kind == "replaced_by":
            add_successor(term, value, self._code_of, self._reading)
        elif kind == "alternative":
            term.alternative_ids.append(self._code_of(value))
        elif kind in {"is_a", "consider", "broader", "related_to"}:
            term.relations.append(("related" if kind == "related_to" else kind, self._code_of(value)))
        elif kind == XREF or kind in MAPPING_RELATIONS:
            term.cross_references.append((mapping_relation([kind, detail]), self._code_of(value)))

    def _finished(self, gathered: _Gathered) -> Iterator[OntologyTerm]:
        term = gathered.term
        iri = by_http(gathered.iri)
        if iri.startswith((OWL, RDFS)) or is_obsolete_class(iri):
            return
        if not self._wanted.keep(term.term_id):
            return
        labels = sorted(gathered.labels, key=lambda label: (not label[1].strip(), label[0]))  # a blank one is rejected
        if labels:
            term.labels, term.label_language = [labels[0][1]], labels[0][2]
            term.synonyms = [Synonym(text, LABEL, language) for _, text, language in labels[1:]] + term.synonyms
        languages = [language for _, language in {(text, language) for _, text, language in labels}]
        self._reading.note(
            "labels besides another of their language, kept as names", len(languages) - len(set(languages))
        )
        definitions = sorted(gathered.definitions, key=lambda definition: definition[0])
        term.definition = definitions[0][1] if definitions else ""
        self._reading.note("second and further definitions of a term, left out", max(len(set(definitions)) - 1, 0))
        yield term


@dataclass
class _Gathered:
    """A concept while its statements go by."""

    iri: str
    term: OntologyTerm
    labels: list[tuple[tuple[bool, bool], str, str]] = field(default_factory=list)
    """(in another language than wanted, no rdfs:label), text, language."""
    definitions: list[tuple[bool, str]] = field(default_factory=list)


def _is_blank(column: str) -> pl.Expr:
    return pl.col(column).str.starts_with("_:")


FORMAT = Format(
    name="owl",
    description="OWL ontologies and SKOS thesauri: RDF/XML, Turtle, N-Triples, TriG, JSON-LD",
    source="an .owl, .rdf, .ttl, .nt, .trig or .jsonld file, plain, gzip, or zipped",
    obtain="http://purl.obolibrary.org/obo/NAME.owl, e.g. mondo.owl; https://bioportal.bioontology.org, https://evs.nci.nih.gov",
    licence="each ontology's own (mostly CC BY 4.0 or CC0)",
    options=IriOptions,
    read=read_owl,
)
