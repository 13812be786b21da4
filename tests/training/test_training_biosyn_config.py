"""What can be set about BioSyn; the numbers of the paper are written down here from it and its released code."""

from __future__ import annotations

import pytest

from onoma.errors import ConfigError, InputError
from onoma.training.alignment_config import Recipe
from onoma.training.biosyn_config import BiosynRecipe, Cosine, Dot
from onoma.training.config_parts import Lora
from onoma.training.settings import settings_of

PAPER = {
    "pooling": "cls",
    "similarity": Dot(),
    "max_tokens": 25,
    "epochs": 10,
    "batch_queries": 16,
    "candidates": 20,
    "sparse_candidates": 10,  # half of them
    "learning_rate": 1e-5,
    "weight_decay": 0.01,
    "sparse_learning_rate": 0.01,
    "sparse_weight": 0.0,
    "schedule": "constant",
    "warmup_steps": 0,
    "max_gradient_norm": None,
    "accumulation": 1,
    "dropout": None,
    "average": None,
    "normalisation": "biosyn",
}


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("biosyn-paper", "dmis-lab/biobert-base-cased-v1.1"),
        ("biosyn-sapbert", "cambridgeltl/SapBERT-from-PubMedBERT-fulltext"),
    ],
)
def test_recipes_of_the_paper(name: str, base: str) -> None:
    config = BiosynRecipe.load(name).config
    assert {key: getattr(config, key) for key in PAPER} == PAPER
    assert config.base == base


def test_every_recipe_is_valid_and_says_what_it_is() -> None:
    assert set(BiosynRecipe.names()) >= {"biosyn", "biosyn-paper", "biosyn-sapbert"}
    for name in BiosynRecipe.names():
        assert BiosynRecipe.load(name).name == name
        assert "BioSyn" in BiosynRecipe.load(name).description or "biosyn" in BiosynRecipe.load(name).description


def test_settings_are_overridden_and_shown_as_they_are_set() -> None:
    given = {"similarity": "cosine", "similarity.scale": "30", "steps": "7", "tuning": "lora", "languages": "en"}
    config = BiosynRecipe.load("biosyn-paper", given).config
    assert (config.similarity, config.steps, config.epochs) == (Cosine(scale=30), 7, None)
    assert (config.tuning, config.languages) == (Lora(), ("en",))
    shown = {key: value for key, value, _ in settings_of(config)}
    assert (shown["similarity"], shown["similarity.scale"], shown["batch_queries"]) == ("cosine", "30.0", "16")
    assert all(description for _, _, description in settings_of(config))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("candidats", "3", r"no setting 'candidats'.* Did you mean 'candidates'"),
        ("batch_pairs", "3", "no setting 'batch_pairs'"),
        ("similarity", "cosin", "Did you mean 'cosine'"),
        ("similarity.margin", "1", "similarity = dot has no setting 'margin'"),
        ("sparse_candidates", "21", r"sparse_candidates \(21\) are part of the 20 candidates"),
        ("candidates", "1", "greater than or equal to 2"),
        ("normalisation", "biosin", "Did you mean 'biosyn'"),
        ("sparse_learning_rate", "-1", "sparse_learning_rate"),
    ],
)
def test_a_wrong_value_is_refused_by_name(key: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        BiosynRecipe.load("biosyn-paper", {key: value})


def test_recipes_of_other_kinds_are_told_apart() -> None:
    with pytest.raises(InputError, match=r"no biosyn-recipe 'biosyn-papr'.* Did you mean 'biosyn-paper'"):
        BiosynRecipe.load("biosyn-papr")
    with pytest.raises(InputError, match="is for onoma train-biosyn"):
        Recipe.load("biosyn-paper")


def test_a_run_has_one_length() -> None:
    with pytest.raises(ConfigError, match="exactly one of steps, epochs and minutes"):
        BiosynRecipe.load("biosyn", {"steps": "none"})
