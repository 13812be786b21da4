"""Which names are in the dictionary, and how concepts are ranked from texts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linking_data import small_terminology

from onoma.errors import InputError
from onoma.linking import Linker, NameDictionary, build_dictionary, build_linker, update_linker
from onoma.linking.strings import StringColumn
from onoma.terminology import Terminology, import_terminology


@pytest.fixture
def terminology(tmp_path: Path) -> Terminology:
    return small_terminology(tmp_path / "terminology")


def entries_by_text(dictionary: NameDictionary) -> dict[str, list[tuple[str, int, str, bool]]]:
    """Text -> (concept id, name row, name as spelled, preferred)."""
    result = {}
    for row, text in enumerate(dictionary.texts):
        result[text] = [
            (
                dictionary.concept_ids[int(dictionary.entry_concepts[entry])],
                int(dictionary.entry_name_rows[entry]),
                dictionary.entry_names[int(entry)],
                bool(dictionary.entry_is_preferred[entry]),
            )
            for entry in range(dictionary.entry_offsets[row], dictionary.entry_offsets[row + 1])
        ]
    return result


def test_content(terminology: Terminology) -> None:
    dictionary = build_dictionary(terminology)
    assert entries_by_text(dictionary) == {
        "diabetes mellitus": [("D1", 0, "Diabetes Mellitus", True)],
        "sugar disease": [("D1", 2, "sugar disease", False)],
        "cold": [
            ("D2", 3, "Cold", True),
            ("D3", 5, "COLD", False),
            ("D4", 7, "cold", False),
            ("D6", 12, "cold", False),
        ],
        "chronic obstructive lung disease": [("D3", 4, "Chronic Obstructive Lung Disease", True)],
        "common cold": [("D4", 6, "Common Cold", True)],
        "cold temperature": [("D6", 11, "Cold Temperature", True)],
        "心臓発作": [("D8", 14, "心臓発作", True)],
    }
    assert list(dictionary.texts)[:2] == ["diabetes mellitus", "sugar disease"]
    assert list(dictionary.concept_ids) == ["D1", "D2", "D3", "D4", "D6", "D8"]
    assert list(dictionary.preferred_names)[2] == "Chronic Obstructive Lung Disease"


@pytest.mark.parametrize("as_type", [list, np.array, tuple])
def test_hidden_names_are_as_if_they_were_not_there(terminology: Terminology, as_type: type) -> None:
    dictionary = build_dictionary(terminology, hidden_names=as_type([0, 2, 14, 14]))
    texts = entries_by_text(dictionary)
    assert texts["diabetes mellitus"] == [("D1", 1, "DIABETES  mellitus", False)]
    assert "sugar disease" not in texts
    assert list(dictionary.concept_ids) == ["D1", "D2", "D3", "D4", "D6"]


@pytest.mark.parametrize("rows", [[-1], [16], [0.5], [True], [[1]], ["a"]])
def test_hidden_names_that_do_not_exist(terminology: Terminology, rows: list[int]) -> None:
    with pytest.raises(InputError, match="hidden"):
        build_dictionary(terminology, hidden_names=rows)


def test_no_name_left(terminology: Terminology) -> None:
    with pytest.raises(InputError, match="no name to link to"):
        build_dictionary(terminology, hidden_names=range(16))


def test_saved_and_opened(terminology: Terminology, tmp_path: Path) -> None:
    dictionary = build_dictionary(terminology)
    dictionary.save(tmp_path)
    opened = NameDictionary.open(tmp_path, normalisation=dictionary.normalisation)
    assert entries_by_text(opened) == entries_by_text(dictionary)
    assert list(opened.preferred_names) == list(dictionary.preferred_names)


def rank_by_loops(
    entries: list[list[tuple[int, bool]]],
    scores: list[float],
    top_k: int,
    counts: list[int],
    other_scope: list[bool] | None,
) -> list[tuple[int, float]]:
    """The oracle: the best (score, preferred, scope) of each concept, then a plain sort, the most frequent first."""
    best: dict[int, tuple[float, tuple[int, bool]]] = {}
    entry = -1
    for text, score in enumerate(scores):
        for concept, is_preferred in entries[text]:
            entry += 1
            key = (-round(score, 6), (0 if is_preferred else 1, other_scope is not None and other_scope[entry]))
            if concept not in best or key < best[concept]:
                best[concept] = key
    ordered = sorted((score, -counts[concept], preferred, concept) for concept, (score, preferred) in best.items())
    return [(concept, -score) for score, _, _, concept in ordered[:top_k]]


@st.composite
def dictionaries(draw: st.DrawFn) -> list[list[tuple[int, bool]]]:
    texts = draw(st.lists(st.dictionaries(st.integers(0, 5), st.booleans(), min_size=1), min_size=1, max_size=12))
    return [sorted(text.items()) for text in texts]


def dictionary_of(entries: list[list[tuple[int, bool]]]) -> NameDictionary:
    flat = [entry for text in entries for entry in text]
    concepts = [str(concept) for concept in range(6)]
    return NameDictionary(
        texts=StringColumn.from_strings(f"text {row}" for row in range(len(entries))),
        entry_offsets=np.cumsum([0, *map(len, entries)]),
        entry_concepts=np.array([concept for concept, _ in flat]),
        entry_is_preferred=np.array([preferred for _, preferred in flat]),
        entry_name_rows=np.arange(len(flat)),
        entry_names=StringColumn.from_strings(f"name {row}" for row in range(len(flat))),
        concept_ids=StringColumn.from_strings(concepts),
        preferred_names=StringColumn.from_strings(concepts),
        normalisation="sapbert",
    )


@settings(max_examples=150)
@given(entries=dictionaries(), top_k=st.integers(1, 7), data=st.data())
def test_ranking_equals_loops_and_is_never_settled_too_early(
    entries: list[list[tuple[int, bool]]], top_k: int, data: st.DataObject
) -> None:
    level = st.sampled_from([0.9, 0.9000000001, 0.5, 0.2])
    scores = sorted(data.draw(st.lists(level, min_size=len(entries), max_size=len(entries))), reverse=True)
    dictionary = dictionary_of(entries)
    counts = data.draw(st.none() | st.lists(st.integers(0, 3), min_size=6, max_size=6))
    n_entries = sum(map(len, entries))
    other_scope = data.draw(st.none() | st.lists(st.booleans(), min_size=n_entries, max_size=n_entries))
    if other_scope is not None:
        dictionary = dataclasses.replace(dictionary, entry_is_other_scope=np.array(other_scope))
    expected = rank_by_loops(entries, scores, top_k, counts or [0] * 6, other_scope)
    prior = None if counts is None else np.array(counts)
    for depth in range(1, len(entries) + 1):
        ranked = dictionary.rank_entries(
            np.arange(depth),
            np.array(scores[:depth], np.float32),
            top_k=top_k,
            complete=depth == len(entries),
            prior=prior,
        )
        if depth == len(entries):
            assert ranked is not None
        if ranked is not None:
            links = dictionary.links(ranked)
            assert [int(link.concept_id) for link in links] == [concept for concept, _ in expected]
            np.testing.assert_allclose([link.score for link in links], [score for _, score in expected], atol=1e-6)
            assert [link.rank for link in links] == list(range(1, len(links) + 1))


def test_a_synonym_of_another_scope_gives_way_to_a_name(tmp_path: Path) -> None:
    """ "Sugar" is a broad synonym of the first concept and an exact one of the second."""
    obo = """format-version: 1.2

