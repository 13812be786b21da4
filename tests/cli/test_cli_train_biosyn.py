"""``onoma train-biosyn``, and its recipes in ``onoma recipes``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from typer.testing import Result

from commands import invoke
from onoma.encoders.folders import read_folder
from onoma.errors import ArtifactExistsError, ConfigError
from tiny import WORDS, make_terminology, tiny_encoder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("biosyn")
    tiny_encoder(folder / "base")
    make_terminology(folder / "t", {f"X:{word}": [f"{word} disease", f"{word} illness"] for word in WORDS})
    (folder / "names.txt").write_text("".join(f"X:{word}||{word} disease\n" for word in WORDS))
    (folder / "mentions.txt").write_text("".join(f"X:{word}||bad {word}\n" for word in WORDS))
    return folder


def train(place: Path, out: Path, *arguments: str | Path) -> Result:
    settings = [f"--set={one}" for one in (f"base={place / 'base'}", "steps=4", "batch_queries=3", "device=cpu")]
    return invoke("train-biosyn", "biosyn", "--mentions", place / "mentions.txt", "-o", out, *settings, *arguments)


@pytest.mark.parametrize("dictionary", ["names.txt", "t"])
def test_an_encoder_is_trained_and_its_sparse_weight_told(place: Path, tmp_path: Path, dictionary: str) -> None:
    done = train(place, tmp_path / "e", "--dictionary", place / dictionary)
    assert done.exit_code == 0
    assert re.search(r"trained 4 steps in .*, loss \d+\.\d+ -> \d+\.\d+", done.stdout)
    lines = [line for line in done.stderr.splitlines() if line.startswith("step ")]
    form = r"step {} of 4  [\d,]+ names/s  loss \d+\.\d+  right first \d+% of [123], sparse weight -?\d\.\d+  .* left"
    assert re.fullmatch(form.format(1), lines[0])
    weight = read_folder(tmp_path / "e").sparse_weight
    assert weight is not None
    assert f"sparse weight beside the cosine: {weight:.4f}" in done.stderr
    with pytest.raises(ArtifactExistsError):
        train(place, tmp_path / "e", "--dictionary", place / dictionary)
    told = json.loads(train(place, tmp_path / "e", "--dictionary", place / dictionary, "--force", "--json").stdout)
    assert (told["path"], told["steps"]) == (str(tmp_path / "e"), 4)
    with pytest.raises(ConfigError, match="'tensorboard'"):
        train(place, tmp_path / "f", "--dictionary", place / dictionary, "--track", "tensorbord")


def test_a_benchmark_ranks_with_the_weight_that_was_learnt_if_asked_to(place: Path, tmp_path: Path) -> None:
    train(place, tmp_path / "e", "--dictionary", place / "t")
    (tmp_path / "test_queries.txt").write_text((place / "mentions.txt").read_text())
    (tmp_path / "test_dictionary.txt").write_text((place / "names.txt").read_text())
    measure = ("benchmark", "run", "ncbi-disease", "--data", tmp_path)
    done = invoke(*measure, "--encoder", tmp_path / "e", "-o", tmp_path / "alone")
    assert re.search(r"the weight of n-grams that e has, [\d.]+, is left\s+out \(--sparse adds them\)", done.stderr)
    done = invoke(*measure, "--encoder", tmp_path / "e", "--sparse", "-o", tmp_path / "both")
    assert "n-grams" not in done.stderr
    assert "e + n-grams" in done.stdout
    alone, both = (pl.read_parquet(tmp_path / name / "predictions.parquet") for name in ("alone", "both"))
    assert both["scores"].list.first().sum() > alone["scores"].list.first().sum()
    with pytest.raises(ConfigError, match="--sparse is for --encoder"):
        invoke(*measure, "--baseline", "exact", "--sparse", "-o", tmp_path / "other")


def test_development_data_are_measured_in_a_dictionary_of_their_own(place: Path, tmp_path: Path) -> None:
    development: list[str | Path] = [
        "--development",
        place / "mentions.txt",
        "--development-dictionary",
        place / "names.txt",
    ]
    done = train(place, tmp_path / "e", "--dictionary", place / "t", *development, "--set", "keep=best")
    assert done.exit_code == 0
    assert "mentions.txt acc@1" in done.stderr
    assert "acc@1" in done.stdout


def test_recipes_are_listed_and_shown() -> None:
    assert re.search(r"recipe of onoma train-biosyn.*\n.*biosyn ", invoke("recipes", "list").stdout)
    shown = invoke("recipes", "show", "biosyn-paper").stdout
    assert re.search(r"similarity +dot", shown)
    assert re.search(r"sparse_learning_rate +0\.01", shown)


def test_a_wrong_setting_is_refused(place: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'sparse_weight'"):
        train(place, tmp_path / "e", "--dictionary", place / "t", "--set", "sparse_weigth=1")
