"""Tables in parts: what every input is turned into before anything is linked.

Where a part ends depends on the rows alone, not on how they were read: an interrupted run and the one that resumes it
see the same parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from onoma.errors import InputError, did_you_mean
from onoma.files.reading import Reading
from onoma.mapping.keys import CONTEXT, MENTION
from onoma.types import Progress

PART_ROWS = 1 << 17
PART_BYTES = 32 << 20
"""A part ends with the row that reaches one of these; a row group of a Parquet output is at most a part's rows."""
RAW = "\0line"
"""Column of a line that is passed on as it stands, instead of the columns of a table."""
ENDS_A_CELL = re.compile(r"[\t\r\n]")
"""What no cell of a TSV can have: it knows no quotes."""
_MENTION, _CONTEXT = f"\0{MENTION}", f"\0{CONTEXT}"
_OTHER_VALUE_BYTES, _NESTED_VALUE_BYTES = 8, 256
"""What a value that is no text counts for."""
TEXT_CELL_BYTES = 16
"""Of a text or null, besides its characters."""


@dataclass(frozen=True)
class Unheld:
    """Characters that a text format has no way to write.

    Attributes:
        pattern: Finds one.
        problem: What is wrong, of whatever has one.
        fix: What to do.
    """

    pattern: re.Pattern[str]
    problem: str
    fix: str


_NUL = Unheld(
    re.compile("\0"),
    "a NUL character in it, which a table of text cannot hold",
    "choose an output ending in .jsonl or .parquet, or leave it out",
)
UNHELD: dict[str, tuple[Unheld, ...]] = {
    ".tsv": (
        Unheld(
            ENDS_A_CELL,
            "a tab or an end of a line in it, which a .tsv cannot hold",
            "choose an output ending in .csv, .jsonl or .parquet, or put a blank there",
        ),
        _NUL,
    ),
    ".csv": (_NUL,),
}
"""By format; one that is not there holds all."""


@dataclass(frozen=True)
class Part:
    """Some rows of a table.

    Attributes:
        rows: The columns to be kept; or one, `RAW`.
        texts: What is to be linked of each row: ``mention`` and perhaps ``context`` (String). A mention that is
            missing or blank is null; a context is never null.
    """

    rows: pl.DataFrame
    texts: pl.DataFrame


def reading_of_table(progress: Progress, encoding: str | None) -> Reading:
    """How a text file is read here: no row of it is left out."""
    return Reading(progress=progress, may_skip=False, encoding=encoding, encoding_option="--encoding ", quotes=False)


class InputTable(Protocol):
    """A file of rows, one of whose columns holds mentions."""

    path: Path

    @property
    def columns(self) -> list[str]:
        """The columns, in their order; of JSON Lines those seen so far."""

    def frames(self, progress: Progress) -> Iterator[pl.DataFrame]:
        """All rows, some at a time: the columns to be kept, or `RAW`, then those of `with_texts`.

        Args:
            progress: Called with rows read and in all (estimated).

        Raises:
            InputError: the file cannot be read, saying the line.
        """


