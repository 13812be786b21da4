"""Batches of pairs whose names the encoder confuses, against plain loops over all names."""

from __future__ import annotations

import errno
import functools
import itertools
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import ConfigError, TrainingError
from onoma.indexes import ExactIndex
from onoma.pairs import build_pairs
from onoma.training import neighbours as searching
from onoma.training.alignment_config import TrainingConfig
from onoma.training.batches import NeighbourBatches, PairBatches, make_batches
from onoma.training.neighbours import Encode, nearest_of_other_concepts
from onoma.training.settings import resolve
from onoma.types import FloatArray, RowArray
from tiny import make_terminology, small_tokenizer

N_CONCEPTS, N_NAMES = 12, 3
LABELS = np.repeat(np.arange(N_CONCEPTS, dtype=np.int32), N_NAMES)
PAIRS = np.array(
    [(3 * concept + a, 3 * concept + b) for concept in range(N_CONCEPTS) for a, b in ((0, 1), (0, 2), (1, 2))],
    np.int32,
)


def unit(vectors: npt.NDArray[np.floating]) -> FloatArray:
    scaled: FloatArray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def circle(shift: float = 0.0) -> FloatArray:
    """A vector for each name: concepts 2i and 2i + 1 lie side by side, all others far away."""
    angles = (LABELS // 2) / (N_CONCEPTS // 2) * 2 * np.pi + (LABELS % 2 + 0.1 * (np.arange(len(LABELS)) % 3)) * 0.05
    return unit(np.stack([np.cos(angles + shift), np.sin(angles + shift)], axis=1))


class Counting:
    """An encoder that knows every name's vector and notes what it was asked for."""

    def __init__(self, vectors: FloatArray) -> None:
        self.vectors = vectors
        self.calls: list[int] = []

    def __call__(self, rows: RowArray) -> FloatArray:
        self.calls.append(len(rows))
        return self.vectors[rows]


def nearest_by_loops(
    asking: RowArray,
    candidates: RowArray,
    labels: npt.NDArray[np.integer],
    vectors: FloatArray,
    k: int,
    text_labels: npt.NDArray[np.integer] | None,
) -> list[list[int]]:
    answers = []
    for name, synonym in asking.tolist():
        scored = sorted(
            (-np.float32((vectors[row].astype(np.float64) * vectors[name].astype(np.float64)).sum()), row)
            for row in candidates.tolist()
        )
        answer: list[int] = []
        for _, row in scored:
            same_text = text_labels is not None and text_labels[row] in {text_labels[name], text_labels[synonym]}
            if labels[row] != labels[name] and not same_text and labels[row] not in {labels[r] for r in answer}:
                answer.append(row)
        answers.append((answer + [-1] * k)[:k])
    return answers


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    n_names=st.integers(2, 40),
    n_concepts=st.integers(1, 12),
    n_points=st.integers(1, 20),
    k=st.integers(1, 5),
    chunk=st.integers(1, 50),
    marked=st.booleans(),
)
def test_the_nearest_of_other_concepts_are_those_a_loop_finds(
    seed: int, n_names: int, n_concepts: int, n_points: int, k: int, chunk: int, marked: bool
) -> None:
    drawn = np.random.default_rng(seed)
    labels = drawn.integers(0, n_concepts, n_names).astype(np.int32)
    texts = drawn.integers(0, n_names, n_names).astype(np.int32) if marked else None
    vectors = unit(drawn.standard_normal((n_points, 3)))[drawn.integers(0, n_points, n_names)]  # with many ties
    candidates = np.unique(drawn.integers(0, n_names, n_names))
    asking = candidates[drawn.integers(0, len(candidates), (7, 2))]
    found = nearest_of_other_concepts(
        asking,
        candidates,
        labels,
        neighbours=k,
        encode=lambda rows: vectors[rows],
        text_labels=texts,
        chunk_names=chunk,
    )
    assert found.tolist() == nearest_by_loops(asking, candidates, labels, vectors, k, texts)


def test_names_of_the_own_concept_are_looked_past_up_to_a_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.array([0] * 100 + [1, 2], np.int32)
    angles = np.linspace(0, 1, len(labels))
    vectors = unit(np.stack([np.cos(angles), np.sin(angles)], axis=1))

    def found() -> RowArray:
        return nearest_of_other_concepts(
            np.array([[0, 1]]), np.arange(len(labels)), labels, neighbours=2, encode=lambda rows: vectors[rows]
        )

    assert found().tolist() == [[100, 101]]
    monkeypatch.setattr(searching, "_DEEPEST", 101)
    assert found().tolist() == [[100, -1]]


