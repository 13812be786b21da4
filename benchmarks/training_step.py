"""Our training step against the reference's design, on the same names and batches, in one run.

    python benchmarks/training_step.py -o training_step.json
    python benchmarks/training_step.py --base FOLDER --names names.txt --batch-pairs 64

The reference is what the released SapBERT code does, written out in ``training_variants.py``: a batch is tokenised in
the step and every name padded to 25 tokens; left and right names go through the encoder one after the other, in fp32;
triplets are mined by enumeration; pytorch-metric-learning takes the loss; AdamW. Ours is what ``onoma.training`` runs.

=============================  =======================================================================================
reference                      as above, dropout 0.1
reference, tokenised           the same, but names are tokenised before
reference, bf16                that under bf16 autocast
ours, fp32                     packed, tokenised before, one pass over both sides, masks, [CLS] only in the last layer
ours, fp32, no dropout         the same without dropout
ours, bf16                     the first under bf16 autocast
ours, bf16, no dropout         the same without dropout
ours, bf16, chunks             ``ours, bf16`` with GradCache, a quarter of the batch at a time
=============================  =======================================================================================

``onoma train`` takes bf16 where the processor multiplies it, and fp32 elsewhere; there bf16 is imitated, at a fraction
of the speed of fp32, and its variants are left out unless they are named.

Each variant lives in a process of its own. They take turns, so that a busy machine slows all of them; the ratio is of
median times, of the clock and of the processor. Shares are of what products of the step's shapes, in the variant's
precision, reach in the same run: ``peak``, if all arithmetic ran as fast as the fastest of these products;
``ceiling``, if a step took as long as these products alone. Peak memory is of the whole process. The curves of the loss
are compared without dropout, step by step, and with it (``--curve-seeds``), where each variant draws its own: by their
means over several seeds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encoder_flops import attention_flop, flop, weight_products
from machine import DTYPES, rates_of_products
from memory import peak_mib
from onoma.encoders.precision import has_native_bf16
from onoma.encoders.sources import locate_encoder
from synthetic_names import pairs_of_texts, synonym_texts
from training_variants import VARIANTS, Ours, Reference, Setting, batches_of

CURVES = ("reference", "ours, fp32", "ours, bf16")


def precision_of(variant: str) -> str:
    """In which a variant multiplies."""
    return "bf16" if "bf16" in variant else "fp32"


def suited(variants: Iterable[str]) -> list[str]:
    """Those whose precision this processor multiplies."""
    return [variant for variant in variants if precision_of(variant) == "fp32" or has_native_bf16()]


@dataclass(frozen=True)
class Steps:
    """What some steps took."""

    seconds: list[float]
    cpu_seconds: list[float]
    losses: list[float]
    phases: dict[str, float]
    """Seconds, over all these steps."""
    peak_mib: float
    """Of the process, so far."""


# ---- In the process of a variant.

_RUNNING: dict[str, Reference | Ours] = {}


def _begin(variant: str, setting: Setting) -> None:
    torch.set_num_threads(setting.threads)
    torch.manual_seed(setting.seed)
    _RUNNING["variant"] = VARIANTS[variant](setting)


def run_steps(first: int, count: int) -> Steps:
    """Do steps of the variant of this process."""
    one_step = _RUNNING["variant"]
    before = dict(one_step.phases)
    seconds, cpu_seconds, losses = [], [], []
    for step in range(first, first + count):
        started, cpu_started = time.perf_counter(), time.process_time()
        losses.append(one_step(step))
        seconds.append(time.perf_counter() - started)
        cpu_seconds.append(time.process_time() - cpu_started)
    phases = {phase: total - before[phase] for phase, total in one_step.phases.items()}
    return Steps(seconds, cpu_seconds, losses, phases, peak_mib())


def seconds_of_objective(repeat: int) -> float:
    """Mining and loss alone, in the process of one of our variants."""
    ours = _RUNNING["variant"]
    if not isinstance(ours, Ours):
        raise TypeError("the reference's loss is part of its step")
    return ours.seconds_of_objective(repeat)


# ---- In the process that compares them.


@contextlib.contextmanager
def _processes(variants: Sequence[str], setting: Setting) -> Iterator[dict[str, ProcessPoolExecutor]]:
    spawn = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        yield {
            variant: stack.enter_context(
                ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin, initargs=(variant, setting))
            )
            for variant in variants
        }


def compare(
    variants: Sequence[str], setting: Setting, *, warm_up: int, rounds: int, steps: int
) -> list[dict[str, Any]]:
    """One row per variant: names/s, ratio to the first variant, memory, phases, share of mining and loss."""
    done: dict[str, list[Steps]] = {variant: [] for variant in variants}
    objective_seconds: dict[str, float] = {}
    with _processes(variants, setting) as processes:
        for process in processes.values():
            process.submit(run_steps, 0, warm_up).result()
        for number in range(rounds):
            for variant, process in processes.items():
                done[variant].append(process.submit(run_steps, warm_up + number * steps, steps).result())
        for variant, process in processes.items():
            if variant.startswith("ours"):
                objective_seconds[variant] = process.submit(seconds_of_objective, 20).result()
    rows: list[dict[str, Any]] = []
    for variant, parts in done.items():
        median = statistics.median(seconds for part in parts for seconds in part.seconds)
        total = sum(sum(part.seconds) for part in parts)
        phases = {phase: sum(part.phases[phase] for part in parts) / total for phase in parts[0].phases}
        rows.append(
            {
                "variant": variant,
                "seconds": median,
                "cpu_seconds": statistics.median(seconds for part in parts for seconds in part.cpu_seconds),
                "names_per_second": 2 * setting.batch_pairs / median,
                "peak_mib": max(part.peak_mib for part in parts),
                "share_of_phases": phases,
                "share_of_objective": objective_seconds[variant] / median if variant in objective_seconds else None,
            }
        )
    for row in rows:
        row["times_reference"] = rows[0]["seconds"] / row["seconds"]
        row["times_reference_cpu"] = rows[0]["cpu_seconds"] / row["cpu_seconds"]
    return rows


def loss_curves(setting: Setting, steps: int) -> dict[str, list[float]]:
    """Losses of the same steps."""
    with _processes(suited(CURVES), setting) as processes:
        return {variant: process.submit(run_steps, 0, steps).result().losses for variant, process in processes.items()}


def curves_by_seed(setting: Setting, steps: int, n_seeds: int) -> dict[str, list[list[float]]]:
    """The same with dropout, by variant and seed."""
    found = [loss_curves(replace(setting, seed=seed), steps) for seed in range(n_seeds)]
    return {variant: [curves[variant] for curves in found] for variant in (found[0] if found else ())}


def _dropout_in_words(curves: dict[str, list[list[float]]]) -> Iterator[str]:
    """How far the mean curves of the variants are from the reference's, and what of it may be chance."""
    by_variant = {variant: np.array(losses) for variant, losses in curves.items()}
    expected = by_variant.get(CURVES[0], np.empty((0, 0)))
    n_seeds, n_steps = expected.shape
    for variant, losses in list(by_variant.items())[1:]:
        off = np.abs(losses.mean(0) - expected.mean(0))
        both = np.stack([losses, expected])
        by_chance = np.sqrt((both.var(1, ddof=1) / n_seeds).sum(0)) if n_seeds > 1 else np.full(n_steps, np.nan)
        chance = by_chance.mean() * np.sqrt(2 / np.pi)  # of the absolute value of what is normally distributed
        first, last = expected.mean(0)[[0, -1]]
        yield (
            f"{variant}, dropout: the mean of {n_seeds} curves differs from the reference's ({first:.4f} to {last:.4f} "
            f"in {n_steps} steps) by {off.mean():.1e} on average; the seeds alone would make {chance:.1e}."
        )


