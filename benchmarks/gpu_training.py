"""How long an epoch of UMLS-sized training takes on this GPU: real steps on synthetic names, extrapolated.

    python benchmarks/gpu_training.py -o gpu_training.json
    python benchmarks/gpu_training.py --steps 3 --layers 2 --pairs 2000 --batch-pairs 32     # anywhere, to see it run

Names are random tokens with the lengths of real names. The encoder is BERT-base with random weights unless ``--base``
names one: speed does not depend on what the weights are. Steps are those of ``onoma train`` as it is installed, with
the paper's batch of 256 pairs and larger ones; on a GPU each without and with compiled layers (``compile=true``), whose
compilation is not timed. Before them comes the released code's step with the first of these batches: names padded to
25 tokens (tokenised before), Hugging Face's encoder in fp16 (its ``--amp``), pytorch-metric-learning's miner and loss.
An epoch is the 11.8 million pairs that SapBERT was trained on, for which its authors had five hours of four GPUs.

First the packed encoder is compared with Hugging Face's padded one on this device, vectors and gradients; nothing is
timed if they differ.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encoder_flops import attention_flop, flop, weight_products
from machine import seconds_of_products
from memory import peak_mib
from onoma.encoders.loading import load_packed
from onoma.encoders.memory import keep_freed_memory
from onoma.encoders.packed import PackedEncoder, pack_lists
from onoma.encoders.pooling import Pooling
from onoma.pairs import PairSet
from onoma.training.alignment_config import TrainingConfig
from onoma.training.alignment_step import Step, make_optimiser
from onoma.training.batches import PairBatches
from onoma.training.precision import (
    PRECISION_NAMES,
    autocast,
    check_compiles,
    compile_encoder,
    training_device,
    training_precision,
)
from onoma.types import RowArray
from synthetic_names import MAX_TOKENS, random_pairs

EPOCH_PAIRS = 11_800_000
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
"""Largest difference of unit vectors; and of gradients, as a share of the gradient's norm."""
_GRADIENT_SLACK = 10
"""A gradient passes every layer twice and sums over all names."""


def make_encoder(base: str | None, *, layers: int | None, dropout: float, pooling: Pooling = "cls") -> PackedEncoder:
    """An encoder from a folder, or BERT-base with random weights."""
    if base is not None:
        return load_packed(base, pooling=pooling, dropout=dropout, max_tokens=MAX_TOKENS)
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    if layers is not None:
        config.num_hidden_layers = layers
    return PackedEncoder(BertModel(config, add_pooling_layer=False), pooling=pooling, max_tokens=MAX_TOKENS)


def differences(encoder: PackedEncoder, device: torch.device, precision: torch.dtype) -> tuple[float, float]:
    """How far packed and padded are apart: unit vectors of names of every length, and gradient of the weights.

    The encoder has no dropout.
    """
    rng = np.random.default_rng(0)
    names = [rng.integers(1, encoder.model.config.vocab_size, length).tolist() for length in range(2, MAX_TOKENS + 1)]
    names = [names[row] for row in rng.permutation(len(names))]
    ids = torch.tensor([name + [encoder.padding_id] * (MAX_TOKENS - len(name)) for name in names], device=device)
    mask = torch.tensor([[1] * len(name) + [0] * (MAX_TOKENS - len(name)) for name in names], device=device)
    encoder.to(device).train()  # as in training, but for dropout, of which it has none
    vectors, gradients = [], []
    for packed in (True, False):
        encoder.zero_grad(set_to_none=True)
        with autocast(device, precision):
            if packed:
                found = encoder(pack_lists(names).to(device))
            else:
                states = encoder.model(input_ids=ids, attention_mask=mask).last_hidden_state
                weights = mask[..., None].to(torch.float32)
                is_cls = encoder.pooling == "cls"
                found = states[:, 0] if is_cls else (states * weights).sum(1) / weights.sum(1)
        unit = torch.nn.functional.normalize(found.float())
        # As a loss does, each vector is pulled in a direction of its own.
        pull = torch.randn(unit.shape, generator=torch.Generator().manual_seed(1)).to(device)
        (unit * pull).sum().backward()  # type: ignore[no-untyped-call]
        vectors.append(unit.detach())
        gradients.append(torch.cat([p.grad.flatten() for p in encoder.parameters() if p.grad is not None]))
    encoder.zero_grad(set_to_none=True)
    apart = float((vectors[0] - vectors[1]).abs().max())
    return apart, float((gradients[0] - gradients[1]).norm() / gradients[1].norm())


