"""What a person wants to know about a terminology before using it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from onoma.terminology.normalisation import normalise_expr
from onoma.terminology.tables import ACTIVE

_SHOWN = 12


@dataclass(frozen=True)
class TerminologyInfo:
    """Figures of a terminology; ``str()`` is a text for a person.

    Attributes:
        n_concepts: In all.
        n_active: Not obsolete.
        n_names: Rows.
        n_suppressed: Of them suppressed.
        n_distinct_names: Distinct (concept, text) after normalisation "sapbert".
        names_per_concept: Mean of names over concepts with any.
        most_names: Of one concept.
        n_homonyms: Texts, normalised, that several active concepts share.
        n_relations: Rows.
        n_definitions: Rows.
        n_cross_references: Rows.
        languages: Names for each language, most frequent first; so the following.
        sources: Names for each source.
        term_types: Names for each term type.
        semantic_types: Concepts for each semantic type.
        relations: Rows for each relation.
    """

    n_concepts: int
    n_active: int
    n_names: int
    n_suppressed: int
    n_distinct_names: int
    names_per_concept: float
    most_names: int
    n_homonyms: int
    n_relations: int
    n_definitions: int
    n_cross_references: int
    languages: dict[str, int]
    sources: dict[str, int]
    term_types: dict[str, int]
    semantic_types: dict[str, int]
    relations: dict[str, int]

    def __str__(self) -> str:
        obsolete = self.n_concepts - self.n_active
        lines = [
            f"concepts        {self.n_concepts:,} ({self.n_active:,} active, {obsolete:,} obsolete)",
            f"names           {self.n_names:,} ({self.n_suppressed:,} suppressed), {self.n_distinct_names:,} distinct",
            f"names/concept   {self.names_per_concept:.2f} on average, {self.most_names:,} at most",
            f"homonyms        {self.n_homonyms:,} names shared by several active concepts",
            f"relations       {self.n_relations:,}",
            f"definitions     {self.n_definitions:,}",
            f"cross-references {self.n_cross_references:,}",
        ]
        for title, counts in (
            ("languages", self.languages),
            ("sources", self.sources),
            ("term types", self.term_types),
            ("semantic types", self.semantic_types),
            ("relations", self.relations),
        ):
            if any(counts):
                shown = [f"{word or '-'} {count:,}" for word, count in list(counts.items())[:_SHOWN]]
                more = f", and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
                lines.append(f"{title:<15} {', '.join(shown)}{more}")
        return "\n".join(lines)


def gather_information(
    concepts: pl.LazyFrame, names: pl.LazyFrame, relations: pl.LazyFrame, *, n_definitions: int, n_cross_references: int
) -> TerminologyInfo:
    """Count."""
    status = concepts.select("status").collect().to_series()
    is_active = status == ACTIVE
    counted = names.select(
        n=pl.len(), suppressed=pl.col("is_suppressed").sum(), concepts=pl.col("concept_row").n_unique()
    ).collect()
    n_names, n_suppressed, n_named = counted.row(0)
    per_concept = names.group_by("concept_row").len().select(pl.col("len").max()).collect().item()
    distinct = names.select("concept_row", text=normalise_expr(pl.col("text"))).unique().collect()
    active_rows = pl.DataFrame({"active": is_active}).with_row_index("concept_row")
    shared = (
        distinct.join(active_rows, on="concept_row").filter("active").group_by("text").len().filter(pl.col("len") > 1)
    )
    return TerminologyInfo(
        n_concepts=len(status),
        n_active=int(is_active.sum()),
        n_names=n_names,
        n_suppressed=n_suppressed,
        n_distinct_names=len(distinct),
        names_per_concept=n_names / n_named if n_named else 0.0,
        most_names=per_concept or 0,
        n_homonyms=len(shared),
        n_relations=int(relations.select(pl.len()).collect().item()),
        n_definitions=n_definitions,
        n_cross_references=n_cross_references,
        languages=_counts(names, "language"),
        sources=_counts(names, "source"),
        term_types=_counts(names, "term_type"),
        semantic_types=_counts(
            concepts.select("semantic_types").explode("semantic_types").drop_nulls(), "semantic_types"
        ),
        relations=_counts(relations, "relation"),
    )


def _counts(table: pl.LazyFrame, column: str) -> dict[str, int]:
    counted = table.group_by(column).len().sort(["len", column], descending=[True, False]).collect()
    return dict(counted.iter_rows())
