"""``onoma terminology export`` on a terminology made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import run
from onoma.errors import ArtifactExistsError, InputError
from tiny import make_terminology


def test_export(tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"X:1": ["heart", "MI"], "X:2": ["a|b"]})
    shown = run("terminology", "export", "biosyn", tmp_path / "t", "-o", tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text() == "X:1||heart\nX:1||MI\nX:2||a|b\n"
    assert "2 concepts, 3 names" in shown
    with pytest.raises(ArtifactExistsError):
        run("terminology", "export", "biosyn", tmp_path / "t", "-o", tmp_path / "x.txt")
    run("terminology", "export", "biosyn", tmp_path / "t", "-o", tmp_path / "x.txt", "--force")
    with pytest.raises(InputError, match="concept 'X:2'"):
        run("terminology", "export", "umls", tmp_path / "t", "-o", tmp_path / "x")
    shown = run("terminology", "export", "umls", tmp_path / "t", "-o", tmp_path / "x", "--on-error", "skip")
    assert "left out" in shown
    run("terminology", "export", "csv", tmp_path / "t", "-o", tmp_path / "c")
    run("terminology", "import", "csv", tmp_path / "c", "-o", tmp_path / "back")
