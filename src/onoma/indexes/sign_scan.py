"""Guessed scores of all rows from their sign bits, by FAISS, one query on all cores.

Bits are taken four at a time as the code of a product quantiser whose 16 centroids are the corners of a cube, which
FAISS's fast scan looks up in registers (André, Kermarrec, Le Scouarnec 2015). The query is not reduced to bits. That is
two to three times as fast as counting the bits in which query and row differ, and finds the same with a quarter of the
candidates. FAISS rounds the tables of a query to 8 bits, by that query alone, and of equally good rows keeps the
lowest; that this is so is tested.

FAISS shares queries among threads, but not the rows for one query. So the rows are split into shards, which threads
take one by one. A shard rounds as the whole would, and what each finds is joined by the same rule: the answer is that
of one shard.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from onoma.indexes.candidate_search import IN_REGISTERS
from onoma.indexes.threads import most_threads, on_threads, own_threads
from onoma.types import FloatArray, RowArray

if TYPE_CHECKING:
    import faiss

_ROWS_OF_A_SHARD = 1 << 17
"""At least: with fewer (a quarter of a millisecond's work) waking a thread does not pay."""
_SHARDS_OF_A_THREAD = 2
"""So that a thread that comes late finds less left to do."""
_QUERIES_IN_REGISTERS = 0x2222
"""Eight queries at a time, two of them in registers: of the ways there are, the fastest with AVX2."""

SignArray = npt.NDArray[np.uint8]

_ROW_BITS = (1 << 32) - 1


class SignScanner:
    """Rows whose sign bits are nearest to a direction. It holds a copy of the bits, in FAISS's order.

    Args:
        signs: Sign bits of N rows, eight to a byte, uint8, shape (N, W / 8).
        n_shards: At most N. Unset: two for each thread that FAISS may use, if they are large enough.
    """

    def __init__(self, signs: SignArray, *, n_shards: int | None = None) -> None:

        if n_shards is None:
            n_shards = _n_shards(len(signs), most_threads())
        bounds = np.linspace(0, len(signs), n_shards + 1).astype(int).tolist()
        self._first_rows = bounds[:-1]
        self._shards = [_shard(signs[start:stop]) for start, stop in itertools.pairwise(bounds)]

    def nearest(self, directions: FloatArray, n_rows: int) -> RowArray:
        """The ``n_rows`` nearest rows of each direction, and of equals the lowest, in no particular order.

        Args:
            directions: Shape (Q, W).
            n_rows: At most N.

        Returns:
            int64, shape (Q, n_rows).
        """

        def search(shard: faiss.IndexPQFastScan) -> tuple[FloatArray, RowArray]:
            return shard.search(directions, min(n_rows, shard.ntotal))

        if len(self._shards) == 1:
            with own_threads():
                return search(self._shards[0])[1]
        found = on_threads(search, self._shards)
        keys = [
            _keys(distances, rows + first) for (distances, rows), first in zip(found, self._first_rows, strict=True)
        ]
        together = np.concatenate(keys, axis=1)
        together.partition(n_rows - 1, axis=1)
        return together[:, :n_rows] & _ROW_BITS


def _n_shards(n_rows: int, n_threads: int) -> int:
    wanted = 1 if n_threads == 1 else _SHARDS_OF_A_THREAD * n_threads
    return max(1, min(wanted, n_rows // _ROWS_OF_A_SHARD))


def _keys(distances: FloatArray, rows: RowArray) -> RowArray:
    """Numbers in the order of distance and then of row, which is in the lower half."""
    bits = (distances + np.float32(0)).view(np.int32).astype(np.int64)  # no negative zero
    bits ^= (bits >> 63) & 0x7FFFFFFF  # of negative numbers the larger bits are the lower number
    return (bits << 32) | rows


def _shard(signs: SignArray) -> faiss.IndexPQFastScan:
    import faiss

    n_bits = 8 * signs.shape[1]
    corners = 2.0 * np.unpackbits(np.arange(16, dtype=np.uint8)[:, None], axis=1, count=4, bitorder="little") - 1
    # Of the two metrics this one keeps the lowest of equally good rows. All corners have the same length, so the
    # nearest corner is that with the largest product.
    codes = faiss.IndexPQ(n_bits, n_bits // 4, 4, faiss.METRIC_L2)
    faiss.copy_array_to_vector(np.tile(corners.astype(np.float32), (n_bits // 4, 1)).ravel(), codes.pq.centroids)
    codes.is_trained = True
    codes.add_sa_codes(np.ascontiguousarray(signs))
    shard = faiss.IndexPQFastScan(codes)  # type: ignore[arg-type]  # its stub knows one of three constructors
    shard.implem = IN_REGISTERS
    instructions = faiss.get_compile_options()
    if "AVX2" in instructions and "AVX512" not in instructions:
        shard.qbs = _QUERIES_IN_REGISTERS
    return shard
