"""A small task from files to results, with an encoder whose similarities can be worked out by hand."""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from onoma.artifacts import verify_artifact
from onoma.benchmarks import TASKS, BenchmarkResult, candidates, compare_results, run_benchmark
from onoma.benchmarks.biosyn import DictionaryLine
from onoma.benchmarks.candidates import equal_lines, nearest_lines
from onoma.benchmarks.results import name_of
from onoma.encoders import EncoderFolder
from onoma.errors import ArtifactExistsError, ConfigError, InputError
from onoma.types import BoolArray, FloatArray


@dataclass
class LetterEncoder:
    """Counts of the letters a to z, as unit vectors; remembers what it was asked."""

    name: str = "letters"
    fingerprint: str = "f" * 64
    width: int = 27
    max_tokens: int = 512
    normalisation: str = "sapbert"
    precision: str = "fp32"
    sparse_weight: float | None = None
    trained_mentions: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)

    @property
    def folder(self) -> EncoderFolder:
        said = ("normalisation", "sparse_weight", "trained_mentions")
        return cast(EncoderFolder, SimpleNamespace(**{name: getattr(self, name) for name in said}))

    def has_whole(self, word: str) -> bool:
        return len(word) == 1

    def can_read(self, texts: Sequence[str]) -> BoolArray:
        return np.ones(len(texts), np.bool_)

    def encode(
        self,
        texts: Sequence[str],
        *,
        progress: Callable[[int, int], None] | None = None,
        unit_length: bool = True,
    ) -> FloatArray:
        self.asked += texts
        vectors = np.zeros((len(texts), self.width), np.float32)
        for row, text in enumerate(texts):
            for letter in text:
                vectors[row, ord(letter) - 96 if "a" <= letter <= "z" else 0] += 1
            if progress is not None:
                progress(row + 1, len(texts))
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


