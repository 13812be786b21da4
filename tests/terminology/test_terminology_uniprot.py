"""UniProt's text format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from importing import imported

from onoma.errors import InputError
from onoma.files.text_files import BLOCK_BYTES
from onoma.terminology import ImportReport, Terminology

ENTRIES = """\
ID   ABC_HUMAN               Reviewed;         393 AA.
AC   P00001; Q15086; Q15087;
AC   Q15088;
DT   13-AUG-1987, integrated into UniProtKB/Swiss-Prot.
DE   RecName: Full=Cellular antigen; abc {ECO:0000305|PubMed:1};
DE            Short=CA-1 {ECO:0000303|PubMed:2, ECO:0000303|PubMed:3};
DE            EC=1.2.3.4 {ECO:0000269|PubMed:4};
DE   AltName: Full=NAD(+) "carrier";
DE            Short=NC;
DE   AltName: CD_antigen=CD999;
DE   AltName: Allergen=Abc a 1;
DE   Contains:
DE     RecName: Full=Part;
DE              Short=P;
DE   Flags: Precursor;
GN   Name=ABC1 {ECO:0000303|PubMed:2}; Synonyms=P53 {ECO:1, ECO:2},
GN   X1; OrderedLocusNames=b0001;
GN   and
GN   Name=ABC2; ORFNames=F1.2;
OS   Homo sapiens
OS   (Human).
OX   NCBI_TaxID=9606 {ECO:1};
CC   -!- FUNCTION: DE and AC
SQ   SEQUENCE   393 AA;  43653 MW;  AD5C149FD8106131 CRC64;
     MEEPQSDPSV EPPLSQETFS
//
ID   X_MOUSE               Unreviewed;         393 AA.
AC   Q00001; Q15088; P00001;
DE   SubName: Full=Uncharacterized protein;
OS   Mus musculus (Mouse).
OX   NCBI_TaxID=10090;
//
"""


def read(tmp_path: Path, text: str, /, *, on_error: str = "strict", **options: Any) -> tuple[Terminology, ImportReport]:
    (tmp_path / "x.dat").write_text(text, encoding="utf-8")
    return imported("uniprot", tmp_path / "x.dat", tmp_path / "out", on_error=on_error, **options)


def test_every_line(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, ENTRIES)
    assert terminology.names().select("concept_row", "term_type", "text").collect().rows() == [
        (0, "recommended_name", "Cellular antigen; abc"),
        (0, "recommended_name_short", "CA-1"),
        (0, "alternative_name", 'NAD(+) "carrier"'),
        (0, "alternative_name_short", "NC"),
        (0, "cd_antigen", "CD999"),
        (0, "allergen", "Abc a 1"),
        (0, "gene_name", "ABC1"),
        (0, "gene_synonym", "P53"),
        (0, "gene_synonym", "X1"),
        (0, "ordered_locus_name", "b0001"),
        (0, "gene_name", "ABC2"),
        (0, "orf_name", "F1.2"),
        (1, "submitted_name", "Uncharacterized protein"),
    ]
    assert terminology.concepts().collect().rows() == [
        ("P00001", "Cellular antigen; abc", ["Homo sapiens (Human)"], "active", None),
        ("Q00001", "Uncharacterized protein", ["Mus musculus (Mouse)"], "active", None),
        ("Q15086", "", [], "obsolete", "P00001"),
        ("Q15087", "", [], "obsolete", "P00001"),
        ("Q15088", "", [], "obsolete", None),
    ]
    assert terminology.relations().collect().rows() == [
        (4, "consider", 0, "UniProt"),
        (4, "consider", 1, "UniProt"),
    ]
    assert set(terminology.names().collect()["language"]) == {"en"}
    assert report.notes == {"concepts without a name (retired codes)": 3}


def test_organisms_and_genes(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, ENTRIES, taxa="10090", genes="no")
    assert terminology.concepts().collect()["concept_id"].to_list() == ["Q00001", "Q15088", "P00001"]
    assert report.notes["entries of other organisms, left out"] == 1
    terminology, _ = read(tmp_path, ENTRIES, genes="no")
    assert not any(kind.startswith(("gene", "or")) for kind in terminology.names().collect()["term_type"])
    with pytest.raises(InputError, match=r"the file has nothing of '10091'\. .* some of 10090, 9606"):
        read(tmp_path, ENTRIES, taxa="9606,10091")


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("AC   Q00001; Q15088; P00001;\n", "", 27, "field AC: .*an accession"),
        ("DE   SubName: Full=Uncharacterized protein;\n", "", 27, "an entry without name"),
        ("AC   Q00001; Q15088;", "AC   P00001;", 27, "two entries have one accession"),
        ("NCBI_TaxID=10090;\n//\n", "NCBI_TaxID=10090;\n", 27, "the last entry does not end; expected a line //"),
    ],
)
def test_bad_entries(old: str, new: str, line: int, problem: str, tmp_path: Path) -> None:
    assert ENTRIES.count(old) == 1
    text = ENTRIES.replace(old, new)
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, text)
    assert caught.value.line is not None
    assert line <= caught.value.line <= line + 1
    terminology, report = read(tmp_path, text, on_error="skip")
    assert (report.n_rejected, terminology.concept("P00001").status) == (1, "active")
    assert "Uncharacterized protein" not in terminology.names().collect()["text"].to_list()


def test_entries_across_blocks(tmp_path: Path) -> None:
    n_entries = 5 * BLOCK_BYTES // (2 * 1000)
    filling = "CC   " + "x" * 900 + "\n"
    text = "".join(
        f"ID   X{n}\nAC   P{n:06};\n{filling}DE   RecName: Full=name {n};\nGN   Name=G{n};\nOS   Homo sapiens.\n//\n"
        for n in range(n_entries)
    )
    terminology, _ = read(tmp_path, text)
    names = terminology.names().select("concept_row", "text").collect().rows()
    assert names == [(n, name) for n in range(n_entries) for name in (f"name {n}", f"G{n}")]


def test_what_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no concept with a name in it"):
        read(tmp_path, ">sp|P1|X\nMEEP\n")
