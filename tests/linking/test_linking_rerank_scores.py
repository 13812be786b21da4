from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.linking.rerank_scores import (
    NIL_SCORES,
    WEIGHTS,
    answers_nil,
    best_choice,
    interpolated,
    judge_weights,
    probabilities,
    right_ranks,
)

LISTS = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 5).map(lambda n: n / 5),  # first stage, with ties
            st.integers(-4, 4).map(float),  # cross-encoder, with ties
            st.booleans(),
        ),
        max_size=6,
    ),
    max_size=6,
)
Lists = list[list[tuple[float, float, bool]]]


def columns(lists: Lists) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    flat = [candidate for candidates in lists for candidate in candidates]
    offsets = np.concatenate([[0], np.cumsum([len(candidates) for candidates in lists])]).astype(np.int64)
    first, scores, right = ([candidate[part] for candidate in flat] for part in range(3))
    return np.array(first, float), np.array(scores, np.float32), np.array(right, bool), offsets


def ranks_by_loop(lists: Lists, final: Sequence[float]) -> list[int]:
    ranks, begin = [], 0
    for candidates in lists:
        scores = final[begin : begin + len(candidates)]
        begin += len(candidates)
        order = [place for _, place in sorted((-score, place) for place, score in enumerate(scores))]
        ranks.append(next((rank for rank, place in enumerate(order, 1) if candidates[place][2]), 0))
    return ranks


@given(LISTS, st.sampled_from(WEIGHTS))
def test_final_scores_and_ranks_equal_a_plain_loop(lists: Lists, weight: float) -> None:
    first, scores, right, offsets = columns(lists)
    final = interpolated(first, probabilities(scores, offsets)[0], weight)
    expected = [
        (1 - weight) * of_first + weight * math.exp(score) / sum(math.exp(other) for _, other, _ in candidates)
        for candidates in lists
        for of_first, score, _ in candidates
    ]
    np.testing.assert_allclose(final, expected, atol=1e-6)
    assert right_ranks(final, right, offsets).tolist() == ranks_by_loop(lists, final.tolist())


@given(LISTS)
def test_probabilities_are_those_of_a_softmax(lists: Lists) -> None:
    _, scores, _, offsets = columns(lists)
    found, of_nil = probabilities(scores, offsets)
    assert of_nil.tolist() == [0.0] * len(lists)
    for begin, end in itertools.pairwise(offsets.tolist()):
        if end > begin:
            odds = np.exp(scores[begin:end].astype(float))
            np.testing.assert_allclose(found[begin:end], odds / odds.sum())
    assert np.isfinite(probabilities(scores * 1e4, offsets)[0]).all()


@given(LISTS)
def test_the_best_weight_is_never_worse_than_the_first_stage(lists: Lists) -> None:
    first, scores, right, offsets = columns(lists)
    choices = judge_weights(first, scores, right, offsets)
    best = best_choice(choices)
    assert choices[0].weight == 0.0
    assert best.at_1 >= choices[0].at_1
    ranks = [rank for rank in ranks_by_loop(lists, first.tolist()) if rank]
    n_lists = max(1, len(lists))
    assert choices[0].at_1 == pytest.approx(sum(rank == 1 for rank in ranks) / n_lists)
    assert choices[0].at_5 == pytest.approx(sum(rank <= 5 for rank in ranks) / n_lists)
    assert choices[0].mrr == pytest.approx(sum(1 / rank for rank in ranks) / n_lists)


def test_of_equally_good_weights_the_lowest_is_chosen() -> None:
    first, offsets = np.array([0.9, 0.8]), np.array([0, 2])
    right = np.array([False, True])
    assert best_choice(judge_weights(first, np.array([0.0, -3.0]), right, offsets)).weight == 0.0
    chosen = best_choice(judge_weights(first, np.array([0.0, 3.0]), right, offsets)).weight
    assert 0.0 < chosen < 0.2  # 0.1 of cosine against 0.9 of probability
    assert sorted(WEIGHTS) == list(WEIGHTS)


@given(LISTS, st.sampled_from([-6.0, -0.5, 0.0, 4.0]))
def test_nil_is_one_candidate_more(lists: Lists, nil_score: float) -> None:
    _, scores, _, offsets = columns(lists)
    found, of_nil = probabilities(scores, offsets, nil_score=nil_score)
    for row, candidates in enumerate(lists):
        odds = [math.exp(score) for _, score, _ in candidates] + [math.exp(nil_score)]
        expected = [one / sum(odds) for one in odds]
        np.testing.assert_allclose([*found[offsets[row] : offsets[row + 1]], of_nil[row]], expected)
    for far in (1e4, -1e4):
        assert all(np.isfinite(part).all() for part in probabilities(scores * far, offsets, nil_score=nil_score))


