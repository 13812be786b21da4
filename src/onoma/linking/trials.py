"""Annotated mentions linked with one setting after another, to learn from and to measure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onoma.errors import ConfigError, InputError
from onoma.linking.calibration import Calibration, Method
from onoma.linking.confidence_features import MentionEvidence, confidence_features
from onoma.linking.confidence_inputs import checked_certainty, checked_precision
from onoma.linking.confidence_metrics import error_of_perfect, expected_calibration_error
from onoma.linking.development import Development, Key, Labelled
from onoma.linking.dictionary import RankedEntries
from onoma.linking.fusion import without_gaps
from onoma.linking.likelihood import LabelledPool
from onoma.linking.linker import Linker
from onoma.linking.searching import Pool
from onoma.linking.settings import SEARCHES, LinkerSettings
from onoma.randomness import random_from
from onoma.types import BoolArray, CountProgress, DoubleArray, RowArray

CUTOFF = 5
"""Concepts of an answer that are looked at."""
_N_DRAWS = 200
"""Of outcomes, for what perfect confidences would show."""


@dataclass(frozen=True)
class Accuracies:
    """How many mentions are answered rightly.

    Attributes:
        at_1: Share of the mentions with a concept whose right concept comes first.
        at_5: Share of these whose right concept is among the first five.
        right: Share of all mentions whose first answer is right, none being right where the linker has no such concept.
    """

    at_1: float
    at_5: float
    right: float


@dataclass(frozen=True)
class Wish:
    """How much of what is answered shall be right.

    Attributes:
        precision: Share of right answers among those given.
        certainty: With which they are so many; see `onoma.linking.confidence_metrics.PrecisionCoverage.threshold_for`.
    """

    precision: float
    certainty: float | None = None

    @classmethod
    def of(cls, precision: float | None, certainty: float | None) -> Wish | None:
        """The wish, if there is one, checked.

        Raises:
            ConfigError: a certainty without a precision.
            InputError: one of them is not allowed.
        """
        if precision is None:
            if certainty is not None:
                raise ConfigError(
                    "a certainty (--certainty) is that of a wished precision (--min-precision): give both."
                )
            return None
        return cls(checked_precision(precision), None if certainty is None else checked_certainty(certainty))

    def threshold(self, calibration: Calibration) -> float:
        """The smallest confidence that fulfils it.

        Raises:
            InputError: none does.
        """
        return calibration.threshold_for(self.precision, certainty=self.certainty)


@dataclass(frozen=True)
class AbstentionReport:
    """What answers from a threshold on come to.

    Attributes:
        wish: What the threshold was learned for.
        n_learned_from: Answers at or above the threshold among those that it was learned from; of them
        n_learned_right: are right.
        share_answered: Of all distinct mentions, by the threshold that is kept.
        held_out_answered: Of all distinct mentions, each by the threshold that was learned without its fold.
        held_out_right: Of these answers; unset if there are none.
        n_held_out: These answers.
        n_unfulfilled: Folds without which no threshold fulfilled the wish: nothing of them is answered.
    """

    wish: Wish
    n_learned_from: int
    n_learned_right: int
    share_answered: float
    held_out_answered: float
    held_out_right: float | None
    n_held_out: int
    n_unfulfilled: int


@dataclass(frozen=True)
class CalibrationReport:
    """How well confidences hold on mentions that they were not fitted to.

    Attributes:
        method: "isotonic" or "platt".
        n_answers: Mentions with an answer.
        share_right: Of them whose first answer is right.
        mean_confidence: Their mean confidence; equals ``share_right`` where it holds.
        expected_calibration_error: See `onoma.linking.confidence_metrics`.
        if_calibrated: What that of perfect confidences would be on as many mentions, in the mean.
        abstention: What is answered from a threshold on, if a precision was wished.
    """

    method: Method
    n_answers: int
    share_right: float
    mean_confidence: float
    expected_calibration_error: float
    if_calibrated: float
    abstention: AbstentionReport | None = None


@dataclass(frozen=True)
class Outcome:
    """What a text was answered with.

    Attributes:
        concepts: Rows of the first five concepts.
        ranked: All that was ranked.
        n_hits: How many of these look-up found; they come first.
        first_scores: Of all that was ranked, before the cross-encoder, shape (n,).
        evidence: Of the first, if there is one.
        pool: Candidates, if two searches were fused and look-up did not decide.
    """

    concepts: list[int]
    ranked: RankedEntries
    n_hits: int
    first_scores: DoubleArray
    evidence: MentionEvidence | None
    pool: Pool | None


class Trial:
    """Development mentions linked with one setting after another."""

    def __init__(
        self, linker: Linker, development: Development, progress: CountProgress | None, *, n_runs: int
    ) -> None:
        self._linker, self._mentions, self._progress = linker, development.mentions, progress
        self._written = {mention.key: mention.written for mention in self._mentions}
        self._keys = list(self._written)
        self._done, self._total = 0, n_runs * len(self._keys)

    def outcomes(
        self,
        settings: LinkerSettings,
        keys: Sequence[Key] | None = None,
        *,
        linker: Linker | None = None,
        top_k: int = CUTOFF,
    ) -> dict[Key, Outcome]:
        """Of all mentions, or of some, by the linker that is tuned or another one.

        Where no stage reads contexts, equal texts are asked once, and their outcome is that of the text alone.
        """
        found: dict[Key, Outcome] = {}
        wanted = self._keys if keys is None else keys
        tried = (linker or self._linker).tuned(settings)
        written = [self._written[key] for key in wanted]
        contexts = [context for _, context in wanted] if tried.reads_contexts else None
        done = self._done
        for part, run in tried.runs(written, contexts=contexts, top_k=top_k):
            for place, (asked, answer) in enumerate(zip(part, run.answers(part), strict=True)):
                is_answered = len(answer.ranked) > 0 and not answer.is_nil
                found[asked.text, asked.context] = Outcome(
                    concepts=answer.ranked.concepts[:CUTOFF].tolist() if is_answered else [],
                    ranked=answer.ranked,
                    n_hits=answer.n_hits,
                    first_scores=answer.first_scores,
                    evidence=run.evidence(place, asked, answer) if is_answered else None,
                    pool=None if answer.n_hits else answer.pool,
                )
            done += len(part)
            self._tell(done)
        self._done += len(wanted)
        if done < self._done:
            self._tell(self._done)
        return found

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self._total)

    def cross_validated(self, by_fold: Sequence[LinkerSettings]) -> dict[Key, Outcome]:
        """Each mention with the settings that were learned without its fold."""
        fold_of = {mention.key: mention.fold for mention in self._mentions}
        found: dict[Key, Outcome] = {}
        for fold, settings in enumerate(by_fold):
            found.update(self.outcomes(settings, [key for key in self._keys if fold_of[key] == fold]))
        return found

    def accuracy(self, outcomes: dict[Key, Outcome]) -> Accuracies:
        """Of the mentions, as often as they occur."""
        n_all = sum(mention.n for mention in self._mentions)
        n_meant = sum(mention.n for mention in self._mentions if mention.has_concept)
        first, among_five = (
            sum(m.n for m in self._mentions if not m.concepts.isdisjoint(_of(outcomes, m).concepts[:cutoff]))
            for cutoff in (1, CUTOFF)
        )
        none = sum(m.n for m in self._mentions if not m.concepts and not _of(outcomes, m).concepts)
        return Accuracies(at_1=first / n_meant, at_5=among_five / n_meant, right=(first + none) / n_all)

    def pools(self, outcomes: dict[Key, Outcome], *, but: int | None = None) -> list[LabelledPool]:
        """Candidates of the mentions that look-up does not decide, without those of one fold."""
        dictionary = self._linker.dictionary
        pools = []
        for mention in self._mentions:
            pool = _of(outcomes, mention).pool
            if pool is None or mention.fold == but or not mention.concepts:
                continue
            entries, texts = dictionary.entries_of(pool.rows)
            is_right = np.isin(dictionary.entry_concepts[entries], list(mention.concepts))
            parts = without_gaps(pool.parts)
            scores = np.stack([parts[search] for search in SEARCHES], axis=1)
            pools.append(LabelledPool(scores, np.bincount(texts, is_right, len(pool.rows)) > 0, mention.n))
        return pools

    def candidates(
        self, outcomes: dict[Key, Outcome], counts: RowArray, *, but: int | None = None
    ) -> list[LabelledPool]:
        """Score and log(1 + count) of the concepts that were ranked for the mentions that look-up does not decide.

        Those of one fold are left out.
        """
        pools = []
        for mention in self._mentions:
            outcome = _of(outcomes, mention)
            if outcome.n_hits or mention.fold == but or not mention.concepts:
                continue
            concepts = outcome.ranked.concepts
            scores = np.stack([outcome.ranked.scores, np.log1p(counts[concepts])], axis=1)
            pools.append(LabelledPool(scores, np.isin(concepts, list(mention.concepts)), mention.n))
        return pools

    def reranked(self, outcomes: dict[Key, Outcome], *, depth: int, but: int | None = None) -> list[LabelledPool]:
        """Score before the cross-encoder and its probability for the candidates of mentions that nothing else decides.

        Those that look-up decides, or NIL, are left out, and those of one fold.

        Args:
            outcomes: With the cross-encoder alone, that is the share 1.
            depth: Candidates of a mention that it reads.
        """
        pools = []
        for mention in self._mentions:
            outcome = _of(outcomes, mention)
            if outcome.n_hits or not outcome.concepts or mention.fold == but or not mention.concepts:
                continue
            ranked = outcome.ranked.take(slice(0, depth))
            scores = np.stack([outcome.first_scores[:depth], ranked.scores], axis=1)
            pools.append(LabelledPool(scores, np.isin(ranked.concepts, list(mention.concepts)), mention.n))
        return pools

    def first_answers(self, outcomes: dict[Key, Outcome]) -> tuple[DoubleArray, BoolArray, list[Labelled]]:
        """What confidences are fitted to.

        Returns:
            Features of the first answers, shape (n, F), whether each is right, shape (n,), and the n mentions that have
            an answer.
        """
        answered = [mention for mention in self._mentions if _of(outcomes, mention).evidence is not None]
        found = [_of(outcomes, mention) for mention in answered]
        features = confidence_features([outcome.evidence for outcome in found if outcome.evidence is not None])
        is_right = [outcome.concepts[0] in mention.concepts for mention, outcome in zip(answered, found, strict=True)]
        return features, np.array(is_right, np.bool_), answered

    def calibrated(
        self, outcomes: dict[Key, Outcome], method: Method, wish: Wish | None = None
    ) -> tuple[Calibration, CalibrationReport]:
        """A calibration fitted to all first answers, and how those hold that were fitted without a fold.

        Each mention counts once (in each context, if these are read), however often it occurs: a few frequent ones
        would decide otherwise.
        """
        features, is_right, answered = self.first_answers(outcomes)
        texts, fold_of = [mention.text for mention in answered], np.array([mention.fold for mention in answered])
        kept = Calibration.fit(features, is_right, mentions=texts, method=method)
        held, is_answered, n_unfulfilled = np.empty(len(is_right)), np.zeros(len(is_right), np.bool_), 0
        for fold in np.unique(fold_of):
            here = fold_of == fold
            # There were enough to fit what is kept; what is only looked at has less.
            others = list(itertools.compress(texts, ~here))
            rest = Calibration.fit(features[~here], is_right[~here], mentions=others, method=method, min_of_each=2)
            held[here] = rest.confidence(features[here])
            if wish is not None:
                try:
                    is_answered[here] = held[here] >= wish.threshold(rest)
                except InputError:
                    n_unfulfilled += 1
        abstention, random = None, random_from(0)
        if wish is not None:
            threshold = wish.threshold(kept)
            place = kept.development.thresholds.index(threshold)
            abstention = AbstentionReport(
                wish,
                n_learned_from=kept.development.n_kept[place],
                n_learned_right=kept.development.n_right[place],
                share_answered=float((kept.confidence(features) >= threshold).sum()) / len(self._mentions),
                n_held_out=int(is_answered.sum()),
                held_out_answered=float(is_answered.sum()) / len(self._mentions),
                held_out_right=float(is_right[is_answered].mean()) if is_answered.any() else None,
                n_unfulfilled=n_unfulfilled,
            )
        return kept, CalibrationReport(
            method=method,
            n_answers=len(is_right),
            share_right=float(is_right.mean()),
            mean_confidence=float(held.mean()),
            expected_calibration_error=expected_calibration_error(held, is_right),
            if_calibrated=float(np.mean([error_of_perfect(held, random) for _ in range(_N_DRAWS)])),
            abstention=abstention,
        )


def _of(outcomes: dict[Key, Outcome], mention: Labelled) -> Outcome:
    """The outcome of a mention, or of its text where nothing read its context."""
    found = outcomes.get(mention.key)
    return outcomes[mention.text, None] if found is None else found
