from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock
from safetensors import safe_open
from training_runs import interrupt_at, weights
from transformers import FNetConfig, FNetModel

from onoma.artifacts import open_artifact, verify_artifact
from onoma.encoders import locate_encoder, locate_tokenizer, open_encoder
from onoma.encoders.rewriting import add_to_card
from onoma.errors import (
    ArtifactExistsError,
    ConfigError,
    DamagedArtifactError,
    InputError,
    MismatchError,
    TrainingError,
)
from onoma.pairs import PairSet, build_pairs
from onoma.training.alignment import train_encoder
from onoma.training.alignment_config import Recipe, TrainingConfig
from onoma.training.alignment_step import StepReport
from onoma.training.checkpoints import CHECKPOINT_NAME
from onoma.training.run import train_on_pairs, train_on_terminology
from onoma.training.run_folder import begin_run, planned_steps, run_folder
from onoma.training.stopping import StopRequest
from tiny import WORDS, make_terminology, tiny_encoder
from windows_drives import in_use


def config_for(base: Path, **changes: object) -> TrainingConfig:
    values = {
        "base": str(base),
        "steps": 12,
        "batch_pairs": 6,
        "max_tokens": 16,
        "learning_rate": 1e-3,
        "dropout": 0.1,
        "precision": "fp32",
        "device": "cpu",
    }
    return TrainingConfig.model_validate({**values, **changes})


