from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from onoma import objectives
from onoma.errors import ConfigError
from onoma.training import objective as objective_module
from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.objective import mine, objective
from onoma.training.settings import settings_of

LOSSES: dict[str, tuple[Any, dict[str, float]]] = {
    "multi-similarity": (
        objectives.multi_similarity_loss,
        {"positive_scale": 3.0, "negative_scale": 40.0, "offset": 0.4},
    ),
    "circle": (objectives.circle_loss, {"margin": 0.3, "scale": 64.0}),
    "info-nce": (objectives.info_nce_loss, {"temperature": 0.2}),
    "nca": (objectives.nca_loss, {"distance_scale": 10.0}),
    "lifted-structure": (objectives.lifted_structure_loss, {"margin": 0.7}),
    "triplet": (objectives.triplet_loss, {"margin": 0.3}),
    "cosine": (objectives.cosine_loss, {"margin": 0.1}),
}
MINERS: dict[str, Any] = {
    "hard-triplet": objectives.hard_triplet_masks,
    "multi-similarity": objectives.multi_similarity_masks,
    "semi-hard": objectives.semi_hard_masks,
    "all": None,
}


@pytest.mark.parametrize("mining", MINERS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("own", [False, True])
def test_a_recipe_gets_the_function_it_names(loss: str, mining: str, own: bool) -> None:
    function, settings = LOSSES[loss]
    margin = {} if mining == "all" else {"margin": 0.15}
    config = TrainingConfig.model_validate(
        {
            "steps": 1,
            "loss": {"name": loss, **settings} if own else loss,
            "mining": {"name": mining, **margin} if own else mining,
        }
    )
    vectors = torch.randn(12, 5, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(12) % 5
    texts = torch.tensor([0, 0, *range(1, 11)])  # the first two are of one text, and of two classes
    value, shares = objective(config.loss, config.mining, vectors, labels, text_labels=texts)

    excluded = texts[:, None] == texts[None, :]
    similarity = objectives.cosine_similarities(vectors)
    if mining == "all":
        expected = objectives.all_pair_masks(labels, excluded=excluded)
    else:
        expected = MINERS[mining](similarity, labels, excluded=excluded, **(margin if own else {}))
    found = mine(config.mining, similarity, labels, excluded=excluded)
    assert torch.equal(found.positives, expected.positives)
    assert torch.equal(found.negatives, expected.negatives)
    assert not found.negatives[0, 1]
    assert shares == objectives.mined_shares(expected, labels, excluded=excluded)
    torch.testing.assert_close(value, function(similarity, expected, **(settings if own else {})).mean())


def cosine_by_loops(a: list[float], b: list[float]) -> float:
    def length(v: list[float]) -> float:
        return math.sqrt(sum(x * x for x in v))

    return sum(x * y for x, y in zip(a, b, strict=True)) / (length(a) * length(b))


def multi_similarity_by_loops(vectors: list[list[float]], labels: list[int]) -> tuple[float, set[tuple[int, int]]]:
    """SapBERT's loss, name by name: hard triplets with a margin of 0.2, scales 2 and 50, offset 0.5; mined pairs."""
    names = range(len(vectors))
    similarity = [[cosine_by_loops(vectors[a], vectors[b]) for b in names] for a in names]
    mined = set()
    for a in names:
        for p in names:
            for n in names:
                if p != a and labels[p] == labels[a] != labels[n]:
                    near, far = (math.sqrt(max(0.0, 2 - 2 * similarity[a][x])) for x in (p, n))
                    if far <= near + 0.2:
                        mined |= {(a, p), (a, n)}
    total = 0.0
    for a in names:
        pulls = [math.exp(-2 * (similarity[a][b] - 0.5)) for b in names if (a, b) in mined and labels[a] == labels[b]]
        pushes = [math.exp(50 * (similarity[a][b] - 0.5)) for b in names if (a, b) in mined and labels[a] != labels[b]]
        total += math.log(1 + sum(pulls)) / 2 + math.log(1 + sum(pushes)) / 50
    return total / len(vectors), mined


def test_matryoshka_is_the_mean_over_widths_each_mined_on_its_own() -> None:
    generator = torch.Generator().manual_seed(5)
    vectors = torch.randn(14, 8, dtype=torch.float64, generator=generator).requires_grad_()
    labels = torch.arange(14) % 6
    config = TrainingConfig(steps=1, matryoshka=(2, 5))
    value, shares = objective(config.loss, config.mining, vectors, labels, matryoshka=config.matryoshka)

    by_width = {
        width: multi_similarity_by_loops([row[:width] for row in vectors.tolist()], labels.tolist())
        for width in (2, 5, 8)
    }
    assert float(value.detach()) == pytest.approx(sum(loss for loss, _ in by_width.values()) / 3, abs=1e-9)
    same = {(a, b) for a in range(14) for b in range(14) if a != b and labels[a] == labels[b]}
    n_others = 14 * 13 - len(same)
    mined = by_width[8][1]
    assert mined != by_width[2][1]
    assert float(shares.positives) == len(mined & same) / len(same)
    assert float(shares.negatives) == len(mined - same) / n_others

    (gradient,) = torch.autograd.grad(value, vectors)
    expected = torch.zeros_like(vectors)
    for width in (2, 5, 8):
        prefix = vectors.detach()[:, :width].clone().requires_grad_()
        objective(config.loss, config.mining, prefix, labels)[0].backward()  # type: ignore[no-untyped-call]
        assert prefix.grad is not None
        expected[:, :width] += prefix.grad / 3
    torch.testing.assert_close(gradient, expected)


def test_homonyms_are_no_negatives_at_any_width() -> None:
    """Two names of one vector are as hard a negative as there can be."""
    vectors = torch.randn(6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    vectors[1] = vectors[0]
    labels, texts = torch.tensor([0, 1, 0, 1, 2, 2]), torch.tensor([0, 0, 1, 2, 3, 4])
    config = TrainingConfig(steps=1)

    def loss(vectors: torch.Tensor, *matryoshka: int) -> torch.Tensor:
        return objective(config.loss, config.mining, vectors, labels, text_labels=texts, matryoshka=matryoshka)[0]

    assert float(loss(vectors, 4)) == pytest.approx(float((loss(vectors) + loss(vectors[:, :4])) / 2))
    marked = loss(vectors[:, :4])
    assert float(marked) < float(objective(config.loss, config.mining, vectors[:, :4], labels)[0]) - 0.01


@pytest.mark.parametrize("matryoshka", [(), (3,)])
@pytest.mark.parametrize("with_texts", [False, True])
def test_a_large_batch_has_the_same_loss(
    with_texts: bool, matryoshka: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(8)
    vectors = torch.randn(40, 8, dtype=torch.float64, generator=generator).requires_grad_()
    labels = torch.arange(40) % 17
    texts = torch.arange(40) // 2 if with_texts else None
    config = TrainingConfig.model_validate(
        {
            "steps": 1,
            "loss": {"name": "multi-similarity", "positive_scale": 3.0, "negative_scale": 20.0, "offset": 0.4},
            "mining": {"name": "hard-triplet", "margin": 0.1},
        }
    )
    found = []
    for large in (41, 40):
        monkeypatch.setattr(objective_module, "_LARGE_BATCH", large)
        monkeypatch.setattr(objective_module, "mine", mine if large == 41 else None)
        value, shares = objective(config.loss, config.mining, vectors, labels, text_labels=texts, matryoshka=matryoshka)
        (gradient,) = torch.autograd.grad(value, vectors)
        found.append((value.detach(), shares, gradient))
    torch.testing.assert_close(found[1][0], found[0][0])
    torch.testing.assert_close(found[1][2], found[0][2])
    assert found[1][1] == found[0][1]


def test_without_matryoshka_the_objective_is_what_it_was() -> None:
    vectors = torch.randn(12, 8, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(12) % 5
    config = TrainingConfig(steps=1)
    plain = objective(config.loss, config.mining, vectors, labels)[0]
    assert torch.equal(plain, objective(config.loss, config.mining, vectors, labels, matryoshka=())[0])


def test_matryoshka_widths_are_checked() -> None:
    config = TrainingConfig(steps=1)
    with pytest.raises(ConfigError, match=r"asks for 4, 8 of the 8 numbers"):
        objective(config.loss, config.mining, torch.randn(4, 8), torch.arange(4) % 2, matryoshka=(4, 8))
    assert Recipe.load("quickstart", {"matryoshka": "[64, 128]"}).config.matryoshka == (64, 128)
    assert Recipe.load("quickstart", {"matryoshka": "64"}).config.matryoshka == (64,)
    assert Recipe.load("quickstart", {"matryoshka": "none"}).config.matryoshka == ()
    shown = {key: value for key, value, _ in settings_of(Recipe.load("quickstart", {"matryoshka": "[64, 128]"}).config)}
    assert Recipe.load("quickstart", {"matryoshka": shown["matryoshka"]}).config.matryoshka == (64, 128)
    for wrong in ("[1, 64]", "[128, 64]", "[64, 64]", "1"):
        with pytest.raises(ConfigError, match="widths must be 2 or more, in ascending order"):
            Recipe.load("quickstart", {"matryoshka": wrong})
