"""Files of pictures that Matplotlib draws (``onoma[plot]``): the same drawing gives the same bytes."""

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


def save_picture(file: Path, draw: Callable[[], Figure], *, overwrite: bool = False) -> None:
    """Draw into a file.

    Args:
        file: ``.png``, ``.svg`` or ``.pdf``.
        draw: Gives the picture; called once the file has been checked.
        overwrite: Replace a file that is there.

    Raises:
        InputError: another kind of file.
        ArtifactExistsError: ``file`` exists.
        UnavailableError: matplotlib is not installed.
    """
    check_picture(file, overwrite=overwrite)
    from matplotlib import rc_context

    kind = file.suffix[1:].lower()
    # Names of parts within an SVG are random otherwise.
    with rc_context({"svg.hashsalt": "onoma"}), write_file(file, overwrite=overwrite) as aside:
        draw().savefig(aside, format=kind, dpi=150, metadata=_UNDATED.get(kind))
