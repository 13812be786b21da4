"""What a search by character n-grams has to know of each n-gram and of each name beforehand."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from onoma.indexes.inverting import Inversion
from onoma.indexes.postings import Postings
from onoma.types import DoubleArray, FloatArray, RowArray

StageArray: TypeAlias = npt.NDArray[np.int8]

STAGES = 3
"""Rare n-grams, common ones, and those that have a column."""
_ROWS_PER_RARE = 40
"""A rare n-gram is in at most one of so many names."""


def stages_of(inversion: Inversion) -> StageArray:
    """In which stage of a search each term is looked at, shape (V,)."""
    stages = (inversion.frequencies * _ROWS_PER_RARE > inversion.n_rows).astype(np.int8)
    stages[inversion.column_terms] = STAGES - 1
    return stages


def lengths_of(inversion: Inversion, idf: DoubleArray, stages: StageArray) -> tuple[DoubleArray, FloatArray]:
    """What is needed of the lengths of the rows' vectors.

    Returns:
        One over the length of each, 0 where there is nothing, shape (N,); and what share of it is the length of the
        part that is left after each stage but the last, shape (stages - 1, N).
    """
    all_inverse = np.zeros(inversion.n_rows)
    all_rest = np.zeros((STAGES - 1, inversion.n_rows), np.float32)
    for part in inversion.parts():
        n = int(part.rows.max()) + 1
        # Sums run over the terms in their order.
        squares = np.bincount(
            stages[part.terms] * np.int64(n) + part.rows, (part.counts * idf[part.terms]) ** 2, STAGES * n
        ).reshape(STAGES, n)
        # From the last stage back, so that what is left after a stage never seems shorter than it is.
        left = np.cumsum(squares[::-1], axis=0)[::-1]
        inverse = np.divide(1, np.sqrt(left[0]), out=np.zeros(n), where=left[0] > 0)
        here = slice(part.first_row, part.first_row + n)
        all_inverse[here], all_rest[:, here] = inverse, np.sqrt(left[1:]) * inverse
    return all_inverse, all_rest


def idf_of(n_names: int, frequencies: RowArray) -> DoubleArray:
    """Of n-grams, by how many of the names have each."""
    idf: DoubleArray = np.log((1 + n_names) / (1 + frequencies)) + 1
    return idf


def fits_frequencies(idf: DoubleArray, postings: Postings) -> bool:
    """Whether what n-grams weigh is what their lists make it; of those with columns, whether it can be so little."""
    frequencies = np.diff(postings.offsets)
    expected = idf_of(postings.n_rows, frequencies)
    is_listed = frequencies > 0
    in_bounds = (idf >= 1) & (idf <= expected)
    return bool(np.all(np.where(is_listed, np.isclose(idf, expected, rtol=1e-9, atol=0), in_bounds)))
