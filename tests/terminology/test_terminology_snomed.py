"""SNOMED CT: states over time, reference sets, successors, maps, and releases that are not whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import imported
from sample_snomed import (
    ACCEPTABLE,
    CONTENT,
    FSN,
    GB,
    IS_A,
    PREFERRED,
    REPLACED_BY,
    SAME_AS,
    US,
    Row,
    description,
    member,
    relationship,
    write_rf2,
    zip_folder,
)

from onoma.errors import ConfigError, InputError
from onoma.terminology import Terminology
from onoma.terminology.readers import rf2

ROOT = ("138875005", "20020131", "1", "900000000000074008")
ROOT_NAME = description("8110012", "138875005", "SNOMED CT Concept (SNOMED RT+CTV3)", FSN)


run = partial(imported, "snomed")


def concepts_of(terminology: Terminology) -> dict[str, dict[str, Any]]:
    return {row["concept_id"]: row for row in terminology.concepts().collect().iter_rows(named=True)}


def names_of(terminology: Terminology, concept_id: str) -> list[tuple[str, str]]:
    """(term type, text) in the order of the table."""
    ids = terminology.concepts().collect()["concept_id"]
    rows = terminology.names().select("concept_row", "term_type", "text").collect().iter_rows()
    return [(kind, text) for row, kind, text in rows if ids[row] == concept_id]


def sentences(terminology: Terminology) -> set[tuple[str, str, str]]:
    ids = terminology.concepts().collect()["concept_id"]
    rows = terminology.relations().select("head_row", "relation", "tail_row").collect().iter_rows()
    return {(ids[head], relation, ids[tail]) for head, relation, tail in rows}


def concept(id: str, active: str = "1") -> Row:
    return id, "20200131", active, "900000000000074008"


def named(*ids: str, inactive: str = "") -> dict[str, list[Row]]:
    """Concepts with a name each; those in ``inactive`` retired."""
    return {
        "sct2_Concept": [concept(id, "0" if id in inactive.split() else "1") for id in ids],
        "sct2_Description": [
            description(f"9{number}011", id, f"name of {id} (disorder)", FSN) for number, id in enumerate(ids, 11)
        ],
    }


def test_state_at_a_day(tmp_path: Path) -> None:
    source = write_rf2(tmp_path / "in", CONTENT, "Full")
    then, _ = run(source, tmp_path / "out", date="20200601")
    concepts = concepts_of(then)
    assert [concepts[id]["status"] for id in ("101001", "401004")] == ["obsolete", "active"]
    assert concepts["401004"]["replaced_by"] is None
    assert sentences(then) == {("101001", "is_a", "201005"), ("201005", "is_a", "101001")}
    assert [text for _, text in names_of(then, "101001")] == [
        "Hart attack",
        "Heart attack (disease)",
        "Myocardial infarction",
        "MI",
        "Cardiac arrest",
    ]
    later, _ = run(source, tmp_path / "out", date="20220601")
    assert concepts_of(later)["401004"]["replaced_by"] == "201005"
    with pytest.raises(InputError, match="no concept with a name"):
        run(source, tmp_path / "out", date="20010101")
    with pytest.raises(ConfigError, match="date"):
        run(source, tmp_path / "out", date="2020")


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans(), st.sampled_from("abc")),
        unique_by=lambda row: row[:2],
        max_size=12,
    ),
    day=st.integers(0, 5),
)
@settings(max_examples=12)
def test_state_is_the_last_row_up_to_the_day(
    rows: list[tuple[int, int, bool, str]], day: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    states = [
        description(f"1{id}1011", "101001", f"name {id} {word}", state=(f"2020010{time + 1}", str(int(active))))
        for id, time, active, word in rows
    ]
    contents: dict[str, list[Row]] = {
        "sct2_Concept": [("101001", "20200100", "1", "x")],
        "sct2_Description": [description("5551011", "101001", "always", state=("20200100", "1")), *states],
    }
    folder = tmp_path_factory.mktemp("rf2")
    expected = {"always"}
    for id in {id for id, *_ in rows}:
        past = [row for row in rows if row[0] == id and row[1] <= day]
        if past and max(past, key=lambda row: row[1])[2]:
            expected.add(f"name {id} {max(past, key=lambda row: row[1])[3]}")
    found, _ = run(write_rf2(folder, contents, "Full"), folder / "out", date=f"2020010{day + 1}")
    assert set(found.names().collect()["text"]) == expected


def test_full_and_snapshot_say_the_same(tmp_path: Path) -> None:
    write_rf2(tmp_path / "in", CONTENT, "Full")
    write_rf2(tmp_path / "in", CONTENT, "Snapshot")
    snapshot, _ = run(tmp_path / "in", tmp_path / "a", release="snapshot")
    full, _ = run(tmp_path / "in", tmp_path / "b", release="full")
    for table in ("concepts", "relations", "definitions"):
        assert getattr(snapshot, table)().collect().equals(getattr(full, table)().collect())
    assert snapshot.manifest.config["source_files"].keys().isdisjoint(full.manifest.config["source_files"])
    either, _ = run(tmp_path / "in", tmp_path / "c")
    assert either.manifest.config["source_files"] == snapshot.manifest.config["source_files"]


def test_preferred_by_language_reference_set(tmp_path: Path) -> None:
    source = write_rf2(tmp_path / "in", CONTENT)
    us, _ = run(source, tmp_path / "out")
    assert names_of(us, "101001") == [
        ("PT", "Heart attack"),
        ("FSN", "Heart attack (disease)"),
        ("PT", "Myocardial infarction"),
        ("SY", "MI"),
    ]
    assert us.names().filter(pl.col("language") == "ja").collect()["text"].to_list() == ["メニエール病"]
    gb, _ = run(source, tmp_path / "out", language_refset="en-GB")
    assert {row["preferred_name"] for row in concepts_of(gb).values()} == {"Myocardial infarction"}
    both, _ = run(source, tmp_path / "out", language_refset=f"{GB},en-us")
    assert concepts_of(both)["101001"]["preferred_name"] == "Myocardial infarction"
    assert [text for _, text in names_of(both, "101001")] == ["Myocardial infarction", "Heart attack"]
    with pytest.raises(InputError, match=r"nothing of 'fr'.*en-US"):
        run(source, tmp_path / "out", language_refset="fr")
    with pytest.raises(InputError, match="nothing of '42'"):
        run(source, tmp_path / "out", language_refset="42")
    for file in source.rglob("*Language*"):
        file.unlink()
    with pytest.raises(InputError, match="nothing of 'en-US'; expected no language_refset, as the release has none"):
        run(source, tmp_path / "out", language_refset="en-US")


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], "gb name"),
        ([("999001261000000100", "1114015")], "uk name"),  # the United Kingdom's own reference set
        ([(US, "1115012")], "us name"),
        ([(US, "1115012"), ("999001261000000100", "1114015")], "gb name"),
    ],
)
def test_main_language_reference_set(others: list[tuple[str, str]], expected: str, tmp_path: Path) -> None:
    contents = {
        "sct2_Concept": [concept("101001")],
        "sct2_Description": [
            description("1112016", "101001", "other name"),
            description("1113014", "101001", "gb name"),
            description("1114015", "101001", "uk name"),
            description("1115012", "101001", "us name"),
        ],
        "der2_cRefset_Language": [
            member(str(number), refset, component, PREFERRED)
            for number, (refset, component) in enumerate([("31000146106", "1112016"), *others])
        ],
    }
    if expected == "gb name":
        contents["der2_cRefset_Language"].append(member("x", GB, "1113014", PREFERRED))
    found, _ = run(write_rf2(tmp_path / "in", contents), tmp_path / "out")
    assert concepts_of(found)["101001"]["preferred_name"] == expected


def test_reference_set_that_has_no_name_is_the_largest(tmp_path: Path) -> None:
    contents = {
        "sct2_Concept": [concept("101001")],
        "sct2_Description": [description("1112016", "101001", "one"), description("1113014", "101001", "two")],
        "der2_cRefset_Language": [
            member("a", "12345678901", "1112016", PREFERRED),
            member("b", "77777777101", "1112016", ACCEPTABLE),
            member("c", "77777777101", "1113014", PREFERRED),
        ],
    }
    found, _ = run(write_rf2(tmp_path / "in", contents), tmp_path / "out")
    assert concepts_of(found)["101001"]["preferred_name"] == "two"


def test_languages(tmp_path: Path) -> None:
    contents = {
        "sct2_Concept": [concept("101001"), concept("201005")],
        "sct2_Description": [
            description("1110012", "101001", "ataque (al corazón) (trastorno)", FSN, "ES"),
            description("1111011", "101001", "heart (attack) (disorder)", FSN),
            description("2111011", "201005", "heart (organ)", FSN),
        ],
    }
    source = write_rf2(tmp_path / "in", contents)
    both, _ = run(source, tmp_path / "out")
    assert concepts_of(both)["101001"]["semantic_types"] == ["disorder"]  # of the English name
    spanish, report = run(source, tmp_path / "out", languages="es")
    assert list(concepts_of(spanish)) == ["101001"]
    assert spanish.names().select("language", "text").collect().rows() == [("es", "ataque (al corazón) (trastorno)")]
    assert concepts_of(spanish)["101001"]["semantic_types"] == ["disorder"]
    assert report.n_rejected == 0
    with pytest.raises(InputError, match="nothing of 'fr'"):
        run(source, tmp_path / "out", languages="fr")


def test_inactive_descriptions_are_suppressed_names(tmp_path: Path) -> None:
    source = write_rf2(tmp_path / "in", CONTENT)
    found, _ = run(source, tmp_path / "out", inactive_descriptions="yes")
    suppressed = found.names().filter("is_suppressed").collect()
    assert suppressed["text"].to_list() == ["Cardiac arrest"]
    assert not suppressed["is_preferred"].any()
    gone = {
        "sct2_Concept": [concept("101001", "0")],
        "sct2_Description": [description("1111011", "101001", "old", state=("20200131", "0"))],
    }
    bare, _ = run(write_rf2(tmp_path / "gone", gone), tmp_path / "out", inactive_descriptions="yes")
    assert concepts_of(bare)["101001"]["preferred_name"] == "old"


def test_semantic_types_filter(tmp_path: Path) -> None:
    contents = {
        "sct2_Concept": [ROOT, concept("101001"), concept("201005", "0")],
        "sct2_Description": [
            ROOT_NAME,
            description("1111011", "101001", "Heart (body structure)", FSN),
            description("2111011", "201005", "Ague (disorder)", FSN),
            description("2112016", "201005", "Ague"),
        ],
        "sct2_Relationship": [relationship("6110020", "101001", IS_A, "138875005")],
        "der2_cRefset_Association": [member("c", SAME_AS, "201005", "101001")],
    }
    source = write_rf2(tmp_path / "in", contents)
    found, report = run(source, tmp_path / "out", semantic_types="disorder")
    assert list(concepts_of(found)) == ["201005"]
    assert concepts_of(found)["201005"]["replaced_by"] == "101001"
    assert report.notes["relations of concepts that a filter left out"] == 1
    with pytest.raises(InputError, match="Did you mean 'disorder'"):
        run(source, tmp_path / "out", semantic_types="disorders")


A, B, C = "301009", "401004", "501002"
POSSIBLY, WAS_A, MOVED_TO, MOVED_FROM, REFERS_TO = (
    "900000000000523009",
    "900000000000528000",
    "900000000000524003",
    "900000000000525002",
    "900000000000531004",
)
ALTERNATIVE = "900000000000530003"


@pytest.mark.parametrize(
    ("links", "replaced_by", "relations"),
    [
        ([(SAME_AS, A, B)], B, set()),
        ([(REPLACED_BY, A, B)], B, set()),
        ([(SAME_AS, A, B), (REPLACED_BY, A, C)], B, {(A, "replaced_by", C)}),
        ([(SAME_AS, A, B), (SAME_AS, A, C)], None, {(A, "same_as", B), (A, "same_as", C)}),
        ([(SAME_AS, A, B), (SAME_AS, A, C), (REPLACED_BY, A, C)], C, {(A, "same_as", B), (A, "same_as", C)}),
        ([(SAME_AS, A, B), (SAME_AS, A, B)], B, set()),
        ([(POSSIBLY, A, B)], None, {(A, "possibly_equivalent_to", B)}),
        ([(ALTERNATIVE, A, B), (WAS_A, A, C)], None, {(A, "alternative", B), (A, "was_a", C)}),
        ([(WAS_A, A, B), (REPLACED_BY, A, C)], C, {(A, "was_a", B)}),
        ([(MOVED_FROM, B, A)], B, set()),
        ([(MOVED_FROM, B, A), (REPLACED_BY, A, C)], C, set()),
        ([(MOVED_TO, A, C)], None, set()),
        ([(SAME_AS, A, "1999999003")], "1999999003", set()),  # of another edition
        ([(SAME_AS, A, A)], None, {(A, "same_as", A)}),
        ([(SAME_AS, B, C)], None, {(B, "same_as", C)}),  # B is active
        (
            [("1186924009", A, B), ("1186921001", A, B)],
            None,
            {(A, "partially_equivalent_to", B), (A, "possibly_replaced_by", B)},
        ),
    ],
)
def test_successors(
    links: list[tuple[str, str, str]], replaced_by: str | None, relations: set[tuple[str, str, str]], tmp_path: Path
) -> None:
    contents = named(A, B, C, inactive=A)
    contents["der2_cRefset_Association"] = [member(str(number), *link) for number, link in enumerate(links)]
    found, _ = run(write_rf2(tmp_path / "in", contents), tmp_path / "out")
    assert concepts_of(found)[A]["replaced_by"] == replaced_by
    assert concepts_of(found)[B]["replaced_by"] is None
    assert sentences(found) == relations
    choices = {tail for head, relation, tail in relations if head == A and relation != "was_a"} - {A}
    told = {A: tuple(sorted(choices))} if choices and replaced_by is None else {}
    assert {code: tuple(sorted(others)) for code, others in found.to_consider().items()} == told


@pytest.mark.parametrize("link", [SAME_AS, REPLACED_BY, POSSIBLY])
def test_a_whole_edition_has_what_replaces_its_concepts(link: str, tmp_path: Path) -> None:
    contents = named(A, B, inactive=A)
    contents["sct2_Concept"].append(ROOT)
    contents["sct2_Description"].append(ROOT_NAME)
    contents["der2_cRefset_Association"] = [
        member("a", link, A, "1999999003"),
        member("b", MOVED_FROM, B, "1999999003"),  # came from an extension
    ]
    source = write_rf2(tmp_path / "in", contents)
    with pytest.raises(InputError, match=r"a concept that the release does not have.*1999999003"):
        run(source, tmp_path / "out")
    found, report = run(source, tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1
    assert concepts_of(found)[A]["replaced_by"] is None


def test_associations_that_are_not_read_are_counted(tmp_path: Path) -> None:
    contents = named(A, B, inactive=A)
    contents["der2_cRefset_Association"] = [
        member("a", REFERS_TO, "1111011", B),
        member("b", SAME_AS, "1111011", "1112016"),
        member("c", MOVED_TO, A, B),
        member("d", "1322291000000109", A, B),
        member("e", SAME_AS, A, B, state=("20200131", "0")),
    ]
    found, report = run(write_rf2(tmp_path / "in", contents), tmp_path / "out")
    assert report.notes["associations that are not read (MOVED TO, REFERS TO, national ones)"] == 4
    assert concepts_of(found)[A]["replaced_by"] is None


def test_successors_in_a_circle(tmp_path: Path) -> None:
    contents = named(A, B, inactive=f"{A} {B}")
    contents["der2_cRefset_Association"] = [member("a", SAME_AS, A, B), member("b", SAME_AS, B, A)]
    source = write_rf2(tmp_path / "in", contents)
    with pytest.raises(InputError, match="circle"):
        run(source, tmp_path / "out")
    found, report = run(source, tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1
    assert concepts_of(found)[A]["replaced_by"] is None


def test_relations(tmp_path: Path) -> None:
    contents = named(A, B)
    contents["sct2_Concept"].append(concept("363698007"))
    contents["sct2_Description"] += [
        description("9911011", "363698007", "Finding site (attribute)", FSN),
        description("9912016", "363698007", "sitio del hallazgo (atributo)", FSN, "es"),
    ]
    contents["sct2_Relationship"] = [
        relationship("6110020", A, "363698007", B),
        relationship("6111021", A, "363698007", B),
        relationship("6112029", A, "246075003", B),
        relationship("6113023", B, IS_A, A, state=("20200131", "0")),
        relationship("6114028", B, IS_A, A, characteristic="900000000000010007"),
        relationship("6115027", A, IS_A, "999999003"),
    ]
    found, report = run(write_rf2(tmp_path / "in", contents), tmp_path / "out")
    assert sentences(found) == {(A, "finding_site", B), (A, "246075003", B)}
    assert found.n_relations == 2
    assert report.notes["relationships that are not inferred, left out"] == 1
    assert report.notes["relation types without a name, called by their id"] == 1
    assert report.notes["relationships of concepts outside the extension, left out"] == 1
    without, _ = run(tmp_path / "in", tmp_path / "out", relations="no")
    assert without.n_relations == 0


def test_maps(tmp_path: Path) -> None:
    contents = named(A, B)
    icd, ours = "447562003", "9876543210101"

    def extended(id: str, refset: str, component: str, target: str, correlation: str) -> Row:
        return member(id, refset, component, "1", "1", "TRUE", "ALWAYS", target, correlation, "447637006")

    contents["der2_iisssccRefset_ExtendedMap"] = [
        extended("a", icd, A, "I21.9", "447561005"),
        extended("b", icd, A, "I21.9", "447561005"),
        extended("c", icd, B, "", "447561005"),
        extended("d", icd, B, "#NC", "447561005"),
        extended("e", icd, B, "I51.9", "447556008"),
        extended("f", ours, B, "Q1", "447557004"),
        extended("g", ours, B, "Q2", "447558009"),
        extended("h", ours, B, "Q3", "1193547009"),
        extended("i", ours, B, "Q4", "447560006"),
    ]
    contents["der2_sRefset_SimpleMap"] = [
        member("j", "900000000000497000", A, "X200E"),
        member("k", "900000000000497000", B, "XE0Uh", state=("20200131", "0")),
    ]
    found, report = run(write_rf2(tmp_path / "in", contents), tmp_path / "out")
    ids = found.concepts().collect()["concept_id"]
    rows = found.cross_references().select("concept_row", "code", "relation").collect().iter_rows()
    assert {(ids[row], code, relation) for row, code, relation in rows} == {
        (A, "ICD10:I21.9", "xref"),
        (A, "CTV3:X200E", "xref"),
        (B, f"{ours}:Q1", "exactMatch"),
        (B, f"{ours}:Q2", "broadMatch"),
        (B, f"{ours}:Q3", "narrowMatch"),
        (B, f"{ours}:Q4", "relatedMatch"),
    }
    assert report.n_cross_references == 6
    assert report.notes["rows of maps without a code"] == 3
    _, report = run(tmp_path / "in", tmp_path / "out", maps="no")
    assert report.n_cross_references == 0


def test_whole_edition_refers_to_nothing_outside(tmp_path: Path) -> None:
    contents = named(A)
    contents["sct2_Concept"].append(ROOT)
    contents["sct2_Description"] += [ROOT_NAME, description("9911011", "999999003", "of nobody")]
    contents["sct2_Relationship"] = [relationship("6110020", A, IS_A, "999999003")]
    source = write_rf2(tmp_path / "in", contents)
    with pytest.raises(InputError, match="a concept that the release does not have") as caught:
        run(source, tmp_path / "out")
    assert caught.value.path == source / "Snapshot/Terminology/sct2_Description_Snapshot-en_INT_20240101.txt"
    assert caught.value.line == 4
    _, report = run(source, tmp_path / "out", on_error="skip")
    rejects = pl.read_parquet(tmp_path / "out" / "rejects.parquet")
    assert rejects.select("file", "line", "text").rows() == [
        ("sct2_Description_Snapshot-en_INT_20240101.txt", 4, "999999003"),
        ("sct2_Relationship_Snapshot_INT_20240101.txt", 2, f"{A} 999999003"),
    ]
    assert report.n_relations == 0


def test_several_editions_in_one_folder(tmp_path: Path) -> None:
    international = named(A, B)
    extension = named(A, C)
    extension["sct2_Concept"][0] = (A, "20210131", "0", "x")  # the later state counts
    extension["sct2_Description"][1] = description("7110012", C, "name of C (disorder)", FSN)
    extension["sct2_Relationship"] = [relationship("6110020", C, IS_A, B)]
    write_rf2(tmp_path / "in" / "a", international)
    write_rf2(tmp_path / "in" / "b", extension, edition="XX1000999")
    found, report = run(tmp_path / "in", tmp_path / "out")
    assert {id: row["status"] for id, row in concepts_of(found).items()} == {A: "obsolete", B: "active", C: "active"}
    assert sentences(found) == {(C, "is_a", B)}
    assert report.notes["rows that stand in several files or twice, kept once"] == 1


@pytest.mark.parametrize("other", ["Full", "Delta"])
def test_an_edition_of_another_kind_is_not_lost_in_silence(other: str, tmp_path: Path) -> None:
    write_rf2(tmp_path / "in" / "a", named(A, B))
    for kind in ("Full", "Delta"):  # of the same edition: nothing is missed
        write_rf2(tmp_path / "in" / "a", named(A, B), kind)
    run(tmp_path / "in", tmp_path / "alone")
    write_rf2(tmp_path / "in" / "b", named(A, B, C), other, edition="XX1000999")
    with pytest.raises(InputError, match=rf"sct2_Concept_{other}_XX1000999_20240101.*is not here as a Snapshot"):
        run(tmp_path / "in", tmp_path / "out")
    found, report = run(tmp_path / "in", tmp_path / "out", release="snapshot")
    assert sorted(concepts_of(found)) == [A, B]
    file = f"sct2_Concept_{other}_XX1000999_20240101.txt"
    assert report.notes[f"editions that are not here as a Snapshot, left out: {file}"] == 1
    write_rf2(tmp_path / "in" / "b", named(A, B, C), edition="XX1000999")
    found, _ = run(tmp_path / "in", tmp_path / "both")
    assert sorted(concepts_of(found)) == [A, B, C]


def test_two_states_from_one_day(tmp_path: Path) -> None:
    contents = named(A)
    contents["sct2_Description"].append(description("911011", A, "something else"))
    source = write_rf2(tmp_path / "in", contents, "Full")
    with pytest.raises(InputError, match="two states from one day") as caught:
        run(source, tmp_path / "out")
    assert caught.value.line == 3
    found, report = run(source, tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1
    assert found.names().collect()["text"].to_list() == [f"name of {A} (disorder)"]


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("id", "12x", "6 to 18 digits"),
        ("id", "1234567890123456789", "6 to 18 digits"),
        ("id", "-123456", "6 to 18 digits"),
        ("id", "0123456", "6 to 18 digits"),
        ("effectiveTime", "2020-01-31", "YYYYMMDD"),
        ("active", "yes", "0 or 1"),
        ("conceptId", "", "6 to 18 digits"),
        ("languageCode", "english!", "a language"),
        ("typeId", "FSN", "6 to 18 digits"),
        ("term", " ", "a term"),
    ],
)
def test_bad_fields(column: str, value: str, problem: str, tmp_path: Path) -> None:
    source = write_rf2(tmp_path / "in", CONTENT)
    file = source / "Snapshot/Terminology/sct2_Description_Snapshot-en_INT_20240101.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    fields = lines[2].split("\t")
    fields[lines[0].split("\t").index(column)] = value
    lines[2] = "\t".join(fields)
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=problem) as caught:
        run(source, tmp_path / "out")
    assert (caught.value.path, caught.value.line, caught.value.field) == (file, 3, column)
    _, report = run(source, tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1


def test_header_is_checked(tmp_path: Path) -> None:
    source = write_rf2(tmp_path / "in", CONTENT)
    file = source / "Snapshot/Terminology/sct2_Concept_Snapshot_INT_20240101.txt"
    good = file.read_text(encoding="utf-8")
    for header, problem in (
        ("id\teffectiveTime\tmoduleId\tdefinitionStatusId\tx", "no column 'active'"),
        ("id\teffectiveTime\tactive\tactive\tdefinitionStatusId", "more than one column 'active'"),
        ("id,effectiveTime,active,moduleId,definitionStatusId", "no column 'id'"),
    ):
        file.write_text("\n".join([header, *good.splitlines()[1:]]), encoding="utf-8")
        with pytest.raises(InputError, match=problem) as caught:
            run(source, tmp_path / "out", on_error="skip")
        assert (caught.value.path, caught.value.line) == (file, 1)
    lines = [line.split("\t") for line in good.splitlines()]  # another order and a column more are fine
    file.write_text("\n".join("\t".join([*reversed(line), "x"]) for line in lines), encoding="utf-8")
    found, _ = run(source, tmp_path / "out")
    assert list(concepts_of(found)) == ["101001", "201005", "301009", "401004"]


def test_what_is_no_release(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there is no sct2_Concept_Snapshot or sct2_Concept_Full"):
        run(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(InputError, match="there is nothing here"):
        run(tmp_path / "nowhere", tmp_path / "out")
    delta = write_rf2(tmp_path / "delta", CONTENT, "Delta")
    for source in (delta, zip_folder(delta, tmp_path / "delta.zip")):
        with pytest.raises(InputError, match="this is a Delta"):
            run(source, tmp_path / "out")
    snapshot = write_rf2(tmp_path / "snapshot", CONTENT)
    with pytest.raises(InputError, match="a Snapshot release"):
        run(snapshot, tmp_path / "out", release="full")
    with pytest.raises(InputError, match="only a Full release"):
        run(snapshot, tmp_path / "out", date="20200131")
    bare = write_rf2(tmp_path / "bare", {"sct2_Concept": CONTENT["sct2_Concept"]})
    with pytest.raises(InputError, match="there is no sct2_Description_Snapshot"):
        run(bare, tmp_path / "out")


def test_files_that_may_be_missing(tmp_path: Path) -> None:
    found, report = run(write_rf2(tmp_path / "in", named(A)), tmp_path / "out")
    assert {note for note in report.notes if "does not have" in note} == {
        f"files that the release does not have: {name}" for name in ("Relationship", "Language", "Association")
    }
    assert concepts_of(found)[A]["preferred_name"] == f"name of {A} (disorder)"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("sct2_Concept_Snapshot_INT_20240101.txt", ("Snapshot", "Concept")),
        ("xsct2_Concept_Full_INT_20240101.txt.gz", ("Full", "Concept")),
        ("sct2_Description_MONOSnapshot-en_GB_20230412.txt", ("Snapshot", "Description")),
        ("sct2_Description_Full-en-GB_GB1000000_20180401.txt", ("Full", "Description")),
        ("sct2_TextDefinition_Delta-en_INT_20240101.txt", ("Delta", "TextDefinition")),
        ("sct2_Relationship_UKCLSnapshot_GB1000000_20230412.txt", ("Snapshot", "Relationship")),
        ("sct2_RelationshipConcreteValues_Snapshot_INT_20240101.txt", None),
        ("sct2_StatedRelationship_Snapshot_INT_20240101.txt", None),
        ("sct2_sRefset_OWLExpressionSnapshot_INT_20240101.txt", None),
        ("der2_cRefset_LanguageSnapshot-en_INT_20240101.txt", ("Snapshot", "Language")),
        ("der2_cRefset_LanguageMONOSnapshot-en_GB_20230412.txt", ("Snapshot", "Language")),
        ("der2_cRefset_AssociationReferenceSnapshot_INT_20140131.txt", ("Snapshot", "Association")),
        ("der2_cRefset_AttributeValueSnapshot_INT_20240101.txt", None),
        ("der2_sRefset_SimpleMapSnapshot_INT_20240101.txt", ("Snapshot", "Map")),
        ("der2_sRefset_SimpleMapToSCTSnapshot_INT_20240101.txt", None),
        ("der2_iisssciRefset_ExtendedMapUKCLSnapshot_GB1000000_20230215.txt", ("Snapshot", "Map")),
        ("der2_iissscRefset_ComplexMapFull_INT_20140131.txt", ("Full", "Map")),
        ("der2_Refset_SimpleSnapshot_INT_20240101.txt", None),
        ("._sct2_Concept_Snapshot_INT_20240101.txt", None),
        ("readme.txt", None),
    ],
)
def test_names_of_files(name: str, content: tuple[str, str] | None) -> None:
    assert rf2._content(name) == content


def test_the_edition_is_told_by_the_name_whatever_its_ending() -> None:
    assert rf2._edition("sct2_Concept_Full_INT_20230101.txt.gz") == rf2._edition(
        "xsct2_Concept_Snapshot_INT_20240101.txt"
    )
    assert rf2._edition("sct2_Concept_Full.txt.gz") == rf2._edition("sct2_Concept_Snapshot.txt")
    assert rf2._edition("sct2_Concept_UKCLFull_GB1000000.txt") != rf2._edition("sct2_Concept_UKDGFull_GB1000000.txt")
