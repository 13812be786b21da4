"""Short forms and their long forms, found in a document.

"HCC" says little to an encoder and nothing to a dictionary; its document usually says what it means, once, in brackets.
Two finders read that:

================  =================================================================================================
schwartz-hearst   written here from the paper's description; needs nothing
ab3p              NCBI's Ab3P through the package ``pyab3p`` (extra ``abbreviations``); BioSyn used it to prepare
                  the published queries of NCBI-disease and BC5CDR
================  =================================================================================================

Source:
    Schwartz and Hearst 2003, "A simple algorithm for identifying abbreviation definitions in biomedical text",
    PSB 8:451-462. Sohn et al. 2008, "Abbreviation definition identification based on automatic precision
    estimates", BMC Bioinformatics 9:402 (Ab3P).
"""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from onoma.errors import UnavailableError, missing_extra, one_of

_SHORT_FORM_LENGTHS = range(2, 11)
_MAX_SHORT_FORM_WORDS = 2
BRACKETS = tuple(
    re.compile(rf"\{opener}([^\{opener}\{closer}]*)\{closer}") for opener, closer in ("()", "[]", "\uff08\uff09")
)
_ADDITION = re.compile(r"[;,]\s|\s[\[(]")
_PARAGRAPH_END = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[^\Wa-z_]|[\"'“‘(\[])|" + _PARAGRAPH_END.pattern)
_LONGEST_BRACKET = 200
"""Characters in brackets that may be part of a sentence."""
_NO_SENTENCE_END = frozenset({"e.g", "i.e", "vs", "cf", "dr", "st", "no", "nos", "fig", "figs", "approx", "ca"})
_QUOTES_AND_OPENERS = "\"'“”‘’«»([{"
_QUOTES = "\"'“”‘’«»"
_BEFORE_BRACKETS = _QUOTES_AND_OPENERS + " ,;:–—"
"""What may stand between a long form and the bracket behind it."""
_LOOK_BACK = 1_000
"""Characters before a bracket in which its long form is looked for: more than 15 words ever have."""
_AB3P_SHORT_FORM, _AB3P_WORDS = 90, 500
_AB3P_HAS_WHEELS = "It has wheels for Python 3.12 and earlier; elsewhere, use schwartz-hearst."


def find_abbreviations(document: str) -> dict[str, str]:
    """The short forms that a document defines, with their long forms, by the algorithm of Schwartz and Hearst.

    Two patterns: ``long form (SF)`` and, if the brackets hold more than two words or no valid short form,
    ``SF (long form)``. A short form has at most two words and 2 to 10 characters, at least one of them a letter, the
    first a letter or digit. Its long form is in the same sentence, has at most min(n + 5, 2n) words for n characters of
    short form, and is the shortest text next to the short form in which the short form's letters and digits occur in
    order, whatever their case and accents, the first one at the beginning of a word. A long form shorter than its short
    form, or with the short form among its words, does not count.

    A short form with several long forms gets the one that is defined most often (ignoring case and white space), the
    first of them if that leaves several.

    Args:
        document: Running text, any script; paragraphs (title, abstract) separated by an empty line, or each ending as a
            sentence does.

    Returns:
        Long forms by short form, as the document spells both (white space collapsed, accents composed), in order of
        appearance.

    Source:
        Schwartz and Hearst 2003, sections 3.1 and 3.2. Differs: square brackets count too; what follows a comma or
        semicolon or opens a bracket in the brackets ("HD; MIM 143100") and quotation marks are left aside; brackets
        with two words that are no short form ("FED (fish-eye disease)") are tried as a long form.

    Example:
        >>> find_abbreviations("Three sisters have fish-eye disease (FED). FED (MIM 136120) is rare.")
        {'FED': 'fish-eye disease'}
    """
    return _most_frequent(_definitions(unicodedata.normalize("NFC", document)))