@dataclass(frozen=True)
class Wanted:
    """What is asked of a table.

    Attributes:
        column: Holds the mentions.
        context: Holds the text around each mention, if there is such a column.
        answers: Columns that will be added, which the table must therefore not have.
    """

    column: str
    context: str | None
    answers: tuple[str, ...]

    @property
    def asked(self) -> tuple[str, ...]:
        """The columns that the table must have."""
        return (self.column,) if self.context is None else (self.column, self.context)

    def check(self, columns: Sequence[str], path: Path, *, line: int | None = None) -> None:
        """Refuse a table without these columns, or with one that two would share.

        Raises:
            InputError: with the nearest column's name.
        """
        for name in columns:
            if columns.count(name) > 1:
                places = ", ".join(str(at) for at, one in enumerate(columns, 1) if one == name)
                problem = f"columns {places} are all called '{name}'" if name else f"columns {places} have no name"
                fix = "rename all but one" if name else "name or delete them, or what stands above the line of names"
                raise InputError(problem, path=path, line=line, fix=fix)
        for asked in self.asked:
            if not columns:
                raise InputError("there is no line with the names of the columns", path=path, line=line, field=asked)
            if asked not in columns:
                raise InputError(
                    f"there is no column '{asked}'.{did_you_mean(asked, columns)}",
                    path=path,
                    line=line,
                    field=asked,
                    expected=f"one of {', '.join(columns)}",
                )
        self.check_clash(columns, path, line=line)

    def check_clash(self, columns: Iterable[str], path: Path, *, line: int | None = None) -> None:
        """Refuse columns that are called as an answer is, or as columns are called here.

        Raises:
            InputError: naming the first.
        """
        for name in columns:
            if name in self.answers:
                raise InputError(
                    f"the table has a column '{name}' already, which is what a column of the answers is called",
                    path=path,
                    line=line,
                    field=name,
                    fix="give the answers' columns a prefix (--answer-prefix onoma_), or rename it in the input",
                )
            if name in {RAW, _MENTION, _CONTEXT}:
                raise InputError("a name that no column can have", path=path, line=line, found=repr(name))

    def with_texts(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows and, behind their columns, what is to be linked."""
        # Not by expressions on the columns, to which a name such as "*" would be a pattern.
        texts = rows[self.column].alias(_MENTION).cast(pl.String).to_frame()
        if self.context is not None:
            texts = texts.with_columns(rows[self.context].alias(_CONTEXT).cast(pl.String).fill_null(""))
        mention = pl.col(_MENTION)
        return rows.hstack(texts.with_columns(pl.when(mention.str.strip_chars() != "").then(mention)))


def texts_frame(mentions: Sequence[str | None], contexts: Sequence[str] | None) -> pl.DataFrame:
    """The columns that `Wanted.with_texts` adds, for rows that are no frame."""
    columns: dict[str, Sequence[str | None]] = {_MENTION: mentions}
    if contexts is not None:
        columns[_CONTEXT] = contexts
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def parts_of(table: InputTable, progress: Progress) -> Iterator[Part]:
    """The rows of a table in parts, at least one of them (empty, if the table is)."""
    held: list[pl.DataFrame] = []
    n_rows = n_bytes = n_parts = 0
    for frame in table.frames(progress):
        ends = np.cumsum(_row_bytes(frame))
        begin = 0
        while begin < frame.height:
            before = int(ends[begin - 1]) if begin else 0
            # The row that reaches the bound still belongs to the part, so that no part is empty.
            last = int(np.searchsorted(ends, before + PART_BYTES - n_bytes))
            end = min(begin + PART_ROWS - n_rows, last + 1, frame.height)
            held.append(frame[begin:end])
            n_rows += end - begin
            n_bytes += int(ends[end - 1]) - before
            begin = end
            if n_rows == PART_ROWS or n_bytes >= PART_BYTES:
                yield _part(held)
                held, n_rows, n_bytes = [], 0, 0
                n_parts += 1
        if not held:
            held, n_rows, n_bytes = [frame[:0]], 0, 0
    if n_rows or (held and not n_parts):
        yield _part(held)


def slices(part: Part, n_copies: int) -> Iterator[Part]:
    """A part in pieces of as many rows, about within its bounds when each is there so many times; one at least."""
    sizes = _row_bytes(part.rows)
    # A part reaches the bound of bytes with its last row, and is one slice still.
    n_rows, n_bytes = part.rows.height * n_copies, int(sizes.sum() - sizes.max(initial=0)) * n_copies
    n_slices = max(1, -(-n_rows // PART_ROWS), -(-n_bytes // PART_BYTES))
    step = max(1, part.rows.height // n_slices)
    for begin in range(0, max(1, part.rows.height), step):
        yield Part(part.rows[begin : begin + step], part.texts[begin : begin + step])


def _part(frames: Sequence[pl.DataFrame]) -> Part:
    whole = pl.concat(frames, rechunk=True)
    texts = [name for name in whole.columns if name in {_MENTION, _CONTEXT}]
    return Part(whole.drop(texts), whole.select(pl.col(name).alias(name[1:]) for name in texts))


def _row_bytes(frame: pl.DataFrame) -> npt.NDArray[np.int64]:
    """About how much memory each row takes."""
    fixed, lengths = 0, list[pl.Expr]()
    for position, dtype in enumerate(frame.dtypes):
        if dtype in {pl.String, pl.Binary}:
            cells = pl.nth(position)  # a name such as "*" would be a pattern
            length = cells.str.len_bytes() if dtype == pl.String else cells.bin.size()
            lengths.append(length.cast(pl.Int64))
            fixed += TEXT_CELL_BYTES
        else:
            fixed += _NESTED_VALUE_BYTES if dtype.is_nested() else _OTHER_VALUE_BYTES
    if not lengths:
        return np.full(frame.height, fixed, np.int64)
    return frame.select(pl.sum_horizontal(lengths)).to_series().to_numpy() + fixed
