"""Inverted lists of short codes find the candidates, exact vectors decide.

Vectors are grouped into lists around centroids (k-means), and each is kept as a short code (product quantisation,
Jégou, Douze, Schmid 2011; half a byte for four components). Only the lists with the nearest centroids are looked
through, by FAISS's fast scan, and the rows with the nearest codes are scored exactly. So a search takes a fraction of
the time of one with sign bits, and it misses more: names lie near one another for many reasons, and the nearest can be
in a list further away. How many are missed is measured when an index is built. It is made for vectors of about equal
length, as those of names are.

What it returns has exact scores, and is the same for a query whatever the batch and the threads: lists are chosen by
sums of whole numbers, which no order of summation changes, and each query goes through its lists in their order. They
are built by a single thread.

File: ``lists.faiss`` beside the vectors, about W / 8 + 8 bytes for each, read into memory. There is none where
there are fewer than `LEAST_VECTORS`; then every search compares with all.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onoma.errors import DamagedArtifactError
from onoma.indexes.candidate_search import CANDIDATES, IN_REGISTERS, CandidateIndex
from onoma.indexes.vector_store import VectorStore
from onoma.types import FloatArray, RowArray

if TYPE_CHECKING:
    import faiss

LISTS_FILE = "lists.faiss"
LEAST_VECTORS = 4096

_LISTS_PER_ROOT = 4
"""Lists for the square root of the number of vectors."""
_PROBED_PER_ROOT = 8
"""Lists looked through for the square root of the number of lists: of 1,024 a quarter, of 8,192 an eleventh."""
_ROWS_PER_CANDIDATE = 4
"""Rows at least in the lists that are looked through, for each candidate wanted."""
_TRAINING_ROWS_PER_LIST = 64
_LEAST_ROWS_PER_LIST = 39
"""With fewer FAISS warns that k-means has too little to go by."""
_TRAINING_ROUNDS = 10
_CODE_WIDTH = 4
_WHOLE = 1 << 24
"""Up to here every whole number is a number of single precision."""


class ApproximateIndex(CandidateIndex):
    """Nearest rows among those that the nearest inverted lists lead to.

    Where so many results are wanted that a large share of the rows would be candidates, all rows are compared, and the
    answer is exact.

    Args:
        vectors: N vectors of width W.
        lists: Of the same vectors, as `build` makes them; none if there are fewer than `LEAST_VECTORS`.
        candidates: Rows scored exactly for each query, or `CANDIDATES_PER_RESULT` for each result if that is more.

    Raises:
        InputError: fewer than one candidate.
        DamagedArtifactError: the lists do not belong to these vectors.
    """

    def __init__(
        self, vectors: VectorStore, lists: faiss.IndexIVFPQFastScan | None, *, candidates: int = CANDIDATES
    ) -> None:
        super().__init__(vectors, candidates=candidates)
        needed = (len(vectors), _padded(vectors.width)) if len(vectors) >= LEAST_VECTORS else None
        found = None if lists is None else (lists.ntotal, lists.d)
        if needed != found:
            raise DamagedArtifactError(
                f"The inverted lists are of {found or 'no vectors'} (number, width); {len(vectors)} vectors of width "
                f"{vectors.width} need {needed or 'none'}. Build the index again."
            )
        self._lists = lists
        self._centroids = None if lists is None else _WholeNumbers(lists.quantizer.reconstruct_n(0, lists.nlist))
        self._one_at_a_time = threading.Lock()

    @classmethod
    def build(cls, vectors: VectorStore, *, candidates: int = CANDIDATES) -> ApproximateIndex:
        """An index in memory."""
        return cls(vectors, _built(vectors) if len(vectors) >= LEAST_VECTORS else None, candidates=candidates)

    @classmethod
    def open(cls, folder: Path, vectors: VectorStore, *, candidates: int = CANDIDATES) -> ApproximateIndex:
        """What `save` wrote.

        Raises:
            DamagedArtifactError: the file is missing or not of these vectors.
        """
        import faiss

        file = folder / LISTS_FILE
        if len(vectors) < LEAST_VECTORS:
            return cls(vectors, None, candidates=candidates)
        try:
            lists = faiss.read_index(str(file))
        except (RuntimeError, MemoryError) as error:
            reason = str(error).strip().splitlines()[-1]
            raise DamagedArtifactError(f"{file} cannot be read ({reason}). Build the index again.") from None
        if not isinstance(lists, faiss.IndexIVFPQFastScan):
            raise DamagedArtifactError(f"{file} holds something else than inverted lists. Build the index again.")
        lists.implem = IN_REGISTERS
        return cls(vectors, lists, candidates=candidates)

    def save(self, folder: Path) -> None:
        """Write the lists into ``folder``; the vectors are stored on their own."""
        import faiss

        if self._lists is not None:
            faiss.write_index(self._lists, str(folder / LISTS_FILE))

    @property
    def _can_guess(self) -> bool:
        return self._lists is not None

    def _guess(self, queries: FloatArray, *, n_rows: int) -> RowArray:
        """Rows with the nearest codes in the nearest lists, -1 for none, shape (Q, n_rows)."""
        lists = self._lists
        assert lists is not None  # or there would be nothing to guess with
        assert self._centroids is not None
        padded = np.zeros((len(queries), lists.d), np.float32)
        largest = np.abs(queries).max(axis=1, keepdims=True)
        # Their length does not matter to the order of scores; equal ones are near in the sense of the lists.
        lengths = np.sqrt(np.square(queries / np.where(largest > 0, largest, 1), dtype=np.float64).sum(axis=1))
        np.divide(queries, largest * np.maximum(lengths, 1)[:, None], out=padded[:, : self.width], where=largest > 0)
        probed = math.ceil(_PROBED_PER_ROOT * lists.nlist**0.5)
        enough = math.ceil(_ROWS_PER_CANDIDATE * n_rows * lists.nlist / len(self))
        probed = min(lists.nlist, max(probed, enough))
        near = self._centroids.nearest(padded, probed)
        search: Any = lists.search_preassigned  # its stub has the signature that it has in C++
        with self._one_at_a_time:
            lists.nprobe = probed
            found: RowArray = search(padded, n_rows, near, None)[1]
        return found


class _WholeNumbers:
    """Centroids rounded so that their products with rounded queries are exact, however they are summed."""

    def __init__(self, centroids: FloatArray) -> None:
        self._levels = math.isqrt(_WHOLE // centroids.shape[1])
        self._step = float(np.abs(centroids).max(initial=0)) / self._levels or 1.0
        self._centroids = np.rint(centroids / np.float32(self._step)).astype(np.float32)
        self._halves = 0.5 * np.square(centroids, dtype=np.float64).sum(axis=1)

    def nearest(self, queries: FloatArray, n_lists: int) -> RowArray:
        """Numbers of the nearest centroids, in no particular order, shape (Q, n_lists)."""
        steps = np.abs(queries).max(axis=1, keepdims=True) / np.float32(self._levels)
        whole = np.zeros_like(queries)
        np.divide(queries, steps, out=whole, where=steps > 0)
        products = (np.rint(whole) @ self._centroids.T).astype(np.float64)
        distances = self._halves - products * (steps.astype(np.float64) * self._step)
        if n_lists == distances.shape[1]:
            return np.broadcast_to(np.arange(n_lists), distances.shape)
        return np.argpartition(distances, n_lists - 1, axis=1)[:, :n_lists]


def _built(vectors: VectorStore) -> faiss.IndexIVFPQFastScan:
    import faiss

    n, width = len(vectors), _padded(vectors.width)
    n_lists = 1 << min(round(math.log2(_LISTS_PER_ROOT * n**0.5)), int(math.log2(n / _LEAST_ROWS_PER_LIST)))
    lists = faiss.IndexIVFPQFastScan(faiss.IndexFlatL2(width), width, n_lists, width // _CODE_WIDTH, 4)
    lists.by_residual = False
    lists.cp.niter = _TRAINING_ROUNDS
    lists.cp.max_points_per_centroid = _TRAINING_ROWS_PER_LIST
    sample = np.unique(np.linspace(0, n - 1, min(n, _TRAINING_ROWS_PER_LIST * n_lists)).astype(np.int64))
    with _single_thread():
        lists.train(_with_columns(vectors.take(sample), width))
        for part in vectors.parts():
            lists.add(_with_columns(part, width))
    lists.implem = IN_REGISTERS
    return lists


@contextmanager
def _single_thread() -> Iterator[None]:
    """How a product is shared among threads decides how it rounds, and so where a vector on the border belongs."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _padded(width: int) -> int:
    """The width with columns of zeros added, so that it is a multiple of a code's."""
    return -(-width // _CODE_WIDTH) * _CODE_WIDTH


def _with_columns(vectors: FloatArray, width: int) -> FloatArray:
    if vectors.shape[1] == width:
        return vectors
    wider = np.zeros((len(vectors), width), np.float32)
    wider[:, : vectors.shape[1]] = vectors
    return wider
