"""Rows of fields divided by one byte, without quoting: checked a block at a time, split by Polars.

A block is good if it is UTF-8, has no NUL, and its dividers and line feeds alternate as they must, which NumPy tells
for all lines at once. Only a block that is not good is looked at line by line, to name the bad ones.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.reading import Reading
from onoma.files.text_files import (
    LineBlock,
    line_problem,
    read_blocks,
    reject_line,
    text_lines,
)

_LINE_FEED = 10
_BLANK_LINE = re.compile(rb"^[ \t\r\f\v]*\n", re.MULTILINE)


def read_delimited(
    file: SourceFile,
    reading: Reading,
    *,
    separator: str,
    fields: Sequence[str],
    keep: Sequence[str],
    ends_with_separator: bool = False,
    skip_lines: int = 0,
    skip_blank_lines: bool = False,
    line_column: str = "line",
    if_quoted: str | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield blocks of rows; an empty field is "".

    Args:
        file: Plain or gzip, on disk or in an archive.
        reading: Where bad rows go.
        separator: One ASCII character.
        fields: Names of all fields of a line.
        keep: Those wanted.
        ends_with_separator: Whether a separator stands after the last field too (UMLS).
        skip_lines: Lines to pass over at the beginning.
        skip_blank_lines: Pass over lines with nothing in them, instead of rejecting them.
        line_column: What the column with the numbers of lines is called, which none of ``keep`` may be.
        if_quoted: What to do about a line of other fields that has a double quote.

    Yields:
        Columns ``line_column`` (1-based, UInt32), then ``keep`` (String).

    Raises:
        InputError: as `read_blocks`, and under "strict" for a line that is not UTF-8, has a NUL byte or another
            number of fields.
    """
    wanted = sorted(fields.index(name) for name in keep)
    division = _Division(ord(separator), len(fields), ends_with_separator)
    for raw_block in read_blocks(file, reading):
        block = without_first_lines(raw_block, skip_lines)
        if not block.n_lines:
            continue
        data, lines = block.data, pl.int_range(block.first_line, block.first_line + block.n_lines, dtype=pl.UInt32)
        numbers = pl.select(lines).to_series()
        is_plain = is_text(data) and division.holds(data, block.n_lines)
        if skip_blank_lines and len(fields) == 1:  # a blank line has one field, too
            is_plain = is_plain and _BLANK_LINE.search(data) is None
        if not is_plain:
            data, numbers = _good_lines(block, division, file.path, reading, skip_blank_lines, if_quoted)
            if not data:
                continue
        rows = division.rows(data, wanted)
        yield named_columns(rows, [wanted.index(fields.index(name)) for name in keep], numbers, [line_column, *keep])


