"""The tiled loss equals mining and loss on whole matrices."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onoma.errors import ConfigError, ShapeError
from onoma.objectives import (
    cosine_similarities,
    hard_triplet_masks,
    mined_shares,
    multi_similarity_loss,
    tiled_multi_similarity_loss,
)


def names(n_names: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n_names)
    y = torch.randint(0, max(1, n_names // 3), (n_names,), generator=generator)
    texts = torch.randint(0, 2 * n_names, (n_names,), generator=generator)
    return torch.randn(n_names, 6, generator=generator, dtype=dtype), y, texts


@pytest.mark.parametrize("tile_rows", [1, 7, 30, 64])
@pytest.mark.parametrize("with_texts", [False, True])
@pytest.mark.parametrize("scales", [(2.0, 50.0, 0.5), (1.0, 60.0, 0.3)], ids=["paper", "code"])
def test_value_gradient_and_shares_equal_the_whole_matrices(
    tile_rows: int, with_texts: bool, scales: tuple[float, float, float]
) -> None:
    vectors, y, texts = names(30)
    vectors.requires_grad_()
    excluded = texts[:, None] == texts[None, :] if with_texts else None
    positive_scale, negative_scale, offset = scales
    similarity = cosine_similarities(vectors)
    masks = hard_triplet_masks(similarity, y, margin=0.1, excluded=excluded)
    whole = multi_similarity_loss(
        similarity, masks, positive_scale=positive_scale, negative_scale=negative_scale, offset=offset
    ).mean()
    tiled, shares = tiled_multi_similarity_loss(
        vectors,
        y,
        margin=0.1,
        positive_scale=positive_scale,
        negative_scale=negative_scale,
        offset=offset,
        text_labels=texts if with_texts else None,
        tile_rows=tile_rows,
    )
    torch.testing.assert_close(tiled, whole)
    assert shares == mined_shares(masks, y, excluded=excluded)
    (expected,) = torch.autograd.grad(3 * whole, vectors)
    (found,) = torch.autograd.grad(3 * tiled, vectors)
    torch.testing.assert_close(found, expected)


def test_gradient_is_that_of_finite_differences() -> None:
    vectors, y, texts = names(12)
    assert torch.autograd.gradcheck(
        lambda x: tiled_multi_similarity_loss(x, y, text_labels=texts, tile_rows=5)[0], vectors.requires_grad_()
    )


def test_half_precision_under_autocast_is_computed_in_single() -> None:
    vectors, y, _ = names(40, torch.float32)
    half = vectors.bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _ = tiled_multi_similarity_loss(half, y)
    expected, _ = tiled_multi_similarity_loss(half.detach().double(), y)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    (gradient,) = torch.autograd.grad(loss, half)
    assert gradient.dtype == torch.bfloat16


def test_no_gradient_is_made_when_none_is_wanted() -> None:
    vectors, y, _ = names(20)
    loss, _ = tiled_multi_similarity_loss(vectors, y)
    assert not loss.requires_grad


@pytest.mark.parametrize("labels", [[4], [4, 4, 4], [1, 2, 3]], ids=["one name", "one label", "no positives"])
def test_nothing_to_learn_is_zero(labels: list[int]) -> None:
    vectors = torch.ones(len(labels), 3, requires_grad=True)
    loss, shares = tiled_multi_similarity_loss(vectors, torch.tensor(labels))
    assert loss.item() == 0
    assert (float(shares.positives), float(shares.negatives)) == (0, 0)
    (gradient,) = torch.autograd.grad(loss, vectors)
    assert not gradient.any()


def test_not_a_number_stays_not_a_number() -> None:
    loss, _ = tiled_multi_similarity_loss(torch.full((4, 2), torch.nan), torch.tensor([0, 0, 1, 1]))
    assert loss.isnan()


def test_arguments_that_do_not_fit_are_refused() -> None:
    vectors, y, texts = names(10)
    calls: list[Callable[[], object]] = [
        lambda: tiled_multi_similarity_loss(vectors, y[:3]),
        lambda: tiled_multi_similarity_loss(vectors, y, text_labels=texts[:3]),
        lambda: tiled_multi_similarity_loss(vectors, y, tile_rows=0),
        lambda: tiled_multi_similarity_loss(vectors[:0], y[:0]),
    ]
    for call in calls:
        with pytest.raises(ShapeError):
            call()
    with pytest.raises(ConfigError, match=r"^positive_scale must be a positive number"):
        tiled_multi_similarity_loss(vectors, y, positive_scale=0.0)
    with pytest.raises(ConfigError, match=r"^negative_scale must be a positive number"):
        tiled_multi_similarity_loss(vectors, y, negative_scale=0.0)
