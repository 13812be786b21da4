from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_terminologies import CODES, Name, Record, content, record, small_terminologies, write

from onoma.terminology import MergeReport, Terminology, merge_terminologies
from onoma.terminology.code_keys import code_keys
from onoma.terminology.merging.cross_references import connected_components, join_concepts

EXACT = "exactMatch"


def refers(code: str, *codes: str, relation: str = EXACT, name: str = "") -> Record:
    """An active concept that refers to others."""
    references = [(other, relation, "S") for other in codes]
    return record(code, name or f"name of {code}", references=references)


def joined(
    tmp_path: Path, *parts: list[Record], relations: tuple[str, ...] = (EXACT,), **options: Any
) -> tuple[Terminology, MergeReport]:
    folders = [write(tmp_path / f"part{number}", part) for number, part in enumerate(parts)]
    out = tmp_path / "out"
    report = merge_terminologies(folders, out, join_by_cross_references=relations, **options)
    return Terminology.open(out), report


def codes(terminology: Terminology) -> list[str]:
    return list(terminology.concepts().collect()["concept_id"])


@dataclass
class Graph:
    """What `join_concepts` is given, in plain lists."""

    places: list[set[int]]
    """Of each concept: terminologies that have it as an active one; none: it is retired."""
    keys: list[str]
    """Of each concept."""
    references: list[tuple[int, str, str]]
    """concept, relation, key"""
    relations: list[str]

    def groups(self) -> list[set[int]]:
        """Concepts that are one, by the rules of the module: plain sets, and every tie made one after the other."""
        active = [concept for concept, places in enumerate(self.places) if places]
        own = {self.keys[concept] for concept in active}
        retired = {key for key, places in zip(self.keys, self.places, strict=True) if not places}
        meant = {
            key
            for concept, relation, key in self.references
            if relation == EXACT in self.relations and key != self.keys[concept]
        }
        said = [
            (concept, key, relation)
            for concept, relation, key in self.references
            if relation in self.relations
            and key != self.keys[concept]
            and (key in own or (key not in retired and key in meant))
        ]
        heard = {(concept, key) for concept, key, _ in said}

        def trust(tie: tuple[int, str, str]) -> tuple[bool, int, bool]:
            concept, key, relation = tie
            others = [other for other in active if self.keys[other] == key]
            is_answered = any((other, self.keys[concept]) in heard for other in others)
            return not is_answered, self.relations.index(relation), key not in own

        ties = [(concept, self.keys[concept]) for concept in active] + [tie[:2] for tie in sorted(said, key=trust)]
        clusters: list[set[int | str]] = [{node} for node in (*range(len(self.keys)), *(key for _, key in ties))]
        for tie in ties:
            one, other = (next(cluster for cluster in clusters if node in cluster) for node in tie)
            here, there = (
                [place for node in cluster if isinstance(node, int) for place in self.places[node]]
                for cluster in (one, other)
            )
            if one is not other and not set(here) & set(there):
                one |= other
                clusters = [cluster for cluster in clusters if cluster is not other]
        members = [{node for node in cluster if isinstance(node, int)} for cluster in clusters]
        return [group for group in members if group]


