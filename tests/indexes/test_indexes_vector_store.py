"""Vectors in three precisions: rounding, files, memory maps, what is refused."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from index_data import in_precision, unit_vectors

from onoma.errors import DamagedArtifactError, InputError, ShapeError
from onoma.indexes import VectorStore, residency, vector_store, write_vectors
from onoma.indexes.residency import WINDOW_BYTES, ResidentWindows
from onoma.indexes.vector_store import VECTORS_FILE
from onoma.types import FloatArray

Precision = Literal["fp32", "fp16", "int16", "int8"]
PRECISIONS: list[Precision] = ["fp32", "fp16", "int16", "int8"]
needs_proc = pytest.mark.skipif(residency.mapped_bytes() is None, reason="no /proc/self/statm")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("sizes", [[7], [3, 0, 4], [0], [1, 1, 1]])
def test_written_in_parts_and_opened(tmp_path: Path, precision: Precision, sizes: list[int]) -> None:
    vectors = unit_vectors(sum(sizes), 5)
    parts = np.split(vectors, np.cumsum(sizes)[:-1])
    written = write_vectors(tmp_path, iter(parts), precision=precision)
    expected = in_precision(precision, vectors)
    for store in (written, VectorStore.open(tmp_path, max_norm=2.0)):
        assert (len(store), store.width, store.precision) == (sum(sizes), 5, precision)
        assert np.array_equal(store.part(0, 99), expected.part(0, 99))
        assert store.part(0, 99).dtype == np.float32
        assert store.n_bytes == expected.n_bytes
    assert written.max_norm == expected.max_norm
    assert np.load(tmp_path / VECTORS_FILE).shape == (sum(sizes), 5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_small_parts_make_the_same_files(tmp_path: Path, precision: Precision, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit_vectors(50, 6)
    for folder, rows in (("a", 1 << 15), ("b", 7)):
        monkeypatch.setattr(vector_store, "PART_ROWS", rows)
        (tmp_path / folder).mkdir()
        write_vectors(tmp_path / folder, [vectors[:20], vectors[20:]], precision=precision)
    names = sorted(file.name for file in (tmp_path / "a").iterdir())
    assert names == [*(["scales.npy"] if "int" in precision else []), "vectors.npy", "vectors.sums.npy"]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rows_and_parts_agree(precision: Precision) -> None:
    store = in_precision(precision, unit_vectors(40, 6))
    rows = np.array([39, 0, 7, 7])
    assert np.array_equal(store.take(rows), store.part(0, 40)[rows])
    assert np.array_equal(np.concatenate(list(store.parts())), store.part(0, 40))
    assert store.take(np.empty(0, np.int64)).shape == (0, 6)


@settings(max_examples=80)
@given(
    vectors=npst.arrays(
        np.float32,
        st.tuples(st.integers(0, 6), st.integers(1, 9)),
        # What is smaller would have a scale that single precision holds with fewer digits.
        elements=st.floats(-1000, 1000, width=32).map(lambda x: x if abs(x) > 1e-30 else 0.0),
    ),
    kind=st.sampled_from([("int8", 127), ("int16", 32_767)]),
)
def test_rounding_to_whole_numbers_keeps_length_and_direction(
    vectors: FloatArray, kind: tuple[Literal["int8", "int16"], int]
) -> None:
    precision, largest = kind
    store = in_precision(precision, vectors)
    for given_vector, stored in zip(vectors.astype(float), store.part(0, len(vectors)).astype(float), strict=True):
        length = np.sqrt((given_vector**2).sum())
        assert np.sqrt((stored**2).sum()) == pytest.approx(length, rel=1e-6)
        # Each component is off by at most half a step, before the length is put right.
        step = np.abs(given_vector).max() / largest
        assert np.abs(stored - given_vector).max() <= (1.01 * np.sqrt(len(given_vector)) + 0.01) * step


@pytest.mark.parametrize(
    ("precision", "least"), [("fp32", 1), ("fp16", 0.9999999), ("int16", 0.9999999), ("int8", 0.9999)]
)
def test_cosine_with_what_was_given(precision: Precision, least: float) -> None:
    vectors = unit_vectors(500, 384)
    stored = in_precision(precision, vectors).part(0, 500)
    cosines = (vectors.astype(float) * stored).sum(1) / np.linalg.norm(stored.astype(float), axis=1)
    assert cosines.min() >= least - 1e-7


class Watched:
    """A memory map that notes what of it is in memory, a window as soon as a byte of it was read."""

    def __init__(self, values: Any) -> None:
        self.below: mmap.mmap = values.base
        self.start = values.ctypes.data - values.offset % mmap.ALLOCATIONGRANULARITY
        self.windows: set[int] = set()
        self.n_given_back = 0

    def __len__(self) -> int:
        return len(self.below)

    def madvise(self, advice: int, start: int, length: int) -> None:
        assert advice == mmap.MADV_DONTNEED
        self.below.madvise(advice, start, length)
        first, last = self.start + start, self.start + start + length - 1
        assert first % WINDOW_BYTES == 0 or start == 0  # a window is given back whole
        assert (last + 1) % WINDOW_BYTES == 0 or start + length == len(self)
        self.windows -= set(range(first // WINDOW_BYTES, last // WINDOW_BYTES + 1))
        self.n_given_back += 1


def _allow(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """So many bytes stay in memory of every file, as else of a large one."""
    monkeypatch.setattr(vector_store, "WHOLE_BYTES", 0)
    monkeypatch.setattr(vector_store, "RESIDENT_BYTES", most)


@pytest.mark.parametrize("precision", ["fp32", "int16"])
def test_of_a_large_file_no_more_is_kept_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: Precision
) -> None:
    vectors = unit_vectors(90_000, 64)
    write_vectors(tmp_path, [vectors], precision=precision)
    expected = VectorStore.open(tmp_path, max_norm=1.001).part(0, len(vectors))
    most = 80 * WINDOW_BYTES
    monkeypatch.setattr(residency, "_WINDOWS_TO_A_LOOK", 1)
    _allow(monkeypatch, most)
    store = VectorStore.open(tmp_path, max_norm=1.001)
    resident = store._resident
    assert resident is not None
    monkeypatch.setattr(residency, "mapped_bytes", lambda: None)
    values: Any = store._values
    while not isinstance(values, np.memmap):
        values = values.base
    watched = Watched(values)
    monkeypatch.setattr(resident, "_map", watched)
    random = np.random.default_rng(0)
    row_bytes = store.width * values.itemsize
    for turn in range(200):
        if turn % 5:
            rows = random.integers(0, len(store), 30)
            assert np.array_equal(store.take(rows), expected[rows])
        else:
            start = int(random.integers(0, len(store) - 1000))
            rows = np.arange(start, start + 1000)
            assert np.array_equal(store.part(start, start + 1000), expected[rows])
        first = values.ctypes.data + rows * row_bytes
        watched.windows |= set((first // WINDOW_BYTES).tolist()) | set(
            ((first + row_bytes - 1) // WINDOW_BYTES).tolist()
        )
        assert 2 * WINDOW_BYTES * len(watched.windows) == resident.n_bytes <= most + 2 * WINDOW_BYTES * 60
    assert watched.n_given_back > 50


@pytest.mark.parametrize("mapped", [1.0, 1.5, 7.0])
def test_what_the_system_maps_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: float) -> None:
    write_vectors(tmp_path, [unit_vectors(90_000, 64)])
    most = 100 * WINDOW_BYTES
    opened: list[ResidentWindows] = []

    def mapped_bytes() -> int:
        return 12345 + sum(int(mapped * WINDOW_BYTES * resident._read.sum()) for resident in opened)

    _allow(monkeypatch, most)
    monkeypatch.setattr(residency, "_WINDOWS_TO_A_LOOK", 4)
    monkeypatch.setattr(residency, "mapped_bytes", mapped_bytes)
    store = VectorStore.open(tmp_path, max_norm=1.001)
    assert store._resident is not None
    opened.append(store._resident)
    random = np.random.default_rng(0)
    at_end = []
    for turn in range(300):
        store.take(random.integers(0, len(store), 4))
        assert mapped_bytes() <= most + mapped * WINDOW_BYTES * 16 + 12345
        if turn > 150:
            at_end.append(mapped_bytes())
    assert np.mean(at_end) >= 0.7 * most


@needs_proc
def test_what_is_mapped_stays_within_the_bound_whatever_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the system's own figures: after one reading of everything, and beside another large file."""
    write_vectors(tmp_path, [unit_vectors(250_000, 64)])
    most = 250_000 * 64 * 4 // 2
    _allow(monkeypatch, most)
    monkeypatch.setattr(residency, "_WINDOWS_TO_A_LOOK", 8)  # a look at 2 GB comes after 256
    store = VectorStore.open(tmp_path, max_norm=1.001)
    resident = store._resident
    assert resident is not None
    store.take(np.arange(0, len(store), 100))  # reaches every window
    assert resident.n_bytes >= 1.9 * most
    random = np.random.default_rng(0)
    for _ in range(100):
        store.take(random.integers(0, len(store), 5))
    assert resident.n_bytes <= 1.5 * most  # the last rows were not looked at yet
    (tmp_path / "other").write_bytes(bytes(4 * most))
    other = np.memmap(tmp_path / "other", np.uint8, mode="r")
    assert other[:: mmap.PAGESIZE].sum() == 0
    for _ in range(100):
        store.take(random.integers(0, len(store), 5))
    assert most / 16 <= resident._read.sum() * WINDOW_BYTES <= most / 4  # some of it is kept


