"""Several systems side by side: a table for a paper, of results on the same queries.

A system may have several runs, as with several seeds: its accuracy is then their mean, with their standard deviation,
and it is tested by its mean over the runs at each query. p-values against one of the systems are those of
`onoma.benchmarks.comparing`; as there are several of them at each k, they are also given as Holm corrects them.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from onoma.benchmarks.comparing import (
    LEAST_P,
    N_RESAMPLES,
    Difference,
    Measured,
    check_comparable,
    clusters_in_words,
    clusters_of,
    cutoffs_of,
    difference,
    have_other_names,
    in_order_of,
    mentions_of,
    n_distinct_of,
    p_in_words,
    read_results,
    right_at,
)
from onoma.benchmarks.metrics import DISTINCT, cluster_interval, percentile_interval, resampled_means
from onoma.errors import InputError, MismatchError, check_several, checked_path, one_of
from onoma.quantities import quantity
from onoma.types import DoubleArray, RowArray

TableFormat = Literal["markdown", "latex", "csv", "json"]
TABLE_FORMATS: tuple[TableFormat, ...] = ("markdown", "latex", "csv", "json")
_LATEX_SIGNS = {sign: rf"\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


@dataclass(frozen=True, slots=True)
class TableCell:
    """acc@k of a system, as fractions.

    Attributes:
        value: Mean over its runs.
        low: Lower end of the 95 % bootstrap interval over clusters.
        high: Upper end.
        sd: Standard deviation of its runs (n - 1); unset where there is one run.
        difference: Less the system that is compared with; unset for that one, and where nothing is compared.
        p_holm: The p-value of the difference, corrected by Holm for as many systems as are compared at this k.
        p_holm_is_bound: It comes of a p-value that is the least that can be found, and may be lower.
    """

    value: float
    low: float
    high: float
    sd: float | None
    difference: Difference | None
    p_holm: float | None
    p_holm_is_bound: bool = False


@dataclass(frozen=True, slots=True)
class TableRow:
    """A system.

    Attributes:
        name: As it was given.
        n_runs: How many results it has.
        cells: By k.
    """

    name: str
    n_runs: int
    cells: Mapping[int, TableCell]


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Systems on the same queries.

    Attributes:
        task: Name of the task.
        split: What of it was measured.
        n_queries: Number of queries.
        n_distinct_mentions: Distinct mentions among them, case aside.
        rows: Systems, in the order given.
        against: Name of the system that the others are compared with, if one is.
        seed: Of the resampling.
        have_other_names: Linkers that do not have the same names, which is part of their differences.
        clusters: What intervals and exchanges are over, in words.
    """

    task: str
    split: str
    n_queries: int
    n_distinct_mentions: int
    rows: tuple[TableRow, ...]
    against: str | None
    seed: int
    have_other_names: bool = False
    clusters: str = DISTINCT

    def as_json(self) -> dict[str, Any]:
        """Ready for ``json.dumps``; the keys of cells are such as "acc@1"."""
        rows = [
            {"name": row.name, "n_runs": row.n_runs, **{f"acc@{k}": asdict(cell) for k, cell in row.cells.items()}}
            for row in self.rows
        ]
        return {**asdict(self), "rows": rows}

    def written(self, kind: str) -> str:
        """The table as text of one of `TABLE_FORMATS`; Markdown and LaTeX in per cent.

        Raises:
            ConfigError: there is no such format.
        """
        one_of(kind, TABLE_FORMATS, "format of tables")
        if kind == "json":
            return json.dumps(self.as_json(), indent=1) + "\n"
        if kind == "csv":
            written = io.StringIO()
            csv.writer(written, lineterminator="\n").writerows(self._as_numbers())
            return written.getvalue()
        head, body = self._as_text()
        if kind == "latex":
            lines = [
                rf"% {self._in_words()}",
                rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
                r"\toprule",
                " & ".join(map(_escaped, head)) + r" \\",
                r"\midrule",
                *(" & ".join([_escaped(cells[0]), *map(_figures_in_latex, cells[1:])]) + r" \\" for cells in body),
                r"\bottomrule",
                r"\end{tabular}",
            ]
            return "\n".join(lines) + "\n"
        head, body = (
            [cell.replace("|", r"\|") for cell in head],
            [[c.replace("|", r"\|") for c in row] for row in body],
        )
        widths = [max(len(cells[column]) for cells in (head, *body)) for column in range(len(head))]
        table = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
            for cells in (head, *body)
        ]
        table.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        return "\n".join([*table, "", self._in_words()]) + "\n"

    def _as_text(self) -> tuple[list[str], list[list[str]]]:
        several = any(row.n_runs > 1 for row in self.rows)
        cutoffs, compares = list(self.rows[0].cells), self.against is not None and len(self.rows) > 1
        head = ["system", *(["runs"] if several else [])]
        for k in cutoffs:
            head += [f"acc@{k}", "95 %", *([f"less {self.against}", "p", "p (Holm)"] if compares else [])]
        body = []
        for row in self.rows:
            cells = [row.name, *([f"{row.n_runs}"] if several else [])]
            for k in cutoffs:
                cell = row.cells[k]
                spread = "" if cell.sd is None else f" ± {100 * cell.sd:.1f}"
                cells += [f"{100 * cell.value:.1f}{spread}", f"{100 * cell.low:.1f}-{100 * cell.high:.1f}"]
                if (one := cell.difference) is not None and cell.p_holm is not None:
                    value, low, high = (f"{100 * share:+.1f}" for share in (one.value, one.low, one.high))
                    holm_p = f"{'≤ ' if cell.p_holm_is_bound else ''}{cell.p_holm:.4f}"
                    cells += [f"{value} ({low} to {high})", p_in_words(one.p_value).removeprefix("= "), holm_p]
                elif compares:
                    cells += [""] * 3
            body.append(cells)
        return head, body

    def _as_numbers(self) -> list[list[str | int | float | None]]:
        """A line for each system and k."""
        head = ["system", "runs", "k", "acc", "low", "high", "sd", "difference", "difference_low", "difference_high"]
        rows: list[list[str | int | float | None]] = [[*head, "p", "p_holm"]]
        for row in self.rows:
            for k, cell in row.cells.items():
                one = cell.difference
                of_difference = [None] * 4 if one is None else [one.value, one.low, one.high, one.p_value]
                rows.append(
                    [row.name, row.n_runs, k, cell.value, cell.low, cell.high, cell.sd, *of_difference, cell.p_holm]
                )
        return rows

    def _in_words(self) -> str:
        said = [
            f"{self.task}, {self.split}: {quantity(self.n_queries, 'query', 'queries')} "
            f"({quantity(self.n_distinct_mentions, 'distinct mention')}); "
            f"per cent, 95 % bootstrap intervals over {self.clusters}"
        ]
        if any(row.n_runs > 1 for row in self.rows):
            said.append("mean and standard deviation of runs")
        if self.against is not None and len(self.rows) > 1:
            said.append(
                f"differences from {self.against} with p by random exchange of answers, and as Holm corrects it for "
                f"the {len(self.rows) - 1} at each k"
            )
        if self.have_other_names:
            said.append("the linkers have other names, or another order of them, which is part of the differences")
        return "; ".join(said) + "."


