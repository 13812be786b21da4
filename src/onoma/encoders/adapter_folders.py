"""Adapters on disk: what was trained beside a frozen encoder, in a folder of its own that can be published.

::

    onoma.json                  manifest (artefact kind "adapter")
    adapter.json                kind, sizes, pooling, and which encoder it belongs to
    adapter_model.safetensors   its weights
    README.md                   its card
    adapter_config.json         LoRA only: PEFT's own file, so that ``PeftModel.from_pretrained`` opens the folder

An adapter belongs to the weights beside which it was trained, identified by their SHA-256, and is loaded on no others.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from onoma.artifacts import CARD_NAME, Parent, holds, open_artifact, sha256_file, write_artifact
from onoma.artifacts.system import is_of_system
from onoma.encoders.adapters import CoupledNorm, adapter_tensors, has_adapters, insert_saved
from onoma.encoders.catalogue import known_names
from onoma.encoders.folders import ADAPTED_PREFIX, ADAPTER_KIND, EncoderFolder, Origin
from onoma.encoders.json_files import read_json, write_json
from onoma.encoders.loading import load_model, quiet_transformers
from onoma.encoders.lora import has_lora, insert_saved_lora, lora_config, lora_tensors, merged
from onoma.encoders.markdown import plain, table
from onoma.encoders.model_card import data_section
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.pooling import Pooling
from onoma.encoders.saving import save_encoder
from onoma.encoders.sources import locate_encoder
from onoma.errors import (
    ConfigError,
    DamagedArtifactError,
    InputError,
    MismatchError,
    UnavailableError,
    checked_path,
    first_line,
)

ADAPTER_ABOUT_NAME = "adapter.json"
ADAPTER_WEIGHTS_NAME = "adapter_model.safetensors"
"""PEFT's name for them."""
SUBFOLDER = "adapter"
"""Where an encoder folder has the adapter it was trained with, on its own."""


