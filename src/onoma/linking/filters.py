"""Which names and concepts may be an answer: by semantic type, source, language, branch of the hierarchy.

A filter removes candidates before they are ranked; it does not remove answers afterwards. So you get as many answers as
you request, if there are so many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from onoma.codes import digits_of
from onoma.errors import InputError, did_you_mean
from onoma.linking.dictionary import NameDictionary
from onoma.linking.facts import TerminologyFacts
from onoma.terminology.languages import spellings
from onoma.terminology.semantic_types import GROUP_OF, GROUPS, TYPES
from onoma.types import BoolArray

_MOST_NAMED = 20
_MOST_COMPARED = 2_000
_SAID_BY = {
    "semantic type": "semantic_type=COLUMN",
    "source": "default_source=NAME",
    "language": "default_language=en",
}
"""How it is said of a table as that is imported."""
_KNOWN = (
    "a code with a name or a place in the hierarchy; an obsolete one may have neither (onoma terminology search tells "
    "what took its place)"
)


@dataclass(frozen=True)
class Filters:
    """What an answer must be; an empty field requires nothing.

    Attributes:
        semantic_types: It has one of these types, as the terminology calls them; or a type in one of these semantic
            groups of the UMLS, by code ("DISO") or name ("Disorders"). "T047" is "Disease or Syndrome".
        sources: The matched name comes from one of these sources, as the terminology calls them.
        languages: The matched name is in one of these languages (BCP 47); ``en`` includes ``en-GB``. If the linker's
            normalisation makes several spellings the same text ("Diabetes", "diabetes"), the concept's first is shown,
            whichever of them has the source or language.
        under: It is one of these concepts, or below one of them in the hierarchy. A concept whose own code is ``a|b``
            is found by either of the two.
    """

    semantic_types: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    under: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        semantic_types: str | Iterable[str] | None = None,
        sources: str | Iterable[str] | None = None,
        languages: str | Iterable[str] | None = None,
        under: str | Iterable[str] | None = None,
    ) -> Filters:
        """Filters from one word or several each; none if nothing is given."""
        return cls(
            filter_words(semantic_types, "semantic_types"),
            filter_words(sources, "sources"),
            filter_words(languages, "languages"),
            filter_words(under, "under"),
        )

    @property
    def are_set(self) -> bool:
        """Whether anything is required."""
        return bool(self.semantic_types or self.sources or self.languages or self.under)


def allowed_entries(filters: Filters, dictionary: NameDictionary, facts: TerminologyFacts) -> BoolArray:
    """Which entries pass, shape (E,).

    Raises:
        InputError: the terminology has no such semantic type, source, language or concept; the nearest is named.
    """
    allowed = np.ones(len(dictionary.entry_concepts), np.bool_)
    if filters.semantic_types:
        allowed &= expected_concepts(filters.semantic_types, facts)[dictionary.entry_concepts]
    if filters.sources or filters.languages:
        allowed &= _with_labels(filters, facts)
    if filters.under:
        below = np.zeros(dictionary.n_concepts, np.bool_)
        for concept_id in filters.under:
            branch = facts.branch(concept_id)
            if branch is None:
                _refuse("concept", concept_id, "under", _similar(concept_id, facts.concept_ids), otherwise=_KNOWN)
            else:
                below |= branch
        if facts.children.size == 0:
            raise InputError(
                "the linker's terminology has no hierarchy: no relation says that a concept is a kind of another",
                field="under",
            )
        allowed &= below[dictionary.entry_concepts]
    return allowed


def expected_concepts(
    semantic_types: Sequence[str], facts: TerminologyFacts, *, field: str = "semantic_types"
) -> BoolArray:
    """Which concepts have one of these types or groups, shape (C,).

    Args:
        semantic_types: Names, codes or groups.
        facts: Of the terminology.
        field: What errors call them.

    Raises:
        InputError: the terminology has no such type.
    """
    known = frozenset().union(*facts.type_sets)
    wanted: set[str] = set()
    for word in semantic_types:
        meant = _meant_types(word, known)
        if not meant:
            _refuse("semantic type", word, field, known)
        wanted |= meant
    return facts.concepts_of_types(frozenset(wanted))


def _meant_types(word: str, known: frozenset[str]) -> set[str]:
    """The terminology's types that a word stands for, however they are written there; a group's if it is no type's."""
    folded = word.casefold()
    of_type = {tui for tui, name in TYPES.items() if folded in {tui.casefold(), name.casefold()}}
    if found := _written({folded}, of_type, known):
        return found
    groups = {code for code, group in GROUPS.items() if folded in {code.casefold(), group.casefold()}}
    return _written(set(), {tui for tui in TYPES if GROUP_OF[tui] in groups}, known)


