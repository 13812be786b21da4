"""Corpora in the BioC format: XML and JSON alike, where the codes are, what is left out, what cannot be read."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import polars as pl
import pytest

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.pairs import read_corpus
from onoma.pairs.corpora import corpus_annotations

Document = dict[str, Any]
TITLE, ABSTRACT = "β-thalassemia & MI <1>", "Back pain or chronic pain."


def annotation(text: str, *places: tuple[int, int], **infons: str) -> Document:
    return {"text": text, "infons": infons, "locations": [{"offset": at, "length": n} for at, n in places]}


def documents() -> list[Document]:
    in_title = [
        annotation("", type="MeSH_Indexing", identifier="MESH:D1"),
        annotation("β-thalassemia", (0, 13), type="Disease", identifier="MESH:D017086"),
        annotation("MI", (16, 2), type="Disease", identifier="MESH:D009203"),
    ]
    in_abstract = [
        annotation("Back pain", (40, 9), type="Disease", identifier="-"),
        annotation("Back chronic pain", (40, 4), (53, 12), type="Disease", identifier="D9"),
        annotation("Back pain or chronic pain", (40, 25), type="Disease", identifier="D1|D2"),
        annotation("pain", (45, 4), type="Symptom"),
    ]
    return [
        {
            "id": "7",
            "passages": [
                {"offset": 0, "text": TITLE, "annotations": in_title},
                {"offset": 40, "text": ABSTRACT, "annotations": in_abstract},
            ],
            "relations": [{"id": "R1"}],
        },
        {"id": "8", "passages": [{"offset": 0, "text": "None."}]},
    ]


def as_xml(collection: list[Document]) -> str:
    def tag(name: str, content: str) -> str:
        return f"<{name}>{content}</{name}>"

    def annotations(holder: Document) -> Iterator[str]:
        for one in holder.get("annotations", []):
            infons = "".join(
                f"<infon key={quoteattr(key)}>{escape(value)}</infon>" for key, value in one["infons"].items()
            )
            places = "".join(f'<location offset="{at["offset"]}" length="{at["length"]}"/>' for at in one["locations"])
            yield f'<annotation id="x">{infons}{places}{tag("text", escape(one["text"]))}</annotation>'

    def passage(holder: Document, name: str = "passage") -> str:
        inner = [tag("offset", str(holder["offset"]))]
        if "text" in holder:
            inner.append(tag("text", escape(holder["text"])))
        inner += annotations(holder)
        inner += [passage(one, "sentence") for one in holder.get("sentences", [])]
        return tag(name, "".join(inner))

    made = (
        tag("document", tag("id", one["id"]) + "".join(map(passage, one["passages"]))
            + '<relation id="R"/>' * len(one.get("relations", [])))
        for one in collection
    )  # fmt: skip
    return '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n' + tag(
        "collection", tag("source", "x") + "\n".join(made)
    )


FORMS = {
    "c.xml": as_xml,
    "c.BioC.XML": as_xml,
    "collection.json": lambda made: json.dumps({"source": "x", "documents": made}),
    "indented.json": lambda made: json.dumps({"source": "x", "documents": made}, indent=2),
    "pubtator3.json": lambda made: json.dumps({"PubTator3": made}),
    "documents.json": json.dumps,
    "collections.json": lambda made: json.dumps([{"documents": [one]} for one in made]),
    "lines.json": lambda made: "".join(json.dumps(one) + "\n" for one in made),
    "spaced.json": lambda made: "".join(json.dumps(one) + "\n \n\n" for one in made),
    "blank.json": lambda made: "\n " + json.dumps(made),
    "mark.json": lambda made: "\ufeff" + json.dumps(made),
    "anything": as_xml,
}


def write(folder: Path, made: list[Document], name: str = "c.xml") -> Path:
    path = folder / name
    path.write_text(FORMS[name](made), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_it(name: str, tmp_path: Path) -> None:
    reading = Reading()
    found = read_corpus(write(tmp_path, documents(), name), reading, strip_prefix="MESH:", add_prefix="M:")
    text = f"{TITLE} {ABSTRACT}"
    assert found.rows() == [
        ("β-thalassemia", "M:D017086", "Disease", "7", 0, 13, "<tgt> β-thalassemia </tgt>" + text[13:]),
        ("MI", "M:D009203", "Disease", "7", 16, 18, text[:16] + "<tgt> MI </tgt>" + text[18:]),
        ("Back pain", "NIL", "Disease", "7", 40, 49, f"{TITLE} <tgt> Back pain </tgt> or chronic pain."),
        ("Back chronic pain", "M:D9", "Disease", "7", 40, 65, f"{TITLE} <tgt> Back pain or chronic pain </tgt>."),
    ]
    assert reading.notes == {
        "relations, which are not read": 1,
        "annotations without a place in the text, not read": 1,
        "mentions of several concepts, left out": 1,
        "mentions without a code, nor said to be of no concept, left out": 1,
    }


@pytest.mark.parametrize("name", ["c.xml.gz", "c.json.gz", "c.zip", "folder", "packed", "of-two.zip"])
def test_packed_and_in_a_folder(name: str, tmp_path: Path) -> None:
    xml, as_json = as_xml(documents()).encode(), json.dumps(documents()).encode()
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(xml if "xml" in name else as_json))
    elif name == "packed":
        path.mkdir()
        (path / "c.xml.gz").write_bytes(gzip.compress(xml))
        (path / "README.md").write_text("no corpus")
    elif name == "folder":
        path.mkdir()
        for number in (1, 2):
            (path / f"{number}.BioC.XML").write_bytes(xml.replace(b"<id>", b"<id>" + str(number).encode()))
        (path / "README.md").write_text("no corpus")
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("c.xml", xml)
            if name == "of-two.zip":
                archive.writestr("c.json", as_json)
    found = read_corpus(path)
    assert len(found) == 4 * (2 if name in ("folder", "of-two.zip") else 1)
    assert found["document"].unique(maintain_order=True).to_list() == (["17", "27"] if name == "folder" else ["7"])


@pytest.mark.parametrize("name", ["c.xml", "collection.json"])
def test_sentences(name: str, tmp_path: Path) -> None:
    one = {
        "id": "1",
        "passages": [
            {
                "offset": 0,
                "sentences": [
                    {"offset": 0, "text": "A cold."},
                    {"offset": 8, "text": "Flu?", "annotations": [annotation("Flu", (8, 3), type="D", identifier="F")]},
                ],
            }
        ],
    }
    assert read_corpus(write(tmp_path, [one], name)).row(0)[4:] == (8, 11, "A cold. <tgt> Flu </tgt>?")


@pytest.mark.parametrize(
    ("infons", "codes_in", "expected"),
    [
        ({"MESH": "D1", "type": "Disease"}, "", "D1"),
        ({"NCBI Gene identifier": "672", "type": "Gene"}, "", "672"),
        ({"Gene": "672", "type": "Gene"}, "", "672"),
        ({"identifier": "1", "MESH": "D1"}, "", "1"),
        ({"identifier": "1", "MESH": "D1"}, "MESH", "D1"),
        ({"identifier": "c|SUB|A|118|G", "type": "Variant"}, "", "c|SUB|A|118|G"),
        ({"CUI": "C1", "type": "DISO"}, "CUI", "C1"),
        ({"identifier": "", "type": "Gene"}, "", "NIL"),
        ({"identifier": " D1\n", "type": "Gene"}, "", "D1"),
    ],
)
@pytest.mark.parametrize("name", ["c.xml", "collection.json"])
def test_where_the_codes_are(name: str, infons: dict[str, str], codes_in: str, expected: str, tmp_path: Path) -> None:
    one = {"id": "1", "passages": [{"offset": 0, "text": "it", "annotations": [annotation("it", (0, 2), **infons)]}]}
    path = write(tmp_path, [one], name)
    assert read_corpus(path, codes_in=codes_in).row(0)[1:3] == (expected, infons.get("type", ""))
    (found,) = corpus_annotations(path, codes_in=codes_in)
    assert found.types == tuple(infons[key] for key in infons if key == "type")


def test_blanks_around_numbers_of_xml(tmp_path: Path) -> None:
    path = write(tmp_path, documents())
    expected = read_corpus(path)
    text = path.read_text(encoding="utf-8")
    for tag in ("offset", "id"):
        text = text.replace(f"<{tag}>", f"<{tag}>\n  ").replace(f"</{tag}>", f"\n</{tag}>")
    path.write_text(text, encoding="utf-8")
    assert read_corpus(path).equals(expected)


def test_no_code_where_one_is_sought(tmp_path: Path) -> None:
    one = annotation("it", (0, 2), type="Gene", Gene="672", c="", b="", a="")
    path = write(tmp_path, [{"id": "1", "passages": [{"offset": 0, "text": "it", "annotations": [one]}]}])
    with pytest.raises(InputError, match=r"no annotation has a code.*the key CUI; found the keys Gene, a, b, c, type"):
        read_corpus(path, codes_in="CUI")
    one["infons"] = {"x": "672"}
    path = write(tmp_path, [{"id": "1", "passages": [{"offset": 0, "text": "it", "annotations": [one]}]}])
    with pytest.raises(
        InputError, match="the key identifier or MESH or NCBI Gene identifier; found the keys x"
    ) as caught:
        read_corpus(path)
    assert caught.value.field == "infon"
    path = write(tmp_path, documents())
    with pytest.raises(
        InputError, match=r"no annotation has a code.*the key CUI.*identifier, type.*--codes-in"
    ) as caught:
        read_corpus(path, codes_in="CUI")
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("offsets", "place", "expected"),
    [
        ((0, 5), (0, 4), "<tgt> Back </tgt> pain"),
        ((0, 4), (0, 4), "<tgt> Back </tgt> pain"),  # ends where the other passage begins
        ((7, 20), (7, 4), "<tgt> Back </tgt> pain"),
        ((7, 20), (20, 4), "Back pain"),
        ((5, 0), (5, 4), "pain <tgt> Back </tgt>"),
        ((9, 20), (0, 4), "Back pain"),  # nine before the end is its place, too
    ],
)
def test_passages_with_and_without_a_gap(
    offsets: tuple[int, int], place: tuple[int, int], expected: str, tmp_path: Path
) -> None:
    passages = [{"offset": at, "text": text} for at, text in zip(offsets, ("Back", "pain"), strict=True)]
    one = annotation("Back", place, type="D", identifier="1")
    path = write(tmp_path, [{"id": "1", "passages": passages, "annotations": [one]}], "documents.json")
    assert read_corpus(path)["context"].to_list() == [expected]


def in_words(folder: Path, words: list[str], at: int, *, n_words_in_title: int = 1) -> pl.DataFrame:
    """A document of two passages, in which a word is a mention."""
    title, abstract = " ".join(words[:n_words_in_title]), " ".join(words[n_words_in_title:])
    start = len(" ".join(words[:at])) + bool(at)
    mention = annotation(words[at], (start, len(words[at])), type="D", identifier="F")
    passages = [
        {"offset": 0, "text": title, "annotations": [mention]},
        {"offset": len(title) + 1, "text": abstract},
    ]
    return read_corpus(write(folder, [{"id": "1", "passages": passages}]))


@pytest.mark.parametrize("at", [0, 1, 3, 700, 2_000, 3_998, 3_999])
@pytest.mark.parametrize("longest_word", [4, 5, 9])
def test_the_context_in_a_long_document_is_what_is_around(at: int, longest_word: int, tmp_path: Path) -> None:
    draw = Random(at)
    words = ["x" * draw.randint(3 if longest_word > 4 else 4, longest_word) for _ in range(4_000)]
    words += ["y" * max(0, 20_001 - len(" ".join(words)))]
    before, after = words[:at], words[at + 1 :]
    while len(" ".join(before)) + bool(before) > 2_000:
        before = before[1:]
    while len(" ".join(after)) + bool(after) > 2_000:
        after = after[:-1]
    expected = " ".join([*before, f"<tgt> {words[at]} </tgt>", *after])
    found = in_words(tmp_path, words, at, n_words_in_title=2_100)
    assert found["context"].to_list() == [expected]


def test_where_there_are_no_spaces_words_are_cut(tmp_path: Path) -> None:
    found = in_words(tmp_path, ["x" * 10_000, "flu", "y" * 10_000], 1)
    assert found["context"].to_list() == ["x" * 1_999 + " <tgt> flu </tgt> " + "y" * 1_999]
    for n, n_of_the_next in ((1_898, 100), (1_899, 0)):
        before, after = "x" * n_of_the_next + " " + "z" * n, "w" * n + " " + "y" * n_of_the_next
        found = in_words(tmp_path, ["x" * 10_000, "z" * n, "flu", "w" * n, "y" * 10_000], 2)
        assert found["context"].to_list() == [f"{before} <tgt> flu </tgt> {after}".strip()]


def test_how_long_a_document_is_its_mentions_context(tmp_path: Path) -> None:
    def long(n_characters: int) -> Path:
        mention = annotation("flu", (0, 3), type="D", identifier="F")
        passages = [
            {"offset": 0, "text": "flu", "annotations": [mention]},
            {"offset": 4, "text": "x" * (n_characters - 4)},
        ]
        return write(tmp_path, [{"id": "1", "passages": passages}])

    reading = Reading()
    assert read_corpus(long(20_001), reading)["context"].to_list() == ["<tgt> flu </tgt> " + "x" * 1_999]
    assert reading.notes == {
        "mentions in documents of more than 20,000 characters, whose context is the 2,000 before and after": 1
    }
    assert read_corpus(long(20_000))["context"].to_list() == ["<tgt> flu </tgt> " + "x" * 19_996]
    assert read_corpus(long(20_001), with_context=False).columns[-1] == "end"


@pytest.mark.parametrize("name", ["c.xml", "collection.json", "lines.json"])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": " "}, "field id: a document that cannot be read.*an id"),
        (
            {"passages": [{"offset": "x", "text": "a"}]},
            "field offset: a document that cannot be read.*a number.*found x",
        ),
        ({"passages": [{"offset": -1, "text": "a"}]}, "a document that cannot be read.*a number"),
        (annotation("it", (1, 2), type="D", identifier="1"), "a place outside the document.*which ends at 2"),
        (
            {"passages": [{"offset": 0, "text": "", "annotations": [annotation("it", (0, 1), MESH="1")]}]},
            "which ends at 0",
        ),
        (annotation("it", (-1, 2), type="D", identifier="1"), "a place outside the document"),
        (annotation("it", (0, 0), type="D", identifier="1"), "a place outside the document"),
        (annotation("it", (0, 2), (1, 9), type="D", identifier="1"), "a place outside the document"),
        (annotation("it", type="D", identifier="1") | {"locations": [{"offset": "x", "length": 2}]}, "a place outside"),
        (annotation("it", type="D", identifier="1") | {"locations": [{"offset": 0, "length": "x"}]}, "a place outside"),
        (annotation(" ", (0, 2), type="D", identifier="1"), "a blank mention; expected a text; found document 1:\\. "),
    ],
)
def test_bad_documents_and_annotations(name: str, change: Document, problem: str, tmp_path: Path) -> None:
    good = annotation("it", (0, 2), type="D", identifier="1")
    bad: Document = {"id": "1", "passages": [{"offset": 0, "text": "it", "annotations": [good]}]}
    if "infons" in change:
        bad["passages"][0]["annotations"] = [change, good]
    else:
        bad |= change
    path = write(tmp_path, [bad, *documents()], name)
    with pytest.raises(InputError, match=problem) as caught:
        read_corpus(path)
    assert caught.value.path == path
    assert caught.value.line is not None
    reading = Reading(on_error="skip")
    assert len(read_corpus(path, reading)) == (5 if "infons" in change else 4)
    (text,) = reading.rejects["text"]
    assert text.startswith(f"document {bad['id'].strip()}")


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"id": "1"}, "the key 'passages' is not there"),
        ({"passages": []}, "the key 'id' is not there"),
        ({"id": "1", "passages": [{"text": "a"}]}, "the key 'offset' is not there"),
        ({"id": "1", "passages": [{"offset": 0, "annotations": [{"text": "a"}]}]}, "the key 'infons' is not there"),
        ({"id": "1", "passages": 3}, "not as BioC has them"),
        ({"id": "1", "passages": [3]}, "not as BioC has them"),
        ({"id": "1", "passages": [[]]}, "field passages: .*found no list of objects"),
        ({"id": "1", "passages": [{"offset": 0, "text": ["a"]}]}, "field text: .*an object or a list inside"),
        ({"id": "1", "passages": [{"offset": 0, "text": "\ud800"}]}, "field text: .*half a character"),
        ({"id": "1", "passages": [{"offset": 0, "sentences": 3}]}, "field sentences: .*no list of objects"),
        ({"id": "1", "passages": [], "annotations": {}}, "field annotations: .*no list of objects"),
        ({"id": "1", "passages": [], "annotations": [{"infons": [1]}]}, "field infons: .*no list of objects"),
        ({"id": "1", "passages": [], "annotations": [annotation("a") | {"locations": {}}]}, "field locations: "),
        ({"id": "1", "passages": [], "annotations": [annotation("a") | {"locations": [{}]}]}, "'offset' is not there"),
        ({"id": "1", "passages": [], "annotations": [annotation("a") | {"text": {}}]}, "field text: "),
        ({"id": "1", "passages": [], "relations": 3}, "field relations: .*no list of objects"),
        ({"id": None, "passages": []}, "a document that cannot be read.*an id"),
        (
            {"document_id": "1", "passages": [], "entities": []},
            "BigBIO's schema, which belongs on one line, or in a list",
        ),
        (5, "field documents: .*no list of objects"),
        (None, "field documents: .*no list of objects"),
    ],
)
def test_json_that_is_no_document(bad: Any, problem: str, tmp_path: Path) -> None:
    path = write(tmp_path, [bad, *documents()], "collection.json")
    with pytest.raises(InputError, match=problem) as caught:
        read_corpus(path)
    assert caught.value.line == 1
    reading = Reading(on_error="skip")
    assert len(read_corpus(path, reading)) == 4


@pytest.mark.parametrize(
    ("bad", "problem"),
    [({"documents": None}, "'passages' is not there"), ({"documents": 5}, "'passages' is not there"), (5, "no list")],
)
def test_a_collection_without_documents(bad: Any, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps([bad, {"documents": documents()}]))
    with pytest.raises(InputError, match=problem):
        read_corpus(path)
    assert len(read_corpus(path, Reading(on_error="skip"))) == 4


@pytest.mark.parametrize("indent", [None, 2])
def test_one_document_by_itself(indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "7.json"
    path.write_text(json.dumps(documents()[0], indent=indent))
    assert read_corpus(path).equals(read_corpus(write(tmp_path, documents())))


def test_keys_without_a_value_and_with_several(tmp_path: Path) -> None:
    one = annotation("it", (0, 2), type="D", identifier="C1") | {"relations": None}
    one["infons"] |= {"normalized": ["C1"], "score": 0.5, "valid": True, "wrong": False, "more": {}, "note": None}
    nothing = {"infons": None, "text": None, "locations": None}
    passage = {"offset": 0, "text": "it", "sentences": None, "annotations": [one, nothing], "relations": None}
    empty = {"offset": None, "text": None, "annotations": None}
    path = write(tmp_path, [{"id": 1, "passages": [passage, empty], "annotations": None}], "documents.json")
    assert read_corpus(path).row(0)[:4] == ("it", "C1", "D", "1")
    for key, expected in (("score", "0.5"), ("valid", "true"), ("wrong", "false"), ("note", "NIL")):
        assert read_corpus(path, codes_in=key).row(0)[:2] == ("it", expected)


def test_xml_without_a_text(tmp_path: Path) -> None:
    path = write(tmp_path, documents())
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("<text>None.</text>", ""), encoding="utf-8")
    assert len(read_corpus(path)) == 4
    path.write_text(text.replace("<text>MI</text>", ""), encoding="utf-8")
    with pytest.raises(InputError, match="a blank mention"):
        read_corpus(path)


def test_a_namespace_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, documents())
    path.write_text(
        path.read_text(encoding="utf-8").replace("<collection>", '<collection xmlns="urn:x">'), encoding="utf-8"
    )
    with pytest.raises(InputError, match=r"another kind of XML.*found <collection> of a namespace.*xmlns"):
        read_corpus(path)


def test_a_bad_line_among_documents_on_lines(tmp_path: Path) -> None:
    path = write(tmp_path, documents(), "lines.json")
    path.write_text(path.read_text(encoding="utf-8") + '{"id": 1,\n', encoding="utf-8")
    with pytest.raises(InputError, match="not JSON") as caught:
        read_corpus(path)
    assert (caught.value.path, caught.value.line) == (path, 3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<owl/>", "another kind of XML"),
        ("<collection><document><id>1</id>", "cut off"),
        ('{"documents": [', "cut off|not JSON"),
        ('{"other": []}', "no mention of one concept"),
        ("[]", "no mention of one concept"),
        ('{"documents": null}', "field documents: .*no list of objects"),
        ('{"documents": 5}', "field documents: .*no list of objects"),
        ('{"id": "\udce9"}', "not UTF-8"),
    ],
)
def test_no_corpus(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=problem) as caught:
        read_corpus(path)
    assert caught.value.path == path


@pytest.mark.parametrize("name", ["c.xml", "collection.json"])
def test_an_encoding_is_refused(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, documents(), name)
    with pytest.raises(InputError, match="XML says its encoding itself") as caught:
        read_corpus(path, Reading(encoding="cp1252"))
    assert (caught.value.path, caught.value.field) == (path, "encoding")


def test_lines_of_annotations(tmp_path: Path) -> None:
    path = tmp_path / "c.xml"
    path.write_text(as_xml(documents()).replace("<annotation", "\n<annotation"), encoding="utf-8")
    assert [one.line for one in corpus_annotations(path)] == [5, 6, 7, 8, 9]
