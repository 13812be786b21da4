"""Synonyms of other terminologies, and an oracle over plain lists of what they should be."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_terminologies import Name, Record, content, record, small_terminologies, write

from onoma.errors import ArtifactExistsError, InputError, NotAnArtifactError
from onoma.terminology import EnrichReport, enrich_terminology, normalise
from onoma.terminology.tables import ACTIVE

OWN = [record("L1", "Dyspnoea"), record("L2", "Cold"), record("L3", "Retired", status="obsolete"), record("L4", "Pain")]


def enriched(tmp_path: Path, own: list[Record], *others: list[Record]) -> tuple[dict[str, list[str]], EnrichReport]:
    """Texts of the names by code, in their order, and the report."""
    parts = [write(tmp_path / f"part{number}", part) for number, part in enumerate(others)]
    report = enrich_terminology(write(tmp_path / "own", own), parts, tmp_path / "out")
    tables = content(tmp_path / "out")
    texts: dict[str, list[str]] = {str(concept[0]): [] for concept in tables["concepts"]}
    for name in tables["names"]:
        texts[own[int(str(name[0]))].code].append(str(name[1]))
    return texts, report


def test_synonyms_come_to_the_concept_that_has_one_of_them(tmp_path: Path) -> None:
    other = [record("H:1", "Dyspnea", "dyspnoea", "Shortness of breath"), record("H:2", "Fever", "Pyrexia")]
    texts, report = enriched(tmp_path, OWN, other)
    assert texts == {
        "L1": ["Dyspnoea", "Dyspnea", "Shortness of breath"],
        "L2": ["Cold"],
        "L3": ["Retired"],
        "L4": ["Pain"],
    }
    assert (report.n_concepts, report.n_enriched, report.n_names, report.n_added) == (4, 1, 6, 2)
    assert report.parts[0].n_matched == 1
    assert "6 names, 2 of them new, for 1 concepts" in str(report)
    assert "1 concepts share a name with it, 2 names added" in str(report)


def test_added_names_keep_what_their_terminology_says_of_them(tmp_path: Path) -> None:
    other = [Record("H:1", [Name("Pain"), Name("Ache", "en-GB", "HPO", "layperson")])]
    enrich_terminology(write(tmp_path / "own", OWN), [write(tmp_path / "other", other)], tmp_path / "out")
    assert content(tmp_path / "out")["names"][-1] == (3, "Ache", "en-GB", "HPO", "layperson", False, False)


@pytest.mark.parametrize(
    ("own", "other"),
    [
        pytest.param(OWN, [record("H:1", "Cold", "Chill"), record("H:2", "cold", "Rhinitis")], id="homonym there"),
        pytest.param([*OWN, record("L5", "cold")], [record("H:1", "Cold", "Chill")], id="homonym here"),
        pytest.param(OWN, [record("H:1", "Cold", "Pain", "Chill")], id="several of one's own"),
        pytest.param(OWN, [record("H:1", "Cold", "Chill"), record("H:2", "Pain", "chill")], id="name of two"),
        pytest.param(OWN, [record("H:1", "Cold", "Chill", status="obsolete")], id="retired there"),
        pytest.param(OWN, [record("H:1", "Retired", "Chill")], id="retired here"),
        pytest.param(OWN, [Record("H:1", [Name("Cold", is_suppressed=True), Name("Chill")])], id="suppressed"),
        pytest.param(OWN, [Record("H:1", [Name("Cold"), Name("Chill", is_suppressed=True)])], id="suppressed synonym"),
        pytest.param(OWN, [Record("H:1", [Name("Cold", "de"), Name("Chill", "de")])], id="other language"),
        pytest.param(
            OWN, [record("H:1", "Cold", "Chill"), Record("H:2", [Name("cold", "de")])], id="homonym of two languages"
        ),
        pytest.param(OWN, [record("H:1", "Cold", "...")], id="blank"),
        pytest.param([record("L1", "MCL")], [record("H:1", "mcl", "Mantle cell lymphoma")], id="short form here"),
        pytest.param([record("L1", "mcl")], [record("H:1", "MCL", "Mantle cell lymphoma")], id="short form there"),
        pytest.param([record("L1", "md1")], [record("H:1", "md1", "Myotonic dystrophy 1")], id="with a digit"),
    ],
)
def test_what_decides_nothing_adds_nothing(tmp_path: Path, own: list[Record], other: list[Record]) -> None:
    texts, report = enriched(tmp_path, own, other)
    assert texts == {entry.code: [name.text for name in entry.names] for entry in own}
    assert report.n_added == report.n_enriched == 0
    assert "nothing was added" in str(report)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    ambiguous = [record("H:1", "Cold", "Pain", "Chill")]
    contested = [record("G:1", "Cold", "Bad"), record("G:2", "Pain", "bad", "Ache")]
    texts, report = enriched(tmp_path, OWN, ambiguous, contested)
    assert [part.n_ambiguous for part in report.parts] == [1, 0]
    assert [part.n_matched for part in report.parts] == [0, 2]
    assert [part.n_added for part in report.parts] == [0, 1]
    assert report.n_contested == 1
    assert texts["L4"] == ["Pain", "Ache"]
    assert "1 of its concepts match several, left out" in str(report)
    assert "would have come to several concepts, not added: 1" in str(report)


def test_added_names_match_nothing_further_and_the_first_of_equal_names_is_added(tmp_path: Path) -> None:
    first, second = [record("H:1", "Pain", "Ache")], [record("G:1", "ache", "Hurt"), record("G:2", "pain", "ACHE")]
    texts, report = enriched(tmp_path, OWN, first, second)
    assert texts["L4"] == ["Pain", "Ache"]
    assert [part.n_added for part in report.parts] == [1, 0]


def by_lists(own: list[Record], others: list[list[Record]]) -> dict[str, set[str]]:
    """The rules, name by name: normalised texts of what each concept gets."""

    def names(part: list[Record]) -> list[tuple[str, str, str]]:
        return [
            (entry.code, key, name.language)
            for entry in part
            if entry.status == ACTIVE
            for name in entry.names
            if not name.is_suppressed and (key := normalise(name.text, "loose"))
        ]

    def owners(part: list[Record], key: str) -> set[str]:
        return {code for code, other, _ in names(part) if other == key}

    def are_one(key: str, language: str) -> bool:
        return any((other == key and tag in {language, "und"}) or language == "und" for _, other, tag in names(own))

    known = {key for _, key, _ in names(own)}
    offered = set()
    for other in others:
        for entry in other:
            its = [(key, language) for code, key, language in names(other) if code == entry.code]
            shared = [key for key, language in its if are_one(key, language)]
            shared = [key for key in shared if len(owners(other, key)) == len(owners(own, key)) == 1]
            mine = {code for key in shared for code in owners(own, key)}
            if len(mine) == 1:
                offered |= {(code, key) for code in mine for key, _ in its if key not in known}
    return {
        entry.code: {
            key for code, key in offered if code == entry.code and len({c for c, k in offered if k == key}) == 1
        }
        for entry in own
    }


@settings(max_examples=60, deadline=None)
@given(own=small_terminologies(), others=st.lists(small_terminologies(), min_size=1, max_size=3))
def test_names_are_added_as_the_rules_say(
    tmp_path_factory: pytest.TempPathFactory, own: list[Record], others: list[list[Record]]
) -> None:
    folder = tmp_path_factory.mktemp("enriching")
    parts = [write(folder / f"part{number}", part) for number, part in enumerate(others)]
    enrich_terminology(write(folder / "own", own), parts, folder / "out")
    before, after = content(folder / "own"), content(folder / "out")
    assert {table: rows for table, rows in after.items() if table != "names"} == {
        table: rows for table, rows in before.items() if table != "names"
    }
    for row, entry in enumerate(own):
        had = [name for name in before["names"] if name[0] == row]
        has = [name for name in after["names"] if name[0] == row]
        assert has[: len(had)] == had
        new = [normalise(str(name[1]), "loose") for name in has[len(had) :]]
        assert len(new) == len(set(new))
        assert set(new) == by_lists(own, others)[entry.code]


@pytest.mark.parametrize("name", ["Gout", "flu", "COUGHING", "type 1", "Herpes B"])
def test_short_names_and_capitals_are_no_short_forms(tmp_path: Path, name: str) -> None:
    texts, _ = enriched(tmp_path, [record("L1", name)], [record("H:1", name, "Synonym")])
    assert texts == {"L1": [name, "Synonym"]}


def test_a_language_that_nobody_said_may_be_any(tmp_path: Path) -> None:
    own = [Record("L1", [Name("Pain", "und")]), Record("L2", [Name("Grippe", "fr")])]
    other = [
        Record("H:1", [Name("pain", "en-GB"), Name("Ache", "en-GB"), Name("Schmerz", "de"), Name("Algia", "und")]),
        Record("H:2", [Name("Grippe", "und"), Name("Flu", "en")]),
    ]
    whole, _ = enriched(tmp_path, own, other)
    assert whole == {"L1": ["Pain", "Ache", "Schmerz", "Algia"], "L2": ["Grippe", "Flu"]}
    parts = [tmp_path / "part0"]
    report = enrich_terminology(tmp_path / "own", parts, tmp_path / "english", languages=["en"])
    assert report.n_added == 3
    assert [name[1] for name in content(tmp_path / "english")["names"]] == ["Pain", "Ache", "Algia", "Grippe", "Flu"]
    with pytest.raises(InputError, match="no name to add is of this language"):
        enrich_terminology(tmp_path / "own", parts, tmp_path / "none", languages=["en", "es"])


def test_bad_places_are_refused(tmp_path: Path) -> None:
    own, other = write(tmp_path / "own", OWN), write(tmp_path / "other", [record("H:1", "Pain", "Ache")])
    with pytest.raises(InputError, match="no terminology to take names from"):
        enrich_terminology(own, [], tmp_path / "out")
    with pytest.raises(InputError, match="given twice"):
        enrich_terminology(own, [other, own], tmp_path / "out")
    with pytest.raises(InputError, match="cannot lie where one of its parts lies"):
        enrich_terminology(own, [other], own / "out")
    with pytest.raises(NotAnArtifactError):
        enrich_terminology(own, [Path(__file__).parent], tmp_path / "out")
    enrich_terminology(own, [other], tmp_path / "out")
    with pytest.raises(ArtifactExistsError):
        enrich_terminology(own, [other], tmp_path / "out")
    enrich_terminology(own, [other], tmp_path / "out", overwrite=True)
