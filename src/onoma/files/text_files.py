"""Text files as blocks of whole lines: zip and gzip undone, byte order mark and carriage returns gone, lines numbered.

Blocks are a few MiB, so that they stay in the processor's cache while they are checked and split (three times as fast
as blocks of 64 MiB) and a file of any size is read in bounded memory.
"""

from __future__ import annotations

import gzip
import itertools
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from onoma.errors import InputError
from onoma.files.archives import MAX_SWELLING, MAX_UNCHECKED_BYTES, SourceFile, is_zip, source_files
from onoma.files.byte_order_marks import without_byte_order_mark
from onoma.files.csv_problems import CARRIAGE_RETURN
from onoma.files.encodings import Recoder
from onoma.files.reading import Reading

BLOCK_BYTES = 4 << 20
MAX_LINE_BYTES = 256 << 20
"""A longer line is no name but a damaged or hostile file."""


@dataclass(frozen=True)
class LineBlock:
    """Whole lines, each ended by a line feed.

    Attributes:
        data: The bytes, not yet known to be UTF-8.
        first_line: 1-based number of the first line.
        n_lines: How many.
    """

    data: bytes
    first_line: int
    n_lines: int

    def lines(self) -> list[bytes]:
        """The lines without their line feeds."""
        return self.data[:-1].split(b"\n")


def check_is_file(path: Path) -> None:
    """Refuse what is not a file.

    Raises:
        InputError: there is nothing, or a folder.
    """
    if not path.exists():
        raise InputError("there is no such file", path=path, fix="check the path")
    if not path.is_file():
        raise InputError(
            "this is not a file",
            path=path,
            found="a folder" if path.is_dir() else "a pipe or a device, which cannot be read twice",
            fix=None if path.is_dir() else "write what it gives to a file",
        )


def only_file(path: Path) -> SourceFile:
    """The file itself, or the one that a zip archive holds.

    Raises:
        InputError: no such file, or an archive of none or several.
    """
    check_is_file(path)
    if not is_zip(path):
        return SourceFile(path.name, path)
    files = source_files(path)
    names = {file.base for file in files}
    if names >= {"[Content_Types].xml", "workbook.xml"} or names >= {"mimetype", "content.xml"}:
        raise InputError("this is a workbook", path=path, expected="text, plain or gzip", fix=_SAVE)
    if len(files) != 1:
        raise InputError(
            f"the archive holds {len(files)} files", path=path, expected="one", fix="unpack it and name the one to read"
        )
    return files[0]


@dataclass(frozen=True)
class ByteBlock:
    """Some bytes of a file, unpacked.

    Attributes:
        data: At least one byte.
        n_lines: Line feeds in them.
        share: Of the file that was read by now, 0 to 1.
    """

    data: bytes
    n_lines: int
    share: float


def read_bytes(file: SourceFile, *, block_bytes: int = BLOCK_BYTES) -> Iterator[ByteBlock]:
    """Yield the bytes of a file, gzip (recognised by its first bytes) undone.

    Args:
        file: On disk or in an archive.
        block_bytes: About how much to read at a time.

    Raises:
        InputError: empty, of another kind (an archive, a workbook), or damaged, truncated or swelling gzip or zip.
    """
    size, n_bytes, n_lines = file.size(), 0, 0
    with file.open() as raw:
        handle = _decompressed(raw)
        while True:
            try:
                data = handle.read(block_bytes)
            except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
                place = f" somewhere after line {n_lines:,}" if n_lines else ""
                raise InputError(
                    f"the compressed file is damaged or cut off{place} ({error})",
                    path=file.path,
                    fix="get the file again",
                ) from None
            if not data:
                break
            if not n_bytes:
                _refuse_no_text(data, file.path)
            n_bytes += len(data)
            if n_bytes > max(MAX_UNCHECKED_BYTES, MAX_SWELLING * raw.tell() + block_bytes):
                raise InputError(
                    f"the compressed file swells more than {MAX_SWELLING} times (a bomb?)",
                    path=file.path,
                    line=n_lines + 1,
                    fix="get the file from its publisher, or unpack it yourself",
                )
            block = ByteBlock(data, data.count(b"\n"), raw.tell() / max(size, 1))
            n_lines += block.n_lines
            yield block
    if not n_bytes:
        raise _empty_file(file.path)


def start_of_text(file: SourceFile) -> bytes:
    """The first block of a file, without a byte order mark and white space before what it says.

    Raises:
        InputError: as `read_bytes`.
    """
    return next(read_bytes(file)).data.removeprefix(b"\xef\xbb\xbf").lstrip()


