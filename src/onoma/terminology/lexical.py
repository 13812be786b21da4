"""Names that say the same in other words' order, number or spelling: "pain in lower limb", "Lower limb pains".

What the lexical tools of the UMLS call normalised strings (``norm``), by rules in place of their lexicon: genitives
lose their "'s", small words are left out, plurals become singular, British spellings American, and words are sorted.
Such a key only says that two names are worth a second look; whoever uses it must see to homonyms.

Rules are of English, and coarse where it does no harm: a key is compared with keys, and read by nobody.
"""

from __future__ import annotations

import polars as pl

from onoma.terminology.normalisation import normalise_expr

SMALL_WORDS = ("of", "and", "with", "for", "nos", "to", "in", "by", "on", "the")
"""Left out where others are there. Not "a": "vitamin A" is a vitamin of its own."""
_GENITIVE = r"(?i)['’]s\b"
_RULES = (
    (r"\b(\w{2,})ies\b", "${1}y"),  # allergies
    (r"(ss|x|sh)es\b", "${1}"),  # abscesses, reflexes, rashes; but aches
    (r"\b(\w{2,}[^\W\dsiu])s\b", "${1}"),  # pains; but virus, pelvis, abscess
    (r"[ao]e(\w)", "e${1}"),  # anaemia, oedema; but toe
    ("our", "or"),  # tumour
    (r"([iy])s(e|ed|ing|ation)\b", "${1}z${2}"),  # generalised, paralysed
    (r"\b(\w*(?:cent|fib|lit|met|calib))re\b", "${1}er"),
    ("sulph", "sulf"),
    ("leuco", "leuko"),
)


def lexical_key_expr(column: pl.Expr) -> pl.Expr:
    """What a column's names are compared by, as strings; blank for a blank name, null for null.

    Args:
        column: An expression of strings.

    Source:
        McCray, Srinivasan, Browne 1994, "Lexical methods for managing variation in biomedical terminologies", and the
        documentation of LVG's flow ``norm``. Differs: rules where LVG looks up its lexicon, so that irregular plurals
        ("metastases") stay as they are.

    Example:
        >>> names = pl.DataFrame({"name": ["Pain in lower limb", "Lower limb pains", "Crohn's disease", "Oedema, NOS"]})
        >>> names.select(lexical_key_expr(pl.col("name")))["name"].to_list()
        ['limb lower pain', 'limb lower pain', 'crohn disease', 'edema']
    """
    plain = normalise_expr(column.str.replace_all(_GENITIVE, ""), "loose")
    for pattern, replacement in _RULES:
        plain = plain.str.replace_all(pattern, replacement)
    is_small = pl.element().is_in(SMALL_WORDS)
    words = pl.element().filter(~is_small | is_small.all()).sort()
    return plain.str.split(" ").list.eval(words).list.join(" ")
