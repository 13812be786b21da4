"""Pairs against itertools; samples against what chance allows."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import ConfigError, InputError, ShapeError
from onoma.pairs import synonym_pairs
from onoma.pairs.synonyms import pair_of_number


def labels_of(sizes: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Names per concept to labels; labels skip numbers, as concept rows do."""
    return np.repeat(np.arange(len(sizes)) * 3 + 2, sizes)


def all_pairs(sizes: list[int]) -> list[list[tuple[int, int]]]:
    """The combinations of each concept, by loops."""
    starts = list(itertools.accumulate([0, *sizes]))
    return [list(itertools.combinations(range(s, s + n), 2)) for s, n in zip(starts, sizes, strict=False)]


def is_plausible_chi_square(statistic: float, degrees: int) -> bool:
    """Within four standard deviations on the scale where chi-square is nearly normal (Wilson and Hilferty)."""
    deviation = 2 / (9 * degrees)
    return bool(abs((statistic / degrees) ** (1 / 3) - (1 - deviation)) < 4 * deviation**0.5)


@given(st.lists(st.integers(1, 9), max_size=12))
@settings(max_examples=60)
def test_below_the_cap_all_combinations_come(sizes: list[int]) -> None:
    pairs = synonym_pairs(labels_of(sizes), max_per_concept=100)
    assert sorted(map(tuple, pairs.tolist())) == sorted(itertools.chain(*all_pairs(sizes)))
    assert pairs.shape[1] == 2
    assert pairs.dtype == np.int32


@given(st.lists(st.integers(1, 14), max_size=12), st.integers(1, 60), st.integers(0, 2**32))
@settings(max_examples=100)
def test_a_sample_is_of_the_right_size_distinct_and_from_the_concept(sizes: list[int], cap: int, seed: int) -> None:
    labels = labels_of(sizes)
    found = [tuple(pair) for pair in synonym_pairs(labels, max_per_concept=cap, seed=seed).tolist()]
    assert len(set(found)) == len(found)
    possible = all_pairs(sizes)
    counts = Counter(int(labels[first]) for first, _ in found)
    for number, own in enumerate(possible):
        assert counts[number * 3 + 2] == min(cap, len(own))
    assert set(found) <= set(itertools.chain(*possible))
    assert [labels[first] for first, _ in found] == sorted(labels[first] for first, _ in found)


@pytest.mark.parametrize(("n_names", "cap"), [(12, 50), (11, 50), (20, 50), (8, 3), (5, 9)], ids=str)
def test_every_pair_is_equally_likely(n_names: int, cap: int) -> None:
    """Both ways of sampling: leaving pairs out (fewer than twice the cap) and drawing them."""
    concepts = 4000
    labels = np.repeat(np.arange(concepts), n_names)
    pairs = synonym_pairs(labels, max_per_concept=cap, seed=1)
    inside = pairs - labels[pairs[:, 0]][:, None] * n_names
    counts = np.zeros((n_names, n_names))
    np.add.at(counts, (inside[:, 0], inside[:, 1]), 1)
    observed = counts[np.triu_indices(n_names, 1)]
    assert counts.sum() == observed.sum() == concepts * cap
    # draws without replacement vary less than independent ones, so the test only gets stricter by this factor
    total = len(observed)
    statistic = ((observed - observed.mean()) ** 2 / observed.mean()).sum() * (total - 1) / (total - cap)
    assert is_plausible_chi_square(statistic, total - 1)


def test_every_set_of_pairs_is_equally_likely() -> None:
    """4 names have 6 pairs; 2 of them can be chosen in 15 ways, 4 of them too."""
    labels = np.repeat(np.arange(6000), 4)
    for cap in (2, 4):
        pairs = synonym_pairs(labels, max_per_concept=cap, seed=5) % 4
        sets = Counter(tuple(sorted(map(tuple, chosen))) for chosen in pairs.reshape(6000, cap, 2).tolist())
        assert len(sets) == 15
        assert is_plausible_chi_square(sum((count - 400) ** 2 / 400 for count in sets.values()), 14)


def test_the_seed_decides_and_nothing_else() -> None:
    labels = labels_of([30, 2, 40, 12, 1, 11] * 20)
    first = synonym_pairs(labels, seed=3)
    assert np.array_equal(first, synonym_pairs(labels, seed=3))
    assert not np.array_equal(first, synonym_pairs(labels, seed=4))


def test_a_concept_of_five_thousand_names_costs_its_sample_only() -> None:
    pairs = synonym_pairs(labels_of([3, 5000, 2]), seed=2)
    assert len(pairs) == 3 + 50 + 1
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    large = synonym_pairs(labels_of([5000]), max_per_concept=100_000, seed=2)
    assert len(np.unique(large, axis=0)) == 100_000
    assert (large[:, 0] < large[:, 1]).all()
    assert large.max() < 5000


@pytest.mark.parametrize("cap", [2**62, 2**63, 10**30])
def test_any_cap_that_nothing_reaches_is_none(cap: int) -> None:
    labels = np.repeat([0, 1, 2], [4, 1, 7])
    assert np.array_equal(synonym_pairs(labels, max_per_concept=cap), synonym_pairs(labels, max_per_concept=21))


def test_many_blocks_are_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [5, 1, 7, 2, 12, 3] * 30
    monkeypatch.setattr("onoma.pairs.synonyms._BLOCK_PAIRS", 64)
    pairs = synonym_pairs(labels_of(sizes), max_per_concept=100)
    assert sorted(map(tuple, pairs.tolist())) == sorted(itertools.chain(*all_pairs(sizes)))


@given(st.integers(0, 10**17))
def test_numbers_and_pairs_are_one_to_one(number: int) -> None:
    first, second = (int(a[0]) for a in pair_of_number(np.array([number])))
    assert 0 <= first < second
    assert second * (second - 1) // 2 + first == number


def test_numbers_count_pairs_from_zero() -> None:
    first, second = pair_of_number(np.arange(1225))
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == set(itertools.combinations(range(50), 2))


@pytest.mark.parametrize("labels", [[], [5], [1, 2, 3]])
def test_without_two_names_of_a_concept_there_is_no_pair(labels: list[int]) -> None:
    assert synonym_pairs(np.array(labels, np.int64)).shape == (0, 2)


def test_labels_out_of_order_and_a_cap_of_zero_are_refused() -> None:
    with pytest.raises(ShapeError, match="ascending"):
        synonym_pairs(np.array([1, 2, 1]))
    with pytest.raises(ShapeError):
        synonym_pairs(np.zeros((2, 2), np.int64))
    with pytest.raises(ConfigError, match="at least 1"):
        synonym_pairs(np.array([1, 1]), max_per_concept=0)
    with pytest.raises(ConfigError, match="at least 1; found '2'"):
        synonym_pairs(np.array([1, 1]), max_per_concept="2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not a possible seed; expected a whole number from 0; found -1"):
        synonym_pairs(np.array([1, 1]), seed=-1)
