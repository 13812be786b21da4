"""BioSyn dictionaries and tables."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import imported, named

from onoma.errors import ConfigError, InputError
from onoma.files.reading import OnError
from onoma.files.text_files import BLOCK_BYTES
from onoma.terminology import ImportReport, Terminology, import_terminology
from tiny import zipped


def read(
    tmp_path: Path, format: str, file_name: str, data: str | bytes, /, *, on_error: str = "strict", **options: object
) -> tuple[Terminology, ImportReport]:
    (tmp_path / file_name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return imported(format, tmp_path / file_name, tmp_path / "out", on_error=on_error, **options)


@pytest.mark.parametrize(("format", "text"), [("biosyn", "no bars\n"), ("obo", "[Term]\nid: A\nnamed: a\n")])
def test_an_error_names_the_file_in_an_archive(tmp_path: Path, format: str, text: str) -> None:
    (tmp_path / "x.zip").write_bytes(zipped({"terms.txt": text}))
    with pytest.raises(InputError, match=r"x\.zip/terms\.txt, line [13]: "):
        import_terminology(format, tmp_path / "x.zip", tmp_path / "out")


def test_biosyn_lines(tmp_path: Path) -> None:
    data = 'C1|C2||first\n\nD1|| leading "quote\nC1|C2||a||b\nD1|||pipe\nD1||x\n  \n E1 ||e'
    terminology, _ = read(tmp_path, "biosyn", "d.txt", data, language="en", source="CTD")
    assert named(terminology) == {
        "C1|C2": ["first", "a||b"],
        "D1": [' leading "quote', "|pipe", "x"],
        "E1": ["e"],
    }
    names = terminology.names().collect()
    assert set(names["language"]) == {"en"}
    assert set(names["source"]) == {"CTD"}
    assert names["is_preferred"].to_list() == [True, False, True, False, False, True]


@pytest.mark.parametrize(
    "line", ["C1||heart attack||myocardial infarction", "1||0||12||SpecificDisease||heart attack||D009203"]
)
def test_names_with_bars_are_told_of(line: str, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text(f"{line}\nC2||cold\n")
    report = import_terminology("biosyn", tmp_path / "names.txt", tmp_path / "out")
    ((note, n),) = report.notes.items()
    assert n == 1
    assert "onoma pairs bitext --classes listed" in note
    assert "docs/benchmarks.md" in note
    (tmp_path / "plain.txt").write_text("C2||cold|flu\n")
    assert not import_terminology("biosyn", tmp_path / "plain.txt", tmp_path / "plain").notes


@pytest.mark.parametrize(("format", "options"), [("biosyn", {}), ("table", {"id": "code", "name": "name"})])
def test_names_are_divided_by_a_sign(format: str, options: dict[str, str], tmp_path: Path) -> None:
    text = "1||stable angina\tangina\n" if format == "biosyn" else 'code,name\n1,"stable angina\tangina"\n'
    terminology, _ = read(tmp_path, format, "d.csv", text, separator="tab", **options)
    assert named(terminology) == {"1": ["stable angina", "angina"]}
    with pytest.raises(ConfigError, match="names are divided by a sign, such as"):
        read(tmp_path, format, "d.csv", text, separator="comma", **options)


def test_biosyn_several_names_in_a_line(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, "biosyn", "d.txt", "C1||a| b ||\nC2|| c\n", separator="|")
    assert named(terminology) == {"C1": ["a", "b"], "C2": ["c"]}
    with pytest.raises(InputError, match="an empty name; expected id") as caught:
        read(tmp_path, "biosyn", "d.txt", "C1||a\nC2|| | |\n", separator="|")
    assert (caught.value.line, caught.value.found) == (2, "C2|| | |")


@pytest.mark.parametrize(
    ("line", "problem"),
    [("no divider", r"no '\|\|'"), ("||name", "an empty id"), ("id|| ", "an empty name"), ("id|name", r"no '\|\|'")],
)
def test_biosyn_bad_lines(line: str, problem: str, tmp_path: Path) -> None:
    data = f"a||b\n{line}\nc||d\n"
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, "biosyn", "d.txt", data)
    assert (caught.value.line, caught.value.found) == (2, line)
    terminology, report = read(tmp_path, "biosyn", "d.txt", data, on_error="skip")
    assert named(terminology) == {"a": ["b"], "c": ["d"]}
    assert report.n_rejected == 1
    with pytest.raises(InputError, match="no concept with a name"):
        read(tmp_path, "biosyn", "d.txt", line, on_error="skip")


@settings(max_examples=20)
@given(
    data=st.one_of(st.binary(max_size=60), st.text("ab|\n\r\0 ", max_size=40).map(str.encode)),
    on_error=st.sampled_from(["strict", "skip"]),
)
def test_biosyn_whatever_stands_there(data: bytes, on_error: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with contextlib.suppress(InputError):
        assert read(tmp_path_factory.mktemp("fuzz"), "biosyn", "d.txt", data, on_error=on_error)[0].n_names > 0


FULL = "id\tpreferred\tname\tlang\ttype\tvocabulary\n1\tno\tb\tEN\tx|y\tV\n1\tyes\ta\tde_AT\t\tW\n2\t\tc\t\tx\tV\n"


def test_table_with_every_column(tmp_path: Path) -> None:
    terminology, _ = read(
        tmp_path, "table", "t.tsv", FULL, id="id", name="name", preferred="preferred", language="lang",
        semantic_type="type", source="vocabulary", separator="|", default_language="fr",
    )  # fmt: skip
    assert named(terminology) == {"1": ["a", "b"], "2": ["c"]}
    assert terminology.concepts().collect()["semantic_types"].to_list() == [["x", "y"], ["x"]]
    assert terminology.names().select("language", "source").collect().rows() == [
        ("de-AT", "W"),
        ("en", "V"),
        ("fr", "V"),
    ]


def test_definitions(tmp_path: Path) -> None:
    rows = ('1,a," what, it is ",V', '1,b,"what, it is",V', "1,c,another thing,", "2,d, ,V", '3,e,"two\nlines",V')
    data = "\n".join(("id,name,says,vocabulary", *rows))
    options = {"id": "id", "name": "name", "definition": "says", "source": "vocabulary", "default_source": "D"}
    terminology, report = read(tmp_path, "table", "t.csv", data, **options)
    assert terminology.definitions().collect().rows() == [
        (0, "what, it is", "V"),
        (0, "another thing", "D"),
        (2, "two\nlines", "V"),
    ]
    assert report.n_definitions == 3
    with pytest.raises(InputError, match="no column 'meaning'"):
        read(tmp_path, "table", "t.csv", data, **{**options, "definition": "meaning"})
    path = tmp_path / "t.parquet"
    pl.DataFrame({"id": ["1"], "name": ["a"], "says": ["b\0"]}).write_parquet(path)
    with pytest.raises(InputError, match=r"field says: .*no NUL"):
        read(tmp_path, "table", "t.parquet", path.read_bytes(), id="id", name="name", definition="says")


def test_a_knowledge_base_of_scispacy(tmp_path: Path) -> None:
    data = (
        '{"concept_id": "C1", "canonical_name": "a", "aliases": ["b"], "types": ["T047"], "definition": "a thing"}\n'
        '{"concept_id": "C2", "canonical_name": "c", "aliases": [], "types": [], "definition": null}\n'
    )
    terminology, _ = read(
        tmp_path, "table", "kb.jsonl", data, id="concept_id", name="canonical_name,aliases", semantic_type="types",
        definition="definition",
    )  # fmt: skip
    assert named(terminology) == {"C1": ["a", "b"], "C2": ["c"]}
    assert terminology.definitions().collect().rows() == [(0, "a thing", "")]


def test_csv_with_quotes(tmp_path: Path) -> None:
    data = 'code,name,n\r\n1,"a, ""b""",x\r\n\r\n2,"two\nlines",x\r\n3,plain,x'
    terminology, _ = read(tmp_path, "table", "t.csv", data, id="code", name="name")
    assert named(terminology) == {"1": ['a, "b"'], "2": ["two\nlines"], "3": ["plain"]}
    wide, _ = read(tmp_path, "table", "t.csv", f'code,name\n1,"{"x" * (1 << 20)}"\n', id="code", name="name")
    assert len(named(wide)["1"][0]) == 1 << 20


