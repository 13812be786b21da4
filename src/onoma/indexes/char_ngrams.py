"""Sparse search: names by the characters that they share with a text.

A name is the TF-IDF vector of its character n-grams, as made by scikit-learn's
``TfidfVectorizer(analyzer="char", ngram_range=(a, b))`` fitted on the names: lower case, two or more white spaces as
one space; weight of an n-gram = how often it occurs x (ln((1 + N) / (1 + names with it)) + 1); length 1. The score is
the cosine. BioSyn uses 1-2-grams of its dictionary; 2-4-grams are less easily misled by misspellings.

Only the n-grams that text and name share are examined, by inverted lists (`Postings`); no matrix of texts and names is
made. A search goes from rare n-grams to frequent ones. After the rare ones, a name's score can still rise by at most
the length of the rest of the text's vector times the length of the rest of the name's, which is stored
(Cauchy-Schwarz). From then on, only names that can still be among the best are examined, if they are few; most often
they are.

A score is a sum in double precision in a fixed order (rare before frequent n-grams), rounded to single precision at the
end: the same by `search` and by `scores`, whatever the other texts of the call are.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onoma.artifacts.arrays import load_array
from onoma.artifacts.system import is_of_system
from onoma.errors import DamagedArtifactError, InputError, ShapeError, check_several
from onoma.indexes.char_ngram_vectors import NgramVector, NgramVectors, checked_texts, occurrences, prepared_parts
from onoma.indexes.char_ngram_weights import STAGES, fits_frequencies, idf_of, lengths_of, stages_of
from onoma.indexes.inverting import inverting
from onoma.indexes.ngram_keys import NgramKeys, checked_ngrams
from onoma.indexes.postings import CountArray, ListRowArray, Postings, array_file
from onoma.indexes.scoring import checked_k
from onoma.indexes.selection import top_rows
from onoma.quantities import quantity
from onoma.types import BoolArray, DoubleArray, FloatArray, RowArray

ABOUT_FILE = "char_ngrams.json"
"""Lies in the folder of whatever has such an index."""
_NAME = "char_ngrams"
_LOOK_UP_COST = 8
"""What it takes to look one name up in one list, where adding one entry of a list to the sums takes 1."""
_BLOCK_ROWS = 1 << 16
"""Rows summed at a time, so that their sums stay in the processor's cache."""
_ROWS_AT_ONCE = 1 << 14
"""Rows looked up at a time for all terms, so that what is looked up stays small."""
_NUMBERS_AT_ONCE = 1024
"""Numbers of a list that must be in such a block on average, so that the arithmetic outweighs the calls."""
_ROUNDING = 1e-6
"""More than rounding to single precision can change."""


