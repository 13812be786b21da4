"""Whether one system is better than another, by their results on the same queries.

Two systems that answer the same mentions are mostly right and wrong together, so their intervals may overlap widely
even if the difference is clear. Therefore the difference itself is resampled, with all queries of each distinct mention
that is drawn, and tested by exchanging the two systems' answers.
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
from onoma.benchmarks.metrics import DISTINCT, cluster_mean, cluster_numbers, percentile_interval, resampled_means
from onoma.benchmarks.results import CONCEPTS, PREDICTIONS_NAME, name_of
from onoma.encoders.model_card import RESULTS_FORMAT, RESULTS_KIND, RESULTS_NAME
from onoma.errors import InputError, MismatchError, checked_path
from onoma.pairs.mentions import cased_alike
from onoma.quantities import quantity
from onoma.randomness import random_from
from onoma.types import DoubleArray, RowArray

N_RESAMPLES = 10_000
LEAST_P = 1 / (N_RESAMPLES + 1)
"""The least p-value that so many exchanges can find."""
_EXCHANGED_AT_ONCE = 1_000_000
"""Signs of clusters that are in memory together."""


@dataclass(frozen=True, slots=True)
class Difference:
    """acc@k of the second system minus that of the first, as fractions.

    Attributes:
        value: Above 0 if the second is better.
        low: Lower end of the 95 % bootstrap interval over clusters.
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