def test_tsv_does_not_quote_unless_told(tmp_path: Path) -> None:
    data = 'code\tname\n1\t"a\n2\t"b"\n'
    terminology, _ = read(tmp_path, "table", "t.tsv", data, id="code", name="name")
    assert named(terminology) == {"1": ['"a'], "2": ['"b"']}
    quoted = 'code\tname\n2\t"b"\n'
    assert named(read(tmp_path, "table", "t.tsv", quoted, id="code", name="name", quoting="yes")[0]) == {"2": ["b"]}


def test_other_delimiters(tmp_path: Path) -> None:
    for delimiter, character in ((";", ";"), ("tab", "\t"), ("\\t", "\t"), ("pipe", "|")):
        data = f"code{character}name\n1{character}a, b\n"
        assert named(read(tmp_path, "table", "t.csv", data, id="code", name="name", delimiter=delimiter)[0]) == {
            "1": ["a, b"]
        }
    with pytest.raises(InputError, match="one ASCII character"):
        read(tmp_path, "table", "t.csv", "x", id="code", name="name", delimiter="||")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.csv", 'code;name;other, or none\n1;"a;b";c, d\n2;e;\n'),
        ("t.csv", '"other, or none";"name";"code"\nc, d;"a;b";1\n;e;2\n'),
        ("t.csv", "code\tname\n1\ta;b\n2\te\n"),
        ("t.tsv", 'code,name\n1,"a;b"\n2,e\n'),
        ("t.txt", "code|name\n1|a;b\n2|e\n"),
        ("t.csv", 'name,"code;old",code\na;b,x,1\ne,,2\n'),
    ],
)
def test_what_divides_columns_is_what_gives_those_asked_for(name: str, data: str, tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, "table", name, data, id="code", name="name")
    assert named(terminology) == {"1": ["a;b"], "2": ["e"]}


def test_a_long_name_of_a_column_is_one(tmp_path: Path) -> None:
    long = "a" * 200_000
    terminology, _ = read(tmp_path, "table", "t.csv", f"code;name;{long}\n1;x;y\n", id="code", name="name")
    assert named(terminology) == {"1": ["x"]}


def test_a_column_may_have_a_name_with_a_semicolon(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, "table", "t.csv", "a;b\n1;x\n", id="a;b", name="a;b")
    assert named(terminology) == {"1;x": ["1;x"]}


def test_other_encodings(tmp_path: Path) -> None:
    data = 'Kode;Name\n1;"Rückenschmerzen"\n2;Basedow’s Krankheit\n'
    for encoding in ("cp1252", "utf-16", "utf-8"):
        terminology, _ = read(
            tmp_path, "table", "t.csv", data.encode(encoding), id="Kode", name="Name", encoding=encoding
        )
        assert named(terminology) == {"1": ["Rückenschmerzen"], "2": ["Basedow’s Krankheit"]}
    with pytest.raises(InputError, match=r"line 2: not UTF-8 .*e\.g\. --set encoding=cp1252 .*, or convert"):
        read(tmp_path, "table", "t.csv", data.encode("cp1252"), id="Kode", name="Name")
    lines = '{"code": 1, "name": "Rücken"}\n'.encode("latin-1")
    terminology, _ = read(tmp_path, "table", "t.jsonl", lines, id="code", name="name", encoding="latin-1")
    assert named(terminology) == {"1": ["Rücken"]}
    pl.DataFrame({"code": ["1"], "name": ["a"]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="field encoding: a Parquet file is no text"):
        import_terminology(
            "table",
            tmp_path / "t.parquet",
            tmp_path / "no",
            options={"id": "code", "name": "name", "encoding": "cp1252"},
        )


def test_several_names_in_a_row(tmp_path: Path) -> None:
    data = "code,label,synonyms\n1,a,b; c ;;a\n2,,d\n"
    terminology, _ = read(tmp_path, "table", "t.csv", data, id="code", name="label,synonyms", separator=";")
    assert named(terminology) == {"1": ["a", "b", "c"], "2": ["d"]}  # a name given twice is kept once


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["a|b", "c", "d | e|f"], {"names with '|' in them, kept whole (--set separator='|' divides them)": 2}),
        (["a; b", "c"], {"names with ';' in them, kept whole (--set separator=';' divides them)": 1}),
        (["a; b", *map(str, range(30))], {}),
        (3 * ["a; b"] + 27 * ["c"], {"names with ';' in them, kept whole (--set separator=';' divides them)": 3}),
        (2 * ["a; b"] + 28 * ["c"], {}),
        (["|a", "b|", "c ;"], {}),
    ],
)
def test_names_that_look_like_several_are_told(cells: list[str], told: dict[str, int], tmp_path: Path) -> None:
    data = "code\tlabel\n" + "".join(f"{row}\t{cell}\n" for row, cell in enumerate(cells))
    terminology, report = read(tmp_path, "table", "t.tsv", data, id="code", name="label")
    assert (terminology.n_names, report.notes) == (len(cells), told)


