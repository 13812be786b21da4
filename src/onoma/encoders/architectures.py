"""Which module of a Hugging Face model plays which part, for the families that run packed.

Every supported encoder is the post-norm transformer of BERT; only the names of its modules, the numbering of
positions and what MPNet adds to the scores of attention differ. The differences stand in `read_architecture` and
nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch import nn

from onoma.encoders.folders import COUNTS_FROM_PADDING

BERT_LIKE = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "mpnet", "distilbert"})
"""Values of ``model_type`` in ``config.json`` that run packed; MiniLM is ``bert``."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One post-norm transformer layer: x = norm(x + attention(x)); x = norm(x + down(activate(up(x)))).

    While LoRA is trained, layers of PEFT stand in for ``query`` and ``value``, and norms may have adapters inside
    (`onoma.encoders.adapters`). Call them: their weight is not all.
    """

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    attention_out: nn.Linear
    attention_norm: nn.LayerNorm
    up: nn.Linear
    activate: Callable[[torch.Tensor], torch.Tensor]
    down: nn.Linear
    output_norm: nn.LayerNorm
    drops_after_attention: bool
    """Whether hidden dropout also follows ``attention_out`` (DistilBERT has none there)."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The parts of an encoder in the order that data pass through them."""

    word_embeddings: nn.Embedding
    position_embeddings: nn.Embedding
    token_type_embeddings: nn.Embedding | None
    embedding_norm: nn.LayerNorm
    layers: tuple[Layer, ...]
    n_heads: int
    activation: str
    """Name of ``Layer.activate`` in ``config.json``."""
    hidden_dropout: nn.Dropout
    """Any one of the model's; they share one probability."""
    attention_dropout: nn.Dropout
    padding_id: int | None
    """Set where positions count from it: token i that is not padding has position padding_id + 1 + i."""
    attention_bias: Callable[[torch.Tensor], torch.Tensor] | None = None
    """What is added to the scores of attention in every layer, by how far apart query and key stand: shape (1, H, l, l)
    for states of shape (1, l, any), of which only size and device count; MPNet."""

    @property
    def n_token_types(self) -> int:
        """Sides of a pair that the model tells apart by embeddings of their own."""
        return 1 if self.token_type_embeddings is None else self.token_type_embeddings.num_embeddings


def read_architecture(model: nn.Module) -> Architecture | None:
    """The parts of a Hugging Face model, or None if it is of a family that does not run packed."""
    config = getattr(model, "config", None)
    family = getattr(config, "model_type", None)
    if family not in BERT_LIKE or getattr(config, "position_embedding_type", "absolute") != "absolute":
        return None
    if getattr(config, "is_decoder", False):
        return None
    return _distilbert(model) if family == "distilbert" else _bert(model, family)


_OF_ATTENTION = {
    "bert": {
        "query": "self.query",
        "key": "self.key",
        "value": "self.value",
        "attention_out": "output.dense",
        "attention_norm": "output.LayerNorm",
    },
    "mpnet": {
        "query": "attn.q",
        "key": "attn.k",
        "value": "attn.v",
        "attention_out": "attn.o",
        "attention_norm": "LayerNorm",
    },
}
"""What the parts of a layer's attention are called."""


# Hugging Face's modules are reached by attribute; their classes differ per family and are not worth importing.
def _bert(model: Any, family: str) -> Architecture:
    config, embeddings = model.config, model.embeddings
    of_attention = _OF_ATTENTION["mpnet" if family == "mpnet" else "bert"]
    layers = tuple(
        Layer(
            **{part: attrgetter(name)(layer.attention) for part, name in of_attention.items()},
            up=layer.intermediate.dense,
            activate=layer.intermediate.intermediate_act_fn,
            down=layer.output.dense,
            output_norm=layer.output.LayerNorm,
            drops_after_attention=True,
        )
        for layer in model.encoder.layer
    )
    first = model.encoder.layer[0].attention
    return Architecture(
        word_embeddings=embeddings.word_embeddings,
        position_embeddings=embeddings.position_embeddings,
        token_type_embeddings=None if family == "mpnet" else embeddings.token_type_embeddings,
        embedding_norm=embeddings.LayerNorm,
        layers=layers,
        n_heads=config.num_attention_heads,
        activation=config.hidden_act,
        hidden_dropout=embeddings.dropout,
        attention_dropout=(first.attn if family == "mpnet" else first.self).dropout,
        padding_id=embeddings.padding_idx if family in COUNTS_FROM_PADDING else None,
        attention_bias=model.encoder.compute_position_bias if family == "mpnet" else None,
    )


def _distilbert(model: Any) -> Architecture:
    config, embeddings = model.config, model.embeddings
    layers = tuple(
        Layer(
            query=layer.attention.q_lin,
            key=layer.attention.k_lin,
            value=layer.attention.v_lin,
            attention_out=layer.attention.out_lin,
            attention_norm=layer.sa_layer_norm,
            up=layer.ffn.lin1,
            activate=layer.ffn.activation,
            down=layer.ffn.lin2,
            output_norm=layer.output_layer_norm,
            drops_after_attention=False,
        )
        for layer in model.transformer.layer
    )
    return Architecture(
        word_embeddings=embeddings.word_embeddings,
        position_embeddings=embeddings.position_embeddings,
        token_type_embeddings=None,
        embedding_norm=embeddings.LayerNorm,
        layers=layers,
        n_heads=config.n_heads,
        activation=config.activation,
        hidden_dropout=embeddings.dropout,
        attention_dropout=model.transformer.layer[0].attention.dropout,
        padding_id=None,
    )