def read_tabbed_columns(
    file: SourceFile, reading: Reading, *, columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[pl.DataFrame]:
    """Yield blocks of rows of a file divided by tabs whose first line names its columns, else as `read_delimited`.

    Blank lines are passed over.

    Args:
        file: Plain or gzip, on disk or in an archive.
        reading: Where bad rows go.
        columns: Those wanted, in upper or lower case as one likes; the file may have others and another order.
        optional: Wanted too, but "" in every row if the file does not have them.

    Yields:
        Columns ``line``, then ``columns`` and ``optional`` as they are written here.

    Raises:
        InputError: as `read_delimited`, and if a column is missing or there twice.
    """
    line, header = read_header(file, reading, separator="\t")
    known = [name.casefold() for name in header]
    check_header(header, columns, path=file.path, line=line, divided="divided by tabs")
    present = [*columns, *(name for name in optional if known.count(name.casefold()) == 1)]
    wanted = [known.index(name.casefold()) for name in present]
    fields = [str(position) for position in range(len(header))]
    keep = [fields[position] for position in wanted]
    blocks = read_delimited(
        file, reading, separator="\t", fields=fields, keep=keep, skip_lines=line, skip_blank_lines=True
    )
    for rows in blocks:
        yield rows.select(
            "line",
            *(pl.col(field).alias(name) for field, name in zip(keep, present, strict=True)),
            *(pl.lit("").alias(name) for name in optional if name not in present),
        )


def check_header(header: Sequence[str], columns: Sequence[str], *, path: Path, line: int | None, divided: str) -> None:
    """Refuse a file that has not each of these columns once, in upper or lower case as one likes.

    Args:
        header: The columns that it has.
        columns: Those that it must have.
        path: The file.
        line: Where its columns are named; ``None``: it is no text.
        divided: What the columns should be besides, such as "divided by tabs".

    Raises:
        InputError: one is missing or there twice.
    """
    known = [name.casefold() for name in header]
    for column in columns:
        n_found = known.count(column.casefold())
        if n_found != 1:
            where = "" if line is None else " in the first line"
            raise InputError(
                f"there is {'no' if not n_found else 'more than one'} column '{column}'{where}",
                path=path,
                line=line,
                field=column,
                expected=f"the columns {', '.join(columns)}, {divided}",
                found=", ".join(header)[:500],
                fix="check that the file is of this format" + ("" if line is None else " and has its first line"),
            )


def read_barred(file: SourceFile, reading: Reading, names: tuple[str, str]) -> Iterator[pl.DataFrame]:
    """Yield blocks of rows of a file of lines ``id||text``, as BioSyn has them; blank lines are passed over.

    Args:
        file: Plain or gzip, on disk or in an archive.
        reading: Where lines go that are not UTF-8.
        names: What to call what stands before the first ``||``, and what stands behind it: null where it has none.

    Yields:
        Columns ``line``, ``whole``, and the two.

    Raises:
        InputError: as `text_lines`.
    """
    for rows in filled_lines(file, reading):
        parts = pl.col("whole").str.splitn("||", 2).struct.rename_fields(names)
        yield rows.with_columns(parts.alias("parts")).unnest("parts")


def filled_lines(file: SourceFile, reading: Reading) -> Iterator[pl.DataFrame]:
    """Yield blocks of the lines that are not blank: columns ``line`` (1-based, UInt32) and ``whole``.

    Raises:
        InputError: as `text_lines`.
    """
    for first_line, lines in text_lines(file, reading):
        yield (
            pl.DataFrame({"whole": lines}, schema={"whole": pl.String})
            .with_row_index("line", offset=first_line)
            .filter(pl.col("whole").str.strip_chars() != "")
        )


def named_columns(rows: pl.DataFrame, places: Sequence[int], lines: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    """Numbers of lines and the columns at these places, without nulls, under names of any kind.

    Names come last: to an expression one such as "*" or "^a$" would be a pattern.
    """
    rows.columns = [str(place) for place in range(rows.width)]
    found = rows.select(lines.alias("line"), *(pl.col(str(place)).fill_null("") for place in places))
    found.columns = list(names)
    return found


def read_header(file: SourceFile, reading: Reading, *, separator: str) -> tuple[int, list[str]]:
    """Number of the first line that is not blank, and the names in it; none where there is no such line.

    Raises:
        InputError: as `read_blocks`, and if the line is no text.
    """
    line, text = first_line(file, reading)
    return line, [name.strip() for name in text.split(separator)] if text else []


def first_line(file: SourceFile, reading: Reading) -> tuple[int, str]:
    """Number and text of the first line that is not blank; "" where there is no such line.

    Raises:
        InputError: as `read_blocks`, and if the line is no text.
    """
    for block in read_blocks(file, reading, block_bytes=1 << 16):
        found = first_line_of(block, file.path, reading)
        if found is not None:
            line, text = found
            return line, text.decode()
    return 1, ""


def first_line_of(block: LineBlock, path: Path, reading: Reading) -> tuple[int, bytes] | None:
    """Number and bytes of the first line that is not blank, if there is one.

    Raises:
        InputError: it is no text.
    """
    start, number = 0, block.first_line
    while start < len(block.data):
        end = block.data.find(b"\n", start)
        line = block.data[start : end if end >= 0 else len(block.data)]
        if line.strip():
            problem = line_problem(line, reading.encoding)
            if problem:
                raise InputError(problem, path=path, line=number, fix=_how_to_decode(line, reading))
            return number, line
        start, number = start + len(line) + 1, number + 1
    return None


def _how_to_decode(line: bytes, reading: Reading) -> str:
    """What to do with a file that begins with bytes that are no text."""
    looks = "this looks like UTF-16: " if line.count(b"\0") > len(line) / 3 else ""
    return looks + reading.how_to_decode


def _shown(separator: str) -> str:
    return separator if separator > " " else "tab"


class _Division:
    """How a line is divided into fields."""

    def __init__(self, separator: int, n_fields: int, ends_with_separator: bool) -> None:
        self.separator, self.n_fields, self.ends_with_separator = separator, n_fields, ends_with_separator
        self.n_separators = n_fields if ends_with_separator else n_fields - 1

    def holds(self, data: bytes, n_lines: int) -> bool:
        """Whether every line has the right fields."""
        array = np.frombuffer(data, np.uint8)
        marks = np.flatnonzero((array == self.separator) | (array == _LINE_FEED))
        width = self.n_separators + 1
        if len(marks) != n_lines * width:
            return False
        ends = marks[width - 1 :: width]
        if not (array[ends] == _LINE_FEED).all():
            return False
        return not self.ends_with_separator or bool((ends - marks[width - 2 :: width] == 1).all())

    def rows(self, data: bytes, wanted: Sequence[int]) -> pl.DataFrame:
        """The fields at the wanted positions, of good lines."""
        separator = chr(self.separator)
        if b"\r" in data:  # Polars leaves it out at the end of a field
            lines = [line.split(separator) for line in data.decode().removesuffix("\n").split("\n")]
            return pl.DataFrame({str(position): [line[position] for line in lines] for position in wanted})
        # Polars takes U+FEFF at the beginning of what it reads for a byte order mark; here it belongs to a field.
        begins_with_mark = data.startswith("\ufeff".encode())
        first_row = separator.encode() * self.n_separators + b"\n" if begins_with_mark else b""
        return pl.read_csv(
            io.BytesIO(first_row + data),
            separator=separator,
            has_header=False,
            quote_char=None,
            infer_schema=False,
            columns=list(wanted),
        ).slice(int(begins_with_mark))

    def problem(self, line: bytes) -> tuple[str, str] | None:
        """Expected and found, if the line has other fields."""
        separator = bytes([self.separator])
        found = line.count(separator)
        shown = _shown(separator.decode())
        if self.ends_with_separator:
            if found == self.n_separators and line.endswith(separator):
                return None
            tail = "" if line.endswith(separator) else f", and no '{shown}' at the end (a line cut off?)"
            return f"{self.n_fields} fields, each followed by '{shown}'", f"{found}{tail}"
        if found == self.n_separators:
            return None
        return f"{self.n_fields} fields divided by '{shown}'", str(found + 1)

    def is_row_of_several(self, line: bytes) -> bool:
        """Whether a line is a row of more than one field, all of which may be empty."""
        return self.n_separators > 0 and self.problem(line) is None


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8 without NUL."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _good_lines(
    block: LineBlock,
    division: _Division,
    path: Path,
    reading: Reading,
    skip_blank_lines: bool,
    if_quoted: str | None,
) -> tuple[bytes, pl.Series]:
    kept, numbers = [], []
    for number, line in enumerate(block.lines(), block.first_line):
        if skip_blank_lines and not line.strip() and not division.is_row_of_several(line):
            continue
        problem = line_problem(line, reading.encoding)
        if problem:
            reject_line(reading, path, number, line, problem)
            continue
        fields = division.problem(line)
        if fields:
            expected, found = fields
            reading.reject(
                "wrong number of fields",
                path=path,
                line=number,
                text=line.decode(),
                expected=expected,
                found=found,
                fix=if_quoted if b'"' in line else None,
            )
            continue
        kept.append(line)
        numbers.append(number)
    return b"".join(line + b"\n" for line in kept), pl.Series("line", numbers, dtype=pl.UInt32)


def without_first_lines(block: LineBlock, skip_lines: int) -> LineBlock:
    """What is left of a block if so many lines at the beginning of the file are passed over."""
    n_skipped = min(max(skip_lines - block.first_line + 1, 0), block.n_lines)
    if not n_skipped:
        return block
    data = b"\n".join(block.data.split(b"\n", n_skipped)[n_skipped:])
    return LineBlock(data, block.first_line + n_skipped, block.n_lines - n_skipped)
