from __future__ import annotations

import contextlib
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import imported
from sample_rrf import write_umls

from onoma.errors import ConfigError, InputError
from onoma.files.reading import OnError
from onoma.linking import build_linker
from onoma.terminology import ImportReport, Terminology, import_terminology


def atom(
    cui: str,
    text: str,
    lat: str = "ENG",
    ts: str = "P",
    stt: str = "PF",
    ispref: str = "Y",
    sab: str = "S",
    tty: str = "PT",
    suppress: str = "N",
) -> str:
    return f"{cui}|{lat}|{ts}|L1|{stt}|S1|{ispref}|A1||||{sab}|{tty}|code|{text}|0|{suppress}||\n"


def relation(first: str, rel: str, second: str, rela: str = "", sab: str = "S", suppress: str = "N") -> str:
    return f"{first}|A1|AUI|{rel}|{second}|A2|AUI|{rela}|R1||{sab}|{sab}||Y|{suppress}||\n"


def read(
    tmp_path: Path,
    files: dict[str, str],
    *,
    on_error: str = "strict",
    folder: str = "",
    options: dict[str, str] | None = None,
) -> tuple[Terminology, ImportReport]:
    place = tmp_path / "in" / folder
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (place / f"{name}.RRF").write_bytes(text.encode())
    return imported("umls", tmp_path / "in", tmp_path / "out", on_error=on_error, **(options or {}))


def texts(terminology: Terminology) -> list[str]:
    return terminology.names().collect()["text"].to_list()


def test_awkward_names_are_kept_as_they_are(tmp_path: Path) -> None:
    odd = [
        '"quoted',
        "#hash",
        "  leading",
        "trailing ",
        "a\tb",
        "ü‐日本",
        "x" * (1 << 20),
        "NULL",
        "\u2028line",
        "a\rb",
    ]
    terminology, _ = read(tmp_path, {"MRCONSO": "".join(atom("C1", text) for text in odd)})
    assert texts(terminology) == odd


def test_meta_folder_or_mrconso_itself(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, {"MRCONSO": atom("C1", "a"), "MRREL": ""}, folder="META")
    assert terminology.n_names == 1
    missing = [f"files that the release does not have: {name}.RRF" for name in ("MRSTY", "MRDEF")]
    assert list(report.notes) == missing
    import_terminology("umls", tmp_path / "in" / "META" / "MRCONSO.RRF", tmp_path / "out2")
    (tmp_path / "in" / "META" / "MRCONSO.RRF").unlink()
    with pytest.raises(InputError, match=r"no MRCONSO\.RRF"):
        import_terminology("umls", tmp_path / "in", tmp_path / "out3")
    with pytest.raises(InputError, match="nothing here"):
        import_terminology("umls", tmp_path / "none", tmp_path / "out3")


def test_preferred_name(tmp_path: Path) -> None:
    rows = [
        atom("C1", "suppressed", suppress="O"),
        atom("C1", "deutsch", lat="GER"),
        atom("C1", "secondary", ts="S"),
        atom("C1", "variant", stt="VO"),
        atom("C1", "not preferred", ispref="N"),
        atom("C1", "best"),
        atom("C1", "best too"),
        atom("C2", "only suppressed", suppress="E"),
        atom("C2", "nur deutsch", lat="GER", ts="S", stt="VO", ispref="N"),
    ]
    terminology, _ = read(tmp_path, {"MRCONSO": "".join(rows)})
    concepts = terminology.concepts().collect()
    assert concepts["preferred_name"].to_list() == ["best", "nur deutsch"]
    assert texts(terminology)[:3] == ["best", "suppressed", "deutsch"]
    names = terminology.names().collect()
    assert names["is_suppressed"].to_list() == [text in {"suppressed", "only suppressed"} for text in names["text"]]


