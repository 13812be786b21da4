"""Self-alignment of names (SapBERT): synonyms are drawn together, other names of the batch pushed apart.

One step: the names of ``batch_pairs`` synonym pairs are packed without padding, encoded, compared with each
other; hard pairs are mined as masks; the loss pulls and pushes; AdamW moves the weights. `onoma.training.sitting` is
the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onoma.artifacts import ensure_writable
from onoma.encoders import locate_tokenizer
from onoma.encoders.model_card import TRAIN_NAME
from onoma.encoders.packed import load_packed
from onoma.encoders.saving import save_encoder
from onoma.errors import MismatchError
from onoma.pairs import PairSet
from onoma.training.averaging import WeightAverage
from onoma.training.batches import make_batches
from onoma.training.config import TrainingConfig
from onoma.training.course import Course, ran_on
from onoma.training.development import DevelopmentSet
from onoma.training.evaluating import HIDE_OR_GIVE, Evaluation, Evaluations, check_development
from onoma.training.measuring import Measure
from onoma.training.objective import check_widths
from onoma.training.precision import training_device, training_precision
from onoma.training.report import TrainingReport, about_development
from onoma.training.sitting import Tell, take_course
from onoma.training.step import Step, StepReport, make_optimiser
from onoma.training.trackers import check_trackers
from onoma.training.tuning import tune
from onoma.training.vectors import name_vectors
from onoma.types import FloatArray, RowArray


def train_encoder(
    config: TrainingConfig,
    pairs: PairSet,
    out: str | Path,
    *,
    development: Sequence[DevelopmentSet] = (),
    trackers: Sequence[str] = (),
    overwrite: bool = False,
    on_step: Callable[[StepReport], None] | None = None,
    on_evaluation: Callable[[Evaluation], None] | None = None,
    on_event: Callable[[str], None] | None = None,
) -> TrainingReport:
    """Train an encoder on synonym pairs and save it as a folder.

    Args:
        config: Settings of the run.
        pairs: Pairs tokenised with the base encoder's tokeniser.
        out: The encoder folder to write: sentence-transformers layout, ONNX model, manifest, ``train.json``.
            The unfinished run lies in ``OUT.run`` and goes on from its last checkpoint.
        development: What to measure the encoder on while it is trained; the mean of their acc@1 decides what is best.
        trackers: Where to show the curves too: ``tensorboard``, ``wandb``, ``mlflow``.
        overwrite: Replace an encoder that is there.
        on_step: Called after every step.
        on_evaluation: Called after every evaluation.
        on_event: Called with sentences worth telling (device, number of steps, resuming, evaluations, saving).

    Raises:
        ArtifactExistsError: ``out`` is taken.
        ConfigError: a setting needs development data and there are none, does not fit the encoder, or there is no such
            tracker.
        MismatchError: ``OUT.run`` belongs to other settings or data, or the pairs to another tokeniser.
        TrainingError: the loss is not a number, or memory does not suffice.
        UnavailableError: the base encoder, or the package of a tracker, is not to be had.
    """
    out = Path(out)
    ensure_writable(out, "encoder", overwrite=overwrite)
    check_development(config, [data.name for data in development], fix=HIDE_OR_GIVE)
    check_trackers(trackers)
    return take_course(
        lambda run, tell: _SelfAlignment(config, pairs, run, development, tell),
        config,
        out,
        trackers=trackers,
        on_step=on_step,
        on_evaluation=on_evaluation,
        on_event=on_event,
    )


class _SelfAlignment(Course[StepReport]):
    """An encoder and the synonym pairs that it learns from."""

    batch_setting = "batch_pairs"

    def __init__(
        self, config: TrainingConfig, pairs: PairSet, run: Path, development: Sequence[DevelopmentSet], tell: Tell
    ) -> None:
        self.config, self._settings, self._pairs = config, config, pairs
        device = training_device(config)
        precision = training_precision(config, device)
        self.ran_on = ran_on(device, precision)
        torch.manual_seed(config.seed)
        model = load_packed(config.base, pooling=config.pooling, dropout=config.dropout, max_tokens=config.max_tokens)
        if model.tokenizer_fingerprint != pairs.tokenizer_fingerprint:
            raise MismatchError(
                f"{pairs.path} was tokenised with another tokeniser than that of {config.base}; build the pairs again."
            )
        check_widths(config.matryoshka, model.width)  # now, not after minutes of evaluation
        tune(model, config.tuning)
        self.model = self._encoder = model.to(device)
        self.optimiser = make_optimiser(config, model)
        self.batches = make_batches(config, pairs, run, tell=tell)
        self.step = Step(config, pairs, model, self.optimiser, self.batches, precision, device)
        self.average = None
        if config.average is not None or config.base_share:
            self.average = WeightAverage(model, config.average, base_share=config.base_share)
        self._encode = partial(name_vectors, model, precision=precision)
        tokenizer = locate_tokenizer(config.base)
        self._measures = [
            Measure(data, tokenizer, normalisation=config.normalisation, max_tokens=config.max_tokens)
            for data in development
        ]
        self.evaluations = Evaluations(config, self._measures, self._encode, model, self.average)

    @property
    def names_in_step(self) -> int:
        return 2 * self._settings.batch_pairs

    def identity(self) -> dict[str, Any]:
        return {
            "pairs": self._pairs.manifest.fingerprint,
            "base": self._encoder.fingerprint,
            "development data": [measure.fingerprint for measure in self._measures],
        }

    def about(self, total_steps: int) -> str:
        settings = self._settings
        passes = total_steps * settings.accumulation / self.batches.steps_per_epoch
        return (
            f"{total_steps:,} steps of {settings.batch_pairs * settings.accumulation} pairs on "
            f"{self.ran_on['device']} in {self.ran_on['precision']}, {len(self._pairs.pairs):,} pairs, "
            f"{passes:.2f} passes over them"
        )

    def training_names(self, rows: RowArray) -> FloatArray:
        vectors: FloatArray = self._encode(self._pairs.store, rows).cpu().numpy()
        return vectors

    def about_data(self) -> dict[str, Any]:
        return {
            "pairs": len(self._pairs.pairs),
            "names": len(self._pairs.store),
            "concepts": len(np.unique(self._pairs.labels)),
            "fingerprint": self._pairs.manifest.fingerprint,
            "development": about_development(self._measures),
        }

    def save(self, out: Path, report: TrainingReport) -> None:
        manifest = self._pairs.manifest
        save_encoder(
            self._encoder,
            out,
            config={
                "training": report.config,
                "ran_on": self.ran_on,
                "pairs": manifest.config,
                "terminology": [parent.fingerprint for parent in manifest.parents if parent.kind == "terminology"],
                "development": report.data["development"],
            },
            parents=(manifest.as_parent(),),
            seed=self.config.seed,
            files={TRAIN_NAME: report.to_json()},
            overwrite=True,  # `train_encoder` has made sure that it may be
        )