def test_progress_is_told_for_each_chunk() -> None:
    told: list[tuple[int, int]] = []
    nearest_of_other_concepts(
        PAIRS.astype(np.int64),
        np.arange(len(LABELS)),
        LABELS,
        neighbours=1,
        encode=Counting(circle()),
        chunk_names=15,
        on_chunk=lambda *call: told.append(call),
    )
    assert told == [(15, 36), (30, 36), (36, 36)]


def make(folder: Path, **changes: object) -> NeighbourBatches:
    values: dict[str, object] = {"batch_pairs": 4, "neighbours": 1, "refresh_batches": 5, "seed": 3}
    return NeighbourBatches(PAIRS, LABELS, folder, **{**values, **changes})  # type: ignore[arg-type]


def run(batches: NeighbourBatches, encode: Encode, numbers: range) -> list[list[int]]:
    found = []
    for number in numbers:
        batches.prepare(number, encode)
        found.append(batches.names_of_step(number).tolist())
    return found


def test_a_seed_comes_with_a_pair_of_the_name_that_is_most_similar(tmp_path: Path) -> None:
    vectors = circle()
    batches = make(tmp_path, batch_pairs=2)
    for number in range(batches.steps_per_epoch):
        batches.prepare(number, Counting(vectors))
        left, right = batches.names_of_step(number).reshape(2, -1)
        assert LABELS[left].tolist() == LABELS[right].tolist()
        seed, companion = LABELS[left].tolist()
        assert companion == seed ^ 1
        nearest = {
            nearest_by_loops(np.array([[name, name]]), np.arange(36), LABELS, vectors, 1, None)[0][0]
            for name in (int(left[0]), int(right[0]))
        }
        assert nearest & {int(left[1]), int(right[1])}


