"""What a kind of training brings along; `onoma.training.sitting` takes it through a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Generic

import torch

from onoma.training.averaging import WeightAverage
from onoma.training.batches import Batches
from onoma.training.checkpoints import Part
from onoma.training.distributed import world_size
from onoma.training.evaluating import Evaluations
from onoma.training.optimiser_step import Done, OptimiserStep
from onoma.training.precision import PRECISION_NAMES
from onoma.training.report import TrainingReport
from onoma.training.run_config import RunConfig
from onoma.types import FloatArray, RowArray


class Course(ABC, Generic[Done]):
    """What is trained, by which steps, and what it is measured on."""

    config: RunConfig
    model: torch.nn.Module
    """All that is trained, on the run's device; a checkpoint holds its state."""
    optimiser: torch.optim.Optimizer
    batches: Batches
    step: OptimiserStep[Done]
    average: WeightAverage | None
    """Of the model's weights, if the recipe wants one."""
    evaluations: Evaluations
    ran_on: dict[str, Any]
    """See `ran_on`."""
    batch_setting: str
    """The setting that says how large a batch is."""

    @property
    @abstractmethod
    def names_in_step(self) -> int:
        """How many names are held in memory for a step, about."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What makes this run another one besides its settings and what it runs on: data and base, by fingerprint."""

    @abstractmethod
    def about(self, total_steps: int) -> str:
        """A sentence on what the run is going to do."""

    @abstractmethod
    def training_names(self, rows: RowArray) -> FloatArray:
        """Vectors of names to train on, for batches that depend on the weights; see `onoma.training.neighbours`."""

    @abstractmethod
    def about_data(self) -> dict[str, Any]:
        """What was trained and measured on, for ``train.json``."""

    @abstractmethod
    def save(self, out: Path, report: TrainingReport) -> None:
        """Write the encoder with the weights as they are; whatever lies at ``out`` may be replaced."""

    def parts(self) -> dict[str, Part]:
        """What has tensors of its own in a checkpoint, by name."""
        parts: dict[str, Part] = {"step": self.step, "best": self.evaluations}
        if self.average is not None:
            parts["average"] = self.average
        return parts


def ran_on(device: torch.device, precision: torch.dtype) -> dict[str, Any]:
    """What the numbers of a run depend on besides its settings and data."""
    return {"device": device.type, "precision": PRECISION_NAMES[precision], "processes": world_size()}
