"""Errors of the system, told apart from those of files."""

from __future__ import annotations

import errno

_OF_SYSTEM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE)


def is_of_system(error: BaseException) -> bool:
    """Whether an error says that the system did not let a file be read, which tells nothing of what is in the file."""
    return isinstance(error, OSError) and error.errno in _OF_SYSTEM
