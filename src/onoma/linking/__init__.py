"""Mentions to ranked concepts: by the stages of a linker (`Linker`) and by look-up alone (`ExactMatcher`)."""

from typing import TYPE_CHECKING

from onoma.lazy import lazily

if TYPE_CHECKING:
    from onoma.linking.asking import Asking
    from onoma.linking.build import add_prior, add_reranker, build_linker
    from onoma.linking.dictionary import NameDictionary, build_dictionary
    from onoma.linking.exact_match import ExactMatcher
    from onoma.linking.expansion import AbbreviationTable
    from onoma.linking.explanation import Explanation
    from onoma.linking.filters import Filters
    from onoma.linking.linker import Linker
    from onoma.linking.links import Link, MentionLinker
    from onoma.linking.mentions import Preparation
    from onoma.linking.reranking import Reranker
    from onoma.linking.settings import STAGES, LinkerSettings
    from onoma.linking.tuning import TuningReport, tune_linker
    from onoma.linking.update_report import UpdateReport
    from onoma.linking.updating import update_linker

__all__ = [
    "STAGES",
    "AbbreviationTable",
    "Asking",
    "ExactMatcher",
    "Explanation",
    "Filters",
    "Link",
    "Linker",
    "LinkerSettings",
    "MentionLinker",
    "NameDictionary",
    "Preparation",
    "Reranker",
    "TuningReport",
    "UpdateReport",
    "add_prior",
    "add_reranker",
    "build_dictionary",
    "build_linker",
    "tune_linker",
    "update_linker",
]

if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "onoma.linking.asking": ["Asking"],
            "onoma.linking.build": ["add_prior", "add_reranker", "build_linker"],
            "onoma.linking.dictionary": ["NameDictionary", "build_dictionary"],
            "onoma.linking.exact_match": ["ExactMatcher"],
            "onoma.linking.expansion": ["AbbreviationTable"],
            "onoma.linking.explanation": ["Explanation"],
            "onoma.linking.filters": ["Filters"],
            "onoma.linking.linker": ["Linker"],
            "onoma.linking.links": ["Link", "MentionLinker"],
            "onoma.linking.mentions": ["Preparation"],
            "onoma.linking.reranking": ["Reranker"],
            "onoma.linking.settings": ["STAGES", "LinkerSettings"],
            "onoma.linking.tuning": ["TuningReport", "tune_linker"],
            "onoma.linking.update_report": ["UpdateReport"],
            "onoma.linking.updating": ["update_linker"],
        },
    )
