"""A file that is not whole yet: ``NAME.part``, and beside it in ``NAME.part.json`` what the bytes so far are of."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from onoma.artifacts import write_text_atomically
from onoma.artifacts.locking import open_locked
from onoma.errors import InputError, UnavailableError

_MOST_SIGNS = 1000


class Version(BaseModel):
    """By what a server tells versions of a file apart; what cannot be sent back to it in a header is left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    etag: str | None = None
    last_modified: str | None = None

    @field_validator("etag", "last_modified")
    @classmethod
    def _sendable(cls, value: str | None) -> str | None:
        fits = value is not None and value.isascii() and value.isprintable() and len(value) <= _MOST_SIGNS
        return value if fits else None

    @property
    def strong(self) -> str | None:
        """What may stand in ``If-Range``: an ETag that is not weak, else the date."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.last_modified

    def is_other_than(self, other: Version) -> bool:
        """Whether the two are seen to be different."""
        if self.etag and other.etag:
            return self.etag != other.etag
        return bool(self.last_modified and other.last_modified and self.last_modified != other.last_modified)


class Begun(BaseModel):
    """What a part is of: address, version, bytes in all where the server said so."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    version: Version
    total: int | None


@dataclass
class PartFile:
    """An open ``.part`` file that nobody else writes.

    Attributes:
        path: What the file shall be called in the end.
        handle: Unbuffered, so that an interrupt loses nothing.
    """

    path: Path
    handle: FileIO

    @property
    def part_path(self) -> Path:
        """Where the bytes lie."""
        return part_path(self.path)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self.handle.seek(0, os.SEEK_END)

    def begun(self, url: str) -> tuple[Begun | None, int]:
        """What it is of, if that can be resumed from this address, and from which byte."""
        try:
            begun = Begun.model_validate_json(_begun_path(self.path).read_text(encoding="utf-8"))
        except (OSError, ValueError, ValidationError):
            return None, 0
        size = self.size
        # A file that is whole already is asked for its last byte, which shows that the version is still the same.
        offset = size if begun.total is None else min(size, begun.total - 1)
        if begun.url != url or begun.version.strong is None or offset <= 0 or size > (begun.total or size):
            return None, 0
        return begun, offset

    def begin(self, begun: Begun, offset: int) -> None:
        """Write from a byte on, and note what it is of."""
        free = shutil.disk_usage(self.path.parent).free
        missing = 0 if begun.total is None else begun.total - offset
        if missing > free:
            raise InputError(
                "there is no room for the file",
                path=self.path,
                expected=f"{missing:,} bytes free",
                found=f"{free:,}",
                fix="make room, or choose another folder (-o)",
            )
        with _in_words(self.part_path):
            self.handle.seek(offset)
            self.handle.truncate()
            if begun.version.strong is None:
                self.forget()
            else:
                write_text_atomically(_begun_path(self.path), begun.model_dump_json())

    def write(self, data: bytes) -> None:
        """Write on."""
        rest = memoryview(data)
        with _in_words(self.part_path):
            while rest:  # an unbuffered write may be partial
                rest = rest[self.handle.write(rest) :]

    def forget(self) -> None:
        """Forget what it is of, so that it is not resumed."""
        _begun_path(self.path).unlink(missing_ok=True)

    def finish(self) -> None:
        """Make it the file that it was to become."""
        with _in_words(self.path):
            os.fsync(self.handle.fileno())
            self.part_path.replace(self.path)
        self.forget()


def part_path(path: Path) -> Path:
    """Where the bytes of ``path`` lie while they come."""
    return path.with_name(f"{path.name}.part")


@contextlib.contextmanager
def exclusive_part(path: Path) -> Iterator[PartFile]:
    """Open and lock the part of ``path``; on leaving it is removed if it could not be resumed.

    Raises:
        UnavailableError: another process is downloading the same file.
        InputError: it cannot be written.
    """
    part = part_path(path)
    with _in_words(part):
        try:
            handle = open_locked(part)
        except BlockingIOError:
            raise UnavailableError(f"Another process is downloading to {part}. Wait for it, or end it first.") from None
    with handle:
        try:
            yield PartFile(path, handle)
        finally:
            # Once the file has its name, the next process may begin a part of its own.
            with contextlib.suppress(FileNotFoundError):
                is_own = os.path.samestat(os.fstat(handle.fileno()), part.stat())
                if is_own and not _begun_path(path).exists():
                    part.unlink()


def _begun_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.part.json")


@contextlib.contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Say in words what the disk refuses."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror or error})",
            path=path,
            fix="make room or get the right to write, or choose another folder (-o); what came so far is kept",
        ) from None
