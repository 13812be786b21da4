"""Confidences that a linker learns from its own names."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from linking_data import MANY_NAMES as CONCEPTS
from linking_data import made_up, write_letter_linker

from onoma.artifacts import amend_artifact, read_manifest, verify_artifact
from onoma.errors import ConfigError, InputError
from onoma.linking import Linker, build_linker, calibrate_linker, tune_linker, update_linker
from onoma.linking.calibrating import _choose
from onoma.linking.folder import FORMAT_VERSION
from onoma.linking.settings import LinkerSettings
from onoma.randomness import random_from
from tiny import make_terminology


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibrating")
    write_letter_linker(folder, CONCEPTS)
    return folder


@pytest.fixture
def linker(place: Path, tmp_path: Path) -> Path:
    shutil.copytree(place / "linker", tmp_path / "linker")
    return tmp_path / "linker"


def chosen(linker: Path, n_names: int, seed: int = 0) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(concept, name) of the hidden names, and of those that stay."""
    dictionary = Linker.open(linker).dictionary
    hidden, shown = (
        [
            (dictionary.concept_ids[int(dictionary.entry_concepts[entry])], dictionary.entry_names[int(entry)])
            for entry in entries
        ]
        for entries in _choose(dictionary, n_names, random_from(seed))
    )
    return hidden, shown


def name_rows_of(linker: Path, names: list[tuple[str, str]]) -> list[int]:
    dictionary = Linker.open(linker).dictionary
    entries = zip(dictionary.entry_concepts, dictionary.entry_names, dictionary.entry_name_rows, strict=True)
    return [int(row) for concept, name, row in entries if (dictionary.concept_ids[int(concept)], name) in names]


def test_names_that_are_hidden(linker: Path) -> None:
    hidden, shown = chosen(linker, 60)
    assert (len(hidden), len({code for code, _ in hidden}), len(shown)) == (60, 60, 6)
    bearers = Counter(name for names in CONCEPTS.values() for name in names)
    for code, name in hidden:
        assert name in CONCEPTS[code][1:]
        assert bearers[name] == 1
        assert len(CONCEPTS[code]) > 2
    assert not set(hidden) & set(shown)
    assert chosen(linker, 60) == (hidden, shown)
    assert chosen(linker, 60, seed=1)[0] != hidden
    every, _ = chosen(linker, 10_000)
    assert {code for code, _ in every} == CONCEPTS.keys() - {"FEW"}
    places = Counter(CONCEPTS[code].index(name) for code, name in every)
    assert min(places[1], places[2], places[3]) > 10


def test_a_name_of_another_scope_is_not_hidden(linker: Path) -> None:
    dictionary = Linker.open(linker).dictionary
    others = np.array([name[-1] < "p" for name in dictionary.entry_names])
    assert 0 < others.sum() < len(others)
    hidden, _ = _choose(dataclasses.replace(dictionary, entry_is_other_scope=others), 10_000, random_from(0))
    assert not others[hidden].any()


def test_confidences_are_those_of_a_linker_without_these_names(place: Path, tmp_path: Path) -> None:
    full, less = tmp_path / "full", tmp_path / "less"
    build_linker(place / "t", place / "letters", full)  # without n-grams, whose weights are of all names
    hidden, shown = chosen(full, 60)
    report = calibrate_linker(full, n_names=60)
    left = {code: [name for name in names if (code, name) not in hidden] for code, names in CONCEPTS.items()}
    build_linker(make_terminology(tmp_path / "t", left), place / "letters", less)
    mentions = pl.DataFrame([*hidden, *shown], schema=["concept_id", "mention"], orient="row")
    assert report.calibration == tune_linker(less, mentions).calibration
    assert LinkerSettings.open(full) == LinkerSettings.open(less)
    assert report.hidden == tune_linker(less, mentions.head(60)).accuracy["before"]
    assert 0.2 < report.hidden.at_1 < 0.9


def test_what_it_leaves(linker: Path) -> None:
    before = Linker.open(linker).link(["cardio"])[0]
    assert before[0].confidence is None
    seen: list[tuple[int, int]] = []
    report = calibrate_linker(linker, n_names=60, wished_precision=0.8, progress=lambda *at: seen.append(at))
    assert (report.n_hidden, report.n_shown, report.had_calibration) == (60, 6, False)
    assert (report.without_contexts, report.trained_on_names) == (False, False)
    assert seen[-1] == (132, 132)
    verify_artifact(linker)
    opened = Linker.open(linker)
    assert opened.settings.no_concept_below == report.no_concept_below is not None
    assert opened.tuned(opened.settings.replaced(no_concept_below=None)).link(["cardio"])[0][0].confidence is not None
    tuning = read_manifest(linker).config["tuning"]
    assert (tuning["n_names"], tuning["no_concept_below"]) == (60, report.no_concept_below)
    again = calibrate_linker(linker, n_names=70, method="isotonic")
    assert again.had_calibration
    assert again.no_concept_below is None
    assert LinkerSettings.open(linker).no_concept_below is None
    assert read_manifest(linker).config["tuning"]["calibration"]["method"] == "isotonic"


