"""Composite mentions to the names they stand for: "colorectal and ovarian cancer" is two cancers.

Coordination leaves out what several names share, and what that is cannot be seen from the words alone:

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

The words decide which reading comes first: whether a conjunct ends in a word for a disorder ("pain", "-itis"), in
a part of the body, in a number. A terminology knows better: of all readings, the one of which most parts are names
is taken, and a mention that is a name itself ("head and neck cancer", a syndrome called by its signs) stays whole.
What no rule explains stays whole too. The rules are made for English names of disorders and phenotypes; semicolons and
line breaks divide anything, and commas or plus signs alone ("lisinopril + aspirin") what are names on all sides.

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
from onoma.linking.composite_words import (
    CODE,
    COMMA,
    COORDINATORS,
    ENUMERATOR,
    LABELS,
    NUMBER,
    NUMBERED,
    ROMAN,
    Words,
    core_of,
    says_kind,
    text_of,
    tokens_of,
)
from onoma.linking.disorder_words import (
    is_adjective,
    is_disorder,
    is_organ,
    needs_complement,
    needs_modifier,
    stands_alone,
    without_prefix,
)
from onoma.linking.word_lists import listed

_Reading = list[Words]
"""The parts of a mention, each as its words."""

_MAX_PARTS = 12
_MAX_WORDS = 40
_FRAMES = frozenset({"of", "in", "to", "on", "at", "from", "involving", "affecting"})
_OPEN_ENDED = frozenset(
    {"with", "without", "due", "secondary", "associated", "caused", "following", "including", "plus", "after", "than"}
)
"""Where these stand, a list belongs to one name: "hydrocephalus with cleft palate and deafness"."""
_DENYING = frozenset({"no", "not", "nor", "neither", "never", "denies", "denied", "denying"})
"""Where these stand, a part alone would say that what is denied is there."""
_ARTICLES = frozenset({"the", "a", "an"})
_HINDERED = frozenset({"difficulty", "trouble"})
_CHANGED = frozenset({"decreased", "diminished", "elevated", "increased", "lowered", "reduced"})
"""What follows one of these need not be a word for a disorder: "decreased libido"."""
_QUANTIFIERS = _ARTICLES | {"some", "other", "certain", "various", "several"}
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
_COUNTED = frozenset({"types", "factors", "stages", "grades", "groups"})
_ACRONYM = re.compile(r"[A-Z]{2,}[0-9]?", re.ASCII)


def split_composite(
    mention: str, *, is_name: Callable[[str], bool] | None = None, wholes: Iterable[str] = ()
) -> list[str]:
    """The names that a mention stands for, in its order; the mention alone if that is one.

    A second splitting of the parts changes nothing.

    Args:
        mention: Any text.
        is_name: Whether a text is a name of the terminology; called with the mention, spans of it, and parts of
            possible readings, the last ones also without the "s" of their plural.
        wholes: Texts that are one name wherever they stand in the mention, in any case, as the long form of a short
            form is: "stiffness and joint pain" for "SJP".

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
    # A part is split as any mention is, from its text: what comes back is therefore not split any further.
    found: dict[str, str] = {}
    for part in parts:
        for smaller in split_composite(part, is_name=is_name, wholes=wholes):
            found.setdefault(smaller.casefold(), smaller)
    return list(found.values()) if 1 < len(found) <= _MAX_PARTS else [mention]


def _listed(mention: str, is_name: Callable[[str], bool] | None, wholes: list[str]) -> list[str]:
    """What stands between semicolons or line breaks, or between commas or plus signs alone; none if that is no list.

    Inverted and qualified names are none: "carcinoma; breast", "pain, severe", "syndrome, grade 4".
    """
    spoken = [word.strip(".,;:") for word in mention.lower().split()]
    if _DENYING.intersection(spoken):
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
    found: dict[str, str] = {}
    for piece in pieces:
        for part in split_composite(piece, is_name=is_name, wholes=wholes):
            found.setdefault(part.casefold(), part)
    parts = list(found.values())
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
    return [text_of(part) for part in _best(_readings(words), is_name)]


def _two_names(words: Words, is_name: Callable[[str], bool]) -> list[str]:
    """Two names beside a coordinator, if one of them has another, or denies something: no reading finds these."""
    places = [at for at, word in enumerate(words) if word.lower() in COORDINATORS and 0 < at < len(words) - 1]
    for at in places if len(places) > 1 or _DENYING.intersection(map(str.lower, words)) else ():
        if _is_named(words[:at], is_name) and _is_named(words[at + 1 :], is_name):
            return [text_of(words[:at]), text_of(words[at + 1 :])]
    return []


