"""Files of pictures that Matplotlib draws (``onoma[plot]``): the same drawing gives the same bytes.

Lines are told apart by more than their colour, which is of Okabe and Ito (2008), for people who see fewer colours and
for paper without any. Words stay words in SVG and PDF, for readers of screens, for searching and for publishers, who
refuse fonts of Type 3; and a picture says in its file what it shows.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onoma.artifacts import ensure_file_writable, write_file
from onoma.errors import InputError, missing_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS = (".png", ".svg", ".pdf")
_UNDATED: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
_DESCRIPTION = {"png": "Description", "svg": "Description", "pdf": "Subject"}
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Of the first line, the second and so on."""


def check_picture(file: Path, *, overwrite: bool = False) -> None:
    """Refuse a picture that cannot be drawn, before the work that leads to it.

    Raises:
        InputError: another kind of file.
        ArtifactExistsError: ``file`` exists.
        UnavailableError: matplotlib is not installed.
    """
    if file.suffix.lower() not in _FORMATS:
        raise InputError("unknown kind of picture", path=file, expected=f"a name ending in {', '.join(_FORMATS)}")
    ensure_file_writable(file, overwrite=overwrite)
    if importlib.util.find_spec("matplotlib") is None:
        raise missing_extra("matplotlib", "plot", "A plot")


def save_picture(file: Path, draw: Callable[[], Figure], *, says: str = "", overwrite: bool = False) -> None:
    """Draw into a file.

    Args:
        file: ``.png``, ``.svg`` or ``.pdf``.
        draw: Gives the picture; called once the file has been checked.
        says: What it shows, in words, for those who do not see it; its title is told too.
        overwrite: Replace a file that is there.

    Raises:
        InputError: another kind of file.
        ArtifactExistsError: ``file`` exists.
        UnavailableError: matplotlib is not installed.
    """
    check_picture(file, overwrite=overwrite)
    from matplotlib import rc_context

    kind = file.suffix[1:].lower()
    # Names of parts within an SVG are random without a salt.
    drawing = rc_context({"svg.hashsalt": "onoma", "svg.fonttype": "none", "pdf.fonttype": 42})
    with drawing, write_file(file, overwrite=overwrite) as aside:
        figure = draw()
        told = {"Title": figure.get_suptitle(), _DESCRIPTION[kind]: " ".join(says.split())}
        metadata = {**_UNDATED.get(kind, {}), **{key: text for key, text in told.items() if text}}
        figure.savefig(aside, format=kind, dpi=150, metadata=metadata)
