"""Make a linker: the names of a terminology, their indexes, and the models, in one folder."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl

from onoma.artifacts import (
    CARD_NAME,
    MANIFEST_NAME,
    Parent,
    amend_artifact,
    carried_origins,
    copy_files,
    ensure_writable,
    open_artifact,
    sha256_file,
    verify_artifact,
    write_artifact,
)
from onoma.encoders import Encoder, export_encoder
from onoma.encoders.cross_encoder import RERANKER_KIND
from onoma.encoders.encoding import check_unit_length, checked_vectors
from onoma.encoders.folders import ENCODER_KIND
from onoma.encoders.kept_parts import EncodePart, KeptParts, encode_in_parts
from onoma.encoders.opening import as_encoder
from onoma.encoders.saving import check_links
from onoma.errors import ConfigError, MismatchError
from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.indexes.ngram_keys import checked_ngrams
from onoma.indexes.opening import build_index, check_kind
from onoma.indexes.pgvector_folder import is_table_kind, prepare_table
from onoma.indexes.pgvector_replacing import drop_unfinished, replacing_tables
from onoma.indexes.records import IndexKind, TableKind
from onoma.indexes.vector_store import VectorPrecision
from onoma.linking.dictionary_building import collect_entries, dictionary_of
from onoma.linking.facts_collecting import collect_facts
from onoma.linking.folder import ENCODER_FOLDER, FORMAT_VERSION, KIND, RERANKER_FOLDER
from onoma.linking.known_vectors import KnownVectors
from onoma.linking.linker import Linker
from onoma.linking.lookup import NameLookup
from onoma.linking.prior import save_prior
from onoma.linking.prior_counting import PriorReport, count_prior
from onoma.linking.settings import LinkerSettings, Stage, ordered_stages
from onoma.linking.spelling import NameWords
from onoma.terminology import Terminology
from onoma.terminology.tables import ACTIVE
from onoma.terminology.terminology import as_terminology
from onoma.types import BoolArray, CountProgress, FloatArray

DEFAULT_NORMALISATION = "sapbert"
"""Of a linker without an encoder, which would say how it was trained."""
BIOSYN_NGRAMS = (1, 2)
"""Character n-grams for which encoders trained as BioSyn's learned a weight."""


