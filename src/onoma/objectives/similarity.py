"""Similarity and distance of the names in a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from onoma.errors import ShapeError


def cosine_similarities(vectors: Tensor) -> Tensor:
    """Cosine similarity of every name to every name, in float32 or better.

    Half-precision vectors are widened first and autocast is switched off: hard negatives differ from the
    positives in the third decimal, which bfloat16 does not hold.

    Args:
        vectors: Not normalised, shape (B, D).

    Returns:
        Shape (B, B), differentiable.

    Raises:
        ShapeError: not a matrix of floating-point numbers with at least one row.

    Example:
        >>> cosine_similarities(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
        tensor([[1., 0.],
                [0., 1.]])
    """
    with torch.autocast(vectors.device.type, enabled=False):
        unit = unit_vectors(vectors)
        return unit @ unit.T


def unit_vectors(vectors: Tensor) -> Tensor:
    """Vectors of length one in float32 or better, shape (B, D); zero vectors stay zero."""
    if vectors.ndim != 2 or len(vectors) == 0 or not vectors.is_floating_point():
        raise ShapeError(
            f"vectors: expected floating-point numbers of shape (B, D) with B > 0; "
            f"found {vectors.dtype} of shape {tuple(vectors.shape)}."
        )
    if vectors.dtype in {torch.float16, torch.bfloat16}:
        vectors = vectors.float()
    return torch.nn.functional.normalize(vectors, dim=1)


def euclidean_distances(similarity: Tensor) -> Tensor:
    """Euclidean distance of unit vectors from their cosine: ``d = sqrt(2 - 2 s)``.

    The square root has no slope at zero; the gradient is defined as zero there (identical vectors cannot be
    brought closer), so that duplicates in a batch do not turn the weights into NaN.

    Args:
        similarity: Cosine similarities, any shape.

    Returns:
        Distances 0..2, same shape, differentiable.
    """
    squared = (2 - 2 * similarity).clamp(min=0)
    if not squared.requires_grad:
        return squared.sqrt_()
    apart = squared != 0  # true of NaN too: a broken encoder shows in the loss
    return torch.where(apart, torch.where(apart, squared, 1).sqrt(), 0)
