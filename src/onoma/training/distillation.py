"""Distillation: a small encoder learns from a linker's vectors which names are near one another.

The teacher is the encoder that a linker was built with; the linker has all that is needed of it, the names' vectors and
their search, and so the teacher itself is not run again. Names of the linker come in batches, each with some of those
that the teacher finds nearest, and the student is to find each other as near, as a softmax over the batch sees it
(`onoma.objectives.distillation_loss`). No synonym need be known, and the two may have other tokenisers and widths.
`onoma.training.loop` is the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from onoma.artifacts import carried_origins, read_manifest
from onoma.encoders import locate_encoder, locate_tokenizer
from onoma.encoders.model_card import TRAIN_NAME
from onoma.encoders.saving import save_encoder
from onoma.errors import checked_path
from onoma.linking import Linker
from onoma.pairs import MentionFormat
from onoma.quantities import quantity
from onoma.training.alignment_step import make_optimiser
from onoma.training.course import Course
from onoma.training.development import DevelopmentSet, Dictionary, queries_over, read_dictionary, tell_of_learnt
from onoma.training.distillation_config import DistillationConfig, DistillationRecipe
from onoma.training.distillation_data import NeighbourhoodBatches, taught_names
from onoma.training.distillation_step import DistillationStep, DistillationStepReport
from onoma.training.distributed import by_main
from onoma.training.evaluating import check_development_files
from onoma.training.loop import take_course
from onoma.training.measuring import Measure
from onoma.training.report import TrainingReport
from onoma.training.run_folder import ensure_encoder_writable
from onoma.training.tuning import check_base, load_base
from onoma.training.vectors import name_vectors
from onoma.training.watching import Watching, check_watching
from onoma.types import Tell


def distil_encoder(
    recipe: DistillationRecipe | DistillationConfig | str,
    linker: Linker | str | Path,
    out: str | Path,
    *,
    development: Sequence[str | Path] = (),
    development_dictionary: Dictionary | None = None,
    mention_format: MentionFormat | None = None,
    overwrite: bool = False,
    **watching: Unpack[Watching[DistillationStepReport]],
) -> TrainingReport:
    """Train an encoder to find the names of a linker as near one another as the linker's own encoder does.

    Args:
        recipe: What to do: the name or file of a recipe, what `DistillationRecipe.load` gives, or settings.
        linker: Built with the teacher, or its folder; the names that can be found are taught. It finds the neighbours
            of each batch: with very many names, an index of sign bits is faster than the exact one.
        out: The encoder folder to write. The unfinished run is kept in ``OUT.run`` and resumes from its last
            checkpoint.
        development: Files of mentions to measure on during training, see `onoma.training.development`.
        development_dictionary: Where these are looked for; unset: among the linker's names.
        mention_format: How these files are written: other columns of those that are tables, or another encoding.
        overwrite: Replace an encoder that is there.
        watching: Who follows the run, see `onoma.training.watching.Watching`.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        ArtifactError: the linker is damaged, or not a linker.
        ConfigError: a setting needs development data and there are none, does not fit the base, or there is no such
            tracker.
        InputError: the linker has no vectors, or too few names, or a file cannot be used.
        MismatchError: ``OUT.run`` belongs to other settings, another linker, or another base.
        TrainingError: the loss is not a number, or memory does not suffice.
        UnavailableError: the base encoder, or the package of a tracker, is not available.

    Example:
        >>> distil_encoder("distil", "linker-of-a-large-encoder", "small")  # doctest: +SKIP
    """
    recipe, out = DistillationRecipe.of(recipe), checked_path(out)
    config = recipe.config
    ensure_encoder_writable(out, "encoder", config, overwrite=overwrite)
    check_watching(watching, out)
    check_development_files(config, development, development_dictionary)
    check_base(config)
    opened = linker if isinstance(linker, Linker) else Linker.open(linker)
    tell = by_main(watching.get("on_event"))
    sets: list[DevelopmentSet] = []
    if development:
        if development_dictionary is None:
            names, source = _names_of(opened), opened.path
        else:
            names, source = read_dictionary(development_dictionary)
        sets = [
            queries_over(file, names, source=source, mention_format=mention_format, tell=tell) for file in development
        ]
    tables = {one.name: one.queries for one in sets}
    encoders = [locate_encoder(config.base), opened.encoder.folder] if sets else []
    tell_of_learnt(tables, tell, encoders=encoders)
    return take_course(
        lambda run, tell: _Distillation(config, opened, sets, tell),
        recipe,
        out,
        watching,
    )


def _names_of(linker: Linker) -> pl.DataFrame:
    """The names of a linker as a dictionary of development queries."""
    dictionary = linker.dictionary
    names = pl.DataFrame(
        {
            "text": list(dictionary.entry_names),
            "concept_id": [dictionary.concept_ids[int(row)] for row in dictionary.entry_concepts],
        },
        schema={"text": pl.String, "concept_id": pl.String},
    )
    allowed = linker.allowed_entries
    return names if allowed is None else names.filter(pl.Series(allowed))


class _Distillation(Course[DistillationConfig, DistillationStepReport]):
    """A small encoder, and the names that it learns the neighbourhoods of."""

    batch_setting = "batch_names"
    data_name = "linker"

    def __init__(
        self, config: DistillationConfig, linker: Linker, development: Sequence[DevelopmentSet], tell: Tell
    ) -> None:
        super().__init__(config)
        self._linker = linker
        encoder = load_base(config)
        self.encoder = self.model = encoder.to(self.device)
        self.optimiser = make_optimiser(config, encoder)
        tokenizer = locate_tokenizer(config.base)
        texts: dict[str, Any] = {"normalisation": config.normalisation, "max_tokens": config.max_tokens}
        self._names = taught_names(linker, tokenizer, **texts)
        batches = NeighbourhoodBatches(self._names, config)
        self.batches = batches
        self.step = DistillationStep(config, self._names, encoder, self.optimiser, batches, self.precision, self.device)
        self.measure_on(
            [Measure(data, tokenizer, tell=tell, **texts) for data in development],
            partial(name_vectors, encoder, precision=self.precision),
            base_share=config.base_share,
        )

    @property
    def names_in_step(self) -> int:
        drawn = self.config.batch_names // (1 + self.config.neighbours)
        return min(drawn * (1 + self.config.neighbours), len(self._names.rows))

    @property
    def fingerprint(self) -> str:
        return self._names.fingerprint

    def batch_in_words(self) -> str:
        return f"up to {self.names_in_step * self.config.accumulation} names, neighbours among them"

    def data_in_words(self) -> str:
        return f"{quantity(len(self._names.rows), 'name')} as {self._linker.encoder_name} sees them"

    def data_in_numbers(self) -> dict[str, Any]:
        return {"names": len(self._names.rows), "teacher": self._linker.encoder_name}

    def save(self, out: Path, report: TrainingReport) -> None:
        manifest, teacher = self._linker.manifest, self._linker.encoder.folder
        save_encoder(
            self.encoder,
            out,
            config=self.about_saved(
                report,
                mentions=teacher.trained_mentions,
                teachers=[read_manifest(teacher.path).config] if teacher.is_own else [],
                teacher=self._linker.encoder_name,
                terminology=[parent.fingerprint for parent in manifest.parents if parent.kind == "terminology"],
                **carried_origins(manifest.config),
            ),
            parents=(manifest.as_parent(),),
            seed=self.config.seed,
            files={TRAIN_NAME: report.to_json()},
            overwrite=True,  # `distil_encoder` has made sure that it may be
        )
