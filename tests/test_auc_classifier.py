"""AUCClassifier: sensible on every kind of stream, and the standings of its race."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, hstack, random_array
from sklearn.metrics import roc_auc_score

from pairloom import AUCClassifier
from pairloom.features import Forest, Gaussian, Identity, RandomFourier
from pairloom.race import Budget, Portfolio
from tests.conftest import make_stream
from tests.generic import SMALL, assert_same


def model(**changes):
    return AUCClassifier(**{"portfolio": SMALL, "random_state": 0, **changes})


def assert_sensible(fitted, X):
    """Finite numbers, probabilities that sum to one, and valid standings."""
    assert np.isfinite(fitted.decision_function(X)).all()
    p = fitted.predict_proba(X)
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.isfinite(fitted.race_["auc"]).all()
    assert ((fitted.race_["share"] >= 0) & (fitted.race_["share"] <= 1)).all()
    assert 0 <= fitted.loss_ <= 1
    assert 1 <= len(fitted.mixture_) == len(set(fitted.mixture_)) <= len(fitted.stream_.learned.entrants)


def test_one_class_for_3000_rows_is_no_harm():
    X, y = make_stream("random", 6000, 4)
    order = np.r_[np.flatnonzero(y < 0)[:3000], np.flatnonzero(y > 0), np.flatnonzero(y < 0)[3000:]]
    late = np.random.default_rng(0).permutation(order[3000:])
    fitted = model().partial_fit(X[order[:3000]], y[order[:3000]], classes=[-1, 1])
    assert_sensible(fitted, X)
    assert (fitted.race_["auc"] == 0.5).all()
    assert (fitted.predict(X) == -1).all()
    fitted.partial_fit(X[late], y[late])
    assert_sensible(fitted, X)
    assert roc_auc_score(y, fitted.decision_function(X)) > 0.95


def test_one_positive_in_a_thousand_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24_000, 4))
    score = X[:, 0] ** 2 + X[:, 1]
    y = score > np.quantile(score, 0.999)
    fitted = model().fit(X[:20_000], y[:20_000])
    assert_sensible(fitted, X)
    assert roc_auc_score(y[20_000:], fitted.decision_function(X[20_000:])) > 0.95
    assert fitted.predict_proba(X)[:, 1].mean() < 0.005


def test_six_hundred_rows_and_single_rows_are_enough_for_a_message():
    X, y = make_stream("random", 900, 4)
    fitted = model()
    for t, (x, label) in enumerate(zip(X[:600], y[:600], strict=True)):
        if t > 1:
            assert np.isfinite(fitted.score_one(x))
        fitted.learn_one(x, label)
    assert_sensible(fitted, X)
    assert roc_auc_score(y[600:], fitted.decision_function(X[600:])) > 0.9
    assert_same(fitted, model().fit(X[:600], y[:600]))


def test_many_dense_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 2000))
    y = X[:, :20].sum(axis=1) + rng.normal(size=1300) > 1
    fitted = model().fit(X[:1100], y[:1100])
    assert_sensible(fitted, X)
    assert roc_auc_score(y[1100:], fitted.decision_function(X[1100:])) > 0.55


def test_many_sparse_columns():
    rng = np.random.default_rng(0)
    X = csr_array(random_array((1700, 20_000), density=0.002, format="csr", rng=rng, dtype=np.float32))
    marks = csr_array(rng.random((1700, 3)) < 0.4).astype(np.float32)
    y = marks.sum(axis=1) + 0.2 * rng.normal(size=1700) > 1.5
    X = csr_array(hstack([X, marks]))
    fitted = model().fit(X[:1500], y[:1500])
    assert_sensible(fitted, X)
    assert roc_auc_score(y[1500:], fitted.decision_function(X[1500:])) > 0.8


def test_constant_and_equal_columns_are_no_harm():
    X, y = make_stream("random", 3000, 3)
    wide = np.column_stack([X, X[:, 0], np.full(3000, 7.0), np.zeros(3000), X[:, 0] > 3])
    fitted = model().fit(wide[:2500], y[:2500])
    assert_sensible(fitted, wide)
    assert roc_auc_score(y[2500:], fitted.decision_function(wide[2500:])) > 0.95
    flat = model().fit(np.ones((1200, 2)), y[:1200])
    assert_sensible(flat, np.ones((5, 2)))
    np.testing.assert_allclose(flat.predict_proba(np.ones((1, 2)))[0, 1], (y[:1200] > 0).mean(), atol=0.02)


def test_labels_that_have_nothing_to_do_with_the_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8000, 5)), rng.random(8000) < 0.3
    fitted = model(portfolio=replace(SMALL, kernels=(("wide", 1.0), ("wide", 8.0)))).fit(X[:4000], y[:4000])
    assert_sensible(fitted, X)
    assert abs(roc_auc_score(y[4000:], fitted.decision_function(X[4000:])) - 0.5) < 0.06
    p = fitted.predict_proba(X[4000:])[:, 1]
    assert 0.3 / 2.5 < p.min() < p.max() < 0.3 * 2.5


@pytest.fixture(scope="module")
def fitted():
    X, y = make_stream("random", 2100, 4)
    return model().fit(X, y)


def test_pairs_and_losses_are_those_of_the_stream(fitted):
    _, y = make_stream("random", 2100, 4)
    assert fitted.n_pairs_ == (y > 0).sum() * (y < 0).sum()
    scores, codes, _ = fitted.stream_.state.observed["recent"].view()
    assert len(codes) == 2048
    assert fitted.loss_ == pytest.approx(1 - roc_auc_score(codes, scores[:, 0]))
    with pytest.raises(AttributeError, match="mixture"):
        _ = fitted.coef_
    assert AUCClassifier(portfolio=SMALL).fit(np.eye(2), [0, 1]).loss_ in {0.0, 0.5, 1.0}


def test_three_classes_and_words_in_a_frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2600, 3)), columns=list("abc"))
    y = np.array(["low", "mid", "high"])[np.digitize(X["a"] ** 2 + X["b"], [0.3, 1.5])]
    three = model().fit(X[:2200], y[:2200])
    assert_sensible(three, X)
    assert three.decision_function(X).shape == (2600, 3)
    assert roc_auc_score(y[2200:], three.predict_proba(X[2200:]), multi_class="ovr", labels=three.classes_) > 0.95
    assert three.feature_names_in_.tolist() == ["a", "b", "c"]
    counts = np.unique(y[:2200], return_counts=True)[1]
    assert three.n_pairs_ == (counts.sum() ** 2 - counts @ counts) // 2
    chunks = model()
    for rows in np.array_split(np.arange(2200), [3, 900, 1030]):
        chunks.partial_fit(X.iloc[rows], y[rows], classes=["low", "mid", "high"])
    assert_same(three, chunks)


def test_weights_count_and_rows_of_weight_zero_do_not():
    X, y = make_stream("random", 2400, 4)
    weight = np.random.default_rng(0).choice([0.0, 0.5, 3.0], 2400)
    kept = weight > 0
    weighted = model().fit(X, y, weight)
    assert_same(weighted, model().fit(X[kept], y[kept], weight[kept]))
    mass = [weight[y == c].sum() for c in (1, -1)]
    assert weighted.n_pairs_ == int(mass[0] * mass[1])
    heavy = model().fit(X, y, np.where(y > 0, 20.0, 1.0))
    assert heavy.predict_proba(X)[:, 1].mean() > 1.1 * model().fit(X, y).predict_proba(X)[:, 1].mean()


@pytest.mark.parametrize(
    "pins",
    [
        {"gamma": 0.3}, {"gamma": "paper", "scale": "minmax"}, {"gamma": np.array([0.1, 0.2, 0.3, 0.4])},
        {"scale": None}, {"scale": "wide"}, {"loss": "hinge"}, {"loss": "square"}, {"n_components": 17},
        {"n_components": 1}, {"max_strata": 3}, {"features": RandomFourier(32, Gaussian("median"), scale="standard")},
        {"features": Forest(8, max_leaves=16, n_rows=256)}, {"features": Identity()},
        {"budget": Budget(bytes=200_000)}, {"budget": Budget(microseconds=0.01)}, {"dtype": "float64"},
    ],
    ids=str,
)  # fmt: skip
def test_pins_race_too(pins):
    X, y = make_stream("random", 1500, 4)
    one = model(**pins).fit(X[:1200], y[:1200])
    assert_sensible(one, X)
    linear = isinstance(pins.get("features"), Identity) or "budget" in pins
    others = [model(**pins).set_params(random_state=seed).fit(X[:1200], y[:1200]) for seed in (1, 2)]
    areas = [roc_auc_score(y[1200:], each.decision_function(X[1200:])) for each in (one, *others)]
    assert np.mean(areas) > (0.6 if linear else 0.85)
    running = one.stream_.model.entrants(one.stream_.learned)
    for candidate in (entrant.candidate for entrant in running):
        if "n_components" in pins and candidate.family == "kernel":
            assert candidate.features.n_outputs(4) <= pins["n_components"]
        if pins.get("loss") == "hinge":
            made = candidate.model(one.stream_.model.pairs, dtype="float32", seed=0)
            learners = made.learners if hasattr(made, "learners") else [made.learner]
            assert {type(learner.loss).__name__ for learner in learners} == {"Hinge"}
        if "features" in pins:
            assert candidate.features == pins["features"]
        if "scale" in pins and candidate.family in ("linear", "kernel"):
            assert candidate.features.inner.scale == pins["scale"]
    if "budget" in pins:
        assert [entrant.name for entrant in running] == ["linear"]


def test_a_small_budget_gives_smaller_maps_and_fewer_candidates():
    X, y = make_stream("random", 900, 4)
    large = replace(SMALL, n_landmarks=128, large_landmarks=256, forests=(Forest(100, growth="renewed"),))
    found = {}
    for limit in (1000.0, 16.0, 8.0):
        one = model(portfolio=large, budget=Budget(microseconds=limit)).fit(X, y)
        assert_sensible(one, X)
        candidates = [e.candidate for e in one.stream_.model.entrants(one.stream_.learned)]
        assert sum(c.microseconds(4) for c in candidates) <= limit
        found[limit] = {c.name: c.features for c in candidates}
    assert list(found[1000.0].values()) == [c.features for c in sorted(large.candidates(4), key=lambda c: c.refits)]
    assert len(found[8.0]) < len(found[1000.0])
    assert sum(f.n_outputs(4) for f in found[16.0].values()) < sum(f.n_outputs(4) for f in found[1000.0].values())


def test_landmarks_need_not_be_a_power_of_two():
    X, y = make_stream("random", 4200, 4)
    one = model(portfolio=replace(SMALL, n_landmarks=13, large_landmarks=77, forests=(), boosted=None)).fit(X, y)
    assert_sensible(one, X)
    assert [e.large for e in one.stream_.learned.entrants] == [0, 77]


def test_fewer_rows_than_the_first_look_are_scored_0():
    X, y = make_stream("random", 60, 4)
    one = model().partial_fit(X[:15], y[:15], classes=[-1, 1])
    assert (one.decision_function(X) == one.decision_function(X)[0]).all()
    assert one.mixture_ == []
    one.partial_fit(X[15:16], y[15:16])
    assert len(one.mixture_) > 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget", 2**30), ("portfolio", {}), ("features", "fourier"), ("gamma", "narrow"), ("scale", "tall"),
        ("loss", "log"), ("n_components", 0), ("n_components", 1.5), ("max_strata", -1), ("dtype", "float16"),
        ("engine", "gpu"), ("verbose", -1),
    ],
)  # fmt: skip
def test_errors_name_the_parameter(name, value):
    X, y = make_stream("random", 20, 4)
    with pytest.raises(ValueError, match=name):
        model(**{name: value}).fit(X, y)


def test_the_default_portfolio_is_raced():
    assert AUCClassifier()._make_model(2, 0).portfolio == Portfolio()


def test_columns_too_small_for_float32_and_very_unequal_weights_are_no_harm():
    X, y = make_stream("random", 700, 3)
    assert_sensible(model().fit(1e-40 * X, y), 1e-40 * X)
    weight = np.random.default_rng(0).choice([1e-300, 1e300], 700)
    assert_sensible(model().fit(X, y, weight), X)