def read_blocks(
    file: SourceFile, reading: Reading, *, block_bytes: int = BLOCK_BYTES, keep_carriage_returns: bool = False
) -> Iterator[LineBlock]:
    """Yield the file as blocks of whole lines. A last line without line feed counts as a line.

    Args:
        file: Plain or gzip (recognised by its first bytes), on disk or in an archive.
        reading: Told of the file and the progress; knows the encoding, and which lines are comments.
        block_bytes: About how much to read at a time.
        keep_carriage_returns: Leave them before line feeds too, for a format whose values may hold them.

    Raises:
        InputError: empty, UTF-16 that was not said to be such, damaged, truncated or swelling gzip or
            zip, or a line longer than `MAX_LINE_BYTES`.
    """
    path = file.path
    reading.files.extend(file.containers)
    n_lines, pending, pending_bytes, is_first = 0, [], 0, True
    without_comments = _comment_remover(reading.comment)
    blocks = read_bytes(file, block_bytes=block_bytes)
    for block in blocks if reading.encoding is None else _recoded(blocks, reading.encoding, path):
        chunk = block.data
        if is_first:
            chunk = without_byte_order_mark(chunk, path, encoding_option=reading.encoding_option)
            is_first = False
        if not block.n_lines:
            pending.append(chunk)
            pending_bytes += len(chunk)
            if pending_bytes > MAX_LINE_BYTES:
                raise InputError(
                    f"no end of line within {MAX_LINE_BYTES >> 20} MiB",
                    path=path,
                    line=n_lines + 1,
                    fix="check that this is a text file with line ends",
                )
            continue
        cut = chunk.rfind(b"\n") + 1
        data = without_comments(b"".join([*pending, chunk[:cut]]))
        pending, pending_bytes = [chunk[cut:]], len(chunk) - cut
        yield LineBlock(data if keep_carriage_returns else _without_carriage_returns(data), n_lines + 1, block.n_lines)
        n_lines += block.n_lines
        reading.tell_share(n_lines, block.share, file.base)
    rest = without_comments(b"".join(pending))
    if pending_bytes:
        rest += b"\n"
        yield LineBlock(rest if keep_carriage_returns else _without_carriage_returns(rest), n_lines + 1, 1)
        n_lines += 1
    if not n_lines:
        raise _empty_file(path)
    reading.tell(n_lines, n_lines, file.base, last=True)


def _comment_remover(begins_with: str | None) -> Callable[[bytes], bytes]:
    """What makes lines that begin with this blank."""
    if begins_with is None:
        return lambda data: data
    pattern = re.compile(b"^" + re.escape(begins_with.encode()) + rb"[^\r\n]*", re.MULTILINE)
    return lambda data: pattern.sub(b"", data)


def _recoded(blocks: Iterator[ByteBlock], encoding: str, path: Path) -> Iterator[ByteBlock]:
    """The same text in UTF-8.

    Raises:
        InputError: it is not in this encoding, where that is so of more than some bytes of a line.
    """
    recoder, n_lines = Recoder(encoding), 0
    for block in itertools.chain(blocks, [ByteBlock(b"", 0, 1.0)]):
        try:
            data = recoder.recode(block.data, is_last=not block.data)
        except UnicodeError as error:
            raise InputError(
                f"not {encoding}, in this line or after it ({getattr(error, 'reason', error)})",
                path=path,
                line=n_lines + 1,
                fix="check the encoding, or get the file again"
                + ("; without a byte order mark it is utf-16-le or utf-16-be" if encoding == "utf-16" else ""),
            ) from None
        if data:
            n_lines += (n_found := data.count(b"\n"))
            yield ByteBlock(data, n_found, block.share)