DICTIONARY = """\
D1||aab
D2||abb
D2|600||bbb
D3||ccd
D4||cdd
D5+D6||eef
D9||aba
D5||xyz
D6||xyzz
D7||xxyyzz
D7||xyyz
D8||zyx
D8||xzzyy
"""
QUERIES = """\
D1||aab
600||bbbbb
D3|D4||ccd|cdd
D2+D3||bbb+aab
D5||eef
D8||xyz
D4||ccd
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "test_dictionary.txt").write_text(DICTIONARY)
    (folder / "test_queries.txt").write_text(QUERIES)
    return folder


def run(data: Path, out: Path, *, encoder: LetterEncoder | None = None, seed: int = 0) -> BenchmarkResult:
    return run_benchmark("ncbi-disease", data, encoder=encoder or LetterEncoder(), out=out, seed=seed)


def test_figures_worked_out_by_hand(data: Path, tmp_path: Path) -> None:
    """1 right; 2 right by the second id of a line; 3 both parts right; 4 one part wrong at 1 (aab is D1), right at 5
    (abb, D2, is the third line nearest to aab); 5 wrong: a joined id is an id of its own; 6: xyz, zyx and xxyyzz are
    equally near, and D8 comes third by the order of lines; 7: the second nearest."""
    result = run(data, tmp_path / "out")
    assert result.accuracy[1].n_right == 3
    assert result.accuracy[5].n_right == 6
    assert result.exact_match[1].n_right == 2
    assert (result.n_queries, result.n_dictionary) == (7, 13)
    assert result.coverage == 1
    ranks = pl.read_parquet(tmp_path / "out" / "predictions.parquet").unique("query").sort("query")
    assert ranks["query_rank"].to_list() == [1, 1, 1, 3, None, 3, 2]
    assert ranks["exact_rank"].to_list() == [1, None, 1, None, None, None, None]


def test_a_task_that_lies_in_no_files(data: Path, tmp_path: Path) -> None:
    of_files = TASKS["ncbi-disease"]
    (queries, _), (dictionary, _) = of_files.queries(data, "test"), of_files.dictionary(data, "test")
    here = tmp_path / "nowhere"
    task = replace(of_files, queries=lambda *_: (queries, []), dictionary=lambda *_: (dictionary, []))
    result = run_benchmark(task, here, encoder=LetterEncoder(), out=tmp_path / "out")
    assert result.accuracy == run(data, tmp_path / "as-files").accuracy
    task = replace(task, dictionary=lambda *_: ([DictionaryLine("x", ("other",))], []))
    with pytest.raises(InputError, match=r"nowhere: .*codes"):
        run_benchmark(task, here, encoder=LetterEncoder(), out=tmp_path / "none")


def test_results_file(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "transformers", raising=False)
    result = run(data, tmp_path / "out", seed=5)
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert written["acc@1"] == 3 / 7
    assert written["acc@5"] == 6 / 7
    assert written["n_queries"] == 7
    assert written["n_dictionary"] == 13
    lines = [line.split("||") for line in DICTIONARY.splitlines()]
    content = "".join(json.dumps([name, *ids.split("|")]) for ids, name in lines)
    assert written["dictionary_sha256"] == hashlib.sha256(content.encode()).hexdigest()
    assert written["seed"] == 5
    assert written["each_mention_once"] == {"acc@1": pytest.approx(3 / 7), "acc@5": pytest.approx(6 / 7)}
    assert written["exact_match"]["acc@1"] == 2 / 7
    assert written["model"] == {
        "kind": "encoder",
        "name": "letters",
        "fingerprint": "f" * 64,
        "precision": "fp32",
    }
    assert written["versions"].keys() >= {"onoma", "python", "numpy"}
    assert "transformers" not in written["versions"]  # as it took no part, it need not even be installed
    assert written["data"]["test_queries.txt"]["sha256"] == hashlib.sha256(QUERIES.encode()).hexdigest()
    assert written["data"]["test_dictionary.txt"]["bytes"] == len(DICTIONARY)
    assert written["protocol"].startswith("biosyn")
    assert "earlier dictionary line" in written["tie_rule"]
    low, high = written["confidence_interval_95"]["acc@1"]
    assert 0 <= low < 3 / 7 < high <= 1
    assert verify_artifact(tmp_path / "out").kind == "benchmark-results"
    assert "letters" in str(result)
    assert "42.9" in str(result)
    assert re.search(r"^each mention once +42.9 +85.7$", str(result), re.MULTILINE)


def test_predictions_table(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "out")
    parts = pl.read_parquet(tmp_path / "out" / "predictions.parquet")
    assert parts.height == 9
    composite = parts.filter(pl.col("query") == 3)
    assert composite["part"].to_list() == ["bbb", "aab"]
    assert composite["part_rank"].to_list() == [1, 3]
    assert composite["gold"].to_list() == [["D2", "D3"]] * 2
    assert composite["candidate_ids"][0][0] == "D2|600"
    assert composite["candidate_names"][1].to_list()[:3] == ["aab", "aba", "abb"]


def test_two_runs_differ_in_time_alone(data: Path, tmp_path: Path) -> None:
    first, second = run(data, tmp_path / "one").as_json(), run(data, tmp_path / "two").as_json()
    first.pop("seconds"), second.pop("seconds")
    assert first == second
    assert (tmp_path / "one/predictions.parquet").read_bytes() == (tmp_path / "two/predictions.parquet").read_bytes()


def test_each_text_is_encoded_once(data: Path, tmp_path: Path) -> None:
    encoder = LetterEncoder()
    run(data, tmp_path / "out", encoder=encoder)
    names, parts = encoder.asked[:13], encoder.asked[13:]
    assert len(set(names)) == 13
    assert sorted(parts) == sorted({"aab", "bbbbb", "ccd", "cdd", "bbb", "eef", "xyz"})


def test_equal_scores_come_in_the_order_of_lines() -> None:
    names = ["ba", "ab", "c", "ab", "aabb"]
    lines = [DictionaryLine(name, (str(row),)) for row, name in enumerate(names)]
    found = nearest_lines(LetterEncoder(), lines, ["ab"], k=4)["ab"]
    assert [candidate.ids for candidate in found] == [("0",), ("1",), ("3",), ("4",)]
    equal = equal_lines(lines, ["aB", "x"], k=5, normalisation="sapbert")
    assert [candidate.ids for candidate in equal["aB"]] == [("1",), ("3",)]
    assert equal["x"] == []
    nothing_left = [DictionaryLine("?!", ("1",)), DictionaryLine("a", ("2",))]
    assert equal_lines(nothing_left, ["--", ""], k=5, normalisation="loose") == {"--": [], "": []}


def test_names_and_texts_are_prepared_as_in_the_encoders_training() -> None:
    encoder = LetterEncoder(normalisation="coder")
    lines = [DictionaryLine("aab", ("1",)), DictionaryLine("A-AB NOS (xyz)", ("2",)), DictionaryLine("zz", ("3",))]
    found = nearest_lines(encoder, lines, ["A-AB"], k=2)["A-AB"]
    assert encoder.asked == ["aab", "a ab", "zz", "a ab"]
    assert [(candidate.ids, candidate.name) for candidate in found] == [(("2",), "A-AB NOS (xyz)"), (("1",), "aab")]


def test_results_are_not_replaced_unasked(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "out")
    encoder = LetterEncoder()
    with pytest.raises(ArtifactExistsError):
        run(data, tmp_path / "out", encoder=encoder)
    assert encoder.asked == []
    run_benchmark("ncbi-disease", data, encoder=encoder, out=tmp_path / "out", overwrite=True)


def test_a_declaration_of_ones_own(data: Path, tmp_path: Path) -> None:
    task = replace(TASKS["ncbi-disease"], name="mine", cutoffs=(1, 2, 3))
    result = run_benchmark(task, data, encoder=LetterEncoder(), out=tmp_path / "out")
    assert [accuracy.n_right for accuracy in result.accuracy.values()] == [3, 4, 6]


def test_files_of_one_name_are_told_apart(data: Path, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "names.txt").write_text(folder)
    base = TASKS["ncbi-disease"]

    def dictionary(folder: Path, split: str) -> tuple[list[DictionaryLine], list[Path]]:
        lines, files = base.dictionary(folder, split)
        return lines, [*files, tmp_path / "a" / "names.txt", tmp_path / "b" / "names.txt"]

    result = run_benchmark(replace(base, dictionary=dictionary), data, encoder=LetterEncoder(), out=tmp_path / "out")
    assert list(result.data) == ["test_queries.txt", "test_dictionary.txt", "a/names.txt", "b/names.txt"]
    assert result.data["b/names.txt"]["sha256"] == hashlib.sha256(b"b").hexdigest()


def test_a_task_without_queries(data: Path, tmp_path: Path) -> None:
    task = replace(TASKS["ncbi-disease"], queries=lambda folder, split: ([], []))
    with pytest.raises(InputError, match="no queries to measure on"):
        run_benchmark(task, data, encoder=LetterEncoder(), out=tmp_path / "out")


def test_an_encoder_of_too_few_vectors(data: Path, tmp_path: Path) -> None:
    class Short(LetterEncoder):
        def encode(self, texts: Sequence[str], **options: Any) -> FloatArray:
            return super().encode(texts, **options)[1:]

    with pytest.raises(InputError, match=r"letters gives no vectors that can be; expected an array of the shape"):
        run(data, tmp_path / "out", encoder=Short())
    assert not (tmp_path / "out").exists()


def test_exactly_one_of_encoder_and_linker(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give one of encoder"):
        run_benchmark("ncbi-disease", data, out=tmp_path / "out")
    with pytest.raises(InputError, match="give one of encoder"):
        run_benchmark("ncbi-disease", data, out=tmp_path / "out", encoder=LetterEncoder(), linker=tmp_path)


def test_unknown_task(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'ncbi-disease'"):
        run_benchmark("ncbi-diseases", data, encoder=LetterEncoder(), out=tmp_path / "out")


def test_nothing_is_left_when_a_line_is_bad(data: Path, tmp_path: Path) -> None:
    (data / "test_queries.txt").write_text("D1||a\nD2\n")
    with pytest.raises(InputError, match="line 2"):
        run(data, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("measured", ["encoder", "exact"])
def test_queries_with_codes_of_another_kind_are_refused(measured: str, data: Path, tmp_path: Path) -> None:
    (data / "test_queries.txt").write_text("C0000001||aab\nC0000002||abb\n")
    encoder = LetterEncoder()
    asked = {"encoder": encoder} if measured == "encoder" else {"baseline": measured}
    with pytest.raises(InputError, match="expected codes such as C0000001, C0000002; found 600") as caught:
        run_benchmark("ncbi-disease", data, out=tmp_path / "out", **asked)
    assert caught.value.path == data / "test_dictionary.txt"
    assert (encoder.asked, (tmp_path / "out").exists()) == ([], False)


def test_a_weight_of_ngrams_that_is_left_out_is_written_down(data: Path, tmp_path: Path) -> None:
    plain = run(data, tmp_path / "plain")
    told = run(data, tmp_path / "told", encoder=LetterEncoder(sparse_weight=1.0204))
    assert told.protocol == f"{plain.protocol}; the encoder's weight of n-grams, 1.02, is left out"
    assert told.accuracy == plain.accuracy


def both_by_hand(
    encoder: LetterEncoder, dictionary: Sequence[DictionaryLine], text: str, weight: float
) -> list[tuple[float, int]]:
    """All lines, best first, by scikit-learn's TF-IDF and plain products."""
    names = [line.name.lower() for line in dictionary]
    tfidf = TfidfVectorizer(analyzer="char", ngram_range=(1, 2), dtype=np.float64)
    sparse = (tfidf.fit_transform(names) @ tfidf.transform([text.lower()]).T).toarray()[:, 0]
    dense = encoder.encode(names).astype(np.float64) @ encoder.encode([text.lower()])[0]
    return sorted((-round(score, 6), row) for row, score in enumerate((dense + weight * sparse).tolist()))


