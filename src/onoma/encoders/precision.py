"""Which precision this machine is good at."""

from __future__ import annotations

import warnings

import torch


def has_native_bf16(device: str = "cpu") -> bool:
    """Whether the processor (``"cpu"``) or the GPU (``"cuda"``) multiplies bfloat16 matrices natively."""
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return _processor_has("_is_mkldnn_bf16_supported")


def has_native_fp16(device: str = "cpu") -> bool:
    """The same of half precision, which every GPU multiplies."""
    return device == "cuda" or _processor_has("_is_mkldnn_fp16_supported")


def warn_where_slow(precision: str, device: str = "cpu") -> None:
    """Tell who asked for ``"bf16"`` or ``"fp16"`` that this machine gains nothing by it; nothing of ``"fp32"``."""
    native = {"bf16": has_native_bf16, "fp16": has_native_fp16}.get(precision)
    if native is not None and not native(device):
        warnings.warn(
            f"this {'GPU' if device == 'cuda' else 'processor'} does not multiply {precision}: torch imitates it, many "
            "times slower than fp32. Ask for fp32.",
            stacklevel=1,
        )


def _processor_has(asking: str) -> bool:
    """What oneDNN says of this processor; torch for macOS comes without it."""
    ask = getattr(torch.ops.mkldnn, asking, None)
    return ask is not None and bool(ask())
