"""How many queries of a development set are answered by dense and sparse scores together."""

from __future__ import annotations

import numpy as np
import torch
from tokenizers import Tokenizer

from onoma.indexes import ExactIndex
from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.training.development import DevelopmentSet
from onoma.training.measuring import EncodeRows, Measure, Scores
from onoma.types import SCORE_DECIMALS, CountProgress, FloatArray, RowArray, Tell, no_count

DEPTH = 100
"""Names that each of the two searches proposes for a query."""
_QUERIES_AT_ONCE = 64


class BiosynMeasure(Measure):
    """A development set whose queries are answered by the sum of both scores.

    Ranked are the names that either search puts among its first `DEPTH`; a right one that neither does counts as not
    found. A concept has the score of the best of its names; of equal scores, compared to six decimals, the concept that
    comes first in the dictionary is first.

    Args:
        data: Queries and dictionary.
        tokenizer: The encoder's.
        sparse_weight: The weight as it is at any time.
        normalisation: Preset that names and queries go through.
        max_tokens: Longer ones are cut, as in training.
        tell: See `Measure`.
    """

    def __init__(
        self,
        data: DevelopmentSet,
        tokenizer: Tokenizer,
        *,
        sparse_weight: torch.Tensor,
        normalisation: str,
        max_tokens: int,
        tell: Tell = lambda _: None,
    ) -> None:
        super().__init__(data, tokenizer, normalisation=normalisation, max_tokens=max_tokens, tell=tell)
        names, queries = (texts.to_list() for texts in self._texts)
        self._sparse_weight = sparse_weight
        self._query_texts = queries
        self._index = CharNgramIndex.build(names, ngrams=(1, 2))
        self._sparse = self._index.search(queries, k=DEPTH)

    def __call__(self, encode: EncodeRows, progress: CountProgress = no_count) -> Scores:
        """Encode names and queries, and see where the answers stand.

        Args:
            encode: Gives vectors whose dot product is the dense score.
            progress: Called with (done, total) queries as they are searched; what it raises ends it.
        """
        vectors = encode(self._store, self._rows).cpu().numpy()
        names, queries = vectors[self._names], vectors[self._queries]
        index, found_rows = ExactIndex(names), []
        for begin in range(0, len(queries), _QUERIES_AT_ONCE):
            found_rows.append(index.search(queries[begin : begin + _QUERIES_AT_ONCE], k=DEPTH)[0])
            progress(min(begin + _QUERIES_AT_ONCE, len(queries)), len(queries))
        dense_rows = np.concatenate(found_rows)
        sparse_rows, sparse_scores = self._sparse
        found = np.concatenate([sparse_rows, dense_rows], axis=1)
        sparse = np.concatenate([sparse_scores, self._index.scores(self._query_texts, dense_rows)], axis=1)
        dense = np.concatenate(
            [
                np.einsum("qd,qkd->qk", queries[part], names[found[part]])
                for part in np.array_split(np.arange(len(found)), -(-len(found) // _QUERIES_AT_ONCE))
            ]
        )
        weight = float(self._sparse_weight.detach())
        return Scores.of_ranks(self._ranks(found, np.round(dense.astype(np.float64) + weight * sparse, SCORE_DECIMALS)))

    def _ranks(self, names: RowArray, scores: FloatArray) -> RowArray:
        """Place of the first right concept of each query among the concepts of some names, from 1; 0: none of them."""
        ranks = np.zeros(len(names), np.int64)
        ends = np.searchsorted(self._answers[:, 0], np.arange(len(names) + 1))
        for query, (rows, of_rows) in enumerate(zip(names, scores, strict=True)):
            concepts = self._name_concepts[rows]
            order = np.lexsort((concepts, -of_rows))
            _, first = np.unique(concepts[order], return_index=True)
            ranked = concepts[order][np.sort(first)]
            places = np.flatnonzero(np.isin(ranked, self._answers[ends[query] : ends[query + 1], 1]))
            if len(places):
                ranks[query] = places[0] + 1
        return ranks
