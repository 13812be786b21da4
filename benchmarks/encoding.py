"""Names to vectors: ours against the reference's padded loop and sentence-transformers, in one run.

    python benchmarks/encoding.py -o encoding.json
    python benchmarks/encoding.py --names names.txt --encoder FOLDER

=======================  =============================================================================================
reference                the released SapBERT evaluation: padded to 25 tokens, fp32, 2,048 names at a time
reference, batches of 64 the same, with as many names at a time as suit a processor's cache
sentence-transformers    ``SentenceTransformer.encode``, its default of 32 names at a time, sorted by length
torch, fp32              ours: packed without padding
torch, bf16              ours: the same with weights and states in bf16; on processors that multiply it
onnx, fp32               ours without torch: ONNX Runtime, names sorted by length
=======================  =============================================================================================

Each variant lives in a process of its own and they take turns, so that a busy machine slows all of them; rates are of
median times, tokenising included. Agreement is with the vectors of the reference in batches of 64: the mean and the
first percentile of the cosine, and how often a name's nearest other name is the same one. Names are cut to 25 tokens
everywhere, as the reference does. The cold start is a process's time to its first vector, imports included.

The share of the ceiling is that of ours in what the encoder's products of states and weights reach alone, in the
variant's precision, measured in the same run: tokenising, attention and all else would take no time there.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encoder_flops import attention_flop, flop, weight_products
from machine import DTYPES, rates_of_products
from memory import peak_mib
from onoma.encoders import export_encoder, open_encoder
from onoma.encoders.folders import EncoderFolder
from onoma.encoders.loading import quiet_transformers
from onoma.encoders.precision import has_native_bf16
from onoma.encoders.sources import locate_encoder
from onoma.types import FloatArray
from synthetic_names import MAX_TOKENS, synonym_texts

Encode = Callable[[Sequence[str]], FloatArray]
_EXACT = "reference, batches of 64"
_CEILING_TOKENS = 4096
"""Rows of the states whose products are measured for the ceiling: as many as a long batch of ours has."""


def _reference(encoder: str, _onnx: str, *, batch: int) -> Encode:
    from transformers import AutoModel, AutoTokenizer

    folder = locate_encoder(encoder)
    with quiet_transformers():
        model = AutoModel.from_pretrained(str(folder.model_path), dtype=torch.float32).eval()
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder.model_path))

    def encode(texts: Sequence[str]) -> FloatArray:
        parts = []
        with torch.inference_mode():
            for start in range(0, len(texts), batch):
                tokens = tokenizer(
                    list(texts[start : start + batch]),
                    padding="max_length",
                    max_length=MAX_TOKENS,
                    truncation=True,
                    return_tensors="pt",
                )
                states = model(**tokens).last_hidden_state
                if folder.pooling == "cls":
                    parts.append(states[:, 0])
                else:
                    mask = tokens["attention_mask"].unsqueeze(-1)
                    parts.append((states * mask).sum(1) / mask.sum(1))
        vectors: FloatArray = torch.nn.functional.normalize(torch.cat(parts)).numpy()
        return vectors

    return encode


def _sentence_transformers(encoder: str, _onnx: str) -> Encode:
    from sentence_transformers import SentenceTransformer

    folder = locate_encoder(encoder)
    with quiet_transformers():
        model = SentenceTransformer(str(folder.path), device="cpu")
    model.max_seq_length = MAX_TOKENS
    return lambda texts: np.asarray(
        model.encode(list(texts), show_progress_bar=False, normalize_embeddings=True), np.float32
    )


def _torch(encoder: str, _onnx: str, *, precision: Any) -> Encode:
    return open_encoder(encoder, backend="torch", precision=precision, max_tokens=MAX_TOKENS).encode


def _onnx(_encoder: str, onnx: str) -> Encode:
    return open_encoder(onnx, backend="onnx", max_tokens=MAX_TOKENS).encode


VARIANTS: dict[str, Callable[[str, str], Encode]] = {
    "reference": lambda encoder, onnx: _reference(encoder, onnx, batch=2048),
    _EXACT: lambda encoder, onnx: _reference(encoder, onnx, batch=64),
    "sentence-transformers": _sentence_transformers,
    "torch, fp32": lambda encoder, onnx: _torch(encoder, onnx, precision="fp32"),
    "torch, bf16": lambda encoder, onnx: _torch(encoder, onnx, precision="bf16"),
    "onnx, fp32": _onnx,
}


# ---- In the process of a variant.

_RUNNING: dict[str, Encode] = {}


@dataclass(frozen=True)
class Pass:
    """All names once."""

    seconds: float
    vectors: FloatArray
    peak_mib: float


def _begin(variant: str, encoder: str, onnx: str, threads: int) -> None:
    torch.set_num_threads(threads)
    _RUNNING["encode"] = VARIANTS[variant](encoder, onnx)


def encode_all(texts: Sequence[str]) -> Pass:
    """Encode the names with the variant of this process."""
    started = time.perf_counter()
    vectors = _RUNNING["encode"](texts)
    return Pass(time.perf_counter() - started, vectors, peak_mib())


# ---- In the process that compares them.

_COLD = {
    "sentence-transformers": "from sentence_transformers import SentenceTransformer\n"
    "SentenceTransformer({folder!r}, device='cpu').encode(['heart attack'])",
    "torch, fp32": "from onoma.encoders import open_encoder\n"
    "open_encoder({folder!r}, backend='torch').encode(['heart attack'])",
    "onnx, fp32": "from onoma.encoders import open_encoder\n"
    "open_encoder({onnx!r}, backend='onnx').encode(['heart attack'])",
}


def cold_start(variant: str, folder: str, onnx: str, *, repeat: int) -> float:
    """Seconds from the start of a process to its first vector and its end, the fastest of several."""
    code = _COLD[variant].format(folder=folder, onnx=onnx)
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return min(times)


@dataclass(frozen=True)
class Work:
    """What encoding all names without padding has to do, and how fast this machine does such things."""

    tokens: int
    flop: float
    ceiling: dict[str, float]
    """FLOP/s of the products of states and weights, one after the other, by precision."""


def arithmetic(folder: EncoderFolder, texts: Sequence[str], precisions: Sequence[str], *, threads: int) -> Work:
    """FLOP of the names, and the rates of this machine's products of the encoder's shapes."""
    from transformers import AutoConfig

    torch.set_num_threads(threads)
    config = AutoConfig.from_pretrained(str(folder.model_path))
    tokenizer = folder.load_tokenizer()
    lengths = np.array([min(len(tokens.ids), MAX_TOKENS) for tokens in tokenizer.encode_batch(list(texts))])
    shape = {"first_only": folder.pooling == "cls", "backward": False}
    whole = flop(weight_products(config, int(lengths.sum()), len(texts), **shape))
    whole += attention_flop(config, lengths, **shape)
    names = round(len(texts) * _CEILING_TOKENS / lengths.sum())
    products = weight_products(config, _CEILING_TOKENS, names, **shape)
    ceiling = {precision: rates_of_products(products, dtype=DTYPES[precision])[1] for precision in precisions}
    return Work(int(lengths.sum()), whole, ceiling)


def compare(
    variants: Sequence[str], encoder: str, onnx: str, texts: Sequence[str], *, threads: int, rounds: int
) -> list[dict[str, Any]]:
    """One row per variant: names/s, ratios, memory, agreement."""
    spawn = multiprocessing.get_context("spawn")
    passes: dict[str, list[Pass]] = {variant: [] for variant in variants}
    with ExitStack() as stack:
        processes = {
            variant: stack.enter_context(
                ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin, initargs=(variant, encoder, onnx, threads))
            )
            for variant in variants
        }
        for process in processes.values():
            process.submit(encode_all, texts[:64]).result()
        for _ in range(rounds):
            for variant, process in processes.items():
                passes[variant].append(process.submit(encode_all, texts).result())
    exact = passes[_EXACT][0].vectors if _EXACT in passes else None
    seconds = {variant: statistics.median(one.seconds for one in done) for variant, done in passes.items()}
    rows: list[dict[str, Any]] = []
    for variant, done in passes.items():
        row: dict[str, Any] = {
            "variant": variant,
            "names_per_second": len(texts) / seconds[variant],
            "peak_mib": max(one.peak_mib for one in done),
            "times": {other: seconds[other] / seconds[variant] for other in seconds},
        }
        if exact is not None:
            row |= _agreement(exact, done[0].vectors)
        rows.append(row)
    return rows


def _agreement(exact: FloatArray, vectors: FloatArray) -> dict[str, float]:
    cosines = (exact.astype(np.float64) * vectors).sum(1)
    return {
        "cosine_mean": float(cosines.mean()),
        "cosine_first_percentile": float(np.percentile(cosines, 1)),
        "same_nearest": float((_nearest(exact) == _nearest(vectors)).mean()),
    }


def _nearest(vectors: FloatArray) -> FloatArray:
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -2)
    nearest: FloatArray = similarity.argmax(1)
    return nearest


def _precision(variant: str) -> str | None:
    """Of one of ours; None of others."""
    return variant.rpartition(", ")[2] if variant.startswith(("torch", "onnx")) else None


def as_markdown(rows: Sequence[dict[str, Any]], cold: dict[str, float], work: Work) -> str:
    """The table for people."""
    bases = [name for name in ("reference", _EXACT, "sentence-transformers") if name in rows[0]["times"]]
    head = ["variant", "names/s", *(f"x {name}" for name in bases), "cosine: mean, 1st percentile", "same nearest name"]
    head += ["% of ceiling", "peak MiB", "cold start s"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [row["variant"], f"{row['names_per_second']:.0f}", *(f"{row['times'][name]:.1f}" for name in bases)]
        if "cosine_mean" in row:
            cells += [f"{row['cosine_mean']:.6f}, {row['cosine_first_percentile']:.6f}", f"{row['same_nearest']:.4f}"]
        else:
            cells += ["", ""]
        share = row["share_of_ceiling"]
        cells.append("" if share is None else f"{100 * share:.0f}")
        seconds = cold.get(row["variant"])
        cells += [f"{row['peak_mib']:.0f}", "" if seconds is None else f"{seconds:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", f"The names have {work.tokens} tokens, {work.flop / 1e9:.0f} GFLOP without padding."]
    lines += [
        f"{precision} products of their states with weights, one after the other: {rate / 1e9:.0f} GFLOP/s (ceiling)."
        for precision, rate in work.ceiling.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2", help="folder, catalogue name or hub id")
    parser.add_argument("--names", type=Path, help="names, one a line; unset: synthetic ones of real lengths")
    parser.add_argument("--count", type=int, default=4096, help="names to encode")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each variant")
    suited = [variant for variant in VARIANTS if "bf16" not in variant or has_native_bf16()]
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=suited)
    parser.add_argument("-o", "--json", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()

    folder = locate_encoder(arguments.encoder)
    if arguments.names:
        texts = [line for line in arguments.names.read_text(encoding="utf-8").splitlines() if line.strip()]
        texts = list(dict.fromkeys(texts))
    else:
        texts = synonym_texts(folder.load_tokenizer(), -(-arguments.count // 2), np.random.default_rng(0))
    texts = texts[: arguments.count]
    with tempfile.TemporaryDirectory() as scratch:
        onnx = str(Path(scratch) / "onnx")
        export_encoder(folder, onnx, onnx_only=True)
        rows = compare(
            arguments.variants, arguments.encoder, onnx, texts, threads=arguments.threads, rounds=arguments.rounds
        )
        cold = {
            name: cold_start(name, str(folder.path), onnx, repeat=3) for name in _COLD if name in arguments.variants
        }
    precisions = sorted({precision for variant in arguments.variants if (precision := _precision(variant))})
    work = arithmetic(folder, texts, precisions, threads=arguments.threads)
    for row in rows:
        precision = _precision(row["variant"])
        rate = work.flop * row["names_per_second"] / len(texts)
        row["share_of_ceiling"] = None if precision is None else rate / work.ceiling[precision]
    print(as_markdown(rows, cold, work))
    if arguments.json:
        about = {
            "encoder": arguments.encoder,
            "names": len(texts),
            "threads": arguments.threads,
            "torch": torch.__version__,
            "processor": platform.processor() or platform.machine(),
        }
        found = {"about": about, "rows": rows, "work": asdict(work), "cold_start": cold}
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
