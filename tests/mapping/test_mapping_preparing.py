"""Mentions that are read otherwise: short forms replaced, composites split, each in its own context."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from interrupted import PREPARATION
from mapping_data import Row, assert_same, make_linker, make_parts_small, read_table, write_table
from test_mapping_resuming import start

from onoma.errors import InputError, MismatchError
from onoma.linking import Link, Linker, add_reranker, build_linker
from onoma.linking.expansion import AbbreviationTable
from onoma.linking.mentions import Preparation, PreparedMention
from onoma.linking.spelling import Spelling
from onoma.mapping import answers, collecting, map_table
from onoma.mapping.work_folder import WorkFolder
from onoma.mapping.work_records import ReadInput
from tiny import make_terminology, tiny_encoder
from tiny_rerankers import write_reranker

COLUMNS = ["read_as", "concept_id", "preferred_name", "matched_name", "score", "rank"]
TEXTS = [
    ("DM", "diabetes mellitus, says the table"),
    ("DM", "here it is dry mouth (DM)"),
    ("DM", None),
    ("sugar desease", None),
    ("sugar desease 5 mg tab", None),
    ("common cold and sugar disease", "plain"),
    ("CTs and DM", "cold temperature (CT)"),
    ("心臓発作", "cold temperature (CT)"),
    ("cold", "cold temperature (CT)"),
    (None, "cold temperature (CT)"),
    ("D2", None),
]


def rows_of(n_rows: int) -> list[Row]:
    """Rows in which each pair of mention and context comes again, some with contexts of their own."""
    made = []
    for row in range(n_rows):
        mention, context = TEXTS[row * 7 % len(TEXTS)]
        own = f"{context or ''} {row % 4}" if row % 3 == 1 else context
        made.append({"id": f"{row:03}", "mention": mention, "note": own})
    return made


def expected_rows(rows: list[Row], linker: Linker, preparation: Preparation, *, top_k: int) -> list[Row]:
    """The oracle: each part of each row linked by itself, as a mention."""
    made = []
    codes = [*zip(linker.dictionary.concept_ids, linker.dictionary.preferred_names, strict=True)]
    for row in rows:
        answers: list[dict[str, Any]] = []
        if row["mention"] and row["mention"].strip():
            (prepared,) = preparation.prepare(
                [row["mention"]],
                contexts=[row["note"]],
                is_name=lambda text: bool(linker.exact_matcher().link([text])[0]),
                spelling=Spelling.of_names(linker.dictionary.texts),
                concept_of_code=lambda text: next((pair for pair in codes if pair[0] == text), None),
            )
            for part in prepared.parts:
                read_as = None if part == row["mention"] else part
                found = [
                    {"read_as": read_as, **{name: getattr(link, name) for name in COLUMNS[1:]}}
                    for link in linker.link([part], top_k=top_k)[0]
                ]
                answers += found or [{**dict.fromkeys(COLUMNS), "read_as": read_as}]
        made += [{**row, **answer} for answer in answers or [dict.fromkeys(COLUMNS)]]
    return made


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("table") / "x.csv", rows_of(60))


def mapped(linker: Path, source: Path, output: Path, **options: Any) -> bytes:
    map_table(linker, source, output, column="mention", context="note", top_k=2, preparation=PREPARATION, **options)
    return output.read_bytes()


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("formats", [("x.csv", "y.parquet"), ("x.jsonl", "y.jsonl"), ("x.parquet", "y.csv")])
def test_equals_linking_each_part_by_itself(formats: tuple[str, str], linker: Path, tmp_path: Path) -> None:
    rows, output = rows_of(60), tmp_path / formats[1]
    mapped(linker, write_table(tmp_path / formats[0], rows), output)
    expected = expected_rows(rows, Linker.open(linker), PREPARATION, top_k=2)
    assert_same(output, expected)
    read = {(row["mention"], row["read_as"]) for row in expected}
    assert {("DM", "diabetes mellitus"), ("DM", "dry mouth"), ("cold", None)} <= read
    assert {as_read for mention, as_read in read if mention == "D2"} == {
        Linker.open(linker).dictionary.preferred_names[1]
    }
    assert ("sugar desease", "sugar disease") in read
    assert {("CTs and DM", "cold temperature"), ("CTs and DM", "diabetes mellitus")} <= read
    assert {
        ("common cold and sugar disease", "common cold"),
        ("common cold and sugar disease", "sugar disease"),
    } <= read


@pytest.mark.usefixtures("small_parts")
def test_each_pair_of_mention_and_context_is_linked_once(
    linker: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str | None]] = []
    link = Linker.link

    def watched(self: Linker, mentions: list[PreparedMention], **options: Any) -> Any:
        asked.extend((mention.original, mention.context) for mention in mentions)
        return link(self, mentions, **options)

    monkeypatch.setattr(Linker, "link", watched)
    mapped(linker, source, tmp_path / "y.csv")
    pairs = {(row["mention"], row["note"]) for row in rows_of(60) if row["mention"] and row["mention"].strip()}
    assert sorted(asked, key=str) == sorted(pairs, key=str)


@pytest.mark.usefixtures("small_parts")
def test_killed_and_gone_on_with_in_several_processes(linker: Path, source: Path, tmp_path: Path) -> None:
    expected = mapped(linker, source, tmp_path / "z.csv")
    for what, number in (("settings.json", 1), ("/answers/", 8), ("/written/", 3)):
        status, said = start(linker, source, tmp_path / "y.csv", 1, "kill", what, number, "note")
        assert status == -9, said
    assert mapped(linker, source, tmp_path / "y.csv", workers=2) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["y.csv", "z.csv"]
    assert mapped(linker, source, tmp_path / "two.csv", workers=2) == expected


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the package ray (pip install 'onoma[ray]')")
@pytest.mark.filterwarnings("ignore")  # Ray and what it imports warn of themselves
@pytest.mark.usefixtures("small_parts")
def test_the_same_bytes_on_ray(linker: Path, source: Path, tmp_path: Path) -> None:
    expected = mapped(linker, source, tmp_path / "z.csv")
    assert mapped(linker, source, tmp_path / "y.csv", engine="ray", workers=2) == expected


def test_unfinished_work_of_another_table_is_not_gone_on_with(linker: Path, source: Path, tmp_path: Path) -> None:
    output = tmp_path / "y.csv"
    status, said = start(linker, source, output, 1, "kill", "/written/", 1, "note")
    assert status == -9, said
    assert WorkFolder.beside(output).preparation == PREPARATION
    with pytest.MonkeyPatch.context() as patch:
        make_parts_small(patch)
        dry_mouth = AbbreviationTable({"DM": "dry mouth"}, {})
        for changes, words in (
            ({"table": dry_mouth}, r"\(abbreviations: [0-9a-f]{12}, now [0-9a-f]{12}\)"),
            ({"composites": False}, r"\(composites: yes, now no\)"),
            ({"spelling": False}, r"\(spelling: yes, now no\)"),
            ({"strengths": False}, r"\(strengths: yes, now no\)"),
        ):
            other = replace(PREPARATION, **changes)
            with pytest.raises(MismatchError, match=words):
                map_table(linker, source, output, column="mention", context="note", top_k=2, preparation=other)


def test_a_part_without_an_answer_has_a_row(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"D1": ["HBV"]})
    build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True, stages=["exact"])
    rows: list[Row] = [{"mention": "HBV and HIV"}, {"mention": "HDV and HIV"}, {"mention": "hiv"}, {"mention": "hbv"}]
    report = map_table(
        tmp_path / "linker",
        write_table(tmp_path / "x.jsonl", rows),
        tmp_path / "y.csv",
        column="mention",
        preparation=Preparation(composites=True),
    )
    assert [(row["mention"], row["read_as"], row["concept_id"]) for row in read_table(tmp_path / "y.csv")] == [
        ("HBV and HIV", "HBV", "D1"),
        ("HBV and HIV", "HIV", None),
        ("HDV and HIV", "HDV", None),
        ("HDV and HIV", "HIV", None),
        ("hiv", None, None),
        ("hbv", None, "D1"),
    ]
    assert (report.n_rows, report.n_linked, report.n_mentions) == (4, 2, 4)


def test_a_cross_encoder_reads_the_contexts(linker: Path, tmp_path: Path) -> None:
    make_linker(tmp_path)
    base = tiny_encoder(tmp_path / "bert", weight_std=0.3)
    for reads in (True, False):
        write_reranker(tmp_path / f"reranker-{reads}", base, contexts=reads)
    reranked = add_reranker(tmp_path / "linker", tmp_path / "reranker-True")
    rows = [{**row, "mention": f"the {row['mention']}"} for row in rows_of(30)]
    source = write_table(tmp_path / "x.csv", rows)
    map_table(tmp_path / "linker", source, tmp_path / "y.csv", column="mention", context="note", top_k=2)
    found = read_table(tmp_path / "y.csv")
    links = reranked.link([row["mention"] for row in rows], contexts=[row["note"] for row in rows], top_k=2)
    names = [name for name in COLUMNS if name != "read_as"]
    expected = [
        {**row, **{name: getattr(link, name) for name in names}}
        for row, of_row in zip(rows, links, strict=True)
        for link in of_row
    ]
    assert_same(found, expected)
    alone = reranked.link([row["mention"] for row in rows], top_k=2)
    assert [link.score for of_row in links for link in of_row] != [link.score for of_row in alone for link in of_row]
    # one trained without contexts is refused before anything is read
    add_reranker(tmp_path / "linker", tmp_path / "reranker-False")
    with pytest.raises(InputError, match="cross-encoder trained without contexts"):
        map_table(tmp_path / "linker", source, tmp_path / "z.csv", column="mention", context="note")
    assert not (tmp_path / ".z.csv.map").exists()


@pytest.fixture
def n_tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Into how many tasks the mentions of each table that is mapped are divided."""
    found: list[int] = []
    finish = WorkFolder.finish_reading

    def spy(work: WorkFolder, read: ReadInput) -> None:
        found.append(read.n_tasks)
        finish(work, read)

    monkeypatch.setattr(WorkFolder, "finish_reading", spy)
    return found


