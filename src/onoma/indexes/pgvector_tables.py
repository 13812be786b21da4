"""Tables of vectors in PostgreSQL with pgvector: how they are written, and read again.

An index is one table with two columns, ``id`` (bigint, the row, from 0) and ``embedding`` (``vector(W)``, or
``halfvec(W)`` in half precision), and with a comment that says what it is: a `PgVectorRecord` as JSON. A comment stays
with its table whatever becomes of that: renamed, dumped and restored, dropped.

A table is written within one transaction and under a name of its own, which at the end becomes the right one. Others
see all of it or nothing, and whoever searches a table that is being replaced goes on until then.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from onoma.errors import (
    ArtifactExistsError,
    DamagedArtifactError,
    FormatVersionError,
    InputError,
    NotAnArtifactError,
    first_line,
)
from onoma.indexes.pgvector_limits import COLUMN_TYPES, MOST_COMPONENTS, TablePrecision
from onoma.indexes.pgvector_server import GRAPH_KEY, ID_KEY, TableName, one_row, seeing_extension, words_of
from onoma.indexes.recall import Recall
from onoma.indexes.records import PrecisionAgreement
from onoma.indexes.vector_store import PART_ROWS, VectorStore, cosines_with_stored, longest_of, rounded
from onoma.types import FloatArray

if TYPE_CHECKING:
    from psycopg import sql

    from onoma.indexes.pgvector_server import Connection

FORMAT_VERSION = 1

_KIND = "onoma-vectors"
_NEIGHBOURS, _NEIGHBOURS_SOUGHT = 16, 128
"""Of each vector in the graph, and vectors looked at closely to choose them from."""
_IN_PAGE_BYTES = 8000
"""Vectors up to this size lie in the table itself, of which a page has 8 KiB; larger ones beside it."""


class PgVectorRecord(BaseModel):
    """What a table of vectors says about itself, in its comment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["onoma-vectors"] = "onoma-vectors"
    format_version: int = Field(default=FORMAT_VERSION, ge=1)
    precision: TablePrecision
    n_vectors: int = Field(ge=0)
    width: int = Field(ge=1, le=MOST_COMPONENTS)
    max_norm: float = Field(ge=0, allow_inf_nan=False)
    """Bound of the lengths of the stored vectors."""
    fingerprint: str
    """SHA-256 of width, precision, and the stored vectors in order."""
    approximate: Literal["hnsw"] | None
    candidates: int | None
    """Rows scored exactly for each query; none for an exact index."""
    agreement: PrecisionAgreement
    """How far the stored vectors are from those given."""
    recall: Recall | None = None
    """Against exhaustive search of the vectors as given; none where it is that search."""


def read_record(connection: Connection, name: TableName) -> tuple[PgVectorRecord, int]:
    """What a table says about itself, checked against what it is, and its number in the database's catalogue.

    Raises:
        InputError: there is no such table.
        NotAnArtifactError: there is something else of this name.
        FormatVersionError: written by a newer Onoma.
        DamagedArtifactError: the table is not what its comment says.
    """
    found = _look_up(connection, name)
    if found is None:
        raise InputError(
            f"there is no table '{name}' in the database '{connection.info.dbname}'",
            fix="build the index, or check name, schema and database",
        )
    number, comment = found
    raw = _ours(comment)
    if raw is None:
        raise NotAnArtifactError(
            f"The table '{name}' was not written by Onoma, or its comment was changed. Build the index again."
        )
    if isinstance(raw.get("format_version"), int) and raw["format_version"] > FORMAT_VERSION:
        raise FormatVersionError(
            f"The table '{name}' is of format {raw['format_version']}; this Onoma reads up to {FORMAT_VERSION}. Update "
            "Onoma, or build the index again."
        )
    try:
        record = PgVectorRecord.model_validate(raw)
    except ValidationError as error:
        raise DamagedArtifactError(
            f"The comment of the table '{name}' has been changed ({first_line(error)}). Build the index again."
        ) from None
    is_type = f"{COLUMN_TYPES[record.precision]}({record.width})"
    columns: dict[str, str] = dict(
        connection.execute(
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
            (number,),
        ).fetchall()
    )
    if (columns.get("id"), columns.get("embedding")) != ("bigint", is_type):
        raise DamagedArtifactError(
            f"The table '{name}' has no columns id of type bigint and embedding of type {is_type}. Build the index "
            "again."
        )
    if record.approximate is not None and not _has_graph(connection, number):
        raise DamagedArtifactError(f"The table '{name}' has lost its HNSW index. Build the index again.")
    rows = one_row(connection.execute(_sql("SELECT min(id), max(id) FROM {}", name)))
    if rows != ((0, record.n_vectors - 1) if record.n_vectors else (None, None)):
        raise DamagedArtifactError(
            f"The table '{name}' should have the rows 0 to {record.n_vectors - 1}; it has {rows[0]} to {rows[1]}. "
            "Build the index again."
        )
    return record, number


