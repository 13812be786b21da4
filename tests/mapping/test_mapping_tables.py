"""Every kind of table in and out."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from mapping_data import (
    WORDS,
    Row,
    assert_same,
    expected_rows,
    read_table,
    rows_of,
    write_table,
)

from onoma.errors import ConfigError, InputError
from onoma.linking import Linker
from onoma.linking.mentions import PreparedMention
from onoma.mapping import map_table
from onoma.mapping.mapping import MapReport

INPUTS = ["x.csv", "x.tsv", "x.parquet", "x.jsonl", "x.jsonl.gz", "x.csv.gz"]
OUTPUTS = ["y.csv", "y.tsv", "y.parquet", "y.jsonl"]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("source", INPUTS)
@pytest.mark.usefixtures("small_parts")
def test_equals_linking_each_row_by_itself(source: str, output: str, linker: Path, tmp_path: Path) -> None:
    rows = rows_of(40)
    top_k = 1 if (INPUTS.index(source) + OUTPUTS.index(output)) % 2 else 3
    if ".tsv" in source + output:  # which has no quotes
        rows = [{**row, "note": row["note"] and row["note"].replace("\n", " ")} for row in rows]
    write_table(tmp_path / source, rows)
    report = map_table(linker, tmp_path / source, tmp_path / output, column="mention", top_k=top_k)
    expected = expected_rows(rows, linker, top_k=top_k)
    assert_same(tmp_path / output, expected)
    n_linked = sum(bool(row["mention"] and row["mention"].strip()) for row in rows)
    assert (report.n_rows, report.n_linked) == (40, n_linked)
    assert report.n_mentions == len({row["mention"] for row in rows if row["mention"] and row["mention"].strip()})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source, output])


def test_each_different_mention_is_linked_once(
    linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_parts: None
) -> None:
    asked: list[str] = []
    link = Linker.link

    def watched(self: Linker, mentions: list[PreparedMention], **options: object) -> object:
        asked.extend(mention.original for mention in mentions)
        return link(self, mentions, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Linker, "link", watched)
    rows = rows_of(100, n_different=30)
    map_table(linker, write_table(tmp_path / "x.csv", rows), tmp_path / "y.csv", column="mention")
    assert sorted(asked) == sorted({row["mention"] for row in rows if row["mention"] and row["mention"].strip()})


@pytest.mark.usefixtures("small_parts")
def test_each_different_mention_is_linked_once_beyond_what_is_remembered(
    linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(100, n_different=30)
    source = write_table(tmp_path / "x.csv", rows)
    expected = map_table(linker, source, tmp_path / "y.csv", column="mention")
    monkeypatch.setattr("onoma.mapping.collecting.MAX_REMEMBERED", 6)
    found = map_table(linker, source, tmp_path / "z.csv", column="mention")
    assert (found.n_mentions, found.n_linked) == (expected.n_mentions, expected.n_linked)
    assert_same(tmp_path / "y.csv", tmp_path / "z.csv")


@pytest.mark.parametrize(
    ("source", "limits"),
    [("x.csv", (1, 1 << 20)), ("x.jsonl", (1 << 17, 200)), ("x.parquet", (1 << 17, 200)), ("x.parquet", (1 << 17, 1))],
)
def test_the_output_does_not_depend_on_the_size_of_parts_and_tasks(
    source: str, limits: tuple[int, int], linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(tmp_path / source, rows_of(20))
    map_table(linker, tmp_path / source, tmp_path / "y.csv", column="mention", top_k=2)
    monkeypatch.setattr("onoma.mapping.parts.PART_ROWS", limits[0])
    monkeypatch.setattr("onoma.mapping.parts.PART_BYTES", limits[1])
    monkeypatch.setattr("onoma.mapping.collecting.TASK_MENTIONS", 3)
    map_table(linker, tmp_path / source, tmp_path / "z.csv", column="mention", top_k=2)
    assert_same(tmp_path / "y.csv", tmp_path / "z.csv")


@pytest.mark.parametrize("prefix", ["onoma_", "^", "* "])
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("source", ["x.csv", "x.tsv", "x.parquet", "x.jsonl"])
def test_a_prefix_keeps_the_answers_apart_from_columns_of_the_input(
    source: str, output: str, prefix: str, linker: Path, tmp_path: Path
) -> None:
    rows = [{"concept_id": f"own {row}", "mention": WORDS[row % 3], "preferred_name": "own"} for row in range(6)]
    write_table(tmp_path / source, rows)
    map_table(linker, tmp_path / source, tmp_path / output, column="mention", top_k=2, answer_prefix=prefix)
    found = read_table(tmp_path / output)
    fields = ["concept_id", "preferred_name", "matched_name", "score", "rank"]
    assert list(found[0]) == [*rows[0], *(f"{prefix}{field}" for field in fields)]
    assert [{name: row[name] for name in ("concept_id", "mention")} for row in found] == [
        {name: row[name] for name in ("concept_id", "mention")} for row in rows for _ in range(2)
    ]
    expected = Linker.open(linker).link([row["mention"] for row in rows], top_k=2)
    assert [row[f"{prefix}concept_id"] for row in found] == [link.concept_id for links in expected for link in links]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("source", ["x.csv", "x.tsv", "x.parquet", "x.jsonl"])
def test_columns_may_have_any_name(source: str, output: str, linker: Path, tmp_path: Path) -> None:
    names = ["*", "line", "^.*$", "^l.*$", "mention", "field 0", "$", "a b"]
    rows = [{name: f"{name} {row}" for name in names} | {"*": WORDS[row % 3]} for row in range(40)]
    write_table(tmp_path / source, rows)
    map_table(linker, tmp_path / source, tmp_path / output, column="*", context=None, top_k=2)
    found = read_table(tmp_path / output)
    expected = Linker.open(linker).link([row["*"] for row in rows], top_k=2)
    assert [[row[name] for name in names] for row in found[::2]] == [list(row.values()) for row in rows]
    assert [row["concept_id"] for row in found] == [link.concept_id for links in expected for link in links]


@pytest.mark.parametrize("output", OUTPUTS)
def test_json_may_be_nested_deeply(output: str, linker: Path, tmp_path: Path) -> None:
    for depth, escaped in ((400, "\\ud83d\\ude00"), (400, "x")):
        nested = "[" * depth + f'{{"a": "{escaped}", "b": 1.50}}, null, true' + "]" * depth
        (tmp_path / "x.jsonl").write_text(f'{{"m": "cold", "n": {nested}}}\n')
        map_table(linker, tmp_path / "x.jsonl", tmp_path / output, column="m", overwrite=True)
        if output == "y.jsonl":
            assert nested in (tmp_path / output).read_text()
        else:
            assert read_table(tmp_path / output)[0]["n"] == nested.replace("\\ud83d\\ude00", "\U0001f600")


@pytest.mark.parametrize("text", ["m\n{}\ncold\n", "m,n\n{},1\ncold,2\n"])
def test_a_long_cell_is_a_cell(text: str, linker: Path, tmp_path: Path) -> None:
    cell = "x\n" * 100_000 + "y"
    (tmp_path / "x.csv").write_text(text.format(f'"{cell}"'))
    map_table(linker, tmp_path / "x.csv", tmp_path / "y.parquet", column="m")
    assert [row["m"] for row in read_table(tmp_path / "y.parquet")] == [cell, "cold"]


@pytest.mark.parametrize("source", ["x.csv", "x.tsv", "x.parquet", "x.jsonl"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_table_without_a_mention(source: str, output: str, linker: Path, tmp_path: Path) -> None:
    rows: list[Row] = [{"id": "1", "mention": None}, {"id": "2", "mention": " "}]
    map_table(linker, write_table(tmp_path / source, rows), tmp_path / output, column="mention")
    assert_same(tmp_path / output, expected_rows(rows, linker))


@pytest.mark.parametrize("source", ["x.csv", "x.tsv", "x.parquet"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_table_without_rows(source: str, output: str, linker: Path, tmp_path: Path) -> None:
    write_table(tmp_path / source, [{"id": "1", "mention": "cold"}])
    if source.endswith("parquet"):
        pl.read_parquet(tmp_path / source).clear().write_parquet(tmp_path / source)
    else:
        (tmp_path / source).write_text((tmp_path / source).read_text().split("\n")[0] + "\n")
    report = map_table(linker, tmp_path / source, tmp_path / output, column="mention")
    assert report.n_rows == report.n_mentions == report.n_linked == 0
    assert read_table(tmp_path / output) == []
    if output == "y.csv":
        header = "id,mention,concept_id,preferred_name,matched_name,score\n"
        assert (tmp_path / output).read_text() == header


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("mention\ncold\n\n\nflu\n", ["cold", None, None, "flu"]),
        ('mention\n"a\nb"\n"",\n', None),
        ('mention\n"a\nb"\n""\nc', ["a\nb", None, "c"]),
        ("\ufeffmention\r\ncold\r\n\r\n", ["cold", None]),
    ],
)
def test_a_csv_of_one_column_keeps_its_blank_lines(
    text: str, mentions: list[str] | None, linker: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_bytes(text.encode())
    if mentions is None:
        with pytest.raises(Exception, match="line 4: wrong number of fields"):
            map_table(linker, tmp_path / "x.csv", tmp_path / "y.parquet", column="mention")
        return
    map_table(linker, tmp_path / "x.csv", tmp_path / "y.parquet", column="mention")
    assert pl.read_parquet(tmp_path / "y.parquet")["mention"].to_list() == mentions


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.tsv", "\n \nmention\tid\ncold\t1\n"),
        ("x.tsv", "\nmention\ncold\n"),
        ("x.csv", "\n \nmention,id\ncold,1\n"),
        ("x.csv", "\nmention\ncold\n"),
        ("x.csv", "\n \t\nmention\ncold\n"),
    ],
)
def test_blank_lines_before_the_names_of_columns(name: str, text: str, linker: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    numbers: dict[str, Any] = {"top_k": np.int64(1), "workers": np.int8(1)}
    map_table(linker, tmp_path / name, tmp_path / "y.parquet", column="mention", **numbers)
    found = pl.read_parquet(tmp_path / "y.parquet")
    assert found.columns[0] == "mention"
    assert found["mention"].to_list() == ["cold"]


@pytest.mark.parametrize("sign", [";", "|", "\t"])
@pytest.mark.usefixtures("small_parts")
def test_other_signs_may_divide_columns(sign: str, linker: Path, tmp_path: Path) -> None:
    rows = rows_of(20)
    if sign == "\t":  # tabs go without quotes
        rows = [{**row, "mention": "cold", "note": None} for row in rows]
    with (tmp_path / "x.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=sign, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    map_table(linker, tmp_path / "x.csv", tmp_path / "y.csv", column="mention")
    assert_same(tmp_path / "y.csv", expected_rows(rows, linker))


def test_one_column_with_signs_that_divide_other_tables(linker: Path, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("mention\ncold; sugar disease\ncold|x\n")
    map_table(linker, tmp_path / "x.csv", tmp_path / "y.jsonl", column="mention")
    assert [row["mention"] for row in read_table(tmp_path / "y.jsonl")] == ["cold; sugar disease", "cold|x"]


@pytest.mark.parametrize("output", ["y.parquet", "y.jsonl"])
@pytest.mark.parametrize("source", ["x.csv", "x.tsv", "x.csv.gz", "x.jsonl"])
@pytest.mark.usefixtures("small_parts")
def test_other_encodings(source: str, output: str, linker: Path, tmp_path: Path) -> None:
    rows = [{**row, "note": "é’s"} for row in rows_of(20)]
    write_table(tmp_path / source, rows)
    data = (tmp_path / source).read_bytes()
    text = (gzip.decompress(data) if source.endswith(".gz") else data).decode()
    (tmp_path / source).write_bytes(gzip.compress(text.encode("utf-16")) if ".gz" in source else text.encode("utf-16"))
    map_table(linker, tmp_path / source, tmp_path / output, column="mention", encoding="utf-16")
    assert_same(tmp_path / output, expected_rows(rows, linker))


def test_parquet_keeps_its_types(linker: Path, tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "n": [3, None, 5],
            "tags": [["a", "b"], [], None],
            "what": pl.Series(["cold", "flu", "cold"], dtype=pl.Categorical),
            "at": pl.Series(["2020-01-01", None, "2021-02-03"]).str.to_date(),
            "raw": [b"\x00\xff", b"", None],
        }
    )
    table.write_parquet(tmp_path / "x.parquet")
    map_table(linker, tmp_path / "x.parquet", tmp_path / "y.parquet", column="what")
    mapped = pl.read_parquet(tmp_path / "y.parquet")
    assert mapped.select(table.columns).equals(table)
    assert mapped.schema["score"] == pl.Float64
    map_table(linker, tmp_path / "x.parquet", tmp_path / "n.parquet", column="n")
    assert pl.read_parquet(tmp_path / "n.parquet")["concept_id"].is_null().to_list()[1]
    pl.DataFrame({"mention": [None, None]}).write_parquet(tmp_path / "none.parquet")
    map_table(linker, tmp_path / "none.parquet", tmp_path / "o.parquet", column="mention")
    assert pl.read_parquet(tmp_path / "o.parquet")["concept_id"].is_null().all()


def test_json_lines_stay_as_they_stand(linker: Path, tmp_path: Path) -> None:
    lines = [
        '{"mention": "cold", "n": 1.50, "deep": {"a": [1, 2.0, "}"]}}',
        '  {"n": 12345678901234567890, "mention": null}  ',
        '{"other": "\\u00e9 }", "mention" : 12 }',
        "{}",
    ]
    (tmp_path / "x.jsonl").write_text("\n".join([*lines[:2], "", *lines[2:]]) + "\n")
    map_table(linker, tmp_path / "x.jsonl", tmp_path / "y.jsonl", column="mention")
    mapped = (tmp_path / "y.jsonl").read_text().splitlines()
    assert [line.partition('"concept_id"')[0] for line in mapped] == [
        '{"mention": "cold", "n": 1.50, "deep": {"a": [1, 2.0, "}"]},',
        '{"n": 12345678901234567890, "mention": null,',
        '{"other": "\\u00e9 }", "mention" : 12,',
        "{",
    ]
    assert [json.loads(line)["concept_id"] is None for line in mapped] == [False, True, False, True]
    map_table(linker, tmp_path / "x.jsonl", tmp_path / "y.parquet", column="mention")
    table = pl.read_parquet(tmp_path / "y.parquet")
    assert table.columns[:4] == ["mention", "n", "deep", "other"]
    assert table.rows()[0][:4] == ("cold", "1.50", '{"a": [1, 2.0, "}"]}', None)
    assert table.rows()[1][:2] == (None, "12345678901234567890")
    assert table.rows()[2][:4] == ("12", None, None, "é }")


def test_progress_counts_to_the_end(linker: Path, tmp_path: Path, small_parts: None) -> None:
    told: list[tuple[int, int | None, str]] = []
    source = write_table(tmp_path / "x.csv", rows_of(60))
    report = map_table(linker, source, tmp_path / "y.csv", column="mention", progress=lambda *what: told.append(what))
    assert isinstance(report, MapReport)
    assert list(dict.fromkeys(stage for *_, stage in told)) == ["reading", "linking", "writing", "counting"]
    for stage, n_all in (("linking", report.n_mentions), ("writing", 60), ("counting", report.n_mentions)):
        of_stage = [(done, total) for done, total, what in told if what == stage]
        assert of_stage[0] == (0, n_all)
        assert of_stage[-1] == (n_all, n_all)
        assert of_stage == sorted(of_stage)
        assert {total for _, total in of_stage} == {n_all}


@pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
@pytest.mark.usefixtures("small_parts")
def test_quotes_where_tabs_divide_cells(linker: Path, tmp_path: Path, name: str) -> None:
    """As in what spreadsheets call Unicode text."""
    rows = ['1\t"cold, flu"', '2\t"cold"', "3\tcold", '4\t"a ""bad"" cold"', '5\t"a" cold']
    (tmp_path / name).write_text("\r\n".join(["id\tmention", *rows]) + "\r\n")

    def mapped(**options: Any) -> tuple[MapReport, list[str]]:
        report = map_table(linker, tmp_path / name, tmp_path / "y.jsonl", column="mention", overwrite=True, **options)
        return report, [json.loads(line)["mention"] for line in (tmp_path / "y.jsonl").read_text().splitlines()]

    report, mentions = mapped()
    assert (report.n_quoted, report.n_written) == (3, 5)
    assert mentions == [row.split("\t")[1] for row in rows]
    with pytest.raises(InputError, match=r"a quote out of place|character out of place"):
        mapped(quoting="yes")
    (tmp_path / name).write_text("\r\n".join(["id\tmention", *rows[:-1], '6\t"broken\r\nline"']) + "\r\n")
    with pytest.raises(InputError, match="if cells stand in double quotes, say so: --quoting yes"):
        mapped()
    report, mentions = mapped(quoting="yes")
    assert report.n_quoted == 0
    assert mentions == ["cold, flu", "cold", "cold", 'a "bad" cold', "broken\nline"]


def test_quotes_that_are_none(linker: Path, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('id,mention\n1,"cold"\n2,7" scar\n')
    map_table(linker, tmp_path / "x.csv", tmp_path / "y.jsonl", column="mention", quoting="no")
    lines = (tmp_path / "y.jsonl").read_text().splitlines()
    assert [json.loads(line)["mention"] for line in lines] == ['"cold"', '7" scar']
    wrong: Any = "maybe"
    with pytest.raises(ConfigError, match=r"no quoting 'maybe'.*Known: auto, yes, no"):
        map_table(linker, tmp_path / "x.csv", tmp_path / "y.csv", column="mention", quoting=wrong)
    with pytest.raises(InputError, match="only tables of text have quotes"):
        map_table(linker, tmp_path / "y.jsonl", tmp_path / "y.csv", column="mention", quoting="yes")
    with pytest.raises(InputError, match=r"name it \.tsv if tabs divide its columns"):
        map_table(linker, tmp_path / "x.txt", tmp_path / "y.csv", column="mention")
