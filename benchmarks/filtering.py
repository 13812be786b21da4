"""What a filter costs and what is missed with it, where many names pass: a linker's search by vectors among these.

    python benchmarks/filtering.py LINKER --source MSH --source MONDO [--index approximate] > filtering.json

Names of the linker ask, by their own vectors: once such as do not pass, so that what is nearest of all is no answer,
and once any. What is found is compared with the products with all vectors that pass. ``--index`` builds another index
over the same vectors, in memory. Up to 65,536 names are compared exactly by every linker, so take sources with more.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from onoma.indexes import ApproximateIndex, SignBitIndex, VectorStore
from onoma.linking import Linker
from onoma.linking.searching import AllowedTexts, DenseSearch
from onoma.types import FloatArray, RowArray

K = 10
_AT_ONCE = 1 << 16
_ROUNDING = 1e-6


def best_scores(store: VectorStore, rows: RowArray, queries: FloatArray) -> FloatArray:
    """The ten highest products of each query with some of the vectors, in their order."""
    best = np.empty((len(queries), 0), np.float32)
    for start in range(0, len(rows), _AT_ONCE):
        both = np.concatenate([best, queries @ store.take(rows[start : start + _AT_ONCE]).T], axis=1)
        best = -np.sort(np.partition(-both, K - 1, axis=1)[:, :K], axis=1)
    return best


def measured(search: DenseSearch, store: VectorStore, rows: RowArray, own: RowArray) -> dict[str, Any]:
    """Time and share found, for the names ``own`` as mentions."""
    queries = store.take(own)
    search.nearest(queries[:1], K)  # the first waits for what the others use
    started = time.perf_counter()
    found = search.nearest(queries, K)[1]
    together = time.perf_counter()
    for query in queries[:100]:
        search.nearest(query[None], K)
    alone = time.perf_counter()
    is_found = found >= best_scores(store, rows, queries) - _ROUNDING
    return {
        "ms_each": round(1000 * (together - started) / len(own), 2),
        "ms_alone": round(1000 * (alone - together) / len(queries[:100]), 2),
        "recall_at_1": round(float(is_found[:, 0].mean()), 4),
        "recall_at_10": round(float(is_found.mean()), 4),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linker", type=Path)
    parser.add_argument("--source", action="append", required=True, help="that the names come from; may be repeated")
    parser.add_argument("--index", choices=["sign-bits", "approximate"], help="another than the linker's own")
    parser.add_argument("--n", type=int, default=1000, help="names that ask")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    linker = Linker.open(options.linker)
    store = linker.dense_search.vectors
    if not isinstance(store, VectorStore):
        parser.error("the vectors of this linker lie in a database")
    kinds: dict[str, type[SignBitIndex] | type[ApproximateIndex]] = {
        "sign-bits": SignBitIndex,
        "approximate": ApproximateIndex,
    }
    other = kinds[options.index].build(store) if options.index else None
    random = np.random.default_rng(options.seed)
    found: dict[str, Any] = {"names": len(store), "index": options.index or linker.manifest.config.get("index")}
    for source in options.source:
        chosen = linker.only(sources=source)
        texts = AllowedTexts.of(chosen.allowed_entries, chosen.dictionary)
        search = chosen.dense_search if other is None else DenseSearch(other, texts)
        assert texts.mask is not None  # a source was asked for
        rows, others = np.flatnonzero(texts.mask), np.flatnonzero(~texts.mask)
        found[source] = {
            "names": len(rows),
            "asked by names that do not pass": measured(search, store, rows, random.choice(others, options.n)),
            "asked by any": measured(search, store, rows, random.choice(len(store), options.n)),
        }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
