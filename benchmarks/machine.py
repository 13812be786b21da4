"""What this machine can do."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import torch

from encoder_flops import Product, flop

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
"""Of the precisions that are compared on a CPU."""


def seconds_of_products(
    products: Iterable[Product], *, device: str = "cpu", dtype: torch.dtype = torch.bfloat16, repeat: int = 5
) -> dict[Product, float]:
    """Seconds of each product at its fastest: the first matrix lies row by row, the second so or column by column."""
    fastest: dict[Product, float] = {}
    for m, k, n in products:
        left = torch.randn(m, k, device=device, dtype=dtype)
        by_rows = torch.randn(k, n, device=device, dtype=dtype)
        by_columns = by_rows.t().contiguous().t()
        times = []
        for right in (by_rows, by_columns):
            for _ in range(repeat + 1):
                _wait(device)
                started = time.perf_counter()
                torch.mm(left, right)
                _wait(device)
                times.append(time.perf_counter() - started)
        fastest[m, k, n] = min(times)
    return fastest


def rates_of_products(products: Counter[Product], *, dtype: torch.dtype) -> tuple[float, float]:
    """FLOP/s of the fastest of some products on the CPU, and of all of them one after the other."""
    seconds = seconds_of_products(products, dtype=dtype)
    fastest = max(2 * m * k * n / taken for (m, k, n), taken in seconds.items())
    return fastest, flop(products) / sum(seconds[product] * times for product, times in products.items())


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
