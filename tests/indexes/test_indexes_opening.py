"""Indexes in folders: built, measured, opened, and refused when they are not what they should be."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from onoma.artifacts import sha256_file
from onoma.errors import (
    ArtifactExistsError,
    ConfigError,
    DamagedArtifactError,
    FormatVersionError,
    InputError,
    ShapeError,
)
from onoma.indexes import (
    ApproximateIndex,
    ExactIndex,
    IndexKind,
    SignBitIndex,
    VectorPrecision,
    VectorStore,
    build_index,
    candidate_search,
    open_index,
    read_index_record,
    sign_bits,
    vector_store,
)
from onoma.indexes.pgvector_folder import read_place
from onoma.indexes.records import RECORD_FILE
from onoma.types import FloatArray

KINDS = get_args(IndexKind)
PRECISIONS = get_args(VectorPrecision)


def clustered(n: int, width: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((400, width)) + 1
    vectors = centres[rng.integers(0, 400, n)] + 0.5 * rng.standard_normal((n, width))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("n", [1, 3, 4200])
def test_built_and_opened(tmp_path: Path, kind: str, precision: str, n: int) -> None:
    vectors, queries = clustered(n, 21), clustered(20, 21, seed=1)
    candidates = None if kind == "exact" else 100
    record = build_index(tmp_path / "index", vectors, kind=kind, precision=precision, candidates=candidates)
    assert (record.kind, record.precision, record.n_vectors, record.width) == (kind, precision, n, 21)
    assert read_index_record(tmp_path / "index") == record
    index = open_index(tmp_path / "index")
    assert (len(index), index.width) == (n, 21)
    rows, scores = index.search(queries, k=5)
    expected_rows, expected_scores = ExactIndex(vectors).search(queries, k=5)
    assert rows.shape == (20, min(5, n))
    assert np.mean(rows[:, 0] == expected_rows[:, 0]) >= (0.9 if precision == "int8" else 0.95)
    np.testing.assert_allclose(scores[:, 0], expected_scores[:, 0], atol=0.01)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_parts_give_the_same_files_as_the_whole(
    tmp_path: Path, kind: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they are given in parts, or read in parts, as more than 32,768 are."""
    vectors = clustered(200, 12)
    build_index(tmp_path / "whole", vectors, kind=kind, precision=precision)
    for module in (sign_bits, vector_store):
        monkeypatch.setattr(module, "PART_ROWS", 37)
    build_index(tmp_path / "parts", (vectors[a : a + 29] for a in range(0, 200, 29)), kind=kind, precision=precision)
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "parts").iterdir())
    for name in names:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name


def test_a_memory_map_is_indexed_without_being_changed(tmp_path: Path) -> None:
    np.save(tmp_path / "given.npy", clustered(300, 8))
    before = (tmp_path / "given.npy").read_bytes()
    build_index(tmp_path / "index", np.load(tmp_path / "given.npy", mmap_mode="r"), precision="fp16", kind="sign-bits")
    assert (tmp_path / "given.npy").read_bytes() == before


def test_what_was_measured_is_recorded(tmp_path: Path) -> None:
    vectors = clustered(3000, 24)
    exact = build_index(tmp_path / "exact", vectors, kind="exact")
    assert (exact.recall.at_1, exact.recall.at_10, exact.recall.queries) == (1.0, 1.0, "left-out")
    assert (exact.agreement.mean_cosine, exact.candidates) == (1.0, None)
    signs = build_index(
        tmp_path / "signs", vectors, candidates=100, queries=clustered(200, 24, seed=1), kind="sign-bits"
    )
    assert (signs.recall.n_queries, signs.recall.queries) == (200, "given")
    assert 0.9 < signs.recall.at_10 < 1
    rough = build_index(tmp_path / "int8", vectors, kind="exact", precision="int8")
    assert 0.99 < rough.agreement.lowest_cosine <= rough.agreement.mean_cosine < 1
    assert rough.recall.at_10 < 1
    assert json.loads((tmp_path / "int8" / RECORD_FILE).read_text())["recall"]["at_10"] == rough.recall.at_10


