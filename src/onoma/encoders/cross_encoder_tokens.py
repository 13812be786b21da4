"""Mentions and candidate names as pairs of token rows, for a model that reads both sides at once.

A pair is ``[CLS] mention [SEP] name [SEP]``. Where mentions come with a context it is
``[CLS] context before <tgt> mention </tgt> context after [SEP] name [SEP]``, with the two marks as tokens of their own.
Rows are ragged: row ``i`` has ``ids[offsets[i]:offsets[i + 1]]``. Nothing here needs torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tokenizers import AddedToken, Tokenizer

from onoma.encoders.tokens import special_tokens_around, tokenise
from onoma.errors import ConfigError, InputError, ShapeError
from onoma.types import RowArray

START_MARK, END_MARK = "<tgt>", "</tgt>"
"""Around the mention in its context."""

MIN_MENTION_TOKENS = 4
"""Room that a mention must have at least."""

_TokenArray = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TokenRows:
    """One side of pairs: ragged token ids, without the special tokens around them."""

    offsets: RowArray
    """int64, shape (n + 1,)."""
    ids: _TokenArray
    """int32, shape (offsets[n],)."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> RowArray:
        """Tokens of each row, shape (n,)."""
        return np.diff(self.offsets)


@dataclass(frozen=True, slots=True)
class PairRows:
    """Whole pairs, ragged, special tokens included."""

    offsets: RowArray
    """int64, shape (n + 1,)."""
    ids: _TokenArray
    """int32, shape (offsets[n],)."""
    types: npt.NDArray[np.int8]
    """0 on the mention's side, 1 on the name's, of each token."""

    @property
    def lengths(self) -> RowArray:
        """Tokens of each pair, shape (n,)."""
        return np.diff(self.offsets)


