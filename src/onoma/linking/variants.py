"""Other ways to write a mention: "type II" is "type 2", "β" is "beta", and a printed page has signs of its own.

=============  ===================================================================================================
what           ways
=============  ===================================================================================================
signs          what word processors, PDF and East Asian keyboards put in place of plain signs becomes plain: ligatures,
               letters of full width, typographic quotes and dashes, superscripts; what is not seen is left out
broken words   the hyphen of a line's end is left out: "carci- noma"
numerals       2, II; two as well behind words as "type" and "grade"; with a letter behind them: 3A, IIIA
Greek letters  α, alpha
=============  ===================================================================================================

An encoder is near-sighted here: it takes "type VI" for "type V" sooner than for "type 6", and knows no ligature. A way
to write a mention is no more than a suggestion: `onoma.linking.pipeline` takes it if look-up finds it, or if the
searches find something nearer that has the words which were written otherwise.

Source:
    Our own rules. The UMLS' lexical tools (McCray, Srinivasan and Browne 1994, "Lexical methods for managing variation
    in biomedical terminologies", Proc Annu Symp Comput Appl Med Care) call such ways spelling variants.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from onoma.linking.word_lists import in_order
from onoma.terminology import without_unseen

_Place = tuple[int, int, tuple[str, ...]]
"""Where it begins and ends in a text, and how else it can be written."""
_MAX_CHARACTERS = 500
"""What is longer is no name."""
_LONGEST_KIND = 16
_MAX_PLACES = 3
"""Where more could be written otherwise, none is: that is a list, or a sentence."""
_ROMAN = in_order("i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx")
_WORDS = in_order("one two three four five six seven eight nine ten")
_NUMBER_OF = {
    **{str(number): number for number in range(1, len(_ROMAN) + 1)},
    **{roman: number for number, roman in enumerate(_ROMAN, 1)},
    **{word: number for number, word in enumerate(_WORDS, 1)},
}
_KIND_BEFORE = re.compile(
    r"\b(?:(?:sub)?type|grade|stage|class|group|factor|form|phase|variant|nerve|complex|categor(?:y|ie))(?:s|es)?[\s-]+$",
    re.IGNORECASE,
)
_CHROMOSOME = re.compile(r"chromosom|somy|somal|x[\s-]linked", re.IGNORECASE)
"""Beside these X is a chromosome, and 10 another."""
_UNIT_BEHIND = re.compile(
    r"\s*[%/]|[\s-]*(?:[mcunµμk]?g|mcg|m?l|dl|cc|iu|u|units?|[cmk]?m|x|hr?s?|hours?|days?|weeks?|wks?|months?|years?|yrs?)\b",
    re.IGNORECASE,
)
"""Such a number is an amount."""
_TEN = 10
_NUMERAL = re.compile(rf"(?<![\w.,])(\d\d?|[ivx]+|{'|'.join(_WORDS)})([a-f]?)(?!\w|[.,]\d)", re.IGNORECASE)
_GREEK_NAMES = in_order(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi "
    "psi omega"
)
_GREEK = dict(zip("αβγδεζηθικλμνξοπρστυφχψω", _GREEK_NAMES, strict=True))
_LETTER_OF = {name: letter for letter, name in _GREEK.items() if len(name) > 3}
"""The short ones are other words more often: pi, chi, nu, xi."""
_GREEK_LETTER = re.compile(r"(?<![\u0370-\u03ff\u1f00-\u1fff])[α-ωΑ-Ω](?![\u0370-\u03ff\u1f00-\u1fff]|[glm]\b)")
"""One alone: of several a Greek word is made, and "μg" is a unit."""
_GREEK_NAME = re.compile(
    rf"(?<![^\W\d_])(?:{'|'.join(sorted(_LETTER_OF, key=len, reverse=True))})(?![^\W\d_])", re.IGNORECASE
)
_BROKEN = re.compile(r"(?<=[^\W\d_]{2})-\s+(?!(?:and|or|to|und|oder|et|ou|y|o|e|en|of)\b)(?=[^\W\d_]{2})")
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´ʼʹ", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−﹣", "-"),
        "⁄": "/",
        "…": "...",
    }
)
_WORD = re.compile(r"[^\W_]+")
_GREEK_WORDS = {*_GREEK, *_GREEK.values()}


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to write a mention.

    Attributes:
        text: The mention so written.
        words: What was written otherwise, which a name that is found for it must have; empty for signs alone.
    """

    text: str
    words: frozenset[str] = frozenset()

    def is_in(self, name: str) -> bool:
        """Whether a name has the words that were written otherwise; Greek letters may be a part of its words."""
        folded = name.casefold()
        greek, numerals = self.words & _GREEK_WORDS, self.words - _GREEK_WORDS
        return all(word in folded for word in greek) and numerals <= {*_WORD.findall(folded)}


