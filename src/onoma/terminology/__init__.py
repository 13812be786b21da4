"""Terminologies: concepts, their names and relations, read from any format into one folder.

from onoma.terminology import Terminology, import_terminology

print(import_terminology("cellxgene", "MONDO", "mondo"))
mondo = Terminology.open("mondo")
mondo.concept("MONDO:0005148").preferred_name
"""

from onoma.terminology.formats import Format, known_formats
from onoma.terminology.importing import ImportReport, import_terminology
from onoma.terminology.information import TerminologyInfo
from onoma.terminology.normalisation import NORMALISATION_PRESETS, normalise, normalise_expr
from onoma.terminology.options import describe_options
from onoma.terminology.search import SearchHit
from onoma.terminology.tables import TerminologyTables, write_terminology
from onoma.terminology.terminology import Concept, Terminology

__all__ = [
    "NORMALISATION_PRESETS",
    "Concept",
    "Format",
    "ImportReport",
    "SearchHit",
    "Terminology",
    "TerminologyInfo",
    "TerminologyTables",
    "describe_options",
    "import_terminology",
    "known_formats",
    "normalise",
    "normalise_expr",
    "write_terminology",
]