def find_abbreviations_ab3p(document: str) -> dict[str, str]:
    """The short forms that a document defines, with their long forms, by Ab3P.

    Of several long forms of a short form one is chosen as by `find_abbreviations`.

    Args:
        document: Running text in English; title and abstract may be two lines.

    Raises:
        UnavailableError: the extra ``abbreviations`` is not installed, or without its word lists.

    Source:
        Sohn et al. 2008, BMC Bioinformatics 9:402.
    """
    found = _ab3p().get_abbrs(_fit_for_ab3p(document))
    return _most_frequent((one_line(pair.short_form), one_line(pair.long_form)) for pair in found)


Finder: TypeAlias = Literal["schwartz-hearst", "ab3p"]
"""Names of `FINDERS`."""
FINDERS: Mapping[Finder, Callable[[str], dict[str, str]]] = MappingProxyType(
    {"schwartz-hearst": find_abbreviations, "ab3p": find_abbreviations_ab3p}
)
"""What finds the definitions of a document, by name."""


def finder_named(name: str) -> Callable[[str], dict[str, str]]:
    """One of `FINDERS`.

    Raises:
        ConfigError: there is none of this name.
    """
    return FINDERS[one_of(name, FINDERS, "abbreviation finder")]


def _definitions(document: str) -> Iterator[tuple[str, str]]:
    """All pairs of short and long form, in order of appearance."""
    for sentence in _sentences(document):
        brackets = [bracket for pattern in BRACKETS for bracket in pattern.finditer(sentence)]
        for bracket in sorted(brackets, key=re.Match.start):
            pair = _pair(sentence[max(0, bracket.start() - _LOOK_BACK) : bracket.start()], bracket[1])
            if pair is not None:
                yield pair


def _sentences(document: str) -> Iterator[str]:
    """Parts of the document that no definition spans."""
    start, inside = 0, _inside_brackets(document)
    for end in _SENTENCE_END.finditer(document):
        if end.start() in inside:
            continue
        word = document[max(start, end.start() - 10) : end.start()].rpartition(" ")[2].lstrip(_QUOTES_AND_OPENERS)
        if word.lower() not in _NO_SENTENCE_END:
            yield document[start : end.start() + 1]
            start = end.end()
    yield document[start:]


def _inside_brackets(document: str) -> frozenset[int]:
    """Places within short brackets of one paragraph, in which no sentence ends: "(MS; see ref. 12)"."""
    return frozenset(
        place
        for pattern in BRACKETS
        for bracket in pattern.finditer(document)
        if len(bracket[1]) <= _LONGEST_BRACKET and _PARAGRAPH_END.search(bracket[1]) is None
        for place in range(*bracket.span())
    )


def _pair(before: str, inside: str) -> tuple[str, str] | None:
    """Short and long form of a bracket and the text before it, if they define one another."""
    inside = one_line(_ADDITION.split(inside, maxsplit=1)[0]).strip(_QUOTES + " ")
    if _is_short_form(inside):
        short, candidate = inside, _last_words(before, _max_words(inside))
    else:
        words = before.rsplit(maxsplit=1)
        short = words[-1].strip(_QUOTES_AND_OPENERS) if words else ""
        if not _is_short_form(short) or len(inside.split()) > _max_words(short):
            return None
        candidate = inside.rstrip(".")
    long = _shortest_long_form(short, candidate)
    if long is None or len(long) < len(short) or _contains(long.casefold(), short.casefold()):
        return None
    return short, long


def _contains(long: str, short: str) -> bool:
    """Whether the short form is the long one, or stands among its words: "ER+" is not "ER positive"."""
    words, own = _words(long), short.split()
    if len(own) > 1:
        own = _words(short)
    return long == short or any(words[place : place + len(own)] == own for place in range(len(words)))


def _is_short_form(text: str) -> bool:
    return (
        len(text) in _SHORT_FORM_LENGTHS
        and len(text.split()) <= _MAX_SHORT_FORM_WORDS
        and text[0].isalnum()
        and any(character.isalpha() for character in text)
    )


def _max_words(short: str) -> int:
    return min(len(short) + 5, len(short) * 2)


def _last_words(text: str, n_words: int) -> str:
    return " ".join(text.rsplit(maxsplit=n_words)[-n_words:])


