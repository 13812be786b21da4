"""Neighbour batches, Matryoshka and the mean without special tokens, in whole runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from training_runs import interrupt_at, weights

from onoma.encoders import locate_encoder, open_encoder
from onoma.encoders.loading import load_packed
from onoma.encoders.packed import pack
from onoma.errors import ConfigError, TrainingError
from onoma.pairs import PairSet
from onoma.training.alignment import train_encoder
from onoma.training.alignment_config import TrainingConfig
from onoma.training.run_folder import run_folder
from tiny import WORDS, tiny_encoder

NEAR = {"name": "neighbours", "neighbours": 2, "refresh_steps": 3, "warmup_steps": 1}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny_encoder(tmp_path_factory.mktemp("base") / "bert")
    # Random models this small give all names nearly one vector; with weights this large they tell names apart.
    tensors = load_file(folder / "model.safetensors")
    larger = {name: 20 * value if value.ndim > 1 else value for name, value in tensors.items()}
    save_file(larger, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def config_for(base: Path, **changes: object) -> TrainingConfig:
    values = {
        "base": str(base),
        "steps": 9,
        "batch_pairs": 6,
        "max_tokens": 16,
        "learning_rate": 1e-3,
        "dropout": 0.1,
        "precision": "fp32",
        "device": "cpu",
        "batches": NEAR,
        "checkpoint_steps": 1,
    }
    return TrainingConfig.model_validate({**values, **changes})


@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_run_interrupted_anywhere_goes_on_to_the_same_weights(
    base: Path, pairs: PairSet, tmp_path: Path, accumulation: int
) -> None:
    config = config_for(base, accumulation=accumulation, matryoshka=[4, 8], pooling="mean-nospec")
    told: list[str] = []
    straight = train_encoder(config, pairs, tmp_path / "straight", on_event=told.append)
    assert sum("comparing 24 names" in sentence for sentence in told) == 3  # before steps 2, 5 and 8
    for step in (1, 3, 8):
        with pytest.raises(KeyboardInterrupt):
            train_encoder(config, pairs, tmp_path / "broken", on_step=interrupt_at(step))
    resumed = train_encoder(config, pairs, tmp_path / "broken")
    assert resumed.resumed_at is not None
    assert [line["loss"] for line in resumed.log] == [line["loss"] for line in straight.log]
    one, other = weights(tmp_path / "straight"), weights(tmp_path / "broken")
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_neighbours_are_those_of_the_weights_without_dropout(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    config = config_for(base, batches={**NEAR, "warmup_steps": 0}, dropout=0.5, seed=5)
    with pytest.raises(KeyboardInterrupt):
        train_encoder(config, pairs, tmp_path / "e", on_step=interrupt_at(1))
    table = np.load(run_folder(tmp_path / "e") / "neighbours-0000000.npy")

    model = load_packed(base, max_tokens=16)
    with torch.no_grad():
        vectors = torch.nn.functional.normalize(model(pack(pairs.store.offsets, pairs.store.ids)), dim=1).numpy()
    similarity = vectors @ vectors.T
    similarity[pairs.labels[:, None] == pairs.labels[None, :]] = -2
    assert np.abs(np.diff(np.sort(similarity, axis=1)[:, -5:])).min() > 1e-6  # no ties
    seeds = np.random.default_rng([5, 0]).permutation(len(pairs.pairs))[: len(table)]
    for seed, companions in zip(seeds, table, strict=True):
        found = pairs.labels[pairs.pairs[companions, 0]].tolist()
        by_name = []
        for name in pairs.pairs[seed]:
            concepts = pairs.labels[np.argsort(-similarity[name])]
            by_name.append(list(dict.fromkeys(concepts.tolist()))[:2])
        assert found in by_name


def test_a_run_without_its_neighbours_says_what_to_do(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train_encoder(config_for(base), pairs, tmp_path / "e", on_step=interrupt_at(4))
    for table in run_folder(tmp_path / "e").glob("neighbours-*"):
        table.unlink()
    with pytest.raises(TrainingError, match=r"neighbours found at batch 1 cannot be read.*Remove .*e\.run"):
        train_encoder(config_for(base), pairs, tmp_path / "e")


def test_a_budget_of_minutes_counts_the_comparisons(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    report = train_encoder(config_for(base, steps=None, minutes=0.01), pairs, tmp_path / "e")
    assert report.steps >= 1
    again = train_encoder(config_for(base, steps=report.steps), pairs, tmp_path / "steps")
    assert [line["loss"] for line in report.log] == [line["loss"] for line in again.log]


def test_matryoshka_trains_the_prefix_and_is_refused_beyond_the_width(
    base: Path, pairs: PairSet, tmp_path: Path
) -> None:
    losses = []
    for matryoshka in ([], [4]):
        config = config_for(base, batches="random", steps=15, dropout=0.0, matryoshka=matryoshka)
        train_encoder(config, pairs, tmp_path / f"e{len(matryoshka)}")
        names = [f"{word} {kind}" for word in WORDS for kind in ("disease", "illness")]
        vectors = open_encoder(tmp_path / f"e{len(matryoshka)}").encode(names)[:, :4]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        similarity = (vectors @ vectors.T).reshape(8, 2, 8, 2)
        own = np.mean([similarity[word, 0, word, 1] for word in range(8)])
        losses.append(float(similarity[:, 0, :, 1].mean() - own))
    assert losses[1] < losses[0]
    with pytest.raises(ConfigError, match=r"asks for 8, 16 of the 16 numbers"):
        train_encoder(config_for(base, matryoshka=[8, 16]), pairs, tmp_path / "wide")


def test_a_run_pools_without_special_tokens(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    train_encoder(config_for(base, steps=1, pooling="mean-nospec", batches="random"), pairs, tmp_path / "e")
    assert locate_encoder(tmp_path / "e").pooling == "mean-nospec"


@pytest.mark.parametrize("length", [{"steps": 4}, {"epochs": 0.2}, {"minutes": 1e-5}])
def test_a_run_that_is_over_before_there_are_neighbours_is_refused(
    length: dict[str, object], base: Path, pairs: PairSet, tmp_path: Path
) -> None:
    config = config_for(base, batches={**NEAR, "warmup_steps": 4}, **{"steps": None, **length})
    for _ in range(2):  # what was refused is not taken for an unfinished run
        with pytest.raises(ConfigError, match=r"warmup_steps: its 4 batches leave none of the run's [1-4] for neighb"):
            train_encoder(config, pairs, tmp_path / "e")
    train_encoder(config_for(base, steps=1, batches="random"), pairs, tmp_path / "e")
