"""Rows of fields divided by one byte, without quoting: checked a block at a time, split by Polars.

A block is good if it is UTF-8, has no NUL, and its dividers and line feeds alternate as they must, which NumPy tells
for all lines at once. Only a block that is not good is looked at line by line, to name the bad ones.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from onoma.terminology.reading import Reading
from onoma.terminology.text_files import LineBlock, TextSource, line_problem, read_blocks, reject_line

_LINE_FEED = 10


def read_delimited(
    source: TextSource,
    reading: Reading,
    *,
    separator: str,
    fields: Sequence[str],
    keep: Sequence[str],
    ends_with_separator: bool = False,
    skip_lines: int = 0,
    skip_blank_lines: bool = False,
) -> Iterator[pl.DataFrame]:
    """Yield blocks of rows; an empty field is "".

    Args:
        source: Plain or gzip, on disk or in an archive.
        reading: Where bad rows go.
        separator: One ASCII character.
        fields: Names of all fields of a line, at least two.
        keep: Those wanted.
        ends_with_separator: Whether a separator stands after the last field too (UMLS).
        skip_lines: Lines to pass over at the beginning.
        skip_blank_lines: Pass over lines with nothing in them, instead of rejecting them.

    Yields:
        Columns ``line`` (1-based, UInt32), then ``keep`` (String).

    Raises:
        InputError: as `read_blocks`, and under "strict" for a line that is not UTF-8, has a NUL byte or another
            number of fields.
    """
    wanted = sorted(fields.index(name) for name in keep)
    division = _Division(ord(separator), len(fields), ends_with_separator)
    path = source if isinstance(source, Path) else source.path
    for raw_block in read_blocks(source, reading):
        block = _without_first_lines(raw_block, skip_lines)
        if not block.n_lines:
            continue
        data, lines = block.data, pl.int_range(block.first_line, block.first_line + block.n_lines, dtype=pl.UInt32)
        numbers = pl.select(lines).to_series()
        if not (_is_text(data) and division.holds(data, block.n_lines)):
            data, numbers = _good_lines(block, division, path, reading, skip_blank_lines)
            if not data:
                continue
        rows = pl.read_csv(
            io.BytesIO(data),
            separator=separator,
            has_header=False,
            quote_char=None,
            infer_schema=False,
            columns=wanted,
        )
        rows.columns = [fields[position] for position in wanted]
        yield rows.select(numbers.alias("line"), pl.col(list(keep)).fill_null(""))


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

    def problem(self, line: bytes) -> tuple[str, str] | None:
        """Expected and found, if the line has other fields."""
        separator = bytes([self.separator])
        found = line.count(separator)
        shown = separator.decode() if self.separator > 0x20 else "tab"
        if self.ends_with_separator:
            if found == self.n_separators and line.endswith(separator):
                return None
            tail = "" if line.endswith(separator) else f", and no '{shown}' at the end (a line cut off?)"
            return f"{self.n_fields} fields, each followed by '{shown}'", f"{found}{tail}"
        if found == self.n_separators:
            return None
        return f"{self.n_fields} fields divided by '{shown}'", str(found + 1)


def _is_text(data: bytes) -> bool:
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _good_lines(
    block: LineBlock, division: _Division, path: Path, reading: Reading, skip_blank_lines: bool
) -> tuple[bytes, pl.Series]:
    kept, numbers = [], []
    for number, line in enumerate(block.lines(), block.first_line):
        if skip_blank_lines and not line.strip():
            continue
        problem = line_problem(line)
        if problem:
            reject_line(reading, path, number, line, problem)
            continue
        fields = division.problem(line)
        if fields:
            expected, found = fields
            reading.reject(
                "wrong number of fields", path=path, line=number, text=line.decode(), expected=expected, found=found
            )
            continue
        kept.append(line)
        numbers.append(number)
    return b"".join(line + b"\n" for line in kept), pl.Series("line", numbers, dtype=pl.UInt32)


def _without_first_lines(block: LineBlock, skip_lines: int) -> LineBlock:
    n_skipped = min(max(skip_lines - block.first_line + 1, 0), block.n_lines)
    if not n_skipped:
        return block
    data = b"\n".join(block.data.split(b"\n", n_skipped)[n_skipped:])
    return LineBlock(data, block.first_line + n_skipped, block.n_lines - n_skipped)
