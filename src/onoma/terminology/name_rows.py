"""Row numbers of a terminology's table of names."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from onoma.errors import InputError
from onoma.types import RowArray


def checked_name_rows(rows: npt.ArrayLike | None, n_names: int | None) -> RowArray:
    """Distinct rows of the table of names, ascending.

    Args:
        rows: To be checked; None: there are none.
        n_names: Of the table; None: not known.

    Raises:
        InputError: they are not row numbers of this table.
    """
    given = np.asarray([] if rows is None else rows)
    if given.ndim == 1 and given.size == 0:
        return np.empty(0, np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError(
            "hidden names must be row numbers",
            field="hidden_names",
            expected="a list of whole numbers",
            found=type(rows).__name__ if given.dtype.kind == "O" else f"{given.dtype}, {given.ndim} dimensions",
        )
    outside = given[(given < 0) | (given >= (np.inf if n_names is None else n_names))]
    if outside.size:
        raise InputError(
            "a hidden name does not exist",
            field="hidden_names",
            expected="rows from 0" + ("" if n_names is None else f" to {n_names - 1}"),
            found=str(outside[0]),
        )
    return np.unique(given).astype(np.int64)
