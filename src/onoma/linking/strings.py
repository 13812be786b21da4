"""Columns of text that open at once: the bytes of all strings end to end, and where each begins.

A linker of millions of names is opened to answer a few mentions, so nothing may be decoded before it is
asked for, and several processes should share one copy in memory. Both follow from a memory map.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt

from onoma.artifacts.arrays import MAKE_AGAIN, load_array
from onoma.errors import DamagedArtifactError
from onoma.types import RowArray

_SHOWN = 3


class StringColumn(Sequence[str]):
    """An immutable sequence of strings over UTF-8 bytes.

    Args:
        data: The bytes of all strings, uint8, shape (total,).
        offsets: Where each begins and the last one ends, int64, shape (n + 1,).

    Example:
        >>> column = StringColumn.from_strings(["heart", "", "Ménière"])
        >>> len(column), column[2], list(column)
        (3, 'Ménière', ['heart', '', 'Ménière'])
        >>> column
        StringColumn(3: 'heart', '', 'Ménière')
    """

    def __init__(self, data: npt.NDArray[np.uint8], offsets: RowArray) -> None:
        self.data, self.offsets = data, offsets

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> StringColumn:
        """A column in memory."""
        encoded = [string.encode() for string in strings]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(part) for part in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    @classmethod
    def open(cls, folder: Path, name: str, *, fix: str = MAKE_AGAIN) -> StringColumn:
        """The column that `save` wrote, memory-mapped.

        Raises:
            DamagedArtifactError: a file is missing, or they do not fit each other; ``fix`` says what to do.
        """
        offsets = np.asarray(load_array(offsets_file(folder, name), (np.int64,), 1, fix=fix))
        path = data_file(folder, name)
        size = path.stat().st_size if path.is_file() else -1
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != size:
            raise DamagedArtifactError(f"{path} is missing, or does not have the bytes of all its texts. {fix}")
        # An empty file cannot be mapped.
        data = np.memmap(path, np.uint8, mode="r") if size else np.empty(0, np.uint8)
        return cls(np.asarray(data), offsets)

    def save(self, folder: Path, name: str) -> None:
        """Write ``NAME.utf8`` and ``NAME.offsets.npy`` into ``folder``."""
        self.data.tofile(data_file(folder, name))
        np.save(offsets_file(folder, name), self.offsets)

    def has_any(self, characters: bytes) -> bool:
        """Whether any string has one of these ASCII characters in it; nothing is decoded."""
        return any(bool((self.data == character).any()) for character in characters)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:_SHOWN]))
        return f"StringColumn({len(self):,}: {shown}{', ...' if len(self) > _SHOWN else ''})"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        position = index % len(self)
        return self.data[self.offsets[position] : self.offsets[position + 1]].tobytes().decode()

    def rows_of(self, wanted: str, order: npt.NDArray[np.int32]) -> RowArray:
        """Rows of the strings that are ``wanted``, found by bisection; nothing is decoded.

        Args:
            wanted: A string.
            order: All rows, int32, shape (n,), by the bytes of their strings, which is by their code points.
        """
        try:
            sought = wanted.encode()
        except UnicodeEncodeError:  # half a character, which no string has
            return np.empty(0, np.int64)
        # A number of a memory view is Python's own at once, one of an array NumPy's, which takes three times as long.
        data, offsets, rows = self.data.data, self.offsets.data, order.data

        def string_at(row: int) -> bytes:
            return data[offsets[row] : offsets[row + 1]].tobytes()

        begin = bisect.bisect_left(rows, sought, key=string_at)
        if begin == len(rows) or string_at(rows[begin]) != sought:
            return np.empty(0, np.int64)
        return order[begin : bisect.bisect_right(rows, sought, lo=begin, key=string_at)].astype(np.int64)

    def __iter__(self) -> Iterator[str]:
        everything = self.data.tobytes()
        bounds = self.offsets.tolist()
        for begin, end in itertools.pairwise(bounds):
            yield everything[begin:end].decode()


def data_file(folder: Path, name: str) -> Path:
    """Where the bytes of a column lie."""
    return folder / f"{name}.utf8"


def offsets_file(folder: Path, name: str) -> Path:
    """Where its offsets lie."""
    return folder / f"{name}.offsets.npy"
