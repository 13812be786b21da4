"""Tables of several systems, against numpy, another library and figures worked out by hand."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_benchmarks_comparing import FIRST, MENTIONS, SECOND, written

from commands import invoke, run
from onoma.benchmarks import accuracy_at, compare_results, tabulate_results
from onoma.benchmarks.table import holm
from onoma.errors import ArtifactExistsError, ConfigError, InputError, MismatchError

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
    assert (table.n_queries, table.n_distinct_mentions, table.against) == (8, 5, "plain")
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
    same = theirs.cells[1].difference  # the same answers in another order
    assert (same.value, same.low, same.high, same.n_won, same.n_lost, same.p_value) == (0, 0, 0, 0, 0, 1)
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
    assert set(markdown[1]) == {"|", "-"}
    assert len({len(line) for line in markdown[:5]}) == 1
    assert "8 queries (5 distinct mentions)" in markdown[-1]
    latex = table.written("latex")
    assert r"ours \& more" in latex
    assert r"$\pm$" in latex
    escaped = tabulate_results({r"a~b^c\d_e": results["plain"]}).written("latex")
    assert r"a\textasciitilde{}b\textasciicircum{}c\textbackslash{}d\_e & " in escaped
    assert len({line.count(" & ") for line in latex.splitlines() if line.endswith(r"\\")}) == 1
    rows = list(csv.DictReader(io.StringIO(table.written("csv"))))
    assert [(row["system"], row["k"]) for row in rows[:3]] == [("plain", "1"), ("plain", "5"), ("ours & more", "1")]
    cell = table.rows[1].cells[1]
    of_difference = cell.difference
    assert of_difference is not None
    expected = [cell.value, cell.low, cell.high, cell.sd, of_difference.value, of_difference.low, of_difference.high]
    expected += [of_difference.p_value, cell.p_holm]
    assert [float(value) for value in [*rows[2].values()][3:]] == expected
    assert [*rows[2]][3:] == [
        *("acc", "low", "high", "sd", "difference", "difference_low", "difference_high", "p", "p_holm")
    ]
    assert json.loads(table.written("json"))["rows"][1]["acc@1"]["value"] == table.rows[1].cells[1].value
    assert "$+$" in latex
    assert re.search(r"\d--\d", latex)
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
    with pytest.raises(ArtifactExistsError):
        run("benchmark", "table", *named, "-o", file)
    run("benchmark", "table", *named, "-o", file, "--force")
    assert file.read_text() == tabulate_results(results).written("markdown")
    assert invoke("benchmark", "table", *named, "--format", "html").exit_code == 2
    with pytest.raises(ConfigError, match="NAME=RESULTS"):
        run("benchmark", "table", results["plain"][0])


def test_intervals_against_plain_resampling(results: dict[str, list[Path]]) -> None:
    cell = tabulate_results(results).rows[1].cells[1]
    ours = np.mean([[rank == 1 for rank in ranks] for ranks in (SECOND, THIRD)], axis=0)
    clusters = [mention.lower() for mention in MENTIONS]
    groups = [ours[[text == one for text in clusters]] for one in dict.fromkeys(clusters)]
    random = np.random.default_rng(1)
    means = []
    for _ in range(4000):
        drawn = [groups[row] for row in random.integers(0, len(groups), len(groups))]
        means.append(np.concatenate(drawn).mean())
    low, high = np.quantile(means, [0.025, 0.975])
    assert cell.low == pytest.approx(low, abs=0.03)
    assert cell.high == pytest.approx(high, abs=0.03)
    assert cell.low < cell.value < cell.high
    (plain,) = tabulate_results({"plain": results["plain"]}).rows
    of_run = accuracy_at(FIRST, 1, clusters=clusters)
    assert (plain.cells[1].low, plain.cells[1].high) == (of_run.low, of_run.high), "as results.json has it"


def test_the_least_p_is_a_bound_corrected_too(tmp_path: Path) -> None:
    many = [f"m{row}" for row in range(40)]
    systems = {"a": [written(tmp_path / "a", [None] * 40, many)], "b": [written(tmp_path / "b", [1] * 40, many)]}
    systems["c"] = [written(tmp_path / "c", [1, *[None] * 39], many)]
    table = tabulate_results(systems, against="a")
    b, c = table.rows[1].cells[1], table.rows[2].cells[1]
    assert (b.p_holm_is_bound, c.p_holm_is_bound) == (True, False)
    line = table.written("markdown").splitlines()[3]
    assert "| ≤ 0.0001 | ≤ 0.0002 |" in line
    assert "100.0 | 91.2-100.0" in line, "Wilson's, as everywhere"
    assert table.written("latex").count(r"$\leq$") == 4


def test_what_is_said_of_names_and_of_one_system(results: dict[str, list[Path]], tmp_path: Path) -> None:
    alone = tabulate_results({"a|b_c": results["plain"]}, against="a|b_c")
    assert alone.written("markdown").startswith("| system | acc@1")
    assert r"| a\|b_c |" in alone.written("markdown")
    assert "differences" not in alone.written("markdown")
    assert r"a|b\_c & " in alone.written("latex")
    spelt = tabulate_results({"1-2 +3": results["plain"]}).written("latex")
    assert "1-2 +3 & " in spelt, "a name is no figure"
    linkers = {
        name: [written(tmp_path / name, FIRST, n_dictionary=n, model={"name": "m", "kind": "linker"})]
        for name, n in (("x", 7), ("y", 9))
    }
    assert "the linkers have other names" in tabulate_results(linkers, against="x").written("markdown")
    with pytest.raises(InputError, match="the same results twice"):
        tabulate_results({"a": [results["plain"][0], tmp_path / "." / results["plain"][0].name]})
