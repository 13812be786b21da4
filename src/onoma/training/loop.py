"""The training loop: self-alignment of names (SapBERT), resumable to the bit on a CPU.

One step: the names of ``batch_pairs`` synonym pairs are packed without padding, encoded, compared with each
other; hard pairs are mined as masks; the loss pulls and pushes; AdamW moves the weights.

While a run is unfinished its state lies in ``OUT.run`` (`onoma.training.run_folder`); the same call goes on from there.
Two sittings of one run see the same batches and the same dropout.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from onoma.artifacts import ensure_writable, sha256_file
from onoma.encoders.packed import PackedEncoder, load_packed, pack
from onoma.encoders.precision import has_native_bf16
from onoma.encoders.saving import save_encoder
from onoma.errors import MismatchError, TrainingError
from onoma.objectives import mined_shares
from onoma.pairs import PairSet
from onoma.training.batches import PairBatches
from onoma.training.checkpoints import CHECKPOINT_NAME, Progress, load_checkpoint, save_checkpoint
from onoma.training.config import TrainingConfig
from onoma.training.objective import objective
from onoma.training.run_folder import LOG_NAME, RUN_NAME, begin_run, cut_log, planned_steps, unfinished_run

_SPEED_STEPS = 8
"""Steps that are timed (after as many unmeasured ones) to turn a budget of minutes into a number of steps."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step did; handed to ``on_step`` and written to the run's ``log.jsonl``."""

    step: int
    """Steps done, this one included."""
    total_steps: int
    loss: float
    hard_positives: float
    """Share of the batch's positive pairs that were mined as hard, 0..1."""
    hard_negatives: float
    """Share of the batch's negative pairs that were mined as hard, 0..1."""
    names: int
    """Names in the batch."""
    learning_rate: float
    seconds: float
    """Time of this step."""


@dataclass(slots=True)
class TrainingReport:
    """A finished run; ``train.json`` of the encoder folder holds the same."""

    steps: int
    seconds: float
    names_per_second: float
    first_loss: float
    last_loss: float
    resumed_at: int | None
    config: dict[str, Any] = field(repr=False)
    ran_on: dict[str, str]
    """Device and precision."""
    phases: dict[str, float] = field(repr=False)
    """Seconds spent packing, in forward, loss, backward and the optimiser, in this sitting."""
    log: list[dict[str, Any]] = field(repr=False)


def train_encoder(
    config: TrainingConfig,
    pairs: PairSet,
    out: str | Path,
    *,
    overwrite: bool = False,
    on_step: Callable[[StepReport], None] | None = None,
    on_event: Callable[[str], None] | None = None,
) -> TrainingReport:
    """Train an encoder on synonym pairs and save it as a folder.

    Args:
        config: Settings of the run.
        pairs: Pairs tokenised with the base encoder's tokeniser.
        out: The encoder folder to write: sentence-transformers layout, ONNX model, manifest, ``train.json``.
            The unfinished run lies in ``OUT.run`` and goes on from its last checkpoint.
        overwrite: Replace an encoder that is there.
        on_step: Called after every step.
        on_event: Called with sentences worth telling (device, number of steps, resuming, saving).

    Raises:
        ArtifactExistsError: ``out`` is taken.
        MismatchError: ``OUT.run`` belongs to other settings or pairs, or the pairs to another tokeniser.
        TrainingError: the loss is not a number, or memory does not suffice.
    """
    out = Path(out)
    ensure_writable(out, "encoder", overwrite=overwrite)
    with unfinished_run(out) as run:
        return _train(config, pairs, out, run, on_step=on_step or (lambda _: None), tell=on_event or (lambda _: None))


