"""Annotated mentions, read from files.

Files of mentions are

* tables (``.csv``, ``.tsv``, ``.parquet``, ``.jsonl``) with the columns ``mention`` and ``concept_id``, or others that
  you name (`onoma.pairs.MentionFormat`); several codes of a mention are separated by ``|``;
* any other text in the form of BioSyn's queries: one line ``id||mention`` for each, several codes separated by ``|`` or
  ``+``. Composite mentions, several texts separated by ``|``, or by ``+`` as their codes are, are left out and counted,
  because they do not say which text means what. If no ``+`` separates the codes, none separates texts ("CD4+ cell"). A
  second ``||`` is refused: SapBERT's pairs and BioSyn's ``.concept`` files have such lines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from onoma.errors import ConfigError, InputError, checked_path
from onoma.files.archives import SourceFile
from onoma.files.delimited import read_barred
from onoma.files.reading import Check, Reading
from onoma.files.table_rows import LINE, MissingColumnError, is_table, table_rows
from onoma.files.text_files import only_file
from onoma.pairs.mention_format import LABELLED, MentionFormat, no_columns

COMPOSITE = "composite mentions left out"
"""The note that `read_mentions` makes of them."""
_A_LINE = "id||mention (or a table; onoma mentions makes one of a corpus: PubTator, BioC, brat, BigBIO)"
_BARRED = (
    "a second '||' in the line: lines CUI||name||name are SapBERT's pairs, for onoma pairs bitext --classes listed; of "
    ".concept files docs/benchmarks.md (ncbi-disease) makes lines id||mention"
)
_MENTION_LINES = pl.Schema(
    {"mention": pl.String(), "concept_id": pl.String(), "parts": pl.List(pl.String()), "line": pl.UInt32()}
)
_COUNT = r"^\s*([0-9]{1,12})(?:\.0*)?\s*$"
"""Of programs that know no whole numbers beside empty cells there is a ".0" behind it."""
_HAS_CODE = pl.col("concept_id").str.contains(r"[^|\s]")
"""Whether `onoma.codes.split_codes` finds a code."""


def read_mentions(
    file: str | Path,
    reading: Reading | None = None,
    *,
    context: str | None = None,
    cluster: str | None = None,
    group: str | None = None,
    count: str | None = None,
    mention_format: MentionFormat | None = None,
) -> pl.DataFrame:
    """Read annotated mentions, for `build_mention_pairs` and `onoma.linking.tune_linker`.

    Args:
        file: See the module; plain, gzip or alone in a zip.
        reading: Where bad lines go, the encoding, and the note on composite mentions (`COMPOSITE`). Unset: the first
            bad line is refused.
        context: A column with the text around each mention, to be read too; its cells may be empty.
        cluster: Likewise a column with what each mention is from, such as the document.
        group: Likewise a column by whose values mentions are distinguished, such as their section.
        count: Likewise a column of whole numbers: how many times each row counts.
        mention_format: The names of a table's columns, and the encoding.

    Returns:
        Columns ``mention`` and ``concept_id``, whatever the table calls them, and ``context``, ``cluster``, ``group``
        and ``count`` (Int64) if requested, a row for each annotation.

    Raises:
        InputError: the file or a column is missing, columns are named for a file of lines, or, under "strict", a line
            is bad; or there are no mentions.
        ConfigError: ``reading`` and ``mention_format`` give different encodings.
    """
    written = mention_format or MentionFormat()
    asked = written.reading("strict")
    reading = asked if reading is None else reading
    if asked.encoding not in (None, reading.encoding):
        raise ConfigError(f"mentions are in one encoding; found {asked.encoding} and {reading.encoding or 'utf-8'}.")
    more = {"context": context, "cluster": cluster, "group": group, "count": count}
    found = _read(checked_path(file), reading, written, more)
    if found.is_empty():
        composite = reading.notes.get(COMPOSITE, 0)
        raise InputError(
            "there are no mentions in the file",
            path=Path(file),
            expected="a line id||mention, or a row, for each",
            found=f"{composite:,} {COMPOSITE}" if composite else None,
        )
    return found


def mentions_fingerprint(mentions: Iterable[str]) -> str:
    """SHA-256 over the distinct texts, sorted, ignoring case and white space: the same mentions, however often.

    Unlike hashes of single texts, it reveals none of them.
    """
    texts = {cased_alike(mention) for mention in mentions}
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()


def cased_alike(mention: str) -> str:
    """Equal for mentions that differ in case and white space alone."""
    return " ".join(mention.lower().split())


def refuse_concept_files(path: Path) -> None:
    """Say how a file of mentions is made of a folder of BioSyn's files, if it is one.

    Raises:
        InputError: it is.
    """
    if path.is_dir() and next(path.glob("*.concept"), None):
        raise InputError(
            "this is a folder of .concept files, as BioSyn has them",
            path=path,
            expected="one file of lines id||mention",
            fix="make it as docs/benchmarks.md says (ncbi-disease)",
        )


def _read(path: Path, reading: Reading, written: MentionFormat, more: Mapping[str, str | None]) -> pl.DataFrame:
    refuse_concept_files(path)
    file = only_file(path)
    if is_table(file):
        asked = {role: column for role, column in more.items() if column is not None}
        return _read_table(file, reading, {**dict(zip(LABELLED, written.columns, strict=True)), **asked})
    refuse_columns_of_lines(path, written, more)
    lines = read_mention_lines(file, reading)
    reading.note(COMPOSITE, int((lines["parts"].list.len() > 1).sum()))
    return lines.filter(pl.col("parts").list.len() == 1).select(LABELLED)


def refuse_columns_of_lines(path: Path, written: MentionFormat, more: Mapping[str, str | None]) -> None:
    """Refuse columns that are named of lines ``id||mention``.

    Args:
        path: The file.
        written: How it is said to be written.
        more: Columns that were asked for besides, by what they hold.

    Raises:
        InputError: there is such a column.
    """
    if written.columns != LABELLED:
        raise no_columns(path, written)
    for role, column in more.items():
        if column is not None:
            raise InputError(
                f"lines of mentions have no {role}s",
                path=path,
                expected=f"a .csv, .tsv, .parquet or .jsonl with a column '{column}'",
            )


def read_mention_lines(file: SourceFile, reading: Reading) -> pl.DataFrame:
    """Lines ``id||mention``, composite mentions among them.

    Args:
        file: Plain or gzip.
        reading: Where bad lines go.

    Returns:
        Columns ``mention``, ``concept_id`` (codes, divided by ``|``), ``parts`` (the texts of the mention, a list) and
        ``line`` (its number), a row for each line.

    Raises:
        InputError: as `onoma.files.text_files.text_lines`; under "strict" also where a line is bad.
    """
    checks = (
        Check(pl.col("mention").is_not_null(), None, _A_LINE, "whole", "no '||' in the line"),
        Check(pl.col("concept_id").str.contains(r"[^|+\s]"), "id", "id||mention", "whole", "an empty id"),
        Check(pl.col("mention").str.strip_chars() != "", "mention", "id||mention", "whole", "an empty mention"),
        Check(~pl.col("mention").str.contains("||", literal=True), None, "id||mention", "whole", _BARRED),
    )
    divided_by_plus = pl.col("mention").str.replace_all("+", "|", literal=True).str.split("|")
    has_plus = pl.col("concept_id").str.contains("+", literal=True)
    parts = pl.when(has_plus).then(divided_by_plus).otherwise(pl.col("mention").str.split("|"))
    codes = pl.col("concept_id").str.replace_all("+", "|", literal=True)
    blocks = [
        reading.keep_valid(block, checks, path=file.path).select("mention", concept_id=codes, parts=parts, line="line")
        for block in read_barred(file, reading, ("concept_id", "mention"))
    ]
    return pl.concat([pl.DataFrame(schema=_MENTION_LINES), *blocks])


def _read_table(file: SourceFile, reading: Reading, columns: Mapping[str, str]) -> pl.DataFrame:
    """``columns``: what the table calls a column, by what it is called here."""
    try:
        blocks = list(table_rows(file, reading, columns=list(dict.fromkeys(columns.values()))))
    except MissingColumnError as error:  # instead of the options of terminologies, which mentions do not have
        role = next(role for role, column in columns.items() if column == error.field)
        raise InputError(
            error.problem,
            path=error.path,
            line=error.line,
            field=error.field,
            expected=error.expected,
            fix=_HOW_TO_NAME[role],
        ) from None
    checks = [
        Check(pl.col("mention").str.strip_chars() != "", columns["mention"], "text", "mention", "an empty cell"),
        Check(_HAS_CODE, columns["concept_id"], "a code", "concept_id", "an empty cell"),
    ]
    if "count" in columns:
        of_a_count = "a whole number of at most 12 digits"
        checks.append(Check(pl.col("count").str.contains(_COUNT), columns["count"], of_a_count, "count"))
    # Not by expressions, to which a name such as "*" would be a pattern; and a column may be asked for twice.
    rows = [
        pl.DataFrame([block[LINE], *(block[column].alias(role) for role, column in columns.items())])
        for block in blocks
    ]
    good = [reading.keep_valid(block, checks, path=file.path, line_column=LINE) for block in rows]
    parts = [part.select(*columns) for part in good]
    n_joined = sum(part.filter(pl.col("concept_id").str.contains("+", literal=True)).height for part in parts)
    reading.note("codes with a '+', which divides codes in lines id||mention alone", n_joined)
    found = pl.concat([pl.DataFrame(schema=dict.fromkeys(columns, pl.String)), *parts])
    return found.with_columns(pl.col("^count$").str.extract(_COUNT).cast(pl.Int64))


_HOW_TO_NAME = {
    "mention": "name the column of mentions (--column)",
    "concept_id": "name the column of their codes (--code-column)",
    "context": "name the column of contexts (--context)",
    "cluster": "name the column of clusters (--cluster)",
    "group": "name the column of groups (--group)",
    "count": "name the column of counts (--count-column)",
}


def check_mentions(mentions: pl.DataFrame) -> None:
    """Refuse what has not the columns that `read_mentions` gives, of text and without empty rows.

    Raises:
        InputError: naming the first column.
    """
    if not isinstance(mentions, pl.DataFrame):
        raise InputError(
            "this is no table of mentions",
            expected="a polars DataFrame with the columns mention and concept_id",
            found=repr(mentions) if isinstance(mentions, str | Path) else type(mentions).__name__,
            fix="read a file by read_mentions",
        )
    for column in LABELLED:
        found = mentions.schema.get(column)
        if found != pl.String or mentions[column].null_count():
            raise InputError(
                "this is no table of mentions",
                field=column,
                expected="columns mention and concept_id, of text, every row filled",
                found="no such column" if found is None else "an empty row" if found == pl.String else str(found),
            )
    n_blank = mentions.filter(~_HAS_CODE).height
    if n_blank:
        raise InputError(
            "mentions without a code",
            field="concept_id",
            expected="a code in every row; NIL where a mention means no concept",
            found=f"{n_blank:,} blank ones",
            fix="leave out what nobody has labelled",
        )
