"""A folder of CSV files that holds everything; format and reader: `onoma.terminology.readers.csv_folder`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from onoma.files.reading import Check
from onoma.terminology.languages import LANGUAGE_TAG
from onoma.terminology.readers.csv_folder import COLUMNS
from onoma.terminology.writers.writing import Content, Writing


def write_csv_folder(content: Content, folder: Path, writing: Writing) -> Content:
    """Write all tables; those without rows are not written, but for concepts and names.

    Args:
        content: The terminology.
        folder: An empty one.
        writing: Where what cannot be written goes.

    Returns:
        What was written.

    Raises:
        InputError: under "strict", for a value that would not be read back.
    """
    # An empty cell says that nothing replaced a concept; a code of no characters would be read as that.
    content = writing.keep_concepts(
        content,
        [
            Check(
                pl.col("replaced_by").is_null() | (pl.col("replaced_by") != ""),
                "replaced_by",
                "a code, or null",
                "replaced_by",
                "an empty code",
            )
        ],
    )
    is_tag = Check(pl.col("language").str.contains(LANGUAGE_TAG), "language", "a BCP 47 tag", "language", "no language")
    content = replace(content, names=writing.keep_writable(content.names, "names", [is_tag]))
    for name, columns in COLUMNS.items():
        table: pl.DataFrame = getattr(content, name)
        table = table.rename({"concept_id": "head"}) if name == "relations" else table
        if len(table) or name in {"concepts", "names"}:
            texts = pl.col(pl.String).replace("", None)  # an empty cell rather than ""
            rows = table.select(columns).with_columns(texts)
            rows.write_csv(folder / f"{name}.csv", line_terminator="\n", null_value="")
    return content
