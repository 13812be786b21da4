"""Inverted lists: for each term the rows that contain it, and how often.

The lists lie end to end in two arrays, 5 bytes for each pair of term and row, and are mapped from disk. A term that
many rows contain is kept as a column instead, its count in every row: that takes about as much room, and the count at
any row is read without a search.

Shapes: V terms, N rows, P pairs of term and row in lists, D terms that have a column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from onoma.errors import DamagedArtifactError
from onoma.types import RowArray

CountArray: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
"""How often a term occurs in a row, in the smallest of these types that holds the highest count."""
KeyArray: TypeAlias = npt.NDArray[np.uint64]
ListRowArray: TypeAlias = npt.NDArray[np.int32]

MAX_ROWS_IN_PART = 1 << 16
_ROWS_PER_LISTED = 5
"""A term in more than one of so many rows has a column: from there on it takes no more room than the list."""
_UNITS: dict[str, tuple[tuple[type[np.generic], ...], int]] = {
    "offsets": ((np.int64,), 1),
    "rows": ((np.int32,), 1),
    "counts": ((np.uint8, np.uint16, np.uint32), 1),
    "column_terms": ((np.int64,), 1),
    "columns": ((np.uint8, np.uint16, np.uint32), 2),
}


@dataclass(frozen=True)
class Postings:
    """Terms and the rows that contain them.

    Attributes:
        offsets: Where the list of each term begins and the last one ends, int64, shape (V + 1,).
        rows: int32, shape (P,), ascending within a list.
        counts: Shape (P,).
        column_terms: Terms that have a column, and an empty list, int64, shape (D,), ascending.
        columns: Shape (D, N).
    """

    offsets: RowArray
    rows: ListRowArray
    counts: CountArray
    column_terms: RowArray
    columns: CountArray

    @property
    def n_terms(self) -> int:
        """V."""
        return len(self.offsets) - 1

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.columns.shape[1])

    def column(self, term: int) -> CountArray | None:
        """The counts of a term in all rows, shape (N,); ``None`` if it has no column."""
        place = int(self.column_terms.searchsorted(term))
        has_one = place < len(self.column_terms) and self.column_terms[place] == term
        return self.columns[place] if has_one else None

    def listed(self, term: int) -> tuple[ListRowArray, CountArray]:
        """Rows and counts in the list of a term; empty if it has a column."""
        begin, end = self.offsets[term], self.offsets[term + 1]
        return self.rows[begin:end], self.counts[begin:end]

    def length(self, term: int) -> int:
        """How many numbers there are to go through for a term: of its list or its column."""
        return int(self.offsets[term + 1] - self.offsets[term]) if self.column(term) is None else self.n_rows

    def containing(self, term: int) -> tuple[npt.NDArray[np.signedinteger[Any]], CountArray]:
        """The rows that contain a term, ascending, and its counts, wherever they are kept."""
        column = self.column(term)
        if column is None:
            return self.listed(term)
        rows = np.flatnonzero(column)
        return rows, column[rows]

    def counts_at(self, term: int, rows: RowArray) -> CountArray:
        """How often each of these rows, in any order, contains a term."""
        column = self.column(term)
        if column is not None:
            return column[rows]
        listed, counts = self.listed(term)
        if not len(listed):
            return np.zeros(len(rows), counts.dtype)
        # Rows of the same type as the list's: searching would otherwise convert the whole list.
        wanted = rows.astype(np.int32)
        places = np.minimum(listed.searchsorted(wanted), len(listed) - 1)
        return np.where(listed[places] == wanted, counts[places], counts.dtype.type(0))

    def frequencies(self) -> RowArray:
        """In how many rows each term occurs, shape (V,)."""
        frequencies = np.diff(self.offsets)
        frequencies[self.column_terms] = [np.count_nonzero(column) for column in self.columns]
        return frequencies

    def save(self, folder: Path, name: str) -> None:
        """Write ``NAME.offsets.npy`` and so on into ``folder``."""
        for part in _UNITS:
            np.save(folder / f"{name}.{part}.npy", getattr(self, part))

    @classmethod
    def open(cls, folder: Path, name: str) -> Postings:
        """What `save` wrote, memory-mapped.

        Raises:
            DamagedArtifactError: a file is missing, or they do not fit one another.
        """
        arrays: dict[str, Any] = {
            part: load_array(folder / f"{name}.{part}.npy", dtypes, n_dimensions)
            for part, (dtypes, n_dimensions) in _UNITS.items()
        }
        postings = cls(**arrays)
        offsets, terms, columns = postings.offsets, postings.column_terms, postings.columns
        fits = (
            len(offsets) >= 1
            and offsets[0] == 0
            and offsets[-1] == len(postings.rows) == len(postings.counts)
            and bool(np.all(np.diff(offsets) >= 0))
            and len(terms) == len(columns)
            and bool(np.all(np.diff(terms) > 0))
            and (len(terms) == 0 or (terms[0] >= 0 and terms[-1] < postings.n_terms))
        )
        if not fits:
            raise DamagedArtifactError(
                f"{folder}: the files {name}.*.npy do not fit one another. Make the folder again."
            )
        return postings


@dataclass(frozen=True)
class _Part:
    """The lists of some consecutive rows."""

    first_row: int
    keys: KeyArray
    lengths: RowArray
    rows: npt.NDArray[np.uint16]
    counts: CountArray


def invert(parts: Iterable[tuple[KeyArray, RowArray]], n_rows: int) -> tuple[KeyArray, Postings]:
    """Lists of which rows contain what.

    Besides the result, 3 bytes are held for each pair of term and row, and what one part needs.

    Args:
        parts: Occurrences: what occurs, as keys of any kind, and the row it occurs in, as often as it does. The rows
            of a part are higher than those of the part before, and fewer than `MAX_ROWS_IN_PART` apart.
        n_rows: N.

    Returns:
        The keys that occur, ascending, shape (V,), which are the terms in this order; and the postings.
    """
    inverted = [_invert_part(keys, rows) for keys, rows in parts if len(keys)]
    vocabulary = np.unique(np.concatenate([np.empty(0, np.uint64), *(part.keys for part in inverted)]))
    terms_of = [np.searchsorted(vocabulary, part.keys) for part in inverted]
    frequencies = np.zeros(len(vocabulary), np.int64)
    for part, terms in zip(inverted, terms_of, strict=True):
        frequencies[terms] += part.lengths
    dtype = np.result_type(np.uint8, *(part.counts.dtype for part in inverted))
    has_column = frequencies * _ROWS_PER_LISTED > n_rows
    column_terms = np.flatnonzero(has_column)
    columns = np.zeros((len(column_terms), n_rows), dtype)
    offsets = np.concatenate([[0], np.cumsum(np.where(has_column, 0, frequencies))])
    all_rows, all_counts = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], dtype)
    free = offsets[:-1].copy()
    for number, terms in enumerate(terms_of):
        part = inverted[number]
        rows, terms_of_pairs = part.rows + np.int32(part.first_row), np.repeat(terms, part.lengths)
        begins = np.cumsum(part.lengths) - part.lengths
        places = np.repeat(free[terms] - begins, part.lengths) + np.arange(len(rows))
        in_list = ~has_column[terms_of_pairs]
        all_rows[places[in_list]] = rows[in_list]
        all_counts[places[in_list]] = part.counts[in_list]
        places_of_columns = np.searchsorted(column_terms, terms_of_pairs[~in_list])
        columns[places_of_columns, rows[~in_list]] = part.counts[~in_list]
        free[terms] += part.lengths
        inverted[number] = _NOTHING  # the memory of this part
    return vocabulary, Postings(offsets, all_rows, all_counts, column_terms, columns)


def _invert_part(keys: KeyArray, rows: RowArray) -> _Part:
    first_row = int(rows.min())
    distinct, numbers = np.unique(keys, return_inverse=True)
    pairs = numbers.astype(np.uint64) << np.uint64(32) | (rows - first_row).astype(np.uint64)
    pairs.sort()
    begins = np.flatnonzero(np.concatenate([[True], pairs[1:] != pairs[:-1]]))
    counts = np.diff(begins, append=len(pairs))
    pairs = pairs[begins]
    return _Part(
        first_row=first_row,
        keys=distinct,
        lengths=np.bincount((pairs >> np.uint64(32)).astype(np.int64), minlength=len(distinct)),
        rows=pairs.astype(np.uint16),  # the lower 16 bits: the row within the part
        counts=counts.astype(np.min_scalar_type(int(counts.max()))),
    )


_NOTHING = _Part(0, np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint16), np.empty(0, np.uint8))


def load_array(path: Path, dtypes: tuple[type[np.generic], ...], n_dimensions: int) -> npt.NDArray[Any]:
    """Memory-map an ``.npy`` file as a plain array.

    Raises:
        DamagedArtifactError: it is missing, not readable, or of another type or number of dimensions.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DamagedArtifactError(f"{path} is missing. Make the folder again.") from None
    except (OSError, ValueError, EOFError) as error:
        raise DamagedArtifactError(f"{path} is not a readable array ({error}). Make the folder again.") from None
    if array.dtype not in dtypes or array.ndim != n_dimensions:
        raise DamagedArtifactError(
            f"{path} holds {array.dtype} of {array.ndim} dimensions, where {np.dtype(dtypes[0])} of {n_dimensions} is "
            "needed. Make the folder again."
        )
    return np.asarray(array)
