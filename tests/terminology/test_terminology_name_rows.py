"""Row numbers of the table of names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onoma.errors import InputError
from onoma.terminology.name_rows import checked_name_rows


@pytest.mark.parametrize("rows", [[4, 0, 4], np.array([0, 4], np.uint32), (np.int8(0), 4)], ids=str)
@pytest.mark.parametrize("n_names", [5, None])
def test_rows_are_distinct_and_ascending(rows: Any, n_names: int | None) -> None:
    found = checked_name_rows(rows, n_names)
    assert found.dtype == np.int64
    assert found.tolist() == [0, 4]


@pytest.mark.parametrize("rows", [None, [], np.empty(0, np.float32)], ids=str)
def test_there_may_be_none(rows: Any) -> None:
    found = checked_name_rows(rows, 5)
    assert found.dtype == np.int64
    assert found.shape == (0,)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([5], "does not exist; expected rows from 0 to 4; found 5"),
        ([-1], "does not exist; expected rows from 0 to 4; found -1"),
        ([0.5], "must be row numbers; expected a list of whole numbers; found float64, 1 dimensions"),
        ([[0]], "must be row numbers; .* found int64, 2 dimensions"),
        ([True], "must be row numbers; .* found bool, 1 dimensions"),
        (["0"], "must be row numbers; .* found <U1, 1 dimensions"),
        ([None], "must be row numbers; .* found list"),
        (7, "must be row numbers; .* found int64, 0 dimensions"),
    ],
    ids=str,
)
def test_what_is_no_row_of_the_table_is_refused(rows: Any, problem: str) -> None:
    with pytest.raises(InputError, match=f"^field hidden_names: .*{problem}"):
        checked_name_rows(rows, 5)


def test_rows_of_an_unknown_table_are_from_zero_on() -> None:
    with pytest.raises(InputError, match="expected rows from 0; found -2"):
        checked_name_rows([3, -2], None)
