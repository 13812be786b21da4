from __future__ import annotations

from typing import Any

import pytest
import torch

from onoma import objectives
from onoma.training.config import TrainingConfig
from onoma.training.objective import objective

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
    excluded = torch.zeros(12, 12, dtype=torch.bool)
    excluded[0, 1] = excluded[1, 0] = True
    value, masks = objective(config.loss, config.mining, vectors, labels, excluded=excluded)

    similarity = objectives.cosine_similarities(vectors)
    if mining == "all":
        expected = objectives.all_pair_masks(labels, excluded=excluded)
    else:
        expected = MINERS[mining](similarity, labels, excluded=excluded, **(margin if own else {}))
    assert torch.equal(masks.positives, expected.positives)
    assert torch.equal(masks.negatives, expected.negatives)
    assert not masks.negatives[0, 1]
    torch.testing.assert_close(value, function(similarity, expected, **(settings if own else {})).mean())
