"""Parquet files, whatever they are called."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from onoma.artifacts.system import is_of_system
from onoma.errors import DamagedArtifactError, InputError, first_line


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


@contextlib.contextmanager
def reading_parquet(file: Path, *, fix: str) -> Iterator[None]:
    """Have what Polars says of a file of ours that it cannot read name the file and what to do.

    Args:
        file: Of an artefact's folder.
        fix: What to do about a damaged one.

    Raises:
        DamagedArtifactError: it is no Parquet file, or a damaged one.
    """
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:  # Polars panics on some damage
        if is_of_system(error) or "KeyboardInterrupt" in str(error):
            raise
        raise DamagedArtifactError(f"{file} cannot be read ({first_line(error)}). {fix}") from None
