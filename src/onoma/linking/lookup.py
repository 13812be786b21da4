"""Look-up: the texts that a mention equals, found by bisection.

Millions of names are opened at once and shared by processes, so there is no hash table in memory: the rows of the
texts stand in a file in the order of the texts, 4 bytes each, and a mention is found with some twenty comparisons.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from onoma.artifacts.arrays import load_array
from onoma.errors import DamagedArtifactError
from onoma.linking.strings import StringColumn
from onoma.terminology import normalise
from onoma.types import RowArray

LOOSE = "loose"
"""Preset of the looser look-up."""
_EXACT_FILE = "text_order.npy"
_LOOSE_FILE = "loose_order_2.npy"

OrderArray = npt.NDArray[np.int32]


class SortedStrings:
    """Where a string stands in a column.

    Args:
        strings: The column.
        order: Its rows by their keys, equal keys by row, int32, shape (n,).
        key: What is compared, of a string; unset: the string itself.

    Example:
        >>> column = ["b", "a", "b"]
        >>> SortedStrings(column, order_of(column)).rows("b").tolist()
        [0, 2]
    """

    def __init__(self, strings: Sequence[str], order: OrderArray, key: Callable[[str], str] | None = None) -> None:
        self._strings, self.order, self._key = strings, order, key

    def rows(self, wanted: str) -> RowArray:
        """Rows whose key is ``wanted``, ascending."""
        if self._key is None and isinstance(self._strings, StringColumn):
            return self._strings.rows_of(wanted, self.order)
        begin = bisect.bisect_left(self.order, wanted, key=self._key_at)
        end = bisect.bisect_right(self.order, wanted, lo=begin, key=self._key_at)
        return self.order[begin:end].astype(np.int64)

    def _key_at(self, row: np.int32) -> str:
        string = self._strings[int(row)]
        return string if self._key is None else self._key(string)


def order_of(strings: Sequence[str], *, preset: str | None = None) -> OrderArray:
    """Rows of a column by its strings, or by what a normalisation makes of them; equal ones by row; shape (n,)."""
    import polars as pl  # who opens a linker has its orders already

    from onoma.terminology import normalise_expr

    key = pl.col("string") if preset is None else normalise_expr(pl.col("string"), preset)
    rows = pl.DataFrame({"string": pl.Series(list(strings), dtype=pl.String)}).select(key).with_row_index("row")
    # Polars compares bytes of UTF-8 and Python code points: the same order.
    return rows.sort("string", "row")["row"].to_numpy().astype(np.int32)


class NameLookup:
    """Texts of a linker by what a mention is, exactly or more loosely.

    Args:
        texts: Normalised texts of the linker.
        exact_order: Their order; unset: made when first needed.
        loose_order: Their order under the preset "loose"; unset: likewise.
    """

    def __init__(
        self, texts: Sequence[str], *, exact_order: OrderArray | None = None, loose_order: OrderArray | None = None
    ) -> None:
        self._texts, self._exact_order, self._loose_order = texts, exact_order, loose_order

    @classmethod
    def open(cls, folder: Path, texts: Sequence[str]) -> NameLookup:
        """What `save` wrote, memory-mapped.

        Raises:
            DamagedArtifactError: a file is missing, or not of these texts.
        """
        exact, loose = (
            np.asarray(load_array(folder / name, (np.int32,), 1, fix="Build the linker again."))
            for name in (_EXACT_FILE, _LOOSE_FILE)
        )
        if not len(exact) == len(loose) == len(texts):
            raise DamagedArtifactError(f"{folder}: its look-up is of other names. Build the linker again.")
        return cls(texts, exact_order=exact, loose_order=loose)

    def save(self, folder: Path) -> None:
        """Write both orders into ``folder``."""
        np.save(folder / _EXACT_FILE, self._exact.order)
        np.save(folder / _LOOSE_FILE, self._loose.order)

    def exact(self, text: str) -> RowArray:
        """Row of the text that is equal, if there is one.

        Args:
            text: A mention, normalised as the texts are.
        """
        return self._exact.rows(text)

    def loose(self, text: str) -> RowArray:
        """Rows of the texts that are equal under the preset "loose"; none for a mention of which it leaves nothing."""
        wanted = normalise(text, LOOSE)
        return self._loose.rows(wanted) if wanted else np.empty(0, np.int64)

    @cached_property
    def _exact(self) -> SortedStrings:
        return SortedStrings(self._texts, order_of(self._texts) if self._exact_order is None else self._exact_order)

    @cached_property
    def _loose(self) -> SortedStrings:
        order = order_of(self._texts, preset=LOOSE) if self._loose_order is None else self._loose_order
        return SortedStrings(self._texts, order, partial(normalise, preset=LOOSE))
