"""Whether one system is better than another, by their results on the same queries.

Two systems that answer the same mentions are right and wrong together for the most part, so that intervals of each may
overlap widely where the difference is clear. Here the difference itself is resampled, with all queries of each distinct
mention that is drawn, and tested by exchanging the two systems' answers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from onoma.artifacts import open_artifact
from onoma.artifacts.parquet import scan_parquet
from onoma.benchmarks.biosyn import cluster_of
from onoma.benchmarks.metrics import cluster_mean, cluster_numbers, percentile_interval, resampled_means
from onoma.benchmarks.results import name_of
from onoma.errors import InputError, MismatchError
from onoma.randomness import random_from
from onoma.types import BoolArray, RowArray

_N_RESAMPLES = 10_000
_LEAST_P = 1 / (_N_RESAMPLES + 1)
_EXCHANGED_AT_ONCE = 1_000_000
"""Signs of clusters that are in memory together."""


@dataclass(frozen=True, slots=True)
class Difference:
    """acc@k of the second system less that of the first, as fractions.

    Attributes:
        value: Above 0 where the second is better.
        low: Lower end of the 95 % bootstrap interval over distinct mentions.
        high: Its upper end.
        p_value: Share of random exchanges of the two systems' answers, all queries of a distinct mention together, that
            give a difference as large, in either direction; at least 1 / 10,001.
        n_won: Queries that only the second has right.
        n_lost: Queries that only the first has right.
        value_once: The difference with every distinct mention counted once.
    """

    value: float
    low: float
    high: float
    p_value: float
    n_won: int
    n_lost: int
    value_once: float

    @property
    def p_in_words(self) -> str:
        """The p value behind "p", at its least as a bound."""
        return f"≤ {_LEAST_P:.4f}" if self.p_value <= _LEAST_P else f"= {self.p_value:.4f}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two results of a task and split, side by side.

    Attributes:
        task: Name of the task.
        split: What of it was measured.
        first: How the first system is called.
        second: How the second is.
        n_queries: Number of queries.
        n_distinct: Distinct mentions among them, case aside.
        differences: By k of acc@k.
        seed: Of the resampling.
        n_names: Of two linkers how many names each has, if these, or their order, are not the same.
    """

    task: str
    split: str
    first: str
    second: str
    n_queries: int
    n_distinct: int
    differences: dict[int, Difference]
    seed: int
    n_names: tuple[int, int] | None = None

    def as_json(self) -> dict[str, Any]:
        """Ready for ``json.dumps``; the keys of the differences are such as "acc@1"."""
        return {**asdict(self), "differences": {f"acc@{k}": asdict(one) for k, one in self.differences.items()}}

    def __str__(self) -> str:
        """A few lines for people, in per cent."""
        lines = [
            f"{self.task}, {self.split}: {self.n_queries:,} queries ({self.n_distinct:,} distinct)",
            f"{self.second} less {self.first}, points:",
        ]
        for k, one in self.differences.items():
            value, low, high, once = (f"{100 * s:+.1f}" for s in (one.value, one.low, one.high, one.value_once))
            lines.append(
                f"acc@{k}  {value} ({low} to {high}), p {one.p_in_words}; {one.n_won:,} won, {one.n_lost:,} lost; "
                f"each mention once {once}"
            )
        if self.n_names is not None:
            n_first, n_second = (f"{n:,}" for n in self.n_names)
            which = "over names, or an order of them, that differ" if n_first == n_second else "over different names"
            lines.append(f"of linkers {which} ({n_first} and {n_second}), part of the difference")
        lines.append("in brackets the 95 % confidence interval over distinct mentions; p by random exchange of answers")
        return "\n".join(lines)


def compare_results(first: str | Path, second: str | Path, *, seed: int = 0) -> Comparison:
    """Compare two folders that `onoma.benchmarks.run_benchmark` wrote.

    Args:
        first: Results of the one system.
        second: Results of the other, on the same queries.
        seed: Of the resampling.

    Raises:
        InputError: there is nothing at a place, or it is none.
        ArtifactError: a folder does not hold results, or is damaged.
        MismatchError: the results are of different tasks, splits, protocols, dictionaries or queries, or have no k in
            common.

    Source:
        Bootstrap of paired differences and randomisation test: Noreen 1989; clusters: Davison and Hinkley 1997, 3.8.
    """
    for folder in (first, second):
        if not isinstance(folder, str | Path):
            raise InputError("results are compared by their folders", found=repr(folder))
    (about, answers), (other_about, other_answers) = (_read(Path(folder)) for folder in (first, second))
    for key in ("task", "split"):
        if about[key] != other_about[key]:
            raise MismatchError(
                f"{first} is of the {key} {about[key]}, {second} of {other_about[key]}; they cannot be compared."
            )
    are_linkers = [one["model"]["kind"] == "linker" for one in (about, other_about)]
    if are_linkers[0] != are_linkers[1]:
        of_linker, other = (first, second) if are_linkers[0] else (second, first)
        raise MismatchError(
            f"{of_linker} is of a linker, which ranks concepts, {other} of what ranks names: their figures say nothing "
            "of each other. Measure both as encoders, or both as linkers."
        )
    cutoffs = _cutoffs(about) & _cutoffs(other_about)
    if not cutoffs:
        raise MismatchError(f"{first} and {second} have no k in common at which both were measured.")
    other_answers = _in_order_of(answers, other_answers, Path(first), Path(second))
    _check_dictionaries(about, other_about, Path(first), Path(second))
    clusters = cluster_numbers([cluster_of(mention) for mention in answers["mention"]])
    n_names = (about["n_dictionary"], other_about["n_dictionary"])
    return Comparison(
        task=about["task"],
        split=about["split"],
        first=_name(about, Path(first), other_about),
        second=_name(other_about, Path(second), about),
        n_queries=len(answers),
        n_distinct=int(clusters.max()) + 1,
        differences={
            k: _difference(_right(answers, k), _right(other_answers, k), clusters, seed) for k in sorted(cutoffs)
        },
        seed=seed,
        n_names=n_names if _have_other_names(about, other_about) else None,
    )


