"""The training loop: self-alignment of names (SapBERT), resumable to the bit on a CPU.

One step: the names of ``batch_pairs`` synonym pairs are packed without padding, encoded, compared with each
other; hard pairs are mined as masks; the loss pulls and pushes; AdamW moves the weights. Between steps the encoder is
measured on development data, if there are some.

While a run is unfinished its state lies in ``OUT.run`` (`onoma.training.run_folder`); the same call goes on from there.
Two sittings of one run see the same batches and the same dropout. Several processes (`onoma.training.distributed`) all
run this loop; the main one alone writes files and speaks, and where a decision depends on time it tells the others.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch

from onoma.artifacts import ensure_writable, sha256_file
from onoma.encoders import locate_tokenizer
from onoma.encoders.packed import load_packed
from onoma.encoders.saving import save_encoder
from onoma.errors import MismatchError, TrainingError
from onoma.pairs import PairSet
from onoma.training.averaging import WeightAverage
from onoma.training.batches import make_batches
from onoma.training.checkpoints import CHECKPOINT_NAME, Part, Progress, load_checkpoint, save_checkpoint
from onoma.training.config import TrainingConfig
from onoma.training.development import DevelopmentSet
from onoma.training.distributed import broadcast, is_main, processes, world_size
from onoma.training.evaluating import Evaluation, Evaluations, check_development
from onoma.training.measuring import Measure
from onoma.training.memory import keep_freed_memory
from onoma.training.objective import check_widths
from onoma.training.planning import plan_steps
from onoma.training.report import TrainingReport, about_data, mean_loss, versions
from onoma.training.run_folder import RUN_NAME, RunLog, begin_run, planned_steps, unfinished_run
from onoma.training.step import PRECISION_NAMES, Step, StepReport, make_optimiser, training_device, training_precision
from onoma.training.trackers import Trackers, check_trackers, open_trackers
from onoma.training.tuning import tune
from onoma.training.vectors import unit_vectors
from onoma.types import FloatArray, RowArray

T = TypeVar("T")


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
    check_development(config, [data.name for data in development])
    check_trackers(trackers)
    keep_freed_memory()
    with processes(config.device), unfinished_run(out) as run:
        sitting = _Sitting(config, pairs, run, development, on_step, on_evaluation, on_event)
        with _memory_errors_in_words(config, run):
            sitting.train(trackers)
        report = broadcast(sitting.save(out) if is_main() else None)
    assert report is not None
    return report


class _Sitting:
    """One sitting of a run: all that takes part in it, and how far it is."""

    def __init__(
        self,
        config: TrainingConfig,
        pairs: PairSet,
        run: Path,
        development: Sequence[DevelopmentSet],
        on_step: Callable[[StepReport], None] | None,
        on_evaluation: Callable[[Evaluation], None] | None,
        on_event: Callable[[str], None] | None,
    ) -> None:
        self._config, self._pairs, self._run = config, pairs, run
        self._on_step, self._on_evaluation, self._tell = _by_main(on_step), _by_main(on_evaluation), _by_main(on_event)
        device = training_device(config)
        precision = training_precision(config, device)
        self._ran_on = {"device": device.type, "precision": PRECISION_NAMES[precision], "processes": world_size()}
        torch.manual_seed(config.seed)
        model = load_packed(config.base, pooling=config.pooling, dropout=config.dropout, max_tokens=config.max_tokens)
        if model.tokenizer_fingerprint != pairs.tokenizer_fingerprint:
            raise MismatchError(
                f"{pairs.path} was tokenised with another tokeniser than that of {config.base}; build the pairs again."
            )
        check_widths(config.matryoshka, model.width)  # now, not after minutes of evaluation
        tune(model, config.tuning)
        self._model = model.to(device)
        self._optimiser = make_optimiser(config, model)
        self._batches = make_batches(config, pairs, run, tell=self._tell)
        self._step = Step(config, pairs, model, self._optimiser, self._batches, precision, device)
        self._average = WeightAverage(model, config.average) if config.average is not None else None
        self._encode = partial(unit_vectors, model, precision=precision)
        tokenizer = locate_tokenizer(config.base)
        self._measures = [
            Measure(data, tokenizer, normalisation=config.normalisation, max_tokens=config.max_tokens)
            for data in development
        ]
        self._evaluations = Evaluations(config, self._measures, self._encode, model, self._average)
        self._parts: dict[str, Part] = {"step": self._step, "best": self._evaluations}
        if self._average is not None:
            self._parts["average"] = self._average
        self._phases = {"prepare": 0.0, "evaluate": 0.0}

    def train(self, trackers: Sequence[str]) -> None:
        """Begin the run, or go on with it, to its end; ``trackers`` by name."""
        self._total_steps = self._begin_or_recall()
        self._run_id = broadcast(sha256_file(self._run / RUN_NAME) if is_main() else "")
        progress = self._resume()
        self._steps_done, self._seconds_before = progress.step, progress.seconds
        self._resumed_at = progress.step or None
        self._started = time.perf_counter()
        self._checkpointed = progress.step, self._started
        with (
            RunLog(self._run, done=progress.step, evaluations=progress.evaluations) as self._log,
            self._opened(trackers if is_main() else (), progress.step) as self._trackers,
        ):
            self._steps()
            if self._steps_done > self._checkpointed[0]:
                self._checkpoint()  # saving can fail: a full disk, a kill

    def save(self, out: Path) -> TrainingReport:
        """Write the encoder with the weights that the recipe wants kept."""
        report = self._report()
        if self._config.keep == "best":
            self._evaluations.apply_best()
            if report.saved_step == 0:
                self._tell("no evaluation was better than the one before training: saving the weights of the base")
        elif self._average is not None:
            self._average.apply()
        self._tell(f"saving {out}")
        manifest = self._pairs.manifest
        save_encoder(
            self._model,
            out,
            config={
                "training": report.config,
                "ran_on": self._ran_on,
                "pairs": manifest.config,
                "terminology": [parent.fingerprint for parent in manifest.parents if parent.kind == "terminology"],
                "development": report.data["development"],
            },
            parents=(manifest.as_parent(),),
            seed=self._config.seed,
            files={"train.json": report.to_json()},
            overwrite=True,  # `train_encoder` has made sure that it may be
        )
        return report

    def _begin_or_recall(self) -> int:
        """Steps of the run; what it is, is written down if it is new."""
        config = self._config
        identity = {
            "config": config.model_dump(mode="json"),
            "pairs": self._pairs.manifest.fingerprint,
            "base": self._model.fingerprint,
            "development data": [measure.fingerprint for measure in self._measures],
            **self._ran_on,
        }
        total_steps = broadcast(planned_steps(self._run, identity) if is_main() else None)
        if total_steps is None:
            if is_main():
                (self._run / CHECKPOINT_NAME).unlink(missing_ok=True)
            total_steps = plan_steps(config, self._batches, self._step, self._training_names, self._evaluations)
            if is_main():
                begin_run(self._run, identity, total_steps)
        return total_steps

    def _resume(self) -> Progress:
        """Put everything back to where the checkpoint was written, if there is one."""
        progress = load_checkpoint(self._run, self._model, self._optimiser, run=self._run_id, parts=self._parts)
        if broadcast(progress) != progress:
            raise TrainingError(
                f"the processes do not see the same checkpoint in {self._run}. Let it lie on a disk that all machines "
                "share."
            )
        if progress is not None:
            self._evaluations.done = [Evaluation.from_json(line) for line in progress.evaluations]
            self._tell(f"going on from step {progress.step:,} of {self._total_steps:,} ({self._run})")
        passes = self._total_steps * self._config.accumulation / self._batches.steps_per_epoch
        self._tell(
            f"{self._total_steps:,} steps of {self._config.batch_pairs * self._config.accumulation} pairs on "
            f"{self._ran_on['device']} in {self._ran_on['precision']}, {len(self._pairs.pairs):,} pairs, "
            f"{passes:.2f} passes over them"
        )
        return progress or Progress(step=0, seconds=0.0)

    def _steps(self) -> None:
        config = self._config
        if self._steps_done == 0 and self._measures:
            # Planning has measured already if it had to know how long that takes.
            self._show(self._evaluations.done[0] if self._evaluations.done else self._evaluations.measure(0))
        self._model.train()
        while self._steps_done < self._total_steps and self._evaluations.reason_to_stop() is None:
            with self._clock("prepare"):
                self._batches.prepare(self._steps_done * config.accumulation, self._training_names)
            done = self._step(self._steps_done, self._total_steps)
            self._steps_done = done.step
            if self._average is not None:
                self._average.update()
            self._log.step(asdict(done))
            self._trackers.log(_curves(done), done.step)
            self._on_step(done)
            if self._evaluations.due(done.step, self._total_steps):
                with self._clock("evaluate"):
                    evaluation = self._evaluations.measure(done.step)
                self._show(evaluation)
            if self._checkpoint_due():
                self._checkpoint()
        if reason := self._stopped_early():
            self._tell(f"stopped {reason}")

    def _show(self, evaluation: Evaluation) -> None:
        self._log.evaluation(asdict(evaluation))
        self._trackers.log(evaluation.figures(), evaluation.step)
        self._tell(str(evaluation))
        self._on_evaluation(evaluation)

    def _checkpoint_due(self) -> bool:
        every = self._config.checkpoint_steps
        if every is not None and self._steps_done % every == 0:
            return True
        return time.perf_counter() - self._checkpointed[1] > self._config.checkpoint_minutes * 60

    def _checkpoint(self) -> None:
        """Always after the evaluation of the same step, so that a checkpoint holds all that was measured up to it."""
        if is_main():
            self._log.sync()
            progress = Progress(self._steps_done, self._seconds(), self._evaluations.as_json())
            save_checkpoint(self._run, self._model, self._optimiser, progress, run=self._run_id, parts=self._parts)
            self._trackers.flush()
        self._checkpointed = self._steps_done, time.perf_counter()

    def _training_names(self, rows: RowArray) -> FloatArray:
        vectors: FloatArray = self._encode(self._pairs.store, rows).cpu().numpy()
        return vectors

    def _seconds(self) -> float:
        return self._seconds_before + time.perf_counter() - self._started

    def _stopped_early(self) -> str | None:
        reason = self._evaluations.reason_to_stop()
        if reason is None or self._steps_done == self._total_steps:
            return None
        return f"at step {self._steps_done:,} of {self._total_steps:,}: {reason}"

    def _report(self) -> TrainingReport:
        log, best = self._log.steps, self._evaluations.best
        return TrainingReport(
            steps=self._steps_done,
            planned_steps=self._total_steps,
            stopped_early=self._stopped_early(),
            seconds=self._seconds(),
            names_per_second=sum(line["names"] for line in log) / sum(line["seconds"] for line in log),
            first_loss=mean_loss(log[:10]),
            last_loss=mean_loss(log[-10:]),
            best={"step": best.step, "at_1": best.at_1} if best else None,
            saved_step=best.step if best and self._config.keep == "best" else self._steps_done,
            evaluations=self._evaluations.as_json(),
            resumed_at=self._resumed_at,
            config=self._config.model_dump(mode="json"),
            ran_on=self._ran_on,
            versions=versions(),
            data=about_data(self._pairs, self._measures),
            phases={**self._phases, **self._step.phases},
            log=log,
        )

    @contextlib.contextmanager
    def _opened(self, trackers: Sequence[str], steps_done: int) -> Iterator[Trackers]:
        settings = {**self._config.model_dump(mode="json"), **self._ran_on}
        opened = open_trackers(trackers, self._run, settings, steps_done=steps_done, tell=self._tell)
        try:
            yield opened
        except BaseException:
            opened.close(finished=False)
            raise
        opened.close(finished=True)

    @contextlib.contextmanager
    def _clock(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._phases[phase] += time.perf_counter() - started


def _by_main(callback: Callable[[T], None] | None) -> Callable[[T], None]:
    """What is called in the main process only."""
    return callback if callback is not None and is_main() else lambda _: None


def _curves(done: StepReport) -> dict[str, float]:
    """What trackers show of a step."""
    return {
        "loss": done.loss,
        "hard_positives": done.hard_positives,
        "hard_negatives": done.hard_negatives,
        "learning_rate": done.learning_rate,
        "names_per_second": done.names / done.seconds,
    }


@contextlib.contextmanager
def _memory_errors_in_words(config: TrainingConfig, run: Path) -> Iterator[None]:
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # On a CPU torch raises a plain RuntimeError that only its text tells from others.
        is_spent = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "DefaultCPUAllocator" in str(error)
        if not is_spent:
            raise
        raise TrainingError(
            f"memory does not suffice for {2 * config.batch_pairs} names in a step; remove {run} and begin anew with a "
            "smaller batch_pairs, or with chunk_names, which encodes fewer names of the batch at a time. "
            f"({str(error).splitlines()[0][:200]})"
        ) from None
