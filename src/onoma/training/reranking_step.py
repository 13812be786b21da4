"""A step of training a reranker: all candidates of some mentions are scored, the right ones are made probable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from onoma.encoders.cross_encoder_model import PackedCrossEncoder
from onoma.objectives.marginal_likelihood import marginal_likelihood_loss
from onoma.training.batches import Batches, ShuffledRows
from onoma.training.optimiser_step import BatchReport, DoneStep, OptimiserStep
from onoma.training.reranking_config import RerankingConfig
from onoma.training.reranking_data import TokenisedCandidates
from onoma.types import RowArray

TRAINED_NIL_SCORE = 0.0
"""Of NIL, in training; see `onoma.linking.rerank_scores`."""

_IMPOSSIBLE = -1e30
"""A score that no model gives, and whose exponential is zero beside any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankingStepReport(DoneStep):
    """What one step of training a reranker did."""

    right_first: float
    """Share of the batch's mentions of which a right candidate, or NIL where there is none, had the highest score."""

    def figures(self) -> dict[str, float]:
        """What trackers show of it."""
        return {**DoneStep.figures(self), "right_first": self.right_first}

    def in_words(self) -> str:
        """What is worth saying of it besides speed and loss."""
        return f"right {self.right_first:.0%}"


class MentionBatches(Batches):
    """Shuffled batches of mentions with all their candidates, epoch after epoch, in the order of `ShuffledRows`.

    Args:
        candidates: Of all mentions.
        batch_mentions: Mentions in a batch.
        seed: Of the order.
    """

    def __init__(self, candidates: TokenisedCandidates, *, batch_mentions: int, seed: int) -> None:
        super().__init__(ShuffledRows(len(candidates), at_once=batch_mentions, seed=seed))
        self._candidates = candidates

    def places_of_step(self, batch_number: int) -> list[RowArray]:
        """Where the candidates of each mention of a batch stand among all candidates."""
        offsets, rows = self._candidates.offsets, self._order.rows_of_step(batch_number).tolist()
        return [np.arange(offsets[row], offsets[row + 1]) for row in rows]

    def names_of_step(self, batch_number: int) -> RowArray:
        """Pairs of a batch in the store, those of one mention side by side."""
        return self._candidates.rows[np.concatenate(self.places_of_step(batch_number))]


class RerankingStep(OptimiserStep[RerankingStepReport]):
    """One optimiser step of a reranker, on ``candidates``; the other arguments are those of `OptimiserStep`."""

    def __init__(
        self,
        config: RerankingConfig,
        model: PackedCrossEncoder,
        candidates: TokenisedCandidates,
        optimiser: torch.optim.Optimizer,
        batches: MentionBatches,
        precision: torch.dtype,
        device: torch.device,
    ) -> None:
        super().__init__(config, model, model.encoder, candidates.store, optimiser, batches, precision, device)
        self._cross_encoder, self._candidates, self._mention_batches = model, candidates, batches
        self._learns_nil = config.nil

    def _loss(
        self, batch_number: int, rows: RowArray, vectors: torch.Tensor
    ) -> tuple[torch.Tensor, Mapping[str, torch.Tensor | float]]:
        places = self._mention_batches.places_of_step(batch_number)
        is_real = np.arange(max(map(len, places))) < np.array([len(mine) for mine in places])[:, None]
        right = np.zeros(is_real.shape, np.bool_)
        right[is_real] = self._candidates.is_right[np.concatenate(places)]
        real, is_right = (
            torch.from_numpy(is_real).to(self._device, non_blocking=True),
            torch.from_numpy(right).to(self._device, non_blocking=True),
        )
        found = self._cross_encoder.scores_of(vectors)
        # A mention with fewer candidates is filled up with wrong ones of no probability.
        scores = found.new_full(is_real.shape, _IMPOSSIBLE).masked_scatter(real, found)
        if self._learns_nil:
            scores = torch.cat([scores, scores.new_full((len(scores), 1), TRAINED_NIL_SCORE)], 1)
            is_right = torch.cat([is_right, ~is_right.any(1, keepdim=True)], 1)
        losses = marginal_likelihood_loss(scores, is_right)
        best = scores.detach().argmax(1, keepdim=True)
        return losses.mean(), {"right_first": is_right.gather(1, best).float().mean()}

    def _report(self, done: Sequence[BatchReport], common: Mapping[str, Any]) -> RerankingStepReport:
        right_first = sum(batch.figures["right_first"] for batch in done) / len(done)
        return RerankingStepReport(**common, right_first=right_first)


def make_optimiser(config: RerankingConfig, model: PackedCrossEncoder) -> torch.optim.Optimizer:
    """AdamW over what is trained; biases and norms do not decay, and the fresh head has a learning rate of its own."""
    trained = [parameter for parameter in model.encoder.parameters() if parameter.requires_grad]
    groups = [
        {"params": [one for one in trained if one.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [one for one in trained if one.ndim <= 1], "weight_decay": 0.0},
        {"params": [model.head.weight], "weight_decay": config.weight_decay, "lr": config.head_learning_rate},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=config.learning_rate, fused=True)
