"""CTD's vocabularies: the head, columns by name, lists in cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sample_tables import CTD_CSV, CTD_FIELDS, CTD_HEAD, CTD_TSV, csv_text
from small_terminologies import content

from onoma.errors import InputError
from onoma.terminology import ImportReport, import_terminology

CHEMICAL_FIELDS = ["ChemicalName", "ChemicalID", "CasRN", "PubChemCID", "PubChemSID", "DTXSID", "InChIKey",
                   "Definition", "ParentIDs", "TreeNumbers", "ParentTreeNumbers", "MESHSynonyms",
                   "CTDCuratedSynonyms"]  # fmt: skip


def read(tmp_path: Path, name: str, text: str, on_error: Any = "strict") -> ImportReport:
    (tmp_path / name).write_bytes(text.encode())
    return import_terminology("ctd", tmp_path / name, tmp_path / "out", on_error=on_error, overwrite=True)


def diseases(*rows: dict[str, str], fields: list[str] = CTD_FIELDS) -> str:
    return CTD_HEAD.format(",".join(fields)) + csv_text([row.get(field, "") for field in fields] for row in rows)


def test_diseases(tmp_path: Path) -> None:
    for name, text in (("x.csv", CTD_CSV), ("x.tsv", CTD_TSV)):
        read(tmp_path, name, text)
        tables = content(tmp_path / "out")
        assert tables["concepts"][0] == ("X:1", "Heart attack", ["disease"], "active", None)
        assert [row[1:5] for row in tables["names"][:2]] == [
            ("Heart attack", "en", "CTD", "label"),
            ("Myocardial infarction", "en", "CTD", "synonym"),
        ]
        assert tables["cross_references"] == [(0, "OMIM:1", "exactMatch", "CTD"), (0, "MESH:D2", "exactMatch", "CTD")]
        assert tables["relations"] == [(0, "is_a", 1, "CTD")]


def test_chemicals(tmp_path: Path) -> None:
    row = ["#1, the \"salt\"", "MESH:C1", "28227-36-3", "CID:5", "SID:6", "DTXSID7", "AB-C", "A salt.", "MESH:D9",
           "D02/C1", "D02", "salt|Salt | ", "curated|salt"]  # fmt: skip
    report = read(tmp_path, "x.csv", CTD_HEAD.format(",".join(CHEMICAL_FIELDS)) + csv_text([row]))
    tables = content(tmp_path / "out")
    assert [(text, kind) for _, text, _, _, kind, _, _ in tables["names"]] == [
        ('#1, the "salt"', "label"), ("salt", "mesh_synonym"), ("Salt", "mesh_synonym"), ("curated", "ctd_synonym"),
    ]  # fmt: skip
    assert [row[1:3] for row in tables["cross_references"]] == [
        ("CAS:28227-36-3", "xref"), ("CID:5", "xref"), ("SID:6", "xref"), ("DTXSID7", "xref"),
        ("InChIKey:AB-C", "xref"),
    ]  # fmt: skip
    assert report.notes == {
        "synonyms spelled as another name of their concept, left out": 1,
        "relations to or from terms that are not among the concepts, left out": 1,
    }


def test_hash_below_the_head_is_a_character(tmp_path: Path) -> None:
    rows = ["\t".join([name, name, *[""] * 7]) + "\n" for name in ("#1", "2#", "#3")]
    read(tmp_path, "x.tsv", CTD_HEAD.format("\t".join(CTD_FIELDS)) + "".join(rows))
    assert [row[:2] for row in content(tmp_path / "out")["concepts"]] == [("#1", "#1"), ("2#", "2#"), ("#3", "#3")]


def test_rows_of_one_code_add_up(tmp_path: Path) -> None:
    one = {"DiseaseName": "a", "DiseaseID": "M:1", "Synonyms": "b|a", "SlimMappings": "s", "Definition": "d"}
    two = {**one, "DiseaseName": "c", "AltDiseaseIDs": "O:1", "SlimMappings": "s|t"}
    other = {"DiseaseName": "z", "DiseaseID": "M:2", "ParentIDs": "M:1|M:1"}
    report = read(tmp_path, "x.csv", diseases(one, other, one, two))
    tables = content(tmp_path / "out")
    assert tables["concepts"] == [("M:1", "a", ["s", "t"], "active", None), ("M:2", "z", [], "active", None)]
    assert [row[1] for row in tables["names"]] == ["a", "b", "c", "z"]
    assert len(tables["definitions"]) == len(tables["relations"]) == len(tables["cross_references"]) == 1
    assert report.notes["definitions given more than once"] == 2


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    fields = ["DiseaseID", "New", "DiseaseName"]
    report = read(tmp_path, "x.csv", diseases({"DiseaseID": "M:1", "DiseaseName": "a", "New": "?"}, fields=fields))
    assert report.notes == {"columns that are not read: New": 1}
    read(tmp_path, "x.csv", 'DiseaseName,DiseaseID\n"a, b",M:1\n')  # without comments, as some pass it on
    assert content(tmp_path / "out")["concepts"][0][:2] == ("M:1", "a, b")


@pytest.mark.parametrize(
    ("bad", "problem"),
    [("a,M:1\n", "wrong number of fields"), (",M:1,,,,,,,\n", "field DiseaseName"), ("a, ,,,,,,,\n", "field DiseaseID"),
     ('"a"b,M:1,,,,,,,\n', "not CSV")],
)  # fmt: skip
def test_bad_rows(bad: str, problem: str, tmp_path: Path) -> None:
    text = diseases({"DiseaseName": "a\nb", "DiseaseID": "M:9"}) + bad + "z,M:2,,,,,,,\n"
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, "x.csv", text)
    assert caught.value.line == 9  # the row before has two lines
    assert read(tmp_path, "x.csv", text, on_error="skip").n_rejected == 1
    assert pl.read_parquet(tmp_path / "out" / "rejects.parquet")["line"].to_list() == [9]
    assert [row[0] for row in content(tmp_path / "out")["concepts"]] == ["M:9", "M:2"]


@pytest.mark.parametrize(
    "text", ["a,b\n", "# DiseaseName\n#\nx\n", "# DiseaseName,DiseaseID,DiseaseName\na,b,c\n", '"\n', "# x" * 100]
)
def test_no_head(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"names the columns|same name"):
        read(tmp_path, "x.csv", text)


def test_unclosed_quote(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="never closed") as caught:
        read(tmp_path, "x.csv", diseases({"DiseaseName": "a", "DiseaseID": "M:1"}) + '"b,M:2\n' * 3, on_error="skip")
    assert caught.value.line is not None
