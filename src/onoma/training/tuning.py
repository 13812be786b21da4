"""What of a base encoder is trained: everything, or small parts put into it while its own weights stay."""

from __future__ import annotations

import torch
from torch import nn

from onoma.encoders.adapters import insert_adapters
from onoma.encoders.architectures import read_architecture
from onoma.encoders.loading import load_folder, load_packed
from onoma.encoders.lora import insert_lora
from onoma.encoders.onnx_export import check_exportable
from onoma.encoders.packed import PackedEncoder
from onoma.encoders.saving import check_links
from onoma.encoders.sources import locate_encoder
from onoma.errors import ConfigError
from onoma.terminology import normalise
from onoma.training.alignment_config import TrainingConfig
from onoma.training.config_parts import Adapter, Everything, Layers, Tuning
from onoma.training.distributed import is_main
from onoma.training.objective import check_widths
from onoma.training.precision import check_compiles, compile_encoder, training_device
from onoma.training.run_config import RunConfig


def load_base(config: RunConfig) -> PackedEncoder:
    """The base encoder that a recipe names, ready to be trained as it says.

    Raises:
        ConfigError: this encoder cannot be used or tuned so.
        InputError: there is no such encoder.
        UnavailableError: the encoder, or PEFT, which LoRA needs, is not on this machine.
    """
    check_case(config)
    encoder = load_packed(config.base, pooling=config.pooling, dropout=config.dropout, max_tokens=config.max_tokens)
    tune(encoder, config.tuning)
    return encoder


def check_base(config: RunConfig) -> None:
    """Refuse what cannot be trained or saved, before data are prepared for minutes: the base is loaded and tried.

    Raises:
        ConfigError: this base cannot be used, tuned, compiled or saved so; or see `check_case`.
        InputError: there is no such encoder, or it has links out of its folder.
        TrainingError: the device is not there.
        UnavailableError: the encoder, PEFT for LoRA, or what ``compile`` needs is not on this machine.
    """
    check_compiles(config, training_device(config))
    base = locate_encoder(config.base, pooling=config.pooling, max_tokens=config.max_tokens)
    if isinstance(config, TrainingConfig):
        check_widths(config.matryoshka, base.width)
    check_case(config)
    check_links(base)
    encoder = load_folder(base)
    if is_main():
        check_exportable(encoder)
    with torch.random.fork_rng(devices=[]):  # fresh weights are drawn; those of the run come later
        tune(encoder, config.tuning)
    compile_encoder(config, encoder)


def check_case(config: RunConfig) -> None:
    """Refuse names with capitals for a base that lower-cases what it reads: in use it would see other tokens.

    Raises:
        ConfigError: the base lower-cases, and the recipe's normalisation does not.
        InputError: there is no such encoder.
        UnavailableError: the encoder is not on this machine.
    """
    if normalise("A", config.normalisation) == normalise("a", config.normalisation):
        return
    base = locate_encoder(config.base)
    tokenizer = base.load_tokenizer()
    if base.lower_case and tokenizer.encode("A").ids != tokenizer.encode("a").ids:
        raise ConfigError(
            f"{config.base} lower-cases what it reads, and normalisation={config.normalisation} would train it on "
            "names with capitals. Set another normalisation, such as sapbert, or take another base."
        )


def tune(encoder: PackedEncoder, tuning: Tuning) -> None:
    """Prepare a freshly loaded encoder for training, in place: insert what is trained, freeze what is not.

    Args:
        encoder: From `onoma.encoders.loading.load_packed`. Its vectors do not change.
        tuning: What is trained. Fresh weights are drawn from torch's generator.

    Raises:
        ConfigError: this encoder cannot be tuned so.
        UnavailableError: PEFT, which LoRA needs, is not installed.
    """
    if isinstance(tuning, Everything):
        return
    if isinstance(tuning, Layers):
        _freeze_embeddings(encoder.model)
        return
    encoder.model.requires_grad_(False)
    if isinstance(tuning, Adapter):
        insert_adapters(encoder.model, reduction=tuning.reduction, invertible=tuning.invertible)
    else:
        insert_lora(encoder.model, rank=tuning.rank, alpha=tuning.alpha, dropout=tuning.dropout)
    encoder.architecture = read_architecture(encoder.model)


def _freeze_embeddings(model: nn.Module) -> None:
    tables = [
        table for name, table in model.named_modules() if isinstance(table, nn.Embedding) and "embeddings" in name
    ]
    if not tables:
        raise ConfigError("this encoder has no tables of embeddings to leave as they are; set tuning=all.")
    for table in tables:
        table.requires_grad_(False)
