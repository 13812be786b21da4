"""What each stage of a linker is worth: the ablation table, on the development queries of a benchmark.

    python benchmarks/stages.py LINKER --task ncbi-disease --data FOLDER [--split dev] [--tune FOLDER/train_queries.txt]
        [-o stages.json]

Look-up and searches are measured in every combination that the linker has; what orders their candidates (prior,
reranker) behind exact look-up alone. Where two searches are fused each way to do so is measured: reciprocal ranks; the
weights in the linker's folder; and, with ``--tune``, weights learned on other annotated mentions (cross-validation is
not needed then: what is measured was not learned from). The linker stays as it is: a copy that shares its files is
tuned. The stage "prior" has the weight in the linker's folder, which is one of cosines: it is left out where reciprocal
ranks are fused. Of concepts that are equally good the more frequent comes first in all rows, if the linker has counts.

Columns: acc@1, acc@5 with the benchmark's own rules for linkers; what they are compared with dense search alone (the
mentions that became right, and that became wrong); milliseconds per query, each query once, in one call.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from onoma.benchmarks import get_task, own_task, run_benchmark
from onoma.files.reading import Reading
from onoma.linking import Linker, LinkerSettings, tune_linker
from onoma.linking.settings import SEARCHES, Stage, ordered_stages
from onoma.pairs import read_mentions


def combinations(linker: Linker, learned: LinkerSettings | None) -> Iterator[tuple[str, LinkerSettings]]:
    """What to measure: a name and settings for each; dense search alone first, if there is any."""
    bare = linker.settings.replaced(calibration=None, calibrated_stages=(), no_concept_below=None)
    there = [stage for stage in SEARCHES if stage in linker.stages]
    searches = [chosen for n in range(1, len(there) + 1) for chosen in itertools.combinations(there, n)]
    last: list[tuple[Stage, ...]] = [(stage,) for stage in ("prior", "rerank") if stage in linker.stages]
    ends = [*last, *([("prior", "rerank")] if len(last) > 1 else [])]
    look_ups: list[tuple[Stage, ...]] = [(), ("exact",), ("exact", "variants"), ("exact", "loose")]
    chosen_stages = [
        *((*look_up, *search) for search, look_up in itertools.product(searches, look_ups)),
        *look_ups[1:],
        *(("exact", *search, *end) for end, search in itertools.product(ends, searches)),
    ]
    for stages in map(ordered_stages, chosen_stages):
        ways: dict[str, dict[Stage, float] | None] = {"": None}
        if all(search in stages for search in SEARCHES):
            ways = {} if "prior" in stages else {"reciprocal ranks": None}
            if bare.weights is not None:
                ways["own weights"] = bare.weights
            if learned is not None and learned.weights is not None:
                ways["weights learned"] = learned.weights
        for how, weights in ways.items():
            yield "+".join(stages) + (f" ({how})" if how else ""), bare.replaced(stages=stages, weights=weights)


def learn(folder: Path, mentions: Path) -> LinkerSettings:
    """Settings of a tuned copy; the copy's files are links to the linker's own."""
    with tempfile.TemporaryDirectory(dir=folder.resolve().parent) as aside:
        copy = Path(aside) / "linker"
        shutil.copytree(folder, copy, copy_function=os.link)
        tune_linker(
            copy,
            read_mentions(mentions, Reading(on_error="skip")),
            stages=["exact", *SEARCHES],
            calibrate=False,
        )
        return Linker.open(copy).settings


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linker", type=Path)
    parser.add_argument("--task", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--split", help="unset: dev; of task own there is one")
    parser.add_argument("--tune", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    linker = Linker.open(asked.linker)
    split = asked.split or (None if asked.task == "own" else "dev")
    task = own_task() if asked.task == "own" else get_task(asked.task)
    learned = None if asked.tune is None else learn(asked.linker, asked.tune)
    rows: list[dict[str, Any]] = []
    first: pl.Series | None = None
    print(f"{'stages':58} {'acc@1':>7} {'acc@5':>7} {'won':>5} {'lost':>5} {'ms':>7}")
    for name, settings in combinations(linker, learned):
        with tempfile.TemporaryDirectory() as aside:
            started = time.perf_counter()
            tuned = linker.tuned(settings)
            result = run_benchmark(task, asked.data, linker=tuned, split=split, out=Path(aside) / "r")
            seconds = time.perf_counter() - started
            table = pl.read_parquet(Path(aside) / "r" / "predictions.parquet").filter(~pl.col("no_concept"))
        right = table.unique("query").sort("query")["query_rank"].eq(1).fill_null(False)
        first = right if first is None else first
        rows.append(
            {
                "stages": name,
                "acc@1": result.accuracy[1].value,
                "acc@5": result.accuracy[5].value,
                "won": int((right & ~first).sum()),
                "lost": int((first & ~right).sum()),
                "ms": 1000 * seconds / result.n_queries,
                "weights": settings.weights,
            }
        )
        print(_line(rows[-1]), flush=True)
    if asked.output is not None:
        asked.output.write_text(
            json.dumps({"task": asked.task, "split": task.split(split), "rows": rows}, indent=1) + "\n"
        )


def _line(row: dict[str, Any]) -> str:
    shares = f"{100 * row['acc@1']:7.2f} {100 * row['acc@5']:7.2f}"
    return f"{row['stages']:58} {shares} {row['won']:5} {row['lost']:5} {row['ms']:7.2f}"


if __name__ == "__main__":
    main()
