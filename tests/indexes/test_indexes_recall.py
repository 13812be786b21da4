"""Recall as measured when an index is built, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from index_data import unit_vectors

from onoma.errors import InputError, ShapeError
from onoma.indexes import ExactIndex, VectorStore, measure_recall
from onoma.types import FloatArray, RowArray


class Forgetful:
    """Exact search that does not know some rows."""

    is_approximate = True

    def __init__(self, vectors: FloatArray, forgotten: set[int]) -> None:
        self.vectors, self.forgotten = vectors, forgotten
        self.known = np.array([row for row in range(len(vectors)) if row not in forgotten])

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.vectors)

    def search(self, queries: FloatArray, *, k: int = 5) -> tuple[RowArray, FloatArray]:
        rows, scores = ExactIndex(self.vectors[self.known]).search(queries, k=k)
        return self.known[rows], scores


def by_loops(
    vectors: FloatArray, queries: FloatArray, own: list[int | None], forgotten: set[int]
) -> tuple[float, float]:
    first, ten = [], []
    for query, left_out in zip(queries.tolist(), own, strict=True):
        scores = {
            row: sum(a * b for a, b in zip(query, vector, strict=True))
            for row, vector in enumerate(vectors.tolist())
            if row != left_out
        }
        best = sorted(scores, key=lambda row: -scores[row])[:10]
        found = sorted(set(scores) - forgotten, key=lambda row: -scores[row])[:10]
        first.append(found[0] == best[0])
        ten.append(len(set(found) & set(best)) / len(best))
    return float(np.mean(first)), float(np.mean(ten))


def test_given_queries_against_loops() -> None:
    vectors, queries, forgotten = unit_vectors(200), unit_vectors(60, seed=1), set(range(0, 200, 7))
    recall = measure_recall(Forgetful(vectors, forgotten), VectorStore(vectors), queries=queries)
    first, ten = by_loops(vectors, queries, [None] * 60, forgotten)
    assert recall.at_1 == pytest.approx(first, abs=1e-4)
    assert recall.at_10 == pytest.approx(ten, abs=1e-4)
    assert 0.5 < first < 1
    assert (recall.n_queries, recall.queries) == (60, "given")


def test_left_out_queries_against_loops() -> None:
    vectors, forgotten = unit_vectors(200), set(range(0, 200, 7))
    recall = measure_recall(Forgetful(vectors, forgotten), VectorStore(vectors), n_queries=50)
    asking = np.linspace(0, 199, 50).astype(int).tolist()
    first, ten = by_loops(vectors, vectors[asking], asking, forgotten)
    assert recall.at_1 == pytest.approx(first, abs=1e-4)
    # An index that does not know the asking row gives one answer less of the others.
    assert ten - 0.1 <= recall.at_10 <= ten + 1e-4
    assert (recall.n_queries, recall.queries) == (50, "left-out")


def test_a_row_as_near_as_the_best_is_right() -> None:
    vectors = np.repeat(unit_vectors(50), 2, axis=0)
    recall = measure_recall(
        Forgetful(vectors, set(range(0, 100, 2))), VectorStore(vectors), queries=unit_vectors(9, seed=1)
    )
    assert recall.at_1 == 1.0
    assert recall.at_10 < 1.0


def test_zero_vectors_do_not_ask() -> None:
    vectors = unit_vectors(30)
    vectors[:10] = 0
    recall = measure_recall(ExactIndex(vectors), VectorStore(vectors), n_queries=30)
    assert (recall.n_queries, recall.at_1) == (20, 1.0)


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_find(n: int) -> None:
    recall = measure_recall(ExactIndex(unit_vectors(n)), VectorStore(unit_vectors(n)))
    assert (recall.n_queries, recall.at_1, recall.at_10) == (0, 1.0, 1.0)


def test_what_does_not_fit_is_refused() -> None:
    vectors = unit_vectors(30)
    with pytest.raises(ShapeError, match="8"):
        measure_recall(ExactIndex(vectors), VectorStore(vectors), queries=unit_vectors(3, 7))
    with pytest.raises(InputError, match="fp32"):
        measure_recall(ExactIndex(vectors), VectorStore(vectors.astype(np.float16)))
