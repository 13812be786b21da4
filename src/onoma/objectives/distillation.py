"""Distillation: a small encoder learns how near another encoder finds the names of a batch to one another."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from onoma.errors import ShapeError
from onoma.objectives.masked import check_positive


def distillation_loss(similarity: Tensor, teacher_similarity: Tensor, *, temperature: float = 0.05) -> Tensor:
    """How much each name's neighbours in the batch differ from its neighbours for a teacher.

    For each anchor a, with s the similarities of the student and t those of the teacher, over the other names k::

        KL(p || q) = sum_k p_ak log(p_ak / q_ak)
        p_ak = exp(t_ak / T) / sum_{l != a} exp(t_al / T)        q_ak likewise from s

    The two may have vectors of different widths: only similarities are compared. No label is needed.

    Args:
        similarity: Cosine similarities of the student, shape (B, B).
        teacher_similarity: Of the teacher, the same names in the same order, shape (B, B); constant.
        temperature: Cosine units per factor e; smaller looks at nearer neighbours only.

    Returns:
        One loss per anchor, shape (B,), never negative except by rounding; zero if both agree, or if there is no other
        name. Average over all B.

    Raises:
        ConfigError: ``temperature`` is not positive.
        ShapeError: the two are no square matrices of floating-point numbers of one size.

    Source:
        Hinton et al. 2015 for the temperature; Passalis and Tefas 2018, "Learning deep representations with
        probabilistic knowledge transfer", for teaching neighbours in the batch. Differs: a softmax of cosines
        with a temperature in place of their shifted cosines.
    """
    shape = tuple(similarity.shape)
    is_square = len(shape) == 2 and shape[0] == shape[1]
    are_real = similarity.is_floating_point() and teacher_similarity.is_floating_point()
    if not is_square or tuple(teacher_similarity.shape) != shape or not are_real:
        raise ShapeError(
            "similarity and teacher_similarity: expected floating-point numbers of one shape (B, B); found "
            f"{similarity.dtype} of shape {shape} and {teacher_similarity.dtype} of shape "
            f"{tuple(teacher_similarity.shape)}."
        )
    check_positive(temperature=temperature)
    if len(similarity) < 2:
        return similarity.sum(1) * 0
    itself = torch.eye(len(similarity), dtype=torch.bool, device=similarity.device)
    student, teacher = (
        log_softmax((one / temperature).masked_fill(itself, -math.inf), dim=1)
        for one in (similarity, teacher_similarity.detach())
    )
    return (teacher.exp() * (teacher - student).masked_fill(itself, 0)).sum(1)
