"""A run of BioSyn by two processes (gloo): they train as one, and go on exactly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from biosyn_tasks import MENTIONS, NAMES, config_for, recipe_of, write_lines
from safetensors.torch import load_file
from test_training_distributed import finish, start

from onoma.encoders.folders import read_folder
from onoma.training.biosyn import train_biosyn
from tiny import tiny_encoder

TOGETHER = """
import json, sys
from pathlib import Path
import torch
from onoma.training.biosyn import train_biosyn
from onoma.training.biosyn_config import BiosynConfig, BiosynRecipe
from onoma.training.biosyn_step import BiosynStep
from onoma.training.distributed import processes, rank

torch.set_num_threads(1)
folder = Path(sys.argv[1])
recipe = BiosynRecipe(name="tiny", description="", config=BiosynConfig.model_validate_json(sys.argv[2]))
plain_step = BiosynStep.__call__


def killed(step, number, total_steps):
    if number == 7:
        raise KeyboardInterrupt
    return plain_step(step, number, total_steps)


def train(name):
    mentions = folder / "mentions.txt"
    return train_biosyn(recipe, mentions, folder / "names.txt", folder / name, development=[mentions])


with processes("cpu"):
    train("straight")
    BiosynStep.__call__ = killed
    try:
        train("killed")
    except KeyboardInterrupt:
        BiosynStep.__call__ = plain_step
    resumed = train("killed")
    said = {"resumed_at": resumed.resumed_at, "evaluations": resumed.evaluations, "log": resumed.log}
    (folder / f"{rank()}.json").write_text(json.dumps(said))
"""


def test_two_processes_train_as_one_and_go_on_exactly(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base", weight_std=0.25)
    files = write_lines(tmp_path / "mentions.txt", MENTIONS), write_lines(tmp_path / "names.txt", NAMES)
    config = config_for(base, steps=8, similarity="dot", checkpoint_steps=6, keep="best", learning_rate=1e-4)
    said = finish(started := start(2, "-c", TOGETHER, str(tmp_path), config.model_dump_json()))
    assert [process.returncode for process in started] == [0, 0], said
    main, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert main["resumed_at"] == 6
    assert [line["loss"] for line in main["log"]] == [line["loss"] for line in other["log"]]
    assert main["evaluations"] == other["evaluations"]
    straight, resumed = (load_file(tmp_path / name / "model.safetensors") for name in ("straight", "killed"))
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)

    alone = train_biosyn(recipe_of(config), *files, tmp_path / "alone", development=[files[0]])
    for key in ("loss", "sparse_weight"):
        assert [line[key] for line in main["log"]] == pytest.approx([line[key] for line in alone.log], abs=1e-4)
    weights = [read_folder(tmp_path / name).sparse_weight for name in ("straight", "alone")]
    assert weights[0] == pytest.approx(weights[1], rel=1e-3)
    for name, weight in load_file(tmp_path / "alone" / "model.safetensors").items():
        if not name.endswith("key.bias"):  # its gradient is zero but for rounding, of which Adam makes whole steps
            np.testing.assert_allclose(straight[name].numpy(), weight.numpy(), atol=2e-5, err_msg=name)
