"""Quoted rows: the fast way and the strict one read the same, wherever blocks are cut."""

from __future__ import annotations

import csv
import functools
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onoma.errors import InputError
from onoma.files import quoted
from onoma.files.reading import Reading
from onoma.files.text_files import LineBlock, only_file, read_blocks

VALUES = st.text('aé", |#\ufeff', max_size=4)
TABLES = st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=5)


def written(rows: list[tuple[str, str, str]], quoting: int = csv.QUOTE_MINIMAL) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    return text.getvalue()


@settings(max_examples=100)
@given(rows=TABLES, quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_what_a_writer_writes_is_split_fast(rows: list[tuple[str, str, str]], quoting: int) -> None:
    data = written(rows, quoting).encode()
    block = LineBlock(data, 7, len(rows))
    assert quoted._is_regular(block, ",", 3) == (not data.startswith(b"\xef\xbb\xbf"))
    if not data.startswith(b"\xef\xbb\xbf"):
        assert quoted._split(block, ",", ["a", "b", "c"], ["c", "a", "b"], "line").rows() == [
            (line, c, a, b) for line, (a, b, c) in enumerate(rows, 7)
        ]


@settings(max_examples=200)
@given(text=st.text('a",\n\r ', max_size=14))
def test_what_is_split_fast_is_what_the_strict_reader_reads(text: str) -> None:
    data = (text + "\n").encode()
    if quoted._is_regular(LineBlock(data, 1, data.count(b"\n")), ",", 2):
        strict = list(csv.reader((line + "\n" for line in (text.split("\n"))), strict=True))
        assert quoted._split(LineBlock(data, 1, len(strict)), ",", ["a", "b"], ["a", "b"], "line").rows() == [
            (line, *row) for line, row in enumerate(strict, 1)
        ]


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    rows=st.lists(st.tuples(*[st.text('ab",\n\r ', max_size=4)] * 3), min_size=1, max_size=6),
    block_bytes=st.integers(1, 24),
    bad_line=st.sampled_from(["", "x\n", 'x,y,"a"b\n']),
)
def test_blocks_may_be_cut_anywhere(
    rows: list[tuple[str, str, str]], block_bytes: int, bad_line: str, tmp_path: Path
) -> None:
    text = written(rows, csv.QUOTE_ALL)  # the writer does not think of a carriage return alone
    file = tmp_path / "x.csv"
    file.write_bytes((bad_line + text + written([("last", "", "")])).encode())
    reading = Reading("skip")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quoted, "read_blocks", functools.partial(read_blocks, block_bytes=block_bytes))
        found = [
            row
            for batch in quoted.read_quoted(
                only_file(file), reading, delimiter=",", keep="abc", fields="abc", keep_carriage_returns=True
            )
            for row in batch.rows()
        ]
    expected, line = [], 1 + bool(bad_line)
    for row in [*rows, ("last", "", "")]:
        expected.append((line, *row))
        line += written([row], csv.QUOTE_ALL).count("\n")
    assert found == expected
    assert reading.rejects["line"].to_list() == ([1] if bad_line else [])


def test_quote_that_is_never_closed(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('a,b\n"c,d\ne,f\n')
    with pytest.raises(InputError, match="never closed") as caught:
        list(quoted.read_quoted(only_file(tmp_path / "x.csv"), Reading("skip"), delimiter=",", keep="x", fields="xy"))
    assert caught.value.line == 2


def read_skipping(file: Path, *, block_bytes: int = 1 << 20) -> tuple[list[tuple[object, ...]], list[tuple[int, str]]]:
    """Rows of two fields, and the lines and texts of what was rejected."""
    reading = Reading("skip")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quoted, "read_blocks", functools.partial(read_blocks, block_bytes=block_bytes))
        batches = list(quoted.read_quoted(only_file(file), reading, delimiter=",", keep="xy", fields="xy"))
    return [row for batch in batches for row in batch.rows()], reading.rejects.select("line", "text").rows()


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    bad=st.sets(st.integers(0, 11), max_size=4),
    quotes=st.sets(st.integers(0, 11)),
    block_bytes=st.integers(1, 60),
)
def test_a_stray_quote_takes_no_other_row_with_it(
    bad: set[int], quotes: set[int], block_bytes: int, tmp_path: Path
) -> None:
    lines = [f'{row},"b{row}"' if row in quotes else f"{row},b{row}" for row in range(12)]
    lines = [f'{row},"b{row}' if row in bad else line for row, line in enumerate(lines)]
    lines.append('12,"last"')  # else the last stray quote is never closed
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    rows, rejects = read_skipping(tmp_path / "x.csv", block_bytes=block_bytes)
    # A stray quote that the next one ends, at a field's end, makes one valid field of all between: not these.
    assert rows == [(row + 1, str(row), "last" if row == 12 else f"b{row}") for row in range(13) if row not in bad]
    assert rejects == [(row + 1, lines[row]) for row in sorted(bad)]


def test_a_line_that_is_no_text_spoils_its_row_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(
        b'1,"first\ncaf\xe9 "" part\nlast"\n2,b\n3,"c\nd\0"\n4,"e"\n5,\xe9\n6,"f\xe9"g\n7,h\n'
    )
    rows, rejects = read_skipping(tmp_path / "x.csv")
    assert rows == [(4, "2", "b"), (7, "4", "e"), (10, "7", "h")]
    assert rejects == [(2, 'caf\\xe9 "" part'), (6, 'd\\x00"'), (8, "5,\\xe9"), (9, '6,"f\\xe9"g')]


def test_lines_of_blanks_are_passed_over_whether_there_are_quotes_or_not(tmp_path: Path) -> None:
    for text in ("1,a\n   \n2,b\n", '1,"a"\n \t \n2,b\n'):
        (tmp_path / "x.csv").write_text(text)
        assert read_skipping(tmp_path / "x.csv") == ([(1, "1", "a"), (3, "2", "b")], [])


def test_two_files_read_at_once_leave_each_other_their_long_fields(tmp_path: Path) -> None:
    """The csv module has one limit for the process: a reader that ends must not lower it for those who still read."""
    usual = csv.field_size_limit()
    rows = [(f"{number}\n", "y" * 200_000) for number in range(3)]
    file = tmp_path / "long.csv"
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows(rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quoted, "ROWS_PER_BATCH", 1)
        first, second = (
            quoted.read_quoted(only_file(file), Reading(), delimiter=",", keep="xy", fields="xy") for _ in range(2)
        )
        found = [next(first), next(second), *first, *second]
    assert [row[1:] for batch in found for row in batch.rows()] == [rows[0], *rows, *rows[1:]]
    assert csv.field_size_limit() == usual


def test_a_blank_line_of_one_column_is_passed_over_wherever_blocks_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.csv").write_text('x\n"a"\n\nb\n \n\u2003\n"\t"\n""\n\n"c"\n', encoding="utf-8")
    for block_bytes in (1, 6, 1 << 20):
        monkeypatch.setattr(quoted, "read_blocks", functools.partial(read_blocks, block_bytes=block_bytes))
        batches = list(quoted.read_quoted(only_file(tmp_path / "x.csv"), Reading(), delimiter=",", keep="x"))
        assert [row for batch in batches for row in batch.rows()] == [(2, "a"), (4, "b"), (8, ""), (10, "c")]
