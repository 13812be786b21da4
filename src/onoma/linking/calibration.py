"""Calibrated confidence: how probable it is that a mention's first answer is the right concept.

A cosine of 0.9 says little by itself. `Calibration` is fitted on development mentions whose right concept is known: a
logistic regression combines several features of an answer into one score (`onoma.linking.confidence_features`), and a
monotone map says how often answers with that score are right.

The map is not fitted on scores of examples that the regression has seen (cross-fitting): the examples are dealt into
folds, and each is scored by a regression fitted on the other folds. A document repeats its mentions, and a repeated
mention would vouch for itself, so all examples of a mention are in one fold, and each outcome of it counts once. No
choice is random, and the order of the examples has no effect.

Shapes: n examples, F features.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_args

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from onoma.errors import ConfigError, FormatVersionError, InputError, ShapeError, is_whole, one_of
from onoma.linking.calibrators import IsotonicMap, LogisticModel, PlattMap
from onoma.linking.confidence_features import FEATURE_NAMES
from onoma.linking.confidence_metrics import PrecisionCoverage, precision_coverage
from onoma.types import BoolArray, DoubleArray, RowArray

Method: TypeAlias = Literal["isotonic", "platt"]
CONFIDENCE_DECIMALS = 6
"""Confidences are given to this many decimals, and never nearer to 0 or 1 than the last of them."""
_FORMAT_VERSION = 1
MIN_OF_EACH = 10
"""Right and wrong examples below which nothing can be said."""


@dataclass(frozen=True)
class Calibration:
    """Turns features of an answer into the probability that it is right.

    Attributes:
        feature_names: What the F features are.
        model: Features to a score.
        map: Score to confidence, monotone.
        development: Precision against coverage on the examples, by their out-of-fold scores; thresholds come from it.
    """

    feature_names: tuple[str, ...]
    model: LogisticModel
    map: Annotated[PlattMap | IsotonicMap, Field(discriminator="method")]
    development: PrecisionCoverage

    def __post_init__(self) -> None:
        if len(self.feature_names) != len(self.model.weights) or len(set(self.feature_names)) != len(
            self.feature_names
        ):
            raise InputError(
                "each feature needs a name of its own",
                field="feature_names",
                expected=f"{len(self.model.weights)} different names",
                found=", ".join(self.feature_names),
            )

    @property
    def method(self) -> Method:
        """Of the map."""
        return self.map.method

    @classmethod
    def fit(
        cls,
        features: DoubleArray,
        correct: BoolArray | Sequence[bool],
        *,
        mentions: Sequence[str] | None = None,
        method: Method = "platt",
        feature_names: Sequence[str] = FEATURE_NAMES,
        n_folds: int = 5,
        l2: float = 1.0,
        min_of_each: int = MIN_OF_EACH,
    ) -> Calibration:
        """Fit to development mentions.

        Args:
            features: Of each mention's first answer, finite, shape (n, F).
            correct: Whether that answer is the right concept, shape (n,). For a mention without a right concept (NIL)
                it is not: include such mentions if they will occur later.
            mentions: Their normalised texts, n strings. Examples of one text share a fold, and those that are also
                equal in features and outcome count once: otherwise a few mentions that a corpus has a hundred times
                would decide. Unset: examples with equal features share a fold, and each counts.
            method: "platt" is a sigmoid, suits few examples too, and distinguishes any two scores; "isotonic" takes any
                form that does not fall, needs some hundred examples, and gives many scores the same confidence.
            feature_names: F different names.
            n_folds: From 2. The more, the nearer the out-of-fold regressions are to the one that is kept.
            l2: Pull of the regression's weights towards 0, above 0; see `LogisticModel.fit`.
            min_of_each: Right and wrong answers, each, below which none is fitted.

        Raises:
            ConfigError: an unknown method, or a number that is not allowed.
            InputError: features are not finite, or there are too few examples, or too few different ones.
            ShapeError: the arrays do not fit one another.
        """
        _check_options(method, n_folds, l2)
        features, outcomes, groups = _examples(features, correct, mentions, feature_names)
        n_right = int(outcomes.sum())
        if min(n_right, len(outcomes) - n_right) < min_of_each:
            raise InputError(
                "too few examples to say how often an answer is right",
                expected=f"at least {min_of_each} right and {min_of_each} wrong answers of different mentions",
                found=f"{n_right} right, {len(outcomes) - n_right} wrong",
                fix="take more development mentions, and none that are names of the linker as they stand: what is "
                "found by its name is always right; or learn no confidence (calibrate=False, --calibration none)",
            )
        scores = _out_of_fold_scores(features, outcomes, _folds(groups, outcomes, n_folds), n_folds=n_folds, l2=l2)
        fitted = IsotonicMap.fit(scores, outcomes) if method == "isotonic" else PlattMap.fit(scores, outcomes)
        return cls(
            feature_names=tuple(feature_names),
            model=LogisticModel.fit(features, outcomes, l2=l2),
            map=fitted,
            development=precision_coverage(_rounded(fitted(scores)), outcomes),
        )

    def confidence(self, features: DoubleArray) -> DoubleArray:
        """Probability that each answer is right, shape (n,), strictly between 0 and 1.

        To six decimals, and never falling as `score` rises.

        Args:
            features: Shape (n, F), as in `fit`; n may be 0.

        Raises:
            InputError: a feature is not finite.
            ShapeError: another number of features.
        """
        return _rounded(self.map(self.score(features)))

    def score(self, features: DoubleArray) -> DoubleArray:
        """The number with which the confidence rises, shape (n,): the regression's log-odds.

        Raises:
            InputError: a feature is not finite.
            ShapeError: another number of features.
        """
        return self.model.scores(_checked_features(features, self.feature_names))

    def threshold_for(self, precision: float, *, certainty: float | None = None) -> float:
        """The smallest confidence at which answers reach the precision on the development mentions.

        See `PrecisionCoverage.threshold_for` for the arguments; `development` says what share of mentions is then
        answered. What fewer than `MIN_OF_EACH` of them show is luck, and the confidences that are given later are not
        quite those of the curve: none might be as high.

        Raises:
            InputError: no threshold reaches it; the best one is named.
        """
        return self.development.threshold_for(precision, certainty=certainty, at_least=MIN_OF_EACH)

    def to_json(self) -> str:
        """All of it as JSON; `from_json` gives an equal calibration."""
        return json.dumps({"format_version": _FORMAT_VERSION, **dataclasses.asdict(self)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        """Read what `to_json` wrote, checked.

        Raises:
            FormatVersionError: written by a newer Onoma.
            InputError: it is not JSON, or something is missing, too much, of another kind, or inconsistent.
        """
        try:
            raw: Any = json.loads(text)
        except ValueError as error:
            raise InputError(f"a calibration is not JSON ({error})", fix="calibrate again") from None
        version = raw.get("format_version") if isinstance(raw, dict) else None
        if isinstance(version, int) and version > _FORMAT_VERSION:
            raise FormatVersionError(
                f"the calibration is of format {version}; this Onoma reads up to {_FORMAT_VERSION}. Update Onoma."
            )
        if version != _FORMAT_VERSION:
            raise InputError("this is no calibration", field="format_version", expected=str(_FORMAT_VERSION))
        try:
            read = _adapter().validate_json(text, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(
                f"a calibration cannot be read: {first['msg']}",
                field=".".join(str(part) for part in first["loc"]),
                fix="calibrate again",
            ) from None
        if json.loads(read.to_json()) != raw:
            raise InputError("a calibration has fields that this Onoma does not know", fix="calibrate again")
        return read


@functools.cache
def _adapter() -> TypeAdapter[Calibration]:
    return TypeAdapter(Calibration)


def check_method(method: str) -> None:
    """Refuse what is no method of `Calibration.fit`.

    Raises:
        ConfigError: it is none; the nearest is named.
    """
    one_of(method, get_args(Method), "method")


def _check_options(method: str, n_folds: int, l2: float) -> None:
    check_method(method)
    if not is_whole(n_folds) or n_folds < 2:
        raise ConfigError(f"n_folds must be a whole number from 2; found {n_folds!r}.")
    if not (0 < l2 < np.inf):
        raise ConfigError(f"l2 must be above 0 and finite; found {l2!r}.")


def _examples(
    features: DoubleArray, correct: BoolArray | Sequence[bool], mentions: Sequence[str] | None, names: Sequence[str]
) -> tuple[DoubleArray, BoolArray, RowArray]:
    """Features, outcomes and groups of the examples that count, sorted.

    Sums have one order then, whatever the order the examples came in. A group is a mention, or without mentions a
    row of features.
    """
    checked, outcomes = _checked_features(features, names), np.asarray(correct)
    if outcomes.shape != (len(checked),):
        raise ShapeError(f"correct must have the shape {(len(checked),)}; found {outcomes.shape}.")
    if len(checked) and outcomes.dtype != np.bool_:
        raise InputError("whether an answer is right must be True or False", field="correct", found=str(outcomes.dtype))
    if mentions is None:
        order = np.lexsort((outcomes, *checked.T[::-1]))
        _, groups = np.unique(checked[order], axis=0, return_inverse=True)
        return checked[order], outcomes[order].astype(np.bool_), groups.reshape(-1)
    if len(mentions) != len(checked):
        raise ShapeError(f"{len(checked)} examples need as many mentions; found {len(mentions)}.")
    place = {mention: number for number, mention in enumerate(sorted(set(mentions)))}
    groups = np.array([place[mention] for mention in mentions], np.int64)
    rows = np.unique(np.column_stack([checked, outcomes, groups]), axis=0)
    return rows[:, :-2], rows[:, -2] != 0, rows[:, -1].astype(np.int64)


def _checked_features(features: DoubleArray, names: Sequence[str]) -> DoubleArray:
    checked = np.asarray(features, np.float64)
    if checked.ndim != 2 or checked.shape[1] != len(names) or not len(names):
        raise ShapeError(f"features must have the shape (n, {len(names)}): {', '.join(names)}; found {checked.shape}.")
    wrong = np.argwhere(~np.isfinite(checked))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise InputError(
            "a feature is not finite", field=f"{names[column]}, example {row}", found=str(checked[row, column])
        )
    return checked + 0.0  # so that -0.0 and 0.0 are one value


def _folds(groups: RowArray, correct: BoolArray, n_folds: int) -> RowArray:
    """Fold of each example, shape (n,): groups, by share of right ones and then by number, are dealt in turn."""
    present, place, n_equal = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.argsort(np.bincount(place, correct) / n_equal, kind="stable")
    fold_of_group = np.empty(len(present), np.int64)
    fold_of_group[order] = np.arange(len(present)) % n_folds
    return fold_of_group[place]


def _out_of_fold_scores(
    features: DoubleArray, correct: BoolArray, folds: RowArray, *, n_folds: int, l2: float
) -> DoubleArray:
    """Each example's score by a regression that has not seen it, shape (n,)."""
    scores = np.empty(len(features))
    for fold in range(n_folds):
        held_out = folds == fold
        seen = correct[~held_out]
        if not held_out.any() or seen.all() or not seen.any():
            raise InputError(
                "too few different examples to fit a confidence",
                expected=f"right and wrong answers of different mentions in whatever remains without one of {n_folds} "
                "parts",
                fix="take more development mentions; mentions that repeat do not help",
            )
        scores[held_out] = LogisticModel.fit(features[~held_out], seen, l2=l2).scores(features[held_out])
    return scores


def _rounded(confidence: DoubleArray) -> DoubleArray:
    smallest = 10.0**-CONFIDENCE_DECIMALS
    return np.clip(np.round(confidence, CONFIDENCE_DECIMALS), smallest, 1 - smallest)
