"""Parts of the queries, by whether they are written as names are."""

from pathlib import Path

from onoma.benchmarks import run_benchmark
from onoma.benchmarks.biosyn import Query
from onoma.benchmarks.candidates import Candidate, Candidates
from onoma.benchmarks.parts import WRITTEN_AS, by_names


def query(text: str, *gold: str, parts: tuple[str, ...] = ()) -> Query:
    return Query(text=text, parts=parts or (text,), gold=frozenset(gold))


EXACT: Candidates = {
    "cold": [Candidate(("D1",), "Cold", 1.0), Candidate(("D2",), "cold", 1.0)],
    "flu": [Candidate(("D3", "3"), "flu", 1.0), Candidate(("3", "M3"), "Flu", 1.0)],
    "chill": [Candidate(("D1",), "chill", 1.0)],
    "ague": [],
}


def test_each_query_is_in_one_part() -> None:
    queries = [
        query("cold", "D2"),
        query("flu", "3"),
        query("chill", "D9"),
        query("ague", "D1"),
        query("flu and ague", "3", parts=("flu", "ague")),
        query("flu and cold", "3", parts=("flu", "cold")),
        query("flu and chill", "3", parts=("flu", "chill")),
    ]
    parts = by_names(queries, [2, 1, None, 1, 2, None, 1], EXACT, cutoffs=(1, 5), seed=0)
    assert list(parts) == list(WRITTEN_AS)
    right = {what: {k: (one.n_right, one.n_queries) for k, one in part.items()} for what, part in parts.items()}
    assert right == {
        "one": {1: (2, 3), 5: (2, 3)},
        "several": {1: (0, 2), 5: (1, 2)},
        "none": {1: (1, 2), 5: (2, 2)},
    }


def test_parts_without_queries_are_left_out() -> None:
    assert list(by_names([query("ague", "D1")], [1], EXACT, cutoffs=(1,), seed=0)) == ["none"]


def test_intervals_are_of_distinct_mentions() -> None:
    queries = [query("chill", "D1")] * 50 + [query("flu", "3")] * 50
    part = by_names(queries, [1] * 50 + [None] * 50, EXACT, cutoffs=(1,), seed=0)["one"]
    assert (part[1].low, part[1].high) == (0, 1)


def test_a_run_reports_them(tmp_path: Path) -> None:
    (tmp_path / "test_dictionary.txt").write_text("D1||Cold\nD2||cold\nD3||Flu\n")
    (tmp_path / "test_queries.txt").write_text("D1||cold\nD2||COLD\nD3||FLU\nD3||flus\n")
    result = run_benchmark("ncbi-disease", tmp_path, baseline="tfidf", out=tmp_path / "out")
    written = result.as_json()["written_as"]
    assert {what: (part["n_queries"], part["acc@1"], part["acc@5"]) for what, part in written.items()} == {
        "one": (1, 1, 1),
        "several": (2, 0.5, 1),
        "none": (1, 1, 1),
    }
    low, high = written["none"]["confidence_interval_95"]["acc@1"]
    assert (low, high) == (result.by_names["none"][1].low, result.by_names["none"][1].high)
    assert "written as a name of several concepts (2)  50.0" in str(result)