def test_training_lowers_the_loss_and_saves_an_encoder(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    steps: list[StepReport] = []
    out = tmp_path / "new" / "encoder"  # folders on the way to it are made
    report = train_encoder(config_for(base, steps=60, dropout=0.0), pairs, out, on_step=steps.append)
    assert report.last_loss < 0.7 * report.first_loss
    assert [step.step for step in steps] == list(range(1, 61))
    assert steps[-1].hard_negatives < steps[0].hard_negatives
    manifest = open_artifact(out, "encoder")
    assert manifest.parents == (pairs.manifest.as_parent(),)
    written = json.loads((out / "train.json").read_text())
    assert len(written["log"]) == 60
    assert not run_folder(out).exists()
    vectors = open_encoder(out).encode(["heart disease", "disease of heart", "skin illness"])
    similarity = vectors @ vectors.T
    assert similarity[0, 1] > similarity[0, 2]


@pytest.mark.parametrize(("warmup", "is_told"), [(3, True), (2, False)])
def test_a_warm_up_without_end_is_told(warmup: int, is_told: bool, base: Path, pairs: PairSet, tmp_path: Path) -> None:
    told: list[str] = []
    train_encoder(config_for(base, steps=2, warmup_steps=warmup), pairs, tmp_path / "e", on_event=told.append)
    assert any("does not reach its maximum" in line for line in told) == is_told


def test_what_a_run_killed_at_its_very_end_left_is_cleared(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    left = tmp_path / ".e.run.spent"
    left.mkdir()
    (left / CHECKPOINT_NAME).write_bytes(b"old")
    train_encoder(config_for(base, steps=1), pairs, tmp_path / "e")
    assert [path.name for path in tmp_path.iterdir()] == ["e"]


def test_a_run_folder_that_cannot_be_renamed_is_removed(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_use(monkeypatch, "e.run")
    report = train_encoder(config_for(base, steps=1), pairs, tmp_path / "e")
    assert report.steps == 1
    assert [path.name for path in tmp_path.iterdir()] == ["e"]
    removed: list[list[str]] = []
    monkeypatch.setattr(
        "onoma.training.run_folder.remove_spent",
        lambda path: removed.append(sorted(entry.name for entry in path.iterdir())) if path.exists() else None,
    )
    train_encoder(config_for(base, steps=1), pairs, tmp_path / "e", overwrite=True)
    assert removed == [[".lock"]]  # its record went last, so that after a kill it is known that it was saved


def killed_after_saving(out: Path, train: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(_run: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("onoma.training.run_folder._remove", kill)
        with pytest.raises(KeyboardInterrupt):
            train()
    assert (out / "train.json").exists()
    assert run_folder(out).exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_killed_after_saving_is_finished_by_the_same_call(
    overwrite: bool, base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, config = tmp_path / "e", config_for(base, steps=3)
    killed_after_saving(out, lambda: train_encoder(config, pairs, out), monkeypatch)
    add_to_card(out, licence="mit")
    saved, steps = weights(out), list[StepReport]()
    report = train_encoder(config, pairs, out, overwrite=overwrite, on_step=steps.append)
    assert (steps, report.steps, report.resumed_at) == ([], 3, 3)
    assert all(torch.equal(saved[name], tensor) for name, tensor in weights(out).items())
    assert locate_encoder(out).origin.licence == "mit"  # what was added to it meanwhile is still there
    assert [path.name for path in tmp_path.iterdir()] == ["e"]
    with pytest.raises(ArtifactExistsError, match="exists already"):
        train_encoder(config, pairs, out)


def test_what_was_saved_and_then_damaged_is_saved_again(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, config = tmp_path / "e", config_for(base, steps=3)
    killed_after_saving(out, lambda: train_encoder(config, pairs, out), monkeypatch)
    (out / "model.safetensors").write_bytes(b"")
    train_encoder(config, pairs, out)
    verify_artifact(out)


def test_other_settings_do_not_finish_it(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "e"
    killed_after_saving(out, lambda: train_encoder(config_for(base, steps=3), pairs, out), monkeypatch)
    with pytest.raises(ArtifactExistsError, match="exists already"):
        train_encoder(config_for(base, steps=2), pairs, out)
    steps: list[StepReport] = []
    train_encoder(config_for(base, steps=2), pairs, out, overwrite=True, on_step=steps.append)
    assert len(steps) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["e"]


@pytest.mark.parametrize(
    ("damage", "told"), [("{", "not readable"), ("1", "not readable"), ("", "the 3 steps of the checkpoint")]
)
def test_a_log_that_was_damaged_is_refused(
    damage: str, told: str, base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, config = tmp_path / "e", config_for(base, steps=3)
    killed_after_saving(out, lambda: train_encoder(config, pairs, out), monkeypatch)
    (run_folder(out) / "log.jsonl").write_text(damage)
    with pytest.raises(TrainingError, match=told):
        train_encoder(config, pairs, out)


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from onoma.pairs import PairSet
    from onoma.training.alignment_config import TrainingConfig
    from onoma.training.alignment import train_encoder

    def maybe_die(report):
        if report.step == int(sys.argv[4]):
            os.kill(os.getpid(), signal.SIGKILL)

    train_encoder(
        TrainingConfig.model_validate_json(sys.argv[1]), PairSet.open(sys.argv[2]), Path(sys.argv[3]), on_step=maybe_die
    )
"""


@pytest.mark.parametrize("killed_after", [1, 7])
def test_a_killed_run_goes_on_to_the_same_weights(
    base: Path, pairs: PairSet, tmp_path: Path, killed_after: int
) -> None:
    config = config_for(base, checkpoint_minutes=1e-9)
    train_encoder(config, pairs, tmp_path / "straight")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(KILLED),
            config.model_dump_json(),
            str(pairs.path),
            str(tmp_path / "killed"),
            str(killed_after),
        ],
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
    )
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed").exists()
    events: list[str] = []
    report = train_encoder(config, pairs, tmp_path / "killed", on_event=events.append)
    if killed_after > 1:
        assert report.resumed_at == killed_after - 1
        assert "resuming from step" in events[0]
    straight, resumed = weights(tmp_path / "straight"), weights(tmp_path / "killed")
    assert all(torch.equal(straight[key], resumed[key]) for key in straight)
    logs = [json.loads((tmp_path / name / "train.json").read_text())["log"] for name in ("straight", "killed")]
    assert [line["loss"] for line in logs[0]] == [line["loss"] for line in logs[1]]


@pytest.mark.usefixtures("signals_as_usual")
@pytest.mark.parametrize(
    ("number", "leaves_with"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)],
)
def test_asked_to_stop_it_writes_a_checkpoint_after_the_step(
    base: Path, pairs: PairSet, tmp_path: Path, number: signal.Signals, leaves_with: type[BaseException]
) -> None:
    def ask(report: StepReport) -> None:
        if report.step == 3:
            signal.raise_signal(number)
            if number == signal.SIGHUP:  # which comes from the shell and from the system, when a terminal is closed
                signal.raise_signal(number)

    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    config, told = config_for(base), list[str]()  # which writes no checkpoint by itself
    with pytest.raises(leaves_with) as caught:
        train_encoder(config, pairs, tmp_path / "stopped", on_step=ask, on_event=told.append)
    assert getattr(caught.value, "code", 128 + number) == 128 + number
    assert told[-1].startswith(f"stopped at step 3 of {config.steps}, with a checkpoint in ")
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
    run = tmp_path / "stopped.run"
    assert (run / CHECKPOINT_NAME).stat().st_mode == (run / "run.json").stat().st_mode
    with safe_open(run / CHECKPOINT_NAME, framework="pt") as file:
        before_stop = json.loads(file.metadata()["progress"])["phases"]
    report = train_encoder(config, pairs, tmp_path / "stopped")
    assert report.resumed_at == 3
    assert report.phases["forward"] > before_stop["forward"] > 0
    train_encoder(config, pairs, tmp_path / "straight")
    stopped, straight = weights(tmp_path / "stopped"), weights(tmp_path / "straight")
    assert all(torch.equal(stopped[key], straight[key]) for key in straight)


@pytest.mark.usefixtures("signals_as_usual")
def test_what_is_ignored_stays_so(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    config = config_for(base)
    report = train_encoder(config, pairs, tmp_path / "e", on_step=lambda _: signal.raise_signal(signal.SIGINT))
    assert report.steps == config.steps


@pytest.mark.usefixtures("signals_as_usual")
def test_asked_twice_it_stops_at_once(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    def ask(report: StepReport) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train_encoder(config_for(base), pairs, tmp_path / "e", on_step=ask)
    assert not (run_folder(tmp_path / "e") / CHECKPOINT_NAME).exists()


def test_who_cannot_be_told_ends_a_run_that_was_not_asked_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: str) -> None:
        raise OSError("the terminal is gone")

    moments: list[float] = []
    monkeypatch.setattr(time, "sleep", moments.append)
    stop = StopRequest()
    with pytest.raises(OSError, match="terminal is gone"):
        stop.tolerating(gone)("step 1")
    assert len(moments) == 1
    monkeypatch.setattr(time, "sleep", lambda _: setattr(stop, "signal", signal.SIGHUP))  # it comes a moment later
    stop.tolerating(gone)("step 2")
    monkeypatch.setattr(time, "sleep", moments.append)
    stop.tolerating(gone)("step 3")
    assert len(moments) == 1


def interrupted(base: Path, pairs: PairSet, out: Path, *, at: int = 5, **changes: object) -> None:
    with pytest.raises(KeyboardInterrupt):
        train_encoder(
            config_for(base, checkpoint_minutes=1e-9, **changes),
            pairs,
            out,
            on_step=interrupt_at(at),
        )


def test_what_a_run_ran_on_is_told_where_it_differs(base: Path, tmp_path: Path) -> None:
    config = config_for(base)
    identity = {"config": config.model_dump(mode="json"), "pairs": "a" * 64, "precision": "fp32", "processes": 2}
    begin_run(tmp_path, identity, 12)
    (tmp_path / CHECKPOINT_NAME).touch()
    now = {**identity, "pairs": "b" * 64, "precision": "bf16", "processes": 1}
    with pytest.raises(MismatchError) as refused:
        planned_steps(tmp_path, now)
    differing = "the pairs, the precision (begun with fp32, now bf16), the processes (begun with 2, now 1)."
    assert f"with other settings: {differing}" in str(refused.value)


def test_without_a_checkpoint_other_settings_begin_anew(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train_encoder(config_for(base), pairs, tmp_path / "e", on_step=interrupt_at(2))
    report = train_encoder(config_for(base, learning_rate=1e-4), pairs, tmp_path / "e")
    train_encoder(config_for(base, learning_rate=1e-4), pairs, tmp_path / "straight")
    assert report.resumed_at is None
    begun_anew, straight = weights(tmp_path / "e"), weights(tmp_path / "straight")
    assert all(torch.equal(begun_anew[key], straight[key]) for key in straight)


def test_a_run_whose_record_is_not_readable_is_refused(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    interrupted(base, pairs, tmp_path / "e")
    (run_folder(tmp_path / "e") / "run.json").write_text("{")
    with pytest.raises(TrainingError, match=r"run\.json is not readable .* Remove .*e\.run to begin anew"):
        train_encoder(config_for(base, checkpoint_minutes=1e-9), pairs, tmp_path / "e")


def test_one_concept_has_nothing_to_be_told_from(base: Path, tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {"A": ["heart", "cor"], "B": ["lung"]})
    of_one = build_pairs(terminology, locate_tokenizer(base), tmp_path / "p")
    with pytest.raises(InputError, match="all pairs are of one concept"):
        train_encoder(config_for(base), of_one, tmp_path / "e")
    assert not run_folder(tmp_path / "e").exists()


@pytest.mark.parametrize(
    "damage", [(b"{", b"\xff\xfe\x80"), (b'"names": ', b'"names": [], "n": '), (b'"loss"', b'"lass"')]
)
def test_a_log_that_is_damaged_is_refused(
    damage: tuple[bytes, bytes], base: Path, pairs: PairSet, tmp_path: Path
) -> None:
    interrupted(base, pairs, tmp_path / "e")
    log = run_folder(tmp_path / "e") / "log.jsonl"
    log.write_bytes(log.read_bytes().replace(*damage))
    with pytest.raises(TrainingError, match=r"log\.jsonl is not readable .* Remove .*e\.run to begin anew"):
        train_encoder(config_for(base, checkpoint_minutes=1e-9), pairs, tmp_path / "e")


def test_a_checkpoint_of_another_run_is_not_loaded(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    interrupted(base, pairs, tmp_path / "a")
    interrupted(base, pairs, tmp_path / "b", learning_rate=1e-5)
    foreign = run_folder(tmp_path / "a") / CHECKPOINT_NAME
    (run_folder(tmp_path / "b") / CHECKPOINT_NAME).write_bytes(foreign.read_bytes())
    with pytest.raises(MismatchError, match="belongs to another run"):
        train_encoder(config_for(base, checkpoint_minutes=1e-9, learning_rate=1e-5), pairs, tmp_path / "b")


def test_two_processes_do_not_share_a_run(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    run_folder(tmp_path / "e").mkdir()
    with (
        FileLock(run_folder(tmp_path / "e") / ".lock"),
        pytest.raises(TrainingError, match="another process is training"),
    ):
        train_encoder(config_for(base), pairs, tmp_path / "e")


@pytest.mark.parametrize("names", [("letter",), (".lock", "letter"), (".lock", "grid.json", "seed=1")])
def test_a_folder_of_something_else_is_not_touched(
    base: Path, pairs: PairSet, tmp_path: Path, names: tuple[str, ...]
) -> None:
    run_folder(tmp_path / "e").mkdir()
    for name in names:
        (run_folder(tmp_path / "e") / name).write_text("dear")
    with pytest.raises(ArtifactExistsError, match="something else; it will not be touched"):
        train_encoder(config_for(base), pairs, tmp_path / "e")
    assert {path.name: path.read_text() for path in run_folder(tmp_path / "e").iterdir()} == dict.fromkeys(
        names, "dear"
    )


def test_what_a_kill_before_the_first_step_left_is_taken_up(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    (run_folder(tmp_path / "e") / "pairs").mkdir(parents=True)
    for name in (".lock", ".run.json.partial-1", "neighbours-0000000.npy"):
        (run_folder(tmp_path / "e") / name).touch()
    train_encoder(config_for(base), pairs, tmp_path / "e")
    assert not run_folder(tmp_path / "e").exists()


def test_a_run_that_cannot_be_saved_goes_on_from_its_end(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("onoma.training.alignment.save_encoder", full)
        with pytest.raises(OSError, match="no space left"):
            train_encoder(config_for(base), pairs, tmp_path / "e")
    assert train_encoder(config_for(base), pairs, tmp_path / "e").resumed_at == 12


def test_a_damaged_checkpoint_is_refused(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    interrupted(base, pairs, tmp_path / "e")
    checkpoint = run_folder(tmp_path / "e") / CHECKPOINT_NAME
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    with pytest.raises(DamagedArtifactError, match="not a readable checkpoint"):
        train_encoder(config_for(base, checkpoint_minutes=1e-9), pairs, tmp_path / "e")


def test_a_minutes_budget_becomes_a_number_of_steps_that_a_resumed_run_keeps(
    base: Path, pairs: PairSet, tmp_path: Path
) -> None:
    lengths: dict[str, Any] = {"steps": None, "minutes": 0.02}
    interrupted(base, pairs, tmp_path / "e", at=1, **lengths)
    planned = json.loads((run_folder(tmp_path / "e") / "run.json").read_text())["total_steps"]
    report = train_encoder(config_for(base, checkpoint_minutes=1e-9, **lengths), pairs, tmp_path / "e")
    assert report.steps == planned > 1


def test_what_is_no_run_is_not_taken_for_one(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    config = config_for(base, steps=1)
    train_encoder(config, pairs, tmp_path / "x.run")
    (tmp_path / "y.run").mkdir()
    (tmp_path / "y.run" / "thesis.txt").write_text("mine")
    (tmp_path / "z.run").write_text("mine")
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    for name in "xyz":
        with pytest.raises(ArtifactExistsError, match=rf"{name}\.run is where the unfinished run would lie"):
            train_encoder(config, pairs, tmp_path / name, overwrite=True)
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before
    (tmp_path / "e.run").mkdir()  # an empty one is as good as none
    train_encoder(config, pairs, tmp_path / "e")
    assert not (tmp_path / "e.run").exists()


def test_a_run_that_diverges_before_it_compares_names_says_so(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    neighbours = {"name": "neighbours", "neighbours": 1, "refresh_steps": 1}
    with pytest.raises(TrainingError, match="vectors are not numbers"):
        train_encoder(config_for(base, learning_rate=1e30, batches=neighbours), pairs, tmp_path / "f")


def test_pairs_of_another_tokeniser_are_refused(pairs: PairSet, tmp_path: Path) -> None:
    other = tiny_encoder(tmp_path / "other", extra_tokens=["zzz"])
    with pytest.raises(MismatchError, match="another tokeniser"):
        train_encoder(config_for(other), pairs, tmp_path / "e")


def test_bf16_follows_fp32(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    losses = []
    for precision in ("fp32", "bf16"):
        config = config_for(base, steps=4, precision=precision, dropout=0.0)
        report = train_encoder(config, pairs, tmp_path / precision)
        losses.append([line["loss"] for line in report.log])
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.05)


def test_from_a_terminology_without_the_hidden_names(base: Path, tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {f"X:{word}": [word, f"{word} disease"] for word in WORDS})
    recipe = Recipe(name="tiny", description="", config=config_for(base, steps=2))
    hidden = np.array([1])
    train_on_terminology(recipe, terminology, tmp_path / "e", hidden_names=hidden)
    config = open_artifact(tmp_path / "e", "encoder").config
    assert config["terminology"] == [terminology.manifest.fingerprint]
    assert config["pairs"]["hidden_names"] is not None


def test_a_run_killed_between_saving_and_cleaning_up_is_not_gone_on_with(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("onoma.training.run_folder._remove", killed)
        with pytest.raises(KeyboardInterrupt):
            train_encoder(config_for(base), pairs, tmp_path / "e")
    saved, left = tmp_path / "e", run_folder(tmp_path / "e")
    assert (left / CHECKPOINT_NAME).exists()
    assert json.loads((saved / "train.json").read_text())["steps"] == 12
    report = train_encoder(config_for(base, steps=3), pairs, saved, overwrite=True)
    assert (report.steps, report.resumed_at) == (3, None)
    assert [path.name for path in tmp_path.iterdir()] == ["e"]


def test_what_a_kill_in_the_very_end_left_is_removed_by_the_next_call(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("onoma.artifacts.unfinished.shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            train_encoder(config_for(base, steps=3), pairs, tmp_path / "e")
    assert {path.name for path in tmp_path.iterdir()} == {"e", ".e.run.spent"}
    with pytest.raises(ArtifactExistsError, match="exists already"):
        train_encoder(config_for(base, steps=3), pairs, tmp_path / "e")
    assert [path.name for path in tmp_path.iterdir()] == ["e"]


def test_an_unfinished_run_beside_the_encoder_of_an_earlier_one_goes_on(
    base: Path, pairs: PairSet, tmp_path: Path
) -> None:
    config = config_for(base, checkpoint_minutes=1e-9)
    train_encoder(config, pairs, tmp_path / "e")
    with pytest.raises(KeyboardInterrupt):
        train_encoder(config, pairs, tmp_path / "e", overwrite=True, on_step=interrupt_at(7))
    assert train_encoder(config, pairs, tmp_path / "e", overwrite=True).resumed_at == 6


def test_a_run_that_is_refused_leaves_nothing(base: Path, tmp_path: Path) -> None:
    recipe = Recipe(name="tiny", description="", config=config_for(base, steps=4))
    alone = make_terminology(tmp_path / "t", {f"X:{word}": [word] for word in WORDS})
    with pytest.raises(InputError, match="no concept has two names"):
        train_on_terminology(recipe, alone, tmp_path / "e")
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_a_refusal_where_a_finished_run_was_not_cleared_leaves_nothing(
    base: Path, pairs: PairSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(run: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("onoma.training.run_folder._remove", killed)
        with pytest.raises(KeyboardInterrupt):
            train_encoder(config_for(base), pairs, tmp_path / "e")
    assert (run_folder(tmp_path / "e") / "run.json").exists()
    refused = config_for(base, matryoshka=[16])
    with pytest.raises(ConfigError, match="matryoshka asks for 16"):
        train_encoder(refused, pairs, tmp_path / "e", overwrite=True)
    assert not run_folder(tmp_path / "e").exists()


def test_pairs_that_were_there_before_outlast_a_refusal(base: Path, tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {f"X:{word}": [word, f"{word} x"] for word in WORDS})
    run = run_folder(tmp_path / "e")
    build_pairs(terminology, locate_tokenizer(base), run / "pairs", max_tokens=16)
    with pytest.raises(ConfigError, match="matryoshka asks for 16"):
        train_on_pairs(config_for(base, matryoshka=[16]), run / "pairs", tmp_path / "e")
    assert PairSet.open(run / "pairs").path.exists()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"max_tokens": 33},
            "max_tokens must be from 3 to 32 for the encoder .*; not 33. Set max_tokens=32 or",
        ),
        ({"matryoshka": [16]}, "matryoshka asks for 16 of the 16 numbers"),
        ({"tuning": {"name": "adapter", "reduction": 7}}, "reduction"),
        ({"device": "cpu", "compile": True}, "compile=true is for GPUs"),
        ({}, r"terminology: all pairs are of one concept.*To mend it: train on more concepts"),
    ],
)
def test_a_run_that_its_base_or_its_data_do_not_allow_leaves_nothing(
    changes: dict[str, object], problem: str, base: Path, tmp_path: Path
) -> None:
    make_terminology(tmp_path / "terminology", {"C1": ["heart attack", "attack of the heart"], "C2": ["measles"]})
    with pytest.raises((ConfigError, InputError, TrainingError), match=problem):
        train_on_terminology(config_for(base, **changes), tmp_path / "terminology", tmp_path / "e")
    assert [path.name for path in tmp_path.iterdir()] == ["terminology"]


def test_a_base_of_which_nothing_could_be_saved_is_refused_before_pairs_are_made(base: Path, tmp_path: Path) -> None:
    """FNet mixes all that stands beside a name, padding too."""
    shutil.copytree(base, tmp_path / "fnet")
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 32}
    vocabulary = json.loads((base / "config.json").read_text())["vocab_size"]
    FNetModel(FNetConfig(vocab_size=vocabulary, max_position_embeddings=32, **sizes)).save_pretrained(tmp_path / "fnet")
    make_terminology(tmp_path / "terminology", {"C1": ["heart attack", "attack of the heart"], "C2": ["measles"]})
    with pytest.raises(ConfigError, match="family 'fnet', whose vectors depend on how names are padded"):
        train_on_terminology(config_for(tmp_path / "fnet"), tmp_path / "terminology", tmp_path / "e")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fnet", "terminology"]


def test_a_step_is_not_said_to_take_more_pairs_than_there_are(base: Path, pairs: PairSet, tmp_path: Path) -> None:
    told: list[str] = []
    config = config_for(base, steps=1, batch_pairs=1000, accumulation=2)
    train_encoder(config, pairs, tmp_path / "e", on_event=told.append)
    assert f"1 step of {2 * len(pairs.pairs)} pairs on" in " ".join(told)


def test_pairs_of_an_unfinished_run_are_not_replaced_by_those_of_other_settings(base: Path, tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {f"X:{word}": [word, f"{word} disease"] for word in WORDS})

    def recipe(**changes: object) -> Recipe:
        return Recipe(name="tiny", description="", config=config_for(base, steps=4, checkpoint_steps=1, **changes))

    with pytest.raises(KeyboardInterrupt):
        train_on_terminology(recipe(), terminology, tmp_path / "e", on_step=interrupt_at(3))
    run = run_folder(tmp_path / "e")
    with pytest.raises(MismatchError, match=rf"other names hidden \(--hide\)\..* remove {run} to begin anew"):
        train_on_terminology(recipe(), terminology, tmp_path / "e", hidden_names=np.array([1]))
    for _ in range(2):  # the second time without pairs
        with pytest.raises(MismatchError, match=rf"{run} holds .*: seed \(begun with 0, now 1\).* remove that folder"):
            train_on_terminology(recipe(seed=1), terminology, tmp_path / "e")
        shutil.rmtree(run / "pairs", ignore_errors=True)
    assert train_on_terminology(recipe(), terminology, tmp_path / "e").resumed_at == 2


def test_pairs_are_not_made_where_another_run_may_be_reading_them(base: Path, tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {f"X:{word}": [word, f"{word} disease"] for word in WORDS})
    recipe = Recipe(name="tiny", description="", config=config_for(base, steps=2))
    with pytest.raises(KeyboardInterrupt):
        train_on_terminology(recipe, terminology, tmp_path / "e", on_step=interrupt_at(1))
    before = (run_folder(tmp_path / "e") / "pairs" / "onoma.json").read_bytes()
    other = Recipe(name="tiny", description="", config=config_for(base, steps=2, max_pairs_per_concept=1, seed=3))
    with (
        FileLock(run_folder(tmp_path / "e") / ".lock"),
        pytest.raises(TrainingError, match="another process is training"),
    ):
        train_on_terminology(other, terminology, tmp_path / "e")
    assert (run_folder(tmp_path / "e") / "pairs" / "onoma.json").read_bytes() == before
