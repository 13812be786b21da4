"""What scripts rely on: the streams, JSON, statuses and variables of commands (docs/scripts.md)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer

from commands import invoke, run
from onoma.cli import show
from onoma.cli.app import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scripts.md").read_text(encoding="utf-8")
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


def told(*words: str | Path) -> Any:
    """What a command says with ``--json``, which is all on its standard output."""
    return strict(run(*words, "--json"))


def _commands(command: Any = None, words: str = "onoma") -> Iterator[tuple[str, Any]]:
    """All commands of the tree, each with its words."""
    command = command or typer.main.get_command(app)
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(below, f"{words} {name}")
    yield words, command


@pytest.fixture(scope="module")
def terminology(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "codes.csv").write_text("id,name\nA:1,Fièvre\nA:2,heart attack\nA:2,myocardial infarction\n")
    run("terminology", "import", "table", folder / "codes.csv", "-o", folder / "terms", *COLUMNS)
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


def test_reports_for_programs(terminology: Path, tmp_path: Path) -> None:
    codes = terminology.parent / "codes.csv"
    made = told("terminology", "import", "table", codes, "-o", tmp_path / "t", *COLUMNS)
    assert (made["path"], made["n_concepts"], made["n_names"], made["n_rejected"]) == (str(tmp_path / "t"), 2, 3, 0)
    (tmp_path / "more.csv").write_text("id,name\nB:1,heart attack\nB:1,cardiac infarction\nB:2,fever\n")
    told("terminology", "import", "table", tmp_path / "more.csv", "-o", tmp_path / "more", *COLUMNS)
    enriched = told("terminology", "enrich", terminology, "--from", tmp_path / "more", "-o", tmp_path / "enriched")
    assert (enriched["n_added"], enriched["parts"][0]["n_matched_by"]["name"]) == (1, 1)
    merged = told("terminology", "merge", terminology, tmp_path / "more", "-o", tmp_path / "merged")
    assert [part["path"] for part in merged["parts"]] == [str(terminology), str(tmp_path / "more")]
    exported = told("terminology", "export", "biosyn", terminology, "-o", tmp_path / "names.txt")
    assert (exported["path"], exported["format"], exported["n_names"]) == (str(tmp_path / "names.txt"), "biosyn", 3)


def test_reports_of_linkers_for_programs(terminology: Path, tmp_path: Path) -> None:
    run("linker", "build", "-t", terminology, "--no-encoder", "-o", tmp_path / "linker")
    mentions = "".join(f"A:2||heart attack {n}\n" for n in range(60))
    (tmp_path / "own.txt").write_text(f"{mentions}A:9||cold\nwithout code\n")
    annotated = ("--mentions", tmp_path / "own.txt", "--on-error", "skip")
    tuned = told("linker", "tune", tmp_path / "linker", *annotated, "--calibration", "none")
    assert (tuned["n_mentions"], tuned["n_unknown"], tuned["n_rejected"]) == (61, 1, 1)
    assert 0 < tuned["accuracy"]["after"]["at_1"] <= 1
    counted = told("linker", "add-prior", tmp_path / "linker", tmp_path / "own.txt", "--on-error", "skip")
    assert (counted["n_mentions"], counted["n_concepts"], counted["prior_weight"]) == (61, 1, None)
    about = told("linker", "info", tmp_path / "linker")
    assert (about["n_mentions_tuned_on"], about["n_mentions_of_prior"]) == (61, 61)
    (tmp_path / "own.txt").write_text("A:2||heart attack\n")
    own = ("own", "--data", tmp_path / "own.txt", "--linker", tmp_path / "linker")
    measured = told("benchmark", "run", *own, "-o", tmp_path / "results")
    assert measured.pop("path") == str(tmp_path / "results")
    assert measured == json.loads((tmp_path / "results" / "results.json").read_text())


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_a_disk_takes_a_part_of_is_an_error(tmp_path: Path, unbuffered: str) -> None:
    program = """
import resource
from onoma.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
main()
"""
    with (tmp_path / "list.json").open("w") as stream:
        done = subprocess.run(
            [sys.executable, "-c", program, "terminology", "list", "--json"],
            check=False,
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (tmp_path / "list.json").stat().st_size == 4096
    assert done.returncode == 1
    assert "no room left to write to" in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["terminology list", "terminology list --json", "recipes list"])
def test_output_that_a_disk_takes_nothing_of_is_an_error(words: str, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "onoma", *words.split()],
            check=False,
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "no room left to write to" in line


@pytest.mark.parametrize("environment", [{}, {"COLUMNS": "20"}, {"TERM": "dumb"}])
def test_a_row_is_a_line_where_there_is_no_terminal(terminology: Path, environment: dict[str, str]) -> None:
    (terminology.parent / "long.csv").write_text(f"id,name\nB:1,{'long name ' * 25}\n")
    folder = terminology.parent / "long"
    run("terminology", "import", "table", terminology.parent / "long.csv", "-o", folder, *COLUMNS, "--force")
    head, row = onoma("terminology", "search", folder, "long", **environment).stdout.splitlines()
    assert head.split() == ["concept", "preferred", "name", "matched", "name", "status"]
    assert row.split() == ["B:1", *["long", "name"] * 50, "active"]


def test_numbers_that_json_does_not_have_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    show.json_document({"loss": float("nan"), "best": [float("-inf"), 0.5]})
    assert strict(capsys.readouterr().out) == {"loss": None, "best": [None, 0.5]}


def test_a_folder_that_is_gone_is_named(terminology: Path, tmp_path: Path) -> None:
    program = """
