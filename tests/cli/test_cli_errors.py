"""What the command says, and the status it leaves with, where something stops it."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from rich.console import Console
from safetensors import SafetensorError

import onoma
from commands import invoke
from onoma import cli
from onoma.cli import app as commands
from onoma.cli import show
from onoma.cli.options import parse_assignments
from onoma.errors import ConfigError, InputError
from tiny import make_terminology


def _interrupted(error: Exception) -> Exception:
    """As where Ctrl-C comes while a native library is imported."""
    error.__cause__ = KeyboardInterrupt()
    return error


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
            OSError(errno.ENOSPC, "No space left on device", "base/tokenizer.json", None, "full/x"),  # as copies say it
            1,
            "no room left to write to (full/x: No space left on device). Make",
        ),
        (_interrupted(ImportError("initialization failed")), 130, "resume from what they have saved"),
        (
            OSError("No space left on device (os error 28)"),  # as Polars says it
            1,
            "no room left to write to (No space left on device (os error 28)). Make",
        ),
        (
            SafetensorError("No space left on device (os error 28)"),
            1,
            "(os error 28)). Make room if the disk is full, and",
        ),
        (
            pl.exceptions.ComputeError("failed to write:\nNo space left on device (os error 28)"),
            1,
            "no room left to write to (failed to write: No space left on device (os error 28)). Make",
        ),
        (
            pl.exceptions.ComputeError("underlying IO error:\nFile too large (os error 27)"),
            1,
            "no room left to write to (underlying IO error: File too large (os error 27)). Allow larger",
        ),
        (
            OSError(errno.EFBIG, "File too large", "out"),
            1,
            "no room left to write to (out: File too large). Allow larger files (ulimit -f), or",
        ),
        (
            OSError("81810 requested and 51168 written"),  # as NumPy says it
            1,
            "no room left to write to (81810 requested and 51168 written). Make",
        ),
        (
            OSError(errno.EMFILE, "Too many open files"),
            1,
            "cannot be read or written: Too many open files. Let more files",
        ),
        (MemoryError(), 1, "onoma: there is too little memory. End other programs, or let this one have more (ulimit"),
        (MemoryError("Unable to allocate\n9 GiB"), 1, "too little memory (Unable to allocate 9 GiB). End other"),
        (
            OSError(errno.ENOMEM, "Cannot allocate memory"),
            1,
            "memory ([Errno 12] Cannot allocate memory). End",
        ),
        (
            ImportError("a.so: failed to map segment from shared object"),
            1,
            "too little memory (a.so: failed to map segment from shared object). End",
        ),
        (InputError("no column 'a\x1b[2J\r'", path=Path("x.csv")), 1, "x.csv: no column 'a\ufffd[2J\ufffd'"),
        (InputError("no column 'a\u202eb\u2067c'", path=Path("x.csv")), 1, "x.csv: no column 'a\ufffdb\ufffdc'"),
        (SystemExit(130), 130, "resume from what they have saved"),
        (SystemExit(143), 143, "resume from what they have saved"),
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


def test_blanks_around_signs_are_part_of_a_setting() -> None:
    given = ["separator= / ", "delimiter=\t", " name = a b ", "steps= 100", "language=  "]
    assert parse_assignments(given) == {
        "separator": " / ",
        "delimiter": "\t",
        "name": "a b",
        "steps": "100",
        "language": "",
    }


def test_a_closed_standard_error_changes_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "app", lambda: sys.exit(143))
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit) as left:
        cli.main()
    sys.stderr.close()  # the one that it was given instead
    assert left.value.code == 143


@pytest.mark.parametrize(
    ("given", "option", "said"),
    [
        (["steps=1", " steps =2"], "--set", "--set steps is given twice"),
        ([" =1"], "--set", "--set takes KEY=VALUE; found ' =1'"),
        (["a"], "--prefix", "--prefix takes NAME=PREFIX; found 'a'"),
    ],
)
def test_what_is_no_list_of_settings_is_refused(given: list[str], option: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        parse_assignments(given, option)


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError(), ImportError("a.so: failed to map segment from shared object: Operation not permitted")],
)
def test_what_nobody_foresaw_keeps_its_trace(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(commands, "app", fail)
    with pytest.raises(type(error)):
        cli.main()


@pytest.mark.parametrize(
    ("environment", "closed", "said"),
    [({"PYTHONIOENCODING": "latin-1"}, "", "\\u03b2-thalassaemia"), ({}, " >&-", ""), ({}, " >&- 2>&-", "")],
)
def test_output_that_cannot_hold_all_or_is_closed(
    environment: dict[str, str], closed: str, said: str, tmp_path: Path
) -> None:
    make_terminology(tmp_path / "t", {"D1": ["β-thalassaemia"]})
    done = subprocess.run(
        f"{shlex.quote(sys.executable)} -m onoma terminology search {shlex.quote(str(tmp_path / 't'))} thal{closed}",
        shell=True,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_has_left_is_no_error_of_the_user(options: list[str], tmp_path: Path) -> None:
    make_terminology(tmp_path / "t", {"D1": ["thalassaemia"]})
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "onoma", "terminology", "search", str(tmp_path / "t"), "thal", *options]
    done = subprocess.run(command, check=False, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_json_can_be_read_whatever_the_output_is_written_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for encoding, letters in (("latin-1", "\\u03b2"), ("utf-8", "β")):
        with (tmp_path / encoding).open("w", encoding=encoding, errors="backslashreplace") as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            show.json_line({"a": "β 😀"})
            monkeypatch.undo()
        text = (tmp_path / encoding).read_text(encoding)
        assert json.loads(text) == {"a": "β 😀"}
        assert letters in text


@pytest.mark.parametrize(
    ("n_rejects", "kept_in", "last"),
    [
        (20, None, "x.csv, line 20: left out: no code"),
        (21, None, "and 1 line more"),
        (23, Path("out.csv"), "and 3 lines more, all in out.csv"),
    ],
)
def test_of_many_lines_that_were_left_out_the_first_are_told(
    n_rejects: int, kept_in: Path | None, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = range(1, n_rejects + 1)
    rejects = pl.DataFrame({"file": "x.csv", "line": numbers, "text": "", "reason": "no code"})
    show.left_out(rejects, kept_in=kept_in)
    told = [f"x.csv, line {number}: left out: no code" for number in numbers[:20]]
    assert capsys.readouterr().err.splitlines() == [*told[:19], *dict.fromkeys([told[19], last])]


def test_rate_and_time_left_are_of_what_was_done_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(show, "err", Console(stderr=True, highlight=False, soft_wrap=True, force_terminal=False))
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    with show.progress_bar("encoding", "names", linking="mentions") as update:
        for clock.now, done in ((31.0, 8_000), (62.0, 8_031), (100.0, 8_690), (131.0, 9_000)):
            update(done, 10_000)
        for clock.now, done in ((165.0, 100), (200.0, 170)):
            update(done, 10_000, "comparing")
        for clock.now, done in ((235.0, 0), (270.0, 70)):
            update(done, 700, "linking")
    assert capsys.readouterr().err.splitlines() == [
        "encoding  8,000 of 10,000 names",
        "encoding  8,031 of 10,000 names  1 names/s  32 min 49 s left",
        "encoding  8,690 of 10,000 names  10 names/s  2 min 11 s left",
        "encoding  9,000 of 10,000 names  10 names/s  1 min 40 s left",
        "comparing  100 of 10,000 names",
        "comparing  170 of 10,000 names  2 names/s",
        "linking  0 of 700 mentions",
        "linking  70 of 700 mentions  2 mentions/s  5 min 15 s left",
    ]


def test_a_log_is_no_screen_whatever_asks_for_colours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(show, "err", Console(stderr=True, highlight=False, soft_wrap=True, force_terminal=True))
    with show.progress_bar("encoding", "names") as update:
        for done in range(100):
            update(done, 100)
    assert capsys.readouterr().err == ""


_INTERRUPTED_AT_ONCE = """
import sys
from onoma.cli import main
class Interrupting:
    def find_spec(self, name, *_):
        if name == "onoma.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
