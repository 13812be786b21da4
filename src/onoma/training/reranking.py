"""Train a reranker: a cross-encoder that learns from annotated mentions which of a linker's candidates is meant.

The candidates of a mention are scored together. The loss is that of BioSyn, over concepts instead of names: minus the
logarithm of the probability of the right ones among all, by a softmax over the scores. The negatives are wrong
candidates that the linker found, so all of them are hard. `onoma.training.loop` is the loop.

On development mentions the final ranking is measured, that of linker and cross-encoder together with the best weight
(`onoma.linking.rerank_scores`). It can never be worse there than the linker alone, which is the weight 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import polars as pl
import torch
from tokenizers import Tokenizer

from onoma.artifacts import Parent, carried_origins
from onoma.encoders.cross_encoder import RERANKER_KIND, CrossEncoderAbout
from onoma.encoders.cross_encoder_model import PackedCrossEncoder, new_cross_encoder
from onoma.encoders.cross_encoder_saving import check_savable, save_cross_encoder
from onoma.encoders.cross_encoder_tokens import PairTokeniser, add_marks
from onoma.encoders.encoding import length_batches
from onoma.encoders.folders import ENCODER_KIND
from onoma.encoders.packing import pack
from onoma.encoders.sources import locate_encoder
from onoma.encoders.torch_encoder import BATCH_TOKENS
from onoma.errors import ConfigError, InputError, checked_path
from onoma.linking import Linker, MentionLinker
from onoma.linking.rerank_scores import WEIGHTS
from onoma.pairs import MentionFormat, NameStore, read_mentions
from onoma.pairs.mention_format import LABELLED
from onoma.pairs.mentions import COMPOSITE, check_mentions, mentions_fingerprint
from onoma.quantities import quantity
from onoma.terminology import normalise
from onoma.training.course import Course
from onoma.training.development import tell_of_learnt
from onoma.training.distributed import by_main
from onoma.training.evaluating import check_development
from onoma.training.loop import take_course, torch_as_it_was
from onoma.training.measuring import EncodeRows, Scores
from onoma.training.precision import autocast, diverged
from onoma.training.report import TrainingReport
from onoma.training.reranking_config import RerankingConfig, RerankingRecipe
from onoma.training.reranking_data import (
    Candidates,
    check_concepts,
    distinct_mentions,
    find_candidates,
    other_forms_of,
    tokenise_candidates,
)
from onoma.training.reranking_measure import RerankingMeasure, judged_together, scores_together
from onoma.training.reranking_step import (
    TRAINED_NIL_SCORE,
    MentionBatches,
    RerankingStep,
    RerankingStepReport,
    make_optimiser,
)
from onoma.training.run_folder import ensure_encoder_writable
from onoma.training.tuning import check_base, tune
from onoma.training.watching import Watching, check_watching
from onoma.types import BoolArray, CountProgress, RowArray, Tell, no_count

Mentions: TypeAlias = str | Path | pl.DataFrame
"""A file that `onoma.pairs.read_mentions` reads, or a table with the columns ``mention`` and ``concept_id`` and perhaps
``context``."""

WEIGHT_WITHOUT_DEVELOPMENT = 0.5
"""Share of the reranker in the final score where there is nothing to choose it by."""


def train_reranker(
    recipe: RerankingRecipe | RerankingConfig | str,
    linker: MentionLinker,
    mentions: Mentions,
    out: str | Path,
    *,
    development: Sequence[Mentions] | Mapping[str, Mentions] = (),
    context: str | None = None,
    mention_format: MentionFormat | None = None,
    overwrite: bool = False,
    **watching: Unpack[Watching[RerankingStepReport]],
) -> TrainingReport:
    """Train a cross-encoder on the candidates of a linker and save it as a folder.

    Args:
        recipe: What to do: the name or file of a recipe, what `RerankingRecipe.load` gives, or settings.
        linker: An opened one. It finds the candidates, in training and development, by look-up and searches alone: its
            prior, reranker and threshold are not used. A mention with no right candidate, or with only right ones, is
            not learned from, unless NIL is to be learned (setting ``nil``).
        mentions: To learn from; equal ones count once.
        out: The folder to write, see `onoma.encoders.cross_encoder`. The unfinished run is kept in ``OUT.run`` and
            resumes from its last checkpoint.
        development: What to measure on; the mean of their acc@1 decides which weights are best and how much the
            reranker counts. Equal mentions count as often as they occur. Files go by their own names; several tables
            need names, ``{"near": table, "far": other}``.
        context: The files' column with the text around each mention. Unset: mentions without contexts.
        mention_format: How the files of mentions are written: other columns of those that are tables, or another
            encoding.
        overwrite: Replace a reranker that is there.
        watching: Who follows the run, see `onoma.training.watching.Watching`.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        ConfigError: a setting needs development mentions and there are none, does not fit the base or the linker, or
            there is no such tracker.
        InputError: mentions cannot be read, or there is nothing to learn from them.
        MismatchError: ``OUT.run`` belongs to other settings, mentions or candidates.
        TrainingError: the loss is not a number, or memory does not suffice.
        UnavailableError: the base encoder, or the package of a tracker, is not available.
    """
    recipe, out = RerankingRecipe.of(recipe), checked_path(out)
    config = recipe.config
    ensure_encoder_writable(out, RERANKER_KIND, config, overwrite=overwrite)
    check_watching(watching, out)
    named = _named(development)
    fix = "give a file of mentions (development, --development FILE), or train without (--set keep=last)"
    check_development(config, [name for name, _ in named], fix=fix)
    base = locate_encoder(config.base, pooling=config.pooling, max_tokens=config.max_tokens)
    with torch_as_it_was():
        check_savable(_new_model(config, contexts=False)[0])
    check_base(config)
    tell = by_main(watching.get("on_event"))
    if isinstance(linker, Linker):
        # Not what an earlier reranker, a threshold or counts of, it may be, these very mentions make of candidates.
        linker = linker.with_prior(None)
        linker = linker.tuned(linker.settings.of_first_stages())
    find = partial(
        find_candidates,
        linker,
        depth=config.depth,
        text=config.candidate_text,
        progress=by_main(watching.get("progress")),
    )
    table = distinct_mentions(_read(mentions, context, mention_format, tell))
    # Lengths that leave no room are refused before minutes of linking.
    marks = "context" in table.columns
    tokenizer = base.load_tokenizer()
    _pair_tokeniser(config, add_marks(tokenizer) if marks else tokenizer, marks=marks)
    tables = {name: _read(data, context, mention_format, tell) for name, data in named}
    for name, data in tables.items():
        if data.is_empty():
            raise InputError("there are no mentions to measure on", field="development", found=name)
        if "context" in data.columns and "context" not in table.columns:
            raise InputError(
                "these development mentions have contexts, and the mentions to learn from have none",
                field="development",
                found=name,
                fix="give contexts to both, or to neither",
            )
    tell_of_learnt(tables, tell, encoders=[base], mentions=table)
    means_nil = check_concepts(linker, tables, nil=config.nil, tell=tell)
    for name, data in [("mentions to learn from", table), *tables.items()]:
        if said := other_forms_of(linker, data):
            tell(f"{name}: {said}{', and are learned as NIL' if config.nil and data is table else ''}")
    found = find(table, own_names=config.own_names)
    telling = found.telling(nil=config.nil)
    _check_telling(config, found, telling, len(table))
    tell(
        f"{quantity(len(table), 'distinct mention')}, {quantity(len(telling), 'time')} with candidates to learn from; "
        f"{quantity(found.n_without_right(), 'time')} none of the first {config.depth} was right"
    )
    fingerprint = linker.fingerprint if isinstance(linker, Linker) else None
    origins = carried_origins(linker.manifest.config) if isinstance(linker, Linker) else {}
    sets = {name: (find(data), means_nil[name]) for name, data in tables.items()}
    return take_course(
        lambda run, tell: _Reranking(
            config, telling, sets, out.name, fingerprint, origins, mentions_fingerprint(table["mention"])
        ),
        recipe,
        out,
        watching,
    )


def _new_model(config: RerankingConfig, *, contexts: bool) -> tuple[PackedCrossEncoder, Tokenizer]:
    """The cross-encoder to begin with, and its tokeniser."""
    return new_cross_encoder(
        config.base,
        pooling=config.pooling,
        max_tokens=config.max_tokens,
        dropout=config.dropout,
        contexts=contexts,
    )


class _Reranking(Course[RerankingConfig, RerankingStepReport]):
    """A cross-encoder and the candidates that it learns from."""

    batch_setting = "batch_mentions"
    data_name = "candidates"

    def __init__(
        self,
        config: RerankingConfig,
        candidates: Candidates,
        development: Mapping[str, tuple[Candidates, BoolArray | None]],
        name: str,
        linker_fingerprint: str | None,
        origins: Mapping[str, Any],
        mentions: str,
    ) -> None:
        super().__init__(config)
        self._name, self._linker, self._mentions = name, linker_fingerprint, mentions
        self._origins = origins
        self._marks = candidates.contexts is not None
        model, self._tokenizer = _new_model(config, contexts=self._marks)
        tune(model.encoder, config.tuning)
        tokeniser = _pair_tokeniser(config, self._tokenizer, marks=self._marks)
        self._candidates = tokenise_candidates(candidates, tokeniser)
        self.model = self._cross_encoder = model.to(self.device)
        self.encoder = model.encoder
        self.optimiser = make_optimiser(config, model)
        batches = MentionBatches(self._candidates, batch_mentions=config.batch_mentions, seed=config.seed)
        self.batches = batches
        self.step = RerankingStep(config, model, self._candidates, self.optimiser, batches, self.precision, self.device)
        weights = WEIGHTS if config.weight is None else (config.weight,)
        self._measures = [
            RerankingMeasure(set_name, tokenise_candidates(found, tokeniser), weights=weights, means_nil=means_nil)
            for set_name, (found, means_nil) in development.items()
        ]
        self.measure_on(
            self._measures,
            partial(pair_scores, model, precision=self.precision),
            together=self._scores_together,
        )

    def _scores_together(self, score: EncodeRows) -> dict[str, Scores]:
        """Before the first step the head has random numbers, which shall not be lucky: it counts as none."""
        if not self.optimiser.state:
            return {measure.name: measure.alone() for measure in self._measures}
        return scores_together(self._measures, score)

    @property
    def names_in_step(self) -> int:
        return self.config.batch_mentions * self.config.depth

    @property
    def fingerprint(self) -> str:
        return self._candidates.fingerprint

    def batch_in_words(self) -> str:
        at_once = min(self.config.batch_mentions, len(self._candidates))
        return quantity(at_once * self.config.accumulation, "mention")

    def data_in_words(self) -> str:
        return f"{quantity(len(self._candidates), 'mention')} with {quantity(len(self._candidates.rows), 'candidate')}"

    def data_in_numbers(self) -> dict[str, Any]:
        return {
            "mentions": len(self._candidates),
            "candidates": len(self._candidates.rows),
            "linker": self._linker,
        }

    def save(self, out: Path, report: TrainingReport) -> None:
        config = self.config
        weight = WEIGHT_WITHOUT_DEVELOPMENT if config.weight is None else config.weight
        nil_score = TRAINED_NIL_SCORE if config.nil else None
        if self._measures and (config.weight is None or config.nil):
            score = partial(pair_scores, self._cross_encoder, precision=torch.float32)  # as in use
            best, _ = judged_together(self._measures, score)
            weight, nil_score = best.weight, best.nil_score
        if report.saved_step == 0:  # nothing was learned
            weight, nil_score = 0.0 if config.weight is None else config.weight, None
        source = self.encoder.source
        assert source is not None  # it was loaded from a folder
        save_cross_encoder(
            self._cross_encoder,
            self._tokenizer,
            CrossEncoderAbout(
                name=self._name,
                base=source.name,
                pooling=config.pooling,
                normalisation=config.normalisation,
                candidate_text=config.candidate_text,
                contexts=self._marks,
                max_tokens=config.max_tokens,
                max_name_tokens=config.max_name_tokens,
                padding_id=source.padding_id,
                depth=config.depth,
                weight=weight,
                nil_score=nil_score,
            ),
            out,
            prepare=_preparing(config),
            config=self.about_saved(report, mentions=[self._mentions], **self._origins),
            parents=[
                Parent(kind=ENCODER_KIND, fingerprint=source.fingerprint),
                *([] if self._linker is None else [Parent(kind="linker", fingerprint=self._linker)]),
            ],
            seed=config.seed,
            report=report.to_json(),
            overwrite=True,  # `train_reranker` has made sure that it may be
        )


def _pair_tokeniser(config: RerankingConfig, tokenizer: Tokenizer, *, marks: bool) -> PairTokeniser:
    return PairTokeniser(
        tokenizer,
        max_tokens=config.max_tokens,
        max_name_tokens=config.max_name_tokens,
        marks=marks,
        prepare=_preparing(config),
    )


def _preparing(config: RerankingConfig) -> Callable[[str], str]:
    return partial(normalise, preset=config.normalisation)


def pair_scores(
    model: PackedCrossEncoder,
    store: NameStore,
    rows: RowArray,
    *,
    precision: torch.dtype,
    progress: CountProgress = no_count,
) -> torch.Tensor:
    """Scores of pairs without dropout, fp32, shape (len(rows),); the model's mode stays as it was.

    ``progress`` is called after each batch with (done, total) pairs; what it raises ends the walk.

    Raises:
        TrainingError: a score is not finite.
    """
    device = model.head.weight.device
    scores = torch.zeros(len(rows))
    done = 0
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), autocast(device, precision):
            lengths = store.offsets[rows + 1] - store.offsets[rows]
            batch_tokens = BATCH_TOKENS.get(device.type, BATCH_TOKENS["cpu"])
            for places in length_batches(lengths, batch_tokens=batch_tokens, padded=False):
                batch = pack(store.offsets, store.ids, rows=rows[places], types=store.types).to(device)
                scores[torch.from_numpy(places)] = model(batch).cpu()
                done += len(places)
                progress(done, len(rows))
    finally:
        model.train(was_training)
    if not torch.isfinite(scores).all():
        raise diverged("the model's scores are not numbers", precision)
    return scores


def _check_telling(config: RerankingConfig, found: Candidates, telling: Candidates, n_mentions: int) -> None:
    """Refuse what nothing, or not what is wanted, could be learned from."""
    n_without = found.n_without_right()
    if len(found.telling()) == 0:
        raise InputError(
            "there is nothing to learn: of no mention is one of the linker's candidates right and another wrong",
            field="mentions",
            found=f"{quantity(n_mentions, 'mention')}, {n_without:,} of them without a right candidate",
            fix="take mentions annotated with the codes of the linker's terminology; if they are, a larger depth, "
            "character n-grams or another encoder find more candidates",
        )
    if config.nil and telling.n_without_right() == 0:
        raise InputError(
            "NIL cannot be learned: one of the linker's candidates is right for every mention",
            field="mentions",
            found=quantity(n_mentions, "mention"),
            fix="add mentions of concepts that the linker does not have, set own_names=hide or both, or nil=false",
        )


def _named(development: Sequence[Mentions] | Mapping[str, Mentions]) -> list[tuple[str, Mentions]]:
    """Development sets with their names."""
    if isinstance(development, Mapping):
        return list(development.items())
    if isinstance(development, str | Path | pl.DataFrame):
        raise ConfigError("development takes a list of files or tables, not one: write [file].")
    if sum(isinstance(data, pl.DataFrame) for data in development) > 1:
        raise ConfigError(
            "two development sets are called 'development'; give tables names: development={'NAME': table, ...}."
        )
    return [("development" if isinstance(data, pl.DataFrame) else Path(data).name, data) for data in development]


def _read(data: Mentions, context: str | None, mention_format: MentionFormat | None, tell: Tell) -> pl.DataFrame:
    if isinstance(data, pl.DataFrame):
        check_mentions(data)
        wanted = [*LABELLED, *(["context"] if "context" in data.columns else [])]
        if "context" in wanted and (data.schema["context"] != pl.String or data["context"].null_count()):
            raise InputError("this is no table of mentions", field="context", expected="text, every row filled")
        return data.select(wanted)
    written = (mention_format or MentionFormat()).fitting(data)
    reading = written.reading()
    table = read_mentions(data, reading, context=context, mention_format=written)
    if COMPOSITE in reading.notes:
        tell(f"{Path(data).name}: {reading.notes[COMPOSITE]:,} {COMPOSITE}")
    return table
