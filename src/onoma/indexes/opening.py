"""Indexes as files in a folder: built once, opened without reading the vectors.

============ =========================== ==========================================================================
kind         files beside the vectors    what it is
============ =========================== ==========================================================================
exact        none                        `ExactIndex`
sign-bits    signs.npy, centre.npy       `SignBitIndex`, the default: nearly exact, some ten times as fast, one bit of
                                         each component in memory
approximate  lists.faiss                 `ApproximateIndex`: faster still where there are very many, and misses more
============ =========================== ==========================================================================

``index.json`` says which it is, and how often it was found to agree with exhaustive search in single precision. The
checksums of all files belong into the manifest of the artefact that the folder is part of.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from onoma.errors import ArtifactExistsError, DamagedArtifactError, FormatVersionError, InputError, did_you_mean
from onoma.indexes import approximate, sign_bits
from onoma.indexes.candidate_search import CANDIDATES
from onoma.indexes.exact import ExactIndex
from onoma.indexes.protocol import Index
from onoma.indexes.recall import Recall, measure_recall
from onoma.indexes.scoring import check_candidates
from onoma.indexes.vector_store import VECTORS_FILE, VectorPrecision, VectorStore, check_precision, write_vectors
from onoma.types import FloatArray

IndexKind: TypeAlias = Literal["exact", "sign-bits", "approximate"]
RECORD_FILE = "index.json"
FORMAT_VERSION = 1
_GIVEN_FOLDER = "as-given"
_COMPARED_ROWS = 10_000


class PrecisionAgreement(BaseModel):
    """How far stored vectors are from those given, over at most 10,000 of them, evenly spaced."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean_cosine: float
    lowest_cosine: float


