"""Pairs of names of one concept, uniformly sampled where there are too many.

The pairs of a concept with k names are numbered 0 .. k(k-1)/2 - 1; a sample is a set of distinct numbers,
turned into pairs afterwards. So a concept of thousands of names costs no more than its share of the sample,
and all concepts are handled at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from onoma.errors import ConfigError, ShapeError, is_whole
from onoma.randomness import random_from
from onoma.types import RowArray

_BLOCK_PAIRS = 1 << 20
"""Pairs made at a time; bounds the working memory."""


def synonym_pairs(
    labels: npt.NDArray[np.integer], *, max_per_concept: int = 50, seed: int = 0
) -> npt.NDArray[np.int32]:
    """All pairs of names with one label, at most ``max_per_concept`` of each label.

    Where a label has more, each of its pairs is kept with the same chance and every choice of
    ``max_per_concept`` pairs is equally likely.

    Args:
        labels: Label of each name, ascending (names of a concept side by side), shape (n,).
        max_per_concept: Cap of pairs per label, at least 1.
        seed: Of the sample.

    Returns:
        Row numbers (earlier name, later name), int32, shape (P, 2), ordered by label; equal arguments give
        equal pairs.

    Raises:
        ShapeError: ``labels`` is not a vector, or not ascending.
        ConfigError: ``max_per_concept`` is no whole number from 1.
        InputError: the seed is none from 0.

    Source:
        SapBERT (Liu et al. 2021), section 3.1: all combinations of synonyms, randomly trimmed to 50.

    Example:
        >>> synonym_pairs(np.array([4, 4, 4, 7, 9, 9])).tolist()
        [[0, 1], [0, 2], [1, 2], [4, 5]]
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or (labels[1:] < labels[:-1]).any():
        raise ShapeError("labels: expected a vector in ascending order, the names of a concept side by side.")
    if not is_whole(max_per_concept) or max_per_concept < 1:
        raise ConfigError(f"max_pairs_per_concept must be a whole number, at least 1; found {max_per_concept!r}.")
    is_first = np.concatenate([np.ones(min(len(labels), 1), bool), labels[1:] != labels[:-1]])
    starts = np.flatnonzero(is_first)
    sizes = np.diff(starts, append=len(labels))
    starts, sizes = starts[sizes > 1], sizes[sizes > 1]
    most = int(sizes.max(initial=1))
    max_per_concept = min(max_per_concept, most * (most - 1) // 2 or 1)  # twice a larger one is no int64
    ends = np.cumsum(np.minimum(sizes * (sizes - 1) // 2, max_per_concept))
    pairs = np.empty((int(ends[-1]) if len(ends) else 0, 2), np.int32)
    rng = random_from(seed)
    done = 0
    for block in np.split(np.arange(len(ends)), np.flatnonzero(np.diff(ends // _BLOCK_PAIRS)) + 1):
        numbers, offsets = _numbers_of_block(starts[block], sizes[block], max_per_concept, rng)
        first, second = pair_of_number(numbers)
        np.add(offsets, first, out=pairs[done : done + len(numbers), 0], casting="same_kind")
        np.add(offsets, second, out=pairs[done : done + len(numbers), 1], casting="same_kind")
        done += len(numbers)
    return pairs


def _numbers_of_block(
    starts: RowArray, sizes: RowArray, max_per_concept: int, rng: np.random.Generator
) -> tuple[RowArray, RowArray]:
    """Numbers of the kept pairs of some concepts, ascending in each, and the first row of each one's concept."""
    totals = sizes * (sizes - 1) // 2
    bases = np.cumsum(totals) - totals  # the key of a pair: its number plus the pairs of the concepts before

    # Up to twice the cap it is cheaper to list all pairs and draw those to leave out.
    listed = totals < 2 * max_per_concept
    n_drawn = np.where(listed, np.maximum(totals - max_per_concept, 0), max_per_concept)
    drawn = _distinct_keys(bases, totals, n_drawn, rng)
    is_left_out = np.repeat(listed, n_drawn)

    keys = _ranges(bases[listed], totals[listed])
    keys = np.delete(keys, np.searchsorted(keys, drawn[is_left_out]))
    keys = np.sort(np.concatenate([keys, drawn[~is_left_out]]))

    kept = np.minimum(totals, max_per_concept)
    return keys - np.repeat(bases, kept), np.repeat(starts, kept)


def pair_of_number(numbers: RowArray) -> tuple[RowArray, RowArray]:
    """The pair ``i < j`` with number ``j(j-1)/2 + i``.

    Example:
        >>> [a.tolist() for a in pair_of_number(np.arange(6))]
        [[0, 0, 1, 0, 1, 2], [1, 2, 2, 3, 3, 3]]
    """
    second = ((np.sqrt(8.0 * numbers + 1.0) + 1.0) / 2.0).astype(np.int64)
    # The square root of a large number may round across a whole number.
    second -= second * (second - 1) // 2 > numbers
    second += (second + 1) * second // 2 <= numbers
    return numbers - second * (second - 1) // 2, second


def _distinct_keys(bases: RowArray, totals: RowArray, counts: RowArray, rng: np.random.Generator) -> RowArray:
    """``counts[c]`` distinct keys from ``bases[c]`` up to ``bases[c] + totals[c] - 1`` for every c, ascending.

    Keys are drawn with replacement and repeats drawn again until none is missing: no set is preferred, because
    the procedure treats all keys alike. No count may exceed half its total, so each draw is new with a chance
    of one half or more.
    """
    owners = np.repeat(np.arange(len(totals)), counts)
    keys = np.empty(0, np.int64)
    while len(owners):
        repeated: RowArray = bases[owners] + rng.integers(0, totals[owners])
        drawn, at = np.unique(repeated, return_index=True)
        position = np.searchsorted(keys, drawn)
        is_new = np.ones(len(drawn), bool)
        inside = position < len(keys)
        is_new[inside] = keys[position[inside]] != drawn[inside]
        keys = np.insert(keys, position[is_new], drawn[is_new])
        owners = np.sort(np.delete(owners, at[is_new]))
    return keys


def _ranges(starts: RowArray, lengths: RowArray) -> RowArray:
    """``starts[0] .. starts[0] + lengths[0] - 1``, then those of 1, and so on."""
    ends = np.cumsum(lengths)
    flat: RowArray = np.arange(int(lengths.sum()), dtype=np.int64) + np.repeat(starts - (ends - lengths), lengths)
    return flat
