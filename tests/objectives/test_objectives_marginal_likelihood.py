"""The loss of BioSyn against its definition in plain loops, finite differences, and at the edges."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onoma.errors import ShapeError
from onoma.objectives import marginal_likelihood_loss


def by_loops(scores: Sequence[Sequence[float]], right: Sequence[Sequence[bool]]) -> list[float]:
    """Minus the logarithm of the summed probabilities of the right candidates; 0 where there is none."""
    values = []
    for of_query, marks in zip(scores, right, strict=True):
        total = sum(math.exp(score) for score in of_query)
        probability = sum(math.exp(score) / total for score, mark in zip(of_query, marks, strict=True) if mark)
        values.append(-math.log(probability) if any(marks) else 0.0)
    return values


@st.composite
def tasks(draw: st.DrawFn) -> tuple[list[list[float]], list[list[bool]]]:
    n_queries, n_candidates = draw(st.integers(0, 5)), draw(st.integers(1, 6))
    score, mark = st.floats(-20, 20, width=32), st.booleans()
    return (
        [[draw(score) for _ in range(n_candidates)] for _ in range(n_queries)],
        [[draw(mark) for _ in range(n_candidates)] for _ in range(n_queries)],
    )


@given(tasks())
def test_it_is_its_definition(task: tuple[list[list[float]], list[list[bool]]]) -> None:
    scores, right = task
    n_candidates = len(scores[0]) if scores else 1
    found = marginal_likelihood_loss(
        torch.tensor(scores, dtype=torch.float64).view(-1, n_candidates),
        torch.tensor(right).bool().view(-1, n_candidates),
    )
    assert found.tolist() == pytest.approx(by_loops(scores, right), abs=1e-9)


def some_scores(n_queries: int = 6, n_candidates: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    scores = 4 * torch.randn(n_queries, n_candidates, generator=generator, dtype=torch.float64)
    right = torch.rand(n_queries, n_candidates, generator=generator) < 0.4
    right[0], right[1] = False, True
    return scores.requires_grad_(), right


def test_its_gradient_is_that_of_finite_differences() -> None:
    scores, right = some_scores()
    assert torch.autograd.gradcheck(lambda s: marginal_likelihood_loss(s, right), (scores,))


def test_a_query_without_a_right_candidate_or_without_a_wrong_one_teaches_nothing() -> None:
    scores, right = some_scores()
    values = marginal_likelihood_loss(scores, right)
    values.sum().backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    assert values[:2].tolist() == pytest.approx([0, 0], abs=1e-12)
    assert scores.grad[:2].abs().max() == 0
    assert (scores.grad[2:].abs().sum(1) > 1e-3).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_unlikely_right_candidate_still_teaches(dtype: torch.dtype) -> None:
    scores = torch.tensor([[-300.0, 300.0, 0.0]], dtype=dtype, requires_grad=True)
    value = marginal_likelihood_loss(scores, torch.tensor([[True, False, False]]))
    value.sum().backward()  # type: ignore[no-untyped-call]
    assert value.item() == pytest.approx(600)
    assert scores.grad is not None
    assert scores.grad.tolist() == [pytest.approx([-1, 1, 0])]


def test_one_right_candidate_with_a_high_score_suffices() -> None:
    right = torch.tensor([[True, True, False]])
    assert marginal_likelihood_loss(torch.tensor([[40.0, -40.0, 0.0]]), right).item() < 1e-6


def test_no_candidates_and_no_queries() -> None:
    assert marginal_likelihood_loss(torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool)).tolist() == [0, 0]
    assert marginal_likelihood_loss(torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.bool)).shape == (0,)


@pytest.mark.parametrize(
    ("scores", "right"),
    [
        (torch.zeros(2, 3), torch.zeros(3, 2, dtype=torch.bool)),
        (torch.zeros(3), torch.zeros(3, dtype=torch.bool)),
        (torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3, dtype=torch.bool)),
        (torch.zeros(2, 3), torch.zeros(2, 3)),
    ],
)
def test_what_does_not_fit_is_refused(scores: torch.Tensor, right: torch.Tensor) -> None:
    with pytest.raises(ShapeError, match="one shape"):
        marginal_likelihood_loss(scores, right)
