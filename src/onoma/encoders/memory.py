"""Memory that a forward pass gives back and the next one takes again."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # malloc.h


def keep_freed_memory() -> bool:
    """Ask the C library to keep what is freed, for this process; False where it is not glibc, which is left alone.

    By default glibc returns the hundreds of megabytes that a pass frees to the system at once, and the next pass waits
    while the system clears every page of them anew. The process stays as large as its largest pass, until
    `return_freed_memory`; the setting itself stays for good.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # macOS; musl; Windows
        return False
    return bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, 2**31 - 1))


def return_freed_memory() -> bool:
    """Give what was kept back to the system once; False where there is nothing to give or it is not glibc."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return False
    return bool(trim(0))
