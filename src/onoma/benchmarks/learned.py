"""Accuracy on mentions that a system may have learned from, and on the others.

What was paired, tuned on, counted or put among the names is answered better than what is new, and a test set that
shares mentions with the training set says less than it seems to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onoma.artifacts import sha256_file
from onoma.benchmarks.biosyn import Query, cluster_of
from onoma.benchmarks.metrics import Accuracy, accuracy_at
from onoma.benchmarks.own import own_queries


@dataclass(frozen=True)
class LearnedSplit:
    """acc@k of queries whose text stands in some files with one of their codes, and of the others.

    Attributes:
        files: SHA-256 of each file, by its name.
        seen: acc@k by k of those that stand there; empty if none does.
        unseen: Of the others; empty if there are none.
    """

    files: Mapping[str, str]
    seen: Mapping[int, Accuracy]
    unseen: Mapping[int, Accuracy]

    def as_json(self) -> dict[str, Any]:
        """As ``results.json`` has it."""
        return {
            "files": dict(self.files),
            **{
                name: {
                    "n_queries": next((accuracy.n_queries for accuracy in part.values()), 0),
                    **{f"acc@{k}": accuracy.value for k, accuracy in part.items()},
                    "confidence_interval_95": {f"acc@{k}": [a.low, a.high] for k, a in part.items()},
                }
                for name, part in (("seen", self.seen), ("unseen", self.unseen))
            },
        }


def split_by_learned(
    queries: Sequence[Query], ranks: Sequence[int | None], files: Iterable[Path], *, cutoffs: Sequence[int], seed: int
) -> LearnedSplit:
    """Measure apart what stands in files of mentions, which may have been learned from.

    Args:
        queries: What was measured.
        ranks: Of each query.
        files: Each as `onoma.benchmarks.own.own_queries` reads it.
        cutoffs: The k of each acc@k.
        seed: Of the confidence intervals.

    Raises:
        InputError: a file cannot be read.
    """
    files = list(files)
    learned = {
        (cluster_of(query.text), code) for file in files for query in own_queries(file)[0] for code in query.gold
    }
    is_seen = [any((cluster_of(query.text), code) in learned for code in query.gold) for query in queries]

    def of(*, seen: bool) -> dict[int, Accuracy]:
        rows = [row for row, one in enumerate(is_seen) if one == seen]
        texts = [cluster_of(queries[row].text) for row in rows]
        return {
            k: accuracy_at([ranks[row] for row in rows], k, clusters=texts, seed=seed) for k in cutoffs if len(rows)
        }

    sums = {file.name: sha256_file(file) for file in files}
    return LearnedSplit(files=sums, seen=of(seen=True), unseen=of(seen=False))
