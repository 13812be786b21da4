"""Inverted lists made in bounded memory.

Occurrences come by rows, lists are by terms. In between they lie in a file without a name, of which nothing is left
however the process ends: 3 bytes for each pair of term and row. Each part of the rows is sorted by term there, so that
some terms at a time are read of all parts and their lists put together, and written one after the other.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from onoma.indexes.postings import CountArray, KeyArray, ListRowArray, Postings, array_file
from onoma.indexes.row_files import RowFile
from onoma.types import RowArray

Occurrences: TypeAlias = Iterable[tuple[KeyArray, RowArray]]
"""What occurs, as keys of any kind, and the row it occurs in, as often as it does. The rows of a part are higher than
those of the part before, and fewer than 65,536 apart."""

_ROWS_PER_LISTED = 5
"""A term in more than one of so many rows has a column: from there on it takes no more room than the list."""
_SPILLED_BYTES = 1 << 26
"""What lies between, if it is no more than this, stays in memory."""
_KEYS_AT_ONCE = 1 << 20
_NUMBERS_AT_ONCE = 1 << 23
"""Numbers of lists and columns put together at a time (40 MiB)."""


@dataclass(frozen=True)
class RowsPart:
    """What some consecutive rows contain, by term, and of a term by row. Shape (p,) each.

    Attributes:
        first_row: What the rows count from.
        terms: int64.
        rows: uint16.
        counts: How often the term occurs in the row.
    """

    first_row: int
    terms: RowArray
    rows: npt.NDArray[np.uint16]
    counts: CountArray


class Inversion:
    """Occurrences by term. Shapes: V terms, N rows, D terms that have a column.

    Attributes:
        keys: Those that occur, ascending, shape (V,), which are the terms in this order.
        frequencies: In how many rows each term occurs, int64, shape (V,).
        offsets: See `Postings`.
        column_terms: See `Postings`.
        n_rows: N.
    """

    def __init__(self, occurrences: Occurrences, n_rows: int, between: IO[bytes]) -> None:
        self.n_rows, self._between = n_rows, between
        self._parts: list[_Part] = []
        self.keys, self.frequencies = np.empty(0, np.uint64), np.empty(0, np.int64)
        waiting: list[tuple[KeyArray, RowArray]] = []
        for keys, rows in occurrences:
            if len(keys):
                waiting.append(self._take(keys, rows))
            if sum(len(distinct) for distinct, _ in waiting) > _KEYS_AT_ONCE:
                self._merge(waiting)
                waiting = []
        self._merge(waiting)
        self._has_column = self.frequencies * _ROWS_PER_LISTED > n_rows
        self.column_terms = np.flatnonzero(self._has_column)
        self.offsets = np.concatenate([[0], np.cumsum(np.where(self._has_column, 0, self.frequencies))])
        self._dtype = np.result_type(np.uint8, *(part.dtype for part in self._parts))

    def parts(self) -> Iterator[RowsPart]:
        """All occurrences, some rows at a time."""
        for part in self._parts:
            terms = np.searchsorted(self.keys, self._read(part.keys_at, np.uint64, 0, part.n_keys))
            lengths = self._read(part.lengths_at, np.int32, 0, part.n_keys)
            rows = self._read(part.rows_at, np.uint16, 0, part.n_pairs)
            counts = self._read(part.counts_at, part.dtype, 0, part.n_pairs)
            yield RowsPart(part.first_row, np.repeat(terms, lengths), rows, counts)

    def postings(self) -> Postings:
        """The lists, in memory."""
        rows, counts, columns = map(list, zip(*self._lists(), strict=True))
        return Postings(
            self.offsets, np.concatenate(rows), np.concatenate(counts), self.column_terms, np.concatenate(columns)
        )

    def write(self, folder: Path, name: str) -> Postings:
        """The lists, written as `Postings.save` does and memory-mapped."""
        np.save(array_file(folder, name, "offsets"), self.offsets)
        np.save(array_file(folder, name, "column_terms"), self.column_terms)
        with ExitStack() as stack:
            files = [
                stack.enter_context(RowFile.create(array_file(folder, name, part)))
                for part in ("rows", "counts", "columns")
            ]
            for lists in self._lists():
                for file, array in zip(files, lists, strict=True):
                    file.append(array)
        return Postings.open(folder, name)

    def _take(self, keys: KeyArray, rows: RowArray) -> tuple[KeyArray, RowArray]:
        """Sort a part by term and put it aside; its distinct keys and in how many rows each is."""
        first_row = int(rows.min())
        distinct, numbers = np.unique(keys, return_inverse=True)
        pairs = numbers.astype(np.uint64) << np.uint64(32) | (rows - first_row).astype(np.uint64)
        pairs.sort()
        begins = np.flatnonzero(np.concatenate([[True], pairs[1:] != pairs[:-1]]))
        counts = np.diff(begins, append=len(pairs))
        pairs = pairs[begins]
        lengths = np.bincount((pairs >> np.uint64(32)).astype(np.int64), minlength=len(distinct))
        self._parts.append(
            _Part(
                first_row=first_row,
                n_keys=len(distinct),
                n_pairs=len(pairs),
                dtype=np.min_scalar_type(int(counts.max())),
                keys_at=self._put(distinct),
                lengths_at=self._put(lengths.astype(np.int32)),
                rows_at=self._put(pairs.astype(np.uint16)),  # the lower 16 bits: the row within the part
                counts_at=self._put(counts.astype(np.min_scalar_type(int(counts.max())))),
            )
        )
        return distinct, lengths

    def _put(self, array: npt.NDArray[Any]) -> int:
        """Where it was put."""
        at = self._between.tell()
        self._between.write(array.tobytes())
        return at

    def _read(self, at: int, dtype: npt.DTypeLike, begin: int, end: int) -> npt.NDArray[Any]:
        size = np.dtype(dtype).itemsize
        self._between.seek(at + begin * size)
        return np.frombuffer(self._between.read((end - begin) * size), dtype)

    def _merge(self, more: list[tuple[KeyArray, RowArray]]) -> None:
        keys = np.concatenate([self.keys, *(keys for keys, _ in more)])
        frequencies = np.concatenate([self.frequencies, *(lengths for _, lengths in more)])
        if not len(keys):
            return
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        self.keys, self.frequencies = keys[begins], np.add.reduceat(frequencies[order], begins)

    def _lists(self) -> Iterator[tuple[ListRowArray, CountArray, CountArray]]:
        """Rows and counts of lists, and columns, of some consecutive terms at a time."""
        numbers = np.cumsum(np.where(self._has_column, self.n_rows, self.frequencies))
        edges = np.unique(np.searchsorted(numbers, np.arange(0, numbers.max(initial=0), _NUMBERS_AT_ONCE), "right"))
        edges = np.concatenate([[0], edges[edges > 0], [len(self.keys)]])
        bounds = []
        for part in self._parts:
            keys = self._read(part.keys_at, np.uint64, 0, part.n_keys)
            ends = np.concatenate([[0], np.cumsum(self._read(part.lengths_at, np.int32, 0, part.n_keys))])
            of_keys = np.concatenate([np.searchsorted(keys, self.keys[edges[:-1]]), [len(keys)]])
            bounds.append((of_keys, ends[of_keys]))
        for number, (first, last) in enumerate(itertools.pairwise(edges.tolist())):
            begin, end = self.offsets[first], self.offsets[last]
            first_column, last_column = np.searchsorted(self.column_terms, [first, last])
            rows, counts = np.empty(end - begin, np.int32), np.empty(end - begin, self._dtype)
            columns = np.zeros((last_column - first_column, self.n_rows), self._dtype)
            free = self.offsets[first:last] - begin
            for part, (of_keys, of_pairs) in zip(self._parts, bounds, strict=True):
                low, high = of_keys[number], of_keys[number + 1]
                keys = self._read(part.keys_at, np.uint64, low, high)
                lengths = self._read(part.lengths_at, np.int32, low, high)
                low, high = of_pairs[number], of_pairs[number + 1]
                found = self._read(part.rows_at, np.uint16, low, high) + np.int32(part.first_row)
                found_counts = self._read(part.counts_at, part.dtype, low, high)
                terms = np.searchsorted(self.keys[first:last], keys)
                places = np.repeat(free[terms] - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(found))
                terms_of_pairs = np.repeat(terms, lengths)
                in_list = ~self._has_column[first + terms_of_pairs]
                rows[places[in_list]] = found[in_list]
                counts[places[in_list]] = found_counts[in_list]
                places = np.searchsorted(self.column_terms, first + terms_of_pairs[~in_list]) - first_column
                columns[places, found[~in_list]] = found_counts[~in_list]
                free[terms] += lengths
            yield rows, counts, columns


@dataclass(frozen=True)
class _Part:
    """Where the occurrences of some consecutive rows were put."""

    first_row: int
    n_keys: int
    n_pairs: int
    dtype: np.dtype[Any]
    keys_at: int
    lengths_at: int
    rows_at: int
    counts_at: int


@contextmanager
def inverting(occurrences: Occurrences, n_rows: int, *, folder: Path | None = None) -> Iterator[Inversion]:
    """Sort occurrences by term.

    Args:
        occurrences: Gone through once.
        n_rows: N.
        folder: Where what is too large for memory is put; unset: where the system puts such files.
    """
    with tempfile.SpooledTemporaryFile(max_size=_SPILLED_BYTES, dir=None if folder is None else str(folder)) as between:
        yield Inversion(occurrences, n_rows, between)


def invert(occurrences: Occurrences, n_rows: int) -> tuple[KeyArray, Postings]:
    """Lists of which rows contain what, in memory.

    Returns:
        The keys that occur, ascending, shape (V,), which are the terms in this order; and the postings.
    """
    with inverting(occurrences, n_rows) as inversion:
        return inversion.keys, inversion.postings()
