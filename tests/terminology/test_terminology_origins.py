"""What a terminology and all that is made of it say of licences, releases and source vocabularies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_xml
from sample import write_text
from sample_omop import concept, write_omop
from sample_rrf import RXNORM_TABLES
from sample_snomed import CONTENT, write_rf2
from sample_tables import CTD_CSV
from sample_xml import disorder, mesh_concept, mesh_file, mesh_record, orphanet_file

from onoma.artifacts import origins_of, read_manifest
from onoma.terminology import (
    Terminology,
    diff_terminologies,
    export_terminology,
    import_terminology,
    merge_terminologies,
)
from onoma.terminology.enriching import enrich_terminology

MRCONSO = """\
C1|ENG|P|L1|PF|S1|Y|A1|||1|SNOMEDCT_US|PT|1|Heart attack|9|N||
C1|GER|S|L2|PF|S2|N|A2|||2|MDRGER|PT|2|Herzinfarkt|3|N||
C1|ENG|S|L3|PF|S3|N|A3|||3|MSH|SY|3|MI|0|N||
C2|ENG|P|L4|PF|S4|Y|A4|||4|NEW|PT|4|Gout|2|N||
"""
MRSAB = """\
C9|C8|SNOMEDCT_US_2025|SNOMEDCT_US|earlier|SNOMEDCT||||||||9|1|1||||ENG|UTF-8|N|Y|||
C9|C8|SNOMEDCT_US_2026|SNOMEDCT_US|SNOMED CT, US Edition|SNOMEDCT||||||Jane Doe||9|1|1||||ENG|UTF-8|Y|Y||cite IHTSDO|
C9|C8|MDRGER28|MDRGER|MedDRA, German|MDR|||||||||1|1||||GER|UTF-8|Y|Y|||
C9|C8|MSH2026|MSH|MeSH|MSH||||||||0|1|1||||ENG|UTF-8|Y|Y||cite NLM|
C9|C8|CPT2026|CPT|CPT|CPT||||||||3|1|1||||ENG|UTF-8|Y|Y||AMA|
"""
SNOMED = {
    "source": "SNOMEDCT_US", "name": "SNOMED CT, US Edition", "version": "SNOMEDCT_US_2026", "restriction_level": "9",
    "citation": "cite IHTSDO",
}  # fmt: skip
MEDDRA = {"source": "MDRGER", "name": "MedDRA, German", "version": "MDRGER28", "restriction_level": "3"}
"""Its level is in MRCONSO alone."""
MESH = {"source": "MSH", "name": "MeSH", "version": "MSH2026", "restriction_level": "0", "citation": "cite NLM"}
NEW = {"source": "NEW", "restriction_level": "2"}
"""Not in MRSAB: as MRCONSO has it."""


@pytest.fixture
def umls(tmp_path: Path) -> Path:
    """A release of four vocabularies, imported."""
    release = tmp_path / "2026AA"
    release.mkdir()
    (release / "MRCONSO.RRF").write_text(MRCONSO)
    (release / "MRSAB.RRF").write_text(MRSAB)
    import_terminology("umls", release, tmp_path / "umls")
    return tmp_path / "umls"


def vocabularies_of(folder: Path) -> list[dict[str, Any]]:
    origins = origins_of(read_manifest(folder).config)
    return [one for origin in origins for one in origin.get("source_vocabularies", ())]


def test_source_vocabularies_of_what_was_kept(umls: Path, tmp_path: Path) -> None:
    assert vocabularies_of(umls) == [MEDDRA, MESH, NEW, SNOMED]
    for options in ({"languages": "en"}, {"codes": "MSH,SNOMEDCT_US,NEW", "languages": "en"}):
        import_terminology("umls", tmp_path / "2026AA", tmp_path / "some", options=options, overwrite=True)
        assert vocabularies_of(tmp_path / "some") == [MESH, NEW, SNOMED]
    (tmp_path / "2026AA" / "MRSAB.RRF").unlink()
    import_terminology("umls", tmp_path / "2026AA", tmp_path / "some", overwrite=True)
    levels = {one["source"]: one["restriction_level"] for one in vocabularies_of(tmp_path / "some")}
    assert levels == {"SNOMEDCT_US": "9", "MDRGER": "3", "MSH": "0", "NEW": "2"}


def test_source_vocabularies_of_rxnorm(tmp_path: Path) -> None:
    for name, text in RXNORM_TABLES.items():
        (tmp_path / f"{name}.RRF").write_text(text)
    (tmp_path / "RXNSAB.RRF").write_text(
        "|C8|MMSL_2026|MMSL|Multum MediSource Lexicon|MMSL||||||||1|1|1||||ENG|UTF-8|Y|Y|||\n"
        "|C8|GS_2026|GS|Gold Standard|GS||||||||3|1|1||||ENG|UTF-8|Y|Y|||\n"
    )
    import_terminology("rxnorm", tmp_path, tmp_path / "rxnorm")
    multum = {"source": "MMSL", "name": "Multum MediSource Lexicon", "version": "MMSL_2026", "restriction_level": "1"}
    assert vocabularies_of(tmp_path / "rxnorm") == [multum, {"source": "RXNORM", "restriction_level": ""}]


def test_a_release_that_gives_no_level_is_not_taken_as_free(tmp_path: Path) -> None:
    for name, text in RXNORM_TABLES.items():
        (tmp_path / f"{name}.RRF").write_text(text)
    import_terminology("rxnorm", tmp_path, tmp_path / "rxnorm")
    assert {one["restriction_level"] for one in vocabularies_of(tmp_path / "rxnorm")} == {""}
    assert str(Terminology.open(tmp_path / "rxnorm").info()).endswith("level not known of MMSL, RXNORM")


def test_what_is_made_of_it_tells_it_too(umls: Path, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("code,label\nX1,Heart attack\n")
    options = {"id": "code", "name": "label"}
    import_terminology("table", tmp_path / "own.csv", tmp_path / "own", options=options, licence=" in the \n house ")
    merge_terminologies([tmp_path / "own", umls], tmp_path / "merged")
    enrich_terminology(tmp_path / "own", [umls], tmp_path / "enriched")
    export_terminology(tmp_path / "merged", "csv", tmp_path / "csv")
    import_terminology("csv", tmp_path / "csv", tmp_path / "again")
    for made in ("merged", "enriched", "csv", "again"):
        own, release = origins_of(read_manifest(tmp_path / made).config)
        assert (own["source"], own["licence"]) == ("own.csv", "in the house"), made
        assert set(own["source_files"]) == {"own.csv"}
        assert (release["source"], release["format"]) == ("2026AA", "umls"), made
        assert "licence" not in release
        assert release["usual_licence"].startswith("UMLS Metathesaurus licence")
        assert release["source_vocabularies"] == [MEDDRA, MESH, NEW, SNOMED], made
    merge_terminologies([tmp_path / "merged", umls], tmp_path / "twice")
    assert len(origins_of(read_manifest(tmp_path / "twice").config)) == 2
    export_terminology(tmp_path / "merged", "umls", tmp_path / "rrf")
    fields = [line.split("|") for line in (tmp_path / "rrf" / "MRCONSO.RRF").read_text().splitlines()]
    assert {(row[11], row[15]) for row in fields} == {
        ("", ""), ("SNOMEDCT_US", "9"), ("MDRGER", "3"), ("MSH", "0"), ("NEW", "2"),
    }  # fmt: skip
    import_terminology("umls", tmp_path / "rrf", tmp_path / "back")
    assert vocabularies_of(tmp_path / "back") == [MEDDRA, MESH, NEW, SNOMED]


def test_information_for_a_person(umls: Path, tmp_path: Path) -> None:
    told = str(Terminology.open(umls).info())
    assert "read from          2026AA (umls), licence: not said; usually UMLS Metathesaurus licence" in told
    assert "restricted         MDRGER (level 3), NEW (level 2), SNOMEDCT_US (level 9): see section 12" in told
    import_terminology("umls", tmp_path / "2026AA", tmp_path / "free", options={"sources": "MSH"}, licence="ours")
    told = str(Terminology.open(tmp_path / "free").info())
    assert "licence: ours" in told
    assert "restricted" not in told
    (tmp_path / "2026AA" / "MRSAB.RRF").unlink()
    (tmp_path / "2026AA" / "MRCONSO.RRF").write_text(MRCONSO.replace("|2|N||", "||N||"))
    licence = "ours\udce9"  # a byte that is no UTF-8, as Python has it of a command line
    import_terminology("umls", tmp_path / "2026AA", tmp_path / "odd", licence=licence)
    told = str(Terminology.open(tmp_path / "odd").info())
    assert "licence: ours\\xe9" in told
    assert told.endswith("appendices; level not known of NEW")


OF_ITSELF = {
    "obo": """\
