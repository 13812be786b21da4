"""Options of the table reader."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from onoma.terminology.readers.options import LanguageTag, ReaderOptions, Separator, Words, split_cells

OPTIONAL_COLUMNS = (
    "preferred",
    "language",
    "semantic_type",
    "source",
    "definition",
    "parent",
    "obsolete",
    "replaced_by",
)
"""Options that each name a column, which a table need not have."""
OF_SEVERAL = ("semantic_type", "parent")
"""Those of them that may have several values in a cell."""
_POSITION = re.compile(r"(?P<name>.*\S)\s*:\s*(?P<first>[1-9][0-9]{0,6})(?P<to>\s*-\s*(?P<last>[1-9][0-9]{0,6})?)?")


def _checked_positions(given: tuple[str, ...]) -> tuple[str, ...]:
    names = set()
    for one in given:
        match = _POSITION.fullmatch(one)
        if not match or (match["last"] and int(match["last"]) < int(match["first"])):
            raise ValueError(f"a column and its first and last character, such as code:7-13 or name:78-, not '{one}'")
        if match["name"] in names:
            raise ValueError(f"two columns are called '{match['name']}'")
        names.add(match["name"])
    return given


def _checked_conditions(given: tuple[str, ...]) -> tuple[str, ...]:
    for one in given:
        if not one.partition("=")[0].strip():
            raise ValueError(f"a column and a value of it, such as kind=gene, not '{one}'")
    return given


class TableOptions(ReaderOptions):
    """Options of the table reader."""

    id: str = Field(description="column with the code of the concept")
    name: Words = Field(min_length=1, description="column(s) with names; the first holds the preferred name")
    preferred: str | None = Field(
        default=None,
        description="column that marks preferred names (true/false, 1/0, yes/no); unset: a code's first name",
    )
    language: str | None = Field(default=None, description="column with the language (BCP 47)")
    semantic_type: str | None = Field(default=None, description="column with the semantic type")
    source: str | None = Field(default=None, description="column with the source vocabulary")
    definition: str | None = Field(default=None, description="column with the definition of the concept")
    parent: str | None = Field(default=None, description="column with the code(s) of broader concepts")
    obsolete: str | None = Field(
        default=None, description="column that marks retired codes (true/false, 1/0, yes/no, obsolete/active)"
    )
    obsolete_words: Words = Field(
        default=(), description="what the column obsolete has for retired codes, if other words, e.g. Withdrawn,Merged"
    )
    replaced_by: str | None = Field(
        default=None,
        description="column with the code to use instead; a code that has one is retired, unless obsolete says active",
    )
    only: Annotated[Words, AfterValidator(_checked_conditions)] = Field(
        default=(),
        description="keep only rows with one of these values in these columns, e.g. kind=gene,kind=pseudogene",
    )
    separator: Separator | None = Field(
        default=None, description="what separates several names, types or parents in one cell: a sign, e.g. |, or tab"
    )
    default_source: str = Field(default="", description="source vocabulary of the names, if the table does not say")
    default_language: LanguageTag = Field(default="und", description="language (BCP 47), if the table does not say")
    delimiter: str = Field(
        default="auto", description="column separator: auto (by file name and first line), tab, or a character"
    )
    quoting: Literal["auto", "yes", "no"] = Field(
        default="auto",
        description="whether fields may be in double quotes: auto (yes, unless tabs separate the columns), yes, no",
    )
    encoding: str = Field(default="utf-8", description="encoding of a text file, e.g. cp1252, latin-1, utf-16")
    header: Annotated[tuple[str, ...], BeforeValidator(split_cells)] = Field(
        default=(),
        description="names of the first columns, if the first line is a row and not a header; a name may be empty",
    )
    positions: Annotated[Words, AfterValidator(_checked_positions)] = Field(
        default=(),
        description="columns by their first and last character in a line, if nothing divides them: code:7-13,name:78-",
    )
    continued: bool = Field(
        default=False,
        description="whether a line with the code of the line before continues its names (yes or no; with positions)",
    )
    comment: str | None = Field(default=None, min_length=1, description="what comments begin with, e.g. #")
    strip: str = Field(
        default="", description="characters to strip from both ends of names, along with white space, e.g. - (ICD-11)"
    )
    strip_codes: str = Field(
        default="", description="characters to strip from both ends of codes, e.g. +*! (dagger, asterisk; ICD-10)"
    )
    missing: Words = Field(default=(), description="what an empty cell contains, e.g. -,NA")

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of the table that is used."""
        optional = (getattr(self, option) for option in OPTIONAL_COLUMNS)
        return tuple(dict.fromkeys([self.id, *self.name, *(column for column in optional if column), *self.conditions]))

    @property
    def conditions(self) -> dict[str, list[str]]:
        """Column to the values that rows may have in it."""
        found: dict[str, list[str]] = {}
        for one in self.only:
            column, _, value = one.partition("=")
            found.setdefault(column.strip(), []).append(value.strip())
        return found

    @property
    def places(self) -> dict[str, tuple[int, int | None]]:
        """Column of ``positions`` to its first and its last character, from 1; ``None``: to the end of the line."""
        found: dict[str, tuple[int, int | None]] = {}
        for match in map(_POSITION.fullmatch, self.positions):
            assert match is not None
            first = int(match["first"])
            found[match["name"]] = (first, int(match["last"]) if match["last"] else None if match["to"] else first)
        return found
