"""ONNX models in lower precisions: what they compute, how their agreement is measured, what guards them."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import numpy_helper
from tiny_encoders import FAMILIES, MAX_TOKENS, NAMES, write_tiny

from onoma.artifacts import read_manifest, verify_artifact
from onoma.encoders import (
    LOWER_PRECISIONS,
    add_precisions,
    agreement,
    export_encoder,
    locate_encoder,
    open_encoder,
    save_encoder,
)
from onoma.encoders.agreement import measure_agreement, read_agreements
from onoma.encoders.folders import OnnxPrecision, onnx_name
from onoma.encoders.loading import load_packed
from onoma.encoders.onnx_encoder import OnnxEncoder
from onoma.encoders.onnx_precision import lower_precision
from onoma.errors import ArtifactExistsError, ConfigError, DamagedArtifactError, InputError, MismatchError
from onoma.types import FloatArray

MANY_NAMES = [f"{word} {kind} {number}" for word in ("heart", "fever") for kind in "abcde" for number in range(14)]
WORST = {"fp16-weights": 0.99999, "int8-weights": 0.999, "int8": 0.98}
"""Cosine to fp32 that every name of the tiny encoders keeps."""
CASES = [pytest.param((family, "cls"), id=f"{family}-cls") for family in FAMILIES]
CASES += [
    pytest.param(("bert", "mean"), id="bert-mean"),
    pytest.param(("albert", "mean"), id="albert-mean", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=CASES)
def lowered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of each family in all precisions; ALBERT's graph is a traced one."""
    family, pooling = request.param
    folder = tmp_path_factory.mktemp("lowered")
    model = load_packed(write_tiny(folder / "base", family), pooling=pooling, max_tokens=MAX_TOKENS)
    save_encoder(model, folder / "encoder", seed=7, config={"recipe": "none"})
    add_precisions(folder / "encoder", LOWER_PRECISIONS, MANY_NAMES, threads=1)
    return folder / "encoder"


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One encoder in fp32; not to be changed."""
    folder = tmp_path_factory.mktemp("bert")
    write_tiny(folder / "base", "bert")
    save_encoder(load_packed(folder / "base", pooling="mean", max_tokens=MAX_TOKENS), folder / "encoder", seed=7)
    return folder / "encoder"


@pytest.mark.parametrize("precision", LOWER_PRECISIONS)
def test_vectors_are_near_and_depend_on_the_name_alone(lowered: Path, precision: str) -> None:
    exact, lower = open_encoder(lowered).encode(NAMES), open_encoder(lowered, precision=precision)  # type: ignore[arg-type]
    found = lower.encode(NAMES)
    assert (found * exact).sum(1).min() > WORST[precision]
    assert not np.array_equal(found, exact)
    alone = np.concatenate([lower.encode([name]) for name in NAMES])
    np.testing.assert_allclose(alone, found, atol=2e-5)


@pytest.mark.parametrize("precision", LOWER_PRECISIONS)
def test_models_are_smaller(lowered: Path, precision: str) -> None:
    files = read_manifest(lowered).files
    largest = {"fp16-weights": 0.6, "int8-weights": 0.5, "int8": 0.6}[precision]
    sizes = [
        sum(tensor.ByteSize() for tensor in onnx.load(lowered / file).graph.initializer)
        for file in ("onnx/model.onnx", f"onnx/model_{precision}.onnx")
    ]
    assert f"onnx/model_{precision}.onnx" in files
    assert sizes[1] < largest * sizes[0]


def test_the_folder_is_whole_and_the_same_encoder(lowered: Path) -> None:
    manifest = verify_artifact(lowered)
    assert (manifest.seed, manifest.config) == (7, {"recipe": "none"})
    folder = locate_encoder(lowered)
    assert folder.lower_precisions == LOWER_PRECISIONS
    fingerprints = {open_encoder(lowered, precision=precision).fingerprint for precision in LOWER_PRECISIONS}
    assert len(fingerprints | {folder.fingerprint}) == 4
    assert open_encoder(lowered, backend="torch").fingerprint == folder.fingerprint
    assert set(read_agreements(lowered)) == set(LOWER_PRECISIONS)


def test_of_a_precision_whose_model_is_gone_nothing_is_said(lowered: Path, tmp_path: Path) -> None:
    shutil.copytree(lowered, tmp_path / "e")
    gone, *others = LOWER_PRECISIONS
    (tmp_path / "e" / onnx_name(gone)).unlink()
    assert list(read_agreements(tmp_path / "e")) == others


# ---- the arithmetic, by plain loops


def test_int8_product_is_what_loops_compute() -> None:
    """A token's scale by its largest number, a column's by its largest weight, the sum in integers."""
    random = np.random.default_rng(0)
    states = random.standard_normal((2, 3, 8)).astype(np.float32)
    states[0, 1] *= 100
    states[1, 2] = 0
    weight = random.standard_normal((8, 5)).astype(np.float32)
    expected = np.zeros((2, 3, 5))
    for name in range(2):
        for token in range(3):
            row = states[name, token].astype(np.float64)
            scale = max(abs(row).max(), 1e-20) / 127
            for column in range(5):
                step = abs(weight[:, column]).max() / 63
                total = sum(round(x / scale) * round(w / step) for x, w in zip(row, weight[:, column], strict=True))
                expected[name, token, column] = total * scale * step
    found = run(product(weight, activation=None), states)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("activation", "lowest"), [("Relu", 0.0), ("Gelu", 0.1701)])
def test_int8_product_after_an_activation_uses_the_whole_range(activation: str, lowest: float) -> None:
    random = np.random.default_rng(1)
    states = random.standard_normal((1, 4, 16)).astype(np.float32)
    weight = random.standard_normal((16, 3)).astype(np.float32)
    active = run_numpy(activation, states)
    expected = np.zeros((1, 4, 3))
    for token in range(4):
        row = active[0, token].astype(np.float64) + lowest
        scale = row.max() / 255
        for column in range(3):
            step = abs(weight[:, column]).max() / 63
            pairs = [(round(x / scale), round(w / step)) for x, w in zip(row, weight[:, column], strict=True)]
            expected[0, token, column] = sum((x * scale - lowest) * w * step for x, w in pairs)
    found = run(product(weight, activation=activation), states)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.abs(found - active @ weight).max() < 0.2


def test_int8_weights_are_rounded_in_blocks() -> None:
    random = np.random.default_rng(2)
    weight = random.standard_normal((128, 3)).astype(np.float32)
    weight[:64] *= 100
    expected = np.zeros_like(weight)
    for begin in (0, 64):
        for column in range(3):
            step = abs(weight[begin : begin + 64, column]).max() / 127
            expected[begin : begin + 64, column] = [
                round(w / step) * step for w in weight[begin : begin + 64, column].astype(np.float64)
            ]
    unit = np.eye(128, dtype=np.float32)[None]
    found = run(lower_precision(product(weight), "int8-weights"), unit, lowered=True)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)


def test_no_pair_of_products_leaves_16_bits(lowered: Path) -> None:
    """Older processors add two products in 16 bits; see `_WEIGHT_LIMIT`."""
    graph = onnx.load(lowered / "onnx/model_int8.onnx").graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    products = [node for node in graph.node if node.op_type == "MatMulIntegerToFloat"]
    assert len(products) > 5
    for node in products:
        assert 2 * 255 * np.abs(tensors[node.input[1]].astype(int)).max() < 2**15


@pytest.mark.parametrize("precision", ["fp16-weights", "int8-weights"])
def test_a_matrix_on_the_left_is_no_table(precision: OnnxPrecision) -> None:
    random = np.random.default_rng(5)
    weight, states = (random.standard_normal(shape).astype(np.float32) for shape in ((64, 64), (2, 64, 3)))
    model = product(weight)
    model.graph.node[0].input[:] = ["weight", "states"]
    found = run(lower_precision(model, precision), states, lowered=True)
    np.testing.assert_allclose(found, weight @ states, atol=0.2)


def product(weight: FloatArray, activation: str | None = None) -> onnx.ModelProto:
    """A model that multiplies by a weight, after an activation if one is named."""
    nodes = (
        []
        if activation is None
        else [onnx.helper.make_node(activation, ["states"], ["active"], domain=DOMAINS[activation])]
    )
    nodes.append(onnx.helper.make_node("MatMul", ["states" if activation is None else "active", "weight"], ["out"]))
    graph = onnx.helper.make_graph(
        nodes,
        "product",
        [onnx.helper.make_tensor_value_info("states", onnx.TensorProto.FLOAT, ["n", "l", "width"])],
        [onnx.helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "weight")],
    )
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


DOMAINS = {"Relu": "", "Gelu": "com.microsoft"}


def run(model: onnx.ModelProto, states: FloatArray, *, lowered: bool = False) -> FloatArray:
    import onnxruntime

    wanted = model if lowered else lower_precision(model, "int8")
    session = onnxruntime.InferenceSession(wanted.SerializeToString(), providers=["CPUExecutionProvider"])
    found: FloatArray = session.run(None, {"states": states})[0]
    return found


def run_numpy(activation: str, states: FloatArray) -> npt.NDArray[np.float64]:
    if activation == "Relu":
        return np.asarray(np.maximum(states, 0), np.float64)
    active = [0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in states.ravel().tolist()]
    return np.array(active, np.float64).reshape(states.shape)


# ---- the measurement


class Fixed:
    """An encoder of known vectors, as `measure_agreement` sees one, on a machine that is slower each second."""

    now = 0.0
    """The time, to all of them."""

    def __init__(self, vectors: dict[str, list[float]], folder: object, *, work: float = 1.0) -> None:
        self.vectors, self.folder, self.work = vectors, folder, work

    def encode(self, texts: list[str], **_: object) -> FloatArray:
        Fixed.now += len(texts) * self.work * (1 + Fixed.now / 1e6)
        found = np.array([self.vectors[text] for text in texts], np.float32)
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


def test_agreement_is_what_loops_count(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "time", SimpleNamespace(perf_counter=lambda: Fixed.now))
    random = np.random.default_rng(3)
    names = [f"name {number}" for number in range(700)]  # more than one part
    true = {name: random.standard_normal(8).tolist() for name in names}
    rough = {name: (np.array(true[name]) + 0.15 * random.standard_normal(8)).tolist() for name in names}
    folder = locate_encoder(bert)
    exact = Fixed(true, folder)
    lower = Fixed(rough, dataclasses.replace(folder, precision="int8"), work=0.4)
    [found] = measure_agreement(exact, [lower], [*names, *names[:5]])  # type: ignore[arg-type, list-item]
    first, second = exact.encode(names), lower.encode(names)
    cosines = sorted(float(a @ b) for a, b in zip(first, second, strict=True))
    same = 0
    for row in range(700):
        nearest = [
            max((other for other in range(700) if other != row), key=(vectors @ vectors[row]).__getitem__)
            for vectors in (first, second)
        ]
        same += nearest[0] == nearest[1]
    assert found.n_names == 700
    assert found.mean_cosine == pytest.approx(sum(cosines) / 700, abs=1e-5)
    assert cosines[6] <= found.percentile_1_cosine + 1e-6 <= cosines[7] + 2e-6
    assert found.same_neighbour == pytest.approx(same / 700, abs=1e-4)
    assert 0.5 < found.same_neighbour < 0.99
    assert found.speed == pytest.approx(2.5, abs=0.01)


def test_equally_near_neighbours_are_the_same(bert: Path) -> None:
    """Which of two equal names is found is chance, and no loss."""
    random = np.random.default_rng(4)
    base = [random.standard_normal(8).tolist() for _ in range(40)]
    names = [f"{row} {copy}" for row in range(40) for copy in range(3)]
    vectors = {name: base[int(name.split()[0])] for name in names}
    tilted = {name: [*(np.array(vector) * (1 + 1e-4 * random.random(8)))] for name, vector in vectors.items()}
    folder = locate_encoder(bert)
    lower = Fixed(tilted, dataclasses.replace(folder, precision="int8"))
    [found] = measure_agreement(Fixed(vectors, folder), [lower], names)  # type: ignore[arg-type, list-item]
    assert found.same_neighbour == 1


def test_too_few_names_and_vectors_that_are_no_numbers(bert: Path) -> None:
    folder = locate_encoder(bert)
    broken = {name: [float("nan")] * 8 for name in MANY_NAMES}
    exact = Fixed({name: [1.0] * 8 for name in MANY_NAMES}, folder)
    lower = Fixed(broken, dataclasses.replace(folder, precision="int8"))
    with pytest.raises(MismatchError, match=r"int8 .* not numbers"):
        measure_agreement(exact, [lower], MANY_NAMES)  # type: ignore[arg-type, list-item]
    with pytest.raises(InputError, match="at least 100 different ones; found 3"):
        measure_agreement(exact, [lower], ["a", "b", "c"] * 100)  # type: ignore[arg-type, list-item]


# ---- what guards it


def test_a_new_folder_and_what_is_refused(bert: Path, tmp_path: Path) -> None:
    before = verify_artifact(bert)
    measured = add_precisions(bert, ["int8"], MANY_NAMES, out=tmp_path / "out", threads=1)
    assert [one.precision for one in measured] == ["int8"]
    assert verify_artifact(bert) == before
    assert verify_artifact(tmp_path / "out").seed == 7
    assert locate_encoder(tmp_path / "out").fingerprint == locate_encoder(bert).fingerprint
    with pytest.raises(ArtifactExistsError):
        add_precisions(bert, ["int8"], MANY_NAMES, out=tmp_path / "out")
    with pytest.raises(ConfigError, match="Did you mean 'int8'"):
        add_precisions(bert, ["imt8"], MANY_NAMES)  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="onoma encoder export and -o ENCODER"):
        add_precisions(bert.parent / "base", ["int8"], MANY_NAMES)
    with pytest.raises(InputError, match="too few"):
        add_precisions(bert, ["int8"], ["fever"])
    assert verify_artifact(bert) == before
    assert sorted(entry.name for entry in bert.parent.iterdir()) == ["base", "encoder"]


def test_damage_is_not_given_a_fresh_checksum(bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(bert, folder)
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedArtifactError, match=r"model\.safetensors"):
        add_precisions(folder, ["int8"], MANY_NAMES)


def test_a_foreign_folder_is_written_elsewhere(bert: Path, tmp_path: Path) -> None:
    add_precisions(bert.parent / "base", ["fp16-weights"], MANY_NAMES, out=tmp_path / "out", threads=1)
    assert locate_encoder(tmp_path / "out").fingerprint == locate_encoder(bert.parent / "base").fingerprint
    assert isinstance(open_encoder(tmp_path / "out", precision="fp16-weights"), OnnxEncoder)


def test_a_precision_adds_to_those_that_are_there(bert: Path, tmp_path: Path) -> None:
    shutil.copytree(bert, tmp_path / "encoder")
    add_precisions(tmp_path / "encoder", ["int8-weights"], MANY_NAMES, threads=1)
    add_precisions(tmp_path / "encoder", ["int8"], MANY_NAMES, threads=1)
    assert locate_encoder(tmp_path / "encoder").lower_precisions == ("int8-weights", "int8")
    assert set(json.loads((tmp_path / "encoder/onnx/agreement.json").read_text())) == {"int8-weights", "int8"}


def test_options_that_exclude_each_other(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"has no ONNX model in int8.*onoma encoder export .*--precision int8 --terminology"
    ):
        open_encoder(bert, precision="int8")
    with pytest.raises(ConfigError, match="--out ENCODER"):
        open_encoder(bert.parent / "base", precision="int8")
    add_precisions(bert, ["int8"], MANY_NAMES, out=tmp_path / "out", threads=1)
    with pytest.raises(ConfigError, match="precision of ONNX models"):
        open_encoder(tmp_path / "out", precision="int8", backend="torch")
    with pytest.raises(ConfigError, match=r"pools by 'mean', not 'cls'\. Leave the pooling"):
        open_encoder(tmp_path / "out", precision="int8", pooling="cls")


def test_a_thin_copy_has_the_precision_it_was_opened_in(bert: Path, tmp_path: Path) -> None:
    add_precisions(bert, ["int8"], MANY_NAMES, out=tmp_path / "out", threads=1)
    opened = open_encoder(tmp_path / "out", precision="int8")
    thin = export_encoder(opened.folder, tmp_path / "thin", onnx_only=True)
    assert thin.fingerprint == opened.fingerprint
    assert [file.name for file in (thin.path / "onnx").glob("*.onnx")] == ["model_int8.onnx"]
    again = open_encoder(thin.path, precision="int8")
    assert again.fingerprint == opened.fingerprint
    assert np.array_equal(again.encode(NAMES), opened.encode(NAMES))
    with pytest.raises(InputError, match="in int8 only"):
        open_encoder(thin.path)
    whole = export_encoder(opened.folder, tmp_path / "whole")
    assert {file.name for file in (whole.path / "onnx").glob("*.onnx")} == {"model.onnx", "model_int8.onnx"}


def test_weights_beyond_half_precision_are_refused() -> None:
    weight = np.full((4, 4), 1e5, np.float32)
    with pytest.raises(ConfigError, match="too large for half precision"):
        lower_precision(product(weight), "fp16-weights")


@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2])
@pytest.mark.parametrize("precision", ["fp16-weights", "int8-weights"])
def test_a_lookup_takes_what_it_took(precision: OnnxPrecision, axis: int | None) -> None:
    """Rows of a table, as embeddings do, or columns."""
    import onnxruntime

    table = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gather", ["table", "places"], ["out"], **attributes)],
        "lookup",
        [onnx.helper.make_tensor_value_info("places", onnx.TensorProto.INT64, ["n"])],
        [onnx.helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(table, "table")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    session = onnxruntime.InferenceSession(lower_precision(model, precision).SerializeToString())
    (found,) = session.run(None, {"places": np.array([2, 0])})
    np.testing.assert_allclose(found, np.take(table, [2, 0], axis or 0), rtol=0.04)


def test_a_model_without_matrices_is_refused() -> None:
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["a"], ["b"])], "none", [], [])
    with pytest.raises(ConfigError, match="no matrices"):
        lower_precision(onnx.helper.make_model(graph), "int8")
