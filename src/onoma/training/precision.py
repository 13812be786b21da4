"""Where a run computes, with which numbers, and whether compiled."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
from typing import Any

import torch

from onoma.encoders.packed import PackedEncoder
from onoma.encoders.precision import has_native_bf16, warn_where_slow
from onoma.errors import ConfigError, TrainingError, UnavailableError
from onoma.training.run_config import RunConfig

PRECISION_NAMES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
"""What the precisions of the forward pass are called in settings and reports."""
_KEEPS_PRECISIONS_APART = "2.13"
"""From this torch on, its cache on disk does not take what was compiled in bf16 for fp16, or the other way round."""


def training_device(config: RunConfig) -> torch.device:
    """The device that a recipe asks for.

    Raises:
        TrainingError: it is not there.
    """
    if config.device == "cuda" and not torch.cuda.is_available():
        raise TrainingError("device=cuda was asked for, but torch sees no CUDA device here. Set device=cpu or auto.")
    use_cuda = config.device == "cuda" or (config.device == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if use_cuda else "cpu")


def training_precision(config: RunConfig, device: torch.device) -> torch.dtype:
    """The precision of the forward pass; the weights are fp32 in each. One that this machine imitates is warned of."""
    if config.precision == "auto":
        return torch.bfloat16 if has_native_bf16(device.type) else torch.float32
    warn_where_slow(config.precision, device.type)
    return next(dtype for dtype, name in PRECISION_NAMES.items() if name == config.precision)


def check_compiles(config: RunConfig, device: torch.device) -> None:
    """Refuse ``compile=true`` where it cannot be or gains nothing.

    Raises:
        TrainingError: the device is no GPU.
        UnavailableError: Triton or a C compiler, which torch compiles for GPUs with, is not installed.
    """
    if config.compile and device.type != "cuda":
        raise TrainingError("compile=true is for GPUs, and this run is on a CPU, where it gains nothing. Leave it out.")
    if config.compile and importlib.util.find_spec("triton") is None:
        raise UnavailableError(
            "compile=true needs Triton, which comes with torch for CUDA on Linux. Install it or leave compile out."
        )
    if config.compile and not (os.environ.get("CC") or any(map(shutil.which, ("gcc", "clang")))):
        raise UnavailableError(
            "compile=true needs a C compiler and Python's headers (Debian: gcc, python3-dev). Install them or leave "
            "compile out."
        )


def compile_encoder(config: RunConfig, encoder: PackedEncoder) -> None:
    """Have the layers of the encoder compiled from now on where it is trained, if the recipe says so.

    Raises:
        ConfigError: it is of a family whose layers are not ours to compile.
    """
    if config.compile and not encoder.runs_packed:
        raise ConfigError(
            "compile=true compiles packed layers, and this encoder does not run packed (another family than BERT's and "
            "RoBERTa's, or pooling=mean-all). Leave it out."
        )
    if config.compile:
        torch._dynamo.reset()  # it compiles for so many encoders in a process, and no more: a grid has as many runs
        if torch.__version__ < _KEEPS_PRECISIONS_APART:
            torch._functorch.config.enable_autograd_cache = False
    encoder.compiled = config.compile


def autocast(device: torch.device, precision: torch.dtype) -> contextlib.AbstractContextManager[Any]:
    """Run the encoder in a precision."""
    if precision is torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=precision)


def diverged(what: str, precision: torch.dtype) -> TrainingError:
    """The error of a run whose numbers have become too large."""
    finer = {torch.float16: "precision=fp32 (or bf16), ", torch.bfloat16: "precision=fp32, "}.get(precision, "")
    return TrainingError(
        f"{what}: the run has diverged. Remove its .run folder and begin anew with {finer}a lower learning_rate or "
        "max_gradient_norm=1."
    )
