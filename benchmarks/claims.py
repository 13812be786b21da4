"""Whether what SapBERT's paper claims holds here: each claim as short runs from a small encoder, over several seeds.

    python benchmarks/claims.py OUT --askapatient DIR --ncbi DIR --steps 100 --seeds 3
    python benchmarks/claims.py OUT --askapatient DIR --ncbi DIR --terminology DIR --epochs 1 --learning-rate 2e-5

Trains on the synonyms of MONDO (from the package cellxgene-ontology-guide), or of ``--terminology``, but for 2,000
hidden ones, and measures

* hidden: acc@1 of the hidden synonyms among the names of 6,000 concepts; hidden 64: by the first 64 numbers of vectors;
* askapatient: acc@1 on the distinct mentions of the validation parts (``--askapatient``);
* ncbi: acc@1 on the development set by the published protocol (``--ncbi``).

Every run differs from the first in the settings of its line alone (adapters and LoRA in their learning rate too). A run
that is done is not done again: the same command goes on where it was stopped. OUT gets ``claims.json``, ``claims.md``
and an encoder folder for each run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from onoma.artifacts import write_text_atomically
from onoma.benchmarks import get_task, run_benchmark
from onoma.benchmarks.biosyn import DictionaryLine, Query
from onoma.benchmarks.tasks import BenchmarkTask
from onoma.encoders import Encoder, locate_tokenizer, open_encoder
from onoma.encoders.pooling import Pooling
from onoma.pairs import Ambiguous, PairSet, build_pairs, hold_out_synonyms
from onoma.terminology import Terminology, import_terminology
from onoma.training.alignment_config import Recipe
from onoma.training.run import train_on_pairs

BASE = "all-MiniLM-L6-v2"
N_HIDDEN, N_CONCEPTS = 2_000, 6_000
RUNS: dict[str, dict[str, str]] = {
    "multi-similarity, hard triplets, all weights": {},
    "mining off": {"mining": "all"},
    "circle": {"loss": "circle"},
    "InfoNCE": {"loss": "info-nce"},
    "NCA": {"loss": "nca"},
    "lifted structure": {"loss": "lifted-structure"},
    "max-margin triplet": {"loss": "triplet"},
    "cosine": {"loss": "cosine"},
    "adapter, reduction 1": {"tuning": "adapter", "tuning.reduction": "1"},
    "adapter, reduction 16": {"tuning": "adapter", "tuning.reduction": "16"},
    # and what is not of the paper
    "LoRA": {"tuning": "lora"},
    "multi-similarity mining": {"mining": "multi-similarity"},
    "semi-hard triplets": {"mining": "semi-hard"},
    "homonyms never negatives": {"ambiguous": "mark"},
    "moving average": {"average": "0.98"},
    "half of the base kept": {"base_share": "0.5"},
    "Matryoshka": {"matryoshka": "[64, 128]"},
    "batches of neighbours": {"batches": "neighbours", "batches.warmup_steps": "20", "batches.refresh_steps": "40"},
}
SETTINGS = {
    "base": BASE,
    "batch_pairs": "256",
    "ambiguous": "keep",
    "learning_rate": "1e-4",
    "schedule": "linear",
    "warmup_steps": "10",
    "dropout": "0.1",
}
"""Of all runs. Schedule and, unless ``--learning-rate`` gives another, learning rate are the quickstart's, as
a hundred steps at the paper's 2e-5 move little. A moving average forgets in fifty steps."""
_RATE_OF_TUNING = 5
"""Times that rate is the one of adapters and LoRA, which begin at nought."""


def hidden_task(terminology: Terminology, *, seed: int = 0) -> tuple[BenchmarkTask, np.ndarray]:
    """The hidden synonyms as a task, and the rows of their names."""
    hidden = hold_out_synonyms(terminology, n_names=N_HIDDEN, seed=seed)
    concept_ids = terminology.concepts().select("concept_id").collect()["concept_id"]
    names = terminology.names().select("concept_row", "text").collect()
    codes = concept_ids.gather(names["concept_row"]).to_list()
    shown = set(hidden.concept_ids)
    others = sorted(set(concept_ids) - shown)
    shown.update(np.random.default_rng(seed).choice(others, N_CONCEPTS - len(shown), replace=False).tolist())
    left_out = set(hidden.name_rows.tolist())
    dictionary = [
        DictionaryLine(text, (code,))
        for row, (text, code) in enumerate(zip(names["text"], codes, strict=True))
        if row not in left_out and code in shown
    ]
    queries = [
        Query(text, (text,), frozenset({code})) for text, code in zip(hidden.texts, hidden.concept_ids, strict=True)
    ]
    task = replace(
        get_task("ncbi-disease"),
        name="hidden-synonyms",
        splits=("hidden",),
        queries=lambda folder, split: (queries, []),
        dictionary=lambda folder, split: (dictionary, []),
    )
    return task, hidden.name_rows


def distinct_mentions() -> BenchmarkTask:
    """AskAPatient with each mention once: "Lipitor" alone is a tenth of the validation parts."""
    task = get_task("askapatient")

    def queries(folder: Path, split: str) -> tuple[list[Query], list[Path]]:
        found, files = task.queries(folder, split)
        return list({(query.text.lower(), query.gold): query for query in found}.values()), files

    return replace(task, queries=queries)


