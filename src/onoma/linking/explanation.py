"""Why a mention was linked as it was; ``dataclasses.asdict`` makes it ready for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onoma.errors import whole_number
from onoma.linking.answers import NO_ANSWER, Answer
from onoma.linking.components import Components
from onoma.linking.confidence_metrics import threshold_in_words
from onoma.linking.expansion import Expansion
from onoma.linking.explanation_text import in_words
from onoma.linking.fusion import contributions, knows_nothing, ranks, without_gaps
from onoma.linking.mentions import PreparedMention
from onoma.linking.pipeline import Run
from onoma.linking.questions import Question
from onoma.linking.settings import SEARCHES, Stage
from onoma.linking.spelling import Correction
from onoma.terminology import normalise
from onoma.types import SCORE_DECIMALS, BoolArray, DoubleArray

_MOST_HOMONYMS = 20
_CLEARLY = 1.5 * 10**-SCORE_DECIMALS


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a concept has its rank.

    Attributes:
        concept_id: The user's own code.
        preferred_name: Of the concept.
        matched_name: The name that decided, as the terminology spells it.
        matched_text: That name as it was compared: normalised.
        is_preferred_name: Whether that is the preferred name: with equal scores and prior, such concepts come first.
        is_other_scope: Whether that is only a broad, narrow or related synonym: among equal ones, such concepts come
            last.
        prior: How many annotated mentions mean the concept, if that was counted: among equal scores, larger counts come
            first, and with the stage "prior" they weigh more (`contributions`).
        rank: 1 for the best.
        stage: What put it there: "exact" or "loose" if the mention equals the name; "rerank" if the cross-encoder moved
            it before a concept that was better, or behind one that was not; "prior" if counts did so; else the search,
            or "fusion" for several.
        score: What the ranking used.
        scores: The cosine that each search gives the matched text.
        ranks: Its rank among the candidates of each search that can use the mention, if reciprocal ranks were fused.
        contributions: What adds up to the score.
        n_homonyms: How many other concepts have a name with this text.
        homonyms: The first 20 of them.
    """

    concept_id: str
    preferred_name: str
    matched_name: str
    matched_text: str
    is_preferred_name: bool
    is_other_scope: bool
    prior: int | None
    rank: int
    stage: str
    score: float
    scores: Mapping[Stage, float]
    ranks: Mapping[Stage, int]
    contributions: Mapping[str, float]
    n_homonyms: int
    homonyms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What each stage made of a mention.

    Attributes:
        mention: As it was given.
        text: As it was compared: normalised.
        stages: Those that were on.
        fusion: How the searches' scores were combined: "weights", "reciprocal ranks", or unset for one search.
        weights: Of the searches, if they were learned.
        n_candidates: Texts whose scores were fused; 0 for one search, which goes through all.
        links: The answer.
        near_misses: The concepts after it.
        confidence: Of the first link, if the linker is calibrated for these stages.
        no_concept_below: The confidence that an answer needed.
        outcome: In a sentence: what was answered and why.
        no_concept: Probability, by the cross-encoder, that none of the candidates it saw is meant; unset if it does not
            give one. Above 0.5 there is no answer.
        expansions: Short forms that were replaced in the mention, by what, and where that was defined.
        corrections: Misspelt words of the mention, and what they were read as.
        without_strengths: The mention without strengths and dose forms, if any were left out.
        code: The code that the mention is, if it was read as one.
        written: The other spelling of the mention that was looked up or searched for, normalised; unset: none was.
        parts: For a composite mention that was split: each part explained as a mention of its own. The answer, the near
            misses and their details are then in the parts.
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
    no_concept: float | None = None
    expansions: tuple[Expansion, ...] = ()
    corrections: tuple[Correction, ...] = ()
    without_strengths: str | None = None
    code: str | None = None
    written: str | None = None
    parts: tuple[Explanation, ...] = ()

    def __str__(self) -> str:
        """What ``onoma link --explain`` shows, in lines as long as they are."""
        return in_words(self)


