"""A small terminology with every awkwardness that linking must bear, and a small encoder."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from onoma.artifacts import write_artifact
from onoma.linking import build_linker
from onoma.terminology import Terminology
from tiny import Name, make_terminology

CONCEPTS: dict[str, list[str | Name]] = {
    # the number is the row of the name
    "D1": ["Diabetes Mellitus", "DIABETES  mellitus", "sugar disease"],  # 0
    "D2": ["Cold"],  # 3
    "D3": ["Chronic Obstructive Lung Disease", "COLD"],  # 4
    "D4": ["Common Cold", "cold", Name("head cold", is_suppressed=True)],  # 6
    "D5": ["Old Diabetes", "sugar disease"],  # 9, obsolete
    "D6": ["Cold Temperature", "cold"],  # 11
    "D7": [Name("Only Suppressed", is_suppressed=True)],  # 13
    "D8": ["心臓発作", "   "],  # 14
}


def small_terminology(path: Path) -> Terminology:
    """CONCEPTS as a terminology folder."""
    return make_terminology(path, CONCEPTS, obsolete=["D5"])


WIDTH = 24
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789心臓発作"


def write_letter_encoder(path: Path, *, seed: int = 0, words: Sequence[str] = ()) -> None:
    """An encoder folder whose vectors are means of random letter vectors (a first letter has its own): ONNX alone,
    written by hand, so that no torch is needed. Given words have a vector of their own too."""
    vocabulary = {token: row for row, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])}
    for letter in _LETTERS:
        vocabulary[letter] = len(vocabulary)
        vocabulary[f"##{letter}"] = len(vocabulary)
    vocabulary.update({word: row for row, word in enumerate(words, len(vocabulary))})
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=400))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    weights = np.random.default_rng(seed).standard_normal((len(vocabulary), WIDTH)).astype(np.float32)
    with write_artifact(path, "encoder") as folder:
        (folder / "onnx").mkdir()
        onnx.save_model(_mean_of_embeddings(weights), folder / "onnx" / "model.onnx")
        tokenizer.save(str(folder / "tokenizer.json"))
        for name, content in {
            "encoder.json": {"name": "letters", "weights_sha256": f"{seed:064x}"},
            "config.json": {"model_type": "bert", "hidden_size": WIDTH, "pad_token_id": 0},
            "sentence_bert_config.json": {"max_seq_length": 300, "do_lower_case": False},
            "modules.json": [
                {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            ],
            "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
        }.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(json.dumps(content))


def write_letter_linker(folder: Path, concepts: Mapping[str, Sequence[str | Name]], **about: Any) -> None:
    """Concepts as ``folder/t``, letters as ``folder/letters``, and of both ``folder/linker``, with n-grams."""
    write_letter_encoder(folder / "letters")
    make_terminology(folder / "t", concepts, **about)
    build_linker(folder / "t", folder / "letters", folder / "linker", sparse=True)


def write_small_linker(folder: Path) -> None:
    """The same of CONCEPTS."""
    write_letter_linker(folder, CONCEPTS, obsolete=["D5"])


def _mean_of_embeddings(weights: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> onnx.ModelProto:
    """input_ids, attention_mask (names, tokens) -> name_vectors (names, width)."""
    nodes = [
        helper.make_node("Gather", ["weights", "input_ids"], ["tokens"]),
        helper.make_node("Cast", ["attention_mask"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["real", "middle"], ["line"]),
        helper.make_node("MatMul", ["line", "tokens"], ["sum"]),  # as Onoma's graphs do: the same in every batch
        helper.make_node("Squeeze", ["sum", "middle"], ["total"]),
        helper.make_node("ReduceSum", ["real", "middle"], ["count"], keepdims=1),
        helper.make_node("Div", ["total", "count"], ["name_vectors"]),
    ]
    constants = [
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.array([1]), "middle"),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["names", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("name_vectors", TensorProto.FLOAT, ["names", WIDTH])]
    graph = helper.make_graph(nodes, "letters", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8, producer_name="onoma")


_SYLLABLES = re.findall(r"\w+", "car di o my pa thy neu ro der ma ti tis hep al gia ne phro")


def made_up(letters: random.Random) -> str:
    return " ".join("".join(letters.choices(_SYLLABLES, k=3)) for _ in range(2))


def misspelt(name: str, letters: random.Random) -> str:
    place = letters.randrange(len(name) - 1)
    return name[:place] + letters.choice("xyz") + name[place + 2 :]


def _many_names() -> dict[str, list[str]]:
    """Concepts with names much like the first and names that are nothing like it."""
    letters = random.Random(2)
    concepts = {}
    for row in range(80):
        first = made_up(letters)
        concepts[f"C{row}"] = [first, misspelt(first, letters), misspelt(first, letters), made_up(letters)]
    return {**concepts, "FEW": ["abcdo", "abcde"], "SAME": ["xyzzy", concepts["C0"][1], "xyzza"]}


MANY_NAMES = _many_names()
