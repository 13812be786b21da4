"""NCBI Taxonomy."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from importing import imported
from sample_tables import dump

from onoma.errors import InputError
from onoma.terminology import ImportReport, Terminology
from tiny import tarred, zipped

NODES = [
    ("1", "1", "no rank"),
    ("9604", "1", "family"),
    ("207598", "9604", "subfamily"),
    ("9605", "207598", "genus"),
    ("9606", "9605", "species"),
    ("63221", "9606", "subspecies"),
    ("10088", "1", "genus"),
    ("862507", "10088", "subgenus"),
    ("10090", "862507", "species"),
]
NAMES = [
    ("1", "all", "", "synonym"),
    ("1", "root", "", "scientific name"),
    ("9604", "Hominidae", "", "scientific name"),
    ("9604", "Pongidae", "Pongidae <Hominidae>", "in-part"),
    ("207598", "Homininae", "", "scientific name"),
    ("9605", "Homo", "", "scientific name"),
    ("9606", "Homo sapiens Linnaeus, 1758", "", "authority"),
    ("9606", "person", "", "common name"),
    ("9606", "human", "human <Homo sapiens>", "genbank common name"),
    ("9606", "Homo sapiens", "", "scientific name"),
    ("63221", "Neandertal", "", "scientific name"),
    ("10088", 'mice "x" | y', "mice <genus>", "genbank common name"),
    ("10088", "Mus", "Mus <genus>", "scientific name"),
    ("862507", "Mus", "Mus <subgenus>", "scientific name"),
    ("10090", "Mus musculus", "", "scientific name"),
    ("10090", "ABC 1", "ABC 1 <holotype>", "type material"),
    ("10090", "LK3 transgenic mice", "", "includes"),
]
MERGED = [("9000", "9606"), ("9001", "9000"), ("9002", "10090")]
DELETED = [("8000",), ("9002",)]


def files(**changes: Sequence[tuple[str, ...]] | str | None) -> dict[str, bytes | str]:
    """The files of a dump; `None` leaves one out."""
    nodes = [(*row, "AB", "0", "1", "11", "1", "0", "1", "0", "0", "a comment | of two") for row in NODES]
    tables: dict[str, Any] = {"nodes": nodes, "names": NAMES, "merged": MERGED, "delnodes": DELETED, **changes}
    written = {
        f"{table}.dmp": rows if isinstance(rows, str) else dump(*rows)
        for table, rows in tables.items()
        if rows is not None
    }
    return {**written, "division.dmp": dump(("0", "BCT", "Bacteria", "")), "readme.txt": "read me"}


def read(
    tmp_path: Path, content: dict[str, bytes | str], /, *, on_error: str = "strict", **options: Any
) -> tuple[Terminology, ImportReport]:
    (tmp_path / "dump").mkdir(exist_ok=True)
    for path in (tmp_path / "dump").iterdir():
        path.unlink()
    for name, text in content.items():
        (tmp_path / "dump" / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return imported("taxonomy", tmp_path / "dump", tmp_path / "out", on_error=on_error, **options)


def parents(terminology: Terminology) -> dict[str, str]:
    codes = terminology.concepts().collect()["concept_id"].to_list()
    relations = terminology.relations().collect()
    assert set(relations["relation"]) <= {"is_a"}
    return {codes[head]: codes[tail] for head, tail in relations.select("head_row", "tail_row").rows()}


def test_every_table(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, files())
    assert terminology.concepts().select("concept_id", "preferred_name", "semantic_types", "status", "replaced_by") \
        .collect().rows() == [
        ("1", "root", ["no rank"], "active", None),
        ("9604", "Hominidae", ["family"], "active", None),
        ("207598", "Homininae", ["subfamily"], "active", None),
        ("9605", "Homo", ["genus"], "active", None),
        ("9606", "Homo sapiens", ["species"], "active", None),
        ("63221", "Neandertal", ["subspecies"], "active", None),
        ("10088", "Mus", ["genus"], "active", None),
        ("862507", "Mus", ["subgenus"], "active", None),
        ("10090", "Mus musculus", ["species"], "active", None),
        ("9000", "", [], "obsolete", "9606"),
        ("9001", "", [], "obsolete", "9000"),
        ("9002", "", [], "obsolete", "10090"),
        ("8000", "", [], "obsolete", None),
    ]  # fmt: skip
    assert parents(terminology) == {code: parent for code, parent, _ in NODES if code != "1"}
    assert terminology.concept("9606").names == ("Homo sapiens", "person", "human")
    assert terminology.concept("10088").names == ("Mus", 'mice "x" | y')
    names = terminology.names().collect()
    assert names.filter(pl.col("text") == "human")["term_type"].to_list() == ["genbank common name"]
    assert (set(names["language"]), set(names["source"])) == ({"en"}, {"NCBITaxon"})
    assert terminology.successors() == {"9000": "9606", "9001": "9606", "9002": "10090"}
    assert report.notes == {
        "names of the class authority, left out": 1,
        "names of the class in-part, left out": 1,
        "names of the class type material, left out": 1,
        "names of the class includes, left out": 1,
        "concepts without a name (retired codes)": 4,
    }


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "folder in it", "gz", "file"])
def test_however_it_is_packed(kind: str, tmp_path: Path) -> None:
    given = tmp_path / kind
    if kind == "folder in it":
        (given / "taxdump").mkdir(parents=True)
        (given / "taxdump" / "older").mkdir()
        for name, text in files().items():
            (given / "taxdump" / name).write_text(str(text))
            (given / "taxdump" / "older" / name).write_text("older")
    elif kind == "gz":
        read(tmp_path, files())
        given = tmp_path / "dump"
        for path in given.glob("*.dmp"):
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    elif kind == "file":
        read(tmp_path, files())
        given = tmp_path / "dump" / "names.dmp"
    else:
        content = files()
        given.write_bytes(zipped(content) if kind == "zip" else tarred(content, is_gzip=kind == "tar.gz"))
    terminology, report = imported("taxonomy", given, tmp_path / "out")
    assert (terminology.n_concepts, report.n_names, report.n_relations) == (13, 13, 8)


def test_tables_that_may_be_missing_or_empty(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, files(merged=None, delnodes=""))
    assert terminology.n_concepts == len(NODES)
    assert report.notes["files that the release does not have: merged.dmp"] == 1
    assert not any("delnodes" in note for note in report.notes)
    for table in ("nodes", "names"):
        with pytest.raises(
            InputError, match=r"no folder with nodes\.dmp and names\.dmp .* found delnodes\.dmp, merged"
        ):
            read(tmp_path, files(**{table: None}))
        with pytest.raises(InputError, match="empty"):
            read(tmp_path, files(**{table: ""}))
    with pytest.raises(InputError, match=r"this is no nodes\.dmp of a taxonomy dump") as caught:
        read(tmp_path, files(nodes="1\t1\tno rank\n"))
    assert (caught.value.path, caught.value.line) == (tmp_path / "dump" / "nodes.dmp", 1)


def test_classes_of_names(tmp_path: Path) -> None:
    everything, _ = read(tmp_path, files(), name_classes="all")
    assert everything.n_names == len(NAMES)
    terminology, report = read(tmp_path, files(), name_classes="genbank common name,authority")
    assert terminology.concept("9606").names == ("human", "Homo sapiens Linnaeus, 1758")
    assert parents(terminology) == {}, "a taxon without a name is left out"
    assert report.notes["taxa without a name of the classes that are kept, left out"] == 7
    assert report.notes["names of the class scientific name, left out"] == 9
    with pytest.raises(InputError, match=r"nothing of 'genbank comon name'.* Did you mean 'genbank common name'"):
        read(tmp_path, files(), name_classes="genbank comon name")


def test_ranks(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, files(), ranks="species,genus")
    assert parents(terminology) == {"9606": "9605", "10090": "10088"}, "without its subgenus still of the genus"
    assert terminology.concepts().collect()["concept_id"].to_list() == [
        *("9605", "9606", "10088", "10090"),
        *("9000", "9002"),
    ]
    assert report.notes["taxa that a filter leaves out"] == 5
    assert report.notes["parents that are left out, in whose place the nearest above them stands"] == 1
    with pytest.raises(InputError, match=r"nothing of 'specis'.* Did you mean 'species'"):
        read(tmp_path, files(), ranks="specis")


def test_below(tmp_path: Path) -> None:
    terminology, _ = read(tmp_path, files(), below="207598, 10090", retired="no")
    codes = ["207598", "9605", "9606", "63221", "10090"]
    assert terminology.concepts().collect()["concept_id"].to_list() == codes
    assert parents(terminology) == {"9605": "207598", "9606": "9605", "63221": "9606"}
    with pytest.raises(InputError, match=r"no taxon '9000'.* name 9606, into which it was merged"):
        read(tmp_path, files(), below="9605,9000")
    with pytest.raises(InputError, match=r"no taxon '8000'; expected the tax_id of a taxon"):
        read(tmp_path, files(), below="8000")


def test_filters_are_those_of_a_walk_up_the_tree(tmp_path: Path) -> None:
    draw = random.Random(3)
    nodes = [("0", "0", "no rank")]
    for code in range(1, 300):
        parent = draw.randrange(max(0, code - 20), code)
        nodes.append((str(code), str(parent), draw.choice(["species", "genus", "clade"])))
    nodes.reverse()
    parent_of = {code: parent for code, parent, _ in nodes}
    rank_of = {code: rank for code, _, rank in nodes}
    names = [(code, f"name {code}", "", "scientific name") for code in parent_of]

    def above(code: str) -> list[str]:
        found = []
        while parent_of[code] != code:
            code = parent_of[code]
            found.append(code)
        return found

    below = {"5", "60", "61"}
    kept = {c for c in parent_of if below & {c, *above(c)} and rank_of[c] in ("species", "clade")}
    expected = {code: next(one for one in above(code) if one in kept) for code in kept if kept & {*above(code)}}
    content = files(nodes=nodes, names=names, merged=None, delnodes=None)
    terminology, _ = read(tmp_path, content, below=",".join(below), ranks="species,clade")
    assert set(terminology.concepts().collect()["concept_id"]) == kept
    assert parents(terminology) == expected


def test_taxa_that_go_in_a_circle_do_not_hang(tmp_path: Path) -> None:
    nodes = [("1", "2", "clade"), ("2", "3", "clade"), ("3", "1", "clade"), ("4", "3", "species")]
    names = [(code, "x", "", "scientific name") for code, *_ in nodes]
    content = files(nodes=nodes, names=names, merged=None, delnodes=None)
    terminology, _ = read(tmp_path, content, below="1", ranks="species")
    assert terminology.concepts().collect()["concept_id"].to_list() == ["4"]
    assert terminology.n_relations == 0


@pytest.mark.parametrize(
    ("table", "row", "problem"),
    [
        ("names", ("9606", "a", "", "synonym", "x"), "wrong number of fields"),
        ("names", ("9606", " ", "", "synonym"), "field name_txt: .*a value"),
        ("names", ("77", "a", "", "synonym"), r"nodes\.dmp does not have.* tax_id of nodes\.dmp"),
        ("nodes", ("9606", "1", "genus"), "an earlier line of this taxon says another thing"),
        ("nodes", ("77", "", "genus"), "field parent tax_id: .*a value"),
        ("merged", ("9000", "10090"), "an earlier line of this taxon says another thing"),
        ("merged", ("", "10090"), "field old_tax_id: .*a value"),
    ],
)
def test_bad_lines(table: str, row: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    tables: dict[str, Sequence[tuple[str, ...]]] = {"names": NAMES, "nodes": NODES, "merged": MERGED}
    good = tables[table]
    content = files(**{table: [*good, row]})
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, content)
    assert (caught.value.path, caught.value.line) == (tmp_path / "dump" / f"{table}.dmp", len(good) + 1)
    terminology, report = read(tmp_path, content, on_error="skip")
    assert (terminology.n_concepts, terminology.n_names, report.n_rejected) == (13, 13, 1)


def test_a_parent_that_is_not_there(tmp_path: Path) -> None:
    content = files(nodes=[*NODES[:-1], ("10090", "77", "species")])
    with pytest.raises(InputError, match="refers to a concept that the release does not have") as caught:
        read(tmp_path, content)
    assert (caught.value.path, caught.value.line) == (tmp_path / "dump" / "nodes.dmp", len(NODES))
    terminology, report = read(tmp_path, content, on_error="skip")
    assert report.n_rejected == 1
    assert "10090" not in parents(terminology)
    assert terminology.concept("10090").preferred_name == "Mus musculus"


def test_fields_that_are_no_bars(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fields without a bar; expected a tab and a bar behind each field") as caught:
        read(tmp_path, files(names="1\t|\troot\t|\t\t|\tscientific name\t|\n1\t|\tall\tx\t\t|\tsynonym\t|\n"))
    assert caught.value.line == 2


def test_a_merged_taxon_that_is_there(tmp_path: Path) -> None:
    terminology, report = read(tmp_path, files(merged=[("9606", "9605")], delnodes=None))
    assert terminology.concept("9606").status == "active"
    assert report.notes["merged or deleted taxa that nodes.dmp has, which count as active"] == 1


def test_two_dumps(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(zipped({f"{a}/{name}": text for a in "ab" for name, text in files().items()}))
    with pytest.raises(InputError, match=r"several dumps here: a, b"):
        imported("taxonomy", tmp_path / "x.zip", tmp_path / "out")
