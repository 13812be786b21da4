"""A PostgreSQL server with pgvector: connections to it, names of its tables, and its errors in words."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from onoma.errors import ConfigError, UnavailableError, missing_extra
from onoma.forking import Turns

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

    Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

ID_KEY, GRAPH_KEY = "_id", "_graph"
"""What the names of a table's indexes end with."""
_LONGEST_NAME = 63
"""Bytes of a name in PostgreSQL, which shortens longer ones without a word."""
_CONNECT_TIMEOUT_S = 10
_NO_LOG = logging.NullHandler()
"""Where a program has set up no logging, Python writes warnings to standard error. Psycopg's, when a connection is
lost, name user and database, and the loss is told as an error anyway."""


@dataclass(frozen=True)
class TableName:
    """A table's name, with its schema if that was given."""

    schema: str | None
    table: str

    @classmethod
    def parse(cls, name: str) -> TableName:
        """``table`` or ``schema.table``; any characters, also those that SQL would want quoted.

        Raises:
            ConfigError: a part is empty, too long, or has a character that no name can have.
        """
        schema, dot, table = name.rpartition(".")
        longest = _LONGEST_NAME - max(len(ID_KEY), len(GRAPH_KEY))
        for part, limit in ((table, longest), *([(schema, _LONGEST_NAME)] if dot else [])):
            if not part or "\0" in part or "." in part or len(part.encode()) > limit:
                raise ConfigError(
                    f"'{name}' cannot be the name of a table of vectors: give TABLE or SCHEMA.TABLE, without further "
                    f"dots, and a TABLE of 1 to {longest} bytes. (A schema whose own name has a dot cannot be used: "
                    "name another one, or another search_path.)"
                )
        return cls(schema if dot else None, table)

    def __str__(self) -> str:
        return self.table if self.schema is None else f"{self.schema}.{self.table}"

    def renamed(self, table: str) -> TableName:
        """Another name in the same schema."""
        return TableName(self.schema, table)

    @property
    def quoted(self) -> sql.Identifier:
        """As it can stand in a statement."""
        from psycopg import sql

        return sql.Identifier(*self._parts)

    @property
    def quoted_beside_parameters(self) -> sql.Identifier:
        """As it can stand in a statement with parameters, in which psycopg takes a percent sign for one."""
        from psycopg import sql

        return sql.Identifier(*(part.replace("%", "%%") for part in self._parts))

    @property
    def _parts(self) -> tuple[str, ...]:
        return (self.table,) if self.schema is None else (self.schema, self.table)


class Session:
    """The connection of one index, for all threads of a process, which take turns.

    It is opened again where it is closed, and in a process that was forked: two that share one would get each other's
    answers.

    Args:
        connection_string: See `connect`.
        connection: What it gave.
    """

    def __init__(self, connection_string: str, connection: Connection) -> None:
        self._connection_string = connection_string
        self._turns = Turns()
        self._use(connection)

    @property
    def lock(self) -> threading.RLock:
        """Held by the thread whose turn it is."""
        return self._turns.lock

    def connection(self) -> Connection:
        """The connection; only for the thread whose turn it is.

        Raises:
            UnavailableError: it had to be opened again, and cannot be.
        """
        if self._connection.closed or self._process != os.getpid():
            opened = connect(self._connection_string)
            if self._process == os.getpid():  # after a fork it keeps the parent's connection, not ours to close
                self._closer.detach()
            self._use(opened)
        return self._connection

    def close(self) -> None:
        """Give the connection back."""
        with self.lock:
            self._closer()

    def _use(self, connection: Connection) -> None:
        self._connection, self._process = connection, os.getpid()
        self._closer = weakref.finalize(self, _close, connection, self._process)


