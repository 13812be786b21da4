"""Update a linker to another release of its terminology: new names are encoded, names that are gone are removed.

The result is what `build_linker` makes of the new release with the linker's own options, file by file: everything that
depends on all names (look-up, n-grams, facts, index) is made anew by the same function, and the vectors of known texts
are copied. What differs is

* the last bits of vectors: an encoder's rounding, about 1e-7, depends on the batch that a name is in, and batches
  differ;
* for vectors in PostgreSQL, the table, which is a new one, and its graph, which pgvector draws at random;
* what is reported of an index of vectors that are not in fp32. How far these are from the encoder's can be measured
  only if the encoder's are there; ``index.json`` therefore has the lower of each two figures, the earlier linker's and
  that against the stored vectors.

Settings are kept, and so are the counts of how often each concept is meant (`onoma.linking.prior`), by code. What was
learned for them (weights, confidences; `onoma.linking.tuning`) was learned with the names of the earlier release: it is
kept, and the report and the manifest say so until the linker is tuned again. Counts of removed concepts are moved to
their successors or dropped; updating back does not restore them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from onoma.artifacts import (
    MANIFEST_NAME,
    Manifest,
    Parent,
    changed_meanwhile,
    copy_files,
    ensure_writable,
    read_manifest,
    remove_leftovers,
    telling_of_changes,
    verify_artifact,
    without_origins,
    write_artifact,
)
from onoma.encoders import Encoder
from onoma.encoders.folders import Precision
from onoma.encoders.kept_parts import KeptParts
from onoma.encoders.opening import as_encoder
from onoma.errors import ConfigError, MismatchError, checked_path
from onoma.indexes.pgvector_replacing import replacing_tables, tables_in
from onoma.indexes.records import read_index_record, write_index_record
from onoma.linking.answer_changes import EarlierAnswers, unchanged
from onoma.linking.build import BIOSYN_NGRAMS, build_linker
from onoma.linking.concept_changes import CHANGES, CONCEPT_CHANGES, concept_changes
from onoma.linking.dictionary import NameDictionary
from onoma.linking.folder import ENCODER_FOLDER, FORMAT_VERSION, KIND, RERANKER_FOLDER, is_of_earlier_release
from onoma.linking.known_vectors import KnownVectors
from onoma.linking.linker import Linker, other_encoder
from onoma.linking.prior import save_prior
from onoma.linking.prior_counting import CarriedPrior, carry_prior
from onoma.linking.update_report import UpdateReport
from onoma.terminology import Terminology
from onoma.terminology.terminology import as_terminology
from onoma.types import Progress, no_progress

_BUILD_FOLDER = "build"
_COMPARED = ("mean_cosine", "lowest_cosine"), ("at_1", "at_10")


def update_linker(
    linker: str | Path,
    terminology: Terminology | str | Path,
    out: str | Path | None = None,
    *,
    encoder: Encoder | str | Path | None = None,
    precision: Precision | None = None,
    mentions: Iterable[str] | None = None,
    answered: Sequence[str | None] | None = None,
    database: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> UpdateReport:
    """Update a linker to another release of its terminology; the module says what is made anew and what is copied.

    Memory is bounded as in `build_linker`. The old linker stays complete until the new one replaces it; anyone who has
    it open can continue. (Except if vectors are in PostgreSQL and the linker is replaced: the old table is then
    dropped, and searches in it are refused.)

    Args:
        linker: The linker's folder; it is verified, byte by byte.
        terminology: The other release. Nothing in it says which of two is newer, so updating back is an update too.
        out: Where to write the new linker; unset: in place of the old one.
        encoder: What encodes new texts: the linker's encoder run in another way, such as by torch. Unset: as in the
            linker. One given by its place keeps as many numbers of a vector as the linker's does.
        precision: For opening an encoder given by its place; see `open_encoder`. Unset: the linker's.
        mentions: Texts that were linked before. Both linkers link them, unprepared, with the linker's own stages.
        answered: The code that each mention was answered with before, by whatever settings; None or "" for none. Codes
            of concepts that can no longer be an answer are counted and listed.
        database: For a linker with its vectors in PostgreSQL, see `Linker.open`; the new one's are stored there too.
        overwrite: Replace a linker at ``out``.
        progress: Called with how many are done, how many there are, and "encoding" (texts, copied ones included) or
            "linking" (distinct mentions).

    Raises:
        InputError: there is nothing at one of the places, no name to link to, or a mention is not text.
        ArtifactError: one of the folders is damaged, of another kind or of a newer format; ``out`` is taken; or another
            process changed the linker meanwhile.
        MismatchError: the encoder is not the linker's, or the terminology has none of the linker's concepts.
        ConfigError: an encoder is given and the linker has none, a precision without an encoder to open, or answers
            without mentions.
        OnomaError: the linker cannot be opened, see `Linker.open`.

    Warns:
        RuntimeWarning: a table that is no longer needed could not be dropped.
    """
    started = time.perf_counter()
    if answered is not None and mentions is None:
        raise ConfigError("answers (answered) are of mentions: give these too.")
    tell = progress or no_progress
    place, target = checked_path(linker), checked_path(linker if out is None else out)
    is_in_place = target.resolve() == place.resolve()
    release = as_terminology(terminology)
    before = Linker.open(place, database=database)
    ensure_writable(target, KIND, overwrite=overwrite or is_in_place)
    encodes_with = _own_encoder(before, encoder, precision)
    if is_in_place and is_current(before, release):
        remove_leftovers(place.resolve())  # of an update that was killed as it cleaned up
        return _nothing_to_do(before, release, mentions, answered, started)
    _check_is_related(before, release)
    known, kept = None, None
    with telling_of_changes(place, before.manifest):
        verify_artifact(place)
        earlier = None if mentions is None else EarlierAnswers(before, mentions, answered=answered, progress=tell)
        if encodes_with is not None:
            texts = before.dictionary.texts
            kept = KeptParts(target, n_names=release.n_names, width=encodes_with.width)
            known = KnownVectors(
                place, texts, written_with=before.encoder, encodes_with=encodes_with, kept=kept, database=database
            )
            known.verify()
    config: dict[str, Any] = {}
    parents: list[Parent] = []

    def check(replaced: Path) -> None:
        if is_in_place and read_manifest(replaced) != before.manifest:
            raise changed_meanwhile(place)
        tables.note_replaced(replaced)

    with (
        telling_of_changes(place, before.manifest),
        replacing_tables(target, database, keeping=None if is_in_place else place) as tables,
        write_artifact(
            target,
            KIND,
            format_version=FORMAT_VERSION,
            config=config,
            parents=parents,
            overwrite=overwrite or is_in_place,
            on_replaced=check,
        ) as folder,
    ):
        try:
            built = _build(before, release, known, folder, database, tell)
        finally:
            tables.written += tables_in(folder)
        parents += built.parents
        config |= built.config
        if known is not None and known.n_copied:
            config |= _said_of_index(place, folder, config)
        if known is not None and encodes_with is not None:
            config["names_encoded_in"] = _names_encoded_in(before.manifest, known, encodes_with)
        before.settings.save(folder)
        carried_prior = None
        if before.prior is not None:
            names = NameDictionary.open(folder, normalisation=before.normalisation)
            carried_prior = carry_prior(before.prior, before.dictionary, names, release.successors())
            save_prior(folder, carried_prior.counts)
        models = (f"{ENCODER_FOLDER}/", f"{RERANKER_FOLDER}/")
        for name in models:
            shutil.rmtree(folder / name, ignore_errors=True)
        # As they are: an export would tell anew where the encoder is from.
        copy_files((name for name in before.manifest.files if name.startswith(models)), place, folder)
        config |= _carried(before.manifest, config, release.manifest.fingerprint, carried_prior)
        if read_manifest(place) != before.manifest:
            raise changed_meanwhile(place)
    if kept is not None:
        kept.discard()
    after = Linker.open(target, database=database)
    concepts = concept_changes(before.dictionary, after.dictionary, release)
    counted = dict(concepts["change"].value_counts().iter_rows())
    return UpdateReport(
        linker=place,
        out=target,
        is_current=False,
        n_concepts=(before.dictionary.n_concepts, after.dictionary.n_concepts),
        n_texts=(before.n_texts, after.n_texts),
        n_kept=_n_common(before.dictionary, after.dictionary),
        n_encoded=0 if known is None else known.n_encoded,
        n_unread=config.get("n_unread"),
        n_nameless=config["n_nameless"],
        concepts=concepts,
        counts={change: counted.get(change, 0) for change in CHANGES},
        is_tuned=is_of_earlier_release(before.settings, config),
        prior=carried_prior,
        answers=None if earlier is None else earlier.compare(after, concepts, release),
        seconds=time.perf_counter() - started,
    )


def is_current(linker: Linker, terminology: Terminology) -> bool:
    """Whether a linker was made from this release of a terminology, by the fingerprint of its content."""
    return terminology.manifest.as_parent() in linker.manifest.parents


def check_terminology(linker: Linker, terminology: Terminology) -> None:
    """Refuse a linker that was made from another release of a terminology, or from another one.

    Raises:
        MismatchError: it was; it says which of the two.
    """
    if not is_current(linker, terminology):
        _check_is_related(linker, terminology)
        made_from = next((p.fingerprint for p in linker.manifest.parents if p.kind == terminology.manifest.kind), "")
        raise MismatchError(
            f"{linker.path} was made from a terminology of another content ({made_from[:12] or 'not known'}) than "
            f"{terminology.path} ({terminology.manifest.fingerprint[:12]}). Bring it to this one: onoma linker update "
            f"{linker.path} --terminology {terminology.path}."
        )


def _own_encoder(linker: Linker, encoder: Encoder | str | Path | None, precision: Precision | None) -> Encoder | None:
    """What encodes new texts; ``None`` if the linker has no encoder."""
    if precision is not None and not isinstance(encoder, str | PathLike):
        raise ConfigError("a precision is that of an encoder which is opened: give its folder or name.")
    has_encoder = linker.manifest.config.get("encoder_fingerprint") is not None
    if encoder is None:
        return linker.encoder if has_encoder else None
    if not has_encoder:
        raise ConfigError(f"{linker.path} was built without an encoder: give none.")
    own = linker.encoder.folder
    opened = as_encoder(encoder, precision=precision or own.precision, dimensions=own.dimensions)
    if opened.fingerprint != linker.encoder.fingerprint:
        raise other_encoder(linker, opened)
    return opened


def _check_is_related(linker: Linker, release: Terminology) -> None:
    """Refuse a terminology that cannot be a release of the linker's."""
    codes = pl.DataFrame({"concept_id": pl.Series(list(linker.dictionary.concept_ids), dtype=pl.String)})
    released = release.concepts().select("concept_id").collect()
    if codes.join(released, on="concept_id", how="semi").is_empty():
        raise MismatchError(
            f"{release.path} has none of the {len(codes):,} concepts of {linker.path} (such as "
            f"{linker.dictionary.concept_ids[0]}), so it is no other release of the same terminology. Build a linker "
            "of it: onoma linker build."
        )