def variants_of(mention: str) -> list[Variant]:
    """Other ways to write a mention, the likeliest first, without itself; of most mentions none.

    Args:
        mention: Any text, as it was written or normalised.

    Example:
        >>> [variant.text for variant in variants_of("Diabetes mellitus type II")]
        ['Diabetes mellitus type 2']
        >>> [variant.text for variant in variants_of("β–thalassaemia")]
        ['β-thalassaemia', 'beta-thalassaemia']
        >>> [variant.text for variant in variants_of("heart attack")]
        []
    """
    if len(mention) > _MAX_CHARACTERS:
        return []
    if mention.isascii() and not (_NUMERAL.search(mention) or _GREEK_NAME.search(mention) or "-" in mention):
        return []
    plain = mention if mention.isascii() else _plain(mention)
    written = [Variant(plain)]
    if (whole := _BROKEN.sub("", plain)) != plain:
        written += [Variant(whole), Variant(_BROKEN.sub("-", plain))]
    for one in dict.fromkeys([plain, whole]):
        written += _written_otherwise(one)
    return [variant for variant in dict.fromkeys(written) if variant.text != mention]


def _plain(mention: str) -> str:
    """A mention in the signs of a plain keyboard, its letters aside."""
    # A quote with a space before it is two signs to NFKC.
    return without_unseen(unicodedata.normalize("NFKC", mention.translate(_PLAIN)).translate(_PLAIN))


def _written_otherwise(text: str) -> Iterator[Variant]:
    """With numerals and Greek letters in every other way."""
    places = sorted([*_numerals(text), *_greek(text)])
    if len(places) > _MAX_PLACES:
        return
    for chosen in itertools.product(*([None, *ways] for _, _, ways in places)):
        written, words = text, set[str]()
        for (begin, end, _), way in reversed([*zip(places, chosen, strict=True)]):
            if way is not None:
                written = written[:begin] + way + written[end:]
                words.add(way.casefold())
        if words:
            yield Variant(written, frozenset(words))


def _numerals(text: str) -> Iterator[_Place]:
    """Numerals that can be written otherwise."""
    for found in _NUMERAL.finditer(text):
        written, letter = found.groups()
        number = _NUMBER_OF.get(written.lower())
        if number is None or (written.isdecimal() and not letter and _UNIT_BEHIND.match(text, found.end())):
            continue
        is_after_kind = _KIND_BEFORE.search(text[max(0, found.start() - _LONGEST_KIND) : found.start()]) is not None
        if not is_after_kind and (written.lower() in _WORDS or (letter and len(written) == 1 and written.isalpha())):
            continue
        if number == _TEN and (_CHROMOSOME.search(text) or not (is_after_kind or found.end() == len(text))):
            continue
        ways = [way for way in (str(number), _ROMAN[number - 1].upper()) if way.lower() != written.lower()]
        yield found.start(), found.end(), tuple(way + letter for way in ways)


def _greek(text: str) -> Iterator[_Place]:
    """Greek letters by their names, and names by their letters."""
    for found in _GREEK_LETTER.finditer(text):
        yield found.start(), found.end(), (_GREEK[found[0].lower()],)
    for found in _GREEK_NAME.finditer(text):
        yield found.start(), found.end(), (_LETTER_OF[found[0].lower()],)
