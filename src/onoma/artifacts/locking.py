"""Files and folders that one process at a time works with, whichever container it lives in."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from onoma.errors import UnavailableError

if sys.platform != "win32":
    import fcntl


_MOMENT_S = 0.005
_WITHOUT_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def open_locked(path: Path) -> FileIO:
    """Open a file for reading and writing that no other process has opened in this way; it is made if missing.

    The lock goes when the file is closed, also by the end of the process.

    Raises:
        UnavailableError: the system is Windows, or the file system has no locks.
        BlockingIOError: another process has it.
        OSError: it cannot be opened; FileNotFoundError if its folder is missing, or was removed meanwhile.
    """
    check_system()
    while True:
        handle = FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held the lock until now may have renamed or removed the file.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle.fileno()), path.stat()):
                    return handle
        except BaseException as error:
            handle.close()
            if isinstance(error, OSError) and error.errno in _WITHOUT_LOCKS:
                raise UnavailableError(
                    f"{path.parent} is on a file system without locks ({error.strerror}), by which two runs see that "
                    "they would write the same. Mount it with locks (flock), or write to another place."
                ) from None
            raise
        handle.close()


@contextlib.contextmanager
def held(folder: Path, *, wait_s: float = 0.0) -> Iterator[None]:
    """Let others see, by `is_held`, that a process works in a folder, also where it is renamed meanwhile.

    Without effect where the file system has no locks of folders.

    Args:
        folder: That it works in.
        wait_s: How long to wait for another process that does, and for the folder that it puts in the place of this
            one; then, and where this is unset, both do.

    Raises:
        UnavailableError: the system is Windows.
    """
    check_system()
    descriptor = _open_in_turn(folder, time.monotonic() + wait_s)
    try:
        yield
    finally:
        os.close(descriptor)


def _open_in_turn(folder: Path, until: float) -> int:
    """A descriptor of the folder that is there once nobody else works in it, or it is late."""
    while True:
        is_late = time.monotonic() >= until
        with contextlib.ExitStack() as opened:
            if not is_late:
                opened.enter_context(contextlib.suppress(FileNotFoundError))  # another one is just replacing it
            descriptor = os.open(folder, os.O_RDONLY)
            opened.callback(os.close, descriptor)
            is_free = _is_locked(descriptor)
            if is_late or (is_free and os.path.samestat(os.fstat(descriptor), folder.stat())):
                opened.pop_all()
                return descriptor
        time.sleep(_MOMENT_S)


def _is_locked(descriptor: int) -> bool:
    """Whether there is nothing to wait for."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True


def is_held(folder: Path) -> bool:
    """Whether a process, this one or another, is inside a block of `held` for a folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:  # it is gone, or another user's, of which nobody else can tell
        return not isinstance(error, FileNotFoundError)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:  # of another kind: the file system has no such locks
        return isinstance(error, BlockingIOError)
    finally:
        os.close(descriptor)
    return False


def check_system() -> None:
    """Refuse Windows, before any work is done.

    Raises:
        UnavailableError: this is Windows.
    """
    if sys.platform == "win32":
        raise UnavailableError(
            "Onoma writes folders with locks that Windows does not have. On Windows, use it in WSL (wsl --install)."
        )