@given(
    names=st.lists(st.text("abc ", min_size=1, max_size=6).filter(str.strip), min_size=1, max_size=200),
    texts=st.lists(st.text("abcd", min_size=1, max_size=7), min_size=1, max_size=4),
    weight=st.floats(0, 3),
    k=st.integers(1, 5),
)
@settings(max_examples=60)
def test_both_scores_together_are_those_of_all_lines(names: list[str], texts: list[str], weight: float, k: int) -> None:
    encoder = LetterEncoder()
    dictionary = [DictionaryLine(" ".join(name.split()), (f"D{row}",)) for row, name in enumerate(names)]
    found = nearest_lines(encoder, dictionary, texts, k=k, sparse_weight=weight)
    assert list(found) == list(dict.fromkeys(texts))
    for text in texts:
        wanted = both_by_hand(encoder, dictionary, text, weight)[:k]
        assert [candidate.score for candidate in found[text]] == pytest.approx([-s for s, _ in wanted], abs=3e-6)
        assert len({candidate.ids for candidate in found[text]}) == len(wanted)
        all_scores = {f"D{row}": -s for s, row in both_by_hand(encoder, dictionary, text, weight)}
        assert all(all_scores[c.ids[0]] == pytest.approx(c.score, abs=3e-6) for c in found[text])


