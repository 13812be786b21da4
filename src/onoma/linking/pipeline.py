"""The stages of linking, one after the other, for the mentions of one call.

Mentions may be made ready before (`onoma.linking.mentions`): each part of one is then linked by itself.

1. **exact**: the texts that equal the mention, after the normalisation of both. A mention that is a code is looked up
   so whatever stages are on, and of the concepts with its name only the one with this code is found;
2. **loose**: only where there are none, the texts that are equal under the preset "loose" (case, punctuation, Unicode);
   **variants**: only where there are none either, the same two for other ways to write the mention
   (`onoma.linking.variants`). Where look-up finds none of these, all are searched for, and the one whose first text is
   the nearest stands for the mention, if that has the words that were written otherwise;
3. **dense** and **sparse**: the nearest texts by vectors, by character n-grams. One of them alone is searched ever
   deeper until no text further down could change the answer. Of both together the candidates are the `pool` best
   of each; if these stand for too few concepts, behind them four times as many, and so on; their scores are fused;
4. concepts: the score of a concept is that of its best text. What look-up found has the score 1 and comes first,
   whatever a search says: a mention that is a name never loses to one that is merely near;
5. **prior**: where look-up found nothing, concepts that are meant more often go up (`onoma.linking.prior`);
6. **rerank**: the cross-encoder orders anew what look-up found, where that is several concepts, or, where it found
   nothing, the first candidates of the searches. What look-up found keeps its score 1, and without a context its order
   where it is known how often one of these is meant. A cross-encoder that has learned NIL may answer that none of the
   searches' candidates is meant;
7. confidence, of the first answer, if it was calibrated for just these stages.

Source:
    Look-up first, then search: Basaldella et al. 2020 (COMETA), section 5; Liu et al. 2021 (SapBERT), table 2,
    "dictionary & back-off".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from onoma.encoders.encoding import check_unit_length, checked_vectors
from onoma.linking.answers import NO_ANSWER, Answer
from onoma.linking.components import Components
from onoma.linking.confidence_features import MentionEvidence
from onoma.linking.dictionary import RankedEntries
from onoma.linking.fusion import fuse
from onoma.linking.prior import PRIOR_DEPTH
from onoma.linking.questions import Question
from onoma.linking.reordering import reranked, with_prior
from onoma.linking.searching import (
    DenseQueries,
    Pool,
    Queries,
    SparseQueries,
    gather_pools,
    nearest_of_each,
)
from onoma.linking.settings import LOOK_UPS, Stage
from onoma.linking.variants import Variant
from onoma.terminology import normalise
from onoma.types import BoolArray, DoubleArray, FloatArray, RowArray

_MENTIONS_AT_ONCE = 4096
_TEXTS_PER_CONCEPT = 4
"""Texts looked at first for each concept wanted; if they turn out to be too few, more are."""


@dataclass(frozen=True)
class _Way:
    """A way to write a mention.

    Attributes:
        asked: The mention, so written.
        hit: What look-up finds for it.
        variant: Which way that is; unset: as it is written.
    """

    asked: Question
    hit: Answer
    variant: Variant | None = None


class Run:
    """The stages over the mentions of one call.

    Args:
        components: Of the linker.
        stages: Those that are on.
        top_k: Concepts wanted for each mention.
        expected: Which concepts are expected, bool, shape (C,); unset: no matter.
        spare: To explain answers: how many concepts more to rank, as far as the candidates go. Each mention is then
            searched for, even if look-up finds enough.
    """

    def __init__(
        self,
        components: Components,
        *,
        stages: tuple[Stage, ...],
        top_k: int,
        expected: BoolArray | None = None,
        spare: int | None = None,
    ) -> None:
        self._components, self._stages, self._expected = components, stages, expected
        self._is_explaining, self._spare = spare is not None, spare or 0
        is_calibrated = components.confidence is not None and components.confidence.stages == stages
        self._confidence = components.confidence if is_calibrated else None
        # A confidence asks by how much the second is behind, and must not depend on how many were asked for.
        self._wanted = max(top_k, 2 if is_calibrated else 1)
        self._prior = components.weighted_prior if "prior" in stages else None
        self._reranker = components.reranker if "rerank" in stages else None
        self.queries: dict[Stage, Queries] = {}
        """Of the mentions that were searched for, by search."""
        self._row_of: dict[int, int] = {}
        """Place of a mention among all to its row among those that were searched for."""

    def answers(self, asked: Sequence[Question]) -> list[Answer]:
        """An answer for each mention; none of the texts is blank."""
        ways = [self._ways(mention) for mention in asked]
        everything = [way for of_one in ways for way in of_one]
        hits = [way.hit for way in everything]
        found = self._search([way.asked for way in everything], hits)
        answers = [self._joined(*pair) for pair in zip(hits, found, strict=True)]
        places = self._nearest_ways(ways, answers)
        asked, answers = [everything[place].asked for place in places], [answers[place] for place in places]
        self._row_of = {place: self._row_of[of_all] for place, of_all in enumerate(places) if of_all in self._row_of}
        if self._prior is not None:
            answers = [with_prior(self._prior, answer, self._expected) for answer in answers]
        if self._reranker is not None:
            answers = reranked(self._reranker, asked, answers, self._components, self._expected)
        return self._with_confidence(asked, answers)

    def _ways(self, mention: Question) -> list[_Way]:
        """The ways to write a mention that are searched for: the first that look-up finds, else all."""
        ways = [_Way(mention, self._look_up(mention.text, code=mention.code))]
        normalisation = self._components.dictionary.normalisation
        for variant in () if ways[0].hit.n_hits else mention.variants:
            text = normalise(variant.text, normalisation)
            if text and text != mention.text:
                hit = dataclasses.replace(self._look_up(text), written=text)
                ways.append(_Way(mention.written(text, variant), hit, variant))
                if hit.n_hits:
                    return ways[-1:]
        return ways

    def _nearest_ways(self, ways: Sequence[Sequence[_Way]], answers: Sequence[Answer]) -> list[int]:
        """The place, among the ways of all mentions, of the one that stands for each."""
        chosen, begin = [], 0
        for of_one in ways:
            places = range(begin, begin + len(of_one))
            fit = [place for place, way in zip(places, of_one, strict=True) if self._fits(way, answers[place])]
            # Of equally near ones the first: the mention as it is written.
            chosen.append(max(fit or places[:1], key=lambda place: self._nearness(place, answers[place])))
            begin += len(of_one)
        return chosen

    def _fits(self, way: _Way, answer: Answer) -> bool:
        if way.variant is None or answer.n_hits:
            return True
        if not len(answer.ranked):
            return False
        return way.variant.is_in(self._components.dictionary.texts[int(answer.ranked.text_rows[0])])

    def _nearness(self, place: int, answer: Answer) -> float:
        """How near the first text of an answer is; reciprocal ranks, which say nothing of that, aside."""
        if not len(answer.ranked):
            return -math.inf
        if len(self.queries) <= 1 or self._components.settings.weights is not None or answer.n_hits:
            return float(answer.ranked.scores[0])
        return math.fsum(self.search_scores(place, answer.ranked.text_rows[:1]).values())

    def _look_up(self, text: str, *, code: str | None = None) -> Answer:
        concept_ids = self._components.dictionary.concept_ids
        for stage in LOOK_UPS:
            if stage in self._stages or (stage == "exact" and code is not None):
                rows = self._components.lookup.exact(text) if stage == "exact" else self._components.lookup.loose(text)
                if not len(rows):
                    continue
                ranked = self._rank(rows, np.ones(len(rows)), len(concept_ids))
                if ranked is not None and code is not None:
                    is_meant = np.array([concept_ids[int(concept)] == code for concept in ranked.concepts], np.bool_)
                    ranked = ranked.take(np.flatnonzero(is_meant)) if is_meant.any() else ranked
                if ranked is not None and len(ranked):
                    return Answer(ranked, len(ranked), stage, ranked.scores)
        return NO_ANSWER

    def _search(self, asked: Sequence[Question], hits: Sequence[Answer]) -> list[Answer]:
        """What the searches find behind the hits, which may be among it."""
        searched = [place for place, hit in enumerate(hits) if self._needs_search(hit)]
        texts = [asked[place].text for place in searched]
        self.queries = self._queries(texts) if texts else {}
        answers = [NO_ANSWER] * len(asked)
        if not self.queries:
            return answers
        self._row_of = {place: row for row, place in enumerate(searched)}
        needs = {row: self._depth(hits[place]) + hits[place].n_hits for place, row in self._row_of.items()}
        rank = self._rank_one_search if len(self.queries) == 1 else self._rank_fused
        for row, answer in rank(np.arange(len(texts)), needs).items():
            answers[searched[row]] = answer
        return answers

    def _needs_search(self, hit: Answer) -> bool:
        # Features of a confidence are scores of the searches, also where look-up decides.
        return hit.n_hits < self._depth(hit) or self._confidence is not None or self._is_explaining

    def _depth(self, hit: Answer) -> int:
        """Concepts wanted in all."""
        depths = [self._wanted]
        if self._prior is not None and not hit.n_hits:
            depths.append(PRIOR_DEPTH)
        if self._reranker is not None and not hit.n_hits:
            depths.append(self._reranker.about.depth)
        return max(depths)

    def _queries(self, texts: Sequence[str]) -> dict[Stage, Queries]:
        components, queries = self._components, dict[Stage, Queries]()
        if "dense" in self._stages and components.dense is not None and components.encoder is not None:
            vectors = checked_vectors(components.encoder.encode(list(texts)), len(texts), components.encoder)
            check_unit_length(vectors, texts)
            is_read = components.encoder.can_read(texts)
            if not is_read.all():
                vectors = np.where(is_read[:, None], vectors, np.float32(0))  # the encoder's own stay as they are
            queries["dense"] = DenseQueries(vectors, components.dense)
        if "sparse" in self._stages and components.sparse is not None:
            queries["sparse"] = SparseQueries(texts, components.sparse)
        if (memory := components.memory) is not None:
            return {stage: memory.remembering(stage, of_stage, texts) for stage, of_stage in queries.items()}
        return queries

    def _rank_one_search(self, which: RowArray, needs: dict[int, int]) -> dict[int, Answer]:
        """Search ever deeper until no text further down could change a mention's answer."""
        (queries,) = self.queries.values()
        answers, mask = dict[int, Answer](), self._components.texts.mask
        waiting, depth = which, _TEXTS_PER_CONCEPT * self._depth(NO_ANSWER)
        while len(waiting):
            complete = depth >= self._components.texts.n_candidates
            still_waiting = []
            for row, text_rows, text_scores in nearest_of_each(queries, waiting, depth):
                allowed = text_scores if mask is None else text_scores[mask[text_rows]]
                # Nothing is known of the mention, and all is, or all that is allowed is, equally near.
                if not text_scores.any() or (complete and not allowed.any()):
                    continue
                ranked = self._rank(text_rows, text_scores, needs[row] + self._spare, complete=complete)
                if ranked is None:
                    still_waiting.append(row)
                else:
                    answers[row] = Answer(ranked, searched=ranked.scores)
            waiting = np.array(still_waiting, np.int64)
            depth *= 4
        return answers

    def _rank_fused(self, which: RowArray, needs: dict[int, int]) -> dict[int, Answer]:
        answers, pools = dict[int, Answer](), dict[int, Pool]()
        waiting, size = which, self._components.settings.pool
        while len(waiting):
            complete = size >= self._components.texts.n_candidates
            still_waiting = []
            for row, pool in gather_pools(self.queries, waiting, size, self._components.texts, pools):
                if not any(scores.any() for scores in pool.parts.values()):
                    continue
                fused = fuse(pool.parts, self._components.settings.weights, pool.tiers)
                ranked = self._rank(pool.rows, fused, needs[row] + self._spare)
                if ranked is None or (len(ranked) < needs[row] and not complete):
                    still_waiting.append(row)
                    pools[row] = pool
                else:
                    kept = pool if self._is_explaining else None
                    answers[row] = Answer(ranked, searched=ranked.scores, pool=kept)
            waiting = np.array(still_waiting, np.int64)
            size *= 4
        return answers

    def _rank(
        self, rows: RowArray, scores: FloatArray | DoubleArray, top_k: int, *, complete: bool = True
    ) -> RankedEntries | None:
        return self._components.dictionary.rank_entries(
            rows,
            scores,
            top_k=top_k,
            complete=complete,
            allowed=self._components.entries,
            expected=self._expected,
            prior=self._components.prior,
        )

    def _joined(self, hit: Answer, found: Answer) -> Answer:
        if hit is found is NO_ANSWER:
            return NO_ANSWER
        others = found.ranked.take(np.flatnonzero(~np.isin(found.ranked.concepts, hit.ranked.concepts)))
        ranked = hit.ranked.then(others).take(slice(0, max(self._depth(hit), hit.n_hits) + self._spare))
        return Answer(ranked, hit.n_hits, hit.hit_stage, ranked.scores, found.pool, written=hit.written)

    def _with_confidence(self, asked: Sequence[Question], answers: list[Answer]) -> list[Answer]:
        if self._confidence is None:
            return answers
        places = [place for place, answer in enumerate(answers) if len(answer.ranked) and not answer.is_nil]
        evidence = [self.evidence(place, asked[place], answers[place]) for place in places]
        for place, confidence in zip(places, self._confidence.of_answers(evidence), strict=True):
            answers[place] = dataclasses.replace(answers[place], confidence=confidence)
        return answers

    def evidence(self, place: int, asked: Question, answer: Answer) -> MentionEvidence:
        """What the confidence of a mention's first answer is judged by."""
        text_row = answer.ranked.text_rows[:1]
        scores = self.search_scores(place, text_row)
        if answer.hit_stage == "exact" and scores.get("dense") == 0:  # the encoder cannot read it; it equals itself
            scores["dense"] = 1.0
        begin, end = self._components.dictionary.entry_offsets[int(text_row[0]) : int(text_row[0]) + 2].tolist()
        entries = self._components.entries
        is_code = asked.code == self._components.dictionary.concept_ids[int(answer.ranked.concepts[0])]
        return MentionEvidence(
            mention=asked.text if answer.written is None else answer.written,
            scores=answer.ranked.scores[:2].tolist(),
            is_exact=answer.n_hits > 0,
            dense_score=scores.get("dense"),
            ngram_score=scores.get("sparse"),
            n_homonyms=1 if is_code else end - begin if entries is None else int(np.count_nonzero(entries[begin:end])),
        )

    def search_scores(self, place: int, text_row: RowArray) -> dict[Stage, float]:
        """What each search gives one text for a mention that was searched for."""
        return {
            stage: float(queries.scores(self._row_of[place], text_row)[0]) for stage, queries in self.queries.items()
        }


def runs(
    components: Components,
    asked: Iterable[Question],
    *,
    stages: tuple[Stage, ...],
    top_k: int,
    expected_types: str | Iterable[str] | None = None,
    spare: int | None = None,
) -> Iterator[tuple[list[Question], Run]]:
    """What is asked, each once and without blanks, and the run that answers it.

    Args:
        components: Of the linker.
        asked: Mentions made ready.
        stages: Those to use.
        top_k: Concepts wanted for each.
        expected_types: See `onoma.linking.Linker.link`.
        spare: See `Run`.

    Raises:
        InputError: there is no such semantic type.
    """
    expected = components.expected(expected_types)
    distinct = [mention for mention in dict.fromkeys(asked) if mention.text]
    for start in range(0, len(distinct), _MENTIONS_AT_ONCE):
        run = Run(components, stages=stages, top_k=top_k, expected=expected, spare=spare)
        yield distinct[start : start + _MENTIONS_AT_ONCE], run
