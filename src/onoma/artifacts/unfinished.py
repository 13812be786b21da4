"""What unfinished writes left beside the place of an artefact."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import stat
import warnings
from pathlib import Path

from onoma.artifacts.locking import is_held

being_written: set[str] = set()
"""Partial folders of this process."""


def leftovers(path: str | Path) -> list[Path]:
    """Folders that unfinished writes to ``path`` left behind; the next write there removes them."""
    target = Path(path).resolve()
    put_back(target)
    return _leftovers(target)


def _leftovers(target: Path) -> list[Path]:
    """Partial folders of this target whose process is gone."""
    found = []
    for leftover in sorted(target.parent.glob(f".{glob.escape(target.name)}.partial-*")):
        pid = leftover.name.rsplit(".partial-", 1)[1].partition("-")[0]
        # In a container a new process may have the number of the one that left this behind, and a living one of another
        # container has none here.
        alive = leftover.name in being_written if pid == str(os.getpid()) else pid.isdigit() and is_alive(int(pid))
        if not alive and not is_held(leftover):
            found.append(leftover)
    return found


def is_moved_aside(target: Path) -> bool:
    """Whether an overwrite, which may be at work or have died, has moved it away."""
    return any(target.parent.glob(f".{glob.escape(target.name)}.partial-*-old"))


def put_back(target: Path) -> None:
    """Put back what an overwrite had moved away when its process died.

    Only if what was to take its place is still beside it: if not, that may have been here, and been moved since.
    """
    found = _leftovers(target)
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
    for leftover in _leftovers(target):
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
