"""What BioSyn learns from: queries, the names of a dictionary, and which names are right for which query."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import polars as pl
from tokenizers import Tokenizer

from onoma.artifacts.arrays import hash_arrays
from onoma.code_columns import codes_of_concept_expr, meant_codes_expr
from onoma.errors import InputError
from onoma.pairs import NameStore
from onoma.quantities import quantity
from onoma.terminology import normalise_expr
from onoma.training.development import DevelopmentSet
from onoma.training.measuring import tokenise_distinct
from onoma.types import BoolArray, RowArray, Tell


@dataclass(frozen=True, slots=True, eq=False)
class RankingData:
    """Distinct queries and distinct names, by their normalised texts, tokenised.

    Shapes: Q queries, N names, V texts that differ for the encoder.
    """

    queries: list[str]
    """A text may come several times, with other right ids each time."""
    names: list[str]
    """In the order of the dictionary. Homonyms are one name that has all their ids."""
    store: NameStore
    rows: RowArray
    """Rows of the store that differ in their tokens, ascending, shape (V,)."""
    query_places: RowArray
    """Of each query its place among ``rows``, shape (Q,)."""
    name_places: RowArray
    """Of each name likewise, shape (N,)."""
    right_pairs: RowArray
    """query x N + name of every right name of every query, ascending."""
    n_concepts: int

    def is_right(self, queries: RowArray, names: RowArray) -> BoolArray:
        """Which names are right: those that have one of the query's ids, compared as a whole.

        Args:
            queries: Shape (B,).
            names: Shape (B, K).

        Returns:
            Shape (B, K).
        """
        pairs = queries[:, None] * len(self.names) + names
        places = np.minimum(np.searchsorted(self.right_pairs, pairs), len(self.right_pairs) - 1)
        right: BoolArray = self.right_pairs[places] == pairs
        return right

    @property
    def fingerprint(self) -> str:
        """SHA-256 over texts, tokens and right pairs."""
        digest = hashlib.sha256()
        for texts in (self.queries, self.names):
            digest.update("\n".join([str(len(texts)), *texts]).encode())
        hash_arrays(digest, self.store.offsets, self.store.ids, self.right_pairs)
        return digest.hexdigest()


def ranking_data(
    data: DevelopmentSet,
    tokenizer: Tokenizer,
    *,
    normalisation: str,
    max_tokens: int,
    tell: Tell = lambda _: None,
) -> RankingData:
    """Prepare queries and dictionary for training.

    What is blank after normalisation is left out; equal queries with equal ids are taken once, as BioSyn does. Names
    with one text become one name with the ids of all.

    Args:
        data: Queries and dictionary.
        tokenizer: The encoder's.
        normalisation: Preset that names and queries go through.
        max_tokens: Longer ones are cut.
        tell: Called with a sentence on mentions of which nothing is left.

    Raises:
        InputError: no query has a right name, or none has another one.
    """
    names = (
        data.dictionary.select(text=normalise_expr(pl.col("text"), normalisation), code=codes_of_concept_expr())
        .filter(pl.col("text") != "")
        .explode("code")
        .group_by("text", maintain_order=True)
        .agg("code")
        .with_row_index("name")
    )
    normalised = data.queries.select(
        text=normalise_expr(pl.col("mention"), normalisation),
        code=meant_codes_expr(data.dictionary["concept_id"]).list.sort(),
    )
    queries = normalised.filter(pl.col("text") != "").unique(maintain_order=True).with_row_index("query")
    right = (
        queries.select("query", "code")
        .explode("code")
        .join(names.select("name", "code").explode("code"), on="code")
        .select(pair=pl.col("query").cast(pl.Int64) * len(names) + pl.col("name"))
        .unique()
        .sort("pair")["pair"]
        .to_numpy(writable=True)
    )
    n_blank = int((normalised["text"] == "").sum())
    if n_blank == len(normalised):
        raise InputError(
            f"all {n_blank:,} mentions of '{data.name}' are blank after the normalisation {normalisation}",
            expected="mentions with letters or digits",
            fix="choose another normalisation (--set normalisation=exact), or other mentions",
        )
    if len(right) == 0:
        raise InputError(
            f"no query of '{data.name}' has a right name in the dictionary",
            expected="mentions of concepts that have a name there",
            found=f"{quantity(len(queries), 'query', 'queries')}, {quantity(len(names), 'name')}",
        )
    right_names = np.unique(right // len(names), return_counts=True)[1]
    if (right_names == len(names)).all():
        raise InputError(
            f"all names of the dictionary are right for every query of '{data.name}', so that there is nothing to tell "
            "apart",
            expected="a dictionary with the names of other concepts too",
            found=f"{quantity(len(queries), 'query', 'queries')}, {quantity(len(names), 'name')}",
        )
    if len(queries) < len(normalised) - n_blank or len(right_names) < len(queries):
        tell(
            f"{data.name}: {quantity(len(normalised) - n_blank, 'mention')}, {len(queries):,} distinct ones, "
            f"{len(right_names):,} of them of concepts that the dictionary has; of the others nothing is learned"
        )
    if n_blank:
        tell(f"{data.name}: {n_blank:,} of {len(normalised):,} mentions are blank after normalisation and left out")
    store, rows, places = tokenise_distinct(pl.concat([names["text"], queries["text"]]), tokenizer, max_tokens)
    return RankingData(
        queries=queries["text"].to_list(),
        names=names["text"].to_list(),
        store=store,
        rows=rows,
        query_places=places[len(names) :],
        name_places=places[: len(names)],
        right_pairs=right,
        n_concepts=data.dictionary["concept_id"].n_unique(),
    )