def text_lines(file: SourceFile, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, lines) with only lines that are UTF-8 and free of NUL.

    A bad line is rejected and stands as an empty one, so that the numbers of the others stay right. Under "strict" the
    lines before it come first, as one of them may be bad for another reason.

    Raises:
        InputError: as `read_blocks`; all lines end in carriage returns alone.
    """
    for block in read_blocks(file, reading):
        is_one_line = block.first_line == block.n_lines == 1
        if is_one_line and b"\r" in block.data.strip(b"\r\n"):
            raise InputError(CARRIAGE_RETURN, path=file.path, line=1)
        yield from block_lines(block, file.path, reading)


def block_lines(block: LineBlock, path: Path, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """The lines of a block, bad ones rejected; see `text_lines`."""
    lines, bad = marked_lines(block, reading.encoding)
    if bad and reading.on_error == "strict":
        yield block.first_line, lines[: min(bad) - block.first_line]
    for number, (line, problem) in bad.items():
        reject_line(reading, path, number, line, problem)
        lines[number - block.first_line] = ""
    yield block.first_line, lines


def read_lines(path: str | Path) -> list[str]:
    """All lines of a text file, plain, gzip or alone in a zip; a blank line is one too, an empty file has none.

    Raises:
        InputError: as `text_lines`; or a line is not UTF-8.
    """
    place = Path(path)
    if place.is_fifo():  # which can be read once
        return [line for lines in lines_of_bytes(place.read_bytes(), place) for line in lines]
    try:
        return [
            line for _, lines in text_lines(only_file(place), Reading(may_skip=False, quotes=False)) for line in lines
        ]
    except EmptyFileError:
        return []


def whole_file(path: Path) -> bytes:
    """All bytes of a small file of text, plain, gzip or alone in a zip; of a pipe what it gives.

    Raises:
        InputError: as `read_bytes`, but for an empty file.
    """
    if path.is_fifo():
        return path.read_bytes()
    try:
        return b"".join(block.data for block in read_bytes(only_file(path)))
    except EmptyFileError:
        return b""


def lines_of_bytes(data: bytes, path: Path, *, first_line: int = 1) -> Iterator[list[str]]:
    """The lines in what was read of a stream, those before a bad one by themselves; nothing of nothing.

    Args:
        data: Whole lines; the last one may lack its line feed.
        path: What an error calls the stream.
        first_line: The number of the first of them there.

    Raises:
        InputError: a line is not UTF-8, or all is UTF-16 or compressed.
    """
    if first_line == 1:
        if data.startswith(b"\x1f\x8b"):
            raise InputError("this is compressed with gzip", path=path, fix="unpack it on the way, e.g. by zcat")
        _refuse_no_text(data, path)
        data = without_byte_order_mark(data, path)
    if not data:
        return
    block = LineBlock(_without_carriage_returns(data.removesuffix(b"\n") + b"\n"), first_line, data.count(b"\n"))
    for _, lines in block_lines(block, path, Reading(may_skip=False, quotes=False)):
        if lines:
            yield lines


def marked_lines(block: LineBlock, encoding: str | None) -> tuple[list[str], dict[int, tuple[bytes, str]]]:
    """The lines of a block as text, and of bad ones, by number, the bytes and what is wrong with them.

    For formats whose records go over several lines: what a bad line is a part of is bad as a whole. Bytes of a bad line
    that are no text are surrogates in it, so that what is ASCII in it can be told.
    """
    if b"\0" not in block.data:
        try:
            return block.data[:-1].decode().split("\n"), {}
        except UnicodeDecodeError:
            pass
    numbered = list(enumerate(block.lines(), block.first_line))
    problems = {number: (line, line_problem(line, encoding)) for number, line in numbered}
    bad = {number: (line, problem) for number, (line, problem) in problems.items() if problem}
    return [line.decode("utf-8", "surrogateescape") for _, line in numbered], bad


def line_problem(line: bytes, encoding: str | None = None) -> str | None:
    """What is wrong with the bytes of a line, if anything; ``encoding`` as of `Reading`."""
    if b"\0" in line:
        return "NUL byte in a text file"
    try:
        line.decode()
    except UnicodeDecodeError as error:
        if encoding is not None:
            return f"not {encoding}"  # which byte it was is not known any more
        return f"not UTF-8 (byte 0x{line[error.start]:02x})"  # without its place: equal problems are counted together
    return None


def reject_line(reading: Reading, path: Path, number: int, line: bytes, problem: str) -> None:
    """Reject a line whose bytes are no text."""
    reading.reject(
        problem,
        path=path,
        line=number,
        text=line[:4096].decode("utf-8", "backslashreplace").replace("\0", "\\x00"),
        fix="get the file again" if b"\0" in line else reading.how_to_decode,
    )


class EmptyFileError(InputError):
    """A file without a byte in it."""


def _empty_file(path: Path) -> EmptyFileError:
    return EmptyFileError("the file is empty", path=path, fix="check that it was written or downloaded in full")


def _without_carriage_returns(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n") if b"\r" in data else data


def _decompressed(raw: BinaryIO) -> BinaryIO:
    is_gzip = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if is_gzip else raw


def _refuse_no_text(start: bytes, path: Path) -> None:
    """Refuse a file that its first bytes tell to be of a kind that is not read as text.

    Raises:
        InputError: it is, with what to do.
    """
    for offset, signature, what, fix in _NO_TEXT:
        if start.startswith(signature, offset):
            raise InputError(f"this is {what}", path=path, expected="text, plain or gzip", fix=fix)


_UNPACK = "unpack it and name the file to read"
_SAVE = "save its table as CSV"
_NO_TEXT = (
    (257, b"ustar\0", "a tar archive", _UNPACK),
    (257, b"ustar  \0", "a tar archive", _UNPACK),
    (0, b"PK\3\4", "a zip archive within another file", _UNPACK),
    (0, b"\x1f\x8b", "compressed with gzip twice", _UNPACK),
    (4, b"1AY&SY", "compressed with bzip2", _UNPACK),
    (0, b"\xfd7zXZ\0", "compressed with xz", _UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "compressed with Zstandard", _UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (0, b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a workbook or document of Microsoft Office", _SAVE),
    (0, b"%PDF-", "a PDF", "get the table that it was made from"),
    (0, b"SQLite format 3\0", "a database of SQLite", "export its table as CSV"),
    (0, b"PAR1\x15", "a Parquet file", "give its name the ending .parquet where tables are read, or write it as CSV"),
)
"""Offset, signature there, kind, what to do."""
