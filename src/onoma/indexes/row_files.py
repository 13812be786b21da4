"""Arrays on disk that grow row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

StoredArray: TypeAlias = npt.NDArray[Any]


class RowFile:
    """An ``.npy`` file written row by row, the same as `numpy.save` writes.

    How many rows there are stands in its header at the end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = None
        self._dtype: np.dtype[Any] | None = None
        self._shape: tuple[int, ...] = ()

    @classmethod
    @contextmanager
    def create(cls, path: Path) -> Iterator[RowFile]:
        """The file appears with the first rows."""
        rows = cls(path)
        try:
            yield rows
            rows._write_header()
        finally:
            if rows._file is not None:
                rows._file.close()

    @property
    def width(self) -> int | None:
        """Columns of the rows so far; unset before the first."""
        return self._shape[1] if len(self._shape) == 2 else None

    def append(self, rows: StoredArray) -> None:
        """Add rows of the type and width of those before."""
        if self._dtype is None:
            self._dtype, self._shape = rows.dtype, (0, *rows.shape[1:])
            self._file = self._path.open("wb")
            self._write_header()
        np.ascontiguousarray(rows).tofile(self._file)
        self._shape = (self._shape[0] + len(rows), *self._shape[1:])

    def _write_header(self) -> None:
        """Numpy leaves room for the first number of the shape to grow."""
        if self._dtype is None:
            return
        about = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": self._shape}
        self._file.seek(0)
        np.lib.format.write_array_header_1_0(self._file, about)
        self._file.seek(0, 2)
