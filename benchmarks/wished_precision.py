"""What a wished precision comes to on other mentions, by how many the confidence was learned from.

    python benchmarks/wished_precision.py LINKER --mentions train_queries.txt dev_queries.txt

Different annotated mentions are drawn at random, a confidence is fitted to them as by ``onoma linker tune``, thresholds
are taken for each wish, and what is answered from there on is judged by all the other mentions, each once; so for many
draws. The linker's stages and weights stay: they must have learned nothing from these mentions.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.linking import Linker
from onoma.linking.calibration import Calibration
from onoma.linking.development import label_mentions
from onoma.linking.trials import Trial
from onoma.pairs import read_mentions


def main() -> None:
    """Draw, fit, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linker", type=Path, help="folder of a linker")
    parser.add_argument("--mentions", type=Path, nargs="+", required=True, help="as for onoma linker tune")
    parser.add_argument("--numbers", type=int, nargs="+", default=[50, 100, 200, 400, 800], help="learned from")
    parser.add_argument("--wishes", type=float, nargs="+", default=[0.9, 0.95], help="precisions")
    parser.add_argument("--certainty", type=float, help="as of onoma linker tune (default: none)")
    parser.add_argument("--draws", type=int, default=200, help="of mentions (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default: 0)")
    options = parser.parse_args()
    linker = Linker.open(options.linker)
    frames = [read_mentions(file, Reading(on_error="skip")) for file in options.mentions]
    development = label_mentions(linker, pl.concat(frames), 5)
    trial = Trial(linker, development, None, n_runs=1)
    settings = linker.settings.replaced(calibration=None, calibrated_stages=(), no_concept_below=None)
    features, is_right, answered = trial.first_answers(trial.outcomes(settings))
    texts = [mention.text for mention in answered]
    print(f"{len(texts):,} different mentions with an answer, {is_right.mean():.3f} of the first answers right")
    print("learned from  wish  no threshold  reached, mean (sd)  below wish  answered")
    random = np.random.default_rng(options.seed)
    for n in options.numbers:
        if n > len(texts) // 2:
            continue
        reached: dict[float, list[tuple[float, float]]] = {wish: [] for wish in options.wishes}
        for _ in range(options.draws):
            order = random.permutation(len(texts))
            seen, others = order[:n], order[n:]
            try:
                calibration = Calibration.fit(features[seen], is_right[seen], mentions=[texts[row] for row in seen])
            except InputError:  # too few wrong ones
                continue
            confidence = calibration.confidence(features[others])
            for wish, of_wish in reached.items():
                try:
                    kept = confidence >= calibration.threshold_for(wish, certainty=options.certainty)
                except InputError:
                    continue
                if kept.any():
                    of_wish.append((float(is_right[others][kept].mean()), float(kept.mean())))
        for wish, of_wish in reached.items():
            if not of_wish:
                print(f"{n:12,} {wish:5.2f} {1:13.0%}")
                continue
            precision, coverage = np.array(of_wish).T
            told = f"{precision.mean():.3f} ({precision.std():.3f})"
            none, below = 1 - len(of_wish) / options.draws, float((precision < wish).mean())
            print(f"{n:12,} {wish:5.2f} {none:13.0%} {told:>19} {below:11.0%} {coverage.mean():9.0%}")


if __name__ == "__main__":
    main()
