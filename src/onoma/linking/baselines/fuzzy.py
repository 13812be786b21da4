"""Baseline that compares whole strings by edits, with rapidfuzz."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from onoma.errors import missing_extra, one_of
from onoma.indexes.selection import top_rows
from onoma.linking.baselines.name_search import RankedNames, positive

Scorer: TypeAlias = Literal["wratio", "ratio", "jaro", "jaro-winkler"]
_TEXTS_AT_ONCE = 32
_NAMES_AT_ONCE = 1 << 16


class FuzzyNames:
    """Names by similarity of strings, 0 to 1, each text with each name, a tile of both at a time.

    Args:
        names: The names.
        scorer: "ratio": share of characters that stay when one string is edited into the other (insertions and
            deletions). "wratio": the best of that, of the same over sorted and over distinct words, and of the best
            part of the longer string, marked down (rapidfuzz's ``WRatio``). "jaro", "jaro-winkler": the measures of
            record linkage, for short strings.

    Raises:
        UnavailableError: rapidfuzz is not installed.
        ConfigError: there is no such scorer.
    """

    def __init__(self, names: Sequence[str], *, scorer: Scorer = "wratio") -> None:
        one_of(scorer, get_args(Scorer), "scorer")
        try:
            from rapidfuzz import distance, fuzz, process
        except ImportError:
            raise missing_extra("rapidfuzz", "fuzzy", "fuzzy matching") from None
        scorers: dict[str, tuple[Callable[..., float], float]] = {
            "wratio": (fuzz.WRatio, 100),
            "ratio": (fuzz.ratio, 100),
            "jaro": (distance.Jaro.similarity, 1),
            "jaro-winkler": (distance.JaroWinkler.similarity, 1),
        }
        self._scorer, highest = scorers[scorer]
        self._highest = np.float32(highest)
        self._compare: Callable[..., Any] = process.cdist
        self._names = list(names)

    def best(self, texts: Sequence[str], *, k: int) -> list[RankedNames]:
        """See `NameSearch.best`."""
        found: list[RankedNames] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            tile = texts[start : start + _TEXTS_AT_ONCE]
            best: list[RankedNames] = [(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in tile]
            for first in range(0, len(self._names), _NAMES_AT_ONCE):
                names = self._names[first : first + _NAMES_AT_ONCE]
                scores = self._compare(tile, names, scorer=self._scorer, dtype=np.float32) / self._highest
                best = [_merged(so_far, first, of_text, k) for so_far, of_text in zip(best, scores, strict=True)]
            found += best
        return [positive(*ranked) for ranked in found]


def _merged(so_far: RankedNames, first: int, scores: Any, k: int) -> RankedNames:
    """The best of those found so far and of the next names."""
    rows = top_rows(scores, k)
    all_rows = np.concatenate([so_far[0], rows + first])
    all_scores = np.concatenate([so_far[1], scores[rows]])
    order = np.lexsort((all_rows, -all_scores))[:k]
    return all_rows[order], all_scores[order]
