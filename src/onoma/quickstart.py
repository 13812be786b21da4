"""The main job on real data, from packages alone: read MONDO, hide synonyms, measure, train, measure again, link.

Every step writes a folder below one place, and is skipped when its folder is there and was made from the same
things with the same settings; so a second run is quick and a stopped one goes on.
"""

from __future__ import annotations

import contextlib
import csv
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from onoma.artifacts import Parent, open_artifact, read_manifest, write_artifact
from onoma.benchmarks import HiddenSynonymScores, score_hidden_synonyms
from onoma.encoders import Encoder, open_encoder
from onoma.encoders.folders import ENCODER_KIND
from onoma.errors import ArtifactError, InputError, MismatchError
from onoma.linking import ExactMatcher, Link, Linker, MentionLinker, Preparation, build_linker
from onoma.pairs import HeldOut, hold_out_synonyms
from onoma.quantities import quantity
from onoma.terminology import Terminology, import_terminology
from onoma.training.alignment_config import Recipe
from onoma.training.run import train_on_terminology
from onoma.training.watching import Watching

MENTIONS = (
    ("heart attak", "misspelt"),
    ("alzeimer diseese", "misspelt"),
    ("diabetis mellitus type two", "misspelt"),
    ("Lou Gehrig's disease", "eponym"),
    ("brittle bones", "lay"),
    ("high blood pressure", "lay"),
    ("whooping cough", "lay"),
    ("Coumadin embryopathy", "brand"),
    ("COPD", "abbreviation"),
    ("T2DM", "abbreviation"),
    ("cancer of the breast", "reordered"),
    ("systemic lupus erythematosus", "plain"),
)
"""Mentions that the quickstart links: what somebody may write, and of what sort it is."""

RESULTS_KIND = "quickstart-results"


class Display(Protocol):
    """Where the quickstart tells what it does; `onoma.cli.show` is one."""

    def remark(self, text: str) -> None:
        """Show a line."""

    def progress_bar(self, label: str, unit: str) -> contextlib.AbstractContextManager[Callable[..., None]]:
        """A bar that takes (done, total, what)."""

    def training_bar(self) -> contextlib.AbstractContextManager[Watching[Any]]:
        """A bar, as the keywords that trainers take."""


@dataclass(frozen=True)
class QuickstartResult:
    """What a quickstart has to show."""

    folder: Path
    n_hidden: int
    exact: HiddenSynonymScores
    before: HiddenSynonymScores
    after: HiddenSynonymScores
    links: list[tuple[str, str, list[Link]]]
    """(mention, its sort, links) for `MENTIONS`."""
    seconds: float


def run_quickstart(
    folder: str | Path,
    *,
    display: Display,
    ontology: str = "MONDO",
    n_hidden: int = 2000,
    minutes: float | None = None,
    seed: int = 0,
) -> QuickstartResult:
    """Run the main job below ``folder``, reusing what is there.

    Args:
        folder: Made if missing. Gets ``terminology``, ``base-linker``, ``encoder``, ``linker``, ``results``.
        display: Where to tell what is going on.
        ontology: Of the package cellxgene-ontology-guide. `MENTIONS` are diseases, to be linked to MONDO.
        n_hidden: How many synonyms to hide.
        minutes: Training time; unset: the recipe's.
        seed: Of what is hidden, and of training.

    Raises:
        UnavailableError: a package that it needs is not installed.
        ArtifactError: something else lies where a step wants to write.
    """
    started = time.perf_counter()
    folder = Path(folder)
    recipe = Recipe.load("quickstart", {"seed": str(seed), **({} if minutes is None else {"minutes": str(minutes)})})

    display.remark(f"1/5  terminology: {ontology}, from the package cellxgene-ontology-guide")
    terminology = _terminology(folder / "terminology", ontology, display)
    held_out = hold_out_synonyms(terminology, n_names=n_hidden, seed=seed)
    _write_hidden(folder / "hidden-synonyms.csv", held_out)
    display.remark(
        f"     {quantity(terminology.n_concepts, 'concept')}, {quantity(terminology.n_names, 'name')}; "
        f"{quantity(len(held_out.texts), 'synonym')} hidden, listed in {folder / 'hidden-synonyms.csv'}"
    )

    display.remark(f"2/5  before training: {recipe.config.base} as it is")
    base = _open_fast(recipe.config.base)
    base_linker = _linker(folder / "base-linker", terminology, base, display)
    before = _score(base_linker.without(held_out.name_rows), held_out, seed)
    exact_matcher = ExactMatcher.from_terminology(terminology, normalisation="loose", hidden_names=held_out.name_rows)
    exact = _score(exact_matcher, held_out, seed)
    display.remark(f"     acc@1 {before.at_1}, acc@5 {before.at_5}")

    display.remark(f"3/5  training: {recipe.description}")
    _train(folder / "encoder", recipe, terminology, held_out, display)
    encoder = _open_fast(folder / "encoder")

    display.remark("4/5  linker, and the same measurement again")
    linker = _linker(folder / "linker", terminology, encoder, display)
    after = _score(linker.without(held_out.name_rows), held_out, seed)
    display.remark(f"     acc@1 {after.at_1}, acc@5 {after.at_5}")

    display.remark("5/5  a dozen mentions, misspelt words corrected")
    links = linker.preparing(Preparation(spelling=True)).link([mention for mention, _ in MENTIONS], top_k=1)
    result = QuickstartResult(
        folder=folder,
        n_hidden=len(held_out.texts),
        exact=exact,
        before=before,
        after=after,
        links=[(mention, sort, found) for (mention, sort), found in zip(MENTIONS, links, strict=True)],
        seconds=time.perf_counter() - started,
    )
    _write_results(folder / "results", result, seed, linker)
    return result


