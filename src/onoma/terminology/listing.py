"""Lists for people: a table in a file of its own, ``.parquet`` or ``.csv``."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from onoma.artifacts import write_file
from onoma.errors import InputError


def check_list_file(path: str | Path) -> None:
    """Refuse a file that a list cannot be written to.

    Raises:
        InputError: its name says neither Parquet nor CSV.
    """
    kind = Path(path).suffix.lower()
    if kind not in (".parquet", ".csv"):
        raise InputError(
            "lists are written as a table", path=Path(path), expected=".parquet or .csv", found=kind or "no ending"
        )


def write_list(rows: pl.DataFrame, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a table, whole or not at all, as the name of the file says; to CSV lists go with "|" between.

    Raises:
        InputError: it says something else than ``.parquet`` or ``.csv``.
        ArtifactExistsError: ``path`` is taken.
    """
    check_list_file(path)
    with write_file(path, overwrite=overwrite) as aside:
        if Path(path).suffix.lower() == ".csv":
            rows.with_columns(pl.col(pl.List(pl.String)).list.join("|")).write_csv(aside)
        else:
            rows.write_parquet(aside)