def _nothing_to_do(
    linker: Linker,
    release: Terminology,
    mentions: Iterable[str] | None,
    answered: Sequence[str | None] | None,
    started: float,
) -> UpdateReport:
    return UpdateReport(
        linker=linker.path,
        out=linker.path,
        is_current=True,
        n_concepts=(linker.dictionary.n_concepts,) * 2,
        n_texts=(linker.n_texts,) * 2,
        n_kept=linker.n_texts,
        n_encoded=0,
        n_unread=linker.manifest.config.get("n_unread"),
        n_nameless=linker.manifest.config["n_nameless"],
        concepts=pl.DataFrame(schema=CONCEPT_CHANGES),
        counts=dict.fromkeys(CHANGES, 0),
        is_tuned=is_of_earlier_release(linker.settings, linker.manifest.config),
        prior=None,
        answers=None if mentions is None else unchanged(linker, [*mentions], answered=answered, terminology=release),
        seconds=time.perf_counter() - started,
    )


def _build(
    before: Linker,
    release: Terminology,
    known: KnownVectors | None,
    folder: Path,
    database: str | None,
    progress: Progress,
) -> Manifest:
    """Build a linker with the options of another one, and put its files into ``folder``; its manifest."""
    config = before.manifest.config
    ngrams = config["ngrams"]
    index = None if known is None else read_index_record(before.path)
    build = folder / _BUILD_FOLDER
    build_linker(
        release,
        known,
        build,
        normalisation=before.normalisation,
        index="exact" if index is None else index.kind,
        vectors="fp32" if index is None else index.precision,
        sparse=ngrams is not None,
        ngrams=BIOSYN_NGRAMS if ngrams is None else (ngrams[0], ngrams[1]),
        database=database,
        progress=lambda done, total: progress(done, total, "encoding"),
    )
    built = read_manifest(build)
    (build / MANIFEST_NAME).unlink()
    for item in build.iterdir():
        item.rename(folder / item.name)
    build.rmdir()
    return built


