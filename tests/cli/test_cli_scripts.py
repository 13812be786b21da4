"""What scripts rely on: the streams, JSON, statuses and variables of commands (docs/scripts.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onoma.cli import show

COLUMNS = ("--set", "id=id", "--set", "name=name")


def onoma(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onoma", *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


def strict(text: str) -> Any:
    """JSON as its standard has it, without NaN and Infinity, and nothing else around it."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def terminology(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "codes.csv").write_text("id,name\nA:1,Fièvre\nA:2,heart attack\nA:2,myocardial infarction\n")
    done = onoma("terminology", "import", "table", folder / "codes.csv", "-o", folder / "terms", *COLUMNS)
    assert done.returncode == 0, done.stderr
    return folder / "terms"


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"FORCE_COLOR": "1", "TERM": "xterm-256color"},
        {"COLUMNS": "20", "TERM": "dumb"},
    ],
)
def test_json_is_json_whatever_the_encoding_colours_and_width(terminology: Path, environment: dict[str, str]) -> None:
    (hit,) = strict(onoma("terminology", "search", terminology, "Fi", "--json", **environment).stdout)
    assert (hit["concept_id"], hit["preferred_name"]) == ("A:1", "Fièvre")


def test_a_number_that_json_does_not_have_is_no_output() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        show.json_document({"loss": float("nan")})
