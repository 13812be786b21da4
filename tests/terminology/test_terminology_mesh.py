"""MeSH in XML: records and concepts, kinds of synonyms, trees, what records refer to."""

from __future__ import annotations

import gzip
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import imported
from sample_xml import element, mesh_concept, mesh_file, mesh_record, mesh_term, text

from onoma.errors import ConfigError, InputError
from onoma.files.reading import Reading
from onoma.terminology import ImportReport, Terminology, import_terminology
from onoma.terminology.assembly import SourceTables
from onoma.terminology.formats import get_format
from onoma.terminology.readers.mesh_records import CATEGORIES, registry_code
from onoma.terminology.readers.options import parse_options


def relation(name: str | None, first: str, second: str) -> str:
    attributes = {} if name is None else {"RelationName": name}
    return element(
        "ConceptRelationList",
        element("ConceptRelation", text("Concept1UI", first), text("Concept2UI", second), **attributes),
    )


def referred(around: str, ui: str, outer: str | None = None) -> str:
    inner = element(around, element("DescriptorReferredTo", text("DescriptorUI", ui), text("String", "a name")))
    return element(outer or f"{around}List", inner)


CALCIMYCIN = mesh_record(
    "D000001",
    "Calcimycin",
    mesh_concept(
        "M0000001",
        ["Calcimycin"],
        text("RegistryNumber", "37H9VM9WZL"),
        element("RelatedRegistryNumberList", text("RelatedRegistryNumber", "52665-69-7 (Calcimycin)")),
        relation("NRW", "M0000001", "M0353609"),
        note="An ionophore.",
    ),
    mesh_concept(
        "M0353609",
        ["A-23187", "Antibiotic A23187"],
        element("RegistryNumberList", text("RegistryNumber", "0"), text("RegistryNumber", "1-23-4")),
        relation("NRW", "M0000001", "M0353609"),
        preferred=False,
        note="A narrower thing.",
    ),
    mesh_concept("M3", ["Ionophore"], relation("BRD", "M0000001", "M3"), preferred=False),
    mesh_concept("M4", ["Ionomycin"], relation("REL", "M4", "M0000001"), preferred=False),
    trees=["D03.633.100.221.173"],
    more=referred("PharmacologicalAction", "D000900"),
)
PARENT = mesh_record("D9", "Benzoxazoles", mesh_concept("M9", ["Benzoxazoles", "BZ"]), trees=["D03.633.100.221"])
ACTION = mesh_record("D000900", "Anti-Bacterial Agents", mesh_concept("M90", ["Anti-Bacterial Agents"]))
SUPPLEMENTARY = mesh_record(
    "C025735",
    "Aeron",
    mesh_concept("M0040005", ["Aeron"]),
    kind="Supplemental",
    more=text("Note", "contains\n   scopolamine") + referred("HeadingMappedTo", "*D000001"),
)
QUALIFIER = mesh_record("Q000628", "therapy", mesh_concept("M5", ["therapy", "TH"]), kind="Qualifier", trees=["Y11"])


def run(source: Path, out: Path, **options: str) -> tuple[Terminology, ImportReport]:
    return imported("mesh", source, out / "out", **options)


def names_of(terminology: Terminology) -> dict[str, list[tuple[str, str]]]:
    concepts = terminology.concepts().collect()["concept_id"]
    found: dict[str, list[tuple[str, str]]] = {}
    for row, name, term_type in terminology.names().select("concept_row", "text", "term_type").collect().iter_rows():
        found.setdefault(concepts[row], []).append((name, term_type))
    return found


def relations_of(terminology: Terminology) -> list[tuple[str, str, str]]:
    concepts = terminology.concepts().collect()["concept_id"]
    rows = terminology.relations().select("head_row", "relation", "tail_row").collect().iter_rows()
    return [(concepts[head], name, concepts[tail]) for head, name, tail in rows]


def references_of(terminology: Terminology) -> dict[str, list[tuple[str, str]]]:
    concepts = terminology.concepts().collect()["concept_id"]
    found: dict[str, list[tuple[str, str]]] = {}
    for row, code, name in (
        terminology.cross_references().select("concept_row", "code", "relation").collect().iter_rows()
    ):
        found.setdefault(concepts[row], []).append((name, code))
    return found


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "mesh"
    folder.mkdir()
    (folder / "desc2025.xml").write_text(mesh_file(CALCIMYCIN, PARENT, ACTION))
    (folder / "qual2025.xml").write_text(mesh_file(QUALIFIER, kind="Qualifier"))
    (folder / "supp2025.gz").write_bytes(gzip.compress(mesh_file(SUPPLEMENTARY, kind="Supplemental").encode()))
    (folder / "desc2025.dtd").write_text("<!ELEMENT DescriptorRecordSet (DescriptorRecord*)>")
    return folder


