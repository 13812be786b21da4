"""One's own annotated mentions as a benchmark, against figures worked out by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from test_benchmarks_run import LetterEncoder

from commands import run
from onoma.benchmarks import BenchmarkResult, changed_answers, compare_results, own_task, run_benchmark
from onoma.benchmarks.metrics import cluster_interval
from onoma.errors import ConfigError, InputError, MismatchError
from onoma.linking import Asking, Filters, build_linker
from onoma.linking.baselines import get_baseline
from onoma.pairs import MentionFormat
from onoma.terminology import import_terminology
from tiny import make_terminology

CONCEPTS = {"D1": ["cold", "coryza"], "D2": ["flu"], "D3|D4": ["gout"], "D5": ["CD4+ cell"], "D6": ["cold"]}
ROWS = [
    ("Cold", "D1"),
    ("flu", "D9|D2"),
    ("gout", "D4"),
    ("flu", "D3"),
    ("CD4+ cell", "D5"),
    ("insurance", "NIL"),
    ("colt", "D8"),
]
"""Right, right, right, wrong, right, of no concept, of a concept that is not there."""


@pytest.fixture
def terminology(tmp_path: Path) -> Path:
    make_terminology(tmp_path / "t", CONCEPTS)
    return tmp_path / "t"


@pytest.fixture
def linker(tmp_path: Path, terminology: Path) -> Path:
    build_linker(terminology, None, tmp_path / "linker", sparse=True)
    return tmp_path / "linker"


@pytest.fixture(params=["csv", "txt"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"mine.{request.param}"
    if request.param == "csv":
        pl.DataFrame(ROWS, schema=["mention", "concept_id"], orient="row").write_csv(path)
    else:
        path.write_text("".join(f"{codes}||{mention}\n" for mention, codes in ROWS))
    return path


def measure(file: Path, out: Path, *, names: Any = None, **system: Any) -> BenchmarkResult:
    return run_benchmark(own_task(names), file, out=out, **system)


def test_a_linker_is_measured_on_mentions_of_concepts(linker: Path, file: Path, tmp_path: Path) -> None:
    result = measure(file, tmp_path / "out", linker=linker)
    assert (result.n_queries, result.n_nil, result.accuracy[1].n_right) == (6, 1, 4)
    assert result.coverage == 5 / 6
    assert result.unknown_gold == {"D8": 1}
    assert [doubt for doubt in result.doubts if "D8" in doubt]
    assert not any("published" in doubt or "NIL" in doubt for doubt in result.doubts)
    assert len(repr(result)) < 1500
    assert str(result).startswith("own, mentions: 6 queries (5 distinct) and 1 of no concept, 5 names")
    predictions = pl.read_parquet(tmp_path / "out" / "predictions.parquet")
    rows = [(row, mention, code == "NIL") for row, (mention, code) in enumerate(ROWS)]
    assert list(predictions.select("query", "mention", "no_concept").iter_rows()) == rows
    assert predictions.filter(pl.col("no_concept"))["query_rank"].to_list() == [None]
    assert predictions["confidence"].null_count() == 7  # not calibrated
    assert json.loads((tmp_path / "out" / "results.json").read_text())["n_nil"] == 1
    assert set(result.data) == {file.name}


def test_encoders_and_baselines_rank_the_names_that_are_given(terminology: Path, file: Path, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("D1|D6||cold\nD1||coryza\nD2||flu\nD3|D4||gout\nD5||CD4+ cell\n")
    by_file = measure(file, tmp_path / "a", names=tmp_path / "names.txt", baseline="exact")
    by_terminology = measure(file, tmp_path / "b", names=terminology, baseline="exact")
    assert by_file.accuracy == by_terminology.accuracy
    assert by_terminology.accuracy[1].n_right == 4
    assert by_terminology.n_dictionary == 5  # "cold" is a name of two concepts
    assert set(by_file.data) == {file.name, "names.txt"}
    assert compare_results(tmp_path / "a", tmp_path / "b").differences[1].value == 0  # D3|D4 is written as it is
    labelled = tmp_path / "labelled.csv"
    labelled.write_text("mention,concept_id\ngout,D3|D4\nflu,D2\ngout,D4\n")
    for out, names in (("e", tmp_path / "names.txt"), ("f", terminology)):
        assert measure(labelled, tmp_path / out, names=names, baseline="exact").accuracy[1].n_right == 3
    assert compare_results(tmp_path / "e", tmp_path / "f").n_queries == 3  # the same, though D3|D4 is one code in one
    assert changed_answers(tmp_path / "e", tmp_path / "f").is_empty()
    assert measure(file, tmp_path / "c", names=terminology, encoder=LetterEncoder()).accuracy[1].n_right == 4
    found = compare_results(tmp_path / "b", tmp_path / "c")
    assert found.differences[1].value == 0
    with pytest.raises(InputError, match=r"field names: .*none are given.*--names"):
        measure(file, tmp_path / "d", encoder=LetterEncoder())
    assert not (tmp_path / "d").exists()


def test_a_concept_may_be_called_nil(tmp_path: Path, file: Path) -> None:
    make_terminology(tmp_path / "u", {**CONCEPTS, "NIL": ["insurance"]})
    build_linker(tmp_path / "u", None, tmp_path / "l", sparse=True)
    result = measure(file, tmp_path / "out", linker=tmp_path / "l")
    assert (result.n_queries, result.n_nil, result.accuracy[1].n_right) == (7, 0, 5)


def test_a_composite_mention_is_divided_where_its_ids_are(linker: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    lines = [
        "D1+D2||cold+flu",
        "",
        "D5||CD4+ cell",
        "D2||flu|gout",
        "D5|D9||CD4+ cell",
        "D9||HER2+",
        "D5|D2||CD4+ cell|flu",
    ]
    file.write_text("\n".join([*lines, "", ""]))
    result = measure(file, tmp_path / "out", linker=linker)
    assert result.accuracy[1].n_right == 4
    parts = pl.read_parquet(tmp_path / "out" / "predictions.parquet")["part"].to_list()
    assert parts == ["cold", "flu", "CD4+ cell", "flu", "gout", "CD4+ cell", "HER2+", "CD4+ cell", "flu"]
    file.write_text("D1||cold\nD1|D2||cold|\n")
    with pytest.raises(InputError, match=r"line 2.*an empty part"):
        measure(file, tmp_path / "other", linker=linker)


def test_mentions_of_no_concept_count_in_abstention(tmp_path: Path, terminology: Path) -> None:
    from onoma.linking import Linker, tune_linker

    names = {f"D{n}": [f"name {n} of it", f"word{n}"] for n in range(80)}
    make_terminology(tmp_path / "many", names)
    build_linker(tmp_path / "many", None, tmp_path / "l", sparse=True)
    rows = [(f"name {n} of him", f"D{n}" if n % 4 else "NIL") for n in range(80)]
    table = pl.DataFrame(rows, schema=["mention", "concept_id"], orient="row")
    tune_linker(tmp_path / "l", table)
    table.write_csv(tmp_path / "mine.csv")
    result = measure(tmp_path / "mine.csv", tmp_path / "out", linker=tmp_path / "l")
    assert (result.n_queries, result.n_nil) == (60, 20)
    assert result.abstention is not None
    assert result.abstention.n_mentions == 80
    predictions = pl.read_parquet(tmp_path / "out" / "predictions.parquet")
    assert predictions["query"].to_list() == list(range(80))
    assert predictions["no_concept"].to_list() == [not n % 4 for n in range(80)]
    # What the figures of abstention say can be told from the table.
    is_right = predictions["part_rank"].eq(1).fill_null(value=False)
    assert is_right.mean() == result.abstention.accuracy
    told = Linker.open(tmp_path / "l").link(predictions["mention"].to_list(), top_k=1, no_concept_below=0)
    assert predictions["confidence"].to_list() == pytest.approx([one.confidence for (one,) in told])
    assert any("tuned on these very mentions" in doubt for doubt in result.doubts)


def test_what_cannot_be_measured(linker: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="in one file"):
        measure(tmp_path, tmp_path / "out", linker=linker)
    (tmp_path / "1.concept").write_text("1||0||4||SpecificDisease||cold||D1\n")
    for wrong in (tmp_path, tmp_path / "1.concept"):
        with pytest.raises(InputError, match=r"\.concept files.*docs/benchmarks\.md"):
            measure(wrong, tmp_path / "out", linker=linker)
    (tmp_path / "x.csv").write_text("text,code\ncold,D1\n")
    with pytest.raises(InputError, match="mention"):
        measure(tmp_path / "x.csv", tmp_path / "out", linker=linker)
    (tmp_path / "nil.csv").write_text("mention,concept_id\ncold,NIL\n")
    with pytest.raises(InputError, match="all mentions are of no concept"):
        measure(tmp_path / "nil.csv", tmp_path / "out", linker=linker)


def test_on_the_command_line(linker: Path, terminology: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("mention,concept_id\ncold,D1\nflu,D2\ncar,NIL\n")
    common: list[str | Path] = ["benchmark", "run", "own", "--data", file]
    assert "2 queries (2 distinct) and 1 of no concept" in run(*common, "--linker", linker, "-o", tmp_path / "a")
    assert "acc@1" in run(*common, "--baseline", "exact", "--names", terminology, "-o", tmp_path / "b")
    assert "own: your own annotated mentions" in run("benchmark", "list")
    (tmp_path / "clustered.csv").write_text("mention,concept_id,document\nflu,D2,a\ncold,D1,b\n")
    own: list[str | Path] = ["benchmark", "run", "own", "--data", tmp_path / "clustered.csv", "--linker", linker]
    assert "over values of document" in run(*own, "--cluster", "document", "-o", tmp_path / "clustered")
    with pytest.raises(InputError, match=r"expected one of mention, .*: name the column of clusters"):
        run(*own, "--cluster", "paper", "-o", tmp_path / "x")
    with pytest.raises(ConfigError, match="--cluster is for task own"):
        run("benchmark", "run", "ncbi-disease", *own[3:], "--cluster", "document", "-o", tmp_path / "x")
    assert "document: b (1)" in run(*own, "--group", "document", "-o", tmp_path / "grouped")
    with pytest.raises(ConfigError, match="--group is for task own"):
        run("benchmark", "run", "ncbi-disease", *own[3:], "--group", "document", "-o", tmp_path / "x")
    with pytest.raises(ConfigError, match="--names is for task own with --encoder or --baseline"):
        run(*common, "--linker", linker, "--names", terminology, "-o", tmp_path / "c")


def test_columns_of_other_names(linker: Path, tmp_path: Path) -> None:
    rows = "Cold;D1;a\nflu;D3;b\ninsurance;NIL;a\n"
    (tmp_path / "usual.csv").write_text(f"mention;concept_id;document\n{rows}")
    (tmp_path / "mine.csv").write_text(f"span;code;document\n{rows}")
    (tmp_path / "lines.txt").write_text("D1||Cold\n")
    written = MentionFormat("span", "code")
    learned: Any = {"linker": linker, "learned_from": [tmp_path / "mine.csv", tmp_path / "lines.txt"]}
    results = [
        run_benchmark(
            own_task(cluster="document", mention_format=of_data),
            tmp_path / name,
            out=tmp_path / f"of-{name}",
            mention_format=written,
            **learned,
        )
        for name, of_data in (("mine.csv", written), ("usual.csv", None))
    ]
    assert results[0].accuracy == results[1].accuracy
    assert results[0].learned == results[1].learned
    tables = [pl.read_parquet(tmp_path / f"of-{name}" / "predictions.parquet") for name in ("mine.csv", "usual.csv")]
    assert tables[0].equals(tables[1])
    with pytest.raises(InputError, match=r"lines\.txt: lines of mentions have no columns"):
        run_benchmark(own_task(mention_format=written), tmp_path / "lines.txt", linker=linker, out=tmp_path / "x")


def test_own_is_no_published_task(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"in Python own_task\(\.\.\.\)"):
        run_benchmark("own", file, out=tmp_path / "out", baseline="exact")
    with pytest.raises(ConfigError, match="Did you mean 'own'"):
        run_benchmark("Own", file, out=tmp_path / "out", baseline="exact")


def test_retired_codes_count_as_what_has_replaced_them(linker: Path, tmp_path: Path) -> None:
    import_table = "id\tname\treplaced\nD1\tcold\t\nD7\tcommon cold\tD1\nD2\tflu\t\n"
    (tmp_path / "release.tsv").write_text(import_table)
    settings = ["id=id", "name=name", "replaced_by=replaced"]
    asked = [word for one in settings for word in ("--set", one)]
    run("terminology", "import", "table", tmp_path / "release.tsv", "-o", tmp_path / "release", *asked)
    (tmp_path / "mine.csv").write_text("mention,concept_id\ncold,D7\nflu,D2\ncolt,D8\n")
    before = measure(tmp_path / "mine.csv", tmp_path / "a", linker=linker)
    after = measure(tmp_path / "mine.csv", tmp_path / "b", linker=linker, successors=tmp_path / "release")
    assert (before.accuracy[1].n_right, after.accuracy[1].n_right) == (1, 2)
    assert (before.unknown_gold, after.unknown_gold) == ({"D7": 1, "D8": 1}, {"D8": 1})
    assert any("--successors TERMINOLOGY" in doubt for doubt in before.doubts)
    assert "1 of the queries has a code that release has retired: successors count" in after.doubts
    assert after.protocol.endswith("codes that release has retired stand for what has replaced them")
    with pytest.raises(MismatchError, match=r"different queries.*with --successors or without"):
        compare_results(tmp_path / "a", tmp_path / "b")
    learned = [tmp_path / "mine.csv"]
    both = measure(
        tmp_path / "mine.csv", tmp_path / "c", linker=linker, successors=tmp_path / "release", learned_from=learned
    )
    assert both.learned is not None
    assert (both.learned.seen[1].n_queries, both.learned.unseen) == (3, {})
    assert both.terminologies.keys() == {"successors: release"}
    (tmp_path / "now.csv").write_text("mention,concept_id\ncold,D1\n")
    none = measure(tmp_path / "now.csv", tmp_path / "d", linker=linker, successors=tmp_path / "release")
    assert not any("retired" in doubt for doubt in none.doubts)


def test_files_that_were_learned_from_are_read_first(linker: Path, file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        measure(file, tmp_path / "out", linker=tmp_path / "none", learned_from=[tmp_path / "mistyped.csv"])
    with pytest.raises(InputError, match="put it in a list"):
        measure(file, tmp_path / "out", linker=linker, learned_from=str(file))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.csv").write_text("mention,concept_id\ncold,MESH:D1\n")
    same = [tmp_path / folder / "train.csv" for folder in ("a", "b")]
    result = measure(file, tmp_path / "out", linker=linker, learned_from=same)
    assert result.learned is not None
    assert result.learned.files.keys() == {"a/train.csv", "b/train.csv"}
    assert result.learned.seen == {}
    said = "learned from (--learned-from): 1 of their codes has another form in the queries: MESH:D1 is D1 there"
    assert said in result.doubts


def test_what_was_learned_from_is_measured_apart(linker: Path, file: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("mention,concept_id\ncold,D1\ngout,D3\nflu,D2|D77\n")  # gout as another one
    (tmp_path / "more.txt").write_text("D8||Colt\n")
    learned = [tmp_path / "train.csv", tmp_path / "more.txt"]
    result = measure(file, tmp_path / "out", linker=linker, learned_from=learned)
    assert result.learned is not None
    seen, unseen = result.learned.seen[1], result.learned.unseen[1]
    assert (seen.n_right, seen.n_queries) == (2, 3)  # cold, flu as D9|D2, colt
    assert (unseen.n_right, unseen.n_queries) == (2, 3)
    known, other = result.learned.unseen_of_seen_concepts[1], result.learned.unseen_of_other_concepts[1]
    assert (known.n_right, known.n_queries) == (0, 1)  # flu as D3
    assert (other.n_right, other.n_queries) == (2, 2)  # gout as D4, CD4+ cell as D5
    written = json.loads((tmp_path / "out" / "results.json").read_text())["learned_from"]
    assert (written["seen"]["acc@1"], written["unseen"]["n_queries"]) == (2 / 3, 3)
    assert [written[f"unseen_of_{which}_concepts"]["n_queries"] for which in ("seen", "other")] == [1, 2]
    assert set(written["files"]) == {"train.csv", "more.txt"}
    rows = [line.split("  ")[0] for line in str(result).splitlines()]
    parts = ["learned from (3)", "not learned from (3)", "- of concepts learned from (1)", "- of other concepts (2)"]
    assert [row for row in rows if row in parts] == parts
    nothing = measure(file, tmp_path / "none", linker=linker, learned_from=[tmp_path / "more.txt"]).learned
    assert nothing is not None
    assert nothing.seen[1].n_queries == 1
    (tmp_path / "none.csv").write_text("mention,concept_id\nxyz,D1\n")
    nothing = measure(file, tmp_path / "no", linker=linker, learned_from=[tmp_path / "none.csv"]).learned
    assert nothing is not None
    assert (nothing.seen, nothing.unseen[1].n_queries) == ({}, 6)


def test_a_baseline_ranks_a_linkers_concepts(linker: Path, file: Path, tmp_path: Path) -> None:
    by_linker = measure(file, tmp_path / "linker_results", linker=linker)
    result = measure(file, tmp_path / "exact", linker=linker, baseline="exact")
    assert result.accuracy[1].n_right == 4
    assert (result.model["kind"], result.model["ranks"]) == ("baseline", "concepts")
    assert result.protocol == by_linker.protocol
    assert result.dictionary_sha256 == by_linker.dictionary_sha256
    found = compare_results(tmp_path / "exact", tmp_path / "linker_results")
    assert found.differences[1].value == 0
    measure(file, tmp_path / "names", names=tmp_path / "t", baseline="exact")
    with pytest.raises(MismatchError, match=r"ranks concepts.*--linker and --baseline together"):
        compare_results(tmp_path / "names", tmp_path / "exact")
    only = Asking(filters=Filters(sources=("none",)))
    with pytest.raises(InputError, match="none"):
        measure(file, tmp_path / "filtered", linker=linker, baseline="exact", asking=only)
    with pytest.raises(ConfigError, match=r"leave out stages \(--stages\)\.$"):
        measure(file, tmp_path / "asked", linker=linker, baseline="exact", asking=Asking(stages=("exact",)))
    with pytest.raises(ConfigError, match="normalisation=sapbert"):
        measure(file, tmp_path / "p", linker=linker, baseline=get_baseline("exact", {"normalisation": "exact"}))
    systems: list[str | Path] = ["--linker", linker, "--baseline", "bm25"]
    said = run("benchmark", "run", "own", "--data", file, *systems, "-o", tmp_path / "x")
    assert "bm25, a linker's concepts" in said
    with pytest.raises(ConfigError, match=r"leave out stages \(--stages\), .* \(--spelling\)\.$"):
        run(
            *("benchmark", "run", "own", "--data", file, *systems),
            *("--stages", "exact", "--spelling", "--source", "test", "-o", tmp_path / "y"),
        )


def test_intervals_are_over_a_column(linker: Path, tmp_path: Path) -> None:
    rows = [(mention, code, number // 10) for number, (mention, code) in enumerate(ROWS * 10)]
    table = pl.DataFrame(rows, schema=["mention", "concept_id", "patient"], orient="row")
    table.write_parquet(tmp_path / "mine.parquet")
    result = run_benchmark(own_task(cluster="patient"), tmp_path / "mine.parquet", linker=linker, out=tmp_path / "out")
    means_one = [(mention, code, patient) for mention, code, patient in rows if code != "NIL"]
    right = [mention in ("Cold", "gout", "CD4+ cell") or code == "D9|D2" for mention, code, _ in means_one]
    keys = [str(patient) for _, _, patient in means_one]
    accuracy = result.accuracy[1]
    assert (accuracy.low, accuracy.high) == cluster_interval(right, keys, seed=0)
    assert result.n_distinct_mentions == 5
    assert "interval over values of patient" in str(result)
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert written["clusters"] == "values of patient"
    assert "values of patient" in written["confidence_interval_method"]
    run_benchmark(own_task(), tmp_path / "mine.parquet", linker=linker, out=tmp_path / "over-mentions")
    (part,) = (part for what, part in result.by_names.items() if what == "one")
    of_part = [row for row, (mention, _, _) in enumerate(means_one) if mention not in ("colt", "Cold")]
    expected = cluster_interval([right[row] for row in of_part], [keys[row] for row in of_part], seed=0)
    assert (part[1].low, part[1].high) == expected
    baseline = get_baseline("exact")
    system: Any = {"linker": linker, "baseline": baseline, "out": tmp_path / "exact"}
    exact = run_benchmark(own_task(cluster="patient"), tmp_path / "mine.parquet", **system)
    is_found = [row for row, one in enumerate(means_one) if one[0] != "colt"]
    found = [row in is_found and right[row] for row in range(len(means_one))]
    assert (exact.accuracy[1].low, exact.accuracy[1].high) == cluster_interval(found, keys, seed=0)
    assert (result.exact_match[1].low, result.exact_match[1].high) == cluster_interval(found, keys, seed=0)
    same = compare_results(tmp_path / "out", tmp_path / "out")
    assert "interval over values of patient" in str(same)
    assert same.n_distinct_mentions == 5
    with pytest.raises(MismatchError, match=r"over values of patient, .*over distinct mentions: .*--cluster"):
        compare_results(tmp_path / "out", tmp_path / "over-mentions")


@pytest.mark.parametrize(
    ("role", "rows", "problem"),
    [
        ("cluster", ["1", ""], r"found 1 empty cell\. To mend it: fill them in"),
        (
            "group",
            list(map(str, range(101))),
            r"field note: too many groups.*at most 100 different values; found 101.*\(--cluster\)",
        ),
    ],
)
def test_columns_that_cannot_be(role: str, rows: list[str], problem: str, linker: Path, tmp_path: Path) -> None:
    def measured(file: str, column: str) -> None:
        of_column: Any = {role: column}
        run_benchmark(own_task(**of_column), tmp_path / file, linker=linker, out=tmp_path / "out")

    (tmp_path / "mine.csv").write_text("mention,concept_id,note\n" + "".join(f"ab,D1,{cell}\n" for cell in rows))
    (tmp_path / "mine.txt").write_text("D1||ab\n")
    with pytest.raises(InputError, match=problem):
        measured("mine.csv", "note")
    with pytest.raises(InputError, match=rf"no column 'other'.* To mend it: name the column of {role}s \(--{role}\)"):
        measured("mine.csv", "other")
    with pytest.raises(InputError, match=rf"lines of mentions have no {role}s.*jsonl with a column 'other'"):
        measured("mine.txt", "other")


def test_groups_are_measured_apart(linker: Path, tmp_path: Path) -> None:
    kinds = ["title", "", " ", "text"]
    rows = [(mention, code, kinds[number % 4]) for number, (mention, code) in enumerate(ROWS * 3)]
    rows += [("weather", "NIL", "figure"), ("season", "NIL", "figure")]
    table = pl.DataFrame(rows, schema=["mention", "concept_id", "section"], orient="row")
    table.write_csv(tmp_path / "mine.csv")
    result = run_benchmark(own_task(group="section"), tmp_path / "mine.csv", linker=linker, out=tmp_path / "out")
    means_one = [row for row in rows if row[1] != "NIL"]
    assert result.by_group is not None
    assert result.by_group.column == "section"
    sizes = {"": 0, "title": 0, "text": 0, "figure": 0}
    for _, _, kind in means_one:
        sizes[kind.strip()] += 1
    assert list(result.by_group.values) == sorted(sizes, key=lambda kind: (-sizes[kind], kind))
    assert result.by_group.values["figure"] == {}, "no concept is meant there"
    for kind, part in result.by_group.values.items():
        if not part:
            continue
        of_kind = [(mention, code) for mention, code, one in means_one if one.strip() == kind]
        right = [mention in ("Cold", "gout", "CD4+ cell") or code == "D9|D2" for mention, code in of_kind]
        assert part[1].n_queries == len(right) == sizes[kind]
        assert part[1].value == sum(right) / len(right)
        keys = [mention.lower() for mention, _ in of_kind]
        assert (part[1].low, part[1].high) == cluster_interval(right, keys, seed=0)
    written = json.loads((tmp_path / "out" / "results.json").read_text())["by_group"]
    assert written["column"] == "section"
    assert {kind: part["n_queries"] for kind, part in written["values"].items()} == sizes
    predictions = pl.read_parquet(tmp_path / "out" / "predictions.parquet")
    assert predictions["mention"].to_list() == table["mention"].to_list()
    assert predictions["group"].to_list() == [kind.strip() or None for kind in table["section"]]
    said = str(result)
    assert re.search(r"^section: figure \(0\) +- +-$", said, re.MULTILINE)
    assert f"section: title ({sizes['title']})" in said
    assert f"section: (empty) ({sizes['']})" in said
    without = run_benchmark(own_task(), tmp_path / "mine.csv", linker=linker, out=tmp_path / "without")
    assert without.by_group is None
    assert without.accuracy == result.accuracy
    assert "by_group" not in without.as_json()


def test_values_of_groups_are_told_on_one_line_each(linker: Path, tmp_path: Path) -> None:
    kinds = ["title", " title ", "in\nother   (9)  99.9", "long " * 100]
    rows = [(f"ab {number}", "D1", kind) for number, kind in enumerate(kinds)]
    table = pl.DataFrame(rows, schema=["mention", "concept_id", "kind of\nsection"], orient="row")
    table.write_parquet(tmp_path / "mine.parquet")
    task = own_task(group="kind of\nsection")
    result = run_benchmark(task, tmp_path / "mine.parquet", linker=linker, out=tmp_path / "out")
    assert result.by_group is not None
    assert list(result.by_group.values) == ["title", *sorted(kind.strip() for kind in kinds[2:])]
    told = [line for line in str(result).splitlines() if line.startswith("kind of section: ")]
    assert [line.partition(" (1)")[0] for line in told[1:]] == [
        "kind of section: in other   (9)  99.9",
        f"kind of section: {'long ' * 16}...",
    ]
    assert "(2)" in told[0]
    assert max(map(len, str(result).splitlines()[1:-1])) < 200


def test_a_code_of_ones_own_may_have_a_bar(tmp_path: Path) -> None:
    table = "K|1\tcold\t\nK|2\tflu\t\nK|3\tgout\t\nD1|D2\tague\t\nK|0\tpodagra\tK|3\n"
    (tmp_path / "codes.tsv").write_text(f"id\tname\treplaced\n{table}")
    settings = {"id": "id", "name": "name", "replaced_by": "replaced"}
    import_terminology("table", tmp_path / "codes.tsv", tmp_path / "t", options=settings)
    build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    rows = [("cold", "K|1"), ("flu", "K|3"), ("ague", "D2"), ("ague", "D2|K|1"), ("gout", "K|0"), ("colds", "K|2")]
    file, learnt = tmp_path / "mine.csv", tmp_path / "learnt.csv"
    pl.DataFrame(rows, schema=["mention", "concept_id"], orient="row").write_csv(file)
    learned = [("Flu", "K|2"), ("cold", "K|1"), ("Ague", "D1|D2"), ("GOUT", "K|0")]
    pl.DataFrame(learned, schema=["mention", "concept_id"], orient="row").write_csv(learnt)
    systems: list[dict[str, Any]] = [
        {"linker": tmp_path / "linker"},
        {"names": tmp_path / "t", "encoder": LetterEncoder()},
    ]
    for number, system in enumerate(systems):
        out = tmp_path / f"{number}"
        result = measure(file, out, **system, learned_from=[learnt], successors=tmp_path / "t")
        predictions = pl.read_parquet(out / "predictions.parquet")
        is_right = (predictions["query_rank"] == 1).fill_null(value=False)
        assert is_right.to_list() == [True, False, True, True, True, False]
        assert predictions["gold"].to_list()[:2] == [["K|1"], ["K|3"]]
        assert predictions["candidate_ids"].list.first().to_list()[:3] == ["K|1", "K|2", "D1|D2"]
        assert result.learned is not None  # "flu" was learned as another concept, "colds" is not there
        assert (result.learned.seen[1].n_right, result.learned.seen[1].n_queries) == (4, 4)
        assert result.learned.unseen_of_seen_concepts[1].n_queries == 2
        assert (result.coverage, result.unknown_gold) == (1, {})
