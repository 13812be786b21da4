"""Synonyms of other terminologies, and an oracle over plain lists of what they should be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_terminologies import Name, Record, content, record, small_terminologies, write

from onoma.errors import ArtifactExistsError, ConfigError, InputError, NotAnArtifactError
from onoma.terminology import EnrichReport, enrich_terminology, normalise
from onoma.terminology.enriching import MATCHES
from onoma.terminology.enriching.matching import EVIDENCE
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
    assert "6 names, 2 of them new, for 1 concept," in str(report)
    assert "has 1 of the concepts (1 by name); 2 names added" in str(report)


def test_added_names_keep_what_their_terminology_says_of_them(tmp_path: Path) -> None:
    other = [Record("H:1", [Name("Pain"), Name("Ache", "en-GB", "HPO", "layperson"), Name("Hurt", source="")])]
    enrich_terminology(write(tmp_path / "own", OWN), [write(tmp_path / "other", other)], tmp_path / "out")
    assert content(tmp_path / "out")["names"][-2:] == [
        (3, "Ache", "en-GB", "HPO", "layperson", False, False),
        (3, "Hurt", "en", "other", "T", False, False),
    ]


@pytest.mark.parametrize(
    ("own", "other"),
    [
        pytest.param(OWN, [record("H:1", "Cold", "Chill"), record("H:2", "cold", "Rhinitis")], id="homonym there"),
        pytest.param([*OWN, record("L5", "cold")], [record("H:1", "Cold", "Chill")], id="homonym here"),
        pytest.param(OWN, [record("H:1", "Chill", "Cold", "Pain")], id="several of one's own"),
        pytest.param([*OWN, record("L5", "colds")], [record("H:1", "Cold of", "Chill")], id="homonym in other words"),
        pytest.param(
            [Record("L1", [Name("Cold", "de")])],
            [Record("H:1", [Name("Colds", "de"), Name("Chill", "de")])],
            id="rules of English are for English names",
        ),
        pytest.param(
            [Record("L1", [Name("Pain"), Name("Ache", is_suppressed=True)])],
            [record("H:1", "Pain", "Ache")],
            id="what is suppressed does not come back",
        ),
        pytest.param(
            [record("L1", "MCL NOS")], [record("H:1", "The MCL", "Lymphoma")], id="short form but for small words"
        ),
        pytest.param(
            [record("7", "Cold"), record("8", "Pain")], [record("7", "Chill"), record("8", "Ache")], id="bare codes"
        ),
        pytest.param([record("1:1", "Cold")], [record("1:1", "Chill")], id="codes without a vocabulary"),
        pytest.param(
            [record("X:7", "Cold")],
            [
                record("H:1", "Chill", references=[("X:7", "xref", "S")]),
                record("H:2", "Flu", references=[("X:7", "xref", "T")]),
            ],
            id="code of several",
        ),
        pytest.param(
            [record("X:7", "Cold")], [record("H:1", "Chill", references=[("X:7", "broadMatch", "S")])], id="broader"
        ),
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


def test_what_is_there_already_is_no_warning(tmp_path: Path) -> None:
    full = [record("L1", "Cold", "Chill", "Head cold")]
    _, report = enriched(tmp_path, full, [record("H:1", "Cold", "Chill", "Head cold")])
    assert (report.n_added, report.parts[0].n_matched) == (0, 1)
    assert "nothing was added: the concepts have the other names already" in str(report)
    assert "warning" not in str(report)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    ambiguous = [record("H:1", "Chill", "Cold", "Pain")]
    contested = [record("G:1", "Cold", "Bad"), record("G:2", "Pain", "bad", "Ache")]
    texts, report = enriched(tmp_path, OWN, ambiguous, contested)
    assert [part.n_ambiguous for part in report.parts] == [1, 0]
    assert [part.n_matched for part in report.parts] == [0, 2]
    assert [part.n_added for part in report.parts] == [0, 1]
    assert report.n_contested == 1
    assert texts["L4"] == ["Pain", "Ache"]
    assert "1 of its concepts match several, left out" in str(report)
    assert "would have gone to several concepts, not added: 1" in str(report)


def test_of_several_concepts_the_one_with_the_preferred_name_is_meant(tmp_path: Path) -> None:
    own = [record("L1", "Ezetimibe"), record("L2", "Ezetrol")]
    texts, report = enriched(tmp_path, own, [record("M:1", "ezetimibe", "Zetia", "ezetrol")])
    assert texts == {"L1": ["Ezetimibe", "Zetia"], "L2": ["Ezetrol"]}
    assert report.parts[0].n_ambiguous == 0


def test_order_number_spelling_and_small_words_are_set_aside(tmp_path: Path) -> None:
    own = [record("L1", "Pain in lower limb"), record("L2", "Haemorrhage"), record("L3", "Limb pain")]
    other = [
        record("H:1", "Lower limb pains", "Leg pain"),
        record("H:2", "Hemorrhages", "Bleeding"),
        record("H:3", "Pain in limb", "Melalgia"),
    ]
    texts, report = enriched(tmp_path, own, other)
    assert texts == {
        "L1": ["Pain in lower limb", "Lower limb pains", "Leg pain"],
        "L2": ["Haemorrhage", "Hemorrhages", "Bleeding"],
        "L3": ["Limb pain", "Pain in limb", "Melalgia"],
    }
    assert report.parts[0].n_matched_by == {"name": 0, "words": 3, "code": 0}
    by_name = enrich_terminology(tmp_path / "own", [tmp_path / "part0"], tmp_path / "by-name", by=["name"])
    assert by_name.n_added == 0


def test_codes_are_asked_where_names_say_nothing(tmp_path: Path) -> None:
    own = write(tmp_path / "own", [record("22298006", "Herzinfarkt"), record("267036007", "Dyspnoea")])
    other = [
        record("HP:1", "Heart attack", references=[("SNOMEDCT_US:22298006", "xref", "HP")]),
        record("HP:2", "Dyspnoea", "Breathlessness", references=[("SNOMEDCT_US:1", "xref", "HP")]),
    ]
    parts = [write(tmp_path / "other", other)]
    report = enrich_terminology(own, parts, tmp_path / "out", vocabularies={"own": "SCTID"})
    assert [(name[0], name[1]) for name in content(tmp_path / "out")["names"]] == [
        (0, "Herzinfarkt"),
        (0, "Heart attack"),
        (1, "Dyspnoea"),
        (1, "Breathlessness"),
    ]
    assert report.parts[0].n_matched_by == {"name": 1, "words": 0, "code": 1}
    assert "has 2 of the concepts (1 by name, 1 by code); 2 names added" in str(report)
    assert enrich_terminology(own, parts, tmp_path / "unsaid").n_added == 1
    assert enrich_terminology(own, parts, tmp_path / "colon", vocabularies={"own": "SCTID:"}).n_added == 2
    again = enrich_terminology(
        tmp_path / "out", [write(tmp_path / "more", [record("SCTID:22298006", "MI")])], tmp_path / "2"
    )
    assert again.parts[0].n_matched_by == {"name": 0, "words": 0, "code": 1}
    with pytest.raises(ConfigError, match="no terminology 'ours' to give a vocabulary"):
        enrich_terminology(own, parts, tmp_path / "3", vocabularies={"ours": "SCTID"})
    with pytest.raises(ConfigError, match=r"only if codes are compared \(--by code\); found name, words"):
        enrich_terminology(own, parts, tmp_path / "3", by=["name", "words"], vocabularies={"own": "SCTID"})


def test_concepts_met_only_by_a_code_that_several_refer_to_are_counted(tmp_path: Path) -> None:
    """As codes of ICD-10-CM, of which several map to one of SNOMED CT."""
    own = [record("SCT:1", "Pain"), record("L:2", "Ache", references=[("ICD:9", "xref", "")])]
    own.append(record("L:3", "Hurt", references=[("ICD:9", "xref", "")]))
    other = [record(f"ICD:{n}", f"Algia {n}", references=[("SCT:1", "xref", "")]) for n in (1, 2)]
    other += [record("ICD:3", "Pain", "Dolour", references=[("SCT:1", "xref", "")]), record("ICD:9", "Sore")]
    texts, report = enriched(tmp_path, own, other)
    assert texts == {"SCT:1": ["Pain", "Dolour"], "L:2": ["Ache"], "L:3": ["Hurt"]}
    assert report.parts[0].n_shared == 3
    assert "1 name added; 3 match only by a code that several refer to, left out" in str(report)
    by_name = enrich_terminology(tmp_path / "own", [tmp_path / "part0"], tmp_path / "named", by=["name"])
    assert by_name.parts[0].n_shared == 0


def test_a_name_that_is_contested_in_two_languages_is_given_to_nobody(tmp_path: Path) -> None:
    own = [record("L1", "Cold"), Record("L2", [Name("Grippe", "de")])]
    other = [record("H:1", "Cold", "Chills"), Record("H:2", [Name("Grippe", "de"), Name("chills", "de")])]
    for number, part in enumerate((other, other[::-1])):
        texts, report = enriched(tmp_path / str(number), own, part)
        assert texts == {"L1": ["Cold"], "L2": ["Grippe"]}
        assert report.n_contested == 1


def test_the_first_terminology_decides_where_a_name_belongs(tmp_path: Path) -> None:
    first, second = [record("H:1", "Cold", "Chill")], [record("G:1", "Pain", "chills", "Ache")]
    texts, report = enriched(tmp_path, OWN, first, second)
    assert (texts["L2"], texts["L4"]) == (["Cold", "Chill"], ["Pain", "Ache"])
    assert report.n_contested == 0


def test_synonyms_of_another_scope_say_nothing_and_are_not_taken(tmp_path: Path) -> None:
    """As "diabetes", a broad synonym of "type 2 diabetes mellitus" in some ontologies."""
    own = [record("L1", "Diabetes"), Record("L2", [Name("Leukaemia"), Name("Blood cancer", term_type="broad_synonym")])]
    other = [
        Record("H:1", [Name("Type two diabetes"), Name("diabetes", term_type="broad_synonym/layperson")]),
        record("H:2", "Blood cancer", "Haematological neoplasm"),
        Record("H:3", [Name("leukaemia"), Name("Leucosis"), Name("Myelosis", term_type="related_synonym")]),
    ]
    texts, report = enriched(tmp_path, own, other)
    assert texts == {"L1": ["Diabetes"], "L2": ["Leukaemia", "Blood cancer", "Leucosis"]}
    assert report.matches["other_id"].to_list() == ["H:3"]
    assert report.n_inexact == 1
    assert "broad, narrow or related, not added: 1" in str(report)


@pytest.mark.parametrize("order", [1, -1])
def test_a_name_that_another_one_has_as_exact_is_not_counted_as_left_out(order: int, tmp_path: Path) -> None:
    broad = [Record("H:1", [Name("Cold"), Name("Chill", term_type="broad_synonym")])]
    others = [broad, [record("G:1", "Cold", "Chill")]][::order]
    texts, report = enriched(tmp_path, [record("L1", "Cold")], *others)
    assert texts == {"L1": ["Cold", "Chill"]}
    assert (report.n_added, report.n_inexact) == (1, 0)


def test_names_left_out_for_their_scope_are_not_said_to_be_there(tmp_path: Path) -> None:
    names = [Name("Cold"), Name("Chill", term_type="related_synonym"), Name("Cold", term_type="broad_synonym")]
    _, report = enriched(tmp_path, [record("L1", "Cold")], [Record("H:1", names)])
    assert (report.n_added, report.n_inexact) == (0, 1)
    assert "nothing was added: the concepts have all but these already" in str(report)


@pytest.mark.parametrize("by", [EVIDENCE, ("name", "words")])
def test_what_an_exact_match_says_names_do_not_overrule(tmp_path: Path, by: tuple[str, ...]) -> None:
    own = [
        record("Q:1", "Cold", references=[("MESH:D003139", "exactMatch", "")]),
        record("Q:2", "Flu like"),
        record("Q:3", "Ache", references=[("MESH:D1", "xref", "")]),
    ]
    other = [
        record("MESH:D003080", "Cold Temperature", "cold"),
        record("MESH:D003139", "Common Cold", "Coryza"),
        record("MESH:D2", "flu like", "Influenza", references=[("Q:9", "exactMatch", "")]),
        record("MESH:D1", "Hurt"),
        record("MESH:D3", "ache", "Pain"),
    ]
    parts = [write(tmp_path / "mesh", other)]
    report = enrich_terminology(write(tmp_path / "own", own), parts, tmp_path / "out", by=by)
    names = [(row[0], row[1]) for row in content(tmp_path / "out")["names"]]
    cold = ["Common Cold", "Coryza"] if "code" in by else ["Cold Temperature"]
    expected = [(0, "Cold"), *((0, name) for name in cold), (1, "Flu like"), (1, "Influenza"), (2, "Ache")]
    also = [(2, "Hurt")] if "code" in by else []
    assert names == [*expected, *also, (2, "Pain")]
    assert report.matches.columns == list(MATCHES.names())


def test_what_was_taken_for_what_is_listed(tmp_path: Path) -> None:
    own = [record("L1", "Dyspnoea"), record("L2", "Cold"), record("L3", "Chill")]
    first = [
        record("H:1", "Breathlessness", "dyspnoea", "Air hunger"),
        record("H:2", "Chill feeling", "cold", "chill"),
    ]
    second = [record("G:1", "Dyspnoea"), record("G:2", "Fever")]
    _, report = enriched(tmp_path, own, first, second)
    assert report.matches.rows() == [
        ("L1", "Dyspnoea", "part0", "H:1", "Breathlessness", "name", True, ["Breathlessness", "Air hunger"]),
        ("L1", "Dyspnoea", "part1", "G:1", "Dyspnoea", "name", True, []),
        ("L2", "Cold", "part0", "H:2", "Chill feeling", "name", False, []),
        ("L3", "Chill", "part0", "H:2", "Chill feeling", "name", False, []),
    ]
    assert report.matches.schema == MATCHES


@pytest.mark.parametrize(("by", "message"), [((), "matched by something"), (("names",), "Did you mean 'name'")])
def test_evidence_that_there_is_not_is_refused(tmp_path: Path, by: tuple[str, ...], message: str) -> None:
    own, other = write(tmp_path / "own", OWN), write(tmp_path / "other", OWN)
    with pytest.raises(ConfigError, match=message):
        enrich_terminology(own, [other], tmp_path / "out", by=by)


def test_added_names_match_nothing_further_and_the_first_of_equal_names_is_added(tmp_path: Path) -> None:
    first, second = [record("H:1", "Pain", "Ache")], [record("G:1", "ache", "Hurt"), record("G:2", "pain", "ACHE")]
    texts, report = enriched(tmp_path, OWN, first, second)
    assert texts["L4"] == ["Pain", "Ache"]
    assert [part.n_added for part in report.parts] == [1, 0]


TEXTS = {"x": "pain", "X": "Pains", "y z": "lower limb", "y  z": "Limb of lower", "w": "oedema"}
"""Names that differ in what is set aside, in place of those of `small_terminologies`."""


TERM_TYPES = {"T": "exact_synonym", "U": "related_synonym/layperson"}


def in_words(part: list[Record]) -> list[Record]:
    """With the names of `TEXTS`, some of which mean something else."""
    return [
        entry._replace(
            names=[name._replace(text=TEXTS[name.text], term_type=TERM_TYPES[name.term_type]) for name in entry.names]
        )
        for entry in part
    ]


class Seen(NamedTuple):
    """A name in use, as the rules see it."""

    code: str
    key: str
    words: str
    language: str
    is_preferred: bool
    is_same: bool


def by_lists(own: list[Record], others: list[list[Record]], by: Sequence[str]) -> dict[str, set[str]]:
    """The rules, name by name: normalised texts of what each concept gets."""

    def words(text: str) -> str:
        return " ".join(sorted(word.removesuffix("s") for word in text.split() if word != "of"))

    def seen(part: list[Record]) -> list[Seen]:
        return [
            Seen(
                entry.code,
                key,
                words(key) if name.language == "en" else key,
                name.language,
                place == 0,
                "related" not in name.term_type,
            )
            for entry in part
            if entry.status == ACTIVE
            for place, name in enumerate(entry.names)
            if not name.is_suppressed and (key := normalise(name.text, "loose"))
        ]

    def sharing(entry: Record, other: list[Seen], level: str) -> set[tuple[str, bool]]:
        def is_alone(part: list[Seen], one: Seen) -> bool:
            return all(
                len({other.code for other in part if other.is_same and getattr(other, by) == getattr(one, by)}) == 1
                for by in ("key", level)
            )

        return {
            (
                mine.code,
                any(o.is_preferred for o in other if o.code == entry.code and o.is_same and getattr(o, level) == key),
            )
            for its in other
            for mine in seen(own)
            if its.code == entry.code
            and its.is_same
            and mine.is_same
            and (key := getattr(its, level)) == getattr(mine, level)
            and its.language == mine.language
            and is_alone(other, its)
            and is_alone(seen(own), mine)
        }

    def referring(
        entry: Record, part: list[Record], relations: tuple[str, ...] = ("exactMatch", "xref")
    ) -> set[tuple[str, bool]]:
        def in_use(one: Record, its: list[Record]) -> bool:
            return any(name.code == one.code for name in seen(its))

        def referred(one: Record) -> set[str]:
            return {code.upper() for code, relation, _ in one.references if relation in relations}

        def its_own(one: Record, its: list[Record]) -> set[str]:
            exact = {code.upper() for code, relation, _ in one.references if relation == "exactMatch"}
            others = [other for other in its if other is not one and in_use(other, its)]
            of_others = {code.upper() for other in others for code, kind, _ in other.references if kind == "exactMatch"}
            return exact - of_others - {other.code for other in others}

        def refers_alone(one: Record, codes: set[str], its: list[Record]) -> bool:
            left = {other.code: referred(other) - its_own(other, its) for other in its if in_use(other, its)}
            return any([other for other in left if code in left[other]] == [one.code] for code in codes)

        def codes_of(one: Record, its: list[Record]) -> set[str]:
            return {one.code} | its_own(one, its)

        return {
            (mine.code, False)
            for mine in own
            if in_use(mine, own) and in_use(entry, part)
            if codes_of(mine, own) & codes_of(entry, part)
            or refers_alone(entry, codes_of(mine, own), part)
            or refers_alone(mine, codes_of(entry, part), own)
        }

    known = seen(own)
    suppressed = {
        normalise(name.text, "loose")
        for entry in own
        if entry.status == ACTIVE
        for name in entry.names
        if name.is_suppressed
    }
    offered = []
    for number, part in enumerate(others):
        other = seen(part)
        exact = {one.code: {code for code, _ in referring(one, part, ("exactMatch",))} for one in part}
        if "code" not in by:
            exact = {}
        for entry in part:
            pairs: set[tuple[str, bool]] = set()
            of_this = exact.get(entry.code, set())
            for kind in by:
                if not pairs and kind == "code":
                    pairs = referring(entry, part) | {(code, False) for code in of_this}
                elif not pairs:
                    pairs = sharing(entry, other, "key" if kind == "name" else "words")
                by_its_codes = {code for codes in exact.values() for code in codes}
                pairs = {
                    (code, is_preferred)
                    for code, is_preferred in pairs
                    if code in of_this or (not of_this and code not in by_its_codes)
                }
            stands_for = {code for code, _ in pairs}
            if len(stands_for) > 1:
                stands_for = {code for code, is_preferred in pairs if is_preferred}
            if len(stands_for) != 1:
                continue
            (code,) = stands_for
            for its in other:
                is_new = its.key not in {mine.key for mine in known} | suppressed
                if (
                    its.code == entry.code
                    and its.is_same
                    and is_new
                    and {m.code for m in known if m.words == its.words} <= {code}
                ):
                    offered.append((number, code, its))
    for level in ("key", "words"):
        places = [(number, getattr(its, level)) for number, _, its in offered]
        offered = [one for one in offered if one[0] == min(n for n, text in places if text == getattr(one[2], level))]

    def is_contested(its: Seen) -> bool:
        by_key = {code for _, code, other in offered if other.key == its.key}
        by_words = {code for _, code, other in offered if other.words == its.words}
        return len(by_key) > 1 or len(by_words) > 1

    return {
        entry.code: {its.key for _, code, its in offered if code == entry.code and not is_contested(its)}
        for entry in own
    }


@settings(max_examples=60)
@given(
    own=small_terminologies().map(in_words),
    others=st.lists(small_terminologies().map(in_words), min_size=1, max_size=3),
    by=st.sampled_from([EVIDENCE, ("name",), ("words",), ("code", "name")]),
)
def test_names_are_added_as_the_rules_say(
    tmp_path_factory: pytest.TempPathFactory, own: list[Record], others: list[list[Record]], by: tuple[str, ...]
) -> None:
    folder = tmp_path_factory.mktemp("enriching")
    parts = [write(folder / f"part{number}", part) for number, part in enumerate(others)]
    enrich_terminology(write(folder / "own", own), parts, folder / "out", by=by)
    before, after = content(folder / "own"), content(folder / "out")
    assert {table: rows for table, rows in after.items() if table != "names"} == {
        table: rows for table, rows in before.items() if table != "names"
    }
    expected = by_lists(own, others, [kind for kind in EVIDENCE if kind in by])
    for row, entry in enumerate(own):
        had = [name for name in before["names"] if name[0] == row]
        has = [name for name in after["names"] if name[0] == row]
        assert has[: len(had)] == had
        new = [normalise(str(name[1]), "loose") for name in has[len(had) :]]
        assert len(new) == len(set(new))
        assert set(new) == expected[entry.code]


@pytest.mark.parametrize("name", ["Gout", "flu", "COUGHING", "type 1", "Herpes B"])
def test_short_names_and_capitals_are_no_short_forms(tmp_path: Path, name: str) -> None:
    texts, _ = enriched(tmp_path, [record("L1", name)], [record("H:1", name, "Synonym")])
    assert texts == {"L1": [name, "Synonym"]}


def test_what_two_concepts_are_called_in_two_languages_decides_nothing(tmp_path: Path) -> None:
    others = [Record("H:1", [Name("oedema", "de")]), Record("H:2", [Name("oedema", "en"), Name("Swelling", "en")])]
    texts, _ = enriched(tmp_path, [Record("L1", [Name("oedema", "en")])], others)
    assert texts == {"L1": ["oedema"]}


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


def test_where_nobody_said_any_language_every_language_is_there(tmp_path: Path) -> None:
    own = write(tmp_path / "own", [Record("L1", [Name("Pain", "en")])])
    other = write(tmp_path / "other", [Record("H:1", [Name("pain", "und"), Name("Ache", "und")])])
    assert enrich_terminology(own, [other], tmp_path / "out", languages=["en"]).n_added == 1


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


def test_one_folder_is_not_several(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="field others: several are meant here, not one"):
        enrich_terminology(tmp_path, "hpo", tmp_path / "out")
