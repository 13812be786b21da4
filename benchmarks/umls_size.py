"""Search at the size of the UMLS: memory, time, recall and disk for vectors in lower precisions.

    python benchmarks/umls_size.py FOLDER --vectors 7400000 -o umls_size.json

The UMLS of 2020 has 14.8 million names, 7.4 million of them distinct; MedMentions' test set has 70,405 mentions.
Vectors are synthetic (see synthetic_vectors.py). For each precision one process builds a sign-bit index in FOLDER,
which measures its recall against exhaustive search in single precision on held-out queries, and a fresh one opens it,
answers some queries one by one and then all of them in batches.

Resident memory is what the system counts for the process: its own, and of mapped files the pages that it has looked at
and that are still in memory. FOLDER needs room for the vectors in single precision, too, while an index is built.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from onoma.indexes import build_index, open_index
from synthetic_vectors import NameVectors

K = 20
"""What a linker asks for, for five concepts."""
_BATCH = 1024
_ALONE = 200


def memory_mib() -> dict[str, float]:
    """Resident memory of this process now, of which its own and of files, and the most so far."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    names = {"resident": "VmRSS", "own": "RssAnon", "of_files": "RssFile", "peak": "VmHWM"}
    return {name: round(int(lines[field].split()[0]) / 1024, 1) for name, field in names.items()}


def build(folder: Path, vectors: int, sample: int, precision: str) -> dict[str, Any]:
    """Write the index."""
    source = NameVectors(vectors)
    started = time.perf_counter()
    record = build_index(folder, source.parts(), kind="sign-bits", precision=precision, queries=source.queries(sample))
    return {
        "build_s": round(time.perf_counter() - started, 1),
        "build_memory_mib": memory_mib(),
        "recall": record.recall.model_dump(),
        "agreement": record.agreement.model_dump(),
        "bytes": {file.name: file.stat().st_size for file in sorted(folder.iterdir())},
    }


def answer(folder: Path, vectors: int, n_queries: int) -> dict[str, Any]:
    """Open the index and search."""
    queries = NameVectors(vectors).queries(n_queries)
    before = memory_mib()
    started = time.perf_counter()
    index = open_index(folder)
    opened = time.perf_counter()
    index.search(queries[:1], k=K)
    first = time.perf_counter()
    alone = []
    for query in queries[1 : 1 + _ALONE]:
        asked = time.perf_counter()
        index.search(query[None], k=K)
        alone.append(1000 * (time.perf_counter() - asked))
    after_some = memory_mib()
    batched = time.perf_counter()
    most = 0.0
    for start in range(0, n_queries, _BATCH):
        index.search(queries[start : start + _BATCH], k=K)
        most = max(most, memory_mib()["resident"])
    seconds = time.perf_counter() - batched
    return {
        "open_ms": round(1000 * (opened - started), 1),
        "first_query_ms": round(1000 * (first - opened), 1),
        "one_query_ms": {name: round(float(np.quantile(alone, q)), 2) for name, q in (("median", 0.5), ("p95", 0.95))},
        "queries": n_queries,
        "seconds": round(seconds, 1),
        "queries_per_s": round(n_queries / seconds, 1),
        "memory_mib_before": before,
        "memory_mib_after_some": after_some,
        "memory_mib_after_all": memory_mib(),
        "most_resident_mib": most,
    }


def in_a_process(step: str, arguments: argparse.Namespace, folder: Path, precision: str) -> dict[str, Any]:
    """Run one step in a fresh process, so that its memory is its own."""
    command = [sys.executable, __file__, str(folder), "--step", step, "--precision", precision]
    command += ["--vectors", str(arguments.vectors), "--queries", str(arguments.queries)]
    command += ["--sample", str(arguments.sample)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| precision | on disk, GB | peak memory, MiB | its own | one query, ms (p95) | queries/s | all, s "
        "| recall@1 | recall@10 | build s (MiB) |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        one, memory = row["one_query_ms"], row["memory_mib_after_all"]
        gigabytes = sum(row["bytes"].values()) / 1e9
        lines.append(
            f"| {row['precision']} | {gigabytes:.2f} | {memory['peak']:.0f} | {memory['own']:.0f} "
            f"| {one['median']} ({one['p95']}) | {row['queries_per_s']} | {row['seconds']} "
            f"| {row['recall']['at_1']} | {row['recall']['at_10']} "
            f"| {row['build_s']} ({row['build_memory_mib']['peak']:.0f}) |"
        )
    return "\n".join(lines)


def main() -> None:
    """Build and search in each precision, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the indexes shall lie; what is made is removed at the end")
    parser.add_argument("--vectors", type=int, default=7_400_000)
    parser.add_argument("--queries", type=int, default=70_405)
    parser.add_argument("--sample", type=int, default=1000, help="queries that recall is measured on")
    parser.add_argument("--precision", nargs="+", default=["fp16", "int16", "int8"])
    parser.add_argument("--keep", action="store_true", help="leave the indexes")
    parser.add_argument("--step", choices=["build", "answer"], help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    if arguments.step == "build":
        print(json.dumps(build(arguments.folder, arguments.vectors, arguments.sample, arguments.precision[0])))
        return
    if arguments.step == "answer":
        print(json.dumps(answer(arguments.folder, arguments.vectors, arguments.queries)))
        return
    rows = []
    for precision in arguments.precision:
        place = arguments.folder / precision
        try:
            built = in_a_process("build", arguments, place, precision)
            print(f"{precision}: built in {built['build_s']} s, {built['recall']}", flush=True)
            rows.append({"precision": precision, **built, **in_a_process("answer", arguments, place, precision)})
        finally:
            if not arguments.keep:
                shutil.rmtree(place, ignore_errors=True)
    about = {
        "vectors": arguments.vectors,
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
        "processor": platform.processor() or platform.machine(),
    }
    print(json.dumps(about))
    print(table(rows))
    if arguments.output:
        arguments.output.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
