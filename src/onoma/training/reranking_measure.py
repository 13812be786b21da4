"""How well linker and cross-encoder together answer development mentions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from onoma.encoders.cross_encoder_ranking import WeightChoice, best_choice, judge_weights
from onoma.training.measuring import EncodeRows, Scores
from onoma.training.reranking_data import TokenisedCandidates


class RerankingMeasure:
    """Development mentions with the candidates of a linker.

    Args:
        name: How to call them.
        candidates: Of all of them; a mention without a right candidate counts as wrong.
        weights: Shares of the cross-encoder in the final score that may be chosen.
    """

    def __init__(self, name: str, candidates: TokenisedCandidates, *, weights: Sequence[float]) -> None:
        self.name, self._candidates, self._weights = name, candidates, weights

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that the scores depend on besides the model."""
        return self._candidates.fingerprint

    def about(self) -> dict[str, Any]:
        """For ``train.json``."""
        linker = self._judged(np.zeros(len(self._candidates.rows), np.float32), [0.0])[0]
        return {
            "name": self.name,
            "mentions": len(self._candidates),
            "fingerprint": self.fingerprint,
            "linker": {"at_1": linker.at_1, "at_5": linker.at_5, "mrr": linker.mrr},
        }

    def judged(self, score: EncodeRows) -> list[WeightChoice]:
        """How the mentions fare with each weight.

        Args:
            score: (store, rows) -> scores of those pairs, shape (len(rows),).
        """
        store = self._candidates.store
        scores = score(store, np.arange(len(store))).cpu().numpy()[self._candidates.rows]
        return self._judged(scores, self._weights)

    def __call__(self, encode: EncodeRows) -> Scores:
        """How the mentions fare with the best weight; argument as of `judged`."""
        best = best_choice(self.judged(encode))
        return Scores(at_1=best.at_1, at_5=best.at_5, mrr=best.mrr, n_queries=len(self._candidates))

    def _judged(self, scores: npt.NDArray[np.float32], weights: Sequence[float]) -> list[WeightChoice]:
        held = self._candidates
        return judge_weights(held.first_scores, scores, held.is_right, held.offsets, weights=weights)


def best_weight(measures: Sequence[RerankingMeasure], score: EncodeRows) -> float:
    """The weight that is best on average over the development sets."""
    of_sets = [measure.judged(score) for measure in measures]
    means = [
        WeightChoice(
            weight=choices[0].weight,
            at_1=sum(choice.at_1 for choice in choices) / len(choices),
            at_5=sum(choice.at_5 for choice in choices) / len(choices),
            mrr=sum(choice.mrr for choice in choices) / len(choices),
        )
        for choices in zip(*of_sets, strict=True)
    ]
    return best_choice(means).weight
