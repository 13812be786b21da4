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
from onoma.indexes import ExactIndex
from onoma.linking import Link
from onoma.linking.baselines import Baseline
from onoma.terminology import normalise


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
