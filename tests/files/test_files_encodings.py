"""Text files in other encodings than UTF-8."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import ConfigError, InputError
from onoma.files.encodings import checked_encoding
from onoma.files.reading import OnError, Reading
from onoma.files.text_files import only_file, read_blocks, text_lines

ENCODINGS = ["cp1252", "iso8859-1", "utf-16", "utf-16-le", "utf-32", "gb18030", "cp1251", "utf-8-sig"]


def reading(encoding: str, on_error: OnError = "strict") -> Reading:
    return Reading(on_error, encoding=checked_encoding(encoding), encoding_option="--encoding ")


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=25)
@given(data=st.data(), block_bytes=st.integers(1, 40))
def test_what_is_read_is_what_was_written(
    encoding: str, data: st.DataObject, block_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    letters = st.characters(exclude_characters="\n\r\0\ufeff", exclude_categories=["Cs"], codec=encoding)
    lines = data.draw(st.lists(st.text(letters, min_size=1), min_size=1, max_size=6))
    path = tmp_path_factory.mktemp("x") / "x.txt"
    path.write_bytes("\n".join(lines).encode(encoding))
    blocks = list(read_blocks(only_file(path), reading(encoding), block_bytes=block_bytes))
    assert b"".join(block.data for block in blocks).decode().split("\n")[:-1] == lines
    assert [block.first_line for block in blocks] == [
        1 + sum(earlier.n_lines for earlier in blocks[:number]) for number in range(len(blocks))
    ]


def test_names_of_encodings() -> None:
    assert [checked_encoding(name) for name in ("utf-8", "UTF8", "windows-1252", "latin-1", "UTF_16")] == [
        None,
        None,
        "cp1252",
        "iso8859-1",
        "utf-16",
    ]
    for name in ("utf9", "rot13", "base64", "punycode", "undefined", "", "a\0b", "unicode_escape"):
        with pytest.raises(ConfigError, match=r"is not known\. Take that of the file, e.g. cp1252"):
            checked_encoding(name)


def test_bytes_that_are_nothing_in_an_encoding(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"a\nR\xfccken\nb\x81\xfc\nc")
    with pytest.raises(InputError, match=r"line 3: not cp1252; .*: name the encoding that"):
        list(text_lines(only_file(path), reading("cp1252")))
    skipping = reading("cp1252", on_error="skip")
    assert [line for _, lines in text_lines(only_file(path), skipping) for line in lines] == ["a", "Rücken", "", "c"]
    assert skipping.rejects.select("line", "reason").rows() == [(3, "not cp1252")]


@pytest.mark.parametrize(("data", "encoding"), [(b"x\xdb\xa1y\n", "iso8859-6"), ("caf\u00e9\n".encode(), "ascii")])
def test_bytes_that_are_nothing_are_no_text_together(data: bytes, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"good\n" + data)
    with pytest.raises(InputError, match=f"line 2: not {encoding}; "):
        list(text_lines(only_file(tmp_path / "x.txt"), reading(encoding)))


@pytest.mark.parametrize(
    ("data", "encoding", "problem"),
    [
        (b"id,name\n", "utf-16", "line 1: not utf-16, in this line or after it .*BOM.* it is utf-16-le or utf-16-be"),
        ("a\nb\nc\n".encode("utf-16")[:-1], "utf-16", "line [123]: not utf-16, in this line or after it .truncated"),
        (b"a\0\n\0\0\xdcb\0", "utf-16-le", "not utf-16-le"),
    ],
)
def test_a_file_that_is_not_in_the_encoding(data: bytes, encoding: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(data)
    with pytest.raises(InputError, match=problem):
        list(text_lines(only_file(tmp_path / "x.txt"), reading(encoding)))


def test_how_to_say_an_encoding_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("Rücken\n".encode("latin-1"))
    with pytest.raises(
        InputError,
        match=r"name its encoding, e.g. --encoding cp1252 .*cp1254 Turkish.* or convert",
    ):
        list(text_lines(only_file(tmp_path / "x.txt"), reading("utf-8")))
    (tmp_path / "x.txt").write_bytes("Rücken\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"is UTF-16; .* say so \(--encoding UTF-16\), or convert it"):
        list(text_lines(only_file(tmp_path / "x.txt"), reading("utf-8")))
