"""All indexes in one run against the reference's design: recall, queries per second, one query, memory, building.

    python benchmarks/search.py --vectors 1000000 -o search.json
    python benchmarks/search.py --real LINKER/vectors.npy

The reference multiplies a batch of queries with all vectors and sorts all scores (the released evaluation of SapBERT);
``argpartition`` instead of sorting is what a careful user would write, and what the ratios refer to. The vectors are
synthetic (see synthetic_vectors.py), or those of a file, a part of which then asks and is left out of the index. How
they lie is printed, so that the synthetic can be held against the real.

Recall is that of the ten best, and of the best, against exhaustive search in single precision (so the reference's is
1), over more queries than are timed; equals within 1e-6 count as right. The variants take turns in every repetition, so
that a busy machine slows all of them, and each repetition asks other queries; ratios are of medians. At its turn an
index first answers batches of other queries that are not timed (``--warm-up``), so that caches and mapped files are as
in a long job, and not as the variant before left them. (Of the reference, which goes through all vectors for every few
queries, these few.) One query is the median of many, one right after the other: after a pause, or once other work has
had the caches, it takes longer. Memory is what must be in memory for a search: vectors that are only looked at in part
stay on disk. The graph is left out where usearch is not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onoma.indexes import ExactIndex, Index, VectorStore, build_index, measure_recall, open_index
from onoma.indexes.scoring import best_rows
from onoma.indexes.sign_bits import centre_of, sign_bits
from onoma.types import FloatArray, RowArray
from synthetic_vectors import NameVectors

K = 10
QUERIES_ALONE = 50
"""One after the other, in each repetition."""
REFERENCE = "reference: matmul + argpartition"
_QUERIES_OF_A_PRODUCT = 64
"""So that the reference's matrix of scores stays within 256 MB for a million vectors."""


class Reference:
    """All scores, and then the best of them."""

    is_approximate = False

    def __init__(self, vectors: FloatArray, *, sort: bool) -> None:
        self._vectors, self._sort = vectors, sort
        self.width = int(vectors.shape[1])

    def __len__(self) -> int:
        return len(self._vectors)

    def search(self, queries: FloatArray, *, k: int = K) -> tuple[RowArray, FloatArray]:
        """As `Index.search`, but for ties."""
        rows = np.empty((len(queries), k), np.int64)
        best = np.empty((len(queries), k), np.float32)
        for start in range(0, len(queries), _QUERIES_OF_A_PRODUCT):
            scores = queries[start : start + _QUERIES_OF_A_PRODUCT] @ self._vectors.T
            found = np.argsort(-scores, axis=1)[:, :k] if self._sort else np.argpartition(scores, -k, axis=1)[:, -k:]
            own = np.take_along_axis(scores, found, 1)
            order = np.argsort(-own, axis=1)
            rows[start : start + len(found)] = np.take_along_axis(found, order, 1)
            best[start : start + len(found)] = np.take_along_axis(own, order, 1)
        return rows, best


class CountedBits:
    """Sign bits by the number of places in which query and row differ: the simpler way that was not taken."""

    is_approximate = False

    def __init__(self, vectors: VectorStore, *, candidates: int) -> None:
        self._vectors, self._candidates = vectors, candidates
        self._centre = centre_of(vectors)
        self._signs = np.concatenate([sign_bits(part, self._centre) for part in vectors.parts()])
        self.width = vectors.width

    def __len__(self) -> int:
        return len(self._vectors)

    def search(self, queries: FloatArray, *, k: int = K) -> tuple[RowArray, FloatArray]:
        """As `Index.search`."""
        import faiss

        _, nearest = faiss.knn_hamming(sign_bits(queries, self._centre), self._signs, self._candidates)
        found = [
            best_rows(self._vectors, query, np.sort(rows), k) for query, rows in zip(queries, nearest, strict=True)
        ]
        return np.stack([rows for rows, _ in found]), np.stack([scores for _, scores in found])


class Graph:
    """usearch's graph of neighbours, exactly re-scored: the approximate search that was not taken."""

    is_approximate = True

    def __init__(self, vectors: VectorStore, *, candidates: int) -> None:
        from usearch.index import Index as UsearchIndex

        self._vectors, self._candidates = vectors, candidates
        self.width = vectors.width
        self._graph = UsearchIndex(
            ndim=self.width, metric="ip", dtype="bf16", connectivity=16, expansion_add=128, enable_key_lookups=False
        )
        for part in vectors.parts():  # by one thread, as with several the order of insertion is left to chance
            self._graph.add(np.arange(len(self._graph), len(self._graph) + len(part)), part, threads=1)

    def __len__(self) -> int:
        return len(self._vectors)

    def search(self, queries: FloatArray, *, k: int = K) -> tuple[RowArray, FloatArray]:
        """As `Index.search`."""
        nearest = self._graph.search(queries, self._candidates)
        keys = np.atleast_2d(nearest.keys).astype(np.int64)
        found = [best_rows(self._vectors, query, np.sort(rows), k) for query, rows in zip(queries, keys, strict=True)]
        return np.stack([rows for rows, _ in found]), np.stack([scores for _, scores in found])


