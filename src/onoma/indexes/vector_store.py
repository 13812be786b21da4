"""Vectors on disk in single precision or rounded, and always read as single precision.

========= ============================== ==================================================================
precision bytes per vector of width W    what is stored
========= ============================== ==================================================================
fp32      4 W                            the vector
fp16      2 W                            each component in half precision
int16     2 W + 4                        whole numbers of -32,767..32,767 and one scale for the vector
int8      W + 4                          whole numbers of -127..127 and one scale for the vector
========= ============================== ==================================================================

The components of a name's vector are of similar size, so whole numbers of the same number of bits are nearer to
them than floating ones: scores with int16 are four times as near as with fp16, and it is read faster. Of 87,156 names
of MONDO, 99.9 % kept their nearest in fp16, all in int16, 99.5 % in int8. The scale is chosen so that a vector
keeps its length: a unit vector stays one.

Files: ``vectors.npy``, shape (N, W); where there are scales ``scales.npy``, shape (N,); and ``vectors.sums.npy``, shape
(N,): a vector is compared with its sum when it is first read (`onoma.indexes.row_sums`). They are memory-mapped, so
that several processes share one copy. What a process has looked at counts as its memory until the system needs it
elsewhere; of a file larger than `WHOLE_BYTES` about `RESIDENT_BYTES` are kept, and the rest given back.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np

from onoma.artifacts.arrays import NOT_AN_ARRAY
from onoma.artifacts.system import is_of_system
from onoma.errors import DamagedArtifactError, InputError, ShapeError, checked_path, one_of
from onoma.indexes.residency import ResidentWindows
from onoma.indexes.row_files import RowFile, StoredArray
from onoma.indexes.row_sums import SUMS_FILE, RowSums, row_sums
from onoma.types import DoubleArray, FloatArray, RowArray

VectorPrecision: TypeAlias = Literal["fp32", "fp16", "int16", "int8"]
VECTORS_FILE = "vectors.npy"
SCALES_FILE = "scales.npy"
WHOLE_BYTES = 3 << 30
"""Of the vectors in a file that is left alone: what is given back must be mapped anew, which slows every search."""
RESIDENT_BYTES = 1 << 31
PART_ROWS = 1 << 15
"""Rows read or written together: 50 MB of single precision at a width of 384."""
_ROWS_IN_CACHE = 1 << 11
"""Rows that are taken through several steps together, so that what is in between stays in the processor's cache."""

_DTYPES: dict[VectorPrecision, type[np.generic]] = {
    "fp32": np.float32,
    "fp16": np.float16,
    "int16": np.int16,
    "int8": np.int8,
}
_LARGEST = {"int16": 32_767, "int8": 127}
_NOT_FINITE = 0xF800
"""A half with the highest exponent, its sign shifted out, or anything above."""
_FRACTION_BITS_MORE = 13
_SIGN_AND_HALF = np.int32(-0x70002000)
"""The highest bit, and the 15 that a half's exponent and fraction were moved to."""
_EXPONENT_DIFFERENCE = np.float32(2.0**112)


