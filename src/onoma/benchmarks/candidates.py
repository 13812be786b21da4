"""What a benchmark judges: the ranked candidates of each text, by encoder, by baseline, by linker, by look-up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from onoma.benchmarks.biosyn import DictionaryLine
from onoma.codes import split_codes
from onoma.encoders import Encoder
from onoma.errors import InputError
from onoma.indexes import ExactIndex
from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.indexes.scoring import exact_scores
from onoma.indexes.vector_store import VectorStore
from onoma.linking import Link
from onoma.linking.baselines import Baseline
from onoma.terminology import normalise
from onoma.types import SCORE_DECIMALS

_FIRST_DEPTH = 64
"""Names that each search looks for at first."""
_MORE_THAN_ROUNDING = 1e-5
"""More than rounding to single precision, and then to six decimals, can add to a score."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer to a text: the ids it stands for, the name that matched, its score."""

    ids: tuple[str, ...]
    name: str
    score: float


Candidates = dict[str, list[Candidate]]
"""For each text, its candidates, best first."""


def nearest_lines(
    encoder: Encoder,
    dictionary: Sequence[DictionaryLine],
    texts: Sequence[str],
    *,
    k: int,
    progress: Callable[[int, int], None] | None = None,
) -> Candidates:
    """The ``k`` dictionary lines nearest to each text by cosine; of equal scores the earlier line first.

    Names and texts go through the normalisation that the encoder was trained with. What is equal then is encoded once,
    so that lines which differ in their ids alone have exactly equal scores.
    """
    prepare = partial(normalise, preset=encoder.folder.normalisation)
    names = [prepare(line.name) for line in dictionary]
    place = {name: row for row, name in enumerate(dict.fromkeys(names))}
    vectors = encoder.encode(list(place), progress=progress)
    index = ExactIndex(vectors[np.array([place[name] for name in names])])
    rows, scores = index.search(encoder.encode([prepare(text) for text in texts]), k=k)
    return {
        text: [
            Candidate(dictionary[row].ids, dictionary[row].name, score)
            for row, score in zip(text_rows, text_scores, strict=True)
        ]
        for text, text_rows, text_scores in zip(texts, rows.tolist(), scores.tolist(), strict=True)
    }


def nearest_lines_by_both(
    encoder: Encoder,
    dictionary: Sequence[DictionaryLine],
    texts: Sequence[str],
    *,
    k: int,
    sparse_weight: float,
    progress: Callable[[int, int], None] | None = None,
) -> Candidates:
    """The ``k`` dictionary lines with the highest cosine + ``sparse_weight`` x cosine of character 1-2-grams.

    All else as in `nearest_lines`, so that the weight 0 gives what that gives. n-grams are weighed by the distinct
    names. Scores are compared to six decimals.

    No name is missed: what neither search has among its first ones scores at most the sum of the last scores that each
    has, and where that is not below the ``k``-th best both look further (Fagin, Lotem, Naor 2001, the threshold
    algorithm).

    Raises:
        InputError: the weight is below 0, where this bound would not hold.
    """
    if sparse_weight < 0:
        raise InputError("the weight of n-grams is below 0", field="sparse_weight", found=f"{sparse_weight:g}")
    prepare = partial(normalise, preset=encoder.folder.normalisation)
    lines_of: dict[str, list[int]] = {}
    for row, line in enumerate(dictionary):
        lines_of.setdefault(prepare(line.name), []).append(row)
    name_lines = list(lines_of.values())
    vectors = VectorStore(encoder.encode(list(lines_of), progress=progress))
    asked = [prepare(text) for text in texts]
    queries = encoder.encode(asked)
    dense, sparse = ExactIndex(vectors), CharNgramIndex.build(lines_of)
    found: Candidates = {text: [] for text in texts}
    left, depth = list(range(len(texts))), max(k, _FIRST_DEPTH)
    while left:
        some = [asked[place] for place in left]
        dense_rows, dense_scores = dense.search(queries[left], k=depth)
        sparse_rows, sparse_scores = sparse.search(some, k=depth)
        again = []
        for at, place in enumerate(left):
            names = np.union1d(dense_rows[at], sparse_rows[at])
            cosines = exact_scores(vectors, queries[place], names).astype(np.float64)
            scores = (cosines + sparse_weight * sparse.scores([asked[place]], names[None])[0]).round(SCORE_DECIMALS)
            lines = [(-score, row) for name, score in zip(names, scores, strict=True) for row in name_lines[name]]
            best = sorted(lines)[:k]
            most = dense_scores[at, -1] + sparse_weight * sparse_scores[at, -1] + _MORE_THAN_ROUNDING
            if depth < len(name_lines) and (len(best) < k or -best[-1][0] <= most):
                again.append(place)
                continue
            found[texts[place]] = [
                Candidate(dictionary[row].ids, dictionary[row].name, float(-negative)) for negative, row in best
            ]
        left, depth = again, 4 * depth
    return found


def best_lines(baseline: Baseline, dictionary: Sequence[DictionaryLine], texts: Sequence[str], *, k: int) -> Candidates:
    """The ``k`` dictionary lines that a baseline scores highest; of equal scores the earlier line first.

    Lines that have nothing in common with a text are no candidates of it.
    """
    prepare = partial(normalise, preset=baseline.normalisation)
    search = baseline.search([prepare(line.name) for line in dictionary])
    return {
        text: [
            Candidate(dictionary[row].ids, dictionary[row].name, score)
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
        ]
        for text, (rows, scores) in zip(texts, search.best([prepare(text) for text in texts], k=k), strict=True)
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


def as_candidates(texts: Sequence[str], answers: Sequence[Sequence[Link]]) -> Candidates:
    """A linker's answers to the texts; a concept id ``a|b`` stands for both."""
    return {
        text: [Candidate(tuple(split_codes(link.concept_id)), link.matched_name, link.score) for link in links]
        for text, links in zip(texts, answers, strict=True)
    }
