"""Losses against plain loops, finite differences and pytorch-metric-learning; edge cases; properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import objective_oracles as oracle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning import distances, losses, miners, reducers
from torch import Tensor

from onoma.errors import ConfigError, ShapeError
from onoma.objectives import (
    PairMasks,
    all_pair_masks,
    circle_loss,
    cosine_loss,
    cosine_similarities,
    hard_triplet_masks,
    info_nce_loss,
    lifted_structure_loss,
    multi_similarity_loss,
    multi_similarity_masks,
    nca_loss,
    semi_hard_masks,
    triplet_loss,
)

Loss = Callable[..., Tensor]

# name: loss, definition, the paper's settings, and milder ones that keep plain exp() in range
LOSSES: dict[str, tuple[Loss, Callable[..., list[float]], dict[str, float], dict[str, float]]] = {
    "multi-similarity": (
        multi_similarity_loss,
        oracle.multi_similarity,
        {"positive_scale": 2.0, "negative_scale": 50.0, "offset": 0.5},
        {"positive_scale": 1.0, "negative_scale": 60.0, "offset": 0.3},
    ),
    "info-nce": (info_nce_loss, oracle.info_nce, {"temperature": 0.07}, {"temperature": 0.5}),
    "nca": (nca_loss, oracle.nca, {"distance_scale": 20.0}, {"distance_scale": 1.0}),
    "circle": (circle_loss, oracle.circle, {"margin": 0.25, "scale": 256.0}, {"margin": 0.4, "scale": 8.0}),
    "triplet": (triplet_loss, oracle.triplet, {"margin": 0.2}, {"margin": 0.7}),
    "lifted-structure": (lifted_structure_loss, oracle.lifted_structure, {"margin": 0.5}, {"margin": 1.0}),
    "cosine": (cosine_loss, oracle.cosine, {"margin": 0.0}, {"margin": 0.3}),
}

MINERS: dict[str, Callable[[Tensor, Tensor], PairMasks]] = {
    "hard-triplet": hard_triplet_masks,
    "semi-hard": semi_hard_masks,
    "multi-similarity": multi_similarity_masks,
    "all": lambda _similarity, labels: all_pair_masks(labels),
}


def names(seed: int, n_names: int, n_labels: int, width: int = 5) -> tuple[Tensor, Tensor]:
    """Vectors that lie loosely around one centre per label, and the labels."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_labels, (n_names,), generator=generator)
    centres = torch.randn(n_labels, width, generator=generator, dtype=torch.float64)
    return centres[y] + 0.6 * torch.randn(n_names, width, generator=generator, dtype=torch.float64), y


def as_set(mask: Tensor) -> oracle.Pairs:
    return {(a, b) for a, b in mask.nonzero().tolist()}


@pytest.mark.parametrize("name", LOSSES)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**31), st.sampled_from(["all", "hard", "ms"]))
@settings(max_examples=40)
def test_values_are_those_of_the_definition(name: str, n_names: int, n_labels: int, seed: int, mining: str) -> None:
    loss, definition, _, settings_ = LOSSES[name]
    vectors, y = names(seed, n_names, n_labels)
    similarity = cosine_similarities(vectors)
    masks = {
        "all": all_pair_masks(y),
        "hard": hard_triplet_masks(similarity, y),
        "ms": multi_similarity_masks(similarity, y),
    }[mining]
    expected = definition(similarity.tolist(), as_set(masks.positives), as_set(masks.negatives), **settings_)
    torch.testing.assert_close(
        loss(similarity, masks, **settings_), torch.tensor(expected, dtype=torch.float64), atol=1e-9, rtol=1e-9
    )


@pytest.mark.parametrize("name", LOSSES)
def test_defaults_are_those_of_the_paper(name: str) -> None:
    loss, _, defaults, _ = LOSSES[name]
    vectors, y = names(5, 14, 4)
    similarity = cosine_similarities(vectors)
    assert torch.equal(loss(similarity, all_pair_masks(y)), loss(similarity, all_pair_masks(y), **defaults))


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "circle"])
@pytest.mark.parametrize("paper", [True, False], ids=["paper", "other"])
def test_gradients_are_those_of_finite_differences(name: str, paper: bool) -> None:
    loss, _, defaults, milder = LOSSES[name]
    vectors, y = names(11, 9, 3)
    masks = hard_triplet_masks(cosine_similarities(vectors), y)
    chosen = defaults if paper else milder
    assert torch.autograd.gradcheck(
        lambda x: loss(cosine_similarities(x), masks, **chosen), vectors.requires_grad_(), atol=1e-5
    )


