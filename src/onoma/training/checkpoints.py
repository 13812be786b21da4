"""The state of an unfinished run, in one safetensors file that is replaced atomically.

Holds what exact resume needs: weights, optimiser moments, the random state of dropout, the step, what was measured, and
the tensors of other parts (moving average, best weights, the scale of fp16). No pickle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from onoma.artifacts.system import error_number
from onoma.errors import DamagedArtifactError, MismatchError

CHECKPOINT_NAME = "checkpoint.safetensors"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come."""

    step: int
    """Steps done."""
    seconds: float
    """Training time so far, over all sittings."""
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    """What was measured so far, see `onoma.training.evaluating.Evaluation`."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds of each phase so far, over all sittings."""


class Part(Protocol):
    """What has tensors of its own in a checkpoint."""

    def state(self) -> dict[str, torch.Tensor]:
        """What a resumed run needs."""

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        """Go on from what `state` gave."""


def save_checkpoint(
    folder: Path,
    model: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    progress: Progress,
    *,
    run: str,
    parts: Mapping[str, Part] | None = None,
) -> None:
    """Write the checkpoint of a run; a kill at any moment leaves the previous one or this one.

    Args:
        folder: The run folder.
        model: Its weights.
        optimiser: Its moments.
        progress: How far the run is.
        run: Which run it is.
        parts: What else is kept, by name.

    Raises:
        OSError: it cannot be written, naming the file.
    """
    tensors: dict[str, torch.Tensor] = {f"model.{name}": value for name, value in model.state_dict().items()}
    for row, state in optimiser.state_dict()["state"].items():
        for name, value in state.items():
            tensors[f"optimiser.{row}.{name}"] = torch.as_tensor(value)
    for part, holder in (parts or {}).items():
        tensors |= {f"part.{part}.{name}": value for name, value in holder.state().items()}
    tensors["random.cpu"] = torch.get_rng_state()
    if next(model.parameters()).is_cuda:  # to ask costs memory of a GPU that is not used
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    aside = folder / f".{CHECKPOINT_NAME}.partial"
    try:
        save_file(_storable(tensors), aside, metadata={"progress": json.dumps(asdict(progress)), "run": run})
    except SafetensorError as error:
        number = error_number(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(folder / CHECKPOINT_NAME)) from None
    with aside.open("rb") as handle:
        os.fsync(handle.fileno())
    aside.chmod(folder.stat().st_mode & 0o666)  # safetensors lets only its owner read it
    aside.replace(folder / CHECKPOINT_NAME)


def load_checkpoint(
    folder: Path,
    model: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    *,
    run: str,
    parts: Mapping[str, Part] | None = None,
) -> Progress | None:
    """Put a run back to where its checkpoint was written; None when it has none yet. Arguments as `save_checkpoint`.

    Raises:
        DamagedArtifactError: the file is not a checkpoint.
        MismatchError: it belongs to another model.
    """
    path = folder / CHECKPOINT_NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            progress = Progress(**json.loads(file.metadata()["progress"]))
            found = file.metadata()["run"]
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedArtifactError(f"{path} is not a readable checkpoint ({error}). Remove {folder}.") from None
    if found != run:
        raise MismatchError(f"{path} belongs to another run; remove {folder} to begin anew.")
    try:
        model.load_state_dict({n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")})
    except RuntimeError as error:
        raise MismatchError(f"{path} belongs to another model: {error}") from None
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimiser."):
            _, row, name = key.split(".", 2)
            state.setdefault(int(row), {})[name] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    for part, holder in (parts or {}).items():
        before = f"part.{part}."
        holder.load_state({key.removeprefix(before): t for key, t in tensors.items() if key.startswith(before)})
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])
    return progress


def _storable(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors on the CPU, each in one piece and in memory of its own, as safetensors wants them.

    Only what is not so already is copied: a copy of everything would double the memory of a large model.
    """
    storable: dict[str, torch.Tensor] = {}
    places: set[int] = set()
    for name, value in tensors.items():
        own = value.detach().cpu().contiguous()
        if own.untyped_storage().data_ptr() in places:
            own = own.clone()
        places.add(own.untyped_storage().data_ptr())
        storable[name] = own
    return storable
