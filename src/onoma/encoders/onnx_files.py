"""Where the weights of an ONNX model lie: in its own file, whence they can be mapped, or of very large ones beside it.

A model is one protobuf message, and whoever parses it has all weights in memory twice: in the message and in the
session. ONNX Runtime maps weights into memory instead that lie in another file, and nothing says that this may not be
the model's own. So `write_aligned` puts weights at multiples of 64 bytes (a comment that no tool reads fills the gap),
which leaves the file an ONNX model as any other, and `with_weights_in_file` gives the same model with references to
these places. Processes then share the weights that the runtime uses as they lie there (tables of embeddings above all).

Layout of protobuf messages: https://protobuf.dev/programming-guides/encoding; fields: onnx.proto3.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_ALIGNED_TO = 64
_SMALLEST = 4_096
"""Bytes; smaller weights stay in the message."""
_LONG_HEADER = 6
"""Bytes of a header whose length does not depend on what follows."""
_GRAPH, _INITIALIZER = 7, 5
"""Of ModelProto; of GraphProto."""
_RAW_DATA, _DOC_STRING, _EXTERNAL_DATA, _DATA_LOCATION = 9, 12, 13, 14
"""Of TensorProto."""
_KEY, _VALUE = 1, 2
"""Of StringStringEntryProto."""
_IS_EXTERNAL = 1
_VARINT, _BYTES = 0, 2
"""Types of fields."""

Buffer = bytes | memoryview


class _Field(NamedTuple):
    """A field of a message: its number, where it begins, where its content begins and ends."""

    number: int
    start: int
    content: int
    end: int


class _NotAlignedError(Exception):
    """The file is none that `write_aligned` wrote."""


def write_aligned(model: Buffer, file: Path) -> None:
    """Write a serialised ONNX model with its weights where they can be mapped.

    Args:
        model: The message.
        file: Where to.
    """
    with file.open("wb") as out:
        for field in _fields(model, 0, len(model)):
            if field.number != _GRAPH:
                out.write(model[field.start : field.end])
                continue
            parts = _aligned_graph(model, field, out.tell() + _LONG_HEADER)
            out.write(_long_header(_GRAPH, sum(map(len, parts))))
            out.writelines(parts)


def with_weights_in_file(model: Buffer, file_name: str) -> bytes | None:
    """An ONNX model whose weights are references into the file that it was read from.

    Args:
        model: The file's content.
        file_name: Of the file, relative to the folder that the runtime is told of.

    Returns:
        ``None`` if they do not lie where they can be mapped, or this is no whole model.
    """
    try:
        parts: list[Buffer] = []
        for field in _fields(model, 0, len(model)):
            if field.number != _GRAPH:
                parts.append(model[field.start : field.end])
                continue
            graph = [_referring(model, inner, file_name) for inner in _fields(model, field.content, field.end)]
            parts += [_header(_GRAPH, sum(map(len, graph))), *graph]
    except _NotAlignedError:
        return None
    return b"".join(parts)


def with_weights_beside(onnx: Path) -> tuple[Path, ...]:
    """An ONNX model, and the files beside it that a very large one has its weights in, as Onoma and Optimum name them.

    Of more than 2 GiB the model's own file holds the graph alone.
    """
    return (onnx, *sorted(onnx.parent.glob(f"{onnx.name}[._]data*")))


def has_its_weights(file: Path) -> bool:
    """Whether the other files that weights of a model lie in, as of all above 2 GB, are there to be read."""
    with file.open("rb") as opened:
        if os.fstat(opened.fileno()).st_size == 0:  # which cannot be mapped
            return True
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as model:
            names = set(_files_of_weights(model))
    return all(_lies_in(file.parent, name) and (file.parent / name).is_file() for name in names)


@contextlib.contextmanager
def linked_weights(model: Buffer, folder: Path) -> Iterator[dict[str, mmap.mmap]]:
    """The files of weights that are links to files elsewhere, as in the hub's cache, mapped into memory.

    Args:
        model: The content of the model's file.
        folder: Where that file lies. Files in it, and links in it, are read; a model that names another place gets
            nothing from there.

    Yields:
        Contents by the names that the model has for them.
    """
    names = [name for name in dict.fromkeys(_files_of_weights(model)) if _lies_in(folder, name)]
    with contextlib.ExitStack() as closed_after:
        contents = {}
        for name in names:
            file = folder / name
            if _lies_in(folder.resolve(), file.resolve()) or not file.is_file() or not file.stat().st_size:
                continue
            with file.open("rb") as opened:
                contents[name] = closed_after.enter_context(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        yield contents


def _lies_in(folder: Path, file: str | Path) -> bool:
    """Whether a file is in a folder, or below it, by its name alone."""
    folder = folder.absolute()
    return Path(os.path.normpath(folder / file)).is_relative_to(os.path.normpath(folder))


def _files_of_weights(model: Buffer) -> Iterator[str]:
    """The other files that weights of a model lie in; what is no model has none."""
    # Only what is asked for is read: a model may be large, and its numbers are passed over.
    try:
        for graph in _within(model, _Field(0, 0, 0, len(model)), _GRAPH):
            for tensor in _within(model, graph, _INITIALIZER):
                for entry in _within(model, tensor, _EXTERNAL_DATA):
                    said = {field.number: bytes(model[field.content : field.end]) for field in _within(model, entry)}
                    if said.get(_KEY) == b"location":
                        yield os.fsdecode(said.get(_VALUE, b""))
    except _NotAlignedError:
        return


def _within(model: Buffer, message: _Field, number: int | None = None) -> Iterator[_Field]:
    """The fields of a message within a model, or those of one number."""
    found = _fields(model, message.content, message.end)
    return (field for field in found if number is None or field.number == number)


def _aligned_graph(model: Buffer, graph: _Field, place: int) -> list[Buffer]:
    """The graph's content in pieces, if it is written at ``place``."""
    parts: list[Buffer] = []
    for field in _fields(model, graph.content, graph.end):
        raw = _raw_data(model, field) if field.number == _INITIALIZER else None
        pieces = [model[field.start : field.end]] if raw is None else _aligned_tensor(model, field, raw, place)
        parts += pieces
        place += sum(map(len, pieces))
    return parts


