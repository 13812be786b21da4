"""The trainable encoder: a Hugging Face transformer run on packed names.

The model's own modules hold the weights, so its state dict is the checkpoint every other tool knows; only the way
data pass through them is ours. Families of `onoma.encoders.architectures` run packed end to end; any other encoder
runs once per group of equally long names, which needs no padding either.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import nn
from torch.nn import functional

from onoma.encoders.architectures import Architecture, Layer, read_architecture
from onoma.encoders.attention import PackedAttention, tile_on_gpu
from onoma.encoders.dropout import Dropout
from onoma.encoders.folders import EncoderFolder
from onoma.encoders.linear import linear
from onoma.encoders.packing import PackedBatch, pack, pack_lists
from onoma.encoders.pooling import Pooling
from onoma.errors import ConfigError

__all__ = ["PackedBatch", "PackedEncoder", "pack", "pack_lists"]


_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")

_TOKEN_STEP = 256
"""On a CPU the token axis is filled up to a multiple of this, because oneDNN compiles and keeps a kernel for each new
number of rows: without it memory grows by gigabytes over a run."""


class PackedEncoder(nn.Module):
    """Names to vectors without padding.

    Shapes: N names, T tokens over all names, D width.

    Args:
        model: A Hugging Face encoder; its weights are shared, not copied.
        pooling: ``"cls"``: the first token's vector; ``"mean"``: the mean over the name's tokens, special tokens
            included; ``"mean-nospec"``: the mean over the tokens of its text, without special ones (Vulic et al. 2020),
            or over these for a name without text; ``"mean-all"``: the mean over ``max_tokens`` positions, padding
            included, as SapBERT's released code does for its ``mean-token`` model (``mean_all_tok``).
        max_tokens: Longest name in tokens, special tokens included; the width that ``"mean-all"`` pads to.
        source: The folder that the model came from, if it did.
    """

    def __init__(
        self, model: nn.Module, *, pooling: Pooling, max_tokens: int, source: EncoderFolder | None = None
    ) -> None:
        super().__init__()
        # Any: Hugging Face's modules are reached by attribute.
        self.model: Any = model
        self.pooling: Pooling = pooling
        self.max_tokens = max_tokens
        self.source = source
        self.architecture = read_architecture(model)
        """The model's parts if it can run packed; None for other families."""
        self.compiled = False
        """Whether what lies between the attentions of layers is compiled (``torch.compile``) while it is trained:
        meant for a GPU, where a few kernels take the place of many small ones. Dropout then draws other numbers."""

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return int(self.model.config.hidden_size)

    @property
    def padding_id(self) -> int:
        """The token that fills rectangles, where an encoder cannot do without them."""
        return int(self.model.config.pad_token_id or 0)

    @property
    def special_tokens(self) -> tuple[int, int]:
        """How many special tokens stand before a name and after it; one each in an encoder made in memory."""
        return (1, 1) if self.source is None else self.source.special_tokens

    @property
    def runs_packed(self) -> bool:
        """Whether this family runs packed end to end; if not, group by group through the model's own forward."""
        return self.architecture is not None and self.pooling != "mean-all"

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the weights as loaded, tokeniser, pooling and ``max_tokens``."""
        return self._folder().fingerprint

    @property
    def tokenizer_fingerprint(self) -> str:
        """SHA-256 of the tokeniser; tokens made with another one do not fit this encoder."""
        return self._folder().tokenizer_fingerprint

    def recorded_tile(self, batch: PackedBatch) -> int | None:
        """Tokens of the longest name that a recording of such a batch would have room for (CUDA graphs).

        None if it cannot be recorded: what is computed depends on more than the numbers of names and tokens.
        """
        parts = self.architecture
        if parts is None or parts.attention_bias is not None or batch.types is not None or self.pooling == "mean-all":
            return None
        return tile_on_gpu(batch.groups[-1][1], self.width // parts.n_heads) if batch.n_names else None

    def forward(self, batch: PackedBatch) -> torch.Tensor:
        """Vectors of the names in the caller's order, not normalised, shape (N, D)."""
        if batch.n_names == 0:
            return next(self.parameters()).new_zeros(0, self.width)
        if self.pooling == "mean-all":
            pooled = self._mean_of_padded(batch)
        elif self.architecture is None:
            pooled = self._pool(self._tokens_by_group(batch), batch)
        else:
            first_only = self.pooling == "cls"
            tokens = self._run_packed(self.architecture, batch, first_only=first_only)
            pooled = tokens if first_only else self._pool(tokens, batch)
        return pooled.index_select(0, batch.restore)

    def token_vectors(self, batch: PackedBatch) -> torch.Tensor:
        """The last layer's vector of every token, in packed order, shape (T, D)."""
        if self.architecture is None:
            return self._tokens_by_group(batch)
        return self._run_packed(self.architecture, batch, first_only=False)

    def _run_packed(self, parts: Architecture, batch: PackedBatch, *, first_only: bool) -> torch.Tensor:
        compiled = self.compiled and self.training
        return _run_packed(parts, batch, training=self.training, compiled=compiled, first_only=first_only)

    def _pool(self, tokens: torch.Tensor, batch: PackedBatch) -> torch.Tensor:
        if self.pooling == "cls":
            return tokens.index_select(0, batch.starts)
        before, after = self.special_tokens if self.pooling == "mean-nospec" else (0, 0)
        if tokens.device.type == "cuda":
            return _means(tokens, batch, before, after)
        groups = tokens.split_with_sizes([names * length for names, length in batch.groups])
        means = []
        for group, (names, length) in zip(groups, batch.groups, strict=True):
            rectangle = group.view(names, length, -1)
            has_text = length > before + after
            pooled = rectangle[:, before : length - after] if has_text else rectangle
            means.append(pooled.mean(1, dtype=torch.promote_types(pooled.dtype, torch.float32)))
        return torch.cat(means)

    def _tokens_by_group(self, batch: PackedBatch) -> torch.Tensor:
        tokens = []
        groups = batch.ids.split_with_sizes([names * length for names, length in batch.groups])
        for ids, (names, length) in zip(groups, batch.groups, strict=True):
            rectangle = ids.view(names, length)
            output = self.model(input_ids=rectangle, attention_mask=torch.ones_like(rectangle))
            tokens.append(output.last_hidden_state.reshape(names * length, -1))
        return torch.cat(tokens)

    def _mean_of_padded(self, batch: PackedBatch) -> torch.Tensor:
        width = max(self.max_tokens, batch.groups[-1][1])
        rows = torch.repeat_interleave(
            torch.arange(batch.n_names, device=batch.ids.device),
            batch.borders.diff(),
            output_size=batch.n_tokens,
        )
        ids = batch.ids.new_full((batch.n_names, width), self.padding_id)
        mask = torch.zeros_like(ids)
        ids[rows, batch.positions] = batch.ids
        mask[rows, batch.positions] = 1
        hidden: torch.Tensor = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
        return hidden.mean(1)

    def _folder(self) -> EncoderFolder:
        if self.source is None:
            raise ConfigError("this encoder was made in memory; only one loaded from a folder has a fingerprint.")
        return self.source