def test_a_name_that_neither_search_puts_first_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the best by both scores, and by neither alone."""
    monkeypatch.setattr(candidates, "_FIRST_DEPTH", 2)
    rows = random.Random(0)
    names = ["".join(rows.choices("abcde", k=rows.randint(2, 7))) for _ in range(400)]
    dictionary = [DictionaryLine(name, (f"D{row}",)) for row, name in enumerate(names)]
    encoder = LetterEncoder()
    texts = ["".join(rows.choices("abcde", k=5)) for _ in range(30)]
    n_beyond = 0
    for weight in (0.0, 0.3, 1.0):
        found = nearest_lines(encoder, dictionary, texts, k=2, sparse_weight=weight)
        for text in texts:
            wanted = both_by_hand(encoder, dictionary, text, weight)[:2]
            assert [candidate.score for candidate in found[text]] == pytest.approx([-s for s, _ in wanted], abs=3e-6)
            firsts = {row for w in (0.0, 1e6) for _, row in both_by_hand(encoder, dictionary, text, w)[:2]}
            n_beyond += not {row for _, row in wanted} <= firsts
    assert n_beyond > 5


def test_of_equal_sums_the_earlier_line_comes_first() -> None:
    dictionary = [DictionaryLine(name, (f"D{row}",)) for row, name in enumerate(["Aab", "ab", "aab", "ba", "c", "ab"])]
    found = nearest_lines(LetterEncoder(), dictionary, ["ab", "AAB", "zz"], k=3, sparse_weight=0.5)
    ids = {text: [candidate.ids[0] for candidate in of_text] for text, of_text in found.items()}
    assert (ids["ab"][:2], ids["AAB"][:2], ids["zz"]) == (["D1", "D5"], ["D0", "D2"], ["D0", "D1", "D2"])


def test_ngrams_are_added_where_they_are_asked_for(data: Path, tmp_path: Path) -> None:
    plain = run(data, tmp_path / "plain")
    encoder = LetterEncoder(sparse_weight=0.5)
    result = run_benchmark("ncbi-disease", data, encoder=encoder, sparse=True, out=tmp_path / "out")
    assert result.protocol == f"{plain.protocol}; here the cosine of character 1-2-grams, times 0.5, is added"
    assert "letters + n-grams" in str(result)
    assert result.model["sparse_weight"] == "0.5"
    rows = pl.read_parquet(tmp_path / "out" / "predictions.parquet")
    assert max(rows["scores"].explode()) == pytest.approx(1.5)
    assert compare_results(tmp_path / "plain", tmp_path / "out").second == "letters + n-grams (out)"
    assert name_of({**result.model, "precision": "int8"}) == "letters + int8 + n-grams"
    nothing = LetterEncoder(sparse_weight=-0.2)
    without = run_benchmark("ncbi-disease", data, encoder=nothing, sparse=True, out=tmp_path / "nothing")
    assert (without.accuracy, without.model) == (plain.accuracy, plain.model)
    assert without.protocol == f"{plain.protocol}; the weight of n-grams that training left, -0.2, counts as nothing"
    with pytest.raises(ConfigError, match="letters has no weight of n-grams"):
        run_benchmark("ncbi-disease", data, encoder=LetterEncoder(), sparse=True, out=tmp_path / "other")
    with pytest.raises(ConfigError, match="are for encoders"):
        run_benchmark("ncbi-disease", data, baseline="exact", sparse=True, out=tmp_path / "other")
    assert not (tmp_path / "other").exists()
