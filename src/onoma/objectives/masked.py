"""Row-wise reductions over marked entries that stay finite, gradient included, when a row has none."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from onoma.errors import ConfigError, ShapeError
from onoma.objectives.mining import PairMasks


def check_fit(similarity: Tensor, masks: PairMasks) -> None:
    """Raise `ShapeError` unless the masks are those of this similarity matrix."""
    if similarity.shape != masks.positives.shape or not similarity.is_floating_point():
        raise ShapeError(
            f"similarity: expected floating-point numbers of shape {tuple(masks.positives.shape)}, as the masks; "
            f"found {similarity.dtype} of shape {tuple(similarity.shape)}."
        )


def check_positive(**settings: float) -> None:
    """Raise `ConfigError` unless these are positive numbers: divisors, or factors that sharpen."""
    for name, value in settings.items():
        if not 0 < value < math.inf:
            raise ConfigError(f"{name} must be a positive number; found {value}.")


def masked_log_sum_exp(exponents: Tensor, mask: Tensor) -> Tensor:
    """``log sum exp`` over the marked entries of each row, shape (B, 1); differentiable once.

    Rows without a marked entry give a number so low that ``exp``, ``softplus`` and ``relu`` of it, and of its sum with
    another, are exactly zero and have gradient zero (minus infinity would have NaN).
    """
    result: Tensor = _MaskedLogSumExp.apply(exponents, mask)  # type: ignore[no-untyped-call]
    return result


def exp_(exponents: Tensor) -> Tensor:
    """In-place ``exp`` where exponents below -80 do not matter; they count as -80.

    Where torch takes exp from MKL, an element that underflows costs thirty to a hundred times as much as another,
    and most entries of a masked or sharply scaled matrix would underflow.
    """
    return exponents.clamp_(min=-80).exp_()


class _MaskedLogSumExp(torch.autograd.Function):
    """Keeps the exponentials of the forward pass, which are the gradient up to a factor per row."""

    @staticmethod
    def forward(ctx: Any, exponents: Tensor, mask: Tensor) -> Tensor:
        lowest = torch.finfo(exponents.dtype).min / 4
        terms = exponents.masked_fill(~mask, lowest)
        highest = terms.amax(1, keepdim=True)
        terms = exp_(terms.sub_(highest)).mul_(mask)
        total = terms.sum(1, keepdim=True) + (highest == lowest)
        ctx.save_for_backward(terms, total)
        return highest + total.log()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        terms, total = ctx.saved_tensors
        return terms * (upstream[0] / total), None


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of the marked entries of each row, shape (B,); zero for rows without one."""
    return torch.where(mask, values, 0).sum(1) / mask.count_nonzero(1).clamp(min=1)
