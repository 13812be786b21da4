"""Baselines on a benchmark: lines of its dictionary, by the published protocol."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from commands import run, said
from onoma.benchmarks import run_benchmark
from onoma.benchmarks.biosyn import DictionaryLine
from onoma.benchmarks.candidates import best_lines
from onoma.errors import ConfigError, InputError
from onoma.linking.baselines import get_baseline

DICTIONARY = "D1||heart attack\nD2||heart failure\nD2|600||failure\nD3||lung\nD4||lung\nD5||asthma\n"
QUERIES = "D1||Heart  attack\n600||failure of heart\nD4||lung\nD1|D3||attack|lung\nD5||xyz\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "test_dictionary.txt").write_text(DICTIONARY)
    (folder / "test_queries.txt").write_text(QUERIES)
    return folder


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("exact", [1, None, 2, None, None]),
        ("bm25", [1, 2, 2, 1, None]),  # "heart failure" comes before "failure"; of the two lungs the earlier line
    ],
)
def test_figures_worked_out_by_hand(name: str, expected: list[int | None], data: Path, tmp_path: Path) -> None:
    result = run_benchmark("ncbi-disease", data, baseline=name, out=tmp_path / "out")
    predictions = pl.read_parquet(tmp_path / "out" / "predictions.parquet")
    ranks = predictions.unique("query").sort("query")
    assert ranks["query_rank"].to_list() == expected
    assert ranks["exact_rank"].to_list() == [1, None, 2, None, None]
    assert predictions.filter(pl.col("query") == 4)["candidate_ids"].to_list() == [[]]
    assert (result.n_queries, result.n_dictionary, result.coverage) == (5, 6, 1)
    assert result.model["kind"] == "baseline"
    assert result.model["name"] == name
    assert result.protocol.startswith("biosyn")
    assert "stands in the place of the cosine" in result.protocol
    assert set(result.data) == {"test_queries.txt", "test_dictionary.txt"}


@pytest.mark.parametrize("name", ["tfidf", "fuzzy"])
def test_equal_lines_come_in_their_order(name: str, data: Path) -> None:
    lines = [DictionaryLine(text, (str(row),)) for row, text in enumerate(["ab", "c", "AB", "ab"])]
    found = best_lines(get_baseline(name), lines, ["Ab", "q"], k=3)
    assert [candidate.ids for candidate in found["Ab"]] == [("0",), ("2",), ("3",)]
    assert [candidate.name for candidate in found["Ab"]] == ["ab", "AB", "ab"]
    assert found["q"] == []


def test_settings_and_files_stand_in_the_results(data: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "words.vec"
    vectors.write_text("2 2\nheart 1 0\nlung 0 1\n")
    out = tmp_path / "out"
    settings = ["--set", f"vectors={vectors}", "--set", "normalisation=biosyn"]
    told = said("benchmark", "run", "ncbi-disease", "--data", data, "--baseline", "word-vectors", *settings, "-o", out)
    written = json.loads((out / "results.json").read_text())
    assert json.loads(written["model"]["settings"]) == {"normalisation": "biosyn", "vectors": "words.vec"}
    assert "words.vec" in written["data"]
    assert "word-vectors" in told


def test_not_exactly_one_to_measure(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give one of encoder"):
        run_benchmark("ncbi-disease", data, baseline="exact", encoder=tmp_path, out=tmp_path / "out")
    with pytest.raises(InputError, match="give one of encoder"):
        run_benchmark("ncbi-disease", data, out=tmp_path / "out")
    with pytest.raises(ConfigError, match="needs the setting 'vectors'"):
        run_benchmark("ncbi-disease", data, baseline="word-vectors", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--baseline", "exact", "--encoder", "x"], "give one of"),
        (["--baseline", "exact", "--precision", "bf16"], "--precision is for --encoder"),
        (["--baseline", "exact", "--spelling"], "--spelling is for --linker"),
        (["--encoder", "x", "--set", "k1=1"], "--set is for --baseline"),
        (["--baseline", "tf-idf"], "Did you mean 'tfidf'"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], problem: str, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=problem):
        run("benchmark", "run", "ncbi-disease", "--data", data, "-o", tmp_path / "out", *options)
