"""Rows of fields that may stand in double quotes (CSV, RFC 4180): strict, numbered, in bounded memory.

A quoted field may hold delimiters, line ends and doubled quotes. A block of lines in which every row is one line and
every quote stands where it may, which NumPy tells for all lines at once, is split by Polars; the others are read row by
row by Python's strict reader, which knows what is wrong with them. See `onoma.files.delimited` for rows
without quoting.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.csv_problems import csv_problem, is_never_closed
from onoma.files.delimited import is_text, named_columns, without_first_lines
from onoma.files.reading import Reading
from onoma.files.text_files import (
    LineBlock,
    marked_lines,
    read_blocks,
    reject_line,
)

ROWS_PER_BATCH = 1 << 16
_MAX_FIELD_BYTES = 64 << 20
_QUOTE, _LINE_FEED = b'"'[0], b"\n"[0]
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAY_BE_BLANK = re.compile(rb'\n"?[\s\x1c-\x1f\xc2\xe1-\xe3]')
"""How a line of blanks in UTF-8 begins, and few others: it is no row, though of one column it looks like one."""
_limit_lock = threading.RLock()  # a reader that nobody reads on may end within another's turn, when it is collected
_former_limits: list[int] = []
"""What the csv module's limit was, once for each of those who read long fields now."""


def read_quoted(
    file: SourceFile,
    reading: Reading,
    *,
    delimiter: str,
    keep: Sequence[str],
    fields: Sequence[str] | None = None,
    check_fields: Callable[[list[str], int], None] = lambda fields, line: None,
    name_fields: Callable[[list[str], int], list[str]] | None = None,
    skip_lines: int = 0,
    keep_carriage_returns: bool = False,
    advice: str = "close it",
    line_column: str = "line",
) -> Iterator[pl.DataFrame]:
    """Yield batches of rows; an empty field is "". Blank lines are passed over.

    Args:
        file: Plain or gzip, on disk or in an archive.
        reading: Where bad rows go.
        delimiter: One ASCII character.
        keep: Names of the fields wanted.
        fields: Names of all fields; ``None``: the first row says them.
        check_fields: Told of the fields that the first row names, and of its line; raises if ``keep`` are not all among
            them.
        name_fields: Told of the first row and its line, where it is one of values, and gives the names of all fields.
        skip_lines: Lines to pass over at the beginning.
        keep_carriage_returns: Keep those before line feeds inside quotes.
        advice: What to do about a quote that is never closed.
        line_column: What the column with the numbers of lines is called, which none of ``keep`` may be.

    Yields:
        Columns ``line_column`` (1-based, where the row begins, UInt32), then ``keep`` (String).

    Raises:
        InputError: as `read_blocks`; a quote is never closed; under "strict" also a row that is not CSV or has another
            number of fields.
    """
    names = list(fields or ())
    whole_blocks = read_blocks(file, reading, keep_carriage_returns=keep_carriage_returns)
    blocks = (block for whole in whole_blocks if (block := without_first_lines(whole, skip_lines)).n_lines)
    for block in blocks:
        if names and _is_regular(block, delimiter, len(names)):
            yield _split(block, delimiter, names, keep, line_column)
            continue
        batch: list[tuple[int, list[str]]] = []
        for line, row in _rows(block, blocks, reading, file.path, delimiter, advice):
            if not names and name_fields is not None:
                names = name_fields(row, line)
            if not names:
                names = [name.strip() for name in row]
                check_fields(names, line)
            elif len(row) != len(names):
                reading.reject(
                    "wrong number of fields",
                    path=file.path,
                    line=line,
                    text=delimiter.join(row),
                    expected=f"{len(names)} fields divided by '{delimiter}'",
                    found=str(len(row)),
                )
            else:
                batch.append((line, row))
                if len(batch) == ROWS_PER_BATCH:
                    yield _frame(batch, names, keep, line_column)
                    batch = []
        if batch:
            yield _frame(batch, names, keep, line_column)


def _is_regular(block: LineBlock, delimiter: str, n_fields: int) -> bool:
    """Whether each line is a row with the right number of fields, and quotes stand at the ends of fields or doubled."""
    data = block.data
    # Polars takes a byte order mark at the beginning for none of the text.
    if b"\r" in data or data.startswith(_BYTE_ORDER_MARK) or not is_text(data):
        return False
    if n_fields == 1 and _MAY_BE_BLANK.search(b"\n" + data):
        return False
    array = np.frombuffer(data, np.uint8)
    divides = (array == delimiter.encode()[0]) | (array == _LINE_FEED)
    marks, quotes = np.flatnonzero(divides), np.flatnonzero(array == _QUOTE)
    if len(quotes):
        is_outside = np.searchsorted(quotes, marks) % 2 == 0
        if not is_outside[array[marks] == _LINE_FEED].all():
            return False
        marks = marks[is_outside]
        # Of quotes that follow each other the one closes and the next opens, as if a field ended and began between.
        may_adjoin = divides | (array == _QUOTE)
        opening, closing = quotes[0::2], quotes[1::2]
        before = may_adjoin[opening - 1] | (opening == 0)
        if not (before.all() and may_adjoin[closing + 1].all()):
            return False
    if len(marks) != block.n_lines * n_fields:
        return False
    return bool((array[marks[n_fields - 1 :: n_fields]] == _LINE_FEED).all())


