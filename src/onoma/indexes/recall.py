"""How often an index finds what comparing with every vector finds, measured when it is built."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict

from onoma.errors import InputError, ShapeError
from onoma.indexes.exact import ExactIndex
from onoma.indexes.protocol import Index
from onoma.indexes.scoring import exact_scores
from onoma.indexes.vector_store import VectorStore
from onoma.types import FloatArray, RowArray

N_QUERIES = 1000
AS_NEAR = 1e-6
"""Scores closer than this are equal but for rounding: either row is right."""
_DEEPEST = 10


class Recall(BaseModel):
    """What was measured of one index.

    A row of the answer is right if its score with the vectors as they were given, in single precision, is no lower than
    that of the k-th best row, less `AS_NEAR`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n_queries: int
    queries: str
    """``left-out``: stored vectors, evenly spaced, each asking for its nearest others as if it were not stored itself.
    ``given``: by the caller."""
    at_1: float
    """Share of queries whose first row is right."""
    at_10: float
    """Mean share of the ten best that are in the answer."""


@dataclass(frozen=True, slots=True, eq=False)
class TrueAnswers:
    """What comparing with every vector finds for some queries.

    Attributes:
        vectors: That were compared with.
        queries: Shape (Q, W).
        own: The rows that ask, where stored vectors do; each is left out of its answer.
        scores: Of the best rows, best first, shape (Q, up to 10).
    """

    vectors: VectorStore
    queries: FloatArray
    own: RowArray | None
    scores: FloatArray

    def recall_of(self, index: Index) -> Recall:
        """How much of it an index over these vectors finds, see `measure_recall`."""
        how = "given" if self.own is None else "left-out"
        depth = self.scores.shape[1]
        if self.scores.size == 0:
            return Recall(n_queries=0, queries=how, at_1=1.0, at_10=1.0)
        found, _ = _without(self.own, *index.search(self.queries, k=depth + (self.own is not None)))
        first, right = 0, 0.0
        for query, rows, scores in zip(self.queries, found, self.scores, strict=True):
            true = exact_scores(self.vectors, query, rows)
            first += bool(true[0] >= scores[0] - AS_NEAR)
            right += float(np.mean(true >= scores[-1] - AS_NEAR))
        n = len(self.queries)
        return Recall(n_queries=n, queries=how, at_1=round(first / n, 4), at_10=round(right / n, 4))


def find_true_answers(
    vectors: VectorStore, *, queries: FloatArray | None = None, n_queries: int = N_QUERIES
) -> TrueAnswers:
    """Search exhaustively, in the precision that the vectors are in.

    Args:
        vectors: To compare with.
        queries: Vectors of texts that are not among them, shape (Q, W).
        n_queries: How many stored vectors ask where no queries are given.

    Raises:
        ShapeError: the queries have another width.
    """
    own: RowArray | None = None
    if queries is None:
        own = _asking(vectors, n_queries)
        queries = vectors.take(own)
    elif queries.ndim != 2 or queries.shape[1] != vectors.width:
        raise ShapeError(f"queries must have shape (n, {vectors.width}); found {queries.shape}.")
    depth = min(_DEEPEST, len(vectors) - (own is not None))
    if depth <= 0 or len(queries) == 0:
        return TrueAnswers(vectors, queries, own, np.empty((len(queries), 0), np.float32))
    _, scores = _without(own, *ExactIndex(vectors).search(queries, k=depth + (own is not None)))
    return TrueAnswers(vectors, queries, own, scores)


def measure_recall(
    index: Index, vectors: VectorStore, *, queries: FloatArray | None = None, n_queries: int = N_QUERIES
) -> Recall:
    """Compare an index with exhaustive search in single precision.

    Held-out queries are what counts: a stored vector finds itself in any index. Unless queries are given, each of
    some stored vectors asks, and it is left out of both answers; its nearest others are as far away as a name that is
    not in the dictionary is from those that are. The zero vector, which is equally near to everything, does not ask.

    Args:
        index: What is measured, over these vectors in whatever precision.
        vectors: As they were given, in single precision.
        queries: Vectors of texts that are not in the index, shape (Q, W).
        n_queries: How many stored vectors ask where no queries are given.

    Returns:
        The figures, to four decimals; 1.0 where there is nothing to find.

    Raises:
        ShapeError: the queries have another width.
        InputError: the vectors are not in single precision, or not as many as the index has.
    """
    if vectors.precision != "fp32" or len(vectors) != len(index):
        raise InputError("recall is measured against the vectors of the index in fp32", found=vectors.precision)
    return find_true_answers(vectors, queries=queries, n_queries=n_queries).recall_of(index)


def _asking(vectors: VectorStore, n_queries: int) -> RowArray:
    """Rows, evenly spaced, whose vectors are not zero."""
    rows = vectors.spaced_rows(n_queries)
    return rows[np.any(vectors.take(rows) != 0, axis=1)]


def _without(own: RowArray | None, rows: RowArray, scores: FloatArray) -> tuple[RowArray, FloatArray]:
    """Answers without the row that asked; without the last one where that is not among them."""
    if own is None:
        return rows, scores
    asked = rows == own[:, None]
    asked[~asked.any(axis=1), -1] = True
    shape = (len(rows), rows.shape[1] - 1)
    return rows[~asked].reshape(shape), scores[~asked].reshape(shape)
