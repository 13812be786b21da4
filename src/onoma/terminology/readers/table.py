"""Any table with a column of codes and one or more of names: CSV, TSV, Parquet.

Rows of one code need not lie together; each adds names. Of a row, the names stand in the order of the columns given,
a cell's in its own order. CSV fields may be quoted (RFC 4180), TSV fields are not unless ``quoting=yes``. A Parquet
column may hold lists of names. Outer white space of codes is stripped, that of names only where a cell is divided.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from onoma.errors import InputError, did_you_mean
from onoma.terminology.assembly import SOURCE_NAMES, SOURCE_TYPES, SourceTables
from onoma.terminology.delimited import read_delimited
from onoma.terminology.formats import Format
from onoma.terminology.options import ReaderOptions, Words
from onoma.terminology.reading import Check, Reading
from onoma.terminology.text_files import LineBlock, check_is_file, line_problem, read_blocks, text_lines

_PREFERRED_WORDS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "preferred", "p"), True),
    **dict.fromkeys(("", "0", "false", "f", "no", "n", "synonym", "s"), False),
}
_LANGUAGE_TAG = r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$"
_MAX_FIELD_BYTES = 64 << 20
_ROWS_PER_BATCH = 1 << 16


class TableOptions(ReaderOptions):
    """Options of the table reader."""

    id: str = Field(description="column with the code of the concept")
    name: Words = Field(min_length=1, description="column(s) with names; of several the first holds the preferred one")
    preferred: str | None = Field(
        default=None,
        description="column that marks preferred names (true/false, 1/0, yes/no); unset: a code's first name",
    )
    language: str | None = Field(default=None, description="column with the language (BCP 47)")
    semantic_type: str | None = Field(default=None, description="column with the semantic type")
    source: str | None = Field(default=None, description="column with the source vocabulary")
    separator: str | None = Field(default=None, description="what divides several names (or types) in one cell, e.g. |")
    default_language: str = Field(default="und", description="language where the table does not say")
    delimiter: str = Field(
        default="auto", description="what divides the columns: auto (by file name), tab, or a character"
    )
    quoting: Literal["auto", "yes", "no"] = Field(
        default="auto", description="whether fields may stand in double quotes: auto (CSV yes, TSV no), yes, no"
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of the table that is used."""
        optional = (self.preferred, self.language, self.semantic_type, self.source)
        return tuple(dict.fromkeys([self.id, *self.name, *(column for column in optional if column)]))


def read_table(source: str, options: TableOptions, reading: Reading) -> SourceTables:
    """Read a table.

    Args:
        source: ``.parquet``, or text (``.csv``, ``.tsv``, ``.txt``; plain or gzip).
        options: Which column is what.
        reading: Where bad rows go.

    Raises:
        InputError: no such file or column; under "strict" also a row without code or name, with another number of
            fields, or with a language or mark that cannot be.
    """
    path = Path(source)
    check_is_file(path)
    is_parquet = path.suffix.lower() in {".parquet", ".pq"}
    batches = _parquet_rows(path, options, reading) if is_parquet else _text_rows(path, options, reading)
    names, types = [pl.DataFrame(schema=SOURCE_NAMES)], [pl.DataFrame(schema=SOURCE_TYPES)]
    for batch in batches:
        rows = _checked(batch, options, path, reading)
        names.append(_names(rows, options))
        if options.semantic_type:
            types.append(
                rows.select(
                    concept_id=options.id, semantic_type=_pieces(rows, options.semantic_type, options), line="line"
                )
                .explode("semantic_type")
                .filter(pl.col("semantic_type").str.strip_chars() != "")
            )
    return SourceTables(path=path, names=pl.concat(names), semantic_types=pl.concat(types))


def _pieces(rows: pl.DataFrame, column: str, options: TableOptions) -> pl.Expr:
    """The texts of a cell, as a list."""
    if isinstance(rows.schema[column], pl.List):
        return pl.col(column).fill_null([])
    if options.separator is None:
        return pl.concat_list(pl.col(column))
    return pl.col(column).str.split(options.separator).list.eval(pl.element().str.strip_chars())


def _is_text(column: str) -> pl.Expr:
    return pl.col(column).str.strip_chars() != ""


