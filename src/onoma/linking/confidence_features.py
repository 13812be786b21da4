"""What an answer's confidence is judged by: a few numbers about a mention and its ranked concepts.

The pipeline fills a `MentionEvidence` for each mention that has an answer; `confidence_features` makes the
rows of numbers that `onoma.linking.calibration.Calibration` is fitted to and applied to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onoma.errors import InputError
from onoma.types import DoubleArray

FEATURE_NAMES = ("score", "margin", "is_exact", "dense_score", "ngram_score", "mention_length", "n_homonyms")
"""The columns, in their order; see `confidence_features`."""


@dataclass(frozen=True, slots=True)
class MentionEvidence:
    """What linking knows of a mention and its answers.

    Attributes:
        mention: As it was compared with the names: normalised.
        scores: By which its concepts are ranked, best first, at least one; of different concepts, homonyms included.
            Two are enough.
        is_exact: Whether the first concept was found by look-up, as it has the mention as a name.
        dense_score: Cosine of the vectors of the mention and of the name that the first concept was found by;
            ``None`` if the linker has no dense stage.
        ngram_score: The same of their character n-grams; ``None`` if there is no such stage.
        n_homonyms: Number of concepts that have that name, from 1.
    """

    mention: str
    scores: Sequence[float]
    is_exact: bool
    dense_score: float | None = None
    ngram_score: float | None = None
    n_homonyms: int = 1


def confidence_features(evidence: Sequence[MentionEvidence]) -> DoubleArray:
    """The features of n mentions, float64, shape (n, 7), in the order of `FEATURE_NAMES`.

    * ``score`` of the first concept, whatever the ranking is by;
    * ``margin``: by how much the second concept is behind, 0 for homonyms; where there is no second one, ``score``;
    * ``is_exact``: 1 or 0;
    * ``dense_score`` and ``ngram_score``: 0 for a stage that the linker does not have;
    * ``mention_length``: number of characters;
    * ``n_homonyms``: number of concepts that share the name.

    Raises:
        InputError: a mention without scores, with rising ones, or with something that is not finite.

    Example:
        >>> confidence_features([MentionEvidence("cold", [0.75, 0.5], True, 1.0, n_homonyms=1)]).tolist()
        [[0.75, 0.25, 1.0, 1.0, 0.0, 4.0, 1.0]]
    """
    rows = np.array([_row(mention) for mention in evidence], np.float64).reshape(-1, len(FEATURE_NAMES))
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(wrong):
        raise InputError("a score is not finite", field="evidence", found=repr(evidence[wrong[0]]))
    return rows


def _row(evidence: MentionEvidence) -> tuple[float, ...]:
    if len(evidence.scores) == 0 or not evidence.mention or evidence.n_homonyms < 1:
        raise InputError(
            "evidence of a mention is incomplete",
            field="evidence",
            expected="a mention, a score, and at least one concept that has the name",
            found=repr(evidence),
        )
    best = float(evidence.scores[0])
    margin = best - float(evidence.scores[1]) if len(evidence.scores) > 1 else best
    if margin < 0 and len(evidence.scores) > 1:
        raise InputError("scores must be given best first", field="evidence", found=repr(evidence))
    return (
        best,
        margin,
        float(evidence.is_exact),
        0.0 if evidence.dense_score is None else float(evidence.dense_score),
        0.0 if evidence.ngram_score is None else float(evidence.ngram_score),
        float(len(evidence.mention)),
        float(evidence.n_homonyms),
    )
