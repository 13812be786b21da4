"""``onoma terminology merge``, ``enrich`` and ``diff``, through the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from commands import invoke, run
from onoma.errors import OnomaError

MERGE, DIFF = ("terminology", "merge"), ("terminology", "diff")

ONTOLOGY = "\n[Term]\nid: {0}\nname: {1}\n{2}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an ontology in two releases and a table of codes that the ontology refers to."""
    folder = tmp_path_factory.mktemp("merge")
    old = [("X:1", "heart attack", "xref: MSH:D1\n"), ("X:2", "stroke", ""), ("X:3", "cold", "")]
    new = [("X:1", "heart [attack]", ""), ("X:2", "obsolete stroke", "is_obsolete: true\nreplaced_by: X:1\n")]
    for name, terms in (("old", old), ("new", [*new, ("X:4", "flu", "")])):
        (folder / f"{name}.obo").write_text("format-version: 1.4\n" + "".join(ONTOLOGY.format(*term) for term in terms))
        run("terminology", "import", "obo", folder / f"{name}.obo", "-o", folder / name)
    (folder / "mesh.tsv").write_text("code\tname\nD1\tMyocardial Infarction\nD2\tGout\n")
    columns = ("--set", "id=code", "--set", "name=name")
    run("terminology", "import", "table", folder / "mesh.tsv", "-o", folder / "mesh", *columns)
    return folder


def test_merge_and_join(place: Path) -> None:
    told = run(*MERGE, place / "old", place / "mesh", "-o", place / "apart")
    assert "5 concepts" in told
    joining = ("--join", "exactMatch, xref", "--vocabulary", "mesh=MESH")
    told = run(*MERGE, place / "old", place / "mesh", "-o", place / "one", *joining)
    assert "4 concepts" in told
    assert "1 joined" in told
    told = run(*MERGE, place / "old", place / "mesh", "-o", place / "none", "--join", "xref")
    assert "cross-references joined: 0" in told
    assert "X:1" in run("terminology", "search", place / "one", "D1")
    hits = json.loads(run("terminology", "search", place / "one", "infarction", "--json"))
    assert [(hit["concept_id"], hit["preferred_name"]) for hit in hits] == [("X:1", "heart attack")]
    assert json.loads(run("terminology", "info", place / "one", "--json"))["n_cross_references"] == 2
    assert "made from: terminology" in run("verify", place / "one")


def test_search_tells_where_successors_lead_in_the_end(tmp_path: Path) -> None:
    old = ("is_obsolete: true\nreplaced_by: X:2\n", "is_obsolete: true\nreplaced_by: X:3\n", "")
    terms = "".join(ONTOLOGY.format(f"X:{number}", "eye", clauses) for number, clauses in enumerate(old, 1))
    (tmp_path / "x.obo").write_text("format-version: 1.4\n" + terms)
    run("terminology", "import", "obo", tmp_path / "x.obo", "-o", tmp_path / "t")
    hits = json.loads(run("terminology", "search", tmp_path / "t", "eye", "--json"))
    assert [(hit["concept_id"], hit["successor"]) for hit in hits] == [("X:3", None), ("X:1", "X:3"), ("X:2", "X:3")]
    told = " ".join(run("terminology", "search", tmp_path / "t", "eye").split())
    assert "obsolete, replaced by X:2, now X:3" in told
    assert told.count("now") == 1


