"""Orphanet: languages, retired entries, what a mapping means, classifications."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import polars as pl
import pytest
from importing import imported
from sample_xml import association, classification_file, disorder, element, orphanet_file, text

from onoma.errors import ConfigError, InputError
from onoma.terminology import ImportReport, Terminology, import_terminology


def reference(vocabulary: str, code: str, relation: str) -> str:
    return element(
        "ExternalReference",
        text("Source", vocabulary),
        text("Reference", code),
        element("DisorderMappingRelation", text("Name", relation, lang="en"), id="21527") if relation else "",
    )


def references(*content: str) -> str:
    return element("ExternalReferenceList", *content)


def run(source: Path, out: Path, **options: str) -> tuple[Terminology, ImportReport]:
    return imported("orphanet", source, out / "out", **options)


def read(folder: Path, *disorders: str, **options: str) -> tuple[Terminology, ImportReport]:
    (folder / "en_product1.xml").write_text(orphanet_file(*disorders), encoding="utf-8")
    return run(folder / "en_product1.xml", folder, **options)


def concept(terminology: Terminology, code: str) -> dict[str, object]:
    return terminology.concepts().collect().row(by_predicate=pl.col("concept_id") == code, named=True)


def names(terminology: Terminology, code: str) -> list[tuple[str, str, str]]:
    row = terminology.concepts().collect()["concept_id"].to_list().index(code)
    found = terminology.names().filter(pl.col("concept_row") == row).select("text", "language", "term_type")
    return found.collect().rows()


def test_retired_entries(tmp_path: Path) -> None:
    referred = association("1", "Referred to", "21461")
    terminology, report = read(
        tmp_path,
        disorder("1", "Marfan syndrome", ["MFS"]),
        disorder("2", "OBSOLETE: Old", flags=(1, 8192, 256), more=association("1")),
        disorder("3", "OBSOLETE: Older", flags=(8208,), more=referred),
        disorder("4", "NON RARE IN EUROPE: Crohn disease", flags=(8225,)),
        disorder("5", "Historical entity", flags=(129,)),
        disorder("6", "Before the flag of inactivity", flags=(16,)),
        disorder("7", "Moved without a name of the relation", flags=(8192,), more=association("5", "", "21471")),
        disorder("8", "Moved to itself", flags=(8192,), more=association("8")),
        disorder("9", "Head of classification", flags=(513,), more=association("99")),
    )
    status = terminology.concepts().select("concept_id", "status", "replaced_by").collect().rows()
    assert status == [
        ("ORPHA:1", "active", None),
        ("ORPHA:2", "obsolete", "ORPHA:1"),
        ("ORPHA:3", "obsolete", None),
        ("ORPHA:4", "obsolete", None),
        ("ORPHA:5", "active", None),
        ("ORPHA:6", "obsolete", None),
        ("ORPHA:7", "obsolete", "ORPHA:5"),
        ("ORPHA:8", "obsolete", None),
        ("ORPHA:9", "active", None),
    ]
    assert concept(terminology, "ORPHA:4")["preferred_name"] == "NON RARE IN EUROPE: Crohn disease"
    relations = terminology.relations().select("head_row", "relation", "tail_row").collect().rows()
    assert relations == [(2, "consider", 0)]
    assert report.notes == {"concepts with one to consider in their place that is not among them": 1}


def test_what_is_seen_from_the_other_end_is_no_replacement(tmp_path: Path) -> None:
    other_end = element(
        "DisorderDisorderAssociationList",
        element(
            "DisorderDisorderAssociation",
            '<TargetDisorder id="11" cycle="true"/>',
            element("RootDisorder", text("OrphaCode", "2"), id="12"),
            element("DisorderDisorderAssociationType", text("Name", "Moved to"), id="21471"),
        ),
    )
    terminology, _ = read(tmp_path, disorder("1", "a", more=other_end), disorder("2", "b", flags=(8192,)))
    assert terminology.concepts().collect()["replaced_by"].to_list() == [None, None]
    assert terminology.n_relations == 0


def test_cross_references(tmp_path: Path) -> None:
    terminology, report = read(
        tmp_path,
        disorder(
            "1",
            "a",
            more=references(
                reference("OMIM", "154700", "E (Exact mapping: the two concepts are equivalent)"),
                reference("ICD-10", "Q87.4", "NTBT (ORPHAcode's Narrower Term maps to a Broader Term)"),
                reference("ICD-11", "LD28.01", "BTNT (ORPHAcode's Broader Term maps to a Narrower Term)"),
                reference("MeSH", "D008382", "NTBT/E (narrower, but spelled as a synonym there)"),
                reference("UMLS", "C0024796", "ND (not yet decided/unable to decide)"),
                reference("GARD", "6975", ""),
                reference("MedDRA", "10026829", "W (incorrect mapping: the two concepts are different)"),
                reference("", "1", "E"),
            ),
        ),
    )
    assert terminology.cross_references().select("relation", "code").collect().rows() == [
        ("exactMatch", "OMIM:154700"),
        ("broadMatch", "ICD-10:Q87.4"),
        ("narrowMatch", "ICD-11:LD28.01"),
        ("broadMatch", "MeSH:D008382"),
        ("xref", "UMLS:C0024796"),
        ("xref", "GARD:6975"),
    ]
    assert report.notes == {
        "external references that Orphanet calls wrong, left out": 1,
        "external references without a vocabulary or a code, left out": 1,
    }


def write_languages(folder: Path) -> None:
    english = orphanet_file(
        disorder(
            "1", "Marfan syndrome", ["MFS"], definition="A disease.", more=references(reference("OMIM", "1", "E"))
        ),
        disorder("2", "Only English"),
    )
    german = orphanet_file(
        disorder("3", "Nur Größe", ["Grösse"], language="de", kind="Krankheit", definition="Eine Krankheit."),
        disorder(
            "1",
            "Marfan-Syndrom",
            ["MFS"],
            language="de",
            kind="Krankheit",
            definition="Anders gesagt.",
            more=references(reference("OMIM", "1", "E")),
        ),
    ).replace("UTF-8", "ISO-8859-1")
    (folder / "de_product1.xml").write_bytes(german.encode("iso-8859-1"))
    (folder / "en_product1.xml.gz").write_bytes(gzip.compress(english.encode()))


def test_languages_are_joined_by_code(tmp_path: Path) -> None:
    write_languages(tmp_path)
    terminology, report = run(tmp_path, tmp_path / "x")
    assert report.notes == {}
    assert terminology.concepts().collect()["concept_id"].to_list() == ["ORPHA:1", "ORPHA:2", "ORPHA:3"]
    assert names(terminology, "ORPHA:1") == [
        ("Marfan syndrome", "en", "label"),
        ("MFS", "en", "exact_synonym"),
        ("Marfan-Syndrom", "de", "label"),
        ("MFS", "de", "exact_synonym"),
    ]
    assert names(terminology, "ORPHA:3") == [("Nur Größe", "de", "label"), ("Grösse", "de", "exact_synonym")]
    assert concept(terminology, "ORPHA:1")["semantic_types"] == ["disease"]
    assert concept(terminology, "ORPHA:3")["semantic_types"] == ["Krankheit"]
    definitions = terminology.definitions().select("concept_row", "text").collect().rows()
    assert definitions == [(0, "A disease."), (2, "Eine Krankheit.")]
    assert terminology.cross_references().select("concept_row", "code").collect().rows() == [(0, "OMIM:1")]

    terminology, _ = run(tmp_path, tmp_path / "x", languages="DE,en")
    assert concept(terminology, "ORPHA:1")["preferred_name"] == "Marfan-Syndrom"
    assert concept(terminology, "ORPHA:1")["semantic_types"] == ["Krankheit"]
    assert concept(terminology, "ORPHA:2")["preferred_name"] == "Only English"

    terminology, _ = run(tmp_path, tmp_path / "x", languages="de")
    assert terminology.names().collect()["language"].unique().to_list() == ["de"]
    with pytest.raises(InputError, match=r"nothing of 'fr'; expected some of de, en"):
        run(tmp_path, tmp_path / "x", languages="en,fr")
    with pytest.raises(ConfigError, match="no language tag"):
        run(tmp_path, tmp_path / "x", languages="e n")
    (tmp_path / "again.xml").write_bytes((tmp_path / "de_product1.xml").read_bytes())
    with pytest.raises(InputError, match="two files of names in the language 'de'"):
        run(tmp_path, tmp_path / "x")


def test_codes_with_another_prefix(tmp_path: Path) -> None:
    entries = (disorder("1", "a"), disorder("2", "b", flags=(8192,), more=association("1")))
    terminology, _ = read(tmp_path, *entries, prefix="")
    assert terminology.concepts().select("concept_id", "replaced_by").collect().rows() == [("1", None), ("2", "1")]
    assert terminology.names().collect()["source"].to_list() == ["ORPHA", "ORPHA"]
    terminology, _ = read(tmp_path, *entries, prefix="Orphanet:")
    assert concept(terminology, "Orphanet:2")["replaced_by"] == "Orphanet:1"


def test_markup_is_taken_out(tmp_path: Path) -> None:
    entry = disorder(
        "1",
        "<i>ACTB</i>-related, p < 0.5",
        ["H<sub>2</sub>O"],
        definition="<p>With <I>genu valgum</I><br />.<br/>Rare.</p> <p>Mild</p>",
    )
    terminology, report = read(tmp_path, entry)
    assert [name for name, _, _ in names(terminology, "ORPHA:1")] == ["ACTB-related, p < 0.5", "H2O"]
    assert terminology.definitions().collect()["text"].to_list() == ["With genu valgum. Rare. Mild"]
    assert report.notes == {"texts with markup, taken out": 3}


def test_nomenclature_of_the_pack(tmp_path: Path) -> None:
    def entry(number: str, name: str, flag: str, status: str) -> str:
        return element(
            "Disorder",
            text("OrphaCode", number),
            text("Name", name, lang="en"),
            text("FlagValue", flag),
            text("Totalstatus", status),
            element("SynonymList"),
            element("ClassificationLevel", text("Name", "Group of disorders", lang="en")),
        )

    pack = element(
        "JDBOR", element("DisorderList", entry("1", "a", "1", "Active"), entry("2", "b", "8449", "Inactive"))
    )
    (tmp_path / "x.xml").write_text(pack)
    terminology, _ = run(tmp_path / "x.xml", tmp_path)
    rows = terminology.concepts().select("concept_id", "status", "semantic_types").collect().rows()
    assert rows == [("ORPHA:1", "active", ["Group of disorders"]), ("ORPHA:2", "obsolete", ["Group of disorders"])]


def test_codes_of_releases_before_2020(tmp_path: Path) -> None:
    """They were called numbers then, in both kinds of file."""
    (tmp_path / "en_product1.xml").write_text(
        orphanet_file(disorder("1", "a"), disorder("2", "b")).replace("OrphaCode", "OrphaNumber")
    )
    (tmp_path / "en_product3_146.xml").write_text(classification_file(("1", "2")).replace("OrphaCode", "OrphaNumber"))
    terminology, _ = run(tmp_path, tmp_path / "x")
    assert terminology.concepts().collect()["concept_id"].to_list() == ["ORPHA:1", "ORPHA:2"]
    assert terminology.relations().select("head_row", "relation", "tail_row").collect().rows() == [(0, "is_a", 1)]


def test_classifications_in_the_folder(tmp_path: Path) -> None:
    write_languages(tmp_path)
    (tmp_path / "en_product3_146.xml").write_text(classification_file(("1", "2"), ("3", "2")))
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
        archive.writestr("en_product3_147.xml", classification_file(("1", "2"), ("1", "3"), ("77", "1"), ("1", "1")))
        genes = element("DisorderGeneAssociationList", element("Gene", element("SynonymList")))
        archive.writestr(
            "en_product6.xml",
            element("JDBOR", element("DisorderList", element("Disorder", text("OrphaCode", "1"), genes))),
        )
    terminology, report = run(tmp_path, tmp_path / "x")
    relations = terminology.relations().select("head_row", "relation", "tail_row").collect().rows()
    assert relations == [(0, "is_a", 1), (2, "is_a", 1), (0, "is_a", 2)]
    assert report.notes == {
        "files of other products of Orphadata, not read": 1,
        "relations to or from terms that are not among the concepts, left out": 1,
    }
    with pytest.raises(InputError, match=r"no nomenclature here.*product 1"):
        run(tmp_path / "en_product3_146.xml", tmp_path / "x")


BAD = {
    "no number": (disorder("ORPHA:5", "b"), "field OrphaCode.*expected a number; found ORPHA:5"),
    "huge number": (disorder("9" * 5000, "b"), "field OrphaCode.*expected a number"),
    "no code": (disorder("", "b"), "field OrphaCode.*found nothing"),
    "no name": (disorder("2", " "), "field Name.*expected a name"),
    "blank synonym": (disorder("2", "b", [" "]), "a blank name"),
    "flag that is none": (disorder("2", "b", flags=(-1,)), "field DisorderFlag.*expected a number; found -1"),
    "code twice": (disorder("1", "b"), "an id that occurred before"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_entries(case: str, tmp_path: Path) -> None:
    bad, problem = BAD[case]
    first = disorder("1", "a")
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, first, bad, disorder("3", "c"))
    before = orphanet_file().partition("<DisorderList")[0] + '<DisorderList count="3">' + first
    assert caught.value.line == before.count("\n") + 1
    report = import_terminology("orphanet", tmp_path / "en_product1.xml", tmp_path / "out", on_error="skip")
    assert report.n_rejected == 1
    left = Terminology.open(tmp_path / "out").concepts().collect()["concept_id"].to_list()
    assert left == ["ORPHA:1", *(["ORPHA:2"] if case == "blank synonym" else []), "ORPHA:3"]


def test_replacements_in_a_circle(tmp_path: Path) -> None:
    circle = [disorder(a, a, flags=(8192,), more=association(b)) for a, b in (("1", "2"), ("2", "1"))]
    with pytest.raises(InputError, match="replace each other in a circle"):
        read(tmp_path, *circle)
