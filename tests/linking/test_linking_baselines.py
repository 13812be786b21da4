"""Baselines: scores against plain loops and rapidfuzz, ranking against all scores, settings, refusals."""

from __future__ import annotations

import gzip
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linking_data import small_terminology
from rapidfuzz import distance, fuzz
from sklearn.feature_extraction.text import TfidfVectorizer

from onoma.errors import ConfigError, InputError, UnavailableError
from onoma.linking import ExactMatcher
from onoma.linking.baselines import BASELINES, NameSearch, get_baseline, open_baseline
from onoma.linking.baselines.fuzzy import FuzzyNames
from onoma.linking.baselines.lexical import Bm25Names, EqualNames, TfidfNames
from onoma.linking.baselines.name_search import SearchLinker, words_of
from onoma.linking.baselines.word_vectors import WordVectorNames, WordVectors
from onoma.linking.dictionary import NameDictionary
from onoma.linking.dictionary_building import build_dictionary
from onoma.terminology import normalise
from tiny import make_terminology

VECTORS = """\
diabetes 1 0 0
mellitus 0.5 0.5 0
cold 0 1 0
common 0 0.25 0.5
head 0 0 1
sugar 0.75 0 0.25
tummy -1 0 0.5
"""
MENTIONS = ["diabetes", "COLD", "the common cold", "sugar", "xyz", " ", "心臓", "diabetes mellitus of the head"]

names_of_words = st.lists(
    st.lists(st.sampled_from(["a", "b", "cd", "é", "b-a", "心臓"]), max_size=5).map(" ".join), min_size=1, max_size=9
)


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text(VECTORS)
    return path


@pytest.fixture
def dictionary(tmp_path: Path) -> NameDictionary:
    return build_dictionary(small_terminology(tmp_path / "terminology"))


def settings_of(name: str, vectors: Path) -> dict[str, object]:
    return {"vectors": vectors} if name == "word-vectors" else {}


def bm25_by_loops(names: Sequence[str], text: str, k1: float, b: float) -> list[float]:
    tokens = [words_of(name) for name in names]
    mean = sum(map(len, tokens)) / len(tokens)
    scores = []
    for of_name in tokens:
        score = 0.0
        for word in words_of(text):
            n_with = sum(word in other for other in tokens)
            count = of_name.count(word)
            if count:
                idf = math.log(1 + (len(names) - n_with + 0.5) / (n_with + 0.5))
                score += idf * count * (k1 + 1) / (count + k1 * (1 - b + b * len(of_name) / mean))
        scores.append(score)
    return scores


