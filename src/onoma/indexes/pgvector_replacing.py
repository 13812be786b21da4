"""Tables of folders that take the place of others: none is lost before its time, and none stays behind.

A folder with an index in PostgreSQL gets a table of its own, under a name that no other has. So the folder that is
replaced is whole until the new one has its place, and the renaming of folders alone decides which of the two counts.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from onoma.artifacts import leftovers
from onoma.errors import DamagedArtifactError, OnomaError
from onoma.indexes.pgvector_folder import TABLE_FILE, TablePlace, chosen_database, read_place
from onoma.indexes.pgvector_server import TableName, connect, in_words
from onoma.indexes.pgvector_tables import drop_table

_LOCK_TIMEOUT = "10s"
"""How long to wait for those who read a table that is dropped."""


class TablesOfWriting:
    """The tables that the writing of one artefact has to do with."""

    def __init__(self) -> None:
        self.written: list[str] = []
        """Names of those that were written for it."""
        self.replaced: list[str] = []
        """Names of those of the folder whose place it takes."""

    def note_replaced(self, folder: Path) -> None:
        """Note the tables of the folder that is replaced: only then is it sure which that is."""
        self.replaced += _tables([folder])


@contextlib.contextmanager
def replacing_tables(
    place: str | Path, database: str | None, *, keeping: Path | None = None
) -> Iterator[TablesOfWriting]:
    """Around the writing of an artefact: drop the tables that nothing needs any more.

    Those that were written for folders which stayed unfinished, because their processes died, are dropped at once. When
    the block ends, those of the folder that was replaced and those that were written are, but for what the folder that
    is there now needs. Tables of another database, and what Onoma did not write, stay. Where no database is known,
    nothing is done.

    Args:
        place: Of the artefact.
        database: Connection string; unset: the environment's.
        keeping: Another folder, which may share the table of the one at ``place``.

    Yields:
        What is to be told of the writing.

    Warns:
        RuntimeWarning: a table could not be dropped.
    """
    drop_unfinished(place, database)
    kept = [] if keeping is None else _tables([keeping])
    tables = TablesOfWriting()
    try:
        yield tables
    finally:
        # Also if the block raised: that can be after the folder was renamed.
        needed = [*_tables([Path(place)]), *kept]
        _drop([table for table in (*tables.replaced, *tables.written) if table not in needed], database)


def drop_unfinished(place: str | Path, database: str | None) -> None:
    """Drop the tables that were written for folders at a place which stayed unfinished, because their processes died.

    To be called before something else removes these folders, and with them what is known of the tables.

    Args:
        place: Of the artefact.
        database: Connection string; unset: the environment's. Where none is known nothing is done.

    Warns:
        RuntimeWarning: a table could not be dropped.
    """
    # A folder that was moved away, or was about to be amended, can have the table of a linker that is in use.
    unfinished = [
        found.table
        for folder in leftovers(place)
        for found in _places(file.parent for file in folder.rglob(TABLE_FILE))
        if folder.name in found.written_in
    ]
    _drop(unfinished, database)


def tables_in(folder: Path) -> list[str]:
    """The tables that a folder, or one inside it, names."""
    return _tables(file.parent for file in folder.rglob(TABLE_FILE))


def _tables(folders: Iterable[Path]) -> list[str]:
    return [found.table for found in _places(folders)]


def _places(folders: Iterable[Path]) -> list[TablePlace]:
    found = []
    for folder in folders:
        with contextlib.suppress(DamagedArtifactError):
            found.append(read_place(folder))
    return found


def _drop(tables: Sequence[str], database: str | None) -> None:
    string = chosen_database(database)
    if string is None or not tables:
        return
    try:
        with contextlib.closing(connect(string)) as connection:
            for table in tables:
                with in_words(), connection.transaction():
                    connection.execute("SELECT set_config('lock_timeout', %s, true)", (_LOCK_TIMEOUT,))
                    drop_table(connection, TableName.parse(table))
    except OnomaError as error:
        warnings.warn(
            f"{', '.join(tables)}: no longer needed, and perhaps still in the database. {error} Drop it yourself.",
            RuntimeWarning,
            stacklevel=2,
        )
