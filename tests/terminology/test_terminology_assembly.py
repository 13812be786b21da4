from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import InputError
from onoma.files.reading import Reading
from onoma.terminology.assembly import (
    SOURCE_CONCEPTS,
    SOURCE_NAMES,
    SOURCE_RELATIONS,
    SOURCE_TYPES,
    SourceTables,
    assemble,
)
from onoma.terminology.tables import check_tables

PATH = Path("x.txt")


def names(rows: list[tuple[str, str, int]]) -> pl.DataFrame:
    """(concept, text, preference)."""
    return pl.DataFrame(
        [(concept, text, "en", "", "", preference, False) for concept, text, preference in rows],
        schema=SOURCE_NAMES,
        orient="row",
    )


def relations(rows: list[tuple[str, str]]) -> pl.DataFrame:
    return pl.DataFrame([(a, "r", b, "", n) for n, (a, b) in enumerate(rows, 1)], schema=SOURCE_RELATIONS, orient="row")


def concepts(replaced_by: dict[str, str | None]) -> pl.DataFrame:
    rows = [(concept, "obsolete", other) for concept, other in replaced_by.items()]
    return pl.DataFrame(rows, schema=SOURCE_CONCEPTS, orient="row")


@settings(max_examples=50)
@given(rows=st.lists(st.tuples(st.sampled_from("ABCDE"), st.integers(0, 3)), min_size=1, max_size=25))
def test_order_of_names_against_loops(rows: list[tuple[str, int]]) -> None:
    numbered = [(concept, f"name {number}", preference) for number, (concept, preference) in enumerate(rows)]
    made = assemble(SourceTables(path=PATH, names=names(numbered)), Reading())
    check_tables(made)
    expected = []
    order = list(dict.fromkeys(concept for concept, _ in rows))
    for concept in order:
        own = [(preference, text) for code, text, preference in numbered if code == concept]
        best = min(own, key=lambda entry: entry[0])
        expected.append((concept, [best[1], *(text for _, text in own if text != best[1])]))
    assert made.concepts["concept_id"].to_list() == order
    found = made.names.group_by("concept_row", maintain_order=True).agg("text")["text"].to_list()
    assert list(zip(order, found, strict=True)) == expected
    assert made.concepts["preferred_name"].to_list() == [texts[0] for _, texts in expected]
    assert made.names.filter("is_preferred")["text"].to_list() == [texts[0] for _, texts in expected]


def test_a_name_is_kept_once_for_all_that_is_said_of_it() -> None:
    rows = [("A", "a", "en", "S", "T", 0, is_suppressed) for is_suppressed in (False, True, False)]
    reading = Reading()
    made = assemble(SourceTables(path=PATH, names=pl.DataFrame(rows, schema=SOURCE_NAMES, orient="row")), reading)
    assert made.names.select("text", "is_preferred", "is_suppressed").rows() == [("a", True, False), ("a", False, True)]
    told = {"names given more than once (same language, source, term type and suppression), kept once": 1}
    assert reading.notes == told


def test_relations_to_nowhere() -> None:
    found = SourceTables(
        path=PATH,
        names=names([("A", "a", 0), ("B", "b", 0)]),
        relations=relations([("A", "B"), ("A", "Z"), ("Y", "B"), ("A", "B"), ("A", "gone")]),
        known_elsewhere=pl.Series(["gone"]),
        paths={"relations": Path("rel.txt")},
    )
    with pytest.raises(InputError, match="does not have; expected a concept with a name; found A r Z") as caught:
        assemble(found, Reading())
    assert (caught.value.path, caught.value.line) == (Path("rel.txt"), 2)
    reading = Reading(on_error="skip")
    made = assemble(found, reading)
    assert made.relations.select("head_row", "tail_row").rows() == [(0, 1)]
    assert reading.rejects.select("file", "line", "text").rows() == [("rel.txt", 2, "A r Z"), ("rel.txt", 3, "Y r B")]
    assert reading.notes == {"relations of concepts that a filter left out": 1, "relations given more than once": 1}


