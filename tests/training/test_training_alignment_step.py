"""The step against a plain reckoning: names encoded one at a time by Hugging Face, one loss, torch's own backward."""

from __future__ import annotations

import copy
import gc
import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from onoma.encoders.loading import load_packed
from onoma.encoders.packed import PackedBatch, PackedEncoder, pack
from onoma.errors import TrainingError
from onoma.pairs import PairSet, build_pairs
from onoma.training.alignment import train_encoder
from onoma.training.alignment_config import TrainingConfig
from onoma.training.alignment_step import Step, StepReport, make_optimiser
from onoma.training.batches import PairBatches
from onoma.training.objective import objective
from onoma.training.precision import training_precision
from onoma.types import RowArray
from tiny import make_terminology, tiny_encoder

WORDS = ["heart", "lung", "liver", "bone", "skin", "eye"]
CPU = torch.device("cpu")
Gradients = dict[str, torch.Tensor]


class Recorder(torch.optim.SGD):
    """Keeps the gradients of each step and moves nothing."""

    def __init__(self, model: PackedEncoder) -> None:
        super().__init__(model.parameters(), lr=0.0)
        self.model = model
        self.seen: list[Gradients] = []
        self.rates: list[list[float]] = []

    # Any: torch's own signature is overloaded.
    def step(self, closure: Any = None) -> Any:
        self.seen.append(gradients_of(self.model))
        self.rates.append([group["lr"] for group in self.param_groups])


def gradients_of(model: PackedEncoder) -> Gradients:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("base") / "bert", weight_std=0.25)


@pytest.fixture(scope="module")
def pairs(base: Path, tmp_path_factory: pytest.TempPathFactory) -> PairSet:
    folder = tmp_path_factory.mktemp("pairs")
    concepts = {f"X:{word}": [f"{word} disease", f"disease of the {word}", f"{word}s ill"] for word in WORDS}
    concepts["X:other"] = ["heart disease", "cor"]  # a homonym, which `mark` keeps from being a negative
    terminology = make_terminology(folder / "t", concepts)
    return build_pairs(terminology, base / "tokenizer.json", folder / "p", max_tokens=16, ambiguous="mark")


def config_for(base: Path, **changes: object) -> TrainingConfig:
    values = {"base": str(base), "steps": 4, "batch_pairs": 5, "max_tokens": 16, "learning_rate": 1e-3}
    return TrainingConfig.model_validate({**values, "dropout": 0.0, "precision": "fp32", "device": "cpu", **changes})


def make_step(
    config: TrainingConfig, pairs: PairSet, optimiser: Callable[[PackedEncoder], torch.optim.Optimizer] = Recorder
) -> tuple[Step, PackedEncoder, torch.optim.Optimizer]:
    model = load_packed(config.base, dropout=config.dropout, max_tokens=config.max_tokens).train()
    stepping = optimiser(model)
    batches = PairBatches(pairs.pairs, batch_pairs=config.batch_pairs, seed=config.seed)
    return Step(config, pairs, model, stepping, batches, training_precision(config, CPU), CPU), model, stepping


def recorded(config: TrainingConfig, pairs: PairSet, *, n_steps: int = 1) -> tuple[list[Gradients], list[StepReport]]:
    step, _, recorder = make_step(config, pairs)
    reports = [step(number, 4) for number in range(n_steps)]
    assert isinstance(recorder, Recorder)
    return recorder.seen, reports


def plain_gradient(config: TrainingConfig, pairs: PairSet, batch_numbers: list[int]) -> tuple[Gradients, float]:
    """Gradient and value of the mean loss of some batches, each name run alone through the Hugging Face model."""
    model = load_packed(config.base, dropout=0.0, max_tokens=config.max_tokens)
    batches = PairBatches(pairs.pairs, batch_pairs=config.batch_pairs, seed=config.seed)
    losses = []
    for number in batch_numbers:
        rows = batches.names_of_step(number)
        ids = [pairs.store.ids[pairs.store.offsets[row] : pairs.store.offsets[row + 1]] for row in rows]
        tokens = [torch.from_numpy(np.asarray(name, np.int64))[None] for name in ids]
        vectors = torch.cat([model.model(input_ids=name).last_hidden_state[:, 0] for name in tokens])
        assert pairs.text_labels is not None
        texts = torch.from_numpy(pairs.text_labels[rows])
        labels = torch.from_numpy(pairs.labels[rows])
        losses.append(objective(config.loss, config.mining, vectors, labels, text_labels=texts)[0])
    mean = torch.stack(losses).mean()
    mean.backward()  # type: ignore[no-untyped-call]
    return gradients_of(model), float(mean.detach())