def _shortest_long_form(short: str, candidate: str) -> str | None:
    """The end of ``candidate`` from the last word on from which it holds all characters of ``short`` in order.

    Both are read from the end. Every letter and digit of the short form takes the next equal character to the
    left; its first one, only a character that begins a word.
    """
    end = len(candidate)
    for rank, wanted in reversed(list(enumerate(short))):
        if not wanted.isalnum():
            continue
        end = _last_match(_base_letter(wanted), candidate, end, begins_word=rank == 0)
        if end < 0:
            return None
    begin = candidate.rfind(" ", 0, end) + 1
    return candidate[begin:].lstrip(_QUOTES_AND_OPENERS + " ").rstrip(_BEFORE_BRACKETS)


def _last_match(wanted: str, text: str, end: int, *, begins_word: bool) -> int:
    """Where in ``text[:end]`` a character with this base letter stands last; -1 if none does."""
    for position in range(end - 1, -1, -1):
        is_inside = position > 0 and text[position - 1].isalnum()
        if _base_letter(text[position]) == wanted and not (begins_word and is_inside):
            return position
    return -1


@functools.cache
def _base_letter(character: str) -> str:
    """Without case and accents, which capitals may lack: "EEG" is that of "électroencéphalogramme"."""
    return unicodedata.normalize("NFD", character)[0].casefold().replace("\u0131", "i")


def _most_frequent(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """One long form for each short form: the most frequent, of several the first."""
    spellings: dict[str, dict[str, list[str]]] = {}
    for short, long in pairs:
        spellings.setdefault(short, {}).setdefault(long.casefold(), []).append(long)
    # ``max`` keeps the first of equals, and dictionaries keep the order of insertion.
    return {short: max(longs.values(), key=len)[0] for short, longs in spellings.items()}


@functools.cache
def _ab3p() -> Any:
    """Ab3P with its word lists, read once per process."""
    try:
        from pyab3p import Ab3p
    except ImportError:
        missing = missing_extra("pyab3p", "abbreviations", "Finding abbreviations with Ab3P")
        raise UnavailableError(f"{missing} {_AB3P_HAS_WHEELS}") from None
    finder = Ab3p()
    if not finder.get_abbrs("fish-eye disease (FED)"):
        raise UnavailableError(
            "the package pyab3p that is installed lacks its word lists, and would find no abbreviation: this is how it "
            f"is built from its source. {_AB3P_HAS_WHEELS}"
        )
    return finder


def _fit_for_ab3p(document: str) -> str:
    """The document without what Ab3P's buffers do not hold: it checks no length, and more ends the process.

    It holds 99 bytes of short form (whatever stands in brackets or just before them) and 100,000 of sentence;
    longer words become a dash, longer brackets commas, longer lines several. Underscores and double spaces, of which
    it cleans sentences before it looks for their place in the text, make it complain on the standard error output.
    """
    text = document.replace("\0", " ").replace("_", "-").encode(errors="replace").decode()
    lines = []
    for line in text.splitlines():
        words = [word if len(word.encode()) <= _AB3P_SHORT_FORM else "-" for word in line.split()]
        for begin in range(0, len(words), _AB3P_WORDS):
            part = list(" ".join(words[begin : begin + _AB3P_WORDS]))
            for opening, closing in ("()", "[]"):
                _open_long_brackets(part, opening, closing)
            lines.append("".join(part))
    return "\n".join(lines)


def _open_long_brackets(characters: list[str], opening: str, closing: str) -> None:
    """Put commas for pairs of brackets that hold more than Ab3P's longest short form."""
    opened = []
    for position, character in enumerate(characters):
        if character == opening:
            opened.append(position)
        elif character == closing and opened:
            begin = opened.pop()
            inside = characters[begin + 1 : min(position, begin + 2 + _AB3P_SHORT_FORM)]
            if len("".join(inside).encode()) > _AB3P_SHORT_FORM:
                characters[begin] = characters[position] = ","


def _words(text: str) -> list[str]:
    return [word.strip(string.punctuation) for word in text.split()]


def one_line(text: str) -> str:
    """The text with single spaces between its words."""
    return " ".join(text.split())
