"""Products with weights as a CPU does them fastest."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from onoma.encoders.precision import has_native_bf16

_TILE_ROWS = 16
"""Rows that a processor multiplies at a time; a part of a tile takes as long as a whole one."""
_TRANSPOSED_ROWS = 128
"""Rows of a matrix that are transposed at a time: they stay in the cache of a core."""
_LARGE = 4_000_000
"""Numbers of the wider matrix of a product from which oneDNN takes much longer if it must transpose one of the two."""


def linear(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``states @ weight.T + bias``, shape (T, n_out).

    In bf16 on a CPU torch fills the result with the bias first, which takes about as long as the product; oneDNN adds
    the bias on the way.

    Args:
        states: Shape (T, n_in).
        weight: Shape (n_out, n_in).
        bias: Shape (n_out,).
    """
    autocasts = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is torch.bfloat16
    in_bf16 = autocasts or (weight.dtype is torch.bfloat16 and not torch.is_grad_enabled())
    if states.device.type != "cpu" or not in_bf16 or not has_native_bf16():
        return functional.linear(states, weight, bias)
    product: Tensor = _Bf16Linear.apply(states.bfloat16(), weight, bias)  # type: ignore[no-untyped-call]
    return product


class _Bf16Linear(torch.autograd.Function):
    """Weights and their gradients in fp32, products in bf16, as under autocast."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        weight = weight.bfloat16()
        ctx.save_for_backward(states, weight)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias.bfloat16(), "none", [], "")
        return product

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        states, weight = ctx.saved_tensors
        (gradient,) = upstream
        for_states, for_weight, for_bias = ctx.needs_input_grad
        weight_gradient, bias_gradient = _gradients(gradient, states) if for_weight or for_bias else (None, None)
        return gradient @ weight if for_states else None, weight_gradient, bias_gradient


def _gradients(gradient: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """Of weight and bias, in fp32: ``gradient.T @ states`` and the sum of the gradient over tokens.

    For large matrices oneDNN takes up to twice as long if one of the two is to be transposed in the product as if it
    was transposed before, so the narrower one is. If those are the states, a row of ones below them makes the sum on
    the way.
    """
    n_in, n_out = states.shape[1], gradient.shape[1]
    if n_in == n_out or max(states.numel(), gradient.numel()) < _LARGE:
        return (gradient.t() @ states).float(), gradient.sum(0).float()
    if n_in > n_out:
        return (_transposed(gradient) @ states).float(), gradient.sum(0).float()
    product = _transposed(states, ones=True) @ gradient
    weight_gradient = product[:n_in].t().to(torch.float32, memory_format=torch.contiguous_format)
    return weight_gradient, product[n_in].float()


def _transposed(matrix: Tensor, *, ones: bool = False) -> Tensor:
    """A transposed copy, shape (columns, rows); below it a row of ones, filled up to whole tiles with zeros, if asked.

    Torch makes its own copy of a whole transposed matrix on one thread.
    """
    n_rows, n_columns = matrix.shape
    transposed = matrix.new_empty(n_columns + (_TILE_ROWS if ones else 0), n_rows)
    for first in range(0, n_rows, _TRANSPOSED_ROWS):
        rows = slice(first, first + _TRANSPOSED_ROWS)
        transposed[:n_columns, rows] = matrix[rows].t()
    if ones:
        transposed[n_columns] = 1
        transposed[n_columns + 1 :] = 0
    return transposed
