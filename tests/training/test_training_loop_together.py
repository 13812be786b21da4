"""A whole run by two processes (gloo): the main one writes, the others follow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_training_distributed import finish, start

from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.run import train_on_terminology
from tiny import WORDS, make_terminology, tiny_encoder

TOGETHER = """
import json, sys
from pathlib import Path
from onoma.training import alignment_step
from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.distributed import processes, rank
from onoma.training.run import train_on_terminology

folder, config = Path(sys.argv[1]), TrainingConfig.model_validate_json(sys.argv[2])
measured = []
plain_step = alignment_step.Step.__call__


def killed(self, number, total_steps):
    if number == 3:
        raise KeyboardInterrupt
    return plain_step(self, number, total_steps)


def train(name):
    recipe, told = Recipe(name="tiny", description="", config=config), []
    report = train_on_terminology(
        recipe,
        folder / "t",
        folder / name,
        development_synonyms=6,
        on_step=told.append,
        on_event=told.append,
        progress=lambda *counted: measured.append(counted),
    )
    return report, len(told)


with processes("cpu"):
    straight, n_told = train("straight")
    alignment_step.Step.__call__ = killed
    try:
        train("killed")
    except KeyboardInterrupt:
        alignment_step.Step.__call__ = plain_step
    resumed, _ = train("killed")
    said = {"told": n_told, "resumed_at": resumed.resumed_at, "evaluations": resumed.evaluations, "log": resumed.log}
    said["measured"] = [counted for counted in measured if counted[2] == "measuring"]
    me = rank()
tasks = Path("/proc/self/task")  # Linux only
said["threads_left"] = [(task / "comm").read_text().strip() for task in tasks.iterdir()] if tasks.exists() else []
(folder / f"{me}.json").write_text(json.dumps(said))
"""


def test_two_processes_train_as_one_and_go_on_exactly(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base")
    names = {f"X:{word}": [f"{word} disease", f"disease of {word}", f"{word} ill", f"sick {word}"] for word in WORDS}
    make_terminology(tmp_path / "t", names)
    values = {"base": str(base), "pooling": "mean", "steps": 5, "batch_pairs": 6, "max_tokens": 16, "device": "cpu"}
    values |= {"learning_rate": 1e-3, "precision": "fp32", "checkpoint_steps": 2, "evaluate_steps": 2}
    values |= {"average": 0.9, "keep": "best", "dropout": 0.0}
    values |= {"batches": {"name": "neighbours", "neighbours": 1, "refresh_steps": 2}}
    config = TrainingConfig.model_validate(values)
    said = finish(started := start(2, "-c", TOGETHER, str(tmp_path), config.model_dump_json()))
    assert [process.returncode for process in started] == [0, 0], said
    main, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert main["told"] > 5
    assert other["told"] == 0
    assert {done == total for done, total, _ in main["measured"]} == {True}  # each in one batch
    assert other["measured"] == []
    assert main["resumed_at"] == 2
    # A thread of the group that outlives it may abort the process when the interpreter ends.
    assert not [name for told in (main, other) for name in told["threads_left"] if "gloo" in name]
    assert main["log"] == other["log"]
    assert main["evaluations"] == other["evaluations"]
    straight, resumed = (load_file(tmp_path / name / "model.safetensors") for name in ("straight", "killed"))
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)

    recipe = Recipe(name="tiny", description="", config=config)
    alone = train_on_terminology(recipe, tmp_path / "t", tmp_path / "alone", development_synonyms=6)
    assert [line["loss"] for line in main["log"]] == pytest.approx([line["loss"] for line in alone.log], abs=1e-5)
    assert [line["at_1"] for line in main["evaluations"]] == [line["at_1"] for line in alone.evaluations]
    by_one = load_file(tmp_path / "alone" / "model.safetensors")
    for name, weight in by_one.items():
        np.testing.assert_allclose(straight[name].numpy(), weight.numpy(), atol=2e-5, err_msg=name)
