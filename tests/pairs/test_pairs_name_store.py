"""The name store against the tokeniser itself, in memory and on disk."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from onoma.errors import DamagedArtifactError, InputError
from onoma.pairs import NameStore
from onoma.pairs.name_store import own_tokenizer
from tiny import small_tokenizer

AWKWARD = ["heart attacks", "", " ", "\0", "心臓発作", "\u200b", "é", "e\u0301", "a" * 10_000, "x y " * 3000, "'\"#||"]


def tokens(store: NameStore) -> list[list[int]]:
    return [store.ids[a:b].tolist() for a, b in itertools.pairwise(store.offsets)]


def by_the_tokenizer(texts: list[str], max_tokens: int) -> list[list[int]]:
    """One name at a time, cut by hand: the first tokens, then [SEP]."""
    tokenizer = small_tokenizer()
    separator = tokenizer.encode("").ids[-1]
    whole = [tokenizer.encode(text).ids for text in texts]
    return [ids if len(ids) <= max_tokens else [*ids[: max_tokens - 1], separator] for ids in whole]


@pytest.mark.parametrize("on_disk", [False, True])
@given(st.lists(st.one_of(st.sampled_from(AWKWARD), st.text(max_size=30)), max_size=12), st.integers(3, 12))
@settings(max_examples=40)
def test_tokens_are_those_of_the_tokenizer(
    tmp_path_factory: pytest.TempPathFactory, on_disk: bool, texts: list[str], max_tokens: int
) -> None:
    folder = tmp_path_factory.mktemp("store") if on_disk else None
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    store = NameStore.from_texts(texts, small_tokenizer(), max_tokens=max_tokens, folder=folder)
    assert tokens(store) == by_the_tokenizer(texts, max_tokens)
    assert len(store) == len(texts)
    assert store.offsets.dtype == np.int64
    assert store.ids.dtype == np.int32


def test_saved_and_streamed_stores_are_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.pairs.name_store._CHUNK_NAMES", 7)
    texts = [f"heart attack {number}" for number in range(100)]
    done: list[int] = []
    streamed = NameStore.from_texts(iter(texts), small_tokenizer(), folder=tmp_path / "a", progress=done.append)
    assert done == [*range(7, 100, 7), 100]
    monkeypatch.setattr("onoma.pairs.name_store._CHUNK_NAMES", 1000)
    NameStore.from_texts(texts, small_tokenizer(), folder=tmp_path / "b")
    for name in ("offsets.npy", "ids.npy"):
        assert np.array_equal(np.load(tmp_path / "a" / name), np.load(tmp_path / "b" / name))
        assert (tmp_path / "a" / name).stat().st_size == (tmp_path / "b" / name).stat().st_size
    assert isinstance(streamed.ids, np.memmap), "held on disk, not in memory"
    assert tokens(NameStore.open(tmp_path / "b")) == tokens(streamed)


@given(st.lists(st.lists(st.sampled_from(["heart", "x1", "", "heart attacks"]), max_size=3), max_size=4))
@settings(max_examples=30)
def test_stores_are_put_one_after_the_other(tmp_path_factory: pytest.TempPathFactory, parts: list[list[str]]) -> None:
    stores = [NameStore.from_texts(part, small_tokenizer()) for part in parts]
    joined = NameStore.concatenate(stores, tmp_path_factory.mktemp("store"))
    assert tokens(joined) == [name for store in stores for name in tokens(store)]


def test_settings_of_the_given_tokenizer_neither_matter_nor_change(tmp_path: Path) -> None:
    tokenizer = small_tokenizer()
    tokenizer.enable_padding(length=64)
    tokenizer.enable_truncation(max_length=4)
    texts = ["heart attack attack attack", "x"]
    plain = NameStore.from_texts(texts, small_tokenizer())
    assert tokens(NameStore.from_texts(texts, tokenizer)) == tokens(plain)
    assert tokenizer.padding is not None
    assert tokenizer.truncation is not None
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert tokens(NameStore.from_texts(texts, tmp_path / "tokenizer.json")) == tokens(plain)


@pytest.mark.parametrize("max_tokens", [-1, 0, 2])
def test_a_length_without_room_for_a_name_is_refused(max_tokens: int) -> None:
    with pytest.raises(InputError, match="more than 2"):
        NameStore.from_texts(["heart"], small_tokenizer(), max_tokens=max_tokens)


def test_half_a_surrogate_pair_counts_as_the_replacement_character() -> None:
    halved, replaced = (NameStore.from_texts([f"heart {c}"], small_tokenizer()) for c in ("\ud800", "\ufffd"))
    assert tokens(halved) == tokens(replaced)


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(InputError, match="not text"):
        NameStore.from_texts(["heart", 7], small_tokenizer())  # type: ignore[list-item]


def test_a_name_without_any_token_is_refused() -> None:
    bare = Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    with pytest.raises(InputError, match="no token"):
        NameStore.from_texts(["a", ""], bare)


def test_a_missing_or_foreign_tokenizer_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such tokeniser"):
        own_tokenizer(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="not a tokeniser"):
        own_tokenizer(tmp_path / "tokenizer.json")


def test_damaged_stores_are_refused(tmp_path: Path) -> None:
    NameStore.from_texts(["heart", "attack"], small_tokenizer(), folder=tmp_path)
    whole = (tmp_path / "ids.npy").read_bytes()
    (tmp_path / "ids.npy").write_bytes(whole[:-8])
    with pytest.raises(DamagedArtifactError):
        NameStore.open(tmp_path)
    np.save(tmp_path / "ids.npy", np.zeros(3, np.int32))
    with pytest.raises(DamagedArtifactError, match="offsets"):
        NameStore.open(tmp_path)
    np.save(tmp_path / "ids.npy", np.zeros(6))
    with pytest.raises(DamagedArtifactError, match="float64"):
        NameStore.open(tmp_path)
    (tmp_path / "ids.npy").unlink()
    with pytest.raises(DamagedArtifactError, match="missing"):
        NameStore.open(tmp_path)


def test_a_store_without_names_can_be_saved_and_opened(tmp_path: Path) -> None:
    NameStore.from_texts([], small_tokenizer(), folder=tmp_path)
    store = NameStore.open(tmp_path)
    assert len(store) == 0
    assert store.offsets.tolist() == [0]
    assert len(store.ids) == 0