def test_concepts_that_do_not_lie_together(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, {"MRCONSO": atom("C2", "a") + atom("C1", "b") + atom("C2", "c")})
    assert terminology.concepts().collect()["concept_id"].to_list() == ["C2", "C1"]
    assert texts(terminology) == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["en", "de", "eu", "xyz"]),
        ({"languages": "en"}, ["en"]),
        ({"languages": "GER, eu"}, ["de", "eu"]),
        ({"sources": "T"}, ["eu"]),
        ({"term_types": "SY,AB"}, ["de", "xyz"]),
        ({"suppress": "N,E"}, ["en", "de", "eu"]),
    ],
)
def test_filters(options: dict[str, str], expected: list[str], tmp_path: Path) -> None:
    rows = (
        atom("C1", "a")
        + atom("C2", "b", "GER", tty="SY")
        + atom("C3", "c", "BAQ", sab="T", tty="SY2")
        + atom("C4", "d", "XYZ", suppress="O", tty="AB")
    )
    terminology, _ = read(tmp_path, {"MRCONSO": rows}, options=options)
    assert terminology.names().collect()["language"].to_list() == expected


def test_filters_that_make_no_sense(tmp_path: Path) -> None:
    rows = {"MRCONSO": atom("C1", "a", sab="SNOMEDCT_US")}
    with pytest.raises(InputError, match=r"nothing of 'SNOMEDCT'\. Did you mean 'SNOMEDCT_US'"):
        read(tmp_path, rows, options={"sources": "SNOMEDCT"})
    for option, value in (("languages", "english"), ("suppress", "X")):
        with pytest.raises(ConfigError, match=option):
            read(tmp_path, rows, options={option: value})
    with pytest.raises(InputError, match="no concept with a name"):
        read(tmp_path, rows, options={"suppress": "O"})


def test_relations_read_as_sentences(tmp_path: Path) -> None:
    conso = "".join(atom(cui, cui) for cui in ("child", "parent", "drug", "brand"))
    # The second (parent) is the parent of the first; the second (brand) is the trade name of the first.
    rel = (
        relation("child", "PAR", "parent", "inverse_isa")
        + relation("parent", "CHD", "child")
        + relation("drug", "RO", "brand", "tradename_of")
        + relation("drug", "RO", "brand", "tradename_of")
        + relation("drug", "RO", "brand", "tradename_of", sab="T")
    )
    terminology, report = read(tmp_path, {"MRCONSO": conso, "MRREL": rel})
    ids = terminology.concepts().collect()["concept_id"].to_list()
    said = [
        f"{ids[head]} {what} {ids[tail]} ({source})"
        for head, what, tail, source in terminology.relations().collect().rows()
    ]
    assert said == [
        "parent inverse_isa child (S)",
        "child CHD parent (S)",
        "brand tradename_of drug (S)",
        "brand tradename_of drug (T)",
    ]
    assert report.notes["relations given more than once"] == 1
    assert read(tmp_path, {"MRCONSO": conso, "MRREL": rel}, options={"relations": "no"})[0].n_relations == 0


def test_parents_and_children_by_rel_are_hierarchy_whatever_rela_says(tmp_path: Path) -> None:
    conso = "".join(atom(cui, cui) for cui in ("whole", "part", "leaf", "other"))
    rel = (
        relation("whole", "CHD", "part", "member_of")
        + relation("leaf", "PAR", "part", "has_member")
        + relation("whole", "CHD", "leaf", "isa")
        + relation("leaf", "PAR", "whole", "inverse_isa")
        + relation("whole", "RO", "other", "member_of")
        + relation("whole", "RB", "other")
    )
    terminology, report = read(tmp_path, {"MRCONSO": conso, "MRREL": rel})
    ids = terminology.concepts().collect()["concept_id"].to_list()
    said = [f"{ids[head]} {what} {ids[tail]}" for head, what, tail, _ in terminology.relations().collect().rows()]
    assert sorted(said) == [
        "leaf isa whole",
        "other RB whole",
        "other member_of whole",
        "part CHD whole",
        "part PAR leaf",
        "part has_member leaf",
        "part member_of whole",
        "whole inverse_isa leaf",
    ]
    assert report.n_rejected == 0
    linker = build_linker(tmp_path / "out", None, tmp_path / "linker", sparse=True)
    assert set(linker.only(under="whole").concept_ids) == {"whole", "part", "leaf"}


def test_what_a_filter_left_out_is_no_error(tmp_path: Path) -> None:
    files = {
        "MRCONSO": atom("C1", "a") + atom("C2", "b", "GER"),
        "MRREL": relation("C1", "RO", "C2"),
        "MRSTY": "C1|T1|A|Type|AT||\n" + "C2|T1|A|Type|AT||\n",
        "MRDEF": "C2|A1|AT||S|text|N||\n",
    }
    _, report = read(tmp_path, files, options={"languages": "en"})
    assert (report.n_relations, report.n_definitions, report.n_rejected) == (0, 0, 0)
    assert {what: count for what, count in report.notes.items() if "filter" in what} == {
        "semantic types of concepts that a filter left out": 1,
        "relations of concepts that a filter left out": 1,
        "definitions of concepts that a filter left out": 1,
    }


