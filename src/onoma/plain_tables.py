"""Tables as plain text."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Sequence


def aligned(rows: Sequence[Sequence[str]], *, numeric: Container[str] = ()) -> str:
    """Rows as lines, with the cells of a column under each other.

    Args:
        rows: As many cells in each, at least one row. The first may hold the names of the columns.
        numeric: Columns set flush right, as the first row calls them.

    Example:
        >>> print(aligned([["name", "score"], ["fever", "1.000"], ["a", "12.000"]], numeric=["score"]))
        name    score
        fever   1.000
        a      12.000
    """
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    is_right = [name in numeric for name in rows[0]]
    lines = []
    for row in rows:
        blanks = [" " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [
            f"{pad}{cell}" if right else f"{cell}{pad}" for cell, pad, right in zip(row, blanks, is_right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _width(text: str) -> int:
    """How many places of a terminal a text takes: Chinese and Japanese characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "FW" else 1 for character in text)
