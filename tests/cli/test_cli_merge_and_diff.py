"""``onoma terminology merge``, ``enrich`` and ``diff``, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from test_cli_road import ok, onoma

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
        ok("terminology", "import", "obo", folder / f"{name}.obo", "-o", folder / name)
    (folder / "mesh.tsv").write_text("code\tname\nD1\tMyocardial Infarction\nD2\tGout\n")
    columns = ("--set", "id=code", "--set", "name=name")
    ok("terminology", "import", "table", folder / "mesh.tsv", "-o", folder / "mesh", *columns)
    return folder


def test_merge_and_join(place: Path) -> None:
    told = ok(*MERGE, place / "old", place / "mesh", "-o", place / "apart")
    assert "5 concepts" in told
    joining = ("--join", "exactMatch, xref", "--vocabulary", "mesh=MESH")
    told = ok(*MERGE, place / "old", place / "mesh", "-o", place / "one", *joining)
    assert "4 concepts" in told
    assert "1 joined" in told
    told = ok(*MERGE, place / "old", place / "mesh", "-o", place / "none", "--join", "xref")
    assert "cross-references joined: 0" in told
    assert "X:1" in ok("terminology", "search", place / "one", "D1")
    hits = json.loads(ok("terminology", "search", place / "one", "infarction", "--json"))
    assert [(hit["concept_id"], hit["preferred_name"]) for hit in hits] == [("X:1", "heart attack")]
    assert json.loads(ok("terminology", "info", place / "one", "--json"))["n_cross_references"] == 2
    assert "made from: terminology" in ok("verify", place / "one")


def test_search_tells_where_successors_lead_in_the_end(tmp_path: Path) -> None:
    old = ("is_obsolete: true\nreplaced_by: X:2\n", "is_obsolete: true\nreplaced_by: X:3\n", "")
    terms = "".join(ONTOLOGY.format(f"X:{number}", "eye", clauses) for number, clauses in enumerate(old, 1))
    (tmp_path / "x.obo").write_text("format-version: 1.4\n" + terms)
    ok("terminology", "import", "obo", tmp_path / "x.obo", "-o", tmp_path / "t")
    hits = json.loads(ok("terminology", "search", tmp_path / "t", "eye", "--json"))
    assert [(hit["concept_id"], hit["successor"]) for hit in hits] == [("X:3", None), ("X:1", "X:3"), ("X:2", "X:3")]
    told = " ".join(ok("terminology", "search", tmp_path / "t", "eye").split())
    assert "obsolete, replaced by X:2, now X:3" in told
    assert told.count("now") == 1


def test_enrich(place: Path) -> None:
    (place / "ours.csv").write_text("code,label\n007,Heart attack\n008,Gout\n")
    columns = ("--set", "id=code", "--set", "name=label")
    ok("terminology", "import", "table", place / "ours.csv", "-o", place / "ours", *columns)
    ok(*MERGE, place / "old", place / "mesh", "-o", place / "joined", "--join", "xref", "--vocabulary", "mesh=MESH")
    command = ("terminology", "enrich", place / "ours", "--from", place / "mesh", "--from", place / "joined")
    told = ok(*command, "-o", place / "enriched", "--matches", place / "matches.csv")
    listed = pl.read_csv(place / "matches.csv", infer_schema=False)
    assert set(listed["concept_id"]) == {"007", "008"}
    assert listed.filter(pl.col("added") != "")["added"].str.to_lowercase().to_list() == ["myocardial infarction"]
    assert "exists already" in onoma(*command, "-o", place / "again", "--matches", place / "matches.csv").stderr
    assert "expected .parquet or .csv" in onoma(*command, "-o", place / "again", "--matches", place / "m.txt").stderr
    assert not (place / "again").exists()
    assert "2 concepts, 3 names, 1 of them new" in told
    hits = json.loads(ok("terminology", "search", place / "enriched", "myocardial infarction", "--json"))
    assert [(hit["concept_id"], hit["preferred_name"]) for hit in hits] == [("007", "Heart attack")]
    assert "--force" in onoma(*command, "-o", place / "enriched").stderr
    assert "--from" in onoma(*command[:3], "-o", place / "none").stderr
    assert "no name to add is of this language" in onoma(*command, "-o", place / "french", "--languages", "fr").stderr
    (place / "codes.csv").write_text("code,label\nD1,Herzinfarkt\n")
    ok("terminology", "import", "table", place / "codes.csv", "-o", place / "codes", *columns)
    by_code = ("terminology", "enrich", place / "codes", "--from", place / "old", "--by", "code")
    assert "1 concepts, 1 names, 0 of them new" in ok(*by_code, "-o", place / "unsaid")
    told = ok(*by_code, "-o", place / "by-code", "--vocabulary", "codes=MESH")
    assert "1 concepts, 2 names, 1 of them new" in told
    assert "(1 by code)" in told
    assert "Did you mean 'name'" in onoma(*command, "-o", place / "by", "--by", "names").stderr


def test_prefix_and_force(place: Path) -> None:
    command = (*MERGE, place / "mesh", "-o", place / "prefixed", "--prefix", "mesh=MESH:")
    ok(*command)
    assert "MESH:D1" in ok("terminology", "search", place / "prefixed", "infarction")
    assert "--force" in onoma(*command).stderr
    ok(*command, "--force")


def test_diff_as_text_json_and_tables(place: Path) -> None:
    told = ok(*DIFF, place / "old", place / "new")
    assert "X:1: heart attack -> heart [attack]" in told
    assert "X:2 stroke -> X:1" in told
    counts = json.loads(ok(*DIFF, place / "old", place / "new", "-o", place / "d.parquet", "--json"))["counts"]
    assert (counts["added"], counts["removed"], counts["replaced"], counts["renamed"]) == (1, 1, 1, 1)
    details = pl.read_parquet(place / "d.parquet")
    assert dict(details["change"].value_counts().iter_rows()) == {kind: n for kind, n in counts.items() if n}
    ok(*DIFF, place / "old", place / "new", "-o", place / "d.csv")
    assert pl.read_csv(place / "d.csv", schema=details.schema).equals(details)
    again = onoma(*DIFF, place / "old", place / "new", "-o", place / "d.parquet")
    assert again.returncode == 1
    assert "--force" in again.stderr


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
def test_errors_are_one_sentence(arguments: tuple[str, ...], said: str, place: Path) -> None:
    paths = {"old", "new", "nowhere", "x"}
    before = sorted(place.rglob("*"))
    done = onoma(*(place / argument if argument in paths else argument for argument in arguments))
    assert done.returncode == 1, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(place.rglob("*")) == before