class IndexRecord(BaseModel):
    """What an index says about itself (file ``index.json``). It has no dates: equal content, equal file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_version: int = Field(ge=1)
    kind: IndexKind
    precision: VectorPrecision
    n_vectors: int = Field(ge=0)
    width: int = Field(ge=1)
    max_norm: float = Field(ge=0, allow_inf_nan=False)
    """Bound of the lengths of the stored vectors."""
    candidates: int | None
    """Rows scored exactly for each query; none for an exact index."""
    agreement: PrecisionAgreement
    recall: Recall


def build_index(
    folder: str | Path,
    vectors: FloatArray | Iterable[FloatArray],
    *,
    kind: str = "sign-bits",
    precision: str = "fp32",
    candidates: int | None = None,
    queries: FloatArray | None = None,
) -> IndexRecord:
    """Store vectors and index them, in bounded memory, and measure how well the index finds them.

    Args:
        folder: Is made if missing.
        vectors: Shape (N, W), float32, in memory or memory-mapped; or such matrices one after another. Those that come
            in parts and are stored in a lower precision lie in the folder in single precision too until recall has been
            measured.
        kind: ``exact``, ``sign-bits`` or ``approximate``.
        precision: ``fp32``, ``fp16``, ``int16`` or ``int8``; see `onoma.indexes.vector_store`.
        candidates: Rows scored exactly for each query; not for ``exact``. Unset: what the kind was measured with.
        queries: Vectors of texts that are not in the index, to measure recall with; unset: see `measure_recall`.

    Returns:
        What was built and measured, as it stands in ``index.json``.

    Raises:
        InputError: unknown kind or precision, no vectors, a vector that is not finite or not float32, or candidates
            where there are none to choose.
        ShapeError: the vectors are no matrix, or have different widths.
        ArtifactExistsError: the folder holds vectors already.
    """
    chosen, stored_as = _check_kind(kind), check_precision(precision)
    rescored = _check_candidates(chosen, candidates)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    if (place / VECTORS_FILE).exists():  # it may be what ``vectors`` maps
        raise ArtifactExistsError(f"{place} holds {VECTORS_FILE} already. Build the index in another folder.")
    aside = place / _GIVEN_FOLDER
    try:
        given: VectorStore
        if isinstance(vectors, np.ndarray):
            given = VectorStore(vectors)
            store = write_vectors(place, given.parts() if len(given) else [vectors], precision=stored_as)
        elif stored_as == "fp32":
            given = store = write_vectors(place, vectors)
        else:
            aside.mkdir(exist_ok=True)
            given = write_vectors(aside, vectors)
            store = write_vectors(place, given.parts() if len(given) else [given.part(0, 0)], precision=stored_as)
        if chosen == "sign-bits":
            sign_bits.write_signs(place, store)
        elif chosen == "approximate":
            approximate.ApproximateIndex.build(store).save(place)
        record = IndexRecord(
            format_version=FORMAT_VERSION,
            kind=chosen,
            precision=stored_as,
            n_vectors=len(store),
            width=store.width,
            max_norm=store.max_norm,
            candidates=rescored,
            agreement=_agreement(given, store),
            recall=measure_recall(_open(place, chosen, store, rescored), given, queries=queries),
        )
    finally:
        if aside.exists():
            for file in aside.iterdir():
                file.unlink()
            aside.rmdir()
    (place / RECORD_FILE).write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return record


def open_index(folder: str | Path) -> Index:
    """Open what `build_index` built; vectors are mapped, not read.

    Raises:
        InputError: there is no index.
        DamagedArtifactError: a file is missing, or not what it should be.
        FormatVersionError: written by a newer Onoma.
    """
    place = Path(folder)
    record = read_index_record(place)
    store = VectorStore.open(place, max_norm=record.max_norm)
    found = (store.precision, len(store), store.width)
    if found != (record.precision, record.n_vectors, record.width):
        raise DamagedArtifactError(
            f"{place}: {VECTORS_FILE} holds {len(store)} vectors of width {store.width} in {store.precision}; "
            f"{RECORD_FILE} says {record.n_vectors} of width {record.width} in {record.precision}. "
            "Build the index again."
        )
    return _open(place, record.kind, store, record.candidates)


def read_index_record(folder: str | Path) -> IndexRecord:
    """What an index says about itself.

    Raises:
        InputError: there is no index.
        DamagedArtifactError: the file is not what `build_index` writes.
        FormatVersionError: written by a newer Onoma.
    """
    file = Path(folder) / RECORD_FILE
    if not file.is_file():
        raise InputError("there is no index here", path=file.parent, expected=f"a file {RECORD_FILE}", fix="build it")
    try:
        raw = file.read_text(encoding="utf-8")
        record = IndexRecord.model_validate_json(raw)
    except (ValidationError, UnicodeDecodeError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else str(error)
        raise DamagedArtifactError(f"{file} is not readable ({reason}). Build the index again.") from None
    if record.format_version > FORMAT_VERSION:
        raise FormatVersionError(
            f"{file} is of format {record.format_version}; this Onoma reads up to {FORMAT_VERSION}. Update Onoma, or "
            "build the index again."
        )
    return record


def _open(folder: Path, kind: IndexKind, vectors: VectorStore, candidates: int | None) -> Index:
    if kind == "exact" or candidates is None:
        return ExactIndex(vectors)
    if kind == "sign-bits":
        return sign_bits.SignBitIndex.open(folder, vectors, candidates=candidates)
    return approximate.ApproximateIndex.open(folder, vectors, candidates=candidates)


def _check_candidates(kind: IndexKind, candidates: int | None) -> int | None:
    """The number chosen, or else the usual one; none for an exact index."""
    if kind == "exact":
        if candidates is not None:
            raise InputError("an exact index has no candidates", field="candidates", fix="leave them out")
        return None
    if candidates is None:
        return CANDIDATES
    check_candidates(candidates)
    return candidates


def _check_kind(kind: str) -> IndexKind:
    known = get_args(IndexKind)
    if kind not in known:
        raise InputError(
            f"there is no such index.{did_you_mean(kind, known)}", field="kind", expected=", ".join(known), found=kind
        )
    return kind  # type: ignore[return-value]


def _agreement(given: VectorStore, stored: VectorStore) -> PrecisionAgreement:
    if given.precision == stored.precision:
        return PrecisionAgreement(mean_cosine=1.0, lowest_cosine=1.0)
    rows = np.unique(np.linspace(0, max(len(given) - 1, 0), min(len(given), _COMPARED_ROWS)).astype(np.int64))
    true, found = given.take(rows).astype(np.float64), stored.take(rows).astype(np.float64)
    lengths = np.sqrt(np.square(true).sum(axis=1) * np.square(found).sum(axis=1))
    cosines = np.divide((true * found).sum(axis=1), lengths, out=np.ones(len(rows)), where=lengths > 0)
    return PrecisionAgreement(
        mean_cosine=round(float(cosines.mean()), 6) if len(rows) else 1.0,
        lowest_cosine=round(float(cosines.min()), 6) if len(rows) else 1.0,
    )
