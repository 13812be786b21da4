"""What of a text a terminal may be given."""

from __future__ import annotations

import unicodedata

_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str, *, keep: str = "") -> str:
    """Text of a file may hold what a terminal would obey: control characters but those to keep are U+FFFD, and so are
    marks that have what follows shown in another order.
    """
    return "".join(
        c if c in keep or not (unicodedata.category(c) == "Cc" or c in _DIRECTIONS) else "\ufffd" for c in text
    )
