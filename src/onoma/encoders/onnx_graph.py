"""The ONNX graph of a BERT-like encoder, written node by node.

Tracing the model would take seconds, drag in another exporter, and leave a graph that ONNX Runtime has to recognise
and fuse again at every start. Written directly, the graph has the runtime's fused operators from the start (whole
attention layers, bias + GELU, skip + layer norm), pools inside, and for [CLS] pooling computes of the last layer only
what [CLS] needs. Parity with torch is checked whenever a graph is written.

Inputs ``input_ids`` and ``attention_mask``, int64, shape (names, tokens); output ``name_vectors``, float32, shape
(names, width), not normalised. Both axes are free. The graph of a cross-encoder (`onoma.encoders.cross_encoder`) takes
``token_type_ids`` too if the model has such embeddings, and gives ``pair_scores``, float32, shape (names,). The fused
operators are of the domain ``com.microsoft``, so the graph runs in ONNX Runtime, not in other engines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from torch import nn

from onoma.encoders.adapters import AdaptedNorm, Bottleneck, CoupledNorm, Coupling
from onoma.encoders.architectures import Architecture, Layer
from onoma.encoders.onnx_session import ATTENTION_MASK, INPUT_IDS, NAME_VECTORS, PAIR_SCORES, TOKEN_TYPES
from onoma.errors import ConfigError

if TYPE_CHECKING:
    from onoma.encoders.pooling import Pooling

OPSET = 18

_GELU = {"gelu": ("BiasGelu", "com.microsoft"), "gelu_new": ("FastGelu", "com.microsoft")}
"""Activation in ``config.json`` -> operator that adds a bias and applies it."""


def can_write_graph(parts: Architecture) -> bool:
    """Whether `write_graph` knows the activation of this model."""
    return parts.activation in _GELU or parts.activation == "relu"


def write_graph(
    parts: Architecture,
    *,
    pooling: Pooling,
    special_tokens: tuple[int, int] = (1, 1),
    head: nn.Linear | None = None,
) -> ModelProto:
    """The graph of an encoder with its weights inside.

    Args:
        parts: The encoder; `can_write_graph` must hold.
        pooling: ``"mean-all"`` averages every position it is given, so the caller pads to ``max_tokens``.
        special_tokens: How many stand before a name and after it; ``"mean-nospec"`` leaves them out.
        head: Makes a score of a pooled vector, without bias: the graph of a cross-encoder.

    Raises:
        ConfigError: there are LoRA updates that are not merged.
    """
    if any(type(linear) is not nn.Linear for layer in parts.layers for linear in (layer.query, layer.key, layer.value)):
        raise ConfigError(
            "LoRA must be merged into the weights before the graph is written: onoma.encoders.lora.merged."
        )
    graph = _Graph()
    has_types = head is not None and parts.n_token_types > 1
    states = graph.layer_norm(_embeddings(graph, parts, has_types=has_types), parts.embedding_norm)
    bias = _attention_bias(graph, parts)
    if isinstance(parts.embedding_norm, CoupledNorm):
        states = _coupling(graph, states, parts.embedding_norm.coupling)
    mask = graph.add("Cast", [ATTENTION_MASK], to=TensorProto.INT32)
    for layer in parts.layers[:-1]:
        states = _after_attention(graph, parts, layer, states, _attention(graph, parts, layer, states, mask, bias))
    last = parts.layers[-1]
    if pooling == "cls":
        first = graph.add("Slice", [states, *(graph.constant(np.array([at])) for at in (0, 1, 1))])
        if bias:
            bias = graph.add("Slice", [bias, *(graph.constant(np.array([at])) for at in (0, 1, 2))])
        context = _attention_of_first(graph, parts, last, first, states, mask, bias)
        pooled = _after_attention(graph, parts, last, first, context)
        graph.add("Squeeze", [pooled, graph.constant(np.array([1]))], output=NAME_VECTORS)
    else:
        states = _after_attention(graph, parts, last, states, _attention(graph, parts, last, states, mask, bias))
        _mean(graph, states, pooling, special_tokens)
    if head is None:
        return graph.model([INPUT_IDS, ATTENTION_MASK], NAME_VECTORS, ["names", parts.embedding_norm.weight.shape[0]])
    product = graph.add("MatMul", [NAME_VECTORS, graph.weight(head.weight.T)])
    graph.add("Squeeze", [product, graph.constant(np.array([1]))], output=PAIR_SCORES)
    return graph.model([INPUT_IDS, ATTENTION_MASK, *([TOKEN_TYPES] if has_types else [])], PAIR_SCORES, ["names"])


def _embeddings(graph: _Graph, parts: Architecture, *, has_types: bool) -> str:
    words = graph.add("Gather", [graph.weight(parts.word_embeddings.weight), INPUT_IDS])
    places = graph.add("Gather", [graph.weight(parts.position_embeddings.weight), _positions(graph, parts)])
    states = graph.add("Add", [words, places])
    if parts.token_type_embeddings is None:
        return states
    if has_types:
        table = graph.weight(parts.token_type_embeddings.weight)
        return graph.add("Add", [states, graph.add("Gather", [table, TOKEN_TYPES])])
    return graph.add("Add", [states, graph.weight(parts.token_type_embeddings.weight[0])])


def _positions(graph: _Graph, parts: Architecture) -> str:
    """Positions by counting, as a Range over the length meets a faulty fusion in ONNX Runtime (GatherToSlice, 1.31)."""
    along = graph.constant(np.array(1))
    if parts.padding_id is None:
        ones = graph.add(
            "ConstantOfShape", [graph.add("Shape", [INPUT_IDS])], value=numpy_helper.from_array(np.array([1]))
        )
        return graph.add("Sub", [graph.add("CumSum", [ones, along]), graph.constant(np.array(1))])
    padding = graph.constant(np.array(parts.padding_id))
    real = graph.add("Cast", [graph.add("Not", [graph.add("Equal", [INPUT_IDS, padding])])], to=TensorProto.INT64)
    return graph.add("Add", [graph.add("Mul", [graph.add("CumSum", [real, along]), real]), padding])


def _attention_bias(graph: _Graph, parts: Architecture) -> str:
    """What is added to the scores of attention, shape (1, H, tokens, tokens); an empty name if nothing is."""
    if parts.attention_bias is None:
        return ""
    n_positions = parts.position_embeddings.num_embeddings
    with torch.no_grad():
        square = parts.attention_bias(parts.position_embeddings.weight.new_empty(1, n_positions, 0))[0]
    # A row and a column of it hold every distance of key from query, from the lowest on.
    by_distance = torch.cat([square[:, 1:, 0].flip(1), square[:, 0]], 1)
    along = graph.constant(np.array(0))
    n_tokens = graph.add("Slice", [graph.add("Shape", [INPUT_IDS]), *(graph.constant(np.array([at])) for at in (1, 2))])
    ones = graph.add("ConstantOfShape", [n_tokens], value=numpy_helper.from_array(np.array([1])))
    place = graph.add("CumSum", [ones, along])  # not by a Range: see `_positions`
    key, query = (graph.add("Unsqueeze", [place, graph.constant(np.array([axis]))]) for axis in (0, 1))
    apart = graph.add("Add", [graph.add("Sub", [key, query]), graph.constant(np.array(n_positions - 1))])
    # Of three axes, as lower precisions take tables of two for those of words.
    found = graph.add("Gather", [graph.weight(by_distance.T[None]), apart], axis=1)
    return graph.add("Transpose", [found], perm=[0, 3, 1, 2])


def _attention(graph: _Graph, parts: Architecture, layer: Layer, states: str, mask: str, bias: str) -> str:
    projections = (layer.query, layer.key, layer.value)
    weight = np.concatenate([_array(linear.weight).T for linear in projections], axis=1)
    of_projections = np.concatenate([_array(linear.bias) for linear in projections])
    return graph.add(
        "Attention",
        [states, graph.constant(weight), graph.constant(of_projections), mask, *(["", bias] if bias else [])],
        domain="com.microsoft",
        num_heads=parts.n_heads,
        mask_filter_value=float(np.finfo(np.float32).min),
    )


def _attention_of_first(
    graph: _Graph, parts: Architecture, layer: Layer, first: str, states: str, mask: str, bias: str
) -> str:
    return graph.add(
        "MultiHeadAttention",
        [
            graph.linear(first, layer.query),
            graph.linear(states, layer.key),
            graph.linear(states, layer.value),
            "",
            mask,
            *([bias] if bias else []),
        ],
        domain="com.microsoft",
        num_heads=parts.n_heads,
        mask_filter_value=float(np.finfo(np.float32).min),
    )


def _after_attention(graph: _Graph, parts: Architecture, layer: Layer, states: str, context: str) -> str:
    states = graph.skip_layer_norm(context, layer.attention_out, states, layer.attention_norm)
    raised = graph.add("MatMul", [states, graph.weight(layer.up.weight.T)])
    bias = graph.weight(layer.up.bias)
    if parts.activation == "relu":
        active = graph.add("Relu", [graph.add("Add", [raised, bias])])
    else:
        operator, domain = _GELU[parts.activation]
        active = graph.add(operator, [raised, bias], domain=domain)
    if isinstance(layer.output_norm, AdaptedNorm):
        return _adapted_norm(graph, active, layer.down, states, layer.output_norm)
    return graph.skip_layer_norm(active, layer.down, states, layer.output_norm)


def _adapted_norm(graph: _Graph, active: str, down: nn.Linear, states: str, norm: AdaptedNorm) -> str:
    total = graph.add("Add", [states, graph.linear(active, down)])
    narrow = graph.add("Relu", [graph.linear(graph.layer_norm(total, norm), norm.adapter.down)])
    return graph.skip_layer_norm(narrow, norm.adapter.up, total, norm)


def _coupling(graph: _Graph, states: str, coupling: Coupling) -> str:
    middle, end = (graph.constant(np.array([place])) for place in (coupling.split[0], sum(coupling.split)))
    start, axis = graph.constant(np.array([0])), graph.constant(np.array([2]))
    first = graph.add("Slice", [states, start, middle, axis])
    second = graph.add("Slice", [states, middle, end, axis])
    first = graph.add("Add", [first, _bottleneck(graph, second, coupling.first)])
    second = graph.add("Add", [second, _bottleneck(graph, first, coupling.second)])
    return graph.add("Concat", [first, second], axis=-1)


def _bottleneck(graph: _Graph, states: str, bottleneck: Bottleneck) -> str:
    return graph.linear(graph.add("Relu", [graph.linear(states, bottleneck.down)]), bottleneck.up)


def _mean(graph: _Graph, states: str, pooling: Pooling, special_tokens: tuple[int, int]) -> None:
    axis = graph.constant(np.array([1]))
    if pooling == "mean-all":
        one = numpy_helper.from_array(np.array([1], np.float32))
        real = graph.add("ConstantOfShape", [graph.add("Shape", [ATTENTION_MASK])], value=one)
    else:
        counted = ATTENTION_MASK if pooling == "mean" else _text_mask(graph, *special_tokens)
        real = graph.add("Cast", [counted], to=TensorProto.FLOAT)
    # A product for each name. ReduceSum adds in another order where a batch has one name, or fewer than threads.
    product = graph.add("MatMul", [graph.add("Unsqueeze", [real, axis]), states])
    total = graph.add("Squeeze", [product, axis])
    graph.add("Div", [total, graph.add("ReduceSum", [real, axis], keepdims=1)], output=NAME_VECTORS)


def _text_mask(graph: _Graph, before: int, after: int) -> str:
    """1 for the tokens between the special ones; for all of a name that has no others."""
    along = graph.constant(np.array(1))
    n_tokens = graph.add("ReduceSum", [ATTENTION_MASK, graph.constant(np.array([1]))], keepdims=1)
    place = graph.add("CumSum", [ATTENTION_MASK, along])  # from 1; the padding's is that of the last token
    end = graph.add("Sub", [n_tokens, graph.constant(np.array(after))])
    past_start = graph.add("Greater", [place, graph.constant(np.array(before))])
    inside = graph.add("And", [past_start, graph.add("LessOrEqual", [place, end])])
    text = graph.add("Mul", [graph.add("Cast", [inside], to=TensorProto.INT64), ATTENTION_MASK])
    has_text = graph.add("Greater", [n_tokens, graph.constant(np.array(before + after))])
    return graph.add("Where", [has_text, text, ATTENTION_MASK])


class _Graph:
    """Nodes and weights under construction; every method returns the name of a value."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._weights: list[tuple[str, npt.NDArray[np.generic]]] = []

    def add(
        self, operator: str, inputs: list[str], *, domain: str = "", output: str | None = None, **attributes: Any
    ) -> str:
        name = output or f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def constant(self, value: npt.NDArray[np.generic]) -> str:
        name = f"constant_{len(self._weights)}"
        self._weights.append((name, value))
        return name

    def weight(self, value: torch.Tensor) -> str:
        return self.constant(_array(value))

    def linear(self, states: str, linear: nn.Linear) -> str:
        product = self.add("MatMul", [states, self.weight(linear.weight.T)])
        return self.add("Add", [product, self.weight(linear.bias)])

    def layer_norm(self, states: str, norm: nn.LayerNorm) -> str:
        inputs = [states, self.weight(norm.weight), self.weight(norm.bias)]
        return self.add("LayerNormalization", inputs, epsilon=norm.eps, axis=-1)

    def skip_layer_norm(self, states: str, linear: nn.Linear, skip: str, norm: nn.LayerNorm) -> str:
        """norm(skip + linear(states))."""
        product = self.add("MatMul", [states, self.weight(linear.weight.T)])
        inputs = [product, skip, self.weight(norm.weight), self.weight(norm.bias), self.weight(linear.bias)]
        return self.add("SkipLayerNormalization", inputs, domain="com.microsoft", epsilon=norm.eps)

    def model(self, inputs: list[str], output: str, shape: list[str | int]) -> ModelProto:
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [helper.make_tensor_value_info(name, TensorProto.INT64, ["names", "tokens"]) for name in inputs],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        # IR version 8 is what every ONNX Runtime since 1.12 reads; the library would write its own newest.
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="onoma")
        for name, value in self._weights:  # one after the other, as each message that is put into another is copied
            model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return model


def _array(value: torch.Tensor) -> npt.NDArray[np.float32]:
    return np.asarray(value.detach().cpu().float().numpy(), np.float32)
