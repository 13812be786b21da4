from __future__ import annotations

import importlib.util
import json
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from onoma.errors import ConfigError, DamagedArtifactError, UnavailableError
from onoma.training.trackers import _TRACKERS, STATE_NAME, Trackers, check_trackers, open_trackers

CONFIG = {"learning_rate": 1e-5, "loss": {"name": "circle", "margin": 0.25}, "minutes": None}


def log_steps(
    name: str, run: Path, *, after: int, up_to: int, flushed_at: int | None = None, finished: bool | None = True
) -> None:
    """A sitting that begins with a checkpoint after step ``after``; ``finished`` None leaves it without closing."""
    run.mkdir(exist_ok=True)
    told: list[str] = []
    trackers = open_trackers([name], run, CONFIG, steps_done=after, tell=told.append)
    if after == 0:
        trackers.log({"development/acc@1": 0.0}, 0)
    for step in range(after + 1, up_to + 1):
        trackers.log({"loss": 1 / step}, step)
        if step % 5 == 0:
            trackers.log({"development/acc@1": step / 100}, step)
        if step == flushed_at:
            trackers.flush()
    if finished is not None:
        trackers.close(finished=finished)
    assert told == []


class Recorder:
    """A tracker that fails from a step on."""

    def __init__(self, fails_at: float = float("inf")) -> None:
        self.fails_at, self.done = fails_at, []  # type: tuple[float, list[str]]

    def log(self, values: Mapping[str, float], step: int) -> None:
        if step >= self.fails_at:
            raise OSError("the server\nis down")
        self.done.append(f"log {step} {dict(values)}")

    def flush(self) -> None:
        self.done.append("flush")

    def close(self, *, finished: bool) -> None:
        self.done.append(f"close {finished}")


@pytest.mark.parametrize("error", [OSError("no network"), UnavailableError("no package")])
def test_where_one_cannot_be_opened_those_before_it_are_closed(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Recorder:
        raise error

    opened = Recorder()
    monkeypatch.setitem(_TRACKERS, "tensorboard", lambda *_: opened)
    monkeypatch.setitem(_TRACKERS, "wandb", fail)
    monkeypatch.setattr("onoma.training.trackers.check_trackers", lambda _: None)  # the package may not be here
    with pytest.raises(UnavailableError, match=r"no network|no package"):
        open_trackers(["tensorboard", "wandb"], tmp_path, CONFIG)
    assert opened.done == ["close False"]


def test_one_that_fails_is_told_of_and_left_out() -> None:
    whole, failing = Recorder(), Recorder(fails_at=2)
    told: list[str] = []
    trackers = Trackers({"a": failing, "b": whole}, told.append)
    for step in (1, 2, 3):
        trackers.log({"loss": 0.5}, step)
    trackers.flush()
    trackers.close(finished=False)
    assert failing.done == ["log 1 {'loss': 0.5}"]
    assert whole.done == [*(f"log {step} {{'loss': 0.5}}" for step in (1, 2, 3)), "flush", "close False"]
    assert told == ["a fails and is left out from here on: the server is down"]


def test_no_trackers_is_fine(tmp_path: Path) -> None:
    trackers = open_trackers([], tmp_path, CONFIG)
    trackers.log({"loss": 1.0}, 1)
    trackers.flush()
    trackers.close()
    assert list(tmp_path.iterdir()) == []


def test_unknown_and_missing_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"no tracker 'tensorbord'\. Did you mean 'tensorboard'\?.*wandb, mlflow"):
        check_trackers(["tensorbord"])
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "wandb" else found(name))
    with pytest.raises(UnavailableError, match=r"tracker wandb needs the package 'wandb'.*onoma\[wandb\]"):
        check_trackers(["wandb"])


@pytest.mark.parametrize("content", ["", "[1]", '{"tensorboard": 3}'])
def test_damaged_notes_are_told_where_they_are_needed(content: str, tmp_path: Path) -> None:
    (tmp_path / STATE_NAME).write_text(content)
    open_trackers([], tmp_path, CONFIG, steps_done=3).close()
    with pytest.raises(DamagedArtifactError, match=rf"{STATE_NAME} cannot be read .*Leave out --track, or remove"):
        open_trackers(["tensorboard"], tmp_path, CONFIG, steps_done=3)


def test_the_place_of_a_tracker_is_no_place_for_an_encoder(tmp_path: Path) -> None:
    check_trackers(["tensorboard"], tmp_path / "tensorboard" / "enc")
    with pytest.raises(ConfigError, match=r"tensorboard keeps its own at .*tensorboard; call the folder otherwise"):
        check_trackers(["tensorboard"], tmp_path / "tensorboard")
    check_trackers([], tmp_path / "tensorboard")


