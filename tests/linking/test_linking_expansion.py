"""Short forms in mentions: expanded by definitions, which a table may give."""

from __future__ import annotations

import gzip
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.errors import InputError
from onoma.linking.expansion import AbbreviationTable, Expansion, expand, expand_with_trace
from tiny import zipped

DEFINITIONS = {
    "HCC": "hepatocellular carcinoma",
    "HD": "Huntington disease",
    "FED": "fish-eye disease",
    "G6PD": "glucose-6-phosphate dehydrogenase",
    "COPD": "chronic obstructive pulmonary disease",
    "ALL": "acute lymphoblastic leukaemia",
    "A-T": "ataxia telangiectasia",
    "Pol I": "RNA polymerase I",
    "CRCs": "colorectal cancers",
    "HDP": "HD protein",
    "СД": "сахарный диабет",
    "CD4+": "helper",
}
EXPANDED = [
    ("HCC patients", "hepatocellular carcinoma patients"),
    ("sporadic HCC", "sporadic hepatocellular carcinoma"),
    (" HCC ", " hepatocellular carcinoma "),
    ("", ""),
    # plurals, both ways
    ("HCCs", "hepatocellular carcinoma"),
    ("CRC", "colorectal cancers"),
    ("CRCs", "colorectal cancers"),
    # only as a word
    ("HCC1", "HCC1"),
    ("xHCC", "xHCC"),
    ("HCĆ HD\u0301", "HCĆ HD\u0301"),
    ("HCC-like", "hepatocellular carcinoma-like"),
    ("pre-HCC", "pre-hepatocellular carcinoma"),
    ("HD's chorea", "Huntington disease's chorea"),
    ("HCC/HD", "hepatocellular carcinoma/Huntington disease"),
    ("(HCC)", "(hepatocellular carcinoma)"),
    # the longest wins; several words; punctuation at the end
    ("A-T", "ataxia telangiectasia"),
    ("Pol I defect", "RNA polymerase I defect"),
    ("Pol II defect", "Pol II defect"),
    ("CD4+ loss", "helper loss"),
    ("CD4 loss", "CD4 loss"),
    ("CD4+T", "CD4+T"),
    # case
    ("hcc cells", "hepatocellular carcinoma cells"),
    ("hccs", "hepatocellular carcinoma"),
    ("g6pd deficiency", "glucose-6-phosphate dehydrogenase deficiency"),
    ("copd", "chronic obstructive pulmonary disease"),
    ("all", "acute lymphoblastic leukaemia"),
    ("all patients", "all patients"),
    ("Hcc", "Hcc"),
    ("СД 2 типа", "сахарный диабет 2 типа"),
    # the mention that defines its short form; the last word said twice
    ("fish-eye disease (FED)", "fish-eye disease"),
    ("Fish-Eye  disease [ FED ] carriers", "Fish-Eye  disease carriers"),
    (
        "glucose-6-phosphate dehydrogenase (G6PD; EC 1.1.1.49) deficiency",
        "glucose-6-phosphate dehydrogenase deficiency",
    ),
    ("FED (fish-eye disease)", "fish-eye disease"),
    ("HD (chorea)", "Huntington disease (chorea)"),
    ("HD disease", "Huntington disease"),
    ("HD diseases", "Huntington diseases"),
    ("HD diseased", "Huntington disease diseased"),
    # a long form with a short form in it
    ("HDP", "Huntington disease protein"),
]


@pytest.mark.parametrize(("mention", "expected"), EXPANDED)
def test_expanded(mention: str, expected: str) -> None:
    assert expand(mention, DEFINITIONS) == expected
    assert expand(expected, DEFINITIONS) == expected


def test_trace_says_what_was_expanded() -> None:
    text, trace = expand_with_trace("hccs and HDP, HCC", DEFINITIONS)
    assert text == "hepatocellular carcinoma and Huntington disease protein, hepatocellular carcinoma"
    assert trace == (
        Expansion("HCC", "hepatocellular carcinoma"),
        Expansion("HDP", "HD protein"),
        Expansion("HD", "Huntington disease"),
    )
    assert expand_with_trace("lymphoma", DEFINITIONS) == ("lymphoma", ())
    defined, in_table = {"HCCs": "liver cancers"}, {"HCC": "lung cancer", "DM": "diabetes"}
    for mention in ("HCC", "hcc", "HCCs"):  # whoever defines it first, in whatever spelling
        assert expand_with_trace(mention, defined, in_table)[0] == "liver cancers"
    assert expand_with_trace("HCC, DM", in_table, defined)[0] == "lung cancer, diabetes"


