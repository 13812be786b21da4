"""What unfinished writes left beside the place of an artefact or a file.

They are called ``.NAME.partial-PROCESS.MACHINE-…``: number and machine of the process that writes, and what tells its
writes apart. Containers of one machine have the same machine here, and see one another's locks; machines that share a
file system may not, so what another one left, or this one before it was started again, is removed once nothing in it
has changed for a day.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import glob
import hashlib
import itertools
import os
import platform
import shutil
import stat
import time
import uuid
import warnings
from pathlib import Path

from onoma.artifacts.locking import is_held

being_written: set[str] = set()
"""Names of what this process is writing."""
_LONGEST_NAME = 255
"""Bytes, on the file systems that there are."""
_ABANDONED_SECONDS = 24 * 3600
"""Without a change for so long what another machine was writing is left behind."""
_REPLACING_SECONDS = 60
"""The same of what it had moved aside, which takes an instant."""


def partial_name(target: Path, which: str | None = None) -> str:
    """What is written, or was moved away, is called beside ``target``; unset: as nothing else is."""
    return f".{target.name}.partial-{os.getpid()}.{_machine()}-{which or uuid.uuid4().hex[:8]}"


def ensure_short(target: Path) -> None:
    """Refuse a name beside which there is no room for that of what is written, before all the work is done.

    Raises:
        OSError: it is too long.
    """
    if len(os.fsencode(partial_name(target))) + len("-spent") > _LONGEST_NAME:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(target))


@functools.cache
def _machine() -> str:
    """Eight digits for this machine since it was started, the same in all its containers."""
    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:  # systems without /proc
        name = platform.node()
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def leftovers(path: str | Path) -> list[Path]:
    """Folders that unfinished writes to ``path`` left behind; the next write there removes them."""
    target = Path(path).resolve()
    put_back(target)
    return left_behind(target)


def left_behind(target: Path, *, untouched_for: float = _ABANDONED_SECONDS) -> list[Path]:
    """Partial folders and files of this target whose process is gone.

    Args:
        target: What was to be written.
        untouched_for: Seconds without a change after which that of another machine is.
    """
    found = []
    for leftover in sorted(target.parent.glob(f".{glob.escape(target.name)}.partial-*")):
        pid, _, machine = leftover.name.rsplit(".partial-", 1)[1].partition("-")[0].partition(".")
        if not pid.isdigit():
            continue
        if machine in {"", _machine()}:
            is_at_work = _is_at_work(leftover, int(pid))
        else:
            is_at_work = _has_changed_since(leftover, time.time() - untouched_for)
        if not is_at_work and not is_held(leftover):
            found.append(leftover)
    return found


def _is_at_work(leftover: Path, pid: int) -> bool:
    """Whether a process of this machine may still write it, by its number.

    In a container a new process may have the number of the one that left this behind, and a living one of another
    container has none here.
    """
    return leftover.name in being_written if pid == os.getpid() else is_alive(pid)


def _has_changed_since(place: Path, moment: float) -> bool:
    """Whether something in a folder, or a file, was written after that, or itself renamed."""
    inside = (Path(folder) / name for folder, folders, files in os.walk(place) for name in (*folders, *files))
    for entry in itertools.chain([place], inside):
        with contextlib.suppress(OSError):  # it is gone meanwhile
            if entry.lstat().st_ctime > moment:
                return True
    return False


def is_away(target: Path) -> bool:
    """Whether an overwrite has moved it away for an instant; what one that died had moved is put back."""
    moved = set(target.parent.glob(f".{glob.escape(target.name)}.partial-*-old"))
    if not moved:
        return False
    put_back(target)
    return target.exists() or not moved.issubset(left_behind(target, untouched_for=_REPLACING_SECONDS))


def put_back(target: Path) -> None:
    """Put back what an overwrite had moved away when its process died.

    Only if what was to take its place is still beside it: if not, that may have been here, and been moved since.
    """
    found = left_behind(target, untouched_for=_REPLACING_SECONDS)
    for leftover in found:
        beginning = leftover.name.removesuffix("old")
        is_alone = not any(
            other.name.startswith(beginning) and not other.name.endswith(("-old", "-spent")) for other in found
        )
        if leftover.name.endswith("-old") and not is_alone and not target.exists():
            leftover.rename(target)


def remove_leftovers(target: Path) -> None:
    """Remove them, but for what is put back, and for what may be the only one there is."""
    put_back(target)
    for leftover in left_behind(target):
        if leftover.name.endswith("-old") and not target.exists():
            continue
        remove_spent(leftover)


def remove_spent(folder: Path) -> None:
    """Remove a folder, or a file, that is needed no more; one that cannot be removed is warned of, as all else is done.

    Write-protected ones are removed too.
    """
    is_folder = folder.is_dir() and not folder.is_symlink()
    if is_folder:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            folder.unlink(missing_ok=True)
    if is_folder and folder.exists():
        with contextlib.suppress(OSError):
            folder.chmod(stat.S_IRWXU)
            for place, names, _ in os.walk(folder):  # the mode of each is changed before it is looked into
                for inner in (Path(place) / name for name in names):
                    if not inner.is_symlink():
                        inner.chmod(stat.S_IRWXU)
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        warnings.warn(f"{folder} is needed no more and could not be removed; remove it", stacklevel=2)


def is_alive(pid: int) -> bool:
    """Whether this machine or container has a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        about = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # systems without /proc
        return True
    # A zombie: it has ended, and its parent has not asked how.
    return not about.rpartition(")")[2].lstrip().startswith("Z")