format-version: 1.2
data-version: small/releases/2026-10-01
property_value: dc:rights "Jane Doe" xsd:string
property_value: dcterms:license https://creativecommons.org/licenses/by/4.0/
property_value: owl:versionInfo "2026-10-01" xsd:string

[Term]
id: A:1
name: gout
""",
    "obographs": json.dumps(
        {
            "graphs": [
                {
                    "id": "http://example.org/small.json",
                    "meta": {
                        "version": "http://example.org/releases/2026-10-01/small.json",
                        "basicPropertyValues": [
                            {"pred": "http://www.w3.org/2002/07/owl#versionInfo", "val": "2026-10-01"},
                            {
                                "pred": "http://purl.org/dc/terms/license",
                                "val": "https://creativecommons.org/licenses/by/4.0/",
                            },
                        ],
                    },
                    "nodes": [{"id": "http://purl.obolibrary.org/obo/A_1", "lbl": "gout", "type": "CLASS"}],
                    "edges": [],
                }
            ]
        }
    ),
    "owl": """\
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix dcterms: <http://purl.org/dc/terms/> .
<http://purl.obolibrary.org/obo/A_1> a owl:Class ; rdfs:label "gout" ; dcterms:license <http://example.org/other> .
<http://example.org/small.owl> dcterms:license <https://creativecommons.org/licenses/by/4.0/> ; dcterms:rights "Jane" ;
    owl:versionIRI <http://example.org/releases/2026-10-01/small.owl> ; owl:versionInfo " 2026-10-01 " ;
    a owl:Ontology .