@needs_proc
def test_pages_of_files_are_counted(tmp_path: Path) -> None:
    before = residency.mapped_bytes()
    assert before is not None
    (tmp_path / "zeros").write_bytes(bytes(1 << 26))
    values = np.memmap(tmp_path / "zeros", np.uint8, mode="r")
    assert values[:: mmap.PAGESIZE].sum() == 0
    after = residency.mapped_bytes()
    assert after is not None
    assert after - before >= 0.9 * len(values)


def test_what_is_larger_than_allowed_is_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_vectors(tmp_path, [unit_vectors(3000, 64)])
    _allow(monkeypatch, 1)
    store = VectorStore.open(tmp_path, max_norm=1.001)
    expected = unit_vectors(3000, 64)
    rows = np.arange(0, 3000, 7)
    for _ in range(3):
        assert np.array_equal(store.take(rows), expected[rows])
        assert np.array_equal(store.part(0, 3000), expected)
        assert store.take(rows[:0]).shape == (0, 64)
        assert store.part(7, 7).shape == (0, 64)


def test_only_what_is_larger_than_the_bound_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_vectors(tmp_path, [unit_vectors(30, 6)])
    assert VectorStore.open(tmp_path, max_norm=1.001)._resident is None
    for whole, is_watched in ((30 * 6 * 4, False), (30 * 6 * 4 - 1, True)):
        monkeypatch.setattr(vector_store, "WHOLE_BYTES", whole)
        assert (VectorStore.open(tmp_path, max_norm=1.001)._resident is not None) == is_watched


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_is_not_finite_is_refused_by_its_number(tmp_path: Path, precision: Precision, value: float) -> None:
    vectors = unit_vectors(20, 4)
    vectors[13, 2] = value
    with pytest.raises(InputError, match="vector 13 has"):
        write_vectors(tmp_path, [vectors[:10], vectors[10:]], precision=precision)


