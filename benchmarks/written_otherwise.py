"""How many names a linker still finds when they are written otherwise: numerals, Greek letters, signs, capitals.

    python benchmarks/written_otherwise.py TERMINOLOGY LINKER [--stages exact,loose,sparse] [--names 1000]

Last: how many names are names in another way to write them too, by the linker's own rules, and of another concept then.

The names are drawn from those that the rewriting changes, and not into another name; a name is found where the first
answer is its concept, or one that has the same name. Turkish capitals: i has a dot there, and its other i has none.
"""

from __future__ import annotations

import argparse
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import polars as pl

from onoma import Linker, Terminology
from onoma.linking.variants import variants_of
from onoma.linking.word_lists import in_order
from onoma.randomness import random_from
from onoma.terminology import normalise


def turkish_capitals(name: str) -> str:
    """Capitals as Turkish has them."""
    return name.replace("i", "\u0130").replace("\u0131", "I").upper()


def full_width(name: str) -> str:
    """ASCII signs as wide as Chinese and Japanese ones."""
    return "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in name)


def decomposed(name: str) -> str:
    """Accents behind their letters."""
    return unicodedata.normalize("NFD", name)


def without_accents(name: str) -> str:
    """Letters alone."""
    return "".join(sign for sign in decomposed(name) if not unicodedata.combining(sign))


ROMAN = in_order("I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX")
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "kappa": "κ", "omega": "ω"}


def roman(name: str, *, behind: str = "") -> str:
    """Numbers up to 20 in Roman numerals, if behind one of these words."""
    of_number = {str(number): numeral for number, numeral in enumerate(ROMAN, 1)}
    return re.sub(
        rf"(?<![\w.,-])({behind})(\d\d?)(?![\w.,-])",
        lambda found: found[1] + of_number.get(found[2], found[2]),
        name,
    )


def arabic(name: str) -> str:
    """Roman numerals but X, which is a chromosome more often, in Arabic ones."""
    return re.sub(
        rf"(?<![\w.,-])({'|'.join(ROMAN)})(?![\w.,-])",
        lambda found: found[0] if found[0] == "X" else str(ROMAN.index(found[1]) + 1),
        name,
    )


def greek(name: str) -> str:
    """Names of Greek letters by the letters."""
    return re.sub(rf"(?<![^\W\d_])({'|'.join(GREEK)})(?![^\W\d_])", lambda found: GREEK[found[0]], name)


def typographic(name: str) -> str:
    """Quotes and hyphens as word processors set them."""
    return name.replace("'", "\u2019").replace("-", "\u2010")


def ligatures(name: str) -> str:
    """Ligatures, as PDF has them."""
    return name.replace("ffi", "\ufb03").replace("fi", "\ufb01").replace("fl", "\ufb02")


def broken(name: str) -> str:
    """The first word of eight letters or more broken, as at the end of a line."""
    return re.sub(r"\b([a-z]{4})([a-z]{4,})", r"\1- \2", name, count=1)


REWRITINGS: dict[str, Callable[[str], str]] = {
    "type 2 as type II": lambda name: roman(name, behind="(?:type|grade|stage) "),
    "2 as II": roman,
    "II as 2": arabic,
    "alpha as a Greek letter": greek,
    "typographic quotes and hyphens": typographic,
    "ligatures": ligatures,
    "broken at a line's end": broken,
    "capitals": str.upper,
    "Turkish capitals": turkish_capitals,
    "accents as signs of their own": decomposed,
    "without accents": without_accents,
    "full width": full_width,
}


def main() -> None:
    """Print a line for each rewriting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("terminology", type=Path)
    parser.add_argument("linker", type=Path)
    parser.add_argument("--stages", help="divided by commas; unset: the linker's own")
    parser.add_argument("--names", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    linker = Linker.open(asked.linker)
    stages = None if asked.stages is None else asked.stages.split(",")
    opened = Terminology.open(asked.terminology)
    codes = opened.concepts().with_row_index("concept_row").filter(status="active").select("concept_row", "concept_id")
    names_of = opened.names().filter(~pl.col("is_suppressed"))  # as a linker has them
    known = names_of.join(codes, on="concept_row").select("concept_id", "text").collect()
    concepts_of = dict(known.group_by("text").agg(pl.col("concept_id").unique()).iter_rows())
    normalised = {normalise(name) for name in concepts_of}

    def is_free(name: str, written: str) -> bool:
        return normalise(written) == normalise(name) or normalise(written) not in normalised

    print(f"{'':32} {'names':>6} {'found':>7} {'score 1, wrong':>15}")
    for what, rewrite in REWRITINGS.items():
        names = sorted(name for name in concepts_of if rewrite(name) != name and is_free(name, rewrite(name)))
        if not names:
            continue
        drawn = random_from(asked.seed).choice(len(names), min(asked.names, len(names)), replace=False)
        texts = [names[at] for at in drawn.tolist()]
        answers = linker.link([rewrite(text) for text in texts], top_k=1, stages=stages)
        right = [
            bool(links) and links[0].concept_id in concepts_of[text] for text, links in zip(texts, answers, strict=True)
        ]
        sure = sum(bool(links) and links[0].score == 1 and not ok for links, ok in zip(answers, right, strict=True))
        print(f"{what:32} {len(texts):6,} {sum(right) / len(texts):7.1%} {sure:15,}")
    owners: dict[str, set[str]] = {}
    for text, concepts in concepts_of.items():
        owners.setdefault(normalise(text), set()).update(concepts)
    others = [
        (concepts, owners[other])
        for text, concepts in owners.items()
        if (other := next((way for one in variants_of(text) if (way := normalise(one.text)) in owners), text)) != text
    ]
    n_other = sum(concepts.isdisjoint(of_other) for concepts, of_other in others)
    print(f"names in another way too: {len(others):,}; of another concept: {n_other:,}")


if __name__ == "__main__":
    main()
