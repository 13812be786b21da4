"""Text files as blocks of whole lines: gzip undone, byte order mark and carriage returns removed, line numbers kept.

Blocks are a few MiB, so that they stay in the processor's cache while they are checked and split (three times as fast
as blocks of 64 MiB) and a file of any size is read in bounded memory.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from onoma.errors import InputError
from onoma.terminology.reading import Reading

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
        raise InputError("this is not a file", path=path, expected="a file", found="a folder")


def read_blocks(path: Path, reading: Reading, *, block_bytes: int = BLOCK_BYTES) -> Iterator[LineBlock]:
    """Yield the file as blocks of whole lines. A last line without line feed counts as a line.

    Args:
        path: Plain or gzip (recognised by its first bytes).
        reading: Told of the file and the progress.
        block_bytes: About how much to read at a time.

    Raises:
        InputError: no such file, empty, UTF-16, damaged or truncated gzip, or a line longer than `MAX_LINE_BYTES`.
    """
    check_is_file(path)
    reading.files.append(path)
    size, n_lines, pending = path.stat().st_size, 0, []
    pending_bytes = 0
    with path.open("rb") as raw:
        handle = _decompressed(raw)
        is_first = True
        while True:
            try:
                chunk = handle.read(block_bytes)
            except (EOFError, OSError, zlib.error) as error:
                raise InputError(
                    f"the gzip file is damaged or cut off after line {n_lines} ({error})",
                    path=path,
                    fix="get the file again",
                ) from None
            if is_first:
                chunk = _without_byte_order_mark(chunk, path)
                is_first = False
            cut = chunk.rfind(b"\n") + 1
            if chunk and not cut:
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
            data = b"".join([*pending, chunk[:cut]])
            pending, pending_bytes = [chunk[cut:]], len(chunk) - cut
            if not chunk and data:
                data += b"\n"
            if data:
                if b"\r" in data:
                    data = data.replace(b"\r\n", b"\n")
                block = LineBlock(data, n_lines + 1, data.count(b"\n"))
                n_lines += block.n_lines
                yield block
                reading.tell(n_lines, max(n_lines, round(n_lines * size / max(raw.tell(), 1))), path.name)
            if not chunk:
                break
    if not n_lines:
        raise InputError("the file is empty", path=path, fix="check that it was written or downloaded in full")
    reading.tell(n_lines, n_lines, path.name, last=True)


def text_lines(path: Path, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, lines) with only lines that are UTF-8 and free of NUL.

    A bad line is rejected and stands as an empty one, so that the numbers of the others stay right.
    """
    for block in read_blocks(path, reading):
        if b"\0" not in block.data:
            try:
                yield block.first_line, block.data[:-1].decode().split("\n")
                continue
            except UnicodeDecodeError:
                pass
        lines = []
        for number, line in enumerate(block.lines(), block.first_line):
            problem = line_problem(line)
            if problem:
                reject_line(reading, path, number, line, problem)
            lines.append("" if problem else line.decode())
        yield block.first_line, lines


def line_problem(line: bytes) -> str | None:
    """What is wrong with the bytes of a line, if anything."""
    if b"\0" in line:
        return "NUL byte in a text file"
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 (byte 0x{line[error.start]:02x} at position {error.start + 1} of the line)"
    return None


def reject_line(reading: Reading, path: Path, number: int, line: bytes, problem: str) -> None:
    """Reject a line whose bytes are no text."""
    reading.reject(
        problem,
        path=path,
        line=number,
        text=line[:4096].decode("utf-8", "backslashreplace").replace("\0", "\\x00"),
        fix="convert the file to UTF-8" if problem.startswith("not") else "get the file again",
    )


def _decompressed(raw: BinaryIO) -> BinaryIO:
    is_gzip = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if is_gzip else raw


def _without_byte_order_mark(start: bytes, path: Path) -> bytes:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(
            "the file is UTF-16", path=path, line=1, expected="UTF-8", fix="convert it, e.g. iconv -f UTF-16 -t UTF-8"
        )
    return start.removeprefix(b"\xef\xbb\xbf")
