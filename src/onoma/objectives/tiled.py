"""Mining and multi-similarity loss of large batches, a tile of anchors at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from onoma.errors import ShapeError
from onoma.objectives.masked import check_positive, exp_
from onoma.objectives.mining import MinedShares, mine_hard_triplets
from onoma.objectives.similarity import euclidean_distances, unit_vectors


def tiled_multi_similarity_loss(
    vectors: Tensor,
    labels: Tensor,
    *,
    margin: float = 0.2,
    positive_scale: float = 2.0,
    negative_scale: float = 50.0,
    offset: float = 0.5,
    text_labels: Tensor | None = None,
    tile_rows: int = 256,
) -> tuple[Tensor, MinedShares]:
    """Hard triplets, multi-similarity loss and its gradient in one pass with flat memory.

    The same number as ``multi_similarity_loss(s, hard_triplet_masks(s, labels)).mean()`` with
    ``s = cosine_similarities(vectors)``, up to rounding. Similarities exist for ``tile_rows`` anchors at a
    time, and the forward pass accumulates the gradient. So memory is ``O(tile_rows * B + B * D)`` instead of
    ``O(B * B)``, and nothing is computed twice.

    Shapes: B names in the batch, D embedding width.

    Args:
        vectors: Not normalised, shape (B, D).
        labels: Class of each name, integers, shape (B,).
        margin: Of `hard_triplet_masks`.
        positive_scale: Of `multi_similarity_loss`.
        negative_scale: Of `multi_similarity_loss`.
        offset: Of `multi_similarity_loss`.
        text_labels: Names with one text share a number, integers, shape (B,); they are never negatives of one
            another. Without it, any name of another class may be a negative.
        tile_rows: Anchors at a time.

    Returns:
        The mean loss of the batch, shape (), differentiable once; and what share of the pairs was mined.

    Raises:
        ConfigError: a scale is not positive.
        ShapeError: the arguments do not fit one another, or the batch is empty.
    """
    for name, values in (("labels", labels), ("text_labels", text_labels)):
        if values is not None and values.shape != vectors.shape[:1]:
            raise ShapeError(f"{name} {tuple(values.shape)} do not fit {len(vectors)} vectors.")
    if tile_rows < 1:
        raise ShapeError(f"tile_rows: expected at least 1; found {tile_rows}.")
    check_positive(positive_scale=positive_scale, negative_scale=negative_scale)
    with torch.autocast(vectors.device.type, enabled=False):
        unit = unit_vectors(vectors)
        loss, counts = _TiledMultiSimilarity.apply(  # type: ignore[no-untyped-call]
            unit, labels, text_labels, margin, positive_scale, negative_scale, offset, tile_rows
        )
    return loss, MinedShares.of_counts(counts)


class _TiledMultiSimilarity(torch.autograd.Function):
    """Unit vectors to the mean loss; the gradient is ready when the value is."""

    @staticmethod
    def forward(
        ctx: Any,
        unit: Tensor,
        labels: Tensor,
        text_labels: Tensor | None,
        margin: float,
        positive_scale: float,
        negative_scale: float,
        offset: float,
        tile_rows: int,
    ) -> tuple[Tensor, Tensor]:
        n_names = len(unit)
        total = unit.new_zeros(())
        counts = torch.zeros(4, dtype=torch.int64, device=unit.device)
        gradient = torch.zeros_like(unit) if ctx.needs_input_grad[0] else None
        for start in range(0, n_names, tile_rows):
            tile = slice(start, start + tile_rows)
            anchors = unit[tile]
            similarity = anchors @ unit.T  # (tile, B)
            positives = labels[tile, None] == labels[None, :]
            negatives = ~positives
            positives.diagonal(start).fill_(False)
            if text_labels is not None:
                negatives &= text_labels[tile, None] != text_labels[None, :]
            mined_positives, mined_negatives = mine_hard_triplets(
                euclidean_distances(similarity), positives, negatives, margin
            )
            counts += torch.stack(
                [mask.count_nonzero() for mask in (mined_positives, positives, mined_negatives, negatives)]
            )
            above_offset = similarity.sub_(offset)
            push, slope = _log_one_plus_sum_exp_(negative_scale * above_offset, mined_negatives)
            pull, pull_slope = _log_one_plus_sum_exp_(above_offset.mul_(-positive_scale), mined_positives)
            total += (pull / positive_scale + push / negative_scale).sum()
            if gradient is not None:
                slope.sub_(pull_slope)  # d loss / d similarity
                gradient[tile].addmm_(slope, unit)
                gradient.addmm_(slope.T, anchors)
        if gradient is not None:
            ctx.save_for_backward(gradient.div_(n_names))
        ctx.mark_non_differentiable(counts)
        return total / n_names, counts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * upstream[0], None, None, None, None, None, None, None


def _log_one_plus_sum_exp_(exponents: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """``log(1 + sum exp)`` over the marked entries of each row, (tile, 1), and its gradient, in place, (tile, B)."""
    exponents.masked_fill_(~mask, torch.finfo(exponents.dtype).min / 4)
    highest = exponents.amax(1, keepdim=True).clamp_(min=0)  # the one is exp(0)
    terms = exp_(exponents.sub_(highest)).mul_(mask)
    total = terms.sum(1, keepdim=True) + (-highest).exp()
    return highest + total.log(), terms.div_(total)
