"""Medical Subject Headings in XML: descriptors (``desc``), supplementary concept records (``supp``), qualifiers.

Elements: https://www.nlm.nih.gov/mesh/xml_data_elements.html; the three levels record, concept and term:
https://www.nlm.nih.gov/mesh/xmlmesh.html. MEDLINE is indexed with records (D000001), and CTD, MEDIC and most data sets
mean a record by a MeSH code. A record has a preferred concept (M0000001) and may have narrower, broader or related
ones, whose terms also lead to the record.

==========================  ========================================================================================
element                     becomes
==========================  ========================================================================================
DescriptorUI, QualifierUI,  the concept. ``concepts=concepts`` makes each ConceptUI one instead; cross-references
SupplementalRecordUI        then say which record it belongs to (MESH:D000001)
DescriptorName, ...         the preferred name, term type "label" (ConceptName with ``concepts=concepts``)
Term/String                 a name: "exact_synonym" of the preferred concept; "narrow_synonym", "broad_synonym" or
                            "related_synonym" of another, by its ConceptRelation (NRW, BRD, REL). All are kept, as in
                            the field's dictionaries, unless option ``scopes`` says which
Term IsPermutedTermYN="Y"   left out and counted ("Infarction, Myocardial" made from an entry term); ``permuted=yes``
                            keeps it as "permuted_synonym"
TreeNumber                  ``is_a`` the record whose tree number lacks only the last part. MeSH's trees are made for
                            searching: some of these relations mean part of, not kind of
SemanticTypeName            the semantic type (in years that have it); for a record without one, the category of its
                            tree numbers ("Diseases") or the class of a supplementary record
ScopeNote                   a definition; for a supplementary record without one, its Note
HeadingMappedTo             ``mapped_to``, from a supplementary record to its descriptors
PharmacologicalAction       ``has_pharmacologic_action``
SeeRelatedDescriptor        ``see_related``
ConceptRelation             with ``concepts=concepts``: ``is_a`` (narrower, broader) or ``related_to``
RegistryNumber              a cross-reference: CAS:50-78-2, UNII:R16CO5Y76E, EC:1.1.1.1, NCBITaxon:9606; "xref" of the
                            preferred concept; narrowMatch, broadMatch or relatedMatch of another
RelatedRegistryNumber       a cross-reference, relatedMatch
ConceptUMLSUI               a cross-reference (in years that have it)
==========================  ========================================================================================

Not read: allowable qualifiers, entry combinations, notes for indexers, sort and entry versions (truncated spellings),
lexical tags, dates. MeSH drops retired records, so all concepts are active. The language is the LanguageCode of the
file. Translated files append the English heading to theirs ("Aborto Legal[Abortion, Legal]"); it is removed. They also
keep the English terms, with their codes (T000049; "por0000053" is a translated one): these are names in English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from onoma.errors import InputError
from onoma.files.reading import Reading, check_chosen
from onoma.files.xml_files import Element, XmlFile, find_xml, line_of, text_of, xml_elements
from onoma.terminology.assembly import SOURCE_RELATIONS, SourceTables
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.mesh_records import CATEGORIES, INVERSE, KINDS, MATCH_OF_SCOPE, Record, cross_references
from onoma.terminology.readers.ontology import (
    SCOPES,
    Columns,
    OntologyTerm,
    Scope,
    Scopes,
    Synonym,
    join_tables,
    tables_from_terms,
)
from onoma.terminology.readers.options import ReaderOptions, Words
from onoma.terminology.readers.rrf import LANGUAGES

SOURCE = "MESH"
_YEAR = re.compile(r"(?<=desc|supp|qual)[0-9]{4}")


class MeshOptions(ReaderOptions):
    """Options of the MeSH reader."""

    concepts: Literal["records", "concepts"] = Field(
        default="records",
        description="what is a concept: records (D012345, as MEDLINE and CTD have it) or concepts (M0012345)",
    )
    scopes: Scopes = Field(
        default=SCOPES,
        description="scopes of terms to keep besides headings: exact, narrow, broad, related, or all (of records)",
    )
    permuted: bool = Field(default=False, description="keep permuted terms, e.g. 'Infarction, Myocardial' (yes or no)")
    trees: Words = Field(
        default=(),
        description="keep descriptors below these tree numbers, e.g. C,F03, and what is mapped to them; empty: all",
    )


@dataclass
class _Found:
    """What is known of records that may be referred to; becomes relations when all files are read."""

    options: MeshOptions
    concept_of: dict[str, str] = field(default_factory=dict)
    """Record to the code it has in the terminology: its own, or that of its preferred concept."""
    owner_of: dict[str, str] = field(default_factory=dict)
    """Tree number to record."""
    trees: list[tuple[str, str, int | None]] = field(default_factory=list)
    """(code, tree number, line)."""
    headings: list[tuple[str, str, str, int | None]] = field(default_factory=list)
    """(code, relation, record, line)."""
    branches: set[str] = field(default_factory=set)
    """All there are, "C01" of "C01.150.252"."""
    trees_with_records: set[str] = field(default_factory=set)
    """Of those that were asked for."""

    def relations(self, reading: Reading) -> pl.DataFrame:
        """Of trees and headings, each once."""
        rows = Columns(SOURCE_RELATIONS)
        n_rootless = 0
        lines: dict[tuple[str, str, str], int | None] = {}
        for code, tree_number, line in self.trees:
            parent = tree_number.rpartition(".")[0]
            owner = self.owner_of.get(parent)
            if owner is not None and self.concept_of[owner] != code:
                lines.setdefault((code, "is_a", self.concept_of[owner]), line)
            n_rootless += bool(parent) and owner is None
        for code, relation, record, line in self.headings:
            lines.setdefault((code, relation, self.concept_of.get(record, record)), line)
        for triple, line in lines.items():
            rows.add(*triple, SOURCE, line)
        reading.note("tree numbers below one that was not read", n_rootless)
        return rows.frame()


def read_mesh(source: str, options: MeshOptions, reading: Reading) -> SourceTables:
    """Read MeSH XML.

    Args:
        source: A file (plain, gzip or zip), or a folder or zip archive with several of one year.
        options: What to keep.
        reading: Where bad records go.

    Raises:
        InputError: no such file, or not this XML, or two files of one kind; ``trees`` without descriptors; under
            "strict" also a record without code or with one that occurred before, or a blank term.
    """
    files = _files(Path(source), options)
    found = _Found(options)
    parts = [
        tables_from_terms(
            _terms(file, found, reading), path=file.path, language=_language(file), reading=reading, source=SOURCE
        )
        for file in files
    ]
    unseen = [tree for tree in options.trees if tree not in found.trees_with_records]
    check_chosen("trees", unseen, found.branches, path=source)
    tables = join_tables(parts)
    years = sorted({match[0] for file in files if (match := _YEAR.search(file.file.base))})
    return replace(tables, relations=pl.concat([tables.relations, found.relations(reading)]), release=", ".join(years))


def _files(source: Path, options: MeshOptions) -> list[XmlFile]:
    if source.suffix.lower() == ".bin":
        raise InputError(
            "this is MeSH in its old text format", path=source, expected="XML", fix="get the .xml or .gz of that year"
        )
    files = find_xml(source, KINDS)
    found: dict[str, XmlFile] = {}
    for file in files:
        other = found.setdefault(file.root, file)
        if other is not file:
            raise InputError(
                f"two files of the same kind, <{file.root}>", path=file.path, found=str(other.path), fix="keep one"
            )
    if options.trees and "DescriptorRecordSet" not in found:
        raise InputError(
            "which records are below a tree number is known from the descriptors",
            path=source,
            field="trees",
            fix="name a folder with the descriptor file too",
        )
    return [found[root] for root in KINDS if root in found]


def _language(file: XmlFile) -> str:
    code = file.attributes.get("LanguageCode", "eng").upper()
    return LANGUAGES.get(code, code.lower())


def _terms(file: XmlFile, found: _Found, reading: Reading) -> Iterator[OntologyTerm]:
    kind = KINDS[file.root]
    is_translation = _language(file) != "en"
    for element in xml_elements(file.file, kind.record, reading):
        record = Record(element, kind, is_translation=is_translation)
        if not record.name:
            reading.reject(
                "a record without a name",
                path=file.path,
                line=record.line,
                text=record.id,
                field=kind.name,
                found="nothing",
            )
        elif not found.options.trees or _is_below(record, found):
            yield from _terms_of(record, found, reading)
        else:
            reading.note("records that are not below the trees asked for, left out", 1)


def _is_below(record: Record, found: _Found) -> bool:
    wanted = found.options.trees
    if record.kind.record == "SupplementalRecord":
        return any(relation == "mapped_to" and heading in found.concept_of for relation, heading in record.headings)
    found.branches.update(number.partition(".")[0] for number in record.tree_numbers)
    trees = {
        tree
        for number in record.tree_numbers
        for tree in wanted
        if number.startswith(tree if tree in CATEGORIES else f"{tree}.") or number == tree
    }
    found.trees_with_records |= trees
    return bool(trees)


def _terms_of(record: Record, found: _Found, reading: Reading) -> Iterator[OntologyTerm]:
    scopes = record.scopes()
    per_concept = found.options.concepts == "concepts"
    code = record.preferred_id if per_concept else record.id
    if record.id:
        found.concept_of[record.id] = code
        found.owner_of.update(dict.fromkeys(record.tree_numbers, record.id))
    found.trees += [(code, number, record.line) for number in record.tree_numbers]
    found.headings += [(code, relation, heading, record.line) for relation, heading in record.headings]
    unrelated = sum(text_of(concept, "ConceptUI") not in scopes for concept in record.concepts)
    reading.note("concepts without a relation to the preferred one, taken as related", unrelated)
    if not per_concept:
        yield _term_of_record(record, scopes, found.options, reading)
        return
    for concept in record.concepts:
        yield _term_of_concept(concept, record, scopes, found.options, reading)


def _term_of_record(record: Record, scopes: dict[str, Scope], options: MeshOptions, reading: Reading) -> OntologyTerm:
    term = OntologyTerm(record.id, labels=[record.name] if record.name else [], line=record.line)
    for concept in record.concepts:
        scope = scopes.get(text_of(concept, "ConceptUI"), "related")
        if scope in options.scopes:
            term.synonyms += _synonyms(concept, scope, record.name, record, options, reading)
        term.cross_references += cross_references(concept, MATCH_OF_SCOPE[scope])
    term.definition = record.definition()
    term.semantic_types = record.semantic_types(record.preferred)
    return term


def _term_of_concept(
    concept: Element, record: Record, scopes: dict[str, Scope], options: MeshOptions, reading: Reading
) -> OntologyTerm:
    concept_id, name = text_of(concept, "ConceptUI"), record.heading(text_of(concept, "ConceptName/String"))
    scope = scopes.get(concept_id, "related")
    term = OntologyTerm(concept_id, labels=[name] if name else [], line=line_of(concept))
    term.synonyms = _synonyms(concept, "exact", name, record, options, reading)
    term.semantic_types = record.semantic_types(concept)
    is_preferred = concept is record.preferred
    term.definition = record.definition() if is_preferred else text_of(concept, "ScopeNote")
    # The record stands to a narrower concept as something broader.
    match = "exactMatch" if is_preferred else MATCH_OF_SCOPE[INVERSE[scope]]
    term.cross_references = [(match, f"{SOURCE}:{record.id}"), *cross_references(concept, "xref")]
    if scope == "narrow":
        term.relations.append(("is_a", record.preferred_id))
    elif scope == "related":
        term.relations.append(("related_to", record.preferred_id))
    if is_preferred:
        term.relations += [("is_a", other) for other, its in scopes.items() if its == "broad"]
    return term


def _synonyms(
    concept: Element, scope: Scope, heading: str, record: Record, options: MeshOptions, reading: Reading
) -> list[Synonym]:
    """Terms of a concept; its heading is there already."""
    synonyms = []
    for term in concept.iterfind("TermList/Term"):
        text, language = text_of(term, "String"), record.language_of(term)
        if term.get("IsPermutedTermYN") == "Y":
            if options.permuted:
                synonyms.append(Synonym(text, "permuted_synonym", language))
            else:
                reading.note("permuted terms, left out", 1)
        elif text != heading or language:
            synonyms.append(Synonym(text, f"{scope}_synonym", language))
    return synonyms


FORMAT = Format(
    name="mesh",
    description="Medical Subject Headings (MeSH) in XML: descriptors, supplementary records, qualifiers",
    source="desc2025.xml, supp2025.xml, ... (plain, gzip or zip), or a folder or zip with several of one year",
    obtain="https://www.nlm.nih.gov/databases/download/mesh.html (free, no account): desc, supp and qual in XML",
    licence="free with attribution to the NLM, stating the year and what was changed",
    options=MeshOptions,
    read=read_mesh,
)
