"""A step of self-alignment: hard pairs of the batch are mined, the loss pulls and pushes, AdamW steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from onoma.encoders.packed import PackedEncoder
from onoma.pairs import PairSet
from onoma.training.alignment_config import TrainingConfig
from onoma.training.batches import Batches
from onoma.training.objective import objective
from onoma.training.optimiser_step import BatchReport, DoneStep, OptimiserStep
from onoma.training.run_config import EncoderRunConfig
from onoma.types import RowArray


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport(DoneStep):
    """What one step of self-alignment did."""

    hard_positives: float
    """Share of the batch's positive pairs that were mined as hard, 0..1."""
    hard_negatives: float
    """Share of the batch's negative pairs that were mined as hard, 0..1."""

    def figures(self) -> dict[str, float]:
        """What trackers show of it."""
        shares = {"hard_positives": self.hard_positives, "hard_negatives": self.hard_negatives}
        return {**DoneStep.figures(self), **shares}

    def in_words(self) -> str:
        """What is worth saying of it besides speed and loss."""
        return f"hard {self.hard_positives:.0%} of synonyms, {self.hard_negatives:.1%} of others"


class Step(OptimiserStep[StepReport]):
    """One optimiser step of self-alignment, on ``pairs``; the other arguments are those of `OptimiserStep`."""

    def __init__(
        self,
        config: TrainingConfig,
        pairs: PairSet,
        model: PackedEncoder,
        optimiser: torch.optim.Optimizer,
        batches: Batches,
        precision: torch.dtype,
        device: torch.device,
    ) -> None:
        super().__init__(config, model, model, pairs.store, optimiser, batches, precision, device)
        self._config, self._pairs = config, pairs

    def _loss(
        self, batch_number: int, rows: RowArray, vectors: torch.Tensor
    ) -> tuple[torch.Tensor, Mapping[str, torch.Tensor | float]]:
        config = self._config
        labels = torch.from_numpy(self._pairs.labels[rows]).to(self._device, non_blocking=True)
        texts = None
        if self._pairs.text_labels is not None:
            texts = torch.from_numpy(self._pairs.text_labels[rows]).to(self._device, non_blocking=True)
        loss, shares = objective(
            config.loss, config.mining, vectors, labels, text_labels=texts, matryoshka=config.matryoshka
        )
        return loss, {"hard_positives": shares.positives, "hard_negatives": shares.negatives}

    def _report(self, done: Sequence[BatchReport], common: Mapping[str, Any]) -> StepReport:
        positives, negatives = (
            sum(batch.figures[name] for batch in done) / len(done) for name in ("hard_positives", "hard_negatives")
        )
        return StepReport(**common, hard_positives=positives, hard_negatives=negatives)


def make_optimiser(config: EncoderRunConfig, model: PackedEncoder) -> torch.optim.Optimizer:
    """AdamW over what is trained; biases and norms decay only if the recipe says so."""
    decayed: list[torch.nn.Parameter] = []
    free: list[torch.nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            (decayed if config.decay_all or parameter.ndim > 1 else free).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=config.learning_rate, fused=True)
