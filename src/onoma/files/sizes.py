"""Sizes of files for people."""

from __future__ import annotations


def size_in_words(n_bytes: int | None) -> str:
    """Bytes for a person.

    Example:
        >>> size_in_words(53_134_854), size_in_words(None)
        ('53.1 MB', 'size unknown')
    """
    if n_bytes is None:
        return "size unknown"
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes} bytes"
