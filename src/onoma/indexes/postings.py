"""Inverted lists: for each term the rows that contain it, and how often.

The lists lie end to end in two arrays, 5 bytes for each pair of term and row, and are mapped from disk. A term that
many rows contain is kept as a column instead, its count in every row: that takes about as much room, and the count at
any row is read without a search.

Shapes: V terms, N rows, P pairs of term and row in lists, D terms that have a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from onoma.artifacts.arrays import load_array
from onoma.errors import DamagedArtifactError
from onoma.types import RowArray

CountArray: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
"""How often a term occurs in a row, in the smallest of these types that holds the highest count."""
KeyArray: TypeAlias = npt.NDArray[np.uint64]
ListRowArray: TypeAlias = npt.NDArray[np.int32]

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

    def column_places(self, terms: RowArray) -> RowArray:
        """Rows of ``columns`` of some terms that have one."""
        return self.column_terms.searchsorted(terms)

    def columns_of(self, terms: RowArray) -> list[CountArray]:
        """The counts in all rows of some terms that have a column, shape (N,) each."""
        return [self.columns[place] for place in self.column_places(terms).tolist()]

    def listed(self, term: int) -> tuple[ListRowArray, CountArray]:
        """Rows and counts in the list of a term; empty if it has a column."""
        begin, end = self.offsets[term], self.offsets[term + 1]
        return self.rows[begin:end], self.counts[begin:end]

    def lengths(self, terms: RowArray) -> RowArray:
        """How many numbers the lists of some terms have; 0 where there is a column."""
        return np.asarray(self.offsets[terms + 1] - self.offsets[terms])

    def containing(self, term: int) -> tuple[npt.NDArray[np.signedinteger[Any]], CountArray]:
        """The rows that contain a term, ascending, and its counts, wherever they are kept."""
        place = int(self.column_terms.searchsorted(term))
        if place == len(self.column_terms) or self.column_terms[place] != term:
            return self.listed(term)
        rows = np.flatnonzero(self.columns[place])
        return rows, self.columns[place][rows]

    def counts_at(self, terms: RowArray, rows: ListRowArray, *, n_listed: int) -> CountArray:
        """How often each of n rows, in any order, contains each of some terms, shape (terms, n).

        Args:
            terms: The first ``n_listed`` have a list, the others a column.
            rows: Shape (n,).
            n_listed: How many have a list.
        """
        counts = np.empty((len(terms), len(rows)), self.counts.dtype)
        begins, ends = self.offsets[terms[:n_listed]], self.offsets[terms[:n_listed] + 1]
        places = np.empty((n_listed, len(rows)), np.int64)
        for of_term, begin, end in zip(places, begins.tolist(), ends.tolist(), strict=True):
            of_term[:] = self.rows[begin:end].searchsorted(rows)
        places += begins[:, None]
        np.minimum(places, ends[:, None] - 1, out=places)
        np.multiply(self.counts.take(places), self.rows.take(places) == rows, out=counts[:n_listed])
        for of_term, column in zip(counts[n_listed:], self.columns_of(terms[n_listed:]), strict=True):
            column.take(rows, out=of_term)
        return counts

    def frequencies(self) -> RowArray:
        """In how many rows each term occurs, shape (V,)."""
        frequencies = np.diff(self.offsets)
        frequencies[self.column_terms] = [np.count_nonzero(column) for column in self.columns]
        return frequencies

    def save(self, folder: Path, name: str) -> None:
        """Write ``NAME.offsets.npy`` and so on into ``folder``."""
        for part in _UNITS:
            np.save(array_file(folder, name, part), getattr(self, part))

    @classmethod
    def open(cls, folder: Path, name: str) -> Postings:
        """What `save` wrote, memory-mapped.

        Raises:
            DamagedArtifactError: a file is missing, or they do not fit one another.
        """
        arrays: dict[str, Any] = {
            part: np.asarray(load_array(array_file(folder, name, part), dtypes, n_dimensions))
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
        )
        if not fits:
            raise DamagedArtifactError(
                f"{folder}: the files {name}.*.npy do not fit one another. Make the folder again."
            )
        return postings


def array_file(folder: Path, name: str, part: str) -> Path:
    """Where one of the arrays lies."""
    return folder / f"{name}.{part}.npy"
