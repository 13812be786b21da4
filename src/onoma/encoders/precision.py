"""Which precision this machine is good at."""

from __future__ import annotations

import torch


def has_native_bf16(device: str = "cpu") -> bool:
    """Whether the processor (``"cpu"``) or the GPU (``"cuda"``) multiplies bfloat16 matrices natively."""
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
