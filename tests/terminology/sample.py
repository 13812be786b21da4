"""What every sample of a format says: one little ontology, and how a format writes it.

X:1 is a kind of X:2; X:4 is retired in favour of X:1 (in formats that can say so).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

NAMES = {
    "X:1": ["Heart attack", "Myocardial infarction", "MI"],
    "X:2": ["Heart disease", "Cardiopathy"],
    "X:3": ['Ménière\'s "vertigo" #2', "メニエール病"],
}
DEFINITION = 'Death of "heart" muscle.'


@dataclass(frozen=True)
class Sample:
    """How to write the little ontology in a format, and what of it the format can say."""

    format: str
    write: Callable[[Path], str]
    """Writes below a folder and returns SOURCE."""
    options: dict[str, str] = field(default_factory=dict)
    text_file: str | None = None
    """The text file in which bytes can be spoilt, if it is one."""
    first_line: int = 1
    """A line of it that holds a name."""
    has_relations: bool = False
    has_types: bool = False
    has_obsolete: bool = False
    package: str | None = None
    """A package that the folder holds, which must not be imported."""
    codes: Mapping[str, str] = field(default_factory=dict)
    """Code in this format to ``X:n``, where a format cannot take a code such as ``X:1``."""
    has_definitions: bool | None = None
    """``None``: where it has relations."""
    order: tuple[str, ...] = ("X:1", "X:2", "X:3")
    """Of the concepts, in formats that nest the narrower in the broader."""
    is_document: bool = False
    """JSON, XML or RDF: bytes that are no text cannot be read past, whatever ``on_error`` says."""


def write_text(name: str, text: str) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        (folder / name).write_bytes(text.encode())
        return str(folder / name)

    return write
