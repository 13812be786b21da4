"""Inverted lists of short codes find the candidates, exact vectors decide.

Vectors are grouped into lists around centroids (k-means), and each is kept as a short code (product quantisation,
Jégou, Douze, Schmid 2011; half a byte for six components). Only the lists with the nearest centroids are searched, by
FAISS's fast scan, and the rows with the nearest codes are scored exactly. So a search takes a fraction of the time of
one with sign bits, and it misses more: names are near one another for many reasons, and the nearest can be in a list
further away. It is made for vectors of about equal length, such as those of names.

Most queries have a near name, nearly always in one of the first lists. So these are searched first, and the others only
for a query whose best row so far is further away than a limit (`EarlyStop`).

Each vector is in two lists, those of its two nearest centroids: otherwise a vector between two centroids would be
missed by queries from the other side. (Of a million synthetic vectors, 48 of 4,096 lists then hold 99.7 % of the
nearest ones, 138,000 entries; with one list for each it takes more than 512 lists, 250,000 entries.) How many lists are
searched is chosen when an index is built: as many as it takes to find `_WISHED` of the nearest others of some of the
vectors. So is when to stop early, so that this misses none of these. How many are missed then is measured with others.

What it returns has exact scores, and is the same for a query whatever the batch and the threads: lists are chosen by
sums of whole numbers, which no order of summation changes, and each query goes through its lists in their order. They
are built by a single thread.

File: ``lists.faiss`` beside the vectors, about W / 6 + 16 bytes for each, read into memory. There is none if there are
fewer than `LEAST_VECTORS`; then every search compares with all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from onoma.errors import DamagedArtifactError
from onoma.forking import Turns
from onoma.indexes.candidate_search import IN_REGISTERS, MORE_AMONG_SOME, CandidateIndex, check_unchanged
from onoma.indexes.centroids import QUERIES_AT_ONCE, Centroids
from onoma.indexes.exact import ExactIndex
from onoma.indexes.recall import AS_NEAR, N_QUERIES
from onoma.indexes.threads import own_threads, single_thread
from onoma.indexes.vector_store import PART_ROWS, VectorStore
from onoma.types import FloatArray, RowArray

if TYPE_CHECKING:
    import faiss

LISTS_FILE = "lists.faiss"
LEAST_VECTORS = 4096

CANDIDATES = 64
"""Default number of rows scored exactly: among four million synthetic vectors the first place of 99.80 % of the queries
and 94.3 % of the ten nearest, with 256 99.82 and 95.3 % at two thirds of the speed."""

_LISTS_PER_ROOT = 4
"""Lists for the square root of the number of vectors."""
_LISTS_OF_A_VECTOR = 2
_WISHED = 0.996
"""Share of the nearest vectors that shall be in the lists that are looked through."""
_FIRST_PARTS = (2, 3, 4)
"""The first lists are one of these parts of all that are looked through."""
_LEAST_GAIN = 1.25
"""Stopping early pays where on average so many times fewer lists are looked through."""
_ITSELF = 0.999
"""With a score of this share of its own square a query meets itself, but for the rounding of stored vectors."""
_ASKING = 2000
"""Vectors whose nearest others decide how many lists are looked through."""
_ROWS_PER_CANDIDATE = 4
"""Rows at least in the lists that are looked through, for each candidate wanted."""
_TRAINING_ROWS_PER_LIST = 64
_LEAST_ROWS_PER_LIST = 39
"""With fewer FAISS warns that k-means has too little to go by."""
_TRAINING_ROUNDS = 10
_CODE_WIDTH = 6


class EarlyStop(BaseModel):
    """When a query need not continue to the other lists."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first_lists: int = Field(ge=1)
    """So many of the nearest lists are looked through first."""
    least_score: float = Field(allow_inf_nan=False)
    """The best row found in them is near enough if it has this score with the query at length 1. If the best is the
    query itself, as for a name of the dictionary, it is the next one that counts."""