def _aligned_tensor(model: Buffer, tensor: _Field, raw: _Field, place: int) -> list[Buffer]:
    """A tensor in pieces, if it is written at ``place``, the numbers last."""
    rest = [
        model[field.start : field.end]
        for field in _fields(model, tensor.content, tensor.end)
        if field.number not in {_RAW_DATA, _DOC_STRING}
    ]
    numbers = model[raw.content : raw.end]
    of_numbers = _header(_RAW_DATA, len(numbers))
    before = _LONG_HEADER + sum(map(len, rest)) + len(of_numbers)
    gap = -(place + before) % _ALIGNED_TO
    if gap == 1:  # no field is so short
        gap += _ALIGNED_TO
    filling = b"" if gap == 0 else _header(_DOC_STRING, gap - 2) + b" " * (gap - 2)
    length = before - _LONG_HEADER + len(filling) + len(numbers)
    return [_long_header(_INITIALIZER, length), *rest, filling, of_numbers, numbers]


def _referring(model: Buffer, field: _Field, file_name: str) -> Buffer:
    """A field of the graph; if it is a tensor with many numbers, with a reference in their place."""
    raw = _raw_data(model, field) if field.number == _INITIALIZER else None
    if raw is None:
        return model[field.start : field.end]
    if raw.content % _ALIGNED_TO:
        raise _NotAlignedError
    parts = [
        bytes(model[inner.start : inner.end])
        for inner in _fields(model, field.content, field.end)
        if inner.number != _RAW_DATA
    ]
    for key, value in {"location": file_name, "offset": raw.content, "length": raw.end - raw.content}.items():
        entry = _with_header(_KEY, key.encode()) + _with_header(_VALUE, str(value).encode())
        parts.append(_with_header(_EXTERNAL_DATA, entry))
    parts.append(_varint(_DATA_LOCATION << 3 | _VARINT) + _varint(_IS_EXTERNAL))
    return _with_header(_INITIALIZER, b"".join(parts))


def _raw_data(model: Buffer, tensor: _Field) -> _Field | None:
    """The numbers of a tensor, if they are many."""
    fields = _fields(model, tensor.content, tensor.end)
    raw = next((field for field in fields if field.number == _RAW_DATA), None)
    return raw if raw is not None and raw.end - raw.content >= _SMALLEST else None


def _fields(message: Buffer, place: int, end: int) -> Iterator[_Field]:
    """The fields of a message that lies from ``place`` to ``end``.

    Raises:
        _NotAlignedError: it is not a whole message.
    """
    while place < end:
        start = place
        key, place = _read_varint(message, place, end)
        if key < 8:  # there is no field 0, and a run of noughts would be millions of them
            raise _NotAlignedError
        content = place
        match key & 7:
            case 0:
                _, place = _read_varint(message, place, end)
            case 1:
                place += 8
            case 2:
                length, content = _read_varint(message, place, end)
                place = content + length
            case 5:
                place += 4
            case _:
                raise _NotAlignedError
        if place > end:
            raise _NotAlignedError
        yield _Field(key >> 3, start, content, place)


def _read_varint(message: Buffer, place: int, end: int) -> tuple[int, int]:
    number = shift = 0
    while place < end:
        byte = message[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
        shift += 7
    raise _NotAlignedError


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def _header(field: int, length: int) -> bytes:
    """What stands before the content of a field of bytes."""
    return _varint(field << 3 | _BYTES) + _varint(length)


def _long_header(field: int, length: int) -> bytes:
    """The same in `_LONG_HEADER` bytes, of which the last may say nothing, as protobuf allows."""
    written = [_varint(field << 3 | _BYTES), *(bytes([length >> shift & 127 | 128]) for shift in (0, 7, 14, 21))]
    return b"".join([*written, bytes([length >> 28])])


def _with_header(field: int, content: bytes) -> bytes:
    return _header(field, len(content)) + content