def test_an_empty_index(tmp_path: Path, kind: str) -> None:
    build_index(tmp_path / "index", np.empty((0, 6), np.float32), kind=kind, precision="fp16")
    rows, scores = open_index(tmp_path / "index").search(clustered(2, 6), k=3)
    assert rows.shape == scores.shape == (2, 0)


def test_the_default_is_sign_bits_in_single_precision(tmp_path: Path) -> None:
    record = build_index(tmp_path, clustered(10, 6), kind="sign-bits")
    assert (record.kind, record.precision, record.candidates) == ("sign-bits", "fp32", 256)


LADDER = (16, 64, 256, 1024)


@pytest.fixture
def guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sign bits decide also where there are so few vectors."""
    monkeypatch.setattr(candidate_search, "EXHAUSTIVE_SHARE", 0)
    monkeypatch.setattr(SignBitIndex, "_candidates_per_result", 1)
    monkeypatch.setattr(sign_bits, "LADDER", LADDER)


@pytest.mark.usefixtures("guesses")
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_sign_bits_get_as_many_candidates_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    vectors = clustered(3000, 24)
    records = {}
    for enough in (0.2, 0.95, 0.999, 1.1):
        monkeypatch.setattr(sign_bits, "ENOUGH", enough)
        folder = tmp_path / str(enough)
        records[enough] = build_index(folder, vectors, precision=precision, kind="sign-bits")
        assert open_index(folder).search(vectors[:50], k=3)[0].shape == (50, 3)
    # The oracle: similarities of the vectors as they are stored, all of them at once.
    store = VectorStore.open(tmp_path / "0.2", max_norm=records[0.2].max_norm)
    stored = store.part(0, 3000)
    own = np.unique(np.linspace(0, 2999, 1000).astype(int))
    similarities = stored[own] @ stored.T
    similarities[np.arange(len(own)), own] = -2
    tens = np.sort(similarities, axis=1)[:, -10:]
    reached = {}
    for candidates in LADDER[:-1]:
        found, _ = SignBitIndex.build(store, candidates=candidates).search(stored[own], k=11)
        scores = np.take_along_axis(similarities, found, axis=1)
        scores = -np.sort(-scores, axis=1)[:, :10]  # the row that asks is last
        at_1 = np.mean(scores[:, 0] >= tens[:, -1] - 1e-6)
        at_10 = np.mean(scores >= tens[:, :1] - 1e-6)
        reached[candidates] = min(round(at_1, 4), round(at_10, 4))
    for enough, record in records.items():
        enough_with = [candidates for candidates, share in reached.items() if share >= enough]
        assert record.candidates == next(iter(enough_with), LADDER[-1])


@pytest.mark.usefixtures("guesses")
def test_candidates_that_were_chosen_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_bits, "LADDER", (16, 2048))
    vectors, queries = clustered(3000, 24), clustered(200, 24, seed=1)
    assert build_index(tmp_path / "index", vectors, kind="sign-bits").candidates == 2048
    many, _ = open_index(tmp_path / "index").search(queries, k=10)
    fixed = SignBitIndex.build(VectorStore(vectors), candidates=2048).search(queries, k=10)[0]
    few = SignBitIndex.build(VectorStore(vectors), candidates=16).search(queries, k=10)[0]
    assert np.array_equal(many, fixed)
    assert not np.array_equal(many, few)


def test_what_does_not_exist_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    target = tmp_path / "index"
    with pytest.raises(ConfigError, match=r"no index '[^']*'\. Did you mean 'sign-bits'\?"):
        build_index(target, clustered(9, 4), kind="sign_bits")
    with pytest.raises(ConfigError, match="no precision of vectors 'fp8'"):
        build_index(target, clustered(9, 4), precision="fp8", kind="sign-bits")
    with pytest.raises(InputError, match="field candidates"):
        build_index(target, clustered(9, 4), candidates=0, kind="sign-bits")
    with pytest.raises(InputError, match="no candidates"):
        build_index(target, clustered(9, 4), kind="exact", candidates=10)
    assert not target.exists()


def test_vectors_already_there_are_not_replaced(tmp_path: Path) -> None:
    build_index(tmp_path, clustered(9, 4), kind="sign-bits")
    with pytest.raises(ArtifactExistsError, match=r"vectors\.npy already"):
        build_index(tmp_path, np.load(tmp_path / "vectors.npy", mmap_mode="r"), kind="sign-bits")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_wrong_vectors_leave_no_index(tmp_path: Path, precision: str) -> None:
    vectors = clustered(9, 4)
    with pytest.raises(ShapeError):
        build_index(tmp_path / "a", iter([vectors, vectors[:, :3]]), precision=precision, kind="sign-bits")
    vectors[5, 1] = np.nan
    for number, given in enumerate([vectors, iter([vectors[:3], vectors[3:]])]):
        with pytest.raises(InputError, match="vector 5 has"):
            build_index(tmp_path / str(number), given, precision=precision, kind="sign-bits")
    for folder in tmp_path.iterdir():
        assert list(folder.iterdir()) == []
        with pytest.raises(InputError, match="no index here"):
            open_index(folder)
        build_index(folder, clustered(9, 4), precision=precision, kind="sign-bits")


def test_what_else_lies_there_survives_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not finite"):
        build_index(tmp_path, np.full((3, 2), np.nan, np.float32), kind="sign-bits")
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


FILES = {
    "exact": ["vectors.npy", "scales.npy"],
    "sign-bits": ["vectors.npy", "scales.npy", "signs.npy", "centre.npy"],
    "approximate": ["vectors.npy", "scales.npy", "lists.faiss"],
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For each kind an index, and another of fewer and narrower vectors, to copy."""
    folder = tmp_path_factory.mktemp("built")
    for kind in FILES:
        build_index(folder / kind / "index", clustered(4200, 12), kind=kind, precision="int8")
        build_index(folder / kind / "other", clustered(4100, 8), kind=kind, precision="int8")
    return folder


