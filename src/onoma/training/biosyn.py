"""BioSyn: an encoder learns to rank the names of a dictionary for annotated mentions (Sung et al. 2020).

A query is compared with some candidates, half of them found by characters (TF-IDF), the others by the encoder as it was
when the pass over the queries began. The score is the sum of a dense and a sparse one, whose weight is learned with the
encoder; the loss makes it probable that a right candidate is drawn by a softmax over the candidates.
`onoma.training.loop` is the loop.

The dictionary is never compared with all queries as a matrix: sparse scores are those of candidates, dense ones come
tile by tile. Differs from the released code, besides: ids are compared as a whole (there ``D00312`` is right for
``D003120``); names with one text are one candidate with the ids of all; names that a batch needs several times are
encoded once for it, and so have the same dropout everywhere in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch

from onoma.artifacts import Manifest, carried_origins
from onoma.encoders import locate_encoder, locate_tokenizer
from onoma.encoders.model_card import TRAIN_NAME
from onoma.encoders.packed import pack
from onoma.encoders.saving import save_encoder
from onoma.errors import checked_path
from onoma.pairs import MentionFormat
from onoma.pairs.mentions import mentions_fingerprint
from onoma.quantities import quantity
from onoma.terminology import Terminology
from onoma.training.biosyn_candidates import CandidateBatches
from onoma.training.biosyn_config import BiosynConfig, BiosynRecipe
from onoma.training.biosyn_data import ranking_data
from onoma.training.biosyn_measure import BiosynMeasure
from onoma.training.biosyn_step import BiosynModel, BiosynStep, BiosynStepReport, make_optimiser
from onoma.training.course import Course
from onoma.training.development import DevelopmentSet, Dictionary, queries_over, read_dictionary, tell_of_learnt
from onoma.training.evaluating import check_development_files
from onoma.training.loop import take_course
from onoma.training.report import TrainingReport
from onoma.training.run_folder import ensure_encoder_writable
from onoma.training.tuning import check_base, load_base
from onoma.training.vectors import name_vectors
from onoma.training.watching import Watching, check_watching
from onoma.types import Tell

_MEASURED_TEXTS = 1024
"""Texts whose vectors' lengths say what a learned weight is worth beside a cosine."""


def train_biosyn(
    recipe: BiosynRecipe | BiosynConfig | str,
    mentions: str | Path,
    dictionary: Dictionary,
    out: str | Path,
    *,
    development: Sequence[str | Path] = (),
    development_dictionary: Dictionary | None = None,
    mention_format: MentionFormat | None = None,
    overwrite: bool = False,
    **watching: Unpack[Watching[BiosynStepReport]],
) -> TrainingReport:
    """Train an encoder, and with it the weight of the sparse score, on annotated mentions.

    Args:
        recipe: What to do: the name or file of a recipe, what `BiosynRecipe.load` gives, or settings.
        mentions: Annotated mentions: lines ``id||mention`` or a table with the columns ``mention`` and ``concept_id``;
            several right ids are separated by ``|``. Composite mentions are left out, as in the released code.
        dictionary: Where their names are looked for. A terminology gives the names of its active concepts that are not
            suppressed.
        out: The encoder folder to write. Until it is finished, checkpoints and log are kept in ``OUT.run``; the same
            call resumes from there.
        development: Files of mentions to measure on during training.
        development_dictionary: Where these are looked for; unset: in ``dictionary``.
        mention_format: How the files of mentions are written: other columns of those that are tables, or another
            encoding.
        overwrite: Replace an encoder that is there.
        watching: Who follows the run, see `onoma.training.watching.Watching`.

    Returns:
        The report; its log has the sparse weight after each step. The encoder's folder holds the equivalent weight
        beside a cosine (`onoma.encoders.folders.EncoderFolder.sparse_weight`).

    Raises:
        ArtifactExistsError: ``out`` is taken.
        ConfigError: a setting needs development data and there are none, or there is no such tracker.
        InputError: a file cannot be used, or the dictionary has the ids of none of the mentions.
        MismatchError: ``OUT.run`` holds an unfinished run with other settings or data.
        TrainingError: the loss is not a number, or memory does not suffice.
        UnavailableError: the base encoder, or the package of a tracker, is not available.
    """
    recipe, out = BiosynRecipe.of(recipe), checked_path(out)
    config = recipe.config
    ensure_encoder_writable(out, "encoder", config, overwrite=overwrite)
    check_watching(watching, out)
    check_development_files(config, development, development_dictionary)
    check_base(config)

    def make(run: Path, tell: Tell) -> _Biosyn:
        names, source = read_dictionary(dictionary, languages=config.languages)
        read = partial(queries_over, mention_format=mention_format, tell=tell)
        data = read(mentions, names, source=source, unknown="nothing is learned of them")
        if development_dictionary is not None:
            names, source = read_dictionary(development_dictionary, languages=config.languages)
        sets = [read(file, names, source=source) for file in development]
        tables = {one.name: one.queries for one in sets}
        tell_of_learnt(tables, tell, encoders=[locate_encoder(config.base)], mentions=data.queries)
        return _Biosyn(config, data, run, sets, _terminology(dictionary), tell)

    return take_course(make, recipe, out, watching)