def check_best(search: NameSearch, texts: Sequence[str], expected: Sequence[Sequence[float]], k: int) -> None:
    """Scores as expected; order by score, then row; nothing that has nothing in common."""
    for (rows, scores), of_text in zip(search.best(texts, k=k), expected, strict=True):
        everything = search.best(texts, k=len(of_text))
        assert len(rows) == min(k, sum(score > 0 for score in of_text)), everything
        np.testing.assert_allclose(scores, np.array(of_text)[rows], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(scores, sorted(of_text, reverse=True)[: len(rows)], rtol=1e-6, atol=1e-6)
        assert list(zip(-scores, rows, strict=True)) == sorted(zip(-scores, rows, strict=True))


@settings(max_examples=60)
@given(
    names=names_of_words,
    texts=names_of_words,
    k1=st.sampled_from([0.0, 0.9, 1.2]),
    b=st.sampled_from([0.0, 0.75, 1.0]),
    k=st.integers(1, 12),
)
def test_bm25_equals_loops(names: list[str], texts: list[str], k1: float, b: float, k: int) -> None:
    check_best(Bm25Names(names, k1=k1, b=b), texts, [bm25_by_loops(names, text, k1, b) for text in texts], k)


def test_bm25_of_names_without_words_finds_nothing() -> None:
    ((rows, scores),) = Bm25Names(["-", "", "?"]).best(["a"], k=3)
    assert len(rows) == len(scores) == 0


@settings(max_examples=60)
@given(
    names=st.lists(st.text(max_size=8) | st.text(st.sampled_from("ab c"), max_size=8), min_size=1, max_size=8),
    texts=st.lists(st.text(max_size=8) | st.text(st.sampled_from("ab c"), max_size=8), min_size=1, max_size=4),
    scorer=st.sampled_from(["wratio", "ratio", "jaro", "jaro-winkler"]),
    k=st.integers(1, 9),
)
def test_fuzzy_equals_rapidfuzz(names: list[str], texts: list[str], scorer: Any, k: int) -> None:
    compare: Any
    highest: int
    compare, highest = {
        "wratio": (fuzz.WRatio, 100),
        "ratio": (fuzz.ratio, 100),
        "jaro": (distance.Jaro.similarity, 1),
        "jaro-winkler": (distance.JaroWinkler.similarity, 1),
    }[scorer]
    expected = [[compare(text, name) / highest for name in names] for text in texts]
    check_best(FuzzyNames(names, scorer=scorer), texts, expected, k)


def test_fuzzy_by_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{a}{b}" for a in "abcdef" for b in "abcxyz"]
    texts = ["ab", "xa", "fx", "q", "ab"]
    whole = FuzzyNames(names, scorer="ratio").best(texts, k=9)
    monkeypatch.setattr("onoma.linking.baselines.fuzzy._NAMES_AT_ONCE", 5)
    monkeypatch.setattr("onoma.linking.baselines.fuzzy._TEXTS_AT_ONCE", 2)
    for (rows, scores), (other_rows, other_scores) in zip(
        whole, FuzzyNames(names, scorer="ratio").best(texts, k=9), strict=True
    ):
        assert rows.tolist() == other_rows.tolist()
        assert scores.tobytes() == other_scores.tobytes()


def test_fuzzy_without_rapidfuzz_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(UnavailableError, match=r"onoma\[fuzzy\]"):
        FuzzyNames(["a"])


def test_unknown_scorer() -> None:
    scorer: Any = "soundex"
    with pytest.raises(ConfigError, match="jaro-winkler"):
        FuzzyNames(["a"], scorer=scorer)


def test_tfidf_equals_scikit_learn() -> None:
    names, texts = ["heart attack", "heart", "lung", "attack of the heart"], ["hart", "lungs", "qq"]
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(2, 3))
    matrix = vectorizer.fit_transform(names)
    check_best(TfidfNames(names, ngrams=(2, 3)), texts, (vectorizer.transform(texts) @ matrix.T).toarray().tolist(), 3)


def test_equal_names() -> None:
    found = EqualNames(["b", "a", "b", "b"]).best(["b", "c"], k=2)
    assert [(rows.tolist(), scores.tolist()) for rows, scores in found] == [([0, 2], [1.0, 1.0]), ([], [])]


def mean_by_loops(text: str) -> list[float] | None:
    table = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in VECTORS.splitlines()}
    known = [table[word] for word in words_of(text) if word in table]
    if not known:
        return None
    total = [sum(column) for column in zip(*known, strict=True)]
    return [x / math.hypot(*total) for x in total]


def test_word_vectors_equal_loops(vectors: Path) -> None:
    names = ["diabetes mellitus", "xyz", "cold, common", "head", "mellitus diabetes", "tummy", "sugar diabetes"]
    texts = ["diabetes", "zzz", "tummy cold", "HEAD head", "head head common"]
    words = WordVectors(vectors)
    search = WordVectorNames(names, words)
    assert words.width == 3
    for text, (rows, scores) in zip(texts, search.best(texts, k=9), strict=True):
        mean = mean_by_loops(text)
        if mean is None:
            assert len(rows) == len(scores) == 0
            continue
        expected = {
            row: sum(a * b for a, b in zip(mean, of_name, strict=True))
            for row, name in enumerate(names)
            if (of_name := mean_by_loops(name)) is not None
        }
        assert sorted(rows.tolist()) == sorted(expected)
        np.testing.assert_allclose(scores, [expected[row] for row in rows.tolist()], atol=1e-6)
        assert list(zip(-scores, rows, strict=True)) == sorted(zip(-scores, rows, strict=True))


