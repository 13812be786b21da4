"""Errors of the system, told apart from those of files."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from onoma.errors import OnomaError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OF_SYSTEM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE)
_OF_POLARS = re.compile(r"\(os error (\d+)\)")
_OF_NUMPY = re.compile(r"\d+ requested and \d+ written")


def error_number(error: BaseException) -> int | None:
    """The system's number of an error, if it has one; Polars and safetensors have it in their words alone, NumPy none.

    Example:
        >>> error_number(OSError("No space left on device (os error 28)"))
        28
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    if (found := _OF_POLARS.search(str(error))) is not None:
        return int(found[1])
    return errno.ENOSPC if isinstance(error, OSError) and _OF_NUMPY.search(str(error)) is not None else None


def is_of_system(error: BaseException) -> bool:
    """Whether an error says that the system did not let a file be read, which tells nothing of what is in the file."""
    return error_number(error) in _OF_SYSTEM


@contextlib.contextmanager
def naming_what_is_written(target: str | Path) -> Iterator[None]:
    """Have the error of a full disk, or of a limit to files, name what was being written: few that write do so.

    Raises:
        OSError: there was no room.
    """
    try:
        yield
    except OnomaError:
        raise
    except Exception as error:
        number = error_number(error)
        if number not in NO_ROOM or (isinstance(error, OSError) and error.filename is not None):
            raise
        raise OSError(number, os.strerror(number), str(target)) from error


def is_mounted(place: Path, *, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Whether a folder or file is where something is mounted, so that nothing can be renamed there.

    Args:
        place: The folder or file.
        mounts: The list of mounts of Linux. Devices would not do: a file and its folder may be of two where a file
            system lies over others, as in containers, and parts of one file system are of one.
    """
    if not place.exists():
        return False
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # no Linux
        return place.is_dir() and os.path.ismount(place)
    # Blanks and line ends stand there as octal numbers.
    points = (re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), line.split(" ")[4]) for line in lines)
    return str(place.resolve()) in points
