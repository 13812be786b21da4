"""What the tests of pairs compare with: the tokeniser itself, one text at a time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from onoma.pairs import PairSet, TripleSet
from tiny import small_tokenizer


def tokens(made: PairSet | TripleSet) -> list[list[int]]:
    """Token ids of each name of a set."""
    return [made.store.ids[a:b].tolist() for a, b in itertools.pairwise(made.store.offsets)]


def tokens_of(texts: Sequence[str], *, max_tokens: int = 25) -> list[list[int]]:
    """Token ids of each text by the tokeniser."""
    tokenizer = small_tokenizer()
    tokenizer.enable_truncation(max_tokens)
    return [tokenizer.encode(text).ids for text in texts]


def texts_of(made: PairSet | TripleSet, texts: Sequence[str]) -> list[str]:
    """The text of each name of a set, by its tokens; ``texts`` are all that there can be."""
    known = dict(zip((tuple(ids) for ids in tokens_of(texts)), texts, strict=True))
    assert len(known) == len(set(texts)), "these texts cannot be told apart"
    return [known[tuple(ids)] for ids in tokens(made)]