def test_the_first_of_several_columns_has_the_preferred_name(tmp_path: Path) -> None:
    data = "code,label,alias,best\n1,,x,n\n1,a,b,n\n1,c,d,n\n2,,y,n\n3,e,f,n\n3,,z,y\n"
    terminology, _ = read(tmp_path, "table", "t.csv", data, id="code", name="label,alias")
    assert named(terminology) == {"1": ["a", "x", "b", "c", "d"], "2": ["y"], "3": ["e", "f", "z"]}
    terminology, _ = read(tmp_path, "table", "t.csv", data, id="code", name="label,alias", preferred="best")
    assert named(terminology)["3"] == ["z", "e", "f"], "but for one that is marked"


def test_blank_lines_in_a_table_of_one_column(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, "table", "t.csv", "name\nfoo\n\n \t\nbar\n\n", id="name", name="name")
    assert named(terminology) == {"foo": ["foo"], "bar": ["bar"]}


@pytest.mark.parametrize("name", ["*", "^term$", "^.*$", "_names_of_row"])
@pytest.mark.parametrize("kind", ["csv", "quoted.csv", "tsv", "jsonl", "parquet"])
def test_columns_whose_names_are_patterns_elsewhere(kind: str, name: str, tmp_path: Path) -> None:
    table = pl.DataFrame({"id": ["a", "b"], name: ["cold", "flu"], "z": ["q", "r"], "^x$": ["D", "D"]})
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        table.write_parquet(path)
    elif kind == "jsonl":
        table.write_ndjson(path)
    else:
        is_quoted = kind == "quoted.csv"
        table.write_csv(path, separator="\t" if kind == "tsv" else ",", quote_style="always" if is_quoted else "never")
    options = {"id": "id", "name": name, "semantic_type": "^x$"}
    import_terminology("table", path, tmp_path / "out", options=options)
    terminology = Terminology.open(tmp_path / "out")
    assert named(terminology) == {"a": ["cold"], "b": ["flu"]}
    assert terminology.concept("b").semantic_types == ("D",)
    import_terminology("table", path, tmp_path / "other", options={"id": name, "name": "id"})
    assert named(Terminology.open(tmp_path / "other")) == {"cold": ["a"], "flu": ["b"]}


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_codes_that_were_retired(kind: str, tmp_path: Path) -> None:
    rows = [
        {"code": "1", "name": "a", "gone": "Deprecated ", "now": "2"},
        {"code": "2", "name": "b", "gone": "", "now": ""},
        {"code": "3", "name": "c", "gone": "TRUE", "now": ""},
        {"code": "1", "name": "aa", "gone": "", "now": "2"},
        {"code": "4", "name": "d", "gone": "", "now": "X:9"},
        {"code": "5", "name": "e", "gone": "active", "now": "2"},
        {"code": "6", "name": "", "gone": "withdrawn", "now": ""},
        {"code": "7", "name": " ", "gone": "", "now": "2"},
    ]
    path = tmp_path / f"t.{kind}"
    write: dict[str, Callable[[Path], object]] = {
        "csv": pl.DataFrame(rows).write_csv,
        "parquet": pl.DataFrame(rows).write_parquet,
        "jsonl": pl.DataFrame(rows).write_ndjson,
    }
    write[kind](path)
    options = {"id": "code", "name": "name", "obsolete": "gone", "replaced_by": "now"}
    report = import_terminology("table", path, tmp_path / "out", options=options)
    terminology = Terminology.open(tmp_path / "out")
    assert [(one.concept_id, one.status, one.replaced_by) for one in map(terminology.concept, "1234567")] == [
        ("1", "obsolete", "2"),
        ("2", "active", None),
        ("3", "obsolete", None),
        ("4", "obsolete", "X:9"),
        ("5", "active", "2"),
        ("6", "obsolete", None),
        ("7", "obsolete", "2"),
    ]
    assert report.n_obsolete == 5
    assert report.notes["codes in use that name a code to use instead"] == 1
    with pytest.raises(InputError, match=r"field name: .* expected a name"):
        read(tmp_path, "table", "t.csv", "code,name,gone,now\n1,,active,2\n", **options)
    assert named(terminology)["1"] == ["a", "aa"]


def test_rows_that_disagree_on_what_became_of_a_code(tmp_path: Path) -> None:
    data = "code,name,gone,now\n1,a,1,2\n2,b,,\n1,c,0,2\n1,d,1,3\n1,e,yes,2\n"
    options = {"id": "code", "name": "name", "obsolete": "gone", "replaced_by": "now"}
    with pytest.raises(InputError, match="line 4, field gone: an earlier row of the code says another thing"):
        read(tmp_path, "table", "t.csv", data, **options)
    terminology, report = read(tmp_path, "table", "t.csv", data, on_error="skip", **options)
    assert (terminology.concept("1").status, terminology.concept("1").replaced_by) == ("obsolete", "2")
    assert report.n_rejected == 2
    with pytest.raises(InputError, match=r"line 2, field gone: .*expected true or false, .*obsolete or active"):
        read(tmp_path, "table", "t.csv", "code,name,gone\n1,a,perhaps\n", id="code", name="name", obsolete="gone")


