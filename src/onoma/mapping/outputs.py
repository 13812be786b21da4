"""Third stage: the rows of the input with their answers, part by part, and then as one file.

An input row with several links becomes as many rows, best first, those of a composite mention part by part; one with
none stays, with nulls in the columns of the answers. (Every format can hold that, a filter on ``rank`` gives the best
alone, and the columns are the same whatever the number of links. Lists would keep the number of rows, but CSV has
none.)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from onoma.artifacts.parquet import scan_parquet
from onoma.artifacts.system import error_number
from onoma.errors import InputError, first_line
from onoma.linking.strings import StringColumn
from onoma.mapping.answers import AnswerFiles
from onoma.mapping.collecting import distinct_mentions
from onoma.mapping.parts import ENDS_A_CELL, PART_ROWS, RAW, UNHELD, Part

FORMATS = (".parquet", ".csv", ".tsv", ".jsonl")


_CELLS_OF_ROW_GROUP, _LEAST_ROW_GROUP = 1 << 23, 1 << 10
"""A row group is in memory whole as it is written."""
_DAYS = (-96_465_291, 95_026_235)
"""From 1970-01-01, of the years -262143 to 262142: Polars writes no others as text."""


def check_types(schema: pl.Schema, output_format: str, path: Path) -> None:
    """Refuse columns that a format cannot hold.

    Raises:
        InputError: naming the first.
    """
    for name, dtype in schema.items():
        if not _holds(output_format, dtype):
            others = [other for other in (".jsonl", ".parquet") if all(_holds(other, one) for one in schema.values())]
            choose = f"choose an output ending in {' or '.join(others)}, or " if others else ""
            raise InputError(
                f"a {output_format} file cannot hold values of the type {dtype}",
                path=path,
                field=name,
                fix=f"{choose}leave the column out of the input",
            )


def _holds(output_format: str, dtype: pl.DataType) -> bool:
    if output_format != ".parquet" and isinstance(dtype, pl.BaseExtension):
        return False
    if output_format in {".csv", ".tsv"}:
        return not dtype.is_nested() and not isinstance(dtype, pl.Binary | pl.Duration | pl.Object)
    if output_format == ".jsonl":
        if isinstance(dtype, pl.List | pl.Array):
            return dtype.inner is not None and _holds(output_format, pl.Series(dtype=dtype.inner).dtype)
        if isinstance(dtype, pl.Struct):
            return all(_holds(output_format, pl.Series(dtype=field.dtype).dtype) for field in dtype.fields)
        if isinstance(dtype, pl.Map):
            has_names = isinstance(pl.Series(dtype=dtype.key).dtype, pl.String)
            return has_names and _holds(output_format, pl.Series(dtype=dtype.value).dtype)
        return not isinstance(dtype, pl.Binary | pl.Object)
    return not isinstance(dtype, pl.Object)


def check_cells(rows: pl.DataFrame, output_format: str, path: Path, n_before: int) -> None:
    """Refuse what the cells of a format cannot have, as tabs and ends of lines those of a TSV.

    Args:
        rows: Some rows of a table.
        output_format: One of `FORMATS`.
        path: The table.
        n_before: Rows of the table before these.

    Raises:
        InputError: naming column and row. (JSON, whose columns are not known at first, is looked at as it is read.)
    """
    for unheld in UNHELD.get(output_format, ()):
        for name in rows.columns:
            if unheld.pattern.search(name):
                raise InputError(
                    f"the name of a column has {unheld.problem}", path=path, found=repr(name), fix=unheld.fix
                )
            if isinstance(rows.schema[name], pl.String | pl.Categorical | pl.Enum):
                cells = rows[name].alias("").cast(pl.String)  # a name such as "*" would be a pattern
                row = cells.str.contains(unheld.pattern.pattern).arg_true()
                if len(row):
                    raise InputError(
                        f"row {n_before + row[0] + 1:,} has {unheld.problem}",
                        path=path,
                        field=name,
                        fix=unheld.fix,
                    )
    if output_format != ".parquet":
        _check_dates(rows, output_format, path, n_before)


def _check_dates(rows: pl.DataFrame, output_format: str, path: Path, n_before: int) -> None:
    for name in rows.columns:
        for dates, is_within in _dates_of(rows[name].alias("")):
            units = {"ms": 10**3, "us": 10**6, "ns": 10**9}
            a_day = 86_400 * units[dates.dtype.time_unit] if isinstance(dates.dtype, pl.Datetime) else 1
            days = dates.to_physical().cast(pl.Int64) // a_day
            wrong = (~days.is_between(*_DAYS)).arg_true()
            if len(wrong):
                where = f"one of the rows from {n_before + 1:,}" if is_within else f"row {n_before + wrong[0] + 1:,}"
                raise InputError(
                    f"{where} has a date that a {output_format} file cannot hold",
                    path=path,
                    field=name,
                    expected="the years -262143 to 262142",
                    found=f"{days[wrong[0]]:,} days from 1970-01-01",
                    fix="choose an output ending in .parquet, or mend the date",
                )


def _dates_of(column: pl.Series, *, is_within: bool = False) -> Iterator[tuple[pl.Series, bool]]:
    """A column if it is of dates, or those within its lists, maps and structs; and whether it was within these."""
    if isinstance(column.dtype, pl.Date | pl.Datetime):
        yield column, is_within
    elif isinstance(column.dtype, pl.List | pl.Array):
        yield from _dates_of(column.explode(), is_within=True)
    elif isinstance(column.dtype, pl.Map):
        yield from _dates_of(column.map.values(), is_within=True)
    elif isinstance(column.dtype, pl.Struct):
        for inner in column.struct.unnest().get_columns():  # by name a field such as "*" would be a pattern
            yield from _dates_of(inner.alias(""), is_within=True)


def check_ids(concept_ids: StringColumn, output_format: str, linker: Path) -> None:
    """Refuse concepts whose ids a format cannot hold: they are not to be changed.

    Raises:
        InputError: naming the first.
    """
    if output_format == ".tsv" and concept_ids.has_any(b"\t\r\n"):
        broken = next(filter(ENDS_A_CELL.search, concept_ids))
        unheld = UNHELD[".tsv"][0]
        raise InputError(f"the id of a concept has {unheld.problem}", path=linker, found=repr(broken), fix=unheld.fix)


def answered(part: Part, answers: AnswerFiles, columns: Mapping[str, str]) -> tuple[pl.DataFrame, int]:
    """The rows of a part with their answers.

    Args:
        part: Of the input.
        answers: Where links are looked up.
        columns: What the columns of the answers are called in the output, by field of `ANSWER_TYPES`.

    Returns:
        The rows, and how many rows of the input have a link.
    """
    keys, distinct = distinct_mentions(part.texts)
    links = answers.links_of(keys)
    texts = distinct.columns
    places = part.texts.join(
        distinct.with_row_index("place"), on=texts, how="left", maintain_order="left", nulls_equal=False
    )["place"]
    links_of_rows = links.gather(places)
    n_rows = links_of_rows.list.len().fill_null(0).to_numpy()
    repeated = np.repeat(np.arange(part.rows.height), np.maximum(n_rows, 1))
    # No list is empty, and one that is missing becomes one null.
    added = links_of_rows.explode().struct.unnest()
    n_linked = len(np.unique(repeated[added["concept_id"].is_not_null().to_numpy()]))
    rows = part.rows if len(repeated) == part.rows.height else part.rows[repeated]
    return pl.concat([rows, added.select(columns.keys()).rename(columns)], how="horizontal"), n_linked


def write_part(rows: pl.DataFrame, path: Path, output_format: str, answers: Sequence[str], *, is_first: bool) -> None:
    """Write rows as a part of an output.

    Args:
        rows: See `answered`.
        path: The file.
        output_format: One of `FORMATS`.
        answers: Which columns are answers.
        is_first: Whether the part is the one with the names of the columns, if the format has these once.

    Raises:
        InputError: Polars cannot write it.
        OSError: the system cannot, as where the disk is full.
    """
    try:
        _write_part(rows, path, output_format, answers, is_first=is_first)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        if (number := error_number(error)) is not None:
            raise OSError(number, os.strerror(number), str(path)) from None
        raise InputError(
            f"rows of the table cannot be written as {output_format}",
            found=first_line(error),
            fix="choose another kind of output, or leave out the column",
        ) from None


def _write_part(rows: pl.DataFrame, path: Path, output_format: str, answers: Sequence[str], *, is_first: bool) -> None:
    if output_format == ".parquet":
        rows.write_parquet(path)
    elif output_format == ".csv":
        rows.write_csv(path, include_header=is_first)
    elif output_format == ".tsv":
        # Cells of the input and ids were looked at before; names may have anything.
        texts = [name for name in answers if rows.schema[name] == pl.String]
        flat = rows.with_columns(rows[name].str.replace_all(ENDS_A_CELL.pattern, " ") for name in texts)
        flat.write_csv(path, include_header=is_first, separator="\t", quote_style="never")
    elif RAW in rows.columns:
        _with_answers(rows, answers).write_csv(path, include_header=False, quote_style="never")
    else:
        rows.write_ndjson(path)


def _with_answers(rows: pl.DataFrame, answers: Sequence[str]) -> pl.DataFrame:
    """Lines of JSON, with the answers added to the object of each."""
    line = pl.col(RAW).str.strip_chars().str.strip_suffix("}").str.strip_chars_end()
    comma = pl.when(line == "{").then(pl.lit("")).otherwise(pl.lit(","))
    added = pl.struct(*answers).struct.json_encode().str.slice(1)
    return rows.select(pl.concat_str(line, comma, added))


def join_parts(parts: Sequence[Path], whole: Path, output_format: str) -> None:
    """Put the parts of an output together; the same bytes whatever the number of threads.

    Args:
        parts: Of the output, in order, at least one.
        whole: The file to write.
        output_format: One of `FORMATS`.
    """
    if output_format == ".parquet":
        scanned = scan_parquet(parts)
        n_columns = len(scanned.collect_schema())
        row_group = min(PART_ROWS, max(_LEAST_ROW_GROUP, _CELLS_OF_ROW_GROUP // n_columns))
        scanned.sink_parquet(whole, row_group_size=row_group, maintain_order=True)
        return
    with whole.open("wb") as handle:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, handle, 1 << 20)
