"""Which concepts of several terminologies are one; `onoma.terminology.merging` says by which rules.

A *record* is a concept of one source; records are numbered through all sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from onoma.terminology.code_keys import code_keys
from onoma.terminology.merging.cross_references import Joining, join_concepts
from onoma.terminology.tables import ACTIVE
from onoma.terminology.terminology import Terminology
from onoma.types import BoolArray, RowArray


@dataclass(frozen=True)
class MergeSource:
    """A terminology to be merged.

    Attributes:
        terminology: The folder.
        prefix: What its codes shall begin with.
        vocabulary: Of which vocabulary its codes without a prefix are, if that is known.
        spells_prefixes: Whether codes are compared by `code_keys`; else as they are written.
    """

    terminology: Terminology
    prefix: str
    vocabulary: str | None
    spells_prefixes: bool

    def concepts(self) -> pl.DataFrame:
        """Its concepts, with the prefix before its own codes, and ``key``: what their codes are compared by."""
        concepts = self.terminology.concepts().collect()
        codes = concepts["concept_id"]
        own = codes.implode()
        prefixed = concepts.with_columns(
            concept_id=self._with_prefix("concept_id"),
            replaced_by=pl.when(pl.col("replaced_by").is_in(own))
            .then(self._with_prefix("replaced_by"))
            .otherwise("replaced_by"),
        )
        # Of a known vocabulary, others know the code without the prefix that the user gives it here.
        compared = prefixed["concept_id"] if self.vocabulary is None else codes
        return prefixed.with_columns(key=code_keys(compared, self.vocabulary) if self.spells_prefixes else compared)

    def _with_prefix(self, column: str) -> pl.Expr:
        """Before each of a concept's codes (``a|b``), as `onoma.codes.split_codes` finds them; a table's are whole."""
        prefix = self.prefix.replace("$", "$$")
        if self.terminology.manifest.config.get("format") == "table":
            return pl.col(column).str.replace(r"^(\s*)(\S)", f"${{1}}{prefix}${{2}}")
        return pl.col(column).str.replace_all(r"(^|\|)(\s*)([^|\s])", f"${{1}}${{2}}{prefix}${{3}}")

    def references(self, relations: Sequence[str]) -> pl.DataFrame:
        """concept_row, relation, and the key of the code referred to."""
        wanted = self.terminology.cross_references().filter(pl.col("relation").is_in(list(relations)))
        found = wanted.select("concept_row", "code", "relation").collect()
        keys = code_keys(found["code"]) if self.spells_prefixes else found["code"]
        return found.select("concept_row", "relation", key=keys)


@dataclass(frozen=True)
class Concordance:
    """Which records are one concept.

    Attributes:
        sources: What is merged; S of them.
        records: The table of concepts of all sources, R rows, and ``key``.
        offsets: The first record of each source, and R; shape (S + 1,).
        codes: Distinct codes, in the order in which they come.
        code_of: Number of the code of each record, shape (R,).
        concept_of_code: Row of the merged concept that a code is part of.
        joining: What cross-references joined, if they were asked.
    """

    sources: Sequence[MergeSource]
    records: pl.DataFrame
    offsets: RowArray
    codes: pl.Series
    code_of: RowArray
    concept_of_code: RowArray
    joining: Joining | None

    @cached_property
    def concept_of(self) -> RowArray:
        """Row of the merged concept of each record, shape (R,)."""
        return self.concept_of_code[self.code_of]

    @cached_property
    def first_record(self) -> RowArray:
        """The first record of each merged concept: it says code, status and successor."""
        return np.unique(self.concept_of, return_index=True)[1]

    @cached_property
    def has_several(self) -> BoolArray:
        """Whether a merged concept has several records."""
        return np.bincount(self.concept_of, minlength=len(self.first_record)) > 1

    @cached_property
    def is_shared(self) -> BoolArray:
        """Whether several sources have a code."""
        return np.bincount(self.code_of) > 1

    @cached_property
    def joined_codes(self) -> RowArray:
        """Numbers of the codes that became part of a concept of another code."""
        named = np.zeros(len(self.codes), np.bool_)
        named[self.code_of[self.first_record]] = True
        return np.flatnonzero(~named)


def concord(sources: Sequence[MergeSource], relations: Sequence[str]) -> Concordance:
    """Find out which records are one concept.

    Args:
        sources: The first has the last word.
        relations: Cross-references that join concepts of different codes; see
            `onoma.terminology.merging.cross_references`.
    """
    parts = [source.concepts() for source in sources]
    offsets = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)
    records = pl.concat(parts)
    codes = records.select("concept_id").unique(maintain_order=True).with_row_index("number")
    code_of = (
        records.select("concept_id").join(codes, on="concept_id", how="left", maintain_order="left")["number"]
    ).to_numpy()
    code_of = code_of.astype(np.int64)
    joining = _joined(sources, records, offsets, code_of, relations) if relations else None
    itself = np.arange(len(codes), dtype=np.int64)
    named_by = itself if joining is None else joining.named_by
    concept_of_code = (np.cumsum(named_by == itself) - 1)[named_by]
    return Concordance(sources, records, offsets, codes["concept_id"], code_of, concept_of_code, joining)


def _joined(
    sources: Sequence[MergeSource],
    records: pl.DataFrame,
    offsets: RowArray,
    code_of: RowArray,
    relations: Sequence[str],
) -> Joining:
    first = np.unique(code_of, return_index=True)[1]
    is_active_record = (records["status"] == ACTIVE).to_numpy()
    is_active_code = is_active_record[first]  # as the first terminology that has it says
    may_join = is_active_code[code_of] & is_active_record
    source_of = np.repeat(np.arange(len(sources)), np.diff(offsets))
    owners = records.select(concept=pl.Series(code_of), terminology=pl.Series(source_of), key="key")
    references = []
    for source, offset in zip(sources, offsets, strict=False):
        found = source.references(relations)
        record = found["concept_row"].to_numpy() + offset
        found = found.with_columns(concept=pl.Series(code_of[record], dtype=pl.Int64))
        references.append(found.filter(pl.Series(may_join[record])).select("concept", "relation", "key"))
    return join_concepts(
        len(first),
        owners.filter(pl.Series(may_join)),
        retired_keys=records["key"].filter(pl.Series(~is_active_code[code_of])),
        references=pl.concat(references),
        relations=relations,
    )
