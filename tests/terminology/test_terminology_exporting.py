"""Exports: what is imported again is what was exported, what is not is told."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from small_terminologies import Name, Record, content, record, tables, write

from onoma.errors import ArtifactExistsError, ConfigError, InputError, OnomaError
from onoma.terminology import (
    ExportReport,
    Terminology,
    export_formats,
    export_terminology,
    import_terminology,
    write_terminology,
)
from onoma.terminology.tables import MAPPING_RELATIONS
from onoma.terminology.writers.obographs import iri_of

OUT = {"umls": "out", "csv": "out", "biosyn": "out.txt", "obographs": "out.json"}
READ_OPTIONS = {"obographs": {"scopes": "all"}}


def round_trip(
    folder: Path, records: Sequence[Record], format: str, on_error: Any = "strict"
) -> tuple[ExportReport, dict[str, list[tuple[object, ...]]], dict[str, list[tuple[object, ...]]]]:
    """The report, what was exported, and what was imported again."""
    report = export_terminology(write(folder / "in", records), format, folder / OUT[format], on_error=on_error)
    import_terminology(format, folder / OUT[format], folder / "back", options=READ_OPTIONS.get(format))
    return report, content(folder / "in"), content(folder / "back")


def by_concept(tables: dict[str, list[tuple[object, ...]]]) -> dict[str, list[tuple[object, ...]]]:
    """OBO Graphs have definitions and cross-references in their concepts."""
    return {
        name: sorted(rows, key=lambda row: row[0]) if name in {"definitions", "cross_references"} else rows  # type: ignore[arg-type,return-value]
        for name, rows in tables.items()
    }


# Texts with everything that divides something somewhere.
NASTY = st.text('aB1 ",;|#\n\r\t\u2028\x85\ufeff:/_\\{é\u0301', min_size=1, max_size=6).filter(str.strip)
PLAIN = st.sampled_from(["heart", "Heart", "MI", 'x "y" #2', "a, b", "メニエール病"])


def terminologies(
    texts: st.SearchStrategy[str], codes: st.SearchStrategy[str], languages: Sequence[str]
) -> st.SearchStrategy[list[Record]]:
    """Concepts with distinct codes, in which nothing is said twice and nothing replaces itself in a circle."""

    @st.composite
    def build(draw: st.DrawFn) -> list[Record]:
        chosen = draw(st.lists(codes, min_size=1, max_size=4, unique=True))
        words = st.sampled_from(["", "S", "isa", "label", "exact_synonym", "broad_synonym/x"]) | texts
        names = st.builds(Name, texts, st.sampled_from(languages), words, words, st.booleans())
        return [
            Record(
                code,
                draw(st.lists(names, min_size=number == 0, max_size=3, unique=True)),
                draw(st.lists(texts, max_size=2, unique=True)),
                draw(st.sampled_from(["active", "obsolete"])),
                draw(st.sampled_from([None, "Else:1", *chosen[number + 1 :]])),
                draw(
                    st.lists(
                        st.tuples(st.sampled_from(["is_a", "CHD", "part_of"]) | texts, st.sampled_from(chosen), words),
                        max_size=2,
                        unique=True,
                    )
                ),
                draw(st.lists(st.tuples(texts, words), max_size=2, unique=True)),
                draw(st.lists(st.tuples(codes, st.sampled_from(MAPPING_RELATIONS), words), max_size=2, unique=True)),
            )
            for number, code in enumerate(chosen)
        ]

    return build()


@settings(max_examples=25)
@given(records=terminologies(NASTY, NASTY, ["en", "pt-BR", "und"]))
def test_csv_carries_everything(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> None:
    report, before, after = round_trip(tmp_path_factory.mktemp("csv"), records, "csv")
    assert report.not_carried == report.left_out == {}
    assert after == before


ANY = terminologies(NASTY, NASTY, ["en", "pt-BR", "und", "zzzz"])
ORDINARY = terminologies(PLAIN, st.sampled_from(["X:1", "X:2", "C3", "EFO:4", "x|y"]), ["en", "ja"])


def ontology_terms(records: list[Record]) -> list[Record]:
    """The same as a reader of ontologies would find them: sources by prefix, scopes, English."""

    def named(position: int, name: Name, source: str) -> Name:
        kind = "label" if position == 0 else ("exact_synonym", "broad_synonym/acronym")[position % 2]
        return Name(name.text, "en", source, kind)

    found = []
    for entry in records:
        source = entry.code.partition(":")[0] if ":" in entry.code else ""
        names = {name.text: name for name in entry.names}.values()
        found.append(
            entry._replace(
                names=[named(position, name, source) for position, name in enumerate(names)],
                status="active" if names else "obsolete",
                relations=list(dict.fromkeys((relation, tail, source) for relation, tail, _ in entry.relations)),
                definitions=[(text, source) for text, _ in entry.definitions[:1]],
                references=list({code: (code, relation, source) for code, relation, _ in entry.references}.values()),
            )
        )
    return found


@pytest.mark.parametrize("format", ["umls", "biosyn", "obographs"])
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(records=ANY | ORDINARY | ORDINARY.map(ontology_terms))
@example(records=[Record("C1", [Name("heart", "en", "", "")], relations=[("is_a", "C1", "")])])  # of itself
def test_nothing_is_lost_silently(format: str, records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp(format)
    try:
        report, before, after = round_trip(folder, records, format, "skip")
    except InputError as error:
        assert "no name of it can be written" in str(error)  # noqa: PT017
        assert not (folder / OUT[format]).exists()
        return
    if report.not_carried or report.left_out:
        assert [len(after[name]) for name in ("concepts", "names", "relations", "definitions", "cross_references")] == [
            report.n_concepts,
            report.n_names,
            report.n_relations,
            report.n_definitions,
            report.n_cross_references,
        ]
    else:
        assert by_concept(after) == by_concept(before)
    if not report.left_out:
        assert export_terminology(folder / "in", format, folder / "strict").n_names == report.n_names
    else:
        with pytest.raises(InputError, match="found concept"):
            export_terminology(folder / "in", format, folder / "strict")


def test_the_ordinary_is_carried(tmp_path: Path) -> None:
    """The property above would also hold of a writer that tells of losses it has not."""
    names = [
        Name("heart", "en", "S", "PT"),
        Name("MI", "en", "S", "SY", is_suppressed=True),
        Name("心", "ja", "S", "PT"),
    ]
    for_umls = [
        Record("C1", names, ["Disease or Syndrome", "x"], relations=[("isa", "C2", "S"), ("RO", "C2", "")],
               definitions=[("d", "S"), ("e", "T")]),
        Record("C2", [Name("x", "zxx", "", "")]),
        Record("C3", status="obsolete", replaced_by="C1"),
        Record("C4", status="obsolete", replaced_by="ELSE"),
        Record("C5", status="obsolete"),
    ]  # fmt: skip
    for_obographs = [
        Record(
            "X:1",
            [Name("heart", "en", "X", "label"), Name("MI", "en", "X", "narrow_synonym/abbreviation"),
             Name("h", "en", "X", "exact_synonym/mine"), Name("H", "en", "X", "related_synonym")],
            ["t", "u"],
            relations=[("part_of", "EFO:2", "X"), ("is_a", "EFO:2", "X")],
            definitions=[('d "e"', "X")],
            references=[("MESH:D1", "exactMatch", "X"), ("C1", "xref", "X")],
        ),
        Record("EFO:2", [Name("x", "en", "EFO", "label")], status="obsolete", replaced_by="X:1"),
        Record("none", status="obsolete"),
    ]  # fmt: skip
    for_biosyn = [Record("C1|C2", [Name("a||b", "und", "", ""), Name('"c', "und", "", "")]),
                  Record("D#", [Name(" d", "und", "", "")])]  # fmt: skip
    for format, records in (("umls", for_umls), ("obographs", for_obographs), ("biosyn", for_biosyn)):
        (tmp_path / format).mkdir()
        report, before, after = round_trip(tmp_path / format, records, format)
        assert report.not_carried == report.left_out == {}
        assert after == before


def test_rrf_as_the_manual_has_it(tmp_path: Path) -> None:
    records = [
        Record(
            "C1",
            [Name("Heart attack", "en", "S", "PT"), Name("heart attack", "en", "T", "SY"),
             Name("MI", "pt-BR", "S", "AB", True)],
            ["Disease or Syndrome", "my type"],
            relations=[("isa", "C2", "S"), ("treats", "C2", "S"), ("PAR", "C2", "")],
            definitions=[("Death.", "T"), ("No heart.", "U")],
            references=[("D1", "xref", "S")],
        ),
        Record("C2", [Name("Heart attack", "en", "S", "PT")], status="obsolete", replaced_by="C1"),
        Record("C3", status="obsolete", replaced_by="C1"),
        Record("C4", status="obsolete"),
        Record("C5"),
    ]  # fmt: skip
    report = export_terminology(write(tmp_path / "in", records), "umls", tmp_path / "out")
    files = {path.stem: path.read_text() for path in (tmp_path / "out").glob("*.RRF")}
    assert files == {
        "MRCONSO": "C1|ENG|P|L00000001|PF|S00000001|Y|A00000001||||S|PT|NOCODE|Heart attack||N||\n"
        "C1|ENG|P|L00000001|VO|S00000002|Y|A00000002||||T|SY|NOCODE|heart attack||N||\n"
        "C1|POR|P|L00000003|PF|S00000003|Y|A00000003||||S|AB|NOCODE|MI||Y||\n"
        "C2|ENG|P|L00000001|PF|S00000001|Y|A00000004||||S|PT|NOCODE|Heart attack||N||\n",
        "MRSTY": "C1|T047||Disease or Syndrome|AT00000001||\nC1|||my type|AT00000002||\n",
        "MRREL": "C2||CUI|CHD|C1||CUI|isa|R00000001||S|S||Y|N||\n"
        "C2||CUI|RO|C1||CUI|treats|R00000002||S|S||Y|N||\n"
        "C2||CUI|PAR|C1||CUI||R00000003|||||Y|N||\n",
        "MRDEF": "C1|A00000002|AT00000003||T|Death.|N||\nC1|A00000001|AT00000004||U|No heart.|N||\n",
        "MRCUI": "C2||SY|||C1|Y|\nC3||SY|||C1|Y|\nC4||DEL|||||\n",
    }
    assert report.not_carried == {
        "concepts without a name that are not obsolete": 1,
        "languages that RRF names less exactly": 1,
        "cross-references": 1,
    }
    assert (report.n_concepts, report.n_names, report.n_relations, report.n_definitions) == (4, 4, 3, 2)
    assert "cross-references: 1" in str(report)


def test_preferred_name_that_rrf_cannot_mark(tmp_path: Path) -> None:
    records = [
        Record("C1", [Name("coração", "pt"), Name("heart", "en")]),
        Record("C2", [Name("old", is_suppressed=True), Name("new")]),
        Record("C3", [Name("coração", "pt"), Name("心", "ja")]),
    ]
    report, _, after = round_trip(tmp_path, records, "umls")
    assert list(report.not_carried.values()) == [2]
    assert [row[1] for row in after["concepts"]] == ["heart", "new", "coração"]


def test_skip_takes_along_what_hangs_on_a_concept(tmp_path: Path) -> None:
    records = [
        record("a|b", "x", "y", types=["t"], relations=[("isa", "C2", "S")], definitions=[("d", "S")]),
        record("C2", "z", "p|q", relations=[("isa", "a|b", "S")]),
    ]
    with pytest.raises(InputError) as caught:
        export_terminology(write(tmp_path / "in", records), "umls", tmp_path / "out")
    assert caught.value.found == "concept 'a|b': 'a|b'"
    assert "--on-error skip" in str(caught.value)
    report = export_terminology(tmp_path / "in", "umls", tmp_path / "out", on_error="skip")
    problem = "a value with '|' or a line end, which this format cannot hold"
    assert report.left_out == {
        f"concepts: {problem}": 1,
        "names of concepts that were left out": 2,
        "semantic types of concepts that were left out": 1,
        "relations of concepts that were left out": 2,
        "definitions of concepts that were left out": 1,
        f"names: {problem}": 1,
    }
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["MRCONSO.RRF", "onoma.json"]


BAD = {
    "biosyn": [
        ("a||b", "x"), ("a|", "x"), (" a", "x"), ("a\n", "x"), ("\ufeffa", "x"), ("a", "x\ny"), ("a", "x\ry"),
        ("a", " \t"), ("a", "x\0"), (" ", "x"),
    ],
    "umls": [("a|", "x"), ("a", "x|y"), ("a", "x\n"), ("\ufeffa", "x"), ("a", " "), ("a\0", "x")],
    "obographs": [("http://purl.obolibrary.org/obo/X_1", "x"), ("a", "x\0"), ("\t", "x"), ("a", "\x1f")],
    "csv": [("a", "\r\n"), ("a\0", "x"), ("", "x")],
}  # fmt: skip


@pytest.mark.parametrize(("format", "code", "name"), [(f, *bad) for f, all_bad in BAD.items() for bad in all_bad])
def test_values_that_a_format_cannot_hold(format: str, code: str, name: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in", [record("good", "good"), record(code, name)])
    with pytest.raises(InputError, match="found concept"):
        export_terminology(source, format, tmp_path / OUT[format])
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    report = export_terminology(source, format, tmp_path / OUT[format], on_error="skip")
    assert sum(report.left_out.values()) >= 1
    assert report.n_names == 1


def test_relations_and_types_that_are_read_as_blank(tmp_path: Path) -> None:
    good = record("X:1", "x", types=["t"], relations=[("is_a", "X:1", "")])
    blank = record("X:2", "y", types=["\x1f"], relations=[("\x1c", "X:1", "")])
    source = write(tmp_path / "in", [good, blank])
    with pytest.raises(InputError, match="a value that is read as blank"):
        export_terminology(source, "obographs", tmp_path / "out.json")
    report = export_terminology(source, "obographs", tmp_path / "out.json", on_error="skip")
    said = "a value that is read as blank"
    assert report.left_out == {f"semantic types: {said}": 1, f"relations: {said}": 1}
    import_terminology("obographs", tmp_path / "out.json", tmp_path / "back")
    back = content(tmp_path / "back")
    assert [row[2] for row in back["concepts"]] == [["t"], []]
    assert [row[1] for row in back["relations"]] == ["is_a"]


def test_a_long_value_does_not_hide_its_concept(tmp_path: Path) -> None:
    long = "long " * 40 + "a|b"
    made = write(tmp_path / "in", [record("X:1", "fine"), record("X:2", long)])
    with pytest.raises(InputError, match=r"concept 'X:2': 'long long .*…\. To mend it"):
        export_terminology(made, "umls", tmp_path / "out")


def test_language_without_a_code_of_three_letters(tmp_path: Path) -> None:
    source = write(tmp_path / "in", [Record("C1", [Name("x", "zzzz"), Name("y", "xx")])])
    with pytest.raises(InputError, match="RRF has no code for"):
        export_terminology(source, "umls", tmp_path / "out")


def test_empty_successor_is_no_null(tmp_path: Path) -> None:
    source = write(tmp_path / "in", [record("a", "x", status="obsolete", replaced_by="")])
    with pytest.raises(InputError, match="an empty code"):
        export_terminology(source, "csv", tmp_path / "out")


def test_what_is_said_twice_is_told(tmp_path: Path) -> None:
    twice = record("a", "x", "x", definitions=[("d", ""), ("d", "")], references=[("c", "xref", "")] * 2)
    report, _, after = round_trip(tmp_path, [twice], "csv")
    assert list(report.not_carried.values()) == [1, 1, 1]
    assert [len(after[name]) for name in ("names", "definitions", "cross_references")] == [1, 1, 1]


def test_a_dictionary_has_preferred_names_first(tmp_path: Path) -> None:
    """Also where the same name comes again, in another language."""
    one = Record("C1", [Name("x"), Name("y"), Name("x", "de")])
    export_terminology(write(tmp_path / "in", [one]), "biosyn", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "C1||x\nC1||y\n"


def test_a_reference_of_which_others_say_more_is_one(tmp_path: Path) -> None:
    references = [("MESH:D1", relation, "X") for relation in ("xref", "closeMatch", "exactMatch")]
    one = Record("X:1", [Name("a", "en", "X", "label")], references=references)
    report, _, after = round_trip(tmp_path, [one], "obographs")
    assert report.not_carried == {"cross-references of which another says more": 1}
    assert [row[2] for row in after["cross_references"]] == ["closeMatch", "exactMatch"]


def test_white_space_around_texts_is_told_and_not_written(tmp_path: Path) -> None:
    names = [Name(" a\n", "en", "X", "label"), Name("b", "en", "X", "exact_synonym"), Name("b ", "en", "X", "label")]
    one = Record("X:1", names, definitions=[("d\x1f", "X")])
    report, _, after = round_trip(tmp_path, [one], "obographs")
    assert report.not_carried == {
        "white space around names": 2,
        "white space around definitions": 1,
        "term types of names that are no scope of a synonym": 1,
        "names that then are the same": 1,
    }
    assert [row[1] for row in after["names"]] == ["a", "b"]
    (node,) = json.loads((tmp_path / "out.json").read_text())["graphs"][0]["nodes"]
    assert (node["lbl"], node["meta"]["synonyms"][0]["val"], node["meta"]["definition"]["val"]) == ("a", "b", "d")


def test_types_of_synonyms_have_the_iris_of_the_library(tmp_path: Path) -> None:
    types = ["label", "exact_synonym/abbreviation", "broad_synonym/mine", "exact_synonym"]
    one = Record("X:1", [Name(kind, "en", "X", kind) for kind in types])
    export_terminology(write(tmp_path / "in", [one]), "obographs", tmp_path / "out.json")
    (node,) = json.loads((tmp_path / "out.json").read_text())["graphs"][0]["nodes"]
    written = [entry.get("synonymType") for entry in node["meta"]["synonyms"]]
    assert written == ["http://purl.obolibrary.org/obo/OMO_0003000", "mine", None]


@pytest.mark.parametrize(
    ("marked", "preferred_name", "n_lost"),
    [
        ([True, False], "a", 0),
        ([True, True], "a", 1),
        ([False, True], "a", 1),
        ([False, True], "b", 1),
        ([False, False], "a", 1),
        ([True, False], "b", 1),
        ([], "a", 1),
        ([], "", 0),
    ],
)
def test_preferred_names_that_are_no_first_ones_are_told(
    marked: list[bool], preferred_name: str, n_lost: int, tmp_path: Path
) -> None:
    made = tables([record("X:1", *"ab"[: len(marked)]), record("X:2", "c")])
    preferred, is_preferred = [preferred_name, "c"], [*marked, True]
    changed = dataclasses.replace(
        made,
        concepts=made.concepts.with_columns(preferred_name=pl.Series(preferred)),
        names=made.names.with_columns(is_preferred=pl.Series(is_preferred)),
    )
    write_terminology(tmp_path / "in", changed, config={})
    report = export_terminology(tmp_path / "in", "csv", tmp_path / "out")
    told = "preferred names that are not the first names of their concepts and the only ones marked"
    assert report.not_carried == ({told: n_lost} if n_lost else {})


def test_iri_of_a_code() -> None:
    assert iri_of("HP:0000001") == "http://purl.obolibrary.org/obo/HP_0000001"
    assert iri_of("MESH:D1") == "http://identifiers.org/mesh/D1"
    assert iri_of("X:a b/c") == "http://purl.obolibrary.org/obo/X_a%20b%2Fc"
    assert iri_of("APOLLO_SV:1") == "http://purl.obolibrary.org/obo/APOLLO_SV_1"  # read back by its last underscore
    for code in ("C1", "a:b_1", "X:", ":1", "http://example.org/x#1"):
        assert iri_of(code) == code


@pytest.mark.parametrize("format", OUT)
def test_same_bytes_every_time(format: str, tmp_path: Path) -> None:
    records = [
        record("X:1", "b", "a", types=["u", "t"], relations=[("r", "X:2", "S"), ("q", "X:2", "S")]),
        record("X:2", "c"),
    ]
    source = write(tmp_path / "in", records)
    for name in ("one", "two"):
        export_terminology(source, format, tmp_path / name)
    one, two = (
        {file.name: file.read_bytes() for file in ((tmp_path / name).glob("*.*") if (tmp_path / name).is_dir() else [])
         if file.name != "onoma.json"} or (tmp_path / name).read_bytes()
        for name in ("one", "two")
    )  # fmt: skip
    assert one == two


@pytest.mark.parametrize("format", ["biosyn", "obographs"])
def test_a_dash_is_no_file(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = write(tmp_path / "in", [record("X:1", "a")])
    with pytest.raises(ConfigError, match="not standard output"):
        export_terminology(source, format, "-")
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("format", OUT)
def test_place_is_taken(format: str, tmp_path: Path) -> None:
    source, out = write(tmp_path / "in", [record("X:1", "a")]), tmp_path / OUT[format]
    export_terminology(source, format, out)
    with pytest.raises(ArtifactExistsError):
        export_terminology(source, format, out)
    export_terminology(Terminology.open(source), format, out, overwrite=True)
    with pytest.raises(ArtifactExistsError):  # a terminology is no export
        export_terminology(source, format, source, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in", out.name])


def test_formats_and_policies(tmp_path: Path) -> None:
    source = write(tmp_path / "in", [record("a", "x")])
    with pytest.raises(ConfigError, match="Did you mean 'umls'"):
        export_terminology(source, "ulms", tmp_path / "out")
    with pytest.raises(ConfigError, match="Known: strict, skip"):
        export_terminology(source, "csv", tmp_path / "out", on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(OnomaError):
        export_terminology(tmp_path / "nowhere", "csv", tmp_path / "out")
    with pytest.raises(InputError, match="no name of it"):
        export_terminology(write(tmp_path / "empty", [Record("a")]), "csv", tmp_path / "out")
    assert set(export_formats()) == set(OUT)
    assert not (tmp_path / "out").exists()


def test_choices_stand_where_tools_look_for_them(tmp_path: Path) -> None:
    old = [
        record("X:3", "old", status="obsolete", relations=[("consider", "X:1", "X"), ("consider", "X:2", "X")]),
        record("X:4", "older", status="obsolete", replaced_by="X:1", relations=[("replaced_by", "X:2", "X")]),
    ]
    report, _, after = round_trip(tmp_path, [record("X:1", "a"), record("X:2", "b"), *old], "obographs")
    assert after["relations"] == [(2, "consider", 0, "X"), (2, "consider", 1, "X"), (3, "consider", 1, "X")]
    assert after["concepts"][3][-1] == "X:1"
    assert report.not_carried["relations replaced_by, which are written as consider"] == 1
    graph = json.loads((tmp_path / "out.json").read_text())["graphs"][0]
    assert re.fullmatch("urn:onoma:terminology:[0-9a-f]{16}", graph["id"])
    assert graph["edges"] == []
    assert {node["type"] for node in graph["nodes"]} == {"CLASS"}
    told = [entry["val"][-3:] for entry in graph["nodes"][2]["meta"]["basicPropertyValues"]]
    assert told == ["X_1", "X_2"]


def test_what_a_format_cannot_hold_is_said_once(tmp_path: Path) -> None:
    made = write(tmp_path / "in", [record("X:1", "a\nb")])
    with pytest.raises(InputError) as caught:
        export_terminology(made, "umls", tmp_path / "out")
    assert str(caught.value).count("line end") == 1


def test_successors_that_would_be_read_as_words(tmp_path: Path) -> None:
    """OBO Graphs have them in literals, where sentences stand too; what becomes an IRI is none."""
    records = [
        record("A:b c", "x"),
        record("A:1", "y", status="obsolete", replaced_by="A:b c"),
        record("A:2", "z", status="obsolete", replaced_by="see y"),
    ]
    with pytest.raises(InputError, match=r"read as words.*see y"):
        round_trip(tmp_path / "strict", records, "obographs")
    _, before, after = round_trip(tmp_path / "skip", records, "obographs", on_error="skip")
    assert after["concepts"] == before["concepts"][:2]
