"""Dropout of the packed encoder: what is drawn, and what the tensors of a pass share of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from onoma.encoders.dropout import Dropout

PRECISIONS = [torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("probability", [0.1, 0.25, 0.5])
def test_every_tensor_keeps_the_expectation(probability: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    dropout = Dropout(probability)
    for shape in ((1001, 299), (3, 1001, 99), (1001, 300)):  # the second is smaller, the last larger than the first
        factors = dropout.keep_factors(shape, dtype)
        assert factors.dtype == dtype
        assert factors.shape == shape
        dropped, kept = sorted(set(factors.flatten().tolist()))
        assert dropped == 0
        assert kept == pytest.approx(float(torch.tensor(1 / (1 - probability), dtype=dtype)), abs=1e-4)
        # five standard deviations of the share of 300,000 draws
        assert float((factors == 0).float().mean()) == pytest.approx(probability, abs=5e-3)


def test_nearly_all_dropped() -> None:
    factors = Dropout(1 - 1e-9).keep_factors((1000, 300), torch.float32)
    assert set(factors.flatten().tolist()) == {0.0, 65536.0}


def test_states_are_multiplied_with_the_factors() -> None:
    states = torch.randn(40, 30)
    torch.manual_seed(1)
    dropped = Dropout(0.3)(states)
    torch.manual_seed(1)
    assert torch.equal(dropped, states * Dropout(0.3).keep_factors((40, 30), torch.float32))


def test_lanes_are_independent_and_reproducible() -> None:
    torch.manual_seed(4)
    first = Dropout(0.5)(torch.ones(4, 50_000)).bool()
    torch.manual_seed(4)
    assert torch.equal(first, Dropout(0.5)(torch.ones(4, 50_000)).bool())
    lanes = first.reshape(-1, 4).double()
    correlation = np.corrcoef(lanes.numpy().T)
    assert np.abs(correlation - np.eye(4)).max() < 0.03


@pytest.mark.parametrize("shape", [(200, 64), (2000, 384)])
def test_tensors_of_a_pass_do_not_drop_the_same_elements(shape: tuple[int, int]) -> None:
    torch.manual_seed(5)
    dropout = Dropout(0.5)
    drawn = torch.stack([dropout.keep_factors(shape, torch.float32).flatten() for _ in range(12)])
    correlation = np.corrcoef(drawn.double().numpy())
    # five standard deviations of a correlation of so many independent draws
    assert np.abs(correlation - np.eye(12)).max() < 5 / drawn.shape[1] ** 0.5


def test_tensors_of_a_pass_draw_once() -> None:
    torch.manual_seed(6)
    dropout = Dropout(0.5)
    first = dropout.keep_factors((300, 64), torch.float32)
    storage = first.untyped_storage().data_ptr()
    for shape in ((300, 64), (2, 5), (300, 63)):
        assert dropout.keep_factors(shape, torch.float32).untyped_storage().data_ptr() == storage
    larger = dropout.keep_factors((301, 64), torch.float32)
    assert larger.untyped_storage().data_ptr() != storage


def test_any_precision_drops_the_same() -> None:
    states = torch.randn(33, 7)
    torch.manual_seed(3)
    full = Dropout(0.5)(states)
    torch.manual_seed(3)
    torch.testing.assert_close(Dropout(0.5)(states.bfloat16()), full.bfloat16())


def test_of_nothing() -> None:
    assert Dropout(0.1)(torch.zeros(0, 8)).shape == (0, 8)


def test_probability_of_zero_gives_the_input_itself_and_draws_nothing() -> None:
    states = torch.randn(3, 3)
    before = torch.get_rng_state()
    assert Dropout(0.0)(states) is states
    assert torch.equal(before, torch.get_rng_state())


def test_the_gradient_is_that_of_what_was_kept() -> None:
    torch.manual_seed(5)
    states = torch.ones(64, requires_grad=True)
    out = Dropout(0.25)(states)
    (gradient,) = torch.autograd.grad(out.sum(), states)
    assert torch.equal(gradient, out.detach())
