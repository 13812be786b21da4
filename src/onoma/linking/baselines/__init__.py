"""Linkers that nothing was trained for, to compare with: exact, tfidf, bm25, fuzzy, word-vectors."""

from onoma.linking.baselines.name_search import NameSearch, SearchLinker
from onoma.linking.baselines.opening import BASELINES, Baseline, get_baseline, open_baseline

__all__ = ["BASELINES", "Baseline", "NameSearch", "SearchLinker", "get_baseline", "open_baseline"]
