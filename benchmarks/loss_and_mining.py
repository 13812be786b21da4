"""Time and memory of mining + loss, forward and backward: ours against pytorch-metric-learning, in one run.

    python benchmarks/loss_and_mining.py --names 512 4096 --repeat 10 -o loss_and_mining.json

Vectors are synthetic (two names per concept around one centre each, as in a batch of synonym pairs). The
variants take turns in every repetition, so that a busy machine slows all of them; ratios are of medians.
Peak memory is the growth of a fresh process's resident set over one forward and backward, sampled by a thread.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor

from onoma.objectives import (
    cosine_similarities,
    hard_triplet_masks,
    mined_shares,
    multi_similarity_loss,
    tiled_multi_similarity_loss,
)

Variant = Callable[[Tensor, Tensor], Tensor]


def reference(vectors: Tensor, labels: Tensor) -> Tensor:
    """The released SapBERT code's miner and loss, with the paper's settings."""
    from pytorch_metric_learning import losses, miners

    miner = miners.TripletMarginMiner(margin=0.2, type_of_triplets="all")
    loss = losses.MultiSimilarityLoss(alpha=2, beta=50, base=0.5)(vectors, labels, miner(vectors, labels))
    if not isinstance(loss, Tensor):
        raise TypeError(f"pytorch-metric-learning returned {type(loss)}")
    return loss


def masks(vectors: Tensor, labels: Tensor) -> Tensor:
    """Whole (B, B) matrices."""
    similarity = cosine_similarities(vectors)
    return multi_similarity_loss(similarity, hard_triplet_masks(similarity, labels)).mean()


def tiles(vectors: Tensor, labels: Tensor) -> Tensor:
    """A tile of anchors at a time."""
    return tiled_multi_similarity_loss(vectors, labels)[0]


VARIANTS: dict[str, Variant] = {"reference": reference, "masks": masks, "tiles": tiles}


def batch(n_names: int, width: int) -> tuple[Tensor, Tensor]:
    """Vectors, shape (n_names, width), and labels: two names per concept, left names first."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n_names) % ((n_names + 1) // 2)
    centres = torch.randn(n_names, width, generator=generator)
    shared = torch.randn(1, width, generator=generator)
    noise = torch.randn(n_names, width, generator=generator)
    return (centres[labels] + shared + 1.15 * noise), labels


def forward_and_backward(variant: str, vectors: Tensor, labels: Tensor) -> tuple[float, Tensor]:
    """Value and gradient of one variant."""
    leaf = vectors.detach().requires_grad_()
    loss = VARIANTS[variant](leaf, labels)
    (gradient,) = torch.autograd.grad(loss, leaf)
    return loss.item(), gradient


def peak_growth_mib(variant: str, n_names: int, width: int) -> float:
    """Run in a process of its own: growth of the resident set over one forward and backward."""
    torch.set_num_threads(2)
    forward_and_backward(variant, *batch(64, width))
    vectors, labels = batch(n_names, width)
    process = psutil.Process()
    before = process.memory_info().rss
    sizes = [before]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(0.0005):
            sizes.append(process.memory_info().rss)

    sampler = threading.Thread(target=sample)
    sampler.start()
    forward_and_backward(variant, vectors, labels)
    done.set()
    sampler.join()
    return float(max(sizes) - before) / 2**20


def measure(n_names: int, width: int, repeat: int) -> list[dict[str, Any]]:
    """One row per variant."""
    vectors, labels = batch(n_names, width)
    similarity = cosine_similarities(vectors)
    shares = mined_shares(hard_triplet_masks(similarity, labels), labels)
    expected_loss, expected_gradient = forward_and_backward("reference", vectors, labels)
    milliseconds: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    difference: dict[str, float] = {}
    for variant in VARIANTS:
        loss, gradient = forward_and_backward(variant, vectors, labels)
        difference[variant] = max(abs(loss - expected_loss), float((gradient - expected_gradient).abs().max()))
    for _ in range(repeat):
        for variant in VARIANTS:
            started = time.perf_counter()
            forward_and_backward(variant, vectors, labels)
            milliseconds[variant].append(1000 * (time.perf_counter() - started))
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        memory = {variant: pool.apply(peak_growth_mib, (variant, n_names, width)) for variant in VARIANTS}
    median = {variant: statistics.median(times) for variant, times in milliseconds.items()}
    return [
        {
            "names": n_names,
            "mined_positives": round(float(shares.positives), 3),
            "mined_negatives": round(float(shares.negatives), 3),
            "variant": variant,
            "milliseconds": round(median[variant], 2),
            "times_reference": round(median["reference"] / median[variant], 2),
            "peak_mib": round(memory[variant], 1),
            "largest_difference": difference[variant],
        }
        for variant in VARIANTS
    ]


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--names", type=int, nargs="+", default=[512, 4096], help="names in a batch")
    parser.add_argument("--width", type=int, default=384, help="of the vectors")
    parser.add_argument("--repeat", type=int, default=10, help="timed repetitions")
    parser.add_argument("-o", "--output", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(2)

    rows: list[dict[str, Any]] = []
    print(f"{'names':>6} {'variant':<10} {'ms':>9} {'x ref':>6} {'MiB':>8}  largest difference of loss and gradient")
    for n_names in arguments.names:
        for row in measure(n_names, arguments.width, arguments.repeat):
            rows.append(row)
            print(
                f"{row['names']:>6} {row['variant']:<10} {row['milliseconds']:>9.1f} {row['times_reference']:>6.1f} "
                f"{row['peak_mib']:>8.1f}  {row['largest_difference']:.1e}"
            )
    if arguments.output:
        about = {
            "width": arguments.width,
            "repeat": arguments.repeat,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "processor": platform.processor() or platform.machine(),
        }
        arguments.output.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
