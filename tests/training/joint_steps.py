"""Steps of one model by one process or by several; run as a script by the tests of several processes.

The encoder is a toy, so that the processes start without transformers.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from onoma.encoders.packed import PackedEncoder
from onoma.pairs import PairSet
from onoma.training import distributed
from onoma.training.alignment_config import TrainingConfig
from onoma.training.alignment_step import Step, make_optimiser
from onoma.training.batches import PairBatches
from onoma.training.precision import training_precision

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulated": {"accumulation": 2},
    "chunks": {"chunk_names": 2},
    "accumulated-chunks": {"accumulation": 2, "chunk_names": 2},
    "clipped": {"max_gradient_norm": 0.01},
    "fewer names than processes": {"batch_pairs": 2, "mining": "all"},
}
"""Settings whose gradients must be those of a single process."""


class ToyEncoder(nn.Module):
    """Token vectors that know of the other tokens, after dropout; one weight plays no part."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(hidden_size=8, pad_token_id=0, model_type="toy")
        torch.manual_seed(0)
        self.words = nn.Embedding(200, 8)
        self.mix = nn.Linear(8, 8)
        self.unused = nn.Linear(8, 8)
        self.drop = nn.Dropout(0.0)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        states = self.drop(self.words(input_ids))
        return SimpleNamespace(last_hidden_state=torch.tanh(self.mix(states + states.mean(1, keepdim=True))))


def config_for(*, device: str = "cpu", **changes: object) -> TrainingConfig:
    values = {"steps": 4, "batch_pairs": 5, "max_tokens": 16, "learning_rate": 0.01, "precision": "fp32"}
    return TrainingConfig.model_validate({**values, "device": device, "dropout": 0.0, **changes})


def make_step(config: TrainingConfig, pairs: PairSet) -> tuple[Step, PackedEncoder]:
    device = torch.device(config.device)
    toy = ToyEncoder()
    toy.drop.p = config.dropout or 0.0
    model = PackedEncoder(toy, pooling="cls", max_tokens=16).to(device).train()
    # Two pairs in a batch stand for fewer names than processes: one pair is left over.
    chosen = pairs.pairs[:1] if config.batch_pairs == 2 else pairs.pairs
    batches = PairBatches(chosen, batch_pairs=config.batch_pairs, seed=config.seed)
    step = Step(
        config, pairs, model, make_optimiser(config, model), batches, training_precision(config, device), device
    )
    return step, model


def first_gradients(config: TrainingConfig, pairs: PairSet) -> tuple[dict[str, torch.Tensor], float]:
    """What the optimiser gets in the first step, and the loss."""
    step, model = make_step(config, pairs)
    seen: dict[str, torch.Tensor] = {}

    def keep(optimiser: torch.optim.Optimizer, *_: object) -> None:
        seen.update({name: p.grad.to("cpu", copy=True) for name, p in model.named_parameters() if p.grad is not None})

    torch.optim.Optimizer.register_step_pre_hook(step._optimiser, keep)
    return seen, step(0, 4).loss


def weights_after(config: TrainingConfig, pairs: PairSet, *, n_steps: int) -> tuple[dict[str, torch.Tensor], Step]:
    """The weights after some steps with dropout."""
    step, model = make_step(config, pairs)
    for number in range(n_steps):
        step(number, n_steps)
    return {name: value.cpu() for name, value in model.state_dict().items()}, step


def main(pairs: PairSet, out: Path, device: str) -> None:
    """Every case by the processes that the environment names; each writes what it saw."""
    if device == "cuda" and torch.cuda.device_count() < int(os.environ["WORLD_SIZE"]):
        # Processes that share a GPU: NCCL has one for each. Joined before, they do not join again.
        torch.distributed.init_process_group("gloo")
    config = partial(config_for, device=device)
    with distributed.processes(device):
        told: dict[str, Any] = {
            "broadcast": distributed.broadcast({"from": distributed.rank()}),
            "is_main": distributed.is_main(),
            "gathered": distributed.gather(torch.arange(14.0).view(7, 2)[distributed.share(7)], 7).tolist(),
        }
        tensors: dict[str, torch.Tensor] = {}
        for case, changes in {**CASES, "dropout": {"dropout": 0.3, "accumulation": 2, "chunk_names": 3}}.items():
            gradients, told[case] = first_gradients(config(**changes), pairs)
            tensors |= {f"{case}/{name}": value for name, value in gradients.items()}
        trained, step = weights_after(config(dropout=0.3, chunk_names=3), pairs, n_steps=4)
        tensors |= {f"trained/{name}": value for name, value in trained.items()}
        told["seconds"] = step.seconds_per_step()
        halved, halved_model = make_step(config(precision="fp16"), pairs)
        halved.load_state({"scale": torch.tensor(2.0**60), "scale_steps": torch.tensor(0)})
        told["overflowed"] = [halved(number, 99).overflowed for number in range(99)]
        tensors |= {f"halved/{name}": value for name, value in halved_model.cpu().state_dict().items()}
        save_file(tensors, out / f"{distributed.rank()}.safetensors")
        (out / f"{distributed.rank()}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(PairSet.open(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
