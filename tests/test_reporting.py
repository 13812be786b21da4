"""Nothing is reported by the libraries that would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnxruntime
import pytest

import onoma.reporting
from onoma.encoders import open_encoder
from onoma.encoders.loading import load_packed
from onoma.encoders.saving import save_encoder
from tiny import tiny_encoder

ENCODE = """
import sys
import onoma
encoder = onoma.open_encoder(sys.argv[1], backend="onnx")
print(type(encoder).__name__, encoder.encode(["heart disease"]).shape)
"""


@pytest.fixture
def outside(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with an empty home, who is no tester: libraries report nothing of those."""
    kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("ORT_")}
    unset = [*onoma.reporting.UNREPORTED, "DO_NOT_TRACK", "XDG_CACHE_HOME", "PYTEST_CURRENT_TEST"]
    return {**{name: value for name, value in kept.items() if name not in unset}, "HOME": str(tmp_path / "home")}


def test_onnx_runtime_keeps_no_record_of_who_uses_it(tmp_path: Path, outside: dict[str, str]) -> None:
    save_encoder(load_packed(tiny_encoder(tmp_path / "base")), tmp_path / "encoder")
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ENCODE, str(tmp_path / "encoder")],
        env=outside,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("OnnxEncoder (1, ")
    # Where it reports (from 1.29 on), it gives the machine a name and keeps what it could not send yet.
    assert [path for path in (tmp_path / "home").rglob("*") if "microsoft" in str(path).lower()] == []


@pytest.mark.parametrize(("wanted", "times"), [("1", 1), ("0", 0)])
def test_onnx_runtime_that_was_imported_before_is_silenced(
    wanted: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_encoder(load_packed(tiny_encoder(tmp_path / "base")), tmp_path / "encoder")
    silenced: list[bool] = []
    monkeypatch.setattr(onnxruntime, "disable_telemetry_events", lambda: silenced.append(True))
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", wanted)
    open_encoder(tmp_path / "encoder", backend="onnx")
    assert len(silenced) == times


def test_who_wants_to_report_may(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in onoma.reporting.UNREPORTED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    onoma.reporting.report_nothing()
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "0"
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
