"""The manifest of an artefact folder, and opening: only a whole folder is opened."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from onoma._version import __version__
from onoma.artifacts.files import sha256_file, sha256_of_sample
from onoma.artifacts.unfinished import is_away, leftovers
from onoma.errors import (
    DamagedArtifactError,
    FormatVersionError,
    InputError,
    NotAnArtifactError,
    OnomaError,
    checked_path,
    first_line,
)
from onoma.quantities import quantity

MANIFEST_NAME = "onoma.json"
CARD_NAME = "README.md"
"""What people read and edit before they publish a folder, and nothing else reads: opening does not look at it."""
_ALWAYS_VERIFIED_BYTES = 1 << 24
"""Files up to this size are checksummed at every open; of larger ones a sample is, and all by `verify_artifact`."""
_CHECKSUM = r"^[0-9a-f]{64}$"
_ATTEMPTS, _MOMENTS, _MOMENT = 5, 50, 0.01
_MADE_BY = {
    "terminology": "onoma terminology import FORMAT SOURCE -o DIR",
    "pairs": "onoma pairs build --terminology DIR --encoder ENCODER -o PAIRS, or mentions or bitext in place of build",
    "encoder": "onoma train RECIPE --terminology DIR -o ENCODER; a linker has its own in LINKER/encoder",
    "linker": "onoma linker build --terminology DIR --encoder ENCODER -o LINKER",
    "reranker": "onoma reranker train --linker LINKER --mentions FILE -o DIR",
}
Read = TypeVar("Read")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(_Record):
    """One file of an artefact."""

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=_CHECKSUM)
    sample_sha256: str | None = Field(default=None, pattern=_CHECKSUM)
    """Of blocks spread over a file that is too large to be read at every open."""

    @classmethod
    def of(cls, file: Path) -> FileEntry:
        """Of a file as it is now."""
        size = file.stat().st_size
        sample = None if size <= _ALWAYS_VERIFIED_BYTES else sha256_of_sample(file)
        return cls(bytes=size, sha256=sha256_file(file), sample_sha256=sample)


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

    def __repr__(self) -> str:
        return f"Manifest({self.kind}, {quantity(len(self.files), 'file')}, {self.created}, Onoma {self.onoma_version})"

    def as_text(self) -> str:
        """What ``onoma.json`` holds: the fields as JSON, and their checksum, so that damage to them is seen too."""
        fields = json.loads(self.model_dump_json(exclude_none=True))
        return json.dumps({**fields, "sha256": _checksum(fields)}, indent=1, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: bytes, path: Path) -> Manifest:
        """What `as_text` gives, read again.

        Args:
            text: As UTF-8.
            path: Where it stands, for messages.

        Raises:
            DamagedArtifactError: it is no JSON, or has changed since it was written.
            NotAnArtifactError: it is something else.
            FormatVersionError: it has a field that is not known.
        """
        try:
            raw = json.loads(text.decode())
        except (ValueError, RecursionError) as error:
            raise DamagedArtifactError(f"{path} is not readable as JSON ({error}). Make the folder again.") from None
        if not isinstance(raw, dict) or "sha256" not in raw:
            raise NotAnArtifactError(f"{path} is not a manifest written by Onoma.")
        if raw.pop("sha256") != _checksum(raw):
            raise DamagedArtifactError(
                f"{path} is not what was written: its content has changed. Make the folder again."
            )
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise FormatVersionError(
                f"{path} has a field this Onoma {__version__} does not understand ({first_line(error)}); "
                f"it was written by Onoma {raw.get('onoma_version', 'of unknown version')}."
            ) from None

    @property
    def fingerprint(self) -> str:
        """SHA-256 over kind, format and the checksums of all files: equal content, equal fingerprint.

        Manifests of folders inside, which have a date, do not count; their files do.
        """
        digest = hashlib.sha256(f"{self.kind}/{self.format_version}".encode())
        for name in sorted(self.files):
            if name.endswith(f"/{MANIFEST_NAME}"):
                continue
            digest.update(f"\n{name} {self.files[name].sha256}".encode())
        return digest.hexdigest()

    def as_parent(self) -> Parent:
        """This artefact as an entry in the ``parents`` of another."""
        return Parent(kind=self.kind, fingerprint=self.fingerprint)


def open_artifact(
    path: str | Path, kind: str, *, format_version: int = 1, oldest: int = 1, in_full: bool = False
) -> Manifest:
    """Check that ``path`` is a whole artefact of this kind and return its manifest.

    Every file must be there with its recorded size; files up to 16 MiB are checksummed too, of larger ones 64 blocks
    spread over the file, which tells another file of the same size. Use `verify_artifact` to checksum everything.

    Args:
        path: The folder.
        kind: That it must be of.
        format_version: The newest that is understood.
        oldest: The oldest.
        in_full: Checksum everything, for what is going to be read whole.

    Raises:
        InputError: there is nothing at ``path``.
        NotAnArtifactError: no manifest, or another kind.
        FormatVersionError: written by a newer Onoma, or by one that was long before.
        DamagedArtifactError: a file is missing, truncated or changed.
    """
    folder = checked_path(path)

    def begin() -> Manifest:
        if folder.is_file():
            raise NotAnArtifactError(
                f"{folder} is a file, where a folder written by Onoma is needed, of kind {kind}.{_how_to_make(kind)}"
            )
        manifest = read_manifest(folder)
        if manifest.kind != kind:
            raise NotAnArtifactError(
                f"{folder} is of kind {manifest.kind}, where one of kind {kind} is needed.{_how_to_make(kind)}"
            )
        if manifest.format_version > format_version:
            raise FormatVersionError(
                f"{folder} is a {kind} of format {manifest.format_version}, written by Onoma {manifest.onoma_version}; "
                f"this Onoma {__version__} reads up to format {format_version}. Update Onoma, or make the folder again."
            )
        if manifest.format_version < oldest:
            raise FormatVersionError(
                f"{folder} is a {kind} of format {manifest.format_version}, written by an Onoma before this one, which "
                f"reads from format {oldest} on. Make the folder again."
            )
        return manifest

    return read_while_unchanged(folder, begin, lambda manifest: _check_files(folder, manifest, in_full=in_full))[0]


def _how_to_make(kind: str) -> str:
    return f" To make one: {_MADE_BY[kind]}." if kind in _MADE_BY else ""


def read_while_unchanged(
    folder: Path, begin: Callable[[], Manifest], read: Callable[[Manifest], Read]
) -> tuple[Manifest, Read]:
    """Read from a folder that another process may replace meanwhile: all of the old one, or all of the new.

    Args:
        folder: The artefact.
        begin: Gives its manifest, checked.
        read: Reads what is wanted, by the manifest. Both are called again if the folder was replaced.

    Raises:
        DamagedArtifactError: it was replaced each time.
        OnomaError: what ``begin`` or ``read`` raise while the folder stays the same.
    """
    for _ in range(_ATTEMPTS):
        moved = _last_moved(folder)
        manifest = begin()
        try:
            found = read(manifest)
        except (OnomaError, OSError):
            # It may have been away for an instant, and the manifest be the same: put back, or written anew.
            if _last_moved(folder) == moved and is_still(folder, manifest):
                raise
        else:
            if is_still(folder, manifest):
                return manifest, found
    raise DamagedArtifactError(f"{folder} is being replaced again and again by another process. Try again later.")


def _last_moved(folder: Path) -> int | None:
    """When a folder was renamed, or a file in it, in nanoseconds; ``None``: it is not there."""
    try:
        return folder.stat().st_ctime_ns
    except OSError:
        return None


def is_still(folder: Path, manifest: Manifest) -> bool:
    """Whether the artefact in a folder is the one that has this manifest."""
    try:
        return read_manifest(folder) == manifest
    except (OnomaError, OSError):
        return False


def verify_artifact(path: str | Path, *, card_may_differ: bool = False) -> Manifest:
    """Checksum every file of the artefact at ``path``; return its manifest or raise as `open_artifact` does.

    Args:
        path: The folder.
        card_may_differ: Whether its ``README.md``, which people edit, may be another than was written, or missing.
    """
    folder = checked_path(path)
    return read_while_unchanged(
        folder,
        lambda: read_manifest(folder),
        lambda manifest: _check_files(folder, manifest, in_full=True, card_may_differ=card_may_differ),
    )[0]


def read_manifest(path: str | Path) -> Manifest:
    """Read ``onoma.json`` of the artefact at ``path`` without looking at its other files."""
    folder = checked_path(path)
    file = folder / MANIFEST_NAME
    for _ in range(_MOMENTS):
        with contextlib.suppress(OSError):  # what is wrong is said below
            return Manifest.from_text(file.read_bytes(), file)
        if not folder.exists() and is_away(folder.resolve()):
            time.sleep(_MOMENT)  # whoever replaces it is between its two renames, for longer where all is busy
        elif not file.is_file():
            break
    if not folder.exists():
        earlier = [place.name for place in leftovers(folder) if place.name.endswith("-old")]
        fix = (
            f"check the path; {earlier[0]} beside it is what an overwrite had moved away"
            if earlier
            else "check the path"
        )
        raise InputError("there is nothing here", path=folder, fix=fix)
    if not folder.is_dir():
        raise NotAnArtifactError(f"{folder} is a file, where a folder written by Onoma is needed.")
    if not file.is_file():
        raise NotAnArtifactError(f"{folder} was not written by Onoma: it has no {MANIFEST_NAME}.")
    return Manifest.from_text(file.read_bytes(), file)


def _checksum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _check_files(folder: Path, manifest: Manifest, *, in_full: bool, card_may_differ: bool = False) -> None:
    """The card last: where it alone differs, all else is known to be as written."""
    for name, entry in sorted(manifest.files.items(), key=lambda item: item[0] == CARD_NAME):
        if name == CARD_NAME and (card_may_differ or not in_full):
            continue
        file = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise DamagedArtifactError(f"{folder}: the manifest names '{name}', which lies outside the folder.")
        if name == CARD_NAME:
            if not file.is_file() or sha256_file(file) != entry.sha256:
                is_what = "is another than Onoma wrote" if file.is_file() else "is missing"
                raise DamagedArtifactError(
                    f"{folder}: its card {name} {is_what}, which is no harm if somebody meant it; all other files are "
                    "as they were written. To write an encoder's anew: onoma encoder card --force."
                )
            continue
        if not file.is_file():
            raise DamagedArtifactError(f"{folder}: the file {name} is missing. Make the folder again.")
        size = file.stat().st_size
        if size != entry.bytes:
            raise DamagedArtifactError(
                f"{folder}: the file {name} has {size} bytes; {entry.bytes} were written. Make the folder again."
            )
        if in_full or size <= _ALWAYS_VERIFIED_BYTES:
            is_as_written = sha256_file(file) == entry.sha256
        else:  # without a sample where the limit was another as it was written
            is_as_written = entry.sample_sha256 is None or sha256_of_sample(file) == entry.sample_sha256
        if not is_as_written:
            raise DamagedArtifactError(f"{folder}: the content of {name} has changed. Make the folder again.")
