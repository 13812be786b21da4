"""The multi-similarity loss, SapBERT's objective."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus

from onoma.objectives.masked import check_fit, check_positive, masked_log_sum_exp
from onoma.objectives.mining import PairMasks


def multi_similarity_loss(
    similarity: Tensor,
    masks: PairMasks,
    *,
    positive_scale: float = 2.0,
    negative_scale: float = 50.0,
    offset: float = 0.5,
) -> Tensor:
    """Multi-similarity loss over mined pairs.

    For each anchor a with mined positives P and negatives N::

          1/positive_scale log(1 + sum_{p in P} exp(-positive_scale (s_ap - offset)))
        + 1/negative_scale log(1 + sum_{n in N} exp( negative_scale (s_an - offset)))

    A pair weighs more the further it lies on the wrong side of ``offset``, and the fewer of its rivals lie there
    too. The scales say how sharply.

    Shapes: B names in the batch.

    Args:
        similarity: Cosine similarities, shape (B, B).
        masks: Mined pairs.
        positive_scale: Sharpness of the pull on positives. SapBERT's released code: 1.
        negative_scale: Sharpness of the push on negatives. SapBERT's released code: 60.
        offset: Cosine at which a pair is neutral, -1..1. Cross-lingual SapBERT's paper: 1.

    Returns:
        One loss per anchor, shape (B,); zero where an anchor has no pair. Average over all B.

    Raises:
        ConfigError: a scale is not positive.
        ShapeError: the masks do not match the matrix.

    Source:
        Wang et al. 2019, eq. 10; SapBERT (Liu et al. 2021), eq. 2, which prints the two scales exchanged
        (alpha, there 2, on the negatives). Wang et al., CODER, SapBERT's code and every library have the small
        scale on the positives, as here; hence the names.

    Example:
        >>> import torch
        >>> from onoma.objectives import all_pair_masks
        >>> labels, similarity = torch.tensor([1, 1]), torch.tensor([[1.0, 0.5], [0.5, 1.0]])
        >>> multi_similarity_loss(similarity, all_pair_masks(labels))  # log(1 + exp(0)) / 2
        tensor([0.3466, 0.3466])
    """
    check_fit(similarity, masks)
    check_positive(positive_scale=positive_scale, negative_scale=negative_scale)
    above_offset = similarity - offset
    pull = softplus(masked_log_sum_exp(-positive_scale * above_offset, masks.positives)) / positive_scale
    push = softplus(masked_log_sum_exp(negative_scale * above_offset, masks.negatives)) / negative_scale
    return (pull + push).squeeze(1)
