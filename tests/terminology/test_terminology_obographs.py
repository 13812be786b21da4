from __future__ import annotations

import contextlib
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import imported

from onoma.errors import InputError
from onoma.files.archives import SourceFile
from onoma.files.json_stream import Place, json_values
from onoma.files.reading import OnError, Reading
from onoma.terminology import ImportReport, Terminology, import_terminology

OBO = "http://purl.obolibrary.org/obo/"
OIO = "http://www.geneontology.org/formats/oboInOwl#"


def node(code: str, label: str | None = None, type: str | None = "CLASS", **meta: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"id": OBO + code.replace(":", "_"), "lbl": label, "type": type, "meta": meta}
    return {key: value for key, value in found.items() if value is not None}


def document(*nodes: object, edges: object = (), **graph: object) -> dict[str, Any]:
    return {"graphs": [{"id": "x", "nodes": list(nodes), "edges": edges, **graph}]}


def edge(sub: str, pred: str, obj: str) -> dict[str, str]:
    return {"sub": OBO + sub.replace(":", "_"), "pred": pred, "obj": OBO + obj.replace(":", "_")}


def read(
    tmp_path: Path, content: object, *, on_error: str = "strict", **options: str
) -> tuple[Terminology, ImportReport]:
    text = content if isinstance(content, str) else json.dumps(content, indent=1)
    (tmp_path / "x.json").write_text(text, encoding="utf-8", newline="")
    return imported("obographs", tmp_path / "x.json", tmp_path / "out", on_error=on_error, **options)


def rows(frame: pl.LazyFrame, *columns: str) -> list[tuple[object, ...]]:
    return frame.select(columns).collect().rows()


def statement(pred: str, val: str) -> dict[str, str]:
    return {"pred": pred, "val": val}


