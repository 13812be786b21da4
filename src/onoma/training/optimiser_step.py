"""One optimiser step, whatever is learned from a batch: names are packed and encoded, a loss gives their gradient.

A step takes one batch, or the mean of ``accumulation`` batches. Between encoder and loss the graph is cut: the loss
gives the gradient of the vectors, which then goes back through the encoder. So names can be encoded a chunk at a time
(`onoma.training.gradient_cache`) and in several processes (`onoma.training.distributed`), while the loss sees all
names of the batch. Each process takes the loss of the whole batch and sends the gradient of its own names' vectors
back; then the gradients of the encoder's weights are summed, for the loss is one number, not a mean over processes.
"""

from __future__ import annotations

import math
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from onoma.encoders.packed import PackedBatch, PackedEncoder, pack
from onoma.pairs import NameStore
from onoma.training.batches import Batches
from onoma.training.clock import PhaseClock
from onoma.training.distributed import broadcast, gather, seed_dropout, share, sum_gradients, world_size
from onoma.training.gradient_cache import forward_in_chunks
from onoma.training.graphs import RecordedPasses
from onoma.training.precision import autocast, diverged
from onoma.training.run_config import RunConfig
from onoma.types import RowArray

_MOST_NAMES_ON_GPU = 65_535
"""Names encoded at a time at most: a grid of CUDA, in which attention kernels have a row for each, ends there."""
_SPEED_BATCHES = 8
"""Batches that are timed (after as many unmeasured ones) to turn a budget of minutes into a number of steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneStep:
    """What one step did; handed to ``on_step`` and written to the run's ``log.jsonl``."""

    step: int
    """Steps done, this one included."""
    total_steps: int
    loss: float
    """Mean over its batches that have names; 0 where none has, as where no query has a right candidate (BioSyn)."""
    names: int
    """Names encoded for it."""
    learning_rate: float
    seconds: float
    """Time of this step."""
    overflowed: bool = False
    """fp16 only: the gradient overflowed, so the weights stayed as they were and the next step scales it less."""

    def figures(self) -> dict[str, float]:
        """What trackers show of it."""
        return {
            **({"loss": self.loss} if self.names else {}),
            "learning_rate": self.learning_rate,
            "names_per_second": self.names / self.seconds,
        }

    def in_words(self) -> str:
        """What is worth saying of it besides speed and loss."""
        return ""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What one batch came to."""

    loss: float
    names: int
    figures: Mapping[str, float] = field(default_factory=dict)
    """What else the loss has to tell."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """The same, before the device has been waited for."""

    loss: torch.Tensor
    names: int
    figures: Mapping[str, torch.Tensor | float] = field(default_factory=dict)


Done = TypeVar("Done", bound=DoneStep)


class OptimiserStep(ABC, Generic[Done]):
    """One optimiser step and the clock of its phases.

    Args:
        config: Settings of the run.
        model: All that is trained, on ``device``.
        encoder: That of its parts which encodes names, or all of it.
        store: Tokens of the names.
        optimiser: Of the model's weights; the learning rate of each of its groups is what the schedule leads to.
        batches: Which names make up which batch, the same on every process.
        precision: Of the forward pass; see `onoma.training.precision.training_precision`.
        device: Of this process.
    """

    def __init__(
        self,
        config: RunConfig,
        model: torch.nn.Module,
        encoder: PackedEncoder,
        store: NameStore,
        optimiser: torch.optim.Optimizer,
        batches: Batches,
        precision: torch.dtype,
        device: torch.device,
    ) -> None:
        self._run_config, self._model, self._encoder, self.store = config, model, encoder, store
        self._optimiser, self._batches, self._precision, self._device = optimiser, batches, precision, device
        # Gradients smaller than fp16 can hold are kept by scaling the loss. Switched off, it changes nothing.
        self._scaler = torch.amp.GradScaler(device.type, enabled=precision is torch.float16)
        self._highest_rates = [float(group["lr"]) for group in optimiser.param_groups]
        # What watches over the exchange between GPUs may disturb a recording, which has not been tried.
        is_recorded = device.type == "cuda" and precision is not torch.float32 and world_size() == 1
        self._recorded = RecordedPasses(encoder, self._encode) if is_recorded else None
        self._clock = PhaseClock(device, "pack", "forward", "loss", "backward", "optimiser")

    @property
    def phases(self) -> dict[str, float]:
        """Seconds spent so far; see `PhaseClock`.

        With several processes forward includes the exchange of vectors, and backward that of gradients.
        """
        return self._clock.seconds()

    @abstractmethod
    def _loss(
        self, batch_number: int, rows: RowArray, vectors: torch.Tensor
    ) -> tuple[torch.Tensor, Mapping[str, torch.Tensor | float]]:
        """The loss of a batch, shape (), and what else there is to tell of it, each a number or of shape ().

        It does not wait for the device.

        Args:
            batch_number: Counted from 0 over the whole run.
            rows: The names of the batch in the store, shape (N,).
            vectors: Their vectors, not normalised, float32, shape (N, D).
        """

    @abstractmethod
    def _report(self, done: Sequence[BatchReport], common: Mapping[str, Any]) -> Done:
        """The report of a step.

        Args:
            done: Its batches.
            common: The fields of `DoneStep`.
        """

    def __call__(self, step: int, total_steps: int) -> Done:
        """Do a step, counted from 0, by every process at the same time.

        Raises:
            TrainingError: loss or gradient is not a number, or another process has stopped.
        """
        config = self._run_config
        started = time.perf_counter()
        factor = learning_rate_factor(step, total_steps, schedule=config.schedule, warmup_steps=config.warmup_steps)
        for group, highest in zip(self._optimiser.param_groups, self._highest_rates, strict=True):
            group["lr"] = highest * factor
        batches = self._gradients(range(step * config.accumulation, (step + 1) * config.accumulation))
        norm, overflowed = self._update(batches)
        done = self._wait_for(batches, norm, step, overflowed=overflowed)
        return self._report(
            done,
            {
                "step": step + 1,
                "total_steps": total_steps,
                "loss": sum(batch.loss for batch in done) / max(1, sum(batch.names > 0 for batch in done)),
                "names": sum(batch.names for batch in done),
                "learning_rate": config.learning_rate * factor,
                "seconds": time.perf_counter() - started,
                "overflowed": overflowed,
            },
        )

    def _gradients(self, batch_numbers: Iterable[int]) -> list[_Batch]:
        """Leave in the weights the gradient of the mean of these batches' losses, equal on all processes."""
        batches = [self._backward(number) for number in batch_numbers]
        with self._clock.timing("backward"):
            # What lies beside the encoder has the gradient of the whole batch on each process already.
            sum_gradients(self._encoder.parameters())
        return batches

    def _backward(self, batch_number: int) -> _Batch:
        """Forward and backward of one batch, of which this process encodes its share."""
        offsets = self.store.offsets
        with self._clock.timing("pack"):
            rows = self._batches.names_of_step(batch_number)
            if len(rows) == 0:
                return _Batch(torch.zeros((), device=self._device), 0)
            by_length = np.argsort(offsets[rows + 1] - offsets[rows], kind="stable")
            own = by_length[share(len(rows))]
            chunk_names = self._run_config.chunk_names or max(1, len(own))
            if self._device.type == "cuda":
                chunk_names = min(chunk_names, _MOST_NAMES_ON_GPU)
            chunks = [
                pack(
                    offsets,
                    self.store.ids,
                    rows=rows[own[first : first + chunk_names]],
                    types=self.store.types,
                ).to(self._device)
                for first in range(0, max(1, len(own)), chunk_names)
            ]
            own_places = torch.from_numpy(own).to(self._device, non_blocking=True)
            places = torch.from_numpy(np.argsort(by_length)).to(self._device, non_blocking=True)
        seed_dropout(self._run_config.seed, batch_number)
        with self._clock.timing("forward"):
            own_vectors, backward = self._forward(chunks)
            vectors = gather(own_vectors.float(), len(rows)).index_select(0, places).requires_grad_()
        with self._clock.timing("loss"):
            loss, figures = self._loss(batch_number, rows, vectors)
        with self._clock.timing("backward"):
            self._scaler.scale(loss / self._run_config.accumulation).backward()  # type: ignore[no-untyped-call]
            assert vectors.grad is not None
            backward(vectors.grad.index_select(0, own_places))
        return _Batch(loss.detach(), len(rows), figures)

    def _forward(self, chunks: Sequence[PackedBatch]) -> tuple[torch.Tensor, Callable[[torch.Tensor], None]]:
        """Vectors of the names of all chunks, without graph, and the way back for their gradient."""
        if self._recorded is not None and len(chunks) == self._run_config.accumulation == 1:
            recorded = self._recorded.forward(chunks[0])
            if recorded is not None:
                return recorded
        return forward_in_chunks(self._encode, chunks, self._device)

    def _encode(self, batch: PackedBatch) -> torch.Tensor:
        with autocast(self._device, self._precision):
            vectors: torch.Tensor = self._encoder(batch)
        return vectors

    def _update(self, batches: Sequence[_Batch]) -> tuple[torch.Tensor | None, bool]:
        """Move the weights by their gradients, unless these or a loss are not finite.

        Returns:
            norm: Of the gradient, shape (); None where nothing was to be learned.
            overflowed: Whether the gradient overflowed in fp16. In other precisions the device is not waited for.
        """
        with self._clock.timing("optimiser"):
            parameters = list(self._model.parameters())
            gradients = [one.grad for one in parameters if one.grad is not None]
            if not gradients:
                return None, False
            self._scaler.unscale_(self._optimiser)
            norm = _norm(gradients)
            if self._run_config.max_gradient_norm is not None:
                torch.nn.utils.clip_grads_with_norm_(parameters, self._run_config.max_gradient_norm, norm)
            is_finite = torch.isfinite(norm) & torch.isfinite(torch.stack([batch.loss for batch in batches]).sum())
            overflowed = self._update_fp16(is_finite) if self._scaler.is_enabled() else self._update_if(is_finite)
            self._optimiser.zero_grad(set_to_none=True)
        return norm, overflowed

    def _update_if(self, is_finite: torch.Tensor) -> bool:
        optimiser: Any = self._optimiser
        if not optimiser.defaults.get("fused"):
            if bool(is_finite):
                optimiser.step()
            return False
        optimiser.found_inf = (~is_finite).float()  # by which torch's fused optimisers pass over a step
        try:
            optimiser.step()
        finally:
            del optimiser.found_inf
        return False

    def _update_fp16(self, is_finite: torch.Tensor) -> bool:
        scale = self._scaler.get_scale()
        finite = bool(is_finite)
        if finite:
            self._scaler.step(self._optimiser)
        self._scaler.update()
        # A gradient that overflows without being scaled, or whose scale is not to blame, is no matter of fp16.
        return not finite and scale > 1 and self._scaler.get_scale() < scale

    def _wait_for(
        self, batches: Sequence[_Batch], norm: torch.Tensor | None, step: int, *, overflowed: bool
    ) -> list[BatchReport]:
        """What the batches came to: all is read at once, after everything was handed to the device.

        Raises:
            TrainingError: a loss or the gradient is not a number; the weights are as they were.
        """
        figures = [figure for batch in batches for figure in batch.figures.values()]
        found = [*(batch.loss for batch in batches), *figures, *([] if norm is None else [norm])]
        on_device = [torch.as_tensor(figure, dtype=torch.float64, device=self._device) for figure in found]
        numbers = torch.stack(on_device).tolist()
        losses, rest = numbers[: len(batches)], iter(numbers[len(batches) :])
        if not all(map(math.isfinite, losses)):
            raise diverged(f"the loss of step {step + 1} is not a number", self._precision)
        if norm is not None and not math.isfinite(numbers[-1]) and not overflowed:
            raise diverged(f"the gradient of step {step + 1} is not a number", self._precision)
        return [
            BatchReport(loss, batch.names, {name: next(rest) for name in batch.figures})
            for batch, loss in zip(batches, losses, strict=True)
        ]

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
        accumulation = self._run_config.accumulation
        timed = max(1, _SPEED_BATCHES // accumulation)
        times = []
        self._model.train()
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):
            for step in range(2 * timed):
                started = time.perf_counter()
                first = step * accumulation
                numbers = range(first, first + accumulation)
                self._gradients(number % self._batches.steps_per_epoch for number in numbers)
                if self._device.type == "cuda":
                    torch.cuda.synchronize(self._device)
                times.append(time.perf_counter() - started)
        self._optimiser.zero_grad(set_to_none=True)
        self._clock.reset()
        return broadcast(statistics.median(times[timed:]))  # on a GPU some steps are recorded, which takes long


def _norm(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The Euclidean norm over all of them, shape ().

    On a CPU torch's own takes three times as long: it reads all but the largest tensors on one thread.
    """
    if tensors[0].device.type != "cpu":
        return torch.nn.utils.get_total_norm(tensors)
    return torch.stack([torch.dot(numbers, numbers) for numbers in (one.reshape(-1) for one in tensors)]).sum().sqrt()


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
