"""The best of many scores, in the order that every index promises."""

from __future__ import annotations

import numpy as np

from onoma.types import FloatArray, RowArray

_GROUP_ROWS = 64


def top_rows(scores: FloatArray, k: int) -> RowArray:
    """Rows of the ``k`` highest scores: higher score first, and of equal scores the lower row first.

    Nothing is sorted that cannot win: the k-th highest of the maxima of groups of rows is a bound from below.

    Args:
        scores: Shape (N,), all of them numbers.
        k: From 1; where there are fewer scores, all of them.

    Returns:
        Shape (K,), K the smaller of ``k`` and N.

    Example:
        >>> top_rows(np.array([0.1, 0.5, 0.2, 0.5], np.float32), 3).tolist()
        [1, 3, 2]
    """
    k = min(k, len(scores))
    if k == 0:
        return np.empty(0, np.int64)
    candidates = _not_clearly_below(scores, k)
    found = scores[candidates]
    last = np.partition(found, len(found) - k)[len(found) - k]
    above = candidates[found > last]
    equal = candidates[found == last][: k - len(above)]
    rows = np.concatenate([above, equal])
    return rows[np.lexsort((rows, -scores[rows]))]


def _not_clearly_below(scores: FloatArray, k: int) -> RowArray:
    """Ascending rows among which the ``k`` best and their equals are."""
    n_groups = len(scores) // _GROUP_ROWS
    if k >= n_groups:
        return np.arange(len(scores))
    # A group is every so-manyth row: the maximum then runs over whole lines, which is several times faster. The few
    # rows left over could only raise the bound, and are looked at below in any case.
    maxima = scores[: n_groups * _GROUP_ROWS].reshape(_GROUP_ROWS, n_groups).max(axis=0)
    return np.flatnonzero(scores >= np.partition(maxima, n_groups - k)[n_groups - k])
