"""What measures of confidence and of right answers take: shares, outcomes, levels and wishes, checked.

Shapes: n mentions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from onoma.errors import InputError, ShapeError, real_number, whole_number
from onoma.types import BoolArray, DoubleArray


def checked_share(n_right: int, n: int) -> tuple[int, int]:
    """How many are right, of how many.

    Raises:
        InputError: there is no such share.
    """
    message = "there is no such share"
    n = whole_number(n, "n", message)
    n_right = whole_number(n_right, "n_right", message, least=0)
    if n_right > n:
        raise InputError(message, field="n_right", expected=f"0 to {n:,}", found=str(n_right))
    return n_right, n


def checked_level(confidence: float) -> float:
    """The confidence of an interval.

    Raises:
        InputError: it does not lie between 0 and 1, or so near to 1 that no interval is wide enough.
    """
    message = "there is no such confidence"
    return real_number(confidence, "confidence", message, expected="between 0 and 1", holds=_is_level)


def checked_precision(precision: float) -> float:
    """A precision to wish for.

    Raises:
        InputError: it is not above 0 and up to 1.
    """
    message = "not a possible precision"
    return real_number(precision, "precision", message, expected="above 0, up to 1", holds=_is_positive_share)


def checked_threshold(threshold: float) -> float:
    """The least confidence that is answered.

    Raises:
        InputError: it is not above 0 and up to 1.
    """
    message = "not a possible threshold"
    return real_number(threshold, "threshold", message, expected="above 0, up to 1", holds=_is_positive_share)


def checked_certainty(certainty: float) -> float:
    """A certainty to reach a precision with.

    Raises:
        InputError: it is not from 0.5 and below 1.
    """
    message = "not a possible certainty"
    return real_number(certainty, "certainty", message, expected="from 0.5, below 1", holds=lambda one: 0.5 <= one < 1)


def checked_confidence(
    confidence: DoubleArray | Sequence[float], correct: BoolArray | Sequence[bool]
) -> tuple[DoubleArray, BoolArray]:
    """Both as arrays of shape (n,).

    Raises:
        InputError: a confidence is not in 0..1, an outcome is neither right nor wrong, or there is no mention.
        ShapeError: the arrays do not fit one another.
    """
    confidence, correct = np.asarray(confidence, np.float64), outcomes(correct, "correct")
    if confidence.ndim != 1 or correct.shape != confidence.shape:
        raise ShapeError(f"confidence and correct must have one shape (n,); found {confidence.shape}, {correct.shape}.")
    if len(confidence) == 0:
        raise InputError("there is no mention to judge")
    wrong = np.flatnonzero(~((confidence >= 0) & (confidence <= 1)))
    if len(wrong):
        raise InputError(
            "a confidence is no probability",
            field=f"confidence[{wrong[0]}]",
            expected="0 to 1",
            found=str(confidence[wrong[0]]),
        )
    return confidence, correct


def outcomes(given: npt.ArrayLike, field: str) -> BoolArray:
    """Whether each is so; also from numbers 0 and 1.

    Raises:
        InputError: something else is among them, such as text, or NaN for what is not known.
    """
    found = np.asarray(given)
    if found.dtype != np.bool_:
        wrong = [one for one in found.ravel().tolist() if one not in (0, 1)]
        if wrong:
            raise InputError(
                "an outcome is neither right nor wrong", field=field, expected="bool", found=repr(wrong[0])
            )
    return found.astype(np.bool_)


def _is_level(number: float) -> bool:
    return number > 0 and (1 + number) / 2 < 1


def _is_positive_share(number: float) -> bool:
    return 0 < number <= 1
