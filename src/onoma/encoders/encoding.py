"""The walk over many names that every back end shares: tokenise, sort by length, run batches, put back in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer, normalizers

from onoma.encoders.folders import EncoderFolder
from onoma.encoders.protocol import Encoder
from onoma.encoders.tokens import is_one_token, known_shares, tokenise, unknown_id
from onoma.errors import InputError, check_several
from onoma.types import MAX_NORM, BoolArray, CountProgress, FloatArray, RowArray

_LEAST_KNOWN = 0.5
"""A text of which the tokeniser knows no more has a vector that says nothing: texts in a script that the encoder was
not trained on are one like the other to it."""
WINDOW_NAMES = 16_384
"""Names tokenised and sorted together; bounds the memory that tokens take, whatever the number of names."""

RunBatch = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int32], RowArray], FloatArray]
"""(offsets, ids, rows) -> vectors of those rows, not normalised, shape (len(rows), width)."""


def encoding_tokenizer(folder: EncoderFolder) -> Tokenizer:
    """The folder's tokeniser, cutting names at its ``max_tokens``, in the case that the encoder was trained on."""
    tokenizer = folder.load_tokenizer()
    if folder.lower_case:  # not before it, which would take special tokens in a text for words
        own = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])
    tokenizer.enable_truncation(folder.max_tokens)
    return tokenizer


class FolderEncoder:
    """What an encoder knows from its folder, whatever runs it; base of the back ends."""

    def __init__(self, folder: EncoderFolder) -> None:
        self._folder = folder
        self._tokenizer = encoding_tokenizer(folder)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.name}: {self.width} numbers a vector, {self.precision}, {self.folder.path})"
        )

    @property
    def folder(self) -> EncoderFolder:
        """Where it lies and how its vectors are made."""
        return self._folder

    @property
    def name(self) -> str:
        """How to call it in tables and logs."""
        return self._folder.name

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return self._folder.dimensions or self._folder.width

    @property
    def max_tokens(self) -> int:
        """Longest name in tokens; longer ones are cut."""
        return self._folder.max_tokens

    @property
    def fingerprint(self) -> str:
        """See `onoma.encoders.Encoder.fingerprint`."""
        return self._folder.fingerprint

    @property
    def precision(self) -> str:
        """What its arithmetic is done in."""
        return self._folder.precision

    def can_read(self, texts: Sequence[str]) -> BoolArray:
        """See `onoma.encoders.Encoder.can_read`."""
        texts = checked_names(texts)
        found = [
            known_shares(self._tokenizer, texts[begin : begin + WINDOW_NAMES], self._unknown_id) > _LEAST_KNOWN
            for begin in range(0, len(texts), WINDOW_NAMES)
        ]
        return np.concatenate([np.empty(0, np.bool_), *found])

    def has_whole(self, word: str) -> bool:
        """See `onoma.encoders.Encoder.has_whole`."""
        return is_one_token(self._tokenizer, word)

    @cached_property
    def _unknown_id(self) -> int | None:
        return unknown_id(self._tokenizer)


def checked_names(texts: Iterable[str]) -> Sequence[str]:
    """Names that can be gone through in windows: a list of what gives them one by one.

    Raises:
        InputError: it is one string.
    """
    check_several(texts, "texts")
    if isinstance(texts, Sequence) and not isinstance(texts, deque):  # which has no slices
        return texts
    return list(texts)


def check_opened(encoder: object) -> None:
    """Refuse what is no encoder that was opened.

    Raises:
        InputError: as said.
    """
    if not all(hasattr(encoder, name) for name in ("folder", "fingerprint", "encode")):
        raise InputError("an encoder that was opened is needed", found=repr(encoder), fix="onoma.open_encoder(ENCODER)")


def checked_vectors(vectors: FloatArray, n: int, encoder: Encoder) -> FloatArray:
    """Vectors that an encoder of one's own gave, one for each of ``n`` texts.

    Raises:
        InputError: they are no array, or one of another shape.
    """
    if not isinstance(vectors, np.ndarray) or vectors.shape != (n, encoder.width):
        shape = f" of the shape {vectors.shape}" if isinstance(vectors, np.ndarray) else ""
        raise InputError(
            f"the encoder {encoder.name} gives no vectors that can be",
            expected=f"an array of the shape {(n, encoder.width)}",
            found=f"{type(vectors).__name__}{shape}",
        )
    return vectors


