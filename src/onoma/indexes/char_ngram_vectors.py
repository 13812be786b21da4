"""TF-IDF vectors of texts, as character n-grams that names have; see `onoma.indexes.char_ngrams`."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from onoma.errors import InputError, check_several
from onoma.indexes.char_ngram_weights import STAGES, StageArray
from onoma.indexes.inverting import Occurrences
from onoma.indexes.ngram_keys import NgramKeys, prepared
from onoma.indexes.postings import KeyArray
from onoma.types import DoubleArray, RowArray

_TEXTS_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class NgramVector:
    """The M n-grams that a text shares with any name of an index, by stage, within a stage by term.

    Attributes:
        terms: int64, shape (M,).
        unit: The text's TF-IDF vector, of length 1 unless there are others that count, shape (M,).
        weights: The same times the inverse document frequency: what one occurrence in a name of length 1 adds.
        ends: How many of the terms are of each stage or the ones before.
    """

    terms: RowArray
    unit: DoubleArray
    weights: DoubleArray
    ends: tuple[int, ...]

    @property
    def n_listed(self) -> int:
        """How many of the terms, the first, have a list; the others, those of the last stage, have a column."""
        return self.ends[-2]


@dataclass(frozen=True)
class NgramVectors:
    """Makes the vectors of texts from what is known of the V n-grams of N names.

    Attributes:
        ngram_keys: What number each n-gram is.
        keys: The n-grams, uint64, shape (V,), ascending: an n-gram's place here is its term.
        idf: What each weighs, shape (V,).
        stages: In which stage of a search each is looked at, shape (V,).
        n_names: N.
        counts_unknown: Whether n-grams that no name has make a text longer.
    """

    ngram_keys: NgramKeys
    keys: KeyArray
    idf: DoubleArray
    stages: StageArray
    n_names: int
    counts_unknown: bool = False

    def weights(self, text: str) -> dict[str, float]:
        """The weight of each n-gram that a text shares with any name, heaviest first."""
        (vector,) = self.of([text])
        order = np.argsort(-vector.unit, kind="stable")
        return {self.ngram_keys.ngram(int(self.keys[vector.terms[at]])): float(vector.unit[at]) for at in order}

    def of(self, texts: Sequence[str]) -> Iterator[NgramVector]:
        """The vectors of texts, in order."""
        for part in prepared_parts(texts):
            keys, rows = self.ngram_keys.occurrences(part)
            terms = np.searchsorted(self.keys, keys)
            is_known = terms < len(self.keys)
            is_known[is_known] = self.keys[terms[is_known]] == keys[is_known]
            with_unknown = np.bincount(rows[~is_known], minlength=len(part)) > 0
            pairs, counts = np.unique(rows[is_known] * len(self.keys) + terms[is_known], return_counts=True)
            rows, terms = np.divmod(pairs, max(1, len(self.keys)))
            stages = self.stages[terms]
            order = np.lexsort((terms, stages, rows))
            bounds = np.searchsorted(rows, np.arange(len(part) + 1))
            for place, (begin, end) in enumerate(itertools.pairwise(bounds.tolist())):
                of_text = order[begin:end]
                idf = self.idf[terms[of_text]]
                raw = counts[of_text] * idf
                square = math.fsum(raw**2)
                if self.counts_unknown and with_unknown[place]:
                    square += self._unknown_square(part[place], counts[of_text])
                unit = raw / (math.sqrt(square) or 1.0)
                ends = np.searchsorted(stages[of_text], np.arange(STAGES), side="right")
                yield NgramVector(terms[of_text], unit, unit * idf, tuple(ends.tolist()))

    def _unknown_square(self, text: str, known: RowArray) -> float:
        """What n-grams that no name has add to the square of a prepared text's length.

        Args:
            text: The text.
            known: How often each n-gram occurs in it that a name has.
        """
        shortest, longest = self.ngram_keys.ngrams
        lengths = range(shortest, longest + 1)
        all_counts = Counter(text[at : at + n] for n in lengths for at in range(len(text) - n + 1))
        n_unknown = sum(n * n for n in all_counts.values()) - int((known.astype(np.int64) ** 2).sum())
        return n_unknown * (math.log(1 + self.n_names) + 1) ** 2


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Several texts.

    Raises:
        InputError: something is not text.
    """
    check_several(texts, "texts")
    checked = list(texts)
    for place, text in enumerate(checked):
        if not isinstance(text, str):
            raise InputError("this is not text", field=f"texts[{place}]", found=repr(text))
    return checked


def prepared_parts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Some texts at a time, prepared."""
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        yield [prepared(text) for text in texts[start : start + _TEXTS_AT_ONCE]]


def occurrences(texts: Sequence[str], ngram_keys: NgramKeys) -> Occurrences:
    """Every n-gram of every text, and the row of its text, some texts at a time."""
    for start, part in zip(range(0, len(texts), _TEXTS_AT_ONCE), prepared_parts(texts), strict=True):
        keys, rows = ngram_keys.occurrences(part)
        yield keys, rows + start