KEYS = ["k0", "k1", "k2", "k3", "absent", "missing"]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Dense ones, since clashes and chains are what is wanted."""
    n_concepts = 5
    places = st.sampled_from([{0}, {1}, {2}, {0, 1}, {3}, set()])
    relations = st.sampled_from([EXACT, "xref", "closeMatch"])
    references = st.tuples(st.integers(0, n_concepts - 1), relations, st.sampled_from(KEYS))
    return Graph(
        [draw(places) for _ in range(n_concepts)],
        [*KEYS[:4], draw(st.sampled_from(KEYS[:2]))],
        draw(st.lists(references, min_size=6, max_size=9)),
        draw(st.sampled_from([[EXACT, "xref"], ["xref", EXACT, "closeMatch"], ["closeMatch", "xref"], [EXACT]])),
    )


@settings(max_examples=100)
@given(graph=graphs())
def test_joining_follows_its_rules(graph: Graph) -> None:
    owners = [
        (concept, place, graph.keys[concept]) for concept, places in enumerate(graph.places) for place in sorted(places)
    ]
    references = [reference for reference in graph.references if graph.places[reference[0]]]
    graph.references = references
    joining = join_concepts(
        len(graph.keys),
        pl.DataFrame(owners, schema={"concept": pl.Int64, "terminology": pl.Int64, "key": pl.String}, orient="row"),
        pl.Series([key for key, places in zip(graph.keys, graph.places, strict=True) if not places], dtype=pl.String),
        pl.DataFrame(references, schema={"concept": pl.Int64, "relation": pl.String, "key": pl.String}, orient="row"),
        graph.relations,
    )
    named_by = {concept: min(group) for group in graph.groups() for concept in group}
    assert joining.named_by.tolist() == [named_by[concept] for concept in range(len(graph.keys))]


@settings(max_examples=10)
@given(
    parts=st.lists(small_terminologies([*CODES, "a:1"]), min_size=1, max_size=3),
    relations=st.sampled_from([[EXACT], [EXACT, "xref"], ["xref", "closeMatch", EXACT]]),
)
def test_nothing_is_lost_in_a_joined_concept(
    parts: list[list[Record]], relations: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    terminology, report = joined(tmp_path_factory.mktemp("join"), *parts, relations=tuple(relations))
    order = list(dict.fromkeys(entry.code for part in parts for entry in part))
    number = {key: place for place, key in enumerate(order)}
    first = {entry.code: entry for part in reversed(parts) for entry in part}
    active = {code for code, entry in first.items() if entry.status == "active"}
    records = [
        (place, entry)
        for place, part in enumerate(parts)
        for entry in part
        if entry.code in active and entry.status == "active"
    ]
    graph = Graph(
        [{place for place, entry in records if entry.code == code} for code in order],
        [code.upper() for code in order],
        [(number[entry.code], kind, code.upper()) for _, entry in records for code, kind, _ in entry.references],
        relations,
    )
    wanted = {order[min(group)]: {order[concept] for concept in group} for group in graph.groups()}
    assert codes(terminology) == sorted(wanted, key=order.index)
    assert report.n_joined == len(order) - len(wanted)

    names, references = terminology.names().collect(), terminology.cross_references().collect()
    for row, code in enumerate(codes(terminology)):
        united = {name[:4] for part in parts for entry in part if entry.code in wanted[code] for name in entry.names}
        of_concept = names.filter(concept_row=row)
        assert set(of_concept.select("text", "language", "source", "term_type").iter_rows()) == united
        assert of_concept["is_preferred"].to_list() == [position == 0 for position in range(len(of_concept))]
        assert wanted[code] - {code} <= set(references.filter(concept_row=row, relation=EXACT)["code"])  # the way back
    vanished = set(order) - set(wanted)
    assert not vanished & set(terminology.concepts().collect()["replaced_by"].drop_nulls())


@settings(max_examples=100)
@given(n_nodes=st.integers(1, 12), edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=15))
def test_components_against_a_naive_closure(n_nodes: int, edges: list[tuple[int, int]]) -> None:
    edges = [edge for edge in edges if max(edge) < n_nodes]
    wanted = list(range(n_nodes))
    for _ in range(n_nodes):
        for one, other in edges:
            wanted[one] = wanted[other] = min(wanted[one], wanted[other])
    heads, tails = (np.array([edge[side] for edge in edges], np.int64) for side in (0, 1))
    assert connected_components(n_nodes, heads, tails).tolist() == wanted


def test_a_long_chain_in_any_order() -> None:
    chain = np.random.default_rng(0).permutation(20_000)
    assert not connected_components(20_000, chain[:-1], chain[1:]).any()


def test_without_asking_nothing_is_joined(tmp_path: Path) -> None:
    terminology, report = joined(tmp_path, [refers("M:1", "D:1")], [refers("D:1", "M:1")], relations=())
    assert codes(terminology) == ["M:1", "D:1"]
    assert (report.n_joined, report.n_refused) == (0, 0)


def test_a_joined_concept_and_what_hangs_on_it(tmp_path: Path) -> None:
    terminology, report = joined(
        tmp_path,
        [
            Record("M:1", [Name("heart attack"), Name("MI")], ["disease"], references=[("D:1", EXACT, "M")]),
            record("M:2", "heart disease", relations=[("is_a", "M:1", "M")]),
        ],
        [
            Record(
                "D:1",
                [Name("myocardial infarction"), Name("MI")],
                ["finding"],
                relations=[("part_of", "D:2", "D"), ("is_a", "D:2", "D")],
                definitions=[("dead muscle", "D")],
                references=[("M:1", "xref", "D"), ("UMLS:C1", "xref", "D"), ("D:1", "xref", "D")],
            ),
            record("D:2", "disease of the heart", references=[("M:2", EXACT, "D")]),
            record("D:3", status="obsolete", replaced_by="D:1"),
        ],
    )
    assert codes(terminology) == ["M:1", "M:2", "D:3"]
    one = terminology.concept("M:1")
    assert one.names == ("heart attack", "MI", "myocardial infarction")
    assert (one.preferred_name, one.semantic_types) == ("heart attack", ("disease", "finding"))
    assert terminology.concept("D:3").replaced_by == "M:1"
    relations = terminology.relations().collect().rows()
    assert relations == [(1, "is_a", 0, "M"), (0, "part_of", 1, "D"), (0, "is_a", 1, "D")]
    assert terminology.definitions().collect().rows() == [(0, "dead muscle", "D")]
    assert terminology.cross_references().collect().rows() == [
        (0, "D:1", EXACT, "M"),
        (0, "UMLS:C1", "xref", "D"),
        (0, "D:1", "xref", "D"),
        (1, "D:2", EXACT, "merge"),
    ]
    assert report.n_joined == 2
    assert [part.n_joined for part in report.parts] == [0, 2]


def test_relations_within_a_joined_concept_are_left_out(tmp_path: Path) -> None:
    # Both codes are of one release of C, but only its older one calls B:1 active.
    terminology, report = joined(
        tmp_path,
        [refers("A:1", "B:1")],
        [record("B:1", "b"), record("B:2", "b2")],
        [record("B:1", "b", status="obsolete", relations=[("is_a", "A:1", "S")]), record("A:1", "a")],
    )
    assert codes(terminology) == ["A:1", "B:2"]
    assert terminology.relations().collect().is_empty()
    assert report.notes["relations within one merged concept, left out"] == 1


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("MESH:D1", "mesh:D1"),
        ("MSH:D1", "MESH:D1"),
        ("SNOMEDCT_US_2023_03_01:22", "SCTID:22"),
        ("Orphanet:58", "ORPHA:58"),
        ("http://www.orpha.net/ORDO/Orphanet_58", "ORPHA:58"),
        ("http://purl.obolibrary.org/obo/DOID_5844", "DOID:5844"),
        ("EFO:0000612", "EFO_0000612"),
        ("HGNC:HGNC:5", "HGNC:5"),
        ("MIM:1", "OMIM:1"),
        ("MIM:PS105400", "OMIMPS:105400"),
        ("https://omim.org/phenotypicSeries/PS105400", "OMIM:PS105400"),
        ("omim.ps:105400", "OMIMPS:105400"),
    ],
)
def test_spellings_of_a_code(written: str, code: str, tmp_path: Path) -> None:
    terminology, _ = joined(tmp_path / "prefixes", [refers("M:1", written)], [record(code, "x")])
    assert codes(terminology) == ["M:1"]
    assert (0, code, EXACT, "merge") in terminology.cross_references().collect().rows()
    terminology, _ = joined(tmp_path / "exact", [refers("M:1", written)], [record(code, "x")], match_codes="exact")
    assert codes(terminology) == ["M:1", code]


def test_codes_that_differ_stay_apart() -> None:
    different = ["MESH:D1", "MESH:d1", "OMIM:1", "OMIMPS:1", "D1", "d1", "a", "a:", ":a", "", "é:1", "X:1", "X:1 "]
    different += ["OMIM:PS", "OMIM:PSX1", "HP:PS1", "X:PS1"]
    assert code_keys(pl.Series(different)).n_unique() == len(different)


def test_bare_codes_of_a_known_vocabulary(tmp_path: Path) -> None:
    parts = [refers("M:1", "MESH:D1")], [record("D1", "d")]
    terminology, _ = joined(tmp_path / "unknown", *parts)
    assert codes(terminology) == ["M:1", "D1"]
    terminology, _ = joined(tmp_path / "said", *parts, vocabularies={"part1": "msh"})
    assert codes(terminology) == ["M:1"]
    terminology, _ = joined(tmp_path / "with a colon", *parts, vocabularies={"part1": "msh: "})
    assert codes(terminology) == ["M:1"]
    terminology, _ = joined(tmp_path / "prefixed", *parts, prefixes={"part1": "MESH:"})
    assert codes(terminology) == ["M:1"]
    both = {"prefixes": {"part1": "ours "}, "vocabularies": {"part1": "MESH"}}
    terminology, _ = joined(
        tmp_path / "both",
        *reversed(parts),
        **{  # type: ignore[arg-type]
            name: {"part0": value["part1"]} for name, value in both.items()
        },
    )
    assert codes(terminology) == ["ours D1"]


def test_bare_codes_of_a_format(tmp_path: Path) -> None:
    """MeSH's are MeSH's, unless a prefix says whose they are."""
    ours = write(tmp_path / "ours", [refers("M:1", "MESH:D1"), refers("M:2", "MINE:D1")])
    theirs = write(tmp_path / "theirs", [record("D1", "d")], format_="mesh")
    assert codes(merge_again(tmp_path / "known", ours, theirs)[0]) == ["M:1", "M:2"]
    prefixed, _ = merge_again(tmp_path / "prefixed", ours, theirs, prefixes={"theirs": "MINE:"})
    assert prefixed.concept("M:1").names == ("name of M:1",)
    assert prefixed.concept("M:2").names == ("name of M:2", "d")


def test_an_absent_code_joins_those_that_match_it_exactly(tmp_path: Path) -> None:
    def parts(relation: str) -> list[list[Record]]:
        return [[refers("M:1", "UMLS:C1", relation=relation)], [refers("D:1", "umls:C1", relation=relation)]]

    terminology, report = joined(tmp_path / "exact", *parts(EXACT))
    assert codes(terminology) == ["M:1"]
    assert report.n_joined == 1
    terminology, _ = joined(tmp_path / "xref", *parts("xref"), relations=("xref",))
    assert codes(terminology) == ["M:1", "D:1"]
    both = [refers("M:1", "UMLS:C1")], [refers("D:1", "UMLS:C1", relation="xref")]
    terminology, _ = joined(tmp_path / "what refers to what it is", *both, relations=(EXACT, "xref"))
    assert codes(terminology) == ["M:1"]


def test_two_concepts_of_one_terminology_are_never_joined(tmp_path: Path) -> None:
    terminology, report = joined(
        tmp_path / "through a third",
        [refers("M:1", "D:1", "U:1"), refers("M:2", "D:1")],
        [record("D:1", "d")],
    )
    assert codes(terminology) == ["M:1", "M:2"]
    assert (report.n_joined, report.n_refused, report.refused) == (1, 1, (("M:2", "D:1"),))
    assert str(report).endswith("would unite two concepts of one terminology: M:2 to D:1")
    assert "M:2 to D:1" in str(report)
    rows = terminology.cross_references().collect().rows()
    assert (1, "D:1", EXACT, "S") in rows  # what it said is still said

    terminology, report = joined(
        tmp_path / "both sides first", [refers("M:1", "D:1"), refers("M:2", "D:1")], [refers("D:1", "M:2")]
    )
    assert codes(terminology) == ["M:1", "M:2"]
    assert (1, "D:1", EXACT, "merge") not in terminology.cross_references().collect().rows()
    assert set(terminology.concept("M:2").names) == {"name of M:2", "name of D:1"}
    assert report.refused == (("M:1", "D:1"),)

    terminology, report = joined(
        tmp_path / "the more trusted first",
        [refers("M:1", "D:1", relation="xref"), refers("M:2", "D:1")],
        [record("D:1", "d")],
        relations=(EXACT, "xref"),
    )
    assert set(terminology.concept("M:2").names) == {"name of M:2", "d"}

    terminology, report = joined(
        tmp_path / "codes that are there first", [refers("M:1", "U:9"), refers("M:2")], [refers("D:1", "U:9", "M:2")]
    )
    assert set(terminology.concept("M:2").names) == {"name of M:2", "name of D:1"}

    terminology, report = joined(tmp_path / "itself", [refers("M:1", "M:2"), record("M:2", "m")])
    assert codes(terminology) == ["M:1", "M:2"]
    assert report.n_refused == 1


def test_retired_concepts_are_not_joined(tmp_path: Path) -> None:
    terminology, report = joined(
        tmp_path,
        [refers("M:1", "D:1"), record("M:2", "m", status="obsolete", references=[("D:2", EXACT, "S")])],
        [record("D:1", "d", status="obsolete"), record("D:2", "d2"), refers("D:3", "M:2")],
        [refers("E:1", "D:1")],
    )
    assert codes(terminology) == ["M:1", "M:2", "D:1", "D:2", "D:3", "E:1"]
    assert report.notes == {
        "cross-references to retired concepts, not followed": 3,
        "concepts that cross-references joined": 0,
    }


def test_a_merged_terminology_is_merged_on(tmp_path: Path) -> None:
    first, _ = joined(tmp_path / "one", [refers("M:1", "D:1")], [record("D:1", "d")])
    before = content(first.path)
    alone, _ = merge_again(tmp_path / "alone", first.path)
    assert content(alone.path) == before
    more, _ = merge_again(tmp_path / "more", first.path, write(tmp_path / "e", [refers("E:1", "D:1")]))
    assert codes(more) == ["M:1"]


def merge_again(out: Path, *folders: Path, **options: Any) -> tuple[Terminology, MergeReport]:
    report = merge_terminologies(folders, out, join_by_cross_references=[EXACT], **options)
    return Terminology.open(out), report
