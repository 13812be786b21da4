"""A step of distillation: the student's similarities in a batch are drawn towards the teacher's; AdamW steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from onoma.encoders.packed import PackedEncoder
from onoma.objectives import cosine_similarities, distillation_loss
from onoma.training.distillation_config import DistillationConfig
from onoma.training.distillation_data import NeighbourhoodBatches, TaughtNames
from onoma.training.optimiser_step import BatchReport, DoneStep, OptimiserStep
from onoma.types import RowArray


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillationStepReport(DoneStep):
    """What one step of distillation did."""

    same_nearest: float
    """Share of the names whose nearest name in the batch is the same for student and teacher, 0..1."""

    def figures(self) -> dict[str, float]:
        """What trackers show of it."""
        return {**DoneStep.figures(self), "same_nearest": self.same_nearest}

    def in_words(self) -> str:
        """What is worth saying of it besides speed and loss."""
        return f"same nearest name for {self.same_nearest:.0%}"


class DistillationStep(OptimiserStep[DistillationStepReport]):
    """One optimiser step of distillation, on ``names``; the other arguments are those of `OptimiserStep`."""

    def __init__(
        self,
        config: DistillationConfig,
        names: TaughtNames,
        model: PackedEncoder,
        optimiser: torch.optim.Optimizer,
        batches: NeighbourhoodBatches,
        precision: torch.dtype,
        device: torch.device,
    ) -> None:
        super().__init__(config, model, model, names.store, optimiser, batches, precision, device)
        self._config, self._names, self._neighbourhoods = config, names, batches

    def _loss(self, batch_number: int, rows: RowArray, vectors: Tensor) -> tuple[Tensor, Mapping[str, Tensor | float]]:
        text_rows = self._names.text_rows[self._neighbourhoods.of_batch(batch_number)]
        taught = torch.from_numpy(self._names.vectors.take(text_rows)).to(self._device, non_blocking=True)
        student, teacher = cosine_similarities(vectors), cosine_similarities(taught)
        values = distillation_loss(student, teacher, temperature=self._config.temperature)
        with torch.no_grad():
            nearest = [one.clone().fill_diagonal_(-2).argmax(1) for one in (student, teacher)]
            same = (nearest[0] == nearest[1]).float().mean()
        return values.mean(), {"same_nearest": same}

    def _report(self, done: Sequence[BatchReport], common: Mapping[str, Any]) -> DistillationStepReport:
        shares = [batch.figures["same_nearest"] for batch in done if batch.names]
        return DistillationStepReport(**common, same_nearest=sum(shares) / max(1, len(shares)))