class _Biosyn(Course[BiosynConfig, BiosynStepReport]):
    """An encoder, the sparse weight, and the queries that both learn from."""

    batch_setting = "batch_queries"
    data_name = "queries and dictionary"

    def __init__(
        self,
        config: BiosynConfig,
        data: DevelopmentSet,
        run: Path,
        development: Sequence[DevelopmentSet],
        terminologies: Sequence[Manifest],
        tell: Tell,
    ) -> None:
        super().__init__(config)
        self._terminologies = terminologies
        self._mentions = mentions_fingerprint(data.queries["mention"])
        self.encoder = load_base(config)
        model = BiosynModel(self.encoder, config.similarity, sparse_weight=config.sparse_weight).to(self.device)
        self.model = self._ranking = model
        self.optimiser = make_optimiser(config, model)
        tokenizer = locate_tokenizer(config.base)
        texts: dict[str, Any] = {"normalisation": config.normalisation, "max_tokens": config.max_tokens}
        self._data = ranking_data(data, tokenizer, tell=tell, **texts)
        batches = CandidateBatches(self._data, config, run, tell=tell)
        self.batches = batches
        self.step = BiosynStep(config, self._data, model, self.optimiser, batches, self.precision, self.device)
        self.measure_on(
            [
                BiosynMeasure(one, tokenizer, sparse_weight=model.sparse_weight, tell=tell, **texts)
                for one in development
            ],
            partial(name_vectors, self.encoder, precision=self.precision, unit=model.compares_directions),
            interval=math.ceil(batches.steps_per_epoch / config.accumulation),
        )

    @property
    def names_in_step(self) -> int:
        return self.config.batch_queries * (1 + self.config.candidates)

    @property
    def fingerprint(self) -> str:
        return self._data.fingerprint

    def batch_in_words(self) -> str:
        config = self.config
        at_once = min(config.batch_queries, len(self._data.queries))
        candidates = min(config.candidates, len(self._data.names))
        queries = quantity(at_once * config.accumulation, "query", "queries")
        return f"{queries} with {quantity(candidates, 'candidate')} each"

    def data_in_words(self) -> str:
        return f"{quantity(len(self._data.names), 'name')}, {quantity(len(self._data.queries), 'query', 'queries')}"

    def data_in_numbers(self) -> dict[str, Any]:
        data = self._data
        return {"queries": len(data.queries), "names": len(data.names), "concepts": data.n_concepts}

    def save(self, out: Path, report: TrainingReport) -> None:
        learned = float(self._ranking.sparse_weight.detach())
        beside_cosine = learned / self._mean_dot()
        save_encoder(
            self.encoder,
            out,
            config=self.about_saved(
                report,
                mentions=[self._mentions],
                sparse_weight=beside_cosine,
                learnt_sparse_weight=learned,
                queries_and_dictionary=self.fingerprint,
                terminology=[manifest.fingerprint for manifest in self._terminologies],
                **carried_origins(*(manifest.config for manifest in self._terminologies)),
            ),
            parents=[manifest.as_parent() for manifest in self._terminologies],
            seed=self.config.seed,
            files={TRAIN_NAME: report.to_json()},
            sparse_weight=beside_cosine,
            overwrite=True,  # `train_biosyn` has made sure that it may be
        )

    def _mean_dot(self) -> float:
        """About what the dot product of a query and a name is for each unit of their cosine."""
        if self._ranking.compares_directions:
            return 1.0
        data, encoder = self._data, self.encoder.eval()
        lengths = []
        for places in (data.query_places, data.name_places):
            sample = data.rows[np.unique(places)]
            sample = sample[:: -(-len(sample) // _MEASURED_TEXTS)]
            with torch.no_grad():  # by the main process alone, which `name_vectors` cannot do
                vectors = encoder(pack(data.store.offsets, data.store.ids, rows=sample).to(self.device))
            lengths.append(float(vectors.norm(dim=1).mean()))
        return lengths[0] * lengths[1]


def _terminology(dictionary: Dictionary) -> list[Manifest]:
    """Its manifest; none of a file of names."""
    if isinstance(dictionary, Terminology):
        return [dictionary.manifest]
    return [] if Path(dictionary).is_file() else [Terminology.open(dictionary).manifest]
