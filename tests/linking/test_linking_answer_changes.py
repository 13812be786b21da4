"""What an update changes for mentions that were linked before."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from linking_data import CONCEPTS
from updating_data import MENTIONS, NEW, prepared, release

from onoma.artifacts import amend_artifact
from onoma.errors import (
    ArtifactExistsError,
    ConfigError,
    InputError,
)
from onoma.linking import Linker, LinkerSettings, answer_changes, build_linker
from onoma.linking.answer_changes import REASONS, read_asked_mentions
from onoma.linking.folder import FORMAT_VERSION
from onoma.linking.updating import update_linker
from onoma.terminology import normalise
from tiny import Name, make_terminology


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("updating"))


def expected_reason(old: Any, new: Any) -> str:
    """By the concepts as they are written above."""
    texts = [
        {
            (code, normalise(name.text if isinstance(name, Name) else name, "sapbert"))
            for code, names in concepts.items()
            if code not in obsolete
            for name in names
            if not (isinstance(name, Name) and name.is_suppressed)
        }
        for concepts, obsolete in ((CONCEPTS, ["D5"]), (NEW, ["D5", "D6", "D8"]))
    ]
    active = [{code for code, _ in pairs} for pairs in texts]
    if old is not None:
        if old.concept_id not in active[1]:
            if old.concept_id == "D6" and (new is None or new.concept_id != "D9"):
                return "successor_missed"
            return {"D6": "replaced", "D8": "retired", "D2": "unnamed"}[old.concept_id]
        if (old.concept_id, normalise(old.matched_name, "sapbert")) not in texts[1]:
            return "name_gone"
    if new is not None:
        if new.concept_id not in active[0]:
            return "new_concept"
        if (new.concept_id, normalise(new.matched_name, "sapbert")) not in texts[0]:
            return "new_name"
    return "other"


@pytest.mark.parametrize("stages", [("exact",), ("exact", "dense"), ("sparse",), ("exact", "dense", "sparse")])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_changed_answers_equal_brute_force(
    place: Path,
    linker: Path,
    tmp_path: Path,
    stages: tuple[str, ...],
    elsewhere: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answer_changes, "_MENTIONS_AT_ONCE", 4)
    with amend_artifact(linker, "linker", format_version=FORMAT_VERSION) as folder:
        LinkerSettings(stages=stages).save(folder)
    before = Linker.open(place / "linker").link(MENTIONS, stages=stages)
    out = tmp_path / "out" if elsewhere else None
    linked: list[int] = []
    answers = update_linker(
        linker,
        place / "new",
        out,
        mentions=MENTIONS,
        progress=lambda done, _, what: linked.append(done) if what == "linking" else None,
    ).answers
    assert linked == [*range(4, n := len(set(MENTIONS)), 4), n] * 2, "by the earlier linker, and by the new one"
    after = Linker.open(out or linker).link(MENTIONS, stages=stages)
    assert answers is not None
    expected: dict[str, tuple[Any, ...]] = {}
    for mention, old_links, new_links in zip(MENTIONS, before, after, strict=True):
        old, new = (links[0] if links else None for links in (old_links, new_links))
        if getattr(old, "concept_id", None) != getattr(new, "concept_id", None):
            told = [
                (None,) * 4 if link is None else (link.concept_id, link.preferred_name, link.matched_name, link.score)
                for link in (old, new)
            ]
            successor = "D9" if old is not None and old.concept_id == "D6" else None
            n = MENTIONS.count(mention)
            expected[mention] = (mention, n, *told[0], *told[1], expected_reason(old, new), successor, None)
    assert answers.changed.rows() == list(expected.values())
    assert answers.n_changed == sum(row[1] for row in expected.values()) > 0
    assert (answers.n_mentions, answers.n_distinct) == (len(MENTIONS), len(set(MENTIONS)))
    assert answers.reasons == {
        reason: sum(row[1] for row in expected.values() if row[-3] == reason) for reason in REASONS
    }
    answers.write(tmp_path / "changed.csv")
    assert pl.read_csv(tmp_path / "changed.csv", schema=answers.changed.schema).equals(answers.changed)
    with pytest.raises(ArtifactExistsError):
        answers.write(tmp_path / "changed.csv")


def test_the_reasons_that_these_mentions_have(place: Path, linker: Path) -> None:
    """So that the test above cannot pass by having nothing to compare."""
    answers = update_linker(linker, place / "new", mentions=MENTIONS).answers
    assert answers is not None
    reason = dict(answers.changed.select("mention", "reason").iter_rows())
    assert reason["cold"] == "unnamed"
    assert reason["the cold temperature"] in {"replaced", "successor_missed"}
    assert reason["心臓発作"] == "retired"
    assert reason["brrr!"] in {"new_concept", "replaced", "successor_missed", "unnamed"}


def test_what_is_replaced_and_answered_with_another_concept_is_told_apart(tmp_path: Path) -> None:
    old = {"D1": ["cold"], "D2": ["flu"], "D3": ["gout"], "D4": ["rash"], "D5": ["ague"]}
    make_terminology(tmp_path / "t", old)
    new = {**old, "D6": ["cold"], "D7": ["flu"], "D8": ["x"]}
    successors = {"D1": "D6", "D2": "D8", "D3": "D8"}
    release(tmp_path / "new", new, obsolete=["D1", "D2", "D3", "D4"], replaced_by=successors)
    build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True, stages=["exact"])
    mentions = ["cold", "cold", "flu", "gout", "rash", "ague"]
    report = update_linker(tmp_path / "linker", tmp_path / "new", mentions=mentions)
    assert report.answers is not None
    counted = {reason: n for reason, n in report.answers.reasons.items() if n}
    assert counted == {"replaced": 2, "successor_missed": 2, "retired": 1}
    rows = report.answers.changed.select("mention", "new_concept_id", "reason", "replaced_by").rows()
    assert rows == [
        ("cold", "D6", "replaced", "D6"),
        ("flu", "D7", "successor_missed", "D8"),
        ("gout", None, "successor_missed", "D8"),
        ("rash", None, "retired", None),
    ]
    assert "successor missed         2\n" in str(report)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_of_several_answers_the_first_counts(ending: str, tmp_path: Path) -> None:
    mentions, codes, ranks = ["cold", "cold", "flu", "gout"], ["D1", "D2", "D3", ""], [1, 2, 1, None]
    table = pl.DataFrame({"mention": mentions, "concept_id": codes, "rank": ranks})
    file = tmp_path / f"x.{ending}"
    getattr(table, {"csv": "write_csv", "parquet": "write_parquet", "jsonl": "write_ndjson"}[ending])(file)
    assert read_asked_mentions(file) == (["cold", "flu", "gout"], ["D1", "D3", ""])
    table.with_columns(rank=pl.Series(["major", "a", "b", "c"])).write_csv(tmp_path / "own.csv")
    assert read_asked_mentions(tmp_path / "own.csv") == (mentions, codes)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.txt", "cold\n\nhead cold\nsugar\n"),
        ("coded.txt", "D1||cold\n\nD2|D3||head cold\nD4||sugar\n"),
        ("table.csv", 'row,mention\n1,cold\n2,\n3,"head cold"\n4,sugar\n'),
        ("quoted.csv", '"row","mention"\n"1","cold"\n"2",""\n"3","head cold"\n"4","sugar"\n'),
        ("table.tsv", "row\tmention\n1\tcold\n2\t\n3\thead cold\n4\tsugar\n"),
        ("links.jsonl", '{"mention": "cold", "links": []}\n{"mention": "head cold"}\n{"mention": "sugar"}\n'),
    ],
)
def test_mentions_are_read(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert read_asked_mentions(tmp_path / name) == (["cold", "head cold", "sugar"], None)
    if not name.endswith(".txt"):
        with pytest.raises(InputError, match=r"'mentoin'.*name the column"):
            read_asked_mentions(tmp_path / name, column="mentoin")


def test_a_column_that_is_there_is_not_to_be_named(tmp_path: Path) -> None:
    pl.DataFrame({"mention": [["flu"]]}).write_parquet(tmp_path / "m.parquet")
    with pytest.raises(InputError, match=r"a type that is no text.*mend it: write the table again"):
        read_asked_mentions(tmp_path / "m.parquet")


@pytest.mark.parametrize("column", ["*", "^z$", "^.*$"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_column_whose_name_is_a_pattern_elsewhere(tmp_path: Path, kind: str, column: str) -> None:
    table = pl.DataFrame({column: ["cold", "", "flu"], "z": ["a", "b", "c"], "concept_id": ["D1", "D2", "D3"]})
    file = tmp_path / f"m.{kind}"
    if kind == "csv":
        table.write_csv(file)
    elif kind == "jsonl":
        table.write_ndjson(file)
    else:
        table.write_parquet(file)
    assert read_asked_mentions(file, column=column) == (["cold", "flu"], ["D1", "D3"])


def test_mentions_of_a_parquet_file(tmp_path: Path) -> None:
    pl.DataFrame({"text": ["cold", None, "head cold"], "concept_id": ["D2", None, "D4"]}).write_parquet(
        tmp_path / "mapped.parquet"
    )
    assert read_asked_mentions(tmp_path / "mapped.parquet", column="text") == (["cold", "head cold"], ["D2", "D4"])
    with pytest.raises(InputError, match="no such file"):
        read_asked_mentions(tmp_path / "none.parquet")


def test_answers_by_one_code_of_a_concept_are_of_that_concept(tmp_path: Path) -> None:
    names = {"A|B": ["cold"], "C|D": ["flu"], "E|F": ["rash"], "E": ["itch"], "G": ["gout"]}
    make_terminology(tmp_path / "old", names)
    build_linker(tmp_path / "old", None, tmp_path / "linker", sparse=True)
    make_terminology(tmp_path / "new", {**names, "H": ["new"]}, obsolete=["C|D", "E"])
    codes = ["A", "B", "A|B", "D", "C|D", "E", "F", "G", "X", "G|X"]
    mentions = ["k" * n for n in range(1, len(codes) + 1)]  # which no name has
    update = update_linker(tmp_path / "linker", tmp_path / "new", mentions=mentions, answered=codes)
    assert update.answers is not None
    lost = update.answers.changed.select("old_concept_id", "old_preferred_name", "reason")
    listed = {(code, (name, why)) for code, name, why in lost.rows()}
    assert listed == {
        ("D", ("flu", "retired")),
        ("C|D", ("flu", "retired")),
        ("E", ("itch", "retired")),  # its own code, by which E|F goes too
        ("X", (None, "removed")),
    }
    assert update.answers.answered == {"replaced": 0, "retired": 3, "removed": 2, "unnamed": 0}


def test_answers_that_were_got_in_another_way_are_held_against_the_new_release(
    place: Path, linker: Path, tmp_path: Path
) -> None:
    """As by filters or short forms, so that neither linker gives them when it is asked the mention as it stands."""
    given = [("sugar", "D6"), ("sugar", "D6"), ("sugar", "D8"), ("HC", "D2"), ("HC", ""), ("HC", "D4"), ("HC", "D1|D7")]
    given += [("rash", "NIL"), ("rash", "CUI-less"), ("rash", "-1"), ("rash", "0")]  # no concept was the answer
    mentions, codes = zip(*given, strict=True)
    answers = update_linker(linker, place / "new", tmp_path / "new", mentions=mentions, answered=codes).answers
    assert answers is not None
    assert answers.answered == {"replaced": 2, "retired": 1, "removed": 1, "unnamed": 1}
    assert answers.figures()["answered"] == answers.answered
    lost = answers.changed.filter(pl.col("old_matched_name").is_null() & pl.col("old_concept_id").is_not_null())
    listed = set(lost.select("mention", "n", "old_concept_id", "reason", "replaced_by").rows())
    assert listed == {
        ("sugar", 2, "D6", "replaced", "D9"),
        ("sugar", 1, "D8", "retired", None),
        ("HC", 1, "D2", "unnamed", None),
        ("HC", 1, "D7", "removed", None),
    }
    again = update_linker(tmp_path / "new", place / "new", mentions=mentions, answered=codes)
    assert again.is_current
    assert again.answers is not None
    assert again.answers.answered == answers.answered
    assert "5 of the answers given with them are of concepts that are gone" in str(again)
    one = update_linker(tmp_path / "new", place / "new", mentions=["HC"], answered=["D7"])
    assert re.findall(r"^(\w+) +(\d+)$", str(one), re.MULTILINE) == [("removed", "1")], (
        "what did not happen is not told"
    )
    nulls = [code or None for code in codes]  # as a table's column has them
    again = update_linker(tmp_path / "new", place / "new", mentions=mentions, answered=nulls)
    assert again.answers is not None
    assert again.answers.answered == answers.answered
    before = Linker.open(linker).fingerprint
    with pytest.raises(InputError, match=r"field answered\[1\]: not an answer; expected .* found nan"):
        update_linker(linker, place / "new", mentions=["a", "b"], answered=["D6", math.nan])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="are of mentions"):
        update_linker(linker, place / "new", answered=codes)
    assert Linker.open(linker).fingerprint == before
    with pytest.raises(InputError, match="each mention has an answer"):
        update_linker(linker, place / "new", tmp_path / "other", mentions=mentions, answered=codes[1:])


def test_answers_that_cannot_be_read_are_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("concept_id\nD1\n")
    assert read_asked_mentions(tmp_path / "codes.csv", column="concept_id") == (["D1"], None)
    pl.DataFrame({"mention": ["a"], "concept_id": [1.5]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="concept_id"):
        read_asked_mentions(tmp_path / "x.parquet")


def test_codes_that_lost_zeros_are_told(tmp_path: Path) -> None:
    codes = {"00123": ["cold"], "0045": ["flu"], "7": ["rash"]}
    make_terminology(tmp_path / "t", codes)
    make_terminology(tmp_path / "new", {**codes, "8": ["cough"]})
    build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True, stages=["exact"])
    mentions, answered = ["cold", "flu", "rash", "x"], ["123", "0045", "7", "99"]
    for terminology in ("new", "t"):
        report = update_linker(
            tmp_path / "linker",
            tmp_path / terminology,
            tmp_path / f"out-{terminology}",
            mentions=mentions,
            answered=answered,
        )
        assert report.answers is not None
        assert report.answers.other_forms == report.answers.figures()["other_forms"] == {"123": "00123"}
        assert "1 of their codes has another form in the linker: 123 is 00123 there" in str(report)
