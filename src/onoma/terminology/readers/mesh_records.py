"""The content of one record of MeSH in XML, for `onoma.terminology.readers.mesh`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from onoma.files.xml_files import Element, line_of, text_of, texts_of
from onoma.terminology.readers.ontology import Scope

CATEGORIES = {
    "A": "Anatomy",
    "B": "Organisms",
    "C": "Diseases",
    "D": "Chemicals and Drugs",
    "E": "Analytical, Diagnostic and Therapeutic Techniques, and Equipment",
    "F": "Psychiatry and Psychology",
    "G": "Phenomena and Processes",
    "H": "Disciplines and Occupations",
    "I": "Anthropology, Education, Sociology, and Social Phenomena",
    "J": "Technology, Industry, and Agriculture",
    "K": "Humanities",
    "L": "Information Science",
    "M": "Named Groups",
    "N": "Health Care",
    "V": "Publication Characteristics",
    "Y": "Qualifiers",
    "Z": "Geographicals",
}
"""First letter of a tree number to the category."""
CLASSES = {
    "1": "Chemicals and Drugs",
    "2": "Protocols",
    "3": "Diseases",
    "4": "Organisms",
    "5": "Named Groups",
    "6": "Anatomy",
}
"""SCRClass of a supplementary record; named as the categories are."""

_SCOPE_OF_RELATION: dict[str, Scope] = {"NRW": "narrow", "BRD": "broad", "REL": "related"}
INVERSE: dict[Scope, Scope] = {"narrow": "broad", "broad": "narrow", "related": "related", "exact": "exact"}
MATCH_OF_SCOPE: dict[Scope, str] = {
    "exact": "xref",
    "narrow": "narrowMatch",
    "broad": "broadMatch",
    "related": "relatedMatch",
}
_NUMBERS = (
    (re.compile(r"(\d{2,7}-\d\d-\d)"), "CAS"),
    (re.compile(r"([0-9A-Z]{10})"), "UNII"),
    (re.compile(r"EC\s+([\d.n-]+)"), "EC"),
    (re.compile(r"txid(\d+)"), "NCBITaxon"),
)
_ENGLISH_TERM = re.compile(r"T\d+")
_DESCRIPTOR = "DescriptorReferredTo/DescriptorUI"
_HEADINGS = (
    ("mapped_to", f"HeadingMappedToList/HeadingMappedTo/{_DESCRIPTOR}"),
    ("has_pharmacologic_action", f"PharmacologicalActionList/PharmacologicalAction/{_DESCRIPTOR}"),
    # in older years below the concept
    (
        "has_pharmacologic_action",
        f"ConceptList/Concept/PharmacologicalActionList/PharmacologicalAction/{_DESCRIPTOR}",
    ),
    ("see_related", f"SeeRelatedList/SeeRelatedDescriptor/{_DESCRIPTOR}"),
)


@dataclass(frozen=True)
class Kind:
    """One of the three kinds of files, and what its records are called."""

    record: str
    id: str
    name: str


KINDS = {  # in the order in which they are read: headings before what is mapped to them
    "DescriptorRecordSet": Kind("DescriptorRecord", "DescriptorUI", "DescriptorName/String"),
    "QualifierRecordSet": Kind("QualifierRecord", "QualifierUI", "QualifierName/String"),
    "SupplementalRecordSet": Kind("SupplementalRecord", "SupplementalRecordUI", "SupplementalRecordName/String"),
}


class Record:
    """A record and the parts of it that are asked for more than once.

    Args:
        element: Of the file.
        kind: Of the file.
        is_translation: Whether the file is of another language than English.
    """

    def __init__(self, element: Element, kind: Kind, *, is_translation: bool) -> None:
        self.element, self.kind, self.is_translation = element, kind, is_translation
        self.id = text_of(element, kind.id)
        self.name = self.heading(text_of(element, kind.name))
        self.line = line_of(element)
        self.tree_numbers = texts_of(element, "TreeNumberList/TreeNumber")
        self.concepts = element.findall("ConceptList/Concept")
        # A star marks the heading that is the main one of an article.
        self.headings = [
            (relation, text.removeprefix("*")) for relation, path in _HEADINGS for text in texts_of(element, path)
        ]
        is_preferred = [concept.get("PreferredConceptYN") == "Y" for concept in self.concepts]
        preferred = is_preferred.index(True) if True in is_preferred else 0
        self.preferred = self.concepts[preferred] if self.concepts else None
        self.preferred_id = "" if self.preferred is None else text_of(self.preferred, "ConceptUI")

    def heading(self, text: str) -> str:
        """A heading without the English one that translations have behind it, "Aborto Legal[Abortion, Legal]"."""
        if not self.is_translation or not text.endswith("]"):
            return text
        depth = 0
        for place in range(len(text) - 1, 0, -1):  # the English one may have brackets too
            depth += (text[place] == "]") - (text[place] == "[")
            if depth == 0:
                return text[:place].rstrip() or text
        return text

    def language_of(self, term: Element) -> str:
        """Of a term: "" for that of the file, "en" for the English terms that translations keep."""
        return "en" if self.is_translation and _ENGLISH_TERM.fullmatch(text_of(term, "TermUI")) else ""

    def scopes(self) -> dict[str, Scope]:
        """Concept to what its names are for the record; a concept whose relation nobody tells is not among them."""
        scopes: dict[str, Scope] = {self.preferred_id: "exact"}
        for concept in self.concepts:
            for relation in concept.iterfind("ConceptRelationList/ConceptRelation"):
                scope = _SCOPE_OF_RELATION.get(relation.get("RelationName") or "")
                first, second = text_of(relation, "Concept1UI"), text_of(relation, "Concept2UI")
                if scope and first == self.preferred_id:
                    scopes.setdefault(second, scope)
                elif scope and second == self.preferred_id:
                    scopes.setdefault(first, INVERSE[scope])
        return scopes

    def definition(self) -> str:
        """Of the preferred concept, or of the supplementary record."""
        note = "" if self.preferred is None else text_of(self.preferred, "ScopeNote")
        return note or text_of(self.element, "Note")

    def semantic_types(self, concept: Element | None) -> list[str]:
        """Of the concept, or else the categories of the record."""
        named = [] if concept is None else texts_of(concept, "SemanticTypeList/SemanticType/SemanticTypeName")
        if named:
            return named
        letters = dict.fromkeys(number[0] for number in self.tree_numbers)
        class_name = CLASSES.get(self.element.get("SCRClass") or "")
        return [CATEGORIES[letter] for letter in letters if letter in CATEGORIES] + ([class_name] if class_name else [])


def cross_references(concept: Element, relation: str) -> list[tuple[str, str]]:
    """(mapping relation, code) of the numbers that a concept has elsewhere; ``relation`` is how it stands to ours."""
    found = [
        (relation, registry_code(number))
        for path in ("RegistryNumber", "RegistryNumberList/RegistryNumber")
        for number in texts_of(concept, path)
    ]
    umls = text_of(concept, "ConceptUMLSUI")
    if umls:
        found.append(("exactMatch" if relation == "xref" else relation, f"UMLS:{umls}"))
    related = texts_of(concept, "RelatedRegistryNumberList/RelatedRegistryNumber")
    found += [("relatedMatch", registry_code(number.partition(" (")[0])) for number in related]
    return [(match, code) for match, code in found if code]


def registry_code(number: str) -> str:
    """A registry number with the name of its registry; "" for "0", which means none.

    Example:
        >>> [registry_code(number) for number in ("50-78-2", "R16CO5Y76E", "EC 1.1.1.1", "txid9606", "0")]
        ['CAS:50-78-2', 'UNII:R16CO5Y76E', 'EC:1.1.1.1', 'NCBITaxon:9606', '']
    """
    for pattern, registry in _NUMBERS:
        match = pattern.fullmatch(number)
        if match:
            return f"{registry}:{match[1]}"
    return "" if number == "0" else number
