"""Many names encoded a part at a time; what is done is kept on disk, so that whoever was stopped does not begin anew.

Millions of names take hours. Their parts lie in ``OUT.encoded`` until OUT is whole. A part is a file, written aside and
renamed, whose name is a digest of all that its vectors come from: names, encoder, precision, version of Onoma. So
nothing of other names or of another encoder is ever taken for a part, and vectors are those of a run that was not
stopped, to the last bit where the same back end goes on: no batch reaches over the end of a part. A part ends in a
checksum of its vectors; one that was damaged meanwhile is encoded again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from onoma._version import __version__
from onoma.artifacts import write_file
from onoma.encoders.encoding import WINDOW_NAMES
from onoma.encoders.protocol import Encoder
from onoma.types import CountProgress, FloatArray

PART_NAMES = WINDOW_NAMES
"""Names in a part: half a minute's work of a small encoder on two cores."""
_SUFFIX = ".encoded"
_KEPT = re.compile(r"\.?[0-9a-f]{64}\.npy(\.partial-[0-9a-f.-]+)?")
_ROOM = 3
"""Room on the disk without which nothing is kept, as a multiple of what all parts take: the output needs some too."""


class EncodePart(Protocol):
    """`Encoder.encode`, or what does the same."""

    def __call__(self, texts: Sequence[str], *, progress: CountProgress | None) -> FloatArray: ...


def encode_in_parts(
    encode: EncodePart,
    texts: Sequence[str],
    *,
    prepare: Callable[[str], str] | None = None,
    progress: CountProgress | None = None,
) -> Iterator[FloatArray]:
    """The vectors of all names in their order, a part at a time, so that memory stays bounded.

    Args:
        encode: Vectors of one part's names.
        texts: All names.
        prepare: Applied to each name before it is encoded.
        progress: Called with names done so far and in all.
    """
    for start in range(0, len(texts), PART_NAMES):
        part = texts[start : start + PART_NAMES]
        report = None if progress is None else functools.partial(_report, progress, start, len(texts))
        yield encode([prepare(text) for text in part] if prepare else part, progress=report)
    if progress is not None and texts:
        progress(len(texts), len(texts))


class KeptParts:
    """What of a large output is encoded already.

    Nothing is kept of fewer names than make several parts, nor where the disk has little room or something else lies.

    Args:
        out: The file or folder that the vectors are for.
        n_names: Names to encode, about.
        width: Numbers in a vector.

    Attributes:
        folder: Where parts lie; it is made with the first of them.
    """

    def __init__(self, out: str | Path, *, n_names: int, width: int) -> None:
        target = Path(out).resolve()
        self.folder = target.with_name(target.name + _SUFFIX)
        needed = _ROOM * np.dtype(np.float32).itemsize * n_names * width
        is_taken = self.folder.exists() and not self.folder.is_dir()
        self._is_on = n_names > PART_NAMES and not is_taken and _room(target.parent) >= needed

    def encode(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        *,
        unit_length: bool = True,
        progress: CountProgress | None = None,
    ) -> FloatArray:
        """As `Encoder.encode`; from the disk, and without progress, if these names were encoded before."""
        if not self._is_on:
            return encoder.encode(texts, progress=progress, unit_length=unit_length)
        file = self.folder / f"{_digest(encoder, texts, unit_length)}.npy"
        vectors = _load(file, (len(texts), encoder.width))
        if vectors is not None:
            return vectors
        vectors = encoder.encode(texts, progress=progress, unit_length=unit_length)
        with write_file(file, overwrite=True) as aside, aside.open("wb") as opened:
            np.save(opened, vectors)
            opened.write(_checksum(vectors))
        return vectors

    def discard(self) -> None:
        """Remove the parts, when the output is whole; what else lies in the folder stays."""
        if not self.folder.is_dir():
            return
        for file in list(self.folder.iterdir()):
            if _KEPT.fullmatch(file.name):
                file.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()


def _report(progress: CountProgress, done_before: int, total: int, done: int, _total: int) -> None:
    """Progress within one part, told as progress within the whole."""
    progress(done_before + done, total)


def _room(folder: Path) -> int:
    """Bytes that are free where a folder lies or will lie."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return shutil.disk_usage(there).free


def _digest(encoder: Encoder, texts: Sequence[str], unit_length: bool) -> str:
    """SHA-256 of what vectors come from."""
    about = [__version__, encoder.fingerprint, encoder.precision, encoder.width, unit_length]
    digest = hashlib.sha256(json.dumps(about).encode())
    for text in texts:
        known = text.encode("utf-8", "surrogatepass")
        digest.update(len(known).to_bytes(8, "little"))
        digest.update(known)
    return digest.hexdigest()


def _load(file: Path, shape: tuple[int, int]) -> FloatArray | None:
    """A part, or ``None`` if it is not there or not as it was written."""
    try:
        with file.open("rb") as opened:
            vectors = np.load(opened, allow_pickle=False)
            checksum = opened.read()
    except (OSError, ValueError, EOFError):
        return None
    if vectors.shape != shape or vectors.dtype != np.float32 or checksum != _checksum(vectors):
        return None
    found: FloatArray = vectors
    return found


def _checksum(vectors: FloatArray) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(vectors).data).digest()
