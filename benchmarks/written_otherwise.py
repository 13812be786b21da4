"""How many names a linker still finds when they are written otherwise: in capitals, without accents, in wide signs.

    python benchmarks/written_otherwise.py TERMINOLOGY LINKER [--stages exact,loose,sparse] [--names 1000]

The names are drawn from those that the rewriting changes; a name is found where the first answer is its concept, or one
that has the same name. Turkish capitals: i has a dot there, and its other i has none.
"""

from __future__ import annotations

import argparse
import unicodedata
from collections.abc import Callable
from pathlib import Path

import polars as pl

from onoma import Linker, Terminology
from onoma.randomness import random_from


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


REWRITINGS: dict[str, Callable[[str], str]] = {
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
    codes = opened.concepts().with_row_index("concept_row").select("concept_row", "concept_id")
    known = opened.names().join(codes, on="concept_row").select("concept_id", "text").collect()
    concepts_of = dict(known.group_by("text").agg(pl.col("concept_id").unique()).iter_rows())
    print(f"{'':32} {'names':>6} {'found':>7} {'score 1, wrong':>15}")
    for what, rewrite in REWRITINGS.items():
        names = sorted(name for name in concepts_of if rewrite(name) != name)
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


if __name__ == "__main__":
    main()
