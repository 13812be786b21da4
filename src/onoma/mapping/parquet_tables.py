"""Parquet tables: columns keep their types, as far as Polars has them, and are read a row group at a time."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from onoma.artifacts.parquet import scan_parquet
from onoma.errors import InputError
from onoma.files.text_files import check_is_file
from onoma.mapping.parts import Wanted
from onoma.types import Progress

_ROWS_AT_ONCE = 1 << 16
_NAME_OF_TWO = re.compile(r"name '(.*)' has more than one", re.DOTALL)
_IN_A_PANIC = re.compile(r"ErrString\(\"(?P<words>.*?)(?:\\n|\"\))")
"""What Polars meant to say, without its advice, where it panics."""


class ParquetTable:
    """A Parquet file.

    Args:
        path: The file.
        wanted: What is asked of it. Mentions and contexts may be text, categories or whole numbers.

    Raises:
        InputError: it is missing or damaged, or the columns are not as they should be.
    """

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path, self._wanted = path, wanted
        check_is_file(path)
        with _in_words(path):
            self.schema = scan_parquet(path).collect_schema()
            self._no_rows = self.schema.to_frame()
            self._n_rows = int(scan_parquet(path).select(pl.len()).collect().item())
        self.columns = list(self.schema)
        wanted.check(self.columns, path)
        for name in wanted.asked:
            if not _is_text(self.schema[name]):
                raise InputError(
                    "a column of a type that is no text",
                    path=path,
                    field=name,
                    expected="text, or whole numbers",
                    found=str(self.schema[name]),
                    fix="write the column as text",
                )

    def frames(self, progress: Progress) -> Iterator[pl.DataFrame]:
        """See `onoma.mapping.parts.InputTable.frames`."""
        yield self._wanted.with_texts(self._no_rows)
        n_read = 0
        # The whole file is scanned as it is: neither columns nor rows are chosen, so the order is that of the file.
        with _in_words(self.path):
            batches = scan_parquet(self.path).collect_batches(chunk_size=_ROWS_AT_ONCE, maintain_order=True)
        while True:
            with _in_words(self.path):
                batch = next(batches, None)
            if batch is None:
                return
            n_read += batch.height
            yield self._wanted.with_texts(batch)
            progress(n_read, self._n_rows, self.path.name)


def _is_text(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or isinstance(dtype, pl.String | pl.Categorical | pl.Enum | pl.Null)


@contextlib.contextmanager
def _in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except pl.exceptions.DuplicateError as error:
        found = _NAME_OF_TWO.search(str(error))
        what = "two columns have the same name" if found is None else f"two columns are called '{found[1]}'"
        raise InputError(what, path=path, fix="rename one of them") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:  # Polars panics on some damage
        raise InputError(
            "not a Parquet file, a damaged one, or one with a type that Polars does not have",
            path=path,
            found=said["words"] if (said := _IN_A_PANIC.search(str(error))) is not None else str(error),
            fix="write or download it again, or without such a column",
        ) from None