def _score(linker: MentionLinker, held_out: HeldOut, seed: int) -> HiddenSynonymScores:
    return score_hidden_synonyms(linker, held_out.texts, held_out.concept_ids, seed=seed)


def _open_fast(source: str | Path) -> Encoder:
    """In bf16 where the processor has it: some 99 of 100 nearest names stay the same, in less than half the time."""
    from onoma.encoders.precision import has_native_bf16

    return open_encoder(source, precision="bf16" if has_native_bf16() else "fp32")


def _terminology(path: Path, ontology: str, display: Display) -> Terminology:
    with contextlib.suppress(InputError, ArtifactError):
        terminology = Terminology.open(path)
        if (terminology.manifest.config.get("format"), terminology.manifest.config.get("source")) == (
            "cellxgene",
            ontology,
        ):
            display.remark(f"     reusing {path}")
            return terminology
    with display.progress_bar(f"reading {ontology}", "rows") as update:
        import_terminology("cellxgene", ontology, path, overwrite=True, progress=update)
    return Terminology.open(path)


def _linker(path: Path, terminology: Terminology, encoder: Encoder, display: Display) -> Linker:
    parents = {terminology.manifest.as_parent(), Parent(kind=ENCODER_KIND, fingerprint=encoder.fingerprint)}
    with contextlib.suppress(InputError, ArtifactError, MismatchError):
        if set(read_manifest(path).parents) == parents:
            linker = Linker.open(path)
            display.remark(f"     reusing {path}")
            return linker
    with display.progress_bar("encoding", "names") as update:
        return build_linker(terminology, encoder, path, overwrite=True, progress=update)


def _train(path: Path, recipe: Recipe, terminology: Terminology, held_out: HeldOut, display: Display) -> None:
    with contextlib.suppress(InputError, ArtifactError):
        made = open_artifact(path, "encoder").config
        if (
            made.get("training") == recipe.config.to_publish()
            and made.get("terminology") == [terminology.manifest.fingerprint]
            and made.get("pairs", {}).get("hidden_names") == held_out.fingerprint
        ):
            display.remark(f"     reusing {path}")
            return
    with display.training_bar() as watching:
        watching["on_event"] = lambda text: display.remark(f"     {text}")
        train_on_terminology(
            recipe,
            terminology,
            path,
            hidden_names=held_out.name_rows,
            overwrite=True,
            **watching,
        )


def _write_hidden(path: Path, held_out: HeldOut) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["concept_id", "hidden_synonym"])
        writer.writerows(zip(held_out.concept_ids, held_out.texts, strict=True))


def _write_results(path: Path, result: QuickstartResult, seed: int, linker: Linker) -> None:
    content = {
        "n_queries": result.n_hidden,
        "exact_match": asdict(result.exact),
        "before": asdict(result.before),
        "after": asdict(result.after),
        "seconds": round(result.seconds, 1),
        "links": [
            {"mention": mention, "sort": sort, "links": [asdict(link) for link in links]}
            for mention, sort, links in result.links
        ],
    }
    with write_artifact(path, RESULTS_KIND, parents=[linker.manifest.as_parent()], seed=seed, overwrite=True) as aside:
        (aside / "results.json").write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
