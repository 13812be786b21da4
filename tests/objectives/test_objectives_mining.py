"""Miners against the definition by triplets, against pytorch-metric-learning, and their properties."""

from __future__ import annotations

import objective_oracles as oracle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning import distances, miners
from torch import Tensor

from onoma.errors import ShapeError
from onoma.objectives import (
    PairMasks,
    all_pair_masks,
    cosine_similarities,
    euclidean_distances,
    hard_triplet_masks,
    mined_shares,
    multi_similarity_masks,
    semi_hard_masks,
)

MINERS = {
    "hard": (hard_triplet_masks, oracle.hard),
    "semi-hard": (semi_hard_masks, oracle.semi_hard),
    "multi-similarity": (multi_similarity_masks, oracle.multi_similarity_mining),
}


def batch(seed: int, labels: list[int]) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(8, 5, generator=generator, dtype=torch.float64)
    y = torch.tensor(labels)
    vectors = centres[y % 8] + 0.7 * torch.randn(len(y), 5, generator=generator, dtype=torch.float64)
    return cosine_similarities(vectors), y


def as_set(mask: Tensor) -> oracle.Pairs:
    return {(a, b) for a, b in mask.nonzero().tolist()}


label_lists = st.lists(st.integers(0, 4), min_size=1, max_size=14)


@pytest.mark.parametrize("name", MINERS)
@given(label_lists, st.integers(0, 2**31), st.sampled_from([0.0, 0.1, 0.5]), st.booleans())
@settings(max_examples=40)
def test_masks_are_the_pairs_of_the_definition(
    name: str, labels: list[int], seed: int, margin: float, exclude: bool
) -> None:
    miner, definition = MINERS[name]
    similarity, y = batch(seed, labels)
    excluded = None
    if exclude:
        excluded = torch.rand(similarity.shape, generator=torch.Generator().manual_seed(seed)) < 0.4
    masks = miner(similarity, y, margin=margin, excluded=excluded)
    positives, negatives = definition(
        similarity.tolist(), labels, as_set(excluded) if excluded is not None else set(), margin
    )
    assert as_set(masks.positives) == positives
    assert as_set(masks.negatives) == negatives


@pytest.mark.parametrize("name", MINERS)
@given(label_lists, st.integers(0, 2**31), st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=40)
def test_ties_and_the_edge_of_the_margin_are_as_the_definition_says(
    name: str, labels: list[int], seed: int, margin: float
) -> None:
    """Similarities of distances 2, 1 and 0, without rounding."""
    miner, definition = MINERS[name]
    drawn = torch.randint(0, 3, (len(labels), len(labels)), generator=torch.Generator().manual_seed(seed))
    similarity = torch.tensor([-1.0, 0.5, 1.0])[drawn]
    masks = miner(similarity, torch.tensor(labels), margin=margin)
    assert (as_set(masks.positives), as_set(masks.negatives)) == definition(similarity.tolist(), labels, set(), margin)


@given(label_lists)
@settings(max_examples=40)
def test_no_mining_marks_every_pair_once(labels: list[int]) -> None:
    masks = all_pair_masks(torch.tensor(labels))
    n = len(labels)
    assert as_set(masks.positives) == {(a, b) for a in range(n) for b in range(n) if a != b and labels[a] == labels[b]}
    assert as_set(masks.negatives) == {(a, b) for a in range(n) for b in range(n) if labels[a] != labels[b]}


@pytest.mark.parametrize(
    ("synonym", "other", "by_distance", "by_squares"),
    [(0.5, 0.35, True, False), (0.97, 0.88, False, True), (0.5, 0.45, True, True), (0.5, 0.2, False, False)],
)
def test_the_margin_of_semi_hard_mining_is_not_that_of_squared_distances(
    synonym: float, other: float, by_distance: bool, by_squares: bool
) -> None:
    """FaceNet's is; where the two differ is told in ``docs/objectives.md``."""
    similarity = torch.tensor([[1.0, synonym, other], [synonym, 1.0, 0.0], [other, 0.0, 1.0]])
    found = semi_hard_masks(similarity, torch.tensor([0, 0, 1]))
    assert bool(found.positives[0, 1]) == bool(found.negatives[0, 2]) == by_distance
    squared = 2 - 2 * similarity[0]
    assert bool(squared[1] < squared[2] <= squared[1] + 0.2) == (synonym - 0.1 <= other < synonym) == by_squares


@pytest.mark.parametrize(("kind", "name"), [("all", "hard"), ("semihard", "semi-hard")])
def test_triplet_miners_agree_with_pytorch_metric_learning(kind: str, name: str) -> None:
    generator = torch.Generator().manual_seed(3)
    vectors = torch.randn(60, 6, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 20, (60,), generator=generator)
    masks = MINERS[name][0](cosine_similarities(vectors), y)
    a, p, n = miners.TripletMarginMiner(margin=0.2, type_of_triplets=kind)(vectors, y)
    assert len(a) > 0
    assert as_set(masks.positives) == set(zip(a.tolist(), p.tolist(), strict=True))
    assert as_set(masks.negatives) == set(zip(a.tolist(), n.tolist(), strict=True))
    assert masks.negatives.sum() < all_pair_masks(y).negatives.sum(), "the case must leave something out"


def test_multi_similarity_miner_agrees_with_pytorch_metric_learning() -> None:
    generator = torch.Generator().manual_seed(4)
    vectors = torch.randn(60, 6, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 20, (60,), generator=generator)
    masks = multi_similarity_masks(cosine_similarities(vectors), y, margin=0.1)
    reference = miners.MultiSimilarityMiner(epsilon=0.1, distance=distances.CosineSimilarity())
    a1, p, a2, n = reference(vectors, y)
    assert as_set(masks.positives) == set(zip(a1.tolist(), p.tolist(), strict=True))
    assert as_set(masks.negatives) == set(zip(a2.tolist(), n.tolist(), strict=True))