BAD_ROWS = {
    "17 fields": ("MRCONSO", atom("C9", "x").replace("|PT|", "|"), "wrong number of fields; expected 18 fields"),
    "19 fields": ("MRCONSO", atom("C9", "x|y"), "wrong number of fields; expected 18 fields"),
    "blank line": ("MRCONSO", "\n", "wrong number of fields"),
    "no name": ("MRCONSO", atom("C9", " "), "field STR"),
    "no code": ("MRCONSO", atom("", "x"), "field CUI"),
    "language": ("MRCONSO", atom("C9", "x", lat="en"), "field LAT"),
    "suppress": ("MRCONSO", atom("C9", "x", suppress="?"), "field SUPPRESS"),
    "relation to nowhere": ("MRREL", relation("C1", "RO", "C9"), "the release does not have"),
    "relation of 15 fields": ("MRREL", relation("C1", "RO", "C1")[:-2] + "\n", "expected 16 fields"),
    "no relation": ("MRREL", relation("C1", "", "C1"), "field REL"),
    "type of nobody": ("MRSTY", "C9|T1|A|Type|AT||\n", "the release does not have"),
    "no type": ("MRSTY", "C1|T1|A||AT||\n", "field STY"),
    "no definition": ("MRDEF", "C1|A1|AT||S||N||\n", "field DEF"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows(case: str, tmp_path: Path) -> None:
    name, bad, problem = BAD_ROWS[case]
    good = {
        "MRCONSO": atom("C1", "a"),
        "MRREL": relation("C1", "RO", "C1"),
        "MRSTY": "C1|T1|A|Type|AT||\n",
        "MRDEF": "C1|A1|AT||S|text|N||\n",
    }
    files = {**good, name: good[name] + bad + good[name]}
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, files)
    assert (caught.value.path, caught.value.line) == (tmp_path / "in" / f"{name}.RRF", 2)
    terminology, report = read(tmp_path, files, on_error="skip")
    assert report.n_rejected == 1
    assert pl.read_parquet(tmp_path / "out" / "rejects.parquet").select("file", "line").rows() == [(f"{name}.RRF", 2)]
    assert terminology.n_concepts == 1
    assert terminology.n_names == 1  # also where the good row stands before and after the bad one


def test_cut_off_last_line(tmp_path: Path) -> None:
    cut = atom("C2", "b")[:-3]
    with pytest.raises(InputError, match="a line cut off") as caught:
        read(tmp_path, {"MRCONSO": atom("C1", "a") + cut})
    assert caught.value.line == 2


def test_bad_row_far_into_the_file(tmp_path: Path) -> None:
    rows = [atom(f"C{number:07d}", f"name {number}") for number in range(90_000)]  # several blocks
    rows[77_777] = "bad\n"
    with pytest.raises(InputError) as caught:
        read(tmp_path, {"MRCONSO": "".join(rows)})
    assert caught.value.line == 77_778
    terminology, report = read(tmp_path, {"MRCONSO": "".join(rows)}, on_error="skip")
    assert (terminology.n_names, report.n_rejected) == (89_999, 1)
    assert terminology.concepts().collect()["concept_id"].is_sorted()


@settings(max_examples=20)
@given(
    data=st.lists(
        st.one_of(
            st.binary(max_size=30),
            st.text("C1|ENGPFY\r", max_size=40).map(str.encode),
            st.just(atom("C1", "a").encode()),
        ),
        max_size=6,
    ),
    name=st.sampled_from(["MRCONSO", "MRREL", "MRSTY", "MRDEF"]),
    on_error=st.sampled_from(["strict", "skip"]),
)
def test_whatever_stands_there(
    data: list[bytes], name: str, on_error: OnError, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tmp_path = tmp_path_factory.mktemp("fuzz")
    write_umls(tmp_path)
    (tmp_path / f"{name}.RRF").write_bytes(b"\n".join(data))
    with contextlib.suppress(InputError):
        assert import_terminology("umls", tmp_path, tmp_path / "out", on_error=on_error).n_names > 0
