"""Accuracy on mentions that a system may have learned from, and on the others.

What was paired, tuned on, counted or put among the names is answered better than what is new, and a test set that
shares mentions with the training set says less than it seems to.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from onoma.artifacts import sha256_file
from onoma.benchmarks.biosyn import Query
from onoma.benchmarks.candidates import all_codes
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
        queries: The mentions.
    """

    files: Mapping[str, str]
    queries: Sequence[Query]

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
        written = mention_format or MentionFormat()
        read = [own_queries(file, mention_format=written.fitting(file))[0] for file in files]
        sums = {name: sha256_file(file) for name, file in told_apart(files).items()}
        return cls(sums, [query.led_on(successors) for of_file in read for query in of_file])

    def meant_among(self, concept_ids: Container[str]) -> LearnedMentions:
        """The same, as they are meant among these concepts."""
        return LearnedMentions(self.files, [query.meant_among(concept_ids) for query in self.queries])

    @cached_property
    def codes(self) -> Mapping[str, frozenset[str]]:
        """Those of each text, case aside."""
        codes: dict[str, set[str]] = {}
        for query in self.queries:
            codes.setdefault(cased_alike(query.text), set()).update(query.gold)
        return {text: frozenset(of_text) for text, of_text in codes.items()}

    def doubts(self, queries: Sequence[Query]) -> Iterator[str]:
        """Whether codes have another form than those of the queries, so that nothing would seem to be learned from."""
        shared = [query for query in queries if cased_alike(query.text) in self.codes]
        if shared and not any(self.has(query) for query in shared):
            theirs = {code for query in shared for code in self.codes[cased_alike(query.text)]}
            found = other_forms(theirs, {code for query in queries for code in query.gold})
            if found:
                yield f"learned from (--learned-from): {other_forms_in_words(found, where='the queries')}"

    @cached_property
    def _codes_of_all(self) -> tuple[frozenset[str], frozenset[str]]:
        """Those of all texts, and all by which their concepts are meant."""
        codes = frozenset().union(*self.codes.values())
        return codes, all_codes(codes)

    def has(self, query: Query) -> bool:
        """Whether a query's text stands there with one of its codes."""
        codes = self.codes.get(cased_alike(query.text), frozenset())
        return _is_one_of(query, codes, all_codes(codes))

    def has_concept(self, query: Query) -> bool:
        """Whether one of a query's codes stands there, with whatever text."""
        return _is_one_of(query, *self._codes_of_all)

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
        of_seen, of_others = _divided(unseen, lambda row: self.has_concept(queries[row]))
        parts = (
            accuracy_of_part(queries, ranks, rows, cutoffs=cutoffs, seed=seed)
            for rows in (seen, unseen, of_seen, of_others)
        )
        return LearnedSplit(self.files, *parts)


def _is_one_of(query: Query, codes: Set[str], meant_by: Set[str]) -> bool:
    """Whether a query means a concept of these codes, by which it is meant: of ``a|b`` each of the two is the other."""
    return not (query.gold.isdisjoint(meant_by) and all_codes(query.gold).isdisjoint(codes))


def _divided(rows: Iterable[int], holds: Callable[[int], bool]) -> tuple[list[int], list[int]]:
    """The rows for which something holds, and the others."""
    kept = list(rows)
    return [row for row in kept if holds(row)], [row for row in kept if not holds(row)]
