"""Which pairs make up which step: a pure function of seed and step, so that a resumed run sees the same batches."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from onoma.errors import InputError
from onoma.types import RowArray


class PairBatches:
    """Shuffled batches of pairs, epoch after epoch.

    Every epoch visits each pair once in an order drawn from ``(seed, epoch)``; its last batch may be smaller.

    Args:
        pairs: Rows of training names, shape (P, 2).
        batch_pairs: Pairs in a batch.
        seed: Of the order.

    Raises:
        InputError: there are no pairs.

    Example:
        >>> batches = PairBatches(np.array([[0, 1], [2, 3], [4, 5]]), batch_pairs=2, seed=0)
        >>> batches.steps_per_epoch
        2
        >>> sorted(np.concatenate([batches.names_of_step(0), batches.names_of_step(1)]).tolist())
        [0, 1, 2, 3, 4, 5]
    """

    def __init__(self, pairs: npt.NDArray[np.integer], *, batch_pairs: int, seed: int) -> None:
        if len(pairs) == 0:
            raise InputError("there are no pairs to train on", expected="at least one concept with two names")
        self._pairs = pairs
        self._batch_pairs = batch_pairs
        self._seed = seed
        self._epoch = -1
        self._order: RowArray = np.empty(0, np.int64)

    @property
    def steps_per_epoch(self) -> int:
        """Batches in one pass over the pairs."""
        return math.ceil(len(self._pairs) / self._batch_pairs)

    def names_of_step(self, step: int) -> RowArray:
        """Training-name rows of a step: left names, then right names, shape (2 x pairs of the batch,)."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._order = np.random.default_rng([self._seed, epoch]).permutation(len(self._pairs))
            self._epoch = epoch
        chosen = self._order[position * self._batch_pairs : (position + 1) * self._batch_pairs]
        return self._pairs[chosen].T.reshape(-1).astype(np.int64)