def build_linker(
    terminology: Terminology | str | Path,
    encoder: Encoder | str | Path | None,
    out: str | Path,
    *,
    normalisation: str | None = None,
    index: IndexKind | TableKind = "exact",
    vectors: VectorPrecision = "fp32",
    sparse: bool = False,
    ngrams: tuple[int, int] = BIOSYN_NGRAMS,
    stages: Iterable[str] | None = None,
    database: str | None = None,
    overwrite: bool = False,
    progress: CountProgress | None = None,
) -> Linker:
    """Encode the names of a terminology and write a linker.

    It has the active concepts with their names that are not suppressed, each distinct normalised text once. The folder
    holds everything that linking needs, and may be moved. Only vectors may be elsewhere, in PostgreSQL: then in a new
    table of their own, which the folder names.

    While many names are encoded, finished work is kept in ``OUT.encoded``: if this call is stopped, the same call
    resumes (`onoma.encoders.kept_parts`).

    Args:
        terminology: Terminology, or its folder.
        encoder: Encoder, or what `open_encoder` takes. One opened in a lower precision of ONNX
            (``open_encoder(…, precision=…)``) is written in that precision, and mentions are encoded in it too. None: a
            linker with only look-up and n-grams.
        out: Where to write the linker's folder.
        normalisation: Preset by which names and mentions are normalised; unset: the one that the encoder was trained
            with.
        index: How vectors are searched: "exact", "sign-bits" or "approximate", or in PostgreSQL "pgvector" (all are
            compared) or "pgvector-hnsw"; see `onoma.indexes.opening`. The share of the exact answers that it finds is
            measured and written to the manifest.
        vectors: In which precision they are stored: "fp32", "fp16", "int16" or "int8"; PostgreSQL has the first two.
        sparse: Index the names by their character n-grams too. `onoma.linking.tuning` learns how to fuse the two
            searches. Until then, 1-2-grams have the weight that the encoder comes with, as BioSyn's and onoma-mini do;
            without one, reciprocal ranks are fused.
        ngrams: Shortest and longest of these, see `CharNgramIndex.build`.
        stages: Those that are on by default; unset: exact look-up, other spellings of a mention, and every search there
            is.
        database: Connection string of the database for the vectors; unset: the value of the environment variable
            ONOMA_DATABASE. It is not stored, and must be given again to open the linker.
        overwrite: Replace a linker at ``out``, and its table in this database.
        progress: Called with the numbers of names encoded so far and in all.

    Raises:
        DamagedArtifactError: the terminology is not what was written.
        InputError: there is no name to link to, the encoder gives vectors that cannot be compared, or there is no such
            length of n-grams.
        ConfigError: there is no such index or precision, options do not go together, or a stage is on that the linker
            would not have.
        ArtifactExistsError: ``out`` is taken.
        MismatchError: the encoder's folder got another encoder since it was opened, or does not hold the given one (a
            linker contains that folder).
        UnavailableError: PostgreSQL, or what is needed to talk to it, is missing or refuses.

    Warns:
        RuntimeWarning: a table that is no longer needed could not be dropped.
    """
    ensure_writable(out, KIND, overwrite=overwrite)
    ngrams = checked_ngrams(ngrams)
    names_of = as_terminology(terminology)
    opened = None if encoder is None else as_encoder(encoder)
    if opened is not None and opened.fingerprint != opened.folder.fingerprint:
        raise MismatchError(
            f"the encoder {opened.name} ({opened.fingerprint[:12]}) is not the one in its folder {opened.folder.path} "
            f"({opened.folder.fingerprint[:12]}), and a linker carries the folder. Save what makes its vectors there."
        )
    if opened is not None:
        check_links(opened.folder)
    _check_unused(index, vectors, ngrams, database, dense=opened is not None, sparse=sparse)
    settings = _settings(opened, ngrams=ngrams if sparse else None, stages=stages)
    kept: KeptParts | None = None
    table: str | None = None
    if opened is not None and is_table_kind(index):
        table = prepare_table(database, stem=names_of.path.name, kind=index, precision=vectors, width=opened.width)
    verify_artifact(names_of.path)
    preset = normalisation or (DEFAULT_NORMALISATION if opened is None else opened.folder.normalisation)
    entries = collect_entries(names_of, normalisation=preset, with_labels=True)
    dictionary = dictionary_of(names_of, entries, normalisation=preset)
    facts = collect_facts(names_of, entries, dictionary)
    del entries
    config: dict[str, Any] = {"normalisation": preset, **carried_origins(names_of.manifest.config)}
    parents = [names_of.manifest.as_parent()]
    if opened is not None:
        config |= {
            "encoder_name": opened.name,
            "encoder_fingerprint": opened.fingerprint,
            "precision": opened.folder.precision,
            "names_encoded_in": [opened.precision],
        }
        parents.append(Parent(kind=ENCODER_KIND, fingerprint=opened.fingerprint))
    config |= {"n_concepts": dictionary.n_concepts, "n_texts": dictionary.n_texts}
    n_active = names_of.concepts().select((pl.col("status") == ACTIVE).sum()).collect().item()
    config |= {"n_nameless": n_active - dictionary.n_concepts}
    config |= {"ngrams": list(ngrams) if sparse else None}
    with (
        replacing_tables(out, database) as tables,
        write_artifact(
            out,
            KIND,
            format_version=FORMAT_VERSION,
            config=config,
            parents=parents,
            overwrite=overwrite,
            on_replaced=tables.note_replaced,
        ) as folder,
    ):
        dictionary.save(folder)
        facts.save(folder)
        NameLookup(dictionary.texts).save(folder)
        NameWords.of(dictionary.texts).save(folder)
        settings.save(folder)
        if sparse:  # before the vectors, which take hours: it may refuse the lengths of its n-grams
            CharNgramIndex.write(folder, dictionary.texts, ngrams=ngrams)
        if opened is not None:
            export_encoder(opened.folder, folder / ENCODER_FOLDER, onnx_only=True)
            encode: EncodePart = opened.encode
            if not isinstance(
                opened, KnownVectors
            ):  # which keeps what is new; what is known is copied faster than kept
                kept = KeptParts(out, n_names=dictionary.n_texts, width=opened.width)
                encode = partial(kept.encode, opened)
            is_read = np.ones(dictionary.n_texts, np.bool_)
            rows = _vectors(dictionary.texts, opened, encode, is_read, progress)
            tables.written += [] if table is None else [table]
            record = build_index(
                folder,
                rows,
                kind=index,
                precision=vectors,
                database=None if table is None else database,
                table=table,
            )
            config["n_unread"] = int((~is_read).sum())
            config["index"] = {
                "vectors": record.precision,
                **record.model_dump(include={"kind", "recall", "agreement"}),
                **({} if table is None else {"table": table, "fingerprint": record.fingerprint}),
            }
    if kept is not None:
        kept.discard()
    return Linker.open(out, database=database)


