"""Fine-tuning on AskAPatient, fold by fold: a small encoder trained on a fold's mentions, measured on the rest.

    python benchmarks/fine_tuning.py OUT --data DIR --split validation --folds 0 1     # to choose settings
    python benchmarks/fine_tuning.py OUT --data DIR --split test                       # to report, once

Trains on the training part of each fold, every different mention once, paired with the one name of its concept, and
measures on the fold's validation or test part, each mention as often as it occurs:

* names: the published protocol; the dictionary is one name for each of the 1,036 concepts;
* names and mentions: a linker whose concepts have the training mentions as further names; concepts are ranked.

Both are measured before and after training. Two thirds of a fold's test mentions are spelt like one of its training
mentions. A fold that is done is not done again: the same command goes on where it was stopped. OUT gets
``fine_tuning.json`` and ``fine_tuning.md``.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from rich.progress import track
from tokenizers import Tokenizer

from onoma.artifacts import write_text_atomically
from onoma.benchmarks import get_task, run_benchmark
from onoma.benchmarks.askapatient import N_FOLDS, as_queries, concept_names, fold_file, read_fold
from onoma.benchmarks.biosyn import DictionaryLine
from onoma.benchmarks.tasks import BenchmarkTask
from onoma.encoders import Encoder, locate_tokenizer, open_encoder
from onoma.encoders.precision import has_native_bf16
from onoma.linking import build_linker
from onoma.pairs import PairSet, build_mention_pairs
from onoma.terminology import Terminology, import_terminology
from onoma.training.config import load_recipe
from onoma.training.run import train_on_pairs

SETTINGS = {
    "base": "onoma-mini",
    "batch_pairs": "128",
    "loss": "nca",
    "mining": "all",
    "learning_rate": "3e-4",
    "schedule": "linear",
    "warmup_steps": "10",
    "dropout": "0.1",
    "epochs": "8",
}
"""Between two learning rates, 2e-4 and 5e-4, that did equally well on fold 0's validation part; epochs by time."""
Rows = list[tuple[str, str, str]]
Scores = dict[str, tuple[float, float]]


def task_of(names: list[DictionaryLine], measured: Rows, split: str) -> BenchmarkTask:
    """One part of one fold, by the published protocol."""
    queries = as_queries(measured)
    return replace(
        get_task("askapatient"),
        splits=(split,),
        queries=lambda folder, split: (queries, []),
        dictionary=lambda folder, split: (names, []),
    )


def terminology_of(names: list[DictionaryLine], mentions: Rows, out: Path) -> Terminology:
    """The concepts with their name, and with the mentions as further names."""
    table = out.with_suffix(".csv")
    lines = dict.fromkeys(
        [*((line.ids[0], line.name) for line in names), *((code, text) for code, _, text in mentions)]
    )
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "name"))
        writer.writerows(lines)
    import_terminology("table", table, out, options={"id": "id", "name": "name"})
    return Terminology.open(out)


def pairs_of(terminology: Terminology, training: Rows, tokenizer: Tokenizer, out: Path) -> PairSet:
    """The different mentions with the names of their concepts."""
    mentions = pl.DataFrame(
        {"mention": [mention for *_, mention in training], "concept_id": [concept for concept, *_ in training]}
    ).unique(maintain_order=True)
    return build_mention_pairs(terminology, mentions, tokenizer, out)


def measure(encoder: Encoder, with_mentions: Terminology, task: BenchmarkTask, data: Path, out: Path) -> Scores:
    """acc@1 and acc@5 by each protocol, in per cent."""
    linker = build_linker(with_mentions, encoder, out / "linker", overwrite=True)
    subjects: dict[str, dict[str, Any]] = {"names": {"encoder": encoder}, "names and mentions": {"linker": linker}}
    scores = {}
    for name, subject in subjects.items():
        found = run_benchmark(task, data, split=task.splits[0], out=out / "results", overwrite=True, **subject)
        scores[name] = (100 * found.accuracy[1].value, 100 * found.accuracy[5].value)
    return scores


def opened(source: str | Path) -> Encoder:
    """With torch, in bf16 where the processor has it."""
    return open_encoder(source, backend="torch", precision="bf16" if has_native_bf16() else "fp32")


def table(folds: dict[str, dict[str, Scores]]) -> str:
    """Markdown: mean and standard deviation over the folds."""
    lines = ["| dictionary | encoder | acc@1 | acc@5 |", "|---|---|---|---|"]
    for protocol in ("names", "names and mentions"):
        for when in ("before", "after"):
            cells = []
            for place in (0, 1):
                values = [fold[when][protocol][place] for fold in folds.values()]
                spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
                cells.append(f"{statistics.mean(values):.1f}{spread}")
            lines.append(f"| {protocol} | {when} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Train, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder with the files of AskAPatient")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--folds", type=int, nargs="+", choices=range(N_FOLDS), default=list(range(N_FOLDS)))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    settings = SETTINGS | dict(text.split("=", 1) for text in arguments.set)
    file = out / "fine_tuning.json"
    wanted = {"settings": settings, "split": arguments.split}
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else wanted | {"folds": {}}
    if {key: known[key] for key in wanted} != wanted:
        sys.exit(f"{file} is of other settings: {known['settings']}, {known['split']}. Name another folder.")
    folds: dict[str, dict[str, Scores]] = known["folds"]
    for fold in track(arguments.folds, description="folds"):
        if str(fold) in folds:
            continue
        started = time.perf_counter()
        parts = {part: read_fold(fold_file(arguments.data, fold, part)) for part in ("train", "validation", "test")}
        names = concept_names([row for rows in parts.values() for row in rows])
        task = task_of(names, parts[arguments.split], arguments.split)
        folder = out / f"fold-{fold}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with_mentions = terminology_of(names, parts["train"], folder / "with-mentions")
        tokenizer = locate_tokenizer(settings["base"])
        pairs = pairs_of(terminology_of(names, [], folder / "names"), parts["train"], tokenizer, folder / "pairs")
        recipe = load_recipe("sapbert-finetune-askapatient", {"pooling": "none", **settings})
        before = measure(opened(settings["base"]), with_mentions, task, arguments.data, folder)
        train_on_pairs(recipe, pairs, folder / "encoder")
        after = measure(opened(folder / "encoder"), with_mentions, task, arguments.data, folder)
        folds[str(fold)] = {"before": before, "after": after}
        write_text_atomically(file, json.dumps(known, indent=1))
        write_text_atomically(out / "fine_tuning.md", table(folds) + "\n")
        shutil.rmtree(folder)
        print(f"fold {fold}: {before} -> {after}, {time.perf_counter() - started:.0f} s", flush=True)
    print(table(folds))


if __name__ == "__main__":
    main()
