"""How often each concept is meant.

A terminology has several diseases that people call 'cancer'; only annotated mentions can show that nearly all of them
mean one of these. Their counts n decide

* among concepts that are otherwise equally good, homonyms above all, always;
* among what the searches found, once it was learned how much they count for (the stage "prior"): the score s of each of
  the `PRIOR_DEPTH` first concepts becomes ``(s + w log(1 + n)) / (1 + w log(1 + n_max))`` with w above 0, so that 1
  stays the highest score. For those behind, n is taken to be 0.

Among concepts whose names are equally near, those that are expected (by their semantic type) stay first: the others get
no more than they do.

What look-up found stays before what the searches found, however rare it is. A cross-encoder leaves homonyms that
look-up found in this order, unless it reads the mention's context; it orders candidates of the searches as ever, by its
own scores and these.

File: ``prior.npy`` in the linker's folder, a count for each concept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from onoma.artifacts.arrays import load_array
from onoma.errors import DamagedArtifactError, ShapeError
from onoma.linking.dictionary import NameDictionary
from onoma.types import BoolArray, DoubleArray, RowArray

PRIOR_FILE = "prior.npy"
PRIOR_DEPTH = 50
"""First concepts of the searches whose scores the prior changes."""


@dataclass(frozen=True, eq=False)
class WeightedPrior:
    """What counts add to the scores of the searches.

    Attributes:
        counts: Of each concept, int64, shape (C,).
        weight: w of the module, above 0.
    """

    counts: RowArray
    weight: float

    @cached_property
    def search_share(self) -> float:
        """What the scores of the searches are multiplied by."""
        return 1 / (1 + self.weight * float(np.log1p(self.counts.max(initial=0))))

    def added(self, concepts: RowArray, scores: DoubleArray, unexpected: BoolArray) -> DoubleArray:
        """What is added to the scores of concepts, shape (n,).

        Args:
            concepts: Best first, shape (n,). To those behind `PRIOR_DEPTH` nothing is added.
            scores: Of the searches, shape (n,).
            unexpected: Those that get no more than expected ones with the same score, bool, shape (n,).
        """
        added = self.weight * self.search_share * np.log1p(self.counts[concepts])
        added[PRIOR_DEPTH:] = 0
        for score in np.unique(scores[unexpected]):
            is_expected = (scores == score) & ~unexpected
            if is_expected.any():
                others = (scores == score) & unexpected
                added[others] = np.minimum(added[others], added[is_expected].min())
        return added


def checked_prior(counts: npt.ArrayLike, dictionary: NameDictionary) -> RowArray:
    """The counts as int64, since ranking negates them, which numbers without a sign would not survive.

    Raises:
        ShapeError: not a whole number for each concept, or one below 0.
    """
    counts = np.asarray(counts)
    is_whole = counts.shape == (dictionary.n_concepts,) and counts.dtype.kind in "iu"
    if not is_whole or counts.min(initial=0) < 0 or counts.max(initial=0) > np.iinfo(np.int64).max:
        between = f", from {counts.min()} to {counts.max()}" if counts.size and counts.dtype.kind in "iuf" else ""
        raise ShapeError(
            f"a prior has a whole number from 0 for each of {dictionary.n_concepts} concepts, below 2^63; found "
            f"{counts.dtype} of the shape {counts.shape}{between}."
        )
    return counts.astype(np.int64, copy=False)


def save_prior(folder: Path, counts: RowArray) -> None:
    """Write ``prior.npy`` into ``folder``."""
    np.save(folder / PRIOR_FILE, counts)


def open_prior(folder: Path, dictionary: NameDictionary) -> RowArray | None:
    """What `save_prior` wrote, memory-mapped; None if there is none.

    Raises:
        DamagedArtifactError: it is of other concepts.
    """
    file = folder / PRIOR_FILE
    if not file.exists():
        return None
    try:
        counts = load_array(file, (np.int64,), 1, fix="Tune the linker again with --prior.")
        return checked_prior(np.asarray(counts), dictionary)
    except ShapeError as error:
        raise DamagedArtifactError(f"{file} is of another linker: {error} Tune this one again with --prior.") from None
