"""From a recipe's mining and loss to the functions of `onoma.objectives`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from onoma.errors import ConfigError
from onoma.objectives import (
    MinedShares,
    PairMasks,
    all_pair_masks,
    circle_loss,
    cosine_loss,
    cosine_similarities,
    hard_triplet_masks,
    info_nce_loss,
    lifted_structure_loss,
    mined_shares,
    multi_similarity_loss,
    multi_similarity_masks,
    nca_loss,
    semi_hard_masks,
    tiled_multi_similarity_loss,
    triplet_loss,
)
from onoma.training.config_parts import HardTriplets, Loss, Mining, MultiSimilarity

_LOSSES: dict[str, Callable[..., Tensor]] = {
    "multi-similarity": multi_similarity_loss,
    "circle": circle_loss,
    "info-nce": info_nce_loss,
    "nca": nca_loss,
    "lifted-structure": lifted_structure_loss,
    "triplet": triplet_loss,
    "cosine": cosine_loss,
}
_MINERS: dict[str, Callable[..., PairMasks]] = {
    "hard-triplet": hard_triplet_masks,
    "multi-similarity": multi_similarity_masks,
    "semi-hard": semi_hard_masks,
}


_GPU_TILE_ROWS = 2048
"""Anchors at a time on a GPU: there a small tile is done before the next one is asked for."""
_LARGE_BATCH = 2048
"""Names from which on SapBERT's loss is taken a tile at a time: faster, and in memory that does not grow with their
square."""


def mine(mining: Mining, similarity: Tensor, labels: Tensor, *, excluded: Tensor | None = None) -> PairMasks:
    """The pairs of a batch to learn from.

    Args:
        mining: Which, and its margin.
        similarity: Cosine similarities, shape (B, B).
        labels: Class of each name, integers, shape (B,).
        excluded: Pairs that are never negatives, bool, shape (B, B).
    """
    if mining.name == "all":
        return all_pair_masks(labels, excluded=excluded)
    return _MINERS[mining.name](similarity, labels, excluded=excluded, **mining.model_dump(exclude={"name"}))


def objective(
    loss: Loss,
    mining: Mining,
    vectors: Tensor,
    labels: Tensor,
    *,
    text_labels: Tensor | None = None,
    matryoshka: Sequence[int] = (),
) -> tuple[Tensor, MinedShares]:
    """The loss of a batch, averaged over all its names, and what share of its pairs was mined.

    From 2,048 names on SapBERT's loss is taken a tile of names at a time, which differs in rounding.

    With ``matryoshka`` it is the mean of the losses of the vectors' first so many numbers, for each width, and of the
    whole vectors. Each has its own cosines and its own mining, as each will be searched with on its own.

    Args:
        loss: Which, and its settings.
        mining: Which pairs.
        vectors: Not normalised, shape (B, D).
        labels: Class of each name, integers, shape (B,).
        text_labels: Names that are the same tokens share a number, integers, shape (B,); they are never negatives
            of one another. Unset: all names of other classes may be.
        matryoshka: Widths below D.

    Returns:
        The loss, shape (); the mined shares of the whole vectors' pairs.

    Raises:
        ConfigError: a width is not below D.

    Source:
        Kusupati et al. 2022, eq. 1. Differs: the mean instead of the sum, so that a threshold of the gradient's norm
        means the same with and without it.
    """
    check_widths(matryoshka, vectors.shape[1])
    losses = [_loss(loss, mining, vectors[:, :prefix], labels, text_labels)[0] for prefix in matryoshka]
    whole, shares = _loss(loss, mining, vectors, labels, text_labels)
    return (torch.stack([*losses, whole]).mean() if losses else whole), shares


def check_widths(matryoshka: Sequence[int], width: int) -> None:
    """Raise `ConfigError` unless all widths are below that of the whole vectors."""
    if any(prefix >= width for prefix in matryoshka):
        raise ConfigError(
            f"matryoshka asks for {', '.join(map(str, matryoshka))} of the {width} numbers of this encoder's vectors. "
            f"Name widths below {width}; the whole vector is always trained."
        )


def _loss(
    loss: Loss, mining: Mining, vectors: Tensor, labels: Tensor, text_labels: Tensor | None
) -> tuple[Tensor, MinedShares]:
    settings = loss.model_dump(exclude={"name"})
    if len(vectors) >= _LARGE_BATCH and isinstance(loss, MultiSimilarity) and isinstance(mining, HardTriplets):
        tile = {"tile_rows": _GPU_TILE_ROWS} if vectors.is_cuda else {}
        settings |= {"margin": mining.margin, **tile}
        return tiled_multi_similarity_loss(vectors, labels, text_labels=text_labels, **settings)
    excluded = None if text_labels is None else text_labels[:, None] == text_labels[None, :]
    similarity = cosine_similarities(vectors)
    masks = mine(mining, similarity, labels, excluded=excluded)
    values = _LOSSES[loss.name](similarity, masks, **settings)
    return values.mean(), mined_shares(masks, labels, excluded=excluded)
