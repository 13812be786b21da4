"""The best of many scores."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.indexes.selection import top_rows


@settings(max_examples=200)
@given(n=st.integers(0, 900), k=st.integers(1, 1000), kinds=st.integers(1, 500), seed=st.integers(0, 2**32 - 1))
def test_equals_sorting(n: int, k: int, kinds: int, seed: int) -> None:
    scores = np.random.default_rng(seed).integers(-kinds, kinds, n).astype(np.float32)
    expected = sorted(range(n), key=lambda row: (-scores[row], row))[:k]
    assert top_rows(scores, k).tolist() == expected
