"""``onoma train``: development data, trackers, grids, and the log where there is no terminal."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from typer.testing import Result

from commands import invoke
from onoma.cli import show
from onoma.errors import ConfigError, InputError, TrainingError
from onoma.training.checkpoints import CHECKPOINT_NAME
from onoma.training.optimiser_step import DoneStep
from onoma.training.report import TrainingReport
from tiny import make_terminology, tiny_encoder

WORDS = ["heart", "lung", "liver", "bone", "skin", "eye", "ear", "brain"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("train")
    tiny_encoder(folder / "base")
    make_terminology(
        folder / "t", {f"X:{word}": [f"{word} disease", f"disease of {word}", f"{word} illness"] for word in WORDS}
    )
    (folder / "dev.txt").write_text("".join(f"X:{word}||bad {word}\n" for word in WORDS))
    (folder / "grid.toml").write_text('[[vary]]\nlearning_rate = [1e-3, 1e-4]\nloss = ["nca"]\n')
    return folder


def train(place: Path, out: Path, *arguments: str | Path) -> Result:
    settings = [f"--set={s}" for s in (f"base={place / 'base'}", "steps=4", "batch_pairs=7", "max_tokens=16")]
    return invoke("train", "quickstart", "-t", place / "t", "-o", out, *settings, *arguments)


def test_development_data_are_measured_and_told(place: Path, tmp_path: Path) -> None:
    done = train(place, tmp_path / "e", "--hide", "3", "--development", place / "dev.txt", "--set", "evaluate_steps=2")
    assert done.exit_code == 0
    told = [line for line in done.stderr.splitlines() if line.startswith("step ") and ":" in line]
    assert [re.findall(r"[\d,]+", line)[0] for line in told] == ["0", "2", "4"]
    assert all("hidden synonyms acc@1" in line and "dev.txt acc@1" in line for line in told)
    assert re.search(r"trained 4 steps in .*, loss \d+\.\d+ -> \d+\.\d+, acc@1 [01]\.\d+", done.stdout)


def test_a_run_is_told_to_programs(place: Path, tmp_path: Path) -> None:
    told = json.loads(train(place, tmp_path / "e", "--json").stdout)
    report = json.loads((tmp_path / "e" / "train.json").read_text())
    assert told == {"path": str(tmp_path / "e"), **{name: value for name, value in report.items() if name != "log"}}
    told = json.loads(train(place, tmp_path / "g", "--grid", place / "grid.toml", "--json").stdout)
    assert [made["status"] for made in told["combinations"]] == ["done", "done"]
    assert {Path(told["path"]) / made["name"] for made in told["combinations"]} < set((tmp_path / "g").iterdir())


@pytest.mark.parametrize("keep", ["last", "best"])
def test_the_score_told_is_that_of_what_is_saved(place: Path, tmp_path: Path, keep: str) -> None:
    settings = ["evaluate_steps=1", "learning_rate=100", "warmup_steps=0", f"keep={keep}"]  # which spoils the encoder
    development = ("--development", place / "dev.txt")
    done = train(place, tmp_path / "e", *development, *(f"--set={setting}" for setting in settings))
    report = json.loads((tmp_path / "e" / "train.json").read_text())
    measured = {evaluation["step"]: evaluation["at_1"] for evaluation in report["evaluations"]}
    best, saved = report["best"], report["saved_step"]
    expected = f", acc@1 {measured[saved]:.4f}"
    if saved != 4:
        expected += f" at step {saved}, which is saved"
    if best["at_1"] > measured[saved]:  # which of both it comes to depends on the last bits
        assert keep == "last"
        expected += f"; the best was {best['at_1']:.4f} at step {best['step']}, which keep=best would have saved"
    assert done.stdout.replace("\n", " ").rstrip().endswith(expected)


@pytest.mark.parametrize(
    ("saved", "told"),
    [
        (4, "acc@1 0.2500; the best was 0.5000 at step 2, which keep=best would have saved"),
        (2, "acc@1 0.5000 at step 2, which is saved"),
    ],
)
def test_the_line_of_a_run_that_was_better_before_its_end(
    saved: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = SimpleNamespace(
        evaluations=[{"step": 2, "at_1": 0.5}, {"step": 4, "at_1": 0.25}],
        best={"step": 2, "at_1": 0.5},
        saved_step=saved,
        steps=4,
        seconds=1.0,
        names_per_second=100.0,
        first_loss=0.3,
        last_loss=0.2,
    )
    show.training_report(cast(TrainingReport, report), Path("e"))
    assert capsys.readouterr().out.replace("\n", " ").rstrip().endswith(told)


@pytest.mark.parametrize("measured", [False, True])
def test_a_terminal_that_is_closed_leaves_a_checkpoint(place: Path, tmp_path: Path, measured: bool) -> None:
    settings = [f"--set={s}" for s in (f"base={place / 'base'}", "steps=100000", "batch_pairs=7", "max_tokens=16")]
    if measured:
        settings += ["--development", str(place / "dev.txt"), "--set=evaluate_steps=1"]
    command = [sys.executable, "-m", "onoma", "train", "quickstart", "-t", str(place / "t"), "-o", str(tmp_path / "e")]
    program = textwrap.dedent(
        """
        import os, pty, signal, sys
        child, terminal = pty.fork()
        if child == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, in which the tests may run, has it ignored
            os.execv(sys.argv[1], sys.argv[1:])
        told = b""
        while b"names/s" not in told:
            told += os.read(terminal, 1 << 16)
        os.close(terminal)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    closed = subprocess.run([sys.executable, "-c", program, *command, *settings], check=False, timeout=300)
    assert closed.returncode == 129
    assert (tmp_path / "e.run" / CHECKPOINT_NAME).exists()


