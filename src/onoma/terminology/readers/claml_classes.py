"""The classes and modifier classes of a ClaML file, an element at a time: codes, titles, further names, links."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from onoma.files.reading import Reading
from onoma.files.xml_files import Element, line_of
from onoma.terminology.languages import LANGUAGE_TAG, tidy_language
from onoma.terminology.readers.ontology import Synonym

LONG, SHORT = "preferredLong", "preferred"
TITLES = (LONG, SHORT)
_DEFINITION = "definition"
_MODIFIER_LINK = "modifierlink"
HEADINGS = ("chapter", "block")
"""Kinds of classes whose inclusion terms are the contents of a part of the book."""
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_PLACE = re.compile(r".*_([0-9])")
_EXCLUSION = "excludeOnPrecedingModifier"
_INLINE = "Term"
_FRAGMENT = "\x1f"
"""Stands before a fragment while a text is put together; XML cannot contain it."""
_JOIN = re.compile(r"[ \u00a0]?:? ?\x1f ?")
_WHITE = re.compile(r"[ \t\r\n]+")
_EMPTY_BRACKETS = re.compile(r" ?(?:\( ?\)|\[ ?\]|\{ ?\})")
_BEFORE_SIGN = re.compile(r" (?=[,;.)\]])")
_SaidT = TypeVar("_SaidT")


@dataclass(frozen=True)
class ModifiedBy:
    """What a class says of a modifier that its codes can have.

    Attributes:
        modifier: Its code.
        place: Of the character, 4 or 5; 0 if nothing says it.
        valid: Codes of the modifier classes that apply; ``None``: all.
    """

    modifier: str
    place: int
    valid: frozenset[str] | None


@dataclass(slots=True)
class ClamlClass:
    """A class as the file has it.

    Attributes:
        code, kind, line: Of the class.
        is_titled: Whether it has a title in some language.
        titles: Language to title, of those that are kept; the first is the preferred name.
        names: Further names.
        definition: "" if there is none.
        above, below: Codes of classes.
        modified_by, excluded: Modifiers that its codes and those below have, and that these do not have.
        linked: Modifiers that it points to without being modified by any.
    """

    code: str
    kind: str
    line: int | None
    is_titled: bool = False
    titles: dict[str, str] = field(default_factory=dict)
    names: list[Synonym] = field(default_factory=list)
    definition: str = ""
    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    modified_by: list[ModifiedBy] = field(default_factory=list)
    excluded: frozenset[str] = frozenset()
    linked: list[ModifiedBy] = field(default_factory=list)


@dataclass(frozen=True)
class ModifierClass:
    """One of the values of a modifier.

    Attributes:
        modifier: The code of that.
        code: What is added to the code of a class.
        line: Where it stands.
        is_titled, titles: As of a class.
        above: Code of another value of the modifier that this one is part of, or "".
        not_after: (modifier, code) of values that this one does not follow.
    """

    modifier: str
    code: str
    line: int | None
    is_titled: bool
    titles: Mapping[str, str]
    above: str
    not_after: frozenset[tuple[str, str]]


class _Titles:
    """The titles of a class, by language: the first long one and the first short one."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, str]] = {LONG: {}, SHORT: {}}

    def take(self, rubric: str, language: str, text: str) -> bool:
        """Whether it is one of them."""
        taken = rubric in TITLES and language not in self._of[rubric]
        if taken:
            self._of[rubric][language] = text
        return taken

    @property
    def best(self) -> dict[str, str]:
        """The long one, where there is one."""
        return {**self._of[SHORT], **self._of[LONG]}

    @property
    def shorter(self) -> dict[str, str]:
        """The short one, where there is a long one that differs."""
        return {language: text for language, text in self._of[SHORT].items() if text != self.best[language]}


