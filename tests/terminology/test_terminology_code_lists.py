"""Lists of codes in the layouts in which their publishers give them: every command of docs/terminologies.md."""

from __future__ import annotations

import gzip
import re
import shlex
from pathlib import Path

import pytest
from importing import named
from sample_xml import claml_class, claml_file
from typer.testing import CliRunner

from onoma.cli.app import app
from onoma.terminology import Terminology, import_terminology


def _tabbed(*rows: str) -> str:
    return "".join("\t".join(row.split(" ; ")) + "\n" for row in rows)


def _placed(*lines: str) -> str:
    """Lines whose cells have their places: what stands first, then others with the place from which they stand."""
    written = ""
    for line in lines:
        first, *cells = line.split(" ; ")
        for place, cell in (one.split(":", 1) for one in cells):
            first = first.ljust(int(place) - 1) + cell
        written += first + "\n"
    return written


PUBLISHED = {
    "hgnc_complete_set.txt": _tabbed(
        "hgnc_id ; symbol ; name ; status ; alias_symbol ; alias_name ; prev_symbol ; prev_name",
        'HGNC:5 ; A1BG ; alpha-1-B glycoprotein ; Approved ; "A1B|ABG" ;  ;  ; ',
    ),
    "Homo_sapiens.gene_info.gz": _tabbed(
        "#tax_id ; GeneID ; Symbol ; LocusTag ; Synonyms ; Full_name_from_nomenclature_authority ; Other_designations",
        "9606 ; 1 ; A1BG ; - ; A1B|ABG ; alpha-1-B glycoprotein ; -",
        "9606 ; 3 ; A2MP1 ; - ; - ; - ; pregnancy-zone protein pseudogene",
    ),
    "Loinc.csv": '"LOINC_NUM","CLASS","STATUS","CONSUMER_NAME","SHORTNAME","LONG_COMMON_NAME"\n'
    '"2093-3","CHEM","ACTIVE","","Cholest SerPl-mCnc","Cholesterol [Mass/volume] in Serum or Plasma"\n'
    '"1-8","CHEM","TRIAL","Acyclovir","",""\n"2-9","CHEM","DEPRECATED","","","Old"\n',
    "SimpleTabulation-ICD-11-MMS-en.txt": "\ufeff"
    + _tabbed(
        "Foundation URI ; Linearization URI ; Code ; BlockId ; Title ; ClassKind ; BrowserLink",
        'http://id/1 ; http://l/1 ;  ;  ; "Certain infectious diseases" ; chapter ; "=hyperlink(""x"",""browser"")"',
        'http://id/2 ; http://l/2 ; 1A00 ;  ; "- - - Cholera" ; category ; "=hyperlink(""x"",""browser"")"',
        ' ; http://l/3 ; 1A0Y ;  ; "- - Cholera, ""other""" ; category ; "x"',
    ),
    "icd10gm2024alpha_edvtxt_20230929.txt": "1|12|1|M54.9-||||Rückenschmerzen\r\n0|13|1|||||Kreuzweh - s.a. Schmerz\r\n"
    '2|14|0|A17.0+|G01*|||Tuberkulöse "Hirnhaut"entzündung\r\n5|15|1|||Z33!||Schwangerschaft\r\n'
    "1|16|1|E11.90||||Altersdiabetes\r\n",
    "pt.asc": '10081988$Hypersensitivity pneumonitis$$10038738$$$$$$$\n10000002$11-beta "x" deficiency$$1$$$$$$$\n',
    "llt.asc": "10000001$Ventilation pneumonitis$10081988$$$$$$$Y$$\n10000002$11-beta deficiency$10000002$$$$$$$N$$\n",
    "MRK_List2.rpt": _tabbed(
        "MGI Accession ID ; Chr ; Marker Symbol ; Status ; Marker Name ; Marker Type ; Feature Type ; "
        "Marker Synonyms (pipe-separated)",
        "MGI:1 ; 2 ; Abc1 ; O ; a cassette, 1 ; Gene ; protein coding gene ; Abc|b'c",
        'MGI:2 ; UN ; Def2 ; O ; "def" like ; Gene ; pseudogene ; ',
    ),
    "aliases.txt": "MI0000001\tcel-let-7;cel-let-7L;\nMIMAT0000001\tcel-let-7-5p;\n",
    "icd10cm_order_2026.txt": _placed(
        "00001 A00     0 ; 17:Cholera ; 78:Cholera",
        "00002 A000    1 ; 17:Cholera due to V. cholerae 01, bv cholerae ; 78:Cholera due to Vibrio cholerae 01, "
        "biovar cholerae, and so on beyond the end of the others",
    ),
    "CMS32_DESC_LONG_DX.txt": "0010  Cholera due to one\n38600 Ménière's disease\nE8000 Railway accident\n",
    "mimTitles.txt": "# Copyright (c) 1966-2026\t\t\t\t\n# Generated: 2026-01-01\n"
    + _tabbed(
        "# Prefix ; MIM Number ; Preferred Title; symbol ; Alternative Title(s); symbol(s) ; Included Title(s)",
        "Number Sign ; 100800 ; ACHONDROPLASIA; ACH ; DWARFISM, SHORT;; CHONDRODYSTROPHIA; CDS ; OTHERS, INCLUDED",
        "NULL ; 100050 ; AARSKOG SYNDROME ;  ; ",
        "Caret ; 100500 ; MOVED TO 200150 ;  ; ",
    )
    + "#\n# Asterisk (*)  Gene\n",
    "Thesaurus.txt": _tabbed(
        'C1 ; http://n#C1 ; C2|C3 ; Cold|"Common" Cold|Cold ; Text. ; Common Cold ;  ; Disease or Syndrome|Finding ; x',
        "C2 ; http://n#C2 ;  ; Disease ;  ;  ; Header_Concept ; Disease or Syndrome ; ",
        "C3 ; http://n#C3 ;  ; Old ;  ;  ; Provisional_Concept|Retired_Concept ;  ; ",
    ),
    "NAMES.RRF.gz": '#CUI|name|source|SUPPRESS|\nC1|Fever|GTR|N|\nCN2|5" syndrome|NCBI|N|\n',
    "MGCONSO.RRF.gz": "#CUI|TS|STT|ISPREF|AUI|SAUI|SCUI|SDUI|SAB|TTY|CODE|STR|SUPPRESS|\n"
    "C1|S|VO|Y|A1||||HPO|SY|HP:1|Pyrexia|N|\nC1|P|PF|N|A2||||GTR|PT|1|Fever|N|\n",
    "frFR18LinguisticVariant.csv": '"LOINC_NUM","SHORTNAME","LONG_COMMON_NAME","LinguisticVariantDisplayName"\n'
    '"2093-3","","Cholestérol [Masse/Volume] Sérum",""\n"1-8","","",""\n',
    "drugbank vocabulary.csv": "DrugBank ID,Accession Numbers,Common name,CAS,UNII,Synonyms,Standard InChI Key\n"
    'DB1,BIOD1 | BTD1,Acid,1-2-3,U1,"2-acid, free | Acid base",KEY\nDB2,,Base,,,,\n',
    "UNII_Names.txt": _tabbed(
        "Name ; TYPE ; UNII ; Display Name", "ASPIRINE Á ; cn ; R16 ; ASPIRIN", "ASPIRIN ; of ; R16 ; ASPIRIN"
    ),
    "product.txt": _tabbed(
        "PRODUCTID ; PRODUCTNDC ; PRODUCTTYPENAME ; PROPRIETARYNAME ; PROPRIETARYNAMESUFFIX ; NONPROPRIETARYNAME",
        "0002_a ; 0002-1433 ; HUMAN PRESCRIPTION DRUG ; Crème ; Once ; dulaglutide",
        "0002_b ; 0002-1434 ; HUMAN OTC DRUG ; Crème Two ;  ; dulaglutide",
    ),
    "kegg-drugs.txt": "D00001\tWater (JP18); Purified water\nD00002\tNadide (JAN/INN)\n",
    "HCPC2026_JAN_ANWEB.txt": _placed(
        "A0021001003 ; 12:Ambulance service, outside state per mile, ; 92:Outside state ambulance serv ; 120:00",
        "A0021002004 ; 12:transport",
        "A0080001003 ; 12:Non-emergency transportation ; 92:Noninterest escort ; 120:00",
        "   A1001007 ; 12:Dressing for one wound ; 92:Dressing for one wound ; 120:00",
    ),
}
_ENCODINGS = dict.fromkeys(("CMS32_DESC_LONG_DX.txt", "product.txt", "UNII_Names.txt"), "cp1252")


