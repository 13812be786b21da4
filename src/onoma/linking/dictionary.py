"""The names a linker knows: distinct normalised texts, and the concepts that carry each.

A text is stored, and embedded, once. A homonym is one text with several entries, one per concept, and stays
that way up to the answer.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from onoma.errors import InputError
from onoma.linking.links import Link
from onoma.linking.strings import StringColumn
from onoma.terminology import Terminology, normalise_expr
from onoma.types import BoolArray, FloatArray, RowArray

SCORE_DECIMALS = 6
"""Scores are compared and shown to this many decimals; below lies rounding, not meaning."""


@dataclass(frozen=True)
class NameDictionary:
    """Texts, entries and concepts of a linker.

    Shapes: T distinct normalised texts, in the order of their first name; E entries, a pair of text and
    concept each, grouped by text; C concepts with at least one name here, in the order of the terminology.

    Attributes:
        texts: T normalised texts, none of them empty.
        entry_offsets: Where the entries of each text begin and the last ones end, int64, shape (T + 1,).
        entry_concepts: Concept row of each entry, int64, shape (E,).
        entry_is_preferred: Whether the text is the concept's preferred name, bool, shape (E,).
        entry_name_rows: Row of the name in the terminology's table of names, int64, shape (E,). Of several
            names of a concept that normalise to one text, the first.
        entry_names: E names as the terminology spells them.
        concept_ids: C codes.
        preferred_names: C names.
    """

    texts: StringColumn
    entry_offsets: RowArray
    entry_concepts: RowArray
    entry_is_preferred: BoolArray
    entry_name_rows: RowArray
    entry_names: StringColumn
    concept_ids: StringColumn
    preferred_names: StringColumn

    @property
    def n_texts(self) -> int:
        """T."""
        return len(self.texts)

    @property
    def n_concepts(self) -> int:
        """C."""
        return len(self.concept_ids)

    def save(self, folder: Path) -> None:
        """Write the dictionary's files into ``folder``."""
        for name in _STRINGS:
            getattr(self, name).save(folder, name)
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def open(cls, folder: Path) -> NameDictionary:
        """What `save` wrote, memory-mapped: nothing is read before it is asked for."""
        columns: dict[str, Any] = {name: StringColumn.open(folder, name) for name in _STRINGS}
        for name in _ARRAYS:
            columns[name] = np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))
        return cls(**columns)

    def without(self, name_rows: Sequence[int] | RowArray) -> NameDictionary:
        """The same texts, as if these names of the terminology did not exist.

        Args:
            name_rows: Rows of the table of names. Where several names of a concept normalise to one text, they
                stand or fall with the first of them.

        Returns:
            A dictionary in memory; a text that no name carries any more leads to no concept.
        """
        keep = ~np.isin(self.entry_name_rows, name_rows)
        return dataclasses.replace(
            self,
            entry_offsets=np.concatenate([[0], np.cumsum(keep)])[self.entry_offsets],
            entry_concepts=self.entry_concepts[keep],
            entry_is_preferred=self.entry_is_preferred[keep],
            entry_name_rows=self.entry_name_rows[keep],
            entry_names=StringColumn.from_strings(itertools.compress(self.entry_names, keep)),
        )

    def rank_concepts(
        self, text_rows: RowArray, scores: FloatArray, *, top_k: int, complete: bool = True
    ) -> list[Link] | None:
        """The best concepts behind some scored texts.

        A concept's score is that of its best text. Of equal scores (to six decimals) the concept whose
        preferred name the text is comes first, then the one that stands earlier in the terminology.

        Args:
            text_rows: Rows of the best texts, best first, shape (n,).
            scores: Their scores, shape (n,).
            top_k: How many concepts to return.
            complete: Whether no other text exists. If there are others (scored no higher than the last one
                given), they may carry concepts that belong in the answer.

        Returns:
            At most ``top_k`` links; ``None`` if texts that were not given could change them.
        """
        rounded = np.round(scores.astype(np.float64), SCORE_DECIMALS)
        begins, ends = self.entry_offsets[text_rows], self.entry_offsets[text_rows + 1]
        entries = np.concatenate([np.arange(b, e) for b, e in zip(begins, ends, strict=True)] or [np.empty(0, int)])
        entry_scores = np.repeat(rounded, ends - begins)
        concepts = self.entry_concepts[entries]
        order = np.lexsort((entries, concepts, ~self.entry_is_preferred[entries], -entry_scores))
        _, first = np.unique(concepts[order], return_index=True)
        best = order[np.sort(first)][:top_k]
        if not complete and (len(best) < top_k or entry_scores[best[-1]] <= rounded[-1]):
            return None
        return [
            Link(
                concept_id=self.concept_ids[int(concepts[position])],
                preferred_name=self.preferred_names[int(concepts[position])],
                matched_name=self.entry_names[int(entries[position])],
                score=float(entry_scores[position]),
                rank=rank,
            )
            for rank, position in enumerate(best.tolist(), 1)
        ]


