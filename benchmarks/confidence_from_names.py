"""How good confidences are that a linker learns from its own names, beside those from annotated mentions.

    python benchmarks/confidence_from_names.py LINKER --mentions train_queries.txt dev_queries.txt

Confidences are learned from N hidden names as by ``onoma linker calibrate``, with several seeds, and from N annotated
mentions drawn at random as by ``onoma linker tune``, for many draws. The former are judged by all annotated mentions,
the latter by those that were not drawn, each distinct one once. Draws with fewer than ten wrong answers are refused, as
by ``onoma linker tune``, and some that are fitted reach the wished precision nowhere: means are of those that are left,
whose number is told. The linker's stages and weights must have learned nothing from these mentions. Where it has two
searches without weights, those learned from names come first, and their accuracy beside that of reciprocal ranks and of
vectors alone.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from onoma.artifacts import amend_artifact
from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.linking import Linker, LinkerSettings, calibrate_linker
from onoma.linking.calibration import Calibration
from onoma.linking.confidence_metrics import area_under_risk_coverage, brier_score, expected_calibration_error
from onoma.linking.development import label_mentions
from onoma.linking.folder import FORMAT_VERSION, KIND
from onoma.linking.settings import SEARCHES
from onoma.linking.trials import Trial
from onoma.pairs import read_mentions
from onoma.types import BoolArray, DoubleArray


def main() -> None:
    """Learn, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linker", type=Path, help="folder of a linker")
    parser.add_argument("--mentions", type=Path, nargs="+", required=True, help="as for onoma linker tune")
    parser.add_argument("--names", type=int, nargs="+", default=[500, 2000], help="hidden names learned from")
    parser.add_argument("--numbers", type=int, nargs="+", default=[50, 100, 200, 400], help="mentions learned from")
    parser.add_argument("--wish", type=float, default=0.95, help="precision (default: 0.95)")
    parser.add_argument("--seeds", type=int, default=5, help="of hidden names (default: 5)")
    parser.add_argument("--draws", type=int, default=100, help="of mentions (default: 100)")
    options = parser.parse_args()
    linker = Linker.open(options.linker)
    frames = [read_mentions(file, Reading(on_error="skip")) for file in options.mentions]
    trial = Trial(linker, label_mentions(linker, pl.concat(frames), 5), None, n_runs=1)
    settings = linker.settings.replaced(calibration=None, calibrated_stages=(), no_concept_below=None)
    if settings.weights is None and set(SEARCHES) <= set(settings.stages):
        by_names = _learned_from_names(options.linker, max(options.names), 0)
        weighted = settings.replaced(weights=by_names.weights)
        vectors = settings.replaced(stages=[stage for stage in settings.stages if stage != "sparse"])
        tried = {"reciprocal ranks": settings, "vectors alone": vectors, f"weights {by_names.weights}": weighted}
        for what, one in tried.items():
            found = trial.accuracy(trial.outcomes(one))
            print(f"{what}: acc@1 {100 * found.at_1:.1f}, acc@5 {100 * found.at_5:.1f}", flush=True)
        settings = weighted
    features, is_right, answered = trial.first_answers(trial.outcomes(settings))
    texts = [mention.text for mention in answered]
    print(f"{len(texts):,} different mentions with an answer, {is_right.mean():.3f} of the first answers right")
    print(
        "learned from            ECE    AURC   Brier  too high  fitted  "
        f"precision wished: {options.wish:g}, reached (sd)  answered  with a threshold"
    )
    _tell("scores as they are", [_judged(np.clip(features[:, 0], 0, 1), is_right, None)], 1)
    for n in options.names:
        learned = [_calibration(options.linker, n, seed, settings) for seed in range(options.seeds)]
        judged = [_judged(one.confidence(features), is_right, _threshold(one, options.wish)) for one in learned]
        _tell(f"{n:,} names", judged, options.seeds)
    random = np.random.default_rng(0)
    for n in options.numbers:
        if n > len(texts) // 2:
            continue
        judged = []
        for _ in range(options.draws):
            order = random.permutation(len(texts))
            seen, others = order[:n], order[n:]
            try:
                fitted = Calibration.fit(features[seen], is_right[seen], mentions=[texts[row] for row in seen])
            except InputError:  # too few wrong ones
                continue
            threshold = _threshold(fitted, options.wish)
            judged.append(_judged(fitted.confidence(features[others]), is_right[others], threshold))
        _tell(f"{n:,} mentions", judged, options.draws)


def _learned_from_names(
    linker: Path, n_names: int, seed: int, settings: LinkerSettings | None = None
) -> LinkerSettings:
    """What a copy of the linker, with other settings if they are given, learns from its names."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "linker"
        shutil.copytree(linker, copy)
        if settings is not None:
            with amend_artifact(copy, KIND, format_version=FORMAT_VERSION) as changed:
                settings.save(changed)
        calibrate_linker(copy, n_names=n_names, seed=seed)
        return LinkerSettings.open(copy)


def _calibration(linker: Path, n_names: int, seed: int, settings: LinkerSettings) -> Calibration:
    return Calibration.from_json(str(_learned_from_names(linker, n_names, seed, settings).calibration))


def _threshold(calibration: Calibration, wish: float) -> float | None:
    try:
        return calibration.threshold_for(wish)
    except InputError:
        return None


def _judged(confidence: DoubleArray, is_right: BoolArray, threshold: float | None) -> list[float]:
    """ECE, AURC, Brier score, how much too high; precision and coverage of the threshold, NaN without one."""
    kept = np.zeros(len(is_right), np.bool_) if threshold is None else confidence >= threshold
    return [
        expected_calibration_error(confidence, is_right),
        area_under_risk_coverage(confidence, is_right),
        brier_score(confidence, is_right),
        float(confidence.mean() - is_right.mean()),
        float(is_right[kept].mean()) if kept.any() else np.nan,
        float(kept.mean()) if kept.any() else np.nan,
    ]


def _tell(what: str, judged: list[list[float]], n_tried: int) -> None:
    """A line of means over what could be fitted of what was tried."""
    if not judged:
        print(f"{what:21} {f'0 of {n_tried}':>43}", flush=True)
        return
    error, curve, brier, excess, precision, coverage = np.array(judged).T
    told = f"{what:21} {error.mean():6.3f} {curve.mean():7.4f} {brier.mean():7.3f} {excess.mean():9.3f}"
    told += f" {f'{len(judged)} of {n_tried}':>10}"
    if (n_reached := int(np.isfinite(precision).sum())) > 0:
        told += (
            f" {np.nanmean(precision):22.3f} ({np.nanstd(precision):.3f}) {np.nanmean(coverage):12.0%} {n_reached:17}"
        )
    print(told, flush=True)


if __name__ == "__main__":
    main()
