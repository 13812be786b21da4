"""A linker that remembers: the same answers whatever it was asked before, each thing searched for once."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from linking_data import write_letter_linker

from onoma.encoders import Encoder
from onoma.errors import InputError
from onoma.indexes.char_ngram_vectors import NgramVector
from onoma.indexes.char_ngrams import CharNgramIndex
from onoma.linking import Linker, LinkerSettings
from onoma.linking.searching import DenseSearch
from onoma.types import FloatArray, RowArray

CONCEPTS = {
    "D1": ["Diabetes Mellitus", "sugar disease", "type-1 diabetes"],
    "D2": ["Cold", "cold temperature"],
    "D3": ["Chronic Obstructive Lung Disease", "COLD", "copd"],
    "D4": ["Common Cold", "head cold"],
    "D5": ["lung cancer", "cancer of the lung"],
    "D6": ["β thalassaemia", "thalassaemia"],
}
TYPES = {"D2": ["Phenomenon"], "D3": ["Disease"], "D4": ["Disease"]}
MENTIONS = ["cold", "the colds", "diabetis", "cancers", "γ thalassaemia", "cold", "?"]
STAGES = ("exact", "loose", "variants", "dense", "sparse")
SETTINGS = [
    LinkerSettings(stages=STAGES, weights={"dense": 0.25, "sparse": 0.75}, pool=4),
    LinkerSettings(stages=("dense", "sparse"), pool=1),
    LinkerSettings(stages=("exact", "dense")),
    LinkerSettings(stages=("sparse",)),
]


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Linker:
    folder = tmp_path_factory.mktemp("remembering")
    write_letter_linker(folder, CONCEPTS, semantic_types=TYPES)
    return Linker.open(folder / "linker")


def test_the_answers_are_the_same_whatever_was_asked_before(linker: Linker) -> None:
    remembering = linker.remembering()
    for settings, part, top_k in itertools.product(SETTINGS, (MENTIONS[:3], MENTIONS), (1, 5)):
        expected = linker.tuned(settings).link(part, top_k=top_k)
        assert remembering.tuned(settings).link(part, top_k=top_k) == expected
        assert remembering.tuned(settings).explain(part[0]) == linker.tuned(settings).explain(part[0])


def test_what_was_found_among_other_names_is_forgotten(linker: Linker) -> None:
    remembering = linker.remembering()
    cold = next(row for row, name in enumerate(linker.dictionary.texts) if name == "cold")
    choices: list[Callable[[Linker], Linker]] = [
        lambda one: one.only(semantic_types="Disease"),
        lambda one: one.only(semantic_types="Phenomenon"),
        lambda one: one.without(linker.dictionary.entry_name_rows[[cold]]),
        lambda one: one,
    ]
    for settings, chosen in itertools.product(SETTINGS, choices):
        assert chosen(remembering.tuned(settings)).link(MENTIONS) == chosen(linker.tuned(settings)).link(MENTIONS)


def test_each_mention_is_encoded_and_searched_for_once(linker: Linker, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[tuple[Any, ...]] = Counter()
    nearest, search, scores = DenseSearch.nearest, CharNgramIndex.nearest, CharNgramIndex.scores_of
    encode: Any = type(linker.encoder).encode

    def dense(self: DenseSearch, vectors: FloatArray, k: int) -> tuple[RowArray, FloatArray]:
        asked.update(("dense", vector.tobytes(), k) for vector in vectors)
        return nearest(self, vectors, k)

    def sparse(self: CharNgramIndex, vectors: list[NgramVector], *, k: int) -> Any:
        asked.update(("sparse", vector.terms.tobytes(), vector.unit.tobytes(), k) for vector in vectors)
        return search(self, vectors, k=k)

    def scored(self: CharNgramIndex, vector: NgramVector, rows: RowArray) -> Any:
        asked["scores", vector.terms.tobytes(), vector.unit.tobytes(), rows.tobytes()] += 1
        return scores(self, vector, rows)

    def encoded(self: Encoder, texts: list[str], **options: Any) -> Any:
        asked.update(("encode", text) for text in texts)
        return encode(self, texts, **options)

    monkeypatch.setattr(DenseSearch, "nearest", dense)
    monkeypatch.setattr(CharNgramIndex, "nearest", sparse)
    monkeypatch.setattr(CharNgramIndex, "scores_of", scored)
    monkeypatch.setattr(type(linker.encoder), "encode", encoded)
    remembering = linker.remembering()
    for settings in SETTINGS:
        remembering.tuned(settings).link(MENTIONS)
    assert {what for what, *_ in asked} == {"dense", "sparse", "scores", "encode"}
    assert set(asked.values()) == {1}
    asked.clear()
    linker.tuned(SETTINGS[0]).link(MENTIONS)
    linker.tuned(SETTINGS[0]).link(MENTIONS)
    assert set(asked.values()) == {2}


def test_it_is_the_same_linker(linker: Linker) -> None:
    remembering = linker.remembering()
    assert (remembering.fingerprint, remembering.settings) == (linker.fingerprint, linker.settings)
    np.testing.assert_array_equal(remembering.encoder.encode(["cold"]), linker.encoder.encode(["cold"]))


def test_its_encoder_is_an_encoder_like_others(linker: Linker) -> None:
    own, remembering = linker.encoder, linker.remembering().encoder
    assert remembering.encode([]).shape == (0, own.width)
    with pytest.raises(InputError, match="put it in a list"):
        remembering.encode("cold")
    for texts in (np.array(["cold", "flu"]), (text for text in ("cold", "flu"))):
        given: Any = texts
        np.testing.assert_array_equal(remembering.encode(given), own.encode(["cold", "flu"]))
    assert repr(remembering) == f"RememberingEncoder({own!r})"
    no_texts: Any = ["cold", None]
    with pytest.raises(InputError, match="is not text"):
        remembering.encode(no_texts)
    raw = own.encode(["cold"], unit_length=False)
    assert abs(float(np.linalg.norm(raw)) - 1) > 0.1
    for unit_length, expected in ((True, own.encode(["cold"])), (False, raw), (True, own.encode(["cold"]))):
        np.testing.assert_array_equal(remembering.encode(["cold"], unit_length=unit_length), expected)
    done: list[tuple[int, int]] = []
    remembering.encode(["a", "b", "a", "cold"], progress=lambda *call: done.append(call))
    assert done[-1] == (2, 2)
