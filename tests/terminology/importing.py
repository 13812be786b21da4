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