class TestTensorBoard:
    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("tensorboard")

    def points(self, folder: Path) -> dict[str, list[tuple[int, float]]]:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore

        read: Any = EventAccumulator(str(folder))
        read.Reload()
        return {
            name: [(event.step, round(event.value, 6)) for event in read.Scalars(name)]
            for name in read.Tags()["scalars"]
        }

    def test_a_run_that_is_killed_and_goes_on_has_every_point_once(self, tmp_path: Path) -> None:
        run = tmp_path / "enc.run"
        log_steps("tensorboard", run, after=0, up_to=12, flushed_at=10, finished=None)
        log_steps("tensorboard", run, after=7, up_to=20)
        points = self.points(tmp_path / "tensorboard" / "enc")
        assert points["loss"] == [(step, round(1 / step, 6)) for step in range(1, 21)]
        assert [step for step, _ in points["development/acc@1"]] == [0, 5, 10, 15, 20]

    def test_a_run_begun_anew_shows_nothing_of_the_old_one(self, tmp_path: Path) -> None:
        run = tmp_path / "enc.run"
        log_steps("tensorboard", run, after=0, up_to=9)
        log_steps("tensorboard", run, after=0, up_to=4)
        points = self.points(tmp_path / "tensorboard" / "enc")
        assert [step for step, _ in points["loss"]] == [1, 2, 3, 4]
        assert [step for step, _ in points["development/acc@1"]] == [0]

    def test_the_settings_are_with_it(self, tmp_path: Path) -> None:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        log_steps("tensorboard", tmp_path / "enc.run", after=0, up_to=1)
        read: Any = EventAccumulator(str(tmp_path / "tensorboard" / "enc"))
        read.Reload()
        (settings,) = read.Tensors("settings/text_summary")
        text = settings.tensor_proto.string_val[0].decode()
        assert "| learning_rate | 1e-05 |" in text
        assert "| loss.margin | 0.25 |" in text
        assert "minutes" not in text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of MLflow's own use of SQLAlchemy
class TestMLflow:
    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("mlflow")
        for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
            monkeypatch.delenv(name, raising=False)

    def test_a_run_that_is_killed_and_goes_on_has_every_point_once(self, tmp_path: Path) -> None:
        from mlflow.tracking import MlflowClient  # type: ignore

        run = tmp_path / "enc.run"
        log_steps("mlflow", run, after=0, up_to=12, flushed_at=10, finished=None)
        log_steps("mlflow", run, after=7, up_to=20)
        client: Any = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
        (found,) = client.search_runs([client.get_experiment_by_name("onoma").experiment_id])
        assert (found.info.run_name, found.info.status) == ("enc", "FINISHED")
        assert found.data.params == {"learning_rate": "1e-05", "loss.name": "circle", "loss.margin": "0.25"}
        history = {name: client.get_metric_history(found.info.run_id, name) for name in found.data.metrics}
        assert sorted((point.step, point.value) for point in history["loss"]) == [(s, 1 / s) for s in range(1, 21)]
        assert sorted(point.step for point in history["development/acc_at_1"]) == [0, 5, 10, 15, 20]

    def test_a_server_that_is_not_there_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", "nonsense://place")
        with pytest.raises(UnavailableError, match=r"mlflow cannot be opened.*Mend MLFLOW_TRACKING_URI"):
            open_trackers(["mlflow"], tmp_path, CONFIG)

    def test_a_run_that_is_gone_is_told_with_the_way_on(self, tmp_path: Path) -> None:
        from mlflow.tracking import MlflowClient

        run = tmp_path / "enc.run"
        log_steps("mlflow", run, after=0, up_to=3, finished=None)
        client: Any = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
        client.delete_run(json.loads((run / "trackers.json").read_text())["mlflow"]["id"])
        with pytest.raises(UnavailableError, match=r"take 'mlflow' out of .*trackers\.json"):
            open_trackers(["mlflow"], run, CONFIG, steps_done=3)
        (run / "trackers.json").unlink()
        log_steps("mlflow", run, after=3, up_to=5)

    def test_names_that_it_cannot_tell_apart_stay_two(self, tmp_path: Path) -> None:
        (tmp_path / "enc.run").mkdir()
        for sitting in (0, 1):  # the second is given what the first had, too
            trackers = open_trackers(["mlflow"], tmp_path / "enc.run", CONFIG, steps_done=sitting)
            for step in range(2 + sitting):
                trackers.log({"dev(1)/acc@1": 0.1, "dev[1]/acc@1": 0.2}, step)
            trackers.close(finished=bool(sitting))
        client = importlib.import_module("mlflow.tracking").MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
        run = json.loads((tmp_path / "enc.run" / STATE_NAME).read_text())["mlflow"]["id"]
        for name, value in (("dev_1_/acc_at_1", 0.1), ("dev_1_/acc_at_1 2", 0.2)):
            points = client.get_metric_history(run, name)
            assert [(point.step, point.value) for point in points] == [(0, value), (1, value), (2, value)]


