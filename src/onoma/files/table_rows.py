"""Rows of a table as text, in batches, from CSV, TSV, Parquet or JSON Lines.

Every function yields the column `LINE` (1-based; for Parquet the row) and the columns asked for: String, or a list of
String where the file has lists and the column may be one.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from onoma.artifacts.parquet import scan_parquet
from onoma.errors import InputError, did_you_mean
from onoma.files.archives import SourceFile
from onoma.files.csv_problems import CARRIAGE_RETURN
from onoma.files.delimited import filled_lines, first_line, first_line_of, read_delimited
from onoma.files.json_lines import BadLineError, json_object, json_text
from onoma.files.quoted import ROWS_PER_BATCH, long_fields, read_quoted
from onoma.files.reading import Reading
from onoma.files.text_files import read_blocks, text_lines

Row = dict[str, Any]
LINE = "\0line"
"""Column with the numbers of lines; the columns of a file may have any name, but not this one."""


_DELIMITERS = {"csv": ",", "tsv": "\t"}
_SIGNS = (",", "\t", ";", "|")
_SIGNS_OF_COMMENTS = ("#", "!")
_SIGN_NAMED = re.compile("(?i)sep=.?")
_IF_QUOTED = "if cells stand in double quotes, say so (onoma terminology import table: --set quoting=yes)"
_QUOTED = "rows with a cell in double quotes, kept as part of it (a terminology: --set quoting=yes takes them off)"
_TABS = "lines with a tab, where the columns that follow it may have another place than positions says"
_NO_TABLES = {".json": "a JSON document", **dict.fromkeys((".xlsx", ".xls", ".ods"), "a workbook")}
PARQUET, JSON_LINES = frozenset({"parquet", "pq"}), frozenset({"jsonl", "ndjson"})
"""What the names of such files end in."""
NO_ENCODING = "a Parquet file is no text, of which an encoding could be said"


class MissingColumnError(InputError):
    """A table without a column that is asked for, which is the error's field."""


def ending_of(file: SourceFile) -> str:
    """What a file's name ends in, ``.gz`` aside, in small letters: what kind of file it is."""
    _, dot, ending = file.base.lower().removesuffix(".gz").rpartition(".")
    return ending if dot else ""


def is_table(file: SourceFile) -> bool:
    """Whether `table_rows` reads it."""
    return ending_of(file) in PARQUET | JSON_LINES | _DELIMITERS.keys()