def test_columns_whose_names_have_commas(tmp_path: Path) -> None:
    data = 'code,"Term, preferred",other\n1,a,b\n'
    terminology, _ = read(tmp_path, "table", "t.csv", data, id="code", name='"Term, preferred", other')
    assert named(terminology) == {"1": ["a", "b"]}


def test_error_tells_the_value_and_the_row(tmp_path: Path) -> None:
    for data, found in {
        "1,,a\n": "nothing (in the row of '1')",
        ",x,a\n": "nothing (in the row of 'x')",
        "1,b,maybe\n": "maybe",
    }.items():
        with pytest.raises(InputError) as caught:
            read(tmp_path, "table", "t.csv", "code,name,mark\n" + data, id="code", name="name", preferred="mark")
        assert caught.value.found == found


def test_missing_columns_and_options(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column 'nane'\. Did you mean 'name'"):
        read(tmp_path, "table", "t.csv", "code,name\n1,a\n", id="code", name="nane")
    with pytest.raises(InputError, match=r"no column 'nane'\. Did you mean 'name'\? Expected one of code, name"):
        read(tmp_path, "table", "t.csv", "code;name\n1;a\n", id="code", name="nane")
    with pytest.raises(InputError, match=r"no column 'code'.*Expected one of code;name.*option delimiter"):
        read(tmp_path, "table", "t.csv", "code;name\n1;a\n", id="code", name="name", delimiter=",")
    for option in ({"delimiter": ";"}, {"quoting": "no"}, {"header": "code,name"}):
        with pytest.raises(InputError, match=r"an option of CSV and TSV files; found a \.jsonl"):
            read(tmp_path, "table", "t.jsonl", '{"code": 1, "name": "a"}\n', id="code", name="name", **option)
    with pytest.raises(InputError, match="two columns are called 'name'"):
        read(tmp_path, "table", "t.csv", "code,name,name\n1,a,b\n", id="code", name="name")
    with pytest.raises(ConfigError, match="needs the option 'id': column with the code"):
        read(tmp_path, "table", "t.csv", "code,name\n1,a\n", name="name")
    with pytest.raises(ConfigError, match="option 'name'"):
        read(tmp_path, "table", "t.csv", "code,name\n1,a\n", id="code", name="")
    with pytest.raises(InputError, match="not UTF-8"):
        read(tmp_path, "table", "t.csv", b"code,n\xffme\n1,a\n", id="code", name="name")


BAD_ROWS = {
    "fewer fields": ("3,c", "wrong number of fields; expected 4 fields"),
    "more fields": ("3,c,no,en,x", "wrong number of fields; expected 4 fields"),
    "no code": (" ,c,no,en", "field code: .* expected a code"),
    "no name": ("3, ,no,en", "field name: .* expected a name"),
    "mark": ("3,c,maybe,en", "field best: .* expected true or false"),
    "language": ("3,c,no,e n", "field lang: .* expected a BCP 47 tag"),
}


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows(case: str, quoted: bool, tmp_path: Path) -> None:
    line, problem = BAD_ROWS[case]
    last = '"b"' if quoted else "b"
    data = f"code,name,best,lang\n1,a,yes,en\n{line}\n2,{last},1,\n"
    options = {"id": "code", "name": "name", "preferred": "best", "language": "lang"}
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, "table", "t.csv", data, **options)
    assert caught.value.line == 3
    terminology, report = read(tmp_path, "table", "t.csv", data, on_error="skip", **options)
    assert named(terminology) == {"1": ["a"], "2": ["b"]}
    assert report.n_rejected == 1
    assert pl.read_parquet(tmp_path / "out" / "rejects.parquet")["line"].to_list() == [3]


@pytest.mark.parametrize("on_error", ["strict", "skip"])
def test_quote_that_never_ends(tmp_path: Path, on_error: OnError) -> None:
    """It would swallow all rows that follow, so it stops the import even where bad rows are skipped."""
    data = 'code,name\n1,"a"\n2,"b\n3,c\n4,d\n'
    with pytest.raises(InputError, match="opened and never closed") as caught:
        read(tmp_path, "table", "t.csv", data, on_error=on_error, id="code", name="name")
    assert caught.value.line == 3
    assert not (tmp_path / "out").exists()


def test_damaged_parquet(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = tmp_path / "whole.parquet"
    pl.DataFrame({"code": ["1", "2"], "name": [["a", "b"], ["c"]]}).write_parquet(whole)
    data = whole.read_bytes()
    places = []
    for place in range(0, len(data), 11):
        (tmp_path / "t.parquet").write_bytes(data[:place] + b"||" + data[place + 2 :])
        try:
            options = {"id": "code", "name": "name"}
            import_terminology("table", tmp_path / "t.parquet", tmp_path / f"out{place}", options=options)
        except InputError as error:
            places.append(error.path)
    assert len(places) > 20
    assert set(places) == {tmp_path / "t.parquet"}
    capfd.readouterr()  # Polars tells of its panics on standard error


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"code": [3, 3, 1], "name": ["a", "b", "c"], "best": [False, True, True]}).write_parquet(path)
    terminology, _ = read(tmp_path, "table", "t.parquet", path.read_bytes(), id="code", name="name", preferred="best")
    assert named(terminology) == {"3": ["b", "a"], "1": ["c"]}

    pl.DataFrame({"code": ["x", None, "y"], "name": ["a", "b", "c\0"]}).write_parquet(path)
    with pytest.raises(InputError, match="field code") as caught:
        read(tmp_path, "table", "t.parquet", path.read_bytes(), id="code", name="name")
    assert caught.value.line == 2
    terminology, report = read(
        tmp_path, "table", "t.parquet", path.read_bytes(), on_error="skip", id="code", name="name"
    )
    assert named(terminology) == {"x": ["a"]}
    assert report.n_rejected == 2

    fixed = pl.Series("name", [["a", "b"]], dtype=pl.Array(pl.String, 2))
    pl.DataFrame({"code": ["x"], "none": [None], "name": fixed}).write_parquet(path)
    terminology, _ = read(
        tmp_path, "table", "t.parquet", path.read_bytes(), id="code", name="name,none", language="none"
    )
    assert named(terminology) == {"x": ["a", "b"]}

    pl.DataFrame({"code": [1.5], "name": ["a"]}).write_parquet(path)
    with pytest.raises(InputError, match=r"a type that is no text; .* found Float64"):
        read(tmp_path, "table", "t.parquet", path.read_bytes(), id="code", name="name")
    with pytest.raises(InputError, match="no column 'id'"):
        read(tmp_path, "table", "t.parquet", path.read_bytes(), id="id", name="name")
    for damaged in (path.read_bytes()[:-6], b"", b"text"):
        with pytest.raises(InputError):
            read(tmp_path, "table", "t.parquet", damaged, id="id", name="name")


CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1, max_size=8).filter(
    str.strip
)


@settings(max_examples=20)
@given(rows=st.lists(st.tuples(CELL.map(str.strip), CELL), min_size=1, max_size=6))
def test_whatever_csv_writes_is_read(rows: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("code", "name"), *rows])
    terminology, _ = read(tmp_path_factory.mktemp("csv"), "table", "t.csv", text.getvalue(), id="code", name="name")
    expected: dict[str, list[str]] = {}
    for code, name in rows:
        expected.setdefault(code, []).append(name)
    assert named(terminology) == {code: list(dict.fromkeys(names)) for code, names in expected.items()}


@settings(max_examples=20)
@given(
    data=st.one_of(
        st.binary(max_size=60), st.text('id,name\n"\r1', max_size=40).map(lambda text: ("id,name\n" + text).encode())
    ),
    on_error=st.sampled_from(["strict", "skip"]),
)
def test_table_whatever_stands_there(data: bytes, on_error: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with contextlib.suppress(InputError):
        columns = {"id": "id", "name": "name"}
        assert (
            read(tmp_path_factory.mktemp("fuzz"), "table", "t.csv", data, on_error=on_error, **columns)[0].n_names > 0
        )


def test_blank_lines_before_the_names_of_columns(tmp_path: Path) -> None:
    for body in (b"\n \nid,name\n1,a\n", b'\n\nid,name\n1,"a"\n'):
        terminology, _ = read(tmp_path, "table", "t.csv", body, id="id", name="name")
        assert named(terminology) == {"1": ["a"]}
    terminology, _ = read(
        tmp_path, "table", "t.tsv", b"\n" * (BLOCK_BYTES + 9) + b"id\tname\n1\ta\n", id="id", name="name"
    )
    assert named(terminology) == {"1": ["a"]}
    with pytest.raises(InputError, match="line 3, field code: there is no column 'code'"):
        read(tmp_path, "table", "t.csv", b"\n\nid,name\n1,a\n", id="code", name="name")
    with pytest.raises(InputError, match="line 3, field code: there is no column 'code'"):
        read(tmp_path, "table", "t.csv", b'\n\nid,"name"\n1,a\n', id="code", name="name")
    with pytest.raises(InputError, match="the name of a column is empty; expected one of id, name"):
        read(tmp_path, "table", "t.csv", b"id,name\n1,a\n", id="", name="name")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("t.csv", b"\xfd7zXZ\x00\x00", "compressed with xz; .* unpack it"),
        ("t.csv", "id,name\n1,a\n".encode("utf-16-le"), "UTF-16"),
        ("t.json", b'[{"id": 1, "name": "a"}]', "JSON document cannot be read or written as a table"),
        ("t.xlsx", b"PK", "workbook cannot be read or written as a table"),
    ],
)
def test_what_is_no_table_is_told(name: str, content: bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        read(tmp_path, "table", name, content, id="id", name="name")


def test_the_last_suffix_says_what_divides_columns(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, "table", "t.csv.tsv", b"id\tname\n1\ta,b\n", id="id", name="name")
    assert named(terminology) == {"1": ["a,b"]}


def test_a_source_where_the_table_does_not_say(tmp_path: Path) -> None:
    table = "id,name,vocabulary\n1,a,V\n2,b,\n"
    for options, expected in (({"source": "vocabulary"}, ["V", "OURS"]), ({}, ["OURS", "OURS"])):
        terminology, _ = read(tmp_path, "table", "t.csv", table, id="id", name="name", default_source="OURS", **options)
        assert terminology.names().collect()["source"].to_list() == expected


def test_languages_are_spelt_one_way(tmp_path: Path) -> None:
    body = b"id,name,lang\n1,a,en_US\n1,b,EN-us\n1,c,\n"
    terminology, _ = read(tmp_path, "table", "t.csv", body, id="id", name="name", language="lang")
    assert terminology.names().collect()["language"].to_list() == ["en-US", "en-US", "und"]


def test_quotes_of_a_tsv_are_told(tmp_path: Path) -> None:
    """It has none unless that is said: cells that look quoted are counted, and a line broken in one says what to do."""
    text = 'id\tname\n1\t"a ""b"""\n2\t"c"\n3\td "e"\n'
    (tmp_path / "t.tsv").write_text(text)
    report = import_terminology("table", tmp_path / "t.tsv", tmp_path / "t", options={"id": "id", "name": "name"})
    (note,) = [n for what, n in report.notes.items() if "in double quotes" in what]
    assert note == 2
    options = {"id": "id", "name": "name", "quoting": "yes"}
    report = import_terminology("table", tmp_path / "t.tsv", tmp_path / "u", options=options)
    assert not any("in double quotes" in what for what in report.notes)
    (tmp_path / "broken.tsv").write_text('id\tname\n1\t"a\nb"\n')
    with pytest.raises(
        InputError, match=r"line 3: wrong number of fields.*--set quoting=yes\), or leave such rows out"
    ):
        import_terminology("table", tmp_path / "broken.tsv", tmp_path / "v", options={"id": "id", "name": "name"})


def test_rows_of_one_code_are_counted(tmp_path: Path) -> None:
    """Two concepts of a list with one code are a mistake that the names alone do not show."""
    (tmp_path / "t.csv").write_text("id,name\nA1,old disease\nA2,flu\nA1 ,quite another disease\nA1,a third\n")
    report = import_terminology("table", tmp_path / "t.csv", tmp_path / "t", options={"id": "id", "name": "name"})
    assert report.notes == {"rows of a code that stood before, whose names are put together": 2}
    (tmp_path / "u.csv").write_text("id,name\nA1,old disease\nA2,flu\n")
    report = import_terminology("table", tmp_path / "u.csv", tmp_path / "u", options={"id": "id", "name": "name"})
    assert report.notes == {}


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("t.csv", '10;first;1;x, y\n11;second "left";1;\n20;third;2;\n', {"quoting": "no"}),
        ("t.csv", '10,first,1,"two\nlines, and more"\n11,"second ""left""",1,\n20,third,2,z\n', {}),
        ("t.asc", '10$first$1$$Y$\n11$second "left"$1$$N$\n20$third$2$$Y$\n', {"delimiter": "$", "quoting": "no"}),
        ("t.tsv", '\n10\tfirst\t1\n11\tsecond "left"\t1\n20\tthird\t2\n', {}),
        ("t.csv", '10,first,1,x\n11,"second ""left""",1,"x, y"\n\n20,third,2,z\n', {}),
        ("t.txt", '"10";"first";"1"\n"11";"second ""left""";"1"\n20;third;2', {}),
    ],
)
def test_columns_that_no_line_names(name: str, text: str, options: dict[str, str], tmp_path: Path) -> None:
    said = {"id": "code", "name": "name", "header": "term,name,code", **options}
    terminology, report = read(tmp_path, "table", name, text, **said)
    assert named(terminology) == {"1": ["first", 'second "left"'], "2": ["third"]}
    assert report.n_rejected == 0
    with pytest.raises(InputError, match=r"no column 'kode'\..* Expected one of term, name, code\."):
        read(tmp_path, "table", name, text, **(said | {"id": "kode"}))
    first = text.strip().splitlines()[0]
    with pytest.raises(InputError, match="more names than columns") as caught:
        read(tmp_path, "table", name, text, **(said | {"header": "term,name,code,d,e,f,g"}))
    assert (caught.value.line, caught.value.field) == (text.splitlines().index(first) + 1, "header")
    bad = text.rstrip("\n") + "\n30\n"
    with pytest.raises(InputError, match="fields") as caught:
        read(tmp_path, "table", name, bad, **said)
    assert caught.value.line == len(bad.splitlines())


