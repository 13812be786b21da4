"""A linker on a benchmark's queries: its own dictionary, ids of the concepts it ranks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from test_benchmarks_run import LetterEncoder

from commands import run
from onoma.artifacts import Manifest
from onoma.artifacts.manifest import FileEntry
from onoma.benchmarks import own_task, run_benchmark
from onoma.errors import ConfigError, InputError
from onoma.indexes import ExactIndex
from onoma.linking import Asking, Filters, Linker, LinkerSettings, Preparation, build_linker
from onoma.linking.components import Components
from onoma.linking.dictionary_building import collect_entries, dictionary_of
from onoma.linking.facts_collecting import collect_facts
from onoma.linking.lookup import NameLookup
from onoma.linking.spelling import NameWords
from tiny import make_terminology

QUERIES = "D1||aab\n600||BBBBB\nD3+D4||ccd|cdd\nD9||aab\nD2|D8||xyz\n"
CONCEPTS = {"D1": ["aab", "aaab"], "D2|600": ["bbb"], "D3": ["ccd"], "D4": ["cdd"], "D5": ["ddx"], "D6": ["y"]}

LinkerMaker = Callable[[dict[str, list[str]]], Linker]


@pytest.fixture
def make_linker(tmp_path: Path) -> LinkerMaker:
    def make(concepts: dict[str, list[str]]) -> Linker:
        terminology = make_terminology(tmp_path / "terminology", concepts)
        entries = collect_entries(terminology, normalisation="sapbert", with_labels=True)
        dictionary = dictionary_of(terminology, entries, normalisation="sapbert")
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
                facts=collect_facts(terminology, entries, dictionary),
                words=NameWords.of(dictionary.texts),
                encoder=encoder,
                index=ExactIndex(encoder.encode(list(dictionary.texts))),
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


def test_results_say_of_which_settings_they_are(make_linker: LinkerMaker, data: Path, tmp_path: Path) -> None:
    linker = make_linker(CONCEPTS)
    counted = linker.with_prior([1] * len(linker.concept_ids))
    others = (linker.tuned(linker.settings.replaced(stages=("exact",))), counted, counted.with_prior([2] * 6), linker)
    models = [
        run_benchmark("ncbi-disease", data, linker=one, out=tmp_path / f"{at}").model for at, one in enumerate(others)
    ]
    assert len({model["fingerprint"] for model in models}) == 1, "the folder is one"
    assert len({model["settings_sha256"] for model in models}) == len(others)


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


def test_short_forms_are_looked_for_where_there_are_contexts(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"D1": ["angina"], "D2": ["anemia"]})
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True, stages=["exact"])
    looking = linker.preparing(Preparation(finder="schwartz-hearst"))
    (tmp_path / "mine.csv").write_text("mention,concept_id,text\nAN,D1,She has angina (AN).\nanemia,D2,\n")
    for one, context, n_right in ((linker, None, 1), (looking, "text", 2)):
        task = own_task(context=context)
        found = run_benchmark(task, tmp_path / "mine.csv", linker=one, out=tmp_path / f"{n_right}")
        assert found.accuracy[1].n_right == n_right
    with pytest.raises(ConfigError, match="looks for short forms in contexts, and the queries have none"):
        run_benchmark(own_task(), tmp_path / "mine.csv", linker=looking, out=tmp_path / "s")


@pytest.fixture
def typed(tmp_path: Path) -> Linker:
    """ "cold" is a disease, a feeling and a drug in this order, "flu" a drug and, below the first, a disease."""
    concepts = {"D1": ["cold", "coryza"], "D2": ["cold"], "D3": ["cold"], "D4": ["flu"], "D5": ["flu", "grippe"]}
    types = {"D1": ["disease"], "D2": ["feeling"], "D3": ["drug"], "D4": ["drug"], "D5": ["disease"]}
    make_terminology(tmp_path / "t", concepts, semantic_types=types, relations=[("D5", "broader", "D1")])
    (tmp_path / "test_queries.txt").write_text("D2||cold\nD5||flu\nD5||grippe\nD1||coryza\n")
    return build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True, stages=["exact", "sparse"])


@pytest.mark.parametrize(
    ("asking", "ranks", "n_names", "written"),
    [
        (Asking(), [2, 2, 1, 1], 4, {"stages": "exact, sparse"}),
        (Asking(stages=("exact",)), [2, 2, 1, 1], 4, {"stages": "exact"}),
        (Asking(expected_types=("feeling", "disease")), [2, 1, 1, 1], 4, {"expected_types": "disease, feeling"}),
        (
            Asking(filters=Filters.of(semantic_types=["feeling", "disease"])),
            [2, 1, 1, 1],
            4,
            {"semantic_types": "disease, feeling"},
        ),
        (Asking(filters=Filters.of(under="D5")), [None, 1, 1, None], 2, {"under": "D5"}),
    ],
)
def test_a_linker_is_asked_as_onoma_link_asks_it(
    typed: Linker, asking: Asking, ranks: list[int | None], n_names: int, written: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run_benchmark("ncbi-disease", tmp_path, linker=typed, asking=asking, out=out)
    found = pl.read_parquet(out / "predictions.parquet").unique("query").sort("query")["query_rank"]
    assert found.to_list() == ranks
    assert result.n_dictionary == n_names
    assert result.coverage == sum(rank is not None for rank in ranks) / 4
    assert {key: result.model[key] for key in written} == written
    assert (" + filters" in str(result), " + expected types" in str(result)) == (
        asking.filters.are_set,
        bool(asking.expected_types),
    )


def test_names_that_were_left_out_before_are_told(typed: Linker, tmp_path: Path) -> None:
    """Without an `Asking` nothing else says that the linker was restricted."""
    whole = run_benchmark("ncbi-disease", tmp_path, linker=typed, out=tmp_path / "whole")
    assert "names_in_use" not in whole.model
    for restricted in (typed.only(under="D1"), typed.without([0, 1])):
        part = run_benchmark("ncbi-disease", tmp_path, linker=restricted, out=tmp_path / "part", overwrite=True)
        assert part.model["names_in_use"] == f"{restricted.n_names} of {typed.n_names}"
        assert restricted.n_names < typed.n_names


def test_what_cannot_be_asked(typed: Linker, tmp_path: Path) -> None:
    asking = Asking(stages=("exact",))
    with pytest.raises(ConfigError, match="are asked of a linker"):
        run_benchmark("ncbi-disease", tmp_path, baseline="exact", asking=asking, out=tmp_path / "out")
    with pytest.raises(ConfigError, match="no stage 'dense'"):
        run_benchmark("ncbi-disease", tmp_path, linker=typed, asking=Asking(stages=("dense",)), out=tmp_path / "out")
    with pytest.raises(ConfigError, match="leave no_concept_below out"):
        run_benchmark("ncbi-disease", tmp_path, linker=typed, asking=Asking(no_concept_below=0.5), out=tmp_path / "out")
    drugs = Asking(filters=Filters.of(semantic_types="drug"))
    with pytest.raises(InputError, match=r"codes such as D1, D2, D5.*found D3, D4.*ask for less"):
        run_benchmark("ncbi-disease", tmp_path, linker=typed, asking=drugs, out=tmp_path / "out")


@pytest.mark.parametrize(
    ("option", "words", "written_as"),
    [
        ("--stages", ["exact"], "stages"),
        ("--semantic-type", ["disease", "feeling"], "semantic_types"),
        ("--expect-type", ["disease"], "expected_types"),
        ("--under", ["D5"], "under"),
    ],
)
def test_the_command_asks_as_onoma_link_does(
    option: str, words: list[str], written_as: str, typed: Linker, tmp_path: Path
) -> None:
    run_task: list[str | Path] = ["benchmark", "run", "ncbi-disease", "--data", tmp_path, "-o", tmp_path / "out"]
    options = [part for word in words for part in (option, word)]
    run(*run_task, "--linker", typed.path, *options)
    model = json.loads((tmp_path / "out" / "results.json").read_text())["model"]
    assert model[written_as] == ", ".join(words)
    with pytest.raises(ConfigError, match="are for --linker"):
        run(*run_task, "--baseline", "exact", *options)
