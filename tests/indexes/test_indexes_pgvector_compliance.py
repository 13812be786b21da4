"""What every index must do, asked of PostgreSQL with the checks that all indexes share."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import test_indexes_compliance as shared
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_indexes_compliance import IndexMaker, search_by_loops

from onoma.indexes.pgvector import PgVectorIndex
from onoma.types import FloatArray

pytest_plugins = ["postgres_database"]

# All checks but the one that draws indexes by their names, which is below; pytest finds them under these names.
globals().update(
    {
        name: check
        for name, check in vars(shared).items()
        if name.startswith("test_") and not hasattr(check, "hypothesis")
    }
)


@pytest.fixture(params=["pgvector-fp32", "pgvector-fp16", "pgvector_hnsw-fp32"])
def name(request: pytest.FixtureRequest, database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    found: str = request.param
    numbers = itertools.count()

    def make(vectors: FloatArray) -> PgVectorIndex:
        return PgVectorIndex.build(
            database,
            f"{found}{next(numbers)}",
            vectors,
            precision=found.rpartition("-")[2],
            approximate="hnsw" if "hnsw" in found else None,
            queries=np.zeros((0, vectors.shape[-1] if vectors.ndim else 1), np.float32),
            overwrite=True,
        )

    monkeypatch.setitem(shared.INDEXES, found, make)
    return found


@pytest.fixture
def make_index(name: str) -> IndexMaker:
    return shared.INDEXES[name]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    n=st.integers(1, 80),
    n_queries=st.integers(1, 6),
    width=st.integers(1, 9),
    k=st.integers(1, 90),
    kinds=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_loops_on_small_integers_full_of_ties(
    make_index: IndexMaker, n: int, n_queries: int, width: int, k: int, kinds: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.integers(0, kinds, (n, width)).astype(np.float32)
    queries = rng.integers(-1, 2, (n_queries, width)).astype(np.float32)
    rows, scores = make_index(vectors).search(queries, k=k)
    expected_rows, expected_scores = search_by_loops(vectors, queries, k)
    assert rows.tolist() == expected_rows
    assert scores.tolist() == expected_scores