def _checked(rows: pl.DataFrame, options: TableOptions, path: Path, reading: Reading) -> pl.DataFrame:
    rows = rows.with_columns(pl.col(options.id).str.strip_chars())
    rows = rows.with_columns(_names_of_row=pl.concat_list(_pieces(rows, column, options) for column in options.name))
    rows = rows.with_columns(
        pl.col("_names_of_row").list.eval(pl.element().filter(pl.element().str.strip_chars() != ""))
    )
    names, words = pl.col("_names_of_row"), ",".join(options.name)
    shown = options.name[0] if rows.schema[options.name[0]] == pl.String else options.id
    checks = [
        Check(_is_text(options.id), options.id, "a code", shown),
        Check(names.list.len() > 0, words, "a name", options.id),
        Check(~names.list.join("").str.contains("\0", literal=True), words, "no NUL character", options.id),
    ]
    if options.language:
        tag = pl.col(options.language)
        is_tag = (tag == "") | tag.str.contains(_LANGUAGE_TAG)
        checks.append(Check(is_tag, options.language, "a BCP 47 tag, e.g. en", options.language))
    if options.preferred:
        mark = pl.col(options.preferred).str.strip_chars().str.to_lowercase()
        expected = "true or false, 1 or 0, yes or no"
        checks.append(Check(mark.is_in(list(_PREFERRED_WORDS)), options.preferred, expected, options.preferred))
    return reading.keep_valid(rows, checks, path=path)


def _names(rows: pl.DataFrame, options: TableOptions) -> pl.DataFrame:
    default_language = pl.lit(options.default_language)
    language = default_language
    if options.language:
        tag = pl.col(options.language).str.replace_all("_", "-", literal=True)
        lower = tag.str.extract("^([A-Za-z]+)").str.to_lowercase() + tag.str.replace("^[A-Za-z]+", "")
        language = pl.when(tag == "").then(default_language).otherwise(lower)
    is_marked = pl.lit(True)
    if options.preferred:
        mark = pl.col(options.preferred).str.strip_chars().str.to_lowercase()
        is_marked = mark.replace_strict(_PREFERRED_WORDS, return_dtype=pl.Boolean)
    return rows.select(
        concept_id=options.id,
        text="_names_of_row",
        language=language,
        source=pl.col(options.source) if options.source else pl.lit(""),
        term_type=pl.lit(""),
        preference=pl.when(is_marked).then(0).otherwise(1).cast(pl.UInt8),
        is_suppressed=pl.lit(False),
    ).explode("text")


def _text_rows(path: Path, options: TableOptions, reading: Reading) -> Iterator[pl.DataFrame]:
    delimiter = _delimiter(path, options)
    may_be_quoted = options.quoting == "yes" or (options.quoting == "auto" and delimiter != "\t")
    header_line = b""
    has_quotes = False
    for block in read_blocks(path, reading):
        header_line = header_line or _first_line(block, path)
        has_quotes = has_quotes or (may_be_quoted and b'"' in block.data)
        if has_quotes or not may_be_quoted:
            break
    if has_quotes:
        return _quoted_rows(path, delimiter, options, reading)
    fields = [name.strip() for name in header_line.decode().split(delimiter)]
    _check_columns(fields, options, path, delimiter)
    return read_delimited(
        path,
        reading,
        separator=delimiter,
        fields=fields,
        keep=options.columns,
        skip_lines=1,
        skip_blank_lines=True,
    )


def _first_line(block: LineBlock, path: Path) -> bytes:
    line = block.data.split(b"\n", 1)[0]
    problem = line_problem(line)
    if problem:
        raise InputError(problem, path=path, line=1, fix="convert the file to UTF-8")
    return line


