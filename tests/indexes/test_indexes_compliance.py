"""What every index must do, in every precision; an index joins by adding itself to ``KINDS``.

Those that are only nearly exact compare a query with every vector where there are so few, and are exact here; what they
do with more is tested in test_indexes_candidates.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_data import in_precision, unit_vectors

from onoma.errors import InputError, ShapeError
from onoma.indexes import ApproximateIndex, ExactIndex, Index, SignBitIndex, VectorStore
from onoma.indexes.protocol import NarrowableIndex
from onoma.types import FloatArray, RowArray

IndexMaker = Callable[[FloatArray], Index]

KINDS: dict[str, Callable[[VectorStore], NarrowableIndex]] = {
    "exact": ExactIndex,
    "sign-bits": SignBitIndex.build,
    "approximate": ApproximateIndex.build,
}


def built(build: Callable[[VectorStore], Index], precision: str, vectors: FloatArray) -> Index:
    VectorStore(vectors)  # refuses what is refused before rounding too
    return build(in_precision(precision, vectors))


class AmongOthers:
    """An index that has each vector twice, narrowed to one of each and numbered as if it had no others."""

    is_approximate = False

    def __init__(self, build: Callable[[VectorStore], NarrowableIndex], vectors: FloatArray) -> None:
        own = in_precision("fp32", vectors).part(0, len(vectors))
        every = np.zeros((2 * len(own) + 1, own.shape[1]), np.float32)
        every[1::2], every[2::2] = own, own
        self._index = build(VectorStore(every)).among(np.arange(1, len(every), 2))

    @property
    def width(self) -> int:
        return self._index.width

    def __len__(self) -> int:
        return len(self._index)

    def search(self, queries: FloatArray, *, k: int = 5) -> tuple[RowArray, FloatArray]:
        rows, scores = self._index.search(queries, k=k)
        assert (rows % 2 == 1).all()
        return rows // 2, scores


INDEXES: dict[str, IndexMaker] = {"exact": ExactIndex} | {
    f"{kind}-among-fp32": partial(AmongOthers, build) for kind, build in KINDS.items()
}
INDEXES |= {
    f"{kind}-{precision}": partial(built, build, precision)
    for kind, build in KINDS.items()
    for precision in ("fp32", "fp16", "int16", "int8")
}


@pytest.fixture(params=list(INDEXES))
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def make_index(name: str) -> IndexMaker:
    return INDEXES[name]


def as_stored(name: str, vectors: FloatArray) -> FloatArray:
    """Vectors as the index sees them, after rounding."""
    return in_precision(name.rpartition("-")[2], vectors).part(0, len(vectors)) if "-" in name else vectors


def search_by_loops(vectors: FloatArray, queries: FloatArray, k: int) -> tuple[list[list[int]], list[list[float]]]:
    """The oracle: plain Python numbers, one product at a time."""
    all_rows, all_scores = [], []
    for query in queries.tolist():
        scored = []
        for row, vector in enumerate(vectors.tolist()):
            score = float(np.float32(sum(a * b for a, b in zip(query, vector, strict=True))))
            scored.append((-score, row))
        scored.sort()
        all_rows.append([row for _, row in scored[:k]])
        all_scores.append([-negated for negated, _ in scored[:k]])
    return all_rows, all_scores


@pytest.mark.parametrize("n", [1, 15, 16, 17, 100, 333])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_equals_loops(name: str, n: int, k: int) -> None:
    vectors, queries = unit_vectors(n, 12), unit_vectors(7, 12, seed=1)
    rows, scores = INDEXES[name](vectors).search(queries, k=k)
    expected_rows, expected_scores = search_by_loops(as_stored(name, vectors), queries, k)
    assert rows.tolist() == expected_rows
    np.testing.assert_allclose(scores, expected_scores, rtol=0, atol=1e-7)
    assert rows.dtype == np.int64
    assert scores.dtype == np.float32


@settings(max_examples=100)
@given(
    n=st.integers(1, 80),
    n_queries=st.integers(1, 6),
    width=st.integers(1, 9),
    k=st.integers(1, 90),
    kinds=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(sorted(INDEXES)),
)
def test_equals_loops_on_small_integers_full_of_ties(
    n: int, n_queries: int, width: int, k: int, kinds: int, seed: int, name: str
) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.integers(0, kinds, (n, width)).astype(np.float32)
    queries = rng.integers(-1, 2, (n_queries, width)).astype(np.float32)
    rows, scores = INDEXES[name](vectors).search(queries, k=k)
    expected_rows, expected_scores = search_by_loops(as_stored(name, vectors), queries, k)
    if "int" not in name:  # whose numbers are not whole any more, and sums of them can differ in the last digit
        assert rows.tolist() == expected_rows
        assert scores.tolist() == expected_scores
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-6, atol=1e-6)


def test_k_beyond_the_number_of_vectors_gives_all(make_index: IndexMaker) -> None:
    rows, scores = make_index(unit_vectors(3, 4)).search(unit_vectors(2, 4, seed=1), k=10)
    assert rows.shape == scores.shape == (2, 3)
    assert sorted(rows[0].tolist()) == [0, 1, 2]


def test_empty_index(make_index: IndexMaker) -> None:
    index = make_index(np.empty((0, 4), np.float32))
    rows, scores = index.search(unit_vectors(2, 4), k=5)
    assert len(index) == 0
    assert rows.shape == scores.shape == (2, 0)


def test_no_queries(make_index: IndexMaker) -> None:
    rows, scores = make_index(unit_vectors(9, 4)).search(np.empty((0, 4), np.float32), k=5)
    assert rows.shape == scores.shape == (0, 5)


def test_equal_vectors_come_by_row(make_index: IndexMaker) -> None:
    vectors = np.repeat(unit_vectors(1, 8), 100, axis=0)
    rows, scores = make_index(vectors).search(vectors[:1], k=30)
    assert rows.tolist() == [list(range(30))]
    assert len(set(scores.ravel().tolist())) == 1


def test_one_answer_whatever_the_batch(make_index: IndexMaker) -> None:
    vectors, queries = unit_vectors(700, 33), unit_vectors(50, 33, seed=1)
    vectors[300:] = vectors[:400]  # repeated names have repeated vectors
    index = make_index(vectors)
    together = index.search(queries, k=7)
    for size in (1, 3, 50):
        parts = [index.search(queries[start : start + size], k=7) for start in range(0, 50, size)]
        assert np.array_equal(np.concatenate([rows for rows, _ in parts]), together[0])
        assert np.concatenate([scores for _, scores in parts]).tobytes() == together[1].tobytes()


def test_a_longer_answer_begins_with_the_shorter(make_index: IndexMaker) -> None:
    vectors, queries = unit_vectors(400, 16), unit_vectors(20, 16, seed=1)
    index = make_index(vectors)
    long_rows, long_scores = index.search(queries, k=40)
    short_rows, short_scores = index.search(queries, k=6)
    assert np.array_equal(long_rows[:, :6], short_rows)
    assert np.array_equal(long_scores[:, :6], short_scores)


def test_vectors_find_themselves(make_index: IndexMaker) -> None:
    vectors = unit_vectors(500, 24)
    rows, scores = make_index(vectors).search(vectors, k=1)
    assert rows[:, 0].tolist() == list(range(500))
    np.testing.assert_allclose(scores, 1, atol=1e-3)


def test_zero_vectors_are_equally_near_to_everything(make_index: IndexMaker) -> None:
    vectors = unit_vectors(30, 6)
    vectors[[4, 9]] = 0
    rows, scores = make_index(vectors).search(np.concatenate([vectors[4:5], -vectors[:1]]), k=30)
    assert rows[0].tolist() == list(range(30))
    assert set(scores[0].tolist()) == {0.0}
    assert scores[1][[rows[1].tolist().index(4), rows[1].tolist().index(9)]].tolist() == [0.0, 0.0]


def test_searching_changes_nothing(make_index: IndexMaker) -> None:
    vectors, queries = unit_vectors(50, 5), unit_vectors(4, 5, seed=1)
    before = vectors.copy(), queries.copy()
    make_index(vectors).search(queries, k=3)
    assert np.array_equal(vectors, before[0])
    assert np.array_equal(queries, before[1])


@pytest.mark.parametrize("shape", [(2, 5), (2, 3), (4,), (1, 2, 4)])
def test_queries_of_another_shape_are_refused(make_index: IndexMaker, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="4"):
        make_index(unit_vectors(9, 4)).search(np.zeros(shape, np.float32), k=1)


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(make_index: IndexMaker, k: int) -> None:
    with pytest.raises(InputError, match="field k"):
        make_index(unit_vectors(9, 4)).search(unit_vectors(1, 4), k=k)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_queries_that_are_not_finite_are_refused(make_index: IndexMaker, value: float) -> None:
    queries = unit_vectors(3, 4)
    queries[1, 2] = value
    with pytest.raises(InputError, match="not finite"):
        make_index(unit_vectors(9, 4)).search(queries, k=1)


def test_queries_whose_products_are_no_numbers_are_refused(make_index: IndexMaker) -> None:
    with pytest.raises(InputError, match="too large for products"):
        make_index(unit_vectors(9, 4)).search(np.full((1, 4), 3e38, np.float32), k=1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_refused(make_index: IndexMaker, value: float) -> None:
    vectors = unit_vectors(60, 4)
    vectors[41, 2] = value
    with pytest.raises(InputError, match="vector 41"):
        make_index(vectors)


@pytest.mark.parametrize("shape", [(4,), (3, 0), (1, 2, 3)])
def test_vectors_of_another_shape_are_refused(make_index: IndexMaker, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="width"):
        make_index(np.zeros(shape, np.float32))


def test_vectors_of_another_type_are_refused(make_index: IndexMaker) -> None:
    with pytest.raises(InputError, match="float32"):
        make_index(np.zeros((3, 4)))  # type: ignore[arg-type]


def test_numbers_as_numpy_has_them(make_index: IndexMaker) -> None:
    vectors = unit_vectors(200, 12)
    index = make_index(vectors)
    k: Any = np.int8(120)
    for found, expected in zip(index.search(vectors[:3], k=k), index.search(vectors[:3], k=120), strict=True):
        np.testing.assert_array_equal(found, expected)
    for k in (True, 2.0, "3"):
        with pytest.raises(InputError, match="field k: too few results"):
            index.search(vectors[:3], k=k)
