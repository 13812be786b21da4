"""What a release is made of: files in a folder, or members of a zip or tar archive that is read without unpacking it.

An archive may hold further archives (`archives_opened`), and a file may lie there in pieces that are read as one
(`joined`): the full release of the UMLS has both.

Nothing of an archive is ever written to disk under a name that the archive chose. An archive that tries (``../x``,
``/etc/x``, ``C:/x``), lists one name twice, is encrypted, or holds a member that swells more than `MAX_SWELLING` times
is refused as a whole, before anything of it is read; so is one within another. Of a tar archive (plain or gzip) only
files are read, no links or devices, and one with headers longer than `_MOST_BYTES_OF_HEADER` is refused.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Self, TypeAlias, cast

from onoma.errors import InputError

MAX_SWELLING = 200
"""Most a member may grow when it is unpacked. Terminologies in text grow 5 to 30 times."""
MAX_UNCHECKED_BYTES = 64 << 20
"""A member smaller than this harms nobody, however well it was compressed."""
_COPIED_BYTES = 1 << 20
_TAR_SIGNATURE_AT = 257
_MOST_BYTES_OF_HEADER = 1 << 15
"""Of a header with a long name or attributes; tarfile reads it whole, in a time that may grow with its square."""
_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    EOFError,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
)
"""What the standard library raises for an archive that is damaged, or made to look so."""
_TYPES_OF_HEADERS = {
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
}
"""Types of members that say something of the next one."""
_Archive: TypeAlias = zipfile.ZipFile | tarfile.TarFile


@dataclass(frozen=True)
class SourceFile:
    """A file to read.

    Attributes:
        name: Its place below the source, divided by "/", e.g. ``META/MRCONSO.RRF``.
        container: The file on disk: itself, or the archive it is in.
        member: Its name in the archive; ``None``: it lies on disk by itself.
        inner_archive: If the archive it is in is itself a member of ``container``: the name of that member.
        tar_member: What a tar archive says of it.
        copy: A temporary copy of that inner archive.
        pieces: If it lies there in pieces: these, in order.
        opened: The archive it is in, if that is open (`files_opened`).
    """

    name: str
    container: Path
    member: str | None = None
    inner_archive: str = ""
    tar_member: tarfile.TarInfo | None = field(default=None, repr=False, compare=False)
    copy: BinaryIO | None = field(default=None, repr=False, compare=False)
    pieces: tuple[SourceFile, ...] = ()
    opened: _Archive | None = field(default=None, repr=False, compare=False)

    @property
    def path(self) -> Path:
        """What errors call it: ``release.zip/META/MRCONSO.RRF`` for a member of an archive."""
        if self.pieces:
            return self.pieces[0].path.with_name(self.base)
        return self.container if self.member is None else self.container / self.inner_archive / self.member

    @property
    def base(self) -> str:
        """The last part of its name."""
        return PurePosixPath(self.name).name

    @property
    def folder(self) -> str:
        """The folder it is in: of the archive, or below the source. Which archive of several does not count."""
        return PurePosixPath(self.name if self.member is None else self.member).parent.as_posix()

    @property
    def containers(self) -> tuple[Path, ...]:
        """The files on disk that it is in."""
        return tuple(dict.fromkeys(piece.container for piece in self.pieces)) or (self.container,)

    def size(self) -> int:
        """Bytes, unpacked from the archive (a ``.gz`` stays compressed)."""
        if self.pieces:
            return sum(piece.size() for piece in self.pieces)
        if self.member is None:
            return self.container.stat().st_size
        if self.tar_member is not None:
            return self.tar_member.size
        with self._archive() as archive:
            assert isinstance(archive, zipfile.ZipFile)
            return archive.getinfo(self.member).file_size

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes of the file, from the beginning; one can go back there.

        Raises:
            InputError: the archive is damaged.
        """
        if self.pieces:
            with _Joined(self.pieces) as pieces:
                try:
                    yield cast(BinaryIO, pieces)
                except _DAMAGE as error:
                    raise self._cannot_be_unpacked(error) from None
        elif self.member is None:
            with self.container.open("rb") as handle:
                yield handle
        else:
            with self._archive() as archive:
                try:
                    member = _opened(archive, self)
                except (*_DAMAGE, OSError, ValueError) as error:
                    raise self._cannot_be_unpacked(error) from None
                with member:
                    try:
                        yield cast(BinaryIO, member)
                    except _DAMAGE as error:
                        raise self._cannot_be_unpacked(error) from None

    def _cannot_be_unpacked(self, error: Exception) -> InputError:
        problem = f"this part of the archive cannot be unpacked ({error})"
        return InputError(problem, path=self.path, fix="get the archive again")

    @contextmanager
    def _archive(self) -> Iterator[_Archive]:
        if self.opened is not None:
            yield self.opened
            return
        if self.tar_member is not None:
            with _open_tar(self.container) as tar:
                yield tar
            return
        with open_zip(self.copy or self.container, shown=self.container / self.inner_archive) as archive:
            yield archive


