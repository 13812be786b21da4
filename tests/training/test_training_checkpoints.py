from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from torch import nn

from onoma.training import checkpoints
from onoma.training.checkpoints import Progress, load_checkpoint, save_checkpoint


class Strange(nn.Module):
    """Tensors that share memory with one another, and one that is not in one piece."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.arange(6.0).view(2, 3))
        self.same = self.first
        self.turned = nn.Parameter(torch.arange(6.0).view(2, 3).T)
        whole = torch.arange(10.0)
        self.register_buffer("part", whole[:4])
        self.register_buffer("rest", whole[2:])


def test_a_full_disk_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(checkpoints, "save_file", full)
    model = Strange()
    with pytest.raises(OSError, match="No space left on device") as caught:
        save_checkpoint(tmp_path, model, torch.optim.SGD([model.first], lr=0.1), Progress(3, 1.0), run="r")
    assert (caught.value.errno, caught.value.filename) == (28, str(tmp_path / "checkpoint.safetensors"))


def test_tensors_come_back_whatever_memory_they_lie_in(tmp_path: Path) -> None:
    model = Strange()
    optimiser = torch.optim.SGD([model.first], lr=0.1)
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    save_checkpoint(tmp_path, model, optimiser, Progress(3, 1.0), run="r")
    with torch.no_grad():
        for value in model.state_dict().values():
            value.zero_()
    assert load_checkpoint(tmp_path, model, optimiser, run="r") == Progress(3, 1.0)
    for name, value in expected.items():
        assert torch.equal(model.state_dict()[name], value), name