def check_parity(encoder: PackedEncoder, device: torch.device) -> dict[str, dict[str, float]]:
    """Differences in fp32 and bf16, compiled too if the encoder is.

    Raises:
        SystemExit: one of them is too large.
    """
    found = {}
    for precision, tolerance in TOLERANCE.items():
        of_vectors, of_gradients = differences(encoder, device, precision)
        found[PRECISION_NAMES[precision]] = {"vectors": of_vectors, "gradients": of_gradients}
        if not (of_vectors <= tolerance and of_gradients <= _GRADIENT_SLACK * tolerance):
            raise SystemExit(
                f"packed and padded differ in {PRECISION_NAMES[precision]} on {device.type}: unit vectors by "
                f"{of_vectors:.1e} (at most {tolerance:.0e}), the gradient by {of_gradients:.1e} of its norm (at most "
                f"{_GRADIENT_SLACK * tolerance:.0e}). Nothing was timed."
            )
    return found


class Reference:
    """The released code's step with mixed precision (``--amp``), on names tokenised before."""

    def __init__(self, model: torch.nn.Module, pairs: PairSet, config: TrainingConfig, device: torch.device) -> None:
        from pytorch_metric_learning import losses, miners

        self._model, self._pairs, self._device = model.to(device).train(), pairs, device
        self._batches = PairBatches(pairs.pairs, batch_pairs=config.batch_pairs, seed=config.seed)
        self._optimiser = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=0.01)
        self._miner: Any = miners.TripletMarginMiner(margin=0.2, type_of_triplets="all")
        self._loss: Any = losses.MultiSimilarityLoss(alpha=2, beta=50, base=0.5)
        self._scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")
        self._width = int(min(MAX_TOKENS, np.diff(pairs.store.offsets).max()))

    def __call__(self, step: int) -> float:
        rows = self._batches.names_of_step(step)
        offsets = self._pairs.store.offsets
        lengths = np.minimum(offsets[rows + 1] - offsets[rows], self._width)
        mask = np.arange(self._width) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = self._pairs.store.ids[(offsets[rows][:, None] + np.arange(self._width))[mask]]
        labels = torch.from_numpy(self._pairs.labels[rows]).to(self._device)
        half_precision = torch.float16 if self._device.type == "cuda" else torch.bfloat16
        with torch.autocast(self._device.type, dtype=half_precision):
            states = self._model(
                input_ids=torch.from_numpy(ids).to(self._device),
                attention_mask=torch.from_numpy(mask.astype(np.int64)).to(self._device),
            ).last_hidden_state[:, 0]
            loss = self._loss(states, labels, self._miner(states, labels))
        self._optimiser.zero_grad()
        self._scaler.scale(loss).backward()
        self._scaler.step(self._optimiser)
        self._scaler.update()
        return float(loss.detach())


def time_reference(
    arguments: argparse.Namespace, pairs: PairSet, config: TrainingConfig, *, steps: int
) -> dict[str, Any]:
    """Time the released code's step, or say why not."""
    about = {"what": "reference", "batch_names": 2 * config.batch_pairs}
    try:
        encoder = make_encoder(arguments.base, layers=arguments.layers, dropout=arguments.dropout)
        device = training_device(config)
        reference = Reference(encoder.model, pairs, config, device)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        warm_up = min(10, arguments.warm_up)
        for step in range(warm_up):
            reference(step)
        seconds = []
        for step in range(warm_up, warm_up + steps):
            started = time.perf_counter()
            reference(step)
            seconds.append(time.perf_counter() - started)
        names = steps * 2 * config.batch_pairs
        return {
            **about,
            "steps": steps,
            "seconds_per_step": statistics.median(seconds),
            "names_per_second": names / sum(seconds),
            "epoch_minutes": EPOCH_PAIRS / (names / 2) * sum(seconds) / 60,
            "peak_mib": torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else peak_mib(),
        }
    except Exception as error:  # torch has many kinds
        return {**about, "error": in_one_line(error)}


def in_one_line(error: Exception) -> str:
    """What went wrong."""
    return " ".join(str(error).split())[:500] or type(error).__name__


