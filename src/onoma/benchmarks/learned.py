"""Accuracy on mentions that a system may have learned from, and on the others.

What was paired, tuned on, counted or put among the names is answered better than what is new, and a test set that
shares mentions with the training set says less than it seems to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from onoma.artifacts import sha256_file
from onoma.benchmarks.biosyn import Query
from onoma.benchmarks.own import own_queries
from onoma.benchmarks.parts import accuracy_of_part
from onoma.benchmarks.results import LearnedSplit, told_apart
from onoma.codes import other_forms, other_forms_in_words
from onoma.pairs import MentionFormat
from onoma.pairs.mentions import cased_alike


@dataclass(frozen=True, eq=False)
class LearnedMentions:
    """What stands in files that a system has learned from.

    Attributes:
        files: SHA-256 of each file, by its name.
        codes: The codes of each text, case aside.
    """

    files: Mapping[str, str]
    codes: Mapping[str, frozenset[str]]

    @classmethod
    def read(
        cls, files: Sequence[Path], successors: Mapping[str, str], mention_format: MentionFormat | None = None
    ) -> LearnedMentions:
        """Read the files.

        Args:
            files: Each as `onoma.benchmarks.own.own_queries` reads it.
            successors: Of retired codes, as they count in the queries.
            mention_format: Of the files.

        Raises:
            InputError: a file cannot be read.
        """
        codes: dict[str, set[str]] = {}
        written = mention_format or MentionFormat()
        for file in files:
            for query in own_queries(file, mention_format=written.fitting(file))[0]:
                current = {successors.get(code, code) for code in query.gold}
                codes.setdefault(cased_alike(query.text), set()).update(current)
        sums = {name: sha256_file(file) for name, file in told_apart(files).items()}
        return cls(sums, {text: frozenset(of_text) for text, of_text in codes.items()})

    def doubts(self, queries: Sequence[Query]) -> Iterator[str]:
        """Whether codes have another form than those of the queries, so that nothing would seem to be learned from."""
        shared = [query for query in queries if cased_alike(query.text) in self.codes]
        if shared and not any(self.has(query) for query in shared):
            theirs = {code for query in shared for code in self.codes[cased_alike(query.text)]}
            found = other_forms(theirs, {code for query in queries for code in query.gold})
            if found:
                yield f"learned from (--learned-from): {other_forms_in_words(found, where='the queries')}"

    @cached_property
    def all_codes(self) -> frozenset[str]:
        """Those of all texts."""
        return frozenset().union(*self.codes.values())

    def has(self, query: Query) -> bool:
        """Whether a query's text stands there with one of its codes."""
        return not query.gold.isdisjoint(self.codes.get(cased_alike(query.text), frozenset()))

    def split(
        self, queries: Sequence[Query], ranks: Sequence[int | None], *, cutoffs: Sequence[int], seed: int
    ) -> LearnedSplit:
        """Measure apart the queries that stand there.

        Args:
            queries: What was measured.
            ranks: Of each query.
            cutoffs: The k of each acc@k.
            seed: Of the confidence intervals.
        """
        seen, unseen = _divided(range(len(queries)), lambda row: self.has(queries[row]))
        of_seen, of_others = _divided(unseen, lambda row: not queries[row].gold.isdisjoint(self.all_codes))
        parts = (
            accuracy_of_part(queries, ranks, rows, cutoffs=cutoffs, seed=seed)
            for rows in (seen, unseen, of_seen, of_others)
        )
        return LearnedSplit(self.files, *parts)


def _divided(rows: Iterable[int], holds: Callable[[int], bool]) -> tuple[list[int], list[int]]:
    """The rows for which something holds, and the others."""
    kept = list(rows)
    return [row for row in kept if holds(row)], [row for row in kept if not holds(row)]
