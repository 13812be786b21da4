"""What is particular to the exhaustive index: tiles, memory maps, threads, awkward magnitudes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onoma.errors import InputError
from onoma.indexes import ExactIndex, exact, scoring
from onoma.types import FloatArray


def vectors_with_repeats(n: int, width: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    distinct = rng.standard_normal((n // 2, width)).astype(np.float32)
    distinct /= np.linalg.norm(distinct, axis=1, keepdims=True)
    return np.asarray(distinct[rng.integers(0, len(distinct), n)])


@pytest.mark.parametrize(("tile_rows", "tile_queries", "maxima"), [(16, 1, 1), (48, 3, 10), (4096, 256, 1 << 24)])
def test_tiles_do_not_change_the_answer(
    monkeypatch: pytest.MonkeyPatch, tile_rows: int, tile_queries: int, maxima: int
) -> None:
    vectors = vectors_with_repeats(1000, 20)
    queries = vectors_with_repeats(30, 20, seed=1)
    expected = ExactIndex(vectors).search(queries, k=9)
    monkeypatch.setattr(exact, "_TILE_ROWS", tile_rows)
    monkeypatch.setattr(exact, "_TILE_QUERIES", tile_queries)
    monkeypatch.setattr(exact, "_MAXIMA_AT_ONCE", maxima)
    monkeypatch.setattr(scoring, "_SCORED_AT_ONCE", 7)
    rows, scores = ExactIndex(vectors).search(queries, k=9)
    assert np.array_equal(rows, expected[0])
    assert scores.tobytes() == expected[1].tobytes()


def test_rounding_of_the_matrix_product_does_not_lose_the_best_row() -> None:
    """Rows that differ by less than a product's rounding error, each alone in its block."""
    width, n = 384, 64 * 16
    rng = np.random.default_rng(0)
    query = rng.standard_normal(width)
    query /= np.linalg.norm(query)
    vectors = np.zeros((n, width), np.float32)
    noise = rng.standard_normal((64, width))
    noise -= np.outer(noise @ query, query)
    vectors[::16] = query + 0.02 * noise  # equal scores but for rounding
    query32 = query.astype(np.float32)
    scores = np.array([sum(float(a) * float(b) for a, b in zip(v, query32, strict=True)) for v in vectors])
    order = np.lexsort((np.arange(n), -scores.astype(np.float32)))
    rows, _ = ExactIndex(vectors).search(query32[None], k=10)
    assert rows[0].tolist() == order[:10].tolist()


def test_vectors_of_very_different_length() -> None:
    rng = np.random.default_rng(3)
    vectors = (rng.standard_normal((200, 8)) * 10.0 ** rng.integers(-6, 7, (200, 1))).astype(np.float32)
    query = rng.standard_normal((1, 8)).astype(np.float32)
    scores = (vectors.astype(np.float64) @ query[0].astype(np.float64)).astype(np.float32)
    rows, found = ExactIndex(vectors).search(query, k=200)
    assert np.array_equal(rows[0], np.lexsort((np.arange(200), -scores)))
    np.testing.assert_allclose(found[0], scores[rows[0]], rtol=1e-6)


def test_a_memory_map_with_a_known_bound_is_not_read_at_opening(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    vectors = vectors_with_repeats(300, 16)
    np.save(path, vectors)
    mapped = np.load(path, mmap_mode="r")
    index = ExactIndex(mapped, max_norm=1.001)
    expected = ExactIndex(vectors).search(vectors[:5], k=4)
    rows, scores = index.search(vectors[:5], k=4)
    assert np.array_equal(rows, expected[0])
    assert np.array_equal(scores, expected[1])
    assert not isinstance(rows, np.memmap)
    assert not isinstance(scores, np.memmap)


def test_vectors_not_read_at_opening_are_refused_by_the_search() -> None:
    vectors = vectors_with_repeats(300, 16)
    vectors[123] = np.nan
    index = ExactIndex(vectors, max_norm=1.001)
    with pytest.raises(InputError, match="not finite"):
        index.search(vectors[:5], k=4)


_DIGEST_OF_A_SEARCH = """
import hashlib, numpy as np
from onoma.indexes import ExactIndex
rng = np.random.default_rng(0)
vectors = rng.standard_normal((5000, 96)).astype(np.float32)
vectors[2500:] = vectors[:2500]
rows, scores = ExactIndex(vectors).search(rng.standard_normal((300, 96)).astype(np.float32), k=10)
print(hashlib.sha256(rows.tobytes() + scores.tobytes()).hexdigest())
"""


def test_one_answer_whatever_the_threads() -> None:
    digests = set()
    for threads in ("1", "2", "5"):
        environment = os.environ | dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
        )
        run = subprocess.run(
            [sys.executable, "-c", _DIGEST_OF_A_SEARCH], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(run.stdout.strip())
    assert len(digests) == 1
    assert len(digests.pop()) == hashlib.sha256().digest_size * 2
