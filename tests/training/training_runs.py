"""What tests of training runs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file

from onoma.training.optimiser_step import DoneStep


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def interrupt_at(step: int) -> Callable[[DoneStep], None]:
    def on_step(report: DoneStep) -> None:
        if report.step == step:
            raise KeyboardInterrupt

    return on_step
