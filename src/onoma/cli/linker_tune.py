"""``onoma linker tune``, ``calibrate`` and ``add-prior``: what a linker learns from annotated mentions or its names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from onoma.cli.options import (
    ANNOTATED,
    CodeColumn,
    Database,
    Json,
    LinkerFolder,
    MentionColumn,
    MentionEncoding,
    OnError,
    divided,
    mention_format,
)
from onoma.errors import ConfigError
from onoma.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from onoma.files.reading import Reading
    from onoma.linking import LinkerSettings, TuningReport
    from onoma.linking.prior_counting import PriorReport
    from onoma.linking.settings import Stage
    from onoma.linking.trials import Accuracies, CalibrationReport

CountColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of a table of counted mentions that says how often each row counts, a whole number. Default: "
        "once.",
    ),
]
MinPrecision = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        metavar="P",
        help="From now on, answer 'no such concept' below the confidence from which this share (above 0) of the "
        "answers to distinct mentions (calibrate: names) is right. Default: answer at any confidence, even if this "
        "was set before.",
    ),
]
Certainty = Annotated[
    float | None,
    typer.Option(
        metavar="C",
        help="With --min-precision: how certain that precision must be, from 0.5, below 1, such as 0.95. Default: "
        "what it is learned from reaches it; if this is little, others often do not.",
    ),
]
_NEARLY_ALL = 0.95
"""Share of development mentions that were counted too, from which that is remarked on."""
_LARGE_WEIGHT = 0.3
"""Of a prior, from which on one counted mention outweighs a difference of 0.2 between two cosines."""


def tune(
    linker: LinkerFolder,
    mentions: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help=f"Development mentions: {ANNOTATED}. The ids NIL, CUI-less, -1 and 0 mean 'no such concept', unless "
            "the linker has a concept of that code.",
        ),
    ],
    column: MentionColumn = None,
    code_column: CodeColumn = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of --mentions with the text around each mention, for a reranker that reads it.",
        ),
    ] = None,
    prior: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Other annotated mentions, such as training mentions. Among equally good concepts, the one that "
            "they mean more often comes first; other concepts go up by a weight learned from development "
            "mentions (stage prior). Default: the linker's counts stay.",
        ),
    ] = None,
    count_column: CountColumn = None,
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="STAGES",
            help="The stages that are on from now on, separated by commas. Default: as now, and prior if it helps.",
        ),
    ] = None,
    calibration: Annotated[
        Literal["platt", "isotonic", "none"],
        typer.Option(help="How to fit confidences; isotonic needs some hundred mentions."),
    ] = "platt",
    min_precision: MinPrecision = None,
    certainty: Certainty = None,
    on_error: OnError = "strict",
    encoding: MentionEncoding = "utf-8",
    database: Database = None,
    as_json: Json = False,
) -> None:
    """Tune a linker on development mentions.

    Learns how to fuse searches, how much frequency counts, and how far to trust an answer. Replaces the linker's
    folder in one step, without copying its large files. The figures for the new settings are cross-validated: they
    are of mentions that the settings were not learned from.
    """
    from onoma.cli import show
    from onoma.linking import tune_linker
    from onoma.linking.folder import open_settings
    from onoma.pairs import read_mentions

    written = mention_format(column, code_column, encoding, [mentions, prior])

    if count_column is not None and prior is None:
        raise ConfigError("--count-column is of the file of --prior, and none is given.")

    def read_from(file: Path, **columns: str | None) -> tuple[pl.DataFrame, Reading]:
        of_file = written.fitting(file)
        reading = of_file.reading(on_error)
        return read_mentions(file, reading, mention_format=of_file, **columns), reading

    read, reading = read_from(mentions, context=context)
    counted, counting = (None, None) if prior is None else read_from(prior, count=count_column)
    before = open_settings(linker)
    with show.progress_bar("linking", "mentions") as update:
        report = tune_linker(
            linker,
            read,
            prior=counted,
            stages=divided(stages),
            calibrate=calibration != "none",
            method="platt" if calibration == "none" else calibration,
            wished_precision=min_precision,
            certainty=certainty,
            database=database,
            progress=update,
        )
    _show_left_out(mentions, reading)
    if prior is not None and counting is not None:
        _show_left_out(prior, counting)
    with show.remarks_alone(if_so=as_json):
        _show_report(linker, report, before)
    if as_json:
        n_rejected = len(reading.rejects) + (0 if counting is None else len(counting.rejects))
        show.json_document({"path": linker, **vars(report), "n_rejected": n_rejected})


def calibrate(
    linker: LinkerFolder,
    names: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=50,
            help="How many names to hide, each of another concept; fewer if the linker has fewer that can be hidden.",
        ),
    ] = 2000,
    calibration: Annotated[Literal["platt", "isotonic"], typer.Option(help="How to fit confidences.")] = "platt",
    min_precision: MinPrecision = None,
    certainty: Certainty = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the choice of names.")] = 0,
    database: Database = None,
    as_json: Json = False,
) -> None:
    """Learn confidences without annotated mentions.

    Hides some synonyms, links them as if they were mentions, and learns how far to trust an answer; for vectors and
    n-grams also their weights, unless these are the encoder's or from annotated mentions. Such mentions show more,
    from about a hundred on: onoma linker tune.
    """
    from onoma.cli import show
    from onoma.linking import calibrate_linker
    from onoma.linking.folder import open_settings

    before = open_settings(linker)
    with show.progress_bar("linking", "names") as update:
        report = calibrate_linker(
            linker,
            n_names=names,
            seed=seed,
            method=calibration,
            wished_precision=min_precision,
            certainty=certainty,
            database=database,
            progress=update,
        )
    with show.remarks_alone(if_so=as_json):
        show.out.print(
            f"{linker}: confidences learned from {quantity(report.n_hidden, 'hidden name')} and "
            f"{report.n_shown:,} others; stages {', '.join(report.stages)}\n"
            f"hidden names found: {report.hidden.at_1:.1%} first, {report.hidden.at_5:.1%} among five"
        )
        if report.weights is not None and report.hidden_by_ranks is not None:
            by_ranks = report.hidden_by_ranks
            show.out.print(
                f"weights: {_in_words(report.weights)} (by reciprocal ranks: {by_ranks.at_1:.1%} first, "
                f"{by_ranks.at_5:.1%} among five)"
            )
        _show_lost(before, report.no_concept_below, is_calibrated=True)
        _show_calibration(report.calibration, report.no_concept_below, of="name", more="hide more names")
        if report.had_calibration:
            show.remark(
                "the linker's earlier confidences are replaced; from a hundred annotated mentions or more they were "
                "better (onoma linker tune learns them again)"
            )
        if report.without_contexts:
            show.remark("the cross-encoder reads contexts, and names have none: confidences hold for mentions without")
        if report.trained_on_names:
            show.remark(
                "the encoder was trained on these very names: confidences are too high for others; tune on annotated "
                "mentions (onoma linker tune) once you have some"
            )
        show.remark(
            "names are not mentions in text, which often miss a precision learned from names by some points; and "
            "nothing is learned of mentions that mean no concept here"
        )
    if as_json:
        show.json_document({"path": linker, **vars(report)})


def add_prior(
    linker: LinkerFolder,
    mentions: Annotated[
        Path,
        typer.Argument(metavar="MENTIONS", help=f"Annotated mentions: {ANNOTATED}."),
    ],
    column: MentionColumn = None,
    code_column: CodeColumn = None,
    count_column: CountColumn = None,
    weight: Annotated[
        float | None,
        typer.Option(
            metavar="W",
            help="Weight of counts against a cosine, such as 0.03 (from 0.3 on they decide rather than names); "
            "switches the stage prior on. Default: as learned by onoma linker tune --prior; without that, "
            "counts only order equally good concepts.",
        ),
    ] = None,
    on_error: OnError = "strict",
    encoding: MentionEncoding = "utf-8",
    database: Database = None,
    as_json: Json = False,
) -> None:
    """Count how often mentions mean each concept.

    Replaces earlier counts. Use it once a linker's settings are chosen, to count the development mentions too.
    """
    from onoma.cli import show
    from onoma.linking import LinkerSettings
    from onoma.linking import add_prior as count
    from onoma.linking.folder import open_settings
    from onoma.pairs import read_mentions

    written = mention_format(column, code_column, encoding, [mentions])
    reading = written.reading(on_error)
    was_calibrated = open_settings(linker).calibration is not None
    annotated = read_mentions(mentions, reading, count=count_column, mention_format=written)
    report = count(linker, annotated, weight=weight, database=database)
    _show_left_out(mentions, reading)
    settings = LinkerSettings.open(linker)
    with show.remarks_alone(if_so=as_json):
        _show_prior(report)
        show.out.print(f"stages {', '.join(settings.stages)}")
    if as_json:
        told = {"stages": settings.stages, "prior_weight": settings.prior_weight, "n_rejected": len(reading.rejects)}
        show.json_document({"path": linker, **vars(report), **told})
    if weight is not None and weight >= _LARGE_WEIGHT:
        show.remark(
            f"with a weight of {weight:g} concepts that are meant often come before more similar names; from real "
            "mentions, weights of about 0.02 to 0.04 were learned"
        )
    if settings.prior_weight is None:
        show.remark(
            "counts order equally good concepts; how much they count beyond that is learned by onoma linker tune "
            "--prior, or given with --weight"
        )
    if was_calibrated and settings.calibration is None:
        show.remark("the confidences were learned with another weight and are dropped")
    elif was_calibrated:
        show.remark(
            "confidences are still those learned with the earlier counts, or without any, even if counts put one of "
            "several equally good concepts first"
        )


def _show_left_out(file: Path, reading: Reading) -> None:
    from onoma.cli import show

    show.left_out(reading.rejects)
    for note, n in reading.notes.items():
        show.remark(f"{file}: {n:,} {note}")


def _show_prior(report: PriorReport) -> None:
    from onoma.cli import show

    unknown = f", {report.n_unknown:,} of them of none that the linker has" if report.n_unknown else ""
    concepts, mentions = quantity(report.n_concepts, "concept"), quantity(report.n_mentions, "mention")
    show.out.print(f"prior: {concepts} meant by {mentions}{unknown}")


def _show_report(linker: Path, report: TuningReport, before: LinkerSettings) -> None:
    from onoma.cli import show

    _show_mentions(report)
    show.out.print(
        f"{linker}: tuned on {quantity(report.n_mentions, 'mention')}, {report.n_no_concept:,} of them without a "
        f"concept; stages {', '.join(report.stages)}",
    )
    _show_counted(report)
    _show_lost(before, report.no_concept_below, is_calibrated=report.calibration is not None)
    rows = [[what, f"{100 * one.at_1:.2f}", f"{100 * one.at_5:.2f}"] for what, one in report.accuracy.items()]
    show.table(["", "acc@1", "acc@5"], rows, numeric=["acc@1", "acc@5"])
    _show_learned(report)
    _show_confidence(report)


def _show_mentions(report: TuningReport) -> None:
    """What is to be known of the mentions before the figures."""
    from onoma.cli import show
    from onoma.codes import NO_CONCEPT, other_forms_in_words

    if report.n_unknown:
        codes = ", ".join(report.unknown)
        unknown = f"{quantity(report.n_unknown, 'mention')} of concepts that the linker does not have"
        meant = [code for code in report.unknown if code.upper() in {nil.upper() for nil in NO_CONCEPT}]
        hint = "" if not meant else f" (for 'no such concept' write {', '.join(NO_CONCEPT)})"
        show.remark(f"{unknown}, such as {codes}: every answer to them counts as wrong{hint}")
    if report.other_forms:
        show.remark(other_forms_in_words(report.other_forms, where="the linker"))
    if report.are_concepts:
        named = " and ".join(report.are_concepts)
        show.remark(
            f"the linker has concepts of the codes {named}: mentions with them mean these, not 'no such concept'"
        )
    for what in report.trained_on:
        show.remark(
            f"{what} was trained on these very mentions: accuracies and confidences are too high for others; tune on "
            "mentions that nothing in the linker has learned from"
        )
    if report.without_contexts:
        show.remark(
            "the cross-encoder reads contexts, and was tuned without: confidences hold for mentions "
            "without; give --context"
        )


def _show_counted(report: TuningReport) -> None:
    from onoma.cli import show

    if report.prior is not None and report.n_counted_too is not None:
        _show_prior(report.prior)
        share = report.n_counted_too / (report.n_mentions - report.n_no_concept - report.n_unknown)
        show.out.print(f"{share:.0%} of the development mentions are also among those of the prior")
        if share >= _NEARLY_ALL:
            show.remark(
                "nearly all development mentions were counted: the weight of counts and the accuracies hold only if "
                "later mentions are as well known"
            )
    if report.may_be_counted and report.prior_weight is not None:
        show.remark(
            "the linker has counted each concept as often as these mentions mean it, or more: if these very mentions "
            "were counted, the weight of counts is wrong, and the accuracies are too high"
        )


def _show_lost(before: LinkerSettings, no_concept_below: float | None, *, is_calibrated: bool) -> None:
    """What the linker had and has no more."""
    from onoma.cli import show
    from onoma.linking.confidence_metrics import threshold_in_words

    if before.calibration is not None and not is_calibrated:
        show.remark("the linker's confidences are dropped")
    if before.no_concept_below is not None and no_concept_below is None:
        least = threshold_in_words(before.no_concept_below)
        show.remark(
            f"the linker no longer answers 'no such concept', as it did below a confidence of {least}: "
            "give --min-precision again to withhold uncertain answers"
        )


def _show_learned(report: TuningReport) -> None:
    """Weights, and what they say of stages that are better left out."""
    from onoma.cli import show
    from onoma.linking.settings import SEARCHES
    from onoma.linking.tuning import BY_WEIGHTS

    if report.weights is not None:
        show.out.print(f"weights: {_in_words(report.weights)}")
    if (search := report.better_alone) is not None:
        stages_left = ",".join(stage for stage in report.stages if stage == search or stage not in SEARCHES)
        show.remark(
            f"the {search} search alone is right more often than both, fused by weights that were learned from other "
            f"mentions: leave the other one out (--stages {stages_left}"
            f"{_lost_at_five(report.accuracy[f'{search} alone'], report.accuracy[BY_WEIGHTS])})"
        )
    if report.prior_weight is not None:
        show.out.print(f"weight of the prior: {report.prior_weight:.4f}")
    elif "without stage prior" in report.accuracy:
        show.out.print("stage prior off: counts only order equally good concepts")
    if report.rerank_weight is not None:
        is_idle = report.rerank_weight == 0 and not report.answers_nil
        useless = " (of no use on these mentions: leave out the stage rerank, --stages)" if is_idle else ""
        show.out.print(f"share of the reranker: {report.rerank_weight:.3g}{useless}")
    if (without := report.accuracy.get("without stage rerank")) is None:
        return
    after = report.accuracy["after"]
    if report.answers_nil:
        show.out.print(
            f"of all mentions, NIL being right where the linker has no such concept: {100 * after.right:.2f} % right, "
            f"{100 * without.right:.2f} % without the stage rerank"
        )
    if without.right > after.right:
        others = ",".join(stage for stage in report.stages if stage != "rerank")
        lost = _lost_at_five(without, after)
        show.remark(f"the linker is right more often without its stage rerank: leave it out (--stages {others}{lost})")


def _in_words(weights: Mapping[Stage, float]) -> str:
    return ", ".join(f"{search} {weight:.3f}" for search, weight in weights.items())


def _lost_at_five(without: Accuracies, with_it: Accuracies) -> str:
    """What leaving out costs whoever looks at five answers."""
    lost = 100 * (with_it.at_5 - without.at_5)
    return f"; acc@5 is {lost:.2f} points lower then" if round(lost, 2) > 0 else ""


def _show_confidence(report: TuningReport) -> None:
    from onoma.cli import show

    if report.calibration is None:
        return
    _show_calibration(report.calibration, report.no_concept_below, of="distinct mention", more="tune on more mentions")
    if report.no_concept_below is not None and not report.n_no_concept + report.n_unknown:
        show.remark(
            "all development mentions mean a concept that the linker has: for later mentions that do not, the "
            "precision is lower than requested; tune on some of these too"
        )


def _show_calibration(held: CalibrationReport, no_concept_below: float | None, *, of: str, more: str) -> None:
    """How well confidences hold.

    Args:
        held: Of what was tried.
        no_concept_below: The threshold that is kept.
        of: What they were learned from.
        more: How to learn from more.
    """
    from onoma.cli import show
    from onoma.linking.confidence_metrics import threshold_in_words, wilson_interval

    show.out.print(
        f"confidence ({held.method}), of the first answers to {quantity(held.n_answers, of)}: "
        f"{held.mean_confidence:.3f} on average, {held.share_right:.3f} right; "
        f"expected calibration error {held.expected_calibration_error:.3f} (perfect confidences: "
        f"{held.if_calibrated:.3f})",
    )
    if held.abstention is None or no_concept_below is None:
        return
    told = held.abstention
    right = "" if told.held_out_right is None else f", {told.held_out_right:.3f} of the {told.n_held_out:,} right"
    none = "" if not told.n_unfulfilled else f"; no threshold for {told.n_unfulfilled} of the fifths"
    low, high = wilson_interval(told.n_learned_right, told.n_learned_from)
    show.out.print(
        f"no such concept below a confidence of {threshold_in_words(no_concept_below)}: "
        f"{told.share_answered:.3f} of the {of}s answered\n"
        f"it was learned from {quantity(told.n_learned_from, 'answer')}, {told.n_learned_right:,} of them right "
        f"({low:.3f}-{high:.3f})\n"
        f"thresholds learned without a fifth of them, on that fifth: {told.held_out_answered:.3f} answered{right}"
        f"{none}",
    )
    if told.held_out_right is not None and told.held_out_right < told.wish.precision:
        better = "" if told.wish.certainty is not None else ", or give --certainty"
        show.remark(
            f"on {of.removeprefix('distinct ')}s that it was not learned from, the threshold does not reach "
            f"{told.wish.precision:g}: expect less, {more}{better}"
        )
    elif told.n_unfulfilled:
        show.remark(
            f"without a fifth of the {of.removeprefix('distinct ')}s there may be no such threshold: it depends on "
            f"few; {more}"
        )