def explain_mention(
    prepared: PreparedMention,
    asked: Sequence[Question],
    components: Components,
    *,
    stages: tuple[Stage, ...],
    top_k: int,
    near_misses: int,
    expected: BoolArray | None,
    threshold: float | None,
) -> Explanation:
    """The explanation of a mention: of its answer, or of those of its parts.

    Args:
        prepared: The mention.
        asked: What the stages are asked for it, at least one.
        components: Of the linker.
        stages: Those that are on.
        top_k: Concepts asked for.
        near_misses: Concepts behind them that are shown.
        expected: Which concepts are expected, bool, shape (C,); unset: no matter.
        threshold: Confidence that an answer needs; unset: none.

    Raises:
        InputError: ``near_misses`` is no number, or negative.
    """
    near_misses = whole_number(near_misses, "near_misses", "not a possible number of near misses", least=0)
    explained = []
    for text, one in zip(prepared.parts, asked, strict=True):
        run = Run(components, stages=stages, top_k=top_k, expected=expected, spare=near_misses)
        answer = run.answers([one])[0] if one.text else NO_ANSWER
        explained.append(
            _explain_answer(
                run,
                components,
                answer,
                mention=text,
                text=one.text,
                stages=stages,
                top_k=top_k,
                near_misses=near_misses,
                threshold=threshold,
            )
        )
    left = prepared.without_strengths
    said = [] if prepared.code is None else [f"It is the code {prepared.code}, of '{prepared.text}'."]
    said += [] if left is None else [f"Without strengths and dose forms it is '{left}'."]
    said += [
        f"'{one.short_form}' was read as '{one.long_form}' (defined in the {one.source})."
        for one in prepared.expansions
    ]
    said += [f"'{one.written}' was read as '{one.read}'." for one in prepared.corrections]
    if len(explained) == 1:
        return dataclasses.replace(
            explained[0],
            mention=prepared.original,
            outcome=" ".join([*said, explained[0].outcome]),
            expansions=prepared.expansions,
            corrections=prepared.corrections,
            without_strengths=left,
            code=prepared.code,
        )
    said.append("It stands for several names: " + "; ".join(f"'{part}'" for part in prepared.parts) + ".")
    return Explanation(
        mention=prepared.original,
        text=normalise(prepared.text, components.dictionary.normalisation),
        stages=stages,
        fusion=None,
        weights=None,
        n_candidates=0,
        links=(),
        near_misses=(),
        confidence=None,
        no_concept_below=threshold,
        outcome=" ".join(said),
        expansions=prepared.expansions,
        corrections=prepared.corrections,
        without_strengths=left,
        parts=tuple(explained),
    )


def _explain_answer(
    run: Run,
    components: Components,
    answer: Answer,
    *,
    mention: str,
    text: str,
    stages: tuple[Stage, ...],
    top_k: int,
    near_misses: int,
    threshold: float | None,
) -> Explanation:
    """The explanation of an answer that ``run`` gave, to this text alone, with concepts to spare."""
    reasons = tuple(
        _reason(run, components, answer, stages, place) for place in range(min(len(answer.ranked), top_k + near_misses))
    )
    is_confident = answer.confidence is None or threshold is None or answer.confidence >= threshold
    n_links = top_k if is_confident and not answer.is_nil else 0
    is_fused = answer.pool is not None
    weights = components.settings.weights
    read_as = "" if answer.written is None else f"In another spelling it is '{answer.written}'. "
    text_searched = text if answer.written is None else answer.written
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
        outcome=read_as
        + _outcome(
            text,
            reasons,
            answer,
            None if is_confident else threshold,
            is_read=components.encoder is None or bool(components.encoder.can_read([text_searched])[0]),
        ),
        no_concept=answer.no_concept,
        written=answer.written,
    )


def _reason(run: Run, components: Components, answer: Answer, stages: tuple[Stage, ...], place: int) -> Reason:
    dictionary, ranked = components.dictionary, answer.ranked
    entry, text_row = int(ranked.entries[place]), int(ranked.text_rows[place])
    other_scope = dictionary.entry_is_other_scope
    concept_id = dictionary.concept_ids[int(ranked.concepts[place])]
    homonyms = _homonyms(components, text_row, concept_id)
    return Reason(
        concept_id=concept_id,
        preferred_name=dictionary.preferred_names[int(ranked.concepts[place])],
        matched_name=dictionary.entry_names[entry],
        matched_text=dictionary.texts[text_row],
        is_preferred_name=bool(dictionary.entry_is_preferred[entry]),
        is_other_scope=other_scope is not None and bool(other_scope[entry]),
        prior=None if components.prior is None else int(components.prior[ranked.concepts[place]]),
        rank=place + 1,
        stage=_stage(answer, stages, place),
        score=float(ranked.scores[place]),
        scores={
            stage: round(score, SCORE_DECIMALS)
            for stage, score in run.search_scores(0, ranked.text_rows[place : place + 1]).items()
        },
        ranks=_ranks(answer, components, text_row),
        contributions=_contributions(answer, components, stages, place),
        n_homonyms=len(homonyms),
        homonyms=homonyms[:_MOST_HOMONYMS],
    )


def _stage(answer: Answer, stages: tuple[Stage, ...], place: int) -> str:
    if place < answer.n_hits:
        return str(answer.hit_stage)
    if _is_reranked(answer, stages) and _is_moved(answer.first_scores, place):
        return "rerank"
    if answer.from_prior is not None and _is_moved(answer.searched, place):
        return "prior"
    return "fusion" if answer.pool is not None else next(stage for stage in stages if stage in SEARCHES)


