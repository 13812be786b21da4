"""Parquet files, whatever they are called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from onoma.errors import InputError


def scan_parquet(files: Path | Sequence[Path]) -> pl.LazyFrame:
    """The rows of just these files, lazily. Polars itself takes ``[``, ``*`` and ``?`` in a name for patterns.

    Args:
        files: One, or several of the same columns, in their order.

    Raises:
        InputError: a name is not UTF-8, which Polars cannot open.
    """
    paths = [files] if isinstance(files, Path) else [*files]
    for path in paths:
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise InputError(
                "a name that is not UTF-8",
                path=os.fsencode(path).decode("utf-8", "backslashreplace"),
                fix="give the file another name",
            ) from None
    return pl.scan_parquet(paths, glob=False)  # noqa: TID251 - here it is done right
