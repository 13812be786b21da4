"""What the csv module finds wrong with a line, in words."""

from __future__ import annotations

import csv

CARRIAGE_RETURN = "a carriage return (CR) outside quotes, where lines end in LF or CR LF: convert the ends of lines"
"""What is wrong with a file whose lines end in CR alone."""


def is_never_closed(error: csv.Error) -> bool:
    """Whether the csv module met the end of the file within quotes."""
    return "end of data" in str(error)


def csv_problem(error: csv.Error) -> str:
    """What the csv module found wrong with a line, in words."""
    if is_never_closed(error):
        return "a quote is opened and never closed"
    if "new-line character" in str(error):
        return CARRIAGE_RETURN
    return f"not CSV ({error})"
