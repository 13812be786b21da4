"""ClaML: titles, what a label says, codes that modifiers make, several languages, bad files."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from importing import imported
from sample_xml import claml_class, claml_file, element, rubric

from onoma.errors import InputError
from onoma.terminology import ImportReport, Terminology, import_terminology
from onoma.terminology.readers import claml


def modified_by(modifier: str, *valid: str, **attributes: str) -> str:
    classes = (element("ValidModifierClass", code=code) for code in valid)
    return element("ModifiedBy", *classes, code=modifier, **attributes)


def modifier(code: str, values: dict[str, str], **more: str) -> str:
    """A modifier and its values; ``more``: elements within the value of that title."""
    classes = (
        element(
            "ModifierClass",
            more.get(title.replace(" ", "_"), ""),
            element("SuperClass", code=code),
            rubric("preferred", title),
            rubric("inclusion", f"included in {title}"),
            code=value,
            modifier=code,
        )
        for value, title in values.items()
    )
    subclasses = (element("SubClass", code=value) for value in values)
    return element("Modifier", *subclasses, rubric("text", "For use with", "the codes"), code=code) + "".join(classes)


def run(source: Path, out: Path, /, **options: str) -> tuple[Terminology, ImportReport]:
    return imported("claml", source, out / "out", **options)


def read(folder: Path, /, *content: str, **options: str) -> tuple[Terminology, ImportReport]:
    (folder / "icd10.xml").write_text(claml_file(*content), encoding="utf-8")
    return run(folder / "icd10.xml", folder, **options)


def preferred(terminology: Terminology) -> dict[str, str]:
    return dict(terminology.concepts().select("concept_id", "preferred_name").collect().rows())


def names_of(terminology: Terminology, code: str) -> list[tuple[str, str]]:
    concepts = terminology.concepts().collect()["concept_id"].to_list()
    rows = terminology.names().select("concept_row", "text", "term_type").collect().rows()
    return [(text, term_type) for row, text, term_type in rows if concepts[row] == code]


def links(terminology: Terminology) -> list[tuple[str, str]]:
    concepts = terminology.concepts().collect()["concept_id"]
    rows = terminology.relations().collect().select("head_row", "relation", "tail_row").rows()
    assert {relation for _, relation, _ in rows} <= {"is_a"}
    return [(concepts[head], concepts[tail]) for head, _, tail in rows]


DIABETES = (
    modifier("S04E10_4", {".2": "With renal complications", ".7": "With multiple complications", ".9": "Without"}),
    modifier(
        "S04E10_5",
        {"0": "controlled", "2": "with foot syndrome"},
        controlled='<Meta name="excludeOnPrecedingModifier" value="S04E10_4 .7"/>',
        with_foot_syndrome='<Meta name="excludeOnPrecedingModifier" value="S04E10_4 .2"/>'
        '<Meta name="excludeOnPrecedingModifier" value="S04E10_4 .9"/>',
    ),
    claml_class("IV", "Endocrine", element("SubClass", code="E10-E14"), kind="chapter"),
    claml_class("E10-E14", "Diabetes mellitus", rubric("inclusion", "sugar"), above=["IV"], kind="block"),
)


def test_titles_and_further_names(tmp_path: Path) -> None:
    terminology, report = read(
        tmp_path,
        claml_class("II", "Neoplasms", rubric("inclusion", "tumours of all sorts"), kind="chapter"),
        claml_class("C22", "Malignant neoplasm of liver", rubric("coding-hint", "Use additional code"), above=["II"]),
        claml_class(
            "C22.0",
            "Liver cell carcinoma",
            rubric("preferredLong", "Malignant neoplasm: Liver cell carcinoma"),
            rubric("inclusion", "Hepatocellular carcinoma"),
            rubric("inclusion", "Hepatoma"),
            rubric("exclusion", "secondary <Reference>C78.7</Reference>"),
            rubric("note", "a note"),
            rubric("definition", "<Para>Cancer of</Para><Para>liver cells.</Para>"),
            above=["C22"],
        ),
    )
    assert preferred(terminology) == {
        "II": "Neoplasms",
        "C22": "Malignant neoplasm of liver",
        "C22.0": "Malignant neoplasm: Liver cell carcinoma",
    }
    assert names_of(terminology, "II") == [("Neoplasms", "label")]
    assert names_of(terminology, "C22.0")[1:] == [
        ("Liver cell carcinoma", "preferred"),
        ("Hepatocellular carcinoma", "inclusion"),
        ("Hepatoma", "inclusion"),
    ]
    assert links(terminology) == [("C22", "II"), ("C22.0", "C22")]
    assert terminology.concepts().collect()["semantic_types"].to_list() == [["Neoplasms"]] * 3
    assert terminology.definitions().collect()["text"].to_list() == ["Cancer of liver cells."]
    assert terminology.names().collect()["source"].unique().to_list() == ["ICD-10-EN-2019"]
    assert (report.n_rejected, report.notes) == (0, {})


LABELS = {
    'Vitamin B<Term class="subscript">12</Term> deficiency': "Vitamin B12 deficiency",
    '<Term class="italics">In vitro</Term>\n        fertilization': "In vitro fertilization",
    '<Fragment type="item">Tuberculosis of:</Fragment><Fragment type="item">hip '
    '<Reference class="in brackets" usage="aster">M01.1</Reference></Fragment>': "Tuberculosis of hip",
    "<Fragment>Tuberculose de\u00a0:</Fragment><Fragment>hanche</Fragment>": "Tuberculose de hanche",
    "<Fragment>Typhus:</Fragment>": "Typhus:",
    'Amoebic liver abscess<Reference usage="aster">K77.0</Reference>': "Amoebic liver abscess",
    'Abscess <Reference class="in brackets">K77.0</Reference>, of liver': "Abscess, of liver",
    "Abscess (<Reference>K77.0</Reference>) of liver": "Abscess of liver",
    "Sequelae of injury classifiable to<Reference>S01.-</Reference>or later": (
        "Sequelae of injury classifiable to S01.- or later"
    ),
    "<Para>one</Para><List><ListItem>two</ListItem><ListItem><Para>three</Para></ListItem></List>": "one two three",
    "Plain, as ( it ) is written .": "Plain, as ( it ) is written .",
    "Fieber \u2013 &lt; 38 &#176;C": "Fieber \u2013 < 38 °C",
}


@pytest.mark.parametrize("label", LABELS)
def test_what_a_label_says(label: str, tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, claml_class("A00", "x", rubric("inclusion", label)))
    assert names_of(terminology, "A00") == [("x", "label"), (LABELS[label], "inclusion")]


def test_a_label_that_is_only_a_reference_is_no_name(tmp_path: Path) -> None:
    empty = rubric("inclusion", '<Reference usage="aster">K77.0</Reference>')
    terminology, report = read(tmp_path, claml_class("A00", "x", empty))
    assert names_of(terminology, "A00") == [("x", "label")]
    assert report.n_rejected == 0


def test_two_modifiers_one_after_the_other(tmp_path: Path) -> None:
    both = modified_by("S04E10_5") + modified_by("S04E10_4")  # the number after "_" says which comes first
    title = "Type 2 diabetes mellitus"
    terminology, report = read(tmp_path, *DIABETES, claml_class("E11", title, both, above=["E10-E14"]))
    assert preferred(terminology) == {
        "IV": "Endocrine",
        "E10-E14": "Diabetes mellitus",
        "E11": title,
        "E11.2": f"{title}: With renal complications",
        "E11.7": f"{title}: With multiple complications",
        "E11.9": f"{title}: Without",
        "E11.20": f"{title}: With renal complications: controlled",
        "E11.72": f"{title}: With multiple complications: with foot syndrome",
        "E11.90": f"{title}: Without: controlled",
    }
    assert links(terminology)[2:] == [
        *(("E11.2", "E11"), ("E11.20", "E11.2")),
        *(("E11.7", "E11"), ("E11.72", "E11.7")),
        *(("E11.9", "E11"), ("E11.90", "E11.9")),
    ]
    assert names_of(terminology, "E11.9") == [(f"{title}: Without", "label")]
    assert terminology.concepts().collect()["semantic_types"].to_list() == [["Endocrine"]] * 9
    assert report.notes == {}


def test_codes_of_modifiers_can_be_left_out(tmp_path: Path) -> None:
    both = modified_by("S04E10_4") + modified_by("S04E10_5")
    content = (*DIABETES, claml_class("E11", "Diabetes", both, above=["E10-E14"]))
    plain = ["IV", "E10-E14", "E11"]
    assert list(preferred(read(tmp_path, *content, modifiers="no")[0])) == plain
    found = preferred(read(tmp_path, *content, without_modifiers="S04E10_5")[0])
    assert list(found) == [*plain, "E11.2", "E11.7", "E11.9"]
    # E11.X2 would be no code: what is added to a value that is left out is left out, too
    assert list(preferred(read(tmp_path, *content, without_modifiers="S04E10_4")[0])) == plain
    with pytest.raises(InputError, match=r"nothing of 'S04E10_6'\. Did you mean 'S04E10_"):
        read(tmp_path, *content, without_modifiers="S04E10_6")


SITES = (
    modifier("S13M00_5", {"0": "Multiple sites", "1": "Shoulder"}) + modifier("S2", {}) + modifier("S3_5", {".3": "x"})
)
MUSCULOSKELETAL = {
    "the class itself": ([claml_class("T14.2", "Fracture", modified_by("S13M00_5"))], ["T14.2", "T14.20", "T14.21"]),
    "what is below it": (
        [
            claml_class("M00-M25", "Arthropathies", modified_by("S13M00_5"), kind="block"),
            claml_class("M00", "Pyogenic arthritis", above=["M00-M25"]),
            claml_class("M00.0", "Staphylococcal", above=["M00"]),
            claml_class("M07", "Psoriatic", element("ExcludeModifier", code="S13M00_5"), above=["M00-M25"]),
            claml_class("M07.0", "Distal", above=["M07"]),
            claml_class("M07.1", "Mutilans", modified_by("S13M00_5", "1", all="false"), above=["M07"]),
        ],
        ["M00-M25", "M00", "M00.0", "M00.00", "M00.01", "M07", "M07.0", "M07.1", "M07.11"],
    ),
    "no fourth character": ([claml_class("M45", "Spondylitis", modified_by("S13M00_5"))], ["M45", "M45.X0", "M45.X1"]),
    "position": ([claml_class("M45", "x", modified_by("S13M00_5", position="4"))], ["M45", "M45.0", "M45.1"]),
    "some values": ([claml_class("M40.0", "x", modified_by("S13M00_5", "1"))], ["M40.0", "M40.01"]),
    "some, all true": ([claml_class("M40.0", "x", modified_by("S13M00_5", "0", all="true"))], ["M40.0", "M40.00"]),
    "none": ([claml_class("M40.0", "x", modified_by("S13M00_5", all="false"))], ["M40.0"]),
    "some values, then others": (
        [claml_class("M40.0", "x", modified_by("S13M00_5", "1"), modified_by("S13M00_5", "0"))],
        ["M40.0", "M40.00", "M40.01"],
    ),
    "values of two superclasses": (
        [
            claml_class("M40", "x", modified_by("S13M00_5", "1")),
            claml_class("M41", "x", modified_by("S13M00_5", "0")),
            claml_class("M40.0", "x", above=["M40", "M41"]),
        ],
        ["M40", "M41", "M40.0", "M40.00", "M40.01"],
    ),
    "a code that two values make": (
        [claml_class("M40", "x", modified_by("S3_5"), modified_by("S13M00_5")), claml_class("M40.3", "y")],
        ["M40", "M40.X0", "M40.X1", "M40.3"],
    ),
    "only a link": (
        [
            claml_class("M13", "Other", rubric("modifierlink", '<Reference code="S13M00_5">sites</Reference>')),
            claml_class("M13.0", "Polyarthritis", above=["M13"]),
        ],
        ["M13", "M13.0", "M13.00", "M13.01"],
    ),
    "a link to something else": (
        [claml_class("M13", "Other", rubric("modifierlink", '<Reference code="XIII">see there</Reference>'))],
        ["M13"],
    ),
    "a dot after a dot": ([claml_class("M40.0", "x", modified_by("S3_5"))], ["M40.0", "M40.03"]),
    "no values": ([claml_class("M45", "x", element("ModifiedBy", code="S2"))], ["M45"]),
    "a code that is listed": (
        [claml_class("M40.0", "x", modified_by("S13M00_5")), claml_class("M40.00", "listed")],
        ["M40.0", "M40.01", "M40.00"],
    ),
    "a link in a block": (
        [
            claml_class("B", "x", rubric("modifierlink", '<Reference code="S13M00_5">s</Reference>'), kind="block"),
            claml_class("M40.0", "x", above=["B"]),
        ],
        ["B", "M40.0"],
    ),
}


@pytest.mark.parametrize("case", MUSCULOSKELETAL)
def test_what_a_modifier_applies_to(case: str, tmp_path: Path) -> None:
    classes, codes = MUSCULOSKELETAL[case]
    before, _ = read(tmp_path, SITES, *classes)
    assert list(preferred(before)) == codes
    links_before = links(before)
    after, _ = read(tmp_path, *reversed(classes), SITES)  # the order in the file does not matter
    assert sorted(preferred(after)) == sorted(codes)
    assert sorted(links(after)) == sorted(links_before)


OPS_VALUES = [
    element("ModifierClass", element("SuperClass", code=above), rubric("preferred", title), code=code, modifier="ST538")
    for code, above, title in (
        *(
            (".0", "ST538", "Kopf"),
            (".00", ".0", "A. carotis"),
            (".001", ".00", "externa"),
            (".1", "ST538", "Schulter"),
        ),
        *((".2", ".3", "rund"), (".3", ".2", "herum")),
    )
]


@pytest.mark.parametrize("values", [OPS_VALUES, OPS_VALUES[::-1]])
def test_a_value_within_a_value_of_the_ops(values: list[str], tmp_path: Path) -> None:
    side = modifier("ST5", {"l": "links"})
    codes = claml_class("5-380", "Inzision", modified_by("ST538", ".0", ".00", ".90"), modified_by("ST5"))
    terminology, report = read(tmp_path, *values, side, codes)
    assert preferred(terminology) == {
        "5-380": "Inzision",
        "5-380.0": "Inzision: Kopf",
        "5-380.00": "Inzision: Kopf: A. carotis",
        "5-380.00l": "Inzision: Kopf: A. carotis: links",
    }
    assert sorted(links(terminology)) == [("5-380.0", "5-380"), ("5-380.00", "5-380.0"), ("5-380.00l", "5-380.00")]
    assert report.notes == {"values that a class names and its modifier does not have, left out": 1}


def test_a_value_whose_broader_value_is_not_made_is_below_the_next(tmp_path: Path) -> None:
    some = claml_class("5-380", "Inzision", modified_by("ST538", ".0", ".001"))
    all_but_listed = claml_class("5-381", "Endarterie", modified_by("ST538"))
    listed = claml_class("5-381.00", "A. carotis", above=[])
    terminology, _ = read(tmp_path, *OPS_VALUES[:4], some, all_but_listed, listed)
    assert links(terminology) == [
        *(("5-380.0", "5-380"), ("5-380.001", "5-380.0")),
        *(("5-381.0", "5-381"), ("5-381.001", "5-381.00"), ("5-381.1", "5-381")),
    ]


def test_values_that_are_part_of_each_other_are_below_the_class(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, *OPS_VALUES[4:], claml_class("5-380", "Inzision", modified_by("ST538")))
    assert preferred(terminology)["5-380.2"] == "Inzision: rund"
    assert links(terminology) == [("5-380.2", "5-380"), ("5-380.3", "5-380")]


def test_two_modifiers_that_make_one_code(tmp_path: Path) -> None:
    values = modifier("S1", {".1": "one", ".10": "ten"}) + modifier("S2", {"0": "none"})
    terminology, report = read(tmp_path, values, claml_class("5-1", "x", modified_by("S1"), modified_by("S2")))
    assert preferred(terminology) == {
        "5-1": "x",
        "5-1.1": "x: one",
        "5-1.10": "x: ten",
        "5-1.100": "x: ten: none",
    }
    assert report.n_rejected == 0


def test_modifiers_that_make_too_many_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of 100 modifiers, which make 2 ** 100 codes, no more are made than the limit
    values = "".join(modifier(f"S{n}", {"0": "a", "1": "b"}) for n in range(101))
    monkeypatch.setattr(claml, "MOST_MADE", 1000)
    names = [f"S{n}" for n in range(101)]
    with pytest.raises(InputError, match="more than 1,000 codes") as caught:
        read(tmp_path, values, claml_class("A", "x", *map(modified_by, names[1:])))
    assert (caught.value.path, caught.value.found) == (tmp_path / "icd10.xml", "A")
    assert caught.value.line is not None
    below = claml_class("B", "x", modified_by(names[0]), above=["A"])
    with pytest.raises(InputError, match="a class with more than 100 modifiers") as caught:
        read(tmp_path, values, claml_class("A", "x", *map(modified_by, names[1:])), below)
    assert caught.value.found == "B"


def test_several_superclasses_and_subclasses_only(tmp_path: Path) -> None:
    terminology, _ = read(
        tmp_path,
        claml_class("I", "one", element("SubClass", code="A"), element("SubClass", code="B"), kind="chapter"),
        claml_class("II", "two", kind="chapter"),
        claml_class("A", "a", above=["I", "II"]),
        claml_class("B", "b"),
        claml_class("C", "c", element("SubClass", code="Y35.6")),
    )
    assert links(terminology) == [("A", "I"), ("A", "II"), ("B", "I")]
    types = terminology.concepts().collect()["semantic_types"].to_list()
    assert types == [["one"], ["two"], ["one"], ["one"], []]


def test_kinds(tmp_path: Path) -> None:
    content = (*DIABETES, claml_class("E11", "Diabetes", above=["E10-E14"]))
    terminology, _ = read(tmp_path, *content, kinds="chapter,category")
    assert links(terminology) == [("E11", "IV")]
    with pytest.raises(InputError, match=r"nothing of 'categories'\. Did you mean 'category'"):
        read(tmp_path, *content, kinds="categories")


def test_kinds_of_rubrics(tmp_path: Path) -> None:
    long, short = rubric("preferredLong", "Cancer: Lip"), rubric("shortTitle", "ca lip")
    content = claml_class("C00", "Lip", long, rubric("inclusion", "lip cancer"), short)
    expected = {
        "preferred,inclusion": ["Lip", "lip cancer"],
        "": [],
        "inclusion,shortTitle": ["lip cancer", "ca lip"],
    }
    for names, texts in expected.items():
        terminology, _ = read(tmp_path, content, names=names)
        assert [text for text, _ in names_of(terminology, "C00")] == ["Cancer: Lip", *texts]
    with pytest.raises(InputError, match="nothing of 'inclusions'"):
        read(tmp_path, content, names="inclusions")


DUTCH = (
    element(
        "ModifierClass",
        element(
            "Rubric", *(element("Label", t, **{"xml:lang": lang}) for lang, t in (("nl", "open"), ("en", "OPEN")))
        ).replace("<Rubric>", '<Rubric kind="preferred">'),
        code="1",
        modifier="S5",
    ),
    claml_class(
        "S02.0",
        "Fractuur",
        rubric("preferred", "Fracture"),
        rubric("inclusion", "breuk", language="nl"),
        rubric("definition", "Break.") + rubric("definition", "Breuk.", language="nl"),
        modified_by("S5"),
        language="nl",
    ),
    claml_class("S02.1", "Schedelbasis", modified_by("S5"), language="nl"),
    claml_class("S02.2", "Neus", language="nl").replace(' xml:lang="nl"', ""),
)


def in_languages(folder: Path, **options: str) -> tuple[Terminology, ImportReport]:
    (folder / "icd10.xml").write_text(claml_file(*DUTCH, language="nl"), encoding="utf-8")
    return run(folder / "icd10.xml", folder, **options)


def test_languages(tmp_path: Path) -> None:
    terminology, _ = in_languages(tmp_path)
    names = terminology.names().select("text", "language", "term_type", "is_preferred").collect().rows()
    assert names == [
        ("Fractuur", "nl", "label", True),
        ("Fracture", "en", "label", False),
        ("breuk", "nl", "inclusion", False),
        ("Fractuur: open", "nl", "label", True),
        ("Fracture: OPEN", "en", "label", False),
        ("Schedelbasis", "nl", "label", True),
        ("Schedelbasis: open", "nl", "label", True),
        ("Neus", "nl", "label", True),
    ]
    assert terminology.definitions().collect()["text"].to_list() == ["Breuk."]
    terminology, report = in_languages(tmp_path, languages="en")
    assert preferred(terminology) == {"S02.0": "Fracture", "S02.01": "Fracture: OPEN"}
    assert report.notes == {"classes and values of modifiers that have no title in these languages, left out": 2}
    terminology, _ = in_languages(tmp_path, languages="en,nl")
    assert preferred(terminology)["S02.0"] == "Fracture"
    assert preferred(terminology)["S02.1"] == "Schedelbasis"
    with pytest.raises(InputError, match="nothing of 'de'"):
        in_languages(tmp_path, languages="de")


def test_a_modifier_in_another_language(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, SITES, claml_class("M40.0", "Kyphose", modified_by("S13M00_5", "1"), language="de"))
    names = terminology.names().select("text", "language").collect().rows()
    assert names == [("Kyphose", "de"), ("Kyphose: Shoulder", "de")]


def test_a_language_that_is_no_tag_is_that_of_the_file(tmp_path: Path) -> None:
    content = claml_class("A", "a", language="deutsch") + claml_class("B", "b", language="DE_at")
    terminology, report = read(tmp_path, content)
    assert terminology.names().collect()["language"].to_list() == ["en", "de-AT"]
    assert report.notes == {"languages that are no tag such as en (deutsch)": 1}


def test_source(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, claml_class("A00", "Cholera"), source="ICD10")
    assert terminology.names().collect()["source"].to_list() == ["ICD10"]


BAD = {
    "no code": (claml_class("", "nameless"), "a class without a code", {}),
    "twice": (claml_class("A00", "again"), "a class that occurred before", {}),
    "no title": (claml_class("A01", "", rubric("inclusion", "x"), above=["I"]), "a class without a title", {}),
    "empty title": (claml_class("A01", " ", above=["I"]), "a class without a title", {}),
    "absent superclass": (claml_class("A01", "x", above=["II"]), "a superclass that the file does not have", {"A01"}),
    "above itself": (claml_class("A01", "x", above=["A01"]), "a class above itself", {"A01"}),
    "in a circle": (
        claml_class("A01", "x", above=["A02"]) + claml_class("A02", "y", above=["A01"]),
        "a class above itself",
        {"A01", "A02"},
    ),
    "absent modifier": (claml_class("A01", "x", modified_by("S1")), "a modifier that the file does not have", {"A01"}),
    "modifier without code": (
        claml_class("A01", "x", modified_by("")),
        "a modifier that the file does not have",
        {"A01"},
    ),
    "value of nothing": (
        modifier("S1", {"1": "x"}).replace(' modifier="S1"', ""),
        "a modifier class without a code or a modifier",
        {},
    ),
    "value without code": (modifier("S1", {"": "x"}), "a modifier class without a code or a modifier", {}),
    "value twice": (modifier("S1", {"1": "x"}) + modifier("S1", {"1": "y"}), "a modifier class that occurred", {}),
    "value without title": (modifier("S1", {"1": ""}), "a modifier class without a title", {}),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_classes(case: str, tmp_path: Path) -> None:
    bad, problem, kept = BAD[case]
    content = (claml_class("I", "chapter", kind="chapter"), claml_class("A00", "Cholera", above=["I"]), bad)
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, *content, claml_class("A00.0", "below", above=["A00"]))
    assert caught.value.path == tmp_path / "icd10.xml"
    assert caught.value.line is not None
    lines = (tmp_path / "icd10.xml").read_text(encoding="utf-8").splitlines()
    assert lines[caught.value.line - 1].startswith(("<Class", "<ModifierClass"))
    report = import_terminology("claml", tmp_path / "icd10.xml", tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1
    assert set(preferred(Terminology.open(tmp_path / "out"))) == {"I", "A00", "A00.0", *kept}


def test_what_is_below_a_class_without_title_is_below_the_next(tmp_path: Path) -> None:
    (tmp_path / "icd10.xml").write_text(
        claml_file(
            claml_class("I", "chapter", kind="chapter"),
            claml_class("A00-A09", "", above=["I"], kind="block"),
            claml_class("A00", "Cholera", above=["A00-A09"]),
        ),
        encoding="utf-8",
    )
    import_terminology("claml", tmp_path / "icd10.xml", tmp_path / "out", on_error="skip")
    assert links(Terminology.open(tmp_path / "out")) == [("A00", "I")]


def test_the_archive_as_it_is_published(tmp_path: Path) -> None:
    path = tmp_path / "icd10gm2024syst-claml.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Klassifikationsdateien/ClaML.dtd", "<!ELEMENT ClaML (Meta*, Class*)>")
        archive.writestr("Klassifikationsdateien/ClaML2.0.0.xsd", "<xs:schema xmlns:xs='x'/>")
        archive.writestr("Klassifikationsdateien/icd10gm.xml", claml_file(claml_class("A00", "Cholera")))
        archive.writestr("Liesmich.txt", "Hinweise")
    assert preferred(run(path, tmp_path)[0]) == {"A00": "Cholera"}
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("ops.xml", claml_file(claml_class("5-380", "Inzision")))
    with pytest.raises(InputError, match="two classifications"):
        run(path, tmp_path)
