"""What annotated mentions are worth to a linker, by how many there are: as further names, as counts, as both.

    python benchmarks/corrections.py --linker LINKER --terminology T --mentions train_queries.txt
        --judge dev_queries.txt

Of ``--mentions`` some are drawn at random, as often as they occur, and the mentions of ``--judge`` are linked

* by the linker as it is, which is told first,
* once it knows those that were drawn as names of their concepts (``onoma linker update``),
* with the drawn ones counted as a prior (``onoma linker add-prior --weight W``),
* with both.

Several draws of each number: mean and standard deviation of acc@1 and acc@5. Nothing is tuned.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from onoma.files.reading import Reading
from onoma.linking import Linker, update_linker
from onoma.linking.development import Development, label_mentions
from onoma.linking.prior_counting import count_prior
from onoma.linking.trials import Trial
from onoma.pairs import read_mentions
from onoma.terminology import import_terminology, merge_terminologies


def accuracies(linker: Linker, mentions: Development) -> tuple[float, float]:
    """acc@1 and acc@5 of the mentions, as often as they occur."""
    trial = Trial(linker, mentions, None, n_runs=1)
    found = trial.accuracy(trial.outcomes(linker.settings))
    return found.at_1, found.at_5


def with_names(linker: Path, terminology: Path, mentions: pl.DataFrame, folder: Path) -> Linker:
    """The linker over a terminology that has the mentions as names too, made as docs/mapping.md says."""
    dictionary = Linker.open(linker).dictionary
    concepts = dictionary.meant_concepts(mentions["concept_id"].unique())
    meant = ((text, sorted(concepts[label][0])) for text, label in mentions.iter_rows())
    rows = [(dictionary.concept_ids[concept], text) for text, of_text in meant for concept in of_text]
    table = pl.DataFrame(rows, schema=["code", "label"], orient="row").unique(maintain_order=True)
    table.write_csv(folder / "corrections.csv")
    options = {"id": "code", "name": "label"}
    import_terminology("table", folder / "corrections.csv", folder / "corrections", options=options)
    merge_terminologies([terminology, folder / "corrections"], folder / "merged")
    update_linker(linker, folder / "merged", folder / "linker")
    return Linker.open(folder / "linker")


def with_counts(linker: Linker, mentions: pl.DataFrame, weight: float) -> Linker:
    """The linker with the mentions as its prior."""
    stages = tuple(dict.fromkeys((*linker.settings.stages, "prior")))
    counts = count_prior(linker.dictionary, mentions).counts
    return linker.with_prior(counts).tuned(linker.settings.replaced(stages=stages, prior_weight=weight))


def measured(options: argparse.Namespace, drawn: pl.DataFrame, judged: pl.DataFrame) -> Iterator[tuple[float, float]]:
    """Of one draw: with names, with counts, with both."""
    plain = Linker.open(options.linker)
    weights = options.weight, options.weight_with_names
    with tempfile.TemporaryDirectory() as folder:
        knowing = with_names(options.linker, options.terminology, drawn, Path(folder))
        for linker in (knowing, with_counts(plain, drawn, weights[0]), with_counts(knowing, drawn, weights[1])):
            yield accuracies(linker, label_mentions(linker, judged, 5))


def main() -> None:
    """Draw, link, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linker", type=Path, required=True, help="not tuned")
    parser.add_argument("--terminology", type=Path, required=True, help="that it was built over")
    parser.add_argument("--mentions", type=Path, required=True, help="to draw from, as for onoma linker tune")
    parser.add_argument("--judge", type=Path, required=True, help="other mentions")
    parser.add_argument("--numbers", type=int, nargs="+", default=[50, 100, 200, 400, 800, 1600, 3200])
    parser.add_argument("--weight", type=float, default=0.03, help="of counts (default: 0.03)")
    parser.add_argument("--weight-with-names", type=float, default=0.02, help="... where mentions are names too (0.02)")
    parser.add_argument("--draws", type=int, default=3, help="of each number (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default: 0)")
    options = parser.parse_args()
    mentions, judged = (read_mentions(file, Reading(on_error="skip")) for file in (options.mentions, options.judge))
    linker = Linker.open(options.linker)
    at_1, at_5 = accuracies(linker, label_mentions(linker, judged, 5))
    print(f"{len(mentions):,} mentions to draw from, {len(judged):,} judged: {at_1:.3f} / {at_5:.3f} as it is")
    print("drawn  different" + "".join(f"{what:>30}" for what in ("as names", "counted", "both")))
    random = np.random.default_rng(options.seed)
    for n in [*(n for n in options.numbers if n < len(mentions)), len(mentions)]:
        draws = [
            mentions[random.permutation(len(mentions))[:n]] for _ in range(options.draws if n < len(mentions) else 1)
        ]
        found = np.array([list(measured(options, drawn, judged)) for drawn in draws])
        different = np.mean([drawn["mention"].n_unique() for drawn in draws])
        told = [
            f"{mean[0]:.3f} / {mean[1]:.3f} ({spread[0]:.3f}, {spread[1]:.3f})"
            for mean, spread in zip(found.mean(0), found.std(0), strict=True)
        ]
        print(f"{n:5,} {different:10,.0f}" + "".join(f"{one:>30}" for one in told), flush=True)


if __name__ == "__main__":
    main()
