"""A PostgreSQL server for the tests that want one: ``pytest_plugins = ["postgres_database"]``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

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
