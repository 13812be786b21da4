"""Arrays in an artefact's folder, memory-mapped."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

from onoma.artifacts.system import is_of_system
from onoma.errors import DamagedArtifactError, first_line

_CANNOT_RESERVE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems answer that do not know how to take room before it is written."""


def hash_arrays(digest: hashlib._Hash, *arrays: npt.NDArray[Any]) -> None:
    """Add types, shapes and numbers of arrays to a digest."""
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)


def new_array(path: Path, dtype: type[np.generic], shape: tuple[int, ...]) -> np.memmap[Any, Any]:
    """A new ``.npy`` file to fill, memory-mapped, as `numpy.memmap`; ``flush`` it when it is full.

    Its room on the disk is taken at once, where the system can: a mapping that runs out of it ends the process.

    Raises:
        OSError: there is no room.
    """
    array: np.memmap[Any, Any] = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
            except OSError as error:
                if error.errno not in _CANNOT_RESERVE:
                    raise
    return array


NOT_AN_ARRAY = (OSError, ValueError, EOFError, SyntaxError, TokenError)
"""What NumPy raises of a file that is none; the head of one is read as Python is."""
MAKE_AGAIN = "Make the folder again."


def load_array(
    path: Path, dtypes: tuple[npt.DTypeLike, ...], n_dimensions: int, *, fix: str = MAKE_AGAIN
) -> npt.NDArray[Any]:
    """Memory-map an ``.npy`` file, as `numpy.memmap`.

    Args:
        path: The file.
        dtypes: What its numbers may be.
        n_dimensions: How many it must have.
        fix: What to do about a damaged file.

    Raises:
        DamagedArtifactError: it is missing, not readable, or of another type or number of dimensions.
        OSError: the system does not let it be read.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DamagedArtifactError(f"{path} is missing. {fix}") from None
    except NOT_AN_ARRAY as error:
        if is_of_system(error):
            raise
        raise DamagedArtifactError(f"{path} is not a readable array ({first_line(error)}). {fix}") from None
    if array.dtype not in dtypes or array.ndim != n_dimensions:
        raise DamagedArtifactError(
            f"{path} holds {array.dtype} of {array.ndim} dimensions, where {np.dtype(dtypes[0])} of {n_dimensions} is "
            f"needed. {fix}"
        )
    mapped: npt.NDArray[Any] = array
    return mapped
