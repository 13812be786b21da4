"""Artefact folders: written aside, checked, renamed into place; opened only when whole.

Every step of Onoma writes a folder that the next one opens. Such a folder carries ``onoma.json``, its
manifest: what kind of thing it is, the version of its format, the size and SHA-256 of every file, what it
was made from (parents, by fingerprint), with which settings and seed.

The manifest is the last file written before the folder is renamed into place, so a process killed at any
moment leaves either the old folder or the new one; what it was working on lies in a hidden
``.NAME.partial-…`` that nothing opens and the next write to the same place removes. (A folder that is being
replaced is moved aside first; if the process dies just then, the next look at the place puts it back.)
"""

from __future__ import annotations

import contextlib
import datetime
import glob
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from onoma._version import __version__
from onoma.errors import (
    ArtifactExistsError,
    DamagedArtifactError,
    FormatVersionError,
    InputError,
    NotAnArtifactError,
)

MANIFEST_NAME = "onoma.json"
_ALWAYS_VERIFIED_BYTES = 1 << 20
"""Files up to this size are checksummed at every open; larger ones by size, and in full by `verify_artifact`."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(_Record):
    """One file of an artefact."""

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Parent(_Record):
    """An artefact that another one was made from."""

    kind: str
    fingerprint: str


class Manifest(_Record):
    """What an artefact folder says about itself (file ``onoma.json``)."""

    kind: str
    format_version: int = Field(ge=1)
    onoma_version: str
    created: str
    files: dict[str, FileEntry]
    parents: tuple[Parent, ...] = ()
    config: dict[str, Any] = {}
    seed: int | None = None

    @property
    def fingerprint(self) -> str:
        """SHA-256 over kind, format and the checksums of all files: equal content, equal fingerprint."""
        digest = hashlib.sha256(f"{self.kind}/{self.format_version}".encode())
        for name in sorted(self.files):
            digest.update(f"\n{name} {self.files[name].sha256}".encode())
        return digest.hexdigest()

    def as_parent(self) -> Parent:
        """This artefact as an entry in the ``parents`` of another."""
        return Parent(kind=self.kind, fingerprint=self.fingerprint)


def sha256_file(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


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

    Yields:
        The folder to write into. If the block raises, the folder is removed and ``path`` stays as it was.

    Raises:
        ArtifactExistsError: ``path`` holds something that may not be replaced.
    """
    with _replacing(Path(path).resolve(), kind, overwrite=overwrite) as aside:
        yield aside
        manifest = Manifest(
            kind=kind,
            format_version=format_version,
            onoma_version=__version__,
            created=_now(),
            files=_finish_files(aside),
            parents=tuple(parents),
            config=dict(config or {}),
            seed=seed,
        )
        write_text_atomically(aside / MANIFEST_NAME, manifest.model_dump_json(indent=1))


@contextlib.contextmanager
def amend_artifact(
    path: str | Path,
    kind: str,
    *,
    format_version: int = 1,
    config: Mapping[str, Any] | None = None,
    dropping: Sequence[str] = (),
) -> Iterator[Path]:
    """Give an empty folder for what changes in an artefact; on leaving the block it and all else becomes the artefact.

    What does not change is neither read nor copied: the new folder has hard links to it (copies where the file
    system knows none). Whoever has the old files open, or mapped, keeps them as they were. Killed at any moment
    this leaves the old folder or the new one, as `write_artifact` does.

    Args:
        path: The artefact.
        kind: What it must be.
        format_version: Of the folder as it will be.
        config: Settings that are added, or replaced, in the manifest.
        dropping: Beginnings of names ("reranker/") of files that shall not stay.

    Yields:
        The folder to write into. A file written there takes the place of the one of the same name.

    Raises:
        InputError: there is nothing at ``path``.
        ArtifactError: it is not a whole artefact of this kind, or has changed meanwhile.
    """
    target = Path(path).resolve()
    before = open_artifact(target, kind, format_version=format_version)
    with _replacing(target, kind, overwrite=True) as aside:
        yield aside
        files = _finish_files(aside)
        for name, entry in before.files.items():
            if name not in files and not name.startswith(tuple(dropping)):
                _link_or_copy(target / name, aside / name)
                files[name] = entry
        amended = before.model_copy(
            update={
                "format_version": format_version,
                "onoma_version": __version__,
                "created": _now(),
                "files": dict(sorted(files.items())),
                "config": {**before.config, **(config or {})},
            }
        )
        write_text_atomically(aside / MANIFEST_NAME, amended.model_dump_json(indent=1))
        if read_manifest(target) != before:
            raise ArtifactExistsError(f"{target} was changed by another process meanwhile; try again.")


