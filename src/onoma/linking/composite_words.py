"""A mention as words, commas and coordinators, as the rules for composite mentions go through it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

Words = list[str]

COMMA = ","
COORDINATORS = frozenset({"and", "or", "and/or", "&", "/"})
FRAMES = frozenset({"of", "in", "to", "on", "at", "from", "involving", "affecting"})
"""Prepositions behind which a list may stand that shares what is before them: "cancer of the breast and ovary"."""
DENYING = frozenset({"no", "not", "nor", "neither", "never", "denies", "denied", "denying"})
"""Where these stand, a part alone would say that what is denied is there."""
_SPELLINGS = re.compile(r"\band\s*/\s*or\b|\bas well as\b", re.IGNORECASE)
_LISTS = re.compile(r"[,/&]|\b(?:and|or|as well as)\b", re.IGNORECASE)
_FIXED_PAIRS = re.compile(
    r"\b(?:head and neck|foot and mouth|hands? and f(?:oo|ee)t|signs and symptoms|ear, nose,? and throat|one or more"
    r"|mild to (?:moderate|severe)|moderate to severe|non \w+)\b",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"(?:^|(?<=\S)\s?)(?:\([^()]*\)|\[[^\[\]]*\])")
ENUMERATOR = re.compile(r"-?\d{1,3}[A-Za-z]?|[IVX]{1,5}[A-Za-z]?|[A-Z]\d{0,2}|[a-z]", re.ASCII)
NUMBER = re.compile(r"-?\d{1,3}[A-Za-z]?", re.ASCII)
ROMAN = re.compile(r"[IVX]{1,5}[ab]?")
NUMBERED = re.compile(r"([A-Za-z][A-Za-z-]*)\d{1,3}[A-Za-z]?", re.ASCII)
LABELS = {
    plural: single
    for single in ("type", "subtype", "form", "class", "stage", "grade")
    for plural in (single, f"{single}es" if single.endswith("s") else f"{single}s")
}
"""With a number behind it each says which kind of a disorder is meant, and is no name alone; plurals with several."""
_LETTERS = re.compile("ABC?D?E?|BC?D?E?")
CODE = re.compile(r"(?=(?:.*[A-Z0-9]){2})(?=.*[A-Z])[A-Za-z0-9-]+", re.ASCII)
_WORD = re.compile(r"[^\W\d_][\w'’-]*[^\W\d_]")
_JOINT = "\N{NO-BREAK SPACE}"
"""Stands for the blank inside what is one word here, whose first word says what it is."""
_WHOLE_JOINT = "\N{NARROW NO-BREAK SPACE}"
"""Stands for the blank inside a name that is given as whole, whose last word says what it is."""
_WHOLE_SLASH = "\N{FRACTION SLASH}"
"""Stands for the slash in such a name."""


def tokens_of(mention: str, wholes: Iterable[str], is_name: Callable[[str], bool] | None = None) -> Words:
    """Words, commas and coordinators; brackets belong to the word before them, at the beginning they are one.

    Args:
        mention: Any text.
        wholes: See `onoma.linking.composites.split_composite`.
        is_name: Whether a text is a name: two numbers beside a slash are a list if all that they make are names.
    """
    text = " ".join(mention.split()).rstrip(".;")
    for whole in sorted((" ".join(one.split()) for one in wholes), key=len, reverse=True):
        if _LISTS.search(whole):
            there = re.compile(rf"(?<!\w){re.escape(whole)}(?!\w)", re.IGNORECASE)
            text = there.sub(lambda found: found[0].replace(" ", _WHOLE_JOINT).replace("/", _WHOLE_SLASH), text)
    text = _SPELLINGS.sub(lambda found: "and/or" if "/" in found[0] else "and", text)
    for pattern in (_IN_BRACKETS, _FIXED_PAIRS):
        text = pattern.sub(lambda found: found[0].replace(" ", _JOINT), text)
    text = re.sub(r"(?<=\d)\s/\s(?=\d)", "/", text)
    words: Words = []
    end = -1
    for token in text.split(" "):
        end += len(token) + 1
        word = token.rstrip(COMMA) if len(token) - len(token.rstrip(COMMA)) == 1 else token
        pieces = _slashed(word) if word else []
        if len(pieces) > 1 and NUMBER.fullmatch(pieces[0]) and not (words and words[-1].lower() in LABELS):
            numbers, before, behind = pieces[::2], " ".join(words), text[end:]
            if is_name is None or not all(is_name(f"{before} {number}{behind}".strip()) for number in numbers):
                pieces = [word]  # "pain 7/10", "BP 150/90"; but "trisomy 13/18" where both are names
        words += pieces
        if word != token:
            words.append(COMMA)
    return words


def _slashed(word: str) -> Words:
    """The word "breast/ovarian" as three words, "I/II", "BRCA1/2" and "A/B" too; "mg/kg", "D/D" and "w/o" as one."""
    pieces = word.split("/")
    if len(pieces) == 1 or word.lower() == "and/or" or _JOINT in word or not all(pieces):
        return [word]
    numbers_follow = all(NUMBER.fullmatch(piece) for piece in pieces[1:])
    is_list = (
        all((len(piece) > 2 and _WORD.fullmatch(piece)) or CODE.fullmatch(piece) for piece in pieces)
        or (numbers_follow and (NUMBERED.fullmatch(pieces[0]) or NUMBER.fullmatch(pieces[0])))
        or all(ROMAN.fullmatch(piece) for piece in pieces)
        or _LETTERS.fullmatch("".join(pieces))  # "hepatitis B/C", not "R/O" (rule out)
        or (ENUMERATOR.fullmatch(pieces[0]) and pieces[-1].lower() in LABELS)  # "type 1/type 2"
    )
    return [part for piece in pieces for part in ("/", piece)][1:] if is_list else [word]


def text_of(words: Words) -> str:
    """What `tokens_of` took apart, as it was written."""
    text = " ".join(words).replace(f" {COMMA}", COMMA).replace(" / ", "/")
    return text.replace(_JOINT, " ").replace(_WHOLE_JOINT, " ").replace(_WHOLE_SLASH, "/")


def core_of(word: str) -> str:
    """The word without brackets behind it and without punctuation around it; of a whole name the last one."""
    bare = re.split(rf"[{_JOINT}(\[]", word, maxsplit=1)[0]
    return re.split(f"[{_WHOLE_JOINT}{_WHOLE_SLASH}]", bare)[-1].strip(".,;:\"'“”‘’") or word


def says_kind(part: Words) -> bool:
    """Whether words only say which kind of a thing is meant: "type 2"."""
    return len(part) > 1 and part[0].lower() in LABELS and all(ENUMERATOR.fullmatch(word) for word in part[1:])
