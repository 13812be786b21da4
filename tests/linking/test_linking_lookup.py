"""Finding the texts that equal a mention, by bisection."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.linking.lookup import NameLookup, SortedStrings, order_of
from onoma.linking.strings import StringColumn
from onoma.terminology import normalise

words = st.text(st.sampled_from("aAbß-é \u0301É心\U0001f9e0."), max_size=4)


@settings(max_examples=150)
@given(strings=st.lists(words, max_size=12), wanted=words)
def test_rows_are_those_of_the_equal_strings(strings: list[str], wanted: str) -> None:
    column = StringColumn.from_strings(strings)
    found = SortedStrings(column, order_of(column))
    for text in [wanted, *strings]:
        assert found.rows(text).tolist() == [row for row, string in enumerate(strings) if string == text]


@settings(max_examples=150)
@given(strings=st.lists(words, max_size=12, unique=True), wanted=words)
def test_look_up_is_equality_exactly_and_more_loosely(strings: list[str], wanted: str) -> None:
    lookup = NameLookup(StringColumn.from_strings(strings))
    for text in [wanted, *strings]:
        assert lookup.exact(text).tolist() == [row for row, string in enumerate(strings) if string == text]
        loose = normalise(text, "loose")
        expected = [row for row, string in enumerate(strings) if loose and normalise(string, "loose") == loose]
        assert lookup.loose(text).tolist() == expected


def test_what_a_folder_has_is_what_is_made(tmp_path: Path) -> None:
    texts = StringColumn.from_strings(["type-1 diabetes", "cold", "Type 1 diabetes", "(cold)", "***", ""])
    NameLookup(texts).save(tmp_path)
    for lookup in (NameLookup.open(tmp_path, texts), NameLookup(texts)):
        assert lookup.loose("TYPE 1 DIABETES").tolist() == [0, 2]
        assert lookup.loose("cold!").tolist() == [1, 3]
        assert lookup.exact("cold!").tolist() == []
        assert lookup.loose("???").tolist() == [], "of what nothing is left nothing is found"
    assert np.load(tmp_path / "text_order.npy").dtype == np.int32