def measures(arguments: argparse.Namespace, hidden: BenchmarkTask) -> dict[str, tuple[BenchmarkTask, Path, str]]:
    """Name of each measure -> task, folder of its data, split."""
    found: dict[str, tuple[BenchmarkTask, Path, str]] = {"hidden": (hidden, arguments.out, "hidden")}
    if arguments.askapatient:
        found["askapatient"] = (distinct_mentions(), arguments.askapatient, "validation")
    if arguments.ncbi:
        found["ncbi"] = (get_task("ncbi-disease"), arguments.ncbi, "dev")
    return found


def measured(
    source: str | Path, tasks: dict[str, tuple[BenchmarkTask, Path, str]], out: Path, *, pooling: Pooling | None = None
) -> dict[str, float]:
    """acc@1 of each measure, in per cent."""

    def score(encoder: Encoder, name: str) -> float:
        task, data, split = tasks[name]
        result = run_benchmark(task, data, encoder=encoder, split=split, out=out / "results", overwrite=True)
        return 100 * result.accuracy[1].value

    encoder = open_encoder(source, backend="torch", precision="bf16", pooling=pooling)
    scores = {name: score(encoder, name) for name in tasks}
    cut = open_encoder(source, backend="torch", precision="bf16", pooling=pooling, dimensions=64)
    return {**scores, "hidden 64": score(cut, "hidden")}


def table(scores: dict[str, dict[str, float]]) -> str:
    """Markdown: a line for each run, mean and standard deviation over its seeds."""
    columns = list(dict.fromkeys(measure for values in scores.values() for measure in values))
    lines = [f"| run | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for run in dict.fromkeys(key.rpartition(" / ")[0] for key in scores):
        cells = []
        for column in columns:
            values = [found[column] for key, found in scores.items() if key.startswith(f"{run} / ") and column in found]
            spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.1f}{spread}" if values else "")
        lines.append(f"| {run} | {' | '.join(cells)} |")
    return "\n".join(lines)


def jobs(seeds: int) -> Iterator[tuple[str, dict[str, str], int]]:
    """All runs, seed after seed, so that what is there early is a whole table."""
    for seed in range(seeds):
        for run, settings in RUNS.items():
            yield f"{run} / {seed}", settings, seed


def main() -> None:
    """Train, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--askapatient", type=Path, help="folder with the files of AskAPatient")
    parser.add_argument("--ncbi", type=Path, help="folder with BioSyn's files of the NCBI disease corpus, and MEDIC")
    parser.add_argument(
        "--pooling", choices=("mean", "cls"), default="mean", help="mean is the base's, cls the paper's"
    )
    parser.add_argument("--terminology", type=Path, help="folder to train on in place of MONDO")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=int, default=100)
    length.add_argument("--epochs", type=int, help="times that all pairs are seen, in place of steps")
    parser.add_argument("--learning-rate", default=SETTINGS["learning_rate"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=RUNS, metavar="RUN", help="these runs alone")
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    names_of: Path = arguments.terminology or out / "mondo"
    if arguments.terminology is None and not names_of.exists():
        import_terminology("cellxgene", "MONDO", names_of)
    terminology = Terminology.open(names_of)
    task, name_rows = hidden_task(terminology)
    tasks = measures(arguments, task)

    def pairs(ambiguous: Ambiguous) -> PairSet:
        folder = out / f"pairs-{ambiguous}"
        if folder.exists():
            return PairSet.open(folder)
        return build_pairs(terminology, locate_tokenizer(BASE), folder, hidden_names=name_rows, ambiguous=ambiguous)

    settings = {**SETTINGS, "pooling": arguments.pooling, "learning_rate": arguments.learning_rate}
    settings |= {"epochs": str(arguments.epochs)} if arguments.epochs else {"steps": str(arguments.steps)}
    file = out / "claims.json"
    about = {**settings, "terminology": terminology.manifest.fingerprint}
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"settings": about, "scores": {}}
    if known["settings"] != about:
        sys.exit(f"{file} is of other settings: {known['settings']}. Name another folder.")
    scores: dict[str, dict[str, float]] = known["scores"]

    def keep(key: str, found: dict[str, float]) -> None:
        scores[key] = found
        write_text_atomically(file, json.dumps({"settings": about, "scores": scores}, indent=1))
        write_text_atomically(out / "claims.md", table(scores) + "\n")

    if "base / 0" not in scores:
        keep("base / 0", measured(BASE, tasks, out, pooling=arguments.pooling))
    todo = [
        job for job in jobs(arguments.seeds) if arguments.only is None or job[0].rpartition(" / ")[0] in arguments.only
    ]
    for key, changed, seed in track(todo, description="runs"):
        if key in scores:
            continue
        encoder = out / "encoder"
        started = time.perf_counter()
        rate = float(arguments.learning_rate) * (_RATE_OF_TUNING if "tuning" in changed else 1)
        recipe = Recipe.load("sapbert-paper", {**settings, **changed, "learning_rate": f"{rate:g}", "seed": str(seed)})
        report = train_on_pairs(recipe, pairs(recipe.config.ambiguous), encoder, overwrite=True)
        keep(key, measured(encoder, tasks, out))
        print(
            key,
            {name: round(value, 1) for name, value in scores[key].items()},
            f"loss {report.first_loss:.3f} -> {report.last_loss:.3f}, {time.perf_counter() - started:.0f} s",
            flush=True,
        )
        shutil.rmtree(encoder)
    print(table(scores))


if __name__ == "__main__":
    main()
