"""The UMLS by the codes of its sources."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from test_terminology_umls import read
from test_terminology_umls_concepts import named

from onoma.errors import InputError
from onoma.terminology import Terminology
from onoma.terminology.readers import rrf_relations


def atom(
    aui: str, cui: str, text: str, sab: str, code: str, tty: str = "PT", lat: str = "ENG", suppress: str = "N"
) -> str:
    return f"{cui}|{lat}|P|L1|PF|S1|Y|{aui}||||{sab}|{tty}|{code}|{text}|0|{suppress}||\n"


def related(aui1: str, rela: str, aui2: str, cui1: str = "C1", cui2: str = "C2", sab: str = "SNOMEDCT_US") -> str:
    return f"{cui1}|{aui1}|SCUI|RO|{cui2}|{aui2}|SCUI|{rela}|R1||{sab}|{sab}||Y|N||\n"


# 22 is in C1; 56 in C1 and C2; 99 (retired) in C2; C3 has no code of SNOMED CT.
MRCONSO = (
    atom("A1", "C1", "Myocardial infarction (disorder)", "SNOMEDCT_US", "22", "FN")
    + atom("A2", "C1", "Myocardial infarction", "SNOMEDCT_US", "22")
    + atom("A3", "C1", "Heart attack", "SNOMEDCT_US", "22", "SY")
    + atom("A4", "C1", "Cardiac arrest, old", "SNOMEDCT_US", "22", "IS", suppress="O")
    + atom("A5", "C1", "Herzinfarkt", "MSHGER", "D9", "MH", lat="GER")
    + atom("A6", "C1", "Infarct of heart", "SNOMEDCT_US", "56")
    + atom("A7", "C1", "MI", "MSH", "D9", "ET")
    + atom("A8", "C2", "Infarct", "SNOMEDCT_US", "56", "SY")
    + atom("A9", "C2", "Infarction", "MSH", "D8", "MH")
    + atom("B1", "C2", "Old infarct", "SNOMEDCT_US", "99", "OAP", suppress="O")
    + atom("B2", "C2", "Metathesaurus name", "MTH", "NOCODE")
    + atom("B3", "C3", "Other", "MSH", "D7", "MH")
    + atom("B4", "C1", "No code", "SNOMEDCT_US", "NOCODE", "SY")
)
FILES = {
    "MRCONSO": MRCONSO,
    "MRSTY": "".join(f"C{n}|T04{n + 5}|A|type {n}|AT||\n" for n in (1, 2, 3)),
    "MRDEF": "C1|A7|AT||MSH|of the heart|N||\nC2|A8|AT||SNOMEDCT_US|of anything|N||\n",
    "MRREL": related("A8", "isa", "A2", "C2", "C1")  # 22 isa 56
    + related("A7", "mapped_to", "A2")
    + related("", "", "", "C1", "C2", "MTH")
    + related("A9", "related_to", "B3", "C2", "C3", "MSH"),
    "MRCUI": "C8|2000AC|SY|||C1|Y|\n",
    "MRRANK": "0400|SNOMEDCT_US|SY|N|\n0380|SNOMEDCT_US|IS|Y|\n0500|SNOMEDCT_US|PT|N|\n0450|SNOMEDCT_US|FN|N|\n"
    "0600|MSH|MH|N|\n0010|MSH|ET|N|\n",
}
OWN = {
    "22": ["Myocardial infarction", "Myocardial infarction (disorder)", "Heart attack", "Cardiac arrest, old"],
    "56": ["Infarct of heart", "Infarct"],
    "99": ["Old infarct"],
}


def relations(terminology: Terminology) -> list[str]:
    ids = terminology.concepts().collect()["concept_id"].to_list()
    rows = terminology.relations().collect().rows()
    return [f"{ids[head]} {what} {ids[tail]}" for head, what, tail, _ in rows]


def test_own_names(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, FILES, options={"codes": "SNOMEDCT_US", "codes_names": "own"})
    assert named(terminology) == OWN
    concepts = terminology.concepts().select("concept_id", "preferred_name", "status", "semantic_types").collect()
    assert concepts.rows() == [
        ("22", "Myocardial infarction", "active", ["type 1"]),
        ("56", "Infarct of heart", "active", ["type 1", "type 2"]),
        ("99", "Old infarct", "obsolete", ["type 2"]),
    ]
    assert relations(terminology) == ["22 isa 56"]
    definitions = terminology.definitions().select("concept_row", "text", "source").collect()
    assert definitions.rows() == [(1, "of anything", "SNOMEDCT_US")]
    assert terminology.cross_references().select("concept_row", "code", "relation").collect().rows() == [
        (0, "UMLS:C1", "exactMatch"),
        (1, "UMLS:C1", "xref"),
        (1, "UMLS:C2", "xref"),
        (2, "UMLS:C2", "exactMatch"),
    ]
    assert report.n_rejected == 0
    assert report.notes["atoms of the chosen sources that have no code"] == 1
    assert report.notes["relations that are not between the chosen codes"] == 3


def test_names_of_the_concept(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, FILES, options={"codes": "SNOMEDCT_US"})
    found = named(terminology)
    all_of_c1 = {row.split("|")[14] for row in MRCONSO.splitlines() if row.startswith("C1|")}
    all_of_c2 = {row.split("|")[14] for row in MRCONSO.splitlines() if row.startswith("C2|")}
    assert {code: set(names) for code, names in found.items()} == {
        "22": all_of_c1,
        "56": all_of_c1 | all_of_c2,
        "99": all_of_c2,
    }
    # The code's own names come first in the choice, even if the others are better in every other way.
    assert [names[0] for names in found.values()] == ["Myocardial infarction", "Infarct of heart", "Old infarct"]
    assert terminology.definitions().select("concept_row", "text").collect().rows() == [
        (0, "of the heart"),
        (1, "of the heart"),
        (1, "of anything"),
        (2, "of anything"),
    ]
    names = terminology.names().filter(pl.col("text") == "Herzinfarkt").collect()
    assert names.select("language", "source", "term_type").rows() == [("de", "MSHGER", "MH")] * 2


def test_without_mrrank_the_order_of_the_cui_counts(tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if name != "MRRANK"}
    terminology, _ = read(tmp_path, files, options={"codes": "SNOMEDCT_US", "codes_names": "own"})
    assert terminology.concepts().collect()["preferred_name"][0] == "Myocardial infarction (disorder)"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"languages": "de"}, {"22": ["Herzinfarkt"], "56": ["Herzinfarkt"]}),
        ({"languages": "de", "codes_names": "own"}, None),
        ({"suppress": "N", "codes_names": "own"}, {"22": OWN["22"][:3], "56": OWN["56"]}),
        ({"term_types": "IS,OAP", "codes_names": "own"}, {"22": ["Cardiac arrest, old"], "99": ["Old infarct"]}),
        ({"sources": "MSH"}, {"22": ["MI"], "56": ["MI", "Infarction"], "99": ["Infarction"]}),
        ({"semantic_types": "type 2", "codes_names": "own"}, {"56": OWN["56"], "99": OWN["99"]}),
    ],
)
def test_filters(options: dict[str, str], expected: dict[str, list[str]] | None, tmp_path: Path) -> None:
    options = {"codes": "SNOMEDCT_US", **options}
    if expected is None:
        with pytest.raises(InputError, match="no concept with a name"):
            read(tmp_path, FILES, options=options)
        return
    terminology, report = read(tmp_path, FILES, options=options)
    assert named(terminology) == expected
    assert report.n_rejected == 0


def test_several_sources(tmp_path: Path) -> None:
    options = {"codes": "SNOMEDCT_US,MSH", "codes_names": "own", "cross_references": "yes"}
    terminology, _ = read(tmp_path, FILES, options=options)
    assert list(named(terminology)) == ["22", "56", "D9", "D8", "99", "D7"]
    assert relations(terminology) == ["22 isa 56", "22 mapped_to D9", "D7 related_to D8"]
    rows = terminology.cross_references().filter(pl.col("concept_row") == 0).select("code", "relation").collect().rows()
    # 56 lies in two CUIs, so what it means is not sure; D9 of MSHGER is another source's.
    assert rows == [
        ("UMLS:C1", "exactMatch"),
        ("MSHGER:D9", "exactMatch"),
        ("SNOMEDCT_US:56", "xref"),
        ("MSH:D9", "exactMatch"),
    ]


def test_codes_that_two_sources_share(tmp_path: Path) -> None:
    options = {"codes": "MSH,MSHGER", "codes_names": "own"}
    with pytest.raises(InputError, match=r"MSH and MSHGER share the code 'D9'.*shared_codes=merge"):
        read(tmp_path, FILES, options=options)
    files = {**FILES, "MRREL": FILES["MRREL"] + related("A5", "translation_of", "A7", "C1", "C1", "MSHGER")}
    merged, report = read(tmp_path, files, options={**options, "shared_codes": "merge"})
    assert named(merged)["D9"] == ["MI", "Herzinfarkt"]
    assert relations(merged) == ["D7 related_to D8"]
    assert report.notes["relations between atoms of one code, left out"] == 1
    prefixed, _ = read(tmp_path, FILES, options={**options, "shared_codes": "prefix"})
    assert named(prefixed) == {
        "MSHGER:D9": ["Herzinfarkt"],
        "MSH:D9": ["MI"],
        "MSH:D8": ["Infarction"],
        "MSH:D7": ["Other"],
    }
    assert relations(prefixed) == ["MSH:D7 related_to MSH:D8"]
    with pytest.raises(InputError, match=r"nothing of 'MSHGRE'\. Did you mean 'MSHGER'"):
        read(tmp_path, FILES, options={"codes": "MSHGRE"})


DRUGS = {
    "MRCONSO": atom("A1", "C1", "ibuprofen", "SNOMEDCT_US", "38")
    + atom("A2", "C1", "ibuprofen", "RXNORM", "5640", "IN")
    + atom("A3", "C2", "Advil", "RXNORM", "153010", "BN")
    + atom("A4", "C2", "ADVIL", "CHV", "1", "SY"),
    "MRREL": related("A2", "tradename_of", "A3", sab="RXNORM"),
}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"codes": "SNOMEDCT_US"}, {"38": ["ibuprofen", "ibuprofen", "Advil", "ADVIL"]}),
        ({"codes": "SNOMEDCT_US", "codes_names": "own"}, {"38": ["ibuprofen"]}),
        ({"codes": "RXNORM", "codes_names": "own"}, {"5640": ["ibuprofen", "Advil"], "153010": ["Advil"]}),
        (
            {"codes": "RXNORM"},
            {"5640": ["ibuprofen", "ibuprofen", "Advil", "ADVIL"], "153010": ["Advil", "ADVIL"]},
        ),
    ],
)
def test_trade_names(options: dict[str, str], expected: dict[str, list[str]], tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, DRUGS, options={"trade_names": "yes", **options})
    assert named(terminology) == expected
    assert terminology.concepts().collect()["preferred_name"].to_list() == [names[0] for names in expected.values()]


def test_absurdly_many_names_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [atom(f"A{n}", "C1", f"name {n}", "S", str(n)) for n in range(40)]
    monkeypatch.setattr(rrf_relations, "MAX_NAMES", 40 * 40 - 1)
    with pytest.raises(InputError, match="1,600 names"):
        read(tmp_path, {"MRCONSO": "".join(rows)}, options={"codes": "S"})
    monkeypatch.setattr(rrf_relations, "MAX_NAMES", 40 * 40)
    assert read(tmp_path, {"MRCONSO": "".join(rows)}, options={"codes": "S"})[0].n_names == 1600


def test_bad_rank(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="field RANK"):
        read(tmp_path, {**FILES, "MRRANK": "best|SNOMEDCT_US|PT|N|\n"}, options={"codes": "SNOMEDCT_US"})
