"""A trained encoder as a small file: what is to be added to the weights of the encoder that it was trained from.

The difference of two encoders of one architecture is kept in four bits a number for each weight matrix of a layer, each
block of 64 numbers with a scale of its own (as Dettmers et al. 2023, QLoRA, keep weights; levels are evenly spaced
here), and whole for biases and layer norms. Embeddings stay those of the base. A small encoder so needs a few MB in
place of ninety, and travels inside Onoma.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from onoma.artifacts.system import is_of_system
from onoma.encoders.packed import PackedEncoder
from onoma.errors import DamagedArtifactError, MismatchError

_LEVELS, _SCALES = ".levels", ".scales"
_ABOUT = "about"
_BLOCK = 64
"""Numbers that share a scale."""
_TOP = 7
"""Levels are the whole numbers from -7 to 7, kept as 1 to 15, two in a byte."""
_SHARES_OF_LARGEST = tuple(one / 20 for one in range(12, 21))
"""What the top level may stand for, as shares of a block's largest number."""


def write_update(base: PackedEncoder, trained: PackedEncoder, file: str | Path, *, about: Mapping[str, Any]) -> None:
    """Write what turns ``base`` into ``trained``, as nearly as four bits a number allow.

    Args:
        base: Before training.
        trained: After it; of the same architecture.
        file: A ``.safetensors`` file; replaced if it is there.
        about: What `add_update` gives back; JSON.

    Raises:
        MismatchError: the two are not of one architecture, or their embeddings differ.
    """
    before, after = base.model.state_dict(), trained.model.state_dict()
    if {name: weight.shape for name, weight in before.items()} != {name: w.shape for name, w in after.items()}:
        raise MismatchError("the trained encoder is not of the architecture of its base, so there is no difference.")
    tensors = {}
    for name, weight in before.items():
        if not weight.is_floating_point():
            continue
        if _is_embedding(name, weight):
            if not torch.equal(after[name], weight):
                raise MismatchError(
                    f"{name} was trained too, and an update has no room for embeddings: use tuning=layers."
                )
            continue
        change = after[name].float() - weight.float()
        if weight.dim() < 2:
            tensors[name] = change
        else:
            tensors[name + _LEVELS], tensors[name + _SCALES] = _in_four_bits(change)
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
        if is_of_system(error):
            raise
        raise DamagedArtifactError(f"{file} is not a readable update of an encoder ({error}).") from None
    weights = base.model.state_dict()
    wanted = [name for name, one in weights.items() if one.is_floating_point() and not _is_embedding(name, one)]
    found = [name.removesuffix(_LEVELS).removesuffix(_SCALES) for name in tensors]
    changes = {}
    for name in dict.fromkeys([*wanted, *found]):
        target = weights.get(name)
        change = None if target is None else _change(tensors, name, target)
        if target is None or change is None:
            raise MismatchError(f"{file} is an update of another encoder: {name} does not fit.")
        changes[name] = target, change
    with torch.no_grad():
        for target, change in changes.values():
            target.add_(change)
    return about


def _in_four_bits(change: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Levels, two in a byte, and the scale of each block; a short last block is filled up with noughts."""
    flat = change.flatten()
    blocks = torch.nn.functional.pad(flat, (0, -flat.numel() % _BLOCK)).view(-1, _BLOCK)
    largest = blocks.abs().amax(dim=1, keepdim=True)
    best_scales = torch.zeros_like(largest)
    best_errors = torch.full_like(largest, torch.inf)
    # A top level below the largest number cuts that one off and is nearer to the many others.
    for share in _SHARES_OF_LARGEST:
        scales = (largest * share / _TOP).half().float()
        errors = (blocks - _levels(blocks, scales) * scales).square().sum(dim=1, keepdim=True)
        better = errors < best_errors
        best_scales, best_errors = torch.where(better, scales, best_scales), torch.where(better, errors, best_errors)
    kept = (_levels(blocks, best_scales) + _TOP + 1).to(torch.uint8).view(-1, 2)
    return kept[:, 0] | kept[:, 1] << 4, best_scales.flatten().half()


def _levels(blocks: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return torch.where(scales > 0, blocks / scales, 0.0).round().clamp(-_TOP, _TOP)


def _change(tensors: Mapping[str, torch.Tensor], name: str, target: torch.Tensor) -> torch.Tensor | None:
    """What is to be added to a weight; None if it is of another shape, or not whole."""
    if name in tensors:
        return tensors[name] if tensors[name].shape == target.shape else None
    levels, scales = tensors.get(name + _LEVELS), tensors.get(name + _SCALES)
    n_blocks = -(-target.numel() // _BLOCK)
    if levels is None or levels.shape != (n_blocks * _BLOCK // 2,) or scales is None or scales.shape != (n_blocks,):
        return None
    numbers = torch.stack([levels & 15, levels >> 4], dim=1).float() - (_TOP + 1)
    change = numbers.view(-1, _BLOCK) * scales.float()[:, None]
    return change.flatten()[: target.numel()].view(target.shape)


def _is_embedding(name: str, weight: torch.Tensor) -> bool:
    return "embeddings" in name and weight.dim() == 2