def table_rows(file: SourceFile, reading: Reading, *, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Rows of a table, whose kind its name tells: one text for each column.

    Raises:
        MissingColumnError: a column is missing.
        InputError: a column is there twice, or, under "strict", a row is bad.
    """
    ending = ending_of(file)
    if ending in PARQUET:
        return parquet_rows(file, reading, columns=columns, may_be_lists=())
    if ending in JSON_LINES:
        return json_rows(file, reading, columns=columns, may_be_lists=(), separator=None)
    return text_rows(file, reading, columns=columns)


def text_rows(
    file: SourceFile,
    reading: Reading,
    *,
    columns: Sequence[str],
    delimiter: str | None = None,
    quoting: Literal["auto", "yes", "no"] = "auto",
    advice: str = "close it",
    header: Sequence[str] | None = None,
) -> Iterator[pl.DataFrame]:
    """Rows of a CSV or TSV file, quoted or not.

    Args:
        file: Plain or gzip.
        reading: Where bad rows go.
        columns: Those wanted.
        delimiter: What divides them; unset: see `dividing_sign`.
        quoting: Whether cells may stand in double quotes; "auto": unless tabs divide them.
        advice: What to do about a quote left open.
        header: Names of the first columns, where no line names them; the others have none, nor one whose name is "".

    Raises:
        InputError: as `table_rows`, and if there are more names than columns.
    """

    def check_fields(fields: list[str], line: int) -> None:
        _check_columns(fields, columns, file.path, line=line)

    def name_fields(cells: list[str], line: int) -> list[str]:
        fields = _named(header or (), cells, delimiter or "", file.path, line)
        _check_columns([name for name in header or () if name], columns, file.path, line=line)
        return fields

    if delimiter is None:
        delimiter = dividing_sign(file, reading, columns, n_columns=None if header is None else len(header))
    are_kept = quoting == "auto" and delimiter == "\t"
    may_be_quoted = quoting != "no" and not are_kept
    first: tuple[int, bytes] | None = None
    has_quotes = False
    for block in read_blocks(file, reading):
        first = first or first_line_of(block, file.path, reading)
        has_quotes = has_quotes or (may_be_quoted and b'"' in block.data)
        if first and (has_quotes or not may_be_quoted):
            break
    if has_quotes:
        return read_quoted(
            file,
            reading,
            delimiter=delimiter,
            keep=columns,
            check_fields=check_fields,
            name_fields=None if header is None else name_fields,
            advice=advice,
            line_column=LINE,
        )
    if first is None:
        expected = "the names of the columns" if header is None else "rows"
        raise InputError("the file has only blank lines", path=file.path, expected=expected)
    line, text = first
    cells = text.decode().split(delimiter)
    if header is None:
        fields = [name.strip() for name in cells]
        check_fields(fields, line)
    elif b"\r" in text and block.first_line == block.n_lines == 1:
        raise InputError(CARRIAGE_RETURN, path=file.path, line=line)
    else:
        fields = name_fields(cells, line)
    rows = read_delimited(
        file,
        reading,
        separator=delimiter,
        fields=fields,
        keep=columns,
        skip_lines=line if header is None else 0,
        skip_blank_lines=True,
        line_column=LINE,
        if_quoted=_IF_QUOTED if are_kept else None,
    )
    return _noting_quotes(rows, columns, reading) if are_kept else rows


def placed_rows(
    file: SourceFile,
    reading: Reading,
    *,
    columns: Sequence[str],
    positions: Mapping[str, tuple[int, int | None]],
    continued: str | None = None,
    texts: Collection[str] = (),
) -> Iterator[pl.DataFrame]:
    """Rows of a text file in which each column has its place in the line; blank lines are passed over.

    White space at both ends of a cell is no part of it. A line that ends before a column has an empty cell there.

    Args:
        file: Plain or gzip.
        reading: Where bad rows go.
        columns: Those wanted.
        positions: Of each column its first and its last character in a line, from 1; ``None``: to the end of the line.
        continued: A line with the same text in this column as the line before it is part of the same row.
        texts: Columns that such a line continues; of the others the first that says something counts.

    Raises:
        InputError: as `onoma.files.delimited.filled_lines`, and if a column has no place.
    """
    _check_columns(list(positions), columns, file.path)
    rows = _placed_cells(file, reading, columns, positions)
    return rows if continued is None else _joined(rows, continued, texts)


def _placed_cells(
    file: SourceFile, reading: Reading, columns: Sequence[str], positions: Mapping[str, tuple[int, int | None]]
) -> Iterator[pl.DataFrame]:
    for lines in filled_lines(file, reading):
        reading.note(_TABS, int(lines["whole"].str.contains("\t", literal=True).sum()))
        cells = [pl.col("line")]
        for place, column in enumerate(columns):
            first, last = positions[column]
            cell = pl.col("whole").str.slice(first - 1, None if last is None else last - first + 1)
            cells.append(cell.str.strip_chars().alias(str(place)))
        rows = lines.select(cells)
        rows.columns = [LINE, *columns]
        yield rows


def _joined(rows: Iterator[pl.DataFrame], continued: str, texts: Collection[str]) -> Iterator[pl.DataFrame]:
    """One row of each run of rows with the same text in a column, with a blank between the parts of ``texts``.

    A row in which the column is empty is none of a run.
    """
    waiting: pl.DataFrame | None = None
    for part in rows:
        found = part if waiting is None else pl.concat([waiting, part])
        names = found.columns
        key, line = names.index(continued), names.index(LINE)
        found.columns = [str(place) for place in range(found.width)]
        begins_run = (pl.nth(key) != pl.nth(key).shift()) | (pl.nth(key) == "")
        others = []
        for place, name in enumerate(names):
            filled = pl.nth(place).filter(pl.nth(place) != "")
            if place not in (key, line):
                others.append(filled.str.join(" ") if name in texts else filled.first().fill_null(""))
        joined = (
            found.group_by(begins_run.fill_null(True).cum_sum().alias("run"), maintain_order=True)
            .agg(pl.nth(key, line).first(), *others)
            .select(found.columns)
        )
        joined.columns = names
        yield joined[:-1]
        waiting = joined[-1:]  # the next part may go on with it
    if waiting is not None:
        yield waiting


def _named(header: Sequence[str], cells: Sequence[str], delimiter: str, path: Path, line: int) -> list[str]:
    """Names of all columns of a file whose first row has these cells: those given, else such as no column has."""
    if len(cells) < len(header):
        raise InputError(
            "more names than columns",
            path=path,
            line=line,
            field="header",
            expected=f"names of {len(cells)} columns divided by {'tabs' if delimiter == chr(9) else repr(delimiter)}",
            found=str(len(header)),
            fix="say which sign divides the columns (option delimiter), or give fewer names",
        )
    names = itertools.zip_longest(header, cells)
    return [name or f"{LINE}{place}" for place, (name, _) in enumerate(names)]


def _noting_quotes(rows: Iterator[pl.DataFrame], columns: Sequence[str], reading: Reading) -> Iterator[pl.DataFrame]:
    """The same, with a note on cells that look like those of a quoted file."""
    for part in rows:
        is_quoted = [pl.nth(part.columns.index(column)).str.contains(r'^".*"$') for column in columns]
        reading.note(_QUOTED, part.select(pl.any_horizontal(is_quoted).sum()).item() if columns else 0)
        yield part


def parquet_columns(file: SourceFile, reading: Reading) -> list[str]:
    """The columns of a Parquet file.

    Raises:
        InputError: it is none, or damaged, or in an archive.
    """
    return list(_scan(file, reading)[1])


def parquet_rows(
    file: SourceFile, reading: Reading, *, columns: Sequence[str], may_be_lists: Collection[str]
) -> Iterator[pl.DataFrame]:
    """Rows of a Parquet file; integers, truth values and categories become text."""
    path = file.path
    scanned, schema = _scan(file, reading)
    _check_columns(list(schema), columns, path)
    # By their places: to an expression a name such as "*" or "^a$" would be a pattern.
    places = {column: schema.names().index(column) for column in columns}
    with _damage_told(path):
        rows = scanned.select(pl.nth(place).alias(str(place)) for place in places.values()).collect()
    reading.files.append(path)
    converted = []
    for column in columns:
        dtype, cells = schema[column], pl.col(str(places[column]))
        of_list = dtype.inner if isinstance(dtype, pl.List | pl.Array) and column in may_be_lists else None
        if of_list is not None and _is_text(pl.Series(dtype=of_list).dtype):
            as_list = cells.arr.to_list() if isinstance(dtype, pl.Array) else cells
            converted.append(as_list.cast(pl.List(pl.String)))
        elif dtype == pl.Null or _is_text(dtype):  # Null: no cell has a value
            converted.append(cells.cast(pl.String).fill_null(""))
        else:
            raise InputError(
                "a column of a type that is no text",
                path=path,
                field=column,
                expected="text, whole numbers, truth values or categories"
                + (", or lists of them" if column in may_be_lists else ""),
                found=str(dtype),
                fix="write the table again with this column as text",
            )
    rows = rows.select(converted).with_row_index(LINE, offset=1)
    rows.columns = [LINE, *columns]
    for batch in rows.iter_slices(ROWS_PER_BATCH):
        yield batch
        reading.tell(int(batch[LINE][-1]), len(rows), path.name)


def parquet_records(file: SourceFile, reading: Reading, *, columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """The number and the cells of each row, of whatever type: lists and dicts too.

    Raises:
        InputError: it is no Parquet file, or damaged, or in an archive, or lacks a column.
    """
    scanned, schema = _scan(file, reading)
    _check_columns(list(schema), columns, file.path)
    with _damage_told(file.path):
        rows = scanned.select(columns).collect()
    reading.files.append(file.path)
    for number, row in enumerate(rows.iter_rows(named=True), 1):
        yield number, row
        reading.tell(number, len(rows), file.path.name, last=number == len(rows))


def _scan(file: SourceFile, reading: Reading) -> tuple[pl.LazyFrame, pl.Schema]:
    path = file.path
    if file.member is not None:
        raise InputError("a Parquet file in an archive", path=path, fix="unpack it")
    if reading.encoding is not None:
        raise InputError(NO_ENCODING, path=path, field="encoding", found=reading.encoding, fix="leave it out")
    with _damage_told(path):
        scanned = scan_parquet(path)
        return scanned, scanned.collect_schema()


@contextlib.contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:  # Polars panics on some damage
        raise InputError(
            "not a Parquet file, or a damaged one", path=path, found=str(error), fix="write or download it again"
        ) from None


def _is_text(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or isinstance(dtype, pl.String | pl.Boolean | pl.Categorical | pl.Enum)


def json_rows(
    file: SourceFile,
    reading: Reading,
    *,
    columns: Sequence[str],
    may_be_lists: Collection[str],
    separator: str | None,
) -> Iterator[pl.DataFrame]:
    """Rows of a JSON Lines file: an object on each line, whose keys are the columns.

    A key that is missing in a line is an empty cell; one that is missing in all of them is an error. Numbers keep the
    spelling of the file. Columns that may be lists are lists throughout.
    """
    path = file.path
    schema = pl.Schema(
        {
            LINE: pl.UInt32(),
            **{name: pl.List(pl.String) if name in may_be_lists else pl.String() for name in columns},
        }
    )
    seen: dict[str, None] = {}
    batch: list[Row] = []
    for begin, lines in text_lines(file, reading):
        for number, line in enumerate(lines, begin):
            if not line.strip():
                continue
            try:
                record = json_object(line)
                seen.update(dict.fromkeys(record))
                batch.append({LINE: number, **{name: _cell(record, name, may_be_lists, separator) for name in columns}})
            except BadLineError as problem:
                reading.reject(str(problem), path=path, line=number, text=line, field=problem.field)
        if len(batch) >= ROWS_PER_BATCH:
            _check_keys(seen, columns[:1], path)  # a wrong name of the first is told before a million rows are rejected
            yield pl.DataFrame(batch, schema=schema)
            batch = []
    if seen:
        _check_keys(seen, columns, path)
    if batch:
        yield pl.DataFrame(batch, schema=schema)


def _cell(record: Row, name: str, may_be_lists: Collection[str], separator: str | None) -> list[str] | str:
    value = record.get(name)
    if name not in may_be_lists:
        if isinstance(value, list):
            raise BadLineError("a list where one value belongs", name)
        return json_text(value, name)
    if isinstance(value, list):
        return [json_text(element, name) for element in value]
    text = json_text(value, name)
    return [text] if separator is None else [part.strip() for part in text.split(separator)]


def _check_keys(seen: Collection[str], columns: Sequence[str], path: Path) -> None:
    for column in columns:
        if column not in seen:
            raise MissingColumnError(
                f"no line has the key '{column}'.{did_you_mean(column, seen)}",
                path=path,
                field=column,
                expected=f"one of {', '.join(seen)}",
                fix="say which key is what with the options id, name, ...",
            )


def check_is_table(ending: str, path: str | Path) -> None:
    """Refuse a file that is no table, by the end of its name, such as ``.xlsx``.

    Raises:
        InputError: it is none.
    """
    if ending in _NO_TABLES:
        raise InputError(
            f"{_NO_TABLES[ending]} cannot be read or written as a table",
            path=path,
            fix="take CSV, Parquet or JSON Lines (.jsonl: an object on each line)",
        )


def dividing_sign(file: SourceFile, reading: Reading, columns: Sequence[str], *, n_columns: int | None = None) -> str:
    """What divides the columns of a CSV or TSV file: what its name tells, unless the first line tells otherwise.

    Another sign is taken where it alone gives the columns asked for, or as many, or the usual one divides nothing.

    Args:
        file: Plain or gzip.
        reading: Knows the encoding.
        columns: Those asked for.
        n_columns: How many there are at least, where the first line is a row; ``None``: it names them.

    Raises:
        InputError: as `onoma.files.text_files.read_blocks`, and if the line is no text.
    """
    line, header = first_line(file, reading)
    if _SIGN_NAMED.fullmatch(header.strip()):
        raise InputError(
            "a line that names what divides the columns, for a spreadsheet",
            path=file.path,
            line=line,
            expected="the names of the columns",
            found=header,
            fix="take the line out",
        )
    usual = _DELIMITERS.get(ending_of(file), "\t")
    if "\r" in header:  # who reads the rows says what is wrong
        return usual
    signs = [usual, *(sign for sign in _SIGNS if sign != usual and sign in header)]

    def fields(sign: str) -> list[str]:
        row = header.split(sign) if sign == "\t" else next(csv.reader([header], delimiter=sign), [])
        return [name.strip() for name in row]

    with long_fields():
        found = {sign: fields(sign) for sign in signs}
    if n_columns is None:
        fitting = (sign for sign in signs if set(columns) <= set(found[sign]))
    else:
        fitting = (sign for sign in signs if len(found[sign]) >= max(n_columns, 2))
    # If a column is missing, those that are there can at least be told.
    otherwise = usual if len(found[usual]) > 1 else max(signs, key=lambda sign: len(found[sign]))
    return next(fitting, otherwise)


def _check_columns(fields: list[str], columns: Sequence[str], path: Path, *, line: int | None = None) -> None:
    if line is not None and any("\r" in field for field in fields) and not set(columns) <= set(fields):
        raise InputError(CARRIAGE_RETURN, path=path, line=line)
    for column in columns:
        if fields.count(column) == 1:
            continue
        if not column:
            raise InputError("the name of a column is empty", path=path, expected=f"one of {', '.join(fields)}")
        if column in fields:
            raise InputError(
                f"two columns are called '{column}'", path=path, line=line, field=column, fix="rename one of them"
            )
        hint = "" if line is None or len(fields) > 1 else ", or name another delimiter (option delimiter)"
        if line is not None and fields[0].startswith(_SIGNS_OF_COMMENTS):
            hint += f", and if this line is a comment, what it begins with (option comment, e.g. {fields[0][0]})"
        raise MissingColumnError(
            f"there is no column '{column}'.{did_you_mean(column, fields)}",
            path=path,
            line=line,
            field=column,
            expected=f"one of {', '.join(fields)}",
            fix=f"say which column is what with the options id, name, ...{hint}",
        )
