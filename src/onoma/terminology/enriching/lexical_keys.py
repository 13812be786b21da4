"""Names that say the same in another order, number or spelling: "Pain in lower limb", "Lower limb pains".

What the lexical tools of the UMLS call normalised strings (``norm``), by rules in place of their lexicon: genitives
lose their "'s", small words are left out, most plurals become singular, British spellings American, and words are
sorted. Words with digits keep their order ("1-methyl-2-ethyl" is not "2-methyl-1-ethyl"), and so do all words of names
in which order decides what is meant ("migraine without aura", "anaemia due to kidney disease").

Such a key says that two names are worth a second look; whoever uses it must see to homonyms. Rules are of English.
They join a few words that have nothing in common ("poet", "pet"), and names whose order decides though no word says so.
"""

from __future__ import annotations

import polars as pl

from onoma.terminology.normalised_columns import normalise_expr

SMALL_WORDS = ("of", "and", "with", "for", "nos", "to", "in", "by", "on", "the")
"""Left out where others are there. Not "a": "vitamin A" is a vitamin of its own."""
ORDERING_WORDS = ("without", "not", "no", "from", "due", "secondary", "versus", "before", "after")
"""Names with one of these keep their order."""
_GENITIVE = r"(?i)(\w)['’ʼ`´]s\b"
_RULES = (
    (r"\b(\w{2,})ies\b", "${1}y"),  # allergies
    (r"(ss|x|sh)es\b", "${1}"),  # abscesses, reflexes, rashes; but aches
    (r"\b(\w{2,}[^\W\dsiu])s\b", "${1}"),  # pains; but virus, pelvis, abscess
    (r"[æœ]", "e"),
    (r"[ao]e(\w)", "e${1}"),  # anaemia, oedema; but toe
    ("our", "or"),  # tumour
    (r"([iy])s(e|ed|ing|ation)\b", "${1}z${2}"),  # generalised, paralysed
    (r"\b(\w*(?:cent|fib|lit|met|calib))re\b", "${1}er"),
    ("sulph", "sulf"),
    ("leuco", "leuko"),
)
_ORDERING = rf"\b(?:{'|'.join(ORDERING_WORDS)})\b"
_LAST = "\uffff"
"""Sorted behind every word."""


def lexical_keys(names: pl.Series) -> pl.Series:
    """What names are compared by, as strings; blank for a blank name, null for null.

    Args:
        names: Any strings.

    Source:
        McCray, Srinivasan, Browne 1994, "Lexical methods for managing variation in biomedical terminologies", and the
        documentation of LVG's flow ``norm``. Differs: rules where LVG looks up its lexicon, so that many plurals
        ("metastases", "viruses") stay as they are; order is kept where it decides.

    Example:
        >>> names = pl.Series(["Pain in lower limb", "Lower limb pains", "Crohn's disease", "Oedema, NOS"])
        >>> lexical_keys(names).to_list()
        ['limb lower pain', 'limb lower pain', 'crohn disease', 'edema']
    """
    word, text = pl.element(), pl.col("text")
    large = word.filter(~word.is_in(SMALL_WORDS) | word.is_in(SMALL_WORDS).all())
    place = pl.when(word.str.contains(r"\d")).then(pl.lit(_LAST)).otherwise(word)
    # Step by step on a frame: as one expression, what is needed twice would be worked out twice.
    frame = pl.DataFrame({"text": names}, schema={"text": pl.String})
    frame = frame.with_columns(normalise_expr(text.str.replace_all(_GENITIVE, "${1}"), "loose"))
    frame = frame.with_columns(text.str.split(" ").list.eval(large).list.join(" "))
    for pattern, replacement in _RULES:
        frame = frame.with_columns(text.str.replace_all(pattern, replacement))
    ordered = text.str.split(" ").list.eval(word.sort_by(place, maintain_order=True)).list.join(" ")
    return frame.select(pl.when(text.str.contains(_ORDERING)).then(text).otherwise(ordered))["text"]