def p_in_words(p_value: float) -> str:
    """What stands behind "p"; the least that so many exchanges can give is a bound."""
    return f"≤ {LEAST_P:.4f}" if p_value <= LEAST_P else f"= {p_value:.4f}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two results of a task and split, side by side.

    Attributes:
        task: Name of the task.
        split: The part of it that was measured.
        first: Name of the first system.
        second: Name of the second.
        n_queries: Number of queries.
        n_distinct_mentions: Distinct mentions among them, ignoring case.
        differences: By k of acc@k.
        seed: Of the resampling.
        n_names: For two linkers, how many names each has, if these, or their order, are not the same.
        clusters: What intervals and exchanges are over, in words.
    """

    task: str
    split: str
    first: str
    second: str
    n_queries: int
    n_distinct_mentions: int
    differences: dict[int, Difference]
    seed: int
    n_names: tuple[int, int] | None = None
    clusters: str = DISTINCT

    def as_json(self) -> dict[str, Any]:
        """Ready for ``json.dumps``; the keys of the differences are such as "acc@1"."""
        return {**asdict(self), "differences": {f"acc@{k}": asdict(one) for k, one in self.differences.items()}}

    def __str__(self) -> str:
        """A few lines for people, in per cent."""
        lines = [
            f"{self.task}, {self.split}: {quantity(self.n_queries, 'query', 'queries')} "
            f"({self.n_distinct_mentions:,} distinct)",
            f"{self.second} less {self.first}, points:",
        ]
        for k, one in self.differences.items():
            value, low, high, once = (f"{100 * s:+.1f}" for s in (one.value, one.low, one.high, one.value_once))
            lines.append(
                f"acc@{k}  {value} ({low} to {high}), p {p_in_words(one.p_value)}; {one.n_won:,} won, "
                f"{one.n_lost:,} lost; each mention once {once}"
            )
        if self.n_names is not None:
            n_first, n_second = (f"{n:,}" for n in self.n_names)
            which = "over names, or an order of them, that differ" if n_first == n_second else "over different names"
            lines.append(f"of linkers {which} ({n_first} and {n_second}), part of the difference")
        lines.append(f"in brackets the 95 % confidence interval over {self.clusters}; p by random exchange of answers")
        return "\n".join(lines)


def compare_results(first: str | Path, second: str | Path, *, seed: int = 0) -> Comparison:
    """Compare two folders that `onoma.benchmarks.run_benchmark` wrote.

    Args:
        first: Results of one system.
        second: Results of the other, on the same queries.
        seed: Of the resampling.

    Raises:
        InputError: there is nothing at a place, or it is not a path.
        ArtifactError: a folder does not hold results, or is damaged.
        MismatchError: the results are of different tasks, splits, protocols, dictionaries or queries, or have no k in
            common.

    Source:
        Bootstrap of paired differences and randomisation test: Noreen 1989; clusters: Davison and Hinkley 1997, 3.8.
    """
    for folder in (first, second):
        if not isinstance(folder, str | Path):
            raise InputError("results are compared by their folders", found=repr(folder))
    one, other = (read_results(checked_path(folder)) for folder in (first, second))
    check_comparable(one, other)
    cutoffs = cutoffs_of(one) & cutoffs_of(other)
    if not cutoffs:
        raise MismatchError(f"{first} and {second} have no k in common at which both were measured.")
    other_answers = in_order_of(one, other)
    clusters = clusters_of(one)
    n_names = (one.about["n_dictionary"], other.about["n_dictionary"])
    return Comparison(
        task=one.about["task"],
        split=one.about["split"],
        first=_name(one, other),
        second=_name(other, one),
        n_queries=len(one.answers),
        n_distinct_mentions=n_distinct_of(one),
        differences={
            k: difference(right_at(one.answers, k), right_at(other_answers, k), clusters, mentions_of(one), seed)
            for k in sorted(cutoffs)
        },
        seed=seed,
        n_names=n_names if have_other_names(one.about, other.about) else None,
        clusters=clusters_in_words(one),
    )


def changed_answers(first: str | Path, second: str | Path, *, k: int = 1) -> pl.DataFrame:
    """The queries that only one of two results has right, a row for each part of them, for the analysis of errors.

    Columns: ``query`` (of the first results), ``mention``, ``part``, ``gold``, ``won`` (whether the second is the one
    that has it right), and for each result the code, the name and the score of its first candidate (``first_code`` to
    ``second_score``).

    Args:
        first: Results of one system.
        second: Results of the other, on the same queries.
        k: What counts as right: something among the first ``k``.

    Raises:
        OnomaError: as `compare_results`.
    """
    one, other = (read_results(checked_path(folder)) for folder in (first, second))
    check_comparable(one, other)
    if k not in cutoffs_of(one) & cutoffs_of(other):
        known = ", ".join(map(str, sorted(cutoffs_of(one) & cutoffs_of(other))))
        raise MismatchError(f"{first} and {second} were not both measured at k = {k}, but at {known or 'no common k'}.")
    others = in_order_of(one, other)
    right, others_right = right_at(one.answers, k), right_at(others, k)
    changed = pl.DataFrame(
        {"query": one.answers["query"], "other": others["query"], "won": others_right > right}
    ).filter(pl.Series(right != others_right))
    sides = []
    for name, folder, key in (("first", one.folder, "query"), ("second", other.folder, "other")):
        best = {
            f"{name}_code": pl.col("candidate_ids").list.first(),
            f"{name}_name": pl.col("candidate_names").list.first(),
            f"{name}_score": pl.col("scores").list.first(),
        }
        rows = scan_parquet(folder / PREDICTIONS_NAME).with_columns(**best).rename({"query": key}).collect()
        sides.append(rows.with_columns(place=pl.int_range(pl.len()).over(key)))
    own = sides[0].select("query", "place", "mention", "part", "gold", pl.col("^first_.*$"))
    theirs = sides[1].select("other", "place", pl.col("^second_.*$"))
    joined = changed.join(own, on="query", maintain_order="left").join(
        theirs, on=["other", "place"], maintain_order="left"
    )
    return joined.select(
        "query", "mention", "part", pl.col("gold").list.join("|"), "won", pl.col("^(first|second)_.*$")
    )


@dataclass(frozen=True, eq=False)
class Measured:
    """What a run of a benchmark wrote.

    Attributes:
        folder: Where.
        about: What ``results.json`` says.
        answers: A row for each query that means a concept: ``query``, ``mention``, ``cluster``, ``gold``,
            ``query_rank``. What is one code where a concept is called so (``a|b``) is two here, as elsewhere.
    """

    folder: Path
    about: dict[str, Any]
    answers: pl.DataFrame


def read_results(folder: Path) -> Measured:
    """Read what a run of a benchmark wrote.

    Raises:
        InputError: there is nothing.
        ArtifactError: it is something else, or damaged.
    """
    open_artifact(folder, RESULTS_KIND, format_version=RESULTS_FORMAT, oldest=RESULTS_FORMAT)
    about = json.loads((folder / RESULTS_NAME).read_text(encoding="utf-8"))
    rows = scan_parquet(folder / PREDICTIONS_NAME).filter(~pl.col("no_concept"))
    codes = pl.col("gold").list.join("|").str.split("|").list.eval(pl.element().str.strip_chars())
    gold = codes.list.unique().list.sort().alias("gold")
    rows = rows.select("query", "mention", "cluster", gold, "query_rank")
    return Measured(folder, about, rows.collect().unique("query", keep="first", maintain_order=True))


def clusters_of(measured: Measured) -> RowArray:
    """Of each query the number of its cluster, shape (queries,)."""
    keys = measured.answers.select("mention", "cluster").iter_rows()
    return cluster_numbers([cased_alike(mention) if cluster is None else cluster for mention, cluster in keys])


def mentions_of(measured: Measured) -> RowArray:
    """Of each query the number of its distinct mention, shape (queries,)."""
    return cluster_numbers([cased_alike(mention) for mention in measured.answers["mention"]])


def n_distinct_of(measured: Measured) -> int:
    """How many distinct mentions there are."""
    return int(mentions_of(measured).max()) + 1


def clusters_in_words(measured: Measured) -> str:
    """What intervals are over."""
    return str(measured.about["clusters"])


def check_comparable(one: Measured, other: Measured) -> None:
    """Refuse two results whose difference would not be that of two systems.

    Raises:
        MismatchError: they are of different tasks, splits, protocols or dictionaries.
    """
    first, second = one.folder, other.folder
    for key in ("task", "split"):
        if one.about[key] != other.about[key]:
            raise MismatchError(
                f"{first} is of the {key} {one.about[key]}, {second} of {other.about[key]}; they cannot be compared."
            )
    if clusters_in_words(one) != clusters_in_words(other):
        raise MismatchError(
            f"{first} has intervals over {clusters_in_words(one)}, {second} over {clusters_in_words(other)}: measure "
            "both with the same --cluster, or none."
        )
    are_linkers = [_ranks_concepts(side.about) for side in (one, other)]
    if are_linkers[0] != are_linkers[1]:
        of_linker, names = (first, second) if are_linkers[0] else (second, first)
        raise MismatchError(
            f"{of_linker} is of a linker, which ranks concepts, {names} of what ranks names: their figures say nothing "
            "of each other. Measure both as encoders, or both as linkers (a baseline ranks a linker's concepts with "
            "--linker and --baseline together, an encoder alone with --linker and --stages dense)."
        )
    _check_dictionaries(one.about, other.about, first, second)


def in_order_of(one: Measured, other: Measured) -> pl.DataFrame:
    """The second results, a row for each of the first: the queries may stand in another order.

    Raises:
        MismatchError: they are of other queries.
    """
    answers, others, first, second = one.answers, other.answers, one.folder, other.folder
    are_clustered = all(side["cluster"].null_count() == 0 for side in (answers, others))
    of_query = ["mention", "gold", *(["cluster"] if are_clustered else [])]
    if answers.select(of_query).equals(others.select(of_query)):
        return others
    if len(answers) != len(others):
        why = f"{first} is of {len(answers):,} queries, {second} of {len(others):,}"
        raise MismatchError(f"{why}; they cannot be compared. Measure both with the same files and --successors.")
    numbered, others_numbered = (
        side.with_columns(nth=pl.int_range(pl.len()).over(of_query)) for side in (answers, others)
    )
    keys = [*of_query, "nth"]
    found = numbered.select(keys).join(others_numbered, on=keys, how="left", maintain_order="left")
    unknown = found.filter(pl.col("query").is_null())
    if unknown.is_empty():
        return found.select(others.columns)
    mention, gold, *clusters = unknown.row(0)[: len(of_query)]
    is_there = mention in others["mention"]
    with_it = f"the codes {', '.join(gold)}" + "".join(f" in {cluster}" for cluster in clusters)
    why = f"is not among those of {second}" + (f" with {with_it}" if is_there else "")
    raise MismatchError(
        f"{first} and {second} are of different queries, so they cannot be compared: '{mention}' {why}. Measure both "
        "with the same files, and with --successors or without."
    )


def _ranks_concepts(about: dict[str, Any]) -> bool:
    return bool(about["model"]["kind"] == "linker" or about["model"].get("ranks") == CONCEPTS)


def have_other_names(about: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two results, by their ``results.json``, were chosen from other names or an order of them."""
    return bool(about["dictionary_sha256"] != other["dictionary_sha256"])


