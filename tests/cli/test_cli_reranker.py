"""``onoma reranker``: from a linker and annotated mentions to a reranker."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from typer.testing import Result

from commands import invoke
from onoma.artifacts import open_artifact
from onoma.benchmarks import compare_results, own_task, run_benchmark
from onoma.errors import ArtifactExistsError, ConfigError, InputError
from onoma.linking import Linker, Reranker, build_linker
from tiny import WORDS, make_terminology, tiny_encoder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reranker")
    tiny_encoder(folder / "base", weight_std=0.2)
    names = {f"X:{word}": [f"{word} disease", f"disease of {word}", f"{word} illness"] for word in WORDS}
    make_terminology(folder / "t", names)
    build_linker(folder / "t", folder / "base", folder / "linker")
    (folder / "train.txt").write_text("".join(f"X:{word}||{word} trouble\n" for word in WORDS[:5]))
    (folder / "dev.txt").write_text("".join(f"X:{word}||bad {word}\n" for word in WORDS[5:]))
    (folder / "dev.csv").write_text("mention,concept_id,said\nbad eye,X:eye,a bad eye it was\n")
    return folder


def train(
    place: Path, out: Path, *arguments: str | Path, mentions: str = "train.txt", linker: Path | None = None
) -> Result:
    settings = ("steps=4", "batch_mentions=2", "depth=4", "max_tokens=32", "max_name_tokens=10")
    given = [f"--set={setting}" for setting in (f"base={place / 'base'}", *settings)]
    return invoke(
        "reranker", "train", "--linker", linker or place / "linker", "--mentions", place / mentions,
        "-o", out, *given, *arguments,
    )  # fmt: skip


def test_a_reranker_is_trained_and_told_about(place: Path, tmp_path: Path) -> None:
    done = train(place, tmp_path / "r", "--development", place / "dev.txt", "--set", "evaluate_steps=2")
    assert done.exit_code == 0
    assert re.search(r"trained 4 steps in .*, loss \d+\.\d+ -> \d+\.\d+, acc@1 [01]\.\d+", done.stdout)
    assert re.search(
        r"share of the reranker in the final score: [\d.]+( \(.*\))?; the linker alone has acc@1 [01]", done.stderr
    )
    assert [line[:7] for line in done.stderr.splitlines() if "dev.txt acc@1" in line] == [
        "step 0:",
        "step 2:",
        "step 4:",
    ]
    linker = Linker.open(place / "linker")
    assert Reranker.open(tmp_path / "r").about.depth == 4
    manifest = open_artifact(tmp_path / "r", "reranker")
    assert ("linker", linker.fingerprint) in [(parent.kind, parent.fingerprint) for parent in manifest.parents]
    found = linker.link(["bad brain"], top_k=4)
    assert len(Reranker.open(tmp_path / "r").rerank(["bad brain"], found)[0].links) == 4


def test_a_share_that_was_given_was_not_chosen(place: Path, tmp_path: Path) -> None:
    given = ("--development", place / "dev.txt", "--set", "weight=0.3", "--set", "precision=bf16")
    done = train(place, tmp_path / "r", *given)
    assert "share of the reranker in the final score: 0.3; the linker alone has acc@1" in done.stderr


def test_contexts_come_from_a_column(place: Path, tmp_path: Path) -> None:
    own = tmp_path / "train.csv"
    own.write_text("mention,concept_id,said\n" + "".join(f"{word} bug,X:{word},a {word} bug\n" for word in WORDS[:4]))
    files = ("--context", "said", "--development", place / "dev.csv")
    assert train(place, tmp_path / "r", *files, mentions=str(own)).exit_code == 0
    assert Reranker.open(tmp_path / "r").uses_contexts


def test_nil_is_learnt_from_mentions_of_other_concepts_and_told(place: Path, tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (tmp_path / f"{name}.txt").write_text((place / f"{name}.txt").read_text() + "NIL||word of nothing\n")
    own = ("--development", tmp_path / "dev.txt", "--set", "nil=true", "--set", "keep=last")
    done = train(place, tmp_path / "r", *own, mentions=str(tmp_path / "train.txt"))
    assert done.exit_code == 0
    nil_score = Reranker.open(tmp_path / "r").about.nil_score
    assert ("NIL is never its answer" if nil_score is None else f"score of NIL: {nil_score:g}") in done.stderr
    without = train(
        place, tmp_path / "s", "--set", "nil=true", "--set", "keep=last", mentions=str(tmp_path / "train.txt")
    )
    assert without.exit_code == 0
    assert "score of NIL: 0\n" in without.stderr
    build_linker(place / "t", place / "base", tmp_path / "linker")
    assert invoke("linker", "add-reranker", tmp_path / "linker", tmp_path / "s").exit_code == 0
    explained = json.loads(invoke("link", tmp_path / "linker", "word of nothing", "--explain", "--json").stdout)
    assert 0 < explained["no_concept"] < 1
    measured = measure(tmp_path)
    assert "the linker's cross-encoder may answer that no concept is meant" in measured.stderr
    (tmp_path / "notes.csv").write_text("m\nbad eye\n")
    table = ("-i", tmp_path / "notes.csv", "-c", "m", "-o", tmp_path / "mapped.csv")
    mapped = " ".join(invoke("map", tmp_path / "linker", *table).stderr.split())
    assert "may answer that no concept is meant; rows without a link may be such" in mapped
    assert (
        json.loads((tmp_path / "m" / "results.json").read_text())["model"]["stages"] == "exact, variants, dense, rerank"
    )


def measure(folder: Path, *words: str) -> Result:
    """A benchmark of one query."""
    (folder / "test_queries.txt").write_text("X:eye||bad eye\n")
    return invoke(
        "benchmark", "run", "ncbi-disease", "--data", folder, "--linker", folder / "linker", "-o", folder / "m", *words
    )


def test_a_reranker_of_another_linker_or_of_no_use_is_told(place: Path, tmp_path: Path) -> None:
    assert train(place, tmp_path / "r", "--set", "keep=last", "--set", "weight=0").exit_code == 0
    build_linker(place / "t", place / "base", tmp_path / "other", stages=["dense"])
    added = invoke("linker", "add-reranker", tmp_path / "other", tmp_path / "r")
    assert "its share in the final score is 0, which fits the linker that it was trained with" in added.stderr
    shutil.copytree(place / "linker", tmp_path / "same")
    added = invoke("linker", "add-reranker", tmp_path / "same", tmp_path / "r")
    assert "its share in the final score is 0: it changes nothing but costs time" in added.stderr


def test_a_benchmark_has_no_contexts(place: Path, tmp_path: Path) -> None:
    lines = ["mention,concept_id,said", *(f"{word} bug,X:{word},a {word} bug" for word in WORDS)]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    own = ("--context", "said", "--set", "keep=last")
    assert train(place, tmp_path / "r", *own, mentions=str(tmp_path / "train.csv")).exit_code == 0
    shutil.copytree(place / "linker", tmp_path / "linker")
    assert invoke("linker", "add-reranker", tmp_path / "linker", tmp_path / "r").exit_code == 0
    measured = measure(tmp_path)
    assert "reads contexts, and the queries of a benchmark have none" in measured.stderr
    assert "no concept is meant" not in measured.stderr
    assert "reads contexts" not in measure(tmp_path, "--stages", "exact,dense", "--force").stderr


def test_own_mentions_are_measured_with_their_contexts(place: Path, tmp_path: Path) -> None:
    lines = ["mention,concept_id,said,paper", *(f"{word} bug,X:{word},a {word} bug,{word}" for word in WORDS)]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    own = ("--context", "said", "--set", "keep=last", "--set", "weight=1")
    assert train(place, tmp_path / "r", *own, mentions=str(tmp_path / "train.csv")).exit_code == 0
    linker = tmp_path / "linker"
    shutil.copytree(place / "linker", linker)
    assert invoke("linker", "add-reranker", linker, tmp_path / "r").exit_code == 0
    data = tmp_path / "mine.csv"
    said = [f"the {word} or a bug in the {WORDS[0]}" for word in WORDS]
    rows = [("bug", f"X:{word}", text, "p") for word, text in zip(WORDS, said, strict=True)]
    columns = ["mention", "concept_id", "said", "paper"]
    pl.DataFrame([*rows, ("bug", "X:eye", "", "q")], columns, orient="row").write_csv(data)
    common = ("benchmark", "run", "own", "--data", data, "--linker", linker)
    done = invoke(*common, "--context", "said", "--cluster", "paper", "-o", tmp_path / "m")
    assert done.exit_code == 0
    assert "reads contexts" not in done.stderr
    predictions = pl.read_parquet(tmp_path / "m" / "predictions.parquet")
    opened = Linker.open(linker)
    links = opened.link(["bug"] * (len(said) + 1), contexts=[*said, None])
    assert predictions["candidate_ids"].to_list() == [[link.concept_id for link in one] for one in links]
    scores = [[link.score for link in one] for one in links]
    assert predictions["scores"].to_list() == [pytest.approx(of_one, abs=1e-6) for of_one in scores]
    assert len({tuple(of_one) for of_one in scores}) == len(rows) + 1  # as their contexts differ
    assert json.loads((tmp_path / "m" / "results.json").read_text())["model"]["contexts"] == f"of {len(said)} queries"
    without = invoke(*common, "--cluster", "paper", "-o", tmp_path / "n")
    assert "reads contexts, and none are given (--context COLUMN)" in without.stderr
    compared = compare_results(tmp_path / "n", tmp_path / "m")
    assert compared.second == f"{compared.first.removesuffix(' (n)')} + contexts (m)"
    with pytest.raises(InputError, match="does not read contexts"):
        invoke(*common, "--context", "said", "--stages", "exact,dense", "-o", tmp_path / "x")
    with pytest.raises(InputError, match="no column 'sentence'"):
        invoke(*common, "--context", "sentence", "-o", tmp_path / "x")
    with pytest.raises(ConfigError, match="--context is for task own with --linker"):
        invoke(*common[:5], "--baseline", "exact", "--names", place / "t", "--context", "said", "-o", tmp_path / "x")
    with pytest.raises(ConfigError, match="contexts are read by a linker alone"):
        run_benchmark(own_task(place / "t", context="said"), data, baseline="exact", out=tmp_path / "x")


def test_a_linker_with_a_reranker_inside_uses_it_and_trains_another(place: Path, tmp_path: Path) -> None:
    assert train(place, tmp_path / "r", "--set", "keep=last", "--set", "weight=1").exit_code == 0
    build_linker(place / "t", place / "base", tmp_path / "linker")
    assert invoke("linker", "add-reranker", tmp_path / "linker", tmp_path / "r").exit_code == 0
    linker = Linker.open(tmp_path / "linker")
    searched = linker.link(["bad brain"], top_k=4, stages=["dense"])
    expected = Reranker.open(tmp_path / "r").rerank(["bad brain"], searched)[0].links
    (found,) = linker.link(["bad brain"], top_k=4)
    assert [link.concept_id for link in found] == [link.concept_id for link in expected]
    assert [link.score for link in found] == pytest.approx([link.score for link in expected], abs=2e-6)
    counted = invoke("linker", "add-prior", tmp_path / "linker", place / "train.txt", "--weight", "9")
    assert "stages exact, variants, dense, prior, rerank" in counted.stdout
    again = train(place, tmp_path / "s", "--set", "keep=last", linker=tmp_path / "linker")
    assert again.exit_code == 0
    # The same candidates as before: those of the searches, whatever is known of these mentions.
    data = [json.loads((tmp_path / name / "train.json").read_text())["data"] for name in ("r", "s")]
    assert data[0]["fingerprint"] == data[1]["fingerprint"]


def test_without_development_mentions_the_best_cannot_be_kept(place: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--set keep=last"):
        train(place, tmp_path / "r")
    assert train(place, tmp_path / "r", "--set", "keep=last").exit_code == 0
    with pytest.raises(ArtifactExistsError):
        train(place, tmp_path / "r", "--set", "keep=last")
    told = json.loads(train(place, tmp_path / "r", "--set", "keep=last", "--force", "--json").stdout)
    assert (told["path"], told["steps"]) == (str(tmp_path / "r"), 4)
    with pytest.raises(ConfigError, match="'tensorboard'"):
        train(place, tmp_path / "s", "--set", "keep=last", "--track", "tensorbord")


def test_the_recipe_is_listed_and_shown() -> None:
    assert "reranker" in invoke("recipes", "list").stdout
    shown = invoke("recipes", "show", "reranker").stdout
    assert re.search(r"own_names\s+both", shown)
    assert re.search(r"depth\s+10", shown)
