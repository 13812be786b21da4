"""``onoma map``."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from mapping_data import assert_same, expected_rows, rows_of, write_table

from commands import invoke
from onoma._version import __version__
from onoma.cli import show
from onoma.errors import InputError
from onoma.linking import Linker


def test_map(linker: Path, tmp_path: Path) -> None:
    rows = rows_of(20)
    source, output = write_table(tmp_path / "x.csv", rows), tmp_path / "new" / "y.jsonl"
    done = invoke("map", linker, "--input", source, "--column", "mention", "--output", output, "--top-k", "2")
    assert done.exit_code == 0, done.output
    assert "20 rows, 16 of them linked; 12 distinct mentions; 36 rows written; " in done.stderr
    assert_same(output, expected_rows(rows, linker, top_k=2))


def test_the_report_as_json(linker: Path, tmp_path: Path) -> None:
    source, output = write_table(tmp_path / "x.csv", rows_of(20)), tmp_path / "y.csv"
    done = invoke("map", linker, "-i", source, "-c", "mention", "-o", output, "--json")
    told = json.loads(done.stdout)
    assert (told["n_rows"], told["n_linked"], told["n_mentions"], told["path"]) == (20, 16, 12, str(output))
    assert told["linker_fingerprint"] == Linker.open(linker).fingerprint
    assert told["input_sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
    assert told["onoma"] == __version__


def test_mapping_what_was_mapped_before(linker: Path, tmp_path: Path) -> None:
    source, once, twice = write_table(tmp_path / "x.csv", rows_of(20)), tmp_path / "y.csv", tmp_path / "z.csv"
    assert invoke("map", linker, "-i", source, "-c", "mention", "-o", once).exit_code == 0
    with pytest.raises(InputError, match=r"field concept_id: .* To mend it: give .*--answer-prefix onoma_"):
        invoke("map", linker, "-i", once, "-c", "mention", "-o", twice)
    done = invoke("map", linker, "-i", once, "-c", "mention", "-o", twice, "--answer-prefix", "new_", "--json")
    assert json.loads(done.stdout)["n_linked"] == 16
    answers = "concept_id,preferred_name,matched_name,score"
    header = twice.read_text(encoding="utf-8").partition("\n")[0]
    assert header == f"id,mention,note,{answers},{','.join(f'new_{name}' for name in answers.split(','))}"


def test_where_there_is_no_terminal_lines_tell_of_progress(
    linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with show.progress_bar("encoding", "names") as update:
        update(5, 10)
        update(10, 10)
    assert capsys.readouterr().err == ""  # too soon
    monkeypatch.setattr(show, "_LINE_SECONDS", 0.0)
    source = write_table(tmp_path / "x.csv", rows_of(20))
    done = invoke("map", linker, "-i", source, "-c", "mention", "-o", tmp_path / "y.csv")
    assert re.search(r"^linking  \d+ of \d+ mentions  .*left$", done.stderr, re.MULTILINE), done.stderr
    assert re.search(r"^writing  20 of 20 rows", done.stderr, re.MULTILINE), done.stderr


def test_an_interrupt_keeps_what_was_done(linker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Linker, "link", interrupted)
    source = write_table(tmp_path / "x.csv", rows_of(20))
    done = invoke("map", linker, "-i", source, "-c", "mention", "-o", tmp_path / "y.csv")
    assert done.exit_code == 130
    assert (tmp_path / ".y.csv.map" / "reading.json").exists()


def test_the_table_of_short_forms_is_not_written_over(linker: Path, tmp_path: Path) -> None:
    source, table = write_table(tmp_path / "x.csv", rows_of(20)), tmp_path / "short.csv"
    table.write_text("short,long\nHCQ,hydroxychloroquine\n")
    options = ["--abbreviations", table, "-o", table, "--force"]
    with pytest.raises(InputError, match="over the table of abbreviations"):
        invoke("map", linker, "-i", source, "-c", "mention", *options)
    assert table.read_text() == "short,long\nHCQ,hydroxychloroquine\n"
