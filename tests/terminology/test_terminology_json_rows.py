"""JSON Lines as a table; language tags; what an import of nothing but rejected rows says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_terminologies import content

from onoma.errors import ConfigError, InputError
from onoma.terminology import ImportReport, export_terminology, import_terminology
from onoma.terminology.languages import SHORT_CODES, tidy_language

COLUMNS = {"id": "id", "name": "label,aliases"}


def read(tmp_path: Path, text: str, on_error: Any = "strict", name: str = "x.jsonl", **options: str) -> ImportReport:
    (tmp_path / name).write_bytes(text.encode())
    return import_terminology(
        "table", tmp_path / name, tmp_path / "out", on_error=on_error, overwrite=True, options={**COLUMNS, **options}
    )


def named(tmp_path: Path) -> dict[str, list[str]]:
    tables = content(tmp_path / "out")
    codes = [str(row[0]) for row in tables["concepts"]]
    found: dict[str, list[str]] = {}
    for row in tables["names"]:
        found.setdefault(codes[int(str(row[0]))], []).append(str(row[1]))
    return found


def test_cells(tmp_path: Path) -> None:
    text = """
{"id": 123456789012345678901234567890, "label": "a", "aliases": ["b", null, "c|d", 7], "x": {"y": [1]}}
{"aliases": "e | f", "label": null, "id": " 1.50 "}

