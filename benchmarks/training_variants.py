"""The reference's training step and ours, as `training_step` compares them."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from onoma.encoders.loading import load_packed, quiet_transformers
from onoma.encoders.memory import keep_freed_memory
from onoma.encoders.sources import locate_encoder
from onoma.training.alignment_config import TrainingConfig
from onoma.training.alignment_step import Step, make_optimiser
from onoma.training.batches import PairBatches
from onoma.training.objective import objective
from onoma.training.precision import training_precision
from onoma.types import RowArray
from synthetic_names import MAX_TOKENS, pairs_of_texts

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Setting:
    """What all variants share."""

    base: str
    texts: tuple[str, ...]
    """Left and right name of each pair in turn."""
    batch_pairs: int
    pooling: str
    threads: int
    learning_rate: float = 2e-5
    dropout: float = 0.1
    seed: int = 0
    """Of dropout."""


class Reference:
    """The released code's step."""

    def __init__(self, setting: Setting, *, tokenised: bool = False, bf16: bool = False) -> None:
        from pytorch_metric_learning import losses, miners
        from transformers import AutoModel, AutoTokenizer

        folder = locate_encoder(setting.base).model_path
        with quiet_transformers():
            self._encoder = AutoModel.from_pretrained(str(folder), dtype=torch.float32).train()
            self._tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
        for module in self._encoder.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = setting.dropout
        self._pooling, self._texts, self._bf16 = setting.pooling, setting.texts, bf16
        self._batches = batches_of(setting)
        self._miner: Any = miners.TripletMarginMiner(margin=0.2, type_of_triplets="all")
        self._loss: Any = losses.MultiSimilarityLoss(alpha=2, beta=50, base=0.5)
        self._optimiser = torch.optim.AdamW(self._encoder.parameters(), lr=setting.learning_rate, weight_decay=0.01)
        self._tokens: dict[str, torch.Tensor] | None = None
        self._tokens = self._tokenise(np.arange(len(setting.texts))) if tokenised else None
        self.phases = dict.fromkeys(("pack", "forward", "loss", "backward", "optimiser"), 0.0)

    def __call__(self, step: int) -> float:
        rows = self._batches.names_of_step(step)
        half = len(rows) // 2
        with self._clock("pack"):
            left, right = self._tokenise(rows[:half]), self._tokenise(rows[half:])
            labels = torch.from_numpy(rows[:half] // 2)
        with self._clock("forward"), torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._bf16):
            vectors = torch.cat([self._encode(left), self._encode(right)])
        with self._clock("loss"):
            vectors, both = vectors.float(), torch.cat([labels, labels])
            loss = self._loss(vectors, both, self._miner(vectors, both))
        with self._clock("backward"):
            self._optimiser.zero_grad()
            loss.backward()
        with self._clock("optimiser"):
            self._optimiser.step()
        return float(loss.detach())

    def _tokenise(self, rows: RowArray) -> dict[str, torch.Tensor]:
        if self._tokens is not None:
            return {key: value[torch.from_numpy(rows)] for key, value in self._tokens.items()}
        return dict(
            self._tokenizer(
                [self._texts[row] for row in rows],
                padding="max_length",
                max_length=MAX_TOKENS,
                truncation=True,
                return_tensors="pt",
            )
        )

    def _encode(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        states: torch.Tensor = self._encoder(**tokens).last_hidden_state
        if self._pooling == "cls":
            return states[:, 0]
        mask = tokens["attention_mask"][..., None]
        return (states * mask).sum(1) / mask.sum(1)

    @contextlib.contextmanager
    def _clock(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.phases[phase] += time.perf_counter() - started


class Ours:
    """The step of ``onoma train``."""

    def __init__(self, setting: Setting, *, precision: str = "bf16", chunks: int = 1) -> None:
        keep_freed_memory()
        config = TrainingConfig.model_validate(
            {
                "base": setting.base,
                "pooling": setting.pooling,
                "steps": 1,
                "batch_pairs": setting.batch_pairs,
                "chunk_names": None if chunks == 1 else 2 * setting.batch_pairs // chunks,
                "max_tokens": MAX_TOKENS,
                "dropout": setting.dropout,
                "learning_rate": setting.learning_rate,
                "decay_all": True,
                "precision": precision,
                "device": "cpu",
                "seed": setting.seed,
            }
        )
        pairs = pairs_of_texts(list(setting.texts), locate_encoder(setting.base).load_tokenizer())
        model = load_packed(setting.base, pooling=config.pooling, dropout=config.dropout, max_tokens=MAX_TOKENS).train()
        self._config, self._model, self._pairs, self._batches = config, model, pairs, batches_of(setting)
        precision_type = training_precision(config, CPU)
        self._step = Step(config, pairs, model, make_optimiser(config, model), self._batches, precision_type, CPU)

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of each phase so far."""
        return self._step.phases

    def __call__(self, step: int) -> float:
        return self._step(step, step + 1).loss

    def seconds_of_objective(self, repeat: int) -> float:
        """Mining and loss alone, forward and backward."""
        rows = self._batches.names_of_step(0)
        labels = torch.from_numpy(self._pairs.labels[rows])
        vectors = torch.randn(len(rows), self._model.width, requires_grad=True)
        times = []
        for _ in range(repeat):
            started = time.perf_counter()
            loss, _ = objective(self._config.loss, self._config.mining, vectors, labels)
            torch.autograd.grad(loss, vectors)
            times.append(time.perf_counter() - started)
        return statistics.median(times)


VARIANTS: dict[str, Callable[[Setting], Reference | Ours]] = {
    "reference": Reference,
    "reference, tokenised": lambda setting: Reference(setting, tokenised=True),
    "reference, bf16": lambda setting: Reference(setting, tokenised=True, bf16=True),
    "ours, fp32": lambda setting: Ours(setting, precision="fp32"),
    "ours, fp32, no dropout": lambda setting: Ours(replace(setting, dropout=0.0), precision="fp32"),
    "ours, bf16": Ours,
    "ours, bf16, no dropout": lambda setting: Ours(replace(setting, dropout=0.0)),
    "ours, bf16, chunks": lambda setting: Ours(setting, chunks=4),
}


def batches_of(setting: Setting) -> PairBatches:
    """The same for all variants."""
    pairs = np.arange(len(setting.texts), dtype=np.int32).reshape(-1, 2)
    return PairBatches(pairs, batch_pairs=setting.batch_pairs, seed=0)
