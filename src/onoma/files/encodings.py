"""Text in other encodings than UTF-8, which a person has named: it is read as if it were UTF-8."""

from __future__ import annotations

import codecs
import re

from onoma.errors import ConfigError

_NOT_OF_FILES = frozenset({"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"})
"""What Python knows among its encodings of text, and no file is in."""
_NOTHING = re.compile("[\udc80-\udcff]")
"""What bytes that are nothing are read as: two of them side by side, as they are, might be a character in UTF-8."""

OTHERS = "cp1250 for Central Europe, cp1251 Cyrillic, cp1253 Greek, cp1254 Turkish, shift_jis, gb18030"
"""Encodings of files that people have, besides that of Windows in Western Europe."""


def checked_encoding(name: str) -> str | None:
    """An encoding by the name that Python has for it, such as ``cp1252`` of ``windows-1252``; ``None`` is UTF-8.

    Raises:
        ConfigError: there is none of this name, or it is not one of text.
    """
    try:
        if not isinstance(name, str):
            raise LookupError
        found = codecs.lookup(name)
        if found.name in _NOT_OF_FILES:
            raise LookupError
        bytes(4).decode(name)  # refuses what is none of text
    except (LookupError, ValueError):
        raise ConfigError(
            f"encoding '{name}' is not known. Take that of the file, e.g. cp1252 (Western Europe), latin-1, utf-16, "
            f"{OTHERS} (all: docs.python.org/3/library/codecs.html#standard-encodings)."
        ) from None
    return None if found.name == "utf-8" else found.name


class Recoder:
    """Bytes of one text, in an encoding, to UTF-8; they may end within a character.

    A byte that is nothing in this encoding becomes one that is nothing in UTF-8 (0xff), so that who reads its line
    finds it.

    Args:
        encoding: One that `checked_encoding` knows.
    """

    def __init__(self, encoding: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="surrogateescape")

    def recode(self, data: bytes, *, is_last: bool = False) -> bytes:
        """The next bytes.

        Raises:
            UnicodeError: there is no telling what is a character (UTF-16 that is cut off, or none).
        """
        text = _NOTHING.sub("\udcff", self._decoder.decode(data, final=is_last))
        return text.encode(errors="surrogateescape")
