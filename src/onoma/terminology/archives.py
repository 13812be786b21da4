"""What a release is made of: files in a folder, or members of a zip archive that is read without unpacking it.

Nothing of an archive is ever written to disk under a name that the archive chose. An archive that tries (``../x``,
``/etc/x``, ``C:/x``), lists one name twice, is encrypted, or holds a member that swells more than `MAX_SWELLING` times
is refused as a whole, before anything of it is read.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from onoma.errors import InputError

MAX_SWELLING = 200
"""Most a member may grow when it is unpacked. Terminologies in text grow 5 to 30 times."""
MAX_UNCHECKED_BYTES = 64 << 20
"""A member smaller than this harms nobody, however well it was compressed."""


@dataclass(frozen=True)
class SourceFile:
    """A file to read.

    Attributes:
        name: Its place below the source, divided by "/", e.g. ``META/MRCONSO.RRF``.
        container: The file on disk: itself, or the archive it is in.
        member: Its name in the archive; ``None``: it lies on disk by itself.
    """

    name: str
    container: Path
    member: str | None = None

    @property
    def path(self) -> Path:
        """What errors call it: ``release.zip/META/MRCONSO.RRF`` for a member of an archive."""
        return self.container if self.member is None else self.container / self.member

    @property
    def base(self) -> str:
        """The last part of its name."""
        return PurePosixPath(self.name).name

    def size(self) -> int:
        """Bytes, unpacked from the archive (a ``.gz`` stays compressed)."""
        if self.member is None:
            return self.container.stat().st_size
        with open_zip(self.container) as archive:
            return archive.getinfo(self.member).file_size

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes of the file, from the beginning; seekable.

        Raises:
            InputError: the archive is damaged, or packed in a way that Python cannot undo.
        """
        if self.member is None:
            with self.container.open("rb") as handle:
                yield handle
            return
        with open_zip(self.container) as archive:
            try:
                with archive.open(self.member) as handle:
                    yield cast(BinaryIO, handle)
            except (NotImplementedError, RuntimeError, zipfile.BadZipFile, EOFError) as error:
                raise InputError(
                    f"this part of the archive cannot be unpacked ({error})",
                    path=self.path,
                    fix="get the archive again",
                ) from None


def source_files(source: Path) -> tuple[SourceFile, ...]:
    """All files of a source, by name: below a folder, in a zip archive, or the one file.

    Raises:
        InputError: there is nothing at ``source``, or it is an archive that cannot be read or trusted.
    """
    if not source.exists():
        raise InputError("there is nothing here", path=source, fix="check the path")
    if source.is_dir():
        found = (path for path in source.rglob("*") if path.is_file())
        return tuple(
            sorted(
                (SourceFile(path.relative_to(source).as_posix(), path) for path in found), key=lambda file: file.name
            )
        )
    if not is_zip(source):
        return (SourceFile(source.name, source),)
    with open_zip(source) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        _check_members(members, source)
    return tuple(sorted((SourceFile(m.filename, source, m.filename) for m in members), key=lambda file: file.name))


def is_zip(path: Path) -> bool:
    """Whether a file begins as zip archives do; an archive cut off at its end still does."""
    with path.open("rb") as handle:
        return handle.read(4) in {b"PK\x03\x04", b"PK\x05\x06"}


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive, open for reading.

    Raises:
        InputError: it is damaged or cut off.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError) as error:
        raise InputError(
            f"the zip archive is damaged or cut off ({error})", path=path, fix="get the archive again"
        ) from None
    with archive:
        yield archive


def _check_members(members: list[zipfile.ZipInfo], path: Path) -> None:
    seen: set[str] = set()
    for member in members:
        name = member.filename
        parts = PurePosixPath(name.replace("\\", "/"))
        problem = None
        if parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[0]:
            problem = f"the archive names a file outside itself: {name!r}"
        elif name in seen:
            problem = f"the archive holds two files named {name!r}"
        elif member.flag_bits & 1:
            problem = f"{name!r} is encrypted"
        elif member.file_size > max(MAX_UNCHECKED_BYTES, MAX_SWELLING * member.compress_size):
            problem = f"{name!r} would swell to {member.file_size:,} bytes from {member.compress_size:,} (a zip bomb?)"
        if problem:
            raise InputError(problem, path=path, fix="get the archive from its publisher, or unpack it yourself")
        seen.add(name)
