"""Codes that are written as one."""

from __future__ import annotations

import polars as pl
import pytest

from onoma.codes import codes_of_concept, codes_of_concept_expr, meant_codes, meant_codes_expr, split_codes, zeros_lost


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
    labels = pl.DataFrame({"concept_id": [text]})
    assert labels.select(meant_codes_expr(pl.Series(["D1", "D2"])))["concept_id"].to_list() == [codes]
    by = labels.select(codes_of_concept_expr())["concept_id"].to_list()
    assert by == [list(dict.fromkeys([text, *codes]))]
    assert codes_of_concept(text) == {text, *codes}


def test_a_blank_text_has_no_code_but_keeps_its_row() -> None:
    assert split_codes(" ") == []
    rows = (
        pl.DataFrame({"concept_id": ["D1|D2", " | "]})
        .with_row_index("row")
        .with_columns(meant_codes_expr(pl.Series(["D1"])))
    )
    assert rows.explode("concept_id")["row"].to_list() == [0, 0, 1]


@pytest.mark.parametrize(
    ("label", "codes"),
    [("K|1", ["K|1"]), (" K|1 ", ["K|1"]), ("K|2", ["K", "2"]), ("D1", ["D1"]), ("K|1|D1", ["K", "1", "D1"])],
)
def test_a_code_of_a_concept_as_it_stands_is_one(label: str, codes: list[str]) -> None:
    concept_ids = ["K|1", "D1"]
    assert meant_codes(label, concept_ids) == codes
    column = pl.DataFrame({"concept_id": [label]}).select(meant_codes_expr(pl.Series(concept_ids)))
    assert column["concept_id"].to_list() == [codes]


def test_zeros_at_the_front_that_were_lost() -> None:
    concepts = ["00123", "123", "0045", "D007", "0"]
    assert zeros_lost(["123", "45", "D7", "007", "45", "9"], concepts) == {"123": "00123", "45": "0045"}
    assert zeros_lost(["D001", "0123"], concepts) == {}
    assert zeros_lost(["123"], [*concepts, "0123"]) == {}  # no telling which
