"""Metrics against loops that follow their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.benchmarks import (
    accuracy_at,
    bootstrap_interval,
    cluster_interval,
    composite_rank,
    first_hit_rank,
    macro_accuracy_at,
)
from onoma.errors import InputError, ShapeError

ids = st.sets(st.sampled_from("abcdef"), max_size=3)
candidate_lists = st.lists(ids, max_size=6)


@settings(max_examples=100)
@given(candidates=candidate_lists, gold=ids, k=st.integers(1, 7))
def test_first_hit_rank_says_whether_any_of_the_first_k_is_right(
    candidates: list[set[str]], gold: set[str], k: int
) -> None:
    right_by_definition = False
    for candidate in candidates[:k]:
        for concept_id in candidate:
            for right in gold:
                if concept_id == right:
                    right_by_definition = True
    rank = first_hit_rank(candidates, gold)
    assert (rank is not None and rank <= k) == right_by_definition


def test_ids_are_compared_whole() -> None:
    assert first_hit_rank([{"D003120"}], {"D00312"}) is None


@settings(max_examples=100)
@given(parts=st.lists(candidate_lists, min_size=1, max_size=4), gold=ids, k=st.integers(1, 7))
def test_a_composite_is_right_when_every_part_is(parts: list[list[set[str]]], gold: set[str], k: int) -> None:
    every_part_right = True
    for candidates in parts:
        part_right = False
        for candidate in candidates[:k]:
            part_right = part_right or len(candidate & gold) > 0
        every_part_right = every_part_right and part_right
    rank = composite_rank([first_hit_rank(candidates, gold) for candidates in parts])
    assert (rank is not None and rank <= k) == every_part_right


def test_a_query_without_parts_is_never_right() -> None:
    assert composite_rank([]) is None


@settings(max_examples=50)
@given(ranks=st.lists(st.one_of(st.none(), st.integers(1, 9)), min_size=1, max_size=30), k=st.integers(1, 10))
def test_accuracy_counts(ranks: list[int | None], k: int) -> None:
    right = 0
    for rank in ranks:
        if rank is not None and rank <= k:
            right += 1
    accuracy = accuracy_at(ranks, k)
    assert accuracy.value == right / len(ranks)
    assert (accuracy.n_right, accuracy.n_queries) == (right, len(ranks))
    assert 0 <= accuracy.low <= accuracy.value <= accuracy.high <= 1 or len(ranks) < 10


def test_accuracy_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="no query"):
        accuracy_at([], 1)


def test_interval_is_that_of_resampled_queries() -> None:
    """Against drawing the queries themselves, and against the normal approximation."""
    outcomes = np.array([1] * 700 + [0] * 300)
    rng = np.random.default_rng(7)
    shares = [outcomes[rng.integers(0, 1000, 1000)].mean() for _ in range(4000)]
    low, high = bootstrap_interval(700, 1000, seed=0)
    assert low == pytest.approx(np.quantile(shares, 0.025), abs=0.004)
    assert high == pytest.approx(np.quantile(shares, 0.975), abs=0.004)
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(0.7 * 0.3 / 1000), rel=0.05)


def test_interval_depends_on_seed_alone() -> None:
    assert bootstrap_interval(31, 97, seed=3) == bootstrap_interval(31, 97, seed=3)
    wide = bootstrap_interval(31, 97, seed=3, confidence=0.99)
    narrow = bootstrap_interval(31, 97, seed=3, confidence=0.8)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_interval_at_the_ends_is_no_point() -> None:
    """Of resamples that are all alike nothing can be learned: Wilson's interval, by its formula at the ends."""
    z = 1.959963984540054
    width = z * z / (10 + z * z)
    assert bootstrap_interval(0, 10, seed=0) == pytest.approx((0.0, width))
    assert bootstrap_interval(10, 10, seed=0) == pytest.approx((1 - width, 1.0))
    clusters = [mention for mention in "abcdefghij" for _ in range(3)]
    assert cluster_interval([False] * 30, clusters, seed=0) == pytest.approx((0.0, width))
    assert accuracy_at([1] * 30, 1, clusters=clusters).low == pytest.approx(1 - width)


