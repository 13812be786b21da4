"""Weights that are used where they lie in the file: against the onnx library, and mapped by the runtime."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_model

from onoma.encoders.onnx_files import _long_header, _read_varint, with_weights_in_file, write_aligned
from onoma.encoders.onnx_session import OnnxSession
from onoma.errors import DamagedArtifactError
from onoma.types import FloatArray

AT_BOUNDARIES = [0, 1, 100, 4095, 4096, 4097, *(2**14 + near for near in range(-140, 4)), 2**21 - 70, 2**21]
"""Sizes at which the headers of tensor and graph take another byte, and from which numbers are referred to."""


def model_of(sizes: list[int], *, name: str = "w", comment: str = "") -> onnx.ModelProto:
    """A model that gives back its input, with weights of so many bytes."""
    rng = np.random.default_rng(0)
    weights = []
    for row, size in enumerate(sizes):
        weights.append(numpy_helper.from_array(rng.integers(0, 255, size, np.uint8), f"{name}{row}"))
        weights[-1].doc_string = comment
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, [1]) for end in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, producer_name="onoma", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def without_comments(model: onnx.ModelProto) -> onnx.ModelProto:
    for tensor in model.graph.initializer:
        tensor.ClearField("doc_string")
    return model


@settings(max_examples=60)
@given(
    sizes=st.lists(st.sampled_from(AT_BOUNDARIES) | st.integers(0, 20_000), max_size=4),
    name=st.text(max_size=80),
    comment=st.text(max_size=150),
)
def test_the_same_model_with_weights_that_can_be_mapped(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], name: str, comment: str
) -> None:
    file = tmp_path_factory.mktemp("model") / "model.onnx"
    model = model_of(sizes, name=name, comment=comment)
    write_aligned(model.SerializeToString(), file)
    expected = without_comments(model)
    assert without_comments(onnx.load(file)) == expected
    small = with_weights_in_file(memoryview(file.read_bytes()), file.name)
    assert small is not None
    referring = onnx.load_model_from_string(small)
    for tensor, size in zip(referring.graph.initializer, sizes, strict=True):
        assert (tensor.data_location == TensorProto.EXTERNAL) == (size >= 4096)
        offset = next((int(entry.value) for entry in tensor.external_data if entry.key == "offset"), 0)
        assert offset % 64 == 0
    load_external_data_for_model(referring, str(file.parent))
    for tensor in referring.graph.initializer:
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
    assert without_comments(referring) == expected


def test_files_of_other_tools_and_files_cut_off(tmp_path: Path) -> None:
    """They are opened as ever; the runtime says what it thinks of them."""
    write_aligned(model_of([5000, 5000]).SerializeToString(), tmp_path / "model.onnx")
    whole = (tmp_path / "model.onnx").read_bytes()
    assert with_weights_in_file(whole, "model.onnx") is not None
    for end in (1, 7, 100, 4000, 9000, len(whole) - 1):
        assert with_weights_in_file(whole[:end], "model.onnx") is None, end
    assert with_weights_in_file(whole[:100] + bytes(1000), "model.onnx") is None
    assert with_weights_in_file(bytes(1 << 26), "model.onnx") is None, "at once"
    written = model_of([5000, 5000]).SerializeToString()
    assert with_weights_in_file(written, "model.onnx") is None
    assert with_weights_in_file(written[:-3], "model.onnx") is None
    assert with_weights_in_file(b"\x0f" + written, "model.onnx") is None
    assert with_weights_in_file(b"\xff" * 40, "model.onnx") is None


def table_model(table: FloatArray) -> bytes:
    """A model that gives rows of a table."""
    weight = numpy_helper.from_array(table, "table")
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", table.shape[1]])
    graph = helper.make_graph([helper.make_node("Gather", ["table", "ids"], ["rows"])], "g", [ids], [rows], [weight])
    model = helper.make_model(graph, producer_name="onoma", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    serialised: bytes = model.SerializeToString()
    return serialised


@pytest.mark.parametrize("length", range(1, 70))
def test_every_gap(tmp_path: Path, length: int) -> None:
    """Of all lengths there are before a weight, that of one byte too, which no field can fill."""
    model = model_of([4096, 4095, 4096], name="n" * length)
    write_aligned(model.SerializeToString(), tmp_path / "model.onnx")
    assert without_comments(onnx.load(tmp_path / "model.onnx")) == without_comments(model)
    small = with_weights_in_file((tmp_path / "model.onnx").read_bytes(), "model.onnx")
    assert small is not None
    places = [tensor.data_location for tensor in onnx.load_model_from_string(small).graph.initializer]
    assert places == [TensorProto.EXTERNAL, TensorProto.DEFAULT, TensorProto.EXTERNAL]


def test_headers_of_large_weights() -> None:
    for length in (0, 127, 2**14, 2**21, 2**28, 2**31 - 2**24, 2**34 - 1):
        written = _long_header(5, length)
        assert len(written) == 6
        assert _read_varint(written, 0, 6) == (5 << 3 | 2, 1)
        assert _read_varint(written, 1, 6) == (length, 6)


@pytest.mark.skipif(sys.platform != "linux", reason="reads what a process has mapped as Linux tells it")
def test_the_runtime_maps_them(tmp_path: Path) -> None:
    table = np.arange(4096, dtype=np.float32).reshape(64, 64)
    mapped, parsed = tmp_path / "mapped.onnx", tmp_path / "parsed.onnx"
    write_aligned(table_model(table), mapped)
    parsed.write_bytes(table_model(table))
    (tmp_path / "other place").symlink_to(tmp_path)
    for file, is_mapped in ((mapped, True), (tmp_path / "other place" / "mapped.onnx", True), (parsed, False)):
        session = OnnxSession(file)
        assert np.array_equal(session.run("rows", {"ids": np.array([1, 63])}), table[[1, 63]])
        assert (str(file.resolve()) in Path("/proc/self/maps").read_text()) == is_mapped
        del session


def test_a_link_to_a_model(tmp_path: Path) -> None:
    """As in the hub's cache; the runtime takes no weights from outside of the model's folder."""
    table = np.arange(4096, dtype=np.float32).reshape(64, 64)
    (tmp_path / "blobs").mkdir()
    write_aligned(table_model(table), tmp_path / "blobs" / "1234")
    (tmp_path / "model.onnx").symlink_to(tmp_path / "blobs" / "1234")
    assert np.array_equal(OnnxSession(tmp_path / "model.onnx").run("rows", {"ids": np.array([1])}), table[[1]])


@pytest.mark.parametrize("becomes", ["another model", "no model", "gone"])
def test_the_file_that_was_opened_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, becomes: str) -> None:
    """Another one may be put in its place while a session begins, and the runtime opens it by its name."""
    file = tmp_path / "model.onnx"
    write_aligned(table_model(np.full((64, 64), 1, np.float32)), file)
    begin = OnnxSession._begin

    def begins_late(self: OnnxSession, model: str | bytes) -> object:
        monkeypatch.setattr(OnnxSession, "_begin", begin)
        file.unlink()
        if becomes == "another model":
            write_aligned(table_model(np.full((64, 64), 2, np.float32)), file)
        elif becomes == "no model":
            file.write_bytes(b"")
        return begin(self, model)

    monkeypatch.setattr(OnnxSession, "_begin", begins_late)
    assert OnnxSession(file).run("rows", {"ids": np.array([0])})[0, 0] == 1


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()
    with pytest.raises(DamagedArtifactError, match=r"model.onnx is not an ONNX model"):
        OnnxSession(tmp_path / "model.onnx")


def test_a_process_that_may_not_look_into_the_folder_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that was forked and has become another user."""
    file = tmp_path / "model.onnx"
    write_aligned(table_model(np.full((64, 64), 1, np.float32)), file)
    session = OnnxSession(file)
    monkeypatch.setattr(session, "_process", 0)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refused)
    monkeypatch.setattr(Path, "is_symlink", refused)
    assert session.run("rows", {"ids": np.array([0])})[0, 0] == 1
