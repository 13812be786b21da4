"""What the command says, and the status it leaves with, where something stops it."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest
from safetensors import SafetensorError

import onoma
from onoma import cli
from onoma.cli import app as commands
from onoma.errors import ConfigError


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ConfigError("give either a or b."), 1, "onoma: give either a or b.\n"),
        (
            FileNotFoundError(errno.ENOENT, "No such file", "x.txt"),
            1,
            "onoma: x.txt cannot be read or written: No such",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            1,
            "no room left to write to (No space left on device). Make",
        ),
        (
            OSError("No space left on device (os error 28)"),  # as Polars says it
            1,
            "no room left to write to (No space left on device (os error 28)). Make",
        ),
        (
            SafetensorError("No space left on device (os error 28)"),
            1,
            "(os error 28). Make room if the disk is full, and",
        ),
        (SystemExit(130), 130, "go on from what they have saved"),
        (SystemExit(143), 143, "go on from what they have saved"),
        (SystemExit(2), 2, ""),
    ],
)
def test_one_sentence_and_a_status(
    error: BaseException,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(commands, "app", fail)
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == status
    told = capsys.readouterr().err
    assert said in told
    assert len(told.strip().split("\n")) == 1


def test_what_nobody_foresaw_keeps_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(commands, "app", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "onoma", "--version"], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == f"onoma {onoma.__version__}"