def test_a_release_in_records(release: Path, tmp_path: Path) -> None:
    terminology, report = run(release, tmp_path)
    assert names_of(terminology) == {
        "D000001": [
            ("Calcimycin", "label"),
            ("A-23187", "narrow_synonym"),
            ("Antibiotic A23187", "narrow_synonym"),
            ("Ionophore", "broad_synonym"),
            ("Ionomycin", "related_synonym"),
        ],
        "D9": [("Benzoxazoles", "label"), ("BZ", "exact_synonym")],
        "D000900": [("Anti-Bacterial Agents", "label")],
        "Q000628": [("therapy", "label"), ("TH", "exact_synonym")],
        "C025735": [("Aeron", "label")],
    }
    assert relations_of(terminology) == [
        ("D000001", "is_a", "D9"),
        ("D000001", "has_pharmacologic_action", "D000900"),
        ("C025735", "mapped_to", "D000001"),
    ]
    assert references_of(terminology)["D000001"] == [
        ("xref", "UNII:37H9VM9WZL"),
        ("relatedMatch", "CAS:52665-69-7"),
        ("narrowMatch", "1-23-4"),
    ]
    assert terminology.definitions().collect()["text"].to_list() == ["An ionophore.", "contains scopolamine"]
    concepts = terminology.concepts().collect()
    types = dict(zip(concepts["concept_id"], concepts["semantic_types"].to_list(), strict=True))
    chemical = ["Chemicals and Drugs"]
    assert types == {
        "D000001": chemical,
        "D9": chemical,
        "D000900": [],
        "Q000628": ["Qualifiers"],
        "C025735": chemical,
    }
    names = terminology.names().collect()
    assert names["source"].unique().to_list() == ["MESH"]
    assert names["language"].unique().to_list() == ["en"]
    # D03.633.100.221 hangs below a record that the file does not have; desc2025.dtd is no file of ours
    assert report.notes == {"tree numbers below one that was not read": 1}
    assert set(terminology.manifest.config["source_files"]) == {"desc2025.xml", "qual2025.xml", "supp2025.gz"}


def test_the_same_from_an_archive(release: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "mesh.zip", "w") as archive:
        for path in sorted(release.iterdir()):
            archive.write(path, f"2025/{path.name}")
    unpacked, _ = run(release, tmp_path / "a")
    packed, _ = run(tmp_path / "mesh.zip", tmp_path / "b")
    for table in ("concepts", "names", "relations", "definitions", "cross_references"):
        assert getattr(packed, table)().collect().equals(getattr(unpacked, table)().collect())


def test_concepts_instead_of_records(release: Path, tmp_path: Path) -> None:
    terminology, _ = run(release, tmp_path, concepts="concepts")
    assert names_of(terminology) == {
        "M0000001": [("Calcimycin", "label")],
        "M0353609": [("A-23187", "label"), ("Antibiotic A23187", "exact_synonym")],
        "M3": [("Ionophore", "label")],
        "M4": [("Ionomycin", "label")],
        "M9": [("Benzoxazoles", "label"), ("BZ", "exact_synonym")],
        "M90": [("Anti-Bacterial Agents", "label")],
        "M5": [("therapy", "label"), ("TH", "exact_synonym")],
        "M0040005": [("Aeron", "label")],
    }
    assert sorted(relations_of(terminology)) == [
        ("M0000001", "has_pharmacologic_action", "M90"),
        ("M0000001", "is_a", "M3"),
        ("M0000001", "is_a", "M9"),
        ("M0040005", "mapped_to", "M0000001"),
        ("M0353609", "is_a", "M0000001"),
        ("M4", "related_to", "M0000001"),
    ]
    references = references_of(terminology)
    assert references["M0000001"][0] == ("exactMatch", "MESH:D000001")
    assert references["M0353609"] == [("broadMatch", "MESH:D000001"), ("xref", "1-23-4")]
    assert references["M3"] == [("narrowMatch", "MESH:D000001")]
    assert references["M4"] == [("relatedMatch", "MESH:D000001")]
    definitions = terminology.definitions().collect()["text"].to_list()
    assert definitions == ["An ionophore.", "A narrower thing.", "contains scopolamine"]


def test_scopes_of_terms(release: Path, tmp_path: Path) -> None:
    terminology, _ = run(release, tmp_path, scopes="exact,broad")
    assert names_of(terminology)["D000001"] == [("Calcimycin", "label"), ("Ionophore", "broad_synonym")]
    with pytest.raises(ConfigError, match="scopes"):
        run(release, tmp_path, scopes="exact,narrower")


