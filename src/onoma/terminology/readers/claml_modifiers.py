"""The codes that a ClaML file does not list: those of a class and one or several modifiers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from onoma.terminology.readers.claml_classes import ClamlClass, ModifiedBy, ModifierClass

Modifiers = Mapping[str, Mapping[str, ModifierClass]]
"""Modifier to code to modifier class."""

_THREE_CHARACTERS = re.compile(r"[A-Z][0-9]{2}")
"""Of ICD-10, after which there is a dot."""
_FIFTH = 5
_AND = ": "


@dataclass(frozen=True)
class ModifiedCode:
    """A code made of a class and modifier classes.

    Attributes:
        code: Of the class and the modifier classes.
        above: The code that it is below.
        titles: Language to title.
        values: (modifier, code) of each modifier class in it.
    """

    code: str
    above: str
    titles: Mapping[str, str]
    values: tuple[tuple[str, str], ...] = ()


def modifiers_of(parents_first: Iterable[ClamlClass]) -> dict[str, list[ModifiedBy]]:
    """The modifiers of each class: its own, and those of the classes above that neither it nor they exclude.

    Returns:
        Class to its modifiers, in the order of the characters that they give.
    """
    inherited: dict[str, dict[str, ModifiedBy]] = {}
    for found in parents_first:
        together: dict[str, ModifiedBy] = {}
        for code in found.above:
            together.update(inherited.get(code, {}))
        together.update((told.modifier, told) for told in found.modified_by)
        if together:
            inherited[found.code] = {
                modifier: told for modifier, told in together.items() if modifier not in found.excluded
            }
    return {code: sorted(told.values(), key=lambda modified_by: modified_by.place) for code, told in inherited.items()}


def modified_codes(
    found: ClamlClass, modified_by: Iterable[ModifiedBy], modifiers: Modifiers, listed: Collection[str]
) -> Iterator[ModifiedCode]:
    """The codes of a class with modifiers, each after the one that it is below.

    Args:
        found: A class with nothing below it.
        modified_by: Its modifiers; what the first gives is modified by the second, and so on.
        modifiers: Those of the file.
        listed: Codes that the file has, which are not made again.
    """
    before = [ModifiedCode(found.code, "", found.titles)]
    for told in modified_by:
        made = [code for base in before for code in _with_values(base, told, modifiers.get(told.modifier, {}), listed)]
        yield from made
        broader = {code.above for code in made}
        before = [code for code in made if code.code not in broader] or before


def _with_values(
    base: ModifiedCode, told: ModifiedBy, values: Mapping[str, ModifierClass], listed: Collection[str]
) -> Iterator[ModifiedCode]:
    """One code with each value of a modifier."""
    made: set[str] = set()
    for value in values.values():
        code = _joined(base.code, told.place, value.code)
        applies = told.valid is None or value.code in told.valid
        if not applies or code in listed or code in made or not value.not_after.isdisjoint(base.values):
            continue
        broader = _joined(base.code, told.place, value.above)
        above = broader if value.above and broader in made else base.code
        made.add(code)
        yield ModifiedCode(
            code, above, _titles(base.titles, value, values), (*base.values, (told.modifier, value.code))
        )


def _joined(code: str, place: int, value: str) -> str:
    """A code and what is added to it: E11 and .9; M00.0 and 1; M45 and 1 as fifth character, which is M45.X1."""
    if _THREE_CHARACTERS.fullmatch(code) and not value.startswith("."):
        return f"{code}.X{value}" if place == _FIFTH else f"{code}.{value}"
    return code + (value.removeprefix(".") if "." in code else value)


def _titles(base: Mapping[str, str], value: ModifierClass, values: Mapping[str, ModifierClass]) -> dict[str, str]:
    """Titles in the languages that all parts have; if they share none, of whatever comes first."""
    parts, passed = [value.titles], {value.code}
    while (broader := values.get(value.above)) is not None and broader.code not in passed:
        parts.insert(0, broader.titles)
        passed.add(broader.code)
        value = broader
    parts.insert(0, base)
    shared = [language for language in base if all(language in part for part in parts)]
    if not shared:
        return {next(iter(base)): _AND.join(next(iter(part.values())) for part in parts)}
    return {language: _AND.join(part[language] for part in parts) for language in shared}
