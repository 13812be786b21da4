"""Strengths and dose forms of drugs left out: "metformin HCl 500 mg oral tablet" is "metformin HCl".

What is left out:

===================  ==================================================================================================
amounts              500 mg, 0,5 g, 5-10 mg, 250 mg/5 ml, 20 mg/12.5 mg, 100 units/mL, 25 mcg/hr, 0.9 %, 1:1,000, 24 HR,
                     30 tablets, #30
before, after them   forms (tab, oral suspension, ER capsule), routes (IV, p.o.) and directions (bid, every 6 hours)
brands in brackets   ... 10 MG Oral Tablet [Lipitor], as RxNorm has them
===================  ==================================================================================================

A terminology knows better: a mention that is a name stays whole ("hypertonic saline 3 %", a clinical drug of RxNorm),
and of what may remain, the longest that is a name is used ("Effexor XR", if there is one). Only then are forms left out
that have no amount beside them ("Calamine lotion", but "amoxicillin capsules"), and numbers without a unit ("Lipitor
20"). If several amounts split a name ("Ozempic 0.25 mg or 0.5 mg pen"), what is before the first is tried too. The
rules are for English and Latin.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from onoma.linking.word_lists import listed

_NUMBER = r"(?:\d+(?:[.,'’·]\d+)*|\.\d+)"
_UNIT = (
    r"mcg|mg|ng|kg|gm|gr|grams?|milligrams?|micrograms?|[uµμ]g|m[il]u|mci|mbq|gbq|meq|mmol|mol|kcal|ml|cc|dl|"
    r"millilit(?:er|re)s?|lit(?:er|re)s?|oz|ppm|iu|i\.u\.|ie|ui|units?|unt|cells|bau|pfu|sq-e"
)
_SHORT_UNIT = "[glu]"
_COUNTED = (
    r"tab(?:let)?s?|cap(?:sule)?s?|caplets?|puffs?|sprays?|drops?|gtts?|patch(?:es)?|vials?|amp(?:oule|ule)?s?|sachets?|"
    r"packets?|doses?|count|ct|pcs|actuat(?:ion)?s?|act|inh(?:alation)?s?|lozenges?|suppositor(?:y|ies)|pens?|syringes?"
)
_TIME = r"hrs?|hours?|days?"
_OF = rf"(?:{_UNIT}|{_SHORT_UNIT}|{_COUNTED}|{_TIME}|h|d|wks?|weeks?|min(?:ute)?s?|m2|m²)"
_RANGE = rf"{_NUMBER}(?:\s*(?:[-–/]|\bto\b)\s*{_NUMBER})*"
# "type 2G" is no amount, nor is the letter in "5-l-isoleucine" and "SCNN1G" a unit.
_AMOUNT = re.compile(
    rf"(?:(?<![\w.,:/#-])(?<!\btype\s){_RANGE}"
    rf"(?:\s*%|[\s-]*(?:(?:million|mega|mio)\s+)?(?:{_UNIT}|{_COUNTED}|{_TIME})(?!\w)|\s?{_SHORT_UNIT}(?![\w-]))"
    rf"|(?<=[^\W\d_]{{4}}){_RANGE}\s?(?:mg|mcg|ml|iu|units?)(?!\w))"
    rf"(?:\s*(?:(?:/|\bper\b)\s*(?:{_NUMBER}[\s-]*)?{_OF}|[-–]\s*{_NUMBER}\s*{_OF})(?!\w))*",
    re.IGNORECASE,
)
_RATIO = re.compile(r"(?<![\w.,:/-])1\s?:\s?\d[\d,]*(?![\w:])")
_QUANTITY = re.compile(r"(?<!\w)(?:#\s?|qty\.?:?\s?|(?<=\s)x\s?)\d\d+(?!\w)", re.IGNORECASE)
"""Of two digits: "Tylenol #3" has codeine in it."""
_PAIR = re.compile(
    r"(?<=[^\W\d_]{4})(?<!type)(?<!grade)(?<!stage)(?<!class)\s+\d+(?:[.,]\d+)?\s?/\s?\d+(?:[.,]\d+)?(?![\w-])(?!\s?/)",
    re.IGNORECASE,
)
"""Of a combination: "Percocet 5/325"."""
_EXTRA = re.compile(
    r"\b(?:(?:extra|maximum|regular|double|high|low)[\s-]strength|(?:once|twice|times)\s+(?:a|per)\s+(?:day|week|month))\b",
    re.IGNORECASE,
)
_BRAND = re.compile(r"(\S+)\s*\[[^\[\]]*\]\s*$")
_BETWEEN_DRUGS = re.compile(rf"(\s*;\s+|\s*[\r\n]+\s*|\s+\+\s+|\s+/\s+(?!(?:{_NUMBER}|{_OF})(?![\w-])))", re.IGNORECASE)
_DIVIDERS = {";": "; ", "": "\n", "+": " + ", "/": " / ", ",": ", "}
_COMMAS = re.compile(r"(,\s+)")
_MARKS = re.compile("[®™]")
_EMPTY = re.compile(r"\(\s*[,;/]*\s*\)|\[\s*\]")
_MAX_CHARACTERS = 500
"""No drug is called by more."""
_LOOSE = " \t,;:/&"
_LOOSE_SIGNS = re.compile("(?:^|\\s)[-–+]+(?=\\s|$)")
_BARE_NUMBERS = re.compile(rf"(?:\d\d+(?:[.,]\d+)*|{_NUMBER}(?:[-/]{_NUMBER})+|\d+[.,]\d+)")
_MIN_LETTERS_BEFORE_NUMBER = 4
"""A number behind fewer belongs to the name: "coenzyme q 10"."""
_FORMS = listed(
    """
    aerosol amp ampoule ampule applicator auto-injector autoinjector bag bolus bottle box buccal cap caplet capsule
    cartridge chew chewable coated concentrate controlled cr cream creme delayed disintegrating dispersible dose
    dose-pack dpi dr drip drop drug dry ear ec effervescent elixir emulsion enema enteric er extended eye film foam
    gel gelcap granule gtt gum hfa immediate implant infusion inh inhalant inhalation inhaler inj injectable
    injection injector insert intradermal intramuscular intrathecal intrauterine intravenous ir irrigation ivpb kit
    la liq liquid lotion lozenge mdi metered modified mouthwash mr mucosal nasal nebule nebuliser nebulizer odt oint
    ointment ophth ophthalmic oral orally otic pack packet pad parenteral paste patch patches pellet pen
    pen-injector pessary pill powder pre-filled prefilled prolonged reconstituted rectal release ring sachet shampoo
    slow softgel sol soln soluble solution spray sr strip subcutaneous sublingual supp suppositories suppository
    susp suspension sustained swab syr syringe syrup system tab tablet tbl topical transdermal troche tube unit usp
    vaginal vial wafer xl xr
    """
)
"""Forms, parts of forms and routes; of most the plural is one too."""
_DIRECTIONS = listed(
    """
    ac apply as at b.d. b.i.d. bd bedtime bid by daily day each evening every hs i.m. i.v. im iv mane monthly
    morning mouth needed night nightly nocte od once p.o. p.r.n. pc po pr prn pv q.i.d. qam qd qds qhs qid qod qpm
    s.c. s.l. sc sl sq stat subcut subq t.d.s. t.i.d. take tds thrice tid times twice weekly
    """
)
_INTERVAL = re.compile(r"q\.?\d+(?:-\d+)?(?:h|hrs?)")
_RELEASED = re.compile(
    "(?:controlled|delayed|extended|immediate|modified|prolonged|slow|sustained)-release|(?:enteric|film)-coated"
)
_JOINING = listed("and for in of per w/ with x")
"""What may be left over behind a name."""
_WITH_ANOTHER = frozenset({"and", "with", "w/", "/", "+", "plus"})
_BEFORE = listed(
    "tab tabs tablet tablets cap caps capsule capsules inj injection syr syp syrup susp oint take abuse-deterrent "
    "breath-actuated"
)


def without_strengths(mention: str, *, is_name: Callable[[str], bool] | None = None) -> str:
    """A drug without amounts, dose forms, routes and directions.

    Args:
        mention: Any text.
        is_name: Whether a text is a name of the terminology; called with the mention, and with what may remain of it.

    Returns:
        What remains, white space collapsed; the mention itself if nothing is left out, or everything would be.

    Example:
        >>> without_strengths("metformin HCl 500 mg oral tablet, bid")
        'metformin HCl'
        >>> without_strengths("hydrochlorothiazide 12.5 MG / lisinopril 20 MG Oral Tablet")
        'hydrochlorothiazide / lisinopril'
        >>> without_strengths("Lipitor 20", is_name={"Lipitor"}.__contains__)
        'Lipitor'
        >>> without_strengths("Calamine lotion")
        'Calamine lotion'
    """
    if len(mention) > _MAX_CHARACTERS or (is_name is not None and is_name(mention)):
        return mention
    drugs = _BETWEEN_DRUGS.split(mention.strip())
    if len(drugs) == 1:
        between = _COMMAS.split(mention.strip())
        # "amlodipine, 5 mg" is one drug
        drugs = between if all(_AMOUNT.search(drug) or not _left_of(drug, is_name) for drug in between[::2]) else drugs
    parts = [_left_of(drug, is_name) for drug in drugs[::2]]
    if parts == drugs[::2]:
        return mention
    left = ""
    for divider, part in zip(["", *drugs[1::2]], parts, strict=True):
        if part:
            left += (_DIVIDERS[divider.strip()] if left else "") + " ".join(part.split())
    return left or mention


def _left_of(mention: str, is_name: Callable[[str], bool] | None) -> str:
    """What is left of one drug; nothing if all of it says how much, and how it is given."""
    if is_name is not None and is_name(mention):
        return mention
    rest, n_amounts = _MARKS.sub(" ", " ".join(mention.split())), 0
    for pattern in (_AMOUNT, _RATIO, _PAIR, _QUANTITY, _EXTRA):
        rest, n = pattern.subn(" ", rest)
        n_amounts += n
    if n_amounts and (brand := _BRAND.search(rest)) is not None and _says_how(brand[1]):
        rest = rest[: brand.end(1)]
    texts = [*_shortened(_tidied(rest))]
    left = [text for text in texts if _is_name_like(text)]
    if is_name is not None:
        whole = [text for text in _shortened(_tidied(mention)) if not text.endswith(" 1")]  # "interleukin 1 tab"
        before = [_shortened(_tidied(mention[: amount.start()])) for amount in _AMOUNT.finditer(mention)]
        first = before[:1] if _WITH_ANOTHER.isdisjoint(rest.lower().split()) else []
        for text in itertools.chain(whole, *before[:0:-1], left, _without_number(left), *first):
            if _is_name_like(text) and is_name(text):
                return text
    if n_amounts or any(map(_says_how, mention.split())):
        if not left or not _is_name_like(texts[-1]):
            return ""  # but "E" of "vitamin C / E" is a name
        return left[-1] if n_amounts else mention
    return mention


def _shortened(text: str) -> Iterator[str]:
    """The text, then with one word fewer of those that only say how a drug is given, again and again."""
    yield text
    words = text.split()
    while words and _says_how(words[-1]):
        words.pop()
        yield _tidied(" ".join(words))
    while words and _bare(words[0]) in _BEFORE:
        words.pop(0)
        yield _tidied(" ".join(words))


def _without_number(texts: list[str]) -> Iterator[str]:
    for text in texts:
        words = text.split()
        if len(words) > 1 and _BARE_NUMBERS.fullmatch(words[-1]):
            n_letters = sum(map(str.isalpha, words[-2]))
            if n_letters >= _MIN_LETTERS_BEFORE_NUMBER or _says_how(words[-2]):
                yield from _shortened(_tidied(" ".join(words[:-1])))


def _says_how(word: str) -> bool:
    bare = _bare(word)
    if not bare or bare in _DIRECTIONS | _JOINING or bare in _FORMS or bare.removesuffix("s") in _FORMS:
        return True
    return any(pattern.fullmatch(bare) is not None for pattern in (_INTERVAL, _RELEASED))


def _bare(word: str) -> str:
    bare = word.strip("()[],;:").lower()
    return bare if bare in _DIRECTIONS else bare.rstrip(".")


def _tidied(text: str) -> str:
    """Without what stood around what was left out: empty brackets, commas, white space."""
    text = _EMPTY.sub(" ", text)
    text = re.sub(r"\s+([,;)\]]|/(?=\S))", r"\1", re.sub(r"([(\[])\s+", r"\1", text))
    text = _LOOSE_SIGNS.sub(" ", re.sub(r"([,;])(?:\s*[,;])+", r"\1", text).strip(_LOOSE))
    return " ".join(text.split()).strip(_LOOSE)


def _is_name_like(text: str) -> bool:
    """Whether so much is left as a name has at least: the "E" of "vitamin C / E"."""
    return any(map(str.isalpha, text))
