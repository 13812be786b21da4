"""``onoma distil``, and its recipe in ``onoma recipes``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import Result

from commands import invoke
from onoma.encoders import open_encoder
from onoma.errors import ArtifactExistsError, ConfigError, InputError
from tiny import WORDS, make_terminology, tiny_encoder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distil")
    tiny_encoder(folder / "base")
    tiny_encoder(folder / "teacher", extra_tokens=WORDS, seed=3)
    make_terminology(folder / "t", {f"X:{word}": [f"{word} disease", f"{word} illness"] for word in WORDS})
    invoke("linker", "build", "-t", folder / "t", "-e", folder / "teacher", "-o", folder / "linker")
    (folder / "mentions.txt").write_text("".join(f"X:{word}||bad {word}\n" for word in WORDS))
    return folder


def distil(place: Path, out: Path, *arguments: str | Path) -> Result:
    wanted = (f"base={place / 'base'}", "steps=4", "batch_names=6", "neighbours=1", "nearest=3", "device=cpu")
    settings = [f"--set={one}" for one in wanted]
    return invoke("distil", "distil", "--linker", place / "linker", "-o", out, *settings, *arguments)


def test_an_encoder_is_trained_and_told_of(place: Path, tmp_path: Path) -> None:
    done = distil(place, tmp_path / "e", "--development", place / "mentions.txt")
    assert done.exit_code == 0
    assert re.search(r"trained 4 steps in .*, loss \d+\.\d+ -> \d+\.\d+", done.stdout)
    lines = [line for line in done.stderr.splitlines() if line.startswith("step ")]
    assert re.fullmatch(
        r"step 1 of 4  [\d,]+ names/s  loss \d+\.\d+  acc@1 0\.\d+  same nearest name for \d+%  .* left", lines[1]
    )
    assert "16 names as teacher sees them" in done.stderr
    assert open_encoder(tmp_path / "e").width == 16
    with pytest.raises(ArtifactExistsError):
        distil(place, tmp_path / "e")
    told = json.loads(distil(place, tmp_path / "e", "--force", "--json").stdout)
    assert (told["path"], told["steps"]) == (str(tmp_path / "e"), 4)
    with pytest.raises(ConfigError, match="'tensorboard'"):
        distil(place, tmp_path / "f", "--track", "tensorbord")
    (tmp_path / "other.txt").write_text("Y||heart\n")
    with pytest.raises(InputError, match="has the concept of none of the 1 queries"):
        distil(place, tmp_path / "f", "--development", tmp_path / "other.txt")
    (tmp_path / "names.txt").write_text("Y||heart\nZ||lung\n")
    more = ("--development", tmp_path / "other.txt", "--development-dictionary", tmp_path / "names.txt")
    assert distil(place, tmp_path / "f", *more).exit_code == 0
    with pytest.raises(ConfigError, match="there are none"):
        distil(place, tmp_path / "g", *more[2:])


def test_its_recipe_is_listed_and_shown_and_is_of_no_other_command(place: Path, tmp_path: Path) -> None:
    assert re.search(r"recipe of onoma distil\s.*\n.*\n?.*distil\s", invoke("recipes", "list").stdout)
    shown = invoke("recipes", "show", "distil").stdout
    assert re.search(r"temperature\s+0\.05\s", shown)
    with pytest.raises(InputError, match="is for onoma distil"):
        invoke("train", "distil", "-t", place / "t", "-o", tmp_path / "e")
    with pytest.raises(InputError, match="is for onoma train-biosyn"):
        invoke("distil", "biosyn", "--linker", place / "linker", "-o", tmp_path / "e")
    with pytest.raises(ConfigError, match="has its vectors in files, not in a database"):
        distil(place, tmp_path / "e", "--database", "postgresql://nobody@nowhere/nothing")