def _best(readings: list[_Reading], is_name: Callable[[str], bool] | None) -> _Reading:
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


def _are_framed_names(parts: _Reading, is_name: Callable[[str], bool]) -> bool:
    """Whether all parts are names behind one head and preposition."""
    first = parts[0]
    frame = next((at for at in range(1, len(first) - 1) if first[at].lower() in _FRAMES), None)
    if frame is None or len(parts) == 1 or any(part[: frame + 1] != first[: frame + 1] for part in parts):
        return False
    return all(_is_named(part[frame + 1 :], is_name) for part in parts)


def _is_named(words: Words, is_name: Callable[[str], bool]) -> bool:
    text = text_of(words)
    return is_name(text) or (text.endswith("s") and is_name(text[:-1]))


def _readings(words: Words) -> list[_Reading]:
    """All readings, the preferred one first; that one is ``[words]`` where no rule fits.

    None has a part that only says which kind: "type 2" names nothing.
    """
    if "/" in words and words[-1].lower() in {"ratio", "ratios"}:
        return [[words]]
    inverted = _inverted(words)
    if inverted is not None:
        return [inverted]
    preferred, *others = _readings_by_rules(words)
    first = [words] if any(map(says_kind, preferred)) else preferred
    return [first, *(reading for reading in others if not any(map(says_kind, reading)))]


def _inverted(words: Words) -> _Reading | None:
    """Parts of "neurofibromatosis, type I and type II" or "diabetes, types 1 and 2", inverted as in vocabularies."""
    at = words.index(COMMA) if COMMA in words else 0
    name, kinds = words[:at], _conjuncts(words[at + 1 :])
    spoken = {word.lower() for word in words}
    if not name or kinds is None or spoken & (_OPEN_ENDED | _DENYING) or says_kind(name[-2:]):
        return None
    if COORDINATORS.intersection(map(str.lower, name)) or not says_kind(kinds[0]):
        return None
    numbers = [kind[1:] if says_kind(kind) else kind for kind in kinds]
    labels = {LABELS[kind[0].lower()] for kind in kinds if says_kind(kind)}
    if len(labels) > 1 or not all(len(number) == 1 and ENUMERATOR.fullmatch(number[0]) for number in numbers):
        return None
    label = kinds[0][0]
    if label.lower() not in LABELS.values():
        label = label[: len(LABELS[label.lower()])]
    return [[*name, label, *number] for number in numbers]


def _readings_by_rules(words: Words) -> list[_Reading]:
    conjuncts = _conjuncts(words)
    if conjuncts is None or (_OPEN_ENDED | _DENYING).intersection(map(str.lower, words)):
        return [[words]]
    frame = next((at for at in range(1, len(words) - 1) if words[at].lower() in _FRAMES), None)
    if frame is None:
        return _plain(conjuncts, words)
    all_complete = all(_is_complete(conjunct) for conjunct in conjuncts)
    if any(word.lower() in COORDINATORS for word in words[frame:]):
        head, thing = words[: frame + 1], words[frame + 1 :]
        article = [thing.pop(0)] if thing[0].lower() in _ARTICLES else []
        things = _conjuncts(thing)
        inner = [] if things is None else _things(things)
        framed = [[_in_frame(head, article, part) for part in it] for it in inner]
        # "symptoms of type 1 and 2 diabetes"; but a capital may begin a name, "hepatitis C and B cell lymphoma"
        is_counted = things is not None and _enumerated(things) is not None and _are_numbers(things)
        is_counted &= not COORDINATORS.intersection(map(str.lower, words[:frame]))
        return [conjuncts, *framed] if not framed or (all_complete and not is_counted) else [*framed, conjuncts]
    coordinated = _conjuncts(words[:frame])
    if coordinated is None:
        return [[words]]
    inner = _plain(coordinated, words[:frame])
    framed = [[part + words[frame:] for part in it] for it in inner]
    # "adenoma or carcinoma of the colon", but "renal failure and cancer of the colon", "fatigue and lack of sleep"
    heads = [core_of(part[-1]) for part in coordinated]
    are_names = needs_complement(heads[-1]) and all(map(stands_alone, heads[:-1]))
    is_whole = all_complete and (len(conjuncts[0]) > 1 or are_names)
    return [conjuncts, *framed] if is_whole else [*framed, conjuncts]


def _are_numbers(conjuncts: _Reading) -> bool:
    """Whether the first ends in a number, and each other one begins with one."""
    words = [conjuncts[0][-1], *(part[0] for part in conjuncts[1:])]
    return all(NUMBER.fullmatch(word) or ROMAN.fullmatch(word) for word in words)


