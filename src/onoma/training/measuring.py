"""How many queries of a development set an encoder answers."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl
import torch
from tokenizers import Tokenizer

from onoma.artifacts.arrays import hash_arrays
from onoma.code_columns import codes_of_concept_expr, meant_codes_expr
from onoma.errors import InputError
from onoma.pairs import NameStore
from onoma.terminology import normalise_expr
from onoma.training.development import DevelopmentSet
from onoma.types import CountProgress, RowArray, Tell, no_count

EncodeRows = Callable[[NameStore, RowArray], torch.Tensor]
"""(store, rows) -> unit vectors of those names, float32, shape (len(rows), D), by the encoder as it is."""


class WatchedEncodeRows(Protocol):
    """The same, which says after each batch how many of the rows are done; what ``progress`` raises ends it."""

    def __call__(self, store: NameStore, rows: RowArray, *, progress: CountProgress = no_count) -> torch.Tensor:
        """See `EncodeRows`."""


_SCORES_AT_ONCE = 1 << 24
"""Bound on the cosines held at a time (64 MiB): with a long dictionary fewer queries are taken together."""


@dataclass(frozen=True, slots=True)
class Scores:
    """How well the queries of one set were answered; fractions."""

    at_1: float
    """Queries with a right concept in the first place, acc@1."""
    at_5: float
    """Queries with a right concept among the first five, acc@5."""
    mrr: float
    """Mean of 1 / rank of the first right concept; 0 where the dictionary has none."""
    n_queries: int

    @classmethod
    def of_ranks(cls, ranks: RowArray) -> Scores:
        """Of the rank of each query's first right concept, from 1; 0 where there is none."""
        found = ranks[ranks > 0]
        return cls(
            at_1=float((found <= 1).sum() / len(ranks)),
            at_5=float((found <= 5).sum() / len(ranks)),
            mrr=float((1 / found).sum() / len(ranks)),
            n_queries=len(ranks),
        )