@contextlib.contextmanager
def _replacing(target: Path, kind: str, *, overwrite: bool) -> Iterator[Path]:
    """An empty folder beside ``target`` that takes its place on leaving the block."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    ensure_writable(target, kind, overwrite=overwrite)
    aside = target.parent / f".{target.name}.partial-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    aside.mkdir()
    _being_written.add(aside.name)
    old = target.parent / f".{target.name}.partial-{os.getpid()}-old"
    try:
        yield aside
        ensure_writable(target, kind, overwrite=overwrite)
        if target.exists():
            target.rename(old)
            aside.rename(target)
            spent = old.with_name(f"{aside.name}-spent")
            old.rename(spent)
            shutil.rmtree(spent)
        else:
            aside.rename(target)
        _fsync(target.parent)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(aside, ignore_errors=True)
        raise
    finally:
        _being_written.discard(aside.name)


def _finish_files(aside: Path) -> dict[str, FileEntry]:
    """Make what was written durable and readable for whoever may read the folder; sizes and checksums by name."""
    files = {}
    readable_by = aside.stat().st_mode & 0o666
    for file in sorted(p for p in aside.rglob("*") if p.is_file()):
        file.chmod(readable_by)  # some libraries write files that only their owner may read
        _fsync(file)
        files[file.relative_to(aside).as_posix()] = FileEntry(bytes=file.stat().st_size, sha256=sha256_file(file))
    return files


def _link_or_copy(source: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, destination)
    except OSError:  # the file system has no hard links
        shutil.copy2(source, destination)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def open_artifact(path: str | Path, kind: str, *, format_version: int = 1) -> Manifest:
    """Check that ``path`` is a whole artefact of this kind and return its manifest.

    Every file must be there with its recorded size; files up to 1 MiB are checksummed too. Use
    `verify_artifact` to checksum everything.

    Raises:
        InputError: there is nothing at ``path``.
        NotAnArtifactError: no manifest, or another kind.
        FormatVersionError: written by a newer Onoma.
        DamagedArtifactError: a file is missing, truncated or changed.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    if manifest.kind != kind:
        raise NotAnArtifactError(f"{folder} is of kind {manifest.kind}, where one of kind {kind} is needed.")
    if manifest.format_version > format_version:
        raise FormatVersionError(
            f"{folder} is a {kind} of format {manifest.format_version}, written by Onoma {manifest.onoma_version}; "
            f"this Onoma {__version__} reads up to format {format_version}. Update Onoma, or make the folder again."
        )
    _check_files(folder, manifest, checksum_up_to=_ALWAYS_VERIFIED_BYTES)
    return manifest


def verify_artifact(path: str | Path) -> Manifest:
    """Checksum every file of the artefact at ``path``; return its manifest or raise as `open_artifact` does."""
    folder = Path(path)
    manifest = read_manifest(folder)
    _check_files(folder, manifest, checksum_up_to=None)
    return manifest


def read_manifest(path: str | Path) -> Manifest:
    """Read ``onoma.json`` of the artefact at ``path`` without looking at its other files."""
    folder = Path(path)
    if not folder.exists():
        _put_back(folder.resolve())
    if not folder.exists():
        raise InputError("there is nothing here", path=folder, fix="check the path")
    if not folder.is_dir():
        raise NotAnArtifactError(f"{folder} is a file, where a folder written by Onoma is needed.")
    file = folder / MANIFEST_NAME
    if not file.is_file():
        raise NotAnArtifactError(f"{folder} was not written by Onoma: it has no {MANIFEST_NAME}.")
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise DamagedArtifactError(f"{file} is not readable as JSON ({error}). Make the folder again.") from None
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        if isinstance(raw, dict) and isinstance(raw.get("format_version"), int) and "kind" in raw:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise FormatVersionError(
                f"{file} has a field this Onoma {__version__} does not understand ({where}: {first['msg']}); "
                f"it was written by Onoma {raw.get('onoma_version', 'of unknown version')}."
            ) from None
        raise NotAnArtifactError(f"{file} is not a manifest written by Onoma.") from None


