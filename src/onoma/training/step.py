"""One optimiser step: names are packed and encoded, hard pairs mined, the loss pulls and pushes, AdamW steps.

A step takes one batch, or the mean of ``accumulation`` batches. Between encoder and loss the graph is cut: the loss
gives the gradient of the vectors, which then goes back through the encoder. So names can be encoded a chunk at a time
(`onoma.training.gradient_cache`) and in several processes (`onoma.training.distributed`), while loss and mining see
all names of the batch. Each process takes the loss of the whole batch and sends the gradient of its own names' vectors
back; then the gradients of the weights are summed, for the loss is one number, not a mean over processes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from onoma.encoders.packed import PackedBatch, PackedEncoder, pack
from onoma.encoders.precision import has_native_bf16
from onoma.errors import TrainingError
from onoma.objectives import mined_shares
from onoma.pairs import PairSet
from onoma.training.batches import Batches
from onoma.training.config import TrainingConfig
from onoma.training.distributed import broadcast, gather, seed_dropout, share, sum_gradients
from onoma.training.gradient_cache import forward_in_chunks
from onoma.training.objective import objective

PRECISION_NAMES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
"""What the precisions of the forward pass are called in settings and reports."""

_SPEED_BATCHES = 8
"""Batches that are timed (after as many unmeasured ones) to turn a budget of minutes into a number of steps."""


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
    overflowed: bool = False
    """fp16 only: the gradient overflowed, so the weights stayed as they were and the next step scales it less."""


@dataclass(frozen=True, slots=True)
class _BatchReport:
    loss: float
    hard_positives: float
    hard_negatives: float
    names: int


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


class Step:
    """One optimiser step and the clock of its phases.

    Args:
        config: Settings of the run.
        pairs: Names, labels and tokens.
        model: On ``device``.
        optimiser: Of its weights; see `make_optimiser`.
        batches: Which names make up which batch, the same on every process.
        precision: Of the forward pass; see `training_precision`.
        device: Of this process.
    """

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
        self._config, self._pairs, self._model, self._optimiser = config, pairs, model, optimiser
        self._batches, self._precision, self._device = batches, precision, device
        # Gradients smaller than fp16 can hold are kept by scaling the loss. Switched off, it changes nothing.
        self._scaler = torch.amp.GradScaler(device.type, enabled=precision is torch.float16)
        self.phases = dict.fromkeys(("pack", "forward", "loss", "backward", "optimiser"), 0.0)
        """Seconds spent so far. With several processes forward includes the exchange of vectors, and backward that
        of gradients."""

    def __call__(self, step: int, total_steps: int) -> StepReport:
        """Do a step, counted from 0, by every process at the same time.

        Raises:
            TrainingError: loss or gradient is not a number, or another process has stopped.
        """
        config = self._config
        started = time.perf_counter()
        factor = learning_rate_factor(step, total_steps, schedule=config.schedule, warmup_steps=config.warmup_steps)
        for group in self._optimiser.param_groups:
            group["lr"] = config.learning_rate * factor
        done = self._gradients(range(step * config.accumulation, (step + 1) * config.accumulation), step)
        overflowed = not self._update(step)
        return StepReport(
            step=step + 1,
            total_steps=total_steps,
            loss=sum(batch.loss for batch in done) / len(done),
            hard_positives=sum(batch.hard_positives for batch in done) / len(done),
            hard_negatives=sum(batch.hard_negatives for batch in done) / len(done),
            names=sum(batch.names for batch in done),
            learning_rate=config.learning_rate * factor,
            seconds=time.perf_counter() - started,
            overflowed=overflowed,
        )

    def _gradients(self, batch_numbers: Iterable[int], step: int) -> list[_BatchReport]:
        """Leave in the weights the gradient of the mean of these batches' losses, equal on all processes."""
        done = [self._backward(number, step) for number in batch_numbers]
        with self._clock("backward"):
            sum_gradients(self._model.parameters())
        return done

    def _backward(self, batch_number: int, step: int) -> _BatchReport:
        """Forward and backward of one batch, of which this process encodes its share."""
        config, offsets = self._config, self._pairs.store.offsets
        with self._clock("pack"):
            rows = self._batches.names_of_step(batch_number)
            by_length = np.argsort(offsets[rows + 1] - offsets[rows], kind="stable")
            own = by_length[share(len(rows))]
            chunk_names = config.chunk_names or max(1, len(own))
            chunks = [
                pack(offsets, self._pairs.store.ids, rows=rows[own[first : first + chunk_names]]).to(self._device)
                for first in range(0, max(1, len(own)), chunk_names)
            ]
            own_places = torch.from_numpy(own).to(self._device)
            places = torch.from_numpy(np.argsort(by_length)).to(self._device)
            labels = torch.from_numpy(self._pairs.labels[rows]).to(self._device)
            same_text = None
            if self._pairs.text_labels is not None:
                texts = torch.from_numpy(self._pairs.text_labels[rows]).to(self._device)
                same_text = texts[:, None] == texts[None, :]
        seed_dropout(config.seed, batch_number)
        with self._clock("forward"):
            own_vectors, backward = forward_in_chunks(self._encode, chunks, self._device)
            vectors = gather(own_vectors.float(), len(rows)).index_select(0, places).requires_grad_()
        with self._clock("loss"):
            loss, masks = objective(
                config.loss, config.mining, vectors, labels, excluded=same_text, matryoshka=config.matryoshka
            )
        if not torch.isfinite(loss):
            raise diverged(f"the loss of step {step + 1} is not a number", self._precision)
        with self._clock("backward"):
            self._scaler.scale(loss / config.accumulation).backward()  # type: ignore[no-untyped-call]
            assert vectors.grad is not None
            backward(vectors.grad.index_select(0, own_places))
        shares = mined_shares(masks, labels, excluded=same_text)
        return _BatchReport(float(loss.detach()), shares.positives, shares.negatives, len(rows))

    def _encode(self, batch: PackedBatch) -> torch.Tensor:
        with autocast(self._device, self._precision):
            vectors: torch.Tensor = self._model(batch)
        return vectors

    def _update(self, step: int) -> bool:
        """Move the weights by their gradients; False if these overflowed in fp16, which leaves the weights alone."""
        with self._clock("optimiser"):
            self._scaler.unscale_(self._optimiser)
            parameters = list(self._model.parameters())
            norm = torch.nn.utils.get_total_norm([one.grad for one in parameters if one.grad is not None])
            if self._config.max_gradient_norm is not None:
                torch.nn.utils.clip_grads_with_norm_(parameters, self._config.max_gradient_norm, norm)
            finite = bool(torch.isfinite(norm))
            scale = self._scaler.get_scale()  # 1 when switched off
            if finite:
                self._scaler.step(self._optimiser)
            self._scaler.update()
            # A gradient that overflows without being scaled, or whose scale is not to blame, is no matter of fp16.
            if not finite and (scale <= 1 or self._scaler.get_scale() >= scale):
                raise diverged(f"the gradient of step {step + 1} is not a number", self._precision)
            self._optimiser.zero_grad(set_to_none=True)
        return finite

    def state(self) -> dict[str, torch.Tensor]:
        """What a resumed run needs beside weights, optimiser and random state; empty except in fp16."""
        if not self._scaler.is_enabled():
            return {}
        kept = self._scaler.state_dict()
        return {"scale": torch.tensor(kept["scale"]), "scale_steps": torch.tensor(kept["_growth_tracker"])}

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        """Go on from what `state` gave."""
        if self._scaler.is_enabled():
            self._scaler.load_state_dict(
                {
                    **self._scaler.state_dict(),
                    "scale": float(state["scale"]),
                    "_growth_tracker": int(state["scale_steps"]),
                }
            )

    def seconds_per_step(self) -> float:
        """Time of a step, measured without changing the model or its random state; the same on all processes."""
        timed = max(1, _SPEED_BATCHES // self._config.accumulation)
        times = []
        self._model.train()
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):
            for step in range(2 * timed):
                started = time.perf_counter()
                first = step * self._config.accumulation
                numbers = range(first, first + self._config.accumulation)
                self._gradients((number % self._batches.steps_per_epoch for number in numbers), step)
                times.append(time.perf_counter() - started)
        self._optimiser.zero_grad(set_to_none=True)
        self.phases = dict.fromkeys(self.phases, 0.0)
        return broadcast(sum(times[timed:]) / timed)

    @contextlib.contextmanager
    def _clock(self, phase: str) -> Any:
        started = time.perf_counter()
        yield
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self.phases[phase] += time.perf_counter() - started