def test_permuted_terms(tmp_path: Path) -> None:
    concept = mesh_concept("M1", ["Heart Attack", "Myocardial Infarction"])
    permuted = mesh_term("Infarction, Myocardial", IsPermutedTermYN="Y")
    record = mesh_record("D1", "Heart Attack", concept.replace("</TermList>", permuted + "</TermList>"))
    (tmp_path / "x.xml").write_text(mesh_file(record))
    terminology, report = run(tmp_path / "x.xml", tmp_path)
    assert report.notes == {"permuted terms, left out": 1}
    kept = [("Heart Attack", "label"), ("Myocardial Infarction", "exact_synonym")]
    assert names_of(terminology) == {"D1": kept}
    terminology, _ = run(tmp_path / "x.xml", tmp_path, permuted="yes")
    assert names_of(terminology) == {"D1": [*kept, ("Infarction, Myocardial", "permuted_synonym")]}


def test_concepts_whose_relation_nobody_tells(tmp_path: Path) -> None:
    record = mesh_record(
        "D1",
        "a",
        mesh_concept("M2", ["b"], relation(None, "M1", "M2"), preferred=False),
        mesh_concept("M3", ["c"], relation("XYZ", "M1", "M3"), preferred=False),
        mesh_concept("M4", ["d"], relation("NRW", "M4", "M1"), preferred=False),  # said from the other end
        mesh_concept("M1", ["a"]),
    )
    (tmp_path / "x.xml").write_text(mesh_file(record))
    terminology, report = run(tmp_path / "x.xml", tmp_path)
    assert names_of(terminology)["D1"] == [
        ("a", "label"),
        ("b", "related_synonym"),
        ("c", "related_synonym"),
        ("d", "broad_synonym"),
    ]
    assert report.notes == {"concepts without a relation to the preferred one, taken as related": 2}


def test_what_older_years_have(tmp_path: Path) -> None:
    action = referred("PharmacologicalAction", "D2")
    concept = mesh_concept("M1", ["a"], text("ConceptUMLSUI", "C0000699"), action, types="Antibiotic")
    (tmp_path / "x.xml").write_text(
        mesh_file(mesh_record("D1", "a", concept, trees=["D01"]), mesh_record("D2", "b", mesh_concept("M2", ["b"])))
    )
    terminology, _ = run(tmp_path / "x.xml", tmp_path)
    assert references_of(terminology) == {"D1": [("exactMatch", "UMLS:C0000699")]}
    assert relations_of(terminology) == [("D1", "has_pharmacologic_action", "D2")]
    assert terminology.concepts().collect()["semantic_types"].to_list() == [["Antibiotic"], []]


def test_trees_as_a_filter(tmp_path: Path) -> None:
    descriptors = [
        mesh_record("D1", "heart", mesh_concept("M1", ["heart"]), trees=["A07.541"]),
        mesh_record("D2", "disease", mesh_concept("M2", ["disease"]), trees=["C14.280"]),
        mesh_record("D3", "mood", mesh_concept("M3", ["mood"]), trees=["F03.6", "Z01"]),
        mesh_record("D4", "mind", mesh_concept("M4", ["mind"]), trees=["F030.1"]),
    ]
    supplements = [
        mesh_record(f"C{n}", f"c{n}", mesh_concept(f"M1{n}", [f"c{n}"]), kind="Supplemental", more=more)
        for n, more in enumerate((referred("HeadingMappedTo", "D1"), referred("HeadingMappedTo", "*D2")))
    ]
    (tmp_path / "desc.xml").write_text(mesh_file(*descriptors))
    (tmp_path / "a-supp.xml").write_text(mesh_file(*supplements, kind="Supplemental"))
    terminology, report = run(tmp_path, tmp_path / "C", trees="C,F03")
    assert list(names_of(terminology)) == ["D2", "D3", "C1"]
    assert report.notes["records that are not below the trees asked for, left out"] == 3
    with pytest.raises(InputError, match=r"field trees.*known from the descriptors"):
        run(tmp_path / "a-supp.xml", tmp_path / "C", trees="C")
    for trees in ("C15", "C14,C15"):
        with pytest.raises(InputError, match=r"nothing of 'C15'.*Did you mean 'C14'"):
            run(tmp_path / "desc.xml", tmp_path / "C", trees=trees)


def test_supplementary_records_by_themselves(release: Path, tmp_path: Path) -> None:
    terminology, report = run(release / "supp2025.gz", tmp_path)
    assert list(names_of(terminology)) == ["C025735"]
    assert report.notes == {"relations to or from terms that are not among the concepts, left out": 1}


