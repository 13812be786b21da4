"""The first bytes of a text file: whether they say that it is UTF-16 or UTF-32."""

from __future__ import annotations

from pathlib import Path

from onoma.errors import InputError

_SEEN = 16
"""Bytes at the beginning of a file by which UTF-16 is told: every second one is 0."""


def without_byte_order_mark(start: bytes, path: Path, *, encoding_option: str | None = None) -> bytes:
    """The first bytes of a file without the mark of UTF-8; for the option see `Reading`.

    Raises:
        InputError: it is UTF-16 or UTF-32.
    """
    is_32 = start.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff"))
    is_marked = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not (is_32 or is_marked or (len(start) >= _SEEN and any(start[:_SEEN:2]) != any(start[1:_SEEN:2]))):
        return start.removeprefix(b"\xef\xbb\xbf")
    # Without a mark converters take the order of the machine, and make other characters of all.
    code = "UTF-32" if is_32 else "UTF-16" if is_marked else "UTF-16LE" if any(start[:_SEEN:2]) else "UTF-16BE"
    raise InputError(
        f"the file is {code[:6]}",
        path=path,
        line=1,
        expected="UTF-8",
        fix=(f"say so ({encoding_option}{code}), or " if encoding_option else "")
        + f"convert it, e.g. iconv -f {code} -t UTF-8",
    )
