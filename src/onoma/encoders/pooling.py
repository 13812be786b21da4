"""Which token vectors make the vector of a name."""

from __future__ import annotations

from typing import Literal, get_args

from onoma.errors import ConfigError, did_you_mean

Pooling = Literal["cls", "mean", "mean-nospec", "mean-all"]
"""Which token vectors make a name's vector; see `onoma.encoders.packed.PackedEncoder`."""

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


def checked_pooling(pooling: str | None) -> Pooling | None:
    """The pooling of that name; None for none.

    Raises:
        ConfigError: there is none of that name.
    """
    for known in POOLINGS:
        if pooling == known:
            return known
    if pooling is None:
        return None
    raise ConfigError(
        f"there is no pooling '{pooling}'.{did_you_mean(pooling, POOLINGS)} Known: {', '.join(POOLINGS)}."
    )