def time_steps(
    encoder: PackedEncoder, pairs: PairSet, config: TrainingConfig, *, warm_up: int, profiled: int = 0
) -> dict[str, Any]:
    """Do ``config.steps`` steps after a few unmeasured ones: names/s, time of an epoch, phases, memory.

    With ``profiled`` so many more steps tell what took most time: of a GPU its kernels, of a CPU torch's operators.
    """
    device = training_device(config)
    precision = training_precision(config, device)
    encoder.to(device).train()
    compile_encoder(config, encoder)
    batches = PairBatches(pairs.pairs, batch_pairs=config.batch_pairs, seed=config.seed)
    one_step = Step(config, pairs, encoder, make_optimiser(config, encoder), batches, precision, device)
    steps = config.steps or 0
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    for step in range(warm_up):
        one_step(step, warm_up + steps)
    before = one_step.phases  # waits for the device
    started = time.perf_counter()
    seconds = [one_step(step, warm_up + steps).seconds for step in range(warm_up, warm_up + steps)]
    after = one_step.phases
    total = time.perf_counter() - started
    took: dict[str, float] = {}
    if profiled:
        with torch.profiler.profile() as profile:
            for step in range(warm_up, warm_up + profiled):
                one_step(step, warm_up + steps)
            _ = one_step.phases  # waits for the device
        took = {name: milliseconds / profiled for name, milliseconds in largest(profile, device).items()}
    lengths = np.diff(pairs.store.offsets)
    rows = np.concatenate([batches.names_of_step(step) for step in range(warm_up, warm_up + steps)])
    return {
        "what": "compiled" if config.compile else "onoma",
        "batch_names": 2 * config.batch_pairs,
        "precision": PRECISION_NAMES[precision],
        "steps": steps,
        "seconds_per_step": statistics.median(seconds),
        "names_per_second": len(rows) / total,
        "epoch_minutes": EPOCH_PAIRS / (len(rows) / 2) * total / 60,
        "flop_per_second": _flop_of(encoder, lengths[rows]) / total,
        "share_of_phases": {name: (after[name] - before[name]) / total for name in after},
        **({"milliseconds_of": took} if profiled else {}),
        "peak_mib": torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else peak_mib(),
    }


def largest(profile: Any, device: torch.device, *, n: int = 12) -> dict[str, float]:
    """Milliseconds of what took most time, and of all together."""
    on_gpu = device.type == "cuda"
    wanted = "CUDA" if on_gpu else "CPU"
    events = [one for one in profile.key_averages() if one.device_type.name == wanted and not one.is_user_annotation]
    took = {one.key: (one.self_device_time_total if on_gpu else one.self_cpu_time_total) / 1000 for one in events}
    return {"all": sum(took.values()), **dict(sorted(took.items(), key=lambda one: -one[1])[:n])}


def _flop_of(encoder: PackedEncoder, lengths: RowArray) -> float:
    config = encoder.model.config
    first_only = encoder.pooling == "cls"
    products = weight_products(config, int(lengths.sum()), len(lengths), first_only=first_only)
    return flop(products) + attention_flop(config, lengths, first_only=first_only)


def peak_rate(device: torch.device, *, size: int) -> float:
    """FLOP/s of a large square product in bf16."""
    ((product, seconds),) = seconds_of_products([(size, size, size)], device=device.type).items()
    return 2 * product[0] ** 3 / seconds