def _in_frame(head: Words, article: Words, part: Words) -> Words:
    """What a part of "cancer of the breast and ovary" stands for; a part may say preposition or article itself."""
    first = part[0].lower()
    if first in _FRAMES:
        return head[:-1] + part
    return head + (part if first in _ARTICLES else article + part)


def _conjuncts(words: Words) -> _Reading | None:
    """What stands between commas and coordinators; ``None`` if that is no list.

    In a list nothing but the last coordinator separates the last conjunct: a comma after it begins an addition
    or an inversion ("polyps, multiple and recurrent, of the colon").
    """
    conjuncts: _Reading = [[]]
    last = ""
    for word in words:
        is_coordinator = word.lower() in COORDINATORS
        if is_coordinator and last == COMMA and not conjuncts[-1]:
            last = word
        elif is_coordinator or word == COMMA:
            conjuncts.append([])
            last = word
        else:
            conjuncts[-1].append(word)
    if conjuncts[0] and conjuncts[0][0].lower() in {"both", "either"}:
        conjuncts[0] = conjuncts[0][1:]
    is_list = last.lower() in COORDINATORS and len(conjuncts) > 1 and all(conjuncts)
    return conjuncts if is_list else None


def _plain(conjuncts: _Reading, words: Words) -> list[_Reading]:
    """Readings of a list that stands alone, the preferred one first."""
    special = _suspended(conjuncts) or _enumerated(conjuncts)
    if special is not None:
        return [special]
    first, last = conjuncts[0], conjuncts[-1]
    complete = [*(_is_complete(part) or _is_changed(part) for part in conjuncts[:-1]), _is_complete(last)]
    preferred = [words]
    if len(first) > 1 and len({core_of(conjunct[-1]).lower() for conjunct in conjuncts}) == 1:
        preferred = conjuncts
    elif all(complete):
        shares = len(last) == 1 < len(first) and needs_modifier(core_of(last[0]))
        preferred = _shared_beginning(conjuncts, len(first) - 1) if shares else conjuncts
    elif len(last) > 1:
        are_phrases = not complete[-1] and min(map(len, conjuncts)) > 1 and not is_adjective(core_of(first[-1]))
        are_phrases &= not (is_organ(core_of(first[-1])) and is_organ(last[-2]))  # "reduced lung and kidney function"
        are_codes = not CODE.fullmatch(last[0]) and all(_ACRONYM.fullmatch(" ".join(part)) for part in conjuncts[:-1])
        are_kinds = all(map(says_kind, conjuncts[:-1]))  # "type 1 and type 2 diabetes mellitus"
        is_whole = (are_phrases and not are_kinds) or are_codes or all(complete[:-1])
        preferred = conjuncts if is_whole else _shared_end(conjuncts, _n_modifiers(conjuncts))
    elif all(len(conjunct) == 1 and CODE.fullmatch(conjunct[0]) for conjunct in conjuncts):
        preferred = conjuncts
    elif len(first) > 1 and all(is_organ(core_of(conjunct[-1])) for conjunct in conjuncts):
        preferred = _shared_beginning(conjuncts, len(first) - 1)
    return [preferred, *_other_readings(conjuncts)]


def _things(conjuncts: _Reading) -> list[_Reading]:
    """Readings of a list within a frame, as of organs: they are whole unless an adjective is left without noun."""
    special = _suspended(conjuncts) or _enumerated(conjuncts)
    if special is not None:
        return [special]
    first, last = conjuncts[0], conjuncts[-1]
    leans = is_adjective(core_of(first[-1])) or (_is_complete(last) and not _is_complete(first))
    preferred = conjuncts
    if len(last) > 1 and leans:
        preferred = _shared_end(conjuncts, _n_modifiers(conjuncts))
    elif is_organ(core_of(last[-1])) and any(is_disorder(word) for word in first[:-1]):  # forms of cleft lip and palate
        preferred = _shared_beginning(conjuncts, len(first) - 1)
    return [preferred, *_other_readings(conjuncts)]


def _other_readings(conjuncts: _Reading) -> list[_Reading]:
    return [
        conjuncts,
        *(_shared_end(conjuncts, n_own) for n_own in range(1, len(conjuncts[-1]))),
        *(_shared_beginning(conjuncts, n_shared) for n_shared in range(len(conjuncts[0]) - 1, 0, -1)),
    ]


def _shared_end(conjuncts: _Reading, n_own: int) -> _Reading:
    """All but the first ``n_own`` words of the last conjunct go to each conjunct that is no name yet."""
    end = conjuncts[-1][n_own:]
    return [*(part if _is_complete(part) else _joined(part, end) for part in conjuncts[:-1]), conjuncts[-1]]


