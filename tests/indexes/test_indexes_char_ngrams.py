"""TF-IDF of character n-grams against scikit-learn, and a search against all scores."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from onoma.errors import DamagedArtifactError, InputError, ShapeError
from onoma.indexes import char_ngram_vectors, char_ngram_weights, char_ngrams, inverting
from onoma.indexes.char_ngram_weights import STAGES
from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.indexes.ngram_keys import prepared
from onoma.types import FloatArray, RowArray

NGRAMS = [(1, 1), (1, 2), (2, 4), (3, 3)]
_LETTERS = "aabbcdeé ÄSß\t  İ心臓\U0001d54f-3"
WORDS = ["heart", "attack", "attak", "lung", "cancer", "renal", "of", "the", "syndrome", "心臓発作", "type 2"]


def dense_scores(names: Sequence[str], texts: Sequence[str], ngrams: tuple[int, int]) -> Any:
    """The oracle: a dense matrix of all scores, float64, shape (texts, names)."""
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=ngrams)
    names_matrix = vectorizer.fit_transform(names)
    return (vectorizer.transform(texts) @ names_matrix.T).toarray()


def all_scores(index: CharNgramIndex, texts: Sequence[str]) -> FloatArray:
    return index.scores(texts, np.tile(np.arange(len(index)), (len(texts), 1)))


def best_by_sorting(scores: FloatArray, k: int) -> tuple[RowArray, FloatArray]:
    rows = np.lexsort((np.broadcast_to(np.arange(scores.shape[1]), scores.shape), -scores))[:, :k]
    return rows, np.take_along_axis(scores, rows, axis=1)


def random_names(n: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 5))) + " " + str(rng.integers(0, 40)) for _ in range(n)]


texts_of_few_letters = st.lists(st.text(st.sampled_from(_LETTERS), max_size=9), min_size=1, max_size=12)
any_texts = st.lists(st.text(max_size=9), min_size=1, max_size=8)


@settings(max_examples=60)
@given(names=texts_of_few_letters | any_texts, texts=texts_of_few_letters, ngrams=st.sampled_from(NGRAMS))
@example(names=["a", "ab", "ab"], texts=["ab", "ab", "", "zz"], ngrams=(1, 2))
@example(names=["a \t b", "A B"], texts=["a\tb", "a  b"], ngrams=(1, 2))
@example(names=["İ", "i"], texts=["İ", "I"], ngrams=(1, 2))
def test_scores_equal_those_of_scikit_learn(names: list[str], texts: list[str], ngrams: tuple[int, int]) -> None:
    assume(any(len(prepared(name)) >= ngrams[0] for name in names))
    scores = all_scores(CharNgramIndex.build(names, ngrams=ngrams), texts)
    np.testing.assert_allclose(scores, dense_scores(names, texts, ngrams), rtol=0, atol=1e-6)


def shares_known(names: Sequence[str], texts: Sequence[str], ngrams: tuple[int, int]) -> list[float]:
    """Of each text's vector, how long the part is that names have, where others are as rare as can be."""
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=ngrams).fit(names)
    idf = dict(zip(vectorizer.get_feature_names_out(), vectorizer.idf_, strict=True))
    shares = []
    for text in texts:
        counts = Counter(vectorizer.build_analyzer()(text))
        squares = {ngram: (n * idf.get(ngram, math.log(1 + len(names)) + 1)) ** 2 for ngram, n in counts.items()}
        known = sum(square for ngram, square in squares.items() if ngram in idf)
        shares.append(math.sqrt(known / (sum(squares.values()) or 1)))
    return shares


@settings(max_examples=60)
@given(names=texts_of_few_letters | any_texts, texts=texts_of_few_letters | any_texts, ngrams=st.sampled_from(NGRAMS))
@example(names=["腎症"], texts=["ＩｇＡ腎症", "xxx腎症", "腎症"], ngrams=(1, 2))
def test_unknown_ngrams_that_count_make_texts_longer(
    names: list[str], texts: list[str], ngrams: tuple[int, int]
) -> None:
    assume(any(len(prepared(name)) >= ngrams[0] for name in names))
    index = CharNgramIndex.build(names, ngrams=ngrams).counting_unknown()
    scores = all_scores(index, texts)
    expected = dense_scores(names, texts, ngrams) * np.array(shares_known(names, texts, ngrams))[:, None]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)
    rows, found = index.search(texts, k=3)
    best = best_by_sorting(scores, 3)
    np.testing.assert_array_equal(rows, best[0])
    np.testing.assert_array_equal(found, best[1])


