"""Composite mentions split into the names they stand for: "colorectal and ovarian cancer" is two cancers.

Coordination leaves out what several names share, and the words alone do not show what that is:

====================  ==============================  ================================================
reading               mention                         parts
====================  ==============================  ================================================
shared end            colorectal and ovarian cancer   colorectal cancer; ovarian cancer
shared beginning      cleft lip and/or palate         cleft lip; cleft palate
shared frame          cancer of the breast and ovary  cancer of the breast; cancer of the ovary
whole names           abdominal pain and vomiting     abdominal pain; vomiting
numbers and letters   type 1 and 2 diabetes, BRCA1/2  type 1 diabetes; type 2 diabetes, BRCA1; BRCA2
inverted              diabetes, type 1 and type 2     diabetes type 1; diabetes type 2
listed                nausea; vomiting                nausea; vomiting
suspended hyphen      T- and B-cell lymphoma          T-cell lymphoma; B-cell lymphoma
====================  ==============================  ================================================

The words decide which reading comes first: whether a conjunct ends in a word for a disorder ("pain", "-itis"), in a
part of the body, in a number. A terminology knows better: the reading with the most parts that are names is used, and a
mention that is a name itself ("head and neck cancer", a syndrome called by its signs) stays whole. What no rule
explains stays whole too. The rules are for English names of disorders and phenotypes. Semicolons and line breaks always
split; commas or plus signs alone ("lisinopril + aspirin") split only if all sides are names.

Source:
    The idea of simplifying composite names before linking is SimConcept's (Wei, Leaman and Lu 2015, "SimConcept:
    a hybrid approach for simplifying composite named entities in biomedical text", IEEE J Biomed Health Inform
    19:1385-1391), which learns it with a conditional random field; D'Souza and Ng 2015, "Sieve-based entity linking for
    the biomedical domain", ACL, have rules. Those below are our own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator

from onoma.errors import check_several
from onoma.linking.composite_readings import Reading, readings_of
from onoma.linking.composite_words import COORDINATORS, DENYING, FRAMES, Words, core_of, says_kind, text_of, tokens_of
from onoma.linking.disorder_words import is_adjective, is_organ
from onoma.linking.word_lists import listed

_MAX_PARTS = 12
_MAX_WORDS = 40
_SURE_DIVIDERS = re.compile(r"\s*(?:(?<!&amp)(?<!&lt)(?<!&gt)[;\u061b\uff1b](?=\s|$|[^\W\d])|[\n\r])\s*")
_DIVIDERS = re.compile(r"(?:[,\u060c]|\s\+)\s+|[\u3001\uff0c]\s*")
"""Commas and semicolons of Latin script, Arabic (U+060C, U+061B) and Chinese and Japanese (U+3001, U+FF0C, U+FF1B)."""
_STOPS = ".;,\u060c\u061b\u3001\u3002\uff0c\uff1b"
_KARYOTYPE = re.compile(r"\b(?:t|inv|ins|del|dup|der)\(")
"""Semicolons and brackets after this are of one name: "t(9;11)(p22;q23); MLLT3-MLL"."""
_LIST_MARK = re.compile(r"^\s*(?:(?:\d{1,2}[.)]|[-*•])\s+)?(?:(?:and/or|and|or|&)\s+)?", re.IGNORECASE)
_MAX_LISTED = 100
_QUALIFIERS = listed("left right mild moderate severe acute chronic recurrent onset inheritance dominant recessive nos")
_BRACKETS = {"(": ")", "[": "]", "\uff08": "\uff09"}
# What may stand around a whole mention, and is never taken apart.
_AROUND = {**_BRACKETS, '"': '"', "“": "”", "«": "»", "'": "'", "‘": "’"}


def split_composite(
    mention: str, *, is_name: Callable[[str], bool] | None = None, wholes: Iterable[str] = ()
) -> list[str]:
    """The names that a mention stands for, in its order; only the mention itself if it stands for one.

    Splitting the parts again changes nothing.

    Args:
        mention: Any text.
        is_name: Whether a text is a name of the terminology; called with the mention, spans of it, and parts of
            possible readings, the last ones also without the "s" of their plural.
        wholes: Texts that are one name wherever they occur in the mention, in any case, such as the long form of a
            short form: "stiffness and joint pain" for "SJP".

    Raises:
        InputError: ``wholes`` is one string.

    Returns:
        At least one text; the words are the mention's, white space collapsed if it was split.

    Example:
        >>> split_composite("breast, ovarian, and prostate cancer")
        ['breast cancer', 'ovarian cancer', 'prostate cancer']
        >>> split_composite("head and neck cancers")
        ['head and neck cancers']
        >>> split_composite("hand, foot and mouth disease and fever", wholes=["hand, foot and mouth disease"])
        ['hand, foot and mouth disease', 'fever']
    """
    check_several(wholes, "wholes")
    if is_name is not None and is_name(mention):
        return [mention]
    wholes = [*wholes]
    if listed := _listed(mention, is_name, wholes):
        return listed
    if (inner := _unwrapped(mention)) is not None:
        within = split_composite(inner, is_name=is_name, wholes=wholes)
        return within if len(within) > 1 else [mention]
    parts = _split_once(tokens_of(mention, wholes, is_name), is_name)
    if len(parts) == 1 or max(map(len, parts)) >= len(mention) or _tears_pairs(mention, parts):
        return [mention]
    smaller = _each_split(parts, is_name, wholes)
    return smaller if 1 < len(smaller) <= _MAX_PARTS else [mention]


def _each_split(texts: Iterable[str], is_name: Callable[[str], bool] | None, wholes: list[str]) -> list[str]:
    """What each text stands for, split as any mention is, so that nothing of it is split further; each once."""
    found: dict[str, str] = {}
    for text in texts:
        for part in split_composite(text, is_name=is_name, wholes=wholes):
            found.setdefault(part.casefold(), part)
    return list(found.values())


def _listed(mention: str, is_name: Callable[[str], bool] | None, wholes: list[str]) -> list[str]:
    """What stands between semicolons or line breaks, or between commas or plus signs alone; none if that is no list.

    Inverted and qualified names are none: "carcinoma; breast", "pain, severe", "syndrome, grade 4".
    """
    spoken = [word.strip(".,;:") for word in mention.lower().split()]
    if DENYING.intersection(spoken):
        return []
    parts = _divided(mention, _SURE_DIVIDERS, _MAX_LISTED, is_name, wholes)
    if parts or is_name is None or COORDINATORS.intersection(spoken):
        return parts
    parts = _divided(mention, _DIVIDERS, _MAX_PARTS, is_name, wholes)
    return parts if all(_is_named([part], is_name) for part in parts) else []


def _divided(
    mention: str,
    dividers: re.Pattern[str],
    most: int,
    is_name: Callable[[str], bool] | None,
    wholes: list[str],
) -> list[str]:
    """What stands between some signs, each split further; none if there is only one such part, or too many."""
    if any(dividers.search(whole) for whole in wholes) or _KARYOTYPE.search(mention):
        return []
    pieces = [_without_mark(piece) for piece in _pieces(mention.strip().rstrip(_STOPS), dividers)]
    pieces = [piece for piece in pieces if any(map(str.isalpha, piece))]  # no dates and numbers
    if not 1 < len(pieces) <= most or any(
        _qualifies(piece, is_name if dividers is _SURE_DIVIDERS else None) for piece in pieces[1:]
    ):
        return []
    if is_name is not None and any(is_name(f"{a} {b}") or is_name(f"{b} {a}") for a, b in itertools.pairwise(pieces)):
        return []
    parts = _each_split(pieces, is_name, wholes)
    return parts if 1 < len(parts) <= most and not _tears_pairs(mention, parts) else []


def _pieces(text: str, dividers: re.Pattern[str]) -> Iterator[str]:
    """What stands between some signs, those within brackets aside: "pain (knee; left); fever" is two things."""
    is_paired = all(_is_paired(text, opener, closer) for opener, closer in _BRACKETS.items())
    begin = 0
    for found in dividers.finditer(text):
        before = text[begin : found.start()]
        if not is_paired or all(_is_paired(before, opener, closer) for opener, closer in _BRACKETS.items()):
            yield before
            begin = found.end()
    yield text[begin:]


def _without_mark(piece: str) -> str:
    """A piece of a list without the number or dash before it, and the coordinator."""
    return _LIST_MARK.sub("", piece).strip()


def _qualifies(piece: str, is_name: Callable[[str], bool] | None) -> bool:
    """Whether a piece only says more of what stands before it: how, where, which.

    A name of several words may end so ("fatty liver"), though not "slowly progressive"; a single word may be a name and
    qualify all the same ("left"). What stands behind commas may be inverted, and no name vouches for it.
    """
    words = piece.split()
    last = core_of(words[-1])
    if last.lower() in _QUALIFIERS or says_kind(words):
        return True
    is_whole = len(words) > 1 and not words[-2].lower().endswith("ly") and is_name is not None and is_name(piece)
    return not is_whole and (is_adjective(last) or is_organ(last))


def _unwrapped(mention: str) -> str | None:
    """What stands in brackets or quotation marks, if all of the mention does."""
    text = mention.strip()
    closer = _AROUND.get(text[:1])
    inner = text[1:-1]
    if closer is None or len(text) < 3 or not text.endswith(closer) or text[0] in inner or closer in inner:
        return None
    return inner


def _tears_pairs(mention: str, parts: list[str]) -> bool:
    """Whether a bracket or quotation mark of a part lacks the other of its pair, which the mention has."""
    return any(
        _is_paired(mention, opener, closer) and not all(_is_paired(part, opener, closer) for part in parts)
        for opener, closer in _AROUND.items()
        if opener != "'"  # an apostrophe as well
    )


def _is_paired(text: str, opener: str, closer: str) -> bool:
    return text.count(opener) % 2 == 0 if opener == closer else text.count(opener) == text.count(closer)


def _split_once(words: Words, is_name: Callable[[str], bool] | None) -> list[str]:
    """The parts of the best reading."""
    if not COORDINATORS.intersection(map(str.lower, words)) or len(words) > _MAX_WORDS:
        return [text_of(words)]
    if is_name is not None and any(is_name(text_of(span)) for span in _spans(words)):
        return [text_of(words)]
    if is_name is not None and (names := _two_names(words, is_name)):
        return names
    return [text_of(part) for part in _best(readings_of(words), is_name)]


def _two_names(words: Words, is_name: Callable[[str], bool]) -> list[str]:
    """Two names beside a coordinator, if one of them has another, or denies something: no reading finds these."""
    places = [at for at, word in enumerate(words) if word.lower() in COORDINATORS and 0 < at < len(words) - 1]
    for at in places if len(places) > 1 or DENYING.intersection(map(str.lower, words)) else ():
        if _is_named(words[:at], is_name) and _is_named(words[at + 1 :], is_name):
            return [text_of(words[:at]), text_of(words[at + 1 :])]
    return []


def _best(readings: list[Reading], is_name: Callable[[str], bool] | None) -> Reading:
    """The reading of which most parts are names; the first one, which the rules prefer, where that decides nothing.

    If its parts are names in one frame ("history of" breast cancer and ovarian cancer), it stays: "ovarian cancer" by
    itself would win, and leave "history of breast". Where the rules would leave the mention whole, only parts that are
    all names are believed.
    """
    preferred = readings[0]
    if is_name is None or _are_framed_names(preferred, is_name):
        return preferred
    shares = [sum(_is_named(part, is_name) for part in reading) / len(reading) for reading in readings]
    best = max(shares)
    if len(preferred) == 1:
        return readings[shares.index(best)] if best == 1 else preferred
    return readings[shares.index(best)]


def _are_framed_names(parts: Reading, is_name: Callable[[str], bool]) -> bool:
    """Whether all parts are names behind one head and preposition."""
    first = parts[0]
    frame = next((at for at in range(1, len(first) - 1) if first[at].lower() in FRAMES), None)
    if frame is None or len(parts) == 1 or any(part[: frame + 1] != first[: frame + 1] for part in parts):
        return False
    return all(_is_named(part[frame + 1 :], is_name) for part in parts)


def _is_named(words: Words, is_name: Callable[[str], bool]) -> bool:
    text = text_of(words)
    return is_name(text) or (text.endswith("s") and is_name(text[:-1]))


def _spans(words: Words) -> Iterator[Words]:
    """The mention and each stretch of it that holds all its coordinators, longest first."""
    at = [position for position, word in enumerate(words) if word.lower() in COORDINATORS]
    spans = [(begin, end) for begin in range(at[0]) for end in range(at[-1] + 2, len(words) + 1)]
    for begin, end in sorted(spans, key=lambda span: span[0] - span[1]):
        yield words[begin:end]