def connect(connection_string: str) -> Connection:
    """A connection to a database that has the extension, ready for vectors.

    Raises:
        UnavailableError: a package is missing, the server cannot be reached, or the database lacks the extension.
        ConfigError: the connection string cannot be read.
    """
    try:
        import psycopg
        from pgvector.psycopg import register_vector
    except ImportError as error:
        raise missing_extra(str(error.name or "psycopg"), "pgvector", "an index in PostgreSQL") from None
    logging.getLogger("psycopg").addHandler(_NO_LOG)
    try:
        settings = psycopg.conninfo.conninfo_to_dict(connection_string)
    except psycopg.Error:  # its text could repeat a password
        raise ConfigError(
            "the connection string cannot be read; give a URL such as postgresql://user@host:5432/database, or "
            "settings such as 'host=... dbname=... user=...'."
        ) from None
    if "://" in connection_string and any("@" in str(settings.get(part)) for part in ("host", "port", "dbname")):
        # Such as a password with an '@' or '/' as it is: errors of the server would show what is behind it.
        raise ConfigError(
            "the connection string has an '@' where there can be none. In a URL write special characters of a password "
            "as %40 (for @), %2F (/) or %25 (%), or give settings: 'host=... dbname=... user=... password=...'."
        )
    told = psycopg.conninfo.make_conninfo(
        connection_string,
        client_encoding="UTF8",  # a database in SQL_ASCII would give bytes
        connect_timeout=settings.get("connect_timeout", _CONNECT_TIMEOUT_S),
    )
    with in_words():
        # Statements are not prepared: poolers (PgBouncer) hand them to servers that do not know them.
        connection = psycopg.connect(told, autocommit=True, prepare_threshold=None)
    try:
        with in_words():
            _check_extension(connection)
            with seeing_extension(connection):
                register_vector(connection)
                connection.execute("SELECT '[0]'::vector")  # loads the library, and with it the names of its settings
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def in_words() -> Iterator[None]:
    """Say an error of the server as one of ours.

    Raises:
        UnavailableError: the server cannot be reached, or did not do what was asked.
    """
    import psycopg

    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise UnavailableError(
            f"PostgreSQL does not allow it ({words_of(error)}). Ask the owner of the database for the right to do so."
        ) from None
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise UnavailableError(
            f"The database can only be read ({words_of(error)}). It is a replica, or this user's transactions are set "
            "to be so: name the primary server, or another user."
        ) from None
    except psycopg.errors.QueryCanceled as error:
        raise UnavailableError(
            f"PostgreSQL broke a statement off ({words_of(error)}). Where that is its limit of time, raise "
            "statement_timeout for this user or in the connection string."
        ) from None
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory) as error:
        raise UnavailableError(
            f"PostgreSQL is short of disk or memory ({words_of(error)}). Make room on the server, and run the command "
            "again: it has taken back what it had written."
        ) from None
    except psycopg.OperationalError as error:
        raise UnavailableError(
            f"PostgreSQL cannot be reached, or cannot go on ({words_of(error)}). See whether the server runs, and "
            "whether the connection string has the right server, database, user and password."
        ) from None
    except psycopg.Error as error:
        raise UnavailableError(f"PostgreSQL refused a statement ({words_of(error)}).") from None


def check_server(connection: Connection, *, half: bool, graph: bool) -> None:
    """Refuse what the server's pgvector is too old for.

    Raises:
        UnavailableError: it has no half precision (before 0.7), or no HNSW (before 0.5).
    """
    with seeing_extension(connection):
        version, has_half, has_graph = one_row(
            connection.execute(
                "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'), "
                "to_regtype('halfvec') IS NOT NULL, EXISTS (SELECT FROM pg_am WHERE amname = 'hnsw')"
            )
        )
    for is_asked, is_there, what, since in (
        (half, has_half, "vectors in half precision (fp16)", "0.7"),
        (graph, has_graph, "HNSW", "0.5"),
    ):
        if is_asked and not is_there:
            raise UnavailableError(
                f"The database has pgvector {version}; {what} needs {since} or newer. Install a newer one on the "
                "server and run ALTER EXTENSION vector UPDATE there."
            )


def schema_to_write(connection: Connection) -> str:
    """The schema in which a table without one would be made: the first there is in the search path.

    Raises:
        ConfigError: there is none.
    """
    path, schema = one_row(connection.execute("SELECT current_setting('search_path'), current_schema()"))
    if schema is None:
        raise ConfigError(
            f"there is no schema to make a table in: none of the search path ({path}) exists, or may be used. Create "
            "it, or name another (options='-c search_path=SCHEMA')."
        )
    return str(schema)


@contextmanager
def seeing_extension(connection: Connection, *, force_rollback: bool = False) -> Iterator[None]:
    """A transaction in which the extension's types can be named, in whatever schema it is.

    Nothing is set for longer: behind a pooler (PgBouncer) the next transaction may go to another connection of the
    server, and this one to another client.
    """
    with connection.transaction(force_rollback=force_rollback):
        connection.execute(
            "SELECT set_config('search_path', "
            "concat_ws(', ', nullif(current_setting('search_path'), ''), quote_ident(nspname)), true) "
            "FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
            "WHERE extname = 'vector' AND NOT nspname = ANY (current_schemas(true))"
        )
        yield


def _check_extension(connection: Connection) -> None:
    """Refuse a database without the extension, or a user who may not use it.

    Raises:
        UnavailableError: so it is.
    """
    found = connection.execute(
        "SELECT nspname::text, has_schema_privilege(pg_namespace.oid, 'USAGE') "
        "FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"
    ).fetchone()
    if found is None:
        (is_installed,) = one_row(
            connection.execute("SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')")
        )
        first = "" if is_installed else "Install pgvector on the server (Debian: apt install postgresql-17-pgvector). "
        raise UnavailableError(
            f"The database '{connection.info.dbname}' does not have the extension pgvector. {first}"
            "Run in that database: CREATE EXTENSION vector."
        )
    schema, may_use = found
    if not may_use:
        raise UnavailableError(
            f"The user '{connection.info.user}' may not use the schema '{schema}', in which the extension pgvector is. "
            "Ask the owner of the database for USAGE on it (GRANT USAGE ON SCHEMA)."
        )


def one_row(cursor: psycopg.Cursor[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The first row that a statement gave, where it has one whatever the database."""
    found = cursor.fetchone()
    if found is None:
        raise UnavailableError("PostgreSQL gave no answer to a question that always has one. Ask again.")
    return found


def words_of(error: psycopg.Error) -> str:
    """What the server said, on one line."""
    return " ".join(str(error.diag.message_primary or error).split()).rstrip(".")


def _close(connection: Connection, process: int) -> None:
    """Not in a forked process, which would end the conversation of the one that it was forked from."""
    if process == os.getpid():
        connection.close()
