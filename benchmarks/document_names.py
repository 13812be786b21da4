"""What it is worth that another name of a concept stands in the mention's document: a bonus for such candidates.

    python benchmarks/document_names.py LINKER FOLDER

FOLDER holds a corpus in PubTator format and BioSyn's queries of it (see mentions.py). Each mention of one concept is
linked by LINKER. A candidate goes up by a constant if one of its concept's names, other than the mention, stands in
title or abstract outside the mention: any name, or only where no longer name covers it. The constant is chosen on the
training part; the table shows acc@1 there and on the development part.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mentions import Mention, align, find_file
from onoma.benchmarks.biosyn import read_queries
from onoma.linking import Link, Linker
from onoma.terminology import normalise

BONUSES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
_CANDIDATES = 20
_SHORTEST = 3
_WORDS = 12
_PRESET = "biosyn"

Names = dict[str, set[int]]
"""Rows of the concepts that have a name."""
Case = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Of a mention's candidates: scores, is right, a name stands in the document, it is the longest there."""


def names_of(linker: Linker) -> Names:
    """The linker's names, in words."""
    names: Names = defaultdict(set)
    dictionary = linker.dictionary
    for text, concept in zip(dictionary.entry_names, dictionary.entry_concepts, strict=True):
        name = normalise(text, _PRESET)
        if len(name) >= _SHORTEST:
            names[name].add(int(concept))
    return names


def found_in(document: str, names: Names) -> Iterator[tuple[str, int, int, bool]]:
    """Names in a document with their places, and whether no longer one covers it."""
    words = list(re.finditer(r"\w+", document))
    covered = 0
    for first in range(len(words)):
        reach = covered
        for last in range(min(first + _WORDS, len(words)) - 1, first - 1, -1):
            start, stop = words[first].start(), words[last].end()
            name = normalise(document[start:stop], _PRESET)
            if name in names:
                yield name, start, stop, stop > covered and reach == covered
                reach = max(reach, stop)
        covered = reach


def cases(mentions: list[Mention], linker: Linker, names: Names) -> Iterator[Case]:
    """Candidates of each mention."""
    single = [(mention, mention.query.text) for mention in mentions if mention.query and len(mention.query.parts) == 1]
    answers = linker.link([text for _, text in single], top_k=_CANDIDATES)
    rows = {code: row for row, code in enumerate(linker.dictionary.concept_ids)}
    documents: dict[str, list[tuple[str, int, int, bool]]] = {}
    for (mention, text), links in zip(single, answers, strict=True):
        if mention.document not in documents:
            documents[mention.document] = list(found_in(mention.document, names))
        own = {normalise(text, _PRESET), normalise(mention.text, _PRESET)}
        stop = mention.start + len(mention.text)
        there: tuple[set[int], set[int]] = set(), set()
        for name, start, end, is_longest in documents[mention.document]:
            if name not in own and (end <= mention.start or start >= stop):
                there[0].update(names[name])
                there[1].update(names[name] if is_longest else ())
        yield _case(mention, links, [rows[link.concept_id] for link in links], there)


def _case(mention: Mention, links: list[Link], rows: list[int], there: tuple[set[int], set[int]]) -> Case:
    assert mention.query is not None
    gold = mention.query.gold
    return (
        np.array([link.score for link in links]),
        np.array([not gold.isdisjoint(link.concept_id.split("|")) for link in links], bool),
        np.array([row in there[0] for row in rows], bool),
        np.array([row in there[1] for row in rows], bool),
    )


def accuracy(found: list[Case], column: int, bonus: float) -> float:
    """acc@1 with so large a bonus."""
    first = [
        bool(len(case[0])) and bool(case[1][np.argmax(np.round(case[0] + bonus * case[column], 6))]) for case in found
    ]
    return float(np.mean(first))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linker", type=Path, help="of the ontology alone")
    parser.add_argument("folder", type=Path, help="holds the corpus and BioSyn's queries")
    options = parser.parse_args()
    linker = Linker.open(options.linker)
    names = names_of(linker)
    parts = {}
    for split in ("train", "dev"):
        queries = read_queries(find_file(options.folder, split, queries=True))
        mentions = align(find_file(options.folder, split, queries=False), queries)
        parts[split] = list(cases(mentions, linker, names))
    print(f"{len(parts['train']):,} mentions to choose by, {len(parts['dev']):,} of the development part\n")
    print("| names that count | bonus | training | development |\n|---|---|---|---|")
    for label, column in (("any", 2), ("the longest", 3)):
        best = max(BONUSES, key=lambda bonus: accuracy(parts["train"], column, bonus))
        for bonus in BONUSES:
            figures = [f"{100 * accuracy(parts[split], column, bonus):.2f}" for split in ("train", "dev")]
            print(f"| {label} | {bonus:g}{' (chosen)' if bonus == best else ''} | {' | '.join(figures)} |")


if __name__ == "__main__":
    main()
