"""What is trained moves, what is frozen stays to the bit, and runs resume."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from training_runs import weights

from onoma.encoders import open_encoder
from onoma.encoders.adapter_folders import load_adapter
from onoma.encoders.loading import load_packed
from onoma.encoders.opening import Backend
from onoma.encoders.torch_encoder import TorchEncoder
from onoma.errors import ConfigError
from onoma.pairs import PairSet, build_pairs
from onoma.training.alignment import train_encoder
from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.alignment_step import StepReport
from onoma.training.config_parts import Adapter, Everything, Layers, Lora
from onoma.training.settings import resolve
from onoma.training.tuning import load_base, tune
from tiny import WORDS, make_terminology

TUNINGS: dict[str, dict[str, Any]] = {
    "adapter": {"name": "adapter", "reduction": 4},
    "plain-adapter": {"name": "adapter", "reduction": 1, "invertible": False},
    "lora": {"name": "lora", "rank": 2, "alpha": 4.0, "dropout": 0.1},
}
EVERY_TUNING = pytest.mark.parametrize("tuning", TUNINGS)


@pytest.fixture(scope="module")
def pairs(base: Path, tmp_path_factory: pytest.TempPathFactory) -> PairSet:
    folder = tmp_path_factory.mktemp("pairs")
    terminology = make_terminology(
        folder / "t", {f"X:{word}": [f"{word} disease", f"disease of {word}", f"{word} illness"] for word in WORDS}
    )
    return build_pairs(terminology, base / "tokenizer.json", folder / "p", max_tokens=16)


def config_for(base: Path, tuning: str, **changes: object) -> TrainingConfig:
    values: dict[str, Any] = {
        "base": str(base),
        "tuning": TUNINGS.get(tuning, tuning),
        "steps": 10,
        "batch_pairs": 6,
        "max_tokens": 16,
        "learning_rate": 1e-2,
        "decay_all": True,
        "precision": "fp32",
        "device": "cpu",
    }
    return resolve(TrainingConfig, {**values, **changes})


@EVERY_TUNING
def test_the_encoders_own_weights_stay_to_the_bit(base: Path, pairs: PairSet, tmp_path: Path, tuning: str) -> None:
    report = train_encoder(config_for(base, tuning, steps=40, dropout=0.0), pairs, tmp_path / "e")
    assert report.last_loss < 0.97 * report.first_loss
    before, after = weights(base), weights(tmp_path / "e")
    changed = {name for name, tensor in before.items() if not torch.equal(after[name], tensor)}
    if tuning == "lora":  # merged into these and no others
        assert changed == {
            f"encoder.layer.{layer}.attention.self.{part}.weight" for layer in (0, 1) for part in ("query", "value")
        }
    else:
        assert not changed
    adapter = load_file(tmp_path / "e" / "adapter" / "adapter_model.safetensors")
    fresh = load_packed(base)
    torch.manual_seed(0)
    tune(fresh, config_for(base, tuning).tuning)
    trained = sum(parameter.numel() for parameter in fresh.parameters() if parameter.requires_grad)
    assert trained == sum(tensor.numel() for tensor in adapter.values())
    assert all(tensor.abs().max() > 1e-3 for name, tensor in adapter.items() if ".up." in name or ".lora_B" in name)
    names = ["heart disease", "illness of skin"]
    expected = TorchEncoder(load_adapter(tmp_path / "e", base)).encode(names)
    backends: tuple[Backend, ...] = ("torch", "onnx")
    for backend in backends:
        found = open_encoder(tmp_path / "e", backend=backend).encode(names)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@EVERY_TUNING
def test_an_interrupted_run_goes_on_to_the_same_weights(
    base: Path, pairs: PairSet, tmp_path: Path, tuning: str
) -> None:
    def interrupt(report: StepReport) -> None:
        if report.step == 6:
            raise KeyboardInterrupt

    config = config_for(base, tuning, checkpoint_minutes=1e-9)
    train_encoder(config, pairs, tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        train_encoder(config, pairs, tmp_path / "resumed", on_step=interrupt)
    assert train_encoder(config, pairs, tmp_path / "resumed").resumed_at == 5
    for file in ("model.safetensors", "adapter/adapter_model.safetensors"):
        straight, resumed = load_file(tmp_path / "straight" / file), load_file(tmp_path / "resumed" / file)
        assert straight.keys() == resumed.keys()
        assert all(torch.equal(straight[name], resumed[name]) for name in straight)


def test_only_what_is_trained_needs_gradients(base: Path) -> None:
    for tuning, parts in (
        (Adapter(reduction=4), ("adapter", "coupling")),
        (Adapter(reduction=4, invertible=False), ("adapter",)),
        (Lora(rank=2), ("lora_A", "lora_B")),
    ):
        encoder = load_packed(base)
        tune(encoder, tuning)
        trained = [name for name, parameter in encoder.named_parameters() if parameter.requires_grad]
        assert trained
        assert all(any(part in name for part in parts) for name in trained)
        assert all(any(part in name for name in trained) for part in parts)


def test_layers_are_all_but_the_tables_of_embeddings(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    train_encoder(config_for(base, "layers", steps=3, base_share=0.25), pairs, tmp_path / "e")
    before, after = weights(base), weights(tmp_path / "e")
    kept = {name for name, tensor in before.items() if torch.equal(after[name], tensor)}
    tables = {f"embeddings.{what}_embeddings.weight" for what in ("word", "position", "token_type")}
    assert {name for name in kept if "pooler" not in name} == tables
    assert not (tmp_path / "e" / "adapter").exists()
    encoder = load_packed(base)
    encoder.model.embeddings = torch.nn.Identity()
    with pytest.raises(ConfigError, match="no tables of embeddings"):
        tune(encoder, Layers())


def test_training_everything_leaves_the_encoder_and_the_generator_as_they_are(base: Path) -> None:
    encoder = load_packed(base)
    before = [parameter.requires_grad for parameter in encoder.parameters()]
    state = torch.get_rng_state()
    tune(encoder, Everything())
    assert [parameter.requires_grad for parameter in encoder.parameters()] == before
    assert torch.equal(torch.get_rng_state(), state)


def test_everything_of_an_encoder_with_adapters_can_be_trained(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    train_encoder(config_for(base, "adapter"), pairs, tmp_path / "first")
    config = config_for(tmp_path / "first", "all")
    train_encoder(config, pairs, tmp_path / "second")
    before, after = weights(tmp_path / "first"), weights(tmp_path / "second")
    assert before.keys() == after.keys()
    unchanged = {name for name, tensor in before.items() if torch.equal(after[name], tensor)}
    assert unchanged == {"pooler.dense.weight", "pooler.dense.bias"}
    assert not (tmp_path / "second" / "adapter").exists()
    with pytest.raises(ConfigError, match="has adapters already"):
        tune(load_packed(tmp_path / "first"), Adapter(reduction=4))


@pytest.mark.parametrize(("recipe", "reduction"), [("sapbert-adapter-13", 1), ("sapbert-adapter-1", 16)])
def test_the_papers_recipes_have_the_papers_adapters(recipe: str, reduction: int) -> None:
    assert Recipe.load(recipe).config.tuning == Adapter(reduction=reduction, invertible=True)


@pytest.mark.parametrize(("says_lower", "tokeniser_lowers"), [(True, False), (True, True), (False, False)])
def test_a_base_that_lower_cases_is_not_trained_on_capitals(
    base: Path, tmp_path: Path, says_lower: bool, tokeniser_lowers: bool
) -> None:
    folder = Path(shutil.copytree(base, tmp_path / "base"))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20, "do_lower_case": says_lower}))
    rules = json.loads((folder / "tokenizer.json").read_text())
    rules["normalizer"]["lowercase"] = tokeniser_lowers
    (folder / "tokenizer.json").write_text(json.dumps(rules))
    load_base(config_for(folder, "all", normalisation="sapbert"))
    if says_lower and not tokeniser_lowers:
        with pytest.raises(ConfigError, match=r"lower-cases what it reads, and normalisation=exact"):
            load_base(config_for(folder, "all", normalisation="exact"))
    else:
        load_base(config_for(folder, "all", normalisation="exact"))
