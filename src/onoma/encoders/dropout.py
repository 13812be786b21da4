"""Dropout that does not wait for random numbers.

On a CPU torch draws one 64-bit number of its generator per element, and that took a fifth of a training step. Here
one draw serves four elements, 16 bits each, and numpy draws, twice as fast; and a forward pass draws for its largest
tensor only. Each of its tensors takes a stretch of these draws, from a random place on. All is seeded by torch's
generator, so saving the state of that one is all that exact resuming needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

_LANES = 4
"""16-bit numbers in one draw of 64 bits."""
_SPARE = 2**18
"""Elements drawn beyond those of the largest tensor: how far apart two stretches can begin."""
_STEP = 64
"""Stretches begin at multiples of this, where a processor reads at full speed: 4,096 places to begin at."""


class Dropout:
    """Zeroes elements of the tensors of one forward pass and scales the others so that the expectation stays.

    On a CPU the probability is rounded to a multiple of 1/65536, below 1. Elements of one tensor are dropped
    independently of each other; two tensors of a pass share most of their draws, shifted by a random distance.

    Args:
        probability: 0 <= probability < 1; 0 gives each tensor back as it is.
    """

    def __init__(self, probability: float) -> None:
        self.probability = probability
        self._drawn: dict[torch.dtype, torch.Tensor] = {}

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        """The states with some of them dropped, any shape."""
        if self.probability == 0.0:
            return states
        if states.device.type != "cpu":
            return functional.dropout(states, self.probability)
        return states * self.keep_factors(states.shape, states.dtype)

    def keep_factors(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """What to multiply with on a CPU: 0 where an element is dropped, 1 / (1 - probability) where it is kept.

        Args:
            shape: Of the factors, which are not to be changed: others have them too.
            dtype: Of the factors.
        """
        n_elements = math.prod(shape)
        if dtype not in self._drawn or len(self._drawn[dtype]) < n_elements + _SPARE:
            self._drawn[dtype] = _draw(n_elements + _SPARE, self.probability, dtype)
        drawn = self._drawn[dtype]
        first = _STEP * int(torch.randint((len(drawn) - n_elements) // _STEP, ()))
        return drawn[first : first + n_elements].view(shape)


def _draw(n_elements: int, probability: float, dtype: torch.dtype) -> torch.Tensor:
    """Factors that are independent of each other."""
    seed = int(torch.empty((), dtype=torch.int64).random_())
    raw = np.random.SFC64(seed).random_raw(-(-n_elements // _LANES))
    draws = torch.from_numpy(raw.view(np.int16))
    dropped = min(round(probability * 65536), 65535)
    # In place, so that the comparison gives 0 and 1 as 16-bit integers and not as bytes, which convert slowly.
    kept = draws[:n_elements].ge_(dropped - 32768)
    factor = 65536 / (65536 - dropped)
    if dtype.itemsize == kept.itemsize:
        return kept.mul_(int(torch.tensor(factor, dtype=dtype).view(torch.int16))).view(dtype)
    return kept.to(dtype).mul_(factor)
