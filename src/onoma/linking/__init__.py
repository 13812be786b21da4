"""Mentions to ranked concepts: by the stages of a linker (`Linker`) and by look-up alone (`ExactMatcher`)."""

from typing import TYPE_CHECKING

from onoma.lazy import lazily

if TYPE_CHECKING:
    from onoma.linking.asking import Asking as Asking
    from onoma.linking.build import add_prior as add_prior
    from onoma.linking.build import add_reranker as add_reranker
    from onoma.linking.build import build_linker as build_linker
    from onoma.linking.calibrating import NamesReport as NamesReport
    from onoma.linking.calibrating import calibrate_linker as calibrate_linker
    from onoma.linking.dictionary import NameDictionary as NameDictionary
    from onoma.linking.dictionary_building import build_dictionary as build_dictionary
    from onoma.linking.exact_match import ExactMatcher as ExactMatcher
    from onoma.linking.expansion import AbbreviationTable as AbbreviationTable
    from onoma.linking.explanation import Explanation as Explanation
    from onoma.linking.filters import Filters as Filters
    from onoma.linking.linker import Linker as Linker
    from onoma.linking.links import Link as Link
    from onoma.linking.links import MentionLinker as MentionLinker
    from onoma.linking.mentions import Preparation as Preparation
    from onoma.linking.reranking import Reranker as Reranker
    from onoma.linking.settings import LinkerSettings as LinkerSettings
    from onoma.linking.tuning import TuningReport as TuningReport
    from onoma.linking.tuning import tune_linker as tune_linker
    from onoma.linking.update_report import UpdateReport as UpdateReport
    from onoma.linking.updating import update_linker as update_linker


if not TYPE_CHECKING:  # who checks types shall find names that are misspelt
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "onoma.linking.asking": ["Asking"],
            "onoma.linking.build": ["add_prior", "add_reranker", "build_linker"],
            "onoma.linking.calibrating": ["NamesReport", "calibrate_linker"],
            "onoma.linking.dictionary": ["NameDictionary"],
            "onoma.linking.dictionary_building": ["build_dictionary"],
            "onoma.linking.exact_match": ["ExactMatcher"],
            "onoma.linking.expansion": ["AbbreviationTable"],
            "onoma.linking.explanation": ["Explanation"],
            "onoma.linking.filters": ["Filters"],
            "onoma.linking.linker": ["Linker"],
            "onoma.linking.links": ["Link", "MentionLinker"],
            "onoma.linking.mentions": ["Preparation"],
            "onoma.linking.reranking": ["Reranker"],
            "onoma.linking.settings": ["LinkerSettings"],
            "onoma.linking.tuning": ["TuningReport", "tune_linker"],
            "onoma.linking.update_report": ["UpdateReport"],
            "onoma.linking.updating": ["update_linker"],
        },
    )
