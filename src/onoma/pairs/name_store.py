"""Names as token ids, made once: ragged arrays in memory-mapped files.

A tokeniser does some ten thousand names a second; training asks for a name again and again. So every name is
tokenised when the store is made, and a batch is a gather of a few thousand integers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from onoma.artifacts.arrays import load_array
from onoma.encoders.tokens import tokenise
from onoma.errors import DamagedArtifactError, InputError, ShapeError, checked_path
from onoma.types import RowArray

TokenArray = npt.NDArray[np.int32]
"""Token ids. 16 bits would do for most vocabularies, but not for XLM-R's, and save 180 MB on all of UMLS."""


_CHUNK_NAMES = 8192
"""Names tokenised at a time; bounds the memory that the tokeniser's own objects take."""


class NameStore:
    """Token ids of many names, end to end.

    Attributes:
        offsets: Name ``i`` has the tokens ``ids[offsets[i]:offsets[i + 1]]``, int64, shape (n + 1,).
        ids: Token ids of all names, special tokens included, int32, shape (offsets[n],).
        types: Token types of all, int8, shape (offsets[n],), where the entries are pairs of texts; None for names.

    Raises:
        ShapeError: the offsets do not lead from 0 up to the number of ids.

    Example:
        >>> store = NameStore(np.array([0, 3, 5]), np.array([101, 7, 102, 101, 102], np.int32))
        >>> len(store)
        2
    """

    def __init__(self, offsets: RowArray, ids: TokenArray, types: npt.NDArray[np.int8] | None = None) -> None:
        if offsets.ndim != 1 or ids.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(ids):
            raise ShapeError(f"offsets must lead from 0 to the number of token ids, {ids.shape}.")
        self.offsets = offsets
        self.ids = ids
        self.types = types

    def __repr__(self) -> str:
        return f"NameStore({len(self):,} names, {len(self.ids):,} tokens)"

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        tokenizer: Tokenizer | str | Path,
        *,
        max_tokens: int = 25,
        folder: str | Path | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> NameStore:
        """Tokenise names, in parallel, a chunk at a time.

        Args:
            texts: The names, as the encoder shall see them. Read once; may be a generator.
            tokenizer: A tokeniser or its ``tokenizer.json``. Its own padding and truncation do not matter and
                stay as they are.
            max_tokens: Longer names are cut to this length, special tokens included.
            folder: Write the arrays there as they come and map them, instead of holding them in memory.
            progress: Called with the number of names done.

        Raises:
            InputError: the tokeniser is unreadable, ``max_tokens`` leaves no room for a name, or a name is not
                text or gives no token at all.
        """
        chunks = _in_chunks(texts, tokenizer, max_tokens, progress)
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            lengths = _stream(chunks, Path(folder) / "ids.npy")
            np.save(Path(folder) / "offsets.npy", _offsets(lengths))
            return cls.open(folder)
        parts = list(chunks)
        return cls(
            _offsets([lengths for lengths, _ in parts]),
            np.concatenate([np.empty(0, np.int32), *(ids for _, ids in parts)]),
        )

    @classmethod
    def open(cls, folder: str | Path) -> NameStore:
        """The store that lies in ``folder``, memory-mapped.

        Raises:
            DamagedArtifactError: a file is missing or is not what was written.
        """
        offsets = load_array(Path(folder) / "offsets.npy", (np.int64,), 1)
        ids = load_array(Path(folder) / "ids.npy", (np.int32,), 1)
        try:
            return cls(offsets, ids)
        except ShapeError as error:
            raise DamagedArtifactError(f"{folder}: {error}") from None

    @classmethod
    def concatenate(cls, stores: Sequence[NameStore], folder: str | Path) -> NameStore:
        """Write the names of several stores, one store after the other, as a store in ``folder``."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        chunks = ((np.diff(store.offsets), store.ids) for store in stores)
        np.save(Path(folder) / "offsets.npy", _offsets(_stream(chunks, Path(folder) / "ids.npy")))
        return cls.open(folder)

    def __len__(self) -> int:
        return len(self.offsets) - 1


def own_tokenizer(tokenizer: Tokenizer | str | Path) -> Tokenizer:
    """A tokeniser of one's own, without padding and truncation, from a ``tokenizer.json`` or another tokeniser.

    Raises:
        InputError: there is no such file, or it is not a tokeniser.
    """
    if isinstance(tokenizer, Tokenizer):
        own = Tokenizer.from_str(tokenizer.to_str())
    else:
        path = checked_path(tokenizer)
        if not path.is_file():
            raise InputError(
                "there is no such tokeniser file",
                path=path,
                expected="a tokenizer.json",
                fix="that of an encoder is onoma.encoders.locate_tokenizer(ENCODER)",
            )
        try:
            own = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise InputError(f"this is not a tokeniser ({error})", path=path, expected="a tokenizer.json") from None
    own.no_padding()
    own.no_truncation()
    return own


def _in_chunks(
    texts: Iterable[str],
    tokenizer: Tokenizer | str | Path,
    max_tokens: int,
    progress: Callable[[int], None] | None,
) -> Iterator[tuple[RowArray, TokenArray]]:
    """Chunks of (length of each name, ids of all)."""
    own = own_tokenizer(tokenizer)
    n_special = own.num_special_tokens_to_add(is_pair=False)
    if max_tokens <= n_special:
        raise InputError(
            "no room for a name between the special tokens",
            field="max_tokens",
            expected=f"more than {n_special}",
            found=str(max_tokens),
        )
    own.enable_truncation(max_length=max_tokens)
    source = iter(texts)
    done = 0
    while chunk := list(itertools.islice(source, _CHUNK_NAMES)):
        offsets, ids = tokenise(own, chunk)
        lengths = np.diff(offsets)
        if not lengths.all():
            raise InputError("the tokeniser gives no token at all for a name", found=repr(chunk[int(lengths.argmin())]))
        yield lengths, ids
        done += len(chunk)
        if progress:
            progress(done)


def _offsets(lengths: list[RowArray]) -> RowArray:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]), dtype=np.int64)


def _stream(chunks: Iterator[tuple[RowArray, TokenArray]], path: Path) -> list[RowArray]:
    """Write the ids to an ``.npy`` file as they come; return the lengths of the names."""
    lengths, total = [], 0
    with path.open("wb") as file:
        _write_header(file, 0)
        for chunk_lengths, ids in chunks:
            lengths.append(chunk_lengths)
            total += len(ids)
            file.write(np.ascontiguousarray(ids).data)
        file.seek(0)
        _write_header(file, total)
    return lengths


def _write_header(file: IO[bytes], n_ids: int) -> None:
    """The header of a vector of token ids. NumPy leaves room in it for the length to grow, up to 20 digits."""
    np.lib.format.write_array_header_1_0(
        file, {"descr": np.lib.format.dtype_to_descr(np.dtype(np.int32)), "fortran_order": False, "shape": (n_ids,)}
    )
