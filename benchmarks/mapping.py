"""Speed and memory of ``onoma map``: rows a second, peak memory, and whether memory grows with the rows.

    python benchmarks/mapping.py LINKER --rows 10000000 --mentions mentions.txt -o mapping.json

The table is made of real mentions (a file with one on each line; unset: names that the linker knows), repeated at
random. Each different mention is linked once, so that it is their number, ``--different``, that decides how long the
linking takes; where more are asked for than there are, two of them are put together ("cold with influenza 7").

Memory is the resident set of this process and of all that it starts, ten times a second. What grows is told by linear
regression, for each stage (reading and writing: MB per million rows; linking: MB per million mentions) and over all
stages (MB per hour), each without the first tenth of its samples, in which models are loaded and buffers made. Pages of
memory-mapped files count as resident, also those that several processes share; ``anonymous`` is without them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil

from onoma.linking import Linker
from onoma.mapping import map_table

SECONDS_BETWEEN_SAMPLES = 0.1
ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Sample:
    """Memory at a moment of the run, in MB."""

    seconds: float
    stage: str
    done: int
    resident: float
    anonymous: float


class Sampler:
    """Looks at the memory of this process and its children while a table is mapped."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._stage, self._done = "starting", 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def progress(self, done: int, _total: int | None, stage: str) -> None:
        """See `onoma.mapping.map_table`."""
        self._stage, self._done = stage, done

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        own = psutil.Process()
        started = time.monotonic()
        while not self._over.wait(SECONDS_BETWEEN_SAMPLES):
            resident = anonymous = 0.0
            for process in (own, *own.children(recursive=True)):
                try:
                    memory = process.memory_info()
                except psutil.NoSuchProcess:
                    continue
                resident += memory.rss / 1e6
                anonymous += (memory.rss - getattr(memory, "shared", 0)) / 1e6
            self.samples.append(Sample(time.monotonic() - started, self._stage, self._done, resident, anonymous))

    def growth(self) -> dict[str, dict[str, float]]:
        """Slopes of all stages."""
        slopes: dict[str, dict[str, float]] = {}
        for stage in dict.fromkeys(sample.stage for sample in self.samples):
            of_stage = [sample for sample in self.samples if sample.stage == stage]
            slopes[stage] = _slopes(of_stage, [sample.done / 1e6 for sample in of_stage])
        slopes["all, per hour"] = _slopes(self.samples, [sample.seconds / 3600 for sample in self.samples])
        return slopes


def _slopes(samples: Sequence[Sample], places: Sequence[float]) -> dict[str, float]:
    """MB for each unit of ``places``, by least squares, after the first tenth; nothing where too little is known."""
    first = len(samples) // 10
    x = np.array(places[first:])
    if len(x) < 10 or np.ptp(x) == 0:
        return {}
    return {
        kind: float(np.polyfit(x, [getattr(sample, kind) for sample in samples[first:]], 1)[0])
        for kind in ("resident", "anonymous")
    }


def different_mentions(real: Sequence[str], n_different: int, rng: random.Random) -> list[str]:
    """So many different mentions: real ones, and then two of them together, with a number.

    The number makes sure that there are enough of them.
    """
    mentions = dict.fromkeys(real[:n_different])
    while len(mentions) < n_different:
        mentions[f"{rng.choice(real)} with {rng.choice(real)} {len(mentions)}"] = None
    return list(mentions)


def write_table(path: Path, mentions: Sequence[str], n_rows: int, seed: int) -> None:
    """Rows of a number and a mention; each mention occurs, the rest is drawn at random."""
    chosen = np.random.default_rng(seed)
    column = pl.Series("mention", mentions)

    def frames() -> Iterator[pl.DataFrame]:
        for start in range(0, n_rows, ROWS_AT_ONCE):
            numbers = np.arange(start, min(start + ROWS_AT_ONCE, n_rows))
            picked = chosen.integers(0, len(mentions), len(numbers))
            picked[numbers < len(mentions)] = numbers[numbers < len(mentions)]
            yield pl.DataFrame({"id": numbers, "mention": column.gather(picked), "note": "as the patient says"})

    with path.open("wb") as file:
        for number, frame in enumerate(frames()):
            frame.write_csv(file, include_header=number == 0)


def main() -> None:
    """Make the table, map it, tell."""
    parser = argparse.ArgumentParser(description="Speed and memory of onoma map.")
    parser.add_argument("linker", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--different", type=int, help="different mentions; unset: as many as there are real ones")
    parser.add_argument("--mentions", type=Path, help="real mentions, one on each line; unset: names of the linker")
    parser.add_argument("--output-format", choices=["parquet", "csv", "jsonl"], default="parquet")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--top-k", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--out", type=Path, help="write what was measured as JSON")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    if options.mentions is None:
        real = list(dict.fromkeys(Linker.open(options.linker).dictionary.entry_names[:100_000]))
    else:
        lines = options.mentions.read_text(encoding="utf-8").splitlines()
        real = list(dict.fromkeys(line for line in lines if line.strip()))
    rng.shuffle(real)
    mentions = different_mentions(real, min(options.different or len(real), options.rows), rng)
    with tempfile.TemporaryDirectory() as place:
        table = Path(place) / "table.csv"
        write_table(table, mentions, options.rows, options.seed)
        del mentions, real
        with Sampler() as sampler:
            report = map_table(
                options.linker,
                table,
                Path(place) / f"mapped.{options.output_format}",
                column="mention",
                top_k=options.top_k,
                workers=options.workers,
                progress=sampler.progress,
            )
        megabytes = table.stat().st_size / 1e6
    stages: dict[str, dict[str, Any]] = {}
    for before, sample in zip([None, *sampler.samples], sampler.samples, strict=False):
        stage = stages.setdefault(sample.stage, {"seconds": 0.0, "done": 0, "peak resident MB": 0.0})
        stage["seconds"] += sample.seconds - (before.seconds if before else 0.0)
        stage["done"] = sample.done
        stage["peak resident MB"] = max(stage["peak resident MB"], sample.resident)
    measured = {
        **dataclasses.asdict(report),
        "rows/s": report.n_rows / report.seconds,
        "table MB": megabytes,
        "workers": options.workers,
        "stages": stages,
        "growth, MB per million (rows or mentions)": sampler.growth(),
        "peak resident MB": max((sample.resident for sample in sampler.samples), default=float("nan")),
        "peak anonymous MB": max((sample.anonymous for sample in sampler.samples), default=float("nan")),
        "python": platform.python_version(),
        "polars": pl.__version__,
    }
    print(json.dumps(measured, indent=1))
    if options.out:
        options.out.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
