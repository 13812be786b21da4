"""Terminologies: concepts, their names and relations, read from any format into one folder.

from onoma.terminology import Terminology, import_terminology

print(import_terminology("cellxgene", "MONDO", "mondo"))
mondo = Terminology.open("mondo")
mondo.concept("MONDO:0005148").preferred_name
"""

from typing import TYPE_CHECKING

from onoma.lazy import lazily

if TYPE_CHECKING:
    from onoma.terminology.catalogue.entries import CatalogueEntry, get_vocabulary, known_vocabularies
    from onoma.terminology.catalogue.fetching import FetchReport, fetch
    from onoma.terminology.diffing import TerminologyDiff, diff_terminologies
    from onoma.terminology.enriching import EnrichReport, enrich_terminology
    from onoma.terminology.exporting import ExportFormat, ExportReport, export_formats, export_terminology
    from onoma.terminology.formats import Format, known_formats
    from onoma.terminology.importing import ImportReport, import_terminology
    from onoma.terminology.information import TerminologyInfo
    from onoma.terminology.merging import MergeReport, merge_terminologies
    from onoma.terminology.normalisation import NORMALISATION_PRESETS, normalise, normalise_expr, without_unseen
    from onoma.terminology.readers.options import describe_options
    from onoma.terminology.search import SearchHit
    from onoma.terminology.tables import TerminologyTables, write_terminology
    from onoma.terminology.terminology import Concept, Terminology

__all__ = [
    "NORMALISATION_PRESETS",
    "CatalogueEntry",
    "Concept",
    "EnrichReport",
    "ExportFormat",
    "ExportReport",
    "FetchReport",
    "Format",
    "ImportReport",
    "MergeReport",
    "SearchHit",
    "Terminology",
    "TerminologyDiff",
    "TerminologyInfo",
    "TerminologyTables",
    "describe_options",
    "diff_terminologies",
    "enrich_terminology",
    "export_formats",
    "export_terminology",
    "fetch",
    "get_vocabulary",
    "import_terminology",
    "known_formats",
    "known_vocabularies",
    "merge_terminologies",
    "normalise",
    "normalise_expr",
    "without_unseen",
    "write_terminology",
]

if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "onoma.terminology.catalogue.entries": ["CatalogueEntry", "get_vocabulary", "known_vocabularies"],
            "onoma.terminology.catalogue.fetching": ["FetchReport", "fetch"],
            "onoma.terminology.diffing": ["TerminologyDiff", "diff_terminologies"],
            "onoma.terminology.enriching": ["EnrichReport", "enrich_terminology"],
            "onoma.terminology.exporting": ["ExportFormat", "ExportReport", "export_formats", "export_terminology"],
            "onoma.terminology.formats": ["Format", "known_formats"],
            "onoma.terminology.importing": ["ImportReport", "import_terminology"],
            "onoma.terminology.information": ["TerminologyInfo"],
            "onoma.terminology.merging": ["MergeReport", "merge_terminologies"],
            "onoma.terminology.normalisation": [
                "NORMALISATION_PRESETS",
                "normalise",
                "normalise_expr",
                "without_unseen",
            ],
            "onoma.terminology.readers.options": ["describe_options"],
            "onoma.terminology.search": ["SearchHit"],
            "onoma.terminology.tables": ["TerminologyTables", "write_terminology"],
            "onoma.terminology.terminology": ["Concept", "Terminology"],
        },
    )
