"""The gradient of a large batch in the memory of a small one (GradCache, Gao et al. 2021, arXiv 2101.06983).

A loss over pairs needs the vectors of all names at once, but not all of the activations that led to them. Vectors are
made a chunk of names at a time and the activations forgotten; the loss is taken of all vectors; then each chunk is
encoded again, with the same dropout, and its share of the gradient goes back through it. The gradient is exactly that
of the whole batch; the price is a second forward pass.

Shapes: N names over all chunks, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from onoma.encoders.packed import PackedBatch


def forward_in_chunks(
    encode: Callable[[PackedBatch], Tensor], chunks: Sequence[PackedBatch], device: torch.device
) -> tuple[Tensor, Callable[[Tensor], None]]:
    """Vectors of the names of all chunks, and the way back for their gradient.

    A single chunk keeps its activations and is encoded once, as without this module.

    Args:
        encode: Vectors of a chunk with their graph; draws its random numbers from torch's generator of the device.
        chunks: At least one.
        device: Where the names are encoded.

    Returns:
        vectors: Without graph, shape (N, D).
        backward: Adds to the gradients of the weights, given the gradient of the vectors, shape (N, D). To be called
            once at most.
    """
    if len(chunks) == 1:
        vectors = encode(chunks[0])
        return vectors.detach(), lambda gradient: _backward(vectors, gradient)
    before = _random_state(device)
    # With the graph, which is forgotten at once: under no_grad other kernels run, with other random numbers.
    parts = [encode(chunk).detach() for chunk in chunks]

    def backward(gradient: Tensor) -> None:
        # From the same state the chunks, in the same order, draw the same dropout and leave the same state behind.
        _set_random_state(device, before)
        for chunk, part in zip(chunks, gradient.split_with_sizes([chunk.n_names for chunk in chunks]), strict=True):
            _backward(encode(chunk), part)

    return torch.cat(parts), backward


def _backward(vectors: Tensor, gradient: Tensor) -> None:
    if len(vectors) == 0:  # the share of a process when there are fewer names than processes; it has no graph
        return
    vectors.backward(gradient.to(vectors.dtype))  # type: ignore[no-untyped-call]


def _random_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_random_state(device: torch.device, state: Tensor) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