def test_enrich(place: Path) -> None:
    (place / "ours.csv").write_text("code,label\n007,Heart attack\n008,Gout\n")
    columns = ("--set", "id=code", "--set", "name=label")
    run("terminology", "import", "table", place / "ours.csv", "-o", place / "ours", *columns)
    run(*MERGE, place / "old", place / "mesh", "-o", place / "joined", "--join", "xref", "--vocabulary", "mesh=MESH")
    command = ("terminology", "enrich", place / "ours", "--from", place / "mesh", "--from", place / "joined")
    told = run(*command, "-o", place / "enriched", "--matches", place / "matches.csv")
    listed = pl.read_csv(place / "matches.csv", infer_schema=False)
    assert set(listed["concept_id"]) == {"007", "008"}
    assert listed.filter(pl.col("added") != "")["added"].str.to_lowercase().to_list() == ["myocardial infarction"]
    with pytest.raises(OnomaError, match="exists already"):
        run(*command, "-o", place / "again", "--matches", place / "matches.csv")
    with pytest.raises(OnomaError, match=r"expected \.parquet or \.csv"):
        run(*command, "-o", place / "again", "--matches", place / "m.txt")
    assert not (place / "again").exists()
    assert "2 concepts, 3 names, 1 of them new" in told
    hits = json.loads(run("terminology", "search", place / "enriched", "myocardial infarction", "--json"))
    assert [(hit["concept_id"], hit["preferred_name"]) for hit in hits] == [("007", "Heart attack")]
    with pytest.raises(OnomaError, match="--force"):
        run(*command, "-o", place / "enriched")
    (place / "matches.csv").write_text("")
    run(*command, "-o", place / "enriched", "--matches", place / "matches.csv", "--force")
    assert pl.read_csv(place / "matches.csv", infer_schema=False).equals(listed)
    assert "--from" in invoke(*command[:3], "-o", place / "none").stderr
    with pytest.raises(OnomaError, match="no name to add is of this language"):
        run(*command, "-o", place / "french", "--languages", "fr")
    (place / "codes.csv").write_text("code,label\nD1,Herzinfarkt\n")
    run("terminology", "import", "table", place / "codes.csv", "-o", place / "codes", *columns)
    by_code = ("terminology", "enrich", place / "codes", "--from", place / "old", "--by", "code")
    assert "1 concept, 1 name, 0 of them new" in run(*by_code, "-o", place / "unsaid")
    told = run(*by_code, "-o", place / "by-code", "--vocabulary", "codes=MESH")
    assert "1 concept, 2 names, 1 of them new" in told
    assert "(1 by code)" in told
    with pytest.raises(OnomaError, match="Did you mean 'name'"):
        run(*command, "-o", place / "by", "--by", "names")


def test_prefix_and_force(place: Path) -> None:
    command = (*MERGE, place / "mesh", "-o", place / "prefixed", "--prefix", "mesh=MESH:")
    run(*command)
    assert "MESH:D1" in run("terminology", "search", place / "prefixed", "infarction")
    with pytest.raises(OnomaError, match="--force"):
        run(*command)
    run(*command, "--force")


def test_diff_as_text_json_and_tables(place: Path) -> None:
    told = run(*DIFF, place / "old", place / "new")
    assert "X:1: heart attack -> heart [attack]" in told
    assert "X:2 stroke -> X:1" in told
    counts = json.loads(run(*DIFF, place / "old", place / "new", "-o", place / "d.parquet", "--json"))["counts"]
    assert (counts["added"], counts["removed"], counts["replaced"], counts["renamed"]) == (1, 1, 1, 1)
    details = pl.read_parquet(place / "d.parquet")
    assert dict(details["change"].value_counts().iter_rows()) == {kind: n for kind, n in counts.items() if n}
    run(*DIFF, place / "old", place / "new", "-o", place / "d.csv")
    assert pl.read_csv(place / "d.csv", schema=details.schema).equals(details)
    with pytest.raises(OnomaError, match="--force"):
        run(*DIFF, place / "old", place / "new", "-o", place / "d.parquet")
    run(*DIFF, place / "new", place / "new", "-o", place / "d.parquet", "--force")
    assert pl.read_parquet(place / "d.parquet").is_empty()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*MERGE, "old", "old", "-o", "x"), "this folder is given twice"),
        ((*MERGE, "old", "new", "-o", "x", "--join", "exact"), "Did you mean 'exactMatch'"),
        ((*MERGE, "old", "new", "-o", "x", "--prefix", "old"), "--prefix takes NAME=PREFIX"),
        ((*DIFF, "old", "nowhere"), "there is nothing here"),
        ((*DIFF, "old", "new", "-o", "x.xlsx"), "expected .parquet or .csv; found .xlsx"),
    ],
)
def test_an_error_says_what_to_do_and_leaves_nothing(arguments: tuple[str, ...], said: str, place: Path) -> None:
    paths = {"old", "new", "nowhere", "x"}
    before = sorted(place.rglob("*"))
    with pytest.raises(OnomaError, match=re.escape(said)):
        run(*(place / argument if argument in paths else argument for argument in arguments))
    assert sorted(place.rglob("*")) == before
