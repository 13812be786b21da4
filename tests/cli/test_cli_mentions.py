"""``onoma mentions``: a corpus becomes a table that the other commands read."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from onoma.cli import show
from onoma.cli.app import app

CORPUS = """\
1|t|A cold
1|a|and MI. Or MI.
1\t2\t6\tcold\tDisease\tD003139
1\t11\t13\tMI\tDisease\tD009203
1\t18\t20\tMI\tDisease\t-1
1\t0\t1\tA\tOther\tD1|D2
"""


def run(*words: str | Path, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["mentions", *map(str, words)])
    assert result.exit_code == status, result.output
    return result.output if status == 0 else str(result.exception)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(CORPUS)
    return path


def test_a_table_and_what_is_said_of_it(corpus: Path, tmp_path: Path) -> None:
    table = tmp_path / "mentions.csv"
    said = run(corpus, "-o", table, "--add-prefix", "MESH:")
    assert f"{table}: 3 mentions (2 distinct, 1 of no concept) of 2 concepts in 1 document\n" in said
    assert "mentions of several concepts, left out: 1\n" in said
    rows = pl.read_csv(table)
    assert rows["concept_id"].to_list() == ["MESH:D003139", "MESH:D009203", "NIL"]
    assert rows["context"][0] == "A <tgt> cold </tgt> and MI. Or MI."
    assert "exists already" in run(corpus, "-o", table, status=1)
    run(corpus, "-o", table, "--force", "--no-context", "--type", "Disease")
    assert pl.read_csv(table).columns == ["mention", "concept_id", "type", "document", "start", "end"]


def test_json_and_parquet(corpus: Path, tmp_path: Path) -> None:
    corpus.write_text(CORPUS + "no line\n")
    table = tmp_path / "mentions.parquet"
    said = json.loads(run(corpus, "-o", table, "--json", "--on-error", "skip"))
    assert said == {
        "n_mentions": 3,
        "n_distinct": 2,
        "n_concepts": 2,
        "n_of_no_concept": 1,
        "n_documents": 1,
        "n_rejected": 1,
        "notes": {"mentions of several concepts, left out": 1},
    }
    assert len(pl.read_parquet(table)) == 3
    assert "line 7: left out: no line of a corpus" in run(corpus, "-o", table, "--force", "--on-error", "skip")


def test_progress(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "_LINE_SECONDS", 0.0)
    assert "corpus.txt  0.0 of 0.0 MB\n" in run(corpus, "-o", tmp_path / "mentions.csv")


def test_where_the_codes_are_and_the_encoding(tmp_path: Path) -> None:
    folder, table = tmp_path / "corpus", tmp_path / "mentions.csv"
    folder.mkdir()
    (folder / "1.txt").write_bytes("Übel".encode("cp1252"))
    (folder / "1.ann").write_bytes("T1\tDISO 0 4\tÜbel\n#1\tAnnotatorNotes T1\tC1\n".encode("cp1252"))
    said = run(folder, "-o", table, "--encoding", "cp1252", "--codes-in", "notes")
    assert "1 mention (1 distinct, 0 of no concept) of 1 concept in 1 document" in said
    assert pl.read_csv(table).row(0) == ("Übel", "C1", "DISO", 1, 0, 4, "<tgt> Übel </tgt>")
    assert "--codes-in" in run(folder, "-o", table, "--force", "--encoding", "cp1252", status=1)
    assert "--encoding cp1252" in run(folder, "-o", table, "--force", "--codes-in", "notes", status=1)


def test_types_and_prefixes(corpus: Path, tmp_path: Path) -> None:
    corpus.write_text(CORPUS + "1\t7\t10\tand\tWord\tD4\n1\t14\t16\tOr\tOther\tUMLS:C5\n")
    table, types = tmp_path / "mentions.csv", ("--type", "Other", "--type", "Word")
    assert "mentions of other types, left out: 3\n" in run(
        corpus, "-o", table, *types, "--strip-prefix", "UMLS:", "--add-prefix", "X:"
    )
    assert pl.read_csv(table)["concept_id"].to_list() == ["X:D4", "X:C5"]


def test_what_cannot_be_written_or_read(tmp_path: Path) -> None:
    nowhere, table = tmp_path / "nowhere", tmp_path / "a.csv"
    assert "there is no such file" in run(nowhere, "-o", table, status=1)
    assert not table.exists()
    # The output is looked at before the corpus is read.
    assert ".parquet or .csv" in run(nowhere, "-o", tmp_path / "mentions.txt", status=1)
    table.write_text("")
    assert "exists already" in run(nowhere, "-o", table, status=1)
