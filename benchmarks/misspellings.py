"""How often a linker finds a concept by one of its names that is misspelt, and what ``--spelling`` does for that.

    python benchmarks/misspellings.py LINKER [--names 3000] [--seed 0]

Of names drawn at random, one word of five letters or more gets one letter too many, too few, wrong, or swapped with
the next; never the first letter. The name as it was stays among the linker's. A second row takes the names as they were
from a linker that does not have them: what corrections spoil where words are right and unknown. Both are kinder than
what people write (for that see ``benchmarks/enriching.py``). The last line says what corrections cost.
"""

from __future__ import annotations

import argparse
import random
import string
import time
from collections.abc import Sequence

import numpy as np

from memory import peak_mib
from onoma.linking import Linker, Preparation

SHORTEST = 5


def misspelt(name: str, draw: random.Random) -> str | None:
    """The name with one letter of one word wrong; none if no word is long enough, or it is the same by chance."""
    words = name.split(" ")
    places = [place for place, word in enumerate(words) if len(word) >= SHORTEST and word.isalpha()]
    if not places:
        return None
    place = draw.choice(places)
    word, letter = words[place], draw.choice(string.ascii_lowercase)
    at = draw.randrange(1, len(word))
    words[place] = draw.choice(
        [
            word[:at] + letter + word[at:],
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :],
        ]
    )
    changed = " ".join(words)
    return None if changed == name else changed


def found_first(linker: Linker, mentions: Sequence[str], gold: Sequence[set[str]]) -> float:
    """Share of the mentions whose first answer has the name."""
    answers = linker.link(mentions, top_k=1)
    return sum(bool(links) and links[0].concept_id in ids for links, ids in zip(answers, gold, strict=True)) / len(gold)


def main() -> None:
    """Draw, misspell, link, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linker")
    parser.add_argument("--names", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    linker, draw = Linker.open(given.linker), random.Random(given.seed)
    started, before = time.perf_counter(), peak_mib()
    spelling = linker.preparing(Preparation(spelling=True))
    spelling.prepare(["a"])
    counting, counting_mib = time.perf_counter() - started, peak_mib() - before
    texts, drawn = linker.dictionary.texts, list[tuple[int, str]]()
    for row in draw.sample(range(len(texts)), len(texts)):
        if len(drawn) == given.names:
            break
        changed = misspelt(texts[row], draw)
        if changed is not None:
            drawn.append((row, changed))
    started = time.perf_counter()
    spelling.prepare([changed for _, changed in drawn])
    reading = time.perf_counter() - started
    right = [texts[row] for row, _ in drawn]
    gold = [{link.concept_id for link in links} for links in linker.exact_matcher().link(right, top_k=1000)]
    rows = [row for row, _ in drawn]
    entries = np.concatenate([np.arange(*linker.dictionary.entry_offsets[row : row + 2]) for row in rows])
    hidden = linker.without(linker.dictionary.entry_name_rows[entries])
    print(f"{len(drawn):,} names of {linker.n_texts:,}; stages {', '.join(linker.settings.stages)}; right at once:")
    for label, asked, mentions in (
        ("misspelt", linker, [changed for _, changed in drawn]),
        ("as they were, unknown to the linker", hidden, right),
    ):
        correcting = asked.preparing(Preparation(spelling=True))
        plain, corrected = found_first(asked, mentions, gold), found_first(correcting, mentions, gold)
        n_changed = sum(mention.is_changed for mention in correcting.prepare(mentions))
        print(f"  {label:36}{100 * plain:6.1f} %   with --spelling {100 * corrected:6.1f} % ({n_changed:,} changed)")
    print(
        f"Words of the names made ready, once: {counting:.1f} s, {counting_mib:.0f} MiB; then "
        f"{1000 * reading / len(drawn):.2f} ms for each misspelt name."
    )


if __name__ == "__main__":
    main()