def _check_dictionaries(about: dict[str, Any], other: dict[str, Any], first: Path, second: Path) -> None:
    """Refuse results that were chosen from different names; those that a linker has are part of what is measured."""
    if _ranks_concepts(about) or not have_other_names(about, other):
        return
    files, other_files = about["data"], other["data"]
    differing = [
        name
        for name, entry in files.items()
        if name != f"{about['split']}_queries.txt"
        and name in other_files
        and entry["sha256"] != other_files[name]["sha256"]
    ]
    what = f" (different files: {', '.join(sorted(differing))})" if differing else ""
    raise MismatchError(
        f"{first} was measured over {about['n_dictionary']:,} names, {second} over {other['n_dictionary']:,} others"
        f"{what}: the difference would be that of the dictionaries. Measure both with the same files."
    )


def cutoffs_of(measured: Measured) -> set[int]:
    """The k of each acc@k."""
    return {int(key.removeprefix("acc@")) for key in measured.about if key.startswith("acc@")}


def _name(measured: Measured, other: Measured) -> str:
    """What was measured and where that lies; of linkers that use different stages also these."""
    model, of_other = measured.about["model"], other.about["model"]
    stages = model.get("stages")
    differ = None not in {stages, of_other.get("stages")} and stages != of_other["stages"]
    return f"{name_of(model)} ({measured.folder.resolve().name}{f'; stages {stages}' if differ else ''})"