class CharNgramIndex:
    """Nearest names by TF-IDF of character n-grams.

    Shapes: N names, V distinct n-grams, Q texts, K the smaller of ``k`` and N.

    Made by `build`, kept by `save` and `open`. n-grams that no name has do not count (but see `counting_unknown`); a
    text that shares none with any name, such as an empty one, scores 0 with all.

    Example:
        >>> index = CharNgramIndex.build(["heart attack", "heart failure", "asthma"], ngrams=(2, 4))
        >>> rows, scores = index.search(["heart attak"], k=2)
        >>> rows.tolist(), [f"{score:.2f}" for score in scores[0]]
        ([[0, 1]], ['0.87', '0.30'])
    """

    def __init__(
        self, vectors: NgramVectors, *, inverse_lengths: DoubleArray, rest_lengths: FloatArray, postings: Postings
    ) -> None:
        self._vectors, self._postings = vectors, postings
        self._inverse_lengths, self._rest_lengths = inverse_lengths, rest_lengths
        self._is_left_out: BoolArray | None = None
        """Of each name; unset: all are searched."""
        self._is_checked = np.zeros(postings.n_terms, np.bool_)
        """Of each n-gram, whether its list was read."""
        self._are_lengths_checked = False

    def __repr__(self) -> str:
        return f"CharNgramIndex({quantity(len(self), 'name')}, {quantity(self._postings.n_terms, 'n-gram')})"

    @classmethod
    def build(cls, texts: Iterable[str], *, ngrams: tuple[int, int] = (1, 2)) -> CharNgramIndex:
        """Fit on names and index them, in memory: about 5 bytes for each n-gram of each name.

        Args:
            texts: The names.
            ngrams: Shortest and longest n-gram, e.g. (1, 2) as in BioSyn, or (2, 4).

        Raises:
            InputError: something is not text, the lengths are impossible, or the names have too many distinct
                characters for them.
        """
        return cls._built(checked_texts(texts), ngrams, None)

    @classmethod
    def write(cls, folder: str | Path, texts: Sequence[str], *, ngrams: tuple[int, int] = (1, 2)) -> CharNgramIndex:
        """Write the same files as `build` and `save`, in bounded memory: about 20 bytes for each name.

        Meanwhile, 3 bytes for each n-gram of each name are kept in an unnamed file in ``folder``.

        Args:
            folder: Where to write; it is made if missing. It cannot be opened until everything is there.
            texts: The names. Gone through twice.
            ngrams: See `build`.

        Raises:
            InputError: the texts are one string, or see `build` for ``ngrams``.
        """
        check_several(texts, "texts")
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        (place / ABOUT_FILE).unlink(missing_ok=True)
        index = cls._built(texts, ngrams, place)
        index._save_own(place)
        return index

    @classmethod
    def _built(cls, texts: Sequence[str], ngrams: tuple[int, int], folder: Path | None) -> CharNgramIndex:
        ngram_keys = NgramKeys.fit(prepared_parts(texts), ngrams)
        with inverting(occurrences(texts, ngram_keys), len(texts), folder=folder) as inversion:
            idf = idf_of(len(texts), inversion.frequencies)
            stages = stages_of(inversion)
            inverse_lengths, rest_lengths = lengths_of(inversion, idf, stages)
            return cls(
                NgramVectors(ngram_keys, inversion.keys, idf, stages, len(texts)),
                inverse_lengths=inverse_lengths,
                rest_lengths=rest_lengths,
                postings=inversion.postings() if folder is None else inversion.write(folder, _NAME),
            )

    def save(self, folder: str | Path) -> None:
        """Write the index's files, ``char_ngrams.*``, into ``folder``."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        (place / ABOUT_FILE).unlink(missing_ok=True)
        self._postings.save(place, _NAME)
        self._save_own(place)

    def _save_own(self, place: Path) -> None:
        """All but the lists; the file without which nothing can be opened at the end."""
        vectors = self._vectors
        for name, array in (
            ("alphabet", vectors.ngram_keys.alphabet),
            ("keys", vectors.keys),
            ("idf", vectors.idf),
            ("inverse_lengths", self._inverse_lengths),
            ("rest_lengths", self._rest_lengths),
            ("stages", vectors.stages),
        ):
            np.save(array_file(place, _NAME, name), array)
        (place / ABOUT_FILE).write_text(json.dumps({"ngrams": self.ngrams}) + "\n", encoding="utf-8")

    @classmethod
    def open(cls, folder: str | Path) -> CharNgramIndex:
        """Open what `save` wrote, memory-mapped; processes that open one folder share it.

        Raises:
            DamagedArtifactError: a file is missing, or the files do not fit one another.
        """
        place = Path(folder)
        try:
            ngrams = checked_ngrams(json.loads((place / ABOUT_FILE).read_text(encoding="utf-8"))["ngrams"])
        except (OSError, ValueError, KeyError, TypeError, InputError) as error:
            if is_of_system(error):
                raise
            raise DamagedArtifactError(
                f"{place / ABOUT_FILE} cannot be read ({error}). Make the folder again."
            ) from None

        def load(name: str, dtype: type[np.generic], n_dimensions: int = 1) -> npt.NDArray[Any]:
            return np.asarray(load_array(array_file(place, _NAME, name), (dtype,), n_dimensions))

        alphabet, keys, idf = load("alphabet", np.uint32), load("keys", np.uint64), load("idf", np.float64)
        inverse_lengths, rest_lengths = load("inverse_lengths", np.float64), load("rest_lengths", np.float32, 2)
        stages, postings = load("stages", np.int8), Postings.open(place, _NAME)
        is_whole = (
            len(keys) == len(idf) == len(stages) == postings.n_terms
            and len(inverse_lengths) == postings.n_rows
            and rest_lengths.shape == (STAGES - 1, postings.n_rows)
            and bool(np.all((stages >= 0) & (stages < STAGES)))
            and np.array_equal(np.flatnonzero(stages == STAGES - 1), postings.column_terms)
            and np.array_equal(np.flatnonzero(postings.offsets[1:] == postings.offsets[:-1]), postings.column_terms)
            and bool(np.all(keys[1:] > keys[:-1]))
            and bool(np.all(alphabet[1:] > alphabet[:-1]))
            and fits_frequencies(idf, postings)
        )
        if not is_whole:
            raise DamagedArtifactError(f"{place}: the files {_NAME}.* do not fit one another. Make the folder again.")
        return cls(
            NgramVectors(NgramKeys(alphabet, ngrams), keys, idf, stages, postings.n_rows),
            inverse_lengths=inverse_lengths,
            rest_lengths=rest_lengths,
            postings=postings,
        )

    def __len__(self) -> int:
        return len(self._inverse_lengths)

    def among(self, rows: RowArray) -> CharNgramIndex:
        """The same search among some of the names, which keep their numbers and weights.

        Args:
            rows: Each once, shape (n,).
        """
        other = copy.copy(self)
        other._is_left_out = np.ones(len(self), np.bool_)
        other._is_left_out[rows] = False
        return other

    def counting_unknown(self) -> CharNgramIndex:
        """The same index, except that n-grams that no name has make a text longer, as rare as n-grams can be.

        All scores of a text are lower by one factor, and below 1 if a part of it is in no name.

        Example:
            >>> index = CharNgramIndex.build(["ab", "cd"], ngrams=(1, 1))
            >>> score, lower = (one.search(["abx"], k=1)[1].item() for one in (index, index.counting_unknown()))
            >>> round(score, 3), round(lower, 3)
            (1.0, 0.688)
        """
        other = copy.copy(self)
        other._vectors = replace(self._vectors, counts_unknown=True)
        return other

    @property
    def ngrams(self) -> tuple[int, int]:
        """Shortest and longest n-gram."""
        return self._vectors.ngram_keys.ngrams

    def search(self, texts: Iterable[str], *, k: int = 5) -> tuple[RowArray, FloatArray]:
        """The ``k`` nearest names of each text.

        Args:
            texts: Any text; equal ones are searched once.
            k: How many names to return; if fewer are searched, all of these.

        Returns:
            Rows, int64, and their scores, float32, both of shape (Q, K): higher score first, and among equal scores the
            lower row first. Names that share nothing with the text come last, with the score 0.

        Raises:
            InputError: something is not text, or ``k`` is less than 1.
            DamagedArtifactError: a file has changed since it was opened, or before if it is so large that opening read
                only a sample.
        """
        k = checked_k(k)
        checked = checked_texts(texts)
        place_of = {text: place for place, text in enumerate(dict.fromkeys(checked))}
        rows, scores = self._nearest(self._vectors.of(list(place_of)), len(place_of), k)
        places = np.array([place_of[text] for text in checked], np.int64)
        return rows[places], scores[places]

    def vectors(self, texts: Iterable[str]) -> list[NgramVector]:
        """The TF-IDF vectors of Q texts, for those that are searched for and scored more than once.

        Raises:
            InputError: something is not text.
        """
        return list(self._vectors.of(checked_texts(texts)))

    def nearest(self, vectors: Sequence[NgramVector], *, k: int) -> tuple[RowArray, FloatArray]:
        """The ``k`` nearest names of each vector, as `search` gives them."""
        return self._nearest(vectors, len(vectors), checked_k(k))

    def _nearest(self, queries: Iterable[NgramVector], n_queries: int, k: int) -> tuple[RowArray, FloatArray]:
        left_out = self._is_left_out
        k = min(k, len(self) if left_out is None else int(np.count_nonzero(~left_out)))
        rows, scores = np.empty((n_queries, k), np.int64), np.empty((n_queries, k), np.float32)
        if k:
            self._check_lengths()
            totals = np.empty(len(self))
            for place, query in enumerate(queries):
                found, of_found = self._search_one(query, k, totals)
                if len(found) != k:  # some score higher than it could be by the lengths
                    raise _other_lengths()
                rows[place], scores[place] = found, of_found
        return rows, scores

    def scores(self, texts: Iterable[str], rows: RowArray) -> FloatArray:
        """The scores of given names, the same as `search` gives them.

        Args:
            texts: Q texts.
            rows: Of names, for each text, shape (Q, K).

        Returns:
            Shape (Q, K).

        Raises:
            ShapeError: not one line of rows for each text.
            InputError: something is not text, or there is no such row.
        """
        checked = checked_texts(texts)
        rows = np.asarray(rows)
        if not rows.size:
            rows = rows.astype(np.int64)
        if rows.ndim != 2 or len(rows) != len(checked):
            raise ShapeError(f"rows must have shape ({len(checked)}, k), one line for each text; found {rows.shape}.")
        if rows.size and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= len(self)):
            raise InputError("there is no such row", field="rows", expected=f"whole numbers from 0 to {len(self) - 1}")
        scores = np.empty(rows.shape, np.float32)
        for place, query in enumerate(self._vectors.of(checked)):
            scores[place] = self.scores_of(query, rows[place])
        return scores

    def scores_of(self, vector: NgramVector, rows: RowArray) -> FloatArray:
        """The scores of given names for one vector, as `scores` gives them, shape (n,).

        Args:
            vector: Of a text.
            rows: Of names that there are, shape (n,).
        """
        return self._finished(vector, 0, rows, np.zeros(len(rows)))

    def weights(self, text: str) -> dict[str, float]:
        """The TF-IDF vector of a text: the weight of each n-gram that it shares with any name, heaviest first."""
        (checked,) = checked_texts([text])
        return self._vectors.weights(checked)

    def _search_one(self, query: NgramVector, k: int, totals: DoubleArray) -> tuple[RowArray, FloatArray]:
        """The answer to one query; ``totals``, shape (N,), is what it works on."""
        totals.fill(0)
        begin = 0
        for stage, end in enumerate(query.ends):
            highest = self._add(query, begin, end, totals, stage)
            if self._is_left_out is not None:
                highest[self._is_left_out] = -1  # behind those that share nothing with the text
            begin = end
            if begin == len(query.terms):
                break
            candidates = self._candidates(query, begin, k, totals, highest)
            if candidates is not None:
                scores = self._finished(query, begin, candidates, totals[candidates])
                best = top_rows(scores, k)
                return candidates[best], scores[best]
        best = top_rows(highest, k)
        return best, highest[best]

    def _add(self, query: NgramVector, begin: int, end: int, totals: DoubleArray, stage: int) -> FloatArray:
        """Add what the terms of a stage contribute to ``totals``, for all rows.

        Returns:
            The highest score that each row can still have, shape (N,); after the last term, its score.
        """
        rest = np.float32(math.sqrt(math.fsum(query.unit[end:] ** 2)))
        highest = np.empty(len(self), np.float32)
        n_listed = min(max(begin, query.n_listed), end)
        lists = [self._listed(term) for term in query.terms[begin:n_listed].tolist()]
        columns = self._postings.columns_of(query.terms[n_listed:end])
        n_numbers = sum(len(rows) for rows, _ in lists) + len(self) * len(columns)
        n_blocks = min(-(-len(self) // _BLOCK_ROWS), 1 + n_numbers // (_NUMBERS_AT_ONCE * max(1, end - begin)))
        edges = np.linspace(0, len(self), n_blocks + 1).astype(np.int32)
        bounds = [rows.searchsorted(edges).tolist() for rows, _ in lists]
        for block, (first, last) in enumerate(itertools.pairwise(edges.tolist())):
            here = totals[first:last]
            for (rows, counts), weight, bound in zip(lists, query.weights[begin:n_listed], bounds, strict=True):
                low, high = bound[block], bound[block + 1]
                if high > low:
                    np.add.at(totals, rows[low:high], np.multiply(counts[low:high], weight, dtype=np.float64))
            for column, weight in zip(columns, query.weights[n_listed:end], strict=True):
                here += np.multiply(column[first:last], weight, dtype=np.float64)
            highest[first:last] = here * self._inverse_lengths[first:last]
            if rest:
                highest[first:last] += self._rest_lengths[stage, first:last] * rest
        return highest

    def _listed(self, term: int) -> tuple[ListRowArray, CountArray]:
        """Rows and counts of a term that has no column; that there are such rows is checked when it is read first."""
        rows, counts = self._postings.listed(term)
        if not self._is_checked[term]:
            if rows.min(initial=0) < 0 or rows.max(initial=0) >= len(self):
                raise DamagedArtifactError(
                    "The index of character n-grams names rows that there are not: it has changed since it was "
                    "written. Make its folder again."
                )
            self._is_checked[term] = True
        return rows, counts

    def _check_lengths(self) -> None:
        """Refuse lengths that no name can have, the first time that something is searched for, as all are read then."""
        if not self._are_lengths_checked:
            most = 1 + _ROUNDING  # no n-gram weighs less than 1
            if not all(np.all((part >= 0) & (part <= most)) for part in (self._inverse_lengths, *self._rest_lengths)):
                raise _other_lengths()
            self._are_lengths_checked = True

    def _candidates(
        self, query: NgramVector, done: int, k: int, totals: DoubleArray, highest: FloatArray
    ) -> RowArray | None:
        """Ascending rows among which the ``k`` best and their equals are, if they are few enough to be looked up.

        Args:
            query: The text.
            done: How many of its terms are summed in ``totals``.
            k: How many rows are wanted.
            totals: Sums so far.
            highest: See `_add`.
        """
        likely = top_rows(highest, k)
        reached = self._finished(query, done, likely, totals[likely]).min() - np.float32(_ROUNDING)
        candidates = np.flatnonzero(highest >= reached)
        n_left = len(query.terms) - done
        n_columns = min(n_left, len(query.terms) - query.n_listed)
        work_left = int(self._postings.lengths(query.terms[done:]).sum()) + n_columns * len(self)
        is_few = len(candidates) * n_left * _LOOK_UP_COST <= work_left
        return candidates if is_few else None

    def _finished(self, query: NgramVector, done: int, rows: RowArray, totals: DoubleArray) -> FloatArray:
        """Scores of some rows, from their sums over the first so many terms."""
        totals = totals.copy()
        # Rows of the same type as the lists': searching would otherwise convert whole lists.
        wanted, weights = rows.astype(np.int32), query.weights[done:, None]
        n_listed = max(0, query.n_listed - done)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            counts = self._postings.counts_at(query.terms[done:], wanted[part], n_listed=n_listed)
            for of_term in np.multiply(counts, weights, dtype=np.float64):
                totals[part] += of_term  # one after the other, as in `_add`: any other sum would be rounded otherwise
        return (totals * self._inverse_lengths[rows]).astype(np.float32)


def _other_lengths() -> DamagedArtifactError:
    return DamagedArtifactError(
        "The lengths in the index of character n-grams are not those of its names: it has changed since it was "
        "written. Make its folder again."
    )
