from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onoma.errors import ConfigError, InputError
from onoma.training.alignment import train_encoder
from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.biosyn import train_biosyn
from onoma.training.biosyn_config import BiosynConfig, BiosynRecipe
from onoma.training.config_parts import Circle, HardTriplets, MultiSimilarity, NoMining
from onoma.training.distillation_config import DistillationConfig
from onoma.training.reranking import train_reranker
from onoma.training.reranking_config import RerankingConfig
from onoma.training.run import train_on_pairs, train_on_terminology
from onoma.training.run_config import RunConfig
from onoma.training.settings import resolve, settings_of


@pytest.mark.parametrize("name", Recipe.names())
def test_every_shipped_recipe_is_valid_and_says_what_it_is(name: str) -> None:
    recipe = Recipe.load(name)
    assert recipe.description
    assert recipe.name == name


def test_paper_and_code_differ_as_documented() -> None:
    paper, code = Recipe.load("sapbert-paper").config, Recipe.load("sapbert-code").config
    assert paper.loss == MultiSimilarity(positive_scale=2, negative_scale=50, offset=0.5)
    assert code.loss == MultiSimilarity(positive_scale=1, negative_scale=60, offset=0.5)
    assert paper.mining == code.mining == HardTriplets(margin=0.2)
    assert (paper.learning_rate, paper.weight_decay, paper.batch_pairs, paper.max_tokens) == (2e-5, 0.01, 256, 25)
    assert code.decay_all
    assert not paper.decay_all


def test_overrides_win_and_the_length_is_exchanged() -> None:
    config = Recipe.load("quickstart", {"steps": "10", "learning_rate": "3e-5", "languages": "en+de"}).config
    assert (config.steps, config.minutes, config.learning_rate, config.languages) == (10, None, 3e-5, ("en", "de"))
    assert Recipe.load("quickstart", {"pooling": "cls"}).config.pooling == "cls"
    assert Recipe.load("sapbert-paper", {"pooling": "none"}).config.pooling is None


def test_loss_and_mining_are_chosen_by_name_and_set_by_part() -> None:
    assert Recipe.load("quickstart", {"loss": "circle"}).config.loss == Circle(margin=0.25, scale=256)
    assert Recipe.load("quickstart", {"loss.scale": "64", "loss": "circle"}).config.loss == Circle(scale=64)
    assert Recipe.load("quickstart", {"loss.offset": "0.4"}).config.loss == MultiSimilarity(offset=0.4)
    assert Recipe.load("quickstart", {"mining": "all"}).config.mining == NoMining()
    rows = {key: value for key, value, _ in settings_of(Recipe.load("quickstart", {"loss": "nca"}).config)}
    assert (rows["loss"], rows["loss.distance_scale"], rows["mining.margin"]) == ("nca", "20.0", "0.2")


def test_true_and_false_in_any_case() -> None:
    assert Recipe.load("quickstart", {"decay_all": "True"}).config.decay_all
    assert not Recipe.load("sapbert-paper", {"include_suppressed": "FALSE"}).config.include_suppressed
    assert Recipe.load("quickstart", {"languages": "no"}).config.languages == ("no",)  # Norwegian


def test_sets_of_languages(tmp_path: Path) -> None:
    assert Recipe.load("quickstart", {"languages": "all"}).config.languages is None
    assert Recipe.load("quickstart", {"languages": "es"}).config.languages == ("es",)
    assert Recipe.load("quickstart", {"languages": "nan"}).config.languages == ("nan",)  # Min Nan, and no number
    assert Recipe.load("quickstart", {"languages": '["en", "es"]'}).config.languages == ("en", "es")
    with pytest.raises(ConfigError, match="no language is named; leave it unset for all"):
        Recipe.load("quickstart", {"languages": "[]"})
    own = tmp_path / "own.toml"
    own.write_text('\ufeffsteps = 5\nlanguages = "en+es"\n', encoding="utf-8")  # as editors on Windows write it
    assert Recipe.load(str(own)).config.languages == ("en", "es")
    with pytest.raises(ConfigError, match="no set of languages"):
        Recipe.load("quickstart", {"languages": "en es"})


