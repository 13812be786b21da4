"""What is given in place of a path is told in a sentence, at each door that opens or writes something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import onoma
from onoma.artifacts import verify_artifact, write_text_atomically
from onoma.benchmarks import changed_answers, own_task, run_benchmark, tabulate_results
from onoma.encoders import add_to_card, export_encoder
from onoma.encoders.adapter_folders import load_adapter
from onoma.encoders.averages import average_encoders
from onoma.encoders.centring import centre_encoder
from onoma.errors import ConfigError, InputError, ShapeError, checked_path
from onoma.indexes import VectorStore, build_index, open_index, read_index_record, write_vectors
from onoma.linking import AbbreviationTable, ExactMatcher, LinkerSettings, Reranker, update_linker
from onoma.mapping import map_table
from onoma.pairs import read_mentions
from onoma.terminology import enrich_terminology, fetch, merge_terminologies
from onoma.training.biosyn import train_biosyn
from onoma.training.distillation import distil_encoder
from onoma.training.grid_run import train_combinations
from onoma.training.reranking import train_reranker
from tiny import make_terminology

DOORS: dict[str, Callable[[Any], object]] = {
    "Linker": onoma.Linker.open,
    "Terminology": onoma.Terminology.open,
    "PairSet": onoma.PairSet.open,
    "Reranker": Reranker.open,
    "AbbreviationTable": AbbreviationTable.from_file,
    "open_encoder": onoma.open_encoder,
    "open_index": open_index,
    "verify_artifact": verify_artifact,
    "Recipe": onoma.Recipe.load,
    "read_mentions": read_mentions,
    "build_linker": lambda path: onoma.build_linker(path, None, "nowhere", sparse=True),
    "update_linker": lambda path: update_linker(path, "nowhere"),
    "map_table": lambda path: map_table("nowhere", path, "nowhere.csv", column="mention"),
    "run_benchmark": lambda path: run_benchmark("ncbi-disease", path, out="nowhere", baseline="exact"),
    "changed_answers": lambda path: changed_answers(path, path),
    "train_on_terminology": lambda path: onoma.train_on_terminology("quickstart", "nowhere", path),
    "import_terminology": lambda path: onoma.import_terminology("csv", "nowhere", path),
    "build_index": lambda path: build_index(path, [], kind="exact"),
    "read_index_record": read_index_record,
    "merge_terminologies": lambda path: merge_terminologies([path], "nowhere"),
    "enrich_terminology": lambda path: enrich_terminology(path, ["nowhere"], "nowhere"),
    "export_encoder": lambda path: export_encoder("onoma-mini", path),
    "average_encoders": lambda path: average_encoders(["onoma-mini", "onoma-mini"], path),
    "centre_encoder": lambda path: centre_encoder("onoma-mini", [str(one) for one in range(100)], path),
    "load_adapter": load_adapter,
    "add_to_card": lambda path: add_to_card("onoma-mini", results=[path]),
    "tabulate_results": lambda path: tabulate_results({"a": [path]}),
    "train_biosyn": lambda path: train_biosyn("biosyn", "nowhere", "nowhere", path),
    "distil_encoder": lambda path: distil_encoder("distil", "nowhere", path),
    "fetch": lambda path: fetch("doid", path),
    "LinkerSettings": LinkerSettings.open,
    "write_text_atomically": lambda path: write_text_atomically(path, ""),
    "VectorStore": lambda path: VectorStore.open(path, max_norm=1.0),
    "write_vectors": lambda path: write_vectors(path, []),
    "train_reranker": lambda path: train_reranker("reranker", cast(Any, "nowhere"), "nowhere", path),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("path", [None, 5, b"bytes", "a\0b"], ids=repr)
def test_what_is_no_path_is_refused_in_a_sentence(door: str, path: object) -> None:
    with pytest.raises(InputError, match="a path is needed"):
        DOORS[door](path)


@pytest.mark.parametrize("door", DOORS)
def test_links_that_lead_back_to_themselves_are_refused_in_a_sentence(door: str, tmp_path: Path) -> None:
    loop, other = tmp_path / "loop.toml", tmp_path / "other"
    loop.symlink_to(other)
    other.symlink_to(loop)
    with pytest.raises(InputError, match=rf"{loop}: this path is a link that leads back to itself"):
        DOORS[door](loop)


def test_a_dash_is_no_folder_for_what_lies_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for write in (lambda: fetch("doid", "-"), lambda: train_combinations([], "-", lambda *_: None, made_from={})):
        with pytest.raises(ConfigError, match="a folder is written here, not standard output"):
            write()
    assert not any(tmp_path.iterdir())


def test_an_unset_variable_is_not_the_folder_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_terminology(tmp_path / "terms", {"A": ["heart"]})
    monkeypatch.chdir(tmp_path / "terms")
    assert onoma.Terminology.open(".").n_names == 1
    with pytest.raises(InputError, match=r"a path is needed; expected text or a pathlib\.Path; found ''"):
        onoma.Terminology.open("")
    assert checked_path(Path("terms")) == checked_path("terms") == Path("terms")


def test_what_is_no_benchmark_is_refused() -> None:
    with pytest.raises(ConfigError, match="no benchmark 'None'"):
        run_benchmark(None, "nowhere", out="nowhere")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a path is needed"):
        own_task(5)  # type: ignore[arg-type]


def test_what_is_not_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mentions.csv").write_text("mention,concept_id\nheart,A\n", encoding="utf-8")
    wrong: Any = 5
    task = own_task(make_terminology(tmp_path / "terms", {"A": ["heart"]}))
    with pytest.raises(InputError, match=r"a path is needed.*found 5"):
        run_benchmark(task, tmp_path / "mentions.csv", out=tmp_path / "results", linker=wrong)
    with pytest.raises(InputError, match="an encoder that was opened is needed; found 5"):
        run_benchmark(task, tmp_path / "mentions.csv", out=tmp_path / "results", encoder=wrong)
    with pytest.raises(InputError, match=r"names are looked up in a dictionary.*found 5"):
        ExactMatcher(wrong)
    with pytest.raises(InputError, match=r"no table of short forms.*found 5"):
        AbbreviationTable(wrong)
    with pytest.raises(InputError, match=r"for each system's name.*found 5"):
        tabulate_results(wrong)


def test_what_is_no_mapping_of_settings_or_no_vectors_is_told_as_such(tmp_path: Path) -> None:
    wrong: Any = "id=code"
    with pytest.raises(ConfigError, match=r"options are a mapping.*; found str"):
        onoma.import_terminology("table", "codes.csv", tmp_path / "terms", options=wrong)
    wrong = {5: 1}
    with pytest.raises(ConfigError, match="there is no setting '5'"):
        onoma.Recipe.load("quickstart", wrong)
    for wrong in (None, 5):
        with pytest.raises(ShapeError, match=rf"must be a matrix of numpy.*; found {type(wrong).__name__}\."):
            build_index(tmp_path / "index", wrong, kind="exact")
    wrong = None
    with pytest.raises(ConfigError, match=r"no format 'None'\. Known"):  # and not: did you mean 'snomed'?
        onoma.import_terminology(wrong, "codes.csv", tmp_path / "terms")
