"""Which token vectors make the vector of a name."""

from __future__ import annotations

from typing import Literal, get_args

from onoma.errors import one_of

Pooling = Literal["cls", "mean", "mean-nospec", "mean-all"]
"""Which token vectors make a name's vector; see `onoma.encoders.packed.PackedEncoder`."""

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


def checked_pooling(pooling: str | None) -> Pooling | None:
    """The pooling of that name; None for none.

    Raises:
        ConfigError: there is none of that name.
    """
    return None if pooling is None else one_of(pooling, POOLINGS, "pooling")
