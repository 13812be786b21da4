"""What the stages of linking answer for one mention."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onoma.linking.dictionary import RankedEntries
from onoma.linking.searching import Pool
from onoma.linking.settings import Stage
from onoma.types import DoubleArray


@dataclass(frozen=True)
class Answer:
    """Ranked concepts of one mention.

    Attributes:
        ranked: Best first.
        n_hits: How many of them look-up found; they come first.
        hit_stage: Which look-up found them.
        searched: What the searches have added to the scores; 1 for hits; shape (n,).
        pool: Candidates of the searches where there was more than one, and the answer is to be explained.
        confidence: Of the first one, if calibrated.
        no_concept: Probability that none of those that the cross-encoder saw is meant, if it says so.
        is_nil: Whether that is the answer.
        from_prior: What has been added for being meant often, shape (n,); unset: nothing.
        written: The way to write the mention that this is the answer to, normalised; unset: as it is written.
    """

    ranked: RankedEntries
    n_hits: int = 0
    hit_stage: Stage | None = None
    searched: DoubleArray = field(default_factory=lambda: np.empty(0))
    pool: Pool | None = None
    confidence: float | None = None
    no_concept: float | None = None
    is_nil: bool = False
    from_prior: DoubleArray | None = None
    written: str | None = None

    @property
    def first_scores(self) -> DoubleArray:
        """Scores before the cross-encoder, shape (n,)."""
        return self.searched if self.from_prior is None else self.searched + self.from_prior


NO_ANSWER = Answer(RankedEntries.none())
"""To a mention that nothing was found for."""
