"""What cannot be mapped is refused in words, and nothing is left behind."""

from __future__ import annotations

import datetime as dt
import fcntl
import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from mapping_data import make_linker_of, make_parts_small, read_table, write_table

from onoma.artifacts.parquet import scan_parquet
from onoma.errors import ArtifactExistsError, ConfigError, InputError, MismatchError, OnomaError, UnavailableError
from onoma.linking import Asking
from onoma.mapping import map_table
from onoma.mapping.outputs import write_part
from onoma.mapping.work_folder import WorkFolder


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"id,menton\n1,a\n", r"line 1, field mention: there is no column 'mention'. Did you mean 'menton'\?"),
        (
            "x.tsv",
            b"id\tMention\n1\ta\n",
            r"line 1, field mention: there is no column 'mention'. Did you mean 'Mention'",
        ),
        (
            "x.csv",
            b"id;menton\n1;a\n",
            r"line 1.* no column 'mention'.*'menton'\? Expected one of id, menton",
        ),
        ("x.csv", b'"id, or code"\n1\n', r"there is no column 'mention'"),
        (
            "x.tsv",
            b"id,menton\n1,a\n",
            r"line 1.* no column 'mention'.*'menton'\? Expected one of id, menton",
        ),
        ("x.csv", b"sep=;\nid;mention\n1;a\n", "line 1: a line that names what divides the columns, for a spreadsheet"),
        ("x.csv", b"id;mention\n1;a\n2;b;c\n", "line 3: wrong number of fields; expected 2 fields divided by ';'"),
        ("x.jsonl", b'{"menton": "a"}\n', r"no line has the key 'mention'. Did you mean 'menton'\?"),
        (
            "x.csv",
            b"mention,id,id\n1,a,b\n",
            "line 1: columns 2, 3 are all called 'id'. To mend it: rename all but one",
        ),
        (
            "x.csv",
            b"mention,score\na,1\n",
            "line 1, field score: the table has a column 'score' already.*--answer-prefix",
        ),
        (
            "x.jsonl",
            b'{"mention": "a"}\n{"mention": "b", "concept_id": 1}\n',
            "line 2, field concept_id: the table has",
        ),
        ("x.csv", b"", "the file is empty"),
        ("x.jsonl", b"", "the file is empty"),
        ("x.jsonl", b"\n\n", "no line has the key 'mention'"),
        ("x.csv", b"mention,id\na,1\nb\nc,3\n", "line 3: wrong number of fields; expected 2 fields.*found 1"),
        ("x.tsv", b"mention\tid\na\t1\nb\t1\t2\n", "line 3: wrong number of fields; expected 2 fields.*found 3"),
        ("x.csv", b"mention\na,1\n", "line 2: wrong number of fields; expected one"),
        ("x.csv", b"mention,id\na,1\n\xff,2\n", "line 3: not UTF-8"),
        ("x.csv", b"mention\na\n\xff\n", "line 3: not UTF-8"),
        ("x.tsv", b"mention\tid\na\t1\n\xff\t2\n", "line 3: not UTF-8"),
        ("x.jsonl", b'{"mention": "a"}\n{"mention": "\xff"}\n', "line 2: not UTF-8"),
        ("x.csv", "mention\na\n".encode("utf-16"), "the file is UTF-16"),
        ("x.csv", "mention\na\nb\n".encode("utf-16-le"), "the file is UTF-16; .*-f UTF-16LE"),
        ("x.jsonl", '{"mention": "a"}\n'.encode("utf-16-be"), "the file is UTF-16; .*-f UTF-16BE"),
        ("x.csv", b'mention,id\n"a,1\nb,2\n', "line 2: a quote is opened and never closed"),
        ("x.csv", b'mention\na\n"b\nc\n', "line 3: a quote is opened and never closed"),
        ("x.csv", b'mention,id\na,1\n"b"c,2\n', "line 3: not CSV"),
        ("x.csv", b"mention,id\ra,1\rb,2\r", r"line 1: a carriage return \(CR\) outside quotes"),
        ("x.csv", b"mention\ra\rb\r", r"line 1: a carriage return \(CR\) outside quotes"),
        ("x.csv", b"\n\n", "there is no line with the names of the columns"),
        ("x.tsv", b"\n\n", "there is no line with the names of the columns"),
        ("x.csv", b"\n\nmenton,id\na,1\n", "line 3, field mention: there is no column"),
        ("x.csv", b"mention,a,,\n1,a,b,c\n", "line 1: columns 3, 4 have no name. To mend it: name or delete them"),
        ("x.csv", "mention\u200b,x\n1,2\n".encode(), r"Did you mean 'mention\\u200b'\? White space, invisible signs"),
        ("x.csv", b"\n\nmention,id,id\na,1,2\n", "line 3: columns 2, 3 are all called 'id'"),
        ("x.csv", b"\n\nmention;score\na;1\n", "line 3, field score: the table has a column 'score' already"),
        ("x.tsv", b"\n\nmenton\tid\na\t1\n", "line 3, field mention: there is no column"),
        ("x.jsonl", b'{"mention": "a"}\n["b"]\n', "line 2: a JSON value that is no object"),
        ("x.jsonl", b'{"mention": "a"}\n\n{"mention": \n', "line 3: not JSON"),
        ("x.jsonl", b'{"mention": "a", "x": NaN}\n', r"line 1: not JSON \(NaN"),
        ("x.jsonl", b'{"mention": "a", "x": 1, "x": 2}\n', "line 1, field x: a key occurs twice"),
        (
            "x.jsonl",
            b'{"mention": "a", "\\u0000mention": 1}\n',
            r"line 1: a name that no column can have; found '\\x00mention'",
        ),
        ("x.jsonl", b'{"mention": ["a"]}\n', "line 1, field mention: a list or an object where a text belongs"),
        ("x.jsonl", b'{"mention": "\\ud800"}\n', "line 1: half a character"),
        ("x.jsonl.gz", gzip.compress(b'{"mention": "a"}\n' * 100, mtime=0)[:-10], "damaged or cut off"),
        ("x.parquet", b"PAR1 nothing", "not a Parquet file"),
        ("x.xlsx", b"", "a workbook cannot be read or written as a table. To mend it: take CSV"),
        ("x.ods2", b"", "unknown kind of table; expected a name ending in .csv, .tsv"),
        ("x.parquet.gz", b"", "unknown kind of table"),
        ("x.csv", None, "there is no such file"),
        ("x.parquet", None, "there is no such file"),
    ],
)
def test_bad_input(name: str, content: bytes | None, message: str, linker: Path, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        map_table(linker, tmp_path / name, tmp_path / "y.parquet", column="mention")
    assert "on_error" not in str(caught.value)  # rows are never left out
    assert not (tmp_path / "y.parquet").exists()
    assert not WorkFolder.beside(tmp_path / "y.parquet").folder.exists()


@pytest.mark.parametrize("prefix", ["a\t", "\n", "\0", None])
def test_a_prefix_that_no_column_can_have(prefix: Any, linker: Path, tmp_path: Path) -> None:
    source = write_table(tmp_path / "x.csv", [{"mention": "a"}])
    with pytest.raises(InputError, match=r"field answer_prefix: not a prefix for names of columns; expected .* onoma_"):
        map_table(linker, source, tmp_path / "y.parquet", column="mention", answer_prefix=prefix)


def test_columns_may_not_be_called_as_answers_with_their_prefix(linker: Path, tmp_path: Path) -> None:
    source = write_table(tmp_path / "x.csv", [{"mention": "a", "concept_id": "1", "my_score": "2"}])
    with pytest.raises(InputError, match="field my_score: the table has a column 'my_score' already"):
        map_table(linker, source, tmp_path / "y.parquet", column="mention", answer_prefix="my_")


def test_two_columns_of_one_name_in_parquet(linker: Path, tmp_path: Path) -> None:
    pl.DataFrame({"mention": ["a"], "mentiom": ["b"]}).write_parquet(
        tmp_path / "x.parquet", compression="uncompressed", statistics=False
    )
    content = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(content.replace(b"mentiom", b"mention"))
    with pytest.raises(InputError, match=r"x\.parquet: two columns are called 'mention'\. To mend it: rename one"):
        map_table(linker, tmp_path / "x.parquet", tmp_path / "y.parquet", column="mention")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "x.csv").write_text("mention\ncold\n")
    return tmp_path / "x.csv"


