"""Exhaustive search: block maxima find the candidates, sums in a fixed order decide.

Two steps give an answer that is exact and the same on every run:

1. A single-precision matrix product, tile by tile, of which only the maximum of each block of rows is kept.
   The k best rows lie in the k best blocks, so nothing is sorted that cannot win. How a matrix product
   rounds depends on its shape and on the number of threads; blocks within twice the bound of that rounding
   error are therefore candidates too.
2. The rows of the candidate blocks are scored again, one query at a time: products and sum in double
   precision, in an order that depends on the width alone, rounded to single precision at the end.
"""

from __future__ import annotations

import numpy as np

from onoma.errors import InputError, ShapeError
from onoma.types import FloatArray, RowArray

_BLOCK_ROWS = 16
"""Rows that share one maximum: fewer mean fewer rows to score again, more mean fewer maxima to look through."""
_TILE_ROWS = 2048
"""Rows of one matrix product, so that its result stays in the cache. A multiple of the block."""
_TILE_QUERIES = 256
_MAXIMA_AT_ONCE = 1 << 24
"""Bound on kept maxima (64 MiB): with very many vectors, fewer queries are taken at a time."""
_RESCORED_AT_ONCE = 4096


class ExactIndex:
    """Nearest rows by comparing each query with every vector.

    Args:
        vectors: Shape (N, W), float32, in memory or memory-mapped; kept by reference and never changed.
        max_norm: An upper bound of the vectors' lengths, if the caller knows one: then nothing is read here,
            and a memory-mapped file opens at once. Unset: all vectors are read once, to measure it and to
            refuse what is not finite.

    Raises:
        ShapeError: ``vectors`` is no matrix or has no columns.
        InputError: not float32, or a vector is not finite.

    Example:
        >>> import numpy as np
        >>> index = ExactIndex(np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32))
        >>> rows, scores = index.search(np.array([[0, 1]], dtype=np.float32), k=2)
        >>> rows.tolist(), scores.round(2).tolist()
        ([[1, 2]], [[1.0, 0.800000011920929]])
    """

    def __init__(self, vectors: FloatArray, *, max_norm: float | None = None) -> None:
        if vectors.ndim != 2 or vectors.shape[1] == 0:
            raise ShapeError(f"an index needs vectors of shape (n, width > 0); found {vectors.shape}.")
        if vectors.dtype != np.float32:
            raise InputError("vectors of the wrong type", expected="float32", found=str(vectors.dtype))
        self._vectors: FloatArray = np.asarray(vectors)  # a plain view, also of a memory map
        self._max_norm = _longest(vectors) if max_norm is None else max_norm

    @property
    def width(self) -> int:
        """Components of a vector."""
        return int(self._vectors.shape[1])

    def __len__(self) -> int:
        return len(self._vectors)

    def search(self, queries: FloatArray, *, k: int = 5) -> tuple[RowArray, FloatArray]:
        """The ``k`` best rows of each query; see `Index.search`.

        Raises:
            ShapeError: the queries have another width, or are no matrix.
            InputError: a query or a vector is not finite, or ``k`` is less than 1.
        """
        queries = np.asarray(queries)
        if queries.ndim != 2 or queries.shape[1] != self.width:
            raise ShapeError(f"queries must have shape (n, {self.width}); found {queries.shape}.")
        if k < 1:
            raise InputError("too few results asked for", field="k", expected="1 or more", found=str(k))
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if not np.isfinite(queries).all():
            raise InputError("a query has components that are not finite", field="queries")
        k = min(k, len(self))
        rows = np.empty((len(queries), k), np.int64)
        scores = np.empty((len(queries), k), np.float32)
        if k == 0:
            return rows, scores
        n_blocks = -(-len(self) // _BLOCK_ROWS)
        step = min(_TILE_QUERIES, max(1, _MAXIMA_AT_ONCE // n_blocks))
        for start in range(0, len(queries), step):
            tile = queries[start : start + step]
            maxima = self._block_maxima(tile)
            for position, query in enumerate(tile):
                blocks = _candidate_blocks(maxima[position], k, slack=self._slack(query))
                best = self._best_rows(query, blocks, k)
                rows[start + position], scores[start + position] = best
        return rows, scores

    def _block_maxima(self, queries: FloatArray) -> FloatArray:
        """Highest score in each block of rows, shape (queries, blocks)."""
        transposed = np.ascontiguousarray(queries.T)
        # Rows before queries: the maximum then runs over whole lines of the result, which is several times faster.
        maxima = np.empty((-(-len(self) // _BLOCK_ROWS), len(queries)), np.float32)
        product = np.empty((_TILE_ROWS, len(queries)), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(self), _TILE_ROWS):
                tile = self._vectors[start : start + _TILE_ROWS]
                scores = np.matmul(tile, transposed, out=product[: len(tile)])
                whole = len(tile) // _BLOCK_ROWS
                first = start // _BLOCK_ROWS
                blocks = scores[: whole * _BLOCK_ROWS].reshape(whole, _BLOCK_ROWS, len(queries))
                blocks.max(axis=1, out=maxima[first : first + whole])
                if whole * _BLOCK_ROWS < len(tile):
                    scores[whole * _BLOCK_ROWS :].max(axis=0, out=maxima[first + whole])
        if not np.isfinite(maxima).all():
            raise InputError("the index holds vectors that are not finite", fix="build it again")
        return np.ascontiguousarray(maxima.T)

    def _slack(self, query: FloatArray) -> float:
        """Twice the bound of a single-precision dot product's rounding error (Higham 2002, eq. 3.5)."""
        length = float(np.sqrt(np.square(query, dtype=np.float64).sum()))
        unit = 2.0**-24
        # One more term than the width, for the rounding of the final scores to single precision.
        terms = (self.width + 1) * unit
        return 2 * terms / (1 - terms) * length * self._max_norm

    def _best_rows(self, query: FloatArray, blocks: RowArray, k: int) -> tuple[RowArray, FloatArray]:
        rows = (blocks[:, None] * _BLOCK_ROWS + np.arange(_BLOCK_ROWS)).ravel()
        rows = rows[rows < len(self)]
        exact = query.astype(np.float64)
        parts = [
            (self._vectors[rows[start : start + _RESCORED_AT_ONCE]] * exact).sum(axis=1)
            for start in range(0, len(rows), _RESCORED_AT_ONCE)
        ]
        scores = np.concatenate(parts).astype(np.float32)
        best = np.lexsort((rows, -scores))[:k]
        return rows[best], scores[best]


def _candidate_blocks(maxima: FloatArray, k: int, *, slack: float) -> RowArray:
    """Blocks that can hold one of the k best rows: those not clearly below the k-th highest maximum."""
    if k >= len(maxima):
        return np.arange(len(maxima))
    threshold = np.partition(maxima, len(maxima) - k)[len(maxima) - k]
    return np.flatnonzero(maxima.astype(np.float64) >= float(threshold) - slack)


def _longest(vectors: FloatArray) -> float:
    """Length of the longest vector, 0.0 if there is none; `InputError` if one is not finite."""
    longest = 0.0
    for start in range(0, len(vectors), _TILE_ROWS):
        squares = np.square(vectors[start : start + _TILE_ROWS], dtype=np.float64).sum(axis=1)
        if not np.isfinite(squares).all():
            row = start + int(np.flatnonzero(~np.isfinite(squares))[0])
            raise InputError(f"vector {row} has components that are not finite", field="vectors")
        longest = max(longest, float(squares.max()))
    return float(np.sqrt(longest))
