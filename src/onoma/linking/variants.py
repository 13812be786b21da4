"""Other ways to write a mention: "type II" is "type 2", "β" is "beta", and a printed page has signs of its own.

=============  ===================================================================================================
what           ways
=============  ===================================================================================================
signs          what word processors, PDF and East Asian keyboards put in place of plain signs becomes plain: ligatures,
               letters of full width, typographic quotes and dashes, numbers in formulas (Ca²⁺, H₂O, but not 10⁵, and no
               footnote's mark); what is not seen is left out
broken words   the hyphen of a line's end is left out: "carci- noma"
numerals       2, II; behind words as "type" and "grade" two as well, and with a letter: 3A, IIIA
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
_MAX_WAYS = 8
_MAX_PLACES = 3
"""Where more could be written otherwise, none is: that is a list, or a sentence."""
_ROMAN = in_order("i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx")
_WORDS = in_order("one two three four five six seven eight nine ten")
_NUMBER_OF = {
    **{str(number): number for number in range(1, len(_ROMAN) + 1)},
    **{roman: number for number, roman in enumerate(_ROMAN, 1)},
    **{word: number for number, word in enumerate(_WORDS, 1)},
}
_KINDS = in_order(
    "type subtype grade stage class group factor form phase variant nerve complex category categorie "
    "typ subtyp grad stadium klasse gruppe faktor forme stade classe groupe facteur tipo grado "
    "estadio stadio clase grupo"
)
"""In English, German, French, Spanish and Italian."""
_KIND_BEFORE = re.compile(rf"\b(?:{'|'.join(_KINDS)})(?:s|es)?[\s-]+$", re.IGNORECASE)
_CHROMOSOME = re.compile(r"chromosom|somy|somal|x[\s-]linked", re.IGNORECASE)
"""Beside these X is a chromosome, and 10 another."""
_UNIT_BEHIND = re.compile(
    r"\s*[%/°]|-[^\W\d_]|[\s-]*(?:[mcunµμk]?g|mcg|[mdµμ]?l|cc|iu|u|units?|[cmk]?m|x|hr?s?|hours?|days?|weeks?|wks?|months?|years?|yrs?)\b",
    re.IGNORECASE,
)
"""Such a number is an amount, or a place in a molecule (2-methyl...)."""
_FIVE, _TEN = 5, 10
_NUMERAL = re.compile(rf"(?<![\w.,/])(\d\d?|[ivx]+|{'|'.join(_WORDS)})([a-f]?)(?!\w|[.,]\d)", re.IGNORECASE)
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
_GREEK_BEFORE = re.compile(rf"(?:[α-ω]|(?<![^\W\d_])(?:{'|'.join(_GREEK_NAMES)}))[\s(-]*$", re.IGNORECASE)
"""Integrin alpha V is not integrin alpha 5, nor X 10."""
_FORMULA = re.compile(r"(?<![^\W\d_])[^\W\d_]{1,3}$")


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
        """Whether a name has the words that were written otherwise; a Greek letter may be a part of a word (TNFα)."""
        folded = name.casefold()
        letters = self.words & _GREEK.keys()
        return all(letter in folded for letter in letters) and self.words - letters <= {*_WORD.findall(folded)}


def variants_of(mention: str) -> list[Variant]:
    """Other ways to write a mention, the likeliest first, without itself: of most mentions none, of none more than 8.

    Args:
        mention: Any text as it was written; normalisation may take away what tells an amount from a numeral.

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
    return [variant for variant in dict.fromkeys(written) if variant.text != mention][:_MAX_WAYS]


def _plain(mention: str) -> str:
    """A mention in the signs of a plain keyboard, its letters aside."""
    written, is_in_formula = "", False
    for sign in mention.translate(_PLAIN):  # before all else: an accent alone is a space and a sign to NFKC
        kind, plain = unicodedata.decomposition(sign).partition(" ")[0], unicodedata.normalize("NFKC", sign)
        if kind in {"<super>", "<sub>"}:
            is_in_formula = (is_in_formula or _FORMULA.search(written) is not None) and not plain.isalpha()
            written += plain if is_in_formula else sign
        else:
            is_in_formula = False
            written += sign if kind in {"<circle>", "<fraction>"} else plain
    return without_unseen(unicodedata.normalize("NFC", written.translate(_PLAIN)))


def _written_otherwise(text: str) -> Iterator[Variant]:
    """With numerals and Greek letters in every other way."""
    places = sorted([*_numerals(text), *_greek(text)])
    if len(places) > _MAX_PLACES:
        return
    choices = itertools.product(*([None, *ways] for _, _, ways in places))
    for chosen in sorted(choices, key=lambda ways: ways.count(None)):  # who writes one numeral so writes all so
        written, words = text, set[str]()
        for (begin, end, _), way in reversed([*zip(places, chosen, strict=True)]):
            if way is not None:
                written = written[:begin] + way + written[end:]
                words.add(way.casefold())
        if words:
            yield Variant(written, frozenset(words))


def _numerals(text: str) -> Iterator[_Place]:
    """Numerals that can be written otherwise; in a single word none, as in symbols of genes: PAP-1 is not PAP-I."""
    if len(text.split()) == 1:
        return
    for found in _NUMERAL.finditer(text):
        written, letter = found.groups()
        number = _NUMBER_OF.get(written.lower())
        if number is None or (written.isdecimal() and not letter and _UNIT_BEHIND.match(text, found.end())):
            continue
        before = text[max(0, found.start() - _LONGEST_KIND) : found.start()]
        is_after_kind = _KIND_BEFORE.search(before) is not None
        if not is_after_kind and (written.lower() in _WORDS or letter):  # "IVC" is no numeral
            continue
        if number in {_FIVE, _TEN} and _GREEK_BEFORE.search(before):
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
