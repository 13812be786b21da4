"""What BioSyn learns from: which names are right, which are candidates, and which texts a batch needs."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from biosyn_tasks import config_for, data_of, tables
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from onoma.errors import InputError, TrainingError
from onoma.training.biosyn_candidates import CandidateBatches, join_candidates
from onoma.training.biosyn_data import RankingData
from onoma.types import FloatArray, RowArray


@pytest.fixture(scope="module")
def data(base: Path) -> RankingData:
    return data_of(base, tables())


def batches_of(data: RankingData, base: Path, run: Path, **changes: Any) -> CandidateBatches:
    return CandidateBatches(data, config_for(base, **changes), run, tell=lambda _: None)


def vectors_of(seed: int) -> Any:
    """What stands for an encoder: a vector for each row of the store, other ones for each seed."""

    def encode(rows: RowArray) -> FloatArray:
        every = np.random.default_rng(seed).standard_normal((1000, 4)).astype(np.float32)
        return every[rows]

    return encode


def never(_: RowArray) -> FloatArray:
    raise AssertionError("nothing was to be encoded")


def test_ids_are_compared_as_a_whole(base: Path) -> None:
    """The released code looks for the query's id anywhere in the name's: D00312 is in D003120 and in D9|D003123."""
    data = data_of(
        base,
        tables(
            [("heart", "D00312"), ("lung", "D003120|D1"), ("skin", "X")],
            [("a", "D003120"), ("b", "D00312"), ("c", "D9|D003123"), ("d", "D7|D00312"), ("e", "D0031")],
        ),
    )
    everything = np.tile(np.arange(5), (3, 1))
    assert [[data.names[name] for name in np.flatnonzero(row)] for row in data.is_right(np.arange(3), everything)] == [
        ["b", "d"],
        ["a"],
        [],
    ]


def test_texts_are_prepared_and_come_once(base: Path) -> None:
    data = data_of(
        base,
        tables(
            [("Heart-Attack", "D1"), ("heart attack", "D1"), ("heart attack", "D2"), ("lung", "D2|D1"), (" . ", "D1")],
            [("COLD", "D1"), ("fever", "D3"), ("cold", "D2"), ("--", "D1"), ("Cold", "D1"), ("fever", "D3|D4")],
        ),
    )
    assert data.names == ["cold", "fever"]
    assert data.queries == ["heart attack", "heart attack", "lung"]
    assert data.is_right(np.arange(3), np.tile([0, 1], (3, 1))).tolist() == [[True, False]] * 3
    assert len(data.rows) == 4  # equal texts are one for the encoder


def test_queries_that_no_name_is_right_for_are_refused(base: Path) -> None:
    with pytest.raises(InputError, match="no query of 'tiny' has a right name"):
        data_of(base, tables([("heart", "D1")], [("lung", "D11")]))
    with pytest.raises(InputError, match="all 2 mentions of 'tiny' are blank after the normalisation biosyn"):
        data_of(base, tables([("???", "D1"), (",", "D1")], [("lung", "D1")]))


def test_another_text_or_answer_is_another_fingerprint(base: Path, data: RankingData) -> None:
    mentions, names = tables().queries.rows(), tables().dictionary.rows()
    others = [
        tables([*mentions, ("new", "D1")], names),
        tables(mentions, [*names, ("new", "D1")]),
        tables([(mentions[0][0], "D1"), *mentions[1:]], names),
    ]
    assert data_of(base, tables()).fingerprint == data.fingerprint
    assert len({data.fingerprint, *(data_of(base, other).fingerprint for other in others)}) == 4


@given(st.data(), st.integers(1, 8))
def test_sparse_ones_first_then_dense_ones_that_are_new(drawn: st.DataObject, k: int) -> None:
    rows = st.permutations(range(10))
    sparse = [drawn.draw(rows)[: drawn.draw(st.just(k // 2))] for _ in range(3)]
    dense = [drawn.draw(rows)[:k] for _ in range(3)]
    found = join_candidates(np.array(sparse, np.int64).reshape(3, -1), np.array(dense), k)
    for first, then, joined in zip(sparse, dense, found.tolist(), strict=True):
        expected = list(first)
        for row in then:
            if len(expected) < k and row not in expected:
                expected.append(row)
        assert joined == expected


def test_candidates_are_those_of_plain_loops(base: Path, data: RankingData, tmp_path: Path) -> None:
    batches = batches_of(data, base, tmp_path, batch_queries=len(data.queries), candidates=8, sparse_candidates=5)
    encode = vectors_of(1)
    batches.prepare(0, encode)
    batch = batches.of_batch(0)

    vectoriser = TfidfVectorizer(analyzer="char", ngram_range=(1, 2)).fit(data.names)
    similarity = (vectoriser.transform(data.queries) @ vectoriser.transform(data.names).T).toarray()
    queries, names = encode(data.rows[data.query_places]), encode(data.rows[data.name_places])
    for query, found, right in zip(batch.queries, batch.names.tolist(), batch.right.tolist(), strict=True):
        by_sparse = sorted(range(len(data.names)), key=lambda name: (-round(similarity[query, name], 6), name))
        by_dense = sorted(range(len(data.names)), key=lambda name: -float(queries[query] @ names[name]))
        expected = by_sparse[:5]
        expected += [name for name in by_dense if name not in expected][:3]
        assert found == expected
        word = data.queries[query].split()[1]
        assert right == [data.names[name].startswith(word) for name in found]
    expected_scores = similarity[batch.queries[:, None], batch.names]
    np.testing.assert_allclose(batches.sparse_scores(batch), expected_scores, atol=1e-6)


def test_queries_without_a_right_candidate_are_not_encoded(base: Path, tmp_path: Path) -> None:
    names = [("heart pain", "D1"), *((f"zz{letter}", f"Z{letter}") for letter in "abcdefgh"), ("skin rash", "D2")]
    data = data_of(base, tables([("heart pains", "D1"), ("zzz", "D2"), ("heart pain", "D1")], names))
    batches = batches_of(data, base, tmp_path, candidates=2, sparse_candidates=2, batch_queries=3)
    batch = batches.of_batch(0)
    assert sorted(data.queries[row] for row in batch.queries) == ["heart pain", "heart pains"]
    assert batch.right.any(1).all()
    rows = batches.names_of_step(0)
    assert len(set(rows.tolist())) == len(rows)
    texts = [data.names[place] for place in batch.names.ravel()] + [data.queries[place] for place in batch.queries]
    assert len(rows) == len(set(texts))  # "heart pain" is a query and a candidate of both


def test_a_batch_may_have_no_right_candidate_at_all(base: Path, tmp_path: Path) -> None:
    names = [("skin rash", "D2"), *((f"zz{letter}", f"Z{letter}") for letter in "abcdefgh")]
    data = data_of(base, tables([("zzz", "D2")], names))
    batches = batches_of(data, base, tmp_path, candidates=2, sparse_candidates=2)
    assert len(batches.names_of_step(0)) == 0


def test_every_pass_visits_every_query_once_in_another_order(base: Path, data: RankingData, tmp_path: Path) -> None:
    batches = batches_of(data, base, tmp_path, candidates=100)
    n_batches = batches.steps_per_epoch
    assert n_batches == 5  # 24 queries, 5 at a time
    passes = [
        np.concatenate([batches.of_batch(first + number).queries for number in range(n_batches)]).tolist()
        for first in (0, n_batches)
    ]
    assert [sorted(one) for one in passes] == [list(range(24))] * 2
    assert passes[0] != passes[1]


def test_fewer_names_than_candidates_are_all_candidates(base: Path, data: RankingData, tmp_path: Path) -> None:
    batches = batches_of(data, base, tmp_path, candidates=100, sparse_candidates=7)
    batches.prepare(0, vectors_of(0))
    assert np.sort(batches.of_batch(0).names).tolist() == [list(range(len(data.names)))] * 5


def test_the_dense_half_is_searched_anew_before_each_pass_only(base: Path, data: RankingData, tmp_path: Path) -> None:
    batches = batches_of(data, base, tmp_path)
    batches.prepare(0, vectors_of(0))
    first = batches.of_batch(3).names
    for number in range(1, 5):
        batches.prepare(number, never)
    np.testing.assert_array_equal(batches.of_batch(3).names, first)
    before = batches.of_batch(7).names
    batches.prepare(5, vectors_of(1))
    after = batches.of_batch(7).names
    np.testing.assert_array_equal(before[:, :3], after[:, :3])  # the sparse half stays
    assert (before[:, 3:] != after[:, 3:]).any()


def test_a_resumed_run_reads_what_was_found(base: Path, data: RankingData, tmp_path: Path) -> None:
    batches = batches_of(data, base, tmp_path)
    batches.prepare(0, vectors_of(0))
    batches.prepare(5, vectors_of(1))
    resumed = batches_of(data, base, tmp_path)
    resumed.prepare(7, never)
    np.testing.assert_array_equal(resumed.of_batch(7).names, batches.of_batch(7).names)
    anew = batches_of(data, base, tmp_path)
    anew.prepare(5, vectors_of(2))  # at the beginning of a pass nothing is taken from the folder
    assert (anew.of_batch(7).names != batches.of_batch(7).names).any()


def test_steps_of_several_batches_search_once_for_each_pass_too(base: Path, data: RankingData, tmp_path: Path) -> None:
    batches = batches_of(data, base, tmp_path, accumulation=3)
    batches.prepare(0, vectors_of(0))  # batches 0 to 2
    batches.prepare(3, never)  # batches 3 and 4, and one of the next pass
    batches.prepare(6, vectors_of(1))  # the first step that begins in the next pass
    resumed = batches_of(data, base, tmp_path, accumulation=3)
    resumed.prepare(9, never)
    np.testing.assert_array_equal(resumed.of_batch(8).names, batches.of_batch(8).names)


def test_candidates_that_are_gone_cannot_be_found_again(base: Path, data: RankingData, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"cannot be read.*begin anew"):
        batches_of(data, base, tmp_path).prepare(7, never)
    np.save(tmp_path / "candidates-00001.npy", np.zeros((2, 2), np.int64))
    with pytest.raises(TrainingError, match="belongs to another run"):
        batches_of(data, base, tmp_path).prepare(7, never)


def test_time_of_searching_is_estimated_without_doing_it(
    base: Path, data: RankingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = batches_of(data, base, tmp_path)
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))  # all that is timed takes a second:
    monkeypatch.setattr("onoma.training.biosyn_candidates._TIMED_TEXTS", 12)  # encoding a quarter of the texts,
    monkeypatch.setattr("onoma.training.biosyn_candidates._TIMED_QUERIES", 6)  # comparing six with these
    assert len(data.rows) == 48
    once, each = batches.preparation_seconds(vectors_of(0))
    assert once == pytest.approx(4 + 24 * 24 / (6 * 12))
    assert each == pytest.approx(once / 5)  # batches of a pass
    assert list(tmp_path.iterdir()) == []


def test_sparse_candidates_alone_need_no_encoder(base: Path, data: RankingData, tmp_path: Path) -> None:
    batches = batches_of(data, base, tmp_path, candidates=4, sparse_candidates=4)
    batches.prepare(0, never)
    assert batches.of_batch(0).names.shape[1] == 4
    assert batches.preparation_seconds(never) == (0, 0)
