"""One process at a time has a locked file, also where the file is removed as it is opened."""

from __future__ import annotations

import errno
import fcntl
import threading
import time
from pathlib import Path

import pytest

from onoma.artifacts import ensure_file_writable, ensure_writable, write_file
from onoma.artifacts.locking import held, is_held, open_locked
from onoma.errors import UnavailableError
from onoma.mapping.work_folder import WorkFolder
from onoma.terminology import fetch


def test_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with open_locked(path) as handle:
        handle.write(b"mine")
        with pytest.raises(BlockingIOError):
            open_locked(path)
    with open_locked(path) as handle:
        assert handle.read() == b"mine"


@pytest.mark.parametrize("made_anew", [False, True])
def test_a_file_that_was_removed_before_it_was_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_anew: bool
) -> None:
    path = tmp_path / "lock"
    flock, calls = fcntl.flock, list[int]()

    def remove_first(handle: int, how: int) -> None:
        if not calls:
            path.unlink()
            if made_anew:
                path.touch()
        calls.append(how)
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with open_locked(path):
        assert len(calls) == 2
        with pytest.raises(BlockingIOError):
            open_locked(path)


def test_its_folder_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_locked(tmp_path / "none" / "lock")


def test_windows_is_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(UnavailableError, match="use it in WSL"):
        open_locked(tmp_path / "lock")
    with pytest.raises(UnavailableError, match="use it in WSL"), held(tmp_path):
        pass
    with pytest.raises(UnavailableError, match="use it in WSL"):
        ensure_writable(tmp_path / "linker", "linker")
    with pytest.raises(UnavailableError, match="use it in WSL"):
        ensure_file_writable(tmp_path / "x.csv")
    with pytest.raises(UnavailableError, match="use it in WSL"), WorkFolder(tmp_path / ".x.csv.map").locked():
        pass
    with pytest.raises(UnavailableError, match="use it in WSL"), write_file(tmp_path / "new" / "x.csv"):
        pass
    with pytest.raises(UnavailableError, match="use it in WSL"):
        fetch("mondo", tmp_path / "new" / "mondo")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(UnavailableError, match=rf"{tmp_path} is on a file system without locks \(no locks here\)"):
        open_locked(tmp_path / "lock")
    with held(tmp_path):  # what can do without goes on
        pass
    with write_file(tmp_path / "x", overwrite=True) as aside:
        aside.write_text("later")
        with write_file(tmp_path / "x") as other:  # of another thread
            other.write_text("earlier")
    assert (tmp_path / "x").read_text() == "later"


def test_who_waits_for_a_folder_has_it_next(tmp_path: Path) -> None:
    done: list[str] = []

    def second() -> None:
        with held(tmp_path, wait_s=30):
            done.append("second")

    with held(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.1)
        done.append("first")
    thread.join()
    assert done == ["first", "second"]


def test_who_has_waited_holds_the_folder_that_is_there_then(tmp_path: Path) -> None:
    """And not the one that was there, which nobody else will wait for."""
    folder, found = tmp_path / "x", list[bool]()
    folder.mkdir()

    def second() -> None:
        with held(folder, wait_s=30):
            found.append(is_held(folder))

    with held(folder):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.1)
        folder.rename(tmp_path / "old")
        time.sleep(0.05)
        folder.mkdir()
    thread.join()
    assert found == [True]


def test_who_has_waited_long_enough_goes_on(tmp_path: Path) -> None:
    with held(tmp_path), held(tmp_path, wait_s=0.05):
        assert is_held(tmp_path)
