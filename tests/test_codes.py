"""Codes that are written as one."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.code_columns import codes_of_concept_expr, meant_codes_expr
from onoma.codes import (
    codes_of_concept,
    meant_codes,
    other_forms,
    other_forms_in_words,
    split_codes,
)


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


def test_codes_in_another_form() -> None:
    concepts = ["00123", "123", "0045", "D007", "0", "E11.9", "MONDO:0005068", "DOID:0005068", "HP_0001250"]
    assert other_forms(["45", "D7", "007", "9"], concepts) == {"45": "0045"}
    assert other_forms(["D001", "0123"], concepts) == {}  # of two that would do there is no telling which
    assert other_forms(["d007", "MESH:D007", "e119"], concepts) == {
        "d007": "D007",
        "MESH:D007": "D007",
        "e119": "E11.9",
    }
    iri = "http://purl.obolibrary.org/obo/MONDO_0005068"
    assert other_forms([iri, "5068", "HP:1250", "MP:1250"], concepts) == {iri: "MONDO:0005068", "HP:1250": "HP_0001250"}
    assert other_forms(concepts, concepts) == {}
    assert other_forms(["86"], ["086", "008.6"]) == {"86": "086"}  # which differs in less
    assert other_forms(["100"], ["0100", "MESH:100"]) == {}
    assert other_forms(["1.10", "A0.100"], ["11.0", "A01.00"]) == {}
    assert other_forms(["1.5"], ["01.5"]) == {"1.5": "01.5"}
    numbers = ["4329847", "43298470", "01013750", "E1"]
    assert other_forms(["4329847.0", "1013750.0", "x"], numbers) == {"1013750.0": "01013750", "4329847.0": "4329847"}
    assert other_forms(["250.0", "250.1"], ["2500", "250", "2501"]) == {"250.0": "2500", "250.1": "2501"}


def test_codes_in_another_form_in_words() -> None:
    said = other_forms_in_words({"45": "0045", "d7": "D7"}, where="the linker")
    assert said == (
        "2 of their codes have another form in the linker: 45 is 0045 there (spreadsheets lose zeros at the front)"
    )
    said = other_forms_in_words({"45.0": "45"}, where="x")
    assert said.endswith("45.0 is 45 there (the codes were read as numbers, as pandas does: read them as text)")
    assert other_forms_in_words({"d7": "D7"}, where="x") == "1 of their codes has another form in x: d7 is D7 there"


@given(st.lists(st.text("01aA:._", min_size=1, max_size=4)), st.lists(st.text("01aA:._", min_size=1, max_size=4)))
def test_another_form_is_that_of_one_concept(codes: list[str], concept_ids: list[str]) -> None:
    found = other_forms(codes, concept_ids)
    assert set(found) <= set(codes) - set(concept_ids)
    assert set(found.values()) <= set(concept_ids)
