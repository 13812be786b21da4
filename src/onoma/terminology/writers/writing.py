"""What every writer is given: a terminology keyed by codes, and where what it cannot write goes.

Two things keep a value out of a file, and neither is silent. What a format has no place for (the relations, in a list
of names) is counted by `Writing.lose`. A value that would break the file (a ``|`` in a field that ``|`` ends) is
refused by `Writing.keep_writable`: under "strict" the first one ends the export with concept and value, under "skip"
it is left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from onoma.errors import InputError
from onoma.files.reading import Check, OnError
from onoma.terminology.tables import OBSOLETE
from onoma.terminology.terminology import Terminology

KIND = "terminology export"
"""Of the folder that some formats are."""


@dataclass(frozen=True)
class Content:
    """A terminology whose rows say both the row and the code of their concept.

    Attributes:
        concepts: row, concept_id, preferred_name, status, replaced_by.
        names: row, concept_id, text, language, source, term_type, is_preferred, is_suppressed.
        semantic_types: row, concept_id, semantic_type.
        relations: row (of the head), concept_id (the head), relation, tail_row, tail, source.
        definitions: row, concept_id, text, source.
        cross_references: row, concept_id, code, relation, source.
    """

    concepts: pl.DataFrame
    names: pl.DataFrame
    semantic_types: pl.DataFrame
    relations: pl.DataFrame
    definitions: pl.DataFrame
    cross_references: pl.DataFrame

    @classmethod
    def of(cls, terminology: Terminology) -> Content:
        """All of a terminology, in memory."""
        concepts = terminology.concepts().with_row_index("row").collect()
        ids = concepts["concept_id"]

        def coded(table: pl.LazyFrame, row: str = "concept_row") -> pl.DataFrame:
            rows = table.rename({row: "row"}).collect()
            return rows.select("row", ids.gather(rows["row"]), pl.exclude("row"))

        relations = coded(terminology.relations(), "head_row")
        types = concepts.select("row", "concept_id", semantic_type="semantic_types").explode("semantic_type")
        return cls(
            concepts=concepts.drop("semantic_types"),
            names=coded(terminology.names()),
            semantic_types=types.drop_nulls("semantic_type"),
            relations=relations.with_columns(tail=ids.gather(relations["tail_row"])),
            definitions=coded(terminology.definitions()),
            cross_references=coded(terminology.cross_references()),
        )

    def where(self, is_kept: pl.Series) -> Content:
        """What is left of it with these concepts; ``is_kept`` is aligned with the rows of the whole terminology."""

        def of_kept(table: pl.DataFrame, column: str) -> pl.DataFrame:
            return table.filter(is_kept.gather(table[column]))

        kept = {table.name: of_kept(getattr(self, table.name), "row") for table in fields(self)}
        return replace(self, **{**kept, "relations": of_kept(kept["relations"], "tail_row")})


@dataclass
class Writing:
    """One run of a writer."""

    source: Path
    """The terminology, for errors."""
    on_error: OnError = "strict"
    origins: Sequence[Mapping[str, Any]] = ()
    """What it was made of, see `onoma.artifacts.origins_of`."""
    not_carried: dict[str, int] = field(default_factory=dict)
    """What the format has no place for, and how many."""
    left_out: dict[str, int] = field(default_factory=dict)
    """What was refused under "skip", and how many."""

    def lose(self, what: str, count: int) -> None:
        """Count what the format has no place for."""
        if count:
            self.not_carried[what] = self.not_carried.get(what, 0) + count

    def leave_out(self, what: str, count: int) -> None:
        """Count what goes with something that was refused."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count

    def keep_writable(self, rows: pl.DataFrame, table: str, checks: Sequence[Check]) -> pl.DataFrame:
        """Keep the rows that pass every check, and refuse each other one for the first that it fails.

        Args:
            rows: With a column ``concept_id``.
            table: What they are, e.g. "names".
            checks: What must hold; null counts as no.

        Raises:
            InputError: under "strict", for the first row that fails a check.
        """
        for check in checks:
            holds = rows.select(check.holds.fill_null(False)).to_series()
            if holds.all():
                continue
            bad = rows.filter(~holds)
            if self.on_error == "strict":
                concept_id, value = bad["concept_id"][0], bad[check.shown][0]
                raise InputError(
                    f"table {table}: {check.problem}",
                    path=self.source,
                    field=check.field,
                    expected=check.expected,
                    found=f"concept {concept_id!r}: {value!r}",
                    fix="leave such rows out with on_error='skip' (--on-error skip), which counts them",
                )
            self.leave_out(f"{table}: {check.problem}", len(bad))
            rows = rows.filter(holds)
        return rows

    def keep_concepts(self, content: Content, checks: Sequence[Check]) -> Content:
        """The same for concepts: what belongs to one that is left out goes with it.

        Raises:
            InputError: under "strict", for the first concept that fails a check.
        """
        kept = self.keep_writable(content.concepts, "concepts", checks)
        if len(kept) == len(content.concepts):
            return content
        left = content.where(_of_rows(content, kept))
        for table in fields(content):
            if table.name != "concepts":
                n_lost = len(getattr(content, table.name)) - len(getattr(left, table.name))
                self.leave_out(f"{table.name.replace('_', ' ')} of concepts that were left out", n_lost)
        return left

    def without_nameless(self, content: Content) -> Content:
        """Lose concepts that have no name and are not obsolete, which most formats take for mere references."""
        has_name = pl.col("row").is_in(content.names["row"].implode())
        is_kept = content.concepts.select(has_name | (pl.col("status") == OBSOLETE)).to_series()
        if is_kept.all():
            return content
        left = content.where(_of_rows(content, content.concepts.filter(is_kept)))
        for table in fields(content):
            what = "concepts" if table.name == "concepts" else f"{table.name.replace('_', ' ')} of concepts"
            n_lost = len(getattr(content, table.name)) - len(getattr(left, table.name))
            self.lose(f"{what} without a name that are not obsolete", n_lost)
        return left


def _of_rows(content: Content, kept: pl.DataFrame) -> pl.Series:
    """Whether each row of the whole terminology is kept."""
    is_kept = np.zeros(int(content.concepts["row"][-1]) + 1, np.bool_)
    is_kept[kept["row"].to_numpy()] = True
    return pl.Series(is_kept)


def without(column: str, pattern: str, what: str) -> Check:
    """That a column has nothing that matches a regular expression.

    Args:
        column: The column.
        pattern: The expression.
        what: What it finds, e.g. "a line end".
    """
    problem = f"a value with {what}, which this format cannot hold"
    return Check(~pl.col(column).str.contains(pattern), column, "", column, problem)


def not_blank(column: str) -> Check:
    """That a column is not blank."""
    return Check(pl.col(column).str.strip_chars() != "", column, "some text", column, "a blank value")
