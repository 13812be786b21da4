"""First bytes that say that a file is UTF-16 or UTF-32, or UTF-8 with a mark."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from onoma.errors import InputError
from onoma.files.byte_order_marks import without_byte_order_mark

TEXT = "id,name\n1,heart attack\n"


@pytest.mark.parametrize(
    ("start", "code"),
    [
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), "UTF-16"),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "UTF-16"),
        (codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"), "UTF-32"),
        (codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"), "UTF-32"),
        (TEXT.encode("utf-16-le"), "UTF-16LE"),
        (TEXT.encode("utf-16-be"), "UTF-16BE"),
    ],
    ids=["16 LE", "16 BE", "32 LE", "32 BE", "16 LE without a mark", "16 BE without a mark"],
)
def test_what_is_no_utf8_is_told_with_the_name_that_a_converter_takes(start: bytes, code: str) -> None:
    with pytest.raises(
        InputError, match=rf"is {code[:6]}; expected UTF-8.*mend it: convert it, e\.g\. iconv -f {code} "
    ):
        without_byte_order_mark(start, Path("x.csv"))
    with pytest.raises(InputError, match=rf"mend it: say so \(--encoding {code}\), or convert it"):
        without_byte_order_mark(start, Path("x.csv"), encoding_option="--encoding ")


@pytest.mark.parametrize("start", [TEXT.encode(), b"", b"a\0b\0", b"\0" * 16, b"a\0" + TEXT.encode()], ids=ascii)
def test_all_else_is_read_without_the_mark_of_utf8(start: bytes) -> None:
    assert without_byte_order_mark(start, Path("x.csv")) == start
    assert without_byte_order_mark(codecs.BOM_UTF8 + start, Path("x.csv")) == start
