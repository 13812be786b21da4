"""Aliases and numerical conventions that several rooms share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float32]
"""Vectors, shape (n, width) unless said otherwise."""

DoubleArray: TypeAlias = npt.NDArray[np.float64]
"""Scores and probabilities that add up."""

RowArray: TypeAlias = npt.NDArray[np.int64]
"""Row numbers of some table."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]

SCORE_DECIMALS = 6
"""Scores are compared and shown to this many decimals; below lies rounding, not meaning."""

MAX_NORM = 1.001
"""Bound on the length of a vector that has unit length but for rounding."""

Progress: TypeAlias = Callable[[int, "int | None", str], None]
"""Called with how much is done, how much there is (``None``: unknown), and of what."""
CountProgress: TypeAlias = Callable[[int, int], None]
"""Called with how many are done, and how many there are."""


Tell: TypeAlias = Callable[[str], None]
"""Called with sentences worth telling."""


def no_count(done: int, total: int) -> None:
    """Tell nobody."""


def no_progress(done: int, total: int | None, what: str) -> None:
    """Tell nobody."""
