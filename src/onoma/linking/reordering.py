"""Answers in another order: by how often concepts are meant, by a cross-encoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from onoma.linking.answers import Answer
from onoma.linking.components import Components
from onoma.linking.dictionary import RankedEntries
from onoma.linking.prior import PRIOR_DEPTH, WeightedPrior
from onoma.linking.questions import Question
from onoma.linking.reranking import Reranker
from onoma.types import SCORE_DECIMALS, BoolArray, RowArray


def with_prior(prior: WeightedPrior, answer: Answer, expected: BoolArray | None) -> Answer:
    """The answer with concepts that are meant more often further up, where look-up found none."""
    if answer.n_hits or not len(answer.ranked):
        return answer
    concepts = answer.ranked.concepts
    unexpected = np.zeros(len(concepts), np.bool_) if expected is None else ~expected[concepts]
    searched = answer.ranked.scores * prior.search_share
    added = prior.added(concepts, answer.ranked.scores, unexpected)
    scores = (searched + added).round(SCORE_DECIMALS)
    order = _sorted_up_to(PRIOR_DEPTH, -scores, unexpected, -prior.counts[concepts])
    ranked = answer.ranked.scored(scores).take(order)
    return dataclasses.replace(answer, ranked=ranked, searched=searched[order], from_prior=added[order])


def reranked(
    reranker: Reranker,
    asked: Sequence[Question],
    answers: list[Answer],
    components: Components,
    expected: BoolArray | None,
) -> list[Answer]:
    """The answers, with what is open in them as the cross-encoder orders it.

    Args:
        reranker: The cross-encoder.
        asked: What was asked.
        answers: To each of them.
        components: Of the linker.
        expected: Which concepts are expected, bool, shape (C,); unset: no matter.
    """
    answers = answers.copy()
    places = [
        place
        for place, answer in enumerate(answers)
        if _is_open(answer, reranker) and not _is_settled(asked[place], answer, components.prior)
    ]
    contexts = [asked[place].context for place in places]
    before = [components.dictionary.links(_tier(answers[place])) for place in places]
    after = reranker.rerank(
        [asked[place].mention for place in places],
        before,
        contexts=contexts if any(context is not None for context in contexts) else None,
        weight=components.rerank_weight,
    )
    for place, links_before, found in zip(places, before, after, strict=True):
        answer = answers[place]
        place_of = {link.concept_id: position for position, link in enumerate(links_before)}
        order = np.array([place_of[link.concept_id] for link in found.links], np.int64)
        scores = np.array([link.score for link in found.links])
        if expected is not None:
            unexpected = ~expected[_tier(answer).concepts[order]]
            if answer.n_hits:  # they keep their score, and so have one and the same
                by_score = np.argsort(unexpected, kind="stable")
            else:
                by_score = _sorted_up_to(reranker.about.depth, -scores, unexpected)
            order, scores = order[by_score], scores[by_score]
        tier = _tier(answer).take(order)
        if not answer.n_hits:
            tier = tier.scored(scores)
            answer = dataclasses.replace(answer, no_concept=found.no_concept, is_nil=found.is_nil)
        rest = answer.ranked.take(slice(len(tier), None))
        order = np.append(order, np.arange(len(tier), len(answer.ranked)))
        answers[place] = dataclasses.replace(
            answer,
            ranked=tier.then(rest),
            searched=answer.searched[order],
            from_prior=None if answer.from_prior is None else answer.from_prior[order],
        )
    return answers


def _is_settled(asked: Question, answer: Answer, prior: RowArray | None) -> bool:
    """Whether it is known which of some homonyms is meant more often, and nothing else would tell them apart."""
    return bool(answer.n_hits and not asked.context and prior is not None and prior[_tier(answer).concepts].any())


def _is_open(answer: Answer, reranker: Reranker) -> bool:
    """Whether there is anything for the cross-encoder to decide."""
    least = 1 if reranker.says_nil and not answer.n_hits else 2
    return answer.n_hits != 1 and len(answer.ranked) >= least


def _tier(answer: Answer) -> RankedEntries:
    """What the cross-encoder may order: hits among themselves, else all."""
    return answer.ranked.take(slice(0, answer.n_hits or None))


def _sorted_up_to(depth: int, *keys: npt.NDArray[Any]) -> RowArray:
    """Order by keys, the first one counting most, of the first ``depth`` places; what is behind stays.

    What was not scored anew may lie nowhere but there in equal scores, and how much of it was ranked depends on how
    many answers are wanted.
    """
    order = np.arange(len(keys[0]))
    order[:depth] = np.lexsort([key[:depth] for key in reversed(keys)])
    return order