def assert_same(found: Gradients, expected: Gradients, *, atol: float) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-5, atol=atol)
    assert max(gradient.abs().max() for gradient in expected.values()) > 1e-3  # there was something to compare


def test_a_step_has_the_gradient_of_its_batch(base: Path, pairs: PairSet) -> None:
    config = config_for(base)
    found, reports = recorded(config, pairs)
    expected, loss = plain_gradient(config, pairs, [0])
    assert_same(found[0], expected, atol=1e-6)
    assert reports[0].loss == pytest.approx(loss, rel=1e-5)
    assert reports[0].names == 10


def test_accumulated_gradients_are_the_mean_of_the_batches(base: Path, pairs: PairSet) -> None:
    config = config_for(base, accumulation=3)
    found, reports = recorded(config, pairs, n_steps=2)
    for number, batch_numbers in enumerate(([0, 1, 2], [3, 4, 5])):
        expected, loss = plain_gradient(config, pairs, batch_numbers)
        assert_same(found[number], expected, atol=1e-6)
        assert reports[number].loss == pytest.approx(loss, rel=1e-5)
    assert reports[0].names == 30


@pytest.mark.parametrize("share", [0.5, 10.0])
def test_a_gradient_longer_than_its_limit_is_shortened_to_it(base: Path, pairs: PairSet, share: float) -> None:
    free = recorded(config_for(base), pairs)[0][0]
    length = float(torch.cat([gradient.flatten() for gradient in free.values()]).norm())
    found, _ = recorded(config_for(base, max_gradient_norm=share * length), pairs)
    assert_same(found[0], {name: min(share, 1.0) * gradient for name, gradient in free.items()}, atol=1e-6)


def test_the_learning_rate_of_every_group_follows_the_schedule(base: Path, pairs: PairSet) -> None:
    config = config_for(base, warmup_steps=2, schedule="linear")

    def two_groups(model: PackedEncoder) -> Recorder:
        recorder = Recorder(model)
        recorder.param_groups[0]["lr"] = config.learning_rate
        recorder.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.02})
        return recorder

    step, _, recorder = make_step(config, pairs, two_groups)
    reports = [step(number, 4) for number in range(4)]
    factors = [0.5, 1.0, 1.0, 0.5]
    assert isinstance(recorder, Recorder)
    assert np.allclose(recorder.rates, [[1e-3 * factor, 0.02 * factor] for factor in factors])
    assert [report.learning_rate for report in reports] == pytest.approx([1e-3 * factor for factor in factors])


@pytest.mark.parametrize("decay_all", [False, True])
def test_what_decays_is_what_the_recipe_says(base: Path, decay_all: bool) -> None:
    model = load_packed(base, max_tokens=16)
    model.get_parameter("model.embeddings.word_embeddings.weight").requires_grad_(False)
    names = {id(weight): name for name, weight in model.named_parameters() if weight.requires_grad}
    optimiser = make_optimiser(config_for(base, weight_decay=0.3, decay_all=decay_all), model)
    decays = {names[id(one)]: group["weight_decay"] for group in optimiser.param_groups for one in group["params"]}
    flat = {name for name in names.values() if name.endswith(".bias") or "LayerNorm" in name}
    assert decays == {name: 0.0 if name in flat and not decay_all else 0.3 for name in names.values()}
    assert 0 < len(flat) < len(names)


