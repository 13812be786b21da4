"""A step of BioSyn: queries are compared with their candidates, the right ones made probable; Adam steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from onoma.encoders.packed import PackedEncoder
from onoma.objectives import marginal_likelihood_loss
from onoma.training.biosyn_candidates import CandidateBatches
from onoma.training.biosyn_config import BiosynConfig, Cosine, Similarity
from onoma.training.biosyn_data import RankingData
from onoma.training.optimiser_step import BatchReport, DoneStep, OptimiserStep
from onoma.types import RowArray


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosynStepReport(DoneStep):
    """What one step of BioSyn did."""

    queries: int
    """Queries that had a right candidate; the others of the batch are left out."""
    right_first: float
    """Share of these of which a right candidate had the highest score, 0..1."""
    sparse_weight: float
    """After the step."""

    def figures(self) -> dict[str, float]:
        """What trackers show of it."""
        own = {"queries": self.queries, "right_first": self.right_first, "sparse_weight": self.sparse_weight}
        return {**DoneStep.figures(self), **own}

    def in_words(self) -> str:
        """What is worth saying of it besides speed and loss."""
        return f"right first {self.right_first:.0%} of {self.queries}, sparse weight {self.sparse_weight:.3f}"


class BiosynModel(nn.Module):
    """An encoder and the weight of the sparse score.

    The score of a name for a query is ``dense + sparse_weight * sparse``, where ``dense`` is the dot product or the
    cosine of their vectors, and ``sparse`` the cosine of their TF-IDF vectors.

    Shapes: B queries, K candidates, V vectors of width D.

    Args:
        encoder: What is trained.
        similarity: Dot product or cosine.
        sparse_weight: At the start.
    """

    def __init__(self, encoder: PackedEncoder, similarity: Similarity, *, sparse_weight: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.sparse_weight = nn.Parameter(torch.tensor(sparse_weight, dtype=torch.float32))
        self.compares_directions = isinstance(similarity, Cosine)
        """Whether the dense score is a cosine."""
        self._scale = similarity.scale if isinstance(similarity, Cosine) else 1.0

    def logits(self, vectors: Tensor, queries: Tensor, names: Tensor, sparse: Tensor) -> Tensor:
        """What the softmax over the candidates of each query is taken of: their scores, scaled.

        Args:
            vectors: Not normalised, float32, shape (V, D).
            queries: Row of each query's vector, shape (B,).
            names: Rows of the candidates' vectors, shape (B, K).
            sparse: Their sparse scores, shape (B, K).

        Returns:
            Shape (B, K).
        """
        compared = nn.functional.normalize(vectors, dim=1) if self.compares_directions else vectors
        # As a product of matrices its gradient would be an outer one, for which torch compiles a kernel on a GPU.
        dense = (compared[queries][:, None] * compared[names]).sum(-1)
        return self._scale * (dense + self.sparse_weight * sparse)


class BiosynStep(OptimiserStep[BiosynStepReport]):
    """One optimiser step of BioSyn, on ``data``; the other arguments are those of `OptimiserStep`."""

    def __init__(
        self,
        config: BiosynConfig,
        data: RankingData,
        model: BiosynModel,
        optimiser: torch.optim.Optimizer,
        batches: CandidateBatches,
        precision: torch.dtype,
        device: torch.device,
    ) -> None:
        super().__init__(config, model, model.encoder, data.store, optimiser, batches, precision, device)
        self._biosyn, self._data, self._candidates = model, data, batches

    def _loss(self, batch_number: int, rows: RowArray, vectors: Tensor) -> tuple[Tensor, Mapping[str, Tensor | float]]:
        batch = self._candidates.of_batch(batch_number)
        queries, names = (
            torch.from_numpy(np.searchsorted(rows, self._data.rows[places])).to(self._device, non_blocking=True)
            for places in (self._data.query_places[batch.queries], self._data.name_places[batch.names])
        )
        sparse = torch.from_numpy(self._candidates.sparse_scores(batch)).to(self._device, non_blocking=True)
        right = torch.from_numpy(batch.right).to(self._device, non_blocking=True)
        logits = self._biosyn.logits(vectors, queries, names, sparse)
        with torch.no_grad():
            first = right.gather(1, logits.argmax(1, keepdim=True)).sum()
        return marginal_likelihood_loss(logits, right).mean(), {"queries": len(right), "right_first": first}

    def _report(self, done: Sequence[BatchReport], common: Mapping[str, Any]) -> BiosynStepReport:
        queries, first = (sum(batch.figures.get(name, 0) for batch in done) for name in ("queries", "right_first"))
        return BiosynStepReport(
            **common,
            queries=int(queries),
            right_first=first / max(1, queries),
            sparse_weight=float(self._biosyn.sparse_weight.detach()),
        )


def make_optimiser(config: BiosynConfig, model: BiosynModel) -> torch.optim.Optimizer:
    """Adam with L2 over what is trained of the encoder; the sparse weight has its own rate and no decay.

    A sparse weight that a step brings below 0 is 0 after it, so that what is measured and kept is what a linker uses.

    Source:
        The released code of Sung et al. 2020, whose weight may become negative.
    """
    trained = [parameter for parameter in model.encoder.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": trained, "weight_decay": config.weight_decay},
        {"params": [model.sparse_weight], "weight_decay": 0.0, "lr": config.sparse_learning_rate},
    ]
    optimiser = torch.optim.Adam(groups, lr=config.learning_rate, fused=True)
    optimiser.register_step_post_hook(lambda *_: _clamp(model.sparse_weight))
    return optimiser


def _clamp(weight: nn.Parameter) -> None:
    with torch.no_grad():
        weight.clamp_(min=0)
