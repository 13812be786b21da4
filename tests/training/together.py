"""Runs of two processes (gloo), of which one is killed and goes on: what tests of several kinds of training share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from test_training_distributed import finish, start
from training_runs import weights

_SCRIPT = """
import json, sys
from importlib import import_module
from pathlib import Path
import torch
from onoma.training.distributed import processes, rank

torch.set_num_threads(1)
folder, about = Path(sys.argv[1]), json.loads(sys.argv[2])
train, recipe, config, step_of = (getattr(import_module(module), name) for module, name in about["parts"])
recipe = recipe(name="tiny", description="", config=config.model_validate_json(about["config"]))
plain_step = step_of.__call__


def killed(step, number, total_steps):
    if number == 7:
        raise KeyboardInterrupt
    return plain_step(step, number, total_steps)


def run(name):
    inputs = [folder / one for one in about["inputs"]]
    return train(recipe, *inputs, folder / name, development=[folder / "mentions.txt"])


with processes("cpu"):
    run("straight")
    step_of.__call__ = killed
    try:
        run("killed")
    except KeyboardInterrupt:
        step_of.__call__ = plain_step
    resumed = run("killed")
    said = {"resumed_at": resumed.resumed_at, "evaluations": resumed.evaluations, "log": resumed.log}
    (folder / f"{rank()}.json").write_text(json.dumps(said))
"""


def check_two_processes(folder: Path, *parts: Any, config: Any, inputs: list[str]) -> dict[str, Any]:
    """Train in two processes, once straight on and once killed before the eighth step: both come to the same.

    Args:
        folder: Where inputs lie, ``mentions.txt`` to measure on among them, and encoders are written.
        parts: The function that trains, its recipe, its configuration, its step; classes and functions.
        config: Settings with a checkpoint at the sixth step.
        inputs: Files and folders that the function is given, between recipe and output.

    Returns:
        What the main process said of the killed run: ``log`` and ``evaluations``.
    """
    named = [(part.__module__, part.__name__) for part in parts]
    about = json.dumps({"parts": named, "config": config.model_dump_json(), "inputs": inputs})
    said = finish(started := start(2, "-c", _SCRIPT, str(folder), about))
    assert [process.returncode for process in started] == [0, 0], said
    main, other = (json.loads((folder / f"{rank}.json").read_text()) for rank in range(2))
    assert main["resumed_at"] == 6
    assert [line["loss"] for line in main["log"]] == [line["loss"] for line in other["log"]]
    assert main["evaluations"] == other["evaluations"]
    straight, resumed = weights(folder / "straight"), weights(folder / "killed")
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)
    found: dict[str, Any] = main
    return found


def check_same_weights(folder: Path, other: Path) -> None:
    """Two encoders have the same weights, but for rounding."""
    found = weights(other)
    for name, weight in weights(folder).items():
        if not name.endswith("key.bias"):  # its gradient is zero but for rounding, of which Adam makes whole steps
            torch.testing.assert_close(found[name], weight, atol=2e-5, rtol=1e-7, msg=name)
