"""Which inverted lists are nearest to a query: the same ones whatever the batch and the threads."""

from __future__ import annotations

import math

import numpy as np

from onoma.indexes.threads import on_threads
from onoma.types import FloatArray, RowArray

QUERIES_AT_ONCE = 32
"""So many a thread puts in order together."""
_QUERIES_OF_A_PRODUCT = 256
"""With all centroids: 8 MB of distances where there are 8,192."""
_WHOLE = 1 << 24
"""Up to here every whole number is a number of single precision."""


class Centroids:
    """Centroids rounded so that their products with rounded queries are exact, however they are summed.

    Args:
        centroids: Float32, shape (number of centroids, width).
    """

    def __init__(self, centroids: FloatArray) -> None:
        self._levels = math.isqrt(_WHOLE // centroids.shape[1])
        self._step = float(np.abs(centroids).max(initial=0)) / self._levels or 1.0
        self._centroids = np.rint(centroids / np.float32(self._step)).astype(np.float32)
        self._halves = (0.5 * np.square(centroids, dtype=np.float64).sum(axis=1)).astype(np.float32)

    def nearest(self, queries: FloatArray, n_lists: int, *, first: int) -> RowArray:
        """Numbers of the nearest centroids, the nearest ``first`` of them before the others, shape (Q, n_lists).

        Args:
            queries: Shape (Q, width).
            n_lists: Wanted.
            first: At most ``n_lists``.
        """

        def nearest_of(distances: FloatArray) -> RowArray:
            near = np.argpartition(distances, n_lists - 1, axis=1)[:, :n_lists]
            if first == n_lists:
                return near
            # Asked for both borders at once, numpy takes another way, which is slower than these two steps.
            order = np.argpartition(np.take_along_axis(distances, near, axis=1), first - 1, axis=1)
            return np.take_along_axis(near, order, axis=1)

        found = []
        for start in range(0, len(queries), _QUERIES_OF_A_PRODUCT):
            distances = self.distances(queries[start : start + _QUERIES_OF_A_PRODUCT])
            parts = [distances[place : place + QUERIES_AT_ONCE] for place in range(0, len(distances), QUERIES_AT_ONCE)]
            found += on_threads(nearest_of, parts)
        return np.concatenate(found)

    def distances(self, queries: FloatArray) -> FloatArray:
        """The smaller the nearer, shape (Q, number of centroids)."""
        steps = np.abs(queries).max(axis=1, keepdims=True) / np.float32(self._levels)
        whole = np.zeros_like(queries)
        np.divide(queries, steps, out=whole, where=steps > 0)
        found: FloatArray = np.rint(whole) @ self._centroids.T
        found *= -steps * np.float32(self._step)
        found += self._halves
        return found
