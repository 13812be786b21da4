"""Fine-tuning on AskAPatient, fold by fold: a small encoder trained on a fold's mentions, measured on the rest.

    python benchmarks/fine_tuning.py OUT --data DIR --split validation --folds 0 1     # to choose settings
    python benchmarks/fine_tuning.py OUT --data DIR --split test                       # to report, once
    python benchmarks/fine_tuning.py OUT --data DIR --split test --average 3           # three seeds, their average

Trains on the training part of each fold, every different mention once, paired with the one name of its concept, and
measures on the fold's validation or test part, each mention as often as it occurs:

* names: the published protocol; the dictionary is one name for each of the 1,036 concepts;
* names, prior: a linker over these names that knows how often each concept is meant in training; what that counts
  for is learned on the fold's validation part (so, not measured there);
* names and mentions: a linker whose concepts have the training mentions as further names; concepts are ranked.
  Its confidences are fitted to the validation part; measured is what is right of the most confident answers.

All are measured before and after training. Two thirds of a fold's test mentions are spelt like one of its training
mentions. A fold that is done is not done again: the same command goes on where it was stopped. OUT gets
``fine_tuning.json`` and ``fine_tuning.md``.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
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
from onoma.benchmarks.abstention_files import RESULT_FILE as ABSTENTION_FILE
from onoma.benchmarks.askapatient import N_FOLDS, as_queries, concept_names, fold_file, read_fold
from onoma.benchmarks.biosyn import DictionaryLine
from onoma.benchmarks.tasks import BenchmarkTask
from onoma.encoders import Encoder, locate_tokenizer, open_encoder
from onoma.encoders.averages import average_encoders
from onoma.encoders.precision import has_native_bf16
from onoma.linking import Linker, build_linker, tune_linker
from onoma.pairs import PairSet, build_mention_pairs
from onoma.terminology import Terminology, import_terminology
from onoma.training.alignment_config import Recipe
from onoma.training.run import train_on_pairs

SETTINGS = {
    "base": "onoma-mini",
    "batch_pairs": "512",
    "loss": "nca",
    "mining": "all",
    "learning_rate": "6e-4",
    "schedule": "linear",
    "warmup_steps": "10",
    "dropout": "0.1",
    "epochs": "24",
}
"""Chosen on the validation parts of folds 0 to 2; see EXPERIMENTS.md."""
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
WISHED_PRECISION = "0.95"
Rows = list[tuple[str, str, str]]
Scores = dict[str, tuple[float, float]]
Abstention = dict[str, float]


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


def annotated(rows: Rows) -> pl.DataFrame:
    """Mentions as they occur."""
    return pl.DataFrame({"mention": [row[2] for row in rows], "concept_id": [row[0] for row in rows]})


def pairs_of(terminology: Terminology, training: Rows, tokenizer: Tokenizer, out: Path) -> PairSet:
    """The different mentions with the names of their concepts."""
    return build_mention_pairs(terminology, annotated(training).unique(maintain_order=True), tokenizer, out)


def measure(
    encoder: Encoder,
    names: Terminology,
    with_mentions: Terminology,
    parts: dict[str, Rows],
    task: BenchmarkTask,
    data: Path,
    out: Path,
) -> tuple[Scores, Abstention]:
    """acc@1 and acc@5 by each protocol, and the precision of the most confident answers, in per cent."""
    subjects: dict[str, dict[str, Any]] = {"names": {"encoder": encoder}}
    folder = build_linker(with_mentions, encoder, out / "linker", overwrite=True).path
    is_test = task.splits == ("test",)
    if is_test:
        development = annotated(parts["validation"])
        knowing = build_linker(names, encoder, out / "knowing", overwrite=True).path
        stages = ["exact", "dense", "prior"]
        tune_linker(knowing, development, prior=annotated(parts["train"]), stages=stages, calibrate=False)
        subjects["names, prior"] = {"linker": Linker.open(knowing)}
        tune_linker(folder, development)
    subjects["names and mentions"] = {"linker": Linker.open(folder)}
    scores = {}
    for name, subject in subjects.items():
        results = out / "results" / name
        found = run_benchmark(task, data, split=task.splits[0], out=results, overwrite=True, **subject)
        scores[name] = (100 * found.accuracy[1].value, 100 * found.accuracy[5].value)
    return scores, abstention_of(out / "results" / "names and mentions") if is_test else {}


def abstention_of(results: Path) -> Abstention:
    """Precision at each coverage, and both at the threshold that validation gave for 95 %, in per cent."""
    found = json.loads((results / ABSTENTION_FILE).read_text())
    curve = found["curve"]
    at = {
        f"{100 * wish:.0f}": 100 * min(curve, key=lambda point: abs(point["coverage"] - wish))["precision"]
        for wish in COVERAGES
    }
    chosen = found["chosen"].get(WISHED_PRECISION)
    held = {} if chosen is None else {"precision": 100 * chosen["precision"], "coverage": 100 * chosen["coverage"]}
    return at | held | {"ece": found["ece"]["value"], "ece, perfect": found["ece"]["if_calibrated"]}


def train(pairs: PairSet, settings: dict[str, str], n_seeds: int, out: Path) -> None:
    """Train an encoder; or with several seeds, one after the other, whose average is kept."""
    seeds = [str(int(settings.get("seed", "0")) + number) for number in range(n_seeds)]
    encoders = [out] if n_seeds == 1 else [out.with_name(f"{out.name}-{seed}") for seed in seeds]
    for seed, encoder in zip(seeds, encoders, strict=True):
        recipe = Recipe.load("sapbert-finetune-askapatient", {"pooling": "none", **settings, "seed": seed})
        train_on_pairs(recipe, pairs, encoder)
    if n_seeds > 1:
        average_encoders(encoders, out)


def opened(source: str | Path) -> Encoder:
    """With torch, in bf16 where the processor has it."""
    return open_encoder(source, backend="torch", precision="bf16" if has_native_bf16() else "fp32")


def table(folds: dict[str, dict[str, Any]]) -> str:
    """Markdown: mean and standard deviation over the folds."""
    lines = ["| dictionary | encoder | acc@1 | acc@5 |", "|---|---|---|---|"]
    any_fold = next(iter(folds.values()))
    for protocol in any_fold["before"]["scores"]:
        for when in ("before", "after"):
            cells = [spread([fold[when]["scores"][protocol][place] for fold in folds.values()]) for place in (0, 1)]
            lines.append(f"| {protocol} | {when} | {' | '.join(cells)} |")
    for when in ("before", "after"):
        if told := list(dict.fromkeys(key for fold in folds.values() for key in fold[when]["abstention"])):
            cells = [
                spread([f[when]["abstention"].get(key, math.nan) for f in folds.values()], 3 if "ece" in key else 1)
                for key in told
            ]
            lines += [
                "",
                f"| {when} | {' | '.join(told)} |",
                "|---" * (len(told) + 1) + "|",
                f"| | {' | '.join(cells)} |",
            ]
    return "\n".join(lines)


def spread(values: list[float], digits: int = 1) -> str:
    """Mean and standard deviation."""
    known = [value for value in values if not math.isnan(value)]
    deviation = f" ± {statistics.stdev(known):.{digits}f}" if len(known) > 1 else ""
    return f"{statistics.mean(known):.{digits}f}{deviation}"


def main() -> None:
    """Train, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder with the files of AskAPatient")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--folds", type=int, nargs="+", choices=range(N_FOLDS), default=list(range(N_FOLDS)))
    parser.add_argument("--average", type=int, default=1, metavar="N", help="measure the average of N seeds' encoders")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    settings = SETTINGS | dict(text.split("=", 1) for text in arguments.set)
    file = out / "fine_tuning.json"
    wanted: dict[str, Any] = {"settings": settings, "split": arguments.split}
    wanted |= {"average": arguments.average} if arguments.average > 1 else {}
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else wanted | {"folds": {}}
    if {key: value for key, value in known.items() if key != "folds"} != wanted:
        sys.exit(f"{file} is of other settings: {known['settings']}, {known['split']}. Name another folder.")
    folds: dict[str, dict[str, Any]] = known["folds"]
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
        only_names = terminology_of(names, [], folder / "names")
        pairs = pairs_of(only_names, parts["train"], tokenizer, folder / "pairs")
        measured = {}
        for when in ("before", "after"):
            if when == "after":
                train(pairs, settings, arguments.average, folder / "encoder")
            encoder = opened(settings["base"] if when == "before" else folder / "encoder")
            scores, told = measure(encoder, only_names, with_mentions, parts, task, arguments.data, folder)
            measured[when] = {"scores": scores, "abstention": told}
        folds[str(fold)] = measured
        write_text_atomically(file, json.dumps(known, indent=1))
        write_text_atomically(out / "fine_tuning.md", table(folds) + "\n")
        shutil.rmtree(folder)
        print(f"fold {fold}: {measured}, {time.perf_counter() - started:.0f} s", flush=True)
    print(table(folds))


if __name__ == "__main__":
    main()
