"""Accuracy on parts of the queries: where a system is right, and where it is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onoma.benchmarks.biosyn import Query
from onoma.benchmarks.candidates import Candidates
from onoma.benchmarks.metrics import Accuracy, accuracy_at
from onoma.errors import InputError

WRITTEN_AS = {
    "one": "written as a name",
    "several": "written as a name of several concepts",
    "none": "written as no name",
}
"""Parts of the queries by how many concepts have a name that is written as they are, and what a report calls them."""
MOST_GROUPS = 100
"""Values of a column that queries are measured apart by."""


def accuracy_of_part(
    queries: Sequence[Query], ranks: Sequence[int | None], rows: Sequence[int], *, cutoffs: Iterable[int], seed: int
) -> dict[int, Accuracy]:
    """acc@k by k of some queries; empty if there are none.

    Args:
        queries: All of them.
        ranks: Of each.
        rows: Which count, by position.
        cutoffs: The k of each acc@k.
        seed: Of the confidence intervals.
    """
    clusters, of_rows = [queries[row].cluster_key for row in rows], [ranks[row] for row in rows]
    return {k: accuracy_at(of_rows, k, clusters=clusters, seed=seed) for k in cutoffs if rows}


def by_names(
    queries: Sequence[Query], ranks: Sequence[int | None], exact: Candidates, *, cutoffs: Iterable[int], seed: int
) -> dict[str, dict[int, Accuracy]]:
    """acc@k by k of the queries that are written as names are, right or wrong ones, and of the others.

    Look-up answers the first; what a system adds shows in the others. Of a composite query each part is written as a
    name, or the query is not. A line of a dictionary is of one concept, whatever ids it has.

    Args:
        queries: All of them.
        ranks: Of each.
        exact: Names that are written as each part of them is, once both are normalised.
        cutoffs: The k of each acc@k.
        seed: Of the confidence intervals.

    Returns:
        By the keys of `WRITTEN_AS`, those without queries left out.
    """
    written = [_written_as(query, exact) for query in queries]
    parts = {what: [row for row, one in enumerate(written) if one == what] for what in WRITTEN_AS}
    return {
        what: accuracy_of_part(queries, ranks, rows, cutoffs=cutoffs, seed=seed) for what, rows in parts.items() if rows
    }


def _written_as(query: Query, exact: Candidates) -> str:
    of_parts = [[frozenset(candidate.ids) for candidate in exact[part]] for part in query.asked]
    if not all(of_parts):
        return "none"
    return "one" if all(frozenset.intersection(*ids) for ids in of_parts) else "several"


def by_group(
    queries: Sequence[Query],
    ranks: Sequence[int | None],
    groups: Iterable[str],
    *,
    cutoffs: Iterable[int],
    seed: int,
) -> dict[str, dict[int, Accuracy]]:
    """acc@k by k of the queries of each group, the largest first.

    Args:
        queries: All of them.
        ranks: Of each.
        groups: All of them; one may have no query, if its mentions are all of no concept, and then no acc@k.
        cutoffs: The k of each acc@k.
        seed: Of the confidence intervals.
    """
    rows_of: dict[str, list[int]] = {group: [] for group in groups}
    for row, query in enumerate(queries):
        rows_of[query.group or ""].append(row)
    largest_first = sorted(rows_of, key=lambda group: (-len(rows_of[group]), group))
    return {
        group: accuracy_of_part(queries, ranks, rows_of[group], cutoffs=cutoffs, seed=seed) for group in largest_first
    }


def check_groups(queries: Sequence[Query], column: str | None, path: Path) -> None:
    """Refuse more groups than anybody reads, such as documents.

    Raises:
        InputError: there are more than `MOST_GROUPS`.
    """
    groups = {query.group for query in queries}
    if len(groups) > MOST_GROUPS:
        raise InputError(
            "too many groups to measure each apart",
            path=path,
            field=column,
            expected=f"at most {MOST_GROUPS} different values",
            found=f"{len(groups):,}",
            fix="name a column of fewer (--group); what is only not independent, such as documents, is a cluster "
            "(--cluster)",
        )


def part_as_json(part: Mapping[int, Accuracy]) -> dict[str, Any]:
    """acc@k of some queries as ``results.json`` has it."""
    return {"n_queries": n_queries_of(part), **accuracy_as_json(part)}


def accuracy_as_json(accuracy: Mapping[int, Accuracy]) -> dict[str, Any]:
    """acc@k and its intervals as ``results.json`` has them."""
    return {
        **{f"acc@{k}": one.value for k, one in accuracy.items()},
        "confidence_interval_95": {f"acc@{k}": [one.low, one.high] for k, one in accuracy.items()},
    }


def n_queries_of(part: Mapping[int, Accuracy]) -> int:
    """How many queries a part has."""
    return next((accuracy.n_queries for accuracy in part.values()), 0)
