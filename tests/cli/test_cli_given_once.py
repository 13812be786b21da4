"""Options given twice: refused where all but the last value would be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import invoke, run
from tiny import make_terminology


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("linker", "build", "-t", "a", "--terminology", "b", "-e", "x", "-o", "l"), "--terminology"),
        (("terminology", "import", "table", "x.csv", "-o", "a", "--set", "id=x", "-o", "b"), "--out"),
        (("map", "L", "-c", "x", "-i", "a.csv", "-i", "b.csv", "-o", "c.csv"), "--input"),
        (("link", "L", "-k", "3", "fever", "--top-k", "3"), "--top-k"),
    ],
)
def test_an_option_of_one_value_is_given_once(words: tuple[str, ...], option: str) -> None:
    done = invoke(*words)
    assert done.exit_code == 2
    assert f"{option} is given 2 times, and takes one value" in done.output


def test_a_value_of_another_kind_is_refused_in_a_few_words() -> None:
    *_, told = invoke("link", "L", "-k", "five").output.splitlines()
    of_pydantic, of_click = "Input should be a valid integer", "'five' is not a valid integer range."
    assert told.removeprefix("Error: Invalid value for '--top-k' / '-k': ") in {of_pydantic, of_click}


def test_help_is_given_whatever_else_is(tmp_path: Path) -> None:
    done = invoke("link", "L", "-k", "3", "-k", "4", "--help")
    assert done.exit_code == 0
    assert "Usage" in done.output
    assert "divide several by commas" in invoke("link", "L", "a", "--stages", "exact", "--stages", "dense").output
    assert "onoma terminology merge" in invoke("linker", "build", "-t", "a", "-t", "b", "-e", "x", "-o", "l").output


def test_flags_and_options_of_several_values_are_given_again(tmp_path: Path) -> None:
    make_terminology(tmp_path / "a", {"A:1": ["cold"]})
    make_terminology(tmp_path / "b", {"B:1": ["flu"]})
    merge = ("terminology", "merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "c")
    told = run(*merge, "--prefix", f"{tmp_path / 'a'}=X:", "--prefix", f"{tmp_path / 'b'}=Y:", "--force", "--force")
    assert "2 concepts" in told