def main() -> None:
    """Check, measure, print, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", help="encoder: folder, catalogue name or hub id; unset: BERT-base, random weights")
    parser.add_argument("--layers", type=int, help="of the random encoder; unset: 12")
    parser.add_argument("--pooling", choices=("cls", "mean"), default="cls", help="the released step's is always cls")
    parser.add_argument("--pairs", type=int, default=EPOCH_PAIRS, help="synthetic pairs to draw batches from")
    parser.add_argument("--batch-pairs", type=int, nargs="+", default=[256, 1024, 4096], help="sizes to try in turn")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", choices=("auto", "bf16", "fp16", "fp32"), default="auto")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--steps", type=int, default=500, help="timed steps of each size")
    parser.add_argument("--reference-steps", type=int, default=100, help="timed steps of the released code; 0: none")
    parser.add_argument("--profiled", type=int, default=0, help="further steps that tell what takes most time")
    parser.add_argument("--warm-up", type=int, default=20, help="unmeasured steps before them")
    parser.add_argument("-o", "--output", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()

    keep_freed_memory()
    torch.set_float32_matmul_precision("highest")
    common = {"steps": arguments.steps, "dropout": arguments.dropout, "precision": arguments.precision}
    device = training_device(TrainingConfig.model_validate({**common, "device": arguments.device}))
    configs = [
        TrainingConfig.model_validate({**common, "batch_pairs": size, "device": device.type, "compile": compiled})
        for compiled in ((False, True) if device.type == "cuda" else (False,))
        for size in arguments.batch_pairs
    ]
    encoder = make_encoder(arguments.base, layers=arguments.layers, dropout=0.0, pooling=arguments.pooling)
    model = encoder.model.config
    parity = check_parity(encoder, device)
    del encoder  # its memory would count as that of what is timed
    print(f"packed agrees with padded on {device.type}: {json.dumps(parity)}", flush=True)
    about: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "base": arguments.base or "BERT-base, random weights",
        "layers": model.num_hidden_layers,
        "pooling": arguments.pooling,
        "dropout": arguments.dropout,
        "peak_flop_per_second": peak_rate(device, size=8192 if device.type == "cuda" else 1024),
        "parity": parity,
    }
    pairs = random_pairs(arguments.pairs, model.vocab_size, np.random.default_rng(0))

    titles = {"ms/step": 7, "names/s": 9, "epoch min": 9, "% of peak": 9, "MiB": 7}
    widths = " ".join(f"{title:>{width}}" for title, width in titles.items())
    print(f"{'':<9} {'names':>6} {widths}  phases")
    rows: list[dict[str, Any]] = []

    def tell(row: dict[str, Any]) -> None:
        rows.append(row)
        print(in_words(row, peak=about["peak_flop_per_second"]), flush=True)
        for name, milliseconds in row.get("milliseconds_of", {}).items():
            print(f"{milliseconds:>16.3f} ms a step: {name[:90]}")
        if arguments.output:  # after each: the next may end it all
            arguments.output.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n", encoding="utf-8")

    if arguments.reference_steps:
        tell(time_reference(arguments, pairs, configs[0], steps=arguments.reference_steps))
    for config in configs:
        is_first_compiled = config.compile and not any(row["what"] == "compiled" for row in rows)
        tell(time_or_tell(arguments, pairs, config, checks_parity=is_first_compiled))
    if any("error" in row for row in rows):
        raise SystemExit("not all could be measured")


def time_or_tell(
    arguments: argparse.Namespace, pairs: PairSet, config: TrainingConfig, *, checks_parity: bool = False
) -> dict[str, Any]:
    """What `time_steps` finds, or why it found nothing: out of memory, or what compiles is not there.

    With ``checks_parity`` compiled layers are compared with the padded model first.
    """
    try:
        check_compiles(config, training_device(config))
        if checks_parity:
            check_compiled_parity(arguments, config)
        encoder = make_encoder(
            arguments.base, layers=arguments.layers, dropout=arguments.dropout, pooling=arguments.pooling
        )
        return time_steps(encoder, pairs, config, warm_up=arguments.warm_up, profiled=arguments.profiled)
    except Exception as error:  # torch has many kinds
        what = "compiled" if config.compile else "onoma"
        return {"what": what, "batch_names": 2 * config.batch_pairs, "error": in_one_line(error)}


def check_compiled_parity(arguments: argparse.Namespace, config: TrainingConfig) -> None:
    """The same as `check_parity` of compiled layers; the encoder is gone afterwards."""
    encoder = make_encoder(arguments.base, layers=arguments.layers, dropout=0.0, pooling=arguments.pooling)
    compile_encoder(config, encoder)
    check_parity(encoder, training_device(config))


def in_words(row: dict[str, Any], *, peak: float) -> str:
    """A row of the table."""
    begin = f"{row['what']:<9} {row['batch_names']:>6} "
    if "error" in row:
        return f"{begin}{row['error']}"
    shares = row.get("share_of_phases", {})
    phases = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
    of_peak = f"{100 * row['flop_per_second'] / peak:.1f}" if "flop_per_second" in row else ""
    return (
        f"{begin}{1000 * row['seconds_per_step']:>8.1f} {row['names_per_second']:>9.0f} {row['epoch_minutes']:>9.1f} "
        f"{of_peak:>9} {row['peak_mib']:>7.0f}  {phases}"
    )


if __name__ == "__main__":
    main()
