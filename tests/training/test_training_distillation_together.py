"""Distillation by two processes (gloo): they train as one, and go on exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_training_distillation import KINDS, config_for, distil
from together import check_same_weights, check_two_processes

from onoma.linking import build_linker
from onoma.training.distillation import distil_encoder
from onoma.training.distillation_config import DistillationConfig, DistillationRecipe
from onoma.training.distillation_step import DistillationStep
from tiny import WORDS, make_terminology, tiny_encoder


def test_two_processes_train_as_one_and_go_on_exactly(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base", weight_std=0.25)
    teacher = tiny_encoder(tmp_path / "teacher", extra_tokens=WORDS, seed=7, weight_std=0.25)
    concepts = {f"D{row}": [f"{word} {kind}" for kind in KINDS] for row, word in enumerate(WORDS)}
    linker = build_linker(make_terminology(tmp_path / "t", concepts), teacher, tmp_path / "linker")
    mentions = tmp_path / "mentions.txt"
    mentions.write_text("".join(f"D{row}||bad {word}\n" for row, word in enumerate(WORDS)))
    config = config_for(base, steps=8, checkpoint_steps=6, keep="best", learning_rate=1e-4)
    kinds = (distil_encoder, DistillationRecipe, DistillationConfig, DistillationStep)
    main = check_two_processes(tmp_path, *kinds, config=config, inputs=["linker"])

    alone = distil(config, linker, tmp_path / "alone", development=[mentions])
    for key in ("loss", "same_nearest"):
        assert [line[key] for line in main["log"]] == pytest.approx([line[key] for line in alone.log], abs=1e-4)
    check_same_weights(tmp_path / "alone", tmp_path / "straight")
