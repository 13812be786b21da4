"""Filters: what they let through, and that they take candidates away instead of answers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linking_data import small_terminology, write_letter_linker

from onoma.errors import InputError
from onoma.linking import Linker, build_linker
from onoma.linking.strings import StringColumn
from onoma.linking.updating import update_linker
from onoma.terminology import import_terminology
from tiny import Name, make_terminology

GERMAN, BRITISH = "de", "en-GB"
CONCEPTS: dict[str, list[str | Name]] = {
    "A": ["disease"],
    "B": ["lung disease", Name("Lungenkrankheit", GERMAN, source="UMLS"), Name("lung disease", source="UMLS")],
    "C": ["lung cancer", Name("lung tumour", BRITISH), Name("Lungenkrebs", GERMAN)],
    "D": ["small cell lung cancer"],
    "E": ["heart disease", Name("Herzkrankheit", GERMAN)],
    "F": ["retired middle"],
    "G": ["below the retired one", Name("lung disease", source="OMIM")],
    "H": ["aspirin"],
    "I": ["lung"],
}
TYPES = {
    "A": ["Disease or Syndrome"],
    "B": ["Disease or Syndrome"],
    "C": ["Neoplastic Process"],
    "D": ["Neoplastic Process", "Disease or Syndrome"],
    "H": ["Pharmacologic Substance", "own type"],
}
RELATIONS = [
    ("B", "is_a", "A"),
    ("C", "isa", "B"),
    ("A", "inverse_isa", "E"),
    ("D", "broader", "C"),
    ("F", "is_a", "B"),
    ("G", "CHD", "F"),
    ("B", "PAR", "D"),  # a second way to D
    ("A", "is_a", "C"),  # and a circle
    ("I", "part_of", "B"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filters")
    write_letter_linker(folder, CONCEPTS, obsolete=["F"], semantic_types=TYPES, relations=RELATIONS)
    return folder


@pytest.fixture(scope="module")
def linker(place: Path) -> Linker:
    return Linker.open(place / "linker")


def ids(linker: Linker, **filters: Any) -> str:
    return "".join(sorted(linker.only(**filters).concept_ids))


def test_types_that_the_terminology_has_as_tuis(tmp_path: Path) -> None:
    types = {"A": ["T047"], "B": ["T191"], "C": ["t047", "own"], "D": ["T116"], "E": ["Disease or Syndrome"]}
    make_terminology(tmp_path / "t", {code: [f"name {code}"] for code in types}, semantic_types=types)
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    for word in ("T047", "t047", "Disease or Syndrome", "disease or syndrome"):
        assert ids(linker, semantic_types=word) == "ACE"
    assert ids(linker, semantic_types="disorders") == "ABCE"


def test_semantic_types_and_groups(linker: Linker) -> None:
    assert ids(linker, semantic_types="Neoplastic Process") == "CD"
    assert ids(linker, semantic_types=["Neoplastic Process", "own type"]) == "CDH"
    assert ids(linker, semantic_types="disease or syndrome") == "ABD"
    assert ids(linker, semantic_types="T191") == "CD"
    assert ids(linker, semantic_types="DISO") == ids(linker, semantic_types="Disorders") == "ABCD"
    assert ids(linker, semantic_types=["CHEM", "Disorders"]) == "ABCDH"


def test_languages_and_sources_are_of_the_name(linker: Linker) -> None:
    assert ids(linker, languages="de") == "BCE"
    assert ids(linker, languages="en") == "ABCDEGHI"
    assert ids(linker, languages="EN-gb") == "C"
    assert ids(linker, sources="UMLS") == "B"
    assert ids(linker, sources=["UMLS", "OMIM"]) == "BG"
    assert ids(linker, languages="de", sources="UMLS") == "B", "one name that is both"
    assert ids(linker, languages="en", sources="UMLS") == "B"
    german = linker.only(languages="de")
    assert (german.n_names, german.n_texts, german.n_concepts) == (3, 3, 3)
    two_that_share_a_text = linker.only(sources=["UMLS", "OMIM"])
    assert (two_that_share_a_text.n_names, two_that_share_a_text.n_texts) == (3, 2)
    assert {link.matched_name for link in german.link(["lungen"], top_k=9)[0]} == {
        "Lungenkrankheit",
        "Lungenkrebs",
        "Herzkrankheit",
    }
    # One text of one concept from two sources, and of another concept from a third.
    assert [link.concept_id for link in linker.only(sources="OMIM").link(["lung disease"])[0]] == ["G"]
    assert [link.concept_id for link in linker.link(["lung disease"], stages=["exact"])[0]] == ["B", "G"]


def test_branches(linker: Linker) -> None:
    assert ids(linker, under="D") == "D"
    assert ids(linker, under="F") == "G", "an obsolete concept is no answer, but stands in between"
    assert ids(linker, under="E") == "E"
    assert ids(linker, under="B") == ids(linker, under="A") == "ABCDEG", "there is a circle"
    assert ids(linker, under=["E", "I"]) == "EI"
    assert ids(linker, under="B", languages="de") == "BCE"


def test_a_concept_of_several_codes_is_meant_by_each(tmp_path: Path) -> None:
    concepts: dict[str, list[str | Name]] = {
        "X|Y": ["disease"],
        "B": ["lung disease"],
        "C|Y": ["cold"],
        "D": ["heart disease"],
        "O|P": ["retired"],
        "P|Q": ["old"],
        "Q": ["flu"],
    }
    relations = [("B", "is_a", "X|Y"), ("D", "is_a", "O|P"), ("D", "is_a", "P|Q")]
    make_terminology(tmp_path / "t", concepts, obsolete=["O|P", "P|Q"], relations=relations)
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    assert list(linker.only(under="X").concept_ids) == list(linker.only(under="X|Y").concept_ids) == ["X|Y", "B"]
    assert list(linker.only(under="Y").concept_ids) == ["X|Y", "B", "C|Y"], "two concepts go by it"
    assert list(linker.only(under="O").concept_ids) == ["D"], "an obsolete one too"
    assert list(linker.only(under="Q").concept_ids) == ["Q"], "one's own code is that concept's alone"
    with pytest.raises(InputError, match="no concept 'Z'"):
        linker.only(under="Z")


@pytest.mark.parametrize(
    "filters", [{"under": "A"}, {"semantic_types": "DISO"}, {"languages": "de"}, {"sources": "UMLS"}]
)
@pytest.mark.parametrize("stages", [["dense"], ["sparse"], ["dense", "sparse"], ["exact", "loose", "dense", "sparse"]])
@pytest.mark.parametrize("few", [0, 1 << 16])
def test_a_filter_takes_candidates_away(
    place: Path,
    tmp_path: Path,
    linker: Linker,
    filters: dict[str, str],
    stages: list[str],
    few: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answers are those of all concepts, less those that do not pass: searched alone or among all."""
    monkeypatch.setattr("onoma.linking.searching.FEW_TEXTS", few)
    chosen = linker.only(**filters)
    for mention in ("lung disease", "lungs", "Lungenkrebs", "disease of the heart"):
        (every,) = linker.link([mention], stages=stages, top_k=50)
        (answers,) = chosen.link([mention], stages=stages, top_k=50)
        assert sorted({link.concept_id for link in answers}) == sorted(chosen.concept_ids)
        if len(stages) == 1 and filters.keys() <= {"under", "semantic_types"}:
            expected = [link for link in every if link.concept_id in set(chosen.concept_ids)]
            assert [(link.concept_id, link.score) for link in answers] == [
                (link.concept_id, link.score) for link in expected
            ]
        for top_k in (1, 2):
            assert chosen.link([mention], stages=stages, top_k=top_k)[0] == answers[:top_k]
        assert [reason.concept_id for reason in chosen.explain(mention, stages=stages).links] == [
            link.concept_id for link in answers[:5]
        ]