class ClassReader:
    """What is read of an element, with the kinds of rubrics and the languages that were found.

    Args:
        languages: Those to keep, the first of which gives titles; empty: all.
        main: Of labels that do not say theirs; if all languages are kept, it gives titles.
        rubrics: Kinds of rubrics whose labels are further names.
    """

    def __init__(self, languages: Sequence[str], main: str, rubrics: Collection[str], reading: Reading) -> None:
        self._rank = {language: rank for rank, language in enumerate(languages or (main,))}
        self._keeps_all, self._main, self._rubrics, self._reading = not languages, main, rubrics, reading
        self._wanted = {*TITLES, _DEFINITION, *rubrics}
        self._tidy: dict[str, str] = {}
        self.languages: set[str] = set()
        self.rubrics: set[str] = set()

    def read_class(self, element: Element) -> ClamlClass:
        """A class."""
        found = ClamlClass(_code(element), _attribute(element, "kind"), line_of(element))
        titles = _Titles()
        definitions: dict[str, list[str]] = {}
        for rubric, language, text in self._labels(element):
            if titles.take(rubric, language, text) or not self._keeps(language):
                continue
            if rubric in self._rubrics and (rubric in TITLES or found.kind not in HEADINGS):
                found.names.append(Synonym(text, rubric, language))
            if rubric == _DEFINITION:
                definitions.setdefault(language, []).append(text)
        found.is_titled, found.titles = bool(titles.best), self._ordered(titles.best)
        if SHORT in self._rubrics:
            shorter = self._ordered(titles.shorter).items()
            found.names[:0] = [Synonym(text, SHORT, language) for language, text in shorter]
        found.definition = next((" ".join(texts) for texts in self._ordered(definitions).values()), "")
        found.above = _codes(element, "SuperClass")
        found.below = _codes(element, "SubClass")
        found.modified_by = [_modified_by(below) for below in element.iterfind("ModifiedBy")]
        found.linked = [] if found.modified_by or found.kind in HEADINGS else _linked(element)
        found.excluded = frozenset(_codes(element, "ExcludeModifier"))
        return found

    def read_modifier_class(self, element: Element) -> ModifierClass:
        """A modifier class."""
        titles = _Titles()
        for rubric, language, text in self._labels(element):
            titles.take(rubric, language, text)
        modifier = _attribute(element, "modifier")
        above = [code for code in _codes(element, "SuperClass") if code != modifier]
        exclusions = (
            _attribute(meta, "value").split() for meta in element.iterfind("Meta") if meta.get("name") == _EXCLUSION
        )
        return ModifierClass(
            modifier,
            _code(element),
            line_of(element),
            bool(titles.best),
            self._ordered(titles.best),
            above[0] if above else "",
            frozenset((parts[0], parts[1]) for parts in exclusions if len(parts) == 2),
        )

    def _labels(self, element: Element) -> Iterator[tuple[str, str, str]]:
        """(kind of the rubric, language, text) of the labels that may be wanted and have one."""
        for rubric in element.iterfind("Rubric"):
            kind = _attribute(rubric, "kind")
            self.rubrics.add(kind)
            for label in rubric.iterfind("Label"):
                language = self._language(label)
                self.languages.add(language)
                text = label_text(label) if kind in self._wanted else ""
                if text:
                    yield kind, language, text

    def _keeps(self, language: str) -> bool:
        return self._keeps_all or language in self._rank

    def _language(self, label: Element) -> str:
        tag = _attribute(label, _LANGUAGE)
        if tag not in self._tidy:
            is_tag = re.fullmatch(LANGUAGE_TAG, tag) is not None
            self._tidy[tag] = tidy_language(tag) if is_tag else self._main
            self._reading.note(f"languages that are no tag such as en ({tag[:20]})", bool(tag) and not is_tag)
        return self._tidy[tag]

    def _ordered(self, by_language: dict[str, _SaidT]) -> dict[str, _SaidT]:
        """What is said in the languages that are kept, in their order."""
        last = len(self._rank)
        kept = (pair for pair in by_language.items() if self._keeps(pair[0]))
        return dict(sorted(kept, key=lambda pair: self._rank.get(pair[0], last)))


def label_text(label: Element) -> str:
    """The text of a label on one line.

    Fragments are one name, "Tuberculosis of:" and "hip" are "Tuberculosis of hip". References in brackets and those to
    the other code of a dagger and an asterisk are left out; others are part of the sentence.
    """
    parts: list[str] = []
    _gather(label, parts)
    text = _JOIN.sub(" ", _WHITE.sub(" ", "".join(parts))).strip(" ")
    if label.find(".//Reference") is not None:
        text = _BEFORE_SIGN.sub("", _EMPTY_BRACKETS.sub("", text)).strip(" ")
    return text


def _gather(element: Element, parts: list[str]) -> None:
    parts.append(element.text or "")
    for child in element:
        if child.tag == "Reference":
            parts.append(" " if _is_aside(child, parts) else f" {''.join(map(str, child.itertext()))} ")
        elif child.tag == _INLINE:
            _gather(child, parts)
        else:
            parts.append(_FRAGMENT if child.tag == "Fragment" else " ")
            _gather(child, parts)
            parts.append(" ")
        parts.append(child.tail or "")


def _is_aside(reference: Element, parts: Sequence[str]) -> bool:
    """Whether a reference is not part of the sentence."""
    in_brackets = "bracket" in _attribute(reference, "class") or parts[-1].rstrip().endswith(("(", "[", "{"))
    return in_brackets or reference.get("usage") is not None


def _modified_by(element: Element) -> ModifiedBy:
    modifier, valid = _attribute(element, "code"), frozenset(_codes(element, "ValidModifierClass"))
    applies_to_all = not valid and _attribute(element, "all") != "false"
    return ModifiedBy(modifier, _place(modifier, _attribute(element, "position")), None if applies_to_all else valid)


def _linked(element: Element) -> list[ModifiedBy]:
    """What a class points to where it speaks of modifiers: M13 of the WHO's ICD-10 says its modifier only so."""
    path = f"Rubric[@kind='{_MODIFIER_LINK}']/Label/Reference"
    return [ModifiedBy(code, _place(code, ""), None) for code in dict.fromkeys(_codes(element, path))]


def _place(modifier: str, position: str) -> int:
    named = _PLACE.fullmatch(modifier)
    if position.isdecimal() and position.isascii() and len(position) == 1:
        return int(position)
    return int(named[1]) if named else 0


def _codes(element: Element, path: str) -> list[str]:
    return list(dict.fromkeys(code for found in element.iterfind(path) if (code := _code(found))))


def _code(element: Element) -> str:
    return _attribute(element, "code")


def _attribute(element: Element, name: str) -> str:
    return str(element.get(name) or "").strip()
