"""The formats that can be imported. A new one is a module in `onoma.terminology.readers` and a line here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from onoma.errors import ConfigError, one_of
from onoma.terminology.readers import (
    babelon,
    biosyn,
    cellxgene,
    claml,
    csv_folder,
    ctd,
    fhir,
    icd10cm,
    mesh,
    obo,
    obographs,
    omop,
    orphanet,
    owl,
    pyhpo,
    rxnorm,
    snomed,
    table,
    taxonomy,
    umls,
    uniprot,
)
from onoma.terminology.readers.format import Format

_READERS = (
    obo,
    obographs,
    owl,
    babelon,
    cellxgene,
    pyhpo,
    umls,
    rxnorm,
    mesh,
    icd10cm,
    claml,
    fhir,
    orphanet,
    snomed,
    omop,
    ctd,
    taxonomy,
    uniprot,
    biosyn,
    table,
    csv_folder,
)
"""In the order in which formats are listed."""


def known_formats() -> Mapping[str, Format]:
    """All formats by name.

    Example:
        >>> list(known_formats())[:4]
        ['obo', 'obographs', 'owl', 'babelon']
    """
    return MappingProxyType({reader.FORMAT.name: reader.FORMAT for reader in _READERS})


def get_format(name: str) -> Format:
    """The format of this name.

    Raises:
        ConfigError: there is none.
    """
    known = known_formats()
    reads_it = _READ_BY.get(re.sub(r"\W+", "", str(name).lower()))
    if reads_it and str(name) not in known:
        raise ConfigError(f"there is no format '{name}': that is read by format '{reads_it}'.")
    return known[one_of(name, known, "format")]


_READ_BY = {
    **dict.fromkeys(
        ("skos", "rdf", "rdfxml", "rdfs", "ttl", "turtle", "nt", "ntriples", "nq", "nquads", "trig", "jsonld"), "owl"
    ),
    **dict.fromkeys(("obojson", "obograph", "obographjson", "obographsjson"), "obographs"),
    **dict.fromkeys(("tsv", "parquet", "jsonl", "ndjson", "jsonlines"), "table"),
    **dict.fromkeys(("icd10", "icd10who", "icd10gm", "ops", "icf"), "claml"),
    **dict.fromkeys(("codesystem", "valueset", "fhirjson", "fhirxml"), "fhir"),
    "rrf": "umls",
    "rf2": "snomed",
    "athena": "omop",
    **dict.fromkeys(("swissprot", "sprot", "trembl", "dat"), "uniprot"),
    **dict.fromkeys(("dmp", "taxdump", "taxdmp", "newtaxdump", "ncbitaxonomy", "ncbitaxon"), "taxonomy"),
}
"""Other names of what is read, in small letters without signs between them, and the format that reads it."""
