"""Rewrite the ONNX model of an encoder in a lower precision, and nothing else about it.

``fp16-weights``
    Matrices are kept in half precision and made fp32 when a session starts: half the size, arithmetic as before.
``int8-weights``
    Matrices are kept in 8 bits, a scale for every 64 numbers of a column (for every row of an embedding table), and
    made fp32 when a session starts: a quarter of the size, arithmetic as before.
``int8``
    The linear layers multiply 8-bit integers. Weights have a scale for each column; every token is scaled by its own
    largest number, so that a name's vector does not depend on the names it shares a batch with. (ONNX Runtime's own
    dynamic quantisation has one scale for the whole batch: there a name alone and the same name in company differ.)
    All else (attention, norms, activations, sums) stays fp32.

Half precision and bfloat16 arithmetic are not among them: ONNX Runtime has next to no kernels for them on a CPU and
converts to fp32 around every node. Torch has bfloat16.

Needs `onnx`, not torch, and works on the graphs that Onoma writes as well as on traced ones: it looks for operators,
not for an architecture.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from onoma.encoders.folders import OnnxPrecision
from onoma.encoders.onnx_files import write_aligned
from onoma.errors import ConfigError
from onoma.types import FloatArray

BLOCK = 64
"""Numbers of a column that share a scale in ``int8-weights``."""

_LOWEST = {"BiasGelu": 0.1701, "FastGelu": 0.1701, "Gelu": 0.1701, "Relu": 0.0}
"""How far below zero these activations can reach (GELU's minimum is -0.16997, of its tanh form -0.17004): what they
give is quantised from there on up, where half the range would else be wasted."""

_WEIGHT_LIMIT = 63
"""Largest 8-bit weight that is multiplied: processors without VNNI instructions add pairs of products in 16 bits, and
2 x 255 x 63 still fits. With 127 they would saturate, and give other vectors than newer ones."""


_PROTOBUF_LIMIT = 2**31 - 2**24
"""Bytes; no protobuf message can be larger than 2 GiB."""


def lower_precision(model: ModelProto, precision: OnnxPrecision) -> ModelProto:
    """The same model in a lower precision.

    Args:
        model: In fp32, weights inside; it is left as it is.
        precision: Not fp32.

    Raises:
        ConfigError: nothing in the model can be made smaller this way, or a weight does not fit.
    """
    lowered = ModelProto()
    lowered.CopyFrom(model)
    rewriting = _Rewriting(lowered)
    if precision == "int8":
        rewriting.each_node(rewriting.integer_arithmetic)
    else:
        rewriting.each_node(rewriting.small_weights_of_fp16 if precision == "fp16-weights" else rewriting.small_weights)
    if not rewriting.changed:
        raise ConfigError(f"this ONNX model has no matrices that could be kept in {precision}.")
    rewriting.finish()
    return lowered


def save_onnx(model: ModelProto, file: Path) -> None:
    """Write a model; a very large one keeps its weights in a file beside it, ``NAME.data``."""
    if sum(tensor.ByteSize() for tensor in model.graph.initializer) > _PROTOBUF_LIMIT:
        onnx.save_model(model, file, save_as_external_data=True, location=f"{file.name}.data")
    else:
        write_aligned(memoryview(model.SerializeToString()), file)


class _Rewriting:
    """Nodes and weights of a model while they are replaced."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._old = {tensor.name: tensor for tensor in model.graph.initializer}
        self._new: dict[str, TensorProto] = {}
        self._nodes: list[NodeProto] = []
        self._made_by = {output: node.op_type for node in model.graph.node for output in node.output}
        self._unpacked: dict[str, str] = {}
        self._quantised: dict[str, tuple[str, str]] = {}
        self.changed = False

    def each_node(self, rewrite: Callable[[NodeProto], bool]) -> None:
        """Replace every node that ``rewrite`` replaces, keep the others."""
        for node in self._model.graph.node:
            if rewrite(node):
                self.changed = True
            else:
                self._nodes.append(node)

    def finish(self) -> None:
        graph = self._model.graph
        used = {name for node in self._nodes for name in node.input}
        weights = [tensor for tensor in graph.initializer if tensor.name in used]
        nodes = list(self._nodes)
        del graph.node[:], graph.initializer[:]
        graph.node.extend(nodes)
        graph.initializer.extend([*weights, *self._new.values()])
        if all(opset.domain != "com.microsoft" for opset in self._model.opset_import):
            self._model.opset_import.append(helper.make_opsetid("com.microsoft", 1))

    # ---- weights kept small, arithmetic in fp32

    def small_weights_of_fp16(self, node: NodeProto) -> bool:
        if self._table(node) is not None:
            table, rows = node.input
            found = self._add("Gather", [self._half(table), rows], f"{node.output[0]}_half")
            self._add("Cast", [found], node.output[0], to=TensorProto.FLOAT)
            return True
        return self._with_unpacked(
            node, lambda name: self._add("Cast", [self._half(name)], f"{name}_unpacked", to=TensorProto.FLOAT)
        )

    def small_weights(self, node: NodeProto) -> bool:
        return self._small_table(node) or self._with_unpacked(node, self._unpacked_blocks)

    def _with_unpacked(self, node: NodeProto, unpack: Callable[[str], str]) -> bool:
        """The node, with every matrix among its inputs unpacked by other nodes before it."""
        places = [place for place in range(len(node.input)) if self._matrix(node, place) is not None]
        for place in places:
            name = node.input[place]
            if name not in self._unpacked:
                self._unpacked[name] = unpack(name)
            node.input[place] = self._unpacked[name]
        if places:
            self._nodes.append(node)
        return bool(places)

    def _half(self, name: str) -> str:
        weight = numpy_helper.to_array(self._old[name])
        if np.abs(weight).max() > np.finfo(np.float16).max:
            raise ConfigError("a weight of this encoder is too large for half precision; keep it in another one.")
        return self._constant(f"{name}_half", weight.astype(np.float16))

    def _unpacked_blocks(self, name: str) -> str:
        weight = numpy_helper.to_array(self._old[name])
        rows, columns = weight.shape
        block = BLOCK if rows % BLOCK == 0 else rows
        blocks = weight.reshape(rows // block, block, columns)
        small, scale = _rounded(blocks, axis=1, limit=127)
        cast = self._add(
            "Cast", [self._constant(f"{name}_int8", small.reshape(rows, columns))], f"{name}_cast", to=TensorProto.FLOAT
        )
        split = self._add("Reshape", [cast, self._constant(f"{name}_blocks", np.array(blocks.shape))], f"{name}_split")
        scaled = self._add("Mul", [split, self._constant(f"{name}_scale", scale)], f"{name}_scaled")
        return self._add(
            "Reshape", [scaled, self._constant(f"{name}_shape", np.array(weight.shape))], f"{name}_unpacked"
        )

    def _small_table(self, node: NodeProto) -> bool:
        """An embedding table: its rows are unpacked after they were looked up."""
        table = self._table(node)
        if table is None:
            return False
        name, rows, out = node.input[0], node.input[1], node.output[0]
        small, scale = _rounded(table, axis=1, limit=127)
        found = self._add("Gather", [self._constant(f"{name}_int8", small), rows], f"{out}_int8")
        scales = self._add("Gather", [self._constant(f"{name}_scale", scale), rows], f"{out}_scale")
        cast = self._add("Cast", [found], f"{out}_cast", to=TensorProto.FLOAT)
        self._add("Mul", [cast, scales], out)
        return True

    # ---- arithmetic in 8 bits

    def integer_arithmetic(self, node: NodeProto) -> bool:
        if node.op_type == "MatMul" and (weight := self._matrix(node, 1)) is not None:
            self._integer_product(node.input[0], weight, node.output[0])
            return True
        if node.op_type == "Attention" and (weight := self._matrix(node, 1)) is not None:
            self._integer_attention(node, weight)
            return True
        return self._small_table(node)

    def _integer_attention(self, node: NodeProto, weight: FloatArray) -> None:
        """The fused operator as its parts, for it multiplies fp32 only: three products, then the attention proper."""
        out = node.output[0]
        parts = [f"{out}_{part}" for part in ("query", "key", "value")]
        for part, columns in zip(parts, np.split(weight, 3, axis=1), strict=True):
            self._integer_product(node.input[0], columns, part)
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        inputs = [*parts, *node.input[2:4], *node.input[5:]]  # the fifth is the past of a decoder
        self._add("MultiHeadAttention", inputs, out, domain="com.microsoft", **attributes)

    def _integer_product(self, states: str, weight: FloatArray, out: str) -> None:
        """Token's scale * (integers @ integers) * column's scale, minus what the lowest number adds."""
        integers, token_scale = self._quantised_tokens(states)
        small, column_scale = _rounded(weight, axis=0, limit=_WEIGHT_LIMIT)
        lowest = _LOWEST.get(self._made_by.get(states, ""))
        inputs = [
            integers,
            self._constant(f"{out}_weight", small),
            self._constant("int8_one", np.array(1, np.float32)),
            self._constant(f"{out}_column_scale", column_scale[0]),
            f"int8_zero_{_zero_point(lowest)}",
        ]
        product = self._add("MatMulIntegerToFloat", inputs, f"{out}_product", domain="com.microsoft")
        if not lowest:
            self._add("Mul", [product, token_scale], out)
            return
        scaled = self._add("Mul", [product, token_scale], f"{out}_scaled")
        shift = (-lowest * (small * column_scale).sum(0)).astype(np.float32)
        self._add("Add", [scaled, self._constant(f"{out}_shift", shift)], out)

    def _quantised_tokens(self, states: str) -> tuple[str, str]:
        """Every token's numbers as integers, and their scale, a column beside them."""
        if states in self._quantised:
            return self._quantised[states]
        lowest = _LOWEST.get(self._made_by.get(states, ""))
        if lowest is None:
            sizes, top = self._add("Abs", [states], f"{states}_sizes"), 127
        else:
            offset = self._constant(f"{states}_lowest", np.array(lowest, np.float32))
            sizes, top = self._add("Add", [states, offset], f"{states}_raised"), 255
        axis = self._constant("int8_last_axis", np.array([-1]))
        largest = self._add("ReduceMax", [sizes, axis], f"{states}_largest", keepdims=1)
        # A token of zeros has the scale of a very small one instead of zero.
        tiny = self._constant("int8_tiny", np.array(1e-20, np.float32))
        bounded = self._add("Max", [largest, tiny], f"{states}_bounded")
        top_name = self._constant(f"int8_{top}", np.array(top, np.float32))
        scale = self._add("Div", [bounded, top_name], f"{states}_token_scale")
        unit = self._add("Div", [states if lowest is None else sizes, scale], f"{states}_unit")
        zero = self._constant(f"int8_zero_{_zero_point(lowest)}", np.array(_zero_point(lowest), np.uint8))
        one = self._constant("int8_one", np.array(1, np.float32))
        integers = self._add("QuantizeLinear", [unit, one, zero], f"{states}_integers")
        self._quantised[states] = integers, scale
        return integers, scale

    # ---- building

    def _table(self, node: NodeProto) -> FloatArray | None:
        """The constant fp32 matrix of which this node takes rows, if it is one that does."""
        takes_rows = node.op_type == "Gather" and not any(one.name == "axis" and one.i for one in node.attribute)
        return self._matrix(node, 0) if takes_rows else None

    def _matrix(self, node: NodeProto, place: int) -> FloatArray | None:
        """The constant fp32 matrix that is an input of this node, if it is one."""
        if place >= len(node.input):
            return None
        tensor = self._old.get(node.input[place])
        if tensor is None or tensor.data_type != TensorProto.FLOAT or len(tensor.dims) != 2:
            return None
        return np.asarray(numpy_helper.to_array(tensor), np.float32)

    def _constant(self, name: str, value: npt.NDArray[Any]) -> str:
        if name not in self._new:
            self._new[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def _add(self, operator: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [output], name=output, domain=domain, **attributes))
        return output


def _zero_point(lowest: float | None) -> int:
    """The integer that stands for zero, or for the lowest number where it is known."""
    return 128 if lowest is None else 0


def _rounded(weight: FloatArray, *, axis: int, limit: int) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """8-bit integers from -limit to limit and the scales that give the weights back, one along each ``axis``."""
    scale = np.abs(weight).max(axis, keepdims=True) / limit
    scale[scale == 0] = 1
    return np.rint(weight / scale).astype(np.int8), scale.astype(np.float32)