@pytest.mark.parametrize("chunk_names", [2, 3, 9, 100])
def test_chunks_do_not_change_the_gradient(base: Path, pairs: PairSet, chunk_names: int) -> None:
    whole, _ = recorded(config_for(base), pairs)
    chunked, _ = recorded(config_for(base, chunk_names=chunk_names), pairs)
    assert_same(chunked[0], whole[0], atol=1e-6)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_chunks_are_encoded_twice_with_the_same_dropout(base: Path, pairs: PairSet, precision: str) -> None:
    config = config_for(base, chunk_names=4, dropout=0.3, precision=precision, accumulation=2)
    torch.manual_seed(7)
    found, _ = recorded(config, pairs)
    state_after = torch.get_rng_state()

    # The oracle keeps the graphs of all chunks at once.
    torch.manual_seed(7)
    model = load_packed(config.base, dropout=0.3, max_tokens=16).train()
    batches = PairBatches(pairs.pairs, batch_pairs=config.batch_pairs, seed=config.seed)
    for number in range(2):
        rows = batches.names_of_step(number)
        lengths = pairs.store.offsets[rows + 1] - pairs.store.offsets[rows]
        order = np.argsort(lengths, kind="stable")
        chunks = [order[:4], order[4:8], order[8:]]
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            parts = [model(pack(pairs.store.offsets, pairs.store.ids, rows=rows[chunk])) for chunk in chunks]
        assert pairs.text_labels is not None
        texts, labels = torch.from_numpy(pairs.text_labels[rows[order]]), torch.from_numpy(pairs.labels[rows[order]])
        loss, _ = objective(config.loss, config.mining, torch.cat(parts), labels, text_labels=texts)
        (loss / 2).backward()  # type: ignore[no-untyped-call]
    assert_same(found[0], gradients_of(model), atol=1e-6 if precision == "fp32" else 1e-3)
    assert torch.equal(state_after, torch.get_rng_state())


def test_chunks_are_small_and_sorted_by_length(base: Path, pairs: PairSet) -> None:
    step, model, _ = make_step(config_for(base, chunk_names=4), pairs)
    seen: list[PackedBatch] = []
    model.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    step(0, 4)
    assert [batch.n_names for batch in seen] == [4, 4, 2, 4, 4, 2]
    lengths = [[length for _, length in batch.groups] for batch in seen[:3]]
    assert list(itertools.chain(*lengths)) == sorted(itertools.chain(*lengths))
    seen.clear()
    step, model, _ = make_step(config_for(base, chunk_names=10), pairs)
    model.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    step(0, 4)
    assert [batch.n_names for batch in seen] == [10]  # a single one keeps its graph