def test_names_of_columns_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two columns have one name"):
        read(tmp_path, "table", "t.csv", "1,a\n", id="a", name="b", header="a,b,a")
    with pytest.raises(InputError, match=r"only blank lines; expected rows"):
        read(tmp_path, "table", "t.csv", "\n \n", id="a", name="b", header="a,b")
    for text in ("1,a\r2,b\r", '1,"a"\r2,b\r'):
        with pytest.raises(InputError, match="carriage return") as caught:
            read(tmp_path, "table", "t.csv", text, id="a", name="b", header="a,b")
        assert caught.value.line == 1


@pytest.mark.parametrize("header", ["code,,name,", ("code", "", "name")])
def test_columns_without_name(header: str | tuple[str, ...], tmp_path: Path) -> None:
    for text in ("1,x,a,z\n2,y,b,z\n", '1,"x",a,z\n2,y,b,"z"\n'):
        terminology, _ = read(tmp_path, "table", "t.csv", text, id="code", name="name", header=header)
        assert named(terminology) == {"1": ["a"], "2": ["b"]}
    with pytest.raises(InputError, match="no column 'code'"):
        read(tmp_path, "table", "t.csv", "1,x,a,z\n", id="code", name="name", header=",,,name")


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_cells_that_have_nothing_to_say(kind: str, tmp_path: Path) -> None:
    rows = [
        {"code": "1", "name": "A1BG", "others": "A1B| - |ABG", "type": "-", "language": "NA"},
        {"code": "2", "name": " - ", "others": "A2MP1", "type": "gene", "language": "en"},
        {"code": "3", "name": "na", "others": "NA", "type": "NA|gene", "language": "en"},
        {"code": "NA", "name": "x", "others": "-", "type": "gene", "language": "en"},
    ]
    path = tmp_path / f"t.{kind}"
    table = pl.DataFrame(rows)
    if kind == "parquet":
        table.with_columns(pl.col("others").str.split("|")).write_parquet(path)
    elif kind == "jsonl":
        table.with_columns(pl.col("others").str.split("|")).write_ndjson(path)
    else:
        table.write_csv(path, separator="\t" if kind == "tsv" else ",")
    options = {"id": "code", "name": "name,others", "separator": "|", "semantic_type": "type", "language": "language"}
    with pytest.raises(InputError, match="a code") as caught:
        imported("table", path, tmp_path / "out", missing="-,NA", **options)
    assert caught.value.line == (4 if kind in ("jsonl", "parquet") else 5)
    terminology, report = imported("table", path, tmp_path / "out", on_error="skip", missing="-,NA", **options)
    assert report.n_rejected == 1
    assert named(terminology) == {"1": ["A1BG", "A1B", "ABG"], "2": ["A2MP1"], "3": ["na"]}
    assert terminology.concepts().collect()["semantic_types"].to_list() == [[], ["gene"], ["gene"]]
    assert terminology.names().collect()["language"].to_list() == ["und"] * 3 + ["en", "en"]


def test_signs_are_taken_off_names(tmp_path: Path) -> None:
    data = "code,name\n1,- -\u00a0- Cholera\u2003-\n1, -x-y|.z\n2,b - c\n"
    terminology, _ = read(tmp_path, "table", "t.csv", data, id="code", name="name", strip="-.", separator="|")
    assert named(terminology) == {"1": ["Cholera", "x-y", "z"], "2": ["b - c"]}
    with pytest.raises(InputError, match="a name") as caught:
        read(tmp_path, "table", "t.csv", "code,name\n1,a\n2,- - \n", id="code", name="name", strip="-")
    assert caught.value.line == 3


