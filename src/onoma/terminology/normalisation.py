"""Names to the form in which they are compared: the one place where that is decided.

Training names, dictionary and queries must go through the same preset, or a name does not find itself.

========  =====================================================================================================
preset    what it does
========  =====================================================================================================
sapbert   lower case, white space collapsed to single spaces and stripped; what SapBERT's data were prepared with
exact     outer white space stripped, nothing else
loose     Unicode NFKC, case folded, the four letters i of Turkish one, what is not seen dropped, punctuation and
          symbols to spaces, white space collapsed and stripped
biosyn    lower case, ASCII punctuation to spaces, white space collapsed and stripped; as BioSyn prepares mentions
          and dictionaries (without its expansion of abbreviations and its map of misspellings)
coder     lower case, whatever stands in round brackets dropped, hyphens to spaces, the word "nos" (not otherwise
          specified) dropped, white space collapsed and stripped; as CODER prepares the names of the UMLS
========  =====================================================================================================

Lower case is what `str.lower` says, but that of the Turkish capital with a dot is i, without a second dot above it.
White space is what `str.isspace` says; punctuation and symbols are the Unicode categories P* and S*, ASCII punctuation
the 32 characters of `string.punctuation`. Not seen are format characters (category Cf: soft hyphen, zero-width space
and joiners, marks of direction, byte order mark), variation selectors and the combining grapheme joiner. Every preset
is idempotent: a normalised name normalises to itself. A name of which nothing is left (for "coder", "(disorder)") is
blank, and no preset's blank names are trained on or linked to.

CODER's released code is not idempotent: it drops "nos" before it drops brackets and hyphens, so that "tumour-nos",
"nos (x)" and the second of "nos nos" keep theirs, and its brackets end with their line. Here white space is collapsed
first and "nos" dropped last. Both agree wherever a second run of the released code would change nothing, on one line.
A bracket reaches, as there, from "(" to the nearest ")": "a (b (c) d)" becomes "a d)".
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable

from onoma.errors import InputError, one_of

_ASCII_PUNCTUATION_TO_SPACE = str.maketrans(dict.fromkeys(string.punctuation, " "))
BRACKET = r"\([^)]*\)"
NOT_OTHERWISE_SPECIFIED = "nos"


_VARIATION_SELECTORS = [*range(0x180B, 0x180E), 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]
_GRAPHEME_JOINER = 0x34F
_DOTTED_I, _DOTLESS_I = "i\u0307", "\u0131"
"""What lower case makes of the Turkish letters beside I and i: the first is i, with a dot that it has already."""
_DOTTED_I_LOWER = re.compile(f"{_DOTTED_I}+")


class _LooseTable(dict[int, int | None]):
    """Translation table filled as characters turn up: what is not seen is dropped, P* and S* become a space."""

    def __missing__(self, code_point: int) -> int | None:
        category = unicodedata.category(chr(code_point))
        self[code_point] = None if category == "Cf" else 0x20 if category[0] in "PS" else code_point
        return self[code_point]


class _UnseenTable(dict[int, int | None]):
    """Translation table filled as characters turn up: what is not seen is dropped."""

    def __missing__(self, code_point: int) -> int | None:
        self[code_point] = None if unicodedata.category(chr(code_point)) == "Cf" else code_point
        return self[code_point]


_LOOSE_TABLE = _LooseTable(dict.fromkeys([*_VARIATION_SELECTORS, _GRAPHEME_JOINER]))
_UNSEEN_TABLE = _UnseenTable(dict.fromkeys([*_VARIATION_SELECTORS, _GRAPHEME_JOINER]))


def _collapse(text: str) -> str:
    return " ".join(text.split())


def _lower(text: str) -> str:
    lower = text.lower()
    return lower if lower.isascii() else _DOTTED_I_LOWER.sub("i", lower)


def _sapbert(text: str) -> str:
    return _collapse(_lower(text))


def _exact(text: str) -> str:
    return text.strip()


def _loose(text: str) -> str:
    if text.isascii():  # the same in one step, for look-up, which asks for some forty names a mention
        return _biosyn(text)
    # Each of these can undo another (a mark may join the letter before what is dropped), hence until nothing changes.
    while (folded := _folded(text)) != text:
        text = folded
    return _collapse(text)


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace(_DOTTED_I, "i").replace(_DOTLESS_I, "i")
    return folded.translate(_LOOSE_TABLE)


def _biosyn(text: str) -> str:
    return _collapse(_lower(text).translate(_ASCII_PUNCTUATION_TO_SPACE))


def _coder(text: str) -> str:
    words = _lower(re.sub(BRACKET, "", _collapse(text))).replace("-", " ").split()
    return " ".join(word for word in words if word != NOT_OTHERWISE_SPECIFIED)


def without_unseen(text: str) -> str:
    r"""A text without what is not seen: soft hyphens, zero-width spaces and joiners, marks of direction.

    Example:
        >>> without_unseen("hyper\u00adtension")
        'hypertension'
    """
    return text.translate(_UNSEEN_TABLE)


_PRESETS: dict[str, Callable[[str], str]] = {
    "sapbert": _sapbert,
    "exact": _exact,
    "loose": _loose,
    "biosyn": _biosyn,
    "coder": _coder,
}

NORMALISATION_PRESETS = tuple(_PRESETS)
"""Names of the presets."""


def normalise(text: str, preset: str = "sapbert") -> str:
    r"""A name in the form in which it is compared.

    Args:
        text: Any string.
        preset: One of `NORMALISATION_PRESETS`; see the module's table.

    Raises:
        ConfigError: there is no such preset.
        InputError: the text is not a string, such as a missing value of a table.

    Source:
        "sapbert": Liu et al. 2021, appendix on data preparation (lower-cased names). "biosyn": Sung et al. 2020
        (BioSyn), its released code. "coder": Yuan et al. 2020 (CODER), its released code; the paper does not say.

    Example:
        >>> normalise("  Type 2\tDiabetes "), normalise("β-Thalassämie, (minor)", "loose")
        ('type 2 diabetes', 'β thalassämie minor')
        >>> normalise("Renal-cell carcinoma, NOS (disorder)", "biosyn")
        'renal cell carcinoma nos disorder'
        >>> normalise("Renal-cell carcinoma NOS (disorder)", "coder")
        'renal cell carcinoma'
    """
    if not isinstance(text, str):
        raise InputError("what shall be normalised is no text", found=repr(text))
    return _PRESETS[one_of(preset, _PRESETS, "normalisation")](text)
