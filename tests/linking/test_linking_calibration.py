"""Calibration: each step against scikit-learn, and what must hold for any examples."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onoma.errors import ConfigError, FormatVersionError, InputError, ShapeError
from onoma.linking.calibration import Calibration, Method, _examples, _folds
from onoma.linking.calibrators import PLATT_L2, IsotonicMap, LogisticModel, PlattMap
from onoma.linking.confidence_features import FEATURE_NAMES, MentionEvidence, confidence_features
from onoma.linking.confidence_metrics import expected_calibration_error
from onoma.linking.settings import LinkerSettings
from onoma.types import BoolArray, DoubleArray

METHODS: tuple[Method, ...] = ("isotonic", "platt")
NAMES = ("cosine", "margin", "length")


def examples(n: int, *, seed: int = 0) -> tuple[DoubleArray, BoolArray]:
    """Answers of which the chance to be right is known: features of unequal size, one of them useless."""
    random = np.random.default_rng(seed)
    features = np.column_stack([random.uniform(0.3, 1, n), random.exponential(0.05, n), random.integers(2, 60, n)])
    return features, random.random(n) < truth(features)


def truth(features: DoubleArray) -> DoubleArray:
    return np.asarray(expit(8 * (features[:, 0] - 0.6) + 20 * (features[:, 1] - 0.05)))


def fitted(method: Method = "platt", n: int = 400) -> Calibration:
    return Calibration.fit(*examples(n), method=method, feature_names=NAMES)


scored = st.lists(
    st.tuples(st.one_of(st.integers(-4, 4).map(float), st.floats(-50, 50)), st.booleans()), min_size=2, max_size=50
).filter(lambda pairs: len({right for _, right in pairs}) == 2)


def arrays(pairs: list[tuple[float, bool]]) -> tuple[DoubleArray, BoolArray]:
    return np.array([s for s, _ in pairs], np.float64), np.array([r for _, r in pairs], np.bool_)


@pytest.mark.parametrize("method", METHODS)
def test_what_a_notebook_shows_does_not_grow_with_the_examples(method: Method) -> None:
    calibration = fitted(method, n=4000)
    assert len(repr(calibration)) < 1000
    assert len(repr(LinkerSettings(calibration=calibration.to_json()))) < 400


@pytest.mark.parametrize("l2", [0.01, 1.0, 30.0])
def test_the_regression_is_scikit_learns(l2: float) -> None:
    features, correct = examples(300)
    oracle = make_pipeline(StandardScaler(), LogisticRegression(C=1 / l2, tol=1e-12, max_iter=10_000))
    oracle.fit(features, correct)
    model = LogisticModel.fit(features, correct, l2=l2)
    assert model.weights == pytest.approx(oracle[-1].coef_[0].tolist(), abs=1e-6)
    assert model.intercept == pytest.approx(float(oracle[-1].intercept_[0]), abs=1e-6)
    assert model.scores(features) == pytest.approx(oracle.decision_function(features), abs=1e-5)


def test_the_regression_of_separable_examples_ends() -> None:
    features = np.linspace(-1, 1, 20)[:, None]
    model = LogisticModel.fit(features, features[:, 0] > 0, l2=1e-6)
    assert (np.sign(model.scores(features)) == np.sign(features[:, 0])).all()


def test_a_feature_that_never_varies_has_no_say() -> None:
    features, correct = examples(100)
    for unusable in (np.arange(100) * 1e-200, np.arange(100) * 1e200):  # deviations that no number can tell
        model = LogisticModel.fit(np.column_stack([features, unusable]), correct, l2=1.0)
        assert model.weights == (*LogisticModel.fit(features, correct, l2=1.0).weights, 0)
    with_constant = np.column_stack([features, np.full(100, 0.1)])
    model = LogisticModel.fit(with_constant, correct, l2=1.0)
    assert model.weights[3] == 0
    assert model.weights[:3] == LogisticModel.fit(features, correct, l2=1.0).weights
    changed = with_constant.copy()
    changed[:, 3] = 1e9
    assert (model.scores(changed) == model.scores(with_constant)).all()


def test_beyond_the_examples_lies_their_edge() -> None:
    features, correct = examples(100)
    model = LogisticModel.fit(features, correct, l2=1.0)
    far = features.copy()
    far[0] = [1e6, -1e6, features[0, 2]]
    edge = features.copy()
    edge[0] = [features[:, 0].max(), features[:, 1].min(), features[0, 2]]
    assert model.scores(far)[0] == model.scores(edge)[0]


@settings(max_examples=60)
@given(pairs=scored)
@example(pairs=[(0.0, True), (-1e-05, False)])
def test_platt_is_scikit_learns(pairs: list[tuple[float, bool]]) -> None:
    scores, correct = arrays(pairs)
    fit = PlattMap.fit(scores, correct)
    n_right = int(correct.sum())
    targets = np.where(correct, (n_right + 1) / (n_right + 2), 1 / (len(correct) - n_right + 2))

    def loss(log_odds: DoubleArray, slope: float) -> float:
        return float((np.logaddexp(0, log_odds) - targets * log_odds).sum() + PLATT_L2 / 2 * slope**2)

    oracle = _SigmoidCalibration().fit(scores, correct)
    theirs = -oracle.a_ * scores - oracle.b_
    ours = fit.slope * scores + fit.intercept
    if oracle.a_ < 0:  # theirs may fall with the score, ours may not
        assert loss(ours, fit.slope) <= loss(theirs, oracle.a_) + 1e-9
    constant = np.full(len(scores), math.log(targets.mean() / (1 - targets.mean())))
    assert loss(ours, fit.slope) <= loss(constant, 0.0) + 1e-9
    assert fit.slope >= 0


def test_platt_agrees_with_scikit_learn_in_numbers() -> None:
    scores = np.random.default_rng(1).normal(0, 2, 400)
    correct = np.random.default_rng(2).random(400) < expit(0.7 * scores + 0.3)
    fit, oracle = PlattMap.fit(scores, correct), _SigmoidCalibration().fit(scores, correct)
    assert (fit.slope, fit.intercept) == pytest.approx((-oracle.a_, -oracle.b_), abs=1e-3)
    assert fit(scores) == pytest.approx(oracle.predict(scores), abs=1e-3)


def test_scores_that_mislead_give_one_confidence() -> None:
    scores = np.arange(40.0)
    correct = scores < 20
    fit = PlattMap.fit(scores, correct)
    assert fit.slope == 0
    assert fit(scores) == pytest.approx(np.full(40, 0.5))
    assert IsotonicMap.fit(scores, correct)(scores) == pytest.approx(np.full(40, 21 / 42))


@settings(max_examples=80)
@given(pairs=scored, asked=st.lists(st.floats(-60, 60), min_size=1, max_size=10))
def test_isotonic_is_scikit_learns_with_the_two_examples_more(
    pairs: list[tuple[float, bool]], asked: list[float]
) -> None:
    scores, correct = arrays(pairs)
    scores = scores.round(2)  # scores that are nearly equal are equal to scikit-learn
    fit = IsotonicMap.fit(scores, correct)
    more = np.append(scores, [scores.max(), scores.min()])
    oracle = IsotonicRegression(out_of_bounds="clip").fit(more, np.append(correct, [False, True]).astype(float))
    for points in (scores, np.array(asked)):
        assert fit(points) == pytest.approx(oracle.predict(points), abs=1e-9)


def test_a_step_at_an_end_says_on_how_many_it_rests() -> None:
    scores = np.arange(30.0)
    correct = scores >= 10
    fit = IsotonicMap.fit(scores, correct)
    assert fit(np.array([0.0, 9.0, 10.0, 29.0, 99.0])) == pytest.approx([1 / 11, 1 / 11, 20 / 21, 20 / 21, 20 / 21])
    assert fit(np.array([9.5]))[0] == pytest.approx((1 / 11 + 20 / 21) / 2)


@settings(max_examples=80)
@given(pairs=scored, asked=st.lists(st.floats(-80, 80), min_size=2, max_size=30))
@example(pairs=[(0.0, False), (0.0, True), (-2.0, False), (-3.0, False), (-(2.0**-52), False)], asked=[0.0, 0.0])
def test_maps_rise_within_0_and_1(pairs: list[tuple[float, bool]], asked: list[float]) -> None:
    scores, correct = arrays(pairs)
    points = np.unique(np.concatenate([scores, asked]))
    for fit in (IsotonicMap.fit(scores, correct), PlattMap.fit(scores, correct)):
        confidences = fit(points)
        assert (np.diff(confidences) >= 0).all()
        assert ((confidences >= 0) & (confidences <= 1)).all()  # a steep sigmoid may round to its ends
        assert isinstance(fit, PlattMap) or ((confidences > 0) & (confidences < 1)).all()


@pytest.mark.parametrize("method", METHODS)
def test_it_is_scikit_learns_cross_fitted_calibration(method: Method) -> None:
    """With its folds given: a regression on all, a map on scores of regressions that had not seen the example."""
    features, correct, groups = _examples(*examples(300), None, NAMES)
    folds = _folds(groups, correct, 5)
    splits = [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in range(5)]
    regression = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-12, max_iter=10_000))
    asked = np.clip(examples(500, seed=9)[0], features.min(axis=0), features.max(axis=0))
    if method == "platt":
        oracle = CalibratedClassifierCV(regression, method="sigmoid", cv=splits, ensemble=False).fit(features, correct)
        expected = oracle.predict_proba(asked)[:, 1]
    else:
        scores = cross_val_predict(regression, features, correct, cv=splits, method="decision_function")
        more = np.append(scores, [scores.max(), scores.min()])
        steps = IsotonicRegression(out_of_bounds="clip").fit(more, np.append(correct, [False, True]).astype(float))
        expected = steps.predict(regression.fit(features, correct).decision_function(asked))
    calibration = Calibration.fit(features, correct, method=method, feature_names=NAMES)
    assert calibration.confidence(asked) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_confidences_of_new_mentions_come_true(method: Method) -> None:
    calibration = fitted(method, n=2000)
    features, correct = examples(4000, seed=5)
    confidence = calibration.confidence(features)
    assert expected_calibration_error(confidence, correct) < 0.04
    assert np.abs(confidence - truth(features)).mean() < 0.05
    threshold = calibration.threshold_for(0.95)
    kept = confidence >= threshold
    assert correct[kept].mean() == pytest.approx(0.95, abs=0.03)
    assert kept.mean() == pytest.approx(np.interp(0.95, *_reached(truth(features))), abs=0.1)
    assert calibration.threshold_for(0.95, certainty=0.95) >= threshold


def _reached(chances: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
    """Precision of the k surest, and their share; precision rising, as `numpy.interp` wants it."""
    ordered = np.sort(chances)[::-1]
    precision = np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
    return precision[::-1], (np.arange(1, len(ordered) + 1) / len(ordered))[::-1]


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(90, 150),
    decimals=st.integers(2, 6),
    method=st.sampled_from(METHODS),
)
def test_order_of_the_examples_changes_not_a_digit(seed: int, n: int, decimals: int, method: Method) -> None:
    features, correct = examples(n, seed=seed)
    features = features.round(decimals)
    features[: n // 3] = features[n // 3 : 2 * (n // 3)]  # mentions that repeat, some with another outcome
    order = np.random.default_rng(seed + 1).permutation(n)
    for mentions in (None, [str(row[0]) for row in features]):
        calibration = Calibration.fit(features, correct, mentions=mentions, method=method, feature_names=NAMES)
        in_order = mentions and [mentions[row] for row in order]
        assert calibration == Calibration.fit(
            features[order], correct[order], mentions=in_order, method=method, feature_names=NAMES
        )


@settings(max_examples=30)
@given(method=st.sampled_from(METHODS), rows=st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 3), min_size=1, max_size=20))
def test_confidence_rises_with_the_score_and_stays_between_0_and_1(
    method: Method, rows: list[tuple[float, float, float]]
) -> None:
    calibration = CALIBRATIONS[method]
    features = np.array(rows)
    scores, confidence = calibration.score(features), calibration.confidence(features)
    order = np.argsort(scores)
    assert (np.diff(confidence[order]) >= 0).all()
    assert ((confidence > 0) & (confidence < 1)).all()
    assert (confidence == confidence.round(6)).all()
    for row in range(len(rows)):  # the same alone as among others
        assert calibration.confidence(features[row : row + 1])[0] == confidence[row]


CALIBRATIONS = {method: fitted(method) for method in METHODS}


def test_equal_examples_lie_in_one_fold_and_folds_are_alike() -> None:
    features, correct = examples(500)
    features = np.concatenate([features, features[:100], features[:100]])
    correct = np.concatenate([correct, correct[:100], ~correct[:100]])
    kept, outcomes, groups = _examples(features, correct, None, NAMES)
    folds = _folds(groups, outcomes, 5)
    for row in features[:100]:
        assert len(set(folds[(kept == row).all(axis=1)].tolist())) == 1
    for fold in range(5):
        assert (folds == fold).sum() == pytest.approx(140, abs=25)
        assert outcomes[folds == fold].mean() == pytest.approx(correct.mean(), abs=0.06)


def test_a_mention_that_repeats_counts_once_for_each_outcome() -> None:
    features, correct = examples(200)
    mentions = [f"mention {row}" for row in range(200)]
    once = Calibration.fit(features, correct, mentions=mentions, feature_names=NAMES)
    again = np.concatenate([np.arange(200), np.full(300, 7), np.arange(50)])
    repeated = Calibration.fit(
        features[again], correct[again], mentions=[mentions[row] for row in again], feature_names=NAMES
    )
    assert repeated == once
    assert Calibration.fit(features[again], correct[again], feature_names=NAMES) != once
    # Equal features of different mentions stay two examples; a mention with two outcomes too, in one fold.
    three = _examples(features[[0, 0, 0]], [True, True, False], ["a", "b", "b"], NAMES)
    assert three[1].tolist() == [False, True, True]
    assert three[2].tolist() == [1, 0, 1]
    assert len(set(_folds(three[2], three[1], 5)[[0, 2]].tolist())) == 1
    with pytest.raises(ShapeError, match="200 examples need as many mentions; found 1"):
        Calibration.fit(features, correct, mentions=["a"], feature_names=NAMES)


def test_repeated_mentions_do_not_vouch_for_themselves() -> None:
    """Features that tell nothing, each example ten times: seen in training, they would seem to tell something."""
    random = np.random.default_rng(0)
    features, correct = random.normal(size=(40, 12)), np.tile([True, False], 20)
    calibration = Calibration.fit(
        np.repeat(features, 10, axis=0),
        np.repeat(correct, 10),
        method="platt",
        feature_names=[f"x{n}" for n in range(12)],
        l2=1e-3,
    )
    assert np.abs(calibration.confidence(features) - 0.5).max() < 0.2


@pytest.mark.parametrize("method", METHODS)
def test_json_there_and_back(method: Method) -> None:
    calibration = fitted(method)
    text = calibration.to_json()
    again = Calibration.from_json(text)
    assert again == calibration
    assert again.to_json() == text
    assert again.method == method
    features = examples(100, seed=4)[0]
    assert (again.confidence(features) == calibration.confidence(features)).all()
    assert again.threshold_for(0.9) == calibration.threshold_for(0.9)


def damaged(**changes: object) -> str:
    content = json.loads(fitted("platt").to_json())
    for path, value in changes.items():
        place = content
        *parents, last = path.split("__")
        for parent in parents:
            place = place[parent]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("{", InputError, "not JSON"),
        ("[]", InputError, "no calibration"),
        (damaged(format_version=None), InputError, "no calibration"),
        (damaged(format_version=2), FormatVersionError, "Update Onoma"),
        (damaged(model=None), InputError, "model"),
        (damaged(extra=1), InputError, "does not know"),
        (damaged(model__extra=1), InputError, "does not know"),
        (damaged(map__slope="1"), InputError, r"map\.platt\.slope"),
        (damaged(map__slope=-1.0), InputError, "negative"),
        (damaged(map__slope=math.nan), InputError, "finite"),
        (damaged(map__intercept=math.inf), InputError, "finite"),
        (damaged(map__method="spline"), InputError, "map"),
        (damaged(map={"method": "isotonic", "points": [1.0, 0.0], "confidences": [0.1, 0.2]}), InputError, "rise"),
        (damaged(map={"method": "isotonic", "points": [0.0, 1.0], "confidences": [0.3, 0.2]}), InputError, "fall"),
        (damaged(map={"method": "isotonic", "points": [0.0, 1.0], "confidences": [0.3, 1.0]}), InputError, "between"),
        (damaged(map={"method": "isotonic", "points": [], "confidences": []}), InputError, "points"),
        (damaged(feature_names=["a", "b"]), InputError, "3 different names"),
        (damaged(feature_names=["a", "b", "a"]), InputError, "3 different names"),
        (damaged(model__scales=[1.0, 0.0, 1.0]), InputError, "above 0"),
        (damaged(model__lowest=[9e9, 0.0, 1.0]), InputError, "lowest"),
        (damaged(model__weights=[1.0]), InputError, "one number per feature"),
        (damaged(development__n_mentions=1), InputError, "curve"),
        (damaged(development__thresholds=[0.5]), InputError, "curve"),
        (damaged(development__n_right=[True]), InputError, "n_right"),
    ],
)
def test_what_is_no_calibration_is_refused(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Calibration.from_json(text)


def test_examples_that_say_too_little_are_refused() -> None:
    features, correct = examples(100)
    with pytest.raises(
        InputError, match="at least 10 right and 10 wrong answers of different mentions; found 100 right, 0 wrong"
    ):
        Calibration.fit(features, np.ones(100, np.bool_), feature_names=NAMES)
    with pytest.raises(InputError, match="found 5 right, 5 wrong"):
        Calibration.fit(features[:10], np.arange(10) < 5, feature_names=NAMES)
    with pytest.raises(InputError, match="too few examples"):
        Calibration.fit(np.empty((0, 3)), [], feature_names=NAMES)
    with pytest.raises(InputError, match="too few different examples"):
        Calibration.fit(np.ones((100, 3)), correct, feature_names=NAMES)
    bad = features.copy()
    bad[7, 1] = math.nan
    with pytest.raises(InputError, match="margin, example 7: a feature is not finite"):
        Calibration.fit(bad, correct, feature_names=NAMES)


def test_arguments_that_do_not_fit_are_refused() -> None:
    features, correct = examples(100)
    with pytest.raises(ShapeError, match=r"\(n, 3\): cosine, margin, length; found \(100, 2\)"):
        Calibration.fit(features[:, :2], correct, feature_names=NAMES)
    with pytest.raises(ShapeError, match=r"correct must have the shape \(100,\)"):
        Calibration.fit(features, correct[:9], feature_names=NAMES)
    with pytest.raises(InputError, match="True or False"):
        Calibration.fit(features, correct.astype(np.float64), feature_names=NAMES)
    with pytest.raises(InputError, match="3 different names"):
        Calibration.fit(features, correct, feature_names=("a", "b", "a"))
    with pytest.raises(ConfigError, match=r"no method 'isotonik'\. Did you mean 'isotonic'"):
        Calibration.fit(features, correct, feature_names=NAMES, method="isotonik")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="n_folds"):
        Calibration.fit(features, correct, feature_names=NAMES, n_folds=1)
    with pytest.raises(ConfigError, match="l2"):
        Calibration.fit(features, correct, feature_names=NAMES, l2=0)
    calibration = fitted()
    with pytest.raises(ShapeError):
        calibration.confidence(features[0])
    with pytest.raises(InputError, match="not finite"):
        calibration.confidence(np.full((1, 3), math.inf))
    assert calibration.confidence(np.empty((0, 3))).shape == (0,)


def test_features_of_a_mention() -> None:
    evidence = [
        MentionEvidence("heart attack", [0.9, 0.7, 0.1], False, 0.8, 0.6, 1),
        MentionEvidence("cold", [0.5, 0.5], True, n_homonyms=3),
        MentionEvidence("x", [0.25], False),
    ]
    expected = [
        [0.9, 0.2, 0, 0.8, 0.6, 12, 1],
        [0.5, 0.0, 1, 0.0, 0.0, 4, 3],
        [0.25, 0.25, 0, 0.0, 0.0, 1, 1],
    ]
    features = confidence_features(evidence)
    assert features == pytest.approx(np.array(expected))
    assert features.shape == (3, len(FEATURE_NAMES))
    assert confidence_features([]).shape == (0, len(FEATURE_NAMES))


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (MentionEvidence("", [0.5], False), "incomplete"),
        (MentionEvidence("x", [], False), "incomplete"),
        (MentionEvidence("x", [0.5], False, n_homonyms=0), "incomplete"),
        (MentionEvidence("x", [0.5, 0.6], False), "best first"),
        (MentionEvidence("x", [math.nan], False), "not finite"),
        (MentionEvidence("x", [0.5], False, math.inf), "not finite"),
    ],
)
def test_evidence_that_is_none_is_refused(evidence: MentionEvidence, words: str) -> None:
    with pytest.raises(InputError, match=words):
        confidence_features([evidence])
