"""The scan of sign bits by several threads: the answer of one, also in a process that was forked."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.indexes import SignBitIndex, VectorStore, sign_scan
from onoma.indexes import threads as indexes_threads
from onoma.indexes.sign_scan import SignScanner


@settings(max_examples=80)
@given(
    n=st.integers(1, 400),
    n_bytes=st.integers(1, 6),
    distinct=st.integers(1, 40),
    n_shards=st.integers(2, 7),
    n_queries=st.integers(1, 20),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_shards_find_what_one_finds(
    n: int, n_bytes: int, distinct: int, n_shards: int, n_queries: int, seed: int, data: st.DataObject
) -> None:
    """Full of ties, and with fewer rows in a shard than are wanted."""
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 256, (distinct, n_bytes), dtype=np.uint8)[rng.integers(0, distinct, n)]
    directions = rng.integers(-2, 3, (n_queries, 8 * n_bytes)).astype(np.float32)
    n_rows = data.draw(st.integers(1, n))
    expected = np.sort(SignScanner(signs, n_shards=1).nearest(directions, n_rows))
    assert np.array_equal(np.sort(SignScanner(signs, n_shards=min(n_shards, n)).nearest(directions, n_rows)), expected)


@pytest.mark.parametrize(("threads", "expected"), [(1, [1, 1, 1, 1]), (3, [1, 1, 2, 6]), (16, [1, 1, 2, 10])])
def test_there_are_two_shards_for_each_thread_if_there_are_rows_enough(
    threads: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_scan, "_ROWS_OF_A_SHARD", 100)
    monkeypatch.setattr(faiss, "omp_get_max_threads", lambda: threads)
    monkeypatch.setattr(indexes_threads, "usable_processors", lambda: 64)
    signs = np.zeros((1000, 2), np.uint8)
    assert [len(SignScanner(signs[:n])._shards) for n in (0, 199, 200, 1000)] == expected


def test_an_index_of_many_shards_answers_as_one_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    vectors = VectorStore(rng.standard_normal((6000, 40)).astype(np.float32))
    queries = rng.standard_normal((300, 40)).astype(np.float32)
    expected = SignBitIndex.build(vectors, candidates=100).search(queries, k=5)
    index = SignBitIndex.build(vectors, candidates=100)
    index._scanner = SignScanner(index._signs, n_shards=3)
    answers = {}

    def ask(thread: int) -> None:
        answers[thread] = index.search(queries, k=5)

    threads = [threading.Thread(target=ask, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rows, scores in answers.values():
        assert np.array_equal(rows, expected[0])
        assert scores.tobytes() == expected[1].tobytes()
    for size in (1, 7):
        parts = [index.search(queries[start : start + size], k=5)[0] for start in range(0, 300, size)]
        assert np.array_equal(np.concatenate(parts), expected[0])


_FORKED = """
import os, sys
import numpy as np
from onoma.indexes.sign_scan import SignScanner
rng = np.random.default_rng(0)
scanner = SignScanner(rng.integers(0, 256, (3000, 4), dtype=np.uint8), n_shards=3)
directions = rng.standard_normal((5, 32)).astype(np.float32)
expected = scanner.nearest(directions, 20)
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(scanner.nearest(directions, 20), expected) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    assert subprocess.run([sys.executable, "-c", _FORKED], timeout=120, check=False).returncode == 0


def test_a_container_decides_how_many_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faiss, "omp_get_max_threads", lambda: 64)
    monkeypatch.setattr(indexes_threads, "usable_processors", lambda: 3)
    assert indexes_threads.most_threads() == 3
    begun: list[int] = []
    monkeypatch.setattr(faiss, "omp_set_num_threads", begun.append)
    with indexes_threads.own_threads():
        assert begun == [3]
    assert begun == [3, 64]
