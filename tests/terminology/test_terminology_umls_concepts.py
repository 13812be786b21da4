"""Semantic filters, trade names, retired concepts and cross-references of the UMLS by CUI."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_terminology_umls import atom, read, relation

from commands import run
from onoma.errors import ConfigError, InputError
from onoma.terminology import Terminology
from onoma.terminology.semantic_types import GROUP_OF, GROUPS, TYPES, type_words


def named(terminology: Terminology) -> dict[str, list[str]]:
    concepts = terminology.concepts().with_row_index("concept_row")
    rows = concepts.join(terminology.names(), on="concept_row", how="left", maintain_order="left_right").collect()
    found: dict[str, list[str]] = defaultdict(list)
    for concept_id, text in rows.select("concept_id", "text").iter_rows():
        found[concept_id] += [] if text is None else [text]
    return dict(found)


def types(*rows: tuple[str, str, str]) -> str:
    return "".join(f"{cui}|{tui}|A|{sty}|AT||\n" for cui, tui, sty in rows)


def test_semantic_groups_are_those_published() -> None:
    assert (len(GROUPS), len(TYPES), len(GROUP_OF)) == (15, 133, 133)
    sizes = {group: list(GROUP_OF.values()).count(group) for group in GROUPS}
    assert sizes == {
        "ACTI": 9, "ANAT": 11, "CHEM": 26, "CONC": 12, "DEVI": 3, "DISO": 12, "GENE": 5, "GEOG": 1, "LIVB": 21,
        "OBJC": 5, "OCCU": 2, "ORGA": 4, "PHEN": 6, "PHYS": 9, "PROC": 7,
    }  # fmt: skip
    assert all(len(tui) == 4 and tui[0] == "T" and tui[1:].isdigit() for tui in TYPES)
    assert len(set(TYPES.values())) == 133
    assert (TYPES["T047"], GROUP_OF["T047"], GROUPS["DISO"]) == ("Disease or Syndrome", "DISO", "Disorders")


@given(st.lists(st.sampled_from([*TYPES, *TYPES.values(), "My own type"]), max_size=6))
def test_types_are_found_between_commas(words: list[str]) -> None:
    assert list(type_words(",".join(words))) == words
    assert list(type_words(tuple(word for word in words if "," not in word))) == [w for w in words if "," not in w]


SEMANTIC = [
    ({"semantic_types": "T047"}, ["C1", "C2"]),
    ({"semantic_types": "disease or syndrome, My type"}, ["C1", "C2", "C4"]),
    ({"semantic_types": "Amino Acid, Peptide, or Protein"}, ["C3"]),
    ({"semantic_groups": "DISO"}, ["C1", "C2"]),
    ({"semantic_groups": "chemicals & drugs, Disorders"}, ["C1", "C2", "C3"]),
    ({"semantic_groups": "DISO", "semantic_types": "T999"}, ["C1", "C2", "C4"]),
    ({"semantic_groups": "DISO", "languages": "de"}, ["C2"]),
]


@pytest.mark.parametrize(("options", "expected"), SEMANTIC)
def test_semantic_filters(options: dict[str, str], expected: list[str], tmp_path: Path) -> None:
    sty = types(
        ("C1", "T047", "Disease or Syndrome"),
        ("C2", "T191", "Neoplastic Process"),
        ("C2", "T047", "Disease or Syndrome"),
        ("C3", "T116", "Amino Acid, Peptide, or Protein"),
        ("C4", "T999", "My type"),
    )
    files = {
        "MRCONSO": atom("C1", "a") + atom("C2", "b") + atom("C2", "B", "GER") + atom("C3", "c") + atom("C4", "d"),
        "MRSTY": sty,
        "MRREL": relation("C1", "RO", "C2") + relation("C1", "RO", "C3") + relation("C3", "RO", "C4"),
    }
    terminology, report = read(tmp_path, files, options=options)
    assert list(named(terminology)) == expected
    assert report.n_rejected == 0
    if "C2" in expected:
        row = expected.index("C2")
        both = ["Neoplastic Process", "Disease or Syndrome"]
        assert terminology.concepts().collect()["semantic_types"][row].to_list() == both
    n_kept = sum(a in expected and b in expected for a, b in (("C1", "C2"), ("C1", "C3"), ("C3", "C4")))
    assert terminology.n_relations == n_kept


def test_a_semantic_type_that_the_release_calls_otherwise(tmp_path: Path) -> None:
    files = {
        "MRCONSO": atom("C1", "a") + atom("C2", "b"),
        "MRSTY": types(("C1", "T047", "Disease"), ("C2", "T999", "My type")),
    }
    terminology, _ = read(tmp_path, files, options={"semantic_types": "Disease or Syndrome"})
    assert list(named(terminology)) == ["C1"]


def test_semantic_filters_that_make_no_sense(tmp_path: Path) -> None:
    files = {"MRCONSO": atom("C1", "a"), "MRSTY": types(("C1", "T047", "Disease or Syndrome"))}
    with pytest.raises(ConfigError, match=r"no semantic group 'DISOR'\. Did you mean 'DISO'"):
        read(tmp_path, files, options={"semantic_groups": "DISOR"})
    with pytest.raises(InputError, match=r"nothing of 'Disease or Syndrom'\. Did you mean 'Disease or Syndrome'"):
        read(tmp_path, files, options={"semantic_types": "Disease or Syndrom"})
    for word in ("T195", "t195", "antibiotic"):
        with pytest.raises(InputError, match=r"T195 \(Antibiotic\): no concept of it here") as caught:
            read(tmp_path, files, options={"semantic_types": f"T047,{word}"})
        assert "Did you mean" not in str(caught.value)
    with pytest.raises(InputError, match="no concept with a name"):
        read(tmp_path, files, options={"semantic_groups": "GEOG"})
    (tmp_path / "in" / "MRSTY.RRF").unlink()
    with pytest.raises(InputError, match=r"no MRSTY\.RRF"):
        read(tmp_path, {}, options={"semantic_groups": "DISO"})


DRUGS = {
    "MRCONSO": atom("C1", "ibuprofen", tty="IN")
    + atom("C1", "Ibuprofen", "GER")
    + atom("C2", "Advil", tty="BN", sab="RXNORM")
    + atom("C2", "ADVIL", tty="SY", suppress="Y")
    + atom("C3", "Motrin", tty="BN")
    + atom("C3", "Motrin", "GER", tty="BN")
    + atom("C4", "ibuprofen / codeine", tty="MIN"),
    # The second is the trade name of the first; the other row says the same from the other end.
    "MRREL": relation("C1", "RN", "C2", "tradename_of")
    + relation("C2", "RB", "C1", "has_tradename")
    + relation("C3", "RB", "C1", "has_tradename", sab="T")
    + relation("C4", "RN", "C3", "tradename_of")
    + relation("C1", "RN", "C1", "tradename_of"),
    "MRSTY": types(
        ("C1", "T109", "Organic Chemical"),
        ("C2", "T200", "Clinical Drug"),
        ("C3", "T200", "Clinical Drug"),
        ("C4", "T109", "Organic Chemical"),
    ),
}


def test_trade_names_become_names_of_the_drug_all_of_them(tmp_path: Path) -> None:
    relations = read(tmp_path, DRUGS)[0].relations().collect()
    terminology, report = read(tmp_path, DRUGS, options={"trade_names": "yes"})
    assert named(terminology) == {
        "C1": ["ibuprofen", "Ibuprofen", "Advil", "ADVIL", "Motrin", "Motrin"],
        "C2": ["Advil", "ADVIL"],
        "C3": ["Motrin", "Motrin"],
        "C4": ["ibuprofen / codeine", "Motrin", "Motrin"],
    }
    added = terminology.names().filter(pl.col("term_type") == "tradename_of").collect()
    assert added.select("text", "source", "language", "is_suppressed", "is_preferred").rows() == [
        ("Advil", "RXNORM", "en", False, False),
        ("ADVIL", "S", "en", True, False),
        ("Motrin", "S", "en", False, False),
        ("Motrin", "S", "de", False, False),
        ("Motrin", "S", "en", False, False),
        ("Motrin", "S", "de", False, False),
    ]
    assert report.notes["trade names that became names of their drugs"] == 6
    assert relations.equals(terminology.relations().collect())


@pytest.mark.parametrize(
    ("options", "of_drug"),
    [
        ({"relations": "no"}, ["ibuprofen", "Ibuprofen", "Advil", "ADVIL", "Motrin", "Motrin"]),
        ({"languages": "en"}, ["ibuprofen", "Advil", "ADVIL", "Motrin"]),
        ({"suppress": "N"}, ["ibuprofen", "Ibuprofen", "Advil", "Motrin", "Motrin"]),
        ({"sources": "S"}, ["ibuprofen", "Ibuprofen", "ADVIL"]),
        (
            {"semantic_groups": "CHEM", "semantic_types": "T109"},
            ["ibuprofen", "Ibuprofen", "Advil", "ADVIL", "Motrin", "Motrin"],
        ),
        ({"semantic_types": "T109"}, ["ibuprofen", "Ibuprofen", "Advil", "ADVIL", "Motrin", "Motrin"]),
    ],
)
def test_trade_names_and_filters(options: dict[str, str], of_drug: list[str], tmp_path: Path) -> None:
    terminology, report = read(tmp_path, DRUGS, options={"trade_names": "yes", **options})
    assert named(terminology)["C1"] == of_drug
    there = terminology.names().filter(pl.col("term_type") == "tradename_of").collect()
    assert report.notes["trade names that became names of their drugs"] == len(there)
    if options == {"semantic_types": "T109"}:
        assert list(named(terminology)) == ["C1", "C4"]
    assert terminology.n_relations == 0 if "relations" in options else True


def test_trade_names_of_drugs_that_a_filter_left_out_are_not_counted(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, DRUGS, options={"trade_names": "yes", "semantic_types": "T200"})
    assert set(named(terminology)) == {"C2", "C3"}
    assert "trade names that became names of their drugs" not in report.notes


def test_drug_without_a_name_of_its_own_gets_none(tmp_path: Path) -> None:
    files = {
        "MRCONSO": atom("C1", "Droge", "GER") + atom("C2", "Brand"),
        "MRREL": relation("C1", "RN", "C2", "tradename_of"),
    }
    terminology, _ = read(tmp_path, files, options={"trade_names": "yes", "languages": "en"})
    assert named(terminology) == {"C2": ["Brand"]}


@settings(max_examples=15)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), max_size=12),
    sizes=st.lists(st.integers(1, 3), min_size=6, max_size=6),
)
def test_trade_names_against_a_loop(
    pairs: list[tuple[int, int, bool]], sizes: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = {f"C{n}": [f"name {n}.{m}" for m in range(size)] for n, size in enumerate(sizes)}
    rel = "".join(
        relation(f"C{drug}", "RN", f"C{brand}", "tradename_of")
        if forward
        else relation(f"C{brand}", "RB", f"C{drug}", "has_tradename")
        for drug, brand, forward in pairs
    )
    conso = "".join(atom(cui, text) for cui, texts in own.items() for text in texts)
    terminology, _ = read(
        tmp_path_factory.mktemp("t"), {"MRCONSO": conso, "MRREL": rel}, options={"trade_names": "yes"}
    )
    expected = {cui: set(texts) for cui, texts in own.items()}
    for drug, brand, _ in pairs:
        expected[f"C{drug}"] |= set(own[f"C{brand}"])
    assert {cui: set(texts) for cui, texts in named(terminology).items()} == expected


MRCUI = (
    "C8|2000AC|SY|||C1|Y|\n"
    "C9|1993AA|DEL|||||\n"
    "C5|2003AB|RO|||C1|Y|\n"
    "C6|2003AB|RB|||C1|Y|\n"
    "C6|2003AB|SY|||C2|Y|\n"
    "C7|2003AB|SY|||C1|Y|\n"
    "C7|2003AB|SY|||C2|N|\n"
    "C4|2003AB|SY|||C0|N|\n"
    "C2|2003AB|SY|||C1|Y|\n"
)


def test_retired_concepts(tmp_path: Path) -> None:
    files = {"MRCONSO": atom("C1", "a") + atom("C2", "b", "GER"), "MRCUI": MRCUI}
    terminology, report = read(tmp_path, files)
    rows = terminology.concepts().select("concept_id", "preferred_name", "status", "replaced_by").collect().rows()
    assert rows == [
        ("C1", "a", "active", None),
        ("C2", "b", "obsolete", "C1"),
        ("C8", "", "obsolete", "C1"),
        ("C9", "", "obsolete", None),
        ("C5", "", "obsolete", None),
        ("C6", "", "obsolete", "C2"),
        ("C7", "", "obsolete", None),
        ("C4", "", "obsolete", "C0"),
    ]
    assert report.n_obsolete == 7
    assert report.notes["retired codes with several successors, of which none is taken"] == 1
    assert report.notes["retired concepts that have names"] == 1
    filtered, _ = read(tmp_path, files, options={"languages": "en"})
    assert filtered.concepts().collect()["concept_id"].to_list() == ["C1", "C8", "C5", "C7", "C2"]
    files |= {"MRSTY": types(("C2", "T047", "Disease or Syndrome")), "MRREL": relation("C1", "RB", "C8", "isa")}
    without, report = read(tmp_path, files, options={"retired": "no"})
    assert report.n_rejected == 0, "what is left out is known all the same"
    assert report.notes["relations of concepts that a filter left out"] == 1
    assert without.concepts().collect()["concept_id"].to_list() == ["C1"], "nor is one with names active by that"
    assert report.notes["names of retired concepts, left out"] == 1


def test_what_to_consider_in_place_of_retired_concepts(tmp_path: Path) -> None:
    mrcui = MRCUI + "C3|2003AB|RN|||C0|N|\nC3|2003AB|RN|||C2|Y|\nC3|2004AB|RN|||C2|Y|\nC10|2003AB|RO|||C10|Y|\n"
    files = {"MRCONSO": atom("C1", "a") + atom("C2", "b") + atom("C5", "named"), "MRCUI": mrcui}
    for options in ({}, {"relations": "no"}):
        terminology, report = read(tmp_path, files, options=options)
        ids = terminology.concepts().collect()["concept_id"]
        told = [(ids[head], what, ids[tail]) for head, what, tail, _ in terminology.relations().collect().rows()]
        assert told == [
            (head, "consider", tail) for head, tail in (("C5", "C1"), ("C7", "C1"), ("C7", "C2"), ("C3", "C2"))
        ]
        assert terminology.to_consider() == {"C5": ("C1",), "C7": ("C1",), "C3": ("C1",)}
        assert report.notes["concepts with one to consider in their place that is not among them"] == 1
    assert "consider C1" in run("terminology", "search", tmp_path / "out", "C5")
    without, _ = read(tmp_path, files, options={"retired": "no"})
    assert without.n_relations == 0


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("C8|2000AC|SY||||Y|\n", "field CUI2"),
        ("|2000AC|SY|||C1|Y|\n", "field CUI1"),
        ("C8|2000AC||||C1|Y|\n", "field REL"),
        ("C8|2000AC|SY|||C1|\n", "expected 7 fields"),
    ],
)
def test_bad_rows_of_mrcui(bad: str, problem: str, tmp_path: Path) -> None:
    files = {"MRCONSO": atom("C1", "a"), "MRCUI": "C9|1993AA|DEL|||||\n" + bad}
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, files)
    assert (caught.value.path, caught.value.line) == (tmp_path / "in" / "MRCUI.RRF", 2)
    terminology, report = read(tmp_path, files, on_error="skip")
    assert (terminology.n_concepts, report.n_rejected) == (2, 1)


def coded(cui: str, text: str, sab: str, code: str, **other: str) -> str:
    return atom(cui, text, sab=sab, **other).replace("|code|", f"|{code}|")


def test_cross_references(tmp_path: Path) -> None:
    conso = (
        coded("C1", "a", "MSH", "D1")
        + coded("C1", "A", "MSH", "D1")
        + coded("C1", "a", "SNOMEDCT_US", "22298006", suppress="O")
        + coded("C1", "a", "MTH", "NOCODE")
        + coded("C1", "aa", "CHV", "")
        + coded("C2", "b", "MSH", "D1")
        + coded("C2", "b", "NCI", "C3", lat="GER")
    )
    terminology, report = read(tmp_path, {"MRCONSO": conso}, options={"cross_references": "yes"})

    def references(terminology: Terminology) -> list[tuple[object, ...]]:
        return terminology.cross_references().collect().rows()

    assert references(terminology) == [
        (0, "MSH:D1", "xref", "MSH"),
        (0, "SNOMEDCT_US:22298006", "exactMatch", "SNOMEDCT_US"),
        (1, "MSH:D1", "xref", "MSH"),
        (1, "NCI:C3", "exactMatch", "NCI"),
    ]
    assert report.n_cross_references == 4
    assert read(tmp_path, {"MRCONSO": conso})[1].n_cross_references == 0
    options = {"cross_references": "yes", "languages": "en", "suppress": "N"}
    terminology, report = read(tmp_path, {"MRCONSO": conso}, options=options)
    assert [row[1] for row in references(terminology)] == ["MSH:D1", "MSH:D1", "NCI:C3"]
    options = {"cross_references": "yes", "sources": "MSH"}
    terminology, report = read(tmp_path, {"MRCONSO": conso}, options=options)
    assert [row[1] for row in references(terminology)] == ["MSH:D1", "MSH:D1"]
