"""The scripts in ``benchmarks/`` that time training compare what they say they compare."""

from __future__ import annotations

import argparse
import copy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tiny import tiny_encoder

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import encoder_flops
import gpu_training
import synthetic_names
import training_step
import training_variants
from onoma.encoders.loading import load_packed
from onoma.encoders.packed import pack_lists
from onoma.encoders.pooling import Pooling
from onoma.encoders.sources import locate_encoder
from onoma.training.alignment_config import TrainingConfig
from onoma.training.alignment_step import Step, make_optimiser
from onoma.training.batches import PairBatches


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ["disease", "syndrome", "liver", "acute", "chronic", "skin", "bone", "kidney", "tumour", "familial"]
    return tiny_encoder(tmp_path_factory.mktemp("base") / "bert", extra_tokens=words, weight_std=0.3)


def test_synthetic_names_are_as_long_as_real_ones() -> None:
    lengths = synthetic_names.name_lengths(200_000, np.random.default_rng(0))
    assert lengths.mean() == pytest.approx(9.4, abs=0.05)
    assert np.percentile(lengths, [50, 95]).tolist() == [9, 17]
    assert (lengths > 25).mean() == pytest.approx(0.005, abs=0.0015)


def test_synthetic_synonyms_have_the_tokens_they_were_made_for(base: Path) -> None:
    tokenizer = locate_encoder(base).load_tokenizer()
    rng = np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(synthetic_names, "name_lengths", lambda n, rng: np.resize([4, 6], n))
        pairs = synthetic_names.pairs_of_texts(synthetic_names.synonym_texts(tokenizer, 3, rng), tokenizer)
    assert np.diff(pairs.store.offsets).tolist() == [4, 6] * 3
    assert pairs.pairs.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert pairs.labels.tolist() == [0, 0, 1, 1, 2, 2]


def test_flop_are_those_that_torch_counts(base: Path) -> None:
    encoder = load_packed(base, pooling="mean")
    rng = np.random.default_rng(0)
    names = [rng.integers(4, 60, length) for length in (3, 3, 5, 9)]
    config, lengths = encoder.model.config, np.array([len(name) for name in names])
    # On a CPU the tokens are filled up, and these names share a block of 32; the counter counts that and we do not.
    padded, block = 256 / lengths.sum(), np.array([32])
    for backward in (True, False):
        counter = FlopCounterMode(display=False)
        with counter:
            vectors = encoder(pack_lists(names))
            if backward:
                vectors.sum().backward()
        products = encoder_flops.weight_products(
            config, int(lengths.sum()), len(names), first_only=False, backward=backward
        )
        in_attention = encoder_flops.attention_flop(config, block, first_only=False, backward=backward)
        expected = padded * encoder_flops.flop(products) + in_attention
        assert counter.get_total_flops() == pytest.approx(expected, rel=1e-6)


def test_flop_of_attention_are_those_of_each_token_with_its_own_name() -> None:
    config = SimpleNamespace(hidden_size=8, num_hidden_layers=3)
    pairs = [3 * 3 + 5 * 5, 3 * 3 + 5 * 5, 3 + 5]  # of the last layer, those of first tokens
    # Forward and twice as much back, queries with keys and weights with values, multiplied and added.
    assert encoder_flops.attention_flop(config, np.array([3, 5]), first_only=True) == sum(pairs) * 3 * 2 * 2 * 8


def test_reference_and_ours_go_the_same_way(base: Path) -> None:
    texts = synthetic_names.synonym_texts(locate_encoder(base).load_tokenizer(), 24, np.random.default_rng(0))
    setting = training_variants.Setting(
        base=str(base), texts=tuple(texts), batch_pairs=8, pooling="cls", threads=1, learning_rate=1e-3, dropout=0.0
    )
    reference = training_variants.Reference(setting)
    ours = training_variants.Ours(setting, precision="fp32")
    in_chunks = training_variants.Ours(setting, precision="fp32", chunks=4)
    losses = np.array([[one_step(step) for step in range(6)] for one_step in (reference, ours, in_chunks)])
    assert np.ptp(losses[0]) > 0.01
    np.testing.assert_allclose(losses[1:], losses[[0, 0]], atol=1e-5, rtol=0)
    assert set(reference.phases) == set(ours.phases)
    assert all(seconds > 0 for seconds in ours.phases.values())


