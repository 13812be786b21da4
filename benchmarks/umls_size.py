"""Search among as many names as the UMLS has: memory, time, recall and disk for vectors in lower precisions.

    python benchmarks/umls_size.py FOLDER --vectors 7400000 -o umls_size.json
    python benchmarks/umls_size.py FOLDER --queries 10000 -o umls_size.json    # where an hour is all there is

The UMLS of 2020 has 14.8 million names, 7.4 million of them distinct; MedMentions' test set has 70,405 mentions.
Vectors are synthetic (see synthetic_vectors.py). They are made once, in single precision, and what exhaustive search in
these finds for some held-out queries. For each precision one process builds a sign-bit index in FOLDER, and a fresh one
opens it, answers some queries one by one and then all of them in slices; progress goes to standard error. Each of these
steps is done once: what was stopped goes on with the same command. Building includes what `onoma linker build` does
besides: choosing how many candidates it takes, and measuring recall with stored vectors that ask. The folder needs room
for the vectors in single precision and in each lower one: 26 GB.

Memory is what the system counts for the process, watched all the while: its own (RssAnon), and of mapped files the
pages that it has looked at and that are still in memory (RssFile). These the system takes back when it needs room.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from memory import memory_mib, watched_memory
from onoma.artifacts import write_text_atomically
from onoma.indexes import ExactIndex, VectorStore, build_index, open_index
from onoma.indexes.recall import AS_NEAR
from onoma.indexes.scoring import exact_scores
from synthetic_vectors import PART_ROWS, NameVectors

K = 20
"""What a linker asks for, for five concepts."""
_DEEPEST = 10
"""Nearest rows that recall is measured on."""
_SLICE = 1024
_ALONE = 200
_MAX_NORM = 1 + 1e-5


def progress(text: str) -> None:
    """To the terminal, while the output is JSON."""
    print(text, file=sys.stderr, flush=True)


def make_vectors(folder: Path, vectors: int) -> dict[str, Any]:
    """All vectors in single precision, by as many threads as there are processors."""
    source = NameVectors(vectors)
    file = folder / "vectors.npy"
    given = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(vectors, source.width))

    def fill(number: int) -> None:
        part = source.part(number)
        given[number * PART_ROWS : number * PART_ROWS + len(part)] = part

    started = time.perf_counter()
    with ThreadPoolExecutor(os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()) as threads:
        for done, _ in enumerate(threads.map(fill, range(source.n_parts)), 1):
            if done % 16 == 0 or done == source.n_parts:
                progress(f"vectors: {min(done * PART_ROWS, vectors):,} in {time.perf_counter() - started:.0f} s")
    given.flush()
    return {"seconds": round(time.perf_counter() - started, 1)}


def given_vectors(folder: Path) -> VectorStore:
    """What `make_vectors` made."""
    return VectorStore(np.load(folder / "vectors.npy", mmap_mode="r"), max_norm=_MAX_NORM)


def find_nearest(folder: Path, vectors: int, sample: int) -> dict[str, Any]:
    """Scores of the nearest rows of held-out queries by exhaustive search in single precision."""
    queries = NameVectors(vectors).queries(sample)
    started = time.perf_counter()
    _, scores = ExactIndex(given_vectors(folder)).search(queries, k=_DEEPEST)
    np.save(folder / "nearest.npy", scores)
    return {"seconds": round(time.perf_counter() - started, 1), "queries": sample}


def build(folder: Path, precision: str) -> dict[str, Any]:
    """Write the index, as `onoma linker build` does: the number of candidates is chosen by stored vectors that ask."""
    place = folder / precision
    shutil.rmtree(place, ignore_errors=True)
    given = np.load(folder / "vectors.npy", mmap_mode="r")
    started = time.perf_counter()
    with watched_memory() as most:
        record = build_index(place, given, kind="sign-bits", precision=precision)
    return {
        "candidates": record.candidates,
        "build_s": round(time.perf_counter() - started, 1),
        "build_most_mib": most,
        "agreement": record.agreement.model_dump(),
        "bytes": {file.name: file.stat().st_size for file in sorted(place.iterdir())},
    }


def answer(folder: Path, vectors: int, sample: int, n_queries: int, precision: str) -> dict[str, Any]:
    """Open the index and search."""
    queries = NameVectors(vectors).queries(n_queries)
    before = memory_mib()
    with watched_memory() as most:
        started = time.perf_counter()
        index = open_index(folder / precision)
        opened = time.perf_counter()
        index.search(queries[:1], k=K)
        first = time.perf_counter()
        alone = []
        for query in queries[1 : 1 + _ALONE]:
            asked = time.perf_counter()
            index.search(query[None], k=K)
            alone.append(1000 * (time.perf_counter() - asked))
        batched = time.perf_counter()
        for start in range(0, n_queries, _SLICE):
            index.search(queries[start : start + _SLICE], k=K)
            done, seconds = min(start + _SLICE, n_queries), time.perf_counter() - batched
            if start // _SLICE % 8 == 0 or done == n_queries:
                left = seconds / done * (n_queries - done)
                progress(f"{precision}: {done:,} queries in {seconds:.0f} s, {left:.0f} s to go; {memory_mib()} MiB")
        seconds = time.perf_counter() - batched
    return {
        "open_ms": round(1000 * (opened - started), 1),
        "first_query_ms": round(1000 * (first - opened), 1),
        "one_query_ms": {name: round(float(np.quantile(alone, q)), 2) for name, q in (("median", 0.5), ("p95", 0.95))},
        "queries": n_queries,
        "seconds": round(seconds, 1),
        "queries_per_s": round(n_queries / seconds, 1),
        "before_mib": before,
        "most_mib": most,
        "recall": recall(folder, index.search(NameVectors(vectors).queries(sample), k=_DEEPEST)[0], vectors, sample),
    }


def recall(folder: Path, found: np.ndarray[Any, Any], vectors: int, sample: int) -> dict[str, float]:
    """As `onoma.indexes.measure_recall` defines it."""
    given, nearest = given_vectors(folder), np.load(folder / "nearest.npy")
    queries = NameVectors(vectors).queries(sample)
    true = np.stack([exact_scores(given, query, rows) for query, rows in zip(queries, found, strict=True)])
    return {
        "at_1": round(float(np.mean(true[:, 0] >= nearest[:, 0] - AS_NEAR)), 4),
        "at_10": round(float(np.mean(true >= nearest[:, -1:] - AS_NEAR)), 4),
    }


def once(step: str, arguments: argparse.Namespace, precision: str = "fp32") -> dict[str, Any]:
    """Run a step in a fresh process, so that its memory is its own; if it was done before, what it said then."""
    sizes = {"vectors": arguments.vectors, "sample": arguments.sample, "queries": arguments.queries}
    needs = {"make": ["vectors"], "nearest": ["vectors", "sample"], "build": ["vectors"], "answer": list(sizes)}[step]
    asked = {name: sizes[name] for name in needs}
    file = arguments.folder / f"{step}-{precision}.json"
    if file.exists():
        before: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if before["asked"] == asked:
            progress(f"{step} {precision}: done before")
            return dict(before["found"])
    command = [sys.executable, __file__, str(arguments.folder), "--step", step, "--precision", precision]
    for name, value in sizes.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{step} {precision} failed; the same command goes on from here")
    found: dict[str, Any] = json.loads(done.stdout)
    write_text_atomically(file, json.dumps({"asked": asked, "found": found}) + "\n")
    return found


def run_step(arguments: argparse.Namespace) -> dict[str, Any]:
    """What a process of `once` does."""
    folder, precision = arguments.folder, arguments.precision[0]
    if arguments.step == "make":
        return make_vectors(folder, arguments.vectors)
    if arguments.step == "nearest":
        return find_nearest(folder, arguments.vectors, arguments.sample)
    if arguments.step == "build":
        return build(folder, precision)
    return answer(folder, arguments.vectors, arguments.sample, arguments.queries, precision)


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| precision | candidates | on disk, GB | own memory, MiB (of files) | one query, ms (p95) "
        "| queries/s | all, s | recall@1 | recall@10 | build s (own MiB, of files) |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        one, most, build_most = row["one_query_ms"], row["most_mib"], row["build_most_mib"]
        gigabytes = sum(row["bytes"].values()) / 1e9
        lines.append(
            f"| {row['precision']} | {row['candidates']} | {gigabytes:.2f} "
            f"| {most['own']:.0f} ({most['of_files']:.0f}) "
            f"| {one['median']} ({one['p95']}) | {row['queries_per_s']} | {row['seconds']} "
            f"| {row['recall']['at_1']} | {row['recall']['at_10']} "
            f"| {row['build_s']} ({build_most['own']:.0f}, {build_most['of_files']:.0f}) |"
        )
    return "\n".join(lines)


def main() -> None:
    """Build and search in each precision, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where all lies meanwhile; what is made is removed at the end")
    parser.add_argument("--vectors", type=int, default=7_400_000, help="how many there are")
    parser.add_argument("--queries", type=int, default=70_405, help="to be answered in each precision")
    parser.add_argument("--sample", type=int, default=1000, help="queries that recall is measured on")
    parser.add_argument("--precision", nargs="+", default=["fp16", "int16", "int8"])
    parser.add_argument("--keep", action="store_true", help="leave vectors, indexes and what each step said")
    parser.add_argument("--step", choices=["make", "nearest", "build", "answer"], help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(run_step(arguments)))
        return
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    about: dict[str, Any] = {
        "vectors": arguments.vectors,
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
        "processor": platform.processor() or platform.machine(),
        "made": once("make", arguments),
        "nearest": once("nearest", arguments),
    }
    rows = []
    for precision in arguments.precision:
        built = once("build", arguments, precision)
        rows.append({"precision": precision, **built, **once("answer", arguments, precision)})
        progress(table(rows[-1:]))
    print(json.dumps(about))
    print(table(rows))
    if arguments.output:
        arguments.output.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    if not arguments.keep:
        for precision in arguments.precision:
            shutil.rmtree(folder / precision)
        for file in [*folder.glob("*-*.json"), folder / "vectors.npy", folder / "nearest.npy"]:
            file.unlink()


if __name__ == "__main__":
    main()
