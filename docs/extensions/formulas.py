"""MkDocs hook: draws fenced blocks ``formula`` (the TeX that Matplotlib supports).

They are drawn when the site is built, so that a reader needs neither network nor scripts, in the colour of the text
around them. Where the Markdown is not rendered, readers see the TeX.
"""

from __future__ import annotations

import html
import io
import re
from typing import Any

from matplotlib import rc_context
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import math_to_image

_BLOCK = re.compile(r"^```formula\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_POINTS = 15


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs with each page."""
    return _BLOCK.sub(lambda block: formulas(block.group(1)), markdown)


def formulas(tex: str) -> str:
    """One drawing for each line."""
    drawings = [_drawing(line.strip()) for line in tex.splitlines() if line.strip()]
    return (
        '<div class="formula" style="overflow-x: auto">\n'
        + "\n".join(f"<div>{drawing}</div>" for drawing in drawings)
        + "\n</div>"
    )


def _drawing(tex: str) -> str:
    written = io.StringIO()
    with rc_context({"svg.hashsalt": "onoma", "mathtext.fontset": "cm"}):
        math_to_image(f"${tex}$", written, prop=FontProperties(size=_POINTS), format="svg", color="#010203")
    drawing = written.getvalue()
    drawing = drawing[drawing.index("<svg") :].replace("#010203", "currentColor")
    drawing = re.sub(r"<metadata>.*?</metadata>\s*", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r'<g id="patch_\d+">.*?</g>\s*', "", drawing, flags=re.DOTALL)  # the white sheet behind it
    words = html.escape(tex, quote=True)
    return re.sub(r"\s*\n\s*", " ", drawing.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1))