def test_equal_mentions_are_drawn_together() -> None:
    """Against a loop that draws clusters; one query each is no other than independent queries."""
    random = np.random.default_rng(5)
    sizes = random.integers(1, 30, 40)
    clusters = [f"c{row}" for row, size in enumerate(sizes) for _ in range(size)]
    right = [bool(random.random() < 0.5 + 0.4 * (row % 2)) for row, size in enumerate(sizes) for _ in range(size)]
    members = [[r for r, c in zip(right, clusters, strict=True) if c == f"c{row}"] for row in range(40)]
    shares = []
    for _ in range(4000):
        drawn = [one for row in random.integers(0, 40, 40) for one in members[row]]
        shares.append(sum(drawn) / len(drawn))
    low, high = cluster_interval(right, clusters, seed=0)
    assert (low, high) == pytest.approx(tuple(np.quantile(shares, [0.025, 0.975])), abs=0.01)
    found = accuracy_at([1 if r else None for r in right], 1, clusters=clusters)
    assert (found.low, found.high) == (low, high)
    alone = cluster_interval(right, [str(row) for row in range(len(right))], seed=0)
    assert alone == bootstrap_interval(sum(right), len(right), seed=0)


def test_each_mention_counted_once() -> None:
    """Against a loop over mentions; where each stands once it is acc@k."""
    random = np.random.default_rng(6)
    clusters = [f"c{row}" for row in random.permutation(np.repeat(np.arange(30), random.integers(1, 9, 30)))]
    ranks = [None if random.random() < 0.2 else int(random.integers(1, 5)) for _ in clusters]
    for k in (1, 3):
        of_each = [
            np.mean([rank is not None and rank <= k for rank, c in zip(ranks, clusters, strict=True) if c == one])
            for one in set(clusters)
        ]
        assert macro_accuracy_at(ranks, k, clusters=clusters) == pytest.approx(np.mean(of_each))
        alone = [str(row) for row in range(len(ranks))]
        assert macro_accuracy_at(ranks, k, clusters=alone) == pytest.approx(accuracy_at(ranks, k).value)


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ShapeError, match="2 queries, but 1 clusters"):
        cluster_interval([True, False], ["a"], seed=0)
    with pytest.raises(ShapeError, match="2 queries, but 1 clusters"):
        macro_accuracy_at([1, None], 1, clusters=["a"])
    wrong: Any
    k: Any
    for wrong, k in (([1], 0), ([0], 1), ([float("nan")], 1), ([1, 2], 1.5), ([1.5], 1)):
        with pytest.raises(InputError, match="counted from 1"):
            accuracy_at(wrong, k)
    for wrong in (-1, 1.5, "0"):
        with pytest.raises(InputError, match="not a possible seed"):
            bootstrap_interval(1, 2, seed=wrong)
    wrong = [True, math.nan, True]
    with pytest.raises(InputError, match="neither right nor wrong"):
        cluster_interval(wrong, ["a", "a", "b"], seed=0)
    for n_right, n, confidence in ((0, 0, 0.95), (5, 3, 0.95), (1, 2, 95.0)):
        with pytest.raises(InputError, match="no such"):
            bootstrap_interval(n_right, n, seed=0, confidence=confidence)
    with pytest.raises(InputError, match="no such confidence"):
        cluster_interval([True, True, False], ["a", "a", "b"], seed=0, confidence=95)
    with pytest.raises(InputError, match="put it in a list"):
        first_hit_rank([{"D1"}], "D1")
    with pytest.raises(InputError, match=r"candidates\[1\].*put it in a list"):
        first_hit_rank([{"D1"}, "D2"], {"D2"})


def test_gold_may_be_anything_that_gives_ids() -> None:
    """What can be read once; a Series of pandas looks in its index where it is asked what it contains."""

    class Series(list[str]):
        def __contains__(self, key: object) -> bool:
            return key in range(len(self))

    candidates = [["x"], ["b"]]
    assert first_hit_rank(candidates, Series(["a", "b"])) == 2
    assert first_hit_rank(candidates, (one for one in "ab")) == 2


def test_no_resamples() -> None:
    with pytest.raises(InputError, match="too few resamples"):
        bootstrap_interval(1, 2, seed=0, n_resamples=0)
    with pytest.raises(InputError, match="too few resamples"):
        cluster_interval([True, False, True], ["a", "a", "b"], seed=0, n_resamples=0)
