from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import InputError
from onoma.training.batches import PairBatches
from onoma.training.optimiser_step import learning_rate_factor
from onoma.types import FloatArray, RowArray


@settings(max_examples=50)
@given(n_pairs=st.integers(1, 40), batch_pairs=st.integers(2, 12), seed=st.integers(0, 5))
def test_every_epoch_visits_each_pair_once(n_pairs: int, batch_pairs: int, seed: int) -> None:
    pairs = np.arange(2 * n_pairs).reshape(n_pairs, 2)
    batches = PairBatches(pairs, batch_pairs=batch_pairs, seed=seed)
    for epoch in range(2):
        seen: Counter[tuple[int, int]] = Counter()
        for step in range(batches.steps_per_epoch):
            names = batches.names_of_step(epoch * batches.steps_per_epoch + step)
            assert len(names) <= 2 * batch_pairs
            left, right = names.reshape(2, -1)
            seen.update(zip(left.tolist(), right.tolist(), strict=True))
        assert seen == Counter(map(tuple, pairs.tolist()))


def test_a_step_does_not_depend_on_the_steps_before() -> None:
    pairs = np.arange(40).reshape(20, 2)
    straight = PairBatches(pairs, batch_pairs=3, seed=1)
    everything = [straight.names_of_step(step) for step in range(20)]
    for step in (19, 3, 8, 0):
        resumed = PairBatches(pairs, batch_pairs=3, seed=1)
        np.testing.assert_array_equal(resumed.names_of_step(step), everything[step])


def test_epochs_and_seeds_differ() -> None:
    pairs = np.arange(200).reshape(100, 2)
    one, other = (PairBatches(pairs, batch_pairs=100, seed=seed) for seed in (1, 2))
    assert not np.array_equal(one.names_of_step(0), one.names_of_step(1))
    assert not np.array_equal(one.names_of_step(0), other.names_of_step(0))


def test_no_pairs() -> None:
    with pytest.raises(InputError, match="no pairs"):
        PairBatches(np.empty((0, 2), np.int32), batch_pairs=2, seed=0)


@given(total=st.integers(1, 50), warmup=st.integers(0, 60), schedule=st.sampled_from(["linear", "constant"]))
def test_the_learning_rate_stays_between_zero_and_its_highest(total: int, warmup: int, schedule: str) -> None:
    factors = [learning_rate_factor(s, total, schedule=schedule, warmup_steps=warmup) for s in range(total)]
    assert all(0 < factor <= 1 for factor in factors)
    assert warmup >= total or max(factors) == 1


def test_random_batches_are_slices_of_a_permutation_and_need_no_preparation() -> None:
    pairs = np.arange(40).reshape(20, 2)
    batches = PairBatches(pairs, batch_pairs=6, seed=9)

    def never(rows: RowArray) -> FloatArray:
        raise AssertionError("random batches do not depend on the weights")

    for number in range(8):
        batches.prepare(number, never)
        order = np.random.default_rng([9, number // 4]).permutation(20)[number % 4 * 6 : number % 4 * 6 + 6]
        assert batches.names_of_step(number).tolist() == [*pairs[order, 0].tolist(), *pairs[order, 1].tolist()]
    assert batches.preparation_seconds(never) == (0, 0)
