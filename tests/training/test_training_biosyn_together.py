"""A run of BioSyn by two processes (gloo): they train as one, and go on exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from biosyn_tasks import MENTIONS, NAMES, config_for, recipe_of, write_lines
from together import check_same_weights, check_two_processes

from onoma.encoders.folders import read_folder
from onoma.training.biosyn import train_biosyn
from onoma.training.biosyn_config import BiosynConfig, BiosynRecipe
from onoma.training.biosyn_step import BiosynStep
from tiny import tiny_encoder


def test_two_processes_train_as_one_and_go_on_exactly(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base", weight_std=0.25)
    files = write_lines(tmp_path / "mentions.txt", MENTIONS), write_lines(tmp_path / "names.txt", NAMES)
    config = config_for(base, steps=8, similarity="dot", checkpoint_steps=6, keep="best", learning_rate=1e-4)
    kinds = (train_biosyn, BiosynRecipe, BiosynConfig, BiosynStep)
    main = check_two_processes(tmp_path, *kinds, config=config, inputs=["mentions.txt", "names.txt"])

    alone = train_biosyn(recipe_of(config), *files, tmp_path / "alone", development=[files[0]])
    for key in ("loss", "sparse_weight"):
        assert [line[key] for line in main["log"]] == pytest.approx([line[key] for line in alone.log], abs=1e-4)
    sparse = [read_folder(tmp_path / name).sparse_weight for name in ("straight", "alone")]
    assert sparse[0] == pytest.approx(sparse[1], rel=1e-3)
    check_same_weights(tmp_path / "alone", tmp_path / "straight")
