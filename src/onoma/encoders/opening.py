"""Open any encoder by the name, folder or id that a user gives, with a suitable back end."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Literal

from onoma.encoders.encoding import check_opened
from onoma.encoders.folders import LOWER_PRECISIONS, PRECISIONS, EncoderFolder, Precision
from onoma.encoders.onnx_encoder import OnnxEncoder
from onoma.encoders.pooling import Pooling
from onoma.encoders.protocol import Encoder
from onoma.encoders.sources import locate_encoder
from onoma.errors import ConfigError, is_whole, missing_extra, one_of

Backend = Literal["auto", "onnx", "torch"]
_MAX_THREADS = 1024
_BACKENDS = ("auto", "onnx", "torch")


def open_encoder(
    source: str | Path,
    *,
    backend: Backend = "auto",
    precision: Precision = "fp32",
    pooling: Pooling | None = None,
    max_tokens: int | None = None,
    dimensions: int | None = None,
    threads: int | None = None,
    in_full: bool = True,
) -> Encoder:
    """Open an encoder for use.

    Args:
        source: A folder (Onoma's, sentence-transformers', Hugging Face's), a name of the catalogue
            (``"all-MiniLM-L6-v2"``), or a hub id (from the hub's cache on this machine, or fetched).
        backend: ``"onnx"`` starts fast and needs no torch; ``"torch"`` needs no ONNX model. ``"auto"`` takes ONNX if
            the folder has it and the options allow it.
        precision: ``"bf16"`` needs torch; several times as fast on processors that multiply it natively, slower than
            fp32 on others (with a warning); keeps over 99 of 100 nearest neighbours. The lower ones of ONNX need a
            model that was made and measured before (`onoma.encoders.add_precisions`), and have a fingerprint of their
            own.
        pooling: Overrides what the folder says. A plain Hugging Face folder says nothing: ``"cls"``, as SapBERT.
        max_tokens: Longest name in tokens, special tokens included. Unset: what the folder says, so that vectors equal
            sentence-transformers' for names of any length; 25, SapBERT's setting, for a plain Hugging Face folder,
            which says nothing.
        dimensions: Keep only this many numbers of each vector, the first ones, scaled to length 1. For encoders that
            were trained with ``matryoshka``; with others, much of the meaning is lost.
        threads: Of the ONNX back end; unset: all usable processors. Torch has its own setting.
        in_full: Whether to compare every byte of an ONNX model that Onoma wrote with its checksum (70 ms for one of 90
            MB), or only a sample of a large one.

    Raises:
        InputError: there is no such encoder, or it cannot be run.
        ConfigError: options exclude each other, or this encoder cannot have them.
        UnavailableError: the encoder, the hub or torch is not available on this machine.
        ArtifactError: the folder is damaged.
    """
    one_of(backend, _BACKENDS, "backend")
    one_of(precision, PRECISIONS, "precision")
    max_tokens, dimensions, threads = (
        _whole(option, number)
        for option, number in (("max_tokens", max_tokens), ("dimensions", dimensions), ("threads", threads))
    )
    if threads is not None and not 1 <= threads <= _MAX_THREADS:
        raise ConfigError(f"threads must be a whole number from 1 to {_MAX_THREADS:,}; found {threads}.")
    needs_onnx = precision in LOWER_PRECISIONS
    if needs_onnx and backend == "torch":
        raise ConfigError(f"{precision} is a precision of ONNX models; torch runs fp32 and bf16.")
    folder = locate_encoder(
        source, pooling=pooling, max_tokens=max_tokens, precision="fp32" if precision == "bf16" else precision
    ).cut(dimensions)
    obstacle = _onnx_obstacle(folder, precision)
    if obstacle is not None and (needs_onnx or backend == "onnx"):
        way = f"Leave the pooling as it is in {precision}" if needs_onnx else "Open it with backend='torch'"
        raise ConfigError(f"{folder.name} cannot be run by ONNX Runtime: {obstacle}. {way}.")
    if backend == "torch" or obstacle is not None:
        return _open_torch(folder, bf16=precision == "bf16")
    if in_full and folder.onnx is not None:
        folder.check_content(folder.onnx, folder.onnx.with_name(f"{folder.onnx.name}.data"))
    return OnnxEncoder(folder, threads=threads)


def as_encoder(
    encoder: Encoder | str | Path, *, precision: Precision = "fp32", dimensions: int | None = None
) -> Encoder:
    """An encoder as it is, or opened if it is what `open_encoder` takes.

    Raises:
        InputError: it is neither; else see `open_encoder`.
    """
    if isinstance(encoder, str | PathLike):
        return open_encoder(encoder, precision=precision, dimensions=dimensions)
    check_opened(encoder)
    return encoder


def _whole(option: str, number: int | None) -> int | None:
    if number is None:
        return None
    if not is_whole(number):
        raise ConfigError(f"{option} must be a whole number; found {number!r}.")
    return int(number)  # numpy's go into no JSON


def _onnx_obstacle(folder: EncoderFolder, precision: Precision) -> str | None:
    if folder.onnx is None:
        return "its folder has no onnx/model.onnx, or not all its weights (export_encoder makes one)"
    if precision == "bf16":
        return "its ONNX model is fp32, not bf16"
    if folder.is_own and folder.pooling != folder.said_pooling:
        return f"its ONNX model pools by '{folder.said_pooling}', not '{folder.pooling}'"
    return None


def _open_torch(folder: EncoderFolder, *, bf16: bool) -> Encoder:
    if bf16 and folder.onnx is not None and not folder.weights:
        raise ConfigError(
            f"{folder.name} holds only the ONNX model, and bf16 needs the weights. Open it with precision='fp32', or "
            "name the encoder that it was made from."
        )
    try:
        import torch
    except ImportError:
        how = " in bf16" if bf16 else ", which has no usable ONNX model,"
        raise missing_extra("torch", "train", f"Running the encoder {folder.name}{how}") from None
    from onoma.encoders.loading import load_folder
    from onoma.encoders.precision import warn_where_slow
    from onoma.encoders.torch_encoder import TorchEncoder

    device = "cuda" if torch.cuda.is_available() else "cpu"
    warn_where_slow("bf16" if bf16 else "fp32", device)
    return TorchEncoder(load_folder(folder).to(device), precision="bf16" if bf16 else "fp32")
