"""The formats that can be imported. A new one is a module in `onoma.terminology.readers` and a line here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from onoma.errors import ConfigError, one_of
from onoma.files.reading import Reading
from onoma.terminology.assembly import SourceTables
from onoma.terminology.readers.options import ReaderOptions


@dataclass(frozen=True)
class Format:
    """A format of terminologies.

    Attributes:
        name: As the command line takes it.
        description: What it is, in a line.
        source: What SOURCE is.
        obtain: Where a user gets the files.
        licence: Of what is usually read in this format.
        options: Their type.
        read: ``read(source, options, reading)``.
    """

    name: str
    description: str
    source: str
    obtain: str
    licence: str
    options: type[ReaderOptions]
    read: Callable[[str, Any, Reading], SourceTables]


def _registered() -> Mapping[str, Format]:
    from onoma.terminology.readers import (
        babelon,
        biosyn,
        cellxgene,
        csv_folder,
        ctd,
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
        umls,
    )

    formats = (
        obo.FORMAT,
        obographs.FORMAT,
        owl.FORMAT,
        babelon.FORMAT,
        cellxgene.FORMAT,
        pyhpo.FORMAT,
        umls.FORMAT,
        rxnorm.FORMAT,
        mesh.FORMAT,
        icd10cm.FORMAT,
        orphanet.FORMAT,
        snomed.FORMAT,
        omop.FORMAT,
        ctd.FORMAT,
        biosyn.FORMAT,
        table.FORMAT,
        csv_folder.FORMAT,
    )
    return MappingProxyType({entry.name: entry for entry in formats})


def known_formats() -> Mapping[str, Format]:
    """All formats by name.

    Example:
        >>> list(known_formats())[:4]
        ['obo', 'obographs', 'owl', 'babelon']
    """
    return _registered()


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
    "rrf": "umls",
    "rf2": "snomed",
    "athena": "omop",
}
"""Other names of what is read, in small letters without signs between them, and the format that reads it."""
