"""Files that one process at a time works with."""

from __future__ import annotations

import contextlib
import fcntl
import os
from io import FileIO
from pathlib import Path


def open_locked(path: Path) -> FileIO:
    """Open a file for reading and writing that no other process has opened in this way; it is made if missing.

    The lock goes when the file is closed, also by the end of the process.

    Raises:
        BlockingIOError: another process has it.
        OSError: it cannot be opened; FileNotFoundError if its folder is missing, or was removed meanwhile.
    """
    while True:
        handle = FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held the lock until now may have renamed or removed the file.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle.fileno()), path.stat()):
                    return handle
        except BaseException:
            handle.close()
            raise
        handle.close()
