"""Losses that set an anchor's positives against its negatives in one softmax: InfoNCE, NCA, circle."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from onoma.objectives.masked import check_fit, check_positive, masked_log_sum_exp, masked_mean
from onoma.objectives.mining import PairMasks


def info_nce_loss(similarity: Tensor, masks: PairMasks, *, temperature: float = 0.07) -> Tensor:
    """InfoNCE over mined pairs: each positive against all negatives of its anchor.

    For each anchor a, the mean over its positives p of::

        -log( exp(s_ap / t) / (exp(s_ap / t) + sum_{n in N} exp(s_an / t)) )

    Other positives of the anchor are not in the denominator.

    Args:
        similarity: Cosine similarities, shape (B, B).
        masks: Mined pairs.
        temperature: Cosine units per factor e; smaller is sharper.

    Returns:
        One loss per anchor, shape (B,); zero where an anchor lacks a positive or a negative. Average over
        all B. (The usual implementation averages over all pairs (a, p) instead.)

    Raises:
        ConfigError: ``temperature`` is not positive.
        ShapeError: the masks do not match the matrix.

    Source:
        van den Oord et al. 2018, eq. 4; temperature of He et al. 2020, as in SapBERT's appendix B.2.
    """
    check_fit(similarity, masks)
    check_positive(temperature=temperature)
    scaled = similarity / temperature
    negatives = masked_log_sum_exp(scaled, masks.negatives)
    return masked_mean(softplus(negatives - scaled), masks.positives)


def nca_loss(similarity: Tensor, masks: PairMasks, *, distance_scale: float = 20.0) -> Tensor:
    """Neighbourhood component analysis: the probability of stepping to a positive.

    For each anchor a, with squared distances ``d^2 = 2 - 2 s`` of unit vectors::

        -log( sum_{p in P} exp(-scale d_ap^2) / sum_{k in P or N} exp(-scale d_ak^2) )

    One positive close by suffices; the others may stay away.

    Args:
        similarity: Cosine similarities, shape (B, B).
        masks: Mined pairs. The softmax runs over these pairs only; with all pairs marked it is the original.
        distance_scale: Factor of the squared distance; larger looks at nearer neighbours only.

    Returns:
        One loss per anchor, shape (B,); zero where an anchor lacks a positive or a negative. Average over
        all B.

    Raises:
        ConfigError: ``distance_scale`` is not positive.
        ShapeError: the masks do not match the matrix.

    Source:
        Goldberger et al. 2005, eq. 2 with the logarithm of eq. 7 and the distance of unit vectors as metric;
        scale of SapBERT's hyper-parameter table.
    """
    check_fit(similarity, masks)
    check_positive(distance_scale=distance_scale)
    exponents = 2 * distance_scale * similarity
    positives = masked_log_sum_exp(exponents, masks.positives)
    negatives = masked_log_sum_exp(exponents, masks.negatives)
    values = softplus(negatives - positives).squeeze(1)
    return torch.where(masks.positives.any(1), values, 0)


def circle_loss(similarity: Tensor, masks: PairMasks, *, margin: float = 0.25, scale: float = 256.0) -> Tensor:
    """Circle loss: every pair weighs by how far it is from where it should be.

    For each anchor a::

        log(1 + sum_{n in N} exp(scale w_n (s_an - margin)) * sum_{p in P} exp(-scale w_p (s_ap - 1 + margin)))
        w_n = max(0, s_an + margin),  w_p = max(0, 1 + margin - s_ap)

    The weights are constants for the gradient.

    Args:
        similarity: Cosine similarities, shape (B, B).
        masks: Mined pairs.
        margin: In cosine units: negatives shall end below it, positives above one minus it.
        scale: Sharpness, gamma in the paper.

    Returns:
        One loss per anchor, shape (B,); zero where an anchor lacks a positive or a negative. Average over
        all B.

    Raises:
        ConfigError: ``scale`` is not positive.
        ShapeError: the masks do not match the matrix.

    Source:
        Sun et al. 2020, eq. 6 with the settings of its section 3.3; margin and scale as in SapBERT's table.
    """
    check_fit(similarity, masks)
    check_positive(scale=scale)
    fixed = similarity.detach()
    pull = -scale * (1 + margin - fixed).clamp(min=0) * (similarity - (1 - margin))
    push = scale * (fixed + margin).clamp(min=0) * (similarity - margin)
    both = masked_log_sum_exp(pull, masks.positives) + masked_log_sum_exp(push, masks.negatives)
    return softplus(both).squeeze(1)
