"""Which concepts of several terminologies are one, if their cross-references are believed.

Codes are nodes of a graph. A concept is tied to the key of its own code (see `onoma.terminology.code_keys`) and to
the key of each code it refers to; what hangs together is one concept. So a reference counts in both directions, and it
goes on: A refers to B and B to C, hence A, B and C are one.

* A code that no terminology here has joins those that say exactMatch to it: SKOS defines exactMatch as symmetric and
  transitive (https://www.w3.org/TR/skos-reference/#mapping, S44 and S45). Where one does, other relations join through
  this code too: "A xref C" is "A xref B" if B is C. Else they do not.
* Retired concepts are joined to nothing, and nothing is joined through the code of a retired one.
* Two active concepts of one terminology never become one, however they hang together: its authors hold them apart.
  Where they would, the ties of that component are made one after the other, and one that would unite two is refused.
  First come the concepts' own codes; then references that both sides make before those that one side makes; then in
  the order of the relations as given; then to codes that are there before absent ones; then in the order of the
  terminologies, and of the references in them. Components without such a clash do not depend on any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from onoma.types import BoolArray, RowArray

JOINING_RELATIONS = ("exactMatch", "closeMatch", "xref")
"""Relations that may mean that two codes are one concept; the others say that they are not."""
TRANSITIVE = "exactMatch"


@dataclass(frozen=True)
class Joining:
    """What became of the cross-references.

    Attributes:
        named_by: For each concept the first of those it is one with (itself, if with none), shape (C,).
        refused: Ties not made, because they would have united two concepts of one terminology: concept, key.
        n_to_retired: References that were not followed, because the code is that of a retired concept.
    """

    named_by: RowArray
    refused: pl.DataFrame
    n_to_retired: int


def join_concepts(
    n_concepts: int, owners: pl.DataFrame, retired_keys: pl.Series, references: pl.DataFrame, relations: Sequence[str]
) -> Joining:
    """Find the concepts that are one.

    Args:
        n_concepts: Concepts are numbered 0 .. n_concepts - 1; the least number names those that are one.
        owners: concept, terminology, key: where an active concept is, and the key of its code there.
        retired_keys: Keys of the codes of retired concepts.
        references: concept, relation, key: what active concepts refer to, in their order.
        relations: Of `JOINING_RELATIONS`, the ones to believe, the more trusted first.
    """
    own = owners.select("concept", "key").unique(maintain_order=True)
    ranks = pl.DataFrame({"relation": relations, "rank": range(len(relations))}, schema_overrides={"rank": pl.UInt8})
    wanted = (
        references.join(ranks, on="relation", maintain_order="left")
        .join(own, on=["concept", "key"], how="anti", maintain_order="left")
        .with_columns(is_absent=~pl.col("key").is_in(own["key"].implode()))
    )
    to_retired = wanted["is_absent"] & wanted["key"].is_in(retired_keys.implode())
    is_meant = pl.col("key").is_in(wanted.filter(pl.col("relation") == TRANSITIVE)["key"].implode())
    wanted = wanted.filter(~to_retired & (~pl.col("is_absent") | is_meant))
    ties = pl.concat([own, _by_trust(wanted, own)]).unique(maintain_order=True)
    ties = ties.filter(pl.col("key").is_duplicated())  # a key of one concept ties nothing
    keys = ties.select("key").unique(maintain_order=True).with_row_index("node", offset=n_concepts)
    heads = ties["concept"].to_numpy().astype(np.int64)
    tails = ties.join(keys, on="key", maintain_order="left")["node"].to_numpy().astype(np.int64)
    label = connected_components(n_concepts + len(keys), heads, tails)

    places = owners.select("concept", "terminology").unique(maintain_order=True)
    clashing = _clashing_components(label, places)
    if not clashing.any():
        return Joining(label[:n_concepts], ties.clear(), int(to_retired.sum()))
    doubtful = np.flatnonzero(clashing[label[heads]])
    accepted = _accepted_one_by_one(heads[doubtful], tails[doubtful], places)
    refused = doubtful[~accepted]
    kept = np.ones(len(ties), np.bool_)
    kept[refused] = False
    label = connected_components(n_concepts + len(keys), heads[kept], tails[kept])
    return Joining(label[:n_concepts], ties[refused], int(to_retired.sum()))


def _by_trust(references: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """References, in the order in which the module says that they are believed: concept, key."""
    owned = references.join(own.rename({"concept": "other"}), on="key", maintain_order="left")
    answered = owned.join(
        owned.select(concept="other", other="concept"), on=["concept", "other"], how="semi", maintain_order="left"
    )
    is_answered = answered.select("concept", "key", is_answered=pl.lit(True)).unique()
    return (
        references.join(is_answered, on=["concept", "key"], how="left", maintain_order="left")
        .sort(pl.col("is_answered").is_null(), "rank", "is_absent", maintain_order=True)
        .select("concept", "key")
    )


def _clashing_components(label: RowArray, places: pl.DataFrame) -> BoolArray:
    """Whether a component holds two concepts of one terminology, by its label."""
    components = places.select(
        component=pl.Series(label[places["concept"].to_numpy()]),
        terminology="terminology",
    )
    doubled = components.filter(components.is_duplicated())["component"].to_numpy()
    clashing = np.zeros(len(label), np.bool_)
    clashing[doubled] = True
    return clashing


def _accepted_one_by_one(heads: RowArray, tails: RowArray, places: pl.DataFrame) -> BoolArray:
    """Make ties in their order, but none that would unite two concepts of one terminology; whether each was made."""
    involved = places.filter(pl.col("concept").is_in(pl.Series(np.unique(heads)).implode()))
    terminologies: dict[int, int] = {}  # of a root: a bit for each terminology that has a concept in its tree
    for concept, terminology in involved.iter_rows():
        terminologies[concept] = terminologies.get(concept, 0) | 1 << terminology
    parent: dict[int, int] = {}

    def root(node: int) -> int:
        while (above := parent.get(node, node)) != node:
            parent[node] = node = parent.get(above, above)
        return node

    accepted = np.ones(len(heads), np.bool_)
    for position, (head, tail) in enumerate(zip(heads.tolist(), tails.tolist(), strict=True)):
        one, other = root(head), root(tail)
        if one == other:
            continue
        here, there = terminologies.get(one, 0), terminologies.get(other, 0)
        if here & there:
            accepted[position] = False
        else:
            parent[other] = one
            terminologies[one] = here | there
    return accepted


def connected_components(n_nodes: int, heads: RowArray, tails: RowArray) -> RowArray:
    """The least node that each node hangs together with.

    Each round, the root of every tree is hung under the least root that an edge leads it to, and trees are made flat
    again; a few rounds do for any graph of codes.

    Args:
        n_nodes: How many nodes there are.
        heads: One end of each edge, shape (E,).
        tails: Its other end, shape (E,).

    Example:
        >>> connected_components(6, np.array([1, 2, 5]), np.array([3, 5, 2])).tolist()
        [0, 1, 2, 1, 4, 2]
    """
    label = np.arange(n_nodes, dtype=np.int64)
    while len(heads):
        one, other = label[heads], label[tails]
        is_open = one != other
        if not is_open.any():
            break
        heads, tails, one, other = heads[is_open], tails[is_open], one[is_open], other[is_open]
        np.minimum.at(label, np.maximum(one, other), np.minimum(one, other))
        while not np.array_equal(flatter := label[label], label):
            label = flatter
    return label
