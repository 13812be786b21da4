"""Learn from development mentions how to fuse searches, the weights of counts and of a cross-encoder, and confidences.

What is reported of the learned settings is measured by cross-validation: each mention is linked with weights, and given
a confidence, that were learned from other texts. What is kept is learned from all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl

from onoma.artifacts import amend_artifact, ensure_writable
from onoma.codes import other_forms
from onoma.errors import ConfigError, InputError, is_whole
from onoma.indexes.pgvector_replacing import drop_unfinished
from onoma.linking.calibration import Method, check_method
from onoma.linking.development import SHOWN, Development, Key, are_counted, count_shared, label_mentions, trained_on
from onoma.linking.folder import FORMAT_VERSION, KIND
from onoma.linking.fusion import learn_weights
from onoma.linking.linker import Linker
from onoma.linking.prior import PRIOR_DEPTH, save_prior
from onoma.linking.prior_counting import PriorReport, count_prior, learn_prior_weight
from onoma.linking.reranking import Reranker, learn_share
from onoma.linking.settings import SEARCHES, LinkerSettings, Stage, ordered_stages
from onoma.linking.trials import Accuracies, CalibrationReport, Outcome, Trial, Wish
from onoma.pairs.mentions import check_mentions, mentions_fingerprint
from onoma.types import CountProgress, RowArray

_NEXT_TO_NOTHING = 1e-9
BY_WEIGHTS = "learned weights"
"""What searches fused by them come to, cross-validated, without prior and cross-encoder."""

WithPrior: TypeAlias = Literal["no", "if better", "yes"]


@dataclass(frozen=True)
class TuningReport:
    """What tuning learned, and how well it works.

    Attributes:
        stages: Those that are on now.
        n_mentions: Development mentions; of them
        n_distinct: distinct in text and concept,
        n_no_concept: annotated as meaning no concept,
        n_unknown: of concepts that the linker does not have: no answer to them can be right.
        unknown: Some codes of these.
        accuracy: By what was tried. "before" are the earlier settings, "after" the new ones, cross-validated. For two
            searches: each alone, both by reciprocal ranks, and both by `BY_WEIGHTS`.
        weights: Of the searches, if two are on.
        calibration: How well confidences hold, by cross-validation; unset if there is none.
        no_concept_below: Confidence that an answer now needs, if a precision was requested.
        prior: What was counted, if mentions were given for that.
        n_counted_too: Development mentions of known concepts that are, in text and concept, also among those counted.
            The weight of counts is learned with these, and holds if later mentions include as many.
        may_be_counted: Whether the linker's earlier counts of each concept are at least as high as the development
            mentions give. They are if these mentions were counted, and the weight of counts is then learned wrongly.
        prior_weight: The weight of counts, if the stage "prior" is on.
        rerank_weight: Share of the cross-encoder in the final score, if the stage "rerank" is on. Unset although it is
            on: the mentions show nothing about it, and it keeps the share that its training chose.
        without_contexts: Whether a cross-encoder that is on reads contexts, and there were none.
        answers_nil: Whether a cross-encoder that is on may answer that no concept is meant.
        are_concepts: Words of `NO_CONCEPT` that mentions have and that are codes of the linker's concepts: they mean
            these.
        mentions_fingerprint: Of the development mentions, see `onoma.pairs.mentions.mentions_fingerprint`.
        other_forms: Unknown codes that the linker has in another form (`onoma.codes.other_forms`), and these forms.
        trained_on: What in the linker was trained on these very mentions, so that results on them are too good.
    """

    stages: tuple[Stage, ...]
    n_mentions: int
    n_distinct: int
    n_no_concept: int
    n_unknown: int
    unknown: tuple[str, ...]
    accuracy: dict[str, Accuracies]
    weights: dict[Stage, float] | None
    calibration: CalibrationReport | None
    no_concept_below: float | None
    prior: PriorReport | None = None
    n_counted_too: int | None = None
    may_be_counted: bool = False
    prior_weight: float | None = None
    rerank_weight: float | None = None
    without_contexts: bool = False
    answers_nil: bool = False
    are_concepts: tuple[str, ...] = ()
    other_forms: Mapping[str, str] = field(default_factory=dict)
    mentions_fingerprint: str | None = None
    trained_on: tuple[str, ...] = ()

    @property
    def better_alone(self) -> Stage | None:
        """The search that alone is right for more mentions than both together, if there is one."""
        fused = self.accuracy.get(BY_WEIGHTS)
        if fused is None:
            return None
        alone = {search: self.accuracy[f"{search} alone"] for search in SEARCHES}
        best = max(SEARCHES, key=lambda search: _both(alone[search]))
        return best if alone[best].at_1 > fused.at_1 else None


def tune_linker(
    linker: str | Path,
    mentions: pl.DataFrame,
    *,
    prior: pl.DataFrame | None = None,
    stages: Iterable[str] | None = None,
    calibrate: bool = True,
    method: Method = "platt",
    wished_precision: float | None = None,
    certainty: float | None = None,
    n_folds: int = 5,
    database: str | None = None,
    progress: CountProgress | None = None,
) -> TuningReport:
    """Learn a linker's settings and write them to its folder, whose other files are neither read nor copied.

    Args:
        linker: The folder.
        mentions: Columns ``mention`` and ``concept_id`` (`onoma.pairs.mentions.read_mentions`). Several codes separated
            by ``|`` are all right; `NO_CONCEPT` stands for none. These must not be the mentions that you report results
            on. A column ``context`` is for a cross-encoder that reads contexts.
        prior: Other annotated mentions, with the same columns, and ``count`` if a row counts more than once, that show
            how often each concept is meant (`onoma.linking.prior`); unset: the linker's counts stay.
        stages: Those to switch on; unset: as they are, except that the stage "prior" is on if counts are known and more
            mentions are right with it than without, and off otherwise.
        calibrate: Whether to fit confidences.
        method: See `Calibration.fit`.
        wished_precision: From now on answer "no such concept" below the confidence that reaches this precision.
        certainty: How certain it must be, for each threshold by itself, that the precision is so high, from 0.5, e.g.
            0.95. Unset: the precision is reached on these mentions, perhaps by chance, so that others may fall short of
            it.
        n_folds: Of cross-validation, from 2.
        database: For a linker with its vectors in PostgreSQL, see `Linker.open`.
        progress: Called with the numbers of mentions linked so far and in all.

    Raises:
        InputError: a precision or certainty is not allowed, these are not tables of mentions, there are too few
            mentions, or too few whose answers are right, or wrong, to fit confidences; or the stage "prior" is
            requested and they show no use for it; or nothing reads the contexts.
        ConfigError: the prior contains all of the mentions, an option has a value that is not allowed, or a stage is
            requested that the linker does not have.
        ArtifactError: the folder is not a linker, is damaged, or was changed by another process meanwhile.
        OnomaError: the linker cannot be opened, see `Linker.open`.
    """
    wish = Wish.of(wished_precision, certainty)
    if wish is not None and not calibrate:
        raise ConfigError("a wished precision needs confidences: leave calibration on.")
    if not is_whole(n_folds) or n_folds < 2:
        raise ConfigError(f"n_folds must be a whole number from 2; found {n_folds!r}.")
    n_folds = int(n_folds)
    check_method(method)
    for given in (mentions,) if prior is None else (mentions, prior):
        check_mentions(given)
    untuned = Linker.open(linker, database=database).remembering()
    ensure_writable(linker, KIND, overwrite=True)
    counted = None if prior is None else count_prior(untuned.dictionary, prior)
    opened = untuned if counted is None else untuned.with_prior(counted.counts)
    before = opened.settings.replaced(calibration=None, calibrated_stages=(), no_concept_below=None)
    implied = ["prior"] if opened.prior is not None else []
    wanted = ordered_stages([*before.stages, *implied] if stages is None else stages)
    plain = before.replaced(stages=_without(wanted, "prior"), prior_weight=None, rerank_weight=None)
    # Refuses a stage that is not there; what the prior counts for is about to be learned.
    opened.tuned(plain if opened.prior is not None else plain.replaced(stages=wanted))
    with_contexts = "context" in mentions.columns
    if with_contexts:
        opened.check_contexts(plain.stages)
    development = label_mentions(opened, mentions, n_folds)
    n_counted_too = None if prior is None else _count_shared(opened, development, prior)
    trial = Trial(opened, development, progress, n_runs=_n_runs(plain, n_folds, with_prior="prior" in wanted))
    accuracy = {"before": trial.accuracy(trial.outcomes(before, linker=untuned))}
    with_prior: WithPrior = "no" if "prior" not in wanted else "if better" if stages is None else "yes"
    chosen, outcomes = _learn(trial, plain, n_folds, opened, accuracy, with_prior=with_prior)
    learned, held = chosen, None
    if calibrate:
        calibration, held = trial.calibrated(outcomes, method, wish)
        learned = chosen.replaced(
            calibration=calibration.to_json(),
            calibrated_stages=chosen.stages,
            no_concept_below=None if wish is None else wish.threshold(calibration),
        )
    fingerprint = mentions_fingerprint(mentions["mention"])
    report = TuningReport(
        stages=chosen.stages,
        n_mentions=sum(mention.n for mention in development.mentions),
        n_distinct=len(development.mentions),
        n_no_concept=sum(mention.n for mention in development.mentions if not mention.has_concept),
        n_unknown=sum(development.unknown.values()),
        unknown=tuple(sorted(development.unknown)[:SHOWN]),
        mentions_fingerprint=fingerprint,
        trained_on=trained_on(opened, chosen.stages, fingerprint),
        other_forms=other_forms(development.unknown, opened.dictionary.concept_ids),
        accuracy=accuracy,
        weights=chosen.weights if _fuses(chosen) else None,
        calibration=held,
        no_concept_below=learned.no_concept_below,
        prior=None if counted is None else counted.report,
        n_counted_too=n_counted_too,
        may_be_counted=prior is None and opened.prior is not None and are_counted(development, opened.prior),
        prior_weight=chosen.prior_weight,
        rerank_weight=chosen.rerank_weight if "rerank" in chosen.stages else None,
        without_contexts=not with_contexts and opened.tuned(chosen).reads_contexts,
        answers_nil=opened.tuned(chosen).answers_nil,
        are_concepts=development.are_concepts,
    )
    tuning = dataclasses.asdict(report)
    of_prior = tuning.pop("prior")
    config = {"tuning": tuning, **({} if of_prior is None else {"prior": of_prior})}
    drop_unfinished(linker, database)
    with amend_artifact(linker, KIND, format_version=FORMAT_VERSION, config=config, expected=opened.manifest) as folder:
        learned.save(folder)
        if counted is not None:
            save_prior(folder, counted.counts)
    return report


def _count_shared(linker: Linker, development: Development, prior: pl.DataFrame) -> int:
    """Mentions that were counted too; if all were, nothing can be learned from them."""
    n_shared = count_shared(linker, development, prior)
    if n_shared == sum(mention.n for mention in development.mentions if mention.concepts):
        raise ConfigError(
            "all of the mentions are among those of the prior, and what they count for would be learned from mentions "
            "that were counted. Give other ones: those of the training split to count, those of the development split "
            "to learn from."
        )
    return n_shared


def _learn(
    trial: Trial,
    plain: LinkerSettings,
    n_folds: int,
    linker: Linker,
    accuracy: dict[str, Accuracies],
    *,
    with_prior: WithPrior,
) -> tuple[LinkerSettings, dict[Key, Outcome]]:
    """The settings learned from all mentions, and what each mention is answered with by those of other folds.

    Args:
        trial: Of the mentions.
        plain: Stages without the prior, nothing learned.
        n_folds: Of cross-validation.
        linker: With counts, if they are known.
        accuracy: Gets to know what was tried.
        with_prior: Whether the stage "prior" is on.
    """
    settings = _learn_fusion(trial, plain, n_folds, accuracy) if _fuses(plain) else [plain] * (1 + n_folds)
    chosen = _with_shares(trial, settings, linker.reranker)
    outcomes = trial.cross_validated(chosen[1:])
    if with_prior != "no" and linker.prior is not None:
        accuracy["without stage prior"] = trial.accuracy(outcomes)
        weights = _prior_weights(trial, settings, linker.prior)
        knowing = _with_shares(trial, list(map(_with_prior, settings, weights)), linker.reranker)
        knowing_outcomes = trial.cross_validated(knowing[1:])
        accuracy["with stage prior"] = trial.accuracy(knowing_outcomes)
        if weights[0] is None and with_prior == "yes":
            raise InputError(
                "the development mentions do not show that it counts how often a concept is meant",
                field="stages",
                fix="leave the stage prior out, or count and tune on more mentions",
            )
        is_better = _both(accuracy["with stage prior"]) > _both(accuracy["without stage prior"])
        if weights[0] is not None and (is_better or with_prior == "yes"):
            chosen, outcomes = knowing, knowing_outcomes
    if "rerank" in chosen[0].stages:
        without = [one.replaced(stages=_without(one.stages, "rerank")) for one in chosen[1:]]
        accuracy["without stage rerank"] = trial.accuracy(trial.cross_validated(without))
    accuracy["after"] = trial.accuracy(outcomes)
    return chosen[0], outcomes


def _n_runs(plain: LinkerSettings, n_folds: int, *, with_prior: bool) -> int:
    """How often all mentions will be linked."""
    n_runs = 2 + (len(SEARCHES) + 2 if _fuses(plain) else 0)
    if with_prior:
        n_runs += 1 + (1 + n_folds if _fuses(plain) else 1)
    if "rerank" in plain.stages:
        differing = [_fuses(plain), True] if with_prior else [_fuses(plain)]
        n_runs += 1 + sum(1 + n_folds if differs else 1 for differs in differing)
    return n_runs


def _learn_fusion(
    trial: Trial, plain: LinkerSettings, n_folds: int, accuracy: dict[str, Accuracies]
) -> list[LinkerSettings]:
    """Settings with weights of the searches learned from all mentions, and from those outside each fold.

    What is measured of the searches is without a cross-encoder, whose share is not learned yet.
    """
    first = _without(plain.stages, "rerank")
    for search in SEARCHES:
        alone = tuple(stage for stage in first if stage == search or stage not in SEARCHES)
        accuracy[f"{search} alone"] = trial.accuracy(trial.outcomes(plain.replaced(stages=alone)))
    ranked = trial.outcomes(plain.replaced(stages=first, weights=None))
    accuracy["reciprocal ranks"] = trial.accuracy(ranked)
    learned = [learn_weights(trial.pools(ranked, but=fold)) for fold in (None, *range(n_folds))]
    fused = [plain.replaced(stages=first, weights=weights) for weights in learned[1:]]
    accuracy[BY_WEIGHTS] = trial.accuracy(trial.cross_validated(fused))
    return [plain.replaced(weights=weights) for weights in learned]


def _with_shares(trial: Trial, settings: list[LinkerSettings], reranker: Reranker | None) -> list[LinkerSettings]:
    """With the share of the cross-encoder learned from all mentions, and from those outside each fold."""
    if reranker is None or "rerank" not in settings[0].stages:
        return settings
    depth = reranker.about.depth
    learned, found = [], dict[Key, Outcome]()
    for fold, plain in zip([None, *range(len(settings) - 1)], settings, strict=True):
        if fold is None or _fuses(plain) or "prior" in plain.stages:  # else all have the same settings
            found = trial.outcomes(plain.replaced(rerank_weight=1.0))
        share = learn_share(trial.reranked(found, depth=depth, but=fold))
        learned.append(plain.replaced(rerank_weight=share))
    return learned


def _prior_weights(trial: Trial, settings: list[LinkerSettings], counts: RowArray) -> list[float | None]:
    """What the prior counts for with the settings learned from all mentions, and with those of each fold."""
    learned, found = [], dict[Key, Outcome]()
    for fold, plain in zip([None, *range(len(settings) - 1)], settings, strict=True):
        if fold is None or _fuses(plain):  # else all have the same settings
            searches = plain.replaced(stages=_without(plain.stages, "rerank"))
            found = trial.outcomes(searches, top_k=PRIOR_DEPTH)
        learned.append(learn_prior_weight(trial.candidates(found, counts, but=fold)))
    return learned


def _with_prior(settings: LinkerSettings, weight: float | None) -> LinkerSettings:
    """With the stage; where nothing was learned, with one that adds next to nothing."""
    stages = ordered_stages([*settings.stages, "prior"])
    return settings.replaced(stages=stages, prior_weight=_NEXT_TO_NOTHING if weight is None else weight)


def _both(accuracy: Accuracies) -> tuple[float, float]:
    return accuracy.at_1, accuracy.at_5


def _fuses(settings: LinkerSettings) -> bool:
    return all(search in settings.stages for search in SEARCHES)


def _without(stages: tuple[Stage, ...], left_out: Stage) -> tuple[Stage, ...]:
    return tuple(stage for stage in stages if stage != left_out)
