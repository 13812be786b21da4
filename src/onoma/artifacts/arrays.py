"""Arrays in an artefact's folder, memory-mapped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onoma.errors import DamagedArtifactError


def load_array(path: Path, dtypes: tuple[type[np.generic], ...], n_dimensions: int) -> npt.NDArray[Any]:
    """Memory-map an ``.npy`` file, as `numpy.memmap`.

    Args:
        path: The file.
        dtypes: What its numbers may be.
        n_dimensions: How many it must have.

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
    mapped: npt.NDArray[Any] = array
    return mapped