def test_signs_are_taken_off_codes(tmp_path: Path) -> None:
    data = "code,name,new,above\n A17.0+ ,a,,\nM54.9-,b,,A17.0+\n B-1!,+c+,M54.9-,M54.9 -\n"
    options = {"id": "code", "name": "name", "replaced_by": "new", "parent": "above", "strip_codes": "+!-"}
    terminology, _ = read(tmp_path, "table", "t.csv", data, **options)
    assert named(terminology) == {"A17.0": ["a"], "M54.9": ["b"], "B-1": ["+c+"]}
    assert terminology.concept("B-1").replaced_by == "M54.9"
    assert terminology.relations().select("head_row", "tail_row").collect().rows() == [(1, 0), (2, 1)]
    with pytest.raises(InputError, match="a code") as caught:
        read(tmp_path, "table", "t.csv", "code,name,new,above\n1,a,,\n+-,b,,\n", **options)
    assert caught.value.line == 3


def test_columns_that_have_their_place_in_the_line(tmp_path: Path) -> None:
    data = "A00  Ärger, \U0001f48a der   1\n\nB1   kurz\r\n  C2 z\n"
    for encoding in ("utf-8", "utf-16"):
        terminology, report = read(
            tmp_path, "table", "t.txt", data.encode(encoding), id="code", name="name", semantic_type="kind",
            positions="code:1-4, name : 6-20,kind:21", encoding=encoding,
        )  # fmt: skip
        assert named(terminology) == {"A00": ["Ärger, \U0001f48a der"], "B1": ["kurz"], "C2": ["z"]}
        assert terminology.concept("A00").semantic_types == ("1",)
        assert report.notes == {}
    with pytest.raises(InputError, match=r"field name: .* a name; found nothing") as caught:
        read(tmp_path, "table", "t.txt", data + "D3\n", id="code", name="name", positions="code:1-4,name:6-")
    assert caught.value.line == 5
    _, report = read(tmp_path, "table", "t.txt", "A1\tx y\n", id="code", name="name", positions="code:1-2,name:3-")
    assert [n for note, n in report.notes.items() if note.startswith("lines with a tab")] == [1]


@pytest.mark.parametrize("positions", ["code", "code:0-3", "code:4-3", ":1-2", "code:1-2-3", "code:a-b", "code:-3"])
def test_places_that_cannot_be(positions: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"option 'positions': a column and its first and last character, such as"):
        read(tmp_path, "table", "t.txt", "1 a\n", id="code", name="name", positions=positions)


def test_places_that_do_not_fit_the_rest(tmp_path: Path) -> None:
    said = {"id": "code", "name": "name", "positions": "code:1,name:3-"}
    assert named(read(tmp_path, "table", "t.txt", "1 a\n", **said)[0]) == {"1": ["a"]}
    with pytest.raises(InputError, match=r"no column 'nane'\. Did you mean 'name'\? Expected one of code, name\."):
        read(tmp_path, "table", "t.txt", "1 a\n", **(said | {"name": "nane"}))
    with pytest.raises(ConfigError, match="option 'positions': two columns are called 'code'"):
        read(tmp_path, "table", "t.txt", "1 a\n", **(said | {"positions": "code:1,name:3-,code:2"}))
    for option in ({"delimiter": ";"}, {"quoting": "no"}, {"header": "code,name"}):
        with pytest.raises(InputError, match="an option of files with a sign between columns") as caught:
            read(tmp_path, "table", "t.txt", "1 a\n", **said, **option)
        assert caught.value.field in option
    with pytest.raises(InputError, match="field continued: an option of files with columns by positions"):
        read(tmp_path, "table", "t.csv", "code,name\n1,a\n", id="code", name="name", continued="yes")
    for option in ({"positions": "code:1"}, {"comment": "#"}):
        with pytest.raises(InputError, match="an option of CSV and TSV files"):
            read(tmp_path, "table", "t.jsonl", '{"code": 1, "name": "a"}', id="code", name="name", **option)


def test_lines_that_continue_others(tmp_path: Path) -> None:
    """Also where a block of the file ends between them."""
    said = {"id": "code", "name": "long,short", "positions": "code:1-6,long:8-12,short:14-"}
    data = "A      one   s\nA      two\n\nA      three\nB      x     t\nA      again u\n"
    terminology, report = read(tmp_path, "table", "t.txt", data, continued="yes", **said)
    assert named(terminology) == {"A": ["one two three", "s", "again", "u"], "B": ["x", "t"]}
    assert report.notes == {"rows of a code that stood before, whose names are put together": 1}
    terminology, _ = read(tmp_path, "table", "t.txt", data, **said)
    assert named(terminology)["A"] == ["one", "s", "two", "three", "again", "u"]
    with pytest.raises(InputError, match="a code") as caught:
        read(tmp_path, "table", "t.txt", data + "       y\n       z\n", continued="yes", **said)
    assert caught.value.line == 7

    data = "A one      T       1 B\nA two  say T   X   1\nA       it         0\nB x          U\n"
    of_others = {"name": "name", "positions": "code:1,name:3-6,says:8-11,type:12-15,not:16,old:20,above:22"}
    columns = {"definition": "says", "semantic_type": "type", "obsolete": "old", "parent": "above"}
    terminology, _ = read(tmp_path, "table", "t.txt", data, continued="yes", **(said | of_others | columns))
    concepts = terminology.concepts().select("concept_id", "preferred_name", "semantic_types", "status").collect()
    assert concepts.rows() == [("A", "one two", ["T"], "obsolete"), ("B", "x", ["U"], "active")]
    assert terminology.definitions().collect()["text"].to_list() == ["say it"]
    assert terminology.relations().select("head_row", "tail_row").collect().rows() == [(0, 1)]

    n_codes = 3 * BLOCK_BYTES // (3 * 20)
    lines = "".join(f"{code:06} {part:<12}\n" for code in range(n_codes) for part in ("one", "two", "three"))
    terminology, _ = read(tmp_path, "table", "t.txt", lines, continued="yes", **said)
    assert terminology.n_concepts == n_codes
    assert terminology.names().select("text").unique().collect()["text"].to_list() == ["one two three"]


