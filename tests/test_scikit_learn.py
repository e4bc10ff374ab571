"""scikit-learn at large: pipelines, searches, routed metadata, data frames, processes."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from pairloom.estimators import PairwiseRanker, PairwiseRegressor, concordance
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.features import Gaussian, RandomFourier
from pairloom.memory import Window
from pairloom.systems import FPOGD

BOTH = pytest.mark.parametrize("make", [PairwiseRanker, PairwiseRegressor])


@pytest.fixture(scope="module")
def data():
    """Rows, labels shifted by query, queries, weights."""
    X, y = make_friedman1(400, noise=0.5, random_state=0)
    rng = np.random.default_rng(0)
    queries = np.arange(400) // 10
    return X, y + 20 * rng.normal(size=40)[queries], queries, rng.choice([0.0, 1.0, 2.0], 400)


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def ranker(**changes):
    return PairwiseRanker(**{"n_components": 64, "random_state": 0, **changes})


@BOTH
def test_frames_and_mappings_go_by_name(make, data):
    X, y = data[0][:80, :5], data[1][:80]
    names = list("abcde")
    by_frame = make(random_state=0).fit(pd.DataFrame(X, columns=names), y)
    by_row = make(random_state=0)
    for x, label in zip(X, y, strict=True):
        by_row.learn_one(dict(zip(names, x, strict=True)), label)
    np.testing.assert_array_equal(by_frame.coef_, by_row.coef_)
    assert by_row.feature_names_in_.tolist() == names
    shuffled = dict(reversed(list(zip(names, X[0], strict=True))))
    assert by_row.score_one(shuffled) == by_frame.predict(pd.DataFrame(X[:1], columns=names))[0]
    assert by_row.score_one(dict.fromkeys("abde", 0.0)) == by_row.score_one({**dict.fromkeys("abde", 0.0), "c": None})
    with pytest.raises(ValueError, match=r"column names .*must be strings"):
        make().learn_one({0: 1.0}, 0)
    with pytest.raises(ValueError, match="column 'c' contains infinity at row 1"):
        by_frame.predict(pd.DataFrame(X[:2], columns=names).assign(c=[0, np.inf]))


@BOTH
def test_clone_keeps_parameters_and_parts_and_forgets_the_model(make, data):
    X, y, *_ = data
    model = make(eta=0.1, memory=Window(9), features=RandomFourier(32, Gaussian(0.2)), random_state=3).fit(X, y)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "stream_")
    np.testing.assert_array_equal(fresh.fit(X, y).coef_, model.coef_)
    assert "memory=Window(size=9)" in repr(fresh)
    assert "# 400 rows," in repr(model)
    assert clone(make()).set_params(eta=0.5).eta == 0.5


@BOTH
def test_search_over_numbers_and_parts_in_processes(make, data):
    X, y, *_ = data
    grid = {"eta": [0.05, 0.25], "memory": [None, Window(16)]}
    searches = [
        GridSearchCV(make(n_components=64, random_state=0), grid, cv=3, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
    ]
    for key in ("mean_test_score", "std_test_score"):
        np.testing.assert_array_equal(*(search.cv_results_[key] for search in searches))
    np.testing.assert_array_equal(*(search.best_estimator_.coef_ for search in searches))


@BOTH
def test_joblib_gives_the_same_bits_and_models_come_back_whole(make, data, tmp_path):
    X, y, queries, weight = data
    fit = lambda seed: make(n_components=64, random_state=seed).fit(X, y, weight, queries)  # noqa: E731
    for seed, model in enumerate(joblib.Parallel(n_jobs=2)(joblib.delayed(fit)(seed) for seed in range(3))):
        np.testing.assert_array_equal(model.predict(X), fit(seed).predict(X))
    joblib.dump(fit(0), tmp_path / "model")
    loaded = joblib.load(tmp_path / "model").partial_fit(X, y, weight, queries)
    np.testing.assert_array_equal(loaded.coef_, fit(0).partial_fit(X, y, weight, queries).coef_)


@pytest.mark.usefixtures("routing")
def test_weights_and_queries_are_routed_through_a_pipeline_and_a_search(data):
    X, y, queries, weight = data
    model = ranker().set_fit_request(sample_weight=True, groups=True).set_score_request(sample_weight=True, groups=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = Pipeline([("scale", scaler), ("rank", model)])
    search = GridSearchCV(pipe, {"rank__eta": [0.05, 0.25]}, cv=GroupKFold(4))
    search.fit(X, y, sample_weight=weight, groups=queries)

    def by_hand(eta, train, test):
        rows = StandardScaler().fit(X[train])
        fitted = ranker(eta=eta).fit(rows.transform(X[train]), y[train], weight[train], queries[train])
        return fitted.score(rows.transform(X[test]), y[test], weight[test], queries[test])

    for k, (train, test) in enumerate(GroupKFold(4).split(X, y, queries)):
        found = search.cv_results_[f"split{k}_test_score"]
        assert found.tolist() == [by_hand(eta, train, test) for eta in (0.05, 0.25)]
    expected = ranker(eta=search.best_params_["rank__eta"]).fit(StandardScaler().fit_transform(X), y, weight, queries)
    np.testing.assert_array_equal(search.best_estimator_["rank"].coef_, expected.coef_)
    assert search.best_score_ > 0.75
    blind = GridSearchCV(make_pipeline(scaler, ranker()), {}, cv=GroupKFold(4))
    with pytest.raises(ValueError, match=r"groups.*not explicitly set as requested or not"):
        blind.fit(X, y, sample_weight=weight, groups=queries)


@pytest.mark.usefixtures("routing")
def test_routing_to_a_scorer_and_to_partial_fit(data):
    X, y, queries, weight = data
    model = ranker().set_fit_request(sample_weight=True, groups=True)
    scorer = make_scorer(concordance).set_score_request(sample_weight=True, groups=True)
    params = {"sample_weight": weight, "groups": queries}
    found = cross_validate(model, X, y, scoring=scorer, cv=GroupKFold(4), params=params, n_jobs=2)["test_score"]
    for (train, test), score in zip(GroupKFold(4).split(X, y, queries), found, strict=True):
        fitted = ranker().fit(X[train], y[train], weight[train], queries[train])
        assert score == fitted.score(X[test], y[test], weight[test], queries[test])
    request = ranker().set_partial_fit_request(groups="query").get_metadata_routing()
    assert request.partial_fit.requests["groups"] == "query"


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("make", [PairwiseRegressor, FPOGD])
def test_weights_are_routed(make, data):
    X, y, _, weight = data
    y = y if make is PairwiseRegressor else (y > np.median(y)).astype(int)
    model = (
        make(n_components=64, random_state=0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    )
    pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
    found = cross_validate(pipe, X, y, cv=KFold(3), params={"sample_weight": weight})["test_score"]
    for (train, test), score in zip(KFold(3).split(X), found, strict=True):
        rows = StandardScaler().fit(X[train])
        fitted = clone(model).fit(rows.transform(X[train]), y[train], sample_weight=weight[train])
        assert score == fitted.score(rows.transform(X[test]), y[test], sample_weight=weight[test])


@BOTH
def test_without_routing_weights_and_groups_go_by_the_old_names(make, data):
    X, y, queries, weight = data
    model = make(n_components=64, random_state=0)
    pipe = Pipeline([("scale", StandardScaler()), ("model", model)])
    pipe.fit(X, y, model__sample_weight=weight, model__groups=queries)
    expected = clone(model).fit(StandardScaler().fit_transform(X), y, weight, queries)
    np.testing.assert_array_equal(pipe["model"].coef_, expected.coef_)


def test_set_output_hands_names_from_step_to_step():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["sex"]), (FunctionTransformer(), ["bmi", "bp", "s5"])
    )
    steps = make_pipeline(columns, FeatureTransformer(RandomFourier(16, Gaussian("median")), random_state=0), ranker())
    steps.set_output(transform="pandas").fit(X, y)
    assert steps[-1].feature_names_in_.tolist() == [f"featuretransformer{i}" for i in range(16)]
    named = make_pipeline(columns, ranker()).set_output(transform="pandas").fit(X, y)
    assert named[-1].feature_names_in_[-1] == "functiontransformer__s5"
    assert named.score(X, y) > 0.7
    with pytest.raises(ValueError, match="feature names should match"):
        named[-1].predict(pd.DataFrame(np.zeros((1, 5)), columns=list("abcde")))


def test_model_selection_and_inspection_tools():
    X, y = load_diabetes(return_X_y=True)
    model = PairwiseRegressor(n_components=128, random_state=0)
    assert cross_val_score(model, X, y, cv=KFold(5, shuffle=True, random_state=0)).mean() > 0.35
    assert np.corrcoef(cross_val_predict(model, X, y, cv=3), y)[0, 1] > 0.6
    log = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp).fit(X, y)
    assert log.score(X, y) > 0.35
    model.fit(X, y)
    assert np.diff(partial_dependence(model, X, [2])["average"][0]).mean() > 0  # body mass index
    importance = permutation_importance(ranker().fit(X, y), X, y, n_repeats=3, random_state=0).importances_mean
    assert set(np.argsort(importance)[-2:]) == {2, 8}