@dataclass(frozen=True)
class Work:
    """What a packed step has to do, and how fast this machine does such things."""

    tokens: int
    flop: float
    peak: dict[str, float]
    """FLOP/s of the fastest of its products, by precision."""
    ceiling: dict[str, float]
    """FLOP/s of all of them, one after the other."""


def arithmetic(setting: Setting, precisions: Iterable[str]) -> Work:
    """FLOP of a packed step and the rates of this machine's products of its shapes."""
    from transformers import AutoConfig

    torch.set_num_threads(setting.threads)
    folder = locate_encoder(setting.base)
    config = AutoConfig.from_pretrained(str(folder.model_path))
    pairs = pairs_of_texts(list(setting.texts), folder.load_tokenizer())
    rows = batches_of(setting).names_of_step(0)
    lengths = np.diff(pairs.store.offsets)[rows]
    first_only = setting.pooling == "cls"
    products = weight_products(config, int(lengths.sum()), len(rows), first_only=first_only)
    peak, ceiling = {}, {}
    for precision in precisions:
        peak[precision], ceiling[precision] = rates_of_products(products, dtype=DTYPES[precision])
    whole = flop(products) + attention_flop(config, lengths, first_only=first_only)
    return Work(tokens=int(lengths.sum()), flop=whole, peak=peak, ceiling=ceiling)


