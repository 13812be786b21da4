"""CSV and TSV tables. Every column is text: a code such as 00123 stays as it is. An empty cell is null.

What divides the columns is what the file's name tells, or the sign that gives those asked for (semicolons). Cells may
stand in quotes as in RFC 4180; where tabs divide them a quote is an ordinary character, unless ``quoting="yes"`` says
otherwise, as of what spreadsheets call Unicode text. Lines with nothing in them are passed over, but in a table of one
column they are an empty cell.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl

from onoma.errors import InputError
from onoma.files.csv_problems import csv_problem, is_never_closed
from onoma.files.delimited import read_delimited, read_header
from onoma.files.quoted import ROWS_PER_BATCH, long_fields, read_quoted
from onoma.files.reading import Reading
from onoma.files.table_rows import dividing_sign
from onoma.files.text_files import only_file, text_lines
from onoma.mapping.parts import Wanted, reading_of_table
from onoma.types import Progress, no_progress

Quoting: TypeAlias = Literal["auto", "yes", "no"]
"""Whether cells of a table of text may stand in double quotes; "auto": unless tabs divide them."""
_IF_QUOTED = "if cells stand in double quotes, say so: --quoting yes (in Python quoting='yes')"
_ADVICE = "close it, or double it if it is part of the text"


class TextTable:
    """A CSV or TSV file whose first line, blank ones aside, names its columns; plain or gzip.

    Args:
        path: The file.
        wanted: What is asked of it.
        encoding: As `onoma.files.encodings.checked_encoding` gives it.
        quoting: Whether cells may stand in double quotes, see `Quoting`.

    Raises:
        InputError: it is missing or empty, its first line cannot be read, or the columns are not as they should be.
    """

    def __init__(self, path: Path, wanted: Wanted, *, encoding: str | None = None, quoting: Quoting = "auto") -> None:
        self.path, self._wanted, self._encoding = path, wanted, encoding
        self._file = only_file(path)
        self._delimiter = dividing_sign(self._file, reading_of_table(no_progress, self._encoding), wanted.asked)
        self._is_plain = quoting == "no" or (quoting == "auto" and self._delimiter == "\t")
        self._header_line, self.columns = self._read_header()
        wanted.check(self.columns, path, line=self._header_line)
        # What columns are called while they are read: some names ("*", "line") mean something to who reads them.
        self._fields = [f"field {number}" for number in range(len(self.columns))]
        self.n_quoted = 0
        """Rows so far whose mention stands in double quotes, taken for a part of it as tabs divide cells."""

    def _read_header(self) -> tuple[int, list[str]]:
        """Its line and the columns, none if there is no such line."""
        reading = reading_of_table(no_progress, self._encoding)
        if self._is_plain:
            return read_header(self._file, reading, separator=self._delimiter)
        header: tuple[int, list[str]] = 1, []

        def note(fields: list[str], line: int) -> None:
            nonlocal header
            header = line, fields

        rows = read_quoted(self._file, reading, delimiter=self._delimiter, keep=(), check_fields=note, advice=_ADVICE)
        try:
            next(rows, None)
        except InputError:
            if not header[1]:  # what is wrong with a later line is told when that is read
                raise
        return header

    def frames(self, progress: Progress) -> Iterator[pl.DataFrame]:
        """See `onoma.mapping.parts.InputTable.frames`."""
        reading = reading_of_table(progress, self._encoding)
        self.n_quoted = 0
        mentions = pl.nth(self.columns.index(self._wanted.column))
        for rows in self._rows(reading):
            if self._is_plain and self._delimiter == "\t":
                self.n_quoted += int(rows.select(mentions.str.contains(r'(?s)^".*"$').sum()).item())
            # An empty frame too: it says what the columns are.
            cells = rows.select(pl.when(pl.col(field) != "").then(pl.col(field)).alias(field) for field in self._fields)
            cells.columns = self.columns
            yield self._wanted.with_texts(cells)

    def _rows(self, reading: Reading) -> Iterator[pl.DataFrame]:
        yield pl.DataFrame(schema=dict.fromkeys(self._fields, pl.String))
        if self._is_plain:
            plain = read_delimited(
                self._file,
                reading,
                separator=self._delimiter,
                fields=self._fields,
                keep=self._fields,
                skip_lines=self._header_line,
                skip_blank_lines=len(self.columns) > 1,
                if_quoted=_IF_QUOTED,
            )
            yield from (part.select(self._fields) for part in plain)
        elif len(self.columns) > 1:
            batches = read_quoted(
                self._file, reading, delimiter=self._delimiter, fields=self._fields, keep=self._fields, advice=_ADVICE
            )
            for number, rows in enumerate(batches):
                yield rows if number else rows[1:]  # without the names of the columns
        else:
            with long_fields():
                yield from self._single_column(reading)

    def _single_column(self, reading: Reading) -> Iterator[pl.DataFrame]:
        """Rows of a CSV of one column, in which a line with nothing in it is a row."""
        lines = (line + "\n" for _, block in text_lines(self._file, reading) for line in block)
        rows = csv.reader(lines, delimiter=self._delimiter, strict=True)
        values: list[str] = []
        is_header = True
        line = 1
        while True:
            try:
                row = next(rows)
            except StopIteration:
                break
            except csv.Error as error:
                reading.reject(
                    csv_problem(error),
                    path=self.path,
                    line=line,
                    found=f"a {'quote' if is_never_closed(error) else 'character'} out of place",
                    fix=_ADVICE,
                )
                break
            if len(row) > 1:
                reading.reject(
                    "wrong number of fields",
                    path=self.path,
                    line=line,
                    text=",".join(row),
                    expected="one, since the first line names one column (text with a comma stands in quotes)",
                    found=str(len(row)),
                )
            line = rows.line_num + 1
            # The header is the first line that has something in it, as in every CSV.
            if is_header:
                is_header = not any(map(str.strip, row))
                continue
            values.append(row[0] if row else "")
            if len(values) == ROWS_PER_BATCH:
                yield self._frame(values)
                values = []
        yield self._frame(values)

    def _frame(self, values: Sequence[str]) -> pl.DataFrame:
        return pl.DataFrame({self._fields[0]: values}, schema={self._fields[0]: pl.String})
