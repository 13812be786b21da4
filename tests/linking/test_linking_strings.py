"""Columns of text over bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.linking.strings import StringColumn

AWKWARD = ["", "a", "心臓発作", "\x00", "Ménière's \U0001f9e0", "", "x" * 10_000, "\n\t|"]


@pytest.mark.parametrize("strings", [AWKWARD, [], [""], ["", ""]])
def test_saved_and_opened(tmp_path: Path, strings: list[str]) -> None:
    StringColumn.from_strings(strings).save(tmp_path, "names")
    column = StringColumn.open(tmp_path, "names")
    assert list(column) == strings
    assert [column[position] for position in range(len(column))] == strings


@settings(max_examples=50)
@given(strings=st.lists(st.text(max_size=5), max_size=8), begin=st.integers(-9, 9), end=st.integers(-9, 9))
def test_behaves_as_a_list(strings: list[str], begin: int, end: int) -> None:
    column = StringColumn.from_strings(strings)
    assert len(column) == len(strings)
    assert list(column) == strings
    assert column[begin:end] == strings[begin:end]
    assert list(reversed(column)) == strings[::-1]
    assert column.has_any(b"\t0a") == any(sign in text for text in strings for sign in "\t0a")
    if -len(strings) <= begin < len(strings):
        assert column[begin] == strings[begin]
    else:
        with pytest.raises(IndexError):
            column[begin]