class VectorStore:
    """N vectors of width W in one of the precisions.

    Args:
        values: Shape (N, W); float32, float16, int16 or int8, in memory or memory-mapped; kept by reference and never
            changed.
        scales: Of each vector of whole numbers, float32, shape (N,); only for these.
        max_norm: An upper bound of the vectors' lengths, if the caller knows one: then nothing is read here. Unset:
            all vectors are read once, to measure it and to refuse what is not finite.
        sums: What rows are compared with as they are read; unset: nothing.

    Raises:
        ShapeError: ``values`` is no matrix or has no columns, or the scales do not fit it.
        InputError: another type of numbers, or a vector is not finite.

    Example:
        >>> store = VectorStore(np.array([[127, 0], [0, -64]], dtype=np.int8), np.array([0.01, 0.5], dtype=np.float32))
        >>> store.take(np.array([1])).tolist()
        [[0.0, -32.0]]
    """

    def __init__(
        self,
        values: StoredArray,
        scales: FloatArray | None = None,
        *,
        max_norm: float | None = None,
        sums: RowSums | None = None,
    ) -> None:
        values = values if isinstance(values, np.ndarray) else np.asarray(values, np.float32)
        if values.ndim != 2 or values.shape[1] == 0:
            raise ShapeError(f"an index needs vectors of shape (n, width > 0); found {values.shape}.")
        names = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
        if values.dtype not in names:
            raise InputError("vectors of the wrong type", expected="float32", found=str(values.dtype))
        self.precision = names[values.dtype]
        if (scales is None) == (self.precision in _LARGEST):
            raise InputError("vectors of whole numbers, and only these, need scales", field="scales")
        if scales is not None and (scales.shape != (len(values),) or scales.dtype != np.float32):
            raise ShapeError(f"{len(values)} vectors need as many float32 scales; found {scales.shape}.")
        self._values: StoredArray = np.asarray(values)  # a plain view, also of a memory map
        self._scales = None if scales is None else np.asarray(scales)
        self._sums = sums
        self._resident = ResidentWindows.of(values, most_bytes=RESIDENT_BYTES) if values.nbytes > WHOLE_BYTES else None
        self.max_norm = self._longest() if max_norm is None else max_norm
        """Upper bound of the vectors' lengths."""

    @classmethod
    def open(cls, folder: str | Path, *, max_norm: float) -> VectorStore:
        """What `write_vectors` wrote, memory-mapped.

        Raises:
            InputError: this is no path.
            DamagedArtifactError: a file is missing or not what it should be.
        """
        folder = checked_path(folder)
        try:
            values = np.load(folder / VECTORS_FILE, mmap_mode="r")
            scales = np.load(folder / SCALES_FILE, mmap_mode="r") if values.dtype.kind == "i" else None
            return cls(values, scales, max_norm=max_norm, sums=_open_sums(folder, values))
        except (*NOT_AN_ARRAY, InputError) as error:
            if is_of_system(error):
                raise
            raise DamagedArtifactError(
                f"{folder}: the vectors cannot be read ({error}). Build the index again."
            ) from None

    @property
    def width(self) -> int:
        """W, the number of components of a vector."""
        return int(self._values.shape[1])

    @property
    def n_bytes(self) -> int:
        """Size of the vectors, on disk or in memory."""
        return self._values.nbytes + (0 if self._scales is None else self._scales.nbytes)

    def __len__(self) -> int:
        return len(self._values)

    def part(self, start: int, stop: int) -> FloatArray:
        """Vectors ``start`` up to ``stop`` without it, shape (n, W); not to be changed."""
        values = self._values[start:stop]
        if self._resident is not None and len(values):
            self._resident.before_part(start, start + len(values))
        scales = None if self._scales is None else self._scales[start:stop]
        if self._sums is not None:
            self._sums.check(slice(start, stop), values, scales)
        return self._as_fp32(values, scales)

    def parts(self) -> Iterator[FloatArray]:
        """All vectors, some at a time; where there are none, one part without rows."""
        for start in range(0, max(len(self), 1), PART_ROWS):
            yield self.part(start, start + PART_ROWS)

    def spaced_rows(self, n_rows: int) -> RowArray:
        """At most so many rows, evenly spaced, ascending, shape (n,)."""
        return np.unique(np.linspace(0, max(len(self) - 1, 0), min(len(self), n_rows)).astype(np.int64))

    def take(self, rows: RowArray) -> FloatArray:
        """Vectors of these rows, shape (n, W)."""
        if self._resident is not None:
            self._resident.before_rows(rows)
        scales = None if self._scales is None else self._scales[rows]
        values = np.take(self._values, rows, axis=0)
        if self._sums is not None:
            self._sums.check(rows, values, scales)
        return self._as_fp32(values, scales)

    def _as_fp32(self, values: StoredArray, scales: FloatArray | None) -> FloatArray:
        found: FloatArray = (
            _half_to_single(values) if self.precision == "fp16" else values.astype(np.float32, copy=False)
        )
        if scales is not None:
            found *= scales[:, None]  # whole numbers were copied
        return found

    def _longest(self) -> float:
        """Length of the longest vector, 0.0 if there is none; `InputError` if one is not finite."""
        longest = 0.0
        for number, part in enumerate(self.parts()):
            longest = max(longest, longest_of(part, first_row=number * PART_ROWS))
        return longest