def test_what_is_too_large_for_half_precision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too large for fp16"):
        write_vectors(tmp_path, [np.full((2, 3), 1e6, np.float32)], precision="fp16")


def test_parts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ShapeError, match=r"\(n, 4\); found \(3, 5\)"):
        write_vectors(tmp_path, [unit_vectors(2, 4), unit_vectors(3, 5)])
    with pytest.raises(InputError, match="float32"):
        write_vectors(tmp_path, [np.zeros((2, 4))])  # type: ignore[list-item]
    with pytest.raises(InputError, match="no vectors"):
        write_vectors(tmp_path, [])


def test_scales_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="scales"):
        VectorStore(np.zeros((2, 3), np.int8))
    with pytest.raises(InputError, match="scales"):
        VectorStore(np.zeros((2, 3), np.float16), np.ones(2, np.float32))
    with pytest.raises(ShapeError, match="scales"):
        VectorStore(np.zeros((2, 3), np.int8), np.ones(3, np.float32))


@pytest.mark.parametrize("damage", ["missing", "truncated", "no array", "another type", "no scales"])
def test_damaged_files_are_refused(tmp_path: Path, damage: str) -> None:
    write_vectors(tmp_path, [unit_vectors(30, 6)], precision="int8")
    file = tmp_path / VECTORS_FILE
    if damage == "missing":
        file.unlink()
    elif damage == "truncated":
        file.write_bytes(file.read_bytes()[:-5])
    elif damage == "no array":
        file.write_bytes(b"vectors" * 100)
    elif damage == "another type":
        np.save(file, np.zeros((30, 6), np.int64))
    else:
        (tmp_path / "scales.npy").unlink()
    with pytest.raises(DamagedArtifactError, match="Build the index again"):
        VectorStore.open(tmp_path, max_norm=1.001)


@pytest.mark.parametrize("shape", [(1, 65_536), (65_536, 1), (256, 256)])
def test_halves_become_the_same_numbers_in_single_precision(shape: tuple[int, int]) -> None:
    """All there are, the subnormal ones too, by numpy; and those that are not finite."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = np.where(np.isfinite(every), every, np.float16(0)).reshape(shape)
    found = VectorStore(halves).part(0, len(halves))
    assert found.dtype == np.float32
    assert found.tobytes() == halves.astype(np.float32).tobytes()
    some = VectorStore(every.reshape(256, 256), max_norm=1.0).take(np.array([3, 0x7C, 0xFC, 200]))
    np.testing.assert_array_equal(some, every.reshape(256, 256)[[3, 0x7C, 0xFC, 200]].astype(np.float32))
