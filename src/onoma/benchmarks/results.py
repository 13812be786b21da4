"""The results of a benchmark run."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import Any

from onoma._version import __version__
from onoma.benchmarks.abstention import AbstentionResult
from onoma.benchmarks.metrics import Accuracy
from onoma.benchmarks.parts import WRITTEN_AS, accuracy_as_json, n_queries_of, part_as_json
from onoma.linking import Filters
from onoma.plain_tables import aligned
from onoma.quantities import quantity
from onoma.terminology.diffing import shortened

PREDICTIONS_NAME = "predictions.parquet"
CONCEPTS = "concepts"
"""What a baseline ranks that was measured over a linker's."""


@dataclass(frozen=True)
class LearnedSplit:
    """acc@k of queries whose text is in some files with one of their codes, and of the others.

    Attributes:
        files: SHA-256 of each file, by its name.
        seen: acc@k by k of those in the files; empty if there are none.
        unseen: Of the others; empty if there are none.
        unseen_of_seen_concepts: Of those others whose code is in the files, with other texts; likewise.
        unseen_of_other_concepts: Of those others whose code is not; likewise.

    Source:
        Memorisation, generalisation to synonyms, to concepts: Kim and Kang 2022, "How do your biomedical named entity
        recognition models generalize to novel entities?".
    """

    files: Mapping[str, str]
    seen: Mapping[int, Accuracy]
    unseen: Mapping[int, Accuracy]
    unseen_of_seen_concepts: Mapping[int, Accuracy]
    unseen_of_other_concepts: Mapping[int, Accuracy]

    def as_json(self) -> dict[str, Any]:
        """As ``results.json`` has it."""
        return {
            "files": dict(self.files),
            "seen": part_as_json(self.seen),
            "unseen": part_as_json(self.unseen),
            "unseen_of_seen_concepts": part_as_json(self.unseen_of_seen_concepts),
            "unseen_of_other_concepts": part_as_json(self.unseen_of_other_concepts),
        }


@dataclass(frozen=True)
class GroupSplit:
    """acc@k of queries by the values of a column.

    Attributes:
        column: Its name.
        values: acc@k by k, by the column's value; the largest group first, equally large ones in order; empty for one
            whose mentions all mean no concept.
    """

    column: str
    values: Mapping[str, Mapping[int, Accuracy]]

    def as_json(self) -> dict[str, Any]:
        """As ``results.json`` has it."""
        return {"column": self.column, "values": {value: part_as_json(part) for value, part in self.values.items()}}