class PairTokeniser:
    """Texts to pairs of token rows.

    Each side has a room of its own, so that a row does not depend on what it is paired with: names
    ``max_name_tokens``, mentions with their context what is left of ``max_tokens``. A name is cut at its end; of a
    context what is farthest from the mention is left out.

    Args:
        tokenizer: The model's, with the marks among its tokens if ``marks`` is set; see `add_marks`.
        max_tokens: Longest pair, special tokens included.
        max_name_tokens: Longest name.
        marks: Whether mentions are marked in a context.
        prepare: What every text goes through before it is tokenised: the normalisation of training.

    Raises:
        ConfigError: no room is left for mentions, or the tokeniser has no special tokens to part two texts with.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        max_name_tokens: int,
        marks: bool,
        prepare: Callable[[str], str],
    ) -> None:
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._prepare = prepare
        n_before, n_after = special_tokens_around(self._tokenizer)
        ids = self._tokenizer.encode("a").ids
        self._before = np.array(ids[:n_before], np.int32)
        self._after = np.array(ids[len(ids) - n_after :], np.int32)
        if n_after == 0:
            raise ConfigError("this tokeniser puts no special token after a text, so two texts cannot be told apart.")
        self._max_name_tokens = max_name_tokens
        self._max_mention_tokens = max_tokens - n_before - 2 * n_after - max_name_tokens
        self._marks: tuple[int, int] | None = None
        if marks:
            start, end = (self._tokenizer.token_to_id(mark) for mark in (START_MARK, END_MARK))
            if start is None or end is None:
                raise ConfigError(f"this tokeniser has no tokens {START_MARK} and {END_MARK}.")
            self._marks = start, end
        room = self._max_mention_tokens - (2 if marks else 0)
        if room < MIN_MENTION_TOKENS:
            least = max_tokens + MIN_MENTION_TOKENS - room
            raise ConfigError(
                f"max_tokens={max_tokens} leaves {max(room, 0)} tokens for the mention when a name may have "
                f"{max_name_tokens}; set max_tokens to {least} or more, or max_name_tokens lower."
            )

    def names(self, texts: Sequence[str]) -> TokenRows:
        """The candidates' side."""
        offsets, ids = tokenise(self._tokenizer, self._prepared(texts), special_tokens=False)
        kept = np.minimum(np.diff(offsets), self._max_name_tokens)
        return _gathered(ids, offsets[:-1], kept)

    def mentions(self, texts: Sequence[str], contexts: Sequence[str | None] | None = None) -> TokenRows:
        """The mentions' side.

        Args:
            texts: The mentions.
            contexts: Where each stands, if anything is known of it: the sentence, say. See `split_context`.

        Raises:
            InputError: there are contexts and the model was trained without.
            ShapeError: their number is not that of the mentions.
        """
        if contexts is not None and self._marks is None:
            raise InputError(
                "this reranker was trained without contexts and cannot use any",
                field="contexts",
                fix="leave the contexts out, or train one on mentions with their context",
            )
        if contexts is not None and len(contexts) != len(texts):
            raise ShapeError(f"{len(texts)} mentions need as many contexts; found {len(contexts)}.")
        parts = [split_context(*pair) for pair in zip(texts, contexts or [None] * len(texts), strict=True)]
        rows = [
            tokenise(self._tokenizer, self._prepared(side), special_tokens=False)
            for side in ([before for before, _ in parts], texts, [after for _, after in parts])
        ]
        joined = [
            self._around(*(ids[offsets[row] : offsets[row + 1]] for offsets, ids in rows)) for row in range(len(texts))
        ]
        offsets = np.zeros(len(joined) + 1, np.int64)
        np.cumsum([len(row) for row in joined], out=offsets[1:])
        return TokenRows(offsets, np.concatenate([np.empty(0, np.int32), *joined]))

    def pairs(self, mentions: TokenRows, mention_rows: RowArray, names: TokenRows, name_rows: RowArray) -> PairRows:
        """Put rows of both sides together, one pair for each of ``mention_rows`` and ``name_rows``."""
        left, right = mentions.lengths[mention_rows], names.lengths[name_rows]
        n_before, n_after = len(self._before), len(self._after)
        parts = np.stack([np.full_like(left, n_before), left, np.full_like(left, n_after)], 1)
        parts = np.concatenate([parts, right[:, None], np.full_like(left, n_after)[:, None]], 1)
        offsets = np.concatenate([[0], parts.sum(1).cumsum()])
        # Where each of the five parts of each pair begins in the result, and in a pool of all tokens there are.
        begins = offsets[:-1, None] + np.concatenate([np.zeros((len(left), 1), np.int64), parts.cumsum(1)[:, :-1]], 1)
        pool = np.concatenate([self._before, self._after, mentions.ids, names.ids])
        first_mention = n_before + n_after
        first_name = first_mention + len(mentions.ids)
        sources = np.stack(
            [
                np.zeros_like(left),
                first_mention + mentions.offsets[mention_rows],
                np.full_like(left, n_before),
                first_name + names.offsets[name_rows],
                np.full_like(left, n_before),
            ],
            1,
        )
        counts = parts.ravel()
        within = np.arange(int(offsets[-1])) - np.repeat(begins.ravel(), counts)
        ids = pool[np.repeat(sources.ravel(), counts) + within]
        types = np.repeat(np.tile(np.array([0, 0, 0, 1, 1], np.int8), len(left)), counts)
        return PairRows(offsets, ids, types)

    def _prepared(self, texts: Sequence[str]) -> list[str]:
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"text {row} is no text", expected="a string", found=repr(text))
        return [self._prepare(text) for text in texts]

    def _around(self, before: _TokenArray, mention: _TokenArray, after: _TokenArray) -> _TokenArray:
        """A mention between its marks and as much of its context as there is room for."""
        if self._marks is None:
            return mention[: self._max_mention_tokens]
        mention = mention[: self._max_mention_tokens - 2]
        room = self._max_mention_tokens - 2 - len(mention)
        n_before = min(len(before), max(room // 2, room - len(after)))
        n_after = min(len(after), room - n_before)
        start, end = (np.array([mark], np.int32) for mark in self._marks)
        return np.concatenate([before[len(before) - n_before :], start, mention, end, after[:n_after]])


def split_context(mention: str, context: str | None) -> tuple[str, str]:
    """What stands before the mention in its context, and what after it.

    The mention is what stands between ``<tgt>`` and ``</tgt>``, if the context has these; else its first occurrence as
    whole words, else its first occurrence at all, upper and lower case alike. Of a context that does not have it all
    comes after the mention.

    Example:
        >>> split_context("cold", "Coldness, then a cold ."), split_context("MI", "a <tgt>heart attack</tgt> again")
        (('Coldness, then a ', ' .'), ('a ', ' again'))
    """
    if not context:
        return "", ""
    marked = re.search(f"{START_MARK}(.*?){END_MARK}", context, re.DOTALL)
    if marked is None and mention.strip():
        literal = re.escape(mention.strip())
        marked = re.search(rf"(?<!\w){literal}(?!\w)", context, re.IGNORECASE) or re.search(
            literal, context, re.IGNORECASE
        )
    return ("", context) if marked is None else (context[: marked.start()], context[marked.end() :])


def candidate_text(matched_name: str, preferred_name: str, *, both: bool) -> str:
    """What a model reads of a candidate concept: the name that matched, and with ``both`` its preferred name too.

    Homonyms have one matched name and can only be told apart by their preferred names.

    Example:
        >>> candidate_text("cold", "Common Cold", both=True), candidate_text("cold", "Cold", both=True)
        ('cold ; Common Cold', 'cold')
    """
    return (
        f"{matched_name} ; {preferred_name}"
        if both and matched_name.lower() != preferred_name.lower()
        else matched_name
    )


def add_marks(tokenizer: Tokenizer) -> Tokenizer:
    """A copy of a tokeniser that has the two marks as tokens of their own."""
    marked = Tokenizer.from_str(tokenizer.to_str())
    marked.add_special_tokens([AddedToken(mark, normalized=False) for mark in (START_MARK, END_MARK)])
    return marked


def _gathered(ids: _TokenArray, first: RowArray, lengths: RowArray) -> TokenRows:
    """The rows that begin at ``first`` and have ``lengths`` tokens."""
    offsets = np.concatenate([[0], lengths.cumsum()])
    within = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], lengths)
    return TokenRows(offsets, ids[np.repeat(first, lengths) + within])
