"""Baselines that compare spellings: equal names, character n-grams, words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.indexes.inverting import invert
from onoma.indexes.postings import KeyArray
from onoma.indexes.selection import top_rows
from onoma.linking.baselines.name_search import RankedNames, positive, words_of
from onoma.linking.lookup import SortedStrings, order_of
from onoma.types import RowArray

_NAMES_AT_ONCE = 1 << 16


class EqualNames:
    """Names equal to the text, with the score 1; a text that is empty has none."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = SortedStrings(names, order_of(names))

    def best(self, texts: Sequence[str], *, k: int) -> list[RankedNames]:
        """See `NameSearch.best`."""
        found = [self._names.rows(text)[: k if text else 0] for text in texts]
        return [(rows, np.ones(len(rows), np.float32)) for rows in found]


class TfidfNames:
    """Names by the cosine of TF-IDF vectors of character n-grams; see `CharNgramIndex`."""

    def __init__(self, names: Sequence[str], *, ngrams: tuple[int, int] = (1, 2)) -> None:
        self._index = CharNgramIndex.build(names, ngrams=ngrams)

    def best(self, texts: Sequence[str], *, k: int) -> list[RankedNames]:
        """See `NameSearch.best`."""
        return [positive(rows, scores) for rows, scores in zip(*self._index.search(texts, k=k), strict=True)]


class Bm25Names:
    """Names by BM25 over words.

    For each word of the text, as often as it stands there: idf x f (k1 + 1) / (f + k1 (1 - b + b n / m)), with f how
    often the name has the word, n the number of its words, m the mean of n over all names, and
    idf = ln(1 + (N - d + 0.5) / (d + 0.5)) with d the names that have the word, out of N.

    Args:
        names: The names.
        k1: How much it counts that a name has a word more than once, from 0.
        b: How much longer names are marked down, 0 to 1.

    Source:
        Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework", eq. 3.15; the idf is Lucene's, which is
        never negative. Lucene leaves the factor (k1 + 1) out, which does not change the order.
    """

    def __init__(self, names: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        self._terms: dict[str, int] = {}
        self._lengths = np.zeros(len(names))
        _, self._postings = invert(self._occurrences(names), len(names))
        frequencies = self._postings.frequencies()
        self._idf = np.log1p((len(names) - frequencies + 0.5) / (frequencies + 0.5))
        mean = self._lengths.mean() if self._lengths.any() else 1.0
        self._k1, self._damping = k1, k1 * (1 - b + b * self._lengths / mean)

    def best(self, texts: Sequence[str], *, k: int) -> list[RankedNames]:
        """See `NameSearch.best`."""
        return [self._best(text, k) for text in texts]

    def _best(self, text: str, k: int) -> RankedNames:
        terms = Counter(term for word in words_of(text) if (term := self._terms.get(word)) is not None)
        totals = np.zeros(len(self._lengths))
        for term in sorted(terms):
            rows, counts = self._postings.containing(term)
            totals[rows] += terms[term] * self._idf[term] * counts * (self._k1 + 1) / (counts + self._damping[rows])
        scores = totals.astype(np.float32)
        rows = top_rows(scores, k)
        return positive(rows, scores[rows])

    def _occurrences(self, names: Sequence[str]) -> Iterator[tuple[KeyArray, RowArray]]:
        """Numbers of words and the rows that have them; words are numbered as they turn up."""
        for start in range(0, len(names), _NAMES_AT_ONCE):
            words = [words_of(name) for name in names[start : start + _NAMES_AT_ONCE]]
            lengths = np.array([len(of_name) for of_name in words])
            self._lengths[start : start + len(words)] = lengths
            keys = [self._terms.setdefault(word, len(self._terms)) for of_name in words for word in of_name]
            yield np.array(keys, np.uint64), np.repeat(np.arange(start, start + len(words)), lengths)