def test_the_table_has_a_line_for_each_variant() -> None:
    row: dict[str, Any] = {
        "variant": "ours, bf16",
        "seconds": 0.5,
        "names_per_second": 1024.0,
        "times_reference": 10.0,
        "times_reference_cpu": 9.0,
        "peak_mib": 800.0,
        "share_of_phases": {"pack": 0.01, "forward": 0.4, "loss": 0.01, "backward": 0.5, "optimiser": 0.08},
        "share_of_objective": 0.02,
    }
    work = training_step.Work(
        tokens=100, flop=3e9, peak={"fp32": 1e9, "bf16": 12e9}, ceiling={"fp32": 1e9, "bf16": 10e9}
    )
    curves = {variant: [1.0, 0.5 + 0.01 * number] for number, variant in enumerate(training_step.CURVES)}
    dropped = {variant: [[1.0, 0.4], [1.0, 0.6 + 0.1 * n]] for n, variant in enumerate(training_step.CURVES)}
    text = training_step.as_markdown([row], work, curves, dropped)
    assert "| ours, bf16 | 1024 | 10.00 | 9.00 | 800 | 50 | 60 | 1.0 | 40.0 | 1.0 | 50.0 | 8.0 |" in text
    assert "bf16 products of its shapes: the fastest 12 GFLOP/s (peak)" in text
    assert "2.00 % of a step; packing 1.00 %" in text
    assert "by 0.0e+00 in the first step and 2.0e-02 at most" in text
    # Means of the second step: 0.55 and 0.5, with standard errors of 0.15 and 0.1; of the first: equal, without any.
    chance = (2 / np.pi * (0.15**2 + 0.1**2)) ** 0.5 / 2
    assert "ours, fp32, dropout: the mean of 2 curves differs" in text
    assert f"by 2.5e-02 on average; the seeds alone would make {chance:.1e}." in text


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_gpu_script_checks_and_times(base: Path, pooling: Pooling) -> None:
    encoder = gpu_training.make_encoder(str(base), layers=None, dropout=0.0, pooling=pooling)
    found = gpu_training.check_parity(encoder, torch.device("cpu"))
    assert 0 < found["fp32"]["vectors"] < 1e-5
    pairs = synthetic_names.random_pairs(40, encoder.model.config.vocab_size, np.random.default_rng(0))
    config = TrainingConfig(batch_pairs=8, steps=2, device="cpu", precision="fp32")
    row = gpu_training.time_steps(encoder, pairs, config, warm_up=1)
    assert row["batch_names"] == 16
    assert row["epoch_minutes"] == pytest.approx(2 * 11_800_000 / row["names_per_second"] / 60)


def test_gpu_script_times_nothing_when_packed_and_padded_differ(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = gpu_training.make_encoder(str(base), layers=None, dropout=0.0)
    monkeypatch.setattr(gpu_training, "differences", lambda *_: (1e-6, 1.0))
    with pytest.raises(SystemExit, match="Nothing was timed"):
        gpu_training.check_parity(encoder, torch.device("cpu"))


def test_gpu_script_times_the_released_step(base: Path) -> None:
    arguments = argparse.Namespace(base=str(base), layers=None, dropout=0.1, warm_up=1)
    vocabulary = gpu_training.make_encoder(str(base), layers=None, dropout=0.0).model.config.vocab_size
    pairs = synthetic_names.random_pairs(40, vocabulary, np.random.default_rng(0))
    config = TrainingConfig(batch_pairs=8, steps=2, device="cpu")
    row = gpu_training.time_reference(arguments, pairs, config, steps=2)
    assert row["epoch_minutes"] == pytest.approx(2 * 11_800_000 / row["names_per_second"] / 60)
    assert gpu_training.in_words(row, peak=1.0).startswith("reference     16 ")
    other = gpu_training.time_reference(arguments, pairs, config.model_copy(update={"device": "cuda"}), steps=2)
    assert ("error" in other) is not torch.cuda.is_available()


def test_the_released_step_is_of_the_same_loss(base: Path) -> None:
    encoder = gpu_training.make_encoder(str(base), layers=None, dropout=0.0)
    pairs = synthetic_names.random_pairs(40, encoder.model.config.vocab_size, np.random.default_rng(0))
    config = TrainingConfig(batch_pairs=8, steps=2, device="cpu", precision="fp32", dropout=0.0, decay_all=True)
    reference = gpu_training.Reference(copy.deepcopy(encoder.model), pairs, config, torch.device("cpu"))
    model = encoder.train()
    batches = PairBatches(pairs.pairs, batch_pairs=8, seed=config.seed)
    step = Step(config, pairs, model, make_optimiser(config, model), batches, torch.float32, torch.device("cpu"))
    for number in range(2):
        assert reference(number) == pytest.approx(step(number, 2).loss, rel=0.02)  # it multiplies in bf16


def test_gpu_script_goes_on_where_one_size_cannot_be_measured(base: Path) -> None:
    arguments = argparse.Namespace(base=str(base), layers=None, pooling="mean", dropout=0.1, warm_up=0, profiled=1)
    vocabulary = gpu_training.make_encoder(str(base), layers=None, dropout=0.0).model.config.vocab_size
    pairs = synthetic_names.random_pairs(40, vocabulary, np.random.default_rng(0))
    config = TrainingConfig(batch_pairs=8, steps=1, device="cpu", precision="fp32", compile=True)
    row = gpu_training.time_or_tell(arguments, pairs, config)
    assert gpu_training.in_words(row, peak=1.0).startswith("compiled      16 compile=true is for GPUs")
    row = gpu_training.time_or_tell(arguments, pairs, config.model_copy(update={"compile": False}))
    assert gpu_training.in_words(row, peak=1.0).startswith("onoma         16 ")
    assert "error" not in row
    took = dict(row["milliseconds_of"])
    assert took.pop("all") >= sum(took.values()) > 0
    assert any("mm" in name or "linear" in name for name in took)
