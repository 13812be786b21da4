"""The shipped recipes against the papers: numbers written down here from them, not read from the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commands import run
from onoma.artifacts import write_artifact
from onoma.errors import InputError
from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.biosyn_config import BiosynRecipe
from onoma.training.config_parts import Adapter, Everything, HardTriplets, MultiSimilarity
from onoma.training.distillation_config import DistillationRecipe
from onoma.training.reranking_config import RerankingRecipe
from onoma.training.settings import NamedSettings

PUBMEDBERT = "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext"
SAPBERT = "cambridgeltl/SapBERT-from-PubMedBERT-fulltext"

EVERY_ONE_OF_THE_PAPER = {
    "learning_rate": 2e-5,  # section 3.1, "UMLS Pretraining Details"; of fine-tuning "the same"
    "weight_decay": 1e-2,  # there
    "max_tokens": 25,  # table 9
    "mining": HardTriplets(margin=0.2),  # table 9, lambda
    "loss": MultiSimilarity(positive_scale=2, negative_scale=50, offset=0.5),  # table 9
    "schedule": "constant",  # none is mentioned
    "warmup_steps": 0,
    "accumulation": 1,
    "max_gradient_norm": None,
    "average": None,
    "decay_all": False,
    "normalisation": "sapbert",
}
PRE_TRAINING = {
    "base": PUBMEDBERT,  # table 5
    "epochs": 1,  # section 3.1: "for 1 epoch (approximately 50k iterations)"
    "batch_pairs": 256,  # section 3.1: "a batch size of 512 (i.e., 256 pairs per mini-batch)"
    "max_pairs_per_concept": 50,
    "ambiguous": "keep",
    "include_suppressed": True,
    "pooling": "cls",  # section 2: the last layer's [CLS]
    "tuning": Everything(),
}
FINE_TUNING = {
    "base": SAPBERT,
    "batch_pairs": 128,  # section 3.1: "a batch size of 256 (to accommodate the memory of 1 GPU)", counted in names
    "pooling": "cls",
    "tuning": Everything(),
}
PAPER: dict[str, dict[str, object]] = {
    "sapbert-paper": PRE_TRAINING,
    "sapbert-mean": {**PRE_TRAINING, "pooling": "mean"},
    "sapbert-adapter-13": {**PRE_TRAINING, "tuning": Adapter(reduction=1)},  # table 7
    "sapbert-adapter-1": {**PRE_TRAINING, "tuning": Adapter(reduction=16)},
    "sapbert-finetune-scientific": {**FINE_TUNING, "epochs": 3},  # section 3.1 and table 9
    "sapbert-finetune-askapatient": {**FINE_TUNING, "epochs": 15},
    "sapbert-finetune-cometa": {**FINE_TUNING, "epochs": 10},
}


@pytest.mark.parametrize("name", PAPER)
def test_recipes_of_the_paper(name: str) -> None:
    config = Recipe.load(name).config
    expected = {**EVERY_ONE_OF_THE_PAPER, **PAPER[name]}
    assert {key: getattr(config, key) for key in expected} == expected


@pytest.mark.parametrize("name", PAPER)
def test_nothing_else_is_set(name: str) -> None:
    """What the paper does not speak of is as everywhere: no development data needed, precision by the machine."""
    config, plain = Recipe.load(name).config, TrainingConfig(steps=1)
    spoken_of = {*EVERY_ONE_OF_THE_PAPER, *PAPER[name], "steps"}
    others = set(TrainingConfig.model_fields) - spoken_of
    assert {key: getattr(config, key) for key in others} == {key: getattr(plain, key) for key in others}


def test_code_differs_from_paper_where_it_is_documented_to() -> None:
    paper, code = Recipe.load("sapbert-paper").config, Recipe.load("sapbert-code").config
    differing = {key for key in TrainingConfig.model_fields if getattr(paper, key) != getattr(code, key)}
    assert differing == {"loss", "decay_all"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sapbert-adapter-13", "13 %"),
        ("sapbert-adapter-1", "1 %"),
        ("sapbert-mean", "mean"),
        ("sapbert-finetune-scientific", "3 epochs"),
        ("sapbert-finetune-askapatient", "15 epochs"),
        ("sapbert-finetune-cometa", "10 epochs"),
    ],
)
def test_descriptions_are_true(name: str, words: str) -> None:
    assert words in Recipe.load(name).description


def test_all_recipes_of_the_paper_are_shipped() -> None:
    assert {*PAPER, "sapbert-code", "quickstart"} <= set(Recipe.names())


def test_overrides_are_values_as_well_as_text() -> None:
    by_text = Recipe.load(
        "sapbert-paper", {"steps": "100", "languages": '["en"]', "decay_all": "false", "dropout": "none"}
    )
    by_value = Recipe.load("sapbert-paper", {"steps": 100, "languages": ["en"], "decay_all": False, "dropout": None})
    assert by_text == by_value
    assert by_value.config.steps == 100


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in (Recipe, BiosynRecipe, RerankingRecipe, DistillationRecipe) for name in kind.names()],
)
def test_a_recipe_as_a_file_is_the_same_recipe(kind: type[NamedSettings[Any]], name: str, tmp_path: Path) -> None:
    recipe = kind.load(name, {"seed": "7"})
    (tmp_path / "mine.toml").write_text(recipe.as_toml())
    again = kind.load(str(tmp_path / "mine.toml"))
    assert again.config == recipe.config
    assert again.description == recipe.description


def test_what_was_trained_says_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe.load("sapbert-paper", {"loss.offset": "0.4", "base": 'x "y"\\é \x7f\x1b\x85\U0001fac0'})
    config = {"training": recipe.config.model_dump(mode="json"), "recipe": recipe.origin}
    with write_artifact(tmp_path / "made", "encoder", config=config):
        pass
    found = Recipe.of_folder(tmp_path / "made")
    assert found.config == recipe.config
    assert found.description == ("What made was trained with (recipe sapbert-paper, with base, loss.offset of its own)")
    file = tmp_path / "again.toml"
    file.write_text(run("recipes", "show", tmp_path / "made", "--toml"))
    assert Recipe.load(str(file)).config == recipe.config
    assert "multi-similarity" in run("recipes", "show", tmp_path / "made")
    with pytest.raises(InputError, match="no distillation-recipe was used"):
        DistillationRecipe.of_folder(tmp_path / "made")
    with write_artifact(tmp_path / "quickstart", "encoder", config=config):
        pass
    monkeypatch.chdir(tmp_path)
    assert "A short self-alignment run" in run("recipes", "show", "quickstart"), "names of recipes come first"
    assert "What quickstart was trained with" in run("recipes", "show", "./quickstart")
    averaged = {"training": {"steps": 3}, "averaged": [{"name": name, "share": 0.5} for name in ("one", "two")]}
    with write_artifact(tmp_path / "average", "encoder", config=averaged):  # all other settings differ
        pass
    with pytest.raises(InputError, match=r"average of several .* name one of them: one, two"):
        run("recipes", "show", tmp_path / "average")
    with write_artifact(tmp_path / "other", "terminology"):
        pass
    with pytest.raises(InputError, match="no recipe was used to make this"):
        run("recipes", "show", tmp_path / "other")


@pytest.mark.parametrize("kind", [Recipe, BiosynRecipe, DistillationRecipe, RerankingRecipe])
def test_a_misspelt_recipe_of_any_kind_has_its_nearest_name(kind: type[NamedSettings[Any]]) -> None:
    name = kind.names()[0]
    with pytest.raises(InputError, match=f"Did you mean '{name}'"):
        run("recipes", "show", f"{name}x")