def right_at(answers: pl.DataFrame, k: int) -> DoubleArray:
    """1 for each query that has something right among the first ``k``, else 0; float64, shape (queries,)."""
    right: DoubleArray = (answers["query_rank"] <= k).fill_null(value=False).cast(pl.Float64).to_numpy()
    return right


def difference(
    first: DoubleArray, second: DoubleArray, clusters: RowArray, mentions: RowArray, seed: int
) -> Difference:
    """How much better the second system is.

    Args:
        first: Of each query how right the first system is: 1 or 0, or its mean over several runs, shape (queries,).
        second: Likewise.
        clusters: Of each query the number of its cluster.
        mentions: Of each query the number of its distinct mention.
        seed: Of the resampling.
    """
    gained = second - first
    means = resampled_means(gained, clusters, seed=seed, n_resamples=N_RESAMPLES)
    low, high = percentile_interval(means)
    sums = np.bincount(clusters, weights=gained)
    sums = sums[sums != 0]  # the others are the same either way
    random = random_from(seed)
    n_as_large = 0
    at_once = max(1, _EXCHANGED_AT_ONCE // max(1, len(sums)))
    for start in range(0, N_RESAMPLES, at_once):
        signs = random.integers(0, 2, (min(at_once, N_RESAMPLES - start), len(sums)), np.int8) * 2 - 1
        n_as_large += int((np.abs(signs @ sums) >= abs(sums.sum()) - 1e-9).sum())
    return Difference(
        value=float(gained.mean()),
        low=low,
        high=high,
        p_value=(n_as_large + 1) / (N_RESAMPLES + 1),
        n_won=int((gained > 0).sum()),
        n_lost=int((gained < 0).sum()),
        value_once=cluster_mean(gained, mentions),
    )
