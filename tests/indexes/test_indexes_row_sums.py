"""Sums of stored rows: against sums of Python's whole numbers, and each way that a row can be damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_data import unit_vectors

from onoma.errors import DamagedArtifactError
from onoma.indexes import VectorStore, write_vectors
from onoma.indexes.row_sums import SUMS_FILE, row_sums
from onoma.indexes.vector_store import rounded

PRECISIONS: list[Any] = ["fp32", "fp16", "int16", "int8"]
MODULUS = 2**64


def odd_numbers(n: int) -> list[int]:
    """SplitMix64 from a seed of nothing, as in its paper, made odd."""
    found, state = [], 0
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) % MODULUS
        mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % MODULUS
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % MODULUS
        found.append(mixed ^ (mixed >> 31) | 1)
    return found


def sum_by_loop(row: Any, scale: Any = None) -> int:
    content = row.tobytes()
    size = next(size for size in (8, 4, 2, 1) if len(content) % size == 0)
    words = [int.from_bytes(content[at : at + size], "little") for at in range(0, len(content), size)]
    factors = odd_numbers(len(words) + 1)
    total = sum(word * factor for word, factor in zip(words, factors[:-1], strict=True))
    if scale is not None:
        total += int.from_bytes(scale.tobytes(), "little") * factors[-1]
    return total % MODULUS


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("width", [1, 2, 3, 5, 6, 8, 12, 384])
def test_sums_are_those_of_a_loop(precision: Any, width: int) -> None:
    values, scales = rounded(unit_vectors(9, width), precision)
    expected = [sum_by_loop(values[at], None if scales is None else scales[at]) for at in range(9)]
    assert row_sums(values, scales).tolist() == expected
    assert row_sums(values[:0], None if scales is None else scales[:0]).shape == (0,)


@given(
    content=st.binary(min_size=24, max_size=24),
    at=st.integers(0, 16),
    other=st.binary(min_size=1, max_size=8),
)
def test_what_changes_within_a_word_changes_the_sum(content: bytes, at: int, other: bytes) -> None:
    at = at // 8 * 8
    changed = content[:at] + other + content[at + len(other) :]
    before, after = (row_sums(np.frombuffer(one, np.uint8).reshape(1, 24)) for one in (content, changed))
    assert (before == after) == (content == changed)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["vectors.npy", "scales.npy", SUMS_FILE])
def test_a_row_is_compared_when_it_is_read(tmp_path: Path, precision: Any, name: str) -> None:
    write_vectors(tmp_path, [unit_vectors(40, 6)], precision=precision)
    expected = VectorStore.open(tmp_path, max_norm=1.1).part(0, 40)
    file = tmp_path / name
    if not file.exists():
        assert "int" not in precision
        return
    damaged = np.load(file, mmap_mode="r+")
    damaged.view(np.uint8).reshape(40, -1)[17, 0] ^= 4
    damaged.flush()
    store = VectorStore.open(tmp_path, max_norm=1.1)
    others = np.array([39, 16, 3, 18, 16])
    for _ in range(2):  # what was read before is still right
        assert np.array_equal(store.take(others), expected[others])
        assert np.array_equal(store.part(18, 40), expected[18:])
    for read in (
        lambda: store.take(np.array([3, 17, 5])),
        lambda: store.part(16, 20),
        lambda: list(store.parts()),
    ):
        with pytest.raises(DamagedArtifactError, match=r"vectors\.npy: the vector in row 17 has changed since it was"):
            read()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_vectors_in_any_order_of_memory_are_stored_alike(tmp_path: Path, precision: Any) -> None:
    wide = unit_vectors(30, 128)
    vectors = np.ascontiguousarray(wide[:, ::2])
    for name, stored in {"a": vectors, "b": np.asfortranarray(vectors), "c": wide[:, ::2]}.items():
        (tmp_path / name).mkdir()
        write_vectors(tmp_path / name, [stored[:7], stored[7:]], precision=precision)
        for file in (tmp_path / "a").iterdir():
            assert (tmp_path / name / file.name).read_bytes() == file.read_bytes()


def test_rows_in_each_others_places(tmp_path: Path) -> None:
    write_vectors(tmp_path, [unit_vectors(8, 6)])
    rows = np.load(tmp_path / "vectors.npy", mmap_mode="r+")
    rows[[2, 5]] = rows[[5, 2]]
    rows.flush()
    with pytest.raises(DamagedArtifactError, match="row 2"):
        VectorStore.open(tmp_path, max_norm=1.1).part(0, 8)


@pytest.mark.parametrize("sums", [np.zeros(7, np.uint64), np.zeros(8, np.int64), np.zeros((8, 1), np.uint64)])
def test_sums_of_other_vectors_are_refused(tmp_path: Path, sums: Any) -> None:
    write_vectors(tmp_path, [unit_vectors(8, 6)])
    np.save(tmp_path / SUMS_FILE, sums)
    with pytest.raises(DamagedArtifactError, match=r"vectors\.sums\.npy does not belong to the vectors"):
        VectorStore.open(tmp_path, max_norm=1.1)
