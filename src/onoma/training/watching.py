"""Who follows a run: keywords that every kind of training takes, and that do not affect its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypedDict

from onoma.errors import did_you_mean
from onoma.training.evaluating import Evaluation
from onoma.training.optimiser_step import Done
from onoma.training.trackers import check_trackers
from onoma.types import Progress, Tell


class Watching(TypedDict, Generic[Done], total=False):
    """Keywords of every kind of training; what they name is called in the main process only.

    Example:
        >>> train_encoder("quickstart", "pairs", "out", on_event=print, trackers=["tensorboard"])  # doctest: +SKIP
    """

    trackers: Sequence[str]
    """Where to show the curves too: ``tensorboard``, ``wandb``, ``mlflow``."""
    on_step: Callable[[Done], None] | None
    """Called after every step."""
    on_evaluation: Callable[[Evaluation], None] | None
    """Called after every evaluation."""
    on_event: Tell | None
    """Called with sentences worth telling: device, number of steps, resuming, evaluations, saving."""
    progress: Progress | None
    """Called with (done, total, what) while data are made ready, and while the model is measured."""


def check_watching(watching: Mapping[str, Any], out: Path | None = None) -> None:
    """Refuse what cannot follow a run, before the work that leads to it.

    Args:
        watching: See `Watching`.
        out: The folder to be written, if that is known.

    Raises:
        TypeError: there is no such keyword.
        ConfigError: there is no such tracker, or it keeps its own at ``out``.
        UnavailableError: the package of a tracker is not installed.
    """
    for name in watching.keys() - Watching.__annotations__.keys():
        raise TypeError(f"training has no keyword '{name}'.{did_you_mean(name, Watching.__annotations__)}")
    check_trackers(watching.get("trackers", ()), out)
