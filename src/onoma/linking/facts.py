"""What a linker's folder keeps of a terminology besides names: semantic types, languages and sources, the hierarchy.

========================= ===========================================================================================
file                      content
========================= ===========================================================================================
facts.json                the distinct sets of semantic types that concepts have, and the distinct sets of (language,
                          source) that entries have: the names of a concept that are one text can be of several
concept_types.npy         which set of types each concept has, int32, shape (C,)
entry_labels.npy          which set of languages and sources each entry has, int32, shape (E,)
child_offsets.npy         where the children of each node begin and the last ones end, int64, shape (nodes + 1,)
children.npy              nodes, int32: a node is a concept's row, or, from C on, one of ``upper_ids``
upper_ids                 codes of concepts that stand in the hierarchy and cannot be an answer (obsolete, nameless)
concept_order.npy         rows of the concepts by their codes, int32, shape (C,)
========================= ===========================================================================================

The hierarchy are the relations that say "is a kind of" (see `onoma.linking.facts_collecting`).
"""

from __future__ import annotations

import functools
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ValidationError

from onoma.artifacts.arrays import load_array
from onoma.codes import split_codes
from onoma.errors import DamagedArtifactError, first_line
from onoma.linking.dictionary import NameDictionary
from onoma.linking.lookup import SortedStrings
from onoma.linking.strings import StringColumn
from onoma.types import BoolArray, RowArray

_FACTS_FILE = "facts.json"
_ARRAYS = {
    "concept_types": np.int32,
    "entry_labels": np.int32,
    "child_offsets": np.int64,
    "children": np.int32,
    "concept_order": np.int32,
}

IntArray = npt.NDArray[np.int32]


class _Content(BaseModel):
    """What ``facts.json`` holds; see `TerminologyFacts`."""

    type_sets: tuple[frozenset[str], ...]
    label_sets: tuple[frozenset[tuple[str, str]], ...]


@dataclass(frozen=True)
class TerminologyFacts:
    """What filters ask. Shapes: C concepts and E entries of the dictionary, H nodes of the hierarchy.

    Attributes:
        type_sets: Distinct sets of semantic types.
        label_sets: Distinct sets of (language, source).
        concept_types: int32, shape (C,).
        entry_labels: int32, shape (E,).
        child_offsets: int64, shape (H + 1,).
        children: int32.
        concept_order: int32, shape (C,).
        concept_ids: C codes.
        upper_ids: H - C codes.
    """

    type_sets: tuple[frozenset[str], ...]
    label_sets: tuple[frozenset[tuple[str, str]], ...]
    concept_types: IntArray
    entry_labels: IntArray
    child_offsets: RowArray
    children: IntArray
    concept_order: IntArray
    concept_ids: StringColumn
    upper_ids: StringColumn

    def save(self, folder: Path) -> None:
        """Write the files into ``folder``."""
        content = {
            "type_sets": [sorted(types) for types in self.type_sets],
            "label_sets": [sorted(labels) for labels in self.label_sets],
        }
        (folder / _FACTS_FILE).write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))
        self.upper_ids.save(folder, "upper_ids")

    @classmethod
    def open(cls, folder: Path, dictionary: NameDictionary) -> TerminologyFacts:
        """What `save` wrote, memory-mapped.

        Raises:
            DamagedArtifactError: the files do not fit the dictionary.
        """
        file = folder / _FACTS_FILE
        try:
            content = _Content.model_validate_json(file.read_bytes())
        except ValidationError as error:
            raise DamagedArtifactError(
                f"{file} cannot be read ({first_line(error)}). Build the linker again."
            ) from None
        columns: dict[str, Any] = {
            name: np.asarray(load_array(folder / f"{name}.npy", (dtype,), 1, fix="Build the linker again."))
            for name, dtype in _ARRAYS.items()
        }
        if (len(columns["concept_types"]), len(columns["entry_labels"])) != (
            dictionary.n_concepts,
            len(dictionary.entry_concepts),
        ):
            raise DamagedArtifactError(f"{folder}: its facts are of another dictionary. Build the linker again.")
        return cls(
            type_sets=content.type_sets,
            label_sets=content.label_sets,
            concept_ids=dictionary.concept_ids,
            upper_ids=StringColumn.open(folder, "upper_ids"),
            **columns,
        )

    def concepts_of_types(self, types: frozenset[str]) -> BoolArray:
        """Which concepts have one of these semantic types, shape (C,)."""
        is_wanted = np.array([not types.isdisjoint(have) for have in self.type_sets], np.bool_)
        return is_wanted[self.concept_types]

    def branch(self, concept_id: str) -> BoolArray | None:
        """Which concepts are this one or, through any number of steps, below it, shape (C,); ``None``: no such code.

        Where no concept's own code is this, those that go by it (``a|b`` by each of the two).
        """
        nodes = self._nodes(concept_id)
        if not len(nodes):
            return None
        reached = np.zeros(len(self.child_offsets) - 1, np.bool_)
        newly: npt.NDArray[np.integer[Any]] = nodes
        while len(newly):
            reached[newly] = True
            runs = [
                self.children[begin:end]
                for begin, end in zip(self.child_offsets[newly], self.child_offsets[newly + 1], strict=True)
            ]
            below = np.unique(np.concatenate(runs))
            newly = below[~reached[below]]
        return reached[: len(self.concept_ids)]

    def _nodes(self, concept_id: str) -> RowArray:
        rows = SortedStrings(self.concept_ids, self.concept_order).rows(concept_id)
        return rows if len(rows) else np.array(self._other_nodes.get(concept_id, []), np.int64)

    @functools.cached_property
    def _other_nodes(self) -> dict[str, list[int]]:
        """Nodes by the codes of `upper_ids`, and by those that are none's own: each part of ``a|b``."""
        found: dict[str, list[int]] = {}
        for node, code in enumerate(itertools.chain(self.concept_ids, self.upper_ids)):
            for part in split_codes(code) if "|" in code else ():
                found.setdefault(part, []).append(node)
        return found | {code: [node] for node, code in enumerate(self.upper_ids, len(self.concept_ids))}