def _read(folder: Path) -> tuple[dict[str, Any], pl.DataFrame]:
    """What ``results.json`` says, and a row for each query."""
    open_artifact(folder, "benchmark-results")
    about = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    rows = scan_parquet(folder / "predictions.parquet").select("query", "mention", "gold", "query_rank").collect()
    return about, rows.unique("query", keep="first", maintain_order=True)


def _in_order_of(answers: pl.DataFrame, others: pl.DataFrame, first: Path, second: Path) -> pl.DataFrame:
    """The second results, a row for each of the first: the queries may stand in another order.

    Raises:
        MismatchError: they are of other queries.
    """
    of_query = ["mention", "gold"]
    if answers.select(of_query).equals(others.select(of_query)):
        return others
    if len(answers) != len(others):
        why = f"{first} is of {len(answers):,} queries, {second} of {len(others):,}"
        raise MismatchError(f"{why}; they cannot be compared. Measure both with the same files.")
    numbered, others_numbered = (
        one.with_columns(nth=pl.int_range(pl.len()).over(of_query)) for one in (answers, others)
    )
    keys = [*of_query, "nth"]
    found = numbered.select(keys).join(others_numbered, on=keys, how="left", maintain_order="left")
    unknown = found.filter(pl.col("query").is_null())
    if unknown.is_empty():
        return found.select(others.columns)
    mention, gold = unknown.row(0)[:2]
    is_there = mention in others["mention"]
    why = f"is not among those of {second}" + (f" with the codes {', '.join(gold)}" if is_there else "")
    raise MismatchError(
        f"{first} and {second} are of different queries, so they cannot be compared: '{mention}' {why}. Measure both "
        "with the same files."
    )


def _have_other_names(about: dict[str, Any], other: dict[str, Any]) -> bool:
    known = [one.get("dictionary_sha256") for one in (about, other)]
    is_told = None not in known  # by results written since they tell it
    return about["n_dictionary"] != other["n_dictionary"] or (is_told and known[0] != known[1])


def _check_dictionaries(about: dict[str, Any], other: dict[str, Any], first: Path, second: Path) -> None:
    """Refuse results that were chosen from different names; those that a linker has are part of what is measured."""
    if about["model"]["kind"] == "linker":
        return
    known, other_known = about.get("dictionary_sha256"), other.get("dictionary_sha256")
    if known is not None and known == other_known:
        return
    files, other_files = about["data"], other["data"]
    differing = [
        name
        for name, entry in files.items()
        if name != f"{about['split']}_queries.txt"
        and name in other_files
        and entry["sha256"] != other_files[name]["sha256"]
    ]
    is_told = known is not None and other_known is not None  # by results written since they tell it
    if is_told or differing or about["n_dictionary"] != other["n_dictionary"]:
        what = f" (different files: {', '.join(sorted(differing))})" if differing else ""
        raise MismatchError(
            f"{first} was measured over {about['n_dictionary']:,} names, {second} over {other['n_dictionary']:,} others"
            f"{what}: the difference would be that of the dictionaries. Measure both with the same files."
        )


def _cutoffs(about: dict[str, Any]) -> set[int]:
    return {int(key.removeprefix("acc@")) for key in about if key.startswith("acc@")}


def _name(about: dict[str, Any], folder: Path, other: dict[str, Any]) -> str:
    """What was measured and where that lies; of linkers that use different stages also these."""
    stages = about["model"].get("stages")
    differ = None not in {stages, other["model"].get("stages")} and stages != other["model"]["stages"]
    return f"{name_of(about['model'])} ({folder.resolve().name}{f'; stages {stages}' if differ else ''})"


def _right(answers: pl.DataFrame, k: int) -> BoolArray:
    right: BoolArray = (answers["query_rank"] <= k).fill_null(value=False).to_numpy()
    return right


def _difference(first: BoolArray, second: BoolArray, clusters: RowArray, seed: int) -> Difference:
    gained = second.astype(np.float64) - first
    means = resampled_means(gained, clusters, seed=seed, n_resamples=_N_RESAMPLES)
    low, high = percentile_interval(means)
    sums = np.bincount(clusters, weights=gained)
    sums = sums[sums != 0]  # the others are the same either way
    random = random_from(seed)
    n_as_large = 0
    at_once = max(1, _EXCHANGED_AT_ONCE // max(1, len(sums)))
    for start in range(0, _N_RESAMPLES, at_once):
        signs = random.integers(0, 2, (min(at_once, _N_RESAMPLES - start), len(sums)), np.int8) * 2 - 1
        n_as_large += int((np.abs(signs @ sums) >= abs(sums.sum()) - 1e-9).sum())
    return Difference(
        value=float(gained.mean()),
        low=low,
        high=high,
        p_value=(n_as_large + 1) / (_N_RESAMPLES + 1),
        n_won=int((gained > 0).sum()),
        n_lost=int((gained < 0).sum()),
        value_once=cluster_mean(gained, clusters),
    )
