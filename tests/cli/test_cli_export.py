"""``onoma terminology export`` on a terminology made here."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from onoma.cli.app import app
from onoma.errors import ArtifactExistsError, InputError
from tiny import make_terminology


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, ["terminology", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_export(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"X:1": ["heart", "MI"], "X:2": ["a|b"]})
    shown = run("export", "biosyn", tmp_path / "t", "-o", tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text() == "X:1||heart\nX:1||MI\nX:2||a|b\n"
    assert "2 concepts, 3 names" in shown
    with pytest.raises(ArtifactExistsError):
        run("export", "biosyn", tmp_path / "t", "-o", tmp_path / "x.txt")
    run("export", "biosyn", tmp_path / "t", "-o", tmp_path / "x.txt", "--force")
    with pytest.raises(InputError, match="concept 'X:2'"):
        run("export", "umls", tmp_path / "t", "-o", tmp_path / "x")
    shown = run("export", "umls", tmp_path / "t", "-o", tmp_path / "x", "--on-error", "skip")
    assert "left out" in shown
    run("export", "csv", tmp_path / "t", "-o", tmp_path / "c")
    run("import", "csv", tmp_path / "c", "-o", tmp_path / "back")
