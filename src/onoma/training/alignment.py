"""Self-alignment of names (SapBERT): synonyms are drawn together, other names of the batch pushed apart.

One step: the names of ``batch_pairs`` synonym pairs are packed without padding, encoded, compared with each
other; hard pairs are mined as masks; the loss pulls and pushes; AdamW moves the weights. `onoma.training.loop` is
the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from onoma.artifacts import carried_origins, without_origins
from onoma.encoders import locate_encoder, locate_tokenizer
from onoma.encoders.model_card import TRAIN_NAME
from onoma.encoders.saving import save_encoder
from onoma.errors import InputError, MismatchError, checked_path
from onoma.pairs import PairSet
from onoma.quantities import quantity
from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.alignment_step import Step, StepReport, make_optimiser
from onoma.training.batches import make_batches
from onoma.training.course import Course
from onoma.training.development import DevelopmentSet, tell_of_learnt
from onoma.training.evaluating import check_development
from onoma.training.loop import take_course
from onoma.training.measuring import Measure
from onoma.training.objective import check_widths
from onoma.training.report import TrainingReport
from onoma.training.run_folder import ensure_encoder_writable
from onoma.training.tuning import load_base
from onoma.training.vectors import name_vectors
from onoma.training.watching import Watching, check_watching
from onoma.types import Tell


def train_encoder(
    recipe: Recipe | TrainingConfig | str,
    pairs: PairSet | str | Path,
    out: str | Path,
    *,
    development: Sequence[DevelopmentSet] = (),
    overwrite: bool = False,
    **watching: Unpack[Watching[StepReport]],
) -> TrainingReport:
    """Train an encoder on synonym pairs and save it as a folder.

    Args:
        recipe: What to do: the name or file of a recipe, what `Recipe.load` gives, or settings.
        pairs: Pairs tokenised with the base encoder's tokeniser, or their folder.
        out: The encoder folder to write: sentence-transformers layout, ONNX model, manifest, ``train.json``. The
            unfinished run is kept in ``OUT.run`` and resumes from its last checkpoint.
        development: What to measure the encoder on during training; the mean of their acc@1 decides what is best.
        overwrite: Replace an encoder that is there.
        watching: Who follows the run, see `onoma.training.watching.Watching`.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        ConfigError: a setting needs development data and there are none, does not fit the encoder, or there is no such
            tracker.
        MismatchError: ``OUT.run`` belongs to other settings or data, or the pairs to another tokeniser.
        TrainingError: the loss is not a number, or memory does not suffice.
        UnavailableError: the base encoder, or the package of a tracker, is not available.
    """
    recipe = Recipe.of(recipe)
    config = recipe.config
    opened = PairSet.open(pairs) if isinstance(pairs, str | Path) else pairs
    out = checked_path(out)
    ensure_encoder_writable(out, "encoder", config, overwrite=overwrite)
    check_watching(watching, out)
    check_development(config, [data.name for data in development], fix="give development sets (development)")
    return take_course(
        lambda run, tell: _SelfAlignment(config, opened, run, development, tell),
        recipe,
        out,
        watching,
    )


def check_concepts(pairs: PairSet, made_of: Path) -> None:
    """Refuse pairs of one concept alone.

    Raises:
        InputError: they are; ``made_of`` is what it names.
    """
    concepts = pairs.labels[pairs.pairs[:, 0]]
    if (concepts == concepts[0]).all():
        raise InputError(
            "all pairs are of one concept, so that there is nothing to tell apart",
            path=made_of,
            expected="two names each of two concepts or more",
            fix="train on more concepts",
        )


class _SelfAlignment(Course[TrainingConfig, StepReport]):
    """An encoder and the synonym pairs that it learns from."""

    batch_setting = "batch_pairs"
    data_name = "pairs"

    def __init__(
        self, config: TrainingConfig, pairs: PairSet, run: Path, development: Sequence[DevelopmentSet], tell: Tell
    ) -> None:
        super().__init__(config)
        check_concepts(pairs, pairs.path)
        self._pairs = pairs
        tables = {data.name: data.queries for data in development}
        tell_of_learnt(tables, tell, encoders=[locate_encoder(config.base)], pairs=pairs.manifest.config)
        encoder = load_base(config)
        if encoder.tokenizer_fingerprint != pairs.tokenizer_fingerprint:
            raise MismatchError(
                f"{pairs.path} was tokenised with another tokeniser than that of {config.base}; build the pairs again."
            )
        check_widths(config.matryoshka, encoder.width)  # now, not after minutes of evaluation
        self.encoder = self.model = encoder.to(self.device)
        self.optimiser = make_optimiser(config, encoder)
        self.batches = make_batches(config, pairs, run, tell=tell)
        self.step = Step(config, pairs, encoder, self.optimiser, self.batches, self.precision, self.device)
        tokenizer = locate_tokenizer(config.base)
        self.measure_on(
            [
                Measure(data, tokenizer, normalisation=config.normalisation, max_tokens=config.max_tokens, tell=tell)
                for data in development
            ],
            partial(name_vectors, encoder, precision=self.precision),
            base_share=config.base_share,
        )

    @property
    def names_in_step(self) -> int:
        return 2 * min(self.config.batch_pairs, len(self._pairs.pairs))

    @property
    def fingerprint(self) -> str:
        return self._pairs.manifest.fingerprint

    def batch_in_words(self) -> str:
        at_once = min(self.config.batch_pairs, len(self._pairs.pairs))
        return quantity(at_once * self.config.accumulation, "pair")

    def data_in_words(self) -> str:
        return quantity(len(self._pairs.pairs), "pair")

    def data_in_numbers(self) -> dict[str, Any]:
        pairs = self._pairs
        return {"pairs": len(pairs.pairs), "names": len(pairs.store), "concepts": len(np.unique(pairs.labels))}

    def save(self, out: Path, report: TrainingReport) -> None:
        manifest = self._pairs.manifest
        save_encoder(
            self.encoder,
            out,
            config=self.about_saved(
                report,
                pairs=without_origins(manifest.config),
                terminology=[parent.fingerprint for parent in manifest.parents if parent.kind == "terminology"],
                **carried_origins(manifest.config),
            ),
            parents=(manifest.as_parent(),),
            seed=self.config.seed,
            files={TRAIN_NAME: report.to_json()},
            overwrite=True,  # `train_encoder` has made sure that it may be
        )
