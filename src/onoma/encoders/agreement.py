"""How far an encoder in a lower precision agrees with the same encoder in fp32, measured on names."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
from pydantic import BaseModel, ConfigDict

from onoma.encoders.folders import LOWER_PRECISIONS, onnx_name
from onoma.errors import DamagedArtifactError, InputError, MismatchError
from onoma.types import BoolArray, CountProgress, FloatArray

if TYPE_CHECKING:
    from onoma.encoders.protocol import Encoder

AGREEMENT_NAME = "onnx/agreement.json"
MIN_NAMES = 100
"""Fewer have no first percentile worth the name."""

_AT_ONCE = 512
_TIE = 1e-6
"""Cosines closer than this are equal but for rounding: either name is the nearest."""


class Agreement(BaseModel):
    """What was measured of one precision."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    precision: str
    n_names: int
    """Distinct texts that it was measured on."""
    names_sha256: str
    """Of these texts, one a line."""
    mean_cosine: float
    """Of each name's vector with its vector in fp32."""
    percentile_1_cosine: float
    """Ninety-nine of a hundred names have a larger one."""
    same_neighbour: float
    """Share of names whose nearest other name is the one that fp32 finds."""
    speed: float
    """Names per second divided by those of fp32, on the machine and with the threads of the measurement."""
    bytes: int
    """Of the ONNX model."""
    fp32_bytes: int
    onnxruntime: str
    """Version that ran both."""


def measure_agreement(
    exact: Encoder, lowered: Sequence[Encoder], names: Sequence[str], *, progress: CountProgress | None = None
) -> list[Agreement]:
    """Encode the same names in fp32 and in lower precisions, and compare.

    The encoders take turns, a part of the names each, and their speed is the median over the parts, so that a machine
    which gets slower or faster meanwhile does so for all.

    Args:
        exact: In fp32.
        lowered: The same encoder in lower precisions, by the same back end.
        names: As users will have them: prepared, of the dictionary that will be searched. Equal ones count once.
        progress: Called with (names done, names in all).

    Returns:
        What was measured, in the order of ``lowered``.

    Raises:
        InputError: fewer than `MIN_NAMES` different names.
        MismatchError: a vector in a lower precision is not made of numbers.
    """
    texts = list(dict.fromkeys(names))
    if len(texts) < MIN_NAMES:
        raise InputError(
            "too few names to measure on",
            expected=f"at least {MIN_NAMES} different ones",
            found=str(len(texts)),
            fix="give the dictionary that the encoder is to search (--terminology DIR or --names FILE)",
        )
    encoders = (exact, *lowered)
    for encoder in encoders:
        encoder.encode(texts[:8])  # the first call pays for memory
    parts: list[list[FloatArray]] = [[] for _ in encoders]
    seconds: list[list[float]] = [[] for _ in encoders]
    for begin in range(0, len(texts), _AT_ONCE):
        for which, encoder in enumerate(encoders):
            started = time.perf_counter()
            parts[which].append(encoder.encode(texts[begin : begin + _AT_ONCE]))
            seconds[which].append(time.perf_counter() - started)
        if progress is not None:
            progress(min(begin + _AT_ONCE, len(texts)), len(texts))
    expected, *found = (np.concatenate(part) for part in parts)
    return [
        _compared(exact, encoder, texts, expected, vectors, float(np.median(np.divide(seconds[0], own))))
        for encoder, vectors, own in zip(lowered, found, seconds[1:], strict=True)
    ]


def _compared(
    exact: Encoder, lower: Encoder, texts: Sequence[str], expected: FloatArray, found: FloatArray, speed: float
) -> Agreement:
    precision = lower.folder.precision
    if not np.isfinite(found).all():
        raise MismatchError(f"in {precision} this encoder gives vectors that are not numbers; keep it in another one.")
    cosines = (expected * found).sum(1)
    exact_onnx, onnx = exact.folder.onnx, lower.folder.onnx
    assert exact_onnx is not None  # both run by ONNX Runtime
    assert onnx is not None
    return Agreement(
        precision=precision,
        n_names=len(texts),
        names_sha256=hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest(),
        mean_cosine=round(float(cosines.mean()), 6),
        percentile_1_cosine=round(float(np.percentile(cosines, 1)), 6),
        same_neighbour=round(float(_same_neighbour(expected, found).mean()), 4),
        speed=round(speed, 2),
        bytes=model_bytes(onnx),
        fp32_bytes=model_bytes(exact_onnx),
        onnxruntime=onnxruntime.__version__,
    )


def _same_neighbour(expected: FloatArray, found: FloatArray) -> BoolArray:
    """Whether each name's nearest other name is the same, or as near in fp32, shape (n,)."""
    same = np.zeros(len(expected), bool)
    for begin in range(0, len(expected), _AT_ONCE):
        rows = np.arange(begin, min(begin + _AT_ONCE, len(expected)))
        true, theirs = expected[rows] @ expected.T, found[rows] @ found.T
        own = np.arange(len(rows))
        true[own, rows] = theirs[own, rows] = -2  # below every cosine
        same[rows] = true[own, theirs.argmax(1)] >= true.max(1) - _TIE
    return same


def model_bytes(onnx: Path) -> int:
    """Size of an ONNX model, with the file beside it that a very large one has."""
    beside = onnx.with_name(f"{onnx.name}.data")
    return onnx.stat().st_size + (beside.stat().st_size if beside.exists() else 0)


def read_agreements(folder: Path) -> dict[str, Agreement]:
    """What was measured of the precisions that an encoder's folder has, by precision.

    Raises:
        DamagedArtifactError: the file is not what `write_agreements` writes.
    """
    file = folder / AGREEMENT_NAME
    if not file.is_file():
        return {}
    try:
        read = {key: Agreement.model_validate(entry) for key, entry in json.loads(file.read_text("utf-8")).items()}
    except (ValueError, AttributeError) as error:
        raise DamagedArtifactError(f"{file} is not readable ({error}). Export the precisions again.") from None
    return {key: read[key] for key in LOWER_PRECISIONS if key in read and (folder / onnx_name(key)).is_file()}


def write_agreements(folder: Path, agreements: Sequence[Agreement]) -> None:
    """Write down what was measured, replacing what was known of the same precisions."""
    known = {**read_agreements(folder), **{agreement.precision: agreement for agreement in agreements}}
    text = json.dumps({key: known[key].model_dump() for key in sorted(known)}, indent=1)
    (folder / AGREEMENT_NAME).write_text(text + "\n", encoding="utf-8")