def test_code_lists_as_their_publishers_give_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in PUBLISHED.items():
        data = text.encode(_ENCODINGS.get(name, "utf-8"))
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    page = (Path(__file__).parents[2] / "docs" / "terminologies.md").read_text(encoding="utf-8")
    section = page.partition("### Code lists as their publishers give them\n")[2].partition("\n## ")[0]
    commands = re.findall(r"^    onoma (.*)$", section, re.M)
    assert len(commands) == len(PUBLISHED) + 4, "and four of merge"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "icd10gm.xml").write_text(
        claml_file(
            claml_class("M54.9", "Rückenschmerzen, nicht näher bezeichnet", language="de"),
            claml_class("A17.0", "Tuberkulöse Meningitis", language="de"),
        ),
        encoding="utf-8",
    )
    import_terminology("claml", "icd10gm.xml", "icd10gm")
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
        assert result.exit_code == 0, result.output
    folders = [path.name for path in tmp_path.iterdir() if (path / "onoma.json").exists()]
    found = {name: Terminology.open(tmp_path / name) for name in folders}
    expected = {
        "hgnc": {"HGNC:5": ["A1BG", "alpha-1-B glycoprotein", "A1B", "ABG"]},
        "genes": {
            "1": ["A1BG", "alpha-1-B glycoprotein", "A1B", "ABG"],
            "3": ["A2MP1", "pregnancy-zone protein pseudogene"],
        },
        "loinc": {
            "2093-3": ["Cholesterol [Mass/volume] in Serum or Plasma", "Cholest SerPl-mCnc"],
            "1-8": ["Acyclovir"],
            "2-9": ["Old"],
        },
        "icd11": {"1A00": ["Cholera"], "1A0Y": ['Cholera, "other"']},
        "meddra": {
            "10081988": ["Hypersensitivity pneumonitis", "Ventilation pneumonitis"],
            "10000002": ['11-beta "x" deficiency', "11-beta deficiency"],
        },
        "icd10gm-names": {
            "M54.9": ["Rückenschmerzen, nicht näher bezeichnet", "Rückenschmerzen"],
            "A17.0": ["Tuberkulöse Meningitis", 'Tuberkulöse "Hirnhaut"entzündung'],
            "E11.90": ["Altersdiabetes"],
        },
        "mgi": {"MGI:1": ["Abc1", "a cassette, 1", "Abc", "b'c"], "MGI:2": ["Def2", '"def" like']},
        "mirbase": {"MI0000001": ["cel-let-7", "cel-let-7L"], "MIMAT0000001": ["cel-let-7-5p"]},
        "icd10cm": {
            "A00": ["Cholera"],
            "A000": [
                "Cholera due to Vibrio cholerae 01, biovar cholerae, and so on beyond the end of the others",
                "Cholera due to V. cholerae 01, bv cholerae",
            ],
        },
        "icd9cm": {
            "0010": ["Cholera due to one"],
            "38600": ["Ménière's disease"],
            "E8000": ["Railway accident"],
        },
        "omim": {
            "100800": ["ACHONDROPLASIA", "ACH", "DWARFISM, SHORT", "CHONDRODYSTROPHIA", "CDS"],
            "100050": ["AARSKOG SYNDROME"],
            "100500": ["MOVED TO 200150"],
        },
        "ncit": {"C1": ["Cold", '"Common" Cold', "Common Cold"], "C2": ["Disease"], "C3": ["Old"]},
        "medgen": {"C1": ["Fever", "Pyrexia"], "CN2": ['5" syndrome']},
        "drugbank": {"DB1": ["Acid", "2-acid, free", "Acid base"], "DB2": ["Base"]},
        "unii": {"R16": ["ASPIRIN", "ASPIRINE Á"]},
        "ndc": {"0002-1433": ["Crème", "dulaglutide"], "0002-1434": ["Crème Two", "dulaglutide"]},
        "kegg": {"D00001": ["Water (JP18)", "Purified water"], "D00002": ["Nadide (JAN/INN)"]},
        "hcpcs": {
            "A0021": ["Ambulance service, outside state per mile, transport", "Outside state ambulance serv"],
            "A0080": ["Non-emergency transportation", "Noninterest escort"],
            "A1": ["Dressing for one wound"],
        },
    }
    parts = {
        "meddra-pt",
        "meddra-llt",
        "medgen-names",
        "medgen-synonyms",
        "loinc-fr",
        "loinc-all",
        "icd10gm",
        "icd10gm-alpha",
    }
    assert set(found) == expected.keys() | parts
    assert {name: named(found[name]) for name in expected} == expected
    assert named(found["loinc-all"])["2093-3"][-1] == "Cholestérol [Masse/Volume] Sérum"
    assert named(found["loinc-fr"]) == {"2093-3": ["Cholestérol [Masse/Volume] Sérum"]}
    retired = {
        name: found[name].concepts().collect().filter(status="obsolete")["concept_id"].to_list() for name in expected
    }
    assert {name: codes for name, codes in retired.items() if codes} == {
        "loinc": ["2-9"],
        "omim": ["100500"],
        "ncit": ["C3"],
    }
    assert found["meddra"].concept("10081988").preferred_name == "Hypersensitivity pneumonitis"
    assert found["medgen"].concept("C1").preferred_name == "Fever"
    assert found["ncit"].concept("C1").semantic_types == ("Disease or Syndrome", "Finding")
    assert found["ncit"].relations().select("head_row", "relation", "tail_row").collect().rows() == [
        (0, "is_a", 1),
        (0, "is_a", 2),
    ]
    assert found["ncit"].definitions().collect()["text"].to_list() == ["Text."]