@contextmanager
def writing(connection: Connection, name: TableName, *, overwrite: bool) -> Iterator[TableName]:
    """Give the name of a table to make; on leaving the block it takes the place of ``name``.

    All of it is one transaction. If the block raises, or the process dies, nothing has changed.

    Raises:
        ArtifactExistsError: there is such a table, and it may not be replaced.
    """
    import psycopg

    aside = name.renamed(f"onoma_{uuid.uuid4().hex}")
    try:
        with seeing_extension(connection):
            _ensure_free(connection, name, overwrite=overwrite)
            yield aside
            _ensure_free(connection, name, overwrite=overwrite)
            connection.execute(_sql("DROP TABLE IF EXISTS {}", name))
            table = psycopg.sql.Identifier(name.table)
            connection.execute(psycopg.sql.SQL("ALTER TABLE {} RENAME TO {}").format(aside.quoted, table))
            for key in (ID_KEY, GRAPH_KEY):
                connection.execute(
                    psycopg.sql.SQL("ALTER INDEX IF EXISTS {} RENAME TO {}").format(
                        aside.renamed(aside.table + key).quoted, psycopg.sql.Identifier(name.table + key)
                    )
                )
    except (psycopg.errors.DuplicateTable, psycopg.errors.UniqueViolation):
        raise ArtifactExistsError(
            f"There is something named like the table '{name}' or its indexes, made meanwhile or by others. Choose "
            "another name."
        ) from None
    except psycopg.errors.DependentObjectsStillExist as error:
        raise ArtifactExistsError(
            f"The table '{name}' is not replaced, because something in the database depends on it "
            f"({words_of(error)}). Drop that first, or choose another name."
        ) from None


def write_vectors(
    connection: Connection, name: TableName, vectors: VectorStore, *, precision: TablePrecision
) -> PgVectorRecord:
    """Make a table of vectors, without a graph and without the comment.

    Returns:
        What will be in the comment, of an exact index.

    Raises:
        InputError: a vector is not finite, or too large for half precision.
    """
    from pgvector import HalfVector
    from psycopg import sql

    is_type = sql.SQL(COLUMN_TYPES[precision])  # one of two words
    width = sql.Literal(vectors.width)
    connection.execute(
        sql.SQL("CREATE TABLE {} (id bigint NOT NULL, embedding {}({}) NOT NULL)").format(name.quoted, is_type, width)
    )
    if vectors.width * (4 if precision == "fp32" else 2) <= _IN_PAGE_BYTES:
        connection.execute(_sql("ALTER TABLE {} ALTER embedding SET STORAGE PLAIN", name))
    digest = _digest(precision, vectors.width)
    longest, total_cosine, lowest_cosine, row = 0.0, 0.0, 1.0, 0
    with connection.cursor().copy(_sql("COPY {} (id, embedding) FROM STDIN (FORMAT BINARY, FREEZE)", name)) as copy:
        copy.set_types(["int8", COLUMN_TYPES[precision]])
        for part in vectors.parts():
            longest_of(part, first_row=row)  # before rounding, which would hide what was given
            stored, _ = rounded(part, precision)
            read_back = stored.astype(np.float32)
            if not np.isfinite(read_back).all():
                raise InputError(
                    f"one of the vectors from {row} on has components too large for half precision",
                    field="precision",
                    expected="components up to 65,504",
                    fix="store them as fp32",
                )
            longest = max(longest, longest_of(read_back))
            cosines = cosines_with_stored(part, read_back)
            total_cosine += float(cosines.sum())
            lowest_cosine = min(lowest_cosine, float(cosines.min(initial=1.0)))
            digest.update(stored.astype(stored.dtype.newbyteorder("<"), copy=False).tobytes())
            for vector in stored:
                copy.write_row((row, vector if precision == "fp32" else HalfVector(vector)))
                row += 1
    connection.execute(
        sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} PRIMARY KEY (id)").format(
            name.quoted, sql.Identifier(name.table + ID_KEY)
        )
    )
    connection.execute(_sql("ANALYZE {}", name))
    is_same = precision == "fp32" or row == 0
    return PgVectorRecord(
        precision=precision,
        n_vectors=row,
        width=vectors.width,
        max_norm=longest,
        fingerprint=digest.hexdigest(),
        approximate=None,
        candidates=None,
        agreement=PrecisionAgreement(
            mean_cosine=1.0 if is_same else round(total_cosine / row, 6),
            lowest_cosine=1.0 if is_same else round(lowest_cosine, 6),
        ),
    )


