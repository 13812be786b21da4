"""Codes from the IRIs of ontologies, and what their standard properties mean.

An IRI of the OBO Foundry, ``http://purl.obolibrary.org/obo/MONDO_0005148``, stands for the code ``MONDO:0005148`` (OBO
1.4, section 5.9). So do IRIs that begin with one of `NAMESPACES`; any other IRI is its own code, unless the user gives
a prefix for it. What is not an IRI (``MONDO:0005148``, ``C0011860``) already is a code. IRIs known here are also known
with ``https://``, which some files write, because browsers show addresses that way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Annotated
from urllib.parse import unquote

from pydantic import AfterValidator, BeforeValidator

from onoma.terminology.readers.options import split_words

OBO = "http://purl.obolibrary.org/obo/"
OBO_IN_OWL = "http://www.geneontology.org/formats/oboInOwl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"

SYNONYM_PROPERTIES: Mapping[str, str] = MappingProxyType(
    {
        OBO + "IAO_0000118": "exact",
        SKOS + "altLabel": "exact",
        SKOS + "hiddenLabel": "related",
        "http://www.ebi.ac.uk/efo/alternative_term": "exact",
        "http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl#P90": "exact",
    }
)
"""Properties other than those of oboInOwl whose values are names, and the scope of these: alternative term, ..."""

_SYNONYM_PROPERTIES_IN_OBO = {
    "IAO:0000118": "exact",
    "skos:altLabel": "exact",
    "skos:hiddenLabel": "related",
    "EFO:alternative_term": "exact",
    "NCIT:P90": "exact",
    **SYNONYM_PROPERTIES,
}

NAMESPACES: Mapping[str, str] = MappingProxyType(
    {
        "http://www.ebi.ac.uk/efo/EFO_": "EFO",
        "http://www.orpha.net/ORDO/Orphanet_": "Orphanet",
        "http://identifiers.org/mesh/": "MESH",
        "http://id.nlm.nih.gov/mesh/": "MESH",
        "http://linkedlifedata.com/resource/umls/id/": "UMLS",
        "http://identifiers.org/umls/": "UMLS",
        "http://identifiers.org/snomedct/": "SCTID",
        "http://snomed.info/id/": "SCTID",
        "http://identifiers.org/omim/": "OMIM",
        "https://omim.org/entry/": "OMIM",
        "https://omim.org/phenotypicSeries/PS": "OMIMPS",
        "http://identifiers.org/medgen/": "MEDGEN",
        "http://identifiers.org/hgnc/": "HGNC",
        "http://identifiers.org/meddra/": "MedDRA",
        "http://purl.bioontology.org/ontology/ICD10CM/": "ICD10CM",
        "http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl#": "NCIT",
    }
)
"""IRIs of ontologies outside the OBO library, and of what MONDO and others refer to, by the prefix in OBO files."""

_OBSOLETE_CLASS = {f"{begin}ObsoleteClass" for begin in (OBO_IN_OWL, "oboInOwl:", "oio:", "")}
_OBO_CODE = re.compile(
    r"http://purl\.obolibrary\.org/obo/(?:([A-Za-z][A-Za-z0-9.\-_]*)_(\d+)|([A-Za-z][A-Za-z0-9.\-]*)_([^\s/#]+))"
)
"""Prefixes may have underscores (APOLLO_SV): where digits follow the last one is the colon, as the OWL API has it, else
the first."""

_MAPPINGS = {
    **{name: name for name in ("exactMatch", "closeMatch", "broadMatch", "narrowMatch", "relatedMatch")},
    "equivalentTo": "exactMatch",  # MONDO writes these as the source of a cross-reference
    "mondoIsNarrowerThanSource": "broadMatch",
    "mondoIsBroaderThanSource": "narrowMatch",
    "relatedTo": "relatedMatch",
}


def _namespaces(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        prefix, _, start = word.partition("=")
        if not prefix.strip() or not start.strip():
            raise ValueError(f"'{word}' is not PREFIX=IRI, e.g. ECO=http://example.org/eco#")
    return words


IriPrefixes = Annotated[tuple[str, ...], BeforeValidator(split_words), AfterValidator(_namespaces)]
"""Prefixes for IRIs, "PREFIX=IRI" each."""


def own_namespaces(iri_prefixes: tuple[str, ...]) -> list[tuple[str, str]]:
    """Beginnings of IRIs and their prefixes.

    Args:
        iri_prefixes: "PREFIX=IRI" each.

    Example:
        >>> own_namespaces(("MY=http://example.org/my#",))
        [('http://example.org/my#', 'MY')]
    """
    parts = [word.partition("=")[::2] for word in iri_prefixes]
    return [(start.strip(), prefix.strip()) for prefix, start in parts]


def by_http(iri: str) -> str:
    """An IRI that may be written with ``https://``, as vocabularies define theirs.

    Example:
        >>> by_http("https://www.w3.org/2004/02/skos/core#altLabel")
        'http://www.w3.org/2004/02/skos/core#altLabel'
    """
    return f"http:{iri.removeprefix('https:')}" if iri.startswith("https:") else iri


def is_obsolete_class(written: str) -> bool:
    """Whether an IRI, or an id in OBO, is the parent of obsolete classes (before 2011, and long after in EFO).

    Example:
        >>> is_obsolete_class("https://www.geneontology.org/formats/oboInOwl#ObsoleteClass")
        True
        >>> is_obsolete_class("oboInOwl:ObsoleteClass"), is_obsolete_class("EFO:ObsoleteClass")
        (True, False)
    """
    return by_http(written) in _OBSOLETE_CLASS


def code_maker(iri_prefixes: tuple[str, ...] = ()) -> Callable[[str], str]:
    """A function from an IRI to the code it stands for; white space around it, as literals may have, is no part of it.

    Args:
        iri_prefixes: "PREFIX=IRI" each; they count before `NAMESPACES`.

    Example:
        >>> code_of = code_maker(("MY=http://example.org/my#",))
        >>> code_of("http://purl.obolibrary.org/obo/MONDO_0005148"), code_of("http://example.org/my#7"), code_of("C11")
        ('MONDO:0005148', 'MY:7', 'C11')
        >>> code_of("http://purl.obolibrary.org/obo/APOLLO_SV_00000008")
        'APOLLO_SV:00000008'
    """
    own = own_namespaces(iri_prefixes)
    known = [(by_http(start), prefix) for start, prefix in NAMESPACES.items()]
    begins = ("http", *(start for start, _ in own))

    def code_of(iri: str) -> str:
        iri = iri.strip()
        if not iri.startswith(begins):
            return iri
        defined = by_http(iri)
        for starts, found in ((own, iri), (known, defined)):
            for start, prefix in starts:
                if found.startswith(start) and len(found) > len(start):
                    return f"{prefix}:{found[len(start) :]}"
        match = _OBO_CODE.fullmatch(defined)
        if match is None:
            return iri
        return f"{match[1] or match[3]}:{unquote(match[2] or match[4])}"

    return code_of


def relation_name(iri: str, code_of: Callable[[str], str]) -> str:
    """What a relation is called of whose property the file gives no name.

    Example:
        >>> relation_name("http://example.org/x#part_of", code_maker())
        'part_of'
        >>> relation_name("http://purl.obolibrary.org/obo/BFO_0000050", code_maker())
        'BFO:0000050'
    """
    code = code_of(iri)
    return last_part(code) if code.startswith("http") else code


def last_part(iri: str) -> str:
    """The name at the end of an IRI or CURIE: "exactMatch" of ``skos:exactMatch``.

    Example:
        >>> last_part("http://www.geneontology.org/formats/oboInOwl#hasExactSynonym"), last_part("oio:hasExactSynonym")
        ('hasExactSynonym', 'hasExactSynonym')
    """
    return re.split(r"[#/:]", iri.rstrip("#/:"))[-1] or iri


def mapping_relation(properties_or_sources: Iterable[str]) -> str:
    """How a cross-reference relates, by SKOS properties or by the sources that MONDO and GO give with it; else "xref".

    Example:
        >>> mapping_relation(["MONDO:equivalentTo", "DOID:1"]), mapping_relation(["GARD:1"])
        ('exactMatch', 'xref')
    """
    for name in properties_or_sources:
        relation = _MAPPINGS.get(last_part(name))
        if relation:
            return relation
    return "xref"


def scope_of_values(property_name: str) -> str | None:
    """The scope of the names that the values of a property are, given as IRI or as in OBO files; None: they are none.

    Example:
        >>> scope_of_values("http://purl.obolibrary.org/obo/IAO_0000118"), scope_of_values("skos:hiddenLabel")
        ('exact', 'related')
    """
    return _SYNONYM_PROPERTIES_IN_OBO.get(by_http(property_name))


def synonym_type(scope: str, type_of_synonym: str = "") -> str:
    """The term type of a synonym: its scope, and its type, in lower case, as far as the source has one.

    Example:
        >>> synonym_type("exact"), synonym_type("broad", "http://purl.obolibrary.org/obo/hp#layperson")
        ('exact_synonym', 'broad_synonym/layperson')
        >>> synonym_type("exact", "OMO:0003000"), synonym_type("exact", "ABBREVIATION")
        ('exact_synonym/abbreviation', 'exact_synonym/abbreviation')
    """
    if not type_of_synonym.strip():
        return f"{scope}_synonym"
    known = SYNONYM_TYPES.get(by_http(type_of_synonym).removeprefix(OBO).replace("_", ":"))
    return f"{scope}_synonym/{known or last_part(type_of_synonym).strip().lower()}"


SYNONYM_TYPES = {
    f"OMO:{3000 + number:07}": name
    for number, name in enumerate(
        (
            "abbreviation",
            "ambiguous",
            "dubious",
            "layperson",
            "plural_form",
            "uk_spelling",
            "misspelling",
            "misnomer",
            "previous_name",
            "legal_name",
            "international_nonproprietary_name",
            "latin_term",
            "acronym",
        )
    )
}
"""Types of the OBO Metadata Ontology by their meaning, since a number says nothing, spelled as HPO spells its own."""