[Term]
id: S:1
name: type 2 diabetes
synonym: "sugar" BROAD []
synonym: "T2D" EXACT []

[Term]
id: S:2
name: diabetes mellitus
synonym: "sugar" EXACT []
synonym: "Sugar" RELATED []
"""
    (tmp_path / "s.obo").write_text(obo)
    import_terminology("obo", tmp_path / "s.obo", tmp_path / "t", options={"scopes": "all"})
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    assert [link.concept_id for link in linker.link(["Sugar"])[0]] == ["S:2", "S:1"]
    explained = linker.explain("sugar", top_k=2)
    assert [reason.is_other_scope for reason in explained.links] == [False, True]
    assert "broad, narrow or related" not in explained.outcome
    without_the_name = linker.without([4, 5]).explain("sugar").outcome
    assert without_the_name.startswith("S:1 (type 2 diabetes): the mention is a name of it; that name is a broad, ")
    kept = linker.dictionary.keeping(np.ones(len(linker.dictionary.entry_names), np.bool_))
    assert kept.entry_is_other_scope is not None
    np.testing.assert_array_equal(kept.entry_is_other_scope, linker.dictionary.entry_is_other_scope)
    import_terminology("obo", tmp_path / "s.obo", tmp_path / "exact")
    plain = build_linker(tmp_path / "exact", None, tmp_path / "plain", sparse=True)
    assert plain.dictionary.entry_is_other_scope is None
    update_linker(tmp_path / "plain", tmp_path / "t")
    assert [link.concept_id for link in Linker.open(tmp_path / "plain").link(["sugar"])[0]] == ["S:2", "S:1"]


def test_a_concepts_best_name_is_shown() -> None:
    dictionary = dictionary_of([[(0, False), (1, True)], [(0, True)], [(1, False)]])
    links = dictionary.rank_concepts(np.array([0, 1, 2]), np.array([0.5, 0.5, 0.4], np.float32), top_k=5)
    assert links is not None
    assert [(link.concept_id, link.matched_name) for link in links] == [("0", "name 2"), ("1", "name 1")]


def test_nothing_to_rank() -> None:
    empty = np.empty(0, np.int64)
    assert dictionary_of([[(0, True)]]).rank_concepts(empty, np.empty(0, np.float32), top_k=5) == []