class AdapterAbout(BaseModel):
    """What an adapter says about itself (file ``adapter.json``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: Literal["bottleneck", "lora"]
    base: str
    """Name of the encoder it was trained on: the hub's or the catalogue's if it came from there."""
    base_weights_sha256: str
    tokenizer_fingerprint: str
    pooling: Pooling
    max_tokens: int
    lower_case: bool | None = None
    """See `onoma.encoders.folders.EncoderFolder`; no part of the tokeniser. Unset: as the base does."""
    width: int
    """Of the encoder."""
    parameters: int
    """Numbers in the adapter."""
    sparse_weight: float | None = None
    """See `onoma.encoders.folders.EncoderFolder.sparse_weight`."""
    settings: dict[str, int | float | bool]
    """Bottleneck: ``reduction`` and ``invertible``; LoRA: ``rank`` and ``alpha``."""


def trained_adapter(model: torch.nn.Module) -> Literal["bottleneck", "lora"] | None:
    """The part beside the frozen weights of a model prepared by `onoma.training.tuning.tune`; None for other models."""
    if has_lora(model):
        return "lora"
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return "bottleneck" if has_adapters(model) and trained == adapter_tensors(model).keys() else None


def save_adapter(
    encoder: PackedEncoder,
    out: str | Path,
    *,
    name: str | None = None,
    max_tokens: int | None = None,
    sparse_weight: float | None = None,
    config: Mapping[str, Any] | None = None,
    parents: Sequence[Parent] = (),
    seed: int | None = None,
) -> AdapterAbout:
    """Save what was trained beside a frozen encoder, without the encoder.

    Args:
        encoder: Prepared by `onoma.training.tuning.tune` and trained, or not yet.
        out: The folder to write.
        name: Name of the adapter; unset: the name of ``out``.
        max_tokens: Length at which names are cut; unset: the encoder's.
        sparse_weight: See `onoma.encoders.folders.EncoderFolder`.
        config: The settings that made it, for the manifest.
        parents: What it was made from.
        seed: Of every random choice made.

    Returns:
        What was written about it.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        ConfigError: the encoder came from no folder, or nothing was trained beside frozen weights.
    """
    kind = trained_adapter(encoder.model)
    if encoder.source is None or kind is None:
        raise ConfigError(
            "only of an encoder that was loaded from a folder and trained with tuning=adapter or tuning=lora is there "
            "an adapter to save."
        )
    tensors = adapter_tensors(encoder.model) if kind == "bottleneck" else lora_tensors(encoder.model)
    about = AdapterAbout(
        name=name or Path(out).name,
        kind=kind,
        base=encoder.source.name,
        base_weights_sha256=encoder.source.weights_sha256,
        tokenizer_fingerprint=encoder.tokenizer_fingerprint,
        pooling=encoder.pooling,
        max_tokens=max_tokens or encoder.max_tokens,
        lower_case=encoder.source.lower_case,
        width=encoder.width,
        sparse_weight=sparse_weight,
        parameters=sum(tensor.numel() for tensor in tensors.values()),
        settings=_settings(encoder, tensors) if kind == "bottleneck" else _lora_settings(encoder),
    )
    with write_artifact(out, ADAPTER_KIND, config=config, parents=parents, seed=seed) as folder:
        contiguous = {key: tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()}
        save_file(contiguous, folder / ADAPTER_WEIGHTS_NAME, metadata={"format": "pt"})
        (folder / ADAPTER_ABOUT_NAME).write_text(
            about.model_dump_json(indent=1, exclude_none=True) + "\n", encoding="utf-8"
        )
        if kind == "lora":
            values = lora_config(encoder.model).to_dict()
            base = encoder.source.origin.hub_id or about.base  # as PEFT finds it
            values |= {"base_model_name_or_path": base, "inference_mode": True}
            text = json.dumps(values, indent=1, sort_keys=True, default=sorted)  # PEFT has sets in it
            (folder / "adapter_config.json").write_text(text + "\n", encoding="utf-8")
        (folder / CARD_NAME).write_text(_card(about, encoder.source.origin, config or {}, parents), encoding="utf-8")
    return about


def _card(about: AdapterAbout, base: Origin, config: Mapping[str, Any], parents: Sequence[Parent]) -> str:
    """The model card of an adapter alone."""
    head = ["library_name: peft"] if about.kind == "lora" else []
    head += ["tags:", *(f"- {tag}" for tag in ("onoma", "adapter", "biomedical", "entity-linking"))]
    if base.hub_id:
        head += [f"base_model: {json.dumps(base.hub_id)}", "base_model_relation: adapter"]
    kind = "LoRA" if about.kind == "lora" else "Bottleneck adapters"
    settings = ", ".join(f"{name} {value}" for name, value in about.settings.items())
    rows = [
        ("base", about.base + (f" ({base.hub_id})" if base.hub_id not in {None, about.base} else "")),
        ("licence of the base", base.licence or "not known here"),
        ("SHA-256 of the base's weights", f"`{about.base_weights_sha256}`"),
        ("settings", settings),
        ("numbers in it", f"{about.parameters:,}"),
        ("pooling, longest name", f"{about.pooling}, {about.max_tokens} tokens"),
    ]
    base_name = base.hub_id or (about.base if about.base in known_names() else "BASE")
    sections = [
        "\n".join(["---", *head, "---"]),
        f"# {plain(about.name)}",
        f"{kind} beside a frozen encoder of names; without that encoder it is of no use.",
        table(("", ""), rows),
        "A whole encoder of it, for Onoma and what Onoma links with:",
        f"    onoma encoder join ADAPTER --base {base_name} -o ENCODER",
    ]
    if config.get("pairs") or config.get("origins"):
        sections.append(data_section(config, {}, parents))
    return "\n\n".join(sections) + "\n"


def read_adapter(folder: str | Path) -> AdapterAbout:
    """What an adapter's folder says about it.

    Raises:
        InputError: there is nothing.
        ArtifactError: it is no adapter, or damaged.
    """
    path = checked_path(folder)
    open_artifact(path, ADAPTER_KIND)
    try:
        return AdapterAbout.model_validate_json((path / ADAPTER_ABOUT_NAME).read_bytes())
    except (OSError, ValidationError) as error:
        if is_of_system(error):
            raise
        raise DamagedArtifactError(
            f"{path / ADAPTER_ABOUT_NAME} does not describe an adapter ({first_line(error)}). Get the folder again."
        ) from None


def load_adapter(folder: str | Path, base: str | Path | None = None) -> PackedEncoder:
    """Load an adapter on the encoder it was trained on.

    LoRA is merged into the weights. A bottleneck stays a part of its own (see `onoma.encoders.adapters`).

    Args:
        folder: An adapter's folder, or that of an encoder that was trained with one.
        base: Folder, catalogue name or hub id; what the adapter says if not given.

    Returns:
        The encoder in evaluation mode, pooling, cutting and lower-casing as the adapter was trained. Save it with
        `save_encoder` or `join_adapter` to open it elsewhere.

    Raises:
        MismatchError: ``base`` is another encoder than the one it was trained on.
        InputError: there is no such encoder.
        ArtifactError: it is no adapter, or damaged.
        UnavailableError: the base, or PEFT, is not on this machine.
    """
    path = _adapter_path(folder)
    about = read_adapter(path)
    try:
        found = locate_encoder(base or about.base, pooling=about.pooling, max_tokens=about.max_tokens)
    except (InputError, UnavailableError) as error:
        if base is not None:
            raise
        raise UnavailableError(
            f"the adapter {path} was trained on {about.base}, which is not to be had by that name ({error}). Name its "
            "base (--base ENCODER)."
        ) from None
    differs = (
        "other weights"
        if found.weights_sha256 != about.base_weights_sha256
        else "another tokeniser"
        if found.tokenizer_fingerprint != about.tokenizer_fingerprint
        else None
    )
    if differs:
        raise MismatchError(
            f"the adapter {path} was trained on {about.base}, and {found.path} has {differs} "
            f"(SHA-256 {found.weights_sha256[:12]}, where {about.base_weights_sha256[:12]} is needed). Adapters fit "
            "only the encoder they were trained on: name that one as the base."
        )
    model = load_model(found)
    try:
        tensors = load_file(path / ADAPTER_WEIGHTS_NAME)
    except (FileNotFoundError, SafetensorError) as error:
        raise DamagedArtifactError(
            f"{path / ADAPTER_WEIGHTS_NAME} is not readable ({first_line(error)}). Get the folder again."
        ) from None
    if about.kind == "bottleneck":
        insert_saved(model, tensors)
    else:
        scale = about.settings.get("alpha", 0.0) / (about.settings.get("rank") or 1)
        insert_saved_lora(model, str(path), tensors, scale=scale)
        model = merged(model)
    both = found.weights_sha256 + sha256_file(path / ADAPTER_WEIGHTS_NAME)
    source = dataclasses.replace(
        found,
        lower_case=found.lower_case if about.lower_case is None else about.lower_case,
        weights=(),  # nobody shall take the base's files for this encoder's
        onnx=None,
        is_own=False,
        recorded_weights_sha256=hashlib.sha256(both.encode()).hexdigest(),
    )
    return PackedEncoder(model, pooling=about.pooling, max_tokens=about.max_tokens, source=source).eval()


def join_adapter(
    folder: str | Path,
    out: str | Path,
    *,
    base: str | Path | None = None,
    overwrite: bool = False,
) -> EncoderFolder:
    """Make a whole encoder folder of an adapter and the encoder it was trained on.

    Args:
        folder: See `load_adapter`.
        out: The encoder folder to write.
        base: See `load_adapter`.
        overwrite: Replace an encoder that is there.

    Raises:
        ArtifactExistsError: ``out`` is taken.
        InputError: it is the place of the adapter or of the base, or one of them lies in it.
        OnomaError: as `load_adapter`.
    """
    path = _adapter_path(folder)
    manifest = open_artifact(path, ADAPTER_KIND)
    about = read_adapter(path)
    encoder = load_adapter(path, base)
    assert encoder.source is not None  # it was loaded from a folder
    if any(holds(checked_path(out), place) for place in (Path(folder), path, encoder.source.path)):
        raise InputError(
            "the joined encoder would be written over the adapter or its base", path=out, fix="choose another place"
        )
    return save_encoder(
        encoder,
        out,
        name=about.name,
        sparse_weight=about.sparse_weight,
        config=manifest.config,
        parents=(*manifest.parents, manifest.as_parent()),
        seed=manifest.seed,
        overwrite=overwrite,
    )


def write_model(
    encoder: PackedEncoder,
    folder: Path,
    *,
    name: str,
    max_tokens: int,
    sparse_weight: float | None,
    config: Mapping[str, Any] | None,
    parents: Sequence[Parent],
    seed: int | None,
) -> torch.nn.Module:
    """Write weights and configuration of an encoder, and the adapter that it was trained with, if any.

    Returns:
        The Hugging Face model that was written.
    """
    if trained_adapter(encoder.model) is not None:
        save_adapter(
            encoder,
            folder / SUBFOLDER,
            name=name,
            max_tokens=max_tokens,
            sparse_weight=sparse_weight,
            config=config,
            parents=parents,
            seed=seed,
        )
    return write_weights(encoder, folder)


def write_weights(encoder: PackedEncoder, folder: Path) -> torch.nn.Module:
    """Write weights and configuration of an encoder.

    LoRA is merged first. With bottlenecks inside, ``config.json`` names a family of its own, so that tools which do not
    know adapters refuse the folder. Otherwise they would leave out the adapters and give other vectors.

    Returns:
        The Hugging Face model that was written.
    """
    model: Any = merged(encoder.model)
    with quiet_transformers():
        model.save_pretrained(folder, safe_serialization=True)
    if has_adapters(model):
        file = folder / "config.json"
        values = read_json(file)
        write_json(file, {**values, "model_type": ADAPTED_PREFIX + values["model_type"]})
    whole: torch.nn.Module = model
    return whole


def _settings(encoder: PackedEncoder, tensors: Mapping[str, torch.Tensor]) -> dict[str, int | float | bool]:
    narrow = next(tensor.shape[0] for name, tensor in tensors.items() if name.endswith(".adapter.down.weight"))
    invertible = any(isinstance(module, CoupledNorm) for module in encoder.model.modules())
    return {"reduction": encoder.width // narrow, "invertible": invertible}


def _lora_settings(encoder: PackedEncoder) -> dict[str, int | float | bool]:
    config = lora_config(encoder.model)
    return {"rank": config.r, "alpha": config.lora_alpha}


def _adapter_path(folder: str | Path) -> Path:
    path = checked_path(folder)
    inside = path / SUBFOLDER
    return inside if (inside / ADAPTER_ABOUT_NAME).is_file() else path