def test_a_short_table_is_divided_for_several_processes(tmp_path: Path, n_tasks: list[int]) -> None:
    linker = make_linker(tmp_path)
    for n_mentions in (1, 256, 257, 2000):
        rows: list[Row] = [{"mention": f"heart {number}"} for number in range(n_mentions)]
        map_table(linker, write_table(tmp_path / "x.csv", rows), tmp_path / "y.csv", column="mention", overwrite=True)
    assert n_tasks == [1, 1, 2, 8]


def test_a_cross_encoder_has_smaller_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_tasks: list[int]) -> None:
    linker = make_linker(tmp_path)
    source = write_table(tmp_path / "x.csv", [{"mention": f"heart {number}"} for number in range(30)])
    monkeypatch.setattr(collecting, "COSTLY_TASK_MENTIONS", 10)
    map_table(linker, source, tmp_path / "y.csv", column="mention")
    write_reranker(tmp_path / "reranker", tiny_encoder(tmp_path / "bert", weight_std=0.3))
    add_reranker(linker, tmp_path / "reranker")
    map_table(linker, source, tmp_path / "z.csv", column="mention")
    assert n_tasks == [1, 3]


def test_no_more_links_are_counted_on_than_there_are_concepts(tmp_path: Path, n_tasks: list[int]) -> None:
    linker = make_linker(tmp_path)
    source = write_table(tmp_path / "x.csv", [{"mention": "heart"}])
    few, all_of_them = tmp_path / "few.csv", tmp_path / "all.csv"
    map_table(linker, source, few, column="mention", top_k=Linker.open(linker).n_concepts)
    map_table(linker, source, all_of_them, column="mention", top_k=10**20)
    assert all_of_them.read_bytes() == few.read_bytes()
    assert n_tasks == [1, 1]


