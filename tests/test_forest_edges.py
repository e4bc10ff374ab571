"""Forests: missing values, rows that grow trees and are not learned, parameters, errors."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.utils import get_tags

from pairloom import Grid, Learner, PairwiseRanker, PairwiseRegressor, Stream, load, save
from pairloom.base.clock import NEVER, next_boost, next_renewal
from pairloom.base.tree import same
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.features import Forest, RandomFourier
from pairloom.memory import Latest, Strata
from pairloom.models import StepPath
from pairloom.steps import AdaGrad
from pairloom.systems import FPOGD, OPAUC, SPAM, AdaDSG, AllPairs, ExactAUC, FourierSGD
from tests.test_forest import rows

SMALL = Forest(5, max_leaves=8, n_rows=64)
RANDOM = replace(SMALL, labels=False)


def learner(features=SMALL, **changes):
    return Learner(features, **{"memory": Latest(size=4), "step": AdaGrad(0.1), "seed": 0, **changes})


# Missing values.


@pytest.mark.parametrize("features", [SMALL, RANDOM, replace(SMALL, scale="standard")], ids=str)
def test_estimators_take_missing_values_wherever_rows_come_in(features):
    X, y = rows(300, missing=True)
    names = list("abcde")
    make = lambda: FPOGD(features=features, random_state=0)  # noqa: E731
    whole, one_by_one, framed = make().partial_fit(X, y), make(), make()
    for x, label in zip(X, y, strict=True):
        one_by_one.learn_one(x, label)
    for x, label in zip(X[:100], y[:100], strict=True):
        framed.learn_one(dict(zip(names, x, strict=True)), label)
    frame = pd.DataFrame(X, columns=names)
    framed.partial_fit(frame[100:], y[100:])
    assert same(whole.state_.stream, one_by_one.state_.stream)
    assert same(whole.state_.stream, framed.state_.stream)
    scores = whole.decision_function(X)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(framed.decision_function(frame), scores)
    assert whole.score_one(X[np.isnan(X[:, 1])][0]) == scores[np.isnan(X[:, 1])][0]
    assert framed.score_one(dict(zip(names, X[1], strict=True))) == scores[1]
    objects = X.astype(object)
    np.testing.assert_array_equal(whole.decision_function(pd.DataFrame(X).astype("Float64")), scores)
    np.testing.assert_array_equal(whole.decision_function(objects), scores)


def test_so_does_a_stream_and_a_transformer_and_a_ranker():
    X, y = rows(300, missing=True)
    more = ({"engine": "reference"}, {"average": "mean"}, {})
    for model in (*(learner(**parts) for parts in more), StepPath(learner(), [0.1, 1.0])):
        stream = Stream(model).partial_fit(X, y)
        assert np.isfinite(stream.score(X)).all()
        assert stream.score(X).any()
    Z = FeatureTransformer(RANDOM, random_state=0).fit(X).transform(X)
    assert Z.shape == (300, 40)
    ranked = PairwiseRanker(features=SMALL, memory=Latest("previous", 4), random_state=0).fit(X, X[:, 0])
    assert ranked.concordance_ > 0.6


def test_what_takes_missing_values_is_a_tag():
    for model, takes in (
        (FPOGD(features=SMALL), True), (FPOGD(), False), (FPOGD(features=SMALL, cluster_in="input"), False),
        (FPOGD(features=RandomFourier(8)), False), (FeatureTransformer(SMALL), True), (FeatureTransformer(), False),
        (PairwiseRanker(features=SMALL, memory=Strata(by="joint", cluster_in="input", normalization="history")), False),
        (PairwiseRanker(features=SMALL), True), (SPAM(features=SMALL), True), (ExactAUC(), False),
    ):  # fmt: skip
        assert get_tags(model).input_tags.allow_nan is takes, model
    X, y = rows(100)
    for model in (FPOGD(features=SMALL), FPOGD(features=SMALL, cluster_in="input"), PairwiseRanker(features=SMALL)):
        before = get_tags(model).input_tags.allow_nan
        assert get_tags(model.fit(X, y)).input_tags.allow_nan is before


def test_others_refuse_missing_values_as_ever():
    X, y = rows(100)
    bad = X.copy()
    bad[3, 1] = np.nan
    thin = csr_array(np.where(np.abs(bad) < 0.5, 0.0, bad))
    for features, given, more in (
        (RandomFourier(8), bad, {}), (None, bad, {}), (SMALL, thin, {}), (SMALL, bad, {"cluster_in": "input"}),
    ):  # fmt: skip
        model = FPOGD(features=features, n_components=16, random_state=0, **more)
        with pytest.raises(ValueError, match=r"NaN at row 3, column 1.*Drop or impute missing values first"):
            model.fit(given, y)
        model.fit(csr_array(X) if given is thin else X, y)
        before = pickle.dumps(model)
        for call in (model.partial_fit, lambda *_, m=model, g=given: m.predict(g)):
            with pytest.raises(ValueError, match="NaN at row 3, column 1"):
                call(given, y)
        if given is bad:
            with pytest.raises(ValueError, match="NaN at row 0, column 1"):
                model.learn_one(bad[3], y[3])
        assert pickle.dumps(model) == before
        stream = Stream(model.stream_.model)
        with pytest.raises(ValueError, match="NaN at row 3, column 1"):
            stream.partial_fit(given, y)
    for value in (np.inf, -np.inf, 1e16):
        bad[3, 1] = value
        with pytest.raises(ValueError, match=r"at row 3, column 1"):
            FPOGD(features=SMALL).fit(bad, y)


# Rows that grow trees are not learned.


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("average", ["last", "mean"])
def test_growers_have_weight_0_and_nothing_is_learned_from_them(engine, average):
    X, y = rows(500)
    weight = np.random.default_rng(0).random(500) + 0.5
    model = learner(engine=engine, average=average)
    stream = Stream(model).partial_fit(X, y, weight)
    scores, labels, weights = stream.recent()
    assert scores.shape == (500,)
    assert not scores[:64].any()
    assert not weights[:64].any()
    np.testing.assert_array_equal(weights[64:], weight[64:])
    np.testing.assert_array_equal(labels, y > 0)
    assert scores[64:].all()
    state, batch = stream.learned, stream.check(X, y, weight)
    assert state.t == 500
    assert stream.learned.tally[0] <= weight[64:].sum()
    # The same by hand: a map and initial weights from the first rows, then the other rows.
    again = model.init(5, batch[:64])
    again.t = 64
    model.learn(again, batch[64:])
    np.testing.assert_array_equal(again.w, state.w)


def test_no_grower_enters_auc_calibration_or_thresholds():
    X, y = rows(400)
    stream = Stream(learner()).partial_fit(X, y)
    from sklearn.metrics import roc_auc_score

    scores, labels, _ = stream.recent()
    assert stream.auc()[0] == pytest.approx(roc_auc_score(labels[64:], scores[64:]))
    model = FPOGD(features=SMALL, random_state=0).fit(X, y)
    from pairloom.stream.calibration import platt

    scores, labels, _ = model.stream_.recent()
    fit = model.stream_.state.observed["calibration"]
    at = 384  # the last row at which it was fitted
    expected = platt(scores[64:at], labels[64:at] > 0, np.ones(at - 64))
    np.testing.assert_allclose([fit.a[0], fit.b[0]], expected, rtol=1e-4)
    cut = model.balanced_threshold_
    assert cut in model._calibrate(scores[64:, None])


@pytest.mark.parametrize("n", [1, 2, 16, 64, 65, 256, 300])
@pytest.mark.parametrize("make", [FPOGD, FourierSGD, PairwiseRegressor, PairwiseRanker, ExactAUC, AdaDSG])
def test_where_all_rows_grow_there_is_a_model_of_their_votes_and_no_warning(make, n):
    X, y = rows(300)
    labels = 10 + X[:, 0] if make is PairwiseRegressor else y
    if make in (AdaDSG, FPOGD, FourierSGD, ExactAUC) and len(set(labels[:n])) < 2:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(features=Forest(20, max_leaves=16), random_state=0).fit(X[:n], labels[:n])
        scores = (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)
        assert np.isfinite(scores).all()
        repr(model)
        for name in ("auc_", "concordance_", "balanced_threshold_", "intercept_"):
            if hasattr(model, name):
                getattr(model, name)
        if hasattr(model, "predict_proba"):
            assert np.isfinite(model.predict_proba(X)).all()
    if n in (64, 256):
        assert np.ptp(scores) > 0 or make is ExactAUC  # which has no initial weights
        if make is PairwiseRegressor:
            assert abs(scores.mean() - 10) < 1
        assert not model.stream_.recent()[2].any() or make is AdaDSG


def test_areas_are_unknown_while_all_rows_grow():
    X, y = rows(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (64, 120):
            stream = Stream(learner(Forest(5, max_leaves=8))).partial_fit(X[:n], y[:n])
            assert np.isnan(stream.auc()[0]) == (n == 64)
        model = FPOGD(features=Forest(5, max_leaves=8), random_state=0).fit(X[:64], y[:64])
        assert np.isnan(model.auc_.value)
        assert model.balanced_threshold_ == 0


# Labels.


def test_a_supervised_forest_needs_labels():
    X, y = rows(200)
    with pytest.raises(ValueError, match=r"grown by labels, and none were given: use Forest\(labels=False\)"):
        FeatureTransformer(SMALL).fit(X)
    with pytest.raises(ValueError, match="grown by labels"):
        SMALL.fix(5, X, np.random.default_rng(0))
    for labels in (y, y.astype(int), np.where(y > 0, "yes", "no"), X[:, 0], list(y)):
        model = FeatureTransformer(SMALL, random_state=0).fit(X, labels)
        assert model.transform(X).shape == (200, 40)
        np.testing.assert_array_equal(
            model.transform(X).toarray(),
            FeatureTransformer(SMALL, random_state=0).partial_fit(X, labels).transform(X).toarray(),
        )
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        FeatureTransformer(SMALL).fit(X, y[:9])
    with pytest.raises(ValueError, match="FeatureTransformer needs features that stay as they are"):
        FeatureTransformer(replace(SMALL, growth="renewed")).fit(X, y)


# Parameters, and errors.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *[({name: value}, f"{name} must be an integer >= 1; got {value!r}")
          for name in ("n_trees", "max_leaves", "n_rows") for value in (0, -1, 2.0, True, "8")],
        *[({"levels": value}, "levels must be depths from 1 on, in order")
          for value in ((0,), (-1, 2), (4, 2), (2, 2), (1.5,), ("a",), [1, 2], 3, None, (True,))],
        ({"labels": 1}, "labels must be True or False, got 1"),
        ({"labels": None}, "labels must be True or False"),
        ({"growth": "always"}, "growth must be one of 'once', 'renewed', 'boosted'; got 'always'"),
        ({"growth": "renewed", "levels": (2,)}, r"growth='renewed' is for labels=True and levels=\(\)"),
        ({"growth": "boosted", "labels": False}, "growth='boosted' is for labels=True"),
        ({"scale": "big"}, "scale"),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_that_make_no_sense(parameters, message):
    with pytest.raises(ValueError, match=message):
        Forest(**parameters)


def test_what_a_forest_is_not_for():
    X, y = rows(100)
    with pytest.raises(ValueError, match="grid"):
        Grid([Learner(SMALL, seed=0)])
    big = Forest(100)
    for system in (ExactAUC, OPAUC, AllPairs):
        with pytest.raises(ValueError, match="max_bytes"):
            system(features=big).fit(X, y)
    with pytest.raises(ValueError, match="more than max_bytes"):
        OPAUC(features=Forest(1000), rank=500).fit(X, y)
    growing = replace(SMALL, growth="renewed")
    for memory in (Strata(), Strata(representative="centroid", cluster_in="input")):
        with pytest.raises(ValueError, match="with features that grow, a memory must keep past rows"):
            Learner(growing, memory=memory)
    for system in (SPAM, FourierSGD, ExactAUC, AdaDSG, OPAUC, AllPairs):
        with pytest.raises(ValueError, match="needs features that stay as they are"):
            system(features=growing).fit(X, y)
    means = Strata(representative="centroid")
    for wrong in ({"average": "mean"}, {"memory": means}, {"engine": "reference"}, {"features": RandomFourier(8)}):
        with pytest.raises(ValueError, match="a path needs a learner with step=AdaGrad"):
            StepPath(learner(**wrong), [0.1])
    with pytest.raises(ValueError, match="at least one step"):
        StepPath(learner(), [])
    with pytest.raises(ValueError, match="eta"):
        StepPath(learner(), [0.1, -1.0])


def test_rows_with_missing_values_are_kept_in_files(tmp_path):
    X, y = rows(300, missing=True)
    for at in (70, 200):
        model = FPOGD(features=SMALL, random_state=0).partial_fit(X[:at], y[:at])
        save(model, tmp_path / "model")
        found = load(tmp_path / "model")
        assert same(found.state_, model.state_)
        for one in (model, found):
            one.partial_fit(X[at:], y[at:])
        assert same(found.state_, model.state_)


@pytest.mark.parametrize("n_trees", [1, 2, 7, 100, 5000])
def test_the_clock_of_growth(n_trees):
    renewals = [next_renewal(k, n_trees) for k in range(4 * n_trees + 3)]
    assert renewals == sorted(renewals)
    assert renewals[0] == 64
    assert renewals[4 * n_trees :] == [NEVER] * 3
    for turn in range(4):
        own = renewals[turn * n_trees : (turn + 1) * n_trees]
        assert 64 * 4**turn == own[0]
        assert own[-1] < 64 * 4 ** (turn + 1)
        due = 64 * 4**turn * 4.0 ** (np.arange(n_trees) / n_trees)
        assert (np.array(own) % 32 == 0).all()
        assert (np.abs(due - 16 - own) <= 16.001).all()
    boosts = [next_boost(k, n_trees) for k in range(n_trees + 2)]
    assert boosts[n_trees:] == [NEVER] * 2
    by_hand, row = [], 0
    for _ in range(n_trees):
        row += next((apart for apart, end in ((64, 2048), (128, 4096), (256, 8192)) if row < end), 512)
        by_hand.append(row)
    assert boosts[:n_trees] == by_hand
    assert next_renewal(2**50, n_trees) == next_boost(2**50, n_trees) == NEVER


@pytest.mark.parametrize("growth", ["once", "renewed", "boosted"])
@pytest.mark.parametrize("kind", [PairwiseRegressor, PairwiseRanker])
def test_the_unit_of_the_labels_does_not_matter(kind, growth):
    """Initial weights have the unit of the labels if scores estimate their differences, and no unit for ranking."""
    X, _ = rows(300)
    forest = replace(SMALL, growth=growth)
    models = [kind(features=forest, random_state=0, dtype="float64").fit(X, unit * X[:, 0]) for unit in (1, 1e-6, 1e6)]
    units = (1, 1e-6, 1e6) if kind is PairwiseRegressor else (1, 1, 1)
    expected = models[0].predict(X)
    assert np.corrcoef(expected, X[:, 0])[0, 1] > 0.6
    for model, unit in zip(models, units, strict=True):
        np.testing.assert_allclose(model.predict(X) / unit, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("growth", ["once", "renewed", "boosted"])
def test_float64_rows_beyond_float32_are_no_trouble(growth):
    X, y = rows(300)
    X[:, 1] *= 1e60
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in (X, csr_array(X)):
            stream = Stream(learner(replace(SMALL, growth=growth), dtype="float64")).partial_fit(given, y)
            assert stream.auc()[0] > 0.55