import os, sys
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
from onoma.cli import main
main()
"""
    command = ["terminology", "export", "csv", terminology, "-o"]
    run = partial(subprocess.run, check=False, capture_output=True, text=True, cwd=tmp_path)
    failed = run([sys.executable, "-c", program, *command, "out"])
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "the folder in which this command was given is gone" in failed.stderr
    assert run([sys.executable, "-c", program, *command, tmp_path / "out"]).returncode == 0


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "terminology info TERMS"),
        (1, "terminology info TERMS/none"),
        (1, "linker build -t TERMS -o TERMS2"),
        (1, "verify TERMS/.."),
        (2, "terminology info TERMS --nothing"),
        (2, "terminology search TERMS a --limit 0"),
        (2, "terminology info"),
        (2, "nothing"),
    ],
)
def test_statuses(terminology: Path, status: int, words: str) -> None:
    done = onoma(*words.replace("TERMS", str(terminology)).split())
    assert done.returncode == status
    assert bool(done.stderr) is (status != 0)
    assert bool(done.stdout) is (status == 0)
    assert f"| {status} |" in PAGE


@pytest.mark.parametrize(
    ("command", "option", "least", "most"),
    [
        ("benchmark compare", "--seed", 0, None),
        ("benchmark run", "--seed", 0, None),
        ("encoder export", "--sample", 100, None),
        ("encoder export", "--threads", 1, None),
        ("link", "--min-confidence", 0, 1),
        ("link", "--min-precision", 0, 1),
        ("link", "--top-k", 1, None),
        ("linker tune", "--min-precision", 0, 1),
        ("map", "--top-k", 1, None),
        ("map", "--workers", 1, None),
        ("pairs build", "--max-pairs", 1, None),
        ("pairs build", "--max-tokens", 3, 512),
        ("pairs bitext", "--max-pairs", 1, None),
        ("pairs info", "--examples", 1, None),
        ("pairs mentions", "--max-pairs", 1, None),
        ("quickstart", "--hidden", 100, None),
        ("quickstart", "--minutes", 0.05, None),
        ("quickstart", "--seed", 0, None),
        ("terminology search", "--limit", 1, None),
        ("train", "--hide", 0, None),
    ],
)
def test_a_number_beyond_what_an_option_takes_is_wrong_usage(
    command: str, option: str, least: float, most: float | None
) -> None:
    beyond = [least - 1 if isinstance(least, int) else least * 0.99, *([] if most is None else [most + 1])]
    for number in (*beyond, least, *([] if most is None else [most])):
        done = invoke(*command.split(), option, number, option, number)  # twice, so that none runs
        assert done.exit_code == 2
        assert (f"Invalid value for '{option}'" in done.output) is (number in beyond), done.output


def test_a_flag_is_off_unless_it_is_given() -> None:
    """Nothing is overwritten, left out or told as JSON unless that is asked for."""
    on = {
        f"{words} {parameter.opts[0]}"
        for words, command in _commands()
        for parameter in command.params
        if parameter.param_type_name == "option" and parameter.is_flag and parameter.default
    }
    assert on == {"onoma encode --unit-length"}


def test_status_of_a_linker_of_another_release(terminology: Path, tmp_path: Path) -> None:
    run("linker", "build", "-t", terminology, "--no-encoder", "-o", tmp_path / "linker")
    check = ("linker", "update", tmp_path / "linker", "--check", "-t")
    assert onoma(*check, terminology).returncode == 0
    (tmp_path / "codes.csv").write_text("id,name\nA:1,fever\n")
    run("terminology", "import", "table", tmp_path / "codes.csv", "-o", tmp_path / "other", *COLUMNS)
    assert onoma(*check, tmp_path / "other").returncode == 3
    assert onoma(*check, tmp_path / "none").returncode == 1


def test_the_page_lists_all_commands_that_print_json() -> None:
    found = [words for words, command in _commands() if any("--json" in parameter.opts for parameter in command.params)]

    listed = []
    for row in re.findall(r"^\| (`onoma [^|]*) \|", PAGE, re.M):
        first, *others = re.findall(r"`([^`]*)`", row)
        listed += [first, *(f"{first.rpartition(' ')[0]} {other}" for other in others)]
    assert sorted(listed) == sorted(found)


def test_the_page_lists_all_variables_of_onoma() -> None:
    read = {
        name
        for file in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"\bONOMA_[A-Z_]+\b", file.read_text(encoding="utf-8"))
    }
    listed = set(re.findall(r"^\| `(ONOMA_[A-Z_]+)` \|", PAGE, re.M))
    assert listed == read - {"ONOMA_ERROR"}  # a status, of processes that map