""",
}
ENDINGS = {"obo": "obo", "obographs": "json", "owl": "ttl"}


@pytest.mark.parametrize("format", OF_ITSELF)
def test_release_and_licence_that_an_ontology_states(format: str, tmp_path: Path) -> None:
    source = tmp_path / f"small.{ENDINGS[format]}"
    source.write_text(OF_ITSELF[format])
    import_terminology(format, source, tmp_path / "out")
    (origin,) = origins_of(read_manifest(tmp_path / "out").config)
    assert (origin["release"], origin["licence"]) == ("2026-10-01", "https://creativecommons.org/licenses/by/4.0/")
    told = str(Terminology.open(tmp_path / "out").info())
    assert f"({format}, release 2026-10-01), licence: https://creativecommons.org/licenses/by/4.0/" in told
    import_terminology(format, source, tmp_path / "given", licence="ours")
    assert origins_of(read_manifest(tmp_path / "given").config)[0]["licence"] == "ours"


def test_release_and_licence_of_orphanet(tmp_path: Path) -> None:
    (tmp_path / "en_product1.xml").write_text(orphanet_file(disorder("1", "Marfan syndrome", ["MFS"])))
    import_terminology("orphanet", tmp_path / "en_product1.xml", tmp_path / "out")
    (origin,) = origins_of(read_manifest(tmp_path / "out").config)
    assert (origin["release"], origin["licence"]) == ("2025-12-09", "CC-BY-4.0")


@pytest.mark.parametrize(
    ("format", "write", "release", "without"),
    [
        ("mesh", write_text("desc2026.xml", sample_xml.MESH), "2026", ("desc2026", "headings")),
        ("icd10cm", write_text("t.xml", sample_xml.ICD10CM), "2026", ("<version>2026</version>", "")),
        ("claml", write_text("t.xml", sample_xml.CLAML), "2019", (' version="2019" date="2018-10-01"', "")),
        ("claml", write_text("t.xml", sample_xml.CLAML.replace(' version="2019"', "")), "2018-10-01", (" date", " d")),
        ("ctd", write_text("c.csv", CTD_CSV), "Tue Oct 29 10:41:05 EDT 2024", ("Report created", "Rows")),
        ("snomed", lambda folder: write_rf2(folder, CONTENT), "INT_20240101", ("_20240101", "")),
    ],
)
def test_release_in_the_file_or_its_name(
    format: str, write: Callable[[Path], str | Path], release: str, without: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    source = Path(write(tmp_path / "source"))
    import_terminology(format, source, tmp_path / "out")
    assert origins_of(read_manifest(tmp_path / "out").config)[0]["release"] == release
    for file in [path for path in (tmp_path / "source").rglob("*") if path.is_file()]:
        file.write_text(file.read_text(encoding="utf-8").replace(*without), encoding="utf-8")
        file.rename(file.with_name(file.name.replace(*without)))
    import_terminology(format, source.with_name(source.name.replace(*without)), tmp_path / "without")
    assert "release" not in origins_of(read_manifest(tmp_path / "without").config)[0]


def test_release_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "mesh").mkdir()
    (tmp_path / "mesh" / "fredesc2025.xml").write_text(mesh_file(mesh_record("D1", "a", mesh_concept("M1", ["a"]))))
    supplementary = mesh_record("C1", "b", mesh_concept("M2", ["b"]), kind="Supplemental")
    (tmp_path / "mesh" / "supp2026.xml").write_text(mesh_file(supplementary, kind="Supplemental"))
    import_terminology("mesh", tmp_path / "mesh", tmp_path / "out")
    assert origins_of(read_manifest(tmp_path / "out").config)[0]["release"] == "2025, 2026"
    rows = {"sct2_Concept": [("501002", "20200131", "1", "900000000000074008")]}
    write_rf2(write_rf2(tmp_path / "rf2", CONTENT, "Full"), rows, "Full", "XX1000999")
    import_terminology("snomed", tmp_path / "rf2", tmp_path / "both", options={"date": "20220601"})
    release = "INT_20240101, XX1000999_20240101, as of 20220601"
    assert origins_of(read_manifest(tmp_path / "both").config)[0]["release"] == release


def test_a_diff_says_which_releases_it_compares(tmp_path: Path) -> None:
    for year in ("2025", "2026"):
        write_text(f"desc{year}.xml", sample_xml.MESH)(tmp_path)
        import_terminology("mesh", tmp_path / f"desc{year}.xml", tmp_path / year)
    (tmp_path / "own.csv").write_text("code,label\nX:1,Heart attack\n")
    import_terminology("table", tmp_path / "own.csv", tmp_path / "own", options={"id": "code", "name": "label"})
    found = diff_terminologies(tmp_path / "2025", tmp_path / "2026")
    assert found.figures()["releases"] == ["2025", "2026"]
    assert str(found).startswith(f"{tmp_path}/2025 (release 2025) -> {tmp_path}/2026 (release 2026): 3 -> 3 concepts")
    assert str(diff_terminologies(tmp_path / "2025", tmp_path / "own")).startswith(
        f"{tmp_path}/2025 (release 2025) -> {tmp_path}/own: "
    )


def test_a_release_without_a_word_for_it(tmp_path: Path) -> None:
    for format, gone in (
        ("obo", 'property_value: owl:versionInfo "2026-10-01" xsd:string\n'),
        ("owl", 'owl:versionInfo " 2026-10-01 " ;'),
    ):
        source = tmp_path / f"small.{ENDINGS[format]}"
        source.write_text(OF_ITSELF[format].replace(gone, "").replace("license", "contributor"))
        import_terminology(format, source, tmp_path / format)
        (origin,) = origins_of(read_manifest(tmp_path / format).config)
        assert "licence" not in origin
        assert origin["release"].split("releases/")[1].startswith("2026-10-01")


def test_vocabularies_of_a_download_of_omop(tmp_path: Path) -> None:
    vocabularies = [
        ("None", "OMOP Standardized Vocabularies", "OMOP generated", "v5.0 31-AUG-26", "44819096"),
        ("RxNorm", "RxNorm (NLM)", "http://www.nlm.nih.gov", "RxNorm 20260803", "44819104"),
        ("SNOMED", "SNOMED CT", "http://www.snomed.org", "2026-02-01", "44819097"),
        ("LOINC", "LOINC", "http://loinc.org", "", "44819102"),
    ]
    concepts = [
        concept("1", "aspirin", "RxNorm", "1191"), concept("2", "gout", "SNOMED", "3"), concept("3", "pH", "LOINC", "4")
    ]  # fmt: skip
    write_omop(tmp_path, {"CONCEPT": concepts})
    import_terminology("omop", tmp_path, tmp_path / "without")
    assert vocabularies_of(tmp_path / "without") == []
    lines = ["\t".join(row) for row in vocabularies]
    heading = "vocabulary_id\tvocabulary_name\tvocabulary_reference\tvocabulary_version\tvocabulary_concept_id"
    (tmp_path / "VOCABULARY.csv").write_text("\n".join([heading, *lines, ""]))
    import_terminology("omop", tmp_path, tmp_path / "some", options={"vocabularies": "RxNorm,LOINC"})
    assert vocabularies_of(tmp_path / "some") == [
        {"source": "RxNorm", "name": "RxNorm (NLM)", "version": "RxNorm 20260803"},
        {"source": "LOINC", "name": "LOINC"},
    ]
    told = str(Terminology.open(tmp_path / "some").info())
    assert "release v5.0 31-AUG-26" in told
    assert "level" not in told, "of UMLS and RxNorm alone"