def _split(block: LineBlock, delimiter: str, fields: list[str], keep: Sequence[str], line_column: str) -> pl.DataFrame:
    wanted = sorted(fields.index(name) for name in keep)
    rows = pl.read_csv(
        io.BytesIO(block.data),
        separator=delimiter,
        has_header=False,
        quote_char='"',
        infer_schema=False,
        columns=wanted,
    )
    lines = pl.int_range(block.first_line, block.first_line + block.n_lines, dtype=pl.UInt32, eager=True)
    return named_columns(rows, [wanted.index(fields.index(name)) for name in keep], lines, [line_column, *keep])


def _rows(
    first: LineBlock, further: Iterator[LineBlock], reading: Reading, path: Path, delimiter: str, advice: str
) -> Iterator[tuple[int, list[str]]]:
    """Rows of a block, and of as many further ones as it takes to come to the end of a row and a block at once.

    A row of which a line is no text is rejected as a whole. Where a row is not CSV, its first line is rejected, and
    what the quote in it had swallowed is read anew.
    """
    lines = _Lines(first, further, reading.encoding)
    with long_fields():
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        while not lines.is_at_end_of_block:
            line = lines.begin_row()
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                if is_never_closed(error):  # all that follows would be swallowed as one value
                    raise InputError(csv_problem(error), path=path, line=line, fix=advice) from None
                begun = lines.back_to_second()
                if line in lines.bad:
                    reject_line(reading, path, line, *lines.bad[line])
                else:
                    reading.reject(
                        csv_problem(error), path=path, line=line, text=begun, found="a character out of place"
                    )
                continue
            bad = next((number for number in range(line, lines.next_number) if number in lines.bad), None)
            if bad is not None:
                reject_line(reading, path, bad, *lines.bad[bad])
            elif row and not (len(row) == 1 and row[0].isspace()):
                yield line, row


class _Lines:
    """The lines of blocks for the csv module, with a way back to the beginning of a row."""

    def __init__(self, first: LineBlock, further: Iterator[LineBlock], encoding: str | None) -> None:
        self._further, self._encoding = further, encoding
        self._waiting: deque[str] = deque()
        self._of_row: list[str] = []
        self.next_number = first.first_line
        self.bad: dict[int, tuple[bytes, str]] = {}
        """Lines that are no text, by number: their bytes, and what is wrong."""
        self._take(first)

    def __iter__(self) -> Iterator[str]:
        while True:
            while self._waiting:
                line = self._waiting.popleft()
                self._of_row.append(line)
                self.next_number += 1
                yield line + "\n"
            block = next(self._further, None)
            if block is None:
                return
            self._take(block)

    def _take(self, block: LineBlock) -> None:
        lines, bad = marked_lines(block, self._encoding)
        self._waiting.extend(lines)
        self.bad.update(bad)

    @property
    def is_at_end_of_block(self) -> bool:
        return not self._waiting

    def begin_row(self) -> int:
        """Say that a row begins here; its number."""
        self._of_row.clear()
        return self.next_number

    def back_to_second(self) -> str:
        """Go back to the second line of the row; the first one."""
        first, *others = self._of_row
        self._waiting.extendleft(reversed(others))
        self.next_number -= len(others)
        return first


@contextlib.contextmanager
def long_fields() -> Iterator[None]:
    """Let the csv module read fields as long as can be.

    Its limit is one for the whole process: the last of those who read at once puts it back, whoever began first.
    """
    with _limit_lock:
        _former_limits.append(_former_limits[0] if _former_limits else csv.field_size_limit())
        csv.field_size_limit(_MAX_FIELD_BYTES)
    try:
        yield
    finally:
        with _limit_lock:
            former_limit = _former_limits.pop()
            if not _former_limits:
                csv.field_size_limit(former_limit)


def _frame(
    batch: list[tuple[int, list[str]]], fields: list[str], keep: Sequence[str], line_column: str
) -> pl.DataFrame:
    columns = list(zip(*(row for _, row in batch), strict=True))
    return pl.DataFrame(
        {line_column: [line for line, _ in batch], **{name: columns[fields.index(name)] for name in keep}},
        schema={line_column: pl.UInt32, **dict.fromkeys(keep, pl.String)},
    )
