"""The two searches, by vectors and by character n-grams, behind one interface, and the candidates they find together.

A filter makes a search of the texts alone that pass: among millions of others they would lie too deep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from onoma.indexes import ExactIndex, Index
from onoma.indexes.char_ngram_vectors import NgramVector
from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.indexes.protocol import NarrowableIndex, StoredIndex, StoredVectors
from onoma.indexes.scoring import exact_scores
from onoma.linking.dictionary import NameDictionary
from onoma.linking.settings import Stage
from onoma.types import BoolArray, DoubleArray, FloatArray, RowArray

FEW_TEXTS = 1 << 16
"""So many texts that a filter leaves, or fewer, are compared one by one, their vectors in memory, if they are no larger
a part than this of all (with an approximate index however large a part, as it misses some):"""
FEW_SHARE = 1 / 4
_TEXTS_AT_ONCE = 1 << 22
"""Bound on the texts found for the mentions that are searched for at a time."""


@dataclass(frozen=True)
class AllowedTexts:
    """Texts that may be an answer.

    Attributes:
        mask: bool, shape (T,); unset: all.
        n_texts: T.
        few_share: They are few if they are `FEW_TEXTS` at most, and no larger a part than this of all.
    """

    mask: BoolArray | None
    n_texts: int
    few_share: float = FEW_SHARE

    @classmethod
    def of(cls, entries: BoolArray | None, dictionary: NameDictionary, *, few_share: float = FEW_SHARE) -> AllowedTexts:
        """Texts with an entry that may be an answer; unset: all."""
        if entries is None:
            return cls(None, dictionary.n_texts)
        before = np.concatenate([[0], np.cumsum(entries)])[dictionary.entry_offsets]
        return cls(np.asarray(np.diff(before) > 0, np.bool_), dictionary.n_texts, few_share)

    @cached_property
    def few(self) -> RowArray | None:
        """Their rows, if they are few; ``None``: indexes look for them."""
        if self.mask is None or np.count_nonzero(self.mask) > min(FEW_TEXTS, self.few_share * self.n_texts):
            return None
        return np.flatnonzero(self.mask)

    @property
    def n_candidates(self) -> int:
        """So many texts, or fewer, a search goes through."""
        return self.n_texts if self.few is None else len(self.few)


class Queries(Protocol):
    """The mentions of one call, ready for one search. Shapes: Q mentions, n texts, K the smaller of k and all texts."""

    def nearest(self, which: RowArray, k: int) -> tuple[RowArray, FloatArray]:
        """Texts and scores of the mentions ``which``, (q, K) each: higher score first, then the lower row."""

    def scores(self, mention: int, rows: RowArray) -> FloatArray:
        """Scores of given texts for one mention, the same as `nearest` gives them, shape (n,)."""


class DenseQueries:
    """Mentions by their vectors.

    Args:
        vectors: Of the mentions, float32, shape (Q, W).
        search: Where they are looked for.
    """

    def __init__(self, vectors: FloatArray, search: DenseSearch) -> None:
        self._vectors, self._search = vectors, search

    def nearest(self, which: RowArray, k: int) -> tuple[RowArray, FloatArray]:
        """See `Queries`."""
        rows, scores = self._search.nearest(self._vectors[which], k)
        return rows, _as_cosines(scores)

    def scores(self, mention: int, rows: RowArray) -> FloatArray:
        """See `Queries`."""
        return _as_cosines(exact_scores(self._search.vectors, self._vectors[mention], rows))


def _as_cosines(products: FloatArray) -> FloatArray:
    """Vectors that were rounded (fp16, int8) can be a little longer than 1, but no name is nearer than an equal one."""
    return np.clip(products, np.float32(-1), np.float32(1))


class DenseSearch:
    """Search by vectors.

    Args:
        index: Of the vectors of all texts.
        allowed: Which texts may be an answer.
    """

    def __init__(self, index: StoredIndex, allowed: AllowedTexts) -> None:
        self._index, self._allowed = index, allowed

    def __repr__(self) -> str:
        return f"DenseSearch({self._index!r})"

    @property
    def vectors(self) -> StoredVectors:
        """Of all texts, to score given ones: for fusion and for filters that leave few."""
        return self._index.vectors

    @cached_property
    def _among_few(self) -> Index | None:
        few = self._allowed.few
        return None if few is None else ExactIndex(self.vectors.take(few), max_norm=self.vectors.max_norm)

    @cached_property
    def _among_many(self) -> Index:
        if self._allowed.mask is None or not isinstance(self._index, NarrowableIndex):
            return self._index
        return self._index.among(np.flatnonzero(self._allowed.mask))

    def nearest(self, vectors: FloatArray, k: int) -> tuple[RowArray, FloatArray]:
        """See `Queries`; where many texts pass and the index cannot be narrowed to them, others are among these."""
        if self._among_few is None or self._allowed.few is None:
            return self._among_many.search(vectors, k=k)
        places, scores = self._among_few.search(vectors, k=k)
        return self._allowed.few[places], scores


class SparseQueries:
    """Mentions by their character n-grams.

    Args:
        texts: Q normalised mentions.
        search: Where they are looked for.
    """

    def __init__(self, texts: Sequence[str], search: SparseSearch) -> None:
        self._vectors, self._search = search.index.vectors(texts), search

    def nearest(self, which: RowArray, k: int) -> tuple[RowArray, FloatArray]:
        """See `Queries`."""
        return self._search.nearest([self._vectors[mention] for mention in which.tolist()], k)

    def scores(self, mention: int, rows: RowArray) -> FloatArray:
        """See `Queries`."""
        return self._search.index.scores_of(self._vectors[mention], rows)


class SparseSearch:
    """Search by character n-grams.

    Args:
        index: Of all texts.
        allowed: Which texts may be an answer.
    """

    def __init__(self, index: CharNgramIndex, allowed: AllowedTexts) -> None:
        self.index, self._allowed = index, allowed

    @cached_property
    def _among_many(self) -> CharNgramIndex:
        mask = self._allowed.mask
        return self.index if mask is None else self.index.among(np.flatnonzero(mask))

    def nearest(self, vectors: Sequence[NgramVector], k: int) -> tuple[RowArray, FloatArray]:
        """See `Queries`."""
        few = self._allowed.few
        if few is None:
            return self._among_many.nearest(vectors, k=k)
        rows = np.empty((len(vectors), min(k, len(few))), np.int64)
        scores = np.empty(rows.shape, np.float32)
        for place, vector in enumerate(vectors):  # one at a time: the names are few, the mentions may be many
            found = self.index.scores_of(vector, few)
            best = np.lexsort((few, -found))[:k]
            rows[place], scores[place] = few[best], found[best]
        return rows, scores


@dataclass(frozen=True)
class Pool:
    """A mention's candidates: n texts, ascending, and their scores by each search that is on.

    Attributes:
        rows: Shape (n,).
        parts: float64, shape (n,) each.
        tiers: With which pool each text came in: 0 for the first, 1 for those that only the next, larger one found, and
            so on; int64, shape (n,).
    """

    rows: RowArray
    parts: dict[Stage, DoubleArray]
    tiers: RowArray


def nearest_of_each(queries: Queries, which: RowArray, k: int) -> Iterator[tuple[int, RowArray, FloatArray]]:
    """Some mentions, one by one, with their texts and scores (see `Queries.nearest`), in memory that is bounded."""
    for part in _parts(which, k):
        yield from zip(part.tolist(), *queries.nearest(part, k), strict=True)


def _parts(which: RowArray, k: int) -> list[RowArray]:
    """Mentions in parts for which ``k`` texts each are not too many at once."""
    step = max(1, _TEXTS_AT_ONCE // k)
    return [which[start : start + step] for start in range(0, len(which), step)]


def gather_pools(
    searches: dict[Stage, Queries], which: RowArray, size: int, allowed: AllowedTexts, before: Mapping[int, Pool]
) -> Iterator[tuple[int, Pool]]:
    """Some mentions, one by one, with their candidates: the ``size`` best allowed texts of each search.

    They are scored by all searches.

    Args:
        searches: Those that are on.
        which: Mentions.
        size: Texts of each search; where there are fewer, all.
        allowed: Which texts may be an answer.
        before: Smaller pools of some of the mentions, which are kept: what is new is a tier of its own.
    """
    for part in _parts(which, size):
        found = [_best_allowed(queries, part, size, allowed) for queries in searches.values()]
        for mention, *rows in zip(part.tolist(), *found, strict=True):
            smaller = before.get(mention)
            known = np.empty(0, np.int64) if smaller is None else smaller.rows
            together = np.unique(np.concatenate([known, *rows]))
            tiers = np.zeros(len(together), np.int64)
            if smaller is not None:
                tiers += smaller.tiers.max(initial=-1) + 1
                tiers[np.searchsorted(together, known)] = smaller.tiers
            parts = {stage: queries.scores(mention, together).astype(np.float64) for stage, queries in searches.items()}
            yield mention, Pool(together, parts, tiers)


def _best_allowed(queries: Queries, which: RowArray, size: int, allowed: AllowedTexts) -> list[RowArray]:
    """The ``size`` best allowed texts of each mention; deeper and deeper where others are in the way."""
    answers: dict[int, RowArray] = {}
    waiting, depth = which, size
    while len(waiting):
        still_waiting = []
        for mention, mention_rows, _ in nearest_of_each(queries, waiting, depth):
            kept = mention_rows if allowed.mask is None else mention_rows[allowed.mask[mention_rows]]
            if len(kept) >= size or depth >= allowed.n_candidates:
                answers[mention] = kept[:size]
            else:
                still_waiting.append(mention)
        waiting = np.array(still_waiting, np.int64)
        depth *= 4
    return [answers[mention] for mention in which.tolist()]
