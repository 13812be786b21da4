"""JSON Lines tables: an object on each line.

To JSON Lines a line is passed on as it stands, with the answers added to its object. Other outputs get a column for
each key that occurs; every value is then text: numbers as they are spelt, lists and objects as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from onoma.errors import InputError, did_you_mean
from onoma.files.json_lines import BadLineError, Number, json_object
from onoma.files.text_files import only_file, text_lines
from onoma.mapping.parts import RAW, Unheld, Wanted, reading_of_table, texts_frame
from onoma.types import Progress

MAX_KEYS = 10_000
"""More of them are no columns but values."""
_CELLS_AT_ONCE = 1 << 22
"""Of a frame; of many keys each line may have few."""


class JsonLinesTable:
    """A file of JSON Lines, plain or gzip. Lines with nothing in them are passed over.

    Args:
        path: The file.
        wanted: What is asked of it. A key that is missing in a line is a null there; it must occur in one at least.
        is_raw: Give lines as they stand.
        unheld: Refuse keys and values that have any of these.
        encoding: As `onoma.files.encodings.checked_encoding` gives it.
        columns: Keys that become columns, as a first reading found them; without them (and not raw) the rows have none.
    """

    def __init__(
        self,
        path: Path,
        wanted: Wanted,
        *,
        is_raw: bool,
        unheld: Sequence[Unheld] = (),
        encoding: str | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        self.path, self._wanted, self._columns = path, wanted, list(columns)
        self._is_raw, self._unheld, self._encoding = is_raw, unheld, encoding
        self._file = only_file(path)
        self._seen: dict[str, None] = {}

    @property
    def columns(self) -> list[str]:
        """Keys seen so far."""
        return list(self._seen)

    def with_columns(self, columns: Sequence[str]) -> JsonLinesTable:
        """The same table, for another reading, with the columns that the first one found."""
        return JsonLinesTable(
            self.path,
            self._wanted,
            is_raw=self._is_raw,
            unheld=self._unheld,
            encoding=self._encoding,
            columns=columns,
        )

    def frames(self, progress: Progress) -> Iterator[pl.DataFrame]:
        """See `onoma.mapping.parts.InputTable.frames`."""
        reading = reading_of_table(progress, self._encoding)
        yield self._frame([], [])
        for first_line, block in text_lines(self._file, reading):
            lines, records = [], []
            for number, line in enumerate(block, first_line):
                if line and not line.isspace():
                    try:
                        records.append(self._record(line, number))
                    except BadLineError as problem:
                        reading.reject(
                            str(problem),
                            path=self.path,
                            line=number,
                            text=line,
                            field=problem.field,
                            fix=problem.fix,
                        )
                    lines.append(line)
            at_once = max(1, _CELLS_AT_ONCE // max(1, len(self._columns)))
            for begin in range(0, len(records), at_once):
                yield self._frame(lines[begin : begin + at_once], records[begin : begin + at_once])
        for name in self._wanted.asked:
            if name not in self._seen:
                raise InputError(
                    f"no line has the key '{name}'.{did_you_mean(name, self._seen)}",
                    path=self.path,
                    field=name,
                    expected=f"one of {', '.join(self._seen)}" if self._seen else "a JSON object on each line",
                )

    def _record(self, line: str, number: int) -> dict[str, Any]:
        record = _parse(line)
        new = record.keys() - self._seen.keys()
        if new:
            self._wanted.check_clash(record, self.path, line=number)
            self._seen.update(dict.fromkeys(record))
            if len(self._seen) > MAX_KEYS:
                raise BadLineError(f"more than {MAX_KEYS} different keys by this line, which cannot be columns")
        for name in self._wanted.asked:
            if isinstance(record.get(name), list | dict):
                raise BadLineError("a list or an object where a text belongs", name)
        for unheld in self._unheld:
            for name, value in record.items():
                if unheld.pattern.search(name) or unheld.pattern.search(_text(value) or ""):
                    raise BadLineError(unheld.problem, name, unheld.fix)
        return record

    def _frame(self, lines: Sequence[str], records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
        if self._is_raw:
            rows = pl.DataFrame({RAW: lines}, schema={RAW: pl.String})
        else:
            cells: dict[str, list[str | None]] = {name: [None] * len(records) for name in self._columns}
            for row, record in enumerate(records if cells else ()):
                for name, value in record.items():
                    if name in cells:  # not if the file was changed since its keys were read, which is told in the end
                        cells[name][row] = _text(value)
            rows = pl.DataFrame(cells, schema=dict.fromkeys(self._columns, pl.String))
        mentions = [_text(record.get(self._wanted.column)) for record in records]
        contexts = None
        if self._wanted.context is not None:
            contexts = [_text(record.get(self._wanted.context)) or "" for record in records]
        texts = texts_frame([text if text and not text.isspace() else None for text in mentions], contexts)
        return pl.concat([rows, texts], how="horizontal")


_as_json = json.JSONEncoder(ensure_ascii=False).encode
"""`json.dumps` would make an encoder for each value."""


class _Piece(str):
    """What stands between the values of lists and objects."""

    __slots__ = ()


def _parse(line: str) -> dict[str, Any]:
    record = json_object(line)
    if "\\ud" in line.lower():
        try:
            _spelt(record).encode()
        except UnicodeEncodeError:
            raise BadLineError("half a character (a lone surrogate)") from None
    return record


def _text(value: Any) -> str | None:
    """A value as a cell."""
    if value is None or isinstance(value, str):
        return value
    return _spelt(value)


def _spelt(value: Any) -> str:
    """A value as JSON, its numbers as they were spelt; however deeply it is nested."""
    pieces: list[str] = []
    waiting: list[Any] = [value]
    while waiting:
        match waiting.pop():
            case _Piece() | Number() as text:
                pieces.append(str(text))
            case dict() as record:
                waiting.append(_Piece("}"))
                for number, (key, inner) in reversed(list(enumerate(record.items()))):
                    waiting += [inner, _Piece(f"{', ' if number else ''}{_as_json(key)}: ")]
                pieces.append("{")
            case list() as values:
                waiting.append(_Piece("]"))
                for number, inner in reversed(list(enumerate(values))):
                    waiting += [inner, _Piece(", " if number else "")]
                pieces.append("[")
            case other:
                pieces.append(_as_json(other))
    return "".join(pieces)
