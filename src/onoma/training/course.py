"""What a kind of training brings along; `onoma.training.loop` takes it through a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from onoma.artifacts import carried_origins, read_manifest
from onoma.encoders.model_card import data_of
from onoma.encoders.packed import PackedEncoder
from onoma.training.averaging import WeightAverage
from onoma.training.batches import Batches
from onoma.training.checkpoints import Part
from onoma.training.distributed import world_size
from onoma.training.evaluating import Evaluations, NamedMeasure
from onoma.training.measuring import EncodeRows, Scores, WatchedEncodeRows
from onoma.training.optimiser_step import Done, OptimiserStep
from onoma.training.precision import (
    PRECISION_NAMES,
    check_compiles,
    compile_encoder,
    training_device,
    training_precision,
)
from onoma.training.report import TrainingReport
from onoma.training.run_config import RunConfig
from onoma.types import FloatArray, RowArray

Settings = TypeVar("Settings", bound=RunConfig)


class Course(ABC, Generic[Settings, Done]):
    """What is trained, by which steps, and what it is measured on.

    The constructor of each kind calls this one, which settles device and precision and seeds what will be drawn; makes
    encoder, model, optimiser, batches and step; and ends with `measure_on`.

    Args:
        config: Settings of the run.

    Raises:
        TrainingError: the device that they name is not there, or cannot do what they say.
        UnavailableError: what they need is not installed.
    """

    batch_setting: str
    """The setting that says how large a batch is."""
    data_name: str
    """What is learned from, as a mismatch names it."""

    encoder: PackedEncoder
    """What was the base; the model, or a part of it."""
    model: torch.nn.Module
    """All that is trained, on ``device``; a checkpoint holds its state."""
    optimiser: torch.optim.Optimizer
    batches: Batches
    step: OptimiserStep[Done]

    def __init__(self, config: Settings) -> None:
        self.config = config
        self.device = training_device(config)
        check_compiles(config, self.device)
        self.precision = training_precision(config, self.device)
        self.ran_on: dict[str, Any] = {
            "device": self.device.type,
            "precision": PRECISION_NAMES[self.precision],
            "processes": world_size(),
        }
        """What the numbers of a run depend on besides its settings and data."""
        torch.manual_seed(config.seed)
        # Containers for GPUs may have fp32 multiplied in fewer bits; hard negatives differ in the third decimal.
        torch.set_float32_matmul_precision("highest")

    def measure_on(
        self,
        measures: Sequence[NamedMeasure],
        encode: WatchedEncodeRows,
        *,
        base_share: float = 0.0,
        interval: int | None = None,
        together: Callable[[EncodeRows], dict[str, Scores]] | None = None,
    ) -> None:
        """Settle what is measured while the model, which must be there, is trained, and which weights are kept.

        Args:
            measures: The development sets.
            encode: The model as it is.
            base_share: See `onoma.training.averaging.WeightAverage`.
            interval: See `onoma.training.evaluating.Evaluations`.
            together: Likewise.

        Raises:
            ConfigError: the encoder shall be compiled and cannot be.
        """
        config = self.config
        compile_encoder(config, self.encoder)
        self.average: WeightAverage | None = None
        """Of the model's weights, if the recipe wants one."""
        if config.average is not None or base_share:
            self.average = WeightAverage(self.model, config.average, base_share=base_share)
        self.measures, self.encode = measures, encode
        self.evaluations = Evaluations(
            config, measures, encode, self.model, self.average, interval=interval, together=together
        )

    @property
    @abstractmethod
    def names_in_step(self) -> int:
        """How many names are held in memory for a step, about."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 over what is learned from."""

    @abstractmethod
    def batch_in_words(self) -> str:
        """What an optimiser step takes, as "256 pairs"."""

    @abstractmethod
    def data_in_words(self) -> str:
        """What is learned from, as "1,000 pairs"."""

    @abstractmethod
    def data_in_numbers(self) -> dict[str, Any]:
        """The same for ``train.json``."""

    @abstractmethod
    def save(self, out: Path, report: TrainingReport) -> None:
        """Write the encoder with the weights as they are; whatever lies at ``out`` may be replaced."""

    def identity(self) -> dict[str, Any]:
        """What makes this run another one besides its settings and what it runs on: data and base, by fingerprint."""
        return {
            self.data_name: self.fingerprint,
            "base": self.encoder.fingerprint,
            "development data": [measure.fingerprint for measure in self.measures],
        }

    def about(self, total_steps: int) -> str:
        """A sentence on what the run is going to do."""
        passes = total_steps * self.config.accumulation / self.batches.steps_per_epoch
        steps = f"{total_steps:,} {'step' if total_steps == 1 else 'steps'}"
        together = f" in {world_size()} processes" if world_size() > 1 else ""
        return (
            f"{steps} of {self.batch_in_words()} on {self.ran_on['device']} in "
            f"{self.ran_on['precision']}{together}, {self.data_in_words()}, {passes:.2f} passes over them"
        )

    def training_names(self, rows: RowArray) -> FloatArray:
        """Vectors of names to train on, for batches that depend on the weights; see `onoma.training.neighbours`."""
        vectors: FloatArray = self.encode(self.step.store, rows).cpu().numpy()
        return vectors

    def about_data(self) -> dict[str, Any]:
        """What was trained and measured on, for ``train.json``."""
        return {
            **self.data_in_numbers(),
            "fingerprint": self.fingerprint,
            "development": [measure.about() for measure in self.measures],
        }

    def about_saved(
        self,
        report: TrainingReport,
        *,
        mentions: Collection[str] = (),
        teachers: Sequence[Mapping[str, Any]] = (),
        **more: Any,
    ) -> dict[str, Any]:
        """What the saved folder's manifest says of the run, and ``more``; what the base learned, it has learned too.

        Args:
            report: Of the run.
            mentions: Fingerprints of the annotated mentions that it learned from, itself or by its teacher, unless its
                pairs say so.
            teachers: Settings of the manifests of encoders that it learned from: what they learned, it has learned too.
            more: What else to say; with the origins of what it was trained on.
        """
        source = self.encoder.source
        of_base = read_manifest(source.path).config if source and source.is_own else {}
        before = data_of([of_base, *teachers])
        learnt_from = {*mentions, *(source.trained_mentions if source else ())}
        # Where the weights before the first step are kept, nothing was learned of the widths asked for.
        kept = source.trained_dimensions if source and report.saved_step == 0 else None
        widths = report.config.get("matryoshka", ()) if kept is None else kept
        return {
            "training": report.config,
            **({} if report.recipe is None else {"recipe": report.recipe}),
            "ran_on": self.ran_on,
            "base_fingerprint": report.base,
            **more,
            **carried_origins(of_base, *teachers, more),
            **({"before": before} if before else {}),
            **({"trained_dimensions": list(widths)} if widths else {}),
            **({"trained_mentions": sorted(learnt_from)} if learnt_from else {}),
            "development": report.data["development"],
        }

    def parts(self) -> dict[str, Part]:
        """What has tensors of its own in a checkpoint, by name."""
        parts: dict[str, Part] = {"step": self.step, "best": self.evaluations}
        if self.average is not None:
            parts["average"] = self.average
        return parts
