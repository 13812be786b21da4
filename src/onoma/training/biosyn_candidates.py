"""The candidates that BioSyn ranks for each query: half found by characters, the rest by the encoder as it is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onoma.indexes import ExactIndex
from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.training.batches import Batches, ShuffledRows
from onoma.training.biosyn_config import BiosynConfig
from onoma.training.biosyn_data import RankingData
from onoma.training.kept_tables import keep_table, kept_table
from onoma.training.neighbours import Encode
from onoma.types import BoolArray, FloatArray, RowArray, Tell

_TIMED_TEXTS = 2048
"""Texts that are encoded to know how long all of them would take."""
_TIMED_QUERIES = 64


def join_candidates(sparse: RowArray, dense: RowArray, k: int) -> RowArray:
    """The sparse candidates of each query, then of its dense ones the best that are not among them, k in all.

    Args:
        sparse: Best first, each once, shape (Q, at most k).
        dense: Best first, each once, shape (Q, at least k).
        k: How many.

    Returns:
        Shape (Q, k).

    Example:
        >>> join_candidates(np.array([[4, 1]]), np.array([[1, 7, 4, 2]]), 4).tolist()
        [[4, 1, 7, 2]]
    """
    joined = np.empty((len(sparse), k), np.int64)
    for query, (first, then) in enumerate(zip(sparse.tolist(), dense.tolist(), strict=True)):
        joined[query] = list(dict.fromkeys([*first, *then]))[:k]
    return joined


@dataclass(frozen=True, slots=True, eq=False)
class CandidateBatch:
    """Queries of a batch that have a right candidate, and their candidates.

    Shapes: B queries, K candidates.
    """

    queries: RowArray
    """Rows of `RankingData.queries`, shape (B,)."""
    names: RowArray
    """Rows of `RankingData.names`, shape (B, K)."""
    right: BoolArray
    """Shape (B, K)."""


class CandidateBatches(Batches):
    """Shuffled batches of queries, pass after pass, with candidates that are searched anew before each pass.

    The sparse half never changes. What was found for a pass is written to the run folder under the pass's number, and
    stays there: a resumed run reads it, as the weights that it was found with are gone. It is always made anew at the
    first step that begins in the pass, so that nothing of an abandoned run is taken for this one's. Before the first
    search all candidates are sparse ones, which serves to measure the speed.

    Args:
        data: Queries and names.
        config: How many queries, candidates and sparse ones among them; where there are fewer names, all of them are
            candidates.
        run_folder: Where what was found is kept.
        tell: Called with sentences worth telling.

    Source:
        Sung et al. 2020, "iterative candidate retrieval". Differs: queries without a right candidate are left out
        before they are encoded, not after.
    """

    def __init__(self, data: RankingData, config: BiosynConfig, run_folder: Path, *, tell: Tell) -> None:
        super().__init__(ShuffledRows(len(data.queries), at_once=config.batch_queries, seed=config.seed))
        self._data, self._config, self._run_folder, self._tell = data, config, run_folder, tell
        self._n_candidates = min(config.candidates, len(data.names))
        self._n_sparse = min(config.sparse_candidates, self._n_candidates)
        self._index = CharNgramIndex.build(data.names, ngrams=(1, 2))
        self._sparse, _ = self._index.search(data.queries, k=self._n_candidates)
        self._table = self._sparse
        self._pass = -1

    def of_batch(self, batch_number: int) -> CandidateBatch:
        """Queries and candidates of a batch, as `prepare` found them."""
        queries = self._order.rows_of_step(batch_number)
        names = self._table[queries]
        right = self._data.is_right(queries, names)
        kept = right.any(1)
        return CandidateBatch(queries[kept], names[kept], right[kept])

    def names_of_step(self, batch_number: int) -> RowArray:
        """Rows of the store that a batch needs, each once, ascending; none if no query has a right candidate."""
        batch = self.of_batch(batch_number)
        places = np.concatenate([self._data.query_places[batch.queries], self._data.name_places[batch.names.ravel()]])
        rows: RowArray = self._data.rows[np.unique(places)]
        return rows

    def sparse_scores(self, batch: CandidateBatch) -> FloatArray:
        """TF-IDF cosines of queries and candidates, float32, shape (B, K)."""
        return self._index.scores([self._data.queries[row] for row in batch.queries], batch.names)

    def prepare(self, batch_number: int, encode: Encode) -> None:
        """Search anew if a pass begins, or read what was found when it did.

        Args:
            batch_number: Of the first batch of the coming step.
            encode: Vectors of rows of the store, compared as in training by their dot product.

        Raises:
            TrainingError: what was found when the pass began is gone.
        """
        number, position = divmod(batch_number, self.steps_per_epoch)
        if number == self._pass or self._n_sparse == self._n_candidates:
            return
        file = self._run_folder / f"candidates-{number:05}.npy"
        if position < self._config.accumulation:  # no step of this pass came before
            table = self._search(encode)
            keep_table(file, table)
        else:
            table = kept_table(file, "candidates found when this pass began", shape=self._sparse.shape)
        self._pass, self._table = number, table

    def preparation_seconds(self, encode: Encode) -> tuple[float, float]:
        """About how long searching takes, once and per batch; measured on a part of the texts."""
        if self._n_sparse == self._n_candidates:
            return 0.0, 0.0
        rows, data = self._data.rows, self._data
        started = time.perf_counter()
        vectors = encode(rows[:: max(1, len(rows) // _TIMED_TEXTS)])
        encoding = (time.perf_counter() - started) / len(vectors) * len(rows)
        started = time.perf_counter()
        ExactIndex(vectors).search(vectors[:_TIMED_QUERIES], k=self._n_candidates)
        of_each = (time.perf_counter() - started) / len(vectors) / min(_TIMED_QUERIES, len(vectors))
        once = encoding + of_each * len(data.names) * len(data.queries)
        return once, once / self.steps_per_epoch

    def _search(self, encode: Encode) -> RowArray:
        started = time.perf_counter()
        data = self._data
        vectors = encode(data.rows)
        names, queries = vectors[data.name_places], vectors[data.query_places]
        del vectors  # with a large encoder a dictionary's are hundreds of megabytes
        dense, _ = ExactIndex(names).search(queries, k=self._n_candidates)
        table = join_candidates(self._sparse[:, : self._n_sparse], dense, self._n_candidates)
        answered = int(data.is_right(np.arange(len(table)), table).any(1).sum())
        self._tell(
            f"{answered:,} of {len(table):,} queries have a right name among their {self._n_candidates} candidates "
            f"(searched in {time.perf_counter() - started:,.0f} s)"
        )
        return table
