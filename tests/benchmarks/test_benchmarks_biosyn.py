"""The two files of the published protocol, good and bad."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from onoma.benchmarks import get_task
from onoma.benchmarks.biosyn import (
    DictionaryLine,
    Query,
    find_file,
    query_files,
    read_dictionary,
    read_mentions_as_names,
    read_queries,
)
from onoma.errors import InputError


def written(tmp_path: Path, content: bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def test_queries(tmp_path: Path) -> None:
    path = written(
        tmp_path, b"D1||copper toxicosis\nD1|D2+D3||breast|ovarian cancer\n215600||\xc3\xa9pilepsie + absence\n"
    )
    assert read_queries(path) == [
        Query("copper toxicosis", ("copper toxicosis",), frozenset({"D1"})),
        Query("breast|ovarian cancer", ("breast", "ovarian cancer"), frozenset({"D1", "D2", "D3"})),
        Query("épilepsie + absence", ("épilepsie ", " absence"), frozenset({"215600"})),
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [(b"D1+||stroke", r"field ids: .*found D1\+\."), (b"D1||stroke|", r"field mention: .*found stroke\|\.")],
)
def test_empty_parts_are_shown_where_they_are(tmp_path: Path, line: bytes, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_queries(written(tmp_path, line))


def test_equal_queries_stay(tmp_path: Path) -> None:
    assert len(read_queries(written(tmp_path, b"D1||a\nD1||a\n"))) == 2


def test_dictionary_ids_are_split_on_the_bar_alone(tmp_path: Path) -> None:
    path = written(tmp_path, b"D1|600512||first\r\nD2+D3||second", "file.txt.gz")
    assert read_dictionary(path) == [DictionaryLine("first", ("D1", "600512")), DictionaryLine("second", ("D2+D3",))]


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "D1||a\u2028b\nD2||c\u0085d\n".encode())
    assert [line.name for line in read_dictionary(path)] == ["a\u2028b", "c\u0085d"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"D1||a\nno separator\n", 2),
        (b"D1||a||b\n", 1),
        (b"D1||a\n\nD2||b\n", 2),
        (b"||a\n", 1),
        (b"D1||\n", 1),
        (b"D1||a\nD2|| \n", 2),
        (b"D1||a\nD2||\xff\n", 2),
        (b"D1| ||a\n", 1),
    ],
)
@pytest.mark.parametrize("read", [read_queries, read_dictionary])
def test_bad_lines_are_named(tmp_path: Path, content: bytes, line: int, read: type) -> None:
    with pytest.raises(InputError, match=rf"file\.txt, line {line}\b"):
        read(written(tmp_path, content))


def test_a_blank_line_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 2: .*; found a blank line"):
        read_queries(written(tmp_path, b"D1||a\n\nD2||b\n"))


@pytest.mark.parametrize("content", [b"D1||a|\n", b"D1||+a\n", b"D1+||a\n"])
def test_empty_parts_of_a_query_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="line 1"):
        read_queries(written(tmp_path, content))


@pytest.mark.parametrize("read", [read_queries, read_dictionary])
def test_an_empty_file_is_refused(tmp_path: Path, read: type) -> None:
    with pytest.raises(InputError, match="empty"):
        read(written(tmp_path, b""))


def test_a_truncated_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.txt.gz"
    path.write_bytes(gzip.compress(b"D1||a\n" * 1000)[:-12])
    with pytest.raises(InputError, match="gzip"):
        read_queries(path)


def test_finding_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"test_queries\.txt"):
        find_file(tmp_path, "test_queries.txt")
    with pytest.raises(InputError, match="not a folder"):
        find_file(tmp_path / "nowhere", "test_queries.txt")
    (tmp_path / "biosyn").mkdir()
    below = written(tmp_path / "biosyn", b"", "test_queries.txt.gz")
    assert find_file(tmp_path, "test_queries.txt") == below
    direct = written(tmp_path, b"", "test_queries.txt")
    assert find_file(tmp_path, "test_queries.txt") == direct


def test_a_file_for_each_document_as_biosyn_has_them(tmp_path: Path) -> None:
    folder = tmp_path / "biosyn" / "processed_test"
    folder.mkdir(parents=True)
    written(
        folder,
        b"9||0|4||SpecificDisease||ache||D2\n9||6|30||CompositeMention||breast|lung cancer||D3|D4\n",
        "9.concept",
    )
    written(folder, b"", "7.concept")
    written(folder, b"10||77|94||Modifier||neonatal jaundice ||D007567+D1 \n", "10.concept")
    written(folder, b"\n", "8.concept")
    written(folder, b"\0\5\x16\7", "._9.concept")  # of an archive that was unpacked on a Mac
    written(folder, b"text", "9.txt")
    files = query_files(tmp_path, "test")
    assert [file.name for file in files] == ["10.concept", "9.concept"]
    queries = [query for file in files for query in read_queries(file)]
    assert [(query.text, set(query.gold)) for query in queries] == [
        ("neonatal jaundice", {"D007567", "D1"}),
        ("ache", {"D2"}),
        ("breast|lung cancer", {"D3", "D4"}),
    ]
    assert get_task("ncbi-disease").queries(tmp_path, "test") == (queries, files)
    assert read_mentions_as_names(files[1])[1] == DictionaryLine("breast lung cancer", ("D3", "D4"))
    with pytest.raises(InputError, match=r"dev_queries\.txt is not here.* or processed_dev/\*\.concept"):
        query_files(tmp_path, "dev")
    bad = written(folder, b"9||0|4||SpecificDisease||ache||D2\nD2||ache\n", "9.concept")
    with pytest.raises(InputError, match=r"9\.concept, line 2: .*expected document\|\|start\|end\|\|class"):
        read_queries(bad)
    with pytest.raises(InputError, match=r"dictionary\.txt is not here.* or train_dictionary\.txt"):
        get_task("ncbi-disease").dictionary(tmp_path, "dev")
    folder.rename(folder.with_name("processed_train"))
    written(folder.with_name("processed_train"), b"9||0|4||SpecificDisease||ache||D2\n", "9.concept")
    written(tmp_path, b"D2||pain\n", "train_dictionary.txt")
    names, read = get_task("ncbi-disease").dictionary(tmp_path, "dev")
    assert [line.name for line in names] == ["pain", "neonatal jaundice", "ache"]
    assert [file.name for file in read] == ["train_dictionary.txt", "10.concept", "9.concept"]
    one_file = written(tmp_path, b"D1||cold\n", "test_queries.txt")  # which goes before
    assert query_files(tmp_path, "test") == [one_file]


def test_marks_of_byte_order_and_blanks_around_ids_are_no_part_of_them(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbfD1 | D2||cold\n")
    assert read_queries(path)[0].gold == {"D1", "D2"}
    assert read_dictionary(path) == [DictionaryLine("cold", ("D1", "D2"))]


@pytest.mark.parametrize(("parts", "said"), [("breast cancer", "several are meant"), ((), "without a mention")])
def test_a_query_of_letters_or_of_nothing_is_refused(parts: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Query("breast cancer", parts, frozenset({"D1"}))
