from __future__ import annotations

import pytest

from onoma.quantities import quantity


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (0, ("name",), "0 names"),
        (1, ("name",), "1 name"),
        (1_000, ("name",), "1,000 names"),
        (1, ("query", "queries"), "1 query"),
        (2, ("query", "queries"), "2 queries"),
    ],
)
def test_quantities_agree_with_their_nouns(number: int, words: tuple[str, ...], expected: str) -> None:
    assert quantity(number, *words) == expected