def as_markdown(
    rows: list[dict[str, Any]],
    work: Work,
    curves: dict[str, list[float]],
    with_dropout: dict[str, list[list[float]]],
) -> str:
    """The report."""
    lines = [
        "| variant | names/s | x reference | (CPU time) | peak MiB | % of peak | % of ceiling | tokenise, pack % | "
        "forward % | loss % | backward % | optimiser % |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        rate, precision = work.flop / row["seconds"], precision_of(row["variant"])
        shares = [f"{100 * share:.1f}" for share in row["share_of_phases"].values()]
        known = row["variant"].startswith("ours")
        cells = [
            row["variant"],
            f"{row['names_per_second']:.0f}",
            f"{row['times_reference']:.2f}",
            f"{row['times_reference_cpu']:.2f}",
            f"{row['peak_mib']:.0f}",
            f"{100 * rate / work.peak[precision]:.0f}" if known else "",
            f"{100 * rate / work.ceiling[precision]:.0f}" if known else "",
            *shares,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"A step has {work.tokens} tokens and {work.flop / 1e9:.0f} GFLOP."]
    lines += [
        f"{precision} products of its shapes: the fastest {peak / 1e9:.0f} GFLOP/s (peak), all of them one after the "
        f"other {work.ceiling[precision] / 1e9:.0f} GFLOP/s (ceiling)."
        for precision, peak in work.peak.items()
    ]
    for row in rows:
        if row["share_of_objective"] is not None:
            lines.append(
                f"{row['variant']}: mining and loss, forward and backward, {100 * row['share_of_objective']:.2f} % of "
                f"a step; packing {100 * row['share_of_phases']['pack']:.2f} %."
            )
    if curves:
        expected = curves[CURVES[0]]
        for variant in list(curves)[1:]:
            off = [abs(loss - other) for loss, other in zip(expected, curves[variant], strict=True)]
            lines.append(
                f"{variant}, no dropout: loss differs from the reference's ({expected[0]:.4f} to {expected[-1]:.4f} in "
                f"{len(off)} steps) by {off[0]:.1e} in the first step and {max(off):.1e} at most."
            )
    lines += _dropout_in_words(with_dropout)
    return "\n".join(lines)


def _setting(arguments: argparse.Namespace) -> Setting:
    if arguments.names:
        texts = [line for line in arguments.names.read_text(encoding="utf-8").splitlines() if line.strip()]
        texts = texts[: len(texts) // 2 * 2]
    else:
        tokenizer = locate_encoder(arguments.base).load_tokenizer()
        texts = synonym_texts(tokenizer, 32 * arguments.batch_pairs, np.random.default_rng(0))
    return Setting(
        base=arguments.base,
        texts=tuple(texts),
        batch_pairs=arguments.batch_pairs,
        pooling=arguments.pooling,
        threads=arguments.threads,
    )


def main() -> None:
    """Measure, print the table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="all-MiniLM-L6-v2", help="encoder: folder, catalogue name or hub id")
    parser.add_argument("--names", type=Path, help="names, two lines for a pair of synonyms; unset: synthetic ones")
    parser.add_argument("--batch-pairs", type=int, default=256)
    parser.add_argument("--pooling", choices=("cls", "mean"), default="cls", help="cls is the paper's")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=suited(VARIANTS))
    parser.add_argument("--warm-up", type=int, default=6, help="unmeasured steps of each variant")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each variant")
    parser.add_argument("--steps", type=int, default=3, help="steps in a turn")
    parser.add_argument("--curve-steps", type=int, default=10, help="steps of the loss curves; 0: none")
    parser.add_argument("--curve-seeds", type=int, default=3, help="of dropout, for curves with it; 0: none with it")
    parser.add_argument("-o", "--json", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()

    setting = _setting(arguments)
    work = arithmetic(setting, sorted({precision_of(variant) for variant in arguments.variants}))
    rows = compare(
        arguments.variants, setting, warm_up=arguments.warm_up, rounds=arguments.rounds, steps=arguments.steps
    )
    curves, with_dropout = {}, {}
    if arguments.curve_steps:
        curves = loss_curves(replace(setting, dropout=0.0), arguments.curve_steps)
        with_dropout = curves_by_seed(setting, arguments.curve_steps, arguments.curve_seeds)
    print(as_markdown(rows, work, curves, with_dropout))
    if arguments.json:
        about = {
            "base": setting.base,
            "names": 2 * setting.batch_pairs,
            "pooling": setting.pooling,
            "threads": setting.threads,
            "torch": torch.__version__,
            "processor": platform.processor() or platform.machine(),
        }
        found = {"about": about, "work": asdict(work), "rows": rows, "curves": curves, "with_dropout": with_dropout}
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
