from __future__ import annotations

import dataclasses
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_terminologies import record, write
from test_terminology_tables import tables

from commands import run
from onoma.errors import InputError
from onoma.terminology import Terminology, write_terminology
from onoma.terminology.search import search_names
from onoma.terminology.tables import CROSS_REFERENCES
from tiny import make_terminology

CONCEPTS = [
    ("heart", ["Organ of the chest", "pump"]),
    ("B", ["Heart failure", "failing heart"]),
    ("C", ["Acute heart failure"]),
    ("D", ["Organ", "Heart"]),
    ("E", ["Heart rate"]),
    ("F", ["HEART"]),
    ("G", ["obsolete heart", "heart"]),
    ("H", ["100% (a+b)", "日本 ÄRZTE"]),
    ("I", []),
]


@pytest.fixture
def terminology(tmp_path: Path) -> Terminology:
    content = tables(CONCEPTS)
    is_obsolete = pl.col("concept_id") == "G"
    obsolete = pl.when(is_obsolete).then(pl.lit("obsolete")).otherwise("status")
    successor = pl.when(is_obsolete).then(pl.lit("A"))
    concepts = content.concepts.with_columns(status=obsolete, replaced_by=successor)
    content = dataclasses.replace(content, concepts=concepts)
    write_terminology(tmp_path / "t", content)
    return Terminology.open(tmp_path / "t")


def test_order(terminology: Terminology) -> None:
    hits = terminology.search(" Heart ")
    assert [(hit.concept_id, hit.matched_by, hit.matched_name) for hit in hits] == [
        ("heart", "code", "Organ of the chest"),
        ("F", "name", "HEART"),
        ("D", "name", "Heart"),
        ("G", "name", "heart"),
        ("E", "prefix", "Heart rate"),
        ("B", "prefix", "Heart failure"),
        ("C", "substring", "Acute heart failure"),
    ]
    assert [hit.status for hit in hits].count("obsolete") == 1
    assert [hit.replaced_by for hit in hits] == ["A" if hit.status == "obsolete" else None for hit in hits]
    assert [hit.concept_id for hit in terminology.search("heart", limit=2)] == ["heart", "F"]


def test_what_to_consider_in_place_of_an_obsolete_one(tmp_path: Path) -> None:
    names = {
        "A": ["heart"],
        "B": ["obsolete heart"],
        "C": ["old heart"],
        "D": ["hearts"],
        "E": ["heart b"],
        "F": ["hearty"],
    }
    advice = [("B", "consider", "D"), ("B", "consider", "A"), ("B", "is_a", "C"), ("A", "consider", "D")]
    advice += [("E", "consider", "B"), ("E", "consider", "C"), ("F", "consider", "E"), ("F", "consider", "F")]
    advice += [("B", "consider", "E"), ("C", "consider", "C")]
    make_terminology(tmp_path / "t", names, obsolete=["B", "C", "E", "F"], relations=advice)
    hits = Terminology.open(tmp_path / "t").search("heart")
    chosen = {hit.concept_id: hit.consider for hit in hits}
    assert chosen == {"A": (), "B": ("D", "A"), "C": (), "D": (), "E": ("D", "A"), "F": ("D", "A")}


def test_by_the_code_of_another_vocabulary(tmp_path: Path) -> None:
    rows = [
        (1, "MESH:D1", "xref", "s"),
        (2, "MESH:D1", "exactMatch", "s"),
        (2, "Heart", "xref", "s"),
        (0, "B", "xref", ""),
    ]
    references = pl.DataFrame(rows, schema=CROSS_REFERENCES, orient="row")
    write_terminology(tmp_path / "t", dataclasses.replace(tables(CONCEPTS), cross_references=references))
    terminology = Terminology.open(tmp_path / "t")
    hits = terminology.search("mesh:d1")
    assert [(hit.concept_id, hit.matched_by, hit.matched_name) for hit in hits] == [
        ("B", "cross-reference", "Heart failure"),
        ("C", "cross-reference", "Acute heart failure"),
    ]
    assert [hit.concept_id for hit in terminology.search("b", limit=2)] == ["B", "heart"]
    assert [hit.matched_by for hit in terminology.search("heart", limit=3)] == ["code", "cross-reference", "name"]


def test_a_concept_of_several_codes_is_found_by_each(tmp_path: Path) -> None:
    names = {"X1|Y1": ["a"], "Y1|z1 ": ["long name"], "Y1": ["much longer name"], "Y1|Q": ["b"], "Y12": ["c"]}
    terminology = make_terminology(tmp_path / "t", names, obsolete=["Y1|Q", "Y1"])
    found = {text: [hit.concept_id for hit in terminology.search(text)] for text in ("x1", "y1", "Z1", "x1|Y1", "1|Y")}
    assert found == {
        "x1": ["X1|Y1"],
        "y1": ["Y1", "X1|Y1", "Y1|z1 ", "Y1|Q"],  # its own code, though obsolete, then others, the obsolete one last
        "Z1": ["Y1|z1 "],
        "x1|Y1": ["X1|Y1"],
        "1|Y": [],
    }
    assert {hit.matched_by for hit in terminology.search("Y1")} == {"code"}