def _train(
    config: TrainingConfig,
    pairs: PairSet,
    out: Path,
    run: Path,
    *,
    on_step: Callable[[StepReport], None],
    tell: Callable[[str], None],
) -> TrainingReport:
    device = _device(config)
    torch.manual_seed(config.seed)
    model = load_packed(config.base, pooling=config.pooling, dropout=config.dropout, max_tokens=config.max_tokens).to(
        device
    )
    if model.tokenizer_fingerprint != pairs.tokenizer_fingerprint:
        raise MismatchError(
            f"{pairs.path} was tokenised with another tokeniser than that of {config.base}; build the pairs again."
        )
    optimiser = _optimiser(config, model)
    batches = PairBatches(pairs.pairs, batch_pairs=config.batch_pairs, seed=config.seed)
    autocast = _autocast(config, device)
    took_part = {"device": device.type, "precision": "bf16" if autocast else "fp32"}
    identity = {
        "config": config.model_dump(mode="json"),
        "pairs": pairs.manifest.fingerprint,
        "base": model.fingerprint,
        **took_part,
    }
    one_step = _Step(config, pairs, model, optimiser, batches, autocast, device)
    with _memory_errors_in_words(config, run):
        total_steps = planned_steps(run, identity)
        if total_steps is None:
            (run / CHECKPOINT_NAME).unlink(missing_ok=True)
            total_steps = _total_steps(config, batches, one_step)
            begin_run(run, identity, total_steps)
        run_id = sha256_file(run / RUN_NAME)
        progress = load_checkpoint(run, model, optimiser, run=run_id)
        log = cut_log(run, progress.step if progress else 0)
        resumed_at = progress.step if progress else None
        if progress:
            tell(f"going on from step {progress.step:,} of {total_steps:,} ({run})")
        progress = progress or Progress(step=0, seconds=0.0)
        tell(
            f"{total_steps:,} steps of {config.batch_pairs} pairs on {device.type} in {took_part['precision']}, "
            f"{len(pairs.pairs):,} pairs, {total_steps / batches.steps_per_epoch:.2f} passes over them"
        )
        model.train()
        before = progress.seconds
        started = checkpointed = time.perf_counter()
        with (run / LOG_NAME).open("a", encoding="utf-8") as log_file:

            def checkpoint(steps_done: int) -> None:
                os.fsync(log_file.fileno())
                seconds_so_far = before + time.perf_counter() - started
                save_checkpoint(run, model, optimiser, Progress(steps_done, seconds_so_far), run=run_id)

            for step in range(progress.step, total_steps):
                done = one_step(step, total_steps)
                log.append(asdict(done))
                log_file.write(json.dumps(log[-1]) + "\n")
                log_file.flush()
                on_step(done)
                if time.perf_counter() - checkpointed > config.checkpoint_minutes * 60:
                    checkpoint(step + 1)
                    checkpointed = time.perf_counter()
            if progress.step < total_steps:
                checkpoint(total_steps)  # saving can fail: a full disk, a kill
    report = TrainingReport(
        steps=total_steps,
        seconds=before + time.perf_counter() - started,
        names_per_second=sum(line["names"] for line in log) / sum(line["seconds"] for line in log),
        first_loss=_mean_loss(log[:10]),
        last_loss=_mean_loss(log[-10:]),
        resumed_at=resumed_at,
        config=config.model_dump(mode="json"),
        ran_on=took_part,
        phases=one_step.phases,
        log=log,
    )
    tell(f"saving {out}")
    save_encoder(
        model,
        out,
        config={
            "training": config.model_dump(mode="json"),
            "ran_on": took_part,
            "pairs": pairs.manifest.config,
            "terminology": [parent.fingerprint for parent in pairs.manifest.parents if parent.kind == "terminology"],
        },
        parents=(pairs.manifest.as_parent(),),
        seed=config.seed,
        files={"train.json": json.dumps(asdict(report), indent=1)},
        overwrite=True,  # `train_encoder` has made sure that it may be
    )
    return report