@pytest.mark.parametrize("damage", ["missing", "truncated", "empty", "garbage", "another"])
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FILES.items() for name in names])
def test_damaged_files_are_refused(built: Path, tmp_path: Path, kind: str, name: str, damage: str) -> None:
    shutil.copytree(built / kind / "index", tmp_path / "index")
    assert len(open_index(tmp_path / "index")) == 4200
    file = tmp_path / "index" / name
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "truncated":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "garbage":
        file.write_bytes(b"\x00\xff" * (len(content) // 2))
    else:
        file.write_bytes((built / kind / "other" / name).read_bytes())
    with pytest.raises(DamagedArtifactError, match=r"[Bb]uild"):
        open_index(tmp_path / "index")


@pytest.mark.parametrize(("kind", "name"), [("sign-bits", "signs.npy"), ("approximate", "lists.faiss")])
def test_files_read_whole_are_compared_when_they_are_read(tmp_path: Path, kind: str, name: str) -> None:
    vectors = clustered(4200, 12)
    build_index(tmp_path, vectors, kind=kind, candidates=20)
    checksums = {name: sha256_file(tmp_path / name)}
    assert open_index(tmp_path, checksums=checksums).search(vectors[:2], k=3)[0].shape == (2, 3)
    content = bytearray((tmp_path / name).read_bytes())
    content[-100] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DamagedArtifactError, match=rf"{name} has changed since it was written"):
        open_index(tmp_path, checksums=checksums).search(vectors[:2], k=3)


@pytest.mark.parametrize(
    ("field", "value"),
    [("kind", "telepathy"), ("precision", "fp8"), ("n_vectors", -1), ("width", 13), ("n_vectors", 299), ("extra", 1)],
)
def test_a_record_that_says_something_else_is_refused(tmp_path: Path, field: str, value: object) -> None:
    build_index(tmp_path, clustered(300, 12), kind="sign-bits")
    record = json.loads((tmp_path / RECORD_FILE).read_text())
    (tmp_path / RECORD_FILE).write_text(json.dumps(record | {field: value}))
    with pytest.raises(DamagedArtifactError, match="Build the index again"):
        open_index(tmp_path)


@pytest.mark.parametrize(
    ("kind", "candidates"),
    [("sign-bits", 0), ("sign-bits", None), ("approximate", -3), ("approximate", None), ("exact", 9)],
)
def test_candidates_that_cannot_be_are_a_damaged_record(kind: str, candidates: int | None, tmp_path: Path) -> None:
    build_index(tmp_path, clustered(300, 12), kind=kind)
    record = json.loads((tmp_path / RECORD_FILE).read_text())
    (tmp_path / RECORD_FILE).write_text(json.dumps(record | {"candidates": candidates}))
    with pytest.raises(
        DamagedArtifactError, match=r"readable \((candidates: |Value error, .*candidates).*Build the index again"
    ):
        open_index(tmp_path)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.dtype(">f4")])