def test_circle_gradient_takes_its_weights_as_constants() -> None:
    vectors, y = names(11, 9, 3)
    similarity = cosine_similarities(vectors).requires_grad_()
    masks = all_pair_masks(y)
    (gradient,) = torch.autograd.grad(circle_loss(similarity, masks, margin=0.4, scale=8.0).sum(), similarity)
    fixed, step = similarity.detach().tolist(), 1e-6
    pairs = as_set(masks.positives), as_set(masks.negatives)
    for a, b in [(0, 1), (2, 5), (7, 3)]:
        values = []
        for sign in (1, -1):
            moved = similarity.detach().clone()
            moved[a, b] += sign * step
            values.append(sum(oracle.circle_with_weights(moved.tolist(), fixed, *pairs, margin=0.4, scale=8.0)))
        assert gradient[a, b].item() == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-6)


def weighted(values: Tensor, weights: Tensor) -> Tensor:
    """Mean over pairs or triplets from per-anchor means."""
    return (values * weights).sum() / weights.sum().clamp(min=1)


def euclidean() -> Any:
    return distances.LpDistance(normalize_embeddings=True, p=2)


def reference_of(name: str) -> Any:
    cosine, mean = distances.CosineSimilarity(), reducers.MeanReducer()
    return {
        "multi-similarity": lambda: losses.MultiSimilarityLoss(alpha=2, beta=50, base=0.5),
        "info-nce": lambda: losses.NTXentLoss(temperature=0.07, distance=cosine),
        "nca": lambda: losses.NCALoss(softmax_scale=20, reducer=mean),
        "circle": lambda: losses.CircleLoss(m=0.25, gamma=256, reducer=mean),
        "triplet": lambda: losses.TripletMarginLoss(margin=0.2, distance=euclidean(), reducer=mean),
        "lifted-structure": lambda: losses.LiftedStructureLoss(neg_margin=0.5, distance=euclidean()),
    }[name]()


@pytest.mark.parametrize(
    ("name", "mined"),
    [
        # NCA with all pairs only: the library's miner weights anchors there instead of leaving pairs out
        (name, mined)
        for name in ("multi-similarity", "info-nce", "circle", "triplet", "lifted-structure", "nca")
        for mined in ((False,) if name == "nca" else (False, True))
    ],
)
def test_value_and_gradient_agree_with_pytorch_metric_learning(name: str, mined: bool) -> None:
    """Its averages are over pairs or triplets where ours are over anchors; brought to one here."""
    vectors, y = names(7, 40, 12, width=8)
    vectors.requires_grad_()
    similarity = cosine_similarities(vectors)
    masks, indices = all_pair_masks(y), None
    if mined:
        masks = hard_triplet_masks(similarity, y)
        indices = miners.TripletMarginMiner(margin=0.2, type_of_triplets="all")(vectors, y)
        if name in {"info-nce", "lifted-structure"}:  # a list of triplets would count a pair as often as its triplets
            indices = (*masks.positives.nonzero().T, *masks.negatives.nonzero().T)
    n_positives, n_negatives = masks.positives.sum(1), masks.negatives.sum(1)
    values = LOSSES[name][0](similarity, masks)
    if name in {"info-nce", "lifted-structure"}:
        ours = weighted(values, n_positives)
    elif name == "triplet":
        n_triplets = len(indices[0]) if indices else (n_positives * n_negatives).sum()
        ours = (values * n_positives * n_negatives).sum() / n_triplets
    elif name == "nca":
        ours = values[n_positives > 0].mean()
    else:
        ours = values.mean()
    theirs = reference_of(name)(vectors, y, indices)
    assert theirs > 0
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)
    (our_gradient,) = torch.autograd.grad(ours, vectors, retain_graph=True)
    (their_gradient,) = torch.autograd.grad(theirs, vectors)
    torch.testing.assert_close(our_gradient, their_gradient, atol=1e-6, rtol=1e-5)


