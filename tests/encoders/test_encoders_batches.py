"""How names are put into batches; that a name's vector is the same whatever names share its batch."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_encoders import MAX_TOKENS, NAMES, write_tiny

from onoma.encoders import open_encoder, save_encoder
from onoma.encoders.encoding import check_unit_length, length_batches
from onoma.encoders.loading import load_packed
from onoma.encoders.onnx_encoder import OnnxEncoder
from onoma.encoders.pooling import Pooling
from onoma.errors import InputError


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


@given(
    lengths=st.lists(st.integers(0, 60), max_size=60).map(lambda found: np.array(found, np.int32)),
    batch_tokens=st.integers(1, 200),
    padded=st.booleans(),
)
def test_batches_hold_every_row_once_and_no_more_than_they_may(
    lengths: np.ndarray[tuple[int], np.dtype[np.int32]], batch_tokens: int, padded: bool
) -> None:
    batches = list(length_batches(lengths, batch_tokens=batch_tokens, padded=padded))
    rows = [row for batch in batches for row in batch.tolist()]
    assert sorted(rows) == np.flatnonzero(lengths).tolist()
    assert lengths[rows].tolist() == sorted(lengths[rows].tolist())

    def fits(batch: list[int]) -> bool:
        own = lengths[batch].tolist()
        size = len(own) * max(own) if padded else sum(own)
        return size <= batch_tokens and (not padded or max(own) <= min(own) + min(own) // 8)

    assert all(len(batch) == 1 or fits(batch.tolist()) for batch in batches)
    for batch, following in itertools.pairwise(batches):
        assert not fits([*batch.tolist(), int(following[0])])


def test_vectors_are_of_unit_length_or_nought() -> None:
    check_unit_length(np.array([[0.6, -0.8], [0, 0]], np.float32), ["a name", ""])
    with pytest.raises(InputError, match="not of unit length") as caught:
        check_unit_length(np.array([[0.6, -0.8], [0, 0], [0, 0.5]], np.float32), ["a name", "", "half"])
    assert caught.value.field == "half"