@settings(max_examples=60)
@given(
    names=texts_of_few_letters,
    texts=texts_of_few_letters,
    ngrams=st.sampled_from(NGRAMS),
    k=st.integers(1, 15),
)
def test_a_search_finds_the_best_by_score_then_row(
    names: list[str], texts: list[str], ngrams: tuple[int, int], k: int
) -> None:
    index = CharNgramIndex.build(names, ngrams=ngrams)
    rows, scores = index.search(texts, k=k)
    expected_rows, expected_scores = best_by_sorting(all_scores(index, texts), k)
    assert rows.tolist() == expected_rows.tolist()
    assert scores.tobytes() == expected_scores.tobytes()
    assert rows.dtype == np.int64
    assert scores.dtype == np.float32


@settings(max_examples=60)
@given(
    names=texts_of_few_letters,
    texts=texts_of_few_letters,
    k=st.integers(1, 15),
    some=st.sets(st.integers(0, 20)),
)
def test_among_some_names_scores_are_as_before(names: list[str], texts: list[str], k: int, some: set[int]) -> None:
    index = CharNgramIndex.build(names)
    kept = np.array(sorted(row for row in some if row < len(names)), np.int64)
    rows, scores = index.among(kept).search(texts, k=k)
    expected_rows, expected_scores = best_by_sorting(all_scores(index, texts)[:, kept], k)
    assert rows.tolist() == kept[expected_rows].tolist()
    assert scores.tobytes() == expected_scores.tobytes()
    assert index.search(texts, k=len(names))[0].shape == (len(texts), len(names))


