"""Queries and dictionaries that an encoder is measured on while it is trained."""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from onoma.encoders import locate_tokenizer, open_encoder
from onoma.encoders.loading import load_packed
from onoma.encoders.packed import PackedEncoder
from onoma.errors import InputError, TrainingError
from onoma.pairs import NameStore, hold_out_synonyms
from onoma.terminology import Terminology, normalise
from onoma.training import measuring
from onoma.training.development import DevelopmentSet, hidden_synonyms, read_development
from onoma.training.measuring import Measure, answer_ranks
from onoma.training.vectors import name_vectors
from onoma.types import RowArray
from tiny import Name, make_terminology

DICTIONARY = [
    ("Heart attack", "D1"),
    ("infarct", "D1"),
    ("fever", "D2|A7"),
    ("  ", "D9"),
    ("bone pain", "D3"),
    ("HEART ATTACK", "D4"),
    ("lung disease", "D5"),
    ("skin rash", "D6"),
    ("pyrexia", "D2|A7"),
    ("ear ache", "D7"),
]
QUERIES = [
    ("heart attacks", "D4"),
    ("Heart Attack", "D4"),
    ("fevers", "A7"),
    ("a rash", "D5|D6"),
    ("rash of skin", "D6"),
    ("something", "X1"),
    ("", "D3"),
]


def tables(
    queries: list[tuple[str, str]] = QUERIES, dictionary: list[tuple[str, str]] = DICTIONARY, name: str = "dev"
) -> DevelopmentSet:
    return DevelopmentSet(
        name,
        pl.DataFrame(queries, schema=["mention", "concept_id"], orient="row"),
        pl.DataFrame(dictionary, schema=["text", "concept_id"], orient="row"),
    )


@pytest.fixture
def model(base: Path) -> PackedEncoder:
    return load_packed(base, pooling="mean", max_tokens=16)


def measure_of(base: Path, data: DevelopmentSet) -> Measure:
    return Measure(data, locate_tokenizer(base), normalisation="sapbert", max_tokens=16)