_STRINGS = ("texts", "entry_names", "concept_ids", "preferred_names")
_ARRAYS = ("entry_offsets", "entry_concepts", "entry_is_preferred", "entry_name_rows")


def build_dictionary(
    terminology: Terminology, *, normalisation: str = "sapbert", hidden_names: Sequence[int] | RowArray | None = None
) -> NameDictionary:
    """The dictionary of a terminology: active concepts, names that are not suppressed.

    Args:
        terminology: Where the names come from.
        normalisation: Preset that names here and mentions later go through (see `onoma.terminology.normalise`).
        hidden_names: Rows of the table of names to leave out, as if the terminology did not have them.

    Raises:
        InputError: no name is left, or a hidden name does not exist.
    """
    hidden = _checked_rows(hidden_names, terminology.n_names)
    concepts = terminology.concepts().select("concept_id", "preferred_name", "status").collect()
    active = concepts["status"].eq("active").to_numpy()
    names = (
        terminology.names()
        .select("concept_row", "text", "is_preferred", "is_suppressed")
        .with_row_index("name_row")
        .collect()
    )
    keep = active[names["concept_row"].to_numpy()] & ~names["is_suppressed"].to_numpy()
    keep[hidden] = False
    entries = (
        names.lazy()
        .filter(pl.Series(keep))
        .with_columns(normalised=normalise_expr(pl.col("text"), normalisation))
        .filter(pl.col("normalised") != "")
        .group_by("normalised", "concept_row")
        .agg(
            pl.col("name_row").min().cast(pl.Int64),
            pl.col("text").sort_by("name_row").first(),
            pl.col("is_preferred").any(),
        )
        .with_columns(first_seen=pl.col("name_row").min().over("normalised"))
        .sort("first_seen", "concept_row")
        .collect()
    )
    if entries.is_empty():
        raise InputError(
            "there is no name to link to",
            path=terminology.path,
            expected="at least one active concept with a name that is not suppressed, hidden or blank",
        )
    used, entry_concepts = np.unique(entries["concept_row"].to_numpy(), return_inverse=True)
    is_first = np.concatenate([[True], np.diff(entries["first_seen"].to_numpy()) != 0])
    linked = concepts[used]
    return NameDictionary(
        texts=StringColumn.from_strings(entries["normalised"].filter(pl.Series(is_first))),
        entry_offsets=np.append(np.flatnonzero(is_first), len(entries)).astype(np.int64),
        entry_concepts=entry_concepts.astype(np.int64),
        entry_is_preferred=entries["is_preferred"].to_numpy(),
        entry_name_rows=entries["name_row"].to_numpy(),
        entry_names=StringColumn.from_strings(entries["text"]),
        concept_ids=StringColumn.from_strings(linked["concept_id"]),
        preferred_names=StringColumn.from_strings(linked["preferred_name"]),
    )


def _checked_rows(rows: Sequence[int] | RowArray | None, n_names: int) -> RowArray:
    checked = np.asarray(rows if rows is not None else [], dtype=None)
    if checked.size == 0:
        return np.empty(0, np.int64)
    if checked.ndim != 1 or checked.dtype.kind not in "iu":
        raise InputError("hidden names must be given as row numbers", field="hidden_names", found=str(checked.dtype))
    outside = (checked < 0) | (checked >= n_names)
    if outside.any():
        raise InputError(
            "a hidden name does not exist",
            field="hidden_names",
            expected=f"rows from 0 to {n_names - 1}",
            found=str(checked[outside][0]),
        )
    return checked.astype(np.int64)