def tabulate_results(
    systems: Mapping[str, Sequence[str | Path]], *, against: str | None = None, seed: int = 0
) -> ResultTable:
    """Put results of several systems side by side.

    Args:
        systems: For each name the folders that `onoma.benchmarks.run_benchmark` wrote, one for each run.
        against: The name that the others are compared with; unset: nothing is compared.
        seed: Of the resampling.

    Raises:
        InputError: there is nothing at a place, or no system, or one without results, or no such name to compare with.
        ArtifactError: a folder does not hold results, or is damaged.
        MismatchError: the results are of different tasks, splits, protocols, dictionaries or queries, or have no k in
            common.

    Source:
        Correction for several tests: Holm 1979.
    """
    if not isinstance(systems, Mapping) or not systems:
        raise InputError(
            "there are no results to put side by side",
            expected="for each system's name the folders of its results",
            found=repr(systems),
        )
    if against is not None and against not in systems:
        raise InputError(
            "there is no such system to compare with", field="against", found=against, expected=", ".join(systems)
        )
    runs: dict[str, list[Measured]] = {}
    for name, folders in systems.items():
        check_several(folders, f"results of {name}")
        if not folders:
            raise InputError("a system without results", field=name, expected="one folder or more", found="none")
        places = [checked_path(folder).resolve() for folder in folders]
        if twice := [place for place in places if places.count(place) > 1]:
            raise InputError(
                "the same results twice in one system", path=twice[0], field=name, fix="give each run once"
            )
        runs[name] = [read_results(Path(folder)) for folder in folders]
    first, *others = (run for of_system in runs.values() for run in of_system)
    for other in others:
        check_comparable(first, other)
    cutoffs = sorted(set.intersection(*(cutoffs_of(run) for run in (first, *others))))
    if not cutoffs:
        raise MismatchError("these results have no k in common at which all were measured.")
    answers = {name: [in_order_of(first, run) for run in of_system] for name, of_system in runs.items()}
    clusters, mentions = clusters_of(first), mentions_of(first)
    right = {
        k: {name: np.stack([right_at(one, k) for one in of_system]) for name, of_system in answers.items()}
        for k in cutoffs
    }
    cells = {k: _cells(right[k], against, clusters, mentions, seed) for k in cutoffs}
    return ResultTable(
        task=first.about["task"],
        split=first.about["split"],
        n_queries=len(first.answers),
        n_distinct_mentions=n_distinct_of(first),
        rows=tuple(
            TableRow(name=name, n_runs=len(of_system), cells={k: cells[k][name] for k in cutoffs})
            for name, of_system in runs.items()
        ),
        against=against,
        seed=seed,
        have_other_names=any(have_other_names(first.about, other.about) for other in others),
        clusters=clusters_in_words(first),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected so that one below 0.05 among them is chance in at most 5 % of cases, however many they are.

    Source:
        Holm 1979, A simple sequentially rejective multiple test procedure.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda row: p_values[row])
    corrected, highest = [0.0] * len(p_values), 0.0
    for place, row in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[row]))
        corrected[row] = highest
    return corrected


