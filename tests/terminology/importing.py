"""Importing what a test has written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onoma.terminology import ImportReport, Terminology, import_terminology


def imported(
    format: str, source: str | Path, out: Path, /, *, on_error: Any = "strict", **options: Any
) -> tuple[Terminology, ImportReport]:
    """A terminology that is read anew, and what is reported of it."""
    report = import_terminology(format, source, out, on_error=on_error, options=options, overwrite=True)
    return Terminology.open(out), report


def named(terminology: Terminology) -> dict[str, list[str]]:
    """Code to names, in their order."""
    codes = terminology.concepts().collect()["concept_id"].to_list()
    found: dict[str, list[str]] = {code: [] for code in codes}
    for row, text in terminology.names().select("concept_row", "text").collect().rows():
        found[codes[row]].append(text)
    return found
