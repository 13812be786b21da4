"""An index in a folder whose vectors lie in PostgreSQL.

The folder says what they are (``index.json``, with their fingerprint) and in which table (``table.json``), but not in
which database, since a connection string can hold a password: it is given whenever the folder is opened, or stands in
the environment variable ``ONOMA_DATABASE``.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict

from onoma.artifacts.system import is_of_system
from onoma.errors import ConfigError, DamagedArtifactError, InputError, MismatchError, first_line
from onoma.indexes.pgvector import PgVectorIndex
from onoma.indexes.pgvector_limits import check_choices
from onoma.indexes.pgvector_server import TableName, check_server, connect, in_words, schema_to_write, seeing_extension
from onoma.indexes.pgvector_tables import write_vectors as write_table
from onoma.indexes.recall import measure_recall
from onoma.indexes.records import FORMAT_VERSION, IndexRecord, TableKind, write_index_record
from onoma.indexes.vector_store import VectorStore, as_given
from onoma.types import FloatArray

if TYPE_CHECKING:
    from typing_extensions import TypeIs

DATABASE_VARIABLE = "ONOMA_DATABASE"
TABLE_FILE = "table.json"

_APPROXIMATE: dict[TableKind, Literal["hnsw"] | None] = {"pgvector": None, "pgvector-hnsw": "hnsw"}
_EXACT_QUERIES = 100
"""What compares all is measured too, by so many queries: each of them reads the whole table."""
_LONGEST_STEM = 32
_HOW_TO_SAY = (
    f"say which with database=CONNINFO, --database CONNINFO or the environment variable {DATABASE_VARIABLE} (such as "
    "postgresql://user@host:5432/database)"
)


class TablePlace(BaseModel):
    """Where the vectors of a folder lie (file ``table.json``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    """With its schema."""
    written_in: tuple[str, ...]
    """Names of the unfinished, hidden folders in which the file was first written."""


def is_table_kind(kind: str) -> TypeIs[TableKind]:
    """Whether the vectors of such an index lie in PostgreSQL."""
    return kind in get_args(TableKind)


def chosen_database(database: str | None) -> str | None:
    """The connection string that was given, or else that of the environment."""
    return database or os.environ.get(DATABASE_VARIABLE) or None


def prepare_table(database: str | None, *, stem: str, kind: TableKind, precision: str, width: int) -> str:
    """A name, with its schema, for a new table of vectors; refuses early what writing it would refuse much later.

    Args:
        database: Connection string; unset: the environment's.
        stem: What the name shall have in it, for people who look into the database.
        kind: Of the index.
        precision: That the vectors shall be stored in.
        width: Of the vectors.

    Raises:
        ConfigError: no database was given, or the table cannot hold such vectors.
        UnavailableError: a package, the server or its extension is missing, or the server does not let us write.
    """
    approximate = _APPROXIMATE[kind]
    stored_as = check_choices(width, approximate, precision, None)
    string = chosen_database(database)
    if string is None:
        raise ConfigError(f"an index of the kind {kind} needs a database: {_HOW_TO_SAY}.")
    plain = re.sub(r"[^a-z0-9]+", "_", stem.lower())[:_LONGEST_STEM].strip("_")
    with contextlib.closing(connect(string)) as connection, in_words():
        check_server(connection, half=stored_as == "fp16", graph=approximate is not None)
        table = "_".join(part for part in ("onoma", plain, uuid.uuid4().hex[:12]) if part)
        name = TableName.parse(str(TableName(schema_to_write(connection), table)))  # as it is read from the folder
        with seeing_extension(connection, force_rollback=True):
            write_table(connection, name, VectorStore(np.empty((0, width), np.float32)), precision=stored_as)
    return str(name)


def build_in_table(
    folder: Path,
    vectors: FloatArray | Iterable[FloatArray],
    *,
    kind: TableKind,
    precision: str,
    candidates: int | None,
    queries: FloatArray | None,
    database: str | None,
    table: str | None,
) -> IndexRecord:
    """Write vectors into a new table, and what they are into a folder; see `onoma.indexes.opening.build_index`.

    Raises:
        ConfigError: no database or table was given, or an option has a value that the table cannot have.
        ArtifactExistsError: there is such a table.
        UnavailableError: a package, the server or its extension is missing, or the server refuses.
    """
    string = chosen_database(database)
    if string is None or table is None:
        raise ConfigError(f"an index of the kind {kind} needs a table and its database: {_HOW_TO_SAY}.")
    # Before the table: a folder that stays half-written must say what belongs to it, and to no other with this file.
    written_in = [part for part in folder.resolve().parts if part.startswith(".")]
    place = TablePlace(table=table, written_in=tuple(written_in))
    (folder / TABLE_FILE).write_text(place.model_dump_json() + "\n", encoding="utf-8")
    with (
        as_given(vectors, folder) as store,
        PgVectorIndex.build(
            string,
            table,
            store,
            approximate=_APPROXIMATE[kind],
            precision=precision,
            candidates=candidates,
            queries=queries,
        ) as index,
    ):
        written = index.record
        record = IndexRecord(
            format_version=FORMAT_VERSION,
            kind=kind,
            precision=written.precision,
            n_vectors=written.n_vectors,
            width=written.width,
            max_norm=written.max_norm,
            candidates=written.candidates,
            agreement=written.agreement,
            recall=written.recall or measure_recall(index, store, queries=queries, n_queries=_EXACT_QUERIES),
            fingerprint=written.fingerprint,
        )
    write_index_record(folder, record)
    return record


def open_in_table(folder: Path, record: IndexRecord, *, database: str | None) -> PgVectorIndex:
    """Open what `build_in_table` built; only what the table says about itself is read.

    Raises:
        ConfigError: no database was given.
        InputError: the database does not have the table.
        ArtifactError: the table is something else, or is damaged; or ``table.json`` is.
        MismatchError: it has other vectors.
        UnavailableError: a package, the server or its extension is missing, or the server refuses.
    """
    table = read_place(folder).table
    string = chosen_database(database)
    if string is None:
        raise ConfigError(f"{folder} has its vectors in a database, in the table {table}: {_HOW_TO_SAY}.")
    try:
        index = PgVectorIndex.open(string, table, width=record.width, fingerprint=record.fingerprint)
    except InputError as error:
        raise InputError(
            error.problem,
            path=folder,
            fix=f"name the database that it was built with ({DATABASE_VARIABLE}), or build it again",
        ) from None
    kind = next(kind for kind, approximate in _APPROXIMATE.items() if approximate == index.record.approximate)
    if (len(index), kind) != (record.n_vectors, record.kind):
        index.close()
        raise MismatchError(f"The table '{table}' is not the one that {folder} was built with. Build it again.")
    return index


def read_place(folder: Path) -> TablePlace:
    """In which table the vectors of a folder lie.

    Raises:
        DamagedArtifactError: the file that says it is missing or cannot be read.
    """
    file = folder / TABLE_FILE
    try:
        return TablePlace.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if is_of_system(error):
            raise
        raise DamagedArtifactError(f"{file} cannot be read ({first_line(error)}). Build the index again.") from None
