"""What to know about a terminology before using it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from onoma.artifacts import origins_in_rows
from onoma.quantities import quantity
from onoma.terminology.normalised_columns import normalise_expr
from onoma.terminology.tables import ACTIVE

_SHOWN = 12


@dataclass(frozen=True)
class TerminologyInfo:
    """Figures of a terminology; ``str()`` is a text for people.

    Attributes:
        n_concepts: In all.
        n_active: Not obsolete.
        n_names: Rows.
        n_suppressed: Of them suppressed.
        n_distinct_names: Distinct (concept, text) after normalisation "sapbert".
        names_per_concept: Mean of distinct names over concepts with any.
        concepts_by_names: For each number of distinct names, ascending: how many concepts have exactly that many.
        n_homonyms: Texts, normalised, that several active concepts share.
        n_relations: Rows.
        n_definitions: Rows.
        n_cross_references: Rows.
        languages: Names for each language, most frequent first; likewise the following.
        sources: Names for each source.
        term_types: Names for each term type.
        semantic_types: Concepts for each semantic type.
        relations: Rows for each relation.
        cross_references: Rows for each vocabulary that is referred to: the part of the code before the colon.
        origins: What it was read from, with licences, see `onoma.artifacts.origins_of`.
    """

    n_concepts: int
    n_active: int
    n_names: int
    n_suppressed: int
    n_distinct_names: int
    names_per_concept: float
    concepts_by_names: dict[int, int]
    n_homonyms: int
    n_relations: int
    n_definitions: int
    n_cross_references: int
    languages: dict[str, int]
    sources: dict[str, int]
    term_types: dict[str, int]
    semantic_types: dict[str, int]
    relations: dict[str, int]
    cross_references: dict[str, int]
    origins: Sequence[Mapping[str, Any]]

    def names_at(self, share: float) -> int:
        """The smallest n such that at least this share of the concepts with names has n distinct names or fewer.

        Args:
            share: From 0 to 1: 0.5 for the median, 1 for the most names of a concept.

        Returns:
            0 if no concept has a name.
        """
        numbers = [number for number in self.concepts_by_names if number]
        cumulated = itertools.accumulate(self.concepts_by_names[number] for number in numbers)
        n_named = sum(self.concepts_by_names[number] for number in numbers)
        return next((number for number, so_far in zip(numbers, cumulated, strict=True) if so_far >= share * n_named), 0)

    def __str__(self) -> str:
        obsolete = self.n_concepts - self.n_active
        nameless = self.concepts_by_names.get(0, 0)
        rows = [
            ("concepts", f"{self.n_concepts:,} ({self.n_active:,} active, {obsolete:,} obsolete)"),
            (
                "names",
                f"{self.n_names:,} ({self.n_suppressed:,} suppressed), {self.n_distinct_names:,} distinct in a concept",
            ),
            ("names per concept", f"{self.names_per_concept:.2f} distinct ones on average; {self.quantiles()}"),
            ("without names", quantity(nameless, "concept")) if nameless else ("", ""),
            ("homonyms", f"{quantity(self.n_homonyms, 'name')} shared by several active concepts"),
            ("definitions", f"{self.n_definitions:,}"),
            ("languages", _shown(self.languages)),
            ("sources", _shown(self.sources)),
            ("term types", _shown(self.term_types)),
            ("semantic types", _shown(self.semantic_types)),
            ("relations", f"{self.n_relations:,}{_after(self.relations)}"),
            ("cross-references", f"{self.n_cross_references:,}{_after(self.cross_references)}"),
            *origins_in_rows(self.origins),
        ]
        width = max(len(title) for title, _ in rows)
        return "\n".join(f"{title:<{width}}  {text}" for title, text in rows if text)

    def quantiles(self) -> str:
        """How many names a concept has, as a person reads it."""
        return (
            f"median {self.names_at(0.5):,}, 90 % have up to {self.names_at(0.9):,}, 99 % up to "
            f"{self.names_at(0.99):,}, most {self.names_at(1):,}"
        )


def gather_information(
    concepts: pl.LazyFrame,
    names: pl.LazyFrame,
    relations: pl.LazyFrame,
    cross_references: pl.LazyFrame,
    *,
    n_definitions: int,
    origins: Sequence[Mapping[str, Any]] = (),
) -> TerminologyInfo:
    """Count, in streams: what stays in memory is 12 bytes for each distinct name.

    Names are told apart by hashes of 64 bits. Among 17 million, two different ones are taken for equal once in
    100,000 terminologies.
    """
    is_active = concepts.select(pl.col("status") == ACTIVE).collect().to_series()
    n_names, n_suppressed = names.select(pl.len(), pl.col("is_suppressed").sum()).collect().row(0)
    distinct = (
        names.select("concept_row", text=normalise_expr(pl.col("text")).hash()).unique().collect(engine="streaming")
    )
    per_concept = distinct.lazy().group_by("concept_row").len("names").group_by("names").len().sort("names").collect()
    concepts_by_names = {int(number): int(count) for number, count in per_concept.iter_rows()}
    n_named = sum(concepts_by_names.values())
    if n_named < len(is_active):
        concepts_by_names = {0: len(is_active) - n_named, **concepts_by_names}
    shared = (
        distinct.lazy()
        .filter(pl.lit(is_active.gather(distinct["concept_row"])))
        .group_by("text")
        .len()
        .select((pl.col("len") > 1).sum())
    )
    relation_counts = _counts(relations, "relation")
    vocabularies = cross_references.select(vocabulary=pl.col("code").str.extract("^([^:]*):").fill_null(""))
    reference_counts = _counts(vocabularies, "vocabulary")
    return TerminologyInfo(
        n_concepts=len(is_active),
        n_active=int(is_active.sum()),
        n_names=n_names,
        n_suppressed=n_suppressed,
        n_distinct_names=len(distinct),
        names_per_concept=len(distinct) / n_named if n_named else 0.0,
        concepts_by_names=concepts_by_names,
        n_homonyms=int(shared.collect().item()),
        n_relations=sum(relation_counts.values()),
        n_definitions=n_definitions,
        n_cross_references=sum(reference_counts.values()),
        languages=_counts(names, "language"),
        sources=_counts(names, "source"),
        term_types=_counts(names, "term_type"),
        semantic_types=_counts(
            concepts.select("semantic_types").explode("semantic_types").drop_nulls(), "semantic_types"
        ),
        relations=relation_counts,
        cross_references=reference_counts,
        origins=origins,
    )


def _counts(table: pl.LazyFrame, column: str) -> dict[str, int]:
    counted = table.group_by(column).len().collect(engine="streaming").sort(["len", column], descending=[True, False])
    return dict(counted.iter_rows())


def _shown(counts: dict[str, int]) -> str:
    """The most frequent ones; nothing if there is but one and it is blank."""
    if not any(counts):
        return ""
    shown = [f"{word or '-'} {count:,}" for word, count in itertools.islice(counts.items(), _SHOWN)]
    more = f", and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
    return ", ".join(shown) + more


def _after(counts: dict[str, int]) -> str:
    return f": {shown}" if (shown := _shown(counts)) else ""