def test_everything_that_a_node_says(tmp_path: Path) -> None:
    content = document(
        node(
            "X:1",
            " a ",
            definition={"val": "is a", "xrefs": ["PMID:1"]},
            synonyms=[
                {"pred": "hasExactSynonym", "val": "e", "xrefs": [], "synonymType": OBO + "mondo#ABBREVIATION"},
                {"pred": "hasExactSynonym", "val": "plural", "synonymType": OBO + "OMO_0003004"},
                {"pred": "hasBroadSynonym", "val": "b"},
                {"pred": OIO + "hasNarrowSynonym", "val": "n"},
                {"pred": "hasRelatedSynonym", "val": "r"},
                {"pred": "hasOddSynonym", "val": "o"},
            ],
            xrefs=[
                {"val": "MESH:D1", "meta": {"basicPropertyValues": [statement(OIO + "source", "MONDO:equivalentTo")]}},
                {"val": "UMLS:C2"},
                {"val": "DOID:3", "pred": "exactMatch"},
            ],
            basicPropertyValues=[
                statement("http://www.w3.org/2004/02/skos/core#broadMatch", "http://identifiers.org/mesh/D4"),
                statement(OIO + "hasAlternativeId", "X:9"),
                statement(OIO + "hasOBONamespace", "own"),
                statement(OIO + "created_by", "somebody"),
            ],
            subsets=["slim"],
            comments=["c"],
        ),
        node(
            "X:2",
            deprecated=True,
            basicPropertyValues=[
                statement(OBO + "IAO_0100001", OBO + "X_1"),
                statement(OBO + "IAO_0100001", "X:3"),
                statement(OIO + "consider", OBO + "X_3"),
            ],
        ),
        node("X:3", "c", synonyms=None, xrefs=None),
        node("X:4"),
        node("X:5", "thing", "INDIVIDUAL"),
        node("X:6", "untyped", None),
        node("BFO:0000050", "part of", "PROPERTY", basicPropertyValues=[statement(OIO + "shorthand", "part_of")]),
        node("RO:0000001", "derives from", "PROPERTY"),
        edges=[
            edge("X:1", "is_a", "X:3"),
            edge("X:1", OBO + "BFO_0000050", "X:3"),
            edge("X:3", OBO + "RO_0000001", "X:1"),
            edge("X:3", OBO + "RO_0000002", "X:1"),
            edge("X:3", "http://example.org/x#located_in", "X:1"),
            edge("X:1", "is_a", "Y:1"),
            {"subj": OBO + "X_3", "pred": "is_a", "obj": OBO + "X_1"},
        ],
        equivalentNodesSets=[{"nodeIds": [OBO + "X_1", OBO + "X_3", "http://id.nlm.nih.gov/mesh/D7"]}, {}],
        meta={"basicPropertyValues": [statement(OIO + "hasDefaultNamespace", name) for name in ("common", "second")]},
        logicalDefinitionAxioms=[{"definedClassId": OBO + "X_1"}],
    )
    terminology, report = read(tmp_path, content, scopes="all")
    assert rows(terminology.concepts(), "concept_id", "preferred_name", "status", "replaced_by") == [
        ("X:1", "a", "active", None),
        ("X:2", "", "obsolete", None),
        ("X:3", "c", "active", None),
        ("X:9", "", "obsolete", "X:1"),
    ]
    assert rows(terminology.names(), "term_type", "text", "language", "source")[:6] == [
        ("label", "a", "en", "X"),
        ("exact_synonym/abbreviation", "e", "en", "X"),
        ("exact_synonym/plural_form", "plural", "en", "X"),
        ("broad_synonym", "b", "en", "X"),
        ("narrow_synonym", "n", "en", "X"),
        ("related_synonym", "r", "en", "X"),
    ]
    assert terminology.concept("X:1").semantic_types == ("own",)
    assert terminology.concept("X:3").semantic_types == ("common",)
    assert rows(terminology.relations(), "head_row", "relation", "tail_row") == [
        (1, "consider", 0),
        (1, "consider", 2),
        (0, "is_a", 2),
        (0, "part_of", 2),
        (2, "derives from", 0),
        (2, "RO:0000002", 0),
        (2, "located_in", 0),
        (2, "is_a", 0),
        (0, "equivalent_to", 2),
    ]
    assert rows(terminology.cross_references(), "concept_row", "relation", "code") == [
        (0, "exactMatch", "MESH:D1"),
        (0, "xref", "UMLS:C2"),
        (0, "exactMatch", "DOID:3"),
        (0, "broadMatch", "MESH:D4"),
        (0, "exactMatch", "MESH:D7"),
        (2, "exactMatch", "MESH:D7"),
    ]
    assert rows(terminology.definitions(), "concept_row", "text") == [(0, "is a")]
    assert report.notes == {
        "individuals (instances of concepts), left out": 1,
        "nodes without a type, left out": 1,
        "terms without a name (only referred to), left out": 1,
        "statements of equivalence about terms that are not among the concepts, left out": 1,
        "relations to or from terms that are not among the concepts, left out": 1,
        "concepts without a name (retired codes)": 2,
        "obsolete concepts with several successors, which are shown as choices (the first: X:2)": 1,
    }


def test_codes(tmp_path: Path) -> None:
    ids = {
        OBO + "MONDO_0005148": "MONDO:0005148",
        OBO + "NCBITaxon_Union_0000023": "NCBITaxon_Union:0000023",
        "http://www.ebi.ac.uk/efo/EFO_0000001": "EFO:0000001",
        "http://www.orpha.net/ORDO/Orphanet_558": "Orphanet:558",
        "https://purl.obolibrary.org/obo/MONDO_0000001": "MONDO:0000001",
        "https://identifiers.org/mesh/D005334": "MESH:D005334",
        "https://omim.org/entry/1": "OMIM:1",
        "http://omim.org/entry/2": "OMIM:2",
        "http://example.org/my#7": "MY:7",
        "https://example.org/my#7": "https://example.org/my#7",
        "http://example.org/other#7": "http://example.org/other#7",
        OBO + "mondo#slim_x": OBO + "mondo#slim_x",
        "X:1": "X:1",
        "C0011860": "C0011860",
    }
    content = document(*({"id": iri, "lbl": str(number), "type": "CLASS"} for number, iri in enumerate(ids)))
    terminology, _ = read(tmp_path, content, iri_prefixes="MY=http://example.org/my#")
    assert terminology.concepts().collect()["concept_id"].to_list() == list(ids.values())
    terminology, report = read(tmp_path, content, prefixes="EFO,Orphanet")
    assert terminology.concepts().collect()["concept_id"].to_list() == ["EFO:0000001", "Orphanet:558"]
    assert report.notes == {"terms with other prefixes, left out": len(ids) - 2}


