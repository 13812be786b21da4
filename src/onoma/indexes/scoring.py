"""What all indexes share: the check of a request, and scores that depend on a query and a vector alone.

How a matrix product rounds depends on its shape and on the number of threads. So it only says which rows cannot be
among the best; the scores of the others are products and sums in double precision, in an order that depends on the
width alone, rounded to single precision at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from onoma.errors import InputError, ShapeError, whole_number
from onoma.indexes.protocol import StoredVectors
from onoma.types import FloatArray, RowArray

_SCORED_AT_ONCE = 4096
_LARGEST_PRODUCT = 1e38
"""Lengths of query and vector multiplied stay below this, so that their dot product is a number in single precision."""


def check_queries(queries: FloatArray, *, width: int, max_norm: float, k: int) -> tuple[FloatArray, int]:
    """The queries as a matrix of float32, and ``k`` as a number that does not overflow.

    Args:
        queries: Shape (Q, W).
        width: Of the indexed vectors.
        max_norm: Bound of their lengths.
        k: Results asked for.

    Raises:
        ShapeError: the queries have another width, or are no matrix.
        InputError: a query is not finite, or too large for its products, or ``k`` is less than 1.
    """
    queries = np.asarray(queries)
    if queries.ndim != 2 or queries.shape[1] != width:
        raise ShapeError(f"queries must have shape (n, {width}); found {queries.shape}.")
    k = checked_k(k)
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    if not np.isfinite(queries).all():
        raise InputError("a query has components that are not finite", field="queries")
    longest = np.sqrt(np.einsum("qw,qw->q", queries, queries, dtype=np.float64).max(initial=0))
    if not float(longest) * max_norm < _LARGEST_PRODUCT:
        raise InputError("a query is too large for products in single precision", field="queries")
    return queries, k


def checked_k(k: int) -> int:
    """A number of results.

    Raises:
        InputError: less than 1.
    """
    return whole_number(k, "k", "too few results asked for")


def checked_candidates(candidates: int) -> int:
    """A number of candidates.

    Raises:
        InputError: less than 1.
    """
    return whole_number(candidates, "candidates", "too few candidates")


def rounding_slack(query: FloatArray, *, max_norm: float) -> float:
    """Twice the bound of a single-precision dot product's rounding error (Higham 2002, eq. 3.5).

    Of two products that differ by more, the larger one belongs to the higher score.

    Args:
        query: Shape (W,).
        max_norm: Bound of the length of the vector it is multiplied with.
    """
    length = float(np.sqrt(np.square(query, dtype=np.float64).sum()))
    # One more term than the width, for the rounding of the final scores to single precision.
    terms = (len(query) + 1) * 2.0**-24
    return 2 * terms / (1 - terms) * length * max_norm


def exact_scores(vectors: StoredVectors, query: FloatArray, rows: RowArray) -> FloatArray:
    """Dot product of the query with each of the rows, float32, shape (n,)."""
    exact = query.astype(np.float64)
    parts = [
        _exact(vectors.take(rows[start : start + _SCORED_AT_ONCE]), exact)
        for start in range(0, len(rows), _SCORED_AT_ONCE)
    ]
    return np.concatenate(parts or [np.empty(0, np.float32)])


def best_rows(vectors: StoredVectors, query: FloatArray, rows: RowArray, k: int) -> tuple[RowArray, FloatArray]:
    """The ``k`` best of some rows, exactly: higher score first, and of equal scores the lower row first.

    Args:
        vectors: Where the rows lie.
        query: Shape (W,).
        rows: Candidates, each once; ascending is fastest. Shape (n,).
        k: At most n.
    """
    if k < len(rows):
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [
                vectors.take(rows[start : start + _SCORED_AT_ONCE]) @ query
                for start in range(0, len(rows), _SCORED_AT_ONCE)
            ]
        rows = rows[_can_be_best(np.concatenate(parts), query, k, max_norm=vectors.max_norm)]
    return _in_order(rows, exact_scores(vectors, query, rows), k)


def best_rows_of_each(
    vectors: StoredVectors, queries: FloatArray, candidates: Sequence[RowArray], k: int
) -> tuple[RowArray, FloatArray]:
    """What `best_rows` gives for each of some queries, shape (Q, k); their vectors are read in one go.

    Args:
        vectors: Where the rows lie.
        queries: Shape (Q, W).
        candidates: For each query its rows, each once, ``k`` or more; so few that their vectors fit into memory.
        k: At most as many as any query has candidates.
    """
    values = vectors.take(np.concatenate(candidates))
    ends = np.cumsum([len(rows) for rows in candidates])
    found = []
    for query, rows, own in zip(queries, candidates, np.split(values, ends[:-1]), strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            kept = _can_be_best(own @ query, query, k, max_norm=vectors.max_norm)
        found.append(_in_order(rows[kept], _exact(own[kept], query.astype(np.float64)), k))
    return np.stack([rows for rows, _ in found]), np.stack([scores for _, scores in found])


def _can_be_best(products: FloatArray, query: FloatArray, k: int, *, max_norm: float) -> npt.NDArray[np.bool_]:
    """Which rows can be among the ``k`` best, by their products in single precision."""
    exact = products.astype(np.float64)
    with np.errstate(invalid="ignore"):
        least = np.partition(exact, len(exact) - k)[len(exact) - k]
        # Written so that a product that overflowed keeps its row.
        kept: npt.NDArray[np.bool_] = ~(exact < least - rounding_slack(query, max_norm=max_norm))
    return kept


def _exact(values: FloatArray, query: npt.NDArray[np.float64]) -> FloatArray:
    with np.errstate(over="ignore"):
        scores: FloatArray = (values * query).sum(axis=1).astype(np.float32)
    return scores


def _in_order(rows: RowArray, scores: FloatArray, k: int) -> tuple[RowArray, FloatArray]:
    best = np.lexsort((rows, -scores))[:k]
    return rows[best], scores[best]