{"id": 1.50, "label": true}
{"id": -0, "label": "\\u00e9\\ud83d\\ude00", "aliases": []}
"""
    read(tmp_path, text, separator="|")
    assert named(tmp_path) == {
        "123456789012345678901234567890": ["a", "b", "c|d", "7"],
        "1.50": ["true", "e", "f"],  # the label first, whichever line has it
        "-0": ["é😀"],
    }
    read(tmp_path, text, name="x.ndjson")
    assert named(tmp_path)["1.50"] == ["true", "e | f"]


BAD = {
    "not JSON": '{"id": 1, "label": "x"',
    "no object": '["id"]',
    "number alone": "1",
    "a key twice": '{"id": 1, "label": "x", "label": "y"}',
    "NaN": '{"id": NaN, "label": "x"}',
    "object in a cell": '{"id": 1, "label": {"en": "x"}}',
    "list in a list": '{"id": 1, "label": [["x"]]}',
    "list as a code": '{"id": [1], "label": "x"}',
    "half a character": '{"id": 1, "label": "\\ud800"}',
    "NUL": '{"id": 1, "label": "a\\u0000b"}',
    "NUL in a code": '{"id": "a\\u0000b", "label": "x"}',
    "no code": '{"label": "x"}',
    "null as code": '{"id": null, "label": "x"}',
    "no name": '{"id": 1, "aliases": [" "]}',
    "deep": "[" * 200_000,
    "two on a line": '{"id": 1, "label": "x"} {"id": 2, "label": "y"}',
}


@pytest.mark.parametrize("case", BAD)
def test_bad_lines(case: str, tmp_path: Path) -> None:
    text = '{"id": "good", "label": "g", "aliases": []}\n' + BAD[case] + "\n"
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert (caught.value.path, caught.value.line) == (tmp_path / "x.jsonl", 2)
    assert read(tmp_path, text, on_error="skip").n_rejected == 1
    assert named(tmp_path) == {"good": ["g"]}


@pytest.mark.parametrize("option", ["source", "obsolete", "definition"])
def test_a_column_that_may_hold_lists_and_says_one_thing_too(option: str, tmp_path: Path) -> None:
    """Cells of one text are read; with a list there is no saying which of it is meant."""
    roles = {"semantic_type": "kind", option: "kind"}
    good = '{"id": 1, "label": "x", "aliases": [], "kind": "active"}\n'
    assert read(tmp_path, good, **roles).n_names == 1
    assert content(tmp_path / "out")["concepts"][0][2] == ["active"]
    with pytest.raises(InputError) as caught:
        read(tmp_path, good + '{"id": 2, "label": "y", "kind": ["active"]}\n', **roles)
    assert (caught.value.line, caught.value.field) == (2, "kind")


def test_key_that_no_line_has(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no line has the key 'label'\. Did you mean 'labell'"):
        read(tmp_path, '{"id": 1, "labell": "x", "aliases": "y"}\n')


@settings(max_examples=20)
@given(rows=st.lists(st.tuples(st.text('aé"\\\n\r,\u2028 ', min_size=1).filter(str.strip)), min_size=1, max_size=4))
def test_what_json_writes_is_read(rows: list[tuple[str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("json")
    lines = (json.dumps({"id": f"c{number}", "label": text, "aliases": None}, ensure_ascii=number % 2 == 0)
             for number, (text,) in enumerate(rows))  # fmt: skip
    read(folder, "\n".join(lines))
    assert named(folder) == {f"c{number}": [text] for number, (text,) in enumerate(rows)}


@pytest.mark.parametrize(
    "tag", ["", "e", "german", "Engl-US", "en us", "en-", "-en", "en\n", "1a", "abcdefghi", "en-abcdefghi", "日本"]
)
def test_language_tags(tag: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no language tag"):
        tidy_language(tag)
    refuse_as_option(tag, tmp_path)


def refuse_as_option(tag: str, tmp_path: Path) -> None:
    for format, option in (("table", "default_language"), ("biosyn", "language"), ("obo", "language")):
        options = {option: tag, **(COLUMNS if format == "table" else {})}
        with pytest.raises(ConfigError, match=f"(?s)option '{option}': '.*' is no language tag"):
            import_terminology(format, "nowhere", tmp_path / "out", options=options)


def test_language_is_tidied(tmp_path: Path) -> None:
    read(tmp_path, '{"id": 1, "label": "x", "aliases": []}', default_language="PT_BR")
    assert content(tmp_path / "out")["names"][0][2] == "pt-BR"
    read(tmp_path, "id,label,aliases,l\n1,a,b,ENG\n2,c,,ger-AT\n3,d,,sna\n4,e,,iw\n", name="x.csv", language="l")
    assert [row[2] for row in content(tmp_path / "out")["names"]] == ["en", "en", "de-AT", "sn", "he"]
    with pytest.raises(InputError, match=r"line 2, field l: .* a BCP 47 tag, e.g. en; found english"):
        read(tmp_path, "id,label,aliases,l\n1,a,b,english\n", name="x.csv", language="l")


def test_every_language_with_a_short_code_comes_back_from_rich_release_format(tmp_path: Path) -> None:
    tags = sorted({*SHORT_CODES.values(), "sco"})
    read(tmp_path, "id,label,aliases,l\n" + "".join(f"{tag},a,,{tag}\n" for tag in tags), name="x.csv", language="l")
    export_terminology(tmp_path / "out", "umls", tmp_path / "rrf")
    import_terminology("umls", tmp_path / "rrf", tmp_path / "again")
    assert [row[2] for row in content(tmp_path / "again")["names"]] == tags


def test_first_reason_is_named_when_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"2 rows were rejected, the first \(x\.jsonl, line 1\) because: not JSON"):
        read(tmp_path, "x\ny\n", on_error="skip")
    with pytest.raises(InputError, match=r"1 row was rejected"):
        read(tmp_path, "x\n", on_error="skip")


def test_names_given_twice_are_kept_once(tmp_path: Path) -> None:
    rows = "id,label,aliases,l\n1,a,b,en\n1,a,b,de\n1,b,a,en\n2,a,,en\n"
    report = read(tmp_path, rows, name="x.csv", language="l")
    assert [row[:3] for row in content(tmp_path / "out")["names"]] == [
        (0, "a", "en"), (0, "b", "en"), (0, "a", "de"), (0, "b", "de"), (1, "a", "en"),
    ]  # fmt: skip
    assert {what.partition(" ")[0]: n for what, n in report.notes.items()} == {"rows": 2, "names": 2}


def test_several_names_in_a_line_of_biosyn(tmp_path: Path) -> None:
    (tmp_path / "medic.txt").write_text("C1|2||a| b\nD1||c\nD2|| |x||y\n")
    import_terminology("biosyn", tmp_path / "medic.txt", tmp_path / "out", options={"separator": "|"})
    assert named(tmp_path) == {"C1|2": ["a", "b"], "D1": ["c"], "D2": ["x", "y"]}
