"""Artefact folders, written aside and renamed into place."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onoma._version import __version__
from onoma.artifacts.files import ensure_free, fsync, fsync_names, holds, take_over_access, write_text_atomically
from onoma.artifacts.locking import check_system, held
from onoma.artifacts.manifest import MANIFEST_NAME, FileEntry, Manifest, Parent, read_manifest
from onoma.artifacts.system import is_mounted, naming_what_is_written
from onoma.artifacts.unfinished import being_written, ensure_short, partial_name, remove_leftovers, remove_spent
from onoma.errors import (
    ArtifactExistsError,
    ConfigError,
    DamagedArtifactError,
    FormatVersionError,
    InputError,
    NotAnArtifactError,
    UnavailableError,
    checked_path,
)

_TURN_S = 2.0
"""How long to wait for another process that is just replacing the same folder, which takes an instant."""


@contextlib.contextmanager
def write_artifact(
    path: str | Path,
    kind: str,
    *,
    format_version: int = 1,
    config: Mapping[str, Any] | None = None,
    parents: Sequence[Parent] = (),
    seed: int | None = None,
    overwrite: bool = False,
    on_replaced: Callable[[Path], None] | None = None,
) -> Iterator[Path]:
    """Give a temporary folder to fill; on leaving the block it becomes the artefact at ``path``.

    Args:
        path: Where the artefact shall lie. Its parent folder is made if missing.
        kind: What it is, e.g. ``"terminology"``.
        format_version: Of the folder's layout; readers refuse a newer one.
        config: Settings that made it, JSON-serialisable.
        parents: What it was made from.
        seed: Of every random choice made.
        overwrite: Replace an artefact of the same kind. Anything else at ``path`` is never touched.
        on_replaced: Called with the folder that was at ``path``, once it is moved away; if it raises, that is put back.

    Yields:
        The folder to write into. If the block raises, the folder is removed and ``path`` stays as it was.

    Raises:
        ArtifactExistsError: ``path`` holds something that may not be replaced.
        ConfigError: see `ensure_writable`.
        OSError: it cannot be written, as where the disk is full.
        UnavailableError: what is there is in use, and the file system renames no such folder; or this is Windows.
    """
    ensure_named(checked_path(path), "folder")
    target = checked_path(path).resolve()
    with (
        naming_what_is_written(path),
        replacing(target, kind, overwrite=overwrite, on_replaced=on_replaced) as aside,
    ):
        yield aside
        manifest = Manifest(
            kind=kind,
            format_version=format_version,
            onoma_version=__version__,
            created=now(),
            files=finish_files(aside),
            parents=tuple(parents),
            config=dict(config or {}),
            seed=seed,
        )
        write_text_atomically(aside / MANIFEST_NAME, manifest.as_text())


def ensure_writable(path: str | Path, kind: str, *, overwrite: bool = False) -> None:
    """Refuse early to write where something lies that may not be replaced.

    Raises:
        ArtifactExistsError: ``path`` is taken, and ``overwrite`` is not set or it holds something of another kind;
            this process stands in it; or it lies in an artefact.
        ConfigError: its name is a dash, or not UTF-8, which not all that writes there can do; or ``overwrite`` is not a
            bool.
        InputError: it would lie in a file.
        OSError: its name is too long.
        UnavailableError: the system is Windows.
    """
    if overwrite not in (True, False):  # a text such as "no" would be true
        raise ConfigError(f"overwrite is True or False; found {overwrite!r}.")
    target = checked_path(path)
    ensure_named(target, "folder")
    check_system()
    ensure_outside(target)
    _ensure_utf8(target)
    ensure_short(target)
    above = next((place for place in target.absolute().parents if place.exists()), None)
    if above is not None and not above.is_dir():
        raise InputError(f"this is a file, and {target} would lie in it", path=above, fix="choose another place")
    if _stands_in(target):
        raise ArtifactExistsError(
            f"{target} is the folder that this command runs in, or one above it, and a folder is replaced as a whole. "
            "Name another one, or run the command elsewhere."
        )
    if is_mounted(target):
        raise ArtifactExistsError(
            f"{target} is where a file system is mounted, and a folder is replaced as a whole. Name a folder inside it."
        )
    with contextlib.suppress(FileNotFoundError):  # another process is just replacing it
        _ensure_replaceable(target, kind, overwrite=overwrite)
        return
    _ensure_replaceable(target, kind, overwrite=overwrite)


def _ensure_replaceable(target: Path, kind: str, *, overwrite: bool) -> None:
    """Refuse a place where something lies that may not be replaced."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not overwrite:
        raise ArtifactExistsError(
            f"{target} exists already. Choose another place, or allow overwriting (--force, overwrite=True)."
        )
    try:
        manifest = read_manifest(target)
    except DamagedArtifactError:
        raise ArtifactExistsError(
            f"{target} has a damaged {MANIFEST_NAME}, so what it is cannot be told; it will not be replaced. "
            "Remove it first."
        ) from None
    except (NotAnArtifactError, FormatVersionError):
        raise ArtifactExistsError(
            f"{target} is not a folder that Onoma wrote; it will not be replaced. Choose another place."
        ) from None
    if manifest.kind != kind:
        raise ArtifactExistsError(
            f"{target} is of kind {manifest.kind}, not {kind}; it will not be replaced. Choose another place."
        )
    own = {*manifest.files, MANIFEST_NAME}
    foreign = [file for file in target.rglob("*") if file.is_file() and file.relative_to(target).as_posix() not in own]
    if foreign:
        if read_manifest(target) != manifest:  # another process has just replaced it
            _ensure_replaceable(target, kind, overwrite=overwrite)
            return
        raise ArtifactExistsError(
            f"{target} holds a file that Onoma did not write ({foreign[0].relative_to(target)}); "
            "it will not be replaced. Move that file away first."
        )


