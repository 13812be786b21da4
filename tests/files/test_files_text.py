from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sqlite3
import tarfile
import threading
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onoma.errors import InputError
from onoma.files import text_files
from onoma.files.delimited import read_delimited, read_tabbed_columns
from onoma.files.reading import Reading
from onoma.files.text_files import lines_of_bytes, only_file, read_blocks, read_lines, text_lines
from tiny import zipped


def test_a_mark_that_is_no_byte_order_mark_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.txt"
    path.write_text("\ufeffa|1\n\ufeffb|2\nc|\ufeff3\n", encoding="utf-8")
    for block_bytes in (1 << 20, 4):
        monkeypatch.setattr(
            text_files.read_blocks, "__kwdefaults__", {"block_bytes": block_bytes, "keep_carriage_returns": False}
        )
        blocks = read_delimited(only_file(path), Reading(), separator="|", fields=("x", "y"), keep=("x", "y"))
        rows = [row for block in blocks for row in block.rows()]
        assert rows == [(1, "a", "1"), (2, "\ufeffb", "2"), (3, "c", "\ufeff3")]


def test_blank_lines_in_a_file_with_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("\n \nID\tname\n1\tcold\n\n2\tflu\n\n")
    (block,) = read_tabbed_columns(only_file(path), Reading(), columns=["name", "id"])
    assert block.rows() == [(4, "cold", "1"), (6, "flu", "2")]
    with pytest.raises(InputError, match="line 3, field code: there is no column 'code'"):
        list(read_tabbed_columns(only_file(path), Reading(), columns=["code"]))


@settings(max_examples=100)
@given(
    data=st.text("ab\n\r|", min_size=1, max_size=60).map(str.encode),
    block_bytes=st.integers(1, 20),
    zipped=st.booleans(),
)
@example(data=b"a\r\n\r\nb", block_bytes=2, zipped=False)
def test_blocks_are_the_lines(
    data: bytes, block_bytes: int, zipped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "x.txt"
    path.write_bytes(gzip.compress(data) if zipped else data)
    whole = data if data.endswith(b"\n") else data + b"\n"
    expected = whole.replace(b"\r\n", b"\n")[:-1].split(b"\n")
    found: list[bytes] = []
    for block in read_blocks(only_file(path), Reading(), block_bytes=block_bytes):
        assert block.first_line == len(found) + 1
        assert block.data.endswith(b"\n")
        assert block.n_lines == len(block.lines())
        found += block.lines()
    assert found == expected


def test_long_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"a\n" + b"x" * (9 << 20) + b"\nb\n")
    lines = [line for _, block in text_lines(only_file(path), Reading()) for line in block]
    assert [len(line) for line in lines] == [1, 9 << 20, 1]
    monkeypatch.setattr(text_files, "MAX_LINE_BYTES", 1 << 20)
    with pytest.raises(InputError, match="no end of line within 1 MiB") as caught:
        list(read_blocks(only_file(path), Reading()))
    assert caught.value.line == 2


def test_gzip_bomb_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "MAX_LINE_BYTES", 8 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"0" * (64 << 20)))
    with pytest.raises(InputError, match="no end of line"):
        list(read_blocks(only_file(path), Reading()))


FIELD = st.text("ab \"#é'\u2028\r", max_size=4)


