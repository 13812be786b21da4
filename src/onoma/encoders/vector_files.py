"""A file of names to a file of vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from onoma.artifacts import ensure_file_writable, is_same, write_file
from onoma.artifacts.arrays import new_array
from onoma.encoders.kept_parts import KeptParts, encode_in_parts
from onoma.encoders.protocol import Encoder
from onoma.errors import InputError
from onoma.files.text_files import read_lines
from onoma.types import CountProgress, FloatArray


def encode_file(
    encoder: Encoder,
    names: str | Path,
    output: str | Path,
    *,
    prepare: Callable[[str], str] | None = None,
    unit_length: bool = True,
    overwrite: bool = False,
    progress: CountProgress | None = None,
) -> int:
    """Encode a text file, one name per line, into a file that appears only when it is whole.

    If it is stopped, the same call goes on from what lies in ``OUTPUT.encoded`` (`onoma.encoders.kept_parts`).

    Args:
        encoder: What makes the vectors.
        names: UTF-8 text, plain, gzip or alone in a zip; a blank line is a name too, so that line n is vector n.
        output: ``.npy``: float32, shape (n, width), written a part at a time. ``.parquet``: columns ``name``
            (as in the file) and ``vector`` (array of float32), put together in memory.
        prepare: Applied to each name before it is encoded, e.g. normalisation.
        unit_length: Scale every vector to length 1.
        overwrite: Replace ``output``.
        progress: Called with (done, total).

    Returns:
        How many names there were.

    Raises:
        InputError: the file is missing, not UTF-8 (with the line), or ``output`` itself; the ending of ``output`` is
            unknown; or a vector is not all numbers (with the line).
        ArtifactExistsError: ``output`` exists.
    """
    output = Path(output)
    if output.suffix not in {".npy", ".parquet"}:
        raise InputError("unknown kind of file for vectors", path=output, expected="a name ending in .npy or .parquet")
    if is_same(output, Path(names)):
        raise InputError("input and output are the same file", path=output, fix="choose another output")
    ensure_file_writable(output, overwrite=overwrite)
    texts = read_lines(names)
    kept = KeptParts(output, n_names=len(texts), width=encoder.width)
    with write_file(output, overwrite=overwrite) as aside:
        if output.suffix == ".npy":
            vectors: FloatArray = new_array(aside, np.float32, (len(texts), encoder.width))
        else:
            vectors = np.empty((len(texts), encoder.width), np.float32)
        encode = partial(kept.encode, encoder, unit_length=unit_length)
        done = 0
        for part in encode_in_parts(encode, texts, prepare=prepare, progress=progress):
            is_finite = np.isfinite(part).all(axis=1)
            if not is_finite.all():
                raise InputError(
                    f"the encoder {encoder.name} gives a vector that is not all numbers",
                    path=names,
                    line=done + int(is_finite.argmin()) + 1,
                    fix="use another encoder, or precision; this one's training may have diverged",
                )
            vectors[done : done + len(part)] = part
            done += len(part)
        if isinstance(vectors, np.memmap):
            vectors.flush()
        else:
            table = pl.DataFrame(
                {"name": texts, "vector": pl.Series(vectors, dtype=pl.Array(pl.Float32, encoder.width))},
                schema_overrides={"name": pl.String},
            )
            table.write_parquet(aside)
    kept.discard()
    return len(texts)