def test_several_graphs(tmp_path: Path) -> None:
    content = {"graphs": [{"nodes": [node("X:1", "a"), node("Y:1")]}, {"nodes": [node("Y:1", "b"), node("X:1", "A")]}]}
    terminology, report = read(tmp_path, content)
    assert rows(terminology.names(), "text") == [("a",), ("b",)]
    assert report.notes["nodes that an earlier graph describes too, left out"] == 1
    with pytest.raises(InputError, match="an id that occurred before") as caught:
        read(tmp_path, document(node("X:1", "a"), node("X:1", "b")))
    assert caught.value.line


GOOD = node("X:1", "a")
WRONG = {
    "node is text": (document(GOOD, "x"), "graphs[0].nodes[1]: ", "nodes"),
    "node is null": (document(GOOD, None), "graphs[0].nodes[1]: null", "nodes"),
    "no id": (document(GOOD, {"lbl": "b", "type": "CLASS"}), "graphs[0].nodes[1].id: ", "nodes.id"),
    "id is a number": (document(GOOD, {"id": 7}), "graphs[0].nodes[1].id: 7", "nodes.id"),
    "label is a list": (document(GOOD, {"id": "X:2", "lbl": ["b"]}), 'nodes[1].lbl: ["b"]', "nodes.lbl"),
    "meta is text": (document(GOOD, {"id": "X:2", "meta": "m"}), "graphs[0].nodes[1].meta: ", "nodes.meta"),
    "synonym is text": (document(GOOD, node("X:2", "b", synonyms=["s"])), "nodes[1].meta.synonyms[0]: ", None),
    "synonym without text": (
        document(GOOD, node("X:2", "b", synonyms=[{"pred": "hasExactSynonym"}])),
        "graphs[0].nodes[1].meta.synonyms[0].val: ",
        "nodes.meta.synonyms.val",
    ),
    "deprecated is text": (document(GOOD, node("X:2", "b", deprecated="yes")), "meta.deprecated: ", None),
    "surrogate": (document(GOOD, node("X:2", "\ud800")), "X:2:", None),
    "blank synonym": (document(GOOD, node("X:2", "b", synonyms=[statement("hasExactSynonym", " ")])), "X:2:", None),
    "edge is a list": (document(GOOD, edges=[[1]]), "graphs[0].edges[0]: [1]", "edges"),
    "edge without head": (document(GOOD, edges=[{"pred": "is_a", "obj": "X:1"}]), "graphs[0].edges[0].sub: ", None),
    "edge without relation": (document(GOOD, edges=[edge("X:1", " ", "X:1")]), "X:1   X:1", None),
    "edge with half a character": (document(GOOD, edges=[edge("X:1", "is_a", "X:\ud800")]), "X:1 is_a X:", None),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_types(case: str, tmp_path: Path) -> None:
    content, text, field = WRONG[case]
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert caught.value.line
    assert text in str(caught.value)
    assert field is None or caught.value.field == f"graphs.{field}"
    terminology, report = read(tmp_path, content, on_error="skip")
    assert report.n_rejected == 1
    assert text in pl.read_parquet(tmp_path / "out" / "rejects.parquet")["text"][0]
    assert terminology.concept("X:1").preferred_name == "a"


@pytest.mark.parametrize(
    ("content", "place", "expected"),
    [
        (5, None, "an object with graphs"),
        ([GOOD], "[0].id", "an object with graphs"),
        ({"graphs": {"nodes": [1]}}, "graphs.nodes[0]", "an array of graphs"),
        ({"graphs": "x"}, "graphs", "an array of graphs"),
        ({"graphs": [5]}, "graphs[0]", "a graph"),
        ({"graphs": [[5]]}, "graphs[0][0]", "a graph"),
        ({"graphs": [{"nodes": {"X:1": {}}}]}, "graphs[0].nodes.X:1", "an array of nodes"),
        ({"graphs": [{"nodes": 5}]}, "graphs[0].nodes", "an array of nodes"),
        ({"graphs": [{"edges": "x"}]}, "graphs[0].edges", "an array of edges"),
        ({"graphs": []}, None, "graphs"),
        ({"graphs": None, "x": 1}, None, "graphs"),
        ({}, None, "graphs"),
        ({"X:1": {"label": "a"}}, None, "graphs"),
    ],
)
def test_other_documents(content: object, place: str | None, expected: str, tmp_path: Path) -> None:
    for on_error in ("strict", "skip"):
        with pytest.raises(InputError) as caught:
            read(tmp_path, content, on_error=on_error)
        assert caught.value.field == place
        assert expected in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('{"graphs": [\n{"nodes": [', 2, "cut off"),
        ('{"graphs": [{"nodes": [\n{"id": "X', 2, "cut off"),
        ('{"graphs": [{"nodes": [\n{"id": "X:1", "lbl": "a", "type": "CLASS"}', 2, "expected ',' or ']'"),
        ('{"graphs": [{"nodes": [\n\n{"id" "X:1"}]}]}', 3, "this is not JSON"),
        ('{"graphs": [{"nodes": [\n\n{"id": "X:1"} {}]}]}', 3, "this is not JSON"),
        ('{"graphs": [{"nodes": [{"id": 1' + 5000 * "0" + "}]}]}", 1, "a number that cannot be"),
        ('{"graphs": [{"nodes": [' + 100_000 * "[", 1, "nested too deeply"),
        ('{"graphs": []}\n{}', 2, "more than one"),
        ("{graphs: []}", 1, "a key in double quotes"),
        ('{"graphs" []}', 1, "':' after a key"),
        ('{"graphs": [{"nodes": [{"id": "a\tb"}]}]}', 1, "Invalid control character"),
        ("graphs:\n- nodes: []\n", 1, "this is not JSON"),
        ("   ", 1, "cut off"),
    ],
)
def test_what_is_not_json(text: str, line: int, problem: str, tmp_path: Path) -> None:
    for on_error in ("strict", "skip"):
        with pytest.raises(InputError) as caught:
            read(tmp_path, text, on_error=on_error)
        assert caught.value.line == line
        assert problem in str(caught.value)


