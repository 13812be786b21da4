"""Losses with a margin, zero once it is kept: triplet, lifted structure, cosine."""

from __future__ import annotations

import torch
from torch import Tensor

from onoma.objectives.masked import check_fit, masked_log_sum_exp, masked_mean
from onoma.objectives.mining import PairMasks
from onoma.objectives.similarity import euclidean_distances


def triplet_loss(similarity: Tensor, masks: PairMasks, *, margin: float = 0.2) -> Tensor:
    """Max-margin triplet loss: positives nearer than negatives by a margin.

    For each anchor a, the mean over its triplets (p in P, n in N) of ``max(0, d_ap - d_an + margin)``.

    Triplets are not listed: if an anchor's negatives are sorted by distance, the first k of them violate the
    margin of a positive, and their sum is a difference of running sums. Memory is B^2, not B^3.

    Args:
        similarity: Cosine similarities, shape (B, B).
        masks: Mined pairs.
        margin: In units of Euclidean distance on unit vectors, 0..2.

    Returns:
        One loss per anchor, shape (B,); zero where an anchor lacks a positive or a negative. Average over
        all B. (Libraries usually average over the triplets that violate the margin instead.)

    Raises:
        ShapeError: the masks do not match the matrix.

    Source:
        Basaldella et al. 2020 (COMETA), whose margin of 0.2 SapBERT's comparison keeps.
    """
    check_fit(similarity, masks)
    distance = euclidean_distances(similarity)
    nearest_first = distance.masked_fill(~masks.negatives, torch.inf).sort(1).values
    running = torch.where(nearest_first.isfinite(), nearest_first, 0).cumsum(1)
    running = torch.cat([running.new_zeros(len(running), 1), running], 1)
    limit = distance + margin
    violating = torch.searchsorted(nearest_first.detach(), limit.detach())
    sums = violating * limit - running.gather(1, violating)
    farthest = nearest_first[:, -1:]  # NaN if any is, and no sum reaches it there
    sums = torch.where(farthest.isnan(), farthest, sums)
    return masked_mean(sums, masks.positives) / masks.negatives.count_nonzero(1).clamp(min=1)


def lifted_structure_loss(similarity: Tensor, masks: PairMasks, *, margin: float = 0.5) -> Tensor:
    """Lifted structure loss: each positive pair against the negatives of both its ends.

    For each anchor a, the mean over its positives p of ``max(0, J_ap)^2 / 2`` with::

        J_ap = d_ap + log( sum_{n in N_a} exp(margin - d_an) + sum_{n in N_p} exp(margin - d_pn) )

    Args:
        similarity: Cosine similarities, shape (B, B).
        masks: Mined pairs; N_p are the negatives that p has as an anchor.
        margin: In units of Euclidean distance on unit vectors.

    Returns:
        One loss per anchor, shape (B,); zero where an anchor has no positive, or neither end a negative.
        Average over all B. (The paper averages over the positive pairs instead.)

    Raises:
        ShapeError: the masks do not match the matrix.

    Source:
        Oh Song et al. 2016, eq. 4; margin 0.5 of SapBERT's table (1 in the paper).
    """
    check_fit(similarity, masks)
    distance = euclidean_distances(similarity)
    negatives = masked_log_sum_exp(margin - distance, masks.negatives)
    violation = torch.logaddexp(negatives, negatives.T) + distance
    return masked_mean(violation.clamp(min=0).square() / 2, masks.positives)


def cosine_loss(similarity: Tensor, masks: PairMasks, *, margin: float = 0.0) -> Tensor:
    """Cosine loss: positives to cosine one, negatives below the margin, each pair on its own.

    For each anchor a: ``mean_{p in P} (1 - s_ap) + mean_{n in N} max(0, s_an - margin)``.

    Args:
        similarity: Cosine similarities, shape (B, B).
        masks: Mined pairs.
        margin: In cosine units, -1..1.

    Returns:
        One loss per anchor, shape (B,); zero where an anchor has no pair. Average over all B.

    Raises:
        ShapeError: the masks do not match the matrix.

    Source:
        The cosine embedding loss as libraries define it. SapBERT's comparison names a "simple cosine loss" after
        Phan et al. 2019 without a formula and its code has none, so its figures may be of a variant.
    """
    check_fit(similarity, masks)
    pull = masked_mean(1 - similarity, masks.positives)
    push = masked_mean((similarity - margin).clamp(min=0), masks.negatives)
    return pull + push
