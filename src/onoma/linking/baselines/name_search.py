"""What a baseline is: something that ranks names for a text; with it, concepts are ranked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from onoma.errors import InputError
from onoma.linking.dictionary import NameDictionary
from onoma.linking.links import Link, checked_mentions, checked_top_k
from onoma.terminology import normalise
from onoma.types import FloatArray, RowArray

RankedNames: TypeAlias = tuple[RowArray, FloatArray]
"""Rows of names, int64, and their scores, float32: higher score first, of equal scores the lower row first."""

_TEXTS_PER_CONCEPT = 8
"""Texts looked at first for each concept wanted; if they turn out to be too few, more are."""
_MENTIONS_AT_ONCE = 1024
_WORD = re.compile(r"\w+")


class NameSearch(Protocol):
    """Ranks a fixed list of names for texts, both normalised already."""

    def best(self, texts: Sequence[str], *, k: int) -> list[RankedNames]:
        """The ``k`` best names of each text, or as many as have anything in common with it.

        The answer to a text depends on the text and the names alone.
        """


class SearchLinker:
    """Links a mention to the concepts of the best names that a search finds.

    A concept's score is that of its best name; ties as by `ExactMatcher`. A mention that is blank after
    normalisation, or has nothing in common with any name, gets no links.

    Args:
        search: Over the texts of the dictionary.
        dictionary: The names.
    """

    def __init__(self, search: NameSearch, dictionary: NameDictionary) -> None:
        self.search, self.dictionary = search, dictionary

    def __repr__(self) -> str:
        return f"SearchLinker({type(self.search).__name__}, {self.dictionary!r})"

    def link(self, mentions: Iterable[str], *, top_k: int = 5) -> list[list[Link]]:
        """The ``top_k`` best concepts of each mention, best first.

        Raises:
            InputError: a mention is not text, or ``top_k`` is less than 1.
        """
        top_k = checked_top_k(top_k)
        texts = [normalise(mention, self.dictionary.normalisation) for mention in checked_mentions(mentions)]
        distinct = [text for text in dict.fromkeys(texts) if text]
        answers: dict[str, list[Link]] = {}
        for start in range(0, len(distinct), _MENTIONS_AT_ONCE):
            answers |= self._rank(distinct[start : start + _MENTIONS_AT_ONCE], top_k)
        return [list(answers.get(text, [])) for text in texts]

    def _rank(self, texts: list[str], top_k: int) -> dict[str, list[Link]]:
        """Search ever deeper until no text further down could change a mention's answer."""
        answers: dict[str, list[Link]] = {}
        waiting, depth = texts, _TEXTS_PER_CONCEPT * top_k
        while waiting:
            still_waiting = []
            found = self.search.best(waiting, k=depth)
            check_ranked(
                found,
                n_texts=len(waiting),
                n_names=self.dictionary.n_texts,
                k=depth,
                of=type(self.search).__name__,
            )
            for text, (rows, scores) in zip(waiting, found, strict=True):
                links = self.dictionary.rank_concepts(rows, scores, top_k=top_k, complete=len(rows) < depth)
                if links is None:
                    still_waiting.append(text)
                else:
                    answers[text] = links
            waiting, depth = still_waiting, 4 * depth
        return answers


def check_ranked(found: Sequence[RankedNames], *, n_texts: int, n_names: int, k: int, of: str) -> None:
    """Refuse what a search of one's own cannot have found.

    Args:
        found: By `NameSearch.best`.
        n_texts: That were searched for.
        n_names: That there are.
        k: How many were asked for.
        of: What the error calls the search.

    Raises:
        InputError: not one answer for each text, or one that is not `RankedNames`.
    """
    if len(found) != n_texts:
        raise InputError(f"{of} does not answer every text", expected=f"{n_texts} answers", found=str(len(found)))
    for one in found:
        rows, scores = map(np.asarray, one)
        is_ranking = rows.ndim == 1 and rows.shape == scores.shape and len(rows) <= k
        if is_ranking and len(rows):
            is_ranking = (
                np.issubdtype(rows.dtype, np.integer)
                and rows.min() >= 0
                and rows.max() < n_names
                and len(np.unique(rows)) == len(rows)
                and bool(np.isfinite(scores).all())
                and bool((np.diff(scores) <= 0).all())
            )
        if not is_ranking:
            raise InputError(
                f"{of} gives no ranking",
                expected=f"at most {k} different rows of {n_names} names, and their scores, highest first",
                found=f"rows {rows.tolist()[:5]} with scores {scores.tolist()[:5]}",
            )


def positive(rows: RowArray, scores: FloatArray) -> RankedNames:
    """Ranked names without those that have nothing in common with the text."""
    n = int(np.count_nonzero(scores > 0))
    return rows[:n], scores[:n]


def words_of(text: str) -> list[str]:
    """Runs of letters, digits and underscores, in order; in scripts without spaces these are long.

    Example:
        >>> words_of("non-hodgkin's lymphoma, β2")
        ['non', 'hodgkin', 's', 'lymphoma', 'β2']
    """
    return _WORD.findall(text)