class ApproximateIndex(CandidateIndex):
    """Nearest rows among those that the nearest inverted lists lead to.

    If so many results are wanted that a large share of the rows would be candidates, all rows are compared, and the
    answer is exact.

    Args:
        vectors: N vectors of width W.
        lists: Of the same vectors, as `build` makes them; none if there are fewer than `LEAST_VECTORS`.
        candidates: Rows scored exactly for each query, or six for each result if that is more; up to twice as many,
            because most of them are found in both of their lists and some in one; and as many again if it continues to
            the other lists.
        early_stop: As `build` chose it; unset: a query goes through as many lists as `build` chose for all.

    Raises:
        InputError: fewer than one candidate.
        DamagedArtifactError: the lists do not belong to these vectors.
    """

    is_approximate = True
    _candidates_per_result = 6  # 60 for ten results, about the default

    def __init__(
        self,
        vectors: VectorStore,
        lists: faiss.IndexIVFPQFastScan | None,
        *,
        candidates: int = CANDIDATES,
        early_stop: EarlyStop | None = None,
    ) -> None:
        super().__init__(vectors, candidates=candidates)
        has_lists = len(vectors) >= LEAST_VECTORS
        needed = (_LISTS_OF_A_VECTOR * len(vectors), _padded(vectors.width)) if has_lists else None
        found = None if lists is None else (lists.ntotal, lists.d)
        if needed != found:
            raise DamagedArtifactError(
                f"The inverted lists have {found or 'nothing'} (entries, width); {len(vectors)} vectors of width "
                f"{vectors.width} need {needed or 'none'}. Build the index again."
            )
        self._lists = lists
        self._centroids = None if lists is None else Centroids(lists.quantizer.reconstruct_n(0, lists.nlist))
        self._n_lists = 0 if lists is None else int(lists.nprobe)
        self.early_stop = early_stop
        """None: every query goes through as many lists."""
        self._turns = Turns()
        self._bits: npt.NDArray[np.uint8] | None = None
        self._selector: faiss.IDSelector | None = None
        """Of the rows that are searched, whose bits it refers to; unset: all."""

    @classmethod
    def build(cls, vectors: VectorStore, *, candidates: int = CANDIDATES) -> ApproximateIndex:
        """An index in memory."""
        if len(vectors) < LEAST_VECTORS:
            return cls(vectors, None, candidates=candidates)
        # How a product is shared among threads decides how it rounds, and so where a vector on the border belongs.
        with single_thread():
            lists = _built(vectors)
            pairs = _nearest_pairs(vectors, lists)
            lists.nprobe = int(np.quantile(pairs.n_lists, _WISHED, method="higher")) if len(pairs.n_lists) else 1
            early_stop = _chosen_stop(vectors, lists, pairs, candidates=candidates)
        return cls(vectors, lists, candidates=candidates, early_stop=early_stop)

    @classmethod
    def open(
        cls,
        folder: Path,
        vectors: VectorStore,
        *,
        candidates: int = CANDIDATES,
        early_stop: EarlyStop | None = None,
        sha256: str | None = None,
    ) -> ApproximateIndex:
        """What `save` wrote, and what `early_stop` was then; the file's checksum is compared if it is given.

        Raises:
            DamagedArtifactError: the file is missing, has changed or is not of these vectors.
        """
        import faiss

        file = folder / LISTS_FILE
        if len(vectors) < LEAST_VECTORS:
            return cls(vectors, None, candidates=candidates)
        if sha256 is not None and file.exists():
            check_unchanged(file, sha256)
        try:
            lists = faiss.read_index(str(file))
        except (RuntimeError, MemoryError) as error:
            reason = str(error).strip().splitlines()[-1]
            raise DamagedArtifactError(f"{file} cannot be read ({reason}). Build the index again.") from None
        if not isinstance(lists, faiss.IndexIVFPQFastScan):
            raise DamagedArtifactError(f"{file} holds something else than inverted lists. Build the index again.")
        lists.implem = IN_REGISTERS
        return cls(vectors, lists, candidates=candidates, early_stop=early_stop)

    def among(self, rows: RowArray) -> Self:
        """See `NarrowableIndex.among`; more lists are looked through, as they hold fewer of these rows than of all."""
        import faiss

        other = super().among(rows)
        if self._lists is not None:
            more = len(self) / max(len(rows), 1) * (MORE_AMONG_SOME if self._selector is None else 1)
            other._n_lists = min(self._lists.nlist, math.ceil(self._n_lists * more))
            is_one = np.zeros(len(self.vectors), np.bool_)
            is_one[rows] = True
            other._bits = np.packbits(is_one, bitorder="little")
            other._selector = faiss.IDSelectorBitmap(len(is_one), faiss.swig_ptr(other._bits))
        return other

    def save(self, folder: Path) -> None:
        """Write the lists into ``folder``; the vectors are stored on their own."""
        import faiss

        if self._lists is not None:
            with self._turns.lock:
                self._lists.nprobe = self._n_lists  # a search changes it
                faiss.write_index(self._lists, str(folder / LISTS_FILE))

    @property
    def _can_guess(self) -> bool:
        return self._lists is not None

    def _search_tile(self, queries: FloatArray, wanted: int, k: int) -> tuple[RowArray, FloatArray]:
        lists, centroids = self._lists, self._centroids
        assert lists is not None  # or there would be nothing to guess with
        assert centroids is not None
        directions, lengths = _directions(queries, width=lists.d)
        enough = _enough_lists(lists, len(self), wanted)
        n_lists = min(lists.nlist, max(self._n_lists, enough))
        first = n_lists if self.early_stop is None else min(n_lists, max(self.early_stop.first_lists, enough))
        near = centroids.nearest(directions, n_lists, first=first)
        depth = max(k, 2)
        rows, scores = self._best_of(queries, self._entries(directions, near[:, :first], wanted), depth)
        if self.early_stop is not None and first < n_lists:
            is_itself = scores[:, 0] >= _ITSELF * np.square(lengths)
            best = np.where(is_itself, scores[:, 1], scores[:, 0])
            on = np.flatnonzero(best < self.early_stop.least_score * lengths)
            if len(on):
                others = self._entries(directions[on], near[on, first:], wanted)
                guessed = np.concatenate([others, rows[on]], axis=1)
                rows[on], scores[on] = self._best_of(queries[on], guessed, depth)
        return rows[:, :k], scores[:, :k]

    def _entries(self, directions: FloatArray, near: RowArray, n_rows: int) -> RowArray:
        """Rows with the nearest codes in some lists, ``n_rows`` at least if there are, else -1.

        Those are there twice that are in two of the lists.

        Args:
            directions: Shape (Q, width of the lists).
            near: The lists of each query, shape (Q, number of lists).
            n_rows: Wanted.
        """
        import faiss

        lists: Any = self._lists  # its stub does not know the way without FAISS's own wrapper, which takes no selector
        near = np.ascontiguousarray(near)
        found = np.empty((len(directions), _LISTS_OF_A_VECTOR * n_rows), np.int64)
        distances, to_lists = np.empty(found.shape, np.float32), np.zeros(near.shape, np.float32)
        arrays = [faiss.swig_ptr(array) for array in (near, to_lists, distances, found)]
        how = None
        if self._selector is not None:
            how = faiss.SearchParametersIVF()
            how.sel, how.nprobe = self._selector, near.shape[1]
        with self._turns.lock, own_threads():
            lists.nprobe = near.shape[1]
            lists.search_preassigned_c(len(directions), faiss.swig_ptr(directions), found.shape[1], *arrays, False, how)
        return found


