"""One linker, as a person and as a server see it: opening, the first mention, one mention, many at once, memory.

    python benchmarks/answering.py LINKER --mentions mentions.txt [--stages STAGES] [--source SOURCE] [-o out.json]

Mentions are lines of text; each is asked once, encoding included, the first ``--alone`` one by one and all others in
one call. Without ``--mentions`` names of the linker ask, evenly spaced, each with two letters exchanged, so that few
are found by look-up alone. Memory is what the system counts, watched all the while: the process' own (RssAnon), and
pages of mapped files that it has looked at (RssFile), which the system takes back when it needs room.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from memory import memory_mib, watched_memory
from onoma.linking import Linker


def misspelt(linker: Linker, n: int) -> list[str]:
    """Names of the linker with the letters at the middle exchanged."""
    texts = linker.dictionary.texts
    names = [texts[int(row)] for row in np.unique(np.linspace(0, len(texts) - 1, n).astype(int))]
    return [f"{name[: len(name) // 2]}{name[len(name) // 2 :][1::-1]}{name[len(name) // 2 + 2 :]}" for name in names]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linker", type=Path)
    parser.add_argument("--mentions", type=Path, help="one on each line")
    parser.add_argument("--n", type=int, default=4096, help="names that ask where no mentions are given")
    parser.add_argument("--alone", type=int, default=200, help="mentions that are asked one by one")
    parser.add_argument("--top-k", type=int, default=5)
    parser.add_argument("--stages", help="divided by commas; unset: those of the linker")
    parser.add_argument("--source", action="append", help="of names that may be an answer; may be repeated")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    before = memory_mib()
    with watched_memory() as most:
        started = time.perf_counter()
        linker = Linker.open(options.linker)
        opened = time.perf_counter()
        given = options.mentions
        mentions = misspelt(linker, options.n) if given is None else given.read_text(encoding="utf-8").splitlines()
        mentions = list(dict.fromkeys(filter(str.strip, mentions)))
        prepared = time.perf_counter()
        linker = linker.only(sources=options.source)
        ask = partial(linker.link, top_k=options.top_k, stages=options.stages and options.stages.split(","))
        ask(mentions[:1])
        first = time.perf_counter()
        alone = []
        for mention in mentions[1 : 1 + options.alone]:
            asked = time.perf_counter()
            ask([mention])
            alone.append(1000 * (time.perf_counter() - asked))
        others = mentions[1 + options.alone :]
        asked = time.perf_counter()
        ask(others)
        seconds = time.perf_counter() - asked
    quantiles = {name: round(float(np.quantile(alone, q)), 1) for name, q in (("median", 0.5), ("p95", 0.95))}
    found: dict[str, Any] = {
        "linker": {"concepts": linker.n_concepts, "texts": linker.n_texts, "stages": list(linker.stages)},
        "index": linker.manifest.config.get("index"),
        "mib_on_disk": round(sum(f.stat().st_size for f in options.linker.rglob("*") if f.is_file()) / 2**20),
        "open_ms": round(1000 * (opened - started)),
        "first_mention_ms": round(1000 * (first - prepared)),
        "one_mention_ms": quantiles,
        "mentions": len(others),
        "mentions_per_s": round(len(others) / seconds, 1),
        "before_mib": before,
        "most_mib": most,
        "cores": os.cpu_count(),
    }
    text = json.dumps(found, indent=1)
    print(text)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