def _joined(part: Words, end: Words) -> Words:
    """The part with the shared end, whose first word it may have already: "non-small-cell" and "cell lung cancer"."""
    has_it = part[-1].lower().endswith(f"-{end[0].lower()}")
    return part + end[1:] if has_it and len(end) > 1 else part + end


def _shared_beginning(conjuncts: _Reading, n_shared: int) -> _Reading:
    """The first words of the first conjunct go to each later one of a single word."""
    beginning = conjuncts[0][:n_shared]
    return [conjuncts[0], *(beginning + part if len(part) == 1 else part for part in conjuncts[1:])]


def _n_modifiers(conjuncts: _Reading) -> int:
    """How many words of the last conjunct are its own: as many as the longest unfinished one has.

    Quantifiers ("other cancers") do not count; at least one word is left to share.
    """
    last = conjuncts[-1]
    n_quantifiers = next((at for at, word in enumerate(last) if word.lower() not in _QUANTIFIERS), len(last) - 1)
    longest = max((len(part) for part in conjuncts[:-1] if not _is_complete(part)), default=1)
    return n_quantifiers + min(len(last) - n_quantifiers - 1, longest)


def _suspended(conjuncts: _Reading) -> _Reading | None:
    """Parts of "hypo- and hyperthyroidism", "T- and B-cell lymphoma": the hyphen stands for the rest of a word."""
    last = conjuncts[-1]
    if not any(len(part[-1]) > 1 and part[-1].endswith("-") for part in conjuncts[:-1]):
        return None
    _, hyphen, stem = last[0].partition("-")
    if not stem:
        stem = without_prefix(last[0]) or ""
    if not stem:
        return [[word for part in conjuncts for word in part]]
    found = []
    for part in conjuncts[:-1]:
        word = part[-1]
        whole = (word if hyphen else word[:-1]) + stem
        found.append([*part[:-1], whole, *last[1:]] if word.endswith("-") else part)
    return [*found, last]


def _enumerated(conjuncts: _Reading) -> _Reading | None:
    """Parts of "type 1 and 2 diabetes", "diabetes type 1 or type 2", "hepatitis B and C", "BRCA1 and 2"."""
    first, *others = conjuncts
    label, number = first[:-1], first[-1]
    end = others[-1][1:]
    if all(len(part) == 1 for part in others[:-1]):
        if label and all(ENUMERATOR.fullmatch(word) for word in [number, *(part[0] for part in others)]):
            if label[-1].lower() in _COUNTED:
                label = [*label[:-1], label[-1][:-1]]
            return [[*label, word, *end] for word in [number, *(part[0] for part in others)]]
        if label and len(others[-1]) == 1 and all(CODE.fullmatch(part[-1]) for part in conjuncts):
            return [first, *(label + part for part in others)]
        numbered = NUMBERED.fullmatch(number)
        if numbered is not None and all(NUMBER.fullmatch(part[0]) for part in others):
            stem = numbered[1]
            spelled = [f"{stem.rstrip('-')}{part[0]}" if part[0].startswith("-") else stem + part[0] for part in others]
            return [[*label, word, *end] for word in [number, *spelled]]
    size = len(others[-1])
    is_repeated = 1 < size < len(first) and all(part[:-1] == first[-size:-1] for part in others)
    if is_repeated and all(ENUMERATOR.fullmatch(part[-1]) for part in conjuncts):
        return [first, *(first[:-size] + part for part in others)]
    return None


def _is_complete(words: Words) -> bool:
    """Whether the words end as a name of a disorder does: "pain", "cancer of the breast", "trouble sleeping"."""
    if len(words) > 1 and words[-2].lower() in _HINDERED and words[-1].lower().endswith("ing"):
        return True
    frame = next((at for at in range(1, len(words)) if words[at].lower() in _FRAMES), len(words))
    return is_disorder(core_of(words[frame - 1]))


def _is_changed(words: Words) -> bool:
    """Whether the words say that something is more or less than it should be: "decreased libido"."""
    head = core_of(words[-1])
    is_thing = not (is_organ(head) or is_adjective(head) or CODE.fullmatch(head))
    return len(words) > 1 and words[0].lower() in _CHANGED and is_thing


def _spans(words: Words) -> Iterator[Words]:
    """The mention and each stretch of it that holds all its coordinators, longest first."""
    at = [position for position, word in enumerate(words) if word.lower() in COORDINATORS]
    spans = [(begin, end) for begin in range(at[0]) for end in range(at[-1] + 2, len(words) + 1)]
    for begin, end in sorted(spans, key=lambda span: span[0] - span[1]):
        yield words[begin:end]
