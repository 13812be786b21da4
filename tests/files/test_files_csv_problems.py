"""What the csv module says of bad lines, in words, whatever the version of Python."""

from __future__ import annotations

import csv

import pytest

from onoma.files.csv_problems import CARRIAGE_RETURN, csv_problem, is_never_closed


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('a,"b\n', "a quote is opened and never closed"),
        ("a,b\rc,d\n", CARRIAGE_RETURN),
        ('a,"b"c\n', "not CSV (',' expected after '\"')"),
    ],
)
def test_errors_in_words(line: str, problem: str) -> None:
    with pytest.raises(csv.Error) as caught:
        list(csv.reader([line], strict=True))
    assert csv_problem(caught.value) == problem
    assert is_never_closed(caught.value) == ("never closed" in problem)