def _cells(
    right: Mapping[str, DoubleArray], against: str | None, clusters: RowArray, mentions: RowArray, seed: int
) -> dict[str, TableCell]:
    """The column of one k.

    Args:
        right: Of each system 1 where a run has a query right, else 0, shape (runs, queries).
        against: The system to compare with.
        clusters: Of each query the number of its cluster.
        mentions: Of each query the number of its distinct mention.
        seed: Of the resampling.
    """
    means = {name: runs.mean(axis=0) for name, runs in right.items()}
    compared = {} if against is None else {name: mean for name, mean in means.items() if name != against}
    differences = {
        name: difference(means[str(against)], mean, clusters, mentions, seed) for name, mean in compared.items()
    }
    p_values = {name: one.p_value for name, one in differences.items()}
    corrected = dict(zip(p_values, holm([*p_values.values()]), strict=True))
    cells = {}
    for name, mean in means.items():
        low, high = _interval(mean, clusters, seed)
        runs = right[name].mean(axis=1)
        cells[name] = TableCell(
            value=float(mean.mean()),
            low=low,
            high=high,
            sd=float(runs.std(ddof=1)) if len(runs) > 1 else None,
            difference=differences.get(name),
            p_holm=corrected.get(name),
            p_holm_is_bound=name in p_values and p_values[name] <= LEAST_P,
        )
    return cells


def _interval(mean: DoubleArray, clusters: RowArray, seed: int) -> tuple[float, float]:
    """As a benchmark has it of one run; of the mean over several, resampled in the same way."""
    if np.isin(mean, (0, 1)).all():
        return cluster_interval((mean == 1).tolist(), [*map(str, clusters.tolist())], seed=seed)
    return percentile_interval(resampled_means(mean, clusters, seed=seed, n_resamples=N_RESAMPLES))


def _escaped(text: str) -> str:
    return "".join(_LATEX_SIGNS.get(sign, sign) for sign in text)


def _figures_in_latex(text: str) -> str:
    figures = _escaped(text).replace("±", r"$\pm$").replace("≤", r"$\leq$")
    figures = re.sub(r"(?<![\d$])[+-](?=\d)", lambda match: f"${match.group()}$", figures)
    return re.sub(r"(?<=\d)-(?=\d)", "--", figures)
