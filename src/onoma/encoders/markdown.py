"""Markdown in which no text of a user's can break anything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a cell may hold one piece of code in backticks, all else is shown as it is."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    parts = re.fullmatch(r"(.*)`([0-9a-z-]+)`(.*)", text, re.DOTALL)
    return f"{plain(parts[1])}`{parts[2]}`{plain(parts[3])}" if parts else plain(text)


def plain(text: str) -> str:
    """Text that Markdown and HTML show as it is, on one line."""
    shown = "".join("\ufffd" if unicodedata.category(c) in {"Cc", "Cs"} else c for c in text)
    return re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", shown)


def code(lines: Sequence[str]) -> str:
    """A block of Python."""
    return "\n".join(["```python", *lines, "```"])
