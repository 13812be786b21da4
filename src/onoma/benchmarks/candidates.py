"""What a benchmark judges: the ranked candidates of each text, by encoder, by baseline, by linker, by look-up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from onoma.benchmarks.biosyn import Asked, DictionaryLine
from onoma.codes import codes_of_concept
from onoma.encoders import Encoder
from onoma.encoders.encoding import checked_vectors
from onoma.indexes import ExactIndex
from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.indexes.scoring import exact_scores
from onoma.indexes.vector_store import VectorStore
from onoma.linking import Link
from onoma.linking.baselines import Baseline
from onoma.linking.baselines.name_search import check_ranked
from onoma.terminology import normalise
from onoma.types import SCORE_DECIMALS, CountProgress, DoubleArray, FloatArray, RowArray

_FIRST_DEPTH = 64
"""Lines that each search looks for at first."""
_MORE_THAN_ROUNDING = 1e-5
"""More than rounding to single precision, and then to six decimals, can add to a score."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer to a text: the ids it stands for, the name that matched, its score."""

    ids: tuple[str, ...]
    name: str
    score: float

    @property
    def codes(self) -> frozenset[str]:
        """By which these are meant: a concept's id ``a|b`` stands for both."""
        return all_codes(self.ids)


def all_codes(ids: Iterable[str]) -> frozenset[str]:
    """By which concepts of these ids are meant, see `onoma.codes.codes_of_concept`."""
    return frozenset(code for one in ids for code in codes_of_concept(one))


Candidates: TypeAlias = dict[Asked, list[Candidate]]
"""For what was asked (`onoma.benchmarks.biosyn.Query.asked`) the candidates, best first."""


def nearest_lines(
    encoder: Encoder,
    dictionary: Sequence[DictionaryLine],
    texts: Sequence[str],
    *,
    k: int,
    sparse_weight: float = 0.0,
    progress: CountProgress | None = None,
) -> Candidates:
    """The ``k`` dictionary lines nearest to each text; of equal scores the earlier line first.

    The score is the cosine of the vectors, plus ``sparse_weight`` (0 or more) times that of the character 1-2-grams,
    which are weighed by the dictionary's lines (see `CharNgramIndex`).

    Names and texts go through the normalisation that the encoder was trained with. What is equal then is encoded once,
    so that lines which differ in their ids alone have exactly equal scores.
    """
    prepare = partial(normalise, preset=encoder.folder.normalisation)
    names = [prepare(line.name) for line in dictionary]
    asked = [prepare(text) for text in texts]
    place = {name: row for row, name in enumerate(dict.fromkeys(names))}
    of_names = checked_vectors(encoder.encode(list(place), progress=progress), len(place), encoder)
    vectors = of_names[np.array([place[name] for name in names])]
    queries = checked_vectors(encoder.encode(asked), len(asked), encoder)
    if sparse_weight:
        found = _best_by_both(VectorStore(vectors), CharNgramIndex.build(names), queries, asked, k, sparse_weight)
    else:
        rows, scores = ExactIndex(vectors).search(queries, k=k)
        found = list(zip(rows, scores, strict=True))
    return {
        text: [
            Candidate(dictionary[row].ids, dictionary[row].name, score)
            for row, score in zip(text_rows.tolist(), text_scores.tolist(), strict=True)
        ]
        for text, (text_rows, text_scores) in zip(texts, found, strict=True)
    }


def _best_by_both(
    vectors: VectorStore, sparse: CharNgramIndex, queries: FloatArray, texts: Sequence[str], k: int, weight: float
) -> list[tuple[RowArray, DoubleArray]]:
    """Of each text the ``k`` rows with the highest sum of both scores, to six decimals, and these.

    No row is missed. One that neither search has among its first ones scores at most the sum of the last score of each;
    where that is not below the ``k``-th best sum, both look further (Fagin, Lotem, Naor 2001, the threshold algorithm).

    Args:
        vectors: Of the names, shape (N, W).
        sparse: Of the same N names.
        queries: Of the texts, shape (Q, W).
        texts: Q texts.
        k: How many.
        weight: Of the sparse score, above 0.
    """
    dense = ExactIndex(vectors)
    found: dict[int, tuple[RowArray, DoubleArray]] = {}
    left, depth = list(range(len(texts))), max(k, _FIRST_DEPTH)
    while left:
        dense_rows, dense_scores = dense.search(queries[left], k=depth)
        sparse_rows, sparse_scores = sparse.search([texts[place] for place in left], k=depth)
        most = dense_scores[:, -1] + weight * sparse_scores[:, -1] + _MORE_THAN_ROUNDING
        for at, place in enumerate(left):
            rows = np.union1d(dense_rows[at], sparse_rows[at])
            ngrams = sparse.scores([texts[place]], rows[None])[0].astype(np.float64)
            scores = (exact_scores(vectors, queries[place], rows) + weight * ngrams).round(SCORE_DECIMALS)
            best = np.lexsort((rows, -scores))[:k]
            if depth >= len(sparse) or scores[best[-1]] > most[at]:
                found[place] = rows[best], scores[best]
        left, depth = [place for place in left if place not in found], 4 * depth
    return [found[place] for place in range(len(texts))]


def best_lines(baseline: Baseline, dictionary: Sequence[DictionaryLine], texts: Sequence[str], *, k: int) -> Candidates:
    """The ``k`` dictionary lines that a baseline scores highest; of equal scores the earlier line first.

    Lines that have nothing in common with a text are no candidates of it.
    """
    prepare = partial(normalise, preset=baseline.normalisation)
    search = baseline.search([prepare(line.name) for line in dictionary])
    found = search.best([prepare(text) for text in texts], k=k)
    check_ranked(found, n_texts=len(texts), n_names=len(dictionary), k=k, of=baseline.name)
    return {
        text: [
            Candidate(dictionary[row].ids, dictionary[row].name, score)
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
        ]
        for text, (rows, scores) in zip(texts, found, strict=True)
    }


def equal_lines(
    dictionary: Sequence[DictionaryLine], texts: Sequence[str], *, k: int, normalisation: str
) -> Candidates:
    """The first ``k`` dictionary lines that are equal to each text once both are normalised: exact match alone.

    A text of which nothing is left has none.
    """
    lines = defaultdict(list)
    for line in dictionary:
        if name := normalise(line.name, preset=normalisation):
            lines[name].append(Candidate(line.ids, line.name, 1.0))
    return {text: lines.get(normalise(text, preset=normalisation), [])[:k] for text in texts}


def as_candidates(asked: Sequence[Asked], answers: Sequence[Sequence[Link]]) -> Candidates:
    """A linker's answers to the texts."""
    return {
        one: [Candidate((link.concept_id,), link.matched_name, link.score) for link in links]
        for one, links in zip(asked, answers, strict=True)
    }
