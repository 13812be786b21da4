"""Random numbers from a seed that a user gives."""

from __future__ import annotations

import numpy as np

from onoma.errors import whole_number


def random_from(seed: int) -> np.random.Generator:
    """Random numbers, the same for the same seed.

    Raises:
        InputError: the seed is no whole number from 0.
    """
    return np.random.default_rng(whole_number(seed, "seed", "not a possible seed", least=0))
