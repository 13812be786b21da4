"""The tabular list of ICD-10-CM: nesting, inclusion terms, seventh characters."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from importing import imported
from sample_xml import chapter, diagnosis, element, icd_file, text

from onoma.errors import InputError
from onoma.terminology import ImportReport, Terminology, import_terminology


def sevenths(extensions: dict[str, str], *notes: str) -> str:
    return element(
        "sevenChrDef",
        *(text("extension", meaning, char=character) for character, meaning in extensions.items()),
        *(text("note", note) for note in notes),
    )


def section(code: str, title: str, *content: str) -> str:
    return element("section", text("desc", f"{title} ({code})"), *content, id=code)


def run(source: Path, out: Path, **options: str) -> tuple[Terminology, ImportReport]:
    return imported("icd10cm", source, out / "out", **options)


def read(folder: Path, *chapters: str, **options: str) -> tuple[Terminology, ImportReport]:
    (folder / "tabular.xml").write_text(icd_file(*chapters), encoding="utf-8")
    return run(folder / "tabular.xml", folder, **options)


def preferred(terminology: Terminology) -> dict[str, str]:
    return dict(terminology.concepts().select("concept_id", "preferred_name").collect().rows())


def parents(terminology: Terminology) -> dict[str, str]:
    concepts = terminology.concepts().collect()["concept_id"]
    rows = terminology.relations().collect().select("head_row", "relation", "tail_row").rows()
    assert {name for _, name, _ in rows} <= {"is_a"}
    assert len({head for head, _, _ in rows}) == len(rows)
    return {concepts[head]: concepts[tail] for head, _, tail in rows}


ENCOUNTERS = {"A": "initial encounter", "D": "subsequent encounter", "S": "sequela"}
INJURIES = chapter(
    section(
        "S70-S79",
        "Injuries to the hip and thigh",
        diagnosis(
            "S72",
            "Fracture of femur",
            [],
            element("excludes1", text("note", "traumatic amputation of hip (S78.-)")),
            element("sevenChrNote", text("note", "The appropriate 7th character is to be added")),
            sevenths(ENCOUNTERS, "a stray note"),
            diagnosis(
                "S72.0",
                "Fracture of head of femur",
                ["Fracture of hip NOS"],
                diagnosis("S72.00", "Fracture of unspecified part of neck"),
                diagnosis(
                    "S72.01",
                    "Torus fracture",
                    [],
                    sevenths(
                        {"A": "initial encounter for closed fracture", "B": "initial encounter for open fracture"}
                    ),
                    diagnosis("S72.011", "Torus fracture of right femur"),
                ),
            ),
        ),
    ),
    section("W00-W19", "Slipping", diagnosis("W00", "Fall due to ice", [], sevenths(ENCOUNTERS))),
    number="19",
    title="Injury (S00-T88)",
)


def test_seventh_characters(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, INJURIES)
    names = preferred(terminology)
    assert list(names) == [
        *("S00-T88", "S70-S79", "S72", "S72.0", "S72.00", "S72.00XA", "S72.00XD", "S72.00XS"),
        *("S72.01", "S72.011", "S72.011A", "S72.011B"),
        *("W00-W19", "W00", "W00.XXXA", "W00.XXXD", "W00.XXXS"),
    ]
    assert names["S72.00XD"] == "Fracture of unspecified part of neck, subsequent encounter"
    assert names["S72.011B"] == "Torus fracture of right femur, initial encounter for open fracture"
    above = parents(terminology)
    assert above["S72.011B"] == "S72.011"
    assert above["S72.011"] == "S72.01"
    assert above["W00.XXXA"] == "W00"
    assert above["S72"] == "S70-S79"
    assert above["S70-S79"] == "S00-T88"
    assert report.notes == {"notes among seventh characters, left out": 1}
    types = terminology.concepts().collect()["semantic_types"].to_list()
    assert types == [["Injury"]] * len(names)


def test_options(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, INJURIES, seventh_characters="no", headings="no")
    assert list(preferred(terminology)) == ["S72", "S72.0", "S72.00", "S72.01", "S72.011", "W00"]
    assert "S72" not in parents(terminology)
    assert parents(terminology)["S72.0"] == "S72"


def test_seventh_characters_that_do_not_apply(tmp_path: Path) -> None:
    note = (
        "7th characters D and S do not apply to codes in category S06 with 6th character 7 - death due to brain injury"
        " prior to regaining consciousness, or 8 - death due to other cause prior to regaining consciousness."
    )
    brain = diagnosis(
        "S06",
        "Intracranial injury",
        [],
        sevenths(ENCOUNTERS),
        element("notes", text("note", "a general remark"), text("note", note)),
        *(diagnosis(f"S06.1X{sixth}", f"edema {sixth}") for sixth in "678"),
    )
    terminology, _ = read(tmp_path, chapter(brain), headings="no")
    assert [code for code in preferred(terminology) if len(code) == 8] == [
        *("S06.1X6A", "S06.1X6D", "S06.1X6S"),
        "S06.1X7A",
        "S06.1X8A",
    ]


def test_inclusion_terms_and_notes(tmp_path: Path) -> None:
    gout = diagnosis(
        "M10",
        "Gout",
        ["Podagra", "Acute gout"],
        element("includes", text("note", "gout NOS"), text("note", "Podagra")),
        element("excludes2", text("note", "chronic gout (M1A.-)")),
        element("useAdditionalCode", text("note", "code to identify:")),
    )
    content = chapter(element("includes", text("note", "prose about the chapter")), section("M05-M14", "Joints", gout))

    def found(**options: str) -> tuple[ImportReport, list[tuple[str, str]]]:
        terminology, report = read(tmp_path, content, headings="no", **options)
        return report, terminology.names().select("text", "term_type").collect().rows()

    label = ("Gout", "label")
    terms = [("Podagra", "inclusion_term"), ("Acute gout", "inclusion_term")]
    report, names = found()
    assert names == [label, *terms, ("gout NOS", "includes_note")]
    assert report.notes == {"synonyms spelled as another name of their term, left out": 1}
    assert found(inclusions="terms")[1] == [label, *terms]
    assert found(inclusions="none")[1] == [label]


def test_a_section_of_one_category_is_that_category(tmp_path: Path) -> None:
    hiv = diagnosis("B20", "HIV disease")
    terminology, _ = read(tmp_path, chapter(section("B20", "HIV disease", hiv), title="Infections (A00-B99)"))
    assert preferred(terminology) == {"A00-B99": "Infections", "B20": "HIV disease"}
    assert parents(terminology) == {"B20": "A00-B99"}


def test_headings_without_range(tmp_path: Path) -> None:
    plain = element("section", text("desc", "A section"), diagnosis("A00", "Cholera"))
    terminology, _ = read(tmp_path, chapter(plain, diagnosis("A99", "Loose"), title="Infections", number="1"))
    assert preferred(terminology) == {"1": "Infections", "A00": "Cholera", "A99": "Loose"}
    assert parents(terminology) == {"A00": "1", "A99": "1"}


BAD = {
    "twice": (diagnosis("A00", "again"), "an id that occurred before"),
    "no code": (diagnosis("", "nameless"), "a blank or unprintable id"),
    "no description": (diagnosis("A01", "", [], diagnosis("A01.0", "below")), "a code without a description"),
    "bad extension": (
        diagnosis("A01", "typhoid", [], sevenths({"AB": "two characters"})),
        "no seventh character with a meaning",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_codes(case: str, tmp_path: Path) -> None:
    bad, problem = BAD[case]
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, chapter(diagnosis("A00", "Cholera"), bad, diagnosis("A99", "last")))
    assert caught.value.line is not None
    assert caught.value.path == tmp_path / "tabular.xml"
    report = import_terminology("icd10cm", tmp_path / "tabular.xml", tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1
    names = preferred(Terminology.open(tmp_path / "out"))
    assert names["A00"] == "Cholera"
    assert names["A99"] == "last"
    assert ("A01.0" in names) == (case == "no description")


def test_codes_too_long_for_a_seventh_character(tmp_path: Path) -> None:
    terminology, report = read(
        tmp_path,
        chapter(diagnosis("J34", "Nose", [], sevenths(ENCOUNTERS), diagnosis("J34.8211", "static"))),
        headings="no",
    )
    assert list(preferred(terminology)) == ["J34", "J34.8211"]
    assert report.notes == {"codes of seven characters below a list of seventh characters": 1}


def test_the_archive_as_it_is_published(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "2026-code-tables-tabular-and-index.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Table and Index/icd10cm_index_2026.xml", "<ICD10CM.index><title/></ICD10CM.index>")
        archive.writestr("Table and Index/icd10cm_tabular_2026.xml", icd_file(INJURIES))
        archive.writestr("Table and Index/icd10cm_tabular_2026.xsd", "<schema/>")
        archive.writestr("Table and Index/icd10cm_tabular_2026.pdf", b"%PDF")
    path = tmp_path / "2026-code-tables-tabular-and-index.zip"
    terminology, _ = run(path, tmp_path)
    assert "S72.00XA" in preferred(terminology)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("icd10cm_tabular_2025.xml", icd_file(INJURIES))
    with pytest.raises(InputError, match="two tabular lists"):
        run(path, tmp_path)
