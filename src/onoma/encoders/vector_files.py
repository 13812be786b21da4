"""A file of names to a file of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from onoma.artifacts import ensure_file_writable, write_file
from onoma.artifacts.arrays import new_array
from onoma.encoders.kept_parts import KeptParts, encode_in_parts
from onoma.encoders.protocol import Encoder, ProgressCallback
from onoma.errors import InputError
from onoma.types import FloatArray


def encode_file(
    encoder: Encoder,
    names: str | Path,
    output: str | Path,
    *,
    prepare: Callable[[str], str] | None = None,
    unit_length: bool = True,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> int:
    """Encode a text file, one name per line, into a file that appears only when it is whole.

    If it is stopped, the same call goes on from what lies in ``OUTPUT.encoded`` (`onoma.encoders.kept_parts`).

    Args:
        encoder: What makes the vectors.
        names: UTF-8 text; a blank line is a name too, so that line n is vector n.
        output: ``.npy``: float32, shape (n, width), written a part at a time. ``.parquet``: columns ``name``
            (as in the file) and ``vector`` (array of float32), put together in memory.
        prepare: Applied to each name before it is encoded, e.g. normalisation.
        unit_length: Scale every vector to length 1.
        overwrite: Replace ``output``.
        progress: Called with (done, total).

    Returns:
        How many names there were.

    Raises:
        InputError: the file is missing, not UTF-8 (with the line), or the ending of ``output`` is unknown.
        ArtifactExistsError: ``output`` exists.
    """
    output = Path(output)
    if output.suffix not in {".npy", ".parquet"}:
        raise InputError("unknown kind of file for vectors", path=output, expected="a name ending in .npy or .parquet")
    ensure_file_writable(output, overwrite=overwrite)
    texts = read_lines(names)
    kept = KeptParts(output, n_names=len(texts), width=encoder.width)
    with write_file(output, overwrite=overwrite) as aside:
        if output.suffix == ".npy" and texts:
            vectors: FloatArray = new_array(aside, np.float32, (len(texts), encoder.width))
        else:
            vectors = np.empty((len(texts), encoder.width), np.float32)
        encode = partial(kept.encode, encoder, unit_length=unit_length)
        done = 0
        for part in encode_in_parts(encode, texts, prepare=prepare, progress=progress):
            vectors[done : done + len(part)] = part
            done += len(part)
        if isinstance(vectors, np.memmap):
            vectors.flush()
        elif output.suffix == ".npy":
            with aside.open("wb") as empty:
                np.save(empty, vectors)
        else:
            table = pl.DataFrame(
                {"name": texts, "vector": pl.Series(vectors, dtype=pl.Array(pl.Float32, encoder.width))},
                schema_overrides={"name": pl.String},
            )
            table.write_parquet(aside)
    kept.discard()
    return len(texts)


def read_lines(path: str | Path) -> list[str]:
    """Lines of a UTF-8 text file, ends of line and a byte-order mark removed.

    Raises:
        InputError: there is no such file, or a line is not UTF-8.
    """
    file = Path(path)
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", path=file) from None
    except IsADirectoryError:
        raise InputError("this is a folder, where a text file is needed", path=file) from None
    return decode_lines(raw, source=file)


def decode_lines(raw: bytes, *, source: str | Path, first_line: int = 1) -> list[str]:
    """Lines of UTF-8 bytes, see `read_lines`.

    Args:
        raw: The bytes.
        source: How an error calls where they come from.
        first_line: The number of the first of them there.
    """
    return list(decoded_lines(raw, source=source, first_line=first_line))


def decoded_lines(raw: bytes, *, source: str | Path, first_line: int = 1) -> Iterator[str]:
    """As `decode_lines`, one by one, so that those before a bad line are not lost."""
    lines = (raw.removeprefix(b"\xef\xbb\xbf") if first_line == 1 else raw).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, first_line):
        if b"\0" in line:
            raise InputError(
                "NUL byte in a line of text",
                path=source,
                line=number,
                fix="save it as UTF-8, if it is UTF-16, or take the byte out",
            )
        try:
            text = line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(
                "this line is not UTF-8", path=source, line=number, found=repr(line[:40]), fix="save the file as UTF-8"
            ) from None
        yield text
