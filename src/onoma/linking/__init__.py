"""Mentions to ranked concepts: by the nearest name (`Linker`) and by look-up alone (`ExactMatcher`)."""

from onoma.linking.build import build_linker
from onoma.linking.dictionary import NameDictionary, build_dictionary
from onoma.linking.exact_match import ExactMatcher
from onoma.linking.linker import Linker
from onoma.linking.links import Link, MentionLinker

__all__ = ["ExactMatcher", "Link", "Linker", "MentionLinker", "NameDictionary", "build_dictionary", "build_linker"]