def write_graph(connection: Connection, name: TableName, *, precision: TablePrecision) -> None:
    """Make the HNSW index of a table of vectors."""
    from psycopg import sql

    connection.execute(
        sql.SQL("CREATE INDEX {} ON {} USING hnsw (embedding {}) WITH (m = {}, ef_construction = {})").format(
            sql.Identifier(name.table + GRAPH_KEY),
            name.quoted,
            sql.SQL(f"{COLUMN_TYPES[precision]}_ip_ops"),  # one of two words
            sql.Literal(_NEIGHBOURS),
            sql.Literal(_NEIGHBOURS_SOUGHT),
        )
    )


def write_record(connection: Connection, name: TableName, record: PgVectorRecord) -> None:
    """Make the comment of a table of vectors, with which it is an index."""
    from psycopg import sql

    text = record.model_dump_json()
    connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(name.quoted, sql.Literal(text)))


def read_fingerprint(connection: Connection, name: TableName, record: PgVectorRecord) -> str:
    """The fingerprint of what a table really holds; all of it is read."""
    digest = _digest(record.precision, record.width)
    stored_type = "<f4" if record.precision == "fp32" else "<f2"
    rows: list[FloatArray] = []
    statement = _sql("COPY (SELECT embedding::vector FROM {} ORDER BY id) TO STDOUT (FORMAT BINARY)", name)
    with seeing_extension(connection), connection.cursor().copy(statement) as copy:
        copy.set_types(["vector"])
        for (vector,) in copy.rows():
            rows.append(vector.to_numpy())
            if len(rows) == PART_ROWS:
                digest.update(np.stack(rows).astype(stored_type).tobytes())
                rows.clear()
    if rows:
        digest.update(np.stack(rows).astype(stored_type).tobytes())
    return digest.hexdigest()


def drop_table(connection: Connection, name: TableName) -> None:
    """Remove a table of vectors, if it is there and Onoma wrote it."""
    found = _look_up(connection, name)
    if found is not None and _ours(found[1]) is not None:
        connection.execute(_sql("DROP TABLE {}", name))


def _look_up(connection: Connection, name: TableName) -> tuple[int, str | None] | None:
    """A table's number and comment."""
    found = connection.execute(
        "SELECT oid::bigint, CASE WHEN relkind = 'r' THEN obj_description(oid, 'pg_class') END FROM pg_class "
        "WHERE oid = to_regclass(%s)",
        (name.quoted.as_string(connection),),
    ).fetchone()
    return None if found is None else (int(found[0]), found[1])


def _has_graph(connection: Connection, number: int) -> bool:
    found = connection.execute(
        "SELECT FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam "
        "WHERE indrelid = %s AND amname = 'hnsw' AND indisvalid",
        (number,),
    )
    return found.fetchone() is not None


def _ours(comment: str | None) -> dict[str, Any] | None:
    """A comment that Onoma wrote."""
    try:
        raw = json.loads(comment or "")
    except ValueError:
        return None
    return raw if isinstance(raw, dict) and raw.get("kind") == _KIND else None


def _ensure_free(connection: Connection, name: TableName, *, overwrite: bool) -> None:
    found = _look_up(connection, name)
    if found is None:
        return
    if _ours(found[1]) is None:
        raise ArtifactExistsError(f"'{name}' is there already and was not written by Onoma; it will not be replaced.")
    if not overwrite:
        raise ArtifactExistsError(
            f"The table '{name}' exists already. Choose another name, or allow overwriting (--force, overwrite=True)."
        )


def _digest(precision: TablePrecision, width: int) -> hashlib._Hash:
    return hashlib.sha256(f"{precision} {width}\n".encode())


def _sql(statement: str, name: TableName) -> sql.Composed:
    """A statement of this module with a table's name where it has ``{}``."""
    from psycopg import sql

    return sql.SQL(statement).format(name.quoted)