def ensure_writable(path: str | Path, kind: str, *, overwrite: bool = False) -> None:
    """Refuse early to write where something lies that may not be replaced.

    Raises:
        ArtifactExistsError: ``path`` is taken, and ``overwrite`` is not set or it holds something of another kind.
    """
    target = Path(path)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not overwrite:
        raise ArtifactExistsError(f"{target} exists already. Choose another place, or allow overwriting (--force).")
    try:
        manifest = read_manifest(target)
    except DamagedArtifactError:
        raise ArtifactExistsError(
            f"{target} has a damaged {MANIFEST_NAME}, so what it is cannot be told; it will not be replaced. "
            "Remove it first."
        ) from None
    except (NotAnArtifactError, FormatVersionError):
        raise ArtifactExistsError(f"{target} is not a folder this Onoma wrote; it will not be replaced.") from None
    if manifest.kind != kind:
        raise ArtifactExistsError(f"{target} is of kind {manifest.kind}, not {kind}; it will not be replaced.")
    own = {*manifest.files, MANIFEST_NAME}
    foreign = [file for file in target.rglob("*") if file.is_file() and file.relative_to(target).as_posix() not in own]
    if foreign:
        raise ArtifactExistsError(
            f"{target} holds a file that Onoma did not write ({foreign[0].relative_to(target)}); "
            "it will not be replaced. Move that file away first."
        )


def ensure_file_writable(path: str | Path, *, overwrite: bool = False) -> None:
    """Refuse early to write a single file where something lies that may not be replaced.

    Raises:
        ArtifactExistsError: ``path`` is a folder, or a file and ``overwrite`` is not set.
    """
    target = Path(path)
    if target.is_dir():
        raise ArtifactExistsError(f"{target} is a folder; it will not be replaced. Choose another name.")
    if target.exists() and not overwrite:
        raise ArtifactExistsError(f"{target} exists already. Choose another name, or allow overwriting (--force).")


@contextlib.contextmanager
def write_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give the name of a temporary file to write; on leaving the block it becomes the file at ``path``.

    Args:
        path: Where the file shall lie. Its folder is made if missing.
        overwrite: Replace a file that lies there.

    Yields:
        The file to write. If the block raises, it is removed and ``path`` stays as it was.

    Raises:
        ArtifactExistsError: ``path`` is taken.
    """
    target = Path(path)
    ensure_file_writable(target, overwrite=overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.partial-{os.getpid()}")
    try:
        yield aside
        _fsync(aside)
        aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_text_atomically(path: Path, text: str) -> None:
    """Write a small text file so that a reader sees the old content or the new, never a part."""
    with write_file(path, overwrite=True) as aside:
        aside.write_text(text, encoding="utf-8")


def _check_files(folder: Path, manifest: Manifest, *, checksum_up_to: int | None) -> None:
    for name, entry in manifest.files.items():
        file = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise DamagedArtifactError(f"{folder}: the manifest names '{name}', which lies outside the folder.")
        if not file.is_file():
            raise DamagedArtifactError(f"{folder}: the file {name} is missing. Make the folder again.")
        size = file.stat().st_size
        if size != entry.bytes:
            raise DamagedArtifactError(
                f"{folder}: the file {name} has {size} bytes; {entry.bytes} were written. Make the folder again."
            )
        if (checksum_up_to is None or size <= checksum_up_to) and sha256_file(file) != entry.sha256:
            raise DamagedArtifactError(f"{folder}: the content of {name} has changed. Make the folder again.")


_being_written: set[str] = set()
"""Partial folders of this process."""


def _leftovers(target: Path) -> list[Path]:
    """Partial folders of this target whose process is gone."""
    found = []
    for leftover in sorted(target.parent.glob(f".{glob.escape(target.name)}.partial-*")):
        pid = leftover.name.rsplit(".partial-", 1)[1].partition("-")[0]
        # In a container a new process may have the number of the one that left this behind.
        alive = leftover.name in _being_written if pid == str(os.getpid()) else pid.isdigit() and _is_alive(int(pid))
        if not alive:
            found.append(leftover)
    return found


def _put_back(target: Path) -> None:
    """Put back what an overwrite had moved away when its process died."""
    for leftover in _leftovers(target):
        if leftover.name.endswith("-old") and not target.exists():
            leftover.rename(target)


def _remove_leftovers(target: Path) -> None:
    _put_back(target)
    for leftover in _leftovers(target):
        shutil.rmtree(leftover, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
