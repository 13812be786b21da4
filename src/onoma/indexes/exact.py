"""Exhaustive search: block maxima find the candidates, sums in a fixed order decide.

Two steps give an answer that is exact and the same on every run:

1. A single-precision matrix product is computed tile by tile, and only the maximum of each block of rows is kept. The k
   best rows are in the k best blocks, so nothing is sorted that cannot win. The rounding of a matrix product depends on
   its shape and on the number of threads; therefore blocks within twice the bound of that rounding error are candidates
   too.
2. The rows of the candidate blocks are scored again, one query at a time (see `onoma.indexes.scoring`).
"""

from __future__ import annotations

import copy

import numpy as np

from onoma.errors import InputError
from onoma.indexes.scoring import best_rows, check_queries, rounding_slack
from onoma.indexes.vector_store import VectorStore
from onoma.types import FloatArray, RowArray

_BLOCK_ROWS = 16
"""Rows that share one maximum: fewer mean fewer rows to score again, more mean fewer maxima to look through."""
_TILE_ROWS = 2048
"""Rows of one matrix product, so that its result stays in the cache. A multiple of the block."""
_TILE_QUERIES = 256
_MAXIMA_AT_ONCE = 1 << 25
"""Bound on kept maxima (128 MiB): with very many vectors, fewer queries are taken at a time."""


class ExactIndex:
    """Nearest rows by comparing each query with every vector.

    Args:
        vectors: A store, or an array of shape (N, W), float32, in memory or memory-mapped; kept by reference and never
            changed.
        max_norm: Of an array, see `VectorStore`.

    Raises:
        ShapeError: ``vectors`` is not a matrix or has no columns.
        InputError: not float32, or a vector is not finite.

    Example:
        >>> import numpy as np
        >>> index = ExactIndex(np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32))
        >>> rows, scores = index.search(np.array([[0, 1]], dtype=np.float32), k=2)
        >>> rows.tolist(), scores.round(2).tolist()
        ([[1, 2]], [[1.0, 0.800000011920929]])
    """

    is_approximate = False

    def __init__(self, vectors: FloatArray | VectorStore, *, max_norm: float | None = None) -> None:
        self.vectors = vectors if isinstance(vectors, VectorStore) else VectorStore(vectors, max_norm=max_norm)
        self._rows: RowArray | None = None
        """Those that are searched; unset: all."""

    def __repr__(self) -> str:
        return f"ExactIndex({len(self):,} x {self.width})"

    @property
    def width(self) -> int:
        """Components of a vector."""
        return self.vectors.width

    def __len__(self) -> int:
        return len(self.vectors) if self._rows is None else len(self._rows)

    def among(self, rows: RowArray) -> ExactIndex:
        """See `NarrowableIndex.among`."""
        other = copy.copy(self)
        other._rows = rows
        return other

    def search(self, queries: FloatArray, *, k: int = 5) -> tuple[RowArray, FloatArray]:
        """The ``k`` best rows of each query; see `Index.search`.

        Raises:
            ShapeError: the queries have another width, or are no matrix.
            InputError: a query or a vector is not finite, or ``k`` is less than 1.
        """
        queries, k = check_queries(queries, width=self.width, max_norm=self.vectors.max_norm, k=k)
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
            for position, query in enumerate(tile, start):
                slack = rounding_slack(query, max_norm=self.vectors.max_norm)
                blocks = _candidate_blocks(maxima[position - start], k, slack=slack)
                candidates = (blocks[:, None] * _BLOCK_ROWS + np.arange(_BLOCK_ROWS)).ravel()
                candidates = candidates[candidates < len(self)]
                candidates = candidates if self._rows is None else self._rows[candidates]
                rows[position], scores[position] = best_rows(self.vectors, query, candidates, k)
        return rows, scores

    def _block_maxima(self, queries: FloatArray) -> FloatArray:
        """Highest score in each block of rows, shape (queries, blocks)."""
        transposed = np.ascontiguousarray(queries.T)
        # Rows before queries: the maximum then runs over whole lines of the result, which is several times faster.
        maxima = np.empty((-(-len(self) // _BLOCK_ROWS), len(queries)), np.float32)
        product = np.empty((_TILE_ROWS, len(queries)), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(self), _TILE_ROWS):
                tile = self._tile(slice(start, start + _TILE_ROWS))
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

    def _tile(self, here: slice) -> FloatArray:
        return self.vectors.part(here.start, here.stop) if self._rows is None else self.vectors.take(self._rows[here])


def _candidate_blocks(maxima: FloatArray, k: int, *, slack: float) -> RowArray:
    """Blocks that can hold one of the k best rows: those not clearly below the k-th highest maximum."""
    if k >= len(maxima):
        return np.arange(len(maxima))
    threshold = np.partition(maxima, len(maxima) - k)[len(maxima) - k]
    return np.flatnonzero(maxima.astype(np.float64) >= float(threshold) - slack)