def test_bad_output(linker: Path, table: Path) -> None:
    for name in ("y.csv.gz", "y", "y.tsv.gz"):
        with pytest.raises(InputError, match=r"expected a name ending in .parquet, .csv, .tsv, .jsonl"):
            map_table(linker, table, table.with_name(name), column="mention")
    shutil.copy(table, table.with_name("y.csv"))
    with pytest.raises(ArtifactExistsError, match="exists already"):
        map_table(linker, table, table.with_name("y.csv"), column="mention")
    map_table(linker, table, table.with_name("y.csv"), column="mention", overwrite=True)
    table.with_name("z.csv").symlink_to(table)
    for same in (table, table.with_name("z.csv")):
        with pytest.raises(InputError, match="input and output are the same file"):
            map_table(linker, table, same, column="mention", overwrite=True)
    assert table.read_text() == "mention\ncold\n"


def test_bad_options(linker: Path, table: Path) -> None:
    output = table.with_name("y.csv")
    for options, kind, message in [
        ({"top_k": 0}, InputError, "top_k: too few answers asked for; expected a whole number from 1; found 0"),
        ({"top_k": "2"}, InputError, "top_k: too few answers asked for; expected a whole number from 1; found '2'"),
        ({"workers": 0}, InputError, "workers: too few; expected a whole number from 1; found 0"),
        ({"workers": 1.5}, InputError, "workers: too few; expected a whole number from 1"),
        ({"engine": "spark"}, ConfigError, "no engine 'spark'.*Known: local, ray"),
        ({"address": "auto"}, ConfigError, "address is that of a Ray cluster"),
    ]:
        with pytest.raises(kind, match=message):
            map_table(linker, table, output, column="mention", **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="encoding 'utf9' is not known"):
        map_table(linker, table, output, column="mention", encoding="utf9")
    nothing: Any = None
    with pytest.raises(ConfigError, match="encoding 'None' is not known"):
        map_table(linker, table, output, column="mention", encoding=nothing)
    for options in ({"column": ["mention"]}, {"column": None}, {"column": "mention", "context": 1}):
        with pytest.raises(InputError, match=r"field (column|context): the name of a column is meant here"):
            map_table(linker, table, output, **options)
    pl.DataFrame({"mention": ["cold"]}).write_parquet(table.with_name("x.parquet"))
    with pytest.raises(InputError, match="field encoding: a Parquet file is no text"):
        map_table(linker, table.with_name("x.parquet"), output, column="mention", encoding="cp1252")
    with pytest.raises(InputError, match="this linker does not read contexts"):
        map_table(linker, table, output, column="mention", context="note")
    with pytest.raises(InputError, match="there is nothing here"):
        map_table(linker / "no", table, output, column="mention")


