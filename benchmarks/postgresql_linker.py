"""One linker with its vectors in files and in PostgreSQL: are the answers the same, and how long do they take?

    python benchmarks/postgresql_linker.py LINKER --terminology DIR

LINKER has its vectors in files, and was built of the terminology. Linkers of the same names and the same vectors
(copied, not encoded again) are built in a temporary folder, with their tables on a server of its own, or in
``--database``; they are dropped at the end. Mentions are names with a letter left out, or the lines of ``--mentions``.
"Same first" is the share of mentions with the same first concept as the linker in files, "same" that with the same five
in the same order.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from onoma.indexes.pgvector_replacing import replacing_tables
from onoma.indexes.records import TableKind
from onoma.indexes.vector_store import VectorPrecision
from onoma.linking import Linker, build_linker
from onoma.linking.known_vectors import KnownVectors
from onoma.linking.settings import SEARCHES
from postgres_server import private_server

INDEXES: tuple[tuple[TableKind, VectorPrecision], ...] = (
    ("pgvector", "fp32"),
    ("pgvector", "fp16"),
    ("pgvector-hnsw", "fp32"),
    ("pgvector-hnsw", "fp16"),
)


def main() -> None:
    """Build, link, compare, and print a table."""
    options = parse()
    linker = Linker.open(options.linker)
    mentions = options.mentions.read_text().splitlines() if options.mentions else misspelt(linker, options.n)
    searches = tuple(str(stage) for stage in linker.stages if stage in SEARCHES)
    table = Table(
        *("vectors", "built in s", "stages", "mentions/s", "same first", "same"),
        title=f"{linker.n_texts:,} texts, {len(mentions):,} mentions, top 5",
    )
    expected: dict[tuple[str, ...], list[list[str]]] = {}
    for stages in dict.fromkeys([("dense",), searches]):
        expected[stages], seconds = linked(linker, mentions, stages)
        table.add_row("in files", "", " ".join(stages), f"{len(mentions) / seconds:,.0f}")
    with contextlib.ExitStack() as stack:
        memory = {"shared_buffers": f"{options.memory // 2}MB", "maintenance_work_mem": f"{options.memory}MB"}
        database = options.database or stack.enter_context(private_server(memory))
        for index, precision in INDEXES:
            with built(options, linker, database, index, precision) as (other, build_s):
                for stages, answers in expected.items():
                    found, seconds = linked(other, mentions, stages)
                    pairs = list(zip(found, answers, strict=True))
                    table.add_row(
                        *(f"{index} {precision}", f"{build_s:.1f}", " ".join(stages)),
                        f"{len(mentions) / seconds:,.0f}",
                        f"{np.mean([ours[:1] == theirs[:1] for ours, theirs in pairs]):.4f}",
                        f"{np.mean([ours == theirs for ours, theirs in pairs]):.4f}",
                    )
    Console(width=110).print(table)
    print(f"{os.cpu_count()} cores")


@contextlib.contextmanager
def built(
    options: argparse.Namespace, linker: Linker, database: str, index: TableKind, precision: VectorPrecision
) -> Iterator[tuple[Linker, float]]:
    """The same linker over PostgreSQL, but for prior and reranker, and the seconds that building it took.

    It is gone after the block.
    """
    encoder = KnownVectors(
        linker.path, linker.dictionary.texts, written_with=linker.encoder, encodes_with=linker.encoder
    )
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        other = build_linker(
            options.terminology,
            encoder,
            Path(folder) / "linker",
            normalisation=linker.normalisation,
            index=index,
            vectors=precision,
            sparse="sparse" in linker.stages,
            database=database,
        )
        seconds = time.perf_counter() - started
        with replacing_tables(Path(folder) / "linker", database):  # by nothing
            yield other.tuned(linker.settings.of_first_stages()), seconds


def linked(linker: Linker, mentions: Sequence[str], stages: Sequence[str]) -> tuple[list[list[str]], float]:
    """Codes of each mention's concepts, and the seconds they took."""
    linker.link(mentions[:5], stages=stages)  # what is read for the first time comes from the disk
    started = time.perf_counter()
    found = linker.link(mentions, stages=stages)
    seconds = time.perf_counter() - started
    return [[link.concept_id for link in links] for links in found], seconds


def misspelt(linker: Linker, n: int) -> list[str]:
    """Names, evenly spaced, without one of their letters."""
    rows = np.unique(np.linspace(0, linker.n_texts - 1, n).astype(int)).tolist()
    texts = [linker.dictionary.texts[row] for row in rows]
    return [text[: len(text) // 2] + text[len(text) // 2 + 1 :] for text in texts]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("linker", type=Path)
    parser.add_argument("--terminology", type=Path, required=True, help="what it was built of")
    parser.add_argument("--database", help="connection string of a database with pgvector; unset: a private server")
    parser.add_argument("--mentions", type=Path, help="one on each line")
    parser.add_argument("-n", type=int, default=500, help="how many are made (500)")
    parser.add_argument("--memory", type=int, default=1024, help="MB in which a private server builds a graph (1024)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
