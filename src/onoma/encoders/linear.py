"""Products with weights as a CPU does them fastest."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from onoma.encoders.precision import has_native_bf16


def linear(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``states @ weight.T + bias``, shape (T, n_out).

    In bf16 on a CPU torch fills the result with the bias first, which takes about as long as the product; oneDNN adds
    the bias on the way. The gradient of the weight is a product with a transposed matrix, which takes oneDNN twice as
    long as with one that was transposed before.

    Args:
        states: Shape (T, n_in).
        weight: Shape (n_out, n_in).
        bias: Shape (n_out,).
    """
    autocasts = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is torch.bfloat16
    if states.device.type != "cpu" or not autocasts or not has_native_bf16():
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
        return (
            gradient @ weight if for_states else None,
            _transposed_product(gradient, states).float() if for_weight else None,
            gradient.sum(0).float() if for_bias else None,
        )


def _transposed_product(left: Tensor, right: Tensor) -> Tensor:
    """``left.T @ right``; the narrower of the two is transposed."""
    if left.shape[1] > right.shape[1]:
        return (right.t().contiguous() @ left).t().contiguous()
    return left.t().contiguous() @ right


def look_up(table: torch.nn.Embedding, ids: Tensor) -> Tensor:
    """``table(ids)``, shape (T, D).

    The gradient of a vocabulary is as large as the vocabulary and almost all zeros. On a CPU torch writes these, into
    memory that the system has only just cleared; numpy takes such memory as it is, and in large pages.
    """
    if ids.device.type != "cpu":
        looked_up: Tensor = table(ids)
    else:
        looked_up = _LookUp.apply(table.weight, ids, table.padding_idx)  # type: ignore[no-untyped-call]
    return looked_up


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor, padding_id: int | None) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.shape, ctx.padding_id = weight.shape, padding_id
        return weight.index_select(0, ids)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        (ids,) = ctx.saved_tensors
        gradient = torch.from_numpy(np.zeros(ctx.shape, np.float32)).to(upstream[0].dtype)
        gradient.index_add_(0, ids, upstream[0])
        if ctx.padding_id is not None:
            gradient[ctx.padding_id] = 0  # as torch.nn.Embedding does
        return gradient, None, None
