"""How much of a large memory-mapped file stays in the memory of this process."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from onoma.forking import Turns
from onoma.indexes.row_files import StoredArray
from onoma.types import RowArray

WINDOW_BYTES = 1 << 16
"""What the system maps at least around what is touched (Linux: fault_around_bytes)."""
_WINDOWS_TO_A_LOOK = 256
"""After so many windows the process looks how much it has mapped: newer kernels map whole folios, whose size
depends on how the file was written."""
_MAPPED_UNSEEN = 2
"""Times the windows read, where the process cannot look."""
_LEAST_KEPT = 8
"""One part in so many of what is allowed is kept also where other files fill the memory."""
_PARTS = 32
"""The file is given back in so many parts, one after the other, so that most of what has been read stays."""


class ResidentWindows:
    """What has been read of a memory-mapped array, given back part by part before it fills the memory.

    Reading stays right whatever is given back; it is only mapped anew. What the process maps of other files from now on
    counts too, as it can only be told how much it maps of all; and one reading of very many rows is not cut short.

    Args:
        below: What the array is a view of.
        start: Address of its first byte; what is mapped around a byte begins at a multiple of `WINDOW_BYTES`.
        first_byte: Where the array begins in it.
        row_bytes: Length of a row.
        most_bytes: Of the array in memory, or about so much.
    """

    def __init__(self, below: mmap.mmap, *, start: int, first_byte: int, row_bytes: int, most_bytes: int) -> None:
        self._map, self._before = below, start % WINDOW_BYTES
        self._first_byte, self._row_bytes = self._before + first_byte, row_bytes
        self._read = np.zeros(-(-(self._before + len(below)) // WINDOW_BYTES), np.bool_)
        self._n_asked, self._most, self._next = 0, most_bytes, 0
        self._other_files = mapped_bytes() or 0
        self._turns = Turns()

    @classmethod
    def of(cls, values: StoredArray, *, most_bytes: int) -> ResidentWindows | None:
        """For an array that is a map; None for others, and where nothing can be given back."""
        below: object = values.base
        if not isinstance(values, np.memmap) or values.mode != "r" or not isinstance(below, mmap.mmap):
            return None
        if not hasattr(mmap, "MADV_DONTNEED"):
            return None
        first_byte = values.offset % mmap.ALLOCATIONGRANULARITY
        start = values.ctypes.data - first_byte
        return cls(below, start=start, first_byte=first_byte, row_bytes=values.strides[0], most_bytes=most_bytes)

    @property
    def n_bytes(self) -> int:
        """About so much of the map is in memory now, with what of other files was mapped since it was opened."""
        mapped = mapped_bytes()
        if mapped is None:
            return _MAPPED_UNSEEN * self._n_read * WINDOW_BYTES
        return mapped - self._other_files

    def before_rows(self, rows: RowArray) -> None:
        """Some rows are going to be read."""
        first = self._first_byte + rows * self._row_bytes
        self._count(np.concatenate([first, first + (self._row_bytes - 1)]) // WINDOW_BYTES)

    def before_part(self, start: int, stop: int) -> None:
        """The rows from ``start`` up to ``stop``, one or more, are going to be read."""
        bounds = self._first_byte + np.array([start, stop]) * self._row_bytes
        self._count(np.arange(bounds[0] // WINDOW_BYTES, (bounds[1] - 1) // WINDOW_BYTES + 1))

    def _count(self, windows: RowArray) -> None:
        with self._turns.lock:
            self._n_asked += len(windows)
            if self._n_asked >= _WINDOWS_TO_A_LOOK:
                self._n_asked = 0
                self._other_files = min(self._other_files, mapped_bytes() or 0)  # some may have been closed since
                least = self._most // _LEAST_KEPT
                while self._n_read * WINDOW_BYTES > least and self.n_bytes > self._most:
                    self._give_back()
            self._read[windows] = True

    @property
    def _n_read(self) -> int:
        return int(np.count_nonzero(self._read))

    def _give_back(self) -> None:
        start = self._next
        stop = min(start + -(-len(self._read) // _PARTS), len(self._read))
        self._next = stop if stop < len(self._read) else 0
        first = max(0, start * WINDOW_BYTES - self._before)
        self._map.madvise(mmap.MADV_DONTNEED, first, min(stop * WINDOW_BYTES - self._before, len(self._map)) - first)
        self._read[start:stop] = False


def mapped_bytes() -> int | None:
    """Memory of this process that is pages of files, all files together; None where Linux's ``/proc`` does not say."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[2]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):
        return None
