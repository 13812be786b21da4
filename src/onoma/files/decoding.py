"""Text of documents (JSON, RDF) from blocks of bytes, which may end within a line or a character."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import NoReturn

from onoma.errors import InputError
from onoma.files.byte_order_marks import without_byte_order_mark


class TextDecoder:
    """UTF-8, and nothing else, of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._n_line_feeds, self._is_first = 0, True

    def decode(self, data: bytes, *, is_last: bool = False) -> str:
        """The text of the next bytes, without a byte order mark.

        Raises:
            InputError: NUL, UTF-16 or no UTF-8, saying the line.
        """
        if self._is_first:
            data = without_byte_order_mark(data, self._path)
            self._is_first = False
        if b"\0" in data:
            self._refuse("NUL byte in a text file", data, data.index(b"\0"), fix="get the file again")
        try:
            text = self._decoder.decode(data, final=is_last)
        except UnicodeDecodeError as error:
            position = max(error.start - len(error.object) + len(data), 0)
            problem = f"not UTF-8 (byte 0x{error.object[error.start]:02x})"
            self._refuse(problem, data, position, fix="convert the file to UTF-8")
        self._n_line_feeds += data.count(b"\n")
        return text

    def _refuse(self, problem: str, data: bytes, position: int, *, fix: str) -> NoReturn:
        raise InputError(
            problem,
            path=self._path,
            line=self._n_line_feeds + data.count(b"\n", 0, position) + 1,
            found=repr(data[max(position - 20, 0) : position + 20])[2:-1],
            fix=fix,
        )
