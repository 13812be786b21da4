"""An encoder without what all names have in common: the mean of their vectors is subtracted inside its weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from onoma.artifacts import Parent, ensure_writable, holds, read_manifest
from onoma.encoders.adapters import is_adapter_name
from onoma.encoders.averages import common_origin
from onoma.encoders.encoding import checked_names
from onoma.encoders.folders import ENCODER_KIND, EncoderFolder
from onoma.encoders.kept_parts import encode_in_parts
from onoma.encoders.loading import load_folder
from onoma.encoders.saving import save_encoder
from onoma.encoders.sources import locate_encoder
from onoma.encoders.torch_encoder import TorchEncoder
from onoma.errors import ConfigError, InputError, checked_path
from onoma.types import CountProgress, FloatArray

LEAST_NAMES = 100
"""Fewer have more in common than names in general have."""
_PROBED_NAMES = 8
_TOLERANCE = 1e-4
"""Of a vector's length, by how much it may come out elsewhere than it was moved to."""


@dataclasses.dataclass(frozen=True, slots=True)
class Centred:
    """The encoder that was written, and what was subtracted.

    Attributes:
        folder: The encoder.
        n_names: Distinct names over which the mean was taken.
        share: Length of the mean, as a share of the names' mean length: 0 if they have nothing in common.
    """

    folder: EncoderFolder
    n_names: int
    share: float


def centre_encoder(
    source: str | Path,
    names: Sequence[str],
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: CountProgress | None = None,
) -> Centred:
    """Write an encoder whose vectors, before scaling to length 1, are another's minus the mean of those of ``names``.

    Losses that push names of two concepts apart only if they are more similar than a margin, such as multi-similarity,
    leave a direction that all vectors share, which raises every cosine and hides differences. The bias of the last
    layer norm removes it at no cost. Whether that helps must be measured: for an encoder that no such loss has trained,
    it does not.

    Args:
        source: A folder, a catalogue name or a hub id.
        names: 100 different ones or more, of the kind to be compared, and prepared in the same way
            (`onoma.terminology.normalise`, ``EncoderFolder.normalisation``).
        out: The encoder folder to write.
        overwrite: Replace an encoder that is there.
        progress: Called with the numbers of names encoded so far and in all.

    Returns:
        What was written. The weight of n-grams is not kept, as it was learned beside other cosines.

    Raises:
        ConfigError: there are too few names; or the encoder has bottlenecks, or does not end in a layer norm with a
            bias, so that nothing in its weights can subtract the mean.
        InputError: it is not an encoder, gives no finite numbers, or is at the place where the centred one is to be
            written; or ``names`` is one string.
        ArtifactExistsError: ``out`` is taken.
        UnavailableError: it, or torch, is not on this machine.

    Source:
        Mu and Viswanath 2018, "All-but-the-top: simple and effective postprocessing for word representations", without
        its second step: leaving directions out, too, lost more than it gained.
    """
    folder = locate_encoder(source)
    texts = list(dict.fromkeys(name for name in checked_names(names) if name.strip()))
    if len(texts) < LEAST_NAMES:
        raise ConfigError(f"a mean is of {LEAST_NAMES} different names or more; found {len(texts)}.")
    if holds(checked_path(out), folder.path):
        raise InputError("the centred encoder would be written over its source", path=out, fix="choose another place")
    ensure_writable(out, ENCODER_KIND, overwrite=overwrite)
    packed = load_folder(folder)
    if any(is_adapter_name(name) for name in packed.model.state_dict()):
        raise ConfigError(
            f"{folder.path} has adapters inside, and with its frozen weights changed they would be another encoder's."
        )
    encoder = TorchEncoder(packed)
    total, lengths = np.zeros(packed.width), 0.0
    for vectors in encode_in_parts(lambda part, *, progress: _raw(encoder, part, progress), texts, progress=progress):
        total += vectors.sum(axis=0, dtype=np.float64)
        lengths += float(np.linalg.norm(vectors.astype(np.float64), axis=1).sum())
    mean = (total / len(texts)).astype(np.float32)
    if not np.isfinite(mean).all():
        raise InputError(f"vectors of {folder.path} are not finite: its training has diverged")
    packed.source = dataclasses.replace(folder, **common_origin([folder]))
    _take_off(encoder, packed.model, mean, texts[:_PROBED_NAMES])
    share = float(np.linalg.norm(mean)) * len(texts) / lengths
    written = save_encoder(
        packed,
        out,
        max_tokens=folder.max_tokens,
        config={
            **(read_manifest(folder.path).config if folder.is_own else {}),
            "centred": {"names": len(texts), "share": round(share, 4)},
        },
        parents=[Parent(kind=ENCODER_KIND, fingerprint=folder.fingerprint)],
        overwrite=overwrite,
    )
    return Centred(written, len(texts), share)


def _raw(encoder: TorchEncoder, texts: Sequence[str], progress: CountProgress | None = None) -> FloatArray:
    return encoder.encode(texts, progress=progress, unit_length=False)


def _take_off(encoder: TorchEncoder, model: nn.Module, mean: FloatArray, probes: Sequence[str]) -> None:
    """Move the vectors of all names by ``-mean``, through the bias that does it."""
    before = _raw(encoder, probes)
    allowed = _TOLERANCE * float(np.linalg.norm(before, axis=1).max())
    norms = [part for part in model.modules() if isinstance(part, nn.LayerNorm) and part.bias is not None]
    for norm in reversed(norms):
        if norm.bias.shape != mean.shape:
            continue
        kept = norm.bias.detach().clone()
        with torch.no_grad():
            norm.bias.sub_(torch.from_numpy(mean))
            if np.abs(_raw(encoder, probes) - (before - mean)).max() <= allowed:
                return
            norm.bias.copy_(kept)
    raise ConfigError(
        f"{encoder.folder.path} does not end in a layer norm with a bias, which alone can take a mean off."
    )
