"""The vector of a name is the same to the bit, whatever names share its batch and however many threads there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_encoders import MAX_TOKENS, NAMES, write_tiny

from onoma.encoders import open_encoder, save_encoder
from onoma.encoders.folders import Pooling
from onoma.encoders.onnx_encoder import OnnxEncoder
from onoma.encoders.packed import load_packed


@pytest.mark.parametrize("pooling", ["cls", "mean", "mean-nospec", "mean-all"])
def test_neither_company_nor_threads_change_a_bit(pooling: Pooling, tmp_path: Path) -> None:
    model = load_packed(write_tiny(tmp_path / "tiny", "bert"), pooling=pooling, max_tokens=MAX_TOKENS)
    folder = save_encoder(model, tmp_path / "encoder")
    expected = open_encoder(folder.path, backend="onnx").encode(NAMES * 3)[: len(NAMES)]
    for threads in (1, 2, 4):
        encoder = OnnxEncoder(folder, threads=threads)
        for n in (1, 2, 3, 7):
            parts = [encoder.encode(NAMES[start : start + n]) for start in range(0, len(NAMES), n)]
            np.testing.assert_array_equal(np.concatenate(parts), expected)
