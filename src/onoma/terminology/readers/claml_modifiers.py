"""The codes that a ClaML file does not list: those of a class and one or several modifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onoma.errors import InputError
from onoma.terminology.readers.claml_classes import ClamlClass, ModifiedBy, ModifierClass

Modifiers = Mapping[str, Mapping[str, ModifierClass]]
"""Modifier to code to modifier class."""

_THREE_CHARACTERS = re.compile(r"[A-Z][0-9]{2}")
"""Of ICD-10, after which there is a dot."""
_FIFTH = 5
_MOST_MODIFIERS = 100
"""Of a class; those that are published have three."""
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


def modifiers_of(parents_first: Iterable[ClamlClass], path: Path) -> dict[str, list[ModifiedBy]]:
    """The modifiers of each class: its own, and those of the classes above that neither it nor they exclude.

    What it says of a modifier itself counts, not what those above say; what several of these say counts together.

    Returns:
        Class to its modifiers, in the order of the characters that they give.

    Raises:
        InputError: a class has more than `_MOST_MODIFIERS`.
    """
    inherited: dict[str, dict[str, ModifiedBy]] = {}
    for found in parents_first:
        together = _together(told for code in found.above for told in inherited.get(code, {}).values())
        together.update(_together(found.modified_by))
        kept = {modifier: told for modifier, told in together.items() if modifier not in found.excluded}
        if len(kept) > _MOST_MODIFIERS:
            problem = f"a class with more than {_MOST_MODIFIERS} modifiers (a bomb?)"
            fix = "get the file from its publisher, or leave modifiers out (--set modifiers=no)"
            raise InputError(problem, path=path, line=found.line, field="ModifiedBy", found=found.code, fix=fix)
        if kept:
            inherited[found.code] = kept
    return {code: sorted(told.values(), key=lambda modified_by: modified_by.place) for code, told in inherited.items()}


def _together(said: Iterable[ModifiedBy]) -> dict[str, ModifiedBy]:
    """Modifier to all that is said of it."""
    found: dict[str, ModifiedBy] = {}
    for told in said:
        before = found.get(told.modifier, told)
        valid = None if before.valid is None or told.valid is None else before.valid | told.valid
        found[told.modifier] = ModifiedBy(told.modifier, before.place or told.place, valid)
    return found


def modified_codes(
    found: ClamlClass, modified_by: Iterable[ModifiedBy], modifiers: Modifiers, taken: set[str]
) -> Iterator[ModifiedCode]:
    """The codes of a class with modifiers, each followed by those that further modifiers make of it.

    Args:
        found: A class with nothing below it.
        modified_by: Its modifiers; what the first gives is modified by the second, and so on.
        modifiers: Those of the file.
        taken: Codes that the file has, or that were made before, which are not made again; gets those that are made.
    """
    with_values = [told for told in modified_by if modifiers.get(told.modifier)]
    waiting = [(ModifiedCode(found.code, "", found.titles), 0)]
    while waiting:
        base, n_done = waiting.pop()
        if base.above:
            yield base
        made: list[ModifiedCode] = []
        while not made and n_done < len(with_values):
            told = with_values[n_done]
            made = _with_values(base, told, modifiers[told.modifier], taken)
            n_done += 1
        broader = {code.above for code in made}
        waiting += [(code, len(with_values) if code.code in broader else n_done) for code in reversed(made)]


def _with_values(
    base: ModifiedCode, told: ModifiedBy, values: Mapping[str, ModifierClass], taken: set[str]
) -> list[ModifiedCode]:
    """One code with each value of a modifier."""
    made: dict[str, ModifierClass] = {}
    for value in values.values():
        code = _joined(base.code, told.place, value.code)
        applies = told.valid is None or value.code in told.valid
        if applies and code not in taken and value.not_after.isdisjoint(base.values):
            taken.add(code)
            made[code] = value
    found = []
    for code, value in made.items():
        broader = _broader(value, values)
        codes = (_joined(base.code, told.place, one.code) for one in broader)
        above = next((one for one in codes if one in taken), base.code)
        titles = _titles([base.titles, *(one.titles for one in reversed(broader)), value.titles])
        found.append(ModifiedCode(code, above, titles, (*base.values, (told.modifier, value.code))))
    return found


def _joined(code: str, place: int, value: str) -> str:
    """A code and what is added to it: E11 and .9; M00.0 and 1; M45 and 1 as fifth character, which is M45.X1."""
    if _THREE_CHARACTERS.fullmatch(code) and not value.startswith("."):
        return f"{code}.X{value}" if place == _FIFTH else f"{code}.{value}"
    return code + (value.removeprefix(".") if "." in code else value)


def _broader(value: ModifierClass, values: Mapping[str, ModifierClass]) -> list[ModifierClass]:
    """The values that one is part of, the nearest first; none if they go in a circle."""
    found = {value.code: value}
    while (above := values.get(value.above)) is not None:
        if above.code in found:
            return []
        found[above.code] = value = above
    return list(found.values())[1:]


def _titles(parts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Titles in the languages that all parts have; if they share none, of whatever comes first."""
    shared = [language for language in parts[0] if all(language in part for part in parts)]
    if not shared:
        return {next(iter(parts[0])): _AND.join(next(iter(part.values())) for part in parts)}
    return {language: _AND.join(part[language] for part in parts) for language in shared}