@given(LISTS, st.data(), st.sampled_from(WEIGHTS), st.sampled_from([-1.0, 0.0, 2.0]))
def test_mentions_are_judged_as_by_a_plain_loop(
    lists: Lists, data: st.DataObject, weight: float, nil_score: float
) -> None:
    means_nil = [data.draw(st.booleans()) for _ in lists]
    lists = [[(f, s, right and not nil) for f, s, right in one] for one, nil in zip(lists, means_nil, strict=True)]
    first, scores, right, offsets = columns(lists)
    ranks = []
    for candidates, nil in zip(lists, means_nil, strict=True):
        odds = [math.exp(score) for _, score, _ in candidates]
        total = sum(odds) + math.exp(nil_score)
        final = [
            round((1 - weight) * one[0] + weight * part / total, 6) for one, part in zip(candidates, odds, strict=True)
        ]
        order = sorted(range(len(candidates)), key=lambda place: (-final[place], place))
        if round(math.exp(nil_score) / total, 6) > 0.5:
            ranks.append(1 if nil else 0)
        else:
            ranks.append(next((rank for rank, place in enumerate(order, 1) if candidates[place][2]), 0))
    (choice,) = judge_weights(
        first, scores, right, offsets, weights=[weight], means_nil=np.array(means_nil, bool), nil_scores=[nil_score]
    )
    n_lists = max(1, len(lists))
    assert (choice.weight, choice.nil_score) == (weight, nil_score)
    assert choice.at_1 == pytest.approx(sum(rank == 1 for rank in ranks) / n_lists)
    assert choice.at_5 == pytest.approx(sum(0 < rank <= 5 for rank in ranks) / n_lists)
    assert choice.mrr == pytest.approx(sum(1 / rank for rank in ranks if rank) / n_lists)


@given(LISTS, st.data(), st.sampled_from(WEIGHTS), st.sampled_from([None, 0.0, 2.0]))
def test_hits_of_look_up_are_judged_as_the_linker_treats_them(
    lists: Lists, data: st.DataObject, weight: float, nil_score: float | None
) -> None:
    lists = [sorted(one, key=lambda candidate: -candidate[0]) for one in lists]
    n_hits = [data.draw(st.integers(0, len(one))) for one in lists]
    lists = [
        [(1.0 if place < n else f, s, right) for place, (f, s, right) in enumerate(one)]
        for one, n in zip(lists, n_hits, strict=True)
    ]
    first, scores, right, offsets = columns(lists)
    ranks = []
    for candidates, n in zip(lists, n_hits, strict=True):
        # What a linker asks its cross-encoder about: its hits, or where it has none all that it found.
        asked = candidates[: n or None]
        odds = [math.exp(score) for _, score, _ in asked]
        total = sum(odds) + (0.0 if nil_score is None else math.exp(nil_score))
        final = [round((1 - weight) * one[0] + weight * part / total, 6) for one, part in zip(asked, odds, strict=True)]
        order = sorted(range(len(asked)), key=lambda place: (-final[place], place))
        ranking = [asked[place] for place in order] + candidates[len(asked) :]
        is_nil = not n and nil_score is not None and round(math.exp(nil_score) / total, 6) > 0.5
        ranks.append(0 if is_nil else next((rank for rank, one in enumerate(ranking, 1) if one[2]), 0))
    (choice,) = judge_weights(
        first, scores, right, offsets, n_hits=np.array(n_hits, int), weights=[weight], nil_scores=[nil_score]
    )
    n_lists = max(1, len(lists))
    assert choice.at_1 == pytest.approx(sum(rank == 1 for rank in ranks) / n_lists)
    assert choice.mrr == pytest.approx(sum(1 / rank for rank in ranks if rank) / n_lists)


def test_nil_answers_where_it_is_more_probable_than_all_others_together() -> None:
    first, scores, offsets = np.array([0.9, 0.8, 0.9]), np.array([1.0, 3.0, -2.0]), np.array([0, 2, 3, 3])
    _, of_nil = probabilities(scores, offsets, nil_score=0.0)
    assert answers_nil(of_nil).tolist() == [False, True, True]
    offsets = offsets[:-1]
    right, means_nil = np.array([False, True, False]), np.array([False, True])
    choices = judge_weights(first, scores, right, offsets, means_nil=means_nil, nil_scores=NIL_SCORES)
    best = best_choice(choices)
    assert best.at_1 == 1.0
    assert best.nil_score is not None
    # Equally good without: none is chosen.
    has_concept = judge_weights(first, scores, right, offsets, means_nil=~means_nil, nil_scores=NIL_SCORES)
    assert best_choice(has_concept[len(WEIGHTS) :]).at_1 <= best_choice(has_concept[: len(WEIGHTS)]).at_1 == 0.5
    assert best_choice(has_concept).nil_score is None
