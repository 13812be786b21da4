"""What it costs to compare vectors with their checksums: an index with and without them, in turn.

    python benchmarks/vector_checksums.py FOLDER --vectors 1000000

Vectors are synthetic (see synthetic_vectors.py). Each turn is a fresh process that opens the index, answers one query
(which reads what is read whole), then others one by one, then a batch twice: the first time it meets vectors that it
has not seen. Last, what other sums of the same vectors would cost. FOLDER needs 5 KB for each vector, and is left.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np

from onoma.artifacts import sha256_file
from onoma.indexes import build_index, open_index
from onoma.indexes.row_sums import SUMS_FILE, row_sums
from synthetic_vectors import NameVectors

INDEXES = (("sign-bits", "fp16"), ("sign-bits", "int8"), ("exact", "fp32"))
READ_WHOLE = "signs.npy"
BATCH = 1024
_QUERIES = "queries.npy"


def turn(place: Path, *, checked: bool) -> dict[str, float]:
    """Milliseconds of one process."""
    queries = np.load(place.parent / _QUERIES)
    signs = place / READ_WHOLE
    checksums = json.loads((place.parent / f"{place.name}.json").read_text()) if checked and signs.exists() else None

    def timed(start: int, stop: int) -> float:
        started = time.perf_counter()
        index.search(queries[start:stop], k=10)
        return 1000 * (time.perf_counter() - started)

    index = open_index(place, checksums=checksums)
    first = timed(0, 1)
    one = statistics.median(timed(at, at + 1) for at in range(1, 65))
    return {"first": first, "one": one, "batch": timed(-BATCH, len(queries)), "again": timed(-BATCH, len(queries))}


def make(folder: Path, n_vectors: int) -> None:
    """The indexes, and of each a twin without sums that shares its other files."""
    vectors = NameVectors(n_vectors)
    np.save(folder / _QUERIES, vectors.queries(2 * BATCH))
    for kind, precision in INDEXES:
        place = folder / f"{kind}-{precision}"
        candidates = 256 if kind == "sign-bits" else None
        build_index(place, vectors.parts(), kind=kind, precision=precision, candidates=candidates)
        if (place / READ_WHOLE).exists():
            checksum = {READ_WHOLE: sha256_file(place / READ_WHOLE)}
            (folder / f"{place.name}.json").write_text(json.dumps(checksum), encoding="utf-8")
        twin = folder / f"{place.name}-plain"
        twin.mkdir()
        for file in place.iterdir():
            if file.name != SUMS_FILE:
                os.link(file, twin / file.name)


def main() -> None:
    """Parse, build what is missing, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the indexes lie, or are built")
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3, help="turns of each")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.turn:
        name, checked = given.turn.split(":")
        print(json.dumps(turn(given.folder / name, checked=checked == "1")))
        return
    if not given.folder.exists():
        given.folder.mkdir(parents=True)
        make(given.folder, given.vectors)
    print("milliseconds, with and without checksums: least and most of the turns")
    for kind, precision in INDEXES:
        found: dict[bool, list[dict[str, float]]] = {True: [], False: []}
        for _ in range(given.repeat):
            for checked, turns in found.items():
                name = f"{kind}-{precision}" + ("" if checked else "-plain")
                command = [sys.executable, __file__, str(given.folder), "--turn", f"{name}:{int(checked)}"]
                turns.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(f"{kind} {precision}", end="")
        for what in ("first", "one", "batch", "again"):
            ranges = [(min(one[what] for one in found[c]), max(one[what] for one in found[c])) for c in (True, False)]
            print(f"  {what} " + ", ".join(f"{low:.3g}-{high:.3g}" for low, high in ranges), end="")
        print()
    values = NameVectors(1 << 16).part(0)
    for name, summed in (("sums", row_sums), ("CRC-32", lambda rows: [zlib.crc32(row) for row in rows])):
        seconds = []
        for _ in range(5):
            started = time.perf_counter()
            summed(values)
            seconds.append(time.perf_counter() - started)
        print(f"{name}: {1e6 * statistics.median(seconds) / len(values):.2g} us for a vector of 384 numbers, fp32")


if __name__ == "__main__":
    main()