def add_reranker(linker: str | Path, reranker: str | Path, *, database: str | None = None) -> Linker:
    """Add a cross-encoder to a linker's folder, or replace the one there, and switch it on.

    The other files are neither read nor copied. A calibration is kept for the stages without the cross-encoder; one
    that was learned with another cross-encoder is dropped, and so is the confidence below which there was no such
    concept. The share of another cross-encoder is dropped too: the new one has the share that its training chose, until
    `onoma.linking.tune_linker` chooses one for this linker.

    Args:
        linker: The linker's folder.
        reranker: The cross-encoder's folder (onoma reranker train).
        database: For a linker with its vectors in PostgreSQL, see `Linker.open`.

    Raises:
        InputError: there is nothing at one of the places.
        ArtifactError: one of the folders is damaged, or something else.
        OnomaError: the linker cannot be opened, see `Linker.open`.
    """
    before = Linker.open(linker, database=database)
    manifest = open_artifact(reranker, RERANKER_KIND)
    verify_artifact(reranker, card_may_differ=True)
    settings = before.settings.replaced(stages=ordered_stages([*before.settings.stages, "rerank"]))
    if manifest.fingerprint != before.manifest.config.get("reranker"):
        settings = settings.replaced(rerank_weight=None)
        if "rerank" in settings.calibrated_stages:
            settings = settings.replaced(calibration=None, calibrated_stages=(), no_concept_below=None)
    drop_unfinished(linker, database)
    with amend_artifact(
        linker,
        KIND,
        format_version=FORMAT_VERSION,
        config={"reranker": manifest.fingerprint},
        dropping=[f"{RERANKER_FOLDER}/"],
        expected=before.manifest,
    ) as folder:
        files, card = {MANIFEST_NAME, *manifest.files}, Path(reranker) / CARD_NAME
        if not card.is_file() or sha256_file(card) != manifest.files[CARD_NAME].sha256:
            files -= {CARD_NAME}  # which somebody has edited
        copy_files(files, Path(reranker), folder / RERANKER_FOLDER)
        settings.save(folder)
    return Linker.open(linker, database=database)


