"""A table mapped by several processes over one table of PostgreSQL."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mapping_data import make_linker, make_parts_small, rows_of, write_table

from onoma.errors import ConfigError, UnavailableError
from onoma.linking import build_linker
from onoma.mapping import map_table

if TYPE_CHECKING:
    from postgres_database import Schema

pytest_plugins = ["postgres_database"]


def test_by_several_processes(tmp_path: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    make_parts_small(monkeypatch)
    exact = make_linker(tmp_path)
    build_linker(
        tmp_path / "terminology", tmp_path / "letters", tmp_path / "pg", index="pgvector", database=schema.string
    )
    table = write_table(tmp_path / "table.csv", rows_of(60))
    map_table(exact, table, tmp_path / "expected.csv", column="mention")
    started: list[str] = []
    begin = subprocess.Popen

    def watch(command: list[str], **options: Any) -> subprocess.Popen[str]:
        started.extend(command)
        return begin(command, **options)

    monkeypatch.setattr(subprocess, "Popen", watch)
    for n_workers in (1, 2):
        output = tmp_path / f"{n_workers}.csv"
        map_table(tmp_path / "pg", table, output, column="mention", workers=n_workers, database=schema.string)
        assert output.read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert started, "there were processes"
    assert schema.password not in " ".join(started), "everybody on the machine can see it"


def test_what_is_refused(tmp_path: Path, schema: Schema) -> None:
    exact = make_linker(tmp_path)
    table = write_table(tmp_path / "table.csv", rows_of(5))
    with pytest.raises(ConfigError, match="leave the database out"):
        map_table(exact, table, tmp_path / "out.csv", column="mention", database=schema.string)
    with pytest.raises(
        (ConfigError, UnavailableError), match=r"ONOMA_DATABASE in the environment of each node|package 'ray'"
    ):
        map_table(exact, table, tmp_path / "out.csv", column="mention", engine="ray", database=schema.string)
    build_linker(
        tmp_path / "terminology", tmp_path / "letters", tmp_path / "pg", index="pgvector", database=schema.string
    )
    with pytest.raises(UnavailableError, match="cannot be reached"):
        map_table(tmp_path / "pg", table, tmp_path / "out.csv", column="mention", database="host=/nowhere")
    assert sorted(file.name for file in tmp_path.iterdir() if "out" in file.name) == []
