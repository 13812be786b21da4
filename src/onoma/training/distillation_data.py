"""What is taught in distillation: the names of a linker, and which of them its vectors find near one another."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass

import numpy as np
import polars as pl
from tokenizers import Tokenizer

from onoma.artifacts.arrays import hash_arrays
from onoma.errors import InputError
from onoma.indexes.protocol import StoredVectors
from onoma.linking import Linker
from onoma.linking.searching import AllowedTexts, DenseSearch
from onoma.pairs import NameStore
from onoma.quantities import quantity
from onoma.terminology import normalise_expr
from onoma.training.batches import Batches, ShuffledRows
from onoma.training.distillation_config import FEWEST_NAMES, DistillationConfig
from onoma.training.measuring import tokenise_distinct
from onoma.types import RowArray


@dataclass(frozen=True, slots=True, eq=False)
class TaughtNames:
    """The names of a linker that differ for the student, tokenised for it.

    Shapes: V names, T texts of the linker.
    """

    store: NameStore
    rows: RowArray
    """Row of each name in the store, ascending, shape (V,)."""
    text_rows: RowArray
    """Row of the linker's text that each name is taken from, the first of those that the student cannot tell apart,
    shape (V,)."""
    name_of_text: RowArray
    """Of each text of the linker the name that it is for the student, -1 for one that takes no part, shape (T,)."""
    search: DenseSearch
    """By the linker's vectors, which are the teacher's."""
    linker: str
    """The linker's fingerprint."""

    @property
    def vectors(self) -> StoredVectors:
        """The teacher's, of all texts."""
        return self.search.vectors

    @property
    def fingerprint(self) -> str:
        """SHA-256 over tokens, and all that the teacher's vectors depend on."""
        digest = hashlib.sha256(self.linker.encode())
        hash_arrays(digest, self.store.offsets, self.store.ids, self.text_rows)
        return digest.hexdigest()


def taught_names(linker: Linker, tokenizer: Tokenizer, *, normalisation: str, max_tokens: int) -> TaughtNames:
    """Prepare the names of a linker for training.

    Args:
        linker: Of its names those that can be an answer are taken.
        tokenizer: The student's.
        normalisation: Preset that the linker's texts go through for the student.
        max_tokens: Longer names are cut.

    Raises:
        InputError: the linker has no vectors, or fewer than three names that differ for the student.
    """
    search, mask = linker.dense_search, AllowedTexts.of(linker.allowed_entries, linker.dictionary).mask
    texts = pl.DataFrame({"text": list(linker.dictionary.texts)}, schema={"text": pl.String}).with_row_index("row")
    if mask is not None:
        texts = texts.filter(pl.Series(mask))
    texts = texts.with_columns(normalise_expr(pl.col("text"), normalisation)).filter(pl.col("text") != "")
    store, rows, places = tokenise_distinct(texts["text"], tokenizer, max_tokens)
    if len(rows) < FEWEST_NAMES:
        raise InputError(
            "the linker has too few names to learn from",
            path=linker.path,
            expected="three or more that differ for the encoder to be trained",
            found=f"{quantity(linker.dictionary.n_texts, 'text')}, {len(rows):,} after normalisation and tokenisation",
        )
    text_rows = texts["row"].to_numpy().astype(np.int64)
    first = np.unique(places, return_index=True)[1]
    name_of_text = np.full(linker.dictionary.n_texts, -1, np.int64)
    name_of_text[text_rows] = places
    return TaughtNames(store, rows, text_rows[first], name_of_text, search, linker.fingerprint)


class NeighbourhoodBatches(Batches):
    """Shuffled batches of names, pass after pass, each together with some of those that the teacher finds nearest.

    A batch has ``batch_names / (1 + neighbours)`` names, rounded down, in the order of `ShuffledRows`; each brings as
    many companions, drawn at random from its nearest. A name that comes twice is taken once. Names that the teacher
    cannot read, whose vectors are zero, take no part. Nothing is kept between batches: what is near follows from the
    teacher's vectors alone, which do not change.

    Args:
        names: What is taught.
        config: How many names, and neighbours.
    """

    def __init__(self, names: TaughtNames, config: DistillationConfig) -> None:
        at_once = config.batch_names // (1 + config.neighbours)
        super().__init__(ShuffledRows(len(names.rows), at_once=at_once, seed=config.seed))
        self._names, self._config = names, config
        self._of_batch = functools.lru_cache(maxsize=1)(self._draw)

    def of_batch(self, batch_number: int) -> RowArray:
        """The names of a batch, ascending, each once; none if the teacher can read none of those drawn."""
        return self._of_batch(batch_number)

    def names_of_step(self, batch_number: int) -> RowArray:
        """Their rows in the store, ascending."""
        rows: RowArray = self._names.rows[self.of_batch(batch_number)]
        return rows

    def _draw(self, batch_number: int) -> RowArray:
        names, config = self._names, self._config
        drawn = self._order.rows_of_step(batch_number)
        vectors = names.vectors.take(names.text_rows[drawn])
        is_read = vectors.any(1)
        drawn, vectors = drawn[is_read], vectors[is_read]
        if config.neighbours == 0 or len(drawn) == 0:
            return np.sort(drawn)
        # One more, as the nearest of all is the text itself.
        found, scores = names.search.nearest(vectors, config.nearest + 1)
        near = names.name_of_text[found]
        may_come = (near >= 0) & (near != drawn[:, None]) & (scores != 0)
        random = np.random.default_rng([config.seed, batch_number, _COMPANIONS])
        order = np.where(may_come, random.random(near.shape), 2.0).argsort(1)[:, : config.neighbours]
        companions = np.take_along_axis(near, order, 1)[np.take_along_axis(may_come, order, 1)]
        return np.unique(np.concatenate([drawn, companions]))


_COMPANIONS = 3
"""Which draw a random stream is for, after the seed and a batch number."""
