"""What synonyms of open vocabularies are worth to a list of codes with one name each, before anything is trained.

    python benchmarks/enriching.py OUT --data DIR --from hpo mesh symp --split validation     # to choose vocabularies
    python benchmarks/enriching.py OUT --data DIR --from hpo mesh symp                        # to report, once

The list is that of AskAPatient (1,036 concepts of SNOMED CT and AMT); ``hpo``, ``mesh``, ``symp`` are folders of
terminologies, the first of which decides where a name belongs. Two linkers with vectors and n-grams, over the names
alone and over those of ``onoma terminology enrich``, answer all mentions of a split, of all ten folds, as they are and
with misspelt words put right. Nothing is learnt from mentions. On the test parts the mentions that stand in no
validation part are measured alone too, as what was chosen there has seen the others. OUT gets both terminologies,
linkers and results.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from pathlib import Path

from onoma.benchmarks import get_task, run_benchmark
from onoma.benchmarks.tasks import BenchmarkTask
from onoma.linking import Preparation, build_linker
from onoma.terminology import enrich_terminology, import_terminology


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder with the files of AskAPatient")
    parser.add_argument("--from", type=Path, nargs="+", required=True, dest="others", metavar="DIR")
    parser.add_argument("--encoder", default="onoma-mini")
    parser.add_argument("--split", default="test", choices=("validation", "test"))
    given = parser.parse_args()
    out: Path = given.out
    out.mkdir(parents=True, exist_ok=True)
    task = get_task("askapatient")
    lines, _ = task.dictionary(given.data, given.split)
    with (out / "names.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "name"))
        writer.writerows((line.ids[0], line.name) for line in lines)
    options = {"id": "id", "name": "name"}
    print(import_terminology("table", out / "names.csv", out / "names", options=options, overwrite=True))
    print(
        enrich_terminology(
            out / "names", given.others, out / "enriched", vocabularies={"names": "SNOMEDCT"}, overwrite=True
        )
    )
    for name in ("names", "enriched"):
        linker = build_linker(out / name, given.encoder, out / f"linker-{name}", sparse=True, overwrite=True)
        measured = {name: task}
        if given.split == "test":
            measured[f"{name}-unseen"] = without_validation(task, given.data)
        for label, part in measured.items():
            for spelling in (False, True):
                results = out / f"results-{label}{'-spelling' if spelling else ''}"
                asked = linker.preparing(Preparation(spelling=spelling))
                print(f"{label}{', spelling put right' if spelling else ''}:")
                print(run_benchmark(part, given.data, linker=asked, split=given.split, out=results, overwrite=True))


def without_validation(task: BenchmarkTask, data: Path) -> BenchmarkTask:
    """The test mentions that stand, with their concept, in no fold's validation part; upper and lower case are one."""
    seen = {(query.text.lower(), query.gold) for query in task.queries(data, "validation")[0]}
    queries, left_out = task.queries(data, "test")
    unseen = [query for query in queries if (query.text.lower(), query.gold) not in seen]
    return replace(task, queries=lambda folder, split: (unseen, left_out))


if __name__ == "__main__":
    main()