def _written(words: set[str], tuis: set[str], known: frozenset[str]) -> set[str]:
    """The types that are called by one of the words or are of one of the UMLS, by code or name, in any case."""
    meant = {*words, *(tui.casefold() for tui in tuis), *(TYPES[tui].casefold() for tui in tuis)}
    return {known_type for known_type in known if known_type.casefold() in meant}


def _with_labels(filters: Filters, facts: TerminologyFacts) -> BoolArray:
    """Which entries have a name of one of the languages that is from one of the sources, shape (E,)."""
    labels = frozenset().union(*facts.label_sets)
    languages, sources = {language for language, _ in labels}, {source for _, source in labels}
    for source in filters.sources:
        if source not in sources:
            _refuse("source", source, "sources", sources)
    for language in filters.languages:
        if not any(_is_of(known, language) for known in languages):
            _refuse("language", language, "languages", languages)
    wanted = {
        (language, source)
        for language, source in labels
        if (not filters.sources or source in filters.sources)
        and (not filters.languages or any(_is_of(language, asked) for asked in filters.languages))
    }
    passes = np.array([not wanted.isdisjoint(labels) for labels in facts.label_sets], np.bool_)
    return passes[facts.entry_labels]


def _is_of(language: str, asked: str) -> bool:
    """As `onoma.terminology.tables.of_languages`: ``en`` takes ``en-GB`` too, but not ``enm``."""
    return f"{language.lower()}-".startswith(tuple(f"{spelling}-" for spelling in spellings(asked)))


def _refuse(what: str, word: str, field: str, known: Iterable[str], *, otherwise: str | None = None) -> None:
    """Refuse a word; ``known`` are all that there are, or, where ``otherwise`` says what is expected, some like it."""
    there = sorted(name for name in known if name)
    if otherwise is None and set(there) <= {"und"}:
        raise InputError(
            f"the linker's terminology has no {what} '{word}': it has none at all, so nothing can be chosen by {what}",
            field=field,
            fix=f"say it at import (of a table: --set {_SAID_BY[what]}), then update the linker (onoma linker update)",
        )
    left = f", … ({len(there):,})" if len(there) > _MOST_NAMED else ""
    folded = {name.casefold() for name in there}
    are_several = "," in word and any(part.strip().casefold() in folded for part in word.split(","))
    raise InputError(
        f"the linker's terminology has no {what} '{word}'.{did_you_mean(word, there)}".rstrip("."),
        field=field,
        expected=otherwise or f"one of: {', '.join(there[:_MOST_NAMED])}{left}",
        fix="name each by itself, without commas between" if are_several else None,
    )


def _similar(concept_id: str, concept_ids: Iterable[str]) -> list[str]:
    """Codes of which one half is that of the code asked for: one slip of the pen leaves one half as it was."""
    half = (len(concept_id) + 1) // 2
    digits = digits_of(concept_id)
    begin, end = concept_id[:half].lower(), concept_id[-half:].lower()
    found = []
    for code in concept_ids:
        is_alike = code.lower().startswith(begin) or code.lower().endswith(end)
        if is_alike and abs(len(code) - len(concept_id)) <= 2 and digits_of(code) == digits:
            found.append(code)
            if len(found) == _MOST_COMPARED:
                break
    return found


def filter_words(words: str | Iterable[str] | None, field: str) -> tuple[str, ...]:
    """Make one word or several into several.

    Raises:
        InputError: one is not text.
    """
    if words is None:
        return ()
    several = tuple(words) if isinstance(words, Iterable) and not isinstance(words, str) else (words,)
    for word in several:
        if not isinstance(word, str):
            raise InputError("a filter that is no text", field=field, expected="a word, or several", found=repr(word))
    return several
