"""Time and memory from MRCONSO to synonym pairs: ours against plain Python loops and plain Polars, in one run.

    python benchmarks/data_preparation.py --atoms 10000000 -o data_preparation.json

The release is written by ``synthetic_umls.py``; ``--release DIR`` takes another.

The work: English atoms, lower-cased, distinct (concept, name); all pairs of the names of a concept, at most 50, chosen
at random; written to disk. All variants must find the same number of names and of pairs.

==========  ===========================================================================================================
loops       as the released SapBERT code prepares its data: sets and lists of Python strings, ``combinations``, a line
            ``concept||name||name`` for each pair
polars      plain Polars: scan, unique, self-join within each concept, shuffle, head; pairs as row numbers, Parquet
release     Onoma from the release: ``onoma terminology import umls`` (every line checked, every field kept, folder
            written) and then the pairs as row numbers
folder      Onoma from the imported folder, as every training run after the first import
whole       ``onoma terminology import umls`` of everything: all languages, relations, types, definitions (no pairs)
==========  ===========================================================================================================

Each variant runs alone in a fresh process; peak memory is of that process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synthetic_umls import write_release

CAP = 50


def loops(release: Path, out: Path, _: Path) -> dict[str, Any]:
    """Plain Python."""
    started = time.perf_counter()
    distinct = set()
    with (release / "MRCONSO.RRF").open(encoding="utf-8") as lines:
        for line in lines:
            fields = line.split("|")
            if fields[1] == "ENG":
                distinct.add((fields[0], fields[14].lower()))
    names_of: dict[str, list[str]] = {}
    for concept, name in distinct:
        names_of.setdefault(concept, []).append(name)
    loaded = time.perf_counter()
    pairs = []
    rng = random.Random(0)
    for concept, names in names_of.items():
        of_concept = list(itertools.combinations(names, 2))
        if len(of_concept) > CAP:
            of_concept = rng.sample(of_concept, CAP)
        pairs += [f"{concept}||{first}||{second}" for first, second in of_concept]
    paired = time.perf_counter()
    with (out / "pairs.txt").open("w", encoding="utf-8") as file:
        file.writelines(f"{pair}\n" for pair in pairs)
    return {
        "names": len(distinct),
        "pairs": len(pairs),
        "seconds": {"load": loaded - started, "pairs": paired - loaded, "write": time.perf_counter() - paired},
    }


def polars(release: Path, out: Path, _: Path) -> dict[str, Any]:
    """Polars as one would write it first."""
    import polars as pl

    started = time.perf_counter()
    names = (
        pl.scan_csv(
            release / "MRCONSO.RRF",
            separator="|",
            has_header=False,
            quote_char=None,
            infer_schema=False,
            new_columns=[f"f{number}" for number in range(19)],
        )
        .filter(pl.col("f1") == "ENG")
        .select(concept="f0", name=pl.col("f14").str.to_lowercase())
        .unique()
        .sort("concept")
        .with_row_index("row")
        .collect()
    )
    loaded = time.perf_counter()
    one = names.select("concept", "row")
    pairs = (
        one.lazy()
        .join(one.lazy(), on="concept", suffix="_of_other")
        .filter(pl.col("row") < pl.col("row_of_other"))
        .with_columns(order=pl.int_range(pl.len()).shuffle(seed=0))
        .sort("order")
        .group_by("concept")
        .head(CAP)
        .select("row", "row_of_other")
        .collect()
    )
    paired = time.perf_counter()
    names.write_parquet(out / "names.parquet")
    pairs.write_parquet(out / "pairs.parquet")
    return {
        "names": len(names),
        "pairs": len(pairs),
        "seconds": {"load": loaded - started, "pairs": paired - loaded, "write": time.perf_counter() - paired},
    }


def release(release: Path, out: Path, folder: Path) -> dict[str, Any]:
    """Onoma, with the import."""
    from onoma.terminology import import_terminology

    started = time.perf_counter()
    options = {"languages": "en", "relations": "no"}
    import_terminology("umls", release, out / "terminology", options=options)
    imported = time.perf_counter()
    found = _pairs_of_folder(out / "terminology", out)
    return {**found, "seconds": {"import": imported - started, **found["seconds"]}}


def folder(release: Path, out: Path, folder: Path) -> dict[str, Any]:
    """Onoma, import done before."""
    return _pairs_of_folder(folder, out)


def whole(release: Path, out: Path, folder: Path) -> dict[str, Any]:
    """The whole import."""
    from onoma.terminology import import_terminology

    started = time.perf_counter()
    report = import_terminology("umls", release, out / "terminology")
    return {
        "names": report.n_names,
        "concepts": report.n_concepts,
        "relations": report.n_relations,
        "definitions": report.n_definitions,
        "seconds": {"import": time.perf_counter() - started},
    }


def _pairs_of_folder(folder: Path, out: Path) -> dict[str, Any]:
    import numpy as np

    from onoma.pairs.selection import training_names
    from onoma.pairs.synonyms import synonym_pairs
    from onoma.terminology import Terminology

    started = time.perf_counter()
    terminology = Terminology.open(folder)
    names = training_names(terminology, languages=["en"], include_suppressed=True, ambiguous="keep")
    selected = time.perf_counter()
    labels = names["concept_row"].to_numpy()
    pairs = synonym_pairs(labels, max_per_concept=CAP)
    paired = time.perf_counter()
    np.save(out / "pairs.npy", pairs)
    np.save(out / "labels.npy", labels)
    np.save(out / "name_rows.npy", names["name_row"].to_numpy())
    return {
        "names": len(names),
        "pairs": len(pairs),
        "seconds": {"names": selected - started, "pairs": paired - selected, "write": time.perf_counter() - paired},
    }


VARIANTS: dict[str, Callable[[Path, Path, Path], dict[str, Any]]] = {
    "loops": loops,
    "polars": polars,
    "release": release,
    "folder": folder,
    "whole": whole,
}


def run(variant: str, release: Path, folder: Path) -> dict[str, Any]:
    """One variant in a process of its own."""
    command = [sys.executable, __file__, "--release", str(release), "--one", variant, "--folder", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def run_here(variant: str, release: Path, folder: Path) -> dict[str, Any]:
    """One variant in this process."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as out:
        found = VARIANTS[variant](release, Path(out), folder)
    found["total"] = sum(found["seconds"].values())
    found["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return found


def main() -> None:
    """Run all variants and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--atoms", type=int, default=2_000_000, help="size of the release that is written")
    parser.add_argument("--release", type=Path, help="a folder with MRCONSO.RRF to take instead")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--repeat", type=int, default=1, help="the fastest of so many runs counts")
    parser.add_argument("--scratch", type=Path, help="where the release and the results go for the time of the run")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--one", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--out", type=Path)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run_here(arguments.one, arguments.release, arguments.folder)))
        return
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        release, imported = arguments.release, Path(scratch) / "terminology"
        if release is None:
            release = Path(scratch) / "release"
            print(f"release: {write_release(release, n_atoms=arguments.atoms)}", flush=True)
        if "folder" in arguments.variants:
            # Not in this process: a child's peak memory counts from what its parent held.
            onoma = [sys.executable, "-c", "from onoma.cli import main; main()"]
            command = [*onoma, "terminology", "import", "umls", str(release), "-o", str(imported)]
            subprocess.run([*command, "--set", "languages=en", "--set", "relations=no"], check=True)
        for variant in arguments.variants:
            runs = [run(variant, release, imported) for _ in range(arguments.repeat)]
            results[variant] = min(runs, key=lambda found: float(found["total"]))
            _show(variant, results)
    same_work = [(results[name]["names"], results[name]["pairs"]) for name in results if name != "whole"]
    if len(set(same_work)) > 1:
        raise SystemExit(f"the variants did not do the same work: {same_work}")
    if arguments.out:
        machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        arguments.out.write_text(json.dumps({"machine": machine, "results": results}, indent=2) + "\n")


def _show(variant: str, results: dict[str, dict[str, Any]]) -> None:
    found = results[variant]
    phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in found["seconds"].items())
    ratio = ""
    if "loops" in results and variant != "whole":
        ratio = f"  {results['loops']['total'] / found['total']:.1f} x loops"
    pairs = f", {found['pairs']:,} pairs" if "pairs" in found else ""
    cost = f"{found['total']:6.1f} s ({phases}), {found['peak_gb']:.1f} GB"
    print(f"{variant:<8} {cost}, {found['names']:,} names{pairs}{ratio}", flush=True)


if __name__ == "__main__":
    main()