@dataclass
class Variant:
    """One line of the table."""

    name: str
    index: Index
    bytes_per_vector: float
    build_s: float


def variants(vectors: FloatArray, folder: Path, wanted: list[str]) -> list[Variant]:
    """All that can be built here and whose name holds one of the wanted words; the reference always."""
    width, store = int(vectors.shape[1]), VectorStore(vectors)
    bits, lists = -(-width // 8), width / 6 + 16
    digest = f"{len(vectors)}-{hashlib.sha256(vectors[::1000].tobytes()).hexdigest()[:12]}"

    def stored(kind: str, precision: str, candidates: int | None = None) -> Callable[[], Index]:
        def build() -> Index:
            place = folder / f"{kind}-{precision}-{candidates}-{digest}"
            if not (place / "index.json").exists():
                # Recall is measured below; here it would count as building.
                build_index(place, vectors, kind=kind, precision=precision, candidates=candidates, queries=vectors[:0])
            return open_index(place)

        return build

    lines: list[tuple[str, Callable[[], Index], float]] = [
        (REFERENCE, lambda: Reference(vectors, sort=False), 4 * width),
        ("reference: matmul + argsort", lambda: Reference(vectors, sort=True), 4 * width),
        ("exact fp32", stored("exact", "fp32"), 4 * width),
        ("exact fp16", stored("exact", "fp16"), 2 * width),
        ("exact int16", stored("exact", "int16"), 2 * width + 4),
        ("exact int8", stored("exact", "int8"), width + 4),
        ("sign bits fp32, 128 re-scored", stored("sign-bits", "fp32", 128), bits),
        ("sign bits fp32, 256 re-scored", stored("sign-bits", "fp32", 256), bits),
        ("sign bits fp32, 512 re-scored", stored("sign-bits", "fp32", 512), bits),
        ("sign bits fp16, 256 re-scored", stored("sign-bits", "fp16", 256), bits),
        ("sign bits int16, 256 re-scored", stored("sign-bits", "int16", 256), bits),
        ("sign bits int16, 1024 re-scored", stored("sign-bits", "int16", 1024), bits),
        ("sign bits int8, 256 re-scored", stored("sign-bits", "int8", 256), bits),
        ("sign bits int8, 1024 re-scored", stored("sign-bits", "int8", 1024), bits),
        ("counted bits, 256 re-scored", lambda: CountedBits(store, candidates=256), bits),
        ("counted bits, 1024 re-scored", lambda: CountedBits(store, candidates=1024), bits),
        ("inverted lists fp32", stored("approximate", "fp32"), lists),
        ("inverted lists int16", stored("approximate", "int16"), lists),
        ("inverted lists int16, 256 re-scored", stored("approximate", "int16", 256), lists),
        ("graph, 128 re-scored", lambda: Graph(store, candidates=128), 2 * width + 150),
        ("graph, 512 re-scored", lambda: Graph(store, candidates=512), 2 * width + 150),
    ]
    found = []
    for name, build, size in lines:
        if name != REFERENCE and wanted and not any(word in name for word in wanted):
            continue
        started = time.perf_counter()
        try:
            index = build()
        except ImportError as error:
            print(f"{name}: left out ({error})")
            continue
        seconds = time.perf_counter() - started
        found.append(Variant(name, index, size, seconds))
        print(f"{name}: built in {seconds:.1f} s", flush=True)
    return found


def measure(
    found: list[Variant],
    vectors: FloatArray,
    turns: Sequence[Sequence[FloatArray]],
    held_out: FloatArray,
) -> list[dict[str, Any]]:
    """One row per variant: times with the last batch of each turn, recall with the queries held out."""
    batch: dict[str, list[float]] = {variant.name: [] for variant in found}
    alone: dict[str, list[float]] = {variant.name: [] for variant in found}
    for variant in found:
        variant.index.search(turns[0][-1][:2], k=K)  # what is opened lazily
    for number, (*others, own) in enumerate(turns):
        for variant in found:
            for batch_before in others:
                is_reference = isinstance(variant.index, Reference)
                variant.index.search(batch_before[:_QUERIES_OF_A_PRODUCT] if is_reference else batch_before, k=K)
            started = time.perf_counter()
            variant.index.search(own, k=K)
            batch[variant.name].append(time.perf_counter() - started)
            for query in turns[number - 1][-1][-QUERIES_ALONE:]:
                started = time.perf_counter()
                variant.index.search(query[None], k=K)
                alone[variant.name].append(time.perf_counter() - started)
    store = VectorStore(vectors)
    rows = []
    for variant in found:
        is_reference = isinstance(variant.index, Reference)
        recall = measure_recall(variant.index, store, queries=held_out[:0] if is_reference else held_out)
        seconds = statistics.median(batch[variant.name])
        rows.append(
            {
                "variant": variant.name,
                "queries_per_s": round(len(turns[0][-1]) / seconds, 1),
                "times_reference": round(statistics.median(batch[REFERENCE]) / seconds, 1),
                "one_query_ms": round(1000 * statistics.median(alone[variant.name]), 2),
                "recall_at_1": recall.at_1,
                "recall_at_10": recall.at_10,
                "bytes_per_vector": round(variant.bytes_per_vector, 1),
                "build_s": round(variant.build_s, 1),
            }
        )
    return rows


def profile(vectors: FloatArray, queries: FloatArray) -> dict[str, Any]:
    """How the vectors lie: cosines of a query with any vector, and with its nearest ones."""
    some = queries[:200]
    _, best = ExactIndex(vectors).search(some, k=min(100, len(vectors)))
    every = vectors[:: max(1, len(vectors) // 2000)]

    def quantiles(values: FloatArray) -> list[float]:
        return [round(float(value), 2) for value in np.quantile(values, [0.05, 0.5, 0.95])]

    variances = np.linalg.eigvalsh(np.cov(vectors[:: max(1, len(vectors) // 20_000)].T))[::-1]
    return {
        "length_of_the_mean": round(float(np.linalg.norm(every.mean(axis=0))), 2),
        "any": quantiles(some @ every.T),
        "nearest": quantiles(best[:, 0]),
        "10th": quantiles(best[:, min(9, best.shape[1] - 1)]),
        "100th": quantiles(best[:, -1]),
        "variance_of_50_directions": round(float(variances[:50].sum() / variances.sum()), 2),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| index | queries/s in batch | x ref | one query, ms | recall@1 | recall@10 | bytes per vector | build s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(str(value) for value in row.values())} |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=1_000_000, help="how many synthetic vectors")
    parser.add_argument("--width", type=int, default=384, help="of the synthetic vectors")
    parser.add_argument("--real", type=Path, help="an .npy file of vectors to use instead")
    parser.add_argument("--queries", type=int, default=512, help="in a batch")
    parser.add_argument(
        "--recall-queries", type=int, default=2048, help="to measure recall with (with --real: those of the batch)"
    )
    parser.add_argument("--repeat", type=int, default=5, help="timed repetitions")
    parser.add_argument("--warm-up", type=int, default=2, help="batches of other queries before each timed one")
    parser.add_argument("--only", nargs="+", default=[], help="variants whose name holds one of these words")
    parser.add_argument(
        "--folder",
        type=Path,
        help="keep the indexes here, and open those that are here instead of building them (their 'build s' is that of "
        "opening; indexes of an earlier version of the code count as the same)",
    )
    parser.add_argument("-o", "--output", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()

    batches_of_a_turn = arguments.warm_up + 1
    n_batches = arguments.repeat * batches_of_a_turn
    n_asked = n_batches * arguments.queries
    if arguments.real:
        stored = np.load(arguments.real)
        if stored.dtype.kind != "f":
            parser.error(f"{arguments.real} holds {stored.dtype}: give vectors in fp32 or fp16, which need no scales")
        every: FloatArray = stored.astype(np.float32, copy=False)
        if len(every) < 2 * n_asked:
            parser.error(
                f"{arguments.real} holds {len(every):,} vectors, and {n_asked:,} of them would be queries: give fewer "
                "(--queries, --repeat, --warm-up), or a larger file"
            )
        asking = np.random.default_rng(0).choice(len(every), n_asked, replace=False)
        asked, vectors = every[asking], np.delete(every, asking, axis=0)
        held_out = asked
    else:
        source = NameVectors(arguments.vectors, width=arguments.width)
        vectors, asked = np.concatenate(list(source.parts())), source.queries(n_asked)
        held_out = source.queries(arguments.recall_queries)
    batches = [asked[number::n_batches] for number in range(n_batches)]  # each from all over
    about = {
        "vectors": list(vectors.shape),
        "synthetic": arguments.real is None,
        "queries": arguments.queries,
        "recall_queries": len(held_out),
        "repeat": arguments.repeat,
        "warm_up": arguments.warm_up,
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
        "numpy": np.__version__,
        "processor": platform.processor() or platform.machine(),
        "cosines_5_50_95_percent": profile(vectors, asked),
    }
    print(json.dumps(about))
    with contextlib.ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = variants(vectors, folder, arguments.only)
        turns = [batches[first : first + batches_of_a_turn] for first in range(0, n_batches, batches_of_a_turn)]
        rows = measure(found, vectors, turns, held_out)
    print(table(rows))
    if arguments.output:
        arguments.output.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
