"""Rerankers of every sort of base and tuning: what was trained is what the folder has, or it is refused in words."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_training_reranking import MENTIONS, MISLEADING, config_for
from transformers import AlbertConfig, AlbertModel, AutoConfig

from onoma.encoders.cross_encoder import pair_tokeniser
from onoma.encoders.cross_encoder_model import load_cross_encoder, score_pairs
from onoma.encoders.loading import load_packed
from onoma.errors import ConfigError, TrainingError
from onoma.linking.reranking import Reranker
from onoma.training.reranking import train_reranker
from tiny import WORDS, tiny_encoder
from tiny_rerankers import TableLinker


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base") / "bert", extra_tokens=[*WORDS, "ill"], weight_std=0.1)


@pytest.mark.parametrize("tuning", ["adapter", "lora"])
def test_what_stands_beside_frozen_weights_is_in_the_folder(tuning: str, base: Path, tmp_path: Path) -> None:
    config = config_for(base, steps=3, tuning={"name": tuning}, weight=1.0)
    train_reranker(config, MISLEADING, MENTIONS, tmp_path / "r")
    loaded, _ = load_cross_encoder(tmp_path / "r")
    before, after = load_packed(base).state_dict(), loaded.encoder.state_dict()
    changed = {name.rsplit(".", 2)[1] for name, weight in before.items() if not torch.equal(after[name], weight)}
    assert changed == ({"query", "value"} if tuning == "lora" else set())  # LoRA is merged into these
    assert not (tmp_path / "r" / "model" / "adapter").exists(), "joined with its base it would be taken for an encoder"
    reranker = Reranker.open(tmp_path / "r", threads=1)
    tokeniser = pair_tokeniser(tmp_path / "r", reranker.about, prepare=str)
    mentions, names = ["heart x", "lung x"], ["ill heart", "heart y"]
    rows = np.arange(2)
    pairs = tokeniser.pairs(tokeniser.mentions(mentions), rows, tokeniser.names(names), rows)
    with torch.inference_mode():
        np.testing.assert_allclose(reranker.scores(mentions, names), score_pairs(loaded, pairs, rows), atol=1e-5)


def test_a_base_of_one_token_type(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "bert", extra_tokens=[*WORDS, "ill"], weight_std=0.1, type_vocab_size=1)
    report = train_reranker(config_for(base, steps=2), MISLEADING, MENTIONS, tmp_path / "r", development=[MENTIONS])
    assert report.steps == 2
    assert Reranker.open(tmp_path / "r", threads=1).scores(["heart x"], ["ill heart"]).shape == (1,)


def with_another_activation(base: Path) -> None:
    file = base / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "hidden_act": "silu"}))


def of_another_family(base: Path) -> None:
    bert = AutoConfig.from_pretrained(base)
    shape: Any = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    AlbertModel(AlbertConfig(vocab_size=bert.vocab_size, embedding_size=8, **shape)).save_pretrained(base)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [(with_another_activation, "with this activation"), (of_another_family, "must be of the family of BERT")],
)
def test_a_base_of_which_no_reranker_can_be_is_refused_before_candidates_are_found(
    spoil: Callable[[Path], None], message: str, base: Path, tmp_path: Path
) -> None:
    shutil.copytree(base, tmp_path / "spoilt")
    spoil(tmp_path / "spoilt")
    with pytest.raises(ConfigError, match=message):
        train_reranker(config_for(tmp_path / "spoilt"), TableLinker({}), MENTIONS, tmp_path / "r")
    assert not list(tmp_path.glob("r*"))


def test_a_run_that_diverges_in_its_last_step_says_so(base: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="its training has diverged"):
        train_reranker(config_for(base, steps=1, learning_rate=1e30), MISLEADING, MENTIONS, tmp_path / "r")
    assert not (tmp_path / "r").exists()
