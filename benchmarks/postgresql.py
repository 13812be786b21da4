"""PostgreSQL with pgvector against exhaustive search in this process: time to build, size, recall, time to search.

    python benchmarks/postgresql.py                             # 50,000 made names, a server of its own
    python benchmarks/postgresql.py --vectors vectors.npy --database postgresql://me@host/names

Without ``--database`` it starts a server in a temporary folder and stops it again (see `postgres_server`). With it, the
table ``onoma_benchmark`` is made there, and dropped at the end.

Queries are held-out names (``--vectors``: every n-th vector, left out of the table). Recall is against exhaustive
search of the vectors in single precision (`onoma.indexes.recall`). Times of many queries are of all in one call, those
of one query the median of single calls.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import psycopg
from rich.console import Console
from rich.table import Table

from onoma.indexes import ExactIndex, Index, VectorStore
from onoma.indexes.pgvector import PgVectorIndex
from onoma.indexes.recall import measure_recall
from onoma.types import FloatArray
from postgres_server import private_server
from synthetic_vectors import NameVectors

TABLE = "onoma_benchmark"
CANDIDATES = (80, 128, 256, 512)
SINGLE_QUERIES = 50


@dataclass(frozen=True)
class Measured:
    """One line of the table."""

    index: str
    build_s: float | None
    size_mb: float
    recall_at_1: float
    recall_at_10: float
    queries_per_s: float
    one_query_ms: float


def main() -> None:
    """Measure, and print a table."""
    options = parse()
    vectors, queries = made_or_read(options)
    with contextlib.ExitStack() as stack:
        memory = {"shared_buffers": f"{options.memory // 2}MB", "maintenance_work_mem": f"{options.memory}MB"}
        string = options.database or stack.enter_context(private_server(memory))
        try:
            lines = list(measure(string, vectors, queries))
            (version,) = one(string, "SELECT version()")
            (extension,) = one(string, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        finally:
            one(string, f"DROP TABLE IF EXISTS {TABLE}")
    title = f"{len(vectors):,} vectors of width {vectors.shape[1]}, {len(queries):,} queries, k = 10"
    table = Table("index", "built in s", "MB", "recall@1", "recall@10", "queries/s", "one query, ms", title=title)
    for line in lines:
        table.add_row(
            line.index,
            "" if line.build_s is None else f"{line.build_s:.1f}",
            f"{line.size_mb:.0f}",
            f"{line.recall_at_1:.4f}",
            f"{line.recall_at_10:.4f}",
            f"{line.queries_per_s:,.0f}",
            f"{line.one_query_ms:.2f}",
        )
    console = Console(width=100)
    console.print(table)
    console.print(f"{str(version).partition(' on ')[0]}, pgvector {extension}; {os.cpu_count()} cores", highlight=False)
    if options.output:
        about = {"n": len(vectors), "width": vectors.shape[1], "postgresql": version, "pgvector": extension}
        about |= {"machine": platform.machine(), "cores": os.cpu_count()}
        options.output.write_text(json.dumps({**about, "lines": [asdict(line) for line in lines]}, indent=1) + "\n")


def measure(string: str, vectors: FloatArray, queries: FloatArray) -> Iterator[Measured]:
    """Exhaustive search here, then PostgreSQL in both precisions, without and with a graph."""
    store = VectorStore(vectors)
    yield line("exact, in this process", ExactIndex(store), store, queries, size=store.n_bytes)
    precisions: tuple[Literal["fp32", "fp16"], ...] = ("fp32", "fp16")
    for precision in precisions:
        for approximate in (None, "hnsw"):
            started = time.perf_counter()
            PgVectorIndex.build(
                string,
                TABLE,
                store,
                precision=precision,
                approximate=approximate,
                queries=queries[:0],
                overwrite=True,
            ).close()
            seconds = time.perf_counter() - started
            (size,) = one(string, f"SELECT pg_total_relation_size('{TABLE}')")
            for candidates in CANDIDATES if approximate else (None,):
                name = f"pgvector {precision}, {f'HNSW {candidates}' if candidates else 'exact'}"
                with PgVectorIndex.open(string, TABLE, candidates=candidates) as index:
                    yield line(name, index, store, queries, size=int(str(size)), build_s=seconds)


def line(
    name: str, index: Index, vectors: VectorStore, queries: FloatArray, *, size: int, build_s: float | None = None
) -> Measured:
    """Time and recall of one index."""
    index.search(queries[:SINGLE_QUERIES], k=10)  # what is read for the first time comes from the disk
    started = time.perf_counter()
    index.search(queries, k=10)
    seconds = time.perf_counter() - started
    singles = []
    for query in queries[:SINGLE_QUERIES]:
        started = time.perf_counter()
        index.search(query[None], k=10)
        singles.append(1000 * (time.perf_counter() - started))
    recall = measure_recall(index, vectors, queries=queries)
    return Measured(
        name, build_s, size / 1e6, recall.at_1, recall.at_10, len(queries) / seconds, statistics.median(singles)
    )


def one(string: str, statement: str) -> tuple[object, ...]:
    """The first row that a statement gives."""
    with psycopg.connect(string, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return (cursor.fetchone() or ()) if cursor.description else ()


def made_or_read(options: argparse.Namespace) -> tuple[FloatArray, FloatArray]:
    """Vectors and queries."""
    if options.vectors is None:
        source = NameVectors(options.names, width=options.width)
        return np.concatenate(list(source.parts())), source.queries(options.queries)
    given = np.load(options.vectors).astype(np.float32, copy=False)
    asking = np.zeros(len(given), bool)
    asking[np.linspace(0, len(given) - 1, options.queries).astype(int)] = True
    return given[~asking], given[asking]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--database", help="connection string of a database with pgvector; unset: a private server")
    parser.add_argument("--vectors", type=Path, help=".npy file of vectors; unset: they are made")
    parser.add_argument("--names", type=int, default=50_000, help="how many vectors are made (50000)")
    parser.add_argument("--width", type=int, default=384, help="of these (384)")
    parser.add_argument("--queries", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--memory", type=int, default=1024, help="MB in which a private server builds a graph (1024)")
    parser.add_argument("-o", "--output", type=Path, help="write the figures as JSON too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
