"""Which names the encoder finds similar although they mean something else: what `NeighbourBatches` brings together.

All names that take part are encoded and searched a chunk at a time, so that memory does not grow with their number.
Several processes share the work: all call `Encode` together, and each searches for a part of those that ask.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from onoma.encoders.encoding import unit_rows
from onoma.indexes import ExactIndex
from onoma.training.distributed import gather, share
from onoma.types import FloatArray, RowArray

Encode: TypeAlias = Callable[[RowArray], FloatArray]
"""Rows of training names -> their unit vectors with the present weights, float32, shape (len(rows), D).

Runs without dropout and leaves the random state and the model's mode as they were. Several processes call it with the
same rows at the same time, and each gets all vectors.
"""

CHUNK_NAMES = 1 << 18
"""Names encoded and searched together: 0.4 GB of vectors at a width of 384."""
_BLOCK_QUERIES = 1024
_DEEPEST = 1024
"""Where so many nearest names are of the asking concept or of one that was found already, the search ends."""
_TIMED_CANDIDATES = 1 << 15
_TIMED_QUERIES = 256


def nearest_of_other_concepts(
    asking: RowArray,
    candidates: RowArray,
    labels: npt.NDArray[np.integer],
    *,
    neighbours: int,
    encode: Encode,
    text_labels: npt.NDArray[np.integer] | None = None,
    chunk_names: int = CHUNK_NAMES,
    on_chunk: Callable[[int, int], None] = lambda _done, _total: None,
) -> RowArray:
    """The names most similar to some names, no two of one concept and none of the asking name's own.

    Shapes: Q synonym pairs that ask, N candidates, K neighbours, D width.

    Args:
        asking: Rows of names, shape (Q, 2): the name that asks and a synonym of it.
        candidates: Rows of names that may be an answer, ascending, shape (N,); those that ask are among them.
        labels: Class of each training name.
        neighbours: K.
        encode: See `Encode`.
        text_labels: Names that are the same tokens share a number. A name that is the same as either of
            the two that ask is then no answer: it could not be pushed away from the one without pushing the other.
        chunk_names: See `CHUNK_NAMES`.
        on_chunk: Called with (candidates searched so far, in all).

    Returns:
        Rows of names, most similar first, -1 where there are no more, shape (Q, K).
    """
    own = asking[share(len(asking))]
    rows = np.full((len(own), neighbours), -1, np.int64)
    scores = np.full((len(own), neighbours), -np.inf, np.float32)
    is_whole = len(candidates) <= chunk_names
    queries = np.empty((0, 0), np.float32) if is_whole else encode(asking[:, 0])[share(len(asking))]
    for start in range(0, len(candidates), chunk_names):
        chunk = candidates[start : start + chunk_names]
        vectors = encode(chunk)
        if is_whole:
            queries = vectors[np.searchsorted(chunk, own[:, 0])]
        search = _Search(ExactIndex(vectors), chunk, labels, text_labels, neighbours)
        for begin in range(0, len(own), _BLOCK_QUERIES):
            block = slice(begin, begin + _BLOCK_QUERIES)
            found, similarity = search(queries[block], own[block])
            found = np.concatenate([rows[block], found], axis=1)
            similarity = np.concatenate([scores[block], similarity], axis=1)
            best_first = np.lexsort((found, -similarity), axis=1)
            found = np.take_along_axis(found, best_first, 1)
            similarity = np.take_along_axis(similarity, best_first, 1)
            rows[block], scores[block] = first_of_each_concept(
                found, similarity, labels[found], found >= 0, keep=neighbours
            )
        on_chunk(start + len(chunk), len(candidates))
    return gather(torch.from_numpy(rows), len(asking)).numpy()


def search_seconds(n_asking: int, n_candidates: int, *, width: int, neighbours: int) -> float:
    """About how long the search alone would take in one process, measured on random vectors."""
    random = np.random.default_rng(0)
    n_timed = min(n_candidates, _TIMED_CANDIDATES)
    vectors = unit_rows(random.standard_normal((n_timed, width), np.float32))
    queries = vectors[:_TIMED_QUERIES]
    index = ExactIndex(vectors)
    started = time.perf_counter()
    index.search(queries, k=_first_depth(neighbours))
    return (time.perf_counter() - started) * n_asking / len(queries) * n_candidates / n_timed


class _Search:
    """One chunk of candidates, asked deeper and deeper until enough concepts are found."""

    def __init__(
        self,
        index: ExactIndex,
        rows: RowArray,
        labels: npt.NDArray[np.integer],
        text_labels: npt.NDArray[np.integer] | None,
        neighbours: int,
    ) -> None:
        self._index, self._rows, self._neighbours = index, rows, neighbours
        self._labels, self._text_labels = labels, text_labels

    def __call__(self, queries: FloatArray, asking: RowArray) -> tuple[RowArray, FloatArray]:
        rows = np.empty((len(asking), self._neighbours), np.int64)
        scores = np.empty((len(asking), self._neighbours), np.float32)
        waiting = np.arange(len(asking))
        deepest = min(len(self._index), _DEEPEST)
        depth = min(_first_depth(self._neighbours), deepest)
        while len(waiting):
            places, similarity = self._index.search(queries[waiting], k=depth)
            found = self._rows[places]
            concepts = self._labels[found]
            allowed = concepts != self._labels[asking[waiting, :1]]
            if self._text_labels is not None:
                for side in (slice(0, 1), slice(1, 2)):
                    allowed &= self._text_labels[found] != self._text_labels[asking[waiting, side]]
            rows[waiting], scores[waiting] = first_of_each_concept(
                found, similarity, concepts, allowed, keep=self._neighbours
            )
            waiting = waiting[rows[waiting, -1] < 0] if depth < deepest else waiting[:0]
            depth = min(8 * depth, deepest)
        return rows, scores


def _first_depth(neighbours: int) -> int:
    return 4 * neighbours + 4


def first_of_each_concept(
    rows: RowArray,
    scores: FloatArray,
    concepts: npt.NDArray[np.integer],
    allowed: npt.NDArray[np.bool_],
    *,
    keep: int,
) -> tuple[RowArray, FloatArray]:
    """The first allowed entries of each line, one of each concept.

    Args:
        rows: Shape (Q, n).
        scores: Of each row, shape (Q, n).
        concepts: Of each row, shape (Q, n).
        allowed: Which entries may be kept, shape (Q, n).
        keep: Entries wanted of each line.

    Returns:
        Rows and scores, both of shape (Q, keep); -1 and minus infinity where a line has no more.

    Example:
        >>> rows, scores = np.array([[4, 5, 6, 7]]), np.array([[0.9, 0.8, 0.7, 0.6]], np.float32)
        >>> first_of_each_concept(rows, scores, np.array([[1, 2, 2, 3]]), rows != 4, keep=3)[0].tolist()
        [[5, 7, -1]]
    """
    # An entry that is not allowed counts as a concept of its own, so that it hides no other.
    own = np.where(allowed, concepts.astype(np.int64), -1 - np.arange(rows.shape[1]))
    order = np.argsort(own, axis=1, kind="stable")
    ordered = np.take_along_axis(own, order, 1)
    begins = np.ones(ordered.shape, bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    kept = np.empty_like(begins)
    np.put_along_axis(kept, order, begins, 1)
    kept &= allowed
    place = np.cumsum(kept, axis=1) - 1
    line, column = np.nonzero(kept & (place < keep))
    best = np.full((len(rows), keep), -1, np.int64)
    best_scores = np.full((len(rows), keep), -np.inf, np.float32)
    best[line, place[line, column]] = rows[line, column]
    best_scores[line, place[line, column]] = scores[line, column]
    return best, best_scores