def source_files(source: Path) -> tuple[SourceFile, ...]:
    """All files of a source, by name: below a folder, in a zip or tar archive, or the one file.

    What macOS puts beside them (``._NAME``, ``.DS_Store``, ``__MACOSX``) is passed over.

    Raises:
        InputError: there is nothing at ``source``, or it is an archive that cannot be read or trusted.
    """
    if not source.exists():
        raise InputError("there is nothing here", path=source, fix="check the path")
    if source.is_dir():
        return _by_name(SourceFile(path.relative_to(source).as_posix(), path) for path in _files_below(source))
    if is_tar(source):
        with _open_tar(source) as tar:
            return _files_of_tar(tar, source)
    if not is_zip(source):
        return (SourceFile(source.name, source),)
    return _by_name(SourceFile(name, source, name) for name in _member_names(source, source))


@contextmanager
def files_opened(source: Path) -> Iterator[tuple[SourceFile, ...]]:
    """The same, while an archive stays open: to open one of a thousand files for each of them takes ten times as long.

    Raises:
        InputError: as `source_files`.
    """
    if source.is_file() and is_tar(source):
        with _open_tar(source) as tar:
            yield tuple(replace(file, opened=tar) for file in _files_of_tar(tar, source))
        return
    files = source_files(source)
    if source.is_dir() or not is_zip(source):
        yield files
        return
    with open_zip(source) as archive:
        yield tuple(replace(file, opened=archive) for file in files)


def _files_below(folder: Path) -> Iterator[Path]:
    """Files in a folder and all below it, through links too, each folder once: links may go in circles."""
    seen: set[Path] = set()
    for place, inner, names in os.walk(folder, followlinks=True):
        real = Path(place).resolve()
        if real in seen:
            inner.clear()
            continue
        seen.add(real)
        inner.sort()
        yield from (path for name in names if (path := Path(place, name)).is_file())


@contextmanager
def archives_opened(
    files: Sequence[SourceFile], is_archive: Callable[[SourceFile], bool]
) -> Iterator[tuple[SourceFile, ...]]:
    """The files, where those that are archives give way to what is in them (not in archives within these).

    An archive within an archive is copied to a temporary file without a name, since one cannot jump about in what is
    compressed; the copies are there as long as the context is.

    Raises:
        InputError: such a file is no zip archive, cannot be read or trusted, or finds no room.
    """
    with ExitStack() as stack:
        yield _by_name(inner for file in files for inner in (_members_of(file, stack) if is_archive(file) else (file,)))


def joined(name: str, pieces: Sequence[SourceFile]) -> SourceFile:
    """One file out of pieces, in their order; if they are gzip, each for itself is.

    Args:
        name: What it is called.
        pieces: At least one, plain or gzip, but all the same.
    """
    return SourceFile(name, pieces[0].container, pieces=tuple(pieces))


def is_zip(path: Path) -> bool:
    """Whether a file begins as zip archives do; an archive cut off at its end still does."""
    with path.open("rb") as handle:
        return handle.read(4) in {b"PK\x03\x04", b"PK\x05\x06"}


def is_tar(path: Path) -> bool:
    """Whether a file begins as tar archives do, plain or gzip."""
    with path.open("rb") as raw:
        try:
            is_gzip = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            head = (gzip.GzipFile(fileobj=raw) if is_gzip else raw).read(tarfile.BLOCKSIZE)
        except (OSError, EOFError, zlib.error):
            return False
    return head[_TAR_SIGNATURE_AT:].startswith(b"ustar")


