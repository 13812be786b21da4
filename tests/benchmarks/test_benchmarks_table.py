"""Tables of several systems, against numpy, another library and figures worked out by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_benchmarks_comparing import FIRST, MENTIONS, SECOND, written

from commands import run
from onoma.benchmarks import compare_results, tabulate_results
from onoma.benchmarks.table import holm
from onoma.errors import ConfigError, InputError, MismatchError

THIRD = [1, None, None, 1, 1, None, 1, 1]


@pytest.fixture
def results(tmp_path: Path) -> dict[str, list[Path]]:
    return {
        "plain": [written(tmp_path / "a", FIRST)],
        "ours & more": [written(tmp_path / "b", SECOND), written(tmp_path / "c", THIRD)],
        "theirs": [written(tmp_path / "d", FIRST[::-1], MENTIONS[::-1])],
    }


def test_figures(results: dict[str, list[Path]]) -> None:
    table = tabulate_results(results, against="plain")
    assert (table.n_queries, table.n_distinct, table.against) == (8, 5, "plain")
    plain, ours, theirs = table.rows
    assert (plain.n_runs, ours.n_runs) == (1, 2)
    by_run = [sum(rank == 1 for rank in ranks) / 8 for ranks in (SECOND, THIRD)]
    assert ours.cells[1].value == pytest.approx(np.mean(by_run))
    assert ours.cells[1].sd == pytest.approx(np.std(by_run, ddof=1))
    assert (plain.cells[1].sd, plain.cells[1].difference, plain.cells[1].p_holm) == (None, None, None)
    alone = compare_results(results["plain"][0], results["ours & more"][0])
    one = tabulate_results({"a": results["plain"], "b": results["ours & more"][:1]}, against="a").rows[1].cells[1]
    assert one.difference == alone.differences[1]
    assert one.p_holm == alone.differences[1].p_value  # there is one
    assert theirs.cells[1].difference is not None
    assert (theirs.cells[1].value, theirs.cells[1].difference.value) == (plain.cells[1].value, 0)  # in another order
    raw = [row.cells[5].difference.p_value for row in (ours, theirs) if row.cells[5].difference]
    assert [ours.cells[5].p_holm, theirs.cells[5].p_holm] == holm(raw)


def test_the_mean_of_runs_is_compared_query_by_query(results: dict[str, list[Path]]) -> None:
    table = tabulate_results(results, against="plain")
    found = table.rows[1].cells[1].difference
    assert found is not None
    ours = np.mean([[rank == 1 for rank in ranks] for ranks in (SECOND, THIRD)], axis=0)
    plain = np.array([rank == 1 for rank in FIRST])
    assert found.value == pytest.approx((ours - plain).mean())
    assert (found.n_won, found.n_lost) == (int((ours > plain).sum()), int((ours < plain).sum()))


@settings(deadline=None)  # the first one imports that library
@given(st.lists(st.floats(0.0001, 1), min_size=1, max_size=12))
def test_holm_against_another_library(p_values: list[float]) -> None:
    stats = pytest.importorskip("scipy.stats")
    corrected = holm(p_values)
    n = len(p_values)
    for threshold in (0.01, 0.05, 0.2):  # rejected one by one, smallest first, until one is not small enough
        left = sorted(range(n), key=lambda row: p_values[row])
        rejected = set()
        for place, row in enumerate(left):
            if p_values[row] * (n - place) > threshold:
                break
            rejected.add(row)
        assert {row for row in range(n) if corrected[row] <= threshold} == rejected
    # between no correction, and Bonferroni's
    assert all(p <= one <= min(1, n * p) + 1e-12 for p, one in zip(p_values, corrected, strict=True))
    of_benjamini = stats.false_discovery_control(p_values)
    assert all(one >= other - 1e-12 for one, other in zip(corrected, of_benjamini, strict=True))


def test_formats(results: dict[str, list[Path]]) -> None:
    table = tabulate_results(results, against="plain")
    markdown = table.written("markdown").splitlines()
    assert markdown[0].startswith("| system      | runs | acc@1 ")
    assert {line.count("|") for line in markdown[:5]} == {13}
    assert "8 queries (5 distinct mentions)" in markdown[-1]
    latex = table.written("latex")
    assert r"ours \& more" in latex
    assert r"$\pm$" in latex
    assert len({line.count(" & ") for line in latex.splitlines() if line.endswith(r"\\")}) == 1
    rows = list(csv.DictReader(io.StringIO(table.written("csv"))))
    assert [(row["system"], row["k"]) for row in rows[:3]] == [("plain", "1"), ("plain", "5"), ("ours & more", "1")]
    assert float(rows[2]["acc"]) == table.rows[1].cells[1].value
    assert json.loads(table.written("json"))["rows"][1]["acc@1"]["value"] == table.rows[1].cells[1].value
    with pytest.raises(ConfigError, match="markdown"):
        table.written("word")
    plain = tabulate_results({"plain": results["plain"]}).written("markdown")
    assert "p (Holm)" not in plain
    assert "runs" not in plain


def test_what_cannot_be_tabulated(results: dict[str, list[Path]], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results"):
        tabulate_results({})
    with pytest.raises(InputError, match="without results"):
        tabulate_results({"a": []})
    with pytest.raises(InputError, match="no such system"):
        tabulate_results(results, against="planes")
    other = written(tmp_path / "other", FIRST, dictionary="b")
    with pytest.raises(MismatchError, match=r"different files: names\.txt"):
        tabulate_results({**results, "other": [other]})
    with pytest.raises(MismatchError, match="no k in common"):
        tabulate_results({**results, "other": [written(tmp_path / "ten", FIRST, cutoffs=(10,))]})


def test_on_the_command_line(results: dict[str, list[Path]], tmp_path: Path) -> None:
    named = [f"{name}={folder}" for name, folders in results.items() for folder in folders]
    said = run("benchmark", "table", *named, "--against", "plain")
    assert said.startswith("| system")
    assert len(said.splitlines()) == 7
    file = tmp_path / "table.tex"
    assert "3 systems" in run("benchmark", "table", *named, "--format", "latex", "-o", file)
    assert file.read_text() == tabulate_results(results).written("latex")
    with pytest.raises(ConfigError, match="NAME=RESULTS"):
        run("benchmark", "table", results["plain"][0])
