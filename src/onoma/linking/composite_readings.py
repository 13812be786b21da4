"""What a coordinated mention can stand for, by its words alone: "colorectal and ovarian cancer" is two cancers.

The rules are made for English names of disorders and phenotypes; `onoma.linking.composites` has a table of the readings
and takes one of them by what a terminology has.
"""

from __future__ import annotations

import re

from onoma.linking.composite_words import (
    CODE,
    COMMA,
    COORDINATORS,
    DENYING,
    ENUMERATOR,
    FRAMES,
    LABELS,
    NUMBER,
    NUMBERED,
    ROMAN,
    Words,
    core_of,
    says_kind,
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

Reading = list[Words]
"""The parts of a mention, each as its words."""

_OPEN_ENDED = frozenset(
    {"with", "without", "due", "secondary", "associated", "caused", "following", "including", "plus", "after", "than"}
)
"""Where these stand, a list belongs to one name: "hydrocephalus with cleft palate and deafness"."""
_ARTICLES = frozenset({"the", "a", "an"})
_HINDERED = frozenset({"difficulty", "trouble"})
_CHANGED = frozenset({"decreased", "diminished", "elevated", "increased", "lowered", "reduced"})
"""What follows one of these need not be a word for a disorder: "decreased libido"."""
_QUANTIFIERS = _ARTICLES | {"some", "other", "certain", "various", "several"}
_COUNTED = frozenset({"types", "factors", "stages", "grades", "groups"})
_ACRONYM = re.compile(r"[A-Z]{2,}[0-9]?", re.ASCII)


def readings_of(words: Words) -> list[Reading]:
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


def _inverted(words: Words) -> Reading | None:
    """Parts of "neurofibromatosis, type I and type II" or "diabetes, types 1 and 2", inverted as in vocabularies."""
    at = words.index(COMMA) if COMMA in words else 0
    name, kinds = words[:at], _conjuncts(words[at + 1 :])
    spoken = {word.lower() for word in words}
    if not name or kinds is None or spoken & (_OPEN_ENDED | DENYING) or says_kind(name[-2:]):
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


def _readings_by_rules(words: Words) -> list[Reading]:
    conjuncts = _conjuncts(words)
    if conjuncts is None or (_OPEN_ENDED | DENYING).intersection(map(str.lower, words)):
        return [[words]]
    frame = next((at for at in range(1, len(words) - 1) if words[at].lower() in FRAMES), None)
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


def _are_numbers(conjuncts: Reading) -> bool:
    """Whether the first ends in a number, and each other one begins with one."""
    words = [conjuncts[0][-1], *(part[0] for part in conjuncts[1:])]
    return all(NUMBER.fullmatch(word) or ROMAN.fullmatch(word) for word in words)


def _in_frame(head: Words, article: Words, part: Words) -> Words:
    """What a part of "cancer of the breast and ovary" stands for; a part may say preposition or article itself."""
    first = part[0].lower()
    if first in FRAMES:
        return head[:-1] + part
    return head + (part if first in _ARTICLES else article + part)


def _conjuncts(words: Words) -> Reading | None:
    """What stands between commas and coordinators; ``None`` if that is no list.

    In a list nothing but the last coordinator separates the last conjunct: a comma after it begins an addition
    or an inversion ("polyps, multiple and recurrent, of the colon").
    """
    conjuncts: Reading = [[]]
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


def _plain(conjuncts: Reading, words: Words) -> list[Reading]:
    """Readings of a list that stands alone, the preferred one first."""
    if (special := _suspended(conjuncts)) is not None:
        return special
    if (enumerated := _enumerated(conjuncts)) is not None:
        return [enumerated]
    first, last = conjuncts[0], conjuncts[-1]
    complete = [*(_is_complete(part) or _is_changed(part) for part in conjuncts[:-1]), _is_complete(last)]
    preferred = [words]
    if len(conjuncts) == 3 and COMMA not in words and _are_kinds_of_kinds(first, conjuncts[1]):
        preferred = [words]
    elif len(first) > 1 and len({core_of(conjunct[-1]).lower() for conjunct in conjuncts}) == 1:
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


def _are_kinds_of_kinds(first: Words, second: Words) -> bool:
    """Whether both adjectives of "acute and chronic liver and kidney disease" belong to both organs: four diseases."""
    are_adjectives = len(first) == 1 < len(second) and is_adjective(core_of(first[0])) and is_adjective(second[0])
    return are_adjectives and not _is_complete(second)


def _things(conjuncts: Reading) -> list[Reading]:
    """Readings of a list within a frame, as of organs: they are whole unless an adjective is left without noun."""
    if (special := _suspended(conjuncts)) is not None:
        return special
    if (enumerated := _enumerated(conjuncts)) is not None:
        return [enumerated]
    first, last = conjuncts[0], conjuncts[-1]
    leans = is_adjective(core_of(first[-1])) or (_is_complete(last) and not _is_complete(first))
    preferred = conjuncts
    if len(last) > 1 and leans:
        preferred = _shared_end(conjuncts, _n_modifiers(conjuncts))
    elif is_organ(core_of(last[-1])) and any(is_disorder(word) for word in first[:-1]):  # forms of cleft lip and palate
        preferred = _shared_beginning(conjuncts, len(first) - 1)
    return [preferred, *_other_readings(conjuncts)]


def _other_readings(conjuncts: Reading) -> list[Reading]:
    return [
        conjuncts,
        *(_shared_end(conjuncts, n_own) for n_own in range(1, len(conjuncts[-1]))),
        *(_shared_beginning(conjuncts, n_shared) for n_shared in range(len(conjuncts[0]) - 1, 0, -1)),
    ]


def _shared_end(conjuncts: Reading, n_own: int) -> Reading:
    """All but the first ``n_own`` words of the last conjunct go to each conjunct that is no name yet."""
    end = conjuncts[-1][n_own:]
    return [*(part if _is_complete(part) else _joined(part, end) for part in conjuncts[:-1]), conjuncts[-1]]


def _joined(part: Words, end: Words) -> Words:
    """The part with the shared end, whose first word it may have already: "non-small-cell" and "cell lung cancer"."""
    has_it = part[-1].lower().endswith(f"-{end[0].lower()}")
    return part + end[1:] if has_it and len(end) > 1 else part + end


def _shared_beginning(conjuncts: Reading, n_shared: int) -> Reading:
    """The first words of the first conjunct go to each later one of a single word."""
    beginning = conjuncts[0][:n_shared]
    return [conjuncts[0], *(beginning + part if len(part) == 1 else part for part in conjuncts[1:])]


def _n_modifiers(conjuncts: Reading) -> int:
    """How many words of the last conjunct are its own: as many as the longest unfinished one has.

    Quantifiers ("other cancers") do not count; at least one word is left to share.
    """
    last = conjuncts[-1]
    n_quantifiers = next((at for at, word in enumerate(last) if word.lower() not in _QUANTIFIERS), len(last) - 1)
    longest = max((len(part) for part in conjuncts[:-1] if not _is_complete(part)), default=1)
    return n_quantifiers + min(len(last) - n_quantifiers - 1, longest)


def _suspended(conjuncts: Reading) -> list[Reading] | None:
    """Readings of "hypo- and hyperthyroidism", "T- and B-cell lymphoma": the hyphen stands for the rest of a word.

    What is before the first such word is shared ("severe hypo- and hyperthyroidism"), or is its own.
    """
    *others, last = conjuncts
    is_suspended = [len(part[-1]) > 1 and part[-1].endswith("-") for part in others]
    if not any(is_suspended):
        return None
    if any(
        is_adjective(core_of(part[-1])) for part, suspended in zip(others, is_suspended, strict=True) if not suspended
    ):
        return [[[word for part in conjuncts for word in part]]]
    _, hyphen, stem = last[0].partition("-")
    if not stem:
        stem = without_prefix(last[0]) or ""
    if not stem:
        return [[[word for part in conjuncts for word in part]]]
    apart = [
        [*part[:-1], (part[-1] if hyphen else part[-1][:-1]) + stem, *last[1:]] if suspended else part
        for part, suspended in zip(others, is_suspended, strict=True)
    ]
    first = is_suspended.index(True)
    before = others[first][:-1]
    lacks_it = [suspended and len(part) == 1 for part, suspended in zip(others, is_suspended, strict=True)]
    lacks_it[: first + 1] = [False] * (first + 1)
    together = [before + part if lacks else part for part, lacks in zip([*apart, last], [*lacks_it, True], strict=True)]
    return [together, [*apart, last]] if before else [together]


def _enumerated(conjuncts: Reading) -> Reading | None:
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
    frame = next((at for at in range(1, len(words)) if words[at].lower() in FRAMES), len(words))
    return is_disorder(core_of(words[frame - 1]))


def _is_changed(words: Words) -> bool:
    """Whether the words say that something is more or less than it should be: "decreased libido"."""
    head = core_of(words[-1])
    is_thing = not (is_organ(head) or is_adjective(head) or CODE.fullmatch(head))
    return len(words) > 1 and words[0].lower() in _CHANGED and is_thing
