"""The report of a finished run: ``train.json``."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any

import torch

from onoma._version import __version__


@dataclass(slots=True)
class TrainingReport:
    """A finished run; ``train.json`` of the encoder folder holds the same."""

    run: str = field(repr=False)
    """Which run it was: the SHA-256 of its ``run.json``."""
    steps: int
    """Done; fewer than planned if it was stopped early."""
    planned_steps: int
    stopped_early: str | None
    """Why, if it was."""
    seconds: float
    """Over all sittings, evaluations included."""
    names_per_second: float
    """In the steps, without evaluations."""
    first_loss: float
    """Mean over the first ten steps, or the first half of fewer than twenty; of those that have names."""
    last_loss: float
    """Mean over as many last ones."""
    best: dict[str, Any] | None
    """``step`` and ``at_1`` of the best evaluation."""
    saved_step: int
    """The step whose weights were saved: the last, or the best."""
    evaluations: list[dict[str, Any]] = field(repr=False)
    """See `onoma.training.evaluating.Evaluation`."""
    resumed_at: int | None
    recipe: dict[str, Any] | None
    """``name`` of the recipe and the settings ``overridden`` in it; unset: settings of no recipe."""
    config: dict[str, Any] = field(repr=False)
    ran_on: dict[str, Any]
    """Device, precision, number of processes."""
    machine: dict[str, Any]
    """See `onoma.processors.machine`; and threads of torch, with which the last bits of weights change."""
    base: str
    """Fingerprint of the encoder that training began with."""
    versions: dict[str, str] = field(repr=False)
    data: dict[str, Any] = field(repr=False)
    """How much was trained on (pairs, names, concepts, ...), its fingerprint, and the development sets."""
    phases: dict[str, float] = field(repr=False)
    """Seconds spent packing, in forward, loss, backward, the optimiser and evaluations, over all sittings."""
    log: list[dict[str, Any]] = field(repr=False)
    """A `onoma.training.optimiser_step.DoneStep` for each step."""

    def figures(self) -> dict[str, Any]:
        """All but the log, JSON-serialisable."""
        return {name: value for name, value in asdict(self).items() if name != "log"}

    def to_json(self) -> str:
        """The report as text, a line for each step of the log."""
        steps = ",\n  ".join(json.dumps(line) for line in self.log)
        before = json.dumps(self.figures(), indent=1).removesuffix("\n}")
        return f'{before},\n "log": [\n  {steps}\n ]\n}}\n'


def versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    packages = ("transformers", "tokenizers", "numpy")
    return {
        "onoma": __version__,
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in packages},
        "torch": torch.__version__,  # with the build: 2.13.0+cpu
    }


def mean_loss(lines: Sequence[dict[str, Any]]) -> float:
    """Mean loss of some lines of the log; steps without names, from which nothing was learned, have none."""
    losses = [line["loss"] for line in lines if line["names"]]
    return float(sum(losses)) / max(1, len(losses))
