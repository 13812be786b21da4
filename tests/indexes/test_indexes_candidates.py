"""Indexes that look at candidates only: one answer on every run, exact scores, a stated rule for ties, few misses."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_data import in_precision

from onoma.errors import DamagedArtifactError, InputError
from onoma.indexes import (
    ApproximateIndex,
    ExactIndex,
    Index,
    SignBitIndex,
    VectorStore,
    approximate,
    candidate_search,
    sign_bits,
    vector_store,
)
from onoma.indexes.approximate import EarlyStop
from onoma.indexes.candidate_search import CandidateIndex
from onoma.indexes.centroids import Centroids
from onoma.indexes.sign_bits import centre_of
from onoma.types import FloatArray

N = 5000
Build = Callable[[VectorStore], CandidateIndex]


def few_signs(vectors: VectorStore) -> CandidateIndex:
    return SignBitIndex.build(vectors, candidates=200)


def few_lists(vectors: VectorStore) -> CandidateIndex:
    return ApproximateIndex.build(vectors, candidates=200)


BUILDS = {"sign-bits": few_signs, "approximate": few_lists}


@pytest.fixture(params=list(BUILDS.values()), ids=list(BUILDS), scope="module")
def build(request: pytest.FixtureRequest) -> Build:
    found: Build = request.param
    return found


@pytest.fixture(params=["fp32", "fp16", "int16", "int8"], scope="module")
def store(request: pytest.FixtureRequest) -> VectorStore:
    return in_precision(request.param, clustered(N, 33))


@pytest.fixture(scope="module")
def index(build: Build, store: VectorStore) -> CandidateIndex:
    return build(store)


def clustered(n: int, width: int, seed: int = 0) -> FloatArray:
    """Unit vectors that share a mean and lie in groups of about ten, some of them twice."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((N // 10, width)) + 1
    vectors = centres[rng.integers(0, len(centres), n)] + 0.5 * rng.standard_normal((n, width))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[n // 2 : n // 2 + n // 20] = vectors[: n // 20]
    return vectors.astype(np.float32)


def test_few_of_the_best_are_missed(index: Index, store: VectorStore) -> None:
    queries = clustered(300, 33, seed=1)
    rows, _ = index.search(queries, k=10)
    best, _ = ExactIndex(store).search(queries, k=10)
    assert np.mean(rows[:, 0] == best[:, 0]) >= 0.99
    assert np.mean([np.isin(b, r).mean() for b, r in zip(best, rows, strict=True)]) >= 0.98
    assert not np.array_equal(rows, best)  # else this tests nothing


def test_scores_are_exact_and_in_order(index: Index, store: VectorStore) -> None:
    queries = clustered(40, 33, seed=1)
    rows, scores = index.search(queries, k=10)
    vectors = store.part(0, N).astype(np.float64)
    for query, found, given_scores in zip(queries, rows, scores, strict=True):
        true = [
            float(np.float32(sum(a * b for a, b in zip(query.tolist(), vectors[row], strict=True)))) for row in found
        ]
        np.testing.assert_allclose(given_scores, true, rtol=0, atol=1e-7)
        order = sorted(zip((-given_scores).tolist(), found.tolist(), strict=True))
        assert [row for _, row in order] == found.tolist()
        assert len(set(found.tolist())) == 10


def test_one_answer_whatever_the_batch(index: Index) -> None:
    queries = clustered(70, 33, seed=1)
    together = index.search(queries, k=7)
    for size in (1, 3, 64):
        parts = [index.search(queries[start : start + size], k=7) for start in range(0, 70, size)]
        assert np.array_equal(np.concatenate([rows for rows, _ in parts]), together[0])
        assert np.concatenate([scores for _, scores in parts]).tobytes() == together[1].tobytes()
    backwards = index.search(queries[::-1], k=7)
    assert np.array_equal(backwards[0][::-1], together[0])


@pytest.mark.parametrize("factor", [1e-30, 0.25, 1000.0])
def test_the_length_of_a_query_changes_nothing(index: Index, store: VectorStore, factor: float) -> None:
    queries = clustered(40, store.width, seed=7)
    rows, _ = index.search(queries, k=5)
    scaled, _ = index.search((queries.astype(np.float64) * factor).astype(np.float32), k=5)
    assert np.mean(rows == scaled) > 0.98  # rounding may exchange neighbours that are nearly tied


def test_equal_vectors_come_by_row(index: Index, store: VectorStore) -> None:
    queries = store.part(0, 30)  # each of them is there twice
    rows, scores = index.search(queries, k=2)
    assert rows.tolist() == [[row, row + N // 2] for row in range(30)]
    assert np.array_equal(scores[:, 0], scores[:, 1])


def test_building_twice_gives_the_same_answers(build: Build, store: VectorStore, index: Index) -> None:
    queries = clustered(50, 33, seed=1)
    again = build(store).search(queries, k=12)
    assert np.array_equal(again[0], index.search(queries, k=12)[0])


@pytest.mark.parametrize("most", [10, 500])  # of the candidates of one query; of those of several
def test_one_answer_however_few_rows_are_scored_at_a_time(
    most: int, index: CandidateIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = clustered(20, 33, seed=1)
    rows, scores = index.search(queries, k=7)
    monkeypatch.setattr(candidate_search, "_ROWS_OF_A_THREAD", most)
    monkeypatch.setattr(candidate_search, "_TILE_QUERIES", 7)
    few_rows, few_scores = index.search(queries, k=7)
    np.testing.assert_array_equal(few_rows, rows)
    np.testing.assert_array_equal(few_scores, scores)


def test_many_results_are_exact(index: Index, store: VectorStore) -> None:
    queries = clustered(4, 33, seed=1)
    for k in (-(-N // 96), N // 2, N, 3 * N):
        rows, scores = index.search(queries, k=k)
        expected = ExactIndex(store).search(queries, k=k)
        assert rows.shape == (4, min(k, N))
        assert np.array_equal(rows, expected[0])
        assert np.array_equal(scores, expected[1])


def test_a_longer_answer_begins_with_the_shorter(index: Index) -> None:
    queries = clustered(40, 33, seed=1)
    longer = index.search(queries, k=12)[0]
    assert np.array_equal(index.search(queries, k=3)[0], longer[:, :3])


def test_among_some_rows_few_of_the_best_are_missed(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of queries whose nearest rows are none of these; and all rows are found as before."""
    monkeypatch.setattr("onoma.indexes.candidate_search.EXHAUSTIVE_SHARE", 1)  # guess, although there are so few
    vectors = VectorStore(clustered(20_000, 33))
    index = build(vectors)
    index._candidates = 30
    queries = clustered(300, 33, seed=1)
    before = index.search(queries, k=10)
    some = np.flatnonzero(np.random.default_rng(2).random(len(vectors)) < 0.3)
    nearest = ExactIndex(vectors).search(queries, k=1)[0]
    assert 150 < np.count_nonzero(~np.isin(nearest, some)) < 250
    narrowed = index.among(some)
    assert len(narrowed) == len(some)
    rows, scores = narrowed.search(queries, k=10)
    assert np.isin(rows, some).all()
    places, best = ExactIndex(vectors.take(some)).search(queries, k=10)
    assert (scores[:, 0] == best[:, 0]).mean() > 0.99
    assert (scores == best).mean() > 0.9
    exact = scores == best
    assert (rows[exact] == some[places][exact]).mean() > 0.99, "of equal scores another row may come before"
    alone = [narrowed.search(query[None], k=10) for query in queries[:20]]
    assert np.array_equal(np.concatenate([one for one, _ in alone]), rows[:20])
    fewer, at_once = (one.among(some[::2]).search(queries, k=10) for one in (narrowed, index))
    assert [array.tobytes() for array in fewer] == [array.tobytes() for array in at_once]
    assert [array.tobytes() for array in index.search(queries, k=10)] == [array.tobytes() for array in before]


@pytest.mark.parametrize("n", [0, 1, 7])
def test_among_fewer_rows_than_are_wanted(n: int, index: CandidateIndex, store: VectorStore) -> None:
    some = np.arange(n) * 500 + 3
    rows, scores = index.among(some).search(clustered(5, 33, seed=1), k=10)
    assert np.array_equal(np.sort(rows, axis=1), np.tile(some, (5, 1)))
    assert (np.diff(scores) <= 0).all()


def test_zero_vectors_and_zero_queries(build: Build) -> None:
    vectors = clustered(N, 33)
    vectors[::50] = 0
    index = build(VectorStore(vectors))
    rows, scores = index.search(np.zeros((1, 33), np.float32), k=5)
    assert scores.tolist() == [[0.0] * 5]
    if isinstance(index, SignBitIndex):
        assert rows.tolist() == [[0, 1, 2, 3, 4]]
    assert index.search(vectors[1:2], k=1)[0].tolist() == [[1]]
    around_zero = build(VectorStore(np.concatenate([np.sign(vectors), -np.sign(vectors)])))
    assert around_zero.search(np.zeros((1, 33), np.float32), k=2)[1].tolist() == [[0.0] * 2]


def test_nothing_but_one_vector_many_times(build: Build) -> None:
    index = build(VectorStore(np.repeat(clustered(1, 16), N, axis=0)))
    rows, scores = index.search(clustered(3, 16, seed=1), k=6)
    assert rows.shape == (3, 6)
    assert all(len(set(line)) == 1 for line in scores.tolist())
    if isinstance(index, SignBitIndex):
        assert rows.tolist() == [[0, 1, 2, 3, 4, 5]] * 3


@pytest.mark.parametrize(("n_lists", "first"), [(1, 1), (40, 7), (40, 40), (300, 299), (300, 1)])
def test_the_nearest_lists_stand_before_the_others(n_lists: int, first: int) -> None:
    random = np.random.default_rng(0)
    centroids = Centroids(random.standard_normal((300, 24), dtype=np.float32))
    queries = random.standard_normal((70, 24), dtype=np.float32)
    expected = np.argsort(centroids.distances(queries), axis=1)
    near = centroids.nearest(queries, n_lists, first=first)
    assert near.shape == (70, n_lists)
    assert np.array_equal(np.sort(near[:, :first], axis=1), np.sort(expected[:, :first], axis=1))
    assert np.array_equal(np.sort(near, axis=1), np.sort(expected[:, :n_lists], axis=1))


def test_each_vector_is_in_its_two_nearest_lists_and_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (approximate, vector_store):
        monkeypatch.setattr(module, "PART_ROWS", N // 3 + 1)  # what is added in parts is numbered on
    vectors = clustered(N, 33)
    index = ApproximateIndex.build(VectorStore(vectors))
    lists = index._lists
    assert lists is not None
    inverted = lists.invlists
    assert inverted is not None
    centroids = lists.quantizer.reconstruct_n(0, lists.nlist)[:, :33].astype(np.float64)
    distances = np.square(vectors[:, None, :].astype(np.float64) - centroids).sum(axis=2)
    nearest = np.sort(np.argsort(distances, axis=1)[:, :2], axis=1)
    places: list[list[int]] = [[] for _ in range(N)]
    for number in range(lists.nlist):
        ids = faiss.rev_swig_ptr(inverted.get_ids(number), inverted.list_size(number))
        for row in ids.tolist():
            places[row].append(number)
    assert np.mean(np.array(places) == nearest) >= 0.999  # but for rounding
    directions, _ = approximate._directions(clustered(20, 33, seed=1), width=lists.d)
    assert index._centroids is not None
    near = index._centroids.nearest(directions, index._n_lists, first=1)
    for rows in index._entries(directions, near, 150):
        found, times = np.unique(rows[rows >= 0], return_counts=True)
        assert 150 <= len(found) <= 300
        assert times.max() <= 2


def test_as_many_lists_are_looked_through_as_it_takes(tmp_path: Path) -> None:
    """Against the rank of the nearest other's list, vector by vector."""
    vectors = VectorStore(clustered(N, 33))
    index = ApproximateIndex.build(vectors)
    lists = index._lists
    assert lists is not None
    centroids = lists.quantizer.reconstruct_n(0, lists.nlist)[:, :33].astype(np.float64)
    needed = []
    for row in range(2, N, 5):
        query = vectors.take(np.array([row]))[0].astype(np.float64)
        scores = vectors.part(0, N) @ query
        scores[row] = -np.inf
        other = vectors.take(np.array([int(scores.argmax())]))[0].astype(np.float64)
        own = np.argsort(np.square(centroids - other).sum(axis=1))[:2]
        distances = np.square(centroids - query).sum(axis=1)
        needed.append(int((distances <= distances[own].min()).sum()))
    assert abs(np.mean(np.array(needed) <= index._n_lists) - 0.996) <= 0.004
    index.search(clustered(3, 33, seed=1), k=300)  # looks through more
    index.save(tmp_path)
    assert ApproximateIndex.open(tmp_path, vectors)._n_lists == index._n_lists


@pytest.fixture(scope="module")
def stopping() -> ApproximateIndex:
    """An index that looks through some lists first, and through others only for some queries."""
    vectors = VectorStore(clustered(N, 33))
    lists = ApproximateIndex.build(vectors)._lists
    assert lists is not None
    lists.nprobe = 24
    return ApproximateIndex(vectors, lists, early_stop=EarlyStop(first_lists=4, least_score=0.9))


def test_only_queries_whose_best_is_far_go_on_to_other_lists(stopping: ApproximateIndex) -> None:
    """Each query gets what an index gives that looks through the first lists only, or through all."""
    stored = stopping.vectors.part(3000, 3030)
    held_out = [clustered(60, 33, seed=1), 5 * clustered(30, 33, seed=2)]
    queries = np.concatenate([*held_out, stored, np.zeros((1, 33), np.float32)])
    vectors, lists, early_stop = stopping.vectors, stopping._lists, stopping.early_stop
    assert lists is not None
    assert early_stop is not None
    rows, scores = stopping.search(queries, k=7)
    first_only, all_lists = ApproximateIndex(vectors, lists), ApproximateIndex(vectors, lists)
    first_only._n_lists, all_lists._n_lists = early_stop.first_lists, 24
    expected_first, expected_all = first_only.search(queries, k=7), all_lists.search(queries, k=7)
    lengths = np.linalg.norm(queries.astype(np.float64), axis=1)
    best = np.where(expected_first[1][:, 0] >= 0.999 * lengths**2, expected_first[1][:, 1], expected_first[1][:, 0])
    goes_on = best < early_stop.least_score * lengths
    assert 10 < goes_on[:90].sum() < 80
    assert goes_on[90:120].any()  # although they meet themselves
    assert np.array_equal(rows[~goes_on], expected_first[0][~goes_on])
    assert np.array_equal(scores[~goes_on], expected_first[1][~goes_on])
    # Candidates are as many from the others as from the first: nothing is found worse than among all at once.
    assert np.all(scores[goes_on] >= expected_all[1][goes_on])
    assert np.array_equal(rows[goes_on, 0], expected_all[0][goes_on, 0])


def test_stopping_early_depends_on_the_query_alone(stopping: ApproximateIndex) -> None:
    queries = clustered(40, 33, seed=3)
    rows, scores = stopping.search(queries, k=5)
    for place in range(len(queries)):
        alone = stopping.search(queries[place : place + 1], k=5)
        assert np.array_equal(alone[0][0], rows[place])
        assert np.array_equal(alone[1][0], scores[place])


def test_stopping_early_loses_no_more_than_allowed() -> None:
    """Among the vectors that the limit was chosen with, counted one by one."""
    rng = np.random.default_rng(5)
    far = rng.choice([0.2, 1.2], (20_000, 1), p=[0.7, 0.3])
    vectors = rng.standard_normal((400, 24))[rng.integers(0, 400, len(far))] + far * rng.standard_normal((len(far), 24))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    index = ApproximateIndex.build(VectorStore(vectors))
    lists, early_stop = index._lists, index.early_stop
    assert lists is not None
    assert early_stop is not None
    assert early_stop.first_lists <= index._n_lists // 2
    pairs = approximate._nearest_pairs(index.vectors, lists)
    first_only = ApproximateIndex(index.vectors, lists)
    first_only._n_lists = early_stop.first_lists
    rows, scores = first_only.search(vectors[pairs.rows], k=2)
    best = np.where(rows[:, 0] == pairs.rows, scores[:, 1], scores[:, 0])
    missed = (best < pairs.scores - 1e-6) & (pairs.n_lists <= index._n_lists)
    assert missed.any()
    assert not (missed & (best >= early_stop.least_score + 1e-6)).any()


@pytest.mark.parametrize("candidates", [0, -3])
def test_no_candidates_are_refused(candidates: int) -> None:
    with pytest.raises(InputError, match="field candidates"):
        SignBitIndex.build(VectorStore(clustered(20, 8)), candidates=candidates)


@settings(max_examples=40)
@given(
    n=st.integers(70, 400),
    width=st.integers(1, 40),
    distinct=st.integers(1, 12),
    n_rows=st.integers(1, 70),
    seed=st.integers(0, 2**32 - 1),
)
def test_of_rows_with_equal_bits_the_lowest_are_candidates(
    n: int, width: int, distinct: int, n_rows: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((distinct, width)).astype(np.float32)[rng.integers(0, distinct, n)]
    index = SignBitIndex.build(VectorStore(vectors))
    queries = rng.standard_normal((5, width)).astype(np.float32)
    codes = [bytes(line) for line in index._signs]
    for rows in index._guess(queries, n_rows=n_rows):
        chosen = set(rows.tolist())
        assert len(chosen) == n_rows
        for code in {codes[row] for row in chosen}:
            alike = [row for row in range(n) if codes[row] == code]
            inside = [row for row in alike if row in chosen]
            assert inside == alike[: len(inside)]


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8), seed=st.integers(0, 2**32 - 1))
def test_guesses_do_not_depend_on_company(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    index = SignBitIndex.build(VectorStore(clustered(2000, 40, seed=seed % 7)))
    queries = rng.standard_normal((sum(sizes), 40)).astype(np.float32)
    together = index._guess(queries, n_rows=50)
    bounds = np.cumsum([0, *sizes])
    parts = [index._guess(queries[a:b], n_rows=50) for a, b in itertools.pairwise(bounds)]
    assert np.array_equal(np.concatenate(parts), together)


def test_guesses_are_sums_over_the_bits() -> None:
    """Against the sums themselves, but for the 8 bits that FAISS rounds its tables to."""
    vectors = clustered(1000, 37)
    index = SignBitIndex.build(VectorStore(vectors))
    queries = clustered(20, 37, seed=1)
    centre = vectors.astype(np.float64).mean(axis=0)
    signs = np.where(vectors > centre, 1, -1)
    guessed = (queries - 0.5 * centre) @ signs.T
    found = index._guess(queries, n_rows=100)
    for scores, rows in zip(guessed, found, strict=True):
        least = np.sort(scores)[-100]
        tolerance = 0.02 * np.abs(scores).max()
        assert scores[rows].min() >= least - tolerance
        assert set(np.flatnonzero(scores > least + tolerance)) <= set(rows.tolist())


def test_the_centre_is_the_mean_of_evenly_spaced_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = clustered(1000, 12)
    np.testing.assert_allclose(centre_of(VectorStore(vectors)), vectors.mean(axis=0), atol=1e-6)
    monkeypatch.setattr(sign_bits, "_CENTRE_ROWS", 3)
    np.testing.assert_allclose(centre_of(VectorStore(vectors)), vectors[[0, 499, 999]].mean(axis=0), atol=1e-6)


def test_bits_of_other_vectors_are_refused() -> None:
    store = VectorStore(clustered(50, 12))
    signs, centre = np.zeros((50, 2), np.uint8), np.zeros(12, np.float32)
    SignBitIndex(store, signs, centre)
    wrong_centre = np.full(12, np.nan, np.float32)
    for bits, middle in ((signs[:49], centre), (signs[:, :1], centre), (signs, centre[:11]), (signs, wrong_centre)):
        with pytest.raises(DamagedArtifactError, match="Build the index again"):
            SignBitIndex(store, bits, middle)


_DIGEST = """
import hashlib, sys, numpy as np
from onoma.indexes import ApproximateIndex, SignBitIndex, VectorStore
rng = np.random.default_rng(0)
vectors = rng.standard_normal((6000, 48)).astype(np.float32) + 1
vectors[3000:] = vectors[:3000] + 0.1 * rng.standard_normal((3000, 48)).astype(np.float32)
kind = {"sign-bits": SignBitIndex, "approximate": ApproximateIndex}[sys.argv[1]]
index = kind.build(VectorStore(vectors), candidates=100)
found = [*index.search(vectors[:300] + 0.2, k=5), *index.among(np.arange(0, 6000, 3)).search(vectors[:300], k=5)]
print(hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest())
"""


@pytest.mark.parametrize("kind", list(BUILDS))
def test_one_answer_whatever_the_threads(kind: str) -> None:
    digests = set()
    for threads in ("1", "3"):
        environment = os.environ | dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
        )
        run = subprocess.run(
            [sys.executable, "-c", _DIGEST, kind], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(run.stdout.strip())
    assert len(digests) == 1
    assert len(digests.pop()) == hashlib.sha256().digest_size * 2


_FORKED = """
import os, sys, threading, faiss, numpy as np
from onoma.indexes import ApproximateIndex, SignBitIndex, VectorStore
faiss.omp_set_num_threads(3)
vectors = np.random.default_rng(0).standard_normal((6000, 48)).astype(np.float32)
kind = {"sign-bits": SignBitIndex, "approximate": ApproximateIndex}[sys.argv[1]]
index = kind.build(VectorStore(vectors), candidates=100)
expected = index.search(vectors[:300], k=5)  # enough queries that FAISS shares them among its threads
same = []
def search(index):
    found = index.search(vectors[:300], k=5)
    same.append(all(np.array_equal(one, other) for one, other in zip(found, expected)))
child = os.fork()
if child == 0:
    search(index)
    search(kind.build(VectorStore(vectors), candidates=100))
    thread = threading.Thread(target=search, args=(index,))  # how many threads FAISS may use is a thread's own
    thread.start()
    thread.join()
    os._exit(0 if same == [True] * 3 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("kind", list(BUILDS))
def test_a_forked_process_does_not_wait_for_threads_of_its_parent(kind: str) -> None:
    assert subprocess.run([sys.executable, "-c", _FORKED, kind], timeout=60, check=False).returncode == 0


_FORKED_BESIDE_A_SEARCH = """
import os, signal, sys, threading, numpy as np
from onoma.indexes import ApproximateIndex, VectorStore
vectors = np.random.default_rng(0).standard_normal((6000, 48)).astype(np.float32)
index = ApproximateIndex.build(VectorStore(vectors), candidates=100)
taken, done = threading.Event(), threading.Event()
def hold():
    with index._turns.lock:
        taken.set()
        done.wait()
threading.Thread(target=hold, daemon=True).start()
taken.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)
    os._exit(0 if index.search(vectors[:1], k=1)[0][0, 0] == 0 else 1)
done.set()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_forked_while_another_thread_searches_has_its_turn() -> None:
    assert subprocess.run([sys.executable, "-c", _FORKED_BESIDE_A_SEARCH], timeout=60, check=False).returncode == 0