@pytest.mark.parametrize(("batch_pairs", "neighbours"), [(4, 1), (7, 2), (5, 4), (50, 3), (36, 35)])
def test_every_pass_visits_every_pair_in_batches_without_repeats(
    tmp_path: Path, batch_pairs: int, neighbours: int
) -> None:
    batches = make(tmp_path, batch_pairs=batch_pairs, neighbours=neighbours)
    encode = Counting(circle())
    seeds = batch_pairs // (1 + neighbours)
    assert batches.steps_per_epoch == -(-len(PAIRS) // seeds)
    known = [tuple(pair) for pair in PAIRS.tolist()]
    for epoch in range(2):
        seen: set[tuple[int, int]] = set()
        for position, names in enumerate(
            run(batches, encode, range(epoch * batches.steps_per_epoch, (epoch + 1) * batches.steps_per_epoch))
        ):
            pairs = list(zip(names[: len(names) // 2], names[len(names) // 2 :], strict=True))
            assert len(set(pairs)) == len(pairs)
            assert set(pairs) <= set(known)
            is_last = position == batches.steps_per_epoch - 1 and len(PAIRS) % seeds
            wanted = (len(PAIRS) % seeds) * (1 + neighbours) if is_last else batch_pairs
            assert len(pairs) == min(wanted, len(PAIRS))
            seen.update(pairs)
        assert seen == set(known)


def test_names_are_compared_at_the_right_batches_with_the_weights_of_then(tmp_path: Path) -> None:
    batches = make(tmp_path, warmup_batches=2)
    encode = Counting(circle())
    run(batches, encode, range(2))
    assert encode.calls == []
    first = run(batches, encode, range(2, 7))
    assert encode.calls == [36]
    encode.vectors = unit(np.random.default_rng(0).standard_normal((36, 4)))
    run(batches, encode, range(7, 9))
    assert encode.calls == [36, 36]
    other = make(tmp_path / "other", warmup_batches=2)
    assert run(other, encode, range(2, 7)) != first


def test_warm_up_batches_are_full_and_visit_their_seeds(tmp_path: Path) -> None:
    batches = make(tmp_path, warmup_batches=100)
    visited: set[int] = set()
    for names in run(batches, Counting(circle()), range(batches.steps_per_epoch)):
        assert len(names) == 8
        visited.update(names)
    assert visited == set(range(36))
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_run_reads_what_was_found_and_goes_on_alike(tmp_path: Path) -> None:
    old, new = Counting(circle()), Counting(unit(np.random.default_rng(0).standard_normal((36, 4))))
    straight = run(make(tmp_path), old, range(5)) + run(make(tmp_path), new, range(5, 12))
    for begin in range(5):
        encode = Counting(new.vectors)
        assert run(make(tmp_path), encode, range(begin + 1, 5)) == straight[begin + 1 : 5]
        assert encode.calls == []
    shorter = make(tmp_path)
    shorter.end_at(4)  # runs of epochs and minutes once looked for more than they needed
    assert run(shorter, new, range(2, 4)) == straight[2:4]
    assert run(make(tmp_path), new, range(7, 12)) == straight[7:]
    assert run(make(tmp_path), new, range(5, 12)) == straight[5:]


def test_a_batch_depends_on_seed_and_number_and_table_alone(tmp_path: Path) -> None:
    encode = Counting(circle())
    batches = make(tmp_path)
    batches.prepare(0, encode)
    straight = [batches.names_of_step(number).tolist() for number in range(5)]
    backwards = [batches.names_of_step(number).tolist() for number in range(4, -1, -1)]
    assert backwards[::-1] == straight
    assert run(make(tmp_path / "b", seed=4), encode, range(5)) != straight


def test_what_an_abandoned_run_left_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    run(make(tmp_path), Counting(unit(np.random.default_rng(0).standard_normal((36, 4)))), range(1))
    begun_anew = run(make(tmp_path), Counting(circle()), range(5))
    assert begun_anew == run(make(tmp_path / "fresh"), Counting(circle()), range(5))


def denied(file: Path, **_: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied", str(file))


def test_without_its_table_a_resumed_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Counting(circle())
    run(make(tmp_path), encode, range(1))
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:100])
    with pytest.raises(TrainingError, match=r"found at batch 0 cannot be read.*Remove"):
        make(tmp_path).prepare(3, encode)
    with monkeypatch.context() as patched:
        patched.setattr(np, "load", denied)
        with pytest.raises(PermissionError):  # which says nothing of what is in the table
            make(tmp_path).prepare(3, encode)
    np.save(file, np.zeros((10, 1), object), allow_pickle=True)  # a pickle, which could run anything
    with pytest.raises(TrainingError, match=r"found at batch 0 cannot be read.*Remove"):
        make(tmp_path).prepare(3, encode)
    file.unlink()
    with pytest.raises(TrainingError, match=r"with the weights of now they would be others"):
        make(tmp_path).prepare(3, encode)
    file.write_bytes(content)
    with pytest.raises(TrainingError, match="belongs to another run"):
        make(tmp_path, batch_pairs=8).prepare(3, encode)
    batches = make(tmp_path)
    batches.prepare(3, encode)
    with pytest.raises(TrainingError, match="batch 5 was not prepared"):
        batches.names_of_step(5)


def test_a_refresh_draws_from_no_shared_random_state(tmp_path: Path) -> None:
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    run(make(tmp_path), Counting(circle()), range(6))
    after = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


def test_one_concept_and_one_pair_train_too(tmp_path: Path) -> None:
    one = NeighbourBatches(PAIRS[:1], LABELS, tmp_path, batch_pairs=8, neighbours=3, refresh_batches=2, seed=0)
    assert run(one, Counting(circle()), range(3)) == [[0, 1]] * 3


def test_marked_homonyms_do_not_bring_each_other(tmp_path: Path) -> None:
    texts = (LABELS // 2 * 3 + np.arange(len(LABELS)) % 3).astype(np.int32)  # 2i and 2i + 1 have all texts in common
    plain, marked = (
        NeighbourBatches(
            PAIRS[::3],
            LABELS,
            tmp_path / name,
            batch_pairs=2,
            neighbours=1,
            refresh_batches=5,
            seed=0,
            text_labels=labels,
        )
        for name, labels in (("p", None), ("m", texts))
    )
    for batches, are_twins in ((plain, True), (marked, False)):
        for names in run(batches, Counting(circle()), range(batches.steps_per_epoch)):
            seed, companion = LABELS[names[:2]].tolist()
            assert (companion == seed ^ 1) == are_twins
            assert companion != seed


def test_no_more_is_searched_than_the_run_needs(tmp_path: Path) -> None:
    batches = make(tmp_path, refresh_batches=1000)
    batches.end_at(3)
    run(batches, Counting(circle()), range(3))
    assert np.load(tmp_path / "neighbours-0000000.npy").shape == (3 * 2, 1)


def test_time_of_comparing_is_estimated_without_doing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))  # all that is timed takes a second:
    monkeypatch.setattr("onoma.training.batches._TIMED_NAMES", 12)  # encoding a third of the 36 names,
    monkeypatch.setattr(searching, "_TIMED_CANDIDATES", 9)  # and comparing a quarter of them
    monkeypatch.setattr(searching, "_TIMED_QUERIES", 6)  # with six that ask
    batches = make(tmp_path, refresh_batches=10)
    encode = Counting(circle())
    once, each = batches.preparation_seconds(encode)
    assert once == pytest.approx(3 + 4 * 20 / 6)  # ten batches of two seeds
    assert each == once / 10
    assert encode.calls == [12]
    assert list(tmp_path.iterdir()) == []
    never_again = make(tmp_path, refresh_batches=10**12)  # what is asked for is counted, not listed
    assert never_again.preparation_seconds(encode)[0] == pytest.approx(3 + 4 * 72 / 6)  # either name of each pair
    assert PairBatches(PAIRS, batch_pairs=2, seed=0).preparation_seconds(encode) == (0, 0)


def test_it_is_told_how_far_comparing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_chunks = functools.partial(nearest_of_other_concepts, chunk_names=15)
    monkeypatch.setattr("onoma.training.batches.nearest_of_other_concepts", in_chunks)
    told: list[str] = []
    make(tmp_path, tell=told.append).prepare(0, Counting(circle()))
    assert told[0] == "comparing 36 names by the present weights, for the next batches"
    assert told[1:3] == ["15 of 36 names compared", "30 of 36 names compared"]
    assert [line[:12] for line in told[3:]] == ["compared in "]


def test_a_recipe_gets_the_batches_it_names(tmp_path: Path) -> None:
    terminology = make_terminology(tmp_path / "t", {f"X:{n}": [f"heart {n}", f"attack {n}"] for n in range(9)})
    pairs = build_pairs(terminology, small_tokenizer(), tmp_path / "p", max_tokens=16)
    vectors = unit(np.random.default_rng(0).standard_normal((18, 4)))

    def made(**changes: object) -> NeighbourBatches | PairBatches:
        config = TrainingConfig.model_validate({"steps": 6, "batch_pairs": 3, **changes})
        batches = make_batches(config, pairs, tmp_path)
        assert isinstance(batches, NeighbourBatches | PairBatches)
        return batches

    plain = made()
    assert isinstance(plain, PairBatches)
    expected = PairBatches(pairs.pairs, batch_pairs=3, seed=0)
    assert all(np.array_equal(plain.names_of_step(n), expected.names_of_step(n)) for n in range(7))

    encode = Counting(vectors)
    near = {"name": "neighbours", "neighbours": 2, "refresh_steps": 2, "warmup_steps": 1}
    batches = made(batches=near, accumulation=2)  # 12 batches: two of warm-up, then a comparison before every fourth
    assert isinstance(batches, NeighbourBatches)
    batches.end_at(12)
    run(batches, encode, range(0, 12))
    assert encode.calls == [18, 18, 18]
    assert sorted(file.name for file in tmp_path.glob("*.npy")) == [
        f"neighbours-{first:07}.npy" for first in (2, 6, 10)
    ]
    assert len(np.load(tmp_path / "neighbours-0000010.npy")) == 2  # the run ends there


@pytest.mark.parametrize("chunk_names", [8, 31])
def test_two_processes_share_the_work_and_find_the_same(monkeypatch: pytest.MonkeyPatch, chunk_names: int) -> None:
    """Threads play the processes: what `share` and `gather` do among real ones is tested where they live."""
    drawn = np.random.default_rng(0)
    vectors, labels = unit(drawn.standard_normal((31, 4))), drawn.integers(0, 8, 31)
    asking = drawn.integers(0, 31, (9, 2))

    def find(encode: Encode) -> RowArray:
        return nearest_of_other_concepts(
            asking, np.arange(31), labels, neighbours=3, encode=encode, chunk_names=chunk_names
        )

    alone = Counting(vectors)
    own, meeting, brought = threading.local(), threading.Barrier(2, timeout=20), [torch.empty(0)] * 2
    searched: Counter[int] = Counter()
    search = ExactIndex.search

    def counted(index: ExactIndex, queries: FloatArray, *, k: int) -> tuple[RowArray, FloatArray]:
        searched[getattr(own, "rank", -1)] += len(queries)
        return search(index, queries, k=k)

    monkeypatch.setattr(ExactIndex, "search", counted)
    expected = find(alone)

    def gather(rows: torch.Tensor, n: int) -> torch.Tensor:
        brought[own.rank] = rows
        meeting.wait()
        together = torch.empty((n, rows.shape[1]), dtype=rows.dtype)
        together[::2], together[1::2] = brought
        meeting.wait()
        return together

    def process(rank: int) -> tuple[RowArray, list[int]]:
        own.rank = rank
        encode = Counting(vectors)
        return find(encode), encode.calls

    monkeypatch.setattr(searching, "share", lambda n: slice(own.rank, n, 2))
    monkeypatch.setattr(searching, "gather", gather)
    with ThreadPoolExecutor(2) as pool:
        for found, encoded in pool.map(process, range(2)):
            assert np.array_equal(found, expected)
            assert encoded == alone.calls  # the same rows everywhere, as `Encode` asks
    assert max(searched[0], searched[1]) < 0.7 * searched[-1]


def test_a_recipe_whose_neighbours_do_not_fit_is_refused() -> None:
    near = {"name": "neighbours", "neighbours": 4}
    with pytest.raises(ConfigError, match="4 neighbours do not fit into a batch of 4 pairs"):
        resolve(TrainingConfig, {"steps": 1, "batch_pairs": 4, "batches": near})
    assert resolve(TrainingConfig, {"steps": 1, "batch_pairs": 5, "batches": near}).batch_pairs == 5