def test_epochs_count_optimiser_steps(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    per_epoch = PairBatches(pairs.pairs, batch_pairs=5, seed=0).steps_per_epoch
    report = train_encoder(config_for(base, steps=None, epochs=2, accumulation=3), pairs, tmp_path / "e")
    assert report.steps == -(-2 * per_epoch // 3)
    assert sum(line["names"] for line in report.log) >= 2 * 2 * len(pairs.pairs)


def test_a_stopped_run_with_chunks_and_accumulation_goes_on_to_the_same_weights(
    base: Path, pairs: PairSet, tmp_path: Path
) -> None:
    config = config_for(base, accumulation=2, chunk_names=4, dropout=0.1, checkpoint_minutes=1e-9)

    def stop(report: StepReport) -> None:
        if report.step == 3:
            raise KeyboardInterrupt

    straight = train_encoder(config, pairs, tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        train_encoder(config, pairs, tmp_path / "stopped", on_step=stop)
    resumed = train_encoder(config, pairs, tmp_path / "stopped")
    assert resumed.resumed_at == 2
    assert [line["loss"] for line in resumed.log] == [line["loss"] for line in straight.log]
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("straight", "stopped")]
    assert weights[0] == weights[1]


def test_a_step_leaves_no_graph_behind(base: Path, pairs: PairSet) -> None:
    """Or the next one could not be recorded on a GPU (`onoma.training.graphs`)."""
    config = config_for(base)
    step, _, _ = make_step(config, pairs, lambda model: make_optimiser(config, model))

    def with_a_graph() -> list[torch.Tensor]:
        tensors = [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor)]
        return [one for one in tensors if one.grad_fn is not None]

    gc.collect()
    gc.disable()  # it would take away what still refers to itself
    try:
        before = with_a_graph()  # torch.compile in other tests keeps some
        report = step(0, 4)
        left = [one for one in with_a_graph() if not any(one is other for other in before)]
    finally:
        gc.enable()
    assert np.isfinite(report.loss)
    assert not left


@pytest.mark.parametrize("bad", ["loss", "gradient"])
def test_what_is_not_finite_leaves_weights_and_optimiser_alone(
    base: Path, pairs: PairSet, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_for(base)
    step, model, optimiser = make_step(config, pairs, lambda model: make_optimiser(config, model))
    step(0, 4)
    before = copy.deepcopy((model.state_dict(), optimiser.state_dict()))
    loss = step._loss

    def spoiled(number: int, rows: RowArray, vectors: torch.Tensor) -> Any:
        value, figures = loss(number, rows, vectors)
        # Infinite with a gradient as it was; or as it was, with a gradient that is not a number.
        return value + (float("inf") if bad == "loss" else (0 * vectors).sum().sqrt()), figures

    monkeypatch.setattr(step, "_loss", spoiled)
    with pytest.raises(TrainingError, match=f"the {bad} of step 2 is not a number"):
        step(1, 4)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[0][name])
    for number, kept in optimiser.state_dict()["state"].items():
        assert all(torch.equal(value, before[1]["state"][number][name]) for name, value in kept.items())


# --- fp16 -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def half(base: Path, pairs: PairSet) -> tuple[Step, PackedEncoder]:
    config = config_for(base, precision="fp16")
    step, model, _ = make_step(config, pairs, lambda model: make_optimiser(config, model))
    return step, model


def test_fp16_follows_fp32(base: Path, pairs: PairSet) -> None:
    exact, _ = recorded(config_for(base), pairs)
    halved, _ = recorded(config_for(base, precision="fp16"), pairs)
    for name, gradient in exact[0].items():
        torch.testing.assert_close(halved[0][name], gradient, rtol=0.05, atol=0.02)


def test_an_overflow_skips_the_step_and_scales_less(half: tuple[Step, PackedEncoder]) -> None:
    step, model = half
    step.load_state({"scale": torch.tensor(2.0**30), "scale_steps": torch.tensor(5)})
    before = {name: value.clone() for name, value in model.state_dict().items()}
    report = step(0, 4)
    assert (report.overflowed, np.isfinite(report.loss)) == (True, True)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert step.state()["scale"] == 2.0**29
    while report.overflowed:
        report = step(1, 4)
    assert any(not torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert step.state()["scale_steps"] == 1


def test_the_scale_of_fp16_is_handed_on(half: tuple[Step, PackedEncoder], base: Path, pairs: PairSet) -> None:
    step, _ = half
    step(0, 4)
    config = config_for(base, precision="fp16")
    other, _, _ = make_step(config, pairs, lambda model: make_optimiser(config, model))
    other.load_state(step.state())
    assert other.state() == step.state() == {"scale": 65536.0, "scale_steps": 1}
    assert make_step(config_for(base), pairs)[0].state() == {}


def test_an_overflow_that_does_not_end_is_a_diverged_run(half: tuple[Step, PackedEncoder]) -> None:
    step, model = half
    next(model.parameters()).register_hook(lambda gradient: gradient * torch.inf)  # type: ignore[no-untyped-call]
    step.load_state({"scale": torch.tensor(2.0), "scale_steps": torch.tensor(0)})
    assert step(0, 4).overflowed
    with pytest.raises(TrainingError, match=r"gradient of step 2 is not a number.*bf16"):
        step(1, 4)


def test_without_fp16_an_infinite_gradient_is_a_diverged_run(base: Path, pairs: PairSet) -> None:
    step, model, _ = make_step(config_for(base), pairs)
    next(model.parameters()).register_hook(lambda gradient: gradient * torch.inf)  # type: ignore[no-untyped-call]
    with pytest.raises(TrainingError, match="gradient of step 1 is not a number"):
        step(0, 4)


@pytest.mark.parametrize(
    ("setting", "native", "expected"),
    [
        ("auto", True, torch.bfloat16),
        ("auto", False, torch.float32),
        ("fp16", True, torch.float16),
        ("bf16", False, torch.bfloat16),
        ("fp32", True, torch.float32),
    ],
)
def test_precisions(
    base: Path, monkeypatch: pytest.MonkeyPatch, setting: str, native: bool, expected: torch.dtype
) -> None:
    monkeypatch.setattr("onoma.training.precision.has_native_bf16", lambda _: native)
    assert training_precision(config_for(base, precision=setting), CPU) is expected


@pytest.mark.parametrize("setting", ["bf16", "fp16"])
def test_a_precision_that_is_slow_is_warned_of(base: Path, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setattr("onoma.encoders.precision._processor_has", lambda _: False)
    with pytest.warns(UserWarning, match=f"does not multiply {setting}: torch imitates it, many times slower"):
        training_precision(config_for(base, precision=setting), CPU)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training_precision(config_for(base, precision="fp32"), CPU)
