"""Keys of mentions: equal mentions have equal keys, on every machine and in every version.

A key is the BLAKE2b digest of the text, 16 bytes of it. Two different texts of one key are not to be feared,
not even from somebody who looks for them, so that the key stands for the text. Sorted keys are spread evenly over their
range; a part of that range is therefore a fair share of the work (`task_bounds`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

KEY_BYTES = 16
MENTION = "mention"
CONTEXT = "context"
KEY_TYPE = np.dtype(f"S{KEY_BYTES}")
KeyArray: TypeAlias = npt.NDArray[np.bytes_]
"""Keys, dtype `KEY_TYPE`, shape (n,). NumPy compares them as bytes."""


def keys_of(texts: pl.DataFrame) -> KeyArray:
    """The key of each row.

    Args:
        texts: Columns ``mention`` and perhaps ``context`` (String, no nulls).

    Example:
        >>> keys = keys_of(pl.DataFrame({"mention": ["cold", "flu", "cold"]}))
        >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
        (True, False)
    """
    mentions: Iterable[bytes] = (text.encode() for text in texts[MENTION])
    if CONTEXT in texts.columns:
        # The length divides the two, whatever characters they hold.
        contexts = (text.encode() for text in texts[CONTEXT])
        mentions = (
            len(mention).to_bytes(8, "big") + mention + context
            for mention, context in zip(mentions, contexts, strict=True)
        )
    digests = b"".join(hashlib.blake2b(mention, digest_size=KEY_BYTES).digest() for mention in mentions)
    return np.frombuffer(digests, KEY_TYPE)


def task_bounds(n_tasks: int) -> KeyArray:
    """The lowest key of each of ``n_tasks`` equal parts of the range of keys, shape (n_tasks,)."""
    lowest = [-(-(number << 64) // n_tasks) for number in range(n_tasks)]
    return np.array([bound.to_bytes(8, "big") for bound in lowest], KEY_TYPE)


def rows_of_task(keys: KeyArray, bounds: KeyArray, task: int) -> slice:
    """Where the keys of one task stand among sorted ones."""
    begin = int(np.searchsorted(keys, bounds[task]))
    end = int(np.searchsorted(keys, bounds[task + 1])) if task + 1 < len(bounds) else len(keys)
    return slice(begin, end)


def find_keys(keys: KeyArray, wanted: KeyArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Where each wanted key stands among sorted ones, or would, and whether it is there."""
    positions = np.searchsorted(keys, wanted)
    if not len(keys):
        return positions, np.zeros(len(wanted), np.bool_)
    return positions, np.asarray(keys[np.minimum(positions, len(keys) - 1)] == wanted)