class Measure:
    """A development set, tokenised, and the places where its queries' answers stand.

    What is equal to the encoder is encoded once, so that names of equal tokens have exactly equal scores.

    Args:
        data: Queries and dictionary.
        tokenizer: The encoder's.
        normalisation: Preset that names and queries go through.
        max_tokens: Longer ones are cut, as in training.
        tell: Called with a sentence on queries of which nothing is left; they count as wrong, as no linker answers
            them.

    Raises:
        InputError: there is no query, no name, or a table has other columns.
    """

    def __init__(
        self,
        data: DevelopmentSet,
        tokenizer: Tokenizer,
        *,
        normalisation: str,
        max_tokens: int,
        tell: Tell = lambda _: None,
    ) -> None:
        _check(data)
        self.name = data.name
        # Concepts are numbered in the order of the dictionary, which decides between equal scores.
        names = (
            data.dictionary.select("concept_id", text=normalise_expr(pl.col("text"), normalisation))
            .filter(pl.col("text") != "")
            .with_row_index("row")
            .with_columns(concept=pl.col("row").min().over("concept_id").rank("dense").cast(pl.Int64) - 1)
        )
        if names.is_empty():
            raise InputError(f"the dictionary of '{data.name}' has no name that is not blank", field="dictionary")
        queries = data.queries.select(
            meant_codes_expr(names["concept_id"]).alias("code"),
            text=normalise_expr(pl.col("mention"), normalisation),
        )
        known = names.select("concept", codes_of_concept_expr().alias("code")).explode("code").unique()
        self._answers: RowArray = (
            queries.with_row_index("query")
            .filter(pl.col("text") != "")
            .explode("code")
            .join(known, on="code")
            .select(pl.col("query").cast(pl.Int64), "concept")
            .unique()
            .sort("query", "concept")
            .to_numpy(writable=True)
        )
        if n_blank := int((queries["text"] == "").sum()):
            tell(
                f"{data.name}: {n_blank:,} of {len(queries):,} queries are blank after normalisation and count as wrong"
            )
        self._name_concepts: RowArray = names["concept"].to_numpy(writable=True)
        self._texts = names["text"], queries["text"]
        self._store, self._rows, places = tokenise_distinct(pl.concat(self._texts), tokenizer, max_tokens)
        self._names, self._queries = places[: len(names)], places[len(names) :]

    def about(self) -> dict[str, Any]:
        """For ``train.json``."""
        return {
            "name": self.name,
            "queries": len(self._queries),
            "names": len(self._names),
            "fingerprint": self.fingerprint,
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that the scores depend on besides the encoder: tokens, concepts, answers."""
        digest = hashlib.sha256()
        hash_arrays(
            digest,
            self._store.offsets,
            self._store.ids,
            self._rows,
            self._names,
            self._queries,
            self._name_concepts,
            self._answers,
        )
        return digest.hexdigest()

    def __call__(self, encode: EncodeRows, progress: CountProgress = no_count) -> Scores:
        """Encode names and queries, and see where the answers stand.

        Args:
            encode: The encoder as it is.
            progress: See `answer_ranks`.
        """
        ranks = answer_ranks(
            encode(self._store, self._rows),
            names=self._names,
            concepts=self._name_concepts,
            queries=self._queries,
            answers=self._answers,
            progress=progress,
        )
        return Scores.of_ranks(ranks)


def answer_ranks(
    vectors: torch.Tensor,
    *,
    names: RowArray,
    concepts: RowArray,
    queries: RowArray,
    answers: RowArray,
    progress: CountProgress = no_count,
) -> RowArray:
    """Where the first right concept of each query stands among all concepts, from 1; 0 if the dictionary has none.

    A concept has the score of the best of its names; of equal scores the concept of the smaller number comes first.

    Shapes: V vectors of width D, N names, Q queries, A answers.

    Args:
        vectors: Unit vectors, shape (V, D).
        names: Row of each name's vector, shape (N,).
        concepts: Concept of each name, numbered from 0 without gaps, shape (N,).
        queries: Row of each query's vector, shape (Q,).
        answers: (query, right concept), shape (A, 2), ascending.
        progress: Called with (done, total) answers after each chunk; what it raises ends the search.
    """
    device = vectors.device
    ranks = np.zeros(len(queries), np.int64)
    distinct, columns = np.unique(names, return_inverse=True)
    dictionary = vectors[torch.from_numpy(distinct).to(device)]
    of_name = torch.from_numpy(columns.reshape(-1)).to(device)
    labels = torch.from_numpy(concepts).to(device)
    n_concepts = int(concepts.max()) + 1
    numbers = torch.arange(n_concepts, device=device)[:, None]
    done = 0
    for chunk in np.array_split(answers, max(1, -(-len(answers) * len(names) // _SCORES_AT_ONCE))):
        asked, place = np.unique(chunk[:, 0], return_inverse=True)
        if len(asked) == 0:
            continue
        # Names in rows: the maximum over a concept's names then runs over whole lines.
        scores = dictionary @ vectors[torch.from_numpy(queries[asked]).to(device)].T
        best = scores.new_full((n_concepts, len(asked)), -torch.inf)
        best.scatter_reduce_(0, labels[:, None].expand(-1, len(asked)), scores[of_name], "amax")
        right = torch.from_numpy(chunk[:, 1]).to(device)
        best = best[:, torch.from_numpy(place.reshape(-1)).to(device)]
        own = best.gather(0, right[None, :])
        before = (best > own) | ((best == own) & (numbers < right))
        found = 1 + before.sum(0).cpu().numpy()
        for query, rank in zip(chunk[:, 0].tolist(), found.tolist(), strict=True):
            ranks[query] = min(rank, ranks[query] or rank)
        done += len(chunk)
        progress(done, len(answers))
    return ranks


def _check(data: DevelopmentSet) -> None:
    for what, table, column in (
        ("queries", data.queries, "mention"),
        ("queries", data.queries, "concept_id"),
        ("dictionary", data.dictionary, "text"),
        ("dictionary", data.dictionary, "concept_id"),
    ):
        if table.schema.get(column) != pl.String or table[column].null_count() or table.is_empty():
            raise InputError(
                f"the {what} of the development set '{data.name}' cannot be used",
                field=column,
                expected="a column of text, every row filled, and at least one row",
                found=f"{len(table)} rows of {dict(table.schema)}",
            )


def tokenise_distinct(texts: pl.Series, tokenizer: Tokenizer, max_tokens: int) -> tuple[NameStore, RowArray, RowArray]:
    """A store, the rows in it of distinct tokens, ascending, and for each text the place of its tokens among them."""
    distinct = texts.unique(maintain_order=True)
    store = NameStore.from_texts(distinct, tokenizer, max_tokens=max_tokens)
    first: dict[bytes, int] = {}
    rows: list[int] = []
    place_of_text = np.empty(len(store), np.int64)
    for row, (begin, end) in enumerate(itertools.pairwise(store.offsets.tolist())):
        place = first.setdefault(store.ids[begin:end].tobytes(), len(rows))
        if place == len(rows):
            rows.append(row)
        place_of_text[row] = place
    text_rows = pl.DataFrame({"text": texts}).join(
        pl.DataFrame({"text": distinct, "row": np.arange(len(distinct))}), on="text", how="left", maintain_order="left"
    )["row"]
    return store, np.array(rows, np.int64), place_of_text[text_rows.to_numpy()]
