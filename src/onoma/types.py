"""Value types and array aliases that several rooms share."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float32]
"""Vectors, shape (n, width) unless said otherwise."""

RowArray: TypeAlias = npt.NDArray[np.int64]
"""Row numbers of some table."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