@pytest.mark.parametrize("stages", [["dense"], ["dense", "sparse"]])
def test_an_approximate_index_is_not_asked_what_a_filter_lets_through(
    linker: Linker, stages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nearest vectors may all be of names that do not pass."""
    mentions = ["lung disease", "Lungenkrebs", "heart"]
    expected = linker.only(languages="en").link(mentions, stages=stages)

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(linker._components.index, "search", refuse)
    with pytest.raises(AssertionError, match="asked"):  # more than a quarter pass
        linker.only(languages="en").link(mentions, stages=stages)
    monkeypatch.setattr(linker._components.index, "is_approximate", True)
    assert linker.only(languages="en").link(mentions, stages=stages) == expected
    monkeypatch.setattr("onoma.linking.searching.FEW_TEXTS", 3)
    with pytest.raises(AssertionError, match="asked"):
        linker.only(languages="en").link(mentions, stages=stages)


def test_few_or_many_the_answers_are_the_same(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = random.Random(0)
    names = {f"C{row}": ["".join(letters.choices("abcdef", k=7)) for _ in range(2)] for row in range(300)}
    types = {code: ["rare"] for code in list(names)[::29]}
    make_terminology(tmp_path / "t", names, semantic_types=types)
    linker = build_linker(tmp_path / "t", place / "letters", tmp_path / "linker", sparse=True)
    settings = linker.settings.replaced(pool=3)
    mentions = ["".join(letters.choices("abcdef", k=7)) for _ in range(20)]
    monkeypatch.setattr("onoma.linking.searching._TEXTS_AT_ONCE", 100)  # several parts
    for stages in (["dense"], ["sparse"], ["dense", "sparse"]):
        found = []
        for few in (0, 1 << 16):
            monkeypatch.setattr("onoma.linking.searching.FEW_TEXTS", few)
            found.append(linker.tuned(settings).only(semantic_types="rare").link(mentions, stages=stages, top_k=3))
        assert found[0] == found[1]
        assert {len(links) for links in found[0]} == {3}
        assert {link.concept_id for links in found[0] for link in links} <= types.keys()


@pytest.mark.parametrize("few", [0, 1 << 16])
def test_names_without_a_character_of_the_mention_are_no_answer(
    few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where names that are not allowed have some."""
    monkeypatch.setattr("onoma.linking.searching.FEW_TEXTS", few)
    concepts = {"A": ["abc"], "B": ["bcd"], "C": ["cab"], "D": ["abcd"], "E": ["xyz"]}
    make_terminology(tmp_path / "t", concepts, semantic_types={"E": ["rare"]})
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True).only(semantic_types="rare")
    assert linker.link(["ab", "yes"]) == [[], linker.link(["yes"])[0]]
    assert [link.concept_id for link in linker.link(["yes"])[0]] == ["E"]


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (
            {"semantic_types": "Neoplastic Proces"},
            "no semantic type 'Neoplastic Proces'. Did you mean 'Neoplastic Process'",
        ),
        ({"semantic_types": "GENE"}, "no semantic type 'GENE'"),  # the terminology has none of this group
        ({"sources": "UMSL"}, "no source 'UMSL'. Did you mean 'UMLS'"),
        ({"languages": "fr"}, "no language 'fr'"),
        ({"languages": "en,de"}, "To mend it: name each by itself, without commas between"),
        ({"sources": "UMLS, X"}, "To mend it: name each by itself, without commas between"),
        ({"under": "b"}, "no concept 'b'. Did you mean 'B'? Expected a code with a name"),
        ({"under": "MESH:1"}, "no concept 'MESH:1'; expected a code with a name or a place in the hierarchy"),
        ({"under": "G", "languages": "de"}, "no name passes these filters together"),
    ],
)
def test_what_the_terminology_has_not_got(linker: Linker, filters: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        linker.only(**filters)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("filters", "setting"),
    [
        ({"semantic_types": "Disorders"}, "semantic_type=COLUMN"),
        ({"sources": "OURS,"}, "default_source=NAME"),
        ({"languages": "en"}, "default_language=en"),
    ],
)
def test_of_what_the_terminology_never_says_it_is_told_how_to_say_it(
    filters: dict[str, str], setting: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("code,label\nA,lung\n")
    columns = {"id": "code", "name": "label"}
    import_terminology("table", tmp_path / "t.csv", tmp_path / "t", options=columns)
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    with pytest.raises(InputError, match=rf"none at all.*\. To mend it: .*--set {setting}\).*linker update"):
        linker.only(**filters)
    name, _, value = setting.partition("=")
    said = {**columns, name: "label" if value == "COLUMN" else value}
    import_terminology("table", tmp_path / "t.csv", tmp_path / "said", options=said)
    update_linker(tmp_path / "linker", tmp_path / "said")
    word = {"COLUMN": "lung", "NAME": "NAME", "en": "en"}[value]
    assert Linker.open(tmp_path / "linker").only(**dict.fromkeys(filters, word)).n_concepts == 1


def test_filters_that_ask_for_nothing_or_are_no_text(linker: Linker) -> None:
    assert linker.only(languages=None, under=()).link(["lung"]) == linker.link(["lung"], expected_types=None)
    assert linker.only(languages=np.array(["en"])).link(["lung"]) == linker.only(languages="en").link(["lung"])
    for asked in ({"sources": [3]}, {"under": [None]}, {"under": 0}, {"languages": False}):
        with pytest.raises(InputError, match="a filter that is no text"):
            linker.only(**asked)
    with pytest.raises(InputError, match="field expected_types: a filter that is no text"):
        linker.link(["lung"], expected_types=[3])  # type: ignore[list-item]
    for near_misses in ("a", True, -1, 1.0):
        with pytest.raises(InputError, match="not a possible number of near misses"):
            linker.explain("lung", near_misses=near_misses)  # type: ignore[arg-type]
    assert linker.explain("lung", near_misses=np.int64(2)) == linker.explain("lung", near_misses=2)  # type: ignore[arg-type]


def test_of_many_codes_that_are_alike_only_the_nearest_is_named(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {f"C:{row:04}": [f"name {row}"] for row in range(30)})
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    with pytest.raises(InputError, match=r"no concept 'C:00025'\. Did you mean 'C:\d+'\? Expected a code"):
        linker.only(under="C:00025")


def test_of_many_types_some_are_named(tmp_path: Path) -> None:
    types = {f"C{row}": [f"type {row:02}"] for row in range(30)}
    make_terminology(tmp_path / "t", {code: [code] for code in types}, semantic_types=types)
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    with pytest.raises(InputError, match=r"field semantic_types: .* type 19, … \(30\)\.$"):
        linker.only(semantic_types="x")
    with pytest.raises(InputError, match="field expected_types: "):
        linker.link(["x"], expected_types=["x"])


def test_a_terminology_without_hierarchy(place: Path, tmp_path: Path) -> None:
    small_terminology(tmp_path / "t")
    linker = build_linker(tmp_path / "t", place / "letters", tmp_path / "linker")
    with pytest.raises(InputError, match="no hierarchy"):
        linker.only(under="D1")
    assert linker.only() is linker


def test_filters_and_hidden_names_go_together(linker: Linker) -> None:
    """Row 1 of the names is "lung disease" of B."""
    assert [
        link.concept_id for link in linker.only(under="B").without([1]).link(["lung disease"], stages=["exact"])[0]
    ] == ["G"]
    both = linker.without([1]).only(under="B")
    assert both.n_names == linker.only(under="B").n_names - 1
    marks = [one.fingerprint_of_names for one in (linker, linker.without([1]), linker.only(under="B"), both)]
    assert len(set(marks)) == 4
    assert both.fingerprint_of_names == linker.without([1]).only(under="B").fingerprint_of_names
    assert [link.concept_id for link in both.exact_matcher().link(["lung disease"])[0]] == ["G"]


def test_facts_of_a_shuffled_terminology(place: Path, tmp_path: Path) -> None:
    """Rows of a terminology are not rows of a linker: nameless and obsolete concepts have none."""
    order = list(CONCEPTS)
    random.Random(3).shuffle(order)
    concepts: dict[str, list[str | Name]] = {
        "nameless": [Name("gone", is_suppressed=True)],
        **{code: CONCEPTS[code] for code in order},
    }
    relations = [*RELATIONS, ("nameless", "is_a", "E"), ("H", "is_a", "nameless")]
    make_terminology(tmp_path / "t", concepts, obsolete=["F"], semantic_types=TYPES, relations=relations)
    linker = build_linker(tmp_path / "t", None, tmp_path / "linker", sparse=True)
    assert ids(linker, under="B") == "ABCDEGH"
    assert ids(linker, under="E") == ids(linker, under=["nameless", "E"]) == "EH"
    assert ids(linker, semantic_types="DISO") == "ABCD"
    assert ids(linker, sources=["UMLS", "OMIM"]) == "BG"
    assert isinstance(linker.concept_ids, StringColumn)
    assert np.load(linker.path / "concept_types.npy").shape == (linker.n_concepts,)
