"""Indexes as files in a folder: built once, opened without reading the vectors.

============= =========================== =========================================================================
kind          files beside the vectors    what it is
============= =========================== =========================================================================
exact         none                        `ExactIndex`, the default of linkers
sign-bits     signs.npy, centre.npy       `SignBitIndex`: nearly exact, about ten times as fast, one bit of each
                                          component in memory
approximate   lists.faiss                 `ApproximateIndex`: faster still with very many vectors, and misses more
pgvector      table.json, and no vectors  `PgVectorIndex`: the vectors are in PostgreSQL, and all are compared there
pgvector-hnsw table.json, and no vectors  the same, by a graph
============= =========================== =========================================================================

``index.json`` says which it is, and how often it was found to agree with exhaustive search in single precision. The
checksums of all files belong in the manifest of the artefact that the folder is part of.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args

from onoma.errors import ArtifactExistsError, ConfigError, DamagedArtifactError, InputError, checked_path, one_of
from onoma.indexes import approximate, sign_bits
from onoma.indexes.candidate_search import CANDIDATES
from onoma.indexes.exact import ExactIndex
from onoma.indexes.pgvector_folder import build_in_table, is_table_kind, open_in_table
from onoma.indexes.protocol import StoredIndex
from onoma.indexes.recall import find_true_answers
from onoma.indexes.records import (
    FORMAT_VERSION,
    RECORD_FILE,
    IndexKind,
    IndexRecord,
    PrecisionAgreement,
    TableKind,
    read_index_record,
    write_index_record,
)
from onoma.indexes.scoring import checked_candidates
from onoma.indexes.vector_store import (
    VECTORS_FILE,
    VectorStore,
    as_given,
    check_precision,
    cosines_with_stored,
    in_parts,
    write_vectors,
)
from onoma.types import FloatArray

_COMPARED_ROWS = 10_000


def build_index(
    folder: str | Path,
    vectors: FloatArray | Iterable[FloatArray],
    *,
    kind: str,
    precision: str = "fp32",
    candidates: int | None = None,
    queries: FloatArray | None = None,
    database: str | None = None,
    table: str | None = None,
) -> IndexRecord:
    """Store vectors and index them, in bounded memory, and measure how well the index finds them.

    Args:
        folder: Is made if missing.
        vectors: Shape (N, W), float32, in memory or memory-mapped; or such matrices one after another. Those that come
            in parts and are stored in a lower precision are also kept in the folder in single precision until recall
            has been measured.
        kind: One of those above.
        precision: ``fp32``, ``fp16``, ``int16`` or ``int8``; see `onoma.indexes.vector_store`. PostgreSQL has the first
            two.
        candidates: Rows scored exactly for each query; not for ``exact``. Unset: with sign bits, so many that 1,000
            queries miss nearly nothing (`onoma.indexes.sign_bits.enough_candidates`), else what the kind was measured
            with.
        queries: Vectors of texts that are not in the index, to measure recall with; unset: see `measure_recall`.
        database: Connection string, for kinds with a table; unset: that in the environment variable ONOMA_DATABASE.
        table: Name of a new table there, see `onoma.indexes.pgvector_folder.prepare_table`.

    Returns:
        What was built and measured, as in ``index.json``.

    Raises:
        InputError: no vectors, a vector that is not finite or not float32, or candidates for a kind that has none to
            choose.
        ShapeError: the vectors are not a matrix, or have different widths.
        ArtifactExistsError: the folder already holds vectors, or the database has the table.
        ConfigError: there is no such kind or precision; or a database or a table was given for a kind without one, or
            none for a kind with one.
        UnavailableError: PostgreSQL, or what is needed to talk to it, is missing or refuses.
    """
    chosen, stored_as = check_kind(kind), check_precision(precision)
    place = checked_path(folder)
    if is_table_kind(chosen):
        place.mkdir(parents=True, exist_ok=True)
        return build_in_table(
            place,
            vectors,
            kind=chosen,
            precision=precision,
            candidates=candidates,
            queries=queries,
            database=database,
            table=table,
        )
    if database is not None or table is not None:
        raise ConfigError(f"an index of the kind {chosen} has its vectors in files: leave database and table out.")
    rescored = _check_candidates(chosen, candidates)
    place.mkdir(parents=True, exist_ok=True)
    if (place / VECTORS_FILE).exists():  # it may be what ``vectors`` maps
        raise ArtifactExistsError(f"{place} holds {VECTORS_FILE} already. Build the index in another folder.")
    there_before = set(place.iterdir())
    early_stop: approximate.EarlyStop | None = None
    try:
        with contextlib.ExitStack() as stack:
            if stored_as == "fp32":
                given = store = write_vectors(place, in_parts(vectors))
            else:
                given = stack.enter_context(as_given(vectors, place))
                store = write_vectors(place, given.parts(), precision=stored_as)
            truth = find_true_answers(given, queries=queries)
            if chosen == "sign-bits":
                sign_bits.write_signs(place, store)
                if candidates is None:
                    of_stored = truth if stored_as == "fp32" else find_true_answers(store, queries=queries)
                    rescored = sign_bits.enough_candidates(place, of_stored)
            elif chosen == "approximate":
                lists = approximate.ApproximateIndex.build(store, candidates=rescored or approximate.CANDIDATES)
                lists.save(place)
                early_stop = lists.early_stop
            record = IndexRecord(
                format_version=FORMAT_VERSION,
                kind=chosen,
                precision=stored_as,
                n_vectors=len(store),
                width=store.width,
                max_norm=store.max_norm,
                candidates=rescored,
                agreement=_agreement(given, store),
                recall=truth.recall_of(_open(place, chosen, store, rescored, early_stop, {})),
                early_stop=early_stop,
            )
    except BaseException:
        for file in set(place.iterdir()) - there_before:
            file.unlink()
        raise
    write_index_record(place, record)
    return record


def open_index(
    folder: str | Path, *, database: str | None = None, checksums: Mapping[str, str] | None = None
) -> StoredIndex:
    """Open what `build_index` built; vectors are mapped, not read.

    Args:
        folder: The index's folder.
        database: Connection string, if the vectors are in PostgreSQL; unset: that in the environment variable
            ONOMA_DATABASE.
        checksums: SHA-256 of files in the folder, by name, as in its manifest: files that are read completely (sign
            bits, inverted lists) are compared when they are read. Unset: they are not.

    Raises:
        InputError: there is no index, or the database does not have its table.
        ArtifactError: a file or the table is missing, not what it should be, or written by a newer Onoma.
        MismatchError: the table has other vectors.
        ConfigError: a database was given for an index without one, or none for an index with one.
        UnavailableError: PostgreSQL, or what is needed to talk to it, is missing or refuses.
    """
    place = checked_path(folder)
    record = read_index_record(place)
    if is_table_kind(record.kind):
        return open_in_table(place, record, database=database)
    if database is not None:
        raise ConfigError(f"{place} has its vectors in files, not in a database: leave it out.")
    store = VectorStore.open(place, max_norm=record.max_norm)
    found = (store.precision, len(store), store.width)
    if found != (record.precision, record.n_vectors, record.width):
        raise DamagedArtifactError(
            f"{place}: {VECTORS_FILE} holds {len(store)} vectors of width {store.width} in {store.precision}; "
            f"{RECORD_FILE} says {record.n_vectors} of width {record.width} in {record.precision}. "
            "Build the index again."
        )
    return _open(place, record.kind, store, record.candidates, record.early_stop, checksums or {})


def _open(
    folder: Path,
    kind: IndexKind,
    vectors: VectorStore,
    candidates: int | None,
    early_stop: approximate.EarlyStop | None,
    checksums: Mapping[str, str],
) -> StoredIndex:
    if kind == "exact" or candidates is None:
        return ExactIndex(vectors)
    if kind == "sign-bits":
        signs = checksums.get(sign_bits.SIGNS_FILE)
        return sign_bits.SignBitIndex.open(folder, vectors, candidates=candidates, sha256=signs)
    return approximate.ApproximateIndex.open(
        folder, vectors, candidates=candidates, early_stop=early_stop, sha256=checksums.get(approximate.LISTS_FILE)
    )


def _check_candidates(kind: IndexKind, candidates: int | None) -> int | None:
    """The number chosen, or else the usual one; none for an exact index."""
    if kind == "exact":
        if candidates is not None:
            raise InputError("an exact index has no candidates", field="candidates", fix="leave them out")
        return None
    if candidates is None:
        return approximate.CANDIDATES if kind == "approximate" else CANDIDATES
    return checked_candidates(candidates)


def check_kind(kind: str) -> IndexKind | TableKind:
    """The kind, if there is such a one.

    Raises:
        ConfigError: there is not.
    """
    known: tuple[IndexKind | TableKind, ...] = (*get_args(IndexKind), *get_args(TableKind))
    return one_of(kind, known, "index")


def _agreement(given: VectorStore, stored: VectorStore) -> PrecisionAgreement:
    if given.precision == stored.precision:
        return PrecisionAgreement(mean_cosine=1.0, lowest_cosine=1.0)
    rows = given.spaced_rows(_COMPARED_ROWS)
    cosines = cosines_with_stored(given.take(rows), stored.take(rows))
    return PrecisionAgreement(
        mean_cosine=round(float(cosines.mean()), 6) if len(rows) else 1.0,
        lowest_cosine=round(float(cosines.min(initial=1.0)), 6),
    )
