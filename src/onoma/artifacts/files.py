"""Single files: written aside and renamed into place, checksums."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from onoma.artifacts.locking import check_system, held
from onoma.artifacts.system import is_mounted, naming_what_is_written
from onoma.artifacts.unfinished import being_written, left_behind, partial_name
from onoma.errors import ArtifactExistsError, checked_path

_BLOCK_BYTES = 1 << 12
_SAMPLED_BLOCKS = 64


def sha256_file(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def ensure_free(target: Path, *, overwrite: bool) -> None:
    """Refuse to write a single file where something lies that may not be replaced.

    Raises:
        ArtifactExistsError: ``target`` is a folder, a pipe or a device, or a file and ``overwrite`` is not set.
    """
    if target.is_dir():
        raise ArtifactExistsError(f"{target} is a folder; it will not be replaced. Choose another name.")
    if target.exists() and not target.is_file():
        raise ArtifactExistsError(f"{target} is no regular file; one is needed here. Choose another name.")
    if is_mounted(target):
        raise ArtifactExistsError(f"{target} is mounted, so that no file can take its place. Choose another name.")
    if target.exists() and not overwrite:
        raise ArtifactExistsError(
            f"{target} exists already. Choose another name, or allow overwriting (--force, overwrite=True)."
        )


def is_same(path: Path, other: Path) -> bool:
    """Whether both are there and one and the same, links followed: what is written to one is written over the other."""
    return path.exists() and other.exists() and path.samefile(other)


def holds(folder: Path, other: Path) -> bool:
    """Whether the other is the folder or lies in it, links followed: where the folder is replaced, it is lost.

    One folder may have names that differ in case, or several places.
    """
    place = checked_path(other).resolve()
    if place.is_relative_to(folder.resolve()):
        return True
    with contextlib.suppress(OSError):  # the folder is not there
        about = folder.stat()
        return any(_is(around, about) for around in (place, *place.parents))
    return False


def _is(path: Path, about: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), about)
    except OSError:  # it is not there, or none of ours
        return False


def copy_files(names: Iterable[str], source: Path, target: Path) -> None:
    """Copy files of a folder by their names, those in folders within it too; whatever else lies there stays behind."""
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)


def sha256_of_sample(path: Path) -> str:
    """SHA-256 of 64 blocks of 4 KiB, spread evenly over a file of at least that size; it reads nothing else."""
    size = path.stat().st_size
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as handle:
        for number in range(_SAMPLED_BLOCKS):
            handle.seek((size - _BLOCK_BYTES) * number // (_SAMPLED_BLOCKS - 1))
            digest.update(handle.read(_BLOCK_BYTES))
    return digest.hexdigest()


@contextlib.contextmanager
def write_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary file to write; on leaving the block it becomes the file at ``path``.

    What a process left behind that was killed as it wrote to ``path`` is removed.

    Args:
        path: Where the file shall lie. Its folder is made if missing.
        overwrite: Replace a file that lies there.

    Yields:
        The file to write, empty. If the block raises, it is removed and ``path`` stays as it was.

    Raises:
        ArtifactExistsError: ``path`` is taken.
        InputError: it is no path, or a link that leads back to itself.
        OSError: it cannot be written, as where the disk is full.
    """
    check_system()
    given = checked_path(path)
    ensure_free(given, overwrite=overwrite)
    target = given.resolve()  # what a link points to is replaced, not the link
    target.parent.mkdir(parents=True, exist_ok=True)
    for leftover in left_behind(target):
        if leftover.is_file():
            leftover.unlink(missing_ok=True)
    aside = target.with_name(partial_name(target))
    being_written.add(aside.name)
    try:
        aside.touch(exist_ok=False)
        with naming_what_is_written(path), held(aside):
            yield aside
            fsync(aside)
            publish(aside, target, overwrite=overwrite)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    finally:
        being_written.discard(aside.name)


def publish(aside: Path, target: Path, *, overwrite: bool) -> None:
    """Rename a file into place; one that another process wrote there meanwhile is not replaced unasked.

    Raises:
        ArtifactExistsError: there is one, and ``overwrite`` is not set.
    """
    if not overwrite:
        try:
            os.link(aside, target)
        except OSError:  # something is there, or the file system has no links
            if not is_same(aside, target):  # over a network a link may be made, and its answer lost
                ensure_free(target, overwrite=False)
                aside.replace(target)
                return
        aside.unlink()
        return
    if target.exists():
        take_over_access(target, aside)
    aside.replace(target)


def take_over_access(before: Path, after: Path) -> None:
    """Give a file, or a folder with all in it, to whom the one that it replaces was given, as far as one may.

    Its group and mode, that is, but that its owner may write; what is in a folder may be read by whoever may read the
    folder. Files with several names are left as they are: they are files of the old folder too.
    """
    about = before.stat()
    for entry in (after, *after.rglob("*")) if after.is_dir() else (after,):
        if entry.is_symlink():  # what it leads to is nobody's business here
            continue
        now = entry.stat()
        if entry.is_file() and now.st_nlink > 1:
            continue
        mode = stat.S_IMODE(about.st_mode) | stat.S_IRUSR | stat.S_IWUSR
        if before.is_dir() and entry.is_file():
            mode &= 0o666
        mode = mode | stat.S_IXUSR if entry.is_dir() else mode & 0o777
        if now.st_gid != about.st_gid:
            try:
                os.chown(entry, -1, about.st_gid)
            except OSError:  # what its group may do is not for another one
                mode &= ~(stat.S_IRWXG | stat.S_ISGID)
        with contextlib.suppress(OSError):  # of a file system without modes
            if stat.S_IMODE(entry.stat().st_mode) != mode:
                entry.chmod(mode)


def write_text_atomically(path: Path, text: str) -> None:
    """Write a small text file so that a reader sees the old content or the new, never a part."""
    with write_file(path, overwrite=True) as aside:
        aside.write_text(text, encoding="utf-8")


def fsync(path: Path) -> None:
    """Make what was written to a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_names(folder: Path) -> None:
    """Make it durable which files a folder has, where the file system can: what was renamed in it is done already."""
    with contextlib.suppress(OSError):  # some network drives refuse it
        fsync(folder)