def check_unit_length(vectors: FloatArray, texts: Sequence[str]) -> None:
    """Refuse vectors whose dot products are no cosines, shape (n, width); that of a text without tokens is zero.

    Raises:
        InputError: one is not of length 1, nor zero.
    """
    lengths = np.linalg.norm(vectors, axis=1)
    wrong = np.flatnonzero(~((np.abs(lengths - 1) <= MAX_NORM - 1) | (lengths == 0)))
    if len(wrong):
        raise InputError(
            "the encoder gives a vector that is not of unit length",
            field=texts[int(wrong[0])],
            found=f"length {lengths[wrong[0]]}",
            fix="use another encoder; this one's training may have diverged",
        )


def encode_names(
    texts: Sequence[str],
    folder: EncoderFolder,
    tokenizer: Tokenizer,
    run_batch: RunBatch,
    *,
    batch_tokens: int,
    padded: bool,
    progress: CountProgress | None,
    unit_length: bool,
) -> FloatArray:
    """Vectors of names in their order, shape (n, width), or (n, dimensions) where the folder says so.

    A name without a single token (only tokenisers that add no special tokens make one) has the vector zero.

    Args:
        texts: The names.
        folder: Of the encoder.
        tokenizer: From `encoding_tokenizer`.
        run_batch: The back end.
        batch_tokens: See `length_batches`.
        padded: See `length_batches`.
        progress: See `Encoder.encode`.
        unit_length: See `Encoder.encode`.
    """
    kept = folder.dimensions or folder.width
    vectors = np.zeros((len(texts), kept), np.float32)
    for begin in range(0, len(texts), WINDOW_NAMES):
        window = texts[begin : begin + WINDOW_NAMES]
        offsets, ids = tokenise(tokenizer, window)
        done = begin
        for rows in length_batches(np.diff(offsets), batch_tokens=batch_tokens, padded=padded):
            found = run_batch(offsets, ids, rows)[:, :kept]
            vectors[begin + rows] = unit_rows(found) if unit_length else found
            done += len(rows)
            if progress is not None:
                progress(done, len(texts))
        # Names without tokens are in no batch; they count as done with their window.
        if progress is not None and done != begin + len(window):
            progress(begin + len(window), len(texts))
    return vectors


def length_batches(lengths: npt.NDArray[np.integer], *, batch_tokens: int, padded: bool = True) -> Iterator[RowArray]:
    """Rows in batches of similar length, shortest first; rows of length 0 are in none.

    Args:
        lengths: Tokens of each row.
        batch_tokens: Tokens in a batch, at most, unless one row alone has more.
        padded: Whether a batch is filled up to its longest row. It then counts as filled, and its longest row is at
            most an eighth longer than its shortest.

    Example:
        >>> [rows.tolist() for rows in length_batches(np.array([9, 2, 8, 0, 9]), batch_tokens=20)]
        [[1], [2, 0], [4]]
        >>> [rows.tolist() for rows in length_batches(np.array([9, 2, 8, 0, 9]), batch_tokens=20, padded=False)]
        [[1, 2, 0], [4]]
    """
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    begin = int(np.searchsorted(ordered, 1))
    while begin < len(ordered):
        # Each row has a token at least, so that no batch has more rows.
        end = begin + max(1, batch_tokens)
        if padded:
            shortest = int(ordered[begin])
            end = min(end, int(np.searchsorted(ordered, shortest + shortest // 8, side="right")))
        sizes = ordered[begin:end].astype(np.int64)
        # size of rows begin..i, ascending in i
        sizes = sizes * np.arange(1, len(sizes) + 1) if padded else sizes.cumsum()
        count = max(1, int(np.searchsorted(sizes, batch_tokens, side="right")))
        yield order[begin : begin + count]
        begin += count


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Rows scaled to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: FloatArray = vectors / np.maximum(lengths, 1e-12)
    return scaled
