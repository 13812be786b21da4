"""A sum for each stored vector, so that one that was damaged is found when it is read, without reading the others.

A vector's bytes are taken as whole numbers of eight bytes (fewer where they do not come out even), each is multiplied
by an odd number of its place, and the products are added modulo 2**64. Whatever happens to one of the numbers changes
the sum; what happens to several, or a vector in another's place, does so as good as always.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onoma.errors import DamagedArtifactError
from onoma.indexes.row_files import StoredArray
from onoma.types import FloatArray, RowArray

SUMS_FILE = "vectors.sums.npy"
SumArray = npt.NDArray[np.uint64]
_WORDS: tuple[type[np.unsignedinteger[Any]], ...] = (np.uint64, np.uint32, np.uint16, np.uint8)


def row_sums(values: StoredArray, scales: FloatArray | None = None) -> SumArray:
    """The sum of each row, uint64, shape (n,).

    Args:
        values: Rows as they are stored, shape (n, W), contiguous.
        scales: Of each row, float32, shape (n,); only for whole numbers.
    """
    row_bytes = values.shape[1] * values.itemsize
    word = next(word for word in _WORDS if row_bytes % np.dtype(word).itemsize == 0)
    words = values.view(word)
    factors = _odd_numbers(words.shape[1] + 1)
    sums: SumArray = np.einsum("nw,w->n", words, factors[:-1], dtype=np.uint64, casting="unsafe")
    return sums if scales is None else sums + scales.view(np.uint32) * factors[-1]


def _odd_numbers(n: int) -> SumArray:
    """The same on every machine, without a pattern (Steele, Lea and Flood 2014, SplitMix64)."""
    mixed = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed | np.uint64(1)


class RowSums:
    """Compares rows with the sums written beside them, each the first time that it is read.

    Args:
        sums: As `row_sums` gives them, shape (N,); memory-mapped or not.
        path: The file that the rows are from, for messages.
    """

    def __init__(self, sums: SumArray, path: Path) -> None:
        self._sums, self._path = sums, path
        self._is_right = np.zeros(len(sums), np.bool_)

    def check(self, rows: RowArray | slice, values: StoredArray, scales: FloatArray | None) -> None:
        """Refuse rows that are not as they were written.

        Args:
            rows: Which they are, n of them; a slice has no steps.
            values: As read from there, shape (n, W).
            scales: Likewise, shape (n,); only for whole numbers.

        Raises:
            DamagedArtifactError: one has changed, or its sum has.
        """
        unread = np.flatnonzero(~self._is_right[rows])
        if len(unread) == 0:
            return
        if len(unread) < len(values):
            values = values[unread]
            scales = None if scales is None else scales[unread]
        numbers = rows.indices(len(self._sums))[0] + unread if isinstance(rows, slice) else rows[unread]
        is_right = row_sums(values, scales) == self._sums[numbers]
        if not is_right.all():
            raise DamagedArtifactError(
                f"{self._path}: the vector in row {int(numbers[~is_right][0])} has changed since it was written. "
                "Build the index again."
            )
        self._is_right[numbers] = True
