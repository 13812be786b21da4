"""Which pairs of a batch are worth learning from, as masks.

A triplet is an anchor a, a positive p (another name with a's label) and a negative n (a name with another
label). Mining by triplets only needs to know which *pairs* (a, p) and (a, n) occur in a kept triplet. The nearest
negative and the farthest positive of each anchor decide this, without listing B^3 triplets.

Pairs marked in ``excluded`` are never negatives: the same text under two concepts is one point for the
encoder, and pushing it away from itself only adds noise.

Conditions are written as "not beyond the limit", which marks pairs whose similarity is NaN: a broken encoder
then shows in every loss instead of looking like a batch with nothing to learn.

Shapes: B names in the batch. Everything here runs without gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from onoma.errors import ShapeError
from onoma.objectives.similarity import euclidean_distances


@dataclass(frozen=True, slots=True, eq=False)
class PairMasks:
    """Pairs of a batch to learn from; rows are anchors.

    Raises:
        ShapeError: the two are not boolean matrices of one square shape (B, B), B > 0.
    """

    positives: Tensor
    """To be pulled together, bool, shape (B, B), False on the diagonal."""
    negatives: Tensor
    """To be pushed apart, bool, shape (B, B)."""

    def __post_init__(self) -> None:
        for name, mask in (("positives", self.positives), ("negatives", self.negatives)):
            if mask.dtype != torch.bool or mask.ndim != 2 or mask.shape[0] != mask.shape[1] or len(mask) == 0:
                raise ShapeError(
                    f"{name}: expected bool of shape (B, B) with B > 0; "
                    f"found {mask.dtype} of shape {tuple(mask.shape)}."
                )
        if self.positives.shape != self.negatives.shape:
            raise ShapeError(
                f"positives {tuple(self.positives.shape)} and negatives {tuple(self.negatives.shape)} differ in shape."
            )


@dataclass(frozen=True, slots=True)
class MinedShares:
    """How much of a batch was mined; a training log shows it. The counts stay on their device, so that
    nothing waits for a GPU.
    """

    positives: Tensor
    """Mined share of all positive pairs, 0..1, float64, shape (); 0 when there are none."""
    negatives: Tensor
    """Mined share of all negative pairs that are not excluded, 0..1, float64, shape (); 0 when there are none."""

    @staticmethod
    def of_counts(counts: Tensor) -> MinedShares:
        """Of mined positive, positive, mined negative and negative pairs, integers, shape (4,)."""
        mined, possible = counts.double().view(2, 2).unbind(1)
        positives, negatives = mined / possible.clamp(min=1)
        return MinedShares(positives, negatives)


def all_pair_masks(labels: Tensor, *, excluded: Tensor | None = None) -> PairMasks:
    """No mining: every pair with one label is positive, every other pair negative.

    Args:
        labels: Class of each name, integers, shape (B,).
        excluded: Pairs that are never negatives, bool, shape (B, B).

    Raises:
        ShapeError: the arguments do not fit one another, or the batch is empty.

    Example:
        >>> all_pair_masks(torch.tensor([7, 7, 3])).positives.int()
        tensor([[0, 1, 0],
                [1, 0, 0],
                [0, 0, 0]], dtype=torch.int32)
    """
    if labels.ndim != 1 or len(labels) == 0:
        raise ShapeError(f"labels: expected shape (B,) with B > 0; found {tuple(labels.shape)}.")
    positives = labels[:, None] == labels[None, :]
    negatives = ~positives
    positives.fill_diagonal_(False)
    if excluded is not None:
        if excluded.shape != positives.shape or excluded.dtype != torch.bool:
            raise ShapeError(
                f"excluded: expected bool of shape {tuple(positives.shape)}; "
                f"found {excluded.dtype} of shape {tuple(excluded.shape)}."
            )
        negatives &= ~excluded
    return PairMasks(positives, negatives)


@torch.no_grad()
def hard_triplet_masks(
    similarity: Tensor, labels: Tensor, *, margin: float = 0.2, excluded: Tensor | None = None
) -> PairMasks:
    """Pairs of the hard triplets: a triplet is hard when ``d(a, n) <= d(a, p) + margin``.

    In masks: (a, p) is mined iff the nearest negative of a is no further than ``d(a, p) + margin``; (a, n) is
    mined iff n is no further than the farthest positive of a plus the margin. Each pair counts once, however
    many triplets it is in. ``d`` is the Euclidean distance of unit vectors.

    Args:
        similarity: Cosine similarities, shape (B, B).
        labels: Class of each name, integers, shape (B,).
        margin: In units of distance, 0..2.
        excluded: Pairs that are never negatives, bool, shape (B, B).

    Returns:
        The mined pairs; empty rows for anchors without a positive or without a negative.

    Raises:
        ShapeError: the arguments do not fit one another, or the batch is empty.

    Source:
        SapBERT (Liu et al. 2021), eq. 1. The equation is printed with the margin on the negative's side; the
        released code, from which the published numbers come, has it on the positive's side, as here.

    Example:
        >>> similarity = torch.tensor([[1.0, 0.9, 0.8], [0.9, 1.0, 0.0], [0.8, 0.0, 1.0]])
        >>> masks = hard_triplet_masks(similarity, torch.tensor([5, 5, 6]))
        >>> masks.negatives.nonzero().tolist()  # name 1 is far from the negative 2, so only anchor 0 has a hard one
        [[0, 2]]
    """
    pairs = _candidates(similarity, labels, excluded)
    distance = euclidean_distances(similarity)
    return PairMasks(*mine_hard_triplets(distance, pairs.positives, pairs.negatives, margin))


def mine_hard_triplets(distance: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """Hard triplets among candidate pairs, for any number of anchors: all arguments of shape (anchors, B)."""
    nearest_negative = distance.masked_fill(~negatives, torch.inf).amin(1, keepdim=True)
    farthest_positive = distance.masked_fill(~positives, -torch.inf).amax(1, keepdim=True)
    return (
        positives & ~(nearest_negative > distance + margin),
        negatives & ~(distance > farthest_positive + margin),
    )


@torch.no_grad()
def semi_hard_masks(
    similarity: Tensor, labels: Tensor, *, margin: float = 0.2, excluded: Tensor | None = None
) -> PairMasks:
    """Pairs of the semi-hard triplets: ``d(a, p) < d(a, n) <= d(a, p) + margin``.

    The negative is further than the positive, but not by more than the margin. By sorting each anchor's
    distances: a positive is mined iff the first negative beyond it is within the margin, a negative iff the
    last positive before it is.

    Args:
        similarity: Cosine similarities, shape (B, B).
        labels: Class of each name, integers, shape (B,).
        margin: In units of distance, 0..2.
        excluded: Pairs that are never negatives, bool, shape (B, B).

    Returns:
        The mined pairs.

    Raises:
        ShapeError: the arguments do not fit one another, or the batch is empty.

    Source:
        Schroff et al. 2015 (FaceNet), eq. 4 with the margin named there, 0.2. Differs: theirs is of squared distances,
        ``d(a, n)^2 <= d(a, p)^2 + 0.2``, which is a cosine of 0.1 everywhere. Ours takes in more pairs where
        the two distances add up to more than 1 (cosines below some 0.87), and fewer where they add up to less.
    """
    pairs = _candidates(similarity, labels, excluded)
    distance = euclidean_distances(similarity)
    n_names = len(distance)
    nowhere = distance.new_full((n_names, 1), torch.inf)

    negatives_up = torch.cat([distance.masked_fill(~pairs.negatives, torch.inf).sort(1).values, nowhere], 1)
    beyond = torch.searchsorted(negatives_up, distance, right=True).clamp(max=n_names)
    first_beyond = negatives_up.gather(1, beyond)

    positives_up = torch.cat([-nowhere, distance.masked_fill(~pairs.positives, torch.inf).sort(1).values], 1)
    before = (torch.searchsorted(positives_up, distance) - 1).clamp(min=0)
    last_before = positives_up.gather(1, before)
    return PairMasks(
        pairs.positives & ~(first_beyond > distance + margin),
        pairs.negatives & ~(distance > last_before + margin),
    )


@torch.no_grad()
def multi_similarity_masks(
    similarity: Tensor, labels: Tensor, *, margin: float = 0.1, excluded: Tensor | None = None
) -> PairMasks:
    """Pairs that the hardest pair of the other kind makes informative.

    (a, p) is mined iff ``s(a, p) - margin < max_n s(a, n)``; (a, n) iff ``s(a, n) + margin > min_p s(a, p)``.

    Args:
        similarity: Cosine similarities, shape (B, B).
        labels: Class of each name, integers, shape (B,).
        margin: In cosine units, 0..2.
        excluded: Pairs that are never negatives, bool, shape (B, B).

    Returns:
        The mined pairs; empty rows for anchors without a positive or without a negative.

    Raises:
        ShapeError: the arguments do not fit one another, or the batch is empty.

    Source:
        Wang et al. 2019, eq. 7 and 8; CODER (Yuan et al. 2020), whose text exchanges the two sets.
    """
    pairs = _candidates(similarity, labels, excluded)
    hardest_negative = similarity.masked_fill(~pairs.negatives, -torch.inf).amax(1, keepdim=True)
    hardest_positive = similarity.masked_fill(~pairs.positives, torch.inf).amin(1, keepdim=True)
    return PairMasks(
        pairs.positives & ~(similarity - margin >= hardest_negative),
        pairs.negatives & ~(similarity + margin <= hardest_positive),
    )


def mined_shares(masks: PairMasks, labels: Tensor, *, excluded: Tensor | None = None) -> MinedShares:
    """Mined share of all positive and of all negative pairs of a batch.

    Args:
        masks: What was mined.
        labels: Class of each name, integers, shape (B,).
        excluded: As given to the miner.

    Raises:
        ShapeError: they are of batches of different sizes.

    Example:
        >>> labels = torch.tensor([1, 1, 2])
        >>> mined_shares(all_pair_masks(labels), labels).positives
        tensor(1., dtype=torch.float64)
    """
    possible = all_pair_masks(labels, excluded=excluded)
    if possible.positives.shape != masks.positives.shape:
        raise ShapeError(
            f"what was mined has the shape {tuple(masks.positives.shape)}, and there are {len(labels)} labels."
        )
    pairs = (masks.positives, possible.positives, masks.negatives, possible.negatives)
    return MinedShares.of_counts(torch.stack([one.count_nonzero() for one in pairs]))


def _candidates(similarity: Tensor, labels: Tensor, excluded: Tensor | None) -> PairMasks:
    pairs = all_pair_masks(labels, excluded=excluded)
    if similarity.shape != pairs.positives.shape:
        raise ShapeError(f"similarity {tuple(similarity.shape)} does not fit {len(labels)} labels.")
    return pairs