def _run_packed(
    parts: Architecture, batch: PackedBatch, *, training: bool, compiled: bool, first_only: bool
) -> torch.Tensor:
    """All layers over packed tokens: every token's vector (T, D), or that of each name's first token only (N, D)."""
    side_by_side, after_attention = _side_by_side, _after_attention
    if compiled:
        side_by_side, after_attention = _compiled(_side_by_side), _compiled(_after_attention)
    dropout = Dropout(parts.hidden_dropout.p if training else 0.0)
    attention_dropout = Dropout(parts.attention_dropout.p if training else 0.0)
    bias = None
    if parts.attention_bias is not None:
        bias = parts.attention_bias(parts.word_embeddings.weight.new_empty(1, batch.groups[-1][1], 0))
    attention = PackedAttention(
        batch.groups, n_heads=parts.n_heads, dropout=attention_dropout, bias=bias, borders=batch.borders
    )
    states = parts.word_embeddings(batch.ids) + parts.position_embeddings(_positions(parts, batch))
    if parts.token_type_embeddings is not None:
        weight = parts.token_type_embeddings.weight
        if batch.types is None or parts.n_token_types == 1:  # RoBERTa has one type, also for both sides of a pair
            states = states + weight[0]
        else:
            states = states + functional.embedding(batch.types, weight)
    n_tokens = batch.n_tokens
    spare = -n_tokens % _TOKEN_STEP if states.device.type == "cpu" else 0
    states = parts.embedding_norm(states)
    states = dropout(functional.pad(states, (0, 0, 0, spare)) if spare else states)
    last = len(parts.layers) - 1
    for depth, layer in enumerate(parts.layers):
        if first_only and depth == last:
            key_value = side_by_side(states, layer.key, layer.value)
            states = states.index_select(0, batch.starts)
            context = attention.of_first(_project(layer.query, states), key_value)
        else:
            context = attention.of_all(side_by_side(states, layer.query, layer.key, layer.value))
        states = after_attention(layer, states, context, dropout)
    return states if first_only else states[:n_tokens]


