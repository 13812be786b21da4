"""Griffe extension: tables of docstrings, which stand there between lines of ``=``, as Markdown tables."""

from __future__ import annotations

import re
from typing import Any

import griffe

_RULE = re.compile(r"=+( +=+)+")


class SimpleTables(griffe.Extension):
    """Rewrites the docstring of every object."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by Griffe once an object is loaded."""
        if obj.docstring is not None and "===" in obj.docstring.value:
            obj.docstring.value = markdown_tables(obj.docstring.value)


def markdown_tables(text: str) -> str:
    """The text with its tables as Markdown; a row whose first cell is empty goes on with the row above."""
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
        for line in (lines[at] for at in range(number + 1, last) if at not in rules):
            cells = [line[start:end].strip().replace("|", "\\|") for (start, _), end in zip(spans, ends, strict=True)]
            if cells[0] or not rows:
                rows.append(cells)
            else:
                rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
        head, *body = rows
        table = [head, ["---"] * len(spans), *body]
        written += ["", *(f"| {' | '.join(row)} |" for row in table), ""]
        number = last + 1
    return "\n".join(written)