def learning_rate_factor(step: int, total_steps: int, *, schedule: str, warmup_steps: int) -> float:
    """What the learning rate is multiplied with in a step (counted from 0), 0..1.

    Example:
        >>> [learning_rate_factor(s, 4, schedule="linear", warmup_steps=0) for s in range(4)]
        [1.0, 0.75, 0.5, 0.25]
        >>> [learning_rate_factor(s, 4, schedule="constant", warmup_steps=2) for s in range(4)]
        [0.5, 1.0, 1.0, 1.0]
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if schedule == "constant":
        return 1.0
    return (total_steps - step) / max(1, total_steps - warmup_steps)


class _Step:
    """One optimiser step and the clock of its phases."""

    def __init__(
        self,
        config: TrainingConfig,
        pairs: PairSet,
        model: PackedEncoder,
        optimiser: torch.optim.Optimizer,
        batches: PairBatches,
        autocast: bool,
        device: torch.device,
    ) -> None:
        self._config, self._pairs, self._model, self._optimiser = config, pairs, model, optimiser
        self._batches, self._autocast, self._device = batches, autocast, device
        self.phases = dict.fromkeys(("pack", "forward", "loss", "backward", "optimiser"), 0.0)

    def __call__(self, step: int, total_steps: int) -> StepReport:
        config = self._config
        started = time.perf_counter()
        factor = learning_rate_factor(step, total_steps, schedule=config.schedule, warmup_steps=config.warmup_steps)
        for group in self._optimiser.param_groups:
            group["lr"] = config.learning_rate * factor
        loss, hard_positives, hard_negatives, names = self.backward(step)
        with self._clock("optimiser"):
            norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), config.max_gradient_norm or torch.inf)
            if not torch.isfinite(norm):
                raise self._diverged(step, "gradient")
            self._optimiser.step()
            self._optimiser.zero_grad(set_to_none=True)
        return StepReport(
            step=step + 1,
            total_steps=total_steps,
            loss=loss,
            hard_positives=hard_positives,
            hard_negatives=hard_negatives,
            names=names,
            learning_rate=config.learning_rate * factor,
            seconds=time.perf_counter() - started,
        )

    def backward(self, step: int) -> tuple[float, float, float, int]:
        """Forward and backward of one batch: loss, shares of hard pairs, number of names."""
        config = self._config
        with self._clock("pack"):
            rows = self._batches.names_of_step(step)
            batch = pack(self._pairs.store.offsets, self._pairs.store.ids, rows=rows).to(self._device)
            labels = torch.from_numpy(self._pairs.labels[rows]).to(self._device)
            same_text = None
            if self._pairs.text_labels is not None:
                texts = torch.from_numpy(self._pairs.text_labels[rows]).to(self._device)
                same_text = texts[:, None] == texts[None, :]
        with self._clock("forward"), self._precision():
            vectors = self._model(batch)
        with self._clock("loss"):
            loss, masks = objective(config.loss, config.mining, vectors, labels, excluded=same_text)
        if not torch.isfinite(loss):
            raise self._diverged(step, "loss")
        with self._clock("backward"):
            loss.backward()  # type: ignore[no-untyped-call]
        shares = mined_shares(masks, labels, excluded=same_text)
        return float(loss.detach()), shares.positives, shares.negatives, len(rows)

    def _diverged(self, step: int, what: str) -> TrainingError:
        return TrainingError(
            f"the {what} of step {step + 1} is not a number: the run has diverged. Remove its .run folder and "
            "begin anew with a lower learning_rate, precision=fp32 or max_gradient_norm=1."
        )

    def seconds_per_step(self) -> float:
        """Time of a step, measured without changing the model or its random state."""
        times = []
        self._model.train()
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):
            for step in range(2 * _SPEED_STEPS):
                started = time.perf_counter()
                self.backward(step % self._batches.steps_per_epoch)
                times.append(time.perf_counter() - started)
        self._optimiser.zero_grad(set_to_none=True)
        self.phases = dict.fromkeys(self.phases, 0.0)
        return sum(times[_SPEED_STEPS:]) / _SPEED_STEPS

    @contextlib.contextmanager
    def _clock(self, phase: str) -> Any:
        started = time.perf_counter()
        yield
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self.phases[phase] += time.perf_counter() - started

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        if self._autocast:
            return torch.autocast(self._device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()


@contextlib.contextmanager
def _memory_errors_in_words(config: TrainingConfig, run: Path) -> Iterator[None]:
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        # On a CPU torch raises a plain RuntimeError that only its text tells from others.
        if type(error) is RuntimeError and "DefaultCPUAllocator" not in str(error):
            raise
        raise TrainingError(
            f"memory does not suffice for {2 * config.batch_pairs} names in a step; remove {run} and begin anew with a "
            f"smaller batch_pairs. ({str(error).splitlines()[0][:200]})"
        ) from None


def _total_steps(config: TrainingConfig, batches: PairBatches, step: _Step) -> int:
    if config.steps is not None:
        return config.steps
    if config.epochs is not None:
        return max(1, math.ceil(config.epochs * batches.steps_per_epoch))
    minutes = config.minutes or 0.0
    # The optimiser's own time was not measured; a tenth is more than it takes for small models.
    return max(1, int(minutes * 60 / (1.1 * step.seconds_per_step())))


def _optimiser(config: TrainingConfig, model: PackedEncoder) -> torch.optim.Optimizer:
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


def _device(config: TrainingConfig) -> torch.device:
    if config.device == "cuda" and not torch.cuda.is_available():
        raise TrainingError("device=cuda was asked for, but torch sees no CUDA device here. Set device=cpu or auto.")
    use_cuda = config.device == "cuda" or (config.device == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if use_cuda else "cpu")


def _autocast(config: TrainingConfig, device: torch.device) -> bool:
    if config.precision != "auto":
        return config.precision == "bf16"
    return has_native_bf16(device.type)


def _mean_loss(lines: list[dict[str, Any]]) -> float:
    return float(sum(line["loss"] for line in lines)) / max(1, len(lines))
