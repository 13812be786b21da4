"""The names a linker knows: distinct normalised texts, and the concepts that have each.

A text is stored, and embedded, once. A homonym is one text with several entries, one per concept, and remains so up to
the answer.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onoma.artifacts.arrays import load_array
from onoma.codes import NO_CONCEPT, codes_of_concept, meant_codes
from onoma.linking.links import Link
from onoma.linking.strings import StringColumn
from onoma.quantities import quantity
from onoma.terminology.name_rows import checked_name_rows
from onoma.types import SCORE_DECIMALS, BoolArray, DoubleArray, FloatArray, RowArray


@dataclass(frozen=True)
class RankedEntries:
    """Entries of distinct concepts, best first.

    Attributes:
        entries: Rows of the entries, shape (n,).
        concepts: Their concept rows, shape (n,).
        text_rows: Rows of their texts, shape (n,).
        scores: To six decimals, float64, shape (n,).
    """

    entries: RowArray
    concepts: RowArray
    text_rows: RowArray
    scores: DoubleArray

    def __len__(self) -> int:
        return len(self.entries)

    @classmethod
    def none(cls) -> RankedEntries:
        """No entries."""
        rows = np.empty(0, np.int64)
        return cls(rows, rows, rows, np.empty(0))

    def take(self, places: RowArray | slice) -> RankedEntries:
        """Some of them, in the order of ``places``."""
        return RankedEntries(self.entries[places], self.concepts[places], self.text_rows[places], self.scores[places])

    def then(self, others: RankedEntries) -> RankedEntries:
        """These before the others."""
        return RankedEntries(
            np.concatenate([self.entries, others.entries]),
            np.concatenate([self.concepts, others.concepts]),
            np.concatenate([self.text_rows, others.text_rows]),
            np.concatenate([self.scores, others.scores]),
        )

    def scored(self, scores: DoubleArray) -> RankedEntries:
        """The same with other scores."""
        return dataclasses.replace(self, scores=scores)


@dataclass(frozen=True)
class NameDictionary:
    """Texts, entries and concepts of a linker.

    Shapes: T distinct normalised texts, in the order of their first name; E entries, a pair of text and concept each,
    grouped by text; C concepts with at least one name here, in the order of the terminology.

    Attributes:
        texts: T normalised texts, none of them empty.
        entry_offsets: Where the entries of each text begin and the last ones end, int64, shape (T + 1,).
        entry_concepts: Concept row of each entry, int64, shape (E,).
        entry_is_preferred: Whether the text is the concept's preferred name, bool, shape (E,).
        entry_name_rows: Row of the name in the terminology's table of names, int64, shape (E,). If several names of a
            concept normalise to one text, the first.
        entry_names: E names as the terminology spells them.
        concept_ids: C codes.
        preferred_names: C names.
        normalisation: Preset by which the texts were normalised, and mentions are.
        entry_is_other_scope: Whether the text is only a broad, narrow or related synonym of the concept, bool, shape
            (E,); unset: none is.
    """

    texts: StringColumn
    entry_offsets: RowArray
    entry_concepts: RowArray
    entry_is_preferred: BoolArray
    entry_name_rows: RowArray
    entry_names: StringColumn
    concept_ids: StringColumn
    preferred_names: StringColumn
    normalisation: str
    entry_is_other_scope: BoolArray | None = None

    def __repr__(self) -> str:
        return (
            f"NameDictionary({quantity(self.n_concepts, 'concept')} by {quantity(self.n_texts, 'text')}, normalisation "
            f"{self.normalisation})"
        )

    @property
    def n_texts(self) -> int:
        """T."""
        return len(self.texts)

    @property
    def n_concepts(self) -> int:
        """C."""
        return len(self.concept_ids)

    def concept_rows(self, codes: set[str]) -> dict[str, list[int]]:
        """Rows of the concepts that have these codes; one whose own code is ``a|b`` is found by either of the two."""
        rows: dict[str, list[int]] = {}
        for row, concept_id in enumerate(self.concept_ids):
            for code in codes_of_concept(concept_id):
                if code in codes:
                    rows.setdefault(code, []).append(row)
        return rows

    def meant_concepts(self, labels: Iterable[str]) -> dict[str, tuple[frozenset[int], bool]]:
        """Rows of the concepts that labels ("D001|D002") stand for, and whether they mean a concept at all."""
        concept_ids = set(self.concept_ids)
        codes_of = {label: meant_codes(label, concept_ids) for label in labels}
        rows_of = self.concept_rows({code for codes in codes_of.values() for code in codes})
        meant = {}
        for label, codes in codes_of.items():
            some = [code for code in codes if code in rows_of or code not in NO_CONCEPT]
            meant[label] = frozenset(row for code in some for row in rows_of.get(code, ())), bool(some)
        return meant

    def save(self, folder: Path) -> None:
        """Write the dictionary's files into ``folder``."""
        for name in _STRINGS:
            getattr(self, name).save(folder, name)
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))
        if self.entry_is_other_scope is not None:
            np.save(folder / _OTHER_SCOPE_FILE, self.entry_is_other_scope)

    @classmethod
    def open(cls, folder: Path, *, normalisation: str) -> NameDictionary:
        """Open what `save` wrote, memory-mapped: nothing is read before it is needed."""
        columns: dict[str, Any] = {name: StringColumn.open(folder, name) for name in _STRINGS}
        arrays = dict(_ARRAYS)
        if (folder / _OTHER_SCOPE_FILE).exists():
            arrays["entry_is_other_scope"] = np.bool_
        for name, dtype in arrays.items():
            array = load_array(folder / f"{name}.npy", (dtype,), 1, fix="Build the linker again.")
            columns[name] = np.asarray(array)
        return cls(**columns, normalisation=normalisation)

    def without(self, name_rows: Sequence[int] | RowArray) -> NameDictionary:
        """The same texts, as if these names of the terminology did not exist.

        Args:
            name_rows: Rows of the table of names. If several names of a concept normalise to one text, the first of
                them decides for all.

        Returns:
            A dictionary in memory; a text that is no longer a name leads to no concept.

        Raises:
            InputError: these are not row numbers.
        """
        return self.keeping(~np.isin(self.entry_name_rows, checked_name_rows(name_rows, None)))

    def keeping(self, entries: BoolArray) -> NameDictionary:
        """The same texts and concepts with some of the entries, bool, shape (E,), in memory."""
        other_scope = self.entry_is_other_scope
        return dataclasses.replace(
            self,
            entry_is_other_scope=None if other_scope is None else other_scope[entries],
            entry_offsets=np.concatenate([[0], np.cumsum(entries)])[self.entry_offsets],
            entry_concepts=self.entry_concepts[entries],
            entry_is_preferred=self.entry_is_preferred[entries],
            entry_name_rows=self.entry_name_rows[entries],
            entry_names=StringColumn.from_strings(itertools.compress(self.entry_names, entries)),
        )

    def rank_entries(
        self,
        text_rows: RowArray,
        scores: npt.NDArray[np.floating[Any]],
        *,
        top_k: int,
        complete: bool = True,
        allowed: BoolArray | None = None,
        expected: BoolArray | None = None,
        prior: RowArray | None = None,
    ) -> RankedEntries | None:
        """The best concepts of some scored texts, each by its best entry.

        A concept's score is that of its best text. Among equal scores (to six decimals), the concepts that are expected
        come first, then those that are meant more often, then those whose preferred name the text is, then those of
        which it is more than a broad, narrow or related synonym, then those that are earlier in the terminology.

        Args:
            text_rows: Rows of the best texts, shape (n,); best first, unless ``complete``.
            scores: Their scores, shape (n,).
            top_k: How many concepts to return.
            complete: Whether no other text is to be considered. If there are others (scored no higher than the last one
                given), their concepts may belong in the answer.
            allowed: Which entries may be an answer, bool, shape (E,); unset: all.
            expected: Which concepts the mention is more likely to mean, bool, shape (C,); unset: none.
            prior: How often each concept is meant, int64, shape (C,); unset: unknown. See `onoma.linking.prior`.

        Returns:
            At most ``top_k`` entries; ``None`` if texts that were not given could change them.
        """
        rounded = np.asarray(scores, np.float64).round(SCORE_DECIMALS)
        entries, places = self.entries_of(text_rows)
        if allowed is not None:
            entries, places = entries[allowed[entries]], places[allowed[entries]]
        entry_scores = rounded[places]
        concepts = self.entry_concepts[entries]
        unexpected = np.zeros(len(concepts), np.bool_) if expected is None else ~expected[concepts]
        rarity = np.zeros(len(concepts), np.int64) if prior is None else -prior[concepts]
        is_other = np.zeros(len(concepts), np.bool_)
        if self.entry_is_other_scope is not None:
            is_other = self.entry_is_other_scope[entries]
        is_synonym = ~self.entry_is_preferred[entries]
        order = np.lexsort((entries, concepts, is_other, is_synonym, rarity, unexpected, -entry_scores))
        _, first = np.unique(concepts[order], return_index=True)
        best = order[np.sort(first)][:top_k]
        if not complete and (len(best) < top_k or entry_scores[best[-1]] <= rounded[-1]):
            return None
        return RankedEntries(entries[best], concepts[best], np.asarray(text_rows)[places[best]], entry_scores[best])

    def entries_of(self, text_rows: RowArray) -> tuple[RowArray, RowArray]:
        """The entries of texts, one text after the other, and for each the place of its text among ``text_rows``."""
        begins = self.entry_offsets[text_rows]
        n_entries = self.entry_offsets[text_rows + 1] - begins
        places = np.repeat(np.arange(len(text_rows)), n_entries)
        first_places = np.cumsum(n_entries) - n_entries
        return (begins - first_places)[places] + np.arange(len(places)), places

    def rank_concepts(
        self, text_rows: RowArray, scores: FloatArray, *, top_k: int, complete: bool = True
    ) -> list[Link] | None:
        """The same as links, among all entries; see `rank_entries`."""
        ranked = self.rank_entries(text_rows, scores, top_k=top_k, complete=complete)
        return None if ranked is None else self.links(ranked)

    def links(self, ranked: RankedEntries) -> list[Link]:
        """Ranked entries as an answer."""
        rows = zip(ranked.entries.tolist(), ranked.concepts.tolist(), ranked.scores.tolist(), strict=True)
        return [
            Link(
                concept_id=self.concept_ids[concept],
                preferred_name=self.preferred_names[concept],
                matched_name=self.entry_names[entry],
                score=score,
                rank=rank,
            )
            for rank, (entry, concept, score) in enumerate(rows, 1)
        ]


NAMES_FILES = ("texts.utf8", "texts.offsets.npy", "entry_offsets.npy", "entry_concepts.npy", "concept_ids.utf8")
"""Files of a dictionary that say which text is a name of which concept."""
_STRINGS = ("texts", "entry_names", "concept_ids", "preferred_names")
_ARRAYS: dict[str, type[np.generic]] = {
    "entry_offsets": np.int64,
    "entry_concepts": np.int64,
    "entry_is_preferred": np.bool_,
    "entry_name_rows": np.int64,
}
_OTHER_SCOPE_FILE = "entry_is_other_scope.npy"
"""There if any text is only a synonym of another scope."""
