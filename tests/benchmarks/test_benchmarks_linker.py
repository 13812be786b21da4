"""A linker on a benchmark's queries: its own dictionary, ids of the concepts it ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from test_benchmarks_run import LetterEncoder

from onoma.artifacts import Manifest
from onoma.artifacts.manifest import FileEntry
from onoma.benchmarks import run_benchmark
from onoma.errors import ConfigError, InputError
from onoma.indexes import ExactIndex
from onoma.linking import Linker, LinkerSettings, Preparation, build_dictionary, build_linker
from onoma.linking.components import Components
from onoma.linking.lookup import NameLookup
from tiny import make_terminology

QUERIES = "D1||aab\n600||BBBBB\nD3+D4||ccd|cdd\nD9||aab\nD2|D8||xyz\n"
CONCEPTS = {"D1": ["aab", "aaab"], "D2|600": ["bbb"], "D3": ["ccd"], "D4": ["cdd"], "D5": ["ddx"], "D6": ["y"]}

LinkerMaker = Callable[[dict[str, list[str]]], Linker]


@pytest.fixture
def make_linker(tmp_path: Path) -> LinkerMaker:
    def make(concepts: dict[str, list[str]]) -> Linker:
        dictionary = build_dictionary(make_terminology(tmp_path / "terminology", concepts))
        encoder = LetterEncoder()
        folder = tmp_path / "linker"
        folder.mkdir()
        dictionary.save(folder)
        files = {file.name: FileEntry.of(file) for file in folder.iterdir()}
        return Linker(
            path=folder,
            manifest=Manifest(kind="linker", format_version=1, onoma_version="0", created="", files=files),
            components=Components(
                dictionary=dictionary,
                settings=LinkerSettings(),
                lookup=NameLookup(dictionary.texts),
                encoder=encoder,
                index=ExactIndex(encoder.encode(list(dictionary.texts))),
                vectors=None,
            ),
        )

    return make


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "test_queries.txt").write_text(QUERIES)
    (folder / "test_dictionary.txt").write_text("D1||not looked at\n")
    return folder


def test_figures_worked_out_by_hand(make_linker: LinkerMaker, data: Path, tmp_path: Path) -> None:
    """1, 2 and 3 right; 4: D9 is not in the terminology; 5: only D6 and D5 share a letter with xyz, then the first of
    the terminology come, D1 and D2|600, at ranks 3 and 4."""
    result = run_benchmark("ncbi-disease", data, linker=make_linker(CONCEPTS), out=tmp_path / "out")
    ranks = pl.read_parquet(tmp_path / "out" / "predictions.parquet").unique("query").sort("query")
    assert ranks["query_rank"].to_list() == [1, 1, 1, None, 4]
    assert ranks["exact_rank"].to_list() == [1, None, 1, None, None]
    assert result.accuracy[1].n_right == 3
    assert result.accuracy[5].n_right == 4
    assert result.exact_match[1].n_right == 2
    assert result.coverage == 4 / 5
    assert result.n_dictionary == 7
    assert result.model["kind"] == "linker"
    assert set(result.data) == {"test_queries.txt"}
    assert result.protocol.startswith("linker")
    assert "preferred name" in result.tie_rule


def test_codes_of_another_kind_are_refused(make_linker: LinkerMaker, data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"codes such as 600, D1, D2.*found MONDO:1"):
        run_benchmark("ncbi-disease", data, linker=make_linker({"MONDO:1": ["aab"]}), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_how_mentions_are_made_ready_is_written_down(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"D1": ["angina"], "D2": ["anemia"]})
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True, stages=["exact"])
    (tmp_path / "test_queries.txt").write_text("D1||agina\nD2||anemia\n")
    plain = run_benchmark("ncbi-disease", tmp_path, linker=linker, out=tmp_path / "plain")
    reading = linker.preparing(Preparation(spelling=True))
    corrected = run_benchmark("ncbi-disease", tmp_path, linker=reading, out=tmp_path / "corrected")
    assert [result.accuracy[1].n_right for result in (plain, corrected)] == [1, 2]
    assert "preparation" not in plain.model
    assert corrected.as_json()["model"] == {**plain.model, "preparation": "spelling"}
    assert f"{plain.model['name']} + spelling  " in str(corrected)
    with pytest.raises(ConfigError, match="says itself which mentions are composite"):
        run_benchmark(
            "ncbi-disease", tmp_path, linker=linker.preparing(Preparation(composites=True)), out=tmp_path / "c"
        )
