"""Which precision this machine is good at."""

from __future__ import annotations

import warnings

import torch


def has_native_bf16(device: str = "cpu") -> bool:
    """Whether the processor (``"cpu"``) or the GPU (``"cuda"``) multiplies bfloat16 matrices natively."""
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # Torch for macOS comes without oneDNN.
    asking = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return asking is not None and bool(asking())


def warn_where_bf16_is_slow(device: str = "cpu") -> None:
    """Tell who asked for bf16 that this machine gains nothing by it."""
    if not has_native_bf16(device):
        warnings.warn(
            f"this {'GPU' if device == 'cuda' else 'processor'} does not multiply bf16: torch imitates it, many times "
            "slower than fp32. Ask for fp32.",
            stacklevel=1,
        )
