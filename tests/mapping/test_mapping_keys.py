"""Keys, tasks and files of keyed texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.errors import DamagedArtifactError
from onoma.mapping.keyed_texts import KeyedTexts
from onoma.mapping.keys import KEY_TYPE, find_keys, keys_of, rows_of_task, task_bounds

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(mentions=st.lists(TEXTS, max_size=20), contexts=st.lists(TEXTS, min_size=20, max_size=20))
def test_equal_texts_and_only_these_have_equal_keys(mentions: list[str], contexts: list[str]) -> None:
    alone = pl.DataFrame({"mention": mentions}, schema={"mention": pl.String})
    both = alone.with_columns(context=pl.Series(contexts[: len(mentions)], dtype=pl.String))
    for texts in (alone, both):
        keys = keys_of(texts)
        assert keys.dtype == KEY_TYPE
        assert len(set(keys.tolist())) == len(set(texts.rows()))
        assert [keys[0] == key for key in keys[:1]] == [True] * len(keys[:1])


def test_keys_are_the_same_in_every_version() -> None:
    keys = keys_of(pl.DataFrame({"mention": ["cold", ""], "context": ["a", "cold"]}))
    assert [bytes(key).hex() for key in keys] == [
        "614562b1a05fe7a8ad962f03570735a2",
        "26c1b747721b95b1d4cd446268e6c1b3",
    ]


@given(
    raw=st.lists(st.binary(min_size=16, max_size=16) | st.sampled_from([b"\0" * 16, b"\xff" * 16, b"a" + b"\0" * 15])),
    n_tasks=st.integers(1, 40),
)
def test_each_key_belongs_to_one_task(raw: list[bytes], n_tasks: int) -> None:
    keys = np.unique(np.array(raw, KEY_TYPE))
    bounds = task_bounds(n_tasks)
    assert len(bounds) == n_tasks
    places = [range(len(keys))[rows_of_task(keys, bounds, task)] for task in range(n_tasks)]
    assert [place for of_task in places for place in of_task] == list(range(len(keys)))
    for task, of_task in enumerate(places):
        for place in of_task:
            number = int.from_bytes(bytes(keys[place]).ljust(16, b"\0"), "big")
            assert number * n_tasks >> 128 == task


@given(there=st.sets(st.binary(min_size=16, max_size=16)), wanted=st.sets(st.binary(min_size=16, max_size=16)))
def test_keys_are_found(there: set[bytes], wanted: set[bytes]) -> None:
    keys, asked = np.array(sorted(there), KEY_TYPE), np.array(sorted(wanted), KEY_TYPE)
    positions, is_there = find_keys(keys, asked)
    assert is_there.tolist() == [key in there for key in sorted(wanted)]
    assert (keys[positions[is_there]] == asked[is_there]).all()
    assert (np.insert(keys, positions[~is_there], asked[~is_there]) == np.array(sorted(there | wanted), KEY_TYPE)).all()


def test_keyed_texts_are_read_as_they_were_written(tmp_path: Path) -> None:
    keys = np.sort(keys_of(pl.DataFrame({"mention": list("abc")})))
    name = tmp_path / "000001"
    assert not KeyedTexts.exists(name)
    KeyedTexts.write(name, keys, {"one": ["x", "", "Ménière"], "two": ["1", "2", "3"]})
    assert KeyedTexts.exists(name)
    file = KeyedTexts(name)
    assert file.keys.tolist() == keys.tolist()
    assert list(file.column("one")) == ["x", "", "Ménière"]
    assert file.column("two")[1:] == ["2", "3"]
    KeyedTexts.write(name, keys[:0], {"one": []})
    assert list(KeyedTexts(name).column("one")) == []
    with pytest.raises(DamagedArtifactError, match=r"000002\.keys\.npy is missing"):
        KeyedTexts(tmp_path / "000002")
