"""Where rejected rows go."""

from __future__ import annotations

import polars as pl
import pytest

from onoma.files import reading as module
from onoma.files.reading import REJECTS, Reading


def test_rejects_stand_in_the_order_in_which_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one or many together, and whenever somebody looks."""
    monkeypatch.setattr(module, "_MOST_WAITING", 3)
    reading = Reading(on_error="skip")
    for line in range(1, 6):
        reading.reject("bad", path=f"folder/{line % 2}.csv", line=line, text=f"row {line}", field="name")
    together = pl.DataFrame({"line": [6, 7], "text": ["row 6", "x" * 600]})
    reading.reject_rows(together, "bad too", path="a.csv", expected="a number")
    assert reading.rejects["line"].to_list() == [1, 2, 3, 4, 5, 6, 7]
    reading.reject("of no line", path="a.csv", text="\udcff" + "y" * 600)
    rejects = reading.rejects
    assert rejects.schema == REJECTS
    assert rejects.rows()[0] == ("1.csv", 1, "bad; field name", "row 1")
    assert rejects.rows()[5] == ("a.csv", 6, "bad too; expected a number", "row 6")
    assert rejects["line"].to_list()[-1] is None
    assert rejects["text"].to_list()[-1].startswith("\\udcffyyy")
    assert rejects["text"].str.len_chars().max() == 500
