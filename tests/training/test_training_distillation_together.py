"""Distillation by two processes (gloo): they train as one, and go on exactly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_training_distillation import KINDS, config_for, distil
from test_training_distributed import finish, start

from onoma.linking import build_linker
from tiny import WORDS, make_terminology, tiny_encoder

TOGETHER = """
import json, sys
from pathlib import Path
import torch
from onoma.training.distillation import distil_encoder
from onoma.training.distillation_config import DistillationConfig, DistillationRecipe
from onoma.training.distillation_step import DistillationStep
from onoma.training.distributed import processes, rank

torch.set_num_threads(1)
folder = Path(sys.argv[1])
recipe = DistillationRecipe(name="tiny", description="", config=DistillationConfig.model_validate_json(sys.argv[2]))
plain_step = DistillationStep.__call__


def killed(step, number, total_steps):
    if number == 7:
        raise KeyboardInterrupt
    return plain_step(step, number, total_steps)


def train(name):
    return distil_encoder(recipe, folder / "linker", folder / name, development=[folder / "mentions.txt"])


with processes("cpu"):
    train("straight")
    DistillationStep.__call__ = killed
    try:
        train("killed")
    except KeyboardInterrupt:
        DistillationStep.__call__ = plain_step
    resumed = train("killed")
    said = {"resumed_at": resumed.resumed_at, "evaluations": resumed.evaluations, "log": resumed.log}
    (folder / f"{rank()}.json").write_text(json.dumps(said))
"""


def test_two_processes_train_as_one_and_go_on_exactly(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base", weight_std=0.25)
    teacher = tiny_encoder(tmp_path / "teacher", extra_tokens=WORDS, seed=7, weight_std=0.25)
    concepts = {f"D{row}": [f"{word} {kind}" for kind in KINDS] for row, word in enumerate(WORDS)}
    linker = build_linker(make_terminology(tmp_path / "t", concepts), teacher, tmp_path / "linker")
    (tmp_path / "mentions.txt").write_text("".join(f"D{row}||bad {word}\n" for row, word in enumerate(WORDS)))
    config = config_for(base, steps=8, checkpoint_steps=6, keep="best", learning_rate=1e-4)
    said = finish(started := start(2, "-c", TOGETHER, str(tmp_path), config.model_dump_json()))
    assert [process.returncode for process in started] == [0, 0], said
    main, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert main["resumed_at"] == 6
    assert [line["loss"] for line in main["log"]] == [line["loss"] for line in other["log"]]
    assert main["evaluations"] == other["evaluations"]
    straight, resumed = (load_file(tmp_path / name / "model.safetensors") for name in ("straight", "killed"))
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)

    alone = distil(config, linker, tmp_path / "alone", development=[tmp_path / "mentions.txt"])
    for key in ("loss", "same_nearest"):
        assert [line[key] for line in main["log"]] == pytest.approx([line[key] for line in alone.log], abs=1e-4)
    for name, weight in load_file(tmp_path / "alone" / "model.safetensors").items():
        if not name.endswith("key.bias"):  # its gradient is zero but for rounding, of which Adam makes whole steps
            np.testing.assert_allclose(straight[name].numpy(), weight.numpy(), atol=2e-5, err_msg=name)