@functools.cache
def _compiled(part: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """A part of a layer compiled once for all layers and numbers of tokens: weights are among what it is given."""
    return torch.compile(part, dynamic=True)


def _side_by_side(states: torch.Tensor, *modules: nn.Module) -> torch.Tensor:
    """Projections of the same states, shape (T, D for each)."""
    if all(type(module) is nn.Linear for module in modules):
        weights, biases = [module.weight for module in modules], [module.bias for module in modules]
        return linear(states, torch.cat(weights), torch.cat(biases))  # type: ignore[arg-type]
    return torch.cat([_project(module, states) for module in modules], -1)


def _project(module: nn.Module, states: torch.Tensor) -> torch.Tensor:
    if type(module) is nn.Linear:
        return linear(states, module.weight, module.bias)
    projected: torch.Tensor = module(states)  # a layer of LoRA is more than its weight
    return projected


def _after_attention(layer: Layer, states: torch.Tensor, context: torch.Tensor, dropout: Dropout) -> torch.Tensor:
    attended = _project(layer.attention_out, context)
    if layer.drops_after_attention:
        attended = dropout(attended)
    states = layer.attention_norm(states + attended)
    raised = layer.activate(_project(layer.up, states))
    normed: torch.Tensor = layer.output_norm(states + dropout(_project(layer.down, raised)))
    return normed


def _means(tokens: torch.Tensor, batch: PackedBatch, before: int, after: int) -> torch.Tensor:
    """Mean of each name's tokens between ``before`` first and ``after`` last ones, of all where none are there, (N, D).

    It knows names by their borders alone, so that passes with it can be recorded; tokens after the last border count
    for none. Sums are in the order of the tokens, so that they are the same to the bit each time on a GPU too.
    """
    lengths = batch.borders.diff()
    left_out = torch.where(lengths > before + after, before + after, 0)
    name = torch.searchsorted(batch.borders[1:], torch.arange(len(tokens), device=tokens.device), right=True)
    of_name = functional.pad(torch.stack([lengths, left_out]), (0, 1))[:, name]
    is_between = (batch.positions >= before) & (batch.positions < of_name[0] - after)
    counted = (is_between | (of_name[1] == 0)).to(torch.promote_types(tokens.dtype, torch.float32))
    sums = torch.segment_reduce(tokens * counted[:, None], "sum", offsets=batch.borders, axis=0, unsafe=True)
    return sums / (lengths - left_out)[:, None]


def _positions(parts: Architecture, batch: PackedBatch) -> torch.Tensor:
    if parts.padding_id is None:
        return batch.positions
    # A name may hold the padding token as text; such a token has the padding's position and is not counted.
    real = (batch.ids != parts.padding_id).long()
    counted = real.cumsum(0)
    begins = torch.arange(batch.n_tokens, device=batch.ids.device) - batch.positions
    before = (counted - real).index_select(0, begins)
    return (counted - before) * real + parts.padding_id