main()
"""


def test_ctrl_c_while_the_command_line_is_being_imported_is_told_in_words() -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED_AT_ONCE], check=False, capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr.startswith("\nonoma: stopped.")
    assert "Traceback" not in done.stderr


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "onoma", "--version"], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == f"onoma {onoma.__version__}"


def test_an_unknown_task_is_refused_before_an_encoder_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no benchmark 'nothing'"):
        invoke("benchmark", "run", "nothing", "--data", tmp_path, "-e", tmp_path / "none", "-o", tmp_path / "out")


def test_nothing_that_is_shown_is_obeyed_by_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    text = "codes of no concept: a\x1b]0;b\x07 \u202ec\nsecond line [bold]"
    show.remark(text)
    show.result(text, as_json=False)
    show.out.print(text, style="bold")
    written = capsys.readouterr()
    shown = "codes of no concept: a\ufffd]0;b\ufffd \ufffdc\nsecond line [bold]\n"
    assert (written.err, written.out) == (shown, shown * 2)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (10, "10 s"),
        (59.4, "59 s"),
        (75, "1 min 15 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 0 min"),
        (7199, "2 h 0 min"),
        (100 * 3600 + 61, "100 h 1 min"),
    ],
)
def test_how_long_something_takes_in_words(seconds: float, words: str) -> None:
    assert show.duration(seconds) == words
