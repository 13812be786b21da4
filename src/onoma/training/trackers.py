"""Where the curves of a run are shown besides its own log: TensorBoard, Weights & Biases, MLflow.

Their files outlast the run and are kept beside the encoder: ``tensorboard/ENCODER``, ``wandb`` and ``mlflow.db`` in the
folder that holds the encoder, unless the library's own environment variables (``WANDB_DIR``, ``MLFLOW_TRACKING_URI``,
...) say otherwise.

A run that resumes after a kill repeats the steps since its checkpoint; no tracker shows them twice. TensorBoard
discards what comes after the checkpoint. The other two cannot: they get only what they have not yet been given, which
on a CPU are the same values to the bit. ``trackers.json`` in the run folder says under which ids they know the run.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import itertools
import json
import os
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from onoma.errors import (
    ConfigError,
    DamagedArtifactError,
    OnomaError,
    UnavailableError,
    check_several,
    missing_extra,
    one_of,
)
from onoma.types import Tell

STATE_NAME = "trackers.json"
_PROJECT = "onoma"
"""What Weights & Biases and MLflow file the runs under, unless their environment variables name another."""
_GONE = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
"""What MLflow says of a run that it does not have, or that was deleted."""
_MLFLOW_SECONDS, _MLFLOW_VALUES = 5.0, 500
"""After so long, or so many values, they are written: one by one would take longer than a step of a small model."""

_MLFLOW_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
"""Where these variables are not set: training stands still while MLflow asks a server again, by itself four minutes."""


class Tracker(Protocol):
    """One of them, open for one run."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Take the values of a step."""

    def flush(self) -> None:
        """Write down what was taken, so that a kill does not lose it."""

    def close(self, *, finished: bool) -> None:
        """End the run, or this sitting of it."""


