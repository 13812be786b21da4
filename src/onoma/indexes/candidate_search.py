"""What the indexes share that guess candidates first and score these exactly."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

import numpy as np

from onoma.artifacts import sha256_file
from onoma.errors import DamagedArtifactError
from onoma.indexes.exact import ExactIndex
from onoma.indexes.scoring import best_rows, best_rows_of_each, check_queries, checked_candidates
from onoma.indexes.threads import on_threads
from onoma.indexes.vector_store import VectorStore
from onoma.types import FloatArray, RowArray

CANDIDATES = 256
"""Default number of rows scored exactly. With 64, 128, 256 and 512 sign bits found the ten best of 87,156 names of
MONDO to 99.4, 99.9, 99.97 and 100 %; of 73,024 names of MEDIC to 99.3, 99.9, 100 and 100 %; the best one always."""
CANDIDATES_PER_RESULT = 16
"""Where many results are wanted, so many candidates for each of them: 99.8 % of the 80 best of the same names."""
IN_REGISTERS = 13
"""FAISS's way through codes that treats each query alone, whatever their number; unset, it would choose by that."""

MORE_AMONG_SOME = 4
"""So many times as many candidates where some of the rows are searched, whose nearest lies further away than that of
all: measured on 1.39 million names (benchmarks/filtering.py)."""
EXHAUSTIVE_SHARE = 16
"""If one row in so many would be a candidate, comparing the query with all is no slower."""
_TILE_QUERIES = 1024
_QUERIES_OF_A_THREAD = 8
_ROWS_OF_A_THREAD = 1 << 13
"""Bound on vectors read together: 12 MB at a width of 384."""
_CANDIDATES_AT_ONCE = 1 << 22
"""Bound on rows kept by the search for candidates (48 MiB): with very many candidates, fewer queries at a time."""


def check_unchanged(file: Path, sha256: str) -> None:
    """Refuse a file that is going to be read whole, if it is not as it was written.

    Raises:
        DamagedArtifactError: its content has another SHA-256.
    """
    if sha256_file(file) != sha256:
        raise DamagedArtifactError(f"{file} has changed since it was written. Build the index again.")


class CandidateIndex(ABC):
    """Nearest rows among candidates, with exact scores.

    Where so many results are wanted that a large share of the rows would be candidates, all rows are compared, and the
    answer is exact.

    Args:
        vectors: N vectors of width W.
        candidates: Rows scored exactly for each query, or `CANDIDATES_PER_RESULT` (or what else the kind of index says)
            for each result if that is more.

    Raises:
        InputError: fewer than one candidate.
    """

    is_approximate = False
    _candidates_per_result = CANDIDATES_PER_RESULT

    def __init__(self, vectors: VectorStore, *, candidates: int) -> None:
        self.vectors, self._candidates = vectors, checked_candidates(candidates)
        self._exact = ExactIndex(vectors)
        self._rows: RowArray | None = None
        """Those that are searched; unset: all."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} x {self.width}, {self._candidates:,} candidates)"

    @property
    def width(self) -> int:
        """Components of a vector."""
        return self.vectors.width

    def __len__(self) -> int:
        return len(self._exact)

    def among(self, rows: RowArray) -> Self:
        """See `NarrowableIndex.among`; guesses, too, are made among these rows alone, and are more."""
        other = copy.copy(self)
        other._rows, other._exact = rows, self._exact.among(rows)
        if self._rows is None:
            other._candidates = MORE_AMONG_SOME * self._candidates
        return other

    def search(self, queries: FloatArray, *, k: int = 5) -> tuple[RowArray, FloatArray]:
        """The ``k`` best rows of each query among its candidates; see `Index.search`.

        Raises:
            ShapeError: the queries have another width, or are no matrix.
            InputError: a query is not finite, or ``k`` is less than 1.
        """
        queries, k = check_queries(queries, width=self.width, max_norm=self.vectors.max_norm, k=k)
        k = min(k, len(self))
        wanted = max(self._candidates, self._candidates_per_result * k)
        if not self._can_guess or EXHAUSTIVE_SHARE * wanted >= len(self):
            return self._exact.search(queries, k=max(k, 1))
        rows = np.empty((len(queries), k), np.int64)
        scores = np.empty((len(queries), k), np.float32)
        step = min(_TILE_QUERIES, max(1, _CANDIDATES_AT_ONCE // wanted))
        for start in range(0, len(queries), step):
            here = slice(start, start + step)
            rows[here], scores[here] = self._search_tile(queries[here], wanted, k)
        return rows, scores

    def _best_of(self, queries: FloatArray, guessed: RowArray, k: int) -> tuple[RowArray, FloatArray]:
        """The ``k`` best of the rows guessed for each query; of all rows where these are fewer than ``k``.

        Args:
            queries: Shape (Q, W).
            guessed: A row may be there twice; -1 stands where there are no more. Shape (Q, n).
            k: At most as many as there are rows.
        """
        step = max(1, min(_QUERIES_OF_A_THREAD, _ROWS_OF_A_THREAD // guessed.shape[1]))

        def best(first: int) -> tuple[RowArray, FloatArray]:
            own = queries[first : first + step]
            candidates = [_distinct(rows) for rows in guessed[first : first + step]]
            for place, rows in enumerate(candidates):
                if len(rows) < k:
                    candidates[place] = self._exact.search(own[place : place + 1], k=k)[0][0]
            if len(candidates[0]) > _ROWS_OF_A_THREAD:  # then it is the only one
                rows, scores = best_rows(self.vectors, own[0], candidates[0], k)
                return rows[None], scores[None]
            return best_rows_of_each(self.vectors, own, candidates, k)

        parts = on_threads(best, range(0, len(queries), step))
        return np.concatenate([rows for rows, _ in parts]), np.concatenate([scores for _, scores in parts])

    @property
    def _can_guess(self) -> bool:
        """Whether there is anything to guess with."""
        return True

    @abstractmethod
    def _search_tile(self, queries: FloatArray, wanted: int, k: int) -> tuple[RowArray, FloatArray]:
        """The ``k`` best rows of each query among some ``wanted`` candidates, and their scores, shape (Q, k)."""


def _distinct(rows: RowArray) -> RowArray:
    """Each row once, ascending, as the vectors lie in their file; without -1."""
    ordered = np.sort(rows)
    ordered = ordered[np.searchsorted(ordered, 0) :]
    return ordered[np.diff(ordered, prepend=-1) > 0]
