from __future__ import annotations

from onoma.plain_tables import aligned


def test_cells_stand_under_each_other() -> None:
    rows = [["", "rank", "name"], ["answer", "1", "心臓発作"], ["near miss", "10", "fever"]]
    assert aligned(rows, numeric=["rank"]).splitlines() == [
        "           rank  name",
        "answer        1  心臓発作",
        "near miss    10  fever",
    ]


def test_characters_of_two_places() -> None:
    assert aligned([["心臓", "a"], ["heart", "b"], ["é", "c"]]) == "心臓   a\nheart  b\né      c"