def test_yaml_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("graphs: []\n")
    with pytest.raises(InputError, match="convert the file to JSON"):
        import_terminology("obographs", tmp_path / "x.yaml", tmp_path / "out")


def test_in_a_zip_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.json", json.dumps(document(node("X:1", "a"))))
    import_terminology("obographs", tmp_path / "x.zip", tmp_path / "out")
    assert Terminology.open(tmp_path / "out").n_concepts == 1


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=20,
)


def walked(value: object, depth: int, place: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], object]]:
    """What `json_values` shall give, by plain recursion."""
    if len(place) == depth or not isinstance(value, dict | list):
        return [(place, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [found for key, inner in items for found in walked(inner, depth, (*place, key))]


@settings(max_examples=100)
@given(value=JSON, depth=st.integers(0, 4), indent=st.sampled_from([None, 0, 2]), block_bytes=st.integers(1, 9))
def test_values_of_a_document(
    value: object,
    depth: int,
    indent: int | None,
    block_bytes: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "values.json"
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onoma.files.json_stream.BLOCK_BYTES", block_bytes)
        found = list(json_values(SourceFile("values.json", path), Reading(), depth=depth))
    assert [(entry.place, entry.value) for entry in found] == walked(value, depth)
    lines = text.split("\n")
    assert all(1 <= entry.line <= len(lines) for entry in found)


def test_json_values_at_several_depths_and_of_several_documents(tmp_path: Path) -> None:
    path = tmp_path / "values.ndjson"
    path.write_text('{"a": [1, {"b": [2]}], "c": {"d": 3}}\n\n{"a": [[4]], "c": []}\n 5 ')

    def is_value(place: Place) -> bool:
        return place[1:] == ("c",) or len(place) == 3

    found = list(json_values(SourceFile(path.name, path), Reading(), depth=is_value, has_several=True))
    assert [(entry.place, entry.line, entry.value) for entry in found] == [
        ((0, "a", 0), 1, 1),
        ((0, "a", 1), 1, {"b": [2]}),
        ((0, "c"), 1, {"d": 3}),
        ((1, "a", 0), 3, [4]),
        ((1, "c"), 3, []),
        ((2,), 4, 5),
    ]
    with pytest.raises(InputError, match="more than one JSON value"):
        list(json_values(SourceFile(path.name, path), Reading(), depth=0))


SMALL = json.dumps(
    document(node("X:1", "a", xrefs=[{"val": "Y:1"}]), node("X:2", "b"), edges=[edge("X:1", "p", "X:2")])
)


@settings(max_examples=25)
@given(
    start=st.integers(0, len(SMALL)),
    length=st.integers(0, 30),
    text=st.one_of(st.text(max_size=4), st.sampled_from(['"', "null", "{}", "[]", "7", "true", "\\ud800", "\0"])),
    on_error=st.sampled_from(["strict", "skip"]),
    is_gzip=st.booleans(),
)
def test_whatever_stands_there(
    start: int, length: int, text: str, on_error: OnError, is_gzip: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    data = (SMALL[:start] + text + SMALL[start + length :]).encode("utf-8", "surrogatepass")
    buffer = io.BytesIO(gzip.compress(data) if is_gzip else data)
    (folder / "x.json").write_bytes(buffer.getvalue())
    with contextlib.suppress(InputError):
        import_terminology("obographs", folder / "x.json", folder / "out", on_error=on_error)
        assert Terminology.open(folder / "out").n_names > 0


def test_a_property_that_is_null_is_as_if_it_was_not_there(tmp_path: Path) -> None:
    nothing: dict[str, Any] = {"pred": None, "val": "MESH:D1"}
    content = document(node("X:1", "a", xrefs=[nothing], definition=nothing, basicPropertyValues=[nothing]))
    terminology, _ = read(tmp_path, content)
    assert rows(terminology.cross_references(), "relation", "code") == [("xref", "MESH:D1")]


def test_the_parent_of_what_is_obsolete_in_old_releases(tmp_path: Path) -> None:
    parent = {"id": f"{OIO}ObsoleteClass", "lbl": "Obsolete Class", "type": "CLASS"}
    is_obsolete = edge("X:1", "is_a", "X:0") | {"obj": f"{OIO}ObsoleteClass"}
    content = document(
        parent,
        node("X:1", "a"),
        node("X:2", "b"),
        node("X:3", "c"),
        edges=[is_obsolete, edge("X:2", "is_a", "X:3"), is_obsolete | {"sub": OBO + "X_3", "pred": OBO + "part_of"}],
    )
    terminology, _ = read(tmp_path, content)
    assert rows(terminology.concepts(), "concept_id", "status") == [
        ("X:1", "obsolete"), ("X:2", "active"), ("X:3", "active"),
    ]  # fmt: skip
    assert terminology.n_relations == 1