def _names_encoded_in(before: Manifest, known: KnownVectors, encodes_with: Encoder) -> list[str]:
    """The precisions that vectors were computed in."""
    copied = before.config["names_encoded_in"] if known.n_copied else []
    return sorted({*copied, *([encodes_with.precision] if known.n_encoded else [])})


def _said_of_index(before: Path, folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """What is to be said of an index of vectors that were copied; see the module."""
    record = read_index_record(folder)
    if record.precision == "fp32":
        return {}
    earlier = read_index_record(before)
    lower = [
        now.model_copy(update={name: min(getattr(now, name), getattr(then, name)) for name in names})
        for now, then, names in zip(
            (record.agreement, record.recall), (earlier.agreement, earlier.recall), _COMPARED, strict=True
        )
    ]
    said = record.model_copy(update={"agreement": lower[0], "recall": lower[1]})
    write_index_record(folder, said)
    return {"index": {**config["index"], **said.model_dump(include={"agreement", "recall"})}}


def _carried(before: Manifest, config: dict[str, Any], fingerprint: str, prior: CarriedPrior | None) -> dict[str, Any]:
    """What building does not say: the cross-encoder; tuning and prior, with the terminology that they are of.

    Args:
        before: Of the linker as it was.
        config: What building says.
        fingerprint: Of the terminology from now on.
        prior: What became of the counts, if there are any.
    """
    carried = {name: value for name, value in without_origins(before.config).items() if name not in config}
    made_from = [parent.fingerprint for parent in before.parents if parent.kind == "terminology"]
    for name in {"tuning", "prior"} & carried.keys():
        carried[name] = {"terminology": made_from[0] if made_from else None, **carried[name]}
    if prior is not None and (prior.n_moved or prior.n_gone):
        said = carried.setdefault("prior", {})  # a folder of counts alone may say nothing of them
        said |= {"n_moved": said.get("n_moved", 0) + prior.n_moved, "n_gone": said.get("n_gone", 0) + prior.n_gone}
        if "tuning" in carried:
            carried["tuning"]["has_other_counts"] = True
    tuning = carried.get("tuning", {})
    if tuning.get("terminology") == fingerprint and not tuning.get("has_other_counts"):
        del tuning["terminology"]  # back at what it was learned with
    return carried


def _n_common(before: NameDictionary, after: NameDictionary) -> int:
    """Texts that both have."""
    texts = [pl.DataFrame({"text": pl.Series(list(side.texts), dtype=pl.String)}) for side in (before, after)]
    return texts[0].join(texts[1], on="text", how="semi").height
