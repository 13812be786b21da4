"""A PostgreSQL server for the tests that want one: ``pytest_plugins = ["postgres_database"]``."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from postgres_server import NoServerError, private_server


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """Connection string of an empty database with pgvector; where there can be none, tests of it are skipped."""
    pytest.importorskip("psycopg", reason="the extra 'pgvector' is not installed")
    pytest.importorskip("pgvector", reason="the extra 'pgvector' is not installed")
    with contextlib.ExitStack() as running:
        try:
            string = running.enter_context(private_server())
        except NoServerError as error:
            pytest.skip(f"no PostgreSQL with pgvector: {error}")
        yield string


_numbers = itertools.count()
_PASSWORD = "geheim'nis"


@dataclass(frozen=True)
class Schema:
    """Where one test's tables are.

    Attributes:
        name: Of the schema.
        string: Connection string, with a password that the server does not ask for.
        plain: The same without schema and password.
        password: What must stand nowhere.
    """

    name: str
    string: str
    plain: str
    password: str = _PASSWORD

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """A statement of somebody else."""
        import psycopg

        with psycopg.connect(self.plain, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def tables(self) -> list[str]:
        """Names with the schema, in alphabetical order."""
        found = self.run(
            f"SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = '{self.name}'::regnamespace"
        )
        return sorted(f"{self.name}.{name}" for (name,) in found)


@pytest.fixture
def schema(database: str) -> Iterator[Schema]:
    """A schema for one test."""
    import psycopg

    name = f"schema_{next(_numbers)}"
    string = psycopg.conninfo.make_conninfo(database, password=_PASSWORD, options=f"-c search_path={name}")
    made = Schema(name, string, database)
    made.run(f"CREATE SCHEMA {name}")
    yield made
    made.run(f"DROP SCHEMA {name} CASCADE")