def test_patterns_are_text(terminology: Terminology) -> None:
    assert [hit.concept_id for hit in terminology.search("% (A+")] == ["H"]
    assert [hit.concept_id for hit in terminology.search("ärzte")] == ["H"]
    assert [hit.concept_id for hit in terminology.search("a\N{COMBINING DIAERESIS}rzte")] == ["H"]
    assert terminology.search("a.b") == []
    assert terminology.search("\0") == []
    assert next(hit.concept_id for hit in terminology.search("i")) == "I"


def test_nothing_to_search_for(terminology: Terminology) -> None:
    for text in ("", "  \t"):
        with pytest.raises(InputError, match="nothing to search for"):
            terminology.search(text)
    with pytest.raises(InputError, match="limit"):
        terminology.search("heart", limit=0)
    with pytest.raises(InputError, match="no valid Unicode"):
        terminology.search("\udcff")


@settings(max_examples=40)
@given(
    query=st.text("abAB .", min_size=1, max_size=3),
    names=st.lists(st.text("abAB .", min_size=1, max_size=5), min_size=1, max_size=8),
)
def test_against_a_loop(query: str, names: list[str]) -> None:
    if not query.strip():
        return
    wanted = query.strip().lower()
    expected = []
    for row, name in enumerate(names):
        lower = name.lower()
        if wanted in lower:
            rank = 1 if lower.strip() == wanted else 2 if lower.startswith(wanted) else 3
            expected.append((rank, len(name), row))
    content = tables([(f"id{row}", [name]) for row, name in enumerate(names)])
    references = pl.LazyFrame(schema=CROSS_REFERENCES)
    hits = search_names(content.concepts.lazy(), content.names.lazy(), references, query)
    assert [hit.concept_id for hit in hits] == [f"id{row}" for _, _, row in sorted(expected)]


def test_names_whose_accents_are_signs_of_their_own(tmp_path: Path) -> None:
    write_terminology(tmp_path / "t", tables([("A", ["cafe\u0301 disease"]), ("B", ["Caf\xe9"])]))
    terminology = Terminology.open(tmp_path / "t")
    for query in ("cafe\u0301", "caf\xe9"):
        assert [hit.concept_id for hit in terminology.search(query)] == ["B", "A"]
        assert [hit.concept_id for hit in terminology.search(query + " disease")] == ["A"]


def test_letters_that_capitals_make_one(tmp_path: Path) -> None:
    names = {"G": "Große Hände", "T": "İlerleyici işitme kaybı", "D": "Dış kulak", "N": "Νόσος", "W": "ＩｇＡ腎症"}
    write_terminology(tmp_path / "t", tables([(code, [name]) for code, name in names.items()]))
    terminology = Terminology.open(tmp_path / "t")
    queries = {
        "G": ["GROSSE", "große hände", "grosse HÄNDE"],
        "T": ["ilerleyici işitme kaybı", "İLERLEYİCİ İŞİTME KAYBI", "İlerleyici işitme"],
        "D": ["DIŞ", "dış kulak"],
        "N": ["νόσος", "ΝΌΣΟΣ", "νόσ", "ΝΌΣ"],
        "W": ["ｉｇａ腎", "IgA腎症"],
    }
    for code, spelt in queries.items():
        for query in spelt:
            assert [hit.concept_id for hit in terminology.search(query)] == [code], query


def test_what_an_obsolete_one_is_in_the_end(tmp_path: Path) -> None:
    old = [record(f"X:{number}", "heart", status="obsolete", replaced_by=f"X:{number + 1}") for number in (1, 2)]
    hits = Terminology.open(write(tmp_path / "t", [*old, record("X:3", "heart")])).search("heart")
    told = {hit.concept_id: (hit.replaced_by, hit.successor) for hit in hits}
    assert told == {"X:1": ("X:2", "X:3"), "X:2": ("X:3", "X:3"), "X:3": (None, None)}


def test_a_succession_that_ends_badly_is_told(tmp_path: Path) -> None:
    ends = {"X:1": "X:2", "X:3": "Y:1", "X:4": "X:3", "X:5": "X:6", "X:7": "X:8", "X:9": "X:5", "X:2": None}
    old = [record(code, f"heart {code}", status="obsolete", replaced_by=end) for code, end in ends.items()]
    choosing = record("X:8", "heart", status="obsolete", relations=[("consider", "X:6", "S")])
    write(tmp_path / "t", [*old, choosing, record("X:6", "heart X:6")])
    told = {
        "X:1": "obsolete, replaced by X:2, which is obsolete too",
        "X:3": "obsolete, replaced by Y:1, which is not here",
        "X:4": "obsolete, replaced by X:3, now Y:1, which is not here",
        "X:5": "obsolete, replaced by X:6",
        "X:7": "obsolete, replaced by X:8, which is obsolete too, consider X:6",
        "X:8": "obsolete, consider X:6",
        "X:9": "obsolete, replaced by X:5, now X:6",
    }
    for code, words in told.items():
        assert run("terminology", "search", tmp_path / "t", code).splitlines()[-1].rstrip().endswith(f" {words}"), code