@settings(max_examples=100)
@given(
    lines=st.lists(
        st.one_of(st.lists(FIELD, min_size=3, max_size=3), st.lists(FIELD, max_size=5)), min_size=1, max_size=12
    ),
    trailing=st.booleans(),
    spoilt=st.sets(st.integers(0, 11)),
    skip_lines=st.integers(0, 3),
)
def test_good_rows_are_kept_and_bad_ones_named(
    lines: list[list[str]],
    trailing: bool,
    spoilt: set[int],
    skip_lines: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("rows") / "x.rrf"
    raw = [("|".join(fields) + "|" * trailing).encode() for fields in lines]
    raw = [line + b"\xff" if number in spoilt else line for number, line in enumerate(raw)]
    path.write_bytes(b"\n".join(raw) + b"\n")
    good, bad = [], []
    for number, (fields, line) in enumerate(zip(lines, raw, strict=True), 1):
        if number <= skip_lines:
            continue
        if number - 1 in spoilt or len(fields) != 3:
            bad.append(number)
        else:
            assert line
            last = fields[2] if trailing else fields[2].removesuffix("\r")  # before a line feed it ends the line
            good.append((number, last, fields[0]))
    read = partial(
        read_delimited,
        only_file(path),
        separator="|",
        fields=("x", "y", "z"),
        keep=("z", "x"),
        ends_with_separator=trailing,
        skip_lines=skip_lines,
    )
    reading = Reading(on_error="skip")
    found = [row for block in read(reading) for row in block.rows()]
    assert found == good
    assert reading.rejects["line"].to_list() == bad
    if bad:
        with pytest.raises(InputError) as caught:
            list(read(Reading()))
        assert caught.value.line == bad[0]


@pytest.mark.parametrize("end", ["", "\n", "   \n", "\t\t\n"])
def test_a_row_of_empty_fields_is_no_blank_line_whatever_follows(end: str, tmp_path: Path) -> None:
    path, reading = tmp_path / "x.tsv", Reading("skip")
    path.write_text("a\tb\n\t\nc\td\n" + end)
    blocks = read_delimited(
        only_file(path), reading, separator="\t", fields=("x", "y"), keep=("x", "y"), skip_blank_lines=True
    )
    assert [row for block in blocks for row in block.rows()] == [(1, "a", "b"), (2, "", ""), (3, "c", "d")]
    assert reading.rejects.is_empty()


def test_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_bytes(b"a\tb\n\n  \nc\td\n\n")
    rows = [
        row
        for block in read_delimited(
            only_file(path), Reading(), separator="\t", fields=("x", "y"), keep=("x", "y"), skip_blank_lines=True
        )
        for row in block.rows()
    ]
    assert rows == [(1, "a", "b"), (4, "c", "d")]
    with pytest.raises(
        InputError, match="wrong number of fields; expected 2 fields divided by 'tab'; found 1"
    ) as caught:
        list(read_delimited(only_file(path), Reading(), separator="\t", fields=("x", "y"), keep=("x",)))
    assert caught.value.line == 2


def test_an_error_shows_a_line_on_one_line_and_escaped_once(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(b"caf\xe9\tb\n")
    with pytest.raises(InputError, match="not UTF-8") as caught:
        list(read_delimited(only_file(tmp_path / "x.tsv"), Reading(), separator="\t", fields=("x", "y"), keep=("x",)))
    assert caught.value.found == r"caf\xe9\tb"


def test_lines_that_end_in_carriage_returns_alone_are_refused(tmp_path: Path) -> None:
    for data in (b"D1||a\rD2||b\r", b"D1||a\rD2||b"):
        (tmp_path / "x.txt").write_bytes(data)
        with pytest.raises(InputError, match="where lines end in LF"):
            list(text_lines(only_file(tmp_path / "x.txt"), Reading("skip")))
    (tmp_path / "x.txt").write_bytes(b"D1||a\r\r\n")
    assert len(list(text_lines(only_file(tmp_path / "x.txt"), Reading()))) == 1


def test_lines_of_any_sort(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_bytes("\ufeffa\r\n\n b \n\u2028c\x0bd\n".encode())
    assert read_lines(file) == ["a", "", " b ", "\u2028c\x0bd"]
    file.write_bytes(b"no end of line")
    assert read_lines(file) == ["no end of line"]
    file.write_bytes(gzip.compress(b"a\nb\n"))
    assert read_lines(file) == ["a", "b"]
    for nothing in (b"", b"\xef\xbb\xbf", gzip.compress(b"")):
        file.write_bytes(nothing)
        assert read_lines(file) == []


def test_lines_of_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for written, read in ((b"a\r\nb", ["a", "b"]), (b"", [])):
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(written,))
        writer.start()
        assert read_lines(tmp_path / "pipe") == read
        writer.join()
    with pytest.raises(InputError, match="/dev/zero: this is not a file"):  # it gives without end
        read_lines("/dev/zero")


@pytest.mark.parametrize(
    ("data", "problem"), [("a\n".encode("utf-16"), "UTF-16"), (gzip.compress(b"a", mtime=0), "gzip")]
)
def test_a_stream_that_is_no_text_is_told(data: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        list(lines_of_bytes(data, Path("standard input")))


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_bytes("good\nR\u00fccken\n".encode("latin-1"))
    with pytest.raises(InputError, match="line 2"):
        read_lines(file)


def _tar(kind: int) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=kind) as archive:
        member = tarfile.TarInfo("names.csv")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"id\na\n"))
    return made.getvalue()


def _parquet() -> bytes:
    made = io.BytesIO()
    pl.DataFrame({"name": ["cold"]}).write_parquet(made)
    return made.getvalue()


def _sqlite(folder: Path) -> bytes:
    with contextlib.closing(sqlite3.connect(folder / "x.db")) as database:
        database.execute("create table names (id, name)")
    return (folder / "x.db").read_bytes()


def _files_that_are_no_text(folder: Path) -> dict[str, bytes]:
    text = b"id,name\n1,cold\n"
    workbook = zipped({"[Content_Types].xml": b"<x/>", "xl/workbook.xml": b"<x/>"})
    return {
        "a tar archive": _tar(tarfile.GNU_FORMAT),
        "a tar archive ": gzip.compress(_tar(tarfile.PAX_FORMAT)),
        "a zip archive within": zipped({"inner": zipped({"names": text})}),
        "compressed with gzip twice": gzip.compress(gzip.compress(text)),
        "compressed with bzip2": bz2.compress(text),
        "compressed with xz": lzma.compress(text),
        "a workbook": workbook,
        "a workbook ": zipped({"mimetype": b"application", "content.xml": b"<x/>"}),
        "a database of SQLite": _sqlite(folder),
        "a Parquet file": _parquet(),
    }


def test_what_is_no_text_is_called_by_its_kind(tmp_path: Path) -> None:
    for what, data in _files_that_are_no_text(tmp_path).items():
        path = tmp_path / "names.csv"
        path.write_bytes(data)
        for may_skip in (False, True):  # no line of it is taken for one
            with pytest.raises(InputError, match=f"names.csv.*: this is {what.strip()}.*To mend it: "):
                list(text_lines(only_file(path), Reading(may_skip=may_skip)))


@pytest.mark.parametrize("text", ["PAR1", "BZh9 and more", "ustar", "7z", "PK"])
def test_names_that_look_like_other_kinds_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    assert read_lines(tmp_path / "x.txt") == [text]