def test_tasks_have_a_bounded_amount_of_text(
    linker: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_tasks: list[int]
) -> None:
    expected = mapped(linker, source, tmp_path / "z.csv")
    monkeypatch.setattr(collecting, "TASK_BYTES", 50)
    assert mapped(linker, source, tmp_path / "y.csv") == expected
    pairs = {(row["mention"], row["note"]) for row in rows_of(60) if row["mention"] and row["mention"].strip()}
    n_bytes = sum(len(text.encode()) for pair in pairs for text in pair if text)
    assert n_tasks[1] == -(-n_bytes // 50) > 2


def test_tasks_and_what_is_linked_at_once_have_a_bounded_number_of_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_tasks: list[int]
) -> None:
    linker = make_linker(tmp_path)
    source = write_table(tmp_path / "x.csv", [{"mention": f"heart {number}"} for number in range(30)])
    expected = [map_table(linker, source, tmp_path / f"{k}.csv", column="mention", top_k=k) for k in (1, 3)]
    monkeypatch.setattr(collecting, "TASK_LINKS", 20)
    monkeypatch.setattr(answers, "_MENTIONS_AT_ONCE", 4)
    monkeypatch.setattr(answers, "_LINKS_AT_ONCE", 6)
    link, most = Linker.link, [0, 0]

    def spy(self: Linker, mentions: Any, *, top_k: int, **options: Any) -> list[list[Link]]:
        most[top_k > 1] = max(most[top_k > 1], len(mentions))
        return link(self, mentions, top_k=top_k, **options)

    monkeypatch.setattr(Linker, "link", spy)
    for k, before in zip((1, 3), expected, strict=True):
        told: list[tuple[int, int | None, str]] = []
        again = map_table(
            linker,
            source,
            tmp_path / f"y{k}.csv",
            column="mention",
            top_k=k,
            progress=lambda *what, told=told: told.append(what),
        )
        assert [one[:2] for one in told if one[2] == "linking"][-1] == (30, 30)
        assert again.n_linked == before.n_linked
        assert_same(tmp_path / f"y{k}.csv", tmp_path / f"{k}.csv")
    assert n_tasks == [1, 1, 2, 5]  # 30 links and 90, at most 20 in a task
    assert most == [4, 2]


def test_short_forms_are_not_looked_for_without_contexts(linker: Path, source: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"looked for in contexts, and there are none.*--context"):
        map_table(
            linker, source, tmp_path / "y.csv", column="mention", preparation=Preparation(finder="schwartz-hearst")
        )


def test_a_table_with_a_column_of_that_name(linker: Path, tmp_path: Path) -> None:
    rows: list[Row] = [{"mention": "cold", "read_as": "x"}]
    source = write_table(tmp_path / "x.csv", rows)
    with pytest.raises(InputError, match="has a column 'read_as' already"):
        map_table(linker, source, tmp_path / "y.csv", column="mention", preparation=Preparation(composites=True))
    map_table(linker, source, tmp_path / "y.csv", column="mention")
    assert read_table(tmp_path / "y.csv")[0]["read_as"] == "x"