@pytest.mark.parametrize("cells", ["1;a", '1;"a"'])
def test_comments_are_no_rows(cells: str, tmp_path: Path) -> None:
    data = f"## by us; and\n## others\nid;name\n##\n{cells}\n2;## b\n## end"
    for ends in ("\n", "\r\n"):
        terminology, report = read(
            tmp_path, "table", "t.csv", data.replace("\n", ends), id="id", name="name", comment="##"
        )
        assert (named(terminology), report.n_rejected) == ({"1": ["a"], "2": ["## b"]}, 0)
    terminology, _ = read(tmp_path, "table", "t.csv", f"# x\n{cells}\n", id="id", name="n", header="id,n", comment="#")
    assert named(terminology) == {"1": ["a"]}
    with pytest.raises(InputError, match=r"line 1.*no column 'id'.*this line is a comment.*option comment, e\.g\. #"):
        read(tmp_path, "table", "t.csv", data, id="id", name="name")
    with pytest.raises(InputError, match="a name") as caught:
        read(tmp_path, "table", "t.csv", data + "\n3;\n", id="id", name="name", comment="##")
    assert caught.value.line == 8


@pytest.mark.parametrize("separator", [None, "|"])
def test_words_for_codes_that_were_retired(separator: str | None, tmp_path: Path) -> None:
    data = "id,name,state\n1,a,Withdrawn \n2,b,Approved\n3,c,\n4,,MERGED\n5,e,x|merged\n"
    options: dict[str, Any] = {"id": "id", "name": "name", "obsolete": "state", "separator": separator}
    words = "withdrawn,Merged,Split"
    terminology, report = read(tmp_path, "table", "t.csv", data, obsolete_words=words, **options)
    assert report.notes.pop("words of obsolete_words that no row has: Split") == 1
    assert not [note for note in report.notes if "obsolete_words" in note]
    state = dict(terminology.concepts().select("concept_id", "status").collect().rows())
    of_five = "obsolete" if separator else "active"
    assert state == {"1": "obsolete", "2": "active", "3": "active", "5": of_five, "4": "obsolete"}
    with pytest.raises(InputError, match=r"field state: .*obsolete or active, or other words, named by obsolete_words"):
        read(tmp_path, "table", "t.csv", data, **options)
    with pytest.raises(InputError, match="field obsolete_words: words of the column obsolete, which is not named"):
        read(tmp_path, "table", "t.csv", data, id="id", name="name", obsolete_words="x")


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_parents(kind: str, tmp_path: Path) -> None:
    rows = [
        {"code": "1", "name": "root", "above": "1"},
        {"code": "2", "name": "a", "above": " 1 | "},
        {"code": "3", "name": "b", "above": "-"},
        {"code": "4", "name": "c", "above": "2|3|2"},
        {"code": "4", "name": "c2", "above": "1"},
    ]
    table, path = pl.DataFrame(rows), tmp_path / f"t.{kind}"
    if kind == "csv":
        table.write_csv(path)
    else:
        lists = table.with_columns(pl.col("above").str.split("|"))
        lists.write_parquet(path) if kind == "parquet" else lists.write_ndjson(path)
    options = {"id": "code", "name": "name", "parent": "above", "separator": "|", "missing": "-"}
    terminology, _ = imported("table", path, tmp_path / "out", default_source="OURS", **options)
    assert terminology.relations().collect().rows() == [
        (1, "is_a", 0, "OURS"),
        (3, "is_a", 1, "OURS"),
        (3, "is_a", 2, "OURS"),
        (3, "is_a", 0, "OURS"),
    ]
    if kind == "csv":
        path.write_text(path.read_text() + "5,d,77\n")
        with pytest.raises(InputError, match="refers to a concept that the release does not have") as caught:
            imported("table", path, tmp_path / "out", **options)
        assert caught.value.line == 7


def test_relations_to_rows_that_only_leaves_out(tmp_path: Path) -> None:
    data = "id,name,kind,above\n1,a,x,\n 2 ,b,x,\n2,b2,y,1\n3,c,y,2\n3,c,y,1\n4,d,y,4\n"
    options = {"id": "id", "name": "name", "parent": "above"}
    terminology, report = read(tmp_path, "table", "t.csv", data, only="kind=y", **options)
    relations = terminology.relations().select("head_row", "tail_row").collect().rows()
    assert relations == [(1, 0)], "2 has a row that is kept, too"
    assert report.notes["relations to rows that only leaves out"] == 2
    with pytest.raises(InputError, match="refers to a concept that the release does not have"):
        read(tmp_path, "table", "t.csv", data + "5,e,y,77\n", only="kind=y", **options)


@pytest.mark.parametrize("kind", ["csv", "quoted.csv", "parquet", "jsonl"])
def test_only_some_rows(kind: str, tmp_path: Path) -> None:
    rows = [
        {"code": "1", "name": "a", "#tax": "9606", "kind": "gene"},
        {"code": "2", "name": "b", "#tax": " 10090 ", "kind": "gene"},
        {"code": "3", "name": "c", "#tax": "9606", "kind": "-"},
        {"code": "", "name": "", "#tax": "7", "kind": "gene"},
    ]
    path = tmp_path / f"t.{kind}"
    table = pl.DataFrame(rows)
    if "csv" in kind:
        table.write_csv(path, quote_style="always" if "quoted" in kind else "never")
    else:
        table.write_parquet(path) if kind == "parquet" else table.write_ndjson(path)
    options = {"id": "code", "name": "name", "missing": "-"}
    only = "#tax=9606, #tax = 10090,kind=gene"
    terminology, report = imported("table", path, tmp_path / "out", only=only, **options)
    assert named(terminology) == {"1": ["a"], "2": ["b"]}, "the last row is not looked at"
    assert report.notes == {"rows that only leaves out": 2}
    assert named(imported("table", path, tmp_path / "out", only="kind=-", **options)[0]) == {"3": ["c"]}
    for misspelt in ("#tax=8", "#tax=9606,#tax=8"):
        with pytest.raises(InputError, match=r"field only=#tax: the column has nothing of '8'; expected some of 10090"):
            imported("table", path, tmp_path / "out", only=misspelt, **options)
    with pytest.raises(InputError, match=r"no (column|line has the key) 'tax'|has the key 'tax'"):
        imported("table", path, tmp_path / "out", only="tax=8", **options)
    with pytest.raises(ConfigError, match="option 'only': a column and a value of it, such as kind=gene, not '=8'"):
        imported("table", path, tmp_path / "out", only="=8", **options)
