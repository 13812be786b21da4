"""``onoma pairs`` and ``onoma train --pairs``, on files made here."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from commands import run, said
from onoma.errors import ArtifactExistsError, ConfigError, MismatchError
from onoma.pairs import PairSet
from tiny import make_terminology, tiny_encoder

WORDS = ["heart", "lung", "liver", "bone"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    tiny_encoder(folder / "base")
    make_terminology(
        folder / "t",
        {f"X:{word}": [f"{word} disease", f"bad {word}"] for word in WORDS},
        relations=[("X:heart", "isa", "X:lung"), ("X:bone", "near", "X:lung")],
    )
    lines = [f"X:{word}||aching {word}" for word in WORDS]
    (folder / "train.txt").write_text("\n".join([*lines, "X:heart|X:lung||heart|lung", "Y||unknown"]) + "\n")
    (folder / "de.tsv").write_text("heart\therz\nlung\tlunge\nbroken\n")
    return folder


def common(place: Path, out: str) -> Sequence[str | Path]:
    return "-e", place / "base", "-o", place / out


def test_pairs_of_every_sort_and_an_encoder_from_all_of_them(place: Path) -> None:
    shown = said(
        "pairs", "build", "-t", place / "t", *common(place, "synonyms"), "--languages", "en", "--max-pairs", "5"
    )
    assert "synonyms: 4 pairs of 8 names" in shown
    shown = said(
        "pairs", "mentions", place / "train.txt", "-t", place / "t", *common(place, "mentions"), "--on-unknown", "skip"
    )
    assert "mentions: 8 pairs of 12 names" in shown
    counts = "5 in all, 0 of no concept, 1 unknown, 0 partly unknown, 0 blank, 0 without names"
    assert f"{counts}, 1 composite mentions left out" in shown
    shown = said("pairs", "bitext", place / "de.tsv", *common(place, "bitext"), "--on-error", "skip")
    assert "bitext: 2 pairs of 4 names" in shown
    assert "3 in all, 1 rejected" in shown
    assert "de.tsv, line 3: left out: a line of another form" in shown
    shown = said(
        "pairs", "merge", *(place / name for name in ("synonyms", "mentions", "bitext")), "-o", place / "merged"
    )
    assert "merged: 14 pairs of 24 names" in shown
    told = json.loads(run("pairs", "info", place / "merged", "--json", "-e", place / "base", "--examples", "3"))
    assert (told["n_pairs"], told["n_names"], told["n_merged_from"], len(told["examples"])) == (14, 24, 3, 3)
    assert re.search(r"merged from +3 *\n", run("pairs", "info", place / "merged"))
    assert [one["kind"] for one in told["made_from"]].count("pairs") == 3
    assert set(told["examples"][0]) == {"name", "means_the_same_as"}
    assert "made_from" not in json.loads(run("pairs", "info", place / "bitext", "--json"))
    shown = said("pairs", "triples", "-t", place / "t", *common(place, "triples"), "--relations", "isa")
    assert "triples: 1 triple of 1 kind, 8 names" in shown
    assert "2 in all, 1 of other kinds" in shown
    shown = run("pairs", "info", place / "triples", "-e", place / "base")
    assert re.search(r"triples by relation +isa 1 *\n", shown)
    rows = [re.split(r" {2,}", line.replace(" ##", "").strip()) for line in shown.splitlines()[-2:]]
    assert rows == [["head", "relation", "tail"], ["heart disease", "isa", "lung disease"]]
    with pytest.raises(ConfigError, match="give --encoder too"):
        run("pairs", "info", place / "triples", "--examples", "1")

    settings = [f"--set={pair}" for pair in (f"base={place / 'base'}", "steps=3", "batch_pairs=7")]
    shown = said("train", "quickstart", "--pairs", place / "merged", "-o", place / "encoder", *settings)
    assert "trained 3 steps" in shown
    manifest = json.loads((place / "encoder" / "onoma.json").read_text())
    assert manifest["parents"][0]["fingerprint"] == PairSet.open(place / "merged").manifest.fingerprint
    assert len(manifest["config"]["terminology"]) == 1


def test_pairs_that_are_there_are_replaced_if_asked_for(place: Path) -> None:
    of_t = ("-t", place / "t")
    for name in ("there", "too"):
        run("pairs", "build", *of_t, *common(place, name))
    for command in (
        ("build", *of_t, *common(place, "0")),
        ("mentions", place / "train.txt", *of_t, *common(place, "1"), "--on-unknown", "skip"),
        ("bitext", place / "de.tsv", *common(place, "2"), "--on-error", "skip"),
        ("merge", place / "there", place / "too", "-o", place / "3"),
        ("triples", *of_t, *common(place, "4")),
    ):
        told = run("pairs", *command)
        with pytest.raises(ArtifactExistsError):
            run("pairs", *command)
        assert run("pairs", *command, "--force") == told


def test_pairs_of_a_class_of_translations_are_as_many_as_is_said(place: Path) -> None:
    (place / "classes.tsv").write_text("".join(f"heart {word}\therz {word}\tS1\n" for word in ("a", "b", "c", "d")))
    asked = ("pairs", "bitext", place / "classes.tsv", "--classes", "column")
    assert "all: 28 pairs of 8 names" in run(*asked, *common(place, "all"))
    assert "three: 3 pairs of" in run(*asked, "--max-pairs", "3", *common(place, "three"))
    apart = said(*asked[:-1], "pair", *common(place, "apart"))
    assert "3 lines of a class that occurred before; each line is now a class of its own" in apart
    assert "that stood before" not in said(*asked[:-1], "listed", *common(place, "listed"))
    for classes in ("pair", "listed"):
        with pytest.raises(ConfigError, match=f"is for classes that are paired anew .*; found classes '{classes}'"):
            run(*asked[:-1], classes, "--max-pairs", "3", *common(place, "none"))


def test_bad_lines_of_mentions_are_told(place: Path) -> None:
    (place / "bad.txt").write_text("X:heart||aching\nbroken\n")
    shown = said(
        "pairs", "mentions", place / "bad.txt", "-t", place / "t", *common(place, "some"), "--on-error", "skip"
    )
    assert "line 2: left out: no '||' in the line" in shown
    assert "1 bad lines left out (rejects.parquet)" in " ".join(shown.split())
    assert pl.read_parquet(place / "some" / "rejects.parquet")["line"].to_list() == [2]


def test_pairs_and_recipe_must_agree(place: Path) -> None:
    run("pairs", "build", "-t", place / "t", *common(place, "coder"), "--normalisation", "coder", "--max-tokens", "32")
    train = ("train", "quickstart", "--pairs", place / "coder", "-o", place / "never", f"--set=base={place / 'base'}")
    with pytest.raises(MismatchError, match="made with normalisation coder, and the recipe says sapbert"):
        run(*train)
    with pytest.raises(MismatchError, match="Set max_tokens=32"):
        run(*train, "--set=normalisation=coder")
    for setting in ("languages=en", "include_suppressed=true", "max_pairs_per_concept=3", "ambiguous=drop"):
        with pytest.raises(ConfigError, match=f"settled already, by onoma pairs: {setting.partition('=')[0]}"):
            run(*train, "--set", setting)
    for sources in ((), ("-t", place / "t", "--pairs", place / "coder")):
        with pytest.raises(ConfigError, match="either --terminology or --pairs"):
            run("train", "quickstart", "-o", place / "never", *sources)


def test_what_pairs_hold_is_told(tmp_path: Path) -> None:
    tiny_encoder(tmp_path / "base")
    make_terminology(
        tmp_path / "t",
        {"X:1": ["heart disease", "cold"], "X:2": ["bone disease", "cold"], "X:3": ["liver"], "X:4": ["old"]},
        relations=[("X:1", "isa", "X:3"), ("X:2", "near", "X:3"), ("X:2", "isa", "X:1"), ("X:4", "part_of", "X:1")],
        obsolete=["X:4"],
    )
    common = ("-t", tmp_path / "t", "-e", tmp_path / "base")
    run("pairs", "build", *common, "-o", tmp_path / "pairs", "--seed", "7")
    told = json.loads(run("pairs", "info", tmp_path / "pairs", "--json"))
    assert (told["n_pairs"], told["n_names"], told["n_concepts"], told["n_texts_of_several_concepts"]) == (2, 5, 3, 1)
    assert (told["normalisation"], told["seed"]) == ("sapbert", 7)
    assert [one["kind"] for one in told["made_from"]] == ["terminology"]
    shown = said("pairs", "info", tmp_path / "pairs", "--encoder", tmp_path / "base")
    # The tokeniser made here does not say how its pieces are put together.
    assert re.search(r"(heart disease +cold|cold +heart disease)", shown.replace(" ##", "")), shown
    run("pairs", "triples", *common, "-o", tmp_path / "triples")
    told = json.loads(run("pairs", "info", tmp_path / "triples", "--json", "-e", tmp_path / "base"))
    assert (told["n_triples"], told["n_concepts"]) == (3, 3)
    assert told["triples_by_relation"] == {"isa": 2, "near": 1, "part_of": 0}
    examples = [{what: text.replace(" ##", "") for what, text in one.items()} for one in told["examples"]]
    assert {"head": "bone disease", "relation": "near", "tail": "liver"} in examples
    tiny_encoder(tmp_path / "other", extra_tokens=["zebra"])
    with pytest.raises(MismatchError, match="was tokenised with another tokeniser"):
        run("pairs", "info", tmp_path / "pairs", "-e", tmp_path / "other")
    with pytest.raises(ConfigError, match="give --encoder too"):
        run("pairs", "info", tmp_path / "pairs", "--examples", "5")


def test_names_of_a_test_set_are_not_learned_from(place: Path, tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("mention,concept_id\nBAD heart,X:heart\nlung disease,X:lung\nother,X:bone\n")
    asked: list[str | Path] = ["-t", place / "t", "--leave-out", tmp_path / "test.csv"]
    shown = said("pairs", "build", *asked, "-e", place / "base", "-o", tmp_path / "pairs")
    assert "2 of 8 names are spelt like mentions to leave out" in shown
    assert "pairs: 2 pairs of 6 names" in shown
    few = ["--set", "steps=1", "--set", "batch_pairs=2", "--set", f"base={place / 'base'}", "--set", "languages=en"]
    (tmp_path / "dev.csv").write_text("mention,concept_id\nbad heart,X:heart\n")
    few += ["--development", str(tmp_path / "dev.csv")]  # the name is there to be found, though it is not learned from
    shown = said("train", "quickstart", *asked, *few, "-o", tmp_path / "encoder")
    assert "2 of 8 names are spelt like mentions to leave out" in shown
    assert "acc@1 1.0" in shown
    with pytest.raises(ConfigError, match="--leave-out goes with --terminology, and not with --grid"):
        run("train", "quickstart", "--pairs", tmp_path / "pairs", *asked[2:], "-o", tmp_path / "other")