class _TarMember(tarfile.TarInfo):
    """A member whose headers are short."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """As `tarfile.TarInfo.frombuf`.

        Raises:
            tarfile.TarError: it is a long header.
        """
        found = super().frombuf(buf, encoding, errors)
        if found.type in _TYPES_OF_HEADERS and not 0 <= found.size <= _MOST_BYTES_OF_HEADER:
            raise tarfile.TarError(f"a header of {found.size:,} bytes")
        return found


@contextmanager
def _open_tar(source: Path) -> Iterator[tarfile.TarFile]:
    """The archive, open for reading; one in gzip by a temporary copy, as its files are read in any order.

    Raises:
        InputError: it is damaged at its beginning, swells too much, or finds no room.
    """
    with ExitStack() as closed_after:
        content: BinaryIO = closed_after.enter_context(source.open("rb"))
        if content.read(2) == b"\x1f\x8b":
            content.seek(0)
            content = closed_after.enter_context(_unpacked(content, source))
        content.seek(0)
        try:
            archive = closed_after.enter_context(tarfile.open(fileobj=content, mode="r:", tarinfo=_TarMember))
        except (*_DAMAGE, OSError, ValueError) as error:
            raise _damaged_tar(source, error) from None
        yield archive


@contextmanager
def _unpacked(packed: BinaryIO, source: Path) -> Iterator[BinaryIO]:
    """What is in gzip, copied to a temporary file without a name."""
    most_bytes = max(MAX_UNCHECKED_BYTES, MAX_SWELLING * source.stat().st_size)
    with tempfile.TemporaryFile() as copy, gzip.GzipFile(fileobj=packed) as unpacked:
        while True:
            try:
                block = unpacked.read(_COPIED_BYTES)
            except (*_DAMAGE, OSError, ValueError) as error:
                raise _damaged_tar(source, error) from None
            if not block:
                break
            if copy.tell() + len(block) > most_bytes:
                raise _not_trusted(f"it would swell to more than {most_bytes:,} bytes (a bomb?)", source)
            try:
                copy.write(block)
            except OSError as error:
                raise InputError(
                    f"the archive could not be unpacked to a temporary file ({error.strerror or error})",
                    path=source,
                    fix="make room for temporary files (TMPDIR says where), or unpack it and name the folder",
                ) from None
        yield cast(BinaryIO, copy)


def _damaged_tar(path: Path, error: Exception) -> InputError:
    return InputError(f"the tar archive is damaged or cut off ({error})", path=path, fix="get the archive again")


def _opened(archive: _Archive, file: SourceFile) -> IO[bytes]:
    if isinstance(archive, zipfile.ZipFile):
        return archive.open(str(file.member))
    assert file.tar_member is not None
    opened = archive.extractfile(file.tar_member)
    assert opened is not None  # only files are listed
    return opened


@contextmanager
def open_zip(source: Path | BinaryIO, *, shown: Path | None = None) -> Iterator[zipfile.ZipFile]:
    """The archive, open for reading.

    Args:
        source: A file, or one that is open.
        shown: What errors call it.

    Raises:
        InputError: it is damaged or cut off.
    """
    path = shown if shown is not None else source if isinstance(source, Path) else None
    try:
        archive = zipfile.ZipFile(source)
    except (*_DAMAGE, OSError, ValueError) as error:
        raise InputError(
            f"the zip archive is damaged or cut off ({error})", path=path, fix="get the archive again"
        ) from None
    with archive:
        if _is_of_inner(archive):
            raise InputError("the zip archive is damaged or cut off", path=path, fix="get the archive again")
        yield archive


def _is_of_inner(archive: zipfile.ZipFile) -> bool:
    """Whether the directory leaves out what the file begins with: it is cut off behind an archive within it."""
    if archive.fp is None or not (members := archive.infolist()) or not min(one.header_offset for one in members):
        return False
    archive.fp.seek(0)
    return archive.fp.read(4) == b"PK\x03\x04"


class _Joined(io.RawIOBase):
    """Reads pieces one after the other; knows where it is, and can go back to the beginning."""

    def __init__(self, pieces: Sequence[SourceFile]) -> None:
        super().__init__()
        self._pieces = pieces
        self._stack = ExitStack()
        self._rewind()

    def _rewind(self) -> None:
        self._stack.close()
        self._waiting = list(self._pieces)
        self._handle: BinaryIO | None = None
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if (offset, whence) != (0, io.SEEK_SET):
            raise io.UnsupportedOperation("only back to the beginning")
        self._rewind()
        return 0

    def read(self, size: int = -1) -> bytes:
        parts, n_wanted = [], size
        while size < 0 or n_wanted:
            part = self._handle.read(n_wanted) if self._handle is not None else b""
            if part:
                parts.append(part)
                n_wanted -= len(part)
                self._position += len(part)
            elif self._waiting:
                self._stack.close()
                self._handle = self._stack.enter_context(self._waiting.pop(0).open())
            else:
                break
        return b"".join(parts)

    def close(self) -> None:
        self._stack.close()
        super().close()


def _by_name(files: Iterator[SourceFile]) -> tuple[SourceFile, ...]:
    return tuple(sorted((file for file in files if not _is_of_macos(file.name)), key=lambda file: file.name))


def _is_of_macos(name: str) -> bool:
    """Whether it is what macOS writes beside a file on other disks and into archives: icons and the like."""
    path = PurePosixPath(name)
    return "__MACOSX" in path.parts or path.name.startswith("._") or path.name == ".DS_Store"


def _members_of(file: SourceFile, stack: ExitStack) -> list[SourceFile]:
    if file.member is None:
        names = _member_names(file.container, file.path)
        return [SourceFile(f"{file.name}/{name}", file.container, name) for name in names]
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 -- the stack closes it
    with file.open() as handle:
        try:
            shutil.copyfileobj(handle, copy, _COPIED_BYTES)
        except OSError as error:
            raise InputError(
                f"this archive within the archive could not be copied to a temporary file ({error})",
                path=file.path,
                fix="make room for temporary files (TMPDIR says where), or unpack the archive and name the folder",
            ) from None
    return [
        SourceFile(f"{file.name}/{name}", file.container, name, inner_archive=file.member, copy=copy)
        for name in _member_names(copy, file.path)
    ]


def _member_names(source: Path | BinaryIO, shown: Path) -> list[str]:
    """The files in an archive, which can be trusted."""
    with open_zip(source, shown=shown) as archive:
        members = [member for member in archive.infolist() if not member.filename.endswith("/")]
    _check_members(members, shown)
    return [member.filename for member in members]


def _files_of_tar(archive: tarfile.TarFile, path: Path) -> tuple[SourceFile, ...]:
    """The files in an archive, which can be trusted."""
    most_bytes = max(MAX_UNCHECKED_BYTES, MAX_SWELLING * path.stat().st_size)
    members: dict[str, tarfile.TarInfo] = {}
    try:
        while (member := archive.next()) is not None:
            problem = None
            if not 0 <= member.size <= most_bytes - member.offset_data:  # told before it is unpacked
                problem = f"{member.name!r} would swell to {member.size:,} bytes (a bomb?)"
            elif member.isreg():
                name = PurePosixPath(member.name).as_posix()
                problem = _name_problem(member.name, ()) or _name_problem(name, members)
                members[name] = member
            if problem:
                raise _not_trusted(problem, path)
    except (*_DAMAGE, OSError, ValueError) as error:
        raise _damaged_tar(path, error) from None
    return _by_name(SourceFile(name, path, member.name, tar_member=member) for name, member in members.items())


def _name_problem(name: str, seen: Collection[str]) -> str | None:
    parts = PurePosixPath(name.replace("\\", "/"))
    if not parts.parts:
        return f"the archive holds a file without a name: {name!r}"
    if parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[0]:
        return f"the archive names a file outside itself: {name!r}"
    return f"the archive holds two files named {name!r}" if name in seen else None


def _not_trusted(problem: str, path: Path) -> InputError:
    return InputError(problem, path=path, fix="get the archive from its publisher, or unpack it yourself")


def _check_members(members: list[zipfile.ZipInfo], path: Path) -> None:
    seen: set[str] = set()
    for member in members:
        problem = _name_problem(member.filename, seen) or _packing_problem(member)
        if problem:
            raise _not_trusted(problem, path)
        seen.add(member.filename)


def _packing_problem(member: zipfile.ZipInfo) -> str | None:
    name = member.filename
    if member.flag_bits & 1:
        return f"{name!r} is encrypted"
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        return f"{name!r} is packed by a method other than deflate"
    if member.file_size > max(MAX_UNCHECKED_BYTES, MAX_SWELLING * member.compress_size):
        return f"{name!r} would swell to {member.file_size:,} bytes from {member.compress_size:,} (a zip bomb?)"
    return None
