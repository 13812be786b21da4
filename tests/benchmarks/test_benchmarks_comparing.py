"""Two results side by side, against plain loops."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from commands import run
from onoma.artifacts import amend_artifact, write_artifact
from onoma.benchmarks import changed_answers, compare_results, tabulate_results
from onoma.benchmarks.biosyn import Query
from onoma.benchmarks.candidates import Candidate, Candidates
from onoma.benchmarks.metrics import DISTINCT, cluster_interval, cluster_numbers, percentile_interval, resampled_means
from onoma.benchmarks.ranking import Ranking
from onoma.benchmarks.run import predictions_table
from onoma.cli import benchmark as commands
from onoma.encoders.model_card import RESULTS_FORMAT, RESULTS_KIND
from onoma.errors import (
    ArtifactExistsError,
    ConfigError,
    FormatVersionError,
    InputError,
    MismatchError,
    NotAnArtifactError,
)

MENTIONS = ["cold", "Cold", "flu", "fever", "fever", "fever", "pain", "ache|itch"]


def written(
    folder: Path,
    ranks: Sequence[int | None],
    mentions: Sequence[str] = MENTIONS,
    *,
    cutoffs: Sequence[int] = (1, 5),
    dictionary: str = "a",
    gold: Sequence[str] | None = None,
    documents: Sequence[str] | None = None,
    **about: Any,
) -> Path:
    """A folder of results in which each query has these ranks, as far as ten."""
    codes = ["D1"] * len(mentions) if gold is None else gold
    queries = [
        Query(text, (f"{row}",), frozenset({code}), None if documents is None else documents[row])
        for row, (text, code) in enumerate(zip(mentions, codes, strict=True))
    ]
    found: Candidates = {
        f"{row}": [Candidate(("D1",) if place == rank else ("D2",), "x", 1.0) for place in range(1, 11)]
        for row, rank in enumerate(ranks)
    }
    with write_artifact(folder, RESULTS_KIND, format_version=RESULTS_FORMAT) as aside:
        ranking = Ranking(found=found, exact=found, known_ids={"D1"}, n_dictionary=1, model={})
        predictions_table(queries, ranking).write_parquet(aside / "predictions.parquet")
        told = {
            "task": "t",
            "split": "dev",
            **{f"acc@{k}": 0.0 for k in cutoffs},
            "model": {"name": "m", "kind": "encoder"},
            "protocol": "biosyn: rules",
            "clusters": DISTINCT,
            "n_dictionary": 7,
        }
        told |= about
        told.setdefault("dictionary_sha256", f"{dictionary}, {told['n_dictionary']} names")
        told["data"] = {"dev_queries.txt": {"sha256": str(folder)}, "names.txt": {"sha256": dictionary}}
        (aside / "results.json").write_text(json.dumps(told))
    return folder


FIRST = [1, 1, None, 3, 3, 3, 1, 7]
SECOND = [1, 1, 1, 1, 1, 1, 4, None]


def test_differences_by_hand(tmp_path: Path) -> None:
    found = compare_results(written(tmp_path / "a", FIRST), written(tmp_path / "b", SECOND))
    assert (found.task, found.split, found.n_queries, found.n_distinct_mentions) == ("t", "dev", 8, 5)
    assert (found.first, found.second) == ("m (a)", "m (b)")
    one, five = found.differences[1], found.differences[5]
    assert (one.value, one.n_won, one.n_lost) == (3 / 8, 4, 1)
    assert (five.value, five.n_won, five.n_lost) == (1 / 8, 1, 0)
    # cold, flu, fever, pain, ache|itch: of each the mean gain of its queries.
    assert (one.value_once, five.value_once) == pytest.approx(((0 + 1 + 1 - 1 + 0) / 5, (0 + 1 + 0 + 0 + 0) / 5))
    assert one.low <= one.value <= one.high
    # Of the distinct mentions flu gains 1, fever 3, pain loses 1: eight ways to exchange, six give 3 or more.
    ways = [abs(sum(signs)) for signs in itertools.product((1, -1), (3, -3), (1, -1))]
    assert one.p_value == pytest.approx(sum(way >= 3 for way in ways) / 8, abs=0.02)
    assert five.p_value == 1
    again = compare_results(tmp_path / "b", tmp_path / "a")
    assert again.differences[1].value == -one.value
    assert (again.differences[1].n_won, again.differences[1].n_lost) == (1, 4)
    assert "acc@1  +37.5 (" in str(found)
    assert "4 won, 1 lost; each mention once +20.0" in str(found)


def test_against_loops(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    mentions = [f"m{number}" for number in range(40) for _ in range(int(random.integers(1, 6)))]
    by_mention = {
        text: (1 if random.random() < 0.6 else None, 1 if random.random() < 0.8 else None) for text in mentions
    }
    first, second = ([by_mention[text][side] for text in mentions] for side in (0, 1))
    found = compare_results(
        written(tmp_path / "a", first, mentions), written(tmp_path / "b", second, mentions)
    ).differences[1]
    gains: dict[str, list[int]] = {text: [] for text in mentions}
    for text, one, other in zip(mentions, first, second, strict=True):
        gains[text].append((other == 1) - (one == 1))
    texts = list(gains)
    means, n_as_large, total = [], 0, sum(map(sum, gains.values()))
    for _ in range(4000):
        drawn = [gain for row in random.integers(0, len(texts), len(texts)) for gain in gains[texts[row]]]
        means.append(sum(drawn) / len(drawn))
        n_as_large += abs(sum(int(random.choice([-1, 1])) * sum(gains[text]) for text in texts)) >= abs(total)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.015)
    assert found.p_value == pytest.approx(n_as_large / 4000, abs=0.03)


def test_the_same_is_no_different(tmp_path: Path) -> None:
    same = compare_results(written(tmp_path / "a", FIRST), written(tmp_path / "b", FIRST)).differences[1]
    assert (same.value, same.low, same.high, same.p_value) == (0, 0, 0, 1)


def test_this_folder_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = written(tmp_path / "b", FIRST)
    monkeypatch.chdir(written(tmp_path / "a", FIRST))
    assert compare_results(".", other).first.endswith("(a)")


def test_only_where_both_were_measured(tmp_path: Path) -> None:
    first = written(tmp_path / "a", FIRST, cutoffs=(1, 5, 10))
    second = written(tmp_path / "b", FIRST, cutoffs=(5,))
    assert list(compare_results(first, second).differences) == list(compare_results(second, first).differences) == [5]
    with pytest.raises(MismatchError, match="no k in common"):
        compare_results(second, written(tmp_path / "c", FIRST, cutoffs=(1,)))


def test_linkers_have_dictionaries_of_their_own(tmp_path: Path) -> None:
    linker = {"name": "m", "kind": "linker"}
    first = written(tmp_path / "a", FIRST, model=linker, n_dictionary=7)
    found = compare_results(first, written(tmp_path / "b", SECOND, model=linker, n_dictionary=8))
    assert (found.n_queries, found.n_names) == (8, (7, 8))
    assert "of linkers over different names (7 and 8), part of the difference" in str(found)
    same = compare_results(first, written(tmp_path / "c", SECOND, model=linker, n_dictionary=7))
    assert same.n_names is None
    assert "different names" not in str(same)
    told = [
        written(tmp_path / name, FIRST, model=linker, n_dictionary=7, dictionary_sha256=sha256)
        for name, sha256 in (("d", "1"), ("e", "2"), ("f", "1"))
    ]
    assert compare_results(told[0], told[1]).n_names == (7, 7)
    assert "over names, or an order of them, that differ (7 and 7)" in str(compare_results(told[0], told[1]))
    assert compare_results(told[0], told[2]).n_names is None


def test_queries_in_another_order_are_the_same(tmp_path: Path) -> None:
    order = [7, 4, 0, 6, 3, 5, 1, 2]
    assert FIRST[3:6] == [3, 3, 3]  # equal queries have equal answers
    first = written(tmp_path / "a", FIRST)
    expected = compare_results(first, written(tmp_path / "b", SECOND))
    mixed = written(tmp_path / "mixed" / "b", [SECOND[at] for at in order], [MENTIONS[at] for at in order])
    assert compare_results(first, mixed) == expected


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    first = written(tmp_path / "a", FIRST)
    with pytest.raises(MismatchError, match="of the split dev"):
        compare_results(first, written(tmp_path / "b", FIRST, split="test"))
    with pytest.raises(MismatchError, match=r"e is of a linker, .*a of what ranks names: their figures say nothing"):
        compare_results(first, written(tmp_path / "e", FIRST, model={"name": "m", "kind": "linker"}))
    baseline = written(tmp_path / "b2", FIRST, model={"name": "m", "kind": "baseline"}, protocol="as before; prepared")
    assert compare_results(first, baseline).differences[1].value == 0
    with pytest.raises(MismatchError, match=r"different queries, .*: 'ache\|itch' is not among those of .*c\. Measure"):
        compare_results(first, written(tmp_path / "c", FIRST, [*MENTIONS[:-1], "other"]))
    with pytest.raises(MismatchError, match=r"'ache\|itch' is not among those of .*k with the codes D1\. Measure"):
        compare_results(first, written(tmp_path / "k", FIRST, gold=["D1"] * 7 + ["D3"]))
    with pytest.raises(MismatchError, match=r"a is of 8 queries, .*l of 7; they"):
        compare_results(first, written(tmp_path / "l", FIRST[:-1], MENTIONS[:-1]))
    with pytest.raises(MismatchError, match=r"7 names, .* 7 others \(different files: names.txt\)"):
        compare_results(first, written(tmp_path / "f", FIRST, dictionary="b"))
    with pytest.raises(MismatchError, match=r"7 names, .* 8 others: the difference would be that of the dictionaries"):
        compare_results(first, written(tmp_path / "g", FIRST, n_dictionary=8))
    told = written(tmp_path / "h", FIRST, dictionary_sha256="1")
    with pytest.raises(MismatchError, match=r"7 names, .* 7 others: the difference"):  # whatever their files are called
        compare_results(told, written(tmp_path / "i", FIRST, dictionary_sha256="2"))
    same = written(tmp_path / "j", FIRST, dictionary="b", dictionary_sha256="1")  # in another file, packed otherwise
    assert compare_results(told, same).differences[1].value == 0
    with pytest.raises(InputError, match="nothing here"):
        compare_results(first, tmp_path / "none")
    wrong: Any = None
    with pytest.raises(InputError, match="by their folders; found None"):
        compare_results(first, wrong)
    shutil.copytree(first, tmp_path / "d")
    (tmp_path / "d" / "onoma.json").unlink()
    with pytest.raises(NotAnArtifactError):
        compare_results(first, tmp_path / "d")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = written(tmp_path / "a", FIRST), written(tmp_path / "b", SECOND)
    commands.compare(*folders, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(json.dumps(compare_results(*folders).as_json()))
    assert list(told["differences"]) == ["acc@1", "acc@5"]


def test_stages_are_told_where_they_are_what_differs(tmp_path: Path) -> None:
    folders = [
        written(tmp_path / name, FIRST, model={"name": "m", "kind": "linker", "stages": stages}, n_dictionary=7)
        for name, stages in (("a", "exact, dense"), ("b", "exact, dense, rerank"), ("c", "exact, dense"))
    ]
    found = compare_results(folders[0], folders[1])
    assert (found.first, found.second) == ("m (a; stages exact, dense)", "m (b; stages exact, dense, rerank)")
    assert compare_results(folders[0], folders[2]).first == "m (a)"


def test_which_answers_changed(tmp_path: Path) -> None:
    first, second = written(tmp_path / "a", FIRST), written(tmp_path / "b", SECOND[::-1], MENTIONS[::-1])
    changed = changed_answers(first, second)
    rights = [(one == 1, other == 1) for one, other in zip(FIRST, SECOND, strict=True)]
    assert changed["query"].to_list() == [row for row, (one, other) in enumerate(rights) if one != other]
    assert changed["won"].to_list() == [other for one, other in rights if one != other]
    assert changed["mention"].to_list() == [MENTIONS[row] for row in changed["query"]]
    assert changed["first_code"].to_list() == ["D2" if won else "D1" for won in changed["won"]]
    assert changed["second_code"].to_list() == ["D1" if won else "D2" for won in changed["won"]]
    assert changed_answers(first, second, k=5)["query"].to_list() == [2]
    with pytest.raises(MismatchError, match="not both measured at k = 3, but at 1, 5"):
        changed_answers(first, second, k=3)
    said = run("benchmark", "compare", first, second, "--changed", tmp_path / "changed.csv")
    assert "acc@1" in said
    assert pl.read_csv(tmp_path / "changed.csv")["mention"].to_list() == changed["mention"].to_list()
    with pytest.raises(ArtifactExistsError):
        run("benchmark", "compare", first, second, "--changed", tmp_path / "changed.csv")
    run("benchmark", "compare", second, first, "--changed", tmp_path / "changed.csv", "--force")
    turned = pl.read_csv(tmp_path / "changed.csv").select("mention", "won")
    assert sorted(turned.rows()) == sorted((mention, not won) for mention, won in changed["mention", "won"].rows())
    with pytest.raises(ConfigError, match=r"--changed writes CSV, .* ends in \.csv; found .*changed\.parquet"):
        run("benchmark", "compare", first, second, "--changed", tmp_path / "changed.parquet")


def test_parts_of_composite_mentions_stand_beside_one_another(tmp_path: Path) -> None:
    query = Query("flu|gout", ("flu", "gout"), frozenset({"D1", "D3"}))
    answers = {"a": ("D1", "D2"), "b": ("D1", "D3")}
    for name, codes in answers.items():
        folder = written(tmp_path / name, [1], ["x"])
        found: Candidates = {
            part: [Candidate((code,), part, 1.0)] for part, code in zip(query.parts, codes, strict=True)
        }
        ranking = Ranking(found=found, exact=found, known_ids={"D1"}, n_dictionary=1, model={})
        with amend_artifact(folder, RESULTS_KIND, format_version=RESULTS_FORMAT) as aside:
            predictions_table([query], ranking).write_parquet(aside / "predictions.parquet")
    changed = changed_answers(tmp_path / "a", tmp_path / "b")
    rows = changed.select("part", "first_code", "second_code", "gold", "won").rows()
    assert rows == [("flu", "D1", "D1", "D1|D3", True), ("gout", "D2", "D3", "D1|D3", True)]


def test_differences_are_over_clusters_where_results_have_them(tmp_path: Path) -> None:
    documents = ["a", "a", "a", "b", "b", "c", "c", "d"]
    given: dict[str, Any] = {"documents": documents, "clusters": "values of document"}
    first, second = written(tmp_path / "a", FIRST, **given), written(tmp_path / "b", SECOND, **given)
    found, plain = (
        compare_results(first, second),
        compare_results(written(tmp_path / "c", FIRST), written(tmp_path / "d", SECOND)),
    )
    gained = np.array([(other == 1) - (one == 1) for one, other in zip(FIRST, SECOND, strict=True)], np.float64)
    numbers = cluster_numbers(documents)
    means = resampled_means(gained, numbers, seed=0, n_resamples=10_000)
    assert (found.differences[1].low, found.differences[1].high) == percentile_interval(means)
    assert found.differences[1].p_value != plain.differences[1].p_value
    assert found.differences[1].value_once == plain.differences[1].value_once
    assert found.n_distinct_mentions == 5
    table = tabulate_results({"a": [first], "b": [second]}, against="a")
    assert table.rows[1].cells[1].difference == found.differences[1]
    right = [rank == 1 for rank in SECOND]
    cell = table.rows[1].cells[1]
    assert (cell.low, cell.high) == cluster_interval(right, documents, seed=0)
    assert "intervals over values of document" in table.written("markdown")


def test_other_clusters_are_other_queries(tmp_path: Path) -> None:
    named: dict[str, Any] = {"clusters": "values of document"}
    first = written(tmp_path / "a", FIRST, documents=["a"] * 4 + ["b"] * 4, **named)
    second = written(tmp_path / "b", SECOND, documents=["a"] * 4 + ["b"] * 3 + ["c"], **named)
    with pytest.raises(MismatchError, match=r"'ache\|itch' is not among those of .* with the codes D1 in b"):
        compare_results(first, second)


def test_results_of_another_format_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", [1], ["x"])
    with write_artifact(tmp_path / "b", RESULTS_KIND) as aside:
        (aside / "results.json").write_text("{}")
    with pytest.raises(FormatVersionError, match="format 1, written by an Onoma before this one"):
        compare_results(folder, tmp_path / "b")
