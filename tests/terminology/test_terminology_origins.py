"""What a terminology and all that is made of it say of licences, releases and source vocabularies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sample_rrf import RXNORM_TABLES

from onoma.artifacts import origins_of, read_manifest
from onoma.terminology import Terminology, export_terminology, import_terminology, merge_terminologies
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


def vocabularies(folder: Path) -> list[dict[str, Any]]:
    origins = origins_of(read_manifest(folder).config)
    return [one for origin in origins for one in origin.get("source_vocabularies", ())]


def test_source_vocabularies_of_what_was_kept(umls: Path, tmp_path: Path) -> None:
    assert vocabularies(umls) == [MEDDRA, MESH, NEW, SNOMED]
    for options in ({"languages": "en"}, {"codes": "MSH,SNOMEDCT_US,NEW", "languages": "en"}):
        import_terminology("umls", tmp_path / "2026AA", tmp_path / "some", options=options, overwrite=True)
        assert vocabularies(tmp_path / "some") == [MESH, NEW, SNOMED]
    (tmp_path / "2026AA" / "MRSAB.RRF").unlink()
    import_terminology("umls", tmp_path / "2026AA", tmp_path / "some", overwrite=True)
    levels = {one["source"]: one["restriction_level"] for one in vocabularies(tmp_path / "some")}
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
    assert vocabularies(tmp_path / "rxnorm") == [multum, {"source": "RXNORM"}]


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
    assert vocabularies(tmp_path / "back") == [MEDDRA, MESH, NEW, SNOMED]


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