def test_without_a_terminal_there_are_lines_to_read(place: Path, tmp_path: Path) -> None:
    lines = [line for line in train(place, tmp_path / "e").stderr.splitlines() if line.startswith("step ")]
    assert len(lines) == 2  # the first step, and the last
    form = r"step {} of 4  [\d,]+ names/s  loss \d+\.\d+  hard \d+% of synonyms, \d+\.\d% of others  .* left"
    assert re.fullmatch(form.format(1), lines[0])
    assert re.fullmatch(form.format(4), lines[1])


def test_curves_in_tensorboard(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    assert train(place, tmp_path / "e", "--track", "tensorboard", "--hide", "3").exit_code == 0
    assert list((tmp_path / "tensorboard" / "e").glob("events.*"))
    with pytest.raises(ConfigError, match="tensorboard keeps its own at"):
        train(place, tmp_path / "other" / "tensorboard", "--track", "tensorboard")
    assert not (tmp_path / "other").exists()


def test_a_grid_is_trained_shown_and_drawn(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    grid = ("--grid", place / "grid.toml", "--plot", tmp_path / "grid.svg")
    done = train(place, tmp_path / "g", *grid, "--hide", "3")
    assert done.exit_code == 0
    head, *lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert head == ["combination", "development/acc@1", "untrained", "loss", "steps", "time"]
    assert len({line[2] for line in lines}) == 1
    assert "Scores are of hidden synonyms (3 queries):" in done.stderr
    assert sorted(line[0] for line in lines) == ["learning_rate=0.0001,loss=nca", "learning_rate=0.001,loss=nca"]
    assert [float(line[1]) for line in lines] == sorted((float(line[1]) for line in lines), reverse=True)
    assert "<svg" in (tmp_path / "grid.svg").read_text()
    with (tmp_path / "g" / "grid.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [line[0] for line in lines]
    assert [f"{float(row['untrained/development/acc@1']):.4f}" for row in rows] == [line[2] for line in lines]
    again = train(place, tmp_path / "g", *grid, "--hide", "3")
    assert "2 combinations in" in again.stderr
    assert "2 of them finished" in again.stderr
    assert again.stdout == done.stdout
    with pytest.raises(InputError, match=r"\.svg"):
        train(place, tmp_path / "h", *grid[:3], tmp_path / "grid.txt")
    assert not (tmp_path / "h").exists()


def test_a_grid_without_scores_says_how_to_have_them(place: Path, tmp_path: Path) -> None:
    grid = ("--grid", place / "grid.toml")
    assert "give --hide N to measure" in train(place, tmp_path / "g", *grid).stderr
    invoke("pairs", "build", "-t", place / "t", "-e", place / "base", "-o", tmp_path / "p", "--max-tokens", "16")
    settings = [f"--set={s}" for s in (f"base={place / 'base'}", "steps=4", "batch_pairs=7", "max_tokens=16")]
    made = invoke("train", "quickstart", "--pairs", tmp_path / "p", "-o", tmp_path / "h", *settings, *grid)
    assert made.exit_code == 0
    assert "give --development FILE with --development-terminology DIR to measure" in made.stderr


def test_failed_combinations_are_said_at_the_end(place: Path, tmp_path: Path) -> None:
    (tmp_path / "wild.toml").write_text("[[vary]]\nlearning_rate = [1e-3, 1e30]\n")
    with pytest.raises(TrainingError, match=r"1 of 2 combinations failed: learning_rate=1e\+30"):
        train(place, tmp_path / "g", "--grid", tmp_path / "wild.toml")
    with (tmp_path / "g" / "grid.csv").open() as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["done", "failed"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--grid", "sapbert-grid", "--force"], "--force does not go with --grid"),
        (["--plot", "p.svg"], "--plot draws a grid"),
        (["--grid", "sapbert-grid", "--set", "learning_rate=1"], "varies learning_rate; leave it out of --set"),
        (["--development-terminology", "t"], "there are none"),
        (["--set", "keep=best"], "keep=best needs development data"),
    ],
)
def test_what_does_not_go_together_is_refused(place: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        train(place, tmp_path / "e", *arguments)
    assert not (tmp_path / "e").exists()


def test_hiding_needs_a_terminology(place: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--hide goes with --terminology"):
        invoke("train", "quickstart", "--pairs", place, "-o", tmp_path / "e", "--hide", "3")


def test_recipes_and_grids_are_listed_and_shown(place: Path) -> None:
    listed = invoke("recipes", "list").stdout
    assert "sapbert-finetune-cometa" in listed
    assert "sapbert-grid" in listed
    shown = invoke("recipes", "grid", "quickstart", place / "grid.toml")
    assert [line.strip() for line in shown.stdout.splitlines() if "=" in line] == [
        "learning_rate=0.001,loss=nca",
        "learning_rate=0.0001,loss=nca",
    ]
    assert "2 combinations" in shown.stderr
    with pytest.raises(InputError, match="no grid 'sapbert'"):
        invoke("recipes", "grid", "quickstart", "sapbert")
    with pytest.raises(InputError, match=r"'sapbert-grid' is a grid.* onoma recipes grid RECIPE sapbert-grid"):
        invoke("recipes", "show", "sapbert-grid")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("batch_queries = 3", "sparse_weight"),
        ("depth = 3", "own_names"),
        ("batch_pairs = 3", "mining"),
        ("batch_names = 6", "temperature"),
    ],
)
def test_a_recipe_of_ones_own_is_shown_whatever_it_is_for(text: str, shown: str, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(f"steps = 5\n{text}\n")
    done = invoke("recipes", "show", own)
    assert shown in done.stdout
    assert "as onoma" not in done.stderr
    own.write_text("steps = 5\n")
    told = "as onoma train reads it; onoma train-biosyn, onoma reranker train and onoma distil would read it with"
    assert told in invoke("recipes", "show", own).stderr


def test_an_evaluation_has_lines_with_rate_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr("onoma.cli.show.time.monotonic", lambda: clock[0])

    def measure(*, per_second: int) -> None:
        for done in range(0, 1001, 100):
            bar.progress(done, 1000, "measuring")
            clock[0] += 100 / per_second

    with show.training_bar() as watching:
        bar = SimpleNamespace(**watching)
        measure(per_second=10)
        clock[0] += 500  # in which nothing is told
        bar.on_step(DoneStep(step=1, total_steps=2, loss=1.0, names=100, learning_rate=0.1, seconds=1.0))
        measure(per_second=5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "measuring  300 of 1,000  10/s  1 min 10 s left"
    assert [line.split()[1] for line in lines[:3]] == ["300", "600", "900"]
    assert lines[3].startswith("step 1 of 2")
    assert lines[4] == "measuring  200 of 1,000  5/s  2 min 40 s left"


def test_the_time_left_counts_what_lies_between_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr("onoma.cli.show.time.monotonic", lambda: clock[0])
    with show.training_bar() as watching:
        bar = SimpleNamespace(**watching)
        for step in range(11, 15):  # a run that goes on
            clock[0] += 60  # an evaluation, and the step
            bar.on_step(DoneStep(step=step, total_steps=20, loss=1.0, names=100, learning_rate=0.1, seconds=1.0))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("step")]
    assert lines[0].endswith("100 names/s  loss 1.000    9.0 s left")
    assert lines[-1].startswith("step 14 of 20")
    assert lines[-1].endswith("6 min 0 s left")


def test_rate_and_loss_are_means_of_the_last_twenty_steps(capsys: pytest.CaptureFixture[str]) -> None:
    with show.training_bar() as watching:
        bar = SimpleNamespace(**watching)
        for step in range(1, 41):
            bar.on_step(DoneStep(step=step, total_steps=40, loss=step, names=step, learning_rate=0.1, seconds=0.5))
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("step 40 of 40  61 names/s  loss 30.500")  # as of 21 to 40: 610 names in 10 s
