"""A trained encoder as a small file: what is to be added to the weights of the encoder that it was trained from.

The difference of two encoders of one architecture is kept as the product of two narrow matrices for each weight matrix
of a layer (the best of its rank: Eckart and Young 1936), and whole for biases and layer norms. Embeddings stay those of
the base. A small encoder so needs a few MB in place of ninety, and travels inside Onoma.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from onoma.encoders.packed import PackedEncoder
from onoma.errors import ConfigError, DamagedArtifactError, MismatchError

_LEFT, _RIGHT = ".left", ".right"
_ABOUT = "about"


def write_update(
    base: PackedEncoder, trained: PackedEncoder, file: str | Path, *, rank: int, about: Mapping[str, Any]
) -> None:
    """Write what turns ``base`` into ``trained``, as nearly as the rank allows.

    Args:
        base: Before training.
        trained: After it; of the same architecture.
        file: A ``.safetensors`` file; replaced if it is there.
        rank: Of the update of each matrix.
        about: What `read_about` gives back; JSON.

    Raises:
        MismatchError: the two are not of one architecture.
        ConfigError: the rank is below 1.
    """
    if rank < 1:
        raise ConfigError(f"the rank of an update is 1 or more; found {rank}.")
    before, after = base.model.state_dict(), trained.model.state_dict()
    if {name: weight.shape for name, weight in before.items()} != {name: w.shape for name, w in after.items()}:
        raise MismatchError("the trained encoder is not of the architecture of its base, so there is no difference.")
    tensors = {}
    for name, weight in before.items():
        if not weight.is_floating_point() or _is_embedding(name, weight):
            continue
        change = (after[name] - weight).double()
        if weight.dim() < 2:
            tensors[name] = change.float()
            continue
        left, sizes, right = torch.linalg.svd(change, full_matrices=False)
        # Each side takes the square root of the size, so that both keep well within half precision.
        roots = sizes[:rank].sqrt()
        tensors[name + _LEFT] = (left[:, :rank] * roots).half().contiguous()
        tensors[name + _RIGHT] = (roots[:, None] * right[:rank]).half().contiguous()
    save_file(tensors, file, metadata={_ABOUT: json.dumps(dict(about))})


def add_update(base: PackedEncoder, file: str | Path) -> dict[str, Any]:
    """Add an update to the weights of the encoder that it is for, in place.

    Returns:
        What was said about it when it was written.

    Raises:
        DamagedArtifactError: the file is not a whole update.
        MismatchError: it is of another encoder.
    """
    try:
        with safe_open(file, framework="pt") as opened:
            about: dict[str, Any] = json.loads(opened.metadata()[_ABOUT])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise DamagedArtifactError(f"{file} is not a readable update of an encoder ({error}).") from None
    weights = base.model.state_dict()
    with torch.no_grad():
        for name, tensor in tensors.items():
            target = weights.get(name.removesuffix(_LEFT).removesuffix(_RIGHT))
            if name.endswith(_RIGHT):
                continue
            other = tensors.get(name.removesuffix(_LEFT) + _RIGHT) if name.endswith(_LEFT) else None
            change = tensor if other is None else tensor.float() @ other.float()
            if target is None or target.shape != change.shape:
                raise MismatchError(f"{file} is an update of another encoder: {name} does not fit.")
            target.add_(change)
    return about


def _is_embedding(name: str, weight: torch.Tensor) -> bool:
    return "embeddings" in name and weight.dim() == 2