def ranks_by_loops(
    vectors: np.ndarray, names: RowArray, concepts: RowArray, queries: RowArray, answers: RowArray
) -> list[int]:
    ranks = []
    for number, query in enumerate(queries):
        best: dict[int, float] = {}
        for name, concept in zip(names.tolist(), concepts.tolist(), strict=True):
            score = float(vectors[name] @ vectors[query])
            best[concept] = max(score, best.get(concept, -np.inf))
        order = sorted(best, key=lambda concept: (-best[concept], concept))
        right = {concept for asked, concept in answers.tolist() if asked == number}
        places = [place for place, concept in enumerate(order, 1) if concept in right]
        ranks.append(min(places, default=0))
    return ranks


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("at_once", [1, 100, 1 << 20])
def test_ranks_agree_with_plain_loops(seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_SCORES_AT_ONCE", at_once)
    random = np.random.default_rng(seed)
    # Small whole numbers: products are exact, and ties are frequent.
    vectors = random.integers(-1, 2, (30, 4)).astype(np.float32)
    concepts = np.unique(random.integers(0, 12, 40), return_inverse=True)[1].reshape(-1)
    names, queries = random.integers(0, 30, 40), random.integers(0, 30, 15)
    pairs = {(int(random.integers(0, 15)), int(random.integers(0, concepts.max() + 1))) for _ in range(25)}
    answers = np.array(sorted(pairs), np.int64)
    found = answer_ranks(torch.from_numpy(vectors), names=names, concepts=concepts, queries=queries, answers=answers)
    assert found.tolist() == ranks_by_loops(vectors, names, concepts, queries, answers)
    assert 0 in found


def test_scores_are_those_of_the_encoder_opened_for_use(base: Path, model: PackedEncoder) -> None:
    """By loops over the vectors that the opened encoder gives, for texts that the loops normalise themselves."""
    measure = measure_of(base, tables())
    scores = measure(lambda store, rows: name_vectors(model, store, rows, precision=torch.float32))
    names = [(normalise(text), concept) for text, concept in DICTIONARY if normalise(text)]
    encoder = open_encoder(base, pooling="mean", max_tokens=16)
    vectors = encoder.encode([text for text, _ in names] + [normalise(text) for text, _ in QUERIES])
    concepts = list(dict.fromkeys(concept for _, concept in names))
    answers = np.array(
        [
            (query, place)
            for query, (text, right) in enumerate(QUERIES)
            for place, concept in enumerate(concepts)
            if normalise(text) and set(right.split("|")) & set(concept.split("|"))
        ]
    )
    ranks = ranks_by_loops(
        vectors,
        np.arange(len(names)),
        np.array([concepts.index(concept) for _, concept in names]),
        np.arange(len(QUERIES)) + len(names),
        answers,
    )
    assert scores.n_queries == len(QUERIES)
    assert scores.at_1 == sum(rank == 1 for rank in ranks) / len(ranks)
    assert scores.at_5 == sum(1 <= rank <= 5 for rank in ranks) / len(ranks)
    assert scores.mrr == pytest.approx(sum(1 / rank for rank in ranks if rank) / len(ranks))
    assert ranks[1] == 2  # "heart attack" is a name of D1 and of D4, and D1 stands first
    assert ranks[5] == ranks[6] == 0


def test_measuring_leaves_mode_and_random_state(base: Path, model: PackedEncoder) -> None:
    measure = measure_of(base, tables())
    model.train()
    before = torch.get_rng_state()
    scores = [measure(lambda store, rows: name_vectors(model, store, rows, precision=torch.float32)) for _ in "ab"]
    assert scores[0] == scores[1]
    assert model.training
    assert torch.equal(before, torch.get_rng_state())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_unit_vectors_come_in_the_order_asked_for(base: Path, model: PackedEncoder) -> None:
    texts = ["fever", "a b c d e", "heart attack", "x", "bone pain of the bone"]
    store = NameStore.from_texts(texts, locate_tokenizer(base), max_tokens=16)
    rows = np.array([4, 0, 0, 3, 1])
    found = name_vectors(model, store, rows, precision=torch.float32).numpy()
    expected = open_encoder(base, pooling="mean", max_tokens=16).encode([texts[row] for row in rows])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert name_vectors(model, store, rows[:0], precision=torch.float32).shape == (0, model.width)


def test_vectors_that_are_not_numbers_are_no_success(base: Path) -> None:
    measure = measure_of(base, tables())
    diverged = load_packed(base, pooling="mean", max_tokens=16)
    with torch.no_grad():
        next(diverged.parameters()).fill_(1e30)
    with pytest.raises(TrainingError, match=r"not numbers.*with a lower"):
        measure(lambda store, rows: name_vectors(diverged, store, rows, precision=torch.float32))


def test_the_fingerprint_tells_what_is_measured(base: Path) -> None:
    same = measure_of(base, tables(name="other name")).fingerprint
    assert same == measure_of(base, tables()).fingerprint
    others = [
        tables(queries=[("heart attacks", "D1"), *QUERIES[1:]]),
        tables(queries=[*QUERIES[:-1], ("more", "D3")]),
        tables(dictionary=DICTIONARY[:-1]),
        tables(dictionary=[*DICTIONARY[:-1], ("ear ache", "D6")]),
    ]
    fingerprints = {measure_of(base, other).fingerprint for other in others} | {same}
    assert len(fingerprints) == len(others) + 1


def test_what_nothing_is_left_of_counts_as_wrong_and_is_told(base: Path, model: PackedEncoder) -> None:
    told: list[str] = []
    worded = tables(queries=QUERIES[:-1])
    blank = tables(queries=[*QUERIES[:-1], *(("***", concept) for _, concept in DICTIONARY)])
    settings: dict[str, Any] = {"normalisation": "loose", "max_tokens": 16}
    with_blank = Measure(blank, locate_tokenizer(base), tell=told.append, **settings)
    without = Measure(worded, locate_tokenizer(base), tell=told.append, **settings)
    found, expected = (
        measure(partial(name_vectors, model, precision=torch.float32)) for measure in (with_blank, without)
    )
    total = len(worded.queries) + len(DICTIONARY)
    share = len(worded.queries) / total
    assert (found.at_1, found.at_5, found.mrr) == pytest.approx(
        (share * expected.at_1, share * expected.at_5, share * expected.mrr)
    )
    assert expected.at_5 > 0
    assert told == [f"dev: {len(DICTIONARY)} of {total} queries are blank after normalisation and count as wrong"]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (tables(queries=[]), "mention"),
        (tables(dictionary=[("", "D1")]), "dictionary"),
        (DevelopmentSet("dev", pl.DataFrame({"mention": ["a"]}), tables().dictionary), "concept_id"),
        (DevelopmentSet("dev", tables().queries, pl.DataFrame({"text": [1], "concept_id": ["D1"]})), "text"),
        (DevelopmentSet("dev", tables().queries, pl.DataFrame({"text": ["a", None], "concept_id": "D1"})), "text"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(base: Path, data: DevelopmentSet, field: str) -> None:
    with pytest.raises(InputError, match="dev") as caught:
        measure_of(base, data)
    assert caught.value.field == field


@pytest.fixture(scope="module")
def terminology(tmp_path_factory: pytest.TempPathFactory) -> Terminology:
    concepts: dict[str, list[str | Name]] = {
        f"D{number}": [
            f"name {number}",
            f"other {number}",
            Name(f"autre {number}", language="fr"),
            Name(f"junk {number}", is_suppressed=True),
            f"last {number}",
        ]
        for number in range(6)
    }
    concepts["D9"] = ["gone"]
    return make_terminology(tmp_path_factory.mktemp("t") / "t", concepts, obsolete=["D9"])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".txt.gz"])