def test_cosine_loss_agrees_with_pytorch_metric_learning() -> None:
    vectors, y = names(7, 40, 12, width=8)
    similarity, masks = cosine_similarities(vectors), all_pair_masks(y)
    reference = losses.ContrastiveLoss(
        pos_margin=1, neg_margin=0.1, distance=distances.CosineSimilarity(), reducer=reducers.MeanReducer()
    )
    no_pairs = torch.zeros_like(masks.positives)
    pull = cosine_loss(similarity, PairMasks(masks.positives, no_pairs), margin=0.1)
    push = cosine_loss(similarity, PairMasks(no_pairs, masks.negatives), margin=0.1)
    ours = weighted(pull, masks.positives.sum(1)) + weighted(push, masks.negatives.sum(1))
    torch.testing.assert_close(ours, reference(vectors, y), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
@given(st.integers(2, 10), st.integers(1, 4), st.integers(0, 2**31))
@settings(max_examples=20)
def test_order_and_names_of_labels_do_not_matter(name: str, n_names: int, n_labels: int, seed: int) -> None:
    loss = LOSSES[name][0]
    vectors, y = names(seed, n_names, n_labels)
    order = torch.randperm(n_names, generator=torch.Generator().manual_seed(seed))
    values = loss(cosine_similarities(vectors), all_pair_masks(y))
    moved = loss(cosine_similarities(vectors[order]), all_pair_masks(50 - 3 * y[order]))
    torch.testing.assert_close(moved, values[order])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    "labels", [[3], [1, 1, 1], [1, 2, 3], [0, 0, 1]], ids=["one name", "one label", "no positives", "a lone name"]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_missing_pairs_give_finite_values_and_gradients(name: str, labels: list[int], dtype: torch.dtype) -> None:
    loss = LOSSES[name][0]
    y = torch.tensor(labels)
    vectors = torch.randn(len(y), 4, generator=torch.Generator().manual_seed(2), dtype=dtype).requires_grad_()
    masks = all_pair_masks(y)
    values = loss(cosine_similarities(vectors), masks)
    assert values.shape == y.shape
    assert values.isfinite().all()
    assert (values >= 0).all()
    (gradient,) = torch.autograd.grad(values.sum(), vectors)
    assert gradient.isfinite().all()
    without_any = ~(masks.positives.any(1) | masks.negatives.any(1))
    assert (values[without_any] == 0).all()
    if name not in {"multi-similarity", "cosine"}:
        lacking = ~(masks.positives.any(1) & masks.negatives.any(1))
        assert (values[lacking] == 0).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("fill", [1.0, 0.0], ids=["identical", "zero"])
def test_identical_and_zero_vectors_give_finite_gradients(name: str, fill: float) -> None:
    vectors = torch.full((6, 4), fill).requires_grad_()
    y = torch.tensor([0, 0, 1, 1, 2, 2])
    similarity = cosine_similarities(vectors)
    values = LOSSES[name][0](similarity, hard_triplet_masks(similarity, y))
    assert values.isfinite().all()
    assert (values > 0).all()
    (gradient,) = torch.autograd.grad(values.mean(), vectors)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_single_precision_holds_at_the_sharpest_settings(name: str) -> None:
    loss = LOSSES[name][0]
    vectors, y = names(3, 200, 60, width=16)
    masks = all_pair_masks(y)
    expected = loss(cosine_similarities(vectors), masks)
    found = loss(cosine_similarities(vectors.float()), masks)
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("mining", MINERS)
@pytest.mark.parametrize("broken", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("where", [0, 4, slice(None)], ids=["with a synonym", "alone", "all"])
def test_vectors_that_are_not_numbers_show_in_the_loss(
    name: str, mining: str, broken: float, where: int | slice
) -> None:
    """With a gradient, as in training, and without."""
    y = torch.tensor([0, 0, 1, 1, 2])
    for is_trained in (True, False):
        vectors = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
        vectors[where, 1] = broken
        similarity = cosine_similarities(vectors.requires_grad_(is_trained))
        assert LOSSES[name][0](similarity, MINERS[mining](similarity, y)).mean().isnan()


@pytest.mark.parametrize("name", LOSSES)
def test_masks_of_another_batch_are_refused(name: str) -> None:
    masks = all_pair_masks(torch.tensor([0, 0, 1]))
    for similarity in (torch.zeros(2, 2), torch.zeros(3), torch.zeros(3, 3, dtype=torch.int64)):
        with pytest.raises(ShapeError):
            LOSSES[name][0](similarity, masks)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        (name, setting)
        for name, (*_, own, _) in LOSSES.items()
        for setting in own
        if setting not in ("margin", "offset")
    ],
)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_scales_and_temperatures_are_positive(name: str, setting: str, value: float) -> None:
    masks = all_pair_masks(torch.tensor([0, 0, 1]))
    with pytest.raises(ConfigError, match=f"^{setting} must be a positive number"):
        LOSSES[name][0](torch.eye(3), masks, **{setting: value})
