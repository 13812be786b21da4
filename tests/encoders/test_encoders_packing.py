from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.encoders.packing import pack, pack_lists
from onoma.errors import ShapeError

names = st.lists(st.lists(st.integers(0, 30_000), min_size=1, max_size=12), max_size=30)


@settings(max_examples=60)
@given(names)
def test_packing_holds_every_name_once_and_restores_the_order(rows: list[list[int]]) -> None:
    batch = pack_lists(rows)
    assert (batch.n_names, batch.n_tokens) == (len(rows), sum(map(len, rows)))
    assert sum(count for count, _ in batch.groups) == len(rows)
    lengths = [length for count, length in batch.groups for _ in range(count)]
    assert lengths == sorted(map(len, rows))
    packed = [batch.ids[start : start + length].tolist() for start, length in zip(batch.starts, lengths, strict=True)]
    assert [packed[place] for place in batch.restore] == rows
    positions = [position for length in lengths for position in range(length)]
    assert batch.positions.tolist() == positions


def test_rows_are_taken_from_a_memory_mapped_store(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    rows = [[5, 6], [7], [8, 9, 10]]
    np.save(folder / "offsets.npy", np.array([0, 2, 3, 6], np.int64))
    np.save(folder / "ids.npy", np.concatenate([np.array(row, np.int32) for row in rows]))
    offsets = np.load(folder / "offsets.npy", mmap_mode="r")
    ids = np.load(folder / "ids.npy", mmap_mode="r")
    batch = pack(offsets, ids, rows=np.array([2, 0, 2]))
    expected = pack_lists([rows[2], rows[0], rows[2]])
    assert torch.equal(batch.ids, expected.ids)
    assert batch.groups == expected.groups == ((1, 2), (2, 3))
    assert torch.equal(batch.restore, expected.restore)


def test_no_names_make_an_empty_batch() -> None:
    batch = pack_lists([])
    assert (batch.n_names, batch.n_tokens, batch.groups) == (0, 0, ())


def test_a_name_without_tokens_is_refused() -> None:
    with pytest.raises(ShapeError, match="name 1 has no tokens"):
        pack_lists([[1], []])


def test_offsets_past_the_end_are_refused() -> None:
    with pytest.raises(ShapeError, match="offsets must lead"):
        pack(np.array([0, 9]), np.array([1, 2]))