@pytest.mark.parametrize("kind", ["exact", "sign-bits"])
def test_vectors_of_another_type_are_refused(kind: str, dtype: Any, tmp_path: Path) -> None:
    vectors = clustered(300, 12).astype(dtype)
    for given in (vectors, [vectors]):
        with pytest.raises(InputError, match="vectors of the wrong type; expected float32"):
            build_index(tmp_path / "index", given, kind=kind)


def test_early_stopping_is_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    far = rng.choice([0.2, 1.2], (20_000, 1), p=[0.7, 0.3])  # from the middle of their group
    vectors = rng.standard_normal((400, 24))[rng.integers(0, 400, len(far))] + far * rng.standard_normal((len(far), 24))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    built = build_index(tmp_path, vectors, kind="approximate", queries=vectors[:0])
    assert built.early_stop is not None
    opened = open_index(tmp_path)
    assert isinstance(opened, ApproximateIndex)
    assert opened.early_stop == built.early_stop
    record = json.loads((tmp_path / RECORD_FILE).read_text())
    (tmp_path / RECORD_FILE).write_text(json.dumps(record | {"early_stop": {"first_lists": 0, "least_score": 0.5}}))
    with pytest.raises(DamagedArtifactError, match="first_lists"):
        open_index(tmp_path)
    stop = record["early_stop"] | {"last_lists": 3}
    (tmp_path / RECORD_FILE).write_text(json.dumps(record | {"early_stop": stop}))
    with pytest.raises(DamagedArtifactError, match="last_lists"):
        open_index(tmp_path)


def test_records_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    build_index(tmp_path, clustered(30, 12), kind="sign-bits")
    record = json.loads((tmp_path / RECORD_FILE).read_text())
    (tmp_path / RECORD_FILE).write_text(json.dumps(record | {"format_version": 99, "new": 1}))
    with pytest.raises(FormatVersionError, match="Update Onoma"):
        open_index(tmp_path)
    for part in ("recall", "agreement"):
        (tmp_path / RECORD_FILE).write_text(json.dumps(record | {part: record[part] | {"unheard_of": 1}}))
        with pytest.raises(DamagedArtifactError, match="unheard_of"):
            open_index(tmp_path)
    (tmp_path / RECORD_FILE).write_bytes(b"\xff{")
    with pytest.raises(DamagedArtifactError, match=RECORD_FILE):
        open_index(tmp_path)
    with pytest.raises(InputError, match="no index here"):
        open_index(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("kind", "n_vectors", "scored"),
    [
        ("exact", 9, None),
        ("sign-bits", 4096, 4096),
        ("sign-bits", 4097, 256),
        ("approximate", 300, 300),
        ("approximate", 4097, 256),
    ],
)
def test_how_many_rows_are_scored_exactly(tmp_path: Path, kind: str, n_vectors: int, scored: int | None) -> None:
    vectors = np.random.default_rng(0).standard_normal((n_vectors, 16)).astype(np.float32)
    build_index(tmp_path, vectors, kind=kind, candidates=None if scored is None else 256)
    assert read_index_record(tmp_path).n_scored == scored


@pytest.mark.parametrize(
    ("number", "error"),
    [(errno.EMFILE, OSError), (errno.EACCES, PermissionError), (errno.EINVAL, DamagedArtifactError)],
)
def test_where_the_table_is_may_not_be_readable_just_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(error, match=os.strerror(number)):
        read_place(tmp_path)
