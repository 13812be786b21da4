"""Weights that ONNX Runtime has quantised, back by their names and as near as eight bits let them be."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import quantised_base


def test_weights_come_back_by_their_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words, first, second = (rng.standard_normal(shape).astype(np.float32) for shape in ((20, 8), (6, 8), (6, 6)))
    biases = {"first.bias": rng.standard_normal(6).astype(np.float32), "second.bias": np.ones(6, np.float32)}
    stored = {"words.weight": words, "unnamed_1": first.T.copy(), "unnamed_2": second.T.copy(), **biases}
    nodes = [
        helper.make_node("Gather", ["words.weight", "ids"], ["states"]),
        helper.make_node("MatMul", ["states", "unnamed_1"], ["product_1"]),
        helper.make_node("Add", ["first.bias", "product_1"], ["raised"]),
        helper.make_node("MatMul", ["raised", "unnamed_2"], ["product_2"]),
        helper.make_node("Add", ["product_2", "second.bias"], ["vectors"]),
    ]
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", 6])],
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "whole.onnx")
    quantize_dynamic(tmp_path / "whole.onnx", tmp_path / "quantised.onnx", weight_type=QuantType.QInt8)
    quantised = onnx.load(tmp_path / "quantised.onnx").graph
    assert any(node.op_type == "MatMulInteger" for node in quantised.node)

    found = quantised_base.weights_of(quantised)
    expected = {"words.weight": words, "first.weight": first, "second.weight": second, **biases}
    assert set(found) == set(expected)
    for name, array in expected.items():
        step = 0 if name in biases else 2 * np.abs(array).max() / 254
        np.testing.assert_allclose(found[name].numpy(), array, rtol=0, atol=step)
