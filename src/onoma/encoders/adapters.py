"""Bottleneck adapters: small layers trained inside an encoder whose own weights stay unchanged.

The configuration is that of SapBERT's adapters and of MAD-X (Pfeiffer et al. 2020; AdapterHub calls it Pfeiffer's, with
invertible adapters)::

    after each layer's feed-forward block    z = norm(x + f);  y = norm(x + f + up(relu(down(z))))
    after the embeddings, once               a, b = e;  a' = a + F(b);  b' = b + G(a');  e' = a', b'

Here x is the input of the block, f its output, ``norm`` the encoder's own layer norm (used twice), and F and G are
bottlenecks over half the width. Both parts only touch the input and the output of a layer norm. So a norm is replaced
by one with an adapter inside. This works for every family whose layers end in a norm, in its own forward and packed.
The names of the encoder's own weights do not change.

Parameters for BERT-base: 14,470,272 with reduction 1 (14.47 M and 13.22 % in SapBERT's table 7), and 1,190,592 with
reduction 16 (1.09 % there; the 0.60 M printed beside it is half of that, and would be 0.55 %). Both include the
coupling's 296,064.

An adapter starts as the identity: ``up`` is zero, so training starts exactly from the encoder that is adapted, however
deep it is. (AdapterHub draws ``up`` with deviation 0.02, like all of BERT's weights.) In training, the dropout of the
embeddings comes after the coupling here, before it in AdapterHub.

A bottleneck cannot be merged into the weights around it, as LoRA can: there is a relu and a layer norm between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from onoma.errors import ConfigError, MismatchError

_COUPLING_REDUCTION = 2
"""Half the width over that of its bottleneck (MAD-X)."""


class Bottleneck(nn.Module):
    """Down, relu, up: shape (..., n_in) to (..., n_out)."""

    def __init__(self, n_in: int, width: int, n_out: int) -> None:
        super().__init__()
        self.down = nn.Linear(n_in, width)
        self.up = nn.Linear(width, n_out)
        nn.init.normal_(self.down.weight, std=0.02)  # as BERT's own weights
        for zero in (self.down.bias, self.up.weight, self.up.bias):
            nn.init.zeros_(zero)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        raised: torch.Tensor = self.up(functional.relu(self.down(states)))
        return raised


class Coupling(nn.Module):
    """Each half of the states is moved by a function of the other half (NICE, Dinh et al. 2014)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.split = (width // 2, width - width // 2)
        first, second = self.split
        self.first = Bottleneck(second, second // _COUPLING_REDUCTION, first)
        self.second = Bottleneck(first, first // _COUPLING_REDUCTION, second)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        first, second = states.split_with_sizes(self.split, -1)
        first = first + self.first(second)
        return torch.cat([first, second + self.second(first)], -1)


class _NormWithAdapter(nn.LayerNorm):
    """A layer norm that keeps the weights of another."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__(norm.normalized_shape, eps=norm.eps, device="meta")
        self.weight, self.bias = norm.weight, norm.bias


class AdaptedNorm(_NormWithAdapter):
    """The norm at the end of a layer, with the layer's adapter: norm(s + adapter(norm(s)))."""

    def __init__(self, norm: nn.LayerNorm, width: int) -> None:
        super().__init__(norm)
        (outer,) = norm.normalized_shape
        self.adapter = Bottleneck(outer, width, outer).to(norm.weight.device)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return super().forward(states + self.adapter(super().forward(states)))


class CoupledNorm(_NormWithAdapter):
    """The norm of the embeddings, with the invertible adapter: coupling(norm(s))."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__(norm)
        self.coupling = Coupling(norm.normalized_shape[0]).to(norm.weight.device)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        coupled: torch.Tensor = self.coupling(super().forward(states))
        return coupled


def insert_adapters(model: nn.Module, *, reduction: int, invertible: bool) -> None:
    """Put fresh adapters into a Hugging Face encoder, in place.

    Args:
        model: An encoder without adapters, of any family whose layers end in a layer norm.
        reduction: Width of the encoder over width of the bottleneck.
        invertible: Whether the embeddings get an adapter too.

    Raises:
        ConfigError: the encoder has adapters, its layers do not end in a norm, or its width is no multiple of
            ``reduction``.
    """
    if has_adapters(model):
        raise ConfigError(
            "this encoder has adapters already, and no second ones can be put in. Train it with tuning=all or "
            "tuning=lora, or begin with the encoder that the adapters were trained on."
        )
    embeddings, ends = _norms(model)
    width = ends[0][1].normalized_shape[0]
    if width % reduction:
        nearest = min((n for n in range(1, width + 1) if width % n == 0), key=lambda n: abs(n - reduction))
        raise ConfigError(
            f"tuning.reduction = {reduction} does not divide the encoder's width of {width}; {nearest} does."
        )
    for name, norm in ends:
        model.set_submodule(name, AdaptedNorm(norm, width // reduction))
    if invertible:
        if embeddings is None:
            raise ConfigError(
                f"the {_family(model)} encoder has no layer norm after its embeddings, where the invertible adapter "
                "belongs. Set tuning.invertible=false."
            )
        model.set_submodule(embeddings[0], CoupledNorm(embeddings[1]))


def insert_saved(model: nn.Module, tensors: Mapping[str, torch.Tensor]) -> None:
    """Put trained adapters into a Hugging Face encoder, in place.

    Args:
        model: The encoder they were trained in, without adapters.
        tensors: As `adapter_tensors` gave them.

    Raises:
        MismatchError: they do not fit this encoder.
    """
    for name, tensor in tensors.items():
        path, adapter, _ = name.partition(".adapter.down.weight")
        if adapter:
            model.set_submodule(path, AdaptedNorm(_norm_at(model, path), tensor.shape[0]))
        path, coupling, _ = name.partition(".coupling.first.down.weight")
        if coupling:
            model.set_submodule(path, CoupledNorm(_norm_at(model, path)))
    own = adapter_tensors(model)
    if {name: tensor.shape for name, tensor in own.items()} != {name: tensor.shape for name, tensor in tensors.items()}:
        raise MismatchError("the adapter does not fit this encoder: its weights have other names or sizes.")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def has_adapters(model: nn.Module) -> bool:
    """Whether a model has bottleneck adapters inside."""
    return any(isinstance(module, _NormWithAdapter) for module in model.modules())


def adapter_tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """The weights of the adapters of a model, by their names in its state dict; not copied."""
    return {
        f"{path}.{name}": tensor
        for path, module in model.named_modules()
        if isinstance(module, _NormWithAdapter)
        for name, tensor in module.named_parameters()
        if name not in {"weight", "bias"}
    }


def is_adapter_name(name: str) -> bool:
    """Whether a name in a state dict is the name of an adapter's weight."""
    return any(f".{part}." in name for part in ("adapter", "coupling"))


def _norms(model: Any) -> tuple[tuple[str, nn.LayerNorm] | None, list[tuple[str, nn.LayerNorm]]]:
    """The layer norm after the embeddings, and the one that each layer ends in.

    Two tokens are run through the model: a norm ends a layer if their outputs are the same. So no list of families is
    needed, and pre-norm families, whose layers end in a sum, are recognised.
    """
    ran: list[tuple[str, nn.LayerNorm, torch.Tensor]] = []
    hooks = [
        module.register_forward_hook(lambda norm, _, output, name=name: ran.append((name, norm, output)))
        for name, module in model.named_modules()
        if type(module) is nn.LayerNorm  # one that does more would lose it
    ]
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            ids = torch.ones((1, 2), dtype=torch.int64, device=next(model.parameters()).device)
            given = model(input_ids=ids, output_hidden_states=True).hidden_states[1:]
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()
    ends = {name: norm for name, norm, output in ran if any(output is states for states in given)}
    if sum(any(output is states for _, _, output in ran) for states in given) < len(given):
        raise ConfigError(
            f"adapters need an encoder whose every layer ends in a layer norm, as BERT's do; those of "
            f"{_family(model)} do not. Train it with tuning=all, or with tuning=lora if it has layers of its own for "
            "queries and values."
        )
    # The layers of every family lie in numbered lists; the norm of the embeddings runs before them and in none.
    first, norm, _ = ran[0]
    embeddings = None if any(part.isdigit() for part in first.split(".")) else (first, norm)
    return embeddings, list(ends.items())


def _norm_at(model: nn.Module, path: str) -> nn.LayerNorm:
    try:
        module = model.get_submodule(path)
    except AttributeError:
        module = None
    if type(module) is not nn.LayerNorm:
        raise MismatchError(f"the adapter does not fit this encoder, which has no layer norm {path}.")
    return module


def _family(model: Any) -> str:
    return str(getattr(model.config, "model_type", type(model).__name__))
