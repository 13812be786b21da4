"""Codes that are written as one."""

from __future__ import annotations

import polars as pl
import pytest

from onoma.codes import split_codes, split_codes_expr


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("D1", ["D1"]),
        ("D2|D1", ["D2", "D1"]),
        (" D1 | D2|D1", ["D1", "D2"]),
        ("D1||D2", ["D1", "D2"]),
        ("|D1| ", ["D1"]),
    ],
)
def test_codes_are_divided_by_bars(text: str, codes: list[str]) -> None:
    assert split_codes(text) == codes
    column = pl.DataFrame({"concept_id": [text]}).select(split_codes_expr())["concept_id"].to_list()
    assert column == [codes]


def test_a_blank_text_has_no_code_but_keeps_its_row() -> None:
    assert split_codes(" ") == []
    rows = pl.DataFrame({"concept_id": ["D1|D2", " | "]}).with_row_index("row").with_columns(split_codes_expr())
    assert rows.explode("concept_id")["row"].to_list() == [0, 0, 1]
