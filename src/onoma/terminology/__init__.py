"""Terminologies: concepts, their names and relations, read from any format into one folder.

from onoma.terminology import Terminology, import_terminology

print(import_terminology("cellxgene", "MONDO", "mondo"))
mondo = Terminology.open("mondo")
mondo.concept("MONDO:0005148").preferred_name
"""

from typing import TYPE_CHECKING

from onoma.lazy import lazily

if TYPE_CHECKING:
    from onoma.terminology.catalogue.entries import CatalogueEntry as CatalogueEntry
    from onoma.terminology.catalogue.entries import get_vocabulary as get_vocabulary
    from onoma.terminology.catalogue.entries import known_vocabularies as known_vocabularies
    from onoma.terminology.catalogue.fetching import FetchReport as FetchReport
    from onoma.terminology.catalogue.fetching import fetch as fetch
    from onoma.terminology.diffing import TerminologyDiff as TerminologyDiff
    from onoma.terminology.diffing import diff_terminologies as diff_terminologies
    from onoma.terminology.enriching import EnrichReport as EnrichReport
    from onoma.terminology.enriching import enrich_terminology as enrich_terminology
    from onoma.terminology.exporting import ExportReport as ExportReport
    from onoma.terminology.exporting import export_formats as export_formats
    from onoma.terminology.exporting import export_terminology as export_terminology
    from onoma.terminology.formats import known_formats as known_formats
    from onoma.terminology.importing import ImportReport as ImportReport
    from onoma.terminology.importing import import_terminology as import_terminology
    from onoma.terminology.information import TerminologyInfo as TerminologyInfo
    from onoma.terminology.merging import MergeReport as MergeReport
    from onoma.terminology.merging import merge_terminologies as merge_terminologies
    from onoma.terminology.normalisation import NORMALISATION_PRESETS as NORMALISATION_PRESETS
    from onoma.terminology.normalisation import normalise as normalise
    from onoma.terminology.normalisation import without_unseen as without_unseen
    from onoma.terminology.normalised_columns import normalise_expr as normalise_expr
    from onoma.terminology.readers.options import describe_options as describe_options
    from onoma.terminology.search import SearchHit as SearchHit
    from onoma.terminology.tables import TerminologyTables as TerminologyTables
    from onoma.terminology.tables import write_terminology as write_terminology
    from onoma.terminology.terminology import Concept as Concept
    from onoma.terminology.terminology import Terminology as Terminology


if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "onoma.terminology.catalogue.entries": ["CatalogueEntry", "get_vocabulary", "known_vocabularies"],
            "onoma.terminology.catalogue.fetching": ["FetchReport", "fetch"],
            "onoma.terminology.diffing": ["TerminologyDiff", "diff_terminologies"],
            "onoma.terminology.enriching": ["EnrichReport", "enrich_terminology"],
            "onoma.terminology.exporting": ["ExportReport", "export_formats", "export_terminology"],
            "onoma.terminology.formats": ["known_formats"],
            "onoma.terminology.importing": ["ImportReport", "import_terminology"],
            "onoma.terminology.information": ["TerminologyInfo"],
            "onoma.terminology.merging": ["MergeReport", "merge_terminologies"],
            "onoma.terminology.normalisation": [
                "NORMALISATION_PRESETS",
                "normalise",
                "without_unseen",
            ],
            "onoma.terminology.normalised_columns": ["normalise_expr"],
            "onoma.terminology.readers.options": ["describe_options"],
            "onoma.terminology.search": ["SearchHit"],
            "onoma.terminology.tables": ["TerminologyTables", "write_terminology"],
            "onoma.terminology.terminology": ["Concept", "Terminology"],
        },
    )