def _quoted_rows(path: Path, delimiter: str, options: TableOptions, reading: Reading) -> Iterator[pl.DataFrame]:
    former_limit = csv.field_size_limit(_MAX_FIELD_BYTES)
    try:
        lines = (line + "\n" for _, block in text_lines(path, reading) for line in block)
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        fields: list[str] = []
        batch: list[tuple[int, list[str]]] = []
        while True:
            line = rows.line_num + 1
            try:
                row = next(rows)
            except StopIteration:
                break
            except csv.Error as error:
                if "end of data" in str(error):  # all that follows would be swallowed as one value
                    raise InputError(
                        "a quote is opened and never closed",
                        path=path,
                        line=line,
                        fix="close it, or import with --set quoting=no if quotes are ordinary characters here",
                    ) from None
                reading.reject(f"not CSV ({error})", path=path, line=line, text="", found="a quote out of place")
                continue
            if not fields:
                fields = [name.strip() for name in row]
                _check_columns(fields, options, path, delimiter)
                positions = [fields.index(column) for column in options.columns]
            elif row and len(row) != len(fields):
                reading.reject(
                    "wrong number of fields",
                    path=path,
                    line=line,
                    text=delimiter.join(row),
                    expected=f"{len(fields)} fields divided by '{delimiter}'",
                    found=str(len(row)),
                )
            elif row:
                batch.append((line, [row[position] for position in positions]))
                if len(batch) == _ROWS_PER_BATCH:
                    yield _batch_frame(batch, options)
                    batch = []
        if batch:
            yield _batch_frame(batch, options)
    finally:
        csv.field_size_limit(former_limit)


def _batch_frame(batch: list[tuple[int, list[str]]], options: TableOptions) -> pl.DataFrame:
    columns = dict(zip(options.columns, zip(*(row for _, row in batch), strict=True), strict=True))
    return pl.DataFrame(
        {"line": [line for line, _ in batch], **columns},
        schema={"line": pl.UInt32, **dict.fromkeys(options.columns, pl.String)},
    )


def _parquet_rows(path: Path, options: TableOptions, reading: Reading) -> Iterator[pl.DataFrame]:
    try:
        scanned = pl.scan_parquet(path)
        schema = scanned.collect_schema()
        _check_columns(list(schema), options, path, None)
        rows = scanned.select(options.columns).collect()
    except (pl.exceptions.ComputeError, OSError) as error:
        raise InputError("not a Parquet file, or a damaged one", path=path, found=str(error)) from None
    reading.files.append(path)
    converted = []
    for column in options.columns:
        dtype = schema[column]
        is_list = isinstance(dtype, pl.List) and column in {*options.name, options.semantic_type}
        if is_list:
            converted.append(pl.col(column).cast(pl.List(pl.String)))
        elif dtype.is_integer() or dtype in {pl.String, pl.Boolean, pl.Categorical} or isinstance(dtype, pl.Enum):
            converted.append(pl.col(column).cast(pl.String).fill_null(""))
        else:
            raise InputError("a column of a type that is no text", path=path, field=column, found=str(dtype))
    rows = rows.select(converted).with_row_index("line", offset=1)
    for batch in rows.iter_slices(_ROWS_PER_BATCH):
        yield batch
        reading.tell(int(batch["line"][-1]), len(rows), path.name)


def _check_columns(fields: list[str], options: TableOptions, path: Path, delimiter: str | None) -> None:
    for column in options.columns:
        if fields.count(column) == 1:
            continue
        twice = column in fields
        hint = "" if delimiter is None or len(fields) > 1 else "; or is another delimiter meant (option delimiter)?"
        raise InputError(
            f"two columns are called '{column}'"
            if twice
            else f"there is no column '{column}'.{did_you_mean(column, fields)}",
            path=path,
            line=None if delimiter is None else 1,
            field=column,
            expected=f"one of {', '.join(fields)}" if not twice else None,
            fix=f"say which column is what with the options id, name, ...{hint}",
        )


def _delimiter(path: Path, options: TableOptions) -> str:
    if options.delimiter == "auto":
        suffixes = [suffix.lower() for suffix in path.suffixes]
        return "," if ".csv" in suffixes else "\t"
    delimiter = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}.get(
        options.delimiter, options.delimiter
    )
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\n\r':
        raise InputError("a delimiter is one ASCII character", field="delimiter", found=options.delimiter)
    return delimiter


FORMAT = Format(
    name="table",
    description="any CSV, TSV or Parquet table; options say which column is what",
    source="a .csv, .tsv, .txt (plain or gzip) or .parquet file with a header",
    obtain="your own codes and names; most vocabularies offer such an export",
    licence="that of the vocabulary",
    options=TableOptions,
    read=read_table,
)