def _open_sums(folder: Path, values: StoredArray) -> RowSums:
    file = folder / SUMS_FILE
    sums = np.load(file, mmap_mode="r")
    if sums.shape != (len(values),) or sums.dtype != np.uint64 or not values.flags.c_contiguous:
        raise DamagedArtifactError(f"{file} does not belong to the vectors beside it. Build the index again.")
    return RowSums(np.asarray(sums), folder / VECTORS_FILE)


def _half_to_single(values: StoredArray) -> FloatArray:
    """The same numbers in single precision, in a fifth of the time that numpy takes.

    Sign, exponent and fraction are moved to their places; what then lacks is the difference of the exponents' zeros.
    """
    halves = values.view(np.int16)
    single = np.empty(values.shape, np.float32)
    for start in range(0, len(values), _ROWS_IN_CACHE):
        here = slice(start, start + _ROWS_IN_CACHE)
        if (halves[here].view(np.uint16) << 1).max(initial=0) >= _NOT_FINITE:
            single[here] = values[here]
            continue
        bits = single[here].view(np.int32)
        bits[:] = halves[here]
        bits <<= _FRACTION_BITS_MORE
        bits &= _SIGN_AND_HALF
        single[here] *= _EXPONENT_DIFFERENCE
    return single


def longest_of(vectors: FloatArray, *, first_row: int = 0) -> float:
    """Length of the longest vector, 0.0 if there is none.

    Raises:
        InputError: a vector is not finite; it is named by its number, counted from ``first_row``.
    """
    longest = 0.0
    for start in range(0, len(vectors), _ROWS_IN_CACHE):
        squares = np.square(vectors[start : start + _ROWS_IN_CACHE], dtype=np.float64).sum(axis=1)
        if not np.isfinite(squares).all():
            row = first_row + start + int(np.flatnonzero(~np.isfinite(squares))[0])
            raise InputError(f"vector {row} has components that are not finite", field="vectors")
        longest = max(longest, float(squares.max()))
    return float(np.sqrt(longest))


def check_precision(precision: str) -> VectorPrecision:
    """The precision, if there is such a one.

    Raises:
        ConfigError: there is not.
    """
    known: tuple[VectorPrecision, ...] = get_args(VectorPrecision)
    return one_of(precision, known, "precision of vectors")


def write_vectors(
    folder: str | Path, parts: Iterable[FloatArray], *, precision: VectorPrecision = "fp32"
) -> VectorStore:
    """Write vectors into ``folder``, a part at a time, so that memory stays bounded.

    Args:
        folder: Exists already.
        parts: Matrices of float32 with the same number of columns; at least one, which may have no rows.
        precision: What they are rounded to.

    Returns:
        The vectors as they were stored, memory-mapped.

    Raises:
        InputError: not float32, a vector is not finite, too large for half precision, there is no part, or
            ``folder`` is no path.
        ShapeError: a part is no matrix, or has another width than the first.
    """
    folder = checked_path(folder)
    longest, n_rows = 0.0, 0
    with (
        RowFile.create(folder / VECTORS_FILE) as vectors,
        RowFile.create(folder / SCALES_FILE) as scales,
        RowFile.create(folder / SUMS_FILE) as sums,
    ):
        for part in parts:
            check_part(part, width=vectors.width)
            longest_of(part, first_row=n_rows)  # before rounding, which would hide what was given
            for start in range(0, max(len(part), 1), _ROWS_IN_CACHE):
                stored = rounded(np.ascontiguousarray(part[start : start + _ROWS_IN_CACHE]), precision)
                # Rounding can lengthen a vector, and what is stored is what will be searched.
                longest = max(longest, _longest_stored(stored, precision=precision, first_row=n_rows + start))
                vectors.append(stored[0])
                if stored[1] is not None:
                    scales.append(stored[1])
                sums.append(row_sums(*stored))
            n_rows += len(part)
    if vectors.width is None:
        raise InputError("there are no vectors to store", field="vectors", expected="at least one part")
    return VectorStore.open(folder, max_norm=longest)


