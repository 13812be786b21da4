"""Numbers of things for people."""

from __future__ import annotations


def quantity(number: int, noun: str, plural: str | None = None) -> str:
    """A number and what there are so many of; thousands are separated by commas.

    Args:
        number: How many.
        noun: In the singular.
        plural: Unset: the noun with an s behind it.

    Example:
        >>> quantity(1, "name"), quantity(2_000, "query", "queries")
        ('1 name', '2,000 queries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
