"""Models and searches that answer what they were asked before, for mentions that are linked again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onoma.encoders import Encoder
from onoma.errors import check_several
from onoma.linking.searching import Queries
from onoma.linking.settings import Stage
from onoma.types import CountProgress, FloatArray, RowArray


class RememberingEncoder:
    """An encoder that encodes each text once; vectors that are not of length 1 are not remembered."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._known = encoder, dict[str, FloatArray]()

    def __repr__(self) -> str:
        return f"RememberingEncoder({self._encoder!r})"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(
        self, texts: Sequence[str], *, progress: CountProgress | None = None, unit_length: bool = True
    ) -> FloatArray:
        """See `onoma.encoders.Encoder.encode`."""
        if not unit_length:
            return self._encoder.encode(texts, progress=progress, unit_length=False)
        check_several(texts, "texts")
        texts = list(texts)
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        found = self._encoder.encode(new, progress=progress)
        self._known.update(zip(new, found, strict=True))
        return np.stack([self._known[text] for text in texts]) if texts else found


@dataclass(frozen=True)
class FoundBefore:
    """What one search found among the same texts.

    Attributes:
        nearest: Rows and scores by text and how many were wanted, shape (K,) each.
        scores: By text and the rows scored, shape (n,).
    """

    nearest: dict[tuple[str, int], tuple[RowArray, FloatArray]] = field(default_factory=dict)
    scores: dict[tuple[str, bytes], FloatArray] = field(default_factory=dict)


class SearchMemory:
    """What the searches of a linker found, as long as they are among the same texts."""

    def __init__(self) -> None:
        self._found: dict[Stage, FoundBefore] = {}

    def remembering(self, stage: Stage, queries: Queries, texts: Sequence[str]) -> Queries:
        """The same mentions, for which each search is made once.

        Args:
            stage: The search.
            queries: The mentions.
            texts: What they are, normalised.
        """
        return _RememberingQueries(queries, texts, self._found.setdefault(stage, FoundBefore()))


class _RememberingQueries:
    def __init__(self, queries: Queries, texts: Sequence[str], found: FoundBefore) -> None:
        self._queries, self._texts, self._found = queries, texts, found

    def nearest(self, which: RowArray, k: int) -> tuple[RowArray, FloatArray]:
        """See `Queries`."""
        keys = [(self._texts[mention], k) for mention in which.tolist()]
        new = np.array([key not in self._found.nearest for key in keys], np.bool_)
        if new.any():
            answers = zip(*self._queries.nearest(which[new], k), strict=True)
            self._found.nearest.update(zip((keys[place] for place in np.flatnonzero(new)), answers, strict=True))
        rows, scores = zip(*(self._found.nearest[key] for key in keys), strict=True)
        return np.stack(rows), np.stack(scores)

    def scores(self, mention: int, rows: RowArray) -> FloatArray:
        """See `Queries`."""
        key = self._texts[mention], rows.tobytes()
        if key not in self._found.scores:
            self._found.scores[key] = self._queries.scores(mention, rows)
        return self._found.scores[key]
