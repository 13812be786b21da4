"""What is said of figures that may not be what they are taken for."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import polars as pl
import pytest
from test_benchmarks_run import LetterEncoder

from commands import invoke
from onoma.benchmarks import own_task, run_benchmark
from onoma.benchmarks.biosyn import Query
from onoma.benchmarks.doubts import (
    doubts_of_codes,
    doubts_of_files,
    doubts_of_learning,
    doubts_of_training,
    unknown_codes,
)
from onoma.benchmarks.tasks import biosyn_queries
from onoma.linking import Asking, Filters, Linker, LinkerSettings, add_prior, add_reranker, build_linker, tune_linker
from onoma.pairs.mentions import mentions_fingerprint, read_mentions
from onoma.training.reranking import train_reranker
from onoma.training.reranking_config import RerankingConfig
from tiny import make_terminology, tiny_encoder


def of_files(task: str, split: str, n_queries: int, n_names: int | None = None) -> list[str]:
    return list(doubts_of_files(task, split, n_queries=n_queries, n_names=n_names))


def test_files_of_another_task_are_doubted() -> None:
    assert of_files("ncbi-disease", "test", 960, 73_024) == []
    assert of_files("bc5cdr-disease", "test", 960, 3) == [
        "960 queries are those of ncbi-disease: are these the files of bc5cdr-disease?"
    ]
    assert of_files("ncbi-disease", "dev", 4178) == [
        "4,178 queries are those of bc5cdr-disease: are these the files of ncbi-disease?"
    ]
    assert of_files("ncbi-disease", "dev", 3) == ["the published files of ncbi-disease, dev, have 787 queries, these 3"]
    assert of_files("askapatient", "fold-3", 866, 1_036) == []
    assert of_files("askapatient", "fold-3-validation", 100) == [
        "the published files of askapatient, fold-3-validation, have 786 queries, these 100"
    ]
    assert of_files("one of my own", "test", 3, 3) == []


def test_another_dictionary_is_doubted() -> None:
    assert of_files("ncbi-disease", "test", 960, 71_924) == [
        "the published dictionary of ncbi-disease, test, has 73,024 names, this one 71,924: figures over it are not "
        "comparable with published ones"
    ]


def test_codes_that_the_names_lack() -> None:
    golds = ["D1", "D1|D9", "MESH:D2", "MESH:D2", "C7"]
    queries = [Query(f"{row}", (f"{row}",), frozenset(gold.split("|"))) for row, gold in enumerate(golds)]
    known = {"D1", "D2", "D3"}
    unknown = unknown_codes(queries, known)
    assert unknown == {"C7": 1, "MESH:D2": 2}
    assert list(doubts_of_codes(unknown, 0.4, known, of="the dictionary")) == [
        "the dictionary lacks the concepts of 60.0 % of the queries, such as MESH:D2, C7: these count as wrong "
        "(if codes are retired: --successors TERMINOLOGY takes what has replaced them)",
        "1 of the queries' codes has another form in the dictionary: MESH:D2 is D2 there",
    ]
    assert list(doubts_of_codes({"C7": 1}, 0.99, known, of="the dictionary")) == []


@pytest.fixture
def learned(tmp_path: Path) -> Path:
    """Queries, and a linker without an encoder that may learn from them."""
    codes = [f"D{number}" for number in range(60)]
    make_terminology(tmp_path / "t", {code: [f"disease {number}"] for number, code in enumerate(codes)})
    build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True, stages=["exact", "sparse"])
    for split, words in (("dev", ["a disease {}", "disease nr {}"]), ("test", ["the disease {}"])):
        lines = [f"{code}||{word.format(number)}" for number, code in enumerate(codes) for word in words]
        lines.append("D1|D2||one|two")  # composite, from which nothing is learned
        (tmp_path / f"{split}_queries.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def of_linker(place: Path, split: str) -> list[str]:
    out = place / "results"
    result = run_benchmark("ncbi-disease", place, linker=place / "linker", split=split, out=out, overwrite=True)
    return [doubt for doubt in result.doubts if "these very mentions" in doubt]


def test_mentions_that_a_linker_has_learned_from(learned: Path) -> None:
    assert of_linker(learned, "dev") == []
    mentions = read_mentions(learned / "dev_queries.txt")
    tune_linker(learned / "linker", mentions, calibrate=False)
    said = "the linker {} these very mentions: the figures are higher than for others"
    assert of_linker(learned, "dev") == [said.format("was tuned on")]
    assert of_linker(learned, "test") == []
    by_look_up = Linker.open(learned / "linker").tuned(LinkerSettings(stages=("exact",)))
    assert not list(doubts_of_learning(by_look_up, biosyn_queries(learned, "dev")[0]))
    shuffled = pl.concat([mentions, mentions]).sample(fraction=1, shuffle=True, seed=0)
    add_prior(learned / "linker", shuffled)
    assert of_linker(learned, "dev") == [said.format("was tuned on"), said.format("has counted")]


def test_mentions_that_a_reranker_was_trained_on(learned: Path) -> None:
    base = tiny_encoder(learned / "bert", extra_tokens=["disease"])
    mentions = read_mentions(learned / "dev_queries.txt")
    short = {"max_tokens": 32, "max_name_tokens": 10, "precision": "fp32", "device": "cpu"}
    config = RerankingConfig.model_validate({"base": str(base), "steps": 1, "keep": "last", **short})
    train_reranker(config, Linker.open(learned / "linker"), mentions, learned / "r")
    add_reranker(learned / "linker", learned / "r")
    assert of_linker(learned, "dev") == [
        "the reranker r was trained on these very mentions: the figures are higher than for others"
    ]
    assert of_linker(learned, "test") == []
    done = invoke(
        "linker", "tune", learned / "linker", "--mentions", learned / "dev_queries.txt", "--calibration", "none"
    )
    said = "the reranker r was trained on these very mentions: accuracies and confidences are too high for others"
    assert said in " ".join(done.stderr.split())
    report = tune_linker(learned / "linker", read_mentions(learned / "test_queries.txt"), calibrate=False)
    assert report.trained_on == ()


def test_mentions_that_an_encoder_was_trained_on(learned: Path) -> None:
    mentions = read_mentions(learned / "dev_queries.txt")
    encoder = LetterEncoder(trained_mentions=frozenset({mentions_fingerprint(mentions["mention"])}))
    (said,) = doubts_of_training(encoder, biosyn_queries(learned, "dev")[0])
    assert said == "letters was trained on these very mentions: the figures are higher than for others"
    assert not list(doubts_of_training(encoder, biosyn_queries(learned, "test")[0]))
    task, out = own_task(learned / "t"), learned / "results"
    assert said in run_benchmark(task, learned / "dev_queries.txt", encoder=encoder, out=out).doubts
    linker = Linker.open(learned / "linker")
    dense = LinkerSettings(stages=("exact", "dense"))
    with_encoder = SimpleNamespace(settings=dense, manifest=linker.manifest, encoder=encoder)
    assert list(doubts_of_learning(cast(Linker, with_encoder), biosyn_queries(learned, "dev")[0])) == [said]


def test_what_filters_leave_out_is_not_said_of_the_terminology(learned: Path) -> None:
    make_terminology(learned / "typed", {"D1": ["a"], "D2": ["b"]}, semantic_types={"D1": ["T047"], "D2": ["T121"]})
    linker = build_linker(learned / "typed", None, learned / "typed_linker", sparse=True)
    asking = Asking(filters=Filters.of(semantic_types="T047"))
    out = learned / "results"
    result = run_benchmark("ncbi-disease", learned, linker=linker, asking=asking, split="dev", out=out)
    assert any(doubt.startswith("what passes the filters lacks the concepts of 97.5 %") for doubt in result.doubts)


def test_doubts_are_remarked_on_and_kept(learned: Path) -> None:
    data, out = str(learned), str(learned / "results")
    done = invoke("benchmark", "run", "ncbi-disease", "--data", data, "--linker", f"{learned}/linker", "-o", out)
    assert done.exit_code == 0
    said = "the published files of ncbi-disease, test, have 960 queries, these 61"
    assert said in " ".join(done.stderr.split())
    assert json.loads((learned / "results" / "results.json").read_text(encoding="utf-8"))["doubts"] == [said]