def diverged(what: str, precision: torch.dtype) -> TrainingError:
    """The error of a run whose numbers have become too large."""
    finer = {torch.float16: "precision=fp32 (or bf16), ", torch.bfloat16: "precision=fp32, "}.get(precision, "")
    return TrainingError(
        f"{what}: the run has diverged. Remove its .run folder and begin anew with {finer}a lower learning_rate or "
        "max_gradient_norm=1."
    )


def autocast(device: torch.device, precision: torch.dtype) -> contextlib.AbstractContextManager[Any]:
    """Run the encoder in a precision."""
    if precision is torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=precision)


def make_optimiser(config: TrainingConfig, model: PackedEncoder) -> torch.optim.Optimizer:
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


def training_device(config: TrainingConfig) -> torch.device:
    """The device that a recipe asks for.

    Raises:
        TrainingError: it is not there.
    """
    if config.device == "cuda" and not torch.cuda.is_available():
        raise TrainingError("device=cuda was asked for, but torch sees no CUDA device here. Set device=cpu or auto.")
    use_cuda = config.device == "cuda" or (config.device == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if use_cuda else "cpu")


def training_precision(config: TrainingConfig, device: torch.device) -> torch.dtype:
    """The precision of the forward pass; the weights are fp32 in each.

    fp16 runs on a CPU as well, about as fast as fp32.
    """
    if config.precision == "auto":
        return torch.bfloat16 if has_native_bf16(device.type) else torch.float32
    return next(dtype for dtype, name in PRECISION_NAMES.items() if name == config.precision)