def _directions(queries: FloatArray, *, width: int) -> tuple[FloatArray, npt.NDArray[np.float64]]:
    """Queries of length 1, with columns of zeros added up to a width; and the lengths that they had.

    Their length does not matter to the order of scores; equal ones are near in the sense of the lists.
    """
    padded = np.zeros((len(queries), width), np.float32)
    largest = np.abs(queries).max(axis=1, keepdims=True, initial=0)
    lengths = np.sqrt(np.square(queries / np.where(largest > 0, largest, 1), dtype=np.float64).sum(axis=1))
    scales = largest * np.maximum(lengths, 1)[:, None]
    np.divide(queries, scales, out=padded[:, : queries.shape[1]], where=largest > 0)
    return padded, scales[:, 0]


def _built(vectors: VectorStore) -> faiss.IndexIVFPQFastScan:
    import faiss

    n, width = len(vectors), _padded(vectors.width)
    n_lists = 1 << min(round(math.log2(_LISTS_PER_ROOT * n**0.5)), int(math.log2(n / _LEAST_ROWS_PER_LIST)))
    quantizer = faiss.IndexFlatL2(width)
    plain = faiss.IndexIVFPQ(quantizer, width, n_lists, width // _CODE_WIDTH, 4)
    plain.by_residual = False
    plain.cp.niter = _TRAINING_ROUNDS
    plain.cp.max_points_per_centroid = _TRAINING_ROWS_PER_LIST
    sample = vectors.take(vectors.spaced_rows(_TRAINING_ROWS_PER_LIST * n_lists))
    plain.train(_with_columns(sample, width))
    for number, part in enumerate(vectors.parts()):
        padded = _with_columns(part, width)
        rows = np.arange(len(part)) + number * PART_ROWS
        for places in _lists_of(padded, quantizer).T:
            arrays = [np.ascontiguousarray(array) for array in (padded, rows, places)]
            plain.add_core(len(part), *map(faiss.swig_ptr, arrays))
    lists = faiss.IndexIVFPQFastScan(plain)
    lists.own_fields = True
    _disown(quantizer)
    lists.implem = IN_REGISTERS
    return lists


def _disown(quantizer: Any) -> None:
    """It belongs to the lists from now on, and goes with them."""
    quantizer.this.disown()


def _lists_of(vectors: FloatArray, quantizer: faiss.Index) -> RowArray:
    """The lists that vectors belong to, shape (n, _LISTS_OF_A_VECTOR)."""
    found: RowArray = quantizer.search(vectors, _LISTS_OF_A_VECTOR)[1]
    return found


@dataclass(frozen=True)
class _Pairs:
    """Some vectors and their nearest others, n of them."""

    rows: RowArray
    """Of the vectors, shape (n,)."""
    scores: FloatArray
    """With the nearest other, shape (n,)."""
    n_lists: RowArray
    """In how many of the nearest lists of the vector the other is found, shape (n,)."""


def _nearest_pairs(vectors: VectorStore, lists: faiss.IndexIVFPQFastScan) -> _Pairs:
    step = len(vectors) / min(len(vectors), _ASKING)
    own = np.unique((np.arange(0.5, len(vectors) / step) * step).astype(np.int64))
    own = np.setdiff1d(own, vectors.spaced_rows(N_QUERIES))  # those measure recall
    queries = vectors.take(own)
    own, queries = own[queries.any(axis=1)], queries[queries.any(axis=1)]
    others, scores = _first_other(own, *ExactIndex(vectors).search(queries, k=2))
    places = _lists_of(_with_columns(vectors.take(others), lists.d), lists.quantizer)
    centroids = Centroids(lists.quantizer.reconstruct_n(0, lists.nlist))
    needed = []
    for start in range(0, len(own), QUERIES_AT_ONCE):
        here = slice(start, start + QUERIES_AT_ONCE)
        distances = centroids.distances(_directions(queries[here], width=lists.d)[0])
        nearest = np.take_along_axis(distances, places[here], axis=1).min(axis=1, keepdims=True)
        needed.append((distances <= nearest).sum(axis=1))
    return _Pairs(own, scores, np.concatenate([np.empty(0, np.int64), *needed]))


def _enough_lists(lists: faiss.IndexIVFPQFastScan, n_vectors: int, wanted: int) -> int:
    """So many lists have some rows to choose from for each candidate."""
    return math.ceil(_ROWS_PER_CANDIDATE * wanted * lists.nlist / n_vectors)


def _chosen_stop(
    vectors: VectorStore, lists: faiss.IndexIVFPQFastScan, pairs: _Pairs, *, candidates: int
) -> EarlyStop | None:
    """Where to stop for the least work; None if that is not much less than looking through all lists."""
    n_lists = lists.nprobe
    queries = vectors.take(pairs.rows)
    lengths = _directions(queries, width=lists.d)[1]
    chosen, least_work = None, n_lists / _LEAST_GAIN
    least = _enough_lists(lists, len(vectors), candidates)
    for first in sorted({max(n_lists // part, least, 1) for part in _FIRST_PARTS}):
        if first >= n_lists:
            continue
        lists.nprobe = first
        index = ApproximateIndex(vectors, lists, candidates=candidates)
        found = _first_other(pairs.rows, *index.search(queries, k=2))[1]
        missed = (found < pairs.scores - AS_NEAR) & (pairs.n_lists <= n_lists)
        at_unit_length = found / lengths
        limit = np.nextafter(np.float32(at_unit_length[missed].max(initial=-1)), np.float32(np.inf))
        work = first + (n_lists - first) * float((at_unit_length < limit).mean())
        if work < least_work:
            chosen, least_work = EarlyStop(first_lists=first, least_score=float(limit)), work
    lists.nprobe = n_lists
    return chosen


def _first_other(own: RowArray, rows: RowArray, scores: FloatArray) -> tuple[RowArray, FloatArray]:
    """Of the two best rows of each vector the better that is not its own, and its score."""
    place = (rows[:, 0] == own).astype(np.int64)[:, None]
    return np.take_along_axis(rows, place, axis=1)[:, 0], np.take_along_axis(scores, place, axis=1)[:, 0]


def _padded(width: int) -> int:
    """The width with columns of zeros added, so that it is a multiple of a code's."""
    return -(-width // _CODE_WIDTH) * _CODE_WIDTH


def _with_columns(vectors: FloatArray, width: int) -> FloatArray:
    if vectors.shape[1] == width:
        return vectors
    wider = np.zeros((len(vectors), width), np.float32)
    wider[:, : vectors.shape[1]] = vectors
    return wider