def test_sources_that_cannot_be(release: Path, tmp_path: Path) -> None:
    (release / "desc2024.xml").write_text(mesh_file(CALCIMYCIN))
    with pytest.raises(InputError, match="two files of the same kind, <DescriptorRecordSet>") as caught:
        run(release, tmp_path)
    assert caught.value.path == release / "desc2025.xml"
    (tmp_path / "d2025.bin").write_text("*NEWRECORD\nRECTYPE = D\n")
    with pytest.raises(InputError, match=r"old text format; expected XML.*get the \.xml"):
        run(tmp_path / "d2025.bin", tmp_path)


BAD = {
    "id twice": (mesh_record("D1", "a", mesh_concept("M1", ["a"])), "id that occurred before"),
    "no id": (mesh_record("", "b", mesh_concept("M2", ["b"])), "a blank or unprintable id"),
    "no name": (mesh_record("D2", "", mesh_concept("M2", ["b"])), "a record without a name"),
    "blank term": (mesh_record("D2", "b", mesh_concept("M2", ["b", "\n  "])), "a blank name"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_records(case: str, tmp_path: Path) -> None:
    bad, problem = BAD[case]
    good = [mesh_record(f"D{n}", name, mesh_concept(f"M{n}", [name])) for n, name in ((1, "a"), (3, "c"))]
    document = mesh_file(good[0], bad, good[1])
    (tmp_path / "x.xml").write_text(document)
    line = 4 + good[0].count("\n")
    with pytest.raises(InputError, match=problem) as caught:
        run(tmp_path / "x.xml", tmp_path)
    assert (caught.value.path, caught.value.line) == (tmp_path / "x.xml", line)
    report = import_terminology("mesh", tmp_path / "x.xml", tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1
    names = names_of(Terminology.open(tmp_path / "out"))
    assert names["D1"] == [("a", "label")]
    assert names["D3"] == [("c", "label")]


def test_language_of_a_translation(tmp_path: Path) -> None:
    heading = "Cœur[Heart [organ]]"
    terms = [mesh_term("Cœur", "fre0000001"), mesh_term("Muscle cardiaque", "fre0000002"), mesh_term("Heart", "T019")]
    concept = mesh_concept("M1", [heading]).replace(mesh_term(heading), "".join(terms))
    (tmp_path / "x.xml").write_text(mesh_file(mesh_record("D1", heading, concept), language="fre"), encoding="utf-8")
    for options in ({}, {"concepts": "concepts"}):
        terminology, _ = run(tmp_path / "x.xml", tmp_path, **options)
        names = terminology.names().collect().select("text", "language", "is_preferred").rows()
        assert names == [("Cœur", "fr", True), ("Muscle cardiaque", "fr", False), ("Heart", "en", False)]
    (tmp_path / "x.xml").write_text(mesh_file(mesh_record("D1", "A[18F]", mesh_concept("M1", ["A[18F]"]))))
    terminology, _ = run(tmp_path / "x.xml", tmp_path)
    assert terminology.names().collect()["text"].to_list() == ["A[18F]"], "in English it is part of the name"


def read_trees(folder: Path, trees: dict[str, list[str]]) -> SourceTables:
    records = (
        mesh_record(code, code, mesh_concept(f"M{code}", [code]), trees=numbers) for code, numbers in trees.items()
    )
    (folder / "x.xml").write_text(mesh_file(*records))
    chosen = get_format("mesh")
    tables: SourceTables = chosen.read(str(folder / "x.xml"), parse_options(chosen.options, {}, "mesh"), Reading())
    return tables


@given(
    st.dictionaries(
        st.from_regex(r"D[0-9]{1,3}", fullmatch=True),
        st.lists(st.from_regex(r"[AC]0[12](\.[12]){0,3}", fullmatch=True), max_size=3),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=15)
def test_hierarchy_against_an_oracle(tmp_path_factory: pytest.TempPathFactory, trees: dict[str, list[str]]) -> None:
    owners = {number: code for code, numbers in trees.items() for number in numbers}  # each number belongs to one
    trees = {code: sorted({n for n in numbers if owners[n] == code}) for code, numbers in trees.items()}
    expected = {
        (child, parent)
        for child, numbers in trees.items()
        for parent, others in trees.items()
        if child != parent and any(number[:-2] in others for number in numbers if "." in number)
    }
    tables = read_trees(tmp_path_factory.mktemp("trees"), trees)
    found = tables.relations.select("head", "tail").rows()
    assert set(found) == expected
    assert len(found) == len(expected)
    types = dict(tables.semantic_types.select("concept_id", "semantic_type").rows())
    assert set(types) == {code for code, numbers in trees.items() if numbers}
    assert set(types.values()) <= set(CATEGORIES.values())


def test_registry_numbers() -> None:
    assert registry_code("EC 3.4.21.-") == "EC:3.4.21.-"
    assert registry_code("something else") == "something else"
    assert re.fullmatch("CAS:.*", registry_code("7732-18-5"))
