"""What pair sets and triple sets have in common: names as tokens, and what class each belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from tokenizers import Tokenizer

from onoma.artifacts import Manifest
from onoma.artifacts.arrays import load_array
from onoma.errors import DamagedArtifactError
from onoma.pairs.name_store import NameStore
from onoma.types import Progress, RowArray

_STORE = "names"
_HASHED_AT_ONCE = 1 << 20


def write_labelled_names(
    folder: Path,
    names: pl.DataFrame,
    tokenizer: Tokenizer,
    *,
    max_tokens: int,
    mark_equal: bool,
    progress: Progress | None,
) -> None:
    """Tokenise names, in parallel, and write tokens and classes.

    Args:
        folder: Where to.
        names: Columns ``label`` (the class) and ``text``.
        tokenizer: The base encoder's.
        max_tokens: Longer names are cut, special tokens included.
        mark_equal: Whether names with the same tokens, which have one vector, shall share a number.
        progress: See `Progress`.
    """
    np.save(folder / "labels.npy", names["label"].to_numpy().astype(np.int32))
    store = NameStore.from_texts(
        names["text"],
        tokenizer,
        max_tokens=max_tokens,
        folder=folder / _STORE,
        progress=(lambda done: progress(done, len(names), "tokenising names")) if progress else None,
    )
    if mark_equal:
        _mark_equal(folder, store)


def open_labelled_names(
    folder: Path, manifest: Manifest
) -> tuple[NameStore, npt.NDArray[np.int32], npt.NDArray[np.int32] | None]:
    """Tokens, classes and, if they were marked, equal names; memory-mapped.

    Raises:
        DamagedArtifactError: a file is missing, or they do not fit one another.
    """
    store = NameStore.open(folder / _STORE)
    labels = load_array(folder / "labels.npy", (np.int32,), 1)
    text_labels = None
    if "text_labels.npy" in manifest.files:
        text_labels = load_array(folder / "text_labels.npy", (np.int32,), 1)
    for array in (labels, *([] if text_labels is None else [text_labels])):
        if len(array) != len(store):
            raise DamagedArtifactError(f"{folder}: {len(array)} labels for {len(store)} names. Make it again.")
    return store, labels, text_labels


def merge_labelled_names(
    folder: Path, stores: Sequence[NameStore], labels: npt.NDArray[np.int32], *, mark_equal: bool
) -> None:
    """Write the names of several stores as one.

    Args:
        folder: Where to.
        stores: In this order.
        labels: Classes of all their names.
        mark_equal: Whether names with the same tokens shall share a number.
    """
    np.save(folder / "labels.npy", labels)
    merged = NameStore.concatenate(stores, folder / _STORE)
    if mark_equal:
        _mark_equal(folder, merged)


def counts_in_words(counts: Mapping[str, int]) -> str:
    """What a manifest counts, for a person.

    Example:
        >>> counts_in_words({"in_all": 1200, "to_itself": 3})
        '1,200 in all, 3 to itself'
    """
    return ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in counts.items())


def _mark_equal(folder: Path, store: NameStore) -> None:
    """Give names with the same tokens the row of the first of them."""
    _, first, place = np.unique(_hashes(store), return_index=True, return_inverse=True)
    np.save(folder / "text_labels.npy", first[place].astype(np.int32))


def _hashes(store: NameStore) -> npt.NDArray[np.uint64]:
    """64 bits of each name's tokens: a random number of each position times one of each token, summed."""
    lengths = np.diff(store.offsets)
    random = np.random.default_rng(0)
    by_position = random.integers(0, 1 << 64, int(lengths.max(initial=0)), np.uint64) | np.uint64(1)
    by_token = random.integers(0, 1 << 64, int(store.ids.max(initial=0)) + 1, np.uint64)
    hashes = np.zeros(len(store), np.uint64)
    for start in range(0, len(store), _HASHED_AT_ONCE):
        begins: RowArray = store.offsets[start : start + _HASHED_AT_ONCE + 1]
        ids = store.ids[begins[0] : begins[-1]]
        position = np.arange(begins[0], begins[-1]) - np.repeat(begins[:-1], np.diff(begins))
        hashes[start : start + len(begins) - 1] = np.add.reduceat(
            by_token[ids] * by_position[position], begins[:-1] - begins[0]
        )
    return hashes