@dataclass(frozen=True)
class BenchmarkResult:
    """Figures of one run and all that is needed to reproduce them; fractions throughout.

    Attributes:
        task: Name of the task.
        split: The part of it that was measured.
        protocol: Its rules in words.
        tie_rule: Which of two equal scores comes first.
        accuracy: acc@k by k.
        accuracy_once: The same with every distinct mention counted once (`onoma.benchmarks.metrics.macro_accuracy_at`).
        exact_match: The same for exact match alone, with the same dictionary.
        by_names: The same for the queries that are written as a name is, and for the others, by the keys of
            `onoma.benchmarks.parts.WRITTEN_AS`.
        by_group: The same by the values of a column, if one was named.
        n_queries: Number of queries that mean a concept.
        n_nil: Number of those that mean none: they count in ``abstention`` alone.
        n_distinct_mentions: Distinct mentions among the first, ignoring case.
        clusters: What intervals are over, in words: distinct mentions, or the values of a column.
        n_dictionary: Number of names to choose from: lines of the task's dictionary, distinct names of a linker.
        dictionary_sha256: Of these names with their ids, in their order; of a linker's own, normalised.
        coverage: Share of queries with at least one gold id among the names' ids.
        unknown_gold: Codes of the other queries, and how many of these have each.
        doubts: Why the figures may not mean what they seem to, in words.
        model: Kind (encoder, linker or baseline), name and fingerprint of what was measured. For an encoder its
            precision, and the weight of n-grams if they were added ("sparse_weight"); for a baseline over a linker
            "ranks": "concepts"; for a linker its stages, how it prepares mentions, if it does ("preparation"), the
            filters and "expected_types" that it was given, and how many of its names can be an answer if not all can
            ("names_in_use").
        learned: acc@k of queries that are in files which were learned from, and of the others, if such files were
            given.
        abstention: How well a calibrated linker knows when to answer; written to files of its own.
        seed: Of the confidence intervals.
        versions: Of Onoma, Python and the packages that took part.
        machine: See `onoma.processors.machine`.
        terminologies: Fingerprints of those whose names were chosen from, or whose successors counted, by name; for a
            linker, see its own ``fingerprint``.
        data: SHA-256 and size of each file read.
        seconds: Wall-clock time of the run.
        path: The folder with ``results.json`` and ``predictions.parquet``.
    """

    task: str
    split: str
    protocol: str = field(repr=False)
    tie_rule: str = field(repr=False)
    accuracy: Mapping[int, Accuracy]
    accuracy_once: Mapping[int, float]
    exact_match: Mapping[int, Accuracy]
    by_names: Mapping[str, Mapping[int, Accuracy]] = field(repr=False)
    by_group: GroupSplit | None = field(repr=False)
    n_queries: int
    n_nil: int
    n_distinct_mentions: int
    clusters: str
    n_dictionary: int
    dictionary_sha256: str = field(repr=False)
    coverage: float
    unknown_gold: Mapping[str, int] = field(repr=False)
    doubts: tuple[str, ...]
    model: Mapping[str, str]
    abstention: AbstentionResult | None = field(repr=False)
    learned: LearnedSplit | None = field(repr=False)
    seed: int
    versions: Mapping[str, str] = field(repr=False)
    machine: Mapping[str, str | int] = field(repr=False)
    terminologies: Mapping[str, str] = field(repr=False)
    data: Mapping[str, Mapping[str, str | int]] = field(repr=False)
    seconds: float
    path: Path

    def as_json(self) -> dict[str, Any]:
        """The content of ``results.json``; ``acc@1`` and so on stand at its top level."""
        return {
            "task": self.task,
            "split": self.split,
            **accuracy_as_json(self.accuracy),
            "confidence_interval_method": f"percentile bootstrap over {self.clusters}, 10,000 resamples; Wilson's "
            "where all are right, or none",
            "each_mention_once": {f"acc@{k}": value for k, value in self.accuracy_once.items()},
            "exact_match": {f"acc@{k}": accuracy.value for k, accuracy in self.exact_match.items()},
            "written_as": {what: part_as_json(part) for what, part in self.by_names.items()},
            **({} if self.by_group is None else {"by_group": self.by_group.as_json()}),
            **({} if self.learned is None else {"learned_from": self.learned.as_json()}),
            "n_queries": self.n_queries,
            "n_nil": self.n_nil,
            "n_distinct_mentions": self.n_distinct_mentions,
            "clusters": self.clusters,
            "n_dictionary": self.n_dictionary,
            "dictionary_sha256": self.dictionary_sha256,
            "coverage": self.coverage,
            "unknown_gold": dict(self.unknown_gold),
            "doubts": list(self.doubts),
            "protocol": self.protocol,
            "tie_rule": self.tie_rule,
            "model": dict(self.model),
            "seed": self.seed,
            "versions": dict(self.versions),
            "machine": dict(self.machine),
            "terminologies": dict(self.terminologies),
            "data": {name: dict(entry) for name, entry in self.data.items()},
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        """A few lines for people, in per cent."""
        measured = name_of(self.model)
        if self.model.get("ranks") == CONCEPTS:
            measured = f"{measured}, a linker's concepts"
        if self.model["kind"] == "linker":
            measured = f"linker of {measured}"
        rows = [
            ("", *(f"acc@{k}" for k in self.accuracy)),
            (measured, *map(str, self.accuracy.values())),
            ("each mention once", *(f"{100 * value:.1f}" for value in self.accuracy_once.values())),
            ("exact match alone", *map(str, self.exact_match.values())),
        ]
        parts = [(WRITTEN_AS[what], part) for what, part in self.by_names.items()]
        if self.learned is not None:
            parts += [
                ("learned from", self.learned.seen),
                ("not learned from", self.learned.unseen),
                ("- of concepts learned from", self.learned.unseen_of_seen_concepts),
                ("- of other concepts", self.learned.unseen_of_other_concepts),
            ]
        if self.by_group is not None:
            parts += [
                (shortened(f"{self.by_group.column}: {value or '(empty)'}"), part)
                for value, part in self.by_group.values.items()
            ]
        rows += [
            (f"{what} ({n_queries_of(part):,})", *(str(part.get(k, "-")) for k in self.accuracy))
            for what, part in parts
        ]
        table = aligned(rows)
        tuned = None if self.abstention is None else self.abstention.as_tuned
        withheld = "" if tuned is None else f"\nby the linker's own threshold, {tuned.in_words(self.clusters)}"
        nil = f" and {self.n_nil:,} of no concept" if self.n_nil else ""
        return (
            f"{self.task}, {self.split}: {quantity(self.n_queries, 'query', 'queries')} "
            f"({self.n_distinct_mentions:,} distinct){nil}, "
            f"{quantity(self.n_dictionary, 'name')}; "
            f"gold among them for {100 * self.coverage:.1f} % of the queries\n"
            f"{table}{withheld}\nper cent, in brackets the 95 % confidence interval over {self.clusters}; "
            f"protocol {self.protocol.split(':')[0]}; "
            f"results in {self.path}"
        )


def told_apart(files: Sequence[Path]) -> dict[str, Path]:
    """Files by their names, or, where several have one, by as much of the path as tells them apart."""
    names: dict[str, Path] = {}
    for file in dict.fromkeys(files):
        others = [other for other in dict.fromkeys(files) if other != file]
        n_parts = 1
        while any(file.parts[-n_parts:] == other.parts[-n_parts:] for other in others):
            n_parts += 1
        names["/".join(file.parts[-n_parts:])] = file
    return names


def versions_in_use() -> dict[str, str]:
    """Versions of Onoma, Python, and the packages among those that matter which this process has loaded."""
    packages = ("numpy", "polars", "tokenizers", "onnxruntime", "torch", "transformers")
    found = {name: metadata.version(name) for name in packages if name in sys.modules}
    return {"onoma": __version__, "python": platform.python_version(), **found}


def name_of(model: Mapping[str, str]) -> str:
    """What was measured, for people: its name, a precision other than fp32, how it makes mentions ready, and in a word
    what else was asked for.
    """
    others = {
        "filters": any(field.name in model for field in fields(Filters)),
        "expected types": "expected_types" in model,
        "n-grams": "sparse_weight" in model,
        "contexts": "contexts" in model,
    }
    parts = ["name", *(["precision"] if model.get("precision") != "fp32" else []), "preparation"]
    said = [model[part] for part in parts if part in model]
    return " + ".join([*said, *(what for what, is_so in others.items() if is_so)])
