"""What a linker keeps of a terminology besides names, collected from it; see `onoma.linking.facts`."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from onoma.linking.dictionary import NameDictionary
from onoma.linking.facts import IntArray, TerminologyFacts
from onoma.linking.lookup import order_of
from onoma.linking.strings import StringColumn
from onoma.terminology import Terminology
from onoma.types import RowArray

CHILD_RELATIONS = ("is_a", "isa", "CHD", "broader")
"""Relations whose head is the narrower concept: "head is_a tail"; SKOS's and the UMLS's words for it."""
PARENT_RELATIONS = ("inverse_isa", "PAR", "narrower", "subsumes")
"""Relations whose head is the broader concept."""


def collect_facts(terminology: Terminology, entries: pl.DataFrame, dictionary: NameDictionary) -> TerminologyFacts:
    """The facts of a terminology that belong to a dictionary of it.

    Args:
        terminology: Where the entries come from.
        entries: What `collect_entries` gave, with labels.
        dictionary: What `dictionary_of` made of them.
    """
    used = np.unique(entries["concept_row"].to_numpy())
    concepts = terminology.concepts().select("concept_id", "semantic_types").collect()
    type_sets, concept_types = _distinct_sets(concepts["semantic_types"].gather(used).list.unique().list.sort())
    label_sets, entry_labels = _distinct_sets(entries["labels"])
    offsets, children, upper = _hierarchy(terminology, used, len(concepts))
    return TerminologyFacts(
        type_sets=tuple(frozenset(types) for types in type_sets),
        label_sets=tuple(frozenset((label["language"], label["source"]) for label in labels) for labels in label_sets),
        concept_types=concept_types,
        entry_labels=entry_labels,
        child_offsets=offsets,
        children=children,
        concept_order=order_of(dictionary.concept_ids),
        concept_ids=dictionary.concept_ids,
        upper_ids=StringColumn.from_strings(concepts["concept_id"].gather(upper)),
    )


def _distinct_sets(sets: pl.Series) -> tuple[list[list[Any]], IntArray]:
    """The distinct ones of sorted lists, in the order of their first row, and which of them each row has."""
    rows = sets.alias("set").to_frame().with_row_index("row")
    firsts = rows.group_by("set").agg(pl.col("row").min()).sort("row")
    numbers = firsts.select("set", number=pl.int_range(pl.len(), dtype=pl.Int32))
    number_of = rows.join(numbers, on="set", how="left", maintain_order="left")["number"]
    return firsts["set"].to_list(), number_of.to_numpy().astype(np.int32)


def _hierarchy(terminology: Terminology, used: RowArray, n_concepts: int) -> tuple[RowArray, IntArray, RowArray]:
    """Offsets and children by node, and the terminology's rows of the nodes that are no concepts of the dictionary."""
    is_child = pl.col("relation").is_in(CHILD_RELATIONS)
    edges = (
        terminology.relations()
        .filter(is_child | pl.col("relation").is_in(PARENT_RELATIONS))
        .select(
            child=pl.when(is_child).then("head_row").otherwise("tail_row"),
            parent=pl.when(is_child).then("tail_row").otherwise("head_row"),
        )
        .unique()
        .collect()
        .to_numpy()
        .astype(np.int64)
        .reshape(-1, 2)
    )
    upper = np.setdiff1d(edges, used)
    node_of = np.full(n_concepts, -1, np.int64)
    node_of[used] = np.arange(len(used))
    node_of[upper] = len(used) + np.arange(len(upper))
    children, parents = node_of[edges].T
    order = np.lexsort((children, parents))
    n_children = np.bincount(parents, minlength=len(used) + len(upper))
    offsets = np.concatenate([[0], np.cumsum(n_children)]).astype(np.int64)
    return offsets, children[order].astype(np.int32), upper
