"""Annotated mentions in columns of other names and another encoding, in every command that reads them."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import invoke, run
from onoma.cli import show
from onoma.errors import ConfigError, InputError, MismatchError
from onoma.linking import build_linker
from onoma.training.optimiser_step import DoneStep
from onoma.training.watching import Watching
from tiny import make_terminology, tiny_encoder

N = 52
"""Concepts; as many mentions are enough to tune on."""
COLUMNS = {"mention": "span", "concept_id": "hpo_id"}
OWN = ("-c", "span", "--code-column", "hpo_id", "--encoding", "cp1252")

WORDS = [f"{'abcdefgh'[row // 8]}{'klmnopqr'[row % 8]}" for row in range(N)]
TRAIN = [(f"bäd {word}", f"X:{word}") for word in WORDS]
DEVELOPMENT = [(f"{word} mälady", f"X:{word}") for word in reversed(WORDS)]
LEAVE_OUT = [(f"{word} féver", f"X:{word}") for word in WORDS[:5]]


def write(folder: Path, **files: Sequence[tuple[str, str]]) -> None:
    """The same mentions as they are read unless something is named, and otherwise."""
    for name, rows in files.items():
        table = pl.DataFrame(rows, ["mention", "concept_id"], orient="row")
        for place in ("usual", "own"):
            (folder / place).mkdir(exist_ok=True)
        table.write_csv(folder / "usual" / f"{name}.csv")
        # What the usual names mean elsewhere stands there too, and nobody asks for it.
        other = table.rename(COLUMNS).with_columns(mention=pl.lit("no"), concept_id=pl.lit("X:no"))
        other = other.with_columns(others=pl.col("hpo_id").reverse())
        text = other.select("hpo_id", "mention", "span", "concept_id", "others").write_csv()
        (folder / "own" / f"{name}.csv").write_bytes(text.encode("cp1252"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("columns")
    tiny_encoder(folder / "base", weight_std=0.2)
    make_terminology(folder / "t", {f"X:{word}": [f"{word} disease", f"ill {word}", f"{word} féver"] for word in WORDS})
    build_linker(folder / "t", folder / "base", folder / "linker", sparse=True)
    write(folder, train=TRAIN, dev=DEVELOPMENT, out=LEAVE_OUT)
    (folder / "train.txt").write_text("".join(f"{code}||{mention}\n" for mention, code in TRAIN), encoding="utf-8")
    (folder / "ncbi").mkdir()
    (folder / "ncbi" / "test_queries.txt").write_text("X:ak||ak mälady\n", encoding="utf-8")
    run("pairs", "build", "-t", folder / "t", "-e", folder / "base", "-o", folder / "pairs")
    return folder


STEPS = "--set base={p}/base --set steps={steps} --set device=cpu --set evaluate_steps=2 --set checkpoint_minutes=1e-9"
DOORS = {
    "pairs mentions": "pairs mentions {own}/train.csv -t {p}/t -e {p}/base",
    "pairs build": "pairs build -t {p}/t -e {p}/base --leave-out {own}/out.csv",
    "train": "train quickstart -t {p}/t --leave-out {own}/out.csv --development {own}/dev.csv --set batch_pairs=8",
    "train on pairs": "train quickstart --pairs {p}/pairs --development {own}/dev.csv --development-terminology {p}/t "
    "--set batch_pairs=8",
    "train-biosyn": "train-biosyn biosyn --mentions {own}/train.csv --dictionary {p}/t --development {own}/dev.csv "
    "--set batch_queries=8",
    "distil": "distil distil --linker {p}/linker --development {own}/dev.csv --set batch_names=8 --set neighbours=1 "
    "--set nearest=3",
    "reranker train": "reranker train --linker {p}/linker --mentions {own}/train.csv --development {own}/dev.csv "
    "--set batch_mentions=8 --set depth=4 --set max_tokens=32 --set max_name_tokens=10",
    "linker tune": "linker tune {out} --mentions {own}/dev.csv --prior {own}/train.csv --calibration none",
    "linker add-prior": "linker add-prior {out} {own}/train.csv",
    "benchmark run own": "benchmark run own --data {own}/dev.csv --learned-from {own}/train.csv --linker {p}/linker",
    "benchmark run": "benchmark run ncbi-disease --data {p}/ncbi --learned-from {own}/dev.csv --linker {p}/linker",
}
"""Every command that reads annotated mentions."""
TRAINERS = {
    "train": "development data",
    "train on pairs": "development data",
    "train-biosyn": "queries and dictionary, the development data",
    "distil": "development data",
    "reranker train": "candidates, the development data",
}
"""And what other columns change of a run."""


def words(place: Path, door: str, folder: str, out: Path, *, steps: int = 2) -> list[str]:
    """The command, with the mentions of a folder."""
    text = DOORS[door]
    if door.startswith("linker"):
        shutil.copytree(place / "linker", out, dirs_exist_ok=True)
    else:
        text += " -o {out}"
    text += f" {STEPS}" if door in TRAINERS else ""
    return [word.format(p=place, own=place / folder, out=out, steps=steps) for word in text.split()]


def left(out: Path) -> dict[str, Any]:
    """What a command wrote, but for moments, durations, and paths."""
    files = [file for file in sorted(out.rglob("*")) if file.is_file()]
    kept: dict[str, Any] = {
        str(file.relative_to(out)): file.read_bytes()
        for file in files
        if file.suffix in {".safetensors", ".parquet", ".npy", ".bin", ".txt"} or file.name == "settings.json"
    }
    assert kept
    for name in ("train.json", "results.json", "manifest.json"):
        if (out / name).exists():
            kept[name] = _timeless(json.loads((out / name).read_text(encoding="utf-8")))
    return kept


def _timeless(found: Any) -> Any:
    if isinstance(found, dict):
        gone = {"seconds", "names_per_second", "phases", "run", "created", "created_at", "sha256", "bytes", "files"}
        return {key: _timeless(value) for key, value in found.items() if key not in gone}
    return [_timeless(one) for one in found] if isinstance(found, list) else found


@pytest.mark.parametrize("door", DOORS)
def test_mentions_in_other_columns_and_another_encoding_give_the_same(place: Path, tmp_path: Path, door: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    run(*words(place, door, "usual", tmp_path / "a" / "made"))
    run(*words(place, door, "own", tmp_path / "b" / "made"), *OWN)
    assert left(tmp_path / "b" / "made") == left(tmp_path / "a" / "made")


@pytest.mark.parametrize("door", DOORS)
def test_a_column_that_is_not_there_is_told_with_its_option(place: Path, tmp_path: Path, door: str) -> None:
    given = words(place, door, "own", tmp_path / "made")
    said = r"no column 'spam'\. Did you mean 'span'\?.*name the column of mentions \(--column\)"
    with pytest.raises(InputError, match=said):
        run(*given, "-c", "spam", *OWN[2:])
    with pytest.raises(InputError, match=r"no column 'hpo'.*name the column of their codes \(--code-column\)"):
        run(*given, *OWN[:2], "--code-column", "hpo", *OWN[4:])
    with pytest.raises(ConfigError, match="would both be the column 'concept_id': name two"):
        run(*given, "-c", "concept_id")
    with pytest.raises(ConfigError, match="encoding 'cp0' is not known"):
        run(*given, "--encoding", "cp0")


def test_columns_are_of_the_tables_among_the_files_and_lines_are_as_they_are(place: Path, tmp_path: Path) -> None:
    given = ("--mentions", place / "train.txt", "--dictionary", place / "t", "--set", f"base={place / 'base'}")
    common = ("train-biosyn", "biosyn", *given, "--set", "steps=1", "--set", "device=cpu")
    table = tmp_path / "dev.parquet"
    rows = pl.DataFrame(DEVELOPMENT, ["span", "hpo_id"], orient="row")
    rows.write_parquet(table)
    run(*common, "--development", place / "usual" / "dev.csv", "-o", tmp_path / "a")
    run(*common, "--development", table, *OWN[:4], "-o", tmp_path / "b")
    scores = [json.loads((tmp_path / name / "train.json").read_text())["best"] for name in ("a", "b")]
    assert scores[0] == scores[1]
    with pytest.raises(InputError, match=r"train\.txt: lines of mentions have no columns; .* the columns span, hpo_id"):
        run(*common, *OWN[:4], "-o", tmp_path / "c")
    # An encoding is of text alone.
    prior = place / "own" / "train.csv"
    shutil.copytree(place / "linker", tmp_path / "linker")
    tune = ("linker", "tune", tmp_path / "linker", "--mentions", table, "--calibration", "none")
    run(*tune, "--prior", prior, *OWN)
    with pytest.raises(InputError, match="a Parquet file is no text"):
        run(*tune, *OWN)


@pytest.mark.parametrize("option", [("-c", "span"), ("--code-column", "hpo_id"), ("--encoding", "cp1252")])
def test_options_of_files_that_are_not_there(place: Path, tmp_path: Path, option: tuple[str, str]) -> None:
    out = ("-o", tmp_path / "x")
    doors: list[tuple[str | Path, ...]] = [
        ("train", "quickstart", "-t", place / "t"),
        ("pairs", "build", "-t", place / "t", "-e", place / "base"),
        ("distil", "distil", "--linker", place / "linker"),
    ]
    for words_of in doors:
        with pytest.raises(ConfigError, match="are of files of annotated mentions, and none are given"):
            run(*words_of, *out, *option)
    with pytest.raises(ConfigError, match="are for task own and --learned-from"):
        run("benchmark", "run", "ncbi-disease", "--data", tmp_path, "--linker", place / "linker", *out, *option)
    if option[0] == "--encoding":
        return
    own = ("benchmark", "run", "own", "--data", place / "train.txt", "--linker", place / "linker")
    for words_of in (own, ("pairs", "mentions", place / "train.txt", "-t", place / "t", "-e", place / "base")):
        with pytest.raises(InputError, match=r"train\.txt: lines of mentions have no columns"):
            run(*words_of, *out, *option)


@pytest.mark.parametrize("door", TRAINERS)
def test_a_run_goes_on_with_the_same_mentions_alone(
    place: Path, tmp_path: Path, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bar = show.training_bar

    def stop(done: DoneStep) -> None:
        if done.step == 2:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def stopping(trackers: Sequence[str] = ()) -> Iterator[Watching[DoneStep]]:
        with bar(trackers) as shown:
            yield {**shown, "on_step": stop}

    (tmp_path / "straight").mkdir()
    run(*words(place, door, "usual", tmp_path / "straight" / "made", steps=3))
    out = tmp_path / "made"
    with monkeypatch.context() as patched:
        patched.setattr(show, "training_bar", stopping)
        assert invoke(*words(place, door, "own", out, steps=3), *OWN).exit_code != 0
    assert out.with_name("made.run").exists()
    others = ("-c", "span", "--code-column", "others", "--encoding", "cp1252")
    with pytest.raises(MismatchError, match=f"with other settings: the {TRAINERS[door]}"):
        run(*words(place, door, "own", out, steps=3), *others)
    run(*words(place, door, "usual", out, steps=3))  # the same mentions, however they are written
    ours, theirs = (left(folder) for folder in (out, tmp_path / "straight" / "made"))
    assert ours["train.json"]["resumed_at"] == 1
    assert {name: ours[name] for name in ours if name.endswith(".safetensors")} == {
        name: theirs[name] for name in theirs if name.endswith(".safetensors")
    }


def test_a_grid_goes_on_with_the_same_columns_alone(place: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[[vary]]\nseed = [1]\n")
    grid = ("train", "quickstart", "-t", place / "t", "--grid", tmp_path / "mine.toml")
    common = (*grid, "--set", f"base={place / 'base'}", "--set", "steps=1", "--development", place / "own" / "dev.csv")
    run(*common, "-o", tmp_path / "g", *OWN)
    run(*common, "-o", tmp_path / "g", *OWN[:4], "--encoding", "windows-1252")
    others = ("-c", "span", "--code-column", "others", "--encoding", "cp1252")
    with pytest.raises(MismatchError, match=r"a grid on something else \(columns and encoding\)"):
        run(*common, "-o", tmp_path / "g", *others)
    run(*common[:-1], place / "usual" / "dev.csv", "-o", tmp_path / "usual")
    made_from = json.loads((tmp_path / "usual" / "grid.json").read_text())["made_from"]
    assert set(made_from) == {
        "terminology", "pairs", "hidden synonyms", "development data", "development terminology", "bases",
    }  # fmt: skip