def in_parts(vectors: FloatArray | Iterable[FloatArray]) -> Iterable[FloatArray]:
    """Vectors as they are written: a matrix is one part."""
    return [vectors] if isinstance(vectors, np.ndarray) or not isinstance(vectors, Iterable) else vectors


@contextmanager
def as_given(vectors: FloatArray | Iterable[FloatArray], folder: Path) -> Iterator[VectorStore]:
    """The vectors in single precision; those that come in parts lie in the folder as long as the block lasts.

    Raises:
        InputError: as `write_vectors`.
        ShapeError: as `write_vectors`.
    """
    if isinstance(vectors, np.ndarray):
        check_part(vectors, width=None)
        yield VectorStore(vectors)
        return
    with tempfile.TemporaryDirectory(prefix="as-given-", dir=folder) as aside:
        yield write_vectors(aside, in_parts(vectors))


def rounded(vectors: FloatArray, precision: VectorPrecision) -> tuple[StoredArray, FloatArray | None]:
    """Vectors, all of them finite, in a precision: what `VectorStore` takes."""
    if precision == "fp32":
        return vectors, None
    if precision == "fp16":
        with np.errstate(over="ignore"):
            return vectors.astype(np.float16), None
    largest = np.abs(vectors).max(axis=1, initial=0)
    step = np.where(largest > 0, largest, 1).astype(np.float64) / _LARGEST[precision]
    whole = np.rint(vectors / step[:, None])
    lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1))
    whole_lengths = np.sqrt(np.square(whole).sum(axis=1))
    scales = np.divide(lengths, whole_lengths, out=np.zeros(len(vectors)), where=whole_lengths > 0)
    return whole.astype(_DTYPES[precision]), scales.astype(np.float32)


def cosines_with_stored(given: FloatArray, stored: FloatArray) -> DoubleArray:
    """Of each vector with what is stored of it, shape (n,); 1 where one of them is zero."""
    given, stored = given.astype(np.float64), stored.astype(np.float64)
    lengths = np.sqrt(np.square(given).sum(axis=1) * np.square(stored).sum(axis=1))
    cosines = np.ones(len(given))
    np.divide((given * stored).sum(axis=1), lengths, out=cosines, where=lengths > 0)
    return cosines


def _longest_stored(stored: tuple[StoredArray, FloatArray | None], *, precision: str, first_row: int) -> float:
    try:
        return VectorStore(*stored).max_norm
    except InputError:
        raise InputError(
            f"a vector has components too large for {precision}; it is among those from number {first_row} on",
            field="precision",
            fix="store them as fp32",
        ) from None


def check_part(part: FloatArray, *, width: int | None) -> None:
    """Refuse what is no matrix of vectors.

    Args:
        part: Anything.
        width: That it must have; unset: any.

    Raises:
        InputError: not float32.
        ShapeError: no matrix, or one of another width.
    """
    if not isinstance(part, np.ndarray):
        raise ShapeError(f"vectors must be a matrix of numpy, or come in such parts; found {type(part).__name__}.")
    if part.ndim != 2 or part.shape[1] == 0 or (width is not None and part.shape[1] != width):
        raise ShapeError(f"vectors must come in parts of shape (n, {width or 'width > 0'}); found {part.shape}.")
    if part.dtype != np.float32:
        raise InputError("vectors of the wrong type", field="vectors", expected="float32", found=str(part.dtype))