def test_weights_are_learned_where_there_are_none(linker: Path, tmp_path: Path) -> None:
    assert LinkerSettings.open(linker).weights is None
    seen: list[tuple[int, int]] = []
    report = calibrate_linker(linker, n_names=60, progress=lambda *at: seen.append(at))
    assert seen[-1] == (132, 132)
    settings = LinkerSettings.open(linker)
    assert settings.weights == report.weights is not None
    assert report.hidden_by_ranks is not None
    hidden, _ = chosen(linker, 60)
    mentions = pl.DataFrame(hidden, schema=["concept_id", "mention"], orient="row")
    less = Linker.open(linker).without(name_rows_of(linker, hidden))
    for by, found in ((settings, report.hidden), (settings.replaced(weights=None), report.hidden_by_ranks)):
        links = less.tuned(by.replaced(calibration=None, calibrated_stages=())).link(mentions["mention"], top_k=5)
        right = [
            code in [link.concept_id for link in five] for code, five in zip(mentions["concept_id"], links, strict=True)
        ]
        assert found.at_5 == pytest.approx(sum(right) / 60)
    again = calibrate_linker(linker, n_names=60)
    assert dataclasses.replace(again, had_calibration=False) == report
    tune_linker(linker, mentions.with_columns(pl.col("mention") + "x"), calibrate=False)
    tuned = LinkerSettings.open(linker).weights
    after = calibrate_linker(linker, n_names=60)
    assert (after.weights, after.hidden_by_ranks) == (None, None)
    assert LinkerSettings.open(linker).weights == tuned != report.weights


def test_an_encoder_that_was_trained_on_the_names_is_told_of(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "letters", tmp_path / "letters")
    with amend_artifact(
        tmp_path / "letters", "encoder", config={"terminology": [read_manifest(place / "t").fingerprint]}
    ):
        pass
    build_linker(place / "t", tmp_path / "letters", tmp_path / "linker", sparse=True)
    assert calibrate_linker(tmp_path / "linker", n_names=60).trained_on_names
    without = Linker.open(tmp_path / "linker").settings.replaced(stages=("exact", "sparse"))
    with amend_artifact(tmp_path / "linker", "linker", format_version=FORMAT_VERSION) as folder:
        without.save(folder)
    assert not calibrate_linker(tmp_path / "linker", n_names=60).trained_on_names


def test_weights_that_were_learned_stay(linker: Path) -> None:
    mentions = pl.DataFrame(
        [(name + "x", code) for code, names in CONCEPTS.items() for name in names],
        schema=["mention", "concept_id"],
        orient="row",
    )
    tune_linker(linker, mentions, stages=["exact", "dense", "sparse"], calibrate=False)
    before = LinkerSettings.open(linker)
    assert before.weights is not None
    calibrate_linker(linker, n_names=60)
    after = LinkerSettings.open(linker)
    assert after.calibrated_stages == ("exact", "dense", "sparse")
    without: dict[str, Any] = {"calibration": None, "calibrated_stages": (), "no_concept_below": None}
    assert after.replaced(**without) == before.replaced(**without)
    assert read_manifest(linker).config["tuning"]["n_mentions"] == len(mentions)


def test_confidences_of_an_earlier_release_are_told_of_until_they_are_learned_again(
    linker: Path, tmp_path: Path
) -> None:
    make_terminology(tmp_path / "new", {**CONCEPTS, "NEW": ["quux"]})
    make_terminology(tmp_path / "newer", {**CONCEPTS, "NEW": ["quux", "quuux"]})
    calibrate_linker(linker, n_names=60)
    assert update_linker(linker, tmp_path / "new").is_tuned
    calibrate_linker(linker, n_names=60)
    assert not update_linker(linker, tmp_path / "new").is_tuned
    weighted = LinkerSettings.open(linker).replaced(weights={"dense": 0.5, "sparse": 0.5})
    with amend_artifact(linker, "linker", format_version=FORMAT_VERSION) as folder:
        weighted.save(folder)
    assert update_linker(linker, tmp_path / "newer").is_tuned
    calibrate_linker(linker, n_names=60)
    assert update_linker(linker, tmp_path / "newer").is_tuned, "the weights are still those of an earlier one"


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"n_names": 49}, InputError, "a whole number from 50"),
        ({"seed": -1}, InputError, "seed"),
        ({"method": "none"}, ConfigError, "method"),
        ({"certainty": 0.9}, ConfigError, "give both"),
        ({"wished_precision": 2.0}, InputError, "precision"),
        ({"wished_precision": 1.0, "certainty": 0.999}, InputError, "precision"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], error: type[Exception], said: str, linker: Path) -> None:
    before = json.loads((linker / "settings.json").read_text())
    with pytest.raises(error, match=said):
        calibrate_linker(linker, **{"n_names": 60, **options})
    assert json.loads((linker / "settings.json").read_text()) == before


def test_names_that_show_nothing(tmp_path: Path) -> None:
    write_letter_linker(tmp_path / "few", {f"C{row}": [f"{row} a", f"{row} b"] for row in range(99)})
    with pytest.raises(InputError, match=r"too few names that could be hidden.*50 concepts.*more than 2.*found 0"):
        calibrate_linker(tmp_path / "few" / "linker")
    letters = random.Random(3)
    alike = {f"C{row}": [(name := made_up(letters)), f"{name} o", f"{name} oo"] for row in range(60)}
    write_letter_linker(tmp_path / "alike", alike)
    with pytest.raises(InputError, match=r"alike.linker: .*do not show how far.*at least 10.*as many wrongly.*tune"):
        calibrate_linker(tmp_path / "alike" / "linker")