def ensure_file_writable(path: str | Path, *, overwrite: bool = False) -> None:
    """Refuse early to write a single file where something lies that may not be replaced, or where none can be written.

    Raises:
        ArtifactExistsError: ``path`` is a folder, or a file and ``overwrite`` is not set; or it lies in an artefact.
        ConfigError: its name is a dash, or not UTF-8, which not all that writes there can do.
        OSError: nothing can be written there.
        UnavailableError: the system is Windows.
    """
    target = checked_path(path)
    ensure_named(target, "file")
    check_system()
    ensure_outside(target)
    _ensure_utf8(target)
    ensure_short(target)
    ensure_free(target, overwrite=overwrite)
    place = next(folder for folder in target.absolute().parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None


def ensure_plain_name(path: str | Path) -> None:
    """Refuse to write plain text to a file whose name says that it is compressed.

    Raises:
        ConfigError: it ends so.
    """
    suffix = Path(path).suffix.lower()
    if suffix in {".gz", ".zip"}:
        raise ConfigError(f"plain text is written here: give a file name without {suffix}; found {path}.")


def ensure_outside(target: Path) -> None:
    """Refuse a place in an artefact, which would then hold what its manifest does not know, or something else."""
    around = next((folder for folder in target.resolve().parents if (folder / MANIFEST_NAME).is_file()), None)
    if around is not None:
        raise ArtifactExistsError(
            f"{target} lies in {around}, a folder that Onoma wrote and replaces as a whole. Choose another place."
        )


def ensure_named(target: Path, what: str) -> None:
    """Refuse a dash, by which other commands mean standard output, and what would lie in a folder of that name."""
    if target.parts[:1] == ("-",):
        raise ConfigError(f"a {what} is written here, not standard output: give its name; found {target}.")


def _ensure_utf8(target: Path) -> None:
    try:
        str(target.absolute()).encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"{os.fsencode(target)!r} is no name in UTF-8, and not all can write there. Choose another."
        ) from None


def _stands_in(target: Path) -> bool:
    """Whether a folder is that in which this process works, or one above it."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed
        return False
    return holds(target, here)


@contextlib.contextmanager
def replacing(
    target: Path,
    kind: str,
    *,
    overwrite: bool,
    check: Callable[[Path], None] | None = None,
    on_replaced: Callable[[Path], None] | None = None,
) -> Iterator[Path]:
    """An empty folder beside ``target`` that takes its place on leaving the block.

    Args:
        target: The place.
        kind: What may be there.
        overwrite: Whether something may be there.
        check: Of what must be there in the moment of replacing: raises if it is something else. Where two processes
            are about to replace one folder, it is called when the first one has.
        on_replaced: Called with what was there, moved aside; it is put back if this raises.
    """
    remove_leftovers(target)
    ensure_writable(target, kind, overwrite=overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.parent / partial_name(target)
    aside.mkdir()
    being_written.add(aside.name)
    old = target.parent / partial_name(target, "old")
    being_written.add(old.name)
    try:
        with held(aside):
            yield aside
            if check is not None or target.exists() or not _took_free_place(aside, target, kind, overwrite):
                with held(target, wait_s=_TURN_S):
                    ensure_writable(target, kind, overwrite=overwrite)
                    if check is not None:
                        check(target)
                    take_over_access(target, aside)
                    _move_aside(target, old)
                    if check is not None:  # of a file system without locks
                        check(old)
                    if on_replaced is not None:
                        on_replaced(old)
                    aside.rename(target)
                    spent = old.with_name(f"{aside.name}-spent")
                    old.rename(spent)
                    remove_spent(spent)
        fsync_names(target.parent)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(aside, ignore_errors=True)
        raise
    finally:
        being_written.difference_update((aside.name, old.name))


def _took_free_place(aside: Path, target: Path, kind: str, overwrite: bool) -> bool:
    """Rename a folder to where nothing lies, unless another process was faster by an instant."""
    try:
        ensure_writable(target, kind, overwrite=overwrite)
        aside.rename(target)
    except OSError:
        if not target.exists():
            raise
        return False
    return True


def _move_aside(target: Path, old: Path) -> None:
    try:
        target.rename(old)
    except PermissionError as error:
        raise UnavailableError(
            f"{target} cannot be replaced ({error.strerror}); it is as it was. It may be another user's; or it is in "
            "use, by this process or another, on a file system that renames no folder with open files, as Windows' "
            "drives in WSL. Write to another place; in WSL keep folders in Linux's own file system (~)."
        ) from None


def finish_files(aside: Path) -> dict[str, FileEntry]:
    """Make what was written durable and readable for whoever may read the folder; sizes and checksums by name."""
    files = {}
    readable_by = aside.stat().st_mode & 0o666
    for file in sorted(p for p in aside.rglob("*") if p.is_file()):
        if stat.S_IMODE(file.stat().st_mode) != readable_by:  # some libraries let only their owner read
            file.chmod(readable_by)
        fsync(file)
        files[file.relative_to(aside).as_posix()] = FileEntry.of(file)
    return files


def now() -> str:
    """The time, as manifests have it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
