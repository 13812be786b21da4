"""Lists of words in the code, as rules of English go by them."""

from __future__ import annotations


def listed(words: str) -> frozenset[str]:
    """Words that white space divides."""
    return frozenset(words.split())


def in_order(words: str) -> tuple[str, ...]:
    """Words that white space divides, as they stand."""
    return tuple(words.split())