def _is_moved(scores_before: DoubleArray, place: int) -> bool:
    """Whether it stands before what had a higher score, or behind what had a lower one."""
    here = scores_before[place]
    is_before_a_better = (scores_before[place:] > here + _CLEARLY).any()
    return bool(is_before_a_better or (scores_before[:place] < here - _CLEARLY).any())


def _is_reranked(answer: Answer, stages: tuple[Stage, ...]) -> bool:
    return "rerank" in stages and not answer.n_hits and (len(answer.ranked) > 1 or answer.no_concept is not None)


def _ranks(answer: Answer, components: Components, text_row: int) -> dict[Stage, int]:
    if answer.pool is None or components.settings.weights is not None or text_row not in answer.pool.rows:
        return {}
    position = int(np.searchsorted(answer.pool.rows, text_row))
    parts = answer.pool.parts
    if not knows_nothing(parts["dense"], answer.pool.tiers):
        parts = without_gaps(parts)
    return {
        stage: int(ranks(scores, answer.pool.tiers)[position])
        for stage, scores in parts.items()
        if not knows_nothing(scores, answer.pool.tiers)
    }


def _contributions(answer: Answer, components: Components, stages: tuple[Stage, ...], place: int) -> dict[str, float]:
    score, searched = float(answer.ranked.scores[place]), float(answer.searched[place])
    if place < answer.n_hits:
        return {str(answer.hit_stage): score}
    share = 1.0
    found: dict[str, float] = {}
    if answer.from_prior is not None:
        found["prior"] = float(answer.from_prior[place])
    if _is_reranked(answer, stages):
        share = 1 - components.rerank_weight
        found = {what: share * part for what, part in found.items()}
        found["rerank"] = score - share * searched - sum(found.values())
    found = {what: round(part, SCORE_DECIMALS) + 0.0 for what, part in found.items()}  # no minus nought
    if answer.pool is None:
        return {next(stage for stage in stages if stage in SEARCHES): round(share * searched, SCORE_DECIMALS), **found}
    position = int(np.searchsorted(answer.pool.rows, answer.ranked.text_rows[place]))
    adds = contributions(answer.pool.parts, components.settings.weights, answer.pool.tiers)
    if answer.from_prior is not None and components.weighted_prior is not None:
        share *= components.weighted_prior.search_share
    return {
        **{stage: round(share * float(scores[position]), SCORE_DECIMALS) for stage, scores in adds.items()},
        **found,
    }


def _homonyms(components: Components, text_row: int, concept_id: str) -> tuple[str, ...]:
    dictionary = components.dictionary
    begin, end = dictionary.entry_offsets[text_row : text_row + 2].tolist()
    rows = np.arange(begin, end)
    if components.entries is not None:
        rows = rows[components.entries[rows]]
    codes = [dictionary.concept_ids[int(row)] for row in dictionary.entry_concepts[rows]]
    return tuple(code for code in codes if code != concept_id)


def _outcome(text: str, reasons: tuple[Reason, ...], answer: Answer, threshold: float | None, *, is_read: bool) -> str:
    """What was answered and why; the threshold is given if the confidence does not reach it."""
    if not text:
        return "No answer: normalisation leaves nothing of the mention."
    if not reasons:
        why = "" if is_read else " The encoder does not know most of its characters."
        return f"No answer: no allowed name equals the mention, and none could be searched for.{why}"
    first = reasons[0]
    if answer.is_nil:
        return (
            f"No such concept: the cross-encoder gives a probability of {answer.no_concept:.3f} that none of the "
            f"candidates is meant; the first of them is {first.concept_id}."
        )
    if threshold is not None:
        named = ", whose name the mention is," if first.stage == "exact" else ","
        return (
            f"No such concept: the best, {first.concept_id} ({first.preferred_name}){named} has a confidence of "
            f"{answer.confidence:.3f}, below {threshold_in_words(threshold)}."
        )
    how = {
        "exact": "the mention is a name of it",
        "loose": "apart from case, punctuation or Unicode, the mention is a name of it",
        "dense": "its name has the nearest vector",
        "sparse": "its name shares most with the mention by characters",
        "fusion": "its name is the nearest by both searches together",
        "prior": "its name is near, and among near ones it is meant more often",
        "rerank": "the cross-encoder prefers it among the candidates",
    }[first.stage]
    if "rerank" in first.contributions and first.stage != "rerank":
        how += ", both before and after the cross-encoder"
    if first.is_other_scope:
        how += "; that name is a broad, narrow or related synonym of it"
    others = f" {first.n_homonyms:,} other concepts have that name." if first.n_homonyms > 1 else ""
    others = f" {first.homonyms[0]} has that name too." if first.n_homonyms == 1 else others
    if first.prior is not None and (others or first.contributions.get("prior")):
        times = "once" if first.prior == 1 else f"{first.prior:,} times"
        others += f" Annotated mentions mean {first.concept_id} {times}."
    return f"{first.concept_id} ({first.preferred_name}): {how} ('{first.matched_name}').{others}"
