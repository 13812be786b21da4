"""Any table with a column of codes and one or more of names: CSV, TSV, Parquet, JSON Lines.

Rows with the same code need not be together; each adds names. Within a row, names are in the order of the columns
given, and within a cell in the cell's order. CSV fields may be quoted (RFC 4180); TSV fields are not unless
``quoting=yes``. A Parquet column, or a cell of JSON Lines (``.jsonl``, ``.ndjson``: one object per line), may hold a
list of names. Numbers in JSON Lines keep their spelling; a missing key counts as an empty cell, and so does one of the
words in ``missing``. Outer white space of codes is stripped, and what ``strip_codes`` has; white space of names only if
cells hold several. If the first line of a text file is a row, ``header`` names the columns, from the first on. If each
column has its place in the line instead, as in lists of the CMS, ``positions`` gives its first and last character,
counted from 1; white space around a cell is no part of it then. With ``continued``, a line with the code of the line
before continues its names and definition, as in HCPCS and CPT. Lines that begin with ``comment`` count as blank.

Definitions (``definition=COLUMN``), which scispaCy's knowledge bases have, are stripped; an empty cell is none. Their
source is that of the row's names.

Codes in the column ``parent`` become relations "is_a"; each must be a code of the table, and relations to rows that
``only`` leaves out are left out too. A code that is its own parent has none.

The tables of knowledge bases in newer releases of BELB (https://github.com/sg-wbi/belb) are read with ``id=id`` and
``name=label,aliases``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.encodings import checked_encoding
from onoma.files.reading import Check, Reading, check_chosen, first_of_each
from onoma.files.table_rows import (
    JSON_LINES,
    LINE,
    PARQUET,
    check_is_table,
    ending_of,
    json_rows,
    parquet_rows,
    placed_rows,
    text_rows,
)
from onoma.files.text_files import only_file
from onoma.terminology.assembly import (
    SOURCE_DEFINITIONS,
    SOURCE_NAMES,
    SOURCE_RELATIONS,
    SOURCE_TYPES,
    SourceTables,
    named_concepts,
)
from onoma.terminology.languages import LANGUAGE_TAG, tidy_language
from onoma.terminology.readers.format import Format
from onoma.terminology.readers.table_options import OF_SEVERAL, OPTIONAL_COLUMNS, TableOptions
from onoma.terminology.tables import ACTIVE, OBSOLETE

_FATES = pl.Schema({"concept_id": pl.String(), "said": pl.String(), "successor": pl.String(), "line": pl.UInt32()})
"""What rows say became of their codes: status, and the code in their place."""
_PREFERRED_WORDS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "preferred", "p"), True),
    **dict.fromkeys(("", "0", "false", "f", "no", "n", "synonym", "s"), False),
}
_STATUS_WORDS = {
    **dict.fromkeys(
        ("1", "true", "t", "yes", "y", "obsolete", "retired", "deprecated", "inactive", "withdrawn", "deleted"),
        OBSOLETE,
    ),
    **dict.fromkeys(("0", "false", "f", "no", "n", "active", "current", "valid", "trial", "discouraged"), ACTIVE),
}
"""LOINC calls ACTIVE, TRIAL and DISCOURAGED what may be used."""
_WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))


def read_table(source: str, options: TableOptions, reading: Reading) -> SourceTables:
    """Read a table.

    Args:
        source: ``.parquet``, or text (``.csv``, ``.tsv``, ``.txt``, ``.jsonl``; plain, gzip or alone in a zip).
        options: Which column is what.
        reading: Where bad rows go.

    Raises:
        InputError: no such file or column; under "strict" also a row without code or name, with another number of
            fields, or with a language or mark that cannot be.
    """
    kind = Path(source).suffix.lower()
    check_is_table(kind, source)
    file = only_file(Path(source))
    path = file.path
    _check_options(options, file)
    reading.comment = options.comment
    reading.encoding, reading.encoding_option = checked_encoding(options.encoding), "--set encoding="
    names, types = [pl.DataFrame(schema=SOURCE_NAMES)], [pl.DataFrame(schema=SOURCE_TYPES)]
    definitions, fates = [pl.DataFrame(schema=SOURCE_DEFINITIONS)], [pl.DataFrame(schema=_FATES)]
    parents: list[pl.DataFrame] = []
    values: dict[str, set[str]] = {column: set() for column in options.conditions}
    left_out = [pl.DataFrame(schema={"concept_id": pl.String})]
    unsaid = list(options.obsolete_words)
    read_as, codes = _renamed(options), [pl.Series(dtype=pl.UInt64)]
    for batch in _rows(file, options, reading):
        found = _without_missing(batch.rename(_as_read), options)
        if options.only:
            is_wanted = _wanted(batch.rename(_as_read), options, values)
            left_out.append(found.filter(~is_wanted).select(concept_id=_code(read_as.id, read_as)))
            found = found.filter(is_wanted)
        rows = _checked(found, read_as, path, reading)
        codes.append(rows[read_as.id].hash().rename(""))
        names.append(_names(rows, read_as))
        fates.append(_fates_of(rows, read_as))
        if unsaid:
            said = set(rows.select(_words(read_as).explode().unique()).to_series())
            unsaid = [word for word in unsaid if word.lower() not in said]
        if read_as.definition:
            definitions.append(_definitions(rows, read_as))
        if read_as.semantic_type:
            types.append(_listed(rows, read_as.semantic_type, read_as).rename({"value": "semantic_type"}))
        if read_as.parent:
            above = _listed(rows, read_as.parent, read_as).with_columns(_code("value", read_as))
            parents.append(above.rename({"concept_id": "head", "value": "tail"}))
    reading.note("rows that only leaves out", sum(map(len, left_out)))
    for column, wanted in options.conditions.items():
        check_chosen(f"only={column}", wanted, values[column], path=path, among="the column")
    in_all, all_names = pl.concat(codes), pl.concat(names)
    reading.note("rows of a code that stood before, whose names are put together", len(in_all) - in_all.n_unique())
    if options.separator is None:
        _note_signs(all_names["text"], reading)
    for word in unsaid:
        reading.note(f"words of obsolete_words that no row has: {word}", 1)
    told = _fates(pl.concat(fates), options, path, reading)
    concepts = named_concepts(all_names)
    nameless = told.join(concepts, on="concept_id", how="anti", maintain_order="left")
    concepts = pl.concat([concepts, nameless.select("concept_id")], how="diagonal").join(
        told, on="concept_id", how="left", maintain_order="left"
    )
    is_replaced = pl.col("successor").is_not_null()
    n_active = concepts.select((is_replaced & (pl.col("said") == ACTIVE)).sum()).item()
    reading.note("codes in use that name a code to use instead", n_active)
    return SourceTables(
        path=path,
        concepts=concepts.select(
            "concept_id",
            status=pl.coalesce("said", pl.when(is_replaced).then(pl.lit(OBSOLETE)), "status"),
            replaced_by="successor",
        ),
        names=all_names,
        semantic_types=pl.concat(types),
        definitions=pl.concat(definitions),
        relations=_relations(parents, pl.concat(left_out), concepts, options, reading),
    )


def _check_options(options: TableOptions, file: SourceFile) -> None:
    """Refuse options that say nothing of this file."""
    given, of_columns, fix = options.model_fields_set, {"delimiter", "header", "quoting"}, "leave it out"
    if ending_of(file) in PARQUET | JSON_LINES and (useless := given & (of_columns | {"positions", "comment"})):
        problem, found = "an option of CSV and TSV files", f"a .{ending_of(file)}"
    elif options.positions and (useless := given & of_columns):
        problem, found = "an option of files with a sign between columns", f"positions={','.join(options.positions)}"
    elif options.continued and not options.positions:
        useless = {"continued"}
        problem, found, fix = "an option of files with columns by positions", "no positions", "say positions=..."
    elif options.obsolete_words and not options.obsolete:
        useless = {"obsolete_words"}
        problem, found, fix = "words of the column obsolete, which is not named", "no obsolete", "say obsolete=COLUMN"
    else:
        return
    raise InputError(problem, path=file.path, field=min(useless), found=found, fix=fix)


def _relations(
    parents: Sequence[pl.DataFrame],
    left_out: pl.DataFrame,
    concepts: pl.DataFrame,
    options: TableOptions,
    reading: Reading,
) -> pl.DataFrame:
    """Of codes to their parents, but those of rows that ``only`` leaves out."""
    relations = pl.concat([pl.DataFrame(schema={"head": pl.String, "tail": pl.String, "line": pl.UInt32}), *parents])
    relations = relations.filter(pl.col("head") != pl.col("tail"))
    outside = left_out.join(concepts, on="concept_id", how="anti")
    kept = relations.join(outside, left_on="tail", right_on="concept_id", how="anti", maintain_order="left")
    reading.note("relations to rows that only leaves out", len(relations) - len(kept))
    return kept.with_columns(relation=pl.lit("is_a"), source=pl.lit(options.default_source)).select(
        SOURCE_RELATIONS.names()
    )


def _listed(rows: pl.DataFrame, column: str, options: TableOptions) -> pl.DataFrame:
    """A row for each value in the cells of a column: concept_id, value, line."""
    values = _pieces(rows, column, options).list.eval(pl.element().str.strip_chars())
    return (
        rows.select(concept_id=options.id, value=values, line=pl.col(LINE).cast(pl.UInt32))
        .explode("value")
        .drop_nulls("value")
    )


def _rows(file: SourceFile, options: TableOptions, reading: Reading) -> Iterator[pl.DataFrame]:
    columns = options.columns
    of_one = (getattr(options, one) for one in OPTIONAL_COLUMNS if one not in OF_SEVERAL)
    of_one_text = {options.id, *of_one, *options.conditions}
    may_be_lists = {column for column in (*options.name, options.semantic_type, options.parent) if column} - of_one_text
    ending = ending_of(file)
    if ending in PARQUET:
        return parquet_rows(file, reading, columns=columns, may_be_lists=may_be_lists)
    if ending in JSON_LINES:
        return json_rows(file, reading, columns=columns, may_be_lists=may_be_lists, separator=options.separator)
    if options.positions:
        return placed_rows(
            file,
            reading,
            columns=columns,
            positions=options.places,
            continued=options.id if options.continued else None,
            texts={*options.name, options.definition or options.id},
        )
    delimiter = None if options.delimiter == "auto" else _delimiter(options.delimiter)
    advice = "close it, or import with --set quoting=no if quotes are ordinary characters here"
    named = [name for name in options.header if name]
    if len(set(named)) < len(named):
        raise InputError("two columns have one name", path=file.path, field="header", found=",".join(options.header))
    return text_rows(
        file,
        reading,
        columns=columns,
        delimiter=delimiter,
        quoting=options.quoting,
        advice=advice,
        header=options.header or None,
    )


def _wanted(rows: pl.DataFrame, options: TableOptions, values: dict[str, set[str]]) -> pl.Series:
    """Which rows ``only`` keeps; ``values`` gets what its columns have."""
    cells = {column: pl.col(_as_read(column)).str.strip_chars() for column in options.conditions}
    for column, cell in cells.items():
        values[column].update(rows.select(cell.unique()).to_series())
    conditions = (cells[column].is_in(wanted) for column, wanted in options.conditions.items())
    return rows.select(pl.all_horizontal(conditions)).to_series()


def _without_missing(rows: pl.DataFrame, options: TableOptions) -> pl.DataFrame:
    """Cells that say nothing are empty."""
    if not options.missing:
        return rows
    says_nothing = pl.col(pl.String).str.strip_chars().is_in(options.missing)
    return rows.with_columns(pl.when(says_nothing).then(pl.lit("")).otherwise(pl.col(pl.String)).name.keep())


def _as_read(column: str) -> str:
    """What a column of the file is called from then on: to Polars a name such as "*" would be a pattern."""
    return column if column == LINE else f"={column}"


def _as_written(column: str) -> str:
    return column.removeprefix("=")


def _renamed(options: TableOptions) -> TableOptions:
    names = {name: _as_read(name) for name in options.columns}
    of_one = {option: names.get(getattr(options, option)) for option in OPTIONAL_COLUMNS}
    return options.model_copy(update={"id": names[options.id], "name": tuple(map(_as_read, options.name)), **of_one})


def _pieces(rows: pl.DataFrame, column: str, options: TableOptions) -> pl.Expr:
    """The texts of a cell that say something, as a list."""
    cells = pl.col(column)
    if isinstance(rows.schema[column], pl.List):
        pieces = cells.fill_null([])
    elif options.separator is None:
        pieces = pl.concat_list(cells)
    else:
        pieces = cells.str.split(options.separator).list.eval(pl.element().str.strip_chars())
    return pieces.list.eval(pl.element().filter(~pl.element().str.strip_chars().is_in(["", *options.missing])))


def _stripped(pieces: pl.Expr, signs: str) -> pl.Expr:
    return pieces.list.eval(pl.element().str.strip_chars(signs + _WHITE_SPACE)).list.eval(
        pl.element().filter(pl.element() != "")
    )


def _code(column: str, options: TableOptions) -> pl.Expr:
    return pl.col(column).str.strip_chars(options.strip_codes + _WHITE_SPACE if options.strip_codes else None)


def _is_text(column: str) -> pl.Expr:
    return pl.col(column).str.strip_chars() != ""


def _word(column: str) -> pl.Expr:
    """A cell with a word that says yes or no, however it is spelt."""
    return pl.col(column).str.strip_chars().str.to_lowercase()


def _checked(rows: pl.DataFrame, options: TableOptions, path: Path, reading: Reading) -> pl.DataFrame:
    rows = rows.with_columns(_code(options.id, options))
    columns = [_pieces(rows, column, options) for column in options.name]
    if options.strip:
        columns = [_stripped(pieces, options.strip) for pieces in columns]
    rows = rows.with_columns(_names_of_row=pl.concat_list(columns), _n_in_first_column=columns[0].list.len())
    names, words = pl.col("_names_of_row"), ",".join(map(_as_written, options.name))
    shown = options.name[0] if rows.schema[options.name[0]] == pl.String else options.id
    checks = [
        Check(_is_text(options.id), _as_written(options.id), "a code", shown),
        Check(~pl.col(options.id).str.contains("\0", literal=True), _as_written(options.id), "no NUL character", shown),
        Check((names.list.len() > 0) | _is_retired(options), words, "a name", options.id),
        Check(~names.list.join("").str.contains("\0", literal=True), words, "no NUL character", options.id),
    ]
    if options.definition:
        is_whole = ~pl.col(options.definition).str.contains("\0", literal=True)
        checks.append(Check(is_whole, _as_written(options.definition), "no NUL character", options.id))
    if options.language:
        tag = pl.col(options.language)
        is_tag = (tag == "") | tag.str.contains(LANGUAGE_TAG)
        checks.append(Check(is_tag, _as_written(options.language), "a BCP 47 tag, e.g. en", options.language))
    if options.obsolete and not options.obsolete_words:
        expected = "true or false, 1 or 0, yes or no, obsolete or active, or other words, named by obsolete_words"
        is_word = _word(options.obsolete).is_in(["", *_STATUS_WORDS])
        checks.append(Check(is_word, _as_written(options.obsolete), expected, options.obsolete))
    if options.preferred:
        expected = "true or false, 1 or 0, yes or no"
        is_mark = _word(options.preferred).is_in(list(_PREFERRED_WORDS))
        checks.append(Check(is_mark, _as_written(options.preferred), expected, options.preferred))
    return reading.keep_valid(rows, checks, path=path, line_column=LINE)


def _is_retired(options: TableOptions) -> pl.Expr:
    """Whether a row says that its code was retired: what nobody uses any more needs no name."""
    said, successor = _fate(options)
    return (said == OBSOLETE).fill_null(successor != "")


def _fate(options: TableOptions) -> tuple[pl.Expr, pl.Expr]:
    """What became of a code: status (null: the row does not say), and the code in its place ("": none)."""
    said = pl.lit(None, dtype=pl.String)
    if options.obsolete and options.obsolete_words:
        is_retired = pl.any_horizontal(_words(options).list.contains(word.lower()) for word in options.obsolete_words)
        said = pl.when(is_retired).then(pl.lit(OBSOLETE)).when(_is_text(options.obsolete)).then(pl.lit(ACTIVE))
    elif options.obsolete:
        said = _word(options.obsolete).replace_strict(_STATUS_WORDS, default=None, return_dtype=pl.String)
    return said, _code(options.replaced_by, options) if options.replaced_by else pl.lit("")


def _words(options: TableOptions) -> pl.Expr:
    """The words of the column obsolete, in small letters, as a list."""
    words = _word(str(options.obsolete)).str.split(options.separator or "\0")
    return words.list.eval(pl.element().str.strip_chars())


def _fates_of(rows: pl.DataFrame, options: TableOptions) -> pl.DataFrame:
    """Of the rows that say what became of their code."""
    said_of_row, successor = _fate(options)
    said = rows.select(
        concept_id=options.id,
        said=said_of_row,
        successor=pl.when(successor != "").then(successor),
        line=pl.col(LINE).cast(pl.UInt32),
    )
    return said.filter(pl.col("said").is_not_null() | pl.col("successor").is_not_null())


def _fates(rows: pl.DataFrame, options: TableOptions, path: Path, reading: Reading) -> pl.DataFrame:
    """What became of each code. What a row says against an earlier one is rejected, and its names are kept."""
    found = rows.select("concept_id").unique(maintain_order=True)
    for column, option in (("said", options.obsolete), ("successor", options.replaced_by)):
        of_one = rows.select("concept_id", column, "line").drop_nulls(column)
        first, differing, _ = first_of_each(of_one, "concept_id")
        reading.reject_rows(
            differing.select("line", text="concept_id"),
            "an earlier row of the code says another thing, which holds",
            path=path,
            field=option,
            expected="one thing for each code, or an empty cell",
        )
        found = found.join(first.drop("line"), on="concept_id", how="left", maintain_order="left")
    return found


def _source(options: TableOptions) -> pl.Expr:
    source = pl.lit(options.default_source)
    if options.source:
        source = pl.when(pl.col(options.source) != "").then(pl.col(options.source)).otherwise(source)
    return source


def _definitions(rows: pl.DataFrame, options: TableOptions) -> pl.DataFrame:
    return rows.select(
        concept_id=options.id,
        text=pl.col(str(options.definition)).str.strip_chars(),
        source=_source(options),
        line=pl.col(LINE).cast(pl.UInt32),
    ).filter(pl.col("text") != "")


def _names(rows: pl.DataFrame, options: TableOptions) -> pl.DataFrame:
    default_language = pl.lit(options.default_language)
    language = default_language
    if options.language:
        spelt = {tag: tidy_language(tag) for tag in rows[options.language].unique() if tag}
        tags = pl.col(options.language).replace_strict(spelt, default=None, return_dtype=pl.String)
        language = pl.coalesce(tags, default_language)
    is_marked = pl.lit(True)
    if options.preferred:
        is_marked = _word(options.preferred).replace_strict(_PREFERRED_WORDS, return_dtype=pl.Boolean)
    names = rows.select(
        concept_id=options.id,
        text="_names_of_row",
        language=language,
        source=_source(options),
        term_type=pl.lit(""),
        is_marked=is_marked,
        at=pl.int_ranges(pl.col("_names_of_row").list.len()),
        n_in_first_column="_n_in_first_column",
        is_suppressed=pl.lit(False),
    ).explode("text", "at")
    is_of_first_column = pl.col("at") < pl.col("n_in_first_column")
    preference = (~pl.col("is_marked")).cast(pl.UInt8) * 2 + (~is_of_first_column).cast(pl.UInt8)
    return names.with_columns(preference=preference).select(SOURCE_NAMES.names())


def _note_signs(names: pl.Series, reading: Reading) -> None:
    """Tell of names that look like several in a cell: with a bar now and then, with a semicolon quite often."""
    for sign, least in (("|", 1), (";", max(1, len(names) // 10))):
        n_names = int(names.str.contains(rf"\S\s*\{sign}\s*\S").sum())
        if n_names >= least:
            reading.note(f"names with '{sign}' in them, kept whole (--set separator='{sign}' divides them)", n_names)


def _delimiter(said: str) -> str:
    delimiter = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}.get(said, said)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\n\r':
        raise InputError("a delimiter is one ASCII character", field="delimiter", found=said)
    return delimiter


FORMAT = Format(
    name="table",
    description="any CSV, TSV, Parquet or JSON Lines table; options say which column is what",
    source="a .csv, .tsv or .txt (with a header, header=... or positions=...), .jsonl or .ndjson (plain or gzip), or "
    "a .parquet file",
    obtain="your own codes and names; most vocabularies offer such an export",
    licence="that of the vocabulary",
    options=TableOptions,
    read=read_table,
)
