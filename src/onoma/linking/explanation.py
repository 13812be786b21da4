"""Why a mention was linked as it was: ready for JSON by ``dataclasses.asdict``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from onoma.linking.dictionary import SCORE_DECIMALS
from onoma.linking.fusion import contributions, ranks
from onoma.linking.parts import Parts
from onoma.linking.pipeline import Answer, Run
from onoma.linking.settings import SEARCHES, Stage

_MOST_HOMONYMS = 20


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a concept stands where it stands.

    Attributes:
        concept_id: The user's own code.
        preferred_name: Of the concept.
        matched_name: Its name that decided, as the terminology spells it.
        matched_text: The same as it was compared: normalised.
        is_preferred_name: Whether that is the preferred name: of equal scores it comes first.
        rank: 1 for the best.
        stage: What put it there: "exact" or "loose" for a name that the mention equals, "rerank" where the
            cross-encoder had the last word, else the search, or "fusion" for several.
        score: What the ranking used.
        scores: What each search gives the matched text: cosines.
        ranks: Its rank among the candidates in each search, where reciprocal ranks were fused.
        contributions: What adds up to the score.
        homonyms: Other concepts that have a name of this text.
    """

    concept_id: str
    preferred_name: str
    matched_name: str
    matched_text: str
    is_preferred_name: bool
    rank: int
    stage: str
    score: float
    scores: Mapping[Stage, float]
    ranks: Mapping[Stage, int]
    contributions: Mapping[str, float]
    homonyms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What each stage made of a mention.

    Attributes:
        mention: As it was given.
        text: As it was compared: normalised.
        stages: Those that were on.
        fusion: How the searches' scores became one: "weights", "reciprocal ranks", or unset for one search.
        weights: Of the searches, if they were learned.
        n_candidates: Texts whose scores were fused; 0 for one search, which goes through all.
        links: The answer.
        near_misses: The concepts behind it.
        confidence: Of the first link, if the linker is calibrated for these stages.
        no_concept_below: The confidence that an answer needed.
        outcome: In a sentence: what was answered and why.
    """

    mention: str
    text: str
    stages: tuple[Stage, ...]
    fusion: str | None
    weights: Mapping[Stage, float] | None
    n_candidates: int
    links: tuple[Reason, ...]
    near_misses: tuple[Reason, ...]
    confidence: float | None
    no_concept_below: float | None
    outcome: str


def explain_answer(
    run: Run,
    parts: Parts,
    answer: Answer,
    *,
    mention: str,
    text: str,
    stages: tuple[Stage, ...],
    top_k: int,
    near_misses: int,
    threshold: float | None,
) -> Explanation:
    """The explanation of one mention's answer.

    Args:
        run: That gave the answer, for this mention alone, with concepts to spare.
        parts: Of the linker.
        answer: What it gave.
        mention: As it was given.
        text: Normalised.
        stages: Those that were on.
        top_k: Concepts that were asked for.
        near_misses: Concepts behind them that are shown.
        threshold: Confidence that an answer needs; unset: none.
    """
    reasons = tuple(
        _reason(run, parts, answer, stages, place) for place in range(min(len(answer.ranked), top_k + near_misses))
    )
    is_answered = answer.confidence is None or threshold is None or answer.confidence >= threshold
    n_links = top_k if is_answered else 0
    is_fused = answer.pool is not None
    weights = parts.settings.weights
    return Explanation(
        mention=mention,
        text=text,
        stages=stages,
        fusion=("reciprocal ranks" if weights is None else "weights") if is_fused else None,
        weights=weights if is_fused else None,
        n_candidates=len(answer.pool.rows) if answer.pool is not None else 0,
        links=reasons[:n_links],
        near_misses=reasons[n_links:],
        confidence=answer.confidence,
        no_concept_below=threshold,
        outcome=_outcome(text, reasons, answer.confidence, None if is_answered else threshold),
    )


def _reason(run: Run, parts: Parts, answer: Answer, stages: tuple[Stage, ...], place: int) -> Reason:
    dictionary, ranked = parts.dictionary, answer.ranked
    entry, text_row = int(ranked.entries[place]), int(ranked.text_rows[place])
    concept_id = dictionary.concept_ids[int(ranked.concepts[place])]
    return Reason(
        concept_id=concept_id,
        preferred_name=dictionary.preferred_names[int(ranked.concepts[place])],
        matched_name=dictionary.entry_names[entry],
        matched_text=dictionary.texts[text_row],
        is_preferred_name=bool(dictionary.entry_is_preferred[entry]),
        rank=place + 1,
        stage=_stage(answer, stages, place),
        score=float(ranked.scores[place]),
        scores={
            stage: round(score, SCORE_DECIMALS)
            for stage, score in run.search_scores(0, ranked.text_rows[place : place + 1]).items()
        },
        ranks=_ranks(answer, parts, text_row),
        contributions=_contributions(answer, parts, stages, place),
        homonyms=_homonyms(parts, text_row, concept_id),
    )


def _stage(answer: Answer, stages: tuple[Stage, ...], place: int) -> str:
    if place < answer.n_hits:
        return str(answer.hit_stage)
    if _is_reranked(answer, stages):
        return "rerank"
    return "fusion" if answer.pool is not None else next(stage for stage in stages if stage in SEARCHES)


def _is_reranked(answer: Answer, stages: tuple[Stage, ...]) -> bool:
    return "rerank" in stages and not answer.n_hits and len(answer.ranked) > 1


def _ranks(answer: Answer, parts: Parts, text_row: int) -> dict[Stage, int]:
    if answer.pool is None or parts.settings.weights is not None or text_row not in answer.pool.rows:
        return {}
    position = int(np.searchsorted(answer.pool.rows, text_row))
    return {stage: int(ranks(scores)[position]) for stage, scores in answer.pool.parts.items()}


def _contributions(answer: Answer, parts: Parts, stages: tuple[Stage, ...], place: int) -> dict[str, float]:
    score, searched = float(answer.ranked.scores[place]), float(answer.searched[place])
    if place < answer.n_hits:
        return {str(answer.hit_stage): score}
    share = 1.0
    found: dict[str, float] = {}
    if _is_reranked(answer, stages) and parts.reranker is not None:
        share = 1 - parts.reranker.about.weight
        found["rerank"] = round(score - share * searched, SCORE_DECIMALS)
    if answer.pool is None:
        return {next(stage for stage in stages if stage in SEARCHES): share * searched, **found}
    position = int(np.searchsorted(answer.pool.rows, answer.ranked.text_rows[place]))
    adds = contributions(answer.pool.parts, parts.settings.weights)
    return {
        **{stage: round(share * float(scores[position]), SCORE_DECIMALS) for stage, scores in adds.items()},
        **found,
    }


def _homonyms(parts: Parts, text_row: int, concept_id: str) -> tuple[str, ...]:
    dictionary = parts.dictionary
    begin, end = dictionary.entry_offsets[text_row : text_row + 2].tolist()
    rows = np.arange(begin, end)
    if parts.entries is not None:
        rows = rows[parts.entries[rows]]
    codes = [dictionary.concept_ids[int(row)] for row in dictionary.entry_concepts[rows]]
    return tuple(code for code in codes if code != concept_id)[:_MOST_HOMONYMS]


def _outcome(text: str, reasons: tuple[Reason, ...], confidence: float | None, threshold: float | None) -> str:
    """What was answered and why; the threshold is given if the confidence does not reach it."""
    if not text:
        return "Nothing was answered: normalisation leaves nothing of the mention."
    if not reasons:
        return "Nothing was answered: no name that is allowed equals the mention, or could be searched for."
    first = reasons[0]
    if threshold is not None:
        return (
            f"No such concept: the best, {first.concept_id}, has a confidence of {confidence:.3f}, below "
            f"{threshold:.3f}."
        )
    how = {
        "exact": "the mention is a name of it",
        "loose": "but for case, punctuation or Unicode the mention is a name of it",
        "dense": "its name has the nearest vector",
        "sparse": "its name shares most with the mention by characters",
        "fusion": "its name is the nearest by both searches together",
        "rerank": "the cross-encoder prefers it among the candidates",
    }[first.stage]
    others = f" {len(first.homonyms):,} other concepts have that name." if len(first.homonyms) > 1 else ""
    others = f" {first.homonyms[0]} has that name too." if len(first.homonyms) == 1 else others
    return f"{first.concept_id} ({first.preferred_name}): {how} ('{first.matched_name}').{others}"
