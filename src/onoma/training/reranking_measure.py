"""How well linker and cross-encoder together answer development mentions."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from onoma.linking.rerank_scores import NIL_SCORES, WeightChoice, best_choice, judge_weights
from onoma.training.measuring import EncodeRows, Scores
from onoma.training.reranking_data import TokenisedCandidates
from onoma.types import BoolArray, CountProgress, no_count


class RerankingMeasure:
    """Development mentions with the candidates of a linker.

    Args:
        name: How to call them.
        candidates: Of all of them; a mention without a right candidate counts as wrong.
        weights: Shares of the cross-encoder in the final score that may be chosen.
        means_nil: Whether NIL is the right answer to a mention, shape (M,); unset: it can be no answer.
    """

    def __init__(
        self,
        name: str,
        candidates: TokenisedCandidates,
        *,
        weights: Sequence[float],
        means_nil: BoolArray | None = None,
    ) -> None:
        self.name, self._candidates, self._weights, self._means_nil = name, candidates, weights, means_nil

    def __len__(self) -> int:
        return len(self._candidates)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that the scores depend on besides the model."""
        known = self._candidates.fingerprint
        if self._means_nil is None:
            return known
        return hashlib.sha256(known.encode() + self._means_nil.tobytes()).hexdigest()

    def about(self) -> dict[str, Any]:
        """For ``train.json``."""
        linker = self.alone()
        return {
            "name": self.name,
            "mentions": len(self._candidates),
            **({} if self._means_nil is None else {"nil": int(self._means_nil.sum())}),
            "fingerprint": self.fingerprint,
            "linker": {"at_1": linker.at_1, "at_5": linker.at_5, "mrr": linker.mrr},
        }

    def alone(self) -> Scores:
        """How the mentions fare without a cross-encoder."""
        choice = self._judged(np.zeros(len(self._candidates.rows), np.float32), [0.0], (None,))[0]
        return Scores(at_1=choice.at_1, at_5=choice.at_5, mrr=choice.mrr, n_queries=len(self))

    def judged(self, score: EncodeRows) -> list[WeightChoice]:
        """How the mentions fare with each weight and score of NIL.

        Args:
            score: (store, rows) -> scores of those pairs, shape (len(rows),).
        """
        store = self._candidates.store
        scores = score(store, np.arange(len(store))).cpu().numpy()[self._candidates.rows]
        return self._judged(scores, self._weights, (None,) if self._means_nil is None else NIL_SCORES)

    def __call__(self, encode: EncodeRows, progress: CountProgress = no_count) -> Scores:
        """How they fare with the choice that is best for them; ``encode`` as in `judged`, which takes the time."""
        return scores_together([self], encode)[self.name]

    def _judged(
        self, scores: npt.NDArray[np.float32], weights: Sequence[float], nil_scores: Sequence[float | None]
    ) -> list[WeightChoice]:
        held = self._candidates
        return judge_weights(
            held.first_scores,
            scores,
            held.is_right,
            held.offsets,
            n_hits=held.n_hits,
            weights=weights,
            means_nil=self._means_nil,
            nil_scores=nil_scores,
        )


def judged_together(
    measures: Sequence[RerankingMeasure], score: EncodeRows
) -> tuple[WeightChoice, dict[str, WeightChoice]]:
    """The weight and the score of NIL that are best on average over the development sets, and how each fares with them.

    Args:
        measures: The sets, at least one.
        score: See `RerankingMeasure.judged`.

    Returns:
        The best choice, with the average figures, and the figures of each set by its name.
    """
    of_sets = [measure.judged(score) for measure in measures]
    averages = [
        dataclasses.replace(
            choices[0],
            at_1=sum(choice.at_1 for choice in choices) / len(choices),
            at_5=sum(choice.at_5 for choice in choices) / len(choices),
            mrr=sum(choice.mrr for choice in choices) / len(choices),
        )
        for choices in zip(*of_sets, strict=True)
    ]
    best = best_choice(averages)
    place = averages.index(best)
    return best, {measure.name: choices[place] for measure, choices in zip(measures, of_sets, strict=True)}


def scores_together(measures: Sequence[RerankingMeasure], score: EncodeRows) -> dict[str, Scores]:
    """How the sets fare with one weight and one score of NIL for all, as a saved reranker has them."""
    _, of_sets = judged_together(measures, score)
    return {
        measure.name: Scores(at_1=choice.at_1, at_5=choice.at_5, mrr=choice.mrr, n_queries=len(measure))
        for measure, choice in zip(measures, of_sets.values(), strict=True)
    }