def test_types_that_an_output_cannot_hold(linker: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    for values, outputs in [([["a"]], [".csv"]), ([b"a"], [".csv", ".jsonl"]), ([[b"a"]], [".csv", ".jsonl"])]:
        pl.DataFrame({"mention": ["cold"], "other": values}).write_parquet(path)
        for output in outputs:
            with pytest.raises(InputError, match=r"field other: a .* file cannot hold values of the type"):
                map_table(linker, path, tmp_path / f"y{output}", column="mention")
        with pytest.raises(InputError, match="field other: a column of a type that is no text"):
            map_table(linker, path, tmp_path / "y.parquet", column="other")
    named = pl.Map(pl.String, pl.Int64)
    for dtype, outputs in [
        (named, [".csv"]),
        (pl.Map(pl.Int64, pl.String), [".csv", ".jsonl"]),
        (pl.List(pl.Map(pl.String, pl.Binary)), [".csv", ".jsonl"]),
    ]:
        values = [{}] if isinstance(dtype, pl.Map) else [[]]
        pl.DataFrame({"mention": ["cold"], "other": pl.Series(values, dtype=dtype)}).write_parquet(path)
        for output in outputs:
            with pytest.raises(InputError, match=r"field other: a .* file cannot hold values of the type"):
                map_table(linker, path, tmp_path / f"y{output}", column="mention")
    pl.DataFrame({"mention": ["cold"], "other": pl.Series([{"a": 1}], dtype=named)}).write_parquet(path)
    map_table(linker, path, tmp_path / "y.jsonl", column="mention")
    assert json.loads((tmp_path / "y.jsonl").read_text())["other"] == {"a": 1}


@pytest.mark.parametrize(
    ("first", "last", "dtype"),
    [
        (-96_465_291, 95_026_235, pl.Date),
        (-96_465_291 * 86_400_000, 95_026_235 * 86_400_000, pl.Datetime("ms", "Asia/Tokyo")),
        (-96_465_291 * 86_400_000_000, 95_026_235 * 86_400_000_000, pl.Datetime("us")),
    ],
)
def test_dates_that_are_no_text(
    first: int, last: int, dtype: pl.DataType, linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_parts_small(monkeypatch)
    days: list[Any] = [0] * 8 + [None, first, last]
    rows = pl.DataFrame({"mention": ["cold"] * 11, "*": pl.Series(days, dtype=pl.Int64).cast(dtype)})
    rows.write_parquet(tmp_path / "x.parquet")
    for output in ("y.csv", "y.jsonl", "y.parquet"):
        map_table(linker, tmp_path / "x.parquet", tmp_path / output, column="mention")
    assert scan_parquet(tmp_path / "y.parquet").collect()["*"].equals(rows["*"])
    step = 1 if dtype == pl.Date else first // -96_465_291
    for row, wrong in ((9, first - step), (10, last + step)):
        days[row] = wrong
        rows.with_columns(pl.Series("*", days, dtype=pl.Int64).cast(dtype)).write_parquet(tmp_path / "z.parquet")
        for output in ("z.csv", "z.jsonl"):
            with pytest.raises(InputError, match=rf"field \*: row {row + 1} has a date that a .* file cannot hold"):
                map_table(linker, tmp_path / "z.parquet", tmp_path / output, column="mention")
        days[row] = 0
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "x.parquet",
        "y.csv",
        "y.jsonl",
        "y.parquet",
        "z.parquet",
    ]


def test_what_polars_cannot_write_after_all_is_told_in_words(
    linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(tmp_path / "x.csv", [{"mention": "cold"}])

    def fail(*_: object, **__: object) -> None:
        raise pl.exceptions.ComputeError("cannot")

    monkeypatch.setattr(pl.DataFrame, "write_csv", fail)
    with pytest.raises(InputError, match=r"rows of the table cannot be written as \.csv; found cannot"):
        map_table(linker, tmp_path / "x.csv", tmp_path / "y.csv", column="mention")


def test_a_full_disk_is_no_fault_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise pl.exceptions.ComputeError("parquet: File out of specification: No space left on device (os error 28)")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        write_part(pl.DataFrame({"a": [1]}), tmp_path / "p", ".parquet", (), is_first=True)
    assert caught.value.errno == 28
    assert caught.value.filename == str(tmp_path / "p")


@pytest.mark.parametrize("nested", ["list", "struct", "both", "map"])
def test_dates_within_lists_structs_and_maps(linker: Path, tmp_path: Path, nested: str) -> None:
    days = pl.Series([0, 95_026_236], dtype=pl.Int32).cast(pl.Date)
    for values in (days, days.head(1)):
        within = {"list": values.implode(), "struct": values.to_frame("a").to_struct()}
        within["both"] = pl.DataFrame({"a": values}).select(pl.struct("a").implode()).to_series()
        keyed = dict(zip("ab", values.to_physical(), strict=False))
        within["map"] = pl.Series([keyed], dtype=pl.Map(pl.String, pl.Int32)).cast(pl.Map(pl.String, pl.Date))
        rows = pl.DataFrame({"mention": ["cold"] * len(within[nested]), "x": within[nested]})
        rows.write_parquet(tmp_path / "x.parquet")
        if len(values) == 1:
            named = rows.with_columns(pl.struct(pl.col("x").alias("*"), pl.col("x").alias("^a.*$")).alias("x"))
            named.write_parquet(tmp_path / "x.parquet")
            map_table(linker, tmp_path / "x.parquet", tmp_path / "y.jsonl", column="mention")
            assert json.loads((tmp_path / "y.jsonl").read_text())["x"].keys() == {"*", "^a.*$"}
        else:
            with pytest.raises(InputError, match=r"field x: one of the rows from 1 has a date that a \.jsonl file"):
                map_table(linker, tmp_path / "x.parquet", tmp_path / "y.jsonl", column="mention")


def test_the_advice_is_a_format_that_holds_all_columns(linker: Path, tmp_path: Path) -> None:
    rows = pl.DataFrame({"mention": ["cold"], "d": [dt.timedelta(1)], "b": [b"x"]})
    rows.write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"field d: a \.csv file.*choose an output ending in \.parquet, or"):
        map_table(linker, tmp_path / "x.parquet", tmp_path / "y.csv", column="mention")
    map_table(linker, tmp_path / "x.parquet", tmp_path / "y.parquet", column="mention")


def test_a_pipe_is_not_replaced(linker: Path, tmp_path: Path) -> None:
    write_table(tmp_path / "x.csv", [{"mention": "cold"}])
    os.mkfifo(tmp_path / "y.csv")
    with pytest.raises(ArtifactExistsError, match="is no regular file"):
        map_table(linker, tmp_path / "x.csv", tmp_path / "y.csv", column="mention", overwrite=True)
    assert (tmp_path / "y.csv").is_fifo()
    (tmp_path / "z").symlink_to("y.csv")  # as /dev/stdout is to a pipe whose name says nothing
    with pytest.raises(ArtifactExistsError, match="z is no regular file; one is needed here"):
        map_table(linker, tmp_path / "x.csv", tmp_path / "z", column="mention")


def test_a_name_that_leaves_no_room_for_that_of_the_work(linker: Path, table: Path) -> None:
    with pytest.raises(InputError, match=r"/x+\.csv: the name is too long: .*choose a shorter one"):
        map_table(linker, table, table.with_name("x" * 250 + ".csv"), column="mention")


def test_work_that_is_removed_while_it_goes_on(linker: Path, table: Path) -> None:
    def remove(_done: int, _total: int | None, what: str) -> None:
        if what == "linking":
            shutil.rmtree(table.with_name(".y.csv.map"), ignore_errors=True)

    for workers in (1, 2):
        with pytest.raises(OnomaError, match=r"removed (while the work went on\. Run the command again|meanwhile)"):
            map_table(linker, table, table.with_name("y.csv"), column="mention", workers=workers, progress=remove)
    map_table(linker, table, table.with_name("y.csv"), column="mention")


@pytest.mark.parametrize("source", ["x.csv", "x.parquet", "x.jsonl"])
@pytest.mark.parametrize("sign", ["\t", "\n", "\r\n"])
def test_what_a_tsv_cannot_hold(
    linker: Path, source: str, sign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_parts_small(monkeypatch)
    rows = [{"mention": "cold", "*": f"a{sign if row == 9 else ' '}b"} for row in range(12)]
    path = write_table(tmp_path / source, rows)
    where = r"line 10, field \*:" if source == "x.jsonl" else r"field \*: row 10 has"
    with pytest.raises(InputError, match=where + " a tab or an end of a line in it, which a .tsv.*choose an output"):
        map_table(linker, path, tmp_path / "y.tsv", column="mention")
    assert [file.name for file in tmp_path.iterdir()] == [source]  # nothing was linked, nothing is left
    write_table(path, [{"mention": "cold", f"a{sign}b": "c"}])
    with pytest.raises(InputError, match="a tab or an end of a line in it, which"):
        map_table(linker, path, tmp_path / "y.tsv", column="mention")


def test_asking_is_an_asking(linker: Path, tmp_path: Path) -> None:
    path = write_table(tmp_path / "x.csv", [{"mention": "cold"}])
    with pytest.raises(ConfigError, match=r"asking is an onoma\.linking\.Asking"):
        map_table(linker, path, tmp_path / "y.csv", column="mention", asking={"stages": ["exact"]})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"filters are onoma\.linking\.filters\.Filters\.of\(.*found dict"):
        Asking(filters={"sources": "A"})  # type: ignore[arg-type]
    wrong: list[Any] = ["schwartz-hearst", "", {}]
    for preparation in wrong:
        with pytest.raises(ConfigError, match=r"prepared by an onoma\.linking\.Preparation\(.*found (str|dict)"):
            map_table(linker, path, tmp_path / "y.csv", column="mention", preparation=preparation)


@pytest.mark.parametrize("source", ["x.parquet", "x.jsonl"])
@pytest.mark.parametrize("output", ["y.csv", "y.tsv"])
def test_text_files_hold_no_nul(linker: Path, source: str, output: str, tmp_path: Path) -> None:
    path = write_table(tmp_path / source, [{"mention": "cold", "other": "a"}, {"mention": "cold", "other": "a\0b"}])
    where = r"line 2, field other:" if source == "x.jsonl" else r"field other: row 2 has"
    with pytest.raises(InputError, match=where + " a NUL character in it, which a .*choose an output ending in .jsonl"):
        map_table(linker, path, tmp_path / output, column="mention")
    map_table(linker, path, tmp_path / "y.parquet", column="mention")
    assert pl.read_parquet(tmp_path / "y.parquet")["other"].to_list() == ["a", "a\0b"]


def test_names_that_would_be_patterns(linker: Path, tmp_path: Path) -> None:
    path = write_table(tmp_path / "x[1]*.parquet", [{"mention": "cold"}])
    map_table(linker, path, tmp_path / "y[1].parquet", column="mention")
    assert len(pl.read_parquet(tmp_path / "y[1].parquet", glob=False)) == 1
    other = tmp_path / os.fsdecode(b"\xff.parquet")
    path.rename(other)
    with pytest.raises(InputError, match=r"xff\.parquet: a name that is not UTF-8"):
        map_table(linker, other, tmp_path / "z.csv", column="mention")


def test_names_become_one_cell_of_a_tsv(tmp_path: Path) -> None:
    linker = make_linker_of(tmp_path, {"A:1": ["heart\tattack"], "A:2": ["liver\nfailure"]})
    write_table(tmp_path / "x.tsv", [{"mention": '"heart attack'}, {"mention": "liver failure"}])
    map_table(linker, tmp_path / "x.tsv", tmp_path / "y.tsv", column="mention")
    found = [(row["mention"], row["preferred_name"]) for row in read_table(tmp_path / "y.tsv")]
    assert found == [('"heart attack', "heart attack"), ("liver failure", "liver failure")]


def test_an_id_is_not_changed_for_a_tsv(tmp_path: Path) -> None:
    linker = make_linker_of(tmp_path, {"A\t1": ["cold"], "A 1": ["fever"]})
    source = write_table(tmp_path / "x.csv", [{"mention": "cold"}])
    with pytest.raises(InputError, match=r"the id of a concept has a tab.*found 'A\\t1'.*choose an output"):
        map_table(linker, source, tmp_path / "y.tsv", column="mention")
    assert not WorkFolder.beside(tmp_path / "y.tsv").folder.exists()  # before anything is linked
    map_table(linker, source, tmp_path / "y.csv", column="mention")
    assert read_table(tmp_path / "y.csv")[0]["concept_id"] == "A\t1"


def test_a_rank_clashes_only_if_there_will_be_one(linker: Path, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("mention,rank\ncold,1\n")
    map_table(linker, tmp_path / "x.csv", tmp_path / "y.csv", column="mention")
    with pytest.raises(InputError, match="'rank' already"):
        map_table(linker, tmp_path / "x.csv", tmp_path / "z.csv", column="mention", top_k=2)


def test_one_process_at_a_time(linker: Path, table: Path) -> None:
    output = table.with_name("y.csv")
    with WorkFolder.beside(output).locked(), pytest.raises(UnavailableError, match="Another run is at work"):
        map_table(linker, table, output, column="mention")
    map_table(linker, table, output, column="mention")


def test_an_output_that_appears_meanwhile_is_kept(linker: Path, table: Path) -> None:
    output = table.with_name("y.csv")

    def appear(_done: int, _total: int | None, what: str) -> None:
        if what == "writing":
            output.write_text("precious")

    with pytest.raises(ArtifactExistsError, match="exists already"):
        map_table(linker, table, output, column="mention", progress=appear)
    assert output.read_text() == "precious"
    map_table(linker, table, output, column="mention", overwrite=True)
    map_table(linker, table, table.with_name("z.csv"), column="mention")
    assert output.read_bytes() == table.with_name("z.csv").read_bytes()


def test_an_output_that_is_a_link_is_written_where_it_points(linker: Path, table: Path) -> None:
    real, link = table.with_name("real.csv"), table.with_name("link.csv")
    real.write_text("old")
    link.symlink_to(real)
    map_table(linker, table, link, column="mention", overwrite=True)
    assert link.is_symlink()
    assert real.read_text().startswith("mention")


def test_work_that_ends_as_it_is_to_be_locked(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = WorkFolder.beside(table.with_name("y.csv"))
    flock, calls = fcntl.flock, list[int]()

    def finish_first(handle: int, how: int) -> None:
        if not calls:
            work.remove()
        calls.append(how)
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", finish_first)
    with work.locked():
        assert len(calls) == 2
        with pytest.raises(UnavailableError, match="Another run is at work"), work.locked():
            pass


def test_an_input_that_changes_meanwhile(linker: Path, tmp_path: Path) -> None:
    table, output = tmp_path / "x.csv", tmp_path / "y.csv"
    for text in ("mention\ncold\nsugar\n", "mention\ncold\n", "mention\nlung\n"):
        table.write_text("mention\ncold\n")

        def change(_done: int, _total: int | None, what: str, text: str = text) -> None:
            if what == "linking":
                table.write_text(text)

        with pytest.raises(InputError, match=r"changed while it was mapped.*run the command again"):
            map_table(linker, table, output, column="mention", progress=change)
        assert not output.exists()
        map_table(linker, table, output, column="mention")
        output.unlink()


def test_work_of_another_version(linker: Path, table: Path) -> None:
    work = WorkFolder.beside(table.with_name("y.csv"))
    (work.folder / "answers").mkdir(parents=True)
    (work.folder / "answers" / "000000.keys.npy").touch()
    (work.folder / "settings.json").write_text('{"format": 0}')
    with pytest.raises(MismatchError, match=r"another version of Onoma\. Remove that folder"):
        map_table(linker, table, table.with_name("y.csv"), column="mention")


def test_what_polars_says_when_it_panics_is_told(linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a time zone that it does not know, which it cannot write."""
    panic = (
        "called `Result::unwrap()` on an `Err` value: ComputeError(ErrString(\"no time zone: '+05:30'.\\n\\nHint: x\"))"
    )

    def scan(path: Path) -> None:
        raise pl.exceptions.PanicException(panic)

    monkeypatch.setattr("onoma.mapping.parquet_tables.scan_parquet", scan)
    pl.DataFrame({"mention": ["fever"]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"x\.parquet: not a Parquet file.*; found no time zone: '\+05:30'\. To mend"):
        map_table(linker, tmp_path / "x.parquet", tmp_path / "y.csv", column="mention")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", b"id,mention\n1,a\n2,Secret,3\n"),
        ("x.csv", b"id,mention\n1,a\n2,Secret \xff\n"),
        ("x.csv", b"id,mention\n1,a\n2,Secret \0\n"),
        ("x.csv", b'id,mention\n1,a\n2,"Secret\n'),
        ("x.tsv", b"id\tmention\n1\ta\n2\tSecret \xff\n"),
        ("x.jsonl", b'{"mention": "a"}\n{"mention": "Secret"\n'),
        ("x.jsonl", b'{"mention": "a"}\n{"mention": "Secret", "id": NaN}\n'),
        ("x.jsonl", b'{"mention": "a"}\n{"mention": "Secret", "concept_id": 1}\n'),
        ("x.jsonl", b'{"mention": "a"}\n["Secret"]\n'),
        ("x.jsonl", b'{"mention": "a"}\n{"mention": ["Secret"]}\n'),
        ("x.jsonl", b'{"mention": "a"}\n{"mention": "Secret \\ud800"}\n'),
    ],
)
def test_an_error_names_the_line_and_does_not_show_it(linker: Path, tmp_path: Path, name: str, content: bytes) -> None:
    """Mentions may be of patients, and errors end in logs."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=r"line [23]") as caught:
        map_table(linker, tmp_path / name, tmp_path / "y.parquet", column="mention")
    assert "Secret" not in str(caught.value)


def test_a_cell_that_cannot_be_written_is_not_shown(linker: Path, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,mention\n1,Secret\tone\n")
    with pytest.raises(InputError, match="row 1 has a tab") as caught:
        map_table(linker, tmp_path / "x.csv", tmp_path / "y.tsv", column="mention")
    assert "Secret" not in str(caught.value)
