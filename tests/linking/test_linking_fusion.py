"""Two searches' scores made one, and what is learned for it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import InputError
from onoma.linking.fusion import contributions, fuse, learn_weights, ranks
from onoma.linking.likelihood import LabelledPool, _likelihood
from onoma.linking.settings import Stage
from onoma.types import DoubleArray

Parts = dict[Stage, DoubleArray]
scores_of = st.lists(st.sampled_from([0.0, 0.1, 0.1000000001, 0.5, 0.50001, 1.0, -0.2]), min_size=1, max_size=8)


@settings(max_examples=100)
@given(dense=scores_of, sparse=scores_of)
def test_reciprocal_ranks_equal_loops(dense: list[float], sparse: list[float]) -> None:
    n = min(len(dense), len(sparse))
    parts: Parts = {"dense": np.array(dense[:n]), "sparse": np.array(sparse[:n])}
    fused = fuse(parts, None)
    known = [
        of_ngrams if cosine == 0 < max(dense[:n]) else cosine
        for cosine, of_ngrams in zip(dense[:n], sparse[:n], strict=True)
    ]
    for place in range(n):
        total = 0.0
        for scores in (known, sparse[:n]):
            better = sum(1 for score in scores if round(score, 6) > round(scores[place], 6))
            total += 1 / (60 + better + 1) if max(scores) > 0 else 0
        assert fused[place] == pytest.approx(total / (2 / 61), abs=1e-12)


def test_first_in_every_search_has_the_score_1() -> None:
    parts: Parts = {"dense": np.array([0.3, 0.9, 0.1]), "sparse": np.array([0.2, 0.7, 0.7])}
    assert fuse(parts, None)[1] == 1
    assert (fuse(parts, None) <= 1).all()


def test_a_search_that_knows_nothing_makes_nothing_sure() -> None:
    parts: Parts = {"dense": np.array([0.3, 0.2, 0.1]), "sparse": np.zeros(3)}
    assert fuse(parts, None).tolist() == [0.5, 61 / 62 / 2, 61 / 63 / 2]
    assert fuse({"dense": np.zeros(2), "sparse": np.zeros(2)}, None).tolist() == [0, 0]


def test_ngrams_stand_for_the_cosine_of_what_has_no_vector() -> None:
    weights: dict[Stage, float] = {"dense": 0.9, "sparse": 0.1}
    parts: Parts = {"dense": np.array([0.8, 0.0, 0.0]), "sparse": np.array([0.2, 0.9, 0.0])}
    assert fuse(parts, weights) == pytest.approx([0.74, 0.9, 0])
    assert fuse(parts, None) == pytest.approx([61 / 62, 1, 61 / 63])
    unread: Parts = {"dense": np.zeros(2), "sparse": np.array([0.9, 0.5])}
    assert fuse(unread, weights) == pytest.approx([0.9, 0.5])
    assert fuse(unread, None) == pytest.approx([0.5, 61 / 62 / 2])  # one search alone makes nothing sure


def test_weights_keep_the_score_of_an_equal_text_at_1() -> None:
    parts: Parts = {"dense": np.array([1.0, 0.5]), "sparse": np.array([1.0, 0.25])}
    assert fuse(parts, {"dense": 0.75, "sparse": 0.25}).tolist() == [1.0, 0.4375]


def test_one_search_keeps_its_own_scores() -> None:
    scores = np.array([0.3, -0.5])
    for weights in (None, dict[Stage, float]({"dense": 0.1, "sparse": 0.9})):
        assert fuse({"dense": scores}, weights).tolist() == scores.tolist()


def test_contributions_add_up() -> None:
    rng = np.random.default_rng(0)
    parts: Parts = {"dense": rng.uniform(-1, 1, 20), "sparse": rng.uniform(0, 1, 20)}
    for weights in (None, dict[Stage, float]({"dense": 0.3, "sparse": 0.7})):
        added = np.stack(list(contributions(parts, weights).values())).sum(axis=0)
        np.testing.assert_allclose(added, fuse(parts, weights), atol=1e-12)


def test_ranks_do_not_see_what_rounding_does() -> None:
    assert ranks(np.array([0.5, 0.5 + 1e-8, 0.4, 0.9])).tolist() == [2, 2, 4, 1]


@settings(max_examples=100)
@given(
    dense=st.lists(scores_of.map(lambda scores: scores[0]), min_size=9, max_size=9),
    sparse=st.lists(scores_of.map(lambda scores: scores[0]), min_size=9, max_size=9),
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    share=st.none() | st.floats(0, 1),
)
def test_later_pools_stay_behind_and_change_nothing(
    dense: list[float], sparse: list[float], sizes: list[int], share: float | None
) -> None:
    weights = None if share is None else dict[Stage, float]({"dense": share, "sparse": 1 - share})
    tiers = np.repeat(np.arange(len(sizes)), sizes)
    shuffled = np.random.default_rng(len(tiers)).permutation(len(tiers))
    tiers = tiers[shuffled]
    parts: Parts = {"dense": np.array(dense[: len(tiers)]), "sparse": np.array(sparse[: len(tiers)])}
    fused = fuse(parts, weights, tiers)
    for last in range(len(sizes)):
        there = tiers <= last
        before = fuse({stage: scores[there] for stage, scores in parts.items()}, weights, tiers[there])
        assert before.tolist() == fused[there].tolist()
        if last + 1 < len(sizes):
            assert fused[there].min().round(6) > fused[~there].max().round(6)
        own = tiers == last
        alone = fuse({stage: scores[own] for stage, scores in parts.items()}, weights)
        if weights is not None:  # within a pool nothing moves against the other
            np.testing.assert_allclose(np.diff(fused[own]), np.diff(alone), atol=1e-9)
        all_know = all(scores[tiers == tier].max() > 0 for scores in parts.values() for tier in (0, last))
        if weights is not None or all_know:
            assert (
                np.argsort(-fused[own].round(9), kind="stable")[:1] == np.argsort(-alone.round(9), kind="stable")[:1]
            ).all()
    if len(sizes) == 1:
        assert fused.tolist() == fuse(parts, weights).tolist()


def make_pools(weights: tuple[float, float], *, n: int = 200, seed: int = 0) -> list[LabelledPool]:
    """Mentions whose right text is drawn by the softmax that is to be found again."""
    rng = np.random.default_rng(seed)
    pools = []
    for _ in range(n):
        scores = rng.uniform(0, 1, (12, 2))
        odds = np.exp(scores @ np.array(weights))
        is_right = np.zeros(12, np.bool_)
        is_right[rng.choice(12, p=odds / odds.sum())] = True
        pools.append(LabelledPool(scores, is_right))
    return pools


def minus_log_likelihood(weights: DoubleArray, pools: list[LabelledPool]) -> float:
    """The oracle, mention by mention and text by text."""
    total = 0.0
    for pool in pools:
        odds = [math.exp(sum(w * s for w, s in zip(weights, line, strict=True))) for line in pool.scores.tolist()]
        right = sum(odd for odd, is_right in zip(odds, pool.is_right.tolist(), strict=True) if is_right)
        total -= math.log(right / sum(odds))
    return total / len(pools) + 1e-6 / 2 * float(weights @ weights)


def test_learned_weights_are_the_most_likely_ones() -> None:
    from scipy.optimize import minimize

    pools = make_pools((8.0, 4.0))
    best = minimize(
        minus_log_likelihood, np.ones(2), args=(pools,), bounds=[(0, None), (0, None)], method="L-BFGS-B", tol=1e-12
    ).x
    learned = learn_weights(pools)
    assert learned["dense"] == pytest.approx(best[0] / best.sum(), abs=1e-4)
    assert sum(learned.values()) == pytest.approx(1, abs=1e-12)
    assert learned["dense"] == pytest.approx(2 / 3, abs=0.06)


def test_several_right_texts_count_together() -> None:
    from scipy.optimize import minimize

    pools = [LabelledPool(p.scores, p.is_right | np.roll(p.is_right, 1)) for p in make_pools((6.0, 9.0), seed=1)]
    best = minimize(
        minus_log_likelihood, np.ones(2), args=(pools,), bounds=[(0, None), (0, None)], method="L-BFGS-B", tol=1e-12
    ).x
    assert learn_weights(pools)["dense"] == pytest.approx(best[0] / best.sum(), abs=1e-4)


def test_derivatives_are_those_of_the_likelihood() -> None:
    pools, at, step = make_pools((3.0, 1.0), n=20), np.array([2.0, 0.7]), 1e-5
    value, gradient, curvature = _likelihood(pools, at)
    assert value == pytest.approx(-minus_log_likelihood(at, pools), abs=1e-12)
    for axis, move in enumerate(np.eye(2) * step):
        after, before = _likelihood(pools, at + move), _likelihood(pools, at - move)
        assert gradient[axis] == pytest.approx((after[0] - before[0]) / (2 * step), abs=1e-7)
        np.testing.assert_allclose(curvature[axis], (after[1] - before[1]) / (2 * step), atol=1e-7)


def test_a_search_that_misleads_has_no_weight() -> None:
    pools = [LabelledPool(p.scores * np.array([1, -1]), p.is_right) for p in make_pools((5.0, 20.0))]
    assert learn_weights(pools) == {"dense": 1.0, "sparse": 0.0}


def test_weights_do_not_get_stuck_beside_zero() -> None:
    rng = np.random.default_rng(1758)
    pools = []
    for _ in range(5):
        scores, is_right = rng.random((6, 2)) * [1.0, 10.0], np.zeros(6, bool)
        is_right[rng.integers(6)] = True
        pools.append(LabelledPool(scores, is_right))
    assert learn_weights(pools) == {"dense": 1.0, "sparse": 0.0}


def test_scores_that_all_mislead_teach_nothing() -> None:
    pools = [LabelledPool(-pool.scores, pool.is_right) for pool in make_pools((5.0, 20.0))]
    with pytest.raises(InputError, match="speak against the right ones"):
        learn_weights(pools)


def test_mentions_that_are_all_answered_give_finite_weights() -> None:
    scores = np.array([[0.9, 0.8], [0.1, 0.2], [0.0, 0.1]])
    learned = learn_weights([LabelledPool(scores, np.array([True, False, False]))] * 5)
    assert 0 < learned["dense"] < 1


def test_a_mention_that_occurs_often_counts_as_often() -> None:
    pools = make_pools((8.0, 4.0), n=30)
    once = [LabelledPool(pool.scores, pool.is_right, n=1 + place % 3) for place, pool in enumerate(pools)]
    repeated = [pool for place, pool in enumerate(pools) for _ in range(1 + place % 3)]
    assert learn_weights(once)["dense"] == pytest.approx(learn_weights(repeated)["dense"], abs=1e-9)


def test_nothing_to_learn_from() -> None:
    scores = np.zeros((2, 2))
    with pytest.raises(InputError, match="no weights can be learned"):
        learn_weights([LabelledPool(scores, np.array([False, False])), LabelledPool(scores, np.array([True, True]))])
