"""Griffe extension: reStructuredText in docstrings (tables between lines of ``=``, and ``::``) as Markdown."""

from __future__ import annotations

import html
import re
from typing import Any

import griffe

_RULE = re.compile(r"=+( +=+)+")
_CODE = re.compile(r"``(.+?)``|`(.+?)`")


class Docstrings(griffe.Extension):
    """Rewrites the docstring of every object."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by Griffe once an object is loaded."""
        if obj.docstring is not None:
            obj.docstring.value = markdown_tables(without_double_colons(obj.docstring.value))


def without_double_colons(text: str) -> str:
    """The text without the marks before literal blocks, which Markdown recognises by their indent."""
    return re.sub(r"^( *)::$", "", re.sub(r"(?<=\S)::$", ":", text, flags=re.MULTILINE), flags=re.MULTILINE)


def markdown_tables(text: str) -> str:
    """The text with its tables as Markdown.

    A line continues the row above if its first cell is empty, or if the first cell above ends with a comma.
    """
    lines, written = text.splitlines(), []
    number = 0
    while number < len(lines):
        rules = [at for at in range(number, len(lines)) if _RULE.fullmatch(lines[at].strip())][:3]
        if not rules or rules[0] != number or len(rules) < 2:
            written.append(lines[number])
            number += 1
            continue
        spans = [match.span() for match in re.finditer("=+", lines[number])]
        ends = [*(start for start, _ in spans[1:]), None]
        has_head = len(rules) == 3 and all(lines[at].strip() for at in range(rules[0], rules[2]))
        last = rules[2] if has_head else rules[1]
        rows: list[list[str]] = [] if has_head else [[""] * len(spans)]
        goes_on = False
        for line in (lines[at] for at in range(number + 1, last) if at not in rules):
            cells = [line[start:end].strip() for (start, _), end in zip(spans, ends, strict=True)]
            if rows and (goes_on or not cells[0]):
                rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
            else:
                rows.append(cells)
            goes_on = cells[0].endswith(",")
        head, *body = [[_without_bars(cell) for cell in row] for row in rows]
        table = [head, ["---"] * len(spans), *body]
        written += ["", *(f"| {' | '.join(row)} |" for row in table), ""]
        number = last + 1
    return "\n".join(written)


def _without_bars(cell: str) -> str:
    """A cell with its bars escaped, so that they do not end it: in code, which would show a backslash, as HTML."""

    def code(match: re.Match[str]) -> str:
        text = match.group(1) or match.group(2)
        if "|" not in text:
            return match.group()
        return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"

    return _CODE.sub(code, cell).replace("|", "\\|")