@pytest.mark.parametrize(
    "definitions", [{"AA": "x AA"}, {"AA": "BB", "BB": "AA"}, {"AA": "BB BB BB", "BB": "CC CC CC", "CC": "AA AA AA"}]
)
def test_definitions_in_a_circle_expand_nothing(definitions: dict[str, str]) -> None:
    assert expand_with_trace("the AA", definitions) == ("the AA", ())


SHORT = st.sampled_from(["AB", "A1", "ABs", "ab", "B C", "A-B", "AB C", "C+", "éB"])
LONG = st.text(st.sampled_from("abAB1é -("), min_size=1, max_size=12).filter(str.strip)


@given(mention=st.text(st.sampled_from("abABC1sé -/()+;\u0301"), max_size=30), definitions=st.dictionaries(SHORT, LONG))
def test_expansion_is_idempotent_and_invents_nothing(mention: str, definitions: dict[str, str]) -> None:
    expanded, trace = expand_with_trace(mention, definitions)
    assert expand(expanded, definitions) == expanded
    assert (expanded != mention) == bool(trace)
    pieces = re.findall(r"\w+", " ".join([mention, *definitions.values()]))
    # A long form stands next to what stood next to its short form, at most a hyphen or accent away.
    assert set(re.findall(r"\w+", expanded)) <= set(pieces)
    if not definitions:
        assert expanded == mention


def table(tmp_path: Path, content: str | bytes, name: str = "table.tsv") -> AbbreviationTable:
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return AbbreviationTable.from_file(file)


def test_table_of_both_kinds(tmp_path: Path) -> None:
    expected = {"HCC": "hepatocellular carcinoma", "MI": "myocardial infarction, acute"}
    tabs = "\ufeffshort\tlong\nHCC\thepatocellular  carcinoma \n\n MI\tmyocardial infarction, acute\r\n"
    tabs += "HCC\tHepatocellular carcinoma"
    semicolons = 'short;long\n"HCC";"hepatocellular carcinoma"\nMI;myocardial infarction, acute\n'
    commas = 'Short,Long\nHCC,"hepatocellular\n\ncarcinoma"\nMI,"myocardial infarction, acute"\n'
    for read in (table(tmp_path, tabs), table(tmp_path, commas, "table.CSV"), table(tmp_path, semicolons, "t.csv")):
        assert dict(read.definitions) == expected
        assert not read.ambiguous


@pytest.mark.parametrize("heading", ["\nshort\tlong\nMI\theart attack", "Long\tShort\nheart attack\tMI"])
def test_a_heading_says_which_column_is_which(tmp_path: Path, heading: str) -> None:
    """Also below blank lines; further down it is a definition."""
    read = table(tmp_path, f"{heading}\n\n")
    assert dict(read.definitions) == {"MI": "heart attack"}
    assert dict(table(tmp_path, "MI\theart attack\nshort\tlong\n").definitions) == {
        "MI": "heart attack",
        "short": "long",
    }


def test_accents_may_be_signs_of_their_own(tmp_path: Path) -> None:
    composed, decomposed = "ÄS\täußere Sehne\n", "A\u0308S\ta\u0308ußere Sehne\n"
    for read in (table(tmp_path, composed), table(tmp_path, decomposed)):
        for mention in ("ÄS", "A\u0308S"):
            assert expand(f"Riss der {mention}", read.definitions) == "Riss der äußere Sehne"
    assert expand("A\u0308S", {"A\u0308S": "Sehne"}) == "Sehne"  # definitions of one's own may be written so


def test_a_comma_in_the_long_form_divides_nothing_where_semicolons_do(tmp_path: Path) -> None:
    read = table(tmp_path, "CVA;stroke, acute\nMI;infarction, myocardial\n", "t.csv")
    assert read.definitions == {"CVA": "stroke, acute", "MI": "infarction, myocardial"}


