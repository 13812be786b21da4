"""The moving average of the weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from onoma.encoders.loading import load_packed
from onoma.encoders.lora import insert_lora
from onoma.pairs import PairSet, build_pairs
from onoma.training.alignment import train_encoder
from onoma.training.alignment_config import TrainingConfig
from onoma.training.averaging import WeightAverage
from tiny import make_terminology, tiny_encoder


def average_by_loops(weights: list[np.ndarray], decay: float) -> np.ndarray:
    """The formula, in double precision; ``weights[0]`` are those before training."""
    average = weights[0].astype(np.float64)
    for step, after in enumerate(weights[1:], 1):
        grown = min(decay, (1 + step) / (10 + step))
        average = grown * average + (1 - grown) * after
    return average


def module() -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    made[1].requires_grad_(False)
    return made


def stepped(model: nn.Module, average: WeightAverage, n_steps: int) -> list[np.ndarray]:
    weight = model.get_parameter("0.weight")
    seen = [weight.detach().numpy().copy()]
    for _ in range(n_steps):
        with torch.no_grad():
            weight.add_(torch.randn_like(weight))
        average.update()
        seen.append(weight.detach().numpy().copy())
    return seen


@pytest.mark.parametrize("decay", [0.5, 0.999])
@pytest.mark.parametrize("n_steps", [0, 1, 40])
def test_the_average_is_the_formula(decay: float, n_steps: int) -> None:
    model = module()
    average = WeightAverage(model, decay)
    seen = stepped(model, average, n_steps)
    with average.in_use():
        found = model.get_parameter("0.weight").detach().numpy().copy()
    np.testing.assert_allclose(found, average_by_loops(seen, decay), atol=1e-5)


def test_the_weights_of_the_beginning_fade_fast() -> None:
    """With a decay of 0.999 and no growth, 0.98 of them would be left after twenty steps."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    average = WeightAverage(model, 0.999)
    nn.init.zeros_(model.weight)
    for _ in range(20):
        average.update()
    average.apply()
    assert float(model.weight.detach()) < 1e-5


def test_in_use_gives_the_own_weights_back_to_the_bit() -> None:
    model = module()
    average = WeightAverage(model, 0.9)
    stepped(model, average, 3)
    own = {name: value.clone() for name, value in model.state_dict().items()}

    def fails() -> None:
        with average.in_use():
            assert not torch.equal(own["0.weight"], model.get_parameter("0.weight"))
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert all(torch.equal(own[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("decay", [None, 0.5])
def test_the_base_keeps_its_share(decay: float | None) -> None:
    model = module()
    average = WeightAverage(model, decay, base_share=0.25)
    seen = stepped(model, average, 4)
    trained = seen[-1] if decay is None else average_by_loops(seen, decay)
    with average.in_use():
        found = model.get_parameter("0.weight").detach().numpy().copy()
    np.testing.assert_allclose(found, 0.75 * trained + 0.25 * seen[0], atol=1e-6)
    np.testing.assert_array_equal(model.get_parameter("0.weight").detach().numpy(), seen[-1])


def test_of_a_product_that_is_added_half_is_half(tmp_path: Path) -> None:
    encoder = load_packed(tiny_encoder(tmp_path / "base"))
    insert_lora(encoder.model, rank=2, alpha=4.0, dropout=0.0)
    average = WeightAverage(encoder, None, base_share=0.25)
    (layer,) = [
        module for name, module in encoder.model.named_modules() if name.endswith("layer.0.attention.self.query")
    ]
    with torch.no_grad():
        for factor in (layer.lora_A["default"], layer.lora_B["default"]):
            factor.weight.add_(torch.randn_like(factor.weight))
    update = layer.get_delta_weight("default").detach()
    with average.in_use():
        np.testing.assert_allclose(layer.get_delta_weight("default").detach(), 0.75 * update, atol=1e-6)


def test_only_what_is_trained_is_averaged() -> None:
    assert {name for name in WeightAverage(module(), 0.9).state() if "." in name} == {"0.weight", "0.bias"}


def test_a_resumed_average_is_the_same_to_the_bit() -> None:
    model, other = module(), module()
    average = WeightAverage(model, 0.999)
    stepped(model, average, 3)
    other.load_state_dict(model.state_dict())
    resumed = WeightAverage(other, 0.999)
    resumed.load_state({name: value.clone() for name, value in average.state().items()})
    for one, its_average in ((model, average), (other, resumed)):
        torch.manual_seed(1)
        stepped(one, its_average, 3)
    assert all(torch.equal(value, resumed.state()[name]) for name, value in average.state().items())


def test_a_run_saves_the_average_of_the_weights_after_its_steps(tmp_path: Path) -> None:
    """The weights after each step are those of shorter runs without an average."""
    base = tiny_encoder(tmp_path / "base")
    terminology = make_terminology(
        tmp_path / "t", {f"X:{word}": [f"{word} a", f"b of {word}"] for word in ("ear", "eye", "lung", "skin")}
    )
    pairs: PairSet = build_pairs(terminology, base / "tokenizer.json", tmp_path / "p", max_tokens=16)
    values = {"base": str(base), "batch_pairs": 2, "max_tokens": 16, "learning_rate": 0.01, "dropout": 0.1}
    values |= {"precision": "fp32", "device": "cpu"}

    def trained(steps: int, **changes: object) -> np.ndarray:
        out = tmp_path / f"{steps}{''.join(changes)}"
        train_encoder(TrainingConfig.model_validate({**values, "steps": steps, **changes}), pairs, out)
        return load_file(out / "model.safetensors")["encoder.layer.0.attention.self.query.weight"].numpy()

    start = load_file(base / "model.safetensors")["encoder.layer.0.attention.self.query.weight"].numpy()
    seen = [start, *(trained(steps) for steps in (1, 2, 3))]
    averaged = trained(3, average=0.25)
    np.testing.assert_allclose(averaged, average_by_loops(seen, 0.25), atol=1e-6)
    assert np.abs(averaged - seen[-1]).max() > 1e-4
    np.testing.assert_allclose(trained(3, base_share=0.25), 0.75 * seen[-1] + 0.25 * start, atol=1e-6)