def test_an_unknown_key_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no setting 'learning_rat'.* Did you mean 'learning_rate'"):
        Recipe.load("quickstart", {"learning_rat": "1"})
    with pytest.raises(ConfigError, match=r"no setting 'rank'\. Did you mean 'tuning\.rank', of tuning = lora\?"):
        Recipe.load("quickstart", {"tuning": "lora", "rank": "8"})


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("batch_pairs", "many", "batch_pairs"),
        ("batch_pairs", "1", "greater than or equal to 2"),
        ("mining.margin", "-1", "margin"),
        ("loss", "circl", "Did you mean 'circle'"),
        ("mining", "hard", r"Known: hard-triplet, multi-similarity, semi-hard, all"),
        ("loss.scal", "3", r"loss = multi-similarity has no setting 'scal'.*Known: positive_scale"),
        ("loss.scale", "3", r"no setting 'scale'\. loss = circle has it\. Known: positive_scale"),
        ("loss.scael", "3", r"no setting 'scael'\. Did you mean 'scale', of loss = circle\? Known: positive_scale"),
        (
            "tuning.reducton",
            "3",
            r"tuning = all has no setting 'reducton'\. Did you mean 'reduction', of tuning = adapter",
        ),
        ("loss.ofset", "3", r"no setting 'ofset'\. Did you mean 'offset'\? Known"),
        ("loss.mragin", "3", r"'margin', of loss = circle or lifted-structure or triplet or cosine\?"),
        ("GradCache", "4", r"Did you mean 'chunk_names'\?"),
        ("early_stopping", "4", r"Did you mean 'patience'\?"),
        ("rank", "4", r"Did you mean 'tuning\.rank', of tuning = lora\?"),
        ("lr", "4", r"Did you mean 'learning_rate'\?"),
        ("train_batch_size", "4", r"Did you mean 'batch_pairs'\?"),
        ("margin", "4", r"Did you mean 'mining\.margin', of .*; or 'loss\.margin', of loss = circle"),
        ("Seed", "4", r"Did you mean 'seed'\?"),
        ("tuning", "LoRA", r"tuning: there is no 'LoRA'\. Did you mean 'lora'\?"),
        ("mining.margin", "3", r"quickstart: mining\.margin: .*less than or equal to 2"),
        ("loss", "5", r"loss cannot be 5\. Known: multi-similarity, circle"),
        ("loss", "none", r"loss cannot be left out\. Known: multi-similarity, circle"),
        ("precision", "fp8", "'auto', 'bf16', 'fp16' or 'fp32'"),
        ("learning_rate", "nan", "learning_rate"),
        ("learning_rate", "inf", "learning_rate"),
        ("seed", "0.5", "seed"),
        ("normalisation", "codr", "Did you mean 'coder'"),
        ("matryoshka", "64,128", r"matryoshka: write the widths as a list: \[64, 128\]"),
        ("seed", "2024-05-01", "seed.*found '2024-05-01'"),
        ("seed", "9" * 5000, "seed.*found '9"),
        ("seed", "[" * 100_000, r"seed.*found '\["),
        ("seed", str(2**64), "seed: .*less than 18446744073709551616"),
    ],
)
def test_a_wrong_value_is_refused_by_name(key: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Recipe.load("quickstart", {key: value})


TINY = 1e-9
SHARED_RANGE: dict[str, tuple[Any, Any]] = {
    "max_tokens": (3, 2),
    "accumulation": (1, 0),
    "chunk_names": (2, 1),
    "steps": (1, 0),
    "learning_rate": (TINY, 0.0),
    "warmup_steps": (0, -1),
    "weight_decay": (0.0, -TINY),
    "max_gradient_norm": (TINY, 0.0),
    "dropout": (0.0, -TINY),
    "average": (TINY, 0.0),
    "checkpoint_minutes": (TINY, 0.0),
    "checkpoint_steps": (1, 0),
    "evaluate_steps": (1, 0),
    "patience": (1, 0),
    "seed": (0, -1),
}
"""Of each setting the least value that it takes, and one that is too small."""
RANGES: dict[type[RunConfig], dict[str, tuple[Any, Any]]] = {
    TrainingConfig: {"batch_pairs": (2, 1), "max_pairs_per_concept": (1, 0), "base_share": (0.0, -TINY)},
    BiosynConfig: {
        "batch_queries": (1, 0),
        "candidates": (2, 1),
        "sparse_candidates": (0, -1),
        "sparse_weight": (0.0, -TINY),
        "sparse_learning_rate": (0.0, -TINY),
    },
    DistillationConfig: {
        "batch_names": (3, 2),
        "neighbours": (0, -1),
        "nearest": (1, 0),
        "temperature": (TINY, 0.0),
        "base_share": (0.0, -TINY),
    },
    RerankingConfig: {
        "max_tokens": (16, 15),
        "max_name_tokens": (4, 3),
        "depth": (2, 1),
        "batch_mentions": (1, 0),
        "head_learning_rate": (TINY, 0.0),
        "weight": (0.0, -TINY),
    },
}
OTHERS = {"candidates": {"sparse_candidates": 0}, "batch_names": {"neighbours": 0}, "nearest": {"neighbours": 0}}
"""What else is set, so that they fit to one another."""


@pytest.mark.parametrize("kind", RANGES)
def test_the_least_value_that_a_setting_takes(kind: type[RunConfig]) -> None:
    for key, (least, less) in {**SHARED_RANGE, **RANGES[kind]}.items():
        others = {"steps": 1, **OTHERS.get(key, {})}
        assert getattr(kind.model_validate({**others, key: least}), key) == least
        with pytest.raises(ConfigError, match=rf"^training settings: {key}: Input should be greater than [^;]*\.$"):
            kind.model_validate({**others, key: less})
    for key, too_much in {"max_tokens": 513, "dropout": 1.0, "average": 1.0, "base_share": 1.0, "weight": 1.01}.items():
        if key in kind.model_fields:
            with pytest.raises(ConfigError, match=rf": {key}: Input should be less than"):
                kind.model_validate({"steps": 1, key: too_much})


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no such setting": ({"steps": 1, "step": 2}, r"there is no setting 'step'. Did you mean 'steps'\? Known: .*\."),
    "two of another kind": ({"steps": "x", "base": 3}, r"base: .*string \(found 3\); steps: .*integer \(found 'x'\)\."),
    "no such part": (
        {"steps": 1, "loss": "circles"},
        r"loss: there is no 'circles'. Did you mean 'circle'\? Known: .*",
    ),
    "what does not fit": ({}, r"exactly one of steps, epochs and minutes must be set; none is\."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_settings_given_in_python_are_refused_in_the_same_words(case: str) -> None:
    settings, problem = REFUSED[case]
    with pytest.raises(ConfigError, match=rf"^training settings: {problem}$"):
        TrainingConfig(**settings)
    with pytest.raises(ConfigError, match=rf"^mine\.toml: {problem}$"):
        resolve(TrainingConfig, settings, source="mine.toml")


@pytest.mark.parametrize("name", ["2024", "1e5", "true", "none", "[1]"])
def test_a_base_may_be_called_as_it_likes(name: str) -> None:
    assert Recipe.load("quickstart", {"base": name}).config.base == name


@pytest.mark.parametrize("lengths", [{}, {"steps": 1, "epochs": 1}])
def test_exactly_one_length(lengths: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="exactly one of steps, epochs and minutes"):
        resolve(TrainingConfig, lengths)


def test_recipes_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('description = "mine"\nsteps = 5\nbase = "x/y"\n')
    assert Recipe.load(str(own)).config == TrainingConfig(steps=5, base="x/y")
    for spoilt in ("steps = ", f"steps = {'9' * 5000}", f"steps = {'[' * 100_000}"):
        own.write_text(spoilt)
        with pytest.raises(InputError, match=r"not valid TOML"):
            Recipe.load(str(own))
    own.write_bytes("description = 'süß'".encode("latin-1"))
    with pytest.raises(InputError, match="not text in UTF-8"):
        Recipe.load(str(own))
    with pytest.raises(InputError, match="no such recipe file"):
        Recipe.load(str(tmp_path / "other.toml"))
    with pytest.raises(InputError, match=r"no recipe 'quickstat'.* Did you mean 'quickstart'"):
        Recipe.load("quickstat")


def test_settings_of_a_part_need_its_name(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("steps = 5\n[loss]\nscale = 3\n")
    said = r'loss: its settings need its name too, name = "multi-similarity"\. Known: multi-similarity, circle'
    with pytest.raises(ConfigError, match=said):
        Recipe.load(str(own))
    assert Recipe.load(str(own), {"loss.name": "circle"}).config.loss == Circle(scale=3)
    own.write_text("steps = 5\nloss = 3\n")
    with pytest.raises(ConfigError, match="loss"):
        Recipe.load(str(own), {"loss.scale": "2"})


def test_another_name_leaves_the_settings_of_the_former_behind() -> None:
    assert Recipe.load("sapbert-code", {"loss.name": "circle"}).config.loss == Circle()
    given = {"loss.scale": "64", "loss.name": "circle"}  # in any order
    assert Recipe.load("sapbert-code", given).config.loss == Circle(scale=64)
    same = {"loss.name": "multi-similarity", "loss.offset": "0.4"}
    expected = MultiSimilarity(positive_scale=1, negative_scale=60, offset=0.4)
    assert Recipe.load("sapbert-code", same).config.loss == expected


def test_a_recipe_may_be_given_by_name_as_it_is_or_as_settings(tmp_path: Path) -> None:
    recipe = Recipe.load("sapbert-paper")
    assert Recipe.of("sapbert-paper") == Recipe.of(recipe) == recipe
    assert Recipe.of(recipe.config).config == recipe.config
    assert recipe.origin == {"name": "sapbert-paper", "overridden": []}
    assert Recipe.of(recipe.config).origin is None
    changed = Recipe.load("sapbert-paper", {"steps": 1, "loss": "info-nce", "seed": recipe.config.seed})
    assert changed.origin == {"name": "sapbert-paper", "overridden": ["epochs", "loss", "steps"]}
    later = changed.model_copy(update={"config": recipe.config.model_copy(update={"learning_rate": 1.0})})
    assert later.origin == {"name": "sapbert-paper", "overridden": ["learning_rate"]}
    own = tmp_path / "own.toml"
    own.write_text("loss = 'info-nce'\n")  # how long is left to who uses it
    assert Recipe.load(str(own), {"steps": 3}).origin == {"name": "own", "overridden": ["steps"]}
    for wrong in (BiosynRecipe.load("biosyn"), Path("sapbert-paper"), None):
        with pytest.raises(ConfigError, match=f"a Recipe, its name, or a TrainingConfig; found {type(wrong).__name__}"):
            Recipe.of(wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"overrides are a mapping.*; found list"):
        Recipe.load("sapbert-paper", ["minutes=1"])  # type: ignore[arg-type]


def test_every_trainer_refuses_a_recipe_of_another_kind(tmp_path: Path) -> None:
    out = tmp_path / "out"
    other: Any = BiosynRecipe.load("biosyn")
    trainers: list[Callable[[], object]] = [
        lambda: train_encoder(other, tmp_path / "pairs", out),
        lambda: train_on_terminology(other, tmp_path / "terminology", out),
        lambda: train_on_pairs(other, tmp_path / "pairs", out),
        lambda: train_biosyn(Recipe.load("sapbert-paper"), "m", "d", out),  # type: ignore[arg-type]
        lambda: train_reranker(other, None, "m", out),  # type: ignore[arg-type]
    ]
    for train in trainers:
        with pytest.raises(ConfigError, match=r"training is told by a .*; found .*Recipe"):
            train()
    assert list(tmp_path.iterdir()) == []


def test_of_a_base_in_a_folder_the_name_alone_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "models" / "mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for base in ("models/mine", "~/models/mine", str(tmp_path / "models" / "mine"), "./link", str(tmp_path / "mine")):
        assert TrainingConfig(base=base, steps=1).to_publish()["base"] == "mine"
    for base in ("onoma-mini", "someone/mine"):
        assert TrainingConfig(base=base, steps=1).to_publish()["base"] == base