def wandb_records(content: bytes) -> Iterator[bytes]:
    """Records of a W&B file, which is a log of LevelDB: blocks of 32 KiB, records in parts with 7 bytes before each."""
    place, whole = 7, b""
    while place + 7 <= len(content):
        if (left := 32768 - place % 32768) < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        whole += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield whole
            whole = b""


class TestWeightsAndBiases:
    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("wandb")
        monkeypatch.setenv("WANDB_MODE", "offline")
        monkeypatch.setenv("WANDB_SILENT", "true")

    def points(self, folder: Path) -> dict[str, list[int]]:
        """Steps of each name, as the files of all sittings have them."""
        wandb: Any = importlib.import_module("wandb")
        records: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
        wandb.teardown()  # as at the end of a process: finished runs are written a moment later
        found: dict[str, list[int]] = {}
        for file in sorted((folder / "wandb").glob("offline-run-*/*.wandb")):
            for data in wandb_records(file.read_bytes()):
                record = records.Record()
                record.ParseFromString(data)
                if record.HasField("history"):
                    for item in record.history.item:
                        name = item.key or "/".join(item.nested_key)
                        if not name.startswith("_"):
                            found.setdefault(name, []).append(record.history.step.num)
        return found

    def test_both_sittings_are_one_run_and_give_no_step_twice(self, tmp_path: Path) -> None:
        run = tmp_path / "enc.run"
        log_steps("wandb", run, after=0, up_to=12, flushed_at=10, finished=False)
        first = json.loads((run / STATE_NAME).read_text())["wandb"]
        log_steps("wandb", run, after=7, up_to=20)
        assert first["step"] == 11, "the twelfth was perhaps not whole"
        last = json.loads((run / STATE_NAME).read_text())["wandb"]
        assert (last["id"], last["step"]) == (first["id"], 20)
        assert len(list((tmp_path / "wandb").glob(f"offline-run-*-{first['id']}"))) == 2
        points = self.points(tmp_path)
        assert points["loss"] == list(range(1, 21))
        assert points["development/acc@1"] == [0, 5, 10, 15, 20]

    def test_the_command_line_is_not_sent(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "argv", given := ["onoma", "distil", "--database", "postgresql://me:s3cret@host/db"])
        log_steps("wandb", tmp_path / "enc.run", after=0, up_to=3)
        assert self.points(tmp_path)["loss"] == [1, 2, 3]
        files = [file for file in (tmp_path / "wandb").rglob("*") if file.is_file()]
        assert any(file.suffix == ".wandb" for file in files)
        assert not [file for file in files if b"s3cret" in file.read_bytes()]
        assert sys.argv is given

    def test_an_evaluation_that_was_interrupted_is_given_when_it_is_done(self, tmp_path: Path) -> None:
        (tmp_path / "enc.run").mkdir()
        trackers = open_trackers(["wandb"], tmp_path / "enc.run", CONFIG)
        trackers.log({"loss": 1.0}, 1)
        trackers.flush()
        trackers.log({"loss": 0.5}, 2)
        trackers.close(finished=False)  # in the midst of the evaluation of the second step
        trackers = open_trackers(["wandb"], tmp_path / "enc.run", CONFIG, steps_done=1)
        trackers.log({"loss": 0.5}, 2)
        trackers.log({"development/acc@1": 0.25}, 2)
        trackers.close()
        assert self.points(tmp_path) == {"loss": [1, 2], "development/acc@1": [2]}

    def test_an_evaluation_that_a_checkpoint_was_written_without_has_its_point(self, tmp_path: Path) -> None:
        (tmp_path / "enc.run").mkdir()
        trackers = open_trackers(["wandb"], tmp_path / "enc.run", CONFIG)
        trackers.log({"loss": 1.0}, 1)
        trackers.flush()
        trackers.close(finished=False)  # asked to stop in the evaluation of the first step
        trackers = open_trackers(["wandb"], tmp_path / "enc.run", CONFIG, steps_done=1)
        trackers.log({"development/acc@1": 0.25}, 1)
        trackers.log({"loss": 0.5}, 2)
        trackers.close()
        assert self.points(tmp_path) == {"loss": [1, 2], "development/acc@1": [1]}