@pytest.mark.parametrize("ngrams", NGRAMS)
@pytest.mark.parametrize("k", [1, 7, 900])
def test_every_way_to_the_answer_gives_the_same(
    ngrams: tuple[int, int], k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are cut short or not, by list or by column, in one block or several: scores and order stay."""
    names = random_names(800)
    texts = ["hart attac", "renal syndrom 3", "心臓", "type 2 of the cancer", "xyz", "", names[7], "of"]
    found = {}
    for rows_per_listed, rows_per_rare, cost, block in (
        (5, 40, 8, 1 << 16),  # as it is
        (5, 40, 0, 300),  # always cut short
        (5, 40, 10**9, 300),  # never
        (1, 3, 0, 1 << 16),  # no columns
        (10**6, 10**6, 0, 300),  # columns only
        (3, 6, 1, 77),
    ):
        monkeypatch.setattr(inverting, "_ROWS_PER_LISTED", rows_per_listed)
        monkeypatch.setattr(char_ngram_weights, "_ROWS_PER_RARE", rows_per_rare)
        monkeypatch.setattr(char_ngrams, "_LOOK_UP_COST", cost)
        monkeypatch.setattr(char_ngrams, "_BLOCK_ROWS", block)
        monkeypatch.setattr(char_ngrams, "_ROWS_AT_ONCE", block)
        monkeypatch.setattr(char_ngrams, "_NUMBERS_AT_ONCE", 1)
        index = CharNgramIndex.build(names, ngrams=ngrams)
        rows, scores = index.search(texts, k=k)
        assert index.scores(texts, rows).tobytes() == scores.tobytes()
        expected_rows, expected_scores = best_by_sorting(all_scores(index, texts), k)
        assert rows.tolist() == expected_rows.tolist()
        assert scores.tobytes() == expected_scores.tobytes()
        found[rows_per_listed, rows_per_rare, cost, block] = scores
    np.testing.assert_allclose(list(found.values()), [dense_best(names, texts, ngrams, k)] * len(found), atol=1e-6)


def dense_best(names: Sequence[str], texts: Sequence[str], ngrams: tuple[int, int], k: int) -> Any:
    return -np.sort(-dense_scores(names, texts, ngrams))[:, :k]


def test_many_parts_and_equal_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    names = random_names(300)
    whole = CharNgramIndex.build(names)
    texts = ["heart 1", "lung", "heart 1", *names[:50]]
    rows, scores = whole.search(texts, k=9)
    monkeypatch.setattr(char_ngram_vectors, "_TEXTS_AT_ONCE", 7)
    parts = CharNgramIndex.build(names)
    parts_rows, parts_scores = parts.search(texts, k=9)
    assert np.array_equal(rows, parts_rows)
    assert scores.tobytes() == parts_scores.tobytes()
    assert rows[0].tolist() == rows[2].tolist()


def test_one_answer_whatever_the_batch() -> None:
    index, texts = CharNgramIndex.build(random_names(900), ngrams=(2, 4)), random_names(40, seed=1)
    rows, scores = index.search(texts, k=6)
    for size in (1, 7):
        answers = [index.search(texts[start : start + size], k=6) for start in range(0, len(texts), size)]
        assert np.array_equal(np.concatenate([rows for rows, _ in answers]), rows)
        assert np.concatenate([scores for _, scores in answers]).tobytes() == scores.tobytes()


@pytest.mark.parametrize("ngrams", NGRAMS)
def test_the_vector_of_a_text_is_scikit_learns(ngrams: tuple[int, int]) -> None:
    names = random_names(50)
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=ngrams)
    vectorizer.fit(names)
    words = vectorizer.get_feature_names_out()
    index = CharNgramIndex.build(names, ngrams=ngrams)
    for text in ("Heart  attaque", "xyz", "", "心臓"):
        expected = vectorizer.transform([text])
        expected_weights = {
            words[column]: weight for column, weight in zip(expected.indices, expected.data, strict=True)
        }
        assert index.weights(text) == pytest.approx(expected_weights, abs=1e-12)
    heaviest = list(index.weights("heart attaque").values())
    assert heaviest == sorted(heaviest, reverse=True)


def test_what_shares_nothing_scores_zero_by_row() -> None:
    index = CharNgramIndex.build(["abc", "", "xyz", "b"])
    rows, scores = index.search(["b", "", "Q", "?b"], k=9)
    assert rows.tolist() == [[3, 0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3], [3, 0, 1, 2]]
    assert (scores > 0).sum(axis=1).tolist() == [2, 0, 0, 2]
    assert scores[0, 0] == 1


def test_a_count_beyond_a_byte() -> None:
    names = ["a" * 300 + "b", "b" * 70_000, "ab"]
    scores = all_scores(CharNgramIndex.build(names), ["aab", "bb"])
    np.testing.assert_allclose(scores, dense_scores(names, ["aab", "bb"], (1, 2)), atol=1e-6)


def test_nothing_to_search_and_nothing_to_find() -> None:
    empty = CharNgramIndex.build([])
    rows, scores = empty.search(["a", "b"], k=5)
    assert len(empty) == 0
    assert rows.shape == scores.shape == (2, 0)
    rows, scores = CharNgramIndex.build(["a", "b"]).search([], k=5)
    assert rows.shape == scores.shape == (0, 2)
    assert CharNgramIndex.build(["", " "], ngrams=(3, 4)).search(["abc"], k=5)[1].tolist() == [[0, 0]]


@pytest.mark.parametrize("ngrams", [(1, 2), (2, 4)])
def test_saved_and_opened_it_gives_the_same_answers(ngrams: tuple[int, int], tmp_path: Path) -> None:
    names, texts = random_names(400), [*random_names(20, seed=2), "", "é"]
    built = CharNgramIndex.build(names, ngrams=ngrams)
    built.save(tmp_path / "index")
    opened = CharNgramIndex.open(tmp_path / "index")
    assert (opened.ngrams, len(opened)) == (ngrams, 400)
    (rows, scores), (expected_rows, expected_scores) = opened.search(texts, k=11), built.search(texts, k=11)
    assert rows.tolist() == expected_rows.tolist()
    assert scores.tobytes() == expected_scores.tobytes()
    assert opened.weights("heart") == built.weights("heart")


def test_an_empty_index_can_be_opened(tmp_path: Path) -> None:
    CharNgramIndex.build([]).save(tmp_path)
    assert CharNgramIndex.open(tmp_path).search(["a"], k=1)[0].shape == (1, 0)


@pytest.mark.parametrize("names", [[], ["", ""], ["a"], random_names(700)], ids=["none", "blank", "one", "many"])
@pytest.mark.parametrize("ngrams", [(1, 2), (2, 4)])
@pytest.mark.parametrize("rows_per_listed", [5, 10**6])
def test_written_in_parts_the_files_are_the_same(
    names: list[str], ngrams: tuple[int, int], rows_per_listed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inverting, "_ROWS_PER_LISTED", rows_per_listed)
    CharNgramIndex.build(names, ngrams=ngrams).save(tmp_path / "whole")
    monkeypatch.setattr(char_ngram_vectors, "_TEXTS_AT_ONCE", 90)
    monkeypatch.setattr(inverting, "_NUMBERS_AT_ONCE", 1000)
    monkeypatch.setattr(inverting, "_KEYS_AT_ONCE", 50)
    monkeypatch.setattr(inverting, "_SPILLED_BYTES", 100)
    written = CharNgramIndex.write(tmp_path / "parts", names, ngrams=ngrams)
    files = {file.name: file.read_bytes() for file in (tmp_path / "whole").iterdir()}
    assert {file.name: file.read_bytes() for file in (tmp_path / "parts").iterdir()} == files
    assert sorted(files) == FILES
    found, expected = (
        written.search(["heart 1", "x"], k=3),
        CharNgramIndex.build(names, ngrams=ngrams).search(["heart 1", "x"], k=3),
    )
    assert [array.tolist() for array in found] == [array.tolist() for array in expected]


@settings(max_examples=60)
@given(
    occurrences=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=60),
    cuts=st.lists(st.integers(0, 30), max_size=5),
    numbers=st.integers(1, 40),
)
def test_lists_equal_loops(occurrences: list[tuple[int, int]], cuts: list[int], numbers: int) -> None:
    """Whatever the parts of the rows and the parts of the terms."""
    edges = [0, *sorted(cuts), 31]
    parts = []
    for low, high in itertools.pairwise(edges):
        inside = [(key, row) for row, key in occurrences if low <= row < high]
        parts.append((np.array([key for key, _ in inside], np.uint64), np.array([row for _, row in inside], np.int64)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inverting, "_NUMBERS_AT_ONCE", numbers)
        keys, lists = inverting.invert(parts, 31)
    expected = Counter((key, row) for row, key in occurrences)
    assert keys.tolist() == sorted({key for key, _ in expected})
    found = {
        (key, int(row)): int(count)
        for term, key in enumerate(keys.tolist())
        for row, count in zip(*lists.containing(term), strict=True)
    }
    assert found == expected
    assert lists.frequencies().tolist() == [sum(1 for other, _ in expected if other == key) for key in keys.tolist()]


_KILLED = """
import json, os, sys
from onoma.indexes import char_ngram_vectors, char_ngrams, inverting
from onoma.indexes.char_ngram_weights import STAGES
from onoma.indexes.char_ngrams import CharNgramIndex
char_ngram_vectors._TEXTS_AT_ONCE, inverting._NUMBERS_AT_ONCE, inverting._SPILLED_BYTES = 60, 500, 100
left = int(sys.argv[2])
def dying(inner):
    def outer(*arguments):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
        return inner(*arguments)
    return outer
inverting.Inversion._take = dying(inverting.Inversion._take)
inverting.RowFile.append = dying(inverting.RowFile.append)
char_ngrams.np.save = dying(char_ngrams.np.save)
CharNgramIndex.write(sys.argv[1], json.load(sys.stdin))
"""


def test_killed_while_it_is_written_it_cannot_be_opened_and_leaves_nothing_but_its_files(tmp_path: Path) -> None:
    names = random_names(400)
    CharNgramIndex.build(names).save(tmp_path / "whole")
    expected = {file.name: file.read_bytes() for file in (tmp_path / "whole").iterdir()}
    place = tmp_path / "index"
    for steps in (0, 3, 8, 20, 41):
        run = subprocess.run(
            [sys.executable, "-c", _KILLED, str(place), str(steps)], input=json.dumps(names), text=True, check=False
        )
        assert run.returncode == -signal.SIGKILL
        assert {file.name for file in place.iterdir()} <= set(FILES)
        with pytest.raises(DamagedArtifactError):
            CharNgramIndex.open(place)
    CharNgramIndex.write(place, names)
    assert {file.name: file.read_bytes() for file in place.iterdir()} == expected


def saved_files(folder: Path) -> list[str]:
    CharNgramIndex.build(random_names(60), ngrams=(2, 4)).save(folder)
    return sorted(file.name for file in folder.iterdir())


FILES = [
    "char_ngrams.alphabet.npy",
    "char_ngrams.column_terms.npy",
    "char_ngrams.columns.npy",
    "char_ngrams.counts.npy",
    "char_ngrams.idf.npy",
    "char_ngrams.inverse_lengths.npy",
    "char_ngrams.json",
    "char_ngrams.keys.npy",
    "char_ngrams.offsets.npy",
    "char_ngrams.rest_lengths.npy",
    "char_ngrams.rows.npy",
    "char_ngrams.stages.npy",
]


def test_the_files(tmp_path: Path) -> None:
    assert saved_files(tmp_path) == FILES


@pytest.mark.parametrize(
    ("name", "how"),
    [
        (name, how)
        for name in FILES
        for how in ("missing", "empty", "cut", "other type", "another index")
        # Whose these two are, the manifest of the folder around them tells.
        if how != "another index" or name not in ("char_ngrams.json", "char_ngrams.alphabet.npy")
    ],
)
def test_damaged_files_are_refused(name: str, how: str, tmp_path: Path) -> None:
    saved_files(tmp_path)
    file = tmp_path / name
    if how == "missing":
        file.unlink()
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "cut":
        file.write_bytes(file.read_bytes()[:-9])
    elif how == "other type":
        file.write_bytes(b'{"ngrams": [4, 2]}')
        if name.endswith(".npy"):
            with file.open("wb") as handle:
                np.save(handle, np.zeros(5, np.float16))
    else:
        CharNgramIndex.build([*random_names(61), "ωxω"], ngrams=(1, 3)).save(tmp_path / "other")
        shutil.copy(tmp_path / "other" / name, file)
    with pytest.raises(DamagedArtifactError):
        CharNgramIndex.open(tmp_path)


@pytest.mark.parametrize("part", ["stages", "offsets"])
def test_terms_with_neither_a_list_nor_a_column_are_refused(part: str, tmp_path: Path) -> None:
    """What is looked up first and what last follows from the stages, and that a list has a last entry."""
    saved_files(tmp_path)
    file = tmp_path / f"char_ngrams.{part}.npy"
    changed, has_column = np.load(file), np.load(tmp_path / "char_ngrams.stages.npy") == STAGES - 1
    term = int(np.flatnonzero(~has_column)[7])
    if part == "stages":
        changed[term] = STAGES - 1
    else:
        changed[term + 1] = changed[term]
    np.save(file, changed)
    with pytest.raises(DamagedArtifactError, match="do not fit one another"):
        CharNgramIndex.open(tmp_path)


@pytest.mark.parametrize("has_column", [False, True])
def test_weights_that_no_frequency_makes_are_refused(has_column: bool, tmp_path: Path) -> None:
    saved_files(tmp_path)
    idf, stages = (np.load(tmp_path / f"char_ngrams.{part}.npy") for part in ("idf", "stages"))
    term = int(np.flatnonzero((stages == STAGES - 1) == has_column)[0])
    idf[term] = 0.9 if has_column else idf[term] + 0.01
    np.save(tmp_path / "char_ngrams.idf.npy", idf)
    with pytest.raises(DamagedArtifactError, match="do not fit one another"):
        CharNgramIndex.open(tmp_path)


@pytest.mark.parametrize("part", ["inverse_lengths", "rest_lengths"])
@pytest.mark.parametrize("length", [np.nan, -0.1, 7.0])
def test_lengths_that_no_name_has_are_refused_when_they_are_read(part: str, length: float, tmp_path: Path) -> None:
    names = random_names(300)
    CharNgramIndex.write(tmp_path, names, ngrams=(2, 4))
    lengths = np.load(tmp_path / f"char_ngrams.{part}.npy")
    lengths[..., 7] = length
    np.save(tmp_path / f"char_ngrams.{part}.npy", lengths)
    with pytest.raises(DamagedArtifactError, match=r"lengths .* are not those of its names.*Make its folder again"):
        CharNgramIndex.open(tmp_path).search(names[:5])


def test_scores_above_what_the_lengths_allow_are_refused(tmp_path: Path) -> None:
    names = random_names(300)
    CharNgramIndex.write(tmp_path, names, ngrams=(2, 4))
    file = tmp_path / "char_ngrams.rest_lengths.npy"
    np.save(file, np.load(file) * np.float32(0.3))
    with pytest.raises(DamagedArtifactError, match=r"lengths .* are not those of its names"):
        CharNgramIndex.open(tmp_path).search(names)


@pytest.mark.parametrize("bit", [30, 31])
def test_a_row_that_there_is_not_is_refused_when_it_is_read(bit: int, tmp_path: Path) -> None:
    """Of a large file opening reads a sample."""
    names = random_names(300)
    CharNgramIndex.write(tmp_path, names, ngrams=(2, 4))
    rows = np.load(tmp_path / "char_ngrams.rows.npy", mmap_mode="r+")
    rows.view(np.uint32)[...] ^= np.uint32(1 << bit)
    rows.flush()
    with pytest.raises(DamagedArtifactError, match=r"names rows that there are not.*Make its folder again"):
        CharNgramIndex.open(tmp_path).search(names[:5])


@pytest.mark.parametrize("ngrams", [(0, 1), (2, 1), (1,), (1, 2, 3), (1.0, 2), (True, 2), ("1", "2")])
def test_lengths_that_are_none_are_refused(ngrams: Any) -> None:
    with pytest.raises(InputError, match="field ngrams"):
        CharNgramIndex.build(["a"], ngrams=ngrams)


def test_too_many_characters_for_long_ngrams_are_refused() -> None:
    names = ["".join(map(chr, range(0x4E00, 0x4E00 + 300)))]
    with pytest.raises(InputError, match=r"300 distinct characters.*shorter"):
        CharNgramIndex.build(names, ngrams=(1, 8))
    assert len(CharNgramIndex.build(names, ngrams=(7, 7))) == 1
    with pytest.raises(InputError, match=r"too many for n-grams of 1000000000000.*shorter"):
        CharNgramIndex.build(["a"], ngrams=(1, 10**12))


def test_bad_requests_are_refused() -> None:
    index = CharNgramIndex.build(["a", "b"])
    with pytest.raises(InputError, match="field k"):
        index.search(["a"], k=0)
    with pytest.raises(InputError, match="put it in a list"):
        index.search("a", k=1)
    bad: Any = ["a", None]
    with pytest.raises(InputError, match=r"texts\[1\]"):
        index.search(bad, k=1)
    for rows in ([[2]], [[-1]], [[0.5]]):
        with pytest.raises(InputError, match="no such row"):
            index.scores(["a"], np.array(rows))
    for shape in ((2, 1), (1,), (0, 1)):
        with pytest.raises(ShapeError, match=r"\(1, k\)"):
            index.scores(["a"], np.zeros(shape, np.int64))


def test_texts_may_come_one_by_one() -> None:
    names = ["heart attack", "heart failure", "cold"]
    index = CharNgramIndex.build(iter(names))
    rows, scores = index.search(iter(["heart attak", "cold"]), k=2)
    assert rows[:, 0].tolist() == [0, 2]
    assert scores.shape == (2, 2)
    for wrong in ("heart", [None]):
        with pytest.raises(InputError):
            CharNgramIndex.build(wrong)  # type: ignore[arg-type]


def test_numbers_as_numpy_has_them_and_names_that_are_one_string(tmp_path: Path) -> None:
    index = CharNgramIndex.build([f"name {number}" for number in range(40)])
    k: Any = np.uint8(35)
    for found, expected in zip(index.search(["name"], k=k), index.search(["name"], k=35), strict=True):
        np.testing.assert_array_equal(found, expected)
    no_rows: Any = [[]]
    assert index.scores(["name"], no_rows).shape == (1, 0)
    with pytest.raises(InputError, match="put it in a list"):
        CharNgramIndex.write(tmp_path, "abc")
    with pytest.raises(InputError, match="field k: too few results"):
        index.search(["name"], k=2.5)  # type: ignore[arg-type]
