"""Weights that serve better than those of the last step: a moving average, a share of the weights before training."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


class WeightAverage:
    """What is measured and saved in place of the weights of the last step.

    An exponential moving average of the trained weights, with a decay that grows to its full value. After step t,
    counted from 1, with weights w_t and the weights before training as a_0::

        a_t = d_t a_{t-1} + (1 - d_t) w_t        d_t = min(decay, (1 + t) / (10 + t))

    The full decay 0.999 is an average over some thousand steps. A short run would then give mostly the weights it began
    with; the lower decay of early steps makes it an average over about the last tenth of the run at any time, and the
    weights of the beginning fade with the ninth power of t.

    And a straight line from these to the weights before training, which keeps more of what the base encoder knows of
    texts unlike those it is trained on::

        served = (1 - base_share) a_t + base_share a_0

    Args:
        model: Whose weights that need gradients are averaged. They are taken as they are now, in fp32, as a_0.
        decay: Between 0 and 1; unset: a_t is w_t.
        base_share: From 0 up to, but not, 1. Of LoRA's two factors, whose product is added to a weight, the one that
            begins at 0 alone is drawn back, so that the sum lies on the line.

    Source:
        Polyak and Juditsky 1992; the growing decay is that of TensorFlow's ExponentialMovingAverage (``num_updates``).
        Wortsman et al. 2022, "Robust fine-tuning of zero-shot models", equation 1, for the line.
    """

    def __init__(self, model: nn.Module, decay: float | None, *, base_share: float = 0.0) -> None:
        self._trained = trained_weights(model)
        self._decay = decay
        self._base_share = base_share
        self._averages = self._copies() if decay is not None else None
        drawn_back = self._copies() if base_share else {}
        self._base = {name: weight for name, weight in drawn_back.items() if "lora_A" not in name}
        self._updates = 0

    def update(self) -> None:
        """Take in the weights as they are after a step."""
        if self._averages is None or self._decay is None:
            return
        self._updates += 1
        decay = min(self._decay, (1 + self._updates) / (10 + self._updates))
        move = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
        move(list(self._averages.values()), list(self._trained.values()), None)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """The model has the served weights inside the block, and gets its own back after it, to the bit."""
        own = self._copies()
        self.apply()
        try:
            yield
        finally:
            put_weights(self._trained, own)

    def apply(self) -> None:
        """Give the model the served weights for good."""
        if self._averages is not None:
            put_weights(self._trained, self._averages)
        if self._base_share:
            with torch.no_grad():
                for name, weight in self._base.items():
                    self._trained[name].lerp_(weight, self._base_share)

    def state(self) -> dict[str, Tensor]:
        """What a resumed run needs; the weights before training it has from the base."""
        if self._averages is None:
            return {}
        return {**self._averages, "/updates": torch.tensor(self._updates)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        if self._averages is not None:
            self._updates = int(state["/updates"])
            put_weights(self._averages, state)

    def _copies(self) -> dict[str, Tensor]:
        return {name: weight.detach().clone() for name, weight in self._trained.items()}


def trained_weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """The weights that need gradients, by name."""
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def put_weights(into: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    """Overwrite tensors by those of the same names."""
    with torch.no_grad():
        for name, tensor in into.items():
            tensor.copy_(values[name])
