"""Sign bits find the candidates, exact vectors decide.

For each vector, one bit per component is kept in memory: whether it is larger than in the mean of all. (Vectors of
names share a large mean; without centring, most bits would be the same for all.) For a query, the score of a row is
guessed from its bits: the sum of the query's components, each taken as positive if the bit is set and as negative if
not. The rows with the best guesses are candidates; only they are read from the vectors, which can stay on disk, and
scored exactly.

An answer can miss a row whose bits mislead, so it is nearly exact: how nearly is measured when an index is built. What
it returns has exact scores, and is the same for a query whatever the batch and the threads.

The guesses are made by `SignScanner`.

The more vectors there are, and the closer together, the more candidates are needed. Their number is determined when an
index is built (`enough_candidates`).

Files beside the vectors: ``signs.npy``, uint8, shape (N, W / 8 rounded up), and ``centre.npy``, float32, shape (W,).
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Self

import numpy as np

from onoma.artifacts.arrays import NOT_AN_ARRAY, new_array
from onoma.artifacts.system import is_of_system
from onoma.errors import DamagedArtifactError
from onoma.indexes.candidate_search import CANDIDATES, CandidateIndex, check_unchanged
from onoma.indexes.recall import TrueAnswers
from onoma.indexes.scoring import checked_candidates
from onoma.indexes.sign_scan import SignArray, SignScanner
from onoma.indexes.vector_store import PART_ROWS, VectorStore
from onoma.types import FloatArray, RowArray

SIGNS_FILE = "signs.npy"
CENTRE_FILE = "centre.npy"
LADDER = (CANDIDATES, 512, 1024, 2048, 4096)
"""Numbers of candidates to choose from."""
ENOUGH = 0.999
"""Share of the best rows, and of the ten best, that are to be found."""

_QUERY_CENTRING = 0.5
"""Share of the centre that is subtracted from a query. None would guess scores without bias, all of it the cosines of
what is left; half finds more of the best than either."""
_CENTRE_ROWS = 1 << 17


class SignBitIndex(CandidateIndex):
    """Nearest rows among those whose sign bits are nearest.

    If so many results are wanted that a large share of the rows would be candidates, all rows are compared, and the
    answer is exact.

    Args:
        vectors: N vectors of width W.
        signs: Their sign bits, as `sign_bits` gives them; memory-mapped or not.
        centre: What is subtracted before the sign is taken, float32, shape (W,).
        candidates: Rows scored exactly for each query, or `CANDIDATES_PER_RESULT` for each result if that is more.

    Raises:
        InputError: fewer than one candidate.
        DamagedArtifactError: bits or centre do not belong to these vectors.

    Example:
        >>> index = SignBitIndex.build(VectorStore(np.eye(3, dtype=np.float32)))
        >>> index.search(np.array([[0, 0.8, 0.6]], dtype=np.float32), k=2)[0].tolist()
        [[1, 2]]
    """

    def __init__(
        self, vectors: VectorStore, signs: SignArray, centre: FloatArray, *, candidates: int = CANDIDATES
    ) -> None:
        super().__init__(vectors, candidates=candidates)
        expected = (len(vectors), -(-vectors.width // 8))
        if signs.shape != expected or signs.dtype != np.uint8:
            raise DamagedArtifactError(
                f"The sign bits have the shape {signs.shape} and type {signs.dtype}; {len(vectors)} vectors of width "
                f"{vectors.width} need {expected} of uint8. Build the index again."
            )
        if centre.shape != (vectors.width,) or centre.dtype != np.float32 or not np.isfinite(centre).all():
            raise DamagedArtifactError(
                f"The centre of the vectors is not a vector of {vectors.width} finite float32 numbers. "
                "Build the index again."
            )
        self._signs, self._centre = np.asarray(signs), np.asarray(centre)
        self._scanner: SignScanner | None = None
        self._checksum: tuple[Path, str] | None = None

    @classmethod
    def build(cls, vectors: VectorStore, *, candidates: int = CANDIDATES) -> SignBitIndex:
        """An index in memory."""
        centre = centre_of(vectors)
        signs = np.empty((len(vectors), -(-vectors.width // 8)), np.uint8)
        _fill(signs, vectors, centre)
        return cls(vectors, signs, centre, candidates=candidates)

    @classmethod
    def open(
        cls, folder: Path, vectors: VectorStore, *, candidates: int = CANDIDATES, sha256: str | None = None
    ) -> SignBitIndex:
        """Open what `write_signs` wrote, memory-mapped.

        Args:
            folder: Where it wrote.
            vectors: The same as then.
            candidates: Rows scored exactly for each query.
            sha256: Of the bits; if given, compared when they are read, which is at the first search.

        Raises:
            DamagedArtifactError: a file is missing or does not belong to these vectors.
        """
        try:
            signs = np.load(folder / SIGNS_FILE, mmap_mode="r")
            centre = np.load(folder / CENTRE_FILE)
        except NOT_AN_ARRAY as error:
            if is_of_system(error):
                raise
            raise DamagedArtifactError(f"{folder}: the index cannot be read ({error}). Build it again.") from None
        index = cls(vectors, signs, centre, candidates=candidates)
        index._checksum = None if sha256 is None else (folder / SIGNS_FILE, sha256)
        return index

    def rescoring(self, candidates: int) -> SignBitIndex:
        """The same index with another number of candidates."""
        candidates = checked_candidates(candidates)
        self._scan()  # once for both
        other = copy.copy(self)
        other._candidates = candidates
        return other

    def among(self, rows: RowArray) -> Self:
        """See `NarrowableIndex.among`; 48 bytes more of memory for each of these rows, at a width of 384."""
        other = super().among(rows)
        other._scanner = None
        return other

    def _scan(self) -> SignScanner:
        if self._scanner is None:  # opening a linker must not wait for it
            if self._checksum is not None:
                check_unchanged(*self._checksum)
            self._scanner = SignScanner(self._signs if self._rows is None else self._signs[self._rows])
        return self._scanner

    def _search_tile(self, queries: FloatArray, wanted: int, k: int) -> tuple[RowArray, FloatArray]:
        return self._best_of(queries, self._guess(queries, n_rows=wanted), k)

    def _guess(self, queries: FloatArray, *, n_rows: int) -> RowArray:
        """Rows with the best guessed scores, and of equals the lowest, shape (Q, n_rows)."""
        directions = np.zeros((len(queries), 8 * self._signs.shape[1]), np.float32)
        # As long as the vectors: a longer or shorter query asks for the same.
        lengths = np.sqrt(np.einsum("qw,qw->q", queries, queries, dtype=np.float64))[:, None]
        factors = np.divide(self.vectors.max_norm, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        moved = (queries * factors).astype(np.float32) - _QUERY_CENTRING * self._centre
        largest = np.abs(moved).max(axis=1, keepdims=True)
        np.divide(moved, largest, out=directions[:, : self.width], where=largest > 0)
        rows = self._scan().nearest(directions, n_rows)
        says_nothing = (largest[:, 0] == 0) | ~queries.any(axis=1)
        rows[says_nothing] = np.arange(n_rows)
        return rows if self._rows is None else self._rows[rows]


def write_signs(folder: Path, vectors: VectorStore) -> None:
    """Write the sign bits of the vectors, and their centre, into ``folder``."""
    centre = centre_of(vectors)
    shape = (len(vectors), -(-vectors.width // 8))
    if len(vectors):
        signs = new_array(folder / SIGNS_FILE, np.uint8, shape)
        _fill(signs, vectors, centre)
        signs.flush()
    else:  # an empty file cannot be mapped
        np.save(folder / SIGNS_FILE, np.empty(shape, np.uint8))
    np.save(folder / CENTRE_FILE, centre)


def enough_candidates(folder: Path, truth: TrueAnswers) -> int:
    """How many candidates it takes to find nearly all that comparing with every stored vector finds.

    The least of `LADDER` with which 999 of 1,000 best rows are found, and 999 of 1,000 of the ten best; its last if
    none is enough.

    Args:
        folder: Where `write_signs` has written.
        truth: Of the vectors as stored: more candidates cannot mend what their precision loses.
    """
    index = SignBitIndex.open(folder, truth.vectors)
    for candidates in LADDER[:-1]:
        recall = truth.recall_of(index.rescoring(candidates))
        if min(recall.at_1, recall.at_10) >= ENOUGH:
            return candidates
    return LADDER[-1]


def centre_of(vectors: VectorStore) -> FloatArray:
    """Mean of at most `_CENTRE_ROWS` vectors, evenly spaced; summed in double precision in their order."""
    if len(vectors) == 0:
        return np.zeros(vectors.width, np.float32)
    rows = vectors.spaced_rows(_CENTRE_ROWS)
    total = np.zeros(vectors.width, np.float64)
    for start in range(0, len(rows), PART_ROWS):
        total += vectors.take(rows[start : start + PART_ROWS]).sum(axis=0, dtype=np.float64)
    mean: FloatArray = (total / len(rows)).astype(np.float32)
    return mean


def sign_bits(vectors: FloatArray, centre: FloatArray) -> SignArray:
    """Whether each component is larger than the centre's, eight to a byte, shape (n, W / 8 rounded up)."""
    return np.packbits(vectors > centre, axis=1, bitorder="little")


def _fill(signs: SignArray, vectors: VectorStore, centre: FloatArray) -> None:
    for number, part in enumerate(vectors.parts()):
        start = number * PART_ROWS
        signs[start : start + len(part)] = sign_bits(part, centre)