def test_tables_that_are_packed(tmp_path: Path) -> None:
    text = "HD,Huntington disease\nMS,mitral stenosis\n"
    expected = table(tmp_path, text, "t.csv").definitions
    assert table(tmp_path, gzip.compress(text.encode()), "t.csv.gz").definitions == expected
    assert table(tmp_path, zipped({"t.csv": text}), "t.CSV.ZIP").definitions == expected
    os.mkfifo(tmp_path / "p.csv")
    writer = threading.Thread(target=(tmp_path / "p.csv").write_text, args=(text,))
    writer.start()
    assert AbbreviationTable.from_file(tmp_path / "p.csv").definitions == expected
    writer.join()


def test_conflicting_definitions_are_listed_and_not_used(tmp_path: Path) -> None:
    read = table(
        tmp_path, "MS\tmultiple sclerosis\nHD\tHuntington disease\nMS\tmitral stenosis\nMS\tMultiple sclerosis\n"
    )
    assert dict(read.definitions) == {"HD": "Huntington disease"}
    assert dict(read.ambiguous) == {"MS": ("multiple sclerosis", "mitral stenosis")}
    assert expand("MS and HD", read.definitions) == "MS and Huntington disease"


@pytest.mark.parametrize(
    ("content", "name", "line", "problem"),
    [
        ("HD\tHuntington disease\nHCC hepatocellular carcinoma\n", "t.tsv", 2, "a tab"),
        ("HD\tHuntington\tdisease\n", "t.tsv", 1, "not a definition"),
        ("HD,Huntington disease\nHCC,\n", "t.csv", 2, "a comma or semicolon"),
        ('HD,"Huntington\ndisease"\nHCC,\n', "t.csv", 3, "a comma or semicolon"),
        (b'HD,"Huntington\ndisease"\nMD,"M\xe9ni\xe8re"\n', "t.csv", 3, "save the file as UTF-8"),
        ("\n\nHD\t \n", "t.tsv", 3, "not a definition"),
        (
            'HD,"Huntington\n',
            "t.csv",
            1,
            "cannot be read: a quote is opened and never closed; expected CSV.*close each quote",
        ),
        (b"HD\tHuntington\nMD\tM\xe9ni\xe8re\n", "t.tsv", 2, "save the file as UTF-8"),
        ("MI\the\0art\n", "t.tsv", 1, "NUL byte"),
        ("MI\tmyocardial infarction\n".encode("utf-16"), "t.tsv", 1, "is UTF-16.*iconv -f UTF-16 -t UTF-8"),
        ("-HD\tHuntington disease\n", "t.tsv", 1, "never looked for"),
        ("a b c d e f g\tseven\n", "t.tsv", 1, "never looked for"),
        ("HD\tHD of Huntington\n", "t.tsv", 1, "contains its short form"),
        ("HD\tHD disease\n", "t.tsv", 1, "contains its short form"),
        ("HD\thd\n", "t.tsv", 1, "contains its short form"),
    ],
)
def test_bad_lines_are_refused(tmp_path: Path, content: str | bytes, name: str, line: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        table(tmp_path, content, name)
    assert caught.value.line == line
    assert name in str(caught.value)


def test_tables_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no definitions; expected short<TAB>long on"):
        table(tmp_path, "short\tlong\n")
    with pytest.raises(InputError, match="no definitions; expected short,long on"):
        table(tmp_path, "", "t.csv")
    with pytest.raises(InputError, match="no such file"):
        AbbreviationTable.from_file(tmp_path / "missing.tsv")
    with pytest.raises(InputError, match=r"t\.tsv\.GZ: the compressed file is damaged or cut off"):
        table(tmp_path, b"\x1f\x8b\x08", "t.tsv.GZ")
    with pytest.raises(InputError, match=r"null: this is not a file.* a device, which cannot"):
        AbbreviationTable.from_file("/dev/null")


@pytest.mark.parametrize("long", [5, None, "", "  ", "half \ud800"])
def test_a_form_that_is_none_is_refused(long: Any) -> None:
    with pytest.raises(InputError, match=r"field definitions\['MI'\]: a form"):
        AbbreviationTable({"MI": long})


def test_a_mention_without_an_end_takes_no_time_without_an_end() -> None:
    """Each of these took time by the square or the cube of its length."""
    for mention in ("a and " * 20_000, "/".join(["abc"] * 20_000)):
        assert expand(f"{mention} HEART1", {"HEART1": "heart"}) == f"{mention} heart"
    assert expand("  hcc ", {"HCC": "liver cancer"}) == "  liver cancer "
