"""Learn from development mentions how two searches are fused, and how far an answer can be trusted.

What is reported of the learned settings is measured by cross-validation: each mention is linked with weights, and given
a confidence, that were learned from other texts. What is kept is learned from all.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from onoma.artifacts import amend_artifact, ensure_writable
from onoma.encoders import Encoder, ProgressCallback
from onoma.errors import ConfigError, InputError
from onoma.linking.calibration import Calibration, Method
from onoma.linking.confidence_features import MentionEvidence, confidence_features
from onoma.linking.confidence_metrics import expected_calibration_error
from onoma.linking.folder import FORMAT_VERSION, KIND
from onoma.linking.fusion import learn_weights
from onoma.linking.likelihood import LabelledPool
from onoma.linking.linker import Linker
from onoma.linking.prior import PriorReport, count_prior, save_prior
from onoma.linking.searching import Pool
from onoma.linking.settings import SEARCHES, LinkerSettings, Stage, ordered_stages
from onoma.pairs.mentions import LABELLED, check_mentions
from onoma.terminology import normalise
from onoma.types import FloatArray

NO_CONCEPT = ("NIL", "CUI-less", "-1")
"""What stands in a file of mentions for "no such concept", unless a concept of the linker is called so."""
MIN_MENTIONS = 50
"""Distinct mentions of known concepts below which nothing is learned."""
_SHOWN = 5
_CUTOFF = 5


@dataclass(frozen=True)
class Accuracy:
    """Share of the mentions with a concept whose right concept is the first, or among the first five."""

    at_1: float
    at_5: float


@dataclass(frozen=True)
class CalibrationReport:
    """How well confidences hold on mentions that they were not fitted to.

    Attributes:
        method: "isotonic" or "platt".
        n_answers: Mentions with an answer.
        share_right: Of them whose first answer is right.
        mean_confidence: Their mean confidence; equals ``share_right`` where it holds.
        expected_calibration_error: See `onoma.linking.confidence_metrics`.
    """

    method: Method
    n_answers: int
    share_right: float
    mean_confidence: float
    expected_calibration_error: float


@dataclass(frozen=True)
class TuningReport:
    """What tuning learned, and what that comes to.

    Attributes:
        stages: That are on now.
        n_mentions: Development mentions; of them
        n_distinct: distinct in text and concept,
        n_no_concept: said to mean no concept,
        n_unknown: of concepts that the linker does not have: no answer to them can be right.
        unknown: Some codes of these.
        accuracy: By what was tried. "before" are the settings that were there, "after" the new ones, cross-validated.
        weights: Of the searches, if two are on.
        calibration: How well confidences hold, by cross-validation; unset if there is none.
        no_concept_below: Confidence that an answer now needs, if a precision was wished.
        prior: What was counted, if mentions were given for that.
    """

    stages: tuple[Stage, ...]
    n_mentions: int
    n_distinct: int
    n_no_concept: int
    n_unknown: int
    unknown: tuple[str, ...]
    accuracy: dict[str, Accuracy]
    weights: dict[Stage, float] | None
    calibration: CalibrationReport | None
    no_concept_below: float | None
    prior: PriorReport | None = None


def tune_linker(
    linker: str | Path,
    mentions: pl.DataFrame,
    *,
    prior: pl.DataFrame | None = None,
    stages: Iterable[str] | None = None,
    calibrate: bool = True,
    method: Method = "platt",
    wished_precision: float | None = None,
    n_folds: int = 5,
    database: str | None = None,
    progress: ProgressCallback | None = None,
) -> TuningReport:
    """Learn a linker's settings and put them into its folder, the other files of which are neither read nor copied.

    Args:
        linker: The folder.
        mentions: Columns ``mention`` and ``concept_id`` (`onoma.pairs.mentions.read_mentions`). Several codes divided
            by ``|`` are all right; `NO_CONCEPT` stands for none. They must not be what is reported on later.
        prior: Other annotated mentions, of the same columns, that say how often each concept is meant
            (`onoma.linking.prior`); unset: what the linker has stays.
        stages: That shall be on; unset: as they are.
        calibrate: Whether to fit confidences.
        method: See `Calibration.fit`.
        wished_precision: From now on answer "no such concept" below the confidence that reaches it.
        n_folds: Of cross-validation, from 2.
        database: Of a linker with its vectors in PostgreSQL, see `Linker.open`.
        progress: Called with mentions linked so far and in all.

    Raises:
        InputError: no tables of mentions, too few mentions, or too few whose answers are right, or wrong, to fit
            confidences.
        ConfigError: prior and mentions are the same, an option has a value it cannot have, or a stage is wanted that
            the linker does not have.
        ArtifactError: the folder is no linker, or damaged.
        OnomaError: the linker cannot be opened, see `Linker.open`.
    """
    if wished_precision is not None and not calibrate:
        raise ConfigError("a wished precision needs confidences: leave calibration on.")
    if isinstance(n_folds, bool) or not isinstance(n_folds, int) or n_folds < 2:
        raise ConfigError(f"n_folds must be a whole number from 2; found {n_folds!r}.")
    for given in (mentions,) if prior is None else (mentions, prior):
        check_mentions(given)
    if prior is not None and prior.select(LABELLED).equals(mentions.select(LABELLED)):
        raise ConfigError("prior and mentions are the same: count how often concepts are meant on other mentions.")
    ensure_writable(linker, KIND, overwrite=True)
    opened = Linker.open(linker, database=database)
    counted = None if prior is None else count_prior(opened.dictionary, prior)
    if "dense" in opened.stages:
        opened.encoder = _Remembering(opened.encoder)
    untuned = opened
    if counted is not None:
        opened = opened.with_prior(counted.counts)
    before = opened.settings.replaced(calibration=None, calibrated_stages=(), no_concept_below=None)
    plain = before if stages is None else before.replaced(stages=ordered_stages(stages))
    opened.tuned(plain)  # refuses a stage that is not there
    development = _label(opened, mentions, n_folds)
    trial = _Trial(opened, development, progress, n_runs=5 if _fuses(plain) else 2)
    accuracy = {"before": trial.accuracy(trial.outcomes(before, linker=untuned))}
    by_fold = [plain] * n_folds
    if _fuses(plain):
        for search in SEARCHES:
            alone = tuple(stage for stage in plain.stages if stage == search or stage not in SEARCHES)
            accuracy[f"{search} alone"] = trial.accuracy(trial.outcomes(plain.replaced(stages=alone)))
        ranked = trial.outcomes(plain.replaced(weights=None))
        accuracy["reciprocal ranks"] = trial.accuracy(ranked)
        by_fold = [plain.replaced(weights=learn_weights(trial.pools(ranked, but=fold))) for fold in range(n_folds)]
        plain = plain.replaced(weights=learn_weights(trial.pools(ranked)))
    outcomes = trial.cross_validated(by_fold)
    accuracy["after"] = trial.accuracy(outcomes)
    learned, held = plain, None
    if calibrate:
        calibration, held = trial.calibrated(outcomes, method)
        threshold = None if wished_precision is None else calibration.threshold_for(wished_precision)
        learned = plain.replaced(
            calibration=calibration.to_json(), calibrated_stages=plain.stages, no_concept_below=threshold
        )
    report = TuningReport(
        stages=plain.stages,
        n_mentions=sum(mention.n for mention in development.mentions),
        n_distinct=len(development.mentions),
        n_no_concept=sum(mention.n for mention in development.mentions if not mention.has_concept),
        n_unknown=sum(development.unknown.values()),
        unknown=tuple(sorted(development.unknown)[:_SHOWN]),
        accuracy=accuracy,
        weights=plain.weights if _fuses(plain) else None,
        calibration=held,
        no_concept_below=learned.no_concept_below,
        prior=None if counted is None else counted.report,
    )
    tuning = dataclasses.asdict(report)
    of_prior = tuning.pop("prior")
    config = {"tuning": tuning, **({} if of_prior is None else {"prior": of_prior})}
    with amend_artifact(linker, KIND, format_version=FORMAT_VERSION, config=config) as folder:
        learned.save(folder)
        if counted is not None:
            save_prior(folder, counted.counts)
    return report


def _fuses(settings: LinkerSettings) -> bool:
    return all(search in settings.stages for search in SEARCHES)


@dataclass(frozen=True)
class _Labelled:
    """A distinct development mention: normalised text, rows of the right concepts, how often it occurs, its fold."""

    text: str
    concepts: frozenset[int]
    has_concept: bool
    n: int
    fold: int


@dataclass(frozen=True)
class _Development:
    mentions: list[_Labelled]
    unknown: dict[str, int]
    """Codes of mentions of which the linker has no concept, and how often they occur."""


def _label(linker: Linker, mentions: pl.DataFrame, n_folds: int) -> _Development:
    counted = Counter(mentions.select(LABELLED).iter_rows())
    codes_of = {label: [code.strip() for code in label.split("|") if code.strip()] for _, label in counted}
    rows_of = linker.dictionary.concept_rows({code for codes in codes_of.values() for code in codes})
    merged: Counter[tuple[str, frozenset[int], bool]] = Counter()
    unknown: Counter[str] = Counter()
    for (mention, label), n in counted.items():
        codes = [code for code in codes_of[label] if code in rows_of or code not in NO_CONCEPT]
        concepts = frozenset(row for code in codes for row in rows_of.get(code, ()))
        text = normalise(mention, linker.normalisation)
        if text:
            merged[text, concepts, bool(codes)] += n
            if codes and not concepts:
                unknown[label] += n
    fold_of = _folds({text for text, _, _ in merged}, n_folds)
    labelled = [_Labelled(*key, n=n, fold=fold_of[key[0]]) for key, n in merged.items()]
    labelled.sort(key=lambda mention: (mention.text, sorted(mention.concepts), mention.has_concept))
    n_known = sum(1 for mention in labelled if mention.concepts)
    if n_known < MIN_MENTIONS:
        raise InputError(
            "too few development mentions to learn from",
            path=linker.path,
            expected=f"at least {MIN_MENTIONS} distinct ones of concepts that the linker has",
            found=f"{n_known}" + (f"; unknown are {', '.join(sorted(unknown)[:_SHOWN])}" if unknown else ""),
            fix="take more mentions, or codes as the linker's terminology has them",
        )
    return _Development(labelled, dict(unknown))


def _folds(texts: set[str], n_folds: int) -> dict[str, int]:
    """Texts dealt into folds in an order that says nothing about them and depends on them alone."""
    shuffled = sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())
    return {text: place % n_folds for place, text in enumerate(shuffled)}


@dataclass(frozen=True)
class _Outcome:
    """What a text was answered with.

    Attributes:
        concepts: Rows of the first five concepts.
        evidence: Of the first, if there is one.
        pool: Candidates, if two searches were fused and look-up did not decide.
    """

    concepts: list[int]
    evidence: MentionEvidence | None
    pool: Pool | None


class _Trial:
    """Development mentions linked with one setting after another."""

    def __init__(
        self, linker: Linker, development: _Development, progress: ProgressCallback | None, *, n_runs: int
    ) -> None:
        self._linker, self._mentions, self._progress = linker, development.mentions, progress
        self._texts = list(dict.fromkeys(mention.text for mention in self._mentions))
        self._done, self._total = 0, n_runs * len(self._texts)

    def outcomes(
        self, settings: LinkerSettings, texts: Sequence[str] | None = None, *, linker: Linker | None = None
    ) -> dict[str, _Outcome]:
        """Of all texts, or of some, by the linker that is tuned or another one."""
        found = {}
        wanted = self._texts if texts is None else texts
        for part, run in (linker or self._linker).tuned(settings).runs(wanted, top_k=_CUTOFF):
            for place, (asked, answer) in enumerate(zip(part, run.answers(part), strict=True)):
                is_answered = len(answer.ranked) > 0 and not answer.is_nil
                found[asked.text] = _Outcome(
                    concepts=answer.ranked.concepts[:_CUTOFF].tolist() if is_answered else [],
                    evidence=run.evidence(place, asked, answer) if is_answered else None,
                    pool=None if answer.n_hits else answer.pool,
                )
            self._done += len(part)
            if self._progress is not None:
                self._progress(self._done, self._total)
        return found

    def cross_validated(self, by_fold: Sequence[LinkerSettings]) -> dict[str, _Outcome]:
        """Each text with the settings that were learned without its fold."""
        fold_of = {mention.text: mention.fold for mention in self._mentions}
        found = {}
        for fold, settings in enumerate(by_fold):
            found.update(self.outcomes(settings, [text for text in self._texts if fold_of[text] == fold]))
        return found

    def accuracy(self, outcomes: dict[str, _Outcome]) -> Accuracy:
        """Over the mentions with a concept, as often as they occur."""
        n_all = sum(mention.n for mention in self._mentions if mention.has_concept)
        at = [
            sum(m.n for m in self._mentions if not m.concepts.isdisjoint(outcomes[m.text].concepts[:cutoff])) / n_all
            for cutoff in (1, _CUTOFF)
        ]
        return Accuracy(*at)

    def pools(self, outcomes: dict[str, _Outcome], *, but: int | None = None) -> list[LabelledPool]:
        """Candidates of the mentions that look-up does not decide, without those of one fold."""
        dictionary = self._linker.dictionary
        pools = []
        for mention in self._mentions:
            pool = outcomes[mention.text].pool
            if pool is None or mention.fold == but or not mention.concepts:
                continue
            begins, ends = dictionary.entry_offsets[pool.rows], dictionary.entry_offsets[pool.rows + 1]
            entries = np.concatenate([np.arange(b, e) for b, e in zip(begins, ends, strict=True)])
            is_right = np.isin(dictionary.entry_concepts[entries], list(mention.concepts))
            texts = np.repeat(np.arange(len(pool.rows)), ends - begins)
            scores = np.stack([pool.parts[search] for search in SEARCHES], axis=1)
            pools.append(LabelledPool(scores, np.bincount(texts, is_right, len(pool.rows)) > 0, mention.n))
        return pools

    def calibrated(self, outcomes: dict[str, _Outcome], method: Method) -> tuple[Calibration, CalibrationReport]:
        """A calibration fitted to all first answers, and how those hold that were fitted without a fold.

        Each mention counts once, however often it occurs: a few frequent ones would decide otherwise.
        """
        evidence, correct, folds = [], [], []
        for mention in self._mentions:
            outcome = outcomes[mention.text]
            if outcome.evidence is not None:
                evidence.append(outcome.evidence)
                correct.append(outcome.concepts[0] in mention.concepts)
                folds.append(mention.fold)
        features, is_right, fold_of = confidence_features(evidence), np.array(correct, np.bool_), np.array(folds)
        kept = Calibration.fit(features, is_right, method=method)
        held = np.empty(len(is_right))
        for fold in np.unique(fold_of):
            here = fold_of == fold
            held[here] = Calibration.fit(features[~here], is_right[~here], method=method).confidence(features[here])
        return kept, CalibrationReport(
            method=method,
            n_answers=len(is_right),
            share_right=float(is_right.mean()),
            mean_confidence=float(held.mean()),
            expected_calibration_error=expected_calibration_error(held, is_right),
        )


class _Remembering:
    """An encoder that encodes each text once, as the same mentions are linked again and again."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._known = encoder, dict[str, FloatArray]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(
        self, texts: Sequence[str], *, progress: ProgressCallback | None = None, normalise: bool = True
    ) -> FloatArray:
        """See `onoma.encoders.Encoder.encode`."""
        new = [text for text in texts if text not in self._known]
        self._known.update(zip(new, self._encoder.encode(new, normalise=normalise), strict=True))
        return np.stack([self._known[text] for text in texts])