def add_prior(
    linker: str | Path, mentions: pl.DataFrame, *, weight: float | None = None, database: str | None = None
) -> PriorReport:
    """Count how often annotated mentions mean each concept, and replace the counts in a linker's folder.

    Use it with all mentions that you have, after `tune_linker` has shown on development mentions that counts help.
    Large files are not copied. Confidences stay as they were fitted, with the earlier counts; if another weight is
    given they are dropped, and so is the confidence below which there was no such concept.

    Args:
        linker: The linker's folder.
        mentions: Columns ``mention`` and ``concept_id`` (`onoma.pairs.mentions.read_mentions`), and ``count`` if a row
            counts more than once.
        weight: The weight of counts from now on, above 0 (w of `onoma.linking.prior`); switches the stage "prior" on.
            Unset: what was learned stays, and so do the stages.
        database: For a linker with its vectors in PostgreSQL, see `Linker.open`.

    Raises:
        InputError: this is not a table of mentions, or none is of a concept that the linker has.
        ConfigError: the weight is not allowed, or reciprocal ranks are fused.
        ArtifactError: the folder is not a linker, or is damaged.
        OnomaError: the linker cannot be opened, see `Linker.open`.
    """
    given: object = weight
    is_weight = not isinstance(given, bool) and isinstance(given, Real) and 0 < float(given) < math.inf
    if given is not None and not is_weight:
        raise ConfigError(f"the weight of a prior (--weight) is a number above 0; found {weight!r}.")
    before = Linker.open(linker, database=database)
    counted = count_prior(before.dictionary, mentions)
    settings = before.settings
    stages = ordered_stages([*settings.stages, "prior"])
    if weight is not None and (settings.stages, settings.prior_weight) != (stages, weight):
        settings = settings.replaced(
            stages=stages, prior_weight=weight, calibration=None, calibrated_stages=(), no_concept_below=None
        )
        before.with_prior(counted.counts).tuned(settings)  # refuses a stage that cannot be
    config = {"prior": dataclasses.asdict(counted.report)}
    drop_unfinished(linker, database)
    with amend_artifact(linker, KIND, format_version=FORMAT_VERSION, config=config, expected=before.manifest) as folder:
        save_prior(folder, counted.counts)
        settings.save(folder)
    return counted.report


def _check_unused(
    index: str, vectors: str, ngrams: tuple[int, int], database: str | None, *, dense: bool, sparse: bool
) -> None:
    if not is_table_kind(check_kind(index)) and database is not None:
        raise ConfigError(f"a database is for {' and '.join(get_args(TableKind))}; the index {index} is in files.")
    if not dense and (index, vectors) != ("exact", "fp32"):
        raise ConfigError("index and vectors are of an encoder's vectors, and this linker would have no encoder.")
    if not sparse and ngrams != BIOSYN_NGRAMS:
        raise ConfigError("lengths of n-grams are for a linker with character n-grams (sparse=True, --sparse).")


def _settings(
    encoder: Encoder | None, *, ngrams: tuple[int, int] | None, stages: Iterable[str] | None
) -> LinkerSettings:
    has: dict[Stage, bool] = {"dense": encoder is not None, "sparse": ngrams is not None}
    there = [stage for stage, is_there in has.items() if is_there]
    if not there:
        raise ConfigError(
            "a linker needs a search: give an encoder, or build it with character n-grams (sparse=True, --sparse)."
        )
    chosen = ordered_stages(["exact", "variants", *there] if stages is None else stages)
    missing = set(chosen) - {"exact", "loose", "variants", *there}
    if missing:
        all_there = ", ".join(ordered_stages(["exact", "loose", "variants", *there]))
        raise ConfigError(f"this linker would have no stage {', '.join(sorted(missing))}; it has {all_there}.")
    weights: dict[Stage, float] | None = None
    if encoder is not None and encoder.folder.sparse_weight is not None and ngrams == BIOSYN_NGRAMS:
        dense_share = 1 / (1 + max(encoder.folder.sparse_weight, 0.0))
        weights = {"dense": dense_share, "sparse": 1 - dense_share}
    return LinkerSettings(stages=chosen, weights=weights)


def _vectors(
    texts: Sequence[str], encoder: Encoder, encode: EncodePart, is_read: BoolArray, progress: CountProgress | None
) -> Iterator[FloatArray]:
    """The vectors of all texts, a part at a time, each checked to be of length 1, and that there is one for each.

    Those of texts that the encoder cannot read are zero, and ``is_read``, shape (n,), gets to know which.
    """

    def encode_whole(texts: Sequence[str], *, progress: CountProgress | None) -> FloatArray:
        return checked_vectors(encode(texts, progress=progress), len(texts), encoder)

    start = 0
    for part in encode_in_parts(encode_whole, texts, progress=progress):
        stop = start + len(part)
        # A text without a single token has the vector zero, and so the score 0 with every mention.
        check_unit_length(part, texts[start:stop])
        is_read[start:stop] = encoder.can_read(texts[start:stop])
        yield part * is_read[start:stop, None]
        start = stop