def test_files_of_queries(terminology: Terminology, tmp_path: Path, suffix: str) -> None:
    lines = [("Name 1s", "D1"), ("some, names", "D2|D3"), ("stranger", "X1")]
    if suffix.startswith(".txt"):
        text = "".join(f"{concept}||{mention}\n" for mention, concept in lines)
    else:
        divider = "," if suffix == ".csv" else "\t"
        text = divider.join(["mention", "concept_id"]) + "\n"
        quote = '"' if suffix == ".csv" else ""
        text += "".join(f"{quote}{mention}{quote}{divider}{concept}\n" for mention, concept in lines)
    file = tmp_path / f"dev{suffix}"
    file.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    told: list[str] = []
    found = read_development(file, terminology, languages=["en"], hidden_names=[1], tell=told.append)
    assert found.name == file.name
    assert found.queries.select("mention", "concept_id").rows() == lines
    assert found.dictionary.filter(concept_id="D0")["text"].to_list() == ["name 0", "last 0"]
    assert found.dictionary.filter(concept_id="D1")["text"].to_list() == ["name 1", "other 1", "last 1"]
    assert "gone" not in found.dictionary["text"]
    assert told == [
        f"{file.name}: 1 of 3 queries mean a concept that the dictionary does not have (X1); they count as wrong"
    ]


def test_composite_mentions_are_told_of(terminology: Terminology, tmp_path: Path) -> None:
    (tmp_path / "dev.txt").write_text("D1|D2||breast|ovarian cancer\nD1||name\n")
    told: list[str] = []
    found = read_development(tmp_path / "dev.txt", terminology, tell=told.append)
    assert len(found.queries) == 1
    assert told == ["dev.txt: 1 composite mentions left out"]
    assert read_development(tmp_path / "dev.txt", terminology).queries.equals(found.queries)  # nobody need be told


@pytest.mark.parametrize(
    ("name", "content", "line", "field"),
    [
        ("dev.csv", "mention,concept_id\nfever,D1\n,D2\n", 3, "mention"),
        ("dev.csv", "mention,concept_id\nfever,\n", 2, "concept_id"),
        ("dev.csv", "text,concept_id\nfever,D1\n", 1, "mention"),
        ("dev.tsv", "mention\tconcept_id\nfever\n", 2, None),
        ("dev.txt", "D1||fever\nD1 fever\n", 2, None),
        ("dev.txt", "|||fever\n", 1, "id"),
        ("dev.txt", "", None, None),
        ("dev.txt", "X1||fever\n", None, "concept_id"),
    ],
)
def test_bad_files_are_refused_with_their_place(
    terminology: Terminology, tmp_path: Path, name: str, content: str, line: int | None, field: str | None
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as caught:
        read_development(tmp_path / name, terminology)
    assert (Path(str(caught.value.path)).name, caught.value.line) == (name, line)
    if field is not None:
        assert caught.value.field == field


def test_hidden_synonyms_are_asked_for_among_all_other_names(terminology: Terminology) -> None:
    first = hold_out_synonyms(terminology, n_names=3, languages=["en"])
    second = hold_out_synonyms(terminology, n_names=2, languages=["en"], hidden_names=first.name_rows)
    assert not set(first.texts) & set(second.texts)
    assert not set(first.name_rows.tolist()) & set(second.name_rows.tolist())
    found = hidden_synonyms(terminology, second, languages=["en"], hidden_names=first.name_rows)
    assert found.queries.rows() == list(zip(second.texts, second.concept_ids, strict=True))
    everything = {f"{word} {number}" for word in ("name", "other", "last") for number in range(6)}
    assert set(found.dictionary["text"]) == everything - set(first.texts) - set(second.texts)


def test_hiding_a_synonym_hides_its_suppressed_twin(tmp_path: Path) -> None:
    """A recipe with include_suppressed would otherwise train on the answer."""
    names: list[str | Name] = ["a", "b", "c", Name("B", is_suppressed=True), Name("C", is_suppressed=True)]
    terminology = make_terminology(tmp_path / "t", {"D1": names})
    held_out = hold_out_synonyms(terminology, n_names=1)
    assert held_out.name_rows.tolist() == {"b": [1, 3], "c": [2, 4]}[held_out.texts[0]]