@pytest.mark.parametrize("name", MINERS)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.integers(0, 2**31))
@settings(max_examples=25)
def test_order_and_names_of_labels_do_not_matter(name: str, labels: list[int], seed: int) -> None:
    miner = MINERS[name][0]
    similarity, y = batch(seed, labels)
    masks = miner(similarity, y)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    moved = miner(similarity[order][:, order], 1000 - 7 * y[order])
    assert torch.equal(moved.positives, masks.positives[order][:, order])
    assert torch.equal(moved.negatives, masks.negatives[order][:, order])


@pytest.mark.parametrize("name", MINERS)
@pytest.mark.parametrize("labels", [[3], [1, 1, 1], [1, 2, 3]], ids=["one name", "one label", "no positives"])
def test_without_both_kinds_nothing_is_mined(name: str, labels: list[int]) -> None:
    similarity, y = batch(0, labels)
    masks = MINERS[name][0](similarity, y)
    assert not masks.positives.any()
    assert not masks.negatives.any()
    shares = mined_shares(masks, y)
    assert (float(shares.positives), float(shares.negatives)) == (0.0, 0.0)


def test_excluded_pairs_are_never_negatives_and_do_not_make_positives_hard() -> None:
    # names 0 and 2 are one text under two concepts; without them every positive is easy
    similarity = torch.tensor([[1.0, 0.9, 1.0], [0.9, 1.0, -0.5], [1.0, -0.5, 1.0]])
    y = torch.tensor([0, 0, 1])
    same_text = torch.zeros(3, 3, dtype=torch.bool)
    same_text[0, 2] = same_text[2, 0] = True
    assert hard_triplet_masks(similarity, y).negatives[0, 2]
    masks = hard_triplet_masks(similarity, y, excluded=same_text)
    assert not masks.positives.any()
    assert not masks.negatives.any()


def test_shares_count_what_could_have_been_mined() -> None:
    y = torch.tensor([0, 0, 1, 1])
    excluded = torch.zeros(4, 4, dtype=torch.bool)
    excluded[0, 2] = excluded[2, 0] = True
    none = torch.zeros(4, 4, dtype=torch.bool)
    positives, negatives = none.clone(), none.clone()
    positives[0, 1] = negatives[0, 3] = negatives[1, 3] = negatives[1, 2] = True
    shares = mined_shares(PairMasks(positives, negatives), y, excluded=excluded)
    assert (float(shares.positives), float(shares.negatives)) == (1 / 4, 3 / 6)


@pytest.mark.parametrize("name", MINERS)
def test_a_similarity_that_is_not_a_number_is_marked_not_hidden(name: str) -> None:
    similarity, y = batch(1, [0, 0, 1, 1])
    similarity[:] = torch.nan
    masks = MINERS[name][0](similarity, y)
    assert masks.positives.any()


@pytest.mark.parametrize("name", MINERS)
def test_identical_vectors_are_mined_without_gradient(name: str) -> None:
    vectors = torch.ones(4, 3, requires_grad=True)
    masks = MINERS[name][0](cosine_similarities(vectors), torch.tensor([0, 0, 1, 1]))
    assert not masks.positives.requires_grad


def test_distance_has_gradient_zero_at_zero() -> None:
    similarity = torch.tensor([1.0, 0.5, 1.5], requires_grad=True)
    distance = euclidean_distances(similarity)
    assert distance.tolist() == [0.0, 1.0, 0.0]
    (gradient,) = torch.autograd.grad(distance.sum(), similarity)
    assert gradient.tolist() == [0.0, -1.0, 0.0]


def test_similarities_of_half_precision_vectors_are_computed_in_single() -> None:
    vectors = torch.randn(7, 16, generator=torch.Generator().manual_seed(0)).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        similarity = cosine_similarities(vectors)
    assert similarity.dtype == torch.float32
    torch.testing.assert_close(similarity, cosine_similarities(vectors.double()).float(), atol=1e-6, rtol=0)


def test_arguments_that_do_not_fit_are_refused() -> None:
    similarity, y = batch(0, [0, 0, 1])
    for call in (
        lambda: hard_triplet_masks(similarity, y[:2]),
        lambda: hard_triplet_masks(similarity[:2], y),
        lambda: hard_triplet_masks(similarity, y, excluded=torch.zeros(2, 2, dtype=torch.bool)),
        lambda: hard_triplet_masks(similarity, y, excluded=torch.zeros(3, 3)),
        lambda: semi_hard_masks(similarity[0], y),
        lambda: multi_similarity_masks(torch.empty(0, 0), torch.empty(0, dtype=torch.int64)),
        lambda: all_pair_masks(y[:, None]),
        lambda: cosine_similarities(torch.empty(0, 4)),
        lambda: cosine_similarities(torch.ones(3, 4, dtype=torch.int64)),
        lambda: PairMasks(torch.zeros(2, 2), torch.zeros(2, 2)),
        lambda: PairMasks(torch.zeros(2, 2, dtype=torch.bool), torch.zeros(3, 3, dtype=torch.bool)),
        lambda: PairMasks(torch.zeros(2, 3, dtype=torch.bool), torch.zeros(2, 3, dtype=torch.bool)),
    ):
        with pytest.raises(ShapeError):
            call()


def test_shares_are_of_the_labels_that_were_mined() -> None:
    with pytest.raises(ShapeError, match="2 labels"):
        mined_shares(all_pair_masks(torch.tensor([0, 0, 1, 1])), torch.tensor([0, 0]))
