"""Marginal likelihood of the right candidates: the loss of learning to rank with several right answers (BioSyn)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from onoma.errors import ShapeError
from onoma.objectives.masked import masked_log_sum_exp

_LINEAR_FROM = 50.0
"""Above it log(1 + exp(x)) is x to the last bit, also in double precision; torch's own 20 is so in single only."""


def marginal_likelihood_loss(scores: Tensor, right: Tensor) -> Tensor:
    """Minus the log-probability that a right candidate is drawn, by a softmax over a query's candidates.

    For each query::

        -log( sum_{c right} exp(s_c) / sum_c exp(s_c) )  =  log(1 + exp(W - R))

    with R and W the log-sum-exp of the scores of the right candidates and of the wrong ones. Written so, nothing over-
    or underflows however far apart the scores are, and one right candidate with a high score suffices.

    Shapes: Q queries, K candidates of each.

    Args:
        scores: Of each candidate, larger is better, shape (Q, K).
        right: Which candidates are right, bool, shape (Q, K).

    Returns:
        One loss per query, shape (Q,), never negative; zero, with gradient zero, where no candidate is right. BioSyn
        leaves such queries out: average over the others.

    Raises:
        ShapeError: the two do not fit one another.

    Source:
        Sung et al. 2020, "synonym marginalization". Differs from the released code, which sums probabilities: there a
        query whose right candidates have a probability below 1e-9 has no gradient, and is left out when it underflows.

    Example:
        >>> scores = torch.tensor([[1.0, 1.0, 1.0, 1.0]])
        >>> marginal_likelihood_loss(scores, torch.tensor([[True, False, True, False]]))  # -log(2 / 4)
        tensor([0.6931])
    """
    if scores.ndim != 2 or scores.shape != right.shape or not scores.is_floating_point() or right.dtype != torch.bool:
        raise ShapeError(
            "scores and right: expected floating-point numbers and booleans of one shape (Q, K); found "
            f"{scores.dtype} of shape {tuple(scores.shape)} and {right.dtype} of shape {tuple(right.shape)}."
        )
    if scores.shape[1] == 0:
        return scores.sum(1)
    difference = masked_log_sum_exp(scores, ~right) - masked_log_sum_exp(scores, right)
    values = softplus(difference, threshold=_LINEAR_FROM).squeeze(1)
    return torch.where(right.any(1), values, 0)
