"""How a reader describes itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onoma.files.reading import Reading
from onoma.terminology.assembly import SourceTables
from onoma.terminology.readers.options import ReaderOptions


@dataclass(frozen=True)
class Format:
    """A format of terminologies.

    Attributes:
        name: As the command line takes it.
        description: What it is, in a line.
        source: What SOURCE is.
        obtain: Where a user gets the files.
        licence: Of what is usually read in this format.
        options: Their type.
        read: ``read(source, options, reading)``.
    """

    name: str
    description: str
    source: str
    obtain: str
    licence: str
    options: type[ReaderOptions]
    read: Callable[[str, Any, Reading], SourceTables]