@pytest.mark.parametrize(
    "content",
    [
        VECTORS.encode(),
        b"7 3\n" + VECTORS.encode(),
        VECTORS.replace("\n", " \n").encode(),  # as word2vec ends its lines
        VECTORS.replace("\n", "\r\n").encode(),
        VECTORS.encode() + b". . . 1 2 3\ncold 9 9 9\n",  # a word of several; a word that was there
        b"\xef\xbb\xbf" + VECTORS.encode(),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_forms_of_the_file(content: bytes, packed: bool, tmp_path: Path, vectors: Path) -> None:
    path = tmp_path / "other.vec"
    path.write_bytes(gzip.compress(content) if packed else content)
    texts = ["cold head", "diabetes", "nothing"]
    assert np.array_equal(WordVectors(path).means(texts), WordVectors(vectors).means(texts))


def test_words_are_read_as_they_are_asked_for(vectors: Path) -> None:
    words = WordVectors(vectors)
    before = words.means(["cold"])
    assert words.means(["cold", "head"])[0].tolist() == before[0].tolist()
    vectors.unlink()
    assert words.means(["head cold", ""]).shape == (2, 3)
    with pytest.raises(InputError, match="no such file"):
        words.means(["sugar"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"cold 1 2\nhead 1 2 3\n", "line 2: a vector of another width; expected 2 numbers; found 3"),
        (b"cold 1 2\nhead 1\n", "line 2: a vector of another width"),
        (b"cold 1 2\n\nhead 1 2\n", "line 2: a vector of another width"),
        (b"cold 1 2\nhead 1 x\n", "line 2: not a number; expected finite numbers; found x"),
        (b"cold 1 nan\n", "line 1: not a number"),
        (b"cold 1 1_0\n", "line 1: not a number"),
        (b"cold 1 1e39\n", "line 1: a number too large"),
        (b"3 2\ncold 1 2\nhead 1 2\n", "line 3: the file does not have as many words.*expected 3 words; found 2"),
        (b"cold\nhead 1\n", "line 1: no vector"),
        (b"9" * 5000 + b" 2\ncold 1 2\n", "line 2: a vector of another width"),
        (b"0 99999999999\n", "the file has no vector"),
        (b"x 1 2\n\xff 1 2 3\n", "line 2: not UTF-8"),
        (b"", "empty"),
    ],
)
def test_bad_files_of_vectors_are_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as error:
        WordVectors(path).means(["cold head"])
    assert "bad.txt" in str(error.value)


def test_vectors_of_other_words_are_refused(vectors: Path) -> None:
    with pytest.raises(InputError, match="no vector for any word"):
        WordVectorNames(["xyz"], WordVectors(vectors))


def ranked_by_loops(
    dictionary: NameDictionary, search: NameSearch, mention: str, top_k: int
) -> list[tuple[str, float]]:
    """Concepts by their best text, from the scores of all texts; ties by preferred name, then by place."""
    text = normalise(mention)
    best: dict[int, tuple[float, bool, int]] = {}
    if text:
        ((rows, scores),) = search.best([text], k=dictionary.n_texts)
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
            for entry in range(dictionary.entry_offsets[row], dictionary.entry_offsets[row + 1]):
                concept = int(dictionary.entry_concepts[entry])
                key = (-round(score, 6), not dictionary.entry_is_preferred[entry], concept)
                best[concept] = min(best.get(concept, key), key)
    return [(dictionary.concept_ids[concept], -score) for score, _, concept in sorted(best.values())[:top_k]]


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("top_k", [1, 2, 50])
def test_concepts_are_ranked(name: str, top_k: int, dictionary: NameDictionary, vectors: Path) -> None:
    linker = open_baseline(name, dictionary, settings=settings_of(name, vectors))
    search = get_baseline(name, settings_of(name, vectors)).search(dictionary.texts)
    answers = linker.link(MENTIONS, top_k=top_k)
    assert len(answers) == len(MENTIONS)
    for mention, links in zip(MENTIONS, answers, strict=True):
        found = [(link.concept_id, link.score) for link in links]
        expected = ranked_by_loops(dictionary, search, mention, top_k)
        assert [concept for concept, _ in found] == [concept for concept, _ in expected]
        np.testing.assert_allclose([score for _, score in found], [score for _, score in expected], atol=1e-6)
        assert [link.rank for link in links] == list(range(1, len(links) + 1))
    assert answers[5] == []


def test_a_search_goes_deeper_where_many_texts_are_equally_near(tmp_path: Path) -> None:
    """200 names of one concept are nearer than the other concept's."""
    names = {"D1": [f"cold {number:03}" for number in range(200)], "D2": ["colder"], "D3": ["xyz"]}
    dictionary = build_dictionary(make_terminology(tmp_path / "t", names))
    for name, chosen in (("tfidf", {}), ("fuzzy", {"scorer": "ratio"})):
        (links,) = open_baseline(name, dictionary, settings=chosen).link(["cold 00"], top_k=2)
        assert [link.concept_id for link in links] == ["D1", "D2"]


@pytest.mark.parametrize("name", BASELINES)
def test_one_answer_whatever_the_batch(name: str, dictionary: NameDictionary, vectors: Path) -> None:
    linker = open_baseline(name, dictionary, settings=settings_of(name, vectors))
    together = linker.link([*MENTIONS, *MENTIONS[::-1]], top_k=4)
    assert together == [linker.link([mention], top_k=4)[0] for mention in [*MENTIONS, *MENTIONS[::-1]]]
    assert linker.link([]) == []


def test_exact_is_the_exact_matcher(dictionary: NameDictionary) -> None:
    mentions = ["Cold", "diabetes  MELLITUS", "xyz", ""]
    matcher = ExactMatcher(dictionary)
    for top_k in (1, 2, 9):
        assert open_baseline("exact", dictionary).link(mentions, top_k=top_k) == matcher.link(mentions, top_k=top_k)


@pytest.mark.parametrize("top_k", [0, True, "3"])
def test_bad_requests(top_k: Any, dictionary: NameDictionary) -> None:
    linker = open_baseline("bm25", dictionary)
    with pytest.raises(InputError, match="top_k"):
        linker.link(["a"], top_k=top_k)
    with pytest.raises(InputError, match="several are meant"):
        linker.link("a")


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("bm52", {}, "Did you mean 'bm25'"),
        ("bm25", {"k": "1"}, "no setting 'k'. Did you mean 'k1'"),
        ("bm25", {"k1": "-1"}, "setting 'k1'.*found '-1'"),
        ("bm25", {"b": "1.5"}, "setting 'b'"),
        ("bm25", {"b": "nan"}, "setting 'b'"),
        ("tfidf", {"ngrams": "2"}, "setting 'ngrams': expected shortest and longest.*found '2'"),
        ("tfidf", {"ngrams": "3-2"}, "setting 'ngrams': expected the shortest"),
        ("fuzzy", {"scorer": "x"}, "setting 'scorer'.*jaro"),
        ("word-vectors", {}, "needs the setting 'vectors': file of word vectors"),
        ("exact", {"normalisation": "lose"}, "Did you mean 'loose'"),
    ],
)
def test_settings_that_cannot_be(name: str, given: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        get_baseline(name, given)


def test_settings_as_text_are_the_same() -> None:
    assert get_baseline("tfidf", {"ngrams": "2-4"}) == get_baseline("tfidf", {"ngrams": (2, 4)})
    assert get_baseline("bm25", {"k1": "0.9"}) == get_baseline("bm25", {"k1": 0.9})


def test_fingerprints_tell_settings_and_files_apart(vectors: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved" / "vectors.txt"
    moved.parent.mkdir()
    moved.write_text(VECTORS)
    first = get_baseline("word-vectors", {"vectors": vectors})
    assert first.fingerprint == get_baseline("word-vectors", {"vectors": moved}).fingerprint
    moved.write_text(VECTORS + "x 1 1 1\n")
    assert first.fingerprint != get_baseline("word-vectors", {"vectors": moved}).fingerprint
    fingerprints = {get_baseline("bm25", {"b": b}).fingerprint for b in (0.1, 0.2)} | {
        get_baseline("exact").fingerprint
    }
    assert len(fingerprints) == 3


@pytest.mark.parametrize("name", BASELINES)
def test_numbers_as_numpy_has_them(name: str, dictionary: NameDictionary, vectors: Path) -> None:
    linker = open_baseline(name, dictionary, settings=settings_of(name, vectors))
    top_k: Any = np.uint8(32)
    assert linker.link(MENTIONS, top_k=top_k) == linker.link(MENTIONS, top_k=32)


@pytest.mark.parametrize(
    ("rows", "scores"),
    [
        ([0, 1], [0.5, 0.6]),
        ([-1, 1], [0.6, 0.5]),
        ([0, 99], [0.6, 0.5]),
        ([1, 1], [0.6, 0.5]),
        ([0.0, 1.0], [0.6, 0.5]),
        ([0, 1], [math.nan, 0.5]),
        ([0, 1], [0.5]),
        (list(range(9)), [0.5] * 9),
    ],
)
def test_a_search_of_ones_own_is_checked(
    rows: list[float], scores: list[float], dictionary: NameDictionary, tmp_path: Path
) -> None:
    class Own:
        def best(self, texts: Sequence[str], *, k: int) -> list[Any]:
            return [(np.array(rows), np.array(scores)) for _ in texts]

    with pytest.raises(InputError, match="Own gives no ranking; expected at most 8 different rows"):
        SearchLinker(Own(), dictionary).link(["cold"], top_k=1)
