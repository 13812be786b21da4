"""The loss of distillation against its definition in plain loops, finite differences, and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import rel_entr, softmax

from onoma.errors import ConfigError, ShapeError
from onoma.objectives import distillation_loss

cosines = st.floats(-1, 1, width=32)


def by_loops(student: list[list[float]], teacher: list[list[float]], temperature: float) -> list[float]:
    """Sum of p log(p / q) over the other names of each anchor."""
    values = []
    for anchor, (own, taught) in enumerate(zip(student, teacher, strict=True)):
        others = [k for k in range(len(own)) if k != anchor]
        q_total = sum(math.exp(own[k] / temperature) for k in others)
        p_total = sum(math.exp(taught[k] / temperature) for k in others)
        value = 0.0
        for k in others:
            p = math.exp(taught[k] / temperature) / p_total
            value += p * ((taught[k] - own[k]) / temperature - math.log(p_total) + math.log(q_total))
        values.append(value)
    return values


@given(st.integers(1, 6).flatmap(lambda n: arrays(np.float64, (2, n, n), elements=cosines)), st.floats(0.05, 2))
def test_it_is_its_definition(both: np.ndarray, temperature: float) -> None:
    student, teacher = both
    found = distillation_loss(torch.tensor(student), torch.tensor(teacher), temperature=temperature)
    assert found.tolist() == pytest.approx(by_loops(student.tolist(), teacher.tolist(), temperature), abs=1e-9)
    assert (found >= -1e-9).all()


def some_similarities(n: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    student, teacher = 2 * torch.rand(2, n, n, generator=generator, dtype=torch.float64) - 1
    return student.requires_grad_(), teacher


def test_it_is_the_relative_entropy_of_scipy() -> None:
    student, teacher = some_similarities()
    for anchor, value in enumerate(distillation_loss(student, teacher, temperature=0.3).tolist()):
        p, q = (softmax(np.delete(one.detach().numpy()[anchor], anchor) / 0.3) for one in (teacher, student))
        assert value == pytest.approx(rel_entr(p, q).sum(), rel=1e-9)


def test_its_gradient_is_that_of_finite_differences() -> None:
    student, teacher = some_similarities()
    assert torch.autograd.gradcheck(lambda s: distillation_loss(s, teacher, temperature=0.2), (student,))


def test_the_teacher_is_a_constant_and_how_near_a_name_is_to_itself_does_not_matter() -> None:
    student, teacher = some_similarities()
    teacher.requires_grad_()
    distillation_loss(student, teacher).sum().backward()  # type: ignore[no-untyped-call]
    assert teacher.grad is None
    assert student.grad is not None
    assert not student.grad.diagonal().any()
    other = student.detach().clone().fill_diagonal_(7.0)
    assert torch.equal(distillation_loss(other, teacher), distillation_loss(student, teacher))


def test_what_agrees_costs_nothing_and_extremes_stay_finite() -> None:
    student, teacher = (one.detach() for one in some_similarities())
    # Of similarities only the differences within a row count.
    torch.testing.assert_close(distillation_loss(teacher + 0.25, teacher), torch.zeros(5, dtype=torch.float64))
    alone = torch.ones(1, 1, requires_grad=True)
    assert distillation_loss(alone, alone).tolist() == [0.0]
    assert distillation_loss(torch.empty(0, 0), torch.empty(0, 0)).shape == (0,)
    sharp = student.float().requires_grad_()
    values = distillation_loss(sharp, teacher.float(), temperature=1e-4)
    values.sum().backward()  # type: ignore[no-untyped-call]
    assert sharp.grad is not None
    assert torch.isfinite(values).all()
    assert torch.isfinite(sharp.grad).all()


@pytest.mark.parametrize(
    "pair",
    [
        (torch.zeros(2, 3), torch.zeros(2, 3)),
        (torch.zeros(3, 3), torch.zeros(2, 2)),
        (torch.zeros(4), torch.zeros(4)),
        (torch.zeros(2, 2), torch.zeros(2, 2, dtype=torch.int64)),
    ],
)
def test_other_shapes_are_refused(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    with pytest.raises(ShapeError, match=r"one shape \(B, B\); found"):
        distillation_loss(*pair)


@pytest.mark.parametrize("temperature", [0.0, -0.05])
def test_a_temperature_is_positive(temperature: float) -> None:
    with pytest.raises(ConfigError, match=r"^temperature must be a positive number"):
        distillation_loss(torch.eye(3), torch.eye(3), temperature=temperature)