def test_relations_outside_an_ontology_are_normal() -> None:
    found = SourceTables(
        path=PATH, names=names([("A", "a", 0)]), relations=relations([("A", "Z")]), may_refer_outside=True
    )
    reading = Reading()
    assert assemble(found, reading).relations.is_empty()
    assert reading.notes == {"relations to or from terms that are not among the concepts, left out": 1}


def test_terms_elsewhere_to_consider_are_counted_by_themselves() -> None:
    rows = [("A", "consider", "Y", "", 1), ("A", "consider", "Z", "", 2), ("A", "consider", "B", "", 3)]
    found = SourceTables(
        path=PATH,
        names=names([("A", "a", 0), ("B", "b", 0)]),
        relations=pl.DataFrame([*rows, ("B", "is_a", "Z", "", 4)], schema=SOURCE_RELATIONS, orient="row"),
        may_refer_outside=True,
    )
    reading = Reading()
    assert assemble(found, reading).relations.select("head_row", "relation", "tail_row").rows() == [(0, "consider", 1)]
    assert reading.notes == {
        "concepts with one to consider in their place that is not among them": 1,
        "relations to or from terms that are not among the concepts, left out": 1,
    }


def test_types_of_nobody() -> None:
    types = pl.DataFrame(
        [("A", "t", 1), ("A", "u", 2), ("A", "t", 3), ("Z", "t", 4)], schema=SOURCE_TYPES, orient="row"
    )
    found = SourceTables(path=PATH, names=names([("A", "a", 0)]), semantic_types=types)
    with pytest.raises(InputError, match="found Z") as caught:
        assemble(found, Reading())
    assert caught.value.line == 4
    assert assemble(found, Reading(on_error="skip")).concepts["semantic_types"].to_list() == [["t", "u"]]


@settings(max_examples=40)
@given(successor=st.dictionaries(st.sampled_from("ABCDEF"), st.sampled_from("ABCDEFGH")))
def test_circles(successor: dict[str, str]) -> None:
    codes: dict[str, str | None] = {code: successor.get(code) for code in "ABCDEF"}
    in_circle = set()
    for code in codes:
        step, trail = successor.get(code), []
        while step is not None and step not in trail:
            trail.append(step)
            step = successor.get(step)
        if code in trail:
            in_circle.add(code)
    own = {code for code in codes if successor.get(code) == code}  # says nothing: noted, and no error
    found = SourceTables(path=PATH, names=names([("A", "a", 0)]), concepts=concepts(codes), may_refer_outside=True)
    if in_circle - own:
        with pytest.raises(InputError, match="in a circle"):
            assemble(found, Reading())
    reading = Reading(on_error="skip")
    made = assemble(found, reading)
    expected = [None if code in in_circle else other for code, other in codes.items()]
    assert made.concepts["replaced_by"].to_list() == expected
    assert bool(in_circle - own) == (len(reading.rejects) > 0)
    assert reading.notes.get("concepts replaced by themselves (they keep no successor)", 0) == len(own)


def test_long_chain_of_successors() -> None:
    codes: dict[str, str | None] = {f"c{number}": f"c{number + 1}" for number in range(5000)}
    found = SourceTables(
        path=PATH, names=names([("c0", "a", 0)]), concepts=concepts({**codes, "c5000": None}), may_refer_outside=True
    )
    assert assemble(found, Reading()).concepts["replaced_by"].null_count() == 1


def test_nothing_found() -> None:
    with pytest.raises(InputError, match="no concept with a name"):
        assemble(SourceTables(path=PATH, names=names([])), Reading())
    with pytest.raises(InputError, match="no concept has a name"):
        assemble(SourceTables(path=PATH, names=names([]), concepts=concepts({"A": None})), Reading())


def test_rejected_text_is_printable_and_short() -> None:
    reading = Reading(on_error="skip")
    reading.reject("bad", path=PATH, line=3, text="x" * 10_000)
    reading.reject("bad", path=PATH, text="half \ud800 character")
    assert [len(text) <= 500 for text in reading.rejects["text"]] == [True, True]
    assert reading.rejects["line"].to_list() == [3, None]
