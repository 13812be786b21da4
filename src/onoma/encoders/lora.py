"""LoRA (Hu et al. 2022) by PEFT: low-rank updates of the query and value projections of every layer.

Unlike a bottleneck, the update is a matrix product like the projection itself, so it can be added to the projection's
weights for good: what comes out is an ordinary encoder of the old size.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from onoma.errors import ConfigError, DamagedArtifactError, MismatchError, first_line, missing_extra

_QUERY_AND_VALUE = (
    ("query", "value"),
    ("q_lin", "v_lin"),
    ("query_proj", "value_proj"),
    ("q_proj", "v_proj"),
    ("q", "v"),
)
"""What families call the two projections."""


def insert_lora(model: nn.Module, *, rank: int, alpha: float, dropout: float) -> None:
    """Put fresh updates, which change nothing yet, beside the query and value projections, in place.

    PEFT's layers take the place of the projections; the names of the encoder's own weights get ``base_layer`` in them.

    Args:
        model: A Hugging Face encoder.
        rank: Of the update.
        alpha: The update is scaled by alpha / rank.
        dropout: Of the update's input, in training.

    Raises:
        ConfigError: the encoder has no separate query and value projections.
        UnavailableError: PEFT is not installed.
    """
    peft = _peft("Training with tuning=lora")
    config = peft.LoraConfig(
        r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=list(_targets(model)), bias="none"
    )
    peft.inject_adapter_in_model(config, model)


def has_lora(model: nn.Module) -> bool:
    """Whether a model has LoRA updates that are not merged."""
    return hasattr(model, "peft_config")


def lora_tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """The weights of the updates under PEFT's names for them."""
    tensors = _peft("Saving LoRA").get_peft_model_state_dict(model, save_embedding_layers=False)
    return {f"base_model.model.{name}": tensor for name, tensor in tensors.items()}


def lora_config(model: Any) -> Any:
    """PEFT's configuration of the updates."""
    return model.peft_config["default"]


def insert_saved_lora(model: nn.Module, folder: str, tensors: dict[str, torch.Tensor], *, scale: float) -> None:
    """Put trained updates into a Hugging Face encoder, in place; ``folder`` has PEFT's ``adapter_config.json``.

    Args:
        model: The encoder.
        folder: See above.
        tensors: As `lora_tensors` gave them.
        scale: What the updates were multiplied with in training, alpha / rank.

    Raises:
        DamagedArtifactError: that file is not one that PEFT can use, or scales otherwise.
        MismatchError: the updates do not fit this encoder.
        UnavailableError: PEFT is not installed.
    """
    peft = _peft("Loading LoRA")
    try:
        peft.inject_adapter_in_model(peft.LoraConfig.from_pretrained(folder), model)
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise DamagedArtifactError(
            f"{folder}/adapter_config.json does not say how LoRA was trained ({first_line(error)}). Get the folder "
            "again, or train it again."
        ) from None
    own = lora_tensors(model)
    if {name: tensor.shape for name, tensor in own.items()} != {name: tensor.shape for name, tensor in tensors.items()}:
        raise MismatchError("the LoRA weights do not fit this encoder: they have other names or sizes.")
    scales = {factor for layer in _lora_layers(model).values() for factor in layer.scaling.values()}
    if scales != {scale}:
        raise DamagedArtifactError(
            f"{folder}/adapter_config.json scales the updates by {', '.join(map(str, sorted(scales)))}, and they were "
            f"trained with {scale}. Get the folder again, or train it again."
        )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def merged(model: nn.Module) -> nn.Module:
    """A copy of a model with the updates added to the weights; the model itself if it has none."""
    if not has_lora(model):
        return model
    whole = copy.deepcopy(model)
    for name, layer in _lora_layers(whole).items():
        layer.merge(safe_merge=True)
        whole.set_submodule(name, layer.get_base_layer())
    del whole.peft_config
    return whole


def _lora_layers(model: nn.Module) -> dict[str, Any]:
    """PEFT's layers that stand in for projections, by the names of these."""
    from peft.tuners.lora import LoraLayer

    return {name: module for name, module in model.named_modules() if isinstance(module, LoraLayer)}


def _targets(model: Any) -> tuple[str, str]:
    linear = {name.rpartition(".")[2] for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    for pair in _QUERY_AND_VALUE:
        if linear.issuperset(pair):
            return pair
    raise ConfigError(
        f"LoRA needs an encoder with a query and a value projection in each layer; {model.config.model_type} has none "
        "of their own. Train it with tuning=all."
    )


def _peft(purpose: str) -> Any:
    try:
        import peft
    except ImportError:
        raise missing_extra("peft", "lora", purpose) from None
    return peft
