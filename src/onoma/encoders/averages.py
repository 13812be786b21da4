"""Make several encoders that were trained from one into one: the average of their weights."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from onoma.artifacts import Parent, carried_origins, holds, read_manifest
from onoma.encoders.adapters import is_adapter_name
from onoma.encoders.folders import ENCODER_KIND, EncoderFolder, Origin
from onoma.encoders.loading import load_folder
from onoma.encoders.model_card import data_of
from onoma.encoders.saving import save_encoder
from onoma.encoders.sources import locate_encoder
from onoma.errors import ConfigError, InputError, MismatchError, checked_path

_LEAST_COSINE = 0.5
"""Of all matrices of two encoders, or those in adapters: near 1 if trained from one, near 0 if each began at random."""

_DECIDES_BESIDES_WEIGHTS: Mapping[str, Callable[[EncoderFolder], object]] = {
    "tokenisers": lambda one: one.tokenizer_fingerprint[:12],
    "poolings": lambda one: one.pooling,
    "lower-casing": lambda one: one.lower_case,
}


def average_encoders(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    shares: Sequence[float] | None = None,
    overwrite: bool = False,
) -> EncoderFolder:
    """Write the weighted average of the weights of several encoders that were trained from the same one.

    It runs as fast as one of them, and can be better than each: for runs with other seeds, with other data, or one
    after the other. Whether it is must be measured.

    Args:
        sources: Folders, catalogue names or hub ids, two or more. The first one's tokeniser files are used.
        out: The encoder folder to write.
        shares: A positive weight for each, with any sum; unset: all the same.
        overwrite: Replace an encoder that is there.

    Returns:
        The folder written. It truncates names where the encoder that reads the fewest tokens does; the weight of
        n-grams is averaged too, an unset one counting as 0. The manifest names all encoders with their shares, and
        keeps the settings of training that all have in common.

    Raises:
        ConfigError: there are fewer than two, or a share is missing or not positive.
        MismatchError: they differ in architecture, tokeniser, pooling or preparation of names, or their weights have so
            little in common that they were not trained from one, or their adapters so little that each began at random.
        InputError: one of them is not an encoder, or is at the place where the average is to be written.
        ArtifactExistsError: ``out`` is taken.
        UnavailableError: one of them, or torch, is not on this machine.

    Source:
        Wortsman et al. 2022, "Model soups: averaging weights of multiple fine-tuned models improves accuracy without
        increasing inference time".
    """
    if isinstance(sources, str | Path) or len(sources) < 2:
        raise ConfigError("an average is of two encoders or more; name each of them.")
    weights = [1.0] * len(sources) if shares is None else [float(share) for share in shares]
    if len(weights) != len(sources) or not all(0 < weight < math.inf for weight in weights):
        raise ConfigError(
            f"shares are positive numbers, one for each encoder ({len(sources)} here); found {list(shares or ())}."
        )
    relative = [weight / max(weights) for weight in weights]  # of the largest, so that no sum overflows
    weights = [weight / math.fsum(relative) for weight in relative]
    folders = [locate_encoder(source) for source in sources]
    if any(holds(checked_path(out), folder.path) for folder in folders):
        raise InputError("the average would be written over one of its encoders", path=out, fix="choose another place")
    for folder in folders[1:]:
        _refuse_difference(folders[0], folder)
    encoder = load_folder(folders[0])
    average = encoder.model.state_dict()
    first = {name: weight.clone() for name, weight in average.items()}
    for weight in filter(torch.Tensor.is_floating_point, average.values()):
        weight.mul_(weights[0])
    for share, folder in zip(weights[1:], folders[1:], strict=True):
        other = load_folder(folder).model.state_dict()
        _refuse_strangers(folders[0], first, folder, other)
        for name, weight in average.items():
            if weight.is_floating_point():
                weight.add_(other[name], alpha=share)
    encoder.source = dataclasses.replace(
        folders[0],
        **common_origin(folders),
        trained_on=next((one.trained_on for one in folders if one.trained_on), None),  # an untrained base says nothing
        # Were all weights the same, so is the average, and would be called the one that they were trained from.
        recorded_weights_sha256=hashlib.sha256("".join(one.fingerprint for one in folders).encode()).hexdigest(),
    )
    learned = [(share, folder.sparse_weight) for share, folder in zip(weights, folders, strict=True)]
    has_learnt = any(weight is not None for _, weight in learned)
    return save_encoder(
        encoder,
        out,
        max_tokens=min(folder.max_tokens for folder in folders),
        config=_config(folders, weights),
        parents=[Parent(kind=ENCODER_KIND, fingerprint=folder.fingerprint) for folder in folders],
        sparse_weight=math.fsum(share * (weight or 0) for share, weight in learned) if has_learnt else None,
        overwrite=overwrite,
    )


def _refuse_difference(first: EncoderFolder, other: EncoderFolder) -> None:
    """What decides a vector besides the weights must be the same."""
    for what, decides in _DECIDES_BESIDES_WEIGHTS.items():
        here, there = decides(first), decides(other)
        if here != there:
            raise _difference(first, other, f"{what} ({here}; {there})")
    presets = {first.trained_on, other.trained_on} - {None}
    if len(presets) > 1:
        raise _difference(first, other, f"preparations of names ({first.trained_on}; {other.trained_on})")


def _difference(first: EncoderFolder, other: EncoderFolder, what: str) -> MismatchError:
    return MismatchError(f"{first.path} and {other.path} cannot be averaged: they differ in {what}.")


def _refuse_strangers(
    first: EncoderFolder,
    weights: Mapping[str, torch.Tensor],
    other: EncoderFolder,
    other_weights: Mapping[str, torch.Tensor],
) -> None:
    """Averages of encoders that were not trained from one are worth nothing."""
    if {name: one.shape for name, one in weights.items()} != {name: one.shape for name, one in other_weights.items()}:
        raise MismatchError(f"{first.path} and {other.path} cannot be averaged: they differ in architecture.")
    matrices = [name for name, weight in weights.items() if weight.is_floating_point() and weight.dim() > 1]
    if not (cosine := _cosine(weights, other_weights, matrices)) >= _LEAST_COSINE:
        raise MismatchError(
            f"{first.path} and {other.path} cannot be averaged: they were not trained from one encoder (cosine of "
            f"their weights {cosine:.2f}; of encoders that were, it is nearly 1)."
        )
    in_adapters = [name for name in matrices if is_adapter_name(name)]  # each run of another seed draws its own
    if in_adapters and not (cosine := _cosine(weights, other_weights, in_adapters)) >= _LEAST_COSINE:
        raise MismatchError(
            f"{first.path} and {other.path} cannot be averaged: their adapters began from different random weights "
            f"(cosine {cosine:.2f}). Train them with one seed; seeds may differ where all, layers or lora is tuned."
        )


def _cosine(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor], names: Sequence[str]) -> float:
    """Of some weights of two encoders, all numbers as one vector."""
    products = [0.0, 0.0, 0.0]
    for name in names:
        pairs = ((one[name], other[name]), (one[name], one[name]), (other[name], other[name]))
        for at, (left, right) in enumerate(pairs):
            products[at] += float((left.double() * right.double()).sum())
    return products[0] / math.sqrt(products[1] * products[2])


def common_origin(folders: Sequence[EncoderFolder]) -> dict[str, Any]:
    """``name`` and ``origin`` for the folder of what is made of encoders, and is no training of its own.

    They are those of the encoder that all were trained from, which may be one of them, as far as all say the same.
    """
    lines = [_line(one) for one in folders]
    for name, origin in lines[0]:
        known = (name, origin.hub_id, origin.licence)
        if all(known in [(other, its.hub_id, its.licence) for other, its in line] for line in lines[1:]):
            return {"name": name, "origin": origin}
    return {"name": " and ".join(dict.fromkeys(one.name for one in folders)), "origin": Origin()}


def _line(folder: EncoderFolder) -> list[tuple[str, Origin]]:
    """What an encoder was trained from, and itself, as the base of what is trained from it; the base first."""
    known = folder.origin
    base_hub_id, base_licence = known.nearest_on_hub()
    itself = (
        folder.name,
        Origin(hub_id=known.hub_id, licence=known.licence, base_hub_id=base_hub_id, base_licence=base_licence),
    )
    if known.base is None:
        return [itself]
    base = Origin(
        hub_id=known.base_hub_id,
        licence=known.base_licence,
        base_hub_id=known.ancestor_hub_id,
        base_licence=known.ancestor_licence,
    )
    return [(known.base, base), itself]


def _config(folders: Sequence[EncoderFolder], shares: Sequence[float]) -> dict[str, Any]:
    configs = [read_manifest(one.path).config if one.is_own else {} for one in folders]
    settings: list[Mapping[str, Any]] = [config.get("training", {}) for config in configs]
    missing = object()
    common = {
        key: value for key, value in settings[0].items() if all(one.get(key, missing) == value for one in settings)
    }
    recipes = [config.get("recipe") or {} for config in configs]
    recipe = {
        "name": recipes[0].get("name"),
        "overridden": sorted({key for one in recipes for key in one.get("overridden", ())}),
    }
    terminologies = dict.fromkeys(one for config in configs for one in config.get("terminology", ()))
    mentions = sorted({one for folder in folders for one in folder.trained_mentions})
    widths = [
        width for width in folders[0].trained_dimensions if all(width in one.trained_dimensions for one in folders)
    ]
    pairs: list[Mapping[str, Any]] = []
    for config in configs:
        own = config.get("pairs")
        pairs += [one for one in (own.get("merged") or [own] if own else []) if one not in pairs]
    averaged = [
        {"name": one.name, "share": round(share, 6), **({"centred": True} if config.get("centred") else {})}
        for one, share, config in zip(folders, shares, configs, strict=True)
    ]
    told = {
        key: "; ".join(dict.fromkeys(str(config[key]) for config in configs if config.get(key)))
        for key in ("earlier", "teacher")
    }
    return {
        "averaged": averaged,
        **{key: said for key, said in told.items() if said},
        **data_of(configs),
        **({"training": common} if common else {}),
        **({"recipe": recipe} if recipe["name"] and len({one.get("name") for one in recipes}) == 1 else {}),
        **({"terminology": list(terminologies)} if terminologies else {}),
        **({"pairs": {"merged": pairs}} if pairs else {}),
        **carried_origins(*configs),
        **({"trained_dimensions": widths} if widths else {}),
        **({"trained_mentions": mentions} if mentions else {}),
    }