class Trackers:
    """The trackers of a run; one that fails is reported and left out, and the run continues.

    Args:
        trackers: By name.
        tell: Called with a sentence about one that fails.
    """

    def __init__(self, trackers: Mapping[str, Tracker], tell: Tell) -> None:
        self._trackers, self._tell = dict(trackers), tell

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Show values over steps (counted from 1)."""
        self._each("log", dict(values), step)

    def flush(self) -> None:
        """Call it with every checkpoint: the next sitting gives again only what is after it."""
        self._each("flush")

    def close(self, *, finished: bool = True) -> None:
        """End.

        Args:
            finished: False if the run was stopped and may go on.
        """
        self._each("close", finished=finished)

    def _each(self, what: str, *arguments: Any, **named: Any) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                getattr(tracker, what)(*arguments, **named)
            except Exception as error:  # a server that is down must not end a run of hours
                del self._trackers[name]
                self._tell(f"{name} fails and is left out from here on: {_one_line(error)}")


def check_trackers(names: Sequence[str], out: Path | None = None) -> None:
    """Refuse unusable trackers before the work that leads to them.

    Args:
        names: As `open_trackers` takes them.
        out: The folder to be written, if that is known.

    Raises:
        ConfigError: no such tracker, or it keeps its own files at ``out``.
        InputError: one name instead of a list.
        UnavailableError: its package is not installed.
    """
    check_several(names, "trackers")
    for name in names:
        one_of(name, _TRACKERS, "tracker")
        if importlib.util.find_spec(name) is None:
            raise missing_extra(name, name, f"The tracker {name}")
        if out is not None and out.name == _PLACES[name]:
            raise ConfigError(f"the tracker {name} keeps its own at {out}; call the folder otherwise.")


def open_trackers(
    names: Sequence[str],
    run: Path,
    config: Mapping[str, Any],
    *,
    steps_done: int = 0,
    tell: Tell | None = None,
) -> Trackers:
    """Open trackers for a run.

    Args:
        names: ``tensorboard``, ``wandb``, ``mlflow``; may be empty.
        run: The run folder, ``OUT.run``.
        config: Settings of the run, to be shown with it.
        steps_done: Of a run that resumes; 0 starts anew, whatever the trackers had before.
        tell: Called with a sentence about a tracker that fails later.

    Raises:
        ConfigError: no such tracker.
        UnavailableError: its package is not installed, or it cannot be opened: not logged in, no network.
        DamagedArtifactError: what the run folder says about its trackers cannot be read.
    """
    check_trackers(names)
    if not names:
        return Trackers({}, lambda _: None)
    state = _State(run / STATE_NAME, anew=steps_done == 0)
    opened: dict[str, Tracker] = {}
    told = tell or (lambda _: None)
    for name in dict.fromkeys(names):
        try:
            opened[name] = _TRACKERS[name](run.resolve(), _flat(config), steps_done, state)
        except Exception as error:  # each library raises its own
            Trackers(opened, told).close(finished=False)
            if isinstance(error, OnomaError):
                raise
            said = _one_line(error).removesuffix(".")
            raise UnavailableError(f"the tracker {name} cannot be opened: {said}.{_advice(name)}") from error
    return Trackers(opened, told)


class _State:
    """``trackers.json``: for each tracker, under which id it knows the run, and what more it notes."""

    def __init__(self, file: Path, *, anew: bool) -> None:
        self._file = file
        self._notes: dict[str, dict[str, Any]] = {}
        if not anew and file.exists():
            try:
                self._notes = {name: dict(notes) for name, notes in json.loads(file.read_bytes()).items()}
            except (ValueError, TypeError, AttributeError) as error:
                raise DamagedArtifactError(
                    f"{file} cannot be read ({error}). Leave out --track, or remove that file: trackers other than "
                    "TensorBoard then begin another run, without the steps before."
                ) from None

    def get(self, tracker: str) -> dict[str, Any]:
        return dict(self._notes.get(tracker, {}))

    def put(self, tracker: str, **notes: Any) -> None:
        self._notes[tracker] = {**self.get(tracker), **notes}
        aside = self._file.with_name(f".{self._file.name}.partial")
        aside.write_text(json.dumps(self._notes), encoding="utf-8")
        aside.replace(self._file)  # not synchronised with the disk: it may happen at every step


class _TensorBoard:
    """Event files in ``tensorboard/ENCODER``; ``tensorboard --logdir tensorboard`` shows all encoders there."""

    def __init__(self, run: Path, config: dict[str, str], steps_done: int, _state: _State) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = run.parent / "tensorboard" / _encoder_name(run)
        self._writer: Any = SummaryWriter(str(folder), purge_step=steps_done + 1 if steps_done else 0)
        if steps_done == 0:
            table = "\n".join(f"| {key} | {value} |" for key, value in config.items())
            self._writer.add_text("settings", f"| setting | value |\n|---|---|\n{table}", 0)

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def flush(self) -> None:
        self._writer.flush()

    def close(self, *, finished: bool) -> None:
        self._writer.close()


class _WeightsAndBiases:
    """One W&B run, offline too (``WANDB_MODE=offline``; then ``wandb sync`` of the folder of each sitting)."""

    def __init__(self, run: Path, config: dict[str, str], steps_done: int, state: _State) -> None:
        wandb: Any = importlib.import_module("wandb")
        known = state.get("wandb")
        self._state = state
        self._had = int(known.get("step", -1))
        self._waiting: tuple[int, dict[str, float]] | None = None
        step, values = known.get("waiting", (-1, {}))
        if self._had < step == steps_done:
            self._waiting = step, values
        with _without_arguments():
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", _PROJECT),
                name=os.environ.get("WANDB_NAME", _encoder_name(run)),
                id=known.get("id", uuid.uuid4().hex[:12]),
                resume="allow",
                config=config,
                dir=os.environ.get("WANDB_DIR", str(run.parent)),
                settings=wandb.Settings(console="off"),  # it would wrap the terminal that the progress bar draws on
            )
        state.put("wandb", id=self._run.id)

    def log(self, values: Mapping[str, float], step: int) -> None:
        if step <= self._had:
            return
        # W&B adds nothing to a step once it has it, and the figures of a step come before those of its evaluation.
        if self._waiting is not None and self._waiting[0] == step:
            self._waiting[1].update(values)
            return
        self._send()
        self._waiting = step, dict(values)

    def flush(self) -> None:
        """Note what waits: the evaluation of that step may be left to the next sitting. The rest is given.

        W&B cannot be told to write it: of a run that is killed it loses up to a hundred steps.
        """
        if self._waiting is not None:
            self._state.put("wandb", waiting=self._waiting)

    def _send(self) -> None:
        if self._waiting is not None:
            step, values = self._waiting
            self._state.put("wandb", step=step)  # first: a kill between the two must not lead to a point twice
            self._run.log(values, step=step)
            self._waiting = None

    def close(self, *, finished: bool) -> None:
        if finished:  # else the next sitting does the last step again, or has it from `flush`
            self._send()
        self._run.finish(exit_code=0 if finished else 1)


class _MLflow:
    """One MLflow run, in ``mlflow.db`` or on the server that ``MLFLOW_TRACKING_URI`` names."""

    def __init__(self, run: Path, config: dict[str, str], _steps_done: int, state: _State) -> None:
        for variable, value in _MLFLOW_PATIENCE.items():
            os.environ.setdefault(variable, value)
        tracking: Any = importlib.import_module("mlflow.tracking")
        self._entities: Any = importlib.import_module("mlflow.entities")
        self._client = tracking.MlflowClient(
            os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{(run.parent / 'mlflow.db').as_posix()}")
        )
        self._id = state.get("mlflow").get("id")
        if self._id is None:
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _PROJECT)
            experiment = self._client.get_experiment_by_name(name)
            number = self._client.create_experiment(name) if experiment is None else experiment.experiment_id
            self._id = self._client.create_run(number, run_name=_encoder_name(run)).info.run_id
            settings = [self._entities.Param(key, value) for key, value in config.items()]
            self._client.log_batch(self._id, params=settings)
            state.put("mlflow", id=self._id)
        else:
            try:
                self._client.update_run(self._id, status="RUNNING")
            except Exception as error:
                if getattr(error, "error_code", None) not in _GONE:
                    raise
                raise UnavailableError(
                    f"mlflow does not have the run any more that shows this training so far: "
                    f"{_one_line(error).removesuffix('.')}. To begin another, without the steps before, take 'mlflow' "
                    f"out of {run / STATE_NAME}; or leave out --track mlflow."
                ) from error
        self._names: dict[str, str] = {}
        self._had: dict[str, int] = {}
        self._waiting: list[Any] = []
        self._written = time.monotonic()

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in ((self._allowed(name), value) for name, value in values.items()):
            if name not in self._had:
                history = self._client.get_metric_history(self._id, name)
                self._had[name] = max((point.step for point in history), default=-1)
            if step > self._had[name]:
                self._waiting.append(self._entities.Metric(name, value, int(time.time() * 1000), step))
        if len(self._waiting) >= _MLFLOW_VALUES or time.monotonic() - self._written > _MLFLOW_SECONDS:
            self.flush()

    def _allowed(self, name: str) -> str:
        """What MLflow can call it; two names that it cannot tell apart get a number, in the order they come in."""
        if name not in self._names:
            allowed, taken = _allowed_by_mlflow(name), set(self._names.values())
            more = (f"{allowed} {number}" for number in itertools.count(2))
            self._names[name] = next(one for one in itertools.chain([allowed], more) if one not in taken)
        return self._names[name]

    def flush(self) -> None:
        if self._waiting:
            self._client.log_batch(self._id, metrics=self._waiting)
        self._waiting = []
        self._written = time.monotonic()

    def close(self, *, finished: bool) -> None:
        self.flush()
        self._client.set_terminated(self._id, "FINISHED" if finished else "KILLED")


_TRACKERS: dict[str, Callable[[Path, dict[str, str], int, _State], Tracker]] = {
    "tensorboard": _TensorBoard,
    "wandb": _WeightsAndBiases,
    "mlflow": _MLflow,
}
"""By the name of the package, which is the name of the extra."""
_PLACES = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow.db"}
"""What they make beside the encoder."""


@contextlib.contextmanager
def _without_arguments() -> Iterator[None]:
    """For W&B, which keeps the command line with a run and sends it: --database may have a password in it."""
    given = sys.argv
    sys.argv = given[:1]
    try:
        yield
    finally:
        sys.argv = given


def _advice(name: str) -> str:
    """What may help where a tracker cannot be opened."""
    if name == "wandb" and os.environ.get("WANDB_MODE") != "offline":
        return " Log in (wandb login), or set WANDB_MODE=offline and sync later."
    if name == "mlflow" and "MLFLOW_TRACKING_URI" in os.environ:
        return " Mend MLFLOW_TRACKING_URI, or unset it to write to mlflow.db."
    return ""


def _allowed_by_mlflow(name: str) -> str:
    """``acc@1`` is ``acc_at_1`` there."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("@", "_at_"))


def _encoder_name(run: Path) -> str:
    return run.name.removesuffix(".run")


def _flat(config: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Settings by dotted names, as text; those that are not set are left out."""
    flat: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{key}.")
        elif value is not None:
            flat[f"{before}{key}"] = str(value)
    return flat


def _one_line(error: Exception) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 300 else words[:299] + "…"
