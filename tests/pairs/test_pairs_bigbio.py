"""Corpora in BigBIO's schema: Parquet, JSON Lines and arrays alike, databases, what is left out or cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.pairs import read_corpus
from onoma.pairs.corpora import corpus_annotations

Row = dict[str, Any]
TITLE, ABSTRACT = "β-thalassemia & MI", "Back pain or chronic pain."
FORMS = ["c.parquet", "c.jsonl", "c.json", "anything", "array.json"]


def entity(
    text: str | list[str], offsets: list[list[int]], *codes: tuple[str, str | None], kind: str = "Disease"
) -> Row:
    return {
        "id": "1",
        "type": kind,
        "text": [text] if isinstance(text, str) else text,
        "offsets": offsets,
        "normalized": [{"db_name": name, "db_id": code} for name, code in codes],
    }


def row(*entities: Row, name: str = "7") -> Row:
    return {
        "id": "0",
        "document_id": name,
        "passages": [
            {"id": "1", "type": "title", "text": [TITLE], "offsets": [[0, len(TITLE)]]},
            {"id": "2", "type": "abstract", "text": [ABSTRACT], "offsets": [[30, 30 + len(ABSTRACT)]]},
        ],
        "entities": list(entities),
        "events": [],
    }


ENTITIES = [
    entity("MI", [[16, 18]], ("MESH", "D009203"), ("UMLS", "C0027051")),
    entity("β-thalassemia", [[0, 13]], ("MESH", "D017086")),
    entity("Back pain", [[30, 39]], ("MESH", "-1"), kind="Symptom"),
    entity(["Back", "chronic pain"], [[30, 34], [43, 55]], ("UMLS", "C1")),
    entity("pain", [[35, 39]]),
    entity("Back pain or chronic pain", [[30, 55]], ("MESH", "D1|D2")),
]


def write(folder: Path, rows: list[Row], name: str) -> Path:
    path = folder / name
    if name.endswith(".parquet"):
        pl.DataFrame(rows).write_parquet(path)
    elif name.startswith("array"):
        path.write_text(" [" + ",\n".join(map(json.dumps, rows)) + "]")
    else:
        path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


@pytest.mark.parametrize("name", FORMS)
def test_mentions(name: str, tmp_path: Path) -> None:
    reading = Reading()
    found = read_corpus(write(tmp_path, [row(*ENTITIES), row(name="8")], name), reading, add_prefix="X:")
    text = f"{TITLE} {ABSTRACT}"
    assert found.rows() == [
        ("β-thalassemia", "X:D017086", "Disease", "7", 0, 13, "<tgt> β-thalassemia </tgt>" + text[13:]),
        ("Back pain", "NIL", "Symptom", "7", 30, 39, f"{TITLE} <tgt> Back pain </tgt> or chronic pain."),
        ("Back chronic pain", "X:C1", "Disease", "7", 30, 55, f"{TITLE} <tgt> Back pain or chronic pain </tgt>."),
    ]
    assert reading.notes == {
        "mentions of several concepts, left out": 2,
        "mentions without a code, nor said to be of no concept, left out": 1,
    }


@pytest.mark.parametrize("name", FORMS)
def test_one_database(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, [row(*ENTITIES)], name)
    found = read_corpus(path, codes_in="UMLS")
    assert found["concept_id"].to_list() == ["C0027051", "C1"]
    with pytest.raises(InputError, match=r"no mention has a code in umls.*MESH or UMLS.*--codes-in") as caught:
        read_corpus(path, codes_in="umls")
    assert (caught.value.path, caught.value.field) == (path, "db_name")
    path = write(tmp_path, [row(entity("MI", [[16, 18]]))], "c.jsonl")
    with pytest.raises(InputError, match=r"no mention of one concept here.*mentions without a code.*: 1"):
        read_corpus(path, codes_in="UMLS")


def test_several_types_as_xmen_has_them(tmp_path: Path) -> None:
    one = entity("MI", [[16, 18]], ("UMLS", "C0027051")) | {"type": ["T047", "T033"]}
    assert read_corpus(write(tmp_path, [row(one)], "c.jsonl"), types=["T033"])["type"].to_list() == ["T047,T033"]


def test_a_text_by_itself_and_keys_without_a_value(tmp_path: Path) -> None:
    one = entity("MI", [[16, 18]], ("UMLS", None)) | {"text": "MI", "type": None}
    rows = [row(one), row(name="8") | {"passages": None, "entities": None}]
    found = read_corpus(write(tmp_path, rows, "c.jsonl"))
    assert found.select("mention", "concept_id", "type").rows() == [("MI", "NIL", "")]


def test_places_of_passages_and_lines(tmp_path: Path) -> None:
    one = {key: row(*ENTITIES)[key] for key in ("entities", "passages", "document_id")}
    one["passages"].reverse()
    path = write(tmp_path, [one], "c.jsonl")
    path.write_text(" \n\n" + path.read_text() + "\n" + path.read_text())
    found = list(corpus_annotations(path))
    assert [at.line for at in found] == [3] * 5 + [5] * 5
    assert all(at.is_in_place for at in found)


def test_shards_in_a_folder(tmp_path: Path) -> None:
    for number in (0, 1):
        write(tmp_path, [row(*ENTITIES, name=str(number))], f"train-0000{number}-of-00002.parquet")
    write(tmp_path, [row(*ENTITIES, name="2")], "valid.jsonl")
    assert read_corpus(tmp_path)["document"].unique(maintain_order=True).to_list() == ["0", "1", "2"]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (entity("MI", [[16, 99]], ("M", "D")), "a place outside the document.*at most 56"),
        (entity("MI", [[-1, 2]], ("M", "D")), "a place outside the document"),
        (entity("MI", [[0, 2], [5, 5]], ("M", "D")), "a place outside the document"),
        (entity("MI", [], ("M", "D")), "a place outside the document"),
        (entity(" ", [[0, 2]], ("M", "D")), "a blank mention; expected a text; found document 7:\\. "),
    ],
)
def test_bad_mentions(name: str, bad: Row, problem: str, tmp_path: Path) -> None:
    path = write(tmp_path, [row(*ENTITIES), row(bad, ENTITIES[1])], name)
    with pytest.raises(InputError, match=problem) as caught:
        read_corpus(path)
    assert (caught.value.path, caught.value.line) == (path, 2)
    reading = Reading(on_error="skip")
    assert len(read_corpus(path, reading)) == 4
    assert len(reading.rejects) == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"document_id": None}, "field document_id: .*not in the schema.*found no id"),
        ({"document_id": []}, "field document_id: .*not in the schema"),
        ({"passages": 3}, "field passages: .*not in the schema.*no list of objects"),
        ({"passages": [{"text": ["a"], "offsets": [0]}]}, "field offsets: .*not in the schema.*no list of pairs"),
        ({"passages": [{"text": ["a"], "offsets": [[0, 1, 2]]}]}, "field offsets: .*no list of pairs"),
        ({"passages": [{"text": ["a"], "offsets": None}]}, "field offsets: .*no list of pairs"),
        ({"passages": [{"text": ["a"], "offsets": []}]}, "field offsets: .*no number for each text"),
        ({"passages": [{"text": ["a"], "offsets": [["x", 1]]}]}, "field offsets: .*no number for each text"),
        ({"passages": [{"text": ["a"], "offsets": [[-1, 0]]}]}, "field offsets: .*no number for each text"),
        ({"passages": [{"text": [["a"]], "offsets": [[0, 1]]}]}, "field text: .*an object or a list inside"),
        ({"entities": [entity("a", [[0, 1]]) | {"offsets": [[[], 1]]}]}, "field offsets: "),
        ({"entities": [entity("a", [[0, 1]]) | {"type": {}}]}, "field type: "),
        ({"entities": [entity("a", [[0, 1]]) | {"normalized": [{"db_name": [], "db_id": ""}]}]}, "field db_name: "),
        ({"entities": [entity("a", [[0, 1]]) | {"normalized": [{"db_name": "", "db_id": []}]}]}, "field db_id: "),
        ({"entities": {}}, "field entities: .*no list of objects"),
        ({"entities": [entity("\udfff", [[0, 1]])]}, "field text: .*half a character"),
        ({"entities": [entity("a", [[0, 1]]) | {"normalized": {}}]}, "field normalized: .*no list of objects"),
        ({"passages": [{"text": ["a"]}]}, "the key 'offsets' is not there"),
        ({"entities": [{"text": ["a"]}]}, "the key 'normalized' is not there"),
        ({"entities": [entity("a", [[0, 1]]) | {"offsets": [[0]]}]}, "field offsets: .*no list of pairs"),
    ],
)
@pytest.mark.parametrize("name", ["c.jsonl", "array.json"])
def test_rows_that_are_no_documents(name: str, change: Row, problem: str, tmp_path: Path) -> None:
    path = write(tmp_path, [row(*ENTITIES), row() | change, row(ENTITIES[1])], name)
    with pytest.raises(InputError, match=problem) as caught:
        read_corpus(path)
    assert (caught.value.path, caught.value.line) == (path, 2)
    assert len(read_corpus(path, Reading(on_error="skip"))) == 4


def test_a_bad_line(tmp_path: Path) -> None:
    path = write(tmp_path, [row(*ENTITIES)], "c.jsonl")
    path.write_text(path.read_text() + "{\n")
    with pytest.raises(InputError, match="not JSON") as caught:
        read_corpus(path)
    assert (caught.value.path, caught.value.line) == (path, 2)
    reading = Reading(on_error="skip")
    assert len(read_corpus(path, reading)) == 3
    assert reading.rejects.select("file", "line", "text").rows() == [("c.jsonl", 2, "{")]


def test_other_parquet_files(tmp_path: Path) -> None:
    pl.DataFrame({"document_id": ["1"], "text": ["a"]}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(InputError, match="passages") as caught:
        read_corpus(tmp_path / "c.parquet")
    assert caught.value.path == tmp_path / "c.parquet"
    (tmp_path / "d.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="not a Parquet file, or a damaged one"):
        read_corpus(tmp_path / "d.parquet")


def test_an_array_on_many_lines(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(
        "\ufeff" + json.dumps([row(*ENTITIES), 5, row(ENTITIES[1], name="8")], indent=2, ensure_ascii=False)
    )
    reading = Reading(on_error="skip")
    found = read_corpus(path, reading)
    assert found.equals(read_corpus(write(tmp_path, [row(*ENTITIES), row(ENTITIES[1], name="8")], "c.jsonl")))
    assert reading.rejects["line"].to_list() == [path.read_text().splitlines().index("  5,") + 1]
    with pytest.raises(InputError, match=r"field documents: .*no list of objects"):
        read_corpus(path)
    with pytest.raises(InputError, match="JSON is UTF-8"):
        read_corpus(path, Reading(encoding="latin-1"))
    path.write_text(path.read_text()[:-1])
    with pytest.raises(InputError, match="the end of the file"):
        read_corpus(path, Reading(on_error="skip"))


def test_an_array_that_begins_with_no_document(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps([None, row(*ENTITIES)]))
    reading = Reading(on_error="skip")
    assert len(read_corpus(path, reading)) == 3
    assert len(reading.rejects) == 1


@pytest.mark.parametrize("name", ["c.jsonl", "array.json"])
@pytest.mark.parametrize("missing", ["passages", "entities"])
def test_the_first_document_lacks_a_key(name: str, missing: str, tmp_path: Path) -> None:
    first = row()
    del first[missing]
    path = write(tmp_path, [first, row(*ENTITIES)], name)
    with pytest.raises(InputError, match=f"not in the schema bigbio_kb.*the key '{missing}' is not there") as caught:
        read_corpus(path)
    assert caught.value.line == 1
